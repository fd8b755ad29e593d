// Delaunay tetrahedra of points in general position, by insertion (Bowyer 1981, Watson 1981).
//
// Every point is put into the tetrahedra whose circumsphere contains it: they are removed, and the faces of the cavity
// are joined to it. Outside of the convex hull are tetrahedra with a vertex at infinity, GHOST; one of them contains the
// points beyond its face of the hull. Points are inserted in rounds, each of twice as many random ones as before and in
// the order of a Z-curve (Amenta et al. 2003), so that a walk from the last tetrahedron made is short.
//
// Signs are those of double precision where its error bound allows (Shewchuk 1997), else of long double. Where that is
// not enough either, points are not in general position, and the caller takes another method.
#include <algorithm>
#include <array>
#include <vector>

#include "kernel.h"

namespace {

constexpr int32_t GHOST = -1, NONE = -1;
constexpr double EPSILON = std::numeric_limits<double>::epsilon() / 2;
constexpr double ORIENT_BOUND = 8 * EPSILON, SPHERE_BOUND = 17 * EPSILON;
constexpr double LONG_GAIN = std::numeric_limits<double>::epsilon() / double(std::numeric_limits<long double>::epsilon());
constexpr int FIRST_ROUND = 1000;  // points

struct Tet {
    std::array<int32_t, 4> vertices;    // positively oriented
    std::array<int32_t, 4> neighbours;  // across the face opposite to each vertex

    int corner(int32_t vertex) const { return int(std::find(vertices.begin(), vertices.end(), vertex) - vertices.begin()); }
    bool is_ghost() const { return corner(GHOST) < 4; }
};

// The determinant of three rows, and what it would be without cancellation.
template <class R>
R determinant(const R (&a)[3], const R (&b)[3], const R (&c)[3], R &magnitude) {
    const R yz[2] = {b[1] * c[2], b[2] * c[1]}, zx[2] = {b[2] * c[0], b[0] * c[2]}, xy[2] = {b[0] * c[1], b[1] * c[0]};
    magnitude = std::fabs(a[0]) * (std::fabs(yz[0]) + std::fabs(yz[1])) + std::fabs(a[1]) * (std::fabs(zx[0]) + std::fabs(zx[1])) +
                std::fabs(a[2]) * (std::fabs(xy[0]) + std::fabs(xy[1]));
    return a[0] * (yz[0] - yz[1]) + a[1] * (zx[0] - zx[1]) + a[2] * (xy[0] - xy[1]);
}

template <class R>
int sign(R value, R error) {
    return value > error ? 1 : value < -error ? -1 : 0;
}

class Triangulation {
   public:
    explicit Triangulation(const In<double, 2> &points) : points_(points) {}
    bool build();
    int64_t write(const Out<int64_t, 2> &found) const;

   private:
    template <class R>
    void row(int32_t of, int32_t from, R (&out)[3]) const {
        for (int k = 0; k < 3; ++k) out[k] = R(points_(of, k)) - R(points_(from, k));
    }
    template <class R>
    int orient_in(int32_t a, int32_t b, int32_t c, int32_t d, R bound) const;
    template <class R>
    int sphere_in(const std::array<int32_t, 4> &corners, int32_t p, R bound) const;
    int orient(int32_t a, int32_t b, int32_t c, int32_t d) const;
    int orient_with(const Tet &tet, int corner, int32_t p) const;
    bool conflicts(int32_t t, int32_t p) const;
    std::vector<int32_t> order() const;
    bool begin(std::vector<int32_t> &order);
    int32_t located(int32_t p) const;
    bool insert(int32_t p);
    bool join(const std::vector<int32_t> &made, int32_t p);
    int32_t fresh();

