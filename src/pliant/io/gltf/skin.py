"""Writing skins: joints as nodes, their inverse bind matrices, the weights of vertices, and how the joints move.

The mesh is stored as ``q = (p - offset) / scale`` and the joints relative to the offset, below a node that adds it.
With W the world transform of a joint below that node,

    inverse bind = W_rest⁻¹ · scale          joint's part of a vertex = offset + W · inverse bind · q
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant.core import rotations
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Floats, Ints
from pliant.io.gltf.build import ARRAY_BUFFER, Builder

SET_SIZE = 4
"""Joints in one attribute of a vertex."""
SHARES = 65535
"""That a vertex has, in all."""


def add_joints(builder: Builder, skeleton: Skeleton, offset: Floats, scale: float) -> tuple[list[int], list[int], int]:
    """Nodes of the roots and of all joints, and the number of the skin."""
    first = len(builder.json.setdefault("nodes", []))
    local = skeleton.offsets - np.where(skeleton.parents[:, None] < 0, offset, 0)
    for k, name in enumerate(skeleton.names):
        node: dict[str, Any] = {"name": name, "translation": local[k].tolist()}
        node["rotation"] = np.roll(skeleton.rest_rotations[k], -1).tolist()
        children = np.flatnonzero(skeleton.parents == k)
        if len(children):
            node["children"] = (first + children).tolist()
        builder.add("nodes", node)
    positions, quaternions = skeleton.rest_world
    back = rotations.matrix(rotations.inverse(quaternions))
    inverse = np.zeros((len(skeleton), 4, 4))
    inverse[:, :3, :3] = scale * back
    inverse[:, :3, 3] = -np.einsum("jab,jb->ja", back, positions - offset)
    inverse[:, 3, 3] = 1
    by_columns = inverse.transpose(0, 2, 1).reshape(-1, 16).astype(np.float32)
    joints = list(range(first, first + len(skeleton)))
    skin = builder.add("skins", {"joints": joints, "inverseBindMatrices": builder.accessor(by_columns)})
    return (first + np.flatnonzero(skeleton.parents < 0)).tolist(), joints, skin


def vertex_joints(builder: Builder, joints: Ints, weights: Floats) -> dict[str, int]:
    """The attributes JOINTS_0, WEIGHTS_0 and so on of some vertices."""
    gap = -joints.shape[1] % SET_SIZE
    joints, shares = np.pad(joints, ((0, 0), (0, gap))), np.pad(_shares(weights), ((0, 0), (0, gap)))
    joints = np.where(shares > 0, joints, 0).astype(np.uint8 if joints.max() < 256 else np.uint16)
    written = {}
    for k in range(joints.shape[1] // SET_SIZE):
        part = slice(k * SET_SIZE, (k + 1) * SET_SIZE)
        written[f"JOINTS_{k}"] = builder.accessor(joints[:, part], target=ARRAY_BUFFER)
        written[f"WEIGHTS_{k}"] = builder.accessor(shares[:, part], target=ARRAY_BUFFER, normalized=True)
    return written


def _shares(weights: Floats) -> Any:
    """Weights as 16-bit fractions that sum to exactly 1: what rounding down leaves goes to those that lost most."""
    exact = weights / weights.sum(axis=1, keepdims=True) * SHARES
    whole = np.floor(exact).astype(np.int64)
    missing = SHARES - whole.sum(axis=1)
    rank = np.argsort(np.argsort(whole - exact, axis=1, kind="stable"), axis=1, kind="stable")
    return (whole + (rank < missing[:, None])).astype(np.uint16)


def joint_channels(builder: Builder, motion: Motion, nodes: list[int]) -> list[tuple[int, str, int]]:
    """Node, path and accessor of every rotation and translation that differs from what its node has at rest."""
    channels = []
    for k, node in enumerate(nodes):
        entry = builder.json["nodes"][node]
        moved = motion.translations[:, k] - (motion.skeleton.offsets[k] - entry["translation"])
        for path, values in (("rotation", np.roll(motion.rotations[:, k], -1, axis=1)), ("translation", moved)):
            stored = values.astype(np.float32)
            if (stored != np.float32(entry[path])).any():
                channels.append((node, path, builder.accessor(stored)))
    return channels
