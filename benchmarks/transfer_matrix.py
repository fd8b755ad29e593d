"""Automatic transfer of many sources onto many targets: which are refused, how well the others are recognised.

    python benchmarks/transfer.py matrix                       # every pair
    python benchmarks/transfer.py matrix walk bull -- knight   # some sources, some targets
    python benchmarks/transfer.py matrix --headings            # turned, moved, scaled and mirrored: every target once
    python benchmarks/transfer.py matrix --sheets FOLDER       # a contact sheet of every pair that is done

For each pair: whether it was done or refused ("!" where that is not what should be: bodies that stand on as many legs,
or fly, are sensible pairs); the angle between corresponding pieces of legs and arms, in the median and at 90 % of
pieces and frames; the phase by which legs swing later than the source's; how far planted feet slide over how far the
source's do, both over the body's height; how high feet float above the floor while the source's stand, and how deep
something is below it, over the height; the least volume over the rest's; the largest stretch of an edge; whether the
target faces where it does; seconds; what the result itself cannot vouch for. A pair that is not good, or should have
been refused, has failed in silence where that is nothing. Bodies and cages are found once a shape.
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
from PIL import Image as Pillow

import pliant
from pliant import Animation, Mesh, Motion, PointCloud, gallery, quality, render
from pliant.app.scene.media import part_of, shape_in
from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.topology import Floats
from pliant.engines.transfer.automatic import cage_axes
from pliant.engines.transfer.judgement import MOST_ANGLE
from pliant.gallery.primitives import box_mesh
from pliant.geometry.body_plan import names
from pliant.geometry.body_plan.recognition import followed_nodes, limb_errors
from pliant.geometry.body_plan.retargeted import Retargeted

DATA = Path(__file__).parents[2] / "shared" / "data"
FRAMES = 24
"""Of each clip, evenly."""
LATTICE = 40
HEADINGS = (45, 90, 135, 180, 225, 270, 315)


@dataclass(frozen=True)
class Thing:
    """A source or a target, how many legs it stands on (0: it flies; -1: none of these), where it faces, what is up."""

    make: Callable[[], Any]
    legs: int
    front: tuple[float, float, float] = (0, 0, 1)
    up: tuple[float, float, float] = (0, 1, 0)


def bvh(name: str) -> Callable[[], Motion]:
    return lambda: pliant.read_motion(DATA / "mocap" / name)


def joints(name: str, clip: str) -> Callable[[], Motion]:
    return lambda: pliant.read_motion(DATA / name, clip=clip)


def points(name: str, clip: str | None = None) -> Callable[[], Animation]:
    return lambda: pliant.read_animation(DATA / name, clip=clip)


def shape(name: str) -> Callable[[], Any]:
    return lambda: shape_in(str(DATA / name))


def turned_motion(motion: Motion, R: Floats, scale: float = 1.0, shift: Any = 0.0) -> Motion:
    """A motion in a world that is turned, scaled and moved; R may mirror, which changes the names of sides."""
    bones, called = motion.skeleton, list(motion.skeleton.names)
    flip = np.eye(3)
    if np.linalg.det(R) < 0:
        flip = np.diag([1.0, 1.0, -1.0])
        for i, j in names.mirrored(bones.names):
            called[i], called[j] = called[j], called[i]
    q = rotations.quaternion(R @ flip)

    def mirror(turns: Floats) -> Floats:
        return rotations.quaternion(flip @ rotations.matrix(turns) @ flip)

    offsets, rest = scale * bones.offsets @ flip, mirror(bones.rest_rotations)
    places, turns = scale * motion.translations @ flip, mirror(motion.rotations)
    for j in np.flatnonzero(bones.parents < 0):
        offsets[j], rest[j] = R @ flip @ offsets[j] + shift, rotations.multiply(q, rest[j])
        places[:, j], turns[:, j] = places[:, j] @ flip @ R.T + shift, rotations.multiply(q, turns[:, j])
    ends = {j: scale * flip @ end for j, end in bones.ends.items()}
    other = pliant.Skeleton(tuple(called), bones.parents, offsets, rest, ends)
    return replace(motion, skeleton=other, translations=places, rotations=turns, channels=None)


def turned_shape(body: Any, R: Floats, scale: float = 1.0, shift: Any = 0.0) -> Any:
    """A shape that is turned, scaled and moved, its faces reversed where R mirrors."""
    moved = scale * body.points @ R.T + shift
    if np.linalg.det(R) < 0 and isinstance(body, Mesh):
        called = list(body.vertex_groups)
        sides = dict(names.mirrored(called))
        sides |= {j: i for i, j in sides.items()}
        groups = {called[sides.get(k, k)]: weights for k, weights in enumerate(body.vertex_groups.values())}
        return Mesh(moved, [face[::-1] for face in body.polygons], world=body.world, vertex_groups=groups)
    return body.with_points(moved)


def turned_source(source: Any, R: Floats, scale: float = 1.0, shift: Any = 0.0) -> Any:
    if isinstance(source, Motion):
        return turned_motion(source, R, scale, shift)
    return Animation(turned_shape(source.shape, R, scale, shift), scale * source.points @ R.T + shift, source.fps)


def boxes() -> Mesh:
    """A humanoid of loose boxes in a T-pose, with gaps at its joints."""
    spec = [
        ((0.36, 0.26, 0.2), (0, 1.02, 0)), ((0.44, 0.34, 0.24), (0, 1.36, 0)), ((0.2, 0.24, 0.22), (0, 1.72, 0.02)),
        ((0.1, 0.08, 0.1), (0, 1.57, 0)),
    ]  # fmt: skip
    for side in (1, -1):
        spec += [
            ((0.3, 0.11, 0.11), (side * 0.4, 1.47, 0)), ((0.28, 0.1, 0.1), (side * 0.71, 1.47, 0)),
            ((0.15, 0.05, 0.1), (side * 0.94, 1.47, 0)), ((0.15, 0.42, 0.16), (side * 0.1, 0.67, 0)),
            ((0.12, 0.36, 0.13), (side * 0.1, 0.26, 0)), ((0.11, 0.07, 0.26), (side * 0.1, 0.035, 0.06)),
        ]  # fmt: skip
    parts = [box_mesh(60, np.array(size), 0.0) for size, _ in spec]
    places = [mesh.points - mesh.points.mean(axis=0) + at for mesh, (_, at) in zip(parts, spec, strict=True)]
    starts = np.cumsum([0, *(len(mesh.points) for mesh in parts[:-1])])
    faces = [mesh.triangles + start for mesh, start in zip(parts, starts, strict=True)]
    return Mesh(np.concatenate(places), np.concatenate(faces))


def soup(body: Mesh) -> Mesh:
    """The same triangles, none joined to another."""
    return Mesh(body.points[body.triangles].reshape(-1, 3), np.arange(3 * len(body.triangles)).reshape(-1, 3))


def splats(body: Mesh) -> PointCloud:
    """Gaussian splats on the faces."""
    middle = body.points[body.triangles].mean(axis=1)
    size = np.full((len(middle), 3), np.log(0.01 * body.diagonal))
    turns = np.tile([1.0, 0, 0, 0], (len(middle), 1))
    columns = {f"scale_{k}": size[:, k] for k in range(3)} | {f"rot_{k}": turns[:, k] for k in range(4)}
    return PointCloud(middle, attributes=columns | {"opacity": np.ones(len(middle))})


Z_UP = rotations.matrix(rotations.from_axis_angle([1, 0, 0], np.pi / 2))
SOURCES = {
    "walk": Thing(bvh("cmu/02_01.bvh"), 2),
    "walk, no T-pose": Thing(lambda: part_of(bvh("cmu/02_01.bvh")(), 1, 343), 2),
    "walk, Z up": Thing(lambda: turned_motion(bvh("cmu/02_01.bvh")(), Z_UP), 2, (0, -1, 0), (0, 0, 1)),
    "run": Thing(bvh("cmu/09_01.bvh"), 2),
    "jump": Thing(bvh("cmu/16_05.bvh"), 2),
    "cartwheel": Thing(bvh("cmu/49_06.bvh"), 2),
    "makehuman": Thing(bvh("makehuman/walk1.bvh"), 2, (0, -1, 0), (0, 0, 1)),
    "man": Thing(joints("models/rigged/CesiumMan.glb", "0"), 2),
    "man's points": Thing(points("models/rigged/CesiumMan.glb"), 2),
    "bull": Thing(joints("models/rigged/Bull.glb", "AnimalArmature|Gallop"), 4),
    "bull's points": Thing(points("models/rigged/Bull.glb", "AnimalArmature|Gallop"), 4),
    "fox": Thing(joints("models/fox/Fox.glb", "Walk"), 4),
    "gallop": Thing(points("poses/horse-gallop/horse-gallop.tar.xz"), 4),
    "gait": Thing(lambda: gallery.animal_gait(2000), 4),
    "flamingo": Thing(points("poses/morph-glb/Flamingo.glb"), 0),
    "parrot": Thing(points("poses/morph-glb/Parrot.glb"), 0),
}
TARGETS = {
    "knight": Thing(shape("models/knight/knight.ply"), 2),
    "knight cloud": Thing(lambda: PointCloud(shape("models/knight/knight.ply")().points), 2),
    "knight soup": Thing(lambda: soup(shape("models/knight/knight.ply")()), 2),
    "man": Thing(shape("models/rigged/CesiumMan.glb"), 2),
    "man's splats": Thing(lambda: splats(shape("models/rigged/CesiumMan.glb")()), 2),
    "actor": Thing(lambda: points("poses/man-crane/crane.tar.xz")().shape, 2, (-1, 0, 0)),
    "ogre": Thing(shape("cages/ogre/Ogre.obj"), 2),
    "armadillo": Thing(shape("models/armadillo/arma2.obj"), 2),
    "robot": Thing(shape("models/rigged/RobotExpressive.glb"), 2),
    "boxes": Thing(boxes, 2),
    "creature": Thing(lambda: gallery.creature(4000).base, 2),
    "gingerbread": Thing(lambda: gallery.gingerbread(3000).base, 2),
    "elephant": Thing(shape("models/elephant/elephant.obj"), 2),
    "bunny": Thing(shape("models/rigged/HumanoidRig.glb"), 2),
    "tyrannosaur": Thing(shape("models/dino/Trex.glb"), 2),
    "dino": Thing(shape("models/dino/dino.off"), 2, (0, -1, 0), (0, 0, 1)),
    "alpaca": Thing(shape("models/rigged/Alpaca.glb"), 4),
    "husky": Thing(shape("models/rigged/Husky.glb"), 4),
    "stag": Thing(shape("models/rigged/Stag.glb"), 4),
    "horse": Thing(shape("cages/horse/Horse_2.obj"), 4, (-1, 0, 0)),
    "cat": Thing(shape("poses/cat/cat-ref.obj"), 4),
    "camel": Thing(shape("poses/camel-dino/camel.obj"), 4, (0, 0, -1)),
    "fox": Thing(shape("models/fox/Fox.glb"), 4),
    "flamingo": Thing(shape("poses/morph-glb/Flamingo.glb"), 0),
    "parrot": Thing(shape("poses/morph-glb/Parrot.glb"), 0),
    "spider": Thing(shape("models/rigged/Spider.glb"), 8),
    "octopus": Thing(shape("models/octopus/octopus-low.mesh"), -1),
    "dolphin": Thing(shape("models/rigged/Dolphin.glb"), -1),
    "dress": Thing(shape("cages/clothing/clothing.obj"), -1),
    "hand": Thing(shape("cages/hand/hand.obj"), -1),
}


@cache
def target_of(name: str) -> tuple[Any, Any]:
    """A target and its cage."""
    return caged(TARGETS[name].make())


def caged(body: Any) -> tuple[Any, Any]:
    return body, pliant.build_cage(body, faces=400, axes=cage_axes(None, body, None, None))


@cache
def source_of(name: str) -> Any:
    return SOURCES[name].make()


def is_sensible(name: str, other: str) -> bool:
    source, target = SOURCES[name], TARGETS[other]
    return source.legs == target.legs and source.legs >= 0 and name.split(",")[0].split("'")[0] != other.split("'")[0]


@dataclass(frozen=True)
class Score:
    """What came of a pair."""

    refusal: str = ""
    """Empty if it was done"""
    median: float = np.nan
    """Degrees"""
    most: float = np.nan
    """Degrees, at 90 %"""
    phase: float = np.nan
    """Degrees of the gait's period"""
    slide: float = np.nan
    floating: float = np.nan
    below: float = np.nan
    volume: float = np.nan
    stretch: float = np.nan
    faces: bool = True
    seconds: float = 0.0
    warned: tuple[str, ...] = ()
    """Names of what the result itself cannot vouch for, with exit code 1"""


