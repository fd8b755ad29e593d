"""How a motion's skeleton stands at rest and while it moves, its limbs, and what the names of its joints say.

Names say which part of a body a joint is, and which side, in the conventions of CMU, Mixamo, Blender, Unity, 3ds Max,
Poser and others: LeftUpLeg, mixamorig:LeftArm, thigh.L, upperarm_r, Bip01 L Thigh, lThigh, Foot.R.001.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.skeleton import Motion
from pliant.core.topology import Floats
from pliant.engines.transfer.anatomy import Limb, Pair, anatomy, find_pairs, is_standing, pruned_limbs, standing_pairs
from pliant.engines.transfer.body_tree import BodyTree, motion_tree
from pliant.engines.transfer.orientation import ALIKE, OrientedBody, front_scores, upright_axis
from pliant.engines.transfer.sources import joint_tracks
from pliant.engines.transfer.symmetry import mirror_planes

NEARLY_SQUARE = 0.7
"""Cosine from which a direction is taken for the coordinate axis that is nearest: bodies stand along the axes."""
FEWEST_FRAMES, STEADY = 5, 0.9
"""Frames, and the length of the mean of their upright directions, from which they say which axis is up."""
NAMED, GOING = 0.5, 0.3
"""How much it counts for the front which joints are called left and right, and which way the root goes."""


@dataclass(frozen=True, eq=False)
class MotionBody:
    """A motion's skeleton at rest, and how its world stands."""

    body: OrientedBody
    """At rest"""
    world: Floats
    """(3, 3) rows: left, up and forward of the rest pose, where the moving figure's up is up"""


def motion_body(
    motion: Motion, rest: Any = None, *, up: Floats | None = None, heading: Floats | None = None
) -> MotionBody:
    """Of a motion. up, heading: of its skeleton at rest, where they are known."""
    tree, joints = motion_tree(motion, rest)
    names = motion.skeleton.names
    both = mirrored(names)
    apart = np.array([tree.locations[i] - tree.locations[j] for i, j in both]).reshape(-1, 3)
    size = float(np.linalg.norm(np.ptp(tree.locations, axis=0)))
    if not size > 0:
        raise InputError("the motion's skeleton has no bones; give the controls themselves", argument="sources")
    if len(both) and np.linalg.norm(apart.sum(axis=0)) > 0.02 * size:
        normal = _named_normal(apart)
        offset = float(np.mean([(tree.locations[i] + tree.locations[j]) @ normal / 2 for i, j in both]))
        limbs = pruned_limbs(tree, normal, offset)
        pairs = _named_pairs(limbs, dict(both), find_pairs(limbs, tree, normal, offset))
        upright = up if up is not None else _upright(motion, tree, limbs, pairs, normal)
        named = NAMED
    else:
        upright, normal, limbs, pairs = _unnamed(tree, up)
        named = 0.0
    upright = upright - (upright @ normal) * normal
    upright /= np.linalg.norm(upright)
    ground = float((tree.locations @ upright).min())
    forward = np.cross(normal, upright)
    scores = front_scores(tree, limbs, pairs, upright, forward, ground)
    scores |= {"names": named, "travel": GOING * _travel(motion, rest, forward, size)}
    total = sum(scores.values()) if heading is None else float(heading @ forward)
    if heading is None and abs(total) < ALIKE:
        total = 1.0 if np.array([0, -1.0, 0] if abs(upright[2]) > 0.5 else [0, 0, 1.0]) @ forward >= 0 else -1.0
        certainty, tokens = 0.0, ["front and back look alike"]
    else:
        certainty = min(1.0, abs(total) / (4 * ALIKE)) if heading is None else 1.0
        tokens = [k for k, v in scores.items() if v * total > 0.02] if heading is None else ["heading as given"]
    sign = 1.0 if total > 0 else -1.0
    if named and sign < 0:
        tokens.append("left and right are swapped in its names")
    frame = np.stack([sign * normal, upright, sign * forward])
    pairs = pairs if sign > 0 else [(right, left) for left, right in pairs]
    height = float((tree.locations @ upright).max()) - ground
    standing = standing_pairs(pairs, upright, forward, ground, height)
    found = anatomy(limbs, pairs, tree, frame, ground, standing=standing or _named_legs(motion, pairs, joints))
    body = OrientedBody(frame, tree, found, ground, size, certainty, tuple(tokens), joints)
    return MotionBody(body, _world(motion, rest, frame))


