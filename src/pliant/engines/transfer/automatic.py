"""Automatic controls: ``controls="auto"``.

A mesh sequence is divided into near-rigid groups, and each becomes a gradient control:

- A target with the sequence's own points and faces, in any pose, size and position, is the same shape: groups have the
  same vertices on both. Motion is measured against the target's own rest, and positions are followed too, so that the
  sequence is reproduced.
- On another target, limbs follow limbs: the orientation and the limbs of both are found, and each piece of a limb
  points where the source's does (`limb_controls`). What does not match is refused.
- Where neither has pairs of limbs, a sequence is registered to the target (`registration`): each of the target's points
  belongs to the group of the nearest source point, and groups that it lacks are left out; a motion's bones are brought
  onto the target by an affine map.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pliant.core import rotations
from pliant.core.clips import Animation
from pliant.core.errors import InputError
from pliant.core.normals import vertex_normals
from pliant.core.shapes import Mesh, Shape, TetMesh, bounding_diagonal
from pliant.core.skeleton import Motion, Skeleton, bone_vector
from pliant.core.topology import Floats, Ints, connected_parts
from pliant.core.values import locked
from pliant.engines.transfer.cage import Cage
from pliant.engines.transfer.green import not_inside
from pliant.engines.transfer.groups import members, named_groups, neighbour_pairs, rigid_groups
from pliant.engines.transfer.limb_controls import controls_of_motion, controls_of_sequence
from pliant.engines.transfer.limb_matching import (
    Registered,
    check_match,
    check_planted,
    given_axis,
    match_limbs,
    standing_body,
    without_reference_pose,
)
from pliant.engines.transfer.limbs import limb_bones
from pliant.engines.transfer.matching import principal_axes
from pliant.engines.transfer.motion_body import motion_body
from pliant.engines.transfer.options import TransferOptions
from pliant.engines.transfer.plan import Control, Follow, Origin
from pliant.engines.transfer.registration import Registration, register
from pliant.engines.transfer.source_tracks import SourceTracks
from pliant.engines.transfer.sources import Track, group_tracks, joint_tracks
from pliant.geometry.segments import nearest_segment

LARGEST_GROUP_STRETCH = 1.5
"""Largest stretch, or shrinkage, that an automatic group's gradient may have."""
SAME_SHAPE = 1e-3
"""Mean distance, over the diagonal, up to which two shapes differ by a similarity only, not by pose."""
CRUSHED, CRUSHED_CLOUD, FACING = 0.45, 0.7, 0.5
"""A group is missing on the target if its relative misfit to a similarity exceeds the first (of a cloud the second)
and the mean cosine between its normals and the target's is below the third.
"""
SAME_SIZE = 0.02
"""Relative difference of sizes that is ignored for a shape in another pose."""
BONES_RELUCTANCE = (1.5, 2.0)
"""As in `register`: larger for a skeleton, which is thin and flat, so that its box does not tell up from front."""
SHORT_BONE = 0.2
"""Length of a bone, over the longest, up to which it gets no control."""
LIMB_ASPECT = 2.0
"""Ratio of a group's two largest extents from which it is a limb with a direction."""
FEWEST_OWNED_POINTS = 3
"""Fewest points of the target that a group needs to get a control."""


@dataclass(frozen=True)
class Found:
    """Gradient controls and position controls."""

    controls: tuple[Control, ...]
    follow: tuple[Follow, ...]
    registered: Registered | None = None
    """How the two stand and which limbs follow which, where that was found by limbs."""


def found_controls(
    named_sources: tuple[SourceTracks, ...],
    target: Shape,
    cage: Cage,
    groups: Any,
    hints: TransferOptions,
) -> Found:
    """Controls for one source, a sequence or a motion. hints: what is known of how the two stand and match."""
    if len(named_sources) != 1 or named_sources[0].source is None:
        given = (
            "tracks"
            if len(named_sources) == 1
            else f"{len(named_sources)} sources: {', '.join(entry.name for entry in named_sources)}"
        )
        raise InputError(
            f"automatic controls take one source; got {given}; give the controls themselves instead",
            argument="controls",
        )
    source, rest = named_sources[0].source, named_sources[0].rest
    if isinstance(source, Animation) and same_topology(source.shape, target):
        return _from_itself(source, target, cage, groups)
    matched = _from_limbs(source, named_sources[0], target, cage, hints)
    if matched is not None:
        return matched
    if isinstance(source, Motion):
        return _from_bones(source, named_sources[0], target, cage)
    return _from_another(source, rest, target, cage, groups)


