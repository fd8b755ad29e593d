// Gaussian splats that follow a deformation; the equations are in splats.py.
#include <algorithm>
#include <cstring>

#include "native/mat3.h"

namespace {

constexpr double FLAT_VARIANCE = 1e-30;        // least variance of a splat, when it is flattened
constexpr double COVARIANCE_ROUNDING = 1e-12;  // covariance over the total variance that would only rotate a round splat
constexpr int NEWTON_STEPS = 10, SWEEPS = 12, BLOCK = 64;
constexpr int FIRST[4] = {0, 3, 8, 15};  // of the harmonics of a degree
constexpr int ORDERS[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

typedef double V __attribute__((vector_size(32)));  // a number of each of four splats, the lanes
typedef int64_t Mask __attribute__((vector_size(32)));
constexpr int LANES = 4;

struct Lanes3 {
    V m[3][3];

    V *operator[](int row) { return m[row]; }
    const V *operator[](int row) const { return m[row]; }
};

inline V all(double a) { return V{a, a, a, a}; }
inline V magnitude(V a) { return a < 0 ? -a : a; }
inline bool any(Mask a) { return (a[0] | a[1] | a[2] | a[3]) != 0; }
inline V root(V a) {
    for (int k = 0; k < LANES; ++k) a[k] = std::sqrt(a[k]);
    return a;
}

inline Lanes3 product(const Lanes3 &a, const Lanes3 &b) {
    Lanes3 c;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) c[i][j] = a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j];
    return c;
}

inline Lanes3 transposed(const Lanes3 &a) {
    Lanes3 b;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) b[i][j] = a[j][i];
    return b;
}

inline V determinant(const Lanes3 &a) {
    return a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) + a[0][1] * (a[1][2] * a[2][0] - a[1][0] * a[2][2]) +
           a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
}

// The rotation nearest to J, sought from the frame of its first two columns; from none if they are in one line.
Mat3 rotation_of(const Mat3 &J) {
    Mat3 Q = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
    const Vec3 x = {J[0][0], J[1][0], J[2][0]}, y = {J[0][1], J[1][1], J[2][1]};
    const Vec3 z = cross(x, y);
    if (norm(z) > 1e-12 * norm(x) * norm(y)) {
        const Vec3 a = x / norm(x), c = z / norm(z), b = cross(c, a);
        for (int i = 0; i < 3; ++i) Q[i][0] = a[i], Q[i][1] = b[i], Q[i][2] = c[i];
    }
    nearest_rotation(J, &Q[0][0]);
    return Q;
}

// The same for four, by the steps of `rotation_step`; those that these do not lead to are left to `rotation_of`. A lane
// does not depend on the others: where it is done, it rotates by nothing.
Lanes3 rotation_of(const Lanes3 &J) {
    Lanes3 Q;
    V z[3];
    for (int i = 0; i < 3; ++i) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        z[i] = J[j][0] * J[k][1] - J[k][0] * J[j][1];
    }
    const V xx = J[0][0] * J[0][0] + J[1][0] * J[1][0] + J[2][0] * J[2][0];
    const V yy = J[0][1] * J[0][1] + J[1][1] * J[1][1] + J[2][1] * J[2][1];
    const V zz = z[0] * z[0] + z[1] * z[1] + z[2] * z[2];
    Mask hard = ~(zz > 1e-6 * (xx * yy)) | ~(zz > SMALLEST), busy = ~hard;
    const V x = 1 / root(xx), w = 1 / root(zz);
    for (int i = 0; i < 3; ++i) Q[i][0] = J[i][0] * x, Q[i][2] = z[i] * w;
    for (int i = 0; i < 3; ++i) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        Q[i][1] = Q[j][2] * Q[k][0] - Q[k][2] * Q[j][0];
    }
    for (int step = 0; step < NEWTON_STEPS && any(busy); ++step) {
        const Lanes3 m = product(transposed(Q), J);
        const V trace = m[0][0] + m[1][1] + m[2][2];
        const V a = trace - m[0][0], b = trace - m[1][1], c = trace - m[2][2];
        const V size = magnitude(a) + magnitude(b) + magnitude(c);
        const V g[3] = {m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1]};
        const V ab = -(m[0][1] + m[1][0]) / 2, ac = -(m[0][2] + m[2][0]) / 2, bc = -(m[1][2] + m[2][1]) / 2;
        const V A = b * c - bc * bc, B = ac * bc - ab * c, C = ab * bc - ac * b, minor = a * b - ab * ab;
        const V D = ab * ac - a * bc, determinant = a * A + ab * B + ac * C;
        const Mask convex = (a > 0) & (minor > 1e-6 * (size * size)) & (determinant > 1e-9 * (size * size * size));
        hard |= busy & ~convex, busy &= convex;
        V r[3] = {(A * g[0] + B * g[1] + C * g[2]) / determinant, (B * g[0] + (a * c - ac * ac) * g[1] + D * g[2]) / determinant,
                  (C * g[0] + D * g[1] + minor * g[2]) / determinant};
        const V angle2 = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
        const V scale = angle2 > 1 ? 1 / root(angle2) : all(1);
        for (V &each : r) each = busy ? each * scale : all(0);
        const V p = r[0] / 2, q = r[1] / 2, s = r[2] / 2, n = 2 / (1 + p * p + q * q + s * s);
        const Lanes3 turn = {{{1 - n * (q * q + s * s), n * (p * q - s), n * (p * s + q)},
                              {n * (p * q + s), 1 - n * (p * p + s * s), n * (q * s - p)},
                              {n * (p * s - q), n * (q * s + p), 1 - n * (p * p + q * q)}}};
        Q = product(Q, turn);
        busy &= ~(angle2 < 1e-20);
    }
    hard |= busy;
    for (int k = 0; k < LANES; ++k) {
        if (!hard[k]) continue;
        Mat3 one;
        for (int e = 0; e < 9; ++e) (&one[0][0])[e] = (&J[0][0])[e][k];
        one = rotation_of(one);
        for (int e = 0; e < 9; ++e) (&Q[0][0])[e][k] = (&one[0][0])[e];
    }
    return Q;
}

