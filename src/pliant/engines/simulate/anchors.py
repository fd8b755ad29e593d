"""How joints hold flesh that no bone of theirs runs through.

Rigs have joints that lie beside the flesh they move: hips and roots on the ground, toes, tips. The flesh that belongs
to such a joint follows it as flesh around a bone does: its *core* moves rigidly with the joint. Core are the points of
that flesh that lie midway between the surfaces around it. Each is a sample like those of bones, and stands for the
square of their distance.

Which flesh belongs to a joint is what the file's skin says. Where it says nothing, a joint outside the body owns what
is nearer to its bones than to any other, if that is more than a trifle and not far, and no bone of its leads inside.

Samples of bones where the skin binds the flesh to other joints are left out: so do the controls of a rig, which lie in
the flesh that they do not hold. A joint that the skin gives no flesh of its own (a foot that is half bound to the root)
holds it as the skin does: its samples move by linear blend skinning.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import InputError
from pliant.core.skeleton import Skeleton
from pliant.core.topology import Floats, Ints
from pliant.engines.simulate.binding import Binding
from pliant.engines.simulate.bone_samples import BONE_RADIUS, THINNEST, BoneSamples, sample_bones
from pliant.engines.simulate.bones import Bones, find_bones, rest_segments
from pliant.engines.simulate.interior import Chunks, fill
from pliant.geometry.segments import nearest_segment
from pliant.geometry.spatial import SurfaceTree

LEAST_WEIGHT = 0.5
"""Of a bone in the skin, over the largest weight there, below which it does not hold the flesh around it."""
LEAST_SHARE = 1e-5
"""Of all flesh, that a joint has to own by the skin to hold it."""
NEAREST_SHARE = 0.02
"""The same where no skin says what it owns."""
FARTHEST_JOINT = 0.1
"""Distance of a joint from its flesh, over the diagonal, where no skin says what it owns."""
RINGS_TO_HOLD = 3
"""Rings of samples around its bones by which a joint holds its flesh."""
ITS_OWN = 0.9
"""Weight in the skin, at any of its samples, from which on a joint has flesh of its own."""
SAME_DEPTH, SAME_WEIGHT = 1e-7, 1e-6
"""Distance, over the diagonal, and weight that are rounding."""
CORE_SPACING = 0.8
"""Distance of the points of a core, or of a rigid region, over that of the nodes."""


def hold(binding: Binding, skeleton: Skeleton, spacing: float) -> tuple[BoneSamples, Ints]:
    """The samples of all bones, and the bones (c,) that carry vertices with frames of their joints."""
    tree = binding.surface
    chunks = fill(tree, spacing / 2)
    owned = _owned(binding, skeleton, chunks)
    holding = None if binding.skin is None else np.flatnonzero(owned.any(axis=0))
    bones = replace(find_bones(skeleton, tree, holding, binding.middles), beside=binding.beside)
    samples = _agreeing(_sampled(bones, tree, spacing, binding), binding)
    lacking = _lacking(samples, owned, chunks, bound=binding.skin is not None)
    joints = np.union1d(binding.joints, lacking).astype(np.int64)
    every = bones.with_carriers(joints, 0.05 * tree.diagonal)
    step = CORE_SPACING * spacing
    cores = [(int(j), core(chunks.points[owned[:, j]], tree, step)) for j in lacking]
    cores += [(j, points[_apart(points, step)]) for j, points in _stiff(binding, chunks).items()]
    points = np.concatenate([np.zeros((0, 3)), *(points for _, points in cores)])
    joint = np.repeat(np.array([j for j, _ in cores], dtype=np.int64), [len(points) for _, points in cores])
    bone = len(bones) + np.searchsorted(joints, joint)
    radii = np.maximum(BONE_RADIUS * tree.closest(points).distance, THINNEST * tree.diagonal)
    samples = replace(samples, bones=every).with_points(points, bone, np.full(len(points), step**2), radii)
    return _skinned(samples, binding), len(bones) + np.searchsorted(joints, binding.joints)


def _owned(binding: Binding, skeleton: Skeleton, chunks: Chunks) -> NDArray[np.bool_]:
    """(k, joints) which chunks belong to each joint."""
    if binding.skin is not None:
        return np.asarray(binding.at(chunks.points) > 0.5 + SAME_WEIGHT)
    owned = np.zeros((len(chunks.points), len(skeleton)), dtype=bool)
    starts, stops, owner = rest_segments(skeleton)
    t = np.linspace(0, 1, 9)[:, None, None]
    along = ((1 - t) * starts + t * stops).reshape(-1, 3)
    inside = np.any(binding.surface.inside(along).reshape(len(t), -1), axis=0)
    nearest, away = nearest_segment(chunks.points, starts, stops)
    near = np.flatnonzero((away < FARTHEST_JOINT * binding.surface.diagonal) & ~np.asarray(inside)[nearest])
    owned[near, owner[nearest[near]]] = True
    return owned


def _lacking(samples: BoneSamples, owned: NDArray[np.bool_], chunks: Chunks, *, bound: bool) -> Ints:
    """Joints that own flesh but whose bones are too short to hold it."""
    of_bones = samples.joint < 0
    rings = np.unique(np.stack([samples.bone[of_bones], samples.along[of_bones]]), axis=1)
    count = np.bincount(samples.bones.joint[rings[0].astype(np.int64)], minlength=owned.shape[1])
    share = chunks.volumes @ owned / chunks.volumes.sum()
    return np.flatnonzero((share > (LEAST_SHARE if bound else NEAREST_SHARE)) & (count < RINGS_TO_HOLD))


def _stiff(binding: Binding, chunks: Chunks) -> dict[int, Floats]:
    """By joint, the chunks in flesh whose surface moves with the joint."""
    if binding.carried is None:
        return {}
    tree = binding.surface
    foot = tree.closest(chunks.points)
    corners = tree.triangles[foot.triangle]
    stiff = np.diff(binding.carried.indptr) > 0
    inside = np.flatnonzero(stiff[corners].all(axis=1))
    nearest = corners[inside, np.argmax(foot.barycentric[inside], axis=1)]
    joint = np.asarray(binding.carried[nearest].argmax(axis=1)).ravel()
    return {int(j): chunks.points[inside[joint == j]] for j in np.unique(joint)}


def _sampled(bones: Bones, tree: SurfaceTree, spacing: float, binding: Binding) -> BoneSamples:
    """The samples along the bones; none if all of them are outside and the skin says what flesh they hold."""
    try:
        return sample_bones(bones, tree, spacing)
    except InputError:
        if binding.skin is None:
            raise
        points, numbers, values = np.zeros((0, 3)), np.zeros(0, dtype=np.int64), np.zeros(0)
        return BoneSamples(bones, points, numbers, values, points, numbers, values, values)


def _agreeing(samples: BoneSamples, binding: Binding) -> BoneSamples:
    """The samples whose joint the skin binds the flesh around them to."""
    if binding.skin is None:
        return samples
    weights = binding.at(samples.points)
    own = weights[np.arange(len(samples)), samples.bones.joint[samples.bone]]
    return samples.chosen(np.flatnonzero(own > LEAST_WEIGHT * weights.max(axis=1) + SAME_WEIGHT))


def _skinned(samples: BoneSamples, binding: Binding) -> BoneSamples:
    """Samples of joints that the skin gives no flesh of their own, as skinning moves them."""
    from scipy.sparse import csr_array

    if binding.skin is None:
        return samples
    joint, most = samples.bones.joint[samples.bone], np.zeros(len(samples.bones.skeleton))
    np.maximum.at(most, joint, binding.at(samples.points)[np.arange(len(samples)), joint])
    shared = most[joint] < ITS_OWN
    return replace(samples, skin=csr_array(shared[:, None] * binding.by_bones(samples.points, samples.bones)))


def core(points: Floats, tree: SurfaceTree, spacing: float) -> Floats:
    """Of points inside a surface, those midway between the surfaces around, `spacing` apart; at least the deepest.

    Points midway between the faces of an edge are not: there is deeper flesh near.
    """
    from scipy.spatial import cKDTree

    foot = tree.closest(points)
    inward = points - foot.points
    midway = tree.closest(points + 0.4 * inward).distance < 1.2 * foot.distance
    midway[np.argmax(foot.distance)] = True
    chosen = np.flatnonzero(midway)
    around = cKDTree(points).query_ball_point(points[chosen], 3 * foot.distance[chosen])
    deepest = np.array([foot.distance[others].max() for others in around])
    chosen = chosen[foot.distance[chosen] > 0.5 * deepest]
    # Rounding must not decide between points that are as deep as each other, as those of both sides of a body are.
    depth = np.round(foot.distance[chosen] / (SAME_DEPTH * tree.diagonal))
    chosen = chosen[np.argsort(-depth, kind="stable")]
    return points[chosen[_apart(points[chosen], spacing)]]


def _apart(points: Floats, distance: float) -> Ints:
    """Points, chosen in order, that are at least `distance` from all that were chosen before."""
    from scipy.spatial import cKDTree

    near = cKDTree(points).query_ball_point(points, distance)
    taken = np.ones(len(points), dtype=bool)
    for k, others in enumerate(near):
        taken[[other for other in others if other > k]] &= not taken[k]
    return np.flatnonzero(taken)
