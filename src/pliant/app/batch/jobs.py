"""The jobs of a batch: a TOML file of scenes, with inputs, values to sweep, frames and outputs.

    chunk = 10                           # options of the whole batch: flags count instead
    output = "clips/{name}.glb"          # of every job; from this file's folder

    [[jobs]]
    scene = "walk.toml"                  # or a table: the scene itself
    frames = "1-100:2"
    set = { "material.young" = 3e4 }     # keys of the scene that count instead
    sweep = { "material.poisson" = [0.3, 0.45], damping = [0.0, 0.02] }    # every combination is a job
    inputs = { "motion.file" = "motions/*.bvh" }                           # and so is every file

A job is called as its entry, or as its scene, with what was swept behind it: ``walk_poisson=0.3_damping=0``.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from pliant.app.batch.options import BatchOptions
from pliant.app.scene import document_in, engine_of
from pliant.app.scene.located_toml import TomlText, read_toml
from pliant.app.scene.output import Output
from pliant.app.scene.paths import absolute
from pliant.app.scene.schema import FileName, Key, ListOf, Named, Record, option_keys, read_as
from pliant.app.scene.writing import unwritten
from pliant.core.errors import FileError, InputError
from pliant.core.frame_ranges import FrameRanges
from pliant.core.options import Either, KeyPath, Text, shown
from pliant.engines.registry import ENGINES, engine_named
from pliant.io.naming import unique_name
from pliant.io.source import Source

MOST_JOBS = 100_000
"""Of one batch; more is taken for a typing error."""


@dataclass(frozen=True)
class _Anything:
    """Any value that a scene may have; the scene's own reader checks it."""

    expected: str = "a value of the scene's key"

    def takes(self, value: Any) -> bool:
        return True

    def read(self, value: Any, path: KeyPath = ()) -> Any:
        return value


_OUTPUT = Text("the name of a clip, .glb .usdc .pc2 .npz ..., with {name} for the job's")
_REPORT = Text("the name of a web page, .html, with {name} for the job's")
JOB = Record(
    {
        "name": Key(Text("a name"), "what the job is called; by default as its scene"),
        "scene": Key(
            Either((FileName("the name of a scene file, from this file's folder"), Named(_Anything(), "a table"))),
            "the scene: its file, or a table with all that one would say",
            required=True,
        ),
        "set": Key(
            Named(_Anything(), "a table from keys of the scene to values"),
            'keys of the scene that count instead, such as "material.young"; files from the scene\'s folder',
            default={},
        ),
        "sweep": Key(
            Named(ListOf(_Anything(), "a list of one or more values", least=1), "a table from keys to lists"),
            "keys of the scene with several values: a job for each, and for each combination of several keys",
            default={},
        ),
        "inputs": Key(
            Named(FileName("the name of a file or a glob, from this file's folder"), "a table from keys to files"),
            "keys of the scene with files: a job for each that a glob stands for",
            default={},
        ),
        "frames": Key(FrameRanges(), "which frames to make; by default those of the whole batch"),
        "output": Key(_OUTPUT, "where the clip goes, from this file's folder; by default that of the whole batch"),
        "report": Key(_REPORT, "a report to write, from this file's folder; by default that of the whole batch"),
    }
)
BATCH = Record(
    {
        "jobs": Key(ListOf(JOB, "one or more tables [[jobs]]", least=1), "the scenes to solve", required=True),
        "output": Key(_OUTPUT, "where clips go, from this file's folder", default="{name}.glb"),
        "report": Key(_REPORT, "reports to write, from this file's folder"),
        **option_keys(BatchOptions),
    }
)


@dataclass(frozen=True)
class BatchJob:
    """A scene to solve, and where its clip goes; all names of files are absolute."""

    name: str
    document: dict[str, Any] = field(repr=False)
    folder: str
    """Of the scene, which its errors and relative names start from."""
    output: str
    report: str | None = None
    frames: str | None = None
    """Which, as a text; None: all."""

    @property
    def outputs(self) -> tuple[str | None, ...]:
        """What it writes."""
        return self.output, self.report

    @property
    def engine(self) -> str:
        """The name of its engine."""
        return str(self.document["engine"])


@dataclass(frozen=True)
class Batch:
    """Jobs, and how they are to be computed."""

    file: Path
    jobs: tuple[BatchJob, ...]
    options: BatchOptions

    @property
    def work(self) -> Path:
        """The folder of chunks and logs."""
        given = self.options.work
        return self.file.with_suffix(".batch") if given is None else self.file.parent / given

    def only(self, names: list[str]) -> Batch:
        """The jobs of these names."""
        known = {job.name: job for job in self.jobs}
        for name in names:
            if name not in known:
                listed = ", ".join(list(known)[:6]) + (", ..." if len(known) > 6 else "")
                raise FileError(self.file, f'has no job "{name}"; it has {listed}')
        return replace(self, jobs=tuple(job for job in self.jobs if job.name in names))


