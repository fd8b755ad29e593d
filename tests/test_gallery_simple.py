"""The simple built-in shapes against closed forms: lengths, volumes, counts, boundaries, and what moves how."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pliant import gallery
from pliant.core.clips import Shapes
from pliant.core.errors import InputError
from pliant.core.normals import triangle_normals, unit
from pliant.core.rotations import inverse, log, match_rigid, quaternion, rotate, shortest
from pliant.core.shapes import Mesh
from pliant.core.skeleton import Motion
from pliant.core.topology import connected_parts
from pliant.gallery.bend_twist import Centreline, bend, twist
from pliant.gallery.face_motion import HINGE, FaceControls
from pliant.gallery.faces import EXPRESSIONS, face
from pliant.gallery.primitives import bar, bar_tets, box, cylinder, sphere, tube
from pliant.gallery.robots import robot
from pliant.gallery.soup_cloud_tets import cloud, soup, tets
from pliant.gallery.tentacles import LENGTH, POSES, radius, tentacle, tentacle_curl, tentacle_skeleton

SHAPES: dict[str, Callable[[int], object]] = {
    "bar": bar,
    "bar_tets": bar_tets,
    "tube": tube,
    "tentacle": tentacle,
    "face": face,
    "soup": soup,
    "cloud": cloud,
    "tets": tets,
    "robot": robot,
    "sphere": sphere,
    "box": box,
    "cylinder": cylinder,
}
CLOSED = ("bar", "tube", "tentacle", "robot", "sphere", "box", "cylinder")


def points_of(shape: object) -> np.ndarray:
    return shape.base.points if isinstance(shape, Shapes) else shape.points  # type: ignore[attr-defined]


def directed_edges(mesh: Mesh) -> np.ndarray:
    corners = mesh.polygons.corners
    return np.stack([corners, corners[mesh.polygons.next_corner]], axis=1)


# --- what all have in common


@pytest.mark.parametrize("n", [500, 777, 2000, 10_000])
@pytest.mark.parametrize("name", SHAPES)
def test_has_about_as_many_vertices_as_asked_for(name: str, n: int) -> None:
    assert len(points_of(SHAPES[name](n))) == pytest.approx(n, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_has_two_hundred_thousand_vertices(name: str) -> None:
    assert len(points_of(SHAPES[name](200_000))) == pytest.approx(200_000, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_every_size_is_within_a_tenth(name: str) -> None:
    for n in np.unique(np.geomspace(500, 12_000, 40).astype(int)):
        assert len(points_of(SHAPES[name](int(n)))) == pytest.approx(n, rel=0.1)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("n", [0, 499, 1_000_001, -5, 1000.5, float("nan"), True])
def test_refuses_other_sizes_and_names_the_range(name: str, n: int) -> None:
    with pytest.raises(InputError, match=rf"{name}: .* expected a whole number from 500 to 1000000"):
        SHAPES[name](n)


@pytest.mark.parametrize("name", SHAPES)
def test_is_the_same_every_time(name: str) -> None:
    make = getattr(SHAPES[name], "__wrapped__", SHAPES[name])  # anew
    one, two = make(900), make(900)
    assert np.array_equal(points_of(one), points_of(two))
    if isinstance(one, Shapes):
        assert np.array_equal(one.points, two.points)


def test_small_shapes_are_made_once() -> None:
    assert face(500) is face(500)
    assert face(500, expressions={}) is not face(500, expressions={})
    assert gallery.hand(500) is gallery.hand(500)


@pytest.mark.parametrize("n", [500, 3000])
@pytest.mark.parametrize("name", CLOSED)
def test_closed_shapes_are_closed_manifold_and_face_outwards(name: str, n: int) -> None:
    shape = SHAPES[name](n)
    for mesh in shape if isinstance(shape, Shapes) else [shape]:
        assert mesh.is_watertight
        edges = directed_edges(mesh)
        assert len(np.unique(edges, axis=0)) == len(edges)  # neighbours agree on the turn
        assert mesh.volume > 0
        assert (np.linalg.norm(triangle_normals(mesh.points, mesh.triangles), axis=1) > 0).all()


@pytest.mark.parametrize("name", ["bar", "tube", "tentacle", "face"])
def test_poses_differ_and_the_base_comes_first(name: str) -> None:
    shapes = SHAPES[name](800)
    assert isinstance(shapes, Shapes)
    assert np.array_equal(shapes.points[0], shapes.base.points)
    assert len(set(shapes.names)) == len(shapes) >= 4
    for k in range(1, len(shapes)):
        assert np.abs(shapes.points[k] - shapes.points[0]).max() > 0.015 * shapes.base.diagonal


# --- exact maps


def jacobian(move: Callable[[np.ndarray], np.ndarray], point: np.ndarray) -> np.ndarray:
    step = 1e-5
    ends = np.concatenate([point + step * np.eye(3), point - step * np.eye(3)])
    moved = move(ends)
    return ((moved[:3] - moved[3:]) / (2 * step)).T


@pytest.mark.parametrize("along", ["x", "y", "z"])
@pytest.mark.parametrize("angle", [-300, -90, 0, 30, 180, 360])
def test_bending_keeps_the_centre_line_and_scales_volume_by_the_distance_to_it(along: str, angle: float) -> None:
    towards = "xyz"["xyz".index(along) - 1]
    a, b = "xyz".index(along), "xyz".index(towards)
    line = np.zeros((2001, 3))
    line[:, a] = np.linspace(-2, 2, 2001)
    curvature = np.radians(angle) / 4
    moved = bend(line, angle, length=4, along=along, towards=towards)  # type: ignore[arg-type]
    chord = 4 / 2000 * np.sinc(np.radians(angle) / 4000 / np.pi)  # of equal arcs
    assert np.linalg.norm(np.diff(moved, axis=0), axis=1) == pytest.approx(chord, rel=1e-9)
    for point in np.random.default_rng(1).uniform(-0.4, 0.4, (5, 3)):
        F = jacobian(lambda p: bend(p, angle, length=4, along=along, towards=towards), point)  # type: ignore[arg-type]
        assert np.linalg.det(F) == pytest.approx(1 - curvature * point[b], abs=1e-8)


def test_bent_ends_look_apart_by_the_angle_and_lie_on_a_circle() -> None:
    line = np.stack([np.linspace(-2, 2, 9), np.zeros(9), np.zeros(9)], axis=1)
    moved = bend(line, 180, length=4)
    assert np.linalg.norm(moved - [0, 4 / np.pi, 0], axis=1) == pytest.approx(4 / np.pi)
    assert moved[-1] - moved[0] == pytest.approx([8 / np.pi, 0, 0])


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-6])
def test_small_angles_are_the_identity(angle: float) -> None:
    points = np.random.default_rng(2).uniform(-1, 1, (50, 3))
    for move in (bend, twist):
        assert np.abs(move(points, angle, length=4) - points).max() <= 2 * np.radians(angle)


def test_twisting_turns_each_section_and_keeps_volume() -> None:
    points = np.random.default_rng(3).uniform(-1, 1, (20, 3))
    moved = twist(points, 270, length=4)
    assert moved[:, 0] == pytest.approx(points[:, 0])
    assert np.hypot(*moved[:, 1:].T) == pytest.approx(np.hypot(*points[:, 1:].T))
    turned = np.angle((moved[:, 1] + 1j * moved[:, 2]) / (points[:, 1] + 1j * points[:, 2]))
    assert turned == pytest.approx(np.angle(np.exp(1j * np.radians(270) / 4 * points[:, 0])))
    assert np.linalg.det(jacobian(lambda p: twist(p, 270, length=4), points[0])) == pytest.approx(1, abs=1e-8)


def test_maps_refuse_what_they_cannot_do() -> None:
    points = np.array([[0.0, 1.0, 0.0]])
    with pytest.raises(InputError, match="bend less"):
        bend(points, 360, length=4)
    with pytest.raises(InputError, match="two different axes"):
        bend(points, 30, length=4, along="x", towards="x")
    with pytest.raises(InputError, match="length is 0"):
        twist(points, 30, length=0)
    with pytest.raises(InputError, match="finite"):
        bend(points, float("inf"), length=4)


def test_a_centreline_of_constant_curvature_is_a_bend() -> None:
    points = np.random.default_rng(4).uniform([-0.4, 0, -0.4], [0.4, 4, 0.4], (100, 3))
    line = Centreline(4.0, np.tile([np.radians(150) / 4, 0.0], (37, 1)))
    about_start = bend(points, 300, length=8, along="y", towards="z")  # 8 about the origin: 4 of them are ours
    assert line.carry(points) == pytest.approx(about_start, abs=1e-12)


def test_a_centreline_has_its_length_and_square_frames() -> None:
    curvatures = np.random.default_rng(5).normal(size=(50, 2))
    line = Centreline(4.0, curvatures)
    s = np.linspace(0, 4, 20_001)
    places, turns = line.frames(s)
    assert np.linalg.norm(np.diff(places, axis=0), axis=1).sum() == pytest.approx(4, rel=1e-7)
    tangents = np.gradient(places, s, axis=0)
    assert np.abs(rotate(turns, [0.0, 1.0, 0.0]) - tangents)[1:-1].max() < 1e-3
    step = rotate(inverse(turns[:-1]), rotate(turns[1:], [0.0, 0.0, 1.0]))
    assert np.abs(step[:, 0]).max() < 1e-7  # no spin about the tangent: second order in the step, not first


# --- bar and tube


def test_bar_has_closed_form_volume_and_area() -> None:
    shapes = bar(1500, size=(3, 1, 0.5))
    assert shapes.base.volume == pytest.approx(1.5)
    assert shapes.base.area == pytest.approx(2 * (3 + 0.5 + 1.5))


def test_bent_and_twisted_bars_come_to_the_straight_bar_s_volume() -> None:
    errors = [np.abs([mesh.volume - 4 for mesh in bar(n)][1:]) for n in (1000, 16_000)]
    assert errors[1].max() < 0.005
    assert (errors[1] < errors[0] / 8).all()  # second order: a quarter of the edge length


def test_bar_takes_free_angles_and_names_them() -> None:
    shapes = bar(600, bends=(37.5,), twists=(-120,), both=((45, 30),))
    assert shapes.names == ("straight", "bent 37.5", "twisted -120", "bent 45 twisted 30")
    assert shapes.named("bent 37.5").points == pytest.approx(bend(shapes.base.points, 37.5, length=4))


def test_rounded_bar_is_smaller_by_its_corners() -> None:
    r = 0.2
    rounded = bar(20_000, rounding=r).base.volume
    edges = (4 - 2 * r + 2 * (1 - 2 * r)) * 4
    expected = 4 - edges * (1 - np.pi / 4) * r * r - (8 - 4 / 3 * np.pi) * r**3
    assert rounded == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(("bent", "twisted"), [(0, 0), (180, 0), (0, 270), (180, 90)])
def test_bar_tets_are_positive_and_fill_the_bar(bent: float, twisted: float) -> None:
    solid = bar_tets(3000, bent=bent, twisted=twisted)
    assert solid.volumes.min() > 0.2 * solid.volumes.max()
    assert solid.volumes.sum() == pytest.approx(4, rel=0.01)
    assert solid.surface.is_watertight
    assert len(solid.triangles) == len(solid.surface.triangles)


def test_tube_has_closed_form_volume_and_keeps_it() -> None:
    shapes = tube(20_000, rounding=0.0)
    assert shapes.base.volume == pytest.approx(4 * np.pi * 0.35**2, rel=2e-3)
    for mesh in shapes:
        assert mesh.volume == pytest.approx(shapes.base.volume, rel=2e-3)
    assert shapes.names == ("straight", "bent 120", "bent 180", "S")


def test_tube_refuses_to_fold() -> None:
    with pytest.raises(InputError, match="bend less"):
        tube(1000, bends=(800,))
    with pytest.raises(InputError, match="bend less"):
        tube(1000, s_bend=400)


# --- plain solids


def test_sphere_is_round_and_even() -> None:
    mesh = sphere(5000, 2.0, (1, 2, 3))
    assert np.linalg.norm(mesh.points - [1, 2, 3], axis=1) == pytest.approx(2)
    assert mesh.volume == pytest.approx(4 / 3 * np.pi * 8, rel=5e-3)
    lengths = np.linalg.norm(np.diff(mesh.points[mesh.edges], axis=1), axis=-1)
    assert lengths.max() < 2.5 * lengths.min()


def test_cylinder_and_box_have_closed_form_volumes() -> None:
    assert cylinder(20_000, 0.5, 2.0).volume == pytest.approx(np.pi / 2, rel=2e-3)
    assert box(700, (1, 2, 3), (5, 5, 5)).volume == pytest.approx(6)
    assert box(700, (1, 2, 3), (5, 5, 5)).points.mean(axis=0) == pytest.approx([5, 5, 5], abs=0.05)


@pytest.mark.parametrize(
    "make",
    [
        lambda: sphere(600, radius=0),
        lambda: sphere(600, centre=(0, 0)),
        lambda: box(600, (1, -1, 1)),
        lambda: box(600, rounding=0.6),
        lambda: cylinder(600, height=float("nan")),
        lambda: cylinder(600, rounding=0.5),
        lambda: bar(600, size=(1, 0, 1)),
        lambda: tets(600, thickness=2),
        lambda: tentacle_curl(600, frames=1),
        lambda: tentacle_skeleton(1),
    ],
)
def test_impossible_sizes_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(InputError, match="expected"):
        make()


# --- tentacle


def test_tentacle_poses_keep_the_length_of_the_centre_line() -> None:
    s = np.linspace(0, LENGTH, 5001)
    for curvatures in POSES.values():
        places, _ = Centreline(LENGTH, curvatures).frames(s)
        assert np.linalg.norm(np.diff(places, axis=0), axis=1).sum() == pytest.approx(LENGTH, rel=1e-6)


def test_tentacle_curls_by_more_than_a_full_turn_without_touching_itself() -> None:
    curl = POSES["curled"]
    assert np.degrees(curl[:, 0].mean() * LENGTH) > 500
    s = np.linspace(0, LENGTH, 400)
    places, _ = Centreline(LENGTH, curl).frames(s)
    reach = 1.1 * (radius(s)[:, None] + radius(s))
    apart = np.linalg.norm(places[:, None] - places, axis=-1)
    elsewhere = np.abs(s[:, None] - s) > 2 * reach
    assert (apart > reach)[elsewhere].all()


@pytest.mark.parametrize("name", POSES)
def test_tentacle_sections_never_fold(name: str) -> None:
    s = (np.arange(len(POSES[name])) + 0.5) / len(POSES[name]) * LENGTH
    assert (np.hypot(*POSES[name].T) * 1.12 * radius(s)).max() < 1
    shapes = tentacle(4000)
    assert shapes.named(name).volume == pytest.approx(shapes.base.volume, rel=0.03)


def test_tentacle_curl_goes_from_straight_to_curled() -> None:
    clip, shapes = tentacle_curl(800, frames=12), tentacle(800)
    assert len(clip) == 12
    assert clip.points[0] == pytest.approx(shapes.points[0], abs=1e-9)
    assert clip.points[-1] == pytest.approx(shapes.named("curled").points, abs=1e-9)


def test_tentacle_skeleton_runs_along_the_middle() -> None:
    places, _ = tentacle_skeleton(7).rest_pose().world()
    assert np.all(places[:, [0, 2]] == 0)
    assert (np.diff(places[:, 1]) > 0).all()
    assert places[-1, 1] < LENGTH


# --- face


@pytest.fixture(scope="module")
def faces() -> Shapes:
    return face(8000)


def group_triangles(mesh: Mesh, *names: str) -> np.ndarray:
    groups = mesh.labels["group"]
    chosen = [groups.names.index(name) for name in names]
    return mesh.triangles[np.isin(groups.index[mesh.triangle_polygon], chosen)]


@pytest.mark.parametrize("n", [500, 8000])
def test_face_is_one_open_surface_with_one_boundary(n: int) -> None:
    mesh = face(n).base
    assert (mesh.parts == 0).all()
    assert mesh.edge_polygon_count.max() == 2
    open_edges = mesh.edges[mesh.edge_polygon_count == 1]
    rim = np.unique(open_edges)
    assert len(open_edges) == len(rim)  # loops: as many edges as vertices
    assert len(np.unique(connected_parts(len(mesh.points), open_edges)[rim])) == 1
    edges = directed_edges(mesh)
    assert len(np.unique(edges, axis=0)) == len(edges)
    assert len(mesh.points) - len(mesh.edges) + len(mesh.polygons) == 1  # a disc


def test_face_looks_forward_and_is_symmetric(faces: Shapes) -> None:
    mesh = faces.base
    skin = group_triangles(mesh, "skin")
    normals = triangle_normals(mesh.points, skin)
    assert normals.sum(axis=0)[2] > 5 * np.abs(normals.sum(axis=0)[0])
    mirrored = mesh.points * [-1, 1, 1]
    apart = np.abs(mesh.points[:, None, :] - mirrored[None, ::37]).sum(axis=-1).min(axis=0)
    assert apart.max() < 1e-9
    nose = mesh.points[np.argmax(mesh.points[:, 2])]
    assert abs(nose[0]) < 0.02
    assert -0.5 < nose[1] < -0.25  # between eyes (0) and mouth (-0.7)


def test_face_has_many_expressions_of_finite_points(faces: Shapes) -> None:
    assert faces.names == ("neutral", *EXPRESSIONS)
    assert len(faces) >= 7
    assert np.isfinite(faces.points).all()


def test_expressions_never_turn_skin_or_eyes_inside_out(faces: Shapes) -> None:
    triangles = group_triangles(faces.base, "skin", "right eye", "left eye")
    neutral = unit(triangle_normals(faces.points[0], triangles))
    for name, points in zip(faces.names, faces.points, strict=True):
        area = triangle_normals(points, triangles)
        flipped = np.einsum("ij,ij->i", area, neutral) < 0
        assert flipped.sum() <= 2, name
        assert (np.linalg.norm(area, axis=1) > 0).all()


def test_jaw_turns_about_its_hinge_by_the_angle(faces: Shapes) -> None:
    neutral, wide = faces.points[0], faces.named("wide open").points
    chin = (np.abs(neutral[:, 0]) < 0.2) & (neutral[:, 1] < -1.05) & (neutral[:, 2] > 0.5)
    R, t = match_rigid(neutral[chin], wide[chin])
    turn = log(shortest(quaternion(R)))
    assert np.degrees(turn) == pytest.approx([EXPRESSIONS["wide open"].jaw, 0, 0], abs=0.5)
    assert R @ HINGE + t == pytest.approx(HINGE, abs=0.01)


def lip_gap(shapes: Shapes, name: str) -> float:
    """How far the two lips' vertices at the middle of the mouth are apart."""
    neutral = shapes.points[0]
    mouth = group_triangles(shapes.base, "mouth")
    lips = np.intersect1d(np.unique(group_triangles(shapes.base, "skin")), np.unique(mouth))
    middle = lips[np.abs(neutral[lips, 0]) < 1e-9]
    assert len(middle) == 2
    upper, lower = shapes.named(name).points[middle]
    return float(np.linalg.norm(upper - lower))


