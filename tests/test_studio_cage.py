"""The studio's cage panel without a browser: what is placed, dragged and chosen, and that the scene says all of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pliant
from cage_window import BAR, BY_HAND, TIP, Window, filled
from fake_viser import do
from pliant.app.scene import read_scene
from pliant.app.studio.viewport import Drawn
from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.engines.transfer.app import panel_document as documents
from pliant.engines.transfer.app.panel_document import Chosen


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("cages"))


@pytest.fixture
def window(folder: Path) -> Iterator[Window]:
    made = Window(folder, BY_HAND)
    made.rest()
    yield made
    made.session.close()


def close(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.abs(a - b).max() < 1e-6 * BAR.diagonal)  # the page has single precision


# Posed by hand


def test_what_is_dragged_is_what_the_scene_gives(window: Window) -> None:
    place = window.handle("positions", 1).position
    for part in (0.3, 0.7, 1.0):
        window.handle("positions", 1).drag(place + part * np.array([-0.1, 0.2, 0.4]))
    window.handle("positions", 1).drag(phase="end")
    turn = rotations.from_axis_angle([1.0, 0.0, 0.0], 0.6)
    window.handle("gradients", 0).drag(wxyz=window.session.stage.shown_rotation(turn), phase="start")
    window.handle("gradients", 0).drag(wxyz=window.session.stage.shown_rotation(turn))
    window.handle("gradients", 0).drag(phase="end")
    window.rest()
    assert window.widget("Chosen").value == "Turn 1"
    window.widget("Stretch").set(1.3)
    window.widget("Turns count").set(20.0)
    window.rest()
    said = window.panel.document()
    goal = window.session.stage.world(np.add(place, [-0.1, 0.2, 0.4]))
    assert said["positions"][1]["at"] == TIP
    assert np.allclose(said["positions"][1]["to"], goal, atol=1e-6)
    assert said["gradients"][0]["stretch"] == 1.3
    assert said["gradients"][0]["turn"]["degrees"] == pytest.approx(np.degrees(0.6), abs=1e-3)
    assert said["weights"] == {"gradient": 20.0}
    ran = window.ran()[-1]
    assert np.array_equal(window.panel.drawn.points, ran)
    assert close(window.points, ran)
    assert np.linalg.norm(ran[TIP] - BAR.points[TIP]) > 0.3  # it did move


def test_a_saved_scene_gives_the_same_points(window: Window, folder: Path) -> None:
    window.pull(1, [0.0, 0.3, 0.2])
    window.widget("Frames to this pose").set(4)
    window.rest()
    path = window.session.save("posed")
    clip = read_scene(path).run().clip
    assert len(clip) == 4
    assert np.array_equal(window.panel.drawn.points, clip.points[-1])
    assert window.session.timeline.count == 4
    do(window.session, "scrub", 1)
    assert np.array_equal(window.panel.drawn.points, clip.points[1])


def test_clicks_place_controls_of_each_kind(window: Window) -> None:
    window.click([1.0, 0.1, 3.0], [0, 0, -1])
    window.rest()
    at = window.panel.document()["positions"][2]["at"]
    assert isinstance(at, int)
    assert np.linalg.norm(BAR.points[at] - [1.0, 0.1, 0.5]) < 0.15
    assert window.widget("Chosen").value == "Point 3"
    window.widget("A click on the shape").value = "Turn and stretch here"
    window.click([-1.0, 0.1, 3.0], [0, 0, -1])
    window.widget("A click on the shape").value = "Keep a length"
    window.click([-0.5, 0.1, 3.0], [0, 0, -1])
    window.rest()
    assert "lengths" not in window.panel.document()
    assert "/cage/controls/first" in window.client.scene.nodes
    window.click([0.5, 0.1, 3.0], [0, 0, -1])
    window.rest()
    said = window.panel.document()
    assert [len(said[key]) for key in ("positions", "gradients", "lengths")] == [3, 2, 1]
    assert {"/cage/controls/positions/2", "/cage/controls/gradients/1", "/cage/controls/bars"} <= set(
        window.client.scene.nodes
    )
    assert "/cage/controls/first" not in window.client.scene.nodes
    assert len(window.client.scene["/cage/controls/balls"].batched_positions) == 7
    assert np.array_equal(window.panel.drawn.points, window.ran()[-1])


def test_a_click_is_met_where_the_shape_is_now(window: Window) -> None:
    window.pull(0, [0.0, 0.0, 1.0])
    window.pull(1, [0.0, 0.0, 1.0])
    window.rest()
    shown = window.panel.drawn.points
    window.click([shown[:, 0].mean(), shown[:, 1].max() + 1, 0.0], [0, -1, 0])
    window.rest()
    at = window.panel.document()["positions"][2]["at"]
    assert BAR.points[at, 1] == BAR.points[:, 1].max()


def test_a_click_on_a_ball_chooses_its_control(window: Window) -> None:
    window.widget("Chosen").set("Turn 1")
    stage = window.session.stage
    start = stage.shown(BAR.points[TIP] + [1.0, 0, 0])
    window.client.scene["/cage/controls/balls"].click(start, stage.shown(BAR.points[TIP]) - start)
    window.rest()
    assert window.widget("Chosen").value == "Point 2"
    assert window.panel.document() == BY_HAND


def test_a_point_is_dragged_by_its_ball(window: Window) -> None:
    scene, stage = window.client.scene, window.session.stage
    balls, handle = scene["/cage/controls/balls"], window.handle("positions", 1)
    start, way = np.array(handle.position), np.array([0.0, 0.0, 0.3])
    for share, phase in ((0.0, "start"), (0.4, "update"), (1.0, "end")):
        balls.pull(start, start + share * way, phase)
    window.rest()
    to = window.panel.document()["positions"][1]["to"]
    np.testing.assert_allclose(stage.shown(to), start + way, atol=1e-5)
    assert stage.selection.name == handle.name
    np.testing.assert_allclose(handle.position, start + way, atol=1e-5)


@pytest.mark.parametrize("by", ["ball", "handle"])
def test_a_drag_that_ends_beyond_the_horizon_ends_where_it_was_last(window: Window, by: str) -> None:
    handle, before, steps = window.handle("positions", 1), window.panel.document(), len(window.session.history.steps)
    start = np.array(handle.position)
    to, beyond = np.add(start, [0.0, 0.0, 0.3]), np.full(3, np.nan)
    for at, phase in ((start, "start"), (to, "update"), (beyond, "update"), (beyond, "end"), (beyond, "end")):
        if by == "ball":
            window.client.scene["/cage/controls/balls"].pull(start, at, phase)
        else:
            handle.drag(at, phase=phase)
    window.rest()
    said = window.panel.document()["positions"][1]["to"]
    np.testing.assert_allclose(window.session.stage.shown(said), to, atol=1e-5)
    assert window.panel.nodes.dragged is None
    window.session.note()  # now, not after a pause
    assert len(window.session.history.steps) == steps + 1
    window.session.undo()
    window.rest()
    assert window.panel.document() == before


def test_controls_are_removed_but_for_the_last_point(window: Window) -> None:
    window.widget("Chosen").set("Turn 1")
    window.widget("Remove it").press()
    window.widget("Chosen").set("Point 1")
    window.widget("Remove it").press()
    window.rest()
    said = window.panel.document()
    assert said["positions"] == [{"at": TIP}]
    assert "gradients" not in said
    assert "/cage/controls/gradients/0" not in window.client.scene.nodes
    window.widget("Remove it").press()
    assert window.client.notes.pop()[1].startswith("this is the only point left")
    window.widget("Remove all controls").press()
    window.rest()
    assert len(window.panel.document()["positions"]) == 2
    assert np.array_equal(window.panel.drawn.points, window.ran()[-1])


def test_a_drag_of_a_handle_whose_control_has_gone_is_nothing(window: Window) -> None:
    handle = window.handle("positions", 1)
    with window.held():  # the handle stays while nothing is drawn anew
        window.panel._document = documents.switched(window.panel._document, {}, posed=True)[0] | {
            "positions": [{"at": 0}]
        }
        handle.drag(np.add(handle.position, 0.1), phase="end")
        for act in (window.panel.reset, window.panel.remove, lambda: window.panel.stretch(2.0)):
            window.panel._chosen = documents.Chosen("gradients", 7)  # as a moment ago, before an undo
            act()
        window.session.stage.selection.drop(handle.name)
        handle.drag(np.add(handle.position, 0.1), phase="end")
    assert window.client.notes == []
    assert window.panel.document()["positions"] == [{"at": 0}]


def test_a_control_is_let_rest(window: Window) -> None:
    window.pull(1, [0.0, 0.2, 0.3])
    window.rest()
    moved = window.handle("positions", 1).position
    window.widget("Reset it").press()
    window.rest()
    assert window.panel.document() == BY_HAND
    assert np.linalg.norm(window.handle("positions", 1).position - moved) > 0.3
    assert np.abs(window.panel.drawn.points - BAR.points).max() < 1e-3


def test_another_cage_is_built_and_keeps_the_controls(window: Window) -> None:
    wires = len(window.client.scene["/cage/wires"].faces)
    window.widget("Faces at most").value = 100
    window.widget("Clearance").value = 0.05
    window.widget("Build a cage").press()
    window.pull(1, [0.0, 0.2, 0.0])  # meanwhile
    window.rest()
    said = window.panel.document()
    assert said["cage"] == {"faces": 100, "margin": 0.05}
    assert "to" in said["positions"][1]
    assert len(window.client.scene["/cage/wires"].faces) > wires
    assert np.array_equal(window.panel.drawn.points, window.ran()[-1])
    window.widget("Show the cage").set(False)
    window.widget("See through the shape").set(True)
    window.rest()
    assert not window.client.scene["/cage/wires"].visible
    assert window.client.scene["/cage/target"].opacity < 1


def test_what_is_wished_before_all_is_ready_counts(folder: Path) -> None:
    window = Window(folder, BY_HAND)
    while window.panel is None:
        time.sleep(0.001)
    window.widget("Points count").set(7.0)
    window.widget("Frames to this pose").set(3)
    window.rest()
    said = window.panel.document()
    assert said["weights"] == {"position": 7.0}
    assert said["frames"] == window.session.timeline.count == 3
    window.session.close()


def test_a_shape_without_controls_gets_two_to_begin_with(folder: Path) -> None:
    bare = {key: value for key, value in BY_HAND.items() if key not in ("positions", "gradients")}
    window = Window(folder, bare)
    window.rest()
    assert {"/cage/controls/positions/0", "/cage/controls/positions/1"} <= set(window.client.scene.nodes)
    first, second = (entry["at"] for entry in window.panel.document()["positions"])
    assert np.linalg.norm(BAR.points[first] - BAR.points[second]) > 0.8 * BAR.diagonal
    assert np.array_equal(window.panel.drawn.points, window.ran()[-1])
    window.session.close()


def test_dragging_never_waits_for_the_finer_shape(window: Window) -> None:
    handle = window.handle("positions", 1)
    begun, place = time.perf_counter(), handle.position
    for k in range(60):
        handle.drag(np.add(place, [0.0, 0.01 * k, 0.0]))
    assert time.perf_counter() - begun < 1
    window.rest()
    assert np.array_equal(window.panel.drawn.points, window.ran()[-1])


def test_a_click_does_not_keep_the_page_waiting(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []
    hit = Drawn.hit
    monkeypatch.setattr(Drawn, "hit", lambda *ray: threads.append(threading.current_thread().name) or hit(*ray))
    with window.held():
        for x in (1.0, -1.0):
            window.click([x, 0.1, 3.0], [0, 0, -1])
        window.widget("A click on the shape").set("Keep a length")  # for later clicks
    window.rest()
    assert threads == ["pliant-studio"] * 2
    assert len(window.panel.document()["positions"]) == 4  # each click counts


def test_a_click_on_points_takes_the_one_that_is_met(folder: Path) -> None:
    pliant.write(folder / "points.ply", pliant.PointCloud(BAR.points))
    window = Window(folder, BY_HAND | {"target": {"file": "points.ply"}})
    window.rest()
    window.click([1.0, 0.1, 3.0], [0, 0, -1])
    window.widget("See through the shape").set(True)
    window.rest()
    at = window.panel.document()["positions"][2]["at"]
    assert np.linalg.norm(BAR.points[at, :2] - [1.0, 0.1]) < 0.15
    window.session.close()


@pytest.mark.parametrize(
    "uneven", [{"stretch": [1.0, 1.4, 0.8]}, {"matrix": [[1.0, 0.3, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]}]
)
def test_what_stretches_unevenly_has_no_slider_and_is_kept(folder: Path, uneven: dict[str, Any]) -> None:
    said = BY_HAND | {"gradients": [{"at": [0.0, 0.0, 0.0]} | uneven, {"at": [0.5, 0.0, 0.0], "stretch": 1.2}]}
    window = Window(folder, said)
    window.rest()
    why = next(one for one in window.client.gui.widgets.values() if "in its own way" in getattr(one, "content", ""))
    window.widget("Chosen").set("Turn 1")
    assert (window.widget("Stretch").visible, why.visible) == (False, True)
    window.widget("Stretch").set(2.0)  # by a page that shows it still
    assert "in its own way" in window.client.notes.pop()[1]
    window.widget("Chosen").set("Turn 2")
    assert (window.widget("Stretch").visible, why.visible) == (True, False)
    window.rest()
    assert window.panel.document() == said
    window.widget("Chosen").set("Turn 1")
    window.widget("Reset it").press()
    assert (window.widget("Stretch").visible, window.widget("Stretch").value) == (True, 1.0)
    window.session.close()


# Documents


def turn(degrees: float) -> np.ndarray:
    return rotations.from_axis_angle([0.0, 0.0, 1.0], np.radians(degrees))


def test_turns_go_on_past_half_a_turn() -> None:
    said = {"engine": "transfer", "gradients": [{"at": 3, "stretch": [1.0, 2.0, 1.0]}]}
    for degrees in (60, 120, 170, 190, 250, 300, 350, 380):
        said = documents.rotated(said, 0, turn(degrees))
        assert said["gradients"][0]["turn"]["degrees"] == pytest.approx(degrees)
        assert said["gradients"][0]["stretch"] == [1.0, 2.0, 1.0]
    assert documents.at_rest(said, Chosen("gradients", 0))["gradients"] == [{"at": 3}]


def test_a_turn_keeps_what_a_matrix_stretches() -> None:
    stretch = np.diag([1.5, 1.0, 0.8])
    said = {"engine": "transfer", "gradients": [{"at": 3, "matrix": (rotations.matrix(turn(20)) @ stretch).tolist()}]}
    made = documents.rotated(said, 0, turn(70))["gradients"][0]["matrix"]
    assert np.allclose(made, rotations.matrix(turn(70)) @ stretch)


def test_documents_have_only_what_has_an_effect() -> None:
    said = BY_HAND | {"weights": {"gradient": 9.0, "length": 9.0, "smooth": 1.0}, "lengths": []}
    assert documents.effective(said) == BY_HAND | {"weights": {"gradient": 9.0}}
    without = documents.removed(said, Chosen("gradients", 0))
    assert "weights" not in documents.effective(without)
    with pytest.raises(InputError, match="only point left"):
        documents.removed(BY_HAND | {"positions": [{"at": 1}]}, Chosen("positions", 0))
    assert said["gradients"] == BY_HAND["gradients"]  # documents are not changed in place


def test_places_have_digits_for_their_size() -> None:
    assert documents.rounded(np.array([0.12345678912, -1e-12, 2.0]), 1.7) == [0.123457, 0.0, 2.0]
    assert documents.rounded(np.array([1234.56789, 0.0, 2.0]), 1700.0) == [1234.568, 0.0, 2.0]


# The cage itself


def test_a_vertex_of_the_cage_is_dragged_and_that_is_undone(window: Window) -> None:
    window.widget("Edit the cage").set(True)
    window.rest()
    cage = window.session.scene(window.panel.document()).cage
    assert np.array_equal(window.panel.drawn.points, BAR.points), "the shape is at rest meanwhile"
    stage, corner = window.session.stage, int(np.argmax(cage.points[:, 1]))
    start = np.add(stage.shown(cage.points[corner]), [0.0, 0.0, 5.0])
    window.client.scene["/cage/vertices"].click(start, [0.0, 0.0, -1.0])
    handle = window.client.scene["/cage/vertices/handle"]
    chosen = window.panel.editing._chosen
    assert close(stage.world(handle.position), cage.points[chosen])
    outwards = cage.points[chosen] - BAR.points.mean(axis=0)
    for phase in ("start", "update", "end"):
        handle.drag(stage.shown(cage.points[chosen] + 0.1 * outwards), phase=phase)
    window.rest()
    changed = window.session.scene(window.panel.document()).cage.points
    assert np.flatnonzero(np.abs(changed - cage.points).max(axis=1) > 1e-6 * BAR.diagonal).tolist() == [chosen]
    assert close(changed[chosen], cage.points[chosen] + 0.1 * outwards)
    balls, corner = window.client.scene["/cage/vertices"], stage.shown(changed[chosen])
    for share, phase in ((0.0, "start"), (1.0, "update"), (1.0, "end")):  # the vertex itself
        balls.pull(corner, stage.shown(changed[chosen] + 0.1 * share * outwards), phase)
    window.rest()
    again = window.session.scene(window.panel.document()).cage.points
    assert close(again[chosen], changed[chosen] + 0.1 * outwards)
    changed = again
    saved = window.session.save("edited")
    assert close(read_scene(saved).cage.points, changed)
    handle = window.client.scene["/cage/vertices/handle"]
    for phase in ("start", "end"):
        handle.drag(stage.shown(BAR.points.mean(axis=0)), phase=phase)
    assert window.session.live.idle(60)
    assert "closed around" in window.client.notes.pop()[1]
    assert close(window.session.scene(window.panel.document()).cage.points, changed)
    window.widget("Edit the cage").set(False)
    window.rest()
    assert "/cage/vertices" not in window.client.scene.nodes
    assert "/cage/controls/balls" in window.client.scene.nodes
    do(window.session, "undo")
    window.rest()
    assert close(window.session.scene(window.panel.document()).cage.points, cage.points)
