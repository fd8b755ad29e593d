"""A skeleton with telling names in a shape whose plan is known: hips, spine.1, leg.front.left.knee, arm.right.wrist.

The curve of each limb, without what lies inside the trunk, is divided into bones. With shares u_k of the curve's length
at which joints are expected (those of a skeleton that is to be followed, or even ones), joints are where

    Σ_k (d_k / w)² + EXPECTED_WEIGHT (u_k − expected)²

is least: d_k are the root mean square distances of the curve from the bone k, w the limb's width. So knees are where
legs bend, and straight legs have knees where they are expected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pliant.core.errors import InputError
from pliant.core.shapes import Shape
from pliant.core.skeleton import Skeleton
from pliant.core.topology import Floats
from pliant.geometry.axes import SignedAxis
from pliant.geometry.body_plan.bodies import FOOT_SAMPLES, OrientedBody, shape_body
from pliant.geometry.body_plan.guides import ExpectedJoints
from pliant.geometry.body_plan.limbs import Anatomy, Limb, LimbKey
from pliant.geometry.body_plan.symmetry import surface_samples
from pliant.geometry.body_plan.tree import point_along, polyline_lengths, skeleton_tree

CURVE_SAMPLES = 41
"""Places on a limb where joints may be."""
EXPECTED_WEIGHT = 12.0
"""How much it counts that joints are where they are expected."""
WIDE = 1.5
"""Width of a limb, over that of its outer half, from which it is part of the trunk."""
INSIDE = 0.45
"""Share of a shape's limb that may lie inside the trunk, at most."""
MOST_LIMB_BONES = {"leg": 3, "arm": 3, "head": 3, "tail": 6, "limb": 4}
FEWEST_LIMB_BONES = {"leg": 3, "arm": 2, "head": 1, "tail": 1, "limb": 1}
STUMP = 1.7
"""Length of a leg or an arm over its width, below which it has one bone."""
MOST_SPINE = 4
SHORT_SPINE = 0.5
"""Length of a trunk's curve, over the distance of its pairs of legs, below which it does not show the trunk."""
JOINT_NAMES = {
    "leg": ("hip", "knee", "ankle", "toe"),
    "arm": ("shoulder", "elbow", "wrist", "hand"),
}

FOOT_HEIGHT, FOOT_REACH, FOOT_LENGTH, FEWEST_SOLE = 0.1, 0.45, 0.06, 12
"""Height of a foot, how far it reaches from the leg's end, how far its toes do at least, over the leg's length; and the
samples of its surface, at least."""
ANKLE_HEIGHT, TOE_HEIGHT, LARGEST_TOE_HEIGHT = 0.08, 0.4, 0.05
"""Of an ankle, over the hip's, at least; of toes, over the ankle's; and over the leg's length, at most."""
ANKLE_SAMPLES, LOWER_LEG, ANKLE_SPREAD = 100, 0.5, 0.01
"""Places where an ankle may be; the share of the leg's length from which on; and how much higher or farther forward
than the best, over the leg's length, count."""
USUAL_SHARES = (0.45, 0.85)
"""Of the length of a leg or an arm up to knee and ankle, elbow and wrist, of what stands on two legs."""
NEARLY_MIRRORED = 0.06
"""Distance of joints from those of the other limb of a pair, mirrored, over the limb's length, up to which they differ
by chance."""
UPRIGHT, LEAST_CERTAINTY = 0.95, 0.3
"""Largest coordinate of an upright direction that is not given: y or z, not one of the others; and the certainty of the
front, at least."""


