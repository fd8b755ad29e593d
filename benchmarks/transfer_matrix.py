"""Automatic transfer of many sources onto many targets: which are refused, and how well the others are recognised.

    python benchmarks/transfer.py matrix                       # every pair
    python benchmarks/transfer.py matrix walk bull -- knight   # some sources, some targets

For each pair: whether it was done or refused ("!" where that is not what should be: two-legged sources go onto
two-legged targets, four-legged ones onto four-legged); the angle between corresponding pieces of legs and arms, in the
median and at 90 % of pieces and frames; whether the target faces where it was found to; the least volume over the
rest's; the largest stretch of an edge; and seconds. Cages, and how shapes stand, are found once for each shape.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import pliant
from pliant import Animation, Motion, PointCloud, gallery, quality
from pliant.app.scene.media import motion_in, part_of, shape_in
from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.topology import Floats
from pliant.engines.transfer import limb_matching
from pliant.engines.transfer.limb_controls import Line, ankle, bone_nodes, limb_line
from pliant.engines.transfer.limb_matching import Registered, without_reference_pose
from pliant.engines.transfer.orientation import shape_body
from pliant.engines.transfer.symmetry import body_axes

DATA = Path(__file__).parents[2] / "shared" / "data"
FRAMES = 8
"""Of each clip, evenly."""
NEAR, AROUND = 12, 1.5
"""Points of a shape whose mean follows a place inside it: so many, and all so many times as far as the nearest."""
SHARES = (0.05, 0.5, 0.95)
"""Places along a limb; pieces are between them."""


@dataclass(frozen=True)
class Thing:
    """A source or a target, how many legs it has, and where it faces."""

    make: Callable[[], Any]
    legs: int
    front: tuple[float, float, float] = (0, 0, 1)


def bvh(name: str) -> Callable[[], Motion]:
    return lambda: pliant.read_motion(DATA / "mocap" / name)


def clip(name: str, which: str) -> Callable[[], Animation | Motion]:
    return lambda: motion_in(str(DATA / name), clip=which)


def shape(name: str) -> Callable[[], Any]:
    return lambda: shape_in(str(DATA / name))


def turned(motion: Motion, R: Floats) -> Motion:
    """A motion in a world that is turned."""
    bones, q = motion.skeleton, rotations.quaternion(R)
    offsets, rest = bones.offsets.copy(), bones.rest_rotations.copy()
    places, turns = motion.translations.copy(), motion.rotations.copy()
    for j in np.flatnonzero(bones.parents < 0):
        offsets[j], rest[j] = R @ offsets[j], rotations.multiply(q, rest[j])
        places[:, j], turns[:, j] = places[:, j] @ R.T, rotations.multiply(q, turns[:, j])
    other = pliant.Skeleton(bones.names, bones.parents, offsets, rest, bones.ends)
    return replace(motion, skeleton=other, translations=places, rotations=turns, channels=None)


Z_UP = rotations.matrix(rotations.from_axis_angle([1, 0, 0], np.pi / 2))
SOURCES = {
    "walk": Thing(bvh("cmu/02_01.bvh"), 2),
    "walk, no T-pose": Thing(lambda: part_of(bvh("cmu/02_01.bvh")(), 1, 343), 2),
    "walk, Z up": Thing(lambda: turned(bvh("cmu/02_01.bvh")(), Z_UP), 2),
    "run": Thing(bvh("cmu/09_01.bvh"), 2),
    "cartwheel": Thing(bvh("cmu/49_06.bvh"), 2),
    "makehuman": Thing(bvh("makehuman/walk1.bvh"), 2),
    "man": Thing(clip("models/rigged/CesiumMan.glb", "0"), 2),
    "bull": Thing(clip("models/rigged/Bull.glb", "AnimalArmature|Gallop"), 4),
    "fox": Thing(clip("models/fox/Fox.glb", "Walk"), 4),
    "gallop": Thing(lambda: pliant.read_animation(DATA / "poses/horse-gallop/horse-gallop.tar.xz"), 4),
    "gait": Thing(lambda: gallery.animal_gait(2000), 4),
    "flamingo": Thing(lambda: pliant.read_animation(DATA / "poses/morph-glb/Flamingo.glb"), 0),
}
TARGETS = {
    "knight": Thing(shape("models/knight/knight.ply"), 2),
    "knight cloud": Thing(lambda: PointCloud(shape("models/knight/knight.ply")().points), 2),
    "man": Thing(shape("models/rigged/CesiumMan.glb"), 2),
    "ogre": Thing(shape("cages/ogre/Ogre.obj"), 2),
    "armadillo": Thing(shape("models/armadillo/arma2.obj"), 2),
    "robot": Thing(shape("models/rigged/RobotExpressive.glb"), 2),
    "creature": Thing(lambda: gallery.creature(4000).base, 2),
    "gingerbread": Thing(lambda: gallery.gingerbread(3000).base, 2),
    "elephant": Thing(shape("models/elephant/elephant.obj"), 2),
    "bunny": Thing(shape("models/rigged/HumanoidRig.glb"), 2),
    "alpaca": Thing(shape("models/rigged/Alpaca.glb"), 4),
    "husky": Thing(shape("models/rigged/Husky.glb"), 4),
    "stag": Thing(shape("models/rigged/Stag.glb"), 4),
    "horse": Thing(shape("cages/horse/Horse_2.obj"), 4, (-1, 0, 0)),
    "cat": Thing(shape("poses/cat/cat-ref.obj"), 4),
    "camel": Thing(shape("poses/camel-dino/camel.obj"), 4, (0, 0, -1)),
    "fox": Thing(shape("models/fox/Fox.glb"), 4),
    "spider": Thing(shape("models/rigged/Spider.glb"), 8),
    "octopus": Thing(shape("models/octopus/octopus-low.mesh"), 8),
    "dolphin": Thing(shape("models/rigged/Dolphin.glb"), 0),
    "dress": Thing(shape("cages/clothing/clothing.obj"), 0),
}


@dataclass(frozen=True)
class Score:
    """What came of a pair."""

    words: str
    """Empty if it was done, or why it was refused"""
    median: float = np.nan
    """Degrees"""
    most: float = np.nan
    """Degrees, at 90 %"""
    faces: bool = True
    volume: float = np.nan
    stretch: float = np.nan
    seconds: float = 0.0


@cache
def target_of(name: str) -> tuple[Any, Any]:
    """A target and its cage."""
    body = TARGETS[name].make()
    return body, pliant.build_cage(body, faces=400, axes=body_axes(body))


@cache
def source_of(name: str) -> Any:
    return SOURCES[name].make()


BODIES: dict[Any, Any] = {}


def remembered(shape: Any, up: Floats, **known: Any) -> Any:
    """`shape_body`, found once for each shape."""
    key = (shape.points.tobytes(), tuple(up), known["fixed_up"])
    if key not in BODIES:
        BODIES[key] = shape_body(shape, up, **known)
    return BODIES[key]


def sensible(source: Thing, target: Thing) -> bool:
    return source.legs == target.legs and source.legs in (2, 4)


def score(source: str, target: str) -> Score:
    """Transfer, and look."""
    moving, (body, cage) = source_of(source), target_of(target)
    frames = np.linspace(0, len(moving) - 1, FRAMES)
    begun = time.perf_counter()
    try:
        moved = pliant.transfer(moving, body, cage, "auto", frames=frames, lattice=40)
    except InputError as problem:
        return Score(str(problem), seconds=time.perf_counter() - begun)
    taken = time.perf_counter() - begun
    found = moved.registered
    angles = limb_angles(moving, frames, moved.clip, found) if found is not None else np.array([np.nan])
    faces = found is not None and float(found.target.frame[2] @ TARGETS[target].front) > 0.9
    faces |= found is not None and found.target.alike
    closed = hasattr(body, "triangles")
    volume = float(quality.volume_ratio(body, moved.clip).min()) if closed else np.nan
    return Score(
        "", float(np.median(angles)), float(np.quantile(angles, 0.9)), faces, volume, stretch(body, moved.clip), taken
    )


def stretch(body: Any, moved: Animation) -> float:
    """The largest of an edge, over all frames; edges shorter than a hundredth of the diagonal do not count."""
    if not hasattr(body, "triangles"):
        return float("nan")
    edges = np.unique(np.sort(body.triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1), axis=0)
    long = np.linalg.norm(np.diff(body.points[edges], axis=1)[:, 0], axis=1)
    edges, long = edges[long > 0.01 * body.diagonal], long[long > 0.01 * body.diagonal]
    now = np.linalg.norm(moved.points[:, edges[:, 0]] - moved.points[:, edges[:, 1]], axis=2)
    return float((now / long).max())


def limb_angles(source: Animation | Motion, frames: Floats, moved: Animation, found: Registered) -> Floats:
    """Degrees between pieces of legs and arms of the source and of the result, each in its own body's frame."""
    angles = []
    for one, other in found.match.pairs:
        if one.role not in ("leg", "arm"):
            continue
        theirs = followed(moved.shape.points, moved.points, limb_line(found.target, other), SHARES)
        theirs = np.diff(theirs, axis=1) @ found.target.frame.T
        if isinstance(source, Motion):
            mine = bones_followed(without_reference_pose(source), frames, one, found)
        else:
            at = np.round(frames).astype(int)
            line = limb_line(found.source, one)
            mine = np.diff(followed(source.shape.points, source.points[at], line, SHARES), axis=1)
            mine = mine @ found.source.frame.T
        cosine = (mine * theirs).sum(axis=2) / np.linalg.norm(mine, axis=2) / np.linalg.norm(theirs, axis=2)
        angles.append(np.degrees(np.arccos(np.clip(cosine, -1, 1))).ravel())
    return np.concatenate(angles) if angles else np.array([np.nan])


