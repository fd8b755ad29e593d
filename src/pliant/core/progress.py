"""Progress bars: frames done and time left on a terminal; in a pipe a line where work takes long.

With ``PLIANT_PROGRESS=lines`` in the environment, lines such as ``progress 3/10`` on stderr: for programs that start
pliant and show progress of their own.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from pliant.core.terminal import show_notes, visible

ReportFrames = Callable[[int, int], None]
"""Called with how many steps are done, and of how many."""


FIRST_LINE = 10.0
"""Seconds until a line in a pipe; until each further one as long as all before."""


class Progress(Protocol):
    """A `ReportFrames` that also takes a short note on the state of the work."""

    def __call__(self, done: int, total: int, note: str = "") -> None: ...


@contextmanager
def progress(what: str, *, quiet: bool = False) -> Iterator[Progress]:
    """A function to report to while the work lasts; it shows on stderr, if that is there and not `quiet`.

    Notes on what was done before are shown first.
    """
    show_notes()
    if os.environ.get("PLIANT_PROGRESS") == "lines":
        yield lambda done, total, note="": print(f"progress {done}/{total}", file=sys.stderr, flush=True)
        return
    if quiet or sys.stderr is None:
        yield lambda done, total, note="": None
        return
    if not sys.stderr.isatty():
        with _lines(what) as show:
            yield show
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


@contextmanager
def _lines(what: str) -> Iterator[Progress]:
    """Lines such as ``solving: 3 of 10, 20 s``, ever more rarely: in logs, they say that work goes on."""
    state, ended, started = "", threading.Event(), time.monotonic()

    def show(done: int, total: int, note: str = "") -> None:
        nonlocal state
        state = f"{done} of {total}, "

    def write() -> None:
        wait = FIRST_LINE
        while not ended.wait(wait):
            passed = time.monotonic() - started
            try:
                print(visible(f"{what}: {state}{passed:.0f} s"), file=sys.stderr, flush=True)
            except (OSError, ValueError):  # nobody listens any more
                return
            wait = passed

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        yield show
    finally:
        ended.set()
        writer.join()
