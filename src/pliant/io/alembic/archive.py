"""An Alembic archive: a tree of objects (transforms, meshes), each with properties that have a value at every sample.

    root group   format version · library version · top object · metadata · time samplings · shared metadata
    object       its properties · its children, one group each · headers of the children, 32 bytes of hashes
    properties   a group each · headers
    scalar       the bytes of each sample that differs from the one before
    array        the same, each followed by its dimensions (empty if it has one)

A sample's bytes begin with 16 of a hash. Samples before the first change are the first one, those after the last change
the last one, and only those in between are stored. A property has a time sampling, by number.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pliant.core.topology import Floats
from pliant.io.alembic.ogawa import OgawaReader
from pliant.io.source import Source

AbcMetadata = dict[str, str]
POD = ("?", "u1", "i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f2", "<f4", "<f8")
"""Types by number; after these come two kinds of text."""
COMPOUND, SCALAR = 0, 1
KIND, HINT_MASK, TYPE_MASK, TIMED, RANGED, EVEN, CONSTANT = 0x3, 0xC, 0xF0, 0x100, 0x200, 0x400, 0x800
"""Bits of a property's header; sizes that follow have 1, 2 or 4 bytes, as the hint says."""
SIZES = ("<B", "<H", "<I")
INLINE = 0xFF
"""Metadata that stands in the header itself, not among the shared."""
HASH, OBJECT_HASHES = 16, 32
DEEPEST = 64
"""Objects within objects, and properties within properties."""
OLDEST = 9999
"""Version of the library that first wrote what is read here."""


