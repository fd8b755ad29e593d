"""From jobs to finished clips: gives out tasks, tries again what fails, and writes down what happens.

Nothing is remembered here that is not on disk: after an interrupt, or when a scheduler is lost, the same batch is begun
again with what is there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pliant.app.batch.cluster import Done, SchedulerLostError, TaskHandle, Workers, connected
from pliant.app.batch.jobs import Batch, BatchJob
from pliant.app.batch.store import Store, job_key, versions
from pliant.app.batch.tasks import (
    BadSceneError,
    OtherVersionsError,
    Task,
    TaskRecord,
    finish,
    missing_chunks,
    prepare,
    solve_chunk,
)
from pliant.core.errors import FileError, PliantError
from pliant.core.frame_ranges import range_text
from pliant.core.progress import Progress

PREPARE, SOLVE, FINISH = 0, 1, 2
"""Priorities: what is begun is finished first."""
NO_RETRY = (BadSceneError, OtherVersionsError)


@dataclass
class JobOutcome:
    """What came of a job."""

    job: BatchJob
    frames: int = 0
    chunks: int = 0
    """Those that were solved now."""
    kept: bool = False
    """Whether all was there already."""
    failure: str = ""
    """What cannot be vouched for, in a line."""
    error: str = ""
    """Why there is no clip, in a line."""
    written: tuple[str, ...] = ()
    bytes: int = 0
    warnings: tuple[str, ...] = ()
    retries: int = 0
    seconds: float = 0.0
    """Of workers, for this job."""
    processor_seconds: float = 0.0

    @property
    def status(self) -> str:
        """In a few words."""
        if self.error:
            return f"failed: {self.error}"
        if self.failure:
            return self.failure
        return "kept" if self.kept else "done"

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        names = (
            "frames", "chunks", "kept", "failure", "error", "bytes", "retries", "seconds", "processor_seconds",
        )  # fmt: skip
        return {
            "job": self.job.name,
            "engine": self.job.engine,
            **{name: getattr(self, name) for name in names},
            "written": list(self.written),
            "warnings": list(self.warnings),
        }


class Log:
    """Lines of JSON: what happened, and when."""

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = path.open("a", encoding="utf-8")
        except OSError as error:
            raise FileError(path, f"cannot be written ({(error.strerror or str(error)).lower()})") from error

    def __call__(self, event: str, **facts: Any) -> None:
        """Add a line. A log that cannot be written to is no reason to stop."""
        at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        with suppress(OSError):
            self._stream.write(json.dumps({"time": at, "event": event, **facts}, default=str) + "\n")
            self._stream.flush()

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):
            self._stream.close()


@dataclass
class _Running:
    """A job that is being computed."""

    task: Task
    outcome: JobOutcome
    plan: TaskRecord = field(default_factory=dict)
    waiting: list[list[range]] = field(default_factory=list)
    """Chunks that were not given out, since they go on from those before: a list for each shot."""
    open: int = 0
    """Chunks that were given out."""


@dataclass
class _Given:
    """A task that was given out."""

    running: _Running
    function: Callable[..., TaskRecord]
    arguments: tuple[Any, ...]
    priority: int
    tries: int = 1
    shot: list[range] = field(default_factory=list)
    """What goes on from it."""


def run_batch(batch: Batch, log: Log, show: Progress, *, resume: bool = False, **drawing: Any) -> list[JobOutcome]:
    """Compute all jobs. resume: keep what is there already. drawing: view and up of reports."""
    tasks = tasks_of(batch)
    outcomes: dict[str, JobOutcome] = {}
    for attempt in range(batch.options.retries + 1):
        try:
            with connected(batch.options) as workers:
                left = [replace(task, threads=workers.threads) for task in tasks if task.job.name not in outcomes]
                for outcome in Dispatch(batch, workers, log, drawing).run(left, resume or attempt > 0, show):
                    outcomes[outcome.job.name] = outcome
            break
        except SchedulerLostError as error:
            log("scheduler lost", attempt=attempt + 1)
            if attempt == batch.options.retries:
                raise PliantError(f"{error}; what was solved is kept: go on with --resume") from error
    return [outcomes[job.name] for job in batch.jobs]


def tasks_of(batch: Batch) -> list[Task]:
    """The jobs under their keys."""
    mine = versions()
    return [Task(job, job_key(job), str(batch.work), mine) for job in batch.jobs]


class Dispatch:
    """Gives the tasks of jobs to workers."""

    def __init__(self, batch: Batch, workers: Workers, log: Log, drawing: dict[str, Any]) -> None:
        self._options, self._workers, self._log, self._drawing = batch.options, workers, log, drawing
        self._store = Store(batch.work)
        self._given: dict[TaskHandle, _Given] = {}
        self._ended: list[JobOutcome] = []
        self._done, self._total = 0, 0

    def run(self, tasks: list[Task], resume: bool, show: Progress) -> Iterator[JobOutcome]:
        """The outcome of each job, as it ends."""
        self._total = len(tasks)
        for task in tasks:
            self._begin(task, resume)
        yield from self._drain()
        for done in self._workers.completed():
            given = self._given.pop(done.handle, None)
            if given is not None:
                self._advance(given, done)
            show(self._done, self._total, f"{len(self._given)} tasks")
            yield from self._drain()

    def _drain(self) -> Iterator[JobOutcome]:
        while self._ended:
            yield self._ended.pop(0)

    def _begin(self, task: Task, resume: bool) -> None:
        outcome = JobOutcome(task.job)
        if resume and (record := self._store.finished(task.job, task.key, task.job.frames)):
            outcome.kept = True
            self._finished(outcome, record)
            return
        if not resume:
            self._store.forget(task.job.name, task.key)
        self._give(_Given(_Running(task, outcome), prepare, (task,), PREPARE))

    def _give(self, given: _Given) -> None:
        handle = self._workers.submit(given.function, *given.arguments, priority=given.priority)
        self._given[handle] = given
        self._total += given.tries == 1

    def _advance(self, given: _Given, done: Done) -> None:
        """What follows from the end of a task."""
        running = given.running
        if done.error is not None:
            self._failed(given, done.error)
            return
        self._done += 1
        record = done.record
        running.outcome.seconds += record["seconds"]
        running.outcome.processor_seconds += record["processor_seconds"]
        running.outcome.warnings += tuple(n for n in record["notes"] if n not in running.outcome.warnings)
        self._log(given.function.__name__, **record, tries=given.tries)
        if given.function is finish:
            self._finished(running.outcome, record)
            return
        if given.function is prepare:
            running.plan = record["plan"]
            running.waiting = missing_chunks(running.task, running.plan, self._options.chunk)
            for shot in running.waiting:
                self._go_on(running, shot)
        else:
            running.open -= 1
            running.outcome.chunks += 1
            if record["ended"]:
                last = given.arguments[1][0]
                for shot in running.waiting:
                    shot[:] = [chunk for chunk in shot if chunk[0] < last]
            self._go_on(running, given.shot)
        if not running.open:
            drawing = tuple(self._drawing.get(name, "auto") for name in ("view", "up"))
            self._give(_Given(running, finish, (running.task, *drawing), FINISH))

    def _go_on(self, running: _Running, shot: list[range]) -> None:
        """Give out the next chunk of a shot."""
        if shot:
            running.open += 1
            self._give(_Given(running, solve_chunk, (running.task, shot.pop(0)), SOLVE, shot=shot))

    def _failed(self, given: _Given, error: BaseException) -> None:
        """Try again, or give the job up."""
        running, why = given.running, message(error)
        facts = {"job": running.task.job.name, "error": why, "tries": given.tries}
        if given.function is solve_chunk:
            facts["frames"] = range_text(given.arguments[1])
        self._log("failed", task=given.function.__name__, **facts)
        if given.tries <= self._options.retries and not isinstance(error, NO_RETRY):
            running.outcome.retries += 1
            self._give(replace(given, tries=given.tries + 1))
            return
        for handle, other in list(self._given.items()):
            if other.running is running:
                self._workers.drop(handle)
                del self._given[handle]
                self._done += 1
        self._done += 1
        running.outcome.error = why
        self._end(running.outcome)

    def _finished(self, outcome: JobOutcome, record: TaskRecord) -> None:
        outcome.frames, outcome.failure = record["frames"], record["failure"]
        outcome.written = tuple(name for name, _ in record["written"])
        outcome.bytes = sum(size for _, size in record["written"])
        outcome.warnings += tuple(each for each in record["warnings"] if each not in outcome.warnings)
        self._end(outcome)

    def _end(self, outcome: JobOutcome) -> None:
        self._done += 1
        self._log("job", **outcome.to_dict())
        self._ended.append(outcome)


def message(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    return text if isinstance(error, PliantError) else f"{type(error).__name__}: {text}"[:300]
