"""Delaunay tetrahedra: no point is in the circumsphere of another's, they fill the hull, and Qhull gives the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from scipy.spatial import ConvexHull, Delaunay

from pliant.core import rotations
from pliant.core.topology import Floats, Ints
from pliant.engines.blend import lattice
from pliant.geometry.delaunay import delaunay

Draw = Callable[[np.random.Generator], Floats]
CLOUDS: dict[str, Draw] = {
    "four": lambda rng: rng.random((4, 3)),
    "few": lambda rng: rng.random((30, 3)),
    "cube": lambda rng: rng.random((3000, 3)),
    "ball": lambda rng: rng.normal(size=(2000, 3)),
    "far away": lambda rng: rng.random((500, 3)) + 1e6,
    "plate": lambda rng: rng.random((1000, 3)) * [1, 1, 1e-4],
    "needle": lambda rng: rng.random((1000, 3)) * [1, 1e-4, 1e-4],
    "clusters": lambda rng: np.repeat(rng.random((20, 3)), 50, axis=0) + 1e-5 * rng.normal(size=(1000, 3)),
}
GRID = np.stack(np.meshgrid(*3 * [np.arange(4.0)], indexing="ij"), axis=-1).reshape(-1, 3)
TURN = rotations.matrix(rotations.exp(np.array([0.3, 0.5, -0.2])))
NEARLY_ON_SPHERES: dict[str, Draw] = {
    "grid": lambda rng: GRID,
    "rotated grid": lambda rng: GRID @ TURN.T,
    "joggled grid": lambda rng: GRID + 1e-15 * rng.normal(size=GRID.shape),
    "ball": lambda rng: (x := rng.normal(size=(60, 3))) / np.linalg.norm(x, axis=1, keepdims=True),
    "tube": lambda rng: np.array([[np.cos(a), np.sin(a), z] for a in np.arange(12) * np.pi / 6 for z in range(5)]),
    "twice, nearly": lambda rng: np.concatenate([x := rng.random((30, 3)), x + 1e-14]),
}


def listed(tets: Ints) -> Ints:
    return np.unique(np.sort(tets, axis=1), axis=0)


def whole(points: Floats) -> list[list[int]]:
    """Coordinates as the kernel has them."""
    scaled = (points - points.min(axis=0)) * (2.0**50 / np.ptp(points, axis=0).max())
    return [[int(x) for x in row] for row in np.floor(scaled + 0.5)]


def exact_determinant(rows: list[list[int]]) -> int:
    if len(rows) == 1:
        return rows[0][0]
    minors = ([[*row[:k], *row[k + 1 :]] for row in rows[1:]] for k in range(len(rows)))
    return sum((-1) ** k * rows[0][k] * exact_determinant(minor) for k, minor in enumerate(minors))


def lifted(point: list[int], origin: list[int]) -> list[int]:
    d = [x - y for x, y in zip(point, origin, strict=True)]
    return [*d, sum(x * x for x in d)]


@pytest.mark.parametrize("name", CLOUDS)
def test_it_is_that_of_qhull(name):
    points = CLOUDS[name](np.random.default_rng(5))
    found = delaunay(points)
    assert found is not None
    assert np.array_equal(listed(found), listed(Delaunay(points - points[0]).simplices))


@pytest.mark.parametrize("name", NEARLY_ON_SPHERES)
def test_it_is_exact_where_rounding_would_decide(name):
    """In whole numbers: all are positive, meet in whole faces, and no neighbour's far corner is in a circumsphere."""
    points = NEARLY_ON_SPHERES[name](np.random.default_rng(5))
    found = delaunay(points)
    assert found is not None
    at, faces = whole(points), {}
    for tet in found.tolist():
        a, b, c, d = (at[k] for k in tet)
        assert exact_determinant([[x - y for x, y in zip(p, a, strict=True)] for p in (b, c, d)]) > 0
        for face in combinations(sorted(tet), 3):
            faces.setdefault(face, []).append(tet)
    assert set(Counter(map(len, faces.values()))) <= {1, 2}
    for face, pair in faces.items():
        if len(pair) == 2:
            (far,) = set(pair[1]) - set(face)
            assert -exact_determinant([lifted(at[k], at[far]) for k in pair[0]]) <= 0
    volumes = np.abs(np.linalg.det(points[found[:, 1:]] - points[found[:, :1]])) / 6
    assert volumes.sum() == pytest.approx(ConvexHull(points).volume, rel=1e-9)


def test_spheres_are_empty_and_volumes_sum_to_the_hull():
    points = np.random.default_rng(5).random((300, 3))
    found = delaunay(points)
    a, b, c, d = (points[found[:, k]] for k in range(4))
    volumes = np.einsum("nk,nk->n", np.cross(b - a, c - a), d - a) / 6
    assert volumes.min() > 0
    assert volumes.sum() == pytest.approx(ConvexHull(points).volume, rel=1e-12)
    A = 2 * np.stack([b - a, c - a, d - a], axis=1)
    right = np.stack([np.sum((p - a) * (p + a), axis=1) for p in (b, c, d)], axis=1)
    centres = np.linalg.solve(A, right[..., None])[..., 0]
    radii = np.linalg.norm(a - centres, axis=1)
    nearest = np.linalg.norm(points[None] - centres[:, None], axis=2).min(axis=1)
    np.testing.assert_allclose(nearest, radii, rtol=1e-9)


def test_the_order_of_points_does_not_matter():
    rng = np.random.default_rng(5)
    points, order = rng.random((400, 3)), rng.permutation(400)
    assert np.array_equal(listed(order[delaunay(points[order])]), listed(delaunay(points)))


@pytest.mark.parametrize(
    "points",
    [
        np.zeros((0, 3)),
        np.zeros((9, 3)),
        GRID[:3],
        np.arange(50.0)[:, None] * [1.0, 2.0, 3.0],
        GRID * [1, 1, 0] + [0, 0, 1],
        np.concatenate([GRID, GRID]),
        np.full((9, 3), np.nan),
        np.where(GRID == 2, np.inf, GRID),
        GRID[:, :2].copy(),
    ],
    ids=["none", "one place", "three", "line", "plane", "twice", "not a number", "infinite", "two numbers"],
)
def test_there_is_none_where_points_coincide_or_are_flat_or_not_finite(points):
    assert delaunay(points) is None


def test_qhull_fills_where_points_coincide():
    points = np.concatenate([GRID, GRID[:5]])
    assert delaunay(points) is None
    tets = lattice._delaunay(points)
    assert np.abs(np.linalg.det(points[tets[:, 1:]] - points[tets[:, :1]])).sum() / 6 == pytest.approx(27, rel=1e-6)
