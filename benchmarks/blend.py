"""Table 1 of Ma et al. (2011) again: blending in 36 steps, pliant beside the paper's own method, in one run.

    python benchmarks/blend.py                 # every shape of the table, then cost against size
    python benchmarks/blend.py cat horse       # some of them
    python benchmarks/blend.py --every 1       # the paper's method at every frame, not at every ninth

Gallery shapes stand in for the paper's at its vertex counts; where ``PLIANT_DATA`` (or ../shared/data) has them, the
real cat and horse are used, which are the paper's own. The paper's method is Newton–Raphson on the full stiffness
matrix, factorised by PARDISO (its symbolic analysis is kept within a frame while the matrix is definite), starting
from the equilibrium of the frame before; it is given that for nothing. pliant's time includes the knots its frames
start from, shared out over the 36 frames.

Both minimise the same energy. What is compared is when they come within an excess of it,

    (E - E*) / (E_linear - E*),     E* the lowest energy that any method found for the frame,

and within a distance of it, that of the farthest vertex over the size of the shape. ``"paper"`` rows use the energy of
Eq. (1) alone, ``"turned"`` rows pliant's default. A plot of excess against time is written to benchmarks/blend.svg.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import pliant
from pliant import Blendshapes, Shapes, gallery
from pliant.engines.blend.equilibrium import Objective, farthest, lbfgs, newton, paper_newton
from pliant.engines.blend.options import BlendOptions
from pliant.engines.blend.statics import KNOT_LEVELS

STEPS = 36
LEVELS = (1e-3, 1e-5)
"""Of the excess."""
DISTANCE = 1e-3
DATA = Path(os.environ.get("PLIANT_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "poses"


@dataclass(frozen=True)
class Row:
    """A row of the paper's table."""

    vertices: int
    springs: int
    seconds: float
    """A step, by the paper's CPU in 2011."""
    shapes: Callable[[], Shapes]


def pair(shapes: Shapes, name: str) -> Shapes:
    return Shapes.of([shapes.base, shapes.named(name)])


def real(animal: str, pose: str) -> Shapes:
    return Shapes.of([pliant.read_mesh(DATA / animal / f"{animal}-{name}.obj") for name in ("ref", pose)])


def rows() -> dict[str, Row]:
    table = {
        "man": Row(2200, 21600, 2.23, lambda: pair(gallery.gingerbread(2000), "bowing")),
        "face": Row(8100, 65100, 40.11, lambda: pair(gallery.face(8100), "surprise")),
        "animal, cat's size": Row(7300, 81700, 67.58, lambda: pair(gallery.animal(5900), "gallop 1")),
        "animal, horse's size": Row(8500, 96100, 81.36, lambda: pair(gallery.animal(6700), "gallop 1")),
        "hand": Row(18600, 150400, 153.99, lambda: pair(gallery.hand(14000), "fist")),
    }
    if (DATA / "cat").is_dir():
        table["cat (real)"] = Row(7300, 81700, 67.58, lambda: real("cat", "01"))
    if (DATA / "horse").is_dir():
        table["horse (real)"] = Row(8500, 96100, 81.36, lambda: real("horse", "03"))
    return table


class ReachedError(Exception):
    """A method has come to the energy that was asked of it."""


@dataclass
class Trace:
    """Energies against time."""

    started: float = field(default_factory=time.perf_counter)
    seconds: list[float] = field(default_factory=list)
    energies: list[float] = field(default_factory=list)
    shapes: list[np.ndarray] = field(default_factory=list)

    def watch(self, x: np.ndarray, energy: float) -> None:
        self.seconds.append(time.perf_counter() - self.started)
        self.energies.append(energy)
        self.shapes.append(x)

    def when(self, energy: float) -> float:
        """Seconds until an energy was reached; infinity if it never was."""
        return next((t for t, e in zip(self.seconds, self.energies, strict=True) if e <= energy), np.inf)

    def near(self, x: np.ndarray, distance: float) -> float:
        """Seconds until all vertices were so near to x; infinity if they never were."""
        pairs = zip(self.seconds, self.shapes, strict=True)
        return next((t for t, y in pairs if np.isfinite(y).all() and farthest(y - x) <= distance), np.inf)


@dataclass
class Frame:
    """One frame, solved by everything."""

    weights: np.ndarray
    lowest: float
    linear: float
    equilibrium: np.ndarray

    def level(self, excess: float) -> float:
        return self.lowest + excess * (self.linear - self.lowest)


def energy(rig: Blendshapes, x: np.ndarray, w: np.ndarray) -> float:
    return rig.body.network.energy(np.ascontiguousarray(x), rig.body.rest(w), np.empty_like(x))


