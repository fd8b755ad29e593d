"""Drawing bones: clicks through the body set joints, and the body is made of them when it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pliant.app.studio.desk import Document
from pliant.app.studio.worker import Job
from pliant.core.errors import InputError
from pliant.core.shapes import PointCloud
from pliant.core.skeleton import Skeleton
from pliant.core.topology import Floats
from pliant.engines.simulate.app.panel_bones import CLICK_REACH, Drawing, clicked_point, joint_near
from pliant.engines.simulate.app.panel_controls import DrawControls
from pliant.engines.simulate.app.panel_document import bone_tables
from pliant.geometry.body_plan.joints import body_skeleton
from pliant.geometry.skeletons.curve_skeleton import extract_skeleton

if TYPE_CHECKING:
    from pliant.engines.simulate.app.panel import ElasticPanel

OPACITY = 0.35
"""Of the body meanwhile."""
HINT = (
    "**Click through the body** to add a joint half-way through it. Click a joint to go on from there. "
    "Then press **Put flesh on the bones**."
)


class DrawingMode:
    """The part of a panel that draws bones."""

    def __init__(self, panel: ElasticPanel) -> None:
        self._panel = panel
        self._drawing: Drawing | None = None
        self._known: set[str] = set()
        """Joints that there are, or were since drawing began."""
        self.controls = DrawControls(panel.widgets, self)

    @property
    def on(self) -> bool:
        """Whether bones are drawn now."""
        return self._drawing is not None

    def switch(self, on: bool) -> None:
        """Begin or end to draw."""
        panel = self._panel
        if on == self.on or panel.pose is None:
            return
        shape = panel.drawn.shape
        if on and isinstance(shape, PointCloud):
            self.controls.show(False, None)
            raise InputError("points without faces have no inside to click through; open a file with bones instead")
        self._drawing = Drawing(panel.pose.skeleton) if on else None
        self._known = set(panel.pose.skeleton.names)
        panel.desk.timeline.stop()
        panel.drawn.fade(OPACITY if on else None)
        if on:
            panel.drawn.move(shape.points)
            panel.desk.hint(HINT)
        panel.refresh()
        self._show()

    def click(self, origin: Floats, direction: Floats) -> None:
        """Choose the joint that a click is on, or add one where it goes through the body."""
        drawing, panel = self._drawing, self._panel
        assert drawing is not None
        near = None
        if drawing.pose is not None:
            positions = drawing.pose.world()[0]
            near = joint_near(positions, origin, direction, CLICK_REACH * panel.bones.radius)
        if near is not None:
            drawing.chosen = drawing.bones[near]["name"]
            self._show()
            return
        shape = panel.drawn.shape
        point = clicked_point(shape, shape.points, origin, direction)
        if point is None:
            panel.desk.hint("That click did not go through the body. " + HINT)
            return
        drawing.add(point)
        self._written()

    @property
    def unwritten(self) -> list[Document] | None:
        """What is drawn, if that is nothing, which no document has."""
        return [] if self._drawing is not None and not self._drawing.bones else None

    def reload(self, unwritten: list[Document] | None) -> None:
        """Go on from the bones of the document."""
        drawing, panel = self._drawing, self._panel
        if drawing is None or panel.pose is None:
            return
        written = panel.draft.get("skeleton", {}).get("bones")
        drawing.put(bone_tables(panel.pose.skeleton) if written is None else written if unwritten is None else [])
        self._show()

    def clear(self) -> None:
        """No joints; the first click sets the root."""
        if self._drawing is not None:
            self._drawing.clear()
            self._written()

    def find(self) -> None:
        """The joints that the shape shows by itself."""
        panel = self._panel

        def work(job: Job) -> None:
            panel.desk.say("Looking for the bones, some seconds ...")
            shape = panel.drawn.shape
            assert not isinstance(shape, PointCloud)
            planned = body_skeleton(shape)
            found: Skeleton = extract_skeleton(shape) if planned is None else planned[0]
            job.check()
            if self._drawing is not None:
                self._drawing.copy(found)
                self._written()

        panel.desk.ask("bones", work)

    def rename(self, name: str) -> None:
        """Call the chosen joint something else."""
        drawing = self._drawing
        if drawing is not None and drawing.chosen is not None and name.strip() != drawing.chosen:
            old = drawing.chosen
            drawing.rename(old, name)
            self._written({old: name.strip()})

    def _written(self, renamed: dict[str, str] | None = None) -> None:
        """Write what is drawn into the document."""
        drawing, draft = self._drawing, self._panel.draft
        assert drawing is not None
        if drawing.bones:
            draft.set_bones(drawing.bones, renamed, before=tuple(self._known))
            self._known |= {bone["name"] for bone in drawing.bones}
            draft.by_hand = True
        self._panel.desk.changed()
        self._show()

    def _show(self) -> None:
        drawing, bones = self._drawing, self._panel.bones
        if drawing is None:
            self.controls.show(False, None)
            return
        self.controls.show(True, drawing.chosen)
        if drawing.pose is None:
            bones.clear()
            return
        names = list(drawing.pose.skeleton.names)
        bones.show(drawing.pose, names.index(drawing.chosen) if drawing.chosen is not None else None, seen=True)
