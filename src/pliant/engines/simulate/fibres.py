"""Active fibres in the flesh: the stress by which muscles shorten along them and bulge.

Fibres of direction d (a unit vector, at rest) and activation a have, besides Hooke's, the active stress

    σ_a = a T d dᵀ - x(e) C:(1 - d dᵀ),     x(e) = 1/√(1 + e) - 1 + e/2

in the frame at rest, warped along with Hooke's law (`pliant.engines.simulate.warping`). Held at both ends, they pull
with the stress a T. Held by nothing, they shorten by s = a T / E, E being Young's modulus of the flesh around them, and
Poisson's effect thickens them by ν s.

That keeps the volume (at ν = 1/2) of small strains only. The second part adds what fibres of strain e = dᵀ ε d lack to
be as thick as their volume asks, e being cut off at -s and 0 (and at -`MOST_SHORTENED`): only what the muscle itself
has shortened counts.

R comes from the skeleton alone, so σ_a is a load on the nodes, -Σ_q w_q R_q σ_a g_I, whose sum is zero, and all
matrices stay as they are. e in the small second part is that of the nodes before a solve: statics solve again with
the new one; in a step it is that of the stage's guess, which is right to second order, as the step is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pliant.core.errors import InputError, about_argument
from pliant.core.regions import Sphere
from pliant.core.shapes import Mesh
from pliant.core.skeleton import Skeleton
from pliant.core.topology import Floats, Ints
from pliant.core.validation import expect
from pliant.engines.simulate.muscles import Muscle, directions
from pliant.engines.simulate.regions import MaterialField, region_weight
from pliant.engines.simulate.warping import UNSTRAINED, CorotatedOperator
from pliant.geometry.regions import Region

TENSION_SHARE = 0.5
"""T over Young's modulus, if nothing else is said."""
LARGEST_TENSION = 2.0
"""The same, at most: beyond, even fibres that are held crumple."""
MOST_SHORTENED = 0.4
"""Share up to which shorter fibres are thickened; beyond, small changes of e would be large ones of x."""


@dataclass(frozen=True, eq=False)
class Contraction:
    """What muscles do at a moment."""

    activation: Floats
    """(m,)"""
    strain: Floats | float = 0.0
    """(rows, 6) ε_a, the strain at which Hooke's stress is -σ_a; 0 if there are no muscles."""
    load: Floats | float = 0.0
    """(free, 3) forces on the nodes."""

    def near(self, other: Contraction, strain: float) -> bool:
        """Whether the active strains of another one differ by so much at most."""
        return float(np.abs(np.subtract(self.strain, other.strain)).max()) <= strain


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
    poisson: Floats
    """(k,) ν of the flesh."""
    weight: Floats
    """(k,) volume times the region's weight."""
    moment: float | None = None
    """Seconds at which curves of activation stay, if they do."""

    def contraction(self, time: float, joints: Floats, R: Floats, x: Floats) -> Contraction:
        """At a time in seconds, for local rotations of the joints (j, 4), rotations R (rows, 9) and nodes (n, 3)."""
        if not self.muscles:
            return Contraction(np.zeros(0))
        a = np.zeros(len(self.muscles))
        for k, muscle in enumerate(self.muscles):
            with about_argument("muscles", k):
                a[k] = muscle.active(time if self.moment is None else self.moment, self.fps, self.skeleton, joints)
        strain = self.strain(a, self.operator.strains(x, R)[0])
        shift = strain.copy()
        shift[len(self.operator.weights) :] = UNSTRAINED  # springs are not active
        load = -self.operator.forces(np.zeros((self.operator.functions.nodes, 3)), R, shift)
        return Contraction(a, strain, load)

    def strain(self, activation: Floats, strain: Floats) -> Floats:
        """(rows, 6) ε_a for an activation (m,) and the strain ε (rows, 6) that there is."""
        s, along = activation[self.owner] * self.most, _square(self.direction)
        stretched = np.einsum("ki,ki,i->k", strain[self.point], along, [1, 1, 1, 2, 2, 2])
        e = np.clip(stretched, -np.minimum(s, MOST_SHORTENED), 0)
        thicker = self.poisson * s + 1 / np.sqrt(1 + e) - 1 + e / 2
        active = np.zeros_like(strain)
        np.add.at(active, self.point, thicker[:, None] * UNSTRAINED - (s + thicker)[:, None] * along)
        return active

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
    material: MaterialField,
    *,
    mesh: Mesh | None,
    skeleton: Skeleton,
    fps: float | None = None,
) -> Fibres:
    """The fibres of muscles at quadrature points (q, 3), the first that the material is given at."""
    found, parts, young, poisson = tuple(muscles), [], material.young, material.poisson
    for k, muscle in enumerate(found):
        with about_argument("muscles", k):
            expect(muscle, Muscle, "muscle")
            muscle.check_joints(skeleton)
            with about_argument("region"):
                weight = _weight(points, muscle.region, mesh, skeleton)
                at = np.flatnonzero(weight > 0)
                if not len(at):
                    raise InputError("no flesh is in the region; expected one that holds some, or more nodes")
            most = weight[at] * (TENSION_SHARE if muscle.tension is None else muscle.tension / young[at])
            if most.max() > LARGEST_TENSION:
                raise InputError(
                    f"tension is {most.max():.3g} times Young's modulus of the flesh there; expected at most "
                    f"{LARGEST_TENSION:g} times",
                    argument="tension",
                )
            ahead = directions(points[at], weight[at], muscle, skeleton)
            parts.append((at, np.full(len(at), k), ahead, most, poisson[at], operator.weights[at] * weight[at]))
    nothing = np.zeros(0, int), np.zeros(0, int), np.zeros((0, 3)), np.zeros(0), np.zeros(0), np.zeros(0)
    point, owner, d, most, nu, volume = (np.concatenate(column) for column in zip(nothing, *parts, strict=True))
    return Fibres(found, skeleton, operator, fps, point, owner, d, most, nu, volume)


def _weight(points: Floats, region: Region, mesh: Mesh | None, skeleton: Skeleton) -> Floats:
    """(q,) what multiplies T at points (q, 3): the region's weight; in a ball, it falls from the centre to nothing."""
    inside = region_weight(points, region, mesh, skeleton)
    if not isinstance(region, Sphere):
        return inside
    return inside * (1 - np.square(points - region.centre).sum(axis=1) / region.radius**2)


def _square(d: Floats) -> Floats:
    """(k, 6) d dᵀ: xx, yy, zz, yz, xz, xy."""
    x, y, z = d.T
    return np.stack([x * x, y * y, z * z, y * z, x * z, x * y], axis=1)
