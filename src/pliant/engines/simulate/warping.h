// Stresses at quadrature points and their sums at nodes, in single and double precision; the equations are in
// warping.py. Rows of three are read and summed as four numbers; the fourth is ignored.
#pragma once

#include <algorithm>
#include <vector>

#include "native/four.h"
#include "native/team.h"

// Rows: first the quadrature points, then the springs that hold the body to its bones.
template <class Real>
struct Flesh {
    In<int64_t, 1> start;   // (rows + 1,)
    In<int32_t, 1> node;    // (nnz,)
    In<Real, 2> gradient;   // (nnz, 3) ∇φ_I
    In<Real, 1> lam, mu;    // (rows,) Lamé's constants times the weights; λ for the row's own dilatation
    In<Real, 1> shared;     // (rows,) what λ has beyond that, for the mean dilatation of a cell
    In<int64_t, 1> cell;    // (cells + 1,) first row of each cell, over which the dilatation is averaged; springs are one each
    In<Real, 1> sliding;    // (rows,) share of the shear along a layer that has no stress; (0,) if it is 0 everywhere
    In<Real, 2> normal;     // (rows, 3) of these layers at rest
    int64_t count, nodes;   // quadrature points, nodes
    using Fields = Types<In<int64_t, 1>, In<int32_t, 1>, In<Real, 2>, In<Real, 1>, In<Real, 1>, In<Real, 1>,
                         In<int64_t, 1>, In<Real, 1>, In<Real, 2>, int64_t, int64_t>;
    int64_t points() const { return count; }
    int64_t rows() const { return start.shape[0] - 1; }
    int64_t cells() const { return cell.shape[0] - 1; }
};

