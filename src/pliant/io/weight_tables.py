"""Tables of sliders over time, one row a frame: CSV or JSON.

CSV: a header of shape names, in any order and not necessarily all, or no header and one column for each shape, or for
each but the base. Commas, semicolons, tabs or blanks part the columns; lines that start with # are comments. Recordings
of faces are read as they come: a column of seconds or timecodes gives the frame rate, columns for what this rig does
not have are left out with a note, and rows without any values, where tracking was lost, repeat the row before.

JSON: ``[[0, 1], [0.5, 0.5]]``, ``[{"smile": 1}, {"smile": 0.5}]``, ``{"smile": [1, 0.5]}``, each also inside
``{"weights": ..., "fps": 24}``. A single row is a single frame.
"""

from __future__ import annotations

import csv
import math
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pliant.core.clips import DEFAULT_FPS, MOST_FRAMES, WeightClip
from pliant.core.errors import PliantWarning
from pliant.core.topology import Floats
from pliant.core.values import locked
from pliant.io.located_json import JsonText, read_json
from pliant.io.shape_names import ShapeNames, is_counter, plain
from pliant.io.source import Source, text_of
from pliant.io.timecode import FASTEST, evenly, frame_rate_of, seconds_of

WEIGHT_TABLES = (".csv", ".json", ".tsv", ".txt")
TIMES = ("timecode", "time", "seconds")
"""Columns that say when a row was recorded, the first that is there counts."""
MOST_LOST = 12
"""Names that a note lists."""


def read_table(source: Source, names: ShapeNames) -> WeightClip:
    """The sliders of the shapes called `names`; 0 where the file does not name a shape."""
    return _from_json(read_json(source), names) if source.suffix == ".json" else _from_csv(source, names)


def note_lost(label: str, lost: Sequence[str]) -> None:
    """One note on all weights that move no shape."""
    if lost:
        listed = ", ".join(lost[:MOST_LOST]) + (", ..." if len(lost) > MOST_LOST else "")
        warnings.warn(f"{label}: left out {len(lost)} that move no shape here: {listed}", PliantWarning, stacklevel=2)


def _from_csv(source: Source, names: ShapeNames) -> WeightClip:
    rows = list(cells_of(source))
    if not rows:
        raise source.error("is empty; expected a row of weights for each frame")
    line, first = rows[0]
    if all(_is_number(cell) for cell in first) and not all(cell in names.names for cell in first):
        if not names.fits(len(first)):
            raise source.error(f"has {len(first)} columns; expected {names.wanted}", location=f"line {line}")
        header = []
        columns: list[tuple[int, ...]] = [(k,) for k in range(len(names) - len(first), len(names))]
    else:
        header, columns = first, _header(source, line, first, names)
        rows = rows[1:]
        if not rows:
            raise source.error("has a header but no rows; expected a row of weights for each frame")
    if len(rows) > MOST_FRAMES:
        raise source.error(f"has {len(rows):,} rows; expected at most {MOST_FRAMES:,} frames")
    for number, cells in rows:
        if len(cells) != len(columns):
            raise source.error(f"has {len(cells)} columns; line {line} has {len(columns)}", location=f"line {number}")
    return _recorded(source, names, header, rows, _values(source, names, columns, rows))


Lines = Sequence[tuple[int, list[str]]]
"""Line numbers and cells."""


def _values(source: Source, names: ShapeNames, columns: Sequence[tuple[int, ...]], rows: Lines) -> Floats:
    """(rows, shapes); a row without any value repeats the one before."""
    table = np.zeros((len(rows), len(names)))
    used = [(c, list(shapes)) for c, shapes in enumerate(columns) if shapes]
    lost = []
    for k, (number, cells) in enumerate(rows):
        if len(used) > 1 and not any(cells[c] for c, _ in used):
            table[k] = table[max(k - 1, 0)]
            lost.append(number)
            continue
        for c, shapes in used:
            table[k, shapes] = _weight(source, cells[c], number, c)
    if lost:
        what = f"{len(lost)} of {len(rows)} rows have no values, the first in line {lost[0]}; repeated those before"
        warnings.warn(f"{source.label}: {what}", PliantWarning, stacklevel=2)
    return table


def _recorded(source: Source, names: ShapeNames, header: list[str], rows: Lines, values: Floats) -> WeightClip:
    """The clip of a table, at even steps if its rows say when they were recorded."""
    written = [plain(cell) for cell in header]
    column = next((written.index(name) for name in TIMES if name in written), None)
    times = None if column is None else seconds_of([cells[column] for _, cells in rows])
    fps = None if times is None else frame_rate_of(times)
    if times is not None and fps is None and (np.diff(times) > 0).all() and (times != np.round(times)).any():
        fps = DEFAULT_FPS  # keys at times of their own; whole numbers may be frames
    if times is not None and fps is not None:
        if (times[-1] - times[0]) * fps > MOST_FRAMES:
            raise source.error(f"lasts {times[-1] - times[0]:.0f} s; expected at most {MOST_FRAMES:,} frames")
        values, uneven = evenly(times, values, fps)
        if uneven:
            what = f"rows are not evenly spaced; interpolated {len(values)} frames at {fps:g} fps"
            warnings.warn(f"{source.label}: {what}", PliantWarning, stacklevel=2)
    return WeightClip(tuple(names.names), locked(values), fps, source.stem)


