"""Solid obstacles with exact signed distances: sphere, capsule, cylinder, box and half-space.

Where the nearest surface point is not unique (a sphere's centre, a capsule's axis, the planes inside a box that are as
far from two sides) the gradient points to one of the nearest.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from pliant.contact.obstacles import Obstacle, rows, unit_quaternion
from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.rotations import IDENTITY
from pliant.core.shapes import Mesh
from pliant.core.topology import Floats
from pliant.core.validation import positive_number, vector
from pliant.core.values import locked

ROUND_SEGMENTS = 40
"""Corners of the circles that round surfaces are tessellated with: 0.6 % of the radius inside the true surface."""
HORIZON = 1e6
"""Half the side of the quad that stands for a plane, over the size of its coordinates."""


@dataclass(frozen=True, eq=False)
class Sphere(Obstacle):
    """A ball."""

    centre: Floats
    radius: float
    turn: Floats = field(default_factory=lambda: IDENTITY, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        _keep(self, centre=vector(self.centre, "centre"), radius=positive_number(self.radius, "radius"))
        _keep(self, turn=unit_quaternion(self.turn))

    def signed(self, points: ArrayLike) -> tuple[Floats, Floats]:
        """See `Obstacle.signed`."""
        away = rows(points) - self.centre
        direction, distance = directions(away, np.broadcast_to([0.0, 1.0, 0.0], away.shape))
        return distance - self.radius, direction

    def _moved(self, rotation: Floats, translation: Floats) -> Sphere:
        turn = rotations.multiply(rotation, self.turn)
        return replace(self, centre=rotations.rotate(rotation, self.centre) + translation, turn=turn)

    def _tessellated(self) -> Mesh:
        return revolved(_arc(self.radius, 0.0, -1.0, 1.0), self.centre, np.array([0.0, 1.0, 0.0]))

    @property
    def thickness(self) -> float:
        """Its diameter."""
        return 2 * self.radius

    @property
    def middle(self) -> Floats:
        """Its centre."""
        return self.centre


@dataclass(frozen=True, eq=False)
class _Rod(Obstacle):
    """Something round about the line from a to b."""

    a: Floats
    b: Floats
    radius: float
    turn: Floats = field(default_factory=lambda: IDENTITY, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        _keep(self, a=vector(self.a, "a"), b=vector(self.b, "b"), radius=positive_number(self.radius, "radius"))
        _keep(self, turn=unit_quaternion(self.turn))
        if not self.length > 1e-12 * max(np.abs(self.a).max(), np.abs(self.b).max()):
            name, position = type(self).__name__.lower(), tuple(self.a.tolist())
            raise InputError(f"a {name}'s ends are both at {position}; expected two points, or use a sphere")

    def _moved(self: _AnyRod, rotation: Floats, translation: Floats) -> _AnyRod:
        a, b = rotations.rotate(rotation, np.stack([self.a, self.b])) + translation
        return replace(self, a=a, b=b, turn=rotations.multiply(rotation, self.turn))

    @cached_property
    def length(self) -> float:
        """From a to b."""
        return float(np.linalg.norm(self.b - self.a))

    @cached_property
    def axis(self) -> Floats:
        """(3,) unit, from a to b."""
        return locked((self.b - self.a) / self.length)

    @property
    def middle(self) -> Floats:
        """Between its ends."""
        return (self.a + self.b) / 2

    def _along_and_across(self, points: ArrayLike) -> tuple[Floats, Floats]:
        """(n,) how far along the axis from the middle, and (n, 3) away from the axis."""
        away = rows(points) - self.middle
        along = away @ self.axis
        return along, away - along[:, None] * self.axis

    def _sideways(self, count: int) -> Floats:
        """(count, 3) a direction across the axis."""
        return np.broadcast_to(across(self.axis)[0], (count, 3))


_AnyRod = TypeVar("_AnyRod", bound=_Rod)


@dataclass(frozen=True, eq=False)
class Capsule(_Rod):
    """All that is within `radius` of the line from a to b."""

    def signed(self, points: ArrayLike) -> tuple[Floats, Floats]:
        """See `Obstacle.signed`."""
        along, away = self._along_and_across(points)
        beyond = along - np.clip(along, -self.length / 2, self.length / 2)
        direction, distance = directions(away + beyond[:, None] * self.axis, self._sideways(len(along)))
        return distance - self.radius, direction

    def _tessellated(self) -> Mesh:
        half = self.length / 2
        profile = np.concatenate([_arc(self.radius, -half, -1.0, 0.0), _arc(self.radius, half, 0.0, 1.0)])
        return revolved(profile, self.middle, self.axis)

    @property
    def thickness(self) -> float:
        """Its diameter."""
        return 2 * self.radius


@dataclass(frozen=True, eq=False)
class Cylinder(_Rod):
    """A solid cylinder with flat ends at a and b."""

    def signed(self, points: ArrayLike) -> tuple[Floats, Floats]:
        """See `Obstacle.signed`."""
        along, away = self._along_and_across(points)
        radial, reach = directions(away, self._sideways(len(along)))
        outward = np.where(along < 0, -1.0, 1.0)
        beyond = np.stack([reach - self.radius, np.abs(along) - self.length / 2], axis=1)
        distance, share = box_distance(beyond)
        return distance, share[:, :1] * radial + (share[:, 1] * outward)[:, None] * self.axis

    def rim_distance(self, points: ArrayLike) -> Floats:
        """(n,) of points (n, 3) from the nearer of its two rims."""
        along, away = self._along_and_across(points)
        return np.hypot(np.linalg.norm(away, axis=1) - self.radius, np.abs(along) - self.length / 2)

    def _tessellated(self) -> Mesh:
        half = self.length / 2
        profile = np.array([[0, -half], [self.radius, -half], [self.radius, half], [0, half]])
        return revolved(profile, self.middle, self.axis)

    @property
    def thickness(self) -> float:
        """The smaller of diameter and length."""
        return min(2 * self.radius, self.length)


@dataclass(frozen=True, eq=False)
class Box(Obstacle):
    """A cuboid with its sides' lengths `size`, turned by `rotation` (w, x, y, z) about its centre."""

    centre: Floats
    size: Floats
    rotation: Floats = field(default_factory=lambda: IDENTITY)
    turn: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        size = vector(self.size, "size")
        if not (size > 0).all():
            raise InputError(f"the box's size is {tuple(size.tolist())}; expected three positive lengths")
        _keep(self, centre=vector(self.centre, "centre"), size=size, rotation=unit_quaternion(self.rotation))
        _keep(self, turn=self.rotation)

    @property
    def middle(self) -> Floats:
        """Its centre."""
        return self.centre

    def signed(self, points: ArrayLike) -> tuple[Floats, Floats]:
        """See `Obstacle.signed`."""
        local = rotations.rotate(rotations.inverse(self.rotation), rows(points) - self.centre)
        distance, share = box_distance(np.abs(local) - self.size / 2)
        return distance, rotations.rotate(self.rotation, share * np.where(local < 0, -1.0, 1.0))

    def _moved(self, rotation: Floats, translation: Floats) -> Box:
        centre = rotations.rotate(rotation, self.centre) + translation
        return replace(self, centre=centre, rotation=rotations.multiply(rotation, self.rotation))

    def _tessellated(self) -> Mesh:
        corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * self.size / 2
        faces = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
        return Mesh(rotations.rotate(self.rotation, corners) + self.centre, np.array(faces))

    @property
    def thickness(self) -> float:
        """Its shortest side."""
        return float(self.size.min())


