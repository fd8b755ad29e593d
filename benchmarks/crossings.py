"""Which triangles of a surface cross each other, found by code of its own: the benchmarks' judge of self-contact.

Two triangles that share no corner cross if an edge of one passes through the inside of the other. Candidates are pairs
whose boxes meet in a cell of a grid; the test is in double precision, by the signs of volumes, without a tolerance but
that for being coplanar. Vertices at the same position count as one, so that neighbours across a seam share a corner.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray
COPLANAR = 1e-12
"""Volume, over the product of the sides, below which four points lie in a plane."""
AT_ONCE = 2_000_000


def crossing_pairs(points: Array, triangles: Array, names: Array | None = None) -> Array:
    """(k, 2) pairs of triangles that cross. names: (n,) equal for vertices that are one."""
    names = np.arange(len(points)) if names is None else names
    proper = triangles[:, [0, 1, 2]]
    corners = points[proper]
    low, high = corners.min(axis=1), corners.max(axis=1)
    found = [np.zeros((0, 2), np.int64)]
    pairs = _box_pairs(low, high)
    for first in range(0, len(pairs), AT_ONCE):
        some = pairs[first : first + AT_ONCE]
        a, b = names[proper[some[:, 0]]], names[proper[some[:, 1]]]
        some = some[~(a[:, :, None] == b[:, None, :]).any(axis=(1, 2))]
        one, other = corners[some[:, 0]], corners[some[:, 1]]
        crossed = np.zeros(len(some), dtype=bool)
        for k in range(3):
            crossed |= _pierces(one[:, k], one[:, (k + 1) % 3], other)
            crossed |= _pierces(other[:, k], other[:, (k + 1) % 3], one)
        found.append(some[crossed])
    return np.concatenate(found)


def _pierces(p: Array, q: Array, triangle: Array) -> Array:
    """Whether segments p q go through triangles (m, 3, 3)."""
    a, b, c = triangle[:, 0], triangle[:, 1], triangle[:, 2]
    size = np.abs(triangle - p[:, None]).max(axis=(1, 2)) ** 3 * COPLANAR
    before, after = _volume(a, b, c, p), _volume(a, b, c, q)
    sides = np.stack([_volume(p, q, a, b), _volume(p, q, b, c), _volume(p, q, c, a)])
    through = (sides > size).all(axis=0) | (sides < -size).all(axis=0)
    return through & (np.minimum(before, after) < -size) & (np.maximum(before, after) > size)


def _volume(a: Array, b: Array, c: Array, d: Array) -> Array:
    return np.einsum("ij,ij->i", np.cross(b - a, c - a), d - a)


def _box_pairs(low: Array, high: Array) -> Array:
    """(k, 2) pairs of boxes that overlap, each once."""
    size = np.maximum(np.median(high - low, axis=0).max() * 2, 1e-300)
    first, last = np.floor(low / size).astype(np.int64), np.floor(high / size).astype(np.int64)
    span = last - first + 1
    count = span.prod(axis=1)
    owner = np.repeat(np.arange(len(low)), count)
    step = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    cell = first[owner] + np.stack(
        [step // (span[owner, 1] * span[owner, 2]), step // span[owner, 2] % span[owner, 1], step % span[owner, 2]], 1
    )
    _, number = np.unique(cell, axis=0, return_inverse=True)
    order = np.argsort(number.reshape(-1), kind="stable")
    owner, number = owner[order], number.reshape(-1)[order]
    members = np.bincount(number)
    begin = np.cumsum(members) - members
    pairs = []
    later = members[number] - (np.arange(len(owner)) - begin[number]) - 1
    for first_one in range(0, len(owner), 200_000):
        some = slice(first_one, first_one + 200_000)
        left = np.repeat(np.arange(len(owner))[some], later[some])
        right = left + 1 + np.arange(len(left)) - np.repeat(np.cumsum(later[some]) - later[some], later[some])
        a, b = owner[left], owner[right]
        meet = (low[a] <= high[b]).all(axis=1) & (low[b] <= high[a]).all(axis=1) & (a != b)
        pairs.append(np.sort(np.stack([a[meet], b[meet]], axis=1), axis=1))
    return np.unique(np.concatenate([np.zeros((0, 2), np.int64), *pairs]), axis=0)
