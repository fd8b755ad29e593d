"""Feet on the ground: contacts of the source are contacts of the body that follows it, and the floor is a floor.

The sole of a foot is as high above the floor as the source's, times the scale, where that is near its floor. While the
source's ankle or toes stand still, those of the target do: they keep the mean of the places that they would have
slid through. While both stand, the foot is level, in the mean. From one contact to the next the correction goes over
smoothly, in the air. The root is lowered where a leg would not reach the ground, and raised where the trunk would sink
into it. Legs then reach their ankles by inverse kinematics (FABRIK, Aristidou and Lasenby 2011), from the pose that
they had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pliant.core import rotations
from pliant.core.topology import Floats, Ints
from pliant.geometry.body_plan.bodies import OrientedBody
from pliant.geometry.body_plan.contacts import Contacts, Flags, find_contacts, runs
from pliant.geometry.body_plan.following import Follower, forward, leg_length, standing_height
from pliant.geometry.body_plan.guides import Chain

FABRIK_ROUNDS = 24
GROUND_PASSES, LIMB_PASSES, SUNK = 4, 3, 0.002
"""In which the root, and the end of a limb, are raised, at most; and how deep something may be below the floor, over
the target's size."""
NEAR_FLOOR = 0.35
"""Height of the source's foot, over the leg's length, from which the target's is not corrected."""
REACH = 0.998
"""Share of a leg's length that it is stretched to, at most."""
STRAIGHT = 0.01
"""Distance of a knee from the line through hip and ankle, over the leg's length, below which it is pushed aside."""
STATIC_SLIDE = 0.01
"""How far a point slides, over the leg's length, that counts as standing still."""
EASE = 0.05
"""Seconds over which contacts begin and end."""
SETTLE = 0.12
"""Seconds over which the root is raised or lowered."""


@dataclass(frozen=True, eq=False)
class RigidSkin:
    """Points of a body, each of which goes along with one node."""

    points: Floats
    """(n, 3) at rest"""
    owners: Ints
    """(n,)"""

    def heights(self, some: Ints, body: OrientedBody, rotated: Floats, positions: Floats) -> Floats:
        """(frames,) of the lowest of some points, above the target's ground."""
        up = body.frame[1]
        least = np.full(len(rotated), np.inf)
        for node in np.unique(self.owners[some]).tolist():
            arms = self.points[some[self.owners[some] == node]] - body.tree.locations[node]
            down = rotations.rotate(rotations.inverse(rotated[:, node]), up)  # up, as the node sees it
            least = np.minimum(least, (down @ arms.T).min(axis=1) + positions[:, node] @ up)
        return least - body.ground


@dataclass(frozen=True, eq=False)
class GroundedMotion:
    """Of the target's nodes."""

    rotated: Floats
    """(frames, m, 4) against rest"""
    positions: Floats
    """(frames, m, 3)"""
    contacts: Contacts
    """Of the source"""


def grounded(follower: Follower, skin: RigidSkin | None = None) -> GroundedMotion:
    """The target's motion with its feet on the ground."""
    target, source = follower.target, follower.source
    contacts = find_contacts(source, [mine for mine, _ in follower.pairs])
    rotated = with_level_feet(follower, contacts, follower.rotations())
    root = follower.root_path(rotated, contacts.floor)
    if not follower.legs:
        return GroundedMotion(rotated, forward(target, rotated, root), contacts)
    skin = skin or node_skin(follower)
    limbs = [_Limb.of(follower, skin, *pair) for pair in follower.pairs if pair[1].role in ("leg", "arm", "tail")]
    up = target.frame[1]
    every = np.arange(len(skin.points))
    posed = rotated, forward(target, rotated, root)
    goals: list[Floats] = []
    for _ in range(GROUND_PASSES):
        positions = forward(target, rotated, root)
        goals = [limb.goal(follower, contacts, rotated, positions) for limb in limbs]
        drop = np.max(
            [limb.excess(positions, goal, contacts, up) for limb, goal in zip(limbs, goals, strict=True)], axis=0
        )
        posed = rotated, positions - (eased(drop, source.fps)[:, None] * up)[:, None]
        for limb, goal in zip(limbs, goals, strict=True):
            for _ in range(LIMB_PASSES):
                posed = limb.reach(target, *posed, goal)
                sunk = np.maximum(-skin.heights(limb.sole, target, *posed), 0)
                if not sunk.max(initial=0) > SUNK * target.size:
                    break
                goal = goal + eased(sunk, source.fps, EASE)[:, None] * up
        sunk = np.maximum(-skin.heights(every, target, *posed), 0)
        if sunk.max() <= SUNK * target.size:
            break
        root = root + eased(sunk, source.fps)[:, None] * up
    return GroundedMotion(posed[0], posed[1] + _sway(limbs, goals, contacts, posed[1], target, source.fps), contacts)


