"""Feet on the ground: how far soles slide while they stand, in the motion itself and in the flesh that follows it.

    python benchmarks/feet.py [NAME...] [--frames 48]

Models of ../shared/data by their own clips, or by a captured walk. A vertex of the shape, as bones alone carry it,
stands while it is low (0.5 % of the diagonal above the floor) and slow (15 % of the diagonal a second) for a tenth of a
second at least. slide: how far it gets from the middle of where it is meanwhile, along the floor and over the
diagonal, of the motion and of the flesh: at the 95th percentile of all that stand, and of the worst one. below: the
deepest that a vertex is below the floor, over the diagonal.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

import pliant
from pliant.engines.simulate.app.scene import ElasticScene, known_up, motion_on, skeleton_of
from pliant.engines.simulate.options import SimulateOptions
from pliant.geometry.axes import axis_name

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
WALK = DATA / "mocap/cmu/02_01.bvh"
LOW, SLOW, LEAST_TIME = 0.005, 0.15, 0.1
FPS = 24.0
ROW = "{:18} {:>6} | {:>6} {:>6} | {:>6} {:>6} {:>6} | {:>5}  {}"


def walking(file: Path, frames: int) -> ElasticScene:
    """A model that walks as captured."""
    shape = pliant.read_mesh(file)
    skeleton, body = skeleton_of(shape, str(file), up=known_up(shape, "auto"))
    walk = pliant.read_motion(WALK)
    moving = replace(walk, rotations=walk.rotations[1:], translations=walk.translations[1:]).resampled(FPS)
    found = motion_on(moving, skeleton, None, shape=shape, up=known_up(shape, "auto"), body=body, last=frames)
    up = axis_name((body or found.limbs.target).frame[1]) if body or found.limbs else "auto"
    return ElasticScene(shape, skeleton, found.motion, SimulateOptions(up=up))


def own(file: Path, frames: int) -> ElasticScene:
    """A model and its clip."""
    motion = pliant.read_motion(file)
    motion = replace(motion, rotations=motion.rotations[: frames + 1], translations=motion.translations[: frames + 1])
    return ElasticScene(pliant.read_mesh(file), pliant.read_skeleton(file), motion)


def scenes() -> dict[str, Callable[[int], ElasticScene]]:
    models = DATA / "models"
    walkers = {"dino": "dino/dino.off", "armadillo": "armadillo/arma2.obj", "CesiumMan": "rigged/CesiumMan.glb"}
    found: dict[str, Callable[[int], ElasticScene]] = {
        f"{name} walks": (lambda frames, file=models / file: walking(file, frames)) for name, file in walkers.items()
    }
    rigged = [file for file in sorted(models.rglob("*.glb")) if file.stem != "HumanoidRig"]
    return found | {file.stem: (lambda frames, file=file: own(file, frames)) for file in rigged}


def standing(points: np.ndarray, up: np.ndarray, floor: float, diagonal: float, fps: float) -> list[tuple[int, slice]]:
    """Vertices and the frames in which they stand, of points (f, n, 3)."""
    speed = np.linalg.norm(np.gradient(points, axis=0), axis=2) * fps
    flags = (points @ up - floor < LOW * diagonal) & (speed < SLOW * diagonal)
    runs = []
    for v in np.flatnonzero(flags.any(axis=0)):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], flags[:, v], [False]]).astype(int)))
        runs += [(int(v), slice(a, b)) for a, b in edges.reshape(-1, 2) if b - a >= max(3, LEAST_TIME * fps)]
    return runs


def slides(points: np.ndarray, runs: list[tuple[int, slice]], up: np.ndarray) -> np.ndarray:
    """(runs,) how far each gets from its middle, along the floor."""
    found = []
    for v, span in runs:
        path = points[span, v] - np.outer(points[span, v] @ up, up)
        found.append(np.linalg.norm(path - (path.max(axis=0) + path.min(axis=0)) / 2, axis=1).max())
    return np.array(found)


def measured(name: str, scene: ElasticScene) -> str:
    scene = replace(scene, options=replace(scene.options, ground=True, gravity=9.81))
    body = scene.body()
    ground = scene.surroundings(body)["obstacles"][-1]
    up, floor, d = ground.normal, float(ground.point @ ground.normal), body.diagonal
    frames = body.bones.posed(scene.frame_poses.rotations, scene.frame_poses.translations)
    clip = np.stack([body.embed(body.carried(frames, k)) for k in range(len(scene.frame_poses))])
    states = list(scene.states(body))
    flesh = np.stack([body.points_of(state) for state in states])[: len(clip)]
    clip = clip[: len(flesh)]
    runs = standing(clip, up, floor, d, scene.fps)
    unsettled = sum(not state.converged for state in states)
    below = max(float((floor - flesh @ up).max()), 0.0) / d
    if not runs:
        return ROW.format(name, 0, "", "", "", "", f"{below:.2%}", unsettled, "")
    theirs, mine = slides(clip, runs, up) / d, slides(flesh, runs, up) / d
    shown = (f"{value:.2%}" for values in (theirs, mine) for value in (np.quantile(values, 0.95), values.max()))
    message = next((state.problem or state.message for state in states if state.problem or state.message), "")
    return ROW.format(name, len(runs), *shown, f"{below:.2%}", unsettled, message[:60])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--frames", type=int, default=48)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    known = scenes()
    print(ROW.format("", "", "motion", "", "flesh", "", "", "not", ""))
    print(ROW.format("model", "stand", "95 %", "worst", "95 %", "worst", "below", "conv.", ""))
    for name in options.names or known:
        print(measured(name, known[name](options.frames)), flush=True)


if __name__ == "__main__":
    main()
