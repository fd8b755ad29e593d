"""Hooke's law warped by rotations: the elastic energy of the body, its forces, and products with its stiffness.

At each quadrature point q the strain is measured after the diffused rotation R_q there has
been undone:

    E(x) = Σ_q w_q (μ |ε_q|² + ½ λ tr(ε_q)²),   ε_q = sym(R_qᵀ F_q) - 1,   F_q = Σ_I x_I g_Iᵀ,   g_I = ∇φ_I(q)

For given R that is quadratic in x: symmetric, translation-invariant, and zero for every rigid motion. Its stiffness

    K'_IJ = Σ_q w_q [ R_q (λ g_I g_Jᵀ + μ g_J g_Iᵀ) R_qᵀ + μ (g_I·g_J) 1 ]

is never assembled: a product goes from nodes to points (F), takes the stress P = R C:ε there, and goes back, Σ_q P g_I.

The paper's Eq. (11), f_i = R_i Σ_j k_ij (R_jᵀ x_j - X_j), warps positions instead of differences, and depends on where
the origin is; Müller's form with one rotation a node has no energy. `benchmarks/warping.py` compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.topology import Floats, Ints
from pliant.core.values import Value, locked
from pliant.engines.simulate.mls import Interpolation
from pliant.native import kernels, team

UNSTRAINED = locked(np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]))
Singles = NDArray[np.float32]
ENTRIES_PER_THREAD = 100_000
"""Nodes of quadrature points, all together, that are worth a thread."""


@dataclass(frozen=True, eq=False)
class CorotatedOperator(Value):
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

    @property
    def doubles(self) -> tuple[Any, ...]:
        """What kernels take: the points' rows and gradients, the nodes' lists and gradients, λ and μ."""
        return self.functions.start, self.functions.node, self.gradient, *self.lists, self.lam, self.mu

    @cached_property
    def singles(self) -> tuple[Any, ...]:
        """The same in single precision, for products."""
        arrays = self.doubles
        return tuple(array.astype(np.float32) if array.dtype == np.float64 else array for array in arrays)

    @property
    def threads(self) -> int:
        """That are worth their waking."""
        return team(len(self.functions.node), ENTRIES_PER_THREAD)

    @cached_property
    def stiffest(self) -> float:
        """Σ_q w μ: the energy of a unit of shear, which strains are measured by."""
        return float(self.mu.sum())

    def forces(self, x: Floats, R: Floats, shift: Floats | None = None) -> Floats:
        """(free, 3) the gradient of the energy, for rotations R (q, 9); elastic forces are its opposite.

        shift: (q, 6) the value of sym(Rᵀ F) that has no stress, the unit matrix if not given.
        """
        out = np.empty((self.free, 3))
        kernels.warping_forces(self.doubles, x, R, UNSTRAINED[None] if shift is None else shift, out, self.threads)
        return out

    def product(self, d: Singles, R: Singles, scale: float, mass: Singles) -> Singles:
        """(free, 3) scale · K' d + mass d, for displacements d (n, 3), zero at the fixed nodes."""
        out = np.empty((self.free, 3), np.float32)
        kernels.warping_product(self.singles, d, R, scale, mass, out, self.threads)
        return out

    def strains(self, x: Floats, R: Floats) -> tuple[Floats, Floats]:
        """(q, 6) strains ε, and (q,) J = det F."""
        strain, stretch = np.empty((len(R), 6)), np.empty(len(R))
        kernels.warping_strains(self.doubles, x, R, strain, stretch, self.threads)
        return strain, stretch

    def energy(self, strain: Floats) -> float:
        """E for strains (q, 6)."""
        squares = np.einsum("qi,qi,i->q", strain, strain, [1.0, 1.0, 1.0, 2.0, 2.0, 2.0])
        return float(self.mu @ squares + 0.5 * self.lam @ strain[:, :3].sum(axis=1) ** 2)

    def gradients(self, x: Floats) -> Floats:
        """(q, 3, 3) F."""
        f = self.functions
        return np.stack([f.derivative(axis) @ x for axis in range(3)], axis=-1)
