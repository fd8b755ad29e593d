"""A tree of axis-aligned boxes over triangles, in flat arrays: building, refitting, and the closest point.

Nodes are numbered depth first, so a node's left child is the next node and children come after their parents. A node
covers the triangles ``start[k]:stop[k]`` of the tree's own order. Nodes are split along the longest side of their
triangles' centres where the surface-area heuristic is least: of 16 bins, the cut with the smallest
``count · area`` summed over both sides.

The closest point on a triangle is found from which of its seven regions a point is seen in (Ericson 2005). Rounding
would choose wrongly for thin triangles: there it is the foot point if that lies inside, or else the closest point of
the three edges; the thinnest have no usable foot point, and their edges alone decide.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pliant.jit import kernel, parallel_kernel, prange
from pliant.spatial.vectors import Vector, corner, cross, dot, minus
from pliant.topology import Floats, Ints

LEAF = 4
BINS = 16
DEEPEST_SPLIT = 40
THIN = 1e-8
"""Squared height over base of the triangles that are too thin for regions."""
STACK = 96
"""Entries for a depth-first walk: DEEPEST_SPLIT levels by area and at most 48 more that halve."""


class Tree(NamedTuple):
    """The arrays that kernels walk over."""

    boxes: Floats
    """(nodes, 6) lower and upper corner."""
    right: Ints
    """(nodes,) the right child; 0 for a leaf."""
    start: Ints
    """(nodes,) first triangle, in the tree's order."""
    stop: Ints
    """(nodes,) one past the last triangle."""
    corners: Floats
    """(m, 3, 3) the triangles' corners in the tree's order."""


@kernel
def triangle_boxes(corners: Floats) -> Floats:
    """(m, 6) lower and upper corner of each triangle's box."""
    boxes = np.empty((len(corners), 6))
    for t in range(len(corners)):
        for axis in range(3):
            a, b, c = corners[t, 0, axis], corners[t, 1, axis], corners[t, 2, axis]
            boxes[t, axis] = min(a, b, c)
            boxes[t, 3 + axis] = max(a, b, c)
    return boxes


@kernel
def _grow(box: Floats, other: Floats) -> None:
    for axis in range(3):
        box[axis] = min(box[axis], other[axis])
        box[3 + axis] = max(box[3 + axis], other[3 + axis])


@kernel
def _empty(box: Floats) -> None:
    box[:3] = np.inf
    box[3:] = -np.inf


@kernel
def _half_area(box: Floats) -> float:
    x, y, z = box[3] - box[0], box[4] - box[1], box[5] - box[2]
    return x * y + y * z + z * x


@kernel
def _longest_axis(boxes: Floats, order: Ints, start: int, stop: int) -> tuple[int, float, float]:
    """The axis along which the (doubled) box centres spread most, their least value and their spread."""
    best, least, widest = 0, 0.0, -1.0
    for axis in range(3):
        low, high = np.inf, -np.inf
        for k in range(start, stop):
            centre = boxes[order[k], axis] + boxes[order[k], 3 + axis]
            low, high = min(low, centre), max(high, centre)
        if high - low > widest:
            best, least, widest = axis, low, high - low
    return best, least, widest


@kernel
def _best_cut(bin_boxes: Floats, bin_counts: Ints, costs: Floats) -> int:
    """The bin after which to cut, by the surface-area heuristic."""
    swept = np.empty(6)
    _empty(swept)
    count = 0
    for b in range(BINS - 1):
        _grow(swept, bin_boxes[b])
        count += bin_counts[b]
        costs[b] = count * _half_area(swept) if count else np.inf
    _empty(swept)
    count = 0
    for b in range(BINS - 1, 0, -1):
        _grow(swept, bin_boxes[b])
        count += bin_counts[b]
        costs[b - 1] += count * _half_area(swept) if count else np.inf
    return int(np.argmin(costs))


@kernel
def _split(boxes: Floats, order: Ints, start: int, stop: int, bin_boxes: Floats, bin_counts: Ints) -> int:
    """Reorder ``order[start:stop]`` into two sides; returns where the second begins."""
    middle = (start + stop) // 2
    axis, least, spread = _longest_axis(boxes, order, start, stop)
    scale = BINS / spread if spread > 0 else np.inf
    if not np.isfinite(scale):
        return middle
    for b in range(BINS):
        _empty(bin_boxes[b])
        bin_counts[b] = 0
    for k in range(start, stop):
        box = boxes[order[k]]
        b = min(int((box[axis] + box[3 + axis] - least) * scale), BINS - 1)
        bin_counts[b] += 1
        _grow(bin_boxes[b], box)
    cut = _best_cut(bin_boxes, bin_counts, np.zeros(BINS - 1))
    left, right = start, stop - 1
    while left <= right:
        box = boxes[order[left]]
        if min(int((box[axis] + box[3 + axis] - least) * scale), BINS - 1) <= cut:
            left += 1
        else:
            order[left], order[right] = order[right], order[left]
            right -= 1
    return left if start < left < stop else middle


