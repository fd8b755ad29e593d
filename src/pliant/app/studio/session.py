"""One window of the studio: its stage, its engine's panel, opening, saving and exporting.

Each window has a state of its own: two windows on one studio do not see each other's changes, except for what they
save into the folder.
"""

from __future__ import annotations

import copy
import logging
import math
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

import pliant
from pliant.app.scene import read_scene, scene_from
from pliant.app.studio.desk import Desk, Document
from pliant.app.studio.folders import Folders, kept_upload
from pliant.app.studio.history import History, State, difference
from pliant.app.studio.opening import document_for, examples, opened, other_pose, shape_alone, title_of, with_engine
from pliant.app.studio.page import Page
from pliant.app.studio.panel import Panel
from pliant.app.studio.saving import CLIP_FORMATS, Saving
from pliant.app.studio.scope import Scope, hear
from pliant.app.studio.timeline import Timeline
from pliant.app.studio.viewport import CAMERA_SIDES, SURFACES, Viewport, ViewStyle
from pliant.app.studio.worker import Job, StoppedError, Worker
from pliant.core.errors import FileError, InputError, PliantError
from pliant.core.terminal import shell_command
from pliant.engines.registry import ENGINES
from pliant.geometry.axes import SignedAxis, up_axis
from pliant.io.sandbox import confined

if TYPE_CHECKING:
    from PIL import Image

log = logging.getLogger("pliant.app.studio")

LARGEST_DOWNLOAD = 200 << 20
FILM_FPS, FILM_WIDTH = 25.0, 960
"""Of a film of what is seen, at most; the width in pixels."""
PATIENCE = 30.0
"""Seconds that a page may take for a picture."""
WINDOW_LANES = ("begin", "open")
"""Beginnings of the worker's lanes that are the window's own and not the panel's."""
BELOW = 1e15
"""Order of what is below the panel's own widgets."""
EVERYTHING = "All"
UP_AXES: dict[str, SignedAxis | None] = {"as the shape says": None, **{axis: axis for axis in get_args(SignedAxis)}}
"""What the page calls the axis that points up."""
UNITS = {"metres": ("m", 1.0), "centimetres": ("cm", 0.01), "millimetres": ("mm", 0.001), "inches": ("in", 0.0254)}
"""What a unit of a shape may be: how it is written, and its metres."""
UNITS_OF_SHAPE = "as the shape says"
SAVING_STEP = "Save and export", "**Save** the scene, or export the clip. **Ctrl+Z** undoes whatever you did."
"""Ends every guided start."""
ACTIONS = {
    "set_key": "Set a key", "remove_key": "Remove a key", "move_key": "Move a key", "copy_key": "Copy a key",
    "remove": "Delete", "pair": "Pairing",
}  # fmt: skip
"""What is done on the studio's own part of the page, as steps of the history."""
PAUSE = 0.4
"""Seconds without a change after which what was done is a step of the history."""
current = threading.local()
"""`.session`: the session whose work a thread does."""


