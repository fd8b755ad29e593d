"""Both ends of a stage of a step: what it starts from, and what it gives (`pliant.engines.simulate.dynamics`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pliant.core.topology import Floats
from pliant.engines.simulate.fibres import Contraction

if TYPE_CHECKING:
    from pliant.contact.state import ContactState
    from pliant.engines.simulate.contacts import StepContact

BACK = (2**0.5 - 1) / 2
"""What BDF2 weighs the first stage's change with."""


@dataclass(frozen=True, eq=False)
class Known:
    """What a stage starts from: its values at the end are these and g times their rates there."""

    x: Floats
    """(n, 3)"""
    velocity: Floats
    """(free, 3)"""
    strain: Floats
    """(q, 6)"""
    carried: Floats
    """(n, 3)"""


@dataclass(frozen=True, eq=False)
class Rates:
    """What a stage integrates, and its rates, at one moment."""

    time: float
    """Seconds since the beginning."""
    nodes: Floats
    """(n, 3)"""
    velocity: Floats
    """(free, 3) of the free nodes."""
    acceleration: Floats
    """(free, 3) by all forces but those of contact."""
    strain: Floats
    """(q, 6) at the quadrature points: xx, yy, zz, yz, xz, xy."""
    strain_rate: Floats
    """(q, 6)"""
    carried: Floats
    """(n, 3) where the bones alone would carry the nodes."""
    carried_rate: Floats
    """(n, 3)"""


@dataclass(frozen=True, eq=False)
class Stage(Rates):
    """The end of a stage."""

    stretch: Floats
    """(q,) J = det F."""
    iterations: int
    converged: bool
    in_contact: StepContact | None
    limit_energy: float = 0.0
    """Of strain limits."""
    contraction: Contraction = field(default_factory=lambda: Contraction(np.zeros(0)))
    """Of muscles."""
    overstrained: int = 0
    """Quadrature points far beyond strain limits."""

    @property
    def contact(self) -> ContactState | None:
        """What the next stage has to know of this one's contacts."""
        return None if self.in_contact is None else self.in_contact.state


def trapezoidal(before: Rates, g: float) -> Known:
    """y + g y' of a step's beginning."""
    carried = before.carried + g * before.carried_rate
    x, free = carried.copy(), len(before.velocity)
    x[:free] = before.nodes[:free] + g * before.velocity
    velocity = before.velocity + g * before.acceleration
    return Known(x, velocity, before.strain + g * before.strain_rate, carried)


def backward(before: Rates, middle: Rates) -> Known:
    """BDF2 over a step's beginning and the end of its first stage."""

    def ahead(y_0: Floats, y: Floats) -> Floats:
        return y + BACK * (y - y_0)

    return Known(
        ahead(before.nodes, middle.nodes), ahead(before.velocity, middle.velocity),
        ahead(before.strain, middle.strain), ahead(before.carried, middle.carried),
    )  # fmt: skip
