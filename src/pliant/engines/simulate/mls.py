"""Moving least squares: functions φ_I of the nodes that reproduce every linear field (Eq. 4-8).

    w_I(x) = 1 − 6r² + 8r³ − 3r⁴,  r = |x − x_I| / h_I                         (8)
    M(x) = Σ_I w_I(x) p(x_I) p(x_I)ᵀ,   p(x)ᵀ = {1, x, y, z}
    φ_I(x) = w_I(x) p(x)ᵀ M(x)⁻¹ p(x_I)                                       (6)

The basis is taken about x itself and in units of the support there, ``p(x_I) = {1, (x_I − x)/h}``, which changes no
φ_I and keeps M well conditioned wherever the body is and however large. Then ``γ = M⁻¹ p(x)`` has ``p(x) = {1, 0, 0,
0}``, and the gradient is

    ∂_k φ_I = ∂_k w_I p_Iᵀ γ + w_I p_Iᵀ β_k,    β_k = M⁻¹ (e_k / h − Σ_J ∂_k w_J (p_Jᵀ γ) p_J).

Only the free nodes have functions. The fixed ones, which are samples of the bones, pull at the field by springs
(`pliant.engines.simulate.attachment`).

*Gaps.* A node must not reach a point across a gap outside the body: otherwise one leg's nodes would move the other leg.
On the line from a node to a point, surfaces that are entered and left are counted. Where the count is zero, the line is
outside the body. Such a gap hides the point by ``1 − n·m``, at most 1, where n is the surface's normal where the line
leaves the body, and m where it enters it again. This is added to r, and from r = 1 on the weight is zero. The walls of
a gap face each other and hide completely. The two sides of a shallow hollow have almost the same normal and hardly
hide, so that weights vary continuously along the surface. A point outside the body is replaced by the nearest point of
the surface; a node outside is never hidden.

*Points with too few nodes.* Where M is nearly singular, or the point lies far outside the nodes that reach it, the
supports at that point are enlarged step by step (`GROWTH`) until M is well conditioned.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.core.topology import Floats, Ints
from pliant.core.validation import as_points
from pliant.core.values import Value, locked
from pliant.engines.simulate.nodes import Nodes
from pliant.native import in_threads, kernels

EPS = 1e-7
"""Distance, over the diagonal, that counts as zero."""
GROWTH = 1.2
"""Factor by which supports grow in a step where they are too small."""
BINNED = 3
"""Steps for which the nodes' bins suffice."""
MOST_NODES = 256
"""Nodes that may reach one point."""
POINTS_PER_PIECE, NODES_PER_POINT = 4096, 32
"""Points that are computed at once, and the nodes of each that memory is allocated for at first."""
ROWS_PER_THREAD = 4096
"""Points that are worth a thread, for values there."""
NO_NEIGHBOURS = np.zeros(0, dtype=np.int32), np.zeros(0), np.zeros((0, 3))


@dataclass(frozen=True, eq=False)
class Interpolation(Value):
    """The functions of `nodes` nodes at p points, row by row: those of point i are at start[i]:start[i + 1]."""

    start: Ints
    """(p + 1,)"""
    node: Ints
    """(nnz,) int32"""
    phi: Floats
    """(nnz,) φ_I at the point."""
    gradient: Floats | None
    """(nnz, 3) ∇φ_I at the point, if asked for."""
    nodes: int
    """How many nodes there are."""

    def __len__(self) -> int:
        return len(self.start) - 1

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "matrix"}

    def chosen(self, rows: Ints) -> Interpolation:
        """The functions at some of the points."""
        count = np.diff(self.start)[rows]
        start = np.concatenate([[0], np.cumsum(count)])
        entry = np.arange(start[-1]) + np.repeat(self.start[rows] - start[:-1], count)
        gradient = None if self.gradient is None else locked(self.gradient[entry])
        return Interpolation(locked(start), locked(self.node[entry]), locked(self.phi[entry]), gradient, self.nodes)

    def joined(self, other: Interpolation) -> Interpolation:
        """The functions at these points, then at others."""
        assert self.gradient is not None
        assert other.gradient is not None
        start = np.concatenate([self.start, self.start[-1] + other.start[1:]])
        parts = ((self.node, other.node), (self.phi, other.phi), (self.gradient, other.gradient))
        node, phi, gradient = (locked(np.concatenate(pair)) for pair in parts)
        return Interpolation(locked(start), node, phi, gradient, self.nodes)

    @cached_property
    def matrix(self) -> Any:
        """(p, n) the functions as a sparse matrix: ``matrix @ values_at_nodes`` is the field at the points."""
        from scipy.sparse import csr_matrix

        return csr_matrix((self.phi, np.array(self.node), np.array(self.start)), shape=(len(self), self.nodes))

    def interpolated(self, x: Floats) -> Floats:
        """(p, 3) Σ_I φ_I x_I for values (n, 3) at the nodes."""
        out = np.empty((len(self), 3))
        rows = self.start, self.node, self.phi
        in_threads(lambda a, b: kernels.mls_interpolate(rows, x, out, a, b), len(self), ROWS_PER_THREAD)
        return out

    def derivative(self, axis: int) -> Any:
        """(p, n) derivatives of the functions along an axis, as a sparse matrix."""
        from scipy.sparse import csr_matrix

        assert self.gradient is not None
        values = np.ascontiguousarray(self.gradient[:, axis])
        return csr_matrix((values, np.array(self.node), np.array(self.start)), shape=(len(self), self.nodes))


