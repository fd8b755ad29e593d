"""Whether a surface encloses something."""

from __future__ import annotations

import numpy as np

from pliant.core.scaling import scaling_of
from pliant.core.shapes import Mesh
from pliant.core.topology import Floats, Ints, connected_parts, consistent_triangles

OPEN_SHARE = 0.05
"""Largest share of the whole area that the holes of a solid may have."""
FEWEST_FACES = 4
"""Triangles that can enclose something."""
FLATNESS = 1e-7
"""Volume, over area to the power 3/2, below which a closed surface encloses nothing."""


def is_solid(mesh: Mesh) -> bool:
    """Whether the surface encloses something: closed, or with holes that are small against it, and not flat."""
    if len(mesh.triangles) < FEWEST_FACES:
        return False
    rim = mesh.edges[mesh.edge_polygon_count == 1]
    if len(rim) and _hole_area(mesh.points, rim) >= OPEN_SHARE * mesh.area:
        return False
    facing = consistent_triangles(mesh.triangles, len(mesh.points))
    surface = Mesh(scaling_of(mesh.points)(mesh.points), facing)
    return abs(surface.volume) > FLATNESS * surface.area**1.5


def _hole_area(points: Floats, rim: Ints) -> float:
    """Area of the fans that would close the holes with these edges, each hole from the middle of its edges."""
    used, local = np.unique(rim, return_inverse=True)
    local = local.reshape(-1, 2)
    hole = connected_parts(len(used), local)[local[:, 0]]
    middle = points[rim].mean(axis=1)
    centres = np.stack([np.bincount(hole, middle[:, k]) for k in range(3)], axis=1) / np.bincount(hole)[:, None]
    a, b = points[rim[:, 0]] - centres[hole], points[rim[:, 1]] - centres[hole]
    return float(np.linalg.norm(np.cross(a, b), axis=1).sum() / 2)
