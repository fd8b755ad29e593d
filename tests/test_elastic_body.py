"""Elastic bodies in static poses: what every pose must keep, the bars of the paper's figures, and the kernels."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import pliant
from pliant import ElasticBody, Material, Skeleton, SkeletonPose, gallery
from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.engines.simulate.conjugate_gradients import NO_CONTACTS, NO_LIMITS, Posed, solve
from pliant.engines.simulate.multigrid import build_multigrid
from pliant.engines.simulate.nodes import sample_nodes
from pliant.engines.simulate.warping import LARGEST_LAMBDA
from pliant.native import kernels


def straight(*places: float, axis: int = 0) -> Skeleton:
    """Joints along an axis."""
    points = np.zeros((len(places), 3))
    points[:, axis] = places
    return Skeleton.from_positions(points, np.arange(len(places)) - 1)


def rigid(skeleton: Skeleton, turn, shift) -> SkeletonPose:
    """The rest pose, moved as one."""
    turns, places = skeleton.rest_rotations.copy(), skeleton.offsets.copy()
    turns[0], places[0] = rotations.multiply(turn, turns[0]), rotations.rotate(turn, places[0]) + shift
    return SkeletonPose(skeleton, turns, places)


BAR = straight(*np.linspace(-1.9, 1.9, 13))


@pytest.fixture(scope="module")
def bar() -> ElasticBody:
    return ElasticBody(gallery.bar(1000)[0], BAR, material=Material(poisson=0.45), nodes=900)


@pytest.fixture(scope="module")
def elbow() -> ElasticBody:
    shape = gallery.cylinder(1000, radius=0.5, height=5, rounding=0.3)
    return ElasticBody(shape, straight(-2.3, 0, 2.3, axis=1), material=Material(), nodes=900)


@pytest.fixture(scope="module")
def creature() -> ElasticBody:
    return ElasticBody(gallery.creature(900)[0], gallery.creature_skeleton(), nodes=500)


@pytest.fixture(params=["bar", "elbow", "creature"])
def body(request) -> ElasticBody:
    return request.getfixturevalue(request.param)


def over_an_arc(axis, degrees: float) -> SkeletonPose:
    """The bar's joints all turned alike, so that its ends differ by an angle."""
    turn = rotations.from_axis_angle(axis, np.radians(degrees) / (len(BAR) - 2))
    return BAR.pose(dict.fromkeys(BAR.names[1:-1], turn))


def test_the_rest_pose_is_the_rest_shape(body):
    pose = body.pose(body.skeleton.rest_pose())
    np.testing.assert_allclose(pose.points, body.shape.points, atol=1e-12 * body.diagonal)
    assert pose.converged
    assert pose.iterations == 0
    assert pose.volume == pytest.approx(1, abs=1e-12)


def test_a_rigid_motion_of_the_skeleton_is_one_of_the_body(body):
    turn, shift = rotations.normalize([0.3, 0.5, -0.2, 0.7]), np.array([10.0, -20.0, 5.0])
    pose = body.pose(rigid(body.skeleton, turn, shift))
    np.testing.assert_allclose(pose.points, rotations.rotate(turn, body.shape.points) + shift, atol=1e-11)


@pytest.mark.parametrize("degrees", [45, 90, 110])
@pytest.mark.parametrize("axis", [(0, 0, 1), (1, 0, 0)], ids=["bent", "twisted"])
def test_a_bar_keeps_its_volume_and_is_nowhere_inverted(bar, axis, degrees):
    pose = bar.pose(over_an_arc(axis, degrees))
    assert pose.converged
    assert pose.inverted == 0
    assert abs(pose.volume - 1) < 0.03
    assert abs(pose.shape.volume / bar.shape.volume - 1) < 0.03


def test_bones_are_where_the_skeleton_puts_them(bar):
    pose = over_an_arc((0, 0, 1), 90)
    found = bar.pose(pose)
    frames = bar.frames_of(pose)
    np.testing.assert_allclose(found.nodes[bar.nodes.free :], bar.samples.posed(frames)[0], atol=1e-12)


