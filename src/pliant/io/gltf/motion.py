"""glTF's skins as skeletons, and their clips as motion.

A joint's parent is the nearest joint above it; nodes between them, and those above the first joint, are folded in.
From the joints' world transforms ``W_j = [s_j R_j | p_j]``:

    rotation_j = R_parentᵀ R_j          translation_j = R_parentᵀ (p_j - p_parent)

so that uniform scales end up in the lengths of the bones, and every joint stands where the file puts it. A mirrored
frame (one of a negative scale) has its x axis reversed.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from pliant.core import rotations
from pliant.core.errors import PliantWarning
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Floats, Ints
from pliant.io.gltf.clip import Clip
from pliant.io.gltf.data import Document
from pliant.io.gltf.scene import read_skin
from pliant.io.gltf.tree import NodeTree, read_tree


def skeleton_of(doc: Document) -> Skeleton:
    """The joints of the file's first skin, as its nodes stand at rest."""
    joints = _read_joints(doc)
    world = joints.tree.world()[:, joints.nodes]
    _warn_if_uneven(doc, world)
    return _rest(joints, world)


def motion_of(doc: Document, clip: Clip, fps: float) -> Motion:
    """The first skin's joints in a clip."""
    joints = _read_joints(doc)
    times = clip.frame_times(fps)
    doc.check_size(len(times) * len(joints.tree) * 16, "frames")
    world = joints.tree.world(len(times), clip.at(times))[:, joints.nodes]
    _warn_if_uneven(doc, world)
    quaternions, positions = _local_frames(world, joints.parents)
    return Motion(_rest(joints, joints.tree.world()[:, joints.nodes]), quaternions, positions, fps, name=clip.name)


@dataclass(frozen=True, eq=False)
class _Joints:
    """The joints of a skin, parents first."""

    tree: NodeTree
    names: tuple[str, ...]
    nodes: Ints
    """(j,)"""
    parents: Ints
    """(j,) -1 for a root."""


def _rest(joints: _Joints, world: Floats) -> Skeleton:
    quaternions, positions = _local_frames(world, joints.parents)
    return Skeleton(joints.names, joints.parents, positions[0], quaternions[0])


def _read_joints(doc: Document) -> _Joints:
    """The joints of the first skin."""
    if not doc.table("skins"):
        raise doc.source.error("holds no skin; expected a skeleton")
    tree = read_tree(doc)
    skin = read_skin(doc, tree, 0)
    if len(set(skin.joints.tolist())) < len(skin.joints):
        raise doc.source.error("lists a joint twice; expected each node once", location="skin 0")
    rank = np.empty(len(tree), dtype=np.int64)
    rank[tree.order] = np.arange(len(tree))
    order = np.argsort(rank[skin.joints])
    nodes = skin.joints[order]
    number = {int(node): k for k, node in enumerate(nodes)}
    nearest = np.full(len(tree), -1, dtype=np.int64)
    for node in tree.order:
        above = tree.parents[node]
        nearest[node] = -1 if above < 0 else number.get(int(above), nearest[above])
    return _Joints(tree, tuple(skin.names[j] for j in order), nodes, nearest[nodes])


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


def _warn_if_uneven(doc: Document, world: Floats) -> None:
    """Warn of joints that scale one axis only: a skeleton stores lengths and rotations."""
    linear = world[..., :3, :3]
    gram = np.swapaxes(linear, -1, -2) @ linear
    size = np.trace(gram, axis1=-2, axis2=-1)[..., None, None] / 3
    if (np.abs(gram - size * np.eye(3)) > 2e-3 * size).any():
        warnings.warn(
            f"{doc.source.label}: some joints are scaled unevenly, which a skeleton cannot hold; left that out",
            PliantWarning,
            stacklevel=3,
        )