def deepest(rig: Blendshapes, w: np.ndarray) -> Frame:
    """The frame's equilibrium by long L-BFGS and Newton, whichever ends lower."""
    body, rest = rig.body, rig.body.rest(w)
    linear = energy(rig, body.linear(w), w)
    objective = Objective(body.network, rest)
    first = lbfgs(objective, body.guess(w), tolerance=1e-7 * body.size, iterations=400)
    last = newton(objective, first.x, tolerance=1e-10 * body.size, iterations=12)
    best = min(first, last, key=lambda outcome: outcome.energy)
    return Frame(w, best.energy, linear, best.x)


def paper_step(rig: Blendshapes, before: np.ndarray, w: np.ndarray) -> tuple[Trace, np.ndarray]:
    """The paper's method at one frame, from the shape before."""
    trace = Trace()
    objective = Objective(rig.body.network, rig.body.rest(w))
    trace.watch(before, energy(rig, before, w))
    outcome = paper_newton(objective, before, tolerance=1e-7 * rig.body.size, iterations=25, watch=trace.watch)
    return trace, outcome.x


def our_frames(
    rig: Blendshapes, frames: dict[int, Frame], reached: Callable[[Frame, np.ndarray, float], bool]
) -> tuple[float, int]:
    """Seconds a step over the whole clip, knots included, until it has `reached` a goal; and how many frames did."""
    rig.statics.correctives._knots.clear()
    started, met, counted = time.perf_counter(), 0, 0.0
    rig.prepare(rig.path(2**KNOT_LEVELS + 1))
    knots = (time.perf_counter() - started) / STEPS
    for frame in frames.values():
        began = time.perf_counter()
        x = rig.statics.start(frame.weights, BlendOptions.accuracy)
        objective = Objective(rig.body.network, rig.body.rest(frame.weights))

        def watch(y: np.ndarray, now: float, frame: Frame = frame) -> None:
            if reached(frame, y, now):
                raise ReachedError

        try:
            watch(x, objective.evaluate(x, np.empty_like(x)))
            lbfgs(objective, x, tolerance=1e-9 * rig.body.size, iterations=300, watch=watch)
        except ReachedError:
            met += 1
        counted += time.perf_counter() - began
    return knots + counted / len(frames), met


def preview(rig: Blendshapes) -> float:
    """Frames a second of the guess alone, placed in the world."""
    body, table = rig.body, rig.path(STEPS)
    body.frames.placed(body.guess(table[1]), table[1])
    started = time.perf_counter()
    for w in table[1:-1]:
        body.frames.placed(body.guess(w), w)
    return (STEPS - 2) / (time.perf_counter() - started)