def cells_of(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Rows that are neither blank nor comments: line number and cells."""
    lines = [line if not line.lstrip().startswith("#") else "" for line in text_of(source).splitlines()]
    first = next((line for line in lines if line.strip()), "")
    delimiter = next((mark for mark in "\t;," if mark in first), " ")
    if delimiter == " ":
        lines = [" ".join(line.split()) for line in lines]
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    try:
        for cells in reader:
            cells = [cell.strip() for cell in cells]
            if any(cells):
                # Where semicolons part the columns a comma is a decimal point, as in exports of spreadsheets.
                decimal = [_pointed(cell) for cell in cells] if delimiter == ";" else cells
                yield reader.line_num, decimal
    except csv.Error as error:
        raise source.error(f"is not CSV ({error})", location=f"line {reader.line_num}") from error


def _pointed(cell: str) -> str:
    return cell.replace(",", ".") if re.fullmatch(r"[-+]?\d*,\d+", cell) else cell


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _header(source: Source, line: int, cells: list[str], names: ShapeNames) -> list[tuple[int, ...]]:
    """The shapes of each column, none for columns that are left out."""
    columns: list[tuple[int, ...]] = []
    taken: set[int] = set()
    lost = []
    for c, cell in enumerate(cells):
        location = f"line {line}, column {c + 1}"
        try:
            shapes = names.column(cell) if cell or c > 0 else ()  # the row numbers that some programs write
        except KeyError as error:
            raise source.error(error.args[0], location=location) from None
        twice = sorted(taken & set(shapes))
        if twice:
            raise source.error(f'the shape "{names.names[twice[0]]}" has two columns', location=location)
        taken |= set(shapes)
        columns.append(shapes)
        if cell and not shapes and not is_counter(cell) and not names.others:
            lost.append(cell)
    if not taken:
        raise source.error(f"names no shape; {names.listed}", location=f"line {line}")
    note_lost(source.label, lost)
    return columns


def _weight(source: Source, cell: str, line: int, column: int) -> float:
    value = float(cell) if _is_number(cell) else math.nan
    if not math.isfinite(value):
        shown = f'"{cell:.40}" is' if cell else "the cell is empty;"
        problem = f"{shown} not a finite number" if cell else f"{shown} expected a number"
        raise source.error(problem, location=f"line {line}, column {column + 1}")
    return value


Path = tuple[int | str, ...]


def _from_json(document: JsonText, names: ShapeNames) -> WeightClip:
    content: Any = document.content
    path: Path = ()
    fps = None
    if isinstance(content, dict) and isinstance(content.get("weights"), (list, dict)) and "weights" not in names.names:
        if content.get("fps") is not None:
            fps = document.number(content["fps"], ("fps",))
            if not 0 < fps <= FASTEST:
                raise document.error(f"fps is {fps:g}; expected a positive number of frames a second", ("fps",))
        content, path = content["weights"], ("weights",)
    if not isinstance(content, (list, dict)) or not content:
        raise document.error("holds no weights; expected rows, or a list of values for each shape", path)
    reader = _JsonRows(document, names)
    if isinstance(content, dict):
        values = reader.columns(content, path)
    elif not any(isinstance(row, (list, dict)) for row in content):
        values = reader.row(content, path)[None]
    else:
        values = np.stack([reader.row(row, (*path, k)) for k, row in enumerate(content)])
    note_lost(document.source.label, list(reader.lost))
    return WeightClip(tuple(names.names), locked(values), fps, document.source.stem)


class _JsonRows:
    """Frames in a JSON document, and the names in it that move no shape."""

    def __init__(self, document: JsonText, names: ShapeNames) -> None:
        self.document, self.names = document, names
        self.lost: dict[str, None] = {}

    def row(self, row: Any, path: Path) -> Floats:
        """One frame: numbers in the shapes' order, or by name."""
        if isinstance(row, dict):
            full = np.zeros(len(self.names))
            for name, value in row.items():
                if shapes := self._shapes(name, path):
                    full[shapes] = self.document.number(value, (*path, name))
            return full
        if not isinstance(row, list):
            problem = f"row is {str(row)[:40]}; expected a list of numbers or names with numbers"
            raise self.document.error(problem, path)
        if not self.names.fits(len(row)):
            raise self.document.error(f"row has {len(row)} numbers; expected {self.names.wanted}", path)
        return self.names.row([self.document.number(value, (*path, k)) for k, value in enumerate(row)])

    def columns(self, content: dict[str, Any], path: Path) -> Floats:
        """By shape: a list of values over the frames, or one value for all of them."""
        number = self.document.number
        lengths = {name: len(values) for name, values in content.items() if isinstance(values, list)}
        frames = next(iter(lengths.values()), 1)
        table = np.zeros((frames, len(self.names)))
        for name, values in content.items():
            here = (*path, name)
            shapes = self._shapes(name, path)
            if not shapes:
                continue
            if lengths.get(name, frames) != frames or not frames:
                problem = f'"{name}" has {lengths[name]} values; expected {frames or "1 or more"}'
                raise self.document.error(problem, here)
            if isinstance(values, list):
                table[:, shapes] = np.array([number(value, (*here, k)) for k, value in enumerate(values)])[:, None]
            else:
                table[:, shapes] = number(values, here)
        return table

    def _shapes(self, name: str, path: Path) -> list[int]:
        try:
            shapes = self.names.column(name)
        except KeyError as error:
            raise self.document.error(error.args[0], (*path, name)) from None
        if not shapes and not is_counter(name) and not self.names.others:
            self.lost[name] = None
        return list(shapes)
