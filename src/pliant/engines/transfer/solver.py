"""Where the cage's vertices have to be: Gauss–Newton on the weighted energies (Eqs. 12 to 15).

    E(V) = tr(Xᵀ A X) − 2 tr(Xᵀ B) + const + w_l Σ (|D_i|² − l_i²)²,      X = [V; N(V)],   D = C_l X

A holds smoothness, positions and gradients, B their targets. As ``N = J V``, the paper's linearised least squares is
one Gauss–Newton step: with ``G = [1; J]``

    H = Gᵀ (A ⊗ 1₃) G + 4 w_l Σ (Gᵀ C_i D_i)(…)ᵀ,      H δ = −½ ∇E

The paper takes a fifth of every step. A line search, which costs little as E needs A only, takes all of it where it can
and less where it must; but where controls contradict each other and energy is left over, full steps overshoot, as
Gauss–Newton does not know that normals turn on a circle, and the search cuts them short. So once a step has brought
less than half of what it promised, H also has the curvature of the normals under the pull λ on them, ``Σ λ·∂²N/∂V²``,
of which each triangle's share is freed of its negative part.

In directions that the energy hardly knows, steps are long and seldom right, and a search along the whole step would cut
the good directions short with them. So after a step that brought too little, the next one also has to move the target
little (Levenberg and Marquardt, measured on the target): H has ``μ Σ |p'|²`` over some of its points, with μ so that
this is worth as much as the step promised. Directions that nothing holds at all (turns about a single position control,
say) are held by a trace of damping.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pliant.core.errors import InputError
from pliant.core.topology import Floats
from pliant.core.values import Value
from pliant.engines.transfer.dense import add_squares, solve_definite, transposed_product
from pliant.engines.transfer.energies import Basis
from pliant.engines.transfer.solver_kernels import add_curvatures, gauss_newton_matrix

Step = Literal["search"] | float
DAMPING = 1e-10
"""Added to the diagonal of H, over its mean."""
ENOUGH = 1e-4
"""Share of the decrease that the gradient promises which a step has to bring."""
KEPT = 0.5
"""Share of the decrease promised that every step has to bring for the next one to be plain Gauss–Newton."""
TINY = 1e-300
SHORTEST = 1e-3
"""Of a full step; below it the search gives up."""
TIGHTER, LOOSER = 4.0, 8.0
"""How much a motion of the target like that of a failed step costs, over what it promised; and by how much less after a
step that was right."""
RIGHT = 0.8
"""Share of the decrease promised from which a step was right."""
SLIGHT, SETTLED, BOTH = 3e-2, 15.0, 0.1
"""A shape has settled in directions that the energy hardly knows: where a step promises at most this share of the
energy, moves the target at most so many times the accuracy, and the product of the two is no more than this."""
DAMPINGS = 8
"""Times that damping grows a hundredfold before a matrix counts as broken."""


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
    motions: Floats
    """(c + f, c + f) probes · probesᵀ"""

    @staticmethod
    def _product(A: Floats, X: Floats) -> Floats:
        return transposed_product(A, X)

    def energy(self, X: Floats) -> float:
        """Of a state (c + f, 3)."""
        D = self.length_rows @ X
        off = np.einsum("ij,ij->i", D, D) - self.lengths**2
        linear = np.einsum("ij,ij->", X, self._product(self.A, X) - 2 * self.B)
        return float(linear) + self.constant + self.length_weight * float(off @ off)

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
        return pull, self.basis.chained(pull[None], J)[0], length_slopes(self.basis, self.length_rows, D, J)

    def step(self, V: Floats, *, curved: bool, hold: float = 0.0) -> tuple[Floats, float]:
        """The step δ (c, 3), and the decrease ½ ∇E · δ (negative) that it promises.

        curved: whether H knows that the normals curve. hold: μ.
        """
        normals = self.basis.normals
        J = normals.jacobian(V)
        pull, half, along = self._derivatives(V, J)
        A = self.A + hold * self.motions if hold else self.A
        H = gauss_newton_matrix(A, J, normals.triangles, len(V))
        if curved:
            add_curvatures(H, normals.curvature(V, pull[len(V) :]), normals.triangles)
        add_squares(H, along, 4 * self.length_weight)
        damping = DAMPING * np.trace(H) / len(H)
        for _ in range(DAMPINGS):  # rounding may have left H not quite definite
            H[np.diag_indices_from(H)] += damping
            delta, damping = -solve_definite(H, half.ravel()), 100 * damping
            if np.isfinite(delta).all():
                return delta.reshape(-1, 3), float(half.ravel() @ delta)
        raise InputError("no step can be found: the controls ask for numbers that are too large, or the cage is broken")


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
    curved: bool = False
    """Whether the last step needed to know that the normals curve; the next frame's will, too."""


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

    It also ends where the shape has settled (see `SLIGHT`), and where no step along its direction brings any of what it
    promises. curved: as the last frame's `Minimum`. watch: called before each step with how many there were.
    """
    V, diagonal, hold = start, energy.basis.cage.diagonal, 0.0
    energies = [energy.energy(energy.basis.state(V))]
    moved, converged = np.inf, False
    for k in range(iterations):
        if watch is not None:
            watch(k)
        delta, decrease = energy.step(V, curved=curved, hold=hold)
        moved = float(energy.motion(V, V + delta).max()) / diagonal
        converged = moved <= accuracy or _settled(-decrease / max(energies[-1], TINY), moved / accuracy)
        last, (V, reached, length) = V, _advanced(energy, V, delta, decrease, energies[-1], step)
        gain = (energies[-1] - reached) / max(-decrease, TINY)
        energies.append(reached)
        if converged or (reached == energies[-2] and curved and not hold):
            break
        if step == "search":
            curved |= gain < KEPT
            hold = _held(hold, gain, length, -decrease, float(np.square(energy.motion(last, V)).sum()))
    return Minimum(V, np.array(energies), converged, moved, curved)


def _settled(promise: float, moves: float) -> bool:
    return promise <= SLIGHT and moves <= SETTLED and promise * moves <= BOTH


def _held(hold: float, gain: float, length: float, promise: float, squares: float) -> float:
    """μ of the next step, from how the last one went: so much of what it promised, so much of its length."""
    if length < 1 or gain < KEPT:
        return max(2 * hold, TIGHTER * promise * length / squares) if squares > 0 else 0.0
    return hold / LOOSER if gain > RIGHT else hold


def _advanced(
    energy: Quadratic, V: Floats, delta: Floats, decrease: float, before: float, step: Step
) -> tuple[Floats, float, float]:
    """The cage after a step, its energy, and the share of the step that was taken."""
    if step != "search":
        V = V + step * delta
        return V, energy.energy(energy.basis.state(V)), float(step)
    length = 1.0
    while length >= SHORTEST:
        trial = V + length * delta
        reached = energy.energy(energy.basis.state(trial))
        if reached <= before + 2 * ENOUGH * length * decrease:
            return trial, reached, length
        length /= 2
    return V, before, 0.0
