// Mean value coordinates of one point after the other; the equations are in mean_value.py.
#include <algorithm>
#include <vector>

#include "native/vec3.h"

constexpr double PI = 3.14159265358979323846;
constexpr double ON = 1e-14;       // half of what a triangle's arcs lack of 2π where p lies on it; height squared
constexpr double ON_EDGE = 1e-7;   // what an edge's arc lacks of π where p lies on it
constexpr double BESIDE = 1e-9;    // sines of a spherical triangle's angles where p lies in its plane
constexpr double AT = 1e-14;       // distance over the diagonal below which p is a vertex

// The angle between two unit vectors.
static double arc(Vec3 u, Vec3 v) { return std::atan2(norm(cross(u, v)), dot(u, v)); }

// Whether p lies on the triangle; then its barycentric coordinates are all there is.
static bool lies_on(const double theta[3], double h, const double *r, const int64_t at[3], double *weights,
                    int64_t count) {
    for (int l = 0; l < 3; ++l)
        if (PI - theta[l] < ON_EDGE) {
            const int64_t j = at[(l + 1) % 3], k = at[(l + 2) % 3];
            std::fill(weights, weights + count, 0.0);
            weights[j] = r[k];
            weights[k] = r[j];
            return true;
        }
    if (!(PI - h < ON)) return false;
    std::fill(weights, weights + count, 0.0);
    for (int l = 0; l < 3; ++l) weights[at[l]] = std::sin(theta[l]) * r[at[(l + 1) % 3]] * r[at[(l + 2) % 3]];
    return true;
}

// Adds a triangle's weights; true if p lies on it.
static bool add_triangle(const Vec3 *u, const double *r, const int64_t at[3], double *weights, int64_t count) {
    const Vec3 a = u[at[0]], b = u[at[1]], c = u[at[2]];
    const double theta[3] = {arc(b, c), arc(c, a), arc(a, b)};
    const double h = (theta[0] + theta[1] + theta[2]) / 2;
    if (lies_on(theta, h, r, at, weights, count)) return true;
    const double sines[3] = {std::sin(theta[0]), std::sin(theta[1]), std::sin(theta[2])};
    const double side = dot(a, cross(b, c)), sine = std::sin(h);
    double cosines[3], s[3];
    for (int l = 0; l < 3; ++l) {
        const double product = sines[(l + 1) % 3] * sines[(l + 2) % 3];
        cosines[l] = 2 * sine * std::sin(h - theta[l]) / product - 1;
        s[l] = side / product;
        if (!(std::fabs(s[l]) > BESIDE)) return false;
    }
    for (int l = 0; l < 3; ++l) {
        const int after = (l + 1) % 3, before = (l + 2) % 3;
        const double above = theta[l] - cosines[after] * theta[before] - cosines[before] * theta[after];
        weights[at[l]] += above / (r[at[l]] * sines[after] * s[before]);
    }
    return false;
}

// Rows (n, c) of coordinates of points begin to end into `out`, which is zero.
static void rows(In<double, 2> points, In<double, 2> cage, In<int64_t, 2> triangles, double diagonal,
                 Out<double, 2> out, int64_t begin, int64_t end) {
    const int64_t count = cage.shape[0];
    std::vector<Vec3> u(count);
    std::vector<double> r(count);
    for (int64_t q = begin; q < end; ++q) {
        const Vec3 p = row3(points, q);
        double *weights = &out(q, 0);
        int64_t vertex = -1;
        for (int64_t i = 0; i < count; ++i) {
            const Vec3 away = row3(cage, i) - p;
            r[i] = norm(away);
            u[i] = away / r[i];
            if (r[i] < AT * diagonal) vertex = i;
        }
        if (vertex >= 0) {
            weights[vertex] = 1.0;
            continue;
        }
        for (int64_t t = 0; t < triangles.shape[0]; ++t)
            if (add_triangle(u.data(), r.data(), &triangles(t, 0), weights, count)) break;
        double total = 0.0;
        for (int64_t i = 0; i < count; ++i) total += weights[i];
        for (int64_t i = 0; i < count; ++i) weights[i] /= total;
    }
}
EXPORT(mean_value_rows, rows)
