"""Controls that find their places by themselves.

A mesh sequence is divided into near-rigid groups, and each becomes a gradient control:

- A target with the sequence's own points and faces, in any pose, at any size and place, is the same shape: groups have
  the same vertices on both. The target's own rest is what the motion is measured against, and positions follow too, so
  that the sequence is given again.
- Another target is brought together with the source by their boxes: of the 24 ways to turn the source's axes, the one
  whose points come nearest to the target's. Each of the target's points belongs to the group of the nearest source
  point. The gradients are turned along (B = Aᵀ, T = A), and the largest group leads the way.

A motion's bones are brought together with the target in the same way; each drives the part of the target around its
middle, and the root leads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import Any

import numpy as np

from pliant import rotations
from pliant.cage.checked import Cage
from pliant.cage.feeds import Feed
from pliant.cage.green import not_inside
from pliant.cage.groups import members, named_groups, neighbour_pairs, rigid_groups
from pliant.cage.plan import Control, Follow
from pliant.cage.sources import Track, bone_vector, group_tracks, joint_tracks
from pliant.clips import Animation
from pliant.errors import InputError
from pliant.shapes import Mesh, Shape, TetMesh, bounding_diagonal
from pliant.skeleton import Motion
from pliant.topology import Floats, Ints
from pliant.values import locked

SAME = 1e-3
"""Mean distance, over the diagonal, up to which a shape is the other one moved and scaled, not posed otherwise."""
SAMPLES = 1500
"""Points by which two shapes are brought together."""
AS_IT_IS = 1.15
"""How much nearer than this the best turn has to bring two shapes; else the source is not turned."""
NEARLY = 0.02
"""Difference of sizes, over one, that counts as none for a shape in another pose."""
FEWEST_POINTS = 3
"""Of the target, for a group to have a control there."""


@dataclass(frozen=True)
class Found:
    """Gradient controls and position controls."""

    controls: tuple[Control, ...]
    follow: tuple[Follow, ...]


def found_controls(feeds: tuple[Feed, ...], target: Shape, cage: Cage, groups: Any) -> Found:
    """Controls for one source, a sequence or a motion."""
    if len(feeds) != 1 or feeds[0].source is None:
        given = "tracks" if len(feeds) == 1 else f"{len(feeds)} sources: {', '.join(feed.name for feed in feeds)}"
        raise InputError(f'controls="auto" takes one Animation or Motion; got {given}; give a list of Control instead')
    source, rest = feeds[0].source, feeds[0].rest
    if isinstance(source, Motion):
        return _from_bones(source, feeds[0], target, cage)
    if same_topology(source.shape, target):
        return _from_itself(source, target, cage, groups)
    return _from_another(source, rest, target, cage, groups)


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
    """``target = scale · turn · source + shift``."""

    turn: Floats
    scale: float
    shift: Floats

    def back(self, points: Floats) -> Floats:
        """Places of the target, in the source's space."""
        return (points - self.shift) @ self.turn / self.scale


def similarity(source: Shape, target: Shape) -> Similarity:
    """How the target lies to the source, if it is the source moved; if it is posed otherwise, how large it is."""
    p, q = source.points - source.points.mean(axis=0), target.points - target.points.mean(axis=0)
    R = rotations.match_rigid(p, q)[0]
    scale = float(np.sqrt((q**2).sum() / max((p**2).sum(), 1e-300)))
    if np.linalg.norm(scale * p @ R.T - q, axis=1).mean() <= SAME * bounding_diagonal(q):
        turn = np.eye(3) if np.abs(R - np.eye(3)).max() < SAME else R
        return Similarity(turn, scale, target.points.mean(axis=0) - scale * turn @ source.points.mean(axis=0))
    edges = neighbour_pairs(source, source.points)
    long = [np.linalg.norm(s.points[edges[:, 0]] - s.points[edges[:, 1]], axis=1) for s in (source, target)]
    scale = float(np.median(long[1]) / max(float(np.median(long[0])), 1e-300))
    return Similarity(np.eye(3), 1.0 if abs(scale - 1) < NEARLY else scale, np.zeros(3))


def _from_itself(clip: Animation, target: Shape, cage: Cage, groups: Any) -> Found:
    lies = similarity(clip.shape, target)
    rest = lies.back(target.points)
    numbers = numbered_groups(clip, groups, rest)
    tracks = group_tracks(clip, numbers, rest=rest)
    places = np.array([target.points[inside].mean(axis=0) for inside in numbers.values()])
    places = _inside(places, [target.points[inside] for inside in numbers.values()], cage)
    moved = [_seen_from(track, lies.back(place[None])[0]) for track, place in zip(tracks.values(), places, strict=True)]
    A = lies.turn
    controls = tuple(Control(place, track, A.T, A) for place, track in zip(places, moved, strict=True))
    follow = tuple(Follow(place, track, lies.scale, A) for place, track in zip(places, moved, strict=True))
    return Found(controls, follow)


def _seen_from(track: Track, place: Floats) -> Track:
    """The same piece, followed at another place of it."""
    return replace(track, rest=place, points=locked(track.points + track.gradients @ (place - track.rest)))


def _inside(places: Floats, near: Sequence[Floats], cage: Cage) -> Floats:
    """Places (k, 3), where those that are not inside the cage have gone to the nearest of their own points."""
    out = places.copy()
    for k in not_inside(places, cage):
        own = near[k][np.setdiff1d(np.arange(len(near[k])), not_inside(near[k], cage))]
        if len(own):
            out[k] = own[np.argmin(np.linalg.norm(own - places[k], axis=1))]
    return out


# Another shape


