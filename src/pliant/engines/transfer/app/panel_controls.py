"""Controls of a cage on the stage: a handle and a ball for each, bars for the lengths that are kept.

Position controls are moved by arrows, and a line leads to where the target got, if it did not get there; gradient
controls have rings. Only the window's worker draws here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from pliant.app.studio.desk import Desk
from pliant.app.studio.viewport import RGB, Drawn, Grip, Phase
from pliant.core import rotations
from pliant.core.shapes import bounding_diagonal
from pliant.core.topology import Floats
from pliant.engines.transfer.app.panel_document import Chosen, RestPoint, rounded
from pliant.engines.transfer.app.posed_scene import CageScene
from pliant.engines.transfer.rig import CageRig

CONTROL_NODES = "/cage/controls"
POINT_COLOR: RGB = (236, 120, 40)
ROTATION_COLOR: RGB = (130, 90, 200)
BAR_COLOR: RGB = (40, 150, 110)
CHOSEN_COLOR: RGB = (250, 215, 60)
CONTROL_RADIUS = 0.014
"""Radius, over the target's diagonal."""
HANDLE_SIZE = 0.25
"""Of handles, over half the box."""
VERTEX_REACH = 0.02
"""Of the diagonal: a vertex that is as near as this to a click is meant."""

Dragged = Callable[[Chosen, Floats, Floats, Phase], None]


