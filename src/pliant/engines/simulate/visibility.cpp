// How much of a surface stands between two places inside it; what that means is in mls.py.
#include "engines/simulate/visibility.h"

#include "geometry/sweep.h"

constexpr int MOST_CROSSINGS = 32;

namespace {

struct Crossing {
    double fraction;
    int64_t triangle;
};

}  // namespace

static Vec3 normal(const Tree &tree, int64_t t) {
    const Vec3 a = corner(tree.corners, t, 0);
    return cross(corner(tree.corners, t, 1) - a, corner(tree.corners, t, 2) - a);
}

// Fraction at which p + s d meets a triangle; infinite if it does not.
static double meets(Vec3 p, Vec3 d, const Tree &tree, int64_t t) {
    const Vec3 a = corner(tree.corners, t, 0);
    const Vec3 ab = corner(tree.corners, t, 1) - a, ac = corner(tree.corners, t, 2) - a, n = cross(ab, ac);
    const double slope = dot(d, n);
    if (slope == 0) return INF;
    const double s = dot(a - p, n) / slope;
    if (s < 0 || s > 1) return INF;
    const Vec3 at = p + s * d - a;
    const double area2 = dot(n, n), v = dot(cross(at, ac), n) / area2, w = dot(cross(ab, at), n) / area2;
    return v >= 0 && w >= 0 && v + w <= 1 ? s : INF;
}

// Crossings of p + s d, s up to `last`, with the surface, sorted; returns how many.
static int meetings(Vec3 p, Vec3 d, double last, const Tree &tree, Crossing *found) {
    int64_t nodes[STACK];
    nodes[0] = 0;
    int top = 1, count = 0;
    while (top) {
        const int64_t node = nodes[--top];
        if (reaches(p, d, tree.boxes, node, last, 0.0) > last) continue;
        if (tree.right(node)) {
            nodes[top++] = tree.right(node);
            nodes[top++] = node + 1;
            continue;
        }
        for (int64_t t = tree.start(node); t < tree.stop(node); ++t) {
            const double s = meets(p, d, tree, t);
            if (s > last || count == MOST_CROSSINGS) continue;
            int at = count++;
            for (; at > 0 && found[at - 1].fraction > s; --at) found[at] = found[at - 1];
            found[at] = {s, t};
        }
    }
    return count;
}

double hidden(Vec3 node, Vec3 place, int64_t around, const Tree &tree, double eps) {
    const Vec3 d = place - node;
    const double length = norm(d);
    if (length <= eps) return 0.0;
    Crossing found[MOST_CROSSINGS];
    const int count = meetings(node, d, 1 - eps / length, tree, found);
    double total = 0.0;
    Vec3 left = {0.0, 0.0, 0.0};
    for (int k = 0; k < count; ++k) {
        const Vec3 n = normal(tree, found[k].triangle);
        if (dot(d, n) > 0) {
            if (--around == 0) left = n;
        } else if (++around == 1) {
            total += std::min(1.0, 1 - dot(left, n) / std::max(norm(left) * norm(n), 1e-300));
        }
    }
    return around > 0 ? total : 1.0;
}
