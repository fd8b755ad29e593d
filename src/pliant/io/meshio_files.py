"""VTK (.vtk, .vtu) and Gmsh (.msh) meshes, by meshio, where it is installed (the extra "meshio")."""

from __future__ import annotations

import contextlib
import io
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pliant.core.errors import InputError, MissingExtraError
from pliant.core.interop import from_meshio
from pliant.core.shapes import Mesh, PointCloud, Shape, TetMesh
from pliant.io.apart import run_apart
from pliant.io.losses import mesh_losses, warn_of_losses
from pliant.io.meshio_parse import MESHIO_ALLOWANCE
from pliant.io.source import Source

MODULES = {".vtk": "vtk", ".vtu": "vtu", ".msh": "gmsh"}
"""Of meshio, by suffix."""


def _library() -> Any:
    try:
        import meshio
    except ImportError as error:
        raise MissingExtraError("reading and writing VTK and Gmsh files", "meshio") from error
    return meshio


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Without what meshio prints."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def _read(source: Source) -> Shape:
    """Tetrahedra, else faces, else points."""
    module = getattr(_library(), MODULES[source.suffix])
    data = source.read()  # checked as any other file; its name may be one inside an archive
    with tempfile.TemporaryDirectory(prefix="pliant-") as folder:
        path = Path(folder, f"mesh{source.suffix}")
        path.write_bytes(data)
        if source.suffix == ".msh" and _is_binary_gmsh(data):
            read = _read_apart(source, path, len(data))
        else:
            if source.suffix == ".msh":
                _check_gmsh(source, data)
            read = _read_here(source, module, path)
    try:
        shape = from_meshio(read)
    except InputError as error:
        raise source.error(str(error)) from error
    except (TypeError, ValueError, IndexError) as error:
        raise source.error("its points and cells do not fit each other") from error
    if not len(shape.points):
        raise source.error("holds no points")
    return shape


def _read_here(source: Source, module: Any, path: Path) -> Any:
    """A mesh of meshio."""
    try:
        with warnings.catch_warnings(), _silence():
            warnings.simplefilter("ignore")
            return module.read(path)
    except (Exception, SystemExit) as error:  # whatever its parsers stumble on
        problem = (str(error).splitlines() or [type(error).__name__])[0].replace(str(path.parent), "")
        raise source.error(f"meshio cannot read it ({problem:.80}); expected a {source.suffix} mesh") from error


def _read_apart(source: Source, path: Path, size: int) -> Any:
    """A mesh of meshio, read by another process: see `meshio_parse`."""
    script = Path(__file__).with_name("meshio_parse.py")
    printed = run_apart(source, script, str(path), library="meshio", seconds=3 * MESHIO_ALLOWANCE.seconds(size))
    if printed is None:
        raise source.error("is a binary Gmsh file, and no process to read it can be started here; save it as text")
    with np.load(io.BytesIO(printed)) as arrays:
        found = dict(arrays)
    points = found.pop("points")
    return _library().Mesh(points, [(name.partition(" ")[2], cells) for name, cells in found.items()])


def _is_binary_gmsh(data: bytes) -> bool:
    head = data[:64].split()
    return head[:1] == [b"$MeshFormat"] and head[2:3] != [b"0"]


def _check_gmsh(source: Source, data: bytes) -> None:
    """Refuse counts beyond the file, on which meshio would loop."""
    for line in data.splitlines():
        start = line[:120].split()
        if any(word.isdigit() and len(word) > 9 for word in start) or (start and start[0] == b"$Periodic"):
            raise source.error(f"counts {line[:30].decode('ascii', 'replace')}; expected fewer, or none that repeat")


def kinds(source: Source) -> tuple[str, ...]:
    """What a file holds."""
    shape = _read(source)
    if isinstance(shape, TetMesh):
        return ("tets", "mesh", "points")
    return ("mesh", "points") if isinstance(shape, Mesh) else ("points",)


def read_tets(source: Source) -> TetMesh:
    """Its tetrahedra."""
    shape = _read(source)
    if not isinstance(shape, TetMesh):
        raise source.error("holds no tetrahedra")
    return shape


def read_mesh(source: Source) -> Mesh:
    """Its faces; of tetrahedra, their surface."""
    shape = _read(source)
    if isinstance(shape, PointCloud):
        raise source.error("holds points without faces; expected a mesh")
    return shape.surface if isinstance(shape, TetMesh) else shape


def read_points(source: Source) -> PointCloud:
    """Its points."""
    shape = _read(source)
    return shape if isinstance(shape, PointCloud) else PointCloud(shape.points, attributes=shape.attributes)


def _write(path: Path, shape: Shape) -> None:
    meshio = _library()
    suffix = path.suffix.lower()
    with warnings.catch_warnings(), _silence():
        warnings.simplefilter("ignore")
        mesh = shape.to_meshio()
        mesh.point_data = {name: np.asarray(values) for name, values in mesh.point_data.items()}
        try:
            if suffix == ".msh":
                meshio.gmsh.write(path, mesh, fmt_version="2.2", binary=False)
            elif suffix == ".vtk":
                meshio.vtk.write(path, mesh, binary=True)
            else:
                meshio.vtu.write(path, mesh)
        except (meshio.WriteError, KeyError, ValueError, TypeError) as error:
            raise InputError(f"meshio cannot write it as {suffix} ({str(error).splitlines()[0]:.80})") from error


def write_tets(path: Path, content: TetMesh) -> None:
    """Write tetrahedra."""
    _write(path, content)


def write_mesh(path: Path, content: Mesh) -> None:
    """Write faces."""
    warn_of_losses(path.suffix[1:].upper(), mesh_losses(content, attributes=content.attributes))
    _write(path, content)


def write_points(path: Path, content: PointCloud) -> None:
    """Write points."""
    warn_of_losses(path.suffix[1:].upper(), ["normals"] if content.normals is not None else [])
    _write(path, content)
