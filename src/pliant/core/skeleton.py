"""Skeletons and their motion.

A joint's frame sits in its parent's: ``local = translation · rotation``, ``world = parent's world · local``. A skeleton
stores the local frames at rest; a `SkeletonPose` or a `Motion` gives the local frames that replace them. Rotations are
unit quaternions (w, x, y, z); see `pliant.core.rotations`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pliant.core import rotations
from pliant.core.clips import DEFAULT_FPS, between_frames, frame_count
from pliant.core.errors import InputError
from pliant.core.shapes import World
from pliant.core.topology import Floats, Ints
from pliant.core.validation import as_points, expect, frame_rate, name_list
from pliant.core.values import Displayed, Value, as_array, locked, owned

LEAST_SCALE = 1e-3
"""By which joints scale what is bound to them, below which it is rounding."""
MOST_MOTION_FRAMES = 10_000_000
"""Frames that a motion may be resampled to."""


@dataclass(frozen=True, eq=False)
class Skeleton(Displayed, Value):
    """Joints in a tree (or several), parents before children."""

    names: tuple[str, ...]
    parents: Ints
    """(j,) the parent of each joint, -1 for a root."""
    offsets: Floats
    """(j, 3) where each joint sits at rest in its parent's frame (a root: in the world)."""
    rest_rotations: Floats = field(default_factory=lambda: np.zeros((0, 4)))
    """(j, 4) rotation of each joint's frame against its parent's at rest; the identity if not given."""
    ends: Mapping[int, Floats] = field(default_factory=dict)
    """Where the bones of leaf joints end, in the joint's frame: {joint: (3,)} (BVH's End Sites)."""
    world: World | None = None
    """The file's axes and units; None if it says nothing, as BVH."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "names", name_list(self.names, "names of joints"))
        if self.world is not None:
            expect(self.world, World, "the world of a skeleton")
        count = len(self.names)
        if count == 0:
            raise InputError("a skeleton needs at least one joint")
        uses = Counter(self.names)
        if len(uses) < count:
            repeated = min(name for name, number in uses.items() if number > 1)
            raise InputError(f'joint name "{repeated}" is used twice; expected unique names')
        parents = owned(_whole(self.parents, count), "parents", np.int64)
        late = np.flatnonzero((parents >= np.arange(count)) | (parents < -1))
        if late.size:
            raise InputError(f'joint "{self.names[late[0]]}" does not come after its parent; order parents first')
        put(self, "parents", parents)
        put(self, "offsets", as_points(self.offsets, "offsets"))
        rest = self.rest_rotations if len(self.rest_rotations) else np.tile(rotations.IDENTITY, (count, 1))
        put(self, "rest_rotations", locked(rotations.normalize(rest)))
        if len(self.offsets) != count or len(self.rest_rotations) != count:
            raise InputError(
                f"{len(self.offsets)} offsets and {len(self.rest_rotations)} rest rotations for {count} joints"
            )
        ends = {joint: self._end(joint, position) for joint, position in self.ends.items()}
        put(self, "ends", MappingProxyType(dict(sorted(ends.items()))))  # whatever order a file has them in

    def _end(self, joint: Any, position: Any) -> Floats:
        if not isinstance(joint, (int, np.integer)) or not 0 <= joint < len(self):
            raise InputError(f"ends name joint {joint!r}; expected a number from 0 to {len(self) - 1}")
        return as_points([position], f'the end of joint "{self.names[joint]}"')[0]

    def __repr__(self) -> str:
        return f"Skeleton({len(self)} joints)"

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def from_positions(cls, positions: ArrayLike, parents: ArrayLike, names: Sequence[str] = ()) -> Skeleton:
        """From the joints' positions in the world; frames at rest are aligned with the world."""
        positions = as_points(positions, "joint positions")
        tree = _whole(parents, len(positions))
        if (tree >= len(positions)).any() or (tree < -1).any():
            bad = int(tree[(tree >= len(positions)) | (tree < -1)][0])
            raise InputError(f"parents name joint {bad}; expected 0 to {len(positions) - 1}, or -1 for a root")
        offsets = positions - np.where(tree[:, None] >= 0, positions[tree], 0)
        return cls(tuple(names) or tuple(f"joint{k}" for k in range(len(positions))), tree, offsets)

    def index(self, name: str) -> int:
        """The number of the joint called `name`."""
        if name not in self._numbers:
            raise InputError(f'no joint is called "{name}"; there are {", ".join(self.names)}')
        return self._numbers[name]

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return MappingProxyType({name: k for k, name in enumerate(self.names)})

    @cached_property
    def bones(self) -> Ints:
        """(b, 2) parent and child joint of every bone."""
        children = np.flatnonzero(self.parents >= 0)
        return locked(np.stack([self.parents[children], children], axis=1))

    def rest_pose(self) -> SkeletonPose:
        """All joints as at rest."""
        return SkeletonPose(self, self.rest_rotations, self.offsets)

    @cached_property
    def rest_world(self) -> tuple[Floats, Floats]:
        """Joint positions (j, 3) and rotations (j, 4) in the world at rest."""
        return self.rest_pose().world()

    def pose(self, turns: Mapping[str, ArrayLike], *, root: ArrayLike | None = None) -> SkeletonPose:
        """The rest pose with the named joints rotated by quaternions, each in its own frame; `root` moves joint 0."""
        rotated = self.rest_rotations.copy()
        for name, rotation in turns.items():
            j = self.index(name)
            if np.shape(rotation) != (4,):
                raise InputError(f'the turn of "{name}" has shape {np.shape(rotation)}; expected (4,) as w, x, y, z')
            rotated[j] = rotations.multiply(rotated[j], rotations.normalize(rotation))
        positions = self.offsets.copy()
        if root is not None:
            positions[0] = as_points(as_array(root, "root", np.float64)[None], "root")[0]
        return SkeletonPose(self, locked(rotated), locked(positions))


