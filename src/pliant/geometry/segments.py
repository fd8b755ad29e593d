"""Points and segments, such as a skeleton's bones."""

from __future__ import annotations

import numpy as np

from pliant.core.topology import Floats, Ints


def nearest_segment(points: Floats, a: Floats, b: Floats) -> tuple[Ints, Floats]:
    """(n,) which of the segments from a (k, 3) to b (k, 3) is nearest to each point, and (n,) how near.

    Of several that are as near, the first; a segment without length is a point. Without segments, infinitely far.
    """
    best, label = np.full(len(points), np.inf), np.zeros(len(points), dtype=np.int64)
    for k, (p, q) in enumerate(zip(a, b, strict=True)):
        along = np.clip((points - p) @ (q - p) / max(float((q - p) @ (q - p)), 1e-300), 0, 1)
        away = np.linalg.norm(points - p - along[:, None] * (q - p), axis=1)
        label[away < best] = k
        best = np.minimum(best, away)
    return label, best
