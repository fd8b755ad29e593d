"""Compiled moving least squares; the equations are in `pliant.elastic.mls`."""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

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
FLAT = 1e-9
"""Determinant of the nodes' spread, over the cube of its mean, below which they count as lying in a plane."""
COINCIDENT = 1e-12
"""Spread of the nodes, over the square of their reach, below which they count as one: the rest is rounding."""
FARTHEST = 14.0
"""Square of a place's distance from the middle of its nodes, over their spread, up to which it is well posed."""
ENOUGH = 1.9
"""Sum of the weights up to which supports grow; it is about 2.3 deep inside."""
GROWTH = 1.2
"""Of the supports, step by step."""
BINNED = 3
"""Steps for which the nodes' bins suffice."""
STEPS = 28
SEEING = 7
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
def _near(x: Floats, seen: Floats, points: Floats, radii: Floats, candidates: Ints, low: float, high: float,
          sight: Sight, blind: bool, count: int, found: Ints, r: Floats, veil: Floats,
          work: tuple[Floats, Ints]) -> int:  # fmt: skip
    """Adds the candidates at relative distances `low` to `high`, and how much each is hidden, to those found so far.

    blind: take hidden nodes for seen.
    """
    for c in range(len(candidates)):
        n = candidates[c]
        d2 = (points[n, 0] - x[0]) ** 2 + (points[n, 1] - x[1]) ** 2 + (points[n, 2] - x[2]) ** 2
        distance = sqrt(d2) / radii[n]
        if distance < low or distance >= high or count == MOST:
            continue
        veil[count] = 0.0
        if not blind and sight.around[n] > 0 and d2 > sight.depth[n] ** 2:
            node, place = (points[n, 0], points[n, 1], points[n, 2]), (seen[0], seen[1], seen[2])
            veil[count] = hidden(node, place, sight.around[n], sight.tree, sight.eps, work[0], work[1])
        if veil[count] < 1:
            found[count], r[count] = n, distance
            count += 1
    return count


@kernel
def _total(r: Floats, veil: Floats, count: int, grown: float) -> float:
    """Σ w with all supports `grown` times as large, none of them singular."""
    total = 0.0
    for c in range(count):
        s = r[c] / grown + veil[c]
        if s < 1:
            total += 1 - s * s * (6 - s * (8 - 3 * s))
    return total


@kernel
def _just_enough(r: Floats, veil: Floats, count: int, low: float, high: float) -> float:
    """The growth between two bounds at which the weights are enough: it changes continuously with the place."""
    for _ in range(24):
        middle = (low + high) / 2
        if _total(r, veil, count, middle) < ENOUGH:
            low = middle
        else:
            high = middle
    return high


@kernel
def _well_posed(M: Floats) -> bool:
    """Whether the nodes that M was summed over spread in all directions, with the place among them."""
    if M[0, 0] <= 0:
        return False
    m0, m1, m2 = M[0, 1] / M[0, 0], M[0, 2] / M[0, 0], M[0, 3] / M[0, 0]
    a, b, c = M[1, 1] / M[0, 0] - m0 * m0, M[2, 2] / M[0, 0] - m1 * m1, M[3, 3] / M[0, 0] - m2 * m2
    d, e, f = M[1, 2] / M[0, 0] - m0 * m1, M[1, 3] / M[0, 0] - m0 * m2, M[2, 3] / M[0, 0] - m1 * m2
    determinant = a * (b * c - f * f) - d * (d * c - f * e) + e * (d * f - b * e)
    if a + b + c <= COINCIDENT or determinant <= FLAT * ((a + b + c) / 3) ** 3:
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
def _weigh(x: Floats, points: Floats, radii: Floats, free: int, grown: float, found: Ints, r: Floats, veil: Floats,
           count: int, chosen: Ints, P: Floats, w: Floats, dw: Floats) -> tuple[int, float]:  # fmt: skip
    """Nodes with a weight, basis and weights; returns their number and the unit of length of the basis."""
    h, kept = 0.0, 0
    for c in range(count):
        n = found[c]
        s = r[c] / grown + veil[c]
        if s >= 1:
            continue
        reach = grown * radii[n]
        h = max(h, reach)
        w[kept], slope = _weight(s, n >= free)
        chosen[kept], P[kept, 0] = n, 1.0
        for axis in range(3):
            away = points[n, axis] - x[axis]
            P[kept, 1 + axis] = away
            dw[kept, axis] = -slope * away / (reach * reach)
        kept += 1
    for c in range(kept):
        for axis in range(3):
            P[c, 1 + axis] /= h
    return kept, h


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
    found, chosen, r, veil = (
        np.empty(MOST, dtype=np.int64),
        np.empty(MOST, dtype=np.int64),
        np.empty(MOST),
        np.empty(MOST),
    )
    P, w, dw, value = np.empty((MOST, 4)), np.empty(MOST), np.empty((MOST, 3)), np.empty(MOST)
    slope, M = np.empty((MOST, 3)), np.empty((4, 4))
    everyone = np.arange(len(points))
    work = np.empty(MOST_CROSSINGS), np.empty(MOST_CROSSINGS, dtype=np.int64)
    for q in range(len(places)):
        x, near = places[q], _bin(places[q], low, size, shape, bins)
        found_so_far, count, h, before, grown = 0, 0, 0.0, 0.0, 1.0
        for step in range(STEPS):
            blind = step > SEEING
            candidates = near if step < BINNED else everyone
            found_so_far = _near(x, sight.seen[q], points, radii, candidates, before, grown, sight, blind,
                                 found_so_far, found, r, veil, work)  # fmt: skip
            last = step == STEPS - 1 or found_so_far == MOST
            if last or _total(r, veil, found_so_far, grown) >= ENOUGH:
                exact = grown if step == 0 or last else _just_enough(r, veil, found_so_far, before, grown)
                count, h = _weigh(x, points, radii, free, exact, found, r, veil, found_so_far, chosen, P, w, dw)
                _moments(P, w, count, M)
                if count >= 4 and _well_posed(M):
                    break
                if last:
                    for axis in range(3):
                        M[1 + axis, 1 + axis] += RIDGE * M[0, 0]
                    break
            before, grown = grown, grown * (1.5 if blind else GROWTH)
            if step == SEEING:
                found_so_far, before, grown = 0, 0.0, 1.0
        _functions(P, w, dw, count, M, h, gradients, value, slope)
        at = start[q]
        start[q + 1] = at + count
        if start[q + 1] > len(node):
            more = 2 * len(node) + MOST
            node, phi = _longer(node, more), _longer(phi, more)
            if gradients:
                gradient = _longer(gradient.ravel(), 3 * more).reshape((more, 3))
        for c in range(count):
            node[at + c], phi[at + c] = chosen[c], value[c]
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
def _longer(array: Any, length: int) -> Any:
    """The same values with room behind them."""
    more = np.empty(length, dtype=array.dtype)
    more[: len(array)] = array
    return more
