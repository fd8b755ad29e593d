// Near triangles, near edges, and what pairs of them say; the rules are in proximity_kernels.py and proximity.py.
#include <algorithm>
#include <vector>

#include "geometry/bvh.h"

constexpr double PARALLEL = 1e-3;     // squared sine of the angle below which edges have no common normal worth using
constexpr double UPRIGHT = 1 - 1e-9;  // cosine from which a vertex counts as straight above a triangle
constexpr Vec3 NOTHING = {0.0, 0.0, 0.0};

namespace {

// Sorted lists of numbers, one after the other.
struct Lists {
    In<int64_t, 1> offsets, items;

    using Fields = Types<In<int64_t, 1>, In<int64_t, 1>>;

    bool has(int64_t k, int64_t wanted) const {
        return std::binary_search(items.data + offsets(k), items.data + offsets(k + 1), wanted);
    }
};

struct Limits {
    double within, facing, touch;

    using Fields = Types<double, double, double>;
};

struct Edges {
    In<double, 2> points;
    In<int64_t, 2> ends;     // (e, 2) vertices
    In<double, 2> normals;   // (e, 3) of unit length, or zero: edges without a normal find nothing
    In<int64_t, 2> owned;    // (t, 3) edges of the triangles in the tree's order, each once; -1 elsewhere

    using Fields = Types<In<double, 2>, In<int64_t, 2>, In<double, 2>, In<int64_t, 2>>;
};

struct Edge {
    Vec3 a, b, normal;
    int64_t number;
};

// The nearest few, sorted by distance.
class Nearest {
   public:
    Nearest(int64_t *items, double *distance2, int64_t count, double limit2)
        : items_(items), distance2_(distance2), count_(count) {
        std::fill_n(distance2, count, limit2);
    }
    double farthest2() const { return distance2_[count_ - 1]; }

    void insert(double d2, int64_t item) {  // the last entry falls out
        int64_t k = count_ - 1;
        for (; k > 0 && distance2_[k - 1] > d2; --k) distance2_[k] = distance2_[k - 1], items_[k] = items_[k - 1];
        distance2_[k] = d2, items_[k] = item;
    }

   private:
    int64_t *items_;
    double *distance2_;
    int64_t count_;
};

struct Parameters {
    double s, t;
    bool crossing;  // whether the lines are not parallel

    bool within() const { return crossing && 0 <= s && s <= 1 && 0 <= t && t <= 1; }
};

struct Gap {
    double gap;
    Vec3 normal;
};

}  // namespace

// Zero if it has no length, or an infinite one.
static Vec3 unit(Vec3 a) {
    const double length = norm(a);
    return 0 < length && length < INF ? (1 / length) * a : NOTHING;
}

static Vec3 normal_of(Vec3 a, Vec3 b, Vec3 c) { return unit(cross(b - a, c - a)); }

static Vec3 place(const Foot &foot, Vec3 a, Vec3 b, Vec3 c) { return foot.u * a + foot.v * b + foot.w * c; }

// Squared distance between a box and that of a node.
static inline double boxes_apart2(const Vec3 &low, const Vec3 &high, const double *box) {
    const double x = larger(larger(box[0] - high.x, 0.0), low.x - box[3]);
    const double y = larger(larger(box[1] - high.y, 0.0), low.y - box[4]);
    const double z = larger(larger(box[2] - high.z, 0.0), low.z - box[5]);
    return x * x + y * y + z * z;
}

// Calls `look` with the span of triangles of every leaf whose box is nearer to a box than the farthest found so far.
template <class Look>
static inline void walk(const Tree &tree, Vec3 low, Vec3 high, const Nearest &nearest, const Look &look) {
    int64_t nodes[STACK];
    nodes[0] = 0;
    for (int top = 1; top;) {
        const int64_t node = nodes[--top];
        if (!(boxes_apart2(low, high, &tree.boxes(node, 0)) < nearest.farthest2())) continue;
        if (tree.right(node)) {
            nodes[top++] = tree.right(node);
            nodes[top++] = node + 1;
        } else {
            look(tree.start(node), tree.stop(node));
        }
    }
}

// (t, 3) unit normals of triangles (t, 3, 3), or zero.
static void triangle_normals(In<double, 3> corners, Out<double, 2> normals) {
    for (int64_t t = 0; t < corners.shape[0]; ++t)
        store(normals, t, normal_of(corner(corners, t, 0), corner(corners, t, 1), corner(corners, t, 2)));
}
EXPORT(proximity_triangle_normals, triangle_normals)

