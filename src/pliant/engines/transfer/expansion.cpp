// Sums of solid harmonics; the equations are in expansion.py.
#include <cstring>

#include "native/kernel.h"

constexpr int DEGREE = 4;  // L; as in expansion.py

// B_k up to degree L at (u, v, w). Unrolled, so that indices and factors are constants.
template <int L>
static inline void solid_harmonics(double u, double v, double w, double *B) {
    double re[L + 1][L + 1], im[L + 1][L + 1];
    const double square = u * u + v * v + w * w;
#pragma GCC unroll 8
    for (int m = 0; m <= L; ++m) {
        const double half = m ? 0.5 / m : 0.0;
        re[m][m] = m ? (u * re[m - 1][m - 1] - v * im[m - 1][m - 1]) * half : 1.0;
        im[m][m] = m ? (u * im[m - 1][m - 1] + v * re[m - 1][m - 1]) * half : 0.0;
#pragma GCC unroll 8
        for (int l = m; l < L; ++l) {
            const double a = (2 * l + 1.0) / ((l + 1) * (l + 1) - m * m), b = 1.0 / ((l + 1) * (l + 1) - m * m);
            re[l + 1][m] = a * w * re[l][m] - (l > m ? b * square * re[l - 1][m] : 0.0);
            im[l + 1][m] = a * w * im[l][m] - (l > m ? b * square * im[l - 1][m] : 0.0);
        }
    }
#pragma GCC unroll 8
    for (int l = 0; l <= L; ++l)
#pragma GCC unroll 8
        for (int m = 0; m <= l; ++m) {
            *B++ = re[l][m];
            if (m) *B++ = im[l][m];
        }
}

// Σ_k terms(c, k) B_k(u), with terms (cells, (L + 1)², WIDTH), into rows (numbers) of (n, d).
template <int L, int WIDTH>
static void sum(In<int32_t, 1> numbers, In<int32_t, 1> cell, In<float, 2> offsets, In<double, 3> terms,
                Out<double, 2> out, int64_t begin, int64_t end) {
    constexpr int COUNT = (L + 1) * (L + 1);
    for (int64_t i = begin; i < end; ++i) {
        double B[COUNT], total[WIDTH] = {};
        solid_harmonics<L>(offsets(i, 0), offsets(i, 1), offsets(i, 2), B);
        const double *term = &terms(cell(i), 0, 0);
#pragma GCC unroll 25
        for (int k = 0; k < COUNT; ++k)
            for (int d = 0; d < WIDTH; ++d) total[d] += term[k * WIDTH + d] * B[k];
        std::memcpy(&out(numbers(i), 0), total, (WIDTH / 4 * 3) * sizeof(double));  // d is 3 or 9
    }
}

// Points (n, 3) of terms (cells, (L + 1)², 4), or Jacobians (n, 9) of terms (cells, L², 12).
static void expand(In<int32_t, 1> numbers, In<int32_t, 1> cell, In<float, 2> offsets, In<double, 3> terms,
                   Out<double, 2> out, int64_t begin, int64_t end) {
    if (terms.shape[2] == 4) sum<DEGREE, 4>(numbers, cell, offsets, terms, out, begin, end);
    else sum<DEGREE - 1, 12>(numbers, cell, offsets, terms, out, begin, end);
}
EXPORT(cage_expand, expand)
