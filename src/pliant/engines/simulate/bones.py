"""A skeleton's bones inside a body: which there are, and the frames that a pose gives them.

A bone runs from a joint to a child of it, or to its end, and is carried by the joint it starts from. A joint without
children or an end, as rigs have at heads and hands, gets a bone that runs on inside the body. Bones that start outside
the surface (a rig's root on the ground, controls) are left out, with a warning.

A posed bone lies between its joints' new places A, B, so joints may move as well as turn; its rotation is

    q_b = (the shortest turn from Δ_j d to B - A) Δ_j,     Δ_j = the joint's turn since rest, d the bone at rest.

q and -q are one rotation but blend differently, so each Δ_j takes the sign that is nearer to its parent's: along the
skeleton rotations change without a jump, also past 180° in the sum; a single joint must stay below that.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pliant.core import rotations
from pliant.core.errors import InputError, PliantWarning
from pliant.core.skeleton import Skeleton, by_depth, forward_kinematics
from pliant.core.topology import Floats, Ints
from pliant.core.values import Value, locked
from pliant.geometry.segments import nearest_segment
from pliant.geometry.spatial import SurfaceTree

SHORT = 1e-3
"""Length of a bone, over the diagonal, below which two joints are at one place."""
NEAR = 0.01
"""How far outside, over the diagonal, a joint may be and still count as inside: modelled by eye, on the skin."""
REACH = 0.8
"""Share of the way to the surface that the bone of a joint without children runs on."""
SIZES = (0.1, 4.0)
"""Size of a skeleton over that of its mesh beyond which it is made for another scale."""


@dataclass(frozen=True, eq=False)
class Bones(Value):
    """Bones at rest, in the world."""

    skeleton: Skeleton
    joint: Ints
    """(b,) the joint that carries each bone and that it starts from."""
    child: Ints
    """(b,) the joint that it ends at, -1 if none is there."""
    tip: Floats
    """(b, 3) its end in the frame of its joint, at rest."""
    heads: Floats
    """(b, 3) where it starts."""
    tails: Floats
    """(b, 3) where it ends."""

    def __len__(self) -> int:
        return len(self.joint)

    @property
    def names(self) -> tuple[str, ...]:
        """ "elbow to wrist"."""
        joints = self.skeleton.names
        ends = [joints[c] if c >= 0 else "its end" for c in self.child]
        return tuple(f"{joints[j]} to {end}" for j, end in zip(self.joint, ends, strict=True))

    @property
    def meeting(self) -> list[Ints]:
        """For each joint, the bones that meet there."""
        return [np.flatnonzero((self.joint == j) | (self.child == j)) for j in range(len(self.skeleton))]

    @cached_property
    def _unturned(self) -> Floats:
        """(j, 4) the inverse of each joint's rotation at rest, in the world."""
        return rotations.inverse(self.skeleton.rest_world[1])

    def chosen(self, which: Ints) -> Bones:
        """Some of them."""
        rows = (self.joint, self.child, self.tip, self.heads, self.tails)
        return Bones(self.skeleton, *(locked(row[which]) for row in rows))

    def posed(self, turns: Floats, places: Floats) -> Frames:
        """Bones for local rotations (f, j, 4) and translations (f, j, 3) of the joints."""
        spot, turned = forward_kinematics(self.skeleton.parents, turns, places)
        moved = rotations.multiply(turned, self._unturned)
        moved = _continuous(moved, self.skeleton.parents)[:, self.joint]
        heads = spot[:, self.joint]
        tails = heads + rotations.rotate(turned[:, self.joint], self.tip)
        followed = np.flatnonzero(self.child >= 0)
        tails[:, followed] = spot[:, self.child[followed]]
        straight = rotations.rotate(moved, self.tails - self.heads)
        return Frames(heads, tails, rotations.multiply(rotations.between(straight, tails - heads), moved))


@dataclass(frozen=True, eq=False)
class Frames:
    """Posed bones, for some frames f."""

    heads: Floats
    """(f, b, 3)"""
    tails: Floats
    """(f, b, 3)"""
    turns: Floats
    """(f, b, 4) rotation since rest, signs consistent along the skeleton."""


def _continuous(turns: Floats, parents: Ints) -> Floats:
    """Of each joint's quaternion (f, j, 4) and its opposite, the one nearer to its parent's; a root's, to the first."""
    out = turns.copy()
    out[:, 0] = rotations.shortest(out[:, 0])
    for at in by_depth(parents):
        others = at[at > 0]
        out[:, others] = rotations.align_signs(out[:, others], out[:, np.maximum(parents[others], 0)])
    return out


