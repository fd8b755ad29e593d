// Sums of solid harmonics; the equations are in expansion.py.
#include <algorithm>
#include <cstring>

#include "native/kernel.h"

constexpr int DEGREE = 4;  // L; as in expansion.py

typedef double Lanes __attribute__((vector_size(64)));  // a number of each of several points
constexpr int WIDTH = sizeof(Lanes) / sizeof(double);

// B_k up to degree L at (u, v, w). Unrolled, so that indices and factors are constants.
template <int L>
static inline void solid_harmonics(Lanes u, Lanes v, Lanes w, Lanes *B) {
    Lanes re[L + 1][L + 1], im[L + 1][L + 1];
    const Lanes square = u * u + v * v + w * w;
#pragma GCC unroll 8
    for (int m = 0; m <= L; ++m) {
        const double half = m ? 0.5 / m : 0.0;
        re[m][m] = m ? (u * re[m - 1][m - 1] - v * im[m - 1][m - 1]) * half : Lanes{} + 1.0;
        im[m][m] = m ? (u * im[m - 1][m - 1] + v * re[m - 1][m - 1]) * half : Lanes{};
#pragma GCC unroll 8
        for (int l = m; l < L; ++l) {
            const double a = (2 * l + 1.0) / ((l + 1) * (l + 1) - m * m), b = 1.0 / ((l + 1) * (l + 1) - m * m);
            re[l + 1][m] = a * w * re[l][m], im[l + 1][m] = a * w * im[l][m];
            if (l > m) re[l + 1][m] -= b * square * re[l - 1][m], im[l + 1][m] -= b * square * im[l - 1][m];
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

// Σ_k terms(c, k) B_k(u), with terms (cells, (L + 1)², COLUMNS), into rows (numbers less that of the first) of (n, d).
template <int L, int COLUMNS>
static void sum(In<int32_t, 1> numbers, In<int32_t, 1> cell, In<float, 2> offsets, In<double, 3> terms,
                Out<double, 2> out, int64_t number, int64_t begin, int64_t end) {
    constexpr int COUNT = (L + 1) * (L + 1);
    for (int64_t first = begin; first < end; first += WIDTH) {
        const int some = int(std::min<int64_t>(WIDTH, end - first));
        Lanes at[3], B[COUNT];
        for (int axis = 0; axis < 3; ++axis)
            for (int lane = 0; lane < WIDTH; ++lane) at[axis][lane] = offsets(first + std::min(lane, some - 1), axis);
        solid_harmonics<L>(at[0], at[1], at[2], B);
        for (int lane = 0; lane < some; ++lane) {
            double total[COLUMNS] = {};
            const double *term = &terms(cell(first + lane), 0, 0);
#pragma GCC unroll 25
            for (int k = 0; k < COUNT; ++k)
                for (int d = 0; d < COLUMNS; ++d) total[d] += term[k * COLUMNS + d] * B[k][lane];
            std::memcpy(&out(numbers(first + lane) - number, 0), total, (COLUMNS / 4 * 3) * sizeof(double));  // d is 3 or 9
        }
    }
}

// Points (n, 3) of terms (cells, (L + 1)², 4), or Jacobians (n, 9) of terms (cells, L², 12).
static void expand(In<int32_t, 1> numbers, In<int32_t, 1> cell, In<float, 2> offsets, In<double, 3> terms,
                   Out<double, 2> out, int64_t number, int64_t begin, int64_t end) {
    if (terms.shape[2] == 4) sum<DEGREE, 4>(numbers, cell, offsets, terms, out, number, begin, end);
    else sum<DEGREE - 1, 12>(numbers, cell, offsets, terms, out, number, begin, end);
}
EXPORT(cage_expand, expand)
