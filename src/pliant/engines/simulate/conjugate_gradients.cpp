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

// Fills the correction d (free, 3), and what is left at the beginning and at the end (2,); returns the number of
// iterations. scale (2,): what is left is measured by, √(rᵀ z) and a length; where `relative`, each is raised to what
// there is at the beginning. It is solved until what is left is below `accuracy`, or `reduction` times that at the
// beginning.
static int64_t solve(Flesh<float> flesh, In<float, 2> R, In<float, 2> turns, Levels levels, ActiveLimits limits,
                     In<double, 2> r, In<float, 1> mass, double stiffness, Out<double, 1> scale, int64_t relative,
                     double accuracy, double reduction, int64_t iterations, Out<double, 2> d,
                     Out<double, 1> left_over, int64_t threads) {
    const size_t free = size_t(r.shape[0]), nodes = size_t(flesh.first.shape[0] - 1);
    std::vector<Row> left(free, Row{}), z(free, Row{}), p(nodes, Row{}), Ap(free, Row{}), found(free, Row{});
    const double unit = scaled_down(r, left);
    std::fill_n(d.data, d.size(), 0.0);
    left_over(0) = 0.0, left_over(1) = unit == 0 ? 0.0 : INF;
    if (!(unit > 0) || !std::isfinite(unit)) return 0;

    Team team(threads);
    std::vector<Rows3<float>> P, P_limits;
    LevelScratch scratch;
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
        product(team, flesh, p.data(), R, float(stiffness), mass, P, Ap.data());
        add_limits(team, flesh, limits, p.data(), int64_t(free), P_limits, Ap.data());
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
