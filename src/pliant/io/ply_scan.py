"""The walk over PLY elements whose rows differ in length (mixed triangles, quads and n-gons)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.core.topology import Ints
from pliant.native import kernels

FLOAT64 = 9
"""Count type of text files, whose numbers have all become doubles."""


def walk_rows(
    data: NDArray[np.uint8],
    start: int,
    rows: int,
    is_list: NDArray[np.bool_],
    count_code: Ints,
    item_size: Ints,
    wanted: int,
    big: bool,
) -> tuple[Ints, Ints, int, int]:
    """Follow `rows` rows from byte `start`: first byte and length of the wanted list in each, and the byte after.

    For property p: is_list[p], the code of its count (1, 2 or 4 bytes, or FLOAT64), the bytes of an item. Also returns
    the number of whole rows.
    """
    begins, counts, ended = np.empty(rows, np.int64), np.empty(rows, np.int64), np.array([start], np.int64)
    properties = is_list, count_code, item_size
    whole = kernels.ply_walk_rows(data, start, properties, wanted, big, begins, counts, ended)
    return begins, counts, int(ended[0]), whole
