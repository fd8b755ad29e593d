"""Compiled moving least squares; the equations are in `pliant.elastic.mls`."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.elastic.visibility_kernels import MOST_CROSSINGS, hidden
from pliant.jit import kernel
from pliant.spatial.bvh import Tree
from pliant.topology import Floats, Ints

MOST = 256
"""Nodes that may reach one place."""
SINGULAR = 1e-10
"""Added to r² under the weight of a fixed node."""
FLAT = 1e-5
"""Determinant of the nodes' spread, over the cube of its mean, below which they count as lying in a plane."""
FARTHEST = 6.0
"""Square of a place's distance from the middle of its nodes, over their spread, up to which it is well posed."""
GROWTH = 1.25
STEPS = 30
SEEING = 6
"""Steps of larger supports after which hidden nodes are taken as well."""
RIDGE = 1e-3
"""What is added to the diagonal of M, over its first entry, where no support was large enough."""


@kernel
def bins_of(points: Floats, radii: Floats, low: Floats, size: float, shape: Ints) -> tuple[Ints, Ints]:
    """Nodes listed by the bins, cubes of edge `size`, that their supports overlap."""
    start = np.zeros(shape[0] * shape[1] * shape[2] + 1, dtype=np.int64)
    first, last = np.empty(3, dtype=np.int64), np.empty(3, dtype=np.int64)
    members = np.empty(0, dtype=np.int64)
    for write in range(2):
        for n in range(len(points)):
            for axis in range(3):
                first[axis] = max(int((points[n, axis] - radii[n] - low[axis]) / size), 0)
                last[axis] = min(int((points[n, axis] + radii[n] - low[axis]) / size), shape[axis] - 1)
            for i in range(first[0], last[0] + 1):
                for j in range(first[1], last[1] + 1):
                    for k in range(first[2], last[2] + 1):
                        at = (i * shape[1] + j) * shape[2] + k
                        if write:
                            members[start[at]] = n
                            start[at] += 1
                        else:
                            start[at + 1] += 1
        if not write:
            for b in range(len(start) - 1):
                start[b + 1] += start[b]
            members = np.empty(start[-1], dtype=np.int64)
    for b in range(len(start) - 1, 0, -1):
        start[b] = start[b - 1]
    start[0] = 0
    return start, members


@kernel
def _weight(r: float, fixed: bool) -> tuple[float, float]:
    """w of Eq. (8), singular for fixed nodes, and its derivative by r over r."""
    w = 1 - r * r * (6 - r * (8 - 3 * r))
    dw = -12 * (1 - r) * (1 - r)
    if fixed:
        s = r * r + SINGULAR
        return w / s, (dw - 2 * w / s) / s
    return w, dw


class Sight(NamedTuple):
    """What places and nodes see of each other."""

    seen: Floats
    """(p, 3) the places, or the nearest places of the surface for those outside."""
    around: Ints
    """(n,) surfaces around each node; 0 for one that is seen from everywhere."""
    depth: Floats
    """(n,) distance of each node from the surface."""
    tree: Tree
    eps: float
    """Distance that counts as zero."""


@kernel
def _near(x: Floats, seen: Floats, points: Floats, radii: Floats, candidates: Ints, grown: float, sight: Sight,
          blind: bool, found: Ints, r: Floats, work: Floats) -> int:  # fmt: skip
    """The candidates whose supports, taken `grown` times as large, contain x, and their relative distances.

    A node that is partly hidden counts as farther away. blind: take hidden nodes for seen.
    """
    count = 0
    for c in range(len(candidates)):
        n = candidates[c]
        h = grown * radii[n]
        d2 = (points[n, 0] - x[0]) ** 2 + (points[n, 1] - x[1]) ** 2 + (points[n, 2] - x[2]) ** 2
        if d2 >= h * h or count == MOST:
            continue
        r[count] = sqrt(d2) / h
        if not blind and sight.around[n] > 0 and d2 > sight.depth[n] ** 2:
            node, place = (points[n, 0], points[n, 1], points[n, 2]), (seen[0], seen[1], seen[2])
            r[count] += hidden(node, place, sight.around[n], sight.tree, sight.eps, work[0], work[1])
        if r[count] < 1:
            found[count] = n
            count += 1
    return count


