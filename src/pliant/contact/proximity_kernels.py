"""The compiled walks behind `pliant.contact.proximity`: near triangles, near edges, and what pairs of them say.

A vertex x and a triangle with unit normal n, whose closest point to x is y, face each other from outside if
``(x - y) · n > facing |x - y|`` and ``(y - x) · n_x > 0`` for the vertex normal n_x. Edges with points p and q
that are closest to each other, and normals n_p and n_q, do if ``(q - p) · n_p`` and ``(p - q) · n_q`` both exceed
``facing |p - q|``. An edge's normal is the sum of its triangles' unit normals, so it is square to the edge, and heights
above the edge need no closest point: most candidates are refused by them alone.

What touches (closer than `touch`) has no direction; there the normals have to be opposed.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from pliant.jit import kernel, parallel_kernel, prange
from pliant.spatial.bvh import STACK, Tree, closest_on_triangle
from pliant.spatial.vectors import Vector, corner, cross, dot, minus, norm, times
from pliant.topology import Floats, Ints

PARALLEL = 1e-3
"""Squared sine of the angle below which two edges count as parallel: they have no common normal worth using."""
UPRIGHT = 1 - 1e-9
"""Cosine to the triangle's normal from which a vertex counts as straight above the triangle."""
NOTHING = (0.0, 0.0, 0.0)


class Lists(NamedTuple):
    """Sorted lists of numbers, one after the other: list k is ``items[offsets[k]:offsets[k + 1]]``."""

    offsets: Ints
    items: Ints


class Limits(NamedTuple):
    """What counts as near."""

    within: float
    facing: float
    """Least cosine between a triangle's or edge's normal and the direction of the other."""
    touch: float
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


@kernel
def _row(table: Floats, k: int) -> Vector:
    return table[k, 0], table[k, 1], table[k, 2]


@kernel
def _unit(a: Vector) -> Vector:
    """Zero if it has no length, or an infinite one."""
    length = norm(a)
    return times(1 / length, a) if 0 < length < np.inf else NOTHING


@kernel
def _normal(a: Vector, b: Vector, c: Vector) -> Vector:
    return _unit(cross(minus(b, a), minus(c, a)))


