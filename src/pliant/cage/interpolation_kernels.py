"""Products of a target's coordinates with the state of a cage, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.jit import kernel, parallel_kernel, prange
from pliant.topology import Floats

Singles = NDArray[np.float32]


@kernel
def _add_products(rows: Singles, state: Singles, sums: Singles) -> None:
    """sums (3, lanes) += stateᵀ (3, c + f) times rows (c + f, lanes)."""
    a, b, c = sums[0], sums[1], sums[2]
    for j in range(len(rows)):
        x, y, z, row = state[j, 0], state[j, 1], state[j, 2], rows[j]
        for k in range(len(row)):
            a[k] += x * row[k]
            b[k] += y * row[k]
            c[k] += z * row[k]


@kernel
def _interpolate_block(g: int, blocks: Singles, states: Singles, centres: Floats, out: Floats) -> None:
    lanes = blocks.shape[2]
    sums = np.empty((3, lanes), np.float32)
    for frame in range(len(states)):
        sums[:] = 0.0
        _add_products(blocks[g], states[frame], sums)
        for k in range(min(lanes, out.shape[1] - g * lanes)):
            for x in range(3):
                out[frame, g * lanes + k, x] = centres[frame, x] + sums[x, k]


@parallel_kernel
def interpolate(blocks: Singles, states: Singles, centres: Floats, out: Floats) -> None:
    """Blocks (n / lanes, c + f, lanes) times states (frames, c + f, 3), plus centres, into (frames, n, 3)."""
    for g in prange(len(blocks)):
        _interpolate_block(g, blocks, states, centres, out)


@kernel
def interpolate_few(blocks: Singles, states: Singles, centres: Floats, out: Floats) -> None:
    """The same on one core, for what is done before other cores are awake."""
    for g in range(len(blocks)):
        _interpolate_block(g, blocks, states, centres, out)
