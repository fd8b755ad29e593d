// Samples of a surface a distance apart along its edges, and fine vertices carried by coarse ones; see detail.py.
#include <queue>
#include <utility>
#include <vector>

#include "engines/blend/springs.h"

namespace {

// Vertices are taken in `order` unless one before lies within their radius along the edges; those marked at the start
// always are. The graph: neighbours `other` of vertex i from start(i) on, at lengths `length`.
void sample(Indices start, Indices other, In<double, 1> length, Indices order, In<double, 1> radius,
            Out<bool, 1> taken) {
    const int64_t count = taken.shape[0];
    std::vector<double> covered(size_t(count), INF), away(size_t(count), INF);
    std::vector<int64_t> reached;
    using Step = std::pair<double, int64_t>;
    std::priority_queue<Step, std::vector<Step>, std::greater<Step>> front;
    auto cover = [&](int64_t centre) {
        away[size_t(centre)] = 0.0;
        front.push({0.0, centre});
        while (!front.empty()) {
            const auto [d, i] = front.top();
            front.pop();
            if (d > away[size_t(i)]) continue;
            reached.push_back(i);
            if (d < covered[size_t(i)]) covered[size_t(i)] = d;
            for (int64_t at = start(i); at < start(i + 1); ++at) {
                const double next = d + length(at);
                if (next < radius(centre) && next < away[size_t(other(at))]) {
                    away[size_t(other(at))] = next;
                    front.push({next, other(at)});
                }
            }
        }
        for (const int64_t i : reached) away[size_t(i)] = INF;
        reached.clear();
    };
    for (int64_t i = 0; i < count; ++i)
        if (taken(i)) cover(i);
    for (int64_t at = 0; at < order.shape[0]; ++at) {
        const int64_t i = order(at);
        if (covered[size_t(i)] < radius(i)) continue;
        taken(i) = true;
        cover(i);
    }
}

// For each coarse vertex k its matrices A_ks = w_s R_k R_ksᵀ, and the vector t_k = c_k - Σ_s A_ks c_ks below them.
// coarse: (shapes, m, 3) c_ks; rotated: (shapes, m, 3, 3) R_ks; begun: (m, 3, 3) where the search for R_k begins.
void motion(In<double, 2> x, Fans fans, In<double, 1> stiffness, In<double, 3> coarse, In<double, 4> rotated,
            In<double, 1> weights, In<double, 3> begun, Out<double, 3> motion, int64_t begin, int64_t end) {
    const int64_t shapes = weights.shape[0], count = coarse.shape[1];
    auto back = [&](int64_t s, int64_t k, Vec3 v) {
        const double *r = &rotated(s, k, 0, 0);
        return Vec3{r[0] * v.x + r[3] * v.y + r[6] * v.z, r[1] * v.x + r[4] * v.y + r[7] * v.z,
                    r[2] * v.x + r[5] * v.y + r[8] * v.z};
    };
    for (int64_t k = begin; k < end; ++k) {
        Mat3 a = {};
        for (int64_t at = fans.start(k); at < fans.start(k + 1); ++at) {
            const int64_t j = fans.other(at);
            if (j >= count) continue;
            Vec3 v = {0.0, 0.0, 0.0};
            for (int64_t s = 0; s < shapes; ++s)
                v = v + weights(s) * back(s, k, row3(coarse.row(s), k) - row3(coarse.row(s), j));
            const Vec3 d = stiffness(fans.spring(at)) * (row3(x, k) - row3(x, j));
            const double dd[3] = {d.x, d.y, d.z}, vv[3] = {v.x, v.y, v.z};
            for (int row = 0; row < 3; ++row)
                for (int column = 0; column < 3; ++column) a[row][column] += dd[row] * vv[column];
        }
        double r[9];
        std::copy_n(&begun(k, 0, 0), 9, r);
        nearest_rotation(a, r);
        Vec3 t = row3(x, k);
        for (int64_t s = 0; s < shapes; ++s) {
            double *m = &motion(k, 3 * s, 0);
            const double *own = &rotated(s, k, 0, 0);
            for (int row = 0; row < 3; ++row)
                for (int column = 0; column < 3; ++column) {
                    double sum = 0.0;
                    for (int e = 0; e < 3; ++e) sum += r[3 * row + e] * own[3 * column + e];
                    m[3 * row + column] = weights(s) * sum;
                }
            const Vec3 c = row3(coarse.row(s), k);
            t = t - Vec3{m[0] * c.x + m[1] * c.y + m[2] * c.z, m[3] * c.x + m[4] * c.y + m[5] * c.z,
                         m[6] * c.x + m[7] * c.y + m[8] * c.z};
        }
        double *last = &motion(k, 3 * shapes, 0);
        last[0] = t.x, last[1] = t.y, last[2] = t.z;
    }
}

// x_i = Σ_k α_ik (Σ_s A_ks p_is + t_k): the matrices of a vertex's carriers are averaged, then applied to each shape.
void carry(In<double, 3> points, Indices used, In<int32_t, 2> carriers, In<double, 2> share, In<double, 3> motion,
           Out<double, 2> carried, int64_t begin, int64_t end) {
    const int64_t shapes = used.shape[0], most = carriers.shape[1], width = 9 * shapes + 3;
    std::vector<double> mean(static_cast<size_t>(width), 0.0);
    for (int64_t i = begin; i < end; ++i) {
        std::fill(mean.begin(), mean.end(), 0.0);
        for (int64_t k = 0; k < most; ++k) {
            const double a = share(i, k);
            if (a == 0.0) continue;
            const double *m = &motion(carriers(i, k), 0, 0);
            for (int64_t e = 0; e < width; ++e) mean[size_t(e)] += a * m[e];
        }
        const double *t = &mean[size_t(9 * shapes)];
        Vec3 x = {t[0], t[1], t[2]};
        for (int64_t s = 0; s < shapes; ++s) {
            const double *a = &mean[size_t(9 * s)], *p = &points(used(s), i, 0);
            x = x + Vec3{a[0] * p[0] + a[1] * p[1] + a[2] * p[2], a[3] * p[0] + a[4] * p[1] + a[5] * p[2],
                         a[6] * p[0] + a[7] * p[1] + a[8] * p[2]};
        }
        store(carried, i, x);
    }
}

}  // namespace

EXPORT(detail_sample, sample)
EXPORT(detail_motion, motion)
EXPORT(detail_carry, carry)
