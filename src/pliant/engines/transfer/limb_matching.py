"""Which limb of a target follows which limb of a source, how surely, and how both stand.

Legs go to legs in their order along the spine, arms to arms, head to head, tail to tail, each to its own side. What the
target lacks is dropped; what the source lacks stays as it is on the trunk. Two bodies do not match that stand on
different numbers of legs, whose limbs differ too much in length, or whose front is not known: that is refused, with
what was seen and which option decides.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from pliant.core.clips import Animation
from pliant.core.errors import InputError, PliantWarning
from pliant.core.shapes import Shape
from pliant.core.skeleton import Motion
from pliant.core.topology import Floats
from pliant.engines.transfer.anatomy import Limb
from pliant.engines.transfer.options import TransferOptions
from pliant.engines.transfer.orientation import OrientedBody, axis_name, shape_body
from pliant.geometry.retargeting import SignedAxis, up_axis, up_vector

LEAST_CONFIDENCE = 0.3
"""Confidence below which a match is refused."""
UNLIKE_LIMBS = 5.0
"""Ratio of two limbs' lengths, each over its own body's size, from which they do not match."""
SPRAWLING = 0.4
"""Difference of how far legs reach to the side, over how far they reach, from which two bodies stand otherwise."""
OUTSIDE = 0.55
"""Share of a limb that is not inside the trunk, at least."""
PATCH, PLANTED = 8, 0.6
"""Points that an end of a limb is followed by; and the least share of frames in which a leg is below its body."""
MOST_SPARE = 1
"""Long limbs in no role that a target's trunk may have."""
BY_ORDER = "order"
"""What `map` says to match pairs of limbs in their order along the spine, whatever they stand on."""


@dataclass(frozen=True, eq=False)
class LimbMatch:
    """Limbs of a source and the target's limbs that follow them."""

    pairs: tuple[tuple[Limb, Limb], ...]
    """(the source's, the target's)"""
    dropped: tuple[str, ...]
    """Limbs of the source that the target lacks, by name"""
    resting: tuple[str, ...]
    """Limbs of the target that follow nothing, by name"""
    confidence: float
    """From 0 to 1"""
    doubts: tuple[str, ...]
    """What speaks against it, and which option decides"""


def match_limbs(source: OrientedBody, target: OrientedBody, hints: str = "") -> LimbMatch:
    """Match the limbs of two bodies. hints: "" for by itself, "order", or pairs "left arm=left leg, ..."."""
    if hints and hints != BY_ORDER:
        pairs = _hints(source, target, hints)
        return _assembled(source, target, pairs, 1.0, [])
    doubts: list[str] = []
    confidence = 1.0
    for body, what, option in ((source, "source", "source-heading"), (target, "target", "heading")):
        if body.certainty < LEAST_CONFIDENCE and not body.alike:
            doubts.append(f"front and back of the {what} are not known; set --{option}")
        if not body.alike:
            confidence = min(confidence, body.certainty)
    pairs = _by_order(source, target) if hints == BY_ORDER else _by_role(source, target)
    if hints != BY_ORDER:
        if source.anatomy.legs != target.anatomy.legs:
            confidence = 0.0
            doubts.append(
                f"the source stands on {_legs(source)}, the target on {_legs(target)}; give --map, such as "
                f'"{BY_ORDER}" to match limbs in their order along the spine'
            )
        splay = [_splay(body) for body in (source, target)]
        if source.anatomy.legs > 2 and abs(splay[0] - splay[1]) > SPRAWLING:
            confidence = 0.0
            which = "source's" if splay[0] > splay[1] else "target's"
            doubts.append(
                f'the {which} legs, or fins, sprawl beside it and the other\'s do not; give --map "{BY_ORDER}"'
            )
        if any(one.role == "leg" and is_stump(target, other) for one, other in pairs):
            confidence = 0.0
            doubts.append(f'the target\'s legs are stumps, too short for knees; give --map, such as "{BY_ORDER}"')
        if target.anatomy.spare > MOST_SPARE:
            confidence = 0.0
            doubts.append(f"the target has {target.anatomy.spare} limbs more than head, tail and pairs; give --map")
        for one, other in pairs:
            ratio = one.length / source.size / (other.length / target.size)
            alike = 1.0 - abs(float(np.log(ratio))) / np.log(UNLIKE_LIMBS)
            if one.role in ("leg", "arm") and alike <= 0:
                name = source.anatomy.named(one)
                doubts.append(
                    f"the {name} is {ratio:.2g} times as long as the target's; give --map to match it all the same"
                )
            if one.role in ("leg", "arm"):
                confidence = min(confidence, max(0.0, 0.3 + alike) if alike > 0 else 0.0)
    if not pairs:
        confidence = 0.0
        doubts.append("no limb of the source is found on the target; give --map, or the controls themselves")
    return _assembled(source, target, pairs, confidence, doubts)