def snapped(direction: Floats) -> Floats:
    """A unit vector along a direction, or along the axis that it is near."""
    unit: Floats = direction / max(float(np.linalg.norm(direction)), 1e-300)
    k = int(np.argmax(np.abs(unit)))
    axis: Floats = np.sign(unit[k]) * np.eye(3)[k]
    return axis if abs(unit[k]) > NEARLY_SQUARE else unit


def _named_normal(apart: Floats) -> Floats:
    """Mean direction from right joints to left ones; exactly along an axis where it is all but that."""
    normal = apart.sum(axis=0)
    normal = normal / np.linalg.norm(normal)
    k = int(np.argmax(np.abs(normal)))
    axis: Floats = np.sign(normal[k]) * np.eye(3)[k]
    return axis if abs(normal[k]) > 0.995 else normal


def _named_pairs(limbs: list[Limb], both: dict[int, int], found: list[Pair]) -> list[Pair]:
    """Limbs whose joints are called alike but for the side, left one first; the others are paired by shape."""
    pairs: list[Pair] = []
    for limb in limbs:
        partners = Counter(
            k for node in limb.nodes if node in both for k, other in enumerate(limbs) if both[node] in other.nodes
        )
        best = partners.most_common(1)
        if best and limbs[best[0][0]] is not limb:
            pairs.append((limb, limbs[best[0][0]]))
    used = {limb.nodes[-1] for pair in pairs for limb in pair}
    return pairs + [pair for pair in found if not {limb.nodes[-1] for limb in pair} & used]


def _limb_part(motion: Motion, limb: Limb, joints: Any) -> str:
    count = Counter(part(motion.skeleton.names[j]) for j in (int(joints[node]) for node in limb.nodes[1:]) if j >= 0)
    count.pop("", None)
    count.pop("trunk", None)
    return count.most_common(1)[0][0] if count else ""


def _named_legs(motion: Motion, pairs: list[Pair], joints: Any) -> list[Pair]:
    """Pairs that are called legs."""
    return [pair for pair in pairs if _limb_part(motion, pair[0], joints) == "leg"]


def _upright(motion: Motion, tree: BodyTree, limbs: list[Limb], pairs: list[Pair], normal: Floats) -> Floats:
    """Where the head, or the middle of the body, is above the tips of its legs."""
    names = motion.skeleton.names
    feet = [limb for limb in limbs if _limb_part(motion, limb, tree.parents) == "leg"]
    if not feet:
        return upright_axis(pairs, normal, np.array([0.0, 1.0, 0.0]))
    tops = [j for j, name in enumerate(names) if part(name) in ("trunk", "head", "arm")]
    top = tree.locations[tops].mean(axis=0) if tops else tree.locations.mean(axis=0)
    route = top - np.mean([limb.path[-1] for limb in feet], axis=0)
    return snapped(route - (route @ normal) * normal)


def _unnamed(tree: BodyTree, up: Floats | None) -> tuple[Floats, Floats, list[Limb], list[Pair]]:
    """Up, the middle plane's normal, limbs and pairs, from points alone."""
    bones = np.flatnonzero(tree.parents >= 0)
    t = np.linspace(0, 1, 9)[:, None, None]
    samples = ((1 - t) * tree.locations[tree.parents[bones]] + t * tree.locations[bones]).reshape(-1, 3)
    best: tuple[float, tuple[Floats, Floats, list[Limb], list[Pair]]] | None = None
    for axis in [up] if up is not None else [np.array([0, 1.0, 0]), np.array([0, 0, 1.0])]:
        for plane in mirror_planes(samples, axis):
            limbs = pruned_limbs(tree, plane.normal, plane.offset)
            pairs = find_pairs(limbs, tree, plane.normal, plane.offset)
            ground = float((tree.locations @ axis).min())
            height = max(float((tree.locations @ axis).max()) - ground, 1e-300)
            standing = sum(is_standing(pair, axis, ground, height) for pair in pairs)
            score = standing + 0.5 * len(pairs) - 10 * plane.error
            if best is None or score > best[0] + 1e-9:
                best = score, (axis, plane.normal, limbs, pairs)
    assert best is not None
    return best[1]


