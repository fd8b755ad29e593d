"""The base of every engine's side of the page, and the panel of an engine that has none of its own.

A panel holds the scene it shows as a document: the plain tables that a scene file has (docs/scene.md). Whatever the
page changes, the document has, so a scene that is saved and run from the command line gives what the page shows.

All panels work in one way. What a visitor does changes the panel's state at once, on the page's loop, and ends with
`request`. The window's worker then calls `update` with a job, which shows the newest state: roughly at once, and
exactly if `Job.settled` says that nothing newer has come. The latest request wins: it makes the job before stale.
Frames of the clip are solved ahead in the background (`ClipFrames`), which gives way to every request.
"""

from __future__ import annotations

import copy
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pliant.app.studio.desk import Desk, Document
from pliant.app.studio.history import State
from pliant.app.studio.viewport import Drawn
from pliant.app.studio.widgets import OptionWidget, Widgets
from pliant.app.studio.worker import Job, StoppedError
from pliant.core.options import Option, Options
from pliant.core.topology import Floats
from pliant.engines.registry import ENGINES
from pliant.geometry.axes import up_axis

SHOW = "show"
"""Lane of the worker."""
SHAPE_NODE = "/shape"


AHEAD = "frames"
"""Lane of the worker."""
FrameSolver = Callable[[Job], Iterable[tuple[int, Any]]]
"""Solves frames: their numbers and what is to be drawn, in any order."""


class ClipFrames:
    """Those of one clip that are solved.

    draw: shows a frame, solved or not. came: called with None when a clip is begun, then with each frame's number when
    it is solved; never for a clip that another has replaced.
    """

    def __init__(self, desk: Desk, draw: Callable[[int], None], came: Callable[[int | None], None]) -> None:
        self._desk, self._draw, self._came = desk, draw, came
        self._coming = threading.RLock()  # no other clip is begun while `came` runs
        self._clip: object = None
        self._job: Job | None = None
        self.solved: dict[int, Any] = {}
        """By number."""
        self._request: object = None  # that a clip is watched, and the last one that a clip was begun with
        self._accepted: object = None

    @property
    def watched(self) -> bool:
        """Whether the clip plays as soon as it is solved; set before it is begun, though another is being solved."""
        return self._request is not None

    @watched.setter
    def watched(self, value: bool) -> None:
        self._request = object() if value else None

    @property
    def count(self) -> int:
        """The timeline's, so that none of its threads draws a frame of a longer clip that was there before."""
        return self._desk.timeline.count

    @property
    def fps(self) -> float:
        """The timeline's."""
        return self._desk.timeline.fps

    @property
    def frame(self) -> int:
        """The timeline's."""
        return min(self._desk.timeline.frame, self.count - 1)

    def resize(self, count: int, fps: float, *, frame: int | None = None) -> None:
        """Have so many frames on the timeline; frame: where to go, if not to stay."""
        if frame is not None or (count, fps) != (self.count, self.fps):
            stays = self._desk.timeline.frame if frame is None else frame
            self._desk.timeline.show(count, fps, self._draw, frame=min(stays, count - 1))

    def drop(self) -> None:
        """Forget the frames that are solved, and solve no more of them."""
        with self._coming:
            self.solved, self._clip = {}, None
        self._desk.drop(AHEAD)

    def has(self, clip: object) -> bool:
        """Whether the frames are those of a clip, and being solved or done."""
        known = self._clip is not None and self._job is not None and not self._job.dropped
        return known and self._clip == clip

    def solve(self, clip: object, solver: FrameSolver, *, stream: bool = False) -> None:
        """Solve a clip in the background, if it is not the one that there is.

        stream: while it is watched, show each frame when its time has come.
        """
        self._accepted = self._request
        if self.has(clip):
            return
        solved: dict[int, Any] = {}
        with self._coming:
            self.solved, self._clip = solved, clip
            self._came(None)
        self._job = self._desk.ask(AHEAD, lambda job: self._solve(job, solver, solved, stream), background=True)

    def _solve(self, job: Job, solver: FrameSolver, solved: dict[int, Any], stream: bool) -> None:
        began, timeline = time.perf_counter(), self._desk.timeline
        for number, content in solver(job):
            with self._coming:
                if solved is not self.solved:
                    raise StoppedError
                solved[number] = content
                self._came(number)
            if stream and self.watched and self.count > 1:
                if not job.settled(max(began + number / self.fps - time.perf_counter(), 0.0)):
                    return
                timeline.go_to(number)
                self._draw(number)
            job.check()
        if self._request is self._accepted and solved is self.solved:  # or another clip is to be watched
            if self.watched and self.count > 1:
                timeline.play()
            self.watched = False


