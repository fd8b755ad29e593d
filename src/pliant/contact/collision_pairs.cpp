// Vertices and triangles, and pairs of edges, that come near each other on straight paths; see collision_pairs.py.
#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>
#include <vector>

#include "geometry/bvh.h"
#include "native/four.h"

namespace {

constexpr float FAR = std::numeric_limits<float>::max() / 4;
constexpr double CLOSER = 0.1;       // share of the first distance at which a path ends
constexpr double ADVANCE = 0.9;      // of the distance that cannot be covered before the next look
constexpr int MOST_ADVANCES = 2000;
constexpr double IN_PLANE = 1e-10;   // distance from a plane, over the length of an edge, that is rounding
constexpr double ROUNDING = 1e-6;    // of a slack
constexpr double NEARER = 0.75;      // distance, over that at rest, from which what is near at rest is near
constexpr double FLAT = 0.3;         // least cosine between the triangles of a flat fan and their mean
constexpr double FLATTER = 0.6;      // the same of one that stays flat on paths beside a path

// Sorted lists of numbers, one after the other; none at all where nothing is listed.
struct Lists {
    In<int64_t, 1> offsets, items;
    using Fields = Types<In<int64_t, 1>, In<int64_t, 1>>;

    bool has(int64_t k, int64_t wanted) const {
        return items.shape[0] && std::binary_search(items.data + offsets(k), items.data + offsets(k + 1), wanted);
    }
};

// A surface and its tree; triangles are in the tree's order.
struct Sheet {
    In<int64_t, 2> triangles;  // (t, 3)
    In<int64_t, 2> sides;      // (t, 3) the edge from each corner to the next; -1 where it has no length
    In<bool, 2> owned;         // (t, 6) whether a triangle stands for its corners, and for its edges
    In<int64_t, 2> ends;       // (e, 2) of edges
    In<int64_t, 1> right, start, stop;
    In<double, 1> reach;          // (n,) half of the distance that is near
    In<bool, 1> fan;              // (n,) whether the triangles around a vertex are one fan
    In<int64_t, 1> patch;         // (n,) the same for vertices that may pass through each other; -1 for others
    In<double, 2> before, after;  // (n, 3) its vertices
    using Fields = Types<In<int64_t, 2>, In<int64_t, 2>, In<bool, 2>, In<int64_t, 2>, In<int64_t, 1>, In<int64_t, 1>,
                         In<int64_t, 1>, In<double, 1>, In<bool, 1>, In<int64_t, 1>, In<double, 2>, In<double, 2>>;
};

// Bounds along the axes and the diagonals of space, and how what is within moves: single precision, rounded outwards.
// Diagonals keep slanted triangles apart that are near each other: fewer pairs have to be looked at.
struct Swept {
    typedef float Lanes __attribute__((vector_size(32)));
    typedef int64_t Quarters __attribute__((vector_size(32)));
    static constexpr int DIRECTIONS = 7;
    Lanes low = Lanes{} + FAR, high = -low, least = low, most = high;

    // A vertex, and what is near it.
    void at(const Sheet &sheet, int64_t v, double near) {
        const Vec3 x = row3(sheet.before, v), d = row3(sheet.after, v) - x;
        double position[DIRECTIONS], motion[DIRECTIONS];
        along(x, position), along(d, motion);
        low = high = least = most = Lanes{};
        for (int k = 0; k < DIRECTIONS; ++k) {
            const double reach = (k < 3 ? 1.0 : 1.7320508075688774) * near;
            low[k] = down(position[k] - reach), high[k] = up(position[k] + reach);
            least[k] = down(motion[k]), most[k] = up(motion[k]);
        }
    }
    void grow(const Swept &other) {
        low = other.low < low ? other.low : low, high = other.high > high ? other.high : high;
        least = other.least < least ? other.least : least, most = other.most > most ? other.most : most;
    }
    // Whether other bounds, seen from these as both move, come to them.
    bool meets(const Swept &other) const {
        const Lanes none = {};
        const Lanes behind = other.least - most, before = other.most - least;
        const Lanes first = other.low + (behind < none ? behind : none), last = other.high + (before > none ? before : none);
        const auto apart = (first > high) | (low > last);
#ifdef __AVX__
        return !__builtin_ia32_movmskps256((Lanes)apart);
#else
        const auto parts = (Quarters)apart;
        return !(parts[0] | parts[1] | parts[2] | parts[3]);
#endif
    }

