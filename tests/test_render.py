"""Pictures hold what geometry says: areas, order, colours, limits. No picture is compared with a stored one."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from pliant import render
from pliant.core.clips import Pose
from pliant.core.shapes import Appearance, Image, Labels, Layer, Mesh, PointCloud, TetMesh
from pliant.core.skeleton import Skeleton
from pliant.core.srgb import decoded
from pliant.render.color import round_limits, scale_for
from pliant.render.parts import NEAR_PLANE, Paint, clipped, corner_normals, part_of
from render_shapes import (
    EMPTY,
    SMALL,
    ball,
    box,
    camera_of,
    coverage,
    erode,
    pixels,
    square,
)


@pytest.mark.parametrize("view", ["front", "three-quarter", "top", (200.0, -35.0)])
def test_a_ball_covers_the_ellipse_of_its_tangent_cone(view: object) -> None:
    shape, size = ball(), (480, 360)
    camera = camera_of(shape, size, view)
    centre = camera.see(np.zeros((1, 3)))[0]
    radius, distance = 1 / camera.scale, float(np.linalg.norm(centre))
    # The cone of half angle a whose axis leaves the image plane's normal by b cuts an ellipse of this area.
    a, b = math.asin(radius / distance), math.acos(centre[2] / distance)
    area = (
        math.pi * camera.frame.focal**2 * math.sin(a) ** 2 * math.cos(a) / (math.cos(b) ** 2 - math.sin(a) ** 2) ** 1.5
    )
    # Pixels on the outline are covered by half, on average.
    covered = coverage(pixels(shape, size=size, view=view))
    edge = covered & ~erode(covered)
    assert abs(covered.sum() - 0.5 * edge.sum() - area) < 0.01 * area


def hull_area(points: np.ndarray) -> float:
    from scipy.spatial import ConvexHull

    return float(ConvexHull(points).volume)


@pytest.mark.parametrize("view", ["front", "auto", (-70.0, 50.0)])
def test_a_box_covers_the_hull_of_its_projected_corners(view: object) -> None:
    shape, size = box(), (480, 360)
    area = hull_area(camera_of(shape, size, view).project(shape.points))
    covered = coverage(pixels(shape, size=size, view=view))
    edge = covered & ~erode(covered)
    assert abs(covered.sum() - 0.5 * edge.sum() - area) < 0.01 * area


@pytest.mark.parametrize("first", [0, 1])
def test_the_nearer_of_two_squares_is_seen_whatever_their_order(first: int) -> None:
    near, far = render.Extra(square(1.0), color="red"), render.Extra(square(-1.0), color="blue")
    order = [near, far] if first == 0 else [far, near]
    image = pixels(order[0].shape, color=order[0].color, extra=[order[1]], view="front")
    red, _, blue = image[75, 100].astype(int)
    assert red > blue + 100


def test_crossing_squares_meet_on_the_line_where_they_cross() -> None:
    points = square().points
    turned = points @ np.array([[0.6, 0, 0.8], [0, 1, 0], [-0.8, 0, 0.6]])
    back = points @ np.array([[0.6, 0, -0.8], [0, 1, 0], [0.8, 0, 0.6]])
    image = pixels(Mesh(turned, [[0, 1, 2, 3]]), color="red", extra=[render.Extra(Mesh(back, [[0, 1, 2, 3]]), "blue")],
                   view="front", size=(201, 151)).astype(int)  # fmt: skip
    reddish = image[75, :, 0] > image[75, :, 2] + 30
    bluish = image[75, :, 2] > image[75, :, 0] + 30
    # One is nearer left of the middle, the other right of it.
    assert reddish[:99].sum() * bluish[:99].sum() == 0
    assert reddish[102:].sum() * bluish[102:].sum() == 0
    assert (reddish[:99].any() and bluish[102:].any()) or (bluish[:99].any() and reddish[102:].any())


def test_colours_between_vertices_are_perspective_correct() -> None:
    """Where a slanted square's value passes zero is where its middle projects to, not halfway on the picture."""
    slant = square().points @ np.array([[0.5, 0, math.sqrt(0.75)], [0, 1, 0], [-math.sqrt(0.75), 0, 0.5]])
    mesh, values = Mesh(slant, [[0, 1, 2, 3]]), square().points[:, 0]
    image = pixels(mesh, values=values, limits=(-1e-3, 1e-3), view="front", size=(480, 360)).astype(int)
    row = image[150]
    warm, cool = (np.flatnonzero(sign * (row[:, 0] - row[:, 2]) > 40) for sign in (1, -1))
    border = 0.5 * (max(warm.min(), cool.min()) + min(warm.max(), cool.max()))
    # The legend moves the picture up and shrinks it, so the ends are taken from it too.
    left, right = min(warm.min(), cool.min()), max(warm.max(), cool.max()) + 1
    place = camera_of(mesh, (480, 360), "front").project(np.stack([slant[0], slant[:2].mean(axis=0), slant[1]]))[:, 0]
    share = (place[1] - place.min()) / np.ptp(place)
    assert abs(share - 0.5) > 0.03
    assert abs((border - left) / (right - left) - share) < 0.01