def score(source: str, target: str, folder: Path | None = None) -> Score:
    """Transfer, and measure."""
    moving, (body, cage) = source_of(source), target_of(target)
    begun = time.perf_counter()
    frames = np.unique(np.linspace(0, len(moving) - 1, FRAMES).round())
    try:
        moved = pliant.transfer(moving, body, cage, "auto", frames=frames, lattice=LATTICE)
    except InputError as problem:
        return Score(str(problem), seconds=time.perf_counter() - begun)
    taken = time.perf_counter() - begun
    found = moved.registered
    if found is None:
        return Score(faces=False, seconds=taken)
    if folder is not None:
        sheet(folder / f"{source} on {target}.png", moving, moved.clip, found, frames.astype(int))
    measured = Measured(found, moved.clip, frames.astype(int))
    angles = measured.angles()
    faces = found.target.alike or float(found.target.frame[2] @ TARGETS[target].front) > 0.9
    closed = isinstance(body, Mesh) and not target.endswith("soup")
    return Score(
        "",
        float(np.median(angles)),
        float(np.quantile(angles, 0.9)),
        measured.phase(),
        np.nan if moved.judgement.slide is None else moved.judgement.slide.ratio,
        max(moved.judgement.floating.values(), default=np.nan),
        measured.below(),
        float(quality.volume_ratio(body, moved.clip).min()) if closed else np.nan,
        stretch(body, moved.clip),
        faces,
        taken,
        tuple(dict.fromkeys(sentence.partition(":")[0] for sentence in moved.judgement.problems)),
    )


