"""What an elastic body has to offer for contact to move it: the one protocol between engines and `ContactSolver`.

An engine has unknowns of its own: vertices of springs, nodes of a meshless body. Contact sees points: the vertices of
the surface first, then whatever else the body is made of. Motions and forces are arrays (n, 3) over these points, and
the two are dual: forces may act on any point, and `solve` gives the motion of all of them.
"""

from __future__ import annotations

from typing import Protocol

from pliant.contact.forces import Compliance, LocalCompliance
from pliant.core.topology import Floats

CONTACT_STIFFNESS, LOCAL_STIFFNESS = 300.0, 1e3
"""Stiffness of a contact, over that of the vertex it acts on; where vertices give way each by itself, and far."""


class ContactBody(Protocol):
    """An elastic body at one frame or time step."""

    @property
    def free(self) -> Floats:
        """(n, 3) the points without contact."""

    @property
    def stiffness(self) -> Floats:
        """(n,) how much force about moves a point alone by 1: the diagonal of L, or like it."""

    @property
    def compliance(self) -> Compliance | LocalCompliance:
        """L⁻¹ between points, kept from frame to frame as long as L is the same; local if L is the energy's own."""

    @property
    def has_inertia(self) -> bool:
        """Whether `free` is the end of a time step. Then it is in balance, and friction acts on the step's motion."""

    def energy(self, x: Floats, gradient: Floats) -> float:
        """The energy at points x; writes the gradient: forces (n, 3) that x resists with, on any points."""

    def tolerance(self) -> float:
        """Decrease of the energy that is not worth another step; asked for after `energy`."""

    def solve(self, forces: Floats) -> Floats:
        """(n, 3) L⁻¹ of forces, 0 where nothing can move; L is near the energy's second derivative."""

    def resist(self, motion: Floats) -> Floats:
        """(n, 3) about L of a motion: the forces that it takes."""

    def constrained(self, x: Floats) -> Floats:
        """(n, 3) x with the points that are not free to choose where they belong."""

    def largest_force(self, forces: Floats) -> float:
        """The largest of forces (n, 3), gathered at the unknowns."""


def hardness(body: ContactBody) -> Floats:
    """(n,) stiffness of contacts at its points."""
    local = isinstance(body.compliance, LocalCompliance)
    return (LOCAL_STIFFNESS if local else CONTACT_STIFFNESS) * body.stiffness
