"""Balls in the way of flesh: obstacles of an elastic scene that are dragged about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pliant.studio.elastic_draft import Draft, significant
from pliant.studio.panel import Desk, Document
from pliant.studio.stage import OBSTACLE, Phase
from pliant.topology import Floats

PLACE = "/elastic/balls"
SIZE = 0.12
"""Radius of a new ball, over half the box."""


class Balls:
    """The balls among a draft's obstacles. changed: called when one is there, gone, moved or of another size."""

    def __init__(self, desk: Desk, draft: Draft, changed: Callable[[], None]) -> None:
        self._desk, self._draft, self._changed = desk, draft, changed
        with desk.gui.add_folder("Balls in the way", expand_by_default=False) as self.folder:
            add = desk.gui.add_button(
                "Add a ball", hint="Flesh gives way to it. It needs inertia, so that is switched on."
            )
            self._less = desk.gui.add_button("Take the last ball away", disabled=True)
            self._size = desk.gui.add_slider("Size of the last ball", 0.02, 0.6, 0.01, SIZE, disabled=True)
        desk.on(add, self.add)
        desk.on(self._less, self.take_away)
        desk.on(self._size, self._sized)

    @property
    def _all(self) -> list[Document]:
        """The draft's obstacles."""
        return list(self._draft.get("obstacles", []))

    def show(self) -> None:
        """Draw them, if they count."""
        self._desk.stage.remove(PLACE)
        mine = _balls(self._all)
        self._less.disabled = self._size.disabled = not mine
        if self._draft.static:
            return
        for k in mine:
            centre, radius = _parsed(self._all[k])
            self._desk.stage.ball(f"{PLACE}/ball{k}", centre, radius, color=OBSTACLE)
            self._desk.stage.handle(f"{PLACE}/handle{k}", centre, self._mover(k), scale=0.2)

    def add(self) -> None:
        """A ball before the middle of the body."""
        stage = self._desk.stage
        front = stage.world(np.array([0.15, -0.45, 0.1])) + 0.12 * stage.half * len(self._all)
        self._put([*self._all, _said(front, SIZE * stage.half)])
        self._draft.put("static", None)
        self.show()
        self._changed()

    def take_away(self) -> None:
        """One ball less."""
        others = self._all
        others.pop(_balls(others)[-1])
        self._put(others)
        self.show()
        self._changed()

    def _sized(self) -> None:
        every = self._all
        mine = _balls(every)
        if mine:
            every[mine[-1]] = _said(_parsed(every[mine[-1]])[0], self._size.value * self._desk.stage.half)
            self._put(every)
            self.show()
            self._changed()

    def _mover(self, k: int) -> Callable[[Floats, Floats, Phase], None]:
        def moved(place: Floats, turn: Floats, phase: Phase) -> None:
            every = self._all
            every[k] = _said(place, _parsed(every[k])[1])
            self._put(every)
            self._desk.stage.place(f"{PLACE}/ball{k}", place)
            self._changed()

        return moved

    def _put(self, obstacles: list[Document]) -> None:
        self._draft.put("obstacles", obstacles or None)


def _balls(obstacles: list[Document]) -> list[int]:
    """Which of the obstacles are balls that stay where they are put."""
    return [k for k, one in enumerate(obstacles) if one["what"].startswith("sphere:") and "motion" not in one]


def _parsed(obstacle: Document) -> tuple[Any, float]:
    x, y, z, radius = (float(number) for number in obstacle["what"].partition(":")[2].split(","))
    return np.array([x, y, z]), radius


def _said(centre: Any, radius: float) -> Document:
    return {"what": "sphere:" + ",".join(repr(number) for number in significant(*centre, radius))}
