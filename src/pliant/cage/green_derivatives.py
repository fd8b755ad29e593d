"""Gradients and Hessians of Green coordinates, compiled: `pliant.cage.green_kernels` differentiated once and twice.

With the edge's ``K = ℓ/X``, ``b = a_i/r_i + a_j/r_j``, ``q = s / (P X)`` and ``c = a_i×a_j``:

    ∇Λ = K b                      ∇∇Λ = (K s/X) b bᵀ + K Σ (â âᵀ − 1) / r
    ∇Ω = Σ q c                    ∇∇Ω = Σ sym(c ∇qᵀ),   ∇q = q (s/X b − b/s + a_i/r_i² + a_j/r_j²)

summed over a triangle's sides (the parts of ``q ∇c`` are skew and cancel), and

    4π ∇ψ = Ω n − g               4π ∇∇ψ = n ∇Ωᵀ − Σ m_l ∇Λ_lᵀ
    4π ∇φ = (−m_l Ω + h_l ∇Ω − n (m_l·g) + d γ_l) / H_l,   γ_l = Σ_q (m_l·m_q) ∇Λ_q
    4π ∇∇φ = (−m_l ∇Ωᵀ − ∇Ω m_lᵀ + h_l ∇∇Ω − n γ_lᵀ − γ_l nᵀ + d Σ_q (m_l·m_q) ∇∇Λ_q) / H_l

for the vertex opposite side l. Symmetric matrices are stored as xx, yy, zz, xy, xz, yz.
"""

from __future__ import annotations

from math import pi
from typing import NamedTuple

import numpy as np

from pliant.cage.green_kernels import BLOCK, Seen, Surface, in_plane, look, room, row_of, values
from pliant.jit import kernel, parallel_kernel, prange
from pliant.spatial.vectors import Vector, cross
from pliant.spatial.winding import PAIR_TABLE
from pliant.topology import Floats, Ints


class Slopes(NamedTuple):
    """Derivatives of every edge's logarithm and of its share of the solid angles, as seen from one point."""

    log: Floats
    """(e, 3) ∇Λ"""
    angle: Floats
    """(e, 3) q c"""
    log2: Floats
    """(e, 6) ∇∇Λ"""
    angle2: Floats
    """(e, 6) sym(c ∇qᵀ)"""


@kernel
def _slope_room(surface: Surface) -> Slopes:
    e = len(surface.edges)
    return Slopes(np.empty((e, 3)), np.empty((e, 3)), np.empty((e, 6)), np.empty((e, 6)))


@kernel
def _edge_vectors(surface: Surface, seen: Seen, e: int) -> tuple[Vector, Vector]:
    """b and c of an edge."""
    i, j = surface.edges[e, 0], surface.edges[e, 1]
    a, z = row_of(seen.a, i), row_of(seen.a, j)
    ri, rj = seen.r[i], seen.r[j]
    if not seen.near[e]:
        return (a[0] / ri + z[0] / rj, a[1] / ri + z[1] / rj, a[2] / ri + z[2] / rj), cross(a, z)
    w, t = row_of(seen.w, e), row_of(surface.tangent, e)
    s, Y, over, length = ri + rj, seen.Y[e], 1 / (ri * rj), surface.length[e]
    c = cross(w, t)
    b = (s * w[0] + Y * t[0]) * over, (s * w[1] + Y * t[1]) * over, (s * w[2] + Y * t[2]) * over
    return b, (length * c[0], length * c[1], length * c[2])


@kernel
def _edge_slopes(surface: Surface, seen: Seen, second: bool, slopes: Slopes) -> None:
    for e in range(len(surface.edges)):
        i, j = surface.edges[e, 0], surface.edges[e, 1]
        ri, rj, X = seen.r[i], seen.r[j], seen.X[e]
        if X <= 0:  # on the edge itself, where there is no derivative
            slopes.log[e], slopes.angle[e] = 0.0, 0.0
            slopes.log2[e], slopes.angle2[e] = 0.0, 0.0
            continue
        b, c = _edge_vectors(surface, seen, e)
        s, K = ri + rj, surface.length[e] / X
        q = s / (ri * rj * X)
        for x in range(3):
            slopes.log[e, x] = K * b[x]
            slopes.angle[e, x] = q * c[x]
        if second:
            _edge_curvature(seen, e, i, j, b, c, K, q, slopes)


@kernel
def _edge_curvature(
    seen: Seen, e: int, i: int, j: int, b: Vector, c: Vector, K: float, q: float, slopes: Slopes
) -> None:
    ri, rj = seen.r[i], seen.r[j]
    s, X = ri + rj, seen.X[e]
    over_i, over_j = 1 / (ri * ri), 1 / (rj * rj)
    a, z = row_of(seen.a, i), row_of(seen.a, j)
    along, lean = K * s / X, s / X - 1 / s
    dq = (
        q * (lean * b[0] + over_i * a[0] + over_j * z[0]),
        q * (lean * b[1] + over_i * a[1] + over_j * z[1]),
        q * (lean * b[2] + over_i * a[2] + over_j * z[2]),
    )
    isotropic, of_a, of_z = K * (1 / ri + 1 / rj), K * over_i / ri, K * over_j / rj
    for k in range(6):
        x, y = PAIR_TABLE[k]
        slopes.log2[e, k] = along * b[x] * b[y] + of_a * a[x] * a[y] + of_z * z[x] * z[y]
        slopes.angle2[e, k] = 0.5 * (c[x] * dq[y] + c[y] * dq[x])
    for k in range(3):
        slopes.log2[e, k] -= isotropic