def compare(name: str, row: Row, model: str, every: int, curves: list) -> None:
    shapes = row.shapes()
    started = time.perf_counter()
    rig = Blendshapes(shapes, model=model)
    assert rig.body.network.factor is not None  # factorised here, as part of setting up
    setup = time.perf_counter() - started
    table = rig.path(STEPS)
    frames: dict[int, Frame] = {}
    paper: dict[int, Trace] = {}
    apart = []
    for k in range(every, STEPS - 1, every):
        frame = deepest(rig, table[k])
        before = deepest(rig, table[k - 1]).equilibrium
        trace, x = paper_step(rig, before, table[k])
        finite = [e for e in trace.energies if np.isfinite(e)]
        frame.lowest = min([frame.lowest, *finite])
        if finite and trace.energies[-1] <= frame.level(1e-6):
            apart.append(np.abs(x - frame.equilibrium).max() / rig.body.diagonal)
        frames[k], paper[k] = frame, trace
    steps = np.median(np.concatenate([np.diff(t.seconds) for t in paper.values()]))
    cells = [f"{name:20s} {model:6s}", f"{rig.body.network.count:6d} {len(rig.springs):7d}", f"{row.seconds:7.2f}"]
    for excess in LEVELS:
        ours = our_frames(rig, frames, lambda frame, _, e, excess=excess: e <= frame.level(excess))
        cells.append(compared([paper[k].when(frames[k].level(excess)) for k in frames], ours))
    distance = DISTANCE * rig.body.size
    ours = our_frames(rig, frames, lambda frame, x, _: farthest(x - frame.equilibrium) <= distance)
    cells.append(compared([paper[k].near(frames[k].equilibrium, distance) for k in frames], ours))
    cells.append(f"{preview(rig):5.0f} fps  {setup:5.2f} s = {setup / steps:4.1f} steps")
    cells.append(f"{max(apart):.0e}" if apart else "-")
    print("  ".join(cells), flush=True)
    middle = min(frames, key=lambda k: abs(k - STEPS // 2))
    curves.append((f"{name}, {model}", frames[middle], paper[middle], our_trace(rig, frames[middle])))


def compared(theirs: list[float], ours: tuple[float, int]) -> str:
    """Seconds a step of the paper's method and of ours, each with how many frames came so far, and their ratio."""
    got = [t for t in theirs if np.isfinite(t)]
    mean, (seconds, reached) = np.mean(got) if got else np.inf, ours
    return f"{mean:7.2f} ({len(got)}/{len(theirs)}) {seconds:7.3f} ({reached}/{len(theirs)}) {mean / seconds:6.1f}x"


def our_trace(rig: Blendshapes, frame: Frame) -> Trace:
    """Energy against time of one frame from the guess, without knots."""
    rig.body.__dict__.pop("_vectors", None)
    trace = Trace()
    x = rig.body.guess(frame.weights)
    objective = Objective(rig.body.network, rig.body.rest(frame.weights))
    trace.watch(x, objective.evaluate(x, np.empty_like(x)))
    lbfgs(objective, x, tolerance=1e-7 * rig.body.size, iterations=200, watch=trace.watch)
    return trace


def plot(curves: list, path: Path) -> None:
    """Excess energy against time, both axes logarithmic."""
    width, height, rows = 360, 240, (len(curves) + 2) // 3
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{3 * width}" height="{rows * height}" font-size="11">']
    for number, (title, frame, paper, ours) in enumerate(curves):
        left, top = (number % 3) * width + 40, (number // 3) * height + 30
        w, h = width - 60, height - 70
        parts.append(f'<text x="{left}" y="{top - 8}">{title}</text>')
        parts.append(f'<rect x="{left}" y="{top}" width="{w}" height="{h}" fill="none" stroke="#999"/>')
        for power in range(-6, 1, 2):
            y = top + h * (-power) / 6
            parts.append(f'<text x="{left - 34}" y="{y + 4}">1e{power}</text>')
        for power in range(-2, 3):
            parts.append(f'<text x="{left + w * (power + 2) / 4 - 8}" y="{top + h + 14}">{10.0**power:g} s</text>')
        for trace, colour in ((paper, "#b03a2e"), (ours, "#1f6fb2")):
            points = []
            for t, e in zip(trace.seconds, trace.energies, strict=True):
                excess = np.clip((e - frame.lowest) / (frame.linear - frame.lowest), 1e-6, 1)
                x = np.clip((np.log10(t) + 2) / 4, 0, 1)
                points.append(f"{left + w * x:.1f},{top + h * -np.log10(excess) / 6:.1f}")
            parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{" ".join(points)}"/>')
    path.write_text("\n".join([*parts, "</svg>"]), encoding="utf-8")


def sizes() -> None:
    """Cost against size: animals from 2k to 200k vertices."""
    print(f"\n{'vertices':>9s} {'springs':>9s} {'set-up':>8s} {'frame':>8s} {'peak memory':>12s}")
    counts, setups, frames = [], [], []
    for count in (2_000, 6_000, 20_000, 60_000, 200_000):
        shapes = pair(gallery.animal(count), "gallop 1")
        started = time.perf_counter()
        rig = Blendshapes(shapes)
        assert rig.body.network.factor is not None
        setup = time.perf_counter() - started
        rig.body.guess(rig.path(5)[1])
        started = time.perf_counter()
        rig.solve([0.5, 0.5])
        frame = time.perf_counter() - started
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        counts.append(rig.body.network.count)
        setups.append(setup)
        frames.append(frame)
        print(
            f"{rig.body.network.count:9d} {len(rig.springs):9d} {setup:6.2f} s {frame:6.2f} s {memory:8.2f} GiB",
            flush=True,
        )
    for what, seconds in (("set-up", setups), ("a frame", frames)):
        print(f"{what} grows as size to the {np.polyfit(np.log(counts), np.log(seconds), 1)[0]:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", help="words in the names of the rows to run; all of them if none")
    parser.add_argument("--every", type=int, default=9, help="run the paper's method at every so many frames")
    parser.add_argument("--models", nargs="*", default=["turned", "paper"])
    parser.add_argument("--sizes", action="store_true", help="only cost against size")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for count in (600, 6000):
        Blendshapes(pair(gallery.bar(count), "bent 90")).solve([0.5, 0.5])  # compiles the kernels
    if not options.sizes:
        print("seconds a step, of 36; (frames that came so far / frames tried); paper 2011: the paper's own CPU figure")
        heads = [f"{f'Newton to {excess:g}':>14s} {'pliant':>14s} {'ratio':>6s}" for excess in LEVELS]
        heads.append(f"{f'within {DISTANCE:g}':>14s} {'pliant':>14s} {'ratio':>6s}")
        left = f"{'':20s} {'energy':6s}  {'n':>6s} {'springs':>7s}  {'2011':>7s}"
        print("  ".join([left, *heads, "preview    set-up              apart"]))
        curves: list = []
        for name, row in rows().items():
            if not options.shapes or any(word in name for word in options.shapes):
                for model in options.models:
                    compare(name, row, model, options.every, curves)
        plot(curves, Path(__file__).with_name("blend.svg"))
    if options.sizes or not options.shapes:
        sizes()
    sys.stdout.flush()


if __name__ == "__main__":
    main()
