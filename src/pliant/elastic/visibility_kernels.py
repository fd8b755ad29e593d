"""How much of a surface stands between two places inside it: what keeps one leg's nodes from moving the other leg.

Walking from a node, inside, to a place, the surfaces around are counted: a triangle crossed from its back is left
behind, one crossed from its front is entered. Where the count falls to zero there is outside air. It hides by
``1 − n·m``, at most altogether, with n the normal of the surface where the body is left and m where it is entered
again: the two walls of a gap face each other, and hide; the two sides of a shallow hollow face almost the same way, and
hardly do, so that weights fade from one vertex to the next instead of jumping.
"""

from __future__ import annotations

import numpy as np

from pliant.jit import kernel
from pliant.spatial.bvh import STACK, Tree
from pliant.spatial.sweep import _reaches
from pliant.spatial.vectors import Vector, corner, cross, dot, minus, norm
from pliant.topology import Floats, Ints

MOST_CROSSINGS = 32


@kernel
def _normal(tree: Tree, t: int) -> Vector:
    a = corner(tree.corners, t, 0)
    return cross(minus(corner(tree.corners, t, 1), a), minus(corner(tree.corners, t, 2), a))


@kernel
def _meets(p: Vector, d: Vector, tree: Tree, t: int) -> float:
    """Fraction at which p + s d meets a triangle; infinite if it does not."""
    a = corner(tree.corners, t, 0)
    ab, ac = minus(corner(tree.corners, t, 1), a), minus(corner(tree.corners, t, 2), a)
    n = cross(ab, ac)
    slope = dot(d, n)
    if slope == 0:
        return np.inf
    s = dot(minus(a, p), n) / slope
    if s < 0 or s > 1:
        return np.inf
    at = p[0] + s * d[0] - a[0], p[1] + s * d[1] - a[1], p[2] + s * d[2] - a[2]
    area2 = dot(n, n)
    v, w = dot(cross(at, ac), n) / area2, dot(cross(ab, at), n) / area2
    return s if v >= 0 and w >= 0 and v + w <= 1 else np.inf


@kernel
def _meetings(p: Vector, d: Vector, last: float, tree: Tree, fractions: Floats, triangles: Ints) -> int:
    """Crossings of p + s d, s up to `last`, with the surface, sorted; returns how many."""
    nodes = np.empty(STACK, dtype=np.int64)
    nodes[0], top, count = 0, 1, 0
    while top:
        top -= 1
        node = nodes[top]
        if _reaches(p, d, tree.boxes, node, last, 0.0) > last:
            continue
        if tree.right[node]:
            nodes[top], nodes[top + 1] = tree.right[node], node + 1
            top += 2
            continue
        for t in range(tree.start[node], tree.stop[node]):
            s = _meets(p, d, tree, t)
            if s > last or count == len(fractions):
                continue
            at = count
            while at > 0 and fractions[at - 1] > s:
                fractions[at], triangles[at] = fractions[at - 1], triangles[at - 1]
                at -= 1
            fractions[at], triangles[at] = s, t
            count += 1
    return count


@kernel
def hidden(node: Vector, place: Vector, around: int, tree: Tree, eps: float, fractions: Floats,
           triangles: Ints) -> float:  # fmt: skip
    """How much a place is hidden from a node: 0 not at all, 1 or more altogether.

    around: surfaces around the node, 1 if it is inside one part. eps: how close to the place the surface may be.
    """
    d = minus(place, node)
    length = norm(d)
    if length <= eps:
        return 0.0
    count = _meetings(node, d, 1 - eps / length, tree, fractions, triangles)
    total, left = 0.0, (0.0, 0.0, 0.0)
    for k in range(count):
        n = _normal(tree, triangles[k])
        leaving = dot(d, n) > 0
        if leaving:
            around -= 1
            if around == 0:
                left = n
        else:
            around += 1
            if around == 1:
                total += min(1.0, 1 - dot(left, n) / max(norm(left) * norm(n), 1e-300))
    return total if around > 0 else 1.0