    In<double, 2> points_;
    std::vector<Tet> tets_;
    std::vector<int32_t> free_;
    std::vector<int64_t> seen_;  // 2 k: in the cavity of the k-th point, 2 k + 1: beside it
    std::vector<int32_t> cavity_, made_;
    struct Edge {
        int32_t low, high, tet, face;
    };
    std::vector<Edge> edges_;
    int64_t step_ = 0;
    int32_t last_ = 0;
};

// 1 if d is on the side of a, b, c from which they are seen to turn left.
template <class R>
int Triangulation::orient_in(int32_t a, int32_t b, int32_t c, int32_t d, R bound) const {
    R rows[3][3], magnitude;
    row(b, a, rows[0]), row(c, a, rows[1]), row(d, a, rows[2]);
    const R value = determinant(rows[0], rows[1], rows[2], magnitude);
    return sign(value, bound * magnitude);
}

int Triangulation::orient(int32_t a, int32_t b, int32_t c, int32_t d) const {
    const int quick = orient_in<double>(a, b, c, d, ORIENT_BOUND);
    return quick ? quick : orient_in<long double>(a, b, c, d, ORIENT_BOUND / LONG_GAIN);
}

// 1 if p is in the circumsphere.
template <class R>
int Triangulation::sphere_in(const std::array<int32_t, 4> &corners, int32_t p, R bound) const {
    R rows[4][3], value = 0, error = 0;
    for (int k = 0; k < 4; ++k) row(corners[k], p, rows[k]);
    for (int k = 0; k < 4; ++k) {
        const R(&own)[3] = rows[k];
        const R square = own[0] * own[0] + own[1] * own[1] + own[2] * own[2];
        R magnitude;
        const R minor = determinant(rows[(k + 1) & 3], rows[(k + 2) & 3], rows[(k + 3) & 3], magnitude);
        value += k & 1 ? -square * minor : square * minor;
        error += square * magnitude;
    }
    return sign(value, bound * error);
}

// The orientation of a tetrahedron with a point in place of one corner.
int Triangulation::orient_with(const Tet &tet, int corner, int32_t p) const {
    std::array<int32_t, 4> v = tet.vertices;
    v[corner] = p;
    return orient(v[0], v[1], v[2], v[3]);
}

bool Triangulation::conflicts(int32_t t, int32_t p) const {
    const Tet &tet = tets_[t];
    if (tet.is_ghost()) {
        const int ghost = tet.corner(GHOST), side = orient_with(tet, ghost, p);
        return side ? side > 0 : conflicts(tet.neighbours[ghost], p);
    }
    const int quick = sphere_in<double>(tet.vertices, p, SPHERE_BOUND);
    return (quick ? quick : sphere_in<long double>(tet.vertices, p, SPHERE_BOUND / LONG_GAIN)) > 0;
}

// Rounds of ever more points, each along a Z-curve.
std::vector<int32_t> Triangulation::order() const {
    const int64_t count = points_.shape[0];
    double low[3], scale = 0;
    for (int k = 0; k < 3; ++k) {
        double high = low[k] = points_(0, k);
        for (int64_t i = 1; i < count; ++i) low[k] = std::min(low[k], points_(i, k)), high = std::max(high, points_(i, k));
        scale = std::max(scale, high - low[k]);
    }
    const auto spread = [](uint64_t x) {  // two zeros after every bit of 21
        x = (x | x << 32) & 0x1f00000000ffffull;
        x = (x | x << 16) & 0x1f0000ff0000ffull;
        x = (x | x << 8) & 0x100f00f00f00f00full;
        x = (x | x << 4) & 0x10c30c30c30c30c3ull;
        return (x | x << 2) & 0x1249249249249249ull;
    };
    std::vector<std::pair<uint64_t, int32_t>> keyed(count);
    uint64_t state = 1;
    for (int64_t i = 0; i < count; ++i) {
        uint64_t code = 0;
        for (int k = 0; k < 3; ++k)
            code |= spread(uint64_t((points_(i, k) - low[k]) / (scale > 0 ? scale : 1) * 2097151)) << k;
        keyed[i] = {code, int32_t(i)};
    }
    for (int64_t i = count - 1; i > 0; --i) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        std::swap(keyed[i], keyed[int64_t((state >> 33) % uint64_t(i + 1))]);
    }
    for (int64_t begin = 0, size = FIRST_ROUND; begin < count; begin += size, size = begin)
        std::sort(keyed.begin() + begin, keyed.begin() + std::min(begin + size, count));
    std::vector<int32_t> found(count);
    for (int64_t i = 0; i < count; ++i) found[i] = keyed[i].second;
    return found;
}

