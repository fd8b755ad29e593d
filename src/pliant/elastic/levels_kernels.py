"""Compiled steps of the preconditioner; the equations are in `pliant.elastic.levels`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.jit import kernel, parallel_kernel, prange
from pliant.topology import Ints

Singles = NDArray[np.float32]


@parallel_kernel
def turned_back_blocks(diagonal: Singles, r: Singles, turns: Singles) -> tuple[Singles, Singles]:
    """(n, 3) s = Tᵀ r and (n, 3) D⁻¹ s."""
    s, z = np.empty_like(r), np.empty_like(r)
    for i in prange(len(r)):
        a = turns[i, 0] * r[i, 0] + turns[i, 3] * r[i, 1] + turns[i, 6] * r[i, 2]
        b = turns[i, 1] * r[i, 0] + turns[i, 4] * r[i, 1] + turns[i, 7] * r[i, 2]
        c = turns[i, 2] * r[i, 0] + turns[i, 5] * r[i, 1] + turns[i, 8] * r[i, 2]
        s[i, 0], s[i, 1], s[i, 2] = a, b, c
        z[i, 0] = diagonal[i, 0] * a + diagonal[i, 5] * b + diagonal[i, 4] * c
        z[i, 1] = diagonal[i, 5] * a + diagonal[i, 1] * b + diagonal[i, 3] * c
        z[i, 2] = diagonal[i, 4] * a + diagonal[i, 3] * b + diagonal[i, 2] * c
    return s, z


@kernel
def scaled_blocks(diagonal: Singles, s: Singles) -> Singles:
    """(n, 3) D⁻¹ s."""
    z = np.empty_like(s)
    for i in range(len(s)):
        a, b, c = s[i, 0], s[i, 1], s[i, 2]
        z[i, 0] = diagonal[i, 0] * a + diagonal[i, 5] * b + diagonal[i, 4] * c
        z[i, 1] = diagonal[i, 5] * a + diagonal[i, 1] * b + diagonal[i, 3] * c
        z[i, 2] = diagonal[i, 4] * a + diagonal[i, 3] * b + diagonal[i, 2] * c
    return z


@parallel_kernel
def turned_forth(z: Singles, turns: Singles) -> Singles:
    """(n, 3) T z."""
    out = np.empty_like(z)
    for i in prange(len(z)):
        a, b, c = z[i, 0], z[i, 1], z[i, 2]
        out[i, 0] = turns[i, 0] * a + turns[i, 1] * b + turns[i, 2] * c
        out[i, 1] = turns[i, 3] * a + turns[i, 4] * b + turns[i, 5] * c
        out[i, 2] = turns[i, 6] * a + turns[i, 7] * b + turns[i, 8] * c
    return out


@parallel_kernel
def added(start: Ints, column: Ints, value: Singles, x: Singles, to: Singles) -> Singles:
    """(m, 3) A x + to, A by rows; `to` may be empty for none."""
    out = np.empty((len(start) - 1, 3), np.float32)
    for i in prange(len(start) - 1):
        a, b, c = np.float32(0), np.float32(0), np.float32(0)
        if len(to):
            a, b, c = to[i, 0], to[i, 1], to[i, 2]
        for k in range(start[i], start[i + 1]):
            j, v = column[k], value[k]
            a += v * x[j, 0]
            b += v * x[j, 1]
            c += v * x[j, 2]
        out[i, 0], out[i, 1], out[i, 2] = a, b, c
    return out
