"""Green coordinates of a few points at a time, compiled; the equations are in `pliant.cage.green`.

Each edge's quantities are computed once and used by its two triangles. Seen from p, an edge from v_i to v_j has
``a = v − p``, ``r = |a|``, ``s = r_i + r_j``, ``P = r_i r_j``, ``D = a_i·a_j`` and ``X = P + D``, for which
``(s² − ℓ²) / 2 = X``. So ``Λ = log((s + ℓ)² / 2X)``.

Near an edge X is a small difference of large numbers. There everything is written in the vector w from p to the edge's
line, ``a = w + σ t`` (t the edge's direction), ``ρ = |w|``, taken from the nearer end:

    X = ρ² ℓ² / (P − D)            Y = r_i σ_j + r_j σ_i = ρ² (σ_j² − σ_i²) / (r_i σ_j − r_j σ_i)
    tan(Ω/2) = ℓ H d / (r_k X + s (ρ² − H h) + Y a_k·t),     d = w·n,  h = w·m,   v_k the opposite vertex

Both triangles at the edge see the same w, so that their solid angles fit together to the last digit however near p
comes. Each edge has a base: w where it is near, else a of its nearer end, which is exact near a vertex. d and h are
products of bases, so they are exact near edges and vertices too.

Points are taken in groups of `LANES`, the last axis of every table of what they see, so that the loops over it become
vector instructions. The few lanes in which an edge is near are computed again, one by one.
Rows of the results hold the cage's vertices first, then its triangles.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.cage.lanes import arcs, logarithms
from pliant.jit import kernel
from pliant.topology import Floats, Ints

LANES = 32
"""Points in a group; the kernels are not to know it when they are compiled, or they would unroll the loops instead."""
WORTH = 256
"""Points worth a thread."""
NEAR = 0.01
"""X / P below which an edge counts as near; X has lost two digits there."""


class Surface(NamedTuple):
    """A cage as the kernels see it."""

    points: Floats
    """(c, 3)"""
    edges: Ints
    """(e, 2)"""
    length: Floats
    """(e,) ℓ"""
    tangent: Floats
    """(e, 3) t, from the first end to the second"""
    triangles: Ints
    """(f, 3)"""
    sides: Ints
    """(f, 3) the edge from corner l to l + 1"""
    normal: Floats
    """(f, 3) n"""
    double_area: Floats
    """(f,)"""
    outward: Floats
    """(f, 3, 3) m, in the triangle's plane, for each side"""
    height: Floats
    """(f, 3) H over each side"""
    gram: Floats
    """(f, 3, 3) m_l · m_q"""


class Seen(NamedTuple):
    """What a group of points sees: room for it, used again for the next group."""

    a: Floats
    """(c, 4, lanes) a and r"""
    edge: Floats
    """(e, 6, lanes) D, X, base, its square"""
    Y: Floats
    """(e, lanes) where near"""
    near: Ints
    """(e, 1 + lanes) in how many lanes the edge is near, and in which"""
    argument: Floats
    """(e, lanes)"""
    exponent: Floats
    """(e, lanes)"""
    logs: Floats
    """(e, lanes) Λ"""
    d: Floats
    """(f, lanes)"""
    half: Floats
    """(2, f, lanes) what Ω / 2 is the arc of"""
    angles: Floats
    """(f, lanes) Ω / 2, then Ω"""


@kernel
def room(surface: Surface, lanes: int) -> Seen:
    """Scratch tables for one thread."""
    c, e, f = len(surface.points), len(surface.edges), len(surface.triangles)
    return Seen(
        np.empty((c, 4, lanes)),
        np.empty((e, 6, lanes)),
        np.zeros((e, lanes)),
        np.zeros((e, 1 + lanes), np.int64),
        np.empty((e, lanes)),
        np.empty((e, lanes)),
        np.empty((e, lanes)),
        np.empty((f, lanes)),
        np.empty((2, f, lanes)),
        np.empty((f, lanes)),
    )


@kernel
def _look_at_vertices(points: Floats, first: int, surface: Surface, seen: Seen) -> None:
    """a and r; lanes beyond the last point see what it sees."""
    lanes = seen.d.shape[1]
    p = np.empty((3, lanes))
    for k in range(lanes):
        for x in range(3):
            p[x, k] = points[min(first + k, len(points) - 1), x]
    for i in range(len(surface.points)):
        vx, vy, vz = surface.points[i]
        a = seen.a[i]
        for k in range(lanes):
            x, y, z = vx - p[0, k], vy - p[1, k], vz - p[2, k]
            a[0, k], a[1, k], a[2, k] = x, y, z
            a[3, k] = sqrt(x * x + y * y + z * z)