   private:
    static void along(Vec3 x, double *out) {
        out[0] = x.x, out[1] = x.y, out[2] = x.z;
        out[3] = x.x + x.y + x.z, out[4] = x.x + x.y - x.z, out[5] = x.x - x.y + x.z, out[6] = x.x - x.y - x.z;
    }
    static float down(double value) { return float(value - 4e-7 * std::abs(value)); }
    static float up(double value) { return float(value + 4e-7 * std::abs(value)); }
};

struct Boxes {
    std::vector<Swept> vertex, edge, triangle, node;

    // slack: (n,) by which those of vertices are larger; none is 0. bare: whether what is near does not matter.
    explicit Boxes(const Sheet &sheet, const double *slack = nullptr, bool bare = false)
        : vertex(size_t(sheet.before.shape[0])), edge(size_t(sheet.ends.shape[0])),
          triangle(size_t(sheet.triangles.shape[0])), node(size_t(sheet.right.shape[0])) {
        for (size_t v = 0; v < vertex.size(); ++v)
            vertex[v].at(sheet, int64_t(v), bare ? 0.0 : sheet.reach(int64_t(v)) + (slack ? slack[v] : 0.0));
        for (size_t e = 0; e < edge.size() && !bare; ++e)
            for (int k = 0; k < 2; ++k) edge[e].grow(vertex[size_t(sheet.ends(int64_t(e), k))]);
        for (size_t t = 0; t < triangle.size(); ++t)
            for (int k = 0; k < 3; ++k) triangle[t].grow(vertex[size_t(sheet.triangles(int64_t(t), k))]);
        for (int64_t n = int64_t(node.size()) - 1; n >= 0; --n) {
            if (sheet.right(n)) {
                node[n].grow(node[n + 1]);
                node[n].grow(node[sheet.right(n)]);
            } else {
                for (int64_t t = sheet.start(n); t < sheet.stop(n); ++t) node[n].grow(triangle[t]);
            }
        }
    }
};

// (n,) fans whose triangles all face the same side, before and after: they do not cross themselves.
// least_cosine: between triangles and their mean.
void flat_fans(const Sheet &sheet, double least_cosine, bool *flat) {
    const int64_t count = sheet.before.shape[0], triangles = sheet.triangles.shape[0];
    std::copy_n(sheet.fan.data, count, flat);
    std::vector<Vec3> normal(static_cast<size_t>(triangles)), sum(static_cast<size_t>(count));
    std::vector<double> least(static_cast<size_t>(count));
    for (const In<double, 2> &x : {sheet.before, sheet.after}) {
        std::fill(sum.begin(), sum.end(), Vec3{0.0, 0.0, 0.0});
        for (int64_t t = 0; t < triangles; ++t) {
            const Vec3 a = row3(x, sheet.triangles(t, 0));
            const Vec3 n = cross(row3(x, sheet.triangles(t, 1)) - a, row3(x, sheet.triangles(t, 2)) - a);
            normal[t] = n / std::max(norm(n), 1e-300);
            for (int k = 0; k < 3; ++k) sum[sheet.triangles(t, k)] = sum[sheet.triangles(t, k)] + normal[t];
        }
        for (int64_t v = 0; v < count; ++v) least[v] = least_cosine * norm(sum[v]);
        for (int64_t t = 0; t < triangles; ++t)
            for (int k = 0; k < 3; ++k) {
                const int64_t v = sheet.triangles(t, k);
                if (!(dot(normal[t], sum[v]) > least[v])) flat[v] = false;
            }
        if (sheet.after.data == sheet.before.data) break;
    }
}

double clamped(double value) { return std::min(std::max(value, 0.0), 1.0); }

struct Parameters {
    double s, t;
};

// Parameters from 0 to 1 of the closest points of two segments (Ericson 2005, section 5.1.9).
Parameters closest_on_segments(Vec3 a, Vec3 u, Vec3 c, Vec3 v) {
    const Vec3 w = a - c;
    const double uu = dot(u, u), uv = dot(u, v), vv = dot(v, v), uw = dot(u, w), vw = dot(v, w);
    const double square = uu * vv - uv * uv;
    double s = square > 1e-14 * uu * vv ? clamped((uv * vw - vv * uw) / square) : 0.0;
    double t = vv > 0 ? (uv * s + vw) / vv : 0.0;
    if (t < 0 || t > 1 || vv == 0) {
        t = clamped(t);
        s = uu > 0 ? clamped((uv * t - uw) / uu) : 0.0;
    }
    return {s, t};
}

// Four points: a vertex and a triangle, or two edges.
struct Four3 {
    Vec3 x[4];
    bool facing;

