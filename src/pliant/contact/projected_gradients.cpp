// Contacts of a body whose vertices give way each by itself, where they are many; see steps.py.
#include <algorithm>
#include <cmath>
#include <vector>

#include "contact/rows.h"

namespace {

using Numbers = std::vector<double>;
constexpr int NORM_ITERATIONS = 12, ROUNDS = 8;
constexpr double NORM_MARGIN = 1.1;

double dot(const Numbers &a, const Numbers &b) {
    double sum = 0.0;
    for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

// ½ yᵀ A y - b y over y ≥ 0 for some rows, A = √D (N K⁻¹ Nᵀ + 1/ρ) √D, K⁻¹ = softness: forces are √D y, and A has ones
// on its diagonal. By conjugate gradients on what is free, projected steps where that ends at a bound, and steps that
// free what should be (MPRGP; Dostál and Schöberl 2005).
class Bounded {
   public:
    Bounded(const Points &rows, const In<double, 1> &rho, const In<double, 1> &ahead, const In<double, 1> &softness,
            const std::vector<int64_t> &some, const Out<double, 1> &forces)
        : softness_(softness), moved_(3 * softness.shape[0]), n_(some.size()), y(n_), scale(n_), rho_(n_), b_(n_),
          motion_(n_), vertex_(4 * n_), part_(12 * n_), g_(n_), p_(n_), Ap_(n_), free_(n_), chopped_(n_) {
        for (size_t i = 0; i < n_; ++i) {
            double soft = 1 / rho(some[i]), farthest = 0.0;
            for (int k = 0; k < 4; ++k) {
                const int64_t v = vertex_[4 * i + k] = rows.vertices(some[i], k);
                const double weight = rows.weights(some[i], k);
                for (int axis = 0; axis < 3; ++axis)
                    part_[12 * i + 3 * k + axis] = weight * rows.directions(some[i], axis);
                soft += weight * weight * softness(v);
                farthest = std::max(farthest, std::abs(weight) * softness(v));
            }
            scale[i] = 1 / std::sqrt(soft);
            rho_[i] = rho(some[i]), b_[i] = scale[i] * ahead(some[i]), motion_[i] = farthest * scale[i];
            y[i] = forces(some[i]) / scale[i];
        }
    }

    // Products that it took until no force alone would move a point farther than `enough`; more than `most` if it did not.
    int64_t minimise(double enough, int64_t most) {
        const double step = 1 / (NORM_MARGIN * norm());
        int64_t count = NORM_ITERATIONS;
        const auto renew = [&] {
            product(y, g_), ++count;
            for (size_t i = 0; i < n_; ++i) g_[i] -= b_[i];
        };
        renew();
        double ends = split();
        p_ = free_;
        bool computed = true;  // the gradient, and not only carried on from step to step
        while (ends > enough || !computed) {
            if (count > most) return count;
            if (ends <= enough) {
                renew(), ends = split(), p_ = free_, computed = true;
                continue;
            }
            computed = false;
            double reduced = 0.0;
            for (size_t i = 0; i < n_; ++i) reduced += std::min(y[i] / step, free_[i]) * free_[i];
            const bool proportional = dot(chopped_, chopped_) <= reduced;
            const Numbers &d = proportional ? p_ : chopped_;
            product(d, Ap_), ++count;
            const double bend = dot(d, Ap_);
            double share = bend > 0 ? dot(g_, d) / bend : 0.0, most_share = INF;
            for (size_t i = 0; i < n_; ++i)
                if (d[i] > 0) most_share = std::min(most_share, y[i] / d[i]);
            const bool ended = share > most_share;
            share = std::min(share, most_share);
            for (size_t i = 0; i < n_; ++i) y[i] = std::max(y[i] - share * d[i], 0.0), g_[i] -= share * Ap_[i];
            if (proportional && ended) {
                split();
                for (size_t i = 0; i < n_; ++i)
                    if (y[i] > 0) y[i] = std::max(y[i] - step * free_[i], 0.0);
                renew();
            }
            ends = split();
            if (proportional && !ended) {
                const double part = dot(free_, Ap_) / bend;
                for (size_t i = 0; i < n_; ++i) p_[i] = free_[i] - part * p_[i];
            } else {
                p_ = free_;
            }
        }
        return count;
    }

   private:
    const In<double, 1> &softness_;
    Numbers moved_;
    const size_t n_;

   public:
    Numbers y, scale;

   private:
    Numbers rho_, b_, motion_;
    std::vector<int64_t> vertex_;
    Numbers part_, g_, p_, Ap_, free_, chopped_;

    // A x
    void product(const Numbers &x, Numbers &out) {
        for (const int64_t v : vertex_) std::fill_n(&moved_[3 * v], 3, 0.0);
        for (size_t i = 0; i < n_; ++i) {
            if (x[i] == 0.0) continue;
            const double force = scale[i] * x[i];
            for (int k = 0; k < 4; ++k) {
                const int64_t v = vertex_[4 * i + k];
                const double share = force * softness_(v);
                for (int axis = 0; axis < 3; ++axis) moved_[3 * v + axis] += share * part_[12 * i + 3 * k + axis];
            }
        }
        for (size_t i = 0; i < n_; ++i) {
            double sum = scale[i] * x[i] / rho_[i];
            for (int k = 0; k < 4; ++k)
                for (int axis = 0; axis < 3; ++axis)
                    sum += part_[12 * i + 3 * k + axis] * moved_[3 * vertex_[4 * i + k] + axis];
            out[i] = scale[i] * sum;
        }
    }

    // About the largest eigenvalue of A.
    double norm() {
        Numbers x(n_, 1.0), Ax(n_);
        double size = 1.0;
        for (int k = 0; k < NORM_ITERATIONS; ++k) {
            product(x, Ax);
            size = std::sqrt(dot(Ax, Ax) / std::max(dot(x, x), 1e-300));
            const double least = 1 / std::max(std::sqrt(dot(Ax, Ax)), 1e-300);
            for (size_t i = 0; i < n_; ++i) x[i] = least * Ax[i];
        }
        return std::max(size, 1.0);
    }

    // The gradient of what is free, and of what should be; how far a point would move by the one force that lacks most.
    double split() {
        double farthest = 0.0;
        for (size_t i = 0; i < n_; ++i) {
            free_[i] = y[i] > 0 ? g_[i] : 0.0;
            chopped_[i] = y[i] > 0 ? 0.0 : std::min(g_[i], 0.0);
            farthest = std::max(farthest, motion_[i] * std::abs(std::min(free_[i], y[i]) + chopped_[i]));
        }
        return farthest;
    }
};

// Forces λ = ρ max(ahead - N u, 0) of contacts, u = K⁻¹ Nᵀ λ (n, 3), as `contact_newton` finds them, for any number.
// forces: (m,) a guess at first. moved: (n, 3) u. Returns whether they were found with `most` products.
bool projected_gradients(Points rows, In<double, 1> rho, In<double, 1> ahead, In<double, 1> softness, double enough,
                         int64_t most, Out<double, 1> forces, Out<double, 2> moved) {
    const int64_t count = forces.shape[0];
    std::vector<char> chosen(static_cast<size_t>(count), 0);
    std::vector<int64_t> some;
    for (int round = 0; round < ROUNDS; ++round) {
        std::fill_n(moved.data, moved.size(), 0.0);
        for (int64_t r = 0; r < count; ++r)
            for (int k = 0; k < 4 && forces(r) != 0.0; ++k)
                for (int axis = 0; axis < 3; ++axis)
                    moved(rows.vertices(r, k), axis) +=
                        rows.weights(r, k) * softness(rows.vertices(r, k)) * forces(r) * rows.directions(r, axis);
        bool more = false;
        for (int64_t r = 0; r < count; ++r) {
            double violation = ahead(r);
            for (int k = 0; k < 4; ++k)
                for (int axis = 0; axis < 3; ++axis)
                    violation -= rows.weights(r, k) * moved(rows.vertices(r, k), axis) * rows.directions(r, axis);
            if (!std::isfinite(violation)) return false;
            if (chosen[r] || !(violation > (round ? enough : 0.0) || forces(r) > 0)) continue;
            chosen[r] = 1, more = true;
            some.push_back(r);
        }
        if (!more) return true;
        Bounded problem(rows, rho, ahead, softness, some, forces);
        most -= problem.minimise(enough, most);
        for (size_t i = 0; i < some.size(); ++i) forces(some[i]) = problem.scale[i] * problem.y[i];
        if (most < 0) return false;
    }
    return false;
}

}  // namespace

EXPORT(contact_projected_gradients, projected_gradients)
