"""What the window offers a panel, as long as its scene is open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pliant.app.scene.writing import Document as Document
from pliant.app.studio.folders import Folders
from pliant.app.studio.page import Page
from pliant.app.studio.scope import Scope
from pliant.app.studio.timeline import Timeline
from pliant.app.studio.viewport import Viewport
from pliant.app.studio.worker import Job, Worker


@dataclass(frozen=True)
class Desk:
    """What a panel works with."""

    scope: Scope
    stage: Viewport
    timeline: Timeline
    live: Worker
    """The window's; a panel has its work done by `ask`."""
    folders: Folders
    uploads: Path
    """This window's own folder, for files that it makes."""
    hint: Callable[[str], None]
    """Says what to drag or click next, in a sentence."""
    say: Callable[[str], None]
    """The status line."""
    fail: Callable[[Exception], None]
    """Says what went wrong."""
    scene: Callable[[Document], Any]
    """The scene of a document, read as `pliant run` would, confined to the folders."""
    read: Callable[[Callable[[], Any]], Any]
    """What a function reads, confined to the folders."""
    show: Callable[[Document], None]
    """Shows another scene instead of this one, such as the same with a further shape."""
    changed: Callable[[], None]
    """Notes that something was done, which can be undone."""
    seal: Callable[[str], None]
    """What is noted next is no part of a drag, and called so."""
    page: Page
    """The studio's own part of it."""

    @property
    def gui(self) -> Any:
        """viser's, of this scene alone; a panel adds its widgets in folders of its own."""
        return self.scope.gui

    def on(self, widget: Any, done: Callable[[], None]) -> None:
        """Call `done` when a widget is changed or clicked, in order; errors are shown on the page."""
        presses = hasattr(widget, "on_click")

        def heard(event: Any) -> None:
            if presses:
                self.seal(widget.label)
            done()

        (widget.on_click if presses else widget.on_update)(self.stage.hear(heard))

    def ask(self, lane: str, work: Callable[[Job], None], *, background: bool = False) -> Job:
        """Request work beside the page."""
        with self.scope.open():  # or it would replace what the next scene requests
            return self.live.ask(lane, work, background=background)

    def drop(self, lane: str) -> None:
        """Forget what was requested in a lane."""
        with self.scope.open():
            self.live.drop(lane)
