// Edge collapses in the order of their quadric error; the rules are in simplify.py.
#include <algorithm>
#include <queue>
#include <tuple>

#include "geometry/simplify_clearance.h"

namespace simplify {
namespace {

constexpr size_t MOST_AROUND = 128;  // triangles around a vertex, at most, for it to be moved
constexpr double TURNING = 0.2;      // cosine of the turn, about 80°, that a triangle may make at most in one collapse
constexpr double SLIVER = 0.08;      // height over longest edge, about, that a moved triangle has at least
constexpr double TOUCH = 1e-11;      // depth, over the diagonal, from which on triangles cross

using Numbers = std::vector<int64_t>;

struct Best {
    Vec3 position;
    double error;
};

// Where vertices v and w, merged, have the least error, held weakly at the edge's middle, and that error.
// The quadric (xx, xy, xz, yy, yz, zz, x, y, z, 1) is taken about the origin; the system is solved by Cramer's rule.
Best best_position(const Net &net, int64_t v, int64_t w) {
    double quadric[10];
    for (int e = 0; e < 10; ++e) quadric[e] = net.quadrics(v, e) + net.quadrics(w, e);
    const auto [xx, xy, xz, yy, yz, zz, x, y, z, one] = quadric;
    const Vec3 p = row3(net.points, v), q = row3(net.points, w), m = (p + q) / 2;
    const double hold = 1e-3 * (xx + yy + zz), a = xx + hold, d = yy + hold, f = zz + hold;
    const double r0 = -(x + xx * m.x + xy * m.y + xz * m.z);
    const double r1 = -(y + xy * m.x + yy * m.y + yz * m.z);
    const double r2 = -(z + xz * m.x + yz * m.y + zz * m.z);
    const double c0 = d * f - yz * yz, c1 = xz * yz - xy * f, c2 = xy * yz - xz * d;
    const double det = a * c0 + xy * c1 + xz * c2;
    Vec3 step = {0.0, 0.0, 0.0};
    if (det > 0) {
        step.x = (r0 * c0 + r1 * c1 + r2 * c2) / det;
        step.y = (r0 * c1 + r1 * (a * f - xz * xz) + r2 * (xy * xz - a * yz)) / det;
        step.z = (r0 * c2 + r1 * (xy * xz - a * yz) + r2 * (a * d - xy * xy)) / det;
    }
    const double span = dot(p - q, p - q);
    if (!(dot(step, step) <= span)) step = {0.0, 0.0, 0.0};
    const Vec3 g = m + step;
    const double error = g.x * (xx * g.x + 2 * (xy * g.y + xz * g.z + x)) + g.y * (yy * g.y + 2 * (yz * g.z + y)) +
                         g.z * (zz * g.z + 2 * z) + one;
    return {g, error + hold * span / 4};
}

Vec3 area_vector(const Triangle &a) { return cross(a[1] - a[0], a[2] - a[0]); }

// Whether triangles that move turn too far, or become slivers.
bool folds(const std::vector<Triangle> &before, const std::vector<Triangle> &after) {
    for (size_t k = 0; k < before.size(); ++k) {
        const Triangle &a = after[k];
        const Vec3 old = area_vector(before[k]), now = area_vector(a);
        const double longest = std::max({norm(a[1] - a[0]), norm(a[2] - a[1]), norm(a[0] - a[2])});
        if (dot(old, now) < TURNING * norm(old) * norm(now) || norm(now) < SLIVER * (longest * longest)) return true;
    }
    return false;
}

// Mean normal of triangles, of unit length.
Vec3 outward(const std::vector<Triangle> &some) {
    Vec3 n = {0.0, 0.0, 0.0};
    for (const Triangle &a : some) n = n + area_vector(a);
    return n / std::max(norm(n), 1e-300);
}

int64_t count_shared(const Numbers &a, const Numbers &b, Numbers &shared) {
    shared.clear();
    for (const int64_t x : a)
        for (const int64_t y : b)
            if (x == y) shared.push_back(x);
    return int64_t(shared.size());
}

struct Edge {
    double cost;
    int64_t v, w, stamp_v, stamp_w;  // stamps: of the vertices when the cost was found