class Panel:
    """One engine at work on one scene: a widget for every option, and the clip. An engine's own overrides `build`,
    `update` and `draw`. What it shows and runs belongs to the scene's scope, and ends with that.
    """

    drawn: Drawn
    key_names: Mapping[str, str] = MappingProxyType({})
    """What keys of its states are called in the history; those that come first tell most."""
    guide: tuple[tuple[str, str], ...] = (("timeline", "Set the options, then **scrub or play** the clip here."),)
    """The guided start, a step at a time: what to point at (a label of the page, or timeline) and a sentence."""

    def __init__(self, desk: Desk, document: Document) -> None:
        self.desk, self._document = desk, copy.deepcopy(document)
        self.widgets = Widgets(desk)
        self.frames = ClipFrames(desk, self.draw, self.came)
        self._drawing = threading.RLock()
        self._numbers = itertools.count()
        self._option_widgets: list[OptionWidget] = []
        self._metres: float | None = None
        self.build()
        self.request()

    # What the window asks for

    def document(self) -> Document:
        """The scene as it is, paths as the window gave them."""
        return copy.deepcopy(self._document)

    def take(self, file: Path) -> bool:
        """Use a further file (a motion, a skeleton, another shape); False if there is no use for it."""
        return False

    def state(self) -> State:
        """All that can be undone: the scene, and what is not in it."""
        return {"scene": self.document()}

    def restore(self, state: State) -> bool:
        """Show a state that it, or another panel of its kind, was in; False if that takes another panel."""
        if not self.shows(state["scene"]):
            return False
        self._document = copy.deepcopy(state["scene"])
        self.show_options()
        self.request()
        return True

    @property
    def names(self) -> dict[str, str]:
        """What keys of its states are called in the history, options by their widgets."""
        options = ENGINES[self._document["engine"]].options.all()
        return {**self.key_names, **{about.name: about.label for about in options if about.label}}

    def shows(self, document: Document) -> bool:
        """Whether a document has the shape that is shown."""
        key = ENGINES[document["engine"]].shape_key
        return self._document["engine"] == document["engine"] and self._document.get(key) == document.get(key)

    @property
    def metres(self) -> float | None:
        """How long a unit of the shape is, if a visitor or the scene says so."""
        return self._metres

    def measure(self, metres: float | None) -> None:
        """Have a unit of the shape so long; None: as it was before anybody said so."""
        self._metres = metres

    def remove_selected(self) -> None:
        """Remove what is selected, if that can be removed."""
        self.desk.stage.selection.delete()

    # What an engine has of its own

    def build(self) -> None:
        """Make the widgets, and what else there is before the scene is read."""
        engine = ENGINES[self._document["engine"]]
        with self.desk.gui.add_folder(engine.title):
            self.add_options("", engine.options)

    def update(self, job: Job) -> None:
        """Show the newest state."""
        document = self.document()
        engine, scene = ENGINES[document["engine"]], self.desk.scene(document)
        if not self.desk.stage.has(SHAPE_NODE):
            self.desk.stage.look_at(scene.shape.points, up_axis(scene.shape))
            self.drawn = self.desk.stage.shape(SHAPE_NODE, scene.shape)
            self.desk.hint("Set the **options**, and scrub or play the timeline.")

        def solve(job: Job) -> Iterator[tuple[int, Floats]]:
            began = time.perf_counter()
            solver = scene.prepare()
            clip = engine.part("solve")(scene, solver, job.check, time.perf_counter() - began).clip
            self.frames.resize(len(clip), clip.fps)
            yield from enumerate(clip.points)

        if job.settled():
            self.frames.solve(document, solve)

    def draw(self, frame: int) -> None:
        """Show a frame of the timeline, if it is solved."""
        if frame in self.frames.solved:
            with self.drawing():
                self.drawn.move(self.frames.solved[frame])

    def came(self, number: int | None) -> None:
        """A frame is solved; None: the first of them is begun."""
        if number == self.frames.frame and not self.desk.timeline.playing:
            self.draw(number)

    # What each of them works with

    def add_options(self, folder: str, *kinds: type[Options]) -> dict[str, OptionWidget]:
        """A widget for every option of a folder, into the folder of the page that is open."""
        shown = [one for kind in kinds for one in kind.all(folder=folder) if one.table is not None]
        made = self.widgets.options(shown, self.value_of, self.set_option)
        self._option_widgets += made.values()
        return made

    def show_options(self) -> None:
        """Have the widgets show the options as they are."""
        for one in self._option_widgets:
            one.show(self.value_of(one.about))

    def add_further_options(self, *kinds: type[Options]) -> dict[str, OptionWidget]:
        """A folder with every option that no other folder shows."""
        with self.desk.gui.add_folder("Further options", expand_by_default=False):
            return self.add_options("", *kinds)

    def value_of(self, about: Option) -> Any:
        """The value of an option."""
        return about.value_in(self._document)

    def set_option(self, about: Option, value: Any) -> None:
        """Have another value of an option; None: its default."""
        self._document = about.put(self._document, value)
        self.request()

    def request(self, *, clip: bool = True, after: float = 0.0) -> None:
        """Have the newest state shown. clip: whether the frames that are solved are out of date. after: seconds to
        wait for a newer request."""
        if clip:
            self.frames.drop()
        self.desk.changed()
        self.desk.ask(SHOW, lambda job: self.update(job) if job.settled(after) else None)

    def act(self, work: Callable[[], None]) -> None:
        """Do something beside the page that counts even if more of its kind come, such as a click."""
        self.desk.ask(f"act {next(self._numbers)}", lambda job: work())

    @contextmanager
    def drawing(self, job: Job | None = None) -> Iterator[None]:
        """One thread draws at a time; raises StoppedError if a job was dropped."""
        with self._drawing:
            if job is not None and job.dropped:
                job.check()
            yield
