"""Meshes of other libraries: ``(V, F)`` arrays, trimesh, PyVista, meshio.

    pliant.build_cage((V, F))                # every public function that takes a mesh takes these, too
    pliant.Mesh.from_trimesh(trimesh.load("bunny.ply"))
    mesh.to_pyvista().plot()

None of the libraries is imported to read its objects, which are told by the attributes that they have. Points, faces,
UVs, colours and values per vertex are carried over; what pliant has no place for (scenes, cell data) is not.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.core import srgb
from pliant.core.errors import InputError, MissingExtraError
from pliant.core.shapes import Layer, Mesh, PointCloud, Shape, TetMesh
from pliant.core.signatures import P, R
from pliant.core.topology import Floats, Ints, Polygons
from pliant.core.values import as_array

MESH_FORMS = "(V, F) arrays, or a mesh of trimesh, PyVista or meshio"
"""What is taken in a mesh's place, for messages."""
FACE_CELLS = ("triangle", "quad", "polygon")
VTK_CELLS = {5: "triangle", 9: "quad", 10: "tetra"}
"""Their meshio names, by VTK's numbers."""


def takes_meshes(*names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Some arguments of a function may be meshes of other libraries."""

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        positions = {name: k for k, name in enumerate(inspect.signature(function).parameters)}

        @wraps(function)
        def converted(*arguments: P.args, **options: P.kwargs) -> R:
            given: list[Any] = list(arguments)
            for name in names:
                if name in options:
                    options[name] = as_shape(options[name])
                elif positions[name] < len(given):
                    given[positions[name]] = as_shape(given[positions[name]])
            return function(*given, **options)

        return converted

    return decorated


def as_shape(value: Any) -> Any:
    """What another library calls a mesh, as a `Mesh`, `TetMesh` or `PointCloud`; anything else as it is."""
    if _is_pair(value):
        return Mesh(*value)
    for kind, convert in ((_is_meshio, from_meshio), (_is_pyvista, from_pyvista), (_is_trimesh, from_trimesh)):
        if kind(value):
            return convert(value)
    return value


def _is_pair(value: Any) -> bool:
    """Whether it is (V, F): points beside whole numbers, or beside lists of them."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        return False
    points, faces = value
    if isinstance(faces, Polygons):
        return True
    if not isinstance(points, np.ndarray) or points.ndim != 2 or points.shape[1:] != (3,):
        return False
    if isinstance(faces, np.ndarray):
        return faces.ndim == 2 and np.issubdtype(faces.dtype, np.integer)
    return isinstance(faces, (list, tuple)) and all(
        isinstance(row, (list, tuple)) or (isinstance(row, np.ndarray) and row.ndim == 1) for row in faces
    )


def _is_meshio(value: Any) -> bool:
    return hasattr(value, "points") and hasattr(value, "cells_dict") and hasattr(value, "point_data") and (
        isinstance(getattr(value, "cells", None), list)
    )  # fmt: skip


def _is_pyvista(value: Any) -> bool:
    return hasattr(value, "points") and hasattr(value, "point_data") and hasattr(value, "n_cells")


def _is_trimesh(value: Any) -> bool:
    return hasattr(value, "vertices") and (hasattr(value, "faces") or hasattr(value, "colors"))


# From other libraries


def from_trimesh(mesh: Any) -> Mesh | PointCloud:
    """Of a `trimesh.Trimesh` with its UVs or vertex colours, or of a `trimesh.PointCloud`."""
    points = np.asarray(mesh.vertices)
    if not hasattr(mesh, "faces"):
        return PointCloud(points, attributes=_bytes_as_colors(getattr(mesh, "colors", None), len(points)))
    visual, faces = getattr(mesh, "visual", None), np.asarray(mesh.faces)
    painted = getattr(visual, "kind", None) == "vertex"
    attributes = _bytes_as_colors(visual.vertex_colors if visual is not None and painted else None, len(points))
    attributes |= _vertex_values(getattr(mesh, "vertex_attributes", {}), len(points))
    return Mesh(points, faces, uvs=_layer(getattr(visual, "uv", None), faces.reshape(-1)), attributes=attributes)


def from_pyvista(mesh: Any) -> Shape:
    """Of a `pyvista.PolyData` or `pyvista.UnstructuredGrid`, with its values at points."""
    points, data = np.asarray(mesh.points, dtype=np.float64), _vertex_values(mesh.point_data, mesh.n_points)
    if not hasattr(mesh, "faces"):
        cells = {VTK_CELLS.get(int(code), f"VTK's {code}"): np.asarray(rows) for code, rows in mesh.cells_dict.items()}
        return _of_cells(points, cells.items(), data)
    if not mesh.n_cells or not np.asarray(mesh.faces).size:
        return PointCloud(points, attributes=data)
    faces = unpadded(np.asarray(mesh.faces))
    uvs = getattr(mesh, "active_texture_coordinates", None)
    return Mesh(points, faces, uvs=_layer(uvs, faces.corners), attributes=data)


def from_meshio(mesh: Any) -> Shape:
    """Of a `meshio.Mesh`: tetrahedra, else triangles, quads and polygons, else points; with its values at points."""
    points = np.asarray(mesh.points, dtype=np.float64)
    if points.ndim == 2 and points.shape[1] == 2:  # plane meshes
        points = np.concatenate([points, np.zeros((len(points), 1))], axis=1)
    return _of_cells(
        points, [(block.type, block.data) for block in mesh.cells], _vertex_values(mesh.point_data, len(points))
    )


def _of_cells(points: Floats, cells: Any, attributes: dict[str, NDArray[Any]]) -> Shape:
    """The shape of blocks of cells, by meshio's names."""
    blocks = [(name, rows) for name, rows in cells if len(rows)]
    tets = [np.asarray(rows) for name, rows in blocks if name == "tetra"]
    faces = [rows for name, rows in blocks if name in FACE_CELLS]
    if tets:
        triangles = [np.asarray(rows) for name, rows in blocks if name == "triangle"]
        return TetMesh(
            points,
            np.concatenate(tets).astype(np.int64),
            np.concatenate([np.zeros((0, 3), np.int64), *triangles]).astype(np.int64),
            attributes,
        )
    if faces:
        return Mesh(points, Polygons.of([row for rows in faces for row in rows]), attributes=attributes)
    beyond = sorted({name for name, _ in blocks} - {"vertex", "line"})
    if beyond:
        raise InputError(f"the mesh has cells of kind {beyond[0]}; expected triangles, quads, polygons or tetrahedra")
    return PointCloud(points, attributes=attributes)


def unpadded(flat: Ints) -> Polygons:
    """Polygons of VTK's flat list, in which the number of corners stands before each."""
    sizes, k = list[int](), 0
    while k < len(flat):
        sizes.append(max(int(flat[k]), 0))
        k += sizes[-1] + 1
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Polygons(np.delete(flat, offsets[:-1] + np.arange(len(sizes))), offsets)


def _layer(uvs: Any, corners: Ints) -> Layer | None:
    if uvs is None or np.ndim(uvs) != 2 or not len(uvs):
        return None
    return Layer(np.asarray(uvs, dtype=np.float64), corners)


def _bytes_as_colors(colors: Any, count: int) -> dict[str, NDArray[Any]]:
    """The attribute of colours from 0 to 255."""
    table = np.asarray(colors if colors is not None else [])
    return {"color": srgb.to_linear(table)} if table.ndim == 2 and len(table) == count else {}


def _vertex_values(table: Any, count: int) -> dict[str, NDArray[Any]]:
    """The numeric values per vertex among those of another library's table."""
    values = {str(name): as_array(table[name], str(name)) for name in table.keys()}  # noqa: SIM118 (VTK's tables)
    return {name: a for name, a in values.items() if a.ndim and len(a) == count and a.dtype.kind in "fiub"}


# To other libraries


def to_trimesh(shape: Any) -> Any:
    """A `trimesh.Trimesh`, or a `trimesh.PointCloud`; of tetrahedra, their surface. UVs go along if no colours do.

    Vertices at seams of the UVs are repeated behind the shape's own, which stay in their order.
    """
    trimesh = _library("trimesh")
    shape = shape.surface if isinstance(shape, TetMesh) else shape
    colors = _colors_as_bytes(shape.attributes)
    if isinstance(shape, PointCloud):
        return trimesh.PointCloud(shape.points, colors=colors)
    vertices, faces, uvs = np.arange(len(shape.points)), shape.triangles, None
    if shape.uvs is not None and colors is None:
        vertices, corners, uvs = _split_at_seams(shape, shape.uvs)
        faces = corners[shape.triangle_corners]
    values = {name: table[vertices] for name, table in shape.attributes.items() if name != "color"}
    out = trimesh.Trimesh(shape.points[vertices], faces, process=False, vertex_colors=colors, vertex_attributes=values)
    if uvs is not None:
        out.visual = trimesh.visual.TextureVisuals(uv=uvs)
    return out


def to_pyvista(shape: Any) -> Any:
    """A `pyvista.PolyData`, or a `pyvista.UnstructuredGrid` of tetrahedra, with the values of the vertices.

    Vertices at seams of the UVs are repeated, as in `to_trimesh`.
    """
    pyvista = _library("pyvista")
    vertices = np.arange(len(shape.points))
    if isinstance(shape, TetMesh):
        out = pyvista.UnstructuredGrid({10: shape.tets}, shape.points)
    elif isinstance(shape, Mesh):
        polygons, corners, uvs = shape.polygons, shape.polygons.corners, None
        if shape.uvs is not None:
            vertices, corners, uvs = _split_at_seams(shape, shape.uvs)
        out = pyvista.PolyData(shape.points[vertices], np.insert(corners, polygons.offsets[:-1], polygons.sizes))
        if uvs is not None:
            out.active_texture_coordinates = uvs[:, :2]
    else:
        out = pyvista.PolyData(shape.points)
    for name, values in shape.attributes.items():
        out.point_data[name] = values[vertices].reshape(len(vertices), -1)
    return out


def to_meshio(shape: Any) -> Any:
    """A `meshio.Mesh` with the values of the vertices."""
    return _library("meshio").Mesh(shape.points, _cells(shape), point_data=dict(shape.attributes))


def _cells(shape: Shape) -> list[tuple[str, Any]]:
    """Blocks of cells by meshio's names."""
    if isinstance(shape, TetMesh):
        cells = [("tetra", shape.tets)]
        return [*cells, ("triangle", shape.triangles)] if len(shape.triangles) else cells
    if isinstance(shape, PointCloud):
        return [("vertex", np.arange(len(shape.points))[:, None])]
    sizes, names = shape.polygons.sizes, {3: "triangle", 4: "quad"}
    blocks = np.split(np.arange(len(sizes)), np.flatnonzero(np.diff(sizes)) + 1)  # keeps the order of the faces
    return [
        (names.get(int(sizes[rows[0]]), "polygon"), np.stack([shape.polygons[k] for k in rows]))
        for rows in blocks
        if len(rows)
    ]


class SplitVertices(NamedTuple):
    """Vertices that have one UV each."""

    vertices: Ints
    """(k,) whose they are; the first n are the mesh's own"""
    corners: Ints
    """(corners,) which of them each polygon corner is"""
    uvs: Floats
    """(k, d); 0 where a vertex has no corner"""


def _split_at_seams(mesh: Mesh, uvs: Layer) -> SplitVertices:
    count, at_corners = len(mesh.points), uvs.at_corners
    used, corners = np.unique(np.column_stack([mesh.polygons.corners, at_corners]), axis=0, return_inverse=True)
    owners = used[:, 0].astype(np.int64)
    again = np.diff(owners, prepend=-1) == 0
    number = np.where(again, count - 1 + np.cumsum(again), owners)
    vertices = np.concatenate([np.arange(count), owners[again]])
    values = np.zeros((len(vertices), at_corners.shape[1]))
    values[number] = used[:, 1:]
    return SplitVertices(vertices, number[corners.reshape(-1)], values)


def _colors_as_bytes(attributes: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8] | None:
    return srgb.to_bytes(attributes["color"]) if "color" in attributes else None


def _library(name: str) -> Any:
    """A library, whose name the extra that brings it has, too."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtraError(f"a mesh of {name}", name) from None
