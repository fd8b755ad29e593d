"""Wavefront OBJ and its MTL: what artists exchange.

Read: v (with optional weight or colour), vt, vn, f of any size with positive or negative indices, o, g, s, usemtl,
mtllib; comments, CRLF, continued lines and a missing last newline. Lines and curves (l, p, curv, ...) are not surfaces
and are left out with a warning. Written: the same, in the file's own order of vertices and faces.

One compiled pass over the lines counts, the next fills arrays of exactly that size. Both take lines from one function
and tokens from another, so that they cannot disagree on what there is; and filling stops (OVERFULL) rather than write
past an array.
"""

from __future__ import annotations

import itertools
import re
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pliant.core import srgb
from pliant.core.errors import FileError, MissingFacesError, PliantWarning
from pliant.core.normals import vertex_normals
from pliant.core.shapes import Appearance, Labels, Layer, Mesh, PointCloud
from pliant.core.topology import Floats, Ints, Polygons, locked, triangulate
from pliant.io.losses import mesh_losses, warn_of_losses
from pliant.io.mtl import pictures, read_library, sibling, split_statement, write_library
from pliant.io.naming import one_line, written_names
from pliant.io.scan import POWERS, Bytes, check_finite, finish_ties, not_a_number
from pliant.io.source import Source
from pliant.native import kernels

_LABEL_OF = {"o": "object", "g": "group", "usemtl": "material", "s": "smoothing"}
_IGNORED = {"l", "p", "curv", "curv2", "surf", "deg", "vp", "cstype", "parm", "trim", "hole", "end"}


def kinds(source: Source) -> tuple[str, ...]:
    """A mesh if the file has faces, else points."""
    return ("mesh", "points") if re.search(rb"(?m)^[^\S\n]*f(?=[\s#]|\Z)", _joined(source.read())) else ("points",)


def siblings(source: Source) -> list[Source]:
    """The material libraries that the file names, and their pictures."""
    named = re.findall(rb"(?m)^[^\S\n]*mtllib[^\S\n]+([^\n]+)", _joined(source.read()))
    libraries = _libraries(source, [name.decode("utf-8", "replace").strip() for name in named])
    return list(dict.fromkeys(file for library in libraries for file in (library, *pictures(library))))


def read_mesh(source: Source) -> Mesh:
    """The file's faces as one mesh; objects, groups and materials become labels."""
    data = source.read()
    vertices, sizes, uvs, normals, corners, start, statements = _scan(source, data)
    labels, libraries = _labels(source, data, statements, len(start) - 1)
    if not len(start) - 1:
        problem = f"holds {len(vertices)} vertices and no faces; expected a mesh (read_points reads points)"
        raise MissingFacesError(source.label, problem)
    polygons = Polygons(locked(np.ascontiguousarray(corners[:, 0])), locked(start))
    points = vertices[:, :3]
    return Mesh(
        points,
        polygons,
        uvs=_layer(uvs[:, :2], corners[:, 1], np.zeros((1, 2))),
        normals=_normal_layer(points, polygons, normals, corners[:, 2]),
        labels=labels,
        appearances=_appearances(source, libraries, labels.get("material")),
        attributes=_colors(vertices, sizes),
    )


def read_points(source: Source) -> PointCloud:
    """The file's vertices, with or without faces."""
    vertices, sizes, *_ = _scan(source, source.read())
    if not len(vertices):
        raise source.error("holds no vertices")
    return PointCloud(vertices[:, :3], None, _colors(vertices, sizes))


def _colors(vertices: Floats, sizes: Ints) -> dict[str, NDArray[np.float64]]:
    """Vertex colours, if every v line has them after its coordinates."""
    return {"color": srgb.to_linear(vertices[:, 3:6])} if sizes.min() >= 6 else {}


