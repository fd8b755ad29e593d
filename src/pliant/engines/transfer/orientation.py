"""How a body stands: up, heading, left and right, the ground; and how surely that is known.

A shape: up is the file's axis, unless its legs point along another one; the middle plane is the one it is mirrored in
(`symmetry`); which end of that plane is the front follows from head and tail, toes and hands.

A motion: up is where its head is above its feet at rest; left and right are in the joints' names; toes, head and tail,
and which way it goes, say where it faces. Where names and toes disagree the figure has been mirrored, and toes win.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pliant.core.shapes import Shape
from pliant.core.topology import Floats, Ints
from pliant.engines.transfer.anatomy import Anatomy, Limb, Pair, anatomy, find_pairs, pruned_limbs, standing_pairs
from pliant.engines.transfer.body_tree import BodyTree, shape_tree
from pliant.engines.transfer.symmetry import MirrorPlane, mirror_planes, surface_samples, upright_planes

FOOT_SAMPLES = 12_000
"""Points on a surface by which feet are looked at."""
MOST_ASYMMETRY = 1.25
"""How much worse the plane between front and back may be than the middle plane, for the two to look alike."""
TIPPED = 0.75
"""Cosine between the legs and another axis from which that one is up."""
SOLE, ANKLES = 0.06, (0.06, 0.09, 0.12, 0.15)
"""Height of soles, and heights at which ankles are looked for, over the body's."""
BESIDE_FOOT, BEFORE_FOOT = 0.15, 0.35
"""Distances from the tip of a leg, over its length, that its foot is within."""
ALIKE = 0.05
"""Evidence for front and back below which they look alike."""


@dataclass(frozen=True, eq=False)
class OrientedBody:
    """A source or a target: how it stands, and its limbs."""

    frame: Floats
    """(3, 3) rows: left, up, forward"""
    tree: BodyTree
    anatomy: Anatomy
    ground: float
    """Height of its lowest point along up"""
    size: float
    """Diagonal of its box along the frame"""
    certainty: float
    """Of the heading: 0 where front and back look alike, 1 where they do not."""
    evidence: tuple[str, ...] = ()
    """What decided, in words"""
    joints: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """(m,) of a motion's tree: the joint whose bone ends at each node; -1 at roots"""
    alike: bool = False
    """Whether it is mirrored front to back too, so that either may be the front."""


def axis_name(direction: Floats) -> str:
    """A direction in words: an axis, or degrees between two."""
    k = int(np.argmax(np.abs(direction)))
    name = ("" if direction[k] > 0 else "-") + "xyz"[k]
    if abs(direction[k]) > np.cos(np.radians(3)):
        return name
    return "(" + ", ".join(f"{value:.2f}" for value in direction) + ")"


def shape_body(shape: Shape, up: Floats, *, fixed_up: bool = False, heading: Floats | None = None) -> OrientedBody:
    """Of a shape whose upright axis may be `up`. fixed_up: it is. heading: (3,) where it faces, if that is known."""
    samples = surface_samples(shape)
    axis, planes = upright_planes(samples, up, fixed=fixed_up)
    seen = _Seen.of(shape, axis, planes)
    if not fixed_up:
        found = upright_axis(seen.pairs, seen.plane.normal, up)
        if abs(found @ axis) < 0.99:
            seen = _Seen.of(shape, found, mirror_planes(samples, found))
        seen = _Seen(seen.tree, seen.limbs, seen.plane, seen.pairs, found)
    return _faced(seen, shape, heading, mirror_planes(samples, seen.up))


@dataclass(frozen=True, eq=False)
class _Seen:
    tree: BodyTree
    limbs: list[Limb]
    plane: MirrorPlane
    pairs: list[Pair]
    up: Floats

    @classmethod
    def of(cls, shape: Shape, up: Floats, planes: Sequence[MirrorPlane]) -> _Seen:
        """With the plane that most of the limbs are mirrored in."""
        normal = planes[0].normal
        tree = shape_tree(shape, np.stack([normal, up, np.cross(normal, up)]))
        best: tuple[float, float] | None = None
        for plane in planes:
            limbs = pruned_limbs(tree, plane.normal, plane.offset)
            pairs = find_pairs(limbs, tree, plane.normal, plane.offset)
            score = (sum(limb.length for pair in pairs for limb in pair), -plane.error)
            if best is None or score > best:
                best, found = score, cls(tree, limbs, plane, pairs, up)
        return found


def upright_axis(pairs: Sequence[Pair], normal: Floats, up: Floats) -> Floats:
    """The axis that legs in a middle plane point away from; as given where that is not clear."""
    reach = sum((limb.reach for pair in pairs for limb in pair), np.zeros(3))
    reach = reach - (reach @ normal) * normal
    whole = sum(limb.length for pair in pairs for limb in pair)
    if whole == 0 or np.linalg.norm(reach) < 0.2 * whole:
        return up
    away = -reach / np.linalg.norm(reach)
    best: Floats = max(np.eye(3), key=lambda axis: float(axis @ away))
    return best if best @ away > TIPPED and away @ up < 0.5 else up


