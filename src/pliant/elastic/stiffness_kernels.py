"""Compiled sums of 3 × 3 blocks over quadrature points; the equations are in `pliant.elastic.stiffness`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.jit import kernel
from pliant.topology import Floats, Ints


@kernel
def _pattern(start: Ints, node: Ints, first: Ints, point: Ints) -> tuple[Ints, NDArray[np.int32]]:
    """Sparsity of the pairs of nodes that share a point, columns in order."""
    nodes = len(first) - 1
    begin, seen = np.zeros(nodes + 1, dtype=np.int64), np.full(nodes, -1, dtype=np.int64)
    column = np.empty(0, dtype=np.int32)
    for write in range(2):
        seen[:] = -1
        for row in range(nodes):
            found = 0
            for e in range(first[row], first[row + 1]):
                for k in range(start[point[e]], start[point[e] + 1]):
                    if seen[node[k]] != row:
                        seen[node[k]] = row
                        if write:
                            column[begin[row] + found] = node[k]
                        found += 1
            if write:
                column[begin[row] : begin[row + 1]].sort()
            else:
                begin[row + 1] = begin[row] + found
        if not write:
            column = np.empty(begin[-1], dtype=np.int32)
    return begin, column


@kernel
def stiffness_blocks(
    start: Ints, node: Ints, first: Ints, entry: Ints, point: Ints, gradient: Floats, lam: Floats, mu: Floats
) -> tuple[Ints, NDArray[np.int32], Floats]:
    """Row starts, columns and blocks (nnz, 3, 3) of K; λ and μ are multiplied with the weights."""
    begin, column = _pattern(start, node, first, point)
    blocks = np.zeros((len(column), 3, 3))
    at = np.zeros(len(first) - 1, dtype=np.int64)
    for row in range(len(first) - 1):
        for k in range(begin[row], begin[row + 1]):
            at[column[k]] = k
        for e in range(first[row], first[row + 1]):
            q, g = point[e], gradient[entry[e]]
            for k in range(start[q], start[q + 1]):
                block, f = blocks[at[node[k]]], gradient[k]
                both = mu[q] * (g[0] * f[0] + g[1] * f[1] + g[2] * f[2])
                for i in range(3):
                    for j in range(3):
                        block[i, j] += lam[q] * g[i] * f[j] + mu[q] * f[i] * g[j]
                    block[i, i] += both
    return begin, column, blocks
