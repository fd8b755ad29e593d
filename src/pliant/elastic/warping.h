// Stresses at quadrature points and their sums at nodes, in single or double precision; the equations are in warping.py.
//
// Rows of three are read and summed as four numbers, the last of which means nothing: that is what processors are quick at.
#pragma once

#include <algorithm>
#include <vector>

#include "native/team.h"

template <class Real>
struct Flesh {
    In<int64_t, 1> start;   // (q + 1,) rows of the points
    In<int32_t, 1> node;    // (nnz,)
    In<Real, 2> gradient;   // (nnz, 3) ∇φ_I
    In<int64_t, 1> first;   // (n + 1,) rows of the nodes
    In<int32_t, 1> point;   // (nnz,)
    In<Real, 2> listed;     // (nnz, 3) the gradients in the nodes' lists
    In<Real, 1> lam, mu;    // (q,) Lamé's constants times the weights
    using Fields = Types<In<int64_t, 1>, In<int32_t, 1>, In<Real, 2>, In<int64_t, 1>, In<int32_t, 1>, In<Real, 2>,
                         In<Real, 1>, In<Real, 1>>;
    int64_t points() const { return start.shape[0] - 1; }
};

template <class Real>
struct Four {
    Real v[4];
};

template <class Real>
struct Matrix {
    Four<Real> row[3];
};

// Row k of three, as four numbers in a row: with the beginning of the next one, or from `spare` where there is none.
template <class Real>
inline const Real *four(const In<Real, 2> &rows, int64_t k, Real *spare) {
    const Real *row = &rows(k, 0);
    if (k + 1 < rows.shape[0]) return row;
    for (int i = 0; i < 3; ++i) spare[i] = row[i];
    return spare;
}

// sum += s a
template <class Real>
inline void add(Four<Real> &sum, Real s, const Real *a) {
    for (int k = 0; k < 4; ++k) sum.v[k] += s * a[k];
}

// (n, 3) as (n, 4)
template <class Real>
void widen(const In<Real, 2> &x, std::vector<Four<Real>> &wide) {
    wide.resize(size_t(x.shape[0]));
    for (int64_t i = 0; i < x.shape[0]; ++i) wide[i] = {{x(i, 0), x(i, 1), x(i, 2), Real(0)}};
}

// S = Rᵀ F at a quadrature point, F = Σ_I x_I g_Iᵀ.
template <class Real>
inline Matrix<Real> turned_back(const Flesh<Real> &flesh, const Four<Real> *x, const Real *R, int64_t q) {
    Matrix<Real> F = {}, S;
    Real spare[4] = {};
    const int64_t end = flesh.start(q + 1);
    for (int64_t k = flesh.start(q); k < end; ++k) {
        const Real *g = four(flesh.gradient, k, spare), *at = x[flesh.node(k)].v;
        for (int i = 0; i < 3; ++i) add(F.row[i], at[i], g);
    }
    for (int i = 0; i < 3; ++i)
        for (int k = 0; k < 4; ++k)
            S.row[i].v[k] = R[i] * F.row[0].v[k] + R[3 + i] * F.row[1].v[k] + R[6 + i] * F.row[2].v[k];
    return S;
}

// sym(S): xx, yy, zz, yz, xz, xy.
template <class Real>
inline void symmetric(const Matrix<Real> &S, Real *strain) {
    const Real half = Real(0.5);
    for (int i = 0; i < 3; ++i) strain[i] = S.row[i].v[i];
    strain[3] = half * (S.row[1].v[2] + S.row[2].v[1]);
    strain[4] = half * (S.row[0].v[2] + S.row[2].v[0]);
    strain[5] = half * (S.row[0].v[1] + S.row[1].v[0]);
}

// P = R (2μ ε + λ tr(ε) 1) for a strain ε, by columns.
template <class Real>
inline void stress(const Real *R, Real lam, Real mu, const Real *strain, Matrix<Real> &P) {
    const double bulk = lam * (strain[0] + strain[1] + strain[2]), twice = 2 * double(mu);
    const double xx = twice * strain[0] + bulk, yy = twice * strain[1] + bulk, zz = twice * strain[2] + bulk;
    const double yz = twice * strain[3], xz = twice * strain[4], xy = twice * strain[5];
    const double C[3][3] = {{xx, xy, xz}, {xy, yy, yz}, {xz, yz, zz}};
    for (int k = 0; k < 3; ++k) {
        for (int i = 0; i < 3; ++i)
            P.row[k].v[i] = Real(R[3 * i] * C[0][k] + R[3 * i + 1] * C[1][k] + R[3 * i + 2] * C[2][k]);
        P.row[k].v[3] = Real(0);
    }
}

// Σ_q P_q g_I at a node, of stresses by columns.
template <class Real>
inline Four<Real> gathered(const Flesh<Real> &flesh, const Matrix<Real> *P, int64_t i) {
    Four<Real> y = {};
    const int64_t end = flesh.first(i + 1);
    for (int64_t k = flesh.first(i); k < end; ++k) {
        const Matrix<Real> &at = P[flesh.point(k)];
        const Real *g = &flesh.listed(k, 0);
        for (int j = 0; j < 4; ++j) y.v[j] += at.row[0].v[j] * g[0] + at.row[1].v[j] * g[1] + at.row[2].v[j] * g[2];
    }
    return y;
}

constexpr int64_t POINTS = 256, NODES = 128;  // that are worth a thread

// out = scale · K' x + mass x at the free nodes, as many as there are masses; P (q,) is room.
template <class Real>
void product(Team &team, const Flesh<Real> &flesh, const Four<Real> *x, const In<Real, 2> &R, Real scale,
             const In<Real, 1> &mass, std::vector<Matrix<Real>> &P, Four<Real> *out) {
    P.resize(size_t(flesh.points()));
    team.share(flesh.points(), POINTS, [&](int64_t begin, int64_t end) {
        for (int64_t q = begin; q < end; ++q) {
            Real strain[6];
            symmetric(turned_back(flesh, x, &R(q, 0), q), strain);
            stress(&R(q, 0), flesh.lam(q), flesh.mu(q), strain, P[q]);
        }
    });
    team.share(mass.shape[0], NODES, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const Four<Real> y = gathered(flesh, P.data(), i);
            for (int k = 0; k < 3; ++k) out[i].v[k] = scale * y.v[k] + mass(i) * x[i].v[k];
            out[i].v[3] = Real(0);
        }
    });
}