class Measured:
    """The source's limbs and those of the result, at the same times, each in its own body's frame."""

    def __init__(self, found: Retargeted, moved: Animation, frames: Any) -> None:
        self.found, self.moved, self.frames = found, moved, frames
        source, target = found.source, found.target
        self.source = source.positions[frames]
        self.target = followed_nodes(moved.shape.points, moved.points, target.tree.locations)
        self.height = float(np.ptp(moved.shape.points @ target.frame[1]))

    def angles(self) -> Floats:
        """Degrees between corresponding pieces of legs and arms."""
        pieces = list(limb_errors(self.found, self.source, self.target).values())
        return np.concatenate(pieces, axis=1).ravel() if pieces else np.array([np.nan])

    def phase(self) -> float:
        """Degrees by which legs swing later or earlier than the source's, the largest; NaN where none swing."""
        shifts = []
        for mine, theirs in self.found.follower.legs:
            swings = []
            for places, chain, frame in (
                (self.source, mine, self.found.source.world),
                (self.target, theirs, self.found.target.frame),
            ):
                i, j, t = chain.between(chain.start)
                reach = places[:, chain.end_node] - (1 - t) * places[:, i] - t * places[:, j]
                angle = np.arctan2(reach @ frame[2], -(reach @ frame[1]))
                swings.append(np.fft.rfft((angle - angle.mean()) * np.hanning(len(angle)))[1:])
            k = int(np.argmax(np.abs(swings[0])))
            if np.abs(swings[0][k]) > 0.05 * len(self.source) / 4:
                shifts.append(abs(float(np.degrees(np.angle(swings[1][k] / swings[0][k])))))
        return max(shifts, default=np.nan)

    def below(self) -> float:
        """How deep something is below the floor, over the height; 0 where nothing is."""
        up, ground = self.found.target.frame[1], self.found.target.ground
        return max(0.0, ground - float((self.moved.points @ up).min())) / self.height


