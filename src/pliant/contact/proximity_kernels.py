"""What `pliant.contact.proximity` asks of its kernels: near triangles, near edges, and what pairs of them say.

A vertex x and a triangle with unit normal n, whose closest point to x is y, face each other from outside if
``(x - y) · n > facing |x - y|`` and ``(y - x) · n_x > 0`` for the vertex normal n_x. Edges with points p and q
that are closest to each other, and normals n_p and n_q, do if ``(q - p) · n_p`` and ``(p - q) · n_q`` both exceed
``facing |p - q|``. An edge's normal is the sum of its triangles' unit normals, so it is square to the edge, and heights
above the edge need no closest point: most candidates are refused by them alone.

What touches (closer than `touch`) has no direction; there the normals have to be opposed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pliant.core.topology import Floats, Ints
from pliant.geometry.bvh import POINTS_PER_THREAD, Tree
from pliant.native import in_threads, kernels


class Lists(NamedTuple):
    """Sorted lists of numbers, one after the other: list k is ``items[offsets[k]:offsets[k + 1]]``."""

    offsets: Ints
    items: Ints


class Limits(NamedTuple):
    """What counts as near."""

    within: float
    facing: float
    """Least cosine between a triangle's or edge's normal and the direction of the other."""
    contact_distance: float
    """Distance below which two things touch."""


class Edges(NamedTuple):
    """The edges of a surface."""

    points: Floats
    ends: Ints
    """(e, 2) vertices."""
    normals: Floats
    """(e, 3) of unit length, or zero: edges without a normal find nothing."""
    owned: Ints
    """(t, 3) for the triangles in the tree's order, the edge from each corner to the next; -1 where it is already
    with another triangle."""


def near_triangles(points: Floats, normals: Floats, tree: Tree, limits: Limits, skipped: Lists, most: int) -> Ints:
    """(n, most) the nearest triangles to each vertex, in the tree's order and nearest first; -1 for none.

    skipped: for each vertex the triangles that never count, in the tree's order. Vertices without a normal find none.
    """
    found = np.full((len(points), most), -1, dtype=np.int64)
    facing = np.empty((len(tree.corners), 3))
    kernels.proximity_triangle_normals(tree.corners, facing)
    given = points, normals, tree, facing, limits, skipped, found
    in_threads(lambda a, b: kernels.proximity_near_triangles(given, a, b), len(points), POINTS_PER_THREAD)
    return found


def near_edges(edges: Edges, tree: Tree, limits: Limits, skipped: Lists, most: int) -> Ints:
    """(e, most) the nearest edges to each edge, nearest first; -1 for none.

    skipped: for each edge the vertices whose edges never count.
    """
    found = np.full((len(edges.ends), most), -1, dtype=np.int64)
    given = edges, tree, limits, skipped, found
    in_threads(lambda a, b: kernels.proximity_near_edges(given, a, b), len(found), POINTS_PER_THREAD)
    return found


def gaps(
    points: Floats, triangles: Ints, vertex: Ints, triangle: Ints, contact_distance: float
) -> tuple[Floats, Floats, Floats]:
    """Gap (m,), unit normal (m, 3) and barycentric coordinates (m, 3) of pairs of a vertex and a triangle."""
    found = np.empty(len(vertex)), np.empty((len(vertex), 3)), np.empty((len(vertex), 3))
    kernels.proximity_gaps(points, triangles, vertex, triangle, contact_distance, found)
    return found


def edge_gaps(
    points: Floats, edges: Ints, normals: Floats, pairs: Ints, sign: Floats, contact_distance: float
) -> tuple[Floats, Floats, Floats]:
    """Gap (m,), unit normal (m, 3) and parameters (m, 2) of pairs (m, 2) of edges."""
    found = np.empty(len(pairs)), np.empty((len(pairs), 3)), np.empty((len(pairs), 2))
    kernels.proximity_edge_gaps(points, edges, normals, pairs, sign, contact_distance, found)
    return found


def edge_normals(points: Floats, triangles: Ints, triangle_edges: Ints, count: int) -> Floats:
    """(e, 3) sums of the unit normals of each edge's triangles, made unit; zero where they cancel.

    triangle_edges: (t, 3) the edge from each corner to the next; -1 where a triangle repeats a corner.
    """
    normals = np.zeros((count, 3))
    kernels.proximity_edge_normals(points, triangles, triangle_edges, normals)
    return normals


def pair_distances(points: Floats, triangles: Ints, vertex: Ints, triangle: Ints) -> Floats:
    """(m,) distance of each vertex from its triangle."""
    out = np.empty(len(vertex))
    kernels.proximity_pair_distances(points, triangles, vertex, triangle, out)
    return out


def edge_distances(points: Floats, first: Ints, second: Ints) -> Floats:
    """(m,) distance between the edges of each pair, given by their vertices (m, 2) and (m, 2)."""
    out = np.empty(len(first))
    kernels.proximity_edge_distances(points, first, second, out)
    return out


def clearances(points: Floats, near: Ints) -> tuple[Floats, Floats, Floats]:
    """Distances (m,), directions (m, 3) and weights (m, 4) of `CollisionFreePath.near` (m, 5); no side is inner."""
    found = np.empty(len(near)), np.empty((len(near), 3)), np.empty((len(near), 4))
    kernels.proximity_clearances(points, near, found)
    return found
