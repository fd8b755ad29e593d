"""Obstacles on the page, for every engine that has contact: drawn, added, dragged, resized and removed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pliant.app.studio.desk import Desk, Document
from pliant.app.studio.viewport import OBSTACLE_COLOR, Drawn, Phase
from pliant.contact import Box, Capsule, HalfSpace, MovingObstacle, Obstacle, Sphere, parse_obstacle
from pliant.contact.obstacles import DeformingObstacle
from pliant.contact.solids import across
from pliant.core import rotations
from pliant.core.normals import unit
from pliant.core.options import OBSTACLES_FOLDER
from pliant.core.shapes import Mesh
from pliant.core.topology import Floats

OBSTACLE_LABELS = {"sphere": "Ball", "box": "Box", "capsule": "Rod"}
"""What can be added, and what it is called."""
LEAST_DEGREES = 1e-9
"""Of a rotation that is more than rounding."""
FIRST_SIZE = 8.0
"""Of what is added, in hundredths of the shape's diagonal."""
SIZE_RANGE = (1.0, 60.0)
"""What the slider of the size goes through, likewise."""
HALF_SQUARE = 1.5
"""Half the side of the square that is drawn for a plane, over the diagonal."""


@dataclass(eq=False)
class Shown:
    """One obstacle on the page."""

    given: Document
    """As the scene has it now."""
    solid: Obstacle | None
    """What that is, if it can be dragged."""
    moving: MovingObstacle | None
    """Where it is at a frame, if it cannot."""
    node: str
    drawn: Drawn
    folder: Any = None

    def at(self, frame: float) -> Obstacle:
        """The obstacle at a frame."""
        if self.solid is not None:
            return self.solid
        assert self.moving is not None
        return self.moving.at(frame)

    @property
    def moves(self) -> bool:
        """Whether frames differ in where it is."""
        moving = self.moving
        return self.solid is None and (isinstance(moving, DeformingObstacle) or len(moving.keys) > 1)  # type: ignore[union-attr]


