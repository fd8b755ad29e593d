// Keeping triangles clear of a sampled distance and of each other.
#include "geometry/simplify_clearance.h"

#include <algorithm>

namespace simplify {

constexpr double MOST_CELLS = 128;  // of the grid that finds triangles, along an axis
constexpr int64_t ENTRIES = 40;     // of that grid's lists, for each triangle
constexpr int64_t FINE = 4000;      // triangles above which a surface is fine enough for quick answers

// The distance at a position, linear between samples; beyond the grid as at its border.
static double sampled(const Space &space, Vec3 p) {
    const In<float, 3> &grid = space.distance;
    double part[3];
    int64_t first[3];
    for (int axis = 0; axis < 3; ++axis) {
        const double at = (p[axis] - space.origin(axis)) / space.cell;
        first[axis] = int64_t(std::min(std::max(0.0, at), double(grid.shape[axis]) - 1.001));
        part[axis] = std::min(std::max(at - double(first[axis]), 0.0), 1.0);
    }
    const auto [i, j, k] = first;
    const auto [u, v, w] = part;
    double near = (1 - v) * ((1 - w) * grid(i, j, k) + w * grid(i, j, k + 1));
    near += v * ((1 - w) * grid(i, j + 1, k) + w * grid(i, j + 1, k + 1));
    double far = (1 - v) * ((1 - w) * grid(i + 1, j, k) + w * grid(i + 1, j, k + 1));
    far += v * ((1 - w) * grid(i + 1, j + 1, k) + w * grid(i + 1, j + 1, k + 1));
    return (1 - u) * near + u * far;
}

// It is cut in four until the distance at its middle decides.
bool clears(const Space &space, const Triangle &t) {
    const Vec3 a = t[0], b = t[1], c = t[2], middle = (a + b + c) / 3;
    const double reach = std::max({norm(a - middle), norm(b - middle), norm(c - middle)});
    const double spare = sampled(space, middle) - space.least;
    if (spare < 0) return false;
    if (spare >= reach || reach < 0.5 * space.cell) return true;
    const Vec3 ab = (a + b) / 2, bc = (b + c) / 2, ca = (c + a) / 2;
    return clears(space, {{ab, bc, ca}}) && clears(space, {{ca, bc, c}}) && clears(space, {{ab, b, bc}}) &&
           clears(space, {{a, ab, ca}});
}

static Bounds bounds_of(const Triangle &a) {
    Bounds bounds;
    for (int axis = 0; axis < 3; ++axis) {
        bounds.low[axis] = std::min({a[0][axis], a[1][axis], a[2][axis]});
        bounds.high[axis] = std::max({a[0][axis], a[1][axis], a[2][axis]});
    }
    return bounds;
}

static void grow(Bounds &bounds, const Bounds &other) {
    for (int axis = 0; axis < 3; ++axis) {
        bounds.low[axis] = std::min(bounds.low[axis], other.low[axis]);
        bounds.high[axis] = std::max(bounds.high[axis], other.high[axis]);
    }
}

static bool meet(const Bounds &a, const Bounds &b) {
    for (int axis = 0; axis < 3; ++axis)
        if (a.low[axis] > b.high[axis] || a.high[axis] < b.low[axis]) return false;
    return true;
}

// Unit normal of a triangle; zero if it has no area.
static Vec3 facing(const Triangle &a) {
    const Vec3 n = cross(a[1] - a[0], a[2] - a[0]);
    return n / std::max(norm(n), 1e-300);
}

static bool within_60_degrees(Vec3 a, Vec3 b) { return dot(a, b) > 0.5; }

Buckets::Cells Buckets::cells(const Bounds &bounds) const {
    Cells found;
    for (int axis = 0; axis < 3; ++axis) {
        const double last = double(shape_[axis] - 1);
        const double low = std::floor((bounds.low[axis] - origin_[axis]) / width_);
        const double high = std::floor((bounds.high[axis] - origin_[axis]) / width_);
        found.low[axis] = int64_t(std::min(std::max(0.0, low), last));
        found.high[axis] = int64_t(std::min(std::max(0.0, high), last));
    }
    return found;
}

// Puts a triangle into the lists of the cells that its box meets; false if they are full.
bool Buckets::list(int64_t t) {
    const Cells met = cells(bounds_[t]);
    int64_t count = 1;
    for (int axis = 0; axis < 3; ++axis) count *= met.high[axis] - met.low[axis] + 1;
    if (entries_.size() + size_t(count) > most_) return false;
    for (int64_t i = met.low[0]; i <= met.high[0]; ++i)
        for (int64_t j = met.low[1]; j <= met.high[1]; ++j)
            for (int64_t k = met.low[2]; k <= met.high[2]; ++k) {
                int32_t &first = heads_[head(i, j, k)];
                entries_.push_back({int32_t(t), first});
                first = int32_t(entries_.size() - 1);
            }
    return true;
}

bool Buckets::enter(const Net &net, int64_t t) {
    const Triangle a = net.triangle(t);
    bounds_[t] = bounds_of(a);
    normals_[t] = facing(a);
    return list(t);
}

void Buckets::fill(const Net &net) {
    const int64_t m = net.triangles.shape[0];
    bounds_.resize(m);
    normals_.resize(m);
    seen_.assign(m, 0);
    question_ = 0;
    Bounds all = {{INF, INF, INF}, {-INF, -INF, -INF}};
    double size = 0.0, extent[3] = {0.0, 0.0, 0.0};
    int64_t living = 0;
    for (int64_t t = 0; t < m; ++t) {
        if (!net.alive(t)) continue;
        ++living;
        const Triangle a = net.triangle(t);
        bounds_[t] = bounds_of(a);
        normals_[t] = facing(a);
        grow(all, bounds_[t]);
        for (int axis = 0; axis < 3; ++axis) size += (bounds_[t].high[axis] - bounds_[t].low[axis]) / 3;
    }
    for (int axis = 0; axis < 3 && living; ++axis) {
        origin_[axis] = all.low[axis];
        extent[axis] = all.high[axis] - all.low[axis];
    }
    const double longest = std::max({extent[0], extent[1], extent[2]});
    width_ = std::max({2 * size / double(std::max<int64_t>(living, 1)), longest / MOST_CELLS, 1e-300});
    for (int axis = 0; axis < 3; ++axis) shape_[axis] = int64_t(std::min(MOST_CELLS, extent[axis] / width_)) + 1;
    heads_.assign(shape_[0] * shape_[1] * shape_[2], -1);
    most_ = size_t(ENTRIES * living + 1000);
    entries_.clear();
    entries_.reserve(most_);
    quick_ = living > FINE;
    for (int64_t t = 0; t < m; ++t)
        if (net.alive(t)) list(t);
}

// Whether triangles cross each other.
static bool tangled(const std::vector<Triangle> &some, double eps) {
    for (size_t k = 0; k < some.size(); ++k)
        for (size_t l = 0; l < k; ++l)
            if (triangles_cross(some[k], some[l], eps, true)) return true;
    return false;
}

bool Buckets::hits(const Triangle &stays, const Bounds &bounds, const std::vector<Triangle> &moved, double eps) const {
    for (size_t k = 0; k < moved.size(); ++k)
        if (meet(moved_bounds_[k], bounds) && triangles_cross(moved[k], stays, eps, true)) return true;
    return false;
}

bool Buckets::crosses(const Net &net, const std::vector<Triangle> &moved, const std::vector<int64_t> &gone, Vec3 n,
                      double eps) {
    bool level = quick_;
    Bounds all = {{INF, INF, INF}, {-INF, -INF, -INF}};
    moved_bounds_.clear();
    for (const Triangle &a : moved) {
        level = level && within_60_degrees(facing(a), n);
        moved_bounds_.push_back(bounds_of(a));
        grow(all, moved_bounds_.back());
    }
    if (!level && tangled(moved, eps)) return true;
    ++question_;
    for (const int64_t t : gone) seen_[t] = question_;
    const Cells met = cells(all);
    for (int64_t i = met.low[0]; i <= met.high[0]; ++i)
        for (int64_t j = met.low[1]; j <= met.high[1]; ++j)
            for (int64_t k = met.low[2]; k <= met.high[2]; ++k)
                for (int32_t entry = heads_[head(i, j, k)]; entry >= 0; entry = entries_[entry].following) {
                    const int64_t t = entries_[entry].triangle;
                    if (!net.alive(t) || seen_[t] == question_) continue;
                    seen_[t] = question_;
                    if (level && within_60_degrees(n, normals_[t])) continue;
                    if (hits(net.triangle(t), bounds_[t], moved, eps)) return true;
                }
    return false;
}

}  // namespace simplify
