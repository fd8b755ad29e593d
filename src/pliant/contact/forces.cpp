// Products of contact rows, each a point by up to four vertices and weights; the equations are in forces.py.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "contact/rows.h"

namespace {

constexpr int ACTING_SWEEPS = 8, MAX_SUBSPACE_ITERATIONS = 200;
constexpr double SUBSPACE_REDUCTION = 1e-6;
constexpr int MAX_NEWTON_STEPS = 40, BISECTIONS = 30;
constexpr double NEWTON_SHARE = 1e-2;  // of the resolution: a step that ends Newton's method
constexpr size_t MAX_DENSE_ROWS = 400;

}  // namespace

// (m,) N x: the motion x (n, 3) of each row's point along its direction.
static void along(Points rows, In<double, 2> x, Out<double, 1> out) {
    for (int64_t row = 0; row < out.shape[0]; ++row) {
        double moved = 0.0;
        for (int k = 0; k < 4; ++k) {
            const double weight = rows.weights(row, k);
            if (weight == 0.0) continue;
            const double *place = &x(rows.vertices(row, k), 0);
            for (int axis = 0; axis < 3; ++axis) moved += weight * place[axis] * rows.directions(row, axis);
        }
        out(row) = moved;
    }
}
EXPORT(contact_along, along)

// Adds Nᵀ λ (n, 3), the rows' forces at the body's vertices.
static void spread(Points rows, In<double, 1> forces, Out<double, 2> out) {
    for (int64_t row = 0; row < forces.shape[0]; ++row)
        for (int k = 0; k < 4; ++k) {
            const double share = rows.weights(row, k) * forces(row);
            if (share == 0.0) continue;
            double *sum = &out(rows.vertices(row, k), 0);
            for (int axis = 0; axis < 3; ++axis) sum[axis] += share * rows.directions(row, axis);
        }
}
EXPORT(contact_spread, spread)

// Puts the vertices that have a weight first, and counts those.
static void used_first(In<int64_t, 2> vertices, In<double, 2> weights, Out<int64_t, 2> ordered, Out<double, 2> shares,
                       Out<int64_t, 1> counts) {
    for (int64_t row = 0; row < vertices.shape[0]; ++row) {
        for (int k = 0; k < 4; ++k) ordered(row, k) = vertices(row, k), shares(row, k) = 0.0;
        int64_t count = 0;
        for (int k = 0; k < 4; ++k)
            if (weights(row, k) != 0.0) {
                ordered(row, count) = vertices(row, k);
                shares(row, count++) = weights(row, k);
            }
        for (int64_t k = count; k < 4; ++k) ordered(row, k) = ordered(row, 0);
        counts(row) = count;
    }
}
EXPORT(contact_used_first, used_first)

// (c, m) chosen rows of N L⁻¹ Nᵀ, from a table whose first `used` rows and columns are L⁻¹ by slots (m, 4).
// rows: slots in place of vertices; those that have a weight come first, `counts` of them.
static void answers(In<int64_t, 1> chosen, Points rows, In<int64_t, 1> counts, In<double, 2> table, int64_t used,
                    Out<double, 2> out, int64_t begin, int64_t end) {
    std::vector<double> sums(used);
    double *__restrict const answer = sums.data();
    const In<int64_t, 2> &slots = rows.vertices;
    for (int64_t a = begin; a < end; ++a) {
        const int64_t i = chosen(a);
        for (int64_t k = 0; k < std::max<int64_t>(counts(i), 1); ++k) {
            const double weight = rows.weights(i, k), *column = &table(slots(i, k), 0);
            if (k == 0)
                for (int64_t s = 0; s < used; ++s) answer[s] = weight * column[s];
            else
                for (int64_t s = 0; s < used; ++s) answer[s] += weight * column[s];
        }
        const double x = rows.directions(i, 0), y = rows.directions(i, 1), z = rows.directions(i, 2);
        for (int64_t j = 0; j < slots.shape[0]; ++j) {
            const int64_t *slot = &slots(j, 0), count = counts(j);
            const double *weight = &rows.weights(j, 0), *direction = &rows.directions(j, 0);
            double entry = 0.0;
            for (int64_t q = 0; q < count; ++q) entry += weight[q] * answer[slot[q]];
            out(a, j) = entry * (x * direction[0] + y * direction[1] + z * direction[2]);
        }
    }
}
EXPORT(contact_answers, answers)

