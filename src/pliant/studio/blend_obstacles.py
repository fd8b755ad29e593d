"""Things in the way of a shape: balls, boxes and rods with handles, and what else a scene has for obstacles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from pliant import rotations
from pliant.contact import Box, Capsule, Obstacle, Sphere, parse_obstacle
from pliant.contact.solids import HalfSpace, across
from pliant.normals import unit
from pliant.shapes import Mesh
from pliant.studio.panel import Desk, Document
from pliant.studio.stage import OBSTACLE, Drawn, Phase
from pliant.topology import Floats

WORDS = {"sphere": "Ball", "box": "Box", "capsule": "Rod"}
"""What can be dragged, and what it is called."""
FIRST_SIZE = 8.0
"""Of a thing that is added, in hundredths of the shape's own."""
FLOOR = 1.5
"""Half the side of the square that is drawn for a plane, over the diagonal."""


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
        return self.solid is None and not isinstance(self.moving.obstacle, HalfSpace)


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
                thing.drawn[0].move(self._skin(thing.moving.at(frame)).points)

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
        thing.drawn.append(self.desk.stage.shape(f"{name}/shape", self._skin(at), color=OBSTACLE))
        with self.folder:
            word = WORDS.get(in_words(thing.solid).partition(":")[0], "Plane") if thing.solid else "Obstacle"
            thing.widgets = self.desk.gui.add_folder(f"{word} {thing.number}")
            with thing.widgets:
                self._widgets(thing)
        if thing.solid is None:
            return
        turns = isinstance(thing.solid, Capsule)

        def moved(place: Floats, turn: Floats, phase: Phase) -> None:
            self._move(thing, place, turn)

        self.desk.stage.handle(f"{name}/handle", thing.solid.middle, moved, turns=turns)

    def _widgets(self, thing: Thing) -> None:
        gui, solid = self.desk.gui, thing.solid
        if solid is not None and not isinstance(solid, HalfSpace):
            share = float(np.clip(round(100 * _size(solid) / self.diagonal, 1), 1.0, 60.0))
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
        solid = thing.solid
        step = rotations.multiply(turn, rotations.inverse(solid.turn)) if isinstance(solid, Capsule) else turn
        if isinstance(solid, Capsule):
            thing.solid = solid.moved(step, place - rotations.rotate(step, solid.middle))
        else:
            thing.solid = solid.moved((1.0, 0.0, 0.0, 0.0), place - solid.middle)
        self._redraw(thing)

    def _redraw(self, thing: Thing) -> None:
        assert thing.solid is not None
        thing.drawn[0].move(self._skin(thing.solid).points)
        self._changed()

    def _skin(self, obstacle: Obstacle) -> Mesh:
        """What is drawn of it."""
        if isinstance(obstacle, HalfSpace):
            return _square(obstacle, self.diagonal)
        surface = obstacle.surface
        if not isinstance(obstacle, Box):
            return surface
        corners = surface.points[surface.triangles].reshape(-1, 3)  # sides of their own, so that edges are sharp
        return Mesh(corners, np.arange(len(corners)).reshape(-1, 3))


def can_be_dragged(said: Document) -> bool:
    """Whether an obstacle's place can be said in the scene itself."""
    return said["what"].partition(":")[0].strip().lower() in (*WORDS, "plane") and "motion" not in said


def made(kind: str, at: Floats, size: float) -> Obstacle:
    """A ball of a radius, a box of twice its sides, or a lying rod four times as long as it is thick."""
    if kind == "sphere":
        return Sphere(at, size)
    if kind == "box":
        return Box(at, np.full(3, 2 * size))
    along = np.array([2.0 * size, 0.0, 0.0])
    return Capsule(at - along, at + along, size / 2)


def resized(solid: Obstacle, size: float) -> Obstacle:
    """The same thing about the same middle, of another size."""
    share = size / _size(solid)
    if isinstance(solid, Sphere):
        return Sphere(solid.centre, size, turn=solid.turn)
    if isinstance(solid, Box):
        return Box(solid.centre, solid.size * share, solid.rotation)
    assert isinstance(solid, Capsule)
    half = share * (solid.b - solid.a) / 2
    return Capsule(solid.middle - half, solid.middle + half, solid.radius * share, turn=solid.turn)


def in_words(solid: Obstacle) -> str:
    """An obstacle as scenes name it; all digits are kept."""
    if isinstance(solid, Sphere):
        return _named("sphere", solid.centre, solid.radius)
    if isinstance(solid, Box):
        return _named("box", solid.centre, *solid.size)
    if isinstance(solid, HalfSpace):
        return _named("plane", solid.point, *solid.normal)
    assert isinstance(solid, Capsule)
    return _named("capsule", solid.a, *solid.b, solid.radius)


def _named(kind: str, place: Floats, *numbers: float) -> str:
    return f"{kind}:{','.join(repr(float(number)) for number in (*place, *numbers))}"


def _size(solid: Obstacle) -> float:
    """Radius, half a side, or half the thickness of a rod times two: what the slider shows."""
    if isinstance(solid, Capsule):
        return 2 * solid.radius
    return float(solid.thickness) / 2


def _square(plane: HalfSpace, diagonal: float) -> Mesh:
    """A piece of a plane."""
    u, v = (FLOOR * diagonal * way for way in across(plane.normal))
    corners = plane.point + np.stack([-u - v, u - v, u + v, v - u])
    return Mesh(corners, np.array([[0, 1, 2], [0, 2, 3]]))
