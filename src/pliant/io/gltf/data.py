"""glTF's containers and numbers: .gltf or .glb, buffers, buffer views and accessors.

    GLB:    "glTF"  version=2  length       then chunks:  length  "JSON" | "BIN\\0"  data         (little-endian uint32)

    accessor -> bufferView -> buffer:  element i starts at  view.byteOffset + accessor.byteOffset + i · stride
    sparse:     the elements numbered in `indices` are replaced by `values`
    normalised: integers stand for  c / max(type), signed ones not below -1

Every length is checked against the bytes that are there before anything is allocated.
"""

from __future__ import annotations

import base64
import struct
import warnings
from functools import cached_property
from typing import Any
from urllib.parse import unquote_to_bytes

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import RepairWarning
from pliant.core.topology import Floats, Ints
from pliant.io.gltf.checked_json import Entry, parse_json
from pliant.io.gltf.meshopt import MESHOPT, unpacked
from pliant.io.source import Source

TABLES = {
    "nodes": "node", "meshes": "mesh", "accessors": "accessor", "bufferViews": "bufferView", "buffers": "buffer",
    "materials": "material", "textures": "texture", "images": "image", "samplers": "sampler", "skins": "skin",
    "animations": "animation", "scenes": "scene",
}  # fmt: skip
COMPONENTS: dict[int, np.dtype[Any]] = {
    5120: np.dtype("i1"),
    5121: np.dtype("u1"),
    5122: np.dtype("<i2"),
    5123: np.dtype("<u2"),
    5125: np.dtype("<u4"),
    5126: np.dtype("<f4"),
}
WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}
SUPPORTED = {
    "KHR_mesh_quantization", "KHR_texture_transform", "KHR_texture_basisu", "EXT_texture_webp", "EXT_texture_avif",
    "KHR_lights_punctual", "KHR_xmp_json_ld", "KHR_node_visibility", "EXT_lights_image_based",
    "KHR_draco_mesh_compression", *MESHOPT,
}  # fmt: skip
"""Extensions that a file may require: they change pictures, not geometry, or are read here."""
FREE_CLAIM = 1 << 20
"""Numbers that an accessor without data (all zero, or sparse) may always have; more only if the file is not small."""
LARGEST_RESULT = 1 << 30
"""Coordinates that a file may unfold to through instances, targets and frames (8 GiB)."""


