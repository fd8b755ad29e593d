"""The cage itself, edited on the page: its vertices are dragged while the shape is at rest.

Each edit is a mesh of its own among the window's files, which the scene names as its cage: so it can be undone, is
saved along with the scene, and is checked as any other cage is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.app.studio.viewport import CAGE_COLOR, HANDLE_COLOR, Grip, Phase
from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.shapes import Mesh, Shape
from pliant.core.topology import Floats
from pliant.engines.transfer.cage import Cage
from pliant.io import write

if TYPE_CHECKING:
    from pliant.engines.transfer.app.panel import CagePanel

VERTICES, VERTEX_HANDLE = "/cage/vertices", "/cage/vertices/handle"
VERTEX_RADIUS = 0.014
"""Of the balls at vertices, over half the box."""


class CageEditing:
    """Whether a panel's cage is edited, and its vertices on the stage. use: takes the file of another cage."""

    def __init__(self, panel: CagePanel, use: Callable[[dict[str, Any]], None]) -> None:
        self._panel, self._stage, self._use = panel, panel.desk.stage, use
        self.on = False
        self._cage: Mesh | None = None
        self._points: Floats = np.zeros((0, 3))
        self._chosen: int | None = None
        self._grip: Floats = np.zeros(3)  # where a vertex was that is dragged
        self._count = 0

    def show(self, cage: Mesh, target: Shape) -> None:
        """Have the vertices of a cage to drag, around its target at rest."""
        self._cage, self._points, self._target = cage, cage.points.copy(), target
        if self._chosen is not None and self._chosen >= len(cage.points):
            self._chosen = None
        self._draw()
        if self._chosen is not None:
            self._choose(self._chosen)

    def hide(self) -> None:
        """Have them no more."""
        self._chosen = None
        self._stage.remove(VERTICES)

    def _draw(self) -> None:
        colors = np.tile(CAGE_COLOR, (len(self._points), 1))
        if self._chosen is not None:
            colors[self._chosen] = HANDLE_COLOR
        grip = Grip(self._clicked, self._pulled)
        self._stage.balls(VERTICES, self._points, VERTEX_RADIUS * self._stage.half, colors, grip=grip)
        self._panel.draw_cage(self._points)

    def _clicked(self, start: Floats, direction: Floats) -> None:
        ahead = direction / np.linalg.norm(direction)
        along = (self._points - start) @ ahead
        beside = np.linalg.norm(self._points - start - along[:, None] * ahead, axis=1)
        near = beside < 3 * VERTEX_RADIUS * self._stage.half
        if near.any():
            self._choose(int(np.argmin(np.where(near, along, np.inf))))

    def _choose(self, vertex: int) -> None:
        self._chosen = vertex
        self._stage.handle(VERTEX_HANDLE, self._points[vertex], self._dragged, title=f"Cage vertex {vertex + 1}")
        self._draw()

    def _pulled(self, start: Floats, end: Floats, phase: Phase) -> None:
        """A vertex is dragged itself."""
        if phase == "start":
            self._choose(int(np.linalg.norm(self._points - start, axis=1).argmin()))
            self._grip = self._points[self._chosen].copy()
        self._stage.move(VERTEX_HANDLE, self._grip + end - start)
        self._dragged(self._grip + end - start, rotations.IDENTITY, phase)

    def _dragged(self, position: Floats, rotation: Floats, phase: Phase) -> None:
        if self._chosen is None or self._cage is None:
            return
        self._points[self._chosen] = position
        self._draw()
        if phase == "end" and not np.array_equal(self._points, self._cage.points):
            cage = self._cage.with_points(self._points.copy())
            self._panel.act(lambda: self._keep(cage))

    def _keep(self, cage: Mesh) -> None:
        """Have another cage, if it is one."""
        assert self._cage is not None
        if not share_inside(cage, self._target) >= share_inside(self._cage, self._target):
            self.show(self._cage, self._target)
            raise InputError("the cage would not be closed around the shape; drag the vertex less far")
        self._count += 1
        file = self._panel.desk.uploads / f"cage-{self._count}.obj"
        while file.exists():
            self._count += 1
            file = self._panel.desk.uploads / f"cage-{self._count}.obj"
        write(file, cage)
        self._use({"file": str(file)})


def share_inside(mesh: Mesh, shape: Shape) -> float:
    """Share of a shape's points that are inside a mesh; nan if it is no cage."""
    try:
        return float(Cage.of(mesh).tree.inside(shape.points).mean())
    except InputError:
        return math.nan
