"""Cages built automatically: closed, facing out, free of crossings, around everything, with limbs apart."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

import pliant
from pliant import InputError, Mesh, PointCloud, TetMesh, gallery
from pliant.core.errors import PliantWarning
from pliant.core.shapes import Shape
from pliant.engines.transfer.build import build_cage, cage_error
from pliant.gallery.primitives import box_mesh
from pliant.geometry.shell import Target, distance_field
from pliant.geometry.spatial import SurfaceTree, winding_numbers
from sweeps import every

RNG = np.random.default_rng(11)
SPIRAL = np.linspace(0, 12, 300)
SHAPES: dict[str, Callable[[], Shape | np.ndarray]] = {
    "hand": lambda: gallery.hand(2000).base,
    "animal": lambda: gallery.animal(2000).base,
    "creature": lambda: gallery.creature(2000).base,
    "dinosaur": lambda: gallery.dinosaur(2000).base,
    "gingerbread": lambda: gallery.gingerbread(900).base,
    "face": lambda: gallery.face(1000).base,
    "robot": lambda: gallery.robot(2000),
    "tentacle": lambda: gallery.tentacle(1000).base,
    "tube": lambda: gallery.tube(500).base,
    "box": lambda: gallery.box(500),
    "soup": lambda: gallery.soup(1000),
    "cloud": lambda: gallery.cloud(2000),
    "tets": lambda: gallery.tets(1000),
    "bar of tetrahedra": lambda: gallery.bar_tets(500),
    "triangle": lambda: Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]),
    "two points": lambda: np.array([[0, 0, 0], [1, 0, 0.2]]),
    "line of points": lambda: np.linspace([0, 0, 0], [1, 2, 3], 60),
    "spiral of points": lambda: np.stack([np.cos(SPIRAL), np.sin(SPIRAL), 0.3 * SPIRAL], axis=1),
    "scattered points": lambda: RNG.standard_normal((60, 3)),
    "two clouds": lambda: np.concatenate([RNG.standard_normal((400, 3)) + k * np.array([30, 0, 0]) for k in (0, 1)]),
    "points beside a mesh": lambda: Mesh([*gallery.box(500).points, [3, 0, 0], [3, 0.1, 0]], [[0, 1, 2]]),
    "non-manifold fan": lambda: Mesh(
        [[0, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [-1, -1, 0]], [[0, 1, k] for k in (2, 3, 4)]
    ),
}


def shape_named(name: str) -> Shape | np.ndarray:
    return SHAPES[name]()


def points_of(target: Shape | np.ndarray) -> np.ndarray:
    return target if isinstance(target, np.ndarray) else target.points


def check_cage(cage: Mesh, target: Shape | np.ndarray, *, faces: int = 200, margin: float = 0.016) -> None:
    """All that is promised of a cage."""
    points = points_of(target)
    diagonal = np.linalg.norm(np.ptp(points, axis=0))
    assert len(cage.triangles) <= faces
    assert cage.is_watertight
    assert len(np.unique(cage.triangles)) == len(cage.points)
    tree = SurfaceTree(cage)
    assert len(tree.crossings(coplanar=True)) == 0
    corners = cage.points[cage.triangles]
    volume = np.einsum("ti,ti->t", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))
    assert (np.bincount(cage.parts[cage.triangles[:, 0]], volume) > 0).all()
    some = points[:: max(1, len(points) // 2000)]
    assert winding_numbers(some, cage, exact=True) == pytest.approx(1, abs=1e-6)
    assert tree.inside(points).all()
    assert tree.closest(points).distance.min() >= 0.2 * margin * diagonal * (1 - 1e-9)


@lru_cache(maxsize=4)
def built(name: str) -> tuple[Shape | np.ndarray, Mesh]:
    target = shape_named(name)
    return target, build_cage(target, faces=150, margin=0.03)


@pytest.mark.parametrize("name", every(2, SHAPES))
def test_a_cage_around_every_shape(name):
    target, cage = built(name)
    check_cage(cage, target, faces=150, margin=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("faces", "margin"), [(200, 0.016), (60, 0.012), (600, 0.008), (24, 0.1)])
def test_a_cage_around_every_shape_of_other_sizes(name, faces, margin):
    target = shape_named(name)
    check_cage(build_cage(target, faces=faces, margin=margin), target, faces=faces, margin=margin)


@pytest.mark.parametrize("faces", [12, 30, 500])
def test_few_faces_and_many(faces):
    target = shape_named("gingerbread")
    cage = build_cage(target, faces=faces, margin=0.03)
    check_cage(cage, target, faces=faces, margin=0.03)
    assert len(cage.triangles) > 0.9 * faces


def test_cages_are_close():
    """A cage holds little more than its target and the margin around it."""
    for name in ("gingerbread", "box", "tube"):
        target, cage = built(name)
        assert isinstance(target, Mesh)
        assert target.volume < cage.volume < target.volume + 1.6 * 0.03 * target.diagonal * target.area


def fingers(gap: float) -> Mesh:
    """A box with three long boxes on it, `gap` apart: all as one soup."""
    box = gallery.box(500)
    box = box.with_points(box.points / np.abs(box.points).max(axis=0))
    palm = box.points * [0.5, 0.2, 0.1]
    pieces = [palm]
    for k in (-1, 0, 1):
        pieces.append(box.points * [0.1, 0.4, 0.1] + np.array([k * (0.2 + gap), 0.55, 0]))
    faces = np.concatenate([box.triangles + k * len(box.points) for k in range(4)])
    return Mesh(np.concatenate(pieces), faces)


def closed_between(cage: Mesh, gap: float) -> bool:
    """Whether the middle of the gap, half way up the fingers, is inside the cage."""
    return bool(SurfaceTree(cage).inside([[0.1 + gap / 2, 0.7, 0], [-0.1 - gap / 2, 0.7, 0]]).any())


def test_gaps_of_more_than_two_margins_stay_open():
    hand = fingers(0.08)
    share = 0.08 / hand.diagonal
    open_cage = build_cage(hand, faces=300, margin=share / 2.3)
    check_cage(open_cage, hand, faces=300, margin=share / 2.3)
    assert not closed_between(open_cage, 0.08)
    webbed = build_cage(hand, faces=300, margin=1.2 * share)
    assert closed_between(webbed, 0.08)


def test_limbs_of_the_gallery_are_apart():
    """Between the legs of the animal, and below its belly, is outside."""
    cage = build_cage(gallery.animal(2000).base, margin=0.02)
    low, high = cage.points.min(axis=0), cage.points.max(axis=0)
    x, z = (low + high)[[0, 2]] / 2
    belly = np.stack([np.full(20, x), np.linspace(low[1], low[1] + 0.3 * (high - low)[1], 20), np.full(20, z)], axis=1)
    assert not SurfaceTree(cage).inside(belly).any()


def test_pieces_far_apart_have_cages_of_their_own():
    _, cage = built("two clouds")
    assert cage.parts.max() == 1


def test_a_ring_keeps_its_hole_and_a_hollow_is_filled():
    target, cage = built("tets")
    assert len(cage.points) - len(cage.edges) + len(cage.polygons) == 0
    inner, outer = gallery.sphere(500), gallery.sphere(500)
    hollow = Mesh(
        np.concatenate([outer.points, 0.6 * inner.points]),
        np.concatenate([outer.triangles, inner.triangles[:, ::-1] + len(outer.points)]),
    )
    cage = build_cage(hollow, faces=150, margin=0.03)
    assert cage.parts.max() == 0
    assert SurfaceTree(cage).inside([[0, 0, 0]]).all()
    assert isinstance(target, TetMesh)


@pytest.mark.parametrize("scale", [1e-6, 1e5])
def test_units_and_place_do_not_matter(scale):
    target, cage = built("gingerbread")
    moved = points_of(target) * scale + scale * 3
    other = build_cage(target.with_points(moved), faces=150, margin=0.03)  # type: ignore[union-attr]
    assert len(other.triangles) == len(cage.triangles)
    assert other.volume == pytest.approx(cage.volume * scale**3, rel=0.05)
    check_cage(other, moved, faces=150, margin=0.03)


def test_the_same_every_time():
    target, cage = built("gingerbread")
    again = build_cage(target, faces=150, margin=0.03)
    assert np.array_equal(cage.points, again.points)
    assert np.array_equal(cage.triangles, again.triangles)


def test_distances_are_exact_where_they_are_near():
    target = Target.of(shape_named("soup"))
    field = distance_field(target, 0.02, 0.05, 0.08)
    places = field.origin + field.cell * np.argwhere(np.ones(field.values.shape, dtype=bool))
    true = SurfaceTree(target.points, target.triangles).closest(places).distance
    sampled = field.values.ravel()
    near = true <= 0.05
    assert sampled[near] == pytest.approx(true[near], abs=1e-6)
    assert (sampled[~near] > 0.05).all()
    assert (places.min(axis=0) <= target.points.min(axis=0) - 0.08 + 1e-9).all()
    assert (places.max(axis=0) >= target.points.max(axis=0) + 0.08 - 1e-9).all()


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        (np.zeros((0, 3)), {}, "the target has no points"),
        (np.ones((5, 3)), {}, "5 points at one position"),
        (np.ones((5, 2)), {}, "target points have shape"),
        ([[0, 0, np.nan], [1, 1, 1]], {}, "expected finite coordinates"),
        (PointCloud(np.eye(3)), {"faces": 11}, "faces is 11"),
        (PointCloud(np.eye(3)), {"faces": 100.5}, "faces is 100.5"),
        (PointCloud(np.eye(3)), {"margin": 0}, "margin is 0; expected a number from 0.004 to 0.5"),
        (PointCloud(np.eye(3)), {"margin": np.nan}, "margin is nan"),
        (PointCloud(np.eye(3)), {"margin": "wide"}, 'margin is "wide"'),
    ],
)
def test_bad_input_is_named(target, options, message):
    with pytest.raises(InputError) as caught:
        build_cage(target, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


# Real shapes

FEW = (
    "cages/hand/hand.obj",
    "cages/horse/Horse_2.obj",
    "cages/clothing/clothing.obj",
    "models/octopus/octopus-low.mesh",
)
SUFFIXES = {".obj", ".off", ".ply", ".glb", ".mesh"}


def real_shapes() -> list[str]:
    """All meshes of the shared data that are one shape each."""
    data = Path(__file__).resolve().parents[2] / "shared" / "data"
    found = [path for folder in ("cages", "models", "poses") for path in sorted((data / folder).rglob("*"))]
    return [path.relative_to(data).as_posix() for path in found if path.suffix in SUFFIXES]


def read_shape(path: Path) -> Shape:
    return pliant.read_tets(path) if path.suffix == ".mesh" else pliant.read_mesh(path)


@pytest.mark.data
@pytest.mark.parametrize("name", FEW)
def test_a_cage_around_real_shapes(data, name):
    target = read_shape(data / name)
    check_cage(build_cage(target, faces=200, margin=0.024), target, margin=0.024)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", real_shapes())
def test_a_cage_around_every_real_shape(data, name):
    target = read_shape(data / name)
    check_cage(build_cage(target, faces=200), target)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["horse-gallop/horse-gallop.tar.xz", "man-crane/crane.tar.xz"])
def test_a_cage_around_frames_of_real_clips(data, name):
    clip = pliant.read_animation(data / "poses" / name)
    for frame in (0, len(clip) // 2):
        check_cage(build_cage(clip[frame], faces=200), clip[frame])


def test_faces_are_as_many_as_the_error_takes() -> None:
    body = gallery.creature(900).base
    cages = [build_cage(body, margin=0.03, error=error) for error in (0.06, 0.02)]
    errors = [cage_error(cage, body.points, 0.03) for cage in cages]
    assert errors[0] <= 0.06
    assert errors[1] <= 0.02
    assert len(cages[0].triangles) < len(cages[1].triangles)


def test_an_error_that_the_faces_do_not_reach_is_said() -> None:
    with pytest.warns(PliantWarning, match=r"with \d+ faces the cage is still .* % of the diagonal farther"):
        cage = build_cage(gallery.creature(900).base, faces=61, margin=0.05, error=1e-4)
    assert len(cage.triangles) <= 61


def test_the_error_is_the_distance_beyond_the_margin() -> None:
    box = box_mesh(100, np.ones(3), 0.0)
    size = np.sqrt(3)
    around = box.with_points((box.points - box.points.mean(axis=0)) * 1.2 + box.points.mean(axis=0))
    assert cage_error(around, box.points, 0.01) == pytest.approx(0.1 / size - 0.01, rel=0.02)
    assert cage_error(around, box.points, 0.1) == 0
