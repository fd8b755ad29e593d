"""Deals cases out to workers, watches their time, and counts what became of them."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fuzz.corpus import Seed, build
from fuzz.mutate import mutated
from pliant.native.build import CHECKED, LIBRARY, build_library, is_stale

OUTCOMES = ("clean", "refused", "traceback", "hang", "crash", "memory")
BAD = OUTCOMES[2:]
MEMORY = 4 << 30
"""Bytes of address space that a worker may take on top of its imports."""
SECONDS = 10.0
"""Processor seconds that a file may take; by the clock twice as many, for a busy machine, before it is ended."""
SHARE = {".usda": 0.3, ".usdc": 0.3, ".usdz": 0.3, "scene": 0.5}
"""How often a row is drawn beside the others, where a case starts a process or builds an engine."""


@dataclass
class Case:
    """One broken file: its number, what it was made of, and what became of it."""

    number: int
    seed: Seed
    data: bytes
    then: str
    outcome: str = ""
    detail: str = ""


@dataclass
class Worker:
    """A process that reads files; it is started anew when it dies or is ended."""

    folder: Path
    corpus: Path
    """Where the whole files are, which the broken ones refer to."""
    bounds_check: bool
    command: tuple[str, ...] = (sys.executable, "-m", "fuzz.worker", str(MEMORY))
    process: subprocess.Popen[str] | None = None
    whole: list[Case] = field(default_factory=list)
    """Unbroken files, read at every start: they must be clean, and what is imported late is not timed with a case."""

    def examine(self, case: Case, patience: float = 2 * SECONDS) -> None:
        """Fill in what becomes of a case."""
        if self.process is None:
            self.start()
        assert self.process is not None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        file = self.folder / case.seed.name
        file.write_bytes(case.data)
        try:
            request = {"file": str(file), "role": case.seed.role, "then": case.then}
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            if not select.select([self.process.stdout], [], [], patience)[0]:
                case.outcome, case.detail = "hang", f"no answer in {patience:.0f} s"
            elif answer := self.process.stdout.readline():
                case.outcome, seconds, case.detail = json.loads(answer)
                if seconds > SECONDS and patience == 2 * SECONDS:
                    case.outcome, case.detail = "hang", f"{seconds:.0f} processor seconds; {case.detail}"
            else:
                case.outcome, case.detail = "crash", f"the process ended with {self.process.wait()}"
        except BrokenPipeError:
            case.outcome, case.detail = "crash", f"the process ended with {self.process.wait()}"
        if case.outcome in ("hang", "crash", "memory"):
            self.stop()
        for left in self.folder.iterdir():
            if left.name.endswith(".part"):
                case.outcome, case.detail = "traceback", f"left {left.name} behind"
                shutil.rmtree(left)

    def start(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *_paths()])}
        if self.bounds_check:
            environment["PLIANT_CHECK_BOUNDS"] = "1"
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
        )  # fmt: skip
        shutil.copytree(self.corpus, self.folder, dirs_exist_ok=True)
        for case in self.whole:
            self.examine(case, patience=600)
            if case.outcome in BAD or (case.outcome == "refused" and not case.then):
                raise RuntimeError(f"the whole file {case.seed.name} is {case.outcome}: {case.detail}")

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def _paths() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


def cases(seeds: dict[str, list[Seed]], seed: int, numbers: range) -> Iterator[Case]:
    """Case by number: which file, and how it is broken, depend on the campaign's seed and the number alone."""
    rows = sorted(seeds)
    share = np.array([SHARE.get(row, 1.0) for row in rows])
    for number in numbers:
        rng = np.random.default_rng([seed, number])
        row = seeds[rows[rng.choice(len(rows), p=share / share.sum())]]
        whole = row[rng.integers(len(row))]
        then = ("", "", "convert", "render")[rng.integers(4)]
        yield Case(number, whole, mutated(rng, whole.data), then)


def run(
    numbers: range, *, seed: int, data: Path | None, jobs: int, bounds_check: bool, keep: Path | None = None
) -> list[Case]:
    """Every case with its outcome, in order; those that end badly are kept as files in `keep`.

    bounds_check: with kernels that end the process at an index out of range.
    """
    kernels = CHECKED if bounds_check else LIBRARY
    if is_stale(kernels):
        build_library(kernels, checked=bounds_check)
    with tempfile.TemporaryDirectory(prefix="pliant-fuzz-") as folder:
        corpus = Path(folder, "corpus")
        seeds = build(corpus, data)
        whole = [Case(-1, row[0], row[0].data, then) for row in seeds.values() for then in ("", "convert", "render")]

        def share(job: int) -> list[Case]:
            worker = Worker(Path(folder, str(job)), corpus, bounds_check, whole=whole if job == 0 else [])
            done = []
            try:
                for case in cases(seeds, seed, numbers[job::jobs]):
                    worker.examine(case)
                    done.append(case)
                    if case.outcome in BAD and keep is not None:
                        keep.mkdir(parents=True, exist_ok=True)
                        (keep / f"{case.number}-{case.outcome}-{case.seed.name}").write_bytes(case.data)
                        print(f"case {case.number} ({case.seed.name}): {case.outcome}\n{case.detail}", file=sys.stderr)
            finally:
                worker.stop()
            return done

        if jobs == 1:
            return share(0)
        first = Worker(Path(folder, "first"), corpus, bounds_check, whole=whole)
        first.start()
        first.stop()
        with ThreadPoolExecutor(jobs) as pool:
            return sorted((c for part in pool.map(share, range(jobs)) for c in part), key=lambda case: case.number)


def table(done: list[Case]) -> str:
    """Rows of formats, columns of outcomes."""
    counts = Counter((case.seed.row, case.outcome) for case in done)
    rows = sorted({case.seed.row for case in done})
    lines = ["".join([f"{'format':10}", *(f"{outcome:>11}" for outcome in OUTCOMES)])]
    for row in [*rows, "all"]:
        found = [sum(n for (r, o), n in counts.items() if o == outcome and row in (r, "all")) for outcome in OUTCOMES]
        lines.append("".join([f"{row:10}", *(f"{n:>11,}" for n in found)]))
    return "\n".join(lines)