def test_a_pose_does_not_depend_on_what_came_before(bar):
    first = bar.pose(over_an_arc((0, 0, 1), 80))
    bar.pose(over_an_arc((1, 0, 0), -110))
    again = bar.pose(over_an_arc((0, 0, 1), 80))
    assert (first.points == again.points).all()


def test_a_body_pickles(bar):
    pose = over_an_arc((0, 0, 1), 60)
    copy = pickle.loads(pickle.dumps(bar))
    assert (copy.pose(pose).points == bar.pose(pose).points).all()


def test_units_do_not_matter():
    shape, factor = gallery.cylinder(500, radius=0.5, height=4), 1000.0
    poses = []
    for scale in (1.0, factor):
        skeleton = straight(-1.8 * scale, 0, 1.8 * scale, axis=1)
        body = ElasticBody(shape.scaled(scale), skeleton, nodes=300)
        poses.append(body.pose(skeleton.pose({"joint1": rotations.from_axis_angle([1, 0, 0], 1.0)})))
    np.testing.assert_allclose(poses[1].points / factor, poses[0].points, atol=1e-3)
    assert poses[0].volume == pytest.approx(poses[1].volume, abs=1e-3)


def test_an_elbow_keeps_its_volume_where_linear_blending_loses_it(elbow):
    skeleton_pose = elbow.skeleton.pose({"joint1": rotations.from_axis_angle([1, 0, 0], np.pi / 2)})
    pose = elbow.pose(skeleton_pose)
    frames = elbow.frames_of(skeleton_pose)
    near = np.abs(elbow.quadrature.points[:, 1]) < 0.75
    R, weights = elbow.posed(frames, 0).R, elbow.quadrature.weights
    kept, blended = (
        float((weights * elbow.operator.strains(x, R)[1])[near].sum() / weights[near].sum())
        for x in (pose.nodes, elbow.carried(frames, 0))
    )
    assert pose.inverted == 0
    assert kept > 0.9
    assert blended < kept - 0.03


def test_a_creatures_limbs_bend(creature):
    turns = {"forearm.L": ([0, 1, 0], -90), "shin.L": ([1, 0, 0], 90), "thigh.L": ([1, 0, 0], -80)}
    pose = creature.pose(
        creature.skeleton.pose({name: rotations.from_axis_angle(a, np.radians(d)) for name, (a, d) in turns.items()})
    )
    assert pose.converged
    assert pose.inverted < 0.002 * len(creature.quadrature)
    assert abs(pose.volume - 1) < 0.03


# Warpings, to compare with


def deformation(body: ElasticBody, pose) -> np.ndarray:
    """(q,) det F."""
    return np.linalg.det(body.operator.gradients(pose.nodes))


def test_a_wide_bend_keeps_every_point_right_side_out(bar):
    J = deformation(bar, bar.pose(over_an_arc((0, 0, 1), 110)))
    assert J.min() > 0.4
    assert J.max() < 2


def test_a_pose_does_not_depend_on_the_origin(bar):
    here, there = over_an_arc((0, 0, 1), 90), np.array([5.0, 0, 0])
    places = here.translations.copy()
    places[0] += there
    moved = bar.pose(SkeletonPose(BAR, here.rotations, places)).points - there
    assert np.abs(moved - bar.pose(here).points).max() < 1e-3


# Equations


def random_state(body: ElasticBody) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    x = body.nodes.points + 0.1 * rng.standard_normal(body.nodes.points.shape)
    return x, rotations.matrix(rotations.normalize(rng.standard_normal((len(body.point_weights), 4)))).reshape(-1, 9)


