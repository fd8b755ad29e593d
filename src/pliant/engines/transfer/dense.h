// Sums of rows.
#pragma once

#include "native/kernel.h"

// sums += Σ factors[r] rows[r] over `many` rows of `length`, in their order.
void add_rows(const double *factors, const double *const *rows, int64_t many, int64_t length, double *sums);
