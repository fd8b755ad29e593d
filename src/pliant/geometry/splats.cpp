// Gaussian splats that follow a deformation; the equations are in splats.py.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "native/elementary.h"
#include "native/mat3.h"

namespace {

constexpr double FLAT = 1e-15;  // least size of a splat along an axis, over its largest
constexpr int NEWTON_STEPS = 10, SWEEPS = 12;
constexpr int AXES = 4, SIZES = 8;  // columns of a splat: quaternion, relative deviations, logarithm of the largest
constexpr int ORDERS[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

// A number of each of several splats, the lanes: four in double precision, eight in single.
typedef double Doubles __attribute__((vector_size(32)));
typedef float Singles __attribute__((vector_size(32)));
typedef int64_t Mask64 __attribute__((vector_size(32)));

template <class V>
using Real = std::remove_cv_t<std::remove_reference_t<decltype(std::declval<V &>()[0])>>;
template <class V>
constexpr int LANES = int(sizeof(V) / sizeof(Real<V>));
template <class V>
constexpr bool SINGLE = std::is_same_v<Real<V>, float>;

// Below these, single precision has too few digits, and a splat is computed in double precision.
template <class V>
constexpr Real<V> CONVEX = SINGLE<V> ? Real<V>(1e-3) : Real<V>(1e-9);  // of the Hessian's determinant
template <class V>
constexpr Real<V> THIN = SINGLE<V> ? Real<V>(1e-9) : Real<V>(FLAT);  // size along an axis over the largest
// Angles, squared, and cosines that count as nothing.
template <class V>
constexpr Real<V> STILL2 = SINGLE<V> ? Real<V>(1e-12) : Real<V>(1e-20);
template <class V>
constexpr Real<V> ORTHOGONAL = SINGLE<V> ? Real<V>(2e-6) : Real<V>(1e-12);

template <class V>
struct Matrices {
    V m[3][3];

    V *operator[](int row) { return m[row]; }
    const V *operator[](int row) const { return m[row]; }
};

template <class V>
inline V all(double a) {
    return V{} + Real<V>(a);
}
template <class V>
inline V magnitude(V a) {
    return a < 0 ? -a : a;
}
template <class M>
inline bool any(M a) {
    const Mask64 b = (Mask64)a;
    return (b[0] | b[1] | b[2] | b[3]) != 0;
}
template <class V>
inline V root(V a) {
    for (int k = 0; k < LANES<V>; ++k) a[k] = std::sqrt(a[k]);
    return a;
}

template <class V>
inline Matrices<V> product(const Matrices<V> &a, const Matrices<V> &b) {
    Matrices<V> c;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) c[i][j] = a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j];
    return c;
}

template <class V>
inline Matrices<V> transposed(const Matrices<V> &a) {
    Matrices<V> b;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) b[i][j] = a[j][i];
    return b;
}

template <class V>
inline V determinant(const Matrices<V> &a) {
    return a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) + a[0][1] * (a[1][2] * a[2][0] - a[1][0] * a[2][2]) +
           a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
}