def stretch(body: Any, moved: Animation) -> float:
    """The largest of an edge, over all frames; edges shorter than a hundredth of the diagonal do not count."""
    if not isinstance(body, Mesh):
        return float("nan")
    edges = np.unique(np.sort(body.triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1), axis=0)
    long = np.linalg.norm(np.diff(body.points[edges], axis=1)[:, 0], axis=1)
    edges, long = edges[long > 0.01 * body.diagonal], long[long > 0.01 * body.diagonal]
    now = np.linalg.norm(moved.points[:, edges[:, 0]] - moved.points[:, edges[:, 1]], axis=2)
    return float((now / long).max())


def sheet(file: Path, source: Any, clip: Animation, found: Retargeted, frames: Any) -> None:
    """The source above the target, from the side and the front, at the same times."""
    some = np.linspace(0, len(frames) - 1, 6).astype(int)
    rows = []
    for what, frame in ((_some(source, frames[some]), found.source.world), (_some(clip, some), found.target.frame)):
        upright = _upright(what, frame)
        rows += [
            render.contact_sheet(upright, frames=6, columns=6, size=(190, 200), view=v, up="y", follow=True)
            for v in ((65, 8), (10, 5))
        ]
    whole = Pillow.new("RGB", (rows[0].width, sum(row.height for row in rows)))
    top = 0
    for row in rows:
        whole.paste(row, (0, top))
        top += row.height
    whole.save(file)


