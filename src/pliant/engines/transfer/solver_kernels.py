"""The Gauss–Newton matrix of a caged shape, compiled (solver.cpp).

With ``G = [1; J]``, the derivative of the state X by the cage's vertices, the terms that are linear in X give
``H = Gᵀ (A ⊗ 1₃) G``. A column of G has a one and an entry for each triangle at its vertex, a row of J nine entries, so
both products are sums over few rows, not dense products.

Newton's matrix has ``Σ λ·∂²N/∂V²`` besides, where λ is the energy's derivative by the normals. It is a 6 × 6 block for
each triangle, over its edge vectors a and b; the differences of ``∂(λ·N)/∂(a, b)`` are exact enough for it.
"""

from __future__ import annotations

import numpy as np

from pliant.core.topology import Floats, Ints
from pliant.native import kernels


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
