"""The Gauss–Newton matrix of a caged shape, compiled (solver.cpp), and its solve on one core.

With ``G = [1; J]``, the derivative of the state X by the cage's vertices, the terms that are linear in X give
``H = Gᵀ (A ⊗ 1₃) G``. A column of G has a one and an entry for each triangle at its vertex, a row of J nine entries, so
both products are sums over few rows, not dense products.

Newton's matrix has ``Σ λ·∂²N/∂V²`` besides, where λ is the energy's derivative by the normals. It is a 6 × 6 block for
each triangle, over its edge vectors a and b; the differences of ``∂(λ·N)/∂(a, b)`` are exact enough for it.

For matrices of this size threads take longer to meet than the work takes, many times longer where another process keeps
a core busy.
"""

from __future__ import annotations

import numpy as np

from pliant.core.topology import Floats, Ints
from pliant.native import kernels
from pliant.numerics.linalg import one_blas_thread


def gauss_newton_matrix(A: Floats, J: Floats, triangles: Ints, count: int) -> Floats:
    """The blocks on and below the diagonal of H (3 c, 3 c), the rest being 0, from A (c + f, c + f) and J (f, 3, 3, 3).

    J is [:, x, corner, y], and `count` the number c of vertices.
    """
    H = np.zeros((3 * count, 3 * count))
    kernels.cage_gauss_newton_matrix(A, J, triangles, H)
    return H


def normal_curvatures(
    a: Floats, b: Floats, a0: Floats, b0: Floats, area: Floats, rounded: float, force: Floats
) -> Floats:
    """(f, 6, 6) λ·∂²N/∂(a, b)² from central differences; all arguments (f, 3), twice the area at rest (f,)."""
    out = np.empty((len(a), 6, 6))
    kernels.cage_normal_curvatures(a, b, a0, b0, area, rounded, force, out)
    return out


def add_curvatures(H: Floats, K: Floats, triangles: Ints) -> None:
    """Add blocks (f, 6, 6) over the edge vectors to H (3 c, 3 c): a = v_1 − v_0, b = v_2 − v_1."""
    kernels.cage_add_curvatures(H, K, triangles)


def transposed_product(A: Floats, X: Floats) -> Floats:
    """Aᵀ X (m, k) of an A (n, m) and an X (n, k) with few columns."""
    out = np.zeros((X.shape[1], A.shape[1]))
    kernels.dense_transposed_product(A, X.T, out)
    return out.T.copy()


def chained(rows: Floats, factors: Floats, J: Floats, triangles: Ints, count: int) -> Floats:
    """(k, 3 c) derivatives by V of ``Σ_r (rows X)·factors``, rows (k, r, c + f) and factors (k, r, 3): times G."""
    out = np.empty((len(rows), count, 3))
    kernels.cage_chained(np.ascontiguousarray(rows), np.ascontiguousarray(factors), J, triangles, out)
    return out.reshape(len(rows), 3 * count)


def add_squares(H: Floats, rows: Floats, weight: float) -> None:
    """The lower part of H (n, n) += weight Σ r rᵀ over rows (k, n)."""
    from scipy.linalg.blas import dsyrk

    if len(rows):
        with one_blas_thread():
            dsyrk(weight, rows.T, beta=1.0, c=H.T, overwrite_c=True)  # the upper part of what is H's transpose to it


def solve_definite(A: Floats, b: Floats) -> Floats:
    """The x (n,) with A x = b for a symmetric positive definite A, of which the lower part is read; NaN for others."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    with one_blas_thread():
        try:
            factor = cho_factor(A, lower=True, check_finite=False)
        except LinAlgError:
            return np.full(len(b), np.nan)
        return np.asarray(cho_solve(factor, b, check_finite=False))
