"""The shape that interiors and anchors are placed in, and a frame that moves along with it.

What is placed on a grid must not depend on how the shapes lie in space, or on which of them comes first: turned,
mirrored or exchanged input gives a turned, mirrored or the same result. So the reference is the shape that extends
farthest, limbs apart, whichever place it has in the list; and a grid is laid in axes that follow its vertices.
"""

from __future__ import annotations

import numpy as np

from pliant.core.topology import Floats

TIE_SHARE = 1e-3
"""Weight of the vertices' numbers in the extent of a shape: it decides between mirror images."""
AXES_TIE_SHARE = 1e-6
"""The same in the axes, where it decides what the symmetry of a shape leaves open."""


def mean_radius(points: Floats) -> float:
    """Distance of the farthest vertex from the middle, in the mean over shapes (s, n, 3): at most their diagonal."""
    away = points - points.mean(axis=1, keepdims=True)
    return float(np.sqrt(np.sum(away**2, axis=2).max(axis=1)).mean())


def reference_shape(points: Floats) -> int:
    """Which of the shapes (s, n, 3) extends farthest from its centre."""
    away = np.sum((points - points.mean(axis=1, keepdims=True)) ** 2, axis=2)
    return int(np.argmax(away @ (1 + TIE_SHARE * _scattered(points.shape[1], 1)[:, 0])))


def own_frame(points: Floats, reference: int) -> tuple[Floats, Floats]:
    """The centre (3,) of one of the shapes (s, n, 3), and orthonormal axes (3, 3), as columns, that turn along with it.

    The axes are the orthogonal factor of ``Σ_i (x_i - centre) f_iᵀ``, f_i three numbers that depend on distances only:
    they follow rotations and reflections, and are themselves a reflection in every other mirror image.
    """
    away = points - points.mean(axis=1, keepdims=True)
    distance = np.linalg.norm(away, axis=2)
    distance /= max(float(distance.max(initial=0)), 1e-300)
    own, others = distance[reference], np.delete(distance, reference, axis=0).sum(axis=0)
    scalars = np.stack([own**2, others**2, own * others], axis=1)
    scalars = scalars - scalars.mean(axis=0) + AXES_TIE_SHARE * _scattered(len(own), 3)
    U, _, Vt = np.linalg.svd(away[reference].T @ scalars)
    return points[reference].mean(axis=0), U @ Vt


def _scattered(count: int, columns: int) -> Floats:
    """(count, columns) numbers from -1 to 1 that differ from row to row, the same every time."""
    return np.random.default_rng(2011).uniform(-1, 1, (count, columns))
