"""Shapes that give way: to obstacles that stand, move and leave, with and without friction, and to themselves."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import nnls

from pliant import Blendshapes, InputError, Pull, Shapes, gallery
from pliant.contact import (
    Box,
    Capsule,
    Cylinder,
    HalfSpace,
    MeshObstacle,
    MovingObstacle,
    Sphere,
    body as contact_body,
    solver as contact_solver,
    steps as contact_steps,
)
from pliant.contact.constraints import Anchors, SurfaceSamples, face_samples, friction_rows, pierced_edges
from pliant.contact.coulomb import coulomb_forces, swept_coulomb_forces
from pliant.contact.forces import Answers, Compliance, Rows, bounded_forces
from pliant.contact.inverse_hessian import InverseHessian
from pliant.contact.march import March
from pliant.contact.response import minimise
from pliant.contact.solver import ContactSolver
from pliant.contact.state import ContactState
from pliant.contact.steps import FewContactsStep, Guess, LocalContactsStep, SpreadAnswers, contact_step
from pliant.contact.watched_rows import MAX_PENETRATION, ObstacleContacts, SurfaceWatch
from pliant.core.errors import PliantWarning
from pliant.core.normals import unit
from pliant.core.rotations import from_axis_angle
from pliant.core.shapes import Mesh
from pliant.engines.blend.kernels import inverted_tets, newly_inverted_tets
from pliant.engines.simulate.contacts import HeldLayer
from pliant.geometry.spatial import SurfaceTree
from pliant.native import kernels

RNG = np.random.default_rng(5)
STILL = (1.0, 0, 0, 0)
BALL = gallery.sphere(2000, 0.6)


def pair(shapes: Shapes, first: str, second: str) -> Shapes:
    return Shapes.of([shapes.named(first), shapes.named(second)], [first, second])


@pytest.fixture(scope="module")
def bar() -> Blendshapes:
    """4 × 1 × 1, along x about the origin."""
    return Blendshapes(pair(gallery.bar(800), "straight", "bent 90"))


def rows_of(count: int, low: np.ndarray, high: np.ndarray) -> Rows:
    """One at each vertex, all in one direction."""
    weights = np.zeros((count, 4))
    weights[:, 0] = 1
    vertices, up = np.repeat(np.arange(count)[:, None], 4, axis=1), np.tile([0.0, 0, 1], (count, 1))
    return replace(Rows.pushing(vertices, weights, up, np.zeros(count), np.full(count, 50.0)), low=low, high=high)


# The small problem in the forces


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("count", [1, 7, 60])
def test_forces_are_those_that_the_clamped_equation_asks_for(count, bounded):
    for _ in range(10):
        A = RNG.normal(size=(count, count + 2))
        S, ahead = A @ A.T / count, RNG.normal(size=count)
        low = -RNG.random(count) if bounded else np.zeros(count)
        high = RNG.random(count) if bounded else np.full(count, np.inf)
        rows = rows_of(count, low, high)
        answers = Answers(rows, Compliance(lambda at, by, S=S: S[np.ix_(at, by)], count))
        force, found = bounded_forces(answers, ahead, ahead > 0.5)
        assert found
        wish = np.clip(rows.rho * (ahead - S @ force), low, high)
        assert np.allclose(force, wish, atol=1e-6 * max(1, np.abs(force).max()))


def test_a_step_leads_downhill_though_the_free_one_is_too_long():
    """A vertex that is drawn far into an obstacle, by much more than the contact's share of a short step."""
    count, rows = 1, rows_of(1, np.zeros(1), np.full(1, np.inf))
    rows = replace(rows, violation=np.full(1, 0.05), rho=np.full(1, 300.0))
    body = SimpleNamespace(
        solve=lambda forces: forces, compliance=Compliance(lambda at, by: np.eye(count)[np.ix_(at, by)], count)
    )
    gradient = np.array([[0.0, 0, 10]])
    move = contact_step(body, gradient, gradient, InverseHessian(), rows, Guess())
    assert move.promised(gradient) < 0


def test_rows_that_pushed_have_their_say_before_others_that_free_motion_leads_deeper(monkeypatch):
    """Three rows at one vertex, of which one has to push, and a shallower one at another."""
    monkeypatch.setattr(contact_steps, "MAX_ACTIVE_ROWS", 2)
    rows = rows_of(4, np.zeros(4), np.full(4, np.inf))
    rows = replace(rows, vertices=np.repeat([[0], [0], [0], [1]], 4, axis=1), violation=np.array([1, 0.9, 0.8, 0.5]))
    body = SimpleNamespace(
        solve=lambda forces: forces, compliance=Compliance(lambda at, by: np.eye(2)[np.ix_(at, by)], 2)
    )
    forces = np.array([0.98, 0, 0, 0.49])
    for guess in (Guess(forces=forces), Guess(forces=forces, answer=rows.spread(forces, 2))):
        step = FewContactsStep(body, InverseHessian(), rows, np.zeros((2, 3)), guess)
        np.testing.assert_allclose(step.forces, [1 / 1.02, 0, 0, 0.5 / 1.02], rtol=1e-9)


def test_obstacles_come_back_if_a_lead_ends_in_the_middle(monkeypatch):
    triangles = np.array([[0, 1, 2]])
    solver = ContactSolver(triangles, 1.0, obstacles=(MovingObstacle(Sphere([0, 0, 5], 1.0)),))

    def cancelled(*arguments, **options):
        raise InterruptedError

    monkeypatch.setattr(solver, "frame", cancelled)
    with pytest.raises(InterruptedError):
        solver.lead(ContactState(np.eye(3), 0.0), [None])
    assert len(solver.obstacles) == 1


