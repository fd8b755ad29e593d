"""Scenes of the studio that are switched while they play: nothing of the one before stays, or is drawn any more."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cage_window import BY_MOTION, filled
from elastic_window import SKELETON, TENTACLE
from fake_viser import Client, Widget, all_done, do
from pliant.app.studio.desk import Document
from pliant.app.studio.folders import Folders
from pliant.app.studio.panel import ClipFrames, Panel
from pliant.app.studio.server import panels
from pliant.app.studio.session import Session
from pliant.app.studio.viewport import Drawn
from pliant.app.studio.worker import Job, StoppedError
from pliant.engines.registry import ENGINES

TUBE: Document = {"engine": "blend", "frames": 9, "shapes": {"gallery": "tube", "vertices": 500}}
TURNS = {SKELETON.names[3]: {"axis": [1.0, 0.0, 0.0], "degrees": 40.0}}
CURLED: Document = {**TENTACLE, "motion": {"keys": [{"time": 0.0}, {"time": 0.5, "turns": TURNS}]}}
SCENES = [TUBE, BY_MOTION, CURLED]


@pytest.fixture
def window(tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(Widget, "lag", 0.004)  # so that a switch comes while something is drawn
    caplog.set_level(logging.WARNING, "pliant.app.studio")
    client, folder = Client(), filled(tmp_path)
    folders = Folders.of([folder], folder / "uploads")
    session = Session(client, folders, panels(), dict(TUBE), largest_upload=1 << 20)
    assert all_done(session.live)
    yield SimpleNamespace(client=client, session=session, gui=client.gui)
    session.close()
    assert client.notes == []
    assert caplog.records == []


def until(true: Any, seconds: float = 30.0) -> bool:
    """Whether something comes true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not true():
        time.sleep(0.002)
    return bool(true())


def play(session: Session, panel: Any) -> None:
    """Wait for another scene than that of a panel, and for frames of its clip that are drawn."""
    assert until(lambda: session.panel is not panel and session.timeline.count > 1)
    began = session.timeline.frame
    session.timeline.play()
    assert until(lambda: session.timeline.frame != began)


def seen(window: Any) -> tuple[list[str], list[str]]:
    """Names of all widgets and nodes on the page."""
    return sorted(one.name for one in window.gui.every if not one.removed), sorted(window.client.scene.nodes)


def rest(window: Any) -> None:
    window.session.timeline.stop()
    assert all_done(window.session.live)


@pytest.mark.parametrize("switches", [6, pytest.param(90, marks=pytest.mark.slow)])
def test_scenes_are_switched_while_they_play(window: Any, switches: int) -> None:
    """The last switch leads back to the first scene."""
    session, rng, panel = window.session, np.random.default_rng(15), None
    rest(window)
    first = seen(window)
    order = itertools.cycle([*SCENES[1:], SCENES[0]])
    for _ in range(switches):
        play(session, panel)
        time.sleep(rng.uniform(0.0, 0.03))
        panel, document = session.panel, dict(next(order))
        session._begin(lambda document=document: document)
    assert until(lambda: session.panel is not panel)
    rest(window)
    assert seen(window) == first, "nothing of the scenes before has stayed"


@pytest.mark.parametrize("scene", SCENES, ids=["blend", "transfer", "simulate"])
def test_one_worker_solves_for_every_panel(tmp_path: Path, scene: Document) -> None:
    """A window has a worker, one for what it writes, and its timeline."""
    others, folder = set(threading.enumerate()), filled(tmp_path)
    folders = Folders.of([folder], folder / "uploads")
    session = Session(Client(), folders, panels(), dict(scene), largest_upload=1 << 20)
    assert all_done(session.live)
    assert isinstance(session.panel, Panel)
    assert len(session.panel.frames.solved) == session.timeline.count > 1
    started = sorted(thread.name for thread in set(threading.enumerate()) - others)
    assert started == ["pliant-studio", "pliant-studio", "pliant-studio", "pliant-timeline"]
    session.close()


USED = ("slider", "checkbox", "dropdown", "button", "button_group", "number", "text")
SET = {
    "blend": [
        ("Method", "newton", ("springs", "method")),
        ("Model", "paper", ("springs", "model")),
        ("Frames a second", "12", ("fps",)),
    ],
    "transfer": [("Lattice", 12, ("lattice",)), ("Frames", "3", ("frames",)), ("Outside", "allow", ("outside",))],
    "simulate": [
        ("Stretch limit", 0.2, ("stretch_limit",)),
        ("Brace", "3", ("brace",)),
        ("Frames a second", "10", ("fps",)),
    ],
}
"""By engine: widgets of further options, a value, and its key."""


