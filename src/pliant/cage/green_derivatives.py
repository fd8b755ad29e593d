"""Gradients and Hessians of Green coordinates, compiled: `pliant.cage.green_kernels` differentiated once and twice.

With the edge's ``K = ℓ/X``, ``b = a_i/r_i + a_j/r_j``, ``q = s / (P X)`` and ``c = a_i×a_j`` (near the edge,
``b = (s w + Y t) / P`` and ``c = ℓ w×t``):

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

from pliant.cage.green_kernels import Seen, Surface, look, room, values, windings
from pliant.jit import kernel
from pliant.spatial.winding import PAIR_TABLE
from pliant.topology import Floats, Ints


class Slopes(NamedTuple):
    """Derivatives of every edge's logarithm and of its share of the solid angles, as seen from a group of points."""

    b: Floats
    """(e, 3, lanes)"""
    c: Floats
    """(e, 3, lanes)"""
    log: Floats
    """(e, 3, lanes) ∇Λ"""
    angle: Floats
    """(e, 3, lanes) q c"""
    log2: Floats
    """(e, 6, lanes) ∇∇Λ"""
    angle2: Floats
    """(e, 6, lanes) sym(c ∇qᵀ)"""
    turn: Floats
    """(3, lanes) ∇Ω of one triangle"""
    twist: Floats
    """(6, lanes) ∇∇Ω of one triangle"""
    gamma: Floats
    """(3, lanes) γ of one side"""
    factors: Floats
    """(8, lanes) of one edge: K, q, and those of its curvature"""
    dq: Floats
    """(3, lanes) ∇q of one edge"""


@kernel
def slope_room(surface: Surface, lanes: int) -> Slopes:
    """Scratch tables for one thread."""
    e = len(surface.edges)
    return Slopes(
        np.empty((e, 3, lanes)),
        np.empty((e, 3, lanes)),
        np.empty((e, 3, lanes)),
        np.empty((e, 3, lanes)),
        np.empty((e, 6, lanes)),
        np.empty((e, 6, lanes)),
        np.empty((3, lanes)),
        np.empty((6, lanes)),
        np.empty((3, lanes)),
        np.empty((8, lanes)),
        np.empty((3, lanes)),
    )


@kernel
def _edge_vectors(surface: Surface, seen: Seen, slopes: Slopes, e: int) -> None:
    """b and c of an edge."""
    lanes = seen.d.shape[1]
    a, z, b, c = seen.a[surface.edges[e, 0]], seen.a[surface.edges[e, 1]], slopes.b[e], slopes.c[e]
    for k in range(lanes):
        over = 1 / a[3, k] if a[3, k] > 0 else 0.0
        under = 1 / z[3, k] if z[3, k] > 0 else 0.0
        b[0, k] = a[0, k] * over + z[0, k] * under
        b[1, k] = a[1, k] * over + z[1, k] * under
        b[2, k] = a[2, k] * over + z[2, k] * under
    for k in range(lanes):
        c[0, k] = a[1, k] * z[2, k] - a[2, k] * z[1, k]
        c[1, k] = a[2, k] * z[0, k] - a[0, k] * z[2, k]
        c[2, k] = a[0, k] * z[1, k] - a[1, k] * z[0, k]
    if seen.near[e, 0] == 0:
        return
    t, w, length = surface.tangent[e], seen.edge[e, 2:5], surface.length[e]
    for k in range(lanes):
        product = a[3, k] * z[3, k]
        if seen.near[e, 1 + k] == 0 or product == 0:
            continue
        for x in range(3):
            y, v = (x + 1) % 3, (x + 2) % 3
            b[x, k] = ((a[3, k] + z[3, k]) * w[x, k] + seen.Y[e, k] * t[x]) / product
            c[x, k] = length * (w[y, k] * t[v] - w[v, k] * t[y])


@kernel
def edge_slopes(surface: Surface, seen: Seen, second: bool, slopes: Slopes) -> None:
    """∇Λ and q c, and if asked for their derivatives; zero on the edge itself, where there are none."""
    K, q, lanes = slopes.factors[0], slopes.factors[1], seen.d.shape[1]
    for e in range(len(surface.edges)):
        a, z, X, length = seen.a[surface.edges[e, 0]], seen.a[surface.edges[e, 1]], seen.edge[e, 1], surface.length[e]
        _edge_vectors(surface, seen, slopes, e)
        for k in range(lanes):
            product = a[3, k] * z[3, k] * X[k]
            some = product > 0
            K[k] = length / X[k] if some else 0.0
            q[k] = (a[3, k] + z[3, k]) / product if some else 0.0
        for x in range(3):
            b, c, log, angle = slopes.b[e, x], slopes.c[e, x], slopes.log[e, x], slopes.angle[e, x]
            for k in range(lanes):
                log[k] = K[k] * b[k]
                angle[k] = q[k] * c[k]
        if second:
            _edge_curvature(surface, seen, e, slopes)