@pytest.mark.parametrize("friction", [0.0, 0.3, 0.8])
def test_forces_of_friction_are_those_that_coulombs_law_asks_for(friction):
    """Points on a ball that are pushed in and sideways, on a body whose points give way together if they are near."""
    for count in (1, 8, 120):
        points = unit(RNG.normal(size=(count, 3)))
        across = unit(np.cross(points, [0.3, 0.5, 0.8]))
        directions = np.stack([across, np.cross(points, across)], axis=1).reshape(-1, 3)
        contacts = replace(rows_of(count, np.zeros(count), np.full(count, np.inf)), directions=points)
        twice = np.repeat(np.arange(count), 2)
        none, after = np.zeros(2 * count), twice - np.arange(count, 3 * count)
        vertices, weights, rho = contacts.vertices[twice], contacts.weights[twice], contacts.rho[twice]
        held = Rows(vertices, weights, directions, none, rho, none, none, np.full(2 * count, friction), after)
        rows = Rows.joined([contacts, held])
        near = np.exp(-2 * np.linalg.norm(points[:, None] - points, axis=2))
        at = rows.vertices[:, 0]
        S = near[at[:, None], at] * (rows.directions @ rows.directions.T)

        class Response:
            def __init__(self, rows, S):
                self.rows, self.to, self.stiffness = rows, S.__matmul__, 1 / S.diagonal()
                self.softness = np.abs(S).sum(axis=1)
                self.resisting = lambda acting: self.stiffness.__mul__
                self.between = lambda chosen: S[np.ix_(chosen, chosen)]

        ahead = np.concatenate([0.5 * RNG.normal(size=count), RNG.normal(size=2 * count)])
        given = ahead, np.zeros(3 * count), lambda rows, forces, violation, gap: gap < 1e-14
        for force, found, exact in (
            coulomb_forces(Response(rows, S), *given),
            swept_coulomb_forces(Response(rows, S), *given),
        ):
            assert exact
            normal, size = force[:count], np.linalg.norm(force[count:].reshape(-1, 2), axis=1)
            assert (size <= friction * normal * (1 + 1e-12)).all()
            np.testing.assert_allclose(found.forces_at(ahead - S @ force), force, atol=1e-5)
            # Where it slides, friction acts against what is left of the slip.
            slip = (ahead - S @ force - force / rows.rho)[count:].reshape(-1, 2)
            slides = (size >= friction * normal * (1 - 1e-9)) & (size > 1e-3)
            along = np.einsum("kj,kj->k", slip, force[count:].reshape(-1, 2))
            assert (along >= (1 - 1e-3) * np.linalg.norm(slip, axis=1) * size - 1e-6)[slides].all()
            assert np.abs(slip[~slides & (normal > 1e-3) & (friction > 0)]).max(initial=0.0) < 1e-4


def test_friction_settles_where_many_rows_share_few_vertices():
    """Sixty points of one face, pushed in every upward direction: sweeps alone hand their forces on for ever."""
    rng, count, friction = np.random.default_rng(0), 60, 0.3
    points = SurfaceSamples.at_faces(np.tile(np.arange(3), (count, 1)), rng.dirichlet(np.ones(3), count))
    directions = unit(np.array([0, 0, 1.0]) + rng.normal(size=(count, 3)))
    contacts = Rows.pushing(points.vertices, points.weights, directions, np.zeros(count), np.full(count, 1e3))
    x = rng.normal(size=(3, 3))
    held = friction_rows(Anchors(points, points.positions(x)), contacts, friction, x)(x)
    rows, spread = Rows.joined([contacts, held]), np.zeros((3 * count, 3))
    np.add.at(spread, (np.arange(3 * count)[:, None], rows.vertices), rows.weights)
    S = spread @ (0.5 + 0.5 * np.eye(3)) @ spread.T * (rows.directions @ rows.directions.T)

    class Response:
        def __init__(self):
            self.rows, self.to = rows, S.__matmul__
            self.between = lambda chosen: S[np.ix_(chosen, chosen)]

    ahead = -rows.along(rng.normal(size=(3, 3)) - [0, 0, 2])
    given = ahead, np.zeros(3 * count), lambda rows, forces, violation, gap: gap < 1e-9
    force, found, exact = swept_coulomb_forces(Response(), *given)
    assert exact
    assert np.count_nonzero(force[:count]) > 3
    assert (np.linalg.norm(force[count:].reshape(-1, 2), axis=1) <= friction * force[:count] * (1 + 1e-12)).all()
    np.testing.assert_allclose(found.forces_at(ahead - S @ force), force, atol=1e-3 * force.max())
    # What was pressed before, and is no longer, has no forces.
    force, _, exact = swept_coulomb_forces(Response(), -np.abs(ahead), force, given[-1])
    assert exact
    assert not force.any()


def test_rows_that_share_their_vertices_are_preconditioned_as_well_as_others():
    """A plane on a plate, at its vertices and, here and there, at points of faces whose vertices it is on as well."""
    side, rng = 8, np.random.default_rng(2)
    count, at = side**2, np.arange(side**2).reshape(side, side)
    L = np.zeros((count, count))
    for a, b in ((at[1:], at[:-1]), (at[:, 1:], at[:, :-1])):
        L[a.ravel(), b.ravel()] = L[b.ravel(), a.ravel()] = -1
    L += np.diag(0.1 - L.sum(axis=1))
    T = np.linalg.inv(L)
    compliance = Compliance(lambda at, by: T[np.ix_(at, by)], count, sp.csr_matrix(L))
    body = SimpleNamespace(solve=T.__matmul__, resist=L.__matmul__, compliance=compliance, free=np.zeros((count, 3)))
    body.stiffness = L.diagonal()
    corner = at[:-1, :-1].ravel()[::4]
    weights = rng.dirichlet(np.ones(3), len(corner))
    faces = SurfaceSamples.at_faces(np.stack([corner, corner + 1, corner + side], axis=1), weights)
    points = SurfaceSamples.at_vertices(np.arange(count)).joined(faces)
    many, up = len(points), np.tile([0.0, 0, 1], (len(points), 1))
    rows = Rows.pushing(points.vertices, points.weights, up, np.zeros(many), np.full(many, 1200.0))
    answers = SpreadAnswers(rows, body, InverseHessian())
    for acting in (np.ones(many, bool), rng.random(many) < 0.8):
        S = np.array([answers.to(e) for e in np.eye(many)]) + np.diag(1 / rows.rho)
        inverse = np.array([answers.resisting(acting)(e) for e in np.eye(many)])
        values = np.linalg.eigvals(inverse[np.ix_(acting, acting)] @ S[np.ix_(acting, acting)]).real
        assert values.max() < 20 * values.min()


def test_friction_acts_on_the_row_that_presses_where_several_are_at_a_point():
    """A vertex among four faces of an obstacle: one of them presses, whichever comes first."""
    four = SurfaceSamples.at_vertices(np.zeros(4, np.int64))
    directions = unit(np.array([[0, 0, 1.0], [1, 0, 1], [0, 1, 1], [1, 1, 0]]))
    for pressing in range(4):
        violation = np.where(np.arange(4) == pressing, 1e-6, -1e-3)
        contacts = Rows.pushing(four.vertices, four.weights, directions, violation, np.ones(4))
        anchors = Anchors(SurfaceSamples.at_vertices(np.zeros(1, np.int64)), np.zeros((1, 3)))
        assert anchors.rows(contacts)[1].tolist() == [pressing]


def moving(obstacle, *places) -> MovingObstacle:
    return MovingObstacle(obstacle, [(k, place, STILL) for k, place in enumerate(places)])


# Obstacles that stand


