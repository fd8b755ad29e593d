"""Regions that select points of a shape by their position at rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pliant.core.topology import Floats
from pliant.core.validation import as_points, positive_number
from pliant.core.values import Value, as_array


@dataclass(frozen=True, eq=False)
class SphereRegion(Value):
    """The points at rest within `radius` of `centre`."""

    centre: Floats
    """(3,)"""
    radius: float

    def __post_init__(self) -> None:
        centre = as_points(as_array(self.centre, "the sphere's centre", np.float64).reshape(1, -1), "sphere")[0]
        positive_number(self.radius, "the sphere's radius")
        object.__setattr__(self, "centre", centre)

    def __repr__(self) -> str:
        return f"Sphere({self.centre.tolist()}, {self.radius:g})"


Sphere = SphereRegion
"""The public name."""
