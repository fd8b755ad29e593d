"""Muscles: where fibres are, how they run, how hard they pull, and when.

A muscle is a region of the flesh, a direction of its fibres at each point of it, the tension T of fibres that are fully
activated, and an activation a from 0 to 1. `pliant.engines.simulate.fibres` has what comes of it.

Fibres run along a vector, along the bone of a joint, or between two points o and i, the origin and the insertion: then
they spread from one and come together at the other, along the field lines of two charges,

    d ∝ (x - o) / |x - o|³ + (i - x) / |i - x|³,

which is harmonic. If nothing is said, they run along the region's longest axis. All are as at rest.

The activation is a number, a curve over time, a function of it, or follows the angle by which a joint has turned from
rest: it grows from 0 at the first of two angles to 1 at the second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pliant.core import rotations
from pliant.core.clips import WeightClip
from pliant.core.errors import InputError
from pliant.core.skeleton import Skeleton, bone_vector
from pliant.core.topology import Floats
from pliant.core.validation import closest_names, name_list
from pliant.core.values import Value, as_array, owned
from pliant.engines.simulate.options import MuscleOptions
from pliant.geometry.regions import Region

Direction = str | ArrayLike | None
"""The name of a joint, a vector (3,), two points (2, 3), or None for the region's longest axis."""
NEAREST_END = 1e-3
"""Distance to an end of fibres, over that between both ends, from which on they spread."""


@dataclass(frozen=True)
class Flexion:
    """An activation that follows a joint: 0 where it has turned by the first of two angles from rest, 1 by the second.

    The angle, in degrees, is that of its whole rotation, whatever its axis is.
    """

    joint: str
    angles: tuple[float, float] = MuscleOptions.angles

    def __post_init__(self) -> None:
        name_list((self.joint,), "the joint of an activation")
        first, second = MuscleOptions.check(angles=self.angles)["angles"]
        if first == second:
            raise InputError(f"angles are both {first:g} degrees; expected two different ones", argument="angles")
        object.__setattr__(self, "angles", (first, second))

    def at(self, skeleton: Skeleton, joints: Floats) -> float:
        """For local rotations (j, 4) of a skeleton's joints."""
        j, (first, second) = skeleton.index(self.joint), self.angles
        cosine = abs(float(joints[j] @ skeleton.rest_rotations[j]))
        angle = np.degrees(2 * np.arccos(min(cosine, 1.0)))
        return float(np.clip((angle - first) / (second - first), 0, 1))


Activation = float | Flexion | WeightClip | Callable[[float], float] | ArrayLike
"""A number; a `Flexion`; (frames,) one for each frame of the motion, or (keys, 2) seconds and values, linear in
between; the column of a table with the muscle's name; or a function of seconds."""