@pytest.mark.parametrize("scene", SCENES, ids=["blend", "transfer", "simulate"])
def test_every_option_of_a_scene_has_a_widget_that_counts(tmp_path: Path, scene: Document) -> None:
    client, folder, engine = Client(), filled(tmp_path), ENGINES[scene["engine"]]
    folders = Folders.of([folder], folder / "uploads")
    session = Session(client, folders, panels(), dict(scene), largest_upload=1 << 20)
    assert all_done(session.live)
    assert session.panel is not None
    shown = {widget.name for widget in client.gui.every}
    bare = [one.name for one in client.gui.every if one.kind in USED and not getattr(one, "hint", None)]
    assert bare == [], "every widget has a tooltip"
    for about in engine.options.all():
        label = about.label or about.name.replace("_", " ").capitalize()
        assert about.table is None or about.folder is None or label in shown, label
    for label, value, path in SET[engine.name]:
        client.gui[label].set(value)
        assert all_done(session.live)
        found = session.panel.document()
        for key in path:
            found = found[key]
        assert str(found) in (str(value), f"{value}.0")
    assert client.notes == []
    session.timeline.stop()
    clip = session.scene(session.panel.document()).run().clip
    assert (len(clip), clip.fps) == (session.timeline.count, session.timeline.fps)
    do(session, "scrub", (session.timeline.frame + 1) % len(clip))
    assert all_done(session.live)
    assert np.allclose(session.panel.drawn.points, clip.points[session.timeline.frame], atol=1e-6 * session.stage.half)
    session.close()


@pytest.mark.parametrize("scene", SCENES, ids=["blend", "transfer", "simulate"])
def test_the_panel_of_the_base_shows_the_clip_of_any_engine(tmp_path: Path, scene: Document) -> None:
    client, folder = Client(), filled(tmp_path)
    folders = Folders.of([folder], folder / "uploads")
    session = Session(client, folders, {scene["engine"]: Panel}, dict(scene), largest_upload=1 << 20)
    assert all_done(session.live)
    client.gui["Frames a second"].set("12")
    assert all_done(session.live)
    panel: Any = session.panel
    assert panel.document() == scene | {"fps": 12.0}
    clip = session.scene(panel.document()).run().clip
    assert (session.timeline.count, session.timeline.fps) == (len(clip), 12.0)
    do(session, "scrub", 2)
    np.testing.assert_array_equal(panel.drawn.points, clip.points[2])
    session.close()
    assert client.notes == []


@pytest.mark.parametrize("scene", SCENES, ids=["blend", "transfer", "simulate"])
def test_a_window_is_closed_while_it_plays(window: Any, scene: Document) -> None:
    session, before = window.session, window.session.panel
    threads = threading.active_count()
    session._begin(lambda: dict(scene))
    play(session, before)
    session.close()
    assert not window.client.scene.nodes
    with pytest.raises(StoppedError):
        session.start(dict(TUBE))
    assert until(lambda: threading.active_count() < threads)
    assert not window.client.scene.nodes


def test_a_draw_that_began_before_a_switch_leaves_nothing(window: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Playing is half-way through a frame while the next scene takes the place of its own."""
    session, before = window.session, window.session.panel
    session._begin(lambda: dict(CURLED))
    assert until(lambda: session.panel is not before and session.timeline.count > 1)
    assert all_done(session.live)
    session.timeline.stop()
    drawing, go_on, move = threading.Event(), threading.Event(), Drawn.move

    def half_way(drawn: Drawn, points: Any) -> None:
        move(drawn, points)
        if threading.current_thread().name == "pliant-timeline":
            drawing.set()
            assert go_on.wait(30)

    monkeypatch.setattr(Drawn, "move", half_way)
    playing = session.timeline
    playing.play()
    assert drawing.wait(30)
    session.start(dict(TUBE))
    go_on.set()
    assert until(lambda: not playing.playing)
    assert all_done(session.live)
    assert not [name for name in window.client.scene.nodes if name.startswith("/elastic")]


def test_a_clip_that_is_to_be_watched_plays_though_another_ends_meanwhile() -> None:
    """What is asked for while one clip is being solved is about the next."""
    plays: list[int] = []
    works: list[Any] = []
    timeline = SimpleNamespace(count=3, fps=30.0, ready=0, play=lambda: plays.append(len(works)))
    desk = SimpleNamespace(timeline=timeline, ask=lambda lane, work, background: works.append(work) or Job(lane, work))
    frames = ClipFrames(desk, lambda number: None, lambda number: None)
    frames.watched = True
    frames.solve("first", lambda job: iter([(0, "a")]))
    frames.watched = True  # as by Shake, before the next clip is begun
    works[0](SimpleNamespace(check=lambda: None))
    assert plays == []
    frames.solve("second", lambda job: iter([(0, "b")]))
    works[1](SimpleNamespace(check=lambda: None))
    assert plays == [2]
    assert not frames.watched