// Squared distance of a vertex and a triangle that is `height` below it, if they face each other; infinite if not.
static double facing2(Vec3 x, Vec3 normal, Vec3 a, Vec3 b, Vec3 c, Vec3 n, double height, const Limits &limits) {
    const Foot foot = closest_on_triangle(x, a, b, c);
    const double d = std::sqrt(foot.distance2);
    if (d <= limits.touch) return dot(normal, n) < 0 ? foot.distance2 : INF;
    const bool outside = height > limits.facing * d && dot(place(foot, a, b, c) - x, normal) > 0;
    return outside ? foot.distance2 : INF;
}

// (n, most) the nearest triangles to each vertex, in the tree's order and nearest first; `found` begins as -1.
// facing: (t, 3) unit normals of the triangles in the tree's order.
// skipped: for each vertex the triangles that never count, in the tree's order. Vertices without a normal find none.
static void near_triangles(In<double, 2> points, In<double, 2> normals, Tree tree, In<double, 2> facing, Limits limits,
                           Lists skipped, Out<int64_t, 2> found, int64_t begin, int64_t end) {
    std::vector<double> distance2(found.shape[1]);
    for (int64_t v = begin; v < end; ++v) {
        const Vec3 x = row3(points, v), normal = row3(normals, v);
        if (!(dot(normal, normal) > 0)) continue;
        Nearest nearest(&found(v, 0), distance2.data(), found.shape[1], limits.within * limits.within);
        walk(tree, x, x, nearest, [&](int64_t first, int64_t last) {
            for (int64_t t = first; t < last; ++t) {
                const Vec3 a = corner(tree.corners, t, 0), n = row3(facing, t);
                const double height = dot(x - a, n);
                if (!(-limits.touch <= height && height < limits.within) || skipped.has(v, t)) continue;
                const Vec3 b = corner(tree.corners, t, 1), c = corner(tree.corners, t, 2);
                const double d2 = facing2(x, normal, a, b, c, n, height, limits);
                if (d2 < nearest.farthest2()) nearest.insert(d2, t);
            }
        });
    }
}
EXPORT(proximity_near_triangles, near_triangles)

static Gap vertex_gap(Vec3 x, Vec3 a, Vec3 b, Vec3 c, const Foot &foot, double touch) {
    const Vec3 n = normal_of(a, b, c), apart = x - place(foot, a, b, c);
    const double d = std::sqrt(foot.distance2), height = dot(apart, n);
    const bool flat = n == NOTHING;
    if (!(d < INF) || (d <= touch && flat)) return {INF, n};
    if (d <= touch || std::abs(height) >= UPRIGHT * d || (foot.u > 0 && foot.v > 0 && foot.w > 0 && !flat))
        return {height, n};
    if (height < 0) return {INF, n};
    return {d, (1 / d) * apart};
}

// Gap (m,), unit normal (m, 3) and barycentric coordinates (m, 3) of pairs of a vertex and a triangle.
static void gaps(In<double, 2> points, In<int64_t, 2> triangles, In<int64_t, 1> vertex, In<int64_t, 1> triangle,
                 double touch, Out<double, 1> gap, Out<double, 2> normal, Out<double, 2> weights) {
    for (int64_t k = 0; k < vertex.shape[0]; ++k) {
        const int64_t t = triangle(k);
        const Vec3 x = row3(points, vertex(k)), a = row3(points, triangles(t, 0)), b = row3(points, triangles(t, 1)),
                   c = row3(points, triangles(t, 2));
        const Foot foot = closest_on_triangle(x, a, b, c);
        const Gap found = vertex_gap(x, a, b, c, foot, touch);
        gap(k) = found.gap;
        store(normal, k, found.normal);
        store(weights, k, {foot.u, foot.v, foot.w});
    }
}
EXPORT(proximity_gaps, gaps)

// (e, 3) sums of the unit normals of each edge's triangles, made unit; zero where they cancel. They begin as zero.
// triangle_edges: (t, 3) the edge from each corner to the next; -1 where a triangle repeats a corner.
static void edge_normals(In<double, 2> points, In<int64_t, 2> triangles, In<int64_t, 2> triangle_edges,
                         Out<double, 2> normals) {
    for (int64_t t = 0; t < triangles.shape[0]; ++t) {
        const Vec3 n = normal_of(row3(points, triangles(t, 0)), row3(points, triangles(t, 1)),
                                 row3(points, triangles(t, 2)));
        for (int k = 0; k < 3; ++k) {
            const int64_t e = triangle_edges(t, k);
            if (e >= 0) store(normals, e, row3(normals, e) + n);
        }
    }
    for (int64_t e = 0; e < normals.shape[0]; ++e) store(normals, e, unit(row3(normals, e)));
}
EXPORT(proximity_edge_normals, edge_normals)

