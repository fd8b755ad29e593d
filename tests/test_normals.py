"""Normals: of faces and vertices, and a file's own normals turned along with its points."""

from __future__ import annotations

import numpy as np
import pytest

from pliant import Layer, Mesh
from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.normals import rotate_between, rotated_normals, triangle_normals, unit, vertex_normals

CORNERS = np.array([[x, y, z] for x in (-1.0, 1) for y in (-1.0, 1) for z in (-1.0, 1)])
SIDES = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])
SIDE_NORMALS = np.array([[-1.0, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0], [0, 0, -1], [0, 0, 1]])


def hard_cube() -> Mesh:
    """A cube of eight vertices whose normals make every edge hard."""
    return Mesh(CORNERS, SIDES, normals=Layer(SIDE_NORMALS, np.repeat(np.arange(6), 4)))


def smooth_cube() -> Mesh:
    """A cube whose normals point away from its centre."""
    return Mesh(CORNERS, SIDES, normals=Layer(CORNERS / np.sqrt(3), SIDES.ravel()))


def split_smooth_cube() -> Mesh:
    """The smooth cube as glTF would store it if every edge were a UV seam: a vertex for each face corner."""
    index = np.arange(24)
    places = CORNERS[SIDES.ravel()]
    return Mesh(places, index.reshape(6, 4), normals=Layer(places / np.sqrt(3), index))


def tilted_cube() -> Mesh:
    """Hand-edited normals that match no geometry."""
    rng = np.random.default_rng(0)
    return Mesh(CORNERS, SIDES, normals=Layer(unit(rng.normal(size=(24, 3))), np.arange(24)))


CUBES = {"hard": hard_cube, "smooth": smooth_cube, "split": split_smooth_cube, "tilted": tilted_cube}


def at_corners(mesh: Mesh) -> np.ndarray:
    assert mesh.normals is not None
    return mesh.normals.at_corners


@pytest.mark.parametrize("name", CUBES)
def test_unmoved_points_give_the_same_normals_back(name: str) -> None:
    mesh = CUBES[name]()
    assert mesh.with_points(mesh.points.copy()).normals is mesh.normals


@pytest.mark.parametrize("name", CUBES)
@pytest.mark.parametrize("vector", [[0.3, 0, 0], [0, np.pi / 2, 0], [1, -2, 0.5], [0, 0, np.pi], [3, 0.2, 0]])
def test_turning_the_whole_mesh_turns_its_normals(name: str, vector: list[float]) -> None:
    mesh = CUBES[name]()
    turn = rotations.exp(vector)
    moved = mesh.with_points(rotations.rotate(turn, mesh.points) * 3 + np.array([4, 5, 6]))
    np.testing.assert_allclose(at_corners(moved), rotations.rotate(turn, at_corners(mesh)), atol=1e-12)


def test_edited_normals_keep_their_tilt() -> None:
    mesh = tilted_cube()
    moved = mesh.with_points(mesh.points * [1, 2, 3])  # no side turns
    np.testing.assert_allclose(at_corners(moved), at_corners(mesh), atol=1e-12)
    bent = at_corners(mesh.with_points(mesh.points + np.random.default_rng(1).normal(size=(8, 3)) * 0.3))
    np.testing.assert_allclose(np.linalg.norm(bent, axis=1), 1, atol=1e-12)


def test_a_mesh_that_was_flat_and_opens_keeps_its_normals() -> None:
    """Where the rest shape gives no direction, the file's normal is the best there is."""
    mesh = hard_cube()
    closed = Mesh(mesh.points * [0, 0, 1], SIDES, normals=mesh.normals)
    np.testing.assert_allclose(at_corners(closed.with_points(mesh.points)), at_corners(mesh), atol=1e-15)


def test_hard_edges_stay_hard_and_flat_faces_flat() -> None:
    mesh = hard_cube()
    moved = mesh.with_points(mesh.points * [1, 2, 3])
    np.testing.assert_allclose(at_corners(moved), at_corners(mesh), atol=1e-15)
    sheared = mesh.points + 0.5 * mesh.points[:, [1]] * [1, 0, 0]  # x grows with y
    normals = at_corners(mesh.with_points(sheared)).reshape(6, 4, 3)
    np.testing.assert_allclose(normals, np.repeat(normals[:, :1], 4, axis=1), atol=1e-12)
    np.testing.assert_allclose(normals[1, 0], unit(np.array([1, -0.5, 0])), atol=1e-12)
    np.testing.assert_allclose(normals[3, 0], [0, 1, 0], atol=1e-12)


def test_a_seam_does_not_show_in_the_shading() -> None:
    """Vertices that a file split at a seam shade as one, also after the surface has bent there."""
    rng = np.random.default_rng(1)
    shift = rng.normal(size=(8, 3)) * 0.3
    whole, split = smooth_cube(), split_smooth_cube()
    bent = whole.with_points(CORNERS + shift)
    bent_split = split.with_points((CORNERS + shift)[SIDES.ravel()])
    np.testing.assert_allclose(at_corners(bent_split), at_corners(bent), atol=1e-12)


