"""Gauss–Newton for the cage's vertices, on the weighted energies (Eqs. 12 to 15).

    E(V) = tr(Xᵀ A X) − 2 tr(Xᵀ B) + const + w_l Σ (|D_i|² − l_i²)²,      X = [V; N(V)],   D = C_l X

A holds smoothness, positions and gradients, B their targets. As ``N = J V``, the paper's linearised least squares is
one Gauss–Newton step: with ``G = [1; J]``

    H = Gᵀ (A ⊗ 1₃) G + 4 w_l Σ (Gᵀ C_i D_i)(…)ᵀ,      H δ = −½ ∇E

The paper takes a fifth of every step. A line search, which is cheap as E needs A only, takes full steps where possible.
But where controls contradict each other and the residual is large, full steps overshoot, since Gauss–Newton neglects
the curvature of the normals. So once a step has decreased E by less than half of the prediction, that curvature is
added to H: ``Σ λ·∂²N/∂V²`` with λ = ∂E/∂N, each triangle's block projected to be positive semidefinite.

In directions of little energy, steps are long and inaccurate, and the line search would shorten all directions with
them. So after such a step the next one is damped (Levenberg–Marquardt, in the metric of the target): H gets
``μ Σ |p'|²`` over some of its points, with μ such that this term is as large as the predicted decrease. Directions
without any energy (such as rotations about a single position control) are regularised by a slight damping.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pliant.core.cancellation import check_cancelled
from pliant.core.errors import InputError
from pliant.core.topology import Floats
from pliant.core.values import Value
from pliant.engines.transfer.energies import Basis
from pliant.engines.transfer.rigidity import Rigidity
from pliant.engines.transfer.solver_kernels import (
    add_curvatures,
    add_squares,
    gauss_newton_matrix,
    solve_definite,
    transposed_product,
)

Step = Literal["search"] | float
DAMPING = 1e-10
"""Added to the diagonal of H, over its mean."""
SUFFICIENT_GAIN = 1e-4
"""Armijo's constant: share of the decrease predicted by the gradient that a step has to achieve."""
GOOD_GAIN = 0.5
"""Share of the predicted decrease above which the next step is plain Gauss–Newton."""
TINY = 1e-300
SHORTEST_STEP = 1e-3
"""Shortest step of the line search, over the full step."""
TIGHTER, LOOSER = 4.0, 8.0
"""Cost of the motion of a failed step under damping, over its predicted decrease; and the factor by which damping is
reduced after an accurate step."""
ACCURATE_GAIN = 0.8
"""Share of the predicted decrease above which a step was accurate."""
MOST_ENERGY, MOST_MOVES, MOST_OF_BOTH = 3e-2, 15.0, 0.1
"""Convergence in directions of little energy: a step predicts a decrease of at most this share of the energy, moves the
target by at most so many times the accuracy, and the product of the two is at most this."""
DAMPINGS = 8
"""Times that damping is increased a hundredfold before the solve fails."""


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
    """(c + f, m) columns of the points whose motion the convergence test measures"""
    motions: Floats
    """(c + f, c + f) probes · probesᵀ"""
    rigidity: Rigidity | None = None
    """Its square is part of A."""

    @staticmethod
    def _product(A: Floats, X: Floats) -> Floats:
        return transposed_product(A, X)

    def energy(self, X: Floats) -> float:
        """Of a state (c + f, 3)."""
        D = self.length_rows @ X
        off = np.einsum("ij,ij->i", D, D) - self.lengths**2
        linear = np.einsum("ij,ij->", X, self._product(self.A, X) - 2 * self.B)
        rigid = self.rigidity.energy(X) if self.rigidity is not None else 0.0
        return float(linear) + self.constant + rigid + self.length_weight * float(off @ off)

    def motion(self, V: Floats, W: Floats) -> Floats:
        """(m,) how far the probes move from one cage to another."""
        change = self._product(self.probes, self.basis.state(W) - self.basis.state(V))
        return np.linalg.norm(change, axis=1)

    def half_gradient(self, V: Floats) -> Floats:
        """(c, 3) ½ ∇E."""
        return self._derivatives(V, self.basis.normals.jacobian(V))[1]

    def _derivatives(self, V: Floats, J: Floats) -> tuple[Floats, Floats, Floats]:
        """½ ∂E/∂X (c + f, 3), ½ ∇E (c, 3), and those of the lengths."""
        X = self.basis.state(V)
        D = self.length_rows @ X
        off = np.einsum("ij,ij->i", D, D) - self.lengths**2
        pull = self._product(self.A, X) - self.B + 2 * self.length_weight * self.length_rows.T @ (off[:, None] * D)
        if self.rigidity is not None:
            pull += self.rigidity.half_derivative(X)
        return (
            pull,
            self.basis.chained(pull.T[None], np.eye(3)[None], J).reshape(-1, 3),
            length_slopes(self.basis, self.length_rows, D, J),
        )

    def step(self, V: Floats, *, curved: bool, damping_weight: float = 0.0) -> tuple[Floats, float]:
        """The step δ (c, 3), and the predicted change ½ ∇E · δ (negative).

        curved: whether H knows that the normals curve. damping_weight: μ.
        """
        normals = self.basis.normals
        J = normals.jacobian(V)
        pull, half, along = self._derivatives(V, J)
        A = self.A + damping_weight * self.motions if damping_weight else self.A
        H = gauss_newton_matrix(A, J, normals.triangles, len(V))
        if curved:
            add_curvatures(H, normals.curvature(V, pull[len(V) :]), normals.triangles)
        add_squares(H, along, 4 * self.length_weight)
        if self.rigidity is not None:
            self.rigidity.add_curvature(H, self.basis, self.basis.state(V), J)
        damping = DAMPING * np.trace(H) / len(H)
        for _ in range(DAMPINGS):  # rounding may have left H not quite definite
            H[np.diag_indices_from(H)] += damping
            delta, damping = -solve_definite(H, half.ravel()), 100 * damping
            if np.isfinite(delta).all():
                return delta.reshape(-1, 3), float(half.ravel() @ delta)
        raise InputError("no step can be found: the controls ask for numbers that are too large, or the cage is broken")