@kernel
def _well_posed(M: Floats) -> bool:
    """Whether the nodes that M was summed over spread in all directions, with the place among them."""
    if M[0, 0] <= 0:
        return False
    m0, m1, m2 = M[0, 1] / M[0, 0], M[0, 2] / M[0, 0], M[0, 3] / M[0, 0]
    a, b, c = M[1, 1] / M[0, 0] - m0 * m0, M[2, 2] / M[0, 0] - m1 * m1, M[3, 3] / M[0, 0] - m2 * m2
    d, e, f = M[1, 2] / M[0, 0] - m0 * m1, M[1, 3] / M[0, 0] - m0 * m2, M[2, 3] / M[0, 0] - m1 * m2
    determinant = a * (b * c - f * f) - d * (d * c - f * e) + e * (d * f - b * e)
    if determinant <= FLAT * ((a + b + c) / 3) ** 3:
        return False
    away = (m0 * m0 * (b * c - f * f) + m1 * m1 * (a * c - e * e) + m2 * m2 * (a * b - d * d)) / determinant
    away += 2 * (m0 * m1 * (e * f - d * c) + m0 * m2 * (d * f - b * e) + m1 * m2 * (d * e - a * f)) / determinant
    return away <= FARTHEST


@kernel
def _cholesky(M: Floats, L: Floats) -> None:
    """M = L Lᵀ, both 4 × 4."""
    for i in range(4):
        for j in range(i + 1):
            total = M[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = sqrt(total) if i == j else total / L[j, j]


@kernel
def _solve(L: Floats, b: Floats, x: Floats) -> None:
    """x with L Lᵀ x = b."""
    for i in range(4):
        total = b[i]
        for k in range(i):
            total -= L[i, k] * x[k]
        x[i] = total / L[i, i]
    for i in range(3, -1, -1):
        total = x[i]
        for k in range(i + 1, 4):
            total -= L[k, i] * x[k]
        x[i] = total / L[i, i]


@kernel
def _moments(P: Floats, w: Floats, count: int, M: Floats) -> None:
    """M = Σ w p pᵀ, its lower and upper half."""
    M[:] = 0
    for c in range(count):
        for i in range(4):
            for j in range(i + 1):
                M[i, j] += w[c] * P[c, i] * P[c, j]
    for i in range(4):
        for j in range(i):
            M[j, i] = M[i, j]


@kernel
def _functions(P: Floats, w: Floats, dw: Floats, count: int, M: Floats, h: float, gradients: bool,
               phi: Floats, gradient: Floats) -> None:  # fmt: skip
    """φ and ∇φ from the basis at the nodes P (count, 4), their weights w and the weights' gradients dw."""
    L, gamma, beta, right = np.zeros((4, 4)), np.zeros(4), np.zeros(4), np.zeros(4)
    _cholesky(M, L)
    right[0] = 1.0
    _solve(L, right, gamma)
    for c in range(count):
        phi[c] = P[c, 0] * gamma[0] + P[c, 1] * gamma[1] + P[c, 2] * gamma[2] + P[c, 3] * gamma[3]
    if gradients:
        for axis in range(3):
            right[:] = 0.0
            right[1 + axis] = 1 / h
            for c in range(count):
                for i in range(4):
                    right[i] -= dw[c, axis] * phi[c] * P[c, i]
            _solve(L, right, beta)
            for c in range(count):
                fit = P[c, 0] * beta[0] + P[c, 1] * beta[1] + P[c, 2] * beta[2] + P[c, 3] * beta[3]
                gradient[c, axis] = dw[c, axis] * phi[c] + w[c] * fit
    for c in range(count):
        phi[c] *= w[c]


@kernel
def _weigh(x: Floats, points: Floats, radii: Floats, free: int, grown: float, found: Ints, r: Floats, count: int,
           P: Floats, w: Floats, dw: Floats) -> float:  # fmt: skip
    """Basis and weights at the found nodes; returns the unit of length of the basis."""
    h = 0.0
    for c in range(count):
        h = max(h, grown * radii[found[c]])
    for c in range(count):
        n = found[c]
        w[c], slope = _weight(r[c], n >= free)
        P[c, 0] = 1.0
        for axis in range(3):
            away = points[n, axis] - x[axis]
            P[c, 1 + axis] = away / h
            dw[c, axis] = -slope * away / (grown * radii[n]) ** 2
    return h


@kernel
def shape_functions(
    places: Floats,
    points: Floats,
    radii: Floats,
    free: int,
    low: Floats,
    size: float,
    shape: Ints,
    bins: tuple[Ints, Ints],
    sight: Sight,
    gradients: bool,
) -> tuple[Ints, NDArray[np.int32], Floats, Floats]:
    """Start of each place's row, nodes, φ and ∇φ."""
    start = np.zeros(len(places) + 1, dtype=np.int64)
    room = 24 * len(places) + MOST
    node, phi, gradient = np.empty(room, dtype=np.int32), np.empty(room), np.empty((room if gradients else 0, 3))
    found, r, P, w = np.empty(MOST, dtype=np.int64), np.empty(MOST), np.empty((MOST, 4)), np.empty(MOST)
    dw, value, slope, M = np.empty((MOST, 3)), np.empty(MOST), np.empty((MOST, 3)), np.empty((4, 4))
    everyone, work = np.arange(len(points)), np.empty((2, MOST_CROSSINGS))
    for q in range(len(places)):
        x = places[q]
        count, h, grown = 0, 0.0, 1.0
        for step in range(STEPS):
            candidates = _bin(x, low, size, shape, bins) if step == 0 else everyone
            blind = step > SEEING
            count = _near(x, sight.seen[q], points, radii, candidates, grown, sight, blind, found, r, work)
            h = _weigh(x, points, radii, free, grown, found, r, count, P, w, dw)
            _moments(P, w, count, M)
            if count >= 4 and _well_posed(M):
                break
            grown = 1.0 if step == SEEING else grown * GROWTH
            if step == STEPS - 1:
                for axis in range(3):
                    M[1 + axis, 1 + axis] += RIDGE * M[0, 0]
        _functions(P, w, dw, count, M, h, gradients, value, slope)
        at = start[q]
        start[q + 1] = at + count
        if start[q + 1] > len(node):
            more = 2 * len(node) + MOST
            node, phi = _longer(node, more), _longer(phi, more)
            if gradients:
                gradient = _longer(gradient.ravel(), 3 * more).reshape((more, 3))
        for c in range(count):
            node[at + c], phi[at + c] = found[c], value[c]
            if gradients:
                gradient[at + c] = slope[c]
    total = start[-1]
    return start, node[:total].copy(), phi[:total].copy(), gradient[: total if gradients else 0].copy()


@kernel
def _bin(x: Floats, low: Floats, size: float, shape: Ints, bins: tuple[Ints, Ints]) -> Ints:
    """The nodes whose supports overlap the bin that x lies in."""
    at = 0
    for axis in range(3):
        i = int((x[axis] - low[axis]) / size)
        if x[axis] < low[axis] or i >= shape[axis]:
            return bins[1][:0]
        at = at * shape[axis] + i
    return bins[1][bins[0][at] : bins[0][at + 1]]


@kernel
def _longer(array: NDArray, length: int) -> NDArray:  # type: ignore[type-arg]
    """The same values with room behind them."""
    more = np.empty(length, dtype=array.dtype)
    more[: len(array)] = array
    return more
