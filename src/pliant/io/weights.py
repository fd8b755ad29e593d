"""Weights over time: a table of sliders, one row a frame, as CSV or JSON.

CSV: a header of shape names, in any order and not necessarily all (columns such as ``frame`` and ``time`` are passed
over), or no header and one column for each shape, or for each but the base. Commas, semicolons, tabs or blanks part
the columns; lines that start with # are comments.

JSON: ``[[0, 1], [0.5, 0.5]]``, ``[{"smile": 1}, {"smile": 0.5}]``, ``{"smile": [1, 0.5]}``, each also inside
``{"weights": ...}``. A single row is a single frame.
"""

from __future__ import annotations

import csv
import difflib
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core.topology import Floats
from pliant.io.located_json import JsonText, read_json
from pliant.io.source import PathLike, Source, text_of

NOT_SHAPES = ("frame", "time", "seconds", "timecode", "blendshapecount")
"""Columns that tables of weights have beside the shapes."""


def read_weights(path: PathLike, names: Sequence[str]) -> Floats:
    """(frames, shapes) sliders of the shapes called `names`, the base first; 0 where the file does not name a shape."""
    source = Source(Path(path))
    if source.suffix == ".json":
        return _from_json(read_json(source), ShapeNames(names))
    if source.suffix not in (".csv", ".tsv", ".txt"):
        raise source.error(f'unknown format "{source.suffix}" for weights; expected .csv or .json')
    return _from_csv(source, ShapeNames(names))


class ShapeNames:
    """Shapes by name; capitals, blanks, dashes and underscores need not match where the name is clear without."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self.loose: dict[str, list[int]] = {}
        for k, name in enumerate(self.names):
            self.loose.setdefault(_plain(name), []).append(k)

    def __len__(self) -> int:
        return len(self.names)

    def find(self, name: str) -> int | None:
        """The shape of that name; None for a column that is no shape; raises KeyError, with advice, for others."""
        is_known = name in self.names or len(self.loose.get(_plain(name), [])) == 1
        return None if _plain(name) in NOT_SHAPES and not is_known else self.shape(name)

    def shape(self, name: str) -> int:
        """The shape of that name; raises KeyError, with advice, if there is none."""
        if name in self.names:
            return self.names.index(name)
        alike = self.loose.get(_plain(name), [])
        if len(alike) == 1:
            return alike[0]
        near = difflib.get_close_matches(name, self.names, 3) or [self.names[k] for k in alike]
        suggestions = " or ".join(f'"{one}"' for one in near)
        listed = ", ".join(self.names[:12]) + (f" and {len(self) - 12} more" if len(self) > 12 else "")
        advice = f"did you mean {suggestions}?" if near else f"there are {listed}"
        raise KeyError(f'no shape is called "{name:.60}"; {advice}')

    def row(self, numbers: Sequence[float]) -> Floats:
        """One number for each shape; a missing first one, the base's, is 0."""
        return np.concatenate([np.zeros(len(self) - len(numbers)), numbers])

    def fits(self, count: int) -> bool:
        """Whether this many unnamed numbers can be assigned."""
        return count == len(self) or (count == len(self) - 1 and count > 0)

    @property
    def wanted(self) -> str:
        """How many unnamed numbers are expected, as text."""
        return f"{len(self)}, one for each shape, or {len(self) - 1}, without the base"


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).casefold()


def _from_csv(source: Source, names: ShapeNames) -> Floats:
    rows = list(_cells(source))
    if not rows:
        raise source.error("is empty; expected a row of weights for each frame")
    line, first = rows[0]
    if all(_is_number(cell) for cell in first) and not all(cell in names.names for cell in first):
        if not names.fits(len(first)):
            raise source.error(f"has {len(first)} columns; expected {names.wanted}", location=f"line {line}")
        columns: list[int | None] = list(range(len(names) - len(first), len(names)))
    else:
        columns = _header(source, line, first, names)
        rows = rows[1:]
        if not rows:
            raise source.error("has a header but no rows; expected a row of weights for each frame")
    table = np.zeros((len(rows), len(names)))
    for k, (number, cells) in enumerate(rows):
        if len(cells) != len(columns):
            raise source.error(f"has {len(cells)} columns; line {line} has {len(columns)}", location=f"line {number}")
        for c, (cell, shape) in enumerate(zip(cells, columns, strict=True)):
            if shape is not None:
                table[k, shape] = _weight(source, cell, number, c)
    return table


