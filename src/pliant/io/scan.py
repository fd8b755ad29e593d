"""Numbers out of text, at the speed of the disk: the tokenizer behind OBJ, PLY, OFF, STL, Medit, BVH and TGF.

A line ends at a line feed. Blanks (space, tab, carriage return, vertical tab, form feed) part its tokens and a ``#``
begins a comment. Every other byte belongs to a token, control characters and bytes beyond ASCII too. In tables of
numbers (all but OBJ) commas are blanks.

Decimal numbers are converted exactly as Python's ``float`` does. Digits are gathered into a 64-bit integer m and an
exponent e; ``m · 10^e`` is formed in double-double arithmetic (106 bits), whose rounding to a double is certain unless
it lies within 1e-30 of a tie. Those, and exponents beyond the table, are left to Python (`finish_ties`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import FileError
from pliant.core.topology import Floats, Ints
from pliant.core.validation import not_finite
from pliant.io.source import Source
from pliant.native import kernels

Bytes = NDArray[np.uint8]

_RANGE = 60
"""Powers of ten in the table run from 10^-60 to 10^60."""


def _power_table() -> Floats:
    exact = [Fraction(10) ** e for e in range(-_RANGE, _RANGE + 1)]
    high = [float(p) for p in exact]
    return np.array([high, [float(p - Fraction(h)) for p, h in zip(exact, high, strict=True)]])


POWERS = _power_table()
"""(2, 121) the powers, and what is left of them beside their doubles."""


def _scan_table(text: Bytes, start: int, stop: int, first_line: int) -> tuple[Floats, Ints, Ints, int, int]:
    """All numbers of text[start:stop]; (start, line) of each row; (slot, begin, end) of ties; as in `NumberTable`, the
    byte and the line of the text at which it ends.
    """
    values, rows, ties = np.empty(1024), np.empty((256, 2), np.int64), np.empty((16, 3), np.int64)
    at = np.array([start, first_line, 0, 0, 0, 0, -1])
    while kernels.scan_table(text, stop, POWERS, values, rows, ties, at):
        values, rows, ties = (_doubled(a, n) for a, n in zip((values, rows, ties), at[3:6].tolist(), strict=True))
    _, line, _, count, whole, tied, stopped = at.tolist()
    return values[:count], rows[:whole], ties[:tied], stopped, line


def _doubled(full: NDArray[Any], used: int) -> NDArray[Any]:
    """The array itself, or if it is full one of twice the length that begins with it."""
    if used < len(full):
        return full
    larger = np.empty((2 * len(full), *full.shape[1:]), full.dtype)
    larger[:used] = full
    return larger


def finish_ties(text: Bytes, values: Floats, ties: Ints) -> None:
    """Fill in, by Python's own conversion, the few numbers whose rounding the kernel was not certain of."""
    for slot, begin, end in ties.tolist():
        values.flat[slot] = float(text[begin:end].tobytes())


@dataclass(frozen=True)
class NumberTable:
    """Rows of numbers, as many in each as its line had; blank lines and # comments are passed over."""

    values: Floats
    """(k,) all numbers."""
    start: Ints
    """(rows + 1,) where each row begins in `values`."""
    line: Ints
    """(rows,) the line of the file each row stands on, from 1."""
    stopped: int
    """Byte of the first token that is not a number; -1 if there is none."""
    stopped_line: int

    def __len__(self) -> int:
        return len(self.line)

    @property
    def sizes(self) -> Ints:
        """(rows,) numbers in each row."""
        return np.diff(self.start)

    def row(self, k: int) -> Floats:
        """The numbers of row k."""
        return self.values[self.start[k] : self.start[k + 1]]

    def block(self, source: Source, first: int, count: int, width: int, what: str) -> Floats:
        """Rows first to first + count as (count, at least `width`) numbers, all rows of equal length."""
        sizes = self.sizes[first : first + count]
        if len(sizes) < count:
            raise source.error(f"ends after {len(sizes)} of {count} {what}")
        if count == 0:
            return np.zeros((0, width))
        bad = np.flatnonzero((sizes != sizes[0]) | (sizes < width))
        if bad.size:
            k = int(bad[0])
            expected = max(width, int(sizes[0]))
            raise source.error(
                f"a line of {what} has {sizes[k]} numbers; expected {expected}", location=f"line {self.line[first + k]}"
            )
        return self.values[self.start[first] : self.start[first + count]].reshape(count, int(sizes[0]))

    def line_of(self, slot: int) -> int:
        """The line on which the number values[slot] stands."""
        return int(self.line[np.searchsorted(self.start, slot, side="right") - 1])


def scan_numbers(
    source: Source,
    data: bytes,
    start: int = 0,
    stop: int | None = None,
    *,
    stop_at_text: bool = False,
    first_line: int | None = None,
) -> NumberTable:
    """Read data[start:stop] as rows of numbers. Text is an error, unless `stop_at_text`: then the table ends before it.

    first_line: the line that `start` stands on; counted if not given.
    """
    text = np.frombuffer(data, dtype=np.uint8)
    end = len(text) if stop is None else stop
    first_line = 1 + data.count(b"\n", 0, start) if first_line is None else first_line
    values, rows, ties, stopped, line = _scan_table(text, start, end, first_line)
    if stopped >= 0 and not stop_at_text:
        raise not_a_number(source, data, stopped, line)
    finish_ties(text, values, ties)
    bounds = np.append(rows[:, 0], len(values))
    return NumberTable(values, bounds, np.ascontiguousarray(rows[:, 1]), stopped, line)


def count_of(value: float) -> int | None:
    """The count that a number of a file stands for; None if it is none: negative, broken, NaN, beyond all reason."""
    return int(value) if 0 <= value <= 1e18 and value == np.floor(value) else None


def not_a_number(source: Source, data: bytes, at: int, line: int) -> FileError:
    """The error for a token that should have been a number."""
    token = data[at : at + 24].split()
    shown = token[0].decode("latin-1") if token else ""
    return source.error(f'found "{shown}"; expected a number', location=f"line {line}")


def checked_indices(
    source: Source, values: Floats, count: int, lines: Any, what: str = "a face", *, first: int = 0
) -> Ints:
    """Vertex numbers that the file counts from `first` to indices from 0; `lines(slot)` is the line of a bad one."""
    bad = ~((values >= first) & (values < first + count) & (values == np.floor(values)))
    if bad.any():
        slot = int(np.argmax(bad.ravel()))
        value = values.ravel()[slot]
        raise source.error(
            f"{what} refers to vertex {value:.15g}; the file has {count}, numbered from {first}",
            location=f"line {lines(slot)}",
        )
    return values.astype(np.int64) - first


def check_finite(source: Source, points: Floats, lines: Any, what: str = "vertex") -> Floats:
    """Points as they are, or an error naming the line of the first NaN or infinity."""
    found = not_finite(points, what)
    if found is not None:
        raise source.error(found[1], location=f"line {lines(found[0])}")
    return points
