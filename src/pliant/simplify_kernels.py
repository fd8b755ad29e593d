"""Edge collapses on plain arrays; see `pliant.simplify`.

The triangles around a vertex are a linked list of corners: corner ``3 t + k`` is vertex k of triangle t, ``first[v]``
starts the list of v and ``following`` goes on, to -1.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.jit import kernel
from pliant.spatial.crossing import triangles_cross
from pliant.spatial.vectors import Vector, cross, dot, minus, norm
from pliant.topology import Floats, Ints

MOST_AROUND = 128
"""Triangles around a vertex, at most, for it to be moved."""
TURNING = 0.2
"""Cosine of the turn, about 80°, that a triangle may make at most in one collapse."""
SLIVER = 0.08
"""Height over longest edge, about, that a moved triangle has at least."""
MOST_CELLS = 128
"""Of the grid that finds triangles, along an axis."""
ENTRIES = 40
"""Of that grid's lists, for each triangle."""
FINE = 4000
"""Triangles above which a surface is fine enough for quick answers; what they miss is found when it is checked."""
TOUCH = 1e-11
"""Depth, over the diagonal, from which on triangles cross."""


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
def _cells(buckets: Buckets, low: Floats, high: Floats, out: Ints) -> None:
    """First and last cell along each axis, as (6,)."""
    for axis in range(3):
        last = buckets.heads.shape[axis] - 1
        out[axis] = min(max(int(np.floor((low[axis] - buckets.origin[axis]) / buckets.width)), 0), last)
        out[3 + axis] = min(max(int(np.floor((high[axis] - buckets.origin[axis]) / buckets.width)), 0), last)


@kernel
def _enter(buckets: Buckets, t: int) -> bool:
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
def linked_corners(triangles: Ints, count: int) -> tuple[Ints, Ints]:
    """The lists of corners around each vertex."""
    first = np.full(count, -1, dtype=np.int64)
    following = np.full(3 * len(triangles), -1, dtype=np.int64)
    for t in range(len(triangles) - 1, -1, -1):
        for k in range(3):
            following[3 * t + k] = first[triangles[t, k]]
            first[triangles[t, k]] = 3 * t + k
    return first, following


@kernel
def _place(points: Floats, v: int) -> Vector:
    return points[v, 0], points[v, 1], points[v, 2]


