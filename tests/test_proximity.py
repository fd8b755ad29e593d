"""Where a surface comes near to itself: against brute force, on plates and bars with known gaps, and under abuse."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from pliant import gallery
from pliant.contact.proximity import EdgePairs, Pairs, SelfProximity
from pliant.core.errors import InputError
from pliant.core.shapes import bounding_diagonal
from self_contact_shapes import (
    all_crossings,
    all_distances,
    all_edge_distances,
    bars,
    bumpy,
    closest_on_triangles,
    fist,
    plates,
    soup,
)
from surfaces import box, sphere, turn

ALL = 200
SHAPES = {"fist": fist, "bumpy 1": lambda: bumpy(1), "bumpy 2": lambda: bumpy(2), "soup": lambda: soup(3)}


@pytest.fixture(params=SHAPES, scope="module")
def shape(request):
    return SHAPES[request.param]()


@pytest.fixture(scope="module")
def hand():
    triangles, rest, points = fist()
    return SelfProximity(triangles, rest), points


def listed(pairs):
    return set(zip(pairs.vertex.tolist(), pairs.triangle.tolist(), strict=True))


def listed_edges(pairs):
    return {(tuple(a), tuple(b)) for a, b in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)}


# Vertices and triangles


@pytest.mark.parametrize("rings", [0, 2])
def test_every_pair_that_brute_force_finds_and_no_other(shape, rings):
    triangles, rest, points = shape
    within = 0.1 * bounding_diagonal(points)
    pairs = SelfProximity(triangles, rest, rings=rings).find(points, within=within, most=ALL)
    expected = all_distances(triangles, points, within=within, rings=rings)
    assert len(pairs) > 10
    assert listed(pairs) == set(map(tuple, np.argwhere(np.isfinite(expected)).tolist()))


@pytest.mark.parametrize("most", [1, 4])
def test_the_nearest_are_kept_nearest_first(shape, most):
    triangles, rest, points = shape
    within = 0.1 * bounding_diagonal(points)
    prepared = SelfProximity(triangles, rest)
    pairs = prepared.find(points, within=within, most=most)
    nearest = np.sort(all_distances(triangles, points, within=within), axis=1)[:, :most]
    gap = prepared.gaps(points, pairs)[0]
    assert np.allclose(gap, nearest[np.isfinite(nearest)], rtol=1e-9, atol=1e-12)


def test_gaps_where_pairs_were_found_are_distances_along_unit_normals(hand):
    prepared, points = hand
    pairs = prepared.find(points, within=0.05 * bounding_diagonal(points))
    gap, normal, weights = prepared.gaps(points, pairs)
    y = np.einsum("mk,mkd->md", weights, points[prepared.triangles[pairs.triangle]])
    assert np.allclose(weights.sum(axis=1), 1)
    assert weights.min() >= 0
    assert np.allclose(np.linalg.norm(normal, axis=1), 1)
    assert np.allclose(points[pairs.vertex], y + gap[:, None] * normal)
    assert gap.min() > 0


@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_plates_find_each_other(shift):
    triangles, points, lower = plates(0.4, shift)
    prepared = SelfProximity(triangles, points)
    pairs = prepared.find(points, within=0.5, most=1)
    gap, normal, _ = prepared.gaps(points, pairs)
    assert set(pairs.vertex) >= {3 * 7 + 3, lower + 3 * 7 + 3}
    assert len(pairs) >= 2 * 36
    above = normal[:, 2] > 0.9
    straight = np.abs(normal[:, 2]) > 1 - 1e-12
    assert np.array_equal(above[straight], (pairs.vertex >= lower)[straight])
    assert np.allclose(gap[straight], 0.4)
    assert straight.sum() >= 2 * 36
    assert np.all((pairs.vertex < lower) == (pairs.triangle >= len(triangles) // 2))


@pytest.mark.parametrize("shift", [0.0, 0.3])
@pytest.mark.parametrize("depth", [1e-6, 0.1, 0.7])
def test_gaps_are_negative_by_how_far_a_plate_went_through(depth, shift):
    triangles, points, lower = plates(0.4, shift)
    prepared = SelfProximity(triangles, points)
    pairs = prepared.find(points, within=0.5, most=1)
    _, before, _ = prepared.gaps(points, pairs)
    moved = points.copy()
    moved[lower:, 2] = -depth
    gap, normal, _ = prepared.gaps(moved, pairs)
    straight = np.abs(before[:, 2]) > 1 - 1e-12
    assert np.allclose(gap[straight], -depth, rtol=1e-9)
    assert np.allclose(normal[straight], before[straight])
    assert np.all(np.isinf(gap[~straight]))


def test_plates_that_touch_are_pairs_without_a_gap():
    triangles, rest, _ = plates(0.4, 0.0)
    points = rest * [1, 1, 0]
    prepared = SelfProximity(triangles, rest)
    pairs = prepared.find(points, within=0.1)
    assert set(pairs.vertex) == set(range(len(points)))
    gap, normal, _ = prepared.gaps(points, pairs)
    assert np.allclose(gap, 0, atol=1e-12)
    assert np.allclose(np.abs(normal[:, 2]), 1)
    assert np.allclose(prepared.rest_gap(pairs), 0.4)


def test_beside_its_triangle_a_vertex_has_a_distance_outside_and_nothing_to_say_inside():
    triangles, points, lower = plates(0.4, 0.0)
    prepared = SelfProximity(triangles, points)
    pairs = Pairs([lower], [0])
    moved = points.copy()
    moved[lower] = [-3, 0, 4]
    gap, normal, weights = prepared.gaps(moved, pairs)
    assert np.allclose(gap, 5)
    assert np.allclose(normal, [[-0.6, 0, 0.8]])
    assert np.allclose(weights, [[1, 0, 0]])
    moved[lower] = [-3, 0, -4]
    assert prepared.gaps(moved, pairs)[0] == np.inf


@pytest.mark.parametrize("bend", [0.0, 0.3])
def test_the_other_side_of_a_thin_sheet_is_never_found(bend):
    mesh = gallery.box(1200, size=(2, 2, 0.02))
    points = mesh.points + [0, 0, 1] * (bend * np.sin(4 * mesh.points[:, :1]))
    prepared = SelfProximity(mesh.triangles, mesh.points)
    top = mesh.points[:, 2] > 0
    top_triangle = mesh.points[mesh.triangles, 2].mean(axis=1) > 0
    pairs = prepared.find(points, within=0.3, most=ALL)
    assert np.array_equal(top[pairs.vertex], top_triangle[pairs.triangle])
    assert (len(pairs) > 0) == (bend > 0)
    edges = prepared.find_edges(points, within=0.3, most=ALL)
    assert np.array_equal(top[edges.first].any(axis=1), top[edges.second].any(axis=1))


@pytest.mark.parametrize("kind", ["vertices", "edges"])
def test_gaps_change_as_their_normals_say(hand, kind):
    prepared, points = hand
    rng = np.random.default_rng(2)
    size = bounding_diagonal(points)
    start = points + 2e-3 * size * rng.normal(size=points.shape)
    step = 1e-6 * size * rng.normal(size=points.shape)
    if kind == "vertices":
        pairs = prepared.find(points, within=0.05 * size)
        gap, normal, weights = prepared.gaps(start, pairs)
        after, before = (prepared.gaps(start + way * step, pairs)[0] for way in (0.5, -0.5))
        slip = step[pairs.vertex] - np.einsum("mk,mkd->md", weights, step[prepared.triangles[pairs.triangle]])
    else:
        pairs = prepared.find_edges(points, within=0.05 * size)
        gap, normal, along = prepared.edge_gaps(start, pairs)
        after, before = (prepared.edge_gaps(start + way * step, pairs)[0] for way in (0.5, -0.5))
        at = lambda ends, s: step[ends[:, 0]] + s[:, None] * (step[ends[:, 1]] - step[ends[:, 0]])  # noqa: E731
        slip = at(pairs.first, along[:, 0]) - at(pairs.second, along[:, 1])
    said = np.isfinite(gap) & np.isfinite(after) & np.isfinite(before)
    assert said.sum() > 50
    assert (gap[said] < 0).any()
    change = np.einsum("md,md->m", normal, slip)[said]
    assert np.allclose(after[said] - before[said], change, atol=2e-3 * np.abs(change).max())


# Edges


@pytest.mark.parametrize(
    "make", [lambda: fist(), lambda: bumpy(4), lambda: soup(5, 100)], ids=["fist", "bumpy", "soup"]
)
def test_every_edge_pair_that_brute_force_finds_and_no_other(make):
    triangles, rest, points = make()
    prepared = SelfProximity(triangles, rest, rings=1)
    within = 0.1 * bounding_diagonal(points)
    expected = all_edge_distances(prepared, points, within=within)
    numbers = np.argwhere(np.triu(np.isfinite(expected)))
    assert len(numbers) > 10
    named = lambda numbers: {(tuple(prepared.edges[e]), tuple(prepared.edges[f])) for e, f in numbers}  # noqa: E731
    pairs = prepared.find_edges(points, within=within, most=ALL)
    assert listed_edges(pairs) == named(numbers)
    gap, normal, along = prepared.edge_gaps(points, pairs)
    assert np.allclose(gap, expected[numbers[:, 0], numbers[:, 1]])
    at = lambda ends, s: points[ends[:, 0]] * (1 - s[:, None]) + points[ends[:, 1]] * s[:, None]  # noqa: E731
    assert np.allclose(at(pairs.first, along[:, 0]) - at(pairs.second, along[:, 1]), gap[:, None] * normal)
    nearest = [sorted((e, expected[e].argmin())) for e in np.flatnonzero(np.isfinite(expected).any(axis=1))]
    assert listed_edges(prepared.find_edges(points, within=within, most=1)) == named(nearest)


def test_crossed_bars_meet_with_their_edges():
    triangles, points, lower = bars(0.2)
    prepared = SelfProximity(triangles, points)
    assert len(prepared.find(points, within=0.3)) == 0
    pairs = prepared.find_edges(points, within=0.3)
    gap, normal, along = prepared.edge_gaps(points, pairs)
    assert len(pairs) == 1
    assert np.allclose(gap, 0.2)
    assert np.allclose(along, 0.5)
    assert np.allclose(normal, [[0, 0, -1 if pairs.first[0, 0] < lower else 1]])
    assert np.allclose(prepared.rest_gap(pairs), 0.2)


def test_bars_that_pass_through_each_other_have_a_negative_gap():
    triangles, points, lower = bars(0.2)
    prepared = SelfProximity(triangles, points)
    pairs = prepared.find_edges(points, within=0.3)
    moved = points.copy()
    moved[lower:, 2] -= 0.5
    gap, normal, _ = prepared.edge_gaps(moved, pairs)
    assert np.allclose(gap, -0.3)
    assert np.allclose(normal, prepared.edge_gaps(points, pairs)[1])
    turned = EdgePairs(pairs.first[:, ::-1], pairs.second, -pairs.sign)
    assert np.allclose(prepared.edge_gaps(moved, turned)[0], -0.3)


@pytest.mark.parametrize(("down", "expected"), [(0.0, np.hypot(3.0, 0.2)), (0.5, np.inf)])
def test_bars_beyond_each_others_ends(down, expected):
    triangles, points, lower = bars(0.2)
    prepared = SelfProximity(triangles, points)
    pairs = prepared.find_edges(points, within=0.3)
    moved = points.copy()
    moved[lower:] += [7, 0, -down]
    assert prepared.edge_gaps(moved, pairs)[0] == pytest.approx(expected)


def test_bars_turned_past_each_other_are_still_apart():
    triangles, points, lower = bars(0.2)
    prepared = SelfProximity(triangles, points)
    pairs = prepared.find_edges(points, within=0.3)
    for degrees in range(0, 360, 15):
        moved = points.copy()
        moved[lower:] = moved[lower:] @ turn([0, 0, 1], np.radians(degrees)).T
        assert prepared.edge_gaps(moved, pairs)[0] > 0.199


# Crossings


def test_crossings_are_those_of_brute_force(shape):
    triangles, rest, points = shape
    found = SelfProximity(triangles, rest).crossings(points)
    assert found.tolist() == all_crossings(triangles, points).tolist()


def test_fist_crosses_itself_and_convex_shapes_do_not(hand):
    prepared, points = hand
    assert len(prepared.crossings(points)) > 0
    for mesh in (sphere(), box(), gallery.cylinder(500)):
        prepared = SelfProximity(mesh.triangles, mesh.points)
        assert prepared.crossings(mesh.points).shape == (0, 2)
        assert len(prepared.find(mesh.points, within=1.0)) == 0
        assert len(prepared.find_edges(mesh.points, within=1.0)) == 0


# What must not matter, and what must not break


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_turning_moving_and_scaling_change_nothing(shape, size):
    triangles, rest, points = shape
    within = 0.06 * bounding_diagonal(points)
    rotation = turn([1, 2, 3], 1.1)
    moved = size * (points @ rotation.T + [3, -1, 2])
    prepared = SelfProximity(triangles, rest)
    pairs, again = prepared.find(points, within=within, most=ALL), prepared.find(moved, within=size * within, most=ALL)
    assert listed(pairs) == listed(again)
    gap, normal, weights = prepared.gaps(points, pairs)
    after = prepared.gaps(moved, pairs)
    assert np.allclose(after[0], size * gap)
    assert np.allclose(after[1], normal @ rotation.T, atol=1e-7)
    assert np.allclose(after[2], weights, atol=1e-7)
    pairs = prepared.find_edges(points, within=within, most=ALL)
    again = prepared.find_edges(moved, within=size * within, most=ALL)
    assert listed_edges(pairs) == listed_edges(again)
    assert np.array_equal(pairs.sign, again.sign)


def test_a_seam_in_the_surface_changes_nothing(hand):
    prepared, points = hand
    triangles = prepared.triangles.copy()
    corners, inverse = np.unique(triangles[::2], return_inverse=True)
    triangles[::2] = len(points) + inverse.reshape(-1, 3)
    split = SelfProximity(triangles, np.concatenate([prepared.rest, prepared.rest[corners]]))
    original = np.concatenate([np.arange(len(points)), corners])
    within = 0.05 * bounding_diagonal(points)
    found = split.find(points[original], within=within, most=ALL)
    whole = {(int(original[v]), t) for v, t in listed(found)}
    used = np.unique(triangles)
    assert whole == {
        pair for pair in listed(prepared.find(points, within=within, most=ALL)) if pair[0] in original[used]
    }
    assert len(split.crossings(points[original])) == len(prepared.crossings(points))


def test_points_that_no_triangle_uses_are_never_found(hand):
    prepared, points = hand
    within = 0.05 * bounding_diagonal(points)
    inside = np.random.default_rng(1).normal(points.mean(axis=0), 0.1, (50, 3))
    more = SelfProximity(prepared.triangles, np.concatenate([prepared.rest, inside]))
    assert listed(more.find(np.concatenate([points, inside]), within=within)) == listed(
        prepared.find(points, within=within)
    )


def test_rest_gaps_are_distances_at_rest(hand):
    prepared, points = hand
    within = 0.05 * bounding_diagonal(points)
    pairs, edges = prepared.find(points, within=within), prepared.find_edges(points, within=within)
    y = closest_on_triangles(prepared.rest, prepared.rest[prepared.triangles])[pairs.vertex, pairs.triangle]
    assert np.allclose(prepared.rest_gap(pairs), np.linalg.norm(prepared.rest[pairs.vertex] - y, axis=1))
    s = np.linspace(0, 1, 101)[:, None, None, None]
    t = np.linspace(0, 1, 101)[None, :, None, None]
    a, b = prepared.rest[edges.first[:30]], prepared.rest[edges.second[:30]]
    sampled = np.linalg.norm((1 - s) * a[:, 0] + s * a[:, 1] - (1 - t) * b[:, 0] - t * b[:, 1], axis=-1).min((0, 1))
    exact = prepared.rest_gap(edges)[:30]
    longest = np.linalg.norm(a[:, 0] - a[:, 1], axis=1) + np.linalg.norm(b[:, 0] - b[:, 1], axis=1)
    assert np.all(exact <= sampled + 1e-12)
    assert np.all(exact >= sampled - 0.01 * longest)


GARBAGE = {
    "one place": lambda p, rng: np.zeros_like(p),
    "a line": lambda p, rng: p * [1, 0, 0],
    "a plane": lambda p, rng: p * [1, 1, 0],
    "grid": lambda p, rng: np.round(p, 1),
    "noise": lambda p, rng: rng.normal(size=p.shape),
    "inside out": lambda p, rng: p * [-1, 1, 1],
    "huge": lambda p, rng: 1e70 * p,
    "tiny": lambda p, rng: 1e-170 * p,
    "half collapsed": lambda p, rng: np.where(np.arange(len(p))[:, None] % 2, p, p.mean(axis=0)),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_gives_numbers(hand, kind):
    prepared, points = hand
    size = bounding_diagonal(points)
    pairs, edges = prepared.find(points, within=0.05 * size), prepared.find_edges(points, within=0.05 * size)
    bad = GARBAGE[kind](points, np.random.default_rng(8))
    pairs = Pairs(
        *(
            np.append(a, b)
            for a, b in zip(vars(pairs).values(), vars(prepared.find(bad, within=0.1)).values(), strict=True)
        )
    )
    for values in (*prepared.gaps(bad, pairs), *prepared.edge_gaps(bad, edges)):
        assert not np.isnan(values).any()
    gap, normal, weights = prepared.gaps(bad, pairs)
    said = np.isfinite(gap)
    assert np.allclose(np.linalg.norm(normal[said], axis=1), 1)
    assert np.allclose(weights.sum(axis=1), 1)
    gap, normal, along = prepared.edge_gaps(bad, edges)
    assert np.allclose(np.linalg.norm(normal[np.isfinite(gap)], axis=1), 1)
    assert along.min() >= 0
    assert along.max() <= 1
    found = prepared.find_edges(bad, within=0.1)
    assert not np.isnan(prepared.edge_gaps(bad, found)[0]).any()
    prepared.crossings(bad)


def test_nothing_found_has_the_right_shapes():
    for triangles, points in ((np.zeros((0, 3), int), np.zeros((4, 3))), (sphere().triangles, sphere().points)):
        prepared = SelfProximity(triangles, points)
        pairs, edges = prepared.find(points, within=0.1), prepared.find_edges(points, within=0.1)
        assert len(pairs) == len(edges) == 0
        assert pairs.vertex.shape == pairs.triangle.shape == edges.sign.shape == (0,)
        assert edges.first.shape == edges.second.shape == prepared.crossings(points).shape == (0, 2)
        assert [a.shape for a in prepared.gaps(points, pairs)] == [(0,), (0, 3), (0, 3)]
        assert [a.shape for a in prepared.edge_gaps(points, edges)] == [(0,), (0, 3), (0, 2)]
        assert prepared.rest_gap(pairs).shape == prepared.rest_gap(edges).shape == (0,)


def test_pickles(hand):
    prepared, points = hand
    within = 0.05 * bounding_diagonal(points)
    pairs = prepared.find(points, within=within)
    again = pickle.loads(pickle.dumps(prepared))
    assert listed(again.find(points, within=within)) == listed(pickle.loads(pickle.dumps(pairs))) == listed(pairs)
    assert not again.rest.flags.writeable
    assert not pairs.vertex.flags.writeable


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda p, x: p.find(x[1:], within=1), "points; this surface has"),
        (lambda p, x: p.find(x, within=0), "positive distance"),
        (lambda p, x: p.find(x, within=np.nan), "positive distance"),
        (lambda p, x: p.find(x, within=1, most=0), "1 or more"),
        (lambda p, x: p.find_edges(x, within=1, facing=1), "cosine"),
        (lambda p, x: p.find(np.full_like(x, np.nan), within=1), "finite"),
        (lambda p, x: p.gaps(x, Pairs([0], [10**6])), "triangle 1000000"),
        (lambda p, x: p.gaps(x, Pairs([-1], [0])), "point -1"),
        (lambda p, x: p.rest_gap(Pairs([10**6], [0])), "point 1000000"),
        (lambda p, x: p.edge_gaps(x, EdgePairs([[0, 0]], [[1, 2]], [1.0])), r"no triangle has the edge \[0, 0\]"),
        (lambda p, x: Pairs([0, 1], [0]), "as many"),
        (lambda p, x: EdgePairs([[0, 1]], [[0, 1]], [1.0, 1.0]), "shapes"),
        (lambda p, x: SelfProximity(p.triangles, x, rings=-1), "rings"),
        (lambda p, x: SelfProximity(p.triangles, x[:5]), "refer to points"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(hand, call, says):
    with pytest.raises(InputError, match=says) as caught:
        call(*hand)
    assert "\n" not in str(caught.value)
