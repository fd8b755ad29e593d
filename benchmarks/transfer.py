"""Table 1 of Chen et al. (2010) again: what a caged shape costs to prepare and to move, beside the paper's figures.

    python benchmarks/transfer.py                  # every row of the table
    python benchmarks/transfer.py dragon robot     # some of them
    python benchmarks/transfer.py matrix           # automatic transfer of many sources onto many targets

Gallery shapes and cages stand in for the paper's at its numbers of points and cage vertices; points are spread over the
shape's surface. The lattice has 60 nodes along the longest side, as in the paper. Coordinates are compared, in the same
run and on the same cores, with Lipman's published pseudo-code compiled the same way and with plain NumPy, both timed on
some of the points and scaled. Iterations are those of the paper's energy, and with rigidity. Each row bends its shape
over 30 frames through 12 gradient controls and one position. The four set-ups of the paper's figures, as the examples
have them, follow: their own controls, cages and motions. The paper's figures are of a dual-core Pentium at 2 GHz, its
solver's and interpolation's of a GeForce 9800 GT besides.
"""

from __future__ import annotations

import argparse
import importlib
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from pliant import Mesh, gallery, rotations
from pliant.core.topology import Floats
from pliant.engines.transfer import Cage, CageRig, Weights
from pliant.engines.transfer.energies import Basis, samples, smoothness
from pliant.engines.transfer.green import green_blocks
from pliant.gallery.primitives import box_mesh

sys.path.insert(0, str(Path(__file__).parent))

LATTICE, FRAMES, CONTROLS = 60, 30, 12


@dataclass(frozen=True)
class Row:
    """A row of the paper's table."""

    cage: int
    points: int
    samples: int
    smooth: float
    """Seconds"""
    coordinates: float
    """Seconds"""
    solver: float
    """Milliseconds an iteration"""
    interpolation: float
    """Milliseconds a frame"""
    make: Callable[[int], tuple[Mesh, Mesh]]
    """A shape, and a cage with about so many vertices."""


def named(name: Any, body: Callable[[int], Any]) -> Callable[[int], tuple[Mesh, Mesh]]:
    return lambda count: (body(20_000)[0], gallery.cage(name, vertices=count))


def beam(count: int) -> tuple[Mesh, Mesh]:
    return gallery.bar(20_000, size=(8, 1, 1))[0], box_mesh(count, np.array([8.5, 1.4, 1.4]), 0.0)


ROWS = {
    "bubble man": Row(106, 52_736, 24_319, 57.5, 90.3, 102.25, 14.35, named("gingerbread", gallery.gingerbread)),
    "deer beam": Row(40, 72_116, 2_891, 2.0, 44.8, 7.01, 9.74, beam),
    "armadillo": Row(120, 172_962, 22_499, 59.0, 336.8, 52.9, 50.75, named("dinosaur", gallery.dinosaur)),
    "dragon": Row(126, 249_934, 9_356, 26.5, 509.3, 72.19, 77.16, named("animal", gallery.animal)),
    "tetra dragon": Row(126, 57_816, 9_356, 26.5, 118.2, 72.19, 20.0, named("animal", gallery.animal)),
    "mosaic horse": Row(88, 3_076, 19_760, 37.8, 29.7, 49.13, 83.01, named("animal", gallery.animal)),
    "robot": Row(162, 20_556, 6_367, 23.3, 53.8, 114.45, 9.87, named("creature", gallery.creature)),
}


def best(function: Callable[[], object], times: int = 3) -> float:
    """Seconds of the quickest call."""
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        function()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def spread(mesh: Mesh, count: int) -> Floats:
    """Points over a surface, evenly by area."""
    rng = np.random.default_rng(0)
    a, b, c = (mesh.points[mesh.triangles[:, k]] for k in range(3))
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    chosen = rng.choice(len(area), count, p=area / area.sum())
    weights = rng.dirichlet([1.0, 1.0, 1.0], count)
    return weights[:, :1] * a[chosen] + weights[:, 1:2] * b[chosen] + weights[:, 2:] * c[chosen]