def _some(thing: Any, frames: Any) -> Any:
    if isinstance(thing, Motion):
        return replace(thing, rotations=thing.rotations[frames], translations=thing.translations[frames])
    return replace(thing, points=thing.points[frames])


def _upright(thing: Any, frame: Floats) -> Any:
    """In its own body's frame: up along y, facing z."""
    return turned_motion(thing, frame) if isinstance(thing, Motion) else turned_source(thing, frame)


def chosen(words: Sequence[str]) -> list[tuple[str, str]]:
    split = list(words).index("--") if "--" in words else len(words)
    some, onto = words[:split], words[split + 1 :]
    return [
        (name, other)
        for name in SOURCES
        for other in TARGETS
        if (not some or any(name.startswith(word) for word in some)) and (not onto or other in onto) and name != other
    ]


def matrix(words: Sequence[str]) -> None:
    """Print it, and how many of the sensible pairs are good."""
    warnings.simplefilter("ignore")
    words, folder = list(words), None
    if "--sheets" in words:
        k = words.index("--sheets")
        folder = Path(words[k + 1])
        folder.mkdir(parents=True, exist_ok=True)
        del words[k : k + 2]
    if "--headings" in words:
        words.remove("--headings")
        headings([pair for pair in chosen(words) if is_sensible(*pair)] if words else one_each())
        return
    good, all_sensible, silent, slides, sunk = 0, 0, 0, [], []
    print(
        f"{'source':16} {'target':13} {'':9} {'angle':>6} {'90 %':>6} {'phase':>6} {'slide':>6} {'float':>6} "
        f"{'below':>6} {'volume':>7} {'stretch':>8} {'faces':>5} {'s':>6}"
    )
    for name, other in chosen(words):
        found, expected = score(name, other, folder), is_sensible(name, other)
        done = not found.refusal
        well = done and found.median < MOST_ANGLE and found.faces
        good, all_sensible = good + (expected and well), all_sensible + expected
        silent += done and not found.warned and (not expected or not well)
        slides += [found.slide] if done and expected else []
        sunk += [found.below] if done and expected else []
        outcome = ("done" if done else "refused") + ("" if done == expected else " !")
        if done or expected:
            print(
                f"{name:16} {other:13} {outcome:9} {found.median:5.1f}° {found.most:5.1f}° {found.phase:5.1f}° "
                f"{found.slide:6.2f} {100 * found.floating:5.1f}% {100 * found.below:5.1f}% {found.volume:7.2f} "
                f"{found.stretch:8.2f} "
                f"{'yes' if found.faces else 'NO':>5} {found.seconds:6.1f}"
                + f"  {found.refusal[:110] or ', '.join(found.warned)}".rstrip(),
                flush=True,
            )
    print(f"{good} of {all_sensible} sensible pairs below {MOST_ANGLE:g}° and facing right; {silent} silent failures")
    if slides:
        print(
            f"slide over the source's: {np.nanmedian(slides):.2f} in the median, {np.nanmax(slides):.2f} at most; "
            f"below the floor: {100 * max(sunk):.1f} % of the height at most"
        )


