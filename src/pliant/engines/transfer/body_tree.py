"""A body as a tree of points in the middle of its trunk and limbs, whatever it is made of.

A motion's tree is its skeleton at rest. A shape's is the curve skeleton of the closed surface around it, so that loose
parts, soups and clouds have one too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pliant.core.errors import InputError
from pliant.core.shapes import Mesh, Shape
from pliant.core.skeleton import Motion, bone_vector
from pliant.core.topology import Floats, Ints
from pliant.engines.transfer.shell import Target, distance_field, filled, shell
from pliant.engines.transfer.sources import joint_tracks
from pliant.geometry.skeletons.centreline import LineTree, centre_lines
from pliant.geometry.skeletons.limbs import limb_paths
from pliant.geometry.skeletons.voxels import Solid, voxelised

VOXELS = 24_000
"""Inside a shape."""
TREE_MARGIN = 0.012
"""Distance of the closed surface around a shape, over the diagonal."""
APART = 0.2
"""Way between two tips, over the longest, from which they are two: fingers are not."""


@dataclass(frozen=True, eq=False)
class BodyTree:
    """Points in a tree, parents first."""

    locations: Floats
    """(m, 3)"""
    parents: Ints
    """(m,) -1 for the root"""
    widths: Floats
    """(m,) of the body there; 0 where it is not known"""

    @cached_property
    def depths(self) -> Floats:
        """(m,) the way from the root."""
        depths = np.zeros(len(self.locations))
        for node, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                depths[node] = depths[parent] + np.linalg.norm(self.locations[node] - self.locations[parent])
        return depths

    def chain(self, node: int) -> list[int]:
        """From a node up to its root."""
        up = [node]
        while self.parents[up[-1]] >= 0:
            up.append(int(self.parents[up[-1]]))
        return up

    def route(self, one: int, other: int) -> float:
        """Along the tree, from one node to another; infinite if they are not joined."""
        above = set(self.chain(one))
        meet = next((node for node in self.chain(other) if node in above), None)
        return np.inf if meet is None else float(self.depths[one] + self.depths[other] - 2 * self.depths[meet])

    @cached_property
    def tips(self) -> list[int]:
        """Nodes where limbs end."""
        return self.separate_tips(APART)

    def separate_tips(self, apart: float) -> list[int]:
        """Nodes where limbs end, `apart` from each other over the longest way; the farthest from the root first."""
        ends = [node for node in range(len(self.locations)) if node not in self.parents]
        chosen = [ends[int(np.argmax(self.depths[ends]))]]
        longest = max(self.route(chosen[0], end) for end in ends)
        while True:
            away = [min(self.route(end, tip) for tip in chosen) for end in ends]
            if not np.isfinite(away).all() or max(away) <= apart * longest:
                return chosen
            chosen.append(ends[int(np.argmax(away))])

    def limb(self, tip: int, tips: Sequence[int]) -> list[int]:
        """Nodes from where a limb leaves the ways to the other tips to its own; the first belongs to the trunk."""
        others = {node for other in tips if other != tip for node in self.chain(other)}
        own = [node for node in self.chain(tip) if node not in others]
        fork = int(self.parents[own[-1]])
        return ([fork] if fork >= 0 else []) + own[::-1]


def motion_tree(motion: Motion, rest: object = None) -> tuple[BodyTree, Ints]:
    """Of a motion's skeleton in its rest pose, and (m,) the joint whose bone ends at each node, -1 for the root."""
    skeleton = motion.skeleton
    joints = joint_tracks(motion, rest=rest)  # type: ignore[arg-type]
    leaves = [j for j in range(len(skeleton)) if j not in skeleton.parents and np.any(bone_vector(skeleton, j))]
    tips = joint_tracks(motion, [skeleton.names[j] for j in leaves], rest=rest, along=1.0)  # type: ignore[arg-type]
    locations = np.array([track.rest for tracks in (joints, tips) for track in tracks.values()])
    parents = np.concatenate([skeleton.parents, np.array(leaves, dtype=np.int64)])
    return BodyTree(locations, parents, np.zeros(len(locations))), parents


def shape_tree(shape: Shape, frame: Floats) -> BodyTree:
    """Of any shape, found along the axes of a frame (3, 3), rows; it turns along with both."""
    rotated = shape.with_points(shape.points @ frame.T)
    target = Target.of(rotated)
    around = shell(
        filled(distance_field(target, TREE_MARGIN / 2, 1.5 * TREE_MARGIN, 4 * TREE_MARGIN), TREE_MARGIN), TREE_MARGIN
    )
    solid = Solid.of(Mesh(around.points * target.size + target.centre, around.quads))
    voxels = voxelised(solid, count=VOXELS)
    lines = centre_lines(voxels, limb_paths(voxels))
    if not lines.lines:
        raise InputError("the target has no limbs that could be distinguished; give the controls themselves")
    tree = _flattened(lines)
    return BodyTree(solid.outwards(tree.locations) @ frame, tree.parents, tree.widths * solid.size)


def _flattened(lines: LineTree) -> BodyTree:
    """All points of the lines as one tree."""
    locations, parents, widths = [lines.nodes[0]], [-1], [2 * float(lines.depth[0])]
    node_of = {0: 0}
    for line in lines.lines:
        last = node_of[line.start]
        for k in range(1, len(line.points)):
            locations.append(line.points[k])
            parents.append(last)
            widths.append(float(line.width[k]))
            last = len(locations) - 1
        node_of[line.end] = last
    return BodyTree(np.array(locations), np.array(parents), np.array(widths))
