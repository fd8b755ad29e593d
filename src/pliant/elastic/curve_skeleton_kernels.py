"""Compiled parts of the curve skeleton: neighbours in a voxel grid, shortest paths, and the tree of a field's peaks.

*Neighbours.* Each voxel has up to 26; an entry of -1 stands for none. Steps across an edge or a corner need a voxel
beside them, so that no path slips through between two limbs that touch in a corner.

*Shortest paths* (Dijkstra): a step from voxel a to voxel b of length s costs ``s (c_a + c_b) / 2``.

*Peaks.* Voxels are taken in from the highest to the lowest. A voxel with no neighbour taken in yet begins a component
at a peak; one that touches several joins them. Where at least two of them rise above the meeting place by more than
`least`, the meeting ends their arcs and begins a new one; else the lower peaks are swallowed by the highest. So arcs
form a tree: leaves are limbs that stick out, inner arcs what lies between two forks.
"""

from __future__ import annotations

import numpy as np

from pliant.jit import kernel
from pliant.topology import Floats, Ints


@kernel
def _is_open(number: Ints, x: int, y: int, z: int, a: int, b: int, c: int) -> bool:
    """Whether a step of (a, b, c) has a way round in single steps."""
    one = (
        a != 0 and number[x + a, y, z] >= 0,
        b != 0 and number[x, y + b, z] >= 0,
        c != 0 and number[x, y, z + c] >= 0,
    )
    axes = (a != 0) + (b != 0) + (c != 0)
    if axes == 1:
        return True
    if axes == 2:
        return one[0] or one[1] or one[2]
    two = number[x, y + b, z + c] >= 0, number[x + a, y, z + c] >= 0, number[x + a, y + b, z] >= 0
    return (one[0] and (two[1] or two[2])) or (one[1] and (two[0] or two[2])) or (one[2] and (two[0] or two[1]))


@kernel
def neighbours(cells: Ints, number: Ints) -> tuple[Ints, Floats]:
    """(n, 26) neighbours of the voxels `cells` (n, 3), and (26,) how far they are, in cells.

    number: (nx, ny, nz) each voxel's number, -1 for those that do not count; its border holds none that do.
    """
    steps = np.empty((26, 3), np.int64)
    length = np.empty(26)
    k = 0
    for x in range(-1, 2):
        for y in range(-1, 2):
            for z in range(-1, 2):
                if x != 0 or y != 0 or z != 0:
                    steps[k, 0], steps[k, 1], steps[k, 2] = x, y, z
                    length[k] = np.sqrt(float(x * x + y * y + z * z))
                    k += 1
    table = np.empty((len(cells), 26), np.int64)
    for i in range(len(cells)):
        x, y, z = cells[i, 0], cells[i, 1], cells[i, 2]
        for k in range(26):
            a, b, c = steps[k, 0], steps[k, 1], steps[k, 2]
            table[i, k] = number[x + a, y + b, z + c] if _is_open(number, x, y, z, a, b, c) else -1
    return table, length


@kernel
def _push(keys: Floats, items: Ints, size: int, key: float, item: int) -> int:
    """Add to a binary heap; the new size."""
    k = size
    while k > 0:
        above = (k - 1) // 2
        if keys[above] <= key:
            break
        keys[k], items[k] = keys[above], items[above]
        k = above
    keys[k], items[k] = key, item
    return size + 1


@kernel
def _pop(keys: Floats, items: Ints, size: int) -> int:
    """Take the least, at 0, out of a binary heap; the new size."""
    size -= 1
    key, item = keys[size], items[size]
    k = 0
    while True:
        below = 2 * k + 1
        if below >= size:
            break
        if below + 1 < size and keys[below + 1] < keys[below]:
            below += 1
        if keys[below] >= key:
            break
        keys[k], items[k] = keys[below], items[below]
        k = below
    keys[k], items[k] = key, item
    return size


@kernel
def shortest_paths(table: Ints, length: Floats, cost: Floats, sources: Ints) -> tuple[Floats, Ints]:
    """(n,) cost of the cheapest path from the sources (infinite: none), and (n,) the voxel before (-1: a source)."""
    n = len(table)
    reached, before = np.full(n, np.inf), np.full(n, -1)
    keys, items = np.empty(27 * n + 1), np.empty(27 * n + 1, np.int64)
    size = 0
    for source in sources:
        reached[source] = 0.0
        size = _push(keys, items, size, 0.0, source)
    while size:
        key, item = keys[0], items[0]
        size = _pop(keys, items, size)
        if key > reached[item]:
            continue
        for k in range(table.shape[1]):
            other = table[item, k]
            if other < 0:
                continue
            total = key + length[k] * (cost[item] + cost[other]) / 2
            if total < reached[other]:
                reached[other], before[other] = total, item
                size = _push(keys, items, size, total, other)
    return reached, before


@kernel
def _leader(of: Ints, item: int) -> int:
    while of[item] != item:
        of[item] = of[of[item]]
        item = of[item]
    return item


@kernel
def peak_tree(table: Ints, height: Floats, order: Ints, least: float) -> tuple[Ints, Ints, Ints, Ints]:
    """The tree of a field's peaks, arcs from peaks downwards.

    order: (n,) all voxels from the highest to the lowest.
    Returns: (n,) the arc of each voxel; (a,) the arc in which each one ends, itself if in none; (a,) the peak of each
    arc with all above it; (a,) the voxel where each arc ends, -1 if it does not.
    """
    n = len(table)
    leader, arc_of = np.full(n, -1), np.full(n, -1)
    arc_at = np.empty(n, np.int64)  # of a component, by its leader
    into, peak, end = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    arcs = 0
    around = np.empty(26, np.int64)
    for item in order:
        count, tall = 0, 0
        for k in range(table.shape[1]):
            other = table[item, k]
            if other < 0 or leader[other] < 0:
                continue
            top = _leader(leader, other)
            known = False
            for j in range(count):
                known = known or around[j] == top
            if not known:
                around[count] = top
                count += 1
                tall += height[peak[arc_at[top]]] - height[item] >= least
        if count == 0:
            leader[item] = item
            arc_at[item] = arcs
            into[arcs], peak[arcs], end[arcs] = arcs, item, -1
            arc_of[item] = arcs
            arcs += 1
            continue
        best = around[0]
        for j in range(1, count):
            if height[peak[arc_at[around[j]]]] > height[peak[arc_at[best]]]:
                best = around[j]
        main = arc_at[best]
        if tall > 1:
            into[arcs], peak[arcs], end[arcs] = arcs, peak[main], -1
            for j in range(count):
                arc = arc_at[around[j]]
                into[arc], end[arc] = arcs, item
            main = arcs
            arcs += 1
        else:
            for j in range(count):
                arc = arc_at[around[j]]
                if arc != main:
                    into[arc], end[arc] = main, item
        for j in range(count):
            leader[around[j]] = best
        leader[item] = best
        arc_at[best] = main
        arc_of[item] = main
    return arc_of, into[:arcs].copy(), peak[:arcs].copy(), end[:arcs].copy()
