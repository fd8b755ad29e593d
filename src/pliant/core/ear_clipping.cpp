// The triangulation of concave polygons by clipping ears; the method is described in topology.py.
#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "native/kernel.h"

namespace {

constexpr int64_t LEAF = 8;  // corners in a leaf of the tree, at most twice
constexpr int STACK = 64;    // entries for a depth-first walk: one a level, and one

struct Point {
    double x, y;
    bool operator==(Point other) const { return x == other.x && y == other.y; }
};

// Twice the signed area of a triangle.
double turn(Point a, Point b, Point c) { return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x); }

struct Box {
    double low_x = INF, low_y = INF, high_x = -INF, high_y = -INF;
    void grow(Point p) {
        low_x = std::min(low_x, p.x), high_x = std::max(high_x, p.x);
        low_y = std::min(low_y, p.y), high_y = std::max(high_y, p.y);
    }
    bool misses(const Box &other) const {
        return low_x > other.high_x || low_y > other.high_y || high_x < other.low_x || high_y < other.low_y;
    }
};

struct Triangle {
    Point a, b, c;

    Box box() const {
        Box around;
        for (const Point p : {a, b, c}) around.grow(p);
        return around;
    }
    // Whether a point is inside or on the rim, but at none of the corners.
    bool holds(Point p) const {
        if (p == a || p == b || p == c) return false;
        return turn(a, b, p) >= 0 && turn(b, c, p) >= 0 && turn(c, a, p) >= 0;
    }
};

// Whether a box is on the right of the line from a to b, or is but the point a.
bool beyond(Point a, Point b, const Box &box) {
    const double x = b.x - a.x, y = b.y - a.y;
    if (box.low_x == a.x && box.high_x == a.x && box.low_y == a.y && box.high_y == a.y) return true;
    const double furthest =
        x * ((x > 0 ? box.high_y : box.low_y) - a.y) - y * ((y > 0 ? box.low_x : box.high_x) - a.x);
    const double size = std::abs(x) * std::max(std::abs(box.high_y - a.y), std::abs(box.low_y - a.y)) +
                        std::abs(y) * std::max(std::abs(box.high_x - a.x), std::abs(box.low_x - a.x));
    return furthest < -1e-14 * size;
}

// A k-d tree over the corners of a loop, some of which are marked. Node j has the children 2 j and 2 j + 1; the root is
// 1, and the nodes from 2^depth are leaves.
class MarkedTree {
   public:
    void build(const std::vector<Point> &loop) {
        count = int64_t(loop.size());
        for (depth = 0; count >> depth > LEAF;) ++depth;
        order.resize(count), position.resize(count), boxes.assign(size_t(2) << depth, Box());
        marked.assign(size_t(2) << depth, 0), marks.assign(count, false);
        for (int64_t k = 0; k < count; ++k) order[k] = k;
        for (int level = 0; level <= depth; ++level)
            for (int64_t node = int64_t(1) << level; node < int64_t(2) << level; ++node) split(loop, node, level);
        for (int64_t k = 0; k < count; ++k) position[order[k]] = k;
    }

    void mark(int64_t k, bool on) {
        if (marks[k] == on) return;
        marks[k] = on;
        int64_t node = (int64_t(1) << depth) + (((position[k] + 1) << depth) - 1) / count;
        for (; node; node >>= 1) marked[node] += on ? 1 : -1;
    }

    // Whether a triangle holds a marked corner.
    bool any_in(const std::vector<Point> &loop, const Triangle &triangle) const {
        const Box around = triangle.box();
        const auto &[a, b, c] = triangle;
        int64_t nodes[STACK] = {1};
        for (int top = 1; top;) {
            const int64_t node = nodes[--top];
            const Box &box = boxes[node];
            if (!marked[node] || box.misses(around)) continue;
            if (node >> depth) {
                for (int64_t k = bound(node, depth); k < bound(node + 1, depth); ++k)
                    if (marks[order[k]] && triangle.holds(loop[order[k]])) return true;
            } else if (!(beyond(a, b, box) || beyond(b, c, box) || beyond(c, a, box))) {
                nodes[top++] = 2 * node;
                nodes[top++] = 2 * node + 1;
            }
        }
        return false;
    }

   private:
    int64_t count = 0;
    int depth = 0;
    std::vector<int64_t> order, position, marked;  // corners in the tree's order, their positions in it; marks of nodes
    std::vector<Box> boxes;
    std::vector<char> marks;

    // Where the part of a node at that level begins in the order of corners.
    int64_t bound(int64_t node, int level) const { return (count * (node - (int64_t(1) << level))) >> level; }

    void split(const std::vector<Point> &loop, int64_t node, int level) {
        const auto begin = order.begin() + bound(node, level), end = order.begin() + bound(node + 1, level);
        Box &box = boxes[node];
        for (auto k = begin; k < end; ++k) box.grow(loop[*k]);
        if (level == depth) return;
        const bool wide = box.high_x - box.low_x > box.high_y - box.low_y;
        const auto before = [&](int64_t j, int64_t k) {
            const double a = wide ? loop[j].x : loop[j].y, b = wide ? loop[k].x : loop[k].y;
            return a < b || (std::isnan(b) && !std::isnan(a));  // an order for NaN, too
        };
        std::nth_element(begin, order.begin() + bound(2 * node + 1, level + 1), end, before);
    }
};

// A counter-clockwise loop, from which corners are clipped.
class Clipper {
   public:
    std::vector<Point> loop;

