"""Polygons, triangulation, edges, parts and welding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.topology import Polygons, connected_parts, even_triangles, triangulate, unique_edges, weld_map

SQUARE = [(0, 0), (2, 0), (2, 2), (0, 2)]
LOOPS = {
    "square": SQUARE,
    "dart": [(0, 0), (4, 0), (1, 1), (0, 4)],
    "L": [(0, 0), (3, 0), (3, 1), (1, 1), (1, 3), (0, 3)],
    "U": [(0, 0), (5, 0), (5, 4), (4, 4), (4, 1), (1, 1), (1, 4), (0, 4)],
    "comb": [(0, 0), (7, 0), (7, 3), (6, 1), (5, 3), (4, 1), (3, 3), (2, 1), (1, 3), (0, 1)],
    "spiral": [(0, 0), (6, 0), (6, 6), (1, 6), (1, 2), (4, 2), (4, 4), (3, 4), (3, 3), (2, 3), (2, 5), (5, 5), (5, 1),
               (0, 1)],
    "midpoints": [(0, 0), (1, 0), (2, 0), (2, 1), (2, 2), (1, 2), (0, 2), (0, 1)],
    "L with midpoints": [(0, 0), (1, 0), (2, 0), (3, 0), (3, 1), (2, 1), (1, 1), (1, 2), (1, 3), (0, 3), (0, 1)],
    "plus": [(1, 0), (2, 0), (2, 1), (3, 1), (3, 2), (2, 2), (2, 3), (1, 3), (1, 2), (0, 2), (0, 1), (1, 1)],
    "keyhole": [(0, 0), (4, 0), (4, 4), (0, 4), (0, 0), (1, 1), (1, 3), (3, 3), (3, 1), (1, 1)],
    "arrow": [(0, 0), (5, 2), (0, 4), (2, 2)],
}  # fmt: skip
AREAS = {"square": 4, "dart": 4, "L": 5, "U": 11, "midpoints": 4, "L with midpoints": 5, "plus": 5, "keyhole": 12}
AXES = {"xy": [0, 0, 1], "yx": [0, 0, -1], "yz": [1, 0, 0], "zy": [-1, 0, 0], "zx": [0, 1, 0], "xz": [0, -1, 0],
        "slanted": [1, -2, 0.5]}  # fmt: skip


def in_plane(loop: list[tuple[float, float]], normal: list[float]) -> np.ndarray:
    """A counter-clockwise loop of the xy plane, laid into the plane whose normal is given."""
    flat = np.column_stack([np.array(loop, dtype=float), np.zeros(len(loop))])
    up, to = np.array([0.0, 0, 1]), np.array(normal) / np.linalg.norm(normal)
    axis = np.cross(up, to) if np.any(np.cross(up, to)) else np.array([1.0, 0, 0])
    turn = rotations.from_axis_angle(axis, np.arccos(up @ to))
    return rotations.rotate(turn, flat) + np.array([3, -5, 7])


def shoelace(loop: np.ndarray) -> float:
    x, y = np.asarray(loop, dtype=float).T
    return float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


def triangle_areas(points: np.ndarray, slots: np.ndarray, corners: np.ndarray, normal: list[float]) -> np.ndarray:
    a, b, c = (points[corners[slots[:, k]]] for k in range(3))
    return np.cross(b - a, c - a) @ (np.array(normal) / np.linalg.norm(normal)) / 2


# Cutting into triangles


@pytest.mark.parametrize("plane", AXES)
@pytest.mark.parametrize("name", LOOPS)
def test_every_loop_is_covered_once_in_every_plane(name: str, plane: str) -> None:
    loop = LOOPS[name]
    for start in range(len(loop)):
        points = in_plane(loop[start:] + loop[:start], AXES[plane])
        polygons = Polygons.of([list(range(len(loop)))])
        slots, owner = triangulate(points, polygons)
        area = triangle_areas(points, slots, polygons.corners, AXES[plane])
        assert len(slots) == len(loop) - 2
        assert (owner == 0).all()
        assert area.min() > -1e-12, f"starting at corner {start}, a triangle is turned over"
        np.testing.assert_allclose(area.sum(), shoelace(loop))


def test_the_loops_have_the_areas_they_look_like() -> None:
    for name, area in AREAS.items():
        assert shoelace(LOOPS[name]) == area


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(0.05, 1), min_size=3, max_size=14), st.sampled_from(sorted(AXES)))
def test_any_star_is_covered_once(radii: list[float], plane: str) -> None:
    angle = np.arange(len(radii)) * 2 * np.pi / len(radii)
    loop = np.column_stack([np.cos(angle), np.sin(angle)]) * np.array(radii)[:, None]
    points = in_plane(loop.tolist(), AXES[plane])
    polygons = Polygons.of([list(range(len(loop)))])
    slots, _ = triangulate(points, polygons)
    area = triangle_areas(points, slots, polygons.corners, AXES[plane])
    assert area.min() > -1e-12
    np.testing.assert_allclose(area.sum(), shoelace(loop), rtol=1e-9)


def long_loops(count: int) -> dict[str, np.ndarray]:
    """Simple polygons of about that many corners, counter-clockwise."""
    rng = np.random.default_rng(4)
    t = np.linspace(0, 1, count)
    angle = 2 * np.pi * np.arange(count) / count
    base = [[0, -1], [1, -1]]
    spin = np.linspace(0, 40, count // 2)[:, None]
    arm = np.column_stack([np.cos(spin), np.sin(spin)])
    hub, tips = np.zeros((count // 3, 2)), 2 * np.pi * np.arange(count // 3) / (count // 3)
    petals = [np.column_stack([np.cos(tips + turn), np.sin(tips + turn)]) for turn in (0, 4 / count)]
    return {
        "star": np.column_stack([np.cos(angle), np.sin(angle)]) * rng.uniform(0.05, 1, count)[:, None],
        "comb": np.vstack([base, np.column_stack([t, np.arange(count) % 2])[::-1]]),
        "wave": np.vstack([base, np.column_stack([t, np.sin(90 * t) / 2 + rng.uniform(0, 1e-3, count)])[::-1]]),
        "spiral": np.vstack([(1 + spin) * arm, ((4 + spin) * arm)[::-1]])[::-1],
        "petals": np.stack([hub, *petals], axis=1).reshape(-1, 2),
        "far point": np.vstack([[[1e6, 0]], 1e-3 * np.column_stack([np.cos(angle), np.sin(angle)])[1:]]),
    }


@pytest.mark.parametrize("name", sorted(long_loops(9)))
def test_long_polygons_are_covered_once(name: str) -> None:
    loop = long_loops(3000)[name]
    points = in_plane(loop.tolist(), AXES["yx"])
    polygons = Polygons.of([list(range(len(loop)))])
    slots, _ = triangulate(points, polygons)
    area = triangle_areas(points, slots, polygons.corners, AXES["yx"])
    assert len(np.unique(np.sort(slots, axis=1), axis=0)) == len(loop) - 2
    assert area.min() > -1e-9 * area.sum()
    np.testing.assert_allclose(area.sum(), shoelace(loop), rtol=1e-9)


@pytest.mark.parametrize("count", [5, 12, 400])
def test_polygons_that_cross_themselves_still_become_triangles(count: int) -> None:
    rng = np.random.default_rng(count)
    for scale in (1.0, 1e-160, 1e160):
        loop = np.column_stack([scale * rng.normal(size=(count, 2)), np.zeros(count)])
        slots, _ = triangulate(loop, Polygons.of([list(range(count))]))
        edges = np.sort(slots[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
        rim, uses = np.unique(edges, axis=0, return_counts=True)
        assert slots.shape == (count - 2, 3)
        assert (uses <= 2).all()
        outline = rim[uses == 1].tolist()
        assert sorted(outline) == sorted([[0, count - 1], *([k, k + 1] for k in range(count - 1))])


def test_ears_are_those_that_a_search_of_all_corners_finds() -> None:
    from pliant.native import kernels

    def turn(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        return (b[..., 0] - a[..., 0]) * (c[..., 1] - a[..., 1]) - (b[..., 1] - a[..., 1]) * (c[..., 0] - a[..., 0])

    rng = np.random.default_rng(8)
    for _ in range(20):
        loop = rng.integers(0, 12, (60, 2)).astype(float)  # corners that coincide and lie on lines, too
        before, after = np.roll(loop, 1, axis=0), np.roll(loop, -1, axis=0)
        reflex = turn(before, loop, after) <= 0
        found = np.zeros(len(loop), dtype=np.bool_)
        assert kernels.ear_find(loop, found)
        for k in range(len(loop)):
            a, b, c = before[k], loop[k], after[k]
            inside = (turn(a, b, loop) >= 0) & (turn(b, c, loop) >= 0) & (turn(c, a, loop) >= 0) & reflex
            for corner in (a, b, c):
                inside &= (loop != corner).any(axis=1)
            assert found[k] == (turn(a, b, c) > 0 and not inside.any())


def test_every_corner_of_a_convex_polygon_is_in_a_fan() -> None:
    angle = np.arange(9) * 2 * np.pi / 9
    points = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(9)])
    slots, _ = triangulate(points, Polygons.of([list(range(9))]))
    assert slots.tolist() == [[0, k, k + 1] for k in range(1, 8)]


@pytest.mark.parametrize("name", [name for name in LOOPS if name != "keyhole"])
def test_the_cuts_of_a_mirrored_polygon_are_mirrored_wherever_it_starts(name: str) -> None:
    rng = np.random.default_rng(len(name))
    points, face = in_plane(LOOPS[name], AXES["slanted"]), rng.permutation(len(LOOPS[name]))
    points[face] = points.copy()  # the loop goes over its vertices in any order
    wanted = even_triangles(points, Polygons.of([face]))
    assert triangle_areas(points, wanted, np.arange(len(points)), AXES["slanted"]).min() > -1e-12
    for start in range(len(face)):
        np.testing.assert_array_equal(even_triangles(points, Polygons.of([np.roll(face, start)])), wanted)
        found = even_triangles(points * [-1, 1, 1], Polygons.of([np.roll(face[::-1], start)]))
        np.testing.assert_array_equal(found, wanted[:, ::-1])


def test_mixed_polygons_keep_their_owners_and_order() -> None:
    points = np.concatenate([in_plane(LOOPS["dart"], AXES["xy"]), in_plane(LOOPS["L"], AXES["xz"])])
    polygons = Polygons.of([[0, 1, 2, 3], [0, 1, 3], [4, 5, 6, 7, 8, 9], [2, 1, 0]])
    slots, owner = triangulate(points, polygons)
    assert owner.tolist() == [0, 0, 1, 2, 2, 2, 2, 3]
    np.testing.assert_array_equal(polygons.of_corner[slots], np.repeat(owner[:, None], 3, axis=1))


def test_a_collapsed_polygon_is_cut_without_complaint() -> None:
    for points in (np.zeros((5, 3)), np.outer(np.arange(5.0), [1, 2, 3])):
        slots, _ = triangulate(points, Polygons.of([[0, 1, 2, 3, 4]]))
        assert slots.shape == (3, 3)


def test_no_polygons_give_no_triangles() -> None:
    slots, owner = triangulate(np.zeros((0, 3)), Polygons.of([]))
    assert slots.shape == (0, 3)
    assert owner.shape == (0,)


# Polygons as values


@pytest.mark.parametrize(
    "faces",
    [
        np.array([[0, 1, 2], [2, 1, 3]]),
        np.array([[0, 1, 2], [2, 1, 3]], dtype=np.uint8),
        [[0, 1, 2], [2, 1, 3]],
        ((0, 1, 2), (2, 1, 3)),
        [np.array([0, 1, 2]), (2, 1, 3)],
    ],
)
def test_polygons_from_tables_and_lists(faces: object) -> None:
    polygons = Polygons.of(faces)
    assert [row.tolist() for row in polygons] == [[0, 1, 2], [2, 1, 3]]
    assert polygons.corners.dtype == np.int64
    assert Polygons.of(polygons) is polygons


def test_polygons_of_mixed_size() -> None:
    polygons = Polygons.of([[0, 1, 2], [3, 4, 5, 6, 7], [1, 2, 3, 4]])
    assert len(polygons) == 3
    assert polygons.sizes.tolist() == [3, 5, 4]
    assert polygons[1].tolist() == [3, 4, 5, 6, 7]
    assert polygons.of_corner.tolist() == [0] * 3 + [1] * 5 + [2] * 4
    assert polygons.next_corner.tolist() == [1, 2, 0, 4, 5, 6, 7, 3, 9, 10, 11, 8]


@pytest.mark.parametrize("faces", [[], (), np.zeros((0, 3), dtype=int), np.zeros((0, 3)), np.zeros(0)])
def test_no_polygons(faces: object) -> None:
    polygons = Polygons.of(faces)
    assert len(polygons) == 0
    assert polygons.corners.dtype == np.int64
    assert list(polygons) == []


@pytest.mark.parametrize(
    ("faces", "words"),
    [
        ([[0, 1, 2], [0, 1]], "face 1 has 2 corners; expected three or more"),
        ([[0, 1, 2], []], "face 1 has 0 corners"),
        (np.array([[0, 1]]), "face 0 has 2 corners"),
        (np.array([[0.0, 1.0, 2.5]]), "float64 values; expected whole vertex numbers"),
        ([[0, 1, 2], [0.5, 1, 2]], "float64 values"),
        ([["a", "b", "c"]], "expected whole vertex numbers"),
        (np.array([[True, False, True]]), "bool values"),
        ([0, 1, 2], "face 0 is 0; expected a list of vertex numbers"),
        (np.array([0, 1, 2]), "face 0 is 0"),
        ([[[0, 1, 2]]], "face 0 is .*; expected a list of vertex numbers"),
        (7, "faces are 7; expected"),
        (None, "faces are None; expected"),
        ([[0, 1, [2, 3]]], r"corners of face 0 are \[0, 1, \[2, 3\]\]; expected numbers"),
    ],
)
def test_bad_polygons(faces: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Polygons.of(faces)


@pytest.mark.parametrize("offsets", [[0, 3], [1, 4], [0, 5], []])
def test_offsets_have_to_cover_the_corners(offsets: list[int]) -> None:
    with pytest.raises(InputError, match=r"face offsets run over .*; expected 0 to 4"):
        Polygons(np.array([0, 1, 2, 3]), np.array(offsets, dtype=np.int64))


def test_taking_some_polygons() -> None:
    polygons = Polygons.of([[0, 1, 2], [3, 4, 5, 6, 7], [1, 2, 3, 4]])
    for keep in (np.array([2, 0]), np.array([2, 0], dtype=np.int32)):
        assert [row.tolist() for row in polygons.take(keep)] == [[1, 2, 3, 4], [0, 1, 2]]
    assert [row.tolist() for row in polygons.take(np.array([True, False, True]))] == [[0, 1, 2], [1, 2, 3, 4]]
    assert len(polygons.take(np.zeros(3, dtype=bool))) == 0
    assert polygons.corner_slots(np.array([1, 0])).tolist() == [3, 4, 5, 6, 7, 0, 1, 2]
    assert polygons.corner_slots(np.zeros(0, dtype=np.int64)).tolist() == []


def test_polygons_cannot_be_changed() -> None:
    faces = np.array([[0, 1, 2]])
    polygons = Polygons.of(faces)
    with pytest.raises(ValueError, match="read-only"):
        polygons.corners[0] = 5
    faces[0, 0] = 9  # the caller's own array stays the caller's, and out of reach
    assert polygons.corners.tolist() == [0, 1, 2]
    for derived in (polygons.sizes, polygons.of_corner, polygons.next_corner):
        assert not derived.flags.writeable


# Edges and parts


def test_edges_of_two_triangles() -> None:
    edges, counts = unique_edges(Polygons.of([[0, 1, 2], [3, 2, 1]]))
    assert edges.tolist() == [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]]
    assert counts.tolist() == [1, 1, 2, 1, 1]


@pytest.mark.parametrize("size", [3, 4, 7])
def test_a_lone_polygon_has_as_many_edges_as_corners(size: int) -> None:
    edges, counts = unique_edges(Polygons.of([list(range(10, 10 + size))]))
    assert len(edges) == size
    assert (counts == 1).all()


def test_a_repeated_corner_is_no_edge() -> None:
    edges, counts = unique_edges(Polygons.of([[0, 1, 2, 2], [2, 1, 0]]))
    assert edges.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert counts.tolist() == [2, 2, 2]


def test_edges_of_nothing() -> None:
    edges, counts = unique_edges(Polygons.of([]))
    assert edges.shape == (0, 2)
    assert counts.shape == (0,)


def test_euler_formula_of_a_grid() -> None:
    m = 7
    cell = np.arange(m * m).reshape(m, m)
    quads = np.stack([cell[:-1, :-1], cell[1:, :-1], cell[1:, 1:], cell[:-1, 1:]], axis=-1).reshape(-1, 4)
    edges, counts = unique_edges(Polygons.of(quads))
    assert m * m - len(edges) + len(quads) == 1
    assert (counts == 1).sum() == 4 * (m - 1)


def test_parts_are_numbered_by_their_first_vertex() -> None:
    edges = np.array([[4, 1], [2, 5], [5, 0]])
    assert connected_parts(7, edges).tolist() == [0, 1, 0, 2, 1, 0, 3]
    assert connected_parts(3, np.zeros((0, 2), dtype=np.int64)).tolist() == [0, 1, 2]
    assert connected_parts(0, np.zeros((0, 2), dtype=np.int64)).tolist() == []


# Welding

EVERYTHING = np.ones(6, dtype=bool)
PLACES = np.array([[0, 0, 0], [1, 0, 0], [0, 0, 0], [1, 0, 1e-4], [2, 0, 0], [-0.0, 0, 0]])


def test_exact_welding_joins_to_the_first() -> None:
    assert weld_map(PLACES, EVERYTHING, 0.0).tolist() == [0, 1, 0, 3, 4, 0]


def test_only_candidates_are_joined() -> None:
    some = np.array([False, True, True, True, True, True])
    assert weld_map(PLACES, some, 0.0).tolist() == [0, 1, 2, 3, 4, 2]
    assert weld_map(PLACES, ~EVERYTHING, 0.0).tolist() == [0, 1, 2, 3, 4, 5]
    assert weld_map(PLACES, ~EVERYTHING, 1.0).tolist() == [0, 1, 2, 3, 4, 5]


def test_welding_with_a_tolerance() -> None:
    assert weld_map(PLACES, EVERYTHING, 1e-3).tolist() == [0, 1, 0, 1, 4, 0]
    assert weld_map(PLACES, EVERYTHING, 1e-5).tolist() == [0, 1, 0, 3, 4, 0]
    some = np.array([False, True, True, True, True, True])
    assert weld_map(PLACES, some, 1e-3).tolist() == [0, 1, 2, 1, 4, 2]


def test_places_that_separate_in_a_pose_stay_apart() -> None:
    moved = PLACES.copy()
    moved[2, 0] = 9
    for tolerance in (0.0, 1e-3):
        assert weld_map(np.hstack([PLACES, moved]), EVERYTHING, tolerance)[[0, 2, 5]].tolist() == [0, 2, 0]


@pytest.mark.parametrize("tolerance", [0.0, 1e-9])
def test_a_weld_is_a_projection_onto_first_vertices(tolerance: float) -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(50, 3))[rng.integers(0, 50, size=300)]
    target = weld_map(points, np.ones(300, dtype=bool), tolerance)
    np.testing.assert_array_equal(target[target], target)
    assert (target <= np.arange(300)).all()
    np.testing.assert_array_equal(points[target], points)
    assert len(np.unique(target)) == len(np.unique(points, axis=0))
