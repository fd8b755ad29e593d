"""STL: triangles without shared vertices, binary or text.

Corners at exactly the same position become one vertex, in the order they first appear: the format stores no
connectivity.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.normals import triangle_normals, unit
from pliant.core.shapes import Mesh
from pliant.core.topology import Ints
from pliant.io.losses import mesh_losses, warn_of_losses
from pliant.io.pc2 import single_precision
from pliant.io.scan import scan_numbers
from pliant.io.source import Source
from pliant.native import kernels

_FACET = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def read_mesh(source: Source) -> Mesh:
    """All solids of the file as one mesh."""
    data = source.read()
    corners: NDArray[Any]
    count = int.from_bytes(data[80:84], "little") if len(data) >= 84 else -1
    if count >= 0 and len(data) == 84 + 50 * count:
        corners = _binary(data, count)
    elif data.lstrip()[:5].lower() == b"solid" and b"\0" not in data[:1024]:
        corners = _text(source, data)
    elif count >= 0:
        raise source.error(
            f"is {len(data):,} bytes long; its header promises {count:,} triangles, which takes {84 + 50 * count:,}"
        )
    else:
        raise source.error('is neither a binary STL (84 bytes or more) nor text that starts with "solid"')
    if not len(corners):
        raise source.error("holds no triangles")
    finite = np.isfinite(corners).all(axis=1)
    if not finite.all():
        k = int(np.argmin(finite))
        raise source.error(f"a corner is {corners[k].tolist()}; expected finite numbers", location=f"triangle {k // 3}")
    first, index = merge_rows(_keys(corners))
    return Mesh(corners[first].astype(np.float64), index.reshape(-1, 3))


def _keys(corners: NDArray[Any]) -> NDArray[np.uint32]:
    """Bit patterns by which equal corners are found; -0.0 and 0.0 are equal."""
    return np.ascontiguousarray(corners + corners.dtype.type(0)).view(np.uint32).reshape(len(corners), -1)


def _binary(data: bytes, count: int) -> NDArray[np.float32]:
    facets = np.frombuffer(data, _FACET, count, 84)
    return np.ascontiguousarray(facets["corners"]).reshape(-1, 3)


def _text(source: Source, data: bytes) -> NDArray[np.float64]:
    lines = data.lower().splitlines()
    kept = [line.split(b"vertex", 1)[1] if line.lstrip().startswith(b"vertex") else b"" for line in lines]
    table = scan_numbers(source, b"\n".join(kept))  # other lines stay blank, so line numbers hold
    if len(table) % 3:
        raise source.error(f"ends inside a triangle: {len(table)} corners")
    return table.block(source, 0, len(table), 3, "corners")[:, :3]


def write_mesh(path: Path, mesh: Mesh) -> None:
    """Binary, as triangles in single precision."""
    points = single_precision(mesh.points)
    warn_of_losses("STL", mesh_losses(mesh))
    facets = np.zeros(len(mesh.triangles), _FACET)
    facets["normal"] = unit(triangle_normals(mesh.points, mesh.triangles))
    facets["corners"] = points[mesh.triangles]
    header = b"pliant".ljust(80, b" ")
    path.write_bytes(header + len(facets).to_bytes(4, "little") + facets.tobytes())


def merge_rows(keys: NDArray[np.uint32]) -> tuple[Ints, Ints]:
    """For uint32 rows (n, k): the rows that appear first, in order, and for every row the number of its equal."""
    count = len(keys)
    slots = np.empty(max(16, 1 << (2 * count - 1).bit_length()), dtype=np.int64)  # at least twice as many as rows
    first, index = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    found = kernels.stl_merge_rows(keys, slots, first, index)
    return first[:found].copy(), index