// Of the points a + s u and c + t v that are closest.
static inline Parameters closest_on_lines(Vec3 a, Vec3 u, Vec3 c, Vec3 v) {
    const Vec3 w = a - c;
    const double uu = dot(u, u), uv = dot(u, v), vv = dot(v, v), uw = dot(u, w), vw = dot(v, w);
    const double square = uu * vv - uv * uv;
    if (!(PARALLEL * uu * vv < square && square < INF)) return {0.0, 0.0, false};
    return {(uv * vw - vv * uw) / square, (uu * vw - uv * uw) / square, true};
}

static double clamped(double value) { return std::min(std::max(value, 0.0), 1.0); }

// Parameters from 0 to 1 of the closest points of two segments (Ericson 2005, section 5.1.9).
static Parameters closest_on_segments(Vec3 a, Vec3 u, Vec3 c, Vec3 v) {
    const Vec3 w = a - c;
    const double uu = dot(u, u), uv = dot(u, v), vv = dot(v, v), uw = dot(u, w), vw = dot(v, w);
    const double square = uu * vv - uv * uv;
    double s = square > 1e-14 * uu * vv ? clamped((uv * vw - vv * uw) / square) : 0.0;
    double t = vv > 0 ? (uv * s + vw) / vv : 0.0;
    if (t < 0 || t > 1 || vv == 0) {
        t = clamped(t);
        s = uu > 0 ? clamped((uv * t - uw) / uu) : 0.0;
    }
    return {s, t, true};
}

static Vec3 apart_at(const Parameters &at, Vec3 a, Vec3 u, Vec3 c, Vec3 v) { return (a + at.s * u) - (c + at.t * v); }

// Squared distance of two crossing edges (normals n and m) that face each other from outside, or infinity.
static inline double edges_face2(Vec3 a, Vec3 b, Vec3 n, Vec3 c, Vec3 d, Vec3 m, const Limits &limits) {
    const Vec3 u = b - a, v = d - c;
    const Parameters at = closest_on_lines(a, u, c, v);
    if (!at.within()) return INF;
    const Vec3 apart = apart_at(at, a, u, c, v);
    const double distance = norm(apart);
    if (distance <= limits.touch) return dot(n, m) < 0 ? distance * distance : INF;
    const bool outside = dot(apart, m) > limits.facing * distance && -dot(apart, n) > limits.facing * distance;
    return outside ? distance * distance : INF;
}

// The edges of a surface in the tree's order, those of a triangle from its first to the next one's first.
static void list_edges(const Edges &edges, const Tree &tree, std::vector<Edge> &listed, std::vector<int64_t> &first) {
    for (int64_t t = 0; t < edges.owned.shape[0]; ++t) {
        first.push_back(int64_t(listed.size()));
        for (int k = 0; k < 3; ++k) {
            const int64_t e = edges.owned(t, k);
            if (e < 0) continue;
            listed.push_back({corner(tree.corners, t, k), corner(tree.corners, t, (k + 1) % 3), row3(edges.normals, e), e});
        }
    }
    first.push_back(int64_t(listed.size()));
}

// (e, most) the nearest edges to each edge that cross it, face it and are not among the edges at its skipped vertices,
// nearest first; `found` begins as -1.
static void near_edges(Edges edges, Tree tree, Limits limits, Lists skipped, Out<int64_t, 2> found, int64_t begin,
                       int64_t end) {
    const double alike = 1 - 2 * limits.facing * limits.facing;  // nothing is far enough above both of two such normals
    std::vector<double> distance2(found.shape[1]);
    std::vector<Edge> listed;
    std::vector<int64_t> firsts;
    list_edges(edges, tree, listed, firsts);
    for (int64_t e = begin; e < end; ++e) {
        const Vec3 a = row3(edges.points, edges.ends(e, 0)), b = row3(edges.points, edges.ends(e, 1));
        const Vec3 n = row3(edges.normals, e);
        if (!(dot(n, n) > 0)) continue;
        const Vec3 low = {std::min(a.x, b.x), std::min(a.y, b.y), std::min(a.z, b.z)};
        const Vec3 high = {std::max(a.x, b.x), std::max(a.y, b.y), std::max(a.z, b.z)};
        Nearest nearest(&found(e, 0), distance2.data(), found.shape[1], limits.within * limits.within);
        walk(tree, low, high, nearest, [&](int64_t first, int64_t last) {
            for (int64_t k = firsts[first]; k < firsts[last]; ++k) {
                const Edge &f = listed[k];
                if (dot(n, f.normal) > alike) continue;
                if (larger(dot(f.a - a, n), dot(f.b - a, n)) < -limits.touch) continue;
                if (larger(dot(a - f.a, f.normal), dot(b - f.a, f.normal)) < -limits.touch) continue;
                const double d2 = edges_face2(a, b, n, f.a, f.b, f.normal, limits);
                if (!(d2 < nearest.farthest2())) continue;
                if (skipped.has(e, edges.ends(f.number, 0)) || skipped.has(e, edges.ends(f.number, 1))) continue;
                nearest.insert(d2, f.number);
            }
        });
    }
}
EXPORT(proximity_near_edges, near_edges)