def test_mouth_is_cut_open_and_closed_at_rest(faces: Shapes) -> None:
    assert 0.001 < lip_gap(faces, "neutral") < 0.01  # closed to the eye, yet no two vertices in one place
    assert lip_gap(faces, "blink") == lip_gap(faces, "neutral")
    assert lip_gap(faces, "surprise") > 0.2
    assert lip_gap(faces, "wide open") > 0.4


def test_blink_closes_the_lids_and_leaves_the_rest(faces: Shapes) -> None:
    moved = np.linalg.norm(faces.named("blink").points - faces.points[0], axis=1)
    assert moved.max() > 0.04
    assert moved[faces.base.points[:, 1] < -0.3].max() == 0
    eye = group_triangles(faces.base, "left eye")
    margin = np.intersect1d(np.unique(group_triangles(faces.base, "skin")), np.unique(eye))
    height = np.ptp(faces.points[0][margin, 1]), np.ptp(faces.named("blink").points[margin, 1])
    assert height[1] < 0.05 * height[0]


def test_no_two_vertices_share_a_place(faces: Shapes) -> None:
    for points in faces.points:
        assert len(np.unique(points.round(9), axis=0)) == len(points)


def test_wink_moves_the_left_eye_only(faces: Shapes) -> None:
    moved = np.linalg.norm(faces.named("wink").points - faces.points[0], axis=1)
    at_eyes = np.abs(faces.base.points[:, 1]) < 0.1
    assert moved[at_eyes & (faces.base.points[:, 0] > 0)].max() > 0.04
    assert moved[at_eyes & (faces.base.points[:, 0] < 0)].max() < 1e-3


