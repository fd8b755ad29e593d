// Strain limits: energies, stresses and second derivatives of stretches beyond a range; the equations are in
// strain_limits.py.
#include "engines/simulate/strain_limits.h"
#include "native/mat3.h"

namespace {

constexpr double KNEE = 0.8;  // share of the way from onset to wall where the barrier goes on as a parabola
constexpr double LOW_STIFFNESS = 20.0;  // stiffness of the lower barrier over that of the upper one
constexpr double THIRD_TURN = 2.0943951023931953;
constexpr int PAIRS[3][2] = {{1, 2}, {0, 2}, {0, 1}};

// The range of one point: free of energy between low_onset and onset.
struct Range {
    double low_wall, low_onset, onset, wall;
};

// A value with its first and second derivatives.
struct Curve {
    double value = 0.0, slope = 0.0, bend = 0.0;
};

// b(u) = -u² log(1 - u), beyond KNEE its parabola.
Curve barrier(double u) {
    if (u <= 0) return {};
    const double at = std::min(u, KNEE), log = std::log1p(-at), ratio = at / (1 - at), beyond = u - at;
    const double value = -at * at * log, slope = at * (ratio - 2 * log), bend = -2 * log + 4 * ratio + ratio * ratio;
    return {value + beyond * (slope + 0.5 * beyond * bend), slope + beyond * bend, bend};
}

// φ of one stretch.
Curve potential(double stretch, const Range &range) {
    const double up = 1 / (range.wall - range.onset), down = 1 / (range.low_onset - range.low_wall);
    if (stretch > range.onset) {
        const Curve b = barrier((stretch - range.onset) * up);
        return {b.value, b.slope * up, b.bend * up * up};
    }
    const Curve b = barrier((range.low_onset - stretch) * down);
    return {LOW_STIFFNESS * b.value, -LOW_STIFFNESS * b.slope * down, LOW_STIFFNESS * b.bend * down * down};
}

double determinant(const double *F) {
    return F[0] * (F[4] * F[8] - F[5] * F[7]) - F[1] * (F[3] * F[8] - F[5] * F[6]) + F[2] * (F[3] * F[7] - F[4] * F[6]);
}

// C = FᵀF: xx, yy, zz, yz, xz, xy.
void right_cauchy(const double *F, double *C) {
    for (int k = 0; k < 3; ++k) C[k] = F[k] * F[k] + F[3 + k] * F[3 + k] + F[6 + k] * F[6 + k];
    for (int k = 0; k < 3; ++k) {
        const int i = PAIRS[k][0], j = PAIRS[k][1];
        C[3 + k] = F[i] * F[j] + F[3 + i] * F[3 + j] + F[6 + i] * F[6 + j];
    }
}

// Whether sign · (C - shift 1) is positive definite.
bool definite(const double *C, double shift, double sign) {
    const double a = sign * (C[0] - shift), b = sign * (C[1] - shift), c = sign * (C[2] - shift);
    const double yz = sign * C[3], xz = sign * C[4], xy = sign * C[5], minor = a * b - xy * xy;
    return a > 0 && minor > 0 && a * (b * c - yz * yz) - xy * (xy * c - yz * xz) + xz * (xy * yz - b * xz) > 0;
}

// Whether all stretches of F are between low and high, and F is not inverted.
bool within(const double *F, double low, double high) {
    if (!(determinant(F) > 0)) return false;
    double C[6];
    right_cauchy(F, C);
    return definite(C, low * low, 1.0) && definite(C, high * high, -1.0);
}

// F = U diag(sigma) Vᵀ with rotations U and V, sigma descending; the last is negative where F is inverted.
struct Stretches {
    double U[3][3], V[3][3], sigma[3];