    // The triangles of the loop into rows of `slots`, corners counted from `start`.
    void clip(const Out<int64_t, 2> &slots, int64_t first, int64_t start) {
        begin();
        for (int64_t row = 0; row < count - 2; ++row) {
            int64_t ear = next_ear(count - row);
            if (ear < 0) ear = flattest();
            slots(first + row, 0) = start + before[ear];
            slots(first + row, 1) = start + ear;
            slots(first + row, 2) = start + after[ear];
            remove(ear);
        }
    }

    void begin() {
        count = int64_t(loop.size());
        before.resize(count), after.resize(count), queue.resize(count);
        waiting.assign(count, true), left.assign(count, true);
        taken = 0, queued = count, searched = count, first_left = 0;
        heap.clear(), heaped = false;
        tree.build(loop);
        for (int64_t k = 0; k < count; ++k) {
            queue[k] = k;
            before[k] = k ? k - 1 : count - 1;
            after[k] = k + 1 < count ? k + 1 : 0;
        }
        for (int64_t k = 0; k < count; ++k) tree.mark(k, area(k) <= 0);
    }

    // Whether a corner is convex and its triangle, the rim included, holds no reflex corner.
    // Where a hole is joined to the outline by a bridge, corners coincide and do not block each other.
    bool is_ear(int64_t k) const {
        return area(k) > 0 && !tree.any_in(loop, {loop[before[k]], loop[k], loop[after[k]]});
    }

   private:
    int64_t count = 0;
    std::vector<int64_t> before, after;
    MarkedTree tree;
    std::vector<int64_t> queue;  // filled in a circle, of which `taken` to `queued` wait
    int64_t taken = 0, queued = 0;
    int64_t searched = 0;  // corners that were left when all of them were last queued
    std::vector<char> waiting, left;
    std::vector<std::pair<double, int64_t>> heap;  // areas, some outdated, and their corners; once it is needed
    bool heaped = false;
    int64_t first_left = 0;

    double area(int64_t k) const { return turn(loop[before[k]], loop[k], loop[after[k]]); }

    void enqueue(int64_t k) {
        if (waiting[k]) return;
        queue[queued++ % count] = k;
        waiting[k] = true;
    }

    int64_t next_ear(int64_t remaining) {
        while (true) {
            if (taken == queued) {
                if (remaining > searched - 1 - remaining / 16) return -1;
                searched = remaining, taken = 0, queued = 0;
                for (int64_t k = 0; k < count; ++k)
                    if (left[k]) enqueue(k);
            }
            const int64_t k = queue[taken++ % count];
            waiting[k] = false;
            if (left[k] && is_ear(k)) return k;
        }
    }

    void push(int64_t k) {
        const double size = std::abs(area(k));
        if (std::isnan(size)) return;
        heap.emplace_back(size, k);
        std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }

    // The corner with the smallest triangle; the first one where all areas are beyond the range of doubles.
    int64_t flattest() {
        if (!std::exchange(heaped, true))
            for (int64_t k = 0; k < count; ++k)
                if (left[k]) push(k);
        while (!heap.empty()) {
            std::pop_heap(heap.begin(), heap.end(), std::greater<>());
            const auto [size, k] = heap.back();
            heap.pop_back();
            if (left[k] && size == std::abs(area(k))) return k;
        }
        while (!left[first_left]) ++first_left;
        return first_left;
    }

    void remove(int64_t ear) {
        const int64_t a = before[ear], c = after[ear];
        left[ear] = false, after[a] = c, before[c] = a;
        tree.mark(ear, false);
        for (const int64_t k : {a, c}) {
            tree.mark(k, area(k) <= 0);
            if (heaped) push(k);
            enqueue(k);
        }
    }
};

// For each chosen polygon its triangles, as positions in `points`, into its rows of `slots`; false without the memory.
bool clip_polygons(In<double, 2> points, In<int64_t, 1> offsets, In<int64_t, 1> chosen, In<double, 2> normals,
                   Out<int64_t, 2> slots) {
    try {
        Clipper clipper;
        for (int64_t at = 0; at < chosen.shape[0]; ++at) {
            const int64_t polygon = chosen(at), start = offsets(polygon), end = offsets(polygon + 1);
            int axis = 0;
            for (int k = 1; k < 3; ++k)
                if (std::abs(normals(polygon, k)) > std::abs(normals(polygon, axis))) axis = k;
            int u = (axis + 1) % 3, v = (axis + 2) % 3;
            if (normals(polygon, axis) < 0) std::swap(u, v);
            clipper.loop.clear();
            for (int64_t k = start; k < end; ++k) clipper.loop.push_back({points(k, u), points(k, v)});
            clipper.clip(slots, start - 2 * polygon, start);
        }
    } catch (const std::bad_alloc &) {
        return false;
    }
    return true;
}

// Which corners of a loop (k, 2) are ears.
bool find_ears(In<double, 2> loop, Out<bool, 1> ears) {
    try {
        Clipper clipper;
        for (int64_t k = 0; k < loop.shape[0]; ++k) clipper.loop.push_back({loop(k, 0), loop(k, 1)});
        clipper.begin();
        for (int64_t k = 0; k < loop.shape[0]; ++k) ears(k) = clipper.is_ear(k);
    } catch (const std::bad_alloc &) {
        return false;
    }
    return true;
}

}  // namespace

EXPORT(ear_clip_polygons, clip_polygons)
EXPORT(ear_find, find_ears)