// (c, c) of a symmetric matrix the chosen rows and columns, with something added (c,) on the diagonal.
// rows: some rows of the matrix; place: where among them each row is.
static void block(In<double, 2> rows, In<int64_t, 1> place, In<int64_t, 1> chosen, In<double, 1> added,
                  Out<double, 2> out) {
    const int64_t count = chosen.shape[0];
    for (int64_t i = 0; i < count; ++i) {
        const double *row = &rows(place(chosen(i)), 0);
        double *__restrict const entries = &out(i, 0);
        for (int64_t j = 0; j < count; ++j) entries[j] = row[chosen(j)];
        out(i, i) += added(i);
    }
}
EXPORT(contact_block, block)

namespace {

// The vertices of some rows and their weights there, vertex by vertex: who shares one gives way together.
struct Sharing {
    std::vector<int64_t> slot, vertex;                          // of each vertex; and back
    std::vector<std::vector<std::pair<int64_t, double>>> rows;  // by slot: numbers among the rows, and weights

    Sharing(const Points &points, const std::vector<int64_t> &chosen, int64_t vertices) : slot(vertices, -1) {
        for (size_t i = 0; i < chosen.size(); ++i)
            for (int k = 0; k < 4; ++k) {
                const double weight = points.weights(chosen[i], k);
                if (weight == 0.0) continue;
                int64_t &at = slot[points.vertices(chosen[i], k)];
                if (at < 0) {
                    at = int64_t(rows.size());
                    vertex.push_back(points.vertices(chosen[i], k));
                    rows.emplace_back();
                }
                rows[at].emplace_back(int64_t(i), weight);
            }
    }
};

// Solves A x = b for a dense symmetric positive definite A (n, n), of which the upper part is read and overwritten by
// its Cholesky factor U, A = Uᵀ U, and b by x. Whether it is definite. Rows that share no vertex do not meet: what is 0
// is skipped.
bool solve_dense(std::vector<double> &A, std::vector<double> &b) {
    const int64_t n = int64_t(b.size());
    for (int64_t k = 0; k < n; ++k) {
        double *__restrict const row = &A[k * n];
        if (!(row[k] > 0)) return false;
        const double scale = 1 / std::sqrt(row[k]);
        for (int64_t j = k; j < n; ++j) row[j] *= scale;
        b[k] *= scale;
        for (int64_t i = k + 1; i < n; ++i) {
            const double share = row[i];
            if (share == 0.0) continue;
            double *__restrict const below = &A[i * n];
            for (int64_t j = i; j < n; ++j) below[j] -= share * row[j];
            b[i] -= share * b[k];
        }
    }
    for (int64_t i = n - 1; i >= 0; --i) {
        double sum = b[i];
        for (int64_t k = i + 1; k < n; ++k) sum -= A[i * n + k] * b[k];
        b[i] = sum / A[i * n + i];
    }
    return true;
}

}  // namespace

// (k,) the forces λ of some rows alone: (N K⁻¹ Nᵀ + 1/ρ) λ = ahead, K⁻¹ = `softness` (n,). Whether there are any.
static bool acting_forces(const Points &rows, const In<double, 1> &rho, const In<double, 1> &ahead,
                          const In<double, 1> &softness, const std::vector<int64_t> &some, std::vector<double> &found) {
    const size_t n = some.size();
    const Sharing sharing(rows, some, softness.shape[0]);
    std::vector<double> S(n * n, 0.0);
    for (size_t at = 0; at < sharing.rows.size(); ++at)
        for (const auto &[i, a] : sharing.rows[at])
            for (const auto &[j, b] : sharing.rows[at])
                if (i <= j) S[i * n + j] += a * b * softness(sharing.vertex[at]);
    found.resize(n);
    for (size_t i = 0; i < n; ++i) {
        for (size_t j = i; j < n; ++j) {
            double cosine = 0.0;
            for (int axis = 0; axis < 3 && S[i * n + j] != 0.0; ++axis)
                cosine += rows.directions(some[i], axis) * rows.directions(some[j], axis);
            S[i * n + j] *= cosine;
        }
        S[i * n + i] += 1 / rho(some[i]);
        found[i] = ahead(some[i]);
    }
    return solve_dense(S, found);
}