    // Weights with which the points make the vector from the second of the closest points to the first.
    void weights(double *w) const {
        if (facing) {
            const Foot foot = closest_on_triangle(x[0], x[1], x[2], x[3]);
            w[0] = 1.0, w[1] = -foot.u, w[2] = -foot.v, w[3] = -foot.w;
        } else {
            const Parameters at = closest_on_segments(x[0], x[1] - x[0], x[2], x[3] - x[2]);
            w[0] = 1 - at.s, w[1] = at.s, w[2] = at.t - 1, w[3] = -at.t;
        }
    }
    double distance() const {
        double w[4];
        weights(w);
        return norm(w[0] * x[0] + w[1] * x[1] + w[2] * x[2] + w[3] * x[3]);
    }
};

struct Pair {
    Four3 at;
    Vec3 d[4];       // how they move
    int64_t vertex[4], number[2], patch[4];
    double longest;      // how far the two can come closer, at most
    double reach = INF;  // distance that is near

    bool in_one_patch() const {
        return patch[0] >= 0 && patch[0] == patch[1] && patch[0] == patch[2] && patch[0] == patch[3];
    }

    void relate() {
        const Vec3 mean = 0.25 * (d[0] + d[1] + d[2] + d[3]);
        for (Vec3 &one : d) one = one - mean;
        const double first = at.facing ? norm(d[0]) : std::max(norm(d[0]), norm(d[1]));
        const double second = std::max({at.facing ? norm(d[1]) : 0.0, norm(d[2]), norm(d[3])});
        longest = first + second;
    }

    // When the two come closer than a share of their first distance, and are near; infinite if they do not (Li, Kaufman
    // and Jiang 2021).
    double impact(double distance) const {
        const double end = CLOSER * distance > reach && reach > 0 ? reach : CLOSER * distance;
        if (distance - longest > end) return INF;
        if (!(distance > 0)) return 0.0;
        Four3 now = at;
        double t = 0.0, step = (distance - end) / longest;
        for (int k = 0; k < MOST_ADVANCES; ++k) {
            const double next = t + step;
            if (next > 1) return INF;
            for (int i = 0; i < 4; ++i) now.x[i] = at.x[i] + next * d[i];
            const double apart = now.distance();
            if (k > 0 && apart < end) return t;
            t = next;
            step = ADVANCE * apart / longest;
        }
        return t;
    }
};

// What is found, counted on where there is no space left.
struct Found {
    Out<int64_t, 2> pairs;
    Out<double, 1> distance, impact;
    int64_t count = 0;

