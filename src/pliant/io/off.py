"""OFF and its variants with vertex colours (COFF), normals (NOFF) and texture coordinates (STOFF), as text."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from pliant.core import srgb
from pliant.core.shapes import Layer, Mesh
from pliant.core.topology import Floats, Polygons, locked
from pliant.io.losses import mesh_losses, warn_of_losses
from pliant.io.scan import NumberTable, check_finite, checked_indices, count_of, scan_numbers
from pliant.io.source import Source

_HEADER = re.compile(rb"(?:#[^\n]*\n|\s)*(ST)?(C)?(N)?(4)?(n)?OFF\b[ \t]*(BINARY)?")


def read_mesh(source: Source) -> Mesh:
    """The file's polygons, with what its header letters promise of each vertex."""
    data = source.read()
    header = _HEADER.match(data)
    if header is None:
        raise source.error(f'starts with {data[:8]!r}; an OFF file starts with "OFF", "COFF" or the like')
    texture, color, normal, four, n_dimensional, binary = header.groups()
    if four or n_dimensional or binary:
        raise source.error(f"is of the kind {header.group().strip().decode()}; expected text with three coordinates")
    table = scan_numbers(source, data, header.end())
    counts = [count_of(value) for value in table.row(0)[:2].tolist()] if len(table) else []
    if len(counts) < 2 or counts[0] is None or counts[1] is None:
        raise source.error("has no line with the numbers of vertices and faces")
    vertices, faces = counts[0], counts[1]
    rows = table.block(source, 1, vertices, 3, "vertices")
    if not faces or not vertices:
        raise source.error(f"holds {vertices} vertices and {faces} faces; expected a mesh")
    check_finite(source, rows[:, :3], lambda k: table.line[1 + k])
    polygons = _polygons(source, table, 1 + vertices, faces, vertices)
    rest = rows[:, 3:]
    normals, rest = (rest[:, :3], rest[:, 3:]) if normal and rest.shape[1] >= 3 else (None, rest)
    colors, rest = _colors(rest, 2 if texture else 0) if color else (None, rest)
    uvs = rest[:, :2] if texture and rest.shape[1] >= 2 else None
    return Mesh(
        rows[:, :3],
        polygons,
        uvs=None if uvs is None else Layer(locked(uvs), polygons.corners),
        normals=None if normals is None else Layer(locked(normals), polygons.corners),
        attributes={} if colors is None else {"color": colors},
    )


def _polygons(source: Source, table: NumberTable, first: int, faces: int, vertices: int) -> Polygons:
    """Face rows: a count, that many vertices, and colours which are passed over."""
    if len(table) < first + faces:
        raise source.error(f"ends after {max(len(table) - first, 0)} of {faces} faces")
    start = table.start[first : first + faces]
    sizes = table.values[start]
    available = table.sizes[first : first + faces] - 1
    bad = ~((sizes >= 3) & (sizes <= available) & (sizes == np.floor(sizes)))
    if bad.any():
        k = int(np.argmax(bad))
        raise source.error(
            f"a face promises {sizes[k]:g} corners and {available[k]} numbers follow; expected three or more",
            location=f"line {table.line[first + k]}",
        )
    counts = sizes.astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    slots = np.repeat(start + 1 - offsets[:-1], counts) + np.arange(offsets[-1])
    corners = checked_indices(source, table.values[slots], vertices, lambda k: table.line_of(int(slots[k])))
    return Polygons(locked(corners), locked(offsets))


def _colors(values: Floats, reserved: int) -> tuple[Floats | None, Floats]:
    """Colours at the front of the remaining columns, leaving `reserved` at the end; fractions or 0 to 255."""
    width = min(values.shape[1] - reserved, 4)
    if width < 3:
        return None, values
    chosen = values[:, :width]
    if chosen.max(initial=0, where=np.isfinite(chosen)) > 1:
        chosen = np.where(np.isfinite(chosen), np.floor(chosen), np.nan) / 255
    return srgb.to_linear(chosen), values[:, width:]


def write_mesh(path: Path, mesh: Mesh) -> None:
    """Text; with vertex colours as COFF."""
    warn_of_losses("OFF", mesh_losses(mesh, attributes=("color",)))
    color = mesh.attributes.get("color")
    lines = ["OFF" if color is None else "COFF", "# pliant", f"{len(mesh.points)} {len(mesh.polygons)} 0"]
    if color is None:
        lines += [" ".join(map(repr, point)) for point in mesh.points.tolist()]
    else:
        opaque = np.ones((len(color), 4))
        opaque[:, : color.shape[1]] = color
        rows = zip(mesh.points.tolist(), srgb.to_bytes(opaque).tolist(), strict=True)
        lines += [" ".join(map(repr, [*point, *rgba])) for point, rgba in rows]
    lines += [" ".join(map(str, [len(polygon), *polygon.tolist()])) for polygon in mesh.polygons]
    path.write_text("\n".join(lines) + "\n", encoding="ascii")
