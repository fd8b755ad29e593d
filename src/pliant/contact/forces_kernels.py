"""The compiled products behind `pliant.contact.forces`; m rows, each a point by up to four vertices and weights."""

from __future__ import annotations

import numpy as np

from pliant.jit import kernel, parallel_kernel, prange
from pliant.topology import Floats, Ints


@kernel
def moved_along(vertices: Ints, weights: Floats, directions: Floats, x: Floats) -> Floats:
    """(m,) N x: the motion x (n, 3) of each row's point along its direction."""
    out = np.zeros(len(vertices))
    for row in range(len(vertices)):
        for k in range(4):
            weight = weights[row, k]
            if weight != 0.0:
                v = vertices[row, k]
                for axis in range(3):
                    out[row] += weight * x[v, axis] * directions[row, axis]
    return out


@kernel
def spread_forces(vertices: Ints, weights: Floats, directions: Floats, forces: Floats, count: int) -> Floats:
    """(n, 3) Nᵀ λ: the rows' forces at the body's vertices."""
    out = np.zeros((count, 3))
    for row in range(len(vertices)):
        for k in range(4):
            share = weights[row, k] * forces[row]
            if share != 0.0:
                for axis in range(3):
                    out[vertices[row, k], axis] += share * directions[row, axis]
    return out


@kernel
def used_first(vertices: Ints, weights: Floats) -> tuple[Ints, Floats, Ints]:
    """Rows with the vertices that have a weight first, and how many those are."""
    ordered, shares, counts = vertices.copy(), np.zeros_like(weights), np.zeros(len(vertices), np.int64)
    for row in range(len(vertices)):
        for k in range(4):
            if weights[row, k] != 0.0:
                ordered[row, counts[row]], shares[row, counts[row]] = vertices[row, k], weights[row, k]
                counts[row] += 1
        for k in range(counts[row], 4):
            ordered[row, k] = ordered[row, 0]
    return ordered, shares, counts


@parallel_kernel
def answers(chosen: Ints, slots: Ints, weights: Floats, counts: Ints, directions: Floats, table: Floats) -> Floats:
    """(c, m) chosen rows of N L⁻¹ Nᵀ, from a table of L⁻¹ by slots (m, 4); see `used_first` for weights and counts."""
    out = np.empty((len(chosen), len(slots)))
    for a in prange(len(chosen)):
        i = chosen[a]
        answer = weights[i, 0] * table[slots[i, 0]]
        for k in range(1, counts[i]):
            answer += weights[i, k] * table[slots[i, k]]
        for j in range(len(slots)):
            entry = 0.0
            for q in range(counts[j]):
                entry += weights[j, q] * answer[slots[j, q]]
            turned = directions[i, 0] * directions[j, 0] + directions[i, 1] * directions[j, 1]
            out[a, j] = entry * (turned + directions[i, 2] * directions[j, 2])
    return out


@kernel
def block(rows: Floats, place: Ints, chosen: Ints, added: Floats) -> Floats:
    """(c, c) of a symmetric matrix the chosen rows and columns, with something added (c,) on the diagonal.

    rows: some rows of the matrix; place: where among them each row is.
    """
    out = np.empty((len(chosen), len(chosen)))
    for i in range(len(chosen)):
        row = rows[place[chosen[i]]]
        for j in range(len(chosen)):
            out[i, j] = row[chosen[j]]
        out[i, i] += added[i]
    return out