def reference_energy(body: ElasticBody, x: np.ndarray, R: np.ndarray) -> float:
    """Σ w (μ |ε|² + ½ λ₁ tr(ε)²) + ½ Σ Λ θ² and the springs, in plain NumPy; λ and μ hold the weights."""
    operator, count = body.operator, len(body.quadrature)
    S = np.swapaxes(R[:count].reshape(-1, 3, 3), 1, 2) @ operator.gradients(x)
    strain = 0.5 * (S + np.swapaxes(S, 1, 2)) - np.eye(3)
    square, trace = np.einsum("qij,qij->q", strain, strain), np.einsum("qii->q", strain)
    own = np.minimum(operator.lam, LARGEST_LAMBDA * operator.mu)[:count]
    energy = operator.mu[:count] @ square + 0.5 * own @ trace**2
    for begin, end in zip(operator.cells[:-1], operator.cells[1:], strict=True):
        rest = (operator.lam[:count] - own)[begin:end]
        energy += 0.5 * rest.sum() * (rest @ trace[begin:end] / max(rest.sum(), 1e-300)) ** 2
    stretched = operator.functions.derivative(0)[count:] @ x
    return float(energy + 0.5 * operator.mu[count:] @ np.einsum("si,si->s", stretched, stretched))


def test_energy_agrees_with_numpy(elbow):
    x, R = random_state(elbow)
    strain, stretch = elbow.operator.strains(x, R)
    assert elbow.operator.energy(strain) == pytest.approx(reference_energy(elbow, x, R), rel=1e-12)
    np.testing.assert_allclose(stretch, np.linalg.det(elbow.operator.gradients(x)), atol=1e-10)


def test_forces_are_the_energys_slope(elbow):
    x, R = random_state(elbow)
    way = np.random.default_rng(6).standard_normal(x.shape)
    way[elbow.nodes.free :] = 0
    h = 1e-4
    slope = (reference_energy(elbow, x + h * way, R) - reference_energy(elbow, x - h * way, R)) / (2 * h)
    forces = elbow.operator.forces(x, R)
    assert np.sum(forces * way[: elbow.nodes.free]) == pytest.approx(slope, rel=1e-7)


def test_the_stiffness_is_symmetric_and_positive_definite(elbow):
    _, R = random_state(elbow)
    free, single = elbow.nodes.free, R.astype(np.float32)
    rng, none = np.random.default_rng(7), np.zeros(elbow.nodes.free, np.float32)

    def product(d):
        whole = np.zeros((len(elbow.nodes), 3), np.float32)
        whole[:free] = d
        return elbow.operator.product(whole, single, 1.0, none).astype(np.float64)

    for _ in range(5):
        a, b = rng.standard_normal((2, free, 3))
        assert np.sum(a * product(b)) == pytest.approx(
            np.sum(b * product(a)), rel=1e-4, abs=1e-4 * np.sum(b * product(b))
        )
        assert np.sum(a * product(a)) > 0


def test_a_product_is_the_change_of_forces(elbow):
    x, R = random_state(elbow)
    d = np.random.default_rng(8).standard_normal(x.shape)
    d[elbow.nodes.free :] = 0
    change = elbow.operator.forces(x + d, R) - elbow.operator.forces(x, R)
    none = np.zeros(elbow.nodes.free, np.float32)
    found = elbow.operator.product(d.astype(np.float32), R.astype(np.float32), 1.0, none)
    np.testing.assert_allclose(found, change, atol=1e-5 * np.abs(change).max())


def test_the_preconditioner_is_symmetric_and_positive(creature):
    turns = np.tile(np.eye(3).ravel(), (creature.nodes.free, 1)).astype(np.float32)
    rng = np.random.default_rng(9)
    for preconditioner in (creature.multigrid.preconditioner(0.0, 1.0), creature.multigrid.preconditioner(3600.0, 1.3)):
        a, b = rng.standard_normal((2, creature.nodes.free, 3)).astype(np.float32)
        over, back = np.sum(a * preconditioner.apply(b, turns)), np.sum(b * preconditioner.apply(a, turns))
        size = np.sum(a * preconditioner.apply(a, turns))
        assert size > 0
        assert abs(over - back) < 1e-3 * size


def symmetric(six: np.ndarray) -> np.ndarray:
    """(n, 3, 3) from xx, yy, zz, yz, xz, xy."""
    return six[:, [[0, 5, 4], [5, 1, 3], [4, 3, 2]]]


