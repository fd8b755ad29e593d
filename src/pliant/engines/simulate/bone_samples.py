"""Sample points of the bones: where they hold the flesh, and the boundary values of the rotation diffusion.

A bone is a rigid core along its axis. Its radius is `BONE_RADIUS` of the distance to the surface. The core ends before
a joint: on the inside of a bend by θ, flesh at distance r from the axis is shortened by r θ, so the bend needs a length
of about r on either side of the joint (`JOINT_CLEARANCE`). The joint itself is a ball of the same radius, with the mean
rotation of the bones that meet there.

Cores and balls depend on the skeleton and the surface alone. Their surfaces are sampled about as densely as the nodes
are, and each sample stands for an area. On the posed bone from A to B, a sample has the position
``x_s = (1 - t) A + t B + q_s ρ`` and the rotation ``q_s = Σ_b blend_sb q_b``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.topology import Floats, Ints
from pliant.core.values import Value, locked
from pliant.engines.simulate.bones import Bones, Frames
from pliant.engines.simulate.diffusion import RotationWeights
from pliant.geometry.spatial import SurfaceTree

BONE_RADIUS = 0.3
"""Radius of a bone over its distance to the surface."""
JOINT_CLEARANCE = 1.5
"""Length without a core at a joint, over the joint's distance to the surface."""
LARGEST_CLEARANCE = 0.35
"""The same, at most, over the length of the bone."""
SAMPLE_DISTANCE = 0.6
"""Distance between samples, at most, over that between nodes."""
RING_POINTS = 3
"""Samples of a ring around a bone, at least: three integrate products of linear functions exactly."""
TETRAHEDRON = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / 3**0.5
"""Samples of a joint's ball, at least: these do the same on a sphere."""
THINNEST = 1e-4
"""Radius of a bone, over the diagonal, below which it holds nothing."""


@dataclass(frozen=True, eq=False)
class BoneSamples(Value):
    """Points on the surfaces of the bones at rest, and how they move."""

    bones: Bones
    points: Floats
    """(s, 3)"""
    bone: Ints
    """(s,) the bone that carries each."""
    along: Floats
    """(s,) position along the bone: t, from 0 to 1."""
    across: Floats
    """(s, 3) from the axis to the sample, at rest: ρ."""
    joint: Ints
    """(s,) the joint whose ball the sample is on, -1 if it is on a bone."""
    areas: Floats
    """(s,) the area that each stands for."""
    radii: Floats
    """(s,) radius of the bone there."""
    skin: Any = None
    """Sparse (s, b): weights by which samples move as linear blend skinning does; rows of others are empty."""
    scaled: NDArray[np.bool_] | None = None
    """(s,) which move as what their joint scales, too; None: none of them."""

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def blend(self) -> Any:
        """Sparse (s, b): the share of each bone in the rotation of each sample; rows sum to 1."""
        from scipy.sparse import csr_array

        meeting, skinned = self.bones.meeting, self.skinned
        shares = [np.array([b]) if j < 0 else meeting[j] for b, j in zip(self.bone, self.joint, strict=True)]
        shares = [share[: 0 if skinned[k] else None] for k, share in enumerate(shares)]
        counts = np.array([len(share) for share in shares], dtype=np.int64)
        columns = np.concatenate([np.zeros(0, dtype=np.int64), *shares])
        start = np.concatenate([[0], np.cumsum(counts)])
        rigid = csr_array((1 / np.repeat(counts, counts), columns, start), shape=(len(self), len(self.bones)))
        return rigid if self.skin is None else rigid + self.skin

    @cached_property
    def skinned(self) -> NDArray[np.bool_]:
        """(s,) which move as linear blend skinning does."""
        return np.zeros(len(self), dtype=bool) if self.skin is None else np.diff(self.skin.indptr) > 0

    @cached_property
    def _weights(self) -> RotationWeights:
        return RotationWeights.of(self.blend.toarray())

    def chosen(self, which: Ints) -> BoneSamples:
        """Some of them."""
        columns: dict[str, Any] = {name: locked(getattr(self, name)[which]) for name in COLUMNS}
        skin, scaled = (None if part is None else part[which] for part in (self.skin, self.scaled))
        return replace(self, **columns, skin=skin, scaled=scaled)

    def with_points(
        self, points: Floats, bone: Ints, areas: Floats, radii: Floats, scaled: NDArray[np.bool_] | None = None
    ) -> BoneSamples:
        """These, and then points (k, 3) that move rigidly with bones (k,), or as what their joints scale."""
        from scipy.sparse import csr_array, vstack

        across, none = points - self.bones.heads[bone], csr_array((len(points), len(self.bones)))
        more = points, bone, np.zeros(len(points)), across, np.full(len(points), -1), areas, radii
        joined: dict[str, Any] = {
            name: locked(np.concatenate([getattr(self, name), column]))
            for name, column in zip(COLUMNS, more, strict=True)
        }
        skin = None if self.skin is None else vstack([self.skin, none]).tocsr()
        before = None if scaled is None else np.concatenate([np.zeros(len(self), dtype=bool), scaled])
        return replace(self, **joined, skin=skin, scaled=before)

    def posed(self, frames: Frames) -> Floats:
        """(f, s, 3) where the samples are on posed bones."""
        t = self.along[:, None]
        axis = (1 - t) * frames.heads[:, self.bone] + t * frames.tails[:, self.bone]
        quaternions = np.stack([self._weights.quaternions(frame) for frame in frames.quaternions])
        across = self.across
        if frames.scales is not None and self.scaled is not None:
            scales = np.where(self.scaled[:, None, None], frames.scales[:, self.bone], np.eye(3))
            across = np.einsum("fsij,sj->fsi", scales, across)
        placed = axis + rotations.rotate(quaternions, across)
        if self.skinned.any():
            moves = [frames.transforms(self.bones, k) for k in range(len(placed))]
            blended = np.stack([self._weights.carried(self.points, *move) for move in moves])
            placed[:, self.skinned] = blended[:, self.skinned]
        return placed


