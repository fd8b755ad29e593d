"""Where parallel lines cross triangles: each triangle, seen along the lines, is drawn onto their grid."""

from __future__ import annotations

from math import ceil, floor

import numpy as np

from pliant.jit import kernel
from pliant.topology import Floats, Ints

EDGE = 1e-10
"""How far beyond its edges a triangle reaches, in barycentric coordinates: no line slips through between two."""


@kernel
def _draw(corners: Floats, columns: int, line: Ints, height: Floats, write: bool) -> int:
    """Crossings of the lines through (i + ½, j + ½) with triangles (m, 3, 3), third coordinate along them."""
    found = 0
    for t in range(len(corners)):
        a, b, c = corners[t, 0], corners[t, 1], corners[t, 2]
        area = (b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1])
        if area == 0:
            continue
        first_i, last_i = ceil(min(a[0], b[0], c[0]) - 0.5), floor(max(a[0], b[0], c[0]) - 0.5)
        first_j, last_j = ceil(min(a[1], b[1], c[1]) - 0.5), floor(max(a[1], b[1], c[1]) - 0.5)
        for i in range(first_i, last_i + 1):
            for j in range(first_j, last_j + 1):
                x, y = i + 0.5, j + 0.5
                v = ((x - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (y - a[1])) / area
                w = ((b[0] - a[0]) * (y - a[1]) - (x - a[0]) * (b[1] - a[1])) / area
                if v < -EDGE or w < -EDGE or v + w > 1 + EDGE:
                    continue
                if write:
                    line[found] = i * columns + j
                    height[found] = a[2] + v * (b[2] - a[2]) + w * (c[2] - a[2])
                found += 1
    return found


@kernel
def line_crossings(corners: Floats, columns: int) -> tuple[Ints, Floats]:
    """Number of the line (row · columns + column) and height along it of every crossing."""
    nothing, nowhere = np.empty(0, dtype=np.int64), np.empty(0)
    count = _draw(corners, columns, nothing, nowhere, False)
    line, height = np.empty(count, dtype=np.int64), np.empty(count)
    _draw(corners, columns, line, height, True)
    return line, height
