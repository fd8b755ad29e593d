"""pliant's own skeleton file, to write by hand::

    {"joints": [{"name": "hip", "position": [0, 1, 0]},
                {"name": "knee", "parent": "hip", "position": [0, 0.5, 0], "end": [0, -0.5, 0]}]}

``position`` is in the world; or give ``offset`` (from the parent, in its frame) and ``rotation`` (w, x, y, z).
``end``, where the bone of a last joint stops, is relative to that joint.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core import rotations
from pliant.core.skeleton import Skeleton
from pliant.core.topology import Floats
from pliant.io.gltf.checked_json import Entry
from pliant.io.located_json import read_json
from pliant.io.source import Source
from pliant.io.tgf import parents_first


def read_skeleton(source: Source) -> Skeleton:
    """Joints in any order."""
    content = read_json(source).content
    joints = content.get("joints") if isinstance(content, dict) else None
    if not isinstance(joints, list) or not joints or not all(isinstance(joint, dict) for joint in joints):
        raise source.error('is JSON but no skeleton; expected {"joints": [{"name": ..., "position": [x, y, z]}, ...]}')
    names = [str(joint.get("name", f"joint{k}")) for k, joint in enumerate(joints)]
    numbers = {name: k for k, name in reversed(list(enumerate(names)))}
    parents = np.array([_parent(source, joint, numbers) for joint in joints], dtype=np.int64)
    order, tree = parents_first(parents)
    if not len(order):
        raise source.error("its joints go round in a circle; expected a tree")
    sorted_joints = [joints[k] for k in order]
    quaternions = np.array([_numbers(source, joint, "rotation", 4, rotations.IDENTITY) for joint in sorted_joints])
    offsets = np.array([_offset(source, joint) for joint in sorted_joints])
    ends = {k: _numbers(source, joint, "end", 3) for k, joint in enumerate(sorted_joints) if "end" in joint}
    placed = np.array(["position" in joint for joint in sorted_joints])
    if placed.any() and not placed.all():
        raise source.error('some joints have a "position" and others an "offset"; expected one or the other')
    sorted_names = tuple(names[k] for k in order)
    if not placed.any():
        return Skeleton(sorted_names, tree, offsets, quaternions, ends)
    if not np.array_equal(quaternions, np.tile(rotations.IDENTITY, (len(quaternions), 1))):
        raise source.error('"position" goes with unturned joints; give "offset" where there is a "rotation"')
    straight = Skeleton.from_positions(offsets, tree, sorted_names)
    return Skeleton(sorted_names, tree, straight.offsets, ends=ends)


def _parent(source: Source, joint: dict[str, Any], numbers: dict[str, int]) -> int:
    parent = joint.get("parent")
    if parent is None:
        return -1
    if not isinstance(parent, str) or parent not in numbers:
        raise source.error(f'joint "{joint.get("name")}" has the parent "{parent}", which is not there')
    return numbers[parent]


def _offset(source: Source, joint: dict[str, Any]) -> Floats:
    return _numbers(source, joint, "position" if "position" in joint else "offset", 3)


def _numbers(source: Source, joint: dict[str, Any], key: str, count: int, default: Floats | None = None) -> Floats:
    entry = Entry(source, joint, f'joint "{joint.get("name")}"')
    values = entry.numbers(key, count)
    if values is None:
        values = default
    if values is None:
        raise entry.error(f'has no "{key}"; expected {count} finite numbers')
    return values


def write_skeleton(path: Path, skeleton: Skeleton) -> None:
    """Names, parents, offsets and rotations."""
    joints = []
    for k, name in enumerate(skeleton.names):
        joint: dict[str, Any] = {"name": name}
        if skeleton.parents[k] >= 0:
            joint["parent"] = skeleton.names[skeleton.parents[k]]
        joint["offset"] = skeleton.offsets[k].tolist()
        joint["rotation"] = skeleton.rest_rotations[k].tolist()
        if k in skeleton.ends:
            joint["end"] = np.asarray(skeleton.ends[k]).tolist()
        joints.append(joint)
    rows = ",\n".join(f"  {json.dumps(joint)}" for joint in joints)
    path.write_text(f'{{"joints": [\n{rows}\n]}}\n', encoding="utf-8")
