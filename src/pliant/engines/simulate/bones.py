"""A skeleton's bones inside a body: which there are, and the frames that a pose gives them.

A bone runs from a joint to one of its children, or to the joint's end, and moves with the joint it starts from. A leaf
joint without an end, as rigs have at heads and hands, gets a bone that extends into the body. If the file's skin says
which joints hold flesh, other joints have no bones. A bone counts if it starts inside the surface, or runs inside for
at least half of its length. The others (a root on the ground, toes, controls) hold flesh by `anchors`, or nothing.

A posed bone lies between the new positions A, B of its joints, so joints may translate as well as rotate. Its rotation
is

    q_b = (the shortest rotation from Δ_j d to B - A) Δ_j,     Δ_j: the joint's rotation from rest, d: the bone at rest.

q and -q are the same rotation but blend differently, so each Δ_j takes the sign that is nearer to that of the joint
beside it: its parent, or the one that its flesh goes on into (the foot of a rig may hang on the root, not on the leg).
Rotations are then continuous along the flesh, even if they add up to more than 180°; a single joint must stay below
that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.skeleton import Skeleton, forward_kinematics
from pliant.core.topology import Floats, Ints
from pliant.core.values import Value, locked
from pliant.geometry.segments import nearest_segment
from pliant.geometry.spatial import SurfaceTree

LEAST_BONE = 1e-3
"""Length of a bone, over the diagonal, below which two joints coincide."""
NEAR = 0.01
"""Distance outside the surface, over the diagonal, up to which a joint counts as inside: rigs are placed by eye."""
LEAF_REACH = 0.8
"""Length of a leaf joint's bone over the distance to the surface."""
SKELETON_SIZES = (0.1, 4.0)
"""Range of the skeleton's size over the mesh's; outside it, they have different units."""


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
    beside: Ints | None = None
    """(j,) the joint whose rotation each joint's goes on from, -1 at the first ones; None: its parent."""
    carriers: int = 0
    """How many, the last ones, move as joints do and are no bones of the body."""

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
        joint, child = (ends[: len(self) - self.carriers] for ends in (self.joint, self.child))
        return [np.flatnonzero((joint == j) | (child == j)) for j in range(len(self.skeleton))]

    @cached_property
    def _rest_inverse(self) -> Floats:
        """(j, 4) the inverse of each joint's rotation at rest, in the world."""
        return rotations.inverse(self.skeleton.rest_world[1])

    def chosen(self, which: Ints) -> Bones:
        """Some of them."""
        joint, child, tip = self.joint[which], self.child[which], self.tip[which]
        heads, tails = self.heads[which], self.tails[which]
        return replace(
            self, joint=locked(joint), child=locked(child), tip=locked(tip), heads=locked(heads), tails=locked(tails)
        )

    def with_carriers(self, joints: Ints, length: float) -> Bones:
        """These, and then for each of some joints one that moves as the joint does, whatever its children do."""
        positions, quaternions = self.skeleton.rest_world
        tip = np.tile([length, 0.0, 0.0], (len(joints), 1))
        heads = positions[joints]
        tails = heads + rotations.rotate(quaternions[joints], tip)
        return replace(
            self,
            joint=locked(np.concatenate([self.joint, joints])),
            child=locked(np.concatenate([self.child, np.full(len(joints), -1)])),
            tip=locked(np.concatenate([self.tip, tip])),
            heads=locked(np.concatenate([self.heads, heads])),
            tails=locked(np.concatenate([self.tails, tails])),
            carriers=len(joints),
        )

    def posed(self, quaternions: Floats, translations: Floats, scales: Floats | None = None) -> Frames:
        """Bones for local rotations (f, j, 4), translations (f, j, 3) and scales (f, j, 3, 3) of the joints."""
        spot, world = forward_kinematics(self.skeleton.parents, quaternions, translations)
        moved = rotations.multiply(world, self._rest_inverse)
        beside = self.skeleton.parents if self.beside is None else self.beside
        moved = _continuous(moved, beside)[:, self.joint]
        heads = spot[:, self.joint]
        tails = heads + rotations.rotate(world[:, self.joint], self.tip)
        followed = np.flatnonzero(self.child >= 0)
        tails[:, followed] = spot[:, self.child[followed]]
        straight = rotations.rotate(moved, self.tails - self.heads)
        q = rotations.multiply(rotations.between(straight, tails - heads), moved)
        return Frames(heads, tails, q, quaternions, None if scales is None else scales[:, self.joint])


