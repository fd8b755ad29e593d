"""What a batch keeps on disk, called by what it was made from: prepared solvers, solved frames, finished jobs.

A job's key is the hash of its name, its document with the content of files instead of their names, and of the
versions of what computes. So a key stands for one result, whoever computes it, and what is there under it is right:
files appear whole or not at all (`pliant.io.output.staged`), and carry the hash of their content.

    WORK/prepared/<key>             the scene and its solver
    WORK/frames/<key>/1-10          what the solver found in these frames
    WORK/jobs/<key>.json            how many frames there are, and how they can be divided
    WORK/finished/<name>.json       what a finished job wrote, and its figures
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import pickle
import platform
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pliant import __version__
from pliant.app.batch.jobs import BatchJob
from pliant.app.scene.paths import files_named, renamed_files
from pliant.core.errors import FileError
from pliant.core.frame_ranges import frames_in, range_text
from pliant.io.output import staged

SOLVER_PACKAGES = ("cholespy", "pypardiso")
"""Extras that results depend on to the last bits."""


MOST_PREPARED = 10 << 30
"""Bytes of all solvers that are kept."""


def versions() -> dict[str, str]:
    """Of all that results depend on to the last bits."""
    return {
        "pliant": __version__,
        "Python": platform.python_version(),
        "machine": platform.machine(),
        **{name: _version(name) for name in ("numpy", "scipy", *SOLVER_PACKAGES)},
    }


@lru_cache
def _version(name: str) -> str:
    if importlib.util.find_spec(name) is None:
        return "none"
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def job_key(job: BatchJob) -> str:
    """The hash of a job's name and all that its frames depend on: not where its files are, nor where its clip goes."""
    folder = Path(job.folder)
    content = renamed_files(job.document, lambda name: _content_hash(name, folder), folder)
    return _hashed(json.dumps([job.name, versions(), content], sort_keys=True).encode())


def _content_hash(name: str, folder: Path) -> str:
    """Of all files that are read for a name; the name's own last part counts, for formats go by it."""
    files = [(Path(file).name, _file_hash(str(file), *_stamp(file))) for file in files_named(name, folder)]
    plain = Path(name)  # tables and the like, which are no models
    if not files and plain.is_file():
        files = [(plain.name, _file_hash(name, *_stamp(plain)))]
    return json.dumps([Path(name).name, files])


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


@lru_cache(4096)
def _file_hash(path: str, changed: int, size: int) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _hashed(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:24]


@dataclass(frozen=True)
class Store:
    """The folder of a batch."""

    folder: Path

    # Prepared solvers

    def prepared(self, key: str) -> Any:
        """The scene and its solver; None if they are not there."""
        return _load(self.folder / "prepared" / key)

    def keep_prepared(self, key: str, prepared: Any) -> None:
        """Keep a scene and its solver, if there is a place for it; whoever needs it can make it again."""
        with suppress(FileError, pickle.PicklingError, TypeError, AttributeError):
            _dump(self.folder / "prepared" / key, prepared)

    def trim_prepared(self) -> None:
        """Remove the solvers that were made first, as far as all together are large."""
        with suppress(FileNotFoundError):  # another worker was quicker
            files = sorted((self.folder / "prepared").glob("[!.]*"), key=lambda file: file.stat().st_mtime_ns)
            sizes = [file.stat().st_size for file in files]
            while sum(sizes) > MOST_PREPARED:
                files.pop(0).unlink()
                sizes.pop(0)

    # Facts of jobs

    def plan(self, key: str) -> dict[str, Any] | None:
        """How many frames a job has, and how they are divided; None if that is not known yet."""
        return _read_json(self.folder / "jobs" / f"{key}.json")

    def keep_plan(self, key: str, plan: dict[str, Any]) -> None:
        """Keep these facts."""
        _write_json(self.folder / "jobs" / f"{key}.json", plan)

    # Solved frames

    def _frames_folder(self, key: str) -> Path:
        return self.folder / "frames" / key

    def keep_frames(self, key: str, frames: range, results: list[Any], seconds: float) -> None:
        """Keep what the solver found in some frames, and how long it took."""
        _dump(self._frames_folder(key) / _chunk_name(frames), (results, seconds))

    def chunks(self, key: str) -> list[range]:
        """The chunks that are there, by their first frame."""
        folder = self._frames_folder(key)
        names = [entry.name for entry in os.scandir(folder)] if folder.is_dir() else []
        found = [_chunk_frames(name) for name in names if not name.startswith(".")]
        return sorted(filter(None, found), key=lambda frames: (frames[0], frames[-1]))

    def frames(self, key: str, chosen: Iterable[int]) -> tuple[dict[int, Any], float]:
        """What is known of the chosen frames, and how long their chunks took. A chunk that is damaged is removed."""
        wanted, found, total = set(chosen), dict[int, Any](), 0.0
        for chunk in self.chunks(key):
            if wanted.isdisjoint(chunk):
                continue
            file = self._frames_folder(key) / _chunk_name(chunk)
            kept = _load(file)
            if kept is None:
                file.unlink(missing_ok=True)
                continue
            results, seconds = kept
            found |= {k: result for k, result in zip(chunk, results, strict=True) if k in wanted}
            wanted -= found.keys()
            total += seconds
        return found, total

    def forget_frames(self, key: str) -> None:
        """Remove a job's frames."""
        shutil.rmtree(self._frames_folder(key), ignore_errors=True)

    # Finished jobs

    def finished(self, job: BatchJob, key: str, frames: str | None) -> dict[str, Any] | None:
        """The record of a job whose clip is there as it was written, from the same inputs; None if it is not."""
        record = _read_json(self.folder / "finished" / f"{job.name}.json")
        same = key, frames, [job.output, job.report]
        if record is None or (record["key"], record["chosen"], record.get("outputs")) != same:
            return None
        return record if all(_is_unchanged(Path(name), size) for name, size in record["written"]) else None

    def keep_finished(self, name: str, record: dict[str, Any]) -> None:
        """Keep the record of a job that is done."""
        _write_json(self.folder / "finished" / f"{name}.json", record)

    def remove(self) -> None:
        """Remove all that is kept."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def forget(self, name: str, key: str) -> None:
        """Remove all that is known of a job but its set-up."""
        (self.folder / "finished" / f"{name}.json").unlink(missing_ok=True)
        self.forget_frames(key)
        if plan := self.plan(key):
            self.keep_plan(key, {fact: value for fact, value in plan.items() if fact != "ends"})


def _is_unchanged(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def _chunk_name(frames: range) -> str:
    return range_text(frames).replace(":", "x")  # Windows has no colons


def _chunk_frames(name: str) -> range | None:
    try:
        found = frames_in(name.replace("x", ":"), 10**9)
    except ValueError:
        return None
    return range(found[0], found[-1] + 1, found[1] - found[0] if len(found) > 1 else 1)


# Files


def _dump(path: Path, value: Any) -> None:
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    with staged(path) as stage:
        stage.write_bytes(hashlib.sha256(data).digest() + data)


def _load(path: Path) -> Any:
    """What a file holds; None if it is not there, or damaged."""
    try:
        data = memoryview(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileError(path, f"cannot be read ({(error.strerror or str(error)).lower()})") from error
    return pickle.loads(data[32:]) if hashlib.sha256(data[32:]).digest() == data[:32] else None


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


def _write_json(path: Path, value: Any) -> None:
    with staged(path) as stage:
        stage.write_text(json.dumps(value, allow_nan=False), encoding="utf-8")
