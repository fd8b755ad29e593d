"""Fewer vertices, same topology: edge collapses in the order of their quadric error (Garland and Heckbert 1997).

A collapse is done only if the two ends share exactly two neighbours (so the surface stays a closed manifold of the same
genus) and no triangle around turns by more than about 80°. Plain Python on plain numbers: meant for some ten thousand
vertices.
"""

from __future__ import annotations

import heapq

import numpy as np

from pliant.normals import triangle_normals, unit
from pliant.shapes import Mesh
from pliant.topology import Floats, Ints

Point = tuple[float, float, float]


def simplified(mesh: Mesh, n: int) -> Mesh:
    """A closed triangle mesh with n vertices (or the few more that topology needs)."""
    return _Collapser(mesh.points, mesh.triangles).run(n)


class _Collapser:
    """The mesh while it shrinks: points, the triangles around each vertex, quadrics and the queue of edges."""

    def __init__(self, points: Floats, triangles: Ints) -> None:
        self.points: list[Point] = [tuple(p) for p in points.tolist()]
        self.triangles: list[tuple[int, int, int]] = [tuple(t) for t in triangles.tolist()]
        self.around: list[set[int]] = [set() for _ in self.points]
        for k, triangle in enumerate(self.triangles):
            for v in triangle:
                self.around[v].add(k)
        self.quadrics = _vertex_quadrics(points, triangles).tolist()
        self.stamp = [0] * len(self.points)
        self.queue: list[tuple[float, int, int, int, int, Point]] = []
        self.alive = len(self.points)

    def run(self, n: int) -> Mesh:
        for v in range(len(self.points)):
            for w in sorted(self.neighbours(v)):
                if v < w:
                    self.push(v, w)
        while self.alive > n and self.queue:
            _, v, w, stamp_v, stamp_w, place = heapq.heappop(self.queue)
            if self.stamp[v] == stamp_v and self.stamp[w] == stamp_w:
                self.collapse(v, w, place)
        left = np.array([t for k, t in enumerate(self.triangles) if k in self.around[t[0]]], dtype=np.int64)
        kept, corners = np.unique(left, return_inverse=True)
        return Mesh(np.array(self.points)[kept], corners.reshape(-1, 3))

    def neighbours(self, v: int) -> set[int]:
        found = {w for k in self.around[v] for w in self.triangles[k]}
        found.discard(v)
        return found

    def push(self, v: int, w: int) -> None:
        """Queue an edge with its error and the place of the merged vertex."""
        if v > w:
            v, w = w, v
        quadric = [a + b for a, b in zip(self.quadrics[v], self.quadrics[w], strict=True)]
        place, cost = _best_place(quadric, self.points[v], self.points[w])
        heapq.heappush(self.queue, (cost, v, w, self.stamp[v], self.stamp[w], place))

    def flips(self, v: int, dropped: set[int], place: Point) -> bool:
        """Whether moving v to place turns a triangle around it too far, or makes a sliver of it."""
        for k in self.around[v] - dropped:
            a, b, c = self.triangles[k]
            before = _area_vector(self.points[a], self.points[b], self.points[c])
            p, q, r = (place if i == v else self.points[i] for i in (a, b, c))
            after = _area_vector(p, q, r)
            size = (_dot(before, before) * _dot(after, after)) ** 0.5
            longest = max(_squared(p, q), _squared(q, r), _squared(r, p))
            if _dot(before, after) < 0.2 * size or _dot(after, after) < (0.08 * longest) ** 2:
                return True
        return False

    def collapse(self, v: int, w: int, place: Point) -> None:
        """Merge w into v, if that is allowed."""
        shared = self.neighbours(v) & self.neighbours(w)
        dropped = self.around[v] & self.around[w]
        if len(shared) != 2 or len(dropped) != 2 or any(len(self.around[s]) < 4 for s in shared):
            return
        if self.flips(v, dropped, place) or self.flips(w, dropped, place):
            return
        for k in dropped:
            for i in self.triangles[k]:
                self.around[i].discard(k)
        for k in self.around[w]:
            a, b, c = self.triangles[k]
            self.triangles[k] = (v if a == w else a, v if b == w else b, v if c == w else c)
        self.around[v] |= self.around[w]
        self.around[w] = set()
        self.points[v] = place
        self.quadrics[v] = [a + b for a, b in zip(self.quadrics[v], self.quadrics[w], strict=True)]
        self.stamp[w] += 1
        self.stamp[v] += 1
        self.alive -= 1
        for u in sorted(self.neighbours(v)):
            self.push(v, u)


def _dot(a: Point, b: Point) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _squared(a: Point, b: Point) -> float:
    return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2


def _area_vector(a: Point, b: Point, c: Point) -> Point:
    ux, uy, uz, vx, vy, vz = b[0] - a[0], b[1] - a[1], b[2] - a[2], c[0] - a[0], c[1] - a[1], c[2] - a[2]
    return uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx


def _best_place(quadric: list[float], p: Point, q: Point) -> tuple[Point, float]:
    """Where the merged vertex has the least error, held weakly at the edge's middle, and that error.

    The quadric (xx, xy, xz, yy, yz, zz, x, y, z, 1) is taken about the origin; the system is solved by Cramer's rule.
    """
    xx, xy, xz, yy, yz, zz, x, y, z, one = quadric
    m = ((p[0] + q[0]) / 2, (p[1] + q[1]) / 2, (p[2] + q[2]) / 2)
    hold = 1e-3 * (xx + yy + zz)
    a, d, f = xx + hold, yy + hold, zz + hold
    r0 = -(x + xx * m[0] + xy * m[1] + xz * m[2])
    r1 = -(y + xy * m[0] + yy * m[1] + yz * m[2])
    r2 = -(z + xz * m[0] + yz * m[1] + zz * m[2])
    c0, c1, c2 = d * f - yz * yz, xz * yz - xy * f, xy * yz - xz * d
    det = a * c0 + xy * c1 + xz * c2
    step = (0.0, 0.0, 0.0)
    if det > 0:
        step = (
            (r0 * c0 + r1 * c1 + r2 * c2) / det,
            (r0 * c1 + r1 * (a * f - xz * xz) + r2 * (xy * xz - a * yz)) / det,
            (r0 * c2 + r1 * (xy * xz - a * yz) + r2 * (a * d - xy * xy)) / det,
        )
    span = _squared(p, q)
    if not _dot(step, step) <= span:
        step = (0.0, 0.0, 0.0)
    g = (m[0] + step[0], m[1] + step[1], m[2] + step[2])
    error = (
        g[0] * (xx * g[0] + 2 * (xy * g[1] + xz * g[2] + x))
        + g[1] * (yy * g[1] + 2 * (yz * g[2] + y))
        + g[2] * (zz * g[2] + 2 * z)
        + one
    )
    return g, error + hold * span / 4


def _vertex_quadrics(points: Floats, triangles: Ints) -> Floats:
    """(n, 10) sums of area-weighted squared distances to the planes around each vertex."""
    area = triangle_normals(points, triangles)
    normal = unit(area)
    plane = np.concatenate([normal, -np.einsum("ij,ij->i", normal, points[triangles[:, 0]])[:, None]], axis=1)
    pairs = np.array([(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2), (0, 3), (1, 3), (2, 3), (3, 3)])
    each = plane[:, pairs[:, 0]] * plane[:, pairs[:, 1]] * (np.linalg.norm(area, axis=1) / 2)[:, None]
    result = np.zeros((len(points), 10))
    for k in range(3):
        np.add.at(result, triangles[:, k], each)
    return result
