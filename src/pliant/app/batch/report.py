"""What came of a batch: a table for a terminal, and a web page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from pliant.app.batch.dispatch import JobOutcome
from pliant.app.batch.jobs import Batch
from pliant.app.inspection import size_text
from pliant.app.report import page

SUMMARY_COLUMNS = ("job", "engine", "frames", "chunks", "retries", "time", "written", "")
MOST_LINES = 200
"""Of a table on a terminal; failures are shown beyond them."""


def summary(batch: Batch, outcomes: Sequence[JobOutcome], seconds: float) -> list[str]:
    """A table and a sentence."""
    shown = [each for k, each in enumerate(outcomes) if k < MOST_LINES or each.error or each.failure]
    rows = [SUMMARY_COLUMNS, *map(_row, shown)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(SUMMARY_COLUMNS) - 1)]
    lines = ["  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[-1]]) for row in rows]
    more = [f"... and {len(outcomes) - len(shown)} more"] if len(shown) < len(outcomes) else []
    return [*(line.rstrip() for line in lines), *more, sentence(outcomes, seconds)]


def sentence(outcomes: Sequence[JobOutcome], seconds: float) -> str:
    """How many jobs there were, and how they ended."""
    failed = sum(bool(each.error) for each in outcomes)
    doubtful = sum(bool(each.failure) for each in outcomes)
    kept = sum(each.kept for each in outcomes)
    parts = [f"{len(outcomes)} job{'s' * (len(outcomes) != 1)}, {sum(each.frames for each in outcomes)} frames"]
    parts += [f"{kept} kept from before"] if kept else []
    parts += [f"{doubtful} cannot be vouched for"] if doubtful else []
    parts += [f"{failed} failed"] if failed else []
    return f"{', '.join(parts)}; {_time(seconds)}, {_time(sum(each.seconds for each in outcomes))} of workers"


def _row(outcome: JobOutcome) -> tuple[str, ...]:
    return (
        outcome.job.name,
        outcome.job.engine,
        str(outcome.frames or "-"),
        str(outcome.chunks or "-"),
        str(outcome.retries or "-"),
        _time(outcome.seconds),
        size_text(outcome.bytes) if outcome.bytes else "-",
        outcome.status,
    )


def _time(seconds: float) -> str:
    minutes, rest = divmod(math.ceil(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes else f"{seconds:.1f} s"


def batch_page(batch: Batch, outcomes: Sequence[JobOutcome], seconds: float) -> str:
    """The report as HTML."""
    bad = [k for k, each in enumerate(outcomes) if each.error or each.failure]
    rows = [_row(each) for each in outcomes]
    notes = [(each.job.name, note) for each in outcomes for note in each.warnings]
    sections = [page.section("Jobs", page.table((*SUMMARY_COLUMNS[:-1], "outcome"), rows, flagged=bad))]
    written = [(each.job.name, name) for each in outcomes for name in each.written]
    sections += [page.section("Files", page.facts({f"{job} {Path(name).suffix}": name for job, name in written}))]
    if notes:
        sections.append(page.section("Notes", page.table(("job", "note"), notes)))
    return page.page(batch.file.name, [sentence(outcomes, seconds)], sections)