def one_each() -> list[tuple[str, str]]:
    """Every target with a sensible source, and every source."""
    pairs, used = [], dict.fromkeys(SOURCES, 0)
    for other in TARGETS:
        fitting = [name for name in SOURCES if is_sensible(name, other)]
        if fitting:
            pairs.append((min(fitting, key=lambda name: used[name]), other))
            used[pairs[-1][0]] += 1
    return pairs


def turn(thing: Thing, degrees: float) -> Floats:
    """About what is up."""
    return rotations.matrix(rotations.from_axis_angle(list(thing.up), np.radians(degrees)))


def mirror(thing: Thing) -> Floats:
    return np.diag([-1.0, 1.0, 1.0])


def headings(pairs: Sequence[tuple[str, str]]) -> None:
    """How far results are from what they should be when source and target are turned, moved, scaled and mirrored.

    Both are turned about what is up, the source three times as far as the target; the second-last column is the worst
    heading, over the diagonal.
    """
    worst: list[float] = []
    print(f"{'source':16} {'target':13} {'turned: mean':>13} {'most':>9} {'mirrored: mean':>15} {'most':>9} {'s':>6}")
    for name, other in pairs:
        begun = time.process_time()
        source, body = source_of(name), TARGETS[other].make()
        some = np.linspace(0, len(source) - 1, 3).round()
        try:
            wanted = result(source, body, some)
        except InputError as problem:
            print(f"{name:16} {other:13} refused: {str(problem)[:90]}", flush=True)
            continue
        shift = np.array([0.3, -0.7, 1.1]) * body.diagonal
        away = []
        for degrees in (*HEADINGS, None):
            if degrees is None:
                R, S = mirror(TARGETS[other]), mirror(SOURCES[name])
            else:
                R, S = turn(TARGETS[other], degrees), turn(SOURCES[name], 3 * degrees)
            try:
                found = result(turned_source(source, S, 0.01, 2.5), turned_shape(body, R, SCALE, shift), some)
            except InputError as problem:
                print(f"{name:16} {other:13} {degrees or 'mirrored'}: refused: {str(problem)[:90]}", flush=True)
                away.append(np.full(wanted.shape[:2], np.inf))
                continue
            away.append(np.linalg.norm((found - shift) / SCALE @ R - wanted, axis=2) / body.diagonal)
        worst.append(max(float(a.max()) for a in away))
        values = [max(a.mean() for a in away[:-1]), max(a.max() for a in away[:-1]), away[-1].mean(), away[-1].max()]
        shown = "".join(f" {100 * value:{width}.2g} %" for value, width in zip(values, (11, 7, 13, 7), strict=True))
        print(f"{name:16} {other:13}{shown} {time.process_time() - begun:6.1f}", flush=True)
    print(f"{sum(w < 0.01 for w in worst)} of {len(worst)} pairs turn, move, scale and mirror along to 1 % everywhere")


SCALE = 3.0


def result(source: Any, body: Any, frames: Floats) -> Floats:
    return pliant.transfer(source, body, "auto", "auto", frames=frames, lattice=LATTICE, faces=400).clip.points


if __name__ == "__main__":
    matrix(sys.argv[1:])