def test_an_open_sheet_turned_over_shows_its_other_side() -> None:
    sheet = Mesh(
        [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]],
        [[0, 1, 2, 3]],
        normals=Layer(np.array([[0, 0, 1.0]]), np.zeros(4, dtype=int)),
    )
    flipped = sheet.with_points(sheet.points * [1, -1, -1])
    np.testing.assert_allclose(at_corners(flipped), np.tile([0, 0, -1.0], (4, 1)), atol=1e-15)


def test_a_collapsed_face_keeps_its_normals() -> None:
    mesh = hard_cube()
    flat = mesh.points.copy()
    flat[:, 0] = 0  # four sides lose their area
    normals = at_corners(mesh.with_points(flat)).reshape(6, 4, 3)
    assert np.isfinite(normals).all()
    np.testing.assert_allclose(normals[2:], np.repeat(SIDE_NORMALS[2:, None], 4, axis=1), atol=1e-15)
    point = mesh.with_points(np.zeros((8, 3)))
    np.testing.assert_allclose(at_corners(point), at_corners(mesh), atol=1e-15)


def test_turning_there_and_back() -> None:
    mesh = smooth_cube()
    points = mesh.points + np.random.default_rng(2).normal(size=(8, 3)) * 0.2
    back = mesh.with_points(points).with_points(mesh.points)
    np.testing.assert_allclose(at_corners(back), at_corners(mesh), atol=1e-12)


def test_a_mesh_without_normals_has_none_to_rotate() -> None:
    mesh = Mesh(CORNERS, SIDES)
    assert mesh.with_points(CORNERS * 2).normals is None
    with pytest.raises(InputError, match="no normals to rotate"):
        rotated_normals(mesh, CORNERS * 2)
    with pytest.raises(InputError, match="no normals to group"):
        _ = mesh.smooth_corners


# The smallest rotation between two directions


def test_rotate_between_takes_start_to_end_and_keeps_angles() -> None:
    rng = np.random.default_rng(3)
    start, end, vectors = unit(rng.normal(size=(3, 200, 3)))
    rotated = rotate_between(start, end, vectors)
    np.testing.assert_allclose(rotate_between(start, end, start), end, atol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(rotated, axis=1), 1, atol=1e-10)
    np.testing.assert_allclose(np.einsum("ij,ij->i", rotated, end), np.einsum("ij,ij->i", vectors, start), atol=1e-10)
    axis = unit(np.cross(start, end))  # the axis of the smallest turn stays put
    np.testing.assert_allclose(rotate_between(start, end, axis), axis, atol=1e-10)


@pytest.mark.parametrize("angle", [0, 1e-12, 1e-8, 1e-4, np.pi - 1e-3, np.pi - 1e-4, np.pi - 1e-5, np.pi - 1e-9, np.pi])
def test_rotate_between_near_the_ends_of_its_range(angle: float) -> None:
    start = np.array([[0, 0, 1.0]])
    end = np.array([[np.sin(angle), 0, np.cos(angle)]])
    tilted = unit(np.array([[0.3, 0.2, 1.0]]))
    rotated = rotate_between(start, end, tilted)
    np.testing.assert_allclose(np.linalg.norm(rotated), 1, atol=1e-6)
    np.testing.assert_allclose(rotated @ end.T, tilted @ start.T, atol=1e-4)
    np.testing.assert_allclose(rotate_between(start, end, start), end, atol=1e-4)


def test_rotate_between_unknown_directions_changes_nothing() -> None:
    vectors = np.array([[1.0, 2, 3], [4, 5, 6]])
    start, end = np.array([[0.0, 0, 0], [0, 0, 1]]), np.array([[0, 0, 1.0], [0, 0, 0]])
    np.testing.assert_array_equal(rotate_between(start, end, vectors), vectors)


# Plain normals


def test_triangle_normals_have_twice_the_area() -> None:
    points = np.array([[0.0, 0, 0], [2, 0, 0], [0, 3, 0]])
    assert triangle_normals(points, np.array([[0, 1, 2], [0, 2, 1]])).tolist() == [[0, 0, 6], [0, 0, -6]]


def test_vertex_normals_of_a_cube_point_outwards() -> None:
    mesh = Mesh(CORNERS, SIDES)
    normals = vertex_normals(mesh.points, mesh.triangles)
    assert (np.einsum("ij,ij->i", normals, CORNERS) > 1).all()
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1)


def test_vertex_normals_are_area_weighted_and_zero_where_alone() -> None:
    points = np.array([[0.0, 0, 0], [2, 0, 0], [0, 2, 0], [0, 0, 1], [9, 9, 9]])
    normals = vertex_normals(points, np.array([[0, 1, 2], [0, 2, 3]]))
    np.testing.assert_allclose(normals[0], unit(np.array([2.0, 0, 4])))
    assert normals[4].tolist() == [0, 0, 0]


def test_unit_leaves_zero_alone() -> None:
    assert unit(np.array([[0, 0, 0], [0, 3.0, 4]])).tolist() == [[0, 0, 0], [0, 0.6, 0.8]]
