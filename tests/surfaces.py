"""Small closed surfaces with known volume, distance and topology, for tests."""

from __future__ import annotations

import numpy as np

from pliant.core import rotations
from pliant.core.shapes import Mesh


def sphere(around: int = 24, down: int = 16, radius: float = 1.0, centre=(0.0, 0.0, 0.0)) -> Mesh:
    """Facing outwards; rings of `around` vertices at `down` - 1 latitudes, and two poles on the z axis."""
    theta = np.linspace(0, np.pi, down + 1)[1:-1, None]
    phi = np.arange(around) * 2 * np.pi / around
    ring = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta) + 0 * phi], axis=2)
    points = np.concatenate([[[0, 0, 1]], ring.reshape(-1, 3), [[0, 0, -1]]])
    j, k = np.arange(around), np.roll(np.arange(around), -1)
    a = 1 + around * np.arange(down - 2)[:, None]
    sides = np.concatenate(
        [np.stack([a + j, a + around + j, a + around + k], 2), np.stack([a + j, a + around + k, a + k], 2)]
    )
    last = len(points) - 1
    top = np.stack([0 * j, 1 + j, 1 + k], 1)
    bottom = np.stack([0 * j + last, last - around + k, last - around + j], 1)
    return Mesh(points * radius + np.asarray(centre), np.concatenate([top, sides.reshape(-1, 3), bottom]))


def box(half=(1.0, 1.0, 1.0), centre=(0.0, 0.0, 0.0)) -> Mesh:
    """Six outward quads."""
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
    faces = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    return Mesh(signs * half + np.asarray(centre), faces)


def torus(around: int = 40, across: int = 16, major: float = 1.0, minor: float = 0.3) -> Mesh:
    """Facing outwards, about the z axis."""
    u, v = np.meshgrid(np.arange(around), np.arange(across), indexing="ij")
    a, b = 2 * np.pi * u / around, 2 * np.pi * v / across
    reach = major + minor * np.cos(b)
    points = np.stack([reach * np.cos(a), reach * np.sin(a), minor * np.sin(b)], axis=2).reshape(-1, 3)
    at = lambda i, j: (i % around) * across + j % across  # noqa: E731
    quads = np.stack([at(u, v), at(u + 1, v), at(u + 1, v + 1), at(u, v + 1)], axis=2).reshape(-1, 4)
    return Mesh(points, quads)


def tube(path: np.ndarray, radius: float, across: int = 12) -> Mesh:
    """Closed, facing outwards: a circle swept along a path (k, 3), its ends closed by fans."""
    tangent = np.gradient(path, axis=0)
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    side = np.cross(tangent, [0.13, 0.2, 0.97])
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    angle = 2 * np.pi * np.arange(across) / across
    other = np.cross(tangent, side)
    rings = path[:, None] + radius * (np.cos(angle)[:, None] * side[:, None] + np.sin(angle)[:, None] * other[:, None])
    count = len(path)
    points = np.concatenate([rings.reshape(-1, 3), path[[0, -1]]])
    faces: list[list[int]] = []
    for j in range(across):
        k = (j + 1) % across
        faces += [
            [i * across + j, i * across + k, (i + 1) * across + k, (i + 1) * across + j] for i in range(count - 1)
        ]
        faces += [[count * across, k, j], [count * across + 1, (count - 1) * across + j, (count - 1) * across + k]]
    return Mesh(points, faces)


def turn(axis, angle: float) -> np.ndarray:
    """Rotation matrix."""
    return rotations.matrix(rotations.from_axis_angle(axis, angle))