def _travel(motion: Motion, rest: Any, forward: Floats, size: float) -> float:
    """From -1 to 1: how much the root goes to the front, as it sees it itself."""
    root = joint_tracks(motion, motion.skeleton.names[0], rest=rest)[motion.skeleton.names[0]]
    if len(root) < 2 or np.linalg.norm(np.ptp(root.points, axis=0)) < 0.3 * size:
        return 0.0
    steps = np.diff(root.points, axis=0)
    steps = np.einsum("fji,fj->fi", root.gradients[:-1], steps)
    long = np.linalg.norm(steps, axis=1)
    steps, long = steps[long < 10 * np.median(long)], long[long < 10 * np.median(long)]
    return float((steps @ forward).sum() / max(float(long.sum()), 1e-300))


def _world(motion: Motion, rest: Any, frame: Floats) -> Floats:
    """The frame turned to the axis that is up while the figure moves."""
    root = joint_tracks(motion, motion.skeleton.names[0], rest=rest)[motion.skeleton.names[0]]
    mean = np.mean(root.gradients @ frame[1], axis=0)
    up = snapped(mean)
    if len(root) < FEWEST_FRAMES or up @ mean < STEADY or up @ frame[1] > 0.5:
        return frame
    rotated: Floats = rotations.rotate(rotations.between(frame[1], up), frame)
    return rotated


AnatomicalPart = Literal["leg", "arm", "head", "tail", "trunk", ""]
FINGER_NAMES = ("finger", "thumb", "index", "middle", "ring", "pinky", "little", "metacarpal")
SIDES = {"l": 1, "left": 1, "lft": 1, "r": -1, "right": -1, "rgt": -1}
PARTS: tuple[tuple[AnatomicalPart, tuple[str, ...]], ...] = (
    ("tail", ("tail",)),
    ("arm", ("forearm", "uparm", "upperarm", "lowerarm", "arm", "hand", "wrist", "elbow", "shoulder", "collar",
             "clavicle", "shldr", "humerus", "radius", "wing", "finger", "thumb")),
    ("leg", ("upleg", "upperleg", "lowerleg", "leg", "thigh", "shin", "calf", "knee", "foot", "ankle", "toe", "femur",
             "tibia", "hipjoint", "butt")),
    ("head", ("head", "neck", "jaw", "skull")),
    ("trunk", ("spine", "hips", "hip", "pelvis", "chest", "torso", "abdomen", "abdoman", "back", "body", "root")),
)  # fmt: skip


def tokens(name: str) -> list[str]:
    """Lower-case words of a joint's name, without what stands before a colon and without numbers."""
    plain = name.rpartition(":")[2]
    split = re.sub(r"([a-z])([A-Z])", r"\1 \2", plain)
    split = re.sub(r"([A-Z])([A-Z][a-z])", r"\1 \2", split)
    return [word.lower() for word in re.findall(r"[A-Za-z]+", split)]


def side(name: str) -> int:
    """1 for left, -1 for right, 0 if the name says neither."""
    found = tokens(name)
    sides = {SIDES[word] for word in found if word in SIDES}
    sides |= {SIDES[start] for word in found for start in ("left", "right") if word.startswith(start)}
    return sides.pop() if len(sides) == 1 else 0


def part(name: str) -> AnatomicalPart:
    """Which part of a body a name means; "" if none."""
    text = "".join(word for word in tokens(name) if word not in SIDES)
    for found, known in PARTS:
        if any(word in text for word in known):
            return found
    return ""


def joins_trunk(name: str) -> bool:
    """Whether a joint's bone, a collarbone or half of a pelvis, joins a limb to the trunk."""
    text = "".join(word for word in tokens(name) if word not in SIDES)
    return any(word in text for word in ("clavicle", "collar", "shoulder", "hipjoint", "butt", "pelvis"))


def is_finger(name: str) -> bool:
    """Whether a joint belongs to a finger."""
    text = "".join(tokens(name))
    return any(word in text for word in FINGER_NAMES)


def mirrored(names: Sequence[str]) -> list[tuple[int, int]]:
    """Joints, left and right, whose names differ in their side alone."""
    left: dict[tuple[str, ...], int] = {}
    right: dict[tuple[str, ...], int] = {}
    for j, name in enumerate(names):
        if side(name):
            key = tuple(re.sub(r"^(left|right)", "", word) for word in tokens(name) if word not in SIDES)
            (left if side(name) > 0 else right).setdefault((*key, *re.findall(r"\d+", name)), j)
    return [(left[key], right[key]) for key in left if key in right]
