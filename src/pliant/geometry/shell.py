"""A closed surface around anything: the offset of its points and triangles, with everything it encloses filled.

The distance d to the target is sampled on a grid, exactly within a few offsets of the target and roughly beyond. The
shell is where d is the offset; what the outside cannot reach past it (the inside of a closed or nearly closed surface,
or of a dense cloud) is inside. Unsigned distances ask nothing of the target: it may be open, non-manifold, a soup, or
points alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import InputError
from pliant.core.shapes import Mesh, PointCloud, TetMesh, as_points, bounding_diagonal
from pliant.core.topology import Floats, Ints, connected_parts
from pliant.core.validation import check_extent
from pliant.geometry.spatial import SurfaceTree
from pliant.geometry.surface_nets import surface_nets

GRID_LEVELS = 3
"""Times that the grid is halved."""
MOST_SAMPLES = 20_000_000
"""Of a grid."""


@dataclass(frozen=True, eq=False)
class Target:
    """What is to be enclosed, in a frame of its own: the box around it is centred and has a diagonal of 1."""

    points: Floats
    """(n, 3)"""
    triangles: Ints
    """(m, 3)"""
    centre: Floats
    """(3,) of the box, in the target's units."""
    size: float
    """Diagonal of the box, in the target's units."""

    @classmethod
    def of(cls, shape: Mesh | TetMesh | PointCloud | object) -> Target:
        """From a shape, or points (n, 3)."""
        triangles = np.zeros((0, 3), dtype=np.int64)
        if isinstance(shape, TetMesh):
            points, triangles = shape.points, shape.surface.triangles
        elif isinstance(shape, Mesh):
            points, triangles = shape.points, shape.even_triangles
        elif isinstance(shape, PointCloud):
            points = shape.points
        else:
            points = as_points(shape, "target points")  # type: ignore[arg-type]
        if not len(points):
            raise InputError("the target has no points; expected points that are apart, to put a cage around")
        check_extent(points, "the target")
        size = bounding_diagonal(points)
        centre = (points.min(axis=0) + points.max(axis=0)) / 2
        return cls((points - centre) / size, triangles, centre, size)

    @cached_property
    def surface(self) -> SurfaceTree:
        """The triangles, to find the closest of."""
        return SurfaceTree(self.points, self.triangles)

    @cached_property
    def loose(self) -> Any:
        """A tree of the points that no triangle uses; None if there are none."""
        from scipy.spatial import cKDTree

        alone = np.ones(len(self.points), dtype=bool)
        alone[self.triangles] = False
        return cKDTree(self.points[alone]) if alone.any() else None

    def distances(self, queries: Floats) -> Floats:
        """(q,) to the nearest triangle or loose point."""
        away = self.surface.closest(queries).distance
        return away if self.loose is None else np.minimum(away, self.loose.query(queries)[0])


@dataclass(frozen=True, eq=False)
class Field:
    """The distance to a target on a grid."""

    values: NDArray[np.float32]
    """(nx, ny, nz)"""
    origin: Floats
    """(3,) the first sample's point."""
    cell: float


def distance_field(target: Target, cell: float, near: float, pad: float) -> Field:
    """Distances on a grid that goes `pad` beyond the target on all sides; exact where they are at most `near`.

    From a coarse grid to finer ones: of a sample between others only those are measured that may be near, by what
    their neighbours and the spacing allow; the others are interpolated.
    """
    spacing = cell * 2**GRID_LEVELS
    low, high = target.points.min(axis=0) - pad, target.points.max(axis=0) + pad
    blocks = np.maximum(np.ceil((high - low) / spacing).astype(int), 1)
    if np.prod(blocks * 2**GRID_LEVELS + 1) > MOST_SAMPLES:
        raise InputError("the target would need too fine a grid; expected a larger margin")
    origin = (low + high - spacing * blocks) / 2
    values = target.distances(origin + spacing * np.indices(blocks + 1).reshape(3, -1).T).reshape(blocks + 1)
    for _ in range(GRID_LEVELS):
        farthest = np.sqrt(3) / 2 * spacing
        values, spacing = _refined(values), spacing / 2
        close = values <= near + farthest
        values[close] = target.distances(origin + spacing * np.argwhere(close))
    return Field(values.astype(np.float32), origin, cell)


def _refined(values: Floats) -> Floats:
    """The samples of a grid that is twice as fine, linear between those given."""
    for axis in range(3):
        along = np.moveaxis(values, axis, 0)
        finer = np.empty((2 * len(along) - 1, *along.shape[1:]))
        finer[::2], finer[1::2] = along, (along[1:] + along[:-1]) / 2
        values = np.moveaxis(finer, 0, axis)
    return np.ascontiguousarray(values)


def filled(field: Field, offset: float) -> Field:
    """The field with all that the outside cannot reach past the offset made negative."""
    from scipy.ndimage import label

    free, _ = label(field.values > offset)
    values = np.where((field.values > offset) & (free != free[0, 0, 0]), -field.values, field.values)
    return Field(values, field.origin, field.cell)


@dataclass(frozen=True, eq=False)
class Shell:
    """A closed surface of quads, facing out: one part for each piece of the target that is far from others."""

    points: Floats
    """(n, 3)"""
    quads: Ints
    """(q, 4)"""
    part: Ints
    """(n,) number of the part of each point."""
    offset: float
    """Distance from the target."""

    @property
    def handles(self) -> int:
        """How many holes one could put a finger through: two for each part less the Euler characteristic, halved."""
        return int(self.part.max()) + 1 - (len(self.points) - len(self.quads)) // 2


def shell(field: Field, offset: float) -> Shell:
    """The surface at the offset."""
    points, quads = surface_nets(field.values - np.float32(offset), field.origin, field.cell)
    a, b, c, d = (points[quads[:, k]] for k in range(4))
    volume = np.einsum("qi,qi->q", a, np.cross(b, c) + np.cross(c, d))
    sides = np.concatenate([quads[:, [0, 1]], quads[:, [1, 2]], quads[:, [2, 3]]])
    part = connected_parts(len(points), sides)
    solid = np.bincount(part[quads[:, 0]], volume) > 0  # the others are hollows
    keep = solid[part]
    renumbered = np.cumsum(keep) - 1
    return Shell(points[keep], renumbered[quads[keep[quads[:, 0]]]], (np.cumsum(solid) - 1)[part[keep]], offset)
