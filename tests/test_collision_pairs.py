"""What comes near on straight paths, and when: against brute force, on plates and bars with known distances."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from pliant import rotations
from pliant.contact.collision_pairs import CollisionSurface, clearances
from pliant.contact.solids import Box
from pliant.core.errors import PliantError
from pliant.core.shapes import bounding_diagonal
from self_contact_shapes import all_crossings, bars, bumpy, closest_on_triangles, fist, joined, plates, soup
from surfaces import sphere

NEAR = 0.05


def surface(triangles, rest, near=NEAR):
    return CollisionSurface(triangles, np.ascontiguousarray(rest), near * bounding_diagonal(rest))


def vertex_pairs(prepared, found):
    """Vertices and triangles, as pairs of numbers, and their distances."""
    chosen = found.pairs[:, 4] == 1
    return found.numbers[chosen], found.distance[chosen]


@pytest.mark.parametrize("make", [fist, lambda: bumpy(1)], ids=["fist", "bumpy"])
def test_distances_are_those_of_brute_force_and_none_is_missing(make):
    triangles, rest, points = make()
    prepared = surface(triangles, rest)
    pairs, distance = vertex_pairs(prepared, prepared.sweep(points))
    corners = points[prepared.triangles]
    exact = np.linalg.norm(points[:, None] - closest_on_triangles(points, corners), axis=2)
    np.testing.assert_allclose(distance, exact[tuple(pairs.T)], atol=1e-9)
    step = np.zeros((len(points), len(points)), dtype=bool)
    for k in range(3):
        step[prepared.triangles[:, k], prepared.triangles[:, k - 1]] = True
    step |= step.T | np.eye(len(points), dtype=bool)
    beside = step[:, prepared.triangles].any(axis=2)  # triangles around a vertex may be left out
    within = 0.5 * np.minimum(prepared.near[:, None], prepared.near[prepared.triangles].min(axis=1))
    missed = (exact < within) & ~beside
    missed[tuple(pairs.T)] = False
    assert not missed.any()


@pytest.mark.parametrize("near", [0.01, 0.03])
def test_paths_beside_one_that_was_looked_at_find_what_they_find_alone(near):
    """Nothing is missed that meets, that was no flat fan before, or that is farther away than was looked."""
    triangles, rest, _ = fist()
    prepared, rng, kept, widened = surface(triangles, rest, near), np.random.default_rng(3), 0, 0
    far, size = np.array([0.0, 0.1, 0.02]), bounding_diagonal(rest)
    waves = [rng.normal(size=(3, 3)) / size for _ in range(2)]
    goal = rest + size * far * np.sin(8 * rest @ waves[0])
    prepared.sweep(rest, goal)
    looked = prepared._candidates
    for reach in (0.0, 0.001, 0.004, 0.01, 0.05):
        bend = reach * size * np.sin(30 * rest @ waves[1])
        noise = 0.1 * reach * size * rng.uniform(-1, 1, rest.shape)
        starts = rest, rest + 0.3 * (goal - rest) + noise, goal
        for before, after in zip(starts, (goal + bend, goal + bend, goal + noise), strict=True):
            found, alone = prepared.sweep(before, after), surface(triangles, rest, near).sweep(before, after)
            np.testing.assert_array_equal(found.pairs, alone.pairs)
            np.testing.assert_array_equal(found.impact, alone.impact)
            kept += prepared._candidates is looked
            prepared._candidates = looked
        prepared.sweep(rest, goal)
        few = rest[:, :1] > np.quantile(rest[:, 0], 0.9)
        found, alone = (some.sweep(rest, goal + few * bend) for some in (prepared, surface(triangles, rest, near)))
        np.testing.assert_array_equal(found.pairs, alone.pairs)
        widened += prepared._candidates is not looked and np.array_equal(prepared._candidates[4], looked[4])
        prepared._candidates = looked
    assert 3 <= kept < 15
    assert widened


def test_what_comes_near_beside_a_path_that_was_looked_at_is_found_without_looking_anew():
    triangles, points, lower = plates(0.105)
    prepared = CollisionSurface(triangles, points, 0.1)
    assert not len(prepared.sweep(points))
    looked, closer = prepared._candidates, points.copy()
    closer[lower:, 2] -= 0.008
    assert len(prepared.sweep(closer)) == len(CollisionSurface(triangles, points, 0.1).sweep(closer)) > 0
    assert prepared._candidates is looked


def test_a_motion_that_goes_on_is_looked_at_once_and_finds_what_each_path_finds_alone():
    triangles, rest, _ = fist()
    prepared, turn = surface(triangles, rest, 0.01), rest[:, [1, 0, 2]] * [1.0, -1.0, 0.0]
    path = [rest + share * (0.02 * turn + 0.001 * rest[:, [2, 2, 1]] * share) for share in np.linspace(0, 1, 5)]
    looks = []
    for before, after in pairwise(path):
        found, alone = prepared.sweep(before, after), surface(triangles, rest, 0.01).sweep(before, after)
        np.testing.assert_array_equal(found.pairs, alone.pairs)
        np.testing.assert_array_equal(found.impact, alone.impact)
        looks.append(prepared._candidates)
    assert any(one is other for one, other in pairwise(looks))


@pytest.mark.parametrize("looked", [False, True])
def test_points_that_are_no_numbers_are_refused(looked):
    triangles, points, _ = plates(0.13)
    prepared, broken = CollisionSurface(triangles, points, 0.1), points.copy()
    if looked:
        prepared.sweep(points)
    broken[3, 1] = np.nan
    with pytest.raises(PliantError, match="no finite numbers"):
        prepared.sweep(points, broken)


def test_plates_meet_after_the_share_of_the_path_between_them():
    triangles, points, lower = plates(0.4)
    prepared, after = surface(triangles, points, 0.01), points.copy()
    assert prepared.sweep(points, points + 1e-3).first == 1.0  # what is looked at here is not enough for what follows
    after[lower:, 2] -= 0.5
    assert 0.85 * 0.8 < prepared.sweep(points, after).first < 0.8
    after[lower:, 2] -= 0.5
    found = prepared.sweep(points, after)
    assert 0.85 * 0.4 < found.first < 0.4
    assert prepared.sweep(points, points + np.array([0.0, 0.0, 5.0])).first == 1.0


def test_bars_meet_with_their_edges():
    triangles, points, lower = bars(0.3)
    prepared, after = surface(triangles, points), points.copy()
    after[lower:, 2] -= 0.6
    found = prepared.sweep(points, after)
    meeting = found.pairs[found.impact <= 1]
    assert (meeting[:, 4] == 0).any()
    assert 0.85 * 0.5 < found.first < 0.5


@pytest.mark.parametrize("seed", range(3))
def test_nothing_crosses_before_the_first_impact(seed):
    """Two spheres thrown at each other, each vertex with a motion of its own."""
    rng, ball = np.random.default_rng(seed), sphere(10, 8)
    triangles, points = joined((ball.triangles, ball.points), (ball.triangles, ball.points + np.array([2.3, 0.2, 0.1])))
    after = points + rng.normal(scale=0.1, size=points.shape)
    after[len(ball.points) :, 0] -= 1.5
    found = surface(triangles, points).sweep(points, after)
    assert 0 < found.first < 1
    assert not len(all_crossings(triangles, points + found.first * (after - points)))
    assert len(all_crossings(triangles, after))


@pytest.mark.parametrize("make", [fist, lambda: bumpy(2), lambda: soup(3)], ids=["fist", "bumpy", "soup"])
def test_crossings_are_those_of_brute_force(make):
    triangles, rest, points = make()
    prepared = surface(triangles, rest)
    found = {tuple(sorted(pair)) for pair in prepared.crossings(np.ascontiguousarray(points)).tolist()}
    assert found == {tuple(sorted(pair)) for pair in all_crossings(prepared.triangles, points).tolist()}


def test_turning_moving_and_scaling_change_nothing():
    triangles, points, lower = plates(0.4)
    after, turn = points.copy(), rotations.matrix(rotations.from_axis_angle([1, 2, 3], 1.0))
    after[lower:, 2] -= 1.0
    expected = surface(triangles, points).sweep(points, after)
    moved, then = (np.ascontiguousarray(100 * some @ turn.T + [3, 4, 5]) for some in (points, after))
    found = surface(triangles, moved).sweep(moved, then)
    assert found.first == pytest.approx(expected.first, rel=1e-3)


def test_what_crosses_at_rest_may_go_on_crossing():
    ball = sphere(10, 8)
    triangles, points = joined((ball.triangles, ball.points), (ball.triangles, ball.points + np.array([1.5, 0.2, 0.1])))
    strict, lenient = surface(triangles, points), surface(triangles, points)
    lenient.let_pass(points)
    crossing = lenient.crossings(points)
    assert len(crossing)
    assert lenient.is_allowed(crossing).all()
    assert not strict.is_allowed(crossing).any()


def test_clearances_change_as_their_directions_say():
    triangles, points, lower = plates(0.02)
    prepared = surface(triangles, points)
    pairs = prepared.sweep(points).pairs
    distance, direction, weights = clearances(points, pairs)
    assert len(pairs) > 30
    assert np.allclose(np.linalg.norm(direction, axis=1), 1)
    moved = points.copy()
    moved[lower:, 2] += 1e-3
    rate = np.einsum("mk,mkd,md->m", weights, (moved - points)[pairs[:, :4]], direction)
    straight = np.abs(direction[:, 2]) > 0.999
    np.testing.assert_allclose((clearances(moved, pairs)[0] - distance)[straight], rate[straight], atol=1e-6)


@pytest.mark.parametrize("creases", [False, True])
def test_of_a_surface_with_creases_only_edges_that_stand_out_meet(creases):
    """A cube over another, turned a little: of the sides' diagonals no edge stands out, nor of what is inside out."""
    cube = Box((0, 0, 0), (1, 1, 1)).surface
    above = np.ascontiguousarray(cube.points @ rotations.matrix(rotations.from_axis_angle([0, 1, 0], 0.3)).T)
    body = surface(cube.triangles, cube.points)
    for faces, most in ((cube.triangles, 1.1), (cube.triangles[:, ::-1], 0.1)):
        other = CollisionSurface(faces, cube.points, NEAR, creases=creases)
        found = body.sweep(above + np.array([0, 1.02, 0]), other=(other, cube.points, cube.points)).pairs
        ends = found[found[:, 4] == 0, 2:4] - len(cube.points)
        lengths = np.linalg.norm(np.diff(cube.points[ends], axis=1)[:, 0], axis=1)
        assert lengths.max(initial=0.0) < most if creases else lengths.max() > 1.4