@kernel
def _edge_curvature(surface: Surface, seen: Seen, e: int, slopes: Slopes) -> None:
    K, q, factors, dq, lanes = slopes.factors[0], slopes.factors[1], slopes.factors[2:], slopes.dq, seen.d.shape[1]
    a, z, X = seen.a[surface.edges[e, 0]], seen.a[surface.edges[e, 1]], seen.edge[e, 1]
    b, c, log2, angle2 = slopes.b[e], slopes.c[e], slopes.log2[e], slopes.angle2[e]
    for k in range(lanes):
        ri, rj = a[3, k], z[3, k]
        s, some = ri + rj, q[k] > 0
        over, under = (1 / ri if some else 0.0), (1 / rj if some else 0.0)
        factors[0, k], factors[1, k] = over * over, under * under
        factors[2, k] = (s / X[k] if some else 0.0) - 1 / s
        factors[3, k] = K[k] * s / X[k] if some else 0.0
        factors[4, k], factors[5, k] = K[k] * over, K[k] * under
    for x in range(3):
        for k in range(lanes):
            dq[x, k] = q[k] * (factors[2, k] * b[x, k] + factors[0, k] * a[x, k] + factors[1, k] * z[x, k])
    for pair in range(6):
        x, y = PAIR_TABLE[pair]
        same = 1.0 if x == y else 0.0
        for k in range(lanes):
            of_a = factors[4, k] * (factors[0, k] * a[x, k] * a[y, k] - same)
            of_z = factors[5, k] * (factors[1, k] * z[x, k] * z[y, k] - same)
            log2[pair, k] = factors[3, k] * b[x, k] * b[y, k] + of_a + of_z
            angle2[pair, k] = 0.5 * (c[x, k] * dq[y, k] + c[y, k] * dq[x, k])


@kernel
def _triangle_sum(surface: Surface, t: int, table: Floats, out: Floats) -> None:
    """The shares of a triangle's sides added up; an edge that runs against its side counts negatively."""
    e, f, g = surface.sides[t]
    u = 1.0 if surface.edges[e, 0] == surface.triangles[t, 0] else -1.0
    v = 1.0 if surface.edges[f, 0] == surface.triangles[t, 1] else -1.0
    w = 1.0 if surface.edges[g, 0] == surface.triangles[t, 2] else -1.0
    a, b, c = table[e], table[f], table[g]
    for x in range(len(out)):
        for k in range(out.shape[1]):
            out[x, k] = u * a[x, k] + v * b[x, k] + w * c[x, k]


@kernel
def _gradients(surface: Surface, seen: Seen, slopes: Slopes, out: Floats) -> None:
    """∇φ and ∇ψ of a group of points into (3, c + f, lanes)."""
    c, lanes = len(surface.points), seen.d.shape[1]
    out[:, :c] = 0.0
    quarter = 1 / (4 * pi)
    h, mg = np.empty(lanes), np.empty(lanes)
    for t in range(len(surface.triangles)):
        e, f, g = surface.sides[t]
        L0, L1, L2 = seen.logs[e], seen.logs[f], seen.logs[g]
        d, angle, m, n, turn = seen.d[t], seen.angles[t], surface.outward[t], surface.normal[t], slopes.turn
        _triangle_sum(surface, t, slopes.angle, turn)
        for x in range(3):
            psi = out[x, c + t]
            for k in range(lanes):
                psi[k] = quarter * (angle[k] * n[x] - (m[0, x] * L0[k] + m[1, x] * L1[k] + m[2, x] * L2[k]))
        for l in range(3):
            u, v, w = surface.gram[t, l]
            base, vertex, scale = (
                seen.edge[surface.sides[t, l]],
                surface.triangles[t, (l + 2) % 3],
                surface.height[t, l],
            )
            scale = quarter / scale
            for k in range(lanes):
                h[k] = base[2, k] * m[l, 0] + base[3, k] * m[l, 1] + base[4, k] * m[l, 2]
                mg[k] = u * L0[k] + v * L1[k] + w * L2[k]
            for x in range(3):
                phi, G0, G1, G2 = out[x, vertex], slopes.log[e, x], slopes.log[f, x], slopes.log[g, x]
                for k in range(lanes):
                    gamma = u * G0[k] + v * G1[k] + w * G2[k]
                    phi[k] += scale * (h[k] * turn[x, k] - angle[k] * m[l, x] - n[x] * mg[k] + d[k] * gamma)


