"""Data sets of solved poses for learned deformers: what drives a rig, sampled, and the shape that it gives.

    sampled = DataSet("rig.glb", Path("set.zarr"), SampleOptions(poses=50_000))
    sampled.run(workers, show)

Pose k is driven by point k of a scrambled Sobol sequence (Owen 1998) of the seed, so that any first poses cover the
range evenly, and a set of more poses begins with those of a smaller one. What a point means is the engine's
(`Engine.samples`): sliders, joint angles, or a moment of a motion. Whether a pose is for training, validation or the
test depends on the seed and k alone.

The set is a Zarr group: ``points`` (poses, vertices, 3) in float32, what drives it (``weights``, or ``rotations`` and
``translations``), ``converged`` and ``split``, all in shards of as many poses; and ``rest`` and ``triangles``.
A shard is one task and appears whole or not at all; ``points`` come last, so a shard that has them is done.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.batch.cluster import Workers
from pliant.app.batch.jobs import BatchJob
from pliant.app.batch.store import job_key, versions
from pliant.app.batch.tasks import BadSceneError, OtherVersionsError, Task, TaskRecord, at_work, prepared
from pliant.core.errors import FileError, InputError, MissingExtraError, PliantError
from pliant.core.options import NOT_NEGATIVE, Choice, Number, Options, Row, Text, Whole, option
from pliant.core.progress import Progress
from pliant.core.topology import Floats
from pliant.engines.registry import ENGINES

SPLITS = ("train", "validation", "test")
POINTS_ARRAY = "points"
WHAT, STORED = "what to sample", "what is stored"


@dataclass(frozen=True)
class SampleOptions(Options):
    """What is sampled, and how it is stored."""

    poses: int = option(1024, Whole(1, 10**9), "how many; powers of two cover the range most evenly", group=WHAT)
    of: str | None = option(
        None, Choice(("weights", "joints")), "what drives the shape", default_text="weights, if the rig has targets",
        group=WHAT,
    )  # fmt: skip
    motion: str | None = option(
        None, Text("the name of a file"), "sample the frames of this motion, or of these weights, instead", group=WHAT
    )
    active: int | None = option(
        None, Whole(1), "most sliders, or joints, that are moved at once", default_text="all", group=WHAT
    )
    low: float = option(0.0, Number(), "least value of a slider", group=WHAT)
    high: float = option(1.0, Number(), "largest value of a slider", group=WHAT)
    degrees: float = option(30.0, NOT_NEGATIVE, "by which each joint turns about each axis, at most", group=WHAT)
    seed: int = option(0, Whole(), "of the sequence and of the splits", group=WHAT)
    shard: int = option(256, Whole(1, 100_000), "poses in a file", group=STORED)
    splits: Any = option(
        (0.8, 0.1, 0.1), Row((3,), "three shares", NOT_NEGATIVE, nonzero=True, syntax="0.8,0.1,0.1"),
        "shares for training, validation and test", group=STORED, default_text="0.8,0.1,0.1",
    )  # fmt: skip


Sampled = dict[str, Any]
"""By the name of an array, its value for one pose; "points" and "converged" among them."""


def scene_for(rig: str, options: SampleOptions) -> dict[str, Any]:
    """The scene, of any engine, that poses a rig."""
    refusals = []
    for engine in ENGINES.values():
        sampler = engine.part("samples")
        if sampler is None or options.of not in (None, engine.driven_by):
            continue
        try:
            return {"engine": engine.name, **sampler.document(rig, options)}
        except InputError as error:
            refusals.append(f"by {engine.driven_by}: {error}")
    raise InputError("; ".join(refusals) or f"{rig} cannot be sampled")


@dataclass(frozen=True)
class DataSet:
    """A data set, and where it goes."""

    rig: str
    output: Path
    options: SampleOptions

    def __post_init__(self) -> None:
        if self.options.low > self.options.high:
            raise InputError(
                f"sliders from {self.options.low:g} to {self.options.high:g}: expected low to be at most high",
                argument="low",
            )

    def task(self) -> Task:
        """The scene to pose, under its key."""
        job = BatchJob(self.output.stem, scene_for(self.rig, self.options), str(Path.cwd()), output="")
        return Task(job, job_key(job), f"{self.output}.batch", versions())

    def shards(self) -> int:
        """How many files there are."""
        return -(-self.options.poses // self.options.shard)

    def begin(self, task: Task, *, resume: bool) -> list[int]:
        """Make the set, or look at what is there; the shards that are still to be made."""
        zarr = _zarr()
        asked = _plain(self.options)
        facts = {"key": task.key, "options": asked}
        if self.output.exists():
            attributes = _attributes(zarr, self.output)
            if not resume:
                raise FileError(self.output, "is there already; give --resume to go on with it, or another name")
            of = dict(attributes.get("options", {}))
            other = [
                f"{name} {of.get(name)} instead of {value}" for name, value in asked.items() if of.get(name) != value
            ]
            if other or attributes.get("key") != task.key:
                raise FileError(
                    self.output, f"is of {', '.join(other) or 'another rig, or other versions'}; give another name"
                )
        else:
            scene, solver, _ = prepared(task)
            sampler = ENGINES[task.job.engine].part("samples")
            _make(zarr, self, scene, solver, sampler, facts)
        folder = self.output / POINTS_ARRAY / "c"
        return [k for k in range(self.shards()) if not (folder / str(k) / "0" / "0").is_file()]

    def run(self, workers: Workers, show: Progress, *, resume: bool = False, retries: int = 2) -> list[TaskRecord]:
        """Make all shards that are missing; the records of those that were made now."""
        task = replace(self.task(), threads=workers.threads)
        missing = self.begin(task, resume=resume)
        given = {workers.submit(make_shard, task, self, k): (k, 0) for k in missing}
        records: list[TaskRecord] = []
        for done in workers.completed():
            k, tries = given.pop(done.handle)
            if done.error is None:
                records.append(done.record)
                show(len(records), len(missing))
            elif tries < retries and not isinstance(done.error, (BadSceneError, OtherVersionsError)):
                given[workers.submit(make_shard, task, self, k)] = (k, tries + 1)
            else:
                raise PliantError(f"poses {k * self.options.shard + 1} and on: {done.error}") from done.error
        task.store.remove()
        return records


def make_shard(task: Task, data: DataSet, shard: int) -> TaskRecord:
    """Solve the poses of a shard, and write them."""
    with at_work(task) as record:
        scene, solver, _ = prepared(task)
        sampler = ENGINES[task.job.engine].part("samples")
        first = shard * data.options.shard
        numbers = range(first, min(first + data.options.shard, data.options.poses))
        drawn = sobol(sampler.dimensions(scene, data.options), numbers, data.options.seed)
        sampled = [sampler.posed(scene, solver, u, k, data.options) for u, k in zip(drawn, numbers, strict=True)]
        arrays = {name: np.stack([each[name] for each in sampled]) for name in sampled[0]}
        arrays["split"] = np.array([split_of(k, data.options) for k in numbers], dtype=np.uint8)
        group = _zarr().open_group(data.output, mode="r+")
        for name in sorted(arrays, key=lambda name: name == POINTS_ARRAY):  # they say that the shard is done
            group[name][numbers.start : numbers.stop] = arrays[name]
        record |= {"poses": len(numbers), "unconverged": int(np.sum(~arrays["converged"]))}
    return record


def sobol(dimensions: int, numbers: range, seed: int) -> Floats:
    """(numbers, dimensions) points of the sequence, between 0 and 1."""
    from scipy.stats import qmc

    if dimensions > qmc.Sobol.MAXDIM:
        raise InputError(f"{dimensions} values drive it; expected at most {qmc.Sobol.MAXDIM}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of counts that are no powers of two
        sequence = qmc.Sobol(dimensions, scramble=True, seed=np.random.default_rng(seed))
        if numbers.start:
            sequence.fast_forward(numbers.start)
        return np.asarray(sequence.random(len(numbers)))


def split_of(number: int, options: SampleOptions) -> int:
    """Which of `SPLITS` a pose is for."""
    at = np.random.default_rng([options.seed, number]).random() * sum(options.splits)
    return int(np.searchsorted(np.cumsum(options.splits)[:-1], at, side="right"))


def chosen(count: int, number: int, options: SampleOptions) -> Any:
    """(count,) which sliders or joints move in a pose."""
    if options.active is None or options.active >= count:
        return np.ones(count, dtype=bool)
    mask = np.zeros(count, dtype=bool)
    mask[np.random.default_rng([options.seed, number, 1]).choice(count, options.active, replace=False)] = True
    return mask


# Files


def _zarr() -> Any:
    try:
        import zarr
    except ImportError as error:
        raise MissingExtraError("a data set", "sample") from error
    return zarr


def _plain(options: SampleOptions) -> dict[str, Any]:
    return {one.name: list(v) if isinstance(v := getattr(options, one.name), tuple) else v for one in options.all()}


def _attributes(zarr: Any, path: Path) -> Mapping[str, Any]:
    try:
        return dict(zarr.open_group(path, mode="r").attrs)
    except (FileNotFoundError, ValueError, OSError) as error:
        raise FileError(path, "is there already, and is no data set; give another name") from error


def _make(zarr: Any, data: DataSet, scene: Any, solver: Any, sampler: Any, facts: dict[str, Any]) -> None:
    """An empty set of the right size, which appears when it is complete."""
    made = data.output.with_name(f".{data.output.name}.{time.time_ns():x}.part")
    size, poses = data.options.shard, data.options.poses
    first = sampler.posed(scene, solver, np.full(sampler.dimensions(scene, data.options), 0.5), 0, data.options)
    group = zarr.create_group(made, attributes=facts | {"splits": list(SPLITS), **sampler.facts(scene, solver)})
    for name, value in {**first, "split": np.uint8(0)}.items():
        one = np.asarray(value)
        inner = 1 if name == POINTS_ARRAY else size
        group.create_array(
            name, shape=(poses, *one.shape), dtype=one.dtype, chunks=(inner, *one.shape), shards=(size, *one.shape),
            compressors=None,
        )  # fmt: skip
    mesh = scene.shape
    for name, value in (("rest", mesh.points.astype(np.float32)), ("triangles", getattr(mesh, "triangles", None))):
        if value is not None:
            group.create_array(name, data=np.ascontiguousarray(value))
    made.rename(data.output)
