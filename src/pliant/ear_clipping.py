"""The compiled triangulation of concave polygons by clipping ears.

An ear is a convex corner whose triangle holds no reflex corner. Corners wait in a queue; clipping one puts its two
neighbours back in, as only their triangles have changed. Whether a triangle holds a reflex corner is asked of a k-d
tree. A polygon of n corners takes O(n log n) time for the tree and n queries, each of O(log n) where triangles are
small, as the queue makes them (it goes round the polygon in turn), and O(√n) where they are long.

A polygon that crosses itself runs out of ears: then the flattest corner goes, by a heap.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from pliant.jit import kernel

LEAF = 8
"""Corners in a leaf of the tree, at most twice."""


@kernel
def clip_polygons(points: Any, offsets: Any, chosen: Any, normals: Any, slots: Any) -> None:
    """For each chosen polygon its triangles, as positions in `points`, into its rows of `slots`.

    points: (c, 3) corners of all polygons, which begin at `offsets`; normals: (f, 3) of the polygons. As a polygon
    has two triangles fewer than corners, polygon k has the rows of `slots` from offsets[k] - 2 k.
    """
    for polygon in chosen:
        start, end = offsets[polygon], offsets[polygon + 1]
        normal = normals[polygon]
        axis = np.argmax(np.abs(normal))
        u, v = (axis + 1) % 3, (axis + 2) % 3
        if normal[axis] < 0:
            u, v = v, u
        plane = np.empty((end - start, 2))
        plane[:, 0], plane[:, 1] = points[start:end, u], points[start:end, v]
        first = start - 2 * polygon
        slots[first : first + len(plane) - 2] = start + _clip_ears(plane)


@kernel
def _clip_ears(plane: Any) -> Any:
    """Triangles (k - 2, 3) of a counter-clockwise loop (k, 2)."""
    count = len(plane)
    before, after = np.arange(-1, count - 1), np.arange(1, count + 1)
    before[0], after[-1] = count - 1, 0
    tree = _tree(plane)
    for k in range(count):
        _mark(tree, k, _turn(plane, before[k], k, after[k]) <= 0)
    queue, waiting, left = np.arange(count), np.ones(count, np.bool_), np.ones(count, np.bool_)
    taken, queued = 0, count  # of `queue`, which is filled in a circle
    searched = count  # corners that were left when all of them were last queued
    flattest = [(0.0, 0) for _ in range(0)]
    triangles = np.empty((count - 2, 3), np.int64)
    for row in range(count - 2):
        ear = -1
        while ear < 0:
            if taken == queued:
                remaining = count - row
                if remaining > searched - 1 - remaining // 16:
                    break
                searched, taken, queued = remaining, 0, 0
                for k in range(count):
                    if left[k]:
                        queue[queued], waiting[k] = k, True
                        queued += 1
            k = queue[taken % count]
            waiting[k] = False
            taken += 1
            if left[k] and _is_ear(plane, tree, before[k], k, after[k]):
                ear = k
        if ear < 0:
            ear = _flattest_corner(plane, before, after, left, flattest)
        a, c = before[ear], after[ear]
        triangles[row, 0], triangles[row, 1], triangles[row, 2] = a, ear, c
        left[ear], after[a], before[c] = False, c, a
        _mark(tree, ear, False)
        for k in (a, c):
            area = _turn(plane, before[k], k, after[k])
            _mark(tree, k, area <= 0)
            if len(flattest):
                heapq.heappush(flattest, (abs(area), k))
            if not waiting[k]:
                queue[queued % count], waiting[k] = k, True
                queued += 1
    return triangles


@kernel
def _flattest_corner(plane: Any, before: Any, after: Any, left: Any, heap: Any) -> int:
    """The corner with the smallest triangle; `heap` (of areas, some outdated) is filled when it is empty."""
    if not len(heap):
        for k in range(len(plane)):
            if left[k]:
                heap.append((abs(_turn(plane, before[k], k, after[k])), k))
        heapq.heapify(heap)
    while len(heap):
        area, k = heapq.heappop(heap)
        if left[k] and area == abs(_turn(plane, before[k], k, after[k])):
            return k
    return int(np.argmax(left))  # areas beyond the range of doubles


@kernel
def _turn(plane: Any, a: int, b: int, c: int) -> float:
    """Twice the signed area of a triangle of corners."""
    ax, ay = plane[a]
    return (plane[b, 0] - ax) * (plane[c, 1] - ay) - (plane[b, 1] - ay) * (plane[c, 0] - ax)


@kernel
def _is_ear(plane: Any, tree: Any, a: int, b: int, c: int) -> bool:
    """Whether a corner b is convex and its triangle, the rim included, holds no marked corner.

    Where a hole is joined to the outline by a bridge, corners coincide and do not block each other.
    """
    if not _turn(plane, a, b, c) > 0:
        return False
    order, _, boxes, marked, marks, depth = tree
    low_x, high_x = min(plane[a, 0], plane[b, 0], plane[c, 0]), max(plane[a, 0], plane[b, 0], plane[c, 0])
    low_y, high_y = min(plane[a, 1], plane[b, 1], plane[c, 1]), max(plane[a, 1], plane[b, 1], plane[c, 1])
    first_leaf = 1 << depth
    stack = np.empty(depth + 2, np.int64)
    stack[0], waiting = 1, 1
    while waiting:
        waiting -= 1
        node = stack[waiting]
        box = boxes[node]
        if not marked[node] or box[0] > high_x or box[1] > high_y or box[2] < low_x or box[3] < low_y:
            continue
        if node >= first_leaf:
            for k in order[_bound(node, depth, len(order)) : _bound(node + 1, depth, len(order))]:
                if marks[k] and _inside(plane, a, b, c, k):
                    return False
        elif not (_beyond(plane, a, b, box) or _beyond(plane, b, c, box) or _beyond(plane, c, a, box)):
            stack[waiting], stack[waiting + 1] = 2 * node, 2 * node + 1
            waiting += 2
    return True


@kernel
def _inside(plane: Any, a: int, b: int, c: int, k: int) -> bool:
    """Whether a corner is in a triangle or on its rim, but at none of its corners."""
    if _same(plane, a, k) or _same(plane, b, k) or _same(plane, c, k):
        return False
    return _turn(plane, a, b, k) >= 0 and _turn(plane, b, c, k) >= 0 and _turn(plane, c, a, k) >= 0


@kernel
def _same(plane: Any, a: int, b: int) -> bool:
    return plane[a, 0] == plane[b, 0] and plane[a, 1] == plane[b, 1]


@kernel
def _beyond(plane: Any, a: int, b: int, box: Any) -> bool:
    """Whether a box is on the right of the line from a to b, or is but the point a."""
    ax, ay = plane[a]
    x, y = plane[b, 0] - ax, plane[b, 1] - ay
    if box[0] == ax and box[2] == ax and box[1] == ay and box[3] == ay:
        return True
    furthest = x * ((box[3] if x > 0 else box[1]) - ay) - y * ((box[0] if y > 0 else box[2]) - ax)
    size = abs(x) * max(abs(box[3] - ay), abs(box[1] - ay)) + abs(y) * max(abs(box[2] - ax), abs(box[0] - ax))
    return furthest < -1e-14 * size


@kernel
def _tree(plane: Any) -> Any:
    """A k-d tree over the corners: their order, position in it, boxes and marked corners of nodes, marks, depth.

    Node j has the children 2 j and 2 j + 1; the root is 1, and the nodes from 2^depth are leaves.
    """
    count = len(plane)
    depth = 0
    while count >> depth > LEAF:
        depth += 1
    order = np.arange(count)
    boxes = np.empty((2 << depth, 4))
    for level in range(depth + 1):
        for node in range(1 << level, 2 << level):
            start, end = _bound(node, level, count), _bound(node + 1, level, count)
            part = order[start:end]
            x, y = plane[part, 0], plane[part, 1]
            boxes[node, 0], boxes[node, 1], boxes[node, 2], boxes[node, 3] = x.min(), y.min(), x.max(), y.max()
            if level < depth:
                wide = boxes[node, 2] - boxes[node, 0] > boxes[node, 3] - boxes[node, 1]
                order[start:end] = part[np.argsort(x if wide else y)]
    position = np.empty(count, np.int64)
    position[order] = np.arange(count)
    return order, position, boxes, np.zeros(2 << depth, np.int64), np.zeros(count, np.bool_), depth


@kernel
def _bound(node: int, level: int, count: int) -> int:
    """Where the part of a node at that level begins in the order of corners."""
    return (count * (node - (1 << level))) >> level


@kernel
def _mark(tree: Any, k: int, on: bool) -> None:
    """Mark a corner as reflex, or take the mark away."""
    _, position, _, marked, marks, depth = tree
    if marks[k] == on:
        return
    marks[k] = on
    node = (1 << depth) + (((position[k] + 1) << depth) - 1) // len(position)
    while node:
        marked[node] += 1 if on else -1
        node >>= 1
