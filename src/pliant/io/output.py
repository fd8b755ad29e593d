"""Where bytes go: beside their place, then renamed, so that a failed run leaves no half file and loses no old one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pliant.errors import FileError


@contextmanager
def staged(path: Path) -> Iterator[Path]:
    """A place to write a file, and any files beside it, that appear under their names only when all are complete.

    Yields a path of the same name in a temporary folder next to the target. On success every file in that folder is
    moved to the target's folder, the main file last; on any failure the folder is removed and nothing has changed.
    """
    folder = path.parent
    if path.is_dir():
        raise FileError(path, "is a folder; expected a file name to write to")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=folder))
    except OSError as error:
        raise FileError(path, f"cannot be written ({(error.strerror or str(error)).lower()})") from error
    try:
        yield stage / path.name
        written = sorted(p for p in stage.rglob("*") if p.is_file())
        for part in sorted(written, key=lambda p: p.name == path.name):
            target = folder / part.relative_to(stage)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(part, target)
    except OSError as error:
        raise FileError(path, f"cannot be written ({(error.strerror or str(error)).lower()})") from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)
