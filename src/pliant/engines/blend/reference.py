"""The shape that interiors and anchors are placed in, and a frame that moves along with it.

What is placed on a grid must not depend on how the shapes lie in space, or on which of them comes first: turned,
mirrored or exchanged input gives a turned, mirrored or the same result. So the reference is the shape that extends
farthest, limbs apart, whichever place it has in the list; and a grid is laid in axes that follow its vertices.
"""

from __future__ import annotations

import numpy as np

from pliant.core.topology import Floats

TIE_SHARE = 1e-3
"""Weight of a moment of the vertices' numbers in the extent of a shape: it decides between a bar and its twist."""
SURE_MOMENT, SURE_SIDE = 1e-3, 1e-6
"""Moments, over what they could be, that an axis and its side are found by: below, a symmetry leaves them open."""


def mean_extent(points: Floats) -> float:
    """Distance between two vertices that are about the farthest apart, in the mean over shapes (s, n, 3).

    Unlike the diagonal, which is at least as long, it does not depend on how the shapes lie.
    """
    return float(np.mean([_distances(p, p[np.argmax(_distances(p, p.mean(axis=0)))]).max() for p in points]))


def _distances(points: Floats, centre: Floats) -> Floats:
    return np.linalg.norm(points - centre, axis=1)


def reference_shape(points: Floats) -> int:
    """Which of the shapes (s, n, 3) extends farthest from its centre."""
    away = points - points.mean(axis=1, keepdims=True)
    moment = np.einsum("snk,n->sk", away, _scattered(points.shape[1], 1)[:, 0])
    return int(np.argmax(np.sum(away**2, axis=(1, 2)) + TIE_SHARE * np.sum(moment**2, axis=1)))


def own_frame(points: Floats, reference: int) -> tuple[Floats, Floats]:
    """The centre (3,) of one of the shapes (s, n, 3), and orthonormal axes (3, 3), as columns, that turn along with it.

    The axes are the orthogonal factor of ``Σ_i (x_i - centre) f_iᵀ``, f_i three polynomials of a vertex's distance from
    the centre, in the mean over the shapes: they follow rotations and reflections, and do not depend on the order of
    vertices or shapes. Where moments vanish, as all shapes have a symmetry, that would leave them to rounding, and the
    vertices' own numbers take the place of the polynomials: for a mirror, on the question of the third axis' side only.
    """
    centre = points[reference].mean(axis=0)
    away = points[reference] - centre
    least = float(np.linalg.norm(away))
    distance = np.mean([_distances(p, p.mean(axis=0)) for p in points], axis=0)
    numbers = away.T @ _scattered(len(away), 3)
    U, moments, Vt = np.linalg.svd(away.T @ _polynomials(distance))
    if moments[1] < SURE_MOMENT * least:
        U, _, Vt = np.linalg.svd(numbers)
    elif moments[2] < SURE_SIDE * least:
        U[:, 2] *= np.copysign(1.0, (U[:, 2] @ numbers[:, 0]) * Vt[2, np.argmax(np.abs(Vt[2]))])
    return centre, U @ Vt


def _polynomials(values: Floats) -> Floats:
    """(n, 3) polynomials of degree 1 to 3 of values (n,), orthonormal, or zero where there are not so many values."""
    powers = values / max(float(values.max(initial=0)), 1e-300)
    powers = powers[:, None] ** np.arange(4)
    for k in range(4):
        for j in [*range(k), *range(k)]:
            powers[:, k] -= (powers[:, j] @ powers[:, k]) * powers[:, j]
        size = float(np.linalg.norm(powers[:, k]))
        powers[:, k] *= 1 / size if size > 1e-6 else 0.0
    return powers[:, 1:]


def _scattered(count: int, columns: int) -> Floats:
    """(count, columns) numbers from -1 to 1 that differ from row to row, the same every time."""
    return np.random.default_rng(2011).uniform(-1, 1, (count, columns))