@dataclass(frozen=True)
class TimeSampling:
    """When samples are: at `times`, repeated every `period` seconds; without a period, they are all listed."""

    period: float
    times: tuple[float, ...]

    def at(self, count: int) -> Floats:
        """(count,) the times of the first samples, in seconds."""
        k, given = np.arange(count), np.array(self.times)
        if not np.isfinite(self.period) or self.period > 1e30:  # acyclic
            return given[np.minimum(k, len(given) - 1)]
        return np.asarray(given[k % len(given)] + self.period * (k // len(given)))


@dataclass(frozen=True, eq=False)
class Property:
    """A value over time, or a table of such (compound)."""

    archive: Archive
    path: str
    name: str
    metadata: AbcMetadata
    is_scalar: bool
    pod: int
    """Type by number; -1 for a compound."""
    extent: int
    count: int
    """Samples."""
    changes: tuple[int, int]
    """The first and the last sample that differ from the one before; 0 and 0 if none does."""
    sampling: int
    group: int

    @property
    def is_compound(self) -> bool:
        """Whether it is a table."""
        return self.pod < 0

    @property
    def is_constant(self) -> bool:
        """Whether it has one value."""
        return self.is_compound or self.count < 2 or self.changes == (0, 0)

    @cached_property
    def times(self) -> Floats:
        """(count,) seconds of the samples."""
        return self.archive.sampling(self.sampling, self.path).at(self.count)

    @cached_property
    def children(self) -> dict[str, Property]:
        """Of a compound."""
        return self.archive.properties(self.group, self.path) if self.is_compound else {}

    @cached_property
    def _samples(self) -> tuple[int, ...]:
        return self.archive.file.children(self.group)

    def sample(self, k: int = 0) -> NDArray[np.generic]:
        """(m, extent) values of a sample."""
        error = self.archive.file.source.error
        if not 0 <= self.pod < len(POD):
            raise error("is text or a table; expected numbers", location=self.path)
        first, last = self.changes
        stored = 0 if self.is_constant or k < first else min(k, last) - first + 1
        at = stored if self.is_scalar else 2 * stored
        if at >= len(self._samples):
            raise error(f"sample {k} is not there; {len(self._samples)} entries are", location=self.path)
        data, kind = self.archive.file.data(self._samples[at])[HASH:], np.dtype(POD[self.pod])
        if len(data) % (kind.itemsize * self.extent):
            problem = f"sample {k} has {len(data)} bytes; expected rows of {self.extent} × {kind.itemsize}"
            raise error(problem, location=self.path)
        return np.frombuffer(data, kind).reshape(-1, self.extent)


@dataclass(frozen=True, eq=False)
class AbcObject:
    """An object of an archive."""

    archive: Archive
    path: str
    metadata: AbcMetadata
    group: int

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def schema(self) -> str:
        """What it is, such as AbcGeom_PolyMesh."""
        return self.metadata.get("schema", "").rpartition("_v")[0]

    @cached_property
    def _entries(self) -> tuple[int, ...]:
        return self.archive.file.children(self.group)

    @cached_property
    def properties(self) -> dict[str, Property]:
        """By name."""
        return self.archive.properties(self._entries[0], self.path) if len(self._entries) > 1 else {}

    @cached_property
    def children(self) -> list[AbcObject]:
        """In the file's order."""
        return self.archive.objects(self._entries, self.path)


class Archive:
    """An archive to read."""

    def __init__(self, source: Source) -> None:
        self.file = OgawaReader(source)
        root = self.file.root
        if len(root) < 6:
            raise source.error(f"has {len(root)} entries at its root; expected 6, as an Alembic archive has")
        for number, child in enumerate(root[:2]):
            if len(self.file.data(child)) < 4:
                raise source.error(f"has no version number (entry {number} of its root)")
        version, library = (struct.unpack_from("<I", self.file.data(child))[0] for child in root[:2])
        if version != 0 or library < OLDEST:
            raise source.error(f"is Alembic of version {version} ({library}); expected version 0 of 1.0 or later")
        self.metadata = _metadata(bytes(self.file.data(root[3])))
        self._samplings = self._read_samplings(bytes(self.file.data(root[4])))
        self._shared = self._read_shared(bytes(self.file.data(root[5])))
        self.top = AbcObject(self, "", {}, root[2])

    def sampling(self, number: int, path: str) -> TimeSampling:
        """A time sampling by number."""
        if number >= len(self._samplings):
            problem = f"has time sampling {number}; there are {len(self._samplings)}"
            raise self.file.source.error(problem, location=path)
        return self._samplings[number]

    def objects(self, entries: tuple[int, ...], path: str) -> list[AbcObject]:
        """The objects below one, from the entries of its group."""
        if not entries:
            return []
        self._check_depth(path)
        header = bytes(self.file.data(entries[-1]))
        text = _Header(self.file.source, header[: max(len(header) - OBJECT_HASHES, 0)], path)
        found: list[AbcObject] = []
        while text.more:
            name = text.name(text.number(2))
            index = text.number(0)
            metadata = _metadata(text.take(text.number(2))) if index == INLINE else self._known(index, path)
            if len(found) + 2 >= len(entries):
                raise self.file.source.error(f'"{name}" has a header and no content', location=path or "/")
            found.append(AbcObject(self, f"{path}/{name}", metadata, entries[len(found) + 1]))
        return found

    def properties(self, group: int, path: str) -> dict[str, Property]:
        """The properties in a group, by name."""
        entries = self.file.children(group)
        if not entries:
            return {}
        self._check_depth(path)
        text = _Header(self.file.source, bytes(self.file.data(entries[-1])), path)
        found: dict[str, Property] = {}
        for entry in entries[:-1]:
            if not text.more:
                raise self.file.source.error("has more properties than headers", location=path)
            made = self._property(text, entry, path)
            found[made.name] = made
        return found

    def _property(self, text: _Header, entry: int, path: str) -> Property:
        bits = text.number(2)
        hint, kind = (bits & HINT_MASK) >> 2, bits & KIND
        pod, extent, count, changes, sampling = -1, 1, 0, (0, 0), 0
        if kind != COMPOUND:
            pod, extent, count = (bits & TYPE_MASK) >> 4, max((bits >> 12) & 0xFF, 1), text.number(hint)
            if bits & RANGED:
                changes = (text.number(hint), text.number(hint))
            elif not bits & CONSTANT:
                changes = (1, count - 1)
            sampling = text.number(hint) if bits & TIMED else 0
        name = text.name(text.number(hint))
        index = (bits >> 20) & 0xFF
        metadata = _metadata(text.take(text.number(hint))) if index == INLINE else self._known(index, path)
        full = f"{path}/{name}"
        return Property(self, full, name, metadata, kind == SCALAR, pod, extent, count, changes, sampling, entry)

    def _known(self, index: int, path: str) -> AbcMetadata:
        if index >= len(self._shared):
            problem = f"refers to metadata {index}; there are {len(self._shared)}"
            raise self.file.source.error(problem, location=path or "/")
        return self._shared[index]

    def _check_depth(self, path: str) -> None:
        if path.count("/") > DEEPEST:
            raise self.file.source.error(f"nests more than {DEEPEST} deep", location=f"{path[:60]}...")

    def _read_samplings(self, data: bytes) -> list[TimeSampling]:
        found, at, head = [], 0, struct.Struct("<IdI")
        while at < len(data):
            if len(data) - at < head.size:
                raise self.file.source.error("has time samplings that are cut off")
            _, period, count = head.unpack_from(data, at)
            at += head.size
            if count < 1 or count > (len(data) - at) // 8:
                raise self.file.source.error(f"has a time sampling of {count} times; expected those that are there")
            times = struct.unpack_from(f"<{count}d", data, at)
            if not np.isfinite(times).all() or np.isnan(period):
                raise self.file.source.error("has a time sampling that is not finite")
            found.append(TimeSampling(period, times))
            at += 8 * count
        return found

    def _read_shared(self, data: bytes) -> list[AbcMetadata]:
        found: list[AbcMetadata] = [{}]
        at = 0
        while at < len(data):
            size = data[at]
            found.append(_metadata(data[at + 1 : at + 1 + size]))
            at += 1 + size
        return found


class _Header:
    """Headers of objects or properties, read from front to back."""

    def __init__(self, source: Source, data: bytes, path: str) -> None:
        self._source, self._data, self._path, self._at = source, data, path, 0

    @property
    def more(self) -> bool:
        return self._at < len(self._data)

    def take(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise self._source.error("has a header that is cut off", location=self._path or "/")
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self, hint: int) -> int:
        if hint >= len(SIZES):
            raise self._source.error(f"has a header with sizes of kind {hint}", location=self._path or "/")
        form = struct.Struct(SIZES[hint])
        return int(form.unpack(self.take(form.size))[0])

    def name(self, size: int) -> str:
        return self.take(size).decode("utf-8", "replace")


def _metadata(text: bytes) -> AbcMetadata:
    pairs = (pair.partition("=") for pair in text.decode("utf-8", "replace").split(";") if pair)
    return {key: value for key, _, value in pairs}
