"""How a window shows its scenes: surfaces, colours of files, the axis that is up, where the camera looks from."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

import pliant
from fake_viser import Client, all_done, do
from pliant.app.studio.folders import Folders
from pliant.app.studio.server import panels
from pliant.app.studio.session import Session
from pliant.core.shapes import Appearance, Image, Labels, Layer
from pliant.render.parts import vertex_colors

BAR = {
    "engine": "transfer",
    "target": {"file": "red.ply"},
    "cage": {"faces": 60},
    "lattice": 8,
    "positions": [{"at": 0}, {"at": 30}],
}


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Any]:
    box = pliant.gallery.box(500)
    red = np.tile([1.0, 0.0, 0.0], (len(box.points), 1))
    pliant.write(tmp_path / "red.ply", pliant.Mesh(box.points, box.triangles, attributes={"color": red}))
    (tmp_path / "uploads").mkdir()
    folders = Folders.of([tmp_path], tmp_path / "uploads")
    client = Client()
    session = Session(client, folders, panels(), dict(BAR), largest_upload=1 << 20)
    assert all_done(session.live)
    yield session
    session.close()


def test_surfaces_are_flat_wire_or_in_the_colours_of_the_file(window: Any) -> None:
    gui, scene = window.client.gui, window.client.scene
    for surface, wire, flat in (("wireframe", True, False), ("flat", False, True), ("smooth", False, False)):
        gui["Surface"].set(surface)
        assert window.slow.idle(20)
        assert (scene["/cage/target"].wireframe, scene["/cage/target"].flat_shading) == (wire, flat)
    gui["Surface"].set("the file's colours")
    assert window.slow.idle(20)
    drawn = window.panel.drawn
    np.testing.assert_array_equal(drawn.colors, vertex_colors(drawn.shape))
    gui["Surface"].set("smooth")
    assert window.slow.idle(20)
    assert drawn.colors is None
    assert not window.client.notes


def test_another_axis_is_up_and_what_was_done_stays(window: Any) -> None:
    handle = window.client.scene["/cage/controls/positions/1"]
    handle.drag(np.add(handle.position, [0.0, 0.0, 0.3]), phase="end")
    assert all_done(window.live, window.notes)
    document, labels = window.panel.document(), window.history.labels
    shown = {}
    for up in ("y", "z"):
        window.client.gui["Up"].set(up)
        assert all_done(window.live, window.notes)
        shown[up] = window.stage.shown([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
        assert window.panel.document() == document
        assert window.history.labels == labels
    np.testing.assert_allclose((shown["y"][0] - shown["y"][1])[:2], 0, atol=1e-9)
    np.testing.assert_allclose((shown["z"][0] - shown["z"][1])[[0, 2]], 0, atol=1e-9)
    assert not window.client.notes


def test_numbers_say_their_units_and_how_large_the_shape_is(window: Any) -> None:
    document, gui, sides = window.panel.document(), window.client.gui, np.ptp(window.panel.drawn.points, axis=0)
    gui["Units"].set("millimetres")
    assert window.page.state["units"] == "mm"
    assert [float(side) for side in re.findall(r"[\d.]+(?= )", window._size.content)] == pytest.approx(sides, rel=0.01)
    assert window.panel.document() == document, "nothing is solved otherwise"
    said = window.panel.drawn.shape
    window.panel.drawn.shape = dataclasses.replace(said, world=pliant.World("y", 0.01))
    gui["Units"].set("as the shape says")
    assert window.page.state["units"] == "cm"


def seen(camera: Any, points: Any) -> np.ndarray:
    """(n, 2) where points of the page are seen, from -1 to 1 in the picture."""
    ahead = (camera.look_at - camera.position) / np.linalg.norm(camera.look_at - camera.position)
    right = np.cross(ahead, camera.up_direction)
    right /= np.linalg.norm(right)
    way = points - camera.position
    at = np.stack([way @ right / camera.aspect, way @ np.cross(right, ahead)], axis=1)
    return at / (np.tan(camera.fov / 2) * (way @ ahead)[:, None])


@pytest.mark.parametrize("aspect", [0.4, 1.5, 6.0])
def test_the_camera_looks_from_a_side_with_all_in_view_as_large_as_can_be(window: Any, aspect: float) -> None:
    camera, points = window.client.camera, window.stage.shown(window.panel.drawn.points)
    camera.aspect = aspect
    for side, axis in (("Front", 1), ("Side", 0), ("Top", 2)):
        do(window, "look_from", side)
        way = np.abs(camera.position - camera.look_at)
        assert way[axis] == pytest.approx(np.linalg.norm(way), rel=1e-3)
        assert 0.65 < np.abs(seen(camera, points)).max() < 1
    do(window, "look_from", "nowhere")
    do(window, "look_from", "All")
    np.testing.assert_allclose(np.abs(camera.position - camera.look_at), way, atol=1e-9)


def test_what_is_opened_is_in_view_with_its_obstacles(window: Any) -> None:
    camera = window.client.camera
    camera.aspect = 0.5
    window.start(dict(BAR))
    assert all_done(window.live)
    assert 0.65 < np.abs(seen(camera, window.stage.shown(window.panel.drawn.points))).max() < 1
    hand = {"engine": "blend", "shapes": {"gallery": "hand", "vertices": 500, "names": ["open", "fist"]}}
    window.start(hand | {"obstacles": [{"what": "sphere:0.4,0.1,0,0.02"}, {"what": "plane:0,-0.1,0,0,1,0"}]})
    assert all_done(window.live)
    assert np.abs(seen(camera, window.stage.shown(window.panel.drawn.points))).max() < 1
    assert 0.65 < np.abs(seen(camera, window.stage.shown([[0.42, 0.1, 0.0]]))).max() < 1


def test_a_picture_of_what_is_seen_is_offered(window: Any) -> None:
    client = window.client
    client.get_render = lambda height, width, **_: np.full((height, width, 4), 7, np.uint8)
    client.gui["Save a picture"].press()
    assert window.slow.idle(20)
    (content,) = client.downloads.values()
    assert Pillow.open(BytesIO(content)).size == (40, 30)


def test_a_film_of_the_frames_that_are_played_is_offered(window: Any) -> None:
    client, drawn = window.client, []
    client.get_render = lambda height, width, **_: np.full((height, width, 4), 20 * drawn[-1], np.uint8)
    window.timeline.show(10, 50.0, drawn.append, frame=3)
    window.panel.frames.solved = dict.fromkeys(range(10))
    window.timeline.set_range(2, 8)
    client.gui["Save a film"].press()
    assert window.slow.idle(20)
    assert drawn == [2, 4, 6, 8, 3]  # at most 25 frames a second; then the one that was seen before
    (content,) = client.downloads.values()
    film = Pillow.open(BytesIO(content))
    assert (film.size, film.n_frames, film.info["duration"]) == ((40, 30), 4, 40)


def test_a_film_of_frames_that_are_not_solved_is_refused(window: Any) -> None:
    window.panel.frames.resize(4, 25.0)
    window.panel.frames.drop()
    window.client.get_render = None
    window.client.gui["Save a film"].press()
    assert window.slow.idle(20)
    assert not window.client.downloads
    assert any("4 of the frames are not solved yet" in body for _, body in window.client.notes)


def test_a_dark_page_has_a_dark_ground(window: Any) -> None:
    light = window.client.scene["/ground"].cell_color
    window.client.gui["Dark"].set(True)
    assert window.slow.idle(20)
    assert sum(window.client.scene["/ground"].cell_color) < sum(light) / 2
    assert window.page.state["dark"]


def test_colours_at_vertices_are_those_of_the_texture_there() -> None:
    pixels = np.zeros((4, 4, 3), np.uint8)
    pixels[:2], pixels[2:] = [255, 0, 0], [0, 0, 255]  # red above, blue below
    buffer = BytesIO()
    Pillow.fromarray(pixels).save(buffer, "PNG")
    points = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    triangles = np.array([[0, 1, 2], [0, 2, 3]])
    uvs = Layer(points[:, :2] * 0.98 + 0.01, triangles.reshape(-1))
    look = Appearance(color=(1.0, 1.0, 1.0, 1.0), texture=Image("t.png", buffer.getvalue(), "image/png"))
    labels = {"material": Labels(("skin",), [0, 0])}
    mesh = pliant.Mesh(points, triangles, uvs=uvs, labels=labels, appearances={"skin": look})
    np.testing.assert_allclose(vertex_colors(mesh), [[0, 0, 1], [0, 0, 1], [1, 0, 0], [1, 0, 0]], atol=1e-6)
    assert vertex_colors(pliant.Mesh(points, triangles)) is None
