"""Obstacles: signed distance against formulas and brute force, motion, sweeps, repairs, and what is refused."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from pliant import gallery
from pliant.contact import (
    Box,
    Capsule,
    Cylinder,
    HalfSpace,
    MeshObstacle,
    MovingObstacle,
    Sphere,
    as_obstacle,
    parse_obstacle,
    read_motion,
)
from pliant.core import rotations
from pliant.core.clips import Animation
from pliant.core.errors import FileError, InputError, PliantWarning
from pliant.core.shapes import Mesh, TetMesh
from pliant.geometry.spatial import SurfaceTree
from surfaces import box, sphere, torus, tube
from sweeps import every

TILT = rotations.from_axis_angle([1.0, 2.0, -0.5], 0.9)
SPIN = rotations.from_axis_angle([0.3, -1.0, 0.4], 2.1)
A, B = np.array([0.2, -0.5, 0.1]), np.array([1.0, 0.7, 0.9])
SOLIDS = {
    "sphere": Sphere((0.3, -0.2, 0.5), 0.8),
    "capsule": Capsule(A, B, 0.4),
    "cylinder": Cylinder(A, B, 0.4),
    "box": Box((0.1, 0.2, 0.3), (1.0, 0.6, 1.6), TILT),
    "half-space": HalfSpace((0.1, 0.3, 0.2), (1.0, 2.0, -0.5)),
}
MESHES = {"ball": sphere(), "block": box((0.5, 0.3, 0.8)), "ring": torus(24, 10)}
ALL = {**SOLIDS, **{name: MeshObstacle(mesh) for name, mesh in MESHES.items()}}


@pytest.fixture
def rng():
    return np.random.default_rng(4)


@pytest.fixture(params=list(SOLIDS))
def solid(request):
    return SOLIDS[request.param]


@pytest.fixture(params=list(ALL))
def obstacle(request):
    return ALL[request.param]


def flipped(mesh: Mesh, which=slice(None)) -> Mesh:
    """With some of its triangles turned round."""
    triangles = mesh.triangles.copy()
    triangles[which] = triangles[which][:, ::-1]
    return Mesh(mesh.points, triangles)


def joined(*meshes: Mesh) -> Mesh:
    """Several meshes as one."""
    first = np.cumsum([0, *(len(mesh.points) for mesh in meshes)])
    tables = [mesh.triangles + k for mesh, k in zip(meshes, first, strict=False)]
    return Mesh(np.concatenate([mesh.points for mesh in meshes]), np.concatenate(tables))


# Signed distance


def on_segment(points, a, b):
    t = np.clip((points - a) @ (b - a) / ((b - a) @ (b - a)), 0, 1)
    return a + t[:, None] * (b - a)


def in_a_box(beyond):
    return np.linalg.norm(np.maximum(beyond, 0), axis=1) + np.minimum(beyond.max(axis=1), 0)


FORMULAS = {
    "sphere": lambda p: np.linalg.norm(p - [0.3, -0.2, 0.5], axis=1) - 0.8,
    "capsule": lambda p: np.linalg.norm(p - on_segment(p, A, B), axis=1) - 0.4,
    "box": lambda p: in_a_box(np.abs((p - [0.1, 0.2, 0.3]) @ rotations.matrix(TILT)) - [0.5, 0.3, 0.8]),
    "half-space": lambda p: (p - [0.1, 0.3, 0.2]) @ np.array([1.0, 2.0, -0.5]) / np.sqrt(5.25),
}


def cylinder_formula(points):
    axis = (B - A) / np.linalg.norm(B - A)
    along = (points - (A + B) / 2) @ axis
    radial = np.sqrt(np.maximum(((points - (A + B) / 2) ** 2).sum(axis=1) - along**2, 0))
    return in_a_box(np.stack([radial - 0.4, np.abs(along) - np.linalg.norm(B - A) / 2], axis=1))


FORMULAS["cylinder"] = cylinder_formula


@pytest.mark.parametrize("name", list(SOLIDS))
def test_distance_is_that_of_the_formula(name, rng):
    points = rng.uniform(-2, 2.5, (2000, 3))
    distance, _ = SOLIDS[name].signed(points)
    np.testing.assert_allclose(distance, FORMULAS[name](points), atol=1e-12)
    assert (distance < 0).any()
    assert (distance > 0).any()


@pytest.mark.parametrize("name", [name for name in SOLIDS if name != "half-space"])
def test_the_surface_is_closed_faces_outwards_and_is_within_a_hundredth(name, rng):
    solid = SOLIDS[name]
    radius = getattr(solid, "radius", 0.0)
    assert solid.surface.is_watertight
    assert solid.surface.volume > 0
    corners = solid.surface.points[solid.surface.triangles]
    weights = rng.dirichlet([1, 1, 1], len(corners))
    on_it = np.concatenate([solid.surface.points, np.einsum("tk,tkd->td", weights, corners), corners.mean(axis=1)])
    distance, _ = solid.signed(on_it)
    assert -0.01 * radius - 1e-12 <= distance.min()
    assert distance.max() <= 1e-12
    points = rng.uniform(-2, 2.5, (500, 3))
    assert np.abs(solid.tree.signed(points)[0] - solid.signed(points)[0]).max() <= 0.01 * radius + 1e-12


def test_a_half_spaces_quad_faces_out_of_it():
    solid = SOLIDS["half-space"]
    a, b, c = solid.surface.points[solid.surface.triangles[0]]
    normal = np.cross(b - a, c - a)
    np.testing.assert_allclose(normal / np.linalg.norm(normal), solid.normal, atol=1e-12)
    assert solid.thickness == np.inf


def brute_distance(points, mesh):
    """Unsigned by sampling no feature away: plane feet and edges of all triangles; sign by exact winding numbers."""
    a, b, c = (mesh.points[mesh.triangles[:, k]][None] for k in range(3))
    p = points[:, None]
    normal = np.cross(b - a, c - a)
    foot = p - (((p - a) * normal).sum(-1) / (normal**2).sum(-1))[..., None] * normal
    inside = np.ones(foot.shape[:2], dtype=bool)
    best = np.full(foot.shape[:2], np.inf)
    for start, end in ((a, b), (b, c), (c, a)):
        inside &= (np.cross(end - start, foot - start) * normal).sum(-1) >= 0
        t = np.clip(((p - start) * (end - start)).sum(-1) / ((end - start) ** 2).sum(-1), 0, 1)
        best = np.minimum(best, np.linalg.norm(start + t[..., None] * (end - start) - p, axis=-1))
    best = np.minimum(best, np.where(inside, np.linalg.norm(foot - p, axis=-1), np.inf)).min(axis=1)
    return np.where(SurfaceTree(mesh).inside(points, exact=True), -best, best)


@pytest.mark.parametrize("name", list(MESHES))
def test_a_meshs_distance_is_that_of_brute_force(name, rng):
    mesh = MESHES[name]
    points = np.concatenate([rng.uniform(-1.6, 1.6, (600, 3)), mesh.points * 1.001, mesh.points * 0.999])
    distance, _ = MeshObstacle(mesh).signed(points)
    np.testing.assert_allclose(distance, brute_distance(points, mesh), atol=1e-12)


@pytest.mark.parametrize("name", every(3, ["hand", "animal", "gingerbread", "tentacle", "dinosaur"]))
def test_the_gallerys_shapes_are_obstacles(name, rng):
    mesh = getattr(gallery, name)(1000)[0]
    obstacle = MeshObstacle(mesh)
    low, high = mesh.points.min(axis=0), mesh.points.max(axis=0)
    points = rng.uniform(low - 0.1, high + 0.1, (1000, 3))
    distance, gradient = obstacle.signed(points)
    wrong = (distance < 0) != obstacle.tree.inside(points, exact=True)
    assert (np.abs(distance[wrong]) < 1e-9).all()
    np.testing.assert_allclose(np.linalg.norm(gradient, axis=1), 1, atol=1e-9)
    assert 0 < obstacle.thickness < mesh.diagonal


@pytest.mark.data
@pytest.mark.parametrize("name", ["poses/cat/cat-ref.obj", "cages/armadillo/armadilloman.obj"])
def test_a_real_mesh_is_an_obstacle(data, rng, name):
    obstacle = parse_obstacle(str(data / name))
    points = obstacle.surface.points[::50] + 0.02 * obstacle.tree.diagonal * rng.normal(size=(1, 3))
    distance, gradient = obstacle.signed(points)
    assert ((distance < 0) == obstacle.tree.inside(points, exact=True)).mean() > 0.99
    np.testing.assert_allclose(np.linalg.norm(gradient, axis=1), 1, atol=1e-9)


def test_the_gradient_is_that_of_finite_differences(obstacle, rng):
    points, step = rng.uniform(-1.8, 2.2, (800, 3)), 1e-6
    _, gradient = obstacle.signed(points)
    ahead, behind = (
        np.stack([obstacle.signed(points + s * step * np.eye(3)[k])[0] for k in range(3)], axis=1) for s in (1, -1)
    )
    apart = np.linalg.norm((ahead - behind) / (2 * step) - gradient, axis=1)
    assert np.quantile(apart, 0.99) < 1e-5  # the rest is where the nearest surface point changes
    np.testing.assert_allclose(np.linalg.norm(gradient, axis=1), 1, atol=1e-9)


def test_following_the_gradient_leads_to_the_surface(obstacle, rng):
    points = rng.uniform(-1, 1.2, (500, 3))
    distance, gradient = obstacle.signed(points)
    there, _ = obstacle.signed(points - distance[:, None] * gradient)
    np.testing.assert_allclose(there, 0, atol=1e-9)


AWKWARD = {
    "sphere": [[0.3, -0.2, 0.5]],
    "capsule": [A, B, (A + B) / 2],
    "cylinder": [A, B, (A + B) / 2],
    "box": [[0.1, 0.2, 0.3]],
    "ball": [[0, 0, 0]],
    "block": [[0, 0, 0], [0.5, 0.3, 0.8], [0.5, 0.3, 0.0], [0.0, 0.0, 0.8]],
}


@pytest.mark.parametrize("name", list(ALL))
def test_the_gradient_is_finite_everywhere(name):
    obstacle = ALL[name]
    surface = obstacle.surface
    corners = surface.points[surface.triangles]
    places = [*AWKWARD.get(name, [[0, 0, 0]]), *surface.points, *corners.mean(axis=1), *corners[:, :2].mean(axis=1)]
    distance, gradient = obstacle.signed(np.array(places))
    assert np.isfinite(distance).all()
    np.testing.assert_allclose(np.linalg.norm(gradient, axis=1), 1, atol=1e-9)


def test_on_a_meshs_edges_and_corners_the_gradient_points_outwards():
    corner, edge = [0.5, 0.3, 0.8], [0.5, 0.3, 0.1]
    _, gradient = ALL["block"].signed([corner, edge])
    np.testing.assert_allclose(gradient, [np.ones(3) / 3**0.5, np.array([1, 1, 0]) / 2**0.5], atol=1e-12)


def test_no_points_give_nothing(obstacle):
    distance, gradient = obstacle.signed(np.zeros((0, 3)))
    assert (distance.shape, gradient.shape) == ((0,), (0, 3))
    assert obstacle.carried(np.zeros((0, 3)), obstacle).shape == (0, 3)


# Motion


def test_moving_an_obstacle_moves_its_distances(obstacle, rng):
    points, t = rng.uniform(-1.5, 1.5, (300, 3)), np.array([1.0, -2.0, 0.5])
    moved = obstacle.moved(SPIN, t)
    distance, gradient = obstacle.signed(points)
    there, turned = moved.signed(points @ rotations.matrix(SPIN).T + t)
    np.testing.assert_allclose(there, distance, atol=1e-12)
    np.testing.assert_allclose(turned, gradient @ rotations.matrix(SPIN).T, atol=1e-9)
    assert moved.thickness == pytest.approx(obstacle.thickness)


def test_places_are_carried_along(obstacle, rng):
    points, t = rng.uniform(-1.5, 1.5, (300, 3)), np.array([1.0, -2.0, 0.5])
    before = obstacle.moved(TILT, -t)
    after = before.moved(SPIN, t)
    np.testing.assert_allclose(
        before.carried(points, after), points @ rotations.matrix(SPIN).T + t, atol=1e-11 * before.surface.diagonal
    )
    np.testing.assert_allclose(before.carried(points, before), points, atol=1e-12 * before.surface.diagonal)


def test_a_spinning_ball_takes_places_round():
    ball = Sphere((1, 0, 0), 1.0)
    spun = MovingObstacle(ball, [(0, (0, 0, 0), (1, 0, 0, 0)), (10, (0, 0, 0), SPIN)]).at(10)
    np.testing.assert_allclose(spun.centre, ball.centre, atol=1e-15)
    np.testing.assert_allclose(
        ball.carried([[2.0, 0, 0]], spun)[0], ball.centre + rotations.rotate(SPIN, [1.0, 0, 0]), atol=1e-15
    )


def test_places_follow_a_deforming_mesh():
    mesh = box()
    before = MeshObstacle(mesh)
    after = before.with_points(mesh.points * [2.0, 1.0, 1.0])
    carried = before.carried([[1.0, 0.5, 0.2], [1.1, 0.5, 0.2], [0.5, 1.0, 0.0]], after)
    np.testing.assert_allclose(carried, [[2.0, 0.5, 0.2], [2.1, 0.5, 0.2], [1.0, 1.0, 0.0]], atol=1e-12)


def test_between_keyframes_it_moves_evenly():
    moving = MovingObstacle(Box((0, 0, 0), (1, 1, 1)), [(20, (2, 0, 0), SPIN), (10, (0, 0, 0), (1, 0, 0, 0))])
    for frame, share in ((-5, 0.0), (10, 0.0), (12.5, 0.25), (15, 0.5), (20, 1.0), (99, 1.0)):
        here = moving.at(frame)
        np.testing.assert_allclose(here.centre, [2 * share, 0, 0], atol=1e-12)
        expected = rotations.slerp(rotations.IDENTITY, SPIN, share)
        np.testing.assert_allclose(rotations.align_signs(here.rotation, expected), expected, atol=1e-12)


def test_one_keyframe_or_none_is_static():
    ball = Sphere((0, 0, 0), 1.0)
    assert as_obstacle(ball).at(7.5) is ball
    still = MovingObstacle(ball, [(3, (1, 2, 3), (1, 0, 0, 0))])
    assert still.at(0).centre.tolist() == [1, 2, 3]
    assert still.at(0) is still.at(100)


def test_an_obstacle_turns_about_its_pivot():
    half_turn = (0.0, 0.0, 1.0, 0.0)
    ball = Sphere((2, 0, 0), 0.5)
    keys = [(0, (0, 0, 0), half_turn)]
    np.testing.assert_allclose(MovingObstacle(ball, keys).at(0).centre, [2, 0, 0], atol=1e-15)
    np.testing.assert_allclose(MovingObstacle(ball, keys, pivot=(0, 0, 0)).at(0).centre, [-2, 0, 0], atol=1e-15)


def test_an_animation_deforms_its_obstacle():
    mesh = sphere()
    clip = Animation(mesh, np.stack([mesh.points, 2 * mesh.points, 2 * mesh.points + [1, 0, 0]]))
    moving = as_obstacle(clip)
    outside = [[0.0, 0.0, 3.0]]
    for frame, top in ((-1, 1.0), (0, 1.0), (0.5, 1.5), (1, 2.0)):
        assert moving.at(frame).signed(outside)[0][0] == pytest.approx(3 - top)
    np.testing.assert_allclose(moving.at(1.5).middle, [0.5, 0, 0], atol=1e-12)
    np.testing.assert_allclose(moving.at(9).middle, [1, 0, 0], atol=1e-12)
    carried = moving.at(0).carried([[0.0, 0.0, 1.0]], moving.at(2))
    np.testing.assert_allclose(carried, [[1.0, 0.0, 2.0]], atol=1e-12)


def test_everything_closed_becomes_an_obstacle():
    tets = TetMesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1, 2, 3]])
    clip = Animation(tets, np.stack([tets.points, tets.points + 1.0]))
    for value in (tets, clip, tets.surface):
        assert as_obstacle(value).at(0).signed([[0.1, 0.1, 0.1]])[0][0] == pytest.approx(-0.1)
    moving = as_obstacle(Sphere((0, 0, 0), 1))
    assert as_obstacle(moving) is moving


@pytest.mark.parametrize("name", list(ALL))
def test_obstacles_pickle(name):
    points = np.array([[0.1, 0.2, 0.3], [2.0, 0.0, 0.0]])
    again = pickle.loads(pickle.dumps(as_obstacle(ALL[name])))
    np.testing.assert_array_equal(again.at(0).signed(points)[0], ALL[name].signed(points)[0])
    with pytest.raises(AttributeError):
        again.at(0).turn = (1, 0, 0, 0)


# Sweeps


def brute_first_hit(starts, ends, mesh):
    """The smallest fraction at which each segment meets a triangle from its front, all pairs."""
    a, b, c = (mesh.points[mesh.triangles[:, k]][None] for k in range(3))
    normal = np.cross(b - a, c - a)
    along = (ends - starts)[:, None]
    slope = (along * normal).sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        s = ((a - starts[:, None]) * normal).sum(-1) / slope
        at = starts[:, None] + s[..., None] * along
        inside = (slope < 0) & (s >= 0) & (s <= 1)
        for start, end in ((a, b), (b, c), (c, a)):
            inside &= (np.cross(end - start, at - start) * normal).sum(-1) >= 0
    s = np.where(inside, s, np.inf)
    return s.min(axis=1), np.where(inside.any(axis=1), s.argmin(axis=1), -1)


@pytest.mark.parametrize("name", list(MESHES))
def test_the_first_hit_is_that_of_brute_force(name, rng):
    mesh = MESHES[name]
    starts, ends = rng.uniform(-1.6, 1.6, (2, 1500, 3))
    fraction, triangle = SurfaceTree(mesh).first_hit(starts, ends)
    expected, which = brute_first_hit(starts, ends, mesh)
    np.testing.assert_allclose(fraction, expected, atol=1e-12)
    np.testing.assert_array_equal(triangle, which)
    assert 0.1 < np.isfinite(fraction).mean() < 0.9


def test_nothing_slips_through_a_thin_plate_at_its_edges_and_corners(rng):
    plate = gallery.box(600).points  # a real tessellation, then squeezed
    mesh = gallery.box(600).with_points(plate * [1, 1e-4, 1])
    tree = SurfaceTree(mesh)
    inner = np.abs(mesh.points[:, [0, 2]]).max(axis=1) < 0.99 * np.abs(mesh.points).max()
    corners = mesh.points[inner]
    edges = mesh.points[mesh.triangles[:, :2]].mean(axis=1)
    places = np.concatenate([corners, edges[np.abs(edges[:, [0, 2]]).max(axis=1) < 0.99 * np.abs(mesh.points).max()]])
    tilt = 0.2 * rng.normal(size=places.shape) * [1, 0, 1] * 1e-3
    above, below = places * [1, 0, 1] + [0, 1, 0] + tilt, places * [1, 0, 1] - [0, 1, 0] - tilt
    for fraction, _ in (tree.first_hit(above, below), tree.first_hit(below, above)):
        assert np.isfinite(fraction).all()
        np.testing.assert_allclose(fraction, 0.5, atol=1e-3)


def test_hits_count_only_from_outside():
    tree = SurfaceTree(box())
    outside, inside, beyond = [3.0, 0.1, 0.2], [0.0, 0.1, 0.2], [-3.0, 0.1, 0.2]
    fraction, triangle = tree.first_hit([outside, inside, inside, outside], [beyond, beyond, inside, [2, 0.1, 0.2]])
    np.testing.assert_allclose(fraction, [1 / 3, np.inf, np.inf, np.inf])
    assert (triangle >= 0).tolist() == [True, False, False, False]
    np.testing.assert_allclose(tree.first_hit([inside], [beyond], leaving=True)[0], [1 / 3])


def test_a_segment_that_starts_on_the_surface_enters_at_once():
    tree = SurfaceTree(sphere())
    starts = tree.points[tree.triangles].mean(axis=1)
    fraction, _ = tree.first_hit(starts, np.zeros_like(starts))
    np.testing.assert_allclose(fraction, 0, atol=1e-9)
    assert not np.isfinite(tree.first_hit(starts, 2 * starts)[0]).any()


def test_sweeps_need_as_many_starts_as_ends():
    with pytest.raises(InputError, match="2 starts and 1 ends"):
        SurfaceTree(box()).first_hit(np.zeros((2, 3)), np.zeros((1, 3)))
    assert SurfaceTree(np.zeros((0, 3)), np.zeros((0, 3), int)).first_hit([[0, 0, 0]], [[1, 1, 1]])[1].tolist() == [-1]


# Repairs


def check_ball(obstacle):
    distance, gradient = obstacle.signed([[0, 0, 0], [0, 0, 2.0]])
    assert distance[0] < -0.9
    assert distance[1] == pytest.approx(1)
    np.testing.assert_allclose(gradient[1], [0, 0, 1], atol=1e-6)


def test_a_mesh_that_is_inside_out_is_turned_round():
    with pytest.warns(PliantWarning, match="the obstacle is inside out; turned round"):
        check_ball(MeshObstacle(flipped(sphere())))


def test_mixed_orientation_is_repaired(rng):
    mesh = sphere()
    check_ball(MeshObstacle(flipped(mesh, rng.choice(len(mesh.triangles), 100, replace=False))))


@pytest.mark.parametrize("noise", [0.0, 1e-8])
def test_split_vertices_are_welded(noise, rng):
    mesh = sphere()
    soup = mesh.points[mesh.triangles].reshape(-1, 3)
    obstacle = MeshObstacle(Mesh(soup + noise * rng.uniform(-1, 1, soup.shape), np.arange(len(soup)).reshape(-1, 3)))
    check_ball(obstacle)
    assert len(obstacle.surface.points) == len(mesh.points)
    larger = obstacle.with_points(2 * soup)
    assert larger.signed([[0, 0, 3.0]])[0][0] == pytest.approx(1)


def test_collapsed_triangles_and_loose_vertices_are_dropped():
    mesh = sphere()
    messy = Mesh(
        np.concatenate([[[9, 9, 9]], mesh.points]), np.concatenate([mesh.triangles + 1, [[1, 1, 2], [3, 3, 3]]])
    )
    check_ball(MeshObstacle(messy))


def test_flat_triangles_do_not_spoil_the_sign(rng):
    """An edge of a box with a vertex in its middle: the triangle between the two halves and the whole has no area."""
    points = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1], [0.5, 0, 1]]
    faces = [
        [3, 2, 1, 0],
        [4, 8, 5],
        [4, 5, 6, 7],
        [0, 1, 5],
        [0, 5, 8],
        [0, 8, 4],
        [1, 2, 6, 5],
        [2, 3, 7, 6],
        [3, 0, 4, 7],
    ]
    mesh = Mesh(np.array(points, dtype=float), faces)
    places = rng.uniform(-0.5, 1.5, (2000, 3))
    distance, gradient = MeshObstacle(mesh).signed(places)
    np.testing.assert_allclose(distance, in_a_box(np.abs(places - 0.5) - 0.5), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(gradient, axis=1), 1, atol=1e-9)


def test_several_parts_are_one_obstacle():
    two = MeshObstacle(joined(sphere(), sphere(centre=(5, 0, 0))))
    distance, _ = two.signed([[0, 0, 0], [5, 0, 0], [2.5, 0, 0]])
    assert (np.sign(distance) == [-1, -1, 1]).all()


def test_of_several_parts_only_those_inside_out_are_turned():
    with pytest.warns(PliantWarning, match="1 part that is inside out"):
        two = MeshObstacle(joined(sphere(), flipped(sphere(centre=(5, 0, 0)))))
    assert (two.signed([[0, 0, 0], [5, 0, 0]])[0] < 0).all()


def test_a_cavity_stays_hollow():
    shell = MeshObstacle(joined(sphere(), flipped(sphere(radius=0.5))))
    distance, gradient = shell.signed([[0, 0, 0.45], [0, 0, 0.75], [0, 0, 1.2]])
    assert (np.sign(distance) == [1, -1, 1]).all()
    np.testing.assert_allclose(gradient[0], [0, 0, -1], atol=0.2)


def test_overlapping_parts_are_one_solid(rng):
    """Between the walls of two blocks that stick in each other there is no outside."""
    cross = MeshObstacle(joined(box((2, 0.5, 0.5)), box((0.4, 2, 0.4))))
    points = rng.uniform(-2.2, 2.2, (2000, 3))
    one, two = in_a_box(np.abs(points) - [2, 0.5, 0.5]), in_a_box(np.abs(points) - [0.4, 2, 0.4])
    distance, gradient = cross.signed(points)
    np.testing.assert_array_equal(distance < 0, np.minimum(one, two) < 0)
    np.testing.assert_allclose(distance, np.minimum(one, two), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(gradient, axis=1), 1, atol=1e-9)


def test_one_that_crosses_itself_says_so_and_keeps_its_outside(rng):
    """A bar bent through itself: one part, of which some triangles lie inside."""
    t = np.linspace(0, 1, 80)
    path = np.stack([np.cos(2 * np.pi * 1.2 * t), np.sin(2 * np.pi * 1.2 * t), 0.05 * t], axis=1)
    mesh = tube(path, 0.3)
    with pytest.warns(PliantWarning, match="crosses itself"):
        obstacle = MeshObstacle(mesh)
    points = rng.uniform(-1.4, 1.4, (3000, 3)) * [1, 1, 0.4]
    distance, gradient = obstacle.signed(points)
    inside = SurfaceTree(mesh).inside(points, exact=True)
    assert ((distance < 0) == inside).mean() > 0.99
    assert ((distance < 0) == inside)[np.abs(distance) > 0.05].all()
    np.testing.assert_allclose(np.linalg.norm(gradient, axis=1), 1, atol=1e-9)
    twice = SurfaceTree(mesh).winding(points, exact=True) > 1.5
    assert twice.any()
    assert (distance[twice] < 0).mean() > 0.98


def test_a_part_within_another_does_not_make_it_hollow():
    nested = MeshObstacle(joined(sphere(), sphere(radius=0.5)))
    distance, _ = nested.signed([[0, 0, 0], [0, 0, 0.55], [0, 0, 0.9]])
    np.testing.assert_allclose(distance, MeshObstacle(sphere()).signed([[0, 0, 0], [0, 0, 0.55], [0, 0, 0.9]])[0])


@pytest.mark.parametrize("scale", [1e-4, 1e5])
def test_units_do_not_matter(scale, rng):
    mesh, points = torus(24, 10), rng.uniform(-1.5, 1.5, (300, 3))
    large = MeshObstacle(mesh.scaled(scale))
    np.testing.assert_allclose(large.signed(scale * points)[0], scale * MeshObstacle(mesh).signed(points)[0], rtol=1e-9)


def test_the_thickness_of_a_mesh_is_about_that_of_its_thin_places():
    assert MeshObstacle(box((1, 0.05, 1))).thickness == pytest.approx(0.1, rel=0.01)
    assert MeshObstacle(sphere()).thickness == pytest.approx(2, rel=0.05)
    assert MeshObstacle(torus()).thickness == pytest.approx(0.6, rel=0.1)


# Refusals


def klein_bottle() -> Mesh:
    """Closed, but with one side only: a grid glued straight one way and mirrored the other."""
    m = 8
    u, v = np.meshgrid(np.arange(m), np.arange(m), indexing="ij")
    rng = np.random.default_rng(0)

    def at(i, j):
        j = np.where(i >= m, m - 1 - j, j)
        return (i % m) * m + j % m

    quads = np.stack([at(u, v), at(u + 1, v), at(u + 1, v + 1), at(u, v + 1)], axis=2).reshape(-1, 4)
    return Mesh(rng.normal(size=(m * m, 3)), quads)


NAN = float("nan")
REFUSED = {
    "open": (
        lambda: MeshObstacle(Mesh(box().points, box().triangles[2:])),
        "is open: 4 boundary edges.*fill its holes",
    ),
    "one-sided": (lambda: MeshObstacle(klein_bottle()), "no inside"),
    "flat": (lambda: MeshObstacle(box((1, 1, 0))), "encloses no volume"),
    "no faces": (lambda: MeshObstacle(Mesh(np.zeros((3, 3)), [])), "no faces"),
    "collapsed": (lambda: MeshObstacle(Mesh(np.zeros((3, 3)), [[0, 1, 1]])), "collapsed"),
    "no mesh": (lambda: MeshObstacle("ball"), "is a str; expected a Mesh"),
    "radius zero": (lambda: Sphere((0, 0, 0), 0.0), "radius is 0.0; expected a positive number"),
    "radius NaN": (lambda: Sphere((0, 0, 0), NAN), "radius is nan"),
    "radius infinite": (lambda: Capsule(A, B, np.inf), "radius is inf"),
    "centre NaN": (lambda: Sphere((0, NAN, 0), 1.0), "centre is .*expected three finite numbers"),
    "centre in a plane": (lambda: Sphere((0, 0), 1.0), "centre is .*expected three finite numbers"),
    "capsule of no length": (lambda: Capsule(A, A, 1.0), "capsule's ends are both at .*use a sphere"),
    "cylinder of no length": (lambda: Cylinder(A, A, 1.0), "cylinder's ends are both at"),
    "negative size": (lambda: Box((0, 0, 0), (1, -1, 1)), "size is .*expected three positive lengths"),
    "zero size": (lambda: Box((0, 0, 0), (1, 0, 1)), "size is .*expected three positive lengths"),
    "no rotation": (lambda: Box((0, 0, 0), (1, 1, 1), (0, 0, 0, 0)), "expected a quaternion"),
    "no normal": (lambda: HalfSpace((0, 0, 0), (0, 0, 0)), "expected a direction"),
    "points NaN": (lambda: Sphere((0, 0, 0), 1.0).signed([[0, 0, NAN]]), "expected finite"),
    "points in a plane": (lambda: Sphere((0, 0, 0), 1.0).signed([[0, 0]]), r"\(n, 3\)"),
    "turn of three": (lambda: Sphere((0, 0, 0), 1.0).moved((1, 0, 0), (0, 0, 0)), "expected a quaternion"),
    "shift NaN": (lambda: Sphere((0, 0, 0), 1.0).moved((1, 0, 0, 0), (0, NAN, 0)), "translation is"),
    "another kind": (lambda: SOLIDS["sphere"].carried([[0, 0, 0]], SOLIDS["box"]), "Sphere cannot move to a Box"),
    "another mesh": (lambda: ALL["ball"].carried([[0, 0, 0]], ALL["ring"]), "expected the same obstacle"),
    "other points": (lambda: ALL["ball"].with_points(np.zeros((5, 3))), "got 5 points"),
    "a number": (lambda: as_obstacle(3), "is a int; expected an Obstacle, a closed Mesh"),
    "moving a number": (lambda: MovingObstacle(3), "is a int; expected an Obstacle"),
    "a cloud": (
        lambda: as_obstacle(Animation(gallery.cloud(500), gallery.cloud(500).points[None])),
        "moves a PointCloud",
    ),
    "key of two": (lambda: MovingObstacle(SOLIDS["box"], [(0, (0, 0, 0))]), "keyframe 0 is"),
    "key NaN": (lambda: MovingObstacle(SOLIDS["box"], [(0, (0, 0, NAN), (1, 0, 0, 0))]), "keyframe 0: translation"),
    "keys at once": (
        lambda: MovingObstacle(SOLIDS["box"], [(1, (0, 0, 0), (1, 0, 0, 0)), (1.0, (1, 0, 0), (1, 0, 0, 0))]),
        "two keyframes are at frame 1",
    ),
    "frame NaN": (lambda: as_obstacle(SOLIDS["box"]).at(NAN), "the frame is nan"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_refused_with_a_reason_in_one_line(name):
    make, reason = REFUSED[name]
    with pytest.raises(InputError, match=reason) as caught:
        make()
    assert "\n" not in str(caught.value)


# Words and files


def test_obstacles_in_words(tmp_path):
    ball = parse_obstacle("sphere:1,2,3,0.5")
    assert (ball.centre.tolist(), ball.radius) == ([1, 2, 3], 0.5)
    rod = parse_obstacle("capsule:0,0,0, 1,0,0, 2e-1")
    assert (type(rod), rod.b.tolist(), rod.radius) == (Capsule, [1, 0, 0], 0.2)
    assert type(parse_obstacle("Cylinder:0,0,0,1,0,0,.2")) is Cylinder
    assert parse_obstacle("box:0,0,0,1,2,3").size.tolist() == [1, 2, 3]
    turned = parse_obstacle("box:0,0,0,1,2,3,0,0,90")
    np.testing.assert_allclose(turned.signed([[1.0, 0, 0], [0, 1.0, 0]])[0], [0.0, 0.5], atol=1e-12)
    floor = parse_obstacle("plane:0,-1,0,0,2,0")
    np.testing.assert_allclose(floor.signed([[5, -3, 1], [0, 0, 0]])[0], [-2, 1])
    path = tmp_path / "block.obj"
    path.write_text("".join(f"v {x} {y} {z}\n" for x, y, z in box().points))
    with path.open("a") as file:
        file.write("".join("f " + " ".join(str(k + 1) for k in face) + "\n" for face in box().polygons))
    assert parse_obstacle(str(path)).signed([[0, 0, 0]])[0][0] == pytest.approx(-1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sphere:1,2,3", "expected sphere:X,Y,Z,R"),
        ("sphere:1,2,3,x", "expected sphere:X,Y,Z,R"),
        ("sphere:1,2,3,nan", "expected sphere:X,Y,Z,R"),
        ("box:1,2,3,4", "expected box:X,Y,Z,SX,SY,SZ"),
        ("sphere:1,2,3,-1", 'the obstacle "sphere:1,2,3,-1": radius is'),
        ("plane:0,0,0,0,0,0", "expected a direction"),
        ("cone:1,2,3,4", 'no obstacle called "cone"; expected sphere, capsule'),
        ("nowhere.obj", "nowhere.obj"),
        (" ", "the obstacle is empty"),
    ],
)
def test_words_that_mean_nothing_are_refused(text, reason):
    with pytest.raises(InputError, match=reason) as caught:
        parse_obstacle(text)
    assert "\n" not in str(caught.value)


def test_an_open_file_is_named(tmp_path):
    path = tmp_path / "open.obj"
    path.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    with pytest.raises(FileError, match=r"open\.obj: the obstacle is open: 3 boundary edges"):
        parse_obstacle(str(path))


@pytest.mark.parametrize(
    "text",
    [
        "frame,x,y,z,qw,qx,qy,qz\n0,0,0,0,1,0,0,0\n10,1,2,3,0,0,2,0\n",
        "0,0,0,0\n# a remark\n\n10, 1, 2, 3, 0, 0, 2, 0\n",
        "\ufeffframe,x,y,z\r\n0,0,0,0\r\n10,1,2,3,0,0,2,0\r\n",
        json.dumps([{"frame": 0}, {"frame": 10, "translate": [1, 2, 3], "rotate": [0, 0, 2, 0]}]),
    ],
)
def test_keyframes_from_files(tmp_path, text):
    path = tmp_path / ("keys.json" if text.startswith("[") else "keys.csv")
    path.write_text(text, encoding="utf-8")
    keys = read_motion(path)
    assert keys == [(0, (0, 0, 0), (1, 0, 0, 0)), (10, (1, 2, 3), (0, 0, 1, 0))]
    np.testing.assert_allclose(MovingObstacle(Sphere((0, 0, 0), 1), keys).at(5).centre, [0.5, 1, 1.5])


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.csv", "", "a.csv: has no keyframes"),
        ("a.csv", "frame,x,y,z\n", "a.csv: has no keyframes"),
        ("a.csv", "0,0,0,0\n1,2,3\n", 'a.csv, line 2: "1,2,3" is no keyframe; expected frame,x,y,z'),
        ("a.csv", "0,0,0,0\none,0,0,0\n", "a.csv, line 2:"),
        ("a.csv", "0,0,0,nan\n", "a.csv, line 1:"),
        ("a.csv", "0,0,0,0\n0,1,1,1\n", "a.csv, line 2: frame 0 is there twice"),
        ("a.csv", "0,0,0,0,0,0,0,0\n", "a.csv, line 1: the rotation is zero"),
        ("a.json", "", "a.json, line 1, column 1: is empty"),
        ("a.json", "{}", "a.json, line 1, column 1: expected a list of"),
        ("a.json", "[]", "a.json: has no keyframes"),
        ("a.json", '[{"frame": 0},\n {"translate": [0, 0, 0]}]', "a.json, line 2, column 2: expected"),
        ("a.json", '[{"frame": 0, "turn": 1}]', '"turn" is not known here'),
        ("a.json", '[{"frame": "x"}]', "is not a finite number"),
        ("a.json", '[{"frame": 0, "translate": [1, 2]}]', "expected a list of 3 numbers"),
        ("a.json", '[{"frame": 0, "rotate": [0, 0, 0, 0]}]', "the rotation is zero"),
        ("a.json", '[{"frame": 0}, {"frame": 0}]', "frame 0 is there twice"),
    ],
)
def test_keyframes_that_cannot_be_used(tmp_path, name, text, reason):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(FileError, match=reason) as caught:
        read_motion(path)
    assert "\n" not in str(caught.value)


def test_a_missing_motion_file_is_named(tmp_path):
    with pytest.raises(FileError, match=r"no\.csv"):
        read_motion(tmp_path / "no.csv")
