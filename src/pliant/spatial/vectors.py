"""Vectors in space as tuples of three floats: what the compiled geometric kernels are written in."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from pliant.jit import kernel

Vector = tuple[float, float, float]


@kernel
def corner(corners: NDArray[np.float64], triangle: int, k: int) -> Vector:
    """Corner k of a triangle, from an (m, 3, 3) table."""
    return corners[triangle, k, 0], corners[triangle, k, 1], corners[triangle, k, 2]


@kernel
def minus(a: Vector, b: Vector) -> Vector:
    """a − b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@kernel
def dot(a: Vector, b: Vector) -> float:
    """a · b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def cross(a: Vector, b: Vector) -> Vector:
    """a × b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@kernel
def times(s: float, a: Vector) -> Vector:
    """s a."""
    return s * a[0], s * a[1], s * a[2]


@kernel
def norm(a: Vector) -> float:
    """|a|."""
    return sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


@kernel
def same(a: Vector, b: Vector) -> bool:
    """Whether two corners lie at exactly the same place."""
    return a[0] == b[0] and a[1] == b[1] and a[2] == b[2]
