"""The Gauss–Newton matrix of a caged shape, compiled.

With ``G = [1; J]``, the derivative of the state X by the cage's vertices, the terms that are linear in X give
``H = Gᵀ (A ⊗ 1₃) G``. A column of G has a one and an entry for each triangle at its vertex, a row of J nine entries, so
both products are sums over few rows, not dense products.

Newton's matrix has ``Σ λ·∂²N/∂V²`` besides, where λ is the energy's derivative by the normals. It is a 6 × 6 block for
each triangle, over its edge vectors a and b; the differences of ``∂(λ·N)/∂(a, b)`` are exact enough for it.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from pliant.jit import kernel
from pliant.topology import Floats, Ints


@kernel
def _incidence(triangles: Ints, count: int) -> tuple[Ints, Ints]:
    """Corners (3 t + k) at each vertex, one vertex after the other, and where each starts."""
    start = np.zeros(count + 1, np.int64)
    for v in triangles.flat:
        start[v + 1] += 1
    start = np.cumsum(start)
    at, corners = start.copy(), np.empty(triangles.size, np.int64)
    for t in range(len(triangles)):
        for k in range(3):
            v = triangles[t, k]
            corners[at[v]] = 3 * t + k
            at[v] += 1
    return corners, start


@kernel
def _left_product(A: Floats, J: Floats, corners: Ints, v: int, y: int, out: Floats) -> None:
    """Column (v, y) of G times A, for x, y and z: (3, c + f)."""
    count = len(A) - len(J)
    out[:] = 0.0
    out[y] = A[v]
    for corner in corners:
        t, k = corner // 3, corner % 3
        for x in range(3):
            factor = J[t, x, k, y]
            for i in range(len(A)):
                out[x, i] += factor * A[count + t, i]


@kernel
def _right_product(left: Floats, J: Floats, triangles: Ints, last: int, count: int, out: Floats) -> None:
    """Times G: (3 c,), as far as the vertex `last`."""
    for v in range(last + 1):
        for z in range(3):
            out[3 * v + z] = left[z, v]
    for t in range(len(triangles)):
        p, q, r = left[0, count + t], left[1, count + t], left[2, count + t]
        for k in range(3):
            v = triangles[t, k]
            if v <= last:
                for z in range(3):
                    out[3 * v + z] += p * J[t, 0, k, z] + q * J[t, 1, k, z] + r * J[t, 2, k, z]


@kernel
def gauss_newton_matrix(A: Floats, J: Floats, triangles: Ints, count: int) -> Floats:
    """The blocks on and below the diagonal of H (3 c, 3 c), the rest being 0, from A (c + f, c + f) and J (f, 3, 3, 3).

    J is [:, x, corner, y], and `count` the number c of vertices.
    """
    H = np.zeros((3 * count, 3 * count))
    corners, start = _incidence(triangles, count)
    left = np.empty((3, len(A)))
    for v in range(count):
        for y in range(3):
            _left_product(A, J, corners[start[v] : start[v + 1]], v, y, left)
            _right_product(left, J, triangles, v, count, H[3 * v + y])
    return H


@kernel
def _pull(D: Floats, a0: Floats, b0: Floats, area: float, rounded: float, force: Floats, out: Floats) -> None:
    """∂(λ·N)/∂(a, b) of one triangle with edge vectors D = (a, b), as `ScaledNormals.jacobian` has it."""
    aa, ab, bb = (a0 * a0).sum(), (a0 * b0).sum(), (b0 * b0).sum()
    form = bb * (D[:3] * D[:3]).sum() - 2 * ab * (D[:3] * D[3:]).sum() + aa * (D[3:] * D[3:]).sum()
    s = sqrt(max(form, 0.0) / 2) / area
    nx, ny, nz = D[1] * D[5] - D[2] * D[4], D[2] * D[3] - D[0] * D[5], D[0] * D[4] - D[1] * D[3]
    scale = 1 / (area * s * s)
    u, v, w = scale * nx, scale * ny, scale * nz
    square, d2 = u * u + v * v + w * w, rounded * rounded
    plain = square >= d2
    k = 1 / sqrt(square) if plain else 2 * rounded / (square + d2)
    slope = -k * k * k if plain else -4 * rounded / (square + d2) ** 2
    along = force[0] * u + force[1] * v + force[2] * w
    by_s = -along * (k + 2 * slope * square)
    x, y, z = force[0] * k + slope * along * u, force[1] * k + slope * along * v, force[2] * k + slope * along * w
    factor, over = by_s / (2 * area * area * s), s * scale
    for i in range(3):
        out[i] = factor * (bb * D[i] - ab * D[3 + i])
        out[3 + i] = factor * (aa * D[3 + i] - ab * D[i])
    out[0] += over * (D[4] * z - D[5] * y)
    out[1] += over * (D[5] * x - D[3] * z)
    out[2] += over * (D[3] * y - D[4] * x)
    out[3] -= over * (D[1] * z - D[2] * y)
    out[4] -= over * (D[2] * x - D[0] * z)
    out[5] -= over * (D[0] * y - D[1] * x)


@kernel
def normal_curvatures(
    a: Floats, b: Floats, a0: Floats, b0: Floats, area: Floats, rounded: float, force: Floats
) -> Floats:
    """(f, 6, 6) λ·∂²N/∂(a, b)² from central differences; all arguments (f, 3), twice the area at rest (f,)."""
    out = np.empty((len(a), 6, 6))
    D, low, high = np.empty(6), np.empty(6), np.empty(6)
    for t in range(len(a)):
        D[:3], D[3:] = a[t], b[t]
        step = 1e-5 * sqrt((D * D).sum())
        for i in range(6):
            middle = D[i]
            D[i] = middle - step
            _pull(D, a0[t], b0[t], area[t], rounded, force[t], low)
            D[i] = middle + step
            _pull(D, a0[t], b0[t], area[t], rounded, force[t], high)
            D[i] = middle
            for j in range(6):
                out[t, i, j] = (high[j] - low[j]) / (2 * step)
        for i in range(6):
            for j in range(i):
                out[t, i, j] = out[t, j, i] = 0.5 * (out[t, i, j] + out[t, j, i])
    return out


@kernel
def add_curvatures(H: Floats, K: Floats, triangles: Ints) -> None:
    """Add blocks (f, 6, 6) over the edge vectors to H (3 c, 3 c): a = v_1 − v_0, b = v_2 − v_1."""
    signs = np.array([[-1.0, 0.0], [1.0, -1.0], [0.0, 1.0]])
    for t in range(len(triangles)):
        for p in range(3):
            for q in range(3):
                i, j = 3 * triangles[t, p], 3 * triangles[t, q]
                for e in range(2):
                    for f in range(2):
                        sign = signs[p, e] * signs[q, f]
                        if sign != 0:
                            for x in range(3):
                                for y in range(3):
                                    H[i + x, j + y] += sign * K[t, 3 * e + x, 3 * f + y]
