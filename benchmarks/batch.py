"""What a batch costs beside its frames: per task, bytes moved and kept per frame, and the efficiency of two workers.

python benchmarks/batch.py [--tasks 2000] [--frames 240] [--vertices 8000] [--jobs 1]

Times are processor seconds of all processes, which other work on the machine does not change much; those by the clock,
and so the speed-up of two workers, mean something on a quiet machine with two cores only.
"""

from __future__ import annotations

import argparse
import os
import pickle
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import distributed

from pliant.app.batch.cluster import DaskWorkers
from pliant.app.batch.dispatch import Log, run_batch, tasks_of
from pliant.app.batch.jobs import read_batch
from pliant.app.batch.tasks import Task, prepare, solve_chunk
from pliant.app.scene.writing import write_scene

print_now = partial(print, flush=True)


def nothing(task: Task, frames: range) -> dict[str, Any]:
    """A chunk without work, whose record is as long as that of one."""
    return {"job": task.job.name, "host": "somewhere", "process": os.getpid(), "frames": "1-10", "notes": [],
            "unconverged": "", "ended": False, "seconds": 0.123456, "processor_seconds": 0.123456}  # fmt: skip


def overhead(task: Task, count: int) -> dict[str, float]:
    """Seconds a task: by the clock, and of the processor in client with scheduler, and in workers."""
    start = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**start) as cluster, distributed.Client(cluster) as client:
        workers = DaskWorkers(client)
        before, wall = client.run(time.process_time), time.perf_counter()
        here = time.process_time()
        for k in range(count):
            workers.submit(nothing, task, range(k, k + 1))
        for _ in workers.completed():
            pass
        here, wall = time.process_time() - here, time.perf_counter() - wall
        there = sum(client.run(time.process_time).values()) - sum(before.values())
    return {"clock": wall / count, "client and scheduler": here / count, "workers": there / count}


def batch_seconds(file: str, workers: int) -> tuple[float, float, float]:
    """By the clock with the workers' start, of the workers' processors, and in tasks."""
    batch = read_batch(file, workers=workers)
    log = Log(batch.work / "log.jsonl")
    wall = time.perf_counter()
    outcomes = run_batch(batch, log, lambda *_: None)
    wall = time.perf_counter() - wall
    log.close()
    assert not any(each.error for each in outcomes)
    return wall, sum(each.processor_seconds for each in outcomes), sum(each.seconds for each in outcomes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--frames", type=int, default=240)
    parser.add_argument("--vertices", type=int, default=8000)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    shapes = {"gallery": "hand", "vertices": options.vertices, "names": ["open", "fist"]}
    scene = {"engine": "blend", "frames": options.frames, "shapes": shapes}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "jobs.toml"
        write_scene(
            file,
            {"output": "out/{name}.npz", "jobs": [{"scene": scene, "name": f"hand{k}"} for k in range(options.jobs)]},
        )
        task = tasks_of(read_batch(file))[0]
        found = overhead(task, options.tasks)
        print_now("a task:", ", ".join(f"{name} {1e3 * value:.2f} ms" for name, value in found.items()))

        prepare(task)
        record = solve_chunk(task, range(10))
        sent, back = len(pickle.dumps((task, range(10)))), len(pickle.dumps(record))
        kept = sum(path.stat().st_size for path in (Path(task.work) / "frames").rglob("*") if path.is_file())
        solver = sum(path.stat().st_size for path in (Path(task.work) / "prepared").glob("*"))
        print_now(f"a chunk of 10 frames of {options.vertices} vertices: {sent} bytes sent, {back} back;", end=" ")
        print_now(f"on disk {kept / 10:,.0f} bytes a frame, of which {24 * options.vertices:,} are points;", end=" ")
        print_now(f"the solver {solver:,} bytes")

        for workers in (1, 2):
            wall, processor, seconds = batch_seconds(str(file), workers)
            print_now(f"{workers} workers: {wall:.1f} s, {processor:.1f} s of processors, {seconds:.1f} s in tasks")


if __name__ == "__main__":
    main()
