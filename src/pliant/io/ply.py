"""PLY: ascii and both binaries, meshes, point clouds and Gaussian splats.

A header names elements and their properties, then rows follow. A text body is read into doubles first and is then
a binary body whose every value is a double, so that one code serves all three encodings. Vertex properties with a
meaning (x y z, nx ny nz, red green blue alpha, s t) are recognised, every other one is kept by name, so that a
splat's ``f_dc_0``, ``scale_0``, ``rot_0`` come back as they were.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core import srgb
from pliant.core.errors import MissingFacesError
from pliant.core.shapes import Layer, Mesh, PointCloud
from pliant.core.topology import Floats, Polygons, locked
from pliant.core.validation import not_finite
from pliant.io.losses import mesh_losses, warn_of_losses
from pliant.io.naming import one_line, unique_name
from pliant.io.scan import scan_numbers
from pliant.io.source import Source
from pliant.native import kernels

FLOAT64 = 9
"""Count type of text files, whose numbers have all become doubles."""
_TYPES = {
    "char": "i1", "int8": "i1", "uchar": "u1", "uint8": "u1", "short": "i2", "int16": "i2", "ushort": "u2",
    "uint16": "u2", "int": "i4", "int32": "i4", "uint": "u4", "uint32": "u4", "float": "f4", "float32": "f4",
    "double": "f8", "float64": "f8",
}  # fmt: skip
_FACE_LISTS = ("vertex_indices", "vertex_index")
_UV_NAMES = (("s", "t"), ("u", "v"), ("texture_u", "texture_v"))


@dataclass(frozen=True)
class _Property:
    name: str
    type: str
    count_type: str = ""
    """Type of the length of a list; empty for a single value."""


@dataclass(frozen=True)
class _Element:
    name: str
    rows: int
    properties: list[_Property]

    def index(self, names: tuple[str, ...]) -> int:
        """The position of the first property with one of these names; -1 if there is none."""
        return next((k for k, p in enumerate(self.properties) if p.name in names), -1)


@dataclass(frozen=True)
class _Lists:
    """Ragged lists as flat values."""

    values: NDArray[Any]
    counts: NDArray[np.int64]


@dataclass
class _Body:
    """The bytes after the header, read front to back."""

    source: Source
    data: NDArray[np.uint8]
    at: int
    order: str
    """"<" or ">" for the binaries, "" for text that has become doubles."""

    def dtype(self, code: str) -> np.dtype[Any]:
        return np.dtype(f"{self.order}{code}") if self.order else np.dtype("f8")

    def table(self, element: _Element) -> dict[str, NDArray[Any]]:
        """Columns of an element without lists."""
        if not element.properties:
            return {}
        row = np.dtype([(f"{k}", self.dtype(p.type)) for k, p in enumerate(element.properties)])
        self.need(element, element.rows * row.itemsize)
        rows = np.frombuffer(self.data, row, element.rows, self.at)
        self.at += element.rows * row.itemsize
        return {p.name: rows[f"{k}"] for k, p in enumerate(element.properties)}

    def need(self, element: _Element, size: int) -> None:
        if size > len(self.data) - self.at:
            raise self.source.error(f"ends inside its {element.rows} {element.name} rows: the file is cut off")

    def lists(self, element: _Element, wanted: int) -> _Lists:
        """The wanted list property of every row; the element's other properties are passed over."""
        return self._equal_lists(element, wanted) or self._ragged_lists(element, wanted)

    def _equal_lists(self, element: _Element, wanted: int) -> _Lists | None:
        """The fast path, for lists that all have the length of the first row's."""
        if not element.rows:
            return _Lists(np.zeros(0), np.zeros(0, np.int64))
        fields, at = [], self.at
        for k, p in enumerate(element.properties):
            count_type = self.dtype(p.count_type) if p.count_type else None
            length = 1
            if count_type is not None:
                if at + count_type.itemsize > len(self.data):
                    return None
                length = int(np.frombuffer(self.data, count_type, 1, at)[0])
                if not 0 <= length <= len(self.data):
                    return None
                fields.append((f"n{k}", count_type, (1,)))
                at += count_type.itemsize
            fields.append((f"v{k}", self.dtype(p.type), (length,)))
            at += length * self.dtype(p.type).itemsize
        size = at - self.at
        if size * element.rows > len(self.data) - self.at:
            return None
        rows = np.frombuffer(self.data, np.dtype(fields), element.rows, self.at)
        for k, p in enumerate(element.properties):
            if p.count_type and (rows[f"n{k}"] != rows[f"n{k}"][0]).any():
                return None
        self.at += size * element.rows
        values = rows[f"v{wanted}"]
        return _Lists(values.reshape(-1), np.full(element.rows, values.shape[1], np.int64))

    def _ragged_lists(self, element: _Element, wanted: int) -> _Lists:
        """The walk over rows that differ in length (mixed triangles, quads and n-gons)."""
        is_list = np.array([bool(p.count_type) for p in element.properties])
        codes = np.array(
            [
                0 if not p.count_type else FLOAT64 if not self.order else np.dtype(p.count_type).itemsize
                for p in element.properties
            ],
            dtype=np.int64,
        )
        sizes = np.array([self.dtype(p.type).itemsize for p in element.properties], dtype=np.int64)
        smallest = np.where(is_list, np.where(codes == FLOAT64, 8, codes), sizes).sum()
        self.need(element, int(smallest) * element.rows)
        begins, counts = np.empty(element.rows, np.int64), np.empty(element.rows, np.int64)
        ended = np.array([self.at], np.int64)
        properties, big = (is_list, codes, sizes), self.order == ">"
        whole = kernels.ply_walk_rows(self.data, self.at, properties, wanted, big, begins, counts, ended)
        self.at = int(ended[0])
        if whole < element.rows:
            raise self.source.error(f"ends inside {element.name} row {whole} of {element.rows}: the file is cut off")
        size = int(sizes[wanted])
        inner = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        first = np.repeat(begins, counts) + inner * size
        packed = self.data[first[:, None] + np.arange(size)]
        return _Lists(packed.reshape(-1).view(self.dtype(element.properties[wanted].type)), counts)


