"""A motion carried from one body to another: onto a skeleton, or onto a shape, which gets the skeleton of its plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from warnings import warn

import numpy as np

from pliant.core.clips import Animation
from pliant.core.errors import PliantWarning
from pliant.core.shapes import Mesh, Shape
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Floats, Ints
from pliant.geometry.axes import SignedAxis, axis_name
from pliant.geometry.body_plan.bodies import FOOT_SAMPLES, OrientedBody, shape_body, skeleton_body, without_helpers
from pliant.geometry.body_plan.clearance import with_clearance
from pliant.geometry.body_plan.contacts import Contacts
from pliant.geometry.body_plan.following import Follower, skeleton_motion
from pliant.geometry.body_plan.grounding import RigidSkin, grounded
from pliant.geometry.body_plan.guides import ExpectedJoints, expected_joints, hidden_share
from pliant.geometry.body_plan.joints import jointed, leg_curve
from pliant.geometry.body_plan.limbs import LimbKey
from pliant.geometry.body_plan.matching import LimbMatch, check_match, check_planted, match_limbs
from pliant.geometry.body_plan.moving import MovingBody, moving_shape, moving_skeleton
from pliant.geometry.body_plan.names import OVERLAYS
from pliant.geometry.body_plan.symmetry import surface_samples
from pliant.geometry.segments import nearest_segment
from pliant.geometry.skinning import skin_of

ASIDE = 2.0
"""Distance of a point from its nearest bone, over the usual one, from which it belongs to none: ears beside arms."""
SUPPORTS = 60
"""Directions, and as many mirrored ones, in which the outermost points of what a bone carries are kept."""


@dataclass(frozen=True, eq=False)
class Hints:
    """What is known of how two bodies stand and match; None where it is to be found."""

    up: SignedAxis | None = None
    heading: SignedAxis | None = None
    source_up: SignedAxis | None = None
    source_heading: SignedAxis | None = None
    map: str = ""
    advice: str = ""
    """What to do where limbs do not match, if it is none of these"""


@dataclass(frozen=True, eq=False)
class Retargeted:
    """A motion on a target's skeleton, and how it came about."""

    motion: Motion
    """Of the target's skeleton"""
    source: MovingBody
    target: OrientedBody
    """With the tree of its skeleton"""
    seen: OrientedBody
    """The target as it was found: of a shape, with its curve skeleton"""
    match: LimbMatch
    """Of the source's limbs and the target's"""
    contacts: Contacts
    follower: Follower
    others: Mapping[str, str] = field(default_factory=dict)
    """By part of the body, what else it follows"""

    @property
    def skeleton(self) -> Skeleton:
        """Of the target."""
        return self.motion.skeleton

    def joint_map(self) -> dict[str, str]:
        """From the target's joints to those that they follow."""
        names = self.source.body.tree.names
        joints = self.target.tree
        return {
            joints.names[node]: names[guide.rotation[0]]
            for node, guide in sorted(self.follower.guides.items())
            if node < len(joints.names)
        }

    def facts(self) -> dict[str, str]:
        """As text, by what they are about."""
        pairs = [f"{self.source.body.anatomy.named(a)} → {self.target.anatomy.named(b)}" for a, b in self.match.pairs]
        facts = {
            "source stands": self.source.body.summary(),
            "target stands": self.target.summary(),
            "matched": f"{', '.join(pairs)} ({self.match.certainty})",
            "dropped": ", ".join(self.match.dropped),
            "resting": ", ".join(self.match.resting),
            "also": ", ".join(f"{part} from {name}" for part, name in self.others.items()),
        }
        return {name: value for name, value in facts.items() if value}

    def to_dict(self) -> dict[str, Any]:
        """Plain texts, numbers and lists, ready for JSON."""
        named = self.source.body.anatomy.named, self.target.anatomy.named
        return {
            **{name: _stands(body) for name, body in (("source", self.source.body), ("target", self.target))},
            "matched": [[named[0](a), named[1](b)] for a, b in self.match.pairs],
            "dropped": list(self.match.dropped),
            "resting": list(self.match.resting),
            "confidence": self.match.confidence,
            "joints": self.joint_map(),
        }


def _stands(body: OrientedBody) -> dict[str, Any]:
    return {
        "up": axis_name(body.frame[1]),
        "heading": axis_name(body.frame[2]),
        "frame": body.frame.tolist(),
        "certainty": body.certainty,
        "evidence": list(body.evidence),
        "limbs": [body.anatomy.named(limb) for limb in body.anatomy.limbs],
    }


def moving_body(source: Animation | Motion, hints: Hints, rest: Floats | None = None) -> MovingBody:
    """Of a motion, or of a mesh sequence. rest: (n, 3) the sequence's points at rest, if not its shape's."""
    if isinstance(source, Motion):
        return moving_skeleton(source, up=hints.source_up, heading=hints.source_heading)
    return moving_shape(source, rest, up=hints.source_up, heading=hints.source_heading)


def onto_shape(source: MovingBody, shape: Shape, hints: Hints, *, planted: bool = False) -> Retargeted:
    """The motion on the skeleton of a shape's plan. planted: whether the source is a shape, too, whose legs have to be
    below its body; of a skeleton, they may begin inside it."""
    shape = without_helpers(shape)
    seen = shape_body(shape, hints.up, hints.heading)
    if seen.against:
        text = f"the heading that is given is against what is seen: {', '.join(seen.against)}; it may walk backwards"
        warn(text, PliantWarning, stacklevel=2)
    match = match_limbs(source.body, seen, hints.map)
    check_match(match, source.body, seen)
    if planted and not hints.map:
        check_planted(source, match)
    samples = surface_samples(shape, FOOT_SAMPLES)
    expected: dict[LimbKey, ExpectedJoints] = {}
    starts: dict[LimbKey, float] = {}
    for one, other in match.pairs:
        curve, ankle = leg_curve(seen, other, samples)
        starts[one.key] = 0.0 if planted else hidden_share(source.body, one, seen, other, curve[0])
        joints = expected_joints(source.body, one, seen, curve, ankle, starts[one.key])
        if joints is not None:
            expected[other.key] = joints
    skeleton, body = jointed(seen, expected, samples)
    return _retargeted(source, skeleton, body, seen, _of_body(match, body), shape.points, starts=starts)


