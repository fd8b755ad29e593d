"""The passes over an OBJ file's lines: one counts, the next fills arrays of exactly that size.

Both take lines from one function and tokens from another, so that they cannot disagree on what there is; and filling
stops (OVERFULL) rather than write past an array.
"""

from __future__ import annotations

import numpy as np

from pliant.core.topology import Floats, Ints
from pliant.io.scan import POWERS, Bytes
from pliant.native import kernels

# Kinds of line.
VERTEX, TEXTURE, NORMAL, FACE, STATEMENT, BLANK = 0, 1, 2, 3, 4, 5
# What can be wrong with one.
FINE, NOT_A_NUMBER, TOO_FEW, FACE_TOO_SMALL, BAD_CORNER, OUT_OF_RANGE, MIXED_CORNERS, OVERFULL = 0, 1, 2, 3, 4, 5, 6, 7


def count_lines(text: Bytes) -> Ints:
    """(6,) counts: vertices, texture coordinates, normals, faces, face corners, other statements."""
    counts = np.zeros(6, np.int64)
    kernels.obj_count_lines(text, counts)
    return counts


def byte_of_line(text: Bytes, kind: int, k: int) -> int:
    """Where the k-th line of a kind begins."""
    return int(kernels.obj_byte_of_line(text, kind, k))


def fill_lines(
    text: Bytes,
    counts: Ints,
    vertices: Floats,
    vertex_sizes: Ints,
    textures: Floats,
    normals: Floats,
    corners: Ints,
    face_start: Ints,
    statements: Ints,
    ties: tuple[Ints, ...],
) -> tuple[int, int, list[int]]:
    """Fill the arrays that `count_lines` sized. Returns what is wrong, at which byte, and tie counts.

    vertices (v, 6), textures (t, 3), normals (n, 3); corners (c, 3) of vertex, texture, normal index, -2 where left
    out; statements (w, 2): byte of each other statement and number of faces before it; ties[kind]: values left to
    Python. Ties beyond the length of that table are counted but not stored: the caller enlarges it and scans again.
    """
    found = np.zeros(4, np.int64)
    tables = vertices, vertex_sizes, textures, normals, corners, face_start, statements, ties
    problem = kernels.obj_fill_lines(text, POWERS, counts, tables, found)
    at, *tied = found.tolist()
    return problem, at, tied