def _from_limbs(
    source: Animation | Motion, feed: SourceTracks, target: Shape, cage: Cage, hints: TransferOptions
) -> Found | None:
    """Controls on limbs that both have; None where neither has any, or the source is a chain of bones."""
    posed = None
    if isinstance(source, Motion) and len(source.skeleton) == len(set(source.skeleton.parents)):
        return None  # no joint has two children
    if isinstance(source, Motion):
        source = without_reference_pose(source)
        up, heading = given_axis(hints, "source_up"), given_axis(hints, "source_heading")
        posed = motion_body(source, feed.pose, up=up, heading=heading)
        body = posed.body
    else:
        shape = source.shape
        shape = shape if np.array_equal(feed.rest, shape.points) else shape.with_points(feed.rest)
        body = standing_body(shape, hints, "source_up", "source_heading")
    there = standing_body(target, hints, "target_up", "heading")
    if not body.anatomy.paired and not there.anatomy.paired:
        return None
    match = match_limbs(body, there, hints.map or "")
    check_match(match, body, there)
    if posed is not None:
        assert isinstance(source, Motion)
        placed = controls_of_motion(source, feed, posed, there, match)
    else:
        assert isinstance(source, Animation)
        if not hints.map:
            check_planted(source, feed.rest, body, match)
        placed = controls_of_sequence(source, feed.rest, body, there, match)
    from scipy.spatial import cKDTree

    locations = np.array([np.asarray(at) for at in (*(c.at for c in placed.controls), *(f.at for f in placed.follow))])
    near = cKDTree(target.points).query(locations, k=min(60, len(target.points)))[1]
    inside = _inside(locations, [target.points[some] for some in near], cage)
    count = len(placed.controls)
    controls = tuple(replace(item, at=location) for item, location in zip(placed.controls, inside[:count], strict=True))
    follow = tuple(replace(item, at=location) for item, location in zip(placed.follow, inside[count:], strict=True))
    return Found(controls, follow, Registered(body, there, match, None if posed is None else posed.world))


def same_topology(one: Shape, other: Shape) -> bool:
    """Whether two shapes have as many points and the same faces or tetrahedra; clouds never do."""
    if isinstance(one, Mesh) and isinstance(other, Mesh):
        return len(one.points) == len(other.points) and np.array_equal(one.triangles, other.triangles)
    if isinstance(one, TetMesh) and isinstance(other, TetMesh):
        return len(one.points) == len(other.points) and np.array_equal(one.tets, other.tets)
    return False


def numbered_groups(clip: Animation, groups: Any, rest: Floats) -> dict[str, Ints]:
    """Vertices of a sequence's groups, by name: so many that are near-rigid, or those given."""
    if isinstance(groups, (int, np.integer)) and not isinstance(groups, bool):
        groups = rigid_groups(clip, int(groups), rest=rest)
    return {name: members(group, name, clip.shape, rest)[0] for name, group in named_groups(groups).items()}


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
    tracks = _tracks(clip, numbers, rest)
    points = np.array([target.points[inside].mean(axis=0) for inside in numbers.values()])
    points = _inside(points, [target.points[inside] for inside in numbers.values()], cage)
    moved = [_seen_from(track, lies.back(point[None])[0]) for track, point in zip(tracks.values(), points, strict=True)]
    A = lies.rotation
    controls = tuple(Control(point, track, A.T, A) for point, track in zip(points, moved, strict=True))
    follow = tuple(Follow(point, track, lies.scale, A) for point, track in zip(points, moved, strict=True))
    return Found(controls, follow)


