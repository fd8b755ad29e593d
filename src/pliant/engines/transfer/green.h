// Green coordinates of a group of points at a time; the equations are in green.py.
#pragma once

#include <vector>

#include "engines/transfer/lanes.h"
#include "native/vec3.h"

struct Surface {                 // a cage
    In<double, 2> points;        // (c, 3)
    In<int64_t, 2> edges;        // (e, 2)
    In<double, 1> length;        // (e,) ℓ
    In<double, 2> tangent;       // (e, 3) t, from the first end to the second
    In<int64_t, 2> triangles;    // (f, 3)
    In<int64_t, 2> sides;        // (f, 3) the edge from corner l to l + 1
    In<double, 2> normal;        // (f, 3) n
    In<double, 1> double_area;   // (f,)
    In<double, 3> outward;       // (f, 3, 3) m, in the triangle's plane, for each side
    In<double, 2> height;        // (f, 3) H over each side
    In<double, 3> gram;          // (f, 3, 3) m_l · m_q

    using Fields = Types<In<double, 2>, In<int64_t, 2>, In<double, 1>, In<double, 2>, In<int64_t, 2>, In<int64_t, 2>,
                         In<double, 2>, In<double, 1>, In<double, 3>, In<double, 2>, In<double, 3>>;

    int64_t size() const { return points.shape[0] + triangles.shape[0]; }
    Vec3 m(int64_t t, int l) const { return corner(outward, t, l); }
    Vec3 gram_row(int64_t t, int l) const { return corner(gram, t, l); }
    int64_t opposite(int64_t t, int l) const { return triangles(t, (l + 2) % 3); }
};

struct SeenVertex {
    Lanes a[3], r;
};

struct SeenEdge {
    Lanes D, X, base[3], square;  // square of the base
    Lanes log;                    // Λ
};

struct NearEdge {
    int64_t count;  // of the lanes in which the edge is near; the rest means nothing where that is 0
    bool lane[LANES];
    Lanes Y;
};

struct SeenTriangle {
    Lanes d, angle;  // Ω
};

// What a group of points sees: room for it, used again for the next group.
struct Seen {
    std::vector<SeenVertex> vertices;
    std::vector<SeenEdge> edges;
    std::vector<NearEdge> near;
    std::vector<SeenTriangle> triangles;

    explicit Seen(const Surface &surface);
};

// All that the coordinates of points begin to begin + count (at most LANES) are made of; lanes beyond see what the last
// one sees. through: the triangle by which a point that is not inside is entered, whose solid angle then takes up what
// all of them lack of 4π; -1 for those inside.
void look(const In<double, 2> &points, int64_t begin, int64_t count, const Surface &surface,
          const In<int64_t, 1> *through, Seen &seen);

// φ and ψ into (c + f,).
void green_values(const Surface &surface, const Seen &seen, Lanes *table);

// Winding numbers about `count` points.
void windings(const Seen &seen, int64_t count, double *out);
