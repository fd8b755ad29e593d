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