template <class Real>
struct Rows3 {
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

// (n, 3) as (n, 4)
template <class Real>
void widen(const In<Real, 2> &x, std::vector<Four<Real>> &wide) {
    wide.assign(size_t(x.shape[0]), Four<Real>{});
    for (int64_t i = 0; i < x.shape[0]; ++i)
        for (int k = 0; k < 3; ++k) wide[i].v[k] = x(i, k);
}

// Row i of a table of three.
template <class Real>
inline void store(const Four<Real> &four, const Out<Real, 2> &table, int64_t i) {
    for (int k = 0; k < 3; ++k) table(i, k) = four.v[k];
}

// S = Rᵀ F at a row, F = Σ_I x_I g_Iᵀ.
template <class Real>
inline void turned_back(const Flesh<Real> &flesh, const Four<Real> *x, const Real *R, int64_t q, Rows3<Real> &S) {
    Rows3<Real> F = {};
    Real spare[4] = {};
    const int64_t end = flesh.start(q + 1);
    for (int64_t k = flesh.start(q); k < end; ++k) {
        const Four<Real> &at = x[flesh.node(k)];
        Four<Real> g;
        g.load(four(flesh.gradient, k, spare));
        for (int i = 0; i < 3; ++i) F.row[i].v += at.v[i] * g.v;
    }
    for (int i = 0; i < 3; ++i) S.row[i].v = R[i] * F.row[0].v + R[3 + i] * F.row[1].v + R[6 + i] * F.row[2].v;
}

// sym(S): xx, yy, zz, yz, xz, xy.
template <class Real>
inline void symmetric(const Rows3<Real> &S, Real *strain) {
    const Real half = Real(0.5);
    for (int i = 0; i < 3; ++i) strain[i] = S.row[i].v[i];
    strain[3] = half * (S.row[1].v[2] + S.row[2].v[1]);
    strain[4] = half * (S.row[0].v[2] + S.row[2].v[0]);
    strain[5] = half * (S.row[0].v[1] + S.row[1].v[0]);
}

// P = R (2μ ε + bulk 1) for a strain ε, by columns.
template <class Real>
inline void stress(const Real *R, double bulk, Real mu, const Real *strain, Rows3<Real> &P) {
    const double twice = 2 * double(mu);
    const double xx = twice * strain[0] + bulk, yy = twice * strain[1] + bulk, zz = twice * strain[2] + bulk;
    const double yz = twice * strain[3], xz = twice * strain[4], xy = twice * strain[5];
    using Double = Four<double>::Lanes;
    using Lanes = typename Four<Real>::Lanes;
    const Double a = {double(R[0]), double(R[3]), double(R[6])}, b = {double(R[1]), double(R[4]), double(R[7])};
    const Double c = {double(R[2]), double(R[5]), double(R[8])};
    P.row[0].v = __builtin_convertvector(a * xx + b * xy + c * xz, Lanes);
    P.row[1].v = __builtin_convertvector(a * xy + b * yy + c * yz, Lanes);
    P.row[2].v = __builtin_convertvector(a * xz + b * yz + c * zz, Lanes);
}

// ε - f (s nᵀ + n sᵀ), s = (1 - n nᵀ) ε n: without a share f of the shear along a layer of normal n.
template <class Real>
inline void slide(const Flesh<Real> &flesh, int64_t q, Real *strain) {
    if (flesh.sliding.shape[0] == 0 || flesh.sliding(q) == 0) return;
    const Real f = flesh.sliding(q), *n = &flesh.normal(q, 0);
    Real s[3] = {strain[0] * n[0] + strain[5] * n[1] + strain[4] * n[2],
                 strain[5] * n[0] + strain[1] * n[1] + strain[3] * n[2],
                 strain[4] * n[0] + strain[3] * n[1] + strain[2] * n[2]};
    const Real across = s[0] * n[0] + s[1] * n[1] + s[2] * n[2];
    for (int k = 0; k < 3; ++k) s[k] -= across * n[k];
    for (int k = 0; k < 3; ++k) strain[k] -= 2 * f * s[k] * n[k];
    strain[3] -= f * (s[1] * n[2] + s[2] * n[1]);
    strain[4] -= f * (s[0] * n[2] + s[2] * n[0]);
    strain[5] -= f * (s[0] * n[1] + s[1] * n[0]);
}

// Stresses P at the rows of a cell, the first at P[0]; measure(q, strain) gives the strain ε (6,) of a row.
template <class Real, class Measure>
inline void cell_stresses(const Flesh<Real> &flesh, const In<Real, 2> &R, int64_t cell, const Measure &measure,
                          Rows3<Real> *P) {
    const int64_t begin = flesh.cell(cell), end = flesh.cell(cell + 1);
    if (end - begin == 1) {
        Real strain[6];
        measure(begin, strain);
        slide(flesh, begin, strain);
        const double own = strain[0] + strain[1] + strain[2];
        return stress(&R(begin, 0), (flesh.lam(begin) + flesh.shared(begin)) * own, flesh.mu(begin), strain, P[0]);
    }
    double bulk = 0.0, total = 0.0;
    for (int64_t q = begin; q < end; ++q) {
        Real strain[6];
        measure(q, strain);
        slide(flesh, q, strain);
        for (int k = 0; k < 6; ++k) P[q - begin].row[k / 3].v[k % 3] = strain[k];  // kept where the stress will be
        bulk += flesh.shared(q) * double(strain[0] + strain[1] + strain[2]), total += flesh.shared(q);
    }
    const double dilatation = total > 0 ? bulk / total : 0.0;
    for (int64_t q = begin; q < end; ++q) {
        Real strain[6];
        for (int k = 0; k < 6; ++k) strain[k] = P[q - begin].row[k / 3].v[k % 3];
        const double own = strain[0] + strain[1] + strain[2];
        stress(&R(q, 0), flesh.lam(q) * own + flesh.shared(q) * dilatation, flesh.mu(q), strain, P[q - begin]);
    }
}

// sum_I += P g_I for the stress P of a row, by columns.
template <class Real>
inline void scatter(const Flesh<Real> &flesh, const Rows3<Real> &P, int64_t q, Four<Real> *sum) {
    const int64_t end = flesh.start(q + 1);
    for (int64_t k = flesh.start(q); k < end; ++k) {
        const Real *g = &flesh.gradient(k, 0);
        sum[flesh.node(k)].v += P.row[0].v * g[0] + P.row[1].v * g[1] + P.row[2].v * g[2];
    }
}

// The same of a spring without a rest length, whose gradients have one entry; its rotation cancels.
template <class Real>
inline void scatter_spring(const Flesh<Real> &flesh, const Four<Real> *x, int64_t q, Four<Real> *sum) {
    Four<Real> F = {};
    const int64_t end = flesh.start(q + 1);
    for (int64_t k = flesh.start(q); k < end; ++k) F.v += flesh.gradient(k, 0) * x[flesh.node(k)].v;
    F.v *= flesh.mu(q);
    for (int64_t k = flesh.start(q); k < end; ++k) sum[flesh.node(k)].v += flesh.gradient(k, 0) * F.v;
}

constexpr int64_t POINTS = 256, NODES = 128;  // that are worth a thread
constexpr int64_t PART = 100000, PARTS = 16;  // entries that are worth a sum of their own, and how many there are at most

// sums (nodes,) = what work(begin, end, sum) adds for spans of 0 to `count`. The spans have sums of their own, which are
// added in order, and depend on the body alone: so does the result, whatever the number of threads.
template <class Real, class Work>
void scattered(Team &team, const Flesh<Real> &flesh, int64_t count, std::vector<Four<Real>> &sums, const Work &work) {
    const int64_t parts = std::min(PARTS, flesh.node.shape[0] / PART + 1), nodes = flesh.nodes;
    sums.assign(size_t(parts * nodes), Four<Real>{});
    team.share(parts, 1, [&](int64_t first, int64_t last) {
        for (int64_t k = first; k < last; ++k) work(count * k / parts, count * (k + 1) / parts, &sums[size_t(k * nodes)]);
    });
    team.share(parts > 1 ? nodes : 0, NODES, [&](int64_t begin, int64_t end) {
        for (int64_t k = 1; k < parts; ++k)
            for (int64_t i = begin; i < end; ++i) sums[size_t(i)].v += sums[size_t(k * nodes + i)].v;
    });
}

// The stresses of some cells, added to `sum`.
template <class Real, class Measure>
void scatter_cells(const Flesh<Real> &flesh, const In<Real, 2> &R, int64_t begin, int64_t end, const Measure &measure,
                   Four<Real> *sum) {
    std::vector<Rows3<Real>> P;
    for (int64_t c = begin; c < end; ++c) {
        const int64_t first = flesh.cell(c), rows = flesh.cell(c + 1) - first;
        if (int64_t(P.size()) < rows) P.resize(size_t(rows));
        cell_stresses(flesh, R, c, measure, P.data());
        for (int64_t k = 0; k < rows; ++k) scatter(flesh, P[size_t(k)], first + k, sum);
    }
}

// out = scale · K' x + mass x at the free nodes, as many as there are masses; sums is scratch memory.
template <class Real>
void product(Team &team, const Flesh<Real> &flesh, const Four<Real> *x, const In<Real, 2> &R, Real scale,
             const In<Real, 1> &mass, std::vector<Four<Real>> &sums, Four<Real> *out) {
    const auto measure = [&](int64_t q, Real *strain) {
        Rows3<Real> S;
        turned_back(flesh, x, &R(q, 0), q, S);
        symmetric(S, strain);
    };
    const int64_t inner = flesh.cells() - (flesh.rows() - flesh.points());  // a spring is a cell of its own
    scattered(team, flesh, flesh.cells(), sums, [&](int64_t begin, int64_t end, Four<Real> *sum) {
        scatter_cells(flesh, R, begin, std::min(end, inner), measure, sum);
        for (int64_t c = std::max(begin, inner); c < end; ++c) scatter_spring(flesh, x, flesh.cell(c), sum);
    });
    team.share(mass.shape[0], NODES, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out[i].v = scale * sums[size_t(i)].v + mass(i) * x[i].v;
    });
}