@kernel
def _look_at_edges(surface: Surface, seen: Seen) -> None:
    """D, X, base and logarithm of every edge."""
    lanes = seen.d.shape[1]
    for e in range(len(surface.edges)):
        a, b, out = seen.a[surface.edges[e, 0]], seen.a[surface.edges[e, 1]], seen.edge[e]
        close = 0.0
        for k in range(lanes):
            D = a[0, k] * b[0, k] + a[1, k] * b[1, k] + a[2, k] * b[2, k]
            product = a[3, k] * b[3, k]
            out[0, k], out[1, k] = D, product + D
            first = a[3, k] <= b[3, k]
            out[2, k] = a[0, k] if first else b[0, k]
            out[3, k] = a[1, k] if first else b[1, k]
            out[4, k] = a[2, k] if first else b[2, k]
            r = a[3, k] if first else b[3, k]
            out[5, k] = r * r
        for k in range(lanes):
            close += 1.0 if out[1, k] < NEAR * (out[1, k] - out[0, k]) else 0.0
        seen.near[e, 0] = int(close)
        if close > 0:
            _look_closely(surface, seen, e)
        argument, length = seen.argument[e], surface.length[e]
        for k in range(lanes):
            reach = a[3, k] + b[3, k] + length
            X = out[1, k]
            argument[k] = reach * reach / (2 * X) if X > 0 else 1.0
    flat, exponent = seen.argument.reshape(-1), seen.exponent.reshape(-1)
    logarithms(flat, flat.view(np.int64), exponent, exponent.view(np.int64), seen.logs.reshape(-1))


@kernel
def _look_closely(surface: Surface, seen: Seen, e: int) -> None:
    """X, base and Y of an edge in the lanes where it is near."""
    lanes = seen.d.shape[1]
    a, b, out, length = seen.a[surface.edges[e, 0]], seen.a[surface.edges[e, 1]], seen.edge[e], surface.length[e]
    t = surface.tangent[e]
    for k in range(lanes):
        product = a[3, k] * b[3, k]
        near = out[1, k] < NEAR * product
        seen.near[e, 1 + k] = near
        if not near:
            continue
        along = out[2, k] * t[0] + out[3, k] * t[1] + out[4, k] * t[2]
        si, sj = (along, along + length) if a[3, k] <= b[3, k] else (along - length, along)
        square = 0.0
        for x in range(3):
            out[2 + x, k] -= along * t[x]
            square += out[2 + x, k] ** 2
        out[5, k] = square
        seen.Y[e, k] = square * (sj - si) * (sj + si) / (a[3, k] * sj - b[3, k] * si)
        out[1, k] = square * length * length / (product - out[0, k])


@kernel
def _look_at_triangles(surface: Surface, seen: Seen) -> None:
    """d and Ω of every triangle."""
    lanes = seen.d.shape[1]
    for t in range(len(surface.triangles)):
        i, j, m = surface.triangles[t]
        e, f, g = surface.sides[t]
        a, b, c = seen.a[i], seen.a[j], seen.a[m]
        u, v, w = seen.edge[e], seen.edge[f], seen.edge[g]
        nx, ny, nz = surface.normal[t]
        d, above, below, area = seen.d[t], seen.half[0, t], seen.half[1, t], surface.double_area[t]
        for k in range(lanes):
            du = u[2, k] * nx + u[3, k] * ny + u[4, k] * nz
            dv = v[2, k] * nx + v[3, k] * ny + v[4, k] * nz
            dw = w[2, k] * nx + w[3, k] * ny + w[4, k] * nz
            best = dv if v[5, k] < u[5, k] else du
            least = min(u[5, k], v[5, k])
            d[k] = dw if w[5, k] < least else best
        for k in range(lanes):
            above[k] = area * d[k]
            below[k] = c[3, k] * u[1, k] + v[0, k] * a[3, k] + w[0, k] * b[3, k]
        if seen.near[e, 0] + seen.near[f, 0] + seen.near[g, 0] > 0:
            _look_at_near_triangle(surface, seen, t)
    arcs(seen.half[0].reshape(-1), seen.half[1].reshape(-1), seen.angles.reshape(-1))


