"""MakeHuman .target files: sparse offsets ``vertex dx dy dz`` on a base mesh, one file a shape."""

from __future__ import annotations

import numpy as np

from pliant.core.clips import Shapes
from pliant.core.shapes import Mesh
from pliant.io.scan import check_finite, checked_indices, scan_numbers
from pliant.io.source import Source


def read_shapes(source: Source) -> Shapes:
    """Cannot be read alone: says what else is needed."""
    raise source.error("holds offsets for a mesh; give that mesh too: read_shapes(..., base=mesh)")


def apply_targets(base: Mesh, sources: list[Source]) -> Shapes:
    """The base and, for each file, the base with that file's offsets."""
    points = np.repeat(base.points[None], len(sources) + 1, axis=0)
    for k, source in enumerate(sources, 1):
        table = scan_numbers(source, source.read())
        if not len(table):
            raise source.error("holds no offsets; expected rows of: vertex dx dy dz")
        rows = table.block(source, 0, len(table), 4, "offsets")
        lines = table.line.__getitem__
        moved = checked_indices(source, rows[:, 0], len(base.points), lines, "an offset")
        np.add.at(points[k], moved, check_finite(source, rows[:, 1:4], lines, "offset"))
    return Shapes(base, points, ("base", *(source.stem for source in sources)))