def test_smile_widens_and_lifts_the_mouth_kiss_narrows_it_frown_lowers_it(faces: Shapes) -> None:
    skin = np.unique(group_triangles(faces.base, "skin"))
    lips = np.intersect1d(skin, np.unique(group_triangles(faces.base, "mouth")))
    corner = lips[np.argmax(faces.points[0][lips, 0])]
    x, y, _ = faces.points[0][corner]
    smile, kiss, frown = (faces.named(name).points[corner] for name in ("smile", "kiss", "frown"))
    assert smile[0] > x + 0.04
    assert smile[1] > y + 0.04
    assert kiss[0] < x - 0.06
    assert frown[1] < y - 0.04


def test_own_expressions_can_be_one_sided() -> None:
    shapes = face(1500, expressions={"half smile": FaceControls((("smile", 0, 1),))})
    moved = np.linalg.norm(shapes.points[1] - shapes.points[0], axis=1)
    right = shapes.base.points[:, 0] < -0.25
    assert moved[right].max() < 0.1 * moved.max()


@pytest.mark.parametrize(
    ("controls", "match"),
    [
        ({"muscles": (("grin", 1, 1),)}, "no muscle is called"),
        ({"muscles": (("smile", 9, 1),)}, "within ±1.5"),
        ({"jaw": 90}, "0 to 45"),
        ({"upper_lid": (50, 0)}, "0 to 36"),
    ],
)
def test_face_controls_are_checked(controls: dict[str, object], match: str) -> None:
    with pytest.raises(InputError, match=match):
        FaceControls(**controls)  # type: ignore[arg-type]


