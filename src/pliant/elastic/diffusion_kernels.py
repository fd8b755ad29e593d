"""Compiled rotation diffusion; the equations are in `pliant.elastic.diffusion`."""

from __future__ import annotations

from math import sqrt

import numpy as np

from pliant.jit import inline_kernel, parallel_kernel, prange
from pliant.topology import Floats, Ints

CANCELLED = 1e-6
"""Length of a weighted sum of quaternions below which they cancel."""


@inline_kernel
def _blend(start: Ints, bone: Ints, weight: Floats, turns: Floats, i: int) -> tuple[float, float, float, float]:
    """The unit quaternion at place i."""
    w, x, y, z = 0.0, 0.0, 0.0, 0.0
    most, largest = 0, -1.0
    for k in range(start[i], start[i + 1]):
        b, share = bone[k], weight[k]
        w += share * turns[b, 0]
        x += share * turns[b, 1]
        y += share * turns[b, 2]
        z += share * turns[b, 3]
        if share > largest:
            most, largest = b, share
    length = sqrt(w * w + x * x + y * y + z * z)
    if length < CANCELLED:
        w, x, y, z = turns[most, 0], turns[most, 1], turns[most, 2], turns[most, 3]
        length = sqrt(w * w + x * x + y * y + z * z)
    return w / length, x / length, y / length, z / length


@parallel_kernel
def blended(start: Ints, bone: Ints, weight: Floats, turns: Floats) -> Floats:
    """(p, 4) normalised Σ_b w_ib q_b."""
    out = np.empty((len(start) - 1, 4))
    for i in prange(len(start) - 1):
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = _blend(start, bone, weight, turns, i)
    return out


@parallel_kernel
def blended_matrices(start: Ints, bone: Ints, weight: Floats, turns: Floats) -> Floats:
    """(p, 9) the same as rotation matrices, row by row."""
    out = np.empty((len(start) - 1, 9))
    for i in prange(len(start) - 1):
        w, x, y, z = _blend(start, bone, weight, turns, i)
        out[i, 0] = 1 - 2 * (y * y + z * z)
        out[i, 1] = 2 * (x * y - w * z)
        out[i, 2] = 2 * (x * z + w * y)
        out[i, 3] = 2 * (x * y + w * z)
        out[i, 4] = 1 - 2 * (x * x + z * z)
        out[i, 5] = 2 * (y * z - w * x)
        out[i, 6] = 2 * (x * z - w * y)
        out[i, 7] = 2 * (y * z + w * x)
        out[i, 8] = 1 - 2 * (x * x + y * y)
    return out
