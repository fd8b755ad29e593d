"""How many faults the tests catch: random lines of the engines are changed, one at a time, and the suite is run.

    python benchmarks/mutation.py --count 200 [--seed 1] [--folder src/pliant/engines --folder src/pliant/contact]
    python benchmarks/mutation.py --tests OTHER/tests --tests tests --work FOLDER

1. The default suite runs once under coverage, which tells the tests that execute each line, and how long each takes.
2. A mutant is one change of one operation on a random line: ``+`` to ``-``, ``<`` to ``<=``, a number to another,
   ``and`` to ``or``, a negation dropped, a returned value lost. Lines that no test executes count as missed; those that
   run at import belong to all tests of their file.
3. The tests that execute the line run on a copy of the package, the quickest first, until one fails twice (the machine
   may be busy), or until ``--limit`` seconds of them have run ("undecided").

The same seed gives the same mutants. Several ``--tests`` compare versions of the tests, such as those of another
checkout: the last one is run first, and the others only where their answer may differ from it, since a test in a file
that both have does the same. It takes an hour or more: ``--work`` keeps what each file of tests executes and what
became of each mutant, and goes on from there, for as long as neither source nor tests change. Needs
``pip install coverage pytest-cov``.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import random
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, count as numbers
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "pliant"
ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.MatMult: ast.Mult}
COMPARISON = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
              ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}  # fmt: skip
BATCHES = (30, 100, 10_000)
"""Tests a process: most mutants fail one of the first, whose files are soon collected."""
FILES_AT_ONCE = 10
"""Whose coverage is found by one process, and lost if that does not end."""
HANGS = 4
"""Processor time, over that of the tests, at which a mutant counts as caught since it does not end."""
LONGEST_WAIT = 7200.0
"""By the clock, at which nothing is known: the machine may be busy."""
MODIFIED = numbers(1)


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    path: Path
    line: int
    what: str
    source: str


def mutant(path: Path, number: int) -> Mutant:
    """A file with one node changed: its number in the order of `ast.walk`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    node = list(ast.walk(tree))[number]
    return Mutant(path, node.lineno, _change(node), ast.unparse(tree))  # type: ignore[attr-defined]


def _change(node: ast.AST) -> str:
    """Change a node in place; what was done, or nothing if there is no rule for it."""
    if isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in ARITHMETIC:
        before, node.op = type(node.op).__name__, ARITHMETIC[type(node.op)]()
        return f"{before} to {type(node.op).__name__}"
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISON:
        before, node.ops[0] = type(node.ops[0]).__name__, COMPARISON[type(node.ops[0])]()
        return f"{before} to {type(node.ops[0]).__name__}"
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        node.value = node.value * 2 + 1
        return "a number"
    if isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return "and, or"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        node.op = ast.UAdd() if isinstance(node.op, ast.USub) else ast.Not()
        if isinstance(node.op, ast.Not):
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
        return "a negation dropped"
    if isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        node.value = ast.Constant(None)
        return "returned value lost"
    return ""


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def chosen(folders: list[Path], count: int, seed: int) -> list[Mutant]:
    """Random lines, one change of each."""
    by_line: dict[tuple[Path, int], list[int]] = {}
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        for number, node in enumerate(list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))):
            if _change(node):
                by_line.setdefault((path, node.lineno), []).append(number)  # type: ignore[attr-defined]
    generator = random.Random(seed)
    lines = generator.sample(sorted(by_line), min(count, len(by_line)))
    return [mutant(path, generator.choice(by_line[path, line])) for path, line in lines]


# Which tests execute a line


@dataclass
class Suite:
    """A folder of tests, and what they execute."""

    folder: Path
    seconds: dict[str, float]
    """By the test's id; every test that ran."""
    executed: dict[str, dict[int, list[str]]]
    """By the file in the package and the line."""

    @cached_property
    def files(self) -> dict[str, str]:
        return {path.name: path.read_text(encoding="utf-8") for path in self.folder.glob("*.py")}

    def tests(self, change: Mutant) -> list[str]:
        """Those that execute the line of a mutant, the quickest first."""
        lines = self.executed.get(str(change.path.relative_to(PACKAGE)), {})
        tests = set(lines.get(change.line, ()))
        if tests == {""}:  # at import
            tests = set().union(*lines.values())
        return sorted(tests & self.seconds.keys(), key=lambda test: self.seconds[test])

    def add(self, seconds: dict[str, float], executed: dict[str, dict[str, list[str]]]) -> None:
        """Further tests."""
        self.seconds |= seconds
        for path, lines in executed.items():
            for line, tests in lines.items():
                self.executed.setdefault(path, {}).setdefault(int(line), []).extend(tests)

    def shares(self, test: str, other: Suite) -> bool:
        """Whether a test stands in the same file of another suite."""
        name = file_of(test)
        return test in other.seconds and self.files[name] == other.files.get(name)


