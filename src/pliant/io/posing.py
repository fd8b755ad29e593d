"""Posing what a scene holds: points that targets and joints move, and joints as skeletons and motions.

v = p + Σ_t w_t d_t          morphed
x = Σ_j w_j A_j v            skinned; A_j (3, 4) is what joint j does to a point of the mesh
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pliant.core import rotations
from pliant.core.shapes import World
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Floats, Ints

FLAT_FRAME = 1e-6
"""Least over largest size of a joint's frame at rest, below which what is bound to it stays as it is."""


def morphed(positions: Floats, targets: Sequence[Floats | None], weights: Floats) -> Floats:
    """(frames, n, 3) for weights (frames, targets), or (1, n, 3) if no target moves."""
    moving = [(k, d) for k, d in enumerate(targets) if d is not None and weights[:, k].any()]
    if not moving:
        return positions[None]
    from scipy.sparse import csr_matrix

    deltas = np.stack([delta for _, delta in moving]).reshape(len(moving), -1)
    moved = csr_matrix(weights[:, [k for k, _ in moving]]) @ deltas
    return positions + np.asarray(moved).reshape(len(weights), -1, 3)


def blended(influence: Any, joints: Floats) -> Floats:
    """(n, 3, 4) each vertex's blend of transforms (j, 4, 4), by its weights, sparse (n, j)."""
    return np.asarray(influence @ joints[:, :3].reshape(-1, 12)).reshape(-1, 3, 4)


def skinned(shape: Floats, influence: Any, joints: Floats) -> Floats:
    """(frames, n, 3) for a shape (frames or 1, n, 3), weights (n, j), sparse, and transforms (frames, j, 4, 4)."""
    result = np.empty((len(joints), *shape.shape[1:]))
    for k, frame in enumerate(joints):
        A = blended(influence, frame)
        result[k] = np.einsum("nij,nj->ni", A[:, :, :3], shape[k % len(shape)]) + A[:, :, 3]
    return result


def parent_joints(joints: Sequence[int], parents: Ints, order: Ints) -> Ints:
    """(j,) for each of some nodes the nearest above it among them, -1 for none; order: of all nodes, parents first."""
    number = {int(node): k for k, node in enumerate(joints)}
    nearest = np.full(len(parents), -1, dtype=np.int64)
    for node in order:
        above = parents[node]
        nearest[node] = -1 if above < 0 else number.get(int(above), nearest[above])
    return nearest[np.asarray(joints, dtype=np.int64)]


def rest_skeleton(names: Sequence[str], parents: Ints, frames: Floats, world: World) -> Skeleton:
    """The skeleton of joints that stand at (j, 4, 4), in a file's axes and units."""
    quaternions, positions = _local_frames(frames[None], parents)
    return Skeleton(tuple(names), parents, positions[0], quaternions[0], world=world)


def joint_motion(skeleton: Skeleton, rest: Floats, world: Floats, fps: float, name: str) -> Motion:
    """The motion of joints whose transforms are (frames, j, 4, 4), and at rest (j, 4, 4)."""
    moved = Motion(skeleton, *_local_frames(world, skeleton.parents), fps, name=name)
    rotated = rotations.multiply(moved.world()[1], rotations.inverse(skeleton.rest_world[1]))
    size = np.linalg.svd(rest[:, :3, :3], compute_uv=False)
    known = size[:, 2] > FLAT_FRAME * size[:, 0]
    inverse = np.linalg.inv(np.where(known[:, None, None], rest[:, :3, :3], np.eye(3)))
    scales = np.swapaxes(rotations.matrix(rotated), -1, -2) @ world[..., :3, :3] @ inverse
    scales[:, ~known] = np.eye(3)
    scaled = replace(moved, scales=scales)
    return scaled if scaled.scaled_joints else moved


def _local_frames(world: Floats, parents: Ints) -> tuple[Floats, Floats]:
    """(frames, j, 4) rotations and (frames, j, 3) translations against each joint's parent joint."""
    linear, positions = world[..., :3, :3], world[..., :3, 3]
    mirrored = np.linalg.det(linear)[..., None, None] < 0
    quaternions = rotations.quaternion(rotations.polar(np.where(mirrored, linear * [-1.0, 1.0, 1.0], linear)))
    has_parent = parents >= 0
    above = np.where(has_parent[:, None], quaternions[:, parents], rotations.IDENTITY)
    base = np.where(has_parent[:, None], positions[:, parents], 0.0)
    back = rotations.inverse(above)
    return rotations.multiply(back, quaternions), rotations.rotate(back, positions - base)