def limb_curve(body: OrientedBody, limb: Limb) -> Floats:
    """(k, 3) a shape's limb without what lies in the trunk, as long as its partner's."""
    same = [k for k in body.anatomy.limbs if (k.role, k.order) == (limb.role, limb.order)]
    widths, steps = body.tree.widths[list(limb.nodes)], polyline_lengths(limb.path)
    within = np.linalg.norm(limb.path - limb.path[0], axis=1) <= widths[0] / 2
    wide = widths > WIDE * np.median(widths[len(widths) // 2 :])
    wide[len(wide) // 2 :] = False
    inside = min(float(steps[np.flatnonzero(within | wide).max(initial=0)]), INSIDE * limb.length)
    start = max(inside, limb.length - min(k.length for k in same))
    return np.concatenate([point_along(limb.path, start)[None], limb.path[steps > start]])


def spine_curve(body: OrientedBody) -> Floats:
    """(k, 3) a shape's trunk from the rear or the hips to the front.

    Where pairs of legs leave a thick trunk in one point, it goes from between the hind ones to between the fore ones.
    """
    spine: Floats = body.tree.locations[list(body.anatomy.spine)]
    bases: dict[int, list[Floats]] = {}
    for limb in body.anatomy.limbs:
        if limb.role == "leg":
            bases.setdefault(limb.order, []).append(limb_curve(body, limb)[0])
    if len(bases) > 1:
        rear, front = (np.mean(bases[order], axis=0) for order in (min(bases), max(bases)))
        if polyline_lengths(spine)[-1] < SHORT_SPINE * np.linalg.norm(front - rear):
            up = body.frame[1]
            level = (spine.mean(axis=0) - (rear + front) / 2) @ up * up
            return np.stack([rear + level, front + level])
    return spine


def limb_width(body: OrientedBody, limb: Limb) -> float:
    """Of a shape's limb, in the median of its outer part."""
    return float(np.median(body.tree.widths[list(limb.nodes[len(limb.nodes) // 3 :])]))


def slenderness(body: OrientedBody, limb: Limb) -> float:
    """Length over width of a shape's limb and its partner, in the mean."""
    same = [k for k in body.anatomy.limbs if (k.role, k.order) == (limb.role, limb.order)]
    lengths = [float(polyline_lengths(limb_curve(body, k))[-1]) for k in same]
    return float(np.mean([length / max(limb_width(body, k), 1e-300) for length, k in zip(lengths, same, strict=True)]))


def is_stump(body: OrientedBody, limb: Limb) -> bool:
    """Whether a shape's leg or arm is too short, for its width, to bend."""
    return limb.role in JOINT_NAMES and slenderness(body, limb) < STUMP


def bone_count(body: OrientedBody, limb: Limb) -> int:
    """How many bones a shape's limb and its partner have, by how slender they are."""
    if is_stump(body, limb):
        return 1
    bones = round(np.sqrt(1.6 * slenderness(body, limb)))
    return int(np.clip(bones, FEWEST_LIMB_BONES[limb.role], MOST_LIMB_BONES[limb.role]))


def divided(curve: Floats, width: float, expected: Sequence[float]) -> list[float]:
    """Shares of a curve's length at which its joints are, from 0 to 1. expected: the inner ones."""
    shares = np.linspace(0, 1, CURVE_SAMPLES)
    points = point_along(curve, shares * polyline_lengths(curve)[-1])
    cost = np.full((CURVE_SAMPLES, CURVE_SAMPLES), np.inf)
    for i in range(CURVE_SAMPLES):
        for j in range(i + 2, CURVE_SAMPLES):
            chord = points[j] - points[i]
            away = points[i : j + 1] - points[i]
            t = np.clip(away @ chord / max(float(chord @ chord), 1e-300), 0, 1)
            cost[i, j] = np.square(away - t[:, None] * chord).sum() / (j - i + 1) / max(width, 1e-9) ** 2
    total, back = cost[0].copy(), []
    for share in expected:
        total = total + EXPECTED_WEIGHT * (shares - share) ** 2
        step = total[:, None] + cost
        back.append(np.argmin(step, axis=0))
        total = step.min(axis=0)
    chosen = [CURVE_SAMPLES - 1]
    for choice in back[::-1]:
        chosen.append(int(choice[chosen[-1]]))
    return [0.0, *(float(shares[k]) for k in chosen[:0:-1]), 1.0]


@dataclass(frozen=True, eq=False)
class Foot:
    """Of a shape's leg."""

    ankle: float
    """Length of the leg's curve up to it"""
    toes: Floats
    """(3,)"""
    reach: float
    """How far the toes are ahead of the ankle, over the leg's length"""


def find_foot(body: OrientedBody, limb: Limb, samples: Floats) -> Foot | None:
    """The foot of a leg; None where nothing is below its end, or that does not point to the front.

    samples: (n, 3) of the surface. The foot is what is low and near the leg's end; the toes are its front end, along
    its longest direction; the ankle is where the leg is lowest and farthest back.
    """
    curve = limb_curve(body, limb)
    up, forward = body.frame[1], body.frame[2]
    length = float(polyline_lengths(curve)[-1])
    heights = samples @ up - body.ground
    flat = samples - np.outer(samples @ up, up)
    end = curve[-1] - (curve[-1] @ up) * up
    near = (heights < FOOT_HEIGHT * length) & (np.linalg.norm(flat - end, axis=1) < FOOT_REACH * length)
    others = [k.path[-1] - (k.path[-1] @ up) * up for k in body.anatomy.limbs if k is not limb and k.role == "leg"]
    for other in others:  # the other foot's
        near &= np.linalg.norm(flat - end, axis=1) < np.linalg.norm(flat - other, axis=1)
    sole = flat[near]
    if len(sole) < FEWEST_SOLE or float(curve[-1] @ up) - body.ground > FOOT_REACH * length:
        return None
    along = np.linalg.eigh((sole - sole.mean(axis=0)).T @ (sole - sole.mean(axis=0)))[1][:, -1]
    if abs(along @ forward) < 0.5:
        return None
    along = along * np.sign(along @ forward)
    axes = np.stack([along, np.cross(up, along)])  # of the foot, not of the world
    extent = sole @ axes.T
    middle = (extent.max(axis=0) + extent.min(axis=0)) / 2 @ axes
    reach = (sole - middle) @ along
    toes = middle + np.quantile(reach, 0.97) * along
    steps = np.linspace(LOWER_LEG * length, length, ANKLE_SAMPLES)
    points = point_along(curve, steps)
    above = points @ up - body.ground
    least = min(ANKLE_HEIGHT * float(curve[0] @ up - body.ground), above.max())
    low = np.where(above >= least, points @ (up + along), np.inf)  # and far back
    share = np.exp((low.min() - low) / (ANKLE_SPREAD * length))
    reached = float(share @ steps / share.sum())
    ankle = point_along(curve, reached)
    height = body.ground + min(TOE_HEIGHT * (float(ankle @ up) - body.ground), LARGEST_TOE_HEIGHT * length)
    return Foot(reached, toes + height * up, float((toes - ankle) @ along / length))


def body_skeleton(shape: Shape, up: SignedAxis | None = None) -> tuple[Skeleton, OrientedBody] | None:
    """The skeleton of a shape's plan, and its body; None where it does not clearly stand on legs.

    up: the axis that points up, if that is known.
    """
    try:
        body = shape_body(shape, up)
    except InputError:
        return None
    upright = up is not None or shape.world is not None or body.frame[1][1:].max() > UPRIGHT
    facing = body.alike or body.certainty >= LEAST_CERTAINTY
    if not (body.anatomy.legs and upright and facing and body.uneven is None):
        return None
    return jointed(body, samples=surface_samples(shape, FOOT_SAMPLES))


def jointed(
    body: OrientedBody, expected: Mapping[LimbKey, ExpectedJoints] | None = None, samples: Floats | None = None
) -> tuple[Skeleton, OrientedBody]:
    """The skeleton of a shape's body, and the body with the skeleton's tree.

    expected: by limb, its inner joints; even ones where none are given. samples: (n, 3) of the
    surface, by which feet are found.
    """
    build = _Build()
    spine = spine_curve(body)
    stations, trunk = _trunk(build, body, spine)
    chains: dict[LimbKey, list[int]] = {}
    tips: dict[int, Floats] = {}
    extremities: set[LimbKey] = set()
    found: dict[LimbKey, Floats] = {}
    for limb in body.anatomy.limbs:
        curve, ankle = leg_curve(body, limb, samples)
        count = bone_count(body, limb)
        even = tuple((np.arange(1, count) / count).tolist())
        human = count == 3 and body.anatomy.legs == 2 and limb.role in JOINT_NAMES
        usual, ends = USUAL_SHARES if human else even, human or ankle < 1
        if ankle < 1:
            usual = tuple(share * ankle / usual[-1] for share in usual)
        inner, ends = (expected or {}).get(limb.key, (usual, ends)) if count > 1 else ((), False)
        if ends:
            extremities.add(limb.key)
        shares = divided(curve, limb_width(body, limb), inner)
        length = float(polyline_lengths(curve)[-1])
        found[limb.key] = point_along(curve, np.array(shares) * length)
    for limb in body.anatomy.limbs:
        points = _balanced(found, limb.key, body)
        along = _nearest_station(spine, limb.path[0] if len(spine) == len(body.anatomy.spine) else points[0])
        parent = trunk[int(np.argmin(np.abs(np.array(stations) - along)))]
        names = _limb_names(body.anatomy, limb, len(points) - 1)
        chain = [parent]
        for name, point in zip(names, points, strict=False):
            chain.append(build.add(name, chain[-1], point))
        tips[chain[-1]] = points[-1] - points[-2]
        chains[limb.key] = chain
    skeleton = replace(build.skeleton(), ends=tips)
    return skeleton, replace(_with_tree(body, skeleton, trunk, chains), extremities=frozenset(extremities))


def _balanced(found: Mapping[LimbKey, Floats], key: LimbKey, body: OrientedBody) -> Floats:
    """(k, 3) the joints of a limb; where its partner's are nearly mirrored, in the mean of both.

    Curves through the middle of a shape are not known better than that.
    """
    role, side, order = key
    own, other = found[key], found.get((role, -side, order))
    if not side or other is None or len(own) != len(other):
        return own
    left = body.frame[0]
    middles = [
        (points + found[role, -1, order]) @ left / 2
        for (role, side, order), points in found.items()
        if side == 1 and len(found.get((role, -1, order), ())) == len(points)
    ]
    offset = float(np.median(np.concatenate(middles)))
    mirrored = other - 2 * np.outer(other @ left - offset, left)
    length = (polyline_lengths(own)[-1] + polyline_lengths(other)[-1]) / 2
    away = float(np.linalg.norm(mirrored - own, axis=1).max()) / max(float(length), 1e-300)
    return own + np.clip(2 - away / NEARLY_MIRRORED, 0, 1) / 2 * (mirrored - own)


def leg_curve(body: OrientedBody, limb: Limb, samples: Floats | None) -> tuple[Floats, float]:
    """(k, 3) a limb's curve, a leg's up to its toes; and the share of its length up to the ankle, 1 without a foot.

    Both legs of a pair have feet, or none has.
    """
    curve = limb_curve(body, limb)
    if samples is None or limb.role != "leg" or is_stump(body, limb):
        return curve, 1.0
    pair = [leg for leg in body.anatomy.limbs if (leg.role, leg.order) == (limb.role, limb.order)]
    feet = {leg.key: foot for leg in pair if (foot := find_foot(body, leg, samples)) is not None}
    if len(feet) < len(pair) or np.mean([foot.reach for foot in feet.values()]) < FOOT_LENGTH:
        return curve, 1.0
    foot = feet[limb.key]
    shin = curve[polyline_lengths(curve) < foot.ankle]
    whole = np.concatenate([shin, [point_along(curve, foot.ankle), foot.toes]])
    steps = polyline_lengths(whole)
    return whole, float(steps[-2] / steps[-1])


class _Build:
    """Joints as they are added."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.parents: list[int] = []
        self.positions: list[Floats] = []

    def add(self, name: str, parent: int, position: Floats) -> int:
        self.names.append(name)
        self.parents.append(parent)
        self.positions.append(position)
        return len(self.names) - 1

    def skeleton(self) -> Skeleton:
        return Skeleton.from_positions(np.array(self.positions), np.array(self.parents), self.names)


def _trunk(build: _Build, body: OrientedBody, spine: Floats) -> tuple[list[float], list[int]]:
    """Joints of the spine: how far along it they are, and their numbers."""
    length = float(polyline_lengths(spine)[-1])
    width = float(np.median(body.tree.widths[list(body.anatomy.spine)]))
    count = 0 if length < 0.02 * body.size else int(np.clip(round(1.5 * length / max(width, 1e-300)), 1, MOST_SPINE))
    stations, trunk = [0.0], [build.add("hips", -1, spine[0])]
    for k in range(1, count + 1):
        stations.append(length * k / count)
        trunk.append(build.add(f"spine.{k}", trunk[-1], point_along(spine, stations[-1])))
    return stations, trunk


def _nearest_station(spine: Floats, point: Floats) -> float:
    return float(polyline_lengths(spine)[int(np.argmin(np.linalg.norm(spine - point, axis=1)))])


def _limb_names(anatomy: Anatomy, limb: Limb, count: int) -> list[str]:
    """Of the joints at which a limb's bones start."""
    pairs = max((other.order for other in anatomy.limbs if other.role == limb.role), default=0) + 1
    order = {1: [""], 2: [".hind", ".front"]}.get(pairs, [f".{k + 1}" for k in range(pairs)])[limb.order]
    stem = f"{limb.role}{order if limb.role == 'leg' else ''}{ {1: '.left', -1: '.right', 0: ''}[limb.side] }"
    if limb.role == "head":
        return [*(["neck"] if count == 2 else [f"neck.{k + 1}" for k in range(count - 1)]), "head"]
    known = JOINT_NAMES.get(limb.role, ())
    if count <= len(known):
        return [f"{stem}.{name}" for name in known[:count]]
    return [f"{stem}.{k + 1}" for k in range(count)]


def _with_tree(
    body: OrientedBody, skeleton: Skeleton, trunk: Sequence[int], chains: Mapping[LimbKey, Sequence[int]]
) -> OrientedBody:
    """The body with its skeleton's tree, and limbs of that."""
    tree = skeleton_tree(skeleton)
    node = {int(joint): k for k, joint in reversed(list(enumerate(tree.joints.tolist())))}
    end = {int(joint): k for k, joint in enumerate(tree.joints.tolist()) if node[int(joint)] != k}
    limbs = []
    for limb in body.anatomy.limbs:
        chain = chains[limb.key]
        nodes = [*(node[joint] for joint in chain), end[chain[-1]]]
        limbs.append(replace(limb, nodes=tuple(nodes), path=tree.locations[nodes]))
    anatomy = replace(body.anatomy, limbs=tuple(limbs), spine=tuple(node[joint] for joint in trunk))
    return replace(body, tree=tree, anatomy=anatomy)