def test_face_has_uvs_from_the_front_and_colours(faces: Shapes) -> None:
    uvs = faces.base.uvs
    assert uvs is not None
    assert uvs.values.min() >= 0
    assert uvs.values.max() <= 1
    x = faces.base.points[faces.base.polygons.corners, 0]
    assert np.corrcoef(x, uvs.at_corners[:, 0])[0, 1] > 0.999
    colors = faces.base.attributes["color"]
    assert colors.shape == faces.base.points.shape
    assert 0 <= colors.min() <= colors.max() <= 1


# --- soup, cloud, tetrahedra, robot


def test_soup_shares_no_vertex() -> None:
    mesh = soup(2000)
    assert np.array_equal(np.sort(mesh.polygons.corners), np.arange(len(mesh.points)))
    assert mesh.parts.max() + 1 == len(mesh.polygons)
    assert set(mesh.polygons.sizes) == {3, 4}
    assert (mesh.edge_polygon_count == 1).all()
    assert (np.linalg.norm(triangle_normals(mesh.points, mesh.triangles), axis=1) > 0).all()


def test_cloud_has_unit_normals_square_to_the_shell_and_even_spacing() -> None:
    from scipy.spatial import cKDTree

    points = cloud(8000)
    assert points.normals is not None
    assert np.linalg.norm(points.normals, axis=1) == pytest.approx(1)
    _, near = cKDTree(points.points).query(points.points, 6)
    offsets = unit(points.points[near[:, 1:]] - points.points[:, None])
    slant = np.abs(np.einsum("nkj,nj->nk", offsets, points.normals))
    assert np.median(slant) < 0.15
    assert points.attributes["color"].shape == (8000, 3)