OBSTACLES = {
    "ball": lambda: Sphere((0.3, 0.9, 0.1), 0.6),
    "capsule": lambda: Capsule((0.2, 0.8, -2), (0.4, 0.8, 2), 0.45),
    "cylinder": lambda: Cylinder((0.2, 0.8, -2), (0.4, 0.8, 2), 0.45),
    "box": lambda: Box((0.1, 0.9, 0.0), (0.7, 1.0, 3.0)),
    "half-space": lambda: HalfSpace((0, 0.42, 0), (0.1, -1, 0)),
    "mesh": lambda: BALL.with_points(BALL.points + np.array([0.3, 0.9, 0.1])),
}


@pytest.mark.parametrize("name", OBSTACLES)
def test_a_shape_gives_way_to_an_obstacle(bar, name):
    obstacle = OBSTACLES[name]()
    weights = [0.9, 0.1]
    free = bar.solve(weights)
    pose = bar.solve(weights, obstacles=[obstacle])
    assert pose.converged
    assert pose.contacts > 0
    assert pose.penetration <= MAX_PENETRATION
    solid = obstacle if not hasattr(obstacle, "triangles") else None
    inside = (solid.signed(pose.points)[0] if solid else SurfaceTree(obstacle).signed_distance(pose.points)).min()
    before = (solid.signed(free.points)[0] if solid else SurfaceTree(obstacle).signed_distance(free.points)).min()
    assert before < -0.02  # it was in the way
    assert inside > -MAX_PENETRATION * bar.shapes.base.diagonal
    assert pose.reactions[0] @ (free.points.mean(axis=0) - pose.points.mean(axis=0)) >= -1e-9  # it is pushed back


def test_what_is_far_away_changes_nothing(bar):
    pose = bar.solve([0.5, 0.5], obstacles=[Sphere((50, 0, 0), 1.0)])
    assert np.abs(pose.points - bar.solve([0.5, 0.5]).points).max() < 1e-9
    assert pose.contacts == 0
    assert not pose.reactions.any()


def test_the_force_grows_as_the_ball_goes_deeper(bar):
    forces = [
        np.linalg.norm(bar.solve([1.0, 0], obstacles=[Sphere((0, 1.0 - depth, 0), 0.5)]).reactions[0])
        for depth in (0.05, 0.1, 0.2)
    ]
    assert 0 < forces[0] < forces[1] < forces[2]


def test_several_obstacles_at_once(bar):
    above, below = Sphere((0.2, 0.9, 0), 0.5), Sphere((-0.2, -0.9, 0), 0.5)
    pose = bar.solve([1.0, 0], obstacles=[above, below])
    assert pose.converged
    assert pose.penetration <= MAX_PENETRATION
    assert pose.reactions[0, 1] > 0 > pose.reactions[1, 1]


def test_thickness_is_kept(bar):
    ball = Sphere((0, 0.9, 0), 0.5)
    distance = ball.signed(bar.solve([1.0, 0], obstacles=[ball], thickness=0.05).points)[0].min()
    assert distance == pytest.approx(0.05, abs=2e-3)


def test_a_thin_rod_between_the_vertices_is_not_passed_through():
    """Edges and faces count: a rod thinner than the mesh is fine dents a face."""
    rig = Blendshapes(pair(gallery.bar(500), "straight", "bent 90"))
    points = rig.shapes.base.points
    top = points[points[:, 1] > 0.49]
    edge = np.sort(np.unique(np.round(top[:, 0], 6)))
    between = float(edge[len(edge) // 2] + edge[len(edge) // 2 + 1]) / 2
    rod = moving(Cylinder((between, 0.6, -2), (between, 0.6, 2), 0.05), (0, 0, 0), (0, -0.14, 0))
    assert rod.at(1).signed(points)[0].min() > 0  # no vertex is in its way
    pose = list(rig.poses([[1.0, 0]] * 2, obstacles=[rod]))[1]
    mesh = rig.shapes.base.with_points(pose.points)
    assert not len(SurfaceTree(mesh).crossings(rod.at(1).tree))
    assert pose.contacts > 0


# Obstacles that move


def test_contact_ends_when_the_obstacle_leaves(bar):
    ball = moving(Sphere((0, 1.2, 0), 0.5), (0, 0, 0), (0, -0.4, 0), (0, 0, 0), (0, 2.0, 0))
    poses = list(bar.poses([[1.0, 0]] * 4, obstacles=[ball]))
    assert all(pose.converged for pose in poses)
    assert [pose.contacts > 0 for pose in poses] == [False, True, False, False]
    free = bar.solve([1.0, 0]).points
    assert np.abs(poses[1].points - free).max() > 0.05
    assert np.abs(poses[3].points - free).max() < 5e-3 * bar.shapes.base.diagonal


def test_a_thin_plate_does_not_jump_through(bar):
    """In one frame it moves by ten times its thickness, into the bar."""
    plate = moving(Box((0, 0.54, 0), (1.0, 0.02, 1.0)), (0, 0, 0), (0, -0.2, 0))
    poses = list(bar.poses([[1.0, 0]] * 2, obstacles=[plate]))
    x, y, z = poses[0].points.T
    under = poses[1].points[(np.abs(x) < 0.3) & (np.abs(z) < 0.4) & (y > 0.45)]
    assert len(under) > 3
    assert (under[:, 1] < 0.34).all()
    assert poses[1].penetration <= MAX_PENETRATION


def test_friction_drags_what_it_touches_along_and_none_lets_it_slide(bar):
    plate = moving(Box((0, 0.9, 0), (6.0, 1.0, 1.5)), (0, 0, 0), (0.1, 0, 0), (0.2, 0, 0))
    moved: dict[float, float] = {}
    for friction in (0.0, 0.5, 2.0):
        poses = list(bar.poses([[1.0, 0]] * 3, obstacles=[plate], friction=friction))
        assert all(pose.penetration <= MAX_PENETRATION for pose in poses)
        top = (np.abs(poses[0].points[:, 0]) < 0.3) & (poses[0].points[:, 1] > 0.3)
        moved[friction] = float((poses[2].points - poses[0].points)[top, 0].mean())
        sideways, down = abs(poses[2].reactions[0, 0]), abs(poses[2].reactions[0, 1])
        assert sideways <= 1.1 * friction * down + 0.02 * down  # Coulomb's law
    assert abs(moved[0.0]) < 0.02
    assert moved[0.0] < moved[0.5] < moved[2.0]
    assert moved[2.0] > 0.12


@pytest.mark.parametrize("friction", [pytest.param(0.2, marks=pytest.mark.slow), 0.5, 1.5])
def test_friction_obeys_coulomb_at_every_contact_and_ends_with_it(bar, friction, monkeypatch):
    """A ball is pressed into the bar, drawn along it and taken away."""
    results = []

    def frame(self, *given, **options):
        results.append(solved(self, *given, **options))
        return results[-1]

    solved = ContactSolver.frame
    monkeypatch.setattr(ContactSolver, "frame", frame)
    ball = moving(
        Sphere((0, 1.2, 0), 0.5), (0, 0, 0), (0, -0.35, 0), (0.15, -0.35, 0.05), (0.3, -0.3, 0.1), (0.3, 0.3, 0)
    )
    poses = list(bar.poses([[1.0, 0]] * 5, obstacles=[ball], friction=friction))
    assert [pose.contacts > 0 for pose in poses] == [False, True, True, True, False]
    assert all(pose.converged for pose in poses)
    for result in results[1:4]:
        normal, size = result.friction.T
        assert len(normal) >= result.contacts > 0
        assert (size <= friction * normal + 1e-6 * normal.max()).all()
    assert results[2].friction[:, 1].sum() > 0.1 * friction * results[2].friction[:, 0].sum()
    assert not poses[4].reactions.any()
    assert np.abs(poses[4].points - bar.solve([1.0, 0]).points).max() < 1e-6 * bar.shapes.base.diagonal


@pytest.mark.slow
@pytest.mark.parametrize("friction", [0.3, 0.8])
def test_a_hand_grasps_a_rail_and_comes_to_rest(friction):
    """The rail is thinner than the faces are long, so that most contacts are between vertices."""
    hand = gallery.hand(700)
    rig, d = Blendshapes(pair(hand, "open", "fist")), hand.base.diagonal
    along = hand.base.points.mean(axis=0) + d * np.array([[-0.3, 0.12, 0.09], [0.3, 0.12, 0.09]])
    rail = Cylinder(*along, 0.06 * d)
    for pose in rig.poses([[1 - t, t] for t in (0, 0.3, 0.5, 0.65)], obstacles=[rail], friction=friction):
        assert pose.converged, pose.message
    assert pose.contacts > 20


def test_no_point_of_the_surface_has_two_rows():
    """The middle of an edge is on both faces, and may be known from the frame before."""
    triangles, x = np.array([[0, 1, 2], [2, 1, 3]]), np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]])
    watch = SurfaceWatch(triangles, 4, 1.5, 1e-3, 0.0)
    watch.begin(x)
    ball, known = Sphere((0.5, 0.5, 0.2), 0.2), SurfaceSamples.at_faces(triangles[1:], np.array([[0.5, 0.5, 0]]))
    rows = watch.watching(ball, x, np.ones(4), known=[known])(x)
    positions = np.einsum("mk,mkj->mj", rows.weights, x[rows.vertices])
    assert len(rows) > 4
    assert len(np.unique(positions.round(6), axis=0)) == len(rows)


