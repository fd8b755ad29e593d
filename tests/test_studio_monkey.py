"""Random actions in a window of each engine: no error of pliant's own, and the saved scene gives what is exported."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fake_viser import Client, Widget, all_done, do
from pliant.app.scene import read_scene
from pliant.app.studio.folders import Folders
from pliant.app.studio.server import panels
from pliant.app.studio.session import Session
from pliant.core import rotations
from pliant.core.errors import PliantError
from test_studio_history import BAR, HAND, TENTACLE

SCENES = {"blend": HAND, "transfer": BAR, "simulate": TENTACLE}
LEFT_ALONE = {
    "Work with", "Example", "Export the clip", "Stop the export", "Save a picture",
    "Save the scene", "Look from", "Up",
    "Detail", "Not through itself", "Self contact", "On the ground", "Find the bones", "Lattice", "Build a cage",
    "Interior", "Accuracy", "Iterations", "Modes", "Nodes", "Substeps", "Faces", "Margin", "Smoothing",
}  # fmt: skip
"""What opens another scene, or takes long."""
NUMBERS = {"Frames in all": 9, "Frames to this pose": 6, "Go on at the end": 0.3, "Frames": 9, "Fps": 60}
"""The most that some are set to."""


class Monkey:
    """What is done at random in a window."""

    def __init__(self, folder: Path, engine: str, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.client = Client()
        self.client.camera.fov, self.client.camera.position = 1.0, np.array([0.0, -2.0, 0.0])
        self.client.camera.look_at = np.zeros(3)
        (folder / "uploads").mkdir()
        folders = Folders.of([folder], folder / "uploads")
        self.session = Session(self.client, folders, panels(), dict(SCENES[engine]), largest_upload=1 << 20)
        self.done: list[str] = []
        assert all_done(self.session.live)

    def act(self) -> None:
        """One thing, and sometimes wait for what comes of it."""
        kind = self.rng.choice(["widget", "handle", "click", "page"], p=[0.4, 0.2, 0.1, 0.3])
        try:
            getattr(self, kind)()
        except (AssertionError, RuntimeError) as error:
            if not re.search(r"cannot be (used|pressed)|removed", str(error)):  # it has gone just now
                raise
        if self.rng.random() < 0.3:
            self.session.live.idle(5)

    def widget(self) -> None:
        usable = [
            one for one in list(self.client.gui.every)
            if not one.removed and not one.disabled and one.visible and one.name not in LEFT_ALONE
            and one.kind in ("slider", "checkbox", "dropdown", "button", "number")
        ]  # fmt: skip
        one: Widget = usable[self.rng.integers(len(usable))]
        self.done.append(f"{one.kind} {one.name}")
        if one.kind == "button":
            one.press()
        elif one.kind == "checkbox":
            one.set(not one.value)
        elif one.kind == "dropdown":
            one.set(one.options[self.rng.integers(len(one.options))])
        else:
            most = min(NUMBERS.get(one.name, one.max), one.max)
            value = one.min + (most - one.min) * self.rng.random()
            one.set(type(one.value)(round(value) if isinstance(one.value, int) else value))

    def handle(self) -> None:
        handles = [node for node in list(self.client.scene.nodes.values()) if node.kind == "transform_controls"]
        if not handles:
            return
        node = handles[self.rng.integers(len(handles))]
        self.done.append(f"drag {node.name}")
        turn = rotations.exp(0.3 * self.rng.normal(size=3))
        node.drag(phase="start")
        for k in (1, 2):
            at, q = node.position + 0.05 * self.rng.normal(size=3), rotations.multiply(turn, node.wxyz)
            node.drag(at, q, phase="update" if k == 1 else "end")

    def click(self) -> None:
        drawn = self.session.panel.drawn
        target = self.session.stage.shown(drawn.points[self.rng.integers(len(drawn.points))])
        start = np.array([0.3, -3.0, 0.4])
        self.done.append("click")
        node = self.client.scene.nodes.get(drawn.name)
        if node is not None:  # or it has gone just now
            node.click(start, (target - start) / np.linalg.norm(target - start))

    def page(self) -> None:
        count, steps = self.session.timeline.count, len(self.session.history.steps)
        frame, other = (int(self.rng.integers(count)) for _ in range(2))
        actions: list[tuple[Any, ...]] = [
            ("undo",), ("undo",), ("redo",), ("go", int(self.rng.integers(max(steps, 1)))), ("scrub", frame), ("play",),
            ("step", 1), ("step", -1), ("end", True), ("set_key",), ("move_key", frame, other), ("range", frame, other),
            ("copy_key", frame, other), ("remove_key", frame), ("speed", 2.0), ("loop", bool(frame % 2)),
            ("look_from", "All"), ("look_from", "Top"),
        ]  # fmt: skip
        action = actions[self.rng.integers(len(actions))]
        self.done.append(str(action))
        do(self.session, *action)


def outcome(scene: Callable[[], Any]) -> Any:
    """The points of a scene's clip, or why there are none."""
    try:
        return scene().run().clip.points
    except PliantError as error:
        return str(error)


@pytest.mark.parametrize("engine", SCENES)
@pytest.mark.parametrize(
    ("count", "seed"), [(8, 1), *(pytest.param(200, seed, marks=pytest.mark.slow) for seed in range(2, 6))]
)
@pytest.mark.filterwarnings("ignore::pliant.core.errors.PliantWarning")
def test_random_actions_leave_no_error_and_a_scene_that_runs(
    engine: str, count: int, seed: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkey = Monkey(tmp_path, engine, seed)
    session, notes = monkey.session, monkey.client.notes
    try:
        for _ in range(count):
            monkey.act()
            assert not [record for record in caplog.records if record.levelno >= logging.ERROR], monkey.done[-8:]
            assert not [body for _, body in notes if "inside pliant" in body], monkey.done[-8:]
        do(session, "scrub", 0)
        assert any(all_done(session.live) for _ in range(5)), monkey.done[-8:]
        while isinstance(shown := outcome(lambda: session.scene(session.panel.document())), str):
            path = session.save("refused")  # what the page has said is also said of the saved scene
            assert outcome(lambda path=path: read_scene(path)).endswith(shown.partition(": ")[2])
            session.undo()
            assert any(all_done(session.live) for _ in range(5)), monkey.done[-8:]
        path = session.save("monkey")
        np.testing.assert_array_equal(outcome(lambda: read_scene(path)), shown)
        assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []
    finally:
        session.close()
