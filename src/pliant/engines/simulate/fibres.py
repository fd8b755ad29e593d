"""Active fibres in the flesh: the stress by which muscles shorten along them and bulge.

Fibres whose activation is a, held at both ends, pull with the stress a T. Held by nothing, they shorten by

    s = a T / E,        E: Young's modulus of the flesh around them,

and thicken, because muscles keep their volume, by 1/√(1 - s) - 1. With d their unit direction at rest, that is the
active strain

    ε_a = l (1 - d dᵀ) - s d dᵀ,        l = 1/√(1 - s) - 1,

and Hooke's law acts on ε - ε_a (Nardinocchi and Teresi 2007). That is the same as an active stress along the fibres,
and what thickens them beyond Poisson's effect ν s, in the frame at rest:

    σ_a = -C:ε_a = a T d dᵀ - (l - ν s) C:(1 - d dᵀ)

It is warped along with Hooke's law (`pliant.engines.simulate.warping`). R comes from the skeleton alone, so σ_a does
not depend on x: it is a load on the nodes, -Σ_q w_q R_q σ_a g_I, whose sum is zero, and all matrices stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pliant.core.errors import InputError, about_argument
from pliant.core.shapes import Mesh
from pliant.core.skeleton import Skeleton
from pliant.core.topology import Floats, Ints
from pliant.core.validation import expect
from pliant.engines.simulate.muscles import Muscle, directions
from pliant.engines.simulate.regions import region_weight
from pliant.engines.simulate.warping import UNSTRAINED, CorotatedOperator

TENSION_SHARE = 0.3
"""T over Young's modulus, if nothing else is said: what free fibres shorten by."""
LARGEST_SHORTENING = 0.7
"""Of free fibres; beyond, linear elasticity has no meaning."""


@dataclass(frozen=True, eq=False)
class Contraction:
    """What muscles do at a moment."""

    activation: Floats
    """(m,)"""
    strain: Floats | float = 0.0
    """(rows, 6) ε_a; 0 if there are no muscles."""
    load: Floats | float = 0.0
    """(free, 3) forces on the nodes."""


@dataclass(frozen=True, eq=False)
class Fibres:
    """The muscles of a body at its quadrature points."""

    muscles: tuple[Muscle, ...]
    skeleton: Skeleton
    operator: CorotatedOperator
    fps: float | None
    """Of the motion; None for a single pose."""
    point: Ints
    """(k,) quadrature points that have fibres, once for each muscle there; those of a muscle follow each other."""
    owner: Ints
    """(k,) the muscle of each."""
    direction: Floats
    """(k, 3) unit vectors at rest."""
    most: Floats
    """(k,) T / E times the region's weight: s at full activation."""
    weight: Floats
    """(k,) volume times the region's weight."""
    moment: float | None = None
    """Seconds at which curves of activation stay, if they do."""

    def contraction(self, time: float, joints: Floats, R: Floats) -> Contraction:
        """At a time in seconds, for local rotations of the joints (j, 4) and those of the flesh R (rows, 9)."""
        if not self.muscles:
            return Contraction(np.zeros(0))
        a = np.zeros(len(self.muscles))
        for k, muscle in enumerate(self.muscles):
            with about_argument("muscles", k):
                a[k] = muscle.active(time if self.moment is None else self.moment, self.fps, self.skeleton, joints)
        strain = self.strain(a)
        shift = strain.copy()
        shift[len(self.operator.weights) :] = UNSTRAINED  # springs are not active
        load = -self.operator.forces(np.zeros((self.operator.functions.nodes, 3)), R, shift)
        return Contraction(a, strain, load)

    def strain(self, activation: Floats) -> Floats:
        """(rows, 6) ε_a for an activation (m,)."""
        s = activation[self.owner] * self.most
        wider, strain = 1 / np.sqrt(1 - s) - 1, np.zeros((len(self.operator.mu), 6))
        np.add.at(strain, self.point, wider[:, None] * UNSTRAINED - (s + wider)[:, None] * _squared(self.direction))
        return strain

    def shortening(self, x: Floats) -> Floats:
        """(m,) share by which the fibres of each are shorter than at rest in the mean, for nodes (n, 3)."""
        if not self.muscles:
            return np.zeros(0)
        F = self.operator.gradients(x)[self.point]
        stretch = np.linalg.norm(np.einsum("kij,kj->ki", F, self.direction), axis=1)
        return 1 - np.bincount(self.owner, self.weight * stretch) / np.bincount(self.owner, self.weight)


def find_fibres(
    muscles: Iterable[Muscle],
    operator: CorotatedOperator,
    points: Floats,
    young: Floats,
    *,
    mesh: Mesh | None,
    skeleton: Skeleton,
    fps: float | None = None,
) -> Fibres:
    """The fibres of muscles at quadrature points (q, 3), in flesh of Young's modulus (q,)."""
    found, parts = tuple(muscles), []
    for k, muscle in enumerate(found):
        with about_argument("muscles", k):
            expect(muscle, Muscle, "muscle")
            muscle.check_joints(skeleton)
            with about_argument("region"):
                weight = region_weight(points, muscle.region, mesh, skeleton)
                at = np.flatnonzero(weight > 0)
                if not len(at):
                    raise InputError("no flesh is in the region; expected one that holds some, or more nodes")
            most = weight[at] * (TENSION_SHARE if muscle.tension is None else muscle.tension / young[at])
            if most.max() > LARGEST_SHORTENING:
                raise InputError(
                    f"tension would shorten free fibres by {100 * most.max():.0f} %, as it is over Young's modulus; "
                    f"expected at most {100 * LARGEST_SHORTENING:.0f} %",
                    argument="tension",
                )
            ahead = directions(points[at], weight[at], muscle, skeleton)
            parts.append((at, np.full(len(at), k), ahead, most, operator.weights[at] * weight[at]))
    nothing = (np.zeros(0, int), np.zeros(0, int), np.zeros((0, 3)), np.zeros(0), np.zeros(0))
    point, owner, direction, most, volume = (np.concatenate(column) for column in zip(nothing, *parts, strict=True))
    return Fibres(found, skeleton, operator, fps, point, owner, direction, most, volume)


def _squared(d: Floats) -> Floats:
    """(k, 6) d dᵀ: xx, yy, zz, yz, xz, xy."""
    x, y, z = d.T
    return np.stack([x * x, y * y, z * z, y * z, x * z, x * y], axis=1)