class Obstacles:
    """What the shape gives way to, in a folder of the page.

    node: begins the names of what is drawn. changed: called when one was added, removed, moved or resized.
    """

    def __init__(self, desk: Desk, node: str, changed: Callable[[], None]) -> None:
        self.desk, self._node, self._changed = desk, node, changed
        self.shown: list[Shown] = []
        self._count = 0
        self._box: tuple[Floats, Floats] = np.zeros(3), np.zeros(3)
        self._buttons = []
        self.folder = desk.gui.add_folder(OBSTACLES_FOLDER)
        with self.folder:
            for kind, label in OBSTACLE_LABELS.items():
                hint = "Something to push into the shape, which gives way"
                self._buttons.append(desk.gui.add_button(f"Add a {label.lower()}", disabled=True, hint=hint))
                desk.on(self._buttons[-1], partial(self.add, kind))

    @property
    def diagonal(self) -> float:
        """Of the shape's box."""
        return float(np.linalg.norm(self._box[1] - self._box[0]))

    def around(self, points: Floats) -> None:
        """Let obstacles be added around a shape."""
        self._box = points.min(axis=0), points.max(axis=0)
        for button in self._buttons:
            button.disabled = False

    def tables(self) -> list[Document]:
        """The scene's tables [[obstacles]]."""
        return [one.given for one in list(self.shown)]

    def at(self, frame: float) -> list[Obstacle]:
        """Where they are at a frame."""
        return [one.at(frame) for one in list(self.shown)]

    def draw(self, frame: float) -> None:
        """Draw those that move by themselves as they are at a frame."""
        for one in list(self.shown):
            if one.moves:
                one.drawn.move(skin(one.at(frame), self.diagonal).points)

    def take(self, given: list[Document], moving: Any) -> None:
        """Show the obstacles of a scene: its tables, and what was read from them."""
        for entry, one in zip(given, moving, strict=True):
            self._show(entry, parse_obstacle(entry["what"]) if can_be_dragged(entry) else None, one)
        if given:
            self.desk.stage.look_from()

    def put(self, given: list[Document]) -> bool:
        """Have the obstacles of tables, of which some are shown; False if one is new that only a scene can read."""
        known = {repr(table): one for table, one in zip(self.tables(), self.shown, strict=True)}
        if any(repr(table) not in known and not can_be_dragged(table) for table in given):
            return False
        wanted = [repr(table) for table in given]
        for name, one in known.items():
            if name not in wanted:
                self._take_away(one)
        for table in given:
            if repr(table) not in known:
                self._show(table, parse_obstacle(table["what"]), None)
        self.shown.sort(key=lambda one: wanted.index(repr(one.given)))
        return True

    def see(self, visible: bool) -> None:
        """Show or hide all of them."""
        for one in list(self.shown):
            for part in ("shape", "handle"):
                self.desk.stage.show(f"{one.node}/{part}", visible)

    def add(self, kind: str) -> None:
        """Put something in front of the shape, not touching it, beside the one before."""
        stage, (low, high) = self.desk.stage, self._box
        size = FIRST_SIZE / 100 * self.diagonal
        origin = stage.world((0.0, 0.0, 0.0))
        front = unit(stage.world((0.0, -1.0, 0.0)) - origin)
        side = unit(stage.world((1.0, 0.0, 0.0)) - origin)
        depth = float(np.abs((high - low) @ front)) / 2
        number = len(self.shown)
        aside = (-1) ** number * ((number + 1) // 2)
        solid = made(kind, (low + high) / 2 + (depth + 1.4 * size) * front + 3 * size * aside * side, size)
        self._show({"what": name_of(solid)}, solid, None)
        self.desk.hint(f"**Drag the {OBSTACLE_LABELS[kind].lower()}** or its arrows into the shape: it gives way.")
        self._changed()

    def remove(self, one: Shown) -> None:
        """Remove one of them."""
        self._take_away(one)
        self._changed()

    def _take_away(self, one: Shown) -> None:
        self.shown.remove(one)
        one.folder.remove()
        self.desk.stage.remove(one.node)

    def _show(self, given: Document, solid: Obstacle | None, moving: MovingObstacle | None) -> None:
        self._count += 1
        node, stage = f"{self._node} {self._count}", self.desk.stage
        first = solid if solid is not None else moving.at(0)  # type: ignore[union-attr]
        framed = not isinstance(first, HalfSpace)  # which is everywhere
        drawn = stage.shape(f"{node}/shape", skin(first, self.diagonal), color=OBSTACLE_COLOR, framed=framed)
        one = Shown(given, solid, moving, node, drawn)
        label = "Obstacle" if solid is None else OBSTACLE_LABELS.get(name_of(solid).partition(":")[0], "Plane")
        with self.folder:
            one.folder = self.desk.gui.add_folder(f"{label} {self._count}")
            with one.folder:
                self._build(one)
        self.shown.append(one)
        if solid is not None:
            self._make_handle(one, solid, f"{label} {self._count}")

    def _make_handle(self, one: Shown, solid: Obstacle, title: str) -> None:
        """Have it dragged by a handle, or itself."""
        stage, name, grabbed = self.desk.stage, f"{one.node}/handle", [solid.middle]
        remove = partial(self.remove, one)
        stage.handle(
            name, solid.middle, partial(self._dragged, one), title=title, rotation=solid.turn,
            rotates=can_rotate(solid), remove=remove,
        )  # fmt: skip

        def pulled(start: Floats, end: Floats, phase: Phase) -> None:
            if phase == "start":
                stage.selection.select(name)
                grabbed[0] = self._solid(one).middle
            self._put_at(one, grabbed[0] + end - start)

        one.drawn.on_click(lambda start, direction: stage.selection.select(name))
        one.drawn.on_drag(pulled, modifier=None)

    def _build(self, one: Shown) -> None:
        gui, solid = self.desk.gui, one.solid
        if solid is not None and not isinstance(solid, HalfSpace):
            share = float(np.clip(round(100 * size_of(solid) / self.diagonal, 1), *SIZE_RANGE))
            size = gui.add_slider("Size in % of the shape", *SIZE_RANGE, 0.5, share, hint="About its middle")
            self.desk.on(size, lambda: self._move(one, resized(self._solid(one), size.value / 100 * self.diagonal)))
        if solid is None:
            gui.add_markdown(str(one.given["what"]).rpartition("/")[2] + " stays as the scene has it.")
        self.desk.on(gui.add_button("Remove it", hint="As Del does"), lambda: self.remove(one))

    def _dragged(self, one: Shown, position: Floats, rotation: Floats, phase: Phase) -> None:
        self._move(one, dragged(self._solid(one), position, rotation))

    def _put_at(self, one: Shown, at: Floats) -> None:
        """Have its middle somewhere else."""
        solid = self._solid(one)
        self._move(one, solid.moved(rotations.IDENTITY, at - solid.middle))
        self.desk.stage.move(f"{one.node}/handle", at)

    def _solid(self, one: Shown) -> Obstacle:
        assert one.solid is not None
        return one.solid

    def _move(self, one: Shown, solid: Obstacle) -> None:
        if one in self.shown:  # or it has just been removed
            one.given, one.solid = {**one.given, "what": name_of(solid)}, solid
            one.drawn.move(skin(solid, self.diagonal).points)
            self._changed()


def skin(obstacle: Obstacle, diagonal: float) -> Mesh:
    """What is drawn of an obstacle beside a shape with this diagonal."""
    if isinstance(obstacle, HalfSpace):
        return _square(obstacle, diagonal)
    surface = obstacle.surface
    if not isinstance(obstacle, Box):
        return surface
    corners = surface.points[surface.triangles].reshape(-1, 3)  # sides of their own, so that edges are sharp
    return Mesh(corners, np.arange(len(corners)).reshape(-1, 3))


def can_be_dragged(given: Document) -> bool:
    """Whether an obstacle's position is written in the scene itself."""
    return given["what"].partition(":")[0].strip().lower() in (*OBSTACLE_LABELS, "plane") and "motion" not in given


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
    share = size / size_of(solid)
    if isinstance(solid, Sphere):
        return Sphere(solid.centre, size, turn=solid.turn)
    if isinstance(solid, Box):
        return Box(solid.centre, solid.size * share, solid.rotation)
    assert isinstance(solid, Capsule)
    half = share * (solid.b - solid.a) / 2
    return Capsule(solid.middle - half, solid.middle + half, solid.radius * share, turn=solid.turn)


def can_rotate(solid: Obstacle) -> bool:
    """Whether an obstacle's rotation can be written in the scene itself."""
    return isinstance(solid, (Box, Capsule))


def dragged(solid: Obstacle, position: Floats, rotation: Floats) -> Obstacle:
    """An obstacle whose handle is at a position, rotated (w, x, y, z) since it was made if it can be."""
    if not can_rotate(solid):
        return solid.moved(rotations.IDENTITY, position - solid.middle)
    step = rotations.multiply(rotation, rotations.inverse(solid.turn))
    return solid.moved(step, position - rotations.rotate(step, solid.middle))


def name_of(solid: Obstacle) -> str:
    """An obstacle as scenes name it; all digits are kept."""
    if isinstance(solid, Sphere):
        return _named("sphere", solid.centre, solid.radius)
    if isinstance(solid, Box):
        rotated = np.degrees(rotations.log(rotations.shortest(solid.rotation)))
        return _named("box", solid.centre, *solid.size, *(rotated if np.abs(rotated).max() > LEAST_DEGREES else ()))
    if isinstance(solid, HalfSpace):
        return _named("plane", solid.point, *solid.normal)
    assert isinstance(solid, Capsule)
    return _named("capsule", solid.a, *solid.b, solid.radius)


def _named(kind: str, position: Floats, *numbers: float) -> str:
    return f"{kind}:{','.join(repr(float(number)) for number in (*position, *numbers))}"


def size_of(solid: Obstacle) -> float:
    """Radius, half a side, or half the thickness of a rod times two: what the slider shows."""
    if isinstance(solid, Capsule):
        return 2 * solid.radius
    return float(solid.thickness) / 2


def _square(plane: HalfSpace, diagonal: float) -> Mesh:
    """A piece of a plane."""
    u, v = (HALF_SQUARE * diagonal * axis for axis in across(plane.normal))
    corners = plane.point + np.stack([-u - v, u - v, u + v, v - u])
    return Mesh(corners, np.array([[0, 1, 2], [0, 2, 3]]))