def _sway(
    limbs: Sequence[_Limb],
    goals: Sequence[Floats],
    contacts: Contacts,
    positions: Floats,
    target: OrientedBody,
    fps: float,
) -> Floats:
    """(frames, 1, 3) by how much the body goes along so that feet stand where their legs, or stumps, do not reach."""
    up, pins = target.frame[1], []
    for limb, goal in zip(limbs, goals, strict=True):
        frames = np.flatnonzero(limb.planted(contacts))
        if limb.chain.role == "leg" and len(frames):
            missed = (goal - positions[:, limb.chain.end_node])[frames]
            pins.append((frames, missed - (missed @ up)[:, None] * up, np.ones(len(frames))))
    if not pins:
        return np.zeros((len(positions), 1, 3))
    frames, values, weights = (np.concatenate(column) for column in zip(*pins, strict=True))
    return smoothed(between_pins(frames, values, weights, len(positions)), fps)[:, None]


def smoothed(path: Floats, fps: float, seconds: float = SETTLE) -> Floats:
    """(frames, 3) without jumps."""
    reach = max(1, round(seconds * fps / 2))
    window = np.hanning(2 * reach + 3)[1:-1]
    padded = np.pad(path, ((reach, reach), (0, 0)), mode="edge")
    return np.stack([np.convolve(column, window / window.sum(), mode="valid") for column in padded.T], axis=1)


def with_level_feet(follower: Follower, contacts: Contacts, rotated: Floats) -> Floats:
    """Rotations of the nodes that have feet level, in the mean, and at rest, while both ends of the source's stand.

    A source may rest with its feet aslant; a target's feet rest on the ground. From one contact to the next what keeps
    a foot as it stood goes over smoothly.
    """
    rotated, up = rotated.copy(), follower.target.frame[1]
    for mine, theirs in follower.legs:
        standing = contacts.planted[mine.end_node] & contacts.planted[mine.nodes[-1]]
        if theirs.end < 1 and standing.any():
            for node in theirs.nodes[theirs.nodes.index(theirs.end_node) :]:
                normal = rotations.rotate(rotations.inverse(rotated[standing, node]), up).mean(axis=0)
                rotated[:, node] = rotations.multiply(rotated[:, node], rotations.between(up, normal))
                rotated[:, node] = rotations.multiply(_steadying(rotated[:, node], standing), rotated[:, node])
    return rotated


def _steadying(q: Floats, standing: Flags) -> Floats:
    """(frames, 4) what rotates q (frames, 4) to its mean over each time of standing."""
    frames, vectors = [], []
    for first, last in runs(standing):
        own = q[first : last + 1]
        mean = np.linalg.eigh(own.T @ own)[1][:, -1]
        frames.append(np.arange(first, last + 1))
        vectors.append(rotations.log(rotations.shortest(rotations.multiply(mean, rotations.inverse(own)))))
    pins = np.concatenate(frames)
    return rotations.exp(between_pins(pins, np.concatenate(vectors), np.ones(len(pins)), len(q)))


def node_skin(follower: Follower) -> RigidSkin:
    """The nodes themselves, and below the ankles and tips of legs the points on the ground."""
    target = follower.target
    points, owners = list(target.tree.locations), list(range(len(target.tree.locations)))
    up = target.frame[1]
    for _, chain in follower.legs:
        for node in (chain.end_node, chain.nodes[-1]):
            point = target.tree.locations[node]
            points.append(point - (point @ up - target.ground) * up)
            owners.append(chain.end_node)
    return RigidSkin(np.array(points), np.array(owners))


