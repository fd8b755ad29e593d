"""The surface of a point cloud: where its winding number is one half.

Every point stands for a small disc across its normal, whose area is that of its share of the surface: π times the
square of its mean distance from its nearest neighbours, over √12 (as of a hexagonal lattice). The winding number of the
discs (Barill et al. 2018) is near 0 outside and much the same everywhere inside; surface nets draw a mesh where it is
half of what is usual there.
"""

from __future__ import annotations

import numpy as np

from pliant.core.errors import InputError
from pliant.core.shapes import Mesh, PointCloud
from pliant.core.topology import Floats, Polygons
from pliant.geometry.spatial import SurfaceTree
from pliant.geometry.surface_nets import surface_nets

NEIGHBOURS = 7
CELLS = 100
"""Along the longest side of the cloud, at most."""


def cloud_surface(cloud: PointCloud) -> Mesh:
    """A closed mesh around a point cloud with normals."""
    if cloud.normals is None:
        raise InputError("the point cloud has no normals; expected an outward normal at each point, or a mesh")
    if len(cloud.points) <= NEIGHBOURS:
        raise InputError(f"the cloud has {len(cloud.points)} points; expected more than {NEIGHBOURS}")
    discs, spacing = _discs(cloud.points, cloud.normals)
    low, span = cloud.points.min(axis=0), np.ptp(cloud.points, axis=0)
    cell = max(float(span.max()) / CELLS, spacing)
    origin = low - 2 * cell
    shape = np.ceil(span / cell).astype(int) + 5
    grid = np.stack(np.meshgrid(*(np.arange(n) for n in shape), indexing="ij"), axis=-1).reshape(-1, 3)
    around = discs.winding(origin + cell * grid)
    if not around.max() > 0.3:
        raise InputError("the point cloud encloses nothing; expected normals that point outwards all around")
    deep = np.median(around[around > around.max() / 2])
    values = (0.5 - around / deep).astype(np.float32).reshape(tuple(shape))
    points, quads = surface_nets(values, origin, cell)
    return Mesh(points, Polygons.of(quads))


def _discs(points: Floats, normals: Floats) -> tuple[SurfaceTree, float]:
    """A triangle for each point, across its normal, with the area of its share; and the points' usual spacing."""
    from scipy.spatial import cKDTree

    distance = cKDTree(points).query(points, k=NEIGHBOURS)[0][:, 1:]
    area = np.pi * distance.mean(axis=1) ** 2 / np.sqrt(12)
    unit = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    least = np.eye(3)[np.argmin(np.abs(unit), axis=1)]
    u = np.cross(unit, least)
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    v = np.cross(unit, u)
    radius = np.sqrt(4 * area / (3 * np.sqrt(3)))[:, None]
    angles = 2 * np.pi * np.arange(3) / 3
    corners = np.stack([points + radius * (np.cos(t) * u + np.sin(t) * v) for t in angles], axis=1)
    return SurfaceTree(corners.reshape(-1, 3), np.arange(3 * len(points)).reshape(-1, 3)), float(np.median(distance))