def read_batch(path: str | os.PathLike[str], **flags: Any) -> Batch:
    """The jobs in a file; options that are given here, and not None, count instead of what it says."""
    file = Path(os.path.abspath(path))
    if not file.is_file():
        raise FileError(path, "there is no such file; expected a table of jobs, .toml")
    text = read_toml(Source(file))
    if "engine" in text.content:
        raise FileError(path, "is a scene, not a table of jobs; use: pliant run, or name it in [[jobs]]")
    config = read_as(BATCH, text, text.content, ())
    options = BatchOptions.read(config, **flags)
    jobs: list[BatchJob] = []
    taken: set[str] = set()
    for k, entry in enumerate(config["jobs"]):
        for job in _expanded(text, file.parent, k, config):
            if len(jobs) == MOST_JOBS:
                raise text.error(f"makes more than {MOST_JOBS:,} jobs; expected fewer", ("jobs", k))
            frames = flags.get("frames") or entry["frames"] or options.frames
            if frames and ENGINES[job.engine].frames is None:
                problem = f'the engine "{job.engine}" makes all frames in one go; leave them out'
                raise text.error(problem, ("jobs", k, "frames"))
            jobs.append(replace(job, name=unique_name(job.name, taken), frames=frames))
    batch = Batch(file, tuple(_placed(text, file.parent, job) for job in jobs), options)
    _check_apart(text, batch)
    return batch


def _expanded(text: TomlText, folder: Path, k: int, config: dict[str, Any]) -> Iterator[BatchJob]:
    """The jobs of entry k, their outputs still with {name}."""
    entry = config["jobs"][k]
    at: KeyPath = ("jobs", k)
    document, home, name = _scene(text, folder, entry, at)
    changed = {key: value for key, value in document.items() if key != "output"}
    for key, value in entry["set"].items():
        changed = _with(text, changed, key, value, (*at, "set", key))
    axes = [_input_axis(text, folder, key, name, (*at, "inputs", key)) for key, name in entry["inputs"].items()]
    axes += [[(key, value, _short(key, value)) for value in values] for key, values in entry["sweep"].items()]
    for choice in product(*axes):
        made = changed
        for key, value, _ in choice:
            made = _with(text, made, key, value, (*at, "inputs" if key in entry["inputs"] else "sweep", key))
        called = "_".join([entry["name"] or name, *(label for *_, label in choice)])
        with text.about((*at, "scene")):
            whole = absolute(made, home)
        output = entry["output"] or config["output"]
        yield BatchJob(_file_name(called), whole, str(home), output, entry["report"] or config["report"])


def _scene(text: TomlText, folder: Path, entry: dict[str, Any], at: KeyPath) -> tuple[dict[str, Any], Path, str]:
    """The document of an entry, its folder, and what it is called."""
    scene = entry["scene"]
    with text.about((*at, "scene")):
        if isinstance(scene, dict):
            engine_named(scene.get("engine"))
            return scene, folder, str(scene.get("title") or scene["engine"])
        file = folder / scene
        engine_of(file)
        return document_in(file), file.parent, file.stem


def _with(text: TomlText, document: dict[str, Any], key: str, value: Any, at: KeyPath) -> dict[str, Any]:
    """The document with another value at a key such as ``material.young`` or ``obstacles.0.what``."""
    first, _, rest = key.partition(".")
    inner: Any = document.get(first)
    if not rest:
        return {**document, first: value}
    if isinstance(inner, list):
        index, _, deeper = rest.partition(".")
        if not index.isdecimal() or int(index) >= len(inner):
            raise text.error(f'"{first}" is a list of {len(inner)}; expected {first}.0 to {first}.{len(inner) - 1}', at)
        entries = list(inner)
        entries[int(index)] = _with(text, entries[int(index)], deeper, value, at) if deeper else value
        return {**document, first: entries}
    if inner is not None and not isinstance(inner, dict):
        raise text.error(f'"{first}" is {shown(inner)}, which has no keys', at)
    return {**document, first: _with(text, inner or {}, rest, value, at)}


def _input_axis(text: TomlText, folder: Path, key: str, name: str, at: KeyPath) -> list[tuple[str, str, str]]:
    """Every file that a glob stands for, and what it adds to a job's name."""
    pattern = str(folder / name)
    files = sorted(glob.glob(pattern, recursive=True)) if glob.has_magic(name) else [pattern]
    if not files:
        raise text.error(f"is {name}, and no file is called so", at)
    return [(key, file, Path(file).stem) for file in files]


def _short(key: str, value: Any) -> str:
    """What a swept value adds to a job's name."""
    last = key.rpartition(".")[2]
    if isinstance(value, (list, dict)):
        value = "-".join(map(str, value.values() if isinstance(value, dict) else value))
    elif isinstance(value, str):
        value = Path(value).stem
    return f"{last}={value:g}" if isinstance(value, float) else f"{last}={value}"


def _file_name(name: str) -> str:
    """A name that every file system takes."""
    return re.sub(r"[^\w.,=+-]", "_", name)[:120].strip(".") or "job"


def _placed(text: TomlText, folder: Path, job: BatchJob) -> BatchJob:
    """The job with its own output."""
    output, report = (None if name is None else str(folder / _filled(text, name, job)) for name in job.outputs)
    return replace(job, output=output or "", report=report)


def _filled(text: TomlText, name: str, job: BatchJob) -> str:
    try:
        return name.format(name=job.name)
    except (AttributeError, LookupError, ValueError):
        raise text.error(f'is "{name}"; expected {{name}} and no other braces', ("output",)) from None


def _check_apart(text: TomlText, batch: Batch) -> None:
    """No two jobs write the same file, and none writes over what it reads."""
    owners: dict[str, str] = {}
    for job in batch.jobs:
        for file in filter(None, job.outputs):
            path = os.path.normpath(file)
            if path in owners:
                problem = f'"{owners[path]}" and "{job.name}" would both write {path}'
                raise text.error(f"{problem}; expected {{name}} in it, or an output of their own", ("output",))
            owners[path] = job.name
        try:
            Output(unwritten(job.document, job.folder)).check_not_read(job.output)
        except InputError as error:
            raise InputError(f'job "{job.name}": {error}') from None