// Rotates rows and columns i, j of C so that its entry there vanishes, and columns of W with them, in lanes that are busy.
inline void jacobi(Lanes3 &C, Lanes3 &W, int i, int j, Mask busy) {
    busy &= magnitude(C[i][j]) > SMALLEST;
    const V tau = (C[j][j] - C[i][i]) / (2 * C[i][j]);
    const V tangent = (tau < 0 ? all(-1) : all(1)) / (magnitude(tau) + root(1 + tau * tau));
    const V t = busy ? tangent : all(0), c = 1 / root(1 + t * t), s = t * c;
    for (int k = 0; k < 3; ++k) {
        const V a = C[k][i], b = C[k][j];
        C[k][i] = c * a - s * b, C[k][j] = s * a + c * b;
    }
    for (int k = 0; k < 3; ++k) {
        const V a = C[i][k], b = C[j][k];
        C[i][k] = c * a - s * b, C[j][k] = s * a + c * b;
    }
    for (int k = 0; k < 3; ++k) {
        const V a = W[k][i], b = W[k][j];
        W[k][i] = c * a - s * b, W[k][j] = s * a + c * b;
    }
}

// Axes, about the identity, and variances of the covariance C.
Lanes3 principal(Lanes3 C, V *variance) {
    const V total = C[0][0] + C[1][1] + C[2][2];
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            if (i != j) C[i][j] = magnitude(C[i][j]) < COVARIANCE_ROUNDING * total ? all(0) : C[i][j];
    Lanes3 W = {{{all(1), all(0), all(0)}, {all(0), all(1), all(0)}, {all(0), all(0), all(1)}}};
    for (int sweep = 0; sweep < SWEEPS; ++sweep) {
        const V off = magnitude(C[0][1]) + magnitude(C[0][2]) + magnitude(C[1][2]);
        const Mask busy = off > COVARIANCE_ROUNDING * total;
        if (!any(busy)) break;
        jacobi(C, W, 1, 2, busy), jacobi(C, W, 0, 2, busy), jacobi(C, W, 0, 1, busy);
    }
    Lanes3 best = W;
    V most = all(-1);
    for (const auto &order : ORDERS) {
        const V kept = magnitude(W[0][order[0]]) + magnitude(W[1][order[1]]) + magnitude(W[2][order[2]]);
        const Mask better = kept > most;
        most = better ? kept : most;
        for (int k = 0; k < 3; ++k) {
            for (int i = 0; i < 3; ++i) best[i][k] = better ? W[i][order[k]] : best[i][k];
            variance[k] = better ? C[order[k]][order[k]] : variance[k];
        }
    }
    for (int k = 0; k < 3; ++k) {
        const V sign = best[k][k] < 0 ? all(-1) : all(1);
        for (int i = 0; i < 3; ++i) best[i][k] *= sign;
        variance[k] = variance[k] > FLAT_VARIANCE ? variance[k] : all(FLAT_VARIANCE);
    }
    const Mask mirrored = determinant(best) < 0, second = best[1][1] < best[0][0];
    const Mask third = best[2][2] < (second ? best[1][1] : best[0][0]);
    const Mask flipped[3] = {mirrored & ~second & ~third, mirrored & second & ~third, mirrored & third};
    for (int k = 0; k < 3; ++k)
        for (int i = 0; i < 3; ++i) best[i][k] = flipped[k] ? -best[i][k] : best[i][k];
    return best;
}