class ControlNodes:
    """What the stage shows of a scene's controls."""

    def __init__(self, desk: Desk, scene: CageScene, dragged: Dragged, choose: Callable[[Chosen], None]) -> None:
        self._stage, self._dragged, self._choose = desk.stage, dragged, choose
        self._size = bounding_diagonal(scene.target.points)
        self._made: tuple[int, int, int] | None = None
        self.scene = scene
        self.dragged: Chosen | None = None
        """The one whose handle is being dragged: its position is the page's own."""
        self._points: Floats = np.zeros((0, 3))
        self._grip = Chosen("positions", 0), np.zeros(3)  # whose ball is dragged, and where it was

    @property
    def radius(self) -> float:
        """Of the balls."""
        return CONTROL_RADIUS * self._size

    def draw(self, scene: CageScene, rig: CageRig | None, cage_points: Floats, chosen: Chosen | None) -> None:
        """Show the controls where they are in a deformed cage; without a rig yet, at rest."""
        self.scene = scene
        rest = [control.at for control in scene.gradients] + [control.at for control in scene.positions]
        every = np.concatenate([np.reshape(rest, (-1, 3)), scene.lengths.reshape(-1, 3)])
        now = every if rig is None or not len(every) else rig.carried(every, cage_points)
        gradients, points = len(scene.gradients), len(scene.positions)
        goals = np.array([c.to for c in scene.positions]).reshape(-1, 3)
        ends = now[gradients + points :].reshape(-1, 2, 3)
        self._handles(scene, now[:gradients], goals)
        if chosen is not None:
            self._stage.selection.select(handle_name(chosen))
        self._threads(now[gradients : gradients + points], goals)
        self._bars(ends)
        self._balls(
            np.concatenate([now[:gradients], goals, ends.reshape(-1, 3)]), (gradients, points, 2 * len(ends)), chosen
        )

    def mark(self, point: Floats | None) -> None:
        """Show where the length that is being placed starts."""
        self._stage.remove(f"{CONTROL_NODES}/first")
        if point is not None:
            self._stage.ball(f"{CONTROL_NODES}/first", point, self.radius, color=BAR_COLOR)

    def at(self, start: Floats, direction: Floats, within: float = np.inf) -> Chosen | None:
        """The control whose ball a ray meets first, not farther away than `within`."""
        away = self._points - start
        along = away @ direction / np.linalg.norm(direction)
        beside = np.sqrt(np.maximum(np.einsum("ij,ij->i", away, away) - along**2, 0))
        met = np.flatnonzero((beside < 1.3 * self.radius) & (along > 0) & (along < within))
        return self._of_ball(int(met[np.argmin(along[met])])) if len(met) else None

    def _of_ball(self, k: int) -> Chosen:
        """The control that a ball is drawn for."""
        gradients, points = len(self.scene.gradients), len(self.scene.positions)
        if k < gradients:
            return Chosen("gradients", k)
        k -= gradients
        return Chosen("positions", k) if k < points else Chosen("lengths", (k - points) // 2)

    def _handles(self, scene: CageScene, rotated: Floats, goals: Floats) -> None:
        made = (len(rotated), len(goals), len(scene.lengths))
        anew = made != self._made or not self._stage.has(f"{CONTROL_NODES}/balls")
        if anew:
            self._stage.remove(CONTROL_NODES)
            self._made = made
        for k, (point, control) in enumerate(zip(rotated, scene.gradients, strict=True)):
            self._handle(Chosen("gradients", k), point, rotations.exp(control.turn), anew)
        for k, point in enumerate(goals):
            self._handle(Chosen("positions", k), point, rotations.IDENTITY, anew)

    def _handle(self, which: Chosen, point: Floats, rotation: Floats, anew: bool) -> None:
        name = handle_name(which)
        if not anew:
            if which != self.dragged:
                self._stage.move(name, point, rotation)
            return
        rotates = which.kind == "gradients"
        self._stage.handle(
            name, point, partial(self._moved, which), title=which.label, rotation=rotation, moves=not rotates,
            rotates=rotates, scale=HANDLE_SIZE, select=False, chosen=partial(self._choose, which),
        )  # fmt: skip

    def _moved(self, which: Chosen, position: Floats, rotation: Floats, phase: Phase) -> None:
        self.dragged = None if phase == "end" else which
        self._dragged(which, position, rotation, phase)

    def _threads(self, reached: Floats, goals: Floats) -> None:
        if len(goals):
            self._stage.lines(
                f"{CONTROL_NODES}/threads", np.stack([reached, goals], axis=1), color=POINT_COLOR, width=2.0
            )

    def _bars(self, ends: Floats) -> None:
        if len(ends):
            self._stage.lines(f"{CONTROL_NODES}/bars", ends, color=BAR_COLOR, width=4.0)

    def _balls(self, points: Floats, counts: tuple[int, int, int], chosen: Chosen | None) -> None:
        self._points = points
        if not len(points):
            return
        colors = np.repeat([ROTATION_COLOR, POINT_COLOR, BAR_COLOR], counts, axis=0)
        if chosen is not None:
            first = {"gradients": 0, "positions": counts[0], "lengths": counts[0] + counts[1]}[chosen.kind]
            some = (2 * chosen.number, 2 * chosen.number + 2) if chosen.kind == "lengths" else (chosen.number,) * 2
            colors[first + some[0] : first + max(some[1], some[0] + 1)] = CHOSEN_COLOR
        grip = Grip(self._ball_clicked, self._ball_dragged)
        self._stage.balls(f"{CONTROL_NODES}/balls", points, self.radius, colors, grip=grip)

    def _ball_clicked(self, start: Floats, direction: Floats) -> None:
        found = self.at(start, direction)
        if found is not None:
            self._choose(found)

    def _ball_dragged(self, start: Floats, end: Floats, phase: Phase) -> None:
        """A point is dragged itself; of other controls the ball is chosen."""
        if phase == "start":
            k = int(np.linalg.norm(self._points - start, axis=1).argmin())
            self._grip = self._of_ball(k), self._points[k]
            self._choose(self._grip[0])
        which, origin = self._grip
        if which.kind == "positions":
            self._stage.move(handle_name(which), origin + end - start)
            self._moved(which, origin + end - start, rotations.IDENTITY, phase)


def handle_name(which: Chosen) -> str:
    """What the stage calls a control's handle."""
    return f"{CONTROL_NODES}/{which.kind}/{which.number}"


def point_hit(drawn: Drawn, start: Floats, direction: Floats) -> tuple[RestPoint, float] | None:
    """The vertex or point of the rest surface that a ray meets first where the shape is now, and how far away."""
    hit, rest, now = drawn.hit(start, direction), drawn.shape.points, drawn.points
    size = bounding_diagonal(rest)
    if hit is None:
        return None
    if hit.corners is None or np.linalg.norm(now[hit.vertex] - hit.point) < VERTEX_REACH * size:
        return hit.vertex, hit.away
    corners = np.vstack([now[hit.corners].T, np.full(3, size)])
    shares = np.linalg.lstsq(corners, np.append(hit.point, size), rcond=None)[0]
    return rounded(shares @ rest[hit.corners], size), hit.away
