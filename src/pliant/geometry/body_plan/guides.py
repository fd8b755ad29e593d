"""Which part of a moving body each node of another body follows.

A node of a matched limb *points*: with its bone from u to v of its limb's length, it takes the direction from φ(u) to
φ(v) of the other's limb. φ maps lengths to lengths, knees to knees and ankles to ankles where both have as many. Nodes
of the trunk, head, tail and feet keep their *posture*: they rotate, from their own rest pose, as the other's do from
theirs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pliant.core.topology import Floats
from pliant.geometry.body_plan.bodies import OrientedBody
from pliant.geometry.body_plan.limbs import Limb
from pliant.geometry.body_plan.names import is_foot, is_helper, is_middle, joins_trunk, part, tokens
from pliant.geometry.body_plan.tree import polyline_lengths

COLLAR = 0.35
"""Length of what joins a limb to the trunk, a collarbone or a hip, over the limb, at most."""
HIP, SIDEWAYS = 0.2, 0.85
"""Length of a bone that leads from the trunk to the side, over the leg, at most; and cosine of how far to the side."""
ANKLE = 0.16
"""Height of an ankle, over that of the hip, at most."""
HAND = 0.33
"""Length of a hand, over the arm, at most."""
MOST_HIDDEN = 0.5
"""Share of a leg that a trunk may hide."""
NEAR_JOINT = 0.06
"""Distance of two joints, over the limb's length, up to which they are one."""

ExpectedJoints = tuple[tuple[float, ...], bool]
"""Shares of a limb's length up to its inner joints, and whether the last of them begins a foot or a hand."""
Between = tuple[int, int, float]
"""Two nodes, and how far from the one to the other."""


@dataclass(frozen=True, eq=False)
class Chain:
    """A limb of a jointed body, from its first bone that is not a collarbone to its tip."""

    role: str
    collar: tuple[int, ...]
    """Nodes between trunk and base"""
    nodes: tuple[int, ...]
    """From base to tip"""
    shares: Floats
    """(k,) of its length, up to each node, at rest"""
    length: float
    end: float
    """Share at which its foot or hand begins; 1 without"""
    inner: tuple[float, ...]
    """Shares of the joints between base and end"""
    start: float = 0.0
    """Share from which it is followed: a thigh may be inside the trunk"""

    @property
    def end_node(self) -> int:
        """The ankle or wrist, or the tip."""
        return self.nodes[int(np.searchsorted(self.shares, self.end - 1e-9))]

    def between(self, share: float) -> Between:
        """The nodes before and after a share of its length."""
        k = int(np.clip(np.searchsorted(self.shares, share, side="right") - 1, 0, len(self.nodes) - 2))
        span = float(self.shares[k + 1] - self.shares[k])
        return self.nodes[k], self.nodes[k + 1], float(np.clip((share - self.shares[k]) / max(span, 1e-300), 0, 1))

    def mapped(self, share: float, other: Chain) -> float:
        """φ: the other's share that corresponds to one of this chain."""
        same = len(self.inner) == len(other.inner)
        mine = [0.0, *(self.inner if same else ()), self.end, *([1.0] if self.end < 1 else ())]
        theirs = [other.start, *(other.inner if same else ()), other.end, *([1.0] if self.end < 1 else ())]
        return float(np.interp(share, mine, theirs))


def expected_joints(
    source: OrientedBody, one: Limb, target: OrientedBody, curve: Floats, ankle: float, start: float = 0.0
) -> ExpectedJoints | None:
    """Of a target's limb, whose curve is known, from the source's limb.

    ankle: the share at which its foot begins. Without one, the end of a leg is as high above the ground, over the hip,
    as the source's. start: share of the source's limb from which it is followed.
    """
    if one.role not in ("leg", "arm"):
        return None
    chain = chain_of(source, one, start)
    if chain.end >= 1 and (ankle >= 1 or source.anatomy.legs > 2):  # animals stand on what is their legs' tips
        inner = tuple((share - start) / (1 - start) for share in chain.inner)
        return (inner, False) if inner else None
    end = chain.end if ankle >= 1 else ankle
    if one.role == "leg" and ankle >= 1:
        there = source.tree.locations[[chain.nodes[0], chain.end_node]] @ source.frame[1] - source.ground
        heights = curve @ target.frame[1] - target.ground
        steps = polyline_lengths(curve)
        low = np.flatnonzero(heights <= float(there[1] / max(float(there[0]), 1e-300)) * heights[0])
        end = float(np.clip(steps[low[0]] / steps[-1] if len(low) else 1.0, 0.6, 0.95))
    return (*(share * end / chain.end for share in chain.inner), end), True


