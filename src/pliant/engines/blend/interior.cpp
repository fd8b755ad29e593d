// Quality of tetrahedra, and those that are torn; the equations are in interior.py.
#include <algorithm>

#include "native/vec3.h"

namespace {

void tet_quality(In<double, 2> points, In<int64_t, 2> tets, Out<double, 1> quality, int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
        const Vec3 a = row3(points, tets(t, 0));
        const Vec3 b = row3(points, tets(t, 1)) - a, c = row3(points, tets(t, 2)) - a, d = row3(points, tets(t, 3)) - a;
        double square = 0;
        for (const Vec3 edge : {b, c, d, c - b, d - b, d - c}) square += dot(edge, edge) / 6;
        quality(t) = square > 0 ? std::sqrt(2.0) * dot(b, cross(c, d)) / (square * std::sqrt(square)) : 0.0;
    }
}

// The distance of two vertices over that before.
double stretch(In<double, 2> before, In<double, 2> after, int64_t i, int64_t j, double shortest) {
    return norm(row3(after, i) - row3(after, j)) / std::max(norm(row3(before, i) - row3(before, j)), shortest);
}

// Raises `usual` (n) to the largest stretch of the edges at each vertex.
void usual_stretch(In<double, 2> before, In<double, 2> after, In<int64_t, 2> edges, double shortest,
                   Out<double, 1> usual) {
    for (int64_t e = 0; e < edges.shape[0]; ++e) {
        const double found = stretch(before, after, edges(e, 0), edges(e, 1), shortest);
        for (int k = 0; k < 2; ++k) usual(edges(e, k)) = std::max(usual(edges(e, k)), found);
    }
}

// Marks tetrahedra with an edge of the surface's vertices (those of `most`) that stretches more than `most` at both.
void torn(In<double, 2> before, In<double, 2> after, In<int64_t, 2> tets, In<double, 1> most, double shortest,
          Out<bool, 1> found, int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
        for (int a = 0; a < 4; ++a)
            for (int b = a + 1; b < 4; ++b) {
                const int64_t i = tets(t, a), j = tets(t, b);
                if (i >= most.shape[0] || j >= most.shape[0]) continue;
                found(t) |= stretch(before, after, i, j, shortest) > std::max(most(i), most(j));
            }
}

}  // namespace

EXPORT(interior_tet_quality, tet_quality)
EXPORT(interior_usual_stretch, usual_stretch)
EXPORT(interior_torn, torn)
