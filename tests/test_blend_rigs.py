"""Face rigs under random sliders: every setting gives a face, next to linear blending, which is right for small motion.

A slider moves what its shape moves and little else; sliders add up, go beyond 1 and below 0, and may sum to more than
1; teeth and eyes stay in place. The gallery's face is tried in full; the real rigs with a few settings, and with 200
each in `make slow`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

import pliant
from pliant import Pose, Shapes, gallery
from pliant.core import rotations
from pliant.engines.blend import Blendshapes
from pliant.geometry import quality
from pliant.geometry.quality import dihedral_angles, edges_of

Setting = Callable[[np.random.Generator, int], np.ndarray]


def chosen(rng: np.random.Generator, sliders: int, count: int, low: float, high: float) -> np.ndarray:
    """(sliders,) zeros but for `count` of them, drawn between low and high."""
    weights = np.zeros(sliders)
    weights[rng.choice(sliders, min(count, sliders), replace=False)] = rng.uniform(low, high, min(count, sliders))
    return weights


SETTINGS: dict[str, Setting] = {
    "a few": lambda rng, n: chosen(rng, n, int(rng.integers(2, 6)), 0, 1),
    "many, each a little": lambda rng, n: chosen(rng, n, int(rng.integers(max(n // 2, 2), n + 1)), 0, 0.25),
    "one in full": lambda rng, n: chosen(rng, n, 1, 1, 1),
    "beyond 1 and below 0": lambda rng, n: chosen(rng, n, int(rng.integers(1, 6)), -0.5, 1.6),
    "more than 1 together": lambda rng, n: chosen(rng, n, int(rng.integers(4, 9)), 0.4, 0.8),
}


class Rig:
    """A rig, and what its results are measured by."""

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes
        self.rig = Blendshapes(shapes)
        self.diagonal = shapes.base.diagonal

    @cached_property
    def motion(self) -> np.ndarray:
        """(sliders, n) how far each slider moves each vertex."""
        return np.linalg.norm(self.shapes.points[1:] - self.shapes.points[0], axis=2)

    @cached_property
    def angles(self) -> np.ndarray:
        """(shapes, e) dihedral angles, the short way round from the base's."""
        angles = dihedral_angles(self.shapes.base, self.shapes.points)
        return angles[0] + (angles - angles[0] + np.pi) % (2 * np.pi) - np.pi

    @cached_property
    def lengths(self) -> np.ndarray:
        """(shapes, e) lengths of the edges."""
        return np.stack([self.edge_lengths(points) for points in self.shapes.points])

    def edge_lengths(self, points: np.ndarray) -> np.ndarray:
        ends = edges_of(self.shapes.base)
        return np.linalg.norm(points[ends[:, 1]] - points[ends[:, 0]], axis=1)

    def normals(self, points: np.ndarray) -> np.ndarray:
        """(m, 3) normals of the triangles, twice as long as these are large."""
        a, b, c = (points[self.shapes.base.triangles[:, k]] for k in range(3))
        return np.cross(b - a, c - a)

    def linear(self, sliders: np.ndarray) -> np.ndarray:
        """(n, 3) linear blending."""
        return self.shapes.mixed([self.rig.weights(sliders)]).points[0]

    def look(self, points: np.ndarray, sliders: np.ndarray) -> Look:
        """What a setting's points look like: edges and bends that its sliders change, and all triangles."""
        weights = self.rig.weights(sliders)
        used = np.flatnonzero(weights)
        stretching = np.ptp(self.lengths[used], axis=0) > 1e-6 * self.diagonal
        expected = np.maximum(weights @ self.lengths, 0.01 * self.lengths[0])
        stretch = np.log(np.maximum(self.edge_lengths(points), 1e-4 * self.lengths[0]) / expected)[stretching]
        bending = np.ptp(self.angles[used], axis=0) > 1e-4
        bend = dihedral_angles(self.shapes.base, points) - weights @ self.angles
        bend = np.abs((bend + np.pi) % (2 * np.pi) - np.pi)[bending]
        largest = np.max([np.linalg.norm(self.normals(self.shapes.points[s]), axis=1) for s in used], axis=0)
        sound = largest > 1e-9 * self.diagonal**2
        area = np.linalg.norm(self.normals(points), axis=1)[sound] / largest[sound]
        return Look(
            float(np.sqrt(np.mean(stretch**2))) if len(stretch) else 0.0,
            float(np.quantile(bend, 0.99)) if len(bend) else 0.0,
            float(area.max()),
        )


@dataclass(frozen=True)
class Look:
    """Measures of one setting."""

    stretch: float
    """Root mean square of log(length / blended length)."""
    bend: float
    """99th percentile of the deviation from the blended dihedral angles, in radians."""
    area: float
    """The largest triangle, over what it measures at most in the shapes that are used."""


def in_range(sliders: np.ndarray) -> bool:
    """Whether none is below 0 or above 1."""
    return bool((sliders >= 0).all() and (sliders <= 1).all())


