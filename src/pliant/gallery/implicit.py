"""Bodies as blended round cones and ellipsoids hung on a skeleton.

An `ImplicitBody` has joints (a tree with positions at rest), groups (limbs, a tree of their own) and parts. A part is
a round cone or an ellipsoid that moves with one joint. Parts blend smoothly within their group, and a group blends with
its parent group alone: fingers grow out of the palm but never into each other. `surface_nets` meshes the field,
`skinning` bends that mesh with the skeleton.

Every part is a round cone in a stretched frame, ``(u, v, w) = S (x - c)``: a sphere of radius r0 at the origin and one
of radius r1 at (0, h, 0) with their common hull. With f the cone's exact distance there, ``d = f / |Sᵀ ∇f|`` is the
distance in the world to first order (and an ellipsoid's usual distance when h = 0).

A part with a slab thickness t > 0 is the plane figure of the same cone, drawn in u and v, thickened to ``|w| < t`` with
edges rounded by 0.7 t.

Parts of one group are joined by the smooth minimum ``min(a, b) - max(k - |a - b|, 0)² / 4k``; carved parts are taken
away by its mirror image. Then each group is joined to its parent alone.

Axes: y up, facing +z, left is +x. Names of paired things end in ".L" and ".R".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.core import rotations
from pliant.core.skeleton import Skeleton
from pliant.core.topology import Floats, Ints
from pliant.geometry.bvh import POINTS_PER_THREAD
from pliant.native import in_threads, kernels

GRID_BLOCK = 16
"""Samples along the side of the cubes that a grid is cut into."""


Point = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class ConePart:
    """A round cone from `start` to `end` (a ball if they coincide), stretched by `frame`, moving with a joint."""

    joint: str
    group: str
    start: Floats
    """(3,)"""
    frame: Floats
    """(3, 3) S: world to the frame in which the part is a round cone along y."""
    length: float
    radii: tuple[float, float]
    blend: float
    """Radius of the smooth union with the parts before it."""
    carve: bool
    soft: float
    """Over what length skin weights change where this part meets another joint's."""
    slab: float = 0.0
    """Half the thickness of a plane figure with rounded edges; 0 for a solid of revolution."""


@dataclass(frozen=True)
class BodyPart:
    """A limb: joined to its parent with its own blend radius, and to its siblings with a small crease only."""

    name: str
    parent: str = ""
    join: float = 0.0
    crease: float = 0.0


@dataclass(frozen=True, eq=False)
class ImplicitBody:
    """Everything a procedural body is made of."""

    joints: Mapping[str, tuple[str, Point]]
    """Name to parent's name ("" for the root) and position at rest; parents first."""
    groups: tuple[BodyPart, ...]
    """Parents first; the first is the root."""
    parts: tuple[ConePart, ...]
    sturdy: int = 4000
    """Fewest vertices at which the grid resolves every part; smaller meshes are simplified from this one."""
    ends: Mapping[str, Point] | None = None
    """Where the bones of leaf joints end, in the world."""

    @cached_property
    def skeleton(self) -> Skeleton:
        """The joints as a `Skeleton` whose frames are aligned with the world at rest."""
        names = tuple(self.joints)
        parents = np.array([names.index(parent) if parent else -1 for parent, _ in self.joints.values()])
        positions = np.array([position for _, position in self.joints.values()], dtype=np.float64)
        skeleton = Skeleton.from_positions(positions, parents, names)
        ends = {
            names.index(name): np.asarray(end) - positions[names.index(name)] for name, end in (self.ends or {}).items()
        }
        return replace(skeleton, ends=ends)

    @cached_property
    def part_joint(self) -> Ints:
        """(parts,) number of the joint each part moves with."""
        return np.array([self.skeleton.index(part.joint) for part in self.parts])

    @cached_property
    def part_table(self) -> Floats:
        """(parts, 20) what the kernels read: S, c, h, r0, r1, k, carve, group, slab, radius of a sphere around all."""
        order = {group.name: k for k, group in enumerate(self.groups)}
        rows = []
        for p in self.parts:
            stretch = 1 / np.linalg.norm(p.frame, axis=1).min()
            reach = stretch * (p.length + max(p.radii)) + p.slab
            row = [
                *p.frame.ravel(),
                *p.start,
                p.length,
                *p.radii,
                p.blend,
                float(p.carve),
                order[p.group],
                p.slab,
                reach,
            ]
            rows.append(row)
        return np.array(rows, dtype=np.float64)

    @cached_property
    def group_table(self) -> Floats:
        """(groups, 3) parent's number, join, crease."""
        order = {group.name: k for k, group in enumerate(self.groups)}
        return np.array([[order.get(g.parent, -1), g.join, g.crease] for g in self.groups], dtype=np.float64)

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """Lowest and highest corner of a box around the body."""
        low, high = np.full(3, np.inf), np.full(3, -np.inf)
        for part in self.parts:
            if part.carve:
                continue
            back = np.linalg.inv(part.frame)
            for k, centre in enumerate((part.start, part.start + back[:, 1] * part.length)):
                reach = part.radii[k] * np.linalg.norm(back, axis=1)
                low, high = np.minimum(low, centre - reach), np.maximum(high, centre + reach)
        pad = 0.25 * max((part.blend for part in self.parts), default=0.0)
        return low - pad, high + pad


