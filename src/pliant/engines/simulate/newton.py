"""Newton's method where strain limits act: a linear solve is not enough there.

What is minimised is the energy of a linear solve, quadratic in the nodes x, and that of the limits:

    Φ(x) = Q(x) + Σ_q E_q(F_q(x)),       left(x) = -∂Q/∂x, which is affine

Each step is a linear solve with the limits' second derivative, whose negative eigenvalues are left out, so that it goes
downhill. A line search halves the step until Φ decreases. F is affine along a step, so a trial needs no sum over nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pliant.core.topology import Floats
from pliant.engines.simulate.conjugate_gradients import ErrorScale, Posed, Solved, solve
from pliant.engines.simulate.multigrid import Preconditioner
from pliant.engines.simulate.strain_limits import StrainLimits, Stressed
from pliant.engines.simulate.warping import Singles
from pliant.numerics.linalg import dot

NEWTON_STEPS = 30
TRIALS = 14
"""Of a line search."""
FIRST_TRIALS = 3
"""The same, of the way from the guess to the answer of the linear solve, which is seldom worth more."""
DECREASE = 1e-4
"""Share of the decrease that the slope promises that a step has to reach (Armijo)."""
REDUCTION = 0.05
"""Of what is left, by the linear solve of a step."""
ENERGY_ROUNDING = 1e-12
"""Of an energy."""


@dataclass(frozen=True, eq=False)
class Limited:
    """A shape within its limits."""

    x: Floats
    """(n, 3)"""
    stressed: Stressed
    solved: Solved


class Descent:
    """Nodes on their way down."""

    def __init__(self, limits: StrainLimits, left: Callable[[Floats], Floats], x: Floats) -> None:
        self.limits, self.left, self.x = limits, left, x.copy()
        self.linear = left(x)
        self.stressed = limits.at(x)

    @property
    def lacking(self) -> Floats:
        """(free, 3) the forces that are left."""
        return self.linear - self.limits.forces(self.stressed)

    def advance(self, d: Floats, trials: int = TRIALS) -> float:
        """Move by a share of d (free, 3), which is returned: 0 if Φ decreases by none."""
        free = len(d)
        ahead, step = self.x.copy(), np.zeros_like(self.x)
        ahead[:free] += d
        step[:free] = d
        linear, dF, here = self.left(ahead), self.limits.gradients(step), self.stressed
        fall, bend = dot(self.linear, d), dot(self.linear - linear, d)
        slope = float(np.vdot(here.P, dF)) - fall
        if slope >= 0:
            return 0.0
        share, rounding = 1.0, ENERGY_ROUNDING * (here.energy + abs(fall))
        for _ in range(trials):
            trial = self.limits.stressed(here.F + share * dF)
            change = share * (0.5 * share * bend - fall) + trial.energy - here.energy
            if change <= DECREASE * share * slope + rounding:
                self.stressed = trial
                self.x[:free] += share * d
                self.linear = linear if share == 1.0 else self.left(self.x)
                return share
            share *= 0.5
        return 0.0


def limited(
    posed: Posed,
    guess: Floats,
    linear: Floats,
    left: Callable[[Floats], Floats],
    limits: StrainLimits,
    mass: Singles,
    stiffness: float,
    preconditioner: Preconditioner,
    *,
    accuracy: float,
    iterations: int,
    scale: ErrorScale,
) -> Limited:
    """Nodes (n, 3) within their limits, from a guess and the nodes that the linear solve gave.

    iterations: of a linear solve, at most. The other arguments are those of `conjugate_gradients.refine`.
    """
    free, done, first = posed.operator.free, 0, 0.0
    path = Descent(limits, left, guess)
    path.advance((linear - guess)[:free], FIRST_TRIALS)
    for _ in range(NEWTON_STEPS):
        found = solve(
            posed, path.lacking, mass, stiffness, preconditioner, limits=limits.curvature(path.stressed),
            accuracy=0.3 * accuracy, reduction=REDUCTION, iterations=iterations, scale=scale,
        )  # fmt: skip
        first, done = max(first, found.first), done + found.iterations
        if found.first <= accuracy or path.advance(found.d) == 0.0:
            break
    solved = Solved((path.x - guess)[:free], done, found.first, first, scale)
    return Limited(path.x, path.stressed, solved)
