"""Controls of a cage on the stage: a handle and a ball for each, bars for the lengths that are kept.

Points are moved by arrows and have a thread to where the target got, if it did not get there; turns have rings. What
is drawn here is only touched by the window's worker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pliant.app.studio.panel import Desk
from pliant.app.studio.stage import Color, Drawn, Phase
from pliant.core import rotations
from pliant.core.shapes import bounding_diagonal
from pliant.core.topology import Floats
from pliant.engines.transfer.app.panel_document import Chosen, Place, rounded
from pliant.engines.transfer.app.posed_scene import CageScene
from pliant.engines.transfer.rig import CageRig

FOLDER = "/cage/controls"
POINT: Color = (236, 120, 40)
TURN: Color = (130, 90, 200)
BAR: Color = (40, 150, 110)
CHOSEN: Color = (250, 215, 60)
BALL = 0.014
"""Radius, over the target's diagonal."""
SCALE = 0.25
"""Of handles, over half the box."""
NEAR = 0.02
"""Of the diagonal: a vertex that is as near as this to a click is meant."""

Dragged = Callable[[Chosen, Floats, Floats, Phase], None]


class ControlNodes:
    """What the stage shows of a scene's controls."""

    def __init__(self, desk: Desk, scene: CageScene, dragged: Dragged, choose: Callable[[Chosen], None]) -> None:
        self._stage, self._dragged, self._choose = desk.stage, dragged, choose
        self._size = bounding_diagonal(scene.target.points)
        self._made: tuple[int, int, int] | None = None
        self.scene = scene
        self.held: Chosen | None = None
        """The one whose handle is being dragged: its place is the page's own."""
        self._places: Floats = np.zeros((0, 3))

    @property
    def radius(self) -> float:
        """Of the balls."""
        return BALL * self._size

    def draw(self, scene: CageScene, rig: CageRig | None, cage_points: Floats, chosen: Chosen | None) -> None:
        """Show the controls where they are in a deformed cage; without a rig yet, at rest."""
        self.scene = scene
        rest = [control.at for control in scene.gradients] + [control.at for control in scene.positions]
        every = np.concatenate([np.reshape(rest, (-1, 3)), scene.lengths.reshape(-1, 3)])
        now = every if rig is None or not len(every) else rig.carried(every, cage_points)
        turns, points = len(scene.gradients), len(scene.positions)
        goals = np.array([c.to for c in scene.positions]).reshape(-1, 3)
        ends = now[turns + points :].reshape(-1, 2, 3)
        self._handles(scene, now[:turns], goals)
        self._threads(now[turns : turns + points], goals)
        self._bars(ends)
        self._balls(np.concatenate([now[:turns], goals, ends.reshape(-1, 3)]), (turns, points, 2 * len(ends)), chosen)

    def mark(self, place: Floats | None) -> None:
        """Show where the length that is being placed starts."""
        self._stage.remove(f"{FOLDER}/first")
        if place is not None:
            self._stage.ball(f"{FOLDER}/first", place, self.radius, color=BAR)

    def at(self, start: Floats, direction: Floats, within: float = np.inf) -> Chosen | None:
        """The control whose ball a ray meets first, not farther away than `within`."""
        turns, points = len(self.scene.gradients), len(self.scene.positions)
        away = self._places - start
        along = away @ direction / np.linalg.norm(direction)
        beside = np.sqrt(np.maximum(np.einsum("ij,ij->i", away, away) - along**2, 0))
        met = np.flatnonzero((beside < 1.3 * self.radius) & (along > 0) & (along < within))
        if not len(met):
            return None
        k = int(met[np.argmin(along[met])])
        if k < turns:
            return Chosen("gradients", k)
        return Chosen("positions", k - turns) if k < turns + points else Chosen("lengths", (k - turns - points) // 2)

    def _handles(self, scene: CageScene, turned: Floats, goals: Floats) -> None:
        made = (len(turned), len(goals), len(scene.lengths))
        anew = made != self._made
        if anew:
            self._stage.remove(FOLDER)
            self._made = made
        for k, (place, control) in enumerate(zip(turned, scene.gradients, strict=True)):
            self._handle(Chosen("gradients", k), place, rotations.exp(control.turn), anew)
        for k, place in enumerate(goals):
            self._handle(Chosen("positions", k), place, rotations.IDENTITY, anew)

    def _handle(self, which: Chosen, place: Floats, turn: Floats, anew: bool) -> None:
        name = f"{FOLDER}/{which.kind}/{which.number}"
        if not anew:
            if which != self.held:
                self._stage.place(name, place, turn)
            return

        def moved(place: Floats, turn: Floats, phase: Phase) -> None:
            self.held = None if phase == "end" else which
            self._dragged(which, place, turn, phase)

        turns = which.kind == "gradients"
        self._stage.handle(name, place, moved, turn=turn, moves=not turns, turns=turns, scale=SCALE)

    def _threads(self, reached: Floats, goals: Floats) -> None:
        if len(goals):
            self._stage.lines(f"{FOLDER}/threads", np.stack([reached, goals], axis=1), color=POINT, width=2.0)

    def _bars(self, ends: Floats) -> None:
        if len(ends):
            self._stage.lines(f"{FOLDER}/bars", ends, color=BAR, width=4.0)

    def _balls(self, places: Floats, counts: tuple[int, int, int], chosen: Chosen | None) -> None:
        self._places = places
        if not len(places):
            return
        colors = np.repeat([TURN, POINT, BAR], counts, axis=0)
        if chosen is not None:
            first = {"gradients": 0, "positions": counts[0], "lengths": counts[0] + counts[1]}[chosen.kind]
            some = (2 * chosen.number, 2 * chosen.number + 2) if chosen.kind == "lengths" else (chosen.number,) * 2
            colors[first + some[0] : first + max(some[1], some[0] + 1)] = CHOSEN
        fresh = not self._stage.has(f"{FOLDER}/balls")
        node = self._stage.balls(f"{FOLDER}/balls", places, self.radius, colors)
        if fresh:
            node.on_click(self._stage.hear(self._ball_clicked))

    def _ball_clicked(self, event: Any) -> None:
        start = self._stage.world(event.ray_origin)
        found = self.at(start, self._stage.world(np.add(event.ray_origin, event.ray_direction)) - start)
        if found is not None:
            self._choose(found)


def place_hit(drawn: Drawn, start: Floats, direction: Floats) -> tuple[Place, float] | None:
    """Which place at rest a ray meets first where the shape is now, a vertex or a point on its surface; and how far."""
    hit, rest, now = drawn.hit(start, direction), drawn.shape.points, drawn.points
    size = bounding_diagonal(rest)
    if hit is None:
        return None
    if hit.corners is None or np.linalg.norm(now[hit.vertex] - hit.place) < NEAR * size:
        return hit.vertex, hit.away
    corners = np.vstack([now[hit.corners].T, np.full(3, size)])
    shares = np.linalg.lstsq(corners, np.append(hit.place, size), rcond=None)[0]
    return rounded(shares @ rest[hit.corners], size), hit.away