    void note(const Pair &pair, double apart, double when) {
        if (count < pairs.shape[0]) {
            for (int k = 0; k < 4; ++k) pairs(count, k) = pair.vertex[k];
            pairs(count, 4) = pair.at.facing, pairs(count, 5) = pair.number[0], pairs(count, 6) = pair.number[1];
            distance(count) = apart, impact(count) = when;
        }
        ++count;
    }
};

// Calls `look` with the triangles whose boxes meet; same: the two surfaces are one. marked: nodes of the first, of which
// one of two has to be if there are any.
template <class Look>
void walk(const Sheet &a, const Boxes &first, const Sheet &b, const Boxes &second, bool same, const Look &look,
          const std::vector<char> &marked = {}) {
    std::vector<std::pair<int64_t, int64_t>> todo = {{0, 0}};
    while (!todo.empty()) {
        const auto [n, m] = todo.back();
        todo.pop_back();
        if (!marked.empty() && !marked[n] && !marked[m]) continue;
        const bool itself = same && n == m;
        if (!itself && !first.node[n].meets(second.node[m])) continue;
        if (!a.right(n) && !b.right(m)) {
            for (int64_t i = a.start(n); i < a.stop(n); ++i) {
                if (!itself && !first.triangle[i].meets(second.node[m])) continue;
                for (int64_t j = itself ? i + 1 : b.start(m); j < b.stop(m); ++j)
                    if (first.triangle[i].meets(second.triangle[j])) look(i, j);
            }
        } else if (itself) {
            todo.insert(todo.end(), {{n + 1, n + 1}, {a.right(n), a.right(n)}, {n + 1, a.right(n)}});
        } else if (!b.right(m) || (a.right(n) && a.stop(n) - a.start(n) >= b.stop(m) - b.start(m))) {
            todo.insert(todo.end(), {{n + 1, m}, {a.right(n), m}});
        } else {
            todo.insert(todo.end(), {{n, m + 1}, {n, b.right(m)}});
        }
    }
}

// Whether two triangles share a vertex whose triangles are a flat fan.
bool in_flat_fan(const Sheet &sheet, const bool *flat, int64_t i, int64_t j) {
    for (int k = 0; k < 3; ++k)
        for (int l = 0; l < 3; ++l)
            if (sheet.triangles(i, k) == sheet.triangles(j, l) && flat[sheet.triangles(i, k)]) return true;
    return false;
}

void put(Pair &pair, int k, const Sheet &sheet, int64_t vertex, int64_t shift) {
    pair.at.x[k] = row3(sheet.before, vertex);
    pair.d[k] = row3(sheet.after, vertex) - pair.at.x[k];
    pair.vertex[k] = vertex + shift, pair.patch[k] = sheet.patch(vertex);
    pair.reach = std::min(pair.reach, 2 * sheet.reach(vertex));
}

// A vertex and a triangle. Shifts: what is added to the vertices of each surface.
Pair facing(const Sheet &one, int64_t v, int64_t v_shift, const Sheet &other, int64_t t, int64_t t_shift) {
    Pair pair;
    pair.at.facing = true;
    pair.number[0] = v, pair.number[1] = t;
    put(pair, 0, one, v, v_shift);
    for (int k = 0; k < 3; ++k) put(pair, k + 1, other, other.triangles(t, k), t_shift);
    pair.relate();
    return pair;
}

// Two edges, of which the second surface's vertices are shifted.
Pair crossing(const Sheet &one, int64_t e, const Sheet &other, int64_t f, int64_t shift) {
    Pair pair;
    pair.at.facing = false;
    pair.number[0] = e, pair.number[1] = f;
    for (int k = 0; k < 2; ++k) put(pair, k, one, one.ends(e, k), 0), put(pair, k + 2, other, other.ends(f, k), shift);
    pair.relate();
    return pair;
}

// Whether a pair is near, or comes all but into touch; then its distance and the time of impact are given.
bool concerns(const Pair &pair, double &distance, double &impact) {
    distance = pair.at.distance();
    if (!(distance - pair.longest <= pair.reach)) return false;
    impact = pair.impact(distance);
    return distance <= pair.reach || impact <= 1;
}

// What is near at rest (n, 3; none: it does not matter) is not near until it is nearer than that.
void reach_as_at_rest(Pair &pair, const In<double, 2> &rest) {
    if (!rest.shape[0]) return;
    Four3 at{{}, pair.at.facing};
    for (int k = 0; k < 4; ++k) at.x[k] = row3(rest, pair.vertex[k]);
    pair.reach = std::min(pair.reach, NEARER * at.distance());
}

// The most that the points of both sides of a pair have, together: a vertex and a triangle, or two edges.
double of_both(const Sheet &sheet, bool facing, int64_t first, int64_t second, const double *of) {
    if (facing) {
        const int64_t *corner = &sheet.triangles(second, 0);
        return of[first] + std::max({of[corner[0]], of[corner[1]], of[corner[2]]});
    }
    const int64_t *e = &sheet.ends(first, 0), *f = &sheet.ends(second, 0);
    return std::max(of[e[0]], of[e[1]]) + std::max(of[f[0]], of[f[1]]);
}

// Whether one of its points is marked.
bool of_any(const Sheet &sheet, bool facing, int64_t first, int64_t second, const bool *marked) {
    if (facing) {
        const int64_t *corner = &sheet.triangles(second, 0);
        return marked[first] || marked[corner[0]] || marked[corner[1]] || marked[corner[2]];
    }
    const int64_t *e = &sheet.ends(first, 0), *f = &sheet.ends(second, 0);
    return marked[e[0]] || marked[e[1]] || marked[f[0]] || marked[f[1]];
}

// Calls `look` with the pairs whose boxes meet, and the triangles that stand for them.
template <class Look>
class Search {
   public:
    // shift: what is added to the vertices of the second surface; 0 if the two are one, which has flat fans (n,).
    Search(const Sheet &a, const Sheet &b, int64_t shift, const Lists &faces, const Lists &edges, const double *slack,
           const bool *flat, const Look &look, const bool *renewed = nullptr)
        : a_(a), b_(b), shift_(shift), faces_(faces), edges_(edges), flat_(flat), renewed_(renewed), look_(look), first_(a, slack) {
        if (shift) second_.emplace_back(b, slack);
    }

