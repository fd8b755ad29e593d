"""Which triangles of two surfaces, or of one with itself, have overlapping boxes or cross each other.

Two triangles cross if each has corners on both sides of the other's plane and they share a piece of the line in which
the planes meet (Möller 1997). Distances to a plane and lengths along the line below `eps` count as zero, so triangles
that touch, in a corner, along an edge or with an edge on a face, do not cross. Corners at exactly the same position lie
on each other's plane by definition: neighbours that share one corner can still cross away from it, and neighbours that
share two cannot. Triangles lower than `eps` have no inside and cross nothing.

Coplanar triangles cross nothing; on request those that overlap in an area are found too (separating lines in the
plane).
"""

from __future__ import annotations

import numpy as np

from pliant.core.topology import Floats, Ints
from pliant.geometry.bvh import POINTS_PER_THREAD, Tree, triangle_boxes
from pliant.native import in_threads, kernels

BOXES, CROSSING, CROSSING_OR_COPLANAR = 0, 1, 2


def find_partners(query: Floats, tree: Tree, own: bool, rule: int, eps: float) -> Ints:
    """(k, 2) pairs: triangle of the query, triangle of the tree (both in the order given), found by `rule`.

    eps: with the rule BOXES, how far apart boxes may be; otherwise the length that counts as zero.
    """
    m = len(query)
    given = query, triangle_boxes(query), tree, triangle_boxes(tree.corners), own, rule, eps
    counts, none = np.zeros(m, dtype=np.int64), np.empty(0, dtype=np.int64)

    def look(at: Ints, pairs: Ints) -> None:
        in_threads(lambda a, b: kernels.crossing_partners(given, at, counts, pairs, a, b), m, POINTS_PER_THREAD)

    look(none, np.empty((0, 2), dtype=np.int64))
    ends = np.cumsum(counts)
    pairs = np.empty((int(ends[-1]) if m else 0, 2), dtype=np.int64)
    look(ends - counts, pairs)
    return pairs
