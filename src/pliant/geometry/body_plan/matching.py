"""Which limb of a target follows which limb of a source, and how surely.

Legs go to legs in their order along the spine, arms to arms, head to head, tail to tail, each to its own side. What the
target lacks is dropped; what the source lacks stays as it is on the trunk. Two bodies do not match that stand on
different numbers of legs, whose limbs differ too much in length, or whose front is not known: that is refused, with
what was seen and which option decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pliant.core.errors import InputError
from pliant.geometry.body_plan.bodies import OrientedBody
from pliant.geometry.body_plan.limbs import Limb
from pliant.geometry.body_plan.moving import MovingBody

LEAST_CONFIDENCE = 0.3
"""Confidence below which a match is refused."""
UNLIKE_LIMBS = 5.0
"""Ratio of two limbs' lengths, each over its own body's size, from which they do not match."""
SPRAWLING = 0.4
"""Difference of how far legs reach to the side, over how far they reach, from which two bodies stand otherwise."""
PLANTED = 0.6
"""Least share of frames in which a leg is below its body."""
MOST_SPARE = 1
"""Long limbs in no role that a target's trunk may have."""
CROWDED = 0.12
"""Distance of two pairs of legs along the spine, over a leg's length, below which they are fingers rather than legs."""
BY_ORDER = "order"
"""What a map says to match pairs of limbs in their order along the spine, whatever they stand on."""

GIVE_MAP = "; to match limbs all the same, give --map"
"""End of a doubt that a map decides."""


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
    """What speaks against it; which option decides"""
    given: bool = False
    """Whether the pairs were given"""

    @property
    def certainty(self) -> str:
        """How sure it is, as text."""
        return "as told" if self.given else f"confidence {self.confidence:.2f}"


def match_limbs(source: OrientedBody, target: OrientedBody, hints: str = "") -> LimbMatch:
    """Match the limbs of two bodies. hints: "" for by itself, "order", or pairs "left arm=left leg, ..."."""
    if hints and hints != BY_ORDER:
        return replace(_assembled(source, target, _hinted(source, target, hints), 1.0, []), given=True)
    pairs = _by_order(source, target) if hints == BY_ORDER else _by_role(source, target)
    doubts = list(_headings(source, target))
    if hints != BY_ORDER:
        doubts += [(0.0, doubt) for doubt in _standing(source, target)]
        doubts += _lengths(source, target, pairs)
    if not pairs:
        doubts.append((0.0, "no limb of the source is found on the target; give --map, or the controls themselves"))
    confidence = min((value for value, _ in doubts), default=1.0)
    spelled = ",".join(f"{source.anatomy.named(one)}={target.anatomy.named(other)}" for one, other in pairs)
    texts = [text for _, text in doubts if text]
    last = next((k for k in reversed(range(len(texts))) if texts[k].endswith(GIVE_MAP)), None)
    if last is not None and pairs:
        texts[last] += f', such as "{spelled}" if that is right'
    return _assembled(source, target, pairs, confidence, texts)


class UnsureMatchError(InputError):
    """A match of limbs that is too unsure."""

    def __init__(self, message: str, match: LimbMatch, source: OrientedBody, target: OrientedBody) -> None:
        super().__init__(message, argument="controls")
        self.match, self.source, self.target = match, source, target

    def __reduce__(self) -> tuple[Any, ...]:
        return UnsureMatchError, (str(self), self.match, self.source, self.target)


def check_match(match: LimbMatch, source: OrientedBody, target: OrientedBody, advice: str = "") -> None:
    """Refuse a match that is too unsure, with what was seen. advice: what to do, if no option of a transfer decides."""
    if match.confidence >= LEAST_CONFIDENCE:
        return
    doubts = [*(doubt.partition(";")[0] for doubt in match.doubts), advice] if advice else match.doubts
    seen = f"source: {source.summary()}; target: {target.summary()}"
    raise UnsureMatchError(f"{'; '.join(doubts)} ({seen})", match, source, target)


def check_planted(source: MovingBody, match: LimbMatch) -> None:
    """Refuse legs that are beside or above the body as it moves: wings, fins."""
    up = source.world[1]
    for limb, _ in match.pairs:
        if limb.role == "leg":
            base, tip = (source.positions[:, limb.nodes[k]] @ up for k in (0, -1))
            below = float(np.mean(base - tip > 0.3 * limb.length))
            if below < PLANTED:
                raise InputError(
                    f"the source's {source.body.anatomy.named(limb)} is below its body in only {100 * below:.0f} % of "
                    f'the frames, as a wing or a fin is; give --map, such as "{BY_ORDER}"',
                    argument="controls",
                )