def test_pulls_and_obstacles_act_together(bar):
    ball = Sphere((0, 0.9, 0), 0.5)
    tip = int(np.argmax(bar.shapes.base.points @ [1.0, 0.1, 0.1]))
    to = bar.shapes.base.points[tip] + [0.1, 0.3, 0]
    pose = bar.solve([1.0, 0], obstacles=[ball], pulls=[Pull(tip, to=to)])
    assert np.allclose(pose.points[tip], to)
    assert pose.penetration <= MAX_PENETRATION
    assert pose.contacts > 0


# Self-contact


def test_a_hand_that_grips_does_not_pass_through_itself():
    rig = Blendshapes(pair(gallery.hand(1000), "open", "grip"))
    tree = SurfaceTree(rig.shapes.base)
    for pose in rig.poses(rig.path(5), self_contact=True):
        assert pose.crossings == 0
        assert len(tree.moved(pose.points).crossings()) == 0


def test_a_shape_that_crosses_itself_at_first_comes_free_and_then_stays_so():
    rig = Blendshapes(pair(gallery.hand(700), "open", "fist"))
    tree = SurfaceTree(rig.shapes.base)
    weights = [[1 - t, t] for t in (1, 0.8, 0.6, 0.4, 0.2, 0.4, 0.6)]
    poses = list(rig.poses(weights, self_contact=True))
    crossings = [len(tree.moved(pose.points).crossings()) for pose in poses]
    assert crossings[0] > 100
    assert all(after <= before for before, after in pairwise(crossings))
    assert crossings[4:] == [0, 0, 0]
    assert len(tree.moved(rig.solve(weights[-1]).points).crossings()) > 0
    assert all(pose.converged for pose in poses[4:])
    assert np.abs(poses[0].points - rig.solve(weights[0]).points).max() < 1e-3 * rig.shapes.base.diagonal


def test_friction_settles_where_several_rows_at_one_place_may_push():
    """A plate that turns a little on an animal: which of its edges push would decide what friction holds."""
    animal = gallery.animal(600)
    rig = Blendshapes([animal.named("gallop 6"), animal.named("gallop 2")])
    plate = Box((0, 0, 0), (0.01042, 1.247, 1.8707), (-0.29681, 0.62, 0.65976, 0.30366))
    there = (0.38028, 1.25163, -0.95966), (0.99271, 0.10771, -0.02648, 0.04712)
    keys = [(0, (1.66112, 1.36031, -0.93948), STILL), (2, (0.37871, 1.30023, -0.98141), STILL), (3, *there)]
    t = 0.0246 * np.arange(4)
    poses = list(rig.poses(np.stack([1 - t, t], axis=1), obstacles=[MovingObstacle(plate, keys)], friction=0.387))
    assert all(pose.converged for pose in poses), [pose.message for pose in poses]
    assert poses[-1].iterations < 200


def test_a_vertex_in_the_hollow_between_two_spikes_settles():
    """An octahedron with a spike on each side, which is driven into the end of a bar and turned."""
    points = [[0.2127, 0.197, 0.223], [0.2959, -0.1106, -0.1844], [-0.0319, 0.2876, -0.2237],
              [-0.2127, -0.197, -0.223], [-0.2959, 0.1106, 0.1844], [0.0319, -0.2876, 0.2237],
              [-0.0432, 0.0168, 0.5315], [-0.5233, -0.4106, 0.2032], [0.5095, -0.1897, 0.2472],
              [0.1598, -0.8269, -0.2553], [-0.7139, 0.2659, -0.3464], [-0.1751, 0.9059, 0.2797],
              [0.0618, -0.0241, -0.7611], [0.3933, 0.3086, -0.1527]]  # fmt: skip
    spikes = {6: (4, 5, 0), 7: (5, 4, 3), 8: (5, 1, 0), 9: (1, 5, 3), 10: (4, 2, 3), 11: (2, 4, 0), 12: (2, 1, 3),
              13: (1, 2, 0)}  # fmt: skip
    faces = [[tip, of[k], of[(k + 1) % 3]] for tip, of in spikes.items() for k in range(3)]
    turned = (2.0984, 0.4266, -0.3673), (0.9801, -0.1216, 0.0126, 0.1565)
    keys = [(0, (3.0767, 0.2521, -0.2387), STILL), (2, (2.087, 0.3438, -0.3243), STILL), (3, *turned)]
    star = MovingObstacle(MeshObstacle(Mesh(np.array(points), np.array(faces))), keys)
    rig, t = Blendshapes(pair(gallery.bar(500), "straight", "bent 90")), 0.018 * np.arange(4)
    poses = list(rig.poses(np.stack([1 - t, t], axis=1), obstacles=[star]))
    assert all(pose.converged for pose in poses), [pose.message for pose in poses]