@dataclass(frozen=True, eq=False)
class BoxFit:
    """Brings a source's box to the target's: turned, then stretched along the axes."""

    turn: Floats
    stretch: Floats
    start: Floats
    """(3,) the middle of the turned source's box"""
    end: Floats
    """(3,) the middle of the target's box"""

    def __call__(self, points: Floats) -> Floats:
        return (points @ self.turn.T - self.start) * self.stretch + self.end


def box_fit(source: Floats, target: Floats) -> BoxFit:
    """Of the 24 ways to turn the axes, the one that brings the points nearest; none, where that is about as near."""
    from scipy.spatial import cKDTree

    p = source[np.linspace(0, len(source) - 1, min(len(source), SAMPLES)).astype(int)]
    q = target[np.linspace(0, len(target) - 1, min(len(target), SAMPLES)).astype(int)]
    tree = cKDTree(q)
    fits = [_boxes(turn, source, target) for turn in axis_turns()]
    away = [float(tree.query(fit(p))[0].mean() + cKDTree(fit(p)).query(q)[0].mean()) for fit in fits]
    best = int(np.argmin(away))
    return fits[best] if away[best] * AS_IT_IS < away[0] else fits[0]


def axis_turns() -> list[Floats]:
    """The 24 rotations that take axes to axes; the first is none."""
    turns = []
    for order, signs in product(permutations(range(3)), product((1.0, -1.0), repeat=3)):
        turn = np.eye(3)[list(order)] * np.array(signs)[:, None]
        if np.linalg.det(turn) > 0:
            turns.append(turn)
    return turns


def _boxes(turn: Floats, source: Floats, target: Floats) -> BoxFit:
    turned = source @ turn.T
    sizes, wanted = np.ptp(turned, axis=0), np.ptp(target, axis=0)
    flat = sizes <= 1e-9 * sizes.max()
    whole = float(np.linalg.norm(wanted) / np.linalg.norm(sizes))
    stretch = np.where(flat, whole, wanted / np.where(flat, 1.0, sizes))
    return BoxFit(turn, stretch, (turned.min(axis=0) + turned.max(axis=0)) / 2, (target.min(0) + target.max(0)) / 2)


def _from_another(clip: Animation, rest: Floats, target: Shape, cage: Cage, groups: Any) -> Found:
    from scipy.spatial import cKDTree

    numbers = numbered_groups(clip, groups, rest)
    fit = box_fit(rest, target.points)
    grouped = np.concatenate(list(numbers.values()))
    owner = np.repeat(np.arange(len(numbers)), [len(inside) for inside in numbers.values()])
    _, near = cKDTree(fit(rest[grouped])).query(target.points)
    label = owner[near]
    tracks = list(group_tracks(clip, numbers, rest=rest).values())
    return _placed(tracks, [target.points[label == k] for k in range(len(tracks))], fit, cage, None)


def _placed(tracks: list[Track], owned: list[Floats], fit: BoxFit, cage: Cage, root: Track | None) -> Found:
    """Tracks in the middle of the target's points that they own; those with hardly any are left out."""
    kept = [k for k in range(len(tracks)) if len(owned[k]) >= FEWEST_POINTS]
    if not kept:
        raise InputError("no piece of the source lies on the target; give controls as a list of Control")
    places = _inside(np.array([middle(owned[k]) for k in kept]), [owned[k] for k in kept], cage)
    A = fit.turn
    controls = tuple(Control(place, tracks[k], A.T, A) for place, k in zip(places, kept, strict=True))
    largest = int(np.argmax([len(owned[k]) for k in kept]))
    scale = float(np.exp(np.log(fit.stretch).mean()))
    if root is None:
        return Found(controls, (Follow(places[largest], tracks[kept[largest]], scale, A),))
    nearest = int(np.argmin(np.linalg.norm(places - fit(root.rest[None]), axis=1)))
    return Found(controls, (Follow(places[nearest], root, scale, A, "first"),))


def middle(points: Floats) -> Floats:
    """(3,) the mean of the half of the points that is nearest to their median: stray ones do not count."""
    away = np.linalg.norm(points - np.median(points, axis=0), axis=1)
    mean: Floats = points[np.argsort(away)[: max(1, (len(points) + 1) // 2)]].mean(axis=0)
    return mean


# A motion's bones


def _from_bones(motion: Motion, feed: Feed, target: Shape, cage: Cage) -> Found:
    skeleton = motion.skeleton
    names = [name for j, name in enumerate(skeleton.names) if np.any(bone_vector(skeleton, j))]
    if not names:
        raise InputError("the motion's skeleton has no bones; give controls as a list of Control")
    fit = box_fit(feed.rest, target.points)
    start, end = (joint_tracks(motion, names, rest=feed.pose, along=along) for along in (0.0, 1.0))
    a, b = (fit(np.array([track.rest for track in tracks.values()])) for tracks in (start, end))
    label = nearest_segment(target.points, a, b)
    tracks = list(joint_tracks(motion, names, rest=feed.pose, along=0.5).values())
    root = joint_tracks(motion, skeleton.names[0], rest=feed.pose)[skeleton.names[0]]
    return _placed(tracks, [target.points[label == k] for k in range(len(tracks))], fit, cage, root)


def nearest_segment(points: Floats, a: Floats, b: Floats) -> Ints:
    """(n,) which of the segments from a (k, 3) to b (k, 3) is nearest to each point."""
    best, label = np.full(len(points), np.inf), np.zeros(len(points), dtype=np.int64)
    for k, (p, q) in enumerate(zip(a, b, strict=True)):
        along = np.clip((points - p) @ (q - p) / max(float((q - p) @ (q - p)), 1e-300), 0, 1)
        away = np.linalg.norm(points - p - along[:, None] * (q - p), axis=1)
        label[away < best] = k
        best = np.minimum(best, away)
    return label
