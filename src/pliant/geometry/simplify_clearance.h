// Where a surface that shrinks may go: clear of something, and not through itself; see simplify.py.
#pragma once

#include <vector>

#include "geometry/crossing.h"

namespace simplify {

struct Space {
    In<float, 3> distance;  // to what the surface keeps clear of, negative inside of it; empty for anywhere
    In<double, 1> origin;   // (3,) the first sample's position
    double cell;
    double least;           // the least distance of the surface
    In<double, 1> pushes;   // how far along the normal a merged vertex is moved if it would be too near, in order
    double size;            // diagonal of everything

    using Fields = Types<In<float, 3>, In<double, 1>, double, double, In<double, 1>, double>;
};

// A triangle surface while it shrinks.
struct Net {
    Out<double, 2> points;
    Out<int64_t, 2> triangles;
    Out<bool, 1> alive;
    Out<double, 2> quadrics;

    using Fields = Types<Out<double, 2>, Out<int64_t, 2>, Out<bool, 1>, Out<double, 2>>;

    Triangle triangle(int64_t t) const {
        return {{row3(points, triangles(t, 0)), row3(points, triangles(t, 1)), row3(points, triangles(t, 2))}};
    }
};

// Whether a whole triangle keeps its distance.
bool clears(const Space &space, const Triangle &a);

struct Bounds {
    double low[3], high[3];
};

// Which triangles may be where: lists of triangles for the cells of a coarse grid over everything.
class Buckets {
   public:
    // The living triangles, in cells of about twice their mean size.
    void fill(const Net &net);

    // A triangle that has moved; false if the lists are full.
    bool enter(const Net &net, int64_t t);

    // Whether triangles in their new positions cross each other or any triangle that stays.
    // gone: their numbers, and those of triangles that disappear. n: their mean normal.
    bool crosses(const Net &net, const std::vector<Triangle> &moved, const std::vector<int64_t> &gone, Vec3 n, double eps);

   private:
    struct Cells {
        int64_t low[3], high[3];
    };
    struct Entry {
        int32_t triangle, following;  // following: the next entry, or -1
    };

    Cells cells(const Bounds &bounds) const;
    bool list(int64_t t);
    int64_t head(int64_t i, int64_t j, int64_t k) const { return (i * shape_[1] + j) * shape_[2] + k; }
    bool hits(const Triangle &stays, const Bounds &bounds, const std::vector<Triangle> &moved, double eps) const;

    int64_t shape_[3] = {0, 0, 0};
    double origin_[3] = {0.0, 0.0, 0.0}, width_ = 1.0;
    std::vector<int32_t> heads_;  // (nx, ny, nz) the first entry of a cell's list, or -1
    std::vector<Entry> entries_;  // those of a triangle that has moved stay, and do no harm
    size_t most_ = 0;             // entries
    std::vector<Bounds> bounds_;  // of the triangles as they are now
    std::vector<Vec3> normals_;   // of unit length, likewise
    std::vector<int64_t> seen_;   // the question in which a triangle was met last
    int64_t question_ = 0;
    // Whether triangles that face one way are taken not to cross: of a fine closed surface, one that faces the other
    // way lies between them. What that misses is found when the surface is checked.
    bool quick_ = false;
    std::vector<Bounds> moved_bounds_;
};

}  // namespace simplify
