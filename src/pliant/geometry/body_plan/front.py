"""Which end of a body's middle plane is its front: evidence from head and tail, toes and hands.

Each score is positive where it speaks for `forward`, negative where it speaks against, about 1 where it is clear.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pliant.core.topology import Floats
from pliant.geometry.body_plan.limbs import Limb, Pair, standing_pairs
from pliant.geometry.body_plan.tree import BodyTree

ALIKE = 0.05
"""Sum of the scores below which front and back look alike."""
SOLE, ANKLES = 0.06, (0.06, 0.09, 0.12, 0.15)
"""Height of soles, and heights at which ankles are looked for, over the body's."""
BESIDE_FOOT, BEFORE_FOOT = 0.15, 0.35
"""Distances from the tip of a leg, over its length, that its foot is within."""


def front_scores(
    tree: BodyTree, limbs: Sequence[Limb], pairs: Sequence[Pair], up: Floats, forward: Floats, ground: float
) -> dict[str, float]:
    """Evidence that `forward` is the front (positive) or the back, by what it comes from."""
    size = max(tree.size, 1e-300)
    legs = [limb for pair in standing_pairs(pairs, tree, up, forward, ground) for limb in pair]
    paired = {limb.nodes[-1] for pair in pairs for limb in pair}
    if len(legs) > 2:  # ears and antlers say where the head is
        paired = {limb.nodes[-1] for limb in legs}
    alone = [limb for limb in limbs if limb.nodes[-1] not in paired]
    scores = {"toes": _toes(legs, up, forward, size)}
    hands = [limb for pair in pairs for limb in pair if not any(limb is leg for leg in legs)]
    if len(legs) == 2 and hands:
        scores["hands"] = 0.7 * float(np.mean([limb.reach @ forward for limb in hands])) / size
    hips = np.mean([limb.path[0] for limb in (legs or [l for pair in pairs for l in pair] or limbs)], axis=0)
    width = float(np.median([_width(tree, limb) for limb in (legs or limbs)]))
    ends = 0.0
    for limb in alone:
        out = float((limb.path[-1] - hips) @ forward) / size
        if abs(out) > 0.1:
            head = np.log(max(_width(tree, limb), 1e-9) / max(width, 1e-9)) if width > 0 else 0.0
            head += float((3 * limb.path[-1] + 4 * limb.path[0] - 7 * hips) @ up) / size - 0.35
            ends += np.sign(out) * np.clip(head, -1, 1) * min(1.0, 2 * abs(out))
    scores["head and tail"] = float(ends)
    return scores


def _width(tree: BodyTree, limb: Limb) -> float:
    outer = list(limb.nodes[len(limb.nodes) // 3 :])
    return float(np.median(tree.widths[outer]))


def _toes(legs: Sequence[Limb], up: Floats, forward: Floats, size: float) -> float:
    """How far feet reach to the front of where their shins lead."""
    found = []
    for limb in legs:
        ankle = limb.at(0.85 * limb.length)
        shin, foot = ankle - limb.at(0.55 * limb.length), limb.path[-1] - ankle
        lean = (shin @ forward) / max(abs(float(shin @ up)), 1e-9)
        found.append(float(foot @ forward - np.clip(lean, -1, 1) * abs(foot @ up)))
    return 3.0 * float(np.mean(found)) / size if found else 0.0


def foot_score(samples: Floats, legs: Sequence[Limb], frame: Floats, size: float) -> float:
    """How much farther feet reach to the front of their ankles than to the back, by samples of the surface."""
    across, up, forward = samples @ frame[0], samples @ frame[1], samples @ frame[2]
    heights = (up - up.min()) / max(float(np.ptp(up)), 1e-300)
    found = []
    for limb in legs:
        tip = frame @ limb.path[-1]
        near = np.abs(across - tip[0]) < BESIDE_FOOT * limb.length
        near &= np.abs(forward - tip[2]) < BEFORE_FOOT * limb.length
        sole = forward[near & (heights < SOLE)]
        slabs = [forward[near & (heights >= low) & (heights < low + SOLE)] for low in ANKLES]
        slabs = [slab for slab in slabs if len(slab) >= 4]
        if len(sole) >= 4 and slabs:
            ankle = min(slabs, key=np.ptp)
            found.append(float(sole.max() - ankle.max() + sole.min() - ankle.min()))
    return 3.0 * float(np.mean(found)) / size if found else 0.0
