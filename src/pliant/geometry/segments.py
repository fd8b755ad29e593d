"""Points and segments, such as a skeleton's bones."""

from __future__ import annotations

import numpy as np

from pliant.core.topology import Floats, Ints

EQUALLY_NEAR = 1e-9
"""Difference of distances, over them and the coordinates, that may be rounding."""


def nearest_segment(points: Floats, a: Floats, b: Floats) -> tuple[Ints, Floats]:
    """(n,) which of the segments from a (k, 3) to b (k, 3) is nearest to each point, and (n,) how near.

    What is nearest to a joint is as near to all its bones: then it is the one that the point is least beyond the end
    of, and the first if that does not tell. A segment without length is a point, such as the joint at a skeleton's tip,
    and has what is nearest to it. Without segments, infinitely far.
    """
    best, least = np.full(len(points), np.inf), np.full(len(points), np.inf)
    label, scale = np.zeros(len(points), dtype=np.int64), float(np.abs([a, b]).max(initial=0))
    for k, (p, q) in enumerate(zip(a, b, strict=True)):
        length = float(np.linalg.norm(q - p))
        direction = (q - p) / max(length, 1e-300)
        along = (points - p) @ direction
        inside = np.clip(along, 0, length)
        away = np.linalg.norm(points - p - inside[:, None] * direction, axis=1)
        beyond = np.abs(along - inside)
        rounding = EQUALLY_NEAR * (away + scale)
        closer = away < best - rounding
        closer |= (away <= best + rounding) & (beyond < least - rounding)
        label[closer], least[closer] = k, beyond[closer]
        best = np.minimum(best, away)
    return label, best
