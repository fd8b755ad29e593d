// Products of contact rows, each a point by up to four vertices and weights; the equations are in forces.py.
#include <algorithm>
#include <vector>

#include "kernel.h"

namespace {

struct Points {
    In<int64_t, 2> vertices;   // (m, 4)
    In<double, 2> weights;     // (m, 4)
    In<double, 2> directions;  // (m, 3)

    using Fields = Types<In<int64_t, 2>, In<double, 2>, In<double, 2>>;
};

constexpr int ACTING_SWEEPS = 8, MAX_SUBSPACE_ITERATIONS = 200;
constexpr double SUBSPACE_REDUCTION = 1e-6;

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
