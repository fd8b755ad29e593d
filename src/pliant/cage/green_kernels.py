"""Green coordinates of one point after the other, compiled; the equations are in `pliant.cage.green`.

Each edge's quantities are computed once and used by its two triangles. Seen from p, an edge from v_i to v_j has
``a = v − p``, ``r = |a|``, ``s = r_i + r_j``, ``P = r_i r_j``, ``D = a_i·a_j`` and ``X = P + D``, for which
``(s² − ℓ²) / 2 = X``. So ``Λ = log((s + ℓ)² / 2X)``, ``∇Λ = ℓ/X b`` with ``b = a_i/r_i + a_j/r_j``, and the edge's
share of the solid angle's gradient is ``q a_i×a_j`` with ``q = s / (P X)``.

Near an edge X is a small difference of large numbers. There everything is written in the vector w from p to the edge's
line, ``a = w + σ t`` (t the edge's direction), ``ρ = |w|``, taken from the nearer end:

    X = ρ² ℓ² / (P − D)            Y = r_i σ_j + r_j σ_i = ρ² (σ_j² − σ_i²) / (r_i σ_j − r_j σ_i)
    b = (s w + Y t) / P            a_i×a_j = ℓ w×t
    tan(Ω/2) = ℓ H d / (r_k X + s (ρ² − H h) + Y a_k·t),     d = w·n,  h = w·m,   v_k the opposite vertex

Both triangles at the edge see the same w, so that their solid angles fit together to the last digit however near p
comes. Near a vertex its own a is exact, so d and h are taken from the nearest corner.

Rows of the results hold the cage's vertices first, then its triangles.
"""

from __future__ import annotations

from math import atan2, log, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.jit import kernel, parallel_kernel, prange
from pliant.spatial.vectors import Vector, dot
from pliant.topology import Floats, Ints

NEAR = 0.01
"""X / P below which an edge counts as near; X has lost two digits there."""
BLOCK = 32
"""Points that one thread takes at a time."""


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
    """What one point sees: room for it, used again for the next point."""

    a: Floats
    r: Floats
    X: Floats
    D: Floats
    logs: Floats
    near: NDArray[np.bool_]
    w: Floats
    Y: Floats
    angles: Floats
    d: Floats


@kernel
def room(surface: Surface) -> Seen:
    """Scratch arrays for one thread."""
    c, e, f = len(surface.points), len(surface.edges), len(surface.triangles)
    return Seen(
        np.empty((c, 3)),
        np.empty(c),
        np.empty(e),
        np.empty(e),
        np.empty(e),
        np.zeros(e, np.bool_),
        np.zeros((e, 3)),
        np.zeros(e),
        np.empty(f),
        np.empty(f),
    )


@kernel
def row_of(table: Floats, k: int) -> Vector:
    """Row k of an (n, 3) table."""
    return table[k, 0], table[k, 1], table[k, 2]


@kernel
def _look_at_vertices(p: Vector, surface: Surface, seen: Seen) -> None:
    for i in range(len(surface.points)):
        x, y, z = surface.points[i, 0] - p[0], surface.points[i, 1] - p[1], surface.points[i, 2] - p[2]
        seen.a[i, 0], seen.a[i, 1], seen.a[i, 2] = x, y, z
        seen.r[i] = sqrt(x * x + y * y + z * z)


@kernel
def _look_at_edges(surface: Surface, seen: Seen) -> None:
    """D, X and the logarithm of every edge; w and Y of those that are near."""
    for e in range(len(surface.edges)):
        i, j = surface.edges[e, 0], surface.edges[e, 1]
        a, b = row_of(seen.a, i), row_of(seen.a, j)
        product = seen.r[i] * seen.r[j]
        D = dot(a, b)
        X = product + D
        seen.D[e] = D
        seen.near[e] = NEAR * product > X
        if seen.near[e]:
            X = _look_closely(surface, seen, e, product - D)
        seen.X[e] = X
        reach = seen.r[i] + seen.r[j] + surface.length[e]
        seen.logs[e] = log(reach * reach / (2 * X)) if X > 0 else 0.0


@kernel
def _look_closely(surface: Surface, seen: Seen, e: int, PD: float) -> float:
    """The vector to a near edge's line, and Y; returns X."""
    i, j = surface.edges[e, 0], surface.edges[e, 1]
    ri, rj, length = seen.r[i], seen.r[j], surface.length[e]
    t = row_of(surface.tangent, e)
    if ri <= rj:
        si = dot(row_of(seen.a, i), t)
        sj, base, along = si + length, i, si
    else:
        sj = dot(row_of(seen.a, j), t)
        si, base, along = sj - length, j, sj
    rho2 = 0.0
    for x in range(3):
        seen.w[e, x] = seen.a[base, x] - along * t[x]
        rho2 += seen.w[e, x] * seen.w[e, x]
    seen.Y[e] = rho2 * (sj - si) * (sj + si) / (ri * sj - rj * si)
    return rho2 * length * length / PD


