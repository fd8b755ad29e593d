"""Compiled sums over quadrature points and nodes; the equations are in `pliant.elastic.warping`.

Matrices are rows of nine numbers, symmetric ones of six: xx, yy, zz, yz, xz, xy. Each sum runs over one list in one
order, so results do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.jit import inline_kernel, parallel_kernel, prange
from pliant.topology import Ints

Reals = NDArray[Any]
"""Of single or double precision."""
Six = tuple[float, float, float, float, float, float]


@inline_kernel
def _turned_back(start: Ints, node: Ints, gradient: Reals, x: Reals, R: Reals, q: int) -> tuple[float, ...]:
    """S = Rᵀ F at a quadrature point, F = Σ_I x_I g_Iᵀ."""
    zero = x.dtype.type(0)
    f00, f01, f02, f10, f11, f12, f20, f21, f22 = zero, zero, zero, zero, zero, zero, zero, zero, zero
    for k in range(start[q], start[q + 1]):
        i = node[k]
        a, b, c = gradient[k, 0], gradient[k, 1], gradient[k, 2]
        x0, x1, x2 = x[i, 0], x[i, 1], x[i, 2]
        f00 += x0 * a
        f01 += x0 * b
        f02 += x0 * c
        f10 += x1 * a
        f11 += x1 * b
        f12 += x1 * c
        f20 += x2 * a
        f21 += x2 * b
        f22 += x2 * c
    r00, r01, r02, r10, r11, r12 = R[q, 0], R[q, 1], R[q, 2], R[q, 3], R[q, 4], R[q, 5]
    r20, r21, r22 = R[q, 6], R[q, 7], R[q, 8]
    return (
        r00 * f00 + r10 * f10 + r20 * f20, r00 * f01 + r10 * f11 + r20 * f21, r00 * f02 + r10 * f12 + r20 * f22,
        r01 * f00 + r11 * f10 + r21 * f20, r01 * f01 + r11 * f11 + r21 * f21, r01 * f02 + r11 * f12 + r21 * f22,
        r02 * f00 + r12 * f10 + r22 * f20, r02 * f01 + r12 * f11 + r22 * f21, r02 * f02 + r12 * f12 + r22 * f22,
    )  # fmt: skip


@inline_kernel
def _put_stress(P: Reals, q: int, R: Reals, lam: float, mu: float, e: Six) -> None:
    """P = R (2μ ε + λ tr(ε) 1) for a strain ε."""
    bulk = lam * (e[0] + e[1] + e[2])
    xx, yy, zz = 2 * mu * e[0] + bulk, 2 * mu * e[1] + bulk, 2 * mu * e[2] + bulk
    yz, xz, xy = 2 * mu * e[3], 2 * mu * e[4], 2 * mu * e[5]
    for i in range(3):
        a, b, c = R[q, 3 * i], R[q, 3 * i + 1], R[q, 3 * i + 2]
        P[q, 3 * i] = a * xx + b * xy + c * xz
        P[q, 3 * i + 1] = a * xy + b * yy + c * yz
        P[q, 3 * i + 2] = a * xz + b * yz + c * zz


@parallel_kernel
def stresses(
    start: Ints, node: Ints, gradient: Reals, x: Reals, R: Reals, lam: Reals, mu: Reals, shift: Reals, P: Reals
) -> None:
    """P (q, 9) = w R C:(sym(Rᵀ F) - shift); λ and μ are multiplied with the weights w, shift is (q, 6)."""
    half = x.dtype.type(0.5)
    for q in prange(len(start) - 1):
        s = _turned_back(start, node, gradient, x, R, q)
        strain = (
            s[0] - shift[q, 0], s[4] - shift[q, 1], s[8] - shift[q, 2],
            half * (s[5] + s[7]) - shift[q, 3], half * (s[2] + s[6]) - shift[q, 4], half * (s[1] + s[3]) - shift[q, 5],
        )  # fmt: skip
        _put_stress(P, q, R, lam[q], mu[q], strain)


@parallel_kernel
def stress_changes(
    start: Ints, node: Ints, gradient: Reals, x: Reals, R: Reals, lam: Reals, mu: Reals, P: Reals
) -> None:
    """P (q, 9) = w R C:sym(Rᵀ F): what a displacement x changes."""
    half = x.dtype.type(0.5)
    for q in prange(len(start) - 1):
        s = _turned_back(start, node, gradient, x, R, q)
        strain = (s[0], s[4], s[8], half * (s[5] + s[7]), half * (s[2] + s[6]), half * (s[1] + s[3]))
        _put_stress(P, q, R, lam[q], mu[q], strain)


@parallel_kernel
def gathered(start: Ints, point: Reals, gradient: Reals, P: Reals, scale: float, mass: Reals, x: Reals) -> Reals:
    """(nodes, 3) scale · Σ_q P_q g_I + mass_I x_I, with the lists of nodes: start, point and gradient."""
    count = len(mass)
    out = np.empty((count, 3), P.dtype)
    factor = P.dtype.type(scale)
    for i in prange(count):
        y0, y1, y2 = P.dtype.type(0), P.dtype.type(0), P.dtype.type(0)
        for k in range(start[i], start[i + 1]):
            q = point[k]
            a, b, c = gradient[k, 0], gradient[k, 1], gradient[k, 2]
            y0 += P[q, 0] * a + P[q, 1] * b + P[q, 2] * c
            y1 += P[q, 3] * a + P[q, 4] * b + P[q, 5] * c
            y2 += P[q, 6] * a + P[q, 7] * b + P[q, 8] * c
        out[i, 0] = factor * y0 + mass[i] * x[i, 0]
        out[i, 1] = factor * y1 + mass[i] * x[i, 1]
        out[i, 2] = factor * y2 + mass[i] * x[i, 2]
    return out


@parallel_kernel
def strains(start: Ints, node: Ints, gradient: Reals, x: Reals, R: Reals, strain: Reals, stretch: Reals) -> None:
    """(q, 6) sym(Rᵀ F) - 1, and (q,) J = det F."""
    for q in prange(len(start) - 1):
        s = _turned_back(start, node, gradient, x, R, q)
        strain[q, 0], strain[q, 1], strain[q, 2] = s[0] - 1, s[4] - 1, s[8] - 1
        strain[q, 3], strain[q, 4], strain[q, 5] = 0.5 * (s[5] + s[7]), 0.5 * (s[2] + s[6]), 0.5 * (s[1] + s[3])
        stretch[q] = (
            s[0] * (s[4] * s[8] - s[5] * s[7]) - s[1] * (s[3] * s[8] - s[5] * s[6]) + s[2] * (s[3] * s[7] - s[4] * s[6])
        )


@parallel_kernel
def interpolated(start: Ints, node: Ints, phi: Reals, x: Reals) -> Reals:
    """(p, 3) Σ_I φ_I x_I."""
    out = np.empty((len(start) - 1, 3))
    for p in prange(len(start) - 1):
        a, b, c = 0.0, 0.0, 0.0
        for k in range(start[p], start[p + 1]):
            i, share = node[k], phi[k]
            a += share * x[i, 0]
            b += share * x[i, 1]
            c += share * x[i, 2]
        out[p, 0], out[p, 1], out[p, 2] = a, b, c
    return out


@parallel_kernel
def carried(start: Ints, bone: Ints, weight: Reals, X: Reals, R: Reals, shift: Reals) -> Reals:
    """(p, 3) Σ_b w_b (R_b X + shift_b): places X carried along with the bones, R (b, 9) and shift (b, 3)."""
    out = np.empty((len(start) - 1, 3))
    for p in prange(len(start) - 1):
        a, b, c = 0.0, 0.0, 0.0
        x, y, z = X[p, 0], X[p, 1], X[p, 2]
        for k in range(start[p], start[p + 1]):
            i, share = bone[k], weight[k]
            a += share * (R[i, 0] * x + R[i, 1] * y + R[i, 2] * z + shift[i, 0])
            b += share * (R[i, 3] * x + R[i, 4] * y + R[i, 5] * z + shift[i, 1])
            c += share * (R[i, 6] * x + R[i, 7] * y + R[i, 8] * z + shift[i, 2])
        out[p, 0], out[p, 1], out[p, 2] = a, b, c
    return out
