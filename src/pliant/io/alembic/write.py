"""Writing Alembic: one mesh or point cloud below one transform.

The transform brings axes and units to y up and metres, which other programs assume; pliant's reader takes the points as
they were. An animation starts at frame 1, as theirs do. Face sets are the materials. Coordinates have single precision.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pliant.core.clips import Animation
from pliant.core.shapes import Mesh, PointCloud, TetMesh, World
from pliant.core.topology import Floats
from pliant.io.alembic.archive import CONSTANT, EVEN, HASH, INLINE, OBJECT_HASHES, POD, SCALAR, SIZES, TIMED
from pliant.io.alembic.ogawa import OgawaWriter
from pliant.io.alembic.read import GROUP_METADATA, METRES, UP
from pliant.io.joining import flipped_polygons
from pliant.io.losses import mesh_losses, warn_of_losses
from pliant.io.pc2 import single_precision

ARRAY, COMPOUND_BITS = 2, 0
LIBRARY_VERSION = 10_803
MATRIX = np.array([[0x30]], np.uint8)
"""The operation of a transform that is a whole matrix."""
TO_Y_UP = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]], np.float64)
"""Row vectors from z up to y up."""
NO_BOUNDS = np.finfo(np.float64).max * np.array([[1.0, 1.0, 1.0, -1.0, -1.0, -1.0]])
"""Of a face set, which every reader expects to have some."""
GEOMETRY_BASE = "schemaBaseType=AbcGeom_GeomBase_v1"
Sample = NDArray[np.generic]


def write_mesh(path: Path, content: Mesh) -> None:
    """A mesh."""
    _write(path, content, [content.points], None)


def write_points(path: Path, content: PointCloud) -> None:
    """A point cloud."""
    _write(path, content, [content.points], None)


def write_animation(path: Path, content: Animation) -> None:
    """Every frame as a sample."""
    shape = content.shape
    if isinstance(shape, TetMesh):
        shape = shape.surface
    _write(path, shape, content.points, content.fps)


class Compound:
    """Properties on their way into a file; `sampling` is the time sampling of those that move."""

    def __init__(self, file: OgawaWriter, sampling: int = 0) -> None:
        self.file, self.sampling = file, sampling
        self._entries: list[int] = []
        self._headers: list[bytes] = []

    def array(self, name: str, samples: Iterable[Sample], metadata: str = "") -> None:
        """A table (m, extent) at every sample; one sample is constant."""
        self._add(ARRAY, name, samples, metadata)

    def scalar(self, name: str, samples: Iterable[Sample], metadata: str = "") -> None:
        """A row (1, extent) at every sample."""
        self._add(SCALAR, name, samples, metadata)

    def compound(self, name: str, other: Compound, metadata: str = "") -> None:
        """A table of properties."""
        self._entries.append(other.close())
        self._headers.append(_header(COMPOUND_BITS, [], name, metadata))

    def close(self) -> int:
        """The group of all properties."""
        return self.file.group([*self._entries, self.file.data(*self._headers)]) if self._entries else 0

    def _add(self, kind: int, name: str, samples: Iterable[Sample], metadata: str) -> None:
        entries, count, bits = [], 0, 0
        for sample in samples:
            values = np.ascontiguousarray(sample)
            count += 1
            bits = POD.index(_pod(values.dtype)) << 4 | values.shape[1] << 12
            data = values.data.cast("B") if values.size else memoryview(b"")
            entries.append(self.file.data(_hash(data), data))
            if kind == ARRAY:
                entries.append(self.file.data())
        numbers = [count]
        bits |= kind | EVEN | (CONSTANT if count == 1 else 0)
        if self.sampling and count > 1:
            bits |= TIMED
            numbers.append(self.sampling)
        self._entries.append(self.file.group(entries))
        self._headers.append(_header(bits, numbers, name, metadata))


def _pod(kind: np.dtype[np.generic]) -> str:
    return kind.str.replace("|b1", "?").replace("|", "")


def _hash(data: bytes | memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=HASH).digest()


def _header(bits: int, numbers: list[int], name: str, metadata: str) -> bytes:
    """Of a property: sizes in as few bytes as all of them fit into."""
    text, more = name.encode(), metadata.encode()
    largest = max(len(text), len(more), *numbers, 0)
    hint = 0 if largest < 1 << 8 else 1 if largest < 1 << 16 else 2
    form = SIZES[hint]
    bits |= hint << 2 | (INLINE << 20 if more else 0)
    tail = struct.pack(form, len(more)) + more if more else b""
    return struct.pack("<I", bits) + b"".join(struct.pack(form, k) for k in (*numbers, len(text))) + text + tail


def _object(file: OgawaWriter, properties: int, children: list[tuple[str, str, int]]) -> int:
    """The group of an object; children: name, metadata and group of each."""
    headers = b""
    for name, metadata, _ in children:
        text, more = name.encode(), metadata.encode()
        headers += struct.pack("<I", len(text)) + text + struct.pack("<BI", INLINE, len(more)) + more
    hashes = hashlib.blake2b(headers, digest_size=OBJECT_HASHES).digest()
    return file.group([properties, *(group for _, _, group in children), file.data(headers, hashes)])


def _title(schema: str, compound: str) -> str:
    return f"schema={schema};{GEOMETRY_BASE};schemaObjTitle={schema}:{compound}"


def _write(path: Path, shape: Mesh | PointCloud, frames: Floats | list[Floats], fps: float | None) -> None:
    name = re.sub(r"[^\w .-]+", "_", path.stem) or "shape"
    with path.open("wb") as stream:
        file = OgawaWriter(stream)
        geometry, schema, sets = Compound(file, 0 if fps is None else 1), "AbcGeom_Points_v1", []
        geometry.scalar(".selfBnds", (_bounds(points) for points in frames), "interpretation=box")
        geometry.array("P", (single_precision(points) for points in frames), "geoScope=vtx;interpretation=point")
        if "velocity" in shape.attributes:
            velocity = _velocities(frames, fps, shape.attributes["velocity"])
            geometry.array(".velocities", velocity, "geoScope=vtx;interpretation=vector")
        parameters = Compound(file)
        if isinstance(shape, Mesh):
            schema = "AbcGeom_PolyMesh_v1"
            sets = _write_faces(file, geometry, shape, frames)
        else:
            warn_of_losses("Alembic", ["normals"] if shape.normals is not None else [])
            geometry.array(".pointIds", [np.arange(len(shape.points), dtype="<u8")[:, None]])
        _write_values(parameters, shape)
        geometry.compound(".arbGeomParams", parameters)
        properties = Compound(file)
        properties.compound(".geom", geometry, f"schema={schema};{GEOMETRY_BASE}")
        drawn = _object(file, properties.close(), sets)
        placed = _object(file, _transform(file, shape.world), [(f"{name}Shape", _title(schema, ".geom"), drawn)])
        top_metadata = f"schema=AbcGeom_Xform_v3;schemaObjTitle=AbcGeom_Xform_v3:.xform{_about_axes(shape.world)}"
        top = _object(file, 0, [(name, top_metadata, placed)])
        _finish(file, top, len(frames), fps)


def _finish(file: OgawaWriter, top: int, frames: int, fps: float | None) -> None:
    """The root: versions, the objects, metadata and time samplings."""
    samplings = struct.pack("<IdId", 1, 1.0, 1, 0.0)
    if fps is not None:
        samplings += struct.pack("<IdId", frames, 1 / fps, 1, 1 / fps)
    versions = [file.data(struct.pack("<I", number)) for number in (0, LIBRARY_VERSION)]
    rate = "" if fps is None else f"FramesPerTimeUnit={fps!r};"
    about = file.data(f"{rate}_ai_Application=pliant".encode())
    file.close(file.group([*versions, top, about, file.data(samplings), file.data()]))


def _about_axes(world: World | None) -> str:
    """What the metadata says of axes and units."""
    if world in (None, World()):
        return ""
    return f";{UP}={world.up}" + ("" if world.metres is None else f";{METRES}={world.metres!r}")


def _transform(file: OgawaWriter, world: World | None) -> int:
    matrix = np.eye(4)
    if world is not None:
        matrix[:3, :3] = (world.metres or 1.0) * (TO_Y_UP if world.up == "z" else np.eye(3))
    table = Compound(file)
    table.scalar(".inherits", [np.array([[True]])])
    table.scalar(".ops", [MATRIX])
    table.scalar(".vals", [matrix.reshape(1, 16)])
    properties = Compound(file)
    properties.compound(".xform", table, "schema=AbcGeom_Xform_v3")
    return properties.close()


def _bounds(points: Floats) -> Sample:
    return np.array([[end(column) for end in (np.min, np.max) for column in points.T]])  # min(axis=0) is slow


def _velocities(frames: Floats | list[Floats], fps: float | None, given: Sample) -> Iterator[Sample]:
    """In units a second: as given, or of an animation the mean of both sides of a frame."""
    if fps is None or len(frames) < 2:
        yield from (single_precision(np.asarray(given, np.float64)) for _ in frames)
        return
    for k in range(len(frames)):
        before, after = max(k - 1, 0), min(k + 1, len(frames) - 1)
        yield single_precision((frames[after] - frames[before]) * (fps / (after - before)))


def _write_faces(
    file: OgawaWriter, geometry: Compound, mesh: Mesh, frames: Floats | list[Floats]
) -> list[tuple[str, str, int]]:
    """Faces, clockwise, and what lies on their corners; the face sets to go below the mesh."""
    lost = mesh_losses(mesh, keeps=("uvs", "normals", "labels", "vertex_groups"), attributes=tuple(mesh.attributes))
    parted = [name for name, label in mesh.labels.items() if name != "material" and len(label.names) > 1]
    warn_of_losses("Alembic", [word for word in lost if word != "axes and units"] + [f"labels of {n}" for n in parted])
    polygons, slots = flipped_polygons(mesh.polygons)
    parameters = Compound(file)
    geometry.array(".faceIndices", [polygons.corners.astype("<i4")[:, None]])
    geometry.array(".faceCounts", [polygons.sizes.astype("<i4")[:, None]])
    if mesh.uvs is not None:
        about = _parameter("fvr", "vector", 2, ";sourceName=UVMap")
        parameters.array(".vals", [single_precision(mesh.uvs.values[:, :2])], about)
        parameters.array(".indices", [mesh.uvs.index[slots].astype("<u4")[:, None]])
        geometry.compound("uv", parameters, about)
    if mesh.normals is not None:
        geometry.array("N", _normals(mesh, frames, slots), _parameter("fvr", "normal", 3))
    return _face_sets(file, mesh)


def _normals(mesh: Mesh, frames: Floats | list[Floats], slots: NDArray[np.int64]) -> Iterator[Sample]:
    for points in frames:
        normals = (mesh if points is mesh.points else mesh.with_points(points)).normals
        assert normals is not None
        yield single_precision(normals.at_corners[slots])


def _parameter(scope: str, meaning: str, extent: int, more: str = "") -> str:
    """The metadata of a parameter of the surface."""
    shape = f"isGeomParam=true;podExtent={extent};podName=float32_t"
    return f"arrayExtent=1;geoScope={scope};interpretation={meaning};{shape}{more}"


def _write_values(table: Compound, shape: Mesh | PointCloud) -> None:
    """Colours, vertex groups and other numbers on points."""
    groups = shape.vertex_groups if isinstance(shape, Mesh) else {}
    for name, values in shape.attributes.items():
        rows = np.asarray(values).reshape(len(shape.points), -1)
        if name == "velocity" or rows.dtype.kind not in "fiu" or not 1 <= rows.shape[1] <= 255:
            continue
        with np.errstate(over="ignore"):
            rows = rows.astype("<f4") if rows.dtype.kind == "f" else rows.astype("<i4")
        color = name == "color" and rows.shape[1] in (3, 4)
        meaning = ("rgb" if rows.shape[1] == 3 else "rgba") if color else "vector" if rows.shape[1] == 3 else ""
        table.array(name, [rows], _parameter("vtx", meaning, rows.shape[1]))
    for name, weights in groups.items():
        table.array(name, [single_precision(weights)[:, None]], _parameter("vtx", "", 1, f";{GROUP_METADATA}=true"))


def _face_sets(file: OgawaWriter, mesh: Mesh) -> list[tuple[str, str, int]]:
    """One for each material."""
    label, found = mesh.labels.get("material"), []
    for k, name in enumerate(label.names if label is not None else ()):
        assert label is not None
        faces = np.flatnonzero(label.index == k).astype("<i4")
        if not name or not len(faces):
            continue
        table, properties = Compound(file), Compound(file)
        table.scalar(".selfBnds", [NO_BOUNDS], "interpretation=box")
        table.array(".faces", [faces[:, None]])
        properties.compound(".faceset", table, f"schema=AbcGeom_FaceSet_v1;{GEOMETRY_BASE}")
        group = _object(file, properties.close(), [])
        found.append((name.replace("/", "_"), _title("AbcGeom_FaceSet_v1", ".faceset"), group))
    return found
