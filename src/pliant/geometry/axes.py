"""Axes by name: which one points up, and as vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np

from pliant.core.shapes import Mesh, PointCloud, Shape, TetMesh, World
from pliant.core.topology import Floats

COORDINATE_DIGITS = 7
"""Digits of coordinates over the diagonal."""
SignedAxis = Literal["x", "y", "z", "-x", "-y", "-z"]
AnyShape = TypeVar("AnyShape", Mesh, PointCloud, TetMesh, Shape)
Up = Literal["auto", SignedAxis]
"""The axis that points up; auto: as a file says, or y."""


@dataclass(frozen=True, eq=False)
class OwnFrame:
    """Points in a frame of their own: rotated, about the middle of their box, over its diagonal, rounded.

    So a shape that is rotated, moved and scaled has the same points, bit for bit, but for the few that are rounded
    otherwise; and what is chaotic, such as a simplification, does not depend on how it lies.
    """

    points: Floats
    """(n, 3)"""
    R: Floats
    """(3, 3) rows: the frame's directions"""
    centre: Floats
    """(3,) in the frame's directions"""
    size: float

    @classmethod
    def of(cls, points: Floats, R: Floats) -> OwnFrame:
        """points: (n, 3). R: (3, 3) rows: directions that rotate along with them."""
        rotated = points @ R.T
        low, high = rotated.min(axis=0), rotated.max(axis=0)
        centre, size = (low + high) / 2, max(float(np.linalg.norm(high - low)), 1e-300)
        return cls(np.round((rotated - centre) / size, COORDINATE_DIGITS), R, centre, size)

    def back(self, points: Floats) -> Floats:
        """Points of the frame, where they are in the world."""
        found: Floats = (points * self.size + self.centre) @ self.R
        return found


def up_vector(up: SignedAxis) -> Floats:
    """(3,) the unit vector along an axis."""
    return np.eye(3)["xyz".index(up[-1])] * (-1.0 if up.startswith("-") else 1.0)


def up_axis(shape: Shape, up: Up = "auto") -> SignedAxis:
    """The axis that points up: the given one, or that of the shape's file, or y."""
    if up != "auto":
        return up
    return "z" if shape.world is not None and shape.world.up == "z" else "y"


def with_up(shape: AnyShape, up: str | None) -> AnyShape:
    """The shape with the axis that points up in its `world`, without units, if that is z and its file said nothing.

    So formats that know which axis is up hold it upright: glTF below a node that rotates it.
    """
    return replace(shape, world=World("z", None)) if shape.world is None and up == "z" else shape


def axis_name(direction: Floats) -> str:
    """A direction as text: an axis, or its coordinates."""
    k = int(np.argmax(np.abs(direction)))
    name = ("" if direction[k] > 0 else "-") + "xyz"[k]
    if abs(direction[k]) > np.cos(np.radians(3)):
        return name
    return "(" + ", ".join(f"{value:.2f}" for value in direction) + ")"


def usual_front(up: Floats) -> Floats:
    """(3,) where shapes face by convention: +z where y is up, -y where z is."""
    return np.array([0.0, -1.0, 0.0]) if abs(up[2]) > 0.5 else np.array([0.0, 0.0, 1.0])