def _whole(parents: ArrayLike, count: int) -> Ints:
    """Check and convert to (count,) whole numbers."""
    array = as_array(parents, "parents")
    if array.shape != (count,):
        raise InputError(f"parents have shape {array.shape}; expected ({count},)")
    if count and not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"parents hold {array.dtype} values; expected whole joint numbers")
    return array.astype(np.int64, copy=False)


@dataclass(frozen=True, eq=False)
class SkeletonPose(Displayed, Value):
    """Local frames of a skeleton's joints."""

    skeleton: Skeleton
    rotations: Floats
    """(j, 4) local rotation of each joint."""
    translations: Floats
    """(j, 3) local translation of each joint; ``skeleton.offsets`` where the bones keep their length."""
    scales: Floats | None = None
    """(j, 3, 3) those of a frame of a `Motion`."""

    def __post_init__(self) -> None:
        expect(self.skeleton, Skeleton, "the skeleton of a pose")
        joints = len(self.skeleton)
        quaternions, positions = (
            owned(self.rotations, "rotations", np.float64),
            as_points(self.translations, "translations"),
        )
        if quaternions.shape != (joints, 4) or positions.shape != (joints, 3):
            raise InputError(
                f"rotations have shape {quaternions.shape} and translations {positions.shape}; "
                f"expected ({joints}, 4) and ({joints}, 3)"
            )
        if not np.isfinite(quaternions).all():
            raise InputError("the rotations have NaN or infinite values; expected unit quaternions")
        object.__setattr__(self, "rotations", quaternions)
        object.__setattr__(self, "translations", positions)

    def world(self) -> tuple[Floats, Floats]:
        """Joint positions (j, 3) and rotations (j, 4) in the world."""
        return self._world

    @cached_property
    def _world(self) -> tuple[Floats, Floats]:
        positions, quaternions = forward_kinematics(
            self.skeleton.parents, self.rotations[None], self.translations[None]
        )
        return locked(positions[0]), locked(quaternions[0])


