"""Numbers out of text, at the speed of the disk: the tokenizer behind OBJ, PLY, OFF, STL, Medit, BVH and TGF.

A line ends at a line feed. Blanks (space, tab, carriage return, vertical tab, form feed) part its tokens and a ``#``
begins a comment. Every other byte belongs to a token, control characters and bytes beyond ASCII too. In tables of
numbers (all but OBJ) commas are blanks.

Decimal numbers are converted exactly as Python's ``float`` does. Digits are gathered into a 64-bit integer m and an
exponent e; ``m · 10^e`` is formed in double-double arithmetic (106 bits), whose rounding to a double is certain unless
it lies within 1e-30 of a tie. Those, and exponents beyond the table, are left to Python (`_finish`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.errors import FileError
from pliant.io.source import Source
from pliant.jit import kernel
from pliant.topology import Floats, Ints

Bytes = NDArray[np.uint8]

_RANGE = 60
"""Powers of ten in the table run from 10^-60 to 10^60."""


def _power_table() -> tuple[Floats, Floats]:
    exact = [Fraction(10) ** e for e in range(-_RANGE, _RANGE + 1)]
    high = np.array([float(p) for p in exact])
    low = np.array([float(p - Fraction(h)) for p, h in zip(exact, high.tolist(), strict=True)])
    return high, low


_POWER_HIGH, _POWER_LOW = _power_table()

NUMBER, WORD, TIE = 0, 1, 2


@kernel
def _two_product(a: float, b: float) -> tuple[float, float]:
    """a·b as an exact sum of two doubles (Dekker)."""
    product = a * b
    split = 134217729.0
    c = split * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = split * b
    b_high = c - (c - b)
    b_low = b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@kernel
def _scale(mantissa: Any, exponent: int) -> tuple[float, bool]:
    """mantissa · 10^exponent rounded to a double, and whether that rounding is certain."""
    if mantissa == 0:
        return 0.0, True
    if exponent < -_RANGE or exponent > _RANGE:
        return 0.0, False
    top = np.float64(mantissa >> np.uint64(32)) * 4294967296.0
    bottom = np.float64(mantissa & np.uint64(0xFFFFFFFF))
    m_high = top + bottom
    m_low = bottom - (m_high - top)
    high, error = _two_product(m_high, _POWER_HIGH[exponent + _RANGE])
    error += m_high * _POWER_LOW[exponent + _RANGE] + m_low * _POWER_HIGH[exponent + _RANGE]
    value = high + error
    rest = error - (value - high)
    slack = abs(value) * 1e-30
    return value, value + (rest + slack) == value and value + (rest - slack) == value


@kernel
def parse_number(text: Any, i: int, stop: int) -> tuple[float, int, int]:
    """The number at byte i: its value, the byte after it, and NUMBER, WORD (it is none) or TIE (ask Python)."""
    start = i
    negative = False
    if i < stop and (text[i] == 43 or text[i] == 45):
        negative = text[i] == 45
        i += 1
    mantissa = np.uint64(0)
    digits = 0
    used = 0
    exponent = 0
    exact = True
    while i < stop and 48 <= text[i] <= 57:
        if used < 19:
            mantissa = mantissa * np.uint64(10) + np.uint64(text[i] - 48)
            used += 1 if mantissa > 0 else 0
        else:
            exponent += 1
            exact = exact and text[i] == 48
        digits += 1
        i += 1
    if i < stop and text[i] == 46:
        i += 1
        while i < stop and 48 <= text[i] <= 57:
            if used < 19:
                mantissa = mantissa * np.uint64(10) + np.uint64(text[i] - 48)
                used += 1 if mantissa > 0 else 0
                exponent -= 1
            else:
                exact = exact and text[i] == 48
            digits += 1
            i += 1
    if digits == 0:
        return 0.0, start, WORD
    if i < stop and (text[i] | 32) == 101:
        i += 1
        minus = False
        if i < stop and (text[i] == 43 or text[i] == 45):
            minus = text[i] == 45
            i += 1
        if not (i < stop and 48 <= text[i] <= 57):
            return 0.0, start, WORD
        power = 0
        while i < stop and 48 <= text[i] <= 57:
            power = min(power * 10 + (text[i] - 48), 100000)
            i += 1
        exponent += -power if minus else power
    value, certain = _scale(mantissa, exponent)
    if not (exact and certain):
        return 0.0, i, TIE
    return (-value if negative else value), i, NUMBER


@kernel
def _is_nan_or_inf(text: Any, i: int, stop: int) -> bool:
    """Whether the token at byte i starts as nan or inf do, in any spelling."""
    if i < stop and (text[i] == 43 or text[i] == 45):
        i += 1
    if i + 3 > stop:
        return False
    a, b, c = text[i] | 32, text[i + 1] | 32, text[i + 2] | 32
    return (a == 110 and b == 97 and c == 110) or (a == 105 and b == 110 and c == 102)


@kernel
def parse_token(text: Any, i: int, stop: int) -> tuple[float, int]:
    """The number that is the whole token text[i:stop] (NaN for all spellings of nan and inf), and its status."""
    value, after, status = parse_number(text, i, stop)
    if status == WORD and _is_nan_or_inf(text, i, stop):
        return np.nan, NUMBER
    return value, status if after == stop else WORD


@kernel
def _parts(c: int, separator: int) -> bool:
    """Whether a byte parts the tokens of a line: a blank, or the separator."""
    return c == 32 or (9 <= c <= 13 and c != 10) or c == separator


@kernel
def next_token(text: Any, i: int, stop: int, separator: int = 32) -> tuple[int, int]:
    """First byte of the line's first token in text[i:stop], and the byte after it; equal where there is none."""
    while i < stop and _parts(text[i], separator):
        i += 1
    end = i
    while end < stop and not (text[end] == 10 or text[end] == 35 or _parts(text[end], separator)):
        end += 1
    return i, end


