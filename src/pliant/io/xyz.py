"""XYZ point clouds (.xyz): a point a line, ``x y z``, and its normal behind it where six numbers end in a unit one."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from pliant.core.shapes import PointCloud
from pliant.core.validation import not_finite
from pliant.io.losses import warn_of_losses
from pliant.io.source import Source, text_of


def read_points(source: Source) -> PointCloud:
    """The points. Further columns are left out."""
    rows: list[list[float]] = []
    width = 0
    for number, line in enumerate(text_of(source).splitlines(), 1):
        tokens = re.split(r"[\s,;]+", line.partition("#")[0].strip())
        if tokens == [""]:
            continue
        width = width or len(tokens)
        try:
            row = [float(token) for token in tokens]
        except ValueError:
            row = []
        if len(row) < 3 or len(row) != width:
            expected = "three or more numbers" if not rows else f"{width} numbers, as in the lines before"
            raise source.error(f'"{line.strip():.30}" is no point; expected {expected}', location=f"line {number}")
        rows.append(row)
    if not rows:
        raise source.error("holds no points")
    table = np.array(rows)
    found = not_finite(table[:, :3], "point")
    if found is not None:
        raise source.error(found[1])
    has_normals = width == 6 and bool((np.abs(np.linalg.norm(table[:, 3:], axis=1) - 1) < 0.02).all())
    return PointCloud(table[:, :3], table[:, 3:] if has_normals else None)


def write_points(path: Path, content: PointCloud) -> None:
    """Write points, with their normals if they have any."""
    warn_of_losses("XYZ", [f'attribute "{name}"' for name in content.attributes])
    table = content.points if content.normals is None else np.concatenate([content.points, content.normals], axis=1)
    path.write_text("".join(" ".join(f"{value:.17g}" for value in row) + "\n" for row in table), encoding="ascii")
