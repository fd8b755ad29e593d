"""Sources of a transfer on the stage: beside the target, at its size, moving along with it.

Mesh sequences are drawn as they are, motions of joints as bones. Balls of one colour show which piece of a source moves
which part of the target.
"""

from __future__ import annotations

import colorsys
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pliant.app.studio.desk import Desk
from pliant.app.studio.viewport import GHOST_COLOR, Drawn
from pliant.core.clips import Animation
from pliant.core.rotations import between, matrix, rotate
from pliant.core.shapes import Mesh, Shape, bounding_diagonal
from pliant.core.skeleton import Motion
from pliant.core.topology import Floats
from pliant.engines.transfer.app.scene import TransferScene
from pliant.engines.transfer.deformation_transfer import Transfer
from pliant.engines.transfer.source_tracks import read_sources
from pliant.geometry.axes import SignedAxis, up_axis, up_vector
from pliant.geometry.body_plan.moving import upright_axis

SOURCE_NODES = "/cage/sources"
PIECE_NODES = "/cage/pieces"
SOURCE_GAP = 0.12
"""Between the target and a source, over the target's diagonal."""
SOURCE_BONE_RADIUS, SOURCE_BALL_RADIUS = 0.02, 0.016
"""Thickness of bones and radius of balls, over the target's diagonal."""
UNLED = (150, 150, 150)


@dataclass
class Beside:
    """One source, where it stands beside the target: world = scale · R · own + shift."""

    name: str
    motion: Animation | Motion
    scale: float
    shift: Floats
    R: Floats
    """(3, 3) puts it upright, as the target is"""
    bones: Floats = field(default_factory=lambda: np.zeros((0, 0, 2, 3)))
    """(frames, b, 2, 3) of a motion of joints, where they are shown"""
    drawn: Drawn | None = None

    def placed(self, points: Floats) -> Floats:
        """Its points, where they are shown."""
        return self.scale * points @ self.R.T + self.shift

    def points(self, frame: int) -> Floats:
        """(n, 3) its points or joints in a frame, where they are shown."""
        if isinstance(self.motion, Animation):
            return self.placed(self.motion.points[frame])
        return self.placed(self.motion[frame].world()[0])


class SourcesBeside:
    """The sources of a scene, beside its target."""

    def __init__(self, desk: Desk, scene: TransferScene, up: SignedAxis) -> None:
        self._stage, self._scene = desk.stage, scene
        self._size = bounding_diagonal(scene.target.points)
        self.beside: list[Beside] = []
        low, high = scene.target.points.min(axis=0), scene.target.points.max(axis=0)
        edge, axis = float(low[0]), "xyz".index(up)
        for feed in read_sources(dict(scene.sources)):
            motion = feed.source
            assert motion is not None
            scale = self._size / max(feed.size, 1e-300)
            own = up_axis(motion.shape) if isinstance(motion, Animation) else upright_axis(motion)
            R = matrix(between(up_vector(own), up_vector(up)))
            first = Beside(feed.name, motion, scale, np.zeros(3), R).points(0)
            left, right = first.min(axis=0), first.max(axis=0)
            shift = (low + high) / 2 - (left + right) / 2
            shift[axis] = low[axis] - left[axis]
            shift[0] = edge - SOURCE_GAP * self._size - right[0]
            edge = float(left[0] + shift[0])
            one = Beside(feed.name, motion, scale, shift, R)
            if isinstance(motion, Motion):
                one.bones = one.placed(bones_of(motion))
            self.beside.append(one)

    def around(self) -> Floats:
        """(n, 3) where the sources are in their first frames."""
        return np.concatenate([one.points(0) for one in self.beside])

    @property
    def frames(self) -> int:
        """Of the longest."""
        return max(len(one.motion) for one in self.beside)

    @property
    def fps(self) -> float:
        """Of the longest."""
        return max(self.beside, key=lambda one: len(one.motion)).motion.fps

    def draw(self, frame: int, count: int) -> None:
        """Show all of them at a frame of so many, each over its whole length."""
        for one in self.beside:
            own = round(frame * (len(one.motion) - 1) / max(count - 1, 1))
            name = f"{SOURCE_NODES}/{one.name}"
            if not isinstance(one.motion, Animation):
                self._stage.rods(name, one.bones[own], SOURCE_BONE_RADIUS * self._size, GHOST_COLOR)
            elif one.drawn is None:
                one.drawn = self._stage.shape(name, one.motion.shape.with_points(one.points(own)), color=GHOST_COLOR)
            else:
                one.drawn.move(one.points(own))

    # Which piece moves what

    def draw_pieces(self, result: Transfer, frame: int) -> None:
        """Balls at the gradient controls and at the pieces that they rotate with, in one colour a pair."""
        points = result.rig.controls.gradients
        if not len(points):
            return
        colors = hues(len(points))
        for k, control in enumerate(result.controls):
            if control.track is None:
                colors[k] = UNLED
        here = result.rig.carried(points, result.cage.points[frame])
        led = [k for k, control in enumerate(result.controls) if control.track is not None]
        names = [track_name(result.controls[k].track) for k in led]
        if self._scene.controls == "auto":  # these tracks are upright and as large as the target
            first, starts = self.beside[0].points(0), [result.tracks[name].points[0] for name in names]
            aside = _middle(first) - _middle(np.reshape(starts, (-1, 3)))
            there = [result.tracks[name].points[frame] + aside for name in names]
        else:
            there = [self._home(name).placed(result.tracks[name].points[frame]) for name in names]
        every = np.concatenate([here, np.reshape(there, (-1, 3))])
        shades = np.concatenate([colors, colors[led]])
        self._stage.balls(PIECE_NODES, every, SOURCE_BALL_RADIUS * self._size, shades)

    def _home(self, name: str) -> Beside:
        """The source that a track of this name is of."""
        return next((one for one in self.beside if name.startswith(f"{one.name}/")), self.beside[0])


