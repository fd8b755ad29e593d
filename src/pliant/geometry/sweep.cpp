// Where segments first enter a surface; the rule is in spatial.py.
#include "geometry/sweep.h"

constexpr double EDGE = 1e-10;  // how far beyond its edges a triangle reaches, in barycentric coordinates

// The fraction at which the segment from p to q passes the triangle from its front (side 1) or back (-1).
static double enters(Vec3 p, Vec3 q, Vec3 a, Vec3 b, Vec3 c, double side, double eps) {
    const Vec3 ab = b - a, ac = c - a, n = cross(ab, ac);
    const double length = norm(n);
    if (length == 0) return INF;
    const double h0 = side * dot(p - a, n) / length, h1 = side * dot(q - a, n) / length;
    if (h0 < -eps || h1 > 0 || h1 >= h0) return INF;
    const double s = std::min(std::max(h0 / (h0 - h1), 0.0), 1.0);
    const Vec3 at = p + s * (q - p) - a;
    const double area2 = length * length;
    const double v = dot(cross(at, ac), n) / area2, w = dot(cross(ab, at), n) / area2;
    return v >= -EDGE && w >= -EDGE && v + w <= 1 + EDGE ? s : INF;
}

namespace {
struct Hit {
    double fraction;
    int64_t triangle;
};
}  // namespace

static Hit first_one(Vec3 p, Vec3 q, const Tree &tree, double side, double eps) {
    int64_t nodes[STACK];
    double near[STACK];
    const Vec3 d = q - p;
    Hit best = {INF, -1};
    nodes[0] = 0, near[0] = reaches(p, d, tree.boxes, 0, 1.0, eps);
    int top = 1;
    while (top) {
        const int64_t node = nodes[--top];
        if (near[top] > std::min(best.fraction, 1.0)) continue;
        if (tree.right(node) == 0) {
            for (int64_t t = tree.start(node); t < tree.stop(node); ++t) {
                const double s = enters(p, q, corner(tree.corners, t, 0), corner(tree.corners, t, 1),
                                        corner(tree.corners, t, 2), side, eps);
                if (s < best.fraction) best = {s, t};
            }
            continue;
        }
        int64_t first = node + 1, second = tree.right(node);
        const double most = std::min(best.fraction, 1.0);
        double s1 = reaches(p, d, tree.boxes, first, most, eps), s2 = reaches(p, d, tree.boxes, second, most, eps);
        if (s2 < s1) std::swap(first, second), std::swap(s1, s2);
        nodes[top] = second, near[top++] = s2;
        nodes[top] = first, near[top++] = s1;
    }
    return best;
}

static void first_hits(In<double, 2> starts, In<double, 2> ends, Tree tree, double side, double eps,
                       Out<double, 1> fractions, Out<int64_t, 1> found, int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
        const Hit hit = first_one(row3(starts, k), row3(ends, k), tree, side, eps);
        fractions(k) = hit.fraction;
        found(k) = hit.triangle;
    }
}
EXPORT(sweep_first_hits, first_hits)