def assert_plausible(face: Rig, sliders: np.ndarray, pose: Pose) -> tuple[Look, Look]:
    """Neither crumpled nor exploded, against linear blending; the looks of both."""
    linear = face.linear(sliders)
    motion = np.abs(sliders) @ face.motion
    assert np.isfinite(pose.points).all()
    assert pose.converged
    off = np.linalg.norm(pose.points - linear, axis=1)
    assert off.max() < 0.5 * motion.max()
    ours, theirs = face.look(pose.points, sliders), face.look(linear, sliders)
    assert ours.stretch < 1.05 * theirs.stretch + 0.01
    if in_range(sliders):  # beyond, the blended angles pass a closed fold and mean nothing
        assert ours.bend < theirs.bend + 0.4
    assert ours.area < 3 * theirs.area
    against = np.einsum("ij,ij->i", face.normals(pose.points), face.normals(linear))
    assert (against < 0).mean() < 0.01
    return ours, theirs


def assert_plausible_all(face: Rig, kinds: dict[str, Setting], count: int, seed: int) -> None:
    """So are `count` random settings, in turn of each kind, and on average they are better than linear blending."""
    rng = np.random.default_rng(seed)
    looks = []
    for k in range(count):
        sliders = list(kinds.values())[k % len(kinds)](rng, len(face.shapes) - 1)
        both = assert_plausible(face, sliders, face.rig.solve(sliders))
        if in_range(sliders):
            looks.append(both)
    ours, theirs = zip(*looks, strict=True)
    assert np.mean([look.stretch for look in ours]) < 0.9 * np.mean([look.stretch for look in theirs])
    assert np.mean([look.bend for look in ours]) < 1.1 * np.mean([look.bend for look in theirs])


@pytest.fixture(scope="module")
def face() -> Rig:
    """The gallery's face with all its expressions."""
    return Rig(gallery.face(1200))


def test_random_sliders_of_the_gallery_face(face):
    assert_plausible_all(face, SETTINGS, 40, seed=1)


def test_each_expression_is_met_at_its_own_slider(face):
    for name, points in zip(face.shapes.names, face.shapes.points, strict=True):
        pose = face.rig.solve({name: 1.0})
        assert pose.converged
        assert np.abs(pose.points - points).max() < 1e-6 * face.diagonal


def test_a_slider_moves_what_its_shape_moves(face):
    for sliders in np.eye(len(face.shapes) - 1) * 0.5:
        moved = sliders @ face.motion
        still = moved < 1e-6 * face.diagonal
        points = face.rig.solve(sliders).points
        drift = np.linalg.norm(points - face.shapes.base.points, axis=1)[still]
        assert drift.max() < 0.15 * moved.max()
        assert np.quantile(drift, 0.9) < 0.06 * moved.max()


def test_sliders_that_do_not_meet_add_up(face):
    """Raised brows and a kiss: each looks as if it were alone."""
    names = ["raised brows", "kiss"]
    together = face.rig.solve(dict.fromkeys(names, 0.7)).points
    moved = 0.7 * face.motion[[face.shapes.names.index(name) - 1 for name in names]]
    for k, name in enumerate(names):
        alone = face.rig.solve({name: 0.7}).points
        own = (moved[k] > 0.3 * moved[k].max()) & (moved[1 - k] < 0.01 * moved[1 - k].max())
        assert own.sum() > 15
        assert np.linalg.norm(together - alone, axis=1)[own].max() < 0.05 * moved[k].max()


def test_the_base_weight_may_fall_below_zero_without_a_pop(face):
    """Three sliders from 0 to 0.7 each: together 2.1, so that the base goes from 1 to -1.1."""
    t = np.linspace(0, 0.7, 36)
    sliders = np.zeros((36, len(face.shapes) - 1))
    for name, speed in (("smile", 1.0), ("raised brows", 1.0), ("puffed cheeks", 1.0)):
        sliders[:, face.shapes.names.index(name) - 1] = speed * t
    clip = face.rig.animate(sliders)
    assert 1 - sliders[-1].sum() < -1
    assert quality.popping(clip).worst < 3


def test_a_slider_comes_in_without_a_jump(face):
    """Frames on the blend of two shapes start from knots, all others from the guess: they must meet."""
    before = face.rig.solve({"wide open": 0.6}).points
    after = face.rig.solve({"wide open": 0.6, "wink": 1e-7}).points
    assert np.linalg.norm(after - before, axis=1).max() < 0.01 * 0.6 * face.motion.max()


def test_twice_the_sliders_move_about_twice_as_far(face):
    """Extrapolation goes on the same way: no saturation, no blow-up."""
    for name in ("smile", "blink", "puffed cheeks"):
        once, beyond = (face.rig.solve({name: t}).points - face.shapes.base.points for t in (0.75, 1.5))
        along = np.vdot(once, beyond) / np.vdot(once, once)
        assert along == pytest.approx(2, abs=0.25)


# The real rigs