Doubt = tuple[float, str]
"""A confidence, and what speaks against more; empty if nothing does."""


def _headings(source: OrientedBody, target: OrientedBody) -> Iterator[Doubt]:
    for body, what, option in ((source, "source", "source-heading"), (target, "target", "heading")):
        if not body.alike:
            unsure = body.certainty < LEAST_CONFIDENCE
            text = f"front and back of the {what} are not known; set --{option}" if unsure else ""
            yield body.certainty, text


def _standing(source: OrientedBody, target: OrientedBody) -> Iterator[str]:
    """What speaks against two bodies that stand otherwise."""
    if source.anatomy.legs != target.anatomy.legs:
        yield (
            f"the source stands on {_legs(source)}, the target on {_legs(target)}; give --map, such as "
            f'"{BY_ORDER}" to match limbs in their order along the spine'
        )
    for body, what in ((source, "source"), (target, "target")):
        if body.uneven is not None:
            role, ratio = body.uneven
            yield f"one {role} of the {what} is {ratio:.2g} times as long as the other, if they are {role}s{GIVE_MAP}"
        if body.parted:
            yield (
                f"the {body.parted}s of the {what} leave it far from each other, as if its trunk ran from side to "
                f"side{GIVE_MAP}"
            )
    splay = [_splay(body) for body in (source, target)]
    if source.anatomy.legs > 2 and abs(splay[0] - splay[1]) > SPRAWLING:
        which = "source's" if splay[0] > splay[1] else "target's"
        yield f'the {which} legs, or fins, sprawl beside it and the other\'s do not; give --map "{BY_ORDER}"'
    if target.anatomy.spare > MOST_SPARE:
        yield f"the target has {target.anatomy.spare} limbs more than head, tail and pairs{GIVE_MAP}"
    if any(_is_crowded(body) for body in (source, target)):
        yield f"its legs leave the body in one place, as fingers leave a hand{GIVE_MAP}"


def _lengths(source: OrientedBody, target: OrientedBody, pairs: Sequence[tuple[Limb, Limb]]) -> Iterator[Doubt]:
    """What speaks against limbs of other lengths."""
    for one, other in pairs:
        if one.role in ("leg", "arm"):
            ratio = one.length / source.size / (other.length / target.size)
            alike = 1.0 - abs(float(np.log(ratio))) / np.log(UNLIKE_LIMBS)
            longer = f"the {source.anatomy.named(one)} is {ratio:.2g} times as long as the target's"
            yield (min(1.0, 0.3 + alike), "") if alike > 0 else (0.0, f"{longer}{GIVE_MAP}")


def _legs(body: OrientedBody) -> str:
    count = body.anatomy.legs
    return f"{count} legs" if count else "no legs"


def _splay(body: OrientedBody) -> float:
    """How far legs reach to the side, over how far they reach."""
    legs = [limb.reach for limb in body.anatomy.limbs if limb.role == "leg"]
    return float(np.mean([abs(reach @ body.frame[0]) / np.linalg.norm(reach) for reach in legs])) if legs else 0.0


def _is_crowded(body: OrientedBody) -> bool:
    """Whether two pairs of legs leave the trunk in one place, not one before the other."""
    legs = [limb for limb in body.anatomy.limbs if limb.role == "leg"]
    stations = sorted({limb.order: float(limb.at(0.3 * limb.length) @ body.frame[2]) for limb in legs}.values())
    gap = min(np.diff(stations), default=np.inf)
    return bool(gap < CROWDED * float(np.mean([limb.length for limb in legs] or [0.0])))


def _by_role(source: OrientedBody, target: OrientedBody) -> list[tuple[Limb, Limb]]:
    there = {limb.key: limb for limb in target.anatomy.limbs}
    return [(limb, there[limb.key]) for limb in source.anatomy.limbs if limb.key in there]


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


def _hinted(source: OrientedBody, target: OrientedBody, hints: str) -> list[tuple[Limb, Limb]]:
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
    known = {body.anatomy.named(limb): limb for limb in body.anatomy.limbs}
    if name not in known:
        raise InputError(f'the {what} has no limb "{name}"; it has {", ".join(known) or "none"}', argument="map")
    return known[name]


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
