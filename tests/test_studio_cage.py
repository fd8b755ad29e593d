"""The studio's cage panel without a browser: what is placed, dragged and chosen, and that the scene says all of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pliant
from fake_viser import Client, Widget
from pliant import gallery, rotations
from pliant.errors import InputError
from pliant.scene import read_scene
from pliant.studio import cage_document as documents
from pliant.studio.cage import CagePanel
from pliant.studio.cage_document import Chosen
from pliant.studio.folders import Folders
from pliant.studio.session import Session

BAR = gallery.bar(500).base
TARGET, CAGE = {"file": "bar.obj"}, {"file": "cage.obj"}
TIP, ROOT = int(np.argmax(BAR.points[:, 0])), int(np.argmin(BAR.points[:, 0]))
BY_HAND = {
    "engine": "cage",
    "target": TARGET,
    "cage": CAGE,
    "lattice": 16,
    "positions": [{"at": ROOT}, {"at": TIP}],
    "gradients": [{"at": [0.0, 0.0, 0.0]}],
}
BY_MOTION = {
    "engine": "transfer",
    "target": TARGET,
    "cage": CAGE,
    "lattice": 16,
    "sources": {"curl": {"gallery": "tentacle_curl", "vertices": 500, "last": 4}},
    "controls": [{"at": [1.0, 0.0, 0.0], "track": "all"}, {"at": [0.0, 0.0, 0.0]}],
    "held": [ROOT],
}
BY_MOTION["sources"]["curl"]["groups"] = {"all": list(range(300))}  # type: ignore[index]


class Window:
    """A window on a document, and what a visitor does in it."""

    def __init__(self, folder: Path, document: documents.Document) -> None:
        self.client = Client()
        folders = Folders.of([folder], folder / "uploads")
        self.session = Session(self.client, folders, {"cage": CagePanel}, document, largest_upload=1 << 20)

    @property
    def panel(self) -> Any:
        return self.session.panel

    def rest(self) -> None:
        assert self.session.live.idle(60)
        assert not self.client.notes

    def widget(self, label: str) -> Widget:
        return self.client.gui[label]

    def handle(self, kind: str, number: int) -> Widget:
        return self.client.scene[f"/cage/controls/{kind}/{number}"]

    def pull(self, number: int, by: list[float]) -> None:
        """Drag a point by a way on the page."""
        handle = self.handle("positions", number)
        handle.drag(np.add(handle.position, by))
        handle.drag(phase="end")

    def click(self, at: Any, towards: Any) -> None:
        """Click on the target along a ray of the world."""
        stage = self.session.stage
        start, end = stage.shown(at), stage.shown(np.add(at, towards))
        self.client.scene["/cage/target"].click(start, end - start)

    @property
    def points(self) -> np.ndarray:
        """What the page shows, in the world."""
        vertices = self.client.scene["/cage/target"].vertices
        return self.session.stage.world(vertices)

    def ran(self) -> np.ndarray:
        """(frames, n, 3) what the document's scene gives."""
        return np.asarray(self.session.scene(self.panel.document()).run().clip.points)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("cages")
    (place / "uploads").mkdir()
    pliant.write(place / "bar.obj", BAR)
    pliant.write(place / "cage.obj", pliant.build_cage(BAR, faces=60))
    pliant.write(place / "nod.bvh", nodding())
    return place


def nodding() -> pliant.Motion:
    """Three frames of bones along the bar, whose far half turns."""
    places = np.array([[-1.9, 0.0, 0.0], [0.0, 0.0, 0.0], [1.9, 0.0, 0.0]])
    bones = pliant.Skeleton.from_positions(places, [-1, 0, 1], ["root", "half", "tip"])
    poses = [bones.pose({"half": rotations.from_axis_angle([0, 0, 1], 0.3 * k)}) for k in range(3)]
    turns, ways = (np.array([getattr(pose, key) for pose in poses]) for key in ("rotations", "translations"))
    return pliant.Motion(bones, turns, ways, 24.0)


@pytest.fixture
def window(folder: Path) -> Iterator[Window]:
    made = Window(folder, BY_HAND)
    made.rest()
    yield made
    made.session.close()


