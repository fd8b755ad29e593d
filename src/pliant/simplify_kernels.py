"""Edge collapses on plain arrays; see `pliant.simplify`.

The triangles around a vertex are a linked list of corners: corner ``3 t + k`` is vertex k of triangle t, ``first[v]``
starts the list of v and ``following`` goes on, to -1.
"""

from __future__ import annotations

import heapq

import numpy as np

from pliant.jit import kernel
from pliant.simplify_room import Buckets, Net, Space, bucketed, clears, crosses, enter, facing, fit_box, moved, place_of
from pliant.spatial.vectors import Vector, cross, dot, minus, norm
from pliant.topology import Floats, Ints

MOST_AROUND = 128
"""Triangles around a vertex, at most, for it to be moved."""
TURNING = 0.2
"""Cosine of the turn, about 80°, that a triangle may make at most in one collapse."""
SLIVER = 0.08
"""Height over longest edge, about, that a moved triangle has at least."""
TOUCH = 1e-11
"""Depth, over the diagonal, from which on triangles cross."""


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
    return best_place(net.quadrics[v] + net.quadrics[w], place_of(net.points, v), place_of(net.points, w))[1]


@kernel
def _folds(net: Net, ring: Ints, v: int, w: int, place: Vector) -> bool:
    """Whether moving v and w to a place turns a triangle of the ring too far, or makes a sliver of it."""
    for t in ring:
        a, b, c = moved(net, t, -1, -1, place)
        before = cross(minus(b, a), minus(c, a))
        p, q, r = moved(net, t, v, w, place)
        after = cross(minus(q, p), minus(r, p))
        longest = max(norm(minus(q, p)), norm(minus(r, q)), norm(minus(p, r))) ** 2
        if dot(before, after) < TURNING * norm(before) * norm(after) or norm(after) < SLIVER * longest:
            return True
    return False


@kernel
def _outward(net: Net, ring: Ints) -> Vector:
    """Mean normal of the ring, of unit length."""
    x, y, z = 0.0, 0.0, 0.0
    for t in ring:
        a, b, c = moved(net, t, -1, -1, (0.0, 0.0, 0.0))
        n = cross(minus(b, a), minus(c, a))
        x, y, z = x + n[0], y + n[1], z + n[2]
    length = max(norm((x, y, z)), 1e-300)
    return x / length, y / length, z / length


@kernel
def _found_place(
    net: Net, space: Space, buckets: Buckets, ring: Ints, gone: Ints, v: int, w: int
) -> tuple[bool, Vector]:
    """Where v and w can be merged, if anywhere: at the best place, or pushed outwards from it."""
    best, _ = best_place(net.quadrics[v] + net.quadrics[w], place_of(net.points, v), place_of(net.points, w))
    if not space.distance.size:
        return not _folds(net, ring, v, w, best), best
    n = _outward(net, ring)
    for push in space.pushes:
        place = (best[0] + push * n[0], best[1] + push * n[1], best[2] + push * n[2])
        if _folds(net, ring, v, w, place):
            continue
        room = True
        for t in ring:
            room = room and clears(space, moved(net, t, v, w, place))
        if room and not crosses(net, buckets, ring, gone, v, w, place, n, TOUCH * space.size):
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
        corners = moved(net, t, -1, -1, place)
        fit_box(corners, buckets.boxes[t, :3], buckets.boxes[t, 3:])
        buckets.normals[t, 0], buckets.normals[t, 1], buckets.normals[t, 2] = facing(corners)
        entered = entered and enter(buckets, t)
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
def collapse(net: Net, space: Space, most: int) -> int:
    """Collapse edges, the cheapest first, until at most so many triangles are left, or no more can go; how many left.

    An edge that could not be collapsed is tried again after the others, as long as that helps.
    """
    left, before = len(net.triangles), -1
    buckets, filled = bucketed(net), left
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
                buckets, filled = bucketed(net), left
            stamp[v] += 1
            stamp[w] += 1
            count = _around(net, v, around)
            for u in near[: _neighbours(net, v, around, max(count, 0), near)]:
                a, b = min(u, v), max(u, v)
                heapq.heappush(queue, (_cost(net, a, b), a, b, stamp[a], stamp[b]))
    return left
