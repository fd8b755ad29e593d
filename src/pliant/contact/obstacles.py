"""What every obstacle can do, and how obstacles move: by keyframes, or as a given animation deforms them.

Every obstacle is placed in the world and knows the signed distance of points to its surface (negative inside) and its
gradient, a unit vector that points outwards. The kinds are in `pliant.contact.solids` and
`pliant.contact.mesh_obstacle`. Obstacles are values: `moved` returns another one. They remember how they were turned,
so that `carried` can say where a point on a spinning ball is later.

Between keyframes an obstacle moves on a straight line and turns the short way round at constant speed; before the first
and after the last one it stays there. An animation's frames are its keyframes, interpolated linearly.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from pliant.core import rotations
from pliant.core.clips import Animation
from pliant.core.errors import InputError
from pliant.core.rotations import IDENTITY
from pliant.core.shapes import Mesh, TetMesh, as_points
from pliant.core.topology import Floats
from pliant.core.validation import vector
from pliant.core.values import Value, as_array, locked

if TYPE_CHECKING:
    from pliant.contact.mesh_obstacle import MeshObstacle
    from pliant.geometry.spatial import SurfaceTree

Self = TypeVar("Self", bound="Obstacle")
Keyframe = tuple[float, Sequence[float], Sequence[float]]
"""Frame, translation, and rotation as a quaternion (w, x, y, z)."""
MIDDLE = locked(np.full(3, np.nan))
"""The obstacle's own middle, wherever that is."""


class Obstacle(Value):
    """Something solid in the world that shapes cannot enter."""

    turn: Floats
    """(4,) unit quaternion: how it has been turned."""

    @abstractmethod
    def signed(self, points: ArrayLike) -> tuple[Floats, Floats]:
        """(n,) signed distance of points (n, 3), negative inside, and (n, 3) its gradient: unit, outward, finite."""

    def clearance(self, points: Floats) -> Floats:
        """(n,) a distance that points (n, 3) have at least from the obstacle; quick, and 0 where nothing is known."""
        return np.zeros(len(points))

    @abstractmethod
    def _moved(self: Self, rotation: Floats, translation: Floats) -> Self: ...

    @abstractmethod
    def _tessellated(self) -> Mesh: ...

    @property
    @abstractmethod
    def thickness(self) -> float:
        """The smallest extent that matters for passing through."""

    @property
    @abstractmethod
    def middle(self) -> Floats:
        """(3,) the point it turns about."""

    def moved(self: Self, rotation: ArrayLike, translation: ArrayLike) -> Self:
        """The same obstacle elsewhere: x -> R x + t, with the rotation as a quaternion (w, x, y, z)."""
        return self._moved(unit_quaternion(rotation), vector(translation, "translation"))

    def carried(self, points: ArrayLike, to: Obstacle) -> Floats:
        """(n, 3) where points at this obstacle are when it has moved to `to`, the same obstacle later."""
        if type(to) is not type(self):
            raise InputError(
                f"a {type(self).__name__} cannot move to a {type(to).__name__}; expected the same obstacle"
            )
        step = rotations.multiply(to.turn, rotations.inverse(self.turn))
        return to.middle + rotations.rotate(step, rows(points) - self.middle)

    @cached_property
    def surface(self) -> Mesh:
        """Closed triangles that face outwards; round ones are within 1 % of the radius."""
        return self._tessellated()

    @cached_property
    def tree(self) -> SurfaceTree:
        """The surface, prepared for geometric queries."""
        from pliant.geometry.spatial import SurfaceTree

        return SurfaceTree(self.surface)