    explicit Stretches(const double *F) {
        double C[6], W[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
        right_cauchy(F, C);
        double A[3][3] = {{C[0], C[5], C[4]}, {C[5], C[1], C[3]}, {C[4], C[3], C[2]}};
        const double size = C[0] + C[1] + C[2];
        for (int sweep = 0; sweep < 10; ++sweep) {
            if (std::abs(A[0][1]) + std::abs(A[0][2]) + std::abs(A[1][2]) <= 1e-15 * size) break;
            for (const auto &pair : PAIRS) jacobi(A, W, pair[0], pair[1]);
        }
        int order[3] = {0, 1, 2};
        std::sort(order, order + 3, [&](int a, int b) { return A[a][a] > A[b][b]; });
        for (int k = 0; k < 2; ++k)
            for (int i = 0; i < 3; ++i) V[i][k] = W[i][order[k]];
        cross(V);
        double columns[3][3];
        for (int k = 0; k < 3; ++k)
            for (int i = 0; i < 3; ++i) columns[i][k] = F[3 * i] * V[0][k] + F[3 * i + 1] * V[1][k] + F[3 * i + 2] * V[2][k];
        orthonormal(columns);
        for (int k = 0; k < 3; ++k) {
            sigma[k] = 0;
            for (int i = 0; i < 3; ++i) sigma[k] += U[i][k] * columns[i][k];
        }
    }

   private:
    // The last column as the cross product of the others.
    static void cross(double (*M)[3]) {
        M[0][2] = M[1][0] * M[2][1] - M[2][0] * M[1][1];
        M[1][2] = M[2][0] * M[0][1] - M[0][0] * M[2][1];
        M[2][2] = M[0][0] * M[1][1] - M[1][0] * M[0][1];
    }

    // U from columns F v, which are orthogonal, also where some of them vanish.
    void orthonormal(const double (*columns)[3]) {
        for (int k = 0; k < 2; ++k) {
            double u[3] = {columns[0][k], columns[1][k], columns[2][k]};
            const double before = std::sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
            if (k == 1) project(u);
            double length = std::sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
            if (!(length > 1e-8 * before) || !(length > 1e-150)) {  // any direction will do
                const int least = k == 0 ? 0 : smallest();
                for (int i = 0; i < 3; ++i) u[i] = i == least ? 1.0 : 0.0;
                if (k == 1) project(u);
                length = std::sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
            }
            for (int i = 0; i < 3; ++i) U[i][k] = u[i] / length;
        }
        cross(U);
    }

    void project(double *u) const {
        const double along = U[0][0] * u[0] + U[1][0] * u[1] + U[2][0] * u[2];
        for (int i = 0; i < 3; ++i) u[i] -= along * U[i][0];
    }

    int smallest() const {
        int least = 0;
        for (int i = 1; i < 3; ++i)
            if (std::abs(U[i][0]) < std::abs(U[least][0])) least = i;
        return least;
    }
};

// Ranges of points: `walls` times the stretches that bones impose at each.
struct Ranges {
    In<double, 2> imposed;  // (q, 2) smallest and largest
    In<double, 1> walls;    // (4,) low wall, low onset, onset, wall
    using Fields = Types<In<double, 2>, In<double, 1>>;
    Range at(int64_t q) const {
        const double low = imposed(q, 0), high = imposed(q, 1);
        return {low * walls(0), low * walls(1), high * walls(2), high * walls(3)};
    }
};

// out = U M Vᵀ
template <class Real>
void rotated_back(const Real *U, const Real *V, const Real (*M)[3], Real (*out)[3]) {
    Real UM[3][3];
    for (int i = 0; i < 3; ++i)
        for (int k = 0; k < 3; ++k) UM[i][k] = U[3 * i] * M[0][k] + U[3 * i + 1] * M[1][k] + U[3 * i + 2] * M[2][k];
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) out[i][j] = UM[i][0] * V[3 * j] + UM[i][1] * V[3 * j + 1] + UM[i][2] * V[3 * j + 2];
}

// (q, 9) F by rows.
void gradients(Flesh<double> flesh, In<double, 2> x, Out<double, 2> F, int64_t threads) {
    Team team(threads);
    std::vector<Four<double>> wide;
    widen(x, wide);
    const double same[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    team.share(flesh.points(), POINTS, [&](int64_t begin, int64_t end) {
        for (int64_t q = begin; q < end; ++q) {
            Rows3<double> rows;
            turned_back(flesh, wide.data(), same, q, rows);
            for (int i = 0; i < 3; ++i)
                for (int j = 0; j < 3; ++j) F(q, 3 * i + j) = rows.row[i].v[j];
        }
    });
}

// How many points have left their range.
int64_t outside(In<double, 2> F, Ranges ranges) {
    int64_t count = 0;
    for (int64_t q = 0; q < F.shape[0]; ++q) {
        const Range range = ranges.at(q);
        count += !within(&F(q, 0), range.low_onset, range.onset);
    }
    return count;
}

// (q, 3) stretches, descending; the last is negative where F is inverted. The roots of the characteristic polynomial of
// C by their angle (Smith 1961), in a tenth of the time of `Stretches`; where two are equal, to half of the digits.
void stretches(In<double, 2> F, Out<double, 2> sigma) {
    for (int64_t q = 0; q < F.shape[0]; ++q) {
        double C[6];
        right_cauchy(&F(q, 0), C);
        const double mean = (C[0] + C[1] + C[2]) / 3, yz = C[3], xz = C[4], xy = C[5];
        const double a = C[0] - mean, b = C[1] - mean, c = C[2] - mean;
        const double size = std::sqrt((a * a + b * b + c * c + 2 * (yz * yz + xz * xz + xy * xy)) / 6);
        const double det = a * (b * c - yz * yz) - xy * (xy * c - yz * xz) + xz * (xy * yz - b * xz);
        const double cosine = size > 0 ? det / (2 * size * size * size) : 0.0;
        const double angle = std::acos(std::max(-1.0, std::min(1.0, cosine))) / 3;
        const double first = mean + 2 * size * std::cos(angle), last = mean + 2 * size * std::cos(angle + THIRD_TURN);
        sigma(q, 0) = std::sqrt(first);
        sigma(q, 1) = std::sqrt(std::max(3 * mean - first - last, 0.0));
        sigma(q, 2) = std::copysign(std::sqrt(std::max(last, 0.0)), determinant(&F(q, 0)));
    }
}

// (q,) energies and (q, 9) stresses ∂/∂F, both for a stiffness (q,).
void stresses(In<double, 2> F, Ranges ranges, In<double, 1> stiffness, Out<double, 1> energy, Out<double, 2> P,
              int64_t threads) {
    Team team(threads);
    team.share(F.shape[0], POINTS, [&](int64_t begin, int64_t end) {
        for (int64_t q = begin; q < end; ++q) {
            const Range range = ranges.at(q);
            energy(q) = 0;
            std::fill_n(&P(q, 0), 9, 0.0);
            if (within(&F(q, 0), range.low_onset, range.onset)) continue;
            const Stretches found(&F(q, 0));
            double M[3][3] = {}, out[3][3];
            for (int k = 0; k < 3; ++k) {
                const Curve phi = potential(found.sigma[k], range);
                energy(q) += stiffness(q) * phi.value, M[k][k] = stiffness(q) * phi.slope;
            }
            rotated_back(&found.U[0][0], &found.V[0][0], M, out);
            std::copy_n(&out[0][0], 9, &P(q, 0));
        }
    });
}

// (a, 27) the second derivatives at active points, without their negative eigenvalues: see `ActiveLimits`.
void curvatures(In<double, 2> F, Ranges ranges, In<double, 1> stiffness, In<int32_t, 1> active, Out<float, 2> frames) {
    for (int64_t a = 0; a < active.shape[0]; ++a) {
        const int64_t q = active(a);
        const Range range = ranges.at(q);
        const Stretches found(&F(q, 0));
        Curve phi[3];
        for (int k = 0; k < 3; ++k) phi[k] = potential(found.sigma[k], range);
        for (int k = 0; k < 9; ++k)
            frames(a, k) = float(found.U[k / 3][k % 3]), frames(a, 9 + k) = float(found.V[k / 3][k % 3]);
        for (int k = 0; k < 3; ++k) {
            const int i = PAIRS[k][0], j = PAIRS[k][1];
            const double sum = found.sigma[i] + found.sigma[j], apart = found.sigma[i] - found.sigma[j];
            const double twist = (phi[i].slope + phi[j].slope) / std::max(sum, 1e-3);
            const double flip =
                apart > 1e-6 ? (phi[i].slope - phi[j].slope) / apart : 0.5 * (phi[i].bend + phi[j].bend);
            frames(a, 18 + k) = float(stiffness(q) * phi[k].bend);
            frames(a, 21 + k) = float(stiffness(q) * std::max(twist, 0.0));
            frames(a, 24 + k) = float(stiffness(q) * std::max(flip, 0.0));
        }
    }
}

// (free, 3) Σ_q P g_I for stresses (q, 9).
void forces(Flesh<double> flesh, In<double, 2> P, Out<double, 2> out, int64_t threads) {
    Team team(threads);
    std::vector<Four<double>> sums;
    scattered(team, flesh, P.shape[0], sums, [&](int64_t begin, int64_t end, Four<double> *sum) {
        for (int64_t q = begin; q < end; ++q) {
            Rows3<double> columns = {};
            bool any = false;
            for (int k = 0; k < 9; ++k) columns.row[k % 3].v[k / 3] = P(q, k), any |= P(q, k) != 0;
            if (any) scatter(flesh, columns, q, sum);
        }
    });
    for (int64_t i = 0; i < out.shape[0]; ++i) store(sums[size_t(i)], out, i);
}

// P = H : dF, by columns.
void apply(const float *frame, const Rows3<float> &dF, Rows3<float> &P) {
    const float *U = frame, *V = frame + 9, *stretch = frame + 18, *twist = frame + 21, *flip = frame + 24;
    float half[3][3], M[3][3], out[3][3];
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) half[i][j] = U[i] * dF.row[0].v[j] + U[3 + i] * dF.row[1].v[j] + U[6 + i] * dF.row[2].v[j];
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) M[i][j] = half[i][0] * V[j] + half[i][1] * V[3 + j] + half[i][2] * V[6 + j];
    for (int k = 0; k < 3; ++k) {
        const int i = PAIRS[k][0], j = PAIRS[k][1];
        const float even = 0.5f * flip[k] * (M[i][j] + M[j][i]), odd = 0.5f * twist[k] * (M[i][j] - M[j][i]);
        M[k][k] *= stretch[k];
        M[i][j] = even + odd, M[j][i] = even - odd;
    }
    rotated_back(U, V, M, out);
    for (int j = 0; j < 3; ++j)
        for (int i = 0; i < 3; ++i) P.row[j].v[i] = out[i][j];
}

}  // namespace

EXPORT(limits_gradients, gradients)
EXPORT(limits_outside, outside)
EXPORT(limits_stretches, stretches)
EXPORT(limits_stresses, stresses)
EXPORT(limits_curvatures, curvatures)
EXPORT(limits_forces, forces)

void add_limits(Team &team, const Flesh<float> &flesh, const ActiveLimits &limits, const Four<float> *x, int64_t free,
                std::vector<Four<float>> &sums, Four<float> *out) {
    const int64_t active = limits.active.shape[0];
    if (active == 0) return;
    const float same[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    scattered(team, flesh, active, sums, [&](int64_t begin, int64_t end, Four<float> *sum) {
        for (int64_t a = begin; a < end; ++a) {
            Rows3<float> dF, P = {};
            turned_back(flesh, x, same, limits.active(a), dF);
            apply(&limits.frames(a, 0), dF, P);
            scatter(flesh, P, limits.active(a), sum);
        }
    });
    for (int64_t i = 0; i < free; ++i) out[i].v += sums[size_t(i)].v;
}
