"""Self-contact of flesh on every model: what crosses itself free and with self-contact, and what that costs.

    python benchmarks/self_contact.py [NAMES ...] [--frames 24] [--pictures DIR]

Each model moves by its own clip, by a captured run, or swings its joints. Crossings are pairs of triangles that cross
(`crossings.py`, apart from the solver's code): at rest, and the most in a frame, free and with self-contact. New are
those where the rest shape does not cross itself: none of its crossings is within `RINGS` edges of both triangles.
Cost: processor time of a step with self-contact over that of a free step, over all frames and in the slowest.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from crossings import crossing_pairs

import pliant
from pliant import Motion, Skeleton, render, rotations
from pliant.engines.simulate.app.scene import ElasticScene, motion_on
from pliant.geometry.skeletons.curve_skeleton import extract_skeleton

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
MODELS, RUN = DATA / "models", DATA / "mocap/cmu/09_01.bvh"
RINGS = 2
FPS = 24.0
ROW = "{:16} {:>6} {:>6} | {:>5} {:>5} {:>4} | {:>5} {:>4} | {:>5} {:>5} {:>6} {:>5}  {}"
RIGHT, LEFT = (
    [side + part for part in ("Shoulder", "Arm", "ForeArm", "Hand", "UpLeg", "Leg", "Foot", "ToeBase")]
    for side in ("Right", "Left")
)


def followed(*pairs: tuple[Iterable[int], Iterable[str]]) -> dict[str, str]:
    """Joints by their numbers in the file, and what they follow."""
    return {f"joint{k}": name for numbers, names in pairs for k, name in zip(numbers, names, strict=True)}


MAPS = {
    "armadillo": followed(
        ([0, 5, 6, 7], ["Hips", "Spine", "Spine1", "Head"]),
        ([13, 14, 16, 17, 1, 2, 3, 4], RIGHT),
        ([8, 9, 11, 12, 18, 19, 20, 21], LEFT),
    ),
    "knight": followed(
        ([10, 1, 5], ["Hips", "Spine1", "Neck"]),
        ([2, 3, 4, 12, 13, 14, 15], [*RIGHT[1:4], *RIGHT[4:]]),
        ([7, 8, 9, 16, 17, 18, 19], [*LEFT[1:4], *LEFT[4:]]),
    ),
    "cheburashka": followed(
        ([4, 1], ["Hips", "Spine1"]), ([9, 5], ["RightArm", "RightUpLeg"]), ([11, 7], ["LeftArm", "LeftUpLeg"])
    ),
}  # fmt: skip


def captured(name: str, file: str, bones: str) -> ElasticScene:
    """A model that runs."""
    shape, skeleton = pliant.read_mesh(MODELS / name / file), pliant.read_skeleton(MODELS / name / bones)
    run = pliant.read_motion(RUN)
    run = Motion(run.skeleton, run.rotations[1:], run.translations[1:], run.fps)
    mapped = motion_on(run.resampled(FPS), skeleton, MAPS[name], shape=shape, up="y")
    return ElasticScene(shape, skeleton, mapped.motion)


def swinging(skeleton: Skeleton, degrees: float) -> Motion:
    """Every joint but the first swings sideways, forwards and back."""
    t = np.arange(49) / FPS
    depth = np.zeros(len(skeleton))
    for j, parent in enumerate(skeleton.parents):
        depth[j] = 0 if parent < 0 else depth[parent] + 1
    angles = np.radians(degrees) * np.sin(2 * np.pi * 0.7 * t)[:, None] * (depth > 0)
    axes = np.where(np.arange(len(skeleton))[:, None] % 2, [0.0, 0.0, 1.0], [1.0, 0.0, 0.0])
    turns = rotations.from_axis_angle(np.broadcast_to(axes, (*angles.shape, 3)), angles)
    return of_rotations(skeleton, rotations.multiply(skeleton.rest_rotations, turns))


def of_rotations(skeleton: Skeleton, local: Any) -> Motion:
    offsets = np.broadcast_to(skeleton.offsets, (len(local), len(skeleton), 3)).copy()
    return Motion(skeleton, local, offsets, FPS)


def swung(name: str, file: str, bones: str | None, degrees: float) -> ElasticScene:
    shape: Any = (pliant.read_tets if file.endswith(".mesh") else pliant.read_mesh)(MODELS / name / file)
    skeleton = extract_skeleton(shape) if bones is None else pliant.read_skeleton(MODELS / name / bones)
    return ElasticScene(shape, skeleton, swinging(skeleton, degrees))


def numbers_of(path: Path) -> np.ndarray:
    """A .dmat file, by columns."""
    data = path.read_bytes()
    head, _, rest = data.partition(b"\n")
    columns, rows = map(int, head.split())
    if columns or rows:
        return np.array(rest.split(), dtype=float).reshape(columns, rows)
    head, _, rest = rest.partition(b"\n")
    columns, rows = map(int, head.split())
    return np.frombuffer(rest[: 8 * columns * rows]).reshape(columns, rows)


def bone_joints(skeleton: Skeleton, path: Path) -> list[int]:
    """For each bone of a .tgf file, the joint that it starts at."""
    edges = path.read_text().split("#")[1].split()
    first = [int(word) for word in edges[::2]]
    return [skeleton.index(f"joint{k}") for k in first]


def elephant() -> ElasticScene:
    """By its own clip: the rotation of each bone turns the joint at which it starts."""
    folder = MODELS / "elephant"
    skeleton = pliant.read_skeleton(folder / "elephant.tgf")
    table = numbers_of(folder / "elephant-anim.dmat")[:96:2]
    world = np.tile(np.eye(3), (len(table), len(skeleton), 1, 1))
    joints = bone_joints(skeleton, folder / "elephant.tgf")
    for b, j in reversed(list(enumerate(joints))):
        world[:, j] = table.reshape(len(table), 3, -1)[:, :, 4 * b : 4 * b + 3]
    leaves = [j for j in range(len(skeleton)) if j not in joints]
    for j in leaves:
        world[:, j] = world[:, skeleton.parents[j]]
    turned = rotations.quaternion(rotations.polar(world))
    parents = skeleton.parents
    local = [
        turned[:, j] if parents[j] < 0 else rotations.multiply(rotations.inverse(turned[:, parents[j]]), turned[:, j])
        for j in range(len(skeleton))
    ]
    return ElasticScene(pliant.read_mesh(folder / "elephant.obj"), skeleton, of_rotations(skeleton, np.stack(local, 1)))


def hand() -> ElasticScene:
    """From rest to its own pose."""
    folder = MODELS / "hand"
    shape, skeleton = pliant.read_tets(folder / "hand.mesh"), pliant.read_skeleton(folder / "hand.tgf")
    pose = np.tile([1.0, 0, 0, 0], (len(skeleton), 1))
    quaternions, joints = (
        numbers_of(folder / "hand-pose.dmat").reshape(-1, 4),
        bone_joints(skeleton, folder / "hand.tgf"),
    )
    pose[joints] = quaternions[:, [3, 0, 1, 2]]
    share = np.minimum(np.arange(33) / 24, 1)
    still = np.broadcast_to([1.0, 0, 0, 0], pose.shape)
    local = np.stack([rotations.slerp(still, pose, t) for t in share])
    return ElasticScene(shape, skeleton, of_rotations(skeleton, local))


def rigged(file: Path) -> ElasticScene:
    """By its own clip; the rig without one runs."""
    shape, skeleton = pliant.read_mesh(file), pliant.read_skeleton(file)
    if file.stem == "HumanoidRig":
        return ElasticScene(shape, skeleton, swinging(skeleton, 40))
    return ElasticScene(shape, skeleton, pliant.read_motion(file))


def scenes() -> dict[str, Callable[[], ElasticScene]]:
    found: dict[str, Callable[[], ElasticScene]] = {
        "armadillo": lambda: captured("armadillo", "arma2.obj", "skeleton2.out"),
        "knight": lambda: captured("knight", "knight.ply", "knight.tgf"),
        "cheburashka": lambda: captured("cheburashka", "cheburashka.off", "cheburashka.tgf"),
        "elephant": elephant,
        "hand": hand,
        "arm": lambda: swung("arm", "arm.obj", "arm.tgf", 60),
        "dino": lambda: swung("dino", "dino.off", None, 40),
        "octopus": lambda: swung("octopus", "octopus-low.mesh", None, 40),
    }
    return found | {file.stem: (lambda file=file: rigged(file)) for file in sorted(MODELS.rglob("*.glb"))}


class Judge:
    """Counts crossings of a shape."""

    def __init__(self, shape: Any) -> None:
        mesh = shape.surface if hasattr(shape, "surface") and not isinstance(shape, pliant.Mesh) else shape
        rounded = np.round(shape.points / (1e-7 * shape.diagonal))
        self.names = np.unique(rounded, axis=0, return_inverse=True)[1].reshape(-1)
        corners = self.names[mesh.triangles]  # some files have triangles with a corner twice, which are no surface
        self.triangles = mesh.triangles[(corners != np.roll(corners, 1, axis=1)).all(axis=1)]
        self.rest = crossing_pairs(shape.points, self.triangles, self.names)
        self._around = self._near() if len(self.rest) else None

    def _near(self) -> Any:
        """Sparse (t, t): triangles that have a corner within `RINGS` edges of each other."""
        from scipy.sparse import csr_matrix

        t, n = len(self.triangles), int(self.names.max()) + 1
        entries = np.repeat(np.arange(t), 3), self.names[self.triangles].ravel()
        corner = csr_matrix((np.ones(3 * t), entries), shape=(t, n))
        near = corner @ corner.T
        step = near
        for _ in range(RINGS - 1):
            near = near @ step
        return near.astype(bool)

    def counted(self, points: np.ndarray) -> tuple[int, int]:
        """How many cross, and how many of those are new."""
        found = crossing_pairs(points, self.triangles, self.names)
        if self._around is None or not len(found):
            return len(found), len(found)
        from scipy.sparse import csr_matrix

        t = len(self.triangles)
        known = csr_matrix((np.ones(len(self.rest)), self.rest.T), shape=(t, t))
        known = self._around @ (known + known.T) @ self._around
        return len(found), int((np.asarray(known[found[:, 0], found[:, 1]]).ravel() == 0).sum())


def run(scene: ElasticScene, body: Any, frames: int, **options: Any) -> tuple[list[np.ndarray], list[Any], np.ndarray]:
    """Points and states of every frame, and the processor time that each took."""
    states, points, times = [], [], []
    begun = time.process_time()
    scene = replace(scene, options=replace(scene.options, **options))
    for state in scene.states(body):
        times.append(time.process_time() - begun)
        states.append(state)
        points.append(body.points_of(state))
        if len(states) > frames or state.problem:
            break
        begun = time.process_time()
    return points, states, np.array(times)


def measured(name: str, scene: ElasticScene, frames: int, pictures: Path | None) -> str:
    body, judge = scene.body(), Judge(scene.shape)
    free, _, free_times = run(scene, body, frames)
    kept, states, times = run(scene, body, frames, self_contact=True)
    counts = [np.array([judge.counted(points) for points in some[1:]]).reshape(-1, 2) for some in (free, kept)]
    unsettled = [k for k, state in enumerate(states) if not state.converged]
    if pictures is not None:
        draw(scene.shape, free, kept, pictures / f"{name}.png")
    message = next((state.problem or state.message for state in states if state.problem or state.message), "")
    mean = times[1:].sum() / free_times[1 : len(times)].sum()
    slowest = (times[1:] / np.median(free_times[1:])).max()
    return ROW.format(
        name, len(scene.shape.points), body.nodes.free, len(judge.rest), *counts[0].max(axis=0), *counts[1].max(axis=0),
        f"{mean:.1f}", f"{slowest:.1f}", f"{1000 * np.mean(free_times[1:]):.0f}", len(unsettled), message[:80],
    )  # fmt: skip


def draw(shape: Any, free: list[np.ndarray], kept: list[np.ndarray], path: Path) -> None:
    """Free above, with self-contact below, from two sides."""
    from PIL import Image

    rows = [
        render.contact_sheet(clip, frames=6, columns=6, size=(300, 260), view=view)
        for view in ("front", "side")
        for clip in (pliant.Animation(shape, np.stack(points), FPS) for points in (free, kept))
    ]
    sheet = Image.new("RGB", (max(row.width for row in rows), sum(row.height for row in rows)))
    for k, row in enumerate(rows):
        sheet.paste(row, (0, sum(other.height for other in rows[:k])))
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--frames", type=int, default=24)
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    known = scenes()
    print(ROW.format("", "", "", "at", "", "", "with", "", "", "slow-", "ms a", "not", ""))
    heads = "model", "points", "nodes", "rest", "free", "new", "self", "new", "times", "est", "frame", "conv.", ""
    print(ROW.format(*heads))
    for name in options.names or known:
        print(measured(name, known[name](), options.frames, options.pictures), flush=True)


if __name__ == "__main__":
    main()
