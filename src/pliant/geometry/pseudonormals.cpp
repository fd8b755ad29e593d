// Normals of faces, edges and vertices, and signed distances by them; the rule is in spatial.py.
#include <algorithm>

#include "geometry/bvh.h"

constexpr double ON_EDGE = 1e-10;  // barycentric coordinate up to which a point of a triangle lies on its edge

static void add(const Out<double, 2> &rows, int64_t i, double weight, Vec3 n) {
    for (int axis = 0; axis < 3; ++axis) rows(i, axis) += weight * n[axis];
}

// Scales to length 1; what has cancelled out becomes zero.
static void to_unit(const Out<double, 2> &rows) {
    for (int64_t k = 0; k < rows.shape[0]; ++k) {
        const double length = norm(row3(rows, k));
        for (int axis = 0; axis < 3; ++axis) rows(k, axis) = length > 1e-9 ? rows(k, axis) / length : 0.0;
    }
}

// Unit normals of the faces (m, 3), edges (e, 3) and vertices (n, 3), which begin as zero and stay so where undefined.
static void pseudonormals(In<double, 2> points, In<int64_t, 2> triangles, In<int64_t, 2> edge_of, Out<double, 2> faces,
                          Out<double, 2> edges, Out<double, 2> vertices) {
    for (int64_t t = 0; t < triangles.shape[0]; ++t) {
        const Vec3 corners[3] = {row3(points, triangles(t, 0)), row3(points, triangles(t, 1)),
                                 row3(points, triangles(t, 2))};
        const Vec3 ab = corners[1] - corners[0], ac = corners[2] - corners[0];
        Vec3 n = cross(ab, ac);
        const double length = norm(n);
        if (length <= 1e-14 * std::max(dot(ab, ab), dot(ac, ac))) continue;
        n = n / length;
        add(faces, t, 1.0, n);
        for (int k = 0; k < 3; ++k) {
            const Vec3 u = corners[(k + 1) % 3] - corners[k], v = corners[(k + 2) % 3] - corners[k];
            add(edges, edge_of(t, k), 1.0, n);
            add(vertices, triangles(t, k), std::atan2(norm(cross(u, v)), dot(u, v)), n);
        }
    }
    to_unit(edges);
    to_unit(vertices);
}
EXPORT(pseudonormals_of, pseudonormals)

namespace {
struct Normals {
    In<double, 2> faces, edges, vertices;
    using Fields = Types<In<double, 2>, In<double, 2>, In<double, 2>>;
};
}  // namespace

namespace {
struct Feature {
    bool is_face;  // the closest point lies within a face
    Vec3 normal;   // of the face, edge or vertex that it lies on
};
}  // namespace

static Feature feature(const double weights[3], int64_t t, const In<int64_t, 2> &triangles,
                       const In<int64_t, 2> &edge_of, const Normals &normals) {
    const Vec3 own = row3(normals.faces, t);
    const int zeros = (weights[0] <= ON_EDGE) + (weights[1] <= ON_EDGE) + (weights[2] <= ON_EDGE);
    if (zeros == 0) return {true, own};
    Vec3 normal = own;
    for (int k = 0; k < 3; ++k) {
        if (zeros == 2 && weights[k] > ON_EDGE) normal = row3(normals.vertices, triangles(t, k));
        else if (zeros == 1 && weights[k] <= ON_EDGE) normal = row3(normals.edges, edge_of(t, (k + 1) % 3));
    }
    return {false, dot(normal, normal) > 0 ? normal : own};
}

// The gradient, from the normal at the closest point and the way from there.
static Vec3 outward(Feature at, Vec3 gap, double signed_distance, double touching) {
    const bool has_normal = dot(at.normal, at.normal) > 0;
    if ((!at.is_face || !has_normal) && std::abs(signed_distance) > touching) return gap / signed_distance;
    return has_normal ? at.normal : Vec3{0.0, 1.0, 0.0};
}

// For each point the signed distance and its gradient (q, 3): the normal, if closer than `touching`.
// Points that follow each other are often near each other: each begins with the triangle found for the one before.
static void signed_distances(In<double, 2> points, Tree tree, In<int64_t, 1> order, In<int64_t, 2> triangles,
                             In<int64_t, 2> edge_of, Normals normals, double touching, Out<double, 1> distances,
                             Out<double, 2> gradients, int64_t begin, int64_t end) {
    int64_t guess = -1;
    double weights[3] = {0.0, 0.0, 0.0};
    for (int64_t q = begin; q < end; ++q) {
        const Vec3 p = row3(points, q);
        const Found found = closest_one(p, tree, INF, guess, weights);
        guess = found.triangle;
        const Feature at = feature(weights, order(guess), triangles, edge_of, normals);
        Vec3 gap = p;
        for (int k = 0; k < 3; ++k) gap = gap - weights[k] * corner(tree.corners, guess, k);
        distances(q) = dot(gap, at.normal) >= 0 ? std::sqrt(found.distance2) : -std::sqrt(found.distance2);
        store(gradients, q, outward(at, gap, distances(q), touching));
    }
}
EXPORT(pseudonormals_signed, signed_distances)
