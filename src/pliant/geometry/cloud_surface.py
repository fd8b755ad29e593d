"""The surface of a cloud of points, also where it is as sparse as its limbs are thick.

By Gauss's formula the indicator of a body (1 inside, 0 outside, 1/2 on its surface) is, with μ_j the area vector that
the point y_j stands for,

    χ(x) = Σ_j μ_j · (x − y_j) / (4π max(|x − y_j|, w)³).

The area vectors are not known, nor which side of the points is inside. Of those with ``χ(y_i) = 1/2`` the least are
taken (parametric Gauss reconstruction; Lin and others 2022): ``μ = Aᵀ ξ``, ``(A Aᵀ + ε diag(A Aᵀ)) ξ = 1/2``. Of the
points' Delaunay tetrahedra those are inside in whose middle, and in the middle of whose longest edge, χ exceeds its
median on the points: what bridges the gap between two limbs is not.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from pliant.core.errors import InputError
from pliant.core.topology import Floats, Ints

MOST_POINTS = 2_500
"""That the equations are solved for: of a larger cloud, the means in cells."""
SPACING_NEIGHBOURS = 6
"""By whose distance the spacing of the points is measured; the width w is its median."""
CLOUD_REGULARISATION = 0.02
"""ε"""
CELL_SIZES = 100
"""That are tried, from the finest that may be needed to one cell."""
CHUNK = 500
"""Points at which χ is computed at once."""


def cloud_surface(points: Floats) -> tuple[Floats, Ints]:
    """Points on the surface of a cloud (n, 3), and (m, 3) triangles between them, facing out, around its inside."""
    from scipy.spatial import Delaunay, QhullError, cKDTree

    points = thinned(points)
    try:
        tetrahedra = Delaunay(points)
    except (QhullError, ValueError) as problem:
        raise InputError("the target's points lie in a plane; expected points around a volume") from problem
    corners = tetrahedra.simplices
    near = cKDTree(points).query(points, k=min(SPACING_NEIGHBOURS + 1, len(points)))[0]
    width = float(np.median(near[:, 1:].mean(axis=1)))
    A = (_kernel(points, points, width)[..., None] * (points[:, None] - points)).reshape(len(points), -1)
    squares = A @ A.T
    squares[np.diag_indices(len(points))] *= 1 + CLOUD_REGULARISATION
    areas = (A.T @ np.linalg.solve(squares, np.full(len(points), 0.5))).reshape(-1, 3)
    at = np.stack([points[corners].mean(axis=1), _longest_edges(points[corners]).mean(axis=1)]).reshape(-1, 3)
    chunks = np.array_split(at, -(-len(at) // CHUNK))
    chi = np.concatenate([_indicator(some, points, areas, width) for some in chunks])
    inside = chi.reshape(2, -1).min(axis=0) > np.median(_indicator(points, points, areas, width))
    facets = np.stack([np.delete(corners, k, axis=1) for k in range(4)], axis=1)
    outer = inside[:, None] & ~np.append(inside, False)[tetrahedra.neighbors]
    return points, _facing(points, facets[outer], corners[outer])


def _facing(points: Floats, triangles: Ints, behind: Ints) -> Ints:
    """Triangles (m, 3), each turned away from a point (m,) behind it."""
    a, b, c = (points[triangles[:, k]] for k in range(3))
    wrong = np.einsum("mi,mi->m", np.cross(b - a, c - a), points[behind] - a) > 0
    return np.where(wrong[:, None], triangles[:, ::-1], triangles)


def _longest_edges(tetrahedra: Floats) -> Floats:
    """(t, 2, 3) of tetrahedra (t, 4, 3)."""
    ends = tetrahedra[:, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]]
    longest = np.argmax(np.linalg.norm(ends[:, :, 1] - ends[:, :, 0], axis=2), axis=1)
    return np.asarray(ends[np.arange(len(ends)), longest])


def _kernel(at: Floats, points: Floats, width: float) -> Floats:
    """(k, n) 1 / (4π max(|x − y|, w)³) from points x (k, 3) to y (n, 3)."""
    squared = (at**2).sum(axis=1)[:, None] + (points**2).sum(axis=1) - 2 * at @ points.T
    np.maximum(squared, width**2, out=squared)
    return 1 / (4 * np.pi * squared * np.sqrt(squared))


def _indicator(at: Floats, points: Floats, areas: Floats, width: float) -> Floats:
    """(k,) χ at points (k, 3), by the area vectors (n, 3) of points (n, 3)."""
    flux = at @ areas.T - (points * areas).sum(axis=1)
    return np.einsum("kn,kn->k", _kernel(at, points, width), flux)


def thinned(points: Floats) -> Floats:
    """Points apart, at most `MOST_POINTS`: the means of a cloud in cells, which are centred on the origin."""
    points = np.unique(points, axis=0)
    if len(points) <= MOST_POINTS:
        return points
    extent = float(np.ptp(points, axis=0).max())
    sizes = np.geomspace(extent / MOST_POINTS, 2 * extent, CELL_SIZES)
    size = sizes[bisect_left(sizes, True, key=lambda size: len(np.unique(_cells(points, size))) <= MOST_POINTS)]
    cell, count = np.unique(_cells(points, size), return_inverse=True, return_counts=True)[1:]
    return np.stack([np.bincount(cell, x) for x in points.T], axis=1) / count[:, None]


def _cells(points: Floats, size: float) -> Ints:
    """(n,) numbers of the cells of a grid that points (n, 3) are in."""
    at = np.round(points / size).astype(np.int64)
    low, shape = at.min(axis=0), np.ptp(at, axis=0) + 1
    return np.ravel_multi_index(tuple((at - low).T), tuple(shape))
