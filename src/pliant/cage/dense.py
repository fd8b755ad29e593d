"""Dense products and Cholesky solves of a few hundred unknowns, on one core.

For matrices of this size threads take longer to meet than the work takes, many times longer where another process keeps
a core busy.
"""

from __future__ import annotations

import numpy as np

from pliant.jit import kernel
from pliant.linalg import one_blas_thread
from pliant.topology import Floats


@kernel
def transposed_product(A: Floats, X: Floats) -> Floats:
    """Aᵀ X (m, k) of an A (n, m) and an X (n, k) with few columns."""
    out = np.zeros((X.shape[1], A.shape[1]))
    for j in range(len(A)):
        row = A[j]
        for x in range(X.shape[1]):
            factor, sums = X[j, x], out[x]
            for i in range(len(row)):
                sums[i] += factor * row[i]
    return out.T.copy()


@kernel
def add_squares(H: Floats, rows: Floats, weight: float) -> None:
    """H (n, n) += weight Σ r rᵀ over rows (k, n)."""
    for row in rows:
        for i in range(len(row)):
            factor, line = weight * row[i], H[i]
            for j in range(len(row)):
                line[j] += factor * row[j]


def solve_definite(A: Floats, b: Floats) -> Floats:
    """The x (n,) with A x = b for a symmetric positive definite A, of which the lower part is read; NaN for others."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    with one_blas_thread():
        try:
            factor = cho_factor(A, lower=True, check_finite=False)
        except LinAlgError:
            return np.full(len(b), np.nan)
        return np.asarray(cho_solve(factor, b, check_finite=False))
