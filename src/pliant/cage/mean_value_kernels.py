"""Mean value coordinates of one point after the other, compiled; the equations are in `pliant.cage.mean_value`."""

from __future__ import annotations

from math import atan2, pi, sin, sqrt

import numpy as np

from pliant.jit import kernel, parallel_kernel, prange
from pliant.spatial.vectors import Vector, cross, dot, norm
from pliant.topology import Floats, Ints

ON = 1e-14
"""Half of what a triangle's arcs lack of 2π where p lies on it; it goes with the square of p's height."""
ON_EDGE = 1e-7
"""What an edge's arc lacks of π where p lies on it."""
BESIDE = 1e-9
"""Sines of a spherical triangle's angles where p lies in its plane."""
AT = 1e-14
"""Distance over the diagonal below which p is a vertex."""


@kernel
def _arc(u: Vector, v: Vector) -> float:
    """The angle between two unit vectors."""
    return atan2(norm(cross(u, v)), dot(u, v))


@kernel
def _add_triangle(u: Floats, r: Floats, corners: Ints, weights: Floats) -> bool:
    """Add a triangle's weights; True if p lies on it, when its barycentric coordinates are all there is."""
    i, j, k = corners[0], corners[1], corners[2]
    a, b, c = (u[i, 0], u[i, 1], u[i, 2]), (u[j, 0], u[j, 1], u[j, 2]), (u[k, 0], u[k, 1], u[k, 2])
    theta = _arc(b, c), _arc(c, a), _arc(a, b)
    h = (theta[0] + theta[1] + theta[2]) / 2
    for l in range(3):
        if pi - theta[l] < ON_EDGE:
            j, k = corners[(l + 1) % 3], corners[(l + 2) % 3]
            weights[:] = 0.0
            weights[j], weights[k] = r[k], r[j]
            return True
    if pi - h < ON:
        weights[:] = 0.0
        weights[i] = sin(theta[0]) * r[j] * r[k]
        weights[j] = sin(theta[1]) * r[k] * r[i]
        weights[k] = sin(theta[2]) * r[i] * r[j]
        return True
    sines = sin(theta[0]), sin(theta[1]), sin(theta[2])
    side = dot(a, cross(b, c))
    cosines = (
        2 * sin(h) * sin(h - theta[0]) / (sines[1] * sines[2]) - 1,
        2 * sin(h) * sin(h - theta[1]) / (sines[2] * sines[0]) - 1,
        2 * sin(h) * sin(h - theta[2]) / (sines[0] * sines[1]) - 1,
    )
    s = side / (sines[1] * sines[2]), side / (sines[2] * sines[0]), side / (sines[0] * sines[1])
    if not (abs(s[0]) > BESIDE and abs(s[1]) > BESIDE and abs(s[2]) > BESIDE):
        return False
    for l in range(3):
        after, before = (l + 1) % 3, (l + 2) % 3
        above = theta[l] - cosines[after] * theta[before] - cosines[before] * theta[after]
        weights[corners[l]] += above / (r[corners[l]] * sines[after] * s[before])
    return False


@parallel_kernel
def evaluate(points: Floats, cage: Floats, triangles: Ints, diagonal: float, out: Floats) -> None:
    """Rows (n, c) of coordinates into `out`, which is zero."""
    for q in prange(len(points)):
        u, r = np.empty(cage.shape), np.empty(len(cage))
        weights, vertex = out[q], -1
        for i in range(len(cage)):
            for x in range(3):
                u[i, x] = cage[i, x] - points[q, x]
            r[i] = sqrt(u[i, 0] ** 2 + u[i, 1] ** 2 + u[i, 2] ** 2)
            if r[i] < AT * diagonal:
                vertex = i
            for x in range(3):
                u[i, x] /= r[i]
        if vertex >= 0:
            weights[vertex] = 1.0
            continue
        for t in range(len(triangles)):
            if _add_triangle(u, r, triangles[t], weights):
                break
        total = weights.sum()
        for i in range(len(cage)):
            weights[i] /= total
