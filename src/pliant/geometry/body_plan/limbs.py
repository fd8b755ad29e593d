"""What the limbs of a body are: legs, arms, head and tail, left and right, from the rear or the hips on.

All comes from the body's tree and a frame (left, up, forward), and not from its pose:

- Two limbs on either side of the middle plane are a *pair* if they mirror: their tips, their middles, where they leave
  the trunk, and their lengths.
- Pairs whose tips are on the ground, and that are not flat as wings and fins are, are *legs*, ordered along the spine.
  The first pair beyond them are *arms* (wings).
- Limbs in the middle plane are the *head* and the *tail*; pairs on the head (ears, antlers) go along with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from pliant.core.topology import Floats
from pliant.geometry.body_plan.names import AnatomicalPart, is_fin, part
from pliant.geometry.body_plan.tree import BodyTree, point_along, polyline_lengths

Role = Literal["leg", "arm", "head", "tail", "limb"]
GROUND, RAISED = 0.16, 0.45
"""Height of a tip, over the body's, up to which it is on the ground; and that of one that is raised, at most."""
LIFTED = 0.65
"""Length of legs in the air, over that of legs that stand, at least."""
SPARE = 0.6
"""Length of a limb in no role, over that of those in pairs, from which it counts as one."""
UNEQUAL = 0.45
"""Misfit of two limbs, about their distance when mirrored over the body's size, from which they are no pair."""
BESIDE = 0.35
"""How far a limb is beside the middle plane, over its width, from which it is clearly on one side."""
FINGER = 0.6
"""Length of what a limb ends in, over the limb, up to which it is fingers or toes."""
STUB = 0.1
"""Length of a limb, over the longest path in the body, up to which it is none."""
SHORT_ARM = 0.3
"""Length of arms, over that of the legs, below which they are none: ears."""
FLAT = 0.5
"""Thickness over breadth of a pair, in the mean, below which it is wings or fins."""


LimbKey = tuple[str, int, int]
"""A limb's role, side and order."""


@dataclass(frozen=True, eq=False)
class Limb:
    """From where it leaves the trunk to its tip."""

    nodes: tuple[int, ...]
    """Of the body's tree; the first belongs to the trunk."""
    path: Floats
    """(k, 3) their positions"""
    role: Role = "limb"
    side: int = 0
    """1 left, -1 right, 0 in the middle"""
    order: int = 0
    """Of its pair, from the rear or the hips on."""

    @property
    def key(self) -> LimbKey:
        """What it is."""
        return self.role, self.side, self.order

    @property
    def length(self) -> float:
        """Along the path."""
        return float(polyline_lengths(self.path)[-1])

    def at(self, length: float) -> Floats:
        """(3,) the point at a length from its base."""
        return point_along(self.path, length)

    @property
    def reach(self) -> Floats:
        """(3,) from its base to its tip."""
        reach: Floats = self.path[-1] - self.path[0]
        return reach


ABOVE = 0.15
"""How far above the hips arms begin, over their length, at least."""
BASE_SHARE = 0.15
"""Share of a limb's length at which its base is."""
Pair = tuple[Limb, Limb]
"""The left one and the right one."""


def pruned_limbs(tree: BodyTree, normal: Floats, offset: float) -> list[Limb]:
    """The limbs of a tree without stubs, fingers and toes, in no role yet; the plane is the middle one."""
    tips = list(tree.tips)
    longest = max((tree.distance(one, other) for one in tips for other in tips), default=0.0)
    beside = np.abs(tree.locations @ normal - offset)
    while True:
        limbs = [Limb(tuple(some), tree.locations[some]) for some in (tree.limb(tip, tips) for tip in tips)]
        if len(tips) < 2:
            return limbs
        least = [_least_length(tree, limbs, k, longest, beside) for k in range(len(tips))]
        spare = min(range(len(tips)), key=lambda k: limbs[k].length / least[k])
        if limbs[spare].length >= least[spare]:
            return limbs
        del tips[spare]


