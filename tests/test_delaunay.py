"""Delaunay tetrahedra: no point is in the circumsphere of another's, they fill the hull, and Qhull gives the same."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import ConvexHull, Delaunay

from pliant import gallery
from pliant.core.topology import Ints
from pliant.engines.blend.lattice import lattice_filling
from pliant.geometry.delaunay import delaunay

RNG = np.random.default_rng(5)
CLOUDS = {
    "four": lambda: RNG.random((4, 3)),
    "few": lambda: RNG.random((30, 3)),
    "cube": lambda: RNG.random((3000, 3)),
    "ball": lambda: RNG.normal(size=(2000, 3)),
    "far away": lambda: RNG.random((500, 3)) + 1e6,
    "plate": lambda: RNG.random((1000, 3)) * [1, 1, 1e-4],
    "needle": lambda: RNG.random((1000, 3)) * [1, 1e-4, 1e-4],
    "clusters": lambda: np.repeat(RNG.random((20, 3)), 50, axis=0) + 1e-5 * RNG.normal(size=(1000, 3)),
}


def listed(tets: Ints) -> Ints:
    return np.unique(np.sort(tets, axis=1), axis=0)


@pytest.mark.parametrize("name", CLOUDS)
def test_it_is_that_of_qhull(name):
    points = CLOUDS[name]()
    found = delaunay(points)
    assert found is not None
    assert np.array_equal(listed(found), listed(Delaunay(points - points[0]).simplices))


def test_spheres_are_empty_and_volumes_sum_to_the_hull():
    points = RNG.random((300, 3))
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
    points, order = RNG.random((400, 3)), RNG.permutation(400)
    assert np.array_equal(listed(order[delaunay(points[order])]), listed(delaunay(points)))


@pytest.mark.parametrize(
    "points",
    [
        np.zeros((0, 3)),
        np.zeros((9, 3)),
        RNG.random((3, 3)),
        RNG.random((50, 1)) * [1.0, 2.0, 3.0],
        RNG.random((50, 3)) * [1, 1, 0],
        np.concatenate([CORNERS := RNG.random((20, 3)), CORNERS]),
    ],
    ids=["none", "one place", "three", "line", "plane", "twice"],
)
def test_there_is_none_where_points_coincide_or_are_flat(points):
    assert delaunay(points) is None


def test_a_grid_gives_true_tetrahedra_or_none():
    """Its points are on common spheres: every choice among them is right."""
    points = np.stack(np.meshgrid(*3 * [np.arange(5.0)], indexing="ij"), axis=-1).reshape(-1, 3)
    found = delaunay(points)
    if found is not None:
        a, b, c, d = (points[found[:, k]] for k in range(4))
        assert np.einsum("nk,nk->n", np.cross(b - a, c - a), d - a).sum() == pytest.approx(6 * 64)


def test_flat_bodies_are_filled_as_ever():
    nodes, tets = lattice_filling(gallery.bar(500).base)
    assert len(nodes) > 20
    assert len(tets) > 500
