"""Skins: how a file binds the vertices of a mesh to the joints of a skeleton, and clips that become skins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import NoneType
from typing import Any

import numpy as np

from pliant.core.clips import Animation
from pliant.core.errors import InputError
from pliant.core.options import Options, Whole, option
from pliant.core.shapes import Mesh, TetMesh
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.skinned import SkinnedAnimation, joint_transforms, motion_of
from pliant.core.topology import Floats, Ints
from pliant.core.validation import expect
from pliant.geometry.skin_decomposition import Decomposition, decompose, fit_correctives, fit_weights


def skin_of(mesh: Mesh, skeleton: Skeleton) -> Any:
    """Sparse (n, joints): the vertex groups that are called as joints, rows that sum to 1 or are 0; None without."""
    from scipy.sparse import csr_array

    table = csr_array((len(mesh.points), len(skeleton)))
    for name, weights in mesh.vertex_groups.items():
        if name in skeleton.names:
            rows = np.flatnonzero(weights > 0)
            column = np.full(len(rows), skeleton.index(name))
            table = table + csr_array((weights[rows], (rows, column)), shape=table.shape)
    if not table.nnz:
        return None
    total = np.asarray(table.sum(axis=1)).ravel()
    return table.multiply(1 / np.where(total > 0, total, 1)[:, None]).tocsr()


def overlap(mesh: Mesh, skin: Any) -> Floats:
    """(joints, joints) how much the flesh of two joints meets: their weights' product at vertices and across edges.

    As a cosine: 1 on the diagonal, 0 for joints that carry nothing.
    """
    from scipy.sparse import coo_array, eye_array

    n, (a, b) = len(mesh.points), mesh.edges.T
    across = coo_array((np.ones(len(a)), (a, b)), shape=(n, n)).tocsr()
    meeting = (skin.T @ ((across + across.T + eye_array(n)) @ skin)).toarray()
    size = np.sqrt(np.maximum(np.diag(meeting), 1e-300))
    found: Floats = meeting / np.outer(size, size)
    return found


def neighbouring_joints(mesh: Mesh, skin: Any, skeleton: Skeleton) -> Ints:
    """(joints,) for each joint, the one that its flesh goes on into, on the way to the first joint; -1 at the first.

    The tree of most overlap; parents decide where no flesh does.
    """
    from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

    near = overlap(mesh, skin)
    child = np.flatnonzero(skeleton.parents >= 0)
    for i, j in ((child, skeleton.parents[child]), (skeleton.parents[child], child)):
        near[i, j] = np.maximum(near[i, j], 1e-9)
    np.fill_diagonal(near, 0)
    tree = minimum_spanning_tree(np.where(near > 0, 2 - near, 0))
    result = np.full(len(skeleton), -1)
    for root in np.flatnonzero(skeleton.parents < 0):
        order, before = breadth_first_order(tree, int(root), directed=False)
        fresh = [joint for joint in order[1:] if result[joint] < 0 and joint != 0]
        result[fresh] = before[fresh]
    return result


@dataclass(frozen=True)
class SkinOptions(Options):
    """How a clip is made into a skinned one."""

    bones: int = option(40, Whole(1, 1024), "bones to find, at most, where no rig is given")
    influences: int = option(4, Whole(1, 8), "joints that move a vertex, at most")
    correctives: int = option(8, Whole(0, 64), "morph targets for what joints leave, at most")


def skin(
    clip: Animation,
    motion: Motion | None = None,
    *,
    bones: int = SkinOptions.bones,
    influences: int = SkinOptions.influences,
    correctives: int = SkinOptions.correctives,
) -> SkinnedAnimation:
    """A clip as a skinned mesh, as game engines play it: bones, weights, and a few corrective morph targets.

    motion: of the skeleton that the clip came from, whose joints it then keeps as they move; without one, bones are
    found. The result's `error` says how far it is from the clip.
    """
    expect(clip, Animation, "the clip to skin")
    expect(motion, (Motion, NoneType), "the motion to skin a clip with")
    chosen = SkinOptions(bones, influences, correctives)
    if motion is not None and bones != SkinOptions.bones:
        raise InputError(
            f"bones is {bones} beside a motion, whose joints are kept; expected one of both", argument="bones"
        )
    shape = clip.shape.surface if isinstance(clip.shape, TetMesh) else clip.shape
    if not isinstance(shape, Mesh) or not len(shape.polygons):
        raise InputError(f"a {type(clip.shape).__name__} cannot be skinned; expected a clip of a mesh with faces")
    # Near the origin and near 1 in size, where sums of squares are exact.
    origin = (shape.points.min(axis=0) + shape.points.max(axis=0)) / 2
    size = shape.diagonal or 1.0
    p, v = (shape.points - origin) / size, np.ascontiguousarray(((clip.points - origin) / size).transpose(1, 0, 2))
    if motion is None:
        found, skeleton = _jointed(shape, decompose(p, v, chosen.bones, chosen.influences))
    else:
        motion = _matching(motion, clip)
        skeleton = motion.skeleton
        R, t = joint_transforms(motion)
        found = fit_weights(p, v, R, (t + R @ origin - origin) / size, chosen.influences)
        found = _nearer(p, v, found, skin_of(shape, skeleton))
    d, c = fit_correctives(p, v, found, chosen.correctives)
    points = found.moved(p[:, None] + np.einsum("fm,mia->ifa", c, d) if len(d) else p)
    error = float(np.sqrt(((points - v) ** 2).sum(axis=-1).mean()))
    if motion is None:
        t = found.t * size + origin - found.R @ origin
        motion = motion_of(skeleton, found.R, t, clip.fps, clip.name)
    return SkinnedAnimation(
        replace(shape, vertex_groups={k: w for k, w in shape.vertex_groups.items() if k not in skeleton.names}),
        points.transpose(1, 0, 2) * size + origin,
        clip.fps,
        clip.name,
        motion=motion,
        joints=found.bone,
        weights=found.weight,
        correctives=d * size,
        curves=c,
        error=error,
    )


def _nearer(p: Floats, v: Floats, found: Decomposition, own: Any) -> Decomposition:
    """The weights that were found; at vertices where they are nearer to the clip, those of the file, (n, joints)."""
    if own is None:
        return found
    table = own.toarray()
    bone = np.argsort(-table, axis=1, kind="stable")[:, : found.bone.shape[1]]
    weight = np.take_along_axis(table, bone, axis=1)
    gap = found.bone.shape[1] - bone.shape[1]
    bone, weight = np.pad(bone, ((0, 0), (0, gap))), np.pad(weight, ((0, 0), (0, gap)))
    total = weight.sum(axis=1)
    given = replace(found, bone=bone, weight=weight / np.where(total > 0, total, 1)[:, None])
    away = [np.linalg.norm(v - skin.moved(p), axis=(1, 2)) for skin in (found, given)]
    better = ((away[1] < away[0]) & (total > 0))[:, None]
    return replace(
        found, bone=np.where(better, given.bone, found.bone), weight=np.where(better, given.weight, found.weight)
    )


def _matching(motion: Motion, clip: Animation) -> Motion:
    """The motion at the clip's rate, in as many frames; one more or less at the end, from rounding, is made up."""
    motion = motion if motion.fps == clip.fps else motion.resampled(clip.fps)
    if abs(len(motion) - len(clip)) > 1:
        raise InputError(
            f"the motion has {len(motion)} frames at {clip.fps:g} fps, the clip has {len(clip)}; expected as many: "
            "give the motion that the clip was made with",
            argument="motion",
        )
    rows = np.minimum(np.arange(len(clip)), len(motion) - 1)
    return replace(motion.chosen(rows), channels=None)


