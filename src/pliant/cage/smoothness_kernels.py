"""The smoothness matrix of Green coordinates, compiled: Hessians and their products, one group of samples at a time.

φ and ψ are harmonic, ``zz = −xx − yy``, so five rows do for the six of a symmetric Hessian:

    xx² + yy² + zz² + 2 (xy² + xz² + yz²) = 2 (xx + yy/2)² + 3/2 yy² + 2 (xy² + xz² + yz²)

Each core adds up a matrix of its own from products of tiles that are small enough for the library to multiply on the
spot, so that no core waits for another.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from pliant.cage.green_derivatives import edge_slopes, hessians, slope_room
from pliant.cage.green_kernels import Surface, look, room
from pliant.jit import kernel
from pliant.topology import Floats

TILE = 40
"""Columns of a tile; with 5 × 32 rows, OpenBLAS uses threads from the next larger product on."""


@kernel
def _weighted(table: Floats, weights: Floats, first: int, out: Floats) -> None:
    """Five rows a sample of Hessians (6, c + f, lanes), as (padded c + f, 5 lanes), by the roots of the weights."""
    lanes = table.shape[2]
    root = np.zeros(lanes)
    for k in range(min(lanes, len(weights) - first)):
        root[k] = sqrt(2 * weights[first + k])
    for i in range(table.shape[1]):
        row = out[i]
        for k in range(lanes):
            row[k] = root[k] * (table[0, i, k] + 0.5 * table[1, i, k])
        for k in range(lanes):
            row[lanes + k] = root[k] * sqrt(0.75) * table[1, i, k]
        for pair in range(3):
            for k in range(lanes):
                row[(2 + pair) * lanes + k] = root[k] * table[3 + pair, i, k]


@kernel
def _add_products(rows: Floats, product: Floats, out: Floats) -> None:
    """Rows (padded c + f, m) times their transpose: tiles on and below the diagonal, added to (t, t, tile, tile)."""
    for i in range(len(out)):
        for j in range(i + 1):
            np.dot(rows[i * TILE : (i + 1) * TILE], rows[j * TILE : (j + 1) * TILE].T, product)
            out[i, j] += product


@kernel
def squared_hessians(points: Floats, weights: Floats, surface: Surface, lanes: int) -> Floats:
    """(t, t, tile, tile) lower tiles of Σ weight ∇∇[φ ψ] : ∇∇[φ ψ] over points (m, 3)."""
    size = len(surface.points) + len(surface.triangles)
    count, inside = (size + TILE - 1) // TILE, np.full(len(points), -1)
    out = np.zeros((count, count, TILE, TILE))
    seen, slopes, table = room(surface, lanes), slope_room(surface, lanes), np.empty((6, size, lanes))
    rows, product = np.zeros((count * TILE, 5 * lanes)), np.empty((TILE, TILE))
    for first in range(0, len(points), lanes):
        look(points, first, surface, inside, seen)
        edge_slopes(surface, seen, True, slopes)
        hessians(surface, seen, slopes, table)
        _weighted(table, weights, first, rows)
        _add_products(rows, product, out)
    return out
