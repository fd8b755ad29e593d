"""Fewer vertices, same topology: edge collapses in the order of their quadric error (Garland and Heckbert 1997).

A collapse is done only if the two ends share exactly two neighbours (so the surface stays a closed manifold of the same
genus) and no triangle around turns by more than about 80°. Plain Python: meant for a few thousand vertices.
"""

from __future__ import annotations

import heapq

import numpy as np

from pliant.normals import triangle_normals, unit
from pliant.shapes import Mesh
from pliant.topology import Floats, Ints


def simplified(mesh: Mesh, n: int) -> Mesh:
    """A closed triangle mesh with n vertices (or the few more that topology needs)."""
    return _Collapser(mesh.points, mesh.triangles).run(n)


class _Collapser:
    """The mesh while it shrinks: points, the triangles around each vertex, quadrics and the queue of edges."""

    def __init__(self, points: Floats, triangles: Ints) -> None:
        self.points = points.copy()
        self.triangles = [tuple(t) for t in triangles.tolist()]
        self.around: list[set[int]] = [set() for _ in points]
        for k, triangle in enumerate(self.triangles):
            for v in triangle:
                self.around[v].add(k)
        self.quadrics = _vertex_quadrics(points, triangles)
        self.stamp = [0] * len(points)
        self.queue: list[tuple[float, int, int, int, int]] = []
        self.alive = len(points)

    def run(self, n: int) -> Mesh:
        for v in range(len(self.points)):
            for w in self.neighbours(v):
                if v < w:
                    self.push(v, w)
        while self.alive > n and self.queue:
            _, v, w, stamp_v, stamp_w = heapq.heappop(self.queue)
            if self.stamp[v] == stamp_v and self.stamp[w] == stamp_w:
                self.collapse(v, w)
        left = np.array([t for k, t in enumerate(self.triangles) if k in self.around[t[0]]], dtype=np.int64)
        kept, corners = np.unique(left, return_inverse=True)
        return Mesh(self.points[kept], corners.reshape(-1, 3))

    def neighbours(self, v: int) -> set[int]:
        return {w for k in self.around[v] for w in self.triangles[k]} - {v}

    def best_place(self, v: int, w: int) -> tuple[Floats, float]:
        """Where the merged vertex has the least error: the quadric's minimum if it is near the edge."""
        Q = self.quadrics[v] + self.quadrics[w]
        middle = (self.points[v] + self.points[w]) / 2
        half = self.points[v] - middle
        size = float(half @ half)
        A = Q[:3, :3]
        weight = 1e-3 * float(np.trace(A))
        place = np.linalg.solve(A + weight * np.eye(3), weight * middle - Q[:3, 3])
        if float((place - middle) @ (place - middle)) > 4 * size:
            place = middle
        error = float(place @ A @ place + 2 * Q[:3, 3] @ place + Q[3, 3])
        return place, error + 1e-3 * float(np.trace(A)) * size

    def push(self, v: int, w: int) -> None:
        if v > w:
            v, w = w, v
        cost = self.best_place(v, w)[1]
        heapq.heappush(self.queue, (cost, v, w, self.stamp[v], self.stamp[w]))

    def flips(self, v: int, dropped: set[int], place: Floats) -> bool:
        """Whether moving v to place turns a triangle around it too far."""
        for k in self.around[v] - dropped:
            a, b, c = (self.points[i] for i in self.triangles[k])
            p, q, r = (place if i == v else self.points[i] for i in self.triangles[k])
            before, after = np.cross(b - a, c - a), np.cross(q - p, r - p)
            size = float(np.sqrt((before @ before) * (after @ after)))
            longest = max(float((q - p) @ (q - p)), float((r - q) @ (r - q)), float((p - r) @ (p - r)))
            if float(before @ after) < 0.2 * size or float(np.sqrt(after @ after)) < 0.08 * longest:
                return True
        return False

    def collapse(self, v: int, w: int) -> None:
        """Merge w into v, if that is allowed."""
        shared = self.neighbours(v) & self.neighbours(w)
        dropped = self.around[v] & self.around[w]
        if len(shared) != 2 or len(dropped) != 2 or any(len(self.around[s]) < 4 for s in shared):
            return
        place = self.best_place(v, w)[0]
        if self.flips(v, dropped, place) or self.flips(w, dropped, place):
            return
        for k in dropped:
            for i in self.triangles[k]:
                self.around[i].discard(k)
        for k in self.around[w]:
            self.triangles[k] = tuple(v if i == w else i for i in self.triangles[k])
        self.around[v] |= self.around[w]
        self.around[w] = set()
        self.points[v] = place
        self.quadrics[v] = self.quadrics[v] + self.quadrics[w]
        self.stamp[w] += 1
        self.stamp[v] += 1
        self.alive -= 1
        for u in sorted(self.neighbours(v)):
            self.push(v, u)


def _vertex_quadrics(points: Floats, triangles: Ints) -> Floats:
    """(n, 4, 4) sums of area-weighted squared distances to the planes around each vertex."""
    area = triangle_normals(points, triangles)
    normal = unit(area)
    plane = np.concatenate([normal, -np.einsum("ij,ij->i", normal, points[triangles[:, 0]])[:, None]], axis=1)
    each = plane[:, :, None] * plane[:, None, :] * (np.linalg.norm(area, axis=1) / 2)[:, None, None]
    result = np.zeros((len(points), 4, 4))
    for k in range(3):
        np.add.at(result, triangles[:, k], each)
    return result