@kernel
def _angle_slope(surface: Surface, slopes: Slopes, t: int) -> Vector:
    """∇Ω of a triangle; an edge that runs against its side counts negatively."""
    x, y, z = 0.0, 0.0, 0.0
    for l in range(3):
        e = surface.sides[t, l]
        sign = 1.0 if surface.edges[e, 0] == surface.triangles[t, l] else -1.0
        x += sign * slopes.angle[e, 0]
        y += sign * slopes.angle[e, 1]
        z += sign * slopes.angle[e, 2]
    return x, y, z


@kernel
def _gradients(surface: Surface, seen: Seen, slopes: Slopes, rows: Floats) -> None:
    """∇φ and ∇ψ of one point into rows (3, c + f)."""
    c = len(surface.points)
    rows[:, :c] = 0.0
    quarter = 1 / (4 * pi)
    for t in range(len(surface.triangles)):
        e, f, g = surface.sides[t, 0], surface.sides[t, 1], surface.sides[t, 2]
        L = seen.logs[e], seen.logs[f], seen.logs[g]
        d, angle, turn = seen.d[t], seen.angles[t], _angle_slope(surface, slopes, t)
        m, n = surface.outward[t], surface.normal[t]
        for x in range(3):
            pull = m[0, x] * L[0] + m[1, x] * L[1] + m[2, x] * L[2]
            rows[x, c + t] = quarter * (angle * n[x] - pull)
        for l in range(3):
            u, v, w = surface.gram[t, l, 0], surface.gram[t, l, 1], surface.gram[t, l, 2]
            h, mg = in_plane(surface, seen, t, l), u * L[0] + v * L[1] + w * L[2]
            vertex, scale = surface.triangles[t, (l + 2) % 3], quarter / surface.height[t, l]
            for x in range(3):
                gamma = u * slopes.log[e, x] + v * slopes.log[f, x] + w * slopes.log[g, x]
                rows[x, vertex] += scale * (h * turn[x] - angle * m[l, x] - n[x] * mg + d * gamma)


@kernel
def _hessians(surface: Surface, seen: Seen, slopes: Slopes, rows: Floats) -> None:
    """∇∇φ and ∇∇ψ of one point into rows (6, c + f)."""
    c = len(surface.points)
    rows[:, :c] = 0.0
    twist, gamma = np.empty(6), np.empty(3)
    for t in range(len(surface.triangles)):
        e, f, g = surface.sides[t, 0], surface.sides[t, 1], surface.sides[t, 2]
        turn = _angle_slope(surface, slopes, t)
        m, n, d = surface.outward[t], surface.normal[t], seen.d[t]
        _triangle_curvature(surface, slopes, t, turn, twist, rows)
        for l in range(3):
            u, v, w = surface.gram[t, l, 0], surface.gram[t, l, 1], surface.gram[t, l, 2]
            for x in range(3):
                gamma[x] = u * slopes.log[e, x] + v * slopes.log[f, x] + w * slopes.log[g, x]
            h, vertex = in_plane(surface, seen, t, l), surface.triangles[t, (l + 2) % 3]
            scale = 1 / (4 * pi * surface.height[t, l])
            for k in range(6):
                x, y = PAIR_TABLE[k]
                bend = u * slopes.log2[e, k] + v * slopes.log2[f, k] + w * slopes.log2[g, k]
                cross_terms = m[l, x] * turn[y] + m[l, y] * turn[x] + n[x] * gamma[y] + n[y] * gamma[x]
                rows[k, vertex] += scale * (h * twist[k] - cross_terms + d * bend)


@kernel
def _triangle_curvature(surface: Surface, slopes: Slopes, t: int, turn: Vector, twist: Floats, rows: Floats) -> None:
    """∇∇Ω of a triangle into `twist`, and ∇∇ψ into its column of `rows`."""
    column = len(surface.points) + t
    m, n = surface.outward[t], surface.normal[t]
    for k in range(6):
        x, y = PAIR_TABLE[k]
        twist[k] = 0.0
        total = n[x] * turn[y] + n[y] * turn[x]
        for l in range(3):
            e = surface.sides[t, l]
            sign = 1.0 if surface.edges[e, 0] == surface.triangles[t, l] else -1.0
            twist[k] += sign * slopes.angle2[e, k]
            total -= m[l, x] * slopes.log[e, y] + m[l, y] * slopes.log[e, x]
        rows[k, column] = total / (8 * pi)


@parallel_kernel
def evaluate_derivatives(
    points: Floats,
    surface: Surface,
    through: Ints,
    out: Floats,
    gradient: Floats,
    hessian: Floats,
    winding: Floats,
) -> None:
    """φ and ψ in `out` (n, c + f), `gradient` (n, 3, c + f) and, unless it has no rows, `hessian` (n, 6, c + f)."""
    second = len(hessian) > 0
    for block in prange((len(points) + BLOCK - 1) // BLOCK):
        seen, slopes = room(surface), _slope_room(surface)
        for k in range(block * BLOCK, min((block + 1) * BLOCK, len(points))):
            winding[k] = look(row_of(points, k), surface, through[k], seen)
            values(surface, seen, out[k])
            _edge_slopes(surface, seen, second, slopes)
            _gradients(surface, seen, slopes, gradient[k])
            if second:
                _hessians(surface, seen, slopes, hessian[k])
