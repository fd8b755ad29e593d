// The second derivatives of strain limits at quadrature points; the equations are in strain_limits.py.
#pragma once

#include "engines/simulate/warping.h"

// Limits that act: H : dF = U (eigenvalues applied to Uᵀ dF V) Vᵀ at each point of `active`.
struct ActiveLimits {
    In<int32_t, 1> active;  // (a,) quadrature points
    In<float, 2> frames;    // (a, 27) U and V by rows; eigenvalues of the stretches (3), twists (3) and flips (3)
    using Fields = Types<In<int32_t, 1>, In<float, 2>>;
};

// out += Σ_q (H : dF) g_I at `free` nodes for displacements x; sums is a buffer.
void add_limits(Team &team, const Flesh<float> &flesh, const ActiveLimits &limits, const Four<float> *x, int64_t free,
                std::vector<Four<float>> &sums, Four<float> *out);
