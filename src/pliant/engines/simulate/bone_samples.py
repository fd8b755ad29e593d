"""Sample points of the bones: fixed nodes of the body, and the boundary values of the rotation diffusion.

If only its axis were fixed, a bone could spin in the flesh. So it is sampled in rings: points around the axis that
rotate with the bone, at `BONE_RADIUS` of the distance to the surface, like the cross-section of a real bone. There are
no rings near a joint: on the inside of a bend by θ, flesh at distance r from the axis is shortened by r θ, so the bend
needs a length of about r on either side of the joint (`JOINT_CLEARANCE`). The joint itself is one sample, with the mean
rotation of the bones that meet there.

The position of a sample is  x_s = (1 - t) A + t B + q_b ρ  on the posed bone from A to B, its rotation  Σ_b blend_sb
q_b.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.topology import Floats, Ints
from pliant.core.values import Value, locked
from pliant.engines.simulate.bones import Bones, Frames
from pliant.geometry.spatial import SurfaceTree

BONE_RADIUS = 0.3
"""Radius of a bone over its distance to the surface."""
JOINT_CLEARANCE = 1.2
"""Length without rings at a joint, over the joint's distance to the surface."""
LARGEST_CLEARANCE = 0.35
"""The same, at most, over the length of the bone."""
RING_POINTS = 3
"""Points of a ring."""


@dataclass(frozen=True, eq=False)
class BoneSamples(Value):
    """Points of the bones at rest, and how they move."""

    bones: Bones
    points: Floats
    """(s, 3)"""
    bone: Ints
    """(s,) the bone that carries each."""
    along: Floats
    """(s,) position along the bone: t, from 0 to 1."""
    across: Floats
    """(s, 3) from the axis to the sample, at rest: ρ."""

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def blend(self) -> Any:
        """Sparse (s, b): the share of each bone in the rotation of each sample; rows sum to 1."""
        from scipy.sparse import csr_array

        meeting = self.bones.meeting
        rows, columns, values = [], [], []
        for s, (b, t) in enumerate(zip(self.bone, self.along, strict=True)):
            joint = self.bones.joint[b] if t == 0 else self.bones.child[b] if t == 1 else -1
            share = meeting[joint] if joint >= 0 and not self.across[s].any() else np.array([b])
            rows += [s] * len(share)
            columns += share.tolist()
            values += [1 / len(share)] * len(share)
        return csr_array((values, (rows, columns)), shape=(len(self), len(self.bones)))

    def posed(self, frames: Frames) -> Floats:
        """(f, s, 3) where the samples are on posed bones."""
        t = self.along[:, None]
        axis = (1 - t) * frames.heads[:, self.bone] + t * frames.tails[:, self.bone]
        return axis + rotations.rotate(frames.quaternions[:, self.bone], self.across)


def sample_bones(bones: Bones, tree: SurfaceTree, spacing: float) -> BoneSamples:
    """Sample bones inside a surface about as densely as the nodes are, which are `spacing` apart."""
    rows: list[tuple[int, float, Floats]] = []
    for b in range(len(bones)):
        rows += [(b, t, across) for t, across in _rings(bones, b, tree, spacing)]
    for meeting, joint in zip(bones.meeting, range(len(bones.skeleton)), strict=True):
        if len(meeting) > 1:
            b = int(meeting[0])
            rows.append((b, 0.0 if bones.joint[b] == joint else 1.0, np.zeros(3)))
    bone = np.array([row[0] for row in rows], dtype=np.int64)
    along = np.array([row[1] for row in rows])
    across = np.array([row[2] for row in rows]).reshape(-1, 3)
    axis = (1 - along[:, None]) * bones.heads[bone] + along[:, None] * bones.tails[bone]
    points = axis + across
    inside = np.flatnonzero(tree.inside(points))
    kept = inside[_apart(points[inside], 0.3 * spacing)]
    if len(kept) < 4:
        raise InputError(
            "fewer than four points of the skeleton are inside the mesh; expected bones that hold it",
            argument="skeleton",
        )
    return BoneSamples(bones, *(locked(np.ascontiguousarray(a[kept])) for a in (points, bone, along, across)))


def _rings(bones: Bones, b: int, tree: SurfaceTree, spacing: float) -> list[tuple[float, Floats]]:
    """Parameter t along the bone and offset from its axis, for all samples of a bone."""
    head, tail = bones.heads[b], bones.tails[b]
    length = float(np.linalg.norm(tail - head))
    ends = tree.closest(np.stack([head, tail])).distance
    meeting = bones.meeting
    bends = [len(meeting[bones.joint[b]]) > 1, bones.child[b] >= 0 and len(meeting[bones.child[b]]) > 1]
    clear = np.where(bends, np.minimum(JOINT_CLEARANCE * ends, LARGEST_CLEARANCE * length), 0.0)
    count = max(2, 1 + int(np.ceil((length - clear.sum()) / spacing)))
    t = np.linspace(clear[0] / length, 1 - clear[1] / length, count)
    axis = head + t[:, None] * (tail - head)
    radius = np.where(tree.inside(axis), tree.closest(axis).distance, 0)
    rho = np.where(BONE_RADIUS * radius > 0.5 * spacing, BONE_RADIUS * radius, np.minimum(0.5 * spacing, 0.6 * radius))
    side, up = _across((tail - head) / length)
    out = []
    for k in range(count):
        angles = 2 * np.pi * (np.arange(RING_POINTS) + 0.5 * (k % 2)) / RING_POINTS
        ring = rho[k] * (np.cos(angles)[:, None] * side + np.sin(angles)[:, None] * up)
        out += [(float(t[k]), offset) for offset in ring]
    return out


def _across(axis: Floats) -> tuple[Floats, Floats]:
    """Two unit vectors orthogonal to a unit vector and to each other."""
    side = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    side /= np.linalg.norm(side)
    return side, np.cross(axis, side)


def _apart(points: Floats, distance: float) -> Ints:
    """Indices of points, chosen in order, that are at least `distance` from all points chosen before."""
    from scipy.spatial import cKDTree

    pairs = cKDTree(points).query_pairs(distance, output_type="ndarray")
    gone = np.zeros(len(points), dtype=bool)
    for first, second in pairs[np.lexsort(pairs.T[::-1])] if len(pairs) else ():
        if not gone[first]:
            gone[second] = True
    return np.flatnonzero(~gone)