def followed(rest: Floats, points: Floats, line: Line, shares: Sequence[float]) -> Floats:
    """(frames, k, 3) where places along a line inside a shape go: with the mean of the points that are near."""
    from scipy.spatial import cKDTree

    tree = cKDTree(rest)
    places = []
    for place in (line.at(share) for share in shares):
        away, few = tree.query(place, k=NEAR)
        ring = np.union1d(few, tree.query_ball_point(place, AROUND * away[0]))
        places.append(points[:, ring].mean(axis=1))
    return np.stack(places, axis=1)


def bones_followed(motion: Motion, frames: Floats, limb: Any, found: Registered) -> Floats:
    """(frames, k, 3) pieces of a skeleton's limb, without its foot."""
    nodes = bone_nodes(motion, found.source, limb)
    rest = Line(found.source.tree.places[nodes])
    end = ankle(rest, limb)
    places = motion.world()[0]
    at = np.round(frames).astype(int)
    kept = [node for node in nodes if node < len(motion.skeleton)]
    pieces = []
    for frame in at:
        line = Line(places[frame, kept])
        share = rest.length * end / line.length
        pieces.append(np.diff(np.array([line.at(min(share * s, 1.0)) for s in SHARES]), axis=0))
    world = found.world if found.world is not None else found.source.frame
    return np.array(pieces) @ world.T


