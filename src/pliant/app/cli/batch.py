"""``pliant batch``: many scenes, on one computer or on a farm."""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

from pliant.app.batch.options import HOW, WHERE, BatchOptions
from pliant.app.cli.arguments import add_command, add_view
from pliant.app.cli.flags import ArgumentGroups, word_of
from pliant.core.errors import InputError, PliantError
from pliant.core.frame_ranges import FrameRanges, frames_in, frames_text, progressions
from pliant.core.progress import progress
from pliant.core.terminal import complain, say, say_json

EMITTED = ("openjd", "shell")


def add_commands(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands, _batch, "batch", "many scenes: inputs, sweeps and frames, in chunks, by many workers"
    )
    parser.add_argument("input", metavar="JOBS", help="a table of jobs (.toml)")
    groups = ArgumentGroups(parser)
    how, _ = groups[HOW], groups[WHERE]
    groups.add_options(BatchOptions)
    how.add_argument(
        "--resume", action="store_true", help="keep what is there already, of the same inputs and versions"
    )
    how.add_argument("--dry-run", action="store_true", help="say what there is to do, and do nothing")
    how.add_argument("--job", metavar="NAME", action="append", default=[], help="only this one; may be given again")
    how.add_argument(
        "--part", metavar="FRAMES", type=word_of(FrameRanges()),
        help="solve and keep these frames of --job in this process, and write no clip: for farms without Dask",
    )  # fmt: skip
    how.add_argument("--emit", choices=EMITTED, help="print the batch for another farm, and do nothing: %(choices)s")
    output = parser.add_argument_group("output")
    output.add_argument("--log", metavar="FILE", help="lines of JSON (default: log.jsonl in the work folder)")
    output.add_argument("--report", metavar="FILE", help="a web page (default: report.html in the work folder)")
    add_view(output, "of the jobs' reports: ")
    output.add_argument("--quiet", action="store_true", help="say nothing but errors and notes")
    output.add_argument("--json", action="store_true", help="print what came of each job, for scripts")


def _batch(options: argparse.Namespace) -> int:
    """Solve all scenes of a table of jobs, and write their clips: whole or not at all, the same bytes whoever computes
    them. Frames are solved in chunks where the engine allows it. What is solved is kept, and --resume goes on from
    there. Exit code 1 if something did not converge, 2 if a job failed.
    """
    from pliant.app.batch.jobs import read_batch

    flags = {about.name: getattr(options, about.dest) for about in BatchOptions.all()}
    flags["work"] = options.work and os.path.abspath(options.work)  # in the file, it starts from the file's folder
    batch = read_batch(options.input, **flags)
    if options.job:
        batch = batch.only(options.job)
    if options.emit:
        from pliant.app.batch.emit import EMITTERS

        say(*EMITTERS[options.emit](batch).rstrip("\n").split("\n"))
        return 0
    if options.dry_run:
        return _plan(batch, options)
    if options.part is not None:
        return _part(batch, options)
    return _run(batch, options)


def _plan(batch: Any, options: argparse.Namespace) -> int:
    """Say what there is to do."""
    from pliant.app.batch.dispatch import tasks_of
    from pliant.app.batch.tasks import chosen_frames, known_plan, missing_chunks

    rows = []
    for task in tasks_of(batch):
        job = task.job
        try:
            plan = known_plan(task)
        except PliantError as error:
            raise InputError(f"{job.name}: {error}") from None
        done = options.resume and task.store.finished(job, task.key, job.frames) is not None
        counted = plan["frames"] is not None
        chunks = [] if done else missing_chunks(task, plan, batch.options.chunk)
        rows.append(
            {
                "job": job.name,
                "engine": job.engine,
                "frames": len(chosen_frames(job, plan)) if counted else None,
                "division": plan["division"],
                "chunks": 0 if done else max(1, sum(map(len, chunks))),
                "output": job.output,
            }
        )
    if options.json:
        say_json(rows)
        return 0
    named = {"any": "in any order", "order": "one after the other", "whole": "in one go"}
    for row in rows:
        frames = "frames" if row["frames"] is None else f"{row['frames']} frames"
        todo = "nothing to do" if not row["chunks"] else f"{row['chunks']} chunks {named[row['division']]}"
        say(f"{row['job']}: {row['engine']}, {frames}, {todo} -> {row['output']}")
    say(f"{len(rows)} jobs, {sum(row['chunks'] for row in rows)} chunks")
    return 0


def _part(batch: Any, options: argparse.Namespace) -> int:
    """Solve some frames of one job, and keep them."""
    from dataclasses import replace

    from pliant.app.batch.dispatch import tasks_of
    from pliant.app.batch.tasks import prepare, solve_chunk

    if len(batch.jobs) != 1:
        raise InputError(f"--part is of one job, and there are {len(batch.jobs)}; name it with --job")
    task = replace(tasks_of(batch)[0], threads=None)
    plan = prepare(task)["plan"]
    if plan["division"] != "any":
        raise InputError(f'the frames of "{task.job.name}" depend on each other; leave out --part, and give --resume')
    frames = frames_in(options.part, plan["frames"])
    there = {frame for chunk in task.store.chunks(task.key) for frame in chunk}
    for chunk in progressions([frame for frame in frames if frame not in there], len(frames)):
        record = solve_chunk(task, chunk)
        if not options.quiet:
            say(f"{task.job.name}: frames {record['frames']} in {record['seconds']:.1f} s")
    if not options.quiet:
        say(f"{task.job.name}: frames {frames_text(frames)} are in {task.work}")
    return 0


def _run(batch: Any, options: argparse.Namespace) -> int:
    """Compute all jobs; the exit code."""
    from pliant.app.batch.dispatch import Log, run_batch
    from pliant.app.batch.report import batch_page, summary
    from pliant.app.report import page

    begun = time.perf_counter()
    log = Log(batch.work / "log.jsonl" if options.log is None else options.log)
    log("begin", jobs=len(batch.jobs), options=batch.options.changed(), resume=options.resume)
    try:
        with progress("solving", quiet=options.quiet or options.json) as show:
            outcomes = run_batch(batch, log, show, resume=options.resume, view=options.view, up=options.up)
    except BaseException as error:
        log("stopped", error=f"{type(error).__name__}: {error}")
        if isinstance(error, KeyboardInterrupt):
            complain("pliant: what was solved is kept; go on with --resume")
        raise
    finally:
        log.close()
    seconds = time.perf_counter() - begun
    report = page.write(options.report or batch.work / "report.html", batch_page(batch, outcomes, seconds))
    code = 2 if any(each.error for each in outcomes) else 1 if any(each.failure for each in outcomes) else 0
    if options.json:
        say_json(
            {"exit_code": code, "seconds": seconds, "report": str(report), "jobs": [o.to_dict() for o in outcomes]}
        )
        return code
    if not options.quiet:
        say(*summary(batch, outcomes, seconds), f"open {report}")
    for each in outcomes:
        for note in each.warnings:
            complain(f"pliant: note: {each.job.name}: {note}")
        if each.error or each.failure:
            complain(f"pliant: {each.job.name}: {each.status}")
    return code
