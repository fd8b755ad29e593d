"""Parts of the curve skeleton: neighbours in a voxel grid, shortest paths, and the tree of a field's peaks.

*Neighbours.* Each voxel has up to 26; an entry of -1 stands for none. Steps across an edge or a corner need a voxel
beside them, so that no path slips through between two limbs that touch in a corner.

*Shortest paths* (Dijkstra): a step from voxel a to voxel b of length s costs ``s (c_a + c_b) / 2``.

*Peaks.* Voxels are taken in from the highest to the lowest. A voxel with no neighbour taken in yet begins a component
at a peak; one that touches several joins them. Where at least two of them rise above the meeting point by more than
`least`, the meeting ends their arcs and begins a new one; else the lower peaks are swallowed by the highest. So arcs
form a tree: leaves are limbs that stick out, inner arcs what lies between two forks.
"""

from __future__ import annotations

import numpy as np

from pliant.core.topology import Floats, Ints
from pliant.native import kernels


def neighbours(cells: Ints, number: Ints) -> tuple[Ints, Floats]:
    """(n, 26) neighbours of the voxels `cells` (n, 3), and (26,) how far they are, in cells.

    number: (nx, ny, nz) each voxel's number, -1 for those that do not count; its border holds none that do.
    """
    table, length = np.empty((len(cells), 26), np.int64), np.empty(26)
    kernels.curve_skeleton_neighbours(cells, number, table, length)
    return table, length


def shortest_paths(table: Ints, length: Floats, cost: Floats, sources: Ints) -> tuple[Floats, Ints]:
    """(n,) cost of the cheapest path from the sources (infinite: none), and (n,) the voxel before (-1: a source)."""
    reached, before = np.empty(len(table)), np.empty(len(table), np.int64)
    kernels.curve_skeleton_shortest_paths(table, length, cost, sources, reached, before)
    return reached, before


def peak_tree(table: Ints, height: Floats, order: Ints, least: float) -> tuple[Ints, Ints, Ints, Ints]:
    """The tree of a field's peaks, arcs from peaks downwards.

    order: (n,) all voxels from the highest to the lowest.
    Returns: (n,) the arc of each voxel; (a,) the arc in which each one ends, itself if in none; (a,) the peak of each
    arc with all above it; (a,) the voxel where each arc ends, -1 if it does not.
    """
    arc_of, into, peak, end = (np.empty(len(table), np.int64) for _ in range(4))
    arcs = kernels.curve_skeleton_peak_tree(table, height, order, least, arc_of, into, peak, end)
    return arc_of, into[:arcs].copy(), peak[:arcs].copy(), end[:arcs].copy()