@pytest.mark.parametrize(("last", "levels"), [(10**6, 0), (200, 1), (40, 2)])
def test_the_preconditioner_is_its_equation(elbow, monkeypatch, last, levels):
    monkeypatch.setattr("pliant.engines.simulate.multigrid.COARSEST_NODES", last)
    made = build_multigrid(elbow.operator, elbow.nodes, elbow.mass, elbow.leash, elbow.loose)
    assert len(made.levels) == levels
    rng, free = np.random.default_rng(10), elbow.nodes.free
    T = rotations.matrix(rotations.normalize(rng.standard_normal((free, 4))))
    r = rng.standard_normal((free, 3))
    preconditioner = made.preconditioner(3600.0, 1.3)
    blocks = symmetric(preconditioner.diagonal.astype(np.float64))

    def solved(k: int, s: np.ndarray) -> np.ndarray:
        """D⁻¹ s + P (the next level) Pᵀ s, and A⁻¹ s on the last level."""
        if k and k == levels:
            return (preconditioner.inverse.astype(np.float64) @ s.ravel()).reshape(-1, 3)
        first = sum(level.P.shape[0] for level in made.levels[:k])
        scaled = np.einsum("nij,nj->ni", blocks[first : first + len(s)], s)
        return scaled + made.levels[k].P @ solved(k + 1, made.levels[k].P.T @ s) if k < levels else scaled

    expected = np.einsum("nij,nj->ni", T, solved(0, np.einsum("nji,nj->ni", T, r)))
    found = preconditioner.apply(r.astype(np.float32), T.reshape(-1, 9).astype(np.float32))
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def test_conjugate_gradients_solve_the_system(elbow):
    _, R = random_state(elbow)
    rng, free, single = np.random.default_rng(11), elbow.nodes.free, R.astype(np.float32)
    mass, r = rng.random(free).astype(np.float32), rng.standard_normal((free, 3))
    turns = np.tile(np.eye(3, dtype=np.float32).ravel(), (free, 1))
    posed = Posed(elbow.operator, R, single, turns, elbow.diagonal)
    found = solve(posed, r, mass, 1.3, elbow.static, accuracy=1e-7, iterations=1000)
    assert 0 < found.iterations < 1000
    assert found.strain <= 1e-7 < found.first
    d = np.zeros((len(elbow.nodes), 3))
    d[:free] = found.d
    left = r - elbow.operator.product(d.astype(np.float32), single, 1.3, mass)
    assert np.abs(left).max() < 1e-3 * np.abs(r).max()


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_conjugate_gradients_leave_what_is_not_a_force(elbow, value):
    _, R = random_state(elbow)
    free = elbow.nodes.free
    posed = Posed(elbow.operator, R, R.astype(np.float32), np.zeros((free, 9), np.float32), elbow.diagonal)
    r, none = np.zeros((free, 3)), np.zeros(free, np.float32)
    r[7, 1] = value
    found = solve(posed, r, none, 1.0, elbow.static, accuracy=1e-3, iterations=10)
    assert (found.iterations, found.strain) == (0, 0.0 if value == 0 else np.inf)
    assert not found.d.any()


