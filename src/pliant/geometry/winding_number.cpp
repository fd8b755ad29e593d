// Winding numbers by solid angles, far groups of triangles by their moments; the equations are in winding.py.
#include <algorithm>

#include "geometry/bvh.h"

// A row of moments: centre (0:3), reach (3), N (4:7), M at PAIRS (7:13), T at TRIPLES (13:23).
constexpr int ROW = 23;
constexpr int PAIRS[6][2] = {{0, 0}, {1, 1}, {2, 2}, {0, 1}, {0, 2}, {1, 2}};
constexpr int TRIPLES[10][3] = {{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {0, 0, 1}, {0, 0, 2},
                                {0, 1, 1}, {1, 1, 2}, {0, 2, 2}, {1, 2, 2}, {0, 1, 2}};
constexpr int PAIR_AT[3][3] = {{0, 3, 4}, {3, 1, 5}, {4, 5, 2}};
constexpr double FOUR_PI = 4 * 3.14159265358979323846;

static double solid_angle(Vec3 q, const In<double, 3> &corners, int64_t t) {
    const Vec3 a = corner(corners, t, 0) - q, b = corner(corners, t, 1) - q, c = corner(corners, t, 2) - q;
    const double ra = norm(a), rb = norm(b), rc = norm(c);
    return 2 * std::atan2(dot(a, cross(b, c)), ra * rb * rc + dot(a, b) * rc + dot(b, c) * ra + dot(c, a) * rb);
}

// Moments of one triangle about its centroid, where M vanishes; returns its area.
static double triangle_moments(const In<double, 3> &corners, int64_t t, double *out) {
    const Vec3 a = corner(corners, t, 0), b = corner(corners, t, 1), c = corner(corners, t, 2);
    const Vec3 n = cross(b - a, c - a);
    for (int axis = 0; axis < 3; ++axis) {
        out[axis] = (a[axis] + b[axis] + c[axis]) / 3;
        out[4 + axis] = n[axis] / 2;
    }
    std::fill(out + 7, out + ROW, 0.0);
    const Vec3 centre = {out[0], out[1], out[2]};
    for (const Vec3 p : {a - centre, b - centre, c - centre})
        for (int e = 0; e < 10; ++e) {
            const auto [i, j, k] = TRIPLES[e];
            out[13 + e] += (n[i] * p[j] * p[k] + n[j] * p[i] * p[k] + n[k] * p[i] * p[j]) / 72;
        }
    return norm(n) / 2;
}

// Adds a part's moments, taken about its own centre, to a whole's, about the whole's centre.
static void add_shifted(const double *part, double *whole) {
    const Vec3 s = {part[0] - whole[0], part[1] - whole[1], part[2] - whole[2]}, n = {part[4], part[5], part[6]};
    const double *m = part + 7;
    for (int axis = 0; axis < 3; ++axis) whole[4 + axis] += n[axis];
    for (int e = 0; e < 10; ++e) {
        const auto [i, j, k] = TRIPLES[e];
        const double turned = m[PAIR_AT[i][j]] * s[k] + m[PAIR_AT[i][k]] * s[j] + m[PAIR_AT[j][k]] * s[i];
        const double twice = n[i] * s[j] * s[k] + n[j] * s[i] * s[k] + n[k] * s[i] * s[j];
        whole[13 + e] += part[13 + e] + (2 * turned + twice) / 3;
    }
    for (int e = 0; e < 6; ++e) {
        const auto [i, j] = PAIRS[e];
        whole[7 + e] += m[e] + (n[i] * s[j] + n[j] * s[i]) / 2;
    }
}

// Moments of several parts together, about their area centre; returns the whole area.
static double joined(const double parts[][ROW], const double *areas, int64_t count, double *out) {
    double total = 0.0;
    for (int64_t p = 0; p < count; ++p) total += areas[p];
    for (int64_t p = 0; p < count; ++p) {
        const double share = total > 0 ? areas[p] / total : 1.0 / double(count);
        for (int axis = 0; axis < 3; ++axis) out[axis] += share * parts[p][axis];
    }
    for (int64_t p = 0; p < count; ++p) add_shifted(parts[p], out);
    return total;
}

// (nodes, 23): area centre p, distance from p to the box's farthest corner, N, M and T. `out` and `areas` begin as zero.
static void moments(Tree tree, Out<double, 2> out, Out<double, 1> areas) {
    for (int64_t node = tree.right.shape[0] - 1; node >= 0; --node) {
        double parts[LEAF][ROW], part_areas[LEAF];
        int64_t count = tree.stop(node) - tree.start(node);
        if (tree.right(node)) {
            count = 0;
            for (const int64_t child : {node + 1, tree.right(node)}) {
                std::copy_n(&out(child, 0), ROW, parts[count]);
                part_areas[count++] = areas(child);
            }
        } else {
            for (int64_t p = 0; p < count; ++p)
                part_areas[p] = triangle_moments(tree.corners, tree.start(node) + p, parts[p]);
        }
        areas(node) = joined(parts, part_areas, count, &out(node, 0));
        double reach = 0.0;
        for (int axis = 0; axis < 3; ++axis) {
            const double p = out(node, axis);
            const double far = std::max(p - tree.boxes(node, axis), tree.boxes(node, 3 + axis) - p);
            reach += far * far;
        }
        out(node, 3) = std::sqrt(reach);
    }
}
EXPORT(winding_moments, moments)

// 4π times the winding number of a far node with moments m, seen along d = p − q.
static double far_field(Vec3 d, double r2, const double *m) {
    const double x = d.x, y = d.y, z = d.z;
    const double first = m[4] * x + m[5] * y + m[6] * z + m[7] + m[8] + m[9];
    const double second =
        m[7] * x * x + m[8] * y * y + m[9] * z * z + 2 * (m[10] * x * y + m[11] * x * z + m[12] * y * z);
    const double trace = x * (m[13] + m[18] + m[20]) + y * (m[16] + m[14] + m[21]) + z * (m[17] + m[19] + m[15]);
    const double third = x * x * (m[13] * x + 3 * (m[16] * y + m[17] * z)) +
                         y * y * (m[14] * y + 3 * (m[18] * x + m[19] * z)) +
                         z * z * (m[15] * z + 3 * (m[20] * x + m[21] * y)) + 6 * m[22] * x * y * z;
    return (first - (3 * second + 4.5 * trace) / r2 + 7.5 * third / (r2 * r2)) / (r2 * std::sqrt(r2));
}

static double winding_one(Vec3 q, const Tree &tree, const In<double, 2> &moments, double beta2) {
    int64_t nodes[STACK];
    nodes[0] = 0;
    int top = 1;
    double total = 0.0;
    while (top) {
        const int64_t node = nodes[--top];
        const double *m = &moments(node, 0);
        const Vec3 d = {m[0] - q.x, m[1] - q.y, m[2] - q.z};
        const double r2 = dot(d, d), reach = m[3];
        if (r2 > beta2 * reach * reach) {
            total += far_field(d, r2, m);
        } else if (tree.right(node)) {
            nodes[top++] = tree.right(node);
            nodes[top++] = node + 1;
        } else {
            for (int64_t t = tree.start(node); t < tree.stop(node); ++t) total += solid_angle(q, tree.corners, t);
        }
    }
    return total / FOUR_PI;
}

static void fast(In<double, 2> points, Tree tree, In<double, 2> moments, double beta, Out<double, 1> out, int64_t begin,
                 int64_t end) {
    for (int64_t k = begin; k < end; ++k) out(k) = winding_one(row3(points, k), tree, moments, beta * beta);
}
EXPORT(winding_fast, fast)

static void exact(In<double, 2> points, In<double, 3> corners, Out<double, 1> out, int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
        double total = 0.0;
        for (int64_t t = 0; t < corners.shape[0]; ++t) total += solid_angle(row3(points, k), corners, t);
        out(k) = total / FOUR_PI;
    }
}
EXPORT(winding_exact, exact)
