"""Rescaling of very large and very small shapes, whose squares and cubes would overflow or vanish.

The factor is a power of two, so it changes no digit. Points of ordinary size are left as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pliant.core.topology import Floats

ORDINARY = 1e-50, 1e50


@dataclass(frozen=True, eq=False)
class Scaling:
    """From points to ``(p - low) 2^power``, and measures of those back."""

    low: Floats
    """(3,)"""
    power: int

    def __call__(self, points: Floats) -> Floats:
        """Points (..., 3), scaled."""
        if self.power == 0:
            return points
        with np.errstate(over="ignore"):  # halves first: the difference of two huge coordinates may not be finite
            return np.asarray(np.ldexp(points / 2 - self.low / 2, self.power + 1))

    def undone(self, measure: Floats | float, dimension: int) -> Floats:
        """A length (1), area (2) or volume (3) of scaled points in the points' own units, as far as it has a number."""
        with np.errstate(over="ignore"):
            return np.asarray(np.ldexp(measure, -dimension * self.power))


def scaling_of(points: Floats) -> Scaling:
    """What gives points (..., 3) of an extraordinary size one of about 1, and leaves others alone."""
    if not points.size:
        return Scaling(np.zeros(3), 0)
    flat = points.reshape(-1, 3)
    low, high = flat.min(axis=0), flat.max(axis=0)
    extent = float(np.max(high / 2 - low / 2))
    if extent == 0 or ORDINARY[0] < extent < ORDINARY[1]:
        return Scaling(low, 0)
    return Scaling(low, -math.frexp(extent)[1])
