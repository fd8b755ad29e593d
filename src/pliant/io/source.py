"""Input files: a file, a member of an archive, or all files of a folder, glob or archive in natural order."""

from __future__ import annotations

import glob
import io
import mmap
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO
from urllib.parse import unquote

from pliant.core.errors import FileError, InputError
from pliant.io.archive import is_archive, members_of
from pliant.io.sandbox import confine, inside, readable, regular

LARGEST_UNPACKED = 8 << 30
"""Bytes that the content of one file may take in memory."""

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
            return regular(self.path).read_bytes()

    def open(self) -> BinaryIO:
        """Its bytes as a stream."""
        if self.member:
            return io.BytesIO(self.read())
        with readable(self.path):
            return regular(self.path).open("rb")

    def view(self) -> memoryview:
        """All its bytes, of which only those that are looked at are read."""
        if self.member:
            return memoryview(self.read())
        with self.open() as stream, readable(self.path):
            empty = not os.fstat(stream.fileno()).st_size
            return memoryview(b"" if empty else mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))

    def error(self, problem: str, *, location: str = "", argument: str | tuple[int | str, ...] = ()) -> FileError:
        """A `FileError` that names this file."""
        return FileError(self.label, problem, location=location, argument=argument)

    def sibling(self, uri: str) -> Source | None:
        """A file that this one refers to by relative name; None if it is missing.

        Only the file's own folder and those below it are looked in, links followed, so that a model from elsewhere
        cannot pull in other files of this machine.
        """
        relative = PurePosixPath(unquote(uri).replace("\\", "/"))
        outside = self.error(f'refers to "{uri}"; expected a file in its own folder or below')
        if relative.is_absolute() or ".." in relative.parts or re.match(r"^[A-Za-z][\w+.-]+:", uri):
            raise outside
        if self.member:
            name = str(PurePosixPath(self.member).parent / relative)
            assert self._members is not None
            return Source(self.path, name, self._members) if name in self._members else None
        path = self.path.parent / relative
        if not path.is_file():
            return None
        if not inside(path, (self.path.parent.resolve(), self.path.resolve().parent)):
            raise outside
        return Source(confine(path))


def natural_key(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """Sort key by which frame2 comes before frame10; names that differ only in case or zeros go by their letters."""
    parts = re.split(r"(\d+)", name)
    digits = [part.lstrip("0") if part.isdecimal() else "" for part in parts]
    keys = [(1, len(d), d) if p.isdecimal() else (0, 0, p.lower()) for p, d in zip(parts, digits, strict=True)]
    return keys, name


def find(path: PathLike | Iterable[PathLike], accept: Callable[[str], bool]) -> list[Source]:
    """The files that `path` stands for, in natural order.

    path: a file; a folder; a glob; an archive, or a name or glob inside one (``rig.zip/poses/*.obj``); or a list of
        those. accept: which file names count, where `path` does not name one file. If a glob matches none of those it
        gives what it matches, for the reader to say what is wrong with it.
    """
    if not isinstance(path, (str, os.PathLike)):
        if isinstance(path, (bytes, Mapping)) or not isinstance(path, Iterable):
            raise InputError(f"path is {path!r:.60}; expected the name of a file, folder, glob or archive")
        return [source for one in path for source in find(one, accept)]
    text = os.fspath(path)
    whole = confine(Path(text))
    with readable(text):
        if whole.is_dir():
            chosen = [p for p in whole.iterdir() if p.is_file() and accept(p.name) and not p.name.startswith(".")]
            return [Source(p) for p in sorted(chosen, key=lambda p: natural_key(p.name))]
        if whole.exists():
            regular(whole)
            return _in_archive(whole, accept) if is_archive(whole) else [Source(whole)]
        for folder in whole.parents:
            if folder.is_file() and is_archive(folder):
                pattern = whole.relative_to(folder).as_posix()
                return _in_archive(folder, accept, pattern)
    if glob.has_magic(text):
        found = sorted((Path(p) for p in glob.glob(text, recursive=True)), key=lambda p: natural_key(str(p)))
        matches = [Source(confine(p)) for p in found if p.is_file()]
        if not matches:
            raise FileError(text, "no file matches")
        return [s for s in matches if accept(s.name)] or matches
    raise FileError(text, "there is no such file")


def _in_archive(path: Path, accept: Callable[[str], bool], pattern: str = "") -> list[Source]:
    """An archive's files, or those that a pattern names."""
    members = members_of(path)
    if pattern in members:
        return [Source(path, pattern, members)]
    sources = [Source(path, name, members) for name in sorted(members, key=natural_key)]
    if not pattern:
        return [s for s in sources if accept(s.name)]
    matches = [s for s in sources if PurePosixPath(s.member).match(pattern)]
    if not matches:
        raise FileError(path / pattern, f"nothing in {path.name} is called {pattern}")
    return [s for s in matches if accept(s.name)] or matches


def text_of(source: Source) -> str:
    """A small text file as a string (UTF-8, or Latin-1 where it is not)."""
    data = source.read()
    if b"\0" in data[:4096]:
        raise source.error("holds binary data; expected text")
    try:
        return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig").read()
    except UnicodeDecodeError:
        return data.decode("latin-1")
