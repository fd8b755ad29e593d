"""Blending what files really hold: broken meshes, strange targets and wrong options. Each ends in words, or well."""

from __future__ import annotations

import warnings
from contextlib import nullcontext

import numpy as np
import pytest

from pliant import InputError, Mesh, PliantWarning, Pull, Shapes, gallery
from pliant.engines.blend import Blendshapes
from pliant.engines.blend.targets import target_problems
from pliant.geometry import quality
from sweeps import every

SPHERE = gallery.sphere(500)
P, T = SPHERE.points, SPHERE.triangles
COUNT = len(P)
BAR = gallery.bar(500)
BENT = [BAR.base, BAR.named("bent 180")]
RNG = np.random.default_rng(11)


def stretched(mesh: Mesh) -> list[Mesh]:
    """A mesh, and the same half as tall again and a little bent."""
    return [mesh, mesh.with_points(mesh.points * [1, 1.5, 1] + 0.1 * np.sin(2 * mesh.points[:, [1, 2, 0]]))]


def with_points(base: np.ndarray, target: np.ndarray) -> list[Mesh]:
    return [Mesh(base, T), Mesh(target, T)]


def joined(points: np.ndarray) -> np.ndarray:
    """The first triangle's edge collapsed."""
    moved = points.copy()
    moved[T[0, 0]] = moved[T[0, 1]]
    return moved


def apart(mesh: Mesh) -> Mesh:
    """Every triangle with corners of its own."""
    return Mesh(mesh.points[mesh.triangles].reshape(-1, 3), np.arange(mesh.triangles.size).reshape(-1, 3))


def with_a_tooth() -> Mesh:
    """A tetrahedron stands on one of the sphere's edges: four faces meet there."""
    a, b, c, d = T[0, 0], T[0, 1], COUNT, COUNT + 1
    tooth = [[a, b, c], [b, a, d], [a, c, d], [b, d, c]]
    return Mesh(np.concatenate([P, [1.5 * P[a] + 0.1, 1.5 * P[b] - 0.1]]), np.concatenate([T, tooth]))


def with_a_flat_triangle() -> Mesh:
    a, b, c = T[0]
    new = [[a, COUNT, c], [COUNT, b, c], [a, b, COUNT]]
    return Mesh(np.concatenate([P, [(P[a] + P[b]) / 2]]), np.concatenate([T[1:], new]))


def two_parts(second: np.ndarray) -> Mesh:
    return Mesh(np.concatenate([P, second]), np.concatenate([T, T + COUNT]))


def turned(mesh: Mesh) -> Mesh:
    some = RNG.random(len(mesh.triangles)) < 0.3
    return Mesh(mesh.points, np.where(some[:, None], mesh.triangles[:, ::-1], mesh.triangles))


TINY = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
PLATE = gallery.box(500)

MESHES = {
    "faces twice": lambda: stretched(Mesh(P, np.concatenate([T, T[:20]]))),
    "faces that use a vertex twice": lambda: stretched(Mesh(P, np.concatenate([T, [[0, 0, 1], [2, 2, 2]]]))),
    "a flat triangle": lambda: stretched(with_a_flat_triangle()),
    "four faces at an edge": lambda: stretched(with_a_tooth()),
    "facing anywhere": lambda: stretched(turned(SPHERE)),
    "inside out": lambda: stretched(Mesh(P, T[:, ::-1])),
    "with a hole": lambda: stretched(Mesh(P, T[30:])),
    "parts apart": lambda: stretched(two_parts(0.3 * P + 5)),
    "one part inside the other": lambda: stretched(two_parts(0.3 * P)),
    "the same part twice": lambda: stretched(two_parts(P)),
    "a speck beside it": lambda: stretched(two_parts(1e-8 * P + 5)),
    "loose vertices": lambda: stretched(Mesh(np.concatenate([P, [[3, 3, 3], [4, 4, 4]]]), T)),
    "vertices that meet in the target": lambda: with_points(P, joined(1.5 * P)),
    "vertices that meet in the base": lambda: with_points(joined(P), 1.5 * P),
    "vertices that meet in both": lambda: with_points(joined(P), joined(1.5 * P)),
    "triangles apart": lambda: [apart(mesh) for mesh in BENT],
    "one triangle": lambda: [Mesh(np.eye(3), [[0, 1, 2]]), Mesh(2 * np.eye(3), [[0, 1, 2]])],
    "a tetrahedron": lambda: stretched(TINY),
    "a thin plate": lambda: stretched(Mesh(PLATE.points * [1, 1, 1e-3], PLATE.triangles)),
    "a plate of no thickness": lambda: stretched(Mesh(PLATE.points * [1, 1, 0], PLATE.triangles)),
    "of micrometres": lambda: [m.with_points(1e-6 * m.points) for m in BENT],
    "of millions": lambda: [m.with_points(1e6 * m.points) for m in BENT],
    "far away": lambda: [m.with_points(m.points + 1e4 * m.diagonal) for m in BENT],
}

