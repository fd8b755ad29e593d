// Dense products of a few hundred rows, on one core; see solver_kernels.py.
#include "engines/transfer/dense.h"

#include <algorithm>
#include <vector>

// Four rows at once, so that the sums are read and written a fourth of the times.
static void add_four(const double *f, const double *const *rows, int64_t length, double *__restrict sums) {
    const double *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3], p = f[0], q = f[1], r = f[2], s = f[3];
    for (int64_t i = 0; i < length; ++i) sums[i] = sums[i] + p * a[i] + q * b[i] + r * c[i] + s * d[i];
}

void add_rows(const double *factors, const double *const *rows, int64_t many, int64_t length, double *__restrict sums) {
    int64_t row = 0;
    for (; row + 4 <= many; row += 4) add_four(factors + row, rows + row, length, sums);
    for (; row < many; ++row) {
        const double factor = factors[row], *values = rows[row];
        for (int64_t i = 0; i < length; ++i) sums[i] += factor * values[i];
    }
}

// Xᵀ A (k, m) of an A (n, m) and the transpose of an X (n, k) with few columns, added to `out`.
static void transposed_product(In<double, 2> A, In<double, 2> X_transposed, Out<double, 2> out) {
    std::vector<const double *> rows(A.shape[0]);
    for (int64_t j = 0; j < A.shape[0]; ++j) rows[j] = A.data + j * A.shape[1];
    for (int64_t first = 0; first < A.shape[0]; first += 4)
        for (int64_t x = 0; x < out.shape[0]; ++x)
            add_rows(X_transposed.data + x * A.shape[0] + first, &rows[first], std::min<int64_t>(4, A.shape[0] - first),
                     A.shape[1], out.data + x * A.shape[1]);
}
EXPORT(dense_transposed_product, transposed_product)
