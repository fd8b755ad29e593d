"""Retargeting: a skeleton's motion transferred to another skeleton.

*By structure*, where joints are not called alike: the limbs of both bodies are found and matched, limbs point where the
motion's point, and feet stay on the ground (`pliant.geometry.body_plan`).

*Joint by joint*, where they are, or where pairs are given. Let a joint j of the skeleton follow the joint s of the
motion. With W the joints' rotations in the world, 0 at rest, T and Q the rotations from the motion's space to the
skeleton's and, at rest, back, and A_j the smallest rotation from the bone of j to that of s, both at rest,

    W_j(t) = T (W_s(t) W_s0⁻¹) Q A_j W_j0

so bones point where those of the motion point, whatever the two rest poses are. T and Q are how the two bodies stand,
where that is known; else Q = T⁻¹, and T is fitted to the joints at rest. Joints that follow none keep their local
rotation; joints above the first that follows one move rigidly with it. Bones keep their lengths: only roots are
translated. The first joint that follows one starts at its rest position and repeats the displacement of the joint that
it follows, scaled by the ratio of the bones' lengths. The lowest joint of the whole motion is as high as the lowest at
rest, so that feet stay on the ground.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import get_args

import numpy as np

from pliant.core import rotations
from pliant.core.errors import InputError, PliantWarning
from pliant.core.shapes import Mesh, Shape
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Floats
from pliant.core.validation import closest_names
from pliant.geometry.axes import SignedAxis, up_vector
from pliant.geometry.body_plan.bodies import OrientedBody, skeleton_body
from pliant.geometry.body_plan.matching import LEAST_CONFIDENCE
from pliant.geometry.body_plan.moving import moving_skeleton, without_reference_pose
from pliant.geometry.body_plan.names import plain
from pliant.geometry.body_plan.retargeted import Hints, Retargeted, onto_skeleton

JointPairs = dict[int, int]
"""From joints of a skeleton to the joints of a motion that they follow."""
REST_POSE_TOLERANCE = 1e-3
"""Difference of two rest poses, over their size, up to which they are one."""
SQUARE = 35.0
"""Degrees up to which a fitted rotation snaps to one that maps axes to axes: models stand along the axes."""
FLATNESS_LIMIT = 0.05
"""Thickness over length of a set of joints below which it does not determine where a body faces."""
JOINTS_NAMED = 6
"""Joints that an error names."""


def retarget(
    motion: Motion,
    skeleton: Skeleton,
    names: Mapping[str, str] | None = None,
    *,
    up: SignedAxis | None = None,
    mesh: Shape | None = None,
) -> Motion:
    """The motion on another skeleton.

    names: from joints of the skeleton to joints of the motion, besides those that are called alike ("" leaves a joint
    as it is in its parent's frame); all others go along with their parents. Without them, joints follow those that are
    called alike; if there are others, limbs follow limbs.
    up: the axis of the skeleton that points away from the ground; y, or found, if not given. mesh: what the skeleton
    moves, which helps to find its limbs.
    """
    return retargeted(motion, skeleton, names, up=up, mesh=mesh).motion


@dataclass(frozen=True, eq=False)
class MappedMotion:
    """A motion on a skeleton, and which joints follow which."""

    motion: Motion
    names: Mapping[str, str] = field(default_factory=dict)
    """From joints of the skeleton to those that they follow; empty if the two skeletons are one."""
    limbs: Retargeted | None = None
    """How limbs were matched, where they were."""
    joints: tuple[str, ...] = ()
    """Those of the motion as it was given; none if the two skeletons are one."""


def retargeted(
    motion: Motion,
    skeleton: Skeleton,
    names: Mapping[str, str] | None = None,
    *,
    up: SignedAxis | None = None,
    mesh: Shape | None = None,
    body: OrientedBody | None = None,
) -> MappedMotion:
    """As `retarget`, with what was found.

    body: that of a skeleton which was found in a shape. Then limbs follow limbs first, and names take precedence.
    """
    for thing, kind in ((motion, Motion), (skeleton, Skeleton)):
        if not isinstance(thing, kind):
            raise InputError(f"got a {type(thing).__name__}; expected a {kind.__name__}")
    if not names and _is_same(motion.skeleton, skeleton):
        return MappedMotion(replace(motion, skeleton=skeleton))
    if up is not None and up not in get_args(SignedAxis):
        raise InputError(f"up is {up!r:.40}; expected one of {', '.join(get_args(SignedAxis))}", argument="up")
    given = dict(names or {})
    if body is None:
        try:
            pairs = matched_joints(skeleton, motion.skeleton, given)
        except MissingJointsError as missing:
            if given:
                raise
            return _by_limbs(motion, skeleton, up, mesh, None, missing)
    else:
        structure: Mapping[str, str] = {}
        try:
            matched = _by_limbs(motion, skeleton, up, mesh, body, None)
            if not given:
                return matched
            structure = matched.names
        except InputError:
            if not given:
                raise
        pairs = matched_joints(skeleton, motion.skeleton, {**structure, **given})
    moved = _followed(motion, skeleton, pairs, *_frames(motion, skeleton, pairs, up, mesh, body))
    followed = {skeleton.names[j]: motion.skeleton.names[k] for j, k in pairs.items()}
    return MappedMotion(moved, followed, joints=tuple(motion.skeleton.names))


def _by_limbs(
    motion: Motion,
    skeleton: Skeleton,
    up: SignedAxis | None,
    mesh: Shape | None,
    body: OrientedBody | None,
    missing: MissingJointsError | None,
) -> MappedMotion:
    """The motion on a skeleton whose joints have other names; an error if its limbs do not match either."""
    source = moving_skeleton(without_reference_pose(motion))
    try:
        found = onto_skeleton(
            source, skeleton, mesh, Hints(up=up, advice=_example(skeleton, motion.skeleton)), body=body
        )
    except InputError as unlike:
        if missing is None:
            raise
        raise MissingJointsError(f"{missing}; limbs do not match either: {unlike}") from None
    return MappedMotion(found.motion, found.joint_map(), found, tuple(motion.skeleton.names))


def _frames(
    motion: Motion,
    skeleton: Skeleton,
    pairs: JointPairs,
    up: SignedAxis | None,
    mesh: Shape | None,
    body: OrientedBody | None,
) -> tuple[Floats, Floats, Floats]:
    """T and Q (3, 3) and up (3,): from how the two bodies stand or, where that is not clear, fitted to the joints."""
    try:
        source = moving_skeleton(motion)
        target = body or skeleton_body(skeleton, mesh if isinstance(mesh, Mesh) else None, up)
    except InputError:
        pass
    else:
        if all(each.anatomy.legs and each.certainty >= LEAST_CONFIDENCE for each in (source.body, target)):
            return target.frame.T @ source.world, source.body.frame.T @ target.frame, target.frame[1]
    fitted = _facing(motion.skeleton.rest_world[0][list(pairs.values())], skeleton.rest_world[0][list(pairs)])
    return fitted, fitted.T, up_vector(up or "y")


def _is_same(one: Skeleton, other: Skeleton) -> bool:
    """Whether two skeletons are one: joints, order and rest pose."""
    if one.names != other.names or not np.array_equal(one.parents, other.parents):
        return False
    size = max(float(np.abs(other.offsets).max()), 1e-300)
    rotated = 1 - np.abs(np.einsum("ji,ji->j", one.rest_rotations, other.rest_rotations))
    moved = np.abs(one.offsets - other.offsets).max()
    return bool(moved <= REST_POSE_TOLERANCE * size and rotated.max() <= REST_POSE_TOLERANCE**2)


def matched_joints(skeleton: Skeleton, source: Skeleton, names: Mapping[str, str] | None = None) -> JointPairs:
    """Which joint of a skeleton follows which of another one: as given, and where names are alike.

    Alike are names that differ in case, in what stands before a colon, and in dots, dashes, underscores and blanks.
    """
    given = dict(names or {})
    for joint, other in given.items():
        if joint not in skeleton.names:
            raise InputError(
                f'the skeleton has no joint "{joint}"; {closest_names(joint, skeleton.names)}',
                argument=("names", joint),
            )
        if other and other not in source.names:
            raise InputError(
                f'the motion has no joint "{other}"; {closest_names(other, source.names)}', argument=("names", joint)
            )
    written = {plain(name): k for k, name in reversed(list(enumerate(source.names)))}
    pairs: JointPairs = {}
    for j, name in enumerate(skeleton.names):
        if name in given:
            if given[name]:
                pairs[j] = source.index(given[name])
        elif name in source.names:
            pairs[j] = source.index(name)
        elif plain(name) in written:
            pairs[j] = written[plain(name)]
    missing = [name for j, name in enumerate(skeleton.names) if j not in pairs and given.get(name) != ""]
    if missing and (not given or not pairs):
        raise MissingJointsError(_missing_message(missing, skeleton, source))
    if missing:
        listed = ", ".join(missing[:JOINTS_NAMED]) + (", ..." if len(missing) > JOINTS_NAMED else "")
        warnings.warn(f"joints without a motion go along with their parents: {listed}", PliantWarning, stacklevel=3)
    return pairs


class MissingJointsError(InputError):
    """A motion that lacks joints of a skeleton."""


def closest_joints(names: Sequence[str], source: Skeleton) -> dict[str, str]:
    """By joint, the one of a source that is called most like it; "" if none is."""
    written = {plain(name): name for name in reversed(source.names)}
    near = {name: get_close_matches(plain(name), list(written), 1, cutoff=0.5) for name in names}
    return {name: written[found[0]] if found else "" for name, found in near.items()}


def _missing_message(missing: Sequence[str], skeleton: Skeleton, source: Skeleton) -> str:
    near = closest_joints(missing, source)
    listed = [f"{name} (close: {near[name]})" if near[name] else name for name in missing[:JOINTS_NAMED]]
    more = f", ... ({len(missing)} in all)" if len(missing) > JOINTS_NAMED else ""
    there = ", ".join(source.names[:JOINTS_NAMED]) + (", ..." if len(source) > JOINTS_NAMED else "")
    return (
        f"the motion has no joint for {len(missing)} of the skeleton's {len(skeleton)}: {', '.join(listed)}{more}; it "
        f"has {there}; {_example(skeleton, source, missing[0])}"
    )


def _example(skeleton: Skeleton, source: Skeleton, joint: str = "") -> str:
    return f"map them, such as {joint or skeleton.names[0]}={source.names[0]}"


def _followed(
    motion: Motion, skeleton: Skeleton, pairs: JointPairs, to_target: Floats, from_target: Floats, up: Floats
) -> Motion:
    """The motion by the equation above, on the ground: with T and Q (3, 3), and up (3,)."""
    source = motion.skeleton
    rest, rest_rotations = skeleton.rest_pose().world()
    rest_there, source_rest_rotations = source.rest_pose().world()
    positions, moved = motion.world()
    T, Q = (rotations.quaternion(R) for R in (to_target, from_target))
    bones = _mapped_bones(skeleton, pairs)
    scale = _scale(rest, rest_there, bones, pairs)
    aligned = _alignment(skeleton, rest, rotations.rotate(rotations.inverse(Q), rest_there), bones, pairs)
    since = rotations.multiply(moved, rotations.inverse(source_rest_rotations))
    rotated = rotations.multiply(rotations.multiply(T, since), Q)
    world = np.empty((len(motion), len(skeleton), 4))
    local_rotations = np.tile(skeleton.rest_rotations, (len(motion), 1, 1))
    local_positions = np.tile(skeleton.offsets, (len(motion), 1, 1))
    roots = _led_roots(skeleton, source, pairs)
    for j, parent in enumerate(skeleton.parents.tolist()):
        above = world[:, parent] if parent >= 0 else rotations.IDENTITY
        if j in pairs:
            world[:, j] = rotations.multiply(rotated[:, pairs[j]], rotations.multiply(aligned[j], rest_rotations[j]))
            local_rotations[:, j] = rotations.multiply(rotations.inverse(above), world[:, j])
        else:
            world[:, j] = rotations.multiply(above, skeleton.rest_rotations[j])
        if j in roots:
            lead, guide = roots[j]
            rotation = rotated[:, guide] if guide >= 0 else rotations.IDENTITY
            if j not in pairs:
                world[:, j] = local_rotations[:, j] = rotations.multiply(rotation, rest_rotations[j])
            displacement = rotations.rotate(T, positions[:, pairs[lead]] - positions[0, pairs[lead]])
            local_positions[:, j] = rest[lead] + scale * displacement - rotations.rotate(rotation, rest[lead] - rest[j])
    found = replace(
        motion, skeleton=skeleton, rotations=local_rotations, translations=local_positions, channels=None, scales=None
    )
    return _grounded(found, list(roots), rest, up)


def _led_roots(skeleton: Skeleton, source: Skeleton, pairs: JointPairs) -> dict[int, tuple[int, int]]:
    """From roots to the first joint below that follows one, and the joint of the motion that the root rotates with.

    That is the one which the first joint follows or, where several branches have a first one, what is above all those
    that they follow (-1: nothing is).
    """
    firsts: dict[int, list[int]] = {}
    for j in sorted(pairs):
        above = _above(skeleton, j)
        if not any(k in pairs for k in above):
            firsts.setdefault(above[-1] if above else j, []).append(j)
    roots = {}
    for root, found in firsts.items():
        lines = [[pairs[j], *_above(source, pairs[j])] for j in found]
        roots[root] = (found[0], next((k for k in lines[0] if all(k in line for line in lines)), -1))
    return roots


def _above(skeleton: Skeleton, j: int) -> list[int]:
    """The joints above one, up to the root."""
    line = []
    while (j := int(skeleton.parents[j])) >= 0:
        line.append(j)
    return line


def _grounded(motion: Motion, roots: Sequence[int], rest: Floats, up: Floats) -> Motion:
    """The motion raised or lowered as a whole, so that its lowest joint is as high as the lowest at rest."""
    positions = motion.translations.copy()
    positions[:, roots] += up * ((rest @ up).min() - (motion.world()[0] @ up).min())
    return replace(motion, translations=positions)


def _mapped_bones(skeleton: Skeleton, pairs: JointPairs) -> dict[int, list[int]]:
    """From joints that follow one to the next such joints below them."""
    below: dict[int, list[int]] = {j: [] for j in pairs}
    for j in pairs:
        parent = int(skeleton.parents[j])
        while parent >= 0 and parent not in pairs:
            parent = int(skeleton.parents[parent])
        if parent >= 0:
            below[parent].append(j)
    return below


def _scale(rest: Floats, there: Floats, bones: Mapping[int, list[int]], pairs: JointPairs) -> float:
    """Length of the skeleton's bones over those of the motion."""
    ends = [(j, child) for j, children in bones.items() for child in children]
    mine = sum(float(np.linalg.norm(rest[child] - rest[j])) for j, child in ends)
    theirs = sum(float(np.linalg.norm(there[pairs[child]] - there[pairs[j]])) for j, child in ends)
    return mine / theirs if mine > 0 and theirs > 0 else 1.0


def _alignment(
    skeleton: Skeleton, rest: Floats, there: Floats, bones: Mapping[int, list[int]], pairs: JointPairs
) -> dict[int, Floats]:
    """A of each joint that follows one; joints with several bones keep theirs, those with none take their parent's."""
    aligned: dict[int, Floats] = {}
    for j in sorted(pairs):
        below = bones[j]
        if len(below) == 1:
            mine, theirs = rest[below[0]] - rest[j], there[pairs[below[0]]] - there[pairs[j]]
            aligned[j] = rotations.between(mine, theirs)
        elif below:
            aligned[j] = rotations.IDENTITY
        else:
            above = next((k for k, children in bones.items() if j in children), None)
            aligned[j] = rotations.IDENTITY if above is None else aligned[above]
    return aligned


def _facing(there: Floats, here: Floats) -> Floats:
    """(3, 3) the rotation from a motion's space to a skeleton's, from joints (n, 3) at rest in both.

    Bodies stand along the axes: a fitted rotation near one that maps axes to axes snaps to that one.
    """
    p, q = there - there.mean(axis=0), here - here.mean(axis=0)
    extents = [np.linalg.svd(points, compute_uv=False) for points in (p, q)]
    if any(len(e) < 2 or e[1] < FLATNESS_LIMIT * max(float(e[0]), 1e-300) for e in extents):
        return np.eye(3)
    fitted = rotations.match_rigid(p / extents[0][0], q / extents[1][0])[0]
    quarters = rotations.axis_rotations()
    agreement = np.einsum("kij,ij->k", quarters, fitted)
    best = int(np.argmax(agreement))
    return quarters[best] if agreement[best] >= 1 + 2 * np.cos(np.radians(SQUARE)) else fitted
