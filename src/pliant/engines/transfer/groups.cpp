// Groups that grow over a graph: the cheapest point next, whichever group it is that wants it; see groups.py.
#include <functional>
#include <queue>
#include <tuple>
#include <vector>

#include "native/kernel.h"

// Σ_f |R_f q + t_f − x_f|² of a point q (3,) that moves through x (f, 3).
static double misfit(const double *q, const double *x, const double *R, const double *t, int64_t frames) {
    double total = 0.0;
    for (int64_t row = 0; row < 3 * frames; ++row) {
        const double *r = R + 3 * row;
        const double away = r[0] * q[0] + r[1] * q[1] + r[2] * q[2] + t[row] - x[row];
        total += away * away;
    }
    return total;
}

// group: (n,) of each point, cost: its misfit there; they begin as -1 and infinite. Those next to point i are
// neighbours[start[i]:start[i + 1]]. R: (k, f, 3, 3). seeds: (k,) where each group starts.
static void grow(In<int64_t, 1> start, In<int64_t, 1> neighbours, In<double, 2> q, In<double, 3> x, In<double, 4> R,
                 In<double, 3> t, In<int64_t, 1> seeds, Out<int64_t, 1> group, Out<double, 1> cost) {
    using Wish = std::tuple<double, int64_t, int64_t>;  // misfit, group, point
    std::priority_queue<Wish, std::vector<Wish>, std::greater<Wish>> queue;
    const auto price_of = [&](int64_t k, int64_t i) {
        return misfit(&q(i, 0), &x(i, 0, 0), &R(k, 0, 0, 0), &t(k, 0, 0), x.shape[1]);
    };
    for (int64_t k = 0; k < seeds.shape[0]; ++k) queue.emplace(-1.0, k, seeds(k));
    while (!queue.empty()) {
        const auto [price, k, i] = queue.top();
        queue.pop();
        if (group(i) >= 0) continue;
        group(i) = k;
        cost(i) = price < 0 ? price_of(k, i) : price;
        for (int64_t slot = start(i); slot < start(i + 1); ++slot) {
            const int64_t j = neighbours(slot);
            if (group(j) < 0) queue.emplace(price_of(k, j), k, j);
        }
    }
}
EXPORT(groups_grow, grow)
