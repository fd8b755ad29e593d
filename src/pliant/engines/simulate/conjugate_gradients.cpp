// Conjugate gradients on the flesh; the equations and the measure of what is left are in conjugate_gradients.py.
#include "engines/simulate/multigrid.h"
#include "engines/simulate/strain_limits.h"

using Row = Four<float>;

constexpr double SINGLE = 1e-5;  // how far single precision reduces what is left, to be believed

// Σ a b in double precision.
static double dot(const std::vector<Row> &a, const std::vector<Row> &b) {
    double total = 0.0;
    for (size_t i = 0; i < b.size(); ++i) {
        const auto &x = a[i].v, &y = b[i].v;
        total += double(x[0]) * y[0] + double(x[1]) * y[1] + double(x[2]) * y[2];
    }
    return total;
}

// The longest row.
static double largest(const std::vector<Row> &rows) {
    float most = 0.0f;
    for (const Row &a : rows) most = std::max(most, a.v[0] * a.v[0] + a.v[1] * a.v[1] + a.v[2] * a.v[2]);
    return std::sqrt(most);
}

// to += step x
static void advance(float step, const std::vector<Row> &x, std::vector<Row> &to) {
    for (size_t i = 0; i < to.size(); ++i) to[i].v += step * x[i].v;
}

// p = z + share p
static void redirect(float share, const std::vector<Row> &z, std::vector<Row> &p) {
    for (size_t i = 0; i < z.size(); ++i) p[i].v = z[i].v + share * p[i].v;
}

// The forces over their largest entry, so that single precision holds any unit; returns that, which may be no number.
static double scaled_down(const In<double, 2> &r, std::vector<Row> &left) {
    double unit = 0.0;
    for (int64_t i = 0; i < r.shape[0]; ++i)
        for (int axis = 0; axis < 3; ++axis) {
            const double size = std::abs(r(i, axis));
            if (!(size <= unit)) unit = size;
            if (std::isnan(unit)) return unit;
        }
    if (unit > 0)
        for (int64_t i = 0; i < r.shape[0]; ++i)
            for (int axis = 0; axis < 3; ++axis) left[i].v[axis] = float(r(i, axis) / unit);
    return unit;
}

// Contacts beside the flesh: each a point by its nodes and a direction; those of a group resist a motion together.
struct Contacts {
    In<int64_t, 1> start;     // (a + 1,)
    In<int32_t, 1> node;      // (nnz,)
    In<float, 1> phi;         // (nnz,)
    In<float, 2> direction;   // (a, 3)
    In<int64_t, 1> group;     // (groups + 1,) first contact of each
    In<float, 1> stiffness;   // the groups' full matrices, one after the other
    using Fields = Types<In<int64_t, 1>, In<int32_t, 1>, In<float, 1>, In<float, 2>, In<int64_t, 1>, In<float, 1>>;
};

// out += Nᵀ S N x, with N x the points' motions along their directions and S the groups' matrices.
static void add_contacts(const Contacts &contacts, const std::vector<Row> &x, std::vector<float> &moved,
                         std::vector<Row> &out) {
    const int64_t count = contacts.direction.shape[0];
    moved.resize(size_t(count));
    for (int64_t a = 0; a < count; ++a) {
        const float *n = &contacts.direction(a, 0);
        float along = 0.0f;
        for (int64_t k = contacts.start(a); k < contacts.start(a + 1); ++k) {
            const auto &at = x[contacts.node(k)].v;
            along += contacts.phi(k) * (at[0] * n[0] + at[1] * n[1] + at[2] * n[2]);
        }
        moved[a] = along;
    }
    const float *row = contacts.stiffness.data;
    for (int64_t g = 0; g + 1 < contacts.group.shape[0]; ++g)
        for (int64_t a = contacts.group(g); a < contacts.group(g + 1); ++a) {
            float force = 0.0f;
            for (int64_t b = contacts.group(g); b < contacts.group(g + 1); ++b) force += *row++ * moved[b];
            const float *n = &contacts.direction(a, 0);
            for (int64_t k = contacts.start(a); k < contacts.start(a + 1); ++k) {
                auto &to = out[contacts.node(k)].v;
                for (int axis = 0; axis < 3; ++axis) to[axis] += contacts.phi(k) * force * n[axis];
            }
        }
}

// Fills the correction d (free, 3), and what is left at the beginning and at the end (2,); returns the number of
// iterations. scale (2,): what is left is measured by, √(rᵀ z) and a length; where `relative`, each is raised to what
// there is at the beginning. It is solved until what is left is below `accuracy`, or `reduction` times that at the
// beginning.
static int64_t solve(Flesh<float> flesh, In<float, 2> R, In<float, 2> turns, Levels levels, ActiveLimits limits,
                     Contacts contacts, In<double, 2> r, In<float, 1> mass, double stiffness, Out<double, 1> scale, int64_t relative,
                     double accuracy, double reduction, int64_t iterations, Out<double, 2> d,
                     Out<double, 1> left_over, int64_t threads) {
    const size_t free = size_t(r.shape[0]), nodes = size_t(flesh.nodes);
    std::vector<Row> left(free, Row{}), z(free, Row{}), p(nodes, Row{}), Ap(free, Row{}), found(free, Row{});
    const double unit = scaled_down(r, left);
    std::fill_n(d.data, d.size(), 0.0);
    left_over(0) = 0.0, left_over(1) = unit == 0 ? 0.0 : INF;
    if (!(unit > 0) || !std::isfinite(unit)) return 0;

    Team team(threads);
    std::vector<Row> sums;
    LevelScratch scratch;
    std::vector<float> moved;
    precondition(team, levels, turns, left.data(), z.data(), scratch);
    std::copy(z.begin(), z.end(), p.begin());
    double along = dot(left, z);
    const auto energy = [&] { return unit * std::sqrt(std::max(along, 0.0)); };
    const auto lacking = [&] { return std::max(energy() / scale(0), unit * largest(z) / scale(1)); };
    if (relative) scale(0) = std::max(scale(0), energy()), scale(1) = std::max(scale(1), unit * largest(z));
    left_over(0) = left_over(1) = lacking();
    const double enough = std::max(accuracy, std::max(reduction, SINGLE) * left_over(0));
    int64_t done = 0;
    while (left_over(1) > enough && done < iterations) {
        product(team, flesh, p.data(), R, float(stiffness), mass, sums, Ap.data());
        add_limits(team, flesh, limits, p.data(), int64_t(free), sums, Ap.data());
        add_contacts(contacts, p, moved, Ap);
        const double bend = dot(p, Ap);
        if (!(bend > 0)) break;
        advance(float(along / bend), p, found);
        advance(-float(along / bend), Ap, left);
        precondition(team, levels, turns, left.data(), z.data(), scratch);
        const double before = along;
        along = dot(left, z);
        redirect(float(along / before), z, p);
        left_over(1) = lacking();
        ++done;
    }
    for (size_t i = 0; i < free; ++i)
        for (int axis = 0; axis < 3; ++axis) d(int64_t(i), axis) = unit * found[i].v[axis];
    return done;
}
EXPORT(conjugate_solve, solve)
