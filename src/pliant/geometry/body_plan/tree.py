"""A body as a tree of points along the middle of its trunk and limbs, whatever it is made of.

A skeleton's tree has its joints and the ends of its bones. Rigs are taken as they come: joints that carry nothing and
steer others (pole targets, handles of inverse kinematics) are left out; a foot that hangs on such a joint, and not on
its shin, is attached to the joint whose flesh it meets.

A shape's tree is the curve skeleton of the closed surface around it, so that loose parts, soups and clouds have one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from pliant.core.errors import InputError
from pliant.core.shapes import Mesh, Shape, TetMesh
from pliant.core.skeleton import Skeleton
from pliant.core.topology import Floats, Ints
from pliant.geometry.axes import OwnFrame
from pliant.geometry.body_plan.names import is_appendage, is_digit, is_foot, is_helper, side
from pliant.geometry.body_plan.symmetry import surface_samples
from pliant.geometry.cloud_surface import cloud_surface
from pliant.geometry.shell import Shell, Target, distance_field, filled, shell
from pliant.geometry.skeletons.centreline import LineTree, centre_lines
from pliant.geometry.skeletons.limbs import LEAST_SLENDERNESS, limb_paths
from pliant.geometry.skeletons.voxels import Solid, voxelised
from pliant.geometry.skinning import overlap, skin_of

VOXELS = 36_000
"""Inside a shape."""
TREE_MARGINS = (0.005, 0.012, 0.02)
"""Distances of the closed surface around a shape, over the diagonal: the first that leaves no holes."""
FINEST_CELL = 0.0045
"""Of the grid on which they are found, over the diagonal."""
WALL = 0.012
"""The same where every one does: of a sparse cloud, or an open surface."""
LEAST_ENCLOSED = 1e-4
"""Volume of what is inside, over the cube of the diagonal, at least."""
HOLLOW = 0.8
"""Volume that a surface encloses, over that of the next one, below which it has holes."""
SECTION_SAMPLES = 12_000
"""Points on a surface by which cross-sections are looked at."""
SEPARATE_TIPS = 0.2
"""Geodesic distance of two tips, over the longest, from which they are two: fingers are not."""
DETACHED = 0.25
"""Share of all joints up to which a branch at the top of a skeleton may belong elsewhere."""
SLIGHT = 0.01
"""Share of all weights up to which a joint at the top carries nothing."""


def polyline_lengths(points: Floats) -> Floats:
    """(k,) length of a polyline (k, 3) up to each of its points."""
    return np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])


def point_along(points: Floats, length: float | Floats) -> Floats:
    """(3,) the point of a polyline (k, 3) at some length from its start; (m, 3) at lengths (m,)."""
    steps = polyline_lengths(points)
    return np.stack([np.interp(length, steps, axis) for axis in points.T], axis=-1)


@dataclass(frozen=True, eq=False)
class BodyTree:
    """Points in a tree, parents first."""

    locations: Floats
    """(m, 3)"""
    parents: Ints
    """(m,) -1 for the root"""
    widths: Floats
    """(m,) diameter of a round cross-section of the same area; 0 where it is not known"""
    aspects: Floats
    """(m,) thickness of a cross-section over its breadth: 1 is round, a wing or a fin is near 0"""
    joints: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """(m,) of a skeleton: the joint that each node is at, or whose bone ends there"""
    names: tuple[str, ...] = ()
    """Of a skeleton: its joint's name for each node"""

    @cached_property
    def size(self) -> float:
        """Diagonal of its box along its principal axes."""
        centred = self.locations - self.locations.mean(axis=0)
        return float(np.linalg.norm(np.ptp(centred @ np.linalg.eigh(centred.T @ centred)[1], axis=0)))

    @cached_property
    def depths(self) -> Floats:
        """(m,) the length from the root."""
        depths = np.zeros(len(self.locations))
        for node, parent in enumerate(self._parents):
            if parent >= 0:
                depths[node] = depths[parent] + np.linalg.norm(self.locations[node] - self.locations[parent])
        return depths

    def chain(self, node: int) -> list[int]:
        """From a node up to its root."""
        up = []
        while node >= 0:
            up.append(node)
            node = self._parents[node]
        return up

    @cached_property
    def _parents(self) -> list[int]:
        found: list[int] = self.parents.tolist()
        return found

    def path(self, one: int, other: int) -> list[int]:
        """Nodes from one to another along the tree."""
        up, down = self.chain(one), self.chain(other)
        shared = set(up) & set(down)
        meet = next(node for node in up if node in shared)
        return up[: up.index(meet) + 1] + down[: down.index(meet)][::-1]

    def distance(self, one: int, other: int) -> float:
        """Along the tree, from one node to another."""
        above = set(self.chain(one))
        meet = next(node for node in self.chain(other) if node in above)
        return float(self.depths[one] + self.depths[other] - 2 * self.depths[meet])

    def length(self, nodes: Sequence[int]) -> float:
        """Of the polyline through nodes."""
        return float(polyline_lengths(self.locations[list(nodes)])[-1])

    @cached_property
    def tips(self) -> list[int]:
        """Nodes where limbs end, apart from each other; the farthest from the root first."""
        ends = [node for node in range(len(self.locations)) if node not in self.parents]
        chosen = [ends[int(np.argmax(self.depths[ends]))]]
        longest = max(self.distance(chosen[0], end) for end in ends)
        while True:
            away = [min(self.distance(end, tip) for tip in chosen) for end in ends]
            if max(away) <= SEPARATE_TIPS * longest:
                return chosen
            chosen.append(ends[int(np.argmax(away))])

    def limb(self, tip: int, tips: Sequence[int]) -> list[int]:
        """Nodes from where a limb leaves the paths to the other tips to its own; the first belongs to the trunk."""
        others = {node for other in tips if other != tip for node in self.chain(other)}
        own = [node for node in self.chain(tip) if node not in others]
        fork = int(self.parents[own[-1]])
        return ([fork] if fork >= 0 else []) + own[::-1]