// Forces λ = ρ max(ahead - N u, 0) of contacts on a body whose vertices give way each by itself, to where
//
//     E(u) = ½ Σ |u|² / softness + ½ Σ ρ max(ahead - N u, 0)²
//
// is least. E is quadratic in pieces: Newton's method with an exact line search ends at the solution. Its step leads to
// where the rows that are violated now would alone have it.
// forces: (m,) a guess at first. moved: (n, 3) u. Returns whether it was found; nothing is changed otherwise.
static bool newton(Points rows, In<double, 1> rho, In<double, 1> ahead, In<double, 1> softness, double enough,
                   Out<double, 1> forces, Out<double, 2> moved) {
    const int64_t count = forces.shape[0], size = moved.size();
    std::vector<double> u(size), d(size), found, violation(count), slope(count);
    std::vector<int64_t> some, before, pressing;
    const auto spread = [&](int64_t r, double force, std::vector<double> &to) {
        for (int k = 0; k < 4; ++k) {
            const int64_t v = rows.vertices(r, k);
            const double share = rows.weights(r, k) * softness(v) * force;
            for (int axis = 0; axis < 3; ++axis) to[3 * v + axis] += share * rows.directions(r, axis);
        }
    };
    const auto along = [&](int64_t r, const std::vector<double> &motion) {
        double sum = 0.0;
        for (int k = 0; k < 4; ++k)
            for (int axis = 0; axis < 3; ++axis)
                sum += rows.weights(r, k) * motion[3 * rows.vertices(r, k) + axis] * rows.directions(r, axis);
        return sum;
    };
    for (int64_t r = 0; r < count; ++r)
        if (forces(r) != 0.0) spread(r, forces(r), u);
    double share = 0.0, farthest = 0.0;
    for (int step = 0; step <= MAX_NEWTON_STEPS; ++step) {
        some.clear();
        for (int64_t r = 0; r < count; ++r) {
            violation[r] = ahead(r) - along(r, u);
            if (violation[r] > 0) some.push_back(r);
        }
        // A step that is cut short may have ended at a stiff row, far from the solution.
        if (share == 1.0 && (some == before || farthest <= NEWTON_SHARE * enough)) {
            for (int64_t r = 0; r < count; ++r) forces(r) = rho(r) * std::max(violation[r], 0.0);
            std::copy(u.begin(), u.end(), moved.data);
            return true;
        }
        if (some.size() > MAX_DENSE_ROWS || !acting_forces(rows, rho, ahead, softness, some, found)) return false;
        std::fill(d.begin(), d.end(), 0.0);
        for (size_t i = 0; i < some.size(); ++i) spread(some[i], found[i], d);
        double first = 0.0, second = 0.0;  // E' = first + t second - Σ ρ b max(a - t b, 0) along d, a share t of it
        farthest = 0.0;
        for (int64_t i = 0; i < size; ++i) {
            d[i] -= u[i];
            if (d[i] == 0.0) continue;
            first += u[i] * d[i] / softness(i / 3), second += d[i] * d[i] / softness(i / 3);
            farthest = std::max(farthest, std::abs(d[i]));
        }
        pressing.clear();  // those of which any share of the step makes something
        for (int64_t r = 0; r < count; ++r) {
            slope[r] = along(r, d);
            if (violation[r] > 0 || violation[r] > slope[r]) pressing.push_back(r);
        }
        const auto derivative = [&](double t) {
            double sum = first + t * second;
            for (const int64_t r : pressing) sum -= rho(r) * slope[r] * std::max(violation[r] - t * slope[r], 0.0);
            return sum;
        };
        double low = 0.0;
        share = 1.0;
        if (derivative(1.0) > 1e-9 * std::abs(derivative(0.0)))
            for (int k = 0; k < BISECTIONS; ++k) {
                const double middle = 0.5 * (low + share);
                (derivative(middle) > 0 ? share : low) = middle;
            }
        for (int64_t i = 0; i < size; ++i) u[i] += share * d[i];
        before = some;
    }
    return false;
}
EXPORT(contact_newton, newton)