COLUMNS = ("points", "bone", "along", "across", "joint", "areas", "radii")
"""Fields of samples that have one row for each."""
SampleRows = list[tuple[float, Floats, float, float]]
"""Samples of a bone: t along it, ρ, area and radius."""


def sample_bones(bones: Bones, tree: SurfaceTree, spacing: float) -> BoneSamples:
    """Sample bones inside a surface about as densely as the nodes are, which are `spacing` apart."""
    step = SAMPLE_DISTANCE * spacing
    rows = [(b, -1, *row) for b in range(len(bones)) for row in _core(bones, b, tree, step)]
    for j, meeting in enumerate(bones.meeting):
        if len(meeting) > 1:
            b = int(meeting[0])
            start = bool(bones.joint[b] == j)
            rows += [(b, j, *row) for row in _ball(bones.heads[b] if start else bones.tails[b], start, tree, step)]
    bone, joint = (np.array([row[k] for row in rows], dtype=np.int64) for k in (0, 1))
    along, areas, radii = (np.array([row[k] for row in rows], dtype=np.float64) for k in (2, 4, 5))
    across = np.array([row[3] for row in rows]).reshape(-1, 3)
    points = (1 - along[:, None]) * bones.heads[bone] + along[:, None] * bones.tails[bone] + across
    kept = np.flatnonzero((radii > THINNEST * tree.diagonal) & tree.inside(points))
    if len(kept) < 4:
        raise InputError(
            "fewer than four points of the skeleton are inside the mesh; expected bones that hold it",
            argument="skeleton",
        )
    values = points, bone, along, across, joint, areas, radii
    return BoneSamples(bones, *(locked(np.ascontiguousarray(a[kept])) for a in values))


def _core(bones: Bones, b: int, tree: SurfaceTree, step: float) -> SampleRows:
    """Samples of a bone's core, at most `step` apart: rings around it, and discs at its ends."""
    head, tail = bones.heads[b], bones.tails[b]
    length = float(np.linalg.norm(tail - head))
    first, last = _extent(bones, b, tree, length)
    count = max(1, int(np.ceil((last - first) / step)))
    heights = first + (np.arange(count) + 0.5) / count * (last - first)
    heights = np.concatenate([heights, [first, last]])
    axis = head + heights[:, None] / length * (tail - head)
    radii = BONE_RADIUS * np.where(tree.inside(axis), tree.closest(axis).distance, 0)
    rows: SampleRows = []
    for k, (height, radius) in enumerate(zip(heights, radii, strict=True)):
        area = 2 * np.pi * radius * (last - first) / count
        rings = [(radius, area)] if k < count else _disc(radius, step)
        for r, size in rings:
            ring = _ring(tail - head, r, step, 0.5 * (k % 2))
            rows += [(height / length, rho, size / len(ring), radius) for rho in ring]
    return rows


def _extent(bones: Bones, b: int, tree: SurfaceTree, length: float) -> tuple[float, float]:
    """Where a bone's core begins and ends, from its head."""
    meeting, ends = bones.meeting, tree.closest(np.stack([bones.heads[b], bones.tails[b]])).distance
    bends = [len(meeting[bones.joint[b]]) > 1, bones.child[b] >= 0 and len(meeting[bones.child[b]]) > 1]
    clear = np.where(bends, np.minimum(JOINT_CLEARANCE * ends, LARGEST_CLEARANCE * length), 0.0)
    return float(clear[0]), float(length - clear[1])


def _disc(radius: float, step: float) -> list[tuple[float, float]]:
    """Radius and area of the rings that a disc is divided into: none if it is smaller than `step`."""
    edges = np.linspace(0, radius, 1 + int(radius / step))
    return [((a + b) / 2, np.pi * (b**2 - a**2)) for a, b in pairwise(edges)]


def _ring(axis: Floats, radius: float, step: float, phase: float) -> Floats:
    """(k, 3) points on a circle about an axis through the origin, at most `step` apart; phase: over their distance."""
    side = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    side /= np.linalg.norm(side)
    up = np.cross(axis / np.linalg.norm(axis), side)
    count = max(RING_POINTS, int(np.ceil(2 * np.pi * radius / step)))
    angles = 2 * np.pi * (np.arange(count) + phase) / count
    return radius * (np.cos(angles)[:, None] * side + np.sin(angles)[:, None] * up)


def _ball(centre: Floats, start: bool, tree: SurfaceTree, step: float) -> SampleRows:
    """Samples of the ball in a joint, at most about `step` apart, on a spiral; start: whether its bone starts there."""
    radius = BONE_RADIUS * float(tree.closest(centre[None]).distance[0]) if tree.inside(centre[None])[0] else 0.0
    count = int(np.ceil(4 * np.pi * (radius / step) ** 2))
    z = 1 - (2 * np.arange(count) + 1) / max(count, 1)
    angle, r = np.pi * (1 + 5**0.5) * np.arange(count), np.sqrt(1 - z**2)
    spiral = np.stack([r * np.cos(angle), r * np.sin(angle), z], axis=1)
    points = radius * (spiral if count > 2 * len(TETRAHEDRON) else TETRAHEDRON)
    return [(0.0 if start else 1.0, rho, 4 * np.pi * radius**2 / len(points), radius) for rho in points]
