"""Archives, unpacked in memory: the files of a zip on demand, those of a tar in one pass.

No size that an archive claims is believed. It may unpack to 64 MB, or to 200 times its own size if that is more (real
models reach about 40), and to 1 GB at most. Claims are checked against that before anything is unpacked, and the bytes
of a tar are counted as they come, so that its headers cannot hide more.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from pliant.core.errors import FileError
from pliant.io.sandbox import readable

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2")
LARGEST_ARCHIVE = 1 << 30
"""Bytes that an archive may have, and may unpack to."""
LARGEST_RATIO = 200
ALWAYS_ALLOWED = 64 << 20
"""Bytes that even the smallest file may unpack to."""
CACHE_LIMIT = 256 << 20
"""Unpacked bytes up to which the last archive is kept."""

_OPENERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
_last: dict[tuple[object, ...], Mapping[str, bytes]] = {}
"""The archive that was opened last: a command looks at its input more than once."""


def is_archive(path: Path) -> bool:
    """Whether a file name says tar or zip."""
    return path.name.lower().endswith(ARCHIVE_SUFFIXES)


def check_unpacked(label: object, total: int, packed: int, largest: int) -> None:
    """Refuse what unpacks to more than `largest` bytes, or to far more than its size makes credible."""
    limit = min(largest, max(ALWAYS_ALLOWED, LARGEST_RATIO * packed))
    if total > limit:
        raise FileError(label, f"unpacks to {total:,} bytes from {packed:,} packed ones; the limit is {limit:,}")


def members_of(path: Path) -> Mapping[str, bytes]:
    """Every regular file in an archive, by name."""
    with _unpacking(path):
        facts = path.stat()
        key = (os.path.abspath(path), facts.st_size, facts.st_mtime_ns, facts.st_ino)
        if key in _last:
            return _last[key]
        if facts.st_size > LARGEST_ARCHIVE:
            raise FileError(path, f"has {facts.st_size:,} bytes; the limit for archives is {LARGEST_ARCHIVE:,}")
        members = _Zip(path) if path.name.lower().endswith(".zip") else _untar(path, facts.st_size)
    if not members:
        raise FileError(path, "the archive is empty")
    _last.clear()
    if isinstance(members, _Zip) or sum(map(len, members.values())) <= CACHE_LIMIT:
        _last[key] = members
    return members


@contextmanager
def _unpacking(path: Path) -> Iterator[None]:
    """Turns whatever damaged archives raise into a `FileError`."""
    try:
        with readable(path):
            yield
    except FileError:
        raise
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        lzma.LZMAError,
        zlib.error,
        struct.error,
        EOFError,
        ValueError,
        OverflowError,
        IndexError,
    ) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise FileError(path, f"is not a whole archive ({reason:.120})") from error
    except (RuntimeError, MemoryError) as error:  # encrypted, or compressed by a method that this Python lacks
        raise FileError(path, f"cannot be unpacked ({str(error) or type(error).__name__:.120})") from error


class _Zip(Mapping[str, bytes]):
    """The files of a zip, each unpacked on first use."""

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        self.path, self.packed, self.total = path, len(data), 0
        self.archive = zipfile.ZipFile(io.BytesIO(data))
        items = self.archive.infolist()
        self.items_by_name = {i.filename: i for i in items if not i.is_dir() and not _is_clutter(i.filename)}
        self.unpacked: dict[str, bytes] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self.items_by_name)

    def __len__(self) -> int:
        return len(self.items_by_name)

    def __contains__(self, name: object) -> bool:
        return name in self.items_by_name

    def __getitem__(self, name: str) -> bytes:
        item = self.items_by_name[name]
        if name not in self.unpacked:
            check_unpacked(self.path, self.total + item.file_size, self.packed, LARGEST_ARCHIVE)
            with _unpacking(self.path):
                self.unpacked[name] = self.archive.read(item)
            self.total += item.file_size
            if self.total > CACHE_LIMIT:
                _last.clear()
        return self.unpacked[name]


class _Counted:
    """A stream that ends with an error where more than is credible has come out of it."""

    def __init__(self, path: Path, stream: Any, packed: int) -> None:
        self.path, self.stream, self.packed, self.total = path, stream, packed, 0

    def read(self, size: int) -> bytes:
        data: bytes = self.stream.read(size)
        self.total += len(data)
        check_unpacked(self.path, self.total, self.packed, LARGEST_ARCHIVE)
        return data


def _untar(path: Path, packed: int) -> dict[str, bytes]:
    with path.open("rb") as file:
        magic = file.read(6)
    opener = next((opener for start, opener in _OPENERS.items() if magic.startswith(start)), open)
    members: dict[str, bytes] = {}
    with opener(path, "rb") as stream:
        counted = _Counted(path, stream, packed)
        with tarfile.open(fileobj=counted, mode="r|", bufsize=1 << 20) as archive:  # type: ignore[call-overload]
            for item in archive:
                if item.issparse():
                    raise FileError(path, f"holds {item.name:.80} as a sparse file; pack it without --sparse")
                check_unpacked(path, item.offset_data + item.size, packed, LARGEST_ARCHIVE)
                if item.isfile() and not _is_clutter(item.name):
                    members[item.name] = archive.extractfile(item).read()
                    if len(members[item.name]) != item.size:
                        raise FileError(path, f"is cut off inside {item.name:.80}")
    return members


def _is_clutter(name: str) -> bool:
    return "__MACOSX" in name or PurePosixPath(name).name.startswith(".")