def hidden_share(source: OrientedBody, one: Limb, target: OrientedBody, other: Limb, base: Floats) -> float:
    """Share of an animal's leg, of a skeleton, that the target's surface hides in its trunk: a thigh, an upper arm.

    These are bones that are higher, in the middle and over the height of the trunk, than where the target's leg leaves
    its own. base: (3,) there.
    """
    if one.role != "leg" or source.anatomy.legs <= 2:
        return 0.0
    chain = chain_of(source, one)
    heights = source.tree.locations[[one.nodes[0], *chain.nodes]] @ source.frame[1] - source.ground
    trunk, leaves = (np.array([other.path[0], base]) @ target.frame[1] - target.ground).tolist()
    over = heights[1:] / max(float(heights[:2].max()), 1e-300)
    hidden = [k for k in range(1, len(over) - 1) if (over[k - 1] + over[k]) / 2 > leaves / max(trunk, 1e-300)]
    share = float(chain.shares[max(hidden, default=0)])
    return share if share <= MOST_HIDDEN else 0.0


def chain_of(body: OrientedBody, limb: Limb, start: float = 0.0) -> Chain:
    """A limb of a jointed body. start: share from which it is followed."""
    nodes, tree = list(limb.nodes), body.tree
    lengths = np.linalg.norm(np.diff(limb.path, axis=0), axis=1)
    first = 1 if len(nodes) > 2 else 0
    if limb.role in ("leg", "arm"):
        beside = np.abs(np.diff(limb.path, axis=0) @ body.frame[0]) / np.maximum(lengths, 1e-300)
        while len(nodes) - first > 2 and (
            _is_collar([tree.names[node] for node in nodes], limb.role, lengths, beside, first)
            or (limb.role == "leg" and _is_hip(beside, lengths, first))
        ):
            first += 1
    kept = nodes[first:]
    steps = polyline_lengths(tree.locations[kept])
    shares = steps / max(float(steps[-1]), 1e-300)
    end = _end(body, limb, kept, shares)
    inner: list[float] = []
    stems = [re.sub(r"\d+", "", "".join(tokens(tree.names[node]))) for node in kept]
    for k in range(1, len(kept)):
        apart = shares[k] - (inner[-1] if inner else start)
        if (
            shares[k] < end - NEAR_JOINT
            and apart > NEAR_JOINT
            and not is_helper(tree.names[kept[k]])
            and (stems[k] != stems[k - 1] or not _numbered(tree, kept[k]))
        ):
            inner.append(float(shares[k]))
    return Chain(limb.role, tuple(nodes[1:first]), tuple(kept), shares, float(steps[-1]), end, tuple(inner), start)


def _numbered(tree: object, node: int) -> bool:
    """Whether a joint is one of several that share a bone, such as upperleg02."""
    return bool(re.search(r"0\d", tree.names[node]))  # type: ignore[attr-defined]


def _is_collar(named: Sequence[str], role: str, lengths: Floats, beside: Floats, k: int) -> bool:
    """Whether the bone k of a limb joins it to the trunk: by its name, or because it is short.

    Short thighs, which are called so and do not lead to the side, do not. beside: (bones,) cosines.
    """
    whole = float(lengths.sum())
    if is_middle(named[k + 1]):
        return False
    if joins_trunk(named[k]):
        return float(lengths[k]) <= COLLAR * whole
    if part(named[k]) == role and beside[k] < SIDEWAYS:
        return False
    return float(lengths[: k + 1].sum()) <= COLLAR * whole and float(lengths[k]) < 0.6 * float(lengths.max())


