"""A perspective camera that fits all it is shown, in closed form.

Points are first normalised, ``p' = (p - centre) / scale``, so that huge and tiny coordinates draw alike. Camera axes
are x right, y up, z away from the viewer: ``q = A p' + (-cx, -cy, d)``. A point is inside the frame if
``|x - cx| <= tx (z + d)`` and likewise in y, where tx is half the frame's width over the focal length. With
``r = max(x - tx z)`` and ``l = max(-x - tx z)`` over all points the nearest such camera has ``d = (r + l) / (2 tx)``
and ``cx = (r - l) / 2``; the larger d of the two directions is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from pliant.core.errors import InputError
from pliant.core.topology import Floats, Ints
from pliant.geometry.axes import Up as Up, up_vector as axis_vector

View = Literal["auto", "front", "side", "top", "three-quarter"] | tuple[float, float]

VIEWS = {
    "auto": (35.0, 18.0),
    "three-quarter": (35.0, 18.0),
    "front": (0.0, 0.0),
    "side": (90.0, 0.0),
    "top": (0.0, 90.0),
}

FIELD_OF_VIEW = math.radians(28)

LARGEST_AUTO_ANGLE = 35.0
"""Degrees by which "auto" may look past the front of an open surface, around it and above or below it."""
SIDED = 0.25
"""Length of a surface's mean normal, weighted by area, from which on it has a front; 0 if it is closed, 1 if flat."""


def angles_of(view: View) -> tuple[float, float]:
    """Azimuth and elevation in degrees of a named view, or of a pair of numbers."""
    if isinstance(view, str):
        if view not in VIEWS:
            raise InputError(f'view is "{view}"; expected {", ".join(VIEWS)} or (azimuth, elevation) in degrees')
        return VIEWS[view]
    pair = np.asarray(view, dtype=np.float64)
    if pair.shape != (2,) or not np.isfinite(pair).all() or abs(pair[1]) > 90:
        raise InputError(f"view is {view!r}; expected azimuth and elevation (-90 to 90) in degrees")
    return float(pair[0]), float(pair[1])


def up_vector(up: Up) -> Floats:
    """The world's up direction. "auto", where no file says more, means y; nothing is guessed from the shape."""
    if up not in get_args(Up):
        raise InputError(f'up is "{up}"; expected x, y, z, -x, -y, -z or auto (y)')
    return axis_vector("y" if up == "auto" else up)


def _level_axes(up: Up) -> tuple[Floats, Floats]:
    """Directions to the right of, and toward, a viewer at azimuth 0, who looks from +z, or from -y where z is up."""
    upward = up_vector(up)
    toward = np.array([0.0, -1.0, 0.0]) if upward[2] else np.array([0.0, 0.0, 1.0])
    return np.cross(upward, toward), toward


def front_of(points: Floats, triangles: Ints) -> Floats | None:
    """(3,) the direction that most of a surface faces, or None if it faces all sides alike, as a closed one does."""
    if not len(triangles):
        return None
    centre, scale = bounds_of([points[triangles.ravel()]])
    a, b, c = ((points[triangles[:, k]] - centre) / scale for k in range(3))
    normals = np.cross(b - a, c - a)
    total, area = normals.sum(axis=0), np.linalg.norm(normals, axis=1).sum()
    length = float(np.linalg.norm(total))
    return total / length if length > SIDED * area else None


def view_of(front: Floats | None, up: Up) -> tuple[float, float]:
    """The default view, rotated just far enough to see the front of an open surface."""
    azimuth, elevation = VIEWS["auto"]
    if front is None:
        return azimuth, elevation
    right, toward = _level_axes(up)
    across, along, rise = (float(front @ axis) for axis in (right, toward, up_vector(up)))
    level = math.hypot(across, along)
    if level > 0.1:
        faced = math.degrees(math.atan2(across, along))
        past = (azimuth - faced + 180) % 360 - 180
        azimuth = faced + min(max(past, -LARGEST_AUTO_ANGLE), LARGEST_AUTO_ANGLE)
    height = math.degrees(math.atan2(rise, level))
    return azimuth, min(max(elevation, height - LARGEST_AUTO_ANGLE), height + LARGEST_AUTO_ANGLE)