@kernel
def hessians(surface: Surface, seen: Seen, slopes: Slopes, out: Floats) -> None:
    """∇∇φ and ∇∇ψ of a group of points into (6, c + f, lanes)."""
    c, lanes = len(surface.points), seen.d.shape[1]
    out[:, :c] = 0.0
    h, turn, twist, gamma = np.empty(lanes), slopes.turn, slopes.twist, slopes.gamma
    for t in range(len(surface.triangles)):
        e, f, g = surface.sides[t]
        m, n, d = surface.outward[t], surface.normal[t], seen.d[t]
        _triangle_sum(surface, t, slopes.angle, turn)
        _triangle_sum(surface, t, slopes.angle2, twist)
        _single_layer_curvature(surface, slopes, t, out)
        for l in range(3):
            u, v, w = surface.gram[t, l]
            base, vertex = seen.edge[surface.sides[t, l]], surface.triangles[t, (l + 2) % 3]
            scale = 1 / (4 * pi * surface.height[t, l])
            for k in range(lanes):
                h[k] = base[2, k] * m[l, 0] + base[3, k] * m[l, 1] + base[4, k] * m[l, 2]
            for x in range(3):
                G0, G1, G2 = slopes.log[e, x], slopes.log[f, x], slopes.log[g, x]
                for k in range(lanes):
                    gamma[x, k] = u * G0[k] + v * G1[k] + w * G2[k]
            for pair in range(6):
                x, y = PAIR_TABLE[pair]
                phi, H0, H1, H2 = out[pair, vertex], slopes.log2[e, pair], slopes.log2[f, pair], slopes.log2[g, pair]
                for k in range(lanes):
                    bend = u * H0[k] + v * H1[k] + w * H2[k]
                    lean = m[l, x] * turn[y, k] + m[l, y] * turn[x, k] + n[x] * gamma[y, k] + n[y] * gamma[x, k]
                    phi[k] += scale * (h[k] * twist[pair, k] - lean + d[k] * bend)


@kernel
def _single_layer_curvature(surface: Surface, slopes: Slopes, t: int, out: Floats) -> None:
    """∇∇ψ of a triangle into its row of `out`."""
    e, f, g = surface.sides[t]
    m, n, turn, eighth = surface.outward[t], surface.normal[t], slopes.turn, 1 / (8 * pi)
    G0, G1, G2 = slopes.log[e], slopes.log[f], slopes.log[g]
    for pair in range(6):
        x, y = PAIR_TABLE[pair]
        psi = out[pair, len(surface.points) + t]
        for k in range(len(psi)):
            total = n[x] * turn[y, k] + n[y] * turn[x, k]
            total -= m[0, x] * G0[y, k] + m[1, x] * G1[y, k] + m[2, x] * G2[y, k]
            total -= m[0, y] * G0[x, k] + m[1, y] * G1[x, k] + m[2, y] * G2[x, k]
            psi[k] = eighth * total


@kernel
def evaluate(
    points: Floats,
    surface: Surface,
    through: Ints,
    winding: Floats,
    out: Floats,
    gradient: Floats,
    hessian: Floats,
    lanes: int,
) -> None:
    """Rows of φ and ψ, gradients and Hessians, each unless its table has no rows, and the winding numbers.

    out: (n, c + f). gradient: (n, 3, c + f). hessian: (n, 6, c + f).
    """
    size = len(surface.points) + len(surface.triangles)
    first_order, second_order = len(gradient) > 0, len(hessian) > 0
    seen, slopes, table = room(surface, lanes), slope_room(surface, lanes), np.empty((6, size, lanes))
    for first in range(0, len(points), lanes):
        count = min(lanes, len(points) - first)
        look(points, first, surface, through, seen)
        windings(seen, first, winding)
        values(surface, seen, table[0])
        for k in range(count):
            out[first + k] = table[0, :, k]
        if first_order or second_order:
            edge_slopes(surface, seen, second_order, slopes)
        if first_order:
            _gradients(surface, seen, slopes, table[:3])
            for k in range(count):
                gradient[first + k] = table[:3, :, k]
        if second_order:
            hessians(surface, seen, slopes, table)
            for k in range(count):
                hessian[first + k] = table[:, :, k]
