"""Vertices to pin: numbers in text (parted by blanks, commas or lines), or JSON.

JSON: a list of vertex numbers, or ``{"vertices": [3, 7], "path": [[[x, y, z], [x, y, z]], ...]}`` with the positions of
the vertices, in that order, in each frame. Vertices are numbered from 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core.topology import Floats, Ints
from pliant.io.located_json import JsonText, read_json
from pliant.io.source import PathLike, Source, text_of


@dataclass(frozen=True, eq=False)
class Pins:
    """Vertices that are led by hand."""

    vertices: Ints
    """(k,)"""
    path: Floats | None = None
    """(frames, k, 3) where they are; None: on straight lines between their positions in the shapes."""


def read_pins(path: PathLike, count: int) -> Pins:
    """The pins in a file, for a mesh of `count` vertices."""
    source = Source(Path(path))
    if source.suffix == ".json":
        return _from_json(read_json(source), count)
    return Pins(_from_text(source, text_of(source), count))


def _from_text(source: Source, text: str, count: int) -> Ints:
    found: dict[int, None] = {}
    for number, line in enumerate(text.splitlines(), 1):
        for match in re.finditer(r"[^\s,;]+", line.split("#")[0]):
            location = f"line {number}, column {match.start() + 1}"
            if not re.fullmatch(r"[-+]?[0-9]{1,18}", match[0]):
                raise source.error(f'"{match[0]:.40}" is not a vertex number', location=location)
            if not 0 <= int(match[0]) < count:
                raise source.error(_unknown(int(match[0]), count), location=location)
            found[int(match[0])] = None
    if not found:
        raise source.error("is empty; expected vertex numbers, counted from 0")
    return np.array(list(found), dtype=np.int64)


def _unknown(vertex: int, count: int) -> str:
    return f"there is no vertex {vertex}; the mesh has {count}, numbered from 0 to {count - 1}"


def _from_json(document: JsonText, count: int) -> Pins:
    content = document.content
    if isinstance(content, list):
        return Pins(_vertices(document, content, (), count))
    if not isinstance(content, dict) or not isinstance(content.get("vertices"), list):
        raise document.error('expected a list of vertex numbers, or {"vertices": [...], "path": [...]}')
    unknown = [key for key in content if key not in ("vertices", "path")]
    if unknown:
        raise document.error(f'"{unknown[0]}" is not known here; expected "vertices" and "path"', (unknown[0],))
    vertices = _vertices(document, content["vertices"], ("vertices",), count)
    if content.get("path") is None:
        return Pins(vertices)
    return Pins(vertices, _positions(document, content["path"], len(vertices)))


def _vertices(document: JsonText, values: list[Any], path: tuple[int | str, ...], count: int) -> Ints:
    if not values:
        raise document.error("is an empty list; expected vertex numbers, counted from 0", path)
    seen: set[int] = set()
    for k, value in enumerate(values):
        vertex = document.whole(value, (*path, k))
        if not 0 <= vertex < count:
            raise document.error(_unknown(vertex, count), (*path, k))
        if vertex in seen:
            raise document.error(f"vertex {vertex} is there twice", (*path, k))
        seen.add(vertex)
    return np.array(values, dtype=np.int64)


def _positions(document: JsonText, frames: Any, pins: int) -> Floats:
    """(frames, pins, 3)"""
    if not isinstance(frames, list) or not frames:
        raise document.error("expected a list with the pins' positions in each frame", ("path",))
    table = np.zeros((len(frames), pins, 3))
    for f, row in enumerate(frames):
        if not isinstance(row, list) or len(row) != pins:
            shown = f"{len(row)} positions" if isinstance(row, list) else "no list of positions"
            raise document.error(f"frame {f} has {shown}; expected one for each of {pins} pins", ("path", f))
        for p, position in enumerate(row):
            if not isinstance(position, list) or len(position) != 3:
                raise document.error("a position is three numbers, [x, y, z]", ("path", f, p))
            table[f, p] = [document.number(value, ("path", f, p, k)) for k, value in enumerate(position)]
    return table