TARGETS = {
    "the base again": lambda: [SPHERE, SPHERE],
    "the base again, and another": lambda: [SPHERE, SPHERE, stretched(SPHERE)[1]],
    "the same target twice": lambda: [*stretched(SPHERE), stretched(SPHERE)[1]],
    "mirrored": lambda: [BAR.base, BAR.base.with_points(BENT[1].points * [-1, 1, 1])],
    "inside out through its middle": lambda: with_points(P, -P),
    "half a turn": lambda: with_points(P, P * [-1, -1, 1]),
    "ten times as large": lambda: with_points(P, 10 * P),
    "a thousandth": lambda: with_points(P, 1e-3 * P),
    "all in one place": lambda: with_points(P, 0 * P + 1),
    "from one place": lambda: with_points(0 * P + 1, P),
    "one place to another": lambda: with_points(0 * P, 0 * P + 1),
    "in a plane": lambda: with_points(P, P * [1, 1, 0]),
    "from a plane": lambda: with_points(P * [1, 1, 0], P),
    "on a line": lambda: with_points(P, P * [1, 0, 0]),
    "one vertex far off": lambda: with_points(P, np.where(np.arange(COUNT)[:, None] == 5, 100 * P, P)),
    "vertices in any order": lambda: with_points(P, P[RNG.permutation(COUNT)]),
    "anywhere": lambda: with_points(P, RNG.normal(size=P.shape)),
}


NAMED = {
    "mirrored": "is mirrored along x: negate its x coordinates",
    "inside out through its middle": "is point-reflected: negate all its coordinates",
    "one vertex far off": "is torn: .* move them to their neighbours",
    "vertices in any order": "has its vertices in another order .* export both from the same mesh",
    "anywhere": "has its vertices in another order",
}


@pytest.mark.parametrize("name", every(3, [*MESHES, *TARGETS]))
def test_every_shape_comes_back_and_every_frame_is_finite(name):
    shapes = (MESHES.get(name) or TARGETS[name])()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.warns(PliantWarning, match=NAMED[name]) if name in NAMED else nullcontext():
            rig = Blendshapes(shapes)
        poses = list(rig.poses(rig.path(3 + 2 * (len(shapes) - 2))))
        beyond = rig.solve({rig.shapes.names[-1]: 1.3})
    size = max(mesh.diagonal for mesh in shapes) or 1.0
    for pose, mesh in zip(poses[::2], shapes, strict=True):
        assert np.abs(pose.points - mesh.points).max() < 1e-6 * size
    reach = max(np.linalg.norm(mesh.points - shapes[0].points.mean(axis=0), axis=1).max() for mesh in shapes)
    for pose in [*poses, beyond]:
        assert np.isfinite(pose.points).all()
        assert np.linalg.norm(pose.points - shapes[0].points.mean(axis=0), axis=1).max() < 2.5 * reach
        assert pose.converged