def _least_length(tree: BodyTree, limbs: Sequence[Limb], k: int, longest: float, beside: Floats) -> float:
    """Length from which a limb is one: on the trunk, more than a stub; on another limb, more than a finger.

    What is called a tail is one however short it is.
    """
    if limb_part(limbs[k], tree) == "tail":
        return 1e-9 * longest
    fork = limbs[k].nodes[0]
    stub = max(STUB * longest, 0.6 * float(tree.widths[fork]))
    forks = {limb.nodes[0] for j, limb in enumerate(limbs) if j != k}
    if fork not in forks or beside[fork] < 0.5 * float(tree.widths[fork]):
        return stub
    back = next((node for node in tree.chain(fork)[1:] if node in forks), -1)
    return stub if back < 0 else max(stub, FINGER * float(tree.depths[fork] - tree.depths[back]))


def find_pairs(limbs: Sequence[Limb], tree: BodyTree, normal: Floats, offset: float) -> list[Pair]:
    """Pairs of limbs that mirror each other in a plane; the first of each is on the side of the normal.

    A limb is in the middle if it mirrors itself better than any other, and is not clearly on one side.
    """
    size = max(tree.size, 1e-300)
    misfit = np.array([[_misfit(one, other, tree, normal, offset, size) for other in limbs] for one in limbs])
    alone = np.diag(misfit).copy()
    misfit += np.where(np.eye(len(limbs), dtype=bool), np.inf, 0.0)
    pairs: list[Pair] = []
    while misfit.size and misfit.min() < UNEQUAL:
        i, j = (int(k) for k in np.unravel_index(np.argmin(misfit), misfit.shape))
        beside = [_beside(limbs[k], tree, normal, offset) for k in (i, j)]
        apart = beside[0] * beside[1] < 0 and min(abs(distance) for distance in beside) > BESIDE
        if apart or misfit[i, j] < max(alone[i], alone[j]):
            pairs.append((limbs[i], limbs[j]) if beside[0] > beside[1] else (limbs[j], limbs[i]))
            misfit[[i, j], :] = misfit[:, [i, j]] = np.inf
        else:
            misfit[i, j] = misfit[j, i] = np.inf
    return pairs


def _beside(limb: Limb, tree: BodyTree, normal: Floats, offset: float) -> float:
    """How far the outer half of a limb is beside a plane, over its width; over a tenth of its length if it is thin."""
    outer = len(limb.nodes) // 2
    width = max(float(np.median(tree.widths[list(limb.nodes[outer:])])), 0.1 * limb.length)
    return float((limb.path[outer:] @ normal).mean() - offset) / max(width, 1e-300)


def _misfit(one: Limb, other: Limb, tree: BodyTree, normal: Floats, offset: float, size: float) -> float:
    """How far two limbs are from being mirrored: their tips and middles, their bases along the body, their lengths."""
    long = min(one.length, other.length)
    gaps = []
    for short in (0.0, 0.5 * long):
        p, q = (limb.at(limb.length - short) for limb in (one, other))
        gaps.append(float(np.linalg.norm(p - 2 * (p @ normal - offset) * normal - q)))
    bases = tree.distance(one.nodes[0], other.nodes[0])
    return (0.5 * sum(gaps) + 0.3 * bases) / size + 0.1 * abs(float(np.log(one.length / other.length)))


@dataclass(frozen=True, eq=False)
class Anatomy:
    """The limbs of a body in a frame."""

    limbs: tuple[Limb, ...]
    spine: tuple[int, ...]
    """Nodes of the trunk, from the rear or the hips to the head's base."""
    direction: Floats
    """(3,) of the spine, a unit vector from the rear or the hips on"""
    spare: int = 0
    """How many long limbs its trunk has besides."""

    @property
    def legs(self) -> int:
        """How many it stands on."""
        return sum(limb.role == "leg" for limb in self.limbs)

    @property
    def paired(self) -> bool:
        """Whether it has limbs on either side."""
        return any(limb.side for limb in self.limbs)

    def named(self, limb: Limb) -> str:
        """A limb as text."""
        pairs = max((other.order for other in self.limbs if other.role == limb.role), default=0) + 1
        where = {1: [""], 2: ["hind ", "fore "]}.get(pairs, [f"{k + 1}. " for k in range(pairs)])[limb.order]
        return f"{where if limb.role == 'leg' else ''}{ {1: 'left ', -1: 'right ', 0: ''}[limb.side] }{limb.role}"


