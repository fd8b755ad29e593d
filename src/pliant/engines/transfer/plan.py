"""The controls of a transfer, and their targets in every frame.

A gradient control that follows a track with the gradients S has the target G = T S B (Section 3.1; `adapted`). A
position control with the rest point p that follows a track from x₀ to x has the target p + s T (x - x₀).

B rotates the target's rest pose to the source's reference pose, such as a hanging arm to a raised one; S is the
source's gradient; T rotates the result, such as the whole body to the target's facing direction. Both are rotations,
one of each for a control, the same in all frames. If the axes differ, ``target = A source``, B = Aᵀ and T = A.

`before_from` and `after_from` compute them from two or more corresponding points: the ends of a bone, the corners of a
shoulder. `bone_controls` does so for the bones of two skeletons, which may have any names, sizes and rest poses: the
rotation that takes each bone of the target to the source's bone in its reference pose is B.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.rotations import aligning_rotation, as_rotation
from pliant.core.shapes import Shape, bounding_diagonal
from pliant.core.skeleton import Motion, Skeleton, SkeletonPose, bone_vector
from pliant.core.topology import Floats
from pliant.core.validation import expect
from pliant.core.values import Value, as_array
from pliant.engines.transfer.controls import check_gradients
from pliant.engines.transfer.source_tracks import FollowedTrack, SourceTracks, followed_track, shown_times, synchronised
from pliant.engines.transfer.sources import Track, joint_number, joint_tracks

Origin = Literal["rest", "first"]


@dataclass(frozen=True, eq=False)
class Control(Value):
    """A gradient control of the target: it rotates and stretches as a piece of a source does."""

    at: int | ArrayLike
    """A vertex of the target, or a point (3,) inside the cage, at rest."""
    track: Track | str | None = None
    """A track, or the name of one ("source/track" where several sources have it); None is the identity."""
    before: ArrayLike | None = None
    """B, a rotation (3, 3) or quaternion from the target's rest pose to the source's reference pose."""
    after: ArrayLike | None = None
    """T, a rotation (3, 3) or quaternion of the result."""


@dataclass(frozen=True, eq=False)
class Follow(Value):
    """A position control of the target: it follows a point of a source."""

    at: int | ArrayLike
    """A vertex of the target, or a point (3,) inside the cage, at rest."""
    track: Track | str
    """A track, or the name of one."""
    scale: float | None = None
    """Target units for a source unit; None is the ratio of their diagonals at rest."""
    after: ArrayLike | None = None
    """T, a rotation (3, 3) or quaternion of the displacement."""
    origin: Origin = "rest"
    """What displacements are relative to: the track's rest, or its first frame."""


@dataclass(frozen=True, eq=False)
class TransferPlan:
    """Controls with their rest points, and their targets in every frame."""

    controls: tuple[Control, ...]
    follow: tuple[Follow, ...]
    gradient_points: Floats
    """(k, 3)"""
    gradients: Floats
    """(frames, k, 3, 3)"""
    position_points: Floats
    """(k, 3)"""
    positions: Floats
    """(frames, k, 3)"""
    tracks: dict[str, Track]
    fps: float
    times: Floats
    """(frames,) of the first track, in its source's frames"""


def make_plan(
    named_sources: tuple[SourceTracks, ...],
    shape: Shape,
    controls: tuple[Control, ...],
    follow: tuple[Follow, ...],
    held: Any,
    frames: Any,
    fps: Any,
) -> TransferPlan:
    """Check the controls, resolve and resample the tracks that they follow, and compute their targets."""
    if not controls and not follow:
        raise InputError(
            'there are no controls; expected one or more Control or Follow, or controls="auto"', argument="controls"
        )
    names = [f"control {k}" for k in range(len(controls))] + [f"follow {k}" for k in range(len(follow))]
    items: tuple[Control | Follow, ...] = (*controls, *follow)
    moving = [(item, name) for item, name in zip(items, names, strict=True) if item.track is not None]
    if not moving:
        raise InputError("no control follows a track; expected one or more that do", argument="controls")
    followed = synchronised([followed_track(named_sources, item.track, name) for item, name in moving], frames, fps)
    by_item = {id(item): found for (item, _), found in zip(moving, followed, strict=True)}
    frame_count = len(followed[0].track)
    static = rest_points_of(shape, held, "held")
    moving_points = [
        rest_points_of(shape, [item.at], name)[0] for item, name in zip(follow, names[len(controls) :], strict=True)
    ]
    if not moving_points and not len(static):
        raise InputError(
            "nothing fixes the position of the target: gradients are the same wherever it moves; set follow for a "
            "point that goes along with a source, or held for one that stays",
            argument="follow",
        )
    gradients = [
        _gradients(item, by_item.get(id(item)), frame_count, name) for item, name in zip(controls, names, strict=False)
    ]
    labels = [f' ("{by_item[id(item)].name}")' if id(item) in by_item else "" for item in controls]
    if gradients:
        labels = [name + what for name, what in zip(names, labels, strict=False)]
        check_gradients(np.stack(gradients, axis=1), labels, "controls")
    paths = [_path(item, by_item[id(item)], point, shape) for item, point in zip(follow, moving_points, strict=True)]
    paths += [np.broadcast_to(point, (frame_count, 3)) for point in static]
    points = [rest_points_of(shape, [item.at], name)[0] for item, name in zip(controls, names, strict=False)]
    return TransferPlan(
        controls,
        follow,
        np.array(points).reshape(-1, 3),
        np.stack(gradients, axis=1) if gradients else np.zeros((frame_count, 0, 3, 3)),
        np.array([*moving_points, *static]).reshape(-1, 3),
        np.stack(paths, axis=1),
        _by_name(followed),
        followed[0].track.fps,
        shown_times(followed_track(named_sources, moving[0][0].track, names[0]).track, frames, fps)[0][:frame_count],
    )


