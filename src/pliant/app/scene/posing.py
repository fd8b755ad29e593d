"""Bones and poses that are written into a scene: ``[[skeleton.bones]]`` and ``[[motion.keys]]``.

A pose says how joints turn against the rest pose, in the axes of the space that the body stands in at rest. So where an
elbow turns by q, the forearm turns by q about the elbow, and all that hangs on it goes along; and if the shoulder turns
as well, it carries the elbow's axis along with the arm. With W the rotations of joints in the world, 0 at rest, p the
parent of the joint j and q_j its given rotation,

    W_j W_j0⁻¹ = (W_p W_p0⁻¹) q_j

however the joints' own frames stand at rest. Between two poses each q_j turns the short way, at one speed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pliant.app.scene.located_toml import KeyPath, TomlText
from pliant.app.scene.rotations import rotation_vector
from pliant.core import rotations
from pliant.core.clips import DEFAULT_FPS
from pliant.core.errors import InputError
from pliant.core.options import closest
from pliant.core.skeleton import MOST_MOTION_FRAMES, Motion, Skeleton, SkeletonPose
from pliant.core.topology import Floats
from pliant.core.validation import as_points, frame_rate
from pliant.core.values import as_array, locked
from pliant.io.tgf import parents_first

BONES_KEY: KeyPath = ("skeleton", "bones")
KEYS_KEY: KeyPath = ("motion", "keys")


def rotated_pose(
    skeleton: Skeleton, joint_rotations: Mapping[str, ArrayLike], *, move: ArrayLike = (0.0, 0.0, 0.0)
) -> SkeletonPose:
    """The rest pose with joints turned by quaternions (w, x, y, z) in world axes, each carried along by its parents.

    move: how far the roots go. Joints that are not named keep as they are at rest against their parents.
    """
    _, world = skeleton.rest_world
    own = {}
    for name, asked in joint_rotations.items():
        W = world[skeleton.index(name)]
        q = as_array(asked, f'the turn of "{name}"', np.float64)
        if q.shape != (4,):
            raise InputError(f'the turn of "{name}" has shape {q.shape}; expected (4,) as w, x, y, z')
        own[name] = rotations.multiply(rotations.inverse(W), rotations.multiply(rotations.normalize(q), W))
    pose = skeleton.pose(own)
    displacement = as_points(as_array(move, "move", np.float64)[None], "move")[0]
    positions = pose.translations + np.where(skeleton.parents[:, None] < 0, displacement, 0.0)
    return SkeletonPose(skeleton, pose.rotations, locked(positions))


def motion_through(poses: Sequence[SkeletonPose], times: ArrayLike, *, fps: float = DEFAULT_FPS) -> Motion:
    """The motion through poses of one skeleton at times in seconds, from 0 to the last; the first frame is at time 0.

    Rotations turn the short way between two poses, at one speed, and positions go straight. Before the first pose and
    after the last one it stands still; the last frame is the last pose, whether or not a frame falls on its time.
    """
    fps = frame_rate(fps)
    at_key = as_array(times, "times", np.float64)
    if not len(poses) or at_key.shape != (len(poses),):
        raise InputError(f"got {len(poses)} poses and times of shape {at_key.shape}; expected a time for each")
    if not np.isfinite(at_key).all() or at_key[0] < 0 or (np.diff(at_key) <= 0).any():
        raise InputError("times do not grow from 0 on; expected seconds, each later than the one before")
    at = frame_times(float(at_key[-1]), fps)
    high = np.minimum(np.searchsorted(at_key, at, side="right"), len(poses) - 1)
    low = np.maximum(high - 1, 0)
    gap = np.where(high > low, at_key[high] - at_key[low], 1.0)
    t = np.clip((at - at_key[low]) / gap, 0, 1)[:, None]
    rotated, positions = np.stack([pose.rotations for pose in poses]), np.stack([pose.translations for pose in poses])
    between = rotations.slerp(rotated[low], rotated[high], np.broadcast_to(t, (len(at), rotated.shape[1])))
    moved = (1 - t[..., None]) * positions[low] + t[..., None] * positions[high]
    return Motion(poses[0].skeleton, between, locked(moved), fps, name="keys")


def frame_times(duration: float, fps: float) -> Floats:
    """(frames,) seconds from 0 at a frame rate; the last is the duration, whether or not a frame falls on it."""
    frames = math.ceil(duration * fps - 1e-6) + 1
    if frames > MOST_MOTION_FRAMES:
        raise InputError(
            f"{duration:g} seconds at {fps:g} fps are {frames:,} frames; expected at most {MOST_MOTION_FRAMES:,}"
        )
    times = np.arange(frames) / fps
    times[-1] = duration
    return times


# Scene files


def read_bones(text: TomlText, table: list[dict[str, Any]]) -> Skeleton:
    """The skeleton of bones that a scene says, in any order."""
    names = [bone["name"] for bone in table]
    for k, name in enumerate(names):
        if name in names[:k]:
            raise text.error(f'is "{name}", as of another bone; expected a name of its own', (*BONES_KEY, k, "name"))
    parents = np.array(
        [_parent(text, bone["parent"], names, (*BONES_KEY, k, "parent")) for k, bone in enumerate(table)]
    )
    order, tree = parents_first(parents)
    if not len(order):
        raise text.error("go round in a circle; expected one or more bones that have no parent", BONES_KEY)
    positions = np.array([table[k]["at"] for k in order])
    straight = Skeleton.from_positions(positions, tree, [names[k] for k in order])
    ends = {
        j: _end(text, table[k], (*BONES_KEY, int(k), "end")) for j, k in enumerate(order) if table[k]["end"] is not None
    }
    return Skeleton(straight.names, tree, straight.offsets, ends=ends)


def _parent(text: TomlText, parent: str | None, names: list[str], path: KeyPath) -> int:
    if parent is None:
        return -1
    if parent not in names:
        raise text.error(f'no bone is called "{parent}"; {closest(parent, names)}', path)
    return names.index(parent)


def _end(text: TomlText, bone: dict[str, Any], path: KeyPath) -> Floats:
    """(3,) from the joint to where its bone ends."""
    displacement = np.array(bone["end"]) - bone["at"]
    if not displacement.any():
        raise text.error("is where the bone begins; expected another point", path)
    return displacement


def read_keys(
    text: TomlText,
    table: list[dict[str, Any]],
    skeleton: Skeleton,
    *,
    fps: float | None = None,
    one_frame: bool = False,
) -> Motion:
    """The motion through the poses that a scene says, from the rest pose at time 0 unless one of them is at that time.

    one_frame: a single pose is all there is to be seen, whatever its time is.
    """
    poses = [_pose(text, key, skeleton, (*KEYS_KEY, k)) for k, key in enumerate(table)]
    times = [key["time"] for key in table]
    for k in range(1, len(times)):
        if times[k] <= times[k - 1]:
            problem = f"is {times[k]:g}; expected more than {times[k - 1]:g}, the time of the key before"
            raise text.error(problem, (*KEYS_KEY, k, "time"))
    if one_frame and len(poses) == 1:
        times = [0.0]
    if times[0] > 0:
        poses, times = [skeleton.rest_pose(), *poses], [0.0, *times]
    with text.about(KEYS_KEY, {("fps",): ("motion", "fps")}):
        return motion_through(poses, times, fps=fps or DEFAULT_FPS)


def _pose(text: TomlText, table: dict[str, Any], skeleton: Skeleton, path: KeyPath) -> SkeletonPose:
    joint_rotations = {}
    for name, asked in table["turns"].items():
        at = (*path, "turns", name)
        if name not in skeleton.names:
            raise text.error(f"no joint is called so; {closest(name, list(skeleton.names))}", at)
        joint_rotations[name] = rotations.exp(rotation_vector(text, asked, at))
    return rotated_pose(skeleton, joint_rotations, move=table["move"])