def bending(points: Floats) -> tuple[Floats, Floats]:
    """Controls in the middle of twelve slices along the longest side, and turns (frames, 12, 3, 3) of up to 60°."""
    along = int(np.argmax(np.ptp(points, axis=0)))
    order = np.argsort(points[:, along])
    places = np.array([points[some[len(some) // 2]] for some in np.array_split(order, CONTROLS)])
    angles = np.radians(60) * np.linspace(0, 1, FRAMES)[:, None] * np.linspace(-0.5, 0.5, CONTROLS)
    return places, rotations.matrix(rotations.from_axis_angle(np.roll([1.0, 0, 0], (along + 1) % 3), angles))


def precomputation(cage: Cage, points: Floats) -> tuple[float, int, float, float, float]:
    """Seconds of the smoothness, its samples, and seconds of the coordinates: pliant's, the pseudo-code's, NumPy's."""
    from lipman import plain_numpy, pseudo_code  # needs Numba

    basis, surface = Basis.of(cage, "green"), cage.surface
    places, weights, _ = samples(cage, LATTICE)
    smoothness(basis, places[:600], weights[:600])
    smooth = best(lambda: smoothness(basis, *samples(cage, LATTICE)[:2]), 2)
    some, few = points[:2000], points[:200]
    out = np.empty((len(some), basis.size))
    green_blocks(some, cage, outside="refuse", what="points")
    pseudo_code(some, surface, out)
    ours = best(lambda: green_blocks(points, cage, outside="refuse", what="points"), 2)
    theirs = best(lambda: pseudo_code(some, surface, out), 2) * len(points) / len(some)
    plain = best(lambda: plain_numpy(few, surface)) * len(points) / len(few)
    return smooth, len(places), ours, theirs, plain


def running(cage: Cage, points: Floats, weights: Weights) -> tuple[float, float, int, float]:
    """Milliseconds an iteration, iterations a warm frame (mean, most), milliseconds of a frame's interpolation."""
    places, turns = bending(points)
    middle = points.mean(axis=0)
    nearest = points[np.argmin(np.linalg.norm(points - middle, axis=1))]
    rig = CageRig(points, cage, positions=[nearest], gradients=places, lattice=LATTICE, weights=weights)
    rig.solve(gradients=turns[1])
    begun = time.perf_counter()
    found = list(rig.solutions(gradients=turns))
    taken = time.perf_counter() - begun
    warm = [frame.iterations for frame in found[1:]]
    per_iteration = 1000 * taken / sum(frame.iterations for frame in found)
    return per_iteration, float(np.mean(warm)), max(warm), 1000 * best(lambda: rig.deform(found[-1].points), 5)


def many_samples(count: int = 24_000) -> str:
    """The paper's largest number of samples in its largest cage."""
    row = ROWS["robot"]
    basis = Basis.of(Cage.of(row.make(row.cage)[1]), "green")
    places, weights, _ = samples(basis.cage, 90)
    some = np.random.default_rng(0).choice(len(places), min(count, len(places)), replace=False)
    seconds = best(lambda: smoothness(basis, places[some], weights[some]), 2)
    return f"smoothness over {len(some):,} samples in {len(basis.cage.points)} cage vertices: {seconds:.2f} s"


def set_ups() -> str:
    """The examples: iterations of a warm frame, and how well their controls are met."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    lines = [
        f"{'':13} {'cage':>5} {'frames':>7} | {'ms/iteration':>12} {'warm':>10} | "
        f"{'angle':>6} {'strain':>7} {'length':>7}"
    ]
    with TemporaryDirectory() as folder:
        for name in ("deer_beam", "mosaic_horse", "bubble_man", "robot_jump"):
            moved = importlib.import_module(name).main(Path(folder))
            asked = {"positions": moved.positions, "gradients": moved.gradients}
            begun = time.perf_counter()
            found = list(moved.rig.solutions(**asked))
            taken = 1000 * (time.perf_counter() - begun) / sum(frame.iterations for frame in found)
            warm = [frame.iterations for frame in found[1:]]
            angle, strain = (
                max(v.max() for v in values)
                for values in zip(*((frame.gradient_angles, frame.gradient_strains) for frame in found), strict=True)
            )
            length = max(np.abs(frame.length_errors).max(initial=0) for frame in found)
            lines.append(
                f"{name.replace('_', ' '):13} {len(moved.rig.cage.points):5} {len(found):7} | {taken:12.1f} "
                f"{np.mean(warm):4.1f} (≤{max(warm)}) | {angle:5.1f}° {100 * strain:5.1f} % {100 * length:5.1f} %"
            )
    return "\n".join(lines)


HEADER = (
    f"{'':13} {'cage':>5} {'points':>8} {'samples':>8} | {'smoothness s':>14} | {'coordinates s':>16} "
    f"{'pseudo-code':>12} {'NumPy':>8} {'ratio':>6} | "
    f"{'ms/iteration':>15} {'rigid':>6} {'warm':>9} | {'ms/frame':>14} {'fps':>5}"
)


def line(name: str, row: Row) -> str:
    mesh, cage_mesh = row.make(row.cage)
    cage, points = Cage.of(cage_mesh), spread(mesh, row.points)
    smooth, count, ours, theirs, plain = precomputation(cage, points)
    paper = running(cage, points, Weights(rigidity=0))[0]
    iteration, mean, most, frame = running(cage, points, Weights())
    rate = 1000 / (mean * iteration + frame)
    return (
        f"{name:13} {len(cage.points):5} {len(points):8,} {count:8,} | {row.smooth:6.1f} → {smooth:5.2f} | "
        f"{row.coordinates:6.1f} → {ours:6.2f}  {theirs:11.1f} {plain:8.1f} {theirs / ours:5.0f}× | "
        f"{row.solver:6.1f} → {paper:6.1f} {iteration:6.1f} {mean:4.1f} (≤{most}) | "
        f"{row.interpolation:5.1f} → {frame:6.1f} {rate:5.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rows", nargs="*", help=", ".join(ROWS))
    if sys.argv[1:2] == ["matrix"]:
        from transfer_matrix import matrix

        matrix(sys.argv[2:])
        return
    asked = parser.parse_args().rows
    chosen = {name: row for name, row in ROWS.items() if not asked or any(word in name for word in asked)}
    print(f"Chen et al. (2010) → pliant, on {os.cpu_count()} cores; {FRAMES} frames, {CONTROLS} gradient controls")
    print(HEADER)
    for name, row in chosen.items():
        print(line(name, row), flush=True)
    if not asked:
        print(many_samples())
        print(set_ups())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory {peak:.2f} GiB, Python, NumPy and the compiler included; coordinates are stored as float32")


if __name__ == "__main__":
    main()