def _header(source: Source, data: bytes) -> tuple[list[_Element], str, int]:
    """Elements, encoding and the byte after the header."""
    if data[:3] != b"ply":
        raise source.error(f'starts with {data[:8]!r}; a PLY file starts with "ply"')
    last_line = re.search(rb"(?m)^[ \t]*end_header\b", data)
    if last_line is None:
        raise source.error("the header has no end_header line: the file is cut off or is not a PLY")
    end = last_line.start()
    body = data.find(b"\n", last_line.end()) + 1 or len(data)
    elements: list[_Element] = []
    encoding = ""
    for number, line in enumerate(data[:end].decode("utf-8", "replace").split("\n"), 1):
        tokens = line.split()
        try:
            if tokens[:1] == ["format"]:
                encoding = tokens[1]
            elif tokens[:1] == ["element"]:
                elements.append(_Element(tokens[1], _rows(tokens[2]), []))
            elif tokens[:1] == ["property"]:
                elements[-1].properties.append(_property(tokens[1:]))
        except (IndexError, KeyError, ValueError) as error:
            raise source.error(f'cannot make sense of "{line.strip()[:60]}"', location=f"line {number}") from error
    if encoding not in ("ascii", "binary_little_endian", "binary_big_endian"):
        raise source.error(f'format is "{encoding}"; expected ascii, binary_little_endian or binary_big_endian')
    return elements, encoding, body


def _rows(word: str) -> int:
    if not re.fullmatch("[0-9]{1,18}", word):
        raise ValueError
    return int(word)


def _property(tokens: list[str]) -> _Property:
    if tokens[0] == "list":
        count_type = _TYPES[tokens[1]]
        if count_type[0] == "f":
            raise ValueError
        return _Property(tokens[3], _TYPES[tokens[2]], count_type)
    return _Property(tokens[1], _TYPES[tokens[0]])