def mls(points: ArrayLike, nodes: Nodes, *, gradients: bool = False) -> Interpolation:
    """The free nodes' functions, and with `gradients` their gradients, at `points` (p, 3) of the body."""
    positions = np.ascontiguousarray(as_points(points))
    centres, radii = nodes.points[: nodes.free], nodes.radii[: nodes.free]
    reach = radii * GROWTH ** (BINNED - 1)
    low = centres.min(axis=0) - reach.max()
    high = centres.max(axis=0) + reach.max()
    size = float(np.median(radii))
    shape = np.ceil((high - low) / size).astype(np.int64)
    grid = low, size, shape
    around = (centres, radii), grid, _bins(centres, reach, grid), _sight(positions, nodes)
    count = np.empty(len(positions), dtype=np.int64)

    def functions(begin: int, end: int) -> list[tuple[NDArray[np.int32], Floats, Floats]]:
        """Nodes, φ and ∇φ of some points, in pieces."""
        pieces = []
        while begin < end:
            capacity = NODES_PER_POINT * min(end - begin, POINTS_PER_PIECE) + MOST_NODES
            node, phi = np.empty(capacity, dtype=np.int32), np.empty(capacity)
            gradient = np.empty((capacity if gradients else 0, 3))
            stop = min(end, begin + POINTS_PER_PIECE)
            came = kernels.mls_shape_functions(positions, around, count, node, phi, gradient, begin, stop)
            used = int(count[begin:came].sum())
            pieces.append((node[:used], phi[:used], gradient[:used]))
            begin = came
        return pieces

    found = [piece for share in in_threads(functions, len(positions), 256) for piece in share]
    node, phi, gradient = (np.concatenate(parts) for parts in zip(NO_NEIGHBOURS, *found, strict=True))
    start = np.concatenate([[0], np.cumsum(count)])
    return Interpolation(
        locked(start), locked(node), locked(phi), locked(gradient) if gradients else None, len(nodes.points)
    )


def _bins(points: Floats, reach: Floats, grid: tuple[Floats, float, Ints]) -> tuple[Ints, Ints]:
    """Nodes listed by the cubes of a grid that their supports overlap: low corner, size and number of the cubes."""
    start, members = np.empty(int(np.prod(grid[2])) + 1, dtype=np.int64), np.empty(0, dtype=np.int64)
    members = np.empty(kernels.mls_bins(points, reach, grid, start, members), dtype=np.int64)
    kernels.mls_bins(points, reach, grid, start, members)
    return start, members


def _sight(positions: Floats, nodes: Nodes) -> Any:
    """The arguments for visibility: the points moved onto the surface where they are outside, the number of surfaces
    around each node, the nodes' depth, the surface, and the distance that counts as zero."""
    tree = nodes.surface
    seen = np.array(positions)
    outside = ~tree.inside(positions)
    seen[outside] = tree.closest(positions[outside]).points
    return seen, nodes.around, nodes.depth, tree._tree, EPS * tree.diagonal