// Of a quaternion (w, x, y, z) of length 1.
template <class V>
inline Matrices<V> matrix(const V *q) {
    const V w = q[0], x = q[1], y = q[2], z = q[3];
    return {{{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
             {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
             {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)}}};
}

// (w, x, y, z) with w >= 0.
template <class V>
inline void quaternion(const Matrices<V> &R, V *q) {
    const V trace = R[0][0] + R[1][1] + R[2][2];
    const V square[4] = {1 + trace, 1 + 2 * R[0][0] - trace, 1 + 2 * R[1][1] - trace, 1 + 2 * R[2][2] - trace};
    const V xy = R[1][0] + R[0][1], xz = R[0][2] + R[2][0], yz = R[2][1] + R[1][2];
    const V wx = R[2][1] - R[1][2], wy = R[0][2] - R[2][0], wz = R[1][0] - R[0][1];
    const V rows[4][4] = {
        {square[0], wx, wy, wz}, {wx, square[1], xy, xz}, {wy, xy, square[2], yz}, {wz, xz, yz, square[3]}};
    V largest = square[0];
    for (int c = 0; c < 4; ++c) q[c] = rows[0][c];
    for (int k = 1; k < 4; ++k) {
        const auto larger = square[k] > largest;
        largest = larger ? square[k] : largest;
        for (int c = 0; c < 4; ++c) q[c] = larger ? rows[k][c] : q[c];
    }
    const V scale = (q[0] < 0 ? all<V>(-0.5) : all<V>(0.5)) / root(largest);
    for (int c = 0; c < 4; ++c) q[c] *= scale;
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

// The same for several, by the steps of `rotation_step`; those that these do not lead to are marked as hard. A lane does
// not depend on the others: where it is done, it rotates by nothing.
template <class V, class Mask>
Matrices<V> rotation_of(const Matrices<V> &J, Mask &hard) {
    Matrices<V> Q;
    V z[3];
    for (int i = 0; i < 3; ++i) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        z[i] = J[j][0] * J[k][1] - J[k][0] * J[j][1];
    }
    const V xx = J[0][0] * J[0][0] + J[1][0] * J[1][0] + J[2][0] * J[2][0];
    const V yy = J[0][1] * J[0][1] + J[1][1] * J[1][1] + J[2][1] * J[2][1];
    const V zz = z[0] * z[0] + z[1] * z[1] + z[2] * z[2];
    hard = ~(zz > Real<V>(1e-6) * (xx * yy)) | ~(zz > Real<V>(1e-30));
    Mask busy = ~hard;
    const V x = 1 / root(xx), w = 1 / root(zz);
    for (int i = 0; i < 3; ++i) Q[i][0] = J[i][0] * x, Q[i][2] = z[i] * w;
    for (int i = 0; i < 3; ++i) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        Q[i][1] = Q[j][2] * Q[k][0] - Q[k][2] * Q[j][0];
    }
    for (int step = 0; step < NEWTON_STEPS && any(busy); ++step) {
        const Matrices<V> m = product(transposed(Q), J);
        const V trace = m[0][0] + m[1][1] + m[2][2];
        const V a = trace - m[0][0], b = trace - m[1][1], c = trace - m[2][2];
        const V size = magnitude(a) + magnitude(b) + magnitude(c);
        const V g[3] = {m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1]};
        const V ab = -(m[0][1] + m[1][0]) / 2, ac = -(m[0][2] + m[2][0]) / 2, bc = -(m[1][2] + m[2][1]) / 2;
        const V A = b * c - bc * bc, B = ac * bc - ab * c, C = ab * bc - ac * b, minor = a * b - ab * ab;
        const V D = ab * ac - a * bc, volume = a * A + ab * B + ac * C;
        const Mask convex = (a > 0) & (minor > Real<V>(1e-6) * (size * size)) & (volume > CONVEX<V> * (size * size * size));
        hard |= busy & ~convex, busy &= convex;
        const V over = 1 / volume;
        V r[3] = {(A * g[0] + B * g[1] + C * g[2]) * over, (B * g[0] + (a * c - ac * ac) * g[1] + D * g[2]) * over,
                  (C * g[0] + D * g[1] + minor * g[2]) * over};
        const V angle2 = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
        const V scale = angle2 > 1 ? 1 / root(angle2) : all<V>(1);
        for (V &each : r) each = busy ? each * scale : all<V>(0);
        const V p = r[0] / 2, q = r[1] / 2, s = r[2] / 2, n = 2 / (1 + p * p + q * q + s * s);
        const Matrices<V> turn = {{{1 - n * (q * q + s * s), n * (p * q - s), n * (p * s + q)},
                                   {n * (p * q + s), 1 - n * (p * p + s * s), n * (q * s - p)},
                                   {n * (p * s - q), n * (q * s + p), 1 - n * (p * p + q * q)}}};
        Q = product(Q, turn);
        busy &= ~(angle2 < STILL2<V>);
    }
    hard |= busy;
    return Q;
}

// Rotates columns i, j of M so that they are orthogonal; gives the lanes in which they were not.
template <class V>
inline auto orthogonalize(Matrices<V> &M, int i, int j) {
    V a = {}, b = {}, c = {};
    for (int k = 0; k < 3; ++k) a += M[k][i] * M[k][i], b += M[k][j] * M[k][j], c += M[k][i] * M[k][j];
    const auto busy = magnitude(c) > ORTHOGONAL<V> * (root(a) * root(b));
    if (!any(busy)) return busy;
    const V tau = (b - a) / (2 * c), sign = tau < 0 ? all<V>(-1) : all<V>(1);
    const V tangent = sign / (magnitude(tau) + root(1 + tau * tau));
    const V t = busy ? tangent : all<V>(0), cosine = 1 / root(1 + t * t), sine = t * cosine;
    for (int k = 0; k < 3; ++k) {
        const V p = M[k][i], q = M[k][j];
        M[k][i] = cosine * p - sine * q, M[k][j] = sine * p + cosine * q;
    }
    return busy;
}

