"""A window of the studio on a cage without a browser, and what a visitor does in it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import pliant
from fake_viser import Client, Widget, all_done
from pliant import gallery
from pliant.app.studio.desk import Document
from pliant.app.studio.folders import Folders
from pliant.app.studio.session import Session
from pliant.core import rotations
from pliant.engines.transfer.app.panel import CagePanel

BAR = gallery.bar(500).base
TARGET, CAGE = {"file": "bar.obj"}, {"file": "cage.obj"}
TIP, ROOT = int(np.argmax(BAR.points[:, 0])), int(np.argmin(BAR.points[:, 0]))
BY_HAND = {
    "engine": "transfer",
    "target": TARGET,
    "cage": CAGE,
    "lattice": 16,
    "positions": [{"at": ROOT}, {"at": TIP}],
    "gradients": [{"at": [0.0, 0.0, 0.0]}],
}
BY_MOTION = {
    "engine": "transfer",
    "target": TARGET,
    "cage": CAGE,
    "lattice": 16,
    "sources": {"curl": {"gallery": "tentacle_curl", "vertices": 500, "last": 4}},
    "controls": [{"at": [1.0, 0.0, 0.0], "track": "all"}, {"at": [0.0, 0.0, 0.0]}],
    "held": [ROOT],
}
BY_MOTION["sources"]["curl"]["groups"] = {"all": list(range(300))}  # type: ignore[index]


class Window:
    """A window on a document, and what a visitor does in it."""

    def __init__(self, folder: Path, document: Document) -> None:
        self.client = Client()
        folders = Folders.of([folder], folder / "uploads")
        self.session = Session(self.client, folders, {"transfer": CagePanel}, document, largest_upload=1 << 20)

    @property
    def panel(self) -> Any:
        return self.session.panel

    def rest(self) -> None:
        assert all_done(self.session.live)
        assert not self.client.notes, self.client.notes

    @contextmanager
    def held(self) -> Iterator[None]:
        """Do nothing beside the page meanwhile."""
        go_on = threading.Event()
        self.session.live.ask("held", lambda job: go_on.wait(60))
        yield
        go_on.set()

    def widget(self, label: str) -> Widget:
        return self.client.gui[label]

    def handle(self, kind: str, number: int) -> Widget:
        return self.client.scene[f"/cage/controls/{kind}/{number}"]

    def pull(self, number: int, by: list[float]) -> None:
        """Drag a point by a way on the page."""
        handle = self.handle("positions", number)
        handle.drag(np.add(handle.position, by))
        handle.drag(phase="end")

    def click(self, at: Any, towards: Any) -> None:
        """Click on the target along a ray of the world."""
        stage = self.session.stage
        start, end = stage.shown(at), stage.shown(np.add(at, towards))
        self.client.scene["/cage/target"].click(start, end - start)

    @property
    def points(self) -> np.ndarray:
        """What the page shows, in the world."""
        vertices = self.client.scene["/cage/target"].vertices
        return self.session.stage.world(vertices)

    def ran(self) -> np.ndarray:
        """(frames, n, 3) what the document's scene gives."""
        return np.asarray(self.session.scene(self.panel.document()).run().clip.points)


def filled(folder: Path) -> Path:
    """A folder with the files of the scenes."""
    (folder / "uploads").mkdir()
    pliant.write(folder / "bar.obj", BAR)
    pliant.write(folder / "cage.obj", pliant.build_cage(BAR, faces=60))
    pliant.write(folder / "nod.bvh", nodding())
    return folder


def nodding() -> pliant.Motion:
    """Three frames of bones along the bar, whose far half turns."""
    places = np.array([[-1.9, 0.0, 0.0], [0.0, 0.0, 0.0], [1.9, 0.0, 0.0]])
    bones = pliant.Skeleton.from_positions(places, [-1, 0, 1], ["root", "half", "tip"])
    poses = [bones.pose({"half": rotations.from_axis_angle([0, 0, 1], 0.3 * k)}) for k in range(3)]
    turns, ways = (np.array([getattr(pose, key) for pose in poses]) for key in ("rotations", "translations"))
    return pliant.Motion(bones, turns, ways, 24.0)