@pytest.mark.parametrize(("radius", "tilt"), [(0.2, 0.3), (0.45, 0.8)])
def test_the_rim_of_a_cylinder_does_not_go_in_between_vertices(bar, radius, tilt):
    """It is driven deep into the bar in a single frame."""
    end = np.array([0.05, 0.95, 0.03])
    cylinder = Cylinder(end, end + 1.5 * unit(np.array([[np.sin(tilt), np.cos(tilt), 0.2]]))[0], radius)
    pose = list(bar.poses([[1.0, 0]] * 2, obstacles=[moving(cylinder, (0, 0, 0), (0, -1.3, 0))], friction=0.4))[-1]
    assert pose.converged, pose.message
    assert pose.contacts


def test_a_hand_that_closes_on_a_rod_converges_though_most_points_on_its_faces_are_near():
    hand = gallery.hand(1200)
    rig = Blendshapes([hand.named("open"), hand.named("fist")])
    t = np.linspace(0, 1, 10)[:8]
    rod = Cylinder((-0.08, 0.105, 0.032), (0.10, 0.105, 0.032), 0.016)
    assert all(pose.converged for pose in rig.poses(np.stack([1 - t, t], axis=1), obstacles=[rod]))


# What cannot be


def test_an_obstacle_around_the_whole_shape_is_refused(bar):
    with pytest.raises(InputError, match="encloses the whole shape"):
        bar.solve([1.0, 0], obstacles=[Sphere((0, 0, 0), 10.0)])


def test_an_obstacle_in_the_first_shape_of_a_clip_is_warned_of(bar):
    weights, ball = [[1.0, 0]] * 2, Sphere((0, 0.7, 0), 0.6)
    with pytest.warns(PliantWarning, match="obstacle 1 is 8.8% of the diagonal deep in the first frame's shape"):
        bar.poses(weights, obstacles=[ball])
    list(bar.poses(weights, obstacles=[ball.moved(STILL, (0, 0.38, 0))]))  # it touches


def test_contact_that_turns_the_inside_out_is_warned_of(bar):
    """Two boxes pinch it."""
    pinched = [Box((0, side, 0), (1.0, 1.0, 1.5)) for side in (1.05, -1.05)]
    pinching = [moving(box, (0, 0, 0), (0, -0.45 * np.sign(box.centre[1]), 0)) for box in pinched]
    with pytest.warns(PliantWarning, match=r"worst frame, 1, contact turns \d+ of 2,\d+ tetrahedra inside out"):
        bar.animate([[1.0, 0]] * 2, obstacles=pinching)


def test_where_there_is_no_room_the_best_shape_is_given_and_it_says_so(bar, monkeypatch):
    monkeypatch.setattr("pliant.contact.solver.MAX_FRAME_SECONDS", 1.0)
    pose = bar.solve([1.0, 0], obstacles=[HalfSpace((0, 0.1, 0), (0, -1, 0)), HalfSpace((0, 0.2, 0), (0, 1, 0))])
    assert not pose.converged
    assert "there may be no room" in pose.message
    assert np.isfinite(pose.points).all()
    assert pose.penetration > MAX_PENETRATION


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"friction": -1}, "friction"),
        ({"thickness": np.nan}, "thickness"),
        ({"obstacles": ["ball"]}, "expected"),
        ({"method": "newton", "obstacles": [Sphere((0, 9, 0), 1)]}, "contact is solved by"),
        ({"start": np.zeros((3, 3)), "obstacles": [Sphere((0, 9, 0), 1)]}, "start"),
    ],
)
def test_wrong_options_are_named(bar, options, message):
    with pytest.raises(InputError, match=message):
        bar.solve([1.0, 0], **options)


def test_frames_in_contact_are_not_solved_apart(bar):
    with pytest.raises(InputError, match="depend on the ones before"):
        bar.animate(steps=3, obstacles=[Sphere((0, 9, 0), 1)], jobs=2)


def test_a_shape_that_nothing_holds_gives_way_where_it_is():
    rig = Blendshapes(pair(gallery.tube(800), "straight", "bent 120"), anchor="none")
    top = float(rig.shapes.base.points[:, 1].max())
    free, pose = rig.solve([1.0, 0]), rig.solve([1.0, 0], obstacles=[Sphere((0, top + 0.4, 0), 0.5)])
    assert pose.contacts > 0
    assert pose.penetration <= MAX_PENETRATION
    away = np.linalg.norm(pose.points - free.points, axis=1) / rig.shapes.base.diagonal
    assert away.max() > 0.01
    assert np.median(away) < 0.3 * away.max()


def test_vertices_that_no_shape_moves_give_way_too():
    """The middle of this bar does not move between the shapes."""
    rig = Blendshapes(pair(gallery.bar(500), "straight", "bent 90"))
    assert rig.static.any()
    pose = rig.solve([1.0, 0], obstacles=[Sphere((0, 0.8, 0), 0.4)])
    assert pose.converged
    assert pose.penetration <= MAX_PENETRATION
    top = int(np.argmin(np.linalg.norm(rig.shapes.base.points - [0, 0.5, 0], axis=1)))
    assert pose.points[top, 1] < 0.41


def test_a_body_is_not_turned_by_what_pushes_a_limb_of_it():
    cat = Blendshapes(pair(gallery.animal(1000), "standing", "gallop 1"))
    x = cat.shapes.base.points
    ball = Sphere(x[np.argmin(x[:, 1])] + [0.0, 0.1, 0.0], 0.08 * cat.shapes.base.diagonal)
    pose, free = cat.solve([1.0, 0], obstacles=[ball]), cat.solve([1.0, 0])
    away = np.linalg.norm(pose.points - free.points, axis=1)
    assert away.max() > 0.02 * cat.shapes.base.diagonal
    assert np.median(away) < 0.1 * away.max()