class Session:
    """The state of one window, and what it shows."""

    def __init__(
        self,
        client: Any,
        folders: Folders,
        panels: dict[str, Callable[[Desk, Document], Panel]],
        document: Document,
        *,
        largest_upload: int,
        left: Document | None = None,
        title: str = "",
    ) -> None:
        self.client, self.folders, self.largest_upload = client, folders, largest_upload
        self._panels, self._left = panels, left
        self._uploads = Path(tempfile.mkdtemp(dir=folders.uploads))  # windows do not overwrite each other's
        self.panel: Panel | None = None
        self.engine = ""
        self.scope = Scope(client)
        self._switching = threading.Lock()  # a window that is closed opens no further scene
        self._closed = False
        self.saving = Saving(folders)
        self._opened = 0
        self.history = History()
        self.page = Page(largest_upload, lambda action: self._seal(ACTIONS.get(action, "")), self.history.press)
        self._title, self.style, self._units_shown = "", ViewStyle(), UNITS_OF_SHAPE
        self._noting = threading.RLock()
        self._fresh = True  # whether nothing was done since a state was shown
        self._restoring = self._awaited = False
        self._read_last: tuple[Document, Any] | None = None
        self._build()
        self.live = Worker(self.fail, self._busy)
        self.slow = Worker(self.fail, lambda lane: None)
        self.notes = Worker(self.fail, lambda lane: None)
        for worker in (self.live, self.slow):
            worker.ask("begin", self._own_thread)
        self._begin(lambda: document, title)

    # Messages

    def hint(self, text: str) -> None:
        """Say what to do next."""
        self.page.show(hint=text)

    def say(self, text: str) -> None:
        """Show the status."""
        self.page.show(status=text)

    def fail(self, error: Exception) -> None:
        """Say what went wrong, in a sentence."""
        known = isinstance(error, (PliantError, OSError))
        if not known:
            log.error("the studio met an error of its own", exc_info=error)
        text = self._plain(error)
        body = text if known else f"Something went wrong inside pliant ({type(error).__name__}: {text:.200})."
        self._notify("That did not work", body, "red", seconds=25.0)

    def _plain(self, error: Exception) -> str:
        """An error in one line, uploaded files by their own names."""
        text = " ".join(str(error).split()) or type(error).__name__
        return text.replace(f"{self._uploads}{os.sep}", "").replace(f"{self.folders.given[0]}{os.sep}", "")

    def warn(self, text: str) -> None:
        """Show a warning of pliant's."""
        self._notify("Note", text, "yellow")

    def _notify(self, title: str, body: str, color: str, seconds: float = 12.0) -> None:
        with suppress(Exception):  # the window may just have been closed
            self.client.add_notification(title, body, color=color, auto_close_seconds=seconds)

    def _busy(self, lane: str) -> None:
        self.page.show(status="Working ..." if lane else "Ready.")
        if not lane:
            self.notes.ask("note", lambda job: self.note())

    def _own_thread(self, job: Job) -> None:
        current.session = self

    # What it opens

    def start(self, document: Document, title: str = "") -> None:
        """Show a scene instead of the one before, which stays if this one cannot be read."""
        with self._shape_first(document):
            self.scene(document)
        self._show(document, title or title_of(document))

    @contextmanager
    def _shape_first(self, document: Document) -> Iterator[None]:
        """Show a scene's shape alone while the rest of it is read, such as its bones found."""
        shape = self.read(lambda: shape_alone(document))
        if shape is None:
            yield
            return
        view, scope = self.client.camera, Scope(self.client)
        before = None if self.panel is None else (self.scope.hide(), view.position, view.look_at)
        try:
            stage = Viewport(scope, self.fail, self.style)
            stage.look_at(shape.points, up_axis(shape), ground="/first ground")
            stage.shape("/first", shape)
            yield
        except Exception:
            scope.close()
            if before is not None:
                before[0]()
                view.position, view.look_at = before[1:]
            raise
        scope.close()

    def _show(self, document: Document, title: str = "") -> None:
        """title: of what is opened; none if it is the scene before, changed."""
        name = document["engine"]
        self.note()
        with self._switching:
            if self._closed:
                raise StoppedError
            self.scope.close()
            self._drop_panel()
            self.engine = name
            self._engine.value = ENGINES[name].title
            self._restoring = True
            try:
                self.panel = self._panels[name](self._desk(), document)
            finally:
                self._restoring, self._fresh = False, bool(title)
        self._title = title or self._title
        if title:
            with self._noting:
                self.history.note(f"Open {title}", self._state(self.panel))
                self.history.saved()
        self.note()

    def _drop_panel(self) -> None:
        """Forget what the panel has requested."""
        self.live.drop_others(lambda lane: lane.startswith(WINDOW_LANES))

    def _desk(self) -> Desk:
        """What the panel of another scene works with."""
        self.scope = scope = Scope(self.client)

        def fail(error: Exception) -> None:
            if not scope.closed:
                self.fail(error)

        self.stage = Viewport(scope, fail, self.style, self.page.show, self.page.stream)
        self.timeline = scope.own(Timeline(self.page, self.stage.hear, fail))
        self.page.show(pairing=None)
        hint, say = scope.guard(self.hint), scope.guard(self.say)
        return Desk(
            scope, self.stage, self.timeline, self.live, self.folders, self._uploads, hint, say, fail,
            self.scene, self.read, self._show, self._changed, self._seal, self.page,
        )  # fmt: skip

    def _begin(self, document: Callable[[], Document], title: str = "") -> None:
        """Show a scene as soon as it can be, whatever is being worked on for the one before."""
        self._drop_panel()
        self._ask_open(lambda job: self.start(document(), title))

    def _ask_open(self, work: Callable[[Job], None]) -> None:
        """In a lane of its own: what is opened first is not forgotten for what is opened next."""

        def opening(job: Job) -> None:
            try:
                work(job)
            finally:
                self._engine.value = ENGINES[self.engine or next(iter(self._panels))].title

        self._opened += 1
        self.live.ask(f"open {self._opened}", opening)

    def scene(self, document: Document) -> Any:
        """The scene of a document, as `pliant run` would read it from the folder."""
        last = self._read_last
        if last is not None and last[0] == document:
            return last[1]
        with confined(self.folders.all):
            found = scene_from(document, self.folders.given[0])
        self._read_last = copy.deepcopy(document), found
        return found

    def read(self, reading: Callable[[], Any]) -> Any:
        """What a function reads, from the folders alone."""
        with confined(self.folders.all):
            return reading()

    def open(self, file: Path) -> None:
        """Show what a file has: a scene, shapes to blend, a shape, or something for the scene that is shown."""
        self._ask_open(lambda job: self._open(file))

    def _open(self, file: Path) -> None:
        self.say(f"Opening {file.name} ...")
        self._read_last = None  # the file may have changed
        scene = file.suffix.lower() == ".toml"
        if scene or self.panel is None or not self.read(lambda: self._taken(file)):
            documents = self.read(lambda: opened(file, self.engine))
            if not documents:
                raise pliant.FileError(file.name, "holds nothing that the scene shown can use; open a shape first")
            if scene:  # read from the file, so that errors have its line, and only once
                self._read_last = copy.deepcopy(documents[0]), self.read(lambda: read_scene(file))
            self._start_first(documents, file.name)
        self.say(f"Opened {file.name}.")
        if not file.is_relative_to(self.folders.uploads):
            here = self.folders.given[0]
            self.page.show(recent=str(file.relative_to(here) if file.is_relative_to(here) else file))

    def _start_first(self, documents: list[Document], title: str) -> None:
        """Show the first of some scenes that its engine can use, such as a cage for a shape that has no inside."""
        best, *others = documents
        try:
            self.start(best, title)
        except pliant.InputError as error:
            if not others:
                raise
            self._start_first(others, title)
            titles = [ENGINES[document["engine"]].title for document in (others[0], best)]
            self.warn('Shown with "{}", since "{}" cannot use it: '.format(*titles) + self._plain(error))

    def _taken(self, file: Path) -> bool:
        """Whether the scene that is shown makes use of a file, or becomes one of several poses of its mesh."""
        if self.panel is None:
            return False
        if self.panel.take(file):
            return True
        poses = other_pose(self.panel.document(), file, self.scene)
        if poses is not None:
            self.start(poses)
        return poses is not None

    # What was done

    def _changed(self) -> None:
        """The panel shows another state, which may be a step of the history."""
        if not self._restoring:
            self._fresh = False
            self._note_soon()

    def _seal(self, called: str) -> None:
        """What comes next is a step of its own, which is called so."""
        if called and not self._fresh:
            self.note()  # what was done a moment ago
        self.history.seal(called)
        if called:
            self._note_soon()

    def _note_soon(self) -> None:
        self.notes.ask("note", lambda job: self.note() if job.settled(PAUSE) else None)

    def _state(self, panel: Panel) -> State:
        return panel.state() | {"opened": self._title}

    def note(self) -> None:
        """Have what was done as a step of the history."""
        with self._noting:
            panel, steps, at = self.panel, self.history.steps, self.history.at
            if panel is None or at < 0 or self._awaited:
                return
            with suppress(PliantError, OSError):  # a file may have gone
                state = self._state(panel)
                if self._fresh:
                    self.history.amend(state)
                if state != steps[at].state:
                    self.history.note(difference(steps[at].state, state, panel.names), state)
                elif self.live.idle(0.0):  # or more may come of a press
                    self.history.note("", state)
            self._show_history()

    def undo(self, steps: int = 1) -> None:
        """Go back by so many steps, or forth if there are fewer than none."""
        if not self._fresh:
            self.note()  # what was done a moment ago
        self.go(self.history.at - steps)

    def go(self, to: int) -> None:
        """Show the state after a step of the history."""
        with self._noting:
            before, state = self.history.at, self.history.go(to)
            if state is None:
                return
            self._fresh = self._restoring = True
            self._title = state["opened"]
            try:
                panel = self.panel
                same = panel is not None and state["scene"]["engine"] == self.engine and panel.restore(state)
            finally:
                self._restoring = False
            self._awaited = not same
            self._show_history()
        if not same:
            self._drop_panel()
            self._ask_open(lambda job: self._show_again(state, before))

    def _show_again(self, state: State, before: int) -> None:
        """Show a state that takes another panel; if that cannot be, stay at the step before."""
        if state is not self.history.steps[self.history.at].state:  # another step has been gone to since
            return
        try:
            self._show(state["scene"])
        except Exception:
            self.history.go(before)
            raise
        finally:
            self._awaited, self._fresh = False, True
            self.note()

    def _show_history(self) -> None:
        history = self.history
        self._show_units()
        self.page.show(
            history=history.labels, step=history.at, title=self._title, unsaved=history.unsaved, engine=self.engine,
            guide=[] if self.panel is None else [*self.panel.guide, SAVING_STEP],
        )  # fmt: skip

    # What it saves

    def save(self, name: str) -> Path:
        """Write the scene into the folder; uploaded files it uses go along."""
        assert self.panel is not None
        self.note()
        with self._noting:
            document = self.panel.document()
            path: Path = self.read(lambda: self.saving.scene(name, document))
            self.history.saved(document)
            self._title = path.name
            self.history.amend(self._state(self.panel))  # another title alone is no step
            self._show_history()
        return path

    def close(self) -> Document | None:
        """End all work; the scene as it was."""
        for worker in (self.live, self.slow, self.notes):
            worker.close()
        left = None
        with self._switching:
            self._closed = True
            with suppress(PliantError, OSError):  # what it is made of may have gone
                left = None if self.panel is None else self.panel.document()
            self.scope.close()
        return left

    # Its widgets

    def _hear(self, callback: Callable[[Any], None]) -> Any:
        return hear(callback, self.fail)

    def _build(self) -> None:
        gui, hear = self.client.gui, self._hear
        gui.set_panel_label("pliant studio")
        gui.main_panel.dock_right()
        self._set_theme()
        gui.add_html(self.page.mark)
        self._build_page()
        self._build_opening(gui, hear)
        titles = tuple(ENGINES[name].title for name in self._panels)
        self._engine = gui.add_dropdown("Work with", titles, hint="What moves the shape; it stays the same")
        self._engine.on_update(hear(lambda event: self._switch()))
        with gui.add_folder("View", order=BELOW, expand_by_default=False):
            self._build_view(gui, hear)
        with gui.add_folder("Save and export", order=BELOW, expand_by_default=False):
            self._build_saving(gui, hear)

    def _build_view(self, gui: Any, hear: Callable[..., Any]) -> None:
        hint = "Keys 1, 3, 7, and F to have all in view"
        sides = gui.add_button_group("Look from", (*CAMERA_SIDES, EVERYTHING), hint=hint)
        sides.on_click(hear(lambda event: self._look_from(event.target.value)))
        surface = gui.add_dropdown("Surface", SURFACES, hint="How shapes are drawn")
        surface.on_update(hear(lambda event: self._restyle(surface=surface.value)))
        up = gui.add_dropdown("Up", tuple(UP_AXES), hint="The axis that points up, if the shape lies on its side")
        up.on_update(hear(lambda event: self._restyle(up=UP_AXES[up.value])))
        hint = "What the numbers of the shape's file are. Flesh is as large as they say, two metres long otherwise"
        self._units = gui.add_dropdown("Units", (UNITS_OF_SHAPE, *UNITS), hint=hint)
        self._units.on_update(hear(lambda event: self._measure(self._units.value)))
        self._size = gui.add_markdown("")
        dark = gui.add_checkbox("Dark", False, hint="Light on dark, or dark on light")
        dark.on_update(hear(lambda event: self._restyle(dark=dark.value)))
        picture = gui.add_button("Save a picture", hint="Of what is seen, as PNG")
        picture.on_click(hear(lambda event: self.slow.ask("picture", lambda job: self._save_picture())))
        film = gui.add_button("Save a film", hint="Of the frames that are played, as they are seen, as GIF")
        film.on_click(hear(lambda event: self.slow.ask("picture", self._save_film)))
        self.page.on(look_from=hear(lambda given: self._look_from(given[0])))

    def _look_from(self, side: str) -> None:
        if side in (*CAMERA_SIDES, EVERYTHING):
            self.stage.look_from(side if side in CAMERA_SIDES else None)

    def _restyle(self, **style: Any) -> None:
        """Show all in another style; another axis up takes another panel."""
        before, self.style = self.style, replace(self.style, **style)
        self.stage.style = self.style
        self._set_theme()
        if before.up == self.style.up:
            self.slow.ask("style", lambda job: self.stage.restyle())
        elif self.panel is not None:
            self.note()
            self._awaited, state = True, self.history.steps[self.history.at].state
            self._ask_open(lambda job: self._show_again(state, self.history.at))

    def _measure(self, units: str) -> None:
        """Have the shape's numbers in other units."""
        if self.panel is not None and units != self._units_shown:
            self._units_shown = units
            self.panel.measure(None if units == UNITS_OF_SHAPE else UNITS[units][1])
            self._show_units()

    def _show_units(self) -> None:
        """What units the shape's numbers are in, and how large it is."""
        drawn = getattr(self.panel, "drawn", None)
        if self.panel is None or drawn is None:
            return
        given, world = self.panel.metres, drawn.shape.world
        chosen = _units_of(given)
        self._units_shown = self._units.value = chosen or UNITS_OF_SHAPE
        units = UNITS[name][0] if (name := chosen or _units_of(world and world.metres)) else ""
        sides = " × ".join(f"{side:.3g}" for side in np.ptp(drawn.shape.points, axis=0))
        self._size.content = f"The shape is {sides} {units or 'units'}."
        self.page.show(units=units)

    def _set_theme(self) -> None:
        brand, dark = (190, 96, 36), self.style.dark
        self.client.gui.configure_theme(
            show_logo=False, show_share_button=False, brand_color=brand, control_width="medium", dark_mode=dark
        )
        self.page.show(dark=dark)

    def _seen(self, widest: int | None = None) -> Image.Image:
        """What is seen, at most so many pixels wide."""
        from PIL import Image

        if self.page.stream.connected and not self.page.arrived(PATIENCE):
            raise PliantError("the page did not show the last shape in time; try again when it does")
        view = self.client.camera
        scale = min(1.0, (widest or view.image_width) / view.image_width)
        height, width = (round(scale * side) for side in (view.image_height, view.image_width))
        return Image.fromarray(self.client.get_render(height, width, transport_format="png", timeout=PATIENCE))

    def _download(self, suffix: str, content: bytes) -> None:
        self.client.send_file_download(f"{Path(self._title).stem or 'pliant'}{suffix}", content, save_immediately=True)

    def _save_picture(self) -> None:
        """Write what is seen, and offer it for download."""
        buffer = BytesIO()
        self._seen().save(buffer, "PNG")
        self._download(".png", buffer.getvalue())

    def _save_film(self, job: Job) -> None:
        """Write what is seen while the timeline plays, and offer it for download."""
        from pliant.render.movie import gif

        timeline = self.timeline
        step = max(1, math.ceil(timeline.fps * timeline.speed / FILM_FPS))
        frames, pictures = timeline.played(step), []
        clip = None if self.panel is None else self.panel.frames
        lacking = 0 if clip is None or clip.count < 2 else sum(frame not in clip.solved for frame in frames)
        if lacking:
            raise InputError(f"{lacking} of the frames are not solved yet; play the clip first, and save the film then")
        with closing(timeline.drawn(frames)) as drawn:
            for frame in drawn:
                job.check()
                pictures.append(self._seen(FILM_WIDTH).convert("RGB"))
                self.say(f"Filming frame {frame + 1} ...")
        self.say("The film is being written ...")
        self._download(".gif", gif(pictures, timeline.fps * timeline.speed / step))
        self.say("The film is downloaded.")

    def _build_opening(self, gui: Any, hear: Callable[..., Any]) -> None:
        if self._left is not None:
            back = gui.add_button("Bring back the last window's work", hint="As it was when that was closed")
            left = self._left
            back.on_click(hear(lambda event: self._begin(lambda: left)))
        none = "Choose one"
        example = gui.add_dropdown(
            "Example", (none, *examples()), hint="Something to try; undo brings back what is open"
        )

        def begin(event: Any) -> None:
            if (name := example.value) != none:
                example.value = none  # what is open may be another by now, and the same example is wanted again
                self._begin(lambda: document_for(name), name)

        example.on_update(hear(begin))

    def _build_page(self) -> None:
        """What is done on the studio's own part of the page."""
        problem = f"is larger than {self.largest_upload >> 20} MiB, the most that may be uploaded"
        self.page.on(
            undo=self._hear(lambda given: self.undo()),
            redo=self._hear(lambda given: self.undo(-1)),
            go=self._hear(lambda given: self.go(int(given[0]))),
            file=self._hear(lambda given: self._uploaded(*given)),
            too_large=self._hear(lambda given: self.fail(FileError(given[0], problem))),
            list=self._hear(lambda given: self._list(str(given[0]))),
            open=self._hear(lambda given: self.open(self.folders.to_read(str(given[0])))),
            remove=self._hear(lambda given: None if self.panel is None else self.panel.remove_selected()),
            select=self._hear(lambda given: self.stage.selection.select(str(given[0]), by_hand=True)),
            put_at=self._hear(lambda given: self.stage.selection.put_at(given[0], given[1])),
        )

    def _list(self, folder: str) -> None:
        """Show what is in a folder now."""
        try:
            self.page.show(listing={"folder": folder, "entries": self.folders.listing(folder)})
        except FileError:  # it has gone
            self.page.show(listing={"folder": "", "entries": self.folders.listing()})

    def _uploaded(self, name: str, content: bytes) -> None:
        def work(job: Job) -> None:
            self._open(kept_upload(self._uploads, name, content, largest=self.largest_upload))

        self._ask_open(work)

    def _switch(self) -> None:
        """Another engine, for the same shape."""
        name = next(name for name in self._panels if ENGINES[name].title == self._engine.value)
        if name != self.engine and self.panel is not None:
            document = self.panel.document()
            self._begin(lambda: self.read(lambda: with_engine(document, name)))

    def _build_saving(self, gui: Any, hear: Callable[..., Any]) -> None:
        name = gui.add_text("Name", "scene", hint="Of the files, in the studio's folder")
        save = gui.add_button("Save the scene", hint="As a file that pliant run takes")
        save.on_click(hear(lambda event: self._saved(name.value)))
        kind = gui.add_dropdown("Clip as", tuple(CLIP_FORMATS), hint="What other tools read")
        start = gui.add_button("Export the clip", hint="All frames, solved exactly; the page goes on meanwhile")
        bar = gui.add_progress_bar(0.0, visible=False)
        stop = gui.add_button("Stop the export", visible=False, hint="Nothing is written then")
        start.on_click(hear(lambda event: self._export(name.value, kind.value, bar, stop)))
        stop.on_click(hear(lambda event: self.slow.drop("export")))

    def _saved(self, name: str) -> None:
        def work(job: Job) -> None:
            path = self.save(name)
            self._notify("Saved", f"{path}. Run it with: {shell_command('pliant', 'run', path)}", "green")

        self.slow.ask("save", work)

    def _export(self, name: str, kind: str, bar: Any, stop: Any) -> None:
        """Run the scene as it is and write its clip, as `pliant run` of the saved scene would."""
        assert self.panel is not None
        document = copy.deepcopy(self.panel.document())

        def work(job: Job) -> None:
            def report(done: int, total: int) -> None:
                job.check()
                bar.value = 100.0 * done / max(total, 1)

            path = self.read(lambda: self.saving.clip_target(name, kind, document))
            bar.value, bar.visible, stop.visible = 0.0, True, True
            try:
                self.saving.clip(path, self.scene(document).run(report).clip)
            finally:
                bar.visible = stop.visible = False
            self._notify("Exported", f"{path}", "green")
            if path.is_file() and path.stat().st_size < LARGEST_DOWNLOAD:
                self.client.send_file_download(path.name, path.read_bytes())

        self.slow.ask("export", work)


def _units_of(metres: float | None) -> str:
    """The name of units that are so long; "" if they have none."""
    same = (name for name, (_, length) in UNITS.items() if metres and math.isclose(metres, length, rel_tol=1e-5))
    return next(same, "")
