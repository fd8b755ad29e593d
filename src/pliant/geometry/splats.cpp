// Gaussian splats that follow a deformation; the equations are in splats.py.
#include <algorithm>
#include <cstring>

#include "native/mat3.h"

namespace {

constexpr double FLAT_VARIANCE = 1e-30;        // least variance of a splat, when it is flattened
constexpr double COVARIANCE_ROUNDING = 1e-12;  // covariance over the total variance that would only rotate a round splat
constexpr int SWEEPS = 12, BANDS = 15;
constexpr int FIRST[4] = {0, 3, 8, 15};  // of the harmonics of a degree
constexpr int ORDERS[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

Mat3 product(const Mat3 &a, const Mat3 &b) {
    Mat3 c;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) c[i][j] = a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j];
    return c;
}

Mat3 transposed(const Mat3 &a) {
    return {{{a[0][0], a[1][0], a[2][0]}, {a[0][1], a[1][1], a[2][1]}, {a[0][2], a[1][2], a[2][2]}}};
}

double determinant(const Mat3 &a) {
    return dot({a[0][0], a[0][1], a[0][2]}, cross({a[1][0], a[1][1], a[1][2]}, {a[2][0], a[2][1], a[2][2]}));
}

Mat3 matrix(const In<double, 3> &table, int64_t i) {
    Mat3 a;
    std::copy_n(&table(i, 0, 0), 9, &a[0][0]);
    return a;
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

// Axes V, about the identity, and variances of the covariance C.
void principal(Mat3 C, Mat3 &V, double *variance) {
    const double total = C[0][0] + C[1][1] + C[2][2];
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            if (i != j && std::abs(C[i][j]) < COVARIANCE_ROUNDING * total) C[i][j] = 0;
    Mat3 W = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
    for (int sweep = 0; sweep < SWEEPS; ++sweep) {
        if (std::abs(C[0][1]) + std::abs(C[0][2]) + std::abs(C[1][2]) <= COVARIANCE_ROUNDING * total) break;
        jacobi(C.m, W.m, 1, 2), jacobi(C.m, W.m, 0, 2), jacobi(C.m, W.m, 0, 1);
    }
    const int *best = ORDERS[0];
    auto kept = [&](const int *order) {
        return std::abs(W[0][order[0]]) + std::abs(W[1][order[1]]) + std::abs(W[2][order[2]]);
    };
    for (const auto &order : ORDERS)
        if (kept(order) > kept(best)) best = order;
    for (int k = 0; k < 3; ++k) {
        const double sign = W[k][best[k]] < 0 ? -1.0 : 1.0;
        for (int i = 0; i < 3; ++i) V[i][k] = sign * W[i][best[k]];
        variance[k] = std::max(C[best[k]][best[k]], FLAT_VARIANCE);
    }
    if (determinant(V) < 0) {
        int weakest = V[1][1] < V[0][0] ? 1 : 0;
        if (V[2][2] < V[weakest][weakest]) weakest = 2;
        for (int i = 0; i < 3; ++i) V[i][weakest] = -V[i][weakest];
    }
}

// (w, x, y, z) with w >= 0.
void quaternion(const Mat3 &R, double *q) {
    const double trace = R[0][0] + R[1][1] + R[2][2];
    const double square[4] = {1 + trace, 1 + 2 * R[0][0] - trace, 1 + 2 * R[1][1] - trace, 1 + 2 * R[2][2] - trace};
    const int k = int(std::max_element(square, square + 4) - square);
    const double xy = R[1][0] + R[0][1], xz = R[0][2] + R[2][0], yz = R[2][1] + R[1][2];
    const double wx = R[2][1] - R[1][2], wy = R[0][2] - R[2][0], wz = R[1][0] - R[0][1];
    const double rows[4][4] = {
        {square[0], wx, wy, wz}, {wx, square[1], xy, xz}, {wy, xy, square[2], yz}, {wz, xz, yz, square[3]}};
    const double scale = (rows[k][0] < 0 ? -0.5 : 0.5) / std::sqrt(square[k]);
    for (int c = 0; c < 4; ++c) q[c] = scale * rows[k][c];
}

// J (n, 3, 3), the splats' axes R (n, 3, 3) and deviations (n, 3) -> rotations Q of J (n, 3, 3), and by columns the
// quaternions (4, n) and logarithms of deviations (3, n) of J R S² Rᵀ Jᵀ.
void deform(In<double, 3> J, In<double, 3> R, In<double, 2> deviations, Out<double, 3> Q, Out<double, 2> quaternions,
            Out<double, 2> log_deviations, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
        const Mat3 jacobian = matrix(J, i), axes = matrix(R, i), rotation = rotation_of(jacobian);
        const Mat3 near = product(rotation, axes);
        Mat3 M = product(transposed(near), product(jacobian, axes)), V;
        for (int row = 0; row < 3; ++row)
            for (int k = 0; k < 3; ++k) M[row][k] *= deviations(i, k);
        double variance[3], q[4];
        principal(product(M, transposed(M)), V, variance);
        quaternion(product(near, V), q);
        std::copy_n(&rotation[0][0], 9, &Q(i, 0, 0));
        for (int k = 0; k < 4; ++k) quaternions(k, i) = q[k];
        for (int k = 0; k < 3; ++k) log_deviations(k, i) = 0.5 * std::log(variance[k]);
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

// Coefficients (3, 3, 8 or 15; n) of three colours, rotated by Q (n, 3, 3): a degree's values at `directions` (m, 3),
// rotated back, are those of the rotated function there, and `fitted` (3, 8 or 15; m) gives its coefficients by them.
template <class Real>
void rotate(In<double, 3> Q, In<double, 2> directions, In<double, 2> fitted, In<Real, 3> coefficients,
            Out<Real, 3> rotated, int64_t begin, int64_t end) {
    typedef Real V __attribute__((vector_size(32)));  // of as many splats
    constexpr int LANES = int(32 / sizeof(Real));
    const int64_t bands = fitted.shape[0];
    const int degree = bands > 8 ? 3 : bands > 3 ? 2 : 1;
    for (int64_t first = begin; first < end; first += LANES) {
        const int64_t count = std::min<int64_t>(LANES, end - first);
        V R[9] = {}, Y[BANDS], given[3][BANDS] = {}, found[3][BANDS] = {};
        for (int64_t k = 0; k < count; ++k)
            for (int e = 0; e < 9; ++e) R[e][k] = Real((&Q(first + k, 0, 0))[e]);
        for (int colour = 0; colour < 3; ++colour)
            for (int64_t j = 0; j < bands; ++j)
                std::memcpy(&given[colour][j], &coefficients(colour, j, first), size_t(count) * sizeof(Real));
        for (int64_t m = 0; m < directions.shape[0]; ++m) {
            V back[3];
            for (int e = 0; e < 3; ++e)
                back[e] = Real(directions(m, 0)) * R[e] + Real(directions(m, 1)) * R[3 + e] +
                          Real(directions(m, 2)) * R[6 + e];
            harmonics_at<Real>(back[0], back[1], back[2], degree, Y);
            for (int colour = 0; colour < 3; ++colour)
                for (int l = 0; l < degree; ++l) {
                    V seen = {};
                    for (int j = FIRST[l]; j < FIRST[l + 1]; ++j) seen += Y[j] * given[colour][j];
                    for (int j = FIRST[l]; j < FIRST[l + 1]; ++j) found[colour][j] += Real(fitted(j, m)) * seen;
                }
        }
        for (int colour = 0; colour < 3; ++colour)
            for (int64_t j = 0; j < bands; ++j)
                std::memcpy(&rotated(colour, j, first), &found[colour][j], size_t(count) * sizeof(Real));
    }
}

}  // namespace

EXPORT(splats_deform, deform)
EXPORT(splats_harmonics, harmonics)
EXPORT(splats_rotate_single, rotate<float>)
EXPORT(splats_rotate_double, rotate<double>)
