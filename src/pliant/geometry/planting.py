"""Feet that stay where they stand: a motion whose planted feet do not slide, and are not below the floor.

Each joint carries points of the shape. Where those of a foot are low and slow they stand: from one frame to the next
they should not move along the floor, but do by s, the mean of theirs. So the foot is displaced by δ,

    δ(f + 1) = δ(f) - s(f),       its mean over the time that it stands 0

which lets it roll from the heel to the toes. From one time that it stands to the next, δ goes over smoothly in the air.
A foot below the floor is raised to it. Legs reach their feet by inverse kinematics; feet keep how they are rotated.

A foot is what lies below the highest joint of a leg that is low at rest; where none is, or nothing of it ever stands,
the points of the lower leg do. Its leg goes up to where other feet branch off. What has no legs (a snake) stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from pliant.core import rotations
from pliant.core.skeleton import Motion
from pliant.core.topology import Floats, Ints
from pliant.geometry.body_plan.contacts import Flags, lasting, runs, speeds
from pliant.geometry.body_plan.grounding import EASE, between_pins, eased, fabrik

LOW_POINT = 0.02
"""Height of what stands on the floor, over the diagonal."""
PATCH = 0.005
"""Height, over the diagonal, above the lowest point of a foot, up to which others stand with it."""
SLOW_POINT = 0.15
"""Its speed, in diagonals a second."""
LOW_JOINT = 0.12
"""Height of a foot's joints at rest, over the shape's."""
NEAR_LIMB = 0.15
"""Distance of a foot from the limb that it goes on from, over the diagonal, at most."""
PLANTING_PASSES = 2
"""Points of a leg that stand are displaced a little less than its foot."""
LONGEST_LEG = 4
"""Joints above a foot that its leg has, at most."""


@dataclass(frozen=True, eq=False)
class CarriedPoints:
    """Points of a shape that joints carry."""

    points: Floats
    """(n, 3) at rest"""
    joints: Ints
    """(n,) the joint of each"""

    @property
    def diagonal(self) -> float:
        """Of their box."""
        return float(np.linalg.norm(np.ptp(self.points, axis=0)))

    def outermost(self, count: int = 60) -> CarriedPoints:
        """Of each joint's points, those that lie farthest in some direction."""
        directions = sphere_directions(count)
        kept = [
            own[np.unique(np.argmax(self.points[own] @ directions.T, axis=0))]
            for own in (np.flatnonzero(self.joints == j) for j in np.unique(self.joints))
        ]
        return replace(self, points=self.points[np.concatenate(kept)], joints=self.joints[np.concatenate(kept)])


def sphere_directions(count: int) -> Floats:
    """(count, 3) unit vectors, spread evenly."""
    k = np.arange(count) + 0.5
    z, angle = 1 - 2 * k / count, np.pi * (1 + 5**0.5) * k
    ring = np.sqrt(1 - z**2)
    return np.stack([ring * np.cos(angle), ring * np.sin(angle), z], axis=1)


def planted(motion: Motion, carried: CarriedPoints, up: Floats, floor: float) -> Motion:
    """The motion with its feet planted, and none below a floor.

    up: (3,) a unit vector. floor: its height along that.
    """
    rest, heights = motion.skeleton.rest_world[0] @ up, carried.points @ up
    low = rest - heights.min() < LOW_JOINT * np.ptp(heights)
    above, skin = _joined(motion.skeleton.parents, carried, low), carried.outermost()
    for _ in range(PLANTING_PASSES):
        motion = _corrected(motion, skin, above, low, up, floor)
    return motion


def _corrected(motion: Motion, skin: CarriedPoints, above: Ints, low: Flags, up: Floats, floor: float) -> Motion:
    positions, quaternions = motion.world()
    moved, placed = quaternions.copy(), dict[int, Floats]()
    for leg in _legs(motion, skin, above, low, up, floor):
        chain = leg.chain(positions, quaternions)
        reached = fabrik(chain, chain[:, -1] + leg.shift, leg.pole(chain, quaternions))
        for k, joint in enumerate(leg.joints):
            change = rotations.between(chain[:, k + 1] - chain[:, k], reached[:, k + 1] - reached[:, k])
            moved[:, joint] = rotations.multiply(change, quaternions[:, joint])
            placed[joint] = reached[:, k]
        for joint in leg.feet:
            placed[joint] = positions[:, joint] + (reached - chain)[:, -1]
    return _posed(motion, moved, placed) if placed else motion


