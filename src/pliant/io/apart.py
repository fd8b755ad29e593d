"""Scripts that read a file in a process of their own: a library that crashes on it does not take pliant along."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pliant.core.errors import FileError
from pliant.core.limits import REFUSED
from pliant.io.source import Source


def run_apart(
    source: Source,
    script: Path,
    *arguments: str,
    library: str,
    seconds: float,
    environment: dict[str, str] | None = None,
) -> bytes | None:
    """What a script prints; None if no process can be started here. Whatever else goes wrong is a `FileError`.

    The script gets the arguments, and after them the folders to import from. seconds: by the clock.
    """
    if not sys.executable or getattr(sys, "frozen", False):
        return None
    command = [sys.executable, "-I", str(script), *arguments, *map(str, sys.path)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=seconds,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **(environment or {})},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise source.error(
            f"{library} did not read it within {seconds:.0f} s; the file is damaged or grows too large"
        ) from error
    except OSError:
        return None
    if done.returncode == REFUSED:
        raise source.error(one_line(done.stdout.decode("utf-8", "replace")))
    if done.returncode:
        raise cut_off(source, library)
    return done.stdout


def cut_off(source: Source, library: str) -> FileError:
    """The error about a file that a library cannot read."""
    return source.error(f"{library} cannot read it; the file is cut off or damaged, or grows too large")


def one_line(text: object) -> str:
    """A message on one line, cut where it is long."""
    line = " ".join(str(text).split())
    return line if len(line) <= 160 else line[:157] + "..."