// M Mᵀ = U diag(size²) Uᵀ: U about the identity, by one-sided rotations, which are exact for small sizes, too.
template <class V, class Mask>
Matrices<V> principal(Matrices<V> M, V *size, Mask &hard) {
    const auto lengths = [&] {
        for (int k = 0; k < 3; ++k) size[k] = root(M[0][k] * M[0][k] + M[1][k] * M[1][k] + M[2][k] * M[2][k]);
    };
    lengths();
    for (int k = 0; k < 3; ++k) {
        const auto thin = ~(size[k] > THIN<V>);
        hard |= thin;
        for (int i = 0; i < 3; ++i) M[i][k] = thin ? all<V>(i == k ? FLAT : 0) : M[i][k];
    }
    Mask busy = ~Mask{};
    for (int sweep = 0; sweep < SWEEPS && any(busy); ++sweep)
        busy = orthogonalize(M, 1, 2) | orthogonalize(M, 0, 2) | orthogonalize(M, 0, 1);
    lengths();
    hard |= busy | ~(size[0] > THIN<V>) | ~(size[1] > THIN<V>) | ~(size[2] > THIN<V>);
    for (int k = 0; k < 3; ++k) {
        const V over = 1 / size[k];
        for (int i = 0; i < 3; ++i) M[i][k] *= over;
    }
    // No other order is nearer to the identity, nor a mirrored one, where all cosines are above 0.8.
    if (!any(~((M[0][0] > Real<V>(0.8)) & (M[1][1] > Real<V>(0.8)) & (M[2][2] > Real<V>(0.8))))) return M;
    Matrices<V> best = M;
    V most = all<V>(-1), sizes[3] = {size[0], size[1], size[2]};
    for (const auto &order : ORDERS) {
        const V kept = magnitude(M[0][order[0]]) + magnitude(M[1][order[1]]) + magnitude(M[2][order[2]]);
        const auto better = kept > most;
        most = better ? kept : most;
        for (int k = 0; k < 3; ++k) {
            for (int i = 0; i < 3; ++i) best[i][k] = better ? M[i][order[k]] : best[i][k];
            size[k] = better ? sizes[order[k]] : size[k];
        }
    }
    for (int k = 0; k < 3; ++k) {
        const V sign = best[k][k] < 0 ? all<V>(-1) : all<V>(1);
        for (int i = 0; i < 3; ++i) best[i][k] *= sign;
    }
    const auto mirrored = determinant(best) < 0, second = best[1][1] < best[0][0];
    const auto third = best[2][2] < (second ? best[1][1] : best[0][0]);
    const decltype(mirrored) flipped[3] = {mirrored & ~second & ~third, mirrored & second & ~third, mirrored & third};
    for (int k = 0; k < 3; ++k)
        for (int i = 0; i < 3; ++i) best[i][k] = flipped[k] ? -best[i][k] : best[i][k];
    return best;
}

// Splats in which J R S² Rᵀ Jᵀ has the axes of a quaternion and sizes over the largest of S; Q is J's rotation.
template <class V>
struct Followed {
    Matrices<V> Q;
    V quaternion[4], size[3];
};

