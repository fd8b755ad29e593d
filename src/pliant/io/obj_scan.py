"""The compiled pass over an OBJ file's lines: counts first, then fills arrays of exactly that size."""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant.io.scan import NUMBER, TIE, WORD, is_nan_or_inf, parse_number
from pliant.jit import kernel

# Kinds of line.
VERTEX, TEXTURE, NORMAL, FACE, WORDS, BLANK = 0, 1, 2, 3, 4, 5
# What can be wrong with one.
FINE, NOT_A_NUMBER, TOO_FEW, FACE_TOO_SMALL, BAD_CORNER, OUT_OF_RANGE, MIXED_CORNERS = 0, 1, 2, 3, 4, 5, 6


@kernel
def _line_kind(text: Any, i: int, stop: int) -> tuple[int, int]:
    """What the line at byte i holds, and the byte where its values begin."""
    while i < stop and (text[i] == 32 or text[i] == 9):
        i += 1
    if i >= stop or text[i] == 10 or text[i] == 13 or text[i] == 35:
        return BLANK, i
    c = text[i]
    after = text[i + 1] if i + 1 < stop else 10
    if c == 118:
        if after == 32 or after == 9:
            return VERTEX, i + 1
        third = text[i + 2] if i + 2 < stop else 10
        if third == 32 or third == 9:
            if after == 116:
                return TEXTURE, i + 2
            if after == 110:
                return NORMAL, i + 2
    if c == 102 and (after == 32 or after == 9):
        return FACE, i + 1
    return WORDS, i


@kernel
def _line_end(text: Any, i: int, stop: int) -> int:
    while i < stop and text[i] != 10:
        i += 1
    return i


@kernel
def count_lines(text: Any) -> Any:
    """(6,) counts: vertices, texture coordinates, normals, faces, face corners, lines of words."""
    counts = np.zeros(6, np.int64)
    i = 0
    stop = len(text)
    while i < stop:
        kind, j = _line_kind(text, i, stop)
        end = _line_end(text, j, stop)
        if kind == FACE:
            inside = False
            while j < end and text[j] != 35:
                blank = text[j] == 32 or text[j] == 9 or text[j] == 13
                if not blank and not inside:
                    counts[4] += 1
                inside = not blank
                j += 1
        if kind == WORDS:
            counts[5] += 1
        elif kind != BLANK:
            counts[kind] += 1
        i = end + 1
    return counts


@kernel
def _read_values(text: Any, j: int, end: int, row: Any, base: int, ties: Any, tied: int) -> tuple[int, int, int]:
    """Numbers of a line into `row`; how many there were, ties so far, and the byte of a bad token (or -1).

    Ties beyond the room in `ties` are counted but not kept: the caller makes room and reads again.
    """
    count = 0
    while j < end:
        if text[j] == 32 or text[j] == 9 or text[j] == 13:
            j += 1
            continue
        if text[j] == 35:
            break
        value, after, status = parse_number(text, j, end)
        if status == WORD and is_nan_or_inf(text, j, end):
            value, after, status = np.nan, j, NUMBER
            while after < end and text[after] > 32:
                after += 1
        if status == WORD or (after < end and text[after] > 32):
            return count, tied, j
        if count < len(row):
            row[count] = value
            if status == TIE:
                if tied < len(ties):
                    ties[tied, 0], ties[tied, 1], ties[tied, 2] = base + count, j, after
                tied += 1
        count += 1
        j = after
    return count, tied, -1


@kernel
def _whole(text: Any, j: int, end: int) -> tuple[int, int]:
    """A signed whole number: its value (0 if there is none) and the byte after it."""
    minus = j < end and text[j] == 45
    if minus or (j < end and text[j] == 43):
        j += 1
    value = 0
    while j < end and 48 <= text[j] <= 57:
        value = min(value * 10 + (text[j] - 48), 1 << 60)
        j += 1
    return (-value if minus else value), j


@kernel
def _resolve(number: int, seen: int, total: int) -> int:
    """OBJ's index (from 1, or negative from the latest) to an index from 0; -1 if it does not exist."""
    index = seen + number if number < 0 else number - 1
    return index if 0 <= index < total and number != 0 else -1


@kernel
def _read_corner(text: Any, j: int, end: int, seen: Any, totals: Any, corner: Any) -> tuple[int, int]:
    """One corner a, a/b, a//c or a/b/c into corner[3] (-2 where left out); the byte after it and what is wrong."""
    corner[1] = corner[2] = -2
    number, after = _whole(text, j, end)
    if after == j:
        return j, BAD_CORNER
    corner[0] = _resolve(number, seen[0], totals[0])
    for slot in range(1, 3):
        if after < end and text[after] == 47:
            after += 1
            begin = after
            number, after = _whole(text, after, end)
            if after > begin:
                corner[slot] = _resolve(number, seen[slot], totals[slot])
    if after < end and text[after] > 32 and text[after] != 35:
        return after, BAD_CORNER
    if corner[0] == -1 or corner[1] == -1 or corner[2] == -1:
        return after, OUT_OF_RANGE
    return after, FINE


@kernel
def fill_lines(
    text: Any,
    counts: Any,
    vertices: Any,
    vertex_sizes: Any,
    textures: Any,
    normals: Any,
    corners: Any,
    face_start: Any,
    words: Any,
    ties: Any,
) -> tuple[int, int, Any]:
    """Fill the arrays that `count_lines` sized. Returns what is wrong, at which byte, and tie counts.

    vertices (v, 6), textures (t, 3), normals (n, 3); corners (c, 3) of vertex, texture, normal index, -2 where left
    out; words (w, 2): byte and number of faces before each line of words; ties[kind]: values left to Python.
    """
    seen = np.zeros(3, np.int64)
    tied = np.zeros(3, np.int64)
    faces = filled = worded = 0
    i = 0
    stop = len(text)
    while i < stop:
        kind, j = _line_kind(text, i, stop)
        end = _line_end(text, j, stop)
        if kind <= NORMAL:
            k = seen[kind]
            table = vertices if kind == VERTEX else textures if kind == TEXTURE else normals
            size, tied[kind], bad = _read_values(text, j, end, table[k], k * table.shape[1], ties[kind], tied[kind])
            if bad >= 0:
                return NOT_A_NUMBER, bad, tied
            if size < (1 if kind == TEXTURE else 3):
                return TOO_FEW, j, tied
            if kind == VERTEX:
                vertex_sizes[k] = size
            seen[kind] += 1
        elif kind == FACE:
            face_start[faces] = filled
            while j < end and text[j] != 35:
                if text[j] == 32 or text[j] == 9 or text[j] == 13:
                    j += 1
                    continue
                j, problem = _read_corner(text, j, end, seen, counts, corners[filled])
                if problem != FINE:
                    return problem, j, tied
                filled += 1
            first = face_start[faces]
            if filled - first < 3:
                return FACE_TOO_SMALL, i, tied
            for c in range(first + 1, filled):
                if (corners[c, 1] == -2) != (corners[first, 1] == -2):
                    return MIXED_CORNERS, i, tied
                if (corners[c, 2] == -2) != (corners[first, 2] == -2):
                    return MIXED_CORNERS, i, tied
            faces += 1
        elif kind == WORDS:
            words[worded, 0], words[worded, 1] = j, faces
            worded += 1
        i = end + 1
    face_start[faces] = filled
    return FINE, 0, tied