@dataclass(frozen=True, eq=False)
class Motion(Displayed, Value):
    """A skeleton's local frames over time."""

    skeleton: Skeleton
    rotations: Floats
    """(frames, j, 4) local rotations."""
    translations: Floats
    """(frames, j, 3) local translations."""
    fps: float = DEFAULT_FPS
    channels: tuple[tuple[str, ...], ...] | None = None
    """The BVH channels of each joint, where the motion came from such a file; its writer keeps to them."""
    name: str = "motion"
    scales: Floats | None = None
    """(frames, j, 3, 3) how each joint scales what is bound to it before it moves it, along the world's axes at rest:
    ``x = p + Δ S (X - P)`` for a joint that moves from P to p and rotates by Δ; None if none does."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        expect(self.skeleton, Skeleton, "the skeleton of a motion")
        joints = len(self.skeleton)
        quaternions = as_array(self.rotations, "rotations", np.float64)
        positions = owned(self.translations, "translations", np.float64)
        if (
            quaternions.ndim != 3
            or quaternions.shape[1:] != (joints, 4)
            or positions.shape != (*quaternions.shape[:2], 3)
        ):
            raise InputError(
                f"rotations have shape {quaternions.shape} and translations {positions.shape}; "
                f"expected (frames, {joints}, 4) and (frames, {joints}, 3)"
            )
        finite = np.isfinite(quaternions).all(axis=(1, 2)) & np.isfinite(positions).all(axis=(1, 2))
        if not finite.all():
            raise InputError(f"frame {int(np.argmin(finite))} of the motion has NaN or infinite values")
        if self.scales is not None:
            scales = owned(self.scales, "scales", np.float64)
            if scales.shape != (*positions.shape, 3) or not np.isfinite(scales).all():
                raise InputError(f"scales have shape {scales.shape}; expected finite {(*positions.shape, 3)}")
            put(self, "scales", scales)
        put(self, "fps", frame_rate(self.fps))
        put(self, "rotations", locked(rotations.normalize(quaternions)))
        put(self, "translations", positions)

    @classmethod
    def of(cls, bones: Skeleton | SkeletonPose | Motion) -> Motion:
        """A skeleton at rest or a pose, as one frame; a motion as it is."""
        if isinstance(bones, Motion):
            return bones
        pose = bones.rest_pose() if isinstance(bones, Skeleton) else bones
        return cls(pose.skeleton, pose.rotations[None], pose.translations[None])

    def __repr__(self) -> str:
        return f"Motion({len(self)} frames of {self.skeleton!r} at {self.fps:g} fps)"

    def __len__(self) -> int:
        return len(self.rotations)

    def __getitem__(self, frame: int) -> SkeletonPose:
        scales = None if self.scales is None else self.scales[frame]
        return SkeletonPose(self.skeleton, self.rotations[frame], self.translations[frame], scales)

    def __iter__(self) -> Iterator[SkeletonPose]:
        return (self[k] for k in range(len(self)))

    @property
    def duration(self) -> float:
        """Seconds from the first frame to the last."""
        return (len(self) - 1) / self.fps

    @property
    def scaled_joints(self) -> list[str]:
        """Names of the joints that scale what is bound to them."""
        if self.scales is None:
            return []
        scaled = np.abs(self.scales - np.eye(3)).max(axis=(0, 2, 3), initial=0.0) > LEAST_SCALE
        return [name for name, is_scaled in zip(self.skeleton.names, scaled, strict=True) if is_scaled]

    def chosen(self, which: slice | Ints) -> Motion:
        """Some of its frames."""
        scales = None if self.scales is None else self.scales[which]
        return replace(self, rotations=self.rotations[which], translations=self.translations[which], scales=scales)

    def resampled(self, fps: float) -> Motion:
        """The same motion at another frame rate: rotations are interpolated at constant speed."""
        fps = frame_rate(fps)
        frames = frame_count(self.duration, fps)
        if frames > MOST_MOTION_FRAMES:
            raise InputError(
                f"{fps:g} fps would make {frames:,} frames; expected at most {MOST_MOTION_FRAMES:,}", argument="fps"
            )
        low, _, t = between_frames(frames, fps, len(self), self.fps)
        return replace(self.at(low + t), fps=fps)

    def at(self, times: ArrayLike) -> Motion:
        """The poses at times (k,) in frames, between which rotations are interpolated at constant speed."""
        at = as_array(times, "times", np.float64)
        if at.ndim != 1 or not len(at) or not ((at >= 0) & (at <= len(self) - 1)).all():
            raise InputError(f"times are {times!r:.60}; expected frames from 0 to {len(self) - 1}", argument="times")
        low = np.minimum(at.astype(np.int64), max(len(self) - 2, 0))
        high, t = np.minimum(low + 1, len(self) - 1), at - low

        def mixed(values: Floats) -> Floats:
            share = t.reshape(-1, *[1] * (values.ndim - 1))
            return (1 - share) * values[low] + share * values[high]

        quaternions = rotations.slerp(self.rotations[low], self.rotations[high], t[:, None])
        scales = None if self.scales is None else mixed(self.scales)
        return replace(self, rotations=quaternions, translations=mixed(self.translations), scales=scales)

    def world(self) -> tuple[Floats, Floats]:
        """Joint positions (frames, j, 3) and rotations (frames, j, 4) in the world."""
        return forward_kinematics(self.skeleton.parents, self.rotations, self.translations)


def forward_kinematics(parents: Ints, quaternions: Floats, positions: Floats) -> tuple[Floats, Floats]:
    """Local rotations (f, j, 4) and translations (f, j, 3) to world positions (f, j, 3) and rotations (f, j, 4)."""
    world_rotations, world_positions = quaternions.copy(), positions.copy()
    for at in by_depth(parents)[1:]:
        above = world_rotations[:, parents[at]]
        world_rotations[:, at] = rotations.multiply(above, quaternions[:, at])
        world_positions[:, at] = world_positions[:, parents[at]] + rotations.rotate(above, positions[:, at])
    return world_positions, world_rotations


def by_depth(parents: Ints) -> list[Ints]:
    """The joints that have as many others above them, the roots first."""
    depth = np.zeros(len(parents), dtype=np.int64)
    for j, parent in enumerate(parents.tolist()):
        depth[j] = depth[parent] + 1 if parent >= 0 else 0
    ends = np.cumsum(np.bincount(depth, minlength=1))[:-1]
    return np.split(np.argsort(depth, kind="stable"), ends)


def bone_vector(skeleton: Skeleton, joint: int) -> Floats:
    """(3,) from a joint to its bone's end, in the joint's frame: its End Site, the mean of its children, or zero."""
    children = skeleton.offsets[skeleton.parents == joint]
    if joint in skeleton.ends:
        return skeleton.ends[joint]
    return children.mean(axis=0) if len(children) else np.zeros(3)