// (w, x, y, z) with w >= 0.
void quaternion(const Lanes3 &R, V *q) {
    const V trace = R[0][0] + R[1][1] + R[2][2];
    const V square[4] = {1 + trace, 1 + 2 * R[0][0] - trace, 1 + 2 * R[1][1] - trace, 1 + 2 * R[2][2] - trace};
    const V xy = R[1][0] + R[0][1], xz = R[0][2] + R[2][0], yz = R[2][1] + R[1][2];
    const V wx = R[2][1] - R[1][2], wy = R[0][2] - R[2][0], wz = R[1][0] - R[0][1];
    const V rows[4][4] = {
        {square[0], wx, wy, wz}, {wx, square[1], xy, xz}, {wy, xy, square[2], yz}, {wz, xz, yz, square[3]}};
    V largest = square[0];
    for (int c = 0; c < 4; ++c) q[c] = rows[0][c];
    for (int k = 1; k < 4; ++k) {
        const Mask larger = square[k] > largest;
        largest = larger ? square[k] : largest;
        for (int c = 0; c < 4; ++c) q[c] = larger ? rows[k][c] : q[c];
    }
    const V scale = (q[0] < 0 ? all(-0.5) : all(0.5)) / root(largest);
    for (int c = 0; c < 4; ++c) q[c] *= scale;
}

// By columns: J (n, 9), the splats' axes R (9, n) and deviations (3, n) -> rotations Q of J (9, n), the quaternions
// (4, n) and logarithms of deviations (3, n) of J R S² Rᵀ Jᵀ.
void deform(In<double, 2> J, In<double, 2> R, In<double, 2> deviations, Out<double, 2> Q, Out<double, 2> quaternions,
            Out<double, 2> log_deviations, int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += LANES) {
        const int64_t count = std::min<int64_t>(LANES, end - first);
        const size_t bytes = size_t(count) * sizeof(double);
        Lanes3 jacobian, axes = {};
        V s[3] = {}, variance[3] = {}, q[4];
        for (int e = 0; e < 9; ++e) {
            for (int k = 0; k < LANES; ++k) (&jacobian[0][0])[e][k] = J(first + std::min<int64_t>(k, count - 1), e);
            std::memcpy(&axes[0][0] + e, &R(e, first), bytes);
        }
        for (int k = 0; k < 3; ++k) std::memcpy(&s[k], &deviations(k, first), bytes);
        const Lanes3 rotation = rotation_of(jacobian), near = product(rotation, axes);
        Lanes3 M = product(transposed(near), product(jacobian, axes));
        for (int row = 0; row < 3; ++row)
            for (int k = 0; k < 3; ++k) M[row][k] *= s[k];
        quaternion(product(near, principal(product(M, transposed(M)), variance)), q);
        for (int e = 0; e < 9; ++e) std::memcpy(&Q(e, first), &rotation[0][0] + e, bytes);
        for (int k = 0; k < 4; ++k) std::memcpy(&quaternions(k, first), &q[k], bytes);
        for (int k = 0; k < 3; ++k)
            for (int64_t i = 0; i < count; ++i) log_deviations(k, first + i) = 0.5 * std::log(variance[k][i]);
    }
}

// Real spherical harmonics of degrees 1 to 3 at a direction, in 3DGS's order and signs; V: a number, or several at once.
template <class Real, class V>
inline void harmonics_at(V x, V y, V z, int degree, V *Y) {
    constexpr Real A = Real(0.4886025119029199), B = Real(1.0925484305920792);  // √(3/4π), √(15/4π)
    constexpr Real C = Real(0.31539156525252005);                                // √(5/16π)
    constexpr Real D = Real(0.5900435899266435), E = Real(2.890611442640554);    // √(35/32π), √(105/4π)
    constexpr Real F = Real(0.4570457994644658), G = Real(0.3731763325901154);   // √(21/32π), √(7/16π)
    const V xx = x * x, yy = y * y, zz = z * z;
    Y[0] = -A * y, Y[1] = A * z, Y[2] = -A * x;
    if (degree < 2) return;
    Y[3] = B * x * y, Y[4] = -B * y * z, Y[5] = C * (2 * zz - xx - yy), Y[6] = -B * x * z, Y[7] = B / 2 * (xx - yy);
    if (degree < 3) return;
    Y[8] = -D * y * (3 * xx - yy), Y[9] = E * x * y * z, Y[10] = -F * y * (4 * zz - xx - yy);
    Y[11] = G * z * (2 * zz - 3 * xx - 3 * yy), Y[12] = -F * x * (4 * zz - xx - yy), Y[13] = E / 2 * z * (xx - yy);
    Y[14] = -D * x * (xx - 3 * yy);
}