@dataclass(frozen=True, eq=False)
class Frames:
    """Posed bones, for some frames f."""

    heads: Floats
    """(f, b, 3)"""
    tails: Floats
    """(f, b, 3)"""
    quaternions: Floats
    """(f, b, 4) rotation since rest, signs consistent along the skeleton."""
    joints: Floats
    """(f, j, 4) local rotations of the joints."""
    scales: Floats | None = None
    """(f, b, 3, 3) how the joints scale what the skin binds to them; None if they do not."""

    def chosen(self, which: slice) -> Frames:
        """Some of the frames."""
        scales = None if self.scales is None else self.scales[which]
        return Frames(self.heads[which], self.tails[which], self.quaternions[which], self.joints[which], scales)

    def transforms(self, bones: Bones, frame: int) -> tuple[Floats, Floats]:
        """(b, 9) rotations and (b, 3) translations that move the flesh of bones from rest to a frame."""
        matrices = rotations.matrix(self.quaternions[frame])
        return matrices.reshape(-1, 9), self.heads[frame] - np.einsum("bij,bj->bi", matrices, bones.heads)


def _continuous(quaternions: Floats, beside: Ints) -> Floats:
    """Of each joint's quaternion (f, j, 4) and its opposite, the one nearer to that of the joint beside it; the first
    one's is the shortest, and others that have none beside them go by it."""
    out, first = quaternions.copy(), int(np.flatnonzero(beside < 0)[0])
    out[:, first] = rotations.shortest(out[:, first])
    before = np.where(beside < 0, first, beside)
    done = np.arange(len(beside)) == first
    while not done.all():
        at = np.flatnonzero(~done & done[before])
        out[:, at] = rotations.align_signs(out[:, at], out[:, before[at]])
        done[at] = True
    return out


def rest_segments(skeleton: Skeleton) -> tuple[Floats, Floats, Ints]:
    """(k, 3) starts and (k, 3) stops of the bones at rest, and (k,) their joints; a leaf without an end is a point.

    Leaves come first: what lies beyond a joint without bones is its own, not its parent's.
    """
    joints, quaternions = skeleton.rest_world
    leaves = np.setdiff1d(np.arange(len(skeleton)), skeleton.bones[:, 0])
    ends = np.array(joints)
    for joint, end in skeleton.ends.items():
        ends[joint] = joints[joint] + rotations.rotate(quaternions[joint], end)
    starts, stops = skeleton.bones[::-1].T
    return (
        np.concatenate([joints[leaves[::-1]], joints[starts]]),
        np.concatenate([ends[leaves[::-1]], joints[stops]]),
        np.concatenate([leaves[::-1], starts]),
    )


def find_bones(
    skeleton: Skeleton, tree: SurfaceTree, holding: Ints | None = None, middles: Floats | None = None
) -> Bones:
    """The bones of a skeleton inside a surface. holding: joints that hold flesh, if that is known; middles: (joints, 3)
    of the surface that they hold."""
    positions, quaternions = skeleton.rest_pose().world()
    _check_scale(skeleton, tree)
    inside = tree.signed_distance(positions) < NEAR * tree.diagonal
    rows = [
        (j, child, skeleton.offsets[child])
        for child, j in enumerate(skeleton.parents)
        if j >= 0 and np.linalg.norm(skeleton.offsets[child]) > LEAST_BONE * tree.diagonal
    ]
    rows += [(j, -1, end) for j, end in skeleton.ends.items() if np.linalg.norm(end) > LEAST_BONE * tree.diagonal]
    tips = set(range(len(skeleton))) - set(skeleton.parents.tolist()) - set(skeleton.ends)
    if holding is not None:
        rows, tips = [row for row in rows if row[0] in holding], tips & set(holding.tolist())
    ends = [(positions[j], positions[j] + rotations.rotate(quaternions[j], tip)) for j, _, tip in rows if inside[j]]
    leaves = [j for j in sorted(tips) if inside[j]]
    if middles is None:
        directions = _leaf_directions(positions, leaves, np.reshape(ends, (-1, 2, 3)), tree)
    else:
        directions = {j: middles[j] - positions[j] for j in leaves}
    extended = [
        (j, -1, _leaf_tip(skeleton, j, positions, quaternions, tree, direction)) for j, direction in directions.items()
    ]
    rows += [row for row in extended if np.linalg.norm(row[2]) > LEAST_BONE * tree.diagonal]
    joint, child = np.array([row[:2] for row in rows], dtype=np.int64).reshape(-1, 2).T
    tip = np.array([row[2] for row in rows], dtype=np.float64).reshape(-1, 3)
    tails = positions[joint] + rotations.rotate(quaternions[joint], tip)
    every = Bones(skeleton, locked(joint), locked(child), locked(tip), locked(positions[joint]), locked(tails))
    kept = np.flatnonzero(inside[joint] | _runs_inside(every, tree))
    if holding is None:
        _check_inside(every, kept)
    return every.chosen(kept)


