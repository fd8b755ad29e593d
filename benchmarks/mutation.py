"""How many faults the tests catch: random lines of the engines are changed, one at a time, and the suite is run.

    python benchmarks/mutation.py --count 200 [--seed 1] [--folder src/pliant/engines --folder src/pliant/contact]

1. The default suite runs once under coverage, which tells the tests that execute each line, and how long each takes.
2. A mutant is one change of one operation on a random line: ``+`` to ``-``, ``<`` to ``<=``, a number to another,
   ``and`` to ``or``, a negation dropped, a returned value lost. Lines that no test executes count as missed; those that
   run at import belong to all tests of their file.
3. The tests that execute the line run on a copy of the package, the quickest first, until one fails.

The same seed gives the same mutants as long as the source is the same, so two versions of the tests can be compared:
``--tests OTHER`` takes the tests of another checkout. Needs ``pip install coverage pytest-cov``.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.MatMult: ast.Mult}
COMPARISON = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
              ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}  # fmt: skip


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


def run_covered(tests: Path, folder: Path) -> tuple[dict[str, dict[int, set[str]]], dict[str, float]]:
    """The tests that execute each line of each file, and the seconds that each test takes."""
    data = folder / "coverage"
    (folder / "coveragerc").write_text("[run]\nconcurrency = thread\ncore = ctrace\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        str(tests),
        "-n",
        "auto",
        "--durations=0",
        "-q",
        "-p",
        "no:cacheprovider",
    ]
    command += [f"--cov={ROOT / 'src' / 'pliant'}", "--cov-context=test", "--cov-report="]
    command += [f"--cov-config={folder / 'coveragerc'}"]
    environment = {**os.environ, "COVERAGE_FILE": str(data), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=tests.parent, env=environment, capture_output=True, text=True, check=False)
    print(done.stdout.strip().splitlines()[-1], flush=True)
    seconds: dict[str, float] = Counter()
    for line in done.stdout.splitlines():
        parts = line.split(maxsplit=2)
        if len(parts) == 3 and parts[1] in ("call", "setup") and parts[0].endswith("s"):
            seconds[parts[2]] += float(parts[0][:-1])
    return _contexts(data), seconds


def _contexts(data: Path) -> dict[str, dict[int, set[str]]]:
    """What coverage wrote, by file and line."""
    covered: dict[str, dict[int, set[str]]] = {}
    with sqlite3.connect(data) as base:
        rows = base.execute(
            "select file.path, context.context, line_bits.numbits from line_bits "
            "join file on file.id = line_bits.file_id join context on context.id = line_bits.context_id"
        )
        for path, context, bits in rows:
            test = context.partition("|")[0]
            for byte, value in enumerate(bits):
                for bit in range(8):
                    if value >> bit & 1:
                        covered.setdefault(path, {}).setdefault(8 * byte + bit, set()).add(test)
    return covered


def is_caught(change: Mutant, tests: list[str], seconds: dict[str, float], suite: Path, limit: float) -> str:
    """ "caught", "missed", or "slow" if the tests that there was time for did not see it."""
    with tempfile.TemporaryDirectory() as name:
        package = Path(name) / "src" / "pliant"
        shutil.copytree(ROOT / "src" / "pliant", package, ignore=shutil.ignore_patterns("__pycache__"))
        (package / change.path.relative_to(ROOT / "src" / "pliant")).write_text(change.source, encoding="utf-8")
        end, ordered = time.monotonic() + limit, sorted(tests, key=lambda test: seconds.get(test, 0.0))
        for first in range(0, len(ordered), 40):
            left = end - time.monotonic()
            if left <= 0:
                return "slow"
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-x",
                "-q",
                "-p",
                "no:cacheprovider",
                *ordered[first : first + 40],
            ]
            environment = {**os.environ, "PYTHONPATH": str(package.parent), "OMP_NUM_THREADS": "1"}
            try:
                done = subprocess.run(
                    command, cwd=suite.parent, env=environment, capture_output=True, timeout=max(left, 20), check=False
                )
            except subprocess.TimeoutExpired:
                return "caught"  # it hangs, or is slower than all of its tests together
            if done.returncode == 1:
                return "caught"
            if done.returncode not in (0, 5):
                return "caught"  # it does not even import
        return "missed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--folder", type=Path, action="append", help="where lines are changed (default: engines, contact)"
    )
    parser.add_argument("--tests", type=Path, default=ROOT / "tests")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for the tests of one mutant")
    options = parser.parse_args()
    folders = options.folder or [ROOT / "src" / "pliant" / "engines", ROOT / "src" / "pliant" / "contact"]
    mutants = chosen([folder.resolve() for folder in folders], options.count, options.seed)
    with tempfile.TemporaryDirectory() as name:
        covered, seconds = run_covered(options.tests.resolve(), Path(name))
    tally: Counter[str] = Counter()

    def judged(change: Mutant) -> tuple[Mutant, str]:
        lines = covered.get(str(change.path), {})
        tests = lines.get(change.line, set())
        if tests == {""}:  # at import
            tests = set().union(*lines.values())
        tests = tests - {""}
        if not tests:
            return change, "not executed"
        return change, is_caught(change, sorted(tests), seconds, options.tests.resolve(), options.limit)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for change, verdict in pool.map(judged, mutants):
            tally[verdict] += 1
            if verdict != "caught":
                print(f"{verdict:>12}  {change.path.relative_to(ROOT)}:{change.line}  {change.what}", flush=True)
    print(f"\n{tally['caught']} of {len(mutants)} mutants caught", dict(tally))


if __name__ == "__main__":
    main()
