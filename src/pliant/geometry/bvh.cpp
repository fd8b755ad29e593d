// Building and refitting the tree of boxes, and closest points; the method is described in bvh.py.
#include "geometry/bvh.h"

#include <algorithm>

constexpr int BINS = 16;
constexpr int DEEPEST_SPLIT = 40;
constexpr double THIN = 1e-8;  // squared height over base of the triangles that are too thin for regions

namespace {
struct Box {
    double low[3] = {INF, INF, INF}, high[3] = {-INF, -INF, -INF};

    void grow(const double *other) {
        for (int axis = 0; axis < 3; ++axis) {
            low[axis] = std::min(low[axis], other[axis]);
            high[axis] = std::max(high[axis], other[3 + axis]);
        }
    }
    void grow(const Box &other) {
        for (int axis = 0; axis < 3; ++axis) {
            low[axis] = std::min(low[axis], other.low[axis]);
            high[axis] = std::max(high[axis], other.high[axis]);
        }
    }
    double half_area() const {
        const double x = high[0] - low[0], y = high[1] - low[1], z = high[2] - low[2];
        return x * y + y * z + z * x;
    }
};
}  // namespace

void triangle_boxes(In<double, 3> corners, Out<double, 2> boxes) {
    for (int64_t t = 0; t < corners.shape[0]; ++t)
        for (int axis = 0; axis < 3; ++axis) {
            const double a = corners(t, 0, axis), b = corners(t, 1, axis), c = corners(t, 2, axis);
            boxes(t, axis) = std::min({a, b, c});
            boxes(t, 3 + axis) = std::max({a, b, c});
        }
}
EXPORT(bvh_triangle_boxes, triangle_boxes)

namespace {
struct Spread {
    int axis = 0;
    double least = 0.0, width = -1.0;
};
}  // namespace

// The axis along which the (doubled) box centres spread most, their least value and their spread.
static Spread longest_axis(In<double, 2> boxes, Out<int64_t, 1> order, int64_t start, int64_t stop) {
    Spread best;
    for (int axis = 0; axis < 3; ++axis) {
        double low = INF, high = -INF;
        for (int64_t k = start; k < stop; ++k) {
            const double centre = boxes(order(k), axis) + boxes(order(k), 3 + axis);
            low = std::min(low, centre);
            high = std::max(high, centre);
        }
        if (high - low > best.width) best = {axis, low, high - low};
    }
    return best;
}

// The bin after which to cut, by the surface-area heuristic.
static int best_cut(const Box *bins, const int64_t *counts) {
    double costs[BINS - 1];
    Box swept;
    int64_t count = 0;
    for (int b = 0; b < BINS - 1; ++b) {
        swept.grow(bins[b]);
        count += counts[b];
        costs[b] = count ? double(count) * swept.half_area() : INF;
    }
    swept = Box();
    count = 0;
    for (int b = BINS - 1; b > 0; --b) {
        swept.grow(bins[b]);
        count += counts[b];
        costs[b - 1] += count ? double(count) * swept.half_area() : INF;
    }
    return int(std::min_element(costs, costs + BINS - 1) - costs);
}

// Reorders order[start:stop] into two sides; returns where the second begins.
static int64_t split(In<double, 2> boxes, Out<int64_t, 1> order, int64_t start, int64_t stop) {
    const int64_t middle = (start + stop) / 2;
    const Spread spread = longest_axis(boxes, order, start, stop);
    const double scale = spread.width > 0 ? BINS / spread.width : INF;
    if (!std::isfinite(scale)) return middle;
    const auto bin_of = [&](int64_t triangle) {
        const double centre = boxes(triangle, spread.axis) + boxes(triangle, 3 + spread.axis);
        return std::min(int((centre - spread.least) * scale), BINS - 1);
    };
    Box bins[BINS];
    int64_t counts[BINS] = {};
    for (int64_t k = start; k < stop; ++k) {
        const int b = bin_of(order(k));
        ++counts[b];
        bins[b].grow(&boxes(order(k), 0));
    }
    const int cut = best_cut(bins, counts);
    int64_t left = start, right = stop - 1;
    while (left <= right) {
        if (bin_of(order(left)) <= cut) ++left;
        else std::swap(order(left), order(right--));
    }
    return start < left && left < stop ? left : middle;
}

