"""A sandbox for reading: while it is open, only files in the given folders may be read.

    with confined([folder]):
        pliant.read("../../secret.obj")     # FileError: outside the folders ...

Outside such a context every file may be read. It holds for the thread it was opened in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from pliant.core.errors import FileError

_FOLDERS: ContextVar[tuple[Path, ...] | None] = ContextVar("folders", default=None)


@contextmanager
def confined(folders: Iterable[Path]) -> Iterator[None]:
    """Confine reading to these folders and those below them."""
    token = _FOLDERS.set(tuple(Path(folder).resolve() for folder in folders))
    try:
        yield
    finally:
        _FOLDERS.reset(token)


def confine(path: Path) -> Path:
    """`path`, which must be inside the folders of the current `confined`, if any; links are followed."""
    folders = _FOLDERS.get()
    if folders is not None and not inside(path, folders):
        raise FileError(path, "is outside the folders that may be read; expected one of them to hold it")
    return path


def inside(path: Path, folders: Iterable[Path]) -> bool:
    """Whether a path, followed through links and .., is in one of the folders or is one."""
    try:
        real = path.resolve()
    except (OSError, RuntimeError, ValueError):  # links that go round, names with a zero byte
        return False
    return any(real.is_relative_to(folder) for folder in folders)
