"""What a first run costs: processor seconds of each command right after installation, and of the same command again.

Kernels are compiled at installation; what is left for the first run is Python's own bytecode. Prints a table of the
commands (first, second, difference, goal), and what building the kernels costs, source by source. Fails if a goal is
missed:
``pliant blend`` with a report at most 15 processor seconds above the second run, ``simulate`` and ``transfer`` 25,
``pliant --version`` 0.2 s by the clock.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from pliant.native import build

VERSION_GOAL = 0.2
SOURCES = 12
"""Lines of the list of sources."""


@dataclass(frozen=True)
class Command:
    """A command, and the processor seconds that its first run may take above the second."""

    words: tuple[str, ...]
    goal: float


COMMANDS = (
    Command(("info", "open.obj"), 15.0),
    Command(("blend", "open.obj", "fist.obj", "-o", "out.glb", "--report", "r.html", "--quiet"), 15.0),
    Command(("simulate", "body.obj", "-o", "sim.glb", "--skeleton", "bones.json", "--motion", "walk.npz",
             "--report", "s.html", "--quiet"), 25.0),
    Command(("transfer", "--source", "gallop.npz", "--target", "target.obj", "--auto", "-o", "moved.glb",
             "--report", "t.html", "--quiet"), 25.0),
)  # fmt: skip

INPUTS = """
import pliant
from pliant import gallery
hand = gallery.hand(2000)
pliant.write("open.obj", hand.named("open"))
pliant.write("fist.obj", hand.named("fist"))
pliant.write("body.obj", gallery.dinosaur(2000)[0])
pliant.write("bones.json", gallery.dinosaur_skeleton())
pliant.write("walk.npz", gallery.dinosaur_walk(frames=12))
pliant.write("gallop.npz", gallery.animal_gait(frames=12))
pliant.write("target.obj", gallery.animal(3000)[0])
"""


def run(words: tuple[str, ...], folder: Path, bytecode: Path) -> float:
    """Processor seconds of a command in a process of its own, with those of the processes that it starts."""
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-m", "pliant", *words], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPYCACHEPREFIX": str(bytecode)},
    )  # fmt: skip
    if done.returncode not in (0, 1):
        sys.exit(f"pliant {' '.join(words)} ended with {done.returncode}: {done.stderr[-2000:]}")
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def version_seconds() -> float:
    """Of ``pliant --version`` by the clock, the quickest of five."""
    seconds = []
    for _ in range(5):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-m", "pliant", "--version"], check=True, capture_output=True)
        seconds.append(time.perf_counter() - begun)
    return min(seconds)


def show_building(folder: Path) -> None:
    """Processor seconds that the compiler takes for each source, one after the other."""
    spent = {}
    for source in build.sources():
        before = os.times().children_user
        build.compile_source(source, folder / "kernel.o")
        spent[source.relative_to(build.PACKAGE).as_posix()] = os.times().children_user - before
    for name, seconds in sorted(spent.items(), key=lambda item: -item[1])[:SOURCES]:
        print(f"    {seconds:6.2f}  {name}")
    print(f"    {sum(spent.values()):6.2f}  all {len(spent)} sources, once, at installation", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="commands whose name begins so")
    options = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-W", "ignore", "-c", INPUTS], cwd=folder, check=True)
        print(f"{'command':18} {'first':>8} {'second':>8} {'above':>8} {'goal':>6}   (processor seconds)")
        for number, command in enumerate(COMMANDS):
            if options.only and not command.words[0].startswith(options.only):
                continue
            first, second = (run(command.words, folder, folder / f"bytecode-{number}") for _ in range(2))
            above = first - second
            missed += above > command.goal
            verdict = "missed" if above > command.goal else ""
            title = f"pliant {command.words[0]}"
            print(f"{title:18} {first:8.1f} {second:8.1f} {above:8.1f} {command.goal:6.0f} {verdict}", flush=True)
        seconds = version_seconds()
        missed += seconds > VERSION_GOAL
        print(f"{'pliant --version':18} {seconds:8.2f} s by the clock, goal {VERSION_GOAL}")
        if not options.only:
            print("building the kernels")
            show_building(folder)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
