"""The inside of a surface as many small chunks of known volume.

Parallel lines run through the body along the axis that most of its surface faces, one through the middle of each
rectangle of a grid across its bounding box.
Where a line meets the surface is found exactly; whether the stretch between two meetings is inside is asked of the
winding number in its middle, so that surfaces with small holes, overlapping parts or mixed orientation have an inside
too. A stretch is cut at regular planes into chunks. A chunk stands for its length times the rectangle it runs
through: along the lines the volume is exact, across them it is the midpoint rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pliant.core.errors import InputError
from pliant.core.shapes import Mesh, PointCloud, TetMesh
from pliant.core.topology import Floats, Ints
from pliant.core.values import Value
from pliant.geometry.spatial import SurfaceTree
from pliant.native import kernels

Fillable = Mesh | TetMesh | PointCloud | SurfaceTree

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
    step: Floats
    """(3,) edges of the grid's cells."""
    along: int
    """Axis of the lines."""


def body_surface(shape: Fillable) -> SurfaceTree:
    """The surface of a body, facing outwards; of a point cloud, where its winding number is one half."""
    if isinstance(shape, SurfaceTree):
        tree = shape
    elif isinstance(shape, PointCloud):
        from pliant.engines.simulate.point_cloud import cloud_surface

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
    """The inside of a surface in chunks that are no longer than `step`, on lines that are no farther apart."""
    low, span = tree.points.min(axis=0), np.ptp(tree.points, axis=0)
    counts = np.maximum(np.ceil(span / step * (1 - 1e-9)).astype(np.int64), 1)
    steps = np.where(span > 0, span / counts, step)
    a, b, c = (tree.points[tree.triangles[:, k]] for k in range(3))
    along = int(np.argmax(np.abs(np.cross(b - a, c - a)).sum(axis=0)))
    across = [axis for axis in range(3) if axis != along]
    axes = np.argsort([*across, along])
    corners = np.ascontiguousarray(((tree.points - low) / steps)[:, [*across, along]][tree.triangles])
    columns = int(counts[across[1]]) + 1
    line, start, stop = _stretches(*_line_crossings(corners, columns))

    def points_at(line: Ints, height: Floats) -> Floats:
        row, column = np.divmod(line, columns)
        return np.stack([row + 0.5, column + 0.5, height], axis=1)[:, axes] * steps + low

    inside = tree.winding(points_at(line, (start + stop) / 2), beta=BETA) > 0.5
    owner, level, bottom, top = _cut(start[inside], stop[inside])
    line = line[inside][owner]
    cells = np.stack([*np.divmod(line, columns), level], axis=1)[:, axes]
    return Chunks(points_at(line, (bottom + top) / 2), (top - bottom) * steps.prod(), cells, steps, along)


def _line_crossings(corners: Floats, columns: int) -> tuple[Ints, Floats]:
    """Number of the line (row · columns + column) and height along it of every crossing.

    corners: (m, 3, 3) of the triangles, where lines run along the third axis through (i + ½, j + ½). Triangles reach a
    trifle beyond their edges, so that no line slips through between two.
    """
    capacity = 1000 + 4 * columns * columns
    while True:
        line, height = np.empty(capacity, dtype=np.int64), np.empty(capacity)
        count = kernels.interior_line_crossings(corners, columns, line, height)
        if count <= capacity:
            return line[:count], height[:count]
        capacity = count


def _stretches(line: Ints, height: Floats) -> tuple[Ints, Floats, Floats]:
    """Line, start and stop of every stretch between two neighbouring crossings of one line."""
    order = np.lexsort((height, line))
    line, height = line[order], height[order]
    same = np.flatnonzero((line[1:] == line[:-1]) & (height[1:] > height[:-1]))
    return line[same], height[same], height[same + 1]


def _cut(start: Floats, stop: Floats) -> tuple[Ints, Ints, Floats, Floats]:
    """Stretches cut at whole heights: the stretch that each chunk is of, the height below it, its start and stop."""
    first, last = np.floor(start).astype(np.int64), np.ceil(stop).astype(np.int64)
    count = np.maximum(last - first, 1)
    owner = np.repeat(np.arange(len(start)), count)
    level = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count) + first[owner]
    return owner, level, np.maximum(start[owner], level), np.minimum(stop[owner], level + 1)


def touching_chunks(chunks: Chunks) -> Ints:
    """(e, 2) chunks that share a face, or part of one."""
    cells = chunks.cells - chunks.cells.min(axis=0) + 1
    shape = cells.max(axis=0) + 2
    key = np.ravel_multi_index(tuple(cells.T), tuple(shape))
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    half = chunks.volumes / chunks.step.prod() * chunks.step[chunks.along] / 2
    height = chunks.points[:, chunks.along]
    found = []
    for stride in (int(shape[1] * shape[2]), int(shape[2]), 1):
        first = np.searchsorted(ordered, key + stride)
        last = np.searchsorted(ordered, key + stride, side="right") - 1
        for at, valid in ((first, last >= first), (last, last > first)):
            pair = np.stack([np.flatnonzero(valid), order[at[valid]]], axis=1)
            apart = np.abs(height[pair[:, 0]] - height[pair[:, 1]])
            found.append(pair[apart <= half[pair].sum(axis=1) * (1 + 1e-9)])
    return np.concatenate(found)
