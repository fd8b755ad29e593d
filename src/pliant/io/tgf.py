"""TGF, the trivial graph format, as libigl writes skeletons: joints ``index x y z``, a line ``#``, bones ``from to``.

Numbers behind the two ends of a bone (libigl's flags) are passed over. Bones lead from parent to child.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pliant.core.skeleton import Skeleton
from pliant.core.topology import Ints
from pliant.io.scan import scan_numbers
from pliant.io.source import Source


def read_skeleton(source: Source) -> Skeleton:
    """The graph as a tree; joints are renumbered so that parents come first, and named by their number in the file."""
    data = source.read()
    split = data.find(b"#")
    if split < 0:
        raise source.error('has no line "#" between its joints and its bones')
    joints = scan_numbers(source, data, 0, split)
    if not len(joints):
        raise source.error("holds no joints")
    rows = joints.block(source, 0, len(joints), 4, "joints")
    numbers = {value: k for k, value in enumerate(rows[:, 0].tolist())}
    parents = np.full(len(rows), -1, np.int64)
    end = data.find(b"#", split + 1)
    bones = scan_numbers(source, data, split + 1, len(data) if end < 0 else end)
    for k in range(len(bones)):
        ends = [numbers.get(value, -1) for value in bones.row(k)[:2].tolist()]
        location = f"line {bones.line[k]}"
        if len(ends) < 2 or min(ends) < 0:
            raise source.error("a bone does not join two of the joints", location=location)
        if parents[ends[1]] >= 0:
            raise source.error(f"joint {bones.row(k)[1]:g} has two parents; expected a tree", location=location)
        parents[ends[1]] = ends[0]
    order, tree = parents_first(parents)
    if not len(order):
        raise source.error("its bones go round in a circle; expected a tree")
    return Skeleton.from_positions(rows[order, 1:4], tree, [f"joint{rows[k, 0]:g}" for k in order])


def parents_first(parents: Ints) -> tuple[Ints, Ints]:
    """An order of the joints in which each comes after its parent, and their parents then; empty if there is a circle.

    parents: (j,) one or more, -1 for roots.
    """
    children: list[list[int]] = [[] for _ in range(len(parents) + 1)]
    for joint, parent in enumerate(parents.tolist()):
        children[max(parent, -1)].append(joint)  # roots: behind the last joint
    depth = np.zeros(len(parents), np.int64)
    reached = list(children[-1])
    for joint in reached:
        depth[children[joint]] = depth[joint] + 1
        reached += children[joint]
    if len(reached) < len(parents):
        return parents[:0], parents[:0]
    order = np.argsort(depth, kind="stable")
    return order, np.where(parents[order] >= 0, np.argsort(order)[parents[order]], -1)


def write_skeleton(path: Path, skeleton: Skeleton) -> None:
    """Joints at rest and bones."""
    positions, _ = skeleton.rest_pose().world()
    lines = [f"{k + 1} {x!r} {y!r} {z!r}" for k, (x, y, z) in enumerate(positions.tolist())]
    lines += ["#", *(f"{a + 1} {b + 1}" for a, b in skeleton.bones.tolist())]
    path.write_text("\n".join(lines) + "\n", encoding="ascii")
