"""Simple shapes to draw, and what tests ask of their pictures."""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant import render
from pliant.core.clips import Animation
from pliant.core.shapes import Mesh
from pliant.render.camera import Camera
from pliant.render.color import BACKGROUND, parse_color
from pliant.render.scene import Take, takes_of
from pliant.render.stage import RenderStage, stage_for

SMALL = (200, 150)
EMPTY = np.round(255 * parse_color(BACKGROUND)).astype(np.uint8)


def box(size: float = 1.0, centre: tuple[float, float, float] = (0, 0, 0)) -> Mesh:
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    faces = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    return Mesh(size * corners + np.array(centre), faces)


def ball(rings: int = 40, radius: float = 1.0) -> Mesh:
    polar, around = np.linspace(0, np.pi, rings + 1)[1:-1], np.arange(2 * rings) * np.pi / rings
    grid = [[np.sin(a) * np.cos(b), np.cos(a), np.sin(a) * np.sin(b)] for a in polar for b in around]
    points = radius * np.array([[0, 1, 0], *grid, [0, -1, 0]])
    count = 2 * rings

    def at(i: int, j: int) -> int:
        return 1 + i * count + j % count

    faces = [[0, at(0, j + 1), at(0, j)] for j in range(count)]
    faces += [[len(points) - 1, at(rings - 2, j), at(rings - 2, j + 1)] for j in range(count)]
    faces += [[at(i, j), at(i, j + 1), at(i + 1, j + 1), at(i + 1, j)] for i in range(rings - 2) for j in range(count)]
    return Mesh(points, faces)


def square(z: float = 0.0, half: float = 1.0, flip: bool = False) -> Mesh:
    points = np.array([[-half, -half, z], [half, -half, z], [half, half, z], [-half, half, z]])
    return Mesh(points, [[3, 2, 1, 0] if flip else [0, 1, 2, 3]])


def pixels(shape: Any, **options: Any) -> np.ndarray:
    options = {"size": SMALL, "ground": False, **options}
    return np.asarray(render.picture(shape, **options))


def coverage(image: np.ndarray) -> np.ndarray:
    """Whether each pixel differs from the background."""
    return (image != EMPTY).any(axis=2)


def stage_of(contents: list[Any], size: tuple[int, int], view: Any, **options: Any) -> tuple[RenderStage, Take]:
    """The set that `render` builds for all frames of the contents, and the first take."""
    takes, _ = takes_of(
        contents,
        color=None,
        values=[None] * len(contents),
        limits=None,
        colormap="auto",
        label="",
        edges=False,
        extra=(),
    )
    shots = [(take, k) for take in takes for k in range(len(take))]
    options = {"up": "auto", "ground": False, "background": BACKGROUND, **options}
    return stage_for(shots, size=size, view=view, **options), takes[0]


def camera_of(shape: Mesh, size: tuple[int, int], view: Any = "auto") -> Camera:
    return stage_of([shape], size, view)[0].camera


def erode(mask: np.ndarray) -> np.ndarray:
    inner = mask.copy()
    inner[1:] &= mask[:-1]
    inner[:-1] &= mask[1:]
    inner[:, 1:] &= mask[:, :-1]
    inner[:, :-1] &= mask[:, 1:]
    return inner


def moving(frames: int = 6, fps: float = 30.0) -> Animation:
    return Animation(box(), box().points + np.linspace(0, 1, frames)[:, None, None], fps)


def coverage_loose(image: np.ndarray) -> np.ndarray:
    return np.abs(image.astype(int) - EMPTY).max(axis=2) > 12
