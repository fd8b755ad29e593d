"""The compiled search for equal rows, by an open-addressing hash table."""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant.jit import kernel


@kernel
def merge_rows(keys: Any) -> tuple[Any, Any]:
    """For uint32 rows (n, k): the rows that appear first, in order, and for every row the number of its equal."""
    count, width = keys.shape
    size = 16
    while size < 2 * count:
        size *= 2
    slots = np.full(size, -1, np.int64)
    first = np.empty(count, np.int64)
    index = np.empty(count, np.int64)
    found = 0
    for row in range(count):
        mix = np.uint64(14695981039346656037)
        for k in range(width):
            mix = (mix ^ np.uint64(keys[row, k])) * np.uint64(1099511628211)
            mix ^= mix >> np.uint64(29)
        at = np.int64(mix & np.uint64(size - 1))
        while True:
            other = slots[at]
            if other < 0:
                slots[at] = found
                first[found] = row
                index[row] = found
                found += 1
                break
            same = True
            for k in range(width):
                if keys[first[other], k] != keys[row, k]:
                    same = False
                    break
            if same:
                index[row] = other
                break
            at = (at + 1) & (size - 1)
    return first[:found].copy(), index
