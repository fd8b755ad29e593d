"""Skin weights that follow the surface, and poses that keep their volume.

Weights: each vertex starts with the joint of the part it lies on. These labels diffuse over the surface,

    (M / s² + L) w = (M / s²) w₀        L the cotangent Laplacian, M vertex areas, s the part's softness,

which reaches about s far along the skin and never through the air: a finger does not move its neighbour.

Poses: vertices move by the blended dual quaternions of their joints (Kavan 2007). Where joints mix, they are then
projected onto the blended parts in their new positions, until the field there has the value that it had at rest, as in
implicit skinning (Vaillant 2013). Each vertex sees only the parts of joints that move it, so that what merely touches
does not fuse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pliant.core import rotations
from pliant.core.clips import Animation, Shapes
from pliant.core.shapes import Mesh
from pliant.core.skeleton import Motion, Skeleton, SkeletonPose
from pliant.core.topology import Floats, Ints
from pliant.gallery.coats import Coat
from pliant.gallery.implicit import ImplicitBody, field_values, nearest_part, posed_parts, project
from pliant.gallery.surface_nets import body_mesh, neighbour_mean

TORN_SKIN_STRETCH = 3.5
"""Stretch of an edge beyond which the skin around it counts as torn."""


@dataclass(frozen=True, eq=False)
class SkinnedMesh:
    """A body's mesh at rest with its weights, ready to be posed."""

    body: ImplicitBody
    mesh: Mesh
    weights: Floats
    """(n, joints), rows sum to 1."""
    mixed: Ints
    """Vertices that more than one joint moves."""
    active: Ints
    """(mixed, k) the parts of the joints that move each of those vertices; -1 fills the rows."""
    offsets: Floats
    """(mixed, k) how far these parts are pushed away: 0 unless their joint hardly counts."""
    rest_values: Floats
    """(mixed,) the field that each such vertex sees at rest."""

    def pose(self, pose: SkeletonPose) -> Floats:
        """(n, 3) the vertices in a pose of the body's skeleton."""
        positions, quaternions = pose.world()
        points, spin = dual_quaternion_blend(self.mesh.points, self.weights, self.body.skeleton, positions, quaternions)
        bulge = rotations.rotate(spin[self.mixed], self.bulge)
        parts = posed_parts(self.body, rotations.matrix(quaternions), positions)
        limit = 0.01 * self.mesh.diagonal
        for relax in (0.0, 0.4, 0.4):
            before = points[self.mixed]
            after = before + relax * self.give * (self.average[self.mixed] @ points - before - bulge)
            project(after, self.rest_values, parts, self.body.group_table, self.active, self.offsets, 4, limit)
            move = np.zeros_like(points)
            move[self.mixed] = self.give * (after - before)
            for _ in range(max(1, min(len(points) // 4000, 30))):
                move = 0.4 * move + 0.6 * (self.average @ move)
            points = points + move
        return self.mended(points)

    def mended(self, points: Floats) -> Floats:
        """Where the skin has torn, in the webs between fingers and in armpits, the patch around it is pulled smooth."""
        ends = self.mesh.edges

        def length(points: Floats) -> Floats:
            return np.linalg.norm(points[ends[:, 0]] - points[ends[:, 1]], axis=1)

        patch = np.zeros(len(points))
        patch[ends[length(points) > TORN_SKIN_STRETCH * length(self.mesh.points)]] = 1
        for _ in range(2):
            patch = patch + self.average @ patch
        inside = np.flatnonzero(patch)
        for _ in range(min(len(points) // 250, 30)):  # of a coarse mesh a patch is half a limb
            points[inside] = self.average[inside] @ points
        return points

    @cached_property
    def give(self) -> Floats:
        """(mixed, 1) how far a vertex may leave where its joints put it: 0 where one joint rules, 1 where two share."""
        top = self.weights[self.mixed].max(axis=1, keepdims=True)
        return np.clip((0.98 - top) * 6, 0, 1)

    @cached_property
    def bulge(self) -> Floats:
        """(mixed, 3) from each vertex to the mean of its neighbours, at rest."""
        return self.average[self.mixed] @ self.mesh.points - self.mesh.points[self.mixed]

    @cached_property
    def average(self) -> Any:
        """Sparse (n, n), see `neighbour_mean`."""
        return neighbour_mean(self.mesh.polygons, len(self.mesh.points))


def skinned(body: ImplicitBody, n: int, coat: Coat | None = None) -> SkinnedMesh:
    """The body's mesh with about n vertices, its weights as vertex groups, and its coat's colours."""
    mesh = body_mesh(body, n)
    label = nearest_part(mesh.points, body.part_table)
    weights = diffused_weights(mesh, body.part_joint[label], np.array([p.soft for p in body.parts])[label], body)
    groups = {name: weights[:, j] for j, name in enumerate(body.skeleton.names) if weights[:, j].any()}
    limbs = np.array([part.group.removesuffix(".L").removesuffix(".R") for part in body.parts])[label]
    colors = {"color": coat(mesh, limbs)} if coat else {}
    mesh = Mesh(mesh.points, mesh.polygons, attributes=colors, vertex_groups=groups)
    mixed = np.flatnonzero(weights.max(axis=1) < 0.98)
    active, offsets = _seen_parts(body, weights[mixed])
    rest = field_values(mesh.points[mixed], body.part_table, body.group_table, active, offsets)
    return SkinnedMesh(body, mesh, weights, mixed, active, offsets, rest)


def _seen_parts(body: ImplicitBody, weights: Floats) -> tuple[Ints, Floats]:
    """The parts whose joints move each vertex, and how far they are pushed away where the weight fades out."""
    size = np.array([min(p.radii) / np.linalg.norm(p.frame, axis=1).max() for p in body.parts])
    share = weights[:, body.part_joint]
    order = np.argsort(share == 0, axis=1, kind="stable")[:, : max(1, int((share > 0).sum(axis=1).max(initial=1)))]
    share = np.take_along_axis(share, order, axis=1)
    offsets = 4 * np.clip(1 - share / 0.06, 0, 1) * np.maximum(size, 0.1 * np.median(size))[order]
    return np.where(share > 0, order, -1), offsets


def diffused_weights(mesh: Mesh, joint: Ints, soft: Floats, body: ImplicitBody) -> Floats:
    """(n, joints) weights from one joint per vertex and the length over which each fades into its neighbours."""
    from scipy.sparse import diags
    from scipy.sparse.linalg import splu

    count = len(mesh.points)
    L, area = _laplacian(mesh.points, mesh.triangles)
    hold = area / _smoothed(soft, mesh) ** 2
    start = np.zeros((count, len(body.skeleton)))
    start[np.arange(count), joint] = 1
    used = start.any(axis=0)
    solver = splu(
        (L + diags(hold)).tocsc(), diag_pivot_thresh=0.0, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}
    )
    weights = np.zeros_like(start)
    weights[:, used] = solver.solve(hold[:, None] * start[:, used])
    weights = np.maximum(weights - 0.03, 0.0)  # diffusion's long tails end here
    return weights / weights.sum(axis=1, keepdims=True)


def _smoothed(values: Floats, mesh: Mesh, rounds: int = 3) -> Floats:
    average = neighbour_mean(mesh.polygons, len(mesh.points))
    for _ in range(rounds):
        values = 0.5 * (values + average @ values)
    return values


def _laplacian(points: Floats, triangles: Ints) -> tuple[Any, Floats]:
    """Cotangent Laplacian (positive semi-definite, weights kept positive) and vertex areas."""
    from scipy.sparse import coo_matrix, diags

    rows, columns, values = [], [], []
    area = np.zeros(len(points))
    for k in range(3):
        a, b, c = triangles[:, k], triangles[:, (k + 1) % 3], triangles[:, (k + 2) % 3]
        u, v = points[b] - points[a], points[c] - points[a]
        double = np.linalg.norm(np.cross(u, v), axis=1)
        cotangent = np.einsum("ij,ij->i", u, v) / np.maximum(double, 1e-12 * np.mean(double))
        np.add.at(area, a, double / 6)
        rows.append(b)
        columns.append(c)
        values.append(np.clip(cotangent, 0.05, 20) / 2)
    W = coo_matrix((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(len(points),) * 2)
    W = (W + W.T).tocsr()
    return diags(np.asarray(W.sum(axis=1)).ravel()) - W, np.maximum(area, 1e-6 * area.mean())


def dual_quaternion_blend(
    points: Floats, weights: Floats, skeleton: Skeleton, positions: Floats, quaternions: Floats
) -> tuple[Floats, Floats]:
    """Points moved rigidly, each by the normalised mean of its joints' unit dual quaternions; and its rotation."""
    rest = skeleton.rest_pose().world()[0]
    quaternions = quaternions.copy()
    for j, parent in enumerate(skeleton.parents):
        if parent >= 0:
            quaternions[j] = rotations.align_signs(quaternions[j], quaternions[parent])
    shift = positions - rotations.rotate(quaternions, rest)
    dual = 0.5 * rotations.multiply(np.concatenate([np.zeros((len(shift), 1)), shift], axis=1), quaternions)
    real, moving = weights @ quaternions, weights @ dual
    norm = np.linalg.norm(real, axis=1, keepdims=True)
    real, moving = real / norm, moving / norm
    move = 2 * rotations.multiply(moving, rotations.inverse(real))[:, 1:]
    return rotations.rotate(real, points) + move, real


RotationAxis = str | tuple[float, float, float]
JointRotations = Mapping[str, Sequence[tuple[RotationAxis, float]]]
"""Joint name to rotations about axes of its own frame: ("x", degrees) or (vector, degrees)."""


def rotated(skeleton: Skeleton, joint_rotations: JointRotations, *, root: ArrayLike | None = None) -> SkeletonPose:
    """A pose from degrees about the joints' own axes; the last-named rotation acts first."""
    quaternions = {}
    for name, steps in joint_rotations.items():
        q = rotations.IDENTITY
        for axis, angle in steps:
            vector = np.eye(3)["xyz".index(axis)] if isinstance(axis, str) else axis
            q = rotations.multiply(q, rotations.from_axis_angle(vector, np.radians(angle)))
        quaternions[name] = q
    return skeleton.pose(quaternions, root=root)


def aimed(pose: SkeletonPose, targets: Mapping[str, ArrayLike]) -> SkeletonPose:
    """The pose with each named joint rotated by the smallest angle so that its bone points to a direction in the world.

    A joint's bone leads to its first child, or to its end. Name parents before children.
    """
    skeleton = pose.skeleton
    quaternions = pose.rotations.copy()
    for name, direction in targets.items():
        j = skeleton.index(name)
        children = np.flatnonzero(skeleton.parents == j)
        bone = skeleton.offsets[children[0]] if len(children) else skeleton.ends[j]
        world = SkeletonPose(skeleton, quaternions, pose.translations).world()[1]
        goal = rotations.rotate(rotations.inverse(world[j]), np.asarray(direction, dtype=np.float64))
        quaternions[j] = rotations.multiply(quaternions[j], rotations.between(bone, goal))
    return SkeletonPose(skeleton, quaternions, pose.translations)


def mirrored_rotations(joint_rotations: JointRotations) -> dict[str, list[tuple[RotationAxis, float]]]:
    """Rotations of the left side's joints for the right side: about x the same, about y and z the other way."""
    return {
        name[:-2] + ".R": [(axis, angle if axis == "x" else -angle) for axis, angle in steps]
        for name, steps in joint_rotations.items()
    }


def posed_shapes(
    skin: SkinnedMesh, poses: Mapping[str, SkeletonPose | JointRotations], base: str, *, grounded: bool = False
) -> Shapes:
    """The mesh at rest, called `base`, and its named poses; grounded ones stand as low as the base does."""
    skeleton = skin.body.skeleton
    posed = (pose if isinstance(pose, SkeletonPose) else rotated(skeleton, pose) for pose in poses.values())
    points = [skin.mesh.points, *map(skin.pose, posed)]
    if grounded:
        points = [p + np.array([0.0, points[0][:, 1].min() - p[:, 1].min(), 0.0]) for p in points]
    return Shapes(skin.mesh, np.stack(points), (base, *poses))


def animated(skin: SkinnedMesh, motion: Motion) -> Animation:
    """The mesh in every frame of a motion of its skeleton."""
    return Animation(skin.mesh, np.stack([skin.pose(pose) for pose in motion]), fps=motion.fps, name=motion.name)
