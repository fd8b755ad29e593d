"""Medit .mesh, as text: vertices, tetrahedra, and the triangles and quads beside them.

Sections are a keyword, a count and that many rows, each ending in a reference number. Sections that pliant has no use
for (edges, corners, ridges, normals, ...) are passed over.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from pliant.core.shapes import Mesh, TetMesh
from pliant.core.topology import Floats, Ints, Polygons
from pliant.io.losses import mesh_losses, warn_of_losses
from pliant.io.scan import NumberTable, check_finite, checked_indices, count_of, not_a_number, scan_numbers
from pliant.io.source import Source

_WIDTH = {"triangles": 3, "quadrilaterals": 4, "tetrahedra": 4}


def _sections(source: Source) -> tuple[Floats, dict[str, Ints]]:
    """Points, and the index tables of the sections that pliant knows."""
    data = source.read()
    if not re.match(rb"(\s|#[^\n]*\n)*MeshVersionFormatted\b", data):
        raise source.error(f'starts with {data[:16]!r}; a Medit file starts with "MeshVersionFormatted"')
    points: Floats | None = None
    tables: dict[str, Ints] = {}
    at, line = 0, 1
    while match := re.compile(rb'(?:\s|#[^\n]*\n|"[^"\n]*")*([A-Za-z]\w*)').match(data, at):
        keyword = match.group(1).decode().lower()
        if keyword == "end":
            break
        line += match.group().count(b"\n")
        table = scan_numbers(source, data, match.end(), stop_at_text=True, first_line=line)
        if keyword == "dimension" and (not len(table.values) or table.values[0] != 3):
            raise source.error("expected Dimension 3", location=f"line {table.stopped_line}")
        if keyword == "vertices":
            points = _rows(source, table, keyword, 3)[:, :3]
            check_finite(source, points, lambda k, table=table: table.line[1 + k])
        elif keyword in _WIDTH:
            if points is None:
                raise source.error(f"{keyword} come before the vertices")
            tables[keyword] = _elements(source, table, keyword, len(points))
        if table.stopped < 0:
            break
        at, line = table.stopped, table.stopped_line
    else:
        raise not_a_number(source, data, at, line)
    if points is None:
        raise source.error("holds no vertices")
    return points, tables


def _rows(source: Source, table: NumberTable, keyword: str, width: int) -> Floats:
    """The rows of a section whose count stands on a row of its own."""
    count = count_of(table.values[0]) if len(table) and table.sizes[0] == 1 else None
    if count is None:
        raise source.error(f"{keyword} are not followed by their number", location=f"line {table.stopped_line}")
    return table.block(source, 1, count, width, keyword)


def _elements(source: Source, table: NumberTable, keyword: str, vertices: int) -> Ints:
    width = _WIDTH[keyword]
    rows = _rows(source, table, keyword, width)[:, :width]
    what = f"a row of {keyword}"
    return checked_indices(source, rows, vertices, lambda slot: table.line[1 + slot // width], what, first=1)


def kinds(source: Source) -> tuple[str, ...]:
    """Tetrahedra where there are any, and the surface."""
    return ("tets", "mesh") if re.search(rb"(?m)^[^\S\n]*Tetrahedra\b", source.read()) else ("mesh",)


def read_tets(source: Source) -> TetMesh:
    """The tetrahedra, with the file's triangles."""
    points, tables = _sections(source)
    if not len(tables.get("tetrahedra", ())):
        raise source.error("holds no tetrahedra")
    return TetMesh(points, tables["tetrahedra"], tables.get("triangles", np.zeros((0, 3), np.int64)))


def read_mesh(source: Source) -> Mesh:
    """The file's triangles and quads over all its points; where it has none, the boundary of its tetrahedra."""
    points, tables = _sections(source)
    faces = [*tables.get("triangles", ()), *tables.get("quadrilaterals", ())]
    if faces:
        return Mesh(points, Polygons.of(faces))
    if not len(tables.get("tetrahedra", ())):
        raise source.error("holds no triangles, quadrilaterals or tetrahedra")
    return TetMesh(points, tables["tetrahedra"]).surface


def write_tets(path: Path, mesh: TetMesh) -> None:
    """Vertices, triangles (the boundary if none were given) and tetrahedra."""
    warn_of_losses("Medit", [f'attribute "{name}"' for name in mesh.attributes])
    triangles = mesh.triangles if len(mesh.triangles) else mesh.surface.triangles
    _write(path, mesh.points, [("Triangles", triangles), ("Tetrahedra", mesh.tets)])


def write_mesh(path: Path, mesh: Mesh) -> None:
    """Vertices, triangles and quads; larger polygons as their triangles."""
    warn_of_losses("Medit", mesh_losses(mesh))
    sizes = mesh.polygons.sizes
    quads = mesh.polygons.take(sizes == 4).corners.reshape(-1, 4)
    triangles = mesh.triangles[sizes[mesh.triangle_polygon] != 4]
    _write(path, mesh.points, [("Triangles", triangles), ("Quadrilaterals", quads)])


def _write(path: Path, points: Floats, tables: list[tuple[str, Ints]]) -> None:
    lines = ["MeshVersionFormatted 2", "# pliant", "Dimension 3", "Vertices", str(len(points))]
    lines += [f"{x!r} {y!r} {z!r} 0" for x, y, z in points.tolist()]
    for keyword, table in tables:
        if len(table):
            lines += [keyword, str(len(table)), *(" ".join(map(str, row)) + " 0" for row in (table + 1).tolist())]
    path.write_text("\n".join([*lines, "End"]) + "\n", encoding="ascii")