def _read(source: Source) -> tuple[dict[str, NDArray[Any]], _Lists | None, _Lists | None]:
    """Vertex columns, face lists and wedge texture coordinates (None where the file has none)."""
    data = source.read()
    elements, encoding, start = _header(source, data)
    if encoding == "ascii":
        values = scan_numbers(source, data, start).values
        body = _Body(source, np.ascontiguousarray(values).view(np.uint8), 0, "")
    else:
        order = "<" if encoding == "binary_little_endian" else ">"
        body = _Body(source, np.frombuffer(data, np.uint8), start, order)
    vertices: dict[str, NDArray[Any]] = {}
    faces = wedges = None
    for element in elements:
        face_list = element.index(_FACE_LISTS)
        if element.name == "vertex" and not any(p.count_type for p in element.properties):
            vertices = body.table(element)
            if not body.order:  # text: give the columns the types the header promised
                vertices = {p.name: _typed(vertices[p.name], p.type) for p in element.properties}
        elif element.name == "face" and face_list >= 0 and element.properties[face_list].count_type:
            at = body.at
            faces = body.lists(element, face_list)
            wedge_list = element.index(("texcoord",))
            if wedge_list >= 0 and element.properties[wedge_list].count_type:
                body.at = at
                wedges = body.lists(element, wedge_list)
        elif element.name == "tristrips":
            raise source.error("stores triangle strips; save it as a triangle mesh")
        elif any(p.count_type for p in element.properties):
            body.lists(element, next(k for k, p in enumerate(element.properties) if p.count_type))
        else:
            body.table(element)
    if not {"x", "y", "z"} <= set(vertices):
        raise source.error("has no vertex element with x, y and z")
    return vertices, faces, wedges


def _typed(values: Floats, code: str) -> NDArray[Any]:
    """Text values as the header's type; floats stay doubles, since text may hold more digits than it promised."""
    if code[0] == "f":
        return values
    info = np.iinfo(code)
    return np.clip(np.nan_to_num(values), info.min, info.max).astype(code)


def kinds(source: Source) -> tuple[str, ...]:
    """A mesh if the file has faces, else a point cloud."""
    elements, _, _ = _header(source, source.read())
    has_faces = any(e.name == "face" and e.rows and e.index(_FACE_LISTS) >= 0 for e in elements)
    return ("mesh", "points") if has_faces else ("points",)


def read_mesh(source: Source) -> Mesh:
    """The file's faces with all that is known of their vertices."""
    vertices, faces, wedges = _read(source)
    points = _points(source, vertices)
    if faces is None or not len(faces.counts):
        problem = f"holds {len(points)} points and no faces; expected a mesh (read_points reads points)"
        raise MissingFacesError(source.label, problem)
    polygons = _polygons(source, faces, len(points))
    normals = _columns(vertices, ("nx", "ny", "nz"))
    uvs = next((uv for uv in (_columns(vertices, names) for names in _UV_NAMES) if uv is not None), None)
    uv_layer = None if uvs is None else Layer(locked(uvs), polygons.corners)
    if uv_layer is None and wedges is not None and np.array_equal(wedges.counts, 2 * polygons.sizes):
        corner_uvs = wedges.values.astype(np.float64).reshape(-1, 2)
        uv_layer = Layer(locked(corner_uvs), locked(np.arange(len(corner_uvs))))
    return Mesh(
        points,
        polygons,
        uvs=uv_layer,
        normals=None if normals is None else Layer(locked(normals), polygons.corners),
        attributes=_attributes(vertices, uvs is not None),
    )


def read_points(source: Source) -> PointCloud:
    """The file's vertices, with every property they have."""
    vertices, _, _ = _read(source)
    points = _points(source, vertices)
    if not len(points):
        raise source.error("holds no points")
    return PointCloud(points, _columns(vertices, ("nx", "ny", "nz")), _attributes(vertices, False))


