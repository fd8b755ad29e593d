"""What is in the way of flesh: all obstacles of an elastic scene are seen, and those that stay can be dragged about."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from pliant.app.studio.echoes import Echoes
from pliant.app.studio.obstacles import can_be_dragged, can_turn, dragged, in_words, made, moves, resized, size_of, skin
from pliant.app.studio.panel import Desk, Document
from pliant.app.studio.stage import OBSTACLE, Drawn, Phase
from pliant.contact import HalfSpace, MovingObstacle, Obstacle, parse_obstacle
from pliant.core.shapes import Mesh
from pliant.core.topology import Floats
from pliant.engines.simulate.app.panel_document import Draft
from pliant.engines.simulate.app.scene import ElasticScene

PLACE = "/elastic/obstacles"
SIZE = 0.12
"""Radius of a new ball, over half the box."""


class InTheWay:
    """The obstacles of a draft. changed: called when one is there, gone, moved or of another size."""

    def __init__(self, desk: Desk, draft: Draft, changed: Callable[[], None]) -> None:
        self._desk, self._draft, self._changed, self._echoes = desk, draft, changed, Echoes(desk)
        self._read: list[tuple[Document, MovingObstacle]] | None = (
            None  # those that only a scene can tell, once one was read
        )
        self._solids: dict[int, Obstacle] = {}
        self._moving: list[tuple[MovingObstacle, Drawn]] = []
        self._drawing = threading.RLock()  # the page's loop, the worker and the timeline all do
        with desk.gui.add_folder("In the way", expand_by_default=False):
            self._add = desk.gui.add_button(
                "Add a ball", disabled=True, hint="Flesh gives way to it. It needs inertia, so that is switched on."
            )
            self._less = desk.gui.add_button("Take the last one away", disabled=True)
            self._size = desk.gui.add_slider("Size of the last one", 0.02, 0.6, 0.01, SIZE, disabled=True)
        desk.on(self._add, self.add)
        desk.on(self._less, self.take_away)
        self._echoes.on(self._size, self._sized)

    @property
    def _all(self) -> list[Document]:
        """The draft's obstacles."""
        return list(self._draft.get("obstacles", []))

    def know(self, document: Document, scene: ElasticScene) -> None:
        """Learn from the scene of a document where the obstacles are that move, or are named by files."""
        pairs = list(zip(document.get("obstacles", []), scene.obstacles, strict=True))
        fixed = [(said, moving) for said, moving in pairs if not can_be_dragged(said)]
        if self._read is None or (not scene.static and [said for said, _ in fixed] != [said for said, _ in self._read]):
            self._read = fixed
            self._add.disabled = False
            self.show()

    def show(self) -> None:
        """Draw them, if they count."""
        with self._drawing:
            self._desk.stage.remove(PLACE)
            self._solids, self._moving = {}, []
            every = self._all
            for k, said in enumerate(every):
                if can_be_dragged(said):
                    self._solids[k] = parse_obstacle(said["what"])
                if not self._draft.static:
                    self._draw(k, said)
            self._show_last(len(every) - 1)

    def frame(self, frame: float) -> None:
        """Draw those that move as they are at a frame."""
        with self._drawing:
            for moving, drawn in self._moving:
                drawn.move(self._skin(moving.at(frame)).points)

    def add(self) -> None:
        """A ball before the middle of the body."""
        stage = self._desk.stage
        front = stage.world(np.array([0.15, -0.45, 0.1])) + 0.12 * stage.half * len(self._all)
        self._draft.put("static", None)
        self._put([*self._all, {"what": in_words(made("sphere", front, SIZE * stage.half))}])

    def take_away(self) -> None:
        """The last one."""
        self._put(self._all[:-1])

    # How they are shown

    def _draw(self, k: int, said: Document) -> None:
        stage, solid = self._desk.stage, self._solids.get(k)
        if solid is None:
            moving = next((moving for known, moving in self._read or [] if known == said), None)
            if moving is not None:
                drawn = stage.shape(f"{PLACE}/shape{k}", self._skin(moving.at(0)), color=OBSTACLE)
                self._moving += [(moving, drawn)] if moves(moving) else []
            return
        drawn = stage.shape(f"{PLACE}/shape{k}", self._skin(solid), color=OBSTACLE)
        stage.handle(f"{PLACE}/handle{k}", solid.middle, self._mover(k, drawn), turns=can_turn(solid), scale=0.2)

    def _skin(self, obstacle: Obstacle) -> Mesh:
        return skin(obstacle, 2 * self._desk.stage.half)

    def _show_last(self, last: int) -> None:
        solid = self._solids.get(last)
        sized = solid is not None and not isinstance(solid, HalfSpace)
        self._less.disabled, self._size.disabled = last < 0, not sized
        if solid is not None and sized:
            self._echoes.show(self._size, size_of(solid) / self._desk.stage.half)

    # What a visitor does

    def _sized(self, size: float) -> None:
        every = self._all
        solid = self._solids[len(every) - 1]
        every[-1] = {**every[-1], "what": in_words(resized(solid, size * self._desk.stage.half))}
        self._put(every)

    def _mover(self, k: int, drawn: Drawn) -> Callable[[Floats, Floats, Phase], None]:
        def moved(place: Floats, turn: Floats, phase: Phase) -> None:
            with self._drawing:
                if k not in self._solids:  # taken away just now
                    return
                solid = self._solids[k] = dragged(self._solids[k], place, turn)
                every = self._all
                every[k] = {**every[k], "what": in_words(solid)}
                self._draft.put("obstacles", every)
                drawn.move(self._skin(solid).points)
            self._changed()

        return moved

    def _put(self, obstacles: list[Document]) -> None:
        self._draft.put("obstacles", obstacles or None)
        self.show()
        self._changed()
