"""The tasks of a job: functions of a `Task`, run by any worker that sees the same files, in any order that they allow.

Each gives a small record for the log. Points stay on disk, and a task that is run twice writes the same bytes.
"""

from __future__ import annotations

import os
import socket
import time
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from pliant import native
from pliant.app.batch.jobs import BatchJob
from pliant.app.batch.store import Store, versions
from pliant.app.cli.targets import set_up
from pliant.app.scene import scene_from
from pliant.core.caching import ResultCache
from pliant.core.errors import InputError, PliantError, PliantWarning
from pliant.core.frame_ranges import frames_in, frames_text, progressions
from pliant.engines.registry import ENGINES, Division, Engine
from pliant.io import write_clip

TaskRecord = dict[str, Any]


class OtherVersionsError(PliantError):
    """A worker with other versions than whoever gave it the task."""


class BadSceneError(PliantError):
    """A scene that cannot be read or set up: trying again would not help."""


@dataclass(frozen=True)
class Task:
    """A job under its key, in a store."""

    job: BatchJob
    key: str
    work: str
    versions: dict[str, str] = field(repr=False)
    threads: int | None = 1
    """Of kernels in a worker; None: as many as the process has."""

    @property
    def store(self) -> Store:
        """Where its results are kept."""
        return Store(Path(self.work))

    @property
    def engine(self) -> Engine:
        """That of its scene."""
        return ENGINES[self.job.engine]


def prepare(task: Task) -> TaskRecord:
    """Read the scene and set up its solver, and keep both. Gives the number of frames, and how they can be divided."""
    with at_work(task) as record:
        record["plan"] = task.store.plan(task.key) or prepared(task)[2]
        _check_frames(task, record["plan"])
    return record


def solve_chunk(task: Task, frames: range) -> TaskRecord:
    """Solve some frames, and keep them."""
    with at_work(task) as record:
        record |= {"frames": frames_text(frames), **_solve_chunk(task, frames)}
    return record


def finish(task: Task, view: Any = "auto", up: Any = "auto") -> TaskRecord:
    """Join the frames, write the clip and the report, and keep what there is to say of them."""
    with at_work(task) as record:
        scene, solver, plan = prepared(task)
        begun = time.perf_counter()
        run = _run(task, scene, solver, plan)
        write = task.engine.part("write")
        written = write(task.job.output, run) if write else write_clip(task.job.output, run.clip)
        if task.job.report:
            from pliant.app.report import page

            axis = getattr(scene, "up", "auto") if up == "auto" else up
            made = task.engine.part("report")(run, title=getattr(scene, "title", ""), view=view, up=axis)
            written = [*written, page.write(task.job.report, made)]
        record |= {
            "key": task.key,
            "chosen": task.job.frames,
            "outputs": [task.job.output, task.job.report],
            "written": [[str(path), path.stat().st_size] for path in written],
            "frames": len(run.clip),
            "failure": run.failure,
            "warnings": list(getattr(run, "warnings", ())),
            "figures": run.to_dict(),
            "join_seconds": time.perf_counter() - begun,
        }
        task.store.keep_finished(task.job.name, record)
        task.store.forget_frames(task.key)
        task.store.trim_prepared()
    return {name: value for name, value in record.items() if name != "figures"}


def chosen_frames(job: BatchJob, plan: TaskRecord) -> list[int]:
    """The frames that a job makes of its clip."""
    count = plan["frames"]
    if job.frames is None:
        return list(range(count))
    return frames_in(job.frames, count)


def known_plan(task: Task) -> TaskRecord:
    """As `prepare` would give, without setting up a solver; frames is None where only that knows their number."""
    plan = task.store.plan(task.key)
    if plan is None:
        scene = scene_from(task.job.document, task.job.folder)
        plan = {"frames": len(scene) if hasattr(scene, "__len__") else None, "division": _division(task, scene)}
    if plan["frames"] is not None:
        _check_frames(task, plan)
    return plan


def missing_chunks(task: Task, plan: TaskRecord, size: int) -> list[list[range]]:
    """The chunks that are still to be solved; those of one list go on from each other."""
    if plan["division"] == "whole":
        return []
    chosen = chosen_frames(task.job, plan)
    if plan["division"] == "order":  # all up to the last, until the clip ends
        chosen = list(range(min(chosen[-1] + 1, plan["ends"] if "ends" in plan else plan["frames"])))
    there = {frame for chunk in task.store.chunks(task.key) for frame in chunk}
    missing = [frame for frame in chosen if frame not in there]
    if plan["division"] == "any":
        return [[chunk] for chunk in progressions(missing, size)]
    shot = [bisect_right(_shots(plan), frame) for frame in missing]
    groups = groupby(zip(shot, missing, strict=True), key=lambda pair: pair[0])
    return [list(progressions([frame for _, frame in group], size)) for _, group in groups]


def _shots(plan: TaskRecord) -> list[int]:
    """The frames that depend on none before, of those that are solved in order."""
    return list(plan.get("shots", [0]))


# What a worker does