def _by_name(followed: Sequence[FollowedTrack]) -> dict[str, Track]:
    """Tracks by name; different tracks of the same name are numbered."""
    named: dict[str, Track] = {}
    for found in followed:
        names = (found.name if k == 1 else f"{found.name} ({k})" for k in count(1))
        name = next(name for name in names if name not in named or _same(named[name], found.track))
        named[name] = found.track
    return named


def _same(one: Track, other: Track) -> bool:
    alike = one.points.shape == other.points.shape and np.array_equal(one.points, other.points)
    return alike and np.array_equal(one.gradients, other.gradients)


def rest_points_of(shape: Shape, given: Any, what: str) -> Floats:
    """(k, 3) rest points, from vertices or points."""
    points = [given] if isinstance(given, (int, np.integer)) else given
    rows = [_rest_point(shape, item, f"{what} {k}" if len(points) > 1 else what) for k, item in enumerate(points)]
    return np.array(rows).reshape(-1, 3)


def _rest_point(shape: Shape, at: Any, what: str) -> Floats:
    array = as_array(at, what)
    if array.shape == () and np.issubdtype(array.dtype, np.integer):
        if not 0 <= int(array) < len(shape.points):
            raise InputError(f"{what} is at vertex {int(array)}; the target has {len(shape.points)}, numbered from 0")
        return shape.points[int(array)]
    if array.shape != (3,) or array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        raise InputError(f"{what} is at {at!r:.40}; expected a vertex number, or a point (3,)")
    return array.astype(np.float64)


def _gradients(item: Control, found: FollowedTrack | None, count: int, name: str) -> Floats:
    S = np.broadcast_to(np.eye(3), (count, 3, 3)) if found is None else found.track.gradients
    return adapted(S, item.before, item.after, name)


def _path(item: Follow, found: FollowedTrack, point: Floats, shape: Shape) -> Floats:
    """(frames, 3) the targets of a position control that follows a track."""
    if item.origin not in get_args(Origin):
        raise InputError(f'origin is "{item.origin}"; expected rest or first')
    scale = item.scale
    if scale is None:
        if not found.size > 0:
            raise InputError(f'the size of the source of "{found.name}" is not known; give Follow a scale')
        scale = bounding_diagonal(shape.points) / found.size
    if not np.isfinite(scale) or scale <= 0:
        raise InputError(f"scale is {scale!r}; expected a positive number of target units for a source unit")
    start = found.track.rest if item.origin == "rest" else found.track.points[0]
    displacement: Floats = (found.track.points - start) @ as_rotation(item.after, "after").T
    return point + scale * displacement


def before_from(target: ArrayLike, source: ArrayLike) -> Floats:
    """B (3, 3), from points of the target at rest, and the same points of the source in its reference pose.

    Two on each side, such as the ends of a bone: (2, 3); or three and more that are not on a line.
    """
    return aligning_rotation(target, source)


def after_from(source: ArrayLike, target: ArrayLike) -> Floats:
    """T (3, 3), from points of the source as it moves, and the same points of the target as they should be instead."""
    return aligning_rotation(source, target)


def adapted(S: Floats, before: Any, after: Any, what: str) -> Floats:
    """(frames, 3, 3) G = T S B."""
    G: Floats = as_rotation(after, f"{what}: after") @ S @ as_rotation(before, f"{what}: before")
    return G


def bone_controls(
    skeleton: Skeleton,
    motion: Motion,
    bones: Mapping[str, str],
    *,
    along: float = 0.5,
    rest: int | SkeletonPose | None = None,
    turn: ArrayLike | None = None,
) -> list[Control]:
    """Gradient controls on the target's bones.

    skeleton: of the target, at rest in it.
    bones: {joint of the target: joint of the motion}, each with the bone that starts there.
    along: where on the bone a control is, from 0 at the joint to 1 at the bone's end.
    rest: the motion's reference pose, as in `joint_tracks`.
    turn: A, a rotation from the source's axes to the target's, where they face in different directions.
    """
    if not isinstance(skeleton, Skeleton):
        raise InputError(f"the target's skeleton is a {type(skeleton).__name__}; expected a Skeleton")
    expect(bones, Mapping, "bones", " from joints of the target to joints of the motion")
    A = as_rotation(turn, "turn")
    positions, joint_rotations = skeleton.rest_pose().world()
    sources = joint_tracks(motion, list(dict.fromkeys(bones.values())), rest=rest)
    ends = joint_tracks(motion, list(sources), rest=rest, along=1.0)
    controls = []
    for name, other in bones.items():
        j = joint_number(skeleton, name)
        bone = rotations.rotate(joint_rotations[j], bone_vector(skeleton, j))
        B = _before(bone, ends[other].rest - sources[other].rest, A)
        controls.append(Control(positions[j] + along * bone, sources[other], B, A))
    return controls


def _before(bone: Floats, other: Floats, A: Floats) -> Floats:
    """B, for the direction of a target's bone at rest, and of the source's; a joint without a bone is not turned."""
    seen: Floats = A.T @ bone
    if not np.any(bone) or not np.any(other):
        return A.T
    return rotations.matrix(rotations.between(seen, other)) @ A.T