def posed_parts(body: ImplicitBody, rotations: Floats, positions: Floats) -> Floats:
    """The part table after each joint's frame has moved to rotation matrices (j, 3, 3) and positions (j, 3)."""
    table = body.part_table.copy()
    rest = body.skeleton.rest_pose().world()[0]
    R = rotations[body.part_joint]
    S = table[:, :9].reshape(-1, 3, 3)
    table[:, :9] = np.einsum("pij,pkj->pik", S, R).reshape(-1, 9)
    arm = table[:, 9:12] - rest[body.part_joint]
    table[:, 9:12] = positions[body.part_joint] + np.einsum("pij,pj->pi", R, arm)
    return table


def cone(
    joint: str,
    group: str,
    start: ArrayLike,
    end: ArrayLike,
    radii: tuple[float, float],
    *,
    blend: float = 0.0,
    flat: float = 1.0,
    toward: ArrayLike = (0.0, 0.0, 1.0),
    carve: bool = False,
    soft: float | None = None,
    slab: float = 0.0,
) -> ConePart:
    """A round cone; `flat` scales its thickness in the direction `toward` (made square to the axis).

    With `slab`, the cone's outline as a plate of that half thickness, square to `toward`.
    """
    a, b = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
    axis = (b - a) / np.linalg.norm(b - a)
    depth = np.asarray(toward, dtype=np.float64)
    depth = depth - (depth @ axis) * axis
    if np.linalg.norm(depth) < 1e-6:
        depth = np.eye(3)[np.argmin(np.abs(axis))]
        depth = depth - (depth @ axis) * axis
    depth = depth / np.linalg.norm(depth)
    frame = np.stack([np.cross(axis, depth), axis, depth / flat])
    reach = 0.8 * float(np.mean(radii)) if soft is None else soft
    return ConePart(joint, group, a, frame, float(np.linalg.norm(b - a)), radii, blend, carve, reach, slab)


def ball(
    joint: str,
    group: str,
    centre: ArrayLike,
    radii: float | tuple[float, float, float],
    *,
    blend: float = 0.0,
    tilt: tuple[float, float, float] = (0.0, 0.0, 0.0),
    carve: bool = False,
    soft: float | None = None,
) -> ConePart:
    """An ellipsoid; `tilt` rotates it about x, then y, then z, in degrees."""
    size = np.broadcast_to(np.asarray(radii, dtype=np.float64), 3)
    R = rotations.matrix(rotations.from_euler(np.radians(tilt[::-1]), "ZYX"))
    frame = (R / size).T * size.min()
    reach = 0.5 * float(np.median(size)) if soft is None else soft
    return ConePart(
        joint, group, np.asarray(centre, np.float64), frame, 0.0, (float(size.min()),) * 2, blend, carve, reach
    )


def chain(
    joints: Sequence[str],
    group: str,
    points: Sequence[ArrayLike],
    radii: Sequence[float],
    *,
    blend: float = 0.0,
    flat: float = 1.0,
    toward: ArrayLike = (0.0, 0.0, 1.0),
) -> list[ConePart]:
    """Round cones end to end: one for each joint, through ``len(joints) + 1`` points."""
    return [
        cone(joint, group, points[k], points[k + 1], (radii[k], radii[k + 1]), blend=blend, flat=flat, toward=toward)
        for k, joint in enumerate(joints)
    ]


