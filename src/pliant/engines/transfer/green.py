"""Green coordinates (Lipman, Levin, Cohen-Or 2008) and their derivatives, in closed form.

A point p inside a cage of vertices v_i and triangles t_j follows the deformed cage v', t' by Eq. (3) of Chen et al.:

    p' = Σ φ_i(p) v'_i + Σ ψ_j(p) s_j n(t'_j)

For a triangle with vertices v0 v1 v2 and outward normal n: ``a_l = v_l − p``, ``r_l = |a_l|``, ``d = a_0·n``; for
side l (v_l to v_{l+1}, of length ℓ_l): m_l its outward normal within the plane, ``h_l = a_l·m_l``,
``H_l = 2 area / ℓ_l``. Then

    Λ_l = log((r_l + r_{l+1} + ℓ_l) / (r_l + r_{l+1} − ℓ_l))                 one for each edge of the cage
    Ω = 2 atan2(a_0·(a_1×a_2), r_0 r_1 r_2 + (a_0·a_1) r_2 + (a_1·a_2) r_0 + (a_2·a_0) r_1)
    g = Σ m_l Λ_l
    4π ψ = Σ h_l Λ_l − d Ω
    4π φ += (h_l Ω + d m_l·g) / H_l                                         for the vertex opposite side l

Below are the forms of these that stay exact near faces, edges and vertices (green.cpp), and the derivatives.
Inside, ``Σ φ = 1`` and ``Σ φ v + Σ ψ n = p``.

Outside, the solid angles sum to 0 instead of 4π, and so do the coordinates: the formula does not apply there. With
``outside="allow"`` it is continued analytically through the cage's nearest triangle, by adding 4π to that triangle's Ω.
Then partition of unity and reproduction hold, and values and derivatives are smooth across that triangle; where the
nearest triangle changes, they jump. On the cage itself values are the limit from inside.

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

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.core.errors import InputError
from pliant.core.interop import takes_meshes
from pliant.core.shapes import Mesh, PointCloud, TetMesh, as_points
from pliant.core.topology import Floats, Ints
from pliant.engines.transfer.cage import Cage, CageSurface
from pliant.engines.transfer.options import Outside, TransferOptions
from pliant.geometry.bvh import POINTS_PER_THREAD
from pliant.native import in_threads, kernels

LANES = 32
"""Points in a group; as in lanes.h."""
ON_CAGE = 1e-12
"""Distance to the cage over its diagonal below which a point lies on it."""

Values = tuple[Floats, Floats]
Gradients = tuple[Floats, Floats, Floats, Floats]
Hessians = tuple[Floats, Floats, Floats, Floats, Floats, Floats]


@overload
def green_coordinates(points: Any, cage: Mesh | Cage, *, order: Literal[0] = 0, outside: Outside = ...) -> Values: ...
@overload
def green_coordinates(points: Any, cage: Mesh | Cage, *, order: Literal[1], outside: Outside = ...) -> Gradients: ...
@overload
def green_coordinates(points: Any, cage: Mesh | Cage, *, order: Literal[2], outside: Outside = ...) -> Hessians: ...
@takes_meshes("points", "cage")
def green_coordinates(
    points: ArrayLike | Mesh | TetMesh | PointCloud,
    cage: Mesh | Cage,
    *,
    order: Literal[0, 1, 2] = 0,
    outside: Outside = TransferOptions.outside,
) -> tuple[Floats, ...]:
    """Coordinates of points (n, 3), or of a shape's points, in a closed cage.

    order: 0 gives ``phi`` (n, cage vertices) and ``psi`` (n, cage triangles); 1 adds ``dphi`` (n, 3, vertices) and
        ``dpsi`` (n, 3, triangles), the gradients; 2 adds ``d2phi`` (n, 6, vertices) and ``d2psi`` (n, 6, triangles),
        the Hessians as xx, yy, zz, xy, xz, yz.
    outside: what to do with points on or outside the cage: "refuse" them with an error that names them, or "allow" them
        by continuing the coordinates through the nearest triangle, as the module says.

    Vertices are those of the mesh: of coincident ones, the first has the coordinate and the others 0.
    Triangles are the mesh's (``cage.triangles``), oriented outwards, as in `Cage`.
    """
    if order not in (0, 1, 2):
        raise InputError(f"order is {order!r}; expected 0, 1 or 2")
    checked = Cage.of(cage)
    rows = green_rows(point_array(points), checked, order=order, outside=outside)
    count = len(checked.points)
    return tuple(
        part for table in rows for part in (spread_columns(table[..., :count], checked, cage), table[..., count:])
    )


def point_array(points: Any, what: str = "points") -> Floats:
    """(n, 3) of a shape, or as given."""
    return as_points(points.points if isinstance(points, (Mesh, TetMesh, PointCloud)) else points, what)


def spread_columns(phi: Floats, checked: Cage, cage: Mesh | Cage) -> Floats:
    """Coordinates, with columns for every vertex of a mesh that has more of them than the checked cage."""
    if isinstance(cage, Cage) or len(cage.points) == len(checked.points):
        return phi
    out = np.zeros((*phi.shape[:-1], len(cage.points)))
    out[..., checked.kept] = phi
    return out


def green_rows(
    points: Floats, cage: Cage, *, order: int = 0, outside: Outside = TransferOptions.outside, what: str = "points"
) -> tuple[Floats, ...]:
    """``[φ ψ]`` (n, c + f), its gradient (n, 3, c + f) and Hessian (n, 6, c + f) up to `order`, as single tables.

    what: the points' name in errors.
    """
    contiguous = np.ascontiguousarray(points)
    tables, winding = evaluate(contiguous, cage.surface, np.full(len(contiguous), -1), order)
    stray = _stray(contiguous, cage, winding, outside, what)
    if len(stray):
        for table, part in zip(tables, _continued(contiguous[stray], cage, order), strict=True):
            table[stray] = part
    return tuple(tables)


def green_blocks(points: Floats, cage: Cage, *, outside: Outside, what: str) -> NDArray[np.float32]:
    """``[φ ψ]`` in single precision, in blocks (n / lanes, c + f, lanes); the last is filled up with the last point."""
    contiguous = np.ascontiguousarray(points)
    blocks, winding = evaluate_blocks(contiguous, cage.surface)
    stray = _stray(contiguous, cage, winding, outside, what)
    if len(stray):
        blocks[stray // LANES, :, stray % LANES] = _continued(contiguous[stray], cage, 0)[0]
    return blocks


def _stray(points: Floats, cage: Cage, winding: Floats, outside: Outside, what: str) -> Ints:
    """Numbers of the points that are not inside, or an error if there must be none."""
    if outside not in ("refuse", "allow"):
        raise InputError(f'outside is "{outside}"; expected refuse or allow')
    on = np.isfinite(cage.tree.closest(points, within=ON_CAGE * cage.diagonal).distance)
    stray = np.flatnonzero(on | (winding < 0.5))
    if len(stray) and outside == "refuse":
        raise outside_error(points, stray, what)
    return stray


def _continued(points: Floats, cage: Cage, order: int) -> list[Floats]:
    """Tables up to `order` of points that are not inside, through their nearest triangles."""
    return evaluate(points, cage.surface, cage.tree.closest(points).triangle, order)[0]


def not_inside(points: Floats, cage: Cage) -> Ints:
    """Numbers of the points that lie on the cage or outside of it."""
    on = np.isfinite(cage.tree.closest(points, within=ON_CAGE * cage.diagonal).distance)
    return np.flatnonzero(on | ~cage.tree.inside(points))


def outside_error(points: Floats, stray: Ints, what: str = "points") -> InputError:
    """Names how many points are not inside the cage, and the first few."""
    few = ", ".join(f"{int(k)} at ({', '.join(f'{x:.4g}' for x in points[k])})" for k in stray[:3])
    more = ", ..." if len(stray) > 3 else ""
    verb = "lies" if len(stray) == 1 else "lie"
    return InputError(
        f"{len(stray)} of {len(points)} {what} {verb} on the cage or outside of it: {few}{more}; "
        'make the cage wider there, or set outside to "allow"',
        argument="cage",
    )


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
