"""Compiled evaluation of a body's implicit field; see `pliant.gallery.implicit` for what the numbers mean.

Every part is a round cone in a stretched frame, ``(u, v, w) = S (x - c)``: a sphere of radius r0 at the origin and one
of radius r1 at (0, h, 0) with their common hull. With f the cone's exact distance there, ``d = f / |Sᵀ ∇f|`` is the
distance in the world to first order (and an ellipsoid's usual distance when h = 0).

A part with a slab thickness t > 0 is the plane figure of the same cone, drawn in u and v, thickened to ``|w| < t`` with
edges rounded by 0.7 t.

Parts of one group are joined by the smooth minimum ``min(a, b) - max(k - |a - b|, 0)² / 4k``; carved parts are taken
away by its mirror image. Then each group is joined to its parent alone, so that two fingers blend into the palm but
not into each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.jit import kernel, parallel_kernel, prange
from pliant.topology import Floats, Ints

FAR = 1e9
BLOCK, SMALL = 16, 4


@kernel
def part_distance(part: Floats, x: float, y: float, z: float) -> tuple[float, float, float, float]:
    """Distance to one part, and its gradient (not of unit length where the part is stretched)."""
    dx, dy, dz = x - part[9], y - part[10], z - part[11]
    u = part[0] * dx + part[1] * dy + part[2] * dz
    v = part[3] * dx + part[4] * dy + part[5] * dz
    w = part[6] * dx + part[7] * dy + part[8] * dz
    length, r0, r1 = part[12], part[13], part[14]
    thick = part[18]
    q = abs(u) if thick > 0 else np.sqrt(u * u + w * w)
    slope = (r0 - r1) / length if length > 0 else 0.0
    rise = np.sqrt(max(1.0 - slope * slope, 0.0))
    along = rise * v - slope * q
    if length > 0 and 0 <= along <= rise * length:
        f, gq, gv = rise * q + slope * v - r0, rise, slope
    else:
        if along > 0 and length > 0:
            v, r0 = v - length, r1
        size = np.sqrt(q * q + v * v) + 1e-12
        f, gq, gv = size - r0, q / size, v / size
    gu, gw = (gq * u / q, gq * w / q) if q > 1e-12 else (gq, 0.0)
    if thick > 0:
        rim = 0.7 * thick
        a, b = max(f + rim, 0.0), max(abs(w) - thick + rim, 0.0)
        corner = np.sqrt(a * a + b * b) + 1e-12
        side = f > abs(w) - thick
        if corner < 1e-9:
            a, b, corner = (1.0, 0.0, 1.0) if side else (0.0, 1.0, 1.0)
            f = max(f, abs(w) - thick)
        else:
            f = corner - rim
        gu, gv, gw = gu * a / corner, gv * a / corner, np.sign(w) * b / corner
    gx = part[0] * gu + part[3] * gv + part[6] * gw
    gy = part[1] * gu + part[4] * gv + part[7] * gw
    gz = part[2] * gu + part[5] * gv + part[8] * gw
    norm = np.sqrt(gx * gx + gy * gy + gz * gz) + 1e-12
    return f / norm, gx / norm, gy / norm, gz / norm


@kernel
def _soft_min(a: Floats, d: float, gx: float, gy: float, gz: float, k: float) -> None:
    """Overwrite a = (distance, gradient) by its smooth minimum with (d, g)."""
    gap = a[0] - d
    h = max(k - abs(gap), 0.0) / k if k > 0 else 0.0
    share = 1 - h / 2 if gap > 0 else h / 2
    a[0] = min(a[0], d) - h * h * k / 4
    a[1] += share * (gx - a[1])
    a[2] += share * (gy - a[2])
    a[3] += share * (gz - a[3])


@kernel
def field(
    x: float, y: float, z: float, parts: Floats, groups: Floats, active: Ints, offsets: Floats, own: Floats, all: Floats
) -> None:
    """The body's field and gradient at one point, into ``all[0]``; own and all are scratch.

    active numbers the parts that count (a negative number ends the list), offsets[k] pushes part active[k] away.
    """
    for g in range(len(groups)):
        own[g, 0] = FAR
        own[g, 1] = own[g, 2] = own[g, 3] = 0.0
    for slot in range(len(active)):
        if active[slot] < 0:
            break
        part = parts[active[slot]]
        here = own[int(part[17])]
        sign = -1.0 if part[16] > 0 else 1.0
        dx, dy, dz = x - part[9], y - part[10], z - part[11]
        clear = sign * here[0] + part[15] - offsets[slot] + part[19]
        if clear < 0 or dx * dx + dy * dy + dz * dz > clear * clear:
            continue  # even its bounding sphere is too far to matter
        d, gx, gy, gz = part_distance(part, x, y, z)
        if sign < 0:
            here[0], here[1], here[2], here[3] = -here[0], -here[1], -here[2], -here[3]
        _soft_min(here, d + offsets[slot], gx, gy, gz, part[15])
        if sign < 0:
            here[0], here[1], here[2], here[3] = -here[0], -here[1], -here[2], -here[3]
    all[:] = own
    for g in range(len(groups) - 1, 0, -1):
        parent = int(groups[g, 0])
        joined = own[g]  # reused: holds smin(parent's own, this group with its children)
        joined[:] = all[g]
        base = own[parent]
        _soft_min(joined, base[0], base[1], base[2], base[3], groups[g, 1])
        crease = max(0.0, min(groups[g, 2], min(base[0] - joined[0], base[0] - all[parent, 0])))
        _soft_min(all[parent], joined[0], joined[1], joined[2], joined[3], crease)


@kernel
def _open_block(
    low: Ints, side: int, parts: Floats, groups: Floats, active: Ints, frame: Floats, values: NDArray[Any]
) -> Ints:
    """The active parts that can matter in a cube of the grid; none, and the cube filled, if the surface is far."""
    own, all = np.empty((len(groups), 4)), np.empty((len(groups), 4))
    cell = frame[3]
    reach = cell * side * 0.87
    x, y, z = frame[0] + cell * low[0], frame[1] + cell * low[1], frame[2] + cell * low[2]
    half = cell * (side - 1) / 2
    field(x + half, y + half, z + half, parts, groups, active, np.zeros(len(parts)), own, all)
    middle = all[0, 0]
    values[low[0] : low[0] + side, low[1] : low[1] + side, low[2] : low[2] + side] = middle
    near = np.empty(len(active), np.int64)
    count = 0
    if abs(middle) < 1.5 * reach:
        for i in active:
            bound = abs(middle) + 3 * reach + 2 * parts[i, 15] + groups[int(parts[i, 17]), 1]
            if part_distance(parts[i], x + half, y + half, z + half)[0] < bound:
                near[count] = i
                count += 1
    return near[:count]


@kernel
def _sample_block(low: Ints, parts: Floats, groups: Floats, active: Ints, frame: Floats, values: NDArray[Any]) -> None:
    """The field at every sample of a small cube of the grid."""
    own, all, zeros = np.empty((len(groups), 4)), np.empty((len(groups), 4)), np.zeros(len(parts))
    for i in range(low[0], min(low[0] + SMALL, values.shape[0])):
        for j in range(low[1], min(low[1] + SMALL, values.shape[1])):
            for k in range(low[2], min(low[2] + SMALL, values.shape[2])):
                x, y, z = frame[0] + frame[3] * i, frame[1] + frame[3] * j, frame[2] + frame[3] * k
                field(x, y, z, parts, groups, active, zeros, own, all)
                values[i, j, k] = all[0, 0]


@parallel_kernel
def sample_grid(parts: Floats, groups: Floats, origin: Floats, cell: float, values: NDArray[Any]) -> None:
    """The field on a grid of points ``origin + cell * index``; far from the surface only its sign.

    Cubes of samples whose middle is far from the surface get one value; near ones are cut into smaller cubes, and only
    parts near a cube are evaluated in it.
    """
    ny, nz = (values.shape[1] + BLOCK - 1) // BLOCK, (values.shape[2] + BLOCK - 1) // BLOCK
    frame = np.array([origin[0], origin[1], origin[2], cell])
    for block in prange((values.shape[0] + BLOCK - 1) // BLOCK * ny * nz):
        b = np.int64(block)
        low = np.array([b // (ny * nz) * BLOCK, b // nz % ny * BLOCK, b % nz * BLOCK])
        near = _open_block(low, BLOCK, parts, groups, np.arange(len(parts)), frame, values)
        if len(near) == 0:
            continue
        for i in range(low[0], min(low[0] + BLOCK, values.shape[0]), SMALL):
            for j in range(low[1], min(low[1] + BLOCK, values.shape[1]), SMALL):
                for k in range(low[2], min(low[2] + BLOCK, values.shape[2]), SMALL):
                    small = np.array([i, j, k])
                    nearer = _open_block(small, SMALL, parts, groups, near, frame, values)
                    if len(nearer):
                        _sample_block(small, parts, groups, nearer, frame, values)


@parallel_kernel
def project(
    points: Floats,
    targets: Floats,
    parts: Floats,
    groups: Floats,
    active: Ints,
    offsets: Floats,
    steps: int,
    limit: float,
) -> None:
    """Move points along the gradient until the field has their target value; each step goes at most `limit` far.

    active and offsets have one row for all points, or one for each.
    """
    for n in prange(len(points)):
        own, all = np.empty((len(groups), 4)), np.empty((len(groups), 4))
        row = np.int64(n) % len(active)
        for _ in range(steps):
            field(points[n, 0], points[n, 1], points[n, 2], parts, groups, active[row], offsets[row], own, all)
            gx, gy, gz = all[0, 1], all[0, 2], all[0, 3]
            size = gx * gx + gy * gy + gz * gz
            missing = targets[n] - all[0, 0]
            if size < 0.05 or abs(missing) < 1e-3 * limit:
                break
            step = min(max(missing / size, -limit), limit)
            points[n, 0] += step * gx
            points[n, 1] += step * gy
            points[n, 2] += step * gz


@parallel_kernel
def field_values(points: Floats, parts: Floats, groups: Floats, active: Ints, offsets: Floats) -> Floats:
    """(n,) the field at points; active and offsets have one row for all points, or one for each."""
    out = np.empty(len(points))
    for n in prange(len(points)):
        own, all = np.empty((len(groups), 4)), np.empty((len(groups), 4))
        row = np.int64(n) % len(active)
        field(points[n, 0], points[n, 1], points[n, 2], parts, groups, active[row], offsets[row], own, all)
        out[n] = all[0, 0]
    return out


@parallel_kernel
def nearest_part(points: Floats, parts: Floats) -> Ints:
    """(n,) the part whose surface is nearest; carved parts do not count."""
    out = np.empty(len(points), np.int64)
    for n in prange(len(points)):
        best, best_d = 0, FAR
        for i in range(len(parts)):
            if parts[i, 16] == 0:
                d = part_distance(parts[i], points[n, 0], points[n, 1], points[n, 2])[0]
                if d < best_d:
                    best, best_d = i, d
        out[n] = best
    return out
