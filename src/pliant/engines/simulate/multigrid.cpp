// Steps of the preconditioner; the equations are in multigrid.py.
#include "engines/simulate/multigrid.h"

using Row = Four<float>;

constexpr int64_t ROWS = 256, DENSE = 48;  // that are worth a thread: sparse ones, and full ones
constexpr int LANES = 32;

// Tᵀ r
static Row turned_to_rest(const float *T, const Row &r) {
    Row s = {};
    for (int k = 0; k < 3; ++k) s.v[k] = T[k] * r.v[0] + T[3 + k] * r.v[1] + T[6 + k] * r.v[2];
    return s;
}

// T z
static Row turned_forth(const float *T, const Row &z) {
    Row out = {};
    for (int k = 0; k < 3; ++k) out.v[k] = T[3 * k] * z.v[0] + T[3 * k + 1] * z.v[1] + T[3 * k + 2] * z.v[2];
    return out;
}

// D⁻¹ s of a symmetric block: xx, yy, zz, yz, xz, xy.
static Row scaled(const float *D, const Row &s) {
    const float a = s.v[0], b = s.v[1], c = s.v[2];
    Row z = {};
    z.v[0] = D[0] * a + D[5] * b + D[4] * c;
    z.v[1] = D[5] * a + D[1] * b + D[3] * c;
    z.v[2] = D[4] * a + D[3] * b + D[2] * c;
    return z;
}

// `to` and row i of a sparse matrix times x.
static Row added(const In<int64_t, 1> &start, const In<int32_t, 1> &column, const In<float, 1> &value, int64_t i,
                 const Row *x, Row to) {
    for (int64_t k = start(i); k < start(i + 1); ++k) to.v += value(k) * x[column(k)].v;
    return to;
}

// Σ a x in lanes of their own, which are summed at the end: the same on every machine.
static float dense_row(const float *a, const float *x, int64_t count) {
    float lanes[LANES] = {};
    int64_t j = 0;
    for (; j + LANES <= count; j += LANES)
        for (int l = 0; l < LANES; ++l) lanes[l] += a[j + l] * x[j + l];
    for (int l = 0; j + l < count; ++l) lanes[l] += a[j + l] * x[j + l];
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int l = 0; l < width; ++l) lanes[l] += lanes[l + width];
    return lanes[0];
}

// A⁻¹ of the last level, whose nodes begin at `first`.
static void solve_last(Team &team, const Levels &levels, int64_t first, LevelScratch &scratch) {
    const int64_t count = levels.inverse.shape[0];
    scratch.last.resize(size_t(count));
    for (int64_t j = 0; j < count; ++j) scratch.last[j] = scratch.rest[first + j / 3].v[j % 3];
    team.share(count / 3, DENSE / 3, [&](int64_t begin, int64_t end) {
        for (int64_t i = 3 * begin; i < 3 * end; ++i)
            scratch.up[first + i / 3].v[i % 3] = dense_row(&levels.inverse(i, 0), scratch.last.data(), count);
    });
}

void precondition(Team &team, const Levels &levels, const In<float, 2> &turns, const Row *r, Row *z,
                  LevelScratch &scratch) {
    const int64_t last = levels.begin.shape[0] - 2, total = levels.begin(last + 1), free = levels.begin(1);
    scratch.rest.resize(size_t(total)), scratch.up.resize(size_t(total));
    Row *rest = scratch.rest.data(), *up = scratch.up.data();
    team.share(free, ROWS, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            rest[i] = turned_to_rest(&turns(i, 0), r[i]);
            up[i] = scaled(&levels.diagonal(i, 0), rest[i]);
        }
    });
    for (int64_t k = 1; k <= last; ++k) {
        const int64_t first = levels.begin(k);
        team.share(levels.begin(k + 1) - first, ROWS / 8, [&](int64_t begin, int64_t end) {
            for (int64_t i = first + begin; i < first + end; ++i) {
                rest[i] = added(levels.down_start, levels.down_column, levels.down_value, i - free, rest, Row{});
                if (k < last) up[i] = scaled(&levels.diagonal(i, 0), rest[i]);
            }
        });
    }
    if (last > 0) solve_last(team, levels, levels.begin(last), scratch);
    for (int64_t k = last - 1; k >= 0; --k) {
        const int64_t first = levels.begin(k);
        team.share(levels.begin(k + 1) - first, ROWS, [&](int64_t begin, int64_t end) {
            for (int64_t i = first + begin; i < first + end; ++i)
                up[i] = added(levels.up_start, levels.up_column, levels.up_value, i, up, up[i]);
        });
    }
    team.share(free, ROWS, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) z[i] = turned_forth(&turns(i, 0), up[i]);
    });
}

// (free, 3) B⁻¹ r.
static void apply(Levels levels, In<float, 2> turns, In<float, 2> r, Out<float, 2> out, int64_t threads) {
    Team team(threads);
    LevelScratch scratch;
    std::vector<Row> wide, z(size_t(r.shape[0]));
    widen(r, wide);
    precondition(team, levels, turns, wide.data(), z.data(), scratch);
    for (int64_t i = 0; i < r.shape[0]; ++i) store(z[i], out, i);
}
EXPORT(multigrid_apply, apply)
