"""Which triangles of two surfaces, or of one with itself, have overlapping boxes or cross each other.

Two triangles cross if each has corners on both sides of the other's plane and they share a piece of the line in which
the planes meet (Möller 1997). Distances to a plane and lengths along the line below `eps` count as zero, so triangles
that touch, in a corner, along an edge or with an edge on a face, do not cross. Corners at exactly the same place lie
on each other's plane by definition: neighbours that share one corner can still cross away from it, and neighbours that
share two cannot. Triangles lower than `eps` have no inside and cross nothing.

Coplanar triangles cross nothing; on request those that overlap in an area are found too (separating lines in the
plane).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.jit import kernel, parallel_kernel, prange
from pliant.spatial.bvh import STACK, Tree, triangle_boxes
from pliant.spatial.vectors import Vector, corner, cross, dot, minus, norm, same, times
from pliant.topology import Floats, Ints

BOXES, CROSSING, CROSSING_OR_COPLANAR = 0, 1, 2
Triangle = tuple[Vector, Vector, Vector]


@kernel
def _unit_normal(a: Triangle, eps: float) -> Vector:
    """Zero if the triangle is lower than eps."""
    n = cross(minus(a[1], a[0]), minus(a[2], a[0]))
    length = norm(n)
    longest = max(norm(minus(a[1], a[0])), norm(minus(a[2], a[1])), norm(minus(a[0], a[2])))
    return times(1 / length, n) if length > eps * longest else (0.0, 0.0, 0.0)


@kernel
def _height(p: Vector, n: Vector, a: Triangle, eps: float) -> float:
    """Signed distance of p to the plane of triangle a with unit normal n, exactly zero if it is in it."""
    if same(p, a[0]) or same(p, a[1]) or same(p, a[2]):
        return 0.0
    h = dot(n, minus(p, a[0]))
    return h if abs(h) > eps else 0.0


@kernel
def _piece(t: Vector, h: Vector) -> tuple[float, float]:
    """Where a triangle meets a plane: corners at t along the line of intersection, h above the plane."""
    low, high = np.inf, -np.inf
    for k in range(3):
        l = (k + 1) % 3
        if h[k] == 0:
            low, high = min(low, t[k]), max(high, t[k])
        elif h[k] * h[l] < 0:
            at = t[k] + (t[l] - t[k]) * (h[k] / (h[k] - h[l]))
            low, high = min(low, at), max(high, at)
    return low, high


@kernel
def _separated(a: Triangle, b: Triangle, n: Vector, eps: float) -> bool:
    """Whether a line along an edge of a, in the plane with normal n, has all of b on its outer side."""
    for k in range(3):
        edge = minus(a[(k + 1) % 3], a[k])
        length = norm(edge)
        inward = times(1 / length, cross(n, edge))
        reach = max(dot(inward, minus(b[0], a[k])), dot(inward, minus(b[1], a[k])), dot(inward, minus(b[2], a[k])))
        if reach <= eps:
            return True
    return False


@kernel
def _shared(a: Triangle, b: Triangle) -> int:
    count = 0
    for p in a:
        if same(p, b[0]) or same(p, b[1]) or same(p, b[2]):
            count += 1
    return count


@kernel
def triangles_cross(a: Triangle, b: Triangle, eps: float, coplanar: bool) -> bool:
    """Whether two triangles cross, or, if asked, overlap in one plane."""
    if not coplanar and _shared(a, b) > 1:
        return False
    n = _unit_normal(a, eps)
    hb = _height(b[0], n, a, eps), _height(b[1], n, a, eps), _height(b[2], n, a, eps)
    if min(hb) >= 0 or max(hb) <= 0:
        if not coplanar or min(hb) < 0 or max(hb) > 0:
            return False
        m = _unit_normal(b, eps)
        if dot(n, n) == 0 or dot(m, m) == 0:
            return False
        return not (_separated(a, b, n, eps) or _separated(b, a, m, eps))
    m = _unit_normal(b, eps)
    ha = _height(a[0], m, b, eps), _height(a[1], m, b, eps), _height(a[2], m, b, eps)
    if min(ha) >= 0 or max(ha) <= 0:
        return False
    line = cross(n, m)
    length = norm(line)
    if length == 0:
        return False
    line = times(1 / length, line)
    ta = 0.0, dot(line, minus(a[1], a[0])), dot(line, minus(a[2], a[0]))
    tb = dot(line, minus(b[0], a[0])), dot(line, minus(b[1], a[0])), dot(line, minus(b[2], a[0]))
    low_a, high_a = _piece(ta, ha)
    low_b, high_b = _piece(tb, hb)
    return bool(min(high_a, high_b) - max(low_a, low_b) > eps)


@kernel
def _boxes_meet(a: Floats, b: Floats, margin: float) -> bool:
    return bool(
        a[0] - margin <= b[3]
        and b[0] - margin <= a[3]
        and a[1] - margin <= b[4]
        and b[1] - margin <= a[4]
        and a[2] - margin <= b[5]
        and b[2] - margin <= a[5]
    )


@kernel
def _partners(
    i: int,
    query: Floats,
    query_boxes: Floats,
    tree: Tree,
    tree_boxes: Floats,
    own: bool,
    rule: int,
    eps: float,
    out: Ints,
) -> int:
    """Count the triangles of the tree that meet triangle i of the query, and note them as far as `out` reaches.

    own: the query is the tree's own triangles, of which only later ones count.
    """
    nodes = np.empty(STACK, dtype=np.int64)
    nodes[0], top, count = 0, 1, 0
    box, margin = query_boxes[i], eps if rule == BOXES else 0.0
    a = corner(query, i, 0), corner(query, i, 1), corner(query, i, 2)
    while top:
        top -= 1
        node = nodes[top]
        if (own and tree.stop[node] <= i + 1) or not _boxes_meet(box, tree.boxes[node], margin):
            continue
        if tree.right[node]:
            nodes[top], nodes[top + 1] = tree.right[node], node + 1
            top += 2
            continue
        for t in range(max(tree.start[node], i + 1 if own else 0), tree.stop[node]):
            if not _boxes_meet(box, tree_boxes[t], margin):
                continue
            b = corner(tree.corners, t, 0), corner(tree.corners, t, 1), corner(tree.corners, t, 2)
            if rule == BOXES or triangles_cross(a, b, eps, rule == CROSSING_OR_COPLANAR):
                if count < len(out):
                    out[count] = t
                count += 1
    return count


@parallel_kernel
def find_partners(query: Floats, tree: Tree, own: bool, rule: int, eps: float) -> NDArray[np.int64]:
    """(k, 2) pairs: triangle of the query, triangle of the tree (both in the order given), found by `rule`.

    eps: with the rule BOXES, how far apart boxes may be; otherwise the length that counts as zero.
    """
    m = len(query)
    query_boxes, tree_boxes = triangle_boxes(query), triangle_boxes(tree.corners)
    counts = np.zeros(m, dtype=np.int64)
    for i in prange(m):
        nothing = np.empty(0, dtype=np.int64)
        counts[i] = _partners(i, query, query_boxes, tree, tree_boxes, own, rule, eps, nothing)
    ends = np.cumsum(counts)
    pairs = np.empty((2, ends[-1] if m else 0), dtype=np.int64)
    for i in prange(m):
        if counts[i]:
            start = ends[i] - counts[i]
            pairs[0, start : ends[i]] = i
            _partners(i, query, query_boxes, tree, tree_boxes, own, rule, eps, pairs[1, start : ends[i]])
    return pairs.T