@pytest.fixture
def moving(folder: Path) -> Iterator[Window]:
    made = Window(folder, BY_MOTION)
    made.rest()
    made.session.timeline.stop()
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
    window.handle("gradients", 0).drag(wxyz=window.session.stage.shown_turn(turn), phase="start")
    window.handle("gradients", 0).drag(wxyz=window.session.stage.shown_turn(turn))
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
    assert np.array_equal(window.panel._drawn.points, ran)
    assert close(window.points, ran)
    assert np.linalg.norm(ran[TIP] - BAR.points[TIP]) > 0.3  # it did move


def test_a_saved_scene_gives_the_same_points(window: Window, folder: Path) -> None:
    window.pull(1, [0.0, 0.3, 0.2])
    window.widget("Frames on the way").set(4)
    window.rest()
    path = window.session.save("posed")
    clip = read_scene(path).run().clip
    assert len(clip) == 4
    assert np.array_equal(window.panel._drawn.points, clip.points[-1])
    assert window.session.timeline.count == 4
    window.session.timeline.slider.set(1)
    assert np.array_equal(window.panel._drawn.points, clip.points[1])


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
    assert np.array_equal(window.panel._drawn.points, window.ran()[-1])


def test_a_click_is_met_where_the_shape_is_now(window: Window) -> None:
    window.pull(0, [0.0, 0.0, 1.0])
    window.pull(1, [0.0, 0.0, 1.0])
    window.rest()
    shown = window.panel._drawn.points
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
    window.widget("Begin anew").press()
    window.rest()
    assert len(window.panel.document()["positions"]) == 2
    assert np.array_equal(window.panel._drawn.points, window.ran()[-1])


def test_a_control_is_let_rest(window: Window) -> None:
    window.pull(1, [0.0, 0.2, 0.3])
    window.rest()
    moved = window.handle("positions", 1).position
    window.widget("Let it rest").press()
    window.rest()
    assert window.panel.document() == BY_HAND
    assert np.linalg.norm(window.handle("positions", 1).position - moved) > 0.3
    assert np.abs(window.panel._drawn.points - BAR.points).max() < 1e-3


def test_another_cage_is_built_and_keeps_the_controls(window: Window) -> None:
    lines = len(window.client.scene["/cage/lines"].points)
    window.widget("Faces at most").value = 100
    window.widget("Room around the shape").value = 0.05
    window.widget("Build a cage").press()
    window.pull(1, [0.0, 0.2, 0.0])  # meanwhile
    window.rest()
    said = window.panel.document()
    assert said["cage"] == {"faces": 100, "margin": 0.05}
    assert "to" in said["positions"][1]
    assert len(window.client.scene["/cage/lines"].points) > lines
    assert np.array_equal(window.panel._drawn.points, window.ran()[-1])
    window.widget("Show the cage").set(False)
    window.widget("See through the shape").set(True)
    window.rest()
    assert not window.client.scene["/cage/lines"].visible
    assert window.client.scene["/cage/target"].opacity < 1


def test_what_is_wished_before_all_is_ready_counts(folder: Path) -> None:
    window = Window(folder, BY_HAND)
    window.widget("Points count").set(7.0)
    window.widget("Frames on the way").set(3)
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
    assert np.array_equal(window.panel._drawn.points, window.ran()[-1])
    window.session.close()


def test_dragging_never_waits_for_the_finer_shape(window: Window) -> None:
    handle = window.handle("positions", 1)
    begun, place = time.perf_counter(), handle.position
    for k in range(60):
        handle.drag(np.add(place, [0.0, 0.01 * k, 0.0]))
    assert time.perf_counter() - begun < 1
    window.rest()
    assert np.array_equal(window.panel._drawn.points, window.ran()[-1])


# Following a motion


