"""Surface normals: of triangles, of vertices, and a file's own normals turned along when its points move.

A file's normals say where its edges are hard: corners of one vertex that share a normal are smooth with each other.
When the points move, each such group's geometric normal (area-weighted over its triangles) turns from n to n', and the
file's normal is turned by the smallest rotation that takes n to n'. So unmoved points give the file's normals back
exactly, and hand-edited normals keep their tilt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pliant.topology import Floats, Ints

if TYPE_CHECKING:
    from pliant.shapes import Layer, Mesh


def triangle_normals(points: Floats, triangles: Ints) -> Floats:
    """(m, 3) normals of length twice the area, right-handed."""
    a, b, c = (points[triangles[:, k]] for k in range(3))
    return np.cross(b - a, c - a)


def unit(vectors: Floats) -> Floats:
    """Vectors (..., 3) scaled to length 1; zero vectors stay zero."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)


def vertex_normals(points: Floats, triangles: Ints) -> Floats:
    """(n, 3) unit normals, area-weighted over the triangles at each vertex; zero where there are none."""
    area = triangle_normals(points, triangles)
    total = np.stack(
        [np.bincount(triangles.ravel(), np.repeat(area[:, axis], 3), minlength=len(points)) for axis in range(3)],
        axis=1,
    )
    return unit(total)


def turned_normals(mesh: Mesh, points: Floats) -> Layer:
    """The mesh's normals after its points have moved to `points`."""
    from pliant.shapes import Layer

    layer = mesh.normals
    assert layer is not None
    if points is mesh.points or np.array_equal(points, mesh.points):
        return layer
    span = len(layer.values) + 1
    keys, group = np.unique(mesh.polygons.corners * span + layer.index, return_inverse=True)
    before, after = (_group_normals(mesh, group, len(keys), place) for place in (mesh.points, points))
    return Layer(turn_between(before, after, layer.values[keys % span]), group)


def _group_normals(mesh: Mesh, group: Ints, count: int, points: Floats) -> Floats:
    """(groups, 3) unit normals: the polygons' area vectors summed over each smooth group of corners."""
    area = triangle_normals(points, mesh.triangles)
    polygon_area = np.stack(
        [np.bincount(mesh.triangle_polygon, area[:, k], minlength=len(mesh.polygons)) for k in range(3)],
        axis=1,
    )
    at_corner = polygon_area[mesh.polygons.of_corner]
    return unit(np.stack([np.bincount(group, at_corner[:, k], minlength=count) for k in range(3)], axis=1))


def turn_between(start: Floats, end: Floats, vectors: Floats) -> Floats:
    """Rotate each vector by the smallest rotation that takes unit `start` to unit `end` (all (k, 3))."""
    axis = np.cross(start, end)  # sine times the axis
    cosine = np.einsum("ij,ij->i", start, end)[:, None]
    opposite = cosine[:, 0] < -1 + 1e-9
    with np.errstate(divide="ignore", invalid="ignore"):
        turned = (
            vectors * cosine
            + np.cross(axis, vectors)
            + axis * (np.einsum("ij,ij->i", axis, vectors)[:, None] / (1 + cosine))
        )
    turned[opposite] = -vectors[opposite]
    undefined = ~(np.any(start, axis=1) & np.any(end, axis=1))
    turned[undefined] = vectors[undefined]
    return turned