    void run() {
        const Boxes &other = shift_ ? second_[0] : first_;
        const auto look = [&](int64_t i, int64_t j) {
            if (shift_ || !in_flat_fan(a_, flat_, i, j)) triangles(i, j, other);
        };
        walk(a_, first_, b_, other, !shift_, look, renewed_ ? marked() : std::vector<char>());
    }

   private:
    // Nodes that have vertices which are renewed.
    std::vector<char> marked() const {
        std::vector<char> found(static_cast<size_t>(a_.right.shape[0]), 0);
        for (int64_t n = a_.right.shape[0] - 1; n >= 0; --n) {
            if (a_.right(n)) {
                found[n] = found[n + 1] || found[a_.right(n)];
                continue;
            }
            for (int64_t t = a_.start(n); t < a_.stop(n); ++t)
                for (int k = 0; k < 3; ++k) found[n] |= char(renewed_[a_.triangles(t, k)]);
        }
        return found;
    }

    void triangles(int64_t i, int64_t j, const Boxes &boxes) {
        const Swept &one = first_.triangle[i], &other = boxes.triangle[j];
        for (int k = 0; k < 3; ++k) {
            const int64_t v = a_.triangles(i, k), w = b_.triangles(j, k);
            if (a_.owned(i, k) && first_.vertex[v].meets(other) && may_meet(v, b_, j, -shift_))
                note(facing(a_, v, 0, b_, j, shift_), i, j);
            if (b_.owned(j, k) && boxes.vertex[w].meets(one) && may_meet(w, a_, i, shift_))
                note(facing(b_, w, shift_, a_, i, 0), i, j);
            if (!a_.owned(i, 3 + k)) continue;
            const int64_t e = a_.sides(i, k);
            const Swept &edge = first_.edge[e];
            if (!edge.meets(other)) continue;
            for (int l = 0; l < 3; ++l) {
                const int64_t f = b_.sides(j, l);
                if (b_.owned(j, 3 + l) && edge.meets(boxes.edge[f]) && may_cross(e, f))
                    note(crossing(a_, e, b_, f, shift_), i, j);
            }
        }
    }

    void note(Pair pair, int64_t i, int64_t j) const {
        if (renewed_ && !std::any_of(pair.vertex, pair.vertex + 4, [&](int64_t v) { return renewed_[v]; })) return;
        look_(pair, i, j);
    }

    // Vertices of two surfaces are never the same.
    bool may_meet(int64_t v, const Sheet &other, int64_t t, int64_t shift) const {
        if (shift) return true;
        for (int k = 0; k < 3; ++k)
            if (v == other.triangles(t, k)) return false;
        return !faces_.has(v, t);
    }

    bool may_cross(int64_t e, int64_t f) const {
        if (shift_) return true;
        for (int k = 0; k < 2; ++k)
            for (int l = 0; l < 2; ++l)
                if (a_.ends(e, k) == b_.ends(f, l)) return false;
        return !edges_.has(e, f);
    }