// The tree's order of the triangles (m,), and right, start and stop (2 m,) of its nodes; returns how many there are.
static int64_t build(In<double, 2> boxes, Out<int64_t, 1> order, Out<int64_t, 1> right, Out<int64_t, 1> start,
                     Out<int64_t, 1> stop) {
    struct Task {
        int64_t start, stop, parent;  // parent: the node whose right child this is, or -1
        int depth;
    };
    const int64_t m = boxes.shape[0];
    for (int64_t t = 0; t < m; ++t) order(t) = t;
    Task todo[STACK];
    todo[0] = {0, m, -1, 0};
    int top = 1;
    int64_t nodes = 0;
    while (top) {
        const Task task = todo[--top];
        const int64_t node = nodes++;
        start(node) = task.start;
        stop(node) = task.stop;
        right(node) = 0;
        if (task.parent >= 0) right(task.parent) = node;
        if (task.stop - task.start <= LEAF) continue;
        const int64_t cut = task.depth < DEEPEST_SPLIT ? split(boxes, order, task.start, task.stop)
                                                       : (task.start + task.stop) / 2;
        todo[top++] = {cut, task.stop, node, task.depth + 1};
        todo[top++] = {task.start, cut, -1, task.depth + 1};
    }
    return nodes;
}
EXPORT(bvh_build, build)

// (nodes, 6) boxes around the triangles (given in the tree's order), from the leaves up.
static void fit(In<double, 2> triangles, In<int64_t, 1> right, In<int64_t, 1> start, In<int64_t, 1> stop,
                Out<double, 2> boxes) {
    for (int64_t node = right.shape[0] - 1; node >= 0; --node) {
        Box box;
        if (right(node)) {
            box.grow(&boxes(node + 1, 0));
            box.grow(&boxes(right(node), 0));
        } else {
            for (int64_t t = start(node); t < stop(node); ++t) box.grow(&triangles(t, 0));
        }
        for (int axis = 0; axis < 3; ++axis) {
            boxes(node, axis) = box.low[axis];
            boxes(node, 3 + axis) = box.high[axis];
        }
    }
}
EXPORT(bvh_fit, fit)

static double box_distance2(Vec3 p, const In<double, 2> &boxes, int64_t node) {
    const double x = larger(larger(boxes(node, 0) - p.x, 0.0), p.x - boxes(node, 3));
    const double y = larger(larger(boxes(node, 1) - p.y, 0.0), p.y - boxes(node, 4));
    const double z = larger(larger(boxes(node, 2) - p.z, 0.0), p.z - boxes(node, 5));
    return x * x + y * y + z * z;
}

namespace {
struct Along {
    double distance2, t;  // t: how far along the segment, 0 at a, 1 at b
};
}  // namespace

static Along on_segment(Vec3 p, Vec3 a, Vec3 b) {
    const Vec3 ab = b - a, ap = p - a;
    const double length2 = dot(ab, ab);
    const double t = length2 > 0 ? std::min(std::max(dot(ap, ab) / length2, 0.0), 1.0) : 0.0;
    const Vec3 gap = ap - t * ab;
    return {dot(gap, gap), t};
}

// For a triangle that is thin, or flat: the best of its edges and, if it has one, its foot point.
static Foot closest_on_thin(Vec3 p, Vec3 a, Vec3 b, Vec3 c) {
    const Vec3 ab = b - a, ac = c - a, ap = p - a, n = cross(ab, ac);
    const double area2 = dot(n, n), size2 = std::max(dot(ab, ab), dot(ac, ac));
    Foot best = {INF, 1.0, 0.0, 0.0};
    if (area2 > 1e-28 * size2 * size2) {
        const double v = dot(cross(ap, ac), n) / area2, w = dot(cross(ab, ap), n) / area2;
        if (v >= 0 && w >= 0 && v + w <= 1) {
            const Vec3 gap = ap - v * ab - w * ac;
            best = {dot(gap, gap), 1 - v - w, v, w};
            if (area2 > 1e-12 * size2 * size2) return best;
        }
    }
    Along at = on_segment(p, a, b);
    if (at.distance2 < best.distance2) best = {at.distance2, 1 - at.t, at.t, 0.0};
    at = on_segment(p, b, c);
    if (at.distance2 < best.distance2) best = {at.distance2, 0.0, 1 - at.t, at.t};
    at = on_segment(p, c, a);
    if (at.distance2 < best.distance2) best = {at.distance2, at.t, 0.0, 1 - at.t};
    return best;
}