@kernel
def _around(net: Net, v: int, out: Ints) -> int:
    """The triangles around a vertex; -1 if there are too many."""
    count, corner = 0, net.first[v]
    while corner >= 0:
        if net.alive[corner // 3]:
            if count == len(out):
                return -1
            out[count] = corner // 3
            count += 1
        corner = net.following[corner]
    return count


@kernel
def _neighbours(net: Net, v: int, around: Ints, count: int, out: Ints) -> int:
    """The vertices that share an edge with v."""
    found = 0
    for k in range(count):
        for i in range(3):
            w = net.triangles[around[k], i]
            known = w == v
            for other in out[:found]:
                known = known or other == w
            if not known:
                if found == len(out):
                    return -1
                out[found] = w
                found += 1
    return found


@kernel
def best_place(quadric: Floats, p: Vector, q: Vector) -> tuple[Vector, float]:
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
    sx, sy, sz = 0.0, 0.0, 0.0
    if det > 0:
        sx = (r0 * c0 + r1 * c1 + r2 * c2) / det
        sy = (r0 * c1 + r1 * (a * f - xz * xz) + r2 * (xy * xz - a * yz)) / det
        sz = (r0 * c2 + r1 * (xy * xz - a * yz) + r2 * (a * d - xy * xy)) / det
    edge = minus(p, q)
    span = dot(edge, edge)
    if not sx * sx + sy * sy + sz * sz <= span:
        sx, sy, sz = 0.0, 0.0, 0.0
    g = (m[0] + sx, m[1] + sy, m[2] + sz)
    error = (
        g[0] * (xx * g[0] + 2 * (xy * g[1] + xz * g[2] + x))
        + g[1] * (yy * g[1] + 2 * (yz * g[2] + y))
        + g[2] * (zz * g[2] + 2 * z)
        + one
    )
    return g, error + hold * span / 4


@kernel
def _cost(net: Net, v: int, w: int) -> float:
    return best_place(net.quadrics[v] + net.quadrics[w], _place(net.points, v), _place(net.points, w))[1]


@kernel
def _moved(net: Net, t: int, v: int, w: int, place: Vector) -> tuple[Vector, Vector, Vector]:
    """Corners of a triangle with v and w at a new place."""
    a, b, c = net.triangles[t, 0], net.triangles[t, 1], net.triangles[t, 2]
    p = place if a in (v, w) else _place(net.points, a)
    q = place if b in (v, w) else _place(net.points, b)
    r = place if c in (v, w) else _place(net.points, c)
    return p, q, r


@kernel
def _folds(net: Net, ring: Ints, v: int, w: int, place: Vector) -> bool:
    """Whether moving v and w to a place turns a triangle of the ring too far, or makes a sliver of it."""
    for t in ring:
        a, b, c = _moved(net, t, -1, -1, place)
        before = cross(minus(b, a), minus(c, a))
        p, q, r = _moved(net, t, v, w, place)
        after = cross(minus(q, p), minus(r, p))
        longest = max(norm(minus(q, p)), norm(minus(r, q)), norm(minus(p, r))) ** 2
        if dot(before, after) < TURNING * norm(before) * norm(after) or norm(after) < SLIVER * longest:
            return True
    return False


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
def _box(corners: tuple[Vector, Vector, Vector], low: Floats, high: Floats) -> None:
    for axis in range(3):
        low[axis] = min(corners[0][axis], corners[1][axis], corners[2][axis])
        high[axis] = max(corners[0][axis], corners[1][axis], corners[2][axis])


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
def _unit_normal(corners: tuple[Vector, Vector, Vector]) -> Vector:
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
        a = _moved(net, ring[k], v, w, place)
        level = level and dot(_unit_normal(a), n) > 0.5
        for corner in a:
            for axis in range(3):
                low[axis], high[axis] = min(low[axis], corner[axis]), max(high[axis], corner[axis])
    return level


@kernel
def _tangled(net: Net, ring: Ints, v: int, w: int, place: Vector, eps: float) -> bool:
    """Whether triangles of the ring, with v and w moved, cross each other."""
    for k in range(len(ring)):
        a = _moved(net, ring[k], v, w, place)
        for l in range(k):
            if triangles_cross(a, _moved(net, ring[l], v, w, place), eps, True):
                return True
    return False


@kernel
def _crosses(
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


@kernel
def _hits(net: Net, box: Floats, t: int, ring: Ints, v: int, w: int, place: Vector, eps: float) -> bool:
    """Whether one triangle that stays crosses one of the ring."""
    b = _moved(net, t, -1, -1, place)
    for k in range(len(ring)):
        a = _moved(net, ring[k], v, w, place)
        if _meets(a, box) and triangles_cross(a, b, eps, True):
            return True
    return False


@kernel
def _outward(net: Net, ring: Ints) -> Vector:
    """Mean normal of the ring, of unit length."""
    x, y, z = 0.0, 0.0, 0.0
    for t in ring:
        a, b, c = _moved(net, t, -1, -1, (0.0, 0.0, 0.0))
        n = cross(minus(b, a), minus(c, a))
        x, y, z = x + n[0], y + n[1], z + n[2]
    length = max(norm((x, y, z)), 1e-300)
    return x / length, y / length, z / length


@kernel
def _found_place(
    net: Net, space: Space, buckets: Buckets, ring: Ints, gone: Ints, v: int, w: int
) -> tuple[bool, Vector]:
    """Where v and w can be merged, if anywhere: at the best place, or pushed outwards from it."""
    best, _ = best_place(net.quadrics[v] + net.quadrics[w], _place(net.points, v), _place(net.points, w))
    if not space.distance.size:
        return not _folds(net, ring, v, w, best), best
    n = _outward(net, ring)
    for push in space.pushes:
        place = (best[0] + push * n[0], best[1] + push * n[1], best[2] + push * n[2])
        if _folds(net, ring, v, w, place):
            continue
        room = True
        for t in ring:
            room = room and clears(space, _moved(net, t, v, w, place))
        if room and not _crosses(net, buckets, ring, gone, v, w, place, n, TOUCH * space.size):
            return True, place
    return False, best


@kernel
def _shared(a: Ints, b: Ints, out: Ints) -> int:
    count = 0
    for x in a:
        for y in b:
            if x == y:
                if count == len(out):
                    return -1
                out[count] = x
                count += 1
    return count


@kernel
def _merge(net: Net, buckets: Buckets, v: int, w: int, place: Vector, ring: Ints, dropped: Ints) -> bool:
    """Put w into v, at a place; False if the buckets are full."""
    for t in dropped:
        net.alive[t] = False
    corner, last = net.first[w], -1
    while corner >= 0:
        net.triangles[corner // 3, corner % 3] = v
        last, corner = corner, net.following[corner]
    net.following[last] = net.first[v]
    net.first[v], net.first[w] = net.first[w], -1
    net.points[v, 0], net.points[v, 1], net.points[v, 2] = place
    net.quadrics[v] += net.quadrics[w]
    entered = True
    for t in ring:
        corners = _moved(net, t, -1, -1, place)
        _box(corners, buckets.boxes[t, :3], buckets.boxes[t, 3:])
        buckets.normals[t, 0], buckets.normals[t, 1], buckets.normals[t, 2] = _unit_normal(corners)
        entered = entered and _enter(buckets, t)
    return entered


@kernel
def _collapsed(net: Net, space: Space, buckets: Buckets, v: int, w: int) -> tuple[bool, bool]:
    """Merge w into v, if the surface stays a closed manifold of the same kind and there is room.

    Whether that was done, and whether the buckets hold all triangles.
    """
    around = np.empty(2 * MOST_AROUND, dtype=np.int64)
    near_v, near_w = np.empty(MOST_AROUND, dtype=np.int64), np.empty(MOST_AROUND, dtype=np.int64)
    both, dropped = np.empty(3, dtype=np.int64), np.empty(3, dtype=np.int64)
    count_v = _around(net, v, around[:MOST_AROUND])
    count_w = _around(net, w, around[MOST_AROUND:])
    if count_v < 0 or count_w < 0:
        return False, True
    around_v, around_w = around[:count_v].copy(), around[MOST_AROUND : MOST_AROUND + count_w].copy()
    found_v = _neighbours(net, v, around_v, count_v, near_v)
    found_w = _neighbours(net, w, around_w, count_w, near_w)
    if found_v < 0 or found_w < 0 or _shared(near_v[:found_v], near_w[:found_w], both) != 2:
        return False, True
    if _shared(around_v, around_w, dropped) != 2:
        return False, True
    for s in both[:2]:
        if _around(net, s, near_v) < 4 and _around(net, s, near_v) >= 0:
            return False, True
    gone = np.concatenate((around_v, around_w))
    ring = gone[(gone != dropped[0]) & (gone != dropped[1])]
    found, place = _found_place(net, space, buckets, ring, gone, v, w)
    if not found:
        return False, True
    return True, _merge(net, buckets, v, w, place, ring, dropped[:2])


@kernel
def _bucketed(net: Net) -> Buckets:
    """The living triangles in buckets of about twice their mean size."""
    m = len(net.triangles)
    boxes, normals, size, living = np.empty((m, 6)), np.empty((m, 3)), 0.0, 0
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for t in range(m):
        corners = _moved(net, t, -1, -1, (0.0, 0.0, 0.0))
        _box(corners, boxes[t, :3], boxes[t, 3:])
        normals[t, 0], normals[t, 1], normals[t, 2] = _unit_normal(corners)
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
            _enter(buckets, t)
    return buckets


@kernel
def collapse(net: Net, space: Space, most: int) -> int:
    """Collapse edges, the cheapest first, until at most so many triangles are left, or no more can go; how many left.

    An edge that could not be collapsed is tried again after the others, as long as that helps.
    """
    left, before = len(net.triangles), -1
    buckets, filled = _bucketed(net), left
    stamp = np.zeros(len(net.points), dtype=np.int64)
    near, around = np.empty(MOST_AROUND, dtype=np.int64), np.empty(MOST_AROUND, dtype=np.int64)
    while left > most and left != before:
        before = left
        queue = [(0.0, 0, 0, -1, -1)]
        for t in range(len(net.triangles)):
            for k in range(3):
                v, w = net.triangles[t, k], net.triangles[t, (k + 1) % 3]
                if net.alive[t] and v < w:
                    queue.append((_cost(net, v, w), v, w, stamp[v], stamp[w]))
        heapq.heapify(queue)
        while left > most and len(queue):
            _, v, w, stamp_v, stamp_w = heapq.heappop(queue)
            if stamp[v] != stamp_v or stamp[w] != stamp_w:
                continue
            done, entered = _collapsed(net, space, buckets, v, w)
            if not done:
                continue
            left -= 2
            if not entered or 2 * left < filled:
                buckets, filled = _bucketed(net), left
            stamp[v] += 1
            stamp[w] += 1
            count = _around(net, v, around)
            for u in near[: _neighbours(net, v, around, max(count, 0), near)]:
                a, b = min(u, v), max(u, v)
                heapq.heappush(queue, (_cost(net, a, b), a, b, stamp[a], stamp[b]))
    return left
