"""Hooke's law warped by rotations: the elastic energy of the body, its forces, and products with its stiffness.

*Corotated*, the default. At each quadrature point q the strain is measured after the diffused rotation R_q there has
been undone:

    E(x) = Σ_q w_q (μ |ε_q|² + ½ λ tr(ε_q)²),   ε_q = sym(R_qᵀ F_q) - 1,   F_q = Σ_I x_I g_Iᵀ,   g_I = ∇φ_I(q)

For given R that is quadratic in x: symmetric, translation-invariant, and zero for every rigid motion. Its stiffness

    K'_IJ = Σ_q w_q [ R_q (λ g_I g_Jᵀ + μ g_J g_Iᵀ) R_qᵀ + μ (g_I·g_J) 1 ]

is never assembled: a product goes from nodes to points (F), takes the stress P = R C:ε there, and goes back, Σ_q P g_I.

*Per node* (Müller 2002): f_i = R_i Σ_j k_ij (R_iᵀ x_j - X_j), and *paper* (Eq. 11): f_i = R_i Σ_j k_ij (R_jᵀ x_j - X_j)
with the stiffness k of the body at rest (Eq. 9). They are kept to compare with. The first has no energy, its matrix is
not symmetric; the second warps positions instead of differences and depends on where the origin is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pliant.elastic.mls import Interpolation
from pliant.topology import Floats, Ints
from pliant.values import Value, locked

Warping = Literal["corotated", "per_node", "paper"]
UNSTRAINED = locked(np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]))
Singles = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Flesh(Value):
    """The body as the sum over its quadrature points sees it."""

    functions: Interpolation
    """The nodes' functions and gradients at the quadrature points."""
    weights: Floats
    """(q,) volumes."""
    lam: Floats
    """(q,) Lamé's λ times the weights."""
    mu: Floats
    """(q,) Lamé's μ times the weights."""
    free: int
    """How many nodes are free, the first ones."""

    def __getstate__(self) -> dict[str, Any]:
        kept = {"functions", "weights", "lam", "mu", "free"}
        return {name: value for name, value in super().__getstate__().items() if name in kept}

    @cached_property
    def gradient(self) -> Floats:
        """(nnz, 3) ∇φ_I at the points."""
        assert self.functions.gradient is not None
        return self.functions.gradient

    @cached_property
    def lists(self) -> tuple[Ints, NDArray[np.int32], Floats]:
        """For each node, its points and its gradients there."""
        f = self.functions
        entry = np.argsort(f.node, kind="stable")
        start = np.concatenate([[0], np.cumsum(np.bincount(f.node, minlength=f.nodes))])
        owner = np.repeat(np.arange(len(f), dtype=np.int32), np.diff(f.start))
        return start, owner[entry], np.ascontiguousarray(self.gradient[entry])

    @cached_property
    def _singles(self) -> tuple[Singles, Singles, Singles, Singles]:
        """Gradients, those in the nodes' lists, λ and μ in single precision, for products."""
        arrays = (self.gradient, self.lists[2], self.lam, self.mu)
        return tuple(np.asarray(array, dtype=np.float32) for array in arrays)  # type: ignore[return-value]

    @cached_property
    def stiffest(self) -> float:
        """Σ_q w μ: the energy of a unit of shear, which strains are measured by."""
        return float(self.mu.sum())

    def forces(self, x: Floats, R: Floats, shift: Floats | None = None) -> Floats:
        """(free, 3) the gradient of the energy, for rotations R (q, 9); elastic forces are its opposite.

        shift: (q, 6) the value of sym(Rᵀ F) that has no stress, the unit matrix if not given.
        """
        from pliant.elastic.warping_kernels import gathered, stresses

        f, P = self.functions, np.empty((len(R), 9))
        none = np.broadcast_to(UNSTRAINED, (len(R), 6)).copy() if shift is None else shift
        stresses(f.start, f.node, self.gradient, x, R, self.lam, self.mu, none, P)
        start, point, gradient = self.lists
        return gathered(start, point, gradient, P, 1.0, np.zeros(self.free), x)

    def product(self, d: Singles, R: Singles, P: Singles, scale: float, mass: Singles) -> Singles:
        """(free, 3) scale · K' d + mass d, for displacements d (n, 3), zero at the fixed nodes; P (q, 9) is room."""
        from pliant.elastic.warping_kernels import gathered, stress_changes

        f, (gradient, listed, lam, mu) = self.functions, self._singles
        stress_changes(f.start, f.node, gradient, d, R, lam, mu, P)
        start, point, _ = self.lists
        return gathered(start, point, listed, P, scale, mass, d)

    def strains(self, x: Floats, R: Floats) -> tuple[Floats, Floats]:
        """(q, 6) strains ε, and (q,) J = det F."""
        from pliant.elastic.warping_kernels import strains

        f, strain, stretch = self.functions, np.empty((len(R), 6)), np.empty(len(R))
        strains(f.start, f.node, self.gradient, x, R, strain, stretch)
        return strain, stretch

    def energy(self, strain: Floats) -> float:
        """E for strains (q, 6)."""
        squares = np.einsum("qi,qi,i->q", strain, strain, [1.0, 1.0, 1.0, 2.0, 2.0, 2.0])
        return float(self.mu @ squares + 0.5 * self.lam @ strain[:, :3].sum(axis=1) ** 2)

    def gradients(self, x: Floats) -> Floats:
        """(q, 3, 3) F."""
        f = self.functions
        return np.stack([f.derivative(axis) @ x for axis in range(3)], axis=-1)


def node_system(K: Any, X: Floats, R: Floats, warping: Warping) -> tuple[Any, Floats]:
    """The matrix A (3n, 3n) and the vector b (3n,) of forces ``A x - b`` for rotations R (n, 3, 3) at the nodes.

    K: (3n, 3n) the stiffness at rest, coordinates of a node following each other. X: (n, 3) the nodes at rest.
    """
    from scipy.sparse import block_diag, bsr_array

    turn = block_diag(list(R), format="csr")
    b = turn @ (K @ X.ravel())
    if warping == "paper":
        return (turn @ K @ turn.T).tocsr(), b
    blocks = bsr_array(K, blocksize=(3, 3))
    row = np.repeat(np.arange(len(X)), np.diff(blocks.indptr))
    turned = R[row] @ blocks.data @ np.swapaxes(R[row], 1, 2)
    return bsr_array((turned, blocks.indices, blocks.indptr), shape=blocks.shape).tocsr(), b