def _points(source: Source, vertices: dict[str, NDArray[Any]]) -> Floats:
    points = np.stack([vertices[name].astype(np.float64) for name in "xyz"], axis=1)
    found = not_finite(points, "vertex")
    if found is not None:
        raise source.error(found[1])
    return points


def _polygons(source: Source, faces: _Lists, count: int) -> Polygons:
    corners = faces.values.astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(faces.counts)]).astype(np.int64)
    bad = (corners < 0) | (corners >= count)
    if bad.any():
        face = int(np.searchsorted(offsets, int(np.argmax(bad)), side="right")) - 1
        raise source.error(
            f"refers to vertex {corners[np.argmax(bad)]}; the file has {count}, numbered from 0",
            location=f"face {face}",
        )
    if faces.counts.min() < 3:
        face = int(np.argmin(faces.counts))
        raise source.error(f"has {faces.counts[face]} corners; expected three or more", location=f"face {face}")
    return Polygons(locked(corners), locked(offsets))


def _columns(vertices: dict[str, NDArray[Any]], names: tuple[str, ...]) -> Floats | None:
    if not set(names) <= set(vertices):
        return None
    return np.stack([vertices[name].astype(np.float64) for name in names], axis=1)


def _attributes(vertices: dict[str, NDArray[Any]], uvs: bool) -> dict[str, NDArray[Any]]:
    """Colours as linear "color", and every property without a meaning of its own, as native-endian columns."""
    taken = {"x", "y", "z"} | ({n for pair in _UV_NAMES for n in pair} if uvs else set())
    taken |= {"nx", "ny", "nz"} if {"nx", "ny", "nz"} <= set(vertices) else set()
    attributes: dict[str, NDArray[Any]] = {}
    channels = [name for name in ("red", "green", "blue", "alpha") if name in vertices]
    if channels[:3] == ["red", "green", "blue"]:
        attributes["color"] = srgb.to_linear(np.stack([vertices[name] for name in channels], axis=1))
        taken |= set(channels)
    names = {"color"}  # a property of that name is not the colours
    for name, column in vertices.items():
        if name not in taken:
            attributes[unique_name(name, names)] = column.astype(column.dtype.newbyteorder("="))
    return attributes


def write_mesh(path: Path, mesh: Mesh) -> None:
    """Binary little-endian, with normals and colours; UVs on vertices where each has one, else on face corners."""
    count = len(mesh.points)
    corners = mesh.polygons.corners
    normals = None if mesh.normals is None else mesh.normals.per_vertex(corners, count)
    uvs = None if mesh.uvs is None else mesh.uvs.per_vertex(corners, count)
    columns, dropped = _vertex_columns(mesh.points, normals, uvs, mesh.attributes)
    hard_edges = mesh.normals is not None and normals is None
    lost = mesh_losses(mesh, keeps=("uvs", "normals"), attributes=mesh.attributes)
    warn_of_losses("PLY", [*(["normals with hard edges"] if hard_edges else []), *lost, *dropped])
    wedges = mesh.uvs.at_corners if mesh.uvs is not None and uvs is None else None
    count_type = "uchar" if mesh.polygons.sizes.max(initial=0) < (256 if wedges is None else 128) else "int"
    header = [f"element face {len(mesh.polygons)}", f"property list {count_type} int vertex_indices"]
    header += [] if wedges is None else [f"property list {count_type} double texcoord"]
    path.write_bytes(_vertex_bytes(columns, count, header) + _face_bytes(mesh.polygons, wedges, _TYPES[count_type]))


def write_points(path: Path, cloud: PointCloud) -> None:
    """Binary little-endian, with every attribute."""
    columns, dropped = _vertex_columns(cloud.points, cloud.normals, None, cloud.attributes)
    warn_of_losses("PLY", dropped)
    path.write_bytes(_vertex_bytes(columns, len(cloud.points), []))