def _cells(source: Source) -> Iterator[tuple[int, list[str]]]:
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


def _header(source: Source, line: int, cells: list[str], names: ShapeNames) -> list[int | None]:
    """The shape of each column; None for columns that are passed over."""
    columns: list[int | None] = []
    for c, cell in enumerate(cells):
        location = f"line {line}, column {c + 1}"
        if not cell and c == 0:  # the row numbers that some programs write
            columns.append(None)
            continue
        try:
            shape = names.find(cell)
        except KeyError as error:
            raise source.error(error.args[0], location=location) from None
        if shape is not None and shape in columns:
            raise source.error(f'the shape "{names.names[shape]}" has two columns', location=location)
        columns.append(shape)
    if all(shape is None for shape in columns):
        raise source.error(f"names no shape; there are {', '.join(names.names[:12])}", location=f"line {line}")
    return columns


def _weight(source: Source, cell: str, line: int, column: int) -> float:
    value = float(cell) if _is_number(cell) else math.nan
    if not math.isfinite(value):
        shown = f'"{cell:.40}" is' if cell else "the cell is empty;"
        problem = f"{shown} not a finite number" if cell else f"{shown} expected a number"
        raise source.error(problem, location=f"line {line}, column {column + 1}")
    return value


def _from_json(document: JsonText, names: ShapeNames) -> Floats:
    content: Any = document.content
    path: tuple[int | str, ...] = ()
    if isinstance(content, dict) and isinstance(content.get("weights"), (list, dict)) and "weights" not in names.names:
        content, path = content["weights"], ("weights",)
    if not isinstance(content, (list, dict)) or not content:
        raise document.error("holds no weights; expected rows, or a list of values for each shape", path)
    if isinstance(content, dict):
        return _columns(document, content, path, names)
    if not any(isinstance(row, (list, dict)) for row in content):
        return _row(document, content, path, names)[None]
    return np.stack([_row(document, row, (*path, k), names) for k, row in enumerate(content)])


def _row(document: JsonText, row: Any, path: tuple[int | str, ...], names: ShapeNames) -> Floats:
    """One frame: numbers in the shapes' order, or by name."""
    if isinstance(row, dict):
        full = np.zeros(len(names))
        for name, value in row.items():
            shape = _named(document, name, path, names)
            if shape is not None:
                full[shape] = document.number(value, (*path, name))
        return full
    if not isinstance(row, list):
        raise document.error(f"row is {str(row)[:40]}; expected a list of numbers or names with numbers", path)
    if not names.fits(len(row)):
        raise document.error(f"row has {len(row)} numbers; expected {names.wanted}", path)
    return names.row([document.number(value, (*path, k)) for k, value in enumerate(row)])


def _columns(document: JsonText, content: dict[str, Any], path: tuple[int | str, ...], names: ShapeNames) -> Floats:
    """By shape: a list of values over the frames, or one value for all of them."""
    lengths = {name: len(values) for name, values in content.items() if isinstance(values, list)}
    frames = next(iter(lengths.values()), 1)
    table = np.zeros((frames, len(names)))
    for name, values in content.items():
        shape = _named(document, name, path, names)
        here = (*path, name)
        if shape is None:
            continue
        if lengths.get(name, frames) != frames or not frames:
            raise document.error(f'"{name}" has {lengths[name]} values; expected {frames or "1 or more"}', here)
        if isinstance(values, list):
            table[:, shape] = [document.number(value, (*here, k)) for k, value in enumerate(values)]
        else:
            table[:, shape] = document.number(values, here)
    return table


def _named(document: JsonText, name: str, path: tuple[int | str, ...], names: ShapeNames) -> int | None:
    try:
        return names.find(name)
    except KeyError as error:
        raise document.error(error.args[0], (*path, name)) from None
