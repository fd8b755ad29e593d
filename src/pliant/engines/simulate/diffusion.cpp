// Rotations and places blended from those of the bones; the equations are in diffusion.py.
#include "native/four.h"
#include "native/vec3.h"

constexpr double CANCELLED = 1e-6;  // length of a weighted sum of quaternions below which they cancel

namespace {

struct BoneWeights {
    In<int64_t, 1> start;   // (p + 1,)
    In<int32_t, 1> bone;    // (nnz,)
    In<double, 1> weight;   // (nnz,)
    using Fields = Types<In<int64_t, 1>, In<int32_t, 1>, In<double, 1>>;
};

}  // namespace

static double length(const Four<double> &q) {
    return std::sqrt(q.v[0] * q.v[0] + q.v[1] * q.v[1] + q.v[2] * q.v[2] + q.v[3] * q.v[3]);
}

// The unit quaternion (w, x, y, z) at place i.
static void blend(const BoneWeights &weights, const In<double, 2> &turns, int64_t i, Four<double> &q) {
    Four<double> sum = {}, turn;
    int64_t most = 0;
    double largest = -1.0;
    for (int64_t k = weights.start(i); k < weights.start(i + 1); ++k) {
        const double share = weights.weight(k);
        turn.load(&turns(weights.bone(k), 0));
        sum.v += share * turn.v;
        if (share > largest) most = weights.bone(k), largest = share;
    }
    if (length(sum) < CANCELLED) sum.load(&turns(most, 0));
    q.v = sum.v / length(sum);
}

// (p, 4) normalised Σ_b w_ib q_b.
static void quaternions(BoneWeights weights, In<double, 2> turns, Out<double, 2> out, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
        Four<double> q;
        blend(weights, turns, i, q);
        for (int k = 0; k < 4; ++k) out(i, k) = q.v[k];
    }
}
EXPORT(diffusion_quaternions, quaternions)

// (p, 9) the same as rotation matrices, row by row.
static void matrices(BoneWeights weights, In<double, 2> turns, Out<double, 2> out, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
        Four<double> q;
        blend(weights, turns, i, q);
        const double w = q.v[0], x = q.v[1], y = q.v[2], z = q.v[3];
        out(i, 0) = 1 - 2 * (y * y + z * z);
        out(i, 1) = 2 * (x * y - w * z);
        out(i, 2) = 2 * (x * z + w * y);
        out(i, 3) = 2 * (x * y + w * z);
        out(i, 4) = 1 - 2 * (x * x + z * z);
        out(i, 5) = 2 * (y * z - w * x);
        out(i, 6) = 2 * (x * z - w * y);
        out(i, 7) = 2 * (y * z + w * x);
        out(i, 8) = 1 - 2 * (x * x + y * y);
    }
}
EXPORT(diffusion_matrices, matrices)

// (p, 3) Σ_b w_b (R_b X + shift_b): places X carried along with the bones, R (b, 9) and shift (b, 3).
static void carried(BoneWeights weights, In<double, 2> X, In<double, 2> R, In<double, 2> shift, Out<double, 2> out,
                    int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
        const auto [x, y, z] = row3(X, p);
        Vec3 sum = {0.0, 0.0, 0.0};
        for (int64_t k = weights.start(p); k < weights.start(p + 1); ++k) {
            const int64_t i = weights.bone(k);
            const double share = weights.weight(k);
            sum.x += share * (R(i, 0) * x + R(i, 1) * y + R(i, 2) * z + shift(i, 0));
            sum.y += share * (R(i, 3) * x + R(i, 4) * y + R(i, 5) * z + shift(i, 1));
            sum.z += share * (R(i, 6) * x + R(i, 7) * y + R(i, 8) * z + shift(i, 2));
        }
        store(out, p, sum);
    }
}
EXPORT(diffusion_carried, carried)
