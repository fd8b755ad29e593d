"""How well a body that was moved shows the motion that it follows, by where its limbs went.

Nodes of the target's tree go rigidly with the points around them. Its limbs are compared with the source's that they
follow, piece by piece: with u and v the shares at which a piece begins and ends, and φ from the target's limb to the
source's (`guides`), the error of a piece is the angle between

    x(v) − x(u)   and   T (y(φ(v)) − y(φ(u))).

What bodies do with their limbs, wherever they go and face, is their *articulation*: the root mean square distance of
points from their mean shape, frames being rigidly aligned to it, over the size of that, or over the limb's length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pliant.core.normals import unit
from pliant.core.shapes import bounding_diagonal
from pliant.core.topology import Floats, Ints
from pliant.geometry.body_plan.contacts import runs
from pliant.geometry.body_plan.guides import Between
from pliant.geometry.body_plan.limbs import Limb
from pliant.geometry.body_plan.retargeted import Retargeted
from pliant.geometry.segments import nearest_segment
from pliant.geometry.shape_matching import match

LEAST_SLIDE = 1e-3
"""Over the height, below which no source tells whether its feet slide."""
POINTS_OF_A_NODE = 12
"""Points of a shape that a node goes along with."""
LIMB_SAMPLES = 8
"""Points along each limb by which articulation is measured."""
ALIGNMENT_ROUNDS = 3
"""Rounds in which frames are aligned to their mean."""


def followed_nodes(rest: Floats, moved: Floats, nodes: Floats) -> Floats:
    """(frames, k, 3) where nodes (k, 3) inside a shape go: rigidly with the points (n, 3) around them."""
    from scipy.spatial import cKDTree

    near = cKDTree(rest).query(nodes, k=min(POINTS_OF_A_NODE, len(rest)))[1].reshape(len(nodes), -1)
    found = np.zeros((len(moved), len(nodes), 3))
    for k, some in enumerate(near):
        centre, centres, R = match(rest[some], moved[:, some], np.ones(len(some)), "rotation")
        found[:, k] = centres + R @ (nodes[k] - centre)
    return found


def limb_errors(found: Retargeted, source: Floats, target: Floats) -> dict[str, Floats]:
    """By limb of the target, (frames, pieces) degrees between the pieces of legs and arms and what they follow.

    source, target: (frames, nodes, 3) of both trees, at the same times.
    """
    errors = {}
    for (_, limb), (mine, theirs) in zip(found.match.pairs, found.follower.pairs, strict=True):
        nodes = [n for n, share in zip(theirs.nodes, theirs.shares, strict=True) if share <= theirs.end + 1e-9]
        pieces = []
        for a, b in pairwise(nodes if theirs.role in ("leg", "arm") else ()):
            u, v = (theirs.mapped(float(theirs.shares[theirs.nodes.index(n)]), mine) for n in (a, b))
            here = _between(source, mine.between(v)) - _between(source, mine.between(u))
            there = target[:, b] - target[:, a]
            here, there = here @ found.source.world.T, there @ found.target.frame.T
            size = np.linalg.norm(here, axis=1) * np.linalg.norm(there, axis=1)
            cosine = (here * there).sum(axis=1) / np.maximum(size, 1e-300)
            pieces.append(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
        if pieces:
            errors[found.target.anatomy.named(limb)] = np.stack(pieces, axis=1)
    return errors


def foot_slopes(found: Retargeted, target: Floats, frames: Ints) -> dict[str, tuple[Ints, Floats]]:
    """By leg of the target, (k,) the frames in which the source's foot stands on all of its own, and (k,) degrees by
    which the target's is steeper than at rest: less than 0 on its toes.

    target: (frames, nodes, 3) of its tree. frames: (frames,) the source's frames.
    """
    slopes = {}
    up = found.target.frame[1]
    for (_, limb), (mine, theirs) in zip(found.match.pairs, found.follower.pairs, strict=True):
        if theirs.role != "leg" or theirs.end >= 1:
            continue
        stands = (found.contacts.planted[mine.end_node] & found.contacts.planted[mine.nodes[-1]])[frames]
        moved = target[stands, theirs.nodes[-1]] - target[stands, theirs.end_node]
        rest = found.target.tree.locations[theirs.nodes[-1]] - found.target.tree.locations[theirs.end_node]
        rises = [np.degrees(np.arcsin(np.clip(unit(foot) @ up, -1, 1))) for foot in (moved, rest[None])]
        if stands.any():
            slopes[found.target.anatomy.named(limb)] = np.flatnonzero(stands), rises[0] - rises[1]
    return slopes


def foot_heights(found: Retargeted, rest: Floats, moved: Floats, frames: Ints) -> dict[str, tuple[Ints, Floats]]:
    """By leg of the target, (k,) the frames in which the source's foot stands, and (k,) how high above the floor the
    lowest point of the target's is, over the target's height.

    rest, moved: (n, 3) and (frames, n, 3) the target's points. frames: (frames,) the source's frames.
    """
    tree, up = found.target.tree, found.target.frame[1]
    bones = np.flatnonzero(tree.parents >= 0)
    owners = tree.parents[bones][nearest_segment(rest, tree.locations[tree.parents[bones]], tree.locations[bones])[0]]
    heights = {}
    for (_, limb), (mine, theirs) in zip(found.match.pairs, found.follower.pairs, strict=True):
        stands = (found.contacts.planted[mine.end_node] | found.contacts.planted[mine.nodes[-1]])[frames]
        foot = theirs.nodes[min(theirs.nodes.index(theirs.end_node), len(theirs.nodes) - 2) :]
        sole = np.isin(owners, foot)
        if theirs.role == "leg" and stands.any() and sole.any():
            above = (moved[stands][:, sole] @ up).min(axis=1) - found.target.ground
            heights[found.target.anatomy.named(limb)] = np.flatnonzero(stands), above / np.ptp(rest @ up)
    return heights


@dataclass(frozen=True)
class FootSlide:
    """How far feet slide along the floor in a contact, in the mean, over the height of their body."""

    source: float
    target: float

    @property
    def ratio(self) -> float:
        """The target's over the source's."""
        return self.target / max(self.source, LEAST_SLIDE)


def foot_slide(found: Retargeted, source: Floats, target: Floats, frames: Ints, height: float) -> FootSlide | None:
    """Of ankles and tips while the source's are planted in two frames that follow each other, and between them.

    source, target: (frames, nodes, 3) of both trees. frames: (frames,) the source's frames. height: of the target. None
    where nothing stands that long.
    """
    up = found.source.world[1], found.target.frame[1]
    heights = float(np.ptp(found.source.body.tree.locations @ found.source.body.frame[1])), height
    totals, contacts = np.zeros(2), 0
    for mine, theirs in found.follower.legs:
        for nodes in ((mine.end_node, theirs.end_node), (mine.nodes[-1], theirs.nodes[-1])):
            planted = found.contacts.planted[nodes[0]]
            both = np.array([i < j and planted[i : j + 1].all() for i, j in pairwise(frames.tolist())], dtype=bool)
            contacts += len(runs(both))
            for k, positions in enumerate((source, target)):
                steps = np.diff(positions[:, nodes[k]], axis=0)[both]
                totals[k] += np.linalg.norm(steps - np.outer(steps @ up[k], up[k]), axis=1).sum() / heights[k]
    return FootSlide(*(totals / contacts).tolist()) if contacts else None


def _between(positions: Floats, at: Between) -> Floats:
    i, j, t = at
    return (1 - t) * positions[:, i] + t * positions[:, j]


def limb_articulation(limbs: Sequence[Limb], nodes: Floats) -> float:
    """How much limbs of a body whose nodes (frames, m, 3) move do so against each other, each over its length.

    So a tail that goes along, or arms that are short, make no difference.
    """
    points = []
    for limb in limbs:
        path = nodes[:, list(limb.nodes)]
        at = np.linspace(0, len(limb.nodes) - 1, LIMB_SAMPLES)
        low = np.minimum(at.astype(int), len(limb.nodes) - 2)
        t = (at - low)[:, None]
        points.append((1 - t) * path[:, low] + t * path[:, low + 1])
    lengths = np.repeat([limb.length for limb in limbs], LIMB_SAMPLES)
    away = _against_each_other(np.concatenate(points, axis=1))[0] / lengths[:, None]
    return float(np.sqrt(np.square(away).sum(axis=2).mean()))


def articulation(points: Floats) -> float:
    """How much points (frames, n, 3) move against each other, over their size."""
    away, mean = _against_each_other(points)
    size = bounding_diagonal(mean)
    return float(np.sqrt(np.square(away).sum(axis=2).mean()) / size) if size > 0 else 0.0


def _against_each_other(points: Floats) -> tuple[Floats, Floats]:
    """(frames, n, 3) how far points are from their mean shape, frames being rigidly aligned to it, and (n, 3) that."""
    mean, aligned = points[0], points
    for _ in range(ALIGNMENT_ROUNDS):
        centre, centres, R = match(mean, points, np.ones(len(mean)), "rotation")
        aligned = np.einsum("fij,fni->fnj", R, points - centres[:, None]) + centre
        mean = aligned.mean(axis=0)
    return aligned - mean, mean
