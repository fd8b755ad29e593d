"""The studio without a browser: work beside the page, the timeline and the stage."""

from __future__ import annotations

import ast
import asyncio
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest

import pliant
from fake_viser import Client
from pliant.app.studio.page import Page
from pliant.app.studio.panel import ClipFrames
from pliant.app.studio.scope import Scope
from pliant.app.studio.timeline import Timeline
from pliant.app.studio.viewport import Viewport
from pliant.app.studio.widgets import Widgets, slider_range, slider_step
from pliant.app.studio.worker import Job, StoppedError, Worker
from pliant.core.cancellation import check_cancelled
from pliant.core.errors import InputError
from pliant.core.options import POINT, POSITIVE, Choice, Either, Flag, Number, Options, Whole, option
from pliant.engines.blend.options import BlendOptions
from pliant.engines.simulate.options import SimulateOptions
from pliant.engines.transfer.options import TransferOptions, Weights
from pliant.geometry.axes import SignedAxis, up_vector


@pytest.fixture
def worker() -> Any:
    errors: list[Exception] = []
    made = Worker(errors.append, lambda lane: None)
    made.errors = errors  # type: ignore[attr-defined]
    yield made
    made.close()


def test_the_newest_wish_of_a_lane_is_done_and_others_in_between_are_not(worker: Worker) -> None:
    begun, go_on, done = threading.Event(), threading.Event(), []

    def first(job: Job) -> None:
        begun.set()
        go_on.wait(5)
        done.append(("first", job.stale))

    worker.ask("pose", first)
    assert begun.wait(5)
    for k in range(20):
        worker.ask("pose", lambda job, k=k: done.append((k, job.stale)))
    go_on.set()
    assert worker.idle(5)
    assert done == [("first", True), (19, False)]


def test_lanes_do_not_push_each_other_out(worker: Worker) -> None:
    done: list[str] = []
    hold = threading.Event()
    worker.ask("begin", lambda job: hold.wait(5))
    for lane in ("open", "pose", "open", "pose"):
        worker.ask(lane, lambda job: done.append(job.lane))
    hold.set()
    assert worker.idle(5)
    assert sorted(done) == ["open", "pose"]


def test_long_work_stops_when_something_newer_comes(worker: Worker) -> None:
    begun, done = threading.Event(), []

    def endless(job: Job) -> None:
        begun.set()
        while True:
            time.sleep(0.001)
            job.check()

    worker.ask("pose", endless)
    assert begun.wait(5)
    worker.ask("pose", lambda job: done.append(job.settled(0.01)))
    assert worker.idle(5)
    assert done == [True]
    assert worker.errors == []  # type: ignore[attr-defined]


def test_what_goes_wrong_is_told_and_work_goes_on(worker: Worker) -> None:
    def wrong(job: Job) -> None:
        raise InputError("weights hold NaN")

    done: list[int] = []
    worker.ask("pose", wrong)
    worker.ask("other", lambda job: done.append(1))
    assert worker.idle(5)
    assert [str(error) for error in worker.errors] == ["weights hold NaN"]  # type: ignore[attr-defined]
    assert done == [1]


def test_a_closed_worker_takes_no_more() -> None:
    made = Worker(lambda error: None, lambda lane: None)
    made.close()
    assert made.ask("pose", lambda job: None).stale


def test_work_in_the_background_gives_way_to_requests_and_goes_on(worker: Worker) -> None:
    begun, done = threading.Event(), list[Any]()

    def long(job: Job) -> None:
        for k in range(3):
            begun.set()
            asked.wait(5)
            job.check()
            done.append(k)

    asked = threading.Event()
    worker.ask("frames", long, background=True)
    assert begun.wait(5)
    worker.ask("click", lambda job: done.append(threading.current_thread().name))
    asked.set()
    assert worker.idle(5)
    assert done == ["pliant-studio", 0, 1, 2]


def test_work_in_the_background_stops_when_it_is_dropped_or_replaced(worker: Worker) -> None:
    done: list[str] = []

    def endless(job: Job) -> None:
        while job.settled(0.01):
            pass
        done.append("stopped")
        job.check()
        done.append("not reached")

    for end in (lambda: worker.drop("frames"), lambda: worker.ask("frames", lambda job: None, background=True)):
        worker.ask("frames", endless, background=True)
        worker.ask("show", lambda job: None)
        time.sleep(0.05)
        end()
        assert worker.idle(5)
    assert done == ["stopped"] * 2
    assert worker.errors == []  # type: ignore[attr-defined]