def length_slopes(basis: Basis, rows: Floats, D: Floats, J: Floats) -> Floats:
    """Gᵀ C_i D_i (k, 3 c): half the derivatives of |D|²."""
    return basis.chained(rows[:, None], D[:, None], J)


@dataclass(frozen=True, eq=False)
class Minimum(Value):
    """The result of the iteration."""

    points: Floats
    """(c, 3) of the cage"""
    energies: Floats
    """(iterations + 1,) the first before any step"""
    converged: bool
    residual: float
    """How far the last full step would have moved the target, over the cage's diagonal."""
    curved: bool = False
    """Whether the last step included the curvature of the normals; the next frame starts with it."""


def minimise(
    energy: Quadratic,
    start: Floats,
    *,
    accuracy: float,
    iterations: int,
    step: Step,
    curved: bool = False,
    watch: Callable[[int], None] | None = None,
) -> Minimum:
    """Gauss–Newton from cage vertices (c, 3) until a full step moves none of the probes by `accuracy` diagonals.

    It also ends at convergence in directions of little energy (see `MOST_ENERGY`), and where the line search fails.
    curved: as of the last frame's `Minimum`. watch: called before each step with the number done.
    """
    V, diagonal, damping_weight = start, energy.basis.cage.diagonal, 0.0
    energies = [energy.energy(energy.basis.state(V))]
    moved, converged = np.inf, False
    for k in range(iterations):
        check_cancelled()
        if watch is not None:
            watch(k)
        delta, decrease = energy.step(V, curved=curved, damping_weight=damping_weight)
        moved = float(energy.motion(V, V + delta).max()) / diagonal
        converged = moved <= accuracy or _settled(-decrease / max(energies[-1], TINY), moved / accuracy)
        last, (V, reached, length) = V, _advanced(energy, V, delta, decrease, energies[-1], step)
        gain = (energies[-1] - reached) / max(-decrease, TINY)
        energies.append(reached)
        if converged or (reached == energies[-2] and curved and not damping_weight):
            break
        if step == "search":
            curved |= gain < GOOD_GAIN
            damping_weight = _next_damping(
                damping_weight, gain, length, -decrease, float(np.square(energy.motion(last, V)).sum())
            )
    return Minimum(V, np.array(energies), converged, moved, curved)


def _settled(promise: float, moves: float) -> bool:
    return promise <= MOST_ENERGY and moves <= MOST_MOVES and promise * moves <= MOST_OF_BOTH


def _next_damping(damping_weight: float, gain: float, length: float, promise: float, squares: float) -> float:
    """μ of the next step, from the last one's gain (achieved over predicted decrease) and length."""
    if length < 1 or gain < GOOD_GAIN:
        return max(2 * damping_weight, TIGHTER * promise * length / squares) if squares > 0 else 0.0
    return damping_weight / LOOSER if gain > ACCURATE_GAIN else damping_weight


def _advanced(
    energy: Quadratic, V: Floats, delta: Floats, decrease: float, before: float, step: Step
) -> tuple[Floats, float, float]:
    """The cage after the line search, its energy, and the share of the step that was taken."""
    if step != "search":
        V = V + step * delta
        return V, energy.energy(energy.basis.state(V)), float(step)
    length = 1.0
    while length >= SHORTEST_STEP:
        trial = V + length * delta
        reached = energy.energy(energy.basis.state(trial))
        if reached <= before + 2 * SUFFICIENT_GAIN * length * decrease:
            return trial, reached, length
        length /= 2
    return V, before, 0.0
