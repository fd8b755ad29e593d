"""Where the cage's vertices have to be: Gauss–Newton on the weighted energies (Eqs. 12 to 15).

    E(V) = tr(Xᵀ A X) − 2 tr(Xᵀ B) + const + w_l Σ (|D_i|² − l_i²)²,      X = [V; N(V)],   D = C_l X

A holds smoothness, positions and gradients, B their targets. As ``N = J V``, the paper's linearised least squares is
one Gauss–Newton step: with ``G = [1; J]``

    H = Gᵀ (A ⊗ 1₃) G + 4 w_l Σ (Gᵀ C_i D_i)(…)ᵀ,      H δ = −½ ∇E

The paper takes a fifth of every step. A line search, which costs little as E needs A only, takes all of it where it can
and less where it must; but where controls contradict each other and energy is left over, full steps overshoot, as
Gauss–Newton does not know that normals turn on a circle, and the search cuts them short. So once a step has brought
less than half of what it promised, H also has the curvature of the normals under the pull λ on them, ``Σ λ·∂²N/∂V²``,
of which each triangle's share is freed of its negative part. Directions that nothing holds (turns about a single
position control, say) are held by a trace of damping.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pliant.cage.energies import Basis
from pliant.topology import Floats
from pliant.values import Value

Step = Literal["search"] | float
DAMPING = 1e-10
"""Added to the diagonal of H, over its mean."""
ENOUGH = 1e-4
"""Share of the decrease that the gradient promises which a step has to bring."""
KEPT = 0.5
"""Share of the decrease promised that every step has to bring for the next one to be plain Gauss–Newton."""
SHORTEST = 1e-3
"""Of a full step; below it the search gives up."""
SLIGHT = 1e-2
"""Share of the energy that a step promises to take off, at most, for the shape to count as settled."""
SETTLED = 5.0
"""How many times the accuracy such a step may still move the target: in directions that the energy hardly knows."""


@dataclass(frozen=True, eq=False)
class Quadratic(Value):
    """The energy as a function of the cage's vertices."""

    basis: Basis
    A: Floats
    """(c + f, c + f)"""
    B: Floats
    """(c + f, 3)"""
    constant: float
    length_rows: Floats
    """(k, c + f) C_l"""
    lengths: Floats
    """(k,) l"""
    length_weight: float
    probes: Floats
    """(c + f, m) columns of points whose motion says whether the shape still changes"""

    @staticmethod
    def _product(A: Floats, X: Floats) -> Floats:
        from pliant.cage.dense import transposed_product

        return transposed_product(A, X)

    def energy(self, X: Floats) -> float:
        """Of a state (c + f, 3)."""
        D = self.length_rows @ X
        off = np.einsum("ij,ij->i", D, D) - self.lengths**2
        linear = np.einsum("ij,ij->", X, self._product(self.A, X) - 2 * self.B)
        return float(linear) + self.constant + self.length_weight * float(off @ off)

    def motion(self, V: Floats, delta: Floats) -> float:
        """How far a step moves the probes, at most."""
        change = self._product(self.probes, self.basis.state(V + delta) - self.basis.state(V))
        return float(np.linalg.norm(change, axis=1).max())

    def half_gradient(self, V: Floats) -> Floats:
        """(c, 3) ½ ∇E."""
        return self._derivatives(V, self.basis.normals.jacobian(V))[1]

    def _derivatives(self, V: Floats, J: Floats) -> tuple[Floats, Floats, Floats]:
        """½ ∂E/∂X (c + f, 3), ½ ∇E (c, 3), and those of the lengths."""
        X = self.basis.state(V)
        D = self.length_rows @ X
        off = np.einsum("ij,ij->i", D, D) - self.lengths**2
        pull = self._product(self.A, X) - self.B + 2 * self.length_weight * self.length_rows.T @ (off[:, None] * D)
        return pull, self.basis.chained(pull[None], J)[0], length_slopes(self.basis, self.length_rows, D, J)

    def step(self, V: Floats, *, curved: bool) -> tuple[Floats, float]:
        """The step δ (c, 3), and the decrease ½ ∇E · δ (negative) that it promises.

        curved: whether H knows that the normals curve.
        """
        from pliant.cage.dense import add_squares, solve_definite
        from pliant.cage.solver_kernels import add_curvatures, gauss_newton_matrix

        normals = self.basis.normals
        J = normals.jacobian(V)
        pull, half, along = self._derivatives(V, J)
        H = gauss_newton_matrix(self.A, J, normals.triangles, len(V))
        if curved:
            add_curvatures(H, normals.curvature(V, pull[len(V) :]), normals.triangles)
        add_squares(H, along, 4 * self.length_weight)
        delta, damping = np.full(half.size, np.nan), DAMPING * np.trace(H) / len(H)
        while not np.isfinite(delta).all():  # rounding may have left H not quite definite
            H[np.diag_indices_from(H)] += damping
            delta, damping = -solve_definite(H, half.ravel()), 100 * damping
        return delta.reshape(-1, 3), float(half.ravel() @ delta)


def length_slopes(basis: Basis, rows: Floats, D: Floats, J: Floats) -> Floats:
    """Gᵀ C_i D_i (k, 3 c): half the derivatives of |D|²."""
    return basis.chained(rows[:, :, None] * D[:, None, :], J).reshape(len(D), 3 * len(basis.cage.points))


@dataclass(frozen=True, eq=False)
class Minimum(Value):
    """Where the iteration ended."""

    points: Floats
    """(c, 3) of the cage"""
    energies: Floats
    """(iterations + 1,) the first before any step"""
    converged: bool
    residual: float
    """How far the last full step would have moved the target, over the cage's diagonal."""


def minimise(energy: Quadratic, start: Floats, *, accuracy: float, iterations: int, step: Step) -> Minimum:
    """Gauss–Newton from cage vertices (c, 3) until a full step moves none of the probes by `accuracy` diagonals.

    It also ends where a step promises next to nothing, and where no step along its direction brings any of what it
    promises.
    """
    V, diagonal = start, energy.basis.cage.diagonal
    energies = [energy.energy(energy.basis.state(V))]
    moved, converged, curved = np.inf, False, False
    for _ in range(iterations):
        delta, decrease = energy.step(V, curved=curved)
        moved = energy.motion(V, delta) / diagonal
        slight = -decrease <= SLIGHT * energies[-1] and moved <= SETTLED * accuracy
        V, reached = _advanced(energy, V, delta, decrease, energies[-1], step)
        stuck = reached == energies[-1] and curved
        curved |= step == "search" and energies[-1] - reached < KEPT * -decrease
        energies.append(reached)
        converged = moved <= accuracy or slight
        if converged or stuck:
            break
    return Minimum(V, np.array(energies), converged, moved)


def _advanced(
    energy: Quadratic, V: Floats, delta: Floats, decrease: float, before: float, step: Step
) -> tuple[Floats, float]:
    if step != "search":
        V = V + step * delta
        return V, energy.energy(energy.basis.state(V))
    length = 1.0
    while length >= SHORTEST:
        trial = V + length * delta
        reached = energy.energy(energy.basis.state(trial))
        if reached <= before + 2 * ENOUGH * length * decrease:
            return trial, reached
        length /= 2
    return V, before