@pytest.mark.parametrize("scale", [1e-300, 1e-6, 1e9, 1e300])
def test_units_do_not_matter(scale: float) -> None:
    expected = pixels(box(), ground=True).astype(int)
    assert np.abs(pixels(box(scale), ground=True).astype(int) - expected).max() <= 1


def test_position_does_not_matter() -> None:
    np.testing.assert_array_equal(pixels(box(1.0, (2.0**20, 0, -(2.0**20)))), pixels(box()))


def test_background_is_untouched_without_ground_and_shadowed_with() -> None:
    # A ball's silhouette is convex, so pixels outside its bounding ellipse are background.
    image = pixels(ball(), view="front")
    outside = np.ones(SMALL[::-1], bool)
    place = camera_of(ball(), SMALL, "front").project(ball().points)
    low, high = np.floor(place.min(axis=0)).astype(int), np.ceil(place.max(axis=0)).astype(int)
    outside[low[1] : high[1] + 1, low[0] : high[0] + 1] = False
    assert (image[outside] == EMPTY).all()
    with_ground = pixels(ball(), view=(0.0, 20.0), ground=True)
    assert (with_ground.astype(int).sum(axis=2) < EMPTY.astype(int).sum() - 20)[outside].any()


def test_the_same_picture_comes_out_twice_and_with_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    first = pixels(ball(12), ground=True, edges=True)
    np.testing.assert_array_equal(pixels(ball(12), ground=True, edges=True), first)
    monkeypatch.setattr("pliant.native.CORES", 1)
    np.testing.assert_array_equal(pixels(ball(12), ground=True, edges=True), first)


def test_back_faces_are_blue_where_front_faces_are_warm() -> None:
    front, back = (pixels(square(flip=flip), view="front")[75, 100].astype(int) for flip in (False, True))
    assert front[0] > front[2] + 20
    assert back[2] > back[0]


def test_a_box_keeps_its_edges_and_a_ball_is_round() -> None:
    normals = corner_normals(box()).reshape(-1, 3, 3)
    assert np.abs(normals - normals[:, :1]).max() < 1e-6
    mesh = ball()
    np.testing.assert_allclose(corner_normals(mesh), mesh.points[mesh.triangles].reshape(-1, 3), atol=0.02)


def test_split_vertices_shade_like_joined_ones() -> None:
    mesh = ball(16)
    split = Mesh(mesh.points[mesh.triangles].reshape(-1, 3), np.arange(3 * len(mesh.triangles)).reshape(-1, 3))
    np.testing.assert_allclose(corner_normals(split), corner_normals(mesh), atol=1e-5)


def test_a_mesh_s_own_normals_are_used_unless_they_point_inwards() -> None:
    mesh = square()
    tilted = np.array([[0.6, 0.0, 0.8]])
    index = np.zeros(4, np.int64)
    given = Mesh(mesh.points, mesh.polygons, normals=Layer(tilted, index))
    np.testing.assert_allclose(corner_normals(given), np.tile(tilted, (6, 1)))
    wrong = Mesh(mesh.points, mesh.polygons, normals=Layer(-tilted, index))
    np.testing.assert_allclose(corner_normals(wrong), np.tile([0, 0, 1.0], (6, 1)))


@pytest.mark.parametrize("crowd", [3, 100])
def test_a_sharp_cone_of_any_number_of_sides_has_unit_normals(crowd: int) -> None:
    angle = np.arange(crowd) * 2 * np.pi / crowd
    rim = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    mesh = Mesh(np.vstack([rim, [[0, 0, 3]]]), [[k, (k + 1) % crowd, crowd] for k in range(crowd)])
    np.testing.assert_allclose(np.linalg.norm(corner_normals(mesh), axis=1), 1, atol=1e-6)


def test_edges_are_the_polygons_not_the_triangles() -> None:
    plain, lined = (pixels(square(), view="front", edges=edges).astype(int).sum(axis=2) for edges in (False, True))
    darker = plain - lined > 60
    rows, columns = np.flatnonzero(darker.any(axis=1)), np.flatnonzero(darker.any(axis=0))
    frame = np.zeros_like(darker)
    frame[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1] = True
    inside = frame.copy()
    inside[: rows.min() + 4] = inside[rows.max() - 3 :] = False
    inside[:, : columns.min() + 4] = inside[:, columns.max() - 3 :] = False
    assert darker.sum() > 2 * (len(rows) + len(columns)) * 0.8
    assert not darker[inside].any()


