"""Where bytes come from: a file, a member of an archive, or all files of a folder, glob or archive in natural order."""

from __future__ import annotations

import glob
import io
import lzma
import os
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from pliant.errors import FileError

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2")
LARGEST_UNPACKED = 8 << 30
"""Bytes an archive or a compressed file may unpack to: a small file that claims more is a bomb, not a model."""

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Source:
    """One readable file. `label` is how errors name it."""

    path: Path
    member: str = ""
    """Name inside the archive at `path`; empty for a plain file."""
    _members: Mapping[str, bytes] | None = field(default=None, repr=False, compare=False)

    @property
    def label(self) -> str:
        """The file's name as the user gave it; ``archive:member`` inside an archive."""
        return f"{self.path}:{self.member}" if self.member else str(self.path)

    @property
    def name(self) -> str:
        """The last part of its path."""
        return PurePosixPath(self.member).name if self.member else self.path.name

    @property
    def stem(self) -> str:
        """Its name without the suffix."""
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        """The suffix in lower case, with its dot."""
        return PurePosixPath(self.name).suffix.lower()

    def read(self) -> bytes:
        """All its bytes."""
        if self.member:
            assert self._members is not None
            return self._members[self.member]
        with readable(self.path):
            return self.path.read_bytes()

    def error(self, problem: str, *, place: str = "") -> FileError:
        """A `FileError` that names this file."""
        return FileError(self.label, problem, place=place)

    def sibling(self, uri: str) -> Source | None:
        """A file that this one refers to by relative name; None if it is missing.

        Only the file's own folder and those below it are looked in, so that a model from elsewhere cannot pull in
        other files of this machine.
        """
        relative = PurePosixPath(unquote(uri).replace("\\", "/"))
        if relative.is_absolute() or ".." in relative.parts or re.match(r"^[A-Za-z][\w+.-]+:", uri):
            raise self.error(f'refers to "{uri}"; expected a file in its own folder or below')
        if self.member:
            name = str(PurePosixPath(self.member).parent / relative)
            assert self._members is not None
            return Source(self.path, name, self._members) if name in self._members else None
        path = self.path.parent / relative
        return Source(path) if path.is_file() else None


class readable:  # noqa: N801
    """Context that turns the operating system's refusals into a `FileError` about `path`."""

    def __init__(self, path: object) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, FileError):
            return
        if isinstance(error, FileNotFoundError):
            raise FileError(self.path, "there is no such file") from error
        if isinstance(error, IsADirectoryError):
            raise FileError(self.path, "is a folder; expected a file") from error
        if isinstance(error, PermissionError):
            raise FileError(self.path, "may not be read (permission denied)") from error
        if isinstance(error, OSError):
            raise FileError(self.path, (error.strerror or str(error)).lower()) from error


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Sort key by which frame2 comes before frame10."""
    return [(1, int(part), "") if part.isdigit() else (0, 0, part.lower()) for part in re.split(r"(\d+)", name)]


def find(path: PathLike | Iterable[PathLike], accept: Callable[[str], bool]) -> list[Source]:
    """The files that `path` stands for, in natural order.

    path: a file; a folder; a glob; an archive, or a name or glob inside one (``rig.zip/poses/*.obj``); or a list of
        those. accept: which file names count, where `path` does not name one file.
    """
    if not isinstance(path, (str, os.PathLike)):
        return [source for one in path for source in find(one, accept)]
    text = os.fspath(path)
    whole = Path(text)
    with readable(text):
        if whole.is_dir():
            chosen = [p for p in whole.iterdir() if p.is_file() and accept(p.name) and not p.name.startswith(".")]
            return [Source(p) for p in sorted(chosen, key=lambda p: natural_key(p.name))]
        if whole.exists():
            if is_archive(whole):
                return [s for s in open_archive(whole) if accept(s.name)]
            return [Source(whole)]
        for folder in whole.parents:
            if folder.is_file() and is_archive(folder):
                pattern = whole.relative_to(folder).as_posix()
                members = open_archive(folder)
                found = [s for s in members if PurePosixPath(s.member).match(pattern)]
                if not found:
                    raise FileError(text, f"nothing in {folder.name} is called {pattern}")
                return found
    if glob.has_magic(text):
        found_paths = [Path(p) for p in glob.glob(text, recursive=True)]
        matches = [Source(p) for p in sorted(found_paths, key=lambda p: natural_key(str(p))) if p.is_file()]
        if not matches:
            raise FileError(text, "no file matches")
        return matches
    raise FileError(text, "there is no such file")


def is_archive(path: Path) -> bool:
    """Whether a file name says tar or zip."""
    return path.name.lower().endswith(ARCHIVES)


def open_archive(path: Path) -> list[Source]:
    """Every regular file in an archive, in natural order, unpacked in memory."""
    members: dict[str, bytes] = {}
    try:
        with readable(path):
            if path.name.lower().endswith(".zip"):
                _unzip(path, members)
            else:
                _untar(path, members)
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        lzma.LZMAError,
        zlib.error,
        EOFError,
        NotImplementedError,
    ) as error:
        raise FileError(path, f"is not a whole archive ({error or type(error).__name__})") from error
    except RuntimeError as error:
        raise FileError(path, f"cannot be unpacked ({error})") from error
    if not members:
        raise FileError(path, "the archive is empty")
    return [Source(path, name, members) for name in sorted(members, key=natural_key)]


def _unzip(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path) as archive:
        _check_unpacked(path, sum(item.file_size for item in archive.infolist()))
        for item in archive.infolist():
            if not item.is_dir() and not _is_clutter(item.filename):
                members[item.filename] = archive.read(item)


def _untar(path: Path, members: dict[str, bytes]) -> None:
    total = 0
    with tarfile.open(path) as archive:
        for item in archive:
            if not item.isfile() or _is_clutter(item.name):
                continue
            total += item.size
            _check_unpacked(path, total)
            stream = archive.extractfile(item)
            assert stream is not None
            data = stream.read()
            if len(data) != item.size:
                raise FileError(path, f"is cut off inside {item.name}")
            members[item.name] = data


def _is_clutter(name: str) -> bool:
    return "__MACOSX" in name or PurePosixPath(name).name.startswith(".")


def _check_unpacked(path: Path, total: int) -> None:
    if total > LARGEST_UNPACKED:
        raise FileError(path, f"unpacks to {total:,} bytes; the limit is {LARGEST_UNPACKED:,}")


def text_of(source: Source) -> str:
    """A small text file as a string (UTF-8, or Latin-1 where it is not)."""
    data = source.read()
    if b"\0" in data[:4096]:
        raise source.error("holds binary data; expected text")
    try:
        return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig").read()
    except UnicodeDecodeError:
        return data.decode("latin-1")