def _posed(motion: Motion, world: Floats, placed: dict[int, Floats]) -> Motion:
    """The motion with some joints at (f, 3) and rotated as in the world (f, j, 4); the others go along."""
    at, rotated = np.empty_like(motion.translations), np.empty_like(motion.rotations)
    local_rotations, translations = motion.rotations.copy(), motion.translations.copy()
    for j, parent in enumerate(motion.skeleton.parents.tolist()):
        above = rotated[:, parent] if parent >= 0 else np.broadcast_to(rotations.IDENTITY, rotated[:, j].shape)
        start = at[:, parent] if parent >= 0 else np.zeros_like(at[:, j])
        if j in placed:
            local_rotations[:, j] = rotations.multiply(rotations.inverse(above), world[:, j])
            translations[:, j] = rotations.rotate(rotations.inverse(above), placed[j] - start)
        rotated[:, j] = rotations.multiply(above, local_rotations[:, j])
        at[:, j] = start + rotations.rotate(above, translations[:, j])
    return replace(motion, rotations=rotations.normalize(local_rotations), translations=translations)


@dataclass(frozen=True, eq=False)
class _Leg:
    """A foot, the joints above it, and where it has to go."""

    joints: list[int]
    """From the hip down to what is above the ankle, or above the points that stand."""
    feet: list[int]
    """The foot's first joint, and others that hang on none of its joints; none if the leg ends with its points."""
    sole: Floats
    """(3,) where the points that stand are, as the last joint sees them."""
    shift: Floats
    """(f, 3) by which the foot has to be displaced."""

    def chain(self, positions: Floats, quaternions: Floats) -> Floats:
        """(f, k + 1, 3) its joints, and what stands."""
        if self.feet:
            return positions[:, [*self.joints, self.feet[0]]]
        last = self.joints[-1]
        end = positions[:, last] + rotations.rotate(quaternions[:, last], self.sole)
        return np.concatenate([positions[:, self.joints], end[:, None]], axis=1)

    def pole(self, chain: Floats, quaternions: Floats) -> Floats:
        """(f, 3) where it bends to if it is straight: as in the frame in which it is bent most, as the hip sees it."""
        line = chain[:, -1] - chain[:, 0]
        line = line / np.maximum(np.linalg.norm(line, axis=1, keepdims=True), 1e-300)
        away = chain - chain[:, :1]
        away = away - np.einsum("fki,fi->fk", away, line)[..., None] * line[:, None]
        bend = np.linalg.norm(away, axis=2)
        frame, joint = np.unravel_index(int(np.argmax(bend)), bend.shape)
        direction = away[frame, joint] / max(float(bend[frame, joint]), 1e-300)
        hip = quaternions[:, self.joints[0]]
        return rotations.rotate(hip, rotations.rotate(rotations.inverse(hip[frame]), direction))


def _legs(motion: Motion, skin: CarriedPoints, above: Ints, low: Flags, up: Floats, floor: float) -> Iterator[_Leg]:
    """Of the feet that stand or sink."""
    skeleton, size = motion.skeleton, skin.diagonal
    positions, quaternions = motion.world()
    rest, rest_rotations = skeleton.rest_world
    lowest = float((skin.points @ up).min())
    arms = rotations.rotate(rotations.inverse(rest_rotations[skin.joints]), skin.points - rest[skin.joints])
    paths = positions[:, skin.joints] + rotations.rotate(
        quaternions[:, skin.joints], np.broadcast_to(arms, (len(motion), *arms.shape))
    )
    heights = paths @ up - floor
    slow = np.stack([speeds(paths[:, s], motion.fps) for s in range(paths.shape[1])], axis=1) < SLOW_POINT * size
    standing = (heights < LOW_POINT * size) & slow
    on_ground = skin.points @ up - lowest < LOW_POINT * size
    reached = standing | (heights < 0)
    feet = {_foot(int(j), above, low) for j in np.unique(skin.joints[on_ground])}
    feet -= {joint for foot in feet for joint in _ancestors(foot, above)}
    for foot in sorted(feet) if len(feet) > 1 else ():
        joints, toes = _leg_above(foot, above, feet), _below(foot, above)
        if not low[foot]:
            joints, toes = [*joints, foot], []
        if not joints or low[joints[0]]:
            continue
        last = np.flatnonzero(skin.joints == joints[-1])
        own = np.flatnonzero(np.isin(skin.joints, toes))
        own = own if standing[:, own].any() or not len(last) else last
        if not reached[:, own].any():
            continue
        lowest_own = heights[:, own].min(axis=1)
        patch = np.maximum(1 - (heights[:, own] - lowest_own[:, None]) / (PATCH * size), 0.0)
        slides = _slides(paths[:, own], standing[:, own] * patch, up, motion.fps)
        lift = eased(np.maximum(-lowest_own, 0.0), motion.fps, EASE)
        sole = arms[last[int(np.argmin(skin.points[last] @ up))]] if len(last) else np.zeros(3)
        loose = [joint for joint in toes if skeleton.parents[joint] not in toes]
        if toes or sole.any():
            yield _Leg(joints, loose, sole, slides + lift[:, None] * up)


