"""Atomic output: files are written beside their target, then renamed, so that a failure leaves the old files intact.

Python sees a full disk when it writes. Libraries may not, and some disks only notice when the bytes leave memory. So
every new file is flushed to the disk, and formats that say how long they are, or close with a table, are checked.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pliant.core.errors import FileError


@contextmanager
def staged(path: Path, *, obsolete: Iterable[Path] = ()) -> Iterator[Path]:
    """A temporary path for a file, and any files beside it, that appear under their names only when all are complete.

    Yields a path of the same name in a temporary folder next to the target. On success every file in that folder is
    moved to the target's folder, once it is complete, the main file last, and the `obsolete` files are removed. On any
    failure all that was moved or removed is put back: either everything has changed or nothing. A symbolic link is
    written through.
    """
    folder = path.parent
    check_target(path)
    missing = _missing(folder)
    # Known before it is made, so that an interrupt in between removes it too.
    stage = folder / f".{path.name[:40]}.{secrets.token_hex(6)}.part"
    change = _Change(stage / "old files")
    new = stage / "new files"
    try:
        new.mkdir(mode=0o700, parents=True)
        yield new / path.name
        parts = sorted((p for p in new.rglob("*") if p.is_file()), key=lambda p: (p == new / path.name, p))
        for part in parts:
            settle(part)
        change.make([(part, folder / part.relative_to(new)) for part in parts], obsolete)
    except OSError as error:
        raise _refusal(path, error) from error
    except FileError as error:  # about the file as it will be called, not as it is while it is staged
        label = error.label.replace(str(new), str(folder), 1)
        raise FileError(label, error.problem, location=error.location) from error
    finally:
        if not change.unfinished:
            shutil.rmtree(stage, ignore_errors=True)
        for parent in (*change.made, *missing):
            with contextlib.suppress(OSError):  # not empty: it was written to
                parent.rmdir()


class _Change:
    """New files moved to their targets and old ones removed; the old ones are kept aside until all is done."""

    def __init__(self, aside: Path) -> None:
        self.aside = aside
        self.unfinished: list[tuple[Path, Path | None]] = []
        """Files that are changed, and where their old content is, until all are."""
        self.made: list[Path] = []
        """Folders that were not there, the deepest first."""

    def make(self, moves: list[tuple[Path, Path]], obsolete: Iterable[Path]) -> None:
        moves = [(part, Path(os.path.realpath(target))) for part, target in moves]
        for _, target in moves:
            check_target(target)
        self.aside.mkdir()
        target = self.aside
        try:
            for target in obsolete:
                self._keep(target)
                target.unlink()
            for part, target in moves:
                self.made[:0] = _missing(target.parent)
                target.parent.mkdir(parents=True, exist_ok=True)
                self._keep(target)
                _move(part, target)
        except BaseException as error:
            self._undo()
            if isinstance(error, OSError):
                raise _refusal(target, error) from error
            raise
        self.unfinished = []

    def _keep(self, target: Path) -> None:
        """Remember a file's content; it stays where it is."""
        old = None
        if target.exists():
            old = self.aside / str(len(self.unfinished))
            try:
                os.link(target, old)
            except OSError:  # another disk, or one without links
                shutil.copy2(target, old)
        self.unfinished.append((target, old))

    def _undo(self) -> None:
        while self.unfinished:
            target, old = self.unfinished[-1]
            try:
                if old is None:
                    target.unlink(missing_ok=True)
                elif not (target.exists() and target.samefile(old)):
                    _move(old, target)
            except OSError as error:
                where = f"; its old content is in {old}" if old else ""
                raise FileError(target, f"could not be put back ({_reason(error)}){where}") from error
            self.unfinished.pop()


def _move(part: Path, target: Path) -> None:
    """Rename, over an old file if there is one; by way of a copy beside it where a link leads to another disk."""
    try:
        os.replace(part, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with tempfile.TemporaryDirectory(dir=target.parent) as near:
            copy = Path(shutil.copy2(part, near))
            settle(copy)
            os.replace(copy, target)


def _missing(folder: Path) -> list[Path]:
    """The folders that have to be made, the deepest first."""
    return [parent for parent in (folder, *folder.parents) if not parent.exists()]


def check_target(path: Path) -> None:
    """What can be known before anything is changed."""
    if path.is_dir():
        raise FileError(path, "is a folder; expected a file name to write to")
    if path.exists() and not path.is_file():
        raise FileError(path, "is a pipe or a device; expected a file name to write to")
    there = next((parent for parent in path.parents if parent.exists()), path.parent)
    if not there.is_dir():
        raise FileError(path, f"cannot be written ({there} is not a folder)")
    if not os.access(there, os.W_OK):
        raise FileError(path, "cannot be written (permission denied in its folder)")


def _refusal(path: Path, error: OSError) -> FileError:
    return FileError(path, f"cannot be written ({_reason(error)})")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


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


def _alembic_is_whole(path: Path) -> bool:
    """The root group comes last, and its position and the mark of completeness were written after it."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        head = stream.read(16).ljust(16, b"\0")
        (root,) = struct.unpack("<Q", head[8:])
        stream.seek(min(root, size))
        (count,) = struct.unpack("<Q", stream.read(8).ljust(8, b"\xff"))
    return bool(head[5] == 0xFF and root + 8 + 8 * count == size)


_CHECKS = {
    ".abc": _alembic_is_whole,
    ".npz": _zip_is_whole,
    ".usdz": _zip_is_whole,
    ".glb": _glb_is_whole,
    ".usd": _usd_is_whole,
    ".usda": _usd_is_whole,
    ".usdc": _usd_is_whole,
}