def _tracks(clip: Animation, groups: dict[str, Ints], rest: Floats) -> dict[str, Track]:
    """Tracks of groups with stretches limited to `LARGEST_GROUP_STRETCH`: linear fits of bending groups may collapse.

    An inverted fit is mirrored back along its thinnest direction.
    """
    found = {}
    for name, track in group_tracks(clip, groups, rest=rest).items():
        U, size, V = np.linalg.svd(track.gradients)
        size = np.clip(size, 1 / LARGEST_GROUP_STRETCH, LARGEST_GROUP_STRETCH)
        U[:, :, 2] *= np.where(np.linalg.det(track.gradients) < 0, -1, 1)[:, None]
        found[name] = replace(track, gradients=locked((U * size[:, None]) @ V))
    return found


def _seen_from(track: Track, point: Floats) -> Track:
    """The track of the same piece at another point of it."""
    return replace(track, rest=point, points=locked(track.points + track.gradients @ (point - track.rest)))


def _inside(points: Floats, near: Sequence[Floats], cage: Cage) -> Floats:
    """Points (k, 3), those outside the cage replaced by the nearest of their own points inside."""
    out = points.copy()
    for k in not_inside(points, cage):
        own = near[k][np.setdiff1d(np.arange(len(near[k])), not_inside(near[k], cage))]
        if len(own):
            out[k] = own[np.argmin(np.linalg.norm(own - points[k], axis=1))]
    return out


# Another shape


def _from_another(clip: Animation, rest: Floats, target: Shape, cage: Cage, groups: Any) -> Found:
    from scipy.spatial import cKDTree

    numbers = numbered_groups(clip, groups, rest)
    fit = register(rest, target.points)
    kept = _matched(clip.shape, rest, fit, numbers, target)
    grouped = np.concatenate([numbers[name] for name in kept])
    owner = np.repeat(np.arange(len(kept)), [len(numbers[name]) for name in kept])
    label = owner[cKDTree(fit.points[grouped]).query(target.points)[1]]
    tracks = list(_tracks(clip, {name: numbers[name] for name in kept}, rest).values())
    before = [
        _pose_rotation(rest[numbers[name]], fit.points[numbers[name]] @ fit.rotation) @ fit.rotation.T for name in kept
    ]
    return _placed(tracks, [target.points[label == k] for k in range(len(kept))], before, fit, cage)


def _pose_rotation(source: Floats, target: Floats) -> Floats:
    """(3, 3) the rotation of a long group's (n, 3) direction from target to source; the identity for other groups."""
    p, q = source - source.mean(axis=0), target - target.mean(axis=0)
    extent, axes = principal_axes(p, np.full(len(p), 1 / len(p)))
    if extent[0] < LIMB_ASPECT * extent[1]:
        return np.eye(3)
    along = axes[:, 0]
    lies = q.T @ (p @ along)
    return rotations.matrix(rotations.between(lies, along))


def _matched(shape: Shape, rest: Floats, fit: Registration, numbers: dict[str, Ints], target: Shape) -> list[str]:
    """Names of the groups that the target has too: those that are not crushed and are connected to most others."""
    crushed = {name for name, inside in numbers.items() if _is_crushed(shape, rest, fit, inside, target)}
    if len(crushed) == len(numbers):
        return list(numbers)
    there = np.ones(len(rest), dtype=bool)
    for name in crushed:
        there[numbers[name]] = False
    pairs = neighbour_pairs(shape, rest)
    part = connected_parts(len(rest), pairs[there[pairs].all(axis=1)])
    whole = there & (part == np.argmax(np.bincount(part[there])))
    return [name for name in numbers if name not in crushed and whole[numbers[name]].mean() > 0.5]


