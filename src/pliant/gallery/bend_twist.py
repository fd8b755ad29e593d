"""Exact maps of space that bend and twist: the ground truth behind the poses of bars, tubes and tentacles.

Bending by the angle A a bar of length L, whose centre line lies on the x axis, into a circular arc of curvature
κ = A / L towards y:

    x' = sin(κx) / κ - y sin(κx),   y' = (1 - cos(κx)) / κ + y cos(κx),   z' = z

The centre line keeps its length. The volume factor is 1 - κy, so that a section that is even about the centre line
keeps its volume. Twisting rotates the section at x by A x / L; it keeps the centre line and every volume.

`Centreline` is a curve in space given by its curvatures k₁(s), k₂(s) in a frame that does not spin about it (parallel
transport, or Bishop frame): t' = k₁ n₁ + k₂ n₂, n₁' = -k₁ t, n₂' = -k₂ t. Curvatures are constant between knots, so
every piece is an exact circular arc and s is arc length.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pliant.core.errors import InputError
from pliant.core.rotations import exp, matrix, multiply, quaternion, rotate
from pliant.core.shapes import as_points
from pliant.core.topology import Floats
from pliant.core.validation import positive_number

BoxAxis = Literal["x", "y", "z"]


def _axes(along: BoxAxis, towards: BoxAxis) -> list[int]:
    """Columns that hold the length, the direction and the rest, right-handed."""
    if along not in ("x", "y", "z") or towards not in ("x", "y", "z") or along == towards:
        raise InputError(f'along is "{along}" and towards is "{towards}"; expected two different axes of x, y, z')
    first, second = "xyz".index(along), "xyz".index(towards)
    return [first, second, 3 - first - second]


def _check_angle(degrees: float, length: float) -> None:
    if not np.isfinite(degrees):
        raise InputError(f"the angle is {degrees}; expected a finite number of degrees")
    positive_number(length, "length")


def bend(points: ArrayLike, degrees: float, *, length: float, along: BoxAxis = "x", towards: BoxAxis = "y") -> Floats:
    """Bend space so that a stretch of `length` about the origin on one axis becomes an arc of `degrees`.

    Refuses to bend points beyond the centre of the arc, where the map would invert.
    """
    p = as_points(points)
    _check_angle(degrees, length)
    order = _axes(along, towards)
    x, y, z = p[:, order].T
    curvature = np.radians(degrees) / length
    if len(p) and (curvature * y).max() >= 1:
        raise InputError(
            f"bending by {degrees:g} degrees over {length:g} gives a radius of {1 / abs(curvature):.3g}, "
            f"and points reach {abs(float(y[np.argmax(curvature * y)])):.3g} towards its centre; bend less"
        )
    angle = curvature * x
    along_arc = x * np.sinc(angle / np.pi)  # sin(κx) / κ, also where κ is 0
    rise = x * np.sin(angle / 2) * np.sinc(angle / 2 / np.pi)  # (1 - cos(κx)) / κ
    moved = np.empty_like(p)
    moved[:, order] = np.stack([along_arc - y * np.sin(angle), rise + y * np.cos(angle), z], axis=1)
    return moved


def twist(points: ArrayLike, degrees: float, *, length: float, along: BoxAxis = "x") -> Floats:
    """Twist space about an axis by `degrees` over `length`; the section at the origin stays."""
    p = as_points(points)
    _check_angle(degrees, length)
    axis = _axes(along, "y" if along != "y" else "z")[0]
    vectors = np.zeros_like(p)
    vectors[:, axis] = np.radians(degrees) / length * p[:, axis]
    return rotate(exp(vectors), p)


@dataclass(frozen=True, eq=False)
class Centreline:
    """A curve by its curvatures; see the module. Starts at `start`, along y, with n₁ = z and n₂ = x."""

    length: float
    curvatures: Floats
    """(pieces, 2) k₁ and k₂ on equal pieces of the length."""
    start: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @cached_property
    def _knots(self) -> tuple[Floats, Floats]:
        """Positions (pieces, 3) and rotations (pieces, 4) where the pieces begin."""
        step = self.length / len(self.curvatures)
        chords, quaternions = _arc(self.curvatures, np.full(len(self.curvatures), step))
        positions, frames = [np.array(self.start)], [np.eye(3)]
        for chord, rotation in zip(chords[:-1], matrix(quaternions[:-1]), strict=True):
            positions.append(positions[-1] + frames[-1] @ chord)
            frames.append(frames[-1] @ rotation)
        return np.stack(positions), quaternion(np.stack(frames))

    def frames(self, s: Floats) -> tuple[Floats, Floats]:
        """Positions (..., 3) and rotations (..., 4) at arc lengths s; rotations take x, y, z to n₂, t, n₁."""
        step = self.length / len(self.curvatures)
        piece = np.clip((s / step).astype(int), 0, len(self.curvatures) - 1)
        positions, quaternions = self._knots
        chord, rotation = _arc(self.curvatures[piece], s - piece * step)
        return positions[piece] + rotate(quaternions[piece], chord), multiply(quaternions[piece], rotation)

    def carry(self, points: Floats) -> Floats:
        """Points about the straight line along y from the origin, carried to the same position relative to this one."""
        positions, quaternions = self.frames(points[:, 1])
        return positions + rotate(quaternions, points * [1.0, 0.0, 1.0])


def _arc(curvature: Floats, s: Floats) -> tuple[Floats, Floats]:
    """End (..., 3) and rotation (..., 4) of arcs of length s that start at the origin along y."""
    k1, k2 = curvature[..., 0], curvature[..., 1]
    angle = np.hypot(k1, k2) * s
    sideways = s * s / 2 * np.sinc(angle / 2 / np.pi) ** 2  # (1 - cos(κs)) / κ²
    end = np.stack([k2 * sideways, s * np.sinc(angle / np.pi), k1 * sideways], axis=-1)
    zero = np.zeros_like(k1)
    return end, exp(np.stack([k1 * s, zero, -k2 * s], axis=-1))
