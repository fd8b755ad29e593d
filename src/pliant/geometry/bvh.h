// A tree of axis-aligned boxes over triangles, and the closest point of a triangle; see bvh.py.
#pragma once

#include "native/vec3.h"

constexpr int STACK = 96;  // entries for a depth-first walk: 40 levels by area and at most 48 more that halve
constexpr int LEAF = 4;

struct Tree {
    In<double, 2> boxes;     // (nodes, 6) lower and upper corner
    In<int64_t, 1> right;    // (nodes,) the right child; 0 for a leaf
    In<int64_t, 1> start;    // (nodes,) first triangle, in the tree's order
    In<int64_t, 1> stop;     // (nodes,) one past the last triangle
    In<double, 3> corners;   // (m, 3, 3) the triangles' corners in the tree's order

    using Fields = Types<In<double, 2>, In<int64_t, 1>, In<int64_t, 1>, In<int64_t, 1>, In<double, 3>>;
};

struct Foot {
    double distance2;
    double u, v, w;  // barycentric coordinates of the closest point; those of an edge are zero
};

struct Found {
    double distance2;
    int64_t triangle;  // in the tree's order, -1 beyond the limit
};

Foot closest_on_triangle(const Vec3 &p, const Vec3 &a, const Vec3 &b, const Vec3 &c);

// The closest triangle within the square root of `limit2`; fills the barycentric weights.
// guess: a triangle that may be near, such as that of a point nearby, which spares looking at farther ones; or -1.
Found closest_one(Vec3 p, const Tree &tree, double limit2, int64_t guess, double weights[3]);

void triangle_boxes(In<double, 3> corners, Out<double, 2> boxes);