def onto_skeleton(
    source: MovingBody, skeleton: Skeleton, mesh: Shape | None, hints: Hints, *, body: OrientedBody | None = None
) -> Retargeted:
    """The motion on a skeleton. mesh: what it moves. body: how it stands, if that is known."""
    body = body or skeleton_body(skeleton, mesh if isinstance(mesh, Mesh) else None, hints.up, hints.heading)
    match = match_limbs(source.body, body, hints.map)
    check_match(match, source.body, body, hints.advice)
    skin = skin_of(mesh, skeleton) if isinstance(mesh, Mesh) else None
    owners = None if skin is None else _owners(body, np.asarray(skin.argmax(axis=1)).ravel(), skeleton)
    return _retargeted(source, skeleton, body, body, match, None if mesh is None else mesh.points, owners)


def _owners(body: OrientedBody, joints: Ints, skeleton: Skeleton) -> Ints:
    """(n,) the nodes that joints (n,) go along with: their own, or that of the next joint above which has one."""
    own = {int(joint): k for k, joint in reversed(list(enumerate(body.tree.joints.tolist())))}
    lead: list[int] = []
    for j, parent in enumerate(skeleton.parents.tolist()):
        lead.append(own.get(j, lead[parent] if parent >= 0 else 0))
    return np.array(lead)[joints]


_PLURALS = {"arm": "arms", "leg": "legs"}


def with_limbs(base: Retargeted, other: Retargeted, name: str) -> Retargeted:
    """A motion in which some limbs do what another one on the same skeleton does, as long as both last.

    name: which limbs, one of `OVERLAYS`. They rotate against the trunk as they do there.
    """
    roles = OVERLAYS[name]
    taken = other.motion.resampled(base.motion.fps)
    count = min(len(base.motion), len(taken))
    tree, anatomy = base.target.tree, base.target.anatomy
    nodes = [node for limb in anatomy.limbs if limb.role in roles for node in limb.nodes[1:]]
    nodes += anatomy.spine[1:] if "spine" in roles else ()
    joints = np.unique(tree.joints[nodes])
    rotated, moved = base.motion.rotations[:count].copy(), base.motion.translations[:count].copy()
    rotated[:, joints], moved[:, joints] = taken.rotations[:count, joints], taken.translations[:count, joints]
    kept = [k for k, (_, limb) in enumerate(base.match.pairs) if limb.role not in roles]
    return replace(
        base,
        motion=replace(base.motion, rotations=rotated, translations=moved),
        source=base.source.at(np.arange(count)),
        match=replace(base.match, pairs=tuple(base.match.pairs[k] for k in kept)),
        follower=replace(base.follower, pairs=tuple(base.follower.pairs[k] for k in kept)),
        others={**base.others, ", ".join(_PLURALS.get(role, role) for role in roles): name},
    )


def _of_body(match: LimbMatch, body: OrientedBody) -> LimbMatch:
    """The match with the limbs of a body's skeleton in place of its curves."""
    limbs = {limb.key: limb for limb in body.anatomy.limbs}
    return replace(match, pairs=tuple((one, limbs[other.key]) for one, other in match.pairs))


def _retargeted(
    source: MovingBody,
    skeleton: Skeleton,
    body: OrientedBody,
    seen: OrientedBody,
    match: LimbMatch,
    points: Floats | None,
    owners: Ints | None = None,
    starts: Mapping[LimbKey, float] | None = None,
) -> Retargeted:
    follower = Follower.of(source, body, match, starts)
    follower = follower if points is None else with_clearance(follower, match, points)
    moved = grounded(follower, None if points is None else carried_points(body, points, owners))
    motion = skeleton_motion(skeleton, body, moved.rotated, moved.positions, source.fps)
    return Retargeted(motion, source, body, seen, match, moved.contacts, follower)


def carried_points(body: OrientedBody, points: Floats, owners: Ints | None = None) -> RigidSkin:
    """Points (n, 3) of a shape that go along with nodes (n,), or the nearest bones; of each, the outermost ones."""
    tree = body.tree
    if owners is None:
        bones = np.flatnonzero(tree.parents >= 0)
        near, away = nearest_segment(points, tree.locations[tree.parents[bones]], tree.locations[bones])
        usual = np.array([np.median(away[near == k]) if (near == k).any() else 0.0 for k in range(len(bones))])
        kept = away <= ASIDE * usual[near]
        points, owners = points[kept], tree.parents[bones][near][kept]
    k = np.arange(SUPPORTS) + 0.5
    z, angle = 1 - 2 * k / SUPPORTS, np.pi * (1 + 5**0.5) * k
    ring = np.sqrt(1 - z**2)
    left = np.stack([ring * np.cos(angle), ring * np.sin(angle), z], axis=1)
    directions = np.concatenate([left, left * [-1, 1, 1]]) @ body.frame  # a mirrored body has the mirrored points
    outermost = [
        own[np.unique(np.argmax(points[own] @ directions.T, axis=0))]
        for own in (np.flatnonzero(owners == node) for node in np.unique(owners))
    ]
    chosen = np.concatenate(outermost)
    return RigidSkin(points[chosen], owners[chosen])