def test_a_solve_that_nobody_waits_for_stops_in_the_middle(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ends = threading.Event(), list[str]()

    def solve(job: Job) -> None:
        begun.set()
        try:
            while True:
                check_cancelled()
                time.sleep(0.001)
        finally:
            ends.append(job.lane)

    for background, end in (
        (True, lambda: worker.ask("frames", lambda job: None, background=True)),
        (True, lambda: worker.drop("frames")),
        (False, lambda: worker.drop("frames")),
    ):
        begun.clear()
        worker.ask("frames", solve, background=background)
        assert begun.wait(5)
        assert not worker.idle(0.05)
        end()
        assert worker.idle(5)
    assert ends == ["frames"] * 3

    def shown(job: Job) -> None:  # what a hand drags is finished, unless that takes long
        begun.set()
        while not job.stale:
            time.sleep(0.001)
        check_cancelled()
        ends.append("shown")
        monkeypatch.setattr("pliant.app.studio.worker.LONGEST_UNSEEN", 0.0)
        check_cancelled()

    begun.clear()
    worker.ask("show", shown)
    assert begun.wait(5)
    worker.ask("show", lambda job: None)
    assert worker.idle(5)
    assert ends[3:] == ["shown"]
    assert worker.errors == []  # type: ignore[attr-defined]
    check_cancelled()  # here nothing does


def test_a_request_starts_before_work_in_the_background(worker: Worker) -> None:
    hold, done = threading.Event(), []
    worker.ask("begin", lambda job: hold.wait(5))
    worker.ask("frames", lambda job: done.append("frames"), background=True)
    worker.ask("show", lambda job: done.append("show"))
    hold.set()
    assert worker.idle(5)
    assert done == ["show", "frames"]


def test_frames_of_a_replaced_clip_do_not_come(worker: Worker) -> None:
    came: list[tuple[int, int | None]] = []
    timeline = SimpleNamespace(frame=0, playing=False)
    desk: Any = SimpleNamespace(timeline=timeline, ask=worker.ask, drop=worker.drop)
    frames = ClipFrames(desk, lambda number: None, lambda number: came.append((len(frames.solved), number)))

    def late(job: Job) -> Any:
        frames.solve("second", lambda job: enumerate("ab"))
        yield 0, "of the first"

    frames.solve("first", late)
    assert worker.idle(5)
    assert came == [(0, None), (0, None), (1, 0), (2, 1)]
    assert frames.solved == {0: "a", 1: "b"}
    frames.solve("second", late)  # there already
    assert worker.idle(5)
    assert len(came) == 4
    frames.drop()
    assert (frames.solved, frames.has("second")) == ({}, False)


def test_frames_that_were_dropped_are_solved_when_they_are_asked_for_again(worker: Worker) -> None:
    desk: Any = SimpleNamespace(timeline=SimpleNamespace(frame=0, playing=False), ask=worker.ask, drop=worker.drop)
    frames, hold = ClipFrames(desk, lambda number: None, lambda number: None), threading.Event()
    worker.ask("open", lambda job: hold.wait(5))
    frames.solve("clip", lambda job: enumerate("ab"))
    worker.drop_others(lambda lane: lane == "open")  # another scene is opened, which then cannot be read
    hold.set()
    assert worker.idle(5)
    assert frames.solved == {}
    frames.solve("clip", lambda job: enumerate("ab"))
    assert worker.idle(5)
    assert frames.solved == {0: "a", 1: "b"}


# Widgets of options


class OnDesk:
    """A desk with widgets alone."""

    def __init__(self) -> None:
        self.gui = Client().gui

    def on(self, widget: Any, done: Any) -> None:
        widget.callbacks.append(lambda event: done())


@dataclass(frozen=True)
class SomeOptions(Options):
    """Of every kind."""

    share: float = option(0.5, Number(0, 1, "a number between 0 and 1"), "how much")
    many: int = option(400, Whole(12, 20_000), "how many", "pieces", slider=(40, 1000))
    stiff: float = option(1e5, POSITIVE, "how stiff", "pascals", slider=(1e3, 1e7))
    free: float = option(1.0, POSITIVE, "anything above 0")
    which: str = option("a", Choice(("a", "b")), "which of them")
    on: bool = option(False, Flag(), "whether it is on")
    most: int | None = option(None, Whole(1, 9), "at most")
    axis: str | None = option(None, Choice(("x", "y")), "along which", default_text="found")
    pull: Any = option(None, Either((Number(), POINT)), "how strong", slider=(0.0, 30.0))


@pytest.mark.parametrize(
    ("name", "kind", "set_to", "value"),
    [("share", "slider", 0.25, 0.25), ("many", "slider", 100, 100), ("stiff", "slider", 4.0, 1e4),
     ("free", "text", "2.5", 2.5), ("which", "dropdown", "b", "b"), ("on", "checkbox", True, True),
     ("most", "text", "3", 3), ("axis", "dropdown", "y", "y"), ("pull", "slider", 9.81, 9.81)],
)  # fmt: skip
def test_a_widget_is_made_from_the_declared_option(name: str, kind: str, set_to: Any, value: Any) -> None:
    desk, heard = OnDesk(), list[Any]()
    about = SomeOptions.about(name)
    made = Widgets(desk).options(  # type: ignore[arg-type]
        [about], lambda about: about.default, lambda about, value: heard.append(value)
    )[name]
    widget = desk.gui[name.capitalize()]
    assert (widget.kind, made.value or None) == (kind, about.default or None)
    assert widget.hint.startswith(about.help.capitalize())
    widget.set(set_to)
    assert heard == [value]
    assert type(heard[0]) is type(value)
    made.show(about.default)
    assert (made.value or None) == (about.default or None)
    assert heard == [value], "what the program shows is no change"


def test_sliders_stay_in_the_range_that_is_declared() -> None:
    for options in (BlendOptions, TransferOptions, Weights, SimulateOptions):
        for about in options.all():
            ends = slider_range(about)
            for end in ends or ():
                about.checked(end)
            if ends is not None:
                step = slider_step(*ends, whole=isinstance(about.kind, Whole))
                assert 0 < step <= (ends[1] - ends[0]) / 2
                assert ends[0] <= (about.default or ends[0]) <= ends[1], about.name


def test_a_value_that_is_no_such_is_refused_in_a_sentence() -> None:
    desk, about = OnDesk(), SomeOptions.about("free")
    made = Widgets(desk).options([about], lambda about: 1.0, lambda about, value: None)["free"]  # type: ignore[arg-type]
    desk.gui["Free"].value = "many"
    with pytest.raises(InputError, match='free: "many" is not a positive number'):
        made.value  # noqa: B018


# The scope of a scene


def test_a_closed_scope_removes_all_and_takes_no_more() -> None:
    client = Client()
    scope, other = Scope(client), Scope(client)
    with scope.gui.add_folder("Shapes") as folder:
        slider = scope.gui.add_slider("fist", 0.0, 1.0, 0.1, 0.5)
    node = scope.scene.add_point_cloud("/points", np.zeros((2, 3)))
    kept = other.scene.add_point_cloud("/others", np.zeros((2, 3)))
    worker = scope.own(Worker(_raised, lambda lane: None))
    scope.close()
    assert list(client.scene.nodes) == ["/others"]
    assert not client.gui.widgets
    assert worker.ask("pose", lambda job: None).stale
    late = (
        lambda: setattr(slider, "value", 0.7),
        lambda: setattr(node, "points", np.ones((2, 3))),
        lambda: scope.scene.add_point_cloud("/points", np.zeros((2, 3))),
        lambda: scope.gui.add_button("Late"),
        lambda: node.on_click(print),
        lambda: folder.__enter__(),
        lambda: scope.own(worker),
    )
    for one in late:
        with pytest.raises(StoppedError):
            one()
    assert slider.value == 0.5
    kept.points = np.ones((2, 3))
    assert client.scene["/others"].points.all()


def test_what_is_gone_of_an_open_scene_is_not_changed() -> None:
    client = Client()
    scope = Scope(client)
    with scope.gui.add_folder("Balls"), scope.gui.add_folder("Ball 1") as folder:
        size = scope.gui.add_slider("Size", 0.0, 1.0, 0.1, 0.5)
    first = scope.scene.add_label("/name", "first")
    scope.scene.add_label("/name", "second")
    folder.remove()
    size.value, first.text = 0.7, "third"
    assert size.value == 0.5
    assert client.gui["Balls"] is not None
    assert client.scene["/name"].name == "/name"
    scope.close()
    assert not client.gui.widgets
    assert not client.scene.nodes


def test_a_step_of_a_longer_clip_is_not_drawn_of_the_next() -> None:
    """A frame that playing has chosen, or that a page tells of late, may lie beyond the clip that is shown by then."""
    client, shown = Client(), []
    scope = Scope(client)
    timeline = scope.own(Timeline(Page(), Viewport(scope, _raised).hear, _raised))
    timeline.show(40, 30.0, lambda frame: None)
    timeline.show(4, 30.0, shown.append)
    timeline.scrub(39)
    timeline._playing.set()
    timeline._step(41)
    timeline.stop()
    assert shown[:1] == [3]
    assert set(shown) <= set(range(4))
    scope.close()


# The timeline


def test_a_timeline_plays_by_the_clock_and_stops_when_scrubbed() -> None:
    page, shown = Page(), []
    timeline = Timeline(page, Viewport(Scope(Client()), _raised).hear, _raised)
    timeline.show(40, 200.0, shown.append)
    asyncio.run(page.do("play"))
    deadline = time.monotonic() + 5
    while len(set(shown)) < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    asyncio.run(page.do("scrub", 7))
    assert not timeline.playing
    time.sleep(0.05)
    assert shown[-1] == 7
    assert len(set(shown)) >= 5
    timeline.close()


def test_one_frame_cannot_be_played() -> None:
    page = Page()
    timeline = Timeline(page, Viewport(Scope(Client()), _raised).hear, _raised)
    timeline.show(1, 30.0, lambda frame: None)
    timeline.play()
    assert not timeline.playing
    assert page.state["count"] == 1
    timeline.close()


# The stage


@pytest.mark.parametrize("up", get_args(SignedAxis))
def test_the_page_shows_any_shape_in_one_box_upright(up: str) -> None:
    rng = np.random.default_rng(1)
    points = rng.normal(size=(30, 3)) * 1e3 + 5e4
    stage = Viewport(Scope(Client()), _raised)
    stage.look_at(points, up)
    shown = stage.shown(points)
    assert np.linalg.norm(np.ptp(shown, axis=0)) == pytest.approx(2.0)
    np.testing.assert_allclose(stage.world(shown), points, rtol=1e-12)
    np.testing.assert_allclose(shown[:, 2] * stage.half, (points - stage.middle) @ up_vector(up), atol=1e-7)


@pytest.mark.parametrize("up", ["y", "z"])
def test_handles_and_clicks_speak_of_the_world(up: str) -> None:
    client, heard = Client(), []
    stage = Viewport(Scope(client), _raised)
    mesh = pliant.gallery.box(500)
    stage.look_at(mesh.points * 40 + 7, up)
    turn = pliant.rotations.from_axis_angle([0.3, 1.0, -0.2], 0.7)
    place = np.array([9.0, 30.0, -4.0])
    stage.handle("/h", place, lambda at, q, phase: heard.append((at, q, phase)), rotation=turn, title="Handle")
    client.scene["/h"].drag(phase="end")
    np.testing.assert_allclose(heard[0][0], place, atol=1e-9)
    np.testing.assert_allclose(heard[0][1] * np.sign(heard[0][1] @ turn), turn, atol=1e-12)
    drawn = stage.shape("/m", mesh)
    drawn.on_click(lambda origin, way: heard.append((origin, way)))
    aim = stage.shown(place) - np.array([3.0, 2.0, 1.0])
    client.scene["/m"].click([3.0, 2.0, 1.0], aim / np.linalg.norm(aim))
    origin, way = heard[1]
    assert np.linalg.norm(way) == pytest.approx(1.0)
    np.testing.assert_allclose(np.cross(place - origin, way), 0, atol=1e-9)


def test_an_error_in_a_callback_is_told() -> None:
    client, told = Client(), list[Exception]()
    stage = Viewport(Scope(client), told.append)

    def wrong(*_: Any) -> None:
        raise InputError("no such vertex")

    stage.handle("/h", np.zeros(3), wrong, title="Handle")
    client.scene["/h"].drag([1, 0, 0])
    assert [str(error) for error in told] == ["no such vertex"]


def _raised(error: Exception) -> None:
    raise error


def test_a_pause_draws_the_frame_that_the_slider_says_once_more() -> None:
    shown: list[int] = []
    timeline = Timeline(Page(), Viewport(Scope(Client()), _raised).hear, _raised)
    timeline.show(40, 200.0, shown.append)
    timeline.toggle()
    time.sleep(0.05)
    timeline.toggle()
    assert not timeline.playing
    assert shown[-1] == timeline.frame
    count = len(shown)
    time.sleep(0.05)
    assert len(shown) == count
    timeline.close()


@pytest.mark.parametrize("stops", [False, True], ids=["while it plays", "after a stop"])
def test_a_scrub_while_a_frame_is_drawn_is_not_lost(stops: bool) -> None:
    shown, draws, go_on = list[int](), threading.Event(), threading.Event()

    def draw(frame: int) -> None:
        draws.set()
        assert go_on.wait(10)
        shown.append(frame)

    timeline = Timeline(Page(), Viewport(Scope(Client()), _raised).hear, _raised)
    timeline.show(40, 200.0, draw)
    timeline.play()
    assert draws.wait(10)
    threading.Timer(0.05, go_on.set).start()
    if stops:
        timeline.stop()
        assert shown  # what was begun is done
    timeline.scrub(30)
    assert (timeline.frame, shown[-1]) == (30, 30)
    timeline.close()


def test_nothing_private_of_viser_is_used() -> None:
    """What is private and used of anything but oneself is the studio's own."""
    folder = Path(pliant.__file__).parent
    files = [*(folder / "app" / "studio").glob("*.py"), *folder.glob("engines/*/app/panel*.py")]
    used, own = set(), set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                own.add(node.name)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                own.add(node.target.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
                own |= {node.attr} if isinstance(node.ctx, ast.Store) else set()
            elif isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.endswith("__"):
                used.add(node.attr)
    assert used
    assert used <= own, used - own
