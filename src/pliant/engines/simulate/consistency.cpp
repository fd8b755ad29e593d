// Sums for consistent gradients; the equations are in consistency.py.
#include <algorithm>

#include "engines/simulate/mls.h"
#include "engines/simulate/stiffness.h"

constexpr double RIDGE = 1e-12;
constexpr double LARGEST = 0.5;  // change of the gradients at a point, over themselves

namespace {

struct Fit {
    int64_t count;
    double P[MOST][4];  // linear basis about the middle of a point's nodes
    double D[MOST];     // their weights |φ|
    double L[4][4];     // the factor of PᵀDP
};

}  // namespace

static void fit_at(int64_t start, int64_t stop, const In<int32_t, 1> &node, const In<double, 1> &phi,
                   const In<double, 2> &local, Fit &fit) {
    double middle[3] = {0.0, 0.0, 0.0}, M[4][4];
    fit.count = std::min<int64_t>(stop - start, MOST);
    for (int64_t e = start; e < stop; ++e)
        for (int axis = 0; axis < 3; ++axis) middle[axis] += local(node(e), axis) / double(stop - start);
    for (int64_t k = 0; k < fit.count; ++k) {
        fit.D[k] = std::abs(phi(start + k));
        fit.P[k][0] = 1.0;
        for (int axis = 0; axis < 3; ++axis) fit.P[k][1 + axis] = local(node(start + k), axis) - middle[axis];
    }
    fit_moments(fit.P, fit.D, fit.count, M);
    for (int i = 0; i < 4; ++i) M[i][i] *= 1 + RIDGE;
    fit_factor(M, fit.L);
}

static double linear(const double *p, const double *x) { return p[0] * x[0] + p[1] * x[1] + p[2] * x[2] + p[3] * x[3]; }

// Where a number stands in a list in order; without branches, since they could not be foreseen.
static int64_t place_of(int32_t number, const int32_t *list, int64_t count) {
    const int32_t *at = list;
    for (int64_t half; count > 1; count -= half) {
        half = count / 2;
        at += at[half - 1] < number ? half : 0;
    }
    return at - list;
}

// Values of Σ_q w_q (D − D P (PᵀDP)⁻¹ PᵀD), which begin as zero, at the pairs of nodes that share a point.
static void fit_matrix(In<int64_t, 1> start, In<int32_t, 1> node, In<int64_t, 1> begin, In<int32_t, 1> column,
                       In<double, 1> phi, In<double, 1> weights, In<double, 2> local, Out<double, 1> values) {
    static thread_local Fit fit;
    double x[4];
    for (int64_t q = 0; q < start.shape[0] - 1; ++q) {
        fit_at(start(q), start(q + 1), node, phi, local, fit);
        for (int64_t i = 0; i < fit.count; ++i) {
            fit_solve(fit.L, fit.P[i], x);
            const int64_t row = node(start(q) + i);
            const int32_t *columns = column.data + begin(row);
            for (int64_t j = 0; j < fit.count; ++j) {
                const double value = (i == j ? fit.D[i] : 0.0) - fit.D[i] * fit.D[j] * linear(fit.P[j], x);
                const int64_t at = place_of(node(start(q) + j), columns, begin(row + 1) - begin(row));
                values(begin(row) + at) += weights(q) * value;
            }
        }
    }
}
EXPORT(consistency_fit_matrix, fit_matrix)

// Adds δ to the gradients, which begin as ∇φ.
static void correct(In<int64_t, 1> start, In<int32_t, 1> node, In<double, 1> phi, In<double, 2> local,
                    In<double, 2> lam, Out<double, 2> gradient, int64_t begin, int64_t end) {
    static thread_local Fit fit;
    static thread_local double change[MOST][3];
    for (int64_t q = begin; q < end; ++q) {
        const int64_t at = start(q);
        fit_at(at, start(q + 1), node, phi, local, fit);
        for (int axis = 0; axis < 3; ++axis) {
            double right[4] = {0.0, 0.0, 0.0, 0.0}, x[4];
            for (int64_t i = 0; i < fit.count; ++i)
                for (int k = 0; k < 4; ++k) right[k] += fit.D[i] * fit.P[i][k] * lam(node(at + i), axis);
            fit_solve(fit.L, right, x);
            for (int64_t i = 0; i < fit.count; ++i)
                change[i][axis] = fit.D[i] * (lam(node(at + i), axis) - linear(fit.P[i], x));
        }
        double size = 0.0, changed = 0.0;
        for (int64_t i = 0; i < fit.count; ++i)
            for (int axis = 0; axis < 3; ++axis) {
                size += gradient(at + i, axis) * gradient(at + i, axis);
                changed += change[i][axis] * change[i][axis];
            }
        const double share = changed <= LARGEST * LARGEST * size ? 1.0 : LARGEST * std::sqrt(size / changed);
        for (int64_t i = 0; i < fit.count; ++i)
            for (int axis = 0; axis < 3; ++axis) gradient(at + i, axis) += share * change[i][axis];
    }
}
EXPORT(consistency_correct, correct)
