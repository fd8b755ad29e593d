"""Building a glTF file: numbers become accessors in one buffer, and the whole becomes a .glb, or a .gltf with its .bin.

Arrays where most rows are zero (the displacements of morph targets) are stored sparsely when that saves space.
"""

from __future__ import annotations

import io
import json
import shutil
import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

import pliant
from pliant.core.errors import FileError
from pliant.core.shapes import Image
from pliant.io.gltf.data import COMPONENTS

ARRAY_BUFFER, INDICES = 34962, 34963
CODE = {dtype: code for code, dtype in COMPONENTS.items()}
TYPE = {1: "SCALAR", 2: "VEC2", 3: "VEC3", 4: "VEC4", 16: "MAT4"}
LARGEST_GLB = (1 << 32) - 1
LARGEST_IN_MEMORY = 8 << 20
"""Bytes of a buffer in the making, beyond which it is in a temporary file: a clip has many frames."""


def smallest_unsigned(largest: int, *, least: int = 1) -> np.dtype[Any]:
    """The narrowest unsigned type of at least `least` bytes that holds the number, and leaves its last value unused."""
    sizes = [dtype for dtype in (np.dtype("u1"), np.dtype("<u2"), np.dtype("<u4")) if dtype.itemsize >= least]
    return next((dtype for dtype in sizes if largest < np.iinfo(dtype).max), np.dtype("<u4"))


class Builder:
    """A glTF file in the making."""

    def __init__(self) -> None:
        self.json: dict[str, Any] = {"asset": {"version": "2.0", "generator": f"pliant {pliant.__version__}"}}
        self._buffer: IO[bytes] = tempfile.SpooledTemporaryFile(LARGEST_IN_MEMORY)  # noqa: SIM115 (open till it is saved)
        self._size = 0
        self._zeros: dict[tuple[int, np.dtype[Any], int, bool], int] = {}

    def add(self, table: str, entry: dict[str, Any]) -> int:
        """Append an entry to a table and return its number."""
        rows: list[dict[str, Any]] = self.json.setdefault(table, [])
        rows.append(entry)
        return len(rows) - 1

    def view(self, data: bytes, target: int | None = None, stride: int | None = None) -> int:
        """A buffer view of these bytes, starting at a multiple of four."""
        entry = {"buffer": 0, "byteOffset": self._size, "byteLength": len(data)}
        if stride is not None:
            entry["byteStride"] = stride
        if target is not None:
            entry["target"] = target
        padding = bytes(-len(data) % 4)
        self._buffer.write(data)
        self._buffer.write(padding)
        self._size += len(data) + len(padding)
        return self.add("bufferViews", entry)

    def accessor(self, values: NDArray[Any], *, target: int | None = None, bounds: bool = False,
                 normalized: bool = False) -> int:  # fmt: skip
        """An accessor of (n,) or (n, d) numbers, stored as they are; whole ones are fractions if they are `normalized`.

        Rows of vertices start at multiples of four bytes.
        """
        entry = self._described(values, bounds, normalized)
        stride = None
        if target == ARRAY_BUFFER and values.ndim == 2 and values[0].nbytes % 4:
            gap = -values[0].nbytes % 4 // values.itemsize
            values = np.concatenate([values, np.zeros((len(values), gap), dtype=values.dtype)], axis=1)
            stride = values[0].nbytes
        entry["bufferView"] = self.view(np.ascontiguousarray(values).tobytes(), target, stride)
        return self.add("accessors", entry)

    def sparse(self, values: NDArray[Any], *, target: int | None = None, bounds: bool = False,
               normalized: bool = False) -> int:  # fmt: skip
        """As `accessor`, leaving out rows of zeros where that is shorter."""
        table = values.reshape(len(values), -1)
        rows = np.flatnonzero(table.any(axis=1))
        kind = smallest_unsigned(len(values))
        if len(rows) * (table[0].nbytes + kind.itemsize) > 0.7 * table.nbytes:
            return self.accessor(values, target=target, bounds=bounds, normalized=normalized)
        entry = self._described(values, bounds, normalized)
        if not len(rows):
            key = len(values), values.dtype, table.shape[1], bounds
            if key not in self._zeros:
                self._zeros[key] = self.add("accessors", entry)
            return self._zeros[key]
        entry["sparse"] = {
            "count": len(rows),
            "indices": {"bufferView": self.view(rows.astype(kind).tobytes()), "componentType": CODE[kind]},
            "values": {"bufferView": self.view(np.ascontiguousarray(values[rows]).tobytes())},
        }
        return self.add("accessors", entry)

    @staticmethod
    def _described(values: NDArray[Any], bounds: bool, normalized: bool) -> dict[str, Any]:
        table = values.reshape(len(values), -1)
        entry: dict[str, Any] = {
            "componentType": CODE[values.dtype],
            "count": len(values),
            "type": TYPE[table.shape[1]],
        }
        if normalized and values.dtype.kind != "f":
            entry["normalized"] = True
        if bounds:
            entry["min"], entry["max"] = table.min(axis=0).tolist(), table.max(axis=0).tolist()
        return entry

    def images(self, images: Sequence[Image]) -> None:
        """Put pictures into the buffer."""
        for image in images:
            self.add("images", {"name": image.name, "mimeType": image.mime, "bufferView": self.view(image.data)})

    def save(self, path: Path) -> None:
        """Write a .glb, or a .gltf and its .bin beside it."""
        buffer: dict[str, Any] = {"byteLength": self._size}
        self.json["buffers"] = [buffer]
        if path.suffix.lower() == ".gltf":
            binary = path.with_suffix(".bin")
            buffer["uri"] = quote(binary.name)
            with binary.open("wb") as stream:
                self._copy_buffer(stream)
            path.write_bytes(json.dumps(self.json, ensure_ascii=False, indent=1).encode("utf-8", "replace"))
            return
        head = self._glb_head()
        length = len(head) + self._size
        if length > LARGEST_GLB:
            raise FileError(path, f"would have {length:,} bytes; a GLB holds {LARGEST_GLB:,}: write .gltf or .npz")
        with path.open("wb") as stream:
            stream.write(head)
            self._copy_buffer(stream)

    def glb(self) -> bytes:
        """The bytes of a .glb."""
        made = io.BytesIO()
        made.write(self._glb_head())
        self._copy_buffer(made)
        return made.getvalue()

    def _copy_buffer(self, stream: IO[bytes]) -> None:
        self._buffer.seek(0)
        shutil.copyfileobj(self._buffer, stream, 1 << 20)

    def _glb_head(self) -> bytes:
        """All of a .glb but its buffer."""
        self.json["buffers"] = [{"byteLength": self._size}]
        text = json.dumps(self.json, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        text += b" " * (-len(text) % 4)
        length = 12 + 8 + len(text) + 8 + self._size
        return b"".join(
            [
                struct.pack("<4sII", b"glTF", 2, length & LARGEST_GLB),
                struct.pack("<I4s", len(text), b"JSON"),
                text,
                struct.pack("<I4s", self._size & LARGEST_GLB, b"BIN\0"),
            ]
        )
