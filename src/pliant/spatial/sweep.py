"""Where segments first enter a surface: what keeps a point from passing through something thin between two frames.

A segment enters a triangle where it comes from the side to which the triangle faces. With h the heights of its ends
above the triangle's plane, it meets the plane at the fraction ``h0 / (h0 - h1)``. A start on the surface counts as
outside, within rounding, and so do the triangles' edges as part of them, so that nothing slips through between two.
"""

from __future__ import annotations

import numpy as np

from pliant.jit import kernel, parallel_kernel, prange
from pliant.spatial.bvh import STACK, Tree
from pliant.spatial.vectors import Vector, corner, cross, dot, minus, norm
from pliant.topology import Floats, Ints

EDGE = 1e-10
"""How far beyond its edges a triangle reaches, in barycentric coordinates."""


@kernel
def _enters(p: Vector, q: Vector, a: Vector, b: Vector, c: Vector, side: float, eps: float) -> float:
    """The fraction at which the segment from p to q passes the triangle from its front (side 1) or back (-1)."""
    ab, ac = minus(b, a), minus(c, a)
    n = cross(ab, ac)
    length = norm(n)
    if length == 0:
        return np.inf
    h0, h1 = side * dot(minus(p, a), n) / length, side * dot(minus(q, a), n) / length
    if h0 < -eps or h1 > 0 or h1 >= h0:
        return np.inf
    s = min(max(h0 / (h0 - h1), 0.0), 1.0)
    at = (
        p[0] + s * (q[0] - p[0]) - a[0],
        p[1] + s * (q[1] - p[1]) - a[1],
        p[2] + s * (q[2] - p[2]) - a[2],
    )
    area2 = length * length
    v, w = dot(cross(at, ac), n) / area2, dot(cross(ab, at), n) / area2
    return s if v >= -EDGE and w >= -EDGE and v + w <= 1 + EDGE else np.inf


@kernel
def _reaches(p: Vector, d: Vector, boxes: Floats, node: int, best: float, eps: float) -> float:
    """The fraction at which the segment p + s d, s up to `best`, comes to a box; infinite if it does not."""
    low, high = 0.0, best
    for axis in range(3):
        near, far = boxes[node, axis] - eps - p[axis], boxes[node, 3 + axis] + eps - p[axis]
        if d[axis] == 0:
            if near > 0 or far < 0:
                return np.inf
            continue
        s, t = near / d[axis], far / d[axis]
        low, high = max(low, min(s, t)), min(high, max(s, t))
    return low if low <= high else np.inf


@kernel
def _first_one(p: Vector, q: Vector, tree: Tree, side: float, eps: float) -> tuple[float, int]:
    nodes, near = np.empty(STACK, dtype=np.int64), np.empty(STACK)
    d = minus(q, p)
    best, found = np.inf, -1
    nodes[0], near[0], top = 0, _reaches(p, d, tree.boxes, 0, 1.0, eps), 1
    while top:
        top -= 1
        node = nodes[top]
        if near[top] > min(best, 1.0):
            continue
        if tree.right[node] == 0:
            for t in range(tree.start[node], tree.stop[node]):
                s = _enters(p, q, corner(tree.corners, t, 0), corner(tree.corners, t, 1), corner(tree.corners, t, 2),
                            side, eps)  # fmt: skip
                if s < best:
                    best, found = s, t
            continue
        first, second = node + 1, tree.right[node]
        s1 = _reaches(p, d, tree.boxes, first, min(best, 1.0), eps)
        s2 = _reaches(p, d, tree.boxes, second, min(best, 1.0), eps)
        if s2 < s1:
            first, second, s1, s2 = second, first, s2, s1
        nodes[top], near[top], nodes[top + 1], near[top + 1] = second, s2, first, s1
        top += 2
    return best, found


@parallel_kernel
def first_hits(starts: Floats, ends: Floats, tree: Tree, side: float, eps: float) -> tuple[Floats, Ints]:
    """For each segment the fraction of its first crossing (infinite: none), and the triangle in the tree's order.

    side: 1 for crossings from the front, -1 for those from the back. eps: the length that counts as zero.
    """
    fractions, found = np.empty(len(starts)), np.empty(len(starts), dtype=np.int64)
    for k in prange(len(starts)):
        p, q = (starts[k, 0], starts[k, 1], starts[k, 2]), (ends[k, 0], ends[k, 1], ends[k, 2])
        fractions[k], found[k] = _first_one(p, q, tree, side, eps)
    return fractions, found
