// Delaunay tetrahedra of points in general position, by insertion (Bowyer 1981, Watson 1981).
//
// Every point is put into the tetrahedra whose circumsphere contains it: they are removed, and the faces of the cavity
// are joined to it. Outside of the convex hull are tetrahedra with a vertex at infinity, GHOST; one of them contains the
// points beyond its face of the hull. Points are inserted in rounds, each of twice as many random ones as before and in
// the order of a Z-curve (Amenta et al. 2003), so that a walk from the last tetrahedron made is short.
//
// Coordinates are whole numbers, so that their differences are exact. Signs of determinants are those of double precision
// where its error bound allows, else of exact sums of doubles (Shewchuk 1997). A point on a sphere counts as outside; where
// that leaves a flat tetrahedron, as of points that coincide, there is no result, and the caller takes another method.
#include <algorithm>
#include <array>
#include <new>
#include <vector>

#include "kernel.h"

namespace {

constexpr int32_t GHOST = -1, NONE = -1;
constexpr double EPSILON = std::numeric_limits<double>::epsilon() / 2;
constexpr double ORIENT_BOUND = 8 * EPSILON, SPHERE_BOUND = 17 * EPSILON;
constexpr double WHOLE = double(1ll << 50);  // the largest coordinate
constexpr double LARGEST = 1e100, SMALLEST = 1e-100;
constexpr int64_t MOST_POINTS = 1 << 27;  // whose tetrahedra have numbers of 32 bits
constexpr int FIRST_ROUND = 1000;         // points

struct Tet {
    std::array<int32_t, 4> vertices;    // positively oriented
    std::array<int32_t, 4> neighbours;  // across the face opposite to each vertex

    int corner(int32_t vertex) const { return int(std::find(vertices.begin(), vertices.end(), vertex) - vertices.begin()); }
    bool is_ghost() const { return corner(GHOST) < 4; }
};

// A result in double precision, and what it would be without cancellation.
struct Rounded {
    double value, size;

    explicit Rounded(double given) : value(given), size(std::fabs(given)) {}
    Rounded(double value, double size) : value(value), size(size) {}
    Rounded operator+(const Rounded &other) const { return {value + other.value, size + other.size}; }
    Rounded operator-(const Rounded &other) const { return {value - other.value, size + other.size}; }
    Rounded operator*(const Rounded &other) const { return {value * other.value, size * other.size}; }
};

// An exact number: the sum of doubles that do not overlap, the largest last.
struct Exact {
    std::vector<double> parts;

    Exact() = default;
    explicit Exact(double given) : parts(1, given) {}
    void add(double more) {
        size_t kept = 0;
        for (const double part : parts) {
            const double sum = more + part, other = sum - more, rest = (more - (sum - other)) + (part - other);
            more = sum;
            if (rest != 0) parts[kept++] = rest;
        }
        parts.resize(kept);
        if (more != 0) parts.push_back(more);
    }
    void add_product(double a, double b) {
        const double product = a * b;
        add(std::fma(a, b, -product));
        add(product);
    }
    Exact operator+(Exact other) const {
        for (const double part : parts) other.add(part);
        return other;
    }
    Exact operator-(const Exact &other) const {
        Exact found = *this;
        for (const double part : other.parts) found.add(-part);
        return found;
    }
    Exact operator*(const Exact &other) const {
        Exact found;
        for (const double a : parts)
            for (const double b : other.parts) found.add_product(a, b);
        return found;
    }
};

template <class R>
R determinant(const std::array<R, 3> &a, const std::array<R, 3> &b, const std::array<R, 3> &c) {
    return a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0]);
}

template <class R>
R lifted_minor(const std::array<R, 3> &own, const std::array<R, 3> &a, const std::array<R, 3> &b, const std::array<R, 3> &c) {
    return (own[0] * own[0] + own[1] * own[1] + own[2] * own[2]) * determinant(a, b, c);
}

class Triangulation {
   public:
    explicit Triangulation(const In<double, 2> &points);
    bool build();
    int64_t write(const Out<int64_t, 2> &found) const;

