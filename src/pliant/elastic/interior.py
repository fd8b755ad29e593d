"""The inside of a surface as many small chunks of known volume.

Parallel lines run through the body along its longest side, one through the middle of each square of a grid across.
Where a line meets the surface is found exactly; whether the stretch between two meetings is inside is asked of the
winding number in its middle, so that surfaces with small holes, overlapping parts or mixed orientation have an inside
too. A stretch is cut at regular planes into chunks. A chunk stands for its length times the square it runs through:
across the lines the volume is exact, along them it is the midpoint rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pliant.errors import InputError
from pliant.shapes import Mesh, PointCloud, TetMesh
from pliant.spatial import SurfaceTree
from pliant.topology import Floats, Ints
from pliant.values import Value

Body = Mesh | TetMesh | PointCloud | SurfaceTree

SHIFT = np.array([0.4142135, 0.7320508])
"""Of the lines against the grid of the bounding box, so that they miss the corners and edges of regular meshes."""
BETA = 1.5
"""Exactness of the winding numbers (see `SurfaceTree.winding`)."""
EMPTY = 1e-7
"""Volume, over the cube of the diagonal, below which nothing is enclosed."""


@dataclass(frozen=True, eq=False)
class Chunks(Value):
    """Small pieces that fill the inside of a surface."""

    points: Floats
    """(k, 3) their middles."""
    volumes: Floats
    """(k,)"""
    cells: Ints
    """(k, 3) cube of the grid that each lies in."""
    step: float
    """Edge of the grid's cubes."""
    along: int
    """Axis of the lines."""


def body_surface(shape: Body) -> SurfaceTree:
    """The surface of a body, facing outwards; of a point cloud, where its winding number is one half."""
    if isinstance(shape, SurfaceTree):
        tree = shape
    elif isinstance(shape, PointCloud):
        from pliant.elastic.cloud import cloud_surface

        tree = SurfaceTree(cloud_surface(shape))
    else:
        tree = SurfaceTree(shape)
    if not len(tree.triangles):
        raise InputError("the shape has no faces; expected a closed surface, or a point cloud with normals")
    return tree if tree.facing > 0 else SurfaceTree(tree.points, tree.triangles[:, ::-1])


def enclosed_volume(tree: SurfaceTree) -> float:
    """Volume inside a surface, roughly; an `InputError` if there is none."""
    volume = float(fill(tree, tree.diagonal / 120).volumes.sum())
    if volume < EMPTY * tree.diagonal**3:
        raise InputError("the surface encloses no volume; expected a closed surface, or one with small holes only")
    return volume


def fill(tree: SurfaceTree, step: float) -> Chunks:
    """The inside of a surface in chunks that are no longer than `step`, on lines that are `step` apart."""
    from pliant.elastic.interior_kernels import line_crossings

    low, span = tree.points.min(axis=0), np.ptp(tree.points, axis=0)
    along = int(np.argmax(span))
    across = [axis for axis in range(3) if axis != along]
    corners = np.ascontiguousarray((tree.points - low)[:, [*across, along]][tree.triangles] / step)
    corners[:, :, :2] += SHIFT
    rows, columns = (int(np.ceil(span[axis] / step)) + 2 for axis in across)
    line, height = line_crossings(corners, rows, columns)
    order = np.lexsort((height, line))
    line, height = line[order], height[order]
    same = np.flatnonzero((line[1:] == line[:-1]) & (height[1:] > height[:-1]))
    line, start, stop = line[same], height[same], height[same + 1]
    axes = np.argsort([*across, along])

    def place(line: Ints, height: Floats) -> Floats:
        u, v = np.divmod(line, columns)
        return (np.stack([u + 0.5 - SHIFT[0], v + 0.5 - SHIFT[1], height], axis=1) * step)[:, axes] + low

    inside = tree.winding(place(line, (start + stop) / 2), beta=BETA) > 0.5
    line, start, stop = line[inside], start[inside], stop[inside]
    first, last = np.floor(start).astype(np.int64), np.ceil(stop).astype(np.int64)
    count = np.maximum(last - first, 1)
    owner = np.repeat(np.arange(len(line)), count)
    level = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count) + first[owner]
    bottom, top = np.maximum(start[owner], level), np.minimum(stop[owner], level + 1)
    cells = np.stack([*np.divmod(line[owner], columns), level], axis=1)[:, axes]
    return Chunks(place(line[owner], (bottom + top) / 2), (top - bottom) * step**3, cells, step, along)
