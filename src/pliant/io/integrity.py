"""Checks that a written file is complete on the disk.

Python sees a full disk when it writes. Libraries may not, and some disks only notice when the bytes leave memory. So
every new file is flushed to the disk, and formats that say how long they are, or close with a table, are checked.
"""

from __future__ import annotations

import errno
import os
import struct
import zipfile
import zlib
from pathlib import Path

from pliant.core.errors import FileError

UNABLE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)
"""Error codes of file systems that cannot flush a file."""


def settle(path: Path) -> None:
    """Flush a file to its disk; an `OSError` or a `FileError` if it did not arrive whole."""
    with path.open("rb+") as stream:
        try:
            os.fsync(stream.fileno())
        except OSError as error:
            if error.errno not in UNABLE:
                raise
    check = _CHECKS.get(path.suffix.lower())
    if check and not check(path):
        raise FileError(path, "was not written to its end; see whether the disk is full")


def _zip_is_whole(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except (zipfile.BadZipFile, zlib.error, EOFError):
        return False


def _glb_is_whole(path: Path) -> bool:
    with path.open("rb") as stream:
        head = stream.read(12)
    return len(head) == 12 and struct.unpack("<4sII", head)[2] == path.stat().st_size


def _usd_is_whole(path: Path) -> bool:
    """A binary file ends with its table of contents, whose offset the header gives; a text file with a bracket."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        head = stream.read(24).ljust(24, b"\0")
        if head.startswith(b"PXR-USDC"):
            (table,) = struct.unpack("<q", head[16:])
            stream.seek(min(table, size))
            (count,) = struct.unpack("<Q", stream.read(8).ljust(8, b"\xff"))
            return bool(table + 8 + 32 * count == size)
        stream.seek(max(size - 16, 0))
        return stream.read().rstrip().endswith(b"\n}")


_CHECKS = {
    ".npz": _zip_is_whole,
    ".usdz": _zip_is_whole,
    ".glb": _glb_is_whole,
    ".usd": _usd_is_whole,
    ".usda": _usd_is_whole,
    ".usdc": _usd_is_whole,
}
