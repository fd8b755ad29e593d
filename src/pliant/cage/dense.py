"""Dense products and Cholesky solves of a few hundred unknowns, on one core.

The libraries' own would start a thread on every core. For matrices of this size the threads take longer to meet than
the work takes, many times longer where another process keeps a core busy. So matrices are cut into tiles, small
enough that the library multiplies two of them on the spot: Cholesky's factorisation tile by tile, ``L_jj`` by hand,
``L_ij = A_ij L_jj⁻ᵀ`` and ``A_ik −= L_ij L_kjᵀ`` by products.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from pliant.jit import kernel
from pliant.topology import Floats

TILE = 64
"""Rows of a tile; OpenBLAS uses threads from the next larger product on."""


@kernel
def transposed_product(A: Floats, X: Floats) -> Floats:
    """Aᵀ X (m, k) of an A (n, m) and an X (n, k) with few columns."""
    out = np.zeros((X.shape[1], A.shape[1]))
    for j in range(len(A)):
        row = A[j]
        for x in range(X.shape[1]):
            factor, sums = X[j, x], out[x]
            for i in range(len(row)):
                sums[i] += factor * row[i]
    return out.T.copy()


@kernel
def add_squares(H: Floats, rows: Floats, weight: float) -> None:
    """H (n, n) += weight Σ r rᵀ over rows (k, n)."""
    for row in rows:
        for i in range(len(row)):
            factor, line = weight * row[i], H[i]
            for j in range(len(row)):
                line[j] += factor * row[j]


@kernel
def _tiles(A: Floats) -> Floats:
    """(t, t, tile, tile) the lower part of A, filled up with ones on the diagonal."""
    count = (len(A) + TILE - 1) // TILE
    out = np.zeros((count, count, TILE, TILE))
    for i in range(count * TILE):
        if i >= len(A):
            out[i // TILE, i // TILE, i % TILE, i % TILE] = 1.0
            continue
        for j in range(i + 1):
            out[i // TILE, j // TILE, i % TILE, j % TILE] = A[i, j]
    return out


@kernel
def _factor(tile: Floats) -> bool:
    """The lower Cholesky factor of a tile, in its place; False if it is not positive definite."""
    for j in range(TILE):
        if not tile[j, j] > 0:
            return False
        tile[j, j] = sqrt(tile[j, j])
        for i in range(j + 1, TILE):
            tile[i, j] /= tile[j, j]
        for i in range(j + 1, TILE):
            factor = tile[i, j]
            for k in range(j + 1, i + 1):
                tile[i, k] -= factor * tile[k, j]
    return True


@kernel
def _inverse(L: Floats) -> Floats:
    """Of a lower triangular tile."""
    out = np.zeros((TILE, TILE))
    for i in range(TILE):
        row = out[i]
        for k in range(i):
            factor, above = L[i, k], out[k]
            for j in range(k + 1):
                row[j] -= factor * above[j]
        for j in range(i):
            row[j] /= L[i, i]
        row[i] = 1 / L[i, i]
    return out


@kernel
def solve_definite(A: Floats, b: Floats) -> Floats:
    """The x (n,) with A x = b for a symmetric positive definite A, of which the lower part is read; NaN for others."""
    tiles = _tiles(A)
    count = len(tiles)
    inverses, x = np.empty((count, TILE, TILE)), np.zeros(count * TILE)
    x[: len(b)] = b
    for j in range(count):
        if not _factor(tiles[j, j]):
            return np.full(len(b), np.nan)
        inverses[j] = _inverse(tiles[j, j])
        for i in range(j + 1, count):
            tiles[i, j] = np.dot(tiles[i, j], inverses[j].T)
        for k in range(j + 1, count):
            for i in range(k, count):
                tiles[i, k] -= np.dot(tiles[i, j], tiles[k, j].T)
    parts = x.reshape(count, TILE)
    for j in range(count):
        parts[j] = np.dot(inverses[j], parts[j])
        for i in range(j + 1, count):
            parts[i] -= np.dot(tiles[i, j], parts[j])
    for j in range(count - 1, -1, -1):
        for i in range(j + 1, count):
            parts[j] -= np.dot(tiles[i, j].T, parts[i])
        parts[j] = np.dot(inverses[j].T, parts[j])
    return x[: len(b)].copy()