def _faced(seen: _Seen, shape: Shape, heading: Floats | None, front_planes: Sequence[MirrorPlane]) -> OrientedBody:
    """With a front."""
    alike = False
    up, normal = seen.up, seen.plane.normal
    forward = np.cross(normal, up)
    ground = float((shape.points @ up).min())
    scores = front_scores(seen.tree, seen.limbs, seen.pairs, up, forward, ground)
    height = float((shape.points @ up).max()) - ground
    legs = [limb for pair in standing_pairs(seen.pairs, up, forward, ground, height) for limb in pair]
    axes = np.stack([normal, up, forward])
    size = float(np.linalg.norm(np.ptp(shape.points @ axes.T, axis=0)))
    scores["toes"] = _feet(surface_samples(shape, FOOT_SAMPLES), legs, axes, size)
    total = sum(scores.values())
    if heading is not None:
        sign = 1.0 if heading @ forward >= 0 else -1.0
        certainty, tokens = 1.0, ["heading as given"]
    else:
        alike = abs(total) < ALIKE
        sign = np.sign(total) or (1.0 if _usual_front(up) @ forward >= 0 else -1.0)
        certainty = min(1.0, abs(total) / (4 * ALIKE)) if not alike else 0.0
        tokens = ["front and back look alike"] if alike else [k for k, v in scores.items() if v * sign > 0.02]
    frame = np.stack([sign * normal, up, sign * forward])
    pairs = seen.pairs if sign > 0 else [(right, left) for left, right in seen.pairs]
    found = anatomy(seen.limbs, pairs, seen.tree, frame, ground)
    mirrored = alike and _is_mirrored(seen.plane, front_planes, forward)
    return OrientedBody(frame, seen.tree, found, ground, size, float(certainty), tuple(tokens), alike=mirrored)


def _is_mirrored(plane: MirrorPlane, planes: Sequence[MirrorPlane], forward: Floats) -> bool:
    """Whether one of the planes faces forward and is as good as the middle one."""
    return any(abs(other.normal @ forward) > 0.99 and other.error < MOST_ASYMMETRY * plane.error for other in planes)


def _usual_front(up: Floats) -> Floats:
    """+z where y is up, -y where z is."""
    return np.array([0.0, -1.0, 0.0]) if abs(up[2]) > 0.5 else np.array([0.0, 0.0, 1.0])


def front_scores(
    tree: BodyTree, limbs: Sequence[Limb], pairs: Sequence[Pair], up: Floats, forward: Floats, ground: float
) -> dict[str, float]:
    """Evidence that `forward` is the front (positive) or the back, by what it comes from."""
    size = max(float(np.linalg.norm(np.ptp(tree.locations, axis=0))), 1e-300)
    height = max(float((tree.locations @ up).max()) - ground, 1e-300)
    legs = [limb for pair in standing_pairs(pairs, up, forward, ground, height) for limb in pair]
    paired = {limb.nodes[-1] for pair in pairs for limb in pair}
    if len(legs) > 2:  # ears and antlers say where the head is
        paired = {limb.nodes[-1] for limb in legs}
    alone = [limb for limb in limbs if limb.nodes[-1] not in paired]
    scores = {"toes": _toes(legs, up, forward, size)}
    hands = [limb for pair in pairs for limb in pair if not any(limb is leg for leg in legs)]
    if len(legs) == 2 and hands:
        scores["hands"] = 0.7 * float(np.mean([limb.reach @ forward for limb in hands])) / size
    hips = np.mean([limb.path[0] for limb in (legs or [l for pair in pairs for l in pair] or limbs)], axis=0)
    width = float(np.median([_width(tree, limb) for limb in (legs or limbs)]))
    ends = 0.0
    for limb in alone:
        out = float((limb.path[-1] - hips) @ forward) / size
        if abs(out) > 0.1:
            head = np.log(max(_width(tree, limb), 1e-9) / max(width, 1e-9)) if width > 0 else 0.0
            head += float((3 * limb.path[-1] + 4 * limb.path[0] - 7 * hips) @ up) / size - 0.35
            ends += np.sign(out) * np.clip(head, -1, 1) * min(1.0, 2 * abs(out))
    scores["head and tail"] = float(ends)
    return scores


def _width(tree: BodyTree, limb: Limb) -> float:
    outer = list(limb.nodes[len(limb.nodes) // 3 :])
    return float(np.median(tree.widths[outer]))


def _toes(legs: Sequence[Limb], up: Floats, forward: Floats, size: float) -> float:
    """How far feet reach to the front of where their shins lead."""
    found = []
    for limb in legs:
        shin, foot = (
            limb.at(0.85 * limb.length) - limb.at(0.55 * limb.length),
            limb.path[-1] - limb.at(0.85 * limb.length),
        )
        lean = (shin @ forward) / max(abs(float(shin @ up)), 1e-9)
        found.append(float(foot @ forward - np.clip(lean, -1, 1) * abs(foot @ up)))
    return 3.0 * float(np.mean(found)) / size if found else 0.0


def _feet(samples: Floats, legs: Sequence[Limb], frame: Floats, size: float) -> float:
    """How much farther feet reach to the front of their ankles than to the back."""
    across, up, forward = samples @ frame[0], samples @ frame[1], samples @ frame[2]
    heights = (up - up.min()) / max(float(np.ptp(up)), 1e-300)
    found = []
    for limb in legs:
        tip = frame @ limb.path[-1]
        near = np.abs(across - tip[0]) < BESIDE_FOOT * limb.length
        near &= np.abs(forward - tip[2]) < BEFORE_FOOT * limb.length
        sole = forward[near & (heights < SOLE)]
        slabs = [forward[near & (heights >= low) & (heights < low + SOLE)] for low in ANKLES]
        slabs = [slab for slab in slabs if len(slab) >= 4]
        if len(sole) >= 4 and slabs:
            ankle = min(slabs, key=np.ptp)
            found.append(float(sole.max() - ankle.max() + sole.min() - ankle.min()))
    return 3.0 * float(np.mean(found)) / size if found else 0.0
