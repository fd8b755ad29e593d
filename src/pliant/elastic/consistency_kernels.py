"""Compiled sums for consistent gradients; the equations are in `pliant.elastic.consistency`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.elastic.mls_kernels import MOST, _cholesky, _moments, _solve
from pliant.elastic.stiffness_kernels import _pattern
from pliant.jit import kernel
from pliant.topology import Floats, Ints

RIDGE = 1e-12
LARGEST = 0.5
"""Change of the gradients at a point, over themselves."""


@kernel
def _basis(start: int, stop: int, node: Ints, phi: Floats, local: Floats, P: Floats, D: Floats, L: Floats) -> None:
    """Linear basis P about the middle of a point's nodes, their weights D = |φ|, and the factor of PᵀDP."""
    middle, M = np.zeros(3), np.zeros((4, 4))
    for e in range(start, stop):
        middle += local[node[e]] / (stop - start)
    for e in range(start, stop):
        D[e - start], P[e - start, 0] = abs(phi[e]), 1.0
        P[e - start, 1:] = local[node[e]] - middle
    _moments(P, D, stop - start, M)
    for i in range(4):
        M[i, i] *= 1 + RIDGE
    _cholesky(M, L)


@kernel
def fit_matrix(
    start: Ints, node: Ints, first: Ints, point: Ints, phi: Floats, weights: Floats, local: Floats
) -> tuple[Ints, NDArray[np.int32], Floats]:
    """Row starts, columns and values of Σ_q w_q (D − D P (PᵀDP)⁻¹ PᵀD)."""
    begin, column = _pattern(start, node, first, point)
    values = np.zeros(len(column))
    P, D, L, x = np.empty((MOST, 4)), np.empty(MOST), np.zeros((4, 4)), np.zeros(4)
    for q in range(len(start) - 1):
        _basis(start[q], start[q + 1], node, phi, local, P, D, L)
        for i in range(start[q + 1] - start[q]):
            _solve(L, P[i], x)
            row = node[start[q] + i]
            columns = column[begin[row] : begin[row + 1]]
            for j in range(start[q + 1] - start[q]):
                fit = P[j, 0] * x[0] + P[j, 1] * x[1] + P[j, 2] * x[2] + P[j, 3] * x[3]
                value = (D[i] if i == j else 0.0) - D[i] * D[j] * fit
                values[begin[row] + np.searchsorted(columns, node[start[q] + j])] += weights[q] * value
    return begin, column, values


@kernel
def corrected(start: Ints, node: Ints, phi: Floats, gradient: Floats, local: Floats, lam: Floats) -> Floats:
    """∇φ + δ."""
    out = gradient.copy()
    P, D, L, change = np.empty((MOST, 4)), np.empty(MOST), np.zeros((4, 4)), np.empty((MOST, 3))
    right, x = np.zeros(4), np.zeros(4)
    for q in range(len(start) - 1):
        _basis(start[q], start[q + 1], node, phi, local, P, D, L)
        count = start[q + 1] - start[q]
        for axis in range(3):
            right[:] = 0.0
            for i in range(count):
                for k in range(4):
                    right[k] += D[i] * P[i, k] * lam[node[start[q] + i], axis]
            _solve(L, right, x)
            for i in range(count):
                fit = P[i, 0] * x[0] + P[i, 1] * x[1] + P[i, 2] * x[2] + P[i, 3] * x[3]
                change[i, axis] = D[i] * (lam[node[start[q] + i], axis] - fit)
        size, changed = (gradient[start[q] : start[q + 1]] ** 2).sum(), (change[:count] ** 2).sum()
        share = 1.0 if changed <= LARGEST**2 * size else LARGEST * np.sqrt(size / changed)
        for i in range(count):
            out[start[q] + i] += share * change[i]
    return out
