"""A window of the studio on flesh and bones without a browser, and what a visitor does in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fake_viser import Client, Widget, all_done
from pliant import gallery
from pliant.app.studio.desk import Document
from pliant.app.studio.folders import Folders
from pliant.app.studio.session import Session
from pliant.core import rotations
from pliant.engines.simulate.app.panel import ElasticPanel

TENTACLE: Document = {
    "engine": "simulate",
    "shape": {"gallery": "tentacle", "vertices": 500},
    "skeleton": {"gallery": "tentacle"},
    "nodes": 150,
    "motion": {"keys": [{"time": 0.0}]},
    "static": True,
}
SWINGING: Document = {key: value for key, value in TENTACLE.items() if key != "static"}
SKELETON = gallery.tentacle_skeleton()
TURN = "/elastic/turn"


class Window:
    """A window on a document, and what a visitor does in it."""

    def __init__(self, folder: Path, document: Document) -> None:
        self.client = Client()
        (folder / "uploads").mkdir(exist_ok=True)
        folders = Folders.of([folder], folder / "uploads")
        self.session = Session(self.client, folders, {"simulate": ElasticPanel}, document, largest_upload=1 << 20)

    @property
    def panel(self) -> Any:
        return self.session.panel

    @property
    def document(self) -> Document:
        return self.panel.document()

    @property
    def points(self) -> np.ndarray:
        """What is shown."""
        return self.panel.drawn.points

    def run(self) -> Any:
        """The clip of the scene that would be saved."""
        return self.session.scene(self.document).run().clip

    def rest(self) -> None:
        assert all_done(self.session.live)
        assert not self.client.notes

    def noted(self) -> None:
        """Wait until what was done is a step of the history."""
        self.rest()
        assert self.session.notes.idle(10)

    def widget(self, label: str) -> Widget:
        return self.client.gui[label]

    def press(self, label: str) -> None:
        self.widget(label).press()
        self.rest()

    def stand(self) -> None:
        """Let nothing play."""
        self.session.timeline.stop()
        time.sleep(0.1)  # a frame may just be drawn

    def choose(self, joint: str) -> None:
        self.widget("Bone").set(joint)

    def turn(self, axis: list[float], degrees: float, steps: int = 1) -> None:
        """Turn the handle about an axis of the page."""
        handle = self.client.scene[TURN]
        first = np.array(handle.wxyz)
        handle.drag(phase="start")
        for k in range(1, steps + 1):
            way = rotations.from_axis_angle(axis, np.radians(degrees) * k / steps)
            handle.drag(wxyz=rotations.multiply(way, first))
        handle.drag(phase="end")

    def click(self, at: Any, towards: Any) -> None:
        """Click on the body along a ray of the world."""
        stage = self.session.stage
        start, end = stage.shown(at), stage.shown(np.add(at, towards))
        self.client.scene["/elastic/body"].click(start, end - start)
        self.rest()


@contextmanager
def windows(folder: Path) -> Iterator[Callable[[Document], Window]]:
    """Opens windows, each at rest, and closes them in the end."""
    made: list[Window] = []

    def opened(document: Document) -> Window:
        made.append(Window(folder, document))
        made[-1].rest()
        return made[-1]

    yield opened
    for one in made:
        one.session.close()