def file_of(test: str) -> str:
    """The name of a test's file."""
    return Path(test.partition("::")[0]).name


def mapped(folder: Path, work: Path, changed: list[Path]) -> Suite:
    """A suite with what it executes. work: where that is kept, by what stands in a file of tests.
    changed: folders of the package that are looked at."""
    suite = Suite(folder, {}, {})
    names = sorted(name for name in suite.files if name.startswith("test_"))
    kept = {name: work / f"{hashlib.sha1(suite.files[name].encode()).hexdigest()}.json" for name in names}
    missing = [name for name in names if not kept[name].exists()]
    for some in (missing[k : k + FILES_AT_ONCE] for k in range(0, len(missing), FILES_AT_ONCE)):
        with tempfile.TemporaryDirectory() as other:
            seconds, executed = run_covered(folder, [f"tests/{name}" for name in some], changed, Path(other))
        for name in some:
            own = {test: taken for test, taken in seconds.items() if file_of(test) == name}
            lines = {path: _of(lines, {*own, ""}) for path, lines in executed.items()}
            kept[name].write_text(json.dumps([own, lines]))
    for name in names:
        suite.add(*json.loads(kept[name].read_text()))
    return suite


def _of(lines: dict[int, list[str]], own: set[str]) -> dict[int, list[str]]:
    """Lines that some tests execute, with these."""
    return {line: found for line, tests in lines.items() if (found := [test for test in tests if test in own])}