def _compact(values: NDArray[Any]) -> NDArray[Any]:
    """As float32 where that loses nothing, so that a file of floats stays one."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return single if values.dtype == np.float64 and np.array_equal(values, single) else values


def _vertex_columns(
    points: Floats, normals: Floats | None, uvs: Floats | None, attributes: Mapping[str, NDArray[Any]]
) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """Columns by property name, and the names of attributes that no column can store.

    A table of k columns is written as name_0, name_1, ...; an attribute whose name has a meaning of its own in this
    file, or is that of another one, gets a number behind it.
    """
    columns = dict(zip("xyz", _compact(points).T, strict=True))
    if normals is not None:
        columns |= zip(("nx", "ny", "nz"), _compact(normals).T, strict=True)
    if uvs is not None:
        columns |= {"s": _compact(uvs[:, 0]), "t": _compact(uvs[:, 1])}
    color = attributes.get("color")
    if color is not None:
        columns |= zip(("red", "green", "blue", "alpha"), srgb.to_bytes(color).T, strict=False)
    taken = set(columns)
    dropped = []
    for name, values in attributes.items():
        if name == "color":
            continue
        if values.dtype.kind not in "biuf":
            dropped.append(f'attribute "{name}" of {values.dtype}')
            continue
        word = re.sub(r"\s+", "_", one_line(name)) or "unnamed"
        table = values[:, None] if values.ndim == 1 else values.reshape(len(values), -1)
        tokens = [word] if values.ndim == 1 else [f"{word}_{k}" for k in range(table.shape[1])]
        columns |= {unique_name(w, taken): _storable(table[:, k]) for k, w in enumerate(tokens)}
    return columns, dropped


def _storable(values: NDArray[Any]) -> NDArray[Any]:
    """In the nearest type that PLY has: it knows no halves, no truth values and no integers of eight bytes."""
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind == "b":
        return values.astype(np.uint8)
    if kind == "f":
        return values.astype(np.float32 if size < 4 else np.float64) if size not in (4, 8) else values
    if size < 8:
        return values
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    fitting = (t for t in (np.int32, np.uint32) if np.iinfo(t).min <= low and high <= np.iinfo(t).max)
    return values.astype(next(fitting, np.float64))


def _vertex_bytes(columns: Mapping[str, NDArray[Any]], count: int, face_header: list[str]) -> bytes:
    tokens = {code: word for word, code in reversed(_TYPES.items())}
    row = np.dtype([(name, values.dtype.newbyteorder("<")) for name, values in columns.items()])
    rows = np.empty(count, row)
    for name, values in columns.items():
        rows[name] = values
    lines = ["ply", "format binary_little_endian 1.0", "comment pliant", f"element vertex {count}"]
    lines += [f"property {tokens[f'{v.dtype.kind}{v.dtype.itemsize}']} {name}" for name, v in columns.items()]
    return ("\n".join([*lines, *face_header, "end_header"]) + "\n").encode() + rows.tobytes()


def _face_bytes(polygons: Polygons, wedges: Floats | None, count_type: str) -> bytes:
    """Rows of (count, corners...) and, with wedge UVs, (2 count, u, v, ...): one batch for each polygon size."""
    rows: list[bytes] = []
    breaks = np.flatnonzero(np.diff(polygons.sizes)) + 1
    for batch in np.split(np.arange(len(polygons)), breaks):
        if not len(batch):
            continue
        size = int(polygons.sizes[batch[0]])
        slots = slice(int(polygons.offsets[batch[0]]), int(polygons.offsets[batch[-1] + 1]))
        fields: list[Any] = [("n", f"<{count_type}"), ("v", "<i4", (size,))]
        fields += [] if wedges is None else [("m", f"<{count_type}"), ("t", "<f8", (2 * size,))]
        table = np.empty(len(batch), np.dtype(fields))
        table["n"] = size
        table["v"] = polygons.corners[slots].reshape(-1, size)
        if wedges is not None:
            table["m"] = 2 * size
            table["t"] = wedges[slots].reshape(-1, 2 * size)
        rows.append(table.tobytes())
    return b"".join(rows)