def find_bones(skeleton: Skeleton, tree: SurfaceTree) -> Bones:
    """The bones of a skeleton inside a surface; those that start outside are left out, with a warning."""
    places, turns = skeleton.rest_pose().world()
    _check_scale(places, tree)
    inside = tree.signed_distance(places) < NEAR * tree.diagonal
    rows = [
        (j, child, skeleton.offsets[child])
        for child, j in enumerate(skeleton.parents)
        if j >= 0 and np.linalg.norm(skeleton.offsets[child]) > SHORT * tree.diagonal
    ]
    rows += [(j, -1, end) for j, end in skeleton.ends.items() if np.linalg.norm(end) > SHORT * tree.diagonal]
    leaves = set(range(len(skeleton))) - set(skeleton.parents.tolist()) - set(skeleton.ends)
    ends = [(places[j], places[j] + rotations.rotate(turns[j], tip)) for j, _, tip in rows if inside[j]]
    ways = _flesh_ways(places, [j for j in sorted(leaves) if inside[j]], np.reshape(ends, (-1, 2, 3)), tree)
    run_on = [(j, -1, _run_on(skeleton, j, places, turns, tree, way)) for j, way in ways.items()]
    rows += [row for row in run_on if np.linalg.norm(row[2]) > SHORT * tree.diagonal]
    joint, child = np.array([row[:2] for row in rows], dtype=np.int64).reshape(-1, 2).T
    tip = np.array([row[2] for row in rows], dtype=np.float64).reshape(-1, 3)
    tails = places[joint] + rotations.rotate(turns[joint], tip)
    every = Bones(skeleton, locked(joint), locked(child), locked(tip), locked(places[joint]), locked(tails))
    kept = np.flatnonzero(inside[joint])
    _say_left_out(every, kept)
    return every.chosen(kept)


def _check_scale(places: Floats, tree: SurfaceTree) -> None:
    size = float(np.linalg.norm(np.ptp(places, axis=0)))
    if len(places) > 1 and not SIZES[0] < size / tree.diagonal < SIZES[1]:
        raise InputError(
            f"the skeleton is {size:.3g} across and the mesh {tree.diagonal:.3g}; "
            "expected about the same: scale one of them",
            argument="skeleton",
        )


def _say_left_out(bones: Bones, kept: Ints) -> None:
    out = [name for k, name in enumerate(bones.names) if k not in set(kept.tolist())]
    if len(kept) < 0.5 * len(bones) or not len(kept):
        raise InputError(
            f"{len(out)} of {len(bones)} bones start outside the mesh, such as {out[0] if out else 'all'}; "
            "expected a skeleton inside it: move or scale it",
            argument="skeleton",
        )
    if out:
        warnings.warn(f"bones that start outside the mesh are left out: {', '.join(out)}", PliantWarning, stacklevel=3)


def _flesh_ways(places: Floats, leaves: Sequence[int], known: Floats, tree: SurfaceTree) -> dict[int, Floats]:
    """For joints without children, the way (3,) to the middle of the surface that is nearer to them than to any bone.

    known: (b, 2, 3) ends of the bones. Rigs of feet and heads seldom point there: a foot may hang on the root.
    """
    corners = tree.points[tree.triangles]
    sides = corners[:, 1:] - corners[:, :1]
    middles, area = corners.mean(axis=1), np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)
    _, nearest = nearest_segment(middles, known[:, 0], known[:, 1])
    apart = np.array([np.linalg.norm(middles - places[j], axis=1) for j in leaves]).reshape(len(leaves), len(middles))
    nearest = np.minimum(nearest, apart.min(axis=0, initial=np.inf)) * (1 + 1e-9)
    ways = {}
    for j, distance in zip(leaves, apart, strict=True):
        share = area * (distance <= nearest)
        ways[j] = share @ middles / max(float(share.sum()), 1e-300) - places[j] if share.any() else np.zeros(3)
    return ways


def _run_on(skeleton: Skeleton, joint: int, places: Floats, turns: Floats, tree: SurfaceTree, flesh: Floats) -> Floats:
    """(3,) where the bone of a joint without children ends, in its frame: as far again as the middle of its flesh.

    Where that is no way, on along the bone before it; without one, along the one of its own axes that leads farthest.
    It ends inside.
    """
    parent = skeleton.parents[joint]
    before = places[joint] - places[parent] if parent >= 0 else np.zeros(3)
    farthest = 2 * float(np.linalg.norm(flesh))
    if farthest <= 2 * SHORT * tree.diagonal:
        farthest, flesh = np.inf, before
    ways = np.round(flesh[None] / max(float(np.linalg.norm(flesh)), 1e-300), 9)  # straight stays straight in all units
    if np.linalg.norm(flesh) <= SHORT * tree.diagonal:
        ways = rotations.rotate(turns[joint], np.concatenate([np.eye(3), -np.eye(3)]))
    start = np.repeat(places[joint][None], len(ways), axis=0)
    share, _ = tree.first_hit(start, start + tree.diagonal * ways, leaving=True)
    length = np.minimum(np.where(np.isfinite(share), share, 0) * tree.diagonal * REACH, farthest)
    best = int(np.argmax(length))
    return rotations.rotate(rotations.inverse(turns[joint]), length[best] * ways[best])
