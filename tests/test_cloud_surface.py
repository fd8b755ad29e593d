"""Surfaces of clouds of points: closed, of the right volume, and apart where what they are of is apart."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree

import pliant
from pliant import InputError, Mesh, PointCloud, gallery
from pliant.geometry.body_plan.bodies import shape_body
from pliant.geometry.cloud_surface import MOST_POINTS, cloud_surface, thinned
from pliant.geometry.spatial import SurfaceTree

RADIUS, LENGTH, GAP = 1.0, 8.0, 0.5


def rods(count: int) -> np.ndarray:
    """Points on two round rods side by side, nearer to each other than most points are to their neighbours."""
    rng = np.random.default_rng(0)
    angle, height = 2 * np.pi * rng.random(count), rng.random(count)
    radius, height = np.ones(count), LENGTH * np.clip(1.25 * height - 0.125, 0, 1)
    ends = (height == 0) | (height == LENGTH)
    radius[ends] = np.sqrt(rng.random(ends.sum()))
    height += 0.3 * (1 - radius**2) * np.sign(height - LENGTH / 2)  # ends that are round
    one = np.stack([radius * np.cos(angle), radius * np.sin(angle), height], axis=1)
    return np.concatenate([one, one * [-1, 1, 1] + [2 * RADIUS + GAP, 0, 0]])


def test_rods_that_nearly_touch_stay_apart() -> None:
    points, triangles = cloud_surface(rods(300))
    tree = SurfaceTree(points, triangles)
    axis = np.linspace(1, LENGTH - 1, 20)[:, None] * [0, 0, 1.0]
    for x, inside in ((0, True), (2 * RADIUS + GAP, True), (RADIUS + GAP / 2, False), (-1.3 * RADIUS, False)):
        assert (tree.winding(axis + np.array([x, 0, 0])) > 0.5).mean() == inside, x


def test_it_scales_and_rotates_along() -> None:
    cloud = rods(150)
    R = pliant.rotations.matrix(pliant.rotations.from_axis_angle([1, 2, 3], 1.0))
    volumes = [Mesh(*cloud_surface(points)).volume for points in (cloud, 1e-3 * cloud @ R.T)]
    assert volumes[0] == pytest.approx(2 * np.pi * RADIUS**2 * LENGTH, rel=0.15)
    assert 1e9 * volumes[1] == pytest.approx(volumes[0], rel=0.03)


def test_many_points_are_thinned_evenly() -> None:
    cloud = rods(4000)
    few = thinned(cloud)
    assert MOST_POINTS / 2 < len(few) <= MOST_POINTS
    away = cKDTree(few).query(cloud)[0]
    assert away.max() < 0.4 * RADIUS


def test_flat_points_have_none() -> None:
    with pytest.raises(InputError, match="plane"):
        cloud_surface(np.random.default_rng(0).random((50, 3)) * [1, 1, 0])


@pytest.mark.slow
def test_a_sparse_cloud_has_the_limbs_and_the_cage_of_its_shape() -> None:
    body = gallery.creature(3000).base
    chosen = np.random.default_rng(0).choice(len(body.points), 1500, replace=False)
    cloud = PointCloud(body.points[chosen])
    named = [[found.anatomy.named(limb) for limb in found.anatomy.limbs] for found in map(shape_body, (body, cloud))]
    assert named[0] == named[1]
    cages = [pliant.build_cage(shape, faces=400) for shape in (body, cloud)]
    assert abs(cages[1].volume) < 1.2 * abs(cages[0].volume)
    assert cages[1].is_watertight