Foot closest_on_triangle(const Vec3 &p, const Vec3 &a, const Vec3 &b, const Vec3 &c) {
    const Vec3 ab = b - a, ac = c - a, ap = p - a;
    const double bb = dot(ab, ab), cc = dot(ac, ac), bc = dot(ab, ac);
    const double longest = std::max(bb, cc);
    if (bb * cc - bc * bc <= THIN * (longest * longest)) return closest_on_thin(p, a, b, c);
    // How far p lies along the edges at a, seen from each of the corners.
    const double ab_a = dot(ab, ap), ac_a = dot(ac, ap);
    const double ab_b = ab_a - bb, ac_b = ac_a - bc, ab_c = ab_a - bc, ac_c = ac_a - cc;
    const double u = ab_b * ac_c - ab_c * ac_b;
    double v = ab_c * ac_a - ab_a * ac_c, w = ab_a * ac_b - ab_b * ac_a;
    if (ab_a <= 0 && ac_a <= 0) {
        v = w = 0.0;
    } else if (ab_b >= 0 && ac_b <= ab_b) {
        v = 1.0, w = 0.0;
    } else if (ac_c >= 0 && ab_c <= ac_c) {
        v = 0.0, w = 1.0;
    } else if (w <= 0 && ab_a >= 0 && ab_b <= 0) {
        v = ab_a / bb, w = 0.0;
    } else if (v <= 0 && ac_a >= 0 && ac_c <= 0) {
        v = 0.0, w = ac_a / cc;
    } else if (u <= 0 && ac_b >= ab_b && ab_c >= ac_c) {
        w = (ac_b - ab_b) / ((ac_b - ab_b) + (ab_c - ac_c));
        const Vec3 gap = ap - ab - w * (ac - ab);
        return {dot(gap, gap), 0.0, 1 - w, w};
    } else {
        const double total = u + v + w;
        v /= total, w /= total;
    }
    const Vec3 gap = ap - v * ab - w * ac;
    return {dot(gap, gap), 1 - v - w, v, w};
}

Found closest_one(Vec3 p, const Tree &tree, double limit2, int64_t guess, double weights[3]) {
    int64_t nodes[STACK];
    double near[STACK];
    Found best = {limit2, -1};
    const auto look = [&](int64_t t) {
        const Foot foot = closest_on_triangle(p, corner(tree.corners, t, 0), corner(tree.corners, t, 1),
                                              corner(tree.corners, t, 2));
        if (foot.distance2 < best.distance2 || (foot.distance2 == best.distance2 && best.triangle < 0)) {
            best = {foot.distance2, t};
            weights[0] = foot.u, weights[1] = foot.v, weights[2] = foot.w;
        }
    };
    if (guess >= 0) look(guess);
    nodes[0] = 0, near[0] = box_distance2(p, tree.boxes, 0);
    int top = 1;
    while (top) {
        int64_t node = nodes[--top];
        if (near[top] > best.distance2 || (near[top] == best.distance2 && best.triangle >= 0)) continue;
        while (tree.right(node)) {
            int64_t first = node + 1, second = tree.right(node);
            double d1 = box_distance2(p, tree.boxes, first), d2 = box_distance2(p, tree.boxes, second);
            if (d2 < d1) std::swap(first, second), std::swap(d1, d2);
            if (d2 <= best.distance2) nodes[top] = second, near[top++] = d2;
            if (d1 > best.distance2) break;
            node = first;
        }
        if (tree.right(node)) continue;
        for (int64_t t = tree.start(node); t < tree.stop(node); ++t) look(t);
    }
    return best;
}

// For each point: squared distance, triangle in the tree's order, barycentric coordinates (q, 3).
static void closest(In<double, 2> points, Tree tree, double limit2, Out<double, 1> distance2, Out<int64_t, 1> triangle,
                    Out<double, 2> weights, int64_t begin, int64_t end) {
    for (int64_t q = begin; q < end; ++q) {
        const Found found = closest_one(row3(points, q), tree, limit2, -1, &weights(q, 0));
        distance2(q) = found.distance2;
        triangle(q) = found.triangle;
    }
}
EXPORT(bvh_closest, closest)
