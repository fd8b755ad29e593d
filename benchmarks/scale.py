"""How cost grows with size: processor time, peak memory and exponents of engines, readers, writers and the renderer.

python benchmarks/scale.py [--sizes 10000 30000 100000 300000 1000000] [--only blend simulate ...]

Every measurement is a process of its own, so that its peak memory is its own, too; that of the imports is subtracted.
The exponent is the slope of a line through log(seconds) over log(vertices). libigl's ARAP stands beside where its
package is installed: the same bar, bent by two handles.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import pliant
from pliant import gallery, render

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
FRAMES = 3
"""Of clips that are written and read."""
LIMIT = 1800
"""Seconds by the clock that a measurement may take."""
Steps = Iterator[tuple[str, Callable[[], Any]]]
"""What is measured, one after the other; a step gets what the one before gave."""


def blend(size: int, coarse: Any = "auto", name: str = "blend") -> Steps:
    shapes = gallery.bar(size)
    pair = pliant.Shapes(shapes.base, shapes.points[:2], shapes.names[:2])
    made: list[Any] = []
    yield f"{name}: set-up", lambda: made.append(pliant.Blendshapes(pair, coarse=coarse))
    yield f"{name}: first shape", lambda: made[0].solve([0.5, 0.5])
    yield f"{name}: another shape", lambda: made[0].solve([0.4, 0.6])


def blend_in_full(size: int) -> Steps:
    """Without the coarse body that large shapes are solved on."""
    return blend(size, "none", "blend in full")


def transfer(size: int) -> Steps:
    """Points, and Gaussian splats with harmonics of degree 3, in a cage that bends."""
    rng, points = np.random.default_rng(0), 0.9 * gallery.sphere(size).points
    names = [f"rot_{k}" for k in range(4)] + [f"f_rest_{k}" for k in range(45)]
    values = {name: rng.normal(size=len(points)).astype(np.float32) for name in names}
    values |= {f"scale_{k}": np.full(len(points), -6.0, np.float32) for k in range(3)}
    cage = pliant.build_cage(gallery.sphere(2000), faces=200)
    cages = np.stack([gallery.bend(cage.points, angle, length=2.0) for angle in (10, 20, 30, 40)])
    made: list[Any] = []
    splats = pliant.PointCloud(points, None, values)
    yield "transfer: coordinates, 200 faces", lambda: made.append(pliant.CageRig(splats, cage, lattice=12))
    yield "transfer: splats read, gradients, first frame", lambda: made[0].deform_shape(cages[0])
    yield (
        "transfer: 10 frames of splats, none kept",
        lambda: [len(made[0].deform_shape(cages[k % 4]).points) for k in range(10)],
    )
    yield "transfer: 4 frames of points", lambda: made[0].play(cages)
    yield "transfer: 4 frames of Jacobians", lambda: made[0].jacobians(cages)


def simulate(size: int) -> Steps:
    shape = gallery.bar(size).base
    bones = pliant.Skeleton(("root", "tip"), [-1, 0], [[-1.8, 0, 0], [1.8, 0, 0]], ends={1: [1.8, 0, 0]})
    made: list[Any] = []
    yield "simulate: set-up, 3,000 nodes", lambda: made.append(pliant.ElasticBody(shape, bones, nodes=3000))
    yield "simulate: a pose", lambda: made.append(made[0].pose(bones.pose({"tip": [0.9, 0, 0, 0.44]})))
    yield "simulate: its surface alone", lambda: made[0].embed(made[1].nodes)


def clip_of(size: int) -> pliant.Animation:
    shape = gallery.sphere(size)
    return pliant.Animation(shape, shape.points * np.linspace(1, 1.1, FRAMES)[:, None, None])


def files(size: int) -> Steps:
    clip, folder = clip_of(size), Path(tempfile.mkdtemp())
    for suffix in (".pc2", ".npz", ".glb", ".abc", ".usdc"):
        yield f"write {suffix}, {FRAMES} frames", lambda suffix=suffix: pliant.write(folder / f"a{suffix}", clip)
        mesh = {"mesh": clip.shape} if suffix == ".pc2" else {}
        yield f"read {suffix}", lambda s=suffix, mesh=mesh: pliant.read_animation(folder / f"a{s}", **mesh)
    for suffix in (".obj", ".ply"):
        yield f"write {suffix}", lambda suffix=suffix: pliant.write(folder / f"m{suffix}", clip.shape)
        yield f"read {suffix}", lambda suffix=suffix: pliant.read_mesh(folder / f"m{suffix}")


def picture(size: int) -> Steps:
    shape = gallery.sphere(size)
    yield "render", lambda: render.picture(shape, size=(640, 480))


def arap(size: int) -> Steps:
    import igl

    mesh = gallery.bar(size).base
    ends = np.flatnonzero(np.abs(mesh.points[:, 0]) > 0.98 * np.abs(mesh.points[:, 0]).max())
    moved = np.where(mesh.points[ends, :1] > 0, mesh.points[ends] + [0.0, 1.0, 0.0], mesh.points[ends])
    made: list[Any] = []

    def ready() -> None:
        data = igl.ARAPData()
        data.max_iter = 10
        igl.arap_precomputation(mesh.points, mesh.triangles.astype(np.int64), 3, ends.astype(np.int32), data)
        made.append(data)

    yield "libigl ARAP: set-up", ready
    yield "libigl ARAP: 10 iterations", lambda: igl.arap_solve(moved, made[0], mesh.points.copy())


CASES = {
    "blend": blend,
    "full": blend_in_full,
    "transfer": transfer,
    "simulate": simulate,
    "files": files,
    "picture": picture,
    "arap": arap,
}


def measure(case: str, size: int) -> None:
    """In a process of its own: prints what each step took."""
    import resource

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    before, found = peak(), {}
    for name, step in CASES[case](size):
        begun = time.process_time()
        step()
        found[name] = {"seconds": time.process_time() - begun, "megabytes": peak() - before}
        print(json.dumps(found), flush=True)


def measured(case: str, size: int) -> dict[str, dict[str, float]]:
    command = [sys.executable, __file__, "--measure", case, str(size)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired as error:
        lines = (error.stdout or b"").decode().splitlines()
        print(f"{case} at {size:,}: not done within {LIMIT} s")
        return json.loads(lines[-1]) if lines else {}
    if done.returncode:
        print(f"{case} at {size:,}: {' '.join(done.stderr.split())[-200:]}")
    lines = done.stdout.splitlines()
    return json.loads(lines[-1]) if lines else {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure[0], int(options.measure[1]))
        return
    print("| | " + " | ".join(f"{size:,}" for size in options.sizes) + " | exponent |")
    print("| --- |" + " --- |" * (len(options.sizes) + 1))
    for case in options.only:
        if case == "arap" and importlib.util.find_spec("igl") is None:
            print("(libigl is not installed)")
            continue
        found = {size: measured(case, size) for size in options.sizes}
        for name in dict.fromkeys(name for steps in found.values() for name in steps):
            at = {size: steps[name] for size, steps in found.items() if name in steps}
            cells = [
                f"{at[s]['seconds']:.2f} s, {at[s]['megabytes']:.0f} MB" if s in at else "-" for s in options.sizes
            ]
            rows = [(np.log(s), np.log(max(v["seconds"], 1e-4))) for s, v in at.items()]
            slope = f"{np.polyfit(*np.transpose(rows), 1)[0]:.2f}" if len(rows) > 1 else "-"
            print(f"| {name} | {' | '.join(cells)} | {slope} |", flush=True)


if __name__ == "__main__":
    main()
