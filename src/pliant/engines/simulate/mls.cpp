// Moving least squares: nodes in bins, and their functions at places; the equations are in mls.py.
#include "engines/simulate/mls.h"

#include <algorithm>
#include <memory>

#include "engines/simulate/visibility.h"

constexpr double FLAT = 1e-9;         // determinant of the nodes' spread over the cube of its mean: in a plane below
constexpr double COINCIDENT = 1e-12;  // spread of the nodes over the square of their reach: below, they are one
constexpr double FARTHEST = 14.0;     // square of a place's distance from its nodes' middle over their spread
constexpr double ENOUGH = 1.9;        // sum of the weights up to which supports grow; about 2.3 deep inside
constexpr int BINNED = 3;             // steps for which the nodes' bins suffice, as mls.py makes them
constexpr double GROWTH = 1.2;        // of the supports, step by step; as in mls.py
constexpr int STEPS = 28;
constexpr int SEEING = 7;      // steps of larger supports after which hidden nodes are taken as well
constexpr double RIDGE = 1e-3;  // added to the diagonal of M over its first entry where no support was large enough

namespace {

struct Grid {
    In<double, 1> low;
    double size;
    In<int64_t, 1> shape;
    using Fields = Types<In<double, 1>, double, In<int64_t, 1>>;
};

struct Nodes {
    In<double, 2> points;
    In<double, 1> radii;
    using Fields = Types<In<double, 2>, In<double, 1>>;
};

struct Sight {
    In<double, 2> seen;     // (p, 3) the places, or the nearest places of the surface for those outside
    In<int64_t, 1> around;  // (n,) surfaces around each node; 0 for one that is seen from everywhere
    In<double, 1> depth;    // (n,) distance of each node from the surface
    Tree tree;
    double eps;  // distance that counts as zero
    using Fields = Types<In<double, 2>, In<int64_t, 1>, In<double, 1>, Tree, double>;
};

struct Span {
    const int64_t *members;  // null: all nodes from the first
    int64_t count;
};

// What is known of one place: nodes within reach, and then those that count, with their weights and functions.
struct Place {
    Vec3 x;
    int64_t near = 0;
    int64_t found[MOST];
    double r[MOST], veil[MOST];  // relative distance, and by how much it is enlarged because the node is hidden

    int64_t count = 0;
    double h = 0.0;  // unit of length of the basis
    int64_t chosen[MOST];
    double P[MOST][4], w[MOST], dw[MOST][3], M[4][4];
    double phi[MOST], gradient[MOST][3];
};

}  // namespace

// Nodes listed by the bins, cubes of a grid, that their supports `reach` overlap: where each bin's members start, and
// the members as far as there is room; returns how many there are. Without room, `start` only counts.
static int64_t bins(In<double, 2> points, In<double, 1> reach, Grid grid, Out<int64_t, 1> start,
                    Out<int64_t, 1> members) {
    const auto visit = [&](const auto &each) {
        for (int64_t n = 0; n < points.shape[0]; ++n) {
            int64_t first[3], last[3];
            for (int axis = 0; axis < 3; ++axis) {
                const double x = points(n, axis), low = grid.low(axis);
                first[axis] = std::max(int64_t((x - reach(n) - low) / grid.size), int64_t(0));
                last[axis] = std::min(int64_t((x + reach(n) - low) / grid.size), grid.shape(axis) - 1);
            }
            for (int64_t i = first[0]; i <= last[0]; ++i)
                for (int64_t j = first[1]; j <= last[1]; ++j)
                    for (int64_t k = first[2]; k <= last[2]; ++k) each((i * grid.shape(1) + j) * grid.shape(2) + k, n);
        }
    };
    const int64_t count = start.shape[0] - 1;
    std::fill_n(start.data, count + 1, 0);
    visit([&](int64_t bin, int64_t) { ++start(bin + 1); });
    for (int64_t bin = 0; bin < count; ++bin) start(bin + 1) += start(bin);
    const int64_t total = start(count);
    if (members.shape[0] < total) return total;
    visit([&](int64_t bin, int64_t n) { members(start(bin)++) = n; });
    for (int64_t bin = count; bin > 0; --bin) start(bin) = start(bin - 1);
    start(0) = 0;
    return total;
}
EXPORT(mls_bins, bins)

