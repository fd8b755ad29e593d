"""Hooke's law warped by rotations: the elastic energy of the body, its forces, and products with its stiffness.

At each quadrature point q, the strain is measured after the diffused rotation R_q there has been undone:

    E(x) = Σ_q w_q (μ |ε_q|² + ½ λ₁ tr(ε_q)²) + ½ Σ_c Λ_c θ_c²
    ε_q = sym(R_qᵀ F_q) - 1,   F_q = Σ_I x_I g_Iᵀ,   g_I = ∇φ_I(q)

For given R that is quadratic in x: symmetric, translation-invariant, and zero for every rigid motion.

*Mean dilatation.* θ_c is the mean of tr(ε_q) over the quadrature points of a cell c (`dilatation_cells`). If all of λ
acted on tr(ε_q) at every point, a nearly incompressible body would have two constraints for the three unknowns of a
node, and lock; with one cell for each node it has one. λ₁ is at most `LARGEST_LAMBDA` μ, with which bodies do not lock;
it keeps single points from losing their volume to their neighbours. The rest of λ acts on the mean: Λ_c = Σ_q w_q (λ -
λ₁), and the points are weighted by its terms.

*Stiffness.* With the mean gradient b_I = Σ_q w_q (λ - λ₁) R_q g_I / Λ_c of a cell,

    K'_IJ = Σ_q w_q [ R_q (λ₁ g_I g_Jᵀ + μ g_J g_Iᵀ) R_qᵀ + μ (g_I·g_J) 1 ] + Σ_c Λ_c b_I b_Jᵀ

is never assembled: a product goes from nodes to points (F), takes the stress P = R (2μ ε + (λ₁ tr(ε) + (λ - λ₁) θ) 1)
there, and goes back, Σ_q P g_I.

*Sliding.* In a layer of normal n along which a skin slides (`pliant.engines.simulate.sliding`), a share f of the shear
s = (1 - n nᵀ) ε n has no stress: 2μ ε becomes 2μ (ε - f (s nᵀ + n sᵀ)). All else stays, so the skin keeps its distance.

*Springs.* The springs that hold the body to its bones (`pliant.engines.simulate.attachment`) are further rows of the
same sums.

The paper's Eq. (11), f_i = R_i Σ_j k_ij (R_jᵀ x_j - X_j), warps positions instead of differences, and depends on where
the origin is; Müller's form with one rotation a node has no energy. `benchmarks/warping.py` compares them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.topology import Floats, Ints
from pliant.core.values import Value, locked
from pliant.engines.simulate.mls import Interpolation
from pliant.engines.simulate.stiffness import combined_gradients, rest_stiffness
from pliant.native import kernels, team

UNSTRAINED = locked(np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]))
Singles = NDArray[np.float32]
LARGEST_LAMBDA = 4.0
"""λ₁ over μ, at most: that of ν = 0.4."""
LAMBDA_ROUNDING = 1e-9
"""Share by which λ may be above that, at ν = 0.4, and still count as it."""
ENTRIES_PER_THREAD = 100_000
"""Nodes of quadrature points, all together, that are worth a thread."""


@dataclass(frozen=True, eq=False)
class CorotatedOperator(Value):
    """The elastic energy as a sum over rows: the quadrature points, then the springs of the attachment."""

    functions: Interpolation
    """The nodes' functions and gradients at all rows."""
    weights: Floats
    """(q,) volumes of the quadrature points."""
    lam: Floats
    """(rows,) Lamé's λ times the weights."""
    mu: Floats
    """(rows,) Lamé's μ times the weights."""
    cells: Ints
    """(cells + 1,) the first row of each cell; a spring is a cell of its own."""
    free: int
    """How many nodes are free, the first ones."""
    sliding: Floats = field(default_factory=lambda: np.zeros(0))
    """(rows,) f, from 0 to 1; (0,) if nothing slides."""
    normals: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    """(rows, 3) n; (0, 3) if nothing slides."""

    def __getstate__(self) -> dict[str, Any]:
        kept = {"functions", "weights", "lam", "mu", "cells", "free", "sliding", "normals"}
        return {name: value for name, value in super().__getstate__().items() if name in kept}

    @cached_property
    def inner(self) -> CorotatedOperator:
        """The sum over the quadrature points alone."""
        q = len(self.weights)
        functions = self.functions.chosen(np.arange(q))
        return replace(
            self, functions=functions, lam=self.lam[:q], mu=self.mu[:q], cells=self.cells[self.cells <= q],
            sliding=self.sliding[:q], normals=self.normals[:q],
        )  # fmt: skip

    @cached_property
    def gradient(self) -> Floats:
        """(nnz, 3) ∇φ_I at the points."""
        assert self.functions.gradient is not None
        return self.functions.gradient

    @cached_property
    def points(self) -> NDArray[np.int32]:
        """(nnz,) the row of each entry."""
        return np.repeat(np.arange(len(self.functions), dtype=np.int32), np.diff(self.functions.start))

    @cached_property
    def lists(self) -> tuple[Ints, NDArray[np.int32]]:
        """For each node, its points."""
        f = self.functions
        start = np.concatenate([[0], np.cumsum(np.bincount(f.node, minlength=f.nodes))])
        return start, self.points[np.argsort(f.node, kind="stable")]

    @cached_property
    def doubles(self) -> tuple[Any, ...]:
        """The arguments of kernels: rows and gradients, λ₁, μ, λ - λ₁, cells, what slides, numbers of points and
        nodes."""
        rows, own = (self.functions.start, self.functions.node, self.gradient), self.own
        cells = self.cells if (self.lam > own).any() else np.arange(len(own) + 1)
        slides = self.sliding, self.normals
        return *rows, own, self.mu, self.lam - own, cells, *slides, len(self.weights), self.functions.nodes

    @cached_property
    def singles(self) -> tuple[Any, ...]:
        """The same in single precision, for products."""
        return tuple(np.float32(a) if isinstance(a, np.ndarray) and a.dtype == np.float64 else a for a in self.doubles)

    @property
    def threads(self) -> int:
        """How many threads to use."""
        return team(len(self.functions.node), ENTRIES_PER_THREAD)

    @cached_property
    def stiffest(self) -> float:
        """Σ_q w μ: the energy of a unit of shear, which strains are measured by."""
        return float(self.mu[: len(self.weights)].sum())

    @cached_property
    def own(self) -> Floats:
        """(rows,) λ₁ times the weights."""
        most = LARGEST_LAMBDA * self.mu
        return np.where(self.lam <= (1 + LAMBDA_ROUNDING) * most, self.lam, most)

    @cached_property
    def mean_functions(self) -> tuple[Interpolation, Floats]:
        """Further rows of the stiffness at rest, Σ Λ b_I b_Jᵀ: b and Λ. They are the mean gradients of the cells, only
        of those whose Λ is not 0, and what slides: there Λ is below 0."""
        from scipy.sparse import csr_array

        shared = self.lam - self.own
        total = np.add.reduceat(shared, self.cells[:-1])
        cell = np.repeat(np.arange(len(total)), np.diff(self.cells))
        share = np.divide(shared, total[cell], out=np.zeros_like(shared), where=total[cell] > 0)
        means = csr_array((share, np.arange(len(cell)), self.cells), shape=(len(total), len(cell)))
        stiff = np.flatnonzero(total)
        functions, total = combined_gradients(self.functions, rows=means[stiff]), total[stiff]
        for tangent in self._tangents:
            rows = np.flatnonzero(self.sliding)
            functions = functions.joined(self._shears(rows, tangent))
            total = np.concatenate([total, -4 * self.sliding[rows] * self.mu[rows]])
        return functions, total

    @property
    def _tangents(self) -> list[Floats]:
        """Two directions (rows, 3) t along the layers that slide, across each other; none if nothing slides."""
        if not len(self.sliding):
            return []
        axis = np.eye(3)[np.abs(self.normals).argmin(axis=1)]
        first = np.cross(self.normals, axis)
        first /= np.maximum(np.linalg.norm(first, axis=1, keepdims=True), 1e-12)
        return [first, np.cross(self.normals, first)]

    def _shears(self, rows: Ints, tangents: Floats) -> Interpolation:
        """Functions of gradients b_I = ½ ((g_I·n) t + (g_I·t) n) at some rows: tᵀ sym(RᵀF) n = Σ_I Rᵀx_I · b_I."""
        chosen = self.functions.chosen(rows)
        assert chosen.gradient is not None
        count, g = np.diff(chosen.start), chosen.gradient
        n, t = (np.repeat(vectors[rows], count, axis=0) for vectors in (self.normals, tangents))
        along, across = (np.einsum("ki,ki->k", g, v)[:, None] for v in (t, n))
        return replace(chosen, gradient=locked(0.5 * (across * t + along * n)))

    def rest_stiffness(self) -> Any:
        """(3n, 3n) sparse stiffness of the body at rest."""
        means, total = self.mean_functions
        return rest_stiffness(self.functions, 1.0, (self.own, self.mu)) + rest_stiffness(means, 1.0, (total, 0.0))

    def forces(self, x: Floats, R: Floats, shift: Floats | None = None) -> Floats:
        """(free, 3) the gradient of the energy, for rotations R (rows, 9); elastic forces are its opposite.

        shift: (rows, 6) the strain without stress, plus the unit matrix; the unit matrix if not given.
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
        """(rows, 6) strains ε, and (q,) J = det F at the quadrature points."""
        strain, stretch = np.empty((len(R), 6)), np.empty(len(self.weights))
        kernels.warping_strains(self.doubles, x, R, strain, stretch, self.threads)
        return strain, stretch

    def energy(self, strain: Floats) -> float:
        """E for strains (rows, 6)."""
        squares = np.einsum("qi,qi,i->q", strain, strain, [1.0, 1.0, 1.0, 2.0, 2.0, 2.0])
        if len(self.sliding):
            along = np.einsum("qij,qj->qi", strain[:, [[0, 5, 4], [5, 1, 3], [4, 3, 2]]], self.normals)
            across = np.einsum("qi,qi->q", along, self.normals)[:, None] * self.normals
            squares = squares - 2 * self.sliding * np.square(along - across).sum(axis=1)
        trace, own = strain[:, :3].sum(axis=1), self.own
        bulk, total = (np.add.reduceat(a, self.cells[:-1]) for a in ((self.lam - own) * trace, self.lam - own))
        means = np.divide(bulk**2, total, out=np.zeros_like(bulk), where=total > 0)
        return float(self.mu @ squares + 0.5 * own @ trace**2 + 0.5 * means.sum())

    def gradients(self, x: Floats) -> Floats:
        """(q, 3, 3) F at the quadrature points."""
        f = self.functions
        return np.stack([f.derivative(axis) @ x[: f.nodes] for axis in range(3)], axis=-1)[: len(self.weights)]
