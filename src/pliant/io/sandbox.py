"""Reading files safely: inside the sandbox, no pipes or devices, and errors of the system as a `FileError`.

While a sandbox is open, only files in the given folders may be read:

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


class readable:  # noqa: N801
    """Context that raises errors of the operating system as a `FileError` about `path`."""

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


def regular(path: Path) -> Path:
    """`path`, which must not be a pipe or a device: reading those may never end. It must be inside the sandbox too."""
    confine(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        raise FileError(path, "is a pipe or a device; expected a file")
    return path