def run_covered(
    tests: Path, files: list[str], changed: list[Path], folder: Path
) -> tuple[dict[str, float], dict[str, dict[int, list[str]]]]:
    """The seconds that each test takes, and the tests that execute each line of the folders."""
    data = folder / "coverage"
    within = "\n  ".join(map(str, changed))
    (folder / "coveragerc").write_text(f"[run]\nconcurrency = thread\ncore = ctrace\nsource =\n  {within}\n")
    command = [*pytest("--durations=0", "--durations-min=0", "-vv", "-rfE", "--tb=no"), *files]
    command += ["--cov", "--cov-context=test", "--cov-report=", f"--cov-config={folder / 'coveragerc'}"]
    done = subprocess.run(
        command, cwd=tests.parent, env=environment(PACKAGE.parent) | {"COVERAGE_FILE": str(data)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode not in (0, 1):
        raise SystemExit(
            f"{' '.join(command)}\nended with {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        )
    print(tests, ", ".join(files), done.stdout.strip().splitlines()[-1], flush=True)
    seconds: dict[str, float] = Counter()
    for taken, test in re.findall(r"^ *([\d.]+)s (?:call|setup) +(\S.*)$", done.stdout, re.MULTILINE):
        seconds[test] += float(taken)
    for test in _failed(done.stdout, seconds):
        del seconds[test]
    return seconds, _contexts(data)


def pytest(*options: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]


def environment(path: Path) -> dict[str, str]:
    """Of a process whose package is at a path."""
    more = filter(None, [str(path), os.environ.get("PYTHONPATH")])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(more), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def _contexts(data: Path) -> dict[str, dict[int, list[str]]]:
    """What coverage wrote, by file and line."""
    covered: dict[str, dict[int, list[str]]] = {}
    with sqlite3.connect(data) as base:
        rows = base.execute(
            "select file.path, context.context, line_bits.numbits from line_bits "
            "join file on file.id = line_bits.file_id join context on context.id = line_bits.context_id"
        )
        for path, context, bits in rows:
            lines = covered.setdefault(str(Path(path).relative_to(PACKAGE)), {})
            for byte, value in enumerate(bits):
                for bit in range(8):
                    if value >> bit & 1:
                        lines.setdefault(8 * byte + bit, []).append(context.rpartition("|")[0])
    return covered


# Whether a mutant is caught


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant."""

    word: str
    """ "caught", "missed", "undecided" or "not executed"."""
    test: str = ""
    """That caught it."""


def judge(change: Mutant, suite: Suite, tests: list[str], package: Path, limit: float) -> Verdict:
    """Run tests, quickest first, on the package with a change."""
    if not tests:
        return Verdict("not executed")
    enough = [test for test, end in zip(tests, accumulate(map(suite.seconds.get, tests)), strict=True) if end <= limit]
    enough = enough or tests[:1]
    file = package / change.path.relative_to(PACKAGE)
    try:
        file.write_text(change.source, encoding="utf-8")
        os.utime(file, (next(MODIFIED), next(MODIFIED)))  # compiled anew
        first = 0
        for size in BATCHES:
            batch, first = enough[first : first + size], first + size
            if batch and (verdict := _run(batch, suite, package, limit)):
                return verdict
    finally:
        shutil.copy2(change.path, file)
    return Verdict("missed" if len(enough) == len(tests) else "undecided")


def _run(tests: list[str], suite: Suite, package: Path, limit: float) -> Verdict | None:
    """The verdict, if one of the tests fails."""
    seconds = int(HANGS * (limit + 30))
    while True:
        try:
            done = subprocess.run(
                pytest("-x", "--tb=no", "-rfE", *tests),
                cwd=suite.folder.parent,
                env=environment(package.parent),
                capture_output=True,
                text=True,
                check=False,
                timeout=LONGEST_WAIT,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds)),
            )
        except subprocess.TimeoutExpired:
            return Verdict("undecided")
        if done.returncode in (0, 5):
            return None
        failed = _failed(done.stdout, tests)  # none if nothing can be imported, or it does not end
        if not failed or _fails(failed[0], suite, package, seconds):
            return Verdict("caught", failed[0] if failed else "")
        tests = [test for test in tests if test != failed[0]]
        if not tests:
            return None


def _fails(test: str, suite: Suite, package: Path, seconds: int) -> bool:
    """Whether a test fails again, by itself."""
    done = subprocess.run(
        pytest("--tb=no", test), cwd=suite.folder.parent, env=environment(package.parent), capture_output=True,
        check=False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds)),
    )  # fmt: skip
    return done.returncode not in (0, 5)


def _failed(output: str, tests: Iterable[str]) -> list[str]:
    """The tests that failed, by what pytest wrote."""
    lines = re.findall(r"^(?:FAILED|ERROR) (.*)$", output, re.MULTILINE)
    return [test for test in tests if any(line == test or line.startswith(f"{test} - ") for line in lines)]


def judge_all(change: Mutant, suites: list[Suite], package: Path, limit: float) -> list[Verdict]:
    """The verdict of every suite, the last one's first."""
    last = suites[-1]
    verdicts = [judge(change, last, last.tests(change), package, limit)]
    for suite in suites[-2::-1]:
        known, test = verdicts[-1], verdicts[-1].test
        tests = suite.tests(change)
        if known.word == "caught" and (not test or last.shares(test, suite)):
            verdicts.insert(0, known)
            continue
        if known.word == "caught":  # most likely by the same test as it was
            tests.sort(key=lambda other, test=test: other != test)  # type: ignore[misc]
        else:
            tests = [test for test in tests if not suite.shares(test, last)]
        found = judge(change, suite, tests, package, limit)
        unsure = found.word != "caught" and known.word in ("missed", "undecided") and found.word != "undecided"
        verdicts.insert(0, known if unsure else found)
    return verdicts


def copies(folder: Path, number: int) -> Iterable[Path]:
    """Copies of the package, in one of which a mutant lives."""
    for k in range(number):
        yield Path(shutil.copytree(PACKAGE, folder / str(k) / "src" / "pliant"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--folder", type=Path, action="append", help="where lines are changed (default: engines, contact)"
    )
    parser.add_argument("--tests", type=Path, action="append", help="a folder of tests (default: this checkout's)")
    parser.add_argument("--work", type=Path, help="folder that keeps what has been found, to go on from")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of tests for one mutant")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    folders = [folder.resolve() for folder in options.folder or [PACKAGE / "engines", PACKAGE / "contact"]]
    mutants = chosen(folders, options.count, options.seed)
    with tempfile.TemporaryDirectory() as name:
        work = options.work or Path(name)
        work.mkdir(exist_ok=True)
        tests = [folder.resolve() for folder in options.tests or [ROOT / "tests"]]
        suites = [mapped(folder, work, folders) for folder in reversed(tests)][::-1]
        free: SimpleQueue[Path] = SimpleQueue()
        for package in copies(Path(name), options.processes):
            free.put(package)

        def judged(change: Mutant) -> list[Verdict]:
            key = f"{change.path}:{change.line}\n{change.source}\n{tests}"
            kept = work / f"mutant-{hashlib.sha1(key.encode()).hexdigest()}.json"
            if not kept.exists():
                package = free.get()
                try:
                    found = judge_all(change, suites, package, options.limit)
                finally:
                    free.put(package)
                kept.write_text(json.dumps([(verdict.word, verdict.test) for verdict in found]))
            return [Verdict(*words) for words in json.loads(kept.read_text())]

        report(mutants, suites, ThreadPoolExecutor(options.processes).map(judged, mutants))


def report(mutants: list[Mutant], suites: list[Suite], verdicts: Iterable[list[Verdict]]) -> None:
    """A line for every mutant, and how many each suite catches."""
    tally = [Counter[str]() for _ in suites]
    for change, found in zip(mutants, verdicts, strict=True):
        for counter, verdict in zip(tally, found, strict=True):
            counter[verdict.word] += 1
        words = " | ".join(f"{verdict.word} {verdict.test}".strip() for verdict in found)
        print(f"{change.path.relative_to(ROOT)}:{change.line}  {change.what}: {words}", flush=True)
    for suite, counter in zip(suites, tally, strict=True):
        print(f"{suite.folder}: {counter['caught']} of {len(mutants)} mutants caught", dict(counter))


if __name__ == "__main__":
    main()
