"""Feet, hands and heads that move rigidly, though the cage around them bends.

The points of a foot, a hand or a head go with the bone in it; where that is farther than τ from where the cage has
their centre (a cage that is held does not travel), they rotate with the bone about that. With a the joint where it
begins, u the mean of the directions of the bones before and after it, and τ half of its thickness, the share of the
rigid motion at a point p is

    w = S((p − a)·u / 2τ + ½) · S((d' − d) / τ) · S(2 − |x − x'| / τ),      S(t) = t² (3 − 2 t) from 0 to 1,

where d and d' are the distances of p from these bones and from all others, and x and x' where the cage and the rigid
motion have it, farthest apart in any frame. So what the cage moves otherwise (a hip beside a hanging hand) stays with
the cage, and nothing is torn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from pliant.core import rotations
from pliant.core.clips import Animation
from pliant.core.topology import Floats
from pliant.core.values import locked
from pliant.geometry.body_plan.retargeted import Retargeted
from pliant.geometry.segments import nearest_segment

FEWEST_END_POINTS = 8
"""Of a foot, a hand or a head."""


@dataclass(frozen=True, eq=False)
class Extremity:
    """Nodes of a target's tree, from the one before a foot, a hand or a head to its tip."""

    before: int
    nodes: tuple[int, ...]


def extremities(found: Retargeted) -> Iterator[Extremity]:
    """Feet, hands and heads of a target."""
    for _, chain in found.follower.pairs:
        if chain.role in ("leg", "arm") and chain.end < 1:
            k = chain.nodes.index(chain.end_node)
            yield Extremity(chain.nodes[k - 1], chain.nodes[k:])
    for limb in found.target.anatomy.limbs:
        if limb.role == "head" and len(limb.nodes) > 2:
            yield Extremity(limb.nodes[-3], limb.nodes[-2:])


def with_rigid_ends(clip: Animation, found: Retargeted, times: Floats) -> Animation:
    """The clip of a target with rigid feet, hands and heads. times: (frames,) in those of the motion found."""
    tree, rest = found.target.tree, clip.shape.points
    points, bones = clip.points.copy(), np.flatnonzero(tree.parents >= 0)
    ends = tree.locations[tree.parents[bones]], tree.locations[bones]
    positions, frames = found.motion.at(times).world()
    rest_positions, rest_frames = found.skeleton.rest_world
    for end in extremities(found):
        mine = np.isin(bones, end.nodes)
        owner, near = nearest_segment(rest, *(side[mine] for side in ends))
        other = nearest_segment(rest, *(side[~mine] for side in ends))[1]
        own = np.flatnonzero(near < other)
        core = own[bones[mine][owner[own]] != end.nodes[0]]
        if len(core) < FEWEST_END_POINTS:
            continue
        tau = max(float(np.median(near[core])), 1e-300)
        a, u = _along(tree.locations, end)
        share = _step((other[own] - near[own]) / tau) * _step((rest[own] - a) @ u / (2 * tau) + 0.5)
        if share.sum() < FEWEST_END_POINTS / 2:
            continue
        joint = int(tree.joints[end.nodes[0]])
        R = rotations.multiply(frames[:, joint], rotations.inverse(rest_frames[joint]))
        moved, m = clip.points[:, own], share / share.sum()
        centre, centres = m @ rest[own], np.einsum("n,fni->fi", m, moved)
        along_bone = positions[:, joint] + rotations.rotate(R, centre - rest_positions[joint])
        if np.linalg.norm(along_bone - centres, axis=1).max() < tau:
            centres = along_bone
        away = rotations.rotate(R[:, None], rest[own] - centre) + centres[:, None] - moved
        share = share * _step(2 - np.linalg.norm(away, axis=2).max(axis=0) / tau)
        points[:, own] += share[:, None] * away
    return replace(clip, points=locked(points))


def _along(locations: Floats, end: Extremity) -> tuple[Floats, Floats]:
    """Where an extremity begins, and its direction there."""
    a, b, c = (locations[node] for node in (end.before, end.nodes[0], end.nodes[-1]))
    u = _unit(b - a) + _unit(c - b)
    return b, _unit(u)


def _unit(v: Floats) -> Floats:
    unit: Floats = v / max(float(np.linalg.norm(v)), 1e-300)
    return unit


def _step(t: Floats) -> Floats:
    t = np.clip(t, 0, 1)
    return t * t * (3 - 2 * t)