def test_the_shape_follows_a_motion_that_plays_beside_it(moving: Window) -> None:
    ran = moving.ran()
    timeline = moving.session.timeline
    assert timeline.count == len(ran) == 5
    for frame in (2, 4):
        timeline.slider.set(frame)
        assert np.array_equal(moving.panel._drawn.points, ran[frame])
    source = moving.client.scene["/cage/sources/curl"].vertices
    target = moving.client.scene["/cage/target"].vertices
    assert source[:, 0].max() < target[:, 0].min()
    sizes = [np.linalg.norm(np.ptp(points, axis=0)) for points in (source, target)]
    assert 0.4 < sizes[0] / sizes[1] < 1.6
    assert "all" in moving.panel.widgets._pieces.content
    assert len(moving.client.scene["/cage/pieces"].batched_positions) == 3  # of two controls one follows nothing


def test_from_a_motion_to_a_pose_and_back(moving: Window, folder: Path) -> None:
    moving.widget("Motion").set("Nothing (posed by hand)")
    moving.rest()
    assert moving.panel.document()["engine"] == "cage"
    assert "/cage/sources/curl" not in moving.client.scene.nodes
    moving.pull(1, [0.0, 0.3, 0.0])
    moving.rest()
    posed = moving.panel.document()
    assert np.array_equal(moving.panel._drawn.points, moving.ran()[-1])
    assert moving.panel.take(folder / "nod.bvh")
    moving.rest()
    followed = moving.panel.document()
    assert (followed["engine"], followed["controls"]) == ("transfer", "auto")
    assert moving.session.timeline.count == 3
    moving.session.timeline.stop()
    moving.session.timeline.slider.set(1)
    assert np.array_equal(moving.panel._drawn.points, moving.ran()[1])
    moving.widget("Motion").set("Nothing (posed by hand)")
    moving.rest()
    assert moving.panel.document() == posed


# Files


def test_files_become_motions_and_cages(window: Window, folder: Path) -> None:
    pliant.write(folder / "around.obj", pliant.build_cage(BAR, faces=40, margin=0.06))
    pliant.write(folder / "small.obj", gallery.box(500).scaled(0.2))
    assert not window.panel.take(folder / "small.obj")
    assert window.panel.take(folder / "around.obj")
    window.rest()
    assert window.panel.document()["cage"] == {"file": str(folder / "around.obj")}
    assert np.array_equal(window.panel._drawn.points, window.ran()[-1])
    assert window.panel.take(folder / "nod.bvh")
    window.rest()
    said = window.panel.document()
    assert said["sources"] == {"motion": {"file": str(folder / "nod.bvh")}}
    assert said["controls"] == "auto"
    assert window.widget("Motion").value == "As the scene says"
    assert window.session.timeline.count == 3
    assert len(window.client.scene["/cage/sources/motion"].batched_positions) == 2  # its bones


def test_a_motion_that_does_not_fit_leaves_the_scene_as_it_was(window: Window, folder: Path) -> None:
    before = window.panel.document()
    (folder / "broken.bvh").write_text("HIERARCHY\nROOT hips\n{\n")
    assert window.panel.take(folder / "broken.bvh")
    assert window.session.live.idle(30)
    assert "broken.bvh" in window.client.notes.pop()[1]
    assert window.panel.document() == before
    window.pull(1, [0.0, 0.2, 0.0])
    window.rest()
    assert np.array_equal(window.panel._drawn.points, window.ran()[-1])


# Documents


def turn(degrees: float) -> np.ndarray:
    return rotations.from_axis_angle([0.0, 0.0, 1.0], np.radians(degrees))


def test_turns_go_on_past_half_a_turn() -> None:
    said = {"engine": "cage", "gradients": [{"at": 3, "stretch": [1.0, 2.0, 1.0]}]}
    for degrees in (60, 120, 170, 190, 250, 300, 350, 380):
        said = documents.turned(said, 0, turn(degrees))
        assert said["gradients"][0]["turn"]["degrees"] == pytest.approx(degrees)
        assert said["gradients"][0]["stretch"] == [1.0, 2.0, 1.0]
    assert documents.at_rest(said, Chosen("gradients", 0))["gradients"] == [{"at": 3}]


def test_a_turn_keeps_what_a_matrix_stretches() -> None:
    stretch = np.diag([1.5, 1.0, 0.8])
    said = {"engine": "cage", "gradients": [{"at": 3, "matrix": (rotations.matrix(turn(20)) @ stretch).tolist()}]}
    made = documents.turned(said, 0, turn(70))["gradients"][0]["matrix"]
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