def _runs_inside(bones: Bones, tree: SurfaceTree) -> NDArray[np.bool_]:
    """(b,) which bones are inside a surface for at least half of their length."""
    t = (np.arange(8)[:, None, None] + 0.5) / 8
    inside = tree.inside(((1 - t) * bones.heads + t * bones.tails).reshape(-1, 3))
    return np.asarray(inside.reshape(8, -1).mean(axis=0) >= 0.5)


def _check_scale(skeleton: Skeleton, tree: SurfaceTree) -> None:
    size = float(np.linalg.norm(np.ptp(np.concatenate(rest_segments(skeleton)[:2]), axis=0)))
    if (len(skeleton) > 1 or skeleton.ends) and not SKELETON_SIZES[0] < size / tree.diagonal < SKELETON_SIZES[1]:
        raise InputError(
            f"the skeleton is {size:.3g} across and the mesh {tree.diagonal:.3g}; "
            "expected about the same: scale one of them",
            argument="skeleton",
        )


def _check_inside(bones: Bones, kept: Ints) -> None:
    out = [name for k, name in enumerate(bones.names) if k not in set(kept.tolist())]
    if len(kept) < 0.5 * len(bones) or not len(kept):
        raise InputError(
            f"{len(out)} of {len(bones)} bones start outside the mesh, such as {out[0] if out else 'all'}; "
            "expected a skeleton inside it: move or scale it",
            argument="skeleton",
        )


def _leaf_directions(positions: Floats, leaves: Sequence[int], known: Floats, tree: SurfaceTree) -> dict[int, Floats]:
    """For leaf joints, the vector (3,) to the centroid of the surface that is nearer to them than to any bone.

    known: (b, 2, 3) ends of the bones. The parent's direction seldom points there: a foot may be a child of the root.
    """
    corners = tree.points[tree.triangles]
    sides = corners[:, 1:] - corners[:, :1]
    middles, area = corners.mean(axis=1), np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)
    _, nearest = nearest_segment(middles, known[:, 0], known[:, 1])
    apart = np.array([np.linalg.norm(middles - positions[j], axis=1) for j in leaves]).reshape(
        len(leaves), len(middles)
    )
    nearest = np.minimum(nearest, apart.min(axis=0, initial=np.inf)) * (1 + 1e-9)
    directions = {}
    for j, distance in zip(leaves, apart, strict=True):
        share = area * (distance <= nearest)
        directions[j] = share @ middles / max(float(share.sum()), 1e-300) - positions[j] if share.any() else np.zeros(3)
    return directions


def _leaf_tip(
    skeleton: Skeleton, joint: int, positions: Floats, quaternions: Floats, tree: SurfaceTree, towards: Floats
) -> Floats:
    """(3,) the end of a leaf joint's bone, in the joint's frame: at most twice `towards`, and inside the surface.

    If `towards` is zero, the bone continues that of the parent; without a parent, it follows the axis of the joint
    along which the surface is farthest.
    """
    parent = skeleton.parents[joint]
    before = positions[joint] - positions[parent] if parent >= 0 else np.zeros(3)
    farthest = 2 * float(np.linalg.norm(towards))
    if farthest <= 2 * LEAST_BONE * tree.diagonal:
        farthest, towards = np.inf, before
    directions = np.round(
        towards[None] / max(float(np.linalg.norm(towards)), 1e-300), 9
    )  # rounded so that units do not matter
    if np.linalg.norm(towards) <= LEAST_BONE * tree.diagonal:
        directions = rotations.rotate(quaternions[joint], np.concatenate([np.eye(3), -np.eye(3)]))
    start = np.repeat(positions[joint][None], len(directions), axis=0)
    share, _ = tree.first_hit(start, start + tree.diagonal * directions, leaving=True)
    length = np.minimum(np.where(np.isfinite(share), share, 0) * tree.diagonal * LEAF_REACH, farthest)
    best = int(np.argmax(length))
    return rotations.rotate(rotations.inverse(quaternions[joint]), length[best] * directions[best])