def _scan(source: Source, data: bytes) -> tuple[Floats, Ints, Floats, Floats, Ints, Ints, list[tuple[int, int, str]]]:
    """Vertices (v, 6), values on each v line, vt, vn, corners (c, 3), face starts, and other statements.

    Of each other statement: its byte, how many faces come before it, and the line.
    """
    if b"\0" in data[:4096]:
        raise source.error("holds binary data; expected the text of an OBJ file")
    joined = _joined(data)
    text = np.frombuffer(joined, dtype=np.uint8)
    counts = count_lines(text)
    vertices, uvs, normals = (np.zeros((int(n), w)) for n, w in zip(counts[:3], (6, 3, 3), strict=True))
    sizes = np.zeros(int(counts[0]), np.int64)
    corners, start = np.zeros((int(counts[4]), 3), np.int64), np.zeros(int(counts[3]) + 1, np.int64)
    statements = np.zeros((int(counts[5]), 2), np.int64)
    for capacity in (256, None):
        ties = tuple(
            np.zeros((table.size if capacity is None else capacity, 3), np.int64) for table in (vertices, uvs, normals)
        )
        problem, at, tied = fill_lines(text, counts, vertices, sizes, uvs, normals, corners, start, statements, ties)
        if problem:
            raise _line_error(source, data, problem, at, counts)
        if all(tied[k] <= len(ties[k]) for k in range(3)):
            break
    for k, table in enumerate((vertices, uvs, normals)):
        finish_ties(text, table, ties[k][: tied[k]])
    check_finite(source, vertices[:, :3], lambda k: _line(data, byte_of_line(text, VERTEX, k)))
    ends = [joined.find(b"\n", at) for at in statements[:, 0].tolist()]
    lines = [
        (at, faces, joined[at : None if end < 0 else end].decode("utf-8", "replace"))
        for (at, faces), end in zip(statements.tolist(), ends, strict=True)
    ]
    return vertices, sizes, uvs, normals, corners, start, lines


def _joined(data: bytes) -> bytes:
    """The text with continued lines made one; every byte keeps its offset."""
    return data.replace(b"\\\r\n", b"   ").replace(b"\\\n", b"  ")


def _line(data: bytes, at: int) -> int:
    """The line of the file that a byte stands on."""
    return 1 + data.count(b"\n", 0, at)


def _line_error(source: Source, data: bytes, problem: int, at: int, counts: Ints) -> FileError:
    if problem == NOT_A_NUMBER:
        return not_a_number(source, data, at, _line(data, at))
    problems = {
        TOO_FEW: "too few numbers; expected x y z",
        FACE_TOO_SMALL: "a face has fewer than three corners",
        BAD_CORNER: "a face corner cannot be read; expected vertex, vertex/uv, vertex//normal or all three",
        OUT_OF_RANGE: f"a face refers to what the file does not have ({counts[0]} vertices, "
        f"{counts[1]} texture coordinates, {counts[2]} normals, numbered from 1)",
        MIXED_CORNERS: "some corners of a face have a texture coordinate or normal and others not",
    }
    return source.error(problems[problem], location=f"line {_line(data, at)}")


def _layer(values: Floats, index: NDArray[np.int64], missing: Floats) -> Layer | None:
    """A corner layer; corners that name no value (-2) get the `missing` one, which is added if needed."""
    absent = index < 0
    if absent.all():
        return None
    if absent.any():
        values, index = np.concatenate([values, missing]), np.where(absent, len(values), index)
    return Layer(locked(np.ascontiguousarray(values)), locked(np.ascontiguousarray(index)))


def _normal_layer(points: Floats, polygons: Polygons, values: Floats, index: NDArray[np.int64]) -> Layer | None:
    """As `_layer`; corners without a normal get the smooth one of their vertex."""
    absent = index < 0
    if absent.any() and not absent.all():
        slots, _ = triangulate(points, polygons)
        smooth = vertex_normals(points, polygons.corners[slots])
        index = np.where(absent, len(values) + polygons.corners, index)
        values = np.concatenate([values, smooth])
    return _layer(values, index, np.zeros((0, 3)))


def _labels(
    source: Source, data: bytes, statements: list[tuple[int, int, str]], faces: int
) -> tuple[dict[str, Labels], list[str]]:
    """The partitions that o, g, s and usemtl statements make, and the material libraries named."""
    changes: dict[str, list[tuple[int, str]]] = {}
    libraries: list[str] = []
    ignored: set[str] = set()
    for at, face, text in statements:
        keyword, rest = split_statement(text)
        if keyword in _LABEL_OF:
            changes.setdefault(_LABEL_OF[keyword], []).append((face, re.split(r"\s#", rest)[0].strip()))
        elif keyword == "mtllib":
            libraries.append(rest)
        elif keyword in _IGNORED:
            ignored.add(keyword)
        elif not re.fullmatch(r"[a-z_][a-z_0-9.]*", keyword, re.ASCII):
            raise source.error(
                f'"{keyword[:24]}" is not a statement of an OBJ file', location=f"line {_line(data, at)}"
            )
    if ignored:
        warnings.warn(
            f"{source.label}: left out lines or curves ({', '.join(sorted(ignored))})", PliantWarning, stacklevel=2
        )
    return {name: _partition(steps, faces) for name, steps in changes.items()}, libraries


