"""Obstacles as panels show them: what is drawn of one, how scenes name it, and which can be dragged about."""

from __future__ import annotations

import numpy as np

from pliant.app.studio.panel import Document
from pliant.contact import Box, Capsule, HalfSpace, MovingObstacle, Obstacle, Sphere
from pliant.contact.obstacles import DeformingObstacle
from pliant.contact.solids import across
from pliant.core import rotations
from pliant.core.shapes import Mesh
from pliant.core.topology import Floats

WORDS = {"sphere": "Ball", "box": "Box", "capsule": "Rod"}
"""What can be dragged, and what it is called."""
FLOOR = 1.5
"""Half the side of the square that is drawn for a plane, over the diagonal."""


def skin(obstacle: Obstacle, diagonal: float) -> Mesh:
    """What is drawn of an obstacle beside a shape with this diagonal."""
    if isinstance(obstacle, HalfSpace):
        return _square(obstacle, diagonal)
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
    share = size / size_of(solid)
    if isinstance(solid, Sphere):
        return Sphere(solid.centre, size, turn=solid.turn)
    if isinstance(solid, Box):
        return Box(solid.centre, solid.size * share, solid.rotation)
    assert isinstance(solid, Capsule)
    half = share * (solid.b - solid.a) / 2
    return Capsule(solid.middle - half, solid.middle + half, solid.radius * share, turn=solid.turn)


def moves(obstacle: MovingObstacle) -> bool:
    """Whether frames differ in where it is."""
    return isinstance(obstacle, DeformingObstacle) or len(obstacle.keys) > 1


def can_turn(solid: Obstacle) -> bool:
    """Whether turning an obstacle can be said in the scene itself."""
    return isinstance(solid, Capsule)


def dragged(solid: Obstacle, place: Floats, turn: Floats) -> Obstacle:
    """An obstacle whose handle is at a place, turned (w, x, y, z) since it was made if it can be."""
    if not can_turn(solid):
        return solid.moved(rotations.IDENTITY, place - solid.middle)
    step = rotations.multiply(turn, rotations.inverse(solid.turn))
    return solid.moved(step, place - rotations.rotate(step, solid.middle))


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


def size_of(solid: Obstacle) -> float:
    """Radius, half a side, or half the thickness of a rod times two: what the slider shows."""
    if isinstance(solid, Capsule):
        return 2 * solid.radius
    return float(solid.thickness) / 2


def _square(plane: HalfSpace, diagonal: float) -> Mesh:
    """A piece of a plane."""
    u, v = (FLOOR * diagonal * way for way in across(plane.normal))
    corners = plane.point + np.stack([-u - v, u - v, u + v, v - u])
    return Mesh(corners, np.array([[0, 1, 2], [0, 2, 3]]))
