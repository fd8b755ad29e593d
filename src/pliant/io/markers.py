"""Markers over time: where some vertices of a mesh were seen, in a CSV table.

A header names the columns ``vertex,x,y,z``, in any order, and ``frame`` if there is more than one frame; vertices and
frames count from 0; frames before the first are left out. A marker without a row in a frame, or with empty cells, is
missing there.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pliant.core.clips import MOST_FRAMES
from pliant.core.topology import Floats, Ints
from pliant.io.source import PathLike, Source
from pliant.io.weight_tables import cells_of

MARKER_COLUMNS = ("vertex", "x", "y", "z")


def read_markers(path: PathLike) -> tuple[Ints, Floats]:
    """Vertices (k,), and their positions (frames, k, 3), NaN where one is missing."""
    source = Source(Path(path))
    rows = list(cells_of(source))
    header = [cell.lower() for cell in rows[0][1]] if rows else []
    missing = [name for name in MARKER_COLUMNS if name not in header]
    if missing:
        names = ",".join(MARKER_COLUMNS)
        raise source.error(f"has no column {missing[0]}; expected the header {names}, or frame,{names}")
    at = [header.index(name) for name in MARKER_COLUMNS]
    frame_column = header.index("frame") if "frame" in header else None
    entries = []
    for line, cells in rows[1:]:
        if len(cells) != len(header):
            raise source.error(f"has {len(cells)} columns; the header has {len(header)}", location=f"line {line}")
        try:
            vertex, frame = (_counted(cells[c]) if c is not None else 0 for c in (at[0], frame_column))
            point = [float(cells[c]) if cells[c] else np.nan for c in at[1:]]
        except ValueError:
            raise source.error("expected whole numbers from 0, and coordinates", location=f"line {line}") from None
        if frame >= MOST_FRAMES:
            raise source.error(f"frame {frame}; expected less than {MOST_FRAMES:,}", location=f"line {line}")
        entries.append((vertex, frame, point))
    if not entries:
        raise source.error("has a header but no rows; expected a row for each marker")
    vertices = np.unique([vertex for vertex, _, _ in entries])
    first = min(frame for _, frame, _ in entries)
    points = np.full((max(frame for _, frame, _ in entries) + 1 - first, len(vertices), 3), np.nan)
    given = set()
    for vertex, frame, point in entries:
        if (vertex, frame) in given:
            raise source.error(f"has vertex {vertex} twice in frame {frame}; expected one row for each")
        given.add((vertex, frame))
        points[frame - first, np.searchsorted(vertices, vertex)] = point
    return vertices, points


def _counted(text: str) -> int:
    value = float(text)
    if not (value >= 0 and value == int(value)):
        raise ValueError
    return int(value)
