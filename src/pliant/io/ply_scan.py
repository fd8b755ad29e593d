"""The compiled walk over PLY elements whose rows differ in length (mixed triangles, quads and n-gons)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant.jit import kernel

FLOAT64 = 9
"""Count type of text files, whose numbers have all become doubles."""


@kernel
def _count_at(data: Any, at: int, code: int, big: bool) -> int:
    """A list's length: unsigned of `code` = 1, 2 or 4 bytes, or a double."""
    if code == FLOAT64:
        value = data[at : at + 8].view(np.float64)[0]
        return int(value) if 0 <= value < 1e9 and value == np.floor(value) else -1
    value = 0
    for k in range(code):
        value = value * 256 + data[at + (k if big else code - 1 - k)]
    return value


@kernel
def walk_rows(
    data: Any, start: int, rows: int, is_list: Any, count_code: Any, item_size: Any, wanted: int, big: bool
) -> tuple[Any, Any, int, int]:
    """Follow `rows` rows from byte `start`: first byte and length of the wanted list in each, and the byte after.

    For property p: is_list[p], the code of its count, the bytes of an item. Also returns the number of whole rows.
    """
    begins = np.empty(rows, np.int64)
    counts = np.empty(rows, np.int64)
    at = start
    stop = len(data)
    for row in range(rows):
        for p in range(len(is_list)):
            if is_list[p]:
                width = 8 if count_code[p] == FLOAT64 else count_code[p]
                if at + width > stop:
                    return begins, counts, at, row
                count = _count_at(data, at, count_code[p], big)
                at += width
                if count < 0 or count > (stop - at) // item_size[p]:
                    return begins, counts, at, row
                if p == wanted:
                    begins[row] = at
                    counts[row] = count
                at += count * item_size[p]
            else:
                at += item_size[p]
                if at > stop:
                    return begins, counts, at, row
    return begins, counts, at, rows