// A first tetrahedron, as large as is soon found, and the four outside of it; takes its points off the order.
bool Triangulation::begin(std::vector<int32_t> &order) {
    const auto best = [&](auto size) {
        double most = 0;
        int32_t found = NONE;
        for (int32_t p : order)
            if (const double here = size(p); here > most) most = here, found = p;
        return found;
    };
    const int32_t a = order[0];
    double u[3], v[3], w[3], magnitude;
    const int32_t b = best([&](int32_t p) { return row(p, a, u), u[0] * u[0] + u[1] * u[1] + u[2] * u[2]; });
    if (b == NONE) return false;
    row(b, a, u);
    const int32_t c = best([&](int32_t p) {
        row(p, a, v);
        const double n[3] = {u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]};
        return n[0] * n[0] + n[1] * n[1] + n[2] * n[2];
    });
    if (c == NONE) return false;
    row(c, a, v);
    const int32_t d = best([&](int32_t p) { return row(p, a, w), std::fabs(determinant(u, v, w, magnitude)); });
    if (d == NONE || !orient(a, b, c, d)) return false;
    const bool left = orient(a, b, c, d) > 0;
    tets_.push_back({{a, left ? b : c, left ? c : b, d}, {1, 2, 3, 4}});
    for (int k = 0; k < 4; ++k) {  // the ghosts: beyond the face, so two of its corners change places
        Tet ghost{tets_[0].vertices, {}};
        const int i = (k + 1) & 3, j = (k + 2) & 3;
        ghost.vertices[k] = GHOST;
        std::swap(ghost.vertices[i], ghost.vertices[j]);
        for (int l = 0; l < 4; ++l) {  // opposite to the corner of index m in the first is the ghost 1 + m
            const int m = l == i ? j : l == j ? i : l;
            ghost.neighbours[l] = l == k ? 0 : 1 + m;
        }
        tets_.push_back(ghost);
    }
    seen_.assign(5, -1);
    order.erase(std::remove_if(order.begin(), order.end(), [&](int32_t p) { return p == a || p == b || p == c || p == d; }),
                order.end());
    return true;
}

// A tetrahedron that contains the point, or beyond whose face of the hull it is; NONE if there is no way.
int32_t Triangulation::located(int32_t p) const {
    int32_t t = last_, from = NONE;
    for (size_t steps = 0; steps <= tets_.size(); ++steps) {
        const Tet &tet = tets_[t];
        if (tet.is_ghost()) {
            if (from != NONE) return t;
            t = tet.neighbours[tet.corner(GHOST)];
            continue;
        }
        int next = NONE;
        for (int k = 0; k < 4 && next == NONE; ++k) {
            const int turned = (k + int(steps)) & 3;  // not always the same first: no way goes round for ever
            if (tet.neighbours[turned] != from && orient_with(tet, turned, p) < 0) next = turned;
        }
        if (next == NONE) return t;
        from = t;
        t = tet.neighbours[next];
    }
    return NONE;
}

int32_t Triangulation::fresh() {
    if (free_.empty()) {
        tets_.push_back({});
        seen_.push_back(-1);
        return int32_t(tets_.size() - 1);
    }
    const int32_t t = free_.back();
    free_.pop_back();
    return t;
}