@contextmanager
def at_work(task: Task) -> Iterator[TaskRecord]:
    """The record of a task: where and how long it took, and what was noted. Linear algebra has one thread meanwhile, so
    that results do not depend on the cores of whoever computes them.
    """
    from threadpoolctl import threadpool_limits

    if task.versions != (mine := versions()):
        other = [f"{name} {mine[name]}, not {theirs}" for name, theirs in task.versions.items() if mine[name] != theirs]
        problem = f"the worker on {socket.gethostname()} has {'; '.join(other)}"
        raise OtherVersionsError(f"{problem}: frames would differ; install the same there")
    if task.threads is not None:
        native.limit_threads(task.threads)
    record: TaskRecord = {"job": task.job.name, "host": socket.gethostname(), "process": os.getpid()}
    wall, processor = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as notes, threadpool_limits(1):
        warnings.simplefilter("always", PliantWarning)
        yield record
    record["notes"] = list(dict.fromkeys(str(note.message) for note in notes if _is_ours(note)))
    record["seconds"] = round(time.perf_counter() - wall, 6)
    record["processor_seconds"] = round(time.process_time() - processor, 6)


def _is_ours(note: warnings.WarningMessage) -> bool:
    return issubclass(note.category, PliantWarning)


def _check_frames(task: Task, plan: TaskRecord) -> None:
    """Refuse frames that the clip does not have."""
    try:
        chosen_frames(task.job, plan)
    except InputError as error:
        raise BadSceneError(str(error)) from None


def prepared(task: Task) -> tuple[Any, Any, TaskRecord]:
    """The scene, its solver and its facts: in memory, on disk, or made."""
    return _latest.get(task.key, lambda: _loaded(task) or _made(task))


_latest: ResultCache[tuple[Any, Any, TaskRecord]] = ResultCache(2)
"""Scenes and solvers that a worker keeps in memory."""


def _loaded(task: Task) -> tuple[Any, Any, TaskRecord] | None:
    plan = task.store.plan(task.key)
    kept = None if plan is None else task.store.prepared(task.key)
    return None if kept is None else (*kept, plan)


def _made(task: Task) -> tuple[Any, Any, TaskRecord]:
    begun = time.perf_counter()
    job = task.job
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*there is no such folder; it will be made")  # a table is no typo
            read = partial(scene_from, job.document, job.folder)
            if job.output:
                scene, solver = set_up(job.output, job.report, read, _unlocated)
            else:  # a data set
                scene = read()
                solver = scene.prepare()
    except InputError as error:
        raise BadSceneError(str(error)) from error
    count = len(scene) if hasattr(scene, "__len__") else len(solver)
    plan: TaskRecord = {"frames": count, "division": _division(task, scene)}
    if plan["division"] == "any" and job.output:
        _check_frames(task, plan)
        task.engine.part("frames").prepare_frames(scene, solver, chosen_frames(job, plan))
    if plan["division"] == "order":
        plan["shots"] = task.engine.part("frames").shots(scene, solver)
    plan["setup_seconds"] = time.perf_counter() - begun
    task.store.keep_prepared(task.key, (scene, solver))
    task.store.keep_plan(task.key, plan)
    return scene, solver, plan


def _division(task: Task, scene: Any) -> Division:
    return "whole" if task.engine.frames is None else task.engine.part("frames").division(scene)


@contextmanager
def _unlocated(_: str) -> Iterator[None]:
    yield


def _solve_chunk(task: Task, frames: range) -> TaskRecord:
    scene, solver, plan = prepared(task)
    before = None
    if plan["division"] == "order" and frames[0] not in _shots(plan):
        before = task.store.frames(task.key, [frames[0] - 1])[0].get(frames[0] - 1)
        if before is None:
            raise InputError(f"frame {frames[0]} is not there to go on from; solve the frames before first")
    begun = time.perf_counter()
    results, ended = task.engine.part("frames").solve_frames(scene, solver, frames, before)
    task.store.keep_frames(task.key, frames[: len(results)], results, time.perf_counter() - begun)
    if ended:
        known, end = task.store.plan(task.key) or plan, frames[0] + len(results)
        task.store.keep_plan(task.key, known | {"ends": min(end, known.get("ends", end))})
    unconverged = [k for k, result in zip(frames, results, strict=False) if not result.converged]
    return {"unconverged": frames_text(unconverged), "ended": ended}


def _run(task: Task, scene: Any, solver: Any, plan: TaskRecord) -> Any:
    """The engine's run of the chosen frames; those that are not there, or are damaged, are solved now."""
    if task.engine.frames is None:
        return task.engine.part("solve")(scene, solver, lambda *_: None, plan["setup_seconds"])
    parts, chosen = task.engine.part("frames"), chosen_frames(task.job, plan)
    begun = time.perf_counter()
    if plan["division"] == "whole":
        solved, _ = parts.solve_frames(scene, solver, range(chosen[-1] + 1), None)
        results, seconds = [solved[k] for k in chosen], time.perf_counter() - begun
    else:
        chosen, results, seconds = _kept(task, plan, chosen)
    return parts.gathered(scene, solver, chosen, results, plan["setup_seconds"], seconds)


def _kept(task: Task, plan: TaskRecord, chosen: Sequence[int]) -> tuple[list[int], list[Any], float]:
    """Chosen frames that the clip has, what was found in them, and how long that took."""
    for _ in range(2):  # again if a chunk is damaged
        plan = task.store.plan(task.key) or plan
        for chunk in chain.from_iterable(missing_chunks(task, plan, len(chosen))):
            _solve_chunk(task, chunk)
        end = (task.store.plan(task.key) or plan).get("ends")
        wanted = [k for k in chosen if end is None or k < end]
        if end is not None and end - 1 not in wanted:
            wanted.append(end - 1)  # it says why the clip ends
        found, seconds = task.store.frames(task.key, wanted)
        if len(found) == len(wanted):
            break
    return wanted, [found[k] for k in wanted], seconds
