"""Automatic controls: ``controls="auto"``.

- A target with a mesh sequence's own points and faces, in any pose, size and position, is the same shape: the sequence
  is divided into near-rigid groups, which have the same vertices on both. Motion is measured against the target's own
  rest, and positions are followed too, so that the sequence is reproduced.
- On another target, limbs follow limbs: the target gets the skeleton of its plan, the motion is carried onto that
  (`pliant.geometry.body_plan`), and every bone becomes a gradient control, hips, ankles and wrists position controls.
  What does not match is refused.
- Where neither has pairs of limbs, the source is registered to the target (`registered_controls`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from pliant.core import rotations
from pliant.core.clips import Animation
from pliant.core.errors import InputError
from pliant.core.shapes import Mesh, Shape, TetMesh, bounding_diagonal
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Floats
from pliant.core.values import locked
from pliant.engines.transfer.cage import Cage
from pliant.engines.transfer.groups import neighbour_pairs
from pliant.engines.transfer.plan import Control, Follow
from pliant.engines.transfer.registered_controls import (
    Found,
    controls_of_bones,
    controls_of_groups,
    group_motions,
    inside_cage,
    numbered_groups,
)
from pliant.engines.transfer.source_tracks import SourceTracks
from pliant.engines.transfer.sources import Track
from pliant.geometry.axes import SignedAxis
from pliant.geometry.body_plan.bodies import shape_body
from pliant.geometry.body_plan.moving import without_reference_pose
from pliant.geometry.body_plan.names import OVERLAYS
from pliant.geometry.body_plan.retargeted import (
    Hints,
    Retargeted,
    moving_body,
    onto_shape,
    onto_skeleton,
    with_limbs,
)
from pliant.geometry.body_plan.symmetry import body_axes, own_axes

SAME_SHAPE = 1e-3
"""Mean distance, over the diagonal, up to which two shapes differ by a similarity only, not by pose."""
SAME_SIZE = 0.02
"""Relative difference of sizes that is ignored for a shape in another pose."""
SHORTEST = 0.03
"""Length of a bone, over the target's size, below which it gets no control, unless it is a foot or a hand."""


def automatic_motion(
    named_sources: tuple[SourceTracks, ...], target: Shape, hints: Hints, skeleton: Skeleton | None = None
) -> Retargeted | None:
    """The motion of the sources on the target's limbs; None where they do not follow limbs.

    skeleton: the target's own, in whose joints the motion is then.
    """
    if any(entry.source is None for entry in named_sources):
        raise InputError(
            "automatic controls follow a clip or a motion; got tracks; give the controls themselves instead",
            argument="controls",
        )
    if len(named_sources) > 1:
        return _joined_motion(named_sources, target, hints, skeleton)
    source, rest = named_sources[0].source, named_sources[0].rest
    if isinstance(source, Animation) and skeleton is None and same_topology(source.shape, target):
        return None
    if isinstance(source, Motion) and skeleton is None and len(source.skeleton) == len(set(source.skeleton.parents)):
        return None  # no joint has two children
    measured = named_sources[0].measured
    measured = without_reference_pose(measured) if isinstance(measured, Motion) else source
    assert measured is not None
    moving = moving_body(measured, hints, rest if isinstance(source, Animation) else None)
    if skeleton is not None:
        return onto_skeleton(moving, skeleton, target, hints)
    if not moving.body.anatomy.paired and not shape_body(target, hints.up, hints.heading).anatomy.paired:
        return None
    return onto_shape(moving, target, hints, planted=isinstance(source, Animation))


def base_first(named_sources: tuple[SourceTracks, ...]) -> tuple[SourceTracks, ...]:
    """Several sources in the order in which automatic controls take them: first the one that gives the whole body.

    That is the one that is called legs or lower, or else the first. The others are called as the limbs that they give.
    """
    if len(named_sources) == 1:
        return named_sources
    names = [entry.name for entry in named_sources]
    first = next((k for k, name in enumerate(names) if name in ("legs", "lower")), 0)
    strange = [name for k, name in enumerate(names) if k != first and name not in OVERLAYS]
    if strange:
        raise InputError(
            f'source "{strange[0]}" is one of several; automatic controls take the first by any name, and others that '
            f"are called as what they give: {', '.join(OVERLAYS)}",
            argument="sources",
        )
    return (named_sources[first], *named_sources[:first], *named_sources[first + 1 :])


def _joined_motion(
    named_sources: tuple[SourceTracks, ...], target: Shape, hints: Hints, skeleton: Skeleton | None
) -> Retargeted:
    """The first source's motion, with limbs of the others."""
    base = automatic_motion(named_sources[:1], target, hints, skeleton)
    if base is None:
        raise InputError(
            "several sources are joined limb by limb, and the first has no limbs that the target has",
            argument="controls",
        )
    for entry in named_sources[1:]:
        source = entry.measured
        measured = without_reference_pose(source) if isinstance(source, Motion) else entry.source
        assert measured is not None
        moving = moving_body(measured, hints, entry.rest if isinstance(measured, Animation) else None)
        base = with_limbs(base, onto_skeleton(moving, base.skeleton, target, hints, body=base.target), entry.name)
    return base


def cage_axes(source: object, target: Shape, up: SignedAxis | None, heading: SignedAxis | None) -> Floats:
    """(3, 3) rows: directions that rotate and mirror along with a target, for a cage that does, too."""
    if isinstance(source, Animation) and same_topology(source.shape, target):
        return body_axes(target, up)
    try:
        return own_axes(target, shape_body(target, up, heading).frame)
    except InputError:  # it has no limbs that could be distinguished
        return body_axes(target, up)


