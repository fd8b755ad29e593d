"""Growing groups over a graph: the cheapest point next, whichever group it is that wants it."""

from __future__ import annotations

import heapq

import numpy as np

from pliant.jit import kernel
from pliant.topology import Floats, Ints


@kernel
def misfit(q: Floats, x: Floats, R: Floats, t: Floats) -> float:
    """Σ_f |R_f q + t_f - x_f|² of a point q (3,) that moves through x (f, 3)."""
    total = 0.0
    for f in range(len(x)):
        for i in range(3):
            away = R[f, i, 0] * q[0] + R[f, i, 1] * q[1] + R[f, i, 2] * q[2] + t[f, i] - x[f, i]
            total += away * away
    return total


@kernel
def grow(start: Ints, neighbours: Ints, q: Floats, x: Floats, R: Floats, t: Floats, seeds: Ints) -> tuple[Ints, Floats]:
    """(n,) the group of each point, and its misfit there.

    start, neighbours: the graph; those of point i are ``neighbours[start[i]:start[i + 1]]``.
    q, x: points (n, 3) at rest and (n, f, 3) in each frame. R, t: rigid motions (k, f, 3, 3) and (k, f, 3).
    seeds: (k,) where each group starts.
    """
    group = np.full(len(q), -1, dtype=np.int64)
    cost = np.full(len(q), np.inf)
    queue = [(-1.0, k, seeds[k]) for k in range(len(seeds))]
    heapq.heapify(queue)
    while len(queue):
        price, k, i = heapq.heappop(queue)
        if group[i] >= 0:
            continue
        group[i] = k
        cost[i] = misfit(q[i], x[i], R[k], t[k]) if price < 0 else price
        for slot in range(start[i], start[i + 1]):
            j = neighbours[slot]
            if group[j] < 0:
                heapq.heappush(queue, (misfit(q[j], x[j], R[k], t[k]), k, j))
    return group, cost
