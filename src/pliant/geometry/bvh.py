"""A tree of axis-aligned boxes over triangles, in flat arrays: building, refitting, and the closest point.

Nodes are numbered depth first, so a node's left child is the next node and children come after their parents. A node
covers the triangles ``start[k]:stop[k]`` of the tree's own order. Nodes are split along the longest side of their
triangles' centres where the surface-area heuristic is least: of 16 bins, the cut with the smallest
``count · area`` summed over both sides.

The closest point on a triangle is found from which of its seven regions a point is seen in (Ericson 2005). Rounding
would choose wrongly for thin triangles: there it is the foot point if that lies inside, or else the closest point of
the three edges; the thinnest have no usable foot point, and their edges alone decide.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pliant.core.topology import Floats, Ints
from pliant.native import in_threads, kernels

POINTS_PER_THREAD = 256
"""Points that are worth a thread."""


class Tree(NamedTuple):
    """The arrays that kernels walk over."""

    boxes: Floats
    """(nodes, 6) lower and upper corner."""
    right: Ints
    """(nodes,) the right child; 0 for a leaf."""
    start: Ints
    """(nodes,) first triangle, in the tree's order."""
    stop: Ints
    """(nodes,) one past the last triangle."""
    corners: Floats
    """(m, 3, 3) the triangles' corners in the tree's order."""


def triangle_boxes(corners: Floats) -> Floats:
    """(m, 6) lower and upper corner of each triangle's box."""
    boxes = np.empty((len(corners), 6))
    kernels.bvh_triangle_boxes(corners, boxes)
    return boxes


def build(corners: Floats) -> tuple[Ints, Ints, Ints, Ints]:
    """The tree's order of the triangles (m,), and right, start and stop of its nodes."""
    m = len(corners)
    order = np.empty(m, dtype=np.int64)
    right, start, stop = (np.empty(max(2 * m, 1), dtype=np.int64) for _ in range(3))
    nodes = kernels.bvh_build(triangle_boxes(corners), order, right, start, stop)
    return order, right[:nodes].copy(), start[:nodes].copy(), stop[:nodes].copy()


def fit(corners: Floats, right: Ints, start: Ints, stop: Ints) -> Floats:
    """(nodes, 6) boxes around the triangles (given in the tree's order), from the leaves up."""
    boxes = np.empty((len(right), 6))
    kernels.bvh_fit(triangle_boxes(corners), right, start, stop, boxes)
    return boxes


def closest(points: Floats, tree: Tree, limit2: float) -> tuple[Floats, Ints, Floats]:
    """For each point: squared distance, triangle in the tree's order, barycentric coordinates (q, 3)."""
    count = len(points)
    distance2, triangle, weights = np.empty(count), np.empty(count, dtype=np.int64), np.zeros((count, 3))
    found = distance2, triangle, weights
    in_threads(lambda a, b: kernels.bvh_closest(points, tree, limit2, *found, a, b), count, POINTS_PER_THREAD)
    return found