@kernel
def _listed(lists: Lists, k: int, wanted: int) -> bool:
    low, high = lists.offsets[k], lists.offsets[k + 1]
    while low < high:
        middle = (low + high) // 2
        if lists.items[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return bool(low < lists.offsets[k + 1] and lists.items[low] == wanted)


@kernel
def _box_apart2(low: Vector, high: Vector, boxes: Floats, node: int) -> float:
    """Squared distance between a box and that of a node."""
    total = 0.0
    for axis in range(3):
        gap = max(boxes[node, axis] - high[axis], low[axis] - boxes[node, 3 + axis], 0.0)
        total += gap * gap
    return total


@kernel
def _insert(distance2: Floats, found: Ints, d2: float, item: int) -> None:
    """Put into a list sorted by distance; its last entry falls out."""
    k = len(found) - 1
    while k > 0 and distance2[k - 1] > d2:
        distance2[k], found[k] = distance2[k - 1], found[k - 1]
        k -= 1
    distance2[k], found[k] = d2, item


@kernel
def _facing2(x: Vector, normal: Vector, a: Vector, b: Vector, c: Vector, limits: Limits) -> float:
    """Squared distance of a vertex and a triangle that face each other from outside; infinite if they do not."""
    n = _normal(a, b, c)
    height = dot(minus(x, a), n)
    if not -limits.touch <= height < limits.within:
        return np.inf
    d2, u, v, w = closest_on_triangle(x, a, b, c)
    d = sqrt(d2)
    if d <= limits.touch:
        return d2 if dot(normal, n) < 0 else np.inf
    y = (
        u * a[0] + v * b[0] + w * c[0],
        u * a[1] + v * b[1] + w * c[1],
        u * a[2] + v * b[2] + w * c[2],
    )
    outside = height > limits.facing * d and dot(minus(y, x), normal) > 0
    return d2 if outside else np.inf


@kernel
def _near_triangles(
    x: Vector, normal: Vector, tree: Tree, limits: Limits, skipped: Lists, own: int, distance2: Floats, found: Ints
) -> None:
    """Fill in the nearest triangles (in the tree's order) that face the vertex and are not in its skipped list."""
    nodes = np.empty(STACK, dtype=np.int64)
    nodes[0], top = 0, 1
    while top:
        top -= 1
        node = nodes[top]
        if not _box_apart2(x, x, tree.boxes, node) < distance2[-1]:
            continue
        if tree.right[node]:
            nodes[top], nodes[top + 1] = tree.right[node], node + 1
            top += 2
            continue
        for t in range(tree.start[node], tree.stop[node]):
            if _listed(skipped, own, t):
                continue
            a, b, c = corner(tree.corners, t, 0), corner(tree.corners, t, 1), corner(tree.corners, t, 2)
            d2 = _facing2(x, normal, a, b, c, limits)
            if d2 < distance2[-1]:
                _insert(distance2, found, d2, t)


@parallel_kernel
def near_triangles(points: Floats, normals: Floats, tree: Tree, limits: Limits, skipped: Lists, most: int) -> Ints:
    """(n, most) the nearest triangles to each vertex, in the tree's order and nearest first; -1 for none.

    skipped: for each vertex the triangles that never count, in the tree's order. Vertices without a normal find none.
    """
    found = np.full((len(points), most), -1, dtype=np.int64)
    for v in prange(len(points)):
        normal = _row(normals, v)
        if dot(normal, normal) > 0:
            distance2 = np.full(most, limits.within * limits.within)
            _near_triangles(_row(points, v), normal, tree, limits, skipped, v, distance2, found[v])
    return found


@kernel
def _gap(x: Vector, a: Vector, b: Vector, c: Vector, touch: float) -> tuple[float, Vector, Vector]:
    d2, u, v, w = closest_on_triangle(x, a, b, c)
    n, d = _normal(a, b, c), sqrt(d2)
    y = (
        u * a[0] + v * b[0] + w * c[0],
        u * a[1] + v * b[1] + w * c[1],
        u * a[2] + v * b[2] + w * c[2],
    )
    height = dot(minus(x, y), n)
    if not d < np.inf or (d <= touch and n == NOTHING):
        return np.inf, n, (u, v, w)
    if d <= touch or abs(height) >= UPRIGHT * d or (u > 0 and v > 0 and w > 0 and n != NOTHING):
        return height, n, (u, v, w)
    if height < 0:
        return np.inf, n, (u, v, w)
    return d, times(1 / d, minus(x, y)), (u, v, w)


@kernel
def gaps(points: Floats, triangles: Ints, vertex: Ints, triangle: Ints, touch: float) -> tuple[Floats, Floats, Floats]:
    """Gap (m,), unit normal (m, 3) and barycentric coordinates (m, 3) of pairs of a vertex and a triangle."""
    count = len(vertex)
    gap, normal, weights = np.empty(count), np.empty((count, 3)), np.empty((count, 3))
    for k in range(count):
        t = triangle[k]
        a, b, c = _row(points, triangles[t, 0]), _row(points, triangles[t, 1]), _row(points, triangles[t, 2])
        gap[k], n, w = _gap(_row(points, vertex[k]), a, b, c, touch)
        for axis in range(3):
            normal[k, axis], weights[k, axis] = n[axis], w[axis]
    return gap, normal, weights


@kernel
def edge_normals(points: Floats, triangles: Ints, triangle_edges: Ints, count: int) -> Floats:
    """(e, 3) sums of the unit normals of each edge's triangles, made unit; zero where they cancel.

    triangle_edges: (t, 3) the edge from each corner to the next; -1 where a triangle repeats a corner.
    """
    total = np.zeros((count, 3))
    for t in range(len(triangles)):
        n = _normal(_row(points, triangles[t, 0]), _row(points, triangles[t, 1]), _row(points, triangles[t, 2]))
        for k in range(3):
            if triangle_edges[t, k] >= 0:
                for axis in range(3):
                    total[triangle_edges[t, k], axis] += n[axis]
    for e in range(count):
        n = _unit(_row(total, e))
        for axis in range(3):
            total[e, axis] = n[axis]
    return total


@kernel
def _clamped(value: float) -> float:
    return min(max(value, 0.0), 1.0)


@kernel
def _between(p: Vector, u: Vector, s: float) -> Vector:
    return p[0] + s * u[0], p[1] + s * u[1], p[2] + s * u[2]


@kernel
def closest_on_lines(a: Vector, u: Vector, c: Vector, v: Vector) -> tuple[float, float, bool]:
    """Parameters of the points a + s u and c + t v that are closest; whether the lines are not parallel."""
    w = minus(a, c)
    uu, uv, vv, uw, vw = dot(u, u), dot(u, v), dot(v, v), dot(u, w), dot(v, w)
    square = uu * vv - uv * uv
    if not PARALLEL * uu * vv < square < np.inf:
        return 0.0, 0.0, False
    return (uv * vw - vv * uw) / square, (uu * vw - uv * uw) / square, True


@kernel
def closest_on_segments(a: Vector, u: Vector, c: Vector, v: Vector) -> tuple[float, float]:
    """Parameters from 0 to 1 of the closest points of two segments (Ericson 2005, section 5.1.9)."""
    w = minus(a, c)
    uu, uv, vv, uw, vw = dot(u, u), dot(u, v), dot(v, v), dot(u, w), dot(v, w)
    square = uu * vv - uv * uv
    s = _clamped((uv * vw - vv * uw) / square) if square > 1e-14 * uu * vv else 0.0
    t = (uv * s + vw) / vv if vv > 0 else 0.0
    if t < 0 or t > 1 or vv == 0:
        t = _clamped(t)
        s = _clamped((uv * t - uw) / uu) if uu > 0 else 0.0
    return s, t


@kernel
def _edges_face2(a: Vector, b: Vector, n: Vector, c: Vector, d: Vector, m: Vector, limits: Limits) -> float:
    """Squared distance of two crossing edges (normals n and m) that face each other from outside, or infinity."""
    u, v = minus(b, a), minus(d, c)
    s, t, crossing = closest_on_lines(a, u, c, v)
    if not (crossing and 0 <= s <= 1 and 0 <= t <= 1):
        return np.inf
    apart = minus(_between(a, u, s), _between(c, v, t))
    distance = norm(apart)
    if distance <= limits.touch:
        return distance * distance if dot(n, m) < 0 else np.inf
    outside = dot(apart, m) > limits.facing * distance and -dot(apart, n) > limits.facing * distance
    return distance * distance if outside else np.inf


@kernel
def _near_edges(
    e: int, edges: Edges, tree: Tree, limits: Limits, skipped: Lists, distance2: Floats, found: Ints
) -> None:
    """Fill in the nearest edges that cross edge e, face it and are not among the edges at its skipped vertices."""
    points, ends, normals, owned = edges
    a, b, n = _row(points, ends[e, 0]), _row(points, ends[e, 1]), _row(normals, e)
    low = min(a[0], b[0]), min(a[1], b[1]), min(a[2], b[2])
    high = max(a[0], b[0]), max(a[1], b[1]), max(a[2], b[2])
    alike = 1 - 2 * limits.facing * limits.facing  # no direction is far enough above both of two such normals
    nodes = np.empty(STACK, dtype=np.int64)
    nodes[0], top = 0, 1
    while top:
        top -= 1
        node = nodes[top]
        if not _box_apart2(low, high, tree.boxes, node) < distance2[-1]:
            continue
        if tree.right[node]:
            nodes[top], nodes[top + 1] = tree.right[node], node + 1
            top += 2
            continue
        for t in range(tree.start[node], tree.stop[node]):
            for k in range(3):
                f = owned[t, k]
                if f < 0 or dot(n, _row(normals, f)) > alike:
                    continue
                c, d, m = corner(tree.corners, t, k), corner(tree.corners, t, (k + 1) % 3), _row(normals, f)
                if max(dot(minus(c, a), n), dot(minus(d, a), n)) < -limits.touch:
                    continue
                if max(dot(minus(a, c), m), dot(minus(b, c), m)) < -limits.touch:
                    continue
                if _listed(skipped, e, ends[f, 0]) or _listed(skipped, e, ends[f, 1]):
                    continue
                d2 = _edges_face2(a, b, n, c, d, m, limits)
                if d2 < distance2[-1]:
                    _insert(distance2, found, d2, f)


@parallel_kernel
def near_edges(edges: Edges, tree: Tree, limits: Limits, skipped: Lists, most: int) -> Ints:
    """(e, most) the nearest edges to each edge, nearest first; -1 for none.

    skipped: for each edge the vertices whose edges never count.
    """
    found = np.full((len(edges.ends), most), -1, dtype=np.int64)
    for e in prange(len(edges.ends)):
        normal = _row(edges.normals, e)
        if dot(normal, normal) > 0:
            distance2 = np.full(most, limits.within * limits.within)
            _near_edges(e, edges, tree, limits, skipped, distance2, found[e])
    return found


@kernel
def _edge_gap(
    a: Vector, b: Vector, c: Vector, d: Vector, sign: float, outward: Vector, touch: float
) -> tuple[float, Vector, float, float]:
    """Gap, normal and parameters of two edges; `outward` is what the surface says of the normal's direction."""
    u, v = minus(b, a), minus(d, c)
    s, t, crossing = closest_on_lines(a, u, c, v)
    n = times(sign, _unit(cross(u, v)))
    inside = crossing and 0 <= s <= 1 and 0 <= t <= 1
    if not inside:
        s, t = closest_on_segments(a, u, c, v)
    apart = minus(_between(a, u, s), _between(c, v, t))
    height, distance = dot(apart, n), norm(apart)
    if not (crossing and dot(n, outward) > 0 and distance < np.inf):
        return np.inf, n, s, t
    if inside or distance <= touch:
        return height, n, s, t
    if height < 0:
        return np.inf, n, s, t
    return distance, times(1 / distance, apart), s, t


@kernel
def edge_gaps(
    points: Floats, edges: Ints, normals: Floats, pairs: Ints, sign: Floats, touch: float
) -> tuple[Floats, Floats, Floats]:
    """Gap (m,), unit normal (m, 3) and parameters (m, 2) of pairs (m, 2) of edges."""
    count = len(pairs)
    gap, normal, along = np.empty(count), np.empty((count, 3)), np.empty((count, 2))
    for k in range(count):
        e, f = pairs[k, 0], pairs[k, 1]
        a, b = _row(points, edges[e, 0]), _row(points, edges[e, 1])
        c, d = _row(points, edges[f, 0]), _row(points, edges[f, 1])
        outward = minus(_row(normals, f), _row(normals, e))
        gap[k], n, along[k, 0], along[k, 1] = _edge_gap(a, b, c, d, sign[k], outward, touch)
        for axis in range(3):
            normal[k, axis] = n[axis]
    return gap, normal, along


@kernel
def pair_distances(points: Floats, triangles: Ints, vertex: Ints, triangle: Ints) -> Floats:
    """(m,) distance of each vertex from its triangle."""
    out = np.empty(len(vertex))
    for k in range(len(vertex)):
        t = triangle[k]
        a, b, c = _row(points, triangles[t, 0]), _row(points, triangles[t, 1]), _row(points, triangles[t, 2])
        out[k] = sqrt(closest_on_triangle(_row(points, vertex[k]), a, b, c)[0])
    return out


@kernel
def edge_distances(points: Floats, first: Ints, second: Ints) -> Floats:
    """(m,) distance between the edges of each pair, given by their vertices (m, 2) and (m, 2)."""
    out = np.empty(len(first))
    for k in range(len(first)):
        a, c = _row(points, first[k, 0]), _row(points, second[k, 0])
        u, v = minus(_row(points, first[k, 1]), a), minus(_row(points, second[k, 1]), c)
        s, t = closest_on_segments(a, u, c, v)
        out[k] = norm(minus(_between(a, u, s), _between(c, v, t)))
    return out


@kernel
def clearances(points: Floats, near: Ints) -> tuple[Floats, Floats, Floats]:
    """Distances (m,), unit directions (m, 3) and weights (m, 4) of rows of `Passage.near` (m, 5); no side is inner."""
    count = len(near)
    gap, normal, weights = np.empty(count), np.zeros((count, 3)), np.empty((count, 4))
    for k in range(count):
        a, b = _row(points, near[k, 0]), _row(points, near[k, 1])
        c, d = _row(points, near[k, 2]), _row(points, near[k, 3])
        if near[k, 4] == 1:
            _, u, v, w = closest_on_triangle(a, b, c, d)
            weights[k, 0], weights[k, 1], weights[k, 2], weights[k, 3] = 1.0, -u, -v, -w
        else:
            s, t = closest_on_segments(a, minus(b, a), c, minus(d, c))
            weights[k, 0], weights[k, 1], weights[k, 2], weights[k, 3] = 1 - s, s, t - 1, -t
        for j in range(3):
            normal[k, j] = weights[k, 0] * a[j] + weights[k, 1] * b[j] + weights[k, 2] * c[j] + weights[k, 3] * d[j]
        gap[k] = np.sqrt((normal[k] ** 2).sum())
        normal[k] /= max(gap[k], 1e-300)
    return gap, normal, weights
