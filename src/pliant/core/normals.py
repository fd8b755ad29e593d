"""Surface normals: of triangles, of vertices, and a file's own normals, which rotate with the surface.

A file's normals define its hard edges: face corners at one position that share a normal are smooth together, also
where the file has split the vertex (at a UV seam). Each such group has a frame: its geometric normal n
(area-weighted over its faces) and the direction t of one edge across it. When the points move, the frame rotates,
and the file's normal with it. So unmoved points return the file's normals exactly, a rotated mesh has rotated normals,
and hand-edited normals keep their tilt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import InputError
from pliant.core.topology import Floats, Ints, weld_map
from pliant.core.values import Value, locked

if TYPE_CHECKING:
    from pliant.core.shapes import Layer, Mesh


def triangle_normals(points: Floats, triangles: Ints) -> Floats:
    """(m, 3) normals of length twice the area, right-handed."""
    a, b, c = (points[triangles[:, k]] for k in range(3))
    return cross(b - a, c - a)


def cross(a: Floats, b: Floats) -> Floats:
    """`np.cross` of vectors (..., 3), without what it spends on other shapes: that is most of it for a few vectors."""
    product = np.empty(np.broadcast(a, b).shape, np.result_type(a, b))
    for k, i, j in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        np.multiply(a[..., i], b[..., j], out=product[..., k])
        product[..., k] -= a[..., j] * b[..., i]
    return product


def unit(vectors: Floats) -> Floats:
    """Vectors (..., 3) scaled to length 1; zero vectors stay zero."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)


def cofactors(J: Floats) -> Floats:
    """(..., 3, 3) det(J) J⁻ᵀ, also where J is singular: what a linear map J does to normals."""
    a, b, c = np.moveaxis(J, -1, 0)
    return np.stack([cross(b, c), cross(c, a), cross(a, b)], axis=-1)


def vertex_normals(points: Floats, triangles: Ints) -> Floats:
    """(n, 3) unit normals, area-weighted over the triangles at each vertex; zero where there are none."""
    area = triangle_normals(points, triangles)
    total = np.zeros((len(points), 3))
    for axis in range(3):
        total[:, axis] = np.bincount(triangles.ravel(), np.repeat(area[:, axis], 3), minlength=len(points))
    return unit(total)


def rotated_normals(mesh: Mesh, points: Floats) -> Layer:
    """The mesh's normals after its points have moved to `points`."""
    from pliant.core.shapes import Layer

    if mesh.normals is None:
        raise InputError("the mesh has no normals to rotate")
    if points is mesh.points or np.array_equal(points, mesh.points):
        return mesh.normals
    smooth = mesh.smooth_corners
    normal = _group_normals(mesh, smooth.group, len(smooth.values), points)
    edge = _tangents(points, smooth.edges, normal)
    rotated = np.einsum("gk,gki->gi", smooth.in_frame, _frames(normal, edge))
    framed = smooth.framed & edge.any(axis=1)
    rotated[~framed] = rotate_between(smooth.normals[~framed], normal[~framed], smooth.values[~framed])
    return Layer(locked(rotated), smooth.group)


@dataclass(frozen=True, eq=False)
class SmoothCorners(Value):
    """Face corners grouped by position and by the file's normal."""

    group: Ints
    """(corners,) the group of each face corner."""
    values: Floats
    """(groups, 3) the file's normal of each group."""
    normals: Floats
    """(groups, 3) the geometric normal of each group: of its faces, area-weighted, of unit length."""
    edges: Ints
    """(groups, 2) vertices of one edge that starts at the group's position."""
    in_frame: Floats
    """(groups, 3) the file's normal along the frame's normal, edge, and the third direction."""
    framed: NDArray[np.bool_]
    """(groups,) whether the group's faces and edge give a frame."""

    def __post_init__(self) -> None:
        for values in vars(self).values():
            locked(values)


def smooth_corners(mesh: Mesh) -> SmoothCorners:
    """Group the face corners of a mesh that has normals."""
    layer = mesh.normals
    if layer is None:
        raise InputError("the mesh has no normals to group its corners by")
    distinct, same = np.unique(layer.values, axis=0, return_inverse=True)
    position = weld_map(mesh.points, mesh.boundary_vertices, 0.0)[mesh.polygons.corners]
    key = position * len(distinct) + same.reshape(-1)[layer.index]
    keys, first, group = np.unique(key, return_index=True, return_inverse=True)
    values = distinct[keys % max(len(distinct), 1)]
    normal = _group_normals(mesh, group, len(keys), mesh.points)
    corners = mesh.polygons.corners
    edges = np.stack([corners[first], corners[mesh.polygons.next_corner[first]]], axis=1)
    tangent = _tangents(mesh.points, edges, normal)
    in_frame = np.einsum("gki,gi->gk", _frames(normal, tangent), values)
    return SmoothCorners(group, values, normal, edges, in_frame, np.asarray(tangent.any(axis=1)))


def _tangents(points: Floats, edges: Ints, normal: Floats) -> Floats:
    """(groups, 3) unit directions of the edges across the normals; zero where an edge or normal gives none."""
    edge = unit(points[edges[:, 1]] - points[edges[:, 0]])
    across = edge - np.einsum("ij,ij->i", edge, normal)[:, None] * normal
    clear = (np.linalg.norm(across, axis=1) > 1e-3) & normal.any(axis=1)
    return unit(np.where(clear[:, None], across, 0.0))


def _frames(normal: Floats, tangent: Floats) -> Floats:
    """(groups, 3, 3) rows: normal, tangent, and the direction square to both."""
    return np.stack([normal, tangent, np.cross(normal, tangent)], axis=1)


def _group_normals(mesh: Mesh, group: Ints, count: int, points: Floats) -> Floats:
    """(groups, 3) unit normals: the polygons' area vectors summed over each smooth group of corners."""
    area = triangle_normals(points, mesh.triangles)
    polygon_area = np.stack(
        [np.bincount(mesh.triangle_polygon, area[:, k], minlength=len(mesh.polygons)) for k in range(3)],
        axis=1,
    )
    at_corner = polygon_area[mesh.polygons.of_corner]
    return unit(np.stack([np.bincount(group, at_corner[:, k], minlength=count) for k in range(3)], axis=1))


def rotate_between(start: Floats, end: Floats, vectors: Floats) -> Floats:
    """Rotate each vector by the smallest rotation that takes unit `start` to unit `end` (all (k, 3))."""
    axis = np.cross(start, end)  # sine times the axis
    cosine = np.einsum("ij,ij->i", start, end)[:, None]
    opposite = cosine[:, 0] < -1 + 1e-9
    with np.errstate(divide="ignore", invalid="ignore"):
        rotated = (
            vectors * cosine
            + np.cross(axis, vectors)
            + axis * (np.einsum("ij,ij->i", axis, vectors)[:, None] / (1 + cosine))
        )
    rotated[opposite] = -vectors[opposite]
    undefined = ~(np.any(start, axis=1) & np.any(end, axis=1))
    rotated[undefined] = vectors[undefined]
    return rotated
