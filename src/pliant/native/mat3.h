// Matrices of three by three: the rotation nearest to one, and the axes of a symmetric one.
#pragma once

#include "native/vec3.h"

namespace {

constexpr double SMALLEST = 1e-300;
constexpr int MAX_STEPS = 30;

struct Mat3 {
    double m[3][3];

    double *operator[](int row) { return m[row]; }
    const double *operator[](int row) const { return m[row]; }
};

inline Vec3 operator*(const Mat3 &a, Vec3 v) {
    return {a[0][0] * v.x + a[0][1] * v.y + a[0][2] * v.z, a[1][0] * v.x + a[1][1] * v.y + a[1][2] * v.z,
            a[2][0] * v.x + a[2][1] * v.y + a[2][2] * v.z};
}

// The Newton step, a rotation vector, towards the rotation nearest to m; a gradient step where m is too far from one.
inline Vec3 rotation_step(const Mat3 &m, double size, double trace) {
    const double x = m[2][1] - m[1][2], y = m[0][2] - m[2][0], z = m[1][0] - m[0][1];
    const double xx = trace - m[0][0], yy = trace - m[1][1], zz = trace - m[2][2];
    const double xy = -(m[0][1] + m[1][0]) / 2, xz = -(m[0][2] + m[2][0]) / 2, yz = -(m[1][2] + m[2][1]) / 2;
    const double cx = yy * zz - yz * yz, cy = xz * yz - xy * zz, cz = xy * yz - xz * yy;
    const double determinant = xx * cx + xy * cy + xz * cz;
    if (xx > 0 && xx * yy - xy * xy > 1e-6 * (size * size) && determinant > 1e-9 * (size * (size * size)))
        return {(cx * x + cy * y + cz * z) / determinant,
                (cy * x + (xx * zz - xz * xz) * y + (xy * xz - xx * yz) * z) / determinant,
                (cz * x + (xy * xz - xx * yz) * y + (xx * yy - xy * xy) * z) / determinant};
    return {2 * x / size, 2 * y / size, 2 * z / size};
}

// r rotated by the quaternion (1, u/2, v/2, w/2), normalised: as much to second order, and always by a rotation.
inline void rotate_by(double *r, Vec3 rotvec) {
    const double b = rotvec.x / 2, c = rotvec.y / 2, d = rotvec.z / 2;
    const double n = 2 / (1 + b * b + c * c + d * d);
    for (int row = 0; row < 3; ++row, r += 3) {
        const double p = r[0], q = r[1], s = r[2];
        r[0] = p * (1 - n * (c * c + d * d)) + q * n * (b * c + d) + s * n * (b * d - c);
        r[1] = p * n * (b * c - d) + q * (1 - n * (b * b + d * d)) + s * n * (c * d + b);
        r[2] = p * n * (b * d + c) + q * n * (c * d - b) + s * (1 - n * (b * b + c * c));
    }
}

// Changes r (3, 3), a rotation, into the one nearest to the matrix a: the largest tr(rᵀ a), by Newton's method.
// Where several are as near, as for springs in one line, r stays on the side it comes from.
inline void nearest_rotation(const Mat3 &a, double *r) {
    for (int step = 0; step < MAX_STEPS; ++step) {
        Mat3 m;
        for (int row = 0; row < 3; ++row)
            for (int column = 0; column < 3; ++column)
                m[row][column] = r[row] * a[0][column] + r[3 + row] * a[1][column] + r[6 + row] * a[2][column];
        const double trace = m[0][0] + m[1][1] + m[2][2];
        const double size = std::abs(trace - m[0][0]) + std::abs(trace - m[1][1]) + std::abs(trace - m[2][2]);
        if (size < SMALLEST) return;
        Vec3 rotvec = rotation_step(m, size, trace);
        const double angle2 = dot(rotvec, rotvec);
        if (angle2 > 1) rotvec = rotvec / std::sqrt(angle2);
        rotate_by(r, rotvec);
        if (angle2 < 1e-20) return;
    }
}

// Rotates rows and columns i, j of a symmetric matrix so that its entry there vanishes, and columns of V with them.
inline void jacobi(double (*A)[3], double (*V)[3], int i, int j) {
    if (std::abs(A[i][j]) <= 1e-300) return;
    const double tau = (A[j][j] - A[i][i]) / (2 * A[i][j]);
    const double t = (tau >= 0 ? 1.0 : -1.0) / (std::abs(tau) + std::sqrt(1 + tau * tau));
    const double c = 1 / std::sqrt(1 + t * t), s = t * c;
    for (int k = 0; k < 3; ++k) {
        const double a = A[k][i], b = A[k][j];
        A[k][i] = c * a - s * b, A[k][j] = s * a + c * b;
    }
    for (int k = 0; k < 3; ++k) {
        const double a = A[i][k], b = A[j][k];
        A[i][k] = c * a - s * b, A[j][k] = s * a + c * b;
    }
    for (int k = 0; k < 3; ++k) {
        const double a = V[k][i], b = V[k][j];
        V[k][i] = c * a - s * b, V[k][j] = s * a + c * b;
    }
}

}  // namespace
