"""The triangulation of concave polygons by clipping ears.

An ear is a convex corner whose triangle holds no reflex corner. Corners wait in a queue; clipping one puts its two
neighbours back in, as only their triangles have changed. A k-d tree finds the reflex corners inside a
triangle. A polygon of n corners takes O(n log n) time for the tree and n queries, each of O(log n) where triangles are
small, as the queue makes them (it goes round the polygon), and O(√n) where they are long.

A polygon that crosses itself runs out of ears: then the flattest corner goes, by a heap.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.core.topology import Floats, Ints
from pliant.native import kernels


def clip_polygons(points: Floats, offsets: Ints, chosen: Ints, normals: Floats, slots: Ints) -> None:
    """For each chosen polygon its triangles, as positions in `points`, into its rows of `slots`.

    points: (c, 3) corners of all polygons, which begin at `offsets`; normals: (f, 3) of the polygons. As a polygon
    has two triangles fewer than corners, polygon k has the rows of `slots` from offsets[k] - 2 k.
    """
    if not kernels.ear_clip_polygons(points, offsets, chosen, normals, slots):
        raise MemoryError


def find_ears(loop: Floats) -> NDArray[np.bool_]:
    """Which corners of a counter-clockwise loop (k, 2) are ears."""
    ears = np.zeros(len(loop), dtype=np.bool_)
    if not kernels.ear_find(loop, ears):
        raise MemoryError
    return ears
