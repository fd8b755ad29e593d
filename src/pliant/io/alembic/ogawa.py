"""Ogawa, the container of Alembic files: a tree of groups, whose leaves are bytes. Little-endian throughout.

    bytes 0-4   "Ogawa"         byte 5  255 once the file is complete         bytes 6-7  version, 0 1
    bytes 8-15  where the root group is

    group       uint64 number of children, then a uint64 for each: where it is; the highest bit marks data
    data        uint64 number of bytes, then the bytes

A child at 0 is empty. Groups are written after their children, so a file is written in one pass.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import BinaryIO

from pliant.io.source import Source

HEADER = struct.Struct("<5sBBBQ")
MAGIC, COMPLETE = b"Ogawa", 0xFF
DATA = 1 << 63
"""Marks children that are data; alone, it is an empty one."""


class OgawaReader:
    """The groups and bytes of a file. Whatever it says is checked against its size."""

    def __init__(self, source: Source) -> None:
        self.source, self._bytes = source, source.view()
        if len(self._bytes) < HEADER.size:
            raise source.error(f"holds {len(self._bytes)} bytes; expected an Alembic header of {HEADER.size}")
        magic, state, high, low, self._root = HEADER.unpack_from(self._bytes)
        if magic != MAGIC:
            hdf = bytes(self._bytes[1:4]) == b"HDF"
            hint = "is an Alembic file of the old HDF5 kind; export it as Ogawa" if hdf else "is not an Alembic file"
            raise source.error(f'{hint} (it does not start with "Ogawa")', location="byte 0")
        if state != COMPLETE:
            raise source.error("was not written to its end", location="byte 5")
        if (high, low) != (0, 1):
            raise source.error(f"is Ogawa version {256 * high + low}; expected version 1", location="byte 6")
        self._left = len(self._bytes) // 8 + 16  # every group that is read once has 8 bytes in its parent

    @property
    def root(self) -> tuple[int, ...]:
        """The children of the root group."""
        return self.children(self._root)

    def children(self, group: int) -> tuple[int, ...]:
        """The children of a group."""
        self._left -= 1
        if self._left < 0:
            raise self.source.error("refers to the same groups again and again; expected a tree")
        if group & DATA:
            raise self.source.error(f"has data where a group is expected ({group & ~DATA})")
        if group == 0:
            return ()
        count = self._length(group, 8)
        return struct.unpack_from(f"<{count}Q", self._bytes, group + 8)

    def data(self, child: int) -> memoryview:
        """The bytes of a leaf."""
        at = child & ~DATA
        if not child & DATA:
            raise self.source.error("has a group where data is expected", location=f"byte {at}")
        return self._bytes[:0] if at == 0 else self._bytes[at + 8 : at + 8 + self._length(at, 1)]

    def _length(self, at: int, size: int) -> int:
        """What the number at a byte says of entries of some size that follow it."""
        end = len(self._bytes) - 8
        if not HEADER.size <= at <= end:
            raise self.source.error(f"refers to byte {at:,} of {len(self._bytes):,}")
        (count,) = struct.unpack_from("<Q", self._bytes, at)
        if count > (end - at) // size:
            problem = f"claims {count:,} entries of {size} bytes; {end - at:,} bytes are there"
            raise self.source.error(problem, location=f"byte {at}")
        return int(count)


class OgawaWriter:
    """Writes a file from its leaves up; what `data` and `group` return is the child to put into a group."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._at = stream, HEADER.size
        stream.write(HEADER.pack(MAGIC, 0, 0, 1, 0))

    def data(self, *pieces: bytes | memoryview) -> int:
        """Bytes, one piece after the other."""
        size = sum(len(piece) for piece in pieces)
        return DATA | (self._write(struct.pack("<Q", size), *pieces) if size else 0)

    def group(self, children: Sequence[int]) -> int:
        """A group of children that are written."""
        return self._write(struct.pack(f"<{len(children) + 1}Q", len(children), *children)) if children else 0

    def close(self, root: int) -> None:
        """Complete the file, whose root group is this one."""
        self._stream.seek(0)
        self._stream.write(HEADER.pack(MAGIC, COMPLETE, 0, 1, root))

    def _write(self, *pieces: bytes | memoryview) -> int:
        at = self._at
        for piece in pieces:
            self._stream.write(piece)
            self._at += len(piece)
        return at