def test_wires_shine_faintly_through_what_hides_them() -> None:
    cage = render.Extra(box(3.0, (0, 0, -3)), color="black", style="wire")
    plain = pixels(square(half=4.0), view="front")
    wired = pixels(square(half=4.0), view="front", extra=[cage])
    change = np.abs(plain.astype(int) - wired.astype(int)).max()
    assert 10 < change < 120


def test_skeletons_shine_through_the_body() -> None:
    bones = Skeleton.from_positions([[0, -0.5, 0], [0, 0.5, 0]], [-1, 0])
    assert np.abs(pixels(ball()).astype(int) - pixels(ball(), extra=[bones]).astype(int)).max() > 20
    solid = pixels(ball(), extra=[render.Extra(bones, style="solid")])
    np.testing.assert_array_equal(solid, pixels(ball()))


def test_an_extra_that_need_not_fit_does_not_move_the_camera() -> None:
    far = render.Extra(box(0.1, (50, 0, 0)), fit=False)
    assert np.abs(pixels(box(), extra=[far]).astype(int) - pixels(box()).astype(int)).max() <= 2


def test_a_floor_that_reaches_behind_the_viewer_fills_the_view_below_the_horizon() -> None:
    floor = Mesh(1e3 * square().points[:, [0, 2, 1]] - [0, 0.5, 0], [[3, 2, 1, 0]])
    image = pixels(box(), extra=[render.Extra(floor, color="green", fit=False)], view=(0.0, 20.0)).astype(int)
    assert (image[-1, :, 1] > image[-1, :, 0] + 20).all()
    assert (image[120, :40, 1] > image[120, :40, 0] + 20).all()


def test_clipping_keeps_what_is_ahead() -> None:
    mesh = square(half=2.0)
    part = part_of(mesh, Paint(edges=True))
    for level in (-1.0, 0.3, 5.0):
        depth = mesh.points[:, 0] - level + NEAR_PLANE
        cut = clipped(part, depth)
        a, b, c = (cut.points[cut.triangles[:, k]] for k in range(3))
        area = np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2
        assert abs(area - 4 * np.clip(2 - level, 0, 4)) < 1e-6
        assert (cut.points[cut.triangles][..., 0] >= level - 1e-6).all()
        assert (np.cross(b - a, c - a)[:, 2] >= 0).all()
        assert cut.normals.shape == (3 * len(cut.triangles), 3)


@pytest.mark.parametrize("kind", [(0.0, 10.0), (-4.0, 4.0)])
def test_measures_have_the_legend_s_colours(kind: tuple[float, float]) -> None:
    low, high = kind
    mesh = square()
    for share in (0.05, 0.3, 0.5, 0.8):
        value = low + share * (high - low)
        image = pixels(mesh, values=np.full(4, value), limits=kind, view="front", size=(300, 240))
        bar = image[240 - 46 - 4 + 8 : 240 - 46 - 4 + 10].reshape(-1, 3).astype(float)
        shown = image[95, 150].astype(float)
        expected = 255 * scale_for(np.array([low, high]), kind).srgb(np.array(share))
        assert np.abs(bar - expected).max(axis=1).min() < 6
        # Light changes brightness, not hue: the direction in linear colour space stays.
        a, b = decoded(shown / 255), decoded(expected / 255)
        assert a @ b / np.linalg.norm(a) / np.linalg.norm(b) > 0.97


def test_unknown_values_are_grey() -> None:
    image = pixels(square(), values=[np.nan] * 4, view="front")[75, 100].astype(int)
    assert np.ptp(image) < 16
    part = part_of(square(), Paint(values=np.array([0, 1, np.nan, 1.0]), scale=scale_for(np.array([0.0, 1.0]))))
    assert (part.image == -1).sum() == 2  # both triangles of the quad touch vertex 2


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.013, 0.97, (0.0, 1.0)), (-3.2, 7.9, (-4.0, 8.0)), (0, 1e-7, (0, 1e-7)), (120, 180, (120, 180)), (5, 5, (0, 5))],
)
def test_limits_are_round_and_hold_the_values(low: float, high: float, expected: tuple[float, float]) -> None:
    np.testing.assert_allclose(round_limits(low, high), expected, rtol=1e-9, atol=1e-15)


def test_measures_of_both_signs_are_centred_on_zero() -> None:
    scale = scale_for(np.array([-1.0, 3.0]))
    assert (scale.low, scale.high, scale.colormap) == (-3.0, 3.0, "diverging")
    red, green, blue = scale.srgb(np.array(0.5))
    assert max(red, green, blue) - min(red, green, blue) < 0.01