def check_planted(clip: Animation, rest: Floats, body: OrientedBody, match: LimbMatch) -> None:
    """Refuse legs of a sequence that are beside or above the body as it moves: wings, fins."""
    up = body.frame[1]
    for one, _ in match.pairs:
        if one.role == "leg":
            ends = [np.argsort(np.linalg.norm(rest - location, axis=1))[:PATCH] for location in one.path[[0, -1]]]
            base, tip = (clip.points[:, some].mean(axis=1) @ up for some in ends)
            below = float(np.mean(base - tip > 0.3 * one.length))
            if below < PLANTED:
                name = body.anatomy.named(one)
                raise InputError(
                    f"the source's {name} is below its body in only {100 * below:.0f} % of the frames, as a wing or a "
                    f'fin is; give --map, such as "{BY_ORDER}"',
                    argument="controls",
                )


def check_match(match: LimbMatch, source: OrientedBody, target: OrientedBody) -> None:
    """Refuse a match that is too unsure, with what was seen."""
    if match.confidence >= LEAST_CONFIDENCE:
        return
    seen = f"source: {summary(source)}; target: {summary(target)}"
    raise InputError(f"{'; '.join(match.doubts)} ({seen})", argument="controls")


def summary(body: OrientedBody) -> str:
    """How a body stands and what limbs it has, as text."""
    limbs = ", ".join(body.anatomy.named(limb) for limb in body.anatomy.limbs) or "no limbs"
    return f"up {axis_name(body.frame[1])}, facing {axis_name(body.frame[2])} ({', '.join(body.evidence)}), {limbs}"


def _legs(body: OrientedBody) -> str:
    count = body.anatomy.legs
    return f"{count} legs" if count else "no legs"