@kernel
def _look_at_near_triangle(surface: Surface, seen: Seen, t: int) -> None:
    """Ω of a triangle through its nearest edge, in the lanes where that is near."""
    lanes = seen.d.shape[1]
    for k in range(lanes):
        best, least = -1, np.inf
        for l in range(3):
            e = surface.sides[t, l]
            if seen.near[e, 0] > 0 and seen.near[e, 1 + k] > 0 and seen.edge[e, 5, k] < least:
                best, least = l, seen.edge[e, 5, k]
        if best < 0:
            continue
        e, opposite = surface.sides[t, best], seen.a[surface.triangles[t, (best + 2) % 3]]
        m, tangent, n = surface.outward[t, best], surface.tangent[e], surface.normal[t]
        d, h, along = 0.0, 0.0, 0.0
        for x in range(3):
            d += seen.edge[e, 2 + x, k] * n[x]
            h += seen.edge[e, 2 + x, k] * m[x]
            along += opposite[x, k] * tangent[x]
        s = seen.a[surface.edges[e, 0], 3, k] + seen.a[surface.edges[e, 1], 3, k]
        seen.d[t, k] = d
        seen.half[0, t, k] = surface.double_area[t] * d
        seen.half[1, t, k] = (
            opposite[3, k] * seen.edge[e, 1, k] + s * (least - surface.height[t, best] * h) + seen.Y[e, k] * along
        )


@kernel
def look(points: Floats, first: int, surface: Surface, through: Ints, seen: Seen) -> None:
    """All that the coordinates of a group of points are made of.

    through: (n,) the triangle by which a point that is not inside is entered, whose solid angle then takes up what all
    of them lack of 4π; -1 for those inside.
    """
    _look_at_vertices(points, first, surface, seen)
    _look_at_edges(surface, seen)
    _look_at_triangles(surface, seen)
    angles, lanes = seen.angles, seen.d.shape[1]
    for t in range(len(angles)):
        for k in range(lanes):
            angles[t, k] *= 2
    for k in range(min(lanes, len(points) - first)):
        entry = through[first + k]
        if entry >= 0:
            angles[entry, k] += 4 * pi - angles[:, k].sum()


@kernel
def values(surface: Surface, seen: Seen, out: Floats) -> None:
    """φ and ψ of a group of points into (c + f, lanes)."""
    c, lanes = len(surface.points), seen.d.shape[1]
    out[:c] = 0.0
    quarter = 1 / (4 * pi)
    for t in range(len(surface.triangles)):
        e, f, g = surface.sides[t]
        L0, L1, L2 = seen.logs[e], seen.logs[f], seen.logs[g]
        d, angle, psi = seen.d[t], seen.angles[t], out[c + t]
        for k in range(lanes):
            psi[k] = -quarter * d[k] * angle[k]
        for l in range(3):
            base, own = seen.edge[surface.sides[t, l]], seen.logs[surface.sides[t, l]]
            mx, my, mz = surface.outward[t, l]
            u, v, w = surface.gram[t, l]
            phi, scale = out[surface.triangles[t, (l + 2) % 3]], quarter / surface.height[t, l]
            for k in range(lanes):
                h = base[2, k] * mx + base[3, k] * my + base[4, k] * mz
                psi[k] += quarter * h * own[k]
                phi[k] += scale * (h * angle[k] + d[k] * (u * L0[k] + v * L1[k] + w * L2[k]))


@kernel
def windings(seen: Seen, first: int, out: Floats) -> None:
    """Winding numbers about a group of points, into theirs of all (n,)."""
    for k in range(min(seen.d.shape[1], len(out) - first)):
        out[first + k] = seen.angles[:, k].sum() / (4 * pi)


@kernel
def evaluate_blocks(
    points: Floats, surface: Surface, through: Ints, winding: Floats, out: NDArray[np.float32], lanes: int
) -> None:
    """φ and ψ in blocks (n / lanes, c + f, lanes), a group of points after the other, and winding numbers (n,)."""
    seen, table = room(surface, lanes), np.empty((out.shape[1], lanes))
    for group in range(len(out)):
        look(points, group * lanes, surface, through, seen)
        windings(seen, group * lanes, winding)
        values(surface, seen, table)
        out[group] = table
