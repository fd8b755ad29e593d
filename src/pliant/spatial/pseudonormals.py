"""Signed distance to a closed surface, its sign from the normal at the closest point.

The closest point lies on a face, an edge or a vertex. A point is outside if it lies on the side to which the normal
there points: the face's own; for an edge the sum over its faces; for a vertex the sum over its faces weighted by their
angle there (Baerentzen, Aanaes 2005). That is right for every surface that encloses a volume without crossing itself,
and takes no more time than finding the closest point.

The gradient is unit and points outwards. Near a face it is the face's normal; near edges and vertices it is the
direction from the closest point, or the normal there where the two coincide.
"""

from __future__ import annotations

from math import atan2, sqrt

import numpy as np

from pliant.jit import kernel, parallel_kernel, prange
from pliant.spatial.bvh import Tree, closest_one
from pliant.spatial.vectors import Vector, corner, cross, dot, minus, norm
from pliant.topology import Floats, Ints

ON_EDGE = 1e-10
"""Barycentric coordinate up to which a point of a triangle lies on its edge."""
BLOCK = 64
"""Points that one thread takes at a time."""


def edge_numbers(triangles: Ints, count: int) -> Ints:
    """(m, 3) number of the edge from each corner to the next, the same for all triangles that share it."""
    following = np.roll(triangles, -1, axis=1)
    key = np.minimum(triangles, following) * count + np.maximum(triangles, following)
    return np.unique(key, return_inverse=True)[1].reshape(triangles.shape).astype(np.int64)


@kernel
def _place(points: Floats, p: int) -> Vector:
    return points[p, 0], points[p, 1], points[p, 2]


@kernel
def _add(row: Floats, weight: float, n: Vector) -> None:
    for axis in range(3):
        row[axis] += weight * n[axis]


@kernel
def _to_unit(rows: Floats) -> None:
    """Scale to length 1; what has cancelled out becomes zero."""
    for k in range(len(rows)):
        length = sqrt(rows[k, 0] ** 2 + rows[k, 1] ** 2 + rows[k, 2] ** 2)
        for axis in range(3):
            rows[k, axis] = rows[k, axis] / length if length > 1e-9 else 0.0


@kernel
def pseudonormals(points: Floats, triangles: Ints, edge_of: Ints) -> tuple[Floats, Floats, Floats]:
    """Unit normals of the faces (m, 3), edges (e, 3) and vertices (n, 3); zero where they are not defined."""
    faces, vertices = np.zeros((len(triangles), 3)), np.zeros((len(points), 3))
    edges = np.zeros((edge_of.max() + 1 if len(triangles) else 0, 3))
    for t in range(len(triangles)):
        corners = _place(points, triangles[t, 0]), _place(points, triangles[t, 1]), _place(points, triangles[t, 2])
        ab, ac = minus(corners[1], corners[0]), minus(corners[2], corners[0])
        n = cross(ab, ac)
        length = norm(n)
        if length <= 1e-14 * max(dot(ab, ab), dot(ac, ac)):
            continue
        n = n[0] / length, n[1] / length, n[2] / length
        _add(faces[t], 1.0, n)
        for k in range(3):
            u = minus(corners[(k + 1) % 3], corners[k])
            v = minus(corners[(k + 2) % 3], corners[k])
            _add(edges[edge_of[t, k]], 1.0, n)
            _add(vertices[triangles[t, k]], atan2(norm(cross(u, v)), dot(u, v)), n)
    _to_unit(edges)
    _to_unit(vertices)
    return faces, edges, vertices


@kernel
def _feature(
    weights: Floats, t: int, triangles: Ints, edge_of: Ints, normals: tuple[Floats, Floats, Floats]
) -> tuple[bool, Vector]:
    """Whether the closest point lies within a face, and the normal of the face, edge or vertex that it lies on."""
    faces, edges, vertices = normals
    own = faces[t, 0], faces[t, 1], faces[t, 2]
    zeros = (weights[0] <= ON_EDGE) + (weights[1] <= ON_EDGE) + (weights[2] <= ON_EDGE)
    if zeros == 0:
        return True, own
    row = own
    for k in range(3):
        if zeros == 2 and weights[k] > ON_EDGE:
            row = _place(vertices, triangles[t, k])
        elif zeros == 1 and weights[k] <= ON_EDGE:
            row = _place(edges, edge_of[t, (k + 1) % 3])
    return False, row if dot(row, row) > 0 else own


@kernel
def _gap(p: Vector, weights: Floats, corners: Floats, t: int) -> Vector:
    """From the place with these weights on a triangle to p."""
    gap = p
    for k in range(3):
        x, y, z = corner(corners, t, k)
        gap = gap[0] - weights[k] * x, gap[1] - weights[k] * y, gap[2] - weights[k] * z
    return gap


@kernel
def _outward(within: bool, n: Vector, gap: Vector, signed_distance: float, touching: float) -> Vector:
    """The gradient, from the normal at the closest point and the way from there."""
    if (not within or dot(n, n) == 0) and abs(signed_distance) > touching:
        return gap[0] / signed_distance, gap[1] / signed_distance, gap[2] / signed_distance
    return n if dot(n, n) > 0 else (0.0, 1.0, 0.0)


@parallel_kernel
def signed(
    points: Floats,
    tree: Tree,
    order: Ints,
    triangles: Ints,
    edge_of: Ints,
    normals: tuple[Floats, Floats, Floats],
    touching: float,
) -> tuple[Floats, Floats]:
    """For each point the signed distance and its gradient (q, 3): the normal, if closer than `touching`.

    Points that follow each other are often near each other: each begins with the triangle found for the one before.
    """
    distances, gradients = np.empty(len(points)), np.empty((len(points), 3))
    for block in prange((len(points) + BLOCK - 1) // BLOCK):
        found, weights = -1, np.zeros(3)
        for q in range(block * BLOCK, min((block + 1) * BLOCK, len(points))):
            p = points[q, 0], points[q, 1], points[q, 2]
            distance2, found = closest_one(p, tree, np.inf, found, weights)
            within, n = _feature(weights, order[found], triangles, edge_of, normals)
            gap = _gap(p, weights, tree.corners, found)
            distances[q] = sqrt(distance2) if dot(gap, n) >= 0 else -sqrt(distance2)
            gradient = _outward(within, n, gap, distances[q], touching)
            for axis in range(3):
                gradients[q, axis] = gradient[axis]
    return distances, gradients