# Of a skeleton


def skeleton_tree(skeleton: Skeleton, mesh: Mesh | None = None) -> BodyTree:
    """Of a skeleton at rest. mesh: the shape that it moves; its vertex groups say what each joint carries."""
    skin = None if mesh is None else skin_of(mesh, skeleton)
    positions = skeleton.rest_world[0]
    parents = _without_digits(_attached(skeleton, mesh, skin), skeleton.names, positions)
    order = np.flatnonzero(parents == -1).tolist()
    for joint in order:
        order += np.flatnonzero(parents == joint).tolist()
    number = {joint: k for k, joint in enumerate(order)}
    locations, above, joints = [positions[j] for j in order], [number.get(int(parents[j]), -1) for j in order], order
    for joint in [j for j in order if not any(parents[k] == j for k in order)]:
        end = _bone_end(skeleton, joint, mesh, skin)
        if end is not None:
            locations.append(end)
            above.append(number[joint])
            joints = [*joints, joint]
    names, count = tuple(skeleton.names[j] for j in joints), len(locations)
    return BodyTree(np.array(locations), np.array(above), np.zeros(count), np.ones(count), np.array(joints), names)


def _attached(skeleton: Skeleton, mesh: Mesh | None, skin: Any) -> Ints:
    """(j,) parents of joints as a body has them; -2 for joints that are left out."""
    count, parents = len(skeleton), skeleton.parents.copy()
    meets, carried = np.zeros((count, count)), np.array([not is_helper(name) for name in skeleton.names], dtype=float)
    if mesh is not None and skin is not None:
        meets, carried = overlap(mesh, skin), np.asarray(skin.sum(axis=0)).ravel()
    used = (carried > 0) & ~np.array([is_appendage(name) for name in skeleton.names])
    used = used if used.any() else np.ones(count, dtype=bool)
    size = np.ones(count, dtype=np.int64)
    for j in range(count - 1, -1, -1):
        if parents[j] >= 0:
            used[parents[j]] |= used[j]
            size[parents[j]] += size[j]
    main = int(np.argmax(np.where(parents < 0, size, 0)))
    while not carried[main] or (skin is not None and carried[main] <= SLIGHT * carried.sum()):
        children = np.flatnonzero((parents == main) & used)
        if not children.size or size[children].max() < 0.5 * size[main]:
            break
        main = int(children[np.argmax(size[children])])
    body = _descendants(parents, main) & used
    if skin is None:  # a foot at the top of a skeleton is moved by a handle
        for j in np.flatnonzero((parents == main) & (size <= DETACHED * count)).tolist():
            body[_descendants(parents, j)] &= not is_foot(skeleton.names[j])
    top = np.append(carried, 0.0) <= SLIGHT * carried.sum() * (skin is not None)
    top[main] = True
    for j in np.flatnonzero(used & ~body & (carried > 0) & (size <= DETACHED * count)).tolist():
        if not top[parents[j]]:
            continue  # goes along with its parent
        others = np.where(body & ~_descendants(parents, j), meets[j], 0.0)
        if others.max(initial=0) > 0:
            parents[j] = int(np.argmax(others))
        else:
            leaves = [k for k in np.flatnonzero(body) if not (body & (parents == k)).any()]
            leaves = [k for k in leaves if side(skeleton.names[k]) * side(skeleton.names[j]) >= 0] or leaves
            away = np.linalg.norm(skeleton.rest_world[0][leaves] - skeleton.rest_world[0][j], axis=1)
            parents[j] = leaves[int(np.argmin(away))]
    parents[main] = -1
    reached = np.zeros(count, dtype=bool)
    reached[main] = True
    for _ in range(count):
        reached |= used & (parents >= 0) & reached[np.maximum(parents, 0)]
    return np.where(reached, parents, -2)


