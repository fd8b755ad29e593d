"""Limbs of a stout body that follow those of a slender one, kept off each other and off the trunk.

Limbs that point where a slender source's point run through each other where they are thick. So pairs of legs and of
arms are splayed by an angle α, the same in all frames, each to its own side about the trunk's forward direction. With
points along both limbs of a pair and along the trunk, r their distances from the surface, d(α) how far two of them are
apart and d₀ how far at rest, α is where

    Σ max(0, min(r_i + r_j, d₀) − d(α))² / (r_i + r_j)²  +  SPLAY_COST α²

is least, in the mean of frames and points. What touches at rest may touch.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pliant.core.topology import Floats, Ints
from pliant.geometry.body_plan.following import Follower, forward
from pliant.geometry.body_plan.matching import LimbMatch
from pliant.geometry.segments import nearest_segment

ANGLES = np.radians(np.arange(0, 11, 5))
"""That are tried first; the least is looked for between the neighbours of the best."""
ANGLE_TOLERANCE = 1e-4
"""Of that, in radians."""
SPLAY_COST = 0.08
"""Of a splay by a radian."""
FRAMES = 16
"""In which limbs are looked at, evenly."""
SAMPLES_ALONG = (0.25, 0.5, 0.75, 1.0)
"""Of each bone."""
FEW_POINTS = 8
"""Nearest to a sample, below which they do not say how thick the bone is there."""
AT_TRUNK = 0.3
"""Share of a limb's length at its base where it meets the trunk and the other limb anyway."""


def with_clearance(follower: Follower, match: LimbMatch, points: Floats) -> Follower:
    """The follower with legs and arms splayed. points: (n, 3) of the target's surface."""
    thickness = _thickness(follower, points)
    frames = np.unique(np.linspace(0, len(follower.source) - 1, FRAMES).astype(int))
    few = replace(follower, source=follower.source.at(frames))
    for role in ("leg", "arm"):
        orders = {limb.order for _, limb in match.pairs if limb.role == role}
        for order in sorted(orders):
            both = [k for k, (_, limb) in enumerate(match.pairs) if (limb.role, limb.order) == (role, order)]
            sides = [match.pairs[k][1].side for k in both]
            if sorted(sides) == [-1, 1]:
                few = _splayed(few, both, sides, _best_angle(few, both, sides, thickness))
    return replace(follower, splay=few.splay)


def _best_angle(follower: Follower, both: list[int], sides: list[int], thickness: Floats) -> float:
    """The splay of a pair that costs least."""
    from scipy.optimize import minimize_scalar

    def cost(angle: float) -> float:
        return _overlap(_splayed(follower, both, sides, angle), both, thickness) + SPLAY_COST * angle**2

    costs = [cost(angle) for angle in ANGLES]
    best = int(np.argmin(costs))
    low, high = ANGLES[max(best - 1, 0)], ANGLES[min(best + 1, len(ANGLES) - 1)]
    found = minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": ANGLE_TOLERANCE})
    return float(found.x) if found.fun < costs[best] else float(ANGLES[best])


def _splayed(follower: Follower, both: list[int], sides: list[int], angle: float) -> Follower:
    return replace(follower, splay={**follower.splay, **{k: angle * side for k, side in zip(both, sides, strict=True)}})


def _thickness(follower: Follower, points: Floats) -> Floats:
    """(m, k) by node, at the samples of the bone that ends there: the median distance of the points nearest to it.

    Of a bone that has few of them there, that of the whole bone.
    """
    tree = follower.target.tree
    bones = np.flatnonzero(tree.parents >= 0)
    a, b = tree.locations[tree.parents[bones]], tree.locations[bones]
    owner, away = nearest_segment(points, a, b)
    along = np.einsum("ij,ij->i", points - a[owner], (b - a)[owner])
    along /= np.maximum(((b - a) ** 2).sum(axis=1), 1e-300)[owner]
    sample = np.abs(along[:, None] - SAMPLES_ALONG).argmin(axis=1)
    found = np.zeros((len(tree.locations), len(SAMPLES_ALONG)))
    for k in np.unique(owner):
        own = owner == k
        found[bones[k]] = np.median(away[own])
        for j in range(len(SAMPLES_ALONG)):
            if (sample[own] == j).sum() >= FEW_POINTS:
                found[bones[k], j] = np.median(away[own & (sample == j)])
    return found


Samples = tuple[Ints, Ints, Floats, Floats]
"""Points between two nodes: (k,) the one, the other, how far from the one to the other, and the thickness there."""


def _samples(nodes: tuple[int, ...], first: float, locations: Floats, thickness: Floats) -> Samples:
    """Points along a chain of nodes, from a share of its length on: between which nodes, how far, and how thick."""
    steps = np.linalg.norm(np.diff(locations[list(nodes)], axis=0), axis=1)
    at = np.concatenate([[0.0], np.cumsum(steps)]) / max(float(steps.sum()), 1e-300)
    rows = [
        (nodes[k], nodes[k + 1], t, thickness[nodes[k + 1], j])
        for k in range(len(nodes) - 1)
        for j, t in enumerate(SAMPLES_ALONG)
        if at[k] + t * (at[k + 1] - at[k]) >= first and thickness[nodes[k + 1], j] > 0
    ]
    a, b, t, r = (np.array(column) for column in zip(*rows, strict=True)) if rows else (np.zeros(0),) * 4
    return a.astype(int), b.astype(int), t, r


def _trunk(follower: Follower, both: list[int], thickness: Floats) -> Samples:
    """Points along the spine, and from it to where other limbs than the two of a pair begin."""
    target, chains = follower.target, [tuple(follower.target.anatomy.spine)]
    for k, (_, chain) in enumerate(follower.pairs):
        if k not in both and chain.role in ("leg", "arm"):
            joins = (*chain.collar, chain.nodes[0])
            chains.append((int(target.tree.parents[joins[0]]), *joins))
    found = [_samples(chain, 0.0, target.tree.locations, thickness) for chain in chains]
    return tuple(np.concatenate(column) for column in zip(*found, strict=True))  # type: ignore[return-value]


def _overlap(follower: Follower, both: list[int], thickness: Floats) -> float:
    """How much the two limbs of a pair run through each other and through the trunk."""
    target = follower.target
    rotated = follower.rotations()
    moved = forward(target, rotated, np.zeros((len(rotated), 3)))
    limbs = [_samples(follower.pairs[k][1].nodes, AT_TRUNK, target.tree.locations, thickness) for k in both]
    trunk = _trunk(follower, both, thickness)
    total = 0.0
    for one, other in ((limbs[0], limbs[1]), (limbs[0], trunk), (limbs[1], trunk)):
        if len(one[0]) and len(other[0]):
            reach = one[3][:, None] + other[3]
            rest, now = (
                np.linalg.norm(_at(p, one)[..., :, None, :] - _at(p, other)[..., None, :, :], axis=-1)
                for p in (target.tree.locations, moved)
            )
            overlap = np.square(np.maximum(np.minimum(reach, rest) - now, 0) / reach)
            seen_from = (-1, -2) if other is limbs[1] else (-1,)  # neither limb counts for more than the other
            total += float(np.mean([overlap.max(axis=k).mean() for k in seen_from]))
    return total


def _at(positions: Floats, samples: Samples) -> Floats:
    a, b, t, _ = samples
    return (1 - t)[:, None] * positions[..., a, :] + t[:, None] * positions[..., b, :]
