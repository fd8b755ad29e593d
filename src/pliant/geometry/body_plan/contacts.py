"""Contacts of a moving body with its floor: when feet and hands stand on it, and where the floor is.

A foot has two points, its ankle and its tip; each is as high above the floor, when it stands, as it is above the ground
at rest, or would be if it were not lifted there. The floor is at the height that the lowest of all these points reaches
in a tenth of the frames. A point is *low* near the floor, and *planted* where it is low and hardly moves; both for some
time at least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pliant.core.topology import Floats
from pliant.geometry.body_plan.following import leg_length, standing_height
from pliant.geometry.body_plan.guides import Chain
from pliant.geometry.body_plan.moving import MovingBody

Flags = NDArray[np.bool_]
FLOOR_SHARE = 0.1
"""Share of the frames in which something is on the floor, at least."""
LOW = {"leg": 0.07, "arm": 0.15}
"""Height of what is on the floor, over the length of a leg; hands have no rest on the ground to compare with."""
SLOW, SLOW_SHARE = 0.4, 0.12
"""Speed of what is planted, in lengths of a leg a second; or over its speed at 95 % of the frames."""
LEAST_TIME = 0.06
"""Seconds of a contact."""
SMOOTH_TIME = 0.05
"""Seconds over which speeds are taken."""


@dataclass(frozen=True, eq=False)
class Contacts:
    """Of the ends of limbs with the floor."""

    floor: float
    """Height along the world's up"""
    low: dict[int, Flags]
    """By node, (frames,) whether it is near the floor"""
    planted: dict[int, Flags]
    """By node, (frames,) whether it stands there"""


def find_contacts(source: MovingBody, chains: Sequence[Chain]) -> Contacts:
    """Of legs and arms; what else a limb may follow, such as a tail, touches nothing."""
    up, body = source.world[1], source.body
    legs = [chain for chain in chains if chain.role == "leg"]
    heights = source.positions @ up
    rest = {node: standing_height(body, chain, node) for chain in legs for node in (chain.end_node, chain.nodes[-1])}
    nothing = np.zeros(len(heights), dtype=bool)
    low = {node: nothing for chain in chains for node in (chain.end_node, chain.nodes[-1])}
    planted = dict(low)
    if not rest:
        return Contacts(float(heights.min()), low, planted)
    floor = float(np.quantile((heights[:, list(rest)] - list(rest.values())).min(axis=1), FLOOR_SHARE))
    size = float(np.mean([leg_length(body, chain) for chain in legs]))
    for chain in chains:
        if chain.role not in ("leg", "arm"):
            continue
        for node in (chain.end_node, chain.nodes[-1]):
            above = heights[:, node] - floor - rest.get(node, 0.0)
            speed = speeds(source.positions[:, node], source.fps)
            near = above < LOW[chain.role] * size
            slow = speed < max(SLOW * size, SLOW_SHARE * float(np.quantile(speed, 0.95)))
            low[node], planted[node] = near, lasting(near & slow, source.fps)
    return Contacts(floor, low, planted)


def speeds(path: Floats, fps: float) -> Floats:
    """(frames,) of a point, over a short time around each frame."""
    reach = max(1, round(SMOOTH_TIME * fps / 2))
    count = len(path)
    after, before = np.minimum(np.arange(count) + reach, count - 1), np.maximum(np.arange(count) - reach, 0)
    return np.linalg.norm(path[after] - path[before], axis=1) * fps / np.maximum(after - before, 1)


def runs(flags: Flags) -> list[tuple[int, int]]:
    """First and last frame of each run of frames that are flagged."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(a), int(b) - 1) for a, b in edges.reshape(-1, 2)]


def lasting(flags: Flags, fps: float) -> Flags:
    """Without runs that are too short."""
    out = flags.copy()
    for first, last in runs(flags):
        if last - first + 1 < min(max(LEAST_TIME * fps, 2), len(flags)):
            out[first : last + 1] = False
    return out