// outward: what the surface says of the normal's direction. at: filled in.
static Gap edge_gap(Vec3 a, Vec3 b, Vec3 c, Vec3 d, double sign, Vec3 outward, double touch, Parameters &at) {
    const Vec3 u = b - a, v = d - c, n = sign * unit(cross(u, v));
    at = closest_on_lines(a, u, c, v);
    const bool crossing = at.crossing, inside = at.within();
    if (!inside) at = closest_on_segments(a, u, c, v);
    const Vec3 apart = apart_at(at, a, u, c, v);
    const double height = dot(apart, n), distance = norm(apart);
    if (!(crossing && dot(n, outward) > 0 && distance < INF)) return {INF, n};
    if (inside || distance <= touch) return {height, n};
    if (height < 0) return {INF, n};
    return {distance, (1 / distance) * apart};
}

// Gap (m,), unit normal (m, 3) and parameters (m, 2) of pairs (m, 2) of edges.
static void edge_gaps(In<double, 2> points, In<int64_t, 2> edges, In<double, 2> normals, In<int64_t, 2> pairs,
                      In<double, 1> sign, double touch, Out<double, 1> gap, Out<double, 2> normal,
                      Out<double, 2> along) {
    for (int64_t k = 0; k < pairs.shape[0]; ++k) {
        const int64_t e = pairs(k, 0), f = pairs(k, 1);
        const Vec3 outward = row3(normals, f) - row3(normals, e);
        Parameters at;
        const Gap found = edge_gap(row3(points, edges(e, 0)), row3(points, edges(e, 1)), row3(points, edges(f, 0)),
                                   row3(points, edges(f, 1)), sign(k), outward, touch, at);
        gap(k) = found.gap;
        store(normal, k, found.normal);
        along(k, 0) = at.s;
        along(k, 1) = at.t;
    }
}
EXPORT(proximity_edge_gaps, edge_gaps)

// (m,) distance of each vertex from its triangle.
static void pair_distances(In<double, 2> points, In<int64_t, 2> triangles, In<int64_t, 1> vertex,
                           In<int64_t, 1> triangle, Out<double, 1> out) {
    for (int64_t k = 0; k < vertex.shape[0]; ++k) {
        const int64_t t = triangle(k);
        const Foot foot = closest_on_triangle(row3(points, vertex(k)), row3(points, triangles(t, 0)),
                                              row3(points, triangles(t, 1)), row3(points, triangles(t, 2)));
        out(k) = std::sqrt(foot.distance2);
    }
}
EXPORT(proximity_pair_distances, pair_distances)

// (m,) distance between the edges of each pair, given by their vertices (m, 2) and (m, 2).
static void edge_distances(In<double, 2> points, In<int64_t, 2> first, In<int64_t, 2> second, Out<double, 1> out) {
    for (int64_t k = 0; k < first.shape[0]; ++k) {
        const Vec3 a = row3(points, first(k, 0)), c = row3(points, second(k, 0));
        const Vec3 u = row3(points, first(k, 1)) - a, v = row3(points, second(k, 1)) - c;
        out(k) = norm(apart_at(closest_on_segments(a, u, c, v), a, u, c, v));
    }
}
EXPORT(proximity_edge_distances, edge_distances)

// Distances (m,), unit directions (m, 3) and weights (m, 4) of rows of `CollisionFreePath.near` (m, 5); no side is inner.
static void clearances(In<double, 2> points, In<int64_t, 2> near, Out<double, 1> gap, Out<double, 2> normal,
                       Out<double, 2> weights) {
    for (int64_t k = 0; k < near.shape[0]; ++k) {
        const Vec3 a = row3(points, near(k, 0)), b = row3(points, near(k, 1)), c = row3(points, near(k, 2)),
                   d = row3(points, near(k, 3));
        double w[4];
        if (near(k, 4) == 1) {
            const Foot foot = closest_on_triangle(a, b, c, d);
            w[0] = 1.0, w[1] = -foot.u, w[2] = -foot.v, w[3] = -foot.w;
        } else {
            const Parameters at = closest_on_segments(a, b - a, c, d - c);
            w[0] = 1 - at.s, w[1] = at.s, w[2] = at.t - 1, w[3] = -at.t;
        }
        std::copy_n(w, 4, &weights(k, 0));
        const Vec3 apart = w[0] * a + w[1] * b + w[2] * c + w[3] * d;
        gap(k) = norm(apart);
        store(normal, k, apart / std::max(gap(k), 1e-300));
    }
}
EXPORT(proximity_clearances, clearances)