def test_cloud_normals_look_out_of_the_tube() -> None:
    points = cloud(3000)
    assert points.normals is not None
    top = np.argsort(points.points[:, 1])[-20:]
    assert points.normals[top, 1].mean() > 0.3
    away = np.argsort(np.hypot(points.points[:, 0], points.points[:, 2]))[-50:]
    outwards = unit(points.points[away] * [1, 0, 1])
    assert np.einsum("ij,ij->i", outwards, points.normals[away]).min() > 0.5


@pytest.mark.parametrize("n", [500, 1234, 9000])
def test_tets_fill_a_ring(n: int) -> None:
    solid = tets(n, radius=1.0, thickness=0.4)
    assert solid.volumes.min() > 0
    corners = solid.points[solid.tets]
    sides = [np.linalg.norm(corners[:, i] - corners[:, j], axis=1) for i in range(4) for j in range(i)]
    longest = np.max(sides, axis=0)
    assert (6 * np.sqrt(2) * solid.volumes / longest**3).min() > 0.1  # 1 for a regular tetrahedron
    surface = solid.surface
    assert surface.is_watertight
    assert surface.volume == pytest.approx(solid.volumes.sum())
    used = np.unique(surface.triangles)
    assert len(used) - len(surface.edges) + len(surface.polygons) == 0  # one hole
    assert solid.volumes.sum() == pytest.approx(
        2 * np.pi**2 * 0.4**2, rel=10 / n ** (2 / 3)
    )  # second order in the edge length