// The nodes whose supports overlap the bin that x lies in.
static Span bin_at(Vec3 x, const Grid &grid, const In<int64_t, 1> &start, const In<int64_t, 1> &members) {
    int64_t at = 0;
    for (int axis = 0; axis < 3; ++axis) {
        const double i = (x[axis] - grid.low(axis)) / grid.size;
        if (x[axis] < grid.low(axis) || !(i < double(grid.shape(axis)))) return {members.data, 0};
        at = at * grid.shape(axis) + int64_t(i);
    }
    return {members.data + start(at), start(at + 1) - start(at)};
}

// w of Eq. (8), with r < 1.
static double weight(double r) { return 1 - r * r * (6 - r * (8 - 3 * r)); }

// Adds the candidates at relative distances `low` to `high`, and how much each is hidden, to those found so far.
// blind: take hidden nodes for seen.
static void look_around(Place &at, const Nodes &nodes, Span candidates, double low, double high, const Sight &sight,
                        Vec3 seen, bool blind) {
    for (int64_t c = 0; c < candidates.count && at.near < MOST; ++c) {
        const int64_t n = candidates.members ? candidates.members[c] : c;
        const Vec3 node = row3(nodes.points, n), away = node - at.x;
        const double d2 = dot(away, away), distance = std::sqrt(d2) / nodes.radii(n);
        if (distance < low || distance >= high) continue;
        double veil = 0.0;
        if (!blind && sight.around(n) > 0 && d2 > sight.depth(n) * sight.depth(n))
            veil = hidden(node, seen, sight.around(n), sight.tree, sight.eps);
        if (!(veil < 1)) continue;
        at.found[at.near] = n;
        at.r[at.near] = distance;
        at.veil[at.near++] = veil;
    }
}

// Σ w with all supports `grown` times as large.
static double total_weight(const Place &at, double grown) {
    double total = 0.0;
    for (int64_t c = 0; c < at.near; ++c) {
        const double s = at.r[c] / grown + at.veil[c];
        if (s < 1) total += weight(s);
    }
    return total;
}

// The growth between two bounds at which the weights are enough: it changes continuously with the place.
static double just_enough(const Place &at, double low, double high) {
    for (int k = 0; k < 24; ++k) {
        const double middle = (low + high) / 2;
        (total_weight(at, middle) < ENOUGH ? low : high) = middle;
    }
    return high;
}

// The nodes with a weight, their basis and weights, and M.
static void weigh(Place &at, const Nodes &nodes, double grown) {
    at.h = 0.0;
    int64_t kept = 0;
    for (int64_t c = 0; c < at.near; ++c) {
        const int64_t n = at.found[c];
        const double s = at.r[c] / grown + at.veil[c];
        if (s >= 1) continue;
        const double reach = grown * nodes.radii(n), slope = -12 * (1 - s) * (1 - s);  // of w by s, over s
        at.h = std::max(at.h, reach);
        at.w[kept] = weight(s);
        at.chosen[kept] = n;
        at.P[kept][0] = 1.0;
        for (int axis = 0; axis < 3; ++axis) {
            const double away = nodes.points(n, axis) - at.x[axis];
            at.P[kept][1 + axis] = away;
            at.dw[kept][axis] = -slope * away / (reach * reach);
        }
        ++kept;
    }
    for (int64_t c = 0; c < kept; ++c)
        for (int axis = 0; axis < 3; ++axis) at.P[c][1 + axis] /= at.h;
    at.count = kept;
    fit_moments(at.P, at.w, kept, at.M);
}

// Whether the nodes that M was summed over spread in all directions, with the place among them.
static bool well_posed(const double M[4][4]) {
    if (M[0][0] <= 0) return false;
    const double m0 = M[0][1] / M[0][0], m1 = M[0][2] / M[0][0], m2 = M[0][3] / M[0][0];
    const double a = M[1][1] / M[0][0] - m0 * m0, b = M[2][2] / M[0][0] - m1 * m1, c = M[3][3] / M[0][0] - m2 * m2;
    const double d = M[1][2] / M[0][0] - m0 * m1, e = M[1][3] / M[0][0] - m0 * m2, f = M[2][3] / M[0][0] - m1 * m2;
    const double determinant = a * (b * c - f * f) - d * (d * c - f * e) + e * (d * f - b * e);
    const double mean = (a + b + c) / 3;
    if (a + b + c <= COINCIDENT || determinant <= FLAT * (mean * mean * mean)) return false;
    double away = (m0 * m0 * (b * c - f * f) + m1 * m1 * (a * c - e * e) + m2 * m2 * (a * b - d * d)) / determinant;
    away += 2 * (m0 * m1 * (e * f - d * c) + m0 * m2 * (d * f - b * e) + m1 * m2 * (d * e - a * f)) / determinant;
    return away <= FARTHEST;
}

