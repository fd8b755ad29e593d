"""Conjugate gradients for a matrix A that is solved with a few times only, each right-hand side by itself.

With ``D = diag A`` as preconditioner the number of iterations grows with the square root of the condition of
``D^-½ A D^-½``. That of a Laplacian inside a surface where all is given grows with the depth of its vertices in springs
and not with their number, where the springs grow with the depth, too: a few dozen then do what a factorisation does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant.core.topology import Floats

RESIDUAL_REDUCTION = 1e-14
"""Of the residual in the norm of D⁻¹: rounding, about."""
MOST_CG_ITERATIONS = 1000


def conjugate_gradients(A: Any, b: Floats) -> Floats | None:
    """(n, k) the x with ``A x = b``, A sparse, positive definite; None if `MOST_CG_ITERATIONS` do not suffice."""
    over = 1 / A.diagonal()[:, None]
    x, r = np.zeros_like(b), b.copy()
    p = z = over * r
    rz = np.einsum("ij,ij->j", r, z)
    small = RESIDUAL_REDUCTION**2 * rz
    for _ in range(MOST_CG_ITERATIONS):
        if (rz <= small).all():
            return x
        Ap = A @ p
        step = _ratio(rz, np.einsum("ij,ij->j", p, Ap))
        x += step * p
        r -= step * Ap
        z = over * r
        before, rz = rz, np.einsum("ij,ij->j", r, z)
        p = z + _ratio(rz, before) * p
    return None


def _ratio(a: Floats, b: Floats) -> Floats:
    """a / b, 0 where b is."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