def _jointed(mesh: Mesh, found: Decomposition) -> tuple[Decomposition, Skeleton]:
    """The bones that carry something, in the order of a tree from the heaviest to where its flesh goes on, as joints.

    Each stands in the middle of what it carries.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

    n, bones = len(mesh.points), len(found.R)
    rows = np.repeat(np.arange(n), found.bone.shape[1])
    table = csr_array((found.weight.ravel(), (rows, found.bone.ravel())), shape=(n, bones))
    mass = np.asarray(table.sum(axis=0)).ravel()
    near, root = overlap(mesh, table), int(mass.argmax())
    near[root] = near[:, root] = np.maximum(near[root], 1e-9)  # parts that nothing joins hang on the heaviest
    np.fill_diagonal(near, 0)
    near[mass == 0] = near[:, mass == 0] = 0
    order, before = breadth_first_order(minimum_spanning_tree(np.where(near > 0, 2 - near, 0)), root, directed=False)
    number = np.full(bones + 1, -1)
    number[order] = np.arange(len(order))
    parents = number[np.maximum(before[order], -1)]
    centres = np.asarray(table.T @ mesh.points)[order] / mass[order, None]
    names = [f"bone {k}" for k in range(len(order))]
    kept = replace(found, bone=np.maximum(number[found.bone], 0), R=found.R[order], t=found.t[order])
    return kept, Skeleton.from_positions(centres, parents, names)
