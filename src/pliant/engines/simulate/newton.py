"""Newton's method where strain limits or contact act: a linear solve is not enough there.

What is minimised is the energy of a linear solve, quadratic in the nodes x, that of the limits, and that of contact
(`pliant.engines.simulate.contacts`):

    Φ(x) = Q(x) + Σ_q E_q(F_q(x)) + C(x),       left(x) = -∂Q/∂x, which is affine

Each step is a linear solve with the second derivatives of the limits, whose negative eigenvalues are left out, and of
contact, so that it goes downhill. A line search halves the step until Φ decreases. F is affine along a step, so a trial
needs no sum over nodes. Friction has no energy, and that of contact is known less exactly than its forces: a step after
which less than half of the forces are left is taken as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.core.topology import Floats
from pliant.engines.simulate.conjugate_gradients import ErrorScale, Posed, Solved, solve
from pliant.engines.simulate.multigrid import Preconditioner
from pliant.engines.simulate.strain_limits import StrainLimits, Stressed
from pliant.engines.simulate.warping import Singles
from pliant.numerics.linalg import dot

if TYPE_CHECKING:
    from pliant.engines.simulate.contacts import Pressed, StageContact

NEWTON_STEPS = 60
TRIALS = 14
"""Of a line search."""
FIRST_TRIALS = 3
"""The same, of the way from the guess to the answer of the linear solve, which is seldom worth more."""
DECREASE = 1e-4
"""Share of the decrease that the slope promises that a step has to reach (Armijo)."""
FEWER_FORCES = 0.5
"""Share of the forces, left after a step, below which Φ does not have to decrease."""
LAST_SHARES, LEAST_RELIEVED = (1.0, 0.5, 0.25, 0.125), 0.1
"""Shares of a step that are tried, in contact, where Φ decreases for none; and of the forces, that each has to take."""
REDUCTION = 0.05
"""Of what is left, by the linear solve of a step."""
ENERGY_ROUNDING = 1e-12
"""Of an energy."""


@dataclass(frozen=True, eq=False)
class Limited:
    """A shape within its limits and in contact."""

    x: Floats
    """(n, 3)"""
    limits: StrainLimits | None
    """Those that act."""
    limit_energy: float
    """Theirs."""
    solved: Solved


class Descent:
    """Nodes on their way down."""

    def __init__(
        self,
        left: Callable[[Floats], Floats],
        x: Floats,
        limits: StrainLimits | None,
        contact: StageContact | None,
    ) -> None:
        self.left, self.x, self.limits, self.contact = left, x.copy(), limits, contact
        self.linear = left(x)
        self.stressed = None if limits is None else limits.at(x)
        self.pressed = None if contact is None else contact.at(x)
        self._left: Floats | None = None

    @property
    def lacking(self) -> Floats:
        """(free, 3) the forces that are left."""
        if self._left is None:
            self._left = self._lacking(self.linear, self.stressed, self.pressed)
        return self._left

    def _lacking(self, linear: Floats, stressed: Stressed | None, pressed: Pressed | None) -> Floats:
        if self.limits is not None and stressed is not None:
            linear = linear - self.limits.forces(stressed)
        if self.contact is not None and pressed is not None:
            linear = linear - self.contact.forces(pressed)
        return linear

    @property
    def curvatures(self) -> dict[str, Any]:
        """Second derivatives, as `conjugate_gradients.solve` takes them."""
        found: dict[str, Any] = {}
        if self.limits is not None and self.stressed is not None:
            found["limits"] = self.limits.curvature(self.stressed)
        if self.contact is not None and self.pressed is not None:
            found["contacts"] = self.contact.curvature(self.pressed)
        return found

    def limit(self, limits: StrainLimits | None) -> bool:
        """Let limits act from here on, if there are any; whether there are."""
        if limits is not None:
            self.limits, self.stressed, self._left = limits, limits.at(self.x), None
        return limits is not None

    def ahead(self, d: Floats) -> Floats:
        """(n, 3) the nodes after a step d (free, 3)."""
        ahead = self.x.copy()
        ahead[: len(d)] += d
        return ahead

    def advance(self, d: Floats, trials: int = TRIALS) -> float:
        """Move by a share of d (free, 3), which is returned: 0 if none is worth it."""
        free, here = len(d), _energy(self.stressed) + _energy(self.pressed)
        ahead, step = self.ahead(d), np.zeros_like(self.x)
        step[:free] = d
        linear = self.left(ahead)
        fall, bend, slope = dot(self.linear, d), dot(self.linear - linear, d), -dot(self.lacking, d)
        if slope >= 0:
            return 0.0
        share, rounding = 1.0, ENERGY_ROUNDING * (here + abs(fall))
        dF = None if self.limits is None else self.limits.gradients(step)
        if self._relieves(ahead, linear, dF):
            return 1.0
        for _ in range(trials):
            stressed, pressed = self._limited(dF, share), None
            change = share * (0.5 * share * bend - fall) + _energy(stressed) - here
            enough = DECREASE * share * slope + rounding
            if self.contact is not None and change <= enough:
                pressed = self.contact.at(self.x + share * step)
                change += _energy(pressed)
            if change <= enough:
                self.stressed, self.pressed, self._left = stressed, pressed, None
                self.x[:free] += share * d
                self.linear = linear if share == 1.0 else self.left(self.x)
                return share
            share *= 0.5
        for share in LAST_SHARES:
            part = self.ahead(share * d)
            if self._relieves(part, self.left(part), dF, share, 1 - LEAST_RELIEVED * share):
                return share
        return 0.0

    def _relieves(
        self, ahead: Floats, linear: Floats, dF: Floats | None, share: float = 1.0, most: float = FEWER_FORCES
    ) -> bool:
        """Move to nodes ahead (n, 3), where `left` is linear, if contact leaves few of the forces there."""
        if self.contact is None:
            return False
        stressed, pressed = self._limited(dF, share), self.contact.at(ahead)
        left = self._lacking(linear, stressed, pressed)
        if np.linalg.norm(left) > most * np.linalg.norm(self.lacking):
            return False
        self.x, self.linear, self.stressed, self.pressed, self._left = ahead, linear, stressed, pressed, left
        return True

    def _limited(self, dF: Floats | None, share: float) -> Stressed | None:
        """The limits after a share of a step that changes deformation gradients by dF."""
        if self.limits is None or self.stressed is None or dF is None:
            return None
        return self.limits.stressed(self.stressed.F + share * dF)


def _energy(term: Stressed | Pressed | None) -> float:
    return 0.0 if term is None else term.energy


def limited(
    posed: Posed,
    guess: Floats,
    linear: Floats,
    left: Callable[[Floats], Floats],
    limits: StrainLimits | None,
    mass: Singles,
    stiffness: float,
    preconditioner: Preconditioner,
    *,
    accuracy: float,
    iterations: int,
    scale: ErrorScale,
    contact: StageContact | None = None,
    exceeded: Callable[[Floats], StrainLimits | None] = lambda x: None,
) -> Limited:
    """Nodes (n, 3) within their limits and in contact, from a guess and the nodes that the linear solve gave.

    iterations: of a linear solve, at most. exceeded: the limits that nodes exceed, which act as soon as a step would
    lead there. The other arguments are those of `conjugate_gradients.refine`.
    """
    free, done, first = posed.operator.free, 0, 0.0
    path = Descent(left, guess, limits, contact)
    if linear is not guess:
        path.advance((linear - guess)[:free], FIRST_TRIALS)
    for _ in range(NEWTON_STEPS):
        found = solve(
            posed, path.lacking, mass, stiffness, preconditioner, **path.curvatures,
            accuracy=0.3 * accuracy, reduction=REDUCTION, iterations=iterations, scale=scale,
        )  # fmt: skip
        first, done = max(first, found.first), done + found.iterations
        if found.first <= accuracy:
            break
        if path.limits is None and path.limit(exceeded(path.ahead(found.d))):
            continue
        if path.advance(found.d) == 0.0:
            break
    solved = Solved((path.x - guess)[:free], done, found.first, first, scale)
    return Limited(path.x, path.limits, _energy(path.stressed), solved)