bool Triangulation::insert(int32_t p) {
    const int32_t first = located(p);
    if (first == NONE || !conflicts(first, p)) return false;
    const int64_t inside = 2 * ++step_, beside = inside + 1;
    cavity_.assign(1, first);
    made_.clear();
    seen_[first] = inside;
    for (size_t at = 0; at < cavity_.size(); ++at) {
        const int32_t t = cavity_[at];
        for (int k = 0; k < 4; ++k) {
            const int32_t other = tets_[t].neighbours[k];
            if (seen_[other] == inside) continue;
            if (seen_[other] != beside) {
                seen_[other] = conflicts(other, p) ? inside : beside;
                if (seen_[other] == inside) {
                    cavity_.push_back(other);
                    continue;
                }
            }
            const int32_t fill = fresh();
            tets_[fill].vertices = tets_[t].vertices;
            tets_[fill].vertices[k] = p;
            tets_[fill].neighbours = {NONE, NONE, NONE, NONE};
            tets_[fill].neighbours[k] = other;
            auto &back = tets_[other].neighbours;
            *std::find(back.begin(), back.end(), t) = fill;
            made_.push_back(fill);
        }
    }
    if (!join(made_, p)) return false;
    free_.insert(free_.end(), cavity_.begin(), cavity_.end());
    for (const int32_t t : cavity_) tets_[t].vertices = {NONE, NONE, NONE, NONE}, seen_[t] = -1;
    last_ = made_[0];
    return true;
}

// Makes those neighbours that share a face with the point, which is one with an edge of the cavity's surface.
bool Triangulation::join(const std::vector<int32_t> &made, int32_t p) {
    edges_.clear();
    for (const int32_t t : made) {
        const auto &v = tets_[t].vertices;
        const int top = tets_[t].corner(p);
        if (!tets_[t].is_ghost() && orient(v[0], v[1], v[2], v[3]) <= 0) return false;
        for (int k = 0; k < 4; ++k) {
            if (k == top) continue;
            int32_t ends[2], found = 0;
            for (int l = 0; l < 4; ++l)
                if (l != k && l != top) ends[found++] = v[l];
            edges_.push_back({std::min(ends[0], ends[1]), std::max(ends[0], ends[1]), t, k});
        }
    }
    std::sort(edges_.begin(), edges_.end(),
              [](const Edge &a, const Edge &b) { return a.low != b.low ? a.low < b.low : a.high < b.high; });
    if (edges_.size() % 2) return false;
    for (size_t k = 0; k < edges_.size(); k += 2) {
        const Edge &a = edges_[k], &b = edges_[k + 1];
        const bool third = k + 2 < edges_.size() && edges_[k + 2].low == a.low && edges_[k + 2].high == a.high;
        if (a.low != b.low || a.high != b.high || third) return false;
        tets_[a.tet].neighbours[a.face] = b.tet;
        tets_[b.tet].neighbours[b.face] = a.tet;
    }
    return true;
}

bool Triangulation::build() {
    std::vector<int32_t> points = order();
    tets_.reserve(8 * points.size() + 100);
    seen_.reserve(8 * points.size() + 100);
    if (!begin(points)) return false;
    for (const int32_t p : points)
        if (!insert(p)) return false;
    return true;
}

// How many there are, of which as many are written as there is room.
int64_t Triangulation::write(const Out<int64_t, 2> &found) const {
    int64_t count = 0;
    for (const Tet &tet : tets_) {
        if (*std::min_element(tet.vertices.begin(), tet.vertices.end()) < 0) continue;  // a ghost, or removed
        if (count < found.shape[0])
            for (int k = 0; k < 4; ++k) found(count, k) = tet.vertices[k];
        ++count;
    }
    return count;
}

}  // namespace

// The number of tetrahedra; -1 if the points are not in general position.
static int64_t tetrahedra(In<double, 2> points, Out<int64_t, 2> found) {
    if (points.shape[0] < 4) return -1;
    Triangulation made(points);
    return made.build() ? made.write(found) : -1;
}
EXPORT(delaunay, tetrahedra)
