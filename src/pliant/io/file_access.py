"""Reading files safely: errors of the operating system as a `FileError`, and no pipes or devices."""

from __future__ import annotations

from pathlib import Path

from pliant.core.errors import FileError
from pliant.io.sandbox import confine


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