template <class V>
Followed<V> follow(const Matrices<V> &J, const V *q, const V *deviations) {
    Followed<V> out;
    decltype(q[0] < q[0]) hard, thin = {};
    out.Q = rotation_of(J, hard);
    if constexpr (!SINGLE<V>)
        for (int k = 0; k < LANES<V>; ++k) {
            if (!hard[k]) continue;
            Mat3 one;
            for (int e = 0; e < 9; ++e) (&one[0][0])[e] = (&J[0][0])[e][k];
            one = rotation_of(one);
            for (int e = 0; e < 9; ++e) (&out.Q[0][0])[e][k] = (&one[0][0])[e];
        }
    const Matrices<V> axes = matrix(q), near = product(out.Q, axes);
    Matrices<V> M = product(transposed(near), product(J, axes));
    for (int row = 0; row < 3; ++row)
        for (int k = 0; k < 3; ++k) M[row][k] *= deviations[k];
    quaternion(product(near, principal(M, out.size, thin)), out.quaternion);
    if constexpr (SINGLE<V>) {
        hard |= thin;
        if (!any(hard)) return out;
        for (int k = 0; k < LANES<V>; ++k) {
            if (!hard[k]) continue;
            Matrices<Doubles> other;
            Doubles axis[4], sizes[3];
            for (int e = 0; e < 9; ++e) (&other[0][0])[e] = all<Doubles>((&J[0][0])[e][k]);
            for (int e = 0; e < 4; ++e) axis[e] = all<Doubles>(q[e][k]);
            for (int e = 0; e < 3; ++e) sizes[e] = all<Doubles>(deviations[e][k]);
            const Followed<Doubles> exact = follow(other, axis, sizes);
            for (int e = 0; e < 9; ++e) (&out.Q[0][0])[e][k] = float((&exact.Q[0][0])[e][0]);
            for (int e = 0; e < 4; ++e) out.quaternion[e][k] = float(exact.quaternion[e][0]);
            for (int e = 0; e < 3; ++e) out.size[e][k] = float(exact.size[e][0]);
        }
    }
    return out;
}

// Real spherical harmonics of degrees 1 to 3 at a direction, in 3DGS's order and signs.
inline void harmonics_at(double x, double y, double z, int degree, double *Y) {
    if (degree < 1) return;
    constexpr double A = 0.4886025119029199, B = 1.0925484305920792;  // √(3/4π), √(15/4π)
    constexpr double C = 0.31539156525252005;                         // √(5/16π)
    constexpr double D = 0.5900435899266435, E = 2.890611442640554;   // √(35/32π), √(105/4π)
    constexpr double F = 0.4570457994644658, G = 0.3731763325901154;  // √(21/32π), √(7/16π)
    const double xx = x * x, yy = y * y, zz = z * z;
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
        harmonics_at(directions(i, 0), directions(i, 1), directions(i, 2), int(degree), &values(i, 0));
}

// Cosines and sines of once, twice and three times an angle.
template <class V>
struct Angles {
    V cosine[3], sine[3];

    Angles(V c, V s) {
        cosine[0] = c, sine[0] = s;
        for (int m = 1; m < 3; ++m) {
            cosine[m] = cosine[m - 1] * c - sine[m - 1] * s;
            sine[m] = cosine[m - 1] * s + sine[m - 1] * c;
        }
    }
};

// Rotates the coefficients of degrees 1 to DEGREE about z: those of orders m and -m, as cos mφ and sin mφ.
template <int DEGREE, class V>
inline void about_z(V *f, const Angles<V> &angles) {
    for (int l = 1; l <= DEGREE; ++l) {
        V *middle = f + l * l - 1 + l;
        for (int m = 1; m <= l; ++m) {
            const V p = middle[m], q = middle[-m], c = angles.cosine[m - 1], s = angles.sine[m - 1];
            middle[m] = c * p - s * q, middle[-m] = s * p + c * q;
        }
    }
}

// Rotates them about x by a quarter turn, forwards (sign = 1) or back (sign = -1).
template <int DEGREE, class V>
inline void about_x(V *f, Real<V> sign) {
    const V a = f[0];
    f[0] = sign * f[1], f[1] = -sign * a;
    if (DEGREE < 2) return;
    const Real<V> half = Real<V>(0.5), h = Real<V>(0.8660254037844386);  // √3/2
    const V b = f[3], c = f[5], d = f[7];
    f[3] = sign * f[6], f[4] = -f[4], f[5] = -half * c - h * d, f[6] = -sign * b, f[7] = half * d - h * c;
    if (DEGREE < 3) return;
    const Real<V> u = sign * Real<V>(0.7905694150420949), v = sign * Real<V>(0.6123724356957945);  // √(5/8), √(3/8)
    const Real<V> quarter = Real<V>(0.25), w = Real<V>(0.9682458365518543);                        // √15/4
    const V p = f[8], q = f[10], r = f[11], s = f[12], t = f[13], o = f[14];
    f[8] = v * t - u * r, f[9] = -f[9], f[10] = -v * r - u * t, f[11] = u * p + v * q;
    f[12] = -quarter * s - w * o, f[13] = u * q - v * p, f[14] = quarter * o - w * s;
}