def test_robot_is_made_of_named_closed_parts() -> None:
    mesh = robot(5000)
    objects, materials = mesh.labels["object"], mesh.labels["material"]
    assert mesh.parts.max() + 1 == len(objects.names) == len(set(objects.names))
    for k in range(len(objects.names)):
        corners = mesh.polygons.take(objects.index == k).corners
        assert len(np.unique(mesh.parts[corners])) == 1
    assert set(materials.names) == set(mesh.appearances)
    assert len(np.unique(materials.index)) == len(materials.names) >= 5
    assert len({tuple(look.color) for look in mesh.appearances.values()}) == len(mesh.appearances)


def test_robot_stands_on_the_ground_left_is_left_and_every_part_faces_outwards() -> None:
    mesh = robot(3000)
    assert mesh.points[:, 1].min() == pytest.approx(0, abs=1e-9)
    objects = mesh.labels["object"]
    for k, name in enumerate(objects.names):
        triangles = mesh.triangles[objects.index[mesh.triangle_polygon] == k]
        part = Mesh(mesh.points, triangles)
        middle = mesh.points[np.unique(triangles)].mean(axis=0)
        a, b, c = (mesh.points[triangles[:, j]] - middle for j in range(3))
        assert np.einsum("ij,ij->", a, np.cross(b, c)) > 0, name
        assert part.area > 0
        if name.startswith(("left", "right")):
            assert (middle[0] > 0) == name.startswith("left")


def test_robot_uvs_fill_the_unit_square() -> None:
    uvs = robot(2000).uvs
    assert uvs is not None
    assert uvs.values.min() == 0
    assert uvs.values.max() == 1


def test_what_the_gallery_says_it_has():
    posed = {name for name in gallery.SHAPES if isinstance(getattr(gallery, name)(500), Shapes)}
    assert set(gallery.POSED) == posed
    assert all(isinstance(getattr(gallery, name)(), Motion) for name in gallery.JOINT_MOTIONS)