# Thin, small and hidden


def lowered(obstacle, by: float, frames: int = 2) -> MovingObstacle:
    return moving(obstacle, *[(0, -by * k / (frames - 1), 0) for k in range(frames)])


THIN = {
    "rod": (lambda: lowered(Cylinder((0.13, 0.6, -2), (0.13, 0.6, 2), 0.02), 0.2, 6), 6),
    "wire": (lambda: lowered(Cylinder((0.13, 0.6, -2), (0.13, 0.6, 2), 0.01), 0.2, 4), 4),
    "fast wire": (lambda: lowered(Capsule((0.13, 0.6, -2), (0.13, 0.6, 2), 0.004), 0.25), 2),
    "standing plate": (lambda: lowered(Box((0.13, 1.3, 0), (0.0127, 1.5, 3)), 0.25), 2),
    "capsule": (lambda: lowered(Capsule((0.13, 0.6, -2), (0.13, 0.6, 2), 0.03), 0.2, 6), 6),
    "sheet": (lambda: lowered(Box((0, 0.56, 0), (1, 0.02, 1)), 0.15, 4), 4),
    "bead": (lambda: lowered(Sphere((0.1, 0.6, 0.1), 0.02), 0.2), 2),
    "edge of a box": (lambda: lowered(Box((0.13, 10.9, 0), (20, 20, 20)), 0.5, 3), 3),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in ("rod", "capsule"))) for name in THIN]
)
def test_what_is_thinner_than_the_faces_does_not_pass_between_vertices(bar, name):
    make, frames = THIN[name]
    moved, tree = make(), SurfaceTree(bar.shapes.base)
    some = RNG.dirichlet(np.ones(3), 200)
    for number, pose in enumerate(bar.poses([[1.0, 0]] * frames, obstacles=[moved])):
        assert pose.converged
        obstacle, allowed = moved.at(number), MAX_PENETRATION * bar.shapes.base.diagonal
        faces = pose.points[np.unique(bar.shapes.base.triangles, axis=0)]
        assert obstacle.signed((some @ faces).reshape(-1, 3))[0].min() > -allowed
        ends = obstacle.tree.points[obstacle.tree.triangles]
        share = RNG.random((len(ends), 60, 1))
        edges = (ends[:, :1] * share + ends[:, 1:2] * (1 - share)).reshape(-1, 3)
        assert tree.moved(pose.points).signed_distance(edges).min() > -allowed


def test_a_plate_that_is_in_the_first_shape_is_led_there_by_the_shortest_way(bar):
    plate = Box((0, 0.45, 0), (1.0, 0.0127, 1.4))
    pose = bar.solve([1.0, 0], obstacles=[plate])
    assert pose.converged
    assert not len(SurfaceTree(bar.shapes.base).moved(pose.points).crossings(plate.tree))
    x = pose.points[np.linalg.norm(bar.shapes.base.points - [0, 0.5, 0], axis=1) < 0.3]
    assert (x[:, 1] < 0.445).all()  # below, all of it


def test_an_obstacle_is_followed_where_long_parts_of_its_way_are_cut_short():
    """Parts that are too long end early, and the closer the one after them starts, the earlier."""
    solver, limit = ContactSolver(np.array([[0, 1, 2]]), 1.0), 0.018

    class Swept:
        points, obstacle, clear, count = np.zeros((1, 3)), SimpleNamespace(points=lambda _: np.ones((1, 3))), True, 0

        def rows(self, rho, to):
            return lambda x: Rows.none()

        def meet(self, before, after, to):
            length = (to - self.points).max()
            self.count, far = self.count + 1, length if length <= limit else limit * (0.75 if self.clear else 0.15)
            self.clear = length <= limit
            return far / length, False

        def refresh(self):
            pass

    near = ObstacleContacts(Sphere((0, 0, 0), 1.0), None, swept=(swept := Swept()))
    swept.obstacle.alone = True
    x, body = np.zeros((3, 3)), SimpleNamespace(compliance=None)
    solver.march._stridden(x, np.ones((3, 3)), [near.obstacle], [near], np.ones(3), body)
    assert near.swept is swept
    assert not near.lost
    np.testing.assert_allclose(swept.points, 1)
    assert swept.count > 1 / limit


def test_contacts_that_are_too_soft_to_keep_an_edge_off_become_stiffer(bar, monkeypatch):
    """Pushed by more than rows resist before they are used up, the body would stand still just before the edge."""
    monkeypatch.setattr(contact_body, "CONTACT_STIFFNESS", 10.0)
    edge = Box((0, 0, 0), (0.7, 0.7, 4.0)).moved(from_axis_angle([0, 0, 1.0], np.pi / 4), (0, 0, 0))
    poses = list(bar.poses([[1, 0], [1, 0]], obstacles=[moving(edge, (0.1, 1.1, 0), (0.1, 0.75, 0))]))
    assert poses[1].contacts > 0
    assert poses[1].converged
    assert poses[1].penetration <= MAX_PENETRATION


def test_a_plate_much_faster_than_it_is_thick_takes_the_shape_along(bar):
    """It sweeps over the end of the bar, which is bent away, within one frame."""
    plate = moving(Box((1.5, 1.5, 0), (1.5, 0.0127, 2.0)), (0, 0, 0), (0, -1.5, 0))
    before, pose = bar.poses([[1.0, 0]] * 2, obstacles=[plate])
    assert pose.converged
    assert not len(SurfaceTree(bar.shapes.base).moved(pose.points).crossings(plate.at(1).tree))
    under = np.abs(before.points - [1.5, 0, 0])[:, 0] < 0.3
    assert (pose.points[under, 1] < 0.0).all()


def test_what_still_sticks_in_the_body_is_told(bar):
    """A hair, a thousandth of a face's size."""
    hair = lowered(Cylinder((0.13, 0.6, -2), (0.13, 0.6, 2), 0.0005), 0.3)
    *_, pose = bar.poses([[1.0, 0]] * 2, obstacles=[hair])
    crossing = SurfaceTree(bar.shapes.base).moved(pose.points).crossings(hair.at(1).tree)
    assert not len(crossing) or not pose.converged


def test_after_contact_the_free_shape_is_back(bar):
    ball = moving(Sphere((1.5, 0.8, 0), 0.4), (0, 0, 0), (0, 0.3, 0), (0, 2, 0))
    poses = list(bar.poses([[1.0, 0]] * 3, obstacles=[ball]))
    assert poses[0].contacts > 0
    assert np.abs(poses[2].points - bar.solve([1.0, 0]).points).max() < 1e-9