def _is_crushed(shape: Shape, rest: Floats, fit: Registration, inside: Ints, target: Shape) -> bool:
    """Whether the registration has distorted a group and its normals differ from the target's: the target lacks it."""
    p, q = rest[inside] - rest[inside].mean(axis=0), fit.points[inside] - fit.points[inside].mean(axis=0)
    rotated = p @ rotations.match_rigid(p, q)[0].T
    scale = float((rotated * q).sum() / max(float((p**2).sum()), 1e-300))
    misfit = np.sqrt(((scale * rotated - q) ** 2).sum() / max(float((q**2).sum()), 1e-300))
    if misfit <= CRUSHED:
        return False
    surfaces = [s.surface if isinstance(s, TetMesh) else s for s in (shape, target)]
    if not all(isinstance(s, Mesh) for s in surfaces):
        return bool(misfit > CRUSHED_CLOUD)
    from scipy.spatial import cKDTree

    here = vertex_normals(fit.points, surfaces[0].triangles)[inside]  # type: ignore[union-attr]
    there = vertex_normals(target.points, surfaces[1].triangles)  # type: ignore[union-attr]
    near = cKDTree(target.points).query(fit.points[inside])[1]
    return bool(np.einsum("ni,ni->n", here, there[near]).mean() < FACING)


def _placed(
    tracks: list[Track],
    owned: list[Floats],
    before: list[Floats],
    fit: Registration,
    cage: Cage,
    root: Track | None = None,
) -> Found:
    """Controls at the centres of the target's points that each track owns; tracks with hardly any are left out."""
    kept = [k for k in range(len(tracks)) if len(owned[k]) >= FEWEST_OWNED_POINTS]
    if not kept:
        raise InputError("no piece of the source lies on the target; give the controls themselves", argument="controls")
    points = _inside(np.array([middle(owned[k]) for k in kept]), [owned[k] for k in kept], cage)
    A = fit.rotation
    controls = tuple(Control(point, tracks[k], before[k], A) for point, k in zip(points, kept, strict=True))
    largest = int(np.argmax([len(owned[k]) for k in kept]))
    lead = tracks[kept[largest]] if root is None else root
    origin: Origin = "rest" if root is None else "first"
    return Found(controls, (Follow(points[largest], lead, fit.scale, A, origin),))


def middle(points: Floats) -> Floats:
    """(3,) the mean of the half of the points nearest to their median, which is robust to outliers."""
    away = np.linalg.norm(points - np.median(points, axis=0), axis=1)
    mean: Floats = points[np.argsort(away)[: max(1, (len(points) + 1) // 2)]].mean(axis=0)
    return mean


# A motion's bones


def _from_bones(motion: Motion, source_tracks: SourceTracks, target: Shape, cage: Cage) -> Found:
    names = _long_bones(motion.skeleton)
    along = [joint_tracks(motion, names, rest=source_tracks.pose, along=t) for t in (0.0, 0.5, 1.0)]
    bones = np.array([[track.rest for track in tracks.values()] for tracks in along])
    fit = register(bones.reshape(-1, 3), target.points, bend=False, reluctance=BONES_RELUCTANCE)
    a, b = fit.points.reshape(bones.shape)[[0, -1]]
    before = [fit.rotation.T] * len(names)
    limbs = limb_bones(motion, source_tracks.pose, target, fit.rotation)
    for k, name in enumerate(names):
        j = motion.skeleton.names.index(name)
        if j in limbs:
            a[k], b[k] = limbs[j]
            shortest = rotations.between((b[k] - a[k]) @ fit.rotation, bones[-1, k] - bones[0, k])
            before[k] = rotations.matrix(shortest) @ fit.rotation.T
    label, _ = nearest_segment(target.points, a, b)
    tracks = list(along[1].values())
    lead = motion.skeleton.names[0]
    owned = [target.points[label == k] for k in range(len(tracks))]
    root = joint_tracks(motion, lead, rest=source_tracks.pose)[lead]
    return _placed(tracks, owned, before, fit, cage, root)


def _long_bones(skeleton: Skeleton) -> list[str]:
    """Names of the joints with bones that are long enough to drive a part of the target: not fingers, not eyes."""
    bones = [float(np.linalg.norm(bone_vector(skeleton, j))) for j in range(len(skeleton))]
    if max(bones) == 0:
        raise InputError("the motion's skeleton has no bones; give the controls themselves", argument="sources")
    return [name for name, long in zip(skeleton.names, bones, strict=True) if long > SHORT_BONE * max(bones)]