// At directions (n, 3): values (n, 3, 8 or 15).
void harmonics(In<double, 2> directions, int64_t degree, Out<double, 2> values) {
    for (int64_t i = 0; i < directions.shape[0]; ++i)
        harmonics_at<double>(directions(i, 0), directions(i, 1), directions(i, 2), int(degree), &values(i, 0));
}

// Coefficients (3, 3, 8 or 15; n) of three colours, rotated by Q (9, n): a degree's values at the first of `directions`
// (7, 3), rotated back, are those of the rotated function there, and `fitted` (3, 8 or 15; 7) gives its coefficients by them.
template <class Real, int DEGREE>
void rotate_degrees(In<double, 2> Q, In<double, 2> directions, In<double, 2> fitted, In<Real, 3> coefficients,
                    Out<Real, 3> rotated, int64_t begin, int64_t end) {
    typedef Real V __attribute__((vector_size(32)));  // of as many splats
    constexpr int LANES = int(32 / sizeof(Real)), BANDS = FIRST[DEGREE];
    Real d[7][3], fit[BANDS][7];
    for (int m = 0; m < 2 * DEGREE + 1; ++m) {
        for (int e = 0; e < 3; ++e) d[m][e] = Real(directions(m, e));
        for (int j = 0; j < BANDS; ++j) fit[j][m] = Real(fitted(j, m));
    }
    // In blocks of splats: as many runs in memory as coefficients are too many for its caches to follow at once.
    V given[BLOCK / LANES][3][BANDS], found[BLOCK / LANES][3][BANDS];
    for (int64_t begun = begin; begun < end; begun += BLOCK) {
        const int count = int(std::min<int64_t>(BLOCK, end - begun));
        const auto taken = [&](int k) { return k + LANES <= count ? sizeof(V) : size_t(count - k) * sizeof(Real); };
        for (int colour = 0; colour < 3; ++colour)
            for (int j = 0; j < BANDS; ++j)
                for (int k = 0; k < count; k += LANES)
                    std::memcpy(&given[k / LANES][colour][j], &coefficients(colour, j, begun) + k, taken(k));
        for (int group = 0; group * LANES < count; ++group) {
            V R[9] = {}, Y[BANDS];
            for (int e = 0; e < 9; ++e)
                for (int k = group * LANES; k < std::min(count, (group + 1) * LANES); ++k)
                    R[e][k % LANES] = Real((&Q(e, begun))[k]);
            std::memset(found[group], 0, sizeof found[group]);
            for (int m = 0; m < 2 * DEGREE + 1; ++m) {
                V back[3];
                for (int e = 0; e < 3; ++e) back[e] = d[m][0] * R[e] + d[m][1] * R[3 + e] + d[m][2] * R[6 + e];
                harmonics_at<Real>(back[0], back[1], back[2], DEGREE, Y);
                for (int l = std::max(0, (m - 1) / 2); l < DEGREE; ++l)
                    for (int colour = 0; colour < 3; ++colour) {
                        V seen = {};
                        for (int j = FIRST[l]; j < FIRST[l + 1]; ++j) seen += Y[j] * given[group][colour][j];
                        for (int j = FIRST[l]; j < FIRST[l + 1]; ++j) found[group][colour][j] += fit[j][m] * seen;
                    }
            }
        }
        for (int colour = 0; colour < 3; ++colour)
            for (int j = 0; j < BANDS; ++j)
                for (int k = 0; k < count; k += LANES)
                    std::memcpy(&rotated(colour, j, begun) + k, &found[k / LANES][colour][j], taken(k));
    }
}

template <class Real>
void rotate(In<double, 2> Q, In<double, 2> directions, In<double, 2> fitted, In<Real, 3> coefficients,
            Out<Real, 3> rotated, int64_t begin, int64_t end) {
    const int64_t bands = fitted.shape[0];
    const auto degrees = bands > 8 ? rotate_degrees<Real, 3> : bands > 3 ? rotate_degrees<Real, 2> : rotate_degrees<Real, 1>;
    degrees(Q, directions, fitted, coefficients, rotated, begin, end);
}

}  // namespace

EXPORT(splats_deform, deform)
EXPORT(splats_harmonics, harmonics)
EXPORT(splats_rotate_single, rotate<float>)
EXPORT(splats_rotate_double, rotate<double>)