class GltfDocument:
    """An open glTF file: its JSON tables and its binary data."""

    def __init__(self, source: Source) -> None:
        self.source = source
        data = source.view()
        self.binary: memoryview | None = None
        if bytes(data[:4]) == b"glTF":
            text, self.binary = _split_glb(source, data)
        else:
            if source.suffix == ".glb":
                problem = f'begins with {bytes(data[:4])!r}; expected "glTF", as every .glb does'
                raise source.error(problem, location="byte 0")
            text = bytes(data)
        self.root = parse_json(source, text)
        self._filled: dict[int, NDArray[Any]] = {}
        self._buffers: dict[int, memoryview] = {}
        self._unpacked: dict[int, memoryview] = {}
        self._check_version()

    def _check_version(self) -> None:
        if "asset" not in self.root:
            raise self.source.error('has no "asset"; expected a glTF 2.0 file', location="JSON")
        version = self.root.entry("asset").text("version")
        if version.split(".")[0] != "2":
            raise self.source.error(f'is glTF version "{version}"; expected 2.0, so export it again', location="asset")
        for name in self.root.texts("extensionsRequired"):
            if name in SUPPORTED or name.startswith("KHR_materials_"):
                continue
            problem = f"needs {name}, which pliant does not read; export again without it"
            raise self.source.error(problem, location="extensionsRequired")

    def table(self, name: str) -> list[Entry]:
        """All entries of one of the `TABLES`."""
        return self._tables[name]

    @cached_property
    def _tables(self) -> dict[str, list[Entry]]:
        return {name: self.root.entries(name, what) for name, what in TABLES.items()}

    @property
    def generator(self) -> str:
        """The name of the program that wrote the file."""
        return self.root.entry("asset").text("generator")

    def buffer(self, k: int) -> memoryview:
        """The bytes of a buffer: the GLB's binary chunk, a data URI, or a file beside this one."""
        if k not in self._buffers:
            self._buffers[k] = self._load_buffer(k)
        return self._buffers[k]

    def _load_buffer(self, k: int) -> memoryview:
        entry = self.table("buffers")[k]
        claimed = entry.whole("byteLength", least=1)
        if "uri" in entry:
            data = self._resource(entry)
        elif k == 0 and self.binary is not None:
            data = self.binary
        else:
            raise entry.error("has no data; expected a uri")
        if len(data) < claimed:
            raise entry.error(f'has {len(data)} bytes; its "byteLength" says {claimed}: the file is cut off')
        return data

    def resource(self, entry: Entry) -> bytes:
        """What the "uri" of a buffer or image stands for."""
        return bytes(self._resource(entry))

    def _resource(self, entry: Entry) -> memoryview:
        uri = entry.text("uri")
        if uri.startswith("data:"):
            head, comma, body = uri.partition(",")
            try:
                data = base64.b64decode(body, validate=True) if head.endswith(";base64") else unquote_to_bytes(body)
            except ValueError as error:
                raise entry.error(f"its data URI is not base64 ({error})") from error
            if not comma:
                raise entry.error("its data URI has no data")
            return memoryview(data)
        sibling = self.file(entry)
        if sibling is None:
            raise entry.error(f'its file "{uri}" is missing; put it beside the .gltf')
        return sibling.view()

    def file(self, entry: Entry) -> Source | None:
        """The file that the "uri" of a buffer or image names; None if it names none, or one that is missing."""
        uri = entry.text("uri")
        if not uri or uri.startswith("data:"):
            return None
        if "\0" in uri or len(uri) > 4096:
            raise entry.error('"uri" is not a file name')
        try:
            return self.source.sibling(uri)
        except (OSError, ValueError) as error:
            raise entry.error(f'"uri" is not a file name ({error})') from error

    def view(self, k: int) -> tuple[memoryview, int | None]:
        """The bytes of a buffer view, and its stride if it has one."""
        entry = self.table("bufferViews")[k]
        stride = entry.whole("byteStride", least=1) if "byteStride" in entry else None
        extensions = entry.entry("extensions")
        name = next((name for name in MESHOPT if name in extensions), None)
        if name is None:
            return self._span(entry), stride
        if k not in self._unpacked:
            packed = extensions.entry(name)
            data, expected = unpacked(packed, self._span(packed)), entry.whole("byteLength", least=1)
            if len(data) != expected:
                raise entry.error(f"unpacks to {len(data)} bytes; its bufferView says {expected}")
            self._unpacked[k] = data.data
        return self._unpacked[k], stride

    def _span(self, entry: Entry) -> memoryview:
        """The bytes of a buffer that an entry says are its own."""
        data = self.buffer(entry.needed_index("buffer", len(self.table("buffers")), "buffer"))
        start, length = entry.whole("byteOffset", 0), entry.whole("byteLength", least=1)
        if start + length > len(data):
            raise entry.error(f"ends at byte {start + length}; its buffer has {len(data)}")
        return memoryview(data)[start : start + length]

    def _elements(self, entry: Entry, count: int, dtype: np.dtype[Any], width: int) -> NDArray[Any]:
        """(count, width) elements that an accessor, or a part of a sparse one, says it has."""
        data, stride = self.view(entry.needed_index("bufferView", len(self.table("bufferViews")), "bufferView"))
        size, start = dtype.itemsize * width, entry.whole("byteOffset", 0)
        step = stride or size
        if step < size:
            raise entry.error(f"its bufferView steps by {step} bytes; an element has {size}")
        end = start + (count - 1) * step + size
        if end > len(data):
            raise entry.error(f"its {count} elements end at byte {end}; its bufferView has {len(data)} bytes")
        return np.ndarray((count, width), dtype, data, start, (step, dtype.itemsize))

    def array(self, k: int) -> NDArray[Any]:
        """(count, width) an accessor's elements as stored."""
        return self._filled[k] if k in self._filled else self._load_array(self.table("accessors")[k])

    def fill(self, k: int, values: NDArray[Any]) -> None:
        """Give an accessor elements that were stored elsewhere."""
        entry = self.table("accessors")[k]
        count, dtype, width = self._shape(entry)
        if values.shape != (count, width):
            raise entry.error(f"says {count} elements of {width}; its packed data has {values.shape}")
        self._filled[k] = values.astype(dtype)

    def _load_array(self, entry: Entry) -> NDArray[Any]:
        count, dtype, width = self._shape(entry)
        if "bufferView" in entry:
            values = self._elements(entry, count, dtype, width)
        else:
            self._check_claim(entry, count * width)
            values = np.zeros((count, width), dtype)
        if "sparse" not in entry:
            return values
        sparse = entry.entry("sparse")
        some = sparse.whole("count", least=1)
        if some > count:
            raise entry.error(f"replaces {some} of its {count} elements; expected no more than it has")
        index_entry = sparse.entry("indices")
        rows = self._elements(index_entry, some, self._component(index_entry, whole=True), 1)[:, 0]
        if rows.max() >= count:
            raise entry.error(f"its sparse indices refer to element {rows.max()}; it has {count}")
        values = values.copy()
        values[rows] = self._elements(sparse.entry("values"), some, dtype, width)
        return values

    def _component(self, entry: Entry, *, whole: bool = False) -> np.dtype[Any]:
        code = entry.whole("componentType")
        if code not in COMPONENTS or (whole and COMPONENTS[code].kind != "u"):
            raise entry.error(
                f'"componentType" is {code}; expected {"5121, 5123 or 5125" if whole else "5120 to 5126"}'
            )
        return COMPONENTS[code]

    def _shape(self, entry: Entry) -> tuple[int, np.dtype[Any], int]:
        kind = entry.text("type")
        if kind not in WIDTHS:
            raise entry.error(f'"type" is "{kind}"; expected one of {", ".join(WIDTHS)}')
        dtype, width = self._component(entry), WIDTHS[kind]
        if width == 16 and dtype.kind != "f":
            raise entry.error("holds matrices of whole numbers; expected float")
        return entry.whole("count", least=1), dtype, width

    def _check_claim(self, entry: Entry, numbers: int) -> None:
        bytes_here = sum(len(self.buffer(k)) for k in range(len(self.table("buffers"))))
        if numbers > max(FREE_CLAIM, 16 * bytes_here):
            raise entry.error(f"claims {numbers} numbers without data; the file has {bytes_here} bytes")

    def floats(self, k: int, widths: tuple[int, ...], what: str, *, repair: bool = False) -> Floats:
        """(count, width) an accessor as finite numbers, normalised integers scaled; `repair` puts zeros for NaN."""
        entry, stored = self.table("accessors")[k], self.array(k)
        if stored.shape[1] not in widths:
            expected = " or ".join(name for name, width in WIDTHS.items() if width in widths)
            raise entry.error(f"is {entry.text('type')}; {what} should be {expected}")
        values = stored.astype(np.float64)
        if stored.dtype.kind != "f" and entry.flag("normalized"):
            values /= np.iinfo(stored.dtype).max
            np.maximum(values, -1, out=values)
        finite = np.isfinite(values).all(axis=1)
        if not finite.all():
            problem = f"{what} {int(np.argmin(finite))} is not finite"
            if not repair:
                raise entry.error(f"{problem}; expected numbers")
            warnings.warn(f"{self.source.label}, {entry.location}: {problem}; left out", RepairWarning, stacklevel=2)
            values[~finite] = 0
        return values

    def wholes(self, k: int, widths: tuple[int, ...], what: str) -> Ints:
        """(count, width) an accessor as whole numbers."""
        entry, stored = self.table("accessors")[k], self.array(k)
        if stored.dtype.kind == "f" or stored.shape[1] not in widths:
            raise entry.error(f"holds {entry.text('type')} of {stored.dtype.name}; {what} should be whole numbers")
        return stored.astype(np.int64)

    def index_of(self, entry: Entry, key: str, table: str) -> int | None:
        """A reference to one of the `TABLES`, or None if the key is absent."""
        return entry.index(key, len(self.table(table)), TABLES[table])

    def check_size(self, coordinates: int, what: str) -> None:
        """Refuse a small file that unfolds to more than a machine holds."""
        if coordinates > LARGEST_RESULT:
            raise self.source.error(f"{what} make {coordinates:,} coordinates; the limit is {LARGEST_RESULT:,}")