@dataclass(frozen=True, eq=False)
class _Limb:
    """A leg, an arm or a tail of the target that follows one of the source."""

    source: Chain
    chain: Chain
    skin: RigidSkin
    sole: Ints
    """Points of the skin that may stand on the floor"""
    size: float
    """Length of the source's leg"""

    @classmethod
    def of(cls, follower: Follower, skin: RigidSkin, mine: Chain, theirs: Chain) -> _Limb:
        sole = np.flatnonzero(np.isin(skin.owners, theirs.nodes[1:]))
        if theirs.end >= 1 and len(theirs.nodes) < 3:
            sole = np.flatnonzero(np.isin(skin.owners, theirs.nodes))
        return cls(mine, theirs, skin, sole, leg_length(follower.source.body, mine))

    @property
    def joints(self) -> list[int]:
        """From the base to the ankle or wrist, or to the tip."""
        return list(self.chain.nodes[: self.chain.nodes.index(self.chain.end_node) + 1])

    def planted(self, contacts: Contacts) -> Flags:
        """(frames,) whether the source's foot stands."""
        return contacts.planted[self.source.end_node] | contacts.planted[self.source.nodes[-1]]

    def goal(self, follower: Follower, contacts: Contacts, rotated: Floats, positions: Floats) -> Floats:
        """(frames, 3) where the ankle is to be."""
        target, source, fps = follower.target, follower.source, follower.source.fps
        up, high = source.world[1], target.frame[1]
        ankle, count = positions[:, self.chain.end_node], len(positions)
        if not len(self.sole):
            return ankle.copy()
        clearance = self.skin.heights(self.sole, target, rotated, positions)
        ends = [self.source.end_node, self.source.nodes[-1]]
        above = source.positions[:, ends] @ up - contacts.floor
        if self.chain.role == "leg":
            above = above - [standing_height(source.body, self.source, node) for node in ends]
        height = np.maximum(above.min(axis=1), 0)
        planted = self.planted(contacts)
        near = np.clip(2 - 2 * height / (NEAR_FLOOR * self.size), 0, 1)
        if self.chain.role != "leg":  # hands rest nowhere near the ground: only contacts count
            near = eased(planted.astype(float), fps, EASE)
        standing = eased(planted.astype(float), fps, EASE)
        wanted = follower.scale * height * (1 - standing)
        lift = near * (wanted - clearance)
        lift = np.maximum(lift, -clearance)  # nothing below the floor
        shift = np.zeros((count, 3))
        pins = self._pins(follower, contacts, rotated, positions)
        if pins:
            frames, values, weights = (np.concatenate(column) for column in zip(*pins, strict=True))
            shift = between_pins(frames, values, weights, count)
        return ankle + shift + lift[:, None] * high

    def _pins(
        self, follower: Follower, contacts: Contacts, rotated: Floats, positions: Floats
    ) -> list[tuple[Ints, Floats, Floats]]:
        """Frames of contacts, the horizontal corrections that keep them in place, and what these count for.

        Of an ankle and toes that both stand while the foot turns, the one about which the source's turns counts most. A
        leg without a foot stands on its tip as long as either does.
        """
        pins, target, has_foot = [], follower.target, self.chain.end < 1
        up, ankle = target.frame[1], self.chain.end_node
        ends = ((self.source.end_node, ankle), (self.source.nodes[-1], self.chain.nodes[-1]))
        for node, other in ends if has_foot else ends[1:]:
            stands = contacts.planted[node] if has_foot else self.planted(contacts)
            point = target.tree.locations[other]
            point = point - (point @ up - target.ground) * up if self.chain.role == "leg" and has_foot else point
            path = positions[:, ankle] + rotations.rotate(rotated[:, ankle], point - target.tree.locations[ankle])
            path = path - (path @ up)[:, None] * up
            for first, last in runs(stands):
                frames = np.arange(first, last + 1)
                there = follower.source.positions[frames, node] @ follower.source.world[[0, 2]].T
                slid = float(np.linalg.norm(np.ptp(there, axis=0)))
                counts = np.full(len(frames), 1 / (slid + STATIC_SLIDE * self.size))
                pins.append((frames, path[frames].mean(axis=0) - path[frames], counts))
        return pins

    def excess(self, positions: Floats, goal: Floats, contacts: Contacts, up: Floats) -> Floats:
        """(frames,) how far the root has to go down for the limb to reach its goal, where the source's is on the floor.

        A leg need not stand still for that: on a treadmill it does not.
        """
        base = positions[:, self.chain.nodes[0]]
        joints = self.joints
        length = REACH * np.linalg.norm(np.diff(positions[0, joints], axis=0), axis=1).sum()
        away = base - goal
        height = away @ up
        flat = np.linalg.norm(away - height[:, None] * up, axis=1)
        need = height - np.sqrt(np.maximum(length**2 - flat**2, 0))
        low = contacts.low[self.source.end_node] | contacts.low[self.source.nodes[-1]]
        down = low if self.chain.role == "leg" else self.planted(contacts)
        return np.where(down, np.clip(need, 0, 0.3 * length), 0.0)

    def reach(self, target: OrientedBody, rotated: Floats, positions: Floats, goal: Floats) -> tuple[Floats, Floats]:
        """The pose in which the ankle is where it is to be."""
        joints = self.joints
        if len(joints) < 2:
            return rotated, positions
        old = positions[:, joints]
        new = fabrik(old, goal, _pole(target, self.chain, joints, rotated))
        rotated = rotated.copy()
        for k, node in enumerate(joints[:-1]):
            change = rotations.between(old[:, k + 1] - old[:, k], new[:, k + 1] - new[:, k])
            rotated[:, node] = rotations.multiply(change, rotated[:, node])
        return rotated, forward(target, rotated, positions[:, int(np.argmin(target.tree.parents))])


