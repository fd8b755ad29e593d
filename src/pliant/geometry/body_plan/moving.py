"""A body that moves: where the nodes of its tree are in every frame, and how they are rotated against rest.

A motion's nodes are its joints. A mesh sequence gets the skeleton of its plan (`joints`); each joint rotates as the
vertices nearest to its bones do, by shape matching, and is where these, and those of the bone before it, carry it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from pliant.core import rotations
from pliant.core.clips import Animation
from pliant.core.errors import InputError, PliantWarning
from pliant.core.shapes import Mesh
from pliant.core.skeleton import Motion
from pliant.core.topology import Floats, Ints
from pliant.geometry.axes import SignedAxis
from pliant.geometry.body_plan.bodies import FOOT_SAMPLES, OrientedBody, shape_body, skeleton_body
from pliant.geometry.body_plan.joints import UPRIGHT, jointed
from pliant.geometry.body_plan.symmetry import surface_samples
from pliant.geometry.segments import nearest_segment
from pliant.geometry.shape_matching import match

FEWEST_FRAMES, STEADY = 5, 0.9
"""Frames, and the length of the mean of their upright directions, from which they say which axis is up."""
FEWEST_BONE_VERTICES = 8
"""That a bone of a mesh sequence is followed by."""
JUMP, LEAST_JUMP = 6.0, np.radians(4)
"""How much farther joints rotate from the first frame to the second than in most, if the first is a reference pose; and
the mean angle of that, at least."""


@dataclass(frozen=True, eq=False)
class MovingBody:
    """A body over time."""

    body: OrientedBody
    """At rest; nodes are those of its tree"""
    world: Floats
    """(3, 3) rows: left, up and forward of the rest pose, where the moving figure's up is up"""
    positions: Floats
    """(frames, m, 3) of the nodes"""
    rotations: Floats
    """(frames, m, 4) of the nodes, against rest"""
    fps: float

    def __len__(self) -> int:
        return len(self.positions)

    def at(self, frames: Ints) -> MovingBody:
        """Some of the frames."""
        return replace(self, positions=self.positions[frames], rotations=self.rotations[frames])


def reference_frames(motion: Motion) -> int:
    """How many frames at the start are a reference pose that the motion jumps from: 1 or 0."""
    if len(motion) < 4:
        return 0
    q = motion.rotations
    cosines = np.abs(np.einsum("fji,fji->fj", q[:-1], q[1:]))
    steps = 2 * np.arccos(np.clip(cosines, 0, 1)).mean(axis=1)
    return int(steps[0] >= LEAST_JUMP and steps[0] >= JUMP * np.quantile(steps[1:], 0.9))


def without_reference_pose(motion: Motion) -> Motion:
    """The motion with its second frame in place of a first one that is a reference pose, and a warning of that.

    Frames keep their numbers.
    """
    if not reference_frames(motion):
        return motion
    what = "the source's first frame is a reference pose that it jumps from: its second frame is shown there instead"
    warnings.warn(what, PliantWarning, stacklevel=2)
    return motion.chosen(np.maximum(np.arange(len(motion)), 1))


def moving_skeleton(
    motion: Motion, mesh: Mesh | None = None, *, up: SignedAxis | None = None, heading: SignedAxis | None = None
) -> MovingBody:
    """Of a motion. mesh: the shape that its skeleton moves. up, heading: of the skeleton at rest, where known."""
    skeleton = motion.skeleton
    body = skeleton_body(skeleton, mesh, up, heading, motion)
    tree = body.tree
    positions, quaternions = motion.world()
    rest_positions, rest_rotations = skeleton.rest_world
    since = rotations.multiply(quaternions, rotations.inverse(rest_rotations))[:, tree.joints]
    arms = tree.locations - rest_positions[tree.joints]
    moved = positions[:, tree.joints] + rotations.rotate(since, np.broadcast_to(arms, (len(motion), *arms.shape)))
    moving = MovingBody(body, body.frame, moved, since, motion.fps)
    return replace(moving, world=_world(moving))


def _world(moving: MovingBody) -> Floats:
    """The frame, rotated to the axis that is up while the figure moves.

    Some exporters write the rest along y and turn the root to z in every frame. So if the root is rotated alike in all
    frames and so that another axis is up, and the body's lowest node keeps its height along that axis better.
    """
    frame = moving.body.frame
    up = rotations.rotate(moving.rotations[:, moving.body.anatomy.spine[0]], frame[1]).mean(axis=0)
    k = int(np.argmax(np.abs(up)))
    axis: Floats = np.sign(up[k]) * np.eye(3)[k]
    if len(moving) < FEWEST_FRAMES or axis @ up < STEADY or axis @ frame[1] > 0.5:
        return frame
    lowest = [np.ptp((moving.positions @ direction).min(axis=1)) for direction in (frame[1], axis)]
    if lowest[1] > lowest[0]:
        return frame
    rotated: Floats = rotations.rotate(rotations.between(frame[1], axis), frame)
    return rotated


def upright_axis(motion: Motion) -> Literal["y", "z"]:
    """The axis that is up: as the file says or, where it does not, as in BVH, that along which legs stand; else y."""
    if motion.skeleton.world is not None:
        return motion.skeleton.world.up
    try:
        moving = moving_skeleton(motion)
    except InputError:  # no bones
        return "y"
    return "z" if moving.body.anatomy.legs and moving.world[1][2] > UPRIGHT else "y"


def moving_shape(
    clip: Animation, rest: Floats | None = None, *, up: SignedAxis | None = None, heading: SignedAxis | None = None
) -> MovingBody:
    """Of a mesh sequence. rest: (n, 3) its points at rest, if they are not its shape's."""
    shape = clip.shape if rest is None or np.array_equal(rest, clip.shape.points) else clip.shape.with_points(rest)
    body = jointed(shape_body(shape, up, heading), samples=surface_samples(shape, FOOT_SAMPLES))[1]
    tree = body.tree
    bones = np.flatnonzero(tree.parents >= 0)
    owner = nearest_segment(shape.points, tree.locations[tree.parents[bones]], tree.locations[bones])[0]
    starts = tree.parents[bones][owner]
    frames, count = len(clip), len(tree.locations)
    R, centre, centres = np.zeros((frames, count, 3, 3)), np.zeros((count, 3)), np.zeros((frames, count, 3))
    for node in range(count):
        own = np.flatnonzero(starts == node)
        if len(own) < FEWEST_BONE_VERTICES:
            middle = tree.locations[[node, *np.flatnonzero(tree.parents == node)]].mean(axis=0)
            own = np.argsort(np.linalg.norm(shape.points - middle, axis=1))[:FEWEST_BONE_VERTICES]
        weights = np.ones(len(own))
        centre[node], centres[:, node], R[:, node] = match(shape.points[own], clip.points[:, own], weights, "rotation")
    leaf = np.array([node not in tree.parents for node in range(count)])
    for values in (R.swapaxes(0, 1), centre, centres.swapaxes(0, 1)):
        values[leaf] = values[tree.parents[leaf]]
    above = np.where(tree.parents >= 0, tree.parents, np.arange(count))
    carried = [
        centres[:, some] + np.einsum("fnij,nj->fni", R[:, some], tree.locations - centre[some])
        for some in (np.arange(count), above)
    ]
    positions = (carried[0] + carried[1]) / 2
    return MovingBody(body, body.frame, positions, rotations.quaternion(R), clip.fps)