@dataclass(frozen=True, eq=False)
class HalfSpace(Obstacle):
    """All that lies behind a plane: the normal points out of the solid."""

    point: Floats
    normal: Floats
    turn: Floats = field(default_factory=lambda: IDENTITY, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        normal = vector(self.normal, "normal")
        length = float(np.linalg.norm(normal))
        if not 1e-150 < length < 1e150:
            raise InputError(f"the plane's normal is {tuple(normal.tolist())}; expected a direction")
        _keep(self, point=vector(self.point, "point"), normal=locked(normal / length), turn=unit_quaternion(self.turn))

    def signed(self, points: ArrayLike) -> tuple[Floats, Floats]:
        """See `Obstacle.signed`."""
        away = rows(points) - self.point
        return away @ self.normal, np.tile(self.normal, (len(away), 1))

    def _moved(self, rotation: Floats, translation: Floats) -> HalfSpace:
        return HalfSpace(
            rotations.rotate(rotation, self.point) + translation,
            rotations.rotate(rotation, self.normal),
            turn=rotations.multiply(rotation, self.turn),
        )

    def _tessellated(self) -> Mesh:
        u, v = across(self.normal)
        far = HORIZON * max(1.0, float(np.abs(self.point).max()))
        return Mesh(self.point + far * np.stack([-u - v, u - v, u + v, v - u]), np.array([[0, 1, 2], [0, 2, 3]]))

    @property
    def thickness(self) -> float:
        """Infinite."""
        return np.inf

    @property
    def middle(self) -> Floats:
        """The point that it was given by."""
        return self.point


def directions(vectors: Floats, otherwise: Floats) -> tuple[Floats, Floats]:
    """Unit vectors (n, 3), those given `otherwise` where the length is zero, and the lengths (n,)."""
    length = np.linalg.norm(vectors, axis=1)
    tiny = length < 1e-150
    return np.where(tiny[:, None], otherwise, vectors / np.where(tiny, 1.0, length)[:, None]), length


def box_distance(beyond: Floats) -> tuple[Floats, Floats]:
    """Signed distance (n,) to a box and its gradient (n, k), from how far a point is beyond each pair of sides."""
    outside = np.maximum(beyond, 0.0)
    nearest = np.eye(beyond.shape[1])[np.argmax(beyond, axis=1)]
    share, distance = directions(outside, nearest)
    return np.where(distance > 0, distance, beyond.max(axis=1)), share


def across(axis: Floats) -> tuple[Floats, Floats]:
    """Two unit vectors that make a right-handed frame with a unit one: u × v = axis."""
    u = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    u /= np.linalg.norm(u)
    return u, np.cross(axis, u)


def _arc(radius: float, height: float, start: float, stop: float) -> Floats:
    """(k, 2) distance from the axis and height along a circle's arc, from -1 (its lowest point) to 1 (its highest)."""
    angle = np.linspace(start, stop, round(ROUND_SEGMENTS / 4 * (stop - start)) + 1) * np.pi / 2
    ring = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    ring[np.abs(angle) == np.pi / 2, 0] = 0.0
    return ring + np.array([0.0, height])


def revolved(profile: Floats, middle: Floats, axis: Floats) -> Mesh:
    """A profile (k, 2) of distances from the axis and heights along it, turned about the axis, on which it ends.

    The triangles face outwards if the profile runs along the axis.
    """
    u, v = across(axis)
    angle = 2 * np.pi * np.arange(ROUND_SEGMENTS) / ROUND_SEGMENTS
    circle = np.cos(angle)[:, None] * u + np.sin(angle)[:, None] * v
    rings = profile[1:-1, 0, None, None] * circle + profile[1:-1, 1, None, None] * axis
    ends = profile[[0, -1], 1, None] * axis
    points = np.concatenate([rings.reshape(-1, 3), ends]) + middle
    here = np.arange(ROUND_SEGMENTS)
    after = np.roll(here, -1)
    first = ROUND_SEGMENTS * np.arange(len(profile) - 3)[:, None]
    sides = [
        np.stack([first + here, first + after, first + ROUND_SEGMENTS + after], axis=2),
        np.stack([first + here, first + ROUND_SEGMENTS + after, first + ROUND_SEGMENTS + here], axis=2),
    ]
    bottom, top, last = len(points) - 2, len(points) - 1, ROUND_SEGMENTS * (len(profile) - 3)
    caps = [np.stack([0 * here + bottom, after, here], 1), np.stack([0 * here + top, last + here, last + after], 1)]
    return Mesh(points, np.concatenate([*(side.reshape(-1, 3) for side in sides), *caps]))


def _keep(value: Obstacle, **fields: object) -> None:
    for name, content in fields.items():
        object.__setattr__(value, name, content)