// Forces of rows on a body whose vertices give way each by itself, by as much as `softness` (n,) times the force on it: one
// row after the other, and friction within Coulomb's cone after all contacts (projected Gauss-Seidel). Between the sweeps,
// forces of the contacts that act are found together (subspace minimisation; Morales, Nocedal and Smelyanskiy 2008).
// ahead: (m,) violations without forces. pairs: (k, 2) rows of friction, bounded by `coefficient` (k,) times the forces of rows `normal`.
// forces: (m,) a guess at first. moved: (n, 3) the motion that they bring about, 0 at first. It ends when no point moves
// farther than `enough` in a sweep; returns the sweeps.
static int64_t sweeps(Points rows, In<double, 1> rho, In<double, 1> ahead, In<int64_t, 2> pairs, In<int64_t, 1> normal,
                      In<double, 1> coefficient, In<double, 1> softness, double enough, int64_t most,
                      Out<double, 1> forces, Out<double, 2> moved) {
    const int64_t count = forces.shape[0];
    std::vector<double> gain(static_cast<size_t>(count));
    for (int64_t r = 0; r < count; ++r) {
        double soft = 1 / rho(r);
        for (int k = 0; k < 4; ++k) soft += rows.weights(r, k) * rows.weights(r, k) * softness(rows.vertices(r, k));
        gain[r] = 1 / soft;
    }
    const auto push = [&](int64_t r, double force) {
        double farthest = 0.0;
        for (int k = 0; k < 4; ++k) {
            const int64_t v = rows.vertices(r, k);
            const double share = rows.weights(r, k) * softness(v) * force;
            if (share == 0.0) continue;
            for (int axis = 0; axis < 3; ++axis) moved(v, axis) += share * rows.directions(r, axis);
            farthest = std::max(farthest, std::abs(share));
        }
        return farthest;
    };
    const auto wished = [&](int64_t r) {
        double v = ahead(r);
        for (int k = 0; k < 4; ++k) {
            const double weight = rows.weights(r, k), *place = &moved(rows.vertices(r, k), 0);
            if (weight != 0.0)
                for (int axis = 0; axis < 3; ++axis) v -= weight * place[axis] * rows.directions(r, axis);
        }
        return forces(r) + gain[r] * (v - forces(r) / rho(r));
    };
    std::vector<char> rubs(static_cast<size_t>(count), 0);
    std::vector<int64_t> contacts, acting;
    for (int64_t k = 0; k < pairs.shape[0]; ++k) rubs[pairs(k, 0)] = rubs[pairs(k, 1)] = 1;
    for (int64_t r = 0; r < count; ++r) {
        if (forces(r) != 0.0) push(r, forces(r));
        if (!rubs[r]) contacts.push_back(r);
    }
    const auto press = [&](const std::vector<int64_t> &some) {
        double farthest = 0.0;
        for (const int64_t r : some) {
            const double change = std::max(wished(r), 0.0) - forces(r);
            if (change == 0.0) continue;
            forces(r) += change;
            farthest = std::max(farthest, push(r, change));
        }
        for (int64_t k = 0; k < pairs.shape[0]; ++k) {
            const int64_t a = pairs(k, 0), b = pairs(k, 1);
            const double limit = coefficient(k) * forces(normal(k));
            if (limit == 0.0 && forces(a) == 0.0 && forces(b) == 0.0) continue;
            double along = wished(a), across = wished(b);
            const double size = std::hypot(along, across);
            if (size > limit) along *= limit / size, across *= limit / size;
            farthest = std::max({farthest, push(a, along - forces(a)), push(b, across - forces(b))});
            forces(a) = along, forces(b) = across;
        }
        return farthest;
    };
    std::vector<double> residual(count), step(count), along(count), preconditioned(count), change(count), scratch;
    scratch.resize(static_cast<size_t>(3 * moved.shape[0]));
    const auto answer = [&](const std::vector<int64_t> &some, const std::vector<double> &force) {  // N K⁻¹ Nᵀ f + f / ρ
        for (const int64_t r : some)
            for (int k = 0; k < 4; ++k) std::fill_n(&scratch[3 * rows.vertices(r, k)], 3, 0.0);
        for (const int64_t r : some)
            for (int k = 0; k < 4; ++k) {
                const int64_t v = rows.vertices(r, k);
                const double share = rows.weights(r, k) * softness(v) * force[r];
                for (int axis = 0; axis < 3; ++axis) scratch[3 * v + axis] += share * rows.directions(r, axis);
            }
        for (const int64_t r : some) {
            along[r] = force[r] / rho(r);
            for (int k = 0; k < 4; ++k)
                for (int axis = 0; axis < 3; ++axis)
                    along[r] += rows.weights(r, k) * scratch[3 * rows.vertices(r, k) + axis] * rows.directions(r, axis);
        }
    };
    const auto dot = [](const std::vector<int64_t> &some, const std::vector<double> &a, const std::vector<double> &b) {
        double sum = 0.0;
        for (const int64_t r : some) sum += a[r] * b[r];
        return sum;
    };
    const auto minimise = [&](const std::vector<int64_t> &some) {
        for (const int64_t r : some) {
            residual[r] = (wished(r) - forces(r)) / gain[r];
            step[r] = preconditioned[r] = gain[r] * residual[r];
            change[r] = 0.0;
        }
        const std::vector<double> first = residual;
        double size = dot(some, residual, preconditioned);
        const double least = SUBSPACE_REDUCTION * SUBSPACE_REDUCTION * size;
        for (int k = 0; k < MAX_SUBSPACE_ITERATIONS && size > least; ++k) {
            answer(some, step);
            const double share = size / dot(some, step, along), before = size;
            for (const int64_t r : some) {
                change[r] += share * step[r], residual[r] -= share * along[r];
                preconditioned[r] = gain[r] * residual[r];
            }
            size = dot(some, residual, preconditioned);
            for (const int64_t r : some) step[r] = preconditioned[r] + size / before * step[r];
        }
        for (double share = 1.0; share > 0.05; share *= 0.5) {  // bounded, as long as that lowers the energy
            for (const int64_t r : some) step[r] = std::max(forces(r) + share * change[r], 0.0) - forces(r);
            answer(some, step);
            if (0.5 * dot(some, step, along) >= dot(some, first, step)) continue;
            for (const int64_t r : some) forces(r) += step[r], push(r, step[r]);
            return;
        }
    };
    bool minimised = false;
    for (int64_t sweep = 1; sweep <= most; ++sweep) {  // over all contacts, and then over those that act
        if (press(contacts) <= enough && minimised) return sweep;
        acting.clear();
        for (const int64_t r : contacts)
            if (forces(r) > 0) acting.push_back(r);
        minimised = true;
        if (acting.empty()) continue;
        for (int k = 0; k < ACTING_SWEEPS && sweep < most; ++k, ++sweep)
            if (press(acting) <= enough) break;
        acting.erase(std::remove_if(acting.begin(), acting.end(), [&](int64_t r) { return forces(r) <= 0; }), acting.end());
        minimise(acting);
    }
    return most + 1;
}
EXPORT(contact_sweeps, sweeps)
// Coulomb's law for few rows, by projected Gauss-Seidel on their dense answers S (m, m): each contact and then its own
// friction, so that every sweep ends within the cones. order: (m,) rows of contacts, each followed by its two of friction.
// limit: (m,) for the first of two rows of friction the coefficient, -1 for the second, -2 for contacts. u: (m,) ahead - S λ.
// It ends when no row's point moves farther than `enough` in a sweep; returns the sweeps.
static int64_t coulomb_sweeps(In<double, 2> S, In<double, 1> rho, In<int64_t, 1> order, In<double, 1> limit, double enough,
                              int64_t most, Out<double, 1> forces, Out<double, 1> u) {
    const int64_t count = forces.shape[0];
    const auto change = [&](int64_t r, double by) {
        if (by == 0.0) return 0.0;
        forces(r) += by;
        const double *row = &S(r, 0);
        double *__restrict const at = &u(0);
        for (int64_t k = 0; k < count; ++k) at[k] -= row[k] * by;
        return std::abs(by) * (S(r, r) + 1 / rho(r));
    };
    for (int64_t sweep = 1; sweep <= most; ++sweep) {
        double farthest = 0.0, pressed = 0.0;
        for (int64_t k = 0; k < count; ++k) {
            const int64_t r = order(k);
            if (limit(r) == -1.0) continue;
            if (limit(r) < 0.0) {
                const double wished = forces(r) + (u(r) - forces(r) / rho(r)) / (S(r, r) + 1 / rho(r));
                farthest = std::max(farthest, change(r, std::max(wished, 0.0) - forces(r)));
                pressed = forces(r);
                continue;
            }
            const int64_t t = order(k + 1);
            const double bound = limit(r) * pressed;
            if (bound == 0.0 && forces(r) == 0.0 && forces(t) == 0.0) continue;
            const double gain = 1 / (std::max(S(r, r) + 1 / rho(r), S(t, t) + 1 / rho(t)) + std::abs(S(r, t)));
            double along = forces(r) + gain * (u(r) - forces(r) / rho(r)), across = forces(t) + gain * (u(t) - forces(t) / rho(t));
            const double size = std::hypot(along, across);
            if (size > bound) along *= bound / size, across *= bound / size;
            farthest = std::max({farthest, change(r, along - forces(r)), change(t, across - forces(t))});
        }
        if (farthest <= enough) return sweep;
    }
    return most + 1;
}
EXPORT(contact_coulomb_sweeps, coulomb_sweeps)