def scale_parts(parts: Sequence[ConePart], centre: ArrayLike, factor: float) -> list[ConePart]:
    """The parts larger or smaller by a factor, as seen from a centre."""
    middle = np.asarray(centre, dtype=np.float64)
    return [
        replace(
            part,
            start=middle + factor * (part.start - middle),
            length=factor * part.length,
            radii=(factor * part.radii[0], factor * part.radii[1]),
            blend=factor * part.blend,
            soft=factor * part.soft,
        )
        for part in parts
    ]


def symmetric_body(
    joints: Mapping[str, tuple[str, Point]],
    groups: Sequence[BodyPart],
    parts: Sequence[ConePart],
    *,
    sturdy: int,
    ends: Mapping[str, Point],
) -> ImplicitBody:
    """A body that is mirrored at x = 0: joints, groups and ends named ".L", and parts off the middle, get a twin."""
    both = dict(joints)
    for name, (parent, (x, y, z)) in joints.items():
        if name.endswith(".L"):
            both[_other_side(name)] = (_other_side(parent), (-x, y, z))
    right = [
        replace(g, name=_other_side(g.name), parent=_other_side(g.parent)) for g in groups if g.name.endswith(".L")
    ]
    tips: dict[str, Point] = {}
    for name, (x, y, z) in ends.items():
        tips |= {name: (x, y, z)} | ({_other_side(name): (-x, y, z)} if name.endswith(".L") else {})
    return ImplicitBody(both, (*groups, *right), tuple(_mirrored(parts)), sturdy=sturdy, ends=tips)


def _other_side(name: str) -> str:
    return name[:-2] + ".R" if name.endswith(".L") else name


def _mirrored(parts: Sequence[ConePart]) -> list[ConePart]:
    """The parts and, for those of the left side (group or joint ".L", or off the middle), their mirror images."""
    flip = np.array([-1.0, 1.0, 1.0])
    result = list(parts)
    for part in parts:
        end = part.start + np.linalg.inv(part.frame)[:, 1] * part.length
        sided = part.group.endswith(".L") or part.joint.endswith(".L") or max(abs(part.start[0]), abs(end[0])) > 1e-9
        if sided:
            frame = part.frame * flip
            twin = replace(part, joint=_other_side(part.joint), group=_other_side(part.group), frame=frame)
            result.append(replace(twin, start=part.start * flip))
    return result


def sample_grid(parts: Floats, groups: Floats, origin: Floats, cell: float, values: NDArray[np.float32]) -> None:
    """Fill in the field on a grid of points ``origin + cell * index``; far from the surface only its sign.

    Cubes of samples whose middle is far from the surface get one value; near ones are cut into smaller cubes, and only
    parts near a cube are evaluated in it.
    """
    given = parts, groups, origin, cell, values
    blocks = int(np.prod([-(-side // GRID_BLOCK) for side in values.shape]))
    in_threads(lambda a, b: kernels.implicit_sample_grid(given, a, b), blocks, 8)


def project(
    points: Floats,
    targets: Floats,
    parts: Floats,
    groups: Floats,
    active: Ints,
    offsets: Floats,
    steps: int,
    limit: float,
) -> None:
    """Move points along the gradient until the field has their target value; each step goes at most `limit` far.

    active numbers the parts that count (a negative number ends a list), offsets push them away: one row for all points,
    or one for each.
    """
    given = points, targets, parts, groups, active, offsets, steps, limit
    in_threads(lambda a, b: kernels.implicit_project(given, a, b), len(points), POINTS_PER_THREAD)


def field_values(points: Floats, parts: Floats, groups: Floats, active: Ints, offsets: Floats) -> Floats:
    """(n,) the field at points; active and offsets as for `project`."""
    out = np.empty(len(points))
    given = points, parts, groups, active, offsets, out
    in_threads(lambda a, b: kernels.implicit_field_values(given, a, b), len(points), POINTS_PER_THREAD)
    return out


def nearest_part(points: Floats, parts: Floats) -> Ints:
    """(n,) the part whose surface is nearest; carved parts do not count."""
    out = np.empty(len(points), np.int64)
    in_threads(lambda a, b: kernels.implicit_nearest_part(points, parts, out, a, b), len(points), POINTS_PER_THREAD)
    return out
