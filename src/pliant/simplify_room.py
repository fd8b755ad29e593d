"""Room for a surface that shrinks: how far its triangles keep from something, and whether they cross each other.

The first is a distance sampled on a grid. The second looks for triangles in buckets: lists of those whose boxes meet a
cell of a coarse grid, made anew when the surface has half as many triangles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.jit import kernel
from pliant.spatial.crossing import triangles_cross
from pliant.spatial.vectors import Vector, cross, dot, minus, norm
from pliant.topology import Floats, Ints

MOST_CELLS = 128
"""Of the grid that finds triangles, along an axis."""
ENTRIES = 40
"""Of that grid's lists, for each triangle."""
FINE = 4000
"""Triangles above which a surface is fine enough for quick answers; what they miss is found when it is checked."""


class Space(NamedTuple):
    """Where a surface may go: a distance sampled on a grid; empty for anywhere."""

    distance: NDArray[np.float32]
    """(nx, ny, nz) to what the surface has to keep clear of; negative inside of it."""
    origin: Floats
    """(3,) the first sample's place."""
    cell: float
    least: float
    """How far away every place of the surface has to be."""
    pushes: Floats
    """How far along the normal a merged vertex is moved if there is no room where it would be best, in order."""
    size: float
    """Diagonal of everything."""


class Net(NamedTuple):
    """A triangle surface while it shrinks."""

    points: Floats
    triangles: Ints
    alive: NDArray[np.bool_]
    first: Ints
    following: Ints
    quadrics: Floats


class Buckets(NamedTuple):
    """Which triangles may be where: lists of triangles for the cells of a grid over everything."""

    heads: NDArray[np.int32]
    """(nx, ny, nz) the first entry of a cell's list, or -1."""
    triangle: NDArray[np.int32]
    """(entries,)"""
    following: NDArray[np.int32]
    """(entries,) the next entry, or -1."""
    used: Ints
    """(1,) how many entries there are."""
    boxes: Floats
    """(m, 6) the triangles' own boxes as they are now; entries of a box that has moved stay, and do no harm."""
    seen: Ints
    """(m + 1,) the question in which a triangle was met last; the last one counts the questions."""
    normals: Floats
    """(m, 3) the triangles' unit normals as they are now."""
    quick: bool
    """Whether triangles that face one way are taken not to cross: of a fine closed surface, one that faces the other
    way lies between them."""
    origin: Floats
    width: float


@kernel
def place_of(points: Floats, v: int) -> Vector:
    """A point as three numbers."""
    return points[v, 0], points[v, 1], points[v, 2]


@kernel
def moved(net: Net, t: int, v: int, w: int, place: Vector) -> tuple[Vector, Vector, Vector]:
    """Corners of a triangle with v and w at a new place."""
    a, b, c = net.triangles[t, 0], net.triangles[t, 1], net.triangles[t, 2]
    p = place if a in (v, w) else place_of(net.points, a)
    q = place if b in (v, w) else place_of(net.points, b)
    r = place if c in (v, w) else place_of(net.points, c)
    return p, q, r


@kernel
def sampled(space: Space, x: float, y: float, z: float) -> float:
    """The distance at a place, linear between samples; beyond the grid as at its border."""
    u = (x - space.origin[0]) / space.cell
    v = (y - space.origin[1]) / space.cell
    w = (z - space.origin[2]) / space.cell
    grid = space.distance
    i = int(min(max(u, 0.0), grid.shape[0] - 1.001))
    j = int(min(max(v, 0.0), grid.shape[1] - 1.001))
    k = int(min(max(w, 0.0), grid.shape[2] - 1.001))
    u, v, w = min(max(u - i, 0.0), 1.0), min(max(v - j, 0.0), 1.0), min(max(w - k, 0.0), 1.0)
    near = (1 - v) * ((1 - w) * grid[i, j, k] + w * grid[i, j, k + 1])
    near += v * ((1 - w) * grid[i, j + 1, k] + w * grid[i, j + 1, k + 1])
    far = (1 - v) * ((1 - w) * grid[i + 1, j, k] + w * grid[i + 1, j, k + 1])
    far += v * ((1 - w) * grid[i + 1, j + 1, k] + w * grid[i + 1, j + 1, k + 1])
    return float((1 - u) * near + u * far)


