"""What an engine's side of the page has to offer, and what the window offers it.

A panel holds the scene it shows as a document: the plain tables that a scene file has (docs/scene.md). Whatever the
page changes, the document says, so a scene that is saved and run from the command line gives what the page shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pliant.app.studio.folders import Folders
from pliant.app.studio.scope import Scope
from pliant.app.studio.stage import Stage
from pliant.app.studio.timeline import Timeline
from pliant.app.studio.worker import Job, Worker

Document = dict[str, Any]


class Panel(Protocol):
    """One engine at work on one scene. What it shows and runs belongs to the scene's scope, and ends with that."""

    def document(self) -> Document:
        """The scene as it stands, paths as the window gave them."""
        ...

    def take(self, file: Path) -> bool:
        """Make use of a further file (a motion, a skeleton, another shape); False if it has none for it."""
        ...


@dataclass(frozen=True)
class Desk:
    """What a panel works with, as long as its scene is open."""

    scope: Scope
    stage: Stage
    timeline: Timeline
    live: Worker
    """The window's; a panel has its work done by `ask`."""
    folders: Folders
    uploads: Path
    """This window's own folder, for files that it makes."""
    hint: Callable[[str], None]
    """Tells a visitor what to drag or click next, in a sentence."""
    say: Callable[[str], None]
    """The line that says how things stand."""
    fail: Callable[[Exception], None]
    """Tells what went wrong."""
    scene: Callable[[Document], Any]
    """The scene of a document, read as `pliant run` would, confined to the folders."""
    read: Callable[[Callable[[], Any]], Any]
    """What a function reads, confined to the folders."""
    show: Callable[[Document], None]
    """Shows another scene instead of this one, such as the same with a further shape."""

    @property
    def gui(self) -> Any:
        """viser's, of this scene alone; a panel adds its widgets in folders of its own."""
        return self.scope.gui

    def on(self, widget: Any, done: Callable[[], None]) -> None:
        """Call `done` when a widget is changed or clicked, in order, its errors told on the page."""
        listen = widget.on_click if hasattr(widget, "on_click") else widget.on_update
        listen(self.stage.hear(lambda event: done()))

    def ask(self, lane: str, work: Callable[[Job], None]) -> None:
        """Have something done beside the page."""
        with self.scope.open():  # or it would take the place of what the next scene asks for
            self.live.ask(lane, work)

    def drop(self, lane: str) -> None:
        """Have something not done that was asked for."""
        with self.scope.open():
            self.live.drop(lane)
