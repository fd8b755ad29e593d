"""Which files a page may touch: those in the folders that the studio was given, and what was uploaded.

Names come from a page, so they are not trusted: whatever they are made of (``..``, links, absolute paths), what they
lead to has to lie in one of the folders. Scenes and models name further files; those are held to the same by
`pliant.io.sandbox`, in which the studio reads.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pliant.core.errors import FileError, InputError
from pliant.io import BY_SUFFIX
from pliant.io.sandbox import inside

MOST_LISTED = 500
DEEPEST_LISTED = 2
"""Folders below the given ones whose files are listed."""
LARGEST_UPLOAD = 512 << 20
"""Bytes of one uploaded file, unless another limit is set."""
MOST_UPLOADS = 8
"""How often the limit of one upload all of them together may take."""
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")


@dataclass(frozen=True)
class Folders:
    """The folders that a page may read and write: the first is where scenes and clips are saved."""

    given: tuple[Path, ...]
    uploads: Path
    """Where uploaded files are kept as long as the studio runs."""

    @classmethod
    def of(cls, folders: Sequence[str | os.PathLike[str]], uploads: str | os.PathLike[str]) -> Folders:
        """Folders that exist."""
        given = []
        for folder in folders:
            path = Path(folder).resolve()
            if not path.is_dir():
                raise FileError(folder, "is not a folder; expected one that exists")
            if path not in given:
                given.append(path)
        if not given:
            raise InputError("got no folder; expected at least one to save into")
        return cls(tuple(given), Path(uploads).resolve())

    @property
    def all(self) -> tuple[Path, ...]:
        """What may be read."""
        return (*self.given, self.uploads)

    def to_read(self, name: str) -> Path:
        """A file, folder or glob by the name a page gives, from one of the folders."""
        if not name.strip() or "\0" in name:
            raise InputError("got no name; expected the name of a file in the studio's folder")
        for folder in self.all:
            path = folder / name
            if not inside(path, self.all):
                break
            if path.exists():
                return path
        else:
            raise FileError(name, f"there is no such file in {self._listed()}")
        raise FileError(name, f"is outside the folders this studio was given: {self._listed()}")

    def to_write(self, name: str) -> Path:
        """Where to save something under a name: in the first folder itself, by a plain name."""
        plain = re.fullmatch(r"[\w\- ().+]{1,120}", name) and not name.startswith(".")
        if not plain:
            raise FileError(name, "is not a plain name; expected letters, digits, spaces, - _ . alone, as walk.glb")
        path = self.given[0] / name
        if path.is_symlink():
            raise FileError(name, "is a link to elsewhere; choose another name")
        return path

    def readable(self) -> list[str]:
        """Files in the folders that can be opened, by the names to open them with."""
        found: list[str] = []
        for folder in self.given:
            for path in _walk(folder, DEEPEST_LISTED):
                lower = path.name.lower()
                if path.suffix.lower() in BY_SUFFIX or lower.endswith((".toml", *ARCHIVES)):
                    found.append(str(path.relative_to(folder) if folder == self.given[0] else path))
                    if len(found) == MOST_LISTED:
                        return found
        return found

    def _listed(self) -> str:
        return ", ".join(str(folder) for folder in self.given)


def _walk(folder: Path, deep: int) -> Iterator[Path]:
    """Files of a folder, then those of its folders, without hidden ones."""
    try:
        entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError:  # may not be read
        return
    yield from (entry for entry in entries if entry.is_file())
    if deep > 0:
        for entry in entries:
            if entry.is_dir() and not entry.is_symlink():
                yield from _walk(entry, deep - 1)


def kept_upload(folder: Path, name: str, content: bytes, *, largest: int = LARGEST_UPLOAD) -> Path:
    """An uploaded file, kept under its own name without any folders, or numbered if there is one of that name."""
    bare = re.split(r"[/\\]", name)[-1]
    clean = re.sub(r"[^\w\- ().+]", "_", bare).lstrip(".")[-120:] or "upload"
    if len(content) > largest:
        raise FileError(clean, f"has {len(content) >> 20} MiB; expected at most {largest >> 20} MiB")
    if not content:
        raise FileError(clean, "is empty")
    used = sum(file.stat().st_size for file in folder.parent.rglob("*") if file.is_file())
    if used + len(content) > MOST_UPLOADS * largest:
        raise FileError(clean, f"would be too much: uploads take {used >> 20} MiB already; start the studio anew")
    path = folder / clean
    number = 2
    while path.exists():
        path = folder / f"{Path(clean).stem}-{number}{Path(clean).suffix}"
        number += 1
    path.write_bytes(content)
    return path