def bad_exports(points: np.ndarray, diagonal: float) -> dict[str, tuple[np.ndarray, str]]:
    """A target as exporters spoil it, and what is said of it."""
    right, shuffled, part = points[:, 0] > np.median(points[:, 0]), RNG.permutation(len(points)), points.copy()
    part[: len(points) // 5] = points[RNG.permutation(len(points) // 5)]
    return {
        **{f"mirrored along {'xyz'[k]}": (points * (1 - 2 * np.eye(3)[k]), f"along {'xyz'[k]}") for k in range(3)},
        "point-reflected": (-points, "point-reflected"),
        "axes exchanged": (points[:, [0, 2, 1]], "mirrored, y and z exchanged"),
        "shuffled": (points[shuffled], "in another order"),
        "shuffled in part": (part, "in another order"),
        "cut apart": (points + 0.5 * diagonal * np.outer(right, [1, 0, 0]), "is torn"),
        "left far away in part": (np.where(np.arange(len(points))[:, None] < 12, 10 * diagonal, points), "is torn"),
    }


BAD_TARGETS = {"bar": "bent 180", "hand": "fist", "face": "surprise"}


@pytest.mark.parametrize("name", BAD_TARGETS)
def test_bad_exports_are_named_and_poses_are_not(name):
    shapes = getattr(gallery, name)(900)
    assert not list(target_problems(shapes))
    target = shapes.named(BAD_TARGETS[name]).points
    for points, words in bad_exports(target, shapes.base.diagonal).values():
        (problem,) = target_problems(Shapes.of([shapes.base, shapes.base.with_points(points)], ["base", "spoilt"]))
        assert problem.startswith('"spoilt" ')
        assert words in problem


def test_a_seam_that_opens_is_named():
    seam = apart(BAR.base)
    moved = apart(BENT[1]).points.copy()
    moved[::3] += 1e-4
    (problem,) = target_problems(Shapes.of([seam, seam.with_points(moved)]))
    assert "merge vertices by distance" in problem


@pytest.mark.parametrize("name", ["faces twice", "a flat triangle", "facing anywhere", "parts apart", "loose vertices"])
def test_what_is_wrong_with_a_mesh_does_not_change_the_blend(name):
    odd, plain = (Blendshapes(shapes).solve([0.5, 0.5]).points for shapes in (MESHES[name](), stretched(SPHERE)))
    assert np.abs(odd[:COUNT] - plain).max() < 0.01 * SPHERE.diagonal


def test_triangles_apart_are_welded():
    soup = Blendshapes(MESHES["triangles apart"]()).solve([0.5, 0.5]).points
    weld = apart(BENT[0]).welded(poses=[apart(BENT[1]).points])
    meshes = [weld.mesh.with_points(apart(m).points[weld.kept]) for m in BENT]
    whole = weld.restore(Blendshapes(meshes).solve([0.5, 0.5]).points)
    assert len(weld.mesh.points) == len(BAR.base.points)
    assert np.abs(soup - whole).max() < 1e-9 * BAR.base.diagonal


def test_a_larger_target_is_grown_to_evenly():
    half = Blendshapes(TARGETS["ten times as large"]()).solve([0.5, 0.5]).points
    assert np.abs(half - 5.5 * P).max() < 1e-4 * 10 * SPHERE.diagonal  # the anchor cannot grow


def test_a_shape_that_turns_half_round_stays_one():
    half = Blendshapes(TARGETS["half a turn"]()).solve([0.5, 0.5]).points
    assert quality.edge_distortion(SPHERE, half) == pytest.approx(np.ones(len(SPHERE.edges)), abs=1e-6)


def test_a_curl_by_more_than_a_whole_turn_holds_together():
    shapes = gallery.tentacle(900)
    pair = Shapes.of([shapes.base, shapes.named("curled")])
    half = Blendshapes(pair).solve([0.5, 0.5])
    stretch = quality.edge_distortion(pair, half, weights=[0.5, 0.5])
    assert quality.summarize(stretch).rms < 0.05
    assert quality.volume_ratio(pair, half, weights=[0.5, 0.5]) == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ([], "got no shapes; expected one or more meshes"),
        ([SPHERE], "got one shape; expected a base and at least one more to blend with"),
        (SPHERE, "shapes are a Mesh; expected a list of meshes"),
        (None, "shapes are a NoneType; expected a list of meshes"),
        ([SPHERE, P], "shape 1 is a ndarray; expected a Mesh"),
        ([SPHERE, gallery.sphere(600)], r'"shape 1" does not match "shape 0": 602 vertices against 488'),
        ([SPHERE, Mesh(P, T)], r'"shape 1" does not match "shape 0": 972 faces against 486'),
        ([Mesh(P, T), Mesh(P, T[::-1])], "face 0 joins vertices"),
        ([Mesh(P, T), Mesh(P, np.roll(T, 1, axis=1))], "face 0 joins vertices"),
        ([Mesh(P, [[0, 1, 2], [2, 3, 4, 5]]), Mesh(P, [[0, 1, 2, 3], [3, 4, 5]])], "face 0 has 4 corners against 3"),
        ([Mesh(P, np.zeros((0, 3), int))] * 2, "the base has no faces; expected a mesh"),
        ([Mesh(np.zeros((0, 3)), np.zeros((0, 3), int))] * 2, "the base has no faces; expected a mesh"),
        ([Mesh(np.eye(3), [[0, 0, 2]])] * 2, "the base has no faces; expected a mesh"),
    ],
)
def test_shapes_that_cannot_be_blended_are_refused(shapes, words):
    with pytest.raises(InputError, match=words):
        Blendshapes(shapes)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_coordinates_that_are_no_numbers_are_refused(bad):
    points = P.copy()
    points[7, 1] = bad
    with pytest.raises(InputError, match="point 7 is"):
        Blendshapes([SPHERE, Mesh(points, SPHERE.polygons)])
    with pytest.raises(InputError, match='shape "b" has NaN or infinite coordinates'):
        Blendshapes(Shapes(SPHERE, np.stack([P, points]), ("a", "b")))