def test_sums_do_not_depend_on_the_number_of_threads(elbow):
    x, R = random_state(elbow)
    operator, free, single = elbow.operator, elbow.nodes.free, R.astype(np.float32)
    turns = np.tile(np.eye(3, dtype=np.float32).ravel(), (free, 1))
    mass, none = np.ones(free, np.float32), np.ones((1, 6))
    outputs = []
    for threads in (1, 2, 5):
        forces, strains, stretch = np.empty((free, 3)), np.empty((len(R), 6)), np.empty(len(elbow.quadrature))
        kernels.warping_forces(operator.doubles, x, R, none, forces, threads)
        kernels.warping_strains(operator.doubles, x, R, strains, stretch, threads)
        d, left = np.empty((free, 3)), np.empty(2)
        kernels.conjugate_solve(
            operator.singles, single, turns, elbow.static.arrays, NO_LIMITS, NO_CONTACTS, forces, mass, 1.0, np.ones(2),
            0, 0.0, 0.0, 20, d, left, threads,
        )  # fmt: skip
        outputs.append((forces, strains, stretch, d, left))
    for other in outputs[1:]:
        for a, b in zip(outputs[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


# Loads, regions and input


def test_gravity_pulls_down_and_in_proportion(elbow):
    rest = elbow.skeleton.rest_pose()
    one, two = (elbow.pose(rest, gravity=g, accuracy=1e-5).points - elbow.shape.points for g in (1.0, 2.0))
    assert one[:, 1].mean() < 0
    np.testing.assert_allclose(two, 2 * one, atol=2e-3 * np.abs(two).max())
    aside = elbow.pose(rest, gravity=(1.0, 0, 0)).points - elbow.shape.points
    assert aside[:, 0].mean() > 0


def test_a_soft_region_sags_more():
    shape, skeleton = gallery.cylinder(500, radius=0.5, height=4), straight(-1.8, 0, 1.8, axis=1)
    stuff = [(None, Material(young=1e6)), ("joint1", Material(young=1e4))]
    pose = ElasticBody(shape, skeleton, material=stuff, nodes=400).pose(skeleton.rest_pose(), gravity=1.0)
    sag = np.abs(pose.points - shape.points).max(axis=1)
    assert sag[shape.points[:, 1] > 1].mean() > 10 * sag[shape.points[:, 1] < -1].mean()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nodes": 10}, "nodes is 10"),
        ({"nodes": 2.5}, "nodes is 2.5"),
    ],
)
def test_options_are_checked(options, words):
    with pytest.raises(InputError, match=words):
        ElasticBody(gallery.cylinder(500), straight(-0.8, 0.8, axis=1), **options)


def test_other_input_is_named(elbow):
    with pytest.raises(InputError, match="expected a SkeletonPose"):
        elbow.pose("standing")
    with pytest.raises(InputError, match='has joint "hips"'):
        elbow.pose(gallery.creature_skeleton().rest_pose())
    with pytest.raises(InputError, match="gravity is"):
        elbow.pose(elbow.skeleton.rest_pose(), gravity=(1, 2))
    with pytest.raises(InputError, match="accuracy is -1"):
        elbow.pose(elbow.skeleton.rest_pose(), accuracy=-1)
    with pytest.raises(InputError, match="iterations is 0"):
        elbow.pose(elbow.skeleton.rest_pose(), iterations=0)
    with pytest.raises(InputError, match="expected a Mesh"):
        ElasticBody("mesh.obj", elbow.skeleton)


def test_half_open_shapes_and_too_few_nodes_are_told_in_words():
    mesh = gallery.creature(900)[0]
    depth = mesh.points[mesh.triangles, 2].mean(axis=1)
    half = pliant.Mesh(mesh.points, mesh.triangles[depth < np.quantile(depth, 0.4)])
    with pytest.raises(InputError, match="too open to tell inside from outside"):
        sample_nodes(half, 300)
    with pytest.raises(InputError, match=r"^5 nodes are too few; expected a whole number, 8 or more"):
        sample_nodes(mesh, 5)


def test_public_names():
    assert pliant.ElasticBody is ElasticBody
    assert pliant.Material is Material


def test_a_body_made_of_something_else_is_as_a_new_one(elbow):
    made = [(None, Material(young=3e4, density=800)), ("joint1", Material(poisson=0.2))]
    pose = elbow.skeleton.pose({"joint1": rotations.from_axis_angle([1, 0, 0], 0.8)})
    before = elbow.pose(pose, gravity=9.81).points
    other = elbow.with_material(made).pose(pose, gravity=9.81).points
    fresh = ElasticBody(elbow.shape, elbow.skeleton, material=made, nodes=900).pose(pose, gravity=9.81).points
    assert np.array_equal(other, fresh)
    assert np.abs(other - before).max() > 1e-3
    assert np.array_equal(elbow.pose(pose, gravity=9.81).points, before)


def test_warpings_of_former_versions_are_said_to_be_elsewhere(bar):
    with pytest.raises(InputError, match=r"warping='paper' is no longer possible: .* benchmarks/warping_schemes.py"):
        ElasticBody(bar.shape, bar.skeleton, warping="paper")
    with pytest.warns(DeprecationWarning, match="rotations='diffused' is the only way now"), pytest.raises(InputError):
        ElasticBody(bar.shape, bar.skeleton, rotations="diffused", nodes=1)