@kernel
def _room(space: Space, a: Vector, b: Vector, c: Vector) -> int:
    """Whether a triangle keeps its distance: 1 if all of it does, 0 if its middle does not, -1 if it has to be cut."""
    m = (a[0] + b[0] + c[0]) / 3, (a[1] + b[1] + c[1]) / 3, (a[2] + b[2] + c[2]) / 3
    reach = max(norm(minus(a, m)), norm(minus(b, m)), norm(minus(c, m)))
    spare = sampled(space, m[0], m[1], m[2]) - space.least
    if spare < 0:
        return 0
    return 1 if spare >= reach or reach < 0.5 * space.cell else -1


@kernel
def _middle(a: Vector, b: Vector) -> Vector:
    return (a[0] + b[0]) / 2, (a[1] + b[1]) / 2, (a[2] + b[2]) / 2


@kernel
def clears(space: Space, corners: tuple[Vector, Vector, Vector]) -> bool:
    """Whether a whole triangle keeps its distance: it is cut in four until the distance at its middle decides."""
    verdict = _room(space, corners[0], corners[1], corners[2])
    if verdict >= 0:
        return verdict == 1
    waiting = [corners]
    while len(waiting):
        a, b, c = waiting.pop()
        verdict = _room(space, a, b, c)
        if verdict == 0:
            return False
        if verdict < 0:
            ab, bc, ca = _middle(a, b), _middle(b, c), _middle(c, a)
            waiting.append((a, ab, ca))
            waiting.append((ab, b, bc))
            waiting.append((ca, bc, c))
            waiting.append((ab, bc, ca))
    return True


@kernel
def fit_box(corners: tuple[Vector, Vector, Vector], low: Floats, high: Floats) -> None:
    """The box around a triangle."""
    for axis in range(3):
        low[axis] = min(corners[0][axis], corners[1][axis], corners[2][axis])
        high[axis] = max(corners[0][axis], corners[1][axis], corners[2][axis])


@kernel
def _cells(buckets: Buckets, low: Floats, high: Floats, out: Ints) -> None:
    """First and last cell along each axis, as (6,)."""
    for axis in range(3):
        last = buckets.heads.shape[axis] - 1
        out[axis] = min(max(int(np.floor((low[axis] - buckets.origin[axis]) / buckets.width)), 0), last)
        out[3 + axis] = min(max(int(np.floor((high[axis] - buckets.origin[axis]) / buckets.width)), 0), last)


@kernel
def enter(buckets: Buckets, t: int) -> bool:
    """Put a triangle into the lists of the cells that its box meets; False if there is no more room."""
    cells = np.empty(6, dtype=np.int64)
    _cells(buckets, buckets.boxes[t, :3], buckets.boxes[t, 3:], cells)
    count = (cells[3] - cells[0] + 1) * (cells[4] - cells[1] + 1) * (cells[5] - cells[2] + 1)
    if buckets.used[0] + count > len(buckets.triangle):
        return False
    for i in range(cells[0], cells[3] + 1):
        for j in range(cells[1], cells[4] + 1):
            for k in range(cells[2], cells[5] + 1):
                entry = buckets.used[0]
                buckets.triangle[entry] = t
                buckets.following[entry] = buckets.heads[i, j, k]
                buckets.heads[i, j, k] = entry
                buckets.used[0] += 1
    return True


@kernel
def bucketed(net: Net) -> Buckets:
    """The living triangles in buckets of about twice their mean size."""
    m = len(net.triangles)
    boxes, normals, size, living = np.empty((m, 6)), np.empty((m, 3)), 0.0, 0
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for t in range(m):
        corners = moved(net, t, -1, -1, (0.0, 0.0, 0.0))
        fit_box(corners, boxes[t, :3], boxes[t, 3:])
        normals[t, 0], normals[t, 1], normals[t, 2] = facing(corners)
        if net.alive[t]:
            living += 1
            for axis in range(3):
                low[axis], high[axis] = min(low[axis], boxes[t, axis]), max(high[axis], boxes[t, 3 + axis])
                size += (boxes[t, 3 + axis] - boxes[t, axis]) / 3
    width = max(2 * size / max(living, 1), (high - low).max() / MOST_CELLS, 1e-300)
    shape = ((high - low) / width).astype(np.int64) + 1
    heads = np.full((shape[0], shape[1], shape[2]), -1, dtype=np.int32)
    entries = ENTRIES * living + 1000
    buckets = Buckets(
        heads,
        np.empty(entries, dtype=np.int32),
        np.empty(entries, dtype=np.int32),
        np.zeros(1, dtype=np.int64),
        boxes,
        np.zeros(m + 1, dtype=np.int64),
        normals,
        living > FINE,
        low,
        width,
    )
    for t in range(m):
        if net.alive[t]:
            enter(buckets, t)
    return buckets