    bool operator>(const Edge &other) const {
        return std::tie(cost, v, w, stamp_v, stamp_w) >
               std::tie(other.cost, other.v, other.w, other.stamp_v, other.stamp_w);
    }
};

using Queue = std::priority_queue<Edge, std::vector<Edge>, std::greater<Edge>>;

class Collapse {
   public:
    Collapse(const Net &net, const Space &space);
    int64_t until(int64_t most);

   private:
    bool around(int64_t v, Numbers &found) const;
    void neighbours(int64_t v, const Numbers &triangles, Numbers &found) const;
    bool keeps_topology(int64_t v, int64_t w);
    bool find_position(int64_t v, int64_t w, Vec3 &position);
    void put_ring(int64_t v, int64_t w, Vec3 position);
    bool merge(int64_t v, int64_t w, Vec3 position);
    Edge edge(int64_t v, int64_t w) const { return {best_position(net_, v, w).error, v, w, stamp_[v], stamp_[w]}; }
    Queue edges() const;
    void queue_around(int64_t v, Queue &queue);

    Net net_;
    Space space_;
    bool anywhere_;
    // The triangles around a vertex are a linked list of corners: corner 3 t + k is vertex k of triangle t, first_[v]
    // starts the list of v and following_ goes on, to -1.
    Numbers first_, following_, stamp_;
    Buckets buckets_;
    Numbers around_v_, around_w_, near_v_, near_w_, both_, dropped_, gone_, ring_;
    std::vector<Triangle> before_, after_;  // the ring's, with both vertices where they are, and merged
};

Collapse::Collapse(const Net &net, const Space &space) : net_(net), space_(space), anywhere_(!space.distance.size()) {
    const int64_t m = net.triangles.shape[0], n = net.points.shape[0];
    first_.assign(n, -1);
    following_.assign(3 * m, -1);
    stamp_.assign(n, 0);
    for (int64_t t = m - 1; t >= 0; --t)
        for (int k = 0; k < 3; ++k) {
            int64_t &first = first_[net.triangles(t, k)];
            following_[3 * t + k] = first;
            first = 3 * t + k;
        }
}

// The living triangles around a vertex; false if there are too many.
bool Collapse::around(int64_t v, Numbers &found) const {
    found.clear();
    for (int64_t corner = first_[v]; corner >= 0; corner = following_[corner]) {
        if (!net_.alive(corner / 3)) continue;
        if (found.size() == MOST_AROUND) return false;
        found.push_back(corner / 3);
    }
    return true;
}

// The vertices that share an edge with v.
void Collapse::neighbours(int64_t v, const Numbers &triangles, Numbers &found) const {
    found.clear();
    for (const int64_t t : triangles)
        for (int k = 0; k < 3; ++k) {
            const int64_t w = net_.triangles(t, k);
            if (w != v && std::find(found.begin(), found.end(), w) == found.end()) found.push_back(w);
        }
}

// Whether the surface stays a closed manifold of the same kind without the edge; finds the triangles that disappear
// and the ring of those that move.
bool Collapse::keeps_topology(int64_t v, int64_t w) {
    if (!around(v, around_v_) || !around(w, around_w_)) return false;
    neighbours(v, around_v_, near_v_);
    neighbours(w, around_w_, near_w_);
    if (count_shared(near_v_, near_w_, both_) != 2 || count_shared(around_v_, around_w_, dropped_) != 2) return false;
    for (const int64_t s : both_)
        if (around(s, ring_) && ring_.size() < 4) return false;
    gone_ = around_v_;
    gone_.insert(gone_.end(), around_w_.begin(), around_w_.end());
    ring_.clear();
    for (const int64_t t : gone_)
        if (t != dropped_[0] && t != dropped_[1]) ring_.push_back(t);
    return true;
}

// Fills in the ring's triangles with v and w at a new position.
void Collapse::put_ring(int64_t v, int64_t w, Vec3 position) {
    after_ = before_;
    for (size_t r = 0; r < ring_.size(); ++r)
        for (int k = 0; k < 3; ++k) {
            const int64_t u = net_.triangles(ring_[r], k);
            if (u == v || u == w) after_[r].corners[k] = position;
        }
}

// Where v and w can be merged, if anywhere: at the best position, or pushed outwards from it.
bool Collapse::find_position(int64_t v, int64_t w, Vec3 &position) {
    const Vec3 best = best_position(net_, v, w).position;
    before_.clear();
    for (const int64_t t : ring_) before_.push_back(net_.triangle(t));
    if (anywhere_) {
        position = best;
        put_ring(v, w, position);
        return !folds(before_, after_);
    }
    const Vec3 n = outward(before_);
    for (int64_t k = 0; k < space_.pushes.shape[0]; ++k) {
        position = best + space_.pushes(k) * n;
        put_ring(v, w, position);
        if (folds(before_, after_)) continue;
        if (!std::all_of(after_.begin(), after_.end(), [&](const Triangle &a) { return clears(space_, a); })) continue;
        if (!buckets_.crosses(net_, after_, gone_, n, TOUCH * space_.size)) return true;
    }
    return false;
}

// Puts w into v, at a position; false if the buckets are full.
bool Collapse::merge(int64_t v, int64_t w, Vec3 position) {
    for (const int64_t t : dropped_) net_.alive(t) = false;
    int64_t last = first_[w];
    for (int64_t corner = last; corner >= 0; corner = following_[corner]) {
        net_.triangles(corner / 3, corner % 3) = v;
        last = corner;
    }
    following_[last] = first_[v];
    first_[v] = first_[w];
    first_[w] = -1;
    store(net_.points, v, position);
    for (int e = 0; e < 10; ++e) net_.quadrics(v, e) += net_.quadrics(w, e);
    ++stamp_[v];
    ++stamp_[w];
    if (anywhere_) return true;
    return std::all_of(ring_.begin(), ring_.end(), [&](int64_t t) { return buckets_.enter(net_, t); });
}

Queue Collapse::edges() const {
    std::vector<Edge> found;
    for (int64_t t = 0; t < net_.triangles.shape[0]; ++t)
        for (int k = 0; k < 3; ++k) {
            const int64_t v = net_.triangles(t, k), w = net_.triangles(t, (k + 1) % 3);
            if (net_.alive(t) && v < w) found.push_back(edge(v, w));
        }
    return Queue(std::greater<Edge>(), std::move(found));
}

void Collapse::queue_around(int64_t v, Queue &queue) {
    if (!around(v, around_v_)) return;
    neighbours(v, around_v_, near_v_);
    for (const int64_t u : near_v_) queue.push(edge(std::min(u, v), std::max(u, v)));
}

// An edge that could not be collapsed is tried again after the others, as long as that helps.
int64_t Collapse::until(int64_t most) {
    int64_t left = net_.triangles.shape[0], before = -1, filled = left;
    if (!anywhere_) buckets_.fill(net_);
    while (left > most && left != before) {
        before = left;
        Queue queue = edges();
        while (left > most && !queue.empty()) {
            const Edge next = queue.top();
            queue.pop();
            if (stamp_[next.v] != next.stamp_v || stamp_[next.w] != next.stamp_w) continue;
            Vec3 position;
            if (!keeps_topology(next.v, next.w) || !find_position(next.v, next.w, position)) continue;
            const bool entered = merge(next.v, next.w, position);
            left -= 2;
            if (!anywhere_ && (!entered || 2 * left < filled)) {
                buckets_.fill(net_);
                filled = left;
            }
            queue_around(next.v, queue);
        }
    }
    return left;
}

}  // namespace

// Collapses edges, the cheapest first, until at most so many triangles are left, or no more can go; how many are left.
static int64_t collapse(Net net, Space space, int64_t most) { return Collapse(net, space).until(most); }

}  // namespace simplify

EXPORT(simplify_collapse, simplify::collapse)
