"""One window of the studio: its stage, its engine's panel, opening, saving and exporting.

Each window has a state of its own: two windows on one studio do not see each other's changes, except for what they
save into the folder.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pliant
from pliant.errors import PliantError
from pliant.io.room import room
from pliant.progress import Report
from pliant.scene import scene_from, write_scene
from pliant.studio.folders import Folders, kept_upload
from pliant.studio.opening import ENGINES, EXAMPLES, document_for, opened, with_engine
from pliant.studio.panel import Desk, Document, Panel
from pliant.studio.stage import Stage
from pliant.studio.timeline import Timeline
from pliant.studio.worker import Job, Worker

log = logging.getLogger("pliant.studio")

FORMATS = {"GLB": ".glb", "USD": ".usdc", "OBJ sequence": ""}
LARGEST_DOWNLOAD = 200 << 20
KEPT_LANES = ("begin", "open")
"""Of the worker, that are the window's own and not the panel's."""
BELOW = 1e15
"""Order of what stands below the panel's own widgets."""
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
        self.stage = Stage(client, self.fail)
        self._build()
        self.live = Worker(self.fail, self._busy)
        self.slow = Worker(self.fail, lambda lane: None)
        for worker in (self.live, self.slow):
            worker.ask("begin", self._own_thread)
        self.desk = Desk(
            client.gui, self.stage, self.timeline, self.live, folders, self._uploads, self.hint, self.say, self.fail,
            self.scene, self.read,
        )  # fmt: skip
        self.start(document)

    # What it says

    def hint(self, text: str) -> None:
        """Tell what to do next."""
        self._hint.content = text

    def say(self, text: str) -> None:
        """Tell how things stand."""
        self._status.content = text

    def fail(self, error: Exception) -> None:
        """Tell what went wrong, in a sentence."""
        known = isinstance(error, (PliantError, OSError))
        if not known:
            log.error("the studio met an error of its own", exc_info=error)
        words = " ".join(str(error).split()) or type(error).__name__
        body = words if known else f"Something went wrong inside pliant ({type(error).__name__}: {words:.200})."
        self._notify("That did not work", body, "red")

    def warn(self, text: str) -> None:
        """Pass on a note of pliant's."""
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
        """Show a scene, instead of the one before."""
        engine = document["engine"]
        family = "cage" if engine == "transfer" else engine
        if self.panel is not None:
            self.panel.close()
        self.live.drop_others(*KEPT_LANES)
        self.timeline.show(1, 30.0, lambda frame: None)
        self.stage.clear()
        self.engine = family
        self._engine.value = ENGINES[family]
        self.panel = self._panels[family](self.desk, document)

    def _begin(self, document: Callable[[], Document]) -> None:
        """Show a scene as soon as it can be, whatever is being worked on."""
        self.live.drop_others(*KEPT_LANES)
        self.live.ask("open", lambda job: self.start(document()))

    def scene(self, document: Document) -> Any:
        """The scene of a document, as `pliant run` would read it from the folder."""
        with room(self.folders.all):
            return scene_from(document, self.folders.given[0])

    def read(self, reading: Callable[[], Any]) -> Any:
        """What a function reads, from the folders alone."""
        with room(self.folders.all):
            return reading()

    def open(self, file: Path) -> None:
        """Show what a file has: a scene, shapes to blend, a shape, or something for the scene that is shown."""

        def work(job: Job) -> None:
            self.say(f"Opening {file.name} ...")
            scene = file.suffix.lower() == ".toml"
            if scene or self.panel is None or not self.read(lambda: self._taken(file)):
                document = self.read(lambda: opened(file, self.engine))
                if document is None:
                    raise pliant.FileError(file.name, "holds nothing that the scene shown can use; open a shape first")
                self.start(document)
            self.say(f"Opened {file.name}.")

        self.live.ask("open", work)

    def _taken(self, file: Path) -> bool:
        return self.panel is not None and self.panel.take(file)

    # What it saves

    def save(self, name: str) -> Path:
        """Write the scene into the folder; uploaded files it uses go along."""
        assert self.panel is not None
        stem = name.strip().removesuffix(".toml") or "scene"
        path = self.folders.to_write(f"{stem}.toml")
        document = _with_files(self.panel.document(), self.folders, stem)
        write_scene(path, document)
        return path

    def export(self, name: str, suffix: str, report: Report) -> Path:
        """Run the scene and write its clip; the same as `pliant run` of the saved scene."""
        assert self.panel is not None
        document = self.panel.document()
        path = self.folders.to_write(f"{name.strip() or 'clip'}{suffix}")
        result = self.scene(document).run(report)
        pliant.write(path, result.clip)
        return path

    def close(self) -> Document | None:
        """End all work; the scene as it stood."""
        with suppress(Exception):
            self._left = self.panel.document() if self.panel is not None else None
        self.live.close()
        self.slow.close()
        self.timeline.close()
        return self._left

    # Its widgets

    def _build(self) -> None:
        gui, hear = self.client.gui, self.stage.hear
        gui.set_panel_label("pliant studio")
        gui.main_panel.dock_right()
        gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(190, 96, 36), control_width="medium")
        self._hint = gui.add_markdown("")
        self._status = gui.add_markdown("Ready.")
        with gui.add_folder("Open", expand_by_default=False):
            self._build_opening(gui, hear)
        self._engine = gui.add_dropdown("Work with", tuple(ENGINES.values()), initial_value=ENGINES["blend"])
        self._engine.on_update(hear(lambda event: self._switch()))
        below = gui.add_panel()
        below.float(x=16, y=-16, width=420)
        with below.add_tab("Timeline"):
            self.timeline = Timeline(gui, hear, self.fail)
        with gui.add_folder("Save and export", order=BELOW, expand_by_default=False):
            self._build_saving(gui, hear)

    def _build_opening(self, gui: Any, hear: Callable[..., Any]) -> None:
        if self._left is not None:
            back = gui.add_button("Bring back the last window's work")
            left = self._left
            back.on_click(hear(lambda event: self._begin(lambda: left)))
        example = gui.add_dropdown("Example", tuple(EXAMPLES), initial_value=next(iter(EXAMPLES)))
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
        path = kept_upload(self._uploads, file.name, file.content, largest=self.largest_upload)
        self.open(path)

    def _switch(self) -> None:
        """Another engine, for the same shape."""
        family = next(name for name, words in ENGINES.items() if words == self._engine.value)
        if family != self.engine and self.panel is not None:
            held = self.panel.document()
            self._begin(lambda: self.read(lambda: with_engine(held, family, self.folders)))

    def _build_saving(self, gui: Any, hear: Callable[..., Any]) -> None:
        name = gui.add_text("Name", "scene")
        save = gui.add_button("Save the scene")
        save.on_click(hear(lambda event: self._saved(name.value)))
        kind = gui.add_dropdown("Clip as", tuple(FORMATS))
        start = gui.add_button("Export the clip")
        bar = gui.add_progress_bar(0.0, visible=False)
        stop = gui.add_button("Stop the export", visible=False)
        start.on_click(hear(lambda event: self._export(name.value, FORMATS[kind.value], bar, stop)))
        stop.on_click(hear(lambda event: self.slow.drop("export")))

    def _saved(self, name: str) -> None:
        path = self.save(name)
        self._files.options = self._listed()
        self._notify("Saved", f"{path}. Run it with: pliant run {path.name}", "green")

    def _export(self, name: str, suffix: str, bar: Any, stop: Any) -> None:
        def work(job: Job) -> None:
            def report(done: int, total: int) -> None:
                job.check()
                bar.value = 100.0 * done / max(total, 1)

            bar.value, bar.visible, stop.visible = 0.0, True, True
            try:
                path = self.export(name, suffix, report)
            finally:
                bar.visible = stop.visible = False
            self._notify("Exported", f"{path}", "green")
            if path.is_file() and path.stat().st_size < LARGEST_DOWNLOAD:
                self.client.send_file_download(path.name, path.read_bytes())

        self.slow.ask("export", work)


def _with_files(document: Document, folders: Folders, stem: str) -> Document:
    """The document with paths from the scene's folder; uploaded files are copied there."""

    def kept(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: kept(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [kept(inner) for inner in value]
        return _kept_file(value, folders, stem) if isinstance(value, str) else value

    result: Document = kept(document)
    return result


def _kept_file(value: str, folders: Folders, stem: str) -> str:
    path = Path(value)
    if not path.is_absolute():
        return value
    if path.is_relative_to(folders.uploads) and path.is_file():
        place = folders.given[0] / f"{stem}-files"
        place.mkdir(exist_ok=True)
        shutil.copyfile(path, place / path.name)
        return f"{place.name}/{path.name}"
    return str(path.relative_to(folders.given[0])) if path.is_relative_to(folders.given[0]) else value