def is_stump(body: OrientedBody, limb: Limb) -> bool:
    """Whether a shape's limb, without what is inside the trunk, is shorter than it is wide."""
    outer = list(limb.nodes[len(limb.nodes) // 3 :])
    return OUTSIDE * limb.length < float(np.median(body.tree.widths[outer]))


def _splay(body: OrientedBody) -> float:
    """How far legs reach to the side, over how far they reach."""
    legs = [limb.reach for limb in body.anatomy.limbs if limb.role == "leg"]
    return float(np.mean([abs(route @ body.frame[0]) / np.linalg.norm(route) for route in legs])) if legs else 0.0


def _key(limb: Limb) -> tuple[str, int, int]:
    return limb.role, limb.side, limb.order


def _by_role(source: OrientedBody, target: OrientedBody) -> list[tuple[Limb, Limb]]:
    there = {_key(limb): limb for limb in target.anatomy.limbs}
    return [(limb, there[_key(limb)]) for limb in source.anatomy.limbs if _key(limb) in there]


def _by_order(source: OrientedBody, target: OrientedBody) -> list[tuple[Limb, Limb]]:
    """Pairs in their order from the rear or the hips on; head and tail."""
    pairs = []
    for side in (1, -1):
        ordered = [
            sorted(
                (limb for limb in body.anatomy.limbs if limb.side == side),
                key=lambda limb: (limb.role != "leg", limb.order),
            )
            for body in (source, target)
        ]
        pairs += list(zip(*ordered, strict=False))
    middle = {limb.role: limb for limb in target.anatomy.limbs if limb.side == 0}
    return pairs + [
        (limb, middle[limb.role]) for limb in source.anatomy.limbs if limb.side == 0 and limb.role in middle
    ]


def _hints(source: OrientedBody, target: OrientedBody, hints: str) -> list[tuple[Limb, Limb]]:
    pairs = []
    for item in hints.split(","):
        one, equals, other = (word.strip() for word in item.partition("="))
        if not equals:
            raise InputError(
                f'map says "{item.strip()}"; expected "{BY_ORDER}", or SOURCE LIMB=TARGET LIMB', argument="map"
            )
        pairs.append((_named(source, one, "source"), _named(target, other, "target")))
    return pairs


def _named(body: OrientedBody, name: str, what: str) -> Limb:
    names = {body.anatomy.named(limb): limb for limb in body.anatomy.limbs}
    if name not in names:
        raise InputError(f'the {what} has no limb "{name}"; it has {", ".join(names) or "none"}', argument="map")
    return names[name]


def _assembled(
    source: OrientedBody,
    target: OrientedBody,
    pairs: Sequence[tuple[Limb, Limb]],
    confidence: float,
    doubts: Sequence[str],
) -> LimbMatch:
    dropped = [source.anatomy.named(k) for k in source.anatomy.limbs if not any(k is one for one, _ in pairs)]
    resting = [target.anatomy.named(k) for k in target.anatomy.limbs if not any(k is other for _, other in pairs)]
    return LimbMatch(tuple(pairs), tuple(dropped), tuple(resting), confidence, tuple(doubts))


JUMP = 6.0
"""How much farther joints turn from the first frame to the second than in most, if the first is a reference pose."""
LEAST_JUMP = np.radians(4)
"""Mean angle of that."""


def given_axis(hints: TransferOptions, name: str) -> Floats | None:
    """(3,) one of the axes that are known of source and target; None where it is to be found."""
    value: SignedAxis | None = getattr(hints, name)
    return None if value is None else up_vector(value)


def standing_body(shape: Shape, hints: TransferOptions, up: str, heading: str) -> OrientedBody:
    """How a shape stands, and its limbs. up, heading: the hints that count for it."""
    given: SignedAxis | None = getattr(hints, up)
    known = given is not None or shape.world is not None
    return _standing_body(shape, given or up_axis(shape), known, getattr(hints, heading))


@lru_cache(maxsize=4)
def _standing_body(shape: Shape, up: SignedAxis, fixed_up: bool, heading: SignedAxis | None) -> OrientedBody:
    """Found once for the same shape, which may be both the source's and the target; shapes never change."""
    faced = None if heading is None else up_vector(heading)
    return shape_body(shape, up_vector(up), fixed_up=fixed_up, heading=faced)


@dataclass(frozen=True, eq=False)
class Registered:
    """How a source and a target stand, and which limbs follow which."""

    source: OrientedBody
    target: OrientedBody
    match: LimbMatch
    world: Floats | None = None
    """(3, 3) of a motion: its frame where it moves"""

    def facts(self) -> dict[str, str]:
        """In words, by what they are about."""
        matched = [f"{self.source.anatomy.named(a)} → {self.target.anatomy.named(b)}" for a, b in self.match.pairs]
        facts = {
            "source stands": summary(self.source),
            "target stands": summary(self.target),
            "matched": f"{', '.join(matched)} (confidence {self.match.confidence:.2f})",
            "dropped": ", ".join(self.match.dropped),
            "resting": ", ".join(self.match.resting),
        }
        return {name: value for name, value in facts.items() if value}

    def to_dict(self) -> dict[str, Any]:
        """Plain texts, numbers and lists, ready for JSON."""
        return {
            **{name: self._stands(body) for name, body in (("source", self.source), ("target", self.target))},
            "matched": [[self.source.anatomy.named(a), self.target.anatomy.named(b)] for a, b in self.match.pairs],
            "dropped": list(self.match.dropped),
            "resting": list(self.match.resting),
            "confidence": self.match.confidence,
        }

    @staticmethod
    def _stands(body: OrientedBody) -> dict[str, Any]:
        return {
            "up": axis_name(body.frame[1]),
            "heading": axis_name(body.frame[2]),
            "frame": body.frame.tolist(),
            "certainty": body.certainty,
            "evidence": list(body.evidence),
            "limbs": [body.anatomy.named(limb) for limb in body.anatomy.limbs],
        }


def without_reference_pose(motion: Motion) -> Motion:
    """The motion with its first frame as the second, where the first is a reference pose that the motion jumps from;
    warns of that."""
    if len(motion) < 4:
        return motion
    quaternions = motion.rotations
    cosines = np.abs(np.einsum("fji,fji->fj", quaternions[:-1], quaternions[1:]))
    steps = 2 * np.arccos(np.clip(cosines, 0, 1)).mean(axis=1)
    if steps[0] < LEAST_JUMP or steps[0] < JUMP * np.quantile(steps[1:], 0.9):
        return motion
    what = "the source's first frame is a reference pose that it jumps from: its second frame is shown there instead"
    warnings.warn(what, PliantWarning, stacklevel=2)
    locations = motion.translations.copy()
    quaternions = quaternions.copy()
    quaternions[0], locations[0] = quaternions[1], locations[1]
    return replace(motion, rotations=quaternions, translations=locations)