// Supports as large as the place needs.
static void surround(Place &at, const Nodes &nodes, Span near, const Sight &sight, Vec3 seen) {
    const Span everyone = {nullptr, nodes.points.shape[0]};
    double before = 0.0, grown = 1.0;
    at.near = at.count = 0;
    for (int step = 0; step < STEPS; ++step) {
        const bool blind = step > SEEING;
        look_around(at, nodes, step < BINNED ? near : everyone, before, grown, sight, seen, blind);
        const bool last = step == STEPS - 1 || at.near == MOST;
        if (last || total_weight(at, grown) >= ENOUGH) {
            weigh(at, nodes, step == 0 || last ? grown : just_enough(at, before, grown));
            if (at.count >= 4 && well_posed(at.M)) return;
            if (last) {
                for (int axis = 0; axis < 3; ++axis) at.M[1 + axis][1 + axis] += RIDGE * at.M[0][0];
                return;
            }
        }
        before = grown, grown *= blind ? 1.5 : GROWTH;
        if (step == SEEING) at.near = 0, before = 0.0, grown = 1.0;
    }
}

static double linear(const double *p, const double *x) { return p[0] * x[0] + p[1] * x[1] + p[2] * x[2] + p[3] * x[3]; }

// φ and ∇φ of the nodes that count.
static void functions(Place &at, bool gradients) {
    double L[4][4], gamma[4], beta[4];
    const double one[4] = {1.0, 0.0, 0.0, 0.0};
    fit_factor(at.M, L);
    fit_solve(L, one, gamma);
    for (int64_t c = 0; c < at.count; ++c) at.phi[c] = linear(at.P[c], gamma);
    for (int axis = 0; gradients && axis < 3; ++axis) {
        double right[4] = {0.0, 0.0, 0.0, 0.0};
        right[1 + axis] = 1 / at.h;
        for (int64_t c = 0; c < at.count; ++c)
            for (int i = 0; i < 4; ++i) right[i] -= at.dw[c][axis] * at.phi[c] * at.P[c][i];
        fit_solve(L, right, beta);
        for (int64_t c = 0; c < at.count; ++c)
            at.gradient[c][axis] = at.dw[c][axis] * at.phi[c] + at.w[c] * linear(at.P[c], beta);
    }
    for (int64_t c = 0; c < at.count; ++c) at.phi[c] *= at.w[c];
}

// From place `begin` on, as many as there is room for up to `end`: how many nodes count at each (p,), and those nodes,
// φ and, if it has room, ∇φ one after the other. Returns the place it came to.
static int64_t shape_functions(In<double, 2> places, Nodes nodes, Grid grid, In<int64_t, 1> bin_start,
                               In<int64_t, 1> members, Sight sight, Out<int64_t, 1> count, Out<int32_t, 1> node,
                               Out<double, 1> phi, Out<double, 2> gradient, int64_t begin, int64_t end) {
    const auto at = std::make_unique<Place>();
    const bool gradients = gradient.shape[0] > 0;
    int64_t used = 0;
    for (int64_t q = begin; q < end; ++q) {
        at->x = row3(places, q);
        surround(*at, nodes, bin_at(at->x, grid, bin_start, members), sight, row3(sight.seen, q));
        if (used + at->count > node.shape[0]) return q;
        functions(*at, gradients);
        count(q) = at->count;
        for (int64_t c = 0; c < at->count; ++c, ++used) {
            node(used) = int32_t(at->chosen[c]);
            phi(used) = at->phi[c];
            if (gradients) std::copy_n(at->gradient[c], 3, &gradient(used, 0));
        }
    }
    return end;
}
EXPORT(mls_shape_functions, shape_functions)

// (p, 3) Σ_I φ_I x_I.
static void interpolate(In<int64_t, 1> start, In<int32_t, 1> node, In<double, 1> phi, In<double, 2> x,
                        Out<double, 2> out, int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
        Vec3 sum = {0.0, 0.0, 0.0};
        for (int64_t k = start(p); k < start(p + 1); ++k) sum = sum + phi(k) * row3(x, node(k));
        store(out, p, sum);
    }
}
EXPORT(mls_interpolate, interpolate)