def camera_axes(azimuth: float, elevation: float, up: Up) -> Floats:
    """(3, 3) rows right, up, away from the viewer. Azimuth 0 looks from +z, or from -y where z is up."""
    upward = up_vector(up)
    right, toward = _level_axes(up)
    a, e = math.radians(azimuth), math.radians(elevation)
    level = math.sin(a) * right + math.cos(a) * toward
    return np.stack(
        [
            math.cos(a) * right - math.sin(a) * toward,
            math.cos(e) * upward - math.sin(e) * level,
            -math.cos(e) * level - math.sin(e) * upward,
        ]
    )


@dataclass(frozen=True, eq=False)
class Frame:
    """The part of the picture that shapes may fill, in pixels."""

    width: int
    height: int
    left: int = 0
    top: int = 0
    right: int = 0
    bottom: int = 0
    """Left, top, right and bottom are kept free."""

    @property
    def focal(self) -> float:
        """Focal length in pixels."""
        return 0.5 * min(self.width, self.height) / math.tan(0.5 * FIELD_OF_VIEW)

    @property
    def middle(self) -> tuple[float, float]:
        """Column and row of the free part's centre, where the camera's axis goes."""
        return 0.5 * (self.left + self.width - self.right), 0.5 * (self.top + self.height - self.bottom)


@dataclass(frozen=True, eq=False)
class Camera:
    """A perspective camera over normalised points."""

    centre: Floats
    """(3,) world point that is moved to the origin."""
    scale: float
    """World length that becomes 1."""
    axes: Floats
    """(3, 3) rows right, up, away."""
    offset: Floats
    """(3,) added after the rotation: (-cx, -cy, d)."""
    frame: Frame

    def see(self, points: Floats) -> Floats:
        """(n, 3) camera coordinates of world points."""
        return ((points - self.centre) / self.scale) @ self.axes.T + self.offset

    def project(self, points: Floats) -> Floats:
        """(n, 2) column and row in pixels of world points."""
        seen = self.see(points)
        column, row = self.frame.middle
        ratio = self.frame.focal / seen[:, 2]
        return np.stack([column + ratio * seen[:, 0], row - ratio * seen[:, 1]], axis=1)


def bounds_of(clouds: Iterable[Floats]) -> tuple[Floats, float]:
    """Centre of the bounding box of all clouds, and half its diagonal (1 if there is none)."""
    boxes = [np.stack([cloud.min(axis=0), cloud.max(axis=0)]) for cloud in clouds if len(cloud)]
    if not boxes:
        raise InputError("there is nothing to draw: no shape has any points")
    low = np.min([box[0] for box in boxes], axis=0)
    high = np.max([box[1] for box in boxes], axis=0)
    # Halves first: the difference of two huge coordinates may not be finite.
    half = high / 2 - low / 2
    largest = float(np.max(np.abs(half)))
    radius = largest * float(np.linalg.norm(half / largest)) if largest > 0 else 0.0
    floor = 1e-12 * float(np.max(np.abs([low, high])))
    return low + half, radius if radius > floor else max(1.0, floor)


def fit(
    clouds: Iterable[tuple[Floats, Floats]], centre: Floats, scale: float, frame: Frame, *, pad: float = 0.02
) -> Camera:
    """The nearest camera that has every (points, axes) pair inside the frame, with `pad` around each point.

    With one axes for all pairs the camera is static; with several it rotates about `centre`. The camera returned
    has the axes of the first pair.
    """
    width = frame.width - frame.left - frame.right
    height = frame.height - frame.top - frame.bottom
    tangents = np.array([0.5 * width, 0.5 * height]) / frame.focal
    high, low = np.full(2, -np.inf), np.full(2, -np.inf)
    nearest, first = -np.inf, np.eye(3)
    for points, axes in clouds:
        if not len(points):
            continue
        rotated = ((points - centre) / scale) @ axes.T
        first = axes if nearest == -np.inf else first
        nearest = max(nearest, float(np.max(-rotated[:, 2])))
        for k in range(2):
            high[k] = max(high[k], float(np.max(rotated[:, k] - tangents[k] * rotated[:, 2])))
            low[k] = max(low[k], float(np.max(-rotated[:, k] - tangents[k] * rotated[:, 2])))
    border = pad * np.sqrt(1 + tangents**2)
    distance = max(float(np.max((high + low + 2 * border) / (2 * tangents))), nearest + pad + 0.05)
    shift = (high - low) / 2
    return Camera(centre, scale, first, np.array([-shift[0], -shift[1], distance]), frame)