    const Sheet &a_, &b_;
    const int64_t shift_;
    const Lists &faces_, &edges_;
    const bool *flat_, *renewed_;
    const Look &look_;
    const Boxes first_;
    std::vector<Boxes> second_;
};

// Pairs of two surfaces that are near before, or come all but into touch on their paths. shift: what is added to vertices
// of the second. Returns how many there are; those without space are not noted.
int64_t pairs(Sheet a, Sheet b, int64_t shift, Out<int64_t, 2> noted, Out<double, 1> distance, Out<double, 1> impact) {
    Found found{noted, distance, impact};
    const Lists none{};
    const auto look = [&](const Pair &pair, int64_t, int64_t) {
        double apart, when;
        if (concerns(pair, apart, when)) found.note(pair, apart, when);
    };
    if (a.triangles.shape[0] && b.triangles.shape[0]) Search(a, b, shift, none, none, nullptr, nullptr, look).run();
    return found.count;
}

// Pairs of one surface that may be near, or come all but into touch, on any path within `slack` (n,) of its own: (m, 5)
// whether a vertex and a triangle, their numbers, and two triangles that stand for them. spare: (m,) by how much they stay
// away from what is near. flat: (n,) fans that were left out. The first `known` are there already: those of vertices that
// are `renewed` (n,), as their slack is another, are found anew, and no others; if none are known, all.
// Returns how many there are; those without space are not noted.
int64_t candidates(Sheet sheet, Lists faces, Lists edges, In<double, 2> rest, In<double, 1> slack, In<bool, 1> renewed,
                   int64_t known, Out<bool, 1> flat, Out<int64_t, 2> noted, Out<double, 1> spare) {
    flat_fans(sheet, FLATTER, flat.data);
    if (!sheet.triangles.shape[0]) return 0;
    int64_t count = 0;
    for (int64_t k = 0; k < known; ++k) {
        if (of_any(sheet, noted(k, 0) != 0, noted(k, 1), noted(k, 2), renewed.data)) continue;
        std::copy_n(&noted(k, 0), 5, &noted(count, 0));
        spare(count++) = spare(k);
    }
    const auto look = [&](Pair &pair, int64_t i, int64_t j) {
        const double beyond = pair.at.distance() - pair.longest;
        const double most = of_both(sheet, pair.at.facing, pair.number[0], pair.number[1], slack.data);
        if (!(beyond - pair.reach <= most)) return;
        reach_as_at_rest(pair, rest);
        if (!(beyond - pair.reach <= most)) return;
        if (count < noted.shape[0]) {
            const int64_t row[5] = {pair.at.facing, pair.number[0], pair.number[1], i, j};
            std::copy(row, row + 5, &noted(count, 0));
            spare(count) = beyond - pair.reach;
        }
        ++count;
    };
    Search(sheet, sheet, 0, faces, edges, slack.data, flat.data, look, known ? renewed.data : nullptr).run();
    return count;
}

// Raises what is `away` (n,) to how far points are from where a path is after the share of it that is nearest to all.
void beside(In<double, 2> points, In<double, 2> from, In<double, 2> to, Out<double, 1> away) {
    double along = 0.0, square = 0.0;
    for (int64_t v = 0; v < points.shape[0]; ++v) {
        const Vec3 x = row3(from, v), d = row3(to, v) - x;
        along += dot(row3(points, v) - x, d), square += dot(d, d);
    }
    const double share = square > 0 ? clamped(along / square) : 0.0;
    for (int64_t v = 0; v < points.shape[0]; ++v) {
        const Vec3 x = row3(from, v);
        const double apart = norm(row3(points, v) - x - share * (row3(to, v) - x));
        away(v) = std::isnan(apart) ? HUGE_VAL : std::max(away(v), apart);  // a path that is beside no other
    }
}

// Of candidates (m, 5) for paths within `slack` (n,) of that from `from` to `to`, those that are near before, or come all
// but into touch, sorted: what else is among the candidates does not matter. away: (n,) how far this path is from that.
// Returns how many there are, those without space are not noted; -1 if this path is none of those.
int64_t among(Sheet sheet, In<double, 2> rest, In<int64_t, 2> some, In<double, 1> spare, In<bool, 1> flat,
              In<double, 2> from, In<double, 2> to, In<double, 1> slack, Out<double, 1> away, Out<int64_t, 2> noted,
              Out<double, 1> distance, Out<double, 1> impact) {
    std::fill_n(away.data, away.shape[0], 0.0);
    beside(sheet.before, from, to, away), beside(sheet.after, from, to, away);
    for (int64_t v = 0; v < away.shape[0]; ++v)
        if (!(away(v) <= slack(v))) return -1;
    const std::unique_ptr<bool[]> now(new bool[size_t(flat.shape[0])]);
    flat_fans(sheet, FLAT, now.get());
    for (int64_t v = 0; v < flat.shape[0]; ++v)
        if (flat(v) && !now[size_t(v)]) return -1;
    struct Noted {
        Pair pair;
        double apart, when;
        bool operator<(const Noted &other) const {
            return std::make_tuple(pair.at.facing, pair.number[0], pair.number[1]) <
                   std::make_tuple(other.pair.at.facing, other.pair.number[0], other.pair.number[1]);
        }
    };
    std::vector<Noted> all;
    double reach = 0.0;
    for (int64_t v = 0; v < away.shape[0]; ++v) reach = std::max(reach, sheet.reach(v));
    for (int64_t k = 0; k < some.shape[0]; ++k) {
        const bool faces = some(k, 0) != 0;
        if (spare(k) > of_both(sheet, faces, some(k, 1), some(k, 2), away.data) + ROUNDING * reach) continue;
        if (in_flat_fan(sheet, now.get(), some(k, 3), some(k, 4))) continue;
        Noted one{faces ? facing(sheet, some(k, 1), 0, sheet, some(k, 2), 0)
                        : crossing(sheet, some(k, 1), sheet, some(k, 2), 0)};
        if (one.pair.in_one_patch()) continue;
        reach_as_at_rest(one.pair, rest);
        if (concerns(one.pair, one.apart, one.when)) all.push_back(one);
    }
    std::sort(all.begin(), all.end());
    Found found{noted, distance, impact};
    for (const Noted &one : all) found.note(one.pair, one.apart, one.when);
    return found.count;
}

// Whether an edge goes through a triangle; touching, and what rounding makes of an edge in its plane, do not count.
bool pierces(Vec3 p, Vec3 q, Vec3 a, Vec3 b, Vec3 c) {
    const Vec3 n = cross(b - a, c - a), d = q - p;
    const double before = dot(p - a, n), after = dot(q - a, n), least = IN_PLANE * norm(n) * norm(d);
    if (!((before > least && after < -least) || (before < -least && after > least))) return false;
    const double u = dot(d, cross(a - p, b - p)), v = dot(d, cross(b - p, c - p)), w = dot(d, cross(c - p, a - p));
    return (u > 0 && v > 0 && w > 0) || (u < 0 && v < 0 && w < 0);
}

// Triangles of a surface that cross, without those that share a vertex, as pairs in the tree's order. Returns how many
// there are; those without space are not noted.
int64_t crossings(Sheet sheet, Out<int64_t, 2> noted) {
    if (!sheet.triangles.shape[0]) return 0;
    int64_t count = 0;
    const Boxes boxes(sheet, nullptr, true);
    const auto corner = [&](int64_t t, int k) { return row3(sheet.before, sheet.triangles(t, k % 3)); };
    const auto through = [&](int64_t i, int64_t j) {
        for (int k = 0; k < 3; ++k)
            if (pierces(corner(i, k), corner(i, k + 1), corner(j, 0), corner(j, 1), corner(j, 2))) return true;
        return false;
    };
    walk(sheet, boxes, sheet, boxes, true, [&](int64_t i, int64_t j) {
        for (int k = 0; k < 3; ++k)
            for (int l = 0; l < 3; ++l)
                if (sheet.triangles(i, k) == sheet.triangles(j, l)) return;
        if (!through(i, j) && !through(j, i)) return;
        if (count < noted.shape[0]) noted(count, 0) = std::min(i, j), noted(count, 1) = std::max(i, j);
        ++count;
    });
    return count;
}

}  // namespace

EXPORT(collision_pairs, pairs)
EXPORT(collision_candidates, candidates)
EXPORT(collision_pairs_among, among)
EXPORT(collision_crossings, crossings)

// Distances (m,), unit directions (m, 3) and weights (m, 4) of pairs (m, 5) at points.
static void clearances(In<double, 2> points, In<int64_t, 2> near, Out<double, 1> gap, Out<double, 2> normal,
                       Out<double, 2> weights) {
    for (int64_t k = 0; k < near.shape[0]; ++k) {
        Four3 at;
        at.facing = near(k, 4) == 1;
        for (int i = 0; i < 4; ++i) at.x[i] = row3(points, near(k, i));
        double *w = &weights(k, 0);
        at.weights(w);
        const Vec3 apart = w[0] * at.x[0] + w[1] * at.x[1] + w[2] * at.x[2] + w[3] * at.x[3];
        gap(k) = norm(apart);
        store(normal, k, apart / std::max(gap(k), 1e-300));
    }
}
EXPORT(collision_clearances, clearances)
