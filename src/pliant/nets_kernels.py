"""Samples of a grid changing sides until its surface is a manifold; see `pliant.nets`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.jit import kernel
from pliant.topology import Ints


@kernel
def _pattern(flat: NDArray[np.float32], base: int, steps: Ints) -> int:
    """One bit for each corner of a cell that lies inside."""
    case = 0
    for bit in range(8):
        case |= int(flat[base + steps[bit]] < 0) << bit
    return case


@kernel
def _critical_cells(values: NDArray[np.float32], steps: Ints, critical: NDArray[np.bool_]) -> Ints:
    """First samples of the cells whose pattern is critical, in order."""
    flat = values.reshape(-1)
    found = []
    for i in range(values.shape[0] - 1):
        for j in range(values.shape[1] - 1):
            row = (i * values.shape[1] + j) * values.shape[2]
            for k in range(values.shape[2] - 1):
                if critical[_pattern(flat, row + k, steps)]:
                    found.append(row + k)
    return np.array(found, dtype=np.int64) if len(found) else np.empty(0, dtype=np.int64)


@kernel
def _around(changed: Ints, cells: Ints, shape: tuple[int, int, int], steps: Ints) -> Ints:
    """The cells that changed samples are corners of, and those given, once each and in order."""
    found = list(cells)
    for at in changed:
        for step in steps:
            base = at - step
            i, j, k = base // (shape[1] * shape[2]), base // shape[2] % shape[1], base % shape[2]
            if base >= 0 and i < shape[0] - 1 and j < shape[1] - 1 and k < shape[2] - 1:
                found.append(base)
    return np.unique(np.array(found))


@kernel
def _settle(flat: NDArray[np.float32], base: int, steps: Ints, done: NDArray[np.bool_]) -> int:
    """Let the sample of a cell that is nearest to the surface change sides, if it has not before; which one, or -1."""
    chosen = -1
    for step in steps:
        at = base + step
        if not done[at] and (chosen < 0 or abs(flat[at]) < abs(flat[chosen])):
            chosen = at
    if chosen >= 0:
        done[chosen] = True
        flat[chosen] = np.float32(1e-7) if flat[chosen] < 0 else np.float32(-1e-7)
    return chosen


@kernel
def make_well_composed(
    values: NDArray[np.float32], steps: Ints, critical: NDArray[np.bool_], patience: int, most: int
) -> None:
    """Move samples across the surface, the nearest first and none twice, until the mesh will be manifold.

    steps: (8,) from a cell's first sample to its corners. critical: (256,) patterns that are not to be.
    Where that does not settle within `patience` rounds, whole cells are filled, which always does.
    """
    flat = values.reshape(-1)
    done = np.zeros(flat.size, dtype=np.bool_)
    cells = _critical_cells(values, steps, critical)
    for attempt in range(most):
        changed = [np.int64(-1)]
        for base in cells:
            if not critical[_pattern(flat, base, steps)]:
                continue
            if attempt < patience:
                changed.append(_settle(flat, base, steps, done))
                continue
            for step in steps:
                flat[base + step] = min(flat[base + step], np.float32(-1e-7))
                changed.append(base + step)
        samples = np.array(changed)
        near = _around(samples[samples >= 0], cells, values.shape, steps)
        cells = near[np.array([critical[_pattern(flat, base, steps)] for base in near])]
        if not len(cells):
            return