def _without_digits(parents: Ints, names: Sequence[str], positions: Floats) -> Ints:
    """Parents with one finger of each hand and one toe of each foot, the longest; -2 for the others."""
    parents = parents.copy()
    for joint in range(len(parents)):
        branches = [k for k in np.flatnonzero(parents == joint).tolist() if is_digit(names[k])]
        if len(branches) > 1:
            reach = [
                np.linalg.norm(positions[_descendants(parents, k)] - positions[joint], axis=1).max() for k in branches
            ]
            for k in branches:
                if k != branches[int(np.argmax(reach))]:
                    parents[_descendants(parents, k)] = -2
    return parents


def _descendants(parents: Ints, joint: int) -> Any:
    """(j,) whether each joint is one or below it."""
    found = np.zeros(len(parents), dtype=bool)
    found[joint] = True
    for _ in range(len(parents)):
        more = found | ((parents >= 0) & found[np.maximum(parents, 0)])
        if (more == found).all():
            return found
        found = more
    return found


def _bone_end(skeleton: Skeleton, joint: int, mesh: Mesh | None, skin: Any) -> Floats | None:
    """(3,) where the bone of a leaf joint ends: as the file says, or as far as what it carries reaches."""
    positions, frames = skeleton.rest_world
    if joint in skeleton.ends and np.any(skeleton.ends[joint]):
        from pliant.core import rotations

        end: Floats = positions[joint] + rotations.rotate(frames[joint], skeleton.ends[joint])
        return end
    if mesh is None or skin is None:
        return None
    weights = skin[:, [joint]].toarray().ravel()
    if weights.sum() < 1e-9:
        return None
    along = weights @ mesh.points / weights.sum() - positions[joint]
    length = float(np.linalg.norm(along))
    if length < 1e-6 * mesh.diagonal:
        return None
    own = mesh.points[weights > 0.5 * weights.max()] - positions[joint]
    reach: Floats = positions[joint] + np.quantile(own @ along / length, 0.95) * along / length
    return reach


# Of a shape


def shape_tree(shape: Shape, frame: Floats, slender: float = LEAST_SLENDERNESS) -> BodyTree:
    """Of any shape, found along the axes of a frame (3, 3), rows; it rotates along with both.

    slender: length of limbs over their width, at least.
    """
    own = OwnFrame.of(shape.points, frame)
    points = own.points
    faces = getattr(shape, "triangles", ())
    meshed = len(faces) or isinstance(shape, TetMesh)
    rotated = shape.with_points(points) if meshed else Mesh(*cloud_surface(points))
    target = Target.of(rotated)
    around = _shell_around(target)
    solid = Solid.of(Mesh(around.points * target.size + target.centre, around.quads))
    voxels = voxelised(solid, count=VOXELS)
    lines = centre_lines(voxels, limb_paths(voxels, slender=slender))
    if not lines.lines:
        raise InputError("the target has no limbs that could be distinguished; give the controls themselves")
    tree = line_tree(lines, solid)
    locations = own.back(tree.locations)
    aspects = cross_section_aspects(locations, tree.parents, surface_samples(shape, SECTION_SAMPLES))
    return replace(tree, locations=locations, widths=tree.widths * own.size, aspects=aspects)


def _shell_around(target: Target) -> Shell:
    """A closed surface around anything: near, so that limbs stay apart; farther where that would leave it hollow."""
    for margin, wider in pairwise(TREE_MARGINS):
        field = distance_field(target, max(FINEST_CELL, margin / 2), 1.5 * wider, 4 * wider)
        around = filled(field, margin)
        inside, more = ((found.values < 0).sum() for found in (around, filled(field, wider)))
        if inside >= HOLLOW * more and inside * field.cell**3 > LEAST_ENCLOSED:
            return shell(around, margin)
    return shell(filled(distance_field(target, WALL / 2, 1.5 * WALL, 4 * WALL), WALL), WALL)


def line_tree(lines: LineTree, solid: Solid) -> BodyTree:
    """All points of a curve skeleton's lines, in the shape's units."""
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
    positions = solid.outwards(np.array(locations))
    return BodyTree(positions, np.array(parents), np.array(widths) * solid.size, np.ones(len(positions)))


def cross_section_aspects(locations: Floats, parents: Ints, samples: Floats) -> Floats:
    """(m,) ratio of the two extents, across the limb, of the surface's samples (n, 3) that are nearest to each node."""
    from scipy.spatial import cKDTree

    above = np.where(parents >= 0, parents, np.arange(len(parents)))
    below = above.copy()
    below[above] = np.arange(len(parents))  # one of the children
    along = locations[below] - locations[above]
    along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-300)
    nearest = cKDTree(locations).query(samples)[1]
    away = samples - locations[nearest]
    away -= (away * along[nearest]).sum(axis=1, keepdims=True) * along[nearest]
    moments = np.zeros((len(locations), 3, 3))
    np.add.at(moments, nearest, away[:, :, None] * away[:, None, :])
    smooth = moments + moments[above] + moments[below]  # sections of three nodes
    extents = np.sqrt(np.maximum(np.linalg.eigvalsh(smooth), 0))
    return np.where(extents[:, 2] > 0, extents[:, 1] / np.maximum(extents[:, 2], 1e-300), 1.0)