def part_motions(points: np.ndarray, other: np.ndarray, parts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(parts,) distance between the centres of each part in two sets of points, and the angle between them."""
    apart, turn = [], []
    for part in range(parts.max() + 1):
        members = parts == part
        R, _ = rotations.match_rigid(points[members], other[members])
        apart.append(np.linalg.norm(points[members].mean(axis=0) - other[members].mean(axis=0)))
        turn.append(np.linalg.norm(rotations.log(rotations.shortest(rotations.quaternion(R)))))
    return np.array(apart), np.degrees(turn)


def assert_parts_stay(face: Rig, sliders: np.ndarray) -> None:
    """Parts that no shape moves are where they were; the others are near where linear blending has them."""
    parts = face.shapes.base.parts
    points = face.rig.solve(sliders).points
    still = np.bincount(parts, face.motion.max(axis=0)) == 0
    assert np.abs(points - face.shapes.base.points)[still[parts]].max(initial=0) < 1e-12 * face.diagonal
    apart, turn = part_motions(points, face.linear(sliders), parts)
    moved = np.abs(sliders) @ face.motion
    assert apart.max() < 0.2 * moved.max()
    assert turn.max() < 25


def some(shapes: Shapes, names: list[str]) -> Shapes:
    """The base and some of the other shapes."""
    return Shapes.of([shapes.base, *(shapes.named(name) for name in names)], [shapes.names[0], *names])


@pytest.fixture(scope="module")
def captured(data) -> Rig:
    """Three captured expressions."""
    return Rig(pliant.read_shapes(data / "faces/spacetime"))


@pytest.fixture(scope="module")
def makehuman(data) -> Rig:
    """Sparse offsets, of 154 parts."""
    return Rig(pliant.read_shapes(data / "faces/makehuman/units-caucasian", base=data / "faces/makehuman/base.obj"))


@pytest.fixture(scope="module")
def expressions(data) -> Shapes:
    """57 of them, of 56 parts: skin, gums, teeth, eyeballs, lashes."""
    return pliant.read_shapes(data / "faces/ict-facekit/ict-facekit-expressions.tar.xz")


@pytest.fixture(scope="module")
def facekit(expressions) -> Rig:
    """A few that move all of it."""
    names = ["jawOpen", "eyeBlink_L", "eyeBlink_R", "mouthSmile_L", "mouthSmile_R", "mouthPucker", "browInnerUp_L"]
    return Rig(some(expressions, names))


@pytest.mark.slow
@pytest.mark.data
def test_random_sliders_of_a_captured_face(captured):
    assert_plausible_all(captured, SETTINGS, 10, seed=2)


@pytest.mark.slow
@pytest.mark.data
def test_random_sliders_of_sparse_units(makehuman):
    assert_plausible_all(makehuman, SETTINGS, 10, seed=3)


@pytest.mark.slow
@pytest.mark.data
def test_random_sliders_of_a_production_rig(facekit):
    assert_plausible_all(facekit, SETTINGS, 10, seed=4)


@pytest.mark.data
@pytest.mark.parametrize("name", ["makehuman", "facekit"])
@pytest.mark.slow
def test_separate_parts_stay_in_place(request, name):
    face: Rig = request.getfixturevalue(name)
    rng = np.random.default_rng(5)
    for kind in ("a few", "many, each a little", "more than 1 together"):
        assert_parts_stay(face, SETTINGS[kind](rng, len(face.shapes) - 1))


@pytest.mark.data
@pytest.mark.slow
def test_eyes_and_upper_teeth_do_not_move_and_lower_teeth_stay_hard(facekit):
    """Opening the jaw turns the lower teeth by 25 degrees; half-way, linear blending makes them 1.2 % smaller."""
    base, jaw = facekit.shapes.base, facekit.shapes.named("jawOpen")
    points = facekit.rig.solve({"jawOpen": 0.5, "mouthSmile_L": 0.5}).points
    upper, lower, eyes = slice(17039, 19247), slice(19247, 21451), slice(21451, 24591)
    for still in (upper, eyes):
        assert np.abs(points[still] - base.points[still]).max() < 1e-6 * base.diagonal
    R, t = rotations.match_rigid(base.points[lower], points[lower])
    shape_error = np.linalg.norm(base.points[lower] @ R.T + t - points[lower], axis=1)
    motion = np.linalg.norm(jaw.points[lower] - base.points[lower], axis=1)
    assert motion.max() > 0.05 * base.diagonal
    assert shape_error.max() < 0.02 * motion.max()


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["captured", "makehuman"])
def test_two_hundred_settings(request, name):
    assert_plausible_all(request.getfixturevalue(name), SETTINGS, 200, seed=6)


@pytest.mark.data
@pytest.mark.slow
def test_two_hundred_settings_of_all_expressions(expressions):
    face = Rig(expressions)
    assert_plausible_all(face, SETTINGS, 200, seed=7)
    rng = np.random.default_rng(8)
    for make in SETTINGS.values():
        assert_parts_stay(face, make(rng, len(face.shapes) - 1))
