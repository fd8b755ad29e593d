"""Closest points, winding numbers, signed distance and box overlaps, against closed forms and brute force."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from pliant.core.errors import InputError
from pliant.core.shapes import Mesh, TetMesh
from pliant.geometry.spatial import SurfaceTree, closest_points, signed_distances, winding_numbers
from surfaces import box, sphere, torus, turn


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def brute_closest(points, surface, triangles):
    """Reference: Ericson's seven regions replaced by projecting on the plane and clamping on the edges, all pairs."""
    a, b, c = (surface[triangles[:, k]][None] for k in range(3))
    p = points[:, None]

    def on_segment(a, b):
        length2 = ((b - a) ** 2).sum(-1)
        t = np.clip(((p - a) * (b - a)).sum(-1) / np.where(length2 > 0, length2, 1), 0, 1)
        return a + t[..., None] * (b - a)

    normal = np.cross(b - a, c - a)
    area2 = (normal**2).sum(-1)
    flat = area2 <= 1e-24 * ((b - a) ** 2 + (c - a) ** 2).sum(-1) ** 2
    foot = p - (((p - a) * normal).sum(-1) / np.where(flat, 1, area2))[..., None] * normal
    inside = ~flat
    for start, end in ((a, b), (b, c), (c, a)):
        inside = inside & ((np.cross(end - start, foot - start) * normal).sum(-1) >= 0)
    places = np.stack([on_segment(a, b), on_segment(b, c), on_segment(c, a)])
    distances = np.concatenate(
        [np.linalg.norm(places - p, axis=-1), np.where(inside, np.linalg.norm(foot - p, axis=-1), np.inf)[None]]
    ).min(axis=0)
    return distances.min(axis=1), distances.argmin(axis=1)


def brute_winding(points, surface, triangles):
    a, b, c = (surface[triangles[:, k]][None] - points[:, None] for k in range(3))
    ra, rb, rc = (np.linalg.norm(v, axis=-1) for v in (a, b, c))
    dot = lambda u, v: (u * v).sum(-1)  # noqa: E731
    below = ra * rb * rc + dot(a, b) * rc + dot(b, c) * ra + dot(c, a) * rb
    return np.arctan2(dot(a, np.cross(b, c)), below).sum(axis=1) / (2 * np.pi)


def tree_distance(points, surface, triangles):
    return SurfaceTree(surface, triangles).closest(points).distance


@pytest.fixture(params=["tree", "brute force"])
def distance(request):
    return tree_distance if request.param == "tree" else lambda *given: brute_closest(*given)[0]


@pytest.fixture(params=["exact", "fast", "brute force"])
def winding(request):
    """A way to compute winding numbers, and how exact it is."""
    if request.param == "brute force":
        return brute_winding, 1e-10
    exact = request.param == "exact"
    return lambda p, s, t: SurfaceTree(s, t).winding(p, exact=exact), 1e-10 if exact else 1e-2


def test_distance_to_a_box(distance, rng):
    half = np.array([1.0, 2.0, 0.5])
    mesh = box(half)
    queries = rng.uniform(-4, 4, (300, 3))
    beyond = np.abs(queries) - half
    expected = np.linalg.norm(np.maximum(beyond, 0), axis=1) + np.abs(np.minimum(beyond.max(axis=1), 0))
    np.testing.assert_allclose(distance(queries, mesh.points, mesh.triangles), expected, rtol=1e-12)


def test_distance_to_a_sphere_is_within_its_facets(distance, rng):
    mesh = sphere(48, 32)
    queries = rng.uniform(-2, 2, (300, 3))
    sag = 1 - np.cos(np.pi / 32) * np.cos(np.pi / 48)
    error = distance(queries, mesh.points, mesh.triangles) - np.abs(np.linalg.norm(queries, axis=1) - 1)
    assert np.abs(error).max() <= sag