def test_sequential_colours_grow_lighter_all_the_way() -> None:
    colors = decoded(scale_for(np.array([0.0, 1.0])).srgb(np.linspace(0, 1, 101)))
    assert (np.diff(colors @ [0.2126, 0.7152, 0.0722]) > 0).all()


def test_colours_come_from_vertices_then_materials_then_textures() -> None:
    mesh = square()
    reds = Mesh(mesh.points, mesh.polygons, attributes={"color": np.tile([1.0, 0, 0], (4, 1))})
    pixel = pixels(reds, view="front")[75, 100].astype(int)
    assert pixel[0] > 150 > 100 > pixel[1]
    green = {"leaf": Appearance(color=(0, 1, 0, 1))}
    labels = {"material": Labels(("leaf",), np.zeros(1, np.int64))}
    pixel = pixels(Mesh(mesh.points, mesh.polygons, labels=labels, appearances=green), view="front")[75, 100].astype(
        int
    )
    assert pixel[1] > 150 > 100 > pixel[0]
    overridden = pixels(Mesh(mesh.points, mesh.polygons, labels=labels, appearances=green), view="front", color="blue")
    assert overridden[75, 100, 2] > 100 > overridden[75, 100, 1]


def test_default_materials_are_drawn_as_clay() -> None:
    mesh = square()
    labels = {"material": Labels(("plain",), np.zeros(1, np.int64))}
    plain = Mesh(mesh.points, mesh.polygons, labels=labels, appearances={"plain": Appearance()})
    np.testing.assert_array_equal(pixels(plain), pixels(mesh))


def textured(corner: str) -> np.ndarray:
    import io

    data = io.BytesIO()
    picture = Pillow.new("RGB", (8, 8), (0, 0, 255))
    picture.paste((255, 0, 0), (0, 0, 8, 4))  # the upper half is red
    picture.save(data, "PNG")
    mesh = square()
    uvs = Layer(np.array([[0, 0], [1, 0], [1, 1], [0, 1.0]]), np.arange(4))
    skin = Appearance(color=(1, 1, 1, 1), texture=Image("skin", data.getvalue(), "image/png"))
    labels = {"material": Labels(("skin",), np.zeros(1, np.int64))}
    image = pixels(Mesh(mesh.points, mesh.polygons, uvs=uvs, labels=labels, appearances={"skin": skin}), view="front")
    return image[45 if corner == "top" else 105, 100].astype(int)


def test_textures_have_v_upwards() -> None:
    assert textured("top")[0] > textured("top")[2] + 100
    assert textured("bottom")[2] > textured("bottom")[0] + 100


@pytest.mark.parametrize(
    "shape",
    [
        Mesh(np.zeros((3, 3)), [[0, 1, 2]]),
        Mesh([[0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0, 1, 2]]),
        Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 1]]),
        Mesh([[0, 0, 0], [1, 0, 0]], []),
        PointCloud([[1e9, 0, 0]]),
        PointCloud(np.zeros((4, 3))),
        TetMesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1, 2, 3]]),
        TetMesh([[0, 0, 0], [1, 0, 0]], np.zeros((0, 4))),
        Skeleton.from_positions([[0, 0, 0]], [-1]),
        Skeleton.from_positions([[0, 0, 0], [0, 1, 0], [0, 1, 0]], [-1, 0, 1]).rest_pose(),
        Pose(box(), 0.0, 1, True),
    ],
    ids=repr,
)
def test_odd_shapes_draw_without_complaint(shape: object) -> None:
    assert pixels(shape, ground=True, edges=True).shape == (150, 200, 3)


@pytest.mark.parametrize("points", [np.zeros((1, 3)), np.random.default_rng(1).normal(size=(300, 3))])
def test_points_without_faces_are_seen(points: np.ndarray) -> None:
    for shape in (PointCloud(points), Mesh(points, [])):
        assert coverage(pixels(shape)).sum() > 100


def test_splats_are_round() -> None:
    points = np.array([[-1.0, 0, 0], [1.0, 0, 0]])
    covered = coverage(pixels(PointCloud(points), view="front", size=(600, 450)))
    left = covered[:, :300]
    rows, columns = np.flatnonzero(left.any(axis=1)), np.flatnonzero(left.any(axis=0))
    assert abs(len(rows) - len(columns)) <= 1
    assert abs(left.sum() - math.pi / 4 * len(rows) * len(columns)) < 0.06 * left.sum()


@pytest.mark.data
def test_a_real_cat_draws(data: Path) -> None:
    from pliant.io import read_mesh

    cat = read_mesh(data / "poses" / "cat" / "cat-ref.obj")
    covered = coverage(pixels(cat))
    assert 0.1 < covered.mean() < 0.6
