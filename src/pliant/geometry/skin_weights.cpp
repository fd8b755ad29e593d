// The weights of bones on one vertex after another: least squares on a simplex with few entries; see
// skin_decomposition.py.
#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "native/kernel.h"

namespace {

// Minimises wᵀ G w with Σ w = 1 and w ≥ 0 over a support of at most `most` bones, by adding the bone that helps most
// and dropping those whose weight would be negative (Lawson and Hanson 1974).
struct Simplex {
    const double *G;
    int64_t bones;
    int64_t most;
    std::vector<int64_t> support{};
    std::vector<double> weights{};

    double entry(int64_t j, int64_t k) const { return G[j * bones + k]; }

    double gradient(int64_t j) const {
        double sum = 0.0;
        for (size_t a = 0; a < support.size(); ++a) sum += entry(j, support[a]) * weights[a];
        return sum;
    }

    double value() const {
        double sum = 0.0;
        for (size_t a = 0; a < support.size(); ++a) sum += weights[a] * gradient(support[a]);
        return sum;
    }

    // The minimiser over the support alone, whatever its signs: G x = 1, scaled to Σ x = 1. By Cholesky; false if
    // there is none.
    bool unconstrained(std::vector<double> &x) const {
        const size_t n = support.size();
        std::vector<double> L(n * n);
        x.assign(n, 1.0);
        for (size_t a = 0; a < n; ++a) {
            for (size_t b = 0; b <= a; ++b) {
                double sum = entry(support[a], support[b]);
                for (size_t c = 0; c < b; ++c) sum -= L[a * n + c] * L[b * n + c];
                // G is singular where the fit is perfect; a small pivot then gives the weights of that fit.
                L[a * n + b] = a != b ? sum / L[b * n + b] : std::sqrt(std::max(sum, 1e-12 * entry(support[a], support[a])));
            }
        }
        for (size_t a = 0; a < n; ++a) {
            for (size_t c = 0; c < a; ++c) x[a] -= L[a * n + c] * x[c];
            x[a] /= L[a * n + a];
        }
        double total = 0.0;
        for (size_t a = n; a-- > 0;) {
            for (size_t c = a + 1; c < n; ++c) x[a] -= L[c * n + a] * x[c];
            total += x[a] /= L[a * n + a];
        }
        if (!(total > 0)) return false;
        for (double &one : x) one /= total;
        return true;
    }

    void drop(size_t at) {
        support.erase(support.begin() + at);
        weights.erase(weights.begin() + at);
    }

    // From feasible weights to the best over the support; bones that come out at zero leave it.
    void settle() {
        std::vector<double> x;
        while (support.size() > 1) {
            if (!unconstrained(x)) {
                weights[support.size() - 2] += weights.back();
                drop(support.size() - 1);
                continue;
            }
            double step = 1.0;
            size_t first = support.size();
            for (size_t a = 0; a < support.size(); ++a) {
                if (x[a] > 1e-9) continue;
                const double reach = weights[a] / std::max(weights[a] - x[a], 1e-300);
                if (first == support.size() || reach < step) step = reach, first = a;
            }
            for (size_t a = 0; a < support.size(); ++a) weights[a] += std::min(step, 1.0) * (x[a] - weights[a]);
            if (first == support.size()) return;
            drop(first);
        }
        weights.assign(1, 1.0);
    }

    void enter(int64_t bone) {
        support.push_back(bone);
        weights.push_back(0.0);
        settle();
    }

    // Drops the lightest bones until no more than `most` are left.
    void prune() {
        while (static_cast<int64_t>(support.size()) > most) {
            const size_t least = std::min_element(weights.begin(), weights.end()) - weights.begin();
            const double share = 1 - weights[least];
            drop(least);
            for (double &one : weights) one /= share;
            settle();
        }
    }

    // Lets in one bone after another while that helps, in a support of at most `size`.
    void grow(int64_t size) {
        const int64_t few = std::exchange(most, size);
        for (int64_t round = 0; round < 4 * size + 4; ++round) {
            const double now = value();
            int64_t entering = -1;
            double steepest = now * (1 - 1e-6);
            for (int64_t j = 0; j < bones; ++j) {
                const double slope = gradient(j);
                if (slope < steepest && std::find(support.begin(), support.end(), j) == support.end()) {
                    steepest = slope, entering = j;
                }
            }
            if (entering < 0) break;
            const auto before = std::make_pair(support, weights);
            support.push_back(entering);
            weights.push_back(0.0);
            settle();
            prune();
            if (value() >= now * (1 - 1e-9)) {
                std::tie(support, weights) = before;
                break;
            }
        }
        most = few;
    }

    // The better of two: grown within the limit; or grown without one, pruned, and grown within it.
    void solve() {
        int64_t best = 0;
        for (int64_t j = 1; j < bones; ++j) {
            if (entry(j, j) < entry(best, best)) best = j;
        }
        Simplex other = *this;
        for (Simplex *one : {this, &other}) {
            one->support.assign(1, best);
            one->weights.assign(1, 1.0);
        }
        grow(most);
        other.grow(bones);
        other.prune();
        other.grow(most);
        if (other.value() < value()) support = other.support, weights = other.weights;
    }
};

}  // namespace

// points: (n, 3) at rest. H: (b, b, 4, 4) Σ_f M_jᵀ M_k of the bones' 3×4 matrices. along: (n, b) Σ_f (M_j p)·v, and
// length2: (n,) Σ_f v·v of where each vertex goes. bone (n, k), weight (n, k): what is found, the rest 0.
static void weights_of(In<double, 2> points, In<double, 4> H, In<double, 2> along, In<double, 1> length2,
                       Out<int64_t, 2> bone, Out<double, 2> weight, int64_t begin, int64_t end) {
    const int64_t bones = H.shape[0];
    std::vector<double> G(bones * bones);
    for (int64_t i = begin; i < end; ++i) {
        const double p[4] = {points(i, 0), points(i, 1), points(i, 2), 1.0};
        for (int64_t j = 0; j < bones; ++j) {
            for (int64_t k = 0; k <= j; ++k) {
                const double *h = &H(j, k, 0, 0);
                double product = 0.0;
                for (int r = 0; r < 4; ++r) {
                    product += p[r] * (h[4 * r] * p[0] + h[4 * r + 1] * p[1] + h[4 * r + 2] * p[2] + h[4 * r + 3]);
                }
                G[j * bones + k] = G[k * bones + j] = product - along(i, j) - along(i, k) + length2(i);
            }
        }
        for (int64_t j = 0; j < bones; ++j) G[j * bones + j] += 1e-14 * length2(i) + 1e-300;
        Simplex found{G.data(), bones, bone.shape[1]};
        found.solve();
        for (size_t a = 0; a < found.support.size(); ++a) {
            bone(i, a) = found.support[a];
            weight(i, a) = found.weights[a];
        }
    }
}
EXPORT(skin_weights, weights_of)