def found_controls(
    named_sources: tuple[SourceTracks, ...], target: Shape, cage: Cage, groups: Any, found: Retargeted | None
) -> Found:
    """Controls for a source, a sequence or a motion. found: its motion on the target's limbs, if it follows them."""
    if found is not None:
        return _from_limbs(found, target, cage)
    source, rest = named_sources[0].source, named_sources[0].rest
    if isinstance(source, Motion):
        return controls_of_bones(source, named_sources[0].pose, target, cage)
    assert source is not None
    if same_topology(source.shape, target):
        return _from_itself(source, target, cage, groups)
    return controls_of_groups(source, rest, target, cage, groups)


# Limbs


def _from_limbs(found: Retargeted, target: Shape, cage: Cage) -> Found:
    """Gradient controls on the bones, position controls at hips, ankles, wrists and tips."""
    from scipy.spatial import cKDTree

    tree, motion = found.target.tree, found.motion
    positions, frames = motion.world()
    rest, rest_frames = motion.skeleton.rest_world
    R = rotations.matrix(rotations.multiply(frames, rotations.inverse(rest_frames)))

    def track(name: str, node: int, point: Floats) -> Track:
        joint = int(tree.joints[node])
        path = positions[:, joint] + R[:, joint] @ (point - rest[joint])
        return Track(name, locked(point), locked(path), locked(R[:, joint].copy()), motion.fps)

    spine = list(found.target.anatomy.spine)
    limbs = [list(limb.nodes[1:]) for limb in found.target.anatomy.limbs]
    turning = [track("hips", spine[0], tree.locations[spine[0]])]
    feet = {chain.end_node for _, chain in found.follower.pairs if chain.end < 1}
    for start, end in [pair for chain in (spine, *limbs) for pair in pairwise(chain)]:
        length = float(np.linalg.norm(tree.locations[end] - tree.locations[start]))
        if start in feet or length > SHORTEST * found.target.size:
            turning.append(track(tree.names[start], start, (tree.locations[start] + tree.locations[end]) / 2))
    leading = [turning[0]]
    for _, chain in found.follower.pairs:
        if chain.role in ("leg", "arm"):
            ends = (chain.end_node, *((chain.nodes[-1],) if chain.end < 1 else ()))
            leading += [track(f"{tree.names[node]} {k}", node, tree.locations[node]) for k, node in enumerate(ends)]
    points = np.array([item.rest for item in (*turning, *leading)])
    near = cKDTree(target.points).query(points, k=min(60, len(target.points)))[1]
    inside = inside_cage(points, [target.points[some] for some in near], cage)
    moved = [_seen_from(item, point) for item, point in zip((*turning, *leading), inside, strict=True)]
    controls = tuple(Control(item.rest, item) for item in moved[: len(turning)])
    return Found(controls, tuple(Follow(item.rest, item, 1.0) for item in moved[len(turning) :]))


def same_topology(one: Shape, other: Shape) -> bool:
    """Whether two shapes have as many points and the same faces or tetrahedra; clouds never do."""
    if isinstance(one, Mesh) and isinstance(other, Mesh):
        return len(one.points) == len(other.points) and np.array_equal(one.triangles, other.triangles)
    if isinstance(one, TetMesh) and isinstance(other, TetMesh):
        return len(one.points) == len(other.points) and np.array_equal(one.tets, other.tets)
    return False


# The same shape


@dataclass(frozen=True, eq=False)
class Similarity:
    """``target = scale · rotation · source + shift``."""

    rotation: Floats
    scale: float
    shift: Floats

    def back(self, points: Floats) -> Floats:
        """Points of the target in the source's space."""
        return (points - self.shift) @ self.rotation / self.scale


def similarity(source: Shape, target: Shape) -> Similarity:
    """The similarity from source to target; if their poses differ, its scale only."""
    p, q = source.points - source.points.mean(axis=0), target.points - target.points.mean(axis=0)
    R = rotations.match_rigid(p, q)[0]
    scale = float(np.sqrt((q**2).sum() / max((p**2).sum(), 1e-300)))
    if np.linalg.norm(scale * p @ R.T - q, axis=1).mean() <= SAME_SHAPE * bounding_diagonal(q):
        rotation = np.eye(3) if np.abs(R - np.eye(3)).max() < SAME_SHAPE else R
        return Similarity(rotation, scale, target.points.mean(axis=0) - scale * rotation @ source.points.mean(axis=0))
    edges = neighbour_pairs(source, source.points)
    long = [np.linalg.norm(s.points[edges[:, 0]] - s.points[edges[:, 1]], axis=1) for s in (source, target)]
    scale = float(np.median(long[1]) / max(float(np.median(long[0])), 1e-300))
    return Similarity(np.eye(3), 1.0 if abs(scale - 1) < SAME_SIZE else scale, np.zeros(3))


def _from_itself(clip: Animation, target: Shape, cage: Cage, groups: Any) -> Found:
    lies = similarity(clip.shape, target)
    rest = lies.back(target.points)
    numbers = numbered_groups(clip, groups, rest)
    tracks = group_motions(clip, numbers, rest)
    points = np.array([target.points[inside].mean(axis=0) for inside in numbers.values()])
    points = inside_cage(points, [target.points[inside] for inside in numbers.values()], cage)
    moved = [_seen_from(track, lies.back(point[None])[0]) for track, point in zip(tracks.values(), points, strict=True)]
    A = lies.rotation
    controls = tuple(Control(point, track, A.T, A) for point, track in zip(points, moved, strict=True))
    follow = tuple(Follow(point, track, lies.scale, A) for point, track in zip(points, moved, strict=True))
    return Found(controls, follow)


def _seen_from(track: Track, point: Floats) -> Track:
    """The track of the same piece at another point of it."""
    return replace(track, rest=point, points=locked(track.points + track.gradients @ (point - track.rest)))