N = len(BAR.base.points)
PINS = f"expected vertex numbers|the mesh has {N}, numbered from 0"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        *(({"pins": pins}, PINS) for pins in ([N], [-1], [2**40], [0.5], [[0, 1]], "ab", 5, {3}, [None], [True])),
        ({"stiffness": np.ones(N - 1)}, rf"stiffness has shape \({N - 1},\); expected one factor for each of {N}"),
        ({"stiffness": np.ones((N, 3))}, rf"stiffness has shape \({N}, 3\)"),
        ({"stiffness": 2.0}, r"stiffness has shape \(\)"),
        ({"stiffness": "soft"}, "stiffness factors are 'soft'; expected numbers"),
        ({"stiffness": {"bending": "soft"}}, "stiffness factors are .*; expected numbers"),
        ({"stiffness": {"bendy": 1}}, 'stiffness names "bendy"; expected some of structure, bending, internal'),
        *(
            ({"stiffness": factors}, "stiffness factors must be positive and finite")
            for factors in ({"bending": 0}, {"bending": -1}, {"bending": np.inf}, -np.ones(N), np.full(N, np.nan))
        ),
        ({"stiffness": {"anchor": 2.0}}, 'stiffness names "anchor", and no part has one'),
        *(({"interior": value}, 'interior is .*; expected "auto" or "lattice"') for value in ("straw", None, 3)),
        *(({"anchor": value}, "anchor") for value in ("middle", (1, 2), (np.nan, 0, 0), 3, ["a", "b", "c"])),
        *(({"model": value}, "model is .*; expected") for value in ("clay", None, 3)),
    ],
)
def test_wrong_options_are_named(options, words):
    with pytest.raises(InputError, match=words):
        Blendshapes(BENT, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"pins": []},
        {"pins": range(4)},
        {"pins": [3, 3, 3]},
        {"pins": np.arange(N) < 9},
        {"pins": np.ones(N, bool)},
        {"pins": np.array([1, 2], np.uint8)},
        {"stiffness": {}},
        {"stiffness": {"structure": 1e6, "bending": 1e-6}},
        {"stiffness": np.geomspace(1e-4, 1e4, N)},
    ],
    ids=str,
)
def test_unusual_options_work(options):
    rig = Blendshapes(BENT, **options)
    for weight, mesh in zip((0, 1), BENT, strict=True):
        assert np.abs(rig.solve([1 - weight, weight]).points - mesh.points).max() < 1e-6 * mesh.diagonal
    half = rig.solve([0.5, 0.5])
    assert np.isfinite(half.points).all()
    pinned = np.unique(np.arange(N)[options["pins"]]) if len(options.get("pins", ())) else []
    assert np.allclose(half.points[pinned], (BENT[0].points + BENT[1].points)[pinned] / 2)