@dataclass(frozen=True, eq=False)
class MovingObstacle(Value):
    """An obstacle and its keyframes, each a displacement and a turn about `pivot` from the obstacle's own position.

    keys: (frame, translation, rotation), in any order; the rotation is a quaternion (w, x, y, z). None: it stays.
    pivot: what it turns about, at its own position; its middle, unless given.
    """

    obstacle: Obstacle
    keys: Sequence[Keyframe] = ()
    pivot: Floats = field(default_factory=lambda: MIDDLE, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.obstacle, Obstacle):
            raise InputError(f"the obstacle is a {type(self.obstacle).__name__}; expected an Obstacle")
        keys = sorted((_checked_key(k, key) for k, key in enumerate(self.keys)), key=lambda key: key[0])
        for before, after in pairwise(keys):
            if before[0] == after[0]:
                raise InputError(f"two keyframes are at frame {before[0]:g}; expected one for each frame")
        object.__setattr__(self, "keys", tuple(keys))
        pivot = self.obstacle.middle if self.pivot is MIDDLE else self.pivot
        object.__setattr__(self, "pivot", vector(pivot, "pivot"))

    @cached_property
    def _first(self) -> Obstacle:
        """Where it is at, and before, the first keyframe."""
        return self._placed(*self.keys[0][1:]) if self.keys else self.obstacle

    def _placed(self, translation: Any, rotation: Any) -> Obstacle:
        if np.array_equal(rotation, IDENTITY) and not np.any(translation):
            return self.obstacle
        return self.obstacle.moved(rotation, self.pivot - rotations.rotate(rotation, self.pivot) + translation)

    def at(self, frame: float) -> Obstacle:
        """The obstacle at a frame, which may lie between two."""
        frame = _checked_frame(frame)
        if len(self.keys) < 2 or frame <= self.keys[0][0]:
            return self._first
        times = [key[0] for key in self.keys]
        k = min(int(np.searchsorted(times, frame, side="right")), len(times) - 1)
        (begun, from_here, rotation_before), (ends, to_there, rotation_after) = self.keys[k - 1], self.keys[k]
        t = min((frame - begun) / (ends - begun), 1.0)
        return self._placed(
            (1 - t) * np.asarray(from_here) + t * np.asarray(to_there),
            rotations.slerp(rotation_before, rotation_after, t),
        )


class DeformingObstacle(MovingObstacle):
    """A closed mesh that an animation deforms: frame k is the clip's frame k, and the clip's ends stay."""

    obstacle: MeshObstacle
    clip: Animation

    def __init__(self, clip: Animation) -> None:
        from pliant.contact.mesh_obstacle import MeshObstacle

        shape = clip.shape.surface if isinstance(clip.shape, TetMesh) else clip.shape
        if not isinstance(shape, Mesh):
            raise InputError(f"the obstacle's animation moves a {type(shape).__name__}; expected a closed mesh")
        super().__init__(MeshObstacle(shape.with_points(clip.points[0])))
        object.__setattr__(self, "clip", clip)

    def at(self, frame: float) -> Obstacle:
        """The obstacle at a frame, which may lie between two."""
        frame = min(max(_checked_frame(frame), 0.0), len(self.clip) - 1.0)
        k = min(int(frame), max(len(self.clip) - 2, 0))
        t = frame - k
        if t == 0:
            return self.obstacle if k == 0 else self.obstacle.with_points(self.clip.points[k])
        return self.obstacle.with_points((1 - t) * self.clip.points[k] + t * self.clip.points[k + 1])


def as_obstacle(value: Obstacle | Mesh | TetMesh | Animation | MovingObstacle) -> MovingObstacle:
    """An obstacle over time, from one that stays, a closed mesh, or an animation that deforms one."""
    if isinstance(value, MovingObstacle):
        return value
    if isinstance(value, Animation):
        return DeformingObstacle(value)
    if isinstance(value, (Mesh, TetMesh)):
        from pliant.contact.mesh_obstacle import MeshObstacle

        value = MeshObstacle(value.surface if isinstance(value, TetMesh) else value)
    if isinstance(value, Obstacle):
        return MovingObstacle(value)
    raise InputError(
        f"the obstacle is a {type(value).__name__}; expected an Obstacle, a closed Mesh, an Animation of one, "
        "or a MovingObstacle"
    )


def _checked_frame(frame: Any) -> float:
    try:
        number = float(frame)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise InputError(f"the frame is {frame!r:.40}; expected a number")
    return number


def _checked_key(k: int, key: Any) -> Keyframe:
    if not isinstance(key, (tuple, list)) or len(key) != 3:
        raise InputError(f"keyframe {k} is {key!r:.60}; expected (frame, translation, rotation)")
    try:
        placement = vector(key[1], "translation"), unit_quaternion(key[2])
        return _checked_frame(key[0]), tuple(placement[0].tolist()), tuple(placement[1].tolist())
    except InputError as error:
        raise InputError(f"keyframe {k}: {error}") from None


def rows(points: ArrayLike) -> Floats:
    """Points (n, 3), none of them allowed."""
    array = as_array(points, "points", np.float64)
    return as_points(array.reshape(-1, 3) if array.size == 0 else array)


def unit_quaternion(values: ArrayLike) -> Floats:
    """A rotation (w, x, y, z), scaled to unit length, read-only."""
    array = as_array(values, "rotation", np.float64, copy=True)
    if array.shape != (4,) or not np.isfinite(array).all() or not array.any():
        shown = f"{np.array2string(array, threshold=6):.60}"
        raise InputError(f"rotation is {shown}; expected a quaternion (w, x, y, z), such as 1, 0, 0, 0")
    return locked(rotations.normalize(array))
