"""Transfer onto a target with a skeleton and a skin: the motion drives its joints, limb by limb, and these its skin.

    x = Σ_j w_j (R_j X + t_j)

with the weights w of the file's own skin, as every engine that plays the result computes it. Points that the skin binds
to no joint go along with the nearest that it binds. Nothing is left below the floor: where the skin would sink, the
roots are raised.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pliant.core.clips import Animation
from pliant.core.errors import InputError
from pliant.core.interop import takes_meshes
from pliant.core.progress import ReportFrames
from pliant.core.shapes import Mesh
from pliant.core.signatures import takes_arguments_of
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.skinned import SkinnedAnimation, joint_transforms
from pliant.core.topology import Floats, Ints
from pliant.core.validation import expect
from pliant.core.values import Displayed, Value, locked
from pliant.engines.transfer.automatic import automatic_motion, base_first
from pliant.engines.transfer.judgement import Judgement, judge
from pliant.engines.transfer.options import TransferOptions
from pliant.engines.transfer.source_tracks import Sources, read_sources, shown_times
from pliant.geometry.axes import SignedAxis, axis_name, with_up
from pliant.geometry.body_plan.retargeted import Hints, Retargeted
from pliant.geometry.skinning import skin_of


@dataclass(frozen=True, eq=False)
class RiggedTransfer(Displayed, Value):
    """A motion on a target's own skeleton."""

    clip: SkinnedAnimation
    """The target as its skin moves it; `clip.motion` is that of its joints"""
    registered: Retargeted
    """How source and target stand, and which limbs follow which"""
    source: Animation | Motion
    times: Floats
    """(frames,) in the source's frames"""

    def __repr__(self) -> str:
        return f"RiggedTransfer({self.clip!r})"

    def __len__(self) -> int:
        return len(self.clip)

    @property
    def motion(self) -> Motion:
        """Of the target's joints."""
        return self.clip.motion

    @cached_property
    def judgement(self) -> Judgement:
        """What can be seen of the result, and what is wrong with it."""
        return judge(self.clip, self.source, self.registered, self.times)


@dataclass(frozen=True, eq=False)
class PreparedRig:
    """A transfer to a rig whose motion is known; its skin remains to be moved."""

    target: Mesh
    skin: tuple[Ints, Floats]
    registered: Retargeted
    source: Animation | Motion
    times: Floats
    fps: float

    def __len__(self) -> int:
        """Frames."""
        return len(self.times)

    def solve(self, report: ReportFrames | None = None) -> RiggedTransfer:
        """Move the skin. report: called with the number of frames done, and of all."""
        if report is not None:
            report(0, len(self))
        found = self.registered
        motion = replace(found.motion.at(self.times), fps=self.fps)
        clip = skinned(self.target, *self.skin, motion)
        if found.follower.legs:
            up = found.target.frame[1]
            sunk = np.maximum(found.target.ground - (clip.points @ up).min(axis=1), 0)
            roots = (motion.skeleton.parents < 0)[:, None]
            raised = motion.translations + roots * (sunk[:, None] * up)[:, None]
            clip = skinned(self.target, *self.skin, replace(motion, translations=raised))
        if report is not None:
            report(len(self), len(self))
        return RiggedTransfer(clip, found, self.source, self.times)


@takes_meshes("target")
def prepare_rig(
    sources: Sources,
    target: Mesh,
    skeleton: Skeleton,
    *,
    rest: Any = None,
    frames: int | ArrayLike | None = None,
    fps: float | None = TransferOptions.fps,
    target_up: SignedAxis | None = TransferOptions.target_up,
    heading: SignedAxis | None = TransferOptions.heading,
    source_up: SignedAxis | None = TransferOptions.source_up,
    source_heading: SignedAxis | None = TransferOptions.source_heading,
    map: str | None = TransferOptions.map,
) -> PreparedRig:
    """Check a transfer to a rig and find its motion, with the arguments of `transfer_to_rig`."""
    expect(target, Mesh, "the target")
    expect(skeleton, Skeleton, "the target's skeleton")
    TransferOptions.check(
        target_up=target_up, heading=heading, source_up=source_up, source_heading=source_heading, map=map
    )
    skin = bound_skin(target, skeleton)
    named_sources = base_first(read_sources(sources, rest=rest))
    hints = Hints(target_up, heading, source_up, source_heading, map or "")
    found = automatic_motion(named_sources, target, hints, skeleton)
    source = named_sources[0].source
    assert found is not None
    assert source is not None
    target = with_up(target, axis_name(found.target.frame[1]))
    return PreparedRig(target, skin, found, source, *shown_times(found.motion, frames, fps))


@takes_arguments_of(prepare_rig)
def transfer_to_rig(*arguments: Any, **options: Any) -> RiggedTransfer:
    """Transfer a motion to a mesh through its own skeleton and skin; no cage is needed.

    sources: an Animation or a Motion; several by name, as in `transfer`.
    target: a mesh whose vertex groups, called as the skeleton's joints, are its skin.
    rest, frames, fps, target_up, heading, source_up, source_heading, map: as in `transfer`.
    """
    return prepare_rig(*arguments, **options).solve()


def bound_skin(mesh: Mesh, skeleton: Skeleton) -> tuple[Ints, Floats]:
    """(n, k) joints and weights of a mesh's skin; refused where it has none."""
    from scipy.spatial import cKDTree

    skin = skin_of(mesh, skeleton)
    if skin is None:
        raise InputError(
            "no vertex group of the target is called as a joint of the skeleton; expected a skin, or use transfer",
            argument="skeleton",
        )
    bound = np.diff(skin.indptr) > 0
    lead = np.arange(len(mesh.points))
    lead[~bound] = np.flatnonzero(bound)[cKDTree(mesh.points[bound]).query(mesh.points[~bound])[1]]
    table = skin[lead].toarray()
    joints = np.argsort(-table, axis=1, kind="stable")[:, : int(np.diff(skin.indptr).max())]
    weights = np.take_along_axis(table, joints, axis=1)
    return joints, weights / weights.sum(axis=1, keepdims=True)


def skinned(mesh: Mesh, joints: Ints, weights: Floats, motion: Motion) -> SkinnedAnimation:
    """The mesh as its skin moves it."""
    R, t = joint_transforms(motion)
    points = np.zeros((len(motion), len(mesh.points), 3))
    for f, out in enumerate(points):
        for j, w in zip(joints.T, weights.T, strict=True):
            out += w[:, None] * (np.einsum("nab,nb->na", R[j, f], mesh.points) + t[j, f])
    others = {name: w for name, w in mesh.vertex_groups.items() if name not in motion.skeleton.names}
    return SkinnedAnimation(
        replace(mesh, vertex_groups=others),
        locked(points),
        motion.fps,
        "transfer",
        motion=motion,
        joints=joints,
        weights=weights,
        correctives=np.zeros((0, *mesh.points.shape)),
        curves=np.zeros((len(motion), 0)),
    )
