"""Moving least squares: functions φ_I of the nodes that reproduce every linear field (Eq. 4-8).

    w_I(x) = 1 − 6r² + 8r³ − 3r⁴,  r = |x − x_I| / h_I                         (8)
    M(x) = Σ_I w_I(x) p(x_I) p(x_I)ᵀ,   p(x)ᵀ = {1, x, y, z}
    φ_I(x) = w_I(x) p(x)ᵀ M(x)⁻¹ p(x_I)                                       (6)

The basis is taken about x itself and in units of the support there, ``p(x_I) = {1, (x_I − x)/h}``, which changes no
φ_I and keeps M well conditioned wherever the body is and however large. Then ``γ = M⁻¹ p(x)`` has ``p(x) = {1, 0, 0,
0}``, and the gradient is

    ∂_k φ_I = ∂_k w_I p_Iᵀ γ + w_I p_Iᵀ β_k,    β_k = M⁻¹ (e_k / h − Σ_J ∂_k w_J (p_Jᵀ γ) p_J).

*Fixed nodes interpolate.* Their weight is ``w / (r² + 1e-10)``: so large at the node itself that φ is one there and all
others vanish (to 1e-9), so that bones are met exactly.

*Gaps.* A node does not reach a place across outside air (`pliant.elastic.visibility_kernels`): one that is hidden by
the surface has its r enlarged by how much it is hidden, and from 1 on it has no weight. A place outside of the body is
seen where the surface is nearest to it, a node outside is seen from everywhere.

*Places with too few nodes.* Where M is nearly singular, or the place lies far outside of the nodes that reach it, all
supports are taken larger for that place, by steps of a quarter, until it is well posed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pliant.checks import as_points
from pliant.elastic.nodes import Nodes
from pliant.topology import Floats, Ints
from pliant.values import Value, locked

EPS = 1e-7
"""Distance, over the diagonal, that counts as zero."""


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

    @cached_property
    def matrix(self) -> Any:
        """(p, n) the functions as a sparse matrix: ``matrix @ values_at_nodes`` is the field at the points."""
        from scipy.sparse import csr_matrix

        return csr_matrix((self.phi, np.array(self.node), np.array(self.start)), shape=(len(self), self.nodes))

    def derivative(self, axis: int) -> Any:
        """(p, n) derivatives of the functions along an axis, as a sparse matrix."""
        from scipy.sparse import csr_matrix

        assert self.gradient is not None
        values = np.ascontiguousarray(self.gradient[:, axis])
        return csr_matrix((values, np.array(self.node), np.array(self.start)), shape=(len(self), self.nodes))


def mls(points: ArrayLike, nodes: Nodes, *, gradients: bool = False) -> Interpolation:
    """The nodes' functions, and with `gradients` their gradients, at `points` (p, 3) of the body."""
    from pliant.elastic.mls_kernels import BINNED, GROWTH, bins_of, shape_functions

    places = np.ascontiguousarray(as_points(points))
    reach = nodes.radii * GROWTH ** (BINNED - 1)
    low = nodes.points.min(axis=0) - reach.max()
    high = nodes.points.max(axis=0) + reach.max()
    size = float(np.median(nodes.radii))
    shape = np.ceil((high - low) / size).astype(np.int64)
    bins = bins_of(nodes.points, reach, low, size, shape)
    start, node, phi, gradient = shape_functions(
        places, nodes.points, nodes.radii, nodes.free, low, size, shape, bins, _sight(places, nodes), gradients
    )
    return Interpolation(
        locked(start), locked(node), locked(phi), locked(gradient) if gradients else None, len(nodes.points)
    )


def _sight(places: Floats, nodes: Nodes) -> Any:
    """What places and nodes see of each other through the body's surface."""
    from pliant.elastic.mls_kernels import Sight

    tree = nodes.surface
    seen = np.array(places)
    outside = ~tree.inside(places)
    seen[outside] = tree.closest(places[outside]).points
    return Sight(seen, nodes.around, nodes.depth, tree._tree, EPS * tree.diagonal)
