"""One window of the studio: its stage, its engine's panel, opening, saving and exporting.

Each window has a state of its own: two windows on one studio do not see each other's changes, except for what they
save into the folder.
"""

from __future__ import annotations

import copy
import logging
import os
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pliant
from pliant.app.scene import read_scene, scene_from
from pliant.app.studio.desk import Desk, Document
from pliant.app.studio.folders import Folders, kept_upload
from pliant.app.studio.opening import document_for, examples, opened, other_pose, with_engine
from pliant.app.studio.panel import Panel
from pliant.app.studio.saving import CLIP_FORMATS, Saving
from pliant.app.studio.scope import Scope, hear
from pliant.app.studio.timeline import Timeline
from pliant.app.studio.viewport import Viewport
from pliant.app.studio.worker import Job, StoppedError, Worker
from pliant.core.errors import PliantError
from pliant.core.terminal import shell_command
from pliant.engines.registry import ENGINES
from pliant.io.sandbox import confined

log = logging.getLogger("pliant.app.studio")

LARGEST_DOWNLOAD = 200 << 20
WINDOW_LANES = ("begin", "open")
"""Beginnings of the worker's lanes that are the window's own and not the panel's."""
BELOW = 1e15
"""Order of what is below the panel's own widgets."""
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
        self._read_last: tuple[Document, Any] | None = None
        self._build()
        self.live = Worker(self.fail, self._busy)
        self.slow = Worker(self.fail, lambda lane: None)
        for worker in (self.live, self.slow):
            worker.ask("begin", self._own_thread)
        self._begin(lambda: document)

    # Messages

    def hint(self, text: str) -> None:
        """Say what to do next."""
        self._hint.content = text

    def say(self, text: str) -> None:
        """Show the status."""
        self._status.content = text

    def fail(self, error: Exception) -> None:
        """Say what went wrong, in a sentence."""
        known = isinstance(error, (PliantError, OSError))
        if not known:
            log.error("the studio met an error of its own", exc_info=error)
        text = self._plain(error)
        body = text if known else f"Something went wrong inside pliant ({type(error).__name__}: {text:.200})."
        self._notify("That did not work", body, "red")

    def _plain(self, error: Exception) -> str:
        """An error in one line, uploaded files by their own names."""
        text = " ".join(str(error).split()) or type(error).__name__
        return text.replace(f"{self._uploads}{os.sep}", "").replace(f"{self.folders.given[0]}{os.sep}", "")

    def warn(self, text: str) -> None:
        """Show a warning of pliant's."""
        self._notify("Note", text, "yellow", seconds=12.0)

    def _notify(self, title: str, body: str, color: str, seconds: float | None = None) -> None:
        with suppress(Exception):  # the window may just have been closed
            self.client.add_notification(title, body, color=color, auto_close_seconds=seconds)

    def _busy(self, lane: str) -> None:
        self._status.content = "Working ..." if lane else "Ready."

    def _own_thread(self, job: Job) -> None:
        current.session = self

    # What it opens

    def start(self, document: Document) -> None:
        """Show a scene instead of the one before, which stays if this one cannot be read."""
        self.scene(document)
        before = self.panel.document() if self.panel is not None else None
        self._show(document)
        if before is not None:
            self._before = before
            self._back.visible = True

    def _show(self, document: Document) -> None:
        name = document["engine"]
        with self._switching:
            if self._closed:
                raise StoppedError
            self.scope.close()
            self._drop_panel()
            self.engine = name
            self._engine.value = ENGINES[name].title
            self.panel = self._panels[name](self._desk(), document)

    def _drop_panel(self) -> None:
        """Forget what the panel has requested."""
        self.live.drop_others(lambda lane: lane.startswith(WINDOW_LANES))

    def _desk(self) -> Desk:
        """What the panel of another scene works with."""
        self.scope = scope = Scope(self.client)

        def fail(error: Exception) -> None:
            if not scope.closed:
                self.fail(error)

        self.stage = Viewport(scope, fail)
        with self._below:
            self.timeline = scope.own(Timeline(scope.gui, self.stage.hear, fail))
        hint, say = scope.guard(self.hint), scope.guard(self.say)
        return Desk(
            scope, self.stage, self.timeline, self.live, self.folders, self._uploads, hint, say, fail,
            self.scene, self.read, self._show,
        )  # fmt: skip

    def _begin(self, document: Callable[[], Document]) -> None:
        """Show a scene as soon as it can be, whatever is being worked on for the one before."""
        self._drop_panel()
        self._ask_open(lambda job: self.start(document()))

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
            self._start_first(documents)
        self.say(f"Opened {file.name}.")

    def _start_first(self, documents: list[Document]) -> None:
        """Show the first of some scenes that its engine can use, such as a cage for a shape that has no inside."""
        best, *others = documents
        try:
            self.start(best)
        except pliant.InputError as error:
            if not others:
                raise
            self._start_first(others)
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

    # What it saves

    def save(self, name: str) -> Path:
        """Write the scene into the folder; uploaded files it uses go along."""
        assert self.panel is not None
        return self.read(lambda: self.saving.scene(name, self.panel.document()))  # type: ignore[union-attr]

    def close(self) -> Document | None:
        """End all work; the scene as it was."""
        self.live.close()
        self.slow.close()
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
        gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(190, 96, 36), control_width="medium")
        self._hint = gui.add_markdown("")
        self._status = gui.add_markdown("Ready.")
        with gui.add_folder("Open", expand_by_default=False):
            self._build_opening(gui, hear)
        titles = tuple(ENGINES[name].title for name in self._panels)
        self._engine = gui.add_dropdown("Work with", titles)
        self._engine.on_update(hear(lambda event: self._switch()))
        below = gui.add_panel()
        below.float(x=16, y=-16, width=420)
        self._below = below.add_tab("Timeline")
        with gui.add_folder("Save and export", order=BELOW, expand_by_default=False):
            self._build_saving(gui, hear)

    def _build_opening(self, gui: Any, hear: Callable[..., Any]) -> None:
        self._back = gui.add_button("Back to the scene before", visible=False)
        self._back.on_click(hear(lambda event: self._begin(lambda: self._before)))
        if self._left is not None:
            back = gui.add_button("Bring back the last window's work")
            left = self._left
            back.on_click(hear(lambda event: self._begin(lambda: left)))
        example = gui.add_dropdown("Example", tuple(examples()))
        example.on_update(hear(lambda event: self._begin(lambda: document_for(example.value))))
        upload = gui.add_upload_button("Upload a file")
        upload.on_upload(hear(lambda event: self._uploaded(event.target.value)))
        self._files = gui.add_dropdown("From the folder", self._listed())
        typed = gui.add_text("or by name", "")
        button = gui.add_button("Open it")
        button.on_click(hear(lambda event: self.open(self.folders.to_read(typed.value or self._files.value))))

    def _listed(self) -> tuple[str, ...]:
        return tuple(self.folders.readable()) or ("(no files there)",)

    def _uploaded(self, file: Any) -> None:
        def work(job: Job) -> None:
            self._open(kept_upload(self._uploads, file.name, file.content, largest=self.largest_upload))

        self._ask_open(work)

    def _switch(self) -> None:
        """Another engine, for the same shape."""
        name = next(name for name in self._panels if ENGINES[name].title == self._engine.value)
        if name != self.engine and self.panel is not None:
            document = self.panel.document()
            self._begin(lambda: self.read(lambda: with_engine(document, name)))

    def _build_saving(self, gui: Any, hear: Callable[..., Any]) -> None:
        name = gui.add_text("Name", "scene")
        save = gui.add_button("Save the scene")
        save.on_click(hear(lambda event: self._saved(name.value)))
        kind = gui.add_dropdown("Clip as", tuple(CLIP_FORMATS))
        start = gui.add_button("Export the clip")
        bar = gui.add_progress_bar(0.0, visible=False)
        stop = gui.add_button("Stop the export", visible=False)
        start.on_click(hear(lambda event: self._export(name.value, kind.value, bar, stop)))
        stop.on_click(hear(lambda event: self.slow.drop("export")))

    def _saved(self, name: str) -> None:
        def work(job: Job) -> None:
            path = self.save(name)
            self._files.options = self._listed()
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