@pytest.fixture(scope="module")
def rig() -> Blendshapes:
    return Blendshapes(BENT, interior="none", pins=[0, 1])


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([0.5, 0.5, 0.5], r"weights have shape \(3,\); expected 2 numbers"),
        (0.5, r"weights have shape \(\); expected 2 numbers"),
        (None, r"weights have shape \(\)"),
        ("half", "weights are 'half'; expected numbers"),
        ([np.nan, 1], "weights hold NaN or infinite values"),
        ([0, np.inf], "weights hold NaN or infinite values"),
        ({"smile": 1}, 'no shape is called "smile"; there are shape 0, shape 1'),
        ({"shape 1": None}, "weights hold NaN or infinite values"),
    ],
    ids=str,
)
def test_wrong_weights_are_named(rig, weights, words):
    with pytest.raises(InputError, match=words):
        rig.solve(weights)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        *(({"accuracy": value}, "accuracy is .*; expected a number between 0 and 1") for value in (0, 1, np.nan, "x")),
        *(({"iterations": value}, "iterations is .*; expected a whole number") for value in (0, -1, 0.5, "x")),
        *(({"method": value}, 'method is .*; expected "lbfgs" or') for value in ("guess", None)),
        *(({"start": value}, "start") for value in (np.zeros((3, 3)), "here", np.full((N, 3), np.nan))),
        *(({"pinned": value}, "pinned") for value in (5, np.zeros((1, 3)), "here", np.full((2, 3), np.nan))),
        *(({"pulls": value}, "pulls? ") for value in (5, [5], "up", [Pull(N, to=(0, 0, 0))])),
    ],
    ids=str,
)
def test_wrong_ways_to_solve_are_named(rig, options, words):
    with pytest.raises(InputError, match=words):
        rig.solve([0.5, 0.5], **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        *(({"steps": value}, "steps is .*; expected a whole number, 1 or more") for value in (0, -1, 2.5, "x")),
        *(({"steps": 2, "fps": value}, "fps is .*; expected a positive number") for value in (0, -1, np.nan, "x")),
        *(({"steps": 2, "jobs": value}, "jobs is .*; expected a whole number from 1") for value in (0, 1.5, "x")),
        ({"weights": np.zeros((0, 2))}, r"weights have shape \(0, 2\)"),
        ({"weights": [0.5, 0.5]}, r"weights have shape \(2,\)"),
        ({"weights": np.zeros((2, 3))}, r"weights have shape \(3,\)"),
        ({"weights": "all"}, "weights are 'all'"),
        ({"weights": [[0.5, 0.5], [0, np.nan]]}, "weights hold NaN"),
    ],
    ids=str,
)
def test_wrong_clips_are_named(rig, options, words):
    with pytest.raises(InputError, match=words):
        rig.animate(**options)
