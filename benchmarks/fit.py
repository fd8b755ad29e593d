"""Sliders of a face found again: from 60 markers in each frame of a clip, and from a scan of four fifths, with noise.

    python benchmarks/fit.py [--data FOLDER] [--frames 12]

Sliders are known: random ones, a quarter of them in use, whose equilibria are solved to 1e-8. Markers are chosen so
that they tell the sliders apart (the determinant of linear blending's normal matrix, greedily). Beside it the same fit
of linear blending. Errors of sliders are of those that the markers show.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import pliant
from pliant.engines.blend.fit import Fitting, FrameFit
from pliant.engines.blend.fitted_models import LinearModel
from pliant.engines.blend.observations import observed

FACE = "faces/facecap/facecap.glb"


def chosen_markers(rig: pliant.Blendshapes, count: int) -> np.ndarray:
    """(count,) vertices that tell the sliders apart."""
    moved = rig.shapes.points[1:] - rig.shapes.points[0]
    far = np.flatnonzero(np.abs(moved).max(axis=(0, 2)) > 1e-3 * rig.body.diagonal)[::3]
    rows = moved[:, far].transpose(1, 2, 0)
    normal, chosen = 1e-8 * np.eye(rows.shape[2]), []
    for _ in range(count):
        gains = [np.linalg.slogdet(np.eye(3) + row @ np.linalg.solve(normal, row.T))[1] for row in rows]
        best = int(np.argmax(gains))
        chosen.append(far[best])
        normal = normal + rows[best].T @ rows[best]
    return np.array(chosen)


def linear_fit(rig: pliant.Blendshapes, target: object, markers: object) -> tuple[np.ndarray, float]:
    """Sliders of linear blending, and the seconds that a frame takes."""
    begun = time.perf_counter()
    seen, _ = observed(rig, target, markers)
    count = len(rig.sliders.names)
    fitting = Fitting(rig, np.zeros(count), np.ones(count), True, 0.0, 1e-4)
    rows = []
    for each in seen:
        start = FrameFit(np.zeros(len(rig.shapes)), *each.motions(rig.shapes.points[0])[0])
        rows.append(fitting.fit(LinearModel(rig), each, start).row[fitting.numbers])
    return np.stack(rows), (time.perf_counter() - begun) / len(seen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--frames", type=int, default=12)
    options = parser.parse_args()
    if not (options.data / FACE).is_file():
        print(f"skipped: {FACE} is not in {options.data}")
        return
    rig = pliant.Blendshapes(pliant.read_shapes(options.data / FACE))
    rng, names = np.random.default_rng(1), rig.sliders.names
    keys = np.where(rng.random((3, len(names))) < 0.25, 0.8 * rng.random((3, len(names))), 0)
    at = np.linspace(0, 2, options.frames)
    table = np.stack([np.interp(at, range(3), column) for column in keys.T], axis=1)
    clip = np.stack([rig.solve(dict(zip(names, row, strict=True)), accuracy=1e-8).points for row in table])
    markers = chosen_markers(rig, 60)
    shown = (
        np.abs(rig.shapes.points[1:, markers] - rig.shapes.points[0, markers]).max(axis=(1, 2))
        > 1e-4 * rig.body.diagonal
    )
    print(f"{FACE}: {len(rig.shapes.base.points)} vertices, {len(names)} sliders, {shown.sum()} of them shown\n")
    print(f"{'':30}{'slider, most':>14}{'mean':>10}{'rms/diagonal':>14}{'s a frame':>11}")

    def line(what: str, found: np.ndarray, truth: np.ndarray, error: float, seconds: float) -> None:
        away = np.abs(found - truth)[:, shown]
        print(
            f"{what:30}{away.max():14.4f}{away.mean():10.5f}{error / rig.body.diagonal:14.1e}{seconds:11.2f}",
            flush=True,
        )

    def compare(what: str, target: object, truth: np.ndarray, marked: object = None) -> None:
        rig.fit(target[0] if isinstance(target, np.ndarray) else target, markers=marked)  # warm
        begun = time.perf_counter()
        found = rig.fit(target, markers=marked)
        seconds = (time.perf_counter() - begun) / len(truth)
        line(what, found.weights.values, truth, float(found.errors.max()), seconds)
        values, seconds = linear_fit(rig, target, marked)
        line("  linear least squares", values, truth, float(found.linear_errors.max()), seconds)

    compare(f"60 markers, {options.frames} frames", clip[:, markers], table, markers)
    triangles, pose = rig.shapes.base.triangles, clip[options.frames // 2]
    share = rng.dirichlet(np.ones(3), 30_000)
    scan = np.einsum("kc,kcd->kd", share, pose[triangles[rng.integers(0, len(triangles), 30_000)]])
    scan += rng.normal(size=scan.shape) * 0.005 * rig.body.diagonal
    scan = scan[scan[:, 0] > np.quantile(scan[:, 0], 0.2)]
    R = pliant.rotations.matrix(pliant.rotations.exp([0.3, 0.6, -0.2]))
    compare("scan, 0.5 % noise, 20 % cut", pliant.PointCloud(scan @ R.T + 2), table[options.frames // 2 :][:1])


if __name__ == "__main__":
    main()