@kernel
def _meets(corners: tuple[Vector, Vector, Vector], box: Floats) -> bool:
    """Whether a triangle's box and another meet."""
    for axis in range(3):
        if (
            min(corners[0][axis], corners[1][axis], corners[2][axis]) > box[3 + axis]
            or max(corners[0][axis], corners[1][axis], corners[2][axis]) < box[axis]
        ):
            return False
    return True


@kernel
def facing(corners: tuple[Vector, Vector, Vector]) -> Vector:
    """Unit normal of a triangle; zero if it has no area."""
    n = cross(minus(corners[1], corners[0]), minus(corners[2], corners[0]))
    length = max(norm(n), 1e-300)
    return n[0] / length, n[1] / length, n[2] / length


@kernel
def _along(a: Vector, b: Floats) -> bool:
    """Whether unit vectors are within 60° of each other."""
    return bool(a[0] * b[0] + a[1] * b[1] + a[2] * b[2] > 0.5)


@kernel
def _spread(net: Net, ring: Ints, v: int, w: int, place: Vector, n: Vector, low: Floats, high: Floats) -> bool:
    """The box around the ring, with v and w moved; and whether all of it faces within 60° of n."""
    level = True
    for k in range(len(ring)):
        a = moved(net, ring[k], v, w, place)
        level = level and dot(facing(a), n) > 0.5
        for corner in a:
            for axis in range(3):
                low[axis], high[axis] = min(low[axis], corner[axis]), max(high[axis], corner[axis])
    return level


@kernel
def _tangled(net: Net, ring: Ints, v: int, w: int, place: Vector, eps: float) -> bool:
    """Whether triangles of the ring, with v and w moved, cross each other."""
    for k in range(len(ring)):
        a = moved(net, ring[k], v, w, place)
        for l in range(k):
            if triangles_cross(a, moved(net, ring[l], v, w, place), eps, True):
                return True
    return False


@kernel
def _hits(net: Net, box: Floats, t: int, ring: Ints, v: int, w: int, place: Vector, eps: float) -> bool:
    """Whether one triangle that stays crosses one of the ring."""
    b = moved(net, t, -1, -1, place)
    for k in range(len(ring)):
        a = moved(net, ring[k], v, w, place)
        if _meets(a, box) and triangles_cross(a, b, eps, True):
            return True
    return False


@kernel
def crosses(
    net: Net, buckets: Buckets, ring: Ints, gone: Ints, v: int, w: int, place: Vector, n: Vector, eps: float
) -> bool:
    """Whether the ring's triangles, with v and w moved, cross each other or any triangle that stays.

    gone: the ring and the triangles that disappear. n: the ring's mean normal.
    """
    low, high, cells = np.full(3, np.inf), np.full(3, -np.inf), np.empty(6, dtype=np.int64)
    level = _spread(net, ring, v, w, place, n, low, high) and buckets.quick
    if not level and _tangled(net, ring, v, w, place, eps):
        return True
    buckets.seen[-1] += 1
    buckets.seen[gone] = buckets.seen[-1]
    _cells(buckets, low, high, cells)
    for i in range(cells[0], cells[3] + 1):
        for j in range(cells[1], cells[4] + 1):
            for k in range(cells[2], cells[5] + 1):
                entry = buckets.heads[i, j, k]
                while entry >= 0:
                    t = buckets.triangle[entry]
                    entry = buckets.following[entry]
                    if not net.alive[t] or buckets.seen[t] == buckets.seen[-1]:
                        continue
                    buckets.seen[t] = buckets.seen[-1]
                    harmless = level and _along(n, buckets.normals[t])
                    if not harmless and _hits(net, buckets.boxes[t], t, ring, v, w, place, eps):
                        return True
    return False