def matrix(words: Sequence[str]) -> None:
    """Print it, and how many of the sensible pairs are good."""
    split = list(words).index("--") if "--" in words else len(words)
    chosen, onto = words[:split], words[split + 1 :]
    warnings.simplefilter("ignore")
    limb_matching.shape_body = remembered
    good, all_sensible, silent = 0, 0, 0
    print(
        f"{'source':16} {'target':13} {'':9} {'angle':>6} {'90 %':>6} {'faces':>6} "
        f"{'volume':>7} {'stretch':>8} {'s':>6}"
    )
    for name, source in SOURCES.items():
        for other, target in TARGETS.items():
            if (chosen and not any(name.startswith(word) for word in chosen)) or (onto and other not in onto):
                continue
            if name == other:
                continue  # the source's own shape
            found, expected = score(name, other), sensible(source, target)
            done = not found.words
            well = done and found.median < 15 and found.faces
            good, all_sensible = good + (expected and well), all_sensible + expected
            wrong = done and (not expected or not well)
            silent += wrong
            outcome = ("done" if done else "refused") + ("" if done == expected else " !")
            print(
                f"{name:16} {other:13} {outcome:9} {found.median:5.1f}° {found.most:5.1f}° "
                f"{'yes' if found.faces else 'NO':>6} {found.volume:7.2f} {found.stretch:8.2f} {found.seconds:6.1f}"
                + (f"  {found.words[:110]}" if found.words and expected else ""),
                flush=True,
            )
    print(f"{good} of {all_sensible} sensible pairs below 15° and facing right; {silent} silent failures")


if __name__ == "__main__":
    matrix(sys.argv[1:])