@pytest.mark.parametrize(
    "triangle",
    [
        [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
        [[0, 0, 0], [1, 0, 0], [0.5, 0, 0]],
        [[0, 0, 0], [1, 0, 0], [1, 0, 0]],
        [[0, 0, 0], [1, 0, 0], [0.3, 1e-15, 0]],
        [[0, 0, 0], [1, 0, 0], [0.3, 1e-9, 0]],
    ],
    ids=["point", "collinear", "repeated corner", "below rounding", "needle"],
)
def test_distance_to_degenerate_triangles(distance, rng, triangle):
    corners = np.array(triangle, dtype=float)
    queries = rng.uniform(-1, 2, (100, 3))
    along = np.clip(queries[:, :1], 0, corners[:, 0].max())
    expected = np.linalg.norm(queries - along * [1, 0, 0], axis=1)
    np.testing.assert_allclose(distance(queries, corners, np.array([[0, 1, 2]])), expected, atol=2e-9)


def test_closest_agrees_with_brute_force_on_a_soup(rng):
    centres = rng.uniform(-1, 1, (400, 1, 3))
    surface = (centres + 0.2 * rng.normal(size=(400, 3, 3))).reshape(-1, 3)
    triangles = np.concatenate([np.arange(1200).reshape(-1, 3), [[0, 0, 0], [3, 4, 4]]])
    queries = rng.uniform(-2, 2, (500, 3))
    found = SurfaceTree(surface, triangles).closest(queries)
    distance, _ = brute_closest(queries, surface, triangles)
    np.testing.assert_allclose(found.distance, distance, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(found.points - queries, axis=1), distance, rtol=1e-10)
    np.testing.assert_allclose(
        np.einsum("qk,qkd->qd", found.barycentric, surface[triangles[found.triangle]]), found.points
    )
    assert found.barycentric.min() >= 0
    np.testing.assert_allclose(found.barycentric.sum(axis=1), 1, atol=1e-12)


def test_closest_within_a_limit(rng):
    tree = SurfaceTree(sphere())
    queries = rng.uniform(-3, 3, (500, 3))
    every, near = tree.closest(queries), tree.closest(queries, within=0.5)
    reached = every.distance <= 0.5
    assert 0 < reached.sum() < 500
    np.testing.assert_array_equal(near.distance[reached], every.distance[reached])
    assert (near.triangle[~reached] == -1).all()
    assert np.isinf(near.distance[~reached]).all()
    assert np.isnan(near.points[~reached]).all()
    assert (tree.closest(tree.points, within=0.0).triangle >= 0).all()


@pytest.mark.parametrize("mesh", [sphere(), box(), torus()], ids=["sphere", "box", "torus"])
def test_winding_is_one_inside_and_zero_outside(winding, rng, mesh):
    compute, tolerance = winding
    queries = rng.uniform(-1.4, 1.4, (400, 3))
    reach = np.hypot(queries[:, 0], queries[:, 1])
    inside = {
        "sphere": np.linalg.norm(queries, axis=1) < 0.97,
        "box": np.abs(queries).max(axis=1) < 1,
        "torus": np.hypot(reach - 1, queries[:, 2]) < 0.27,
    }
    outside = {
        "sphere": np.linalg.norm(queries, axis=1) > 1,
        "box": np.abs(queries).max(axis=1) > 1,
        "torus": np.hypot(reach - 1, queries[:, 2]) > 0.3,
    }
    name = {len(sphere().points): "sphere", 8: "box", len(torus().points): "torus"}[len(mesh.points)]
    values = compute(queries, mesh.points, mesh.triangles)
    assert inside[name].sum() > 20
    np.testing.assert_allclose(values[inside[name]], 1, atol=tolerance)
    np.testing.assert_allclose(values[outside[name]], 0, atol=tolerance)


def test_winding_of_an_open_disc_is_its_solid_angle(winding):
    compute, tolerance = winding
    angle = 2 * np.pi * np.arange(400) / 400
    rim = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    fan = np.stack([np.full(400, 400), np.arange(400), np.roll(np.arange(400), -1)], axis=1)
    heights = np.array([0.1, 0.5, 1.0, 3.0])
    below = np.stack([0 * heights, 0 * heights, -heights], axis=1)
    values = compute(below, np.concatenate([rim, [[0, 0, 0]]]), fan)
    np.testing.assert_allclose(values, 0.5 * (1 - heights / np.sqrt(1 + heights**2)), atol=max(1e-4, tolerance / 10))


def test_fast_winding_approaches_the_exact_one_as_beta_grows(rng):
    tree = SurfaceTree(sphere(60, 40))
    queries = rng.uniform(-1.2, 1.2, (500, 3))
    exact = tree.winding(queries, exact=True)
    errors = [np.abs(tree.winding(queries, beta=beta) - exact).max() for beta in (1.5, 3.0, 6.0, 12.0)]
    assert errors[1] < 1e-3
    # Each doubling of beta divides the error of a series to the second derivative by 8.
    assert errors[2] < errors[1] / 6
    assert errors[3] < errors[2] / 6


def test_winding_counts_nested_and_reversed_surfaces():
    outer, inner = sphere(radius=2.0), sphere(radius=1.0)
    points = np.concatenate([outer.points, inner.points])
    both = np.concatenate([outer.triangles, inner.triangles + len(outer.points)])
    hollow = np.concatenate([outer.triangles, inner.triangles[:, ::-1] + len(outer.points)])
    queries = [[0.1, 0.2, 0.0], [1.4, 0.1, 0.2], [3.0, 0.0, 0.0]]
    np.testing.assert_allclose(SurfaceTree(points, both).winding(queries, exact=True), [2, 1, 0], atol=1e-12)
    np.testing.assert_allclose(SurfaceTree(points, hollow).winding(queries, exact=True), [0, 1, 0], atol=1e-12)
    assert SurfaceTree(points, hollow).inside(queries).tolist() == [False, True, False]


def test_winding_on_the_surface_itself_is_a_number():
    mesh = box()
    values = SurfaceTree(mesh).winding(np.concatenate([mesh.points, [[1, 0, 0], [1, 1, 0]]]))
    assert np.isfinite(values).all()


def test_signed_distance_to_a_box(rng):
    half = np.array([1.0, 2.0, 0.5])
    queries = rng.uniform(-3, 3, (500, 3))
    beyond = np.abs(queries) - half
    expected = np.linalg.norm(np.maximum(beyond, 0), axis=1) + np.minimum(beyond.max(axis=1), 0)
    assert (expected < 0).sum() > 10
    np.testing.assert_allclose(signed_distances(queries, box(half)), expected, rtol=1e-10)


def test_inside_of_a_sphere_with_a_hole_and_doubled_faces(rng):
    mesh = sphere(40, 30)
    torn = np.concatenate([mesh.triangles[5:], mesh.triangles[200:203]])
    queries = rng.uniform(-1, 1, (500, 3))
    radius = np.linalg.norm(queries, axis=1)
    clear = np.abs(radius - 1) > 0.25
    np.testing.assert_array_equal(SurfaceTree(mesh.points, torn).inside(queries)[clear], (radius < 1)[clear])


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_a_turned_moved_and_scaled_surface_gives_the_same_answers(rng, scale):
    mesh, queries = torus(), rng.uniform(-1.5, 1.5, (300, 3))
    move = lambda p: scale * (p @ turn([1, 2, 3], 0.8).T + [3, -5, 2])  # noqa: E731
    before, after = SurfaceTree(mesh), SurfaceTree(move(mesh.points), mesh.triangles)
    np.testing.assert_allclose(
        after.closest(move(queries)).distance, scale * before.closest(queries).distance, rtol=1e-9
    )
    np.testing.assert_allclose(
        after.winding(move(queries), exact=True), before.winding(queries, exact=True), atol=1e-10
    )


def test_a_moved_tree_answers_like_a_new_one(rng):
    mesh = torus()
    old = SurfaceTree(mesh)
    old.winding([[0, 0, 0]])
    bent = mesh.points + 0.3 * np.sin(3 * mesh.points[:, ::-1])
    moved, new = old.moved(bent), SurfaceTree(bent, mesh.triangles)
    queries = rng.uniform(-1.5, 1.5, (300, 3))
    np.testing.assert_allclose(moved.closest(queries).distance, new.closest(queries).distance, rtol=1e-13)
    np.testing.assert_allclose(moved.winding(queries), new.winding(queries), atol=2e-2)
    np.testing.assert_array_equal(moved.overlaps(), new.overlaps())
    assert old.points is mesh.points


def test_a_tree_pickles(rng):
    tree = SurfaceTree(sphere())
    queries = rng.uniform(-2, 2, (50, 3))
    copy = pickle.loads(pickle.dumps(tree))
    np.testing.assert_array_equal(copy.signed_distance(queries), tree.signed_distance(queries))


def brute_overlaps(a, b, margin=0.0):
    apart = (a.min(axis=1)[:, None] > b.max(axis=1)[None] + margin) | (
        b.min(axis=1)[None] > a.max(axis=1)[:, None] + margin
    )
    return np.argwhere(~apart.any(axis=2))


@pytest.mark.parametrize("margin", [0.0, 0.2])
def test_overlaps_agree_with_brute_force(rng, margin):
    soups = [rng.uniform(-1, 1, (k, 1, 3)) + 0.15 * rng.normal(size=(k, 3, 3)) for k in (150, 230)]
    a, b = (SurfaceTree(soup.reshape(-1, 3), np.arange(3 * len(soup)).reshape(-1, 3)) for soup in soups)
    np.testing.assert_array_equal(a.overlaps(b, margin=margin), brute_overlaps(*soups, margin))
    own = brute_overlaps(soups[0], soups[0], margin)
    np.testing.assert_array_equal(a.overlaps(margin=margin), own[own[:, 0] < own[:, 1]])


def test_overlaps_within_a_margin_of_a_gap():
    low, high = SurfaceTree(box()), SurfaceTree(box(centre=(0, 0, 2.5)))
    assert len(low.overlaps(high, margin=0.49)) == 0
    assert len(low.overlaps(high, margin=0.51)) > 0


@pytest.mark.parametrize("points", [np.zeros((0, 3)), np.zeros((4, 3))], ids=["no points", "points"])
def test_an_empty_surface(points):
    tree = SurfaceTree(points, np.zeros((0, 3), dtype=int))
    found = tree.closest([[0, 0, 0]])
    assert np.isinf(found.distance).all()
    assert found.triangle.tolist() == [-1]
    assert tree.winding([[1, 2, 3]]).tolist() == [0]
    assert not tree.inside([[0, 0, 0]]).any()
    assert len(tree.overlaps()) == len(tree.crossings()) == 0


def test_no_queries():
    tree = SurfaceTree(box())
    assert len(tree.closest(np.zeros((0, 3))).distance) == 0
    assert len(tree.winding([])) == 0


def test_many_triangles_at_one_place():
    count = 1000
    tree = SurfaceTree(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]]), np.tile([0, 1, 2], (count, 1)))
    assert tree.closest([[0.2, 0.2, 3.0]]).distance.tolist() == [3.0]
    assert len(tree.overlaps()) == count * (count - 1) // 2