def _partition(changes: list[tuple[int, str]], faces: int) -> Labels:
    """From (face, name) statements, each of which holds until the next."""
    if changes[0][0] > 0:
        changes = [(0, ""), *changes]
    starts = np.array([face for face, _ in changes] + [faces])
    names = list(dict.fromkeys(name for (_, name), count in zip(changes, np.diff(starts), strict=True) if count))
    number = {name: k for k, name in enumerate(names)}
    codes = np.array([number.get(name, 0) for _, name in changes], dtype=np.int64)
    return Labels(tuple(names), locked(np.repeat(codes, np.diff(starts))))


def _libraries(source: Source, names: list[str]) -> list[Source]:
    """The files of those names that are there, each once, in the order they are named last: later ones win."""
    files = (sibling(source, name) for name in dict.fromkeys(reversed(names)))
    return list(dict.fromkeys(file for file in files if file is not None))[::-1]


def _appearances(source: Source, libraries: list[str], materials: Labels | None) -> dict[str, Appearance]:
    """Materials from the MTL files that are there; one that is missing or cannot be read leaves just the names."""
    known: dict[str, Appearance] = {}
    textures: dict[Source, bytes] = {}
    for library in _libraries(source, libraries):
        try:
            known |= read_library(library, textures)
        except FileError as error:
            warnings.warn(f"{error}; its materials are left out", PliantWarning, stacklevel=2)
    names = dict.fromkeys(materials.names if materials else ())
    return {name: known.get(name, Appearance()) for name in names if name} | {
        n: a for n, a in known.items() if n not in names
    }


def write_mesh(path: Path, mesh: Mesh) -> None:
    """The mesh with its labels; materials go to a .mtl beside it, textures to a folder beside that."""
    kept = ("uvs", "normals", "labels", "appearances")
    warn_of_losses("OBJ", mesh_losses(mesh, keeps=kept, attributes=("color",)))
    library = path.with_name(f"{one_line(path.stem)}.mtl")
    lines = ["# pliant", *([f"mtllib {library.name}"] if mesh.appearances else [])]
    color = mesh.attributes.get("color")
    rows = mesh.points if color is None else np.hstack([mesh.points, srgb.from_linear(color[:, :3])])
    lines += _number_lines("v", rows)
    if mesh.uvs is not None:
        lines += _number_lines("vt", mesh.uvs.values)
    if mesh.normals is not None:
        lines += _number_lines("vn", mesh.normals.values)
    names = written_names([*mesh.appearances, *(n for label in mesh.labels.values() for n in label.names)], _word)
    lines += _face_lines(mesh, names)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if mesh.appearances:
        write_library(library, mesh.appearances, names)


def _word(name: str) -> str:
    """A name as an OBJ file can hold it: a # behind a blank begins a comment, a last backslash joins lines."""
    return re.sub(r"[\\\s]+$", "", re.sub(r"\s+#", "_#", one_line(name)))


def _number_lines(keyword: str, rows: Floats) -> list[str]:
    return [" ".join([keyword, *map(repr, row)]) for row in rows.tolist()]


def _face_lines(mesh: Mesh, written: dict[str, str]) -> list[str]:
    """f statements, with o, g, s and usemtl wherever they change."""
    columns = [(mesh.polygons.corners + 1).tolist()]
    columns += [[""] * len(columns[0])] if mesh.uvs is None else [(mesh.uvs.index + 1).tolist()]
    columns += [] if mesh.normals is None else [(mesh.normals.index + 1).tolist()]
    if mesh.uvs is None and mesh.normals is None:
        corners = [str(v) for v in columns[0]]
    else:
        corners = ["/".join(map(str, corner)) for corner in zip(*columns, strict=True)]
    offsets = mesh.polygons.offsets.tolist()
    faces = ["f " + " ".join(corners[a:b]) for a, b in itertools.pairwise(offsets)]
    statements: dict[int, list[str]] = {}
    for keyword, label in _LABEL_OF.items():
        if label in mesh.labels and len(faces):
            names, index = mesh.labels[label].names, mesh.labels[label].index
            for face in [0, *(np.flatnonzero(np.diff(index)) + 1).tolist()]:
                statements.setdefault(face, []).append(f"{keyword} {written[names[index[face]]]}".rstrip())
    if not statements:
        return faces
    return [line for k, face in enumerate(faces) for line in (*statements.get(k, ()), face)]


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
