"""Blended shapes on the page: a slider a shape, and what pulls and stands in the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pliant.blend import Blendshapes
from pliant.clips import Pose
from pliant.scene.elastic import up_axis
from pliant.studio.panel import Desk, Document
from pliant.studio.worker import Job

COARSE = 3
"""Iterations of a shape while a slider is dragged."""


class BlendPanel:
    """See `pliant.studio.panel.Panel`."""

    def __init__(self, desk: Desk, document: Document) -> None:
        self.desk, self._document = desk, document
        self.folder = desk.gui.add_folder("Shapes")
        self.rig: Blendshapes | None = None
        self.sliders: dict[str, Any] = {}
        desk.hint("One moment: springs are being put into the shapes.")
        desk.ask("open", self._set_up)

    def _set_up(self, job: Job) -> None:
        scene = self.desk.scene(self._document)
        base = scene.shapes.base
        self.desk.stage.look_at(base.points, up_axis(base))
        self.drawn = self.desk.stage.shape("/shape", base)
        self.rig = scene.rig()
        with self.folder:
            for name in scene.shapes.names[1:]:
                slider = self.desk.gui.add_slider(name, min=-0.5, max=1.5, step=0.01, initial_value=0.0)
                self.sliders[name] = slider
                self.desk.on(slider, self._changed)
        self.desk.hint("**Drag a slider** to blend the shapes.")

    def _changed(self) -> None:
        self.desk.ask("pose", self._pose)

    def _pose(self, job: Job) -> None:
        assert self.rig is not None
        weights = {name: slider.value for name, slider in self.sliders.items()}
        coarse = self.rig.solve(weights, iterations=COARSE)
        self.drawn.move(coarse.points)
        if job.settled():
            fine = self.rig.solve(weights, watch=job.check)
            self.drawn.move(fine.points)

    def document(self) -> Document:
        return self._document

    def take(self, file: Path) -> bool:
        return False

    def close(self) -> None:
        self.folder.remove()


__all__ = ["BlendPanel", "Pose"]