@kernel
def build(corners: Floats) -> tuple[Ints, Ints, Ints, Ints]:
    """The tree's order of the triangles (m,), and right, start and stop of its nodes."""
    m = len(corners)
    boxes = triangle_boxes(corners)
    order = np.arange(m)
    right = np.zeros(2 * m, dtype=np.int64)
    span = np.zeros((2, 2 * m), dtype=np.int64)
    bin_boxes, bin_counts = np.empty((BINS, 6)), np.empty(BINS, dtype=np.int64)
    todo = np.empty((STACK, 4), dtype=np.int64)  # start, stop, the node whose right child this is, depth
    todo[0] = np.array([0, m, -1, 0])
    top, nodes = 1, 0
    while top:
        top -= 1
        start, stop, parent, depth = todo[top]
        node, nodes = nodes, nodes + 1
        span[0, node], span[1, node] = start, stop
        if parent >= 0:
            right[parent] = node
        if stop - start <= LEAF:
            continue
        cut = (start + stop) // 2
        if depth < DEEPEST_SPLIT:
            cut = _split(boxes, order, start, stop, bin_boxes, bin_counts)
        todo[top, 0], todo[top, 1], todo[top, 2], todo[top, 3] = cut, stop, node, depth + 1
        todo[top + 1, 0], todo[top + 1, 1], todo[top + 1, 2], todo[top + 1, 3] = start, cut, -1, depth + 1
        top += 2
    return order, right[:nodes].copy(), span[0, :nodes].copy(), span[1, :nodes].copy()


@kernel
def fit(corners: Floats, right: Ints, start: Ints, stop: Ints) -> Floats:
    """(nodes, 6) boxes around the triangles (given in the tree's order), from the leaves up."""
    boxes = np.empty((len(right), 6))
    own = triangle_boxes(corners)
    for node in range(len(right) - 1, -1, -1):
        _empty(boxes[node])
        if right[node]:
            _grow(boxes[node], boxes[node + 1])
            _grow(boxes[node], boxes[right[node]])
        else:
            for t in range(start[node], stop[node]):
                _grow(boxes[node], own[t])
    return boxes


@kernel
def _box_distance2(p: Vector, boxes: Floats, node: int) -> float:
    x = max(boxes[node, 0] - p[0], p[0] - boxes[node, 3], 0.0)
    y = max(boxes[node, 1] - p[1], p[1] - boxes[node, 4], 0.0)
    z = max(boxes[node, 2] - p[2], p[2] - boxes[node, 5], 0.0)
    return x * x + y * y + z * z


@kernel
def _on_segment(p: Vector, a: Vector, b: Vector) -> tuple[float, float]:
    """Squared distance to the segment, and how far along it (0 at a, 1 at b) the closest point is."""
    ab, ap = minus(b, a), minus(p, a)
    length2 = dot(ab, ab)
    t = min(max(dot(ap, ab) / length2, 0.0), 1.0) if length2 > 0 else 0.0
    gap = ap[0] - t * ab[0], ap[1] - t * ab[1], ap[2] - t * ab[2]
    return dot(gap, gap), t


@kernel
def _closest_on_thin(p: Vector, a: Vector, b: Vector, c: Vector) -> tuple[float, float, float, float]:
    """The same for a triangle that is thin, or flat: the best of its edges and, if it has one, its foot point."""
    ab, ac, ap = minus(b, a), minus(c, a), minus(p, a)
    n = cross(ab, ac)
    area2, size2 = dot(n, n), max(dot(ab, ab), dot(ac, ac))
    best, u, v, w = np.inf, 1.0, 0.0, 0.0
    if area2 > 1e-28 * size2 * size2:
        v1, w1 = dot(cross(ap, ac), n) / area2, dot(cross(ab, ap), n) / area2
        if v1 >= 0 and w1 >= 0 and v1 + w1 <= 1:
            gap = (
                ap[0] - v1 * ab[0] - w1 * ac[0],
                ap[1] - v1 * ab[1] - w1 * ac[1],
                ap[2] - v1 * ab[2] - w1 * ac[2],
            )
            best, u, v, w = dot(gap, gap), 1 - v1 - w1, v1, w1
            if area2 > 1e-12 * size2 * size2:
                return best, u, v, w
    d, t = _on_segment(p, a, b)
    if d < best:
        best, u, v, w = d, 1 - t, t, 0.0
    d, t = _on_segment(p, b, c)
    if d < best:
        best, u, v, w = d, 0.0, 1 - t, t
    d, t = _on_segment(p, c, a)
    if d < best:
        best, u, v, w = d, t, 0.0, 1 - t
    return best, u, v, w