@dataclass(frozen=True, eq=False)
class Muscle(Value):
    """Fibres in a part of the flesh, which shorten and thicken as they are activated."""

    region: Region
    """Where they are: as regions of materials are named, the name of a joint among them. Its weight multiplies T; in a
    ball, fibres thin out from the centre to nothing."""
    activation: Activation = 1.0
    direction: Direction = None
    tension: float | None = MuscleOptions.tension
    """T, a stress, in the unit of Young's modulus; None: `TENSION_SHARE` of the flesh's own."""
    name: str = ""
    """By default the region's."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "name", self.name or (self.region if isinstance(self.region, str) else "muscle"))
        name_list((self.name,), "the name of a muscle")
        put(self, "tension", MuscleOptions.check(tension=self.tension)["tension"])
        put(self, "direction", _checked_direction(self.direction))
        put(self, "activation", _checked_activation(self.activation, self.name))

    def check_joints(self, skeleton: Skeleton) -> None:
        """The joints that it names have to be there."""
        named = {"direction": self.direction if isinstance(self.direction, str) else None}
        named["activation"] = self.activation.joint if isinstance(self.activation, Flexion) else None
        for argument, joint in named.items():
            if joint is not None and joint not in skeleton.names:
                raise InputError(
                    f'no joint is called "{joint}"; {closest_names(joint, skeleton.names)}', argument=argument
                )

    def check_frames(self, frames: int) -> None:
        """Values for each frame have to be as many as a motion has."""
        given: Any = self.activation
        if isinstance(given, np.ndarray) and given.ndim == 1 and len(given) != frames:
            problem = f"activation has {len(given)} values, one a frame; expected {frames}, as many as the motion has"
            raise InputError(f"{problem}, or keys (k, 2) of seconds and values", argument="activation")

    def active(self, time: float, fps: float | None, skeleton: Skeleton, joints: Floats) -> float:
        """The activation at a time in seconds, with joints turned by local rotations (j, 4).

        fps: of the motion; None if there is none.
        """
        given: Any = self.activation
        if isinstance(given, Flexion):
            return given.at(skeleton, joints)
        if callable(given):
            return float(_shares(given(time), (), f"at {time:.4g} s, the activation"))
        if isinstance(given, float):
            return given
        if given.ndim == 2:
            return float(np.interp(time, *given.T))
        if fps is None:
            problem = f"activation has {len(given)} values, one a frame; expected a number or keys (k, 2) for one pose"
            raise InputError(problem, argument="activation")
        return float(np.interp(time * fps, np.arange(len(given)), given))


def directions(points: Floats, weights: Floats, muscle: Muscle, skeleton: Skeleton) -> Floats:
    """(p, 3) unit vectors along the fibres at points (p, 3) at rest, which have weights (p,) in the region."""
    along: Any = muscle.direction
    if along is None:
        centred = points - np.average(points, axis=0, weights=weights)
        along = np.linalg.eigh(np.einsum("p,pi,pj->ij", weights, centred, centred))[1][:, -1]
    elif isinstance(along, str):
        j = skeleton.index(along)
        along = rotations.rotate(skeleton.rest_world[1][j], bone_vector(skeleton, j))
        if not along.any():
            problem = f'joint "{muscle.direction}" has no bone to run along; expected one with a child or an end'
            raise InputError(problem, argument="direction")
    elif along.ndim == 2:
        return _spread(points, *along)
    return np.tile(along / np.linalg.norm(along), (len(points), 1))


def _spread(points: Floats, origin: Floats, insertion: Floats) -> Floats:
    """(p, 3) along the field lines from one point to another."""
    axis = insertion - origin
    length = float(np.linalg.norm(axis))
    field = np.zeros_like(points)
    for away in (points - origin, insertion - points):
        field += away / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), NEAREST_END * length) ** 3
    size = np.linalg.norm(field, axis=1, keepdims=True)
    tiny = size[:, 0] <= NEAREST_END / length**2  # behind the ends, where both parts may cancel
    return np.where(tiny[:, None], axis / length, field / np.where(tiny[:, None], 1.0, size))


def _checked_direction(direction: Any) -> Any:
    if direction is None or isinstance(direction, str):
        return direction
    given = owned(direction, "direction", np.float64)
    expected = "expected a vector, two points from the origin to the insertion, or the name of a joint"
    if given.shape not in ((3,), (2, 3)):
        raise InputError(f"direction has shape {given.shape}; {expected}", argument="direction")
    if not np.isfinite(given).all() or not (given if given.ndim == 1 else given[1] - given[0]).any():
        what = "finite numbers, not all of them 0" if given.ndim == 1 else "finite points that are apart"
        raise InputError(f"direction is {given.tolist()}; expected {what}", argument="direction")
    return given


def _checked_activation(activation: Any, name: str) -> Any:
    if isinstance(activation, Flexion) or callable(activation):
        return activation
    if isinstance(activation, WeightClip):
        return _column(activation, name)
    given = as_array(activation, "activation", np.float64)
    if given.ndim == 0:
        return float(_shares(given, (), "activation"))
    if given.ndim == 1 and len(given):
        return owned(_shares(given, given.shape, "activation"), "activation")
    if given.ndim != 2 or given.shape[1] != 2 or not len(given):
        problem = f"activation has shape {given.shape}; expected a number, (frames,), or (keys, 2) seconds and values"
        raise InputError(problem, argument="activation")
    if not np.isfinite(given[:, 0]).all() or (np.diff(given[:, 0]) <= 0).any():
        raise InputError("activation: times do not grow; expected seconds, each after the last", argument="activation")
    _shares(given[:, 1], (len(given),), "activation")
    return owned(given, "activation")


def _column(table: WeightClip, name: str) -> Floats:
    """The values of a muscle in a table: (keys, 2) if the table has a frame rate, else (frames,)."""
    if name not in table.names:
        problem = f'the table has no column "{name}"; {closest_names(name, table.names)}'
        raise InputError(problem, argument="activation")
    values = _shares(table.values[:, table.names.index(name)], (len(table),), "activation")
    if table.fps is None:
        return owned(values, "activation")
    return owned(np.stack([np.arange(len(table)) / table.fps, values], axis=1), "activation")


def _shares(values: Any, shape: tuple[int, ...], what: str) -> Floats:
    """Numbers from 0 to 1."""
    given = as_array(values, what, np.float64)
    good = (given >= 0) & (given <= 1)
    if given.shape != shape or not good.all():
        wrong = given if given.shape != shape or not shape else given[~good][0]
        raise InputError(f"{what} is {wrong.tolist()!r:.40}; expected numbers from 0 to 1", argument="activation")
    return given
