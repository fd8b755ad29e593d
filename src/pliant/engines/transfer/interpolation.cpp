// Products of a target's coordinates with the state of a cage; see rig.py.
#include <algorithm>

#include "engines/transfer/lanes.h"

struct alignas(64) Sums {
    float x[LANES], y[LANES], z[LANES];
};

// Transposed state (3, c + f) times rows (c + f, LANES).
static void add_products(const float *rows, const float *state, int64_t count, Sums &__restrict sums) {
    for (int64_t j = 0; j < count; ++j) {
        const float *row = rows + j * LANES, x = state[3 * j], y = state[3 * j + 1], z = state[3 * j + 2];
        for (int k = 0; k < LANES; ++k) {
            sums.x[k] += x * row[k];
            sums.y[k] += y * row[k];
            sums.z[k] += z * row[k];
        }
    }
}

// Blocks begin to end of (n / LANES, d, c + f, LANES), d numbers a point, times states (frames, c + f, 3), plus centres,
// into (frames, n, 3, d).
static void interpolate(In<float, 4> blocks, In<float, 3> states, In<double, 2> centres, Out<double, 4> out,
                        int64_t begin, int64_t end) {
    const int64_t numbers = blocks.shape[1];
    for (int64_t g = begin; g < end; ++g) {
        const int64_t first = g * LANES, count = std::min<int64_t>(LANES, out.shape[1] - first);
        for (int64_t d = 0; d < numbers; ++d)
            for (int64_t frame = 0; frame < states.shape[0]; ++frame) {
                Sums sums{};
                add_products(&blocks(g, d, 0, 0), &states(frame, 0, 0), blocks.shape[2], sums);
                double *to = &out(frame, first, 0, d);
                for (int64_t k = 0; k < count; ++k, to += 3 * numbers) {
                    to[0] = centres(frame, 0) + double(sums.x[k]);
                    to[numbers] = centres(frame, 1) + double(sums.y[k]);
                    to[2 * numbers] = centres(frame, 2) + double(sums.z[k]);
                }
            }
    }
}
EXPORT(cage_interpolate, interpolate)
