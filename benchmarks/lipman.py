"""Green coordinates as Lipman, Levin and Cohen-Or (2008) publish them in their pseudo-code, and in plain NumPy.

What benchmarks/transfer.py compares with. The pseudo-code is compiled by Numba (``pip install numba``) and runs on all
cores, just as pliant's kernels do.
"""

from __future__ import annotations

from math import acos, atan, cos, log, pi, sin, sqrt

import numpy as np
from numba import njit, prange

from pliant.core.topology import Floats, Ints
from pliant.engines.transfer.green import CageSurface

Vector = tuple[float, float, float]
ZERO = (0.0, 0.0, 0.0)
kernel = njit(cache=True, error_model="numpy")
parallel_kernel = njit(cache=True, error_model="numpy", parallel=True)


@kernel
def minus(a: Vector, b: Vector) -> Vector:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@kernel
def dot(a: Vector, b: Vector) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def cross(a: Vector, b: Vector) -> Vector:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@kernel
def times(s: float, a: Vector) -> Vector:
    return s * a[0], s * a[1], s * a[2]


@kernel
def norm(a: Vector) -> float:
    return sqrt(dot(a, a))


@kernel
def _angle(u: Vector, v: Vector) -> float:
    return acos(min(max(dot(u, v) / (norm(u) * norm(v)), -1.0), 1.0))


@kernel
def _sign(x: float) -> float:
    return 1.0 if x > 0 else (-1.0 if x < 0 else 0.0)


@kernel
def _antiderivative(theta: float, c: float, lamda: float) -> float:
    S, C = sin(theta), cos(theta)
    inner = 1 - 2 * c * C / (c * (1 + C) + lamda + sqrt(lamda * lamda + lamda * c * S * S))
    turned = 2 * sqrt(c) * atan(sqrt(c) * C / sqrt(lamda + S * S * c))
    return -_sign(S) / 2 * (turned + sqrt(lamda) * log(2 * sqrt(lamda) * S * S / (1 - C) ** 2 * inner))


@kernel
def _triangle_integral(p: Vector, v1: Vector, v2: Vector) -> float:
    """GCTriInt(p, v1, v2, η) of the paper, with η the origin."""
    alpha, beta = _angle(minus(v2, v1), minus(p, v1)), _angle(minus(v1, p), minus(v2, p))
    away = minus(p, v1)
    lamda, c = dot(away, away) * sin(alpha) ** 2, dot(p, p)
    low, high = _antiderivative(pi - alpha, c, lamda), _antiderivative(pi - alpha - beta, c, lamda)
    return -abs(low - high - sqrt(c) * beta) / (4 * pi)


@kernel
def _signed_integral(p: Vector, v1: Vector, v2: Vector, n: Vector) -> float:
    return _sign(dot(cross(minus(v1, p), minus(v2, p)), n)) * _triangle_integral(p, v1, v2)


@kernel
def _side_normal(v1: Vector, v2: Vector) -> Vector:
    q = cross(v2, v1)
    return times(1 / norm(q), q)


@kernel
def _add_triangle(a: Floats, corners: Ints, n: Vector, phi: Floats) -> float:
    """One face of the cage, its corners seen from the point; returns ψ and adds to φ."""
    i, j, k = corners[0], corners[1], corners[2]
    u, v, w = (a[i, 0], a[i, 1], a[i, 2]), (a[j, 0], a[j, 1], a[j, 2]), (a[k, 0], a[k, 1], a[k, 2])
    p = times(dot(u, n), n)
    I = -abs(_signed_integral(p, u, v, n) + _signed_integral(p, v, w, n) + _signed_integral(p, w, u, n))
    N0, N1, N2 = _side_normal(u, v), _side_normal(v, w), _side_normal(w, u)
    II0, II1, II2 = _triangle_integral(ZERO, v, u), _triangle_integral(ZERO, w, v), _triangle_integral(ZERO, u, w)
    total = (
        I * n[0] + II0 * N0[0] + II1 * N1[0] + II2 * N2[0],
        I * n[1] + II0 * N0[1] + II1 * N1[1] + II2 * N2[1],
        I * n[2] + II0 * N0[2] + II1 * N1[2] + II2 * N2[2],
    )
    if norm(total) > 1e-15:
        phi[i] += dot(N1, total) / dot(N1, u)
        phi[j] += dot(N2, total) / dot(N2, v)
        phi[k] += dot(N0, total) / dot(N0, w)
    return -I


@parallel_kernel
def pseudo_code(points: Floats, surface: CageSurface, out: Floats) -> None:
    """Rows (n, c + f) of φ and ψ."""
    count = len(surface.points)
    for k in prange(len(points)):
        a = surface.points - points[k]
        out[k, :count] = 0.0
        for t in range(len(surface.triangles)):
            n = surface.normal[t, 0], surface.normal[t, 1], surface.normal[t, 2]
            out[k, count + t] = _add_triangle(a, surface.triangles[t], n, out[k, :count])


def plain_numpy(points: Floats, surface: CageSurface) -> Floats:
    """pliant's closed form, whole arrays at a time, without a compiler."""
    a = surface.points - points[:, None]
    r = np.linalg.norm(a, axis=2)
    i, j = surface.edges.T
    s = r[:, i] + r[:, j]
    logs = np.log((s + surface.length) / (s - surface.length))[:, surface.sides]
    corners, radii = a[:, surface.triangles], r[:, surface.triangles]
    u, v, w = (corners[:, :, k] for k in range(3))
    x, y, z = (radii[:, :, k] for k in range(3))
    below = x * y * z + (u * v).sum(-1) * z + (v * w).sum(-1) * x + (w * u).sum(-1) * y
    angle = 2 * np.arctan2((u * np.cross(v, w)).sum(-1), below)
    d = np.einsum("ntx,tx->nt", u, surface.normal)
    h = np.einsum("ntlx,tlx->ntl", corners, surface.outward)
    across = np.einsum("tlq,ntq->ntl", surface.gram, logs)
    parts = (h * angle[..., None] + d[..., None] * across) / (surface.height * 4 * np.pi)
    count = len(surface.points)
    opposite = np.roll(surface.triangles, 1, axis=1).ravel()
    spread = np.zeros((opposite.size, count))
    spread[np.arange(opposite.size), opposite] = 1.0
    psi = ((h * logs).sum(-1) - d * angle) / (4 * np.pi)
    return np.concatenate([parts.reshape(len(points), -1) @ spread, psi], axis=1)
