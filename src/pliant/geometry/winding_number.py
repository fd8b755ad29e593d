"""Winding numbers of triangle soups (Jacobson 2013; fast: Barill, Dickson, Schmidt, Levin, Jacobson 2018).

The winding number of a surface about q is the solid angle it covers over 4π: 1 inside a closed surface that faces
outwards, 0 outside, in between for open ones. A triangle with corners a, b, c seen from q covers
``Ω = 2 atan2(a·(b×c), |a||b||c| + (a·b)|c| + (b·c)|a| + (c·a)|b|)``.

Far away, a node of the box tree acts as its moments about its area centre p. With ``d = p − q``, ``r = |d|`` and
``f_i = d_i / r³``, the field of a dipole, Taylor's series to the second derivative is

    4π w ≈ N_i f_i + M_ij ∂_j f_i + ½ T_ijk ∂_jk f_i
         = (N·d + tr M) / r³ − (3 dᵀM d + 9/2 d·tr T) / r⁵ + 15/2 T(d, d, d) / r⁷

    N = ∫ n,   M = ∫ n (x − p)ᵀ,   T = ∫ n (x − p)(x − p)ᵀ   over the node's triangles,

of which only the symmetric parts matter. A node counts as far where r is larger than beta times the distance from p to
the farthest corner of its box.
"""

from __future__ import annotations

import numpy as np

from pliant.core.topology import Floats
from pliant.geometry.bvh import POINTS_PER_THREAD, Tree
from pliant.native import in_threads, kernels


def moments(tree: Tree) -> Floats:
    """(nodes, 23): area centre p, distance from p to the box's farthest corner, N (3), M (6 entries) and T (10)."""
    out = np.zeros((len(tree.right), 23))
    kernels.winding_moments(tree, out, np.zeros(len(out)))
    return out


def winding_fast(points: Floats, tree: Tree, node_moments: Floats, beta: float) -> Floats:
    """(q,) winding numbers, far nodes by their moments."""
    out = np.empty(len(points))
    in_threads(
        lambda a, b: kernels.winding_fast(points, tree, node_moments, beta, out, a, b), len(points), POINTS_PER_THREAD
    )
    return out


def winding_exact(points: Floats, corners: Floats) -> Floats:
    """(q,) winding numbers, every triangle by its solid angle."""
    out = np.empty(len(points))
    span = max(1, 100_000 // max(len(corners), 1))
    in_threads(lambda a, b: kernels.winding_exact(points, corners, out, a, b), len(points), span)
    return out
