"""Fewer vertices, same topology: edge collapses in the order of their quadric error (Garland and Heckbert 1997).

A collapse is done only if the two ends share exactly two neighbours (so the surface stays a closed manifold of the same
genus) and no triangle around rotates by more than about 80° or becomes a sliver.

A clearance from something can be kept: given its distance on a grid (`Space`), every triangle stays at least
`Space.least` away from it, and no two triangles cross. Where the best position of a merged vertex is too near,
positions farther out along the normal are tried. So a surface that encloses something at the start encloses it at the
end. Buckets find what a triangle may cross: lists of the triangles whose boxes meet a cell of a coarse grid, rebuilt
whenever the number of triangles has halved.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.core.normals import triangle_normals, unit
from pliant.core.shapes import Mesh
from pliant.core.topology import Floats, Ints
from pliant.native import kernels


class Space(NamedTuple):
    """Where a surface may go: a distance sampled on a grid; empty for anywhere."""

    distance: NDArray[np.float32]
    """(nx, ny, nz) to what the surface has to keep clear of; negative inside of it."""
    origin: Floats
    """(3,) the first sample's position."""
    cell: float
    least: float
    """The least distance of the surface."""
    pushes: Floats
    """How far along the normal a merged vertex is moved if it would be too near where it is best, in order."""
    size: float
    """Diagonal of everything."""


ANYWHERE = Space(np.zeros((0, 0, 0), dtype=np.float32), np.zeros(3), 1.0, 0.0, np.zeros(0), 1.0)


def simplified(mesh: Mesh, n: int) -> Mesh:
    """A closed triangle mesh with n vertices (or the few more that topology needs)."""
    return collapsed(mesh, len(mesh.triangles) - 2 * (len(mesh.points) - n))


def collapsed(mesh: Mesh, faces: int, space: Space = ANYWHERE) -> Mesh:
    """A closed triangle mesh with at most so many faces, if topology and space allow it."""
    points, triangles = mesh.points.copy(), mesh.triangles.copy()
    alive = np.ones(len(triangles), dtype=bool)
    net = points, triangles, alive, _vertex_quadrics(points, triangles)
    kernels.simplify_collapse(net, space, faces)
    kept, corners = np.unique(triangles[alive], return_inverse=True)
    return Mesh(points[kept], corners.reshape(-1, 3))


def _vertex_quadrics(points: Floats, triangles: Ints) -> Floats:
    """(n, 10) sums of area-weighted squared distances to the planes around each vertex."""
    area = triangle_normals(points, triangles)
    normal = unit(area)
    plane = np.concatenate([normal, -np.einsum("ij,ij->i", normal, points[triangles[:, 0]])[:, None]], axis=1)
    pairs = np.array([(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2), (0, 3), (1, 3), (2, 3), (3, 3)])
    each = plane[:, pairs[:, 0]] * plane[:, pairs[:, 1]] * (np.linalg.norm(area, axis=1) / 2)[:, None]
    result = np.zeros((len(points), 10))
    for k in range(3):
        np.add.at(result, triangles[:, k], each)
    return result
