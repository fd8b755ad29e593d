"""Dense products and Cholesky solves of a few hundred unknowns, on one core.

For matrices of this size threads take longer to meet than the work takes, many times longer where another process keeps
a core busy.
"""

from __future__ import annotations

import numpy as np

from pliant.core.topology import Floats
from pliant.native import kernels
from pliant.numerics.linalg import one_blas_thread


def transposed_product(A: Floats, X: Floats) -> Floats:
    """Aᵀ X (m, k) of an A (n, m) and an X (n, k) with few columns."""
    out = np.zeros((X.shape[1], A.shape[1]))
    kernels.dense_transposed_product(A, X.T, out)
    return out.T.copy()


def add_squares(H: Floats, rows: Floats, weight: float) -> None:
    """H (n, n) += weight Σ r rᵀ over rows (k, n)."""
    kernels.dense_add_squares(H, rows, weight)


def solve_definite(A: Floats, b: Floats) -> Floats:
    """The x (n,) with A x = b for a symmetric positive definite A, of which the lower part is read; NaN for others."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    with one_blas_thread():
        try:
            factor = cho_factor(A, lower=True, check_finite=False)
        except LinAlgError:
            return np.full(len(b), np.nan)
        return np.asarray(cho_solve(factor, b, check_finite=False))
