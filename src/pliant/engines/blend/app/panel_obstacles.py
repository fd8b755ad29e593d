"""Things in the way of a shape: balls, boxes and rods with handles, and what else a scene has for obstacles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from pliant.app.studio.obstacles import (
    WORDS,
    can_be_dragged,
    can_turn,
    dragged,
    in_words,
    made,
    moves,
    resized,
    size_of,
    skin,
)
from pliant.app.studio.panel import Desk, Document
from pliant.app.studio.stage import OBSTACLE, Drawn, Phase
from pliant.contact import HalfSpace, Obstacle, parse_obstacle
from pliant.core.normals import unit
from pliant.core.topology import Floats

FIRST_SIZE = 8.0
"""Of a thing that is added, in hundredths of the shape's own."""


@dataclass
class Thing:
    """One obstacle on the page."""

    said: Document
    """As the scene says it."""
    solid: Obstacle | None
    """Where it is now, if it can be dragged."""
    moving: Any
    """Where it is at a frame, if it cannot."""
    number: int
    drawn: list[Drawn] = field(default_factory=list)
    widgets: Any = None
    size: Any = None

    @property
    def moves(self) -> bool:
        """Whether frames differ in where it is."""
        return self.solid is None and moves(self.moving)


class Obstacles:
    """What the shape gives way to. changed: called when something has moved, come or gone."""

    def __init__(self, desk: Desk, box: tuple[Floats, Floats], changed: Callable[[], None]) -> None:
        self.desk, self._changed = desk, changed
        self.low, self.high = box
        self.diagonal = float(np.linalg.norm(self.high - self.low))
        self.things: list[Thing] = []
        self._count = 0
        self.folder = desk.gui.add_folder("In the way", expand_by_default=True)
        with self.folder:
            for kind, word in WORDS.items():
                button = desk.gui.add_button(f"Add a {word.lower()}")
                desk.on(button, partial(self.add, kind))

    def said(self) -> list[Document]:
        """The scene's tables [[obstacles]]."""
        return [{**thing.said, "what": in_words(thing.solid)} if thing.solid else thing.said for thing in self.things]

    def now(self, frame: float) -> list[Obstacle]:
        """Where they are at a frame."""
        return [thing.solid or thing.moving.at(frame) for thing in list(self.things)]

    def show(self, frame: float) -> None:
        """Draw those that move by themselves as they are at a frame."""
        for thing in list(self.things):
            if thing.moves:
                thing.drawn[0].move(skin(thing.moving.at(frame), self.diagonal).points)

    def take(self, said: list[Document], scene_obstacles: Any) -> None:
        """Show what a scene has."""
        for entry, moving in zip(said, scene_obstacles, strict=True):
            solid = parse_obstacle(entry["what"]) if can_be_dragged(entry) else None
            self._show(Thing(entry, solid, moving, self._next()), moving.at(0))

    def add(self, kind: str) -> None:
        """Put something before the shape, not touching it."""
        size = FIRST_SIZE / 100 * self.diagonal
        stage = self.desk.stage
        towards = unit(stage.world((0.0, -1.0, 0.0)) - stage.world((0.0, 0.0, 0.0)))
        middle = (self.low + self.high) / 2
        depth = float(np.abs((self.high - self.low) @ towards)) / 2
        across = unit(stage.world((1.0, 0.0, 0.0)) - stage.world((0.0, 0.0, 0.0)))
        aside = (-1) ** len(self.things) * ((len(self.things) + 1) // 2)  # beside the one before, to either side
        at = middle + (depth + 1.4 * size) * towards + 3 * size * aside * across
        solid = made(kind, at, size)
        self._show(Thing({"what": in_words(solid)}, solid, None, self._next()), solid)
        self.desk.hint(f"**Drag the {WORDS[kind].lower()}'s arrows** into the shape: it gives way.")
        self._changed()

    def remove(self, thing: Thing) -> None:
        """Take something away."""
        self.things.remove(thing)
        thing.widgets.remove()
        self.desk.stage.remove(f"/blend/obstacle {thing.number}")
        self._changed()

    # How it is shown

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _show(self, thing: Thing, at: Obstacle) -> None:
        self.things.append(thing)
        name = f"/blend/obstacle {thing.number}"
        thing.drawn.append(self.desk.stage.shape(f"{name}/shape", skin(at, self.diagonal), color=OBSTACLE))
        with self.folder:
            word = WORDS.get(in_words(thing.solid).partition(":")[0], "Plane") if thing.solid else "Obstacle"
            thing.widgets = self.desk.gui.add_folder(f"{word} {thing.number}")
            with thing.widgets:
                self._widgets(thing)
        if thing.solid is None:
            return

        def moved(place: Floats, turn: Floats, phase: Phase) -> None:
            self._move(thing, place, turn)

        self.desk.stage.handle(f"{name}/handle", thing.solid.middle, moved, turns=can_turn(thing.solid))

    def _widgets(self, thing: Thing) -> None:
        gui, solid = self.desk.gui, thing.solid
        if solid is not None and not isinstance(solid, HalfSpace):
            share = float(np.clip(round(100 * size_of(solid) / self.diagonal, 1), 1.0, 60.0))
            thing.size = gui.add_slider("Size in % of the shape", min=1.0, max=60.0, step=0.5, initial_value=share)
            self.desk.on(thing.size, lambda: self._resize(thing))
        elif solid is None:
            gui.add_markdown(str(thing.said["what"]).rpartition("/")[2] + " stays as the scene has it.")
        self.desk.on(gui.add_button("Take it away"), lambda: self.remove(thing))

    def _resize(self, thing: Thing) -> None:
        assert thing.solid is not None
        thing.solid = resized(thing.solid, thing.size.value / 100 * self.diagonal)
        self._redraw(thing)

    def _move(self, thing: Thing, place: Floats, turn: Floats) -> None:
        assert thing.solid is not None
        thing.solid = dragged(thing.solid, place, turn)
        self._redraw(thing)

    def _redraw(self, thing: Thing) -> None:
        assert thing.solid is not None
        thing.drawn[0].move(skin(thing.solid, self.diagonal).points)
        self._changed()
