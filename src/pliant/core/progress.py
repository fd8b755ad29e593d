"""Progress bars: frames done and time left on a terminal, nothing in a pipe.

With ``PLIANT_PROGRESS=lines`` in the environment, lines such as ``progress 3/10`` on stderr: for programs that start
pliant and show progress of their own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from pliant.core.terminal import visible

ReportFrames = Callable[[int, int], None]
"""Called with how many steps are done, and of how many."""


class Progress(Protocol):
    """A `ReportFrames` that also takes a short note on the state of the work."""

    def __call__(self, done: int, total: int, note: str = "") -> None: ...


@contextmanager
def progress(what: str, *, quiet: bool = False) -> Iterator[Progress]:
    """A function to report to while the work lasts; it draws on stderr, if that is a terminal and not `quiet`."""
    if os.environ.get("PLIANT_PROGRESS") == "lines":
        yield lambda done, total, note="": print(f"progress {done}/{total}", file=sys.stderr, flush=True)
        return
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield lambda done, total, note="": None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bars, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(visible(what), total=None, note="")
        yield lambda done, total, note="": bar.update(task, completed=done, total=total, note=visible(note))
