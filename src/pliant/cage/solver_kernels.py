"""The Gauss–Newton matrix of a caged shape, compiled.

With ``G = [1; J]``, the derivative of the state X by the cage's vertices, the terms that are linear in X give
``H = Gᵀ (A ⊗ 1₃) G``. A column of G has a one and an entry for each triangle at its vertex, a row of J nine entries, so
both products are sums over few rows, not dense products.
"""

from __future__ import annotations

import numpy as np

from pliant.jit import kernel, parallel_kernel, prange
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
def _right_product(left: Floats, J: Floats, triangles: Ints, count: int, out: Floats) -> None:
    """Times G: (3 c,)."""
    for v in range(count):
        for z in range(3):
            out[3 * v + z] = left[z, v]
    for t in range(len(triangles)):
        p, q, r = left[0, count + t], left[1, count + t], left[2, count + t]
        for k in range(3):
            v = 3 * triangles[t, k]
            for z in range(3):
                out[v + z] += p * J[t, 0, k, z] + q * J[t, 1, k, z] + r * J[t, 2, k, z]


@parallel_kernel
def gauss_newton_matrix(A: Floats, J: Floats, triangles: Ints, count: int) -> Floats:
    """H (3 c, 3 c) from A (c + f, c + f), J (f, 3, 3, 3) as [:, x, corner, y] and the number c of vertices."""
    H = np.empty((3 * count, 3 * count))
    corners, start = _incidence(triangles, count)
    for v in prange(count):
        left = np.empty((3, len(A)))
        for y in range(3):
            _left_product(A, J, corners[start[v] : start[v + 1]], v, y, left)
            _right_product(left, J, triangles, count, H[3 * v + y])
    return H