def anatomy(
    limbs: Sequence[Limb],
    pairs: Sequence[Pair],
    tree: BodyTree,
    frame: Floats,
    ground: float,
    *,
    standing: Sequence[Pair] | None = None,
) -> Anatomy:
    """Roles of limbs and pairs. frame: rows are left, up and forward; ground: height of the lowest point.

    standing: the pairs that are legs, where that is known.
    """
    up, forward = frame[1], frame[2]
    if standing is None:
        standing = standing_pairs(pairs, tree, up, forward, ground)
    direction = _spine_direction(pairs, standing, tree, up, forward)
    station = {id(pair): float(np.mean([_base(limb) @ direction for limb in pair])) for pair in pairs}
    legs = sorted(standing, key=lambda pair: station[id(pair)])
    others = sorted((pair for pair in pairs if not _among(pair, standing)), key=lambda pair: station[id(pair)])
    arms = _arms(legs, others, tree)
    roles: tuple[tuple[Role, Sequence[Pair]], ...] = (("leg", legs), ("arm", arms))
    found = [
        replace(limb, role=role, side=side, order=order)
        for role, chosen in roles
        for order, pair in enumerate(chosen)
        for limb, side in zip(pair, (1, -1), strict=True)
    ]
    used = {limb.nodes[-1] for limb in found}
    ends = [limb.nodes[0] for limb in found] or [0]
    rear = min(ends, key=lambda node: tree.locations[node] @ direction)
    front = max(ends, key=lambda node: tree.locations[node] @ direction)
    rest = [limb for limb in limbs if limb.nodes[-1] not in used]
    found += _axial(rest, found, tree, rear, front, direction)
    least = SPARE * float(np.mean([limb.length for pair in (*legs, *arms) for limb in pair] or [np.inf]))
    spine = tree.path(rear, front)
    spare = sum(limb.length >= least and limb.nodes[0] in spine for limb in rest)
    spare -= sum(limb.role in ("head", "tail") for limb in found)
    return Anatomy(tuple(found), tuple(spine), direction, max(spare, 0))


def _base(limb: Limb) -> Floats:
    """(3,) where a limb begins, a little outside the joint that a rig may hang all its limbs on."""
    return limb.at(BASE_SHARE * limb.length)


def limb_part(limb: Limb, tree: BodyTree) -> str:
    """What most of a limb's joints are called: leg, arm, head or tail; "" if nothing."""
    count = Counter(part(tree.names[node]) for node in limb.nodes[1:] if tree.names)
    known: tuple[AnatomicalPart, ...] = ("leg", "arm", "head", "tail")
    return max(known, key=lambda name: count[name]) if set(count) - {"", "trunk"} else ""


def body_height(tree: BodyTree, up: Floats, ground: float) -> float:
    """From the ground to the tree's highest node."""
    return max(float((tree.locations @ up).max()) - ground, 1e-300)


def is_standing(pair: Pair, tree: BodyTree, up: Floats, ground: float) -> bool:
    """Whether the tips of a pair are on the ground, and below its base, and the pair is not flat."""
    height = body_height(tree, up, ground)
    tips = [(float(limb.path[-1] @ up) - ground) / height for limb in pair]
    low = min(tips) < GROUND and max(tips) < RAISED
    down = all(float(-limb.reach @ up) > 0.15 * float(np.linalg.norm(limb.reach)) for limb in pair)
    return low and down and not is_flat(pair, tree)


