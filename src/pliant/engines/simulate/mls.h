// Linear fits by weighted moments; the equations are in mls.py.
#pragma once

#include "native/kernel.h"

constexpr int64_t MOST = 256;  // nodes that may reach one place

// M = Σ w p pᵀ, its lower and upper half.
inline void fit_moments(const double P[][4], const double *w, int64_t count, double M[4][4]) {
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) M[i][j] = 0.0;
    for (int64_t c = 0; c < count; ++c)
        for (int i = 0; i < 4; ++i)
            for (int j = 0; j <= i; ++j) M[i][j] += w[c] * P[c][i] * P[c][j];
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < i; ++j) M[j][i] = M[i][j];
}

// M = L Lᵀ, both 4 × 4; only the lower half of L is set.
inline void fit_factor(const double M[4][4], double L[4][4]) {
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j <= i; ++j) {
            double total = M[i][j];
            for (int k = 0; k < j; ++k) total -= L[i][k] * L[j][k];
            L[i][j] = i == j ? std::sqrt(total) : total / L[j][j];
        }
}

// x with L Lᵀ x = b.
inline void fit_solve(const double L[4][4], const double *b, double *x) {
    for (int i = 0; i < 4; ++i) {
        double total = b[i];
        for (int k = 0; k < i; ++k) total -= L[i][k] * x[k];
        x[i] = total / L[i][i];
    }
    for (int i = 3; i >= 0; --i) {
        double total = x[i];
        for (int k = i + 1; k < 4; ++k) total -= L[k][i] * x[k];
        x[i] = total / L[i][i];
    }
}