def _pole(target: OrientedBody, chain: Chain, joints: Sequence[int], rotated: Floats) -> Floats:
    """(frames, 3) where a straight limb bends to: as at rest, or a leg's knee to the front."""
    rest = target.tree.locations[list(joints)]
    line = rest[-1] - rest[0]
    away = rest - rest[0] - np.outer((rest - rest[0]) @ line / max(float(line @ line), 1e-300), line)
    farthest = away[int(np.argmax(np.linalg.norm(away, axis=1)))]
    if np.linalg.norm(farthest) < STRAIGHT * np.linalg.norm(line):
        farthest = target.frame[2] if chain.role == "leg" else -target.frame[2]
    return rotations.rotate(rotated[:, joints[0]], farthest / max(float(np.linalg.norm(farthest)), 1e-300))


def fabrik(chain: Floats, goal: Floats, pole: Floats) -> Floats:
    """(frames, k, 3) chains (frames, k, 3) whose ends reach goals (frames, 3) as far as they can; their starts stay.

    pole: (frames, 3) where a straight chain bends to.
    """
    lengths = np.linalg.norm(np.diff(chain, axis=1), axis=2)
    total = lengths.sum(axis=1)
    start, points = chain[:, 0], chain.copy()
    away = goal - start
    distance = np.linalg.norm(away, axis=1)
    limit = np.minimum(distance, REACH * total)
    goal = start + away * (limit / np.maximum(distance, 1e-300))[:, None]
    moved = np.linalg.norm(goal - chain[:, -1], axis=1) > 1e-9 * np.maximum(total, 1e-300)
    if points.shape[1] > 2:
        line = chain[:, -1:] - start[:, None]
        along = ((points - start[:, None]) * line).sum(axis=2) / np.maximum((line**2).sum(axis=2), 1e-300)
        bend = np.linalg.norm(points - start[:, None] - along[..., None] * line, axis=2).max(axis=1)
        push = np.where(moved & (bend < STRAIGHT * total), STRAIGHT * total, 0.0)
        points[:, 1:-1] += (push[:, None] * pole)[:, None]
    for _ in range(FABRIK_ROUNDS):
        points[:, -1] = goal
        for k in range(points.shape[1] - 2, -1, -1):
            points[:, k] = points[:, k + 1] + _scaled(points[:, k] - points[:, k + 1], lengths[:, k])
        points[:, 0] = start
        for k in range(points.shape[1] - 1):
            points[:, k + 1] = points[:, k] + _scaled(points[:, k + 1] - points[:, k], lengths[:, k])
    return np.where(moved[:, None, None], points, chain)


def _scaled(vectors: Floats, lengths: Floats) -> Floats:
    return vectors * (lengths / np.maximum(np.linalg.norm(vectors, axis=1), 1e-300))[:, None]


def between_pins(frames: Ints, values: Floats, weights: Floats, count: int) -> Floats:
    """(count, 3) corrections: the mean of the pins in a frame, and smooth steps from one contact to the next."""
    pinned, number = np.unique(frames, return_inverse=True)
    mean = np.zeros((len(pinned), 3))
    np.add.at(mean, number, weights[:, None] * values)
    mean /= np.bincount(number, weights)[:, None]
    at = np.arange(count)
    after = np.clip(np.searchsorted(pinned, at), 0, len(pinned) - 1)
    before = np.clip(np.searchsorted(pinned, at, side="right") - 1, 0, len(pinned) - 1)
    gap = np.maximum(pinned[after] - pinned[before], 1)
    t = np.clip((at - pinned[before]) / gap, 0, 1)
    t = t * t * (3 - 2 * t)
    found: Floats = (1 - t[:, None]) * mean[before] + t[:, None] * mean[after]
    return found


def eased(values: Floats, fps: float, seconds: float = SETTLE) -> Floats:
    """(frames,) values that are as large everywhere, and rise and fall smoothly around."""
    reach = max(1, round(seconds * fps))
    if not values.any():
        return values
    widest = np.lib.stride_tricks.sliding_window_view(np.pad(values, 2 * reach, mode="edge"), 2 * reach + 1).max(axis=1)
    window = np.hanning(2 * reach + 3)[1:-1]
    return np.convolve(widest, window / window.sum(), mode="valid")