   private:
    double at(int32_t point, int axis) const { return coordinates_[3 * size_t(point) + axis]; }
    template <class R>
    std::array<R, 3> from(int32_t origin, int32_t to) const {
        return {R(at(to, 0) - at(origin, 0)), R(at(to, 1) - at(origin, 1)), R(at(to, 2) - at(origin, 2))};
    }
    template <class R>
    R volume(int32_t a, int32_t b, int32_t c, int32_t d) const;
    template <class R>
    R depth(const std::array<int32_t, 4> &corners, int32_t p) const;
    int orient(int32_t a, int32_t b, int32_t c, int32_t d) const;
    int orient_with(const Tet &tet, int corner, int32_t p) const;
    bool conflicts(int32_t t, int32_t p) const;
    std::vector<int32_t> order() const;
    bool begin(std::vector<int32_t> &order);
    int32_t located(int32_t p) const;
    bool insert(int32_t p);
    bool join(const std::vector<int32_t> &made, int32_t p);
    int32_t fresh();

    std::vector<double> coordinates_;
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

Triangulation::Triangulation(const In<double, 2> &points) : coordinates_(points.size()) {
    double low[3], range = 0;
    for (int k = 0; k < 3; ++k) {
        double high = low[k] = points(0, k);
        for (int64_t i = 1; i < points.shape[0]; ++i)
            low[k] = std::min(low[k], points(i, k)), high = std::max(high, points(i, k));
        range = std::max(range, high - low[k]);
    }
    const double scale = WHOLE / (range > SMALLEST ? range : 1);
    for (int64_t i = 0; i < points.shape[0]; ++i)
        for (int k = 0; k < 3; ++k) coordinates_[3 * i + k] = std::round((points(i, k) - low[k]) * scale);
}

// Above zero if d is on the side of a, b, c from which they are seen to turn left.
template <class R>
R Triangulation::volume(int32_t a, int32_t b, int32_t c, int32_t d) const {
    return determinant(from<R>(a, b), from<R>(a, c), from<R>(a, d));
}

// Above zero if p is in the circumsphere.
template <class R>
R Triangulation::depth(const std::array<int32_t, 4> &corners, int32_t p) const {
    const auto a = from<R>(p, corners[0]), b = from<R>(p, corners[1]), c = from<R>(p, corners[2]), d = from<R>(p, corners[3]);
    return (lifted_minor(a, b, c, d) - lifted_minor(b, c, d, a)) + (lifted_minor(c, d, a, b) - lifted_minor(d, a, b, c));
}

// -1, 0 or 1. exact: gives the same in exact numbers.
template <class F>
int sign(const Rounded &quick, double bound, F exact) {
    if (std::fabs(quick.value) > bound * quick.size) return quick.value > 0 ? 1 : -1;
    const Exact slow = exact();
    return slow.parts.empty() || slow.parts.back() == 0 ? 0 : slow.parts.back() > 0 ? 1 : -1;
}

int Triangulation::orient(int32_t a, int32_t b, int32_t c, int32_t d) const {
    return sign(volume<Rounded>(a, b, c, d), ORIENT_BOUND, [&] { return volume<Exact>(a, b, c, d); });
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
    return sign(depth<Rounded>(tet.vertices, p), SPHERE_BOUND, [&] { return depth<Exact>(tet.vertices, p); }) > 0;
}

// Rounds of ever more points, each along a Z-curve.
std::vector<int32_t> Triangulation::order() const {
    const int64_t count = int64_t(coordinates_.size() / 3);
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
        for (int k = 0; k < 3; ++k) code |= spread(uint64_t(at(int32_t(i), k) / WHOLE * 2097151)) << k;
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
    using Vector = std::array<double, 3>;
    const auto square = [](const Vector &v) { return v[0] * v[0] + v[1] * v[1] + v[2] * v[2]; };
    const int32_t b = best([&](int32_t p) { return square(from<double>(a, p)); });
    if (b == NONE) return false;
    const Vector u = from<double>(a, b);
    const int32_t c = best([&](int32_t p) {
        const Vector v = from<double>(a, p);
        return square({u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]});
    });
    if (c == NONE) return false;
    const int32_t d = best([&](int32_t p) { return std::fabs(volume<double>(a, b, c, p)); });
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

// The number of tetrahedra; -1 if there is no result.
static int64_t tetrahedra(In<double, 2> points, Out<int64_t, 2> found) {
    if (points.shape[0] < 4 || points.shape[0] >= MOST_POINTS || points.shape[1] != 3) return -1;
    for (int64_t i = 0; i < points.size(); ++i)
        if (!(std::fabs(points.data[i]) < LARGEST)) return -1;
    try {
        Triangulation made(points);
        return made.build() ? made.write(found) : -1;
    } catch (const std::bad_alloc &) {
        return -1;
    }
}
EXPORT(delaunay, tetrahedra)
