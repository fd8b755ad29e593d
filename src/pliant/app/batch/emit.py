"""A batch for other farms: an Open Job Description template, or lines for a shell.

Both run ``pliant batch`` without Dask: ``--part`` solves the frames of one chunk of a job and keeps them in the work
folder, and ``--resume --workers 0`` joins what is there, solving what is not. Frames that go on from those before, or
that are solved in one go, are one task; tried again, it goes on from its last chunk.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pliant.app.batch.dispatch import tasks_of
from pliant.app.batch.jobs import Batch, BatchJob
from pliant.app.batch.tasks import Task, chosen_frames, known_plan
from pliant.core.errors import FileError
from pliant.core.frame_ranges import progressions, range_text

PARAMETER_VALUES, TEMPLATE_STEPS = 1024, 100
"""Of a parameter, and in a template, by the specification of 2023-09."""
LONGEST_STEP = 64
"""Letters of a step's name."""


@dataclass(frozen=True)
class JobCommands:
    """The commands of a job: chunks, in any order, and then the end."""

    job: BatchJob
    parts: tuple[str, ...]
    """The frames of each chunk; empty: all that there is to do is in the end."""


def all_lines(batch: Batch) -> Iterator[JobCommands]:
    """The commands of every job."""
    for task in tasks_of(batch):
        yield JobCommands(task.job, tuple(map(range_text, _chunks(task, batch.options.chunk))))


def _chunks(task: Task, size: int) -> Iterator[range]:
    plan = known_plan(task)
    if plan["division"] == "any":
        chosen = chosen_frames(task.job, plan)
        if len(chosen) > size:
            yield from progressions(chosen, size)


def shell(batch: Batch) -> str:
    """Lines for a shell: those of a job in any order, but the last, which waits for them."""
    text = ["#!/bin/sh", "# Lines between two blank ones may run at the same time, anywhere.", "set -e", ""]
    lines = list(all_lines(batch))
    parts = [shlex.join(_part(batch, each.job, part)) for each in lines for part in each.parts]
    text += [*parts, ""] if parts else []
    return "\n".join([*text, *(shlex.join(_end(batch, each.job)) for each in lines), ""])


def openjd(batch: Batch) -> str:
    """An Open Job Description template, as JSON: a step for the chunks of each job, and one for its end."""
    steps: list[dict[str, Any]] = []
    for each in all_lines(batch):
        name = _step_name(each.job.name, steps)
        blocks = [each.parts[k : k + PARAMETER_VALUES] for k in range(0, len(each.parts), PARAMETER_VALUES)]
        before = [f"{name} frames {k + 1}" if len(blocks) > 1 else f"{name} frames" for k in range(len(blocks))]
        for step, parts in zip(before, blocks, strict=True):
            command = _part(batch, each.job, "{{Task.Param.Frames}}")
            space = {"taskParameterDefinitions": [{"name": "Frames", "type": "STRING", "range": list(parts)}]}
            steps.append({"name": step, "parameterSpace": space, "script": _script(command)})
        end: dict[str, Any] = {"name": name, "script": _script(_end(batch, each.job))}
        if before:
            end["dependencies"] = [{"dependsOn": step} for step in before]
        steps.append(end)
    if len(steps) > TEMPLATE_STEPS:
        problem = f"makes {len(steps)} steps; a template has {TEMPLATE_STEPS} at most"
        raise FileError(batch.file, f"{problem}: give --job for some of the jobs, and a template for the others")
    template = {
        "specificationVersion": "jobtemplate-2023-09",
        "name": batch.file.stem[:100],
        "steps": steps,
    }
    return json.dumps(template, indent=2) + "\n"


EMITTERS = {"openjd": openjd, "shell": shell}


def _script(command: list[str]) -> dict[str, Any]:
    return {"actions": {"onRun": {"command": command[0], "args": command[1:]}}}


def _part(batch: Batch, job: BatchJob, frames: str) -> list[str]:
    return [*_begun(batch, job), "--part", frames]


def _end(batch: Batch, job: BatchJob) -> list[str]:
    return [*_begun(batch, job), "--resume", "--workers", "0", *_asked(batch)]


def _begun(batch: Batch, job: BatchJob) -> list[str]:
    frames = ["--frames", job.frames] if job.frames else []
    return ["pliant", "batch", str(batch.file), "--job", job.name, *frames, "--work", str(batch.work)]


def _asked(batch: Batch) -> list[str]:
    return ["--chunk", str(batch.options.chunk), "--retries", str(batch.options.retries)]


def _step_name(name: str, steps: list[dict[str, Any]]) -> str:
    """A job's name, short enough, and not that of another step."""
    short = name[: LONGEST_STEP - 20]
    taken = {step["name"] for step in steps}
    return short if short not in taken else f"{short} {len(steps)}"


def write_text(path: str, text: str) -> None:
    """Write what was emitted, whole or not at all."""
    from pliant.io.output import staged

    with staged(Path(path)) as stage:
        stage.write_text(text, encoding="utf-8")