@kernel
def _scan_table(text: Any, start: int, stop: int, first_line: int) -> tuple[Any, Any, Any, Any, int, int]:
    """All numbers of text[start:stop], row by row; see `NumberTable`. Stops early at a word: its byte and line."""
    values = np.empty(1024, np.float64)
    row_start = np.empty(256, np.int64)
    row_line = np.empty(256, np.int64)
    ties = np.empty((16, 3), np.int64)
    count = rows = tied = 0
    line = first_line
    fresh = True
    i = start
    while i < stop:
        i, after = next_token(text, i, stop, 44)
        if i == after:  # at the end of a line, or at a comment
            while i < stop and text[i] != 10:
                i += 1
            i += 1
            line += 1
            fresh = True
            continue
        value, status = parse_token(text, i, after)
        if status == WORD:
            return values[:count], row_start[:rows], row_line[:rows], ties[:tied], i, line
        if fresh:
            if rows == len(row_start):
                row_start = np.concatenate((row_start, np.empty_like(row_start)))
                row_line = np.concatenate((row_line, np.empty_like(row_line)))
            row_start[rows] = count
            row_line[rows] = line
            rows += 1
            fresh = False
        if count == len(values):
            values = np.concatenate((values, np.empty_like(values)))
        if status == TIE:
            if tied == len(ties):
                ties = np.concatenate((ties, np.empty_like(ties)))
            ties[tied, 0], ties[tied, 1], ties[tied, 2] = count, i, after
            tied += 1
        values[count] = value
        count += 1
        i = after
    return values[:count], row_start[:rows], row_line[:rows], ties[:tied], -1, line


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
                f"a line of {what} has {sizes[k]} numbers; expected {expected}", place=f"line {self.line[first + k]}"
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
    words: bool = False,
    first_line: int | None = None,
) -> NumberTable:
    """Read data[start:stop] as rows of numbers. A word is an error, unless `words`: then the table ends before it.

    first_line: the line that `start` stands on; counted if not given.
    """
    text = np.frombuffer(data, dtype=np.uint8)
    end = len(text) if stop is None else stop
    first_line = 1 + data.count(b"\n", 0, start) if first_line is None else first_line
    values, row_start, row_line, ties, stopped, line = _scan_table(text, start, end, first_line)
    if stopped >= 0 and not words:
        raise not_a_number(source, data, stopped, line)
    finish_ties(text, values, ties)
    bounds = np.concatenate([row_start, [len(values)]]).astype(np.int64)
    return NumberTable(values, bounds, row_line, stopped, line)


def count_of(value: float) -> int | None:
    """The count that a number of a file stands for; None if it is none: negative, broken, NaN, beyond all reason."""
    return int(value) if 0 <= value <= 1e18 and value == np.floor(value) else None


def not_a_number(source: Source, data: bytes, at: int, line: int) -> FileError:
    """The error for a token that should have been a number."""
    token = data[at : at + 24].split()
    shown = token[0].decode("latin-1") if token else ""
    return source.error(f'found "{shown}"; expected a number', place=f"line {line}")


def checked_indices(
    source: Source, values: Floats, count: int, lines: Any, what: str = "a face", *, first: int = 0
) -> Ints:
    """Vertex numbers that the file counts from `first` to indices from 0; `lines(slot)` tells the line of a bad one."""
    bad = ~((values >= first) & (values < first + count) & (values == np.floor(values)))
    if bad.any():
        slot = int(np.argmax(bad.ravel()))
        value = values.ravel()[slot]
        raise source.error(
            f"{what} refers to vertex {value:.15g}; the file has {count}, numbered from {first}",
            place=f"line {lines(slot)}",
        )
    return values.astype(np.int64) - first


def check_finite(source: Source, points: Floats, lines: Any, what: str = "vertex") -> Floats:
    """Points as they are, or an error naming the line of the first NaN or infinity."""
    finite = np.isfinite(points).all(axis=1)
    if not finite.all():
        k = int(np.argmin(finite))
        raise source.error(f"{what} {k} is {points[k].tolist()}; expected finite numbers", place=f"line {lines(k)}")
    return points
