"""Signed distance to a closed surface, its sign from the normal at the closest point.

The closest point lies on a face, an edge or a vertex. A point is outside if it lies on the side to which the normal
there points: the face's own; for an edge the sum over its faces; for a vertex the sum over its faces weighted by their
angle there (Baerentzen, Aanaes 2005). That is right for every surface that encloses a volume without crossing itself,
and takes no more time than finding the closest point.

The gradient is unit and points outwards. Near a face it is the face's normal; near edges and vertices it is the
direction from the closest point, or the normal there where the two coincide.
"""

from __future__ import annotations

import numpy as np

from pliant.core.topology import Floats, Ints
from pliant.geometry.bvh import POINTS_PER_THREAD, Tree
from pliant.native import in_threads, kernels


def edge_numbers(triangles: Ints, count: int) -> Ints:
    """(m, 3) number of the edge from each corner to the next, the same for all triangles that share it."""
    following = np.roll(triangles, -1, axis=1)
    key = np.minimum(triangles, following) * count + np.maximum(triangles, following)
    return np.unique(key, return_inverse=True)[1].reshape(triangles.shape).astype(np.int64)


def pseudonormals(points: Floats, triangles: Ints, edge_of: Ints) -> tuple[Floats, Floats, Floats]:
    """Unit normals of the faces (m, 3), edges (e, 3) and vertices (n, 3); zero where they are not defined."""
    edges = int(edge_of.max()) + 1 if len(triangles) else 0
    found = np.zeros((len(triangles), 3)), np.zeros((edges, 3)), np.zeros((len(points), 3))
    kernels.pseudonormals_of(points, triangles, edge_of, *found)
    return found


Surface = tuple[Tree, Ints, Ints, Ints, tuple[Floats, Floats, Floats]]
"""A tree and its order, the triangles, their edges' numbers and the pseudonormals."""


def signed(points: Floats, surface: Surface, touching: float) -> tuple[Floats, Floats]:
    """For each point the signed distance and its gradient (q, 3): the normal, if closer than `touching`."""
    found = np.empty(len(points)), np.empty((len(points), 3))
    in_threads(
        lambda a, b: kernels.pseudonormals_signed(points, surface, touching, *found, a, b),
        len(points),
        POINTS_PER_THREAD,
    )
    return found
