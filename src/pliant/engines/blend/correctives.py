"""Warm starts along the straight blend of two shapes: the equilibrium's offset from the guess, interpolated from knots.

A frame that starts from the guess alone needs tens of iterations, and so do its neighbours. Along the blend of two
shapes, ``w_a = 1 - t, w_b = t``, the correction

    c_i(t) = R_i(t)ᵀ (x_i(t) - guess_i(t)),       R_i(t) the blended rotation of vertex i,

is zero at both ends and smooth between them. It is solved for at the knots t = 1/2; 1/4, 3/4; 1/8, ... in that order,
each warm-started by Lagrange interpolation of the nearest four coarser knots, and every frame is warm-started from the
finest ones. A knot depends on the coarser knots only, so a shape depends on its weights only and not on earlier calls.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from pliant.core.topology import Floats
from pliant.engines.blend import kernels
from pliant.engines.blend.body import SpringBody

KNOT_LEVELS = 3
"""Levels of bisection: 2^KNOT_LEVELS - 1 knots between two shapes."""
STENCIL = 4
"""Knots in one interpolation."""
KNOT_MEMORY = 1 << 30
"""Most bytes of all knots; the oldest are dropped."""

Solve = Callable[[Floats, Floats], Floats]
"""From weights and a start to the equilibrium, both (n, 3) in the base's frame."""


class Correctives:
    """The knots of every pair of shapes that was blended."""

    def __init__(self, body: SpringBody) -> None:
        self.body = body
        self._knots: dict[tuple[int, int, Fraction, float], Floats] = {}

    def start(self, weights: Floats, accuracy: float, solve: Solve) -> Floats:
        """(n, 3) the start at these weights: the guess, corrected on the straight blend of two shapes."""
        guess = self.body.guess(weights)
        used = np.flatnonzero(weights)
        if len(used) != 2 or not (weights[used] > 0).all():
            return guess
        a, b = map(int, used)
        t = float(weights[b])
        near = Fraction(round(t * 2**KNOT_LEVELS), 2**KNOT_LEVELS)
        if abs(t - near) < 1e-12:
            correction = self._knot(a, b, near, accuracy, solve)
        else:
            correction = self._interpolated(a, b, t, KNOT_LEVELS, accuracy, solve)
        return guess + kernels.rotated(correction, self.body.blended_rotvecs(weights), 1.0)

    def _interpolated(self, a: int, b: int, t: float, level: int, accuracy: float, solve: Solve) -> Floats:
        """(n, 3) the correction at t, interpolated from the knots of a level and the coarser ones."""
        count = 2**level
        first = int(np.clip(np.floor(t * count) + 1 - STENCIL // 2, 0, max(count + 1 - STENCIL, 0)))
        knots = [Fraction(j, count) for j in range(first, min(first + STENCIL, count + 1))]
        at = np.array([float(knot) for knot in knots])
        total = np.zeros((self.body.network.count, 3))
        for j, knot in enumerate(knots):
            others = np.delete(at, j)
            total += np.prod((t - others) / (at[j] - others)) * self._knot(a, b, knot, accuracy, solve)
        return total

    def _knot(self, a: int, b: int, t: Fraction, accuracy: float, solve: Solve) -> Floats:
        """(n, 3) the correction at a knot."""
        if t in (0, 1):
            return np.zeros((self.body.network.count, 3))
        key = (a, b, t, accuracy)
        if key not in self._knots:
            weights = np.zeros(len(self.body.points))
            weights[[a, b]] = 1 - float(t), float(t)
            level = t.denominator.bit_length() - 1
            rotvecs = self.body.blended_rotvecs(weights)
            guess = self.body.guess(weights)
            coarse = self._interpolated(a, b, float(t), level - 1, accuracy, solve)
            reached = solve(weights, guess + kernels.rotated(coarse, rotvecs, 1.0))
            self._knots[key] = correction = kernels.rotated(reached - guess, rotvecs, -1.0)
            while len(self._knots) > max(KNOT_MEMORY // correction.nbytes, 2**KNOT_LEVELS):
                del self._knots[next(iter(self._knots))]  # the oldest
        return self._knots[key]