@kernel
def closest_on_triangle(p: Vector, a: Vector, b: Vector, c: Vector) -> tuple[float, float, float, float]:
    """Squared distance to the triangle, and the closest point's barycentric coordinates; those of an edge are zero."""
    ab, ac, ap = minus(b, a), minus(c, a), minus(p, a)
    bb, cc, bc = dot(ab, ab), dot(ac, ac), dot(ab, ac)
    if bb * cc - bc * bc <= THIN * max(bb, cc) ** 2:
        return _closest_on_thin(p, a, b, c)
    # How far p lies along the edges at a, seen from each of the corners.
    ab_a, ac_a = dot(ab, ap), dot(ac, ap)
    ab_b, ac_b, ab_c, ac_c = ab_a - bb, ac_a - bc, ab_a - bc, ac_a - cc
    u = ab_b * ac_c - ab_c * ac_b
    v, w = ab_c * ac_a - ab_a * ac_c, ab_a * ac_b - ab_b * ac_a
    if ab_a <= 0 and ac_a <= 0:
        v, w = 0.0, 0.0
    elif ab_b >= 0 and ac_b <= ab_b:
        v, w = 1.0, 0.0
    elif ac_c >= 0 and ab_c <= ac_c:
        v, w = 0.0, 1.0
    elif w <= 0 and ab_a >= 0 and ab_b <= 0:
        v, w = ab_a / bb, 0.0
    elif v <= 0 and ac_a >= 0 and ac_c <= 0:
        v, w = 0.0, ac_a / cc
    elif u <= 0 and ac_b >= ab_b and ab_c >= ac_c:
        w = (ac_b - ab_b) / ((ac_b - ab_b) + (ab_c - ac_c))
        x, y, z = (
            ap[0] - ab[0] - w * (ac[0] - ab[0]),
            ap[1] - ab[1] - w * (ac[1] - ab[1]),
            ap[2] - ab[2] - w * (ac[2] - ab[2]),
        )
        return x * x + y * y + z * z, 0.0, 1 - w, w
    else:
        v, w = v / (u + v + w), w / (u + v + w)
    x, y, z = ap[0] - v * ab[0] - w * ac[0], ap[1] - v * ab[1] - w * ac[1], ap[2] - v * ab[2] - w * ac[2]
    return x * x + y * y + z * z, 1 - v - w, v, w


@kernel
def closest_one(p: Vector, tree: Tree, limit2: float, guess: int, weights: Floats) -> tuple[float, int]:
    """Squared distance and triangle (in the tree's order, -1 beyond the limit); fills the barycentric weights.

    guess: a triangle that may be near, such as that of a point nearby, which spares looking at farther ones; or -1.
    """
    nodes, near = np.empty(STACK, dtype=np.int64), np.empty(STACK)
    best, found = limit2, -1
    if guess >= 0:
        a, b, c = corner(tree.corners, guess, 0), corner(tree.corners, guess, 1), corner(tree.corners, guess, 2)
        d, u, v, w = closest_on_triangle(p, a, b, c)
        if d <= best:
            best, found = d, guess
            weights[0], weights[1], weights[2] = u, v, w
    nodes[0], near[0] = 0, _box_distance2(p, tree.boxes, 0)
    top = 1
    while top:
        top -= 1
        node = nodes[top]
        if near[top] > best or (near[top] == best and found >= 0):
            continue
        while tree.right[node]:
            first, second = node + 1, tree.right[node]
            d1, d2 = _box_distance2(p, tree.boxes, first), _box_distance2(p, tree.boxes, second)
            if d2 < d1:
                first, second, d1, d2 = second, first, d2, d1
            if d2 <= best:
                nodes[top], near[top] = second, d2
                top += 1
            if d1 > best:
                break
            node = first
        if tree.right[node]:
            continue
        for t in range(tree.start[node], tree.stop[node]):
            a, b, c = corner(tree.corners, t, 0), corner(tree.corners, t, 1), corner(tree.corners, t, 2)
            d, u, v, w = closest_on_triangle(p, a, b, c)
            if d < best or (d == best and found < 0):
                best, found = d, t
                weights[0], weights[1], weights[2] = u, v, w
    return best, found


@parallel_kernel
def closest(points: Floats, tree: Tree, limit2: float) -> tuple[Floats, Ints, Floats]:
    """For each point: squared distance, triangle in the tree's order, barycentric coordinates (q, 3)."""
    count = len(points)
    distance2, triangle, weights = np.empty(count), np.empty(count, dtype=np.int64), np.zeros((count, 3))
    for q in prange(count):
        p = points[q, 0], points[q, 1], points[q, 2]
        distance2[q], triangle[q] = closest_one(p, tree, limit2, -1, weights[q])
    return distance2, triangle, weights
