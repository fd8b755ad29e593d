"""``pliant demo``: the built-in shapes blended, moved by each other and simulated, and a page that shows it offline.

For each exhibit there is a clip (GLB), a contact sheet, a film (GIF), a report, and the scene file that makes it again.
Blends are shown beside linear blending, transfers beside what they came from, simulated flesh beside linear blend
skinning.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from pliant.app.demo.bodies import BODIES, BodyExhibit
from pliant.app.demo.exhibits import EXHIBITS, Exhibit
from pliant.app.demo.page import page
from pliant.app.demo.transfers import TRANSFERS, TransferExhibit
from pliant.app.report.page import write
from pliant.core.errors import MissingExtraError
from pliant.core.progress import Progress, progress
from pliant.core.terminal import complain, finish, say
from pliant.engines.blend.processes import few_threads
from pliant.native import CORES

AnyExhibit = Exhibit | TransferExhibit | BodyExhibit
MadeExhibit = tuple[str | MissingExtraError, float]
"""An exhibit's part of the page, or what it lacks; and the seconds that it took."""


def make_demo(
    folder: Path,
    *,
    exhibits: Sequence[AnyExhibit] = (*EXHIBITS, *TRANSFERS, *BODIES),
    quick: bool = False,
    quiet: bool = False,
    jobs: int = CORES,
) -> Path:
    """Make each exhibit's clip, contact sheet, film and report in `folder`; the path of the page that shows them.

    jobs: how many exhibits to make at the same time, each in a process of its own if there are several. An exhibit that
    needs an extra which is not installed is left out, and said.
    """
    exhibits = [exhibit.smaller() for exhibit in exhibits] if quick else exhibits
    cards: dict[str, str] = {}
    index = folder / "index.html"
    for exhibit, (made, seconds) in _made(exhibits, folder, quiet=quiet, jobs=jobs):
        if isinstance(made, MissingExtraError):
            complain(f"pliant: {exhibit.title}: left out, {made}")
            continue
        cards[exhibit.name] = made
        write(index, page([cards[shown.name] for shown in exhibits if shown.name in cards]))
        if not quiet:
            look = f"; open {index}" if len(cards) == 1 else ""  # from the first exhibit on there is something to see
            say(f"{exhibit.title}: {seconds:.1f} s{look}")
            finish()
    return index if cards else write(index, page([]))


def _made(
    exhibits: Sequence[AnyExhibit], folder: Path, *, quiet: bool, jobs: int
) -> Iterator[tuple[AnyExhibit, MadeExhibit]]:
    """The exhibits as they are done."""
    if min(jobs, len(exhibits)) < 2:
        for exhibit in exhibits:
            with progress(exhibit.title, quiet=quiet) as show:
                made = _make(exhibit, folder, show)
            yield exhibit, made
        return
    with few_threads(jobs):
        pool = ProcessPoolExecutor(min(jobs, len(exhibits)), get_context("spawn"))
        running = {pool.submit(_make, exhibit, folder): exhibit for exhibit in exhibits}
    try:
        with progress("exhibits", quiet=quiet) as show:
            for done, future in enumerate(as_completed(running), 1):
                show(done, len(running))
                yield running[future], future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _silent(done: int, total: int, note: str = "") -> None:
    """Progress that nobody sees."""


def _make(exhibit: AnyExhibit, folder: Path, show: Progress = _silent) -> MadeExhibit:
    begun = time.perf_counter()
    try:
        made: str | MissingExtraError = exhibit.write(folder, show)
    except MissingExtraError as error:
        made = error
    return made, time.perf_counter() - begun
