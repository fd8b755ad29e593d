"""What a first run costs: processor seconds of each command with no compiled kernel on disk, and with all of them.

Prints a table of commands (cold, warm, difference, goal), the kernels that took longest to compile, and fails if a goal
is missed. Goals are on processor seconds, which a busy machine hardly changes: ``pliant blend`` with a report at most
15 s above the second run, ``simulate`` and ``transfer`` 25 s, ``pliant --version`` 0.2 s.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

KERNELS = 12
"""Lines of the list of kernels."""


@dataclass(frozen=True)
class Command:
    """A command, and the processor seconds that compiling may add to it."""

    words: tuple[str, ...]
    goal: float

    @property
    def name(self) -> str:
        return " ".join(("pliant", self.words[0]))


COMMANDS = (
    Command(("info", "open.obj"), 15.0),
    Command(("blend", "open.obj", "fist.obj", "-o", "out.glb", "--report", "r.html", "--quiet"), 15.0),
    Command(("simulate", "body.obj", "-o", "sim.glb", "--skeleton", "bones.json", "--motion", "walk.npz",
             "--report", "s.html", "--quiet"), 25.0),
    Command(("transfer", "--source", "gallop.npz", "--target", "target.obj", "--auto", "-o", "moved.glb",
             "--report", "t.html", "--quiet"), 25.0),
)  # fmt: skip
VERSION_GOAL = 0.2

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

CHILD = """
import json, os, sys, time
from collections import Counter
spent, stack = Counter(), []
def watch():
    from numba.core import event
    class Listener(event.Listener):
        def on_start(self, e):
            stack.append([time.process_time(), 0.0])
        def on_end(self, e):
            begun, inner = stack.pop()
            took = time.process_time() - begun
            if stack:
                stack[-1][1] += took
            f = e.data["dispatcher"].py_func
            spent[f"{f.__module__}.{f.__qualname__}"] += took - inner
    event.register("numba:compile", Listener())
out = sys.argv.pop(1)
if os.environ.get("WATCH_COMPILING"):
    watch()
from pliant.cli import main
try:
    main(sys.argv[1:])
finally:
    t = os.times()
    with open(out, "w") as stream:
        json.dump([t.user + t.system + t.children_user + t.children_system, spent], stream)
"""


def run(words: tuple[str, ...], folder: Path, cache: Path, *, watch: bool) -> tuple[float, Counter[str]]:
    """Processor seconds of a command in a process of its own, and those of each kernel that it compiled."""
    out = folder / "seconds.json"
    watched = {"WATCH_COMPILING": "1"} if watch else {}
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": "1", **watched}
    command = [sys.executable, "-c", CHILD, str(out), *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(words)} ended with {done.returncode}: {done.stderr[-2000:]}")
    seconds, kernels = json.loads(out.read_text())
    return seconds, Counter(kernels)


def version_seconds() -> float:
    """Of ``pliant --version`` by the clock, the quickest of five."""
    timer = "import subprocess, sys, time; t = time.perf_counter(); "
    timer += "subprocess.run([sys.executable, '-m', 'pliant', '--version'], check=True); print(time.perf_counter() - t)"
    runs = (subprocess.run([sys.executable, "-c", timer], capture_output=True, text=True, check=True) for _ in range(5))
    return min(float(done.stdout.split()[-1]) for done in runs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="commands whose name begins so")
    options = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-c", INPUTS], cwd=folder, check=True)
        print(f"{'command':18} {'cold':>8} {'warm':>8} {'above':>8} {'goal':>6}   (processor seconds)")
        for number, command in enumerate(COMMANDS):
            if options.only and not command.words[0].startswith(options.only):
                continue
            cache = folder / f"kernels-{number}"
            cold, kernels = run(command.words, folder, cache, watch=True)
            warm, _ = run(command.words, folder, cache, watch=False)
            missed += cold - warm > command.goal
            verdict = "missed" if cold - warm > command.goal else ""
            print(
                f"{command.name:18} {cold:8.1f} {warm:8.1f} {cold - warm:8.1f} {command.goal:6.0f} {verdict}",
                flush=True,
            )
            for kernel, seconds in kernels.most_common(KERNELS):
                print(f"    {seconds:6.2f}  {kernel}")
            print(f"    {sum(kernels.values()):6.2f}  all {len(kernels)} kernels", flush=True)
    seconds = version_seconds()
    missed += seconds > VERSION_GOAL
    print(f"{'pliant --version':18} {seconds:8.2f} s by the clock, goal {VERSION_GOAL}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