// Rotates the coefficients of degrees 1 to DEGREE of three colours by Q = Rz(α) Ry(β) Rz(γ), Ry(β) = Rx(-90°) Rz(β) Rx(90°).
// Where β is nearly 0 or 180°, any α will do, and γ follows from it.
template <int DEGREE, class V>
inline void rotate(const Matrices<V> &Q, V (*colours)[DEGREE * (DEGREE + 2)]) {
    const V square = Q[0][2] * Q[0][2] + Q[1][2] * Q[1][2];
    const auto tilted = square > Real<V>(1e-36);
    const V sine = root(square), over = 1 / sine;
    const V c = tilted ? Q[0][2] * over : all<V>(1), s = tilted ? Q[1][2] * over : all<V>(0);
    const Angles<V> alpha(c, s), beta(Q[2][2], sine);
    const Angles<V> gamma(c * Q[1][1] - s * Q[0][1], c * Q[1][0] - s * Q[0][0]);
    for (int colour = 0; colour < 3; ++colour) {
        V *f = colours[colour];
        about_z<DEGREE>(f, gamma);
        about_x<DEGREE, V>(f, 1);
        about_z<DEGREE>(f, beta);
        about_x<DEGREE, V>(f, -1);
        about_z<DEGREE>(f, alpha);
    }
}

// Splats (groups, columns, lanes) from number `start` on: a quaternion, deviations along the axes over the
// largest, its logarithm, coefficients of the colours; with Jacobians (n, 9), as attributes (columns - 1, n): quaternion,
// logarithms of deviations, coefficients. Gives whether all Jacobians are finite.
template <class V, int DEGREE>
bool deform_degree(In<Real<V>, 3> splats, In<double, 2> J, Out<Real<V>, 2> out, int64_t start) {
    bool finite = true;
    constexpr int WIDTH = LANES<V>, COLOURS = DEGREE * (DEGREE + 2);
    for (int64_t group = 0; group < splats.shape[0]; ++group) {
        const int64_t first = group * WIDTH, count = std::min<int64_t>(WIDTH, J.shape[0] - first);
        V given[SIZES + 3 * COLOURS];
        std::memcpy(given, &splats(group, 0, 0), sizeof given);
        Matrices<V> jacobian;
        double scales[WIDTH], sizes[3 * WIDTH];
        for (int k = 0; k < WIDTH; ++k) {
            const double *one = &J(first + std::min<int64_t>(k, count - 1), 0);
            double most = 0;
            for (int e = 0; e < 9; ++e) most = std::max(most, std::abs(one[e])), finite &= std::abs(one[e]) < INF;
            scales[k] = most > SMALLEST ? most : SMALLEST;
            const double over = 1 / scales[k];
            for (int e = 0; e < 9; ++e) (&jacobian[0][0])[e][k] = Real<V>(one[e] * over);
        }
        const Followed<V> found = follow(jacobian, given, given + AXES);
        for (int e = 0; e < 3; ++e)
            for (int k = 0; k < WIDTH; ++k) sizes[e * WIDTH + k] = std::max(scales[k] * double(found.size[e][k]), FLAT);
        for (double &size : sizes) size = logarithm(size);
        V columns[7];
        for (int e = 0; e < 4; ++e) columns[e] = found.quaternion[e];
        for (int e = 0; e < 3; ++e)
            for (int k = 0; k < WIDTH; ++k) columns[4 + e][k] = Real<V>(sizes[e * WIDTH + k] + double(given[SIZES - 1][k]));
        if constexpr (DEGREE > 0) rotate<DEGREE, V>(found.Q, (V(*)[COLOURS])(given + SIZES));
        const size_t bytes = size_t(count) * sizeof(Real<V>);
        for (int e = 0; e < 7; ++e) std::memcpy(&out(e, start + first), columns + e, bytes);
        for (int e = 0; e < 3 * COLOURS; ++e) std::memcpy(&out(7 + e, start + first), given + SIZES + e, bytes);
    }
    return finite;
}

template <class V>
bool deform(In<Real<V>, 3> splats, In<double, 2> J, Out<Real<V>, 2> out, int64_t start) {
    const int64_t columns = splats.shape[1] - SIZES;
    const auto degree = columns > 24 ? deform_degree<V, 3> : columns > 9 ? deform_degree<V, 2>
                                                         : columns > 0   ? deform_degree<V, 1>
                                                                         : deform_degree<V, 0>;
    return degree(splats, J, out, start);
}

}  // namespace

EXPORT(splats_deform_single, deform<Singles>)
EXPORT(splats_deform_double, deform<Doubles>)
EXPORT(splats_harmonics, harmonics)
