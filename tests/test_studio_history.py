"""What was done in a window is undone and redone, in every engine, and the timeline is the same for all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fake_viser import Client, all_done, do
from pliant.app.studio.desk import Document
from pliant.app.studio.folders import Folders
from pliant.app.studio.history import History, difference
from pliant.app.studio.server import panels
from pliant.app.studio.session import Session
from pliant.core import rotations

HAND: Document = {"engine": "blend", "frames": 5, "shapes": {"gallery": "hand", "vertices": 500}}
BAR: Document = {
    "engine": "transfer",
    "target": {"gallery": "gingerbread", "vertices": 500},
    "cage": {"faces": 60},
    "lattice": 8,
    "positions": [{"at": [-0.165, 0.07, 0.05]}, {"at": [0.165, 0.07, 0.05]}, {"at": [0.42, 0.59, 0.05]}],
    "gradients": [{"at": [0.0, 0.45, 0.05]}],
}
TENTACLE: Document = {
    "engine": "simulate",
    "shape": {"gallery": "tentacle", "vertices": 500},
    "skeleton": {"gallery": "tentacle"},
    "nodes": 100,
    "motion": {"keys": [{"time": 0.0}]},
    "static": True,
    "fps": 12.0,
}
Act = Callable[["Window"], None]


class Window:
    """A window on a document."""

    def __init__(self, folder: Path, document: Document) -> None:
        self.client = Client()
        (folder / "uploads").mkdir()
        folders = Folders.of([folder], folder / "uploads")
        self.session = Session(self.client, folders, panels(), document, largest_upload=1 << 20)
        self.rest()

    def rest(self) -> None:
        assert all_done(self.session.live, self.session.notes)
        assert not self.client.notes, self.client.notes

    @property
    def panel(self) -> Any:
        return self.session.panel

    @property
    def page(self) -> dict[str, Any]:
        return self.session.page.state

    def do(self, name: str, *given: Any) -> None:
        do(self.session, name, *given)
        self.rest()

    def set(self, label: str, value: Any) -> None:
        self.client.gui[label].set(value)
        self.rest()

    def press(self, label: str) -> None:
        self.client.gui[label].press()
        self.rest()

    def drag(self, node: str, by: Any, turn: Any = (1.0, 0.0, 0.0, 0.0)) -> None:
        """Drag a handle in several steps."""
        handle = self.client.scene[node]
        start, first = np.array(handle.position), np.array(handle.wxyz)
        handle.drag(phase="start")
        for k in range(1, 4):
            handle.drag(
                start + np.multiply(by, k / 3), rotations.multiply(rotations.slerp(IDENTITY, turn, k / 3), first)
            )
        handle.drag(phase="end")
        self.rest()


IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])
BENT = rotations.from_axis_angle([0.0, 1.0, 0.0], 0.6)


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Callable[[Document], Window]]:
    made: list[Window] = []

    def opened(document: Document) -> Window:
        made.append(Window(tmp_path, document))
        return made[-1]

    yield opened
    for one in made:
        one.session.close()


ACTIONS: dict[str, tuple[Document, list[Act]]] = {
    "blend": (
        HAND | {"shapes": {"gallery": "tube", "vertices": 500}},
        [
            lambda w: w.set("bent 120", 0.6),
            lambda w: w.do("set_key"),
            lambda w: w.do("move_key", 0, 3),
            lambda w: w.press("Add a ball"),
            lambda w: w.drag("/blend/obstacle 1/handle", [0.0, 0.1, 0.0]),
            lambda w: w.set("Friction", 0.3),
            lambda w: w.press("Remove it"),
        ],
    ),
    "transfer": (
        BAR,
        [
            lambda w: w.drag("/cage/controls/positions/2", [0.0, 0.0, 0.2]),
            lambda w: w.drag("/cage/controls/gradients/0", [0.0, 0.0, 0.0], BENT),
            lambda w: w.set("Frames to this pose", 4),
            lambda w: w.press("Reset it"),
            lambda w: w.press("Remove it"),
            lambda w: w.press("Remove all controls"),
        ],
    ),
    "simulate": (
        TENTACLE,
        [
            lambda w: w.drag("/elastic/turn", [0.0, 0.0, 0.0], BENT),
            lambda w: w.press("Add a pose later"),
            lambda w: w.press("All bones to rest"),
            lambda w: w.do("move_key", 6, 4),
            lambda w: w.do("copy_key", 4, 2),
            lambda w: w.do("remove_key", 2),
            lambda w: w.press("Add a ball"),
            lambda w: w.press("Remove it"),
            lambda w: w.press("Shake"),
        ],
    ),
}


@pytest.mark.parametrize("engine", ACTIONS)
def test_all_that_is_done_is_undone_and_redone(window: Any, engine: str) -> None:
    document, actions = ACTIONS[engine]
    one = window(document)
    states = [one.panel.state()]
    for number, act in enumerate(actions, 1):
        act(one)
        one.session.timeline.stop()
        states.append(one.panel.state())
        assert len(one.page["history"]) == number + 1, one.page["history"]
        assert states[-1] != states[-2]
        assert one.page["unsaved"]
    assert len(set(one.page["history"])) > len(actions) // 2, "steps have names"
    for state in states[-2::-1]:
        one.do("undo")
        assert one.panel.state() == state
    assert not one.page["unsaved"]
    one.do("undo")  # nothing is left to undo
    for state in states[1:]:
        one.do("redo")
        assert one.panel.state() == state
    one.do("go", 1)
    assert one.panel.state() == states[1]
    path = one.session.save("mine")
    assert (one.page["title"], one.page["unsaved"]) == (path.name, False)


@pytest.mark.parametrize("engine", ["blend", "simulate", pytest.param("transfer", marks=pytest.mark.slow)])
def test_what_is_shown_after_an_undo_is_what_the_scene_gives(window: Any, engine: str) -> None:
    document, actions = ACTIONS[engine]
    one = window(document)
    for act in actions[:4]:
        act(one)
    one.do("undo")
    one.session.timeline.stop()
    one.rest()
    clip = one.session.scene(one.panel.document()).run().clip
    shown, frame = one.panel.drawn.points, min(one.session.timeline.frame, len(clip) - 1)
    np.testing.assert_allclose(shown, clip.points[frame], atol=1e-9 * np.ptp(clip.points[0]))


def test_a_drag_is_one_step_and_what_is_done_after_an_undo_replaces_the_rest(window: Any) -> None:
    one = window(HAND)
    for value in np.linspace(0.1, 0.5, 9):
        one.client.gui["fist"].set(float(value))
    one.rest()
    assert one.page["history"] == ["Open hand", "Slider: fist"]
    one.do("undo")
    assert one.client.gui["fist"].value == 0.0
    one.set("spread", 0.4)
    assert one.page["history"] == ["Open hand", "Slider: spread"]
    one.do("redo")
    assert one.client.gui["spread"].value == 0.4


def test_a_drag_that_rests_on_its_way_is_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, history = [0.0], History()
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def moved(value: float, seconds: float) -> None:
        clock[0] += seconds
        history.note("Slider", {"scene": {"at": value}})

    moved(0.0, 0.0)
    for value in (1.0, 3.0):
        history.press(True)
        moved(value, 5.0)
        moved(value + 0.5, 5.0)  # after a rest
        clock[0] += 5.0
        history.press(False)
        moved(value + 1.0, 0.4)  # what was done last is noted a moment later
    assert [step.state["scene"]["at"] for step in history.steps] == [0.0, 2.0, 4.0]


@pytest.mark.parametrize(
    "act", [lambda w: w.press("All sliders to 0"), lambda w: w.do("remove")], ids=("button", "key")
)
def test_a_press_that_changes_nothing_names_nothing(window: Any, act: Act) -> None:
    one = window(HAND | {"shapes": {"gallery": "tube", "vertices": 500}})
    act(one)
    one.set("bent 120", 0.6)
    assert "bent 120" in one.session.history.labels[-1]
    one.press("All sliders to 0")
    act(one)
    one.set("bent 120", 0.3)
    assert "bent 120" in one.session.history.labels[-1]


def test_what_was_opened_is_undone(window: Any) -> None:
    one = window(HAND)
    one.set("fist", 0.5)
    one.session._begin(lambda: dict(TENTACLE), "Tentacle")
    one.rest()
    assert one.page["title"] == "Tentacle"
    assert one.session.engine == "simulate"
    assert not one.page["unsaved"]
    one.do("undo")
    assert one.session.engine == "blend"
    assert one.client.gui["fist"].value == 0.5
    assert one.page["title"] == "hand"
    assert one.page["unsaved"]


# Sliders and keys


def test_playing_keeps_sliders_that_are_not_keyed(window: Any) -> None:
    one = window(HAND | {"fps": 200.0})
    one.set("fist", 0.6)
    pose = one.panel.document()
    do(one.session, "play")
    wait_for(lambda: one.session.timeline.frame > 1)
    assert one.panel.document() == pose, "what plays is not what is saved"
    do(one.session, "play")
    one.rest()
    assert one.client.gui["fist"].value == 0.6
    assert one.panel.document() == pose


def test_a_slider_without_keys_stays_throughout_the_clip(window: Any) -> None:
    one = window(HAND | {"weights": [{}, {"fist": 1.0}], "frames": 9})
    one.set("spread", 0.5)
    one.do("scrub", 4)
    assert one.client.gui["spread"].value == 0.5
    assert one.client.gui["fist"].value == pytest.approx(0.5)
    assert [row["spread"] for row in one.panel.document()["weights"]] == [0.5, 0.5]
    one.do("undo")
    assert "spread" not in one.panel.document()["weights"][1]


def test_keys_are_moved_copied_and_removed_on_the_timeline(window: Any) -> None:
    one = window(HAND | {"weights": [{}, {"fist": 1.0}, {}], "frames": 9})
    assert one.page["keys"] == [0, 4, 8]
    one.do("move_key", 4, 6)
    assert one.page["keys"] == [0, 6, 8]
    assert one.client.gui["fist"].value == 1.0
    one.do("copy_key", 6, 2)
    assert one.page["keys"] == [0, 2, 6, 8]
    one.do("remove_key", 6)
    assert one.page["keys"] == [0, 2, 8]
    one.do("move_key", 5, 7)  # there is none
    assert one.page["keys"] == [0, 2, 8]
    assert one.page["history"][1:] == ["Move a key", "Copy a key", "Remove a key"]
    table = one.session.scene(one.panel.document()).keys
    np.testing.assert_allclose(np.interp(2, np.linspace(0, 8, len(table)), table[:, 2]), 1.0)


def test_keys_of_a_shake_can_be_removed(window: Any) -> None:
    one = window(TENTACLE)
    one.press("Shake")
    one.session.timeline.stop()
    assert len(one.page["keys"]) == 5
    assert one.page["history"][1:] == ["Shake"]
    for frame in one.page["keys"][:0:-1]:
        one.do("remove_key", frame)
        one.session.timeline.stop()
    assert one.page["keys"] == [0]
    one.do("go", 0)
    assert one.panel.document() == TENTACLE


# The timeline


def test_it_steps_goes_to_the_ends_and_plays_a_range_at_a_speed(window: Any) -> None:
    one = window(HAND | {"fps": 40.0})
    timeline = one.session.timeline
    one.do("step", -1)
    assert timeline.frame == 4
    one.do("step", 1)
    assert timeline.frame == 0
    one.do("end", True)
    assert timeline.frame == 4
    one.do("range", 3, 1)
    assert one.page["range"] == [1, 3]
    one.do("end", False)
    assert timeline.frame == 1
    one.do("loop", False)
    one.do("speed", 0.5)
    began = time.perf_counter()
    do(one.session, "play")
    wait_for(lambda: not timeline.playing)
    assert time.perf_counter() - began > 0.06, "at half the speed"
    assert timeline.frame == 3
    assert not one.page["playing"]
    do(one.session, "play")  # once more from the beginning of the range
    wait_for(lambda: timeline.playing and timeline.frame < 3)
    wait_for(lambda: not timeline.playing)
    assert timeline.frame == 3


def wait_for(true: Callable[[], Any], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


# By itself


def test_a_history_is_bounded_and_names_what_differs() -> None:
    history = History()
    for k in range(300):
        history.note(f"Step {k}", {"scene": {"k": k}})
    assert len(history.steps) == 200
    assert history.go(-1) is None
    assert history.go(0) == {"scene": {"k": 100}}
    scene = {"obstacles": [1], "weights": {"fit": 2.0, "rigidity": 1.0}}
    for other, label in (
        ({"obstacles": [1, 2]}, "Ball added"),
        ({"obstacles": []}, "Ball removed"),
        ({"obstacles": [3]}, "Ball"),
        ({"weights": {"fit": 2.0, "rigidity": 3.0}}, "Weights: rigidity"),
        ({"self_contact": True}, "Self contact"),
        ({"sources": {"motion": {"file": "a.bvh"}}}, "Motion"),
        ({"material": {"young": 1e4}}, "Material: Firmness"),
    ):
        names = {"obstacles": "Ball", "sources": "Motion", "young": "Firmness"}
        assert difference({"scene": scene}, {"scene": scene | other}, names) == label


# Objects


def placed(one: Any, at: Any) -> None:
    """Type where the selection is to be."""
    one.do("put_at", at, one.session.page.state["selection"]["angles"] or [0.0, 0.0, 0.0])


def visible_handles(one: Any) -> list[str]:
    return [node.name for node in one.client.scene.nodes.values() if node.kind == "transform_controls" and node.visible]


def test_obstacles_are_placed_by_numbers_and_deleted_by_a_key(window: Any) -> None:
    one = window(HAND)
    one.press("Add a ball")
    one.press("Add a box")
    page = one.session.page.state
    assert page["objects"] == [["/blend/obstacle 1/handle", "Ball 1"], ["/blend/obstacle 2/handle", "Box 2"]]
    one.drag("/blend/obstacle 2/handle", [0.0, -0.3, 0.0])
    np.testing.assert_allclose(page["selection"]["at"], one.panel.obstacles.shown[1].solid.middle, rtol=1e-6)
    placed(one, [0.0, 0.0, 3.0])
    assert one.panel.document()["obstacles"][1]["what"].startswith("box:0.0,0.0,3.0,")
    handle = one.client.scene["/blend/obstacle 2/handle"]
    np.testing.assert_allclose(handle.position, one.session.stage.shown([0.0, 0.0, 3.0]))
    placed(one, [float("nan"), 0.0, 3.0])
    assert one.panel.document()["obstacles"][1]["what"].startswith("box:0.0,0.0,3.0,")
    one.do("remove")
    assert [table["what"].partition(":")[0] for table in one.panel.document()["obstacles"]] == ["sphere"]
    one.do("remove")  # nothing is chosen any more
    assert len(one.panel.document()["obstacles"]) == 1
    one.do("undo")
    assert len(one.panel.document()["obstacles"]) == 2


def test_one_handle_is_seen_at_a_time_and_objects_are_dragged_themselves(window: Any) -> None:
    one = window(HAND)
    one.press("Add a ball")
    one.press("Add a rod")
    assert visible_handles(one) == ["/blend/obstacle 2/handle"]
    one.client.scene["/blend/obstacle 1/shape"].click([0.0, -3.0, 0.0], [0.0, 1.0, 0.0])
    assert visible_handles(one) == ["/blend/obstacle 1/handle"]
    before = one.panel.obstacles.shown[1].solid.middle
    grabbed = one.session.stage.shown(np.add(before, [0.0, 0.0, 0.01]))
    for phase in ("start", "update", "end"):
        one.client.scene["/blend/obstacle 2/shape"].pull(grabbed, np.add(grabbed, [0.1, 0.0, 0.0]), phase=phase)
    one.rest()
    half = one.session.stage.half
    np.testing.assert_allclose(one.panel.obstacles.shown[1].solid.middle, np.add(before, [0.1 * half, 0.0, 0.0]))
    assert visible_handles(one) == ["/blend/obstacle 2/handle"]
    one.do("select", "/blend/obstacle 1/handle")
    assert visible_handles(one) == ["/blend/obstacle 1/handle"]
    assert one.session.page.state["selection"]["angles"] is None  # a ball looks the same however it is turned


def test_points_are_placed_by_numbers_and_deleted_by_a_key(window: Any) -> None:
    one = window(BAR)
    page = one.session.page.state
    one.do("select", "/cage/controls/positions/2")
    assert page["selection"]["at"] == [0.42, 0.59, 0.05]
    assert one.client.gui["Chosen"].value == "Point 3"
    one.drag("/cage/controls/positions/2", [0.0, 0.0, 0.2])
    assert page["selection"]["at"] == pytest.approx(one.panel.document()["positions"][2]["to"], rel=1e-5)
    before = one.panel.document()["positions"][2]["to"]
    placed(one, [0.4, 0.7, 0.1])
    assert one.panel.document()["positions"][2]["to"] == [0.4, 0.7, 0.1]
    assert visible_handles(one) == ["/cage/controls/positions/2"]
    one.do("undo")
    assert one.panel.document()["positions"][2]["to"] == before
    one.do("remove")
    assert len(one.panel.document()["positions"]) == 2


def test_bones_are_turned_by_numbers(window: Any) -> None:
    one = window(TENTACLE)
    one.do("put_at", [0.0, 0.0, 0.0], [0.0, 0.0, 30.0])
    assert one.session.page.state["selection"]["angles"] == pytest.approx([0.0, 0.0, 30.0], abs=1e-4)
    _, orientations = one.panel.pose.world()
    rest = one.panel.pose.skeleton.rest_world[1]
    turn = rotations.multiply(orientations[one.panel.joint], rotations.inverse(rest[one.panel.joint]))
    np.testing.assert_allclose(np.abs(turn @ rotations.from_euler(np.radians([0.0, 0.0, 30.0]), "XYZ")), 1.0)