def test_triangles_of_very_different_size(rng):
    """Sizes in a geometric series make the tree as deep as it can get."""
    sizes = 2.0 ** -np.arange(300)
    surface = (sizes[:, None, None] * np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]])).reshape(-1, 3)
    triangles = np.arange(900).reshape(-1, 3)
    queries = rng.uniform(0, 1, (50, 3))
    found = SurfaceTree(surface, triangles).closest(queries)
    np.testing.assert_allclose(found.distance, brute_closest(queries, surface, triangles)[0], rtol=1e-12)


def test_one_shot_forms_take_meshes_and_trees(rng):
    queries = rng.uniform(-2, 2, (20, 3))
    mesh = box()
    tets = TetMesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1, 2, 3]])
    assert closest_points([[0.1, 0.1, 0.1]], tets).distance[0] == pytest.approx(0.1)
    assert winding_numbers([[0.1, 0.1, 0.1]], tets)[0] == pytest.approx(1, abs=1e-2)
    np.testing.assert_array_equal(closest_points(queries, mesh).distance, SurfaceTree(mesh).closest(queries).distance)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SurfaceTree(box().points), "triangles"),
        (lambda: SurfaceTree(box(), [[0, 1, 2]]), "mesh alone"),
        (lambda: SurfaceTree(box().points, [[0, 1, 8]]), "there are 8"),
        (lambda: SurfaceTree(box().points, [[0, 1, -1]]), "-1"),
        (lambda: SurfaceTree(box().points, [[0, 1]]), r"\(m, 3\)"),
        (lambda: SurfaceTree(box().points, [[0.0, 1.0, 2.0]]), "whole numbers"),
        (lambda: SurfaceTree([[0, np.nan, 0]], [[0, 0, 0]]), "finite"),
        (lambda: SurfaceTree(box()).closest([[0, 0]]), r"\(n, 3\)"),
        (lambda: SurfaceTree(box()).closest([[0, 0, np.inf]]), "finite"),
        (lambda: SurfaceTree(box()).closest([[0, 0, 0]], within=-1.0), "within"),
        (lambda: SurfaceTree(box()).winding([[0, 0, 0]], beta=0.0), "beta"),
        (lambda: SurfaceTree(box()).overlaps(margin=-1.0), "margin"),
        (lambda: SurfaceTree(box()).crossings(tolerance=np.nan), "tolerance"),
        (lambda: SurfaceTree(box()).moved(np.zeros((3, 3))), "has 8"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.data
def test_a_real_cat_against_brute_force(data, rng):
    from pliant.io import read_mesh

    mesh: Mesh = read_mesh(data / "poses/cat/cat-ref.obj")
    low, high = mesh.points.min(axis=0), mesh.points.max(axis=0)
    queries = rng.uniform(low, high, (60, 3))
    tree = SurfaceTree(mesh)
    np.testing.assert_allclose(
        tree.closest(queries).distance, brute_closest(queries, mesh.points, mesh.triangles)[0], rtol=1e-9
    )
    exact = brute_winding(queries, mesh.points, mesh.triangles)
    np.testing.assert_allclose(tree.winding(queries), exact, atol=1e-2)
    np.testing.assert_allclose(tree.winding(queries, exact=True), exact, atol=1e-10)
