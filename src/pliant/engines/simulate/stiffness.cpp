// Sums of 3 × 3 blocks over quadrature points; the equations are in stiffness.py.
#include <algorithm>
#include <vector>

#include "engines/simulate/stiffness.h"

// Row starts of the pairs of nodes that share a point (n + 1,); returns how many pairs there are.
static int64_t pattern_rows(NodeIncidence at, Out<int64_t, 1> begin) {
    const int64_t nodes = begin.shape[0] - 1;
    std::vector<int64_t> seen(nodes, -1);
    begin(0) = 0;
    for (int64_t row = 0; row < nodes; ++row) {
        int64_t found = 0;
        for (int64_t e = at.first(row); e < at.first(row + 1); ++e)
            for (int64_t k = at.start(at.point(e)); k < at.start(at.point(e) + 1); ++k)
                if (seen[at.node(k)] != row) seen[at.node(k)] = row, ++found;
        begin(row + 1) = begin(row) + found;
    }
    return begin(nodes);
}
EXPORT(stiffness_pattern_rows, pattern_rows)

// Their columns (pairs,), in order.
static void pattern_columns(NodeIncidence at, In<int64_t, 1> begin, Out<int32_t, 1> column) {
    const int64_t nodes = begin.shape[0] - 1;
    std::vector<int64_t> seen(nodes, -1);
    for (int64_t row = 0; row < nodes; ++row) {
        int64_t next = begin(row);
        for (int64_t e = at.first(row); e < at.first(row + 1); ++e)
            for (int64_t k = at.start(at.point(e)); k < at.start(at.point(e) + 1); ++k)
                if (seen[at.node(k)] != row) seen[at.node(k)] = row, column(next++) = at.node(k);
        std::sort(column.data + begin(row), column.data + begin(row + 1));
    }
}
EXPORT(stiffness_pattern_columns, pattern_columns)

// Blocks (pairs, 3, 3) of K, which begin as zero; λ and μ are multiplied with the weights.
static void blocks(NodeIncidence at, In<int64_t, 1> entry, In<int64_t, 1> begin, In<int32_t, 1> column,
                   In<double, 2> gradient, In<double, 1> lam, In<double, 1> mu, Out<double, 3> out, int64_t first_row,
                   int64_t end_row) {
    std::vector<int64_t> pair(begin.shape[0] - 1);
    for (int64_t row = first_row; row < end_row; ++row) {
        for (int64_t k = begin(row); k < begin(row + 1); ++k) pair[column(k)] = k;
        for (int64_t e = at.first(row); e < at.first(row + 1); ++e) {
            const int64_t q = at.point(e);
            const double *g = &gradient(entry(e), 0);
            for (int64_t k = at.start(q); k < at.start(q + 1); ++k) {
                double *block = &out(pair[at.node(k)], 0, 0);
                const double *f = &gradient(k, 0);
                const double both = mu(q) * (g[0] * f[0] + g[1] * f[1] + g[2] * f[2]);
                for (int i = 0; i < 3; ++i) {
                    for (int j = 0; j < 3; ++j) block[3 * i + j] += lam(q) * g[i] * f[j] + mu(q) * f[i] * g[j];
                    block[4 * i] += both;
                }
            }
        }
    }
}
EXPORT(stiffness_blocks, blocks)
