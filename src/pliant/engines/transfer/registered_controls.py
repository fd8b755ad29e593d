"""Controls of a source that is registered to the target (`registration`), where neither has pairs of limbs.

Each of the target's points belongs to the near-rigid group of the nearest point of a mesh sequence, and groups that the
target lacks are left out; a motion's bones are brought onto the target by an affine map.
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
from pliant.core.shapes import Mesh, Shape, TetMesh
from pliant.core.skeleton import Motion, Skeleton, bone_vector
from pliant.core.topology import Floats, Ints, connected_parts
from pliant.core.values import locked
from pliant.engines.transfer.cage import Cage
from pliant.engines.transfer.green import not_inside
from pliant.engines.transfer.groups import members, named_groups, neighbour_pairs, rigid_groups
from pliant.engines.transfer.plan import Control, Follow, Origin
from pliant.engines.transfer.registration import Registration, register
from pliant.engines.transfer.sources import Track, group_tracks, joint_tracks
from pliant.geometry.segments import nearest_segment
from pliant.geometry.shape_matching import principal_axes

LARGEST_GROUP_STRETCH = 1.5
"""Largest stretch, or shrinkage, that an automatic group's gradient may have."""
CRUSHED, CRUSHED_CLOUD, FACING = 0.45, 0.7, 0.5
"""A group is missing on the target if its relative misfit to a similarity exceeds the first (of a cloud the second)
and the mean cosine between its normals and the target's is below the third.
"""
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


def numbered_groups(clip: Animation, groups: Any, rest: Floats) -> dict[str, Ints]:
    """Vertices of a sequence's groups, by name: so many that are near-rigid, or those given."""
    if isinstance(groups, (int, np.integer)) and not isinstance(groups, bool):
        groups = rigid_groups(clip, int(groups), rest=rest)
    return {name: members(group, name, clip.shape, rest)[0] for name, group in named_groups(groups).items()}


def group_motions(clip: Animation, groups: dict[str, Ints], rest: Floats) -> dict[str, Track]:
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


def inside_cage(points: Floats, near: Sequence[Floats], cage: Cage) -> Floats:
    """Points (k, 3), those outside the cage replaced by the nearest of their own points inside."""
    out = points.copy()
    for k in not_inside(points, cage):
        own = near[k][np.setdiff1d(np.arange(len(near[k])), not_inside(near[k], cage))]
        if len(own):
            out[k] = own[np.argmin(np.linalg.norm(own - points[k], axis=1))]
    return out


def controls_of_groups(clip: Animation, rest: Floats, target: Shape, cage: Cage, groups: Any) -> Found:
    """Controls on the groups of a mesh sequence."""
    from scipy.spatial import cKDTree

    numbers = numbered_groups(clip, groups, rest)
    fit = register(rest, target.points)
    kept = _matched(clip.shape, rest, fit, numbers, target)
    grouped = np.concatenate([numbers[name] for name in kept])
    owner = np.repeat(np.arange(len(kept)), [len(numbers[name]) for name in kept])
    label = owner[cKDTree(fit.points[grouped]).query(target.points)[1]]
    tracks = list(group_motions(clip, {name: numbers[name] for name in kept}, rest).values())
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
    points = inside_cage(np.array([middle(owned[k]) for k in kept]), [owned[k] for k in kept], cage)
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


def controls_of_bones(motion: Motion, pose: Any, target: Shape, cage: Cage) -> Found:
    """Controls on a motion's long bones. pose: its reference, as in `joint_tracks`."""
    names = _long_bones(motion.skeleton)
    along = [joint_tracks(motion, names, rest=pose, along=t) for t in (0.0, 0.5, 1.0)]
    bones = np.array([[track.rest for track in tracks.values()] for tracks in along])
    fit = register(bones.reshape(-1, 3), target.points, bend=False, reluctance=BONES_RELUCTANCE)
    a, b = fit.points.reshape(bones.shape)[[0, -1]]
    before = [fit.rotation.T] * len(names)
    label, _ = nearest_segment(target.points, a, b)
    tracks = list(along[1].values())
    lead = motion.skeleton.names[0]
    owned = [target.points[label == k] for k in range(len(tracks))]
    root = joint_tracks(motion, lead, rest=pose)[lead]
    return _placed(tracks, owned, before, fit, cage, root)


def _long_bones(skeleton: Skeleton) -> list[str]:
    """Names of the joints with bones that are long enough to drive a part of the target: not fingers, not eyes."""
    bones = [float(np.linalg.norm(bone_vector(skeleton, j))) for j in range(len(skeleton))]
    if max(bones) == 0:
        raise InputError("the motion's skeleton has no bones; give the controls themselves", argument="sources")
    return [name for name, long in zip(skeleton.names, bones, strict=True) if long > SHORT_BONE * max(bones)]