def _is_hip(beside: Floats, lengths: Floats, k: int) -> bool:
    """Whether the bone k of a leg leads to the side, and the leg begins after it. beside: (bones,) cosines."""
    return bool(lengths[k] <= HIP * lengths[k:].sum() and beside[k] > SIDEWAYS and beside[k + 1] < 0.5)


def _end(body: OrientedBody, limb: Limb, nodes: Sequence[int], shares: Floats) -> float:
    """The share at which a leg's foot or an arm's hand begins; 1 without one."""
    tree, inner = body.tree, range(2, len(nodes) - 1)
    if body.extremities is not None:
        return float(shares[-2]) if limb.key in body.extremities else 1.0
    if limb.role == "leg":
        heights = tree.locations[list(nodes)] @ body.frame[1] - body.ground
        standing = heights[0] > 0.5 * np.linalg.norm(limb.reach)
        low = heights <= ANKLE * heights[0] if standing else np.ones(len(nodes), dtype=bool)
        found = [k for k in inner if is_foot(tree.names[nodes[k]]) and (heights[k] <= 0.3 * heights[0] or not standing)]
        found += [k for k in range(1, len(nodes) - 1) if standing and low[k:].all()]
        return float(shares[min(found)]) if found else 1.0
    if limb.role == "arm":
        named = [
            k for k in inner if any(word in tokens(tree.names[nodes[k]]) for word in ("hand", "wrist", "palm", "fist"))
        ]
        if named and shares[named[0]] > 0.5:
            return float(shares[named[0]])
        short = [k for k in inner if 1 - shares[k] <= HAND]
        return float(shares[short[0]]) if short else 1.0
    return 1.0


@dataclass(frozen=True, eq=False)
class Guide:
    """What a node follows."""

    rotation: Between
    """Nodes of the moving body that it rotates with"""
    chord: tuple[Between, Between] | None = None
    """Where its bone points from and to; None where it keeps its posture"""
    along: Floats | None = None
    """(3,) its own bone at rest"""


Guides = dict[int, Guide]


def limb_guides(source: Chain, target: Chain, body: OrientedBody) -> Guides:
    """For the nodes of a target's limb. body: the target."""
    guides: Guides = {}
    if target.collar and source.collar:
        for node in target.collar:
            guides[node] = Guide(_at(source.collar[-1]))
    locations = body.tree.locations
    for k in range(len(target.nodes) - 1):
        node, following = target.nodes[k], target.nodes[k + 1]
        along = locations[following] - locations[node]
        if not np.any(along):
            continue
        a, b = (target.mapped(float(target.shares[i]), source) for i in (k, k + 1))
        turning = source.between((a + b) / 2)[0]
        beyond = target.shares[k] >= target.end - 1e-9
        if source.role not in ("leg", "arm", "limb"):
            guides[node] = Guide(source.between((a + b) / 2))
        elif not beyond:
            guides[node] = Guide(_at(turning), (source.between(a), source.between(b)), along)
        elif source.end < 1 and source.role == "leg":
            guides[node] = Guide(_at(turning))
        elif source.end < 1:
            guides[node] = Guide(_at(turning), (source.between(source.end), source.between(1.0)), along)
    return guides


def _at(node: int) -> Between:
    return node, node, 0.0


def spine_guides(source: OrientedBody, target: OrientedBody) -> Guides:
    """For the nodes of a target's trunk."""
    there = list(source.anatomy.spine)
    steps = polyline_lengths(source.tree.locations[there])
    shares = steps / max(float(steps[-1]), 1e-300)
    own = list(target.anatomy.spine)
    lengths = polyline_lengths(target.tree.locations[own])
    guides: Guides = {}
    for node, length in zip(own, lengths / max(float(lengths[-1]), 1e-300), strict=True):
        k = int(np.clip(np.searchsorted(shares, length, side="right") - 1, 0, max(len(there) - 2, 0)))
        if length == 0 or len(there) < 2 or steps[-1] == 0:
            guides[node] = Guide(_at(there[0]))
        else:
            t = (length - shares[k]) / max(float(shares[k + 1] - shares[k]), 1e-300)
            guides[node] = Guide((there[k], there[k + 1], float(np.clip(t, 0, 1))))
    return guides
