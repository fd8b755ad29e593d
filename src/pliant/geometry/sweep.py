"""Where segments first enter a surface: what keeps a point from passing through something thin between two frames.

A segment enters a triangle where it comes from the side to which the triangle faces. With h the heights of its ends
above the triangle's plane, it meets the plane at the fraction ``h0 / (h0 - h1)``. A start on the surface counts as
outside, within rounding, and so do the triangles' edges as part of them, so that nothing slips through between two.
"""

from __future__ import annotations

import numpy as np

from pliant.core.topology import Floats, Ints
from pliant.geometry.bvh import POINTS_PER_THREAD, Tree
from pliant.native import in_threads, kernels


def first_hits(starts: Floats, ends: Floats, tree: Tree, side: float, eps: float) -> tuple[Floats, Ints]:
    """For each segment the fraction of its first crossing (infinite: none), and the triangle in the tree's order.

    side: 1 for crossings from the front, -1 for those from the back. eps: the length that counts as zero.
    """
    found = np.empty(len(starts)), np.empty(len(starts), dtype=np.int64)
    in_threads(
        lambda a, b: kernels.sweep_first_hits(starts, ends, tree, side, eps, *found, a, b),
        len(starts),
        POINTS_PER_THREAD,
    )
    return found
