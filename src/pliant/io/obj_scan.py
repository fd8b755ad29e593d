"""The compiled pass over an OBJ file's lines: counts first, then fills arrays of exactly that size.

Both passes take lines from `_line_kind` and tokens from `next_token`, so that they cannot disagree on what there is;
and filling stops (OVERFULL) rather than write past an array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant.io.scan import TIE, WORD, next_token, parse_token
from pliant.jit import kernel

# Kinds of line.
VERTEX, TEXTURE, NORMAL, FACE, WORDS, BLANK = 0, 1, 2, 3, 4, 5
# What can be wrong with one.
FINE, NOT_A_NUMBER, TOO_FEW, FACE_TOO_SMALL, BAD_CORNER, OUT_OF_RANGE, MIXED_CORNERS, OVERFULL = 0, 1, 2, 3, 4, 5, 6, 7


@kernel
def _line_kind(text: Any, i: int, stop: int) -> tuple[int, int, int]:
    """What the line at byte i holds, the byte where its values (of words: the line itself) begin, and its end."""
    end = i
    while end < stop and text[end] != 10:
        end += 1
    begin, after = next_token(text, i, end)
    if begin == after:
        return BLANK, begin, end
    if after - begin == 1 and text[begin] == 118:
        return VERTEX, after, end
    if after - begin == 1 and text[begin] == 102:
        return FACE, after, end
    if after - begin == 2 and text[begin] == 118 and text[begin + 1] == 116:
        return TEXTURE, after, end
    if after - begin == 2 and text[begin] == 118 and text[begin + 1] == 110:
        return NORMAL, after, end
    return WORDS, begin, end


@kernel
def count_lines(text: Any) -> Any:
    """(6,) counts: vertices, texture coordinates, normals, faces, face corners, lines of words."""
    counts = np.zeros(6, np.int64)
    i = 0
    while i < len(text):
        kind, j, end = _line_kind(text, i, len(text))
        if kind == FACE:
            begin, j = next_token(text, j, end)
            while begin < j:
                counts[4] += 1
                begin, j = next_token(text, j, end)
        if kind != BLANK:
            counts[5 if kind == WORDS else kind] += 1
        i = end + 1
    return counts


@kernel
def byte_of_line(text: Any, kind: int, k: int) -> int:
    """Where the k-th line of a kind begins."""
    i = 0
    while i < len(text):
        found, _, end = _line_kind(text, i, len(text))
        k -= 1 if found == kind else 0
        if k < 0:
            break
        i = end + 1
    return i


@kernel
def _read_values(text: Any, j: int, end: int, row: Any, base: int, ties: Any, tied: int) -> tuple[int, int, int]:
    """Numbers of a line into `row`; how many there were, ties so far, and the byte of a bad token (or -1).

    Ties beyond the length of `ties` are counted but not kept: the caller enlarges it and reads again.
    """
    count = 0
    begin, j = next_token(text, j, end)
    while begin < j:
        value, status = parse_token(text, begin, j)
        if status == WORD:
            return count, tied, begin
        if count < len(row):
            row[count] = value
            if status == TIE:
                if tied < len(ties):
                    ties[tied, 0], ties[tied, 1], ties[tied, 2] = base + count, begin, j
                tied += 1
        count += 1
        begin, j = next_token(text, j, end)
    return count, tied, -1


@kernel
def _whole(text: Any, j: int, end: int) -> tuple[int, int]:
    """A signed whole number: its value (0 if there is none) and the byte after it."""
    minus = j < end and text[j] == 45
    if minus or (j < end and text[j] == 43):
        j += 1
    value = 0
    while j < end and 48 <= text[j] <= 57:
        value = min(value * 10 + (text[j] - 48), 1 << 56)
        j += 1
    return (-value if minus else value), j


@kernel
def _resolve(number: int, seen: int, total: int) -> int:
    """OBJ's index (from 1, or negative from the latest) to an index from 0; -1 if it does not exist."""
    index = seen + number if number < 0 else number - 1
    return index if 0 <= index < total and number != 0 else -1


@kernel
def _read_corner(text: Any, j: int, end: int, seen: Any, totals: Any, corner: Any) -> int:
    """The token a, a/b, a//c or a/b/c in text[j:end] into corner[3] (-2 where left out); what is wrong with it."""
    corner[1] = corner[2] = -2
    number, after = _whole(text, j, end)
    if after == j:
        return BAD_CORNER
    corner[0] = _resolve(number, seen[0], totals[0])
    for slot in range(1, 3):
        if after < end and text[after] == 47:
            begin = after + 1
            number, after = _whole(text, begin, end)
            if after > begin:
                corner[slot] = _resolve(number, seen[slot], totals[slot])
    if after < end:
        return BAD_CORNER
    if corner[0] == -1 or corner[1] == -1 or corner[2] == -1:
        return OUT_OF_RANGE
    return FINE


@kernel
def _read_face(text: Any, j: int, end: int, seen: Any, totals: Any, corners: Any, filled: int) -> tuple[int, int, int]:
    """The corners of a face into corners[filled:]; where they end, what is wrong and at which byte."""
    first = filled
    begin, after = next_token(text, j, end)
    while begin < after:
        if filled == len(corners):
            return filled, OVERFULL, begin
        problem = _read_corner(text, begin, after, seen, totals, corners[filled])
        if problem != FINE:
            return filled, problem, begin
        for slot in range(1, 3):
            if (corners[filled, slot] == -2) != (corners[first, slot] == -2):
                return filled, MIXED_CORNERS, begin
        filled += 1
        begin, after = next_token(text, after, end)
    return filled, FINE if filled - first >= 3 else FACE_TOO_SMALL, j


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
    while i < len(text):
        kind, j, end = _line_kind(text, i, len(text))
        if kind <= NORMAL:
            k = seen[kind]
            table = vertices if kind == VERTEX else textures if kind == TEXTURE else normals
            if k >= len(table) or (kind == VERTEX and k >= len(vertex_sizes)):
                return OVERFULL, i, tied
            size, tied[kind], bad = _read_values(text, j, end, table[k], k * table.shape[1], ties[kind], tied[kind])
            if bad >= 0:
                return NOT_A_NUMBER, bad, tied
            if size < (1 if kind == TEXTURE else 3):
                return TOO_FEW, i, tied
            if kind == VERTEX:
                vertex_sizes[k] = size
            seen[kind] += 1
        elif kind == FACE:
            if faces + 1 >= len(face_start):
                return OVERFULL, i, tied
            face_start[faces] = filled
            filled, problem, at = _read_face(text, j, end, seen, counts, corners, filled)
            if problem != FINE:
                return problem, at, tied
            faces += 1
        elif kind == WORDS:
            if worded == len(words):
                return OVERFULL, i, tied
            words[worded, 0], words[worded, 1] = j, faces
            worded += 1
        i = end + 1
    face_start[faces] = filled
    return FINE, 0, tied
