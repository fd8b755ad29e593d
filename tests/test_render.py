"""Pictures hold what geometry says: areas, order, limits, timing. No picture is compared with a stored one."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

from pliant import render
from pliant.errors import FileError, InputError, MissingExtraError
from pliant.render_camera import Camera, Frame, bounds_of, camera_axes, fit
from pliant.render_clip import NEAR, clipped
from pliant.render_color import BACKGROUND, parse_color, round_limits, scale_for, to_linear
from pliant.render_movie import gif_delays
from pliant.render_parts import Paint, corner_normals, part_of
from pliant.render_scene import Take, takes_of
from pliant.render_stage import Stage, stage_for
from pliant.shapes import Animation, Appearance, Image, Labels, Layer, Mesh, PointCloud, Pose, Shapes, TetMesh
from pliant.skeleton import Motion, Skeleton

SMALL = (200, 150)
EMPTY = np.round(255 * parse_color(BACKGROUND)).astype(np.uint8)


def box(size: float = 1.0, centre: tuple[float, float, float] = (0, 0, 0)) -> Mesh:
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    faces = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    return Mesh(size * corners + np.array(centre), faces)


def ball(rings: int = 40, radius: float = 1.0) -> Mesh:
    polar, around = np.linspace(0, np.pi, rings + 1)[1:-1], np.arange(2 * rings) * np.pi / rings
    grid = [[np.sin(a) * np.cos(b), np.cos(a), np.sin(a) * np.sin(b)] for a in polar for b in around]
    points = radius * np.array([[0, 1, 0], *grid, [0, -1, 0]])
    count = 2 * rings

    def at(i: int, j: int) -> int:
        return 1 + i * count + j % count

    faces = [[0, at(0, j + 1), at(0, j)] for j in range(count)]
    faces += [[len(points) - 1, at(rings - 2, j), at(rings - 2, j + 1)] for j in range(count)]
    faces += [[at(i, j), at(i, j + 1), at(i + 1, j + 1), at(i + 1, j)] for i in range(rings - 2) for j in range(count)]
    return Mesh(points, faces)


def square(z: float = 0.0, half: float = 1.0, flip: bool = False) -> Mesh:
    points = np.array([[-half, -half, z], [half, -half, z], [half, half, z], [-half, half, z]])
    return Mesh(points, [[3, 2, 1, 0] if flip else [0, 1, 2, 3]])


def pixels(shape: Any, **options: Any) -> np.ndarray:
    options = {"size": SMALL, "ground": False, **options}
    return np.asarray(render.picture(shape, **options))


def coverage(image: np.ndarray) -> np.ndarray:
    """Whether each pixel differs from the background."""
    return (image != EMPTY).any(axis=2)


def stage_of(contents: list[Any], size: tuple[int, int], view: Any, **options: Any) -> tuple[Stage, Take]:
    """The set that `render` builds for all frames of the contents, and the first take."""
    takes, _ = takes_of(
        contents,
        color=None,
        values=[None] * len(contents),
        limits=None,
        colormap="auto",
        label="",
        edges=False,
        extra=(),
    )
    shots = [(take, k) for take in takes for k in range(len(take))]
    options = {"up": "auto", "ground": False, "background": BACKGROUND, **options}
    return stage_for(shots, size=size, view=view, **options), takes[0]


def camera_of(shape: Mesh, size: tuple[int, int], view: Any = "auto") -> Camera:
    return stage_of([shape], size, view)[0].camera


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


def erode(mask: np.ndarray) -> np.ndarray:
    inner = mask.copy()
    inner[1:] &= mask[:-1]
    inner[:-1] &= mask[1:]
    inner[:, 1:] &= mask[:, :-1]
    inner[:, :-1] &= mask[:, 1:]
    return inner


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


def test_the_camera_shows_every_frame_with_a_margin() -> None:
    paths = np.random.default_rng(3).normal(size=(5, 1, 3)) * 3
    stage, take = stage_of([Animation(box(), box().points + paths)], SMALL, (20.0, 30.0), up="z")
    for frame in range(5):
        place = stage.camera.project(take.extent(frame))
        assert place.min() > 0.04 * SMALL[1]
        assert (place < np.array(SMALL) - 0.04 * SMALL[1]).all()


def test_a_following_camera_makes_each_frame_as_large_as_it_can() -> None:
    growing = Animation(box(), box().points * np.array([0.2, 1.0])[:, None, None])
    options = {"frames": 2, "columns": 2, "size": SMALL, "ground": False}
    areas = {}
    for follow in (False, True):
        sheet = np.asarray(render.contact_sheet(growing, follow=follow, **options))[25:]
        areas[follow] = [coverage(sheet[:, :200]).sum(), coverage(sheet[:, 200:]).sum()]
    assert areas[False][0] < 0.1 * areas[False][1]
    assert abs(areas[True][0] - areas[True][1]) < 0.02 * areas[True][1]


def test_the_fitted_camera_is_the_nearest_one() -> None:
    points = np.random.default_rng(0).normal(size=(200, 3))
    centre, scale = bounds_of([points])
    frame = Frame(320, 240, 10, 10, 10, 10)
    camera = fit([(points, camera_axes(30, 20, "y"))], centre, scale, frame, pad=0.0)
    place = camera.project(points)
    touching = [place[:, 0].min() - 10, 310 - place[:, 0].max(), place[:, 1].min() - 10, 230 - place[:, 1].max()]
    assert min(touching) > -1e-9
    # In one direction both borders are touched: no nearer camera would do.
    assert max(touching[:2]) < 1e-9 or max(touching[2:]) < 1e-9


@pytest.mark.parametrize(
    ("up", "view", "axis"), [("y", "front", 2), ("y", "side", 0), ("y", "top", 1), ("z", "top", 2)]
)
def test_named_views_look_along_their_axis(up: str, view: str, axis: int) -> None:
    from pliant.render_camera import VIEWS

    away = camera_axes(*VIEWS[view], up)[2]  # type: ignore[arg-type]
    assert abs(away[axis] + 1) < 1e-12


def test_camera_axes_turn_right_handed() -> None:
    for azimuth, elevation in [(0, 0), (35, 18), (-120, -40), (10, 90)]:
        for up in ("y", "z"):
            right, upward, away = camera_axes(azimuth, elevation, up)  # type: ignore[arg-type]
            np.testing.assert_allclose(np.cross(right, upward), -away, atol=1e-12)


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


def test_the_same_picture_comes_out_twice_and_with_one_thread() -> None:
    first = pixels(ball(12), ground=True, edges=True)
    np.testing.assert_array_equal(pixels(ball(12), ground=True, edges=True), first)
    import numba

    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        np.testing.assert_array_equal(pixels(ball(12), ground=True, edges=True), first)
    finally:
        numba.set_num_threads(threads)


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
        depth = mesh.points[:, 0] - level + NEAR
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
        a, b = to_linear(shown / 255), to_linear(expected / 255)
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
    colors = to_linear(scale_for(np.array([0.0, 1.0])).srgb(np.linspace(0, 1, 101)))
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


def moving(frames: int = 6, fps: float = 30.0) -> Animation:
    return Animation(box(), box().points + np.linspace(0, 1, frames)[:, None, None], fps)


def test_a_sheet_has_a_cell_for_each_frame_and_a_row_for_each_clip() -> None:
    assert render.contact_sheet(moving(), frames=4, columns=2, size=SMALL).size == (400, 300)
    two = render.contact_sheet({"linear": moving(), "pliant": moving()}, frames=3, size=SMALL)
    assert two.width == 600
    assert two.height > 300
    shapes = Shapes.of([box(), box(2.0)], ["small", "large"])
    assert render.contact_sheet(shapes, size=SMALL, frames=1).size == (400, 150)
    assert render.contact_sheet([box(), ball(6), PointCloud(np.eye(3))], size=SMALL).size == (600, 150)


def test_sheets_show_first_and_last_frame_with_one_camera() -> None:
    sheet = np.asarray(render.contact_sheet(moving(7), frames=2, columns=2, size=SMALL, ground=False, view="front"))
    clear = [coverage(sheet[25:, k * 200 : (k + 1) * 200]) for k in range(2)]
    first, last = (np.argwhere(cell).mean(axis=0) for cell in clear)
    assert last[1] > first[1] + 20
    assert last[0] < first[0] - 20


def test_sheets_take_one_measure_for_each_row() -> None:
    clip = moving()
    values = {"a": np.zeros(8), "b": np.ones((6, 8))}
    sheet = render.contact_sheet({"a": clip, "b": clip}, values=values, frames=2, size=SMALL, label="distance")
    assert sheet.size[0] == 400
    with pytest.raises(InputError, match='row "c"'):
        render.contact_sheet({"a": clip}, values={"c": np.zeros(8)}, size=SMALL)


@pytest.mark.parametrize(("frames", "fps"), [(6, 30.0), (5, 24.0), (4, 10.0)])
def test_a_gif_has_the_clip_s_frames_and_pace(tmp_path: Path, frames: int, fps: float) -> None:
    path = render.movie(moving(frames, fps), tmp_path / "clip.gif", size=SMALL)
    with Pillow.open(path) as film:
        assert film.n_frames == frames
        assert film.info["loop"] == 0
        total = 0
        for k in range(frames):
            film.seek(k)
            total += film.info["duration"]
    assert abs(total - 1000 * frames / fps) <= 5


def test_gif_frames_are_as_the_pictures(tmp_path: Path) -> None:
    """The palette is good enough, and nothing of the frames before stays behind."""
    clip = moving(4)
    path = render.movie(clip, tmp_path / "clip.gif", size=SMALL)
    stage = stage_of([clip], SMALL, "auto", ground=True)
    with Pillow.open(path) as film:
        for k in range(4):
            film.seek(k)
            shown = np.asarray(film.convert("RGB")).astype(int)
            difference = np.abs(shown - np.asarray(stage[0].shoot(stage[1], k)))
            assert difference.mean() < 1
            assert difference.max() < 40


def coverage_loose(image: np.ndarray) -> np.ndarray:
    return np.abs(image.astype(int) - EMPTY).max(axis=2) > 12


@pytest.mark.parametrize("fps", [12.0, 24.0, 30.0, 50.0])
def test_gif_delays_keep_time_and_are_not_too_short(fps: float) -> None:
    delays = gif_delays(200, fps)
    assert min(delays) >= 20
    assert np.abs(np.cumsum(delays) - 1000 * np.arange(1, 201) / fps).max() <= 5.001


def test_fast_clips_are_thinned_for_gif(tmp_path: Path) -> None:
    path = render.movie(moving(12, 120.0), tmp_path / "fast.gif", size=SMALL)
    with Pillow.open(path) as film:
        assert film.n_frames == 4  # every third frame at 40 frames a second


def test_a_turntable_turns_once(tmp_path: Path) -> None:
    mesh = Mesh(box().points * [3, 1, 1], box().polygons)
    path = render.turntable(mesh, tmp_path / "turn.gif", size=SMALL, seconds=0.4, fps=20, view=(0.0, 0.0), ground=False)
    with Pillow.open(path) as film:
        assert film.n_frames == 8
        areas = []
        for k in range(8):
            film.seek(k)
            areas.append(coverage_loose(np.asarray(film.convert("RGB"))).sum())
    # Half a turn shows a box's same silhouette; a quarter turn shows its small side.
    assert abs(areas[4] - areas[0]) < 0.05 * areas[0]
    assert areas[2] < 0.6 * areas[0]


def test_mp4_plays_at_the_clip_s_pace(tmp_path: Path) -> None:
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    path = render.movie(moving(6, 12.0), tmp_path / "clip.mp4", size=(201, 151), turn=30)
    count, seconds = ffmpeg.count_frames_and_secs(str(path))
    assert count == 6
    assert abs(seconds - 0.5) < 0.02


def test_mp4_without_ffmpeg_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(MissingExtraError, match=r"pliant\[video\]"):
        render.movie(moving(2), tmp_path / "clip.mp4", size=SMALL)
    assert not list(tmp_path.iterdir())


def test_motions_play(tmp_path: Path) -> None:
    bones = Skeleton.from_positions([[0, 0, 0], [0, 1, 0], [0, 2, 0]], [-1, 0, 1])
    turns = np.tile([1.0, 0, 0, 0], (5, 3, 1))
    angle = np.linspace(0, 1, 5)
    turns[:, 1] = np.stack([np.cos(angle / 2), np.sin(angle / 2), 0 * angle, 0 * angle], axis=1)
    motion = Motion(bones, turns, np.tile(bones.offsets, (5, 1, 1)), 10.0)
    assert render.contact_sheet(motion, frames=3, columns=3, size=SMALL).size == (600, 150)
    with Pillow.open(render.movie(motion, tmp_path / "bones.gif", size=SMALL)) as film:
        assert film.n_frames == 5
    assert render.picture(box(), extra=[motion], size=SMALL).size == SMALL


def test_save_writes_by_suffix_and_refuses_others(tmp_path: Path) -> None:
    image = render.picture(box(), size=SMALL)
    for name in ("a.png", "b.jpg", "deep/c.webp"):
        path = render.save(image, tmp_path / name)
        with Pillow.open(path) as opened:
            assert opened.size == SMALL
    with pytest.raises(InputError, match=r"expected \.png"):
        render.save(image, tmp_path / "a.txt")
    (tmp_path / "d.png").mkdir()
    with pytest.raises(FileError, match="folder"):
        render.save(image, tmp_path / "d.png")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": (0, 10)}, "size is"),
        ({"size": 300}, "size is"),
        ({"view": "left"}, "view is"),
        ({"view": (0, 91)}, "view is"),
        ({"up": "x"}, "up is"),
        ({"color": "blurple"}, "color is"),
        ({"color": (1, 2, 3)}, "from 0 to 1"),
        ({"background": "none at all"}, "background is"),
        ({"values": np.zeros(3)}, r"values have shape \(3,\); expected \(8,\)"),
        ({"values": ["a"] * 8}, "not numbers"),
        ({"values": np.zeros(8), "limits": (1, 1)}, "limits are"),
        ({"values": np.zeros(8), "limits": (0, math.nan)}, "limits are"),
        ({"values": np.zeros(8), "limits": (0, 1, 2)}, "limits are"),
        ({"values": np.zeros(8), "colormap": "jet"}, "colormap is"),
        ({"extra": [5]}, "cannot draw a int"),
        ({"extra": [render.Extra(box(), style="glass")]}, "style of an extra"),  # type: ignore[arg-type]
    ],
)
def test_bad_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        render.picture(box(), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        ("cat.obj", "cannot draw a str"),
        (Mesh(np.zeros((0, 3)), []), "without points"),
        (PointCloud(np.zeros((0, 3))), "without points"),
        (moving(), r"clip\[k\]"),
    ],
    ids=["text", "no points", "no cloud", "clip"],
)
def test_what_cannot_be_drawn_is_named(thing: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        render.picture(thing)  # type: ignore[arg-type]


def test_what_cannot_be_filmed_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to draw"):
        render.contact_sheet([])
    with pytest.raises(InputError, match="expected 1 or more"):
        render.contact_sheet(moving(), frames=0)
    with pytest.raises(InputError, match="does not move"):
        render.movie(box(), tmp_path / "a.gif")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"expected \.gif or \.mp4"):
        render.movie(moving(), tmp_path / "a.avi")
    with pytest.raises(InputError, match="fps is"):
        render.movie(moving(), tmp_path / "a.gif", fps=0)
    with pytest.raises(InputError, match="seconds are"):
        render.turntable(box(), tmp_path / "a.gif", seconds=-1)
    assert not list(tmp_path.iterdir())


def test_importing_render_loads_no_compiler() -> None:
    code = "import sys, pliant.render; assert not {'numba', 'scipy'} & set(sys.modules), 'heavy import'"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ})


@pytest.mark.data
def test_a_real_cat_draws(data: Path) -> None:
    from pliant.io import read_mesh

    cat = read_mesh(data / "poses" / "cat" / "cat-ref.obj")
    covered = coverage(pixels(cat))
    assert 0.1 < covered.mean() < 0.6