def test_after_contact_the_free_shape_is_back_though_the_obstacle_is_near(bar):
    ball = moving(Sphere((1.5, 1.1, 0), 0.5), (0, 0, 0), (0, -0.3, 0), (0, -0.07, 0))
    poses = list(bar.poses([[1.0, 0]] * 3, obstacles=[ball]))
    assert [pose.contacts > 0 for pose in poses] == [False, True, False]
    assert np.abs(poses[2].points - bar.solve([1.0, 0]).points).max() < 1e-9


def test_a_plane_that_turns_far_away_costs_nothing(bar, monkeypatch):
    seen: list[int] = []
    strides = March._strides
    monkeypatch.setattr(March, "_strides", lambda *a: seen.append(strides(*a)) or seen[-1])
    turned = from_axis_angle([0, 0, 1], 0.002)
    plane = MovingObstacle(HalfSpace((0, -5, 0), (0, 1, 0)), [(0, (0, 0, 0), STILL), (1, (0, 0, 0), turned)])
    list(bar.poses([[1.0, 0]] * 2, obstacles=[plane]))
    assert max(seen) < 10


def test_iterations_bound_the_frame(bar):
    pose = bar.solve([1.0, 0], obstacles=[Box((0, 0.9, 0), (1.0, 1.0, 1.5))], iterations=5)
    assert pose.iterations <= 5 + 12  # one each for the rounds that look again


def test_a_vertex_that_no_shape_moves_can_be_pulled_beside_an_obstacle():
    rig = Blendshapes(pair(gallery.bar(500), "straight", "bent 90"))
    x = rig.shapes.base.points
    ball, still = Sphere((0, 0.8, 0), 0.4), np.flatnonzero(rig.static[: len(x)])
    lowest = int(still[np.argmin(x[still, 1])])
    rig.solve([1.0, 0], obstacles=[ball])
    pose = rig.solve([1.0, 0], obstacles=[ball], pulls=[Pull(lowest, to=x[lowest] - [0, 0.2, 0])])
    assert np.allclose(pose.points[lowest], x[lowest] - [0, 0.2, 0])
    assert pose.penetration <= MAX_PENETRATION


class Well:
    """A vertex that a spring of stiffness 1 draws to a goal."""

    compliance = Compliance(lambda at, by: np.ones((len(at), len(by))), 1)
    solve, resist = staticmethod(np.copy), staticmethod(np.copy)
    largest_force = staticmethod(lambda forces: float(np.abs(forces).max()))
    stiffness, free = np.ones(1), np.zeros((1, 3))

    def __init__(self, goal, tolerance):
        self.goal, self.tolerance = np.array([goal]), lambda: tolerance

    def energy(self, x, gradient):
        gradient[:] = x - self.goal
        return 0.5 * float(np.sum((x - self.goal) ** 2))


def test_a_step_that_was_cut_short_is_not_the_last():
    """A vertex in a well that is a hundred strides away."""
    well = Well((100.0, 0, 0), 0.5)
    relaxed = minimise(well, lambda x: Rows.none(), np.zeros((1, 3)), InverseHessian(), farthest=1.0)
    assert relaxed.converged
    np.testing.assert_allclose(relaxed.x, well.goal, atol=1.0)


def test_forces_are_those_of_equilibrium_where_a_step_without_contact_would_be_cut_short():
    """A vertex on the floor, in a well a hundred strides below: reported forces were those of one stride."""

    def floor(x):
        return replace(rows_of(1, np.zeros(1), np.full(1, np.inf)), violation=-x[:, 2], rho=np.full(1, 1e4))

    found = minimise(Well((0, 0, -100.0), 1e-6), floor, np.zeros((1, 3)), InverseHessian(), farthest=1.0)
    assert found.converged
    assert found.forces == pytest.approx([100.0], rel=1e-3)


# How deep it is


@pytest.mark.parametrize("height", [-0.3, 0.05])
def test_a_face_across_the_rim_of_a_cylinder_is_as_deep_as_a_fine_grid_says(height):
    """No corner of it, and no point of a coarse grid, is inside."""
    cylinder = Cylinder((0, 0, -1), (0, 0, 0), 1.0)
    across = np.array([[1.0 + 0.5 * height, -1.5, 0.06], [1.0, 2.1, 0.08], [0.85, 0.1, -0.3 + height]])
    triangle = across + (1e-3 - cylinder.signed(across)[0].min()) * np.array([1, 0, 1]) / np.sqrt(2)
    distance = cylinder.signed(triangle)[0]
    found, deepest = face_samples(cylinder, triangle, distance, np.array([[0, 1, 2]]), np.zeros((0, 2), int), 1e-9)
    brute = -cylinder.signed(RNG.dirichlet(np.ones(3), 200_000) @ triangle)[0].min()
    assert brute > 1e-3
    assert brute - 1e-9 <= deepest < brute + 1e-3
    assert cylinder.signed(found.positions(triangle))[0] == pytest.approx([-deepest])


def test_however_short_the_part_of_an_edge_inside_is_it_is_found():
    """An edge that cuts off a corner: both parts of it outside, and the one inside."""
    wedge = np.array([[[0.0, -1, -1], [0.0, -1, 1], [0, 1, 0]], [[1e-6, -1, 1], [1e-6, -1, -1], [1e-6, 1, 0]]])
    edge = np.array([[-1.0, 0, 0], [1.0, 0, 0], [0, 5, 5]])
    which, weights = pierced_edges(np.stack([edge, edge]), wedge, np.array([7, 7]))
    assert (which == 7).all()
    along = np.sort((weights @ edge)[:, 0])
    assert along == pytest.approx([-0.5, 5e-7, 0.5 + 5e-7], abs=1e-9)


def test_forces_of_many_contacts_on_a_local_body_are_exact():
    """λ = max(ρ (v - N u), 0) with u = K⁻¹ Nᵀ λ, to the resolution, beside non-negative least squares."""
    rng, n, m = np.random.default_rng(3), 300, 600
    directions = rng.normal(size=(m, 3))
    rows = Rows(
        rng.integers(n, size=(m, 4)), rng.normal(size=(m, 4)),
        directions / np.linalg.norm(directions, axis=1, keepdims=True), rng.uniform(0, 1e-2, m), np.full(m, 1e4),
        np.zeros(m), np.full(m, np.inf), np.zeros(m), np.zeros(m, np.int64),
    )  # fmt: skip
    layer = HeldLayer(rng.normal(size=(n, 3)), rng.uniform(0.5, 2, n), 1.0)
    step = LocalContactsStep(layer, layer.compliance, rows, np.zeros((n, 3)))
    assert step.exact
    moved = rows.spread(step.forces, n) / layer.stiffness[:, None]
    np.testing.assert_allclose(step.step(), moved, atol=1e-9)
    N = np.zeros((m, n, 3))
    np.add.at(N, (np.arange(m)[:, None], rows.vertices), rows.weights[:, :, None] * rows.directions[:, None])
    N = N.reshape(m, 3 * n)
    C = np.linalg.cholesky(N / np.repeat(layer.stiffness, 3) @ N.T + np.diag(1 / rows.rho)).T
    wanted = nnls(C, np.linalg.solve(C.T, rows.violation))[0]
    assert np.abs(step.forces - wanted).max() < 10 * layer.compliance.resolution
    assert 100 < (step.forces > 0).sum() < m


