"""What a shape gives way to: asked of a rig, drawn along in pictures, and measured frame by frame.

contact = Contact([Sphere([0, 1, 0], 0.5)], friction=0.3)
poses = list(rig.poses(weights, **contact.options))
run = BlendRun(rig, weights, poses, contact=contact)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.contact import HalfSpace, MeshObstacle, MovingObstacle, Obstacle, as_obstacle
from pliant.contact.solids import across
from pliant.core.clips import Animation
from pliant.core.shapes import Mesh
from pliant.core.topology import Floats
from pliant.geometry import quality

if TYPE_CHECKING:
    from pliant.render import Extra

COLORS = ("#5b8db8", "#7fa35c", "#b07aa1", "#c9a13b")
"""Of obstacles in pictures, in turn."""
LARGEST_OBSTACLE = 2.5
"""Size of an obstacle with its way, over that of the shape, up to which pictures show all of it."""
PLANE = "#c4c0b6"
FLOOR_SIZE = 0.9
"""Half the side of the square that stands for a plane in pictures, over the diagonal of the clip."""


@dataclass(frozen=True, eq=False)
class Contact:
    """Obstacles, and how a shape touches them and itself."""

    obstacles: Sequence[Any] = ()
    """Anything that `pliant.contact.as_obstacle` takes; afterwards each is a `MovingObstacle`."""
    friction: float = 0.0
    self_contact: bool = False
    thickness: float | None = None
    """Distance kept; None: the engine's own."""
    names: tuple[str, ...] = ()
    """What the obstacles are called; "obstacle 1" and so on if not given."""

    def __post_init__(self) -> None:
        moving = tuple(as_obstacle(obstacle) for obstacle in self.obstacles)
        object.__setattr__(self, "obstacles", moving)
        if len(self.names) != len(moving):
            object.__setattr__(self, "names", tuple(f"obstacle {k + 1}" for k in range(len(moving))))

    def __bool__(self) -> bool:
        return bool(self.obstacles) or self.self_contact

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of `Blendshapes.poses`."""
        return {
            "obstacles": self.obstacles,
            "friction": self.friction,
            "self_contact": self.self_contact,
            "thickness": self.thickness,
        }

    def extras(self, clip: Animation) -> list[Extra]:
        """The obstacles as they are drawn beside a clip."""
        return [_extra(moving, clip, COLORS[k % len(COLORS)]) for k, moving in enumerate(self.obstacles)]

    def extras_at(self, clip: Animation, frame: int) -> list[Extra]:
        """The same at one frame."""
        return [
            replace(extra, shape=extra.shape[frame]) if isinstance(extra.shape, Animation) else extra
            for extra in self.extras(clip)
        ]

    def depths(self, clip: Animation) -> Floats:
        """(frames,) how deep the deepest vertex of a clip is in an obstacle, over the diagonal of its shape."""
        found = np.zeros(len(clip))
        for k, points in enumerate(clip.points):
            found[k] = max((-moving.at(k).signed(points)[0].min() for moving in self.obstacles), default=0.0)
        return np.maximum(found, 0.0) / clip.shape.diagonal


def crossings(clip: Animation) -> Floats:
    """(frames,) pairs of a clip's own triangles that cross."""
    counts = [quality.self_intersections(mesh).count for mesh in clip if isinstance(mesh, Mesh)]
    return np.array(counts, dtype=np.float64)


def _extra(moving: MovingObstacle, clip: Animation, color: str) -> Extra:
    from pliant.render import Extra  # who solves frames draws none

    frames = [moving.at(k) for k in range(len(clip))]
    first = frames[0]
    frames = frames if any(frame is not first for frame in frames) else [first]
    if isinstance(first, HalfSpace):
        squares = [_square(plane, clip) for plane in frames if isinstance(plane, HalfSpace)]
        return Extra(_joined(squares), PLANE, fit=False)
    meshes = [_carried(first, frame) for frame in frames]
    positions = np.concatenate([mesh.points for mesh in meshes])
    fit = float(np.linalg.norm(np.ptp(positions, axis=0))) <= LARGEST_OBSTACLE * clip.shape.diagonal
    return Extra(_joined(meshes), color, fit=fit)


def _carried(first: Obstacle, now: Obstacle) -> Mesh:
    """The obstacle's surface now, with the triangles it had first."""
    if isinstance(now, MeshObstacle):
        return now.surface
    return first.surface.with_points(first.carried(first.surface.points, now))


def _joined(meshes: Sequence[Mesh]) -> Mesh | Animation:
    return meshes[0] if len(meshes) == 1 else Animation(meshes[0], np.stack([mesh.points for mesh in meshes]))


def _square(plane: HalfSpace, clip: Animation) -> Mesh:
    """The part of a plane below the clip."""
    low, high = clip.points.min(axis=(0, 1)), clip.points.max(axis=(0, 1))
    middle = (low + high) / 2
    foot = middle - ((middle - plane.point) @ plane.normal) * plane.normal
    u, v = across(plane.normal)
    reach = FLOOR_SIZE * float(np.linalg.norm(high - low))
    return Mesh(foot + reach * np.stack([-u - v, u - v, u + v, v - u]), [[0, 1, 2, 3]])