def is_flat(pair: Pair, tree: BodyTree) -> bool:
    """Whether a shape's limbs are much thinner than they are broad, or a skeleton calls them fins."""
    outer = [list(limb.nodes[len(limb.nodes) // 3 :]) for limb in pair]
    if tree.names:
        return any(is_fin(tree.names[node]) for nodes in outer for node in nodes)
    return float(np.mean([np.median(tree.aspects[nodes]) for nodes in outer])) < FLAT


def standing_pairs(pairs: Sequence[Pair], tree: BodyTree, up: Floats, forward: Floats, ground: float) -> list[Pair]:
    """Pairs that stand, and pairs in front of or behind them that point down but are in the air, as in a gallop."""
    standing = [pair for pair in pairs if is_standing(pair, tree, up, ground)]
    if not standing:
        return []
    hips = min((np.mean([_base(limb) for limb in pair], axis=0) for pair in standing), key=lambda base: base @ up)
    standing = [pair for pair in standing if not _is_above(pair, hips, up, forward)]
    hips = np.mean([limb.path[0] for limb in standing[0]], axis=0)
    for pair in pairs:
        base = np.mean([limb.path[0] for limb in pair], axis=0) - hips
        long = min(limb.length for limb in pair) >= LIFTED * min(limb.length for limb in standing[0])
        down = all(-limb.reach @ up > 0.5 * np.linalg.norm(limb.reach) for limb in pair)
        level = abs(base @ forward) > 2 * abs(base @ up)
        if not _among(pair, standing) and long and down and level and not is_flat(pair, tree):
            standing.append(pair)
    return standing


def _is_above(pair: Pair, hips: Floats, up: Floats, forward: Floats) -> bool:
    """Whether a pair leaves the trunk above the hips rather than before or behind them: arms that reach the ground."""
    away = np.mean([_base(limb) for limb in pair], axis=0) - hips
    length = float(np.mean([limb.length for limb in pair]))
    return bool(away @ up > max(abs(away @ forward), ABOVE * length))


def _among(pair: Pair, others: Sequence[Pair]) -> bool:
    return any(pair is other for other in others)


def _spine_direction(
    pairs: Sequence[Pair], standing: Sequence[Pair], tree: BodyTree, up: Floats, forward: Floats
) -> Floats:
    """Of two pairs or more, along their bases, forward if they all stand; of one, from it to what is ahead or above."""
    bases = np.array([(_base(pair[0]) + _base(pair[1])) / 2 for pair in (standing if len(standing) > 1 else pairs)])
    if not len(bases):
        return forward
    hips = np.mean([_base(limb) for pair in (standing or pairs) for limb in pair], axis=0)
    away = bases[np.argmax(np.linalg.norm(bases - hips, axis=1))] - hips
    if len(standing) > 1:
        centred = (bases - bases.mean(axis=0)) @ np.stack([up, forward], axis=1)
        u, f = np.linalg.svd(centred, full_matrices=False)[2][0]
        away = (u * up + f * forward) * (1.0 if f > 0 else -1.0)
    elif np.linalg.norm(away) < 0.05 * tree.size:
        away = tree.locations[np.argmax(tree.locations @ (up + forward))] - hips if standing else forward
    flat = (away @ up) * up + (away @ forward) * forward
    length = float(np.linalg.norm(flat))
    if length < 1e-9:
        return forward
    flat = flat / length
    return -flat if not standing and flat @ (up + forward) < 0 else flat


def _arms(legs: Sequence[Pair], others: Sequence[Pair], tree: BodyTree) -> list[Pair]:
    """The first pair beyond the legs of a body on two; of one that stands on none, its wings or its longest pair."""
    if len(legs) > 1 or not others:
        return []
    if not legs:
        return [max(others, key=lambda pair: (is_flat(pair, tree), pair[0].length + pair[1].length))]
    least = SHORT_ARM * legs[0][0].length
    long = [pair for pair in others if min(pair[0].length, pair[1].length) >= least]
    return long[:1]


def _axial(
    rest: Sequence[Limb], found: Sequence[Limb], tree: BodyTree, rear: int, front: int, direction: Floats
) -> list[Limb]:
    """The head and the tail: of limbs in no pair, the longest at the front and at the rear of the spine."""
    middle = (tree.locations[rear] + tree.locations[front]) / 2
    chains: dict[Role, list[list[int]]] = {"head": [], "tail": []}
    paired = {node for limb in found for node in limb.nodes[1:]}
    for limb in rest:
        if paired & set(tree.path(front, limb.nodes[-1])):
            continue  # on an arm or a leg
        ahead = float((tree.locations[limb.nodes[-1]] - middle) @ direction) > 0
        called = limb_part(limb, tree)
        ahead = called == "head" if called in ("head", "tail") else ahead
        start = front if ahead else rear
        chains["head" if ahead else "tail"].append(tree.path(start, limb.nodes[-1]))
    out = []
    for role, some in chains.items():
        if some:
            common = _common(some)
            nodes = common if len(some) > 1 and len(common) > 2 else max(some, key=tree.length)
            out.append(Limb(tuple(nodes), tree.locations[nodes], role))
    return out


def _common(chains: Sequence[Sequence[int]]) -> list[int]:
    """What chains share from their start on."""
    shared = []
    for nodes in zip(*chains, strict=False):
        if len(set(nodes)) > 1:
            break
        shared.append(nodes[0])
    return shared