def _split_glb(source: Source, data: memoryview) -> tuple[bytes, memoryview | None]:
    """The JSON and binary chunks of a GLB."""
    if len(data) < 20:
        raise source.error(f"has {len(data)} bytes; a GLB has 20 or more", location="header")
    _, version, length = struct.unpack_from("<4sII", data)
    if version != 2:
        raise source.error(f"is GLB version {version}; expected 2, so export it again as glTF 2.0", location="header")
    if length > len(data):
        raise source.error(f"has {len(data)} bytes; its header says {length}: the file is cut off", location="header")
    chunks: dict[bytes, memoryview] = {}
    at = 12
    while at + 8 <= length:
        size, kind = struct.unpack_from("<I4s", data, at)
        if at + 8 + size > length:
            raise source.error(f"says {size} bytes; {length - at - 8} are left", location=f"chunk at byte {at}")
        if at == 12 and kind != b"JSON":
            raise source.error(f"is of type {kind!r}; expected JSON first", location="chunk at byte 12")
        chunks.setdefault(kind, data[at + 8 : at + 8 + size])
        at += 8 + size
    if b"JSON" not in chunks:
        raise source.error(f"says {length} bytes; expected room for a JSON chunk", location="header")
    return bytes(chunks[b"JSON"]), chunks.get(b"BIN\0")
