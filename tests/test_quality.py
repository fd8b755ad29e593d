"""Every measure of deformation against a case whose answer is known in closed form."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from pliant import gallery
from pliant.core.clips import Animation, Pose, Shapes
from pliant.core.errors import InputError
from pliant.core.shapes import Mesh, PointCloud, TetMesh
from pliant.geometry import quality
from pliant.geometry.spatial import SurfaceTree
from surfaces import box, sphere, torus, tube, turn

UNIT_TET = TetMesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1, 2, 3]])


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def lattice(count: int = 3) -> TetMesh:
    """A cube of count³ cells, six positive tetrahedra each."""
    grid = np.arange((count + 1) ** 3).reshape(count + 1, count + 1, count + 1)
    points = np.argwhere(grid >= 0) / count
    tets = []
    for way in ([0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1], [2, 1, 0], [1, 0, 2]):
        corner = np.zeros(3, dtype=int)
        path = [grid[:count, :count, :count].ravel()]
        for axis in way:
            corner[axis] = 1
            x, y, z = corner
            path.append(grid[x : x + count, y : y + count, z : z + count].ravel())
        tets.append(np.stack(path, axis=1))
    table = np.concatenate(tets)
    flip = TetMesh(points, table).volumes < 0
    table[flip] = table[flip][:, [0, 2, 1, 3]]
    return TetMesh(points, table)


# Distortion


@pytest.mark.parametrize("shape", [sphere(), box(), UNIT_TET, lattice()], ids=["sphere", "box", "tet", "lattice"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_rigid_motion_is_no_distortion_in_any_unit(shape, scale):
    shape = shape.with_points(scale * shape.points)
    moved = shape.points @ turn([1, 2, -1], 2.5).T + scale * np.array([5.0, -2.0, 1.0])
    np.testing.assert_allclose(quality.edge_distortion(shape, moved), 1, rtol=1e-11)
    np.testing.assert_allclose(quality.area_distortion(shape, moved), 1, rtol=1e-11)
    np.testing.assert_allclose(quality.volume_ratio(shape, moved), 1, rtol=1e-11)
    np.testing.assert_allclose(quality.dihedral_deviation(shape, moved), 0, atol=1e-8)


@pytest.mark.parametrize("shape", [sphere(), box(), lattice()], ids=["sphere", "box", "lattice"])
def test_uniform_scaling_gives_its_powers(shape):
    moved = 1.7 * shape.points
    np.testing.assert_allclose(quality.edge_distortion(shape, moved), 1.7)
    np.testing.assert_allclose(quality.area_distortion(shape, moved), 1.7**2)
    np.testing.assert_allclose(quality.volume_ratio(shape, moved), 1.7**3)


def test_stretching_a_box_along_x():
    mesh = box()
    moved = mesh.points * [3, 1, 1]
    along = np.ptp(mesh.points[mesh.edges][:, :, 0], axis=1) > 0
    np.testing.assert_allclose(quality.edge_distortion(mesh, moved), np.where(along, 3.0, 1.0))
    facing = np.ptp(mesh.points[mesh.triangles][:, :, 0], axis=1) == 0
    np.testing.assert_allclose(quality.area_distortion(mesh, moved), np.where(facing, 1.0, 3.0))
    assert quality.volume_ratio(mesh, moved) == pytest.approx(3)


def test_frames_poses_and_animations_are_measured_alike():
    mesh = box()
    frames = np.stack([mesh.points, 2 * mesh.points, 3 * mesh.points])
    clip = Animation(mesh, frames)
    expected = np.array([1.0, 2.0, 3.0])[:, None] * np.ones(len(mesh.edges))
    np.testing.assert_allclose(quality.edge_distortion(mesh, frames), expected)
    np.testing.assert_allclose(quality.edge_distortion(mesh, clip), expected)
    np.testing.assert_allclose(quality.edge_distortion(mesh, clip[1]), 2)
    np.testing.assert_allclose(quality.edge_distortion(mesh, Pose(clip[2], 0.0, 1, True)), 3)
    np.testing.assert_allclose(quality.volume_ratio(mesh, clip), [1, 8, 27])
    np.testing.assert_allclose(quality.area_distortion(mesh, clip)[:, 0], [1, 4, 9])


def test_edges_without_length_at_rest_have_no_ratio():
    mesh = Mesh([[0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 1, 0]], [[0, 1, 2], [0, 1, 3]])
    values = quality.edge_distortion(mesh, 2 * mesh.points)
    without = np.flatnonzero(np.isnan(values))
    assert mesh.edges[without].tolist() == [[0, 2]]
    np.testing.assert_allclose(np.delete(values, without), 2)
    assert np.isnan(quality.area_distortion(mesh, mesh.points)[0])
    assert np.isnan(quality.volume_ratio(mesh, mesh.points))


@pytest.fixture
def small_and_large():
    mesh = box()
    return Shapes(mesh, np.stack([mesh.points, 3 * mesh.points]), ("small", "large"))


def test_blended_rest_lengths(small_and_large):
    moved = 2 * small_and_large.base.points
    np.testing.assert_allclose(quality.edge_distortion(small_and_large, moved, weights=[0.5, 0.5]), 1)
    np.testing.assert_allclose(quality.edge_distortion(small_and_large, moved, weights=[1.0, 0.0]), 2)
    np.testing.assert_allclose(quality.area_distortion(small_and_large, moved, weights=[0.5, 0.5]), 4 / 5)
    np.testing.assert_allclose(quality.volume_ratio(small_and_large, moved, weights=[0.5, 0.5]), 8 / 14)


def test_weights_may_change_from_frame_to_frame(small_and_large):
    t = np.linspace(0, 1, 5)
    frames = (1 + 2 * t)[:, None, None] * small_and_large.base.points
    weights = np.stack([1 - t, t], axis=1)
    np.testing.assert_allclose(quality.edge_distortion(small_and_large, frames, weights=weights), 1)


def test_without_weights_only_what_leaves_the_range_counts(small_and_large):
    base = small_and_large.base.points
    for scale, expected in ((0.5, 0.5), (1.0, 1.0), (2.2, 1.0), (3.0, 1.0), (6.0, 2.0)):
        np.testing.assert_allclose(quality.edge_distortion(small_and_large, scale * base), expected)


# Inversion


def test_a_reflected_lattice_is_inverted_everywhere_and_a_turned_one_nowhere():
    tets = lattice()
    assert quality.inverted_tets(tets, tets.points * [-1, 1, 1]).all()
    assert not quality.inverted_tets(tets, tets.points @ turn([1, 1, 0], 3.0).T).any()


def test_pushing_a_vertex_through_its_opposite_face():
    heights = [1.0, 0.25, 0.0, -0.5]
    frames = np.stack([UNIT_TET.points * [1, 1, h] for h in heights])
    np.testing.assert_allclose(quality.tet_volume_ratio(UNIT_TET, frames)[:, 0], heights)
    assert quality.inverted_tets(UNIT_TET, frames)[:, 0].tolist() == [False, False, True, True]


def test_inversion_is_relative_to_the_orientation_at_rest():
    negative = TetMesh(UNIT_TET.points, [[0, 2, 1, 3]])
    assert negative.volumes[0] < 0
    assert not quality.inverted_tets(negative, negative.points).any()
    assert quality.inverted_tets(negative, negative.points * [1, 1, -1]).all()


def test_a_tetrahedron_flat_at_rest_is_not_counted():
    flat = TetMesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]], [[0, 1, 2, 3], [0, 1, 2, 4]])
    assert quality.inverted_tets(flat, flat.points * [1, 1, -1]).tolist() == [False, True]


# Bending


def hinge(angle: float) -> Mesh:
    """Two triangles that share the x axis; the second is turned by `angle` away from their common plane, convex up."""
    wing = [0.4, np.cos(angle), -np.sin(angle)]
    return Mesh([[0, 0, 0], [1, 0, 0], [0.3, -1, 0], wing], [[0, 2, 1], [0, 1, 3]])


@pytest.mark.parametrize("angle", [0.0, 0.3, np.pi / 2, 3.0, -0.3, -np.pi / 2, -3.0])
def test_dihedral_angle_of_a_hinge(angle):
    assert quality.dihedral_angles(hinge(angle)) == pytest.approx([angle])


def test_dihedral_angles_of_a_box():
    mesh = box()
    angles = quality.dihedral_angles(mesh)
    assert len(angles) == 18
    np.testing.assert_allclose(np.sort(angles), [0] * 6 + [np.pi / 2] * 12, atol=1e-12)
    inside_out = Mesh(mesh.points, mesh.triangles[:, ::-1])
    np.testing.assert_allclose(np.sort(quality.dihedral_angles(inside_out)), [-np.pi / 2] * 12 + [0] * 6, atol=1e-12)


def test_a_triangle_that_faces_the_wrong_way_does_not_change_how_sharp_an_edge_is():
    points = hinge(0.8).points
    reversed_wing = Mesh(points, [[0, 2, 1], [0, 3, 1]])
    assert np.abs(quality.dihedral_angles(reversed_wing)) == pytest.approx([0.8])


def test_boundary_and_non_manifold_edges_have_no_angle():
    fan = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1]], [[0, 1, 2], [1, 0, 3], [0, 1, 4]])
    assert quality.dihedral_angles(fan).size == 0


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (0.2, 0.7, 0.5),
        (3.0, -3.0, 2 * np.pi - 6),
        (-3.0, 3.0, 6 - 2 * np.pi),
        (np.pi / 2, -np.pi / 2 + 0.1, -np.pi + 0.1),
    ],
)
def test_dihedral_deviation_takes_the_short_way_past_180_degrees(before, after, expected):
    assert quality.dihedral_deviation(hinge(before), hinge(after)) == pytest.approx([expected])


def test_blended_dihedral_angles():
    poses = Shapes.of([hinge(0.2), hinge(1.0)])
    assert quality.dihedral_deviation(poses, hinge(0.4), weights=[0.75, 0.25]) == pytest.approx([0.0])
    assert quality.dihedral_deviation(poses, hinge(0.9)) == pytest.approx([0.0])
    assert quality.dihedral_deviation(poses, hinge(1.3)) == pytest.approx([0.3])
    past = Shapes.of([hinge(3.0), hinge(-3.0)])
    assert quality.dihedral_deviation(past, hinge(np.pi), weights=[0.5, 0.5]) == pytest.approx([0.0])


# Self-intersection


def crosses(a, b, **options) -> bool:
    points = np.concatenate([a, b]).astype(float)
    return quality.self_intersections(points, [[0, 1, 2], [3, 4, 5]], **options).count == 1


FLAT = [[0, 0, 0], [4, 0, 0], [0, 4, 0]]


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ([[1, 1, -1], [1, 1, 1], [5, 5, 1]], True),
        ([[1, 1, -1], [1, 1, 1], [1.5, 1, 1]], True),
        ([[0, 0, 1], [4, 0, 1], [0, 4, 1]], False),
        ([[1, 1, 0], [2, 1, 0], [1, 2, 0]], False),
        ([[1, 1, 0], [2, 1, 1], [1, 2, 1]], False),
        ([[1, 1, 0], [2, 1, 0], [1, 2, 1]], False),
        ([[0, 0, 0], [4, 0, 0], [0, 4, 1]], False),
        ([[0, 0, 0], [4, 0, 0], [0, 0, 4]], False),
        ([[2, 0, -1], [2, 0, 1], [2, -3, 1]], False),
        ([[0, 0, 0], [-1, -1, -1], [-1, -1, 1]], False),
        ([[0, 0, 0], [1, 1, -1], [1, 1, 1]], True),
        ([[0, 0, 0], [6, 6, -1], [6, 6, 1]], True),
        ([[5, 5, -1], [5, 5, 1], [9, 9, 1]], False),
        ([[1, 1, -1e-13], [2, 1, 1], [1, 2, 1]], False),
        ([[1, 1, -1], [1, 1, 1], [1, 1, 3]], False),
    ],
    ids=[
        "an edge pierces the face",
        "a corner dips through the face",
        "parallel",
        "coplanar, inside",
        "a corner on the face",
        "an edge on the face",
        "a shared edge",
        "a shared edge, upright",
        "edges that touch crosswise",
        "a shared corner only",
        "a shared corner, crossing away from it",
        "a shared corner, crossing beyond the face",
        "crossing the plane but not the face",
        "a corner on the face but for rounding",
        "a needle without area",
    ],
)
@pytest.mark.parametrize("pose", ["as is", "turned", "micrometres", "far away"])
def test_two_triangles(other, expected, pose):
    a, b = np.array(FLAT, dtype=float), np.array(other, dtype=float)
    if pose == "turned":
        a, b = a @ turn([1, 2, 3], 1.0).T, b @ turn([1, 2, 3], 1.0).T
    elif pose == "micrometres":
        a, b = 1e-6 * a, 1e-6 * b
    elif pose == "far away":
        a, b = a + 100, b + 100
    assert crosses(a, b) is expected
    assert crosses(b, a) is expected
    assert crosses(np.roll(a, 1, axis=0), b[::-1]) is expected


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ([[1, 1, 0], [2, 1, 0], [1, 2, 0]], True),
        ([[3, 3, 0], [-1, 3, 0], [3, -1, 0]], True),
        ([[0, 0, 0], [4, 0, 0], [0, 4, 0]], True),
        ([[0, 0, 0], [4, 0, 0], [1, 1, 0]], True),
        ([[0, 0, 0], [4, 0, 0], [0, -4, 0]], False),
        ([[4, 0, 0], [8, 0, 0], [8, 4, 0]], False),
        ([[5, 5, 0], [6, 5, 0], [5, 6, 0]], False),
        ([[1, 1, 1], [2, 1, 1], [1, 2, 1]], False),
        ([[1, 1, 0], [2, 2, 0], [1.5, 1.5, 0]], False),
    ],
    ids=["inside", "a star", "the same", "a fold", "neighbours", "a common corner", "apart", "above", "a needle"],
)
def test_overlap_within_one_plane_counts_on_request(other, expected):
    assert crosses(FLAT, other, coplanar=True) is expected
    assert crosses(other, FLAT, coplanar=True) is expected
    assert crosses(FLAT, other) is False


def exact_crossing(a, b) -> bool:
    """The definition in rational arithmetic: corners strictly on both sides, and two common points on the line."""

    def minus(p, q):
        return [x - y for x, y in zip(p, q, strict=True)]

    def dot(p, q):
        return sum(x * y for x, y in zip(p, q, strict=True))

    def times(p, q):
        return [p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0]]

    def contains(triangle, normal, p):
        return all(
            dot(normal, times(minus(triangle[k - 2], triangle[k]), minus(p, triangle[k]))) >= 0 for k in range(3)
        )

    common = set()
    for one, two in ((a, b), (b, a)):
        normal = times(minus(one[1], one[0]), minus(one[2], one[0]))
        height = [dot(normal, minus(p, one[0])) for p in two]
        if not (min(height) < 0 < max(height)):
            return False
        for k, l in combinations(range(3), 2):
            if height[k] * height[l] > 0 or height[k] == height[l]:
                continue
            t = height[k] / (height[k] - height[l])
            p = [x + t * (y - x) for x, y in zip(two[k], two[l], strict=True)]
            if contains(one, normal, p):
                common.add(tuple(p))
    return len(common) >= 2


def exact_crossings(points, triangles) -> set[tuple[int, int]]:
    corners = [[[Fraction(x) for x in points[v].tolist()] for v in triangle] for triangle in triangles]
    return {(i, j) for i, j in combinations(range(len(corners)), 2) if exact_crossing(corners[i], corners[j])}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.parametrize("kind", ["generic", "integer grid", "shared vertices"])
def test_crossings_of_a_soup_agree_with_rational_arithmetic(kind, seed):
    """On a small integer grid most pairs touch, lie in one plane, or meet in corners and edges."""
    rng = np.random.default_rng(seed)
    if kind == "generic":
        points, triangles = rng.normal(size=(120, 3)), np.arange(120).reshape(-1, 3)
    elif kind == "integer grid":
        points, triangles = rng.integers(0, 4, (120, 3)).astype(float), np.arange(120).reshape(-1, 3)
    else:
        points = rng.normal(size=(12, 3))
        triangles = np.array([rng.choice(12, 3, replace=False) for _ in range(40)])
    found = quality.self_intersections(points, triangles)
    expected = exact_crossings(points, triangles)
    assert len(expected) > 20
    assert {tuple(pair) for pair in found.pairs.tolist()} == expected
    sharing = [bool(set(triangles[i]) & set(triangles[j])) for i, j in found.pairs]
    assert found.sharing.tolist() == sharing


@pytest.mark.parametrize("mesh", [sphere(40, 30), box(), torus()], ids=["sphere", "box", "torus"])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e5])
def test_sound_surfaces_have_none(mesh, scale):
    turned = mesh.with_points(scale * (mesh.points @ turn([3, 1, 2], 0.7).T + 1))
    assert quality.self_intersections(turned).count == 0
    soup = turned.points[turned.triangles].reshape(-1, 3)
    assert quality.self_intersections(soup, np.arange(len(soup)).reshape(-1, 3)).count == 0


@pytest.mark.parametrize("around", [8, 24])
def test_a_sphere_through_a_plane_meets_it_in_one_ring(around):
    """The plane is one triangle and lies between two latitudes: it cuts the two triangles of each quad in between."""
    ball = sphere(around, 9)
    sheet = np.array([[-20, -20, 0.01], [20, -20, 0.01], [0, 30, 0.01]])
    points = np.concatenate([ball.points, sheet])
    triangles = np.concatenate([ball.triangles, [[len(ball.points) + k for k in range(3)]]])
    found = quality.self_intersections(points, triangles)
    assert found.count == 2 * around
    assert not found.sharing.any()
    assert (found.pairs[:, 1] == len(ball.triangles)).all()


def test_a_tube_that_returns_through_itself():
    t = np.linspace(-1.2, 4.2, 60)
    eight = np.stack([2 * np.sin(t), np.sin(2 * t), 0.05 * t], axis=1)
    apart = eight * [1, 1, 30]
    assert quality.self_intersections(tube(eight, 0.3)).count > 20
    assert quality.self_intersections(tube(apart, 0.3)).count == 0


def test_crossings_between_two_surfaces():
    low, high = SurfaceTree(box()), SurfaceTree(box(centre=(1, 1, 1)))
    assert len(low.crossings(high)) > 0
    assert len(low.crossings(SurfaceTree(box(centre=(2, 0, 0))))) == 0
    assert len(low.crossings(SurfaceTree(box(centre=(2, 0, 0))), coplanar=True)) > 0


@pytest.mark.data
def test_the_real_cat_intersects_itself(data):
    from pliant.io import read_mesh

    mesh = read_mesh(data / "poses/cat/cat-ref.obj")
    found = quality.self_intersections(mesh)
    assert found.count > 0
    near = np.unique(found.pairs)[:25]
    corners = mesh.points[mesh.triangles[near]].reshape(-1, 3)
    table = np.arange(len(corners)).reshape(-1, 3)
    assert {
        tuple(p) for p in quality.self_intersections(corners, table, tolerance=0.0).pairs.tolist()
    } == exact_crossings(corners, table)


# Penetration


def test_depth_inside_a_box(rng):
    half = np.array([1.0, 2.0, 3.0])
    points = rng.uniform(-4, 4, (400, 3))
    expected = np.maximum((half - np.abs(points)).min(axis=1), 0)
    assert (expected > 0).sum() > 20
    np.testing.assert_allclose(quality.penetration(points, box(half)), expected, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_depth_inside_a_sphere(rng, scale):
    ball = sphere(60, 60, radius=scale)
    frames = scale * rng.uniform(-1.5, 1.5, (4, 100, 3))
    expected = np.maximum(scale - np.linalg.norm(frames, axis=2), 0)
    depth = quality.penetration(frames, SurfaceTree(ball))
    assert depth.shape == (4, 100)
    assert np.abs(depth - expected).max() < scale * (1 - np.cos(np.pi / 60) ** 2)


def test_penetration_of_a_clip_into_an_obstacle():
    cloud = PointCloud([[0, 0, 3]])
    clip = Animation(cloud, [[[0, 0, 3]], [[0, 0, 0.75]], [[0, 0, -0.5]]])
    np.testing.assert_allclose(quality.penetration(clip, box())[:, 0], [0, 0.25, 0.5])


@pytest.mark.parametrize("split", [False, True], ids=["welded", "split"])
def test_an_obstacle_may_face_inwards(rng, split):
    outward = box([1.0, 2.0, 3.0], centre=(5, 0, 0))
    inward = Mesh(outward.points, outward.triangles[:, ::-1])
    if split:  # each triangle with vertices of its own, as exporters write hard edges
        inward = Mesh(inward.points[inward.triangles].reshape(-1, 3), np.arange(inward.triangles.size).reshape(-1, 3))
    points = rng.uniform([1, -4, -4], [9, 4, 4], (200, 3))
    depth = quality.penetration(points, outward)
    assert depth.max() > 0.5
    np.testing.assert_allclose(quality.penetration(points, inward), depth, atol=1e-12)
    assert SurfaceTree(inward).facing == -1
    assert SurfaceTree(inward).moved(inward.points * [-1, 1, 1]).facing == 1
    assert SurfaceTree(inward.points, inward.triangles[:2]).facing == 1  # open: nothing to go by


# Popping


def sliding(steps) -> Animation:
    """A box that moves along x by the given steps, beside a still one."""
    two = np.concatenate([box().points, box(centre=(0, 5, 0)).points])
    moves = np.concatenate([[0], np.cumsum(steps)])
    frames = np.tile(two, (len(moves), 1, 1))
    frames[:, :8, 0] += moves[:, None]
    return Animation(PointCloud(two), frames)


def test_uniform_motion_does_not_pop():
    found = quality.popping(sliding([0.1] * 10))
    np.testing.assert_allclose(found.vertex, 1)
    np.testing.assert_allclose(found.frame, 1)
    assert found.worst == pytest.approx(1)


def test_one_jump_is_found_in_its_frame_and_its_vertices():
    found = quality.popping(sliding([0.1, 0.1, 0.1, 0.7, 0.1, 0.1]))
    np.testing.assert_allclose(found.vertex, [7.0] * 8 + [1.0] * 8)
    np.testing.assert_allclose(found.frame, [1, 1, 1, 1, 7, 1, 1])


def test_a_jump_of_what_stood_still_is_measured_by_the_floor():
    steps = [0.0, 0.0, 0.5, 0.0, 0.0]
    clip = sliding(steps)
    diagonal = max(np.linalg.norm(np.ptp(points, axis=0)) for points in clip.points)
    assert quality.popping(clip, floor=1e-3).worst == pytest.approx(0.5 / (1e-3 * diagonal))


def test_what_hardly_moves_does_not_pop(rng):
    shaking = sliding([0.1] * 10)
    frames = shaking.points + 1e-7 * rng.normal(size=shaking.points.shape) ** 5
    assert quality.popping(Animation(shaking.shape, frames)).worst == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_popping_does_not_depend_on_units(scale):
    clip = sliding([0.1, 0.2, 0.5, 0.2, 0.1])
    scaled = Animation(clip.shape, scale * clip.points)
    np.testing.assert_allclose(quality.popping(scaled).frame, quality.popping(clip).frame)


def test_large_clips_are_measured_in_blocks_to_the_same_result(rng):
    frames = np.cumsum(rng.uniform(0.01, 0.1, (6, 45_000, 1)) * [1, 0, 0], axis=0) + rng.uniform(0, 1, (45_000, 3))
    found = quality.popping(Animation(PointCloud(frames[0]), frames))
    steps = np.diff(frames[:, :, 0], axis=0)
    np.testing.assert_allclose(found.vertex, steps.max(axis=0) / np.median(steps, axis=0))
    np.testing.assert_allclose(found.frame[1:], (steps / np.median(steps, axis=0)).max(axis=1))


def test_a_single_point_has_no_size_but_can_jump():
    path = np.array([0.0, 1.0, 2.0, 7.0, 8.0])[:, None, None] * [1, 0, 0]
    assert quality.popping(Animation(PointCloud(path[0]), path)).worst == pytest.approx(5)


def test_a_single_frame_does_not_pop():
    assert quality.popping(Animation(box(), [box().points])).frame.tolist() == [1.0]


# The report


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_report_of_a_growing_box(scale):
    mesh = box().scaled(scale)
    clip = Animation(mesh, [k * mesh.points for k in (1.0, 1.5, 2.0)], name="grow")
    report = quality.measure(clip, self_intersections=True, obstacle=box((1.5, 1.5, 1.5)).scaled(scale))
    np.testing.assert_allclose(report.volume, [1, 3.375, 8])
    np.testing.assert_allclose(report.edge_max, [1, 1.5, 2])
    np.testing.assert_allclose(report.edge_rms, [0, 0.5, 1], atol=1e-12)
    np.testing.assert_allclose(report.area_min, [1, 2.25, 4])
    np.testing.assert_allclose(report.bend_rms, 0, atol=1e-7)
    np.testing.assert_allclose(report.penetration, np.array([0.5, 0, 0]) / np.sqrt(12), atol=1e-9)
    assert report.self_intersections.tolist() == [0, 0, 0]
    assert report.inverted is None
    assert report.worst()["volume"] == (pytest.approx(8), 2)


def test_report_of_tetrahedra_counts_inversions():
    tets = lattice(2)
    clip = Animation(tets, [tets.points, tets.points * [1, 1, -1]])
    report = quality.measure(clip)
    assert report.inverted.tolist() == [0, len(tets.tets)]
    np.testing.assert_allclose(report.volume, [1, -1])


def test_report_against_blended_shapes(small_and_large):
    t = np.linspace(0, 1, 4)
    clip = Animation(small_and_large.base, (1 + 2 * t)[:, None, None] * small_and_large.base.points)
    report = quality.measure(clip, small_and_large, weights=np.stack([1 - t, t], axis=1))
    np.testing.assert_allclose(report.edge_rms, 0, atol=1e-12)
    np.testing.assert_allclose(quality.measure(clip, small_and_large).area_rms, 0, atol=1e-12)


def test_report_bends_across_the_seams_of_split_vertices():
    """The same hinge, its shared vertices split as exporters do."""

    def split(angle):
        whole = hinge(angle)
        return Mesh(whole.points[whole.triangles].reshape(-1, 3), [[0, 1, 2], [3, 4, 5]])

    clip = Animation(split(0.1), [split(0.1).points, split(0.6).points])
    np.testing.assert_allclose(quality.measure(clip).bend_rms, [0, 0.5], atol=1e-12)


def test_report_of_a_point_cloud_knows_only_motion():
    report = quality.measure(sliding([0.1, 0.1, 0.3]))
    assert set(report.curves) == {"popping", "step"}
    np.testing.assert_allclose(report.popping, [1, 1, 1, 3])


def test_a_point_cloud_meets_an_obstacle_prepared_once(monkeypatch):
    from pliant.geometry import spatial

    built, seen = [], []
    make = spatial.SurfaceTree.__init__
    monkeypatch.setattr(spatial.SurfaceTree, "__init__", lambda tree, *given: built.append(make(tree, *given)))
    clip = Animation(PointCloud([[0, 0, 3], [0, 0, 4]]), [[[0, 0, z], [0, 0, 4]] for z in (3, 0.75, 0.5)])
    report = quality.measure(clip, obstacle=box(), progress=lambda done, total: seen.append((done, total)))
    np.testing.assert_allclose(report.penetration, [0, 0.25, 0.5])
    assert len(built) == 1
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_report_is_json_and_a_table():
    flat = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    clip = Animation(flat, [flat.points * (1 + 0.1 * k) for k in range(40)])
    report = quality.measure(clip)
    told = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert told["frames"] == 40
    assert told["per_frame"]["volume"] == [None] * 40
    assert told["worst"]["edge_max"] == {"value": pytest.approx(4.9), "frame": 39}
    lines = report.table(rows=5).splitlines()
    assert len(lines) == 1 + 5 + 2
    assert len({len(line) for line in lines}) == 1
    assert lines[0].split()[:2] == ["frame", "popping"]
    assert "4.9" in lines[-2]


def test_report_says_how_far_it_is():
    seen = []
    quality.measure(Animation(box(), [box().points] * 3), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_summary_leaves_out_what_has_no_value():
    summary = quality.summarize([1.0, 2.0, np.nan, 0.0])
    assert (summary.count, summary.undefined, summary.least, summary.mean, summary.largest) == (3, 1, 0, 1, 2)
    assert summary.rms == pytest.approx(np.sqrt(2 / 3))
    assert np.isnan(quality.summarize([]).mean)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: quality.edge_distortion(box(), np.zeros((7, 3))), r"\(8, 3\)"),
        (lambda: quality.edge_distortion(box(), np.full((8, 3), np.nan)), "finite"),
        (lambda: quality.edge_distortion(PointCloud([[0, 0, 0]]), np.zeros((1, 3))), "PointCloud"),
        (lambda: quality.edge_distortion(box(), box(), weights=[0.5, 0.5]), r"\(1,\)"),
        (lambda: quality.edge_distortion(box(), box(), weights=[0.5]), "sum to 1"),
        (lambda: quality.tet_volume_ratio(box(), box()), "TetMesh"),
        (lambda: quality.popping(box()), "Animation"),
        (lambda: quality.popping(sliding([0.1]), floor=0.0), "floor"),
        (lambda: quality.penetration([0.0, 0.0, 0.0], box()), "shape"),
        (lambda: quality.measure(box()), "Animation"),
        (lambda: quality.measure(sliding([0.1]), box()), "16 points; the rest shape has 8"),
        (lambda: quality.measure(Animation(box(), [box().points])).table(rows=0), "rows"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_importing_the_measures_loads_no_compiler():
    import subprocess
    import sys

    code = "import sys, pliant.geometry.quality, pliant.geometry.spatial; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_steps_are_over_the_diagonal_that_is_reported():
    """A clip that leaves its rest shape far behind: its frames are ten times as wide."""
    ball = gallery.sphere(500)
    clip = Animation(ball, np.stack([(10 + k) * ball.points + [3.0 * k, 0, 0] for k in range(4)]))
    far = np.linalg.norm(np.diff(clip.points, axis=0), axis=2).max(axis=1)
    for rest in (None, ball.scaled(7)):
        report = quality.measure(clip, rest=rest)
        assert report.diagonal == pytest.approx((ball if rest is None else rest).diagonal)
        np.testing.assert_allclose(report.step[1:] * report.diagonal, far)
    single = PointCloud([[1.0, 2, 3]])
    report = quality.measure(Animation(single, [[[1.0, 2, 3]], [[1.0, 2, 7]]]))
    assert report.step[1] * report.diagonal == pytest.approx(4)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e-100, 1e100, 1e150, 1e300])
def test_measures_do_not_depend_on_units_however_large(scale):
    tets = gallery.bar_tets(600)
    for shape in (gallery.sphere(500), tets, PointCloud(gallery.sphere(500).points)):
        frames = np.stack([shape.points, shape.points * [1, 1.5, 1], shape.points[:, [1, 0, 2]]])
        here = quality.measure(Animation(shape, frames)).curves
        there = quality.measure(Animation(shape.with_points(shape.points * scale), frames * scale))
        assert here.keys() == there.curves.keys()
        for name, curve in there.curves.items():
            np.testing.assert_allclose(curve, here[name], rtol=1e-6, atol=1e-9, err_msg=name)
        json.dumps(there.to_dict(), allow_nan=False)
    np.testing.assert_allclose(
        quality.tet_volume_ratio(tets.with_points(tets.points * scale), 2 * scale * tets.points), 8
    )
    big = tets.with_points(tets.points * scale)
    assert big.surface.triangles.tolist() == tets.surface.triangles.tolist()


def test_a_clip_that_explodes_is_still_plain_numbers():
    ball = gallery.sphere(500)
    report = quality.measure(Animation(ball, np.stack([ball.points, 1e300 * ball.points])))
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False))["per_frame"]["volume"][1] is None
    assert report.table()


def test_nothing_cannot_be_measured():
    for shape in (Mesh(np.zeros((0, 3)), []), PointCloud(np.zeros((0, 3)))):
        with pytest.raises(InputError, match="no points"):
            quality.measure(Animation(shape, np.zeros((2, 0, 3))))
