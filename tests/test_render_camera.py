"""Where pictures are taken from: what is up, which side is shown, and a camera that fits all of it."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from pliant import gallery, render
from pliant.core import rotations
from pliant.core.clips import Animation
from pliant.core.shapes import Mesh, World
from pliant.core.skeleton import Motion
from pliant.render.camera import VIEWS, Frame, bounds_of, camera_axes, fit, front_of, view_of
from pliant.render.parts import Paint
from pliant.render.scene import Take
from render_shapes import SMALL, ball, box, coverage, pixels, square, stage_of


def test_the_camera_shows_every_frame_with_a_margin() -> None:
    paths = np.random.default_rng(3).normal(size=(5, 1, 3)) * 3
    stage, take = stage_of([Animation(box(), box().points + paths)], SMALL, (20.0, 30.0), up="z")
    for frame in range(5):
        place = stage.camera.project(take.extent(frame))
        assert place.min() > 0.04 * SMALL[1]
        assert (place < np.array(SMALL) - 0.04 * SMALL[1]).all()


def test_what_the_file_says_is_up_is_up() -> None:
    """A tall box along z stands if its file is z up, and lies if it is not or if the caller knows better."""
    tall = replace(box(), points=box().points * (1, 1, 3))
    shown = {up: pixels(tall, size=SMALL, view="front", up=up) for up in ("y", "z")}
    labelled = replace(tall, world=World("z"))
    assert not np.array_equal(shown["y"], shown["z"])
    np.testing.assert_array_equal(pixels(tall, size=SMALL, view="front"), shown["y"])
    np.testing.assert_array_equal(pixels(labelled, size=SMALL, view="front"), shown["z"])
    np.testing.assert_array_equal(pixels(labelled, size=SMALL, view="front", up="y"), shown["y"])
    clip = Animation(labelled, labelled.points[None])
    sheets = [np.asarray(render.contact_sheet(clip, size=SMALL, up=up)) for up in ("auto", "z", "y")]
    np.testing.assert_array_equal(sheets[0], sheets[1])
    assert not np.array_equal(sheets[0], sheets[2])


@pytest.mark.parametrize(
    ("motion", "rest"),
    [(gallery.dinosaur_walk(8), True), (gallery.animal_gallop(8), True), (gallery.dinosaur_walk(8), False)],
)
def test_a_motion_stands_on_its_legs_where_no_file_says_what_is_up(motion: Motion, rest: bool) -> None:
    """BVH does not, and some exporters write the rest along y and turn the root in every frame."""
    turn = rotations.from_axis_angle([1.0, 0, 0], np.pi / 2)
    roots, skeleton = motion.skeleton.parents < 0, motion.skeleton
    R, T = motion.rotations.copy(), motion.translations.copy()
    R[:, roots], T[:, roots] = rotations.multiply(turn, R[:, roots]), rotations.rotate(turn, T[:, roots])
    if rest:
        at_rest, offsets = skeleton.rest_rotations.copy(), skeleton.offsets.copy()
        at_rest[roots], offsets[roots] = (
            rotations.multiply(turn, at_rest[roots]),
            rotations.rotate(turn, offsets[roots]),
        )
        skeleton = replace(skeleton, rest_rotations=at_rest, offsets=offsets)
    turned = replace(motion, skeleton=skeleton, rotations=R, translations=T)
    assert (take_up(motion), take_up(turned)) == ("y", "z")
    assert take_up(replace(turned, skeleton=replace(skeleton, world=World("y")))) == "y"


def take_up(motion: Motion) -> str:
    return Take(motion, Paint()).upright("auto")


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
    ("up", "view", "axis"),
    [("y", "front", 2), ("y", "side", 0), ("y", "top", 1), ("z", "top", 2), ("x", "top", 0), ("-x", "front", 2)],
)
def test_named_views_look_along_their_axis(up: str, view: str, axis: int) -> None:
    away = camera_axes(*VIEWS[view], up)[2]  # type: ignore[arg-type]
    assert abs(away[axis] + 1) < 1e-12


@pytest.mark.parametrize("up", [up for up in get_args(render.Up) if up != "auto"])
def test_the_axis_that_points_up_does(up: render.Up) -> None:
    """A post along the axis, with a foot at its lower end: the picture is widest at the bottom."""
    axis, sign = "xyz".index(up[-1]), -1 if up[0] == "-" else 1
    tall = np.ones(3)
    tall[axis] = 4
    foot = box(2.0, tuple(np.where(np.arange(3) == axis, -2.0 * sign, 0)))  # type: ignore[arg-type]
    corners = np.concatenate([box().points * tall, foot.points])
    shape = Mesh(corners, [*box().polygons, *(polygon + 8 for polygon in foot.polygons)])
    rows = coverage(pixels(shape, up=up, view="front")).sum(axis=1)
    rows = rows[rows > 0]
    assert rows[-10:].min() > 1.5 * rows[:10].max()


DIRECTIONS = [*np.eye(3), *-np.eye(3), *np.random.default_rng(1).normal(size=(20, 3))]


@pytest.mark.parametrize("up", ["y", "z", "-x"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_an_open_surface_is_shown_from_the_side_it_faces(direction: np.ndarray, up: render.Up) -> None:
    direction = direction / np.linalg.norm(direction)
    across = np.linalg.svd(direction[None])[2]
    turn = np.stack([across[1], np.cross(direction, across[1]), direction])
    sheet = replace(square(), points=square().points @ turn)
    front = front_of(sheet.points, sheet.triangles)
    assert front is not None
    np.testing.assert_allclose(front, direction, atol=1e-12)
    away = camera_axes(*view_of(front, up), up)[2]
    assert -away @ direction > 0.5


def test_what_faces_no_side_or_the_usual_one_has_the_usual_view() -> None:
    sphere = ball()
    assert front_of(sphere.points, sphere.triangles) is None
    assert view_of(None, "y") == view_of(np.array([0.3, 0.1, 1.0]), "y") == VIEWS["auto"]
    without_a_cap = Mesh(sphere.points, [f for f in sphere.polygons if sphere.points[f, 1].max() < 0.9])
    assert front_of(without_a_cap.points, without_a_cap.triangles) is None


def test_a_captured_face_that_looks_away_is_shown_from_its_front_in_every_frame() -> None:
    """Its inside is blue; the rest shape decides, also where later frames turn away."""
    face = square(flip=True)
    turned = face.points * (-1, 1, 1)
    clip = Animation(face, np.stack([face.points, turned]))
    warm = pixels(face)[75, 100].astype(int)
    assert warm[0] > warm[2]
    sheet = np.asarray(render.contact_sheet(clip, size=SMALL, ground=False))
    assert sheet[75, 100, 0] > sheet[75, 100, 2]
    assert sheet[75, 300, 2] > sheet[75, 300, 0]


def test_camera_axes_turn_right_handed() -> None:
    for azimuth, elevation in [(0, 0), (35, 18), (-120, -40), (10, 90)]:
        for up in ("y", "z"):
            right, upward, away = camera_axes(azimuth, elevation, up)  # type: ignore[arg-type]
            np.testing.assert_allclose(np.cross(right, upward), -away, atol=1e-12)