def _foot(joint: int, above: Ints, low: Flags) -> int:
    """The highest low joint above one that stands, but no root; that joint itself if none is."""
    while above[joint] >= 0 and low[above[joint]] and above[above[joint]] >= 0:
        joint = int(above[joint])
    return joint


def _leg_above(foot: int, above: Ints, feet: set[int]) -> list[int]:
    """The joints above a foot, from the hip down, below where other feet branch off."""
    shared = {joint for other in feet - {foot} for joint in _ancestors(other, above)}
    leg = [joint for joint in _ancestors(foot, above) if above[joint] >= 0 and joint not in shared]
    return leg[:LONGEST_LEG][::-1]


def _ancestors(joint: int, above: Ints) -> list[int]:
    """The joints above one, the nearest first."""
    found = []
    while (joint := int(above[joint])) >= 0:
        found.append(joint)
    return found


def _joined(parents: Ints, skin: CarriedPoints, low: Flags) -> Ints:
    """(j,) the joint above each: its parent, or for a foot that hangs on a root or control, the end of its leg.

    Rigs often have feet that are moved by themselves. Legs end near their points.
    """
    from scipy.spatial import cKDTree

    own = np.unique(skin.joints).tolist()
    trees = {j: cKDTree(skin.points[skin.joints == j]) for j in own}
    hanging = [j for j in own if low[j] and (len(_ancestors(j, parents)) < 2 or parents[j] not in own)]
    ends = [k for k in own if k not in hanging and not set(_below(k, parents)[1:]) & set(own)]
    above, first = parents.copy(), dict[int, int]()
    for j in hanging:
        legs = {k: first.get(k, k) for k in ends}
        legs = {k: leg for k, leg in legs.items() if j != leg and j not in _ancestors(leg, above)}  # no cycles
        gaps = {k: float(trees[k].query(trees[j].data)[0].min()) for k in legs}
        if gaps and min(gaps.values()) < NEAR_LIMB * skin.diagonal:
            end = min(gaps, key=lambda k: gaps[k])
            above[j] = legs[end]
            first.setdefault(end, j)
    return above


def _below(joint: int, above: Ints) -> list[int]:
    """A joint and all that lie below it."""
    found = [joint]
    for j in found:
        found.extend(np.flatnonzero(above == j).tolist())
    return found


def _slides(paths: Floats, weights: Floats, up: Floats, fps: float) -> Floats:
    """(f, 3) the displacement δ of points on paths (f, s, 3) that stand with weights (f, s)."""
    stands = lasting(weights.max(axis=1) > 0, fps)
    both = np.minimum(weights[1:], weights[:-1]) * (stands[1:] & stands[:-1])[:, None]
    total, steps = both.sum(axis=1), np.diff(paths, axis=0)
    slide = np.einsum("fs,fsi->fi", both, steps) / np.maximum(total, 1e-300)[:, None]
    slide -= np.outer(slide @ up, up)
    frames, values = [np.zeros(0, np.int64)], [np.zeros((0, 3))]
    for first, last in runs(total > 0):
        delta = np.concatenate([np.zeros((1, 3)), -np.cumsum(slide[first : last + 1], axis=0)])
        frames.append(np.arange(first, last + 2))
        values.append(delta - delta.mean(axis=0))
    pins = np.concatenate(frames)
    return (
        between_pins(pins, np.concatenate(values), np.ones(len(pins)), len(paths))
        if len(pins)
        else np.zeros((len(paths), 3))
    )