@kernel
def _half_angle(surface: Surface, seen: Seen, t: int) -> tuple[float, float, float]:
    """Ω / 2 of a triangle as the arguments of atan2, and d."""
    i, j, k = surface.triangles[t, 0], surface.triangles[t, 1], surface.triangles[t, 2]
    e, f, g = surface.sides[t, 0], surface.sides[t, 1], surface.sides[t, 2]
    n = row_of(surface.normal, t)
    ri, rj, rk = seen.r[i], seen.r[j], seen.r[k]
    if seen.near[e] or seen.near[f] or seen.near[g]:
        return _half_angle_near(surface, seen, t)
    nearest = i if ri <= rj and ri <= rk else (j if rj <= rk else k)
    d = dot(row_of(seen.a, nearest), n)
    return surface.double_area[t] * d, rk * seen.X[e] + seen.D[f] * ri + seen.D[g] * rj, d


@kernel
def _half_angle_near(surface: Surface, seen: Seen, t: int) -> tuple[float, float, float]:
    """The same through w of the nearest edge."""
    best, least = 0, np.inf
    for l in range(3):
        e = surface.sides[t, l]
        product = seen.r[surface.edges[e, 0]] * seen.r[surface.edges[e, 1]]
        if seen.near[e] and seen.X[e] <= least * product:
            best, least = l, seen.X[e] / product if product > 0 else 0.0
    e = surface.sides[t, best]
    k = surface.triangles[t, (best + 2) % 3]
    w, m = row_of(seen.w, e), row_of(surface.outward[t], best)
    d, h, H = dot(w, row_of(surface.normal, t)), dot(w, m), surface.height[t, best]
    s = seen.r[surface.edges[e, 0]] + seen.r[surface.edges[e, 1]]
    along = dot(row_of(seen.a, k), row_of(surface.tangent, e))
    below = seen.r[k] * seen.X[e] + s * (dot(w, w) - H * h) + seen.Y[e] * along
    return surface.double_area[t] * d, below, d


@kernel
def in_plane(surface: Surface, seen: Seen, t: int, l: int) -> float:
    """h of side l: distance from p to its line within the triangle's plane, positive from inside."""
    e = surface.sides[t, l]
    m = row_of(surface.outward[t], l)
    if seen.near[e]:
        return dot(row_of(seen.w, e), m)
    i, j = surface.edges[e, 0], surface.edges[e, 1]
    return dot(row_of(seen.a, i if seen.r[i] <= seen.r[j] else j), m)


@kernel
def look(p: Vector, surface: Surface, through: int, seen: Seen) -> float:
    """Everything that the coordinates at p are made of; returns the winding number about p.

    through: the triangle by which a point that is not inside is entered, whose solid angle then takes up what all of
    them lack of 4π; -1 for no such triangle.
    """
    _look_at_vertices(p, surface, seen)
    _look_at_edges(surface, seen)
    total = 0.0
    for t in range(len(surface.triangles)):
        above, below, d = _half_angle(surface, seen, t)
        seen.d[t] = d
        seen.angles[t] = 2 * atan2(above, below)
        total += seen.angles[t]
    if through >= 0:
        seen.angles[through] += 4 * pi - total
    return total / (4 * pi)


@kernel
def values(surface: Surface, seen: Seen, row: Floats) -> None:
    """φ and ψ of one point into a row."""
    c = len(surface.points)
    row[:c] = 0.0
    for t in range(len(surface.triangles)):
        e, f, g = surface.sides[t, 0], surface.sides[t, 1], surface.sides[t, 2]
        L = seen.logs[e], seen.logs[f], seen.logs[g]
        d, angle = seen.d[t], seen.angles[t]
        psi = -d * angle
        for l in range(3):
            h = in_plane(surface, seen, t, l)
            psi += h * L[l]
            mg = surface.gram[t, l, 0] * L[0] + surface.gram[t, l, 1] * L[1] + surface.gram[t, l, 2] * L[2]
            row[surface.triangles[t, (l + 2) % 3]] += (h * angle + d * mg) / (surface.height[t, l] * 4 * pi)
        row[c + t] = psi / (4 * pi)


@parallel_kernel
def evaluate_values(points: Floats, surface: Surface, through: Ints, out: Floats, winding: Floats) -> None:
    """Rows (n, c + f) of φ and ψ in `out`, of any float type, and (n,) winding numbers."""
    for block in prange((len(points) + BLOCK - 1) // BLOCK):
        seen, row = room(surface), np.empty(out.shape[1])
        for k in range(block * BLOCK, min((block + 1) * BLOCK, len(points))):
            winding[k] = look(row_of(points, k), surface, through[k], seen)
            values(surface, seen, row)
            for i in range(len(row)):
                out[k, i] = row[i]