def _middle(points: Floats) -> Floats:
    """(3,) of their box; the origin if there are none."""
    return (points.min(axis=0) + points.max(axis=0)) / 2 if len(points) else np.zeros(3)


def bones_of(motion: Motion) -> Floats:
    """(frames, b, 2, 3) where the bones of a motion start and end."""
    positions, orientations = motion.world()
    skeleton = motion.skeleton
    joined = positions[:, skeleton.bones]
    ends = [(j, end) for j, end in skeleton.ends.items() if np.any(end)]
    tips = [np.stack([positions[:, j], positions[:, j] + rotate(orientations[:, j], end)], 1) for j, end in ends]
    return np.concatenate([joined, *(tip[:, None] for tip in tips)], axis=1)


def track_name(track: Any) -> str:
    """What a control follows, by name."""
    return track if isinstance(track, str) else str(track.name)


def hues(count: int) -> Any:
    """(count, 3) colours that neighbours in the list can be told apart by."""
    shades = [colorsys.hsv_to_rgb((0.61803 * k) % 1, 0.75, 0.9) for k in range(count)]
    return (255 * np.array(shades)).astype(np.uint8)


def piece_summary(result: Transfer) -> str:
    """Which piece of a source moves what, as text."""
    led: dict[str, list[str]] = {}
    for control, point in zip(result.controls, result.rig.controls.gradients, strict=True):
        name = "nothing: it keeps as it is" if control.track is None else track_name(control.track)
        led.setdefault(_group_at(result.clip.shape, point), []).append(name)
    goes = ", ".join(sorted({track_name(item.track) for item in result.follow}))
    whole = f"The whole goes along with **{goes}**." if goes else "The whole stays where it is held."
    parts = [f"- **{what or 'Points of the shape'}** with {', '.join(names)}" for what, names in led.items()]
    return "\n".join([whole, "", "What turns with what:", "", *parts])


def _group_at(target: Shape, point: Floats) -> str:
    """The vertex group that the target has at a point; empty without any."""
    if not isinstance(target, Mesh) or not target.vertex_groups:
        return ""
    nearest = int(np.argmin(np.linalg.norm(target.points - point, axis=1)))
    name, weight = max(((name, w[nearest]) for name, w in target.vertex_groups.items()), key=lambda pair: pair[1])
    return name if weight > 0 else ""
