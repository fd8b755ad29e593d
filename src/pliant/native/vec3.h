// Vectors in space: what the geometric kernels are written in.
#pragma once

#include "kernel.h"

struct Vec3 {
    double x, y, z;
    double operator[](int axis) const { return axis == 0 ? x : axis == 1 ? y : z; }
    double &operator[](int axis) { return axis == 0 ? x : axis == 1 ? y : z; }
};

inline Vec3 operator+(Vec3 a, Vec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
inline Vec3 operator-(Vec3 a, Vec3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
inline Vec3 operator-(Vec3 a) { return {-a.x, -a.y, -a.z}; }
inline Vec3 operator*(double s, Vec3 a) { return {s * a.x, s * a.y, s * a.z}; }
inline Vec3 operator/(Vec3 a, double s) { return {a.x / s, a.y / s, a.z / s}; }
inline bool operator==(Vec3 a, Vec3 b) { return a.x == b.x && a.y == b.y && a.z == b.z; }
inline double dot(Vec3 a, Vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline double norm(Vec3 a) { return std::sqrt(dot(a, a)); }
inline Vec3 cross(Vec3 a, Vec3 b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

// The larger of two numbers. GCC makes branches, which are guessed wrongly, of std::max with a constant; and of this too
// if the constant comes last: larger(larger(a, 0.0), b) has none.
inline double larger(double a, double b) { return a > b ? a : b; }

// Row i of an (n, 3) table, and corner k of triangle t in an (m, 3, 3) table.
template <class T>
Vec3 row3(const Array<T, 2> &table, int64_t i) {
    return {table(i, 0), table(i, 1), table(i, 2)};
}
inline Vec3 corner(const In<double, 3> &corners, int64_t t, int k) {
    return {corners(t, k, 0), corners(t, k, 1), corners(t, k, 2)};
}
inline void store(const Out<double, 2> &table, int64_t i, Vec3 a) {
    table(i, 0) = a.x;
    table(i, 1) = a.y;
    table(i, 2) = a.z;
}
