// Forces, strains and products with the stiffness of the warped body; the equations are in warping.py.
#include "engines/simulate/warping.h"

// (free, 3) the gradient of the energy; shift: (rows, 6) the value of sym(Rᵀ F) that has no stress, less the unit matrix
// at springs, or (1, 6) for all.
static void forces(Flesh<double> flesh, In<double, 2> x, In<double, 2> R, In<double, 2> shift, Out<double, 2> out,
                   int64_t threads) {
    Team team(threads);
    std::vector<Four<double>> wide, sums;
    widen(x, wide);
    const auto measure = [&](int64_t q, double *strain) {
        Rows3<double> S;
        turned_back(flesh, wide.data(), &R(q, 0), q, S);
        symmetric(S, strain);
        for (int k = 0; k < 6; ++k) strain[k] -= shift(shift.shape[0] > 1 ? q : 0, k);
        if (q >= flesh.points())
            for (int k = 0; k < 3; ++k) strain[k] += 1;
    };
    scattered(team, flesh, flesh.cells(), sums, [&](int64_t begin, int64_t end, Four<double> *sum) {
        scatter_cells(flesh, R, begin, end, measure, sum);
    });
    for (int64_t i = 0; i < out.shape[0]; ++i) store(sums[size_t(i)], out, i);
}
EXPORT(warping_forces, forces)

// (free, 3) scale · K' d + mass d, in single precision.
static void products(Flesh<float> flesh, In<float, 2> d, In<float, 2> R, double scale, In<float, 1> mass,
                     Out<float, 2> out, int64_t threads) {
    Team team(threads);
    std::vector<Four<float>> wide, sums, found(size_t(out.shape[0]));
    widen(d, wide);
    product(team, flesh, wide.data(), R, float(scale), mass, sums, found.data());
    for (int64_t i = 0; i < out.shape[0]; ++i) store(found[i], out, i);
}
EXPORT(warping_product, products)

// (rows, 6) the strains: sym(Rᵀ F) - 1 at quadrature points, sym(Rᵀ F) at springs; and (points,) J = det F.
static void strains(Flesh<double> flesh, In<double, 2> x, In<double, 2> R, Out<double, 2> strain,
                    Out<double, 1> stretch, int64_t threads) {
    Team team(threads);
    std::vector<Four<double>> wide;
    widen(x, wide);
    team.share(flesh.rows(), POINTS, [&](int64_t begin, int64_t end) {
        for (int64_t q = begin; q < end; ++q) {
            Rows3<double> S;
            turned_back(flesh, wide.data(), &R(q, 0), q, S);
            symmetric(S, &strain(q, 0));
            if (q >= flesh.points()) continue;
            for (int k = 0; k < 3; ++k) strain(q, k) -= 1;
            const auto &a = S.row[0].v, &b = S.row[1].v, &c = S.row[2].v;
            stretch(q) = a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0]) +
                         a[2] * (b[0] * c[1] - b[1] * c[0]);
        }
    });
}
EXPORT(warping_strains, strains)
