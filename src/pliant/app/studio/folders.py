"""Which files a page may touch: those in the folders that the studio was given, and what was uploaded.

Names come from a page, so they are not trusted: whatever they are made of (``..``, links, absolute paths), what they
lead to has to lie in one of the folders. Scenes and models name further files; those are held to the same by
`pliant.io.sandbox`, in which the studio reads.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pliant.core.errors import FileError, InputError
from pliant.io import BY_SUFFIX
from pliant.io.sandbox import inside

MOST_LISTED = 500
"""Files of one folder."""
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

    def listing(self, name: str = "") -> list[tuple[str, str, bool]]:
        """What can be opened in a folder: labels, the names that a page gives for them, and whether those are folders.

        Without a name it is that of the first folder given, and the others are listed with it.
        """
        folder = self.to_read(name) if name else self.given[0]
        found = [] if name else [(str(other), str(other), True) for other in self.given[1:]]
        if name:
            top = folder in self.given or folder.parent == self.given[0]
            found.append(("..", "" if top else self._name(folder.parent), True))
        with suppress(OSError):  # may not be read
            entries = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
            found += [
                (entry.name, self._name(entry), entry.is_dir())
                for entry in sorted(entries, key=lambda entry: (not entry.is_dir(), entry.name.lower()))
                if inside(entry, self.all) and (entry.is_dir() or _can_be_opened(entry))
            ]
        return found[:MOST_LISTED]

    def _name(self, path: Path) -> str:
        """What a page calls a file."""
        return str(path.relative_to(self.given[0]) if path.is_relative_to(self.given[0]) else path)

    def _listed(self) -> str:
        return ", ".join(str(folder) for folder in self.given)


def _can_be_opened(path: Path) -> bool:
    return path.suffix.lower() in BY_SUFFIX or path.name.lower().endswith((".toml", *ARCHIVES))


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
