// Triangles that cross each other; the rule is in spatial.py.
#include "geometry/crossing.h"

#include <algorithm>

#include "geometry/bvh.h"

namespace {
enum Rule { BOXES = 0, CROSSING = 1, CROSSING_OR_COPLANAR = 2 };
}  // namespace

static bool is_corner(Vec3 p, const Triangle &a) { return p == a[0] || p == a[1] || p == a[2]; }

// Zero if the triangle is lower than eps.
static Vec3 unit_normal(const Triangle &a, double eps) {
    const Vec3 n = cross(a[1] - a[0], a[2] - a[0]);
    const double length = norm(n);
    const double longest = std::max({norm(a[1] - a[0]), norm(a[2] - a[1]), norm(a[0] - a[2])});
    return length > eps * longest ? (1 / length) * n : Vec3{0.0, 0.0, 0.0};
}

// Signed distance of p to the plane of triangle a with unit normal n, exactly zero if it is in it.
static double height(Vec3 p, Vec3 n, const Triangle &a, double eps) {
    if (is_corner(p, a)) return 0.0;
    const double h = dot(n, p - a[0]);
    return std::abs(h) > eps ? h : 0.0;
}

namespace {
struct Piece {
    double low = INF, high = -INF;
    void reach(double t) {
        low = std::min(low, t);
        high = std::max(high, t);
    }
};
}  // namespace

// Where a triangle meets a plane: corners at t along the line of intersection, h above the plane.
static Piece piece(Vec3 t, Vec3 h) {
    Piece found;
    for (int k = 0; k < 3; ++k) {
        const int l = (k + 1) % 3;
        if (h[k] == 0) found.reach(t[k]);
        else if (h[k] * h[l] < 0) found.reach(t[k] + (t[l] - t[k]) * (h[k] / (h[k] - h[l])));
    }
    return found;
}

// Whether a line along an edge of a, in the plane with normal n, has all of b on its outer side.
static bool separated(const Triangle &a, const Triangle &b, Vec3 n, double eps) {
    for (int k = 0; k < 3; ++k) {
        const Vec3 edge = a[(k + 1) % 3] - a[k], inward = (1 / norm(edge)) * cross(n, edge);
        if (std::max({dot(inward, b[0] - a[k]), dot(inward, b[1] - a[k]), dot(inward, b[2] - a[k])}) <= eps) return true;
    }
    return false;
}

static double least(Vec3 h) { return std::min({h.x, h.y, h.z}); }
static double most(Vec3 h) { return std::max({h.x, h.y, h.z}); }

bool triangles_cross(const Triangle &a, const Triangle &b, double eps, bool coplanar) {
    if (!coplanar && is_corner(a[0], b) + is_corner(a[1], b) + is_corner(a[2], b) > 1) return false;
    const Vec3 n = unit_normal(a, eps);
    const Vec3 hb = {height(b[0], n, a, eps), height(b[1], n, a, eps), height(b[2], n, a, eps)};
    if (least(hb) >= 0 || most(hb) <= 0) {
        if (!coplanar || least(hb) < 0 || most(hb) > 0) return false;
        const Vec3 m = unit_normal(b, eps);
        if (dot(n, n) == 0 || dot(m, m) == 0) return false;
        return !(separated(a, b, n, eps) || separated(b, a, m, eps));
    }
    const Vec3 m = unit_normal(b, eps);
    const Vec3 ha = {height(a[0], m, b, eps), height(a[1], m, b, eps), height(a[2], m, b, eps)};
    if (least(ha) >= 0 || most(ha) <= 0) return false;
    Vec3 line = cross(n, m);
    const double length = norm(line);
    if (length == 0) return false;
    line = (1 / length) * line;
    const Vec3 ta = {0.0, dot(line, a[1] - a[0]), dot(line, a[2] - a[0])};
    const Vec3 tb = {dot(line, b[0] - a[0]), dot(line, b[1] - a[0]), dot(line, b[2] - a[0])};
    const Piece pa = piece(ta, ha), pb = piece(tb, hb);
    return std::min(pa.high, pb.high) - std::max(pa.low, pb.low) > eps;
}

static bool boxes_meet(const double *a, const double *b, double margin) {
    for (int axis = 0; axis < 3; ++axis)
        if (!(a[axis] - margin <= b[3 + axis] && b[axis] - margin <= a[3 + axis])) return false;
    return true;
}

static Triangle triangle_of(const In<double, 3> &corners, int64_t t) {
    return {{corner(corners, t, 0), corner(corners, t, 1), corner(corners, t, 2)}};
}

// The triangles of the tree that meet each triangle of the query: counted, and noted from `at` on unless it is empty.
// own: the query is the tree's own triangles, of which only later ones count.
// eps: with the rule BOXES, how far apart boxes may be; otherwise the length that counts as zero.
static void partners(In<double, 3> query, In<double, 2> query_boxes, Tree tree, In<double, 2> tree_boxes, bool own,
                     int64_t rule, double eps, In<int64_t, 1> at, Out<int64_t, 1> counts, Out<int64_t, 2> pairs,
                     int64_t begin, int64_t end) {
    const double margin = rule == BOXES ? eps : 0.0;
    int64_t nodes[STACK];
    for (int64_t i = begin; i < end; ++i) {
        const Triangle a = triangle_of(query, i);
        const double *box = &query_boxes(i, 0);
        int64_t count = 0;
        nodes[0] = 0;
        for (int top = 1; top;) {
            const int64_t node = nodes[--top];
            if ((own && tree.stop(node) <= i + 1) || !boxes_meet(box, &tree.boxes(node, 0), margin)) continue;
            if (tree.right(node)) {
                nodes[top++] = tree.right(node);
                nodes[top++] = node + 1;
                continue;
            }
            for (int64_t t = std::max(tree.start(node), own ? i + 1 : 0); t < tree.stop(node); ++t) {
                if (!boxes_meet(box, &tree_boxes(t, 0), margin)) continue;
                if (rule != BOXES && !triangles_cross(a, triangle_of(tree.corners, t), eps, rule == CROSSING_OR_COPLANAR))
                    continue;
                if (at.shape[0]) {
                    pairs(at(i) + count, 0) = i;
                    pairs(at(i) + count, 1) = t;
                }
                ++count;
            }
        }
        counts(i) = count;
    }
}
EXPORT(crossing_partners, partners)
