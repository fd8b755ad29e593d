"""Green coordinates and their derivatives in forms that stay exact near the cage, compiled (green.cpp).

Each edge's quantities are computed once and used by its two triangles. Seen from p, an edge from v_i to v_j has
``a = v − p``, ``r = |a|``, ``s = r_i + r_j``, ``P = r_i r_j``, ``D = a_i·a_j`` and ``X = P + D``, for which
``(s² − ℓ²) / 2 = X``. So ``Λ = log((s + ℓ)² / 2X)``.

Near an edge X is a small difference of large numbers. There everything is written in the vector w from p to the edge's
line, ``a = w + σ t`` (t the edge's direction), ``ρ = |w|``, taken from the nearer end:

    X = ρ² ℓ² / (P − D)            Y = r_i σ_j + r_j σ_i = ρ² (σ_j² − σ_i²) / (r_i σ_j − r_j σ_i)
    tan(Ω/2) = ℓ H d / (r_k X + s (ρ² − H h) + Y a_k·t),     d = w·n,  h = w·m,   v_k the opposite vertex

Both triangles at the edge see the same w, so that their solid angles fit together to the last digit however near p
comes. Each edge has a base: w where it is near, else a of its nearer end, which is exact near a vertex. d and h are
products of bases, so they are exact near edges and vertices too.

Derivatives. With the edge's ``K = ℓ/X``, ``b = a_i/r_i + a_j/r_j``, ``q = s / (P X)`` and ``c = a_i×a_j`` (near the
edge, ``b = (s w + Y t) / P`` and ``c = ℓ w×t``):

    ∇Λ = K b                      ∇∇Λ = (K s/X) b bᵀ + K Σ (â âᵀ − 1) / r
    ∇Ω = Σ q c                    ∇∇Ω = Σ sym(c ∇qᵀ),   ∇q = q (s/X b − b/s + a_i/r_i² + a_j/r_j²)

summed over a triangle's sides (the parts of ``q ∇c`` are skew and cancel), and

    4π ∇ψ = Ω n − g               4π ∇∇ψ = n ∇Ωᵀ − Σ m_l ∇Λ_lᵀ
    4π ∇φ = (−m_l Ω + h_l ∇Ω − n (m_l·g) + d γ_l) / H_l,   γ_l = Σ_q (m_l·m_q) ∇Λ_q
    4π ∇∇φ = (−m_l ∇Ωᵀ − ∇Ω m_lᵀ + h_l ∇∇Ω − n γ_lᵀ − γ_l nᵀ + d Σ_q (m_l·m_q) ∇∇Λ_q) / H_l

for the vertex opposite side l. Symmetric matrices are stored as xx, yy, zz, xy, xz, yz.

Points are taken in groups of `LANES`, so that the loops over a group become vector instructions. The few lanes in which
an edge is near are computed again, one by one. Rows of the results hold the cage's vertices first, then its triangles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.core.topology import Floats, Ints
from pliant.geometry.bvh import POINTS_PER_THREAD
from pliant.native import in_threads, kernels

LANES = 32
"""Points in a group; as in lanes.h."""


class CageSurface(NamedTuple):
    """Tables of a cage for the kernels."""

    points: Floats
    """(c, 3)"""
    edges: Ints
    """(e, 2)"""
    length: Floats
    """(e,) ℓ"""
    tangent: Floats
    """(e, 3) t, from the first end to the second"""
    triangles: Ints
    """(f, 3)"""
    sides: Ints
    """(f, 3) the edge from corner l to l + 1"""
    normal: Floats
    """(f, 3) n"""
    double_area: Floats
    """(f,)"""
    outward: Floats
    """(f, 3, 3) m, in the triangle's plane, for each side"""
    height: Floats
    """(f, 3) H over each side"""
    gram: Floats
    """(f, 3, 3) m_l · m_q"""

    @property
    def size(self) -> int:
        """c + f"""
        return len(self.points) + len(self.triangles)


def evaluate(points: Floats, surface: CageSurface, through: Ints, order: int) -> tuple[list[Floats], Floats]:
    """Rows of φ and ψ (n, c + f), their gradients (n, 3, c + f) and Hessians (n, 6, c + f) up to `order`; and windings.

    through: (n,) the triangle by which a point that is not inside is entered, whose solid angle then takes up what all
    of them lack of 4π; -1 for those inside.
    """
    count, size, winding = len(points), surface.size, np.empty(len(points))
    tables = [np.empty((count, size))]
    tables += [np.empty((count if order >= k else 0, rows, size)) for k, rows in ((1, 3), (2, 6))]
    in_threads(
        lambda a, b: kernels.green_rows(points, surface, through, winding, *tables, a, b), count, POINTS_PER_THREAD
    )
    return tables[: order + 1], winding


def evaluate_blocks(points: Floats, surface: CageSurface) -> tuple[NDArray[np.float32], Floats]:
    """φ and ψ of points inside in blocks (n / lanes, c + f, lanes), filled up with the last one, and windings (n,)."""
    blocks = np.empty((-(-len(points) // LANES), surface.size, LANES), dtype=np.float32)
    winding = np.empty(len(points))
    in_threads(
        lambda a, b: kernels.green_blocks(points, surface, winding, blocks, a, b),
        len(blocks),
        POINTS_PER_THREAD // LANES,
    )
    return blocks, winding


def hessian_columns(points: Floats, weights: Floats, surface: CageSurface) -> Floats:
    """Hessians at samples (m, 3) with weights (m,) as C (c + f, 5 m, filled up with zeros), by which C Cᵀ is
    Σ weight ∇∇[φ ψ] : ∇∇[φ ψ].

    φ and ψ are harmonic, ``zz = −xx − yy``, so five columns a sample do for the six of a symmetric Hessian:

        xx² + yy² + zz² + 2 (xy² + xz² + yz²) = 2 (xx + yy/2)² + 3/2 yy² + 2 (xy² + xz² + yz²)
    """
    out = np.empty((surface.size, -(-len(points) // LANES) * LANES * 5))
    kernels.green_hessian_columns(points, weights, surface, out, 0, len(points))
    return out
