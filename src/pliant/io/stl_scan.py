"""The search for equal rows, by an open-addressing hash table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.core.topology import Ints
from pliant.native import kernels


def merge_rows(keys: NDArray[np.uint32]) -> tuple[Ints, Ints]:
    """For uint32 rows (n, k): the rows that appear first, in order, and for every row the number of its equal."""
    count = len(keys)
    slots = np.empty(max(16, 1 << (2 * count - 1).bit_length()), dtype=np.int64)  # at least twice as many as rows
    first, index = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    found = kernels.stl_merge_rows(keys, slots, first, index)
    return first[:found].copy(), index