def test_stiff_rows_that_projected_gradients_do_not_solve_are_solved_all_the_same(monkeypatch):
    rng, n, m = np.random.default_rng(5), 30, 60
    directions = unit(rng.normal(size=(m, 3)))
    rows = Rows.pushing(
        rng.integers(n, size=(m, 4)), rng.normal(size=(m, 4)), directions,
        rng.uniform(0, 1e-2, m), 10 ** rng.uniform(2, 8, m),
    )  # fmt: skip
    layer = HeldLayer(rng.normal(size=(n, 3)), rng.uniform(0.5, 2, n), 1.0)
    steps = []
    for products in (10_000, 15):
        monkeypatch.setattr("pliant.contact.steps.MAX_PRODUCTS", products)
        steps.append(LocalContactsStep(layer, layer.compliance, rows, np.zeros((n, 3))))
    assert all(step.exact for step in steps)
    assert np.abs(steps[0].step() - steps[1].step()).max() < 20 * layer.compliance.resolution
    assert np.abs(steps[0].step()).max() > 1e3 * layer.compliance.resolution


@pytest.mark.parametrize("seed", range(40))
def test_newtons_forces_of_local_bodies_are_those_of_the_dual_problem(seed):
    """Of rows of very different stiffness at few vertices, beside non-negative least squares."""
    rng = np.random.default_rng(seed)
    count, enough = int(rng.integers(2, 9)), 1e-4
    vertices, weights = rng.integers(0, 3, (count, 4)), rng.dirichlet(np.ones(4), count)
    directions, softness = unit(rng.normal(size=(count, 3))), 10 ** rng.uniform(-2, 0, 3)
    rho, ahead = 10 ** rng.uniform(2, 8, count), rng.normal(0.3, 0.5, count)
    N = np.zeros((count, 3, 3))
    np.add.at(N, (np.arange(count)[:, None], vertices), weights[:, :, None] * directions[:, None])
    N = N.reshape(count, 9)
    inverse = np.repeat(softness, 3)
    C = np.linalg.cholesky(N * inverse @ N.T + np.diag(1 / rho)).T
    wanted = nnls(C, np.linalg.solve(C.T, ahead))[0]
    forces, moved = np.zeros(count), np.zeros((3, 3))
    given = (vertices, weights, directions), rho, ahead
    assert kernels.contact_newton(given, softness, enough, forces, moved)
    np.testing.assert_allclose(moved.ravel(), inverse * (N.T @ wanted), atol=enough)
    np.testing.assert_allclose(forces, wanted, rtol=1e-6, atol=1e-6 * wanted.max(initial=1))


def test_newtons_method_does_not_end_at_a_stiff_row():
    vertices, weights = np.zeros((2, 4), np.int64), np.tile([1.0, 0, 0, 0], (2, 1))
    directions, rho = np.array([[1.0, 0, 0], [-0.6, 0.8, 0]]), np.array([1e3, 1e10])
    forces, moved = np.zeros(2), np.zeros((1, 3))
    given = (vertices, weights, directions), rho, np.array([1.0, -1e-13])
    if not kernels.contact_newton(given, np.ones(1), 1e-4, forces, moved):  # it may give up, and says so
        pairs = np.zeros((0, 2), np.int64)
        kernels.contact_sweeps(given, pairs, pairs[:, 0], np.zeros(0), np.ones(1), 1e-7, 10_000, forces, moved)
    np.testing.assert_allclose(moved, [[0.998, 0.749, 0]], atol=1e-3)


@pytest.mark.parametrize("first", [50, 700])
def test_answers_between_vertices_are_kept_as_others_are_touched(first):
    """In double and in single precision; those that are known are not found again."""
    A, found = RNG.normal(size=(900, 900)), []
    inverse = np.linalg.inv(A @ A.T + 900 * np.eye(900))

    def between(at, by):
        found.extend(by.tolist())
        return inverse[np.ix_(at, by)]

    compliance, order = Compliance(between, 900), RNG.permutation(900)
    for count in (first, first + 20, first + 20):
        vertices = np.sort(order[:count])
        block, push = compliance.block(vertices), RNG.normal(size=(count, 3))
        spread = np.zeros((block.count, 3))
        spread[block.index[vertices]] = push
        moved, expected = block.solve(spread)[block.index[vertices]], inverse[np.ix_(vertices, vertices)] @ push
        assert np.abs(moved - expected).max() < (1e-12 if count < 600 else 1e-5) * np.abs(expected).max()
    assert block.count == first + 20
    assert sorted(found) == sorted(order[: first + 20].tolist())


def test_a_frame_at_rest_needs_no_other_round_for_friction_to_take_hold(bar, monkeypatch):
    """Points that are newly pressed are held from where they are: the next frame drags them along."""
    rounds, minimised = [], contact_solver.minimise
    monkeypatch.setattr(contact_solver, "minimise", lambda *a, **o: rounds.append(1) or minimised(*a, **o))
    ball = moving(Sphere((0, 1.2, 0), 0.5), (0, 0, 0), (0, -0.35, 0), (0.1, -0.35, 0))
    dragged, count = {}, {}
    for friction in (0.0, 1.0):
        rounds.clear()
        poses = list(bar.poses([[1.0, 0]] * 3, obstacles=[ball], friction=friction))
        dragged[friction] = poses[2].reactions[0, 0]
        assert all(pose.converged for pose in poses)
        count[friction] = len(rounds)
    assert count[1.0] <= count[0.0]
    assert abs(dragged[1.0]) > 2 * abs(dragged[0.0])


def test_tetrahedra_that_contact_turns_over_are_those_that_were_not_before():
    before = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, -1], [5, 0, 0], [6, 0, 0], [5, 1, 0], [5, 0, 1]], float)
    after, tets = before.copy(), np.arange(8).reshape(2, 4)
    after[[3, 7], 2] *= -1
    assert [inverted_tets(x, tets) for x in (before, after)] == [1, 1]
    assert newly_inverted_tets(after, before, tets) == 1
    assert newly_inverted_tets(before, before, tets) == 0
