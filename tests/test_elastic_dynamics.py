"""Elastic bodies that move: what a step must keep, how they settle, and how a simulation ends."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

from pliant import ElasticBody, Material, Motion, Skeleton, gallery
from pliant.contact import Box, Cylinder, HalfSpace, MovingObstacle, Sphere
from pliant.contact.forces import Rows
from pliant.contact.self_contact import SelfContact
from pliant.contact.solver import DEFAULT_THICKNESS, ContactFrame
from pliant.core import rotations
from pliant.core.errors import InputError, PliantWarning
from pliant.engines.simulate import BodyState, Simulation, contacts as collisions
from pliant.engines.simulate.app.scene import ElasticScene
from pliant.engines.simulate.dynamics import Stepper
from pliant.engines.simulate.options import GROUND_FRICTION, SimulateOptions
from pliant.geometry.spatial import SurfaceTree
from self_contact_shapes import clapping

POST = Skeleton.from_positions([[0, -2.3, 0], [0, 0, 0], [0, 2.3, 0]], [-1, 0, 1])


@pytest.fixture(scope="module")
def post() -> ElasticBody:
    shape = gallery.cylinder(800, radius=0.5, height=5, rounding=0.3)
    return ElasticBody(shape, POST, material=Material(young=2e5), nodes=300)


def swing(degrees: float, frames: int = 12, fps: float = 30.0) -> Motion:
    """The upper half bends by an angle, evenly."""
    turns = np.repeat(POST.rest_rotations[None], frames, axis=0)
    turns[:, 1] = rotations.from_axis_angle([1, 0, 0], np.radians(np.linspace(0, degrees, frames)))
    return Motion(POST, turns, np.repeat(POST.offsets[None], frames, axis=0), fps=fps)


def sliding(velocity, frames: int = 10) -> Motion:
    """The whole skeleton at constant velocity."""
    places = np.repeat(POST.offsets[None], frames, axis=0)
    places[:, 0] += np.arange(frames)[:, None] / 30 * np.asarray(velocity)
    return Motion(POST, np.repeat(POST.rest_rotations[None], frames, axis=0), places, fps=30.0)


def total(clip: Simulation) -> np.ndarray:
    return clip.measured("energy") + clip.measured("kinetic")


def test_a_skeleton_that_slides_takes_the_body_along_rigidly(post):
    velocity = np.array([3.0, -2.0, 1.0])
    clip = post.simulate(sliding(velocity), damping=0.05, drag=2.0)
    moved = post.shape.points + 9 / 30 * velocity
    np.testing.assert_allclose(clip.points[-1], moved, atol=1e-10)
    assert clip.converged


def test_a_skeleton_that_stands_still_leaves_the_body_at_rest(post):
    clip = post.simulate(sliding((0, 0, 0)), gravity=9.81)
    assert np.abs(clip.points - clip.points[0]).max() < 1e-3 * post.diagonal


@pytest.mark.parametrize("dt", [1 / 30, 1 / 60, pytest.param(1 / 240, marks=pytest.mark.slow)])
def test_energy_does_not_grow_once_the_skeleton_stands(post, dt):
    clip = post.simulate(swing(60), dt=dt, hold=1.0, fps=30, damping=0.0)
    after = total(clip)[13:]
    assert after[0] > 0
    assert (np.diff(after) <= 1e-3 * after[0]).all()
    assert after[-1] < after[0]


@pytest.mark.parametrize("gravity", [None, 9.81])
def test_it_settles_to_the_static_shape(post, gravity):
    motion = swing(70)
    clip = post.simulate(motion, dt=1 / 30, hold=4.0, gravity=gravity, damping=0.02)
    static = post.pose(motion[len(motion) - 1], gravity=gravity, accuracy=1e-4)
    assert np.abs(clip.points[-1] - static.points).max() < 2e-3 * post.diagonal
    assert clip.states[-1].kinetic < 1e-3 * clip.measured("kinetic").max()


def test_flesh_lags_and_overshoots(post):
    motion = swing(45, frames=6)
    clip = post.simulate(motion, dt=1 / 60, hold=1.0)
    tip = np.argmax(post.shape.points[:, 1])
    still = post.pose(motion[5]).points[tip]
    start = post.shape.points[tip]
    along = (clip.points[:, tip] - start) @ (still - start) / np.sum((still - start) ** 2)
    assert along.max() > 1.005
    assert abs(along[-1] - 1) < 0.05


def test_the_motions_frame_rate_and_the_step_do_not_depend_on_each_other(post):
    slow, fast = swing(60, frames=7, fps=15), swing(60, frames=49, fps=120)
    a, b = (post.simulate(motion, dt=1 / 60, fps=30) for motion in (slow, fast))
    assert len(a) == len(b) == 13
    assert a.fps == b.fps == 30
    assert np.abs(a.points - b.points).max() < 2e-3 * post.diagonal


def test_frames_are_the_motions_but_no_finer_than_the_steps(post):
    assert post.simulate(swing(10, frames=4, fps=30), dt=1 / 60).fps == 30
    assert post.simulate(swing(10, frames=9, fps=120), dt=1 / 60).fps == pytest.approx(60)


def test_a_state_can_be_gone_on_from(post):
    motion = swing(40, frames=8)
    whole = list(post.states(motion, dt=1 / 30))
    assert all(isinstance(state, BodyState) for state in whole)
    rest = Motion(POST, motion.rotations[4:], motion.translations[4:], fps=motion.fps)
    again = list(post.states(rest, dt=1 / 30, start=whole[4]))
    assert np.abs(again[-1].nodes - whole[-1].nodes).max() < 5e-3 * post.diagonal


def test_forces_act_on_vertices(post):
    push = np.zeros_like(post.shape.points)
    push[post.shape.points[:, 1] > 2, 0] = 20.0
    steady = post.simulate(sliding((0, 0, 0), frames=20), forces=push)
    blown = post.simulate(sliding((0, 0, 0), frames=20), forces=lambda time, points: push * (time > 0.1))
    moved, later = (clip.points[:, :, 0] - post.shape.points[:, 0] for clip in (steady, blown))
    assert moved[-1].max() > 1e-3
    assert np.abs(later[2]).max() < 1e-6
    assert later[-1].max() > 1e-3


def test_measures_come_with_every_frame(post):
    clip = post.simulate(swing(60))
    for name in ("volume", "energy", "kinetic", "inverted", "iterations", "converged", "penetration", "contacts"):
        assert clip.measured(name).shape == (len(clip),)
    assert np.abs(clip.measured("volume") - 1).max() < 0.05
    assert clip.resampled(10).fps == 10


def test_progress_is_reported(post):
    seen = []
    clip = post.simulate(swing(20, frames=5), report=lambda done, of: seen.append((done, of)))
    assert seen == [(k + 1, len(clip)) for k in range(len(clip))]


def test_a_simulation_that_flies_apart_keeps_the_frames_before_and_says_why(post):
    def blast(time, points):
        return np.full_like(points, 1e9 if time > 0.15 else 0.0)

    with pytest.warns(PliantWarning, match=r"stopped at step \d+, after .* s: flesh is"):
        clip = post.simulate(sliding((0, 0, 0), frames=30), forces=blast)
    assert 4 <= len(clip) < 30
    assert "stopped at step" in clip.stopped
    assert not clip.converged
    assert np.isfinite(clip.points).all()


@pytest.mark.slow
def test_steps_of_a_thirtieth_are_stable():
    shape, places = gallery.bar(600)[0], np.linspace(-1.9, 1.9, 5)
    skeleton = Skeleton.from_positions(np.stack([places, 0 * places, 0 * places], axis=1), np.arange(5) - 1)

    def bent(rate: int) -> Motion:
        """By 180 degrees and back, in a second."""
        angle = np.radians(180) * (1 - np.cos(2 * np.pi * np.arange(rate + 1) / rate)) / 6
        turns = np.repeat(skeleton.rest_rotations[None], rate + 1, axis=0)
        turns[:, 1:4] = rotations.from_axis_angle([0, 0, 1], angle)[:, None]
        return Motion(skeleton, turns, np.repeat(skeleton.offsets[None], rate + 1, axis=0), fps=rate)

    stuff = Material(young=1e6, poisson=0.45)
    ours = ElasticBody(shape, skeleton, material=stuff, nodes=200)
    coarse, fine = (ours.simulate(bent(rate), dt=1 / rate).measured("energy").max() for rate in (30, 120))
    assert abs(coarse / fine - 1) < 0.03
    assert ours.simulate(bent(30), dt=1 / 30).measured("inverted").max() == 0


# Contact


def test_flesh_gives_way_to_a_ball_and_does_not_enter_it(post):
    ball = Sphere((0.0, 1.2, 1.1), 0.7)
    clip = post.simulate(
        sliding((0, 0, 0), frames=10),
        obstacles=[MovingObstacle(ball, [(0, (0, 0, 0.3), (1, 0, 0, 0)), (7, (0, 0, 0), (1, 0, 0, 0))])],
    )
    deepest = -ball.signed(clip.points[-1])[0].min()
    assert deepest < 1e-4 * post.diagonal
    assert clip.measured("contacts")[-1] > 0
    assert clip.measured("penetration").max() <= 1e-4
    assert np.abs(clip.points[-1] - post.shape.points).max() > 0.02


def test_a_body_pressed_on_the_floor_stays_above_it(post):
    floor = HalfSpace((0, -2.7, 0), (0, 1, 0))
    places = np.repeat(POST.offsets[None], 8, axis=0)
    places[:, 0, 1] -= np.linspace(0, 0.3, 8)
    motion = Motion(POST, np.repeat(POST.rest_rotations[None], 8, axis=0), places, fps=30)
    clip = post.simulate(motion, obstacles=[floor], friction=0.3)
    assert clip.points[:, :, 1].min() > -2.7 - 1e-4 * post.diagonal
    assert clip.measured("contacts").max() > 0


def test_the_first_frame_is_in_contact_too(post):
    ball = Sphere((0.0, 1.2, 1.1), 0.7)
    clip = post.simulate(sliding((0, 0, 0), frames=4), obstacles=[ball])
    assert -ball.signed(post.shape.points)[0].min() > 1e-2 * post.diagonal
    assert -ball.signed(clip.points[0])[0].min() < 1e-4 * post.diagonal
    assert clip.states[0].contacts > 0
    assert clip.converged
    assert np.abs(clip.points - clip.points[0]).max() < 2e-3 * post.diagonal  # it is at rest there


def test_flesh_at_rest_between_the_corners_of_its_faces_stays_at_rest(post):
    """The ball presses on faces too: contacts there do not come and go from step to step."""
    clip = post.simulate(sliding((0, 0, 0), frames=8), obstacles=[Sphere((0.0, 1.2, 1.1), 0.7)])
    assert np.abs(clip.points - clip.points[0]).max() < 2e-4 * post.diagonal
    assert np.ptp(clip.measured("contacts")) <= 1
    assert clip.measured("kinetic").max() < 1e-2 * clip.states[0].energy


@pytest.mark.parametrize("dt", [1 / 60, pytest.param(1 / 240, marks=pytest.mark.slow)])
def test_a_bar_that_falls_on_the_floor_loses_energy_and_comes_to_rest(dt):
    """It is held at one end. Impacts add no energy, and in the end it lies as it would if it had been put there."""
    bone = Skeleton.from_positions([[-1.9, 0, 0], [-1.2, 0, 0]], [-1, 0])
    body = ElasticBody(gallery.bar(500)[0], bone, material=Material(), nodes=200)
    still = Motion(bone, bone.rest_rotations[None], bone.offsets[None], fps=60)
    floor, free = HalfSpace((0, -0.6, 0), (0, 1, 0)), body.nodes.free
    start = next(body.states(still))
    options = {"gravity": 9.81, "obstacles": [floor], "dt": dt, "damping": 0.1}
    clip = body.simulate(still, start=start, hold=1.0, **options)
    fallen = [body.mass[:free] @ (state.nodes - body.nodes.points)[:free, 1] for state in clip.states]
    energy = total(clip) + 9.81 * np.array(fallen)
    assert clip.converged
    assert clip.measured("kinetic").max() > 100
    assert (np.diff(energy) < 1e-3 * abs(energy[-1])).all()
    assert clip.states[-1].kinetic < 1e-3 * clip.measured("kinetic").max()
    put = next(body.states(still, **options))
    assert np.abs(clip.states[-1].nodes - put.nodes).max() < 2e-3 * body.diagonal


def test_a_state_to_go_on_from_is_measured_against_the_obstacles(post):
    inside = Sphere((0.0, 1.2, 0.0), 0.8)
    free = next(post.states(sliding((0, 0, 0), frames=4)))
    taken = next(post.states(sliding((0, 0, 0), frames=4), obstacles=[inside], start=free))
    assert taken.penetration > 0.01
    assert not taken.converged


def test_a_quick_thin_wall_does_not_pass_through(post):
    """It crosses a third of the post within a step, and is thinner than the way."""
    wall = Box((0, 1.2, 0), (3, 3, 0.3))
    still = (1, 0, 0, 0)
    moving = MovingObstacle(wall, [(0, (0, 0, 0.9), still), (1, (0, 0, 0.4), still), (2, (0, 0, 0.4), still)])
    clip = post.simulate(sliding((0, 0, 0), frames=3), dt=1 / 30, obstacles=[moving])
    assert clip.converged
    front = (post.shape.points[:, 1] > 0) & (post.shape.points[:, 1] < 2)
    assert post.shape.points[front, 2].max() > 0.4
    assert clip.points[1:, front, 2].max() < 0.25 + 1e-4 * post.diagonal
    assert clip.measured("penetration").max() <= 1e-4


def test_what_is_thinner_than_the_faces_does_not_pass_between_vertices(post):
    """Edges and faces count: no vertex is in the way of this rod."""
    x = post.shape.points
    front = np.sort(np.unique(np.round(x[x[:, 2] > x[:, 2].max() - 1e-6, 1], 6)))
    between = float(front[len(front) // 2] + front[len(front) // 2 + 1]) / 2
    rod = Cylinder((-3, between, x[:, 2].max() + 0.03), (3, between, x[:, 2].max() + 0.03), 0.02)
    pressed = MovingObstacle(rod, [(0, (0, 0, 0), (1, 0, 0, 0)), (3, (0, 0, -0.1), (1, 0, 0, 0))])
    assert pressed.at(3).signed(x)[0].min() > 0
    clip = post.simulate(sliding((0, 0, 0), frames=4), obstacles=[pressed])
    assert clip.converged
    assert clip.measured("contacts")[-1] > 0
    faces = clip.points[-1][post.shape.triangles]
    some = np.random.default_rng(0).dirichlet(np.ones(3), 100)
    assert pressed.at(3).signed((some @ faces).reshape(-1, 3))[0].min() > -2e-4 * post.diagonal


def test_flesh_around_a_bone_that_runs_into_a_ball_is_clear_of_it_at_every_step():
    bones = Skeleton.from_positions([[-1.8, 0, 0], [0, 0, 0], [1.8, 0, 0]], [-1, 0, 1])
    turns = np.repeat(bones.rest_rotations[None], 8, axis=0)
    turns[:, 1] = rotations.from_axis_angle([0, 0, 1], np.radians(np.linspace(0, 60, 8)))
    motion = Motion(bones, turns, np.repeat(bones.offsets[None], 8, axis=0), fps=30.0)
    body = ElasticBody(gallery.bar(500)[0], bones, nodes=400)  # 200 are too few for flesh pressed this thin
    clip = body.simulate(motion, obstacles=[Sphere((1.6, 1.7, 0), 0.5)])
    assert clip.measured("contacts").max() > 0
    assert clip.measured("penetration").max() <= 1e-4
    assert clip.converged


def test_a_frame_tells_the_worst_of_its_steps(post, monkeypatch):
    told = []

    def step(self, *given):
        state = stepped(self, *given)
        worse = len(told) % 4 == 1  # the second of the four steps of a frame
        told.append(replace(state, converged=not worse, penetration=0.1 * worse, inverted=7 * worse))
        return told[-1]

    stepped = Stepper.step
    monkeypatch.setattr(Stepper, "step", step)
    frames = list(post.states(swing(10, frames=3), dt=1 / 120, fps=30))[1:]
    assert len(told) == 4 * len(frames)
    assert [(state.converged, state.penetration, state.inverted) for state in frames] == [(False, 0.1, 7)] * len(frames)


def test_contact_that_is_not_solved_is_not_called_converged(post, monkeypatch):
    ball = MovingObstacle(Sphere((0, 1.2, 1.1), 0.7), [(0, (0, 0, 0.2), (1, 0, 0, 0)), (6, (0, 0, 0), (1, 0, 0, 0))])
    assert post.simulate(sliding((0, 0, 0), frames=7), obstacles=[ball]).converged
    monkeypatch.setattr(collisions, "CONTACT_ITERATIONS", 1)
    assert not post.simulate(sliding((0, 0, 0), frames=7), obstacles=[ball]).converged


def test_contact_does_not_hold_back_what_leaves(post):
    """Forces that lift the flesh off a floor which it touches act as if there were none."""
    lowest, lift = post.shape.points[:, 1].min(), (0.0, 60.0, 0.0)
    floor = HalfSpace((0, lowest - 0.5 * DEFAULT_THICKNESS * post.diagonal, 0), (0, 1, 0))
    start = next(post.states(sliding((0, 0, 0), frames=2), gravity=lift, obstacles=[floor], stretch_limit="none"))
    alone = post.pose(POST.rest_pose(), gravity=lift, accuracy=1e-4, stretch_limit="none")
    away = np.abs(alone.nodes - post.nodes.points).max()
    assert away > 1e-3 * post.diagonal
    assert start.contacts == 0
    assert start.converged
    assert np.abs(start.nodes - alone.nodes).max() < 0.05 * away


def test_friction_slows_a_body_that_slides_and_obeys_coulomb(post, monkeypatch):
    """Bones that slide sideways drag the foot of a post over the floor that it is pressed on."""
    seen = []

    def settled(self, *given, **options):
        seen.append(solved(self, *given, **options))
        return seen[-1]

    solved = ContactFrame.settled
    monkeypatch.setattr(ContactFrame, "settled", settled)
    lowest = post.shape.points[:, 1].min()
    floor = HalfSpace((0, lowest + 0.05, 0), (0, 1, 0))
    foot = post.shape.points[:, 1] < lowest + 0.01
    lag = []
    for friction in (0.0, 0.4):
        seen.clear()
        clip = post.simulate(sliding((0.3, 0, 0), frames=6), obstacles=[floor], friction=friction)
        assert clip.converged
        assert len(seen) > 10
        lag.append(float((clip.points[-1] - clip.points[0])[foot, 0].mean()))
        for result in seen:
            normal, size = result.friction.T
            assert (size <= friction * normal + 1e-6 * normal.max(initial=0.0)).all()
            total = result.reactions[0]
            assert np.hypot(total[0], total[2]) <= friction * abs(total[1]) * (1 + 1e-6) + 1e-9 * abs(total[1])
    assert lag[1] < 0.9 * lag[0]


def test_the_ground_is_where_a_motion_stands_most_of_the_time(post):
    lowest = post.shape.points[:, 1].min()
    hopping = sliding((0, 0, 0), frames=5)
    places = hopping.translations.copy()
    places[3:, 0] += [0, 1.0, 0]
    ground = post.ground(Motion(POST, hopping.rotations, places, 30.0))
    assert np.allclose(ground.normal, [0, 1, 0])
    assert 0 < lowest - ground.point[1] < 1e-2 * post.diagonal
    sideways = post.ground(hopping, up=(2, 0, 0))
    assert np.allclose(sideways.normal, [1, 0, 0])
    with pytest.raises(InputError, match="up is"):
        post.ground(hopping, up=(0, 1))


def test_a_foot_stays_where_it_stands(post):
    """Bones press it on the ground, and then slide a little: it slides along without friction, and stays with it."""
    still = sliding((0, 0, 0), frames=7)
    places = still.translations.copy()
    x, y = np.linspace(-0.06, 0.06, 7).clip(0), np.linspace(0, -0.16, 7).clip(-0.08)
    places[:, 0] += np.stack([x, y, np.zeros(7)], axis=1)
    motion, ground = Motion(POST, still.rotations, places, 30.0), post.ground(still)
    foot = post.shape.points[:, 1] < post.shape.points[:, 1].min() + 0.01
    slid = []
    for friction in (0.0, GROUND_FRICTION):
        clip = post.simulate(motion, obstacles=[ground], friction=friction, dt=1 / 30)
        assert clip.measured("contacts")[3:].min() > 0
        slid.append(float((clip.points[-1] - clip.points[3])[foot, 0].mean()))
    assert slid[1] < 0.2 * x[-1] < 0.6 * x[-1] < slid[0]


def test_a_scene_stands_on_the_ground_by_one_option(post):
    scene = ElasticScene(post.shape, POST, sliding((0, 0, 0), frames=2), SimulateOptions(nodes=300))
    assert scene.surroundings(post) == {"obstacles": (), "friction": 0.0}
    for given, expected in ((None, GROUND_FRICTION), (0.0, 0.0), (0.3, 0.3)):
        met = replace(scene, options=replace(scene.options, ground=True, friction=given)).surroundings(post)
        assert [type(one) for one in met["obstacles"]] == [HalfSpace]
        assert met["friction"] == expected


def test_the_curvature_of_contact_is_that_of_the_layer_between_them():
    """Nᵀ Jᵀ (J k⁻¹ Jᵀ + ρ⁻¹)⁻¹ J N, of contacts that share vertices in several groups, one with a vertex twice."""
    rng, count, points, free = np.random.default_rng(3), 9, 14, 6
    vertices = rng.integers(0, 7, (count, 4))
    vertices[5:] = rng.integers(7, points, (4, 4))
    vertices[0, 3] = vertices[0, 2]
    weights = rng.standard_normal((count, 4))
    weights[:, 3] *= np.arange(count) % 2
    directions = rng.standard_normal((count, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    rho, layer, N = rng.uniform(5, 9, count), rng.uniform(1, 2, points), rng.standard_normal((points, free))
    contact = object.__new__(collisions.StageContact)
    contact._layer, contact._collisions = layer, SimpleNamespace(N_free=csr_array(N))
    rows = Rows.pushing(vertices, weights, directions, np.zeros(count), rho)
    begin, node, phi, found, first, stiffness = contact.curvature(collisions.Pressed(0.0, np.zeros((points, 3)), rows))
    H, blocks = np.zeros((free, 3, free, 3)), np.cumsum([0, *np.diff(first) ** 2])
    G = np.zeros((count, free, 3))
    for k in range(count):
        np.add.at(G[k], node[begin[k] : begin[k + 1]], np.outer(phi[begin[k] : begin[k + 1]], found[k]))
    for k, (a, b) in enumerate(pairwise(first)):
        block = stiffness[blocks[k] : blocks[k + 1]].reshape(b - a, b - a)
        H += np.einsum("aic,ab,bjd->icjd", G[a:b], block, G[a:b])
    J = np.zeros((count, points, 3))
    for k in range(count):
        np.add.at(J[k], vertices[k], weights[k][:, None] * directions[k])
    inner = np.linalg.inv(np.einsum("avc,v,bvc->ab", J, 1 / layer, J) + np.diag(1 / rho))
    JN = np.einsum("avc,vi->aic", J, N)
    np.testing.assert_allclose(H, np.einsum("aic,ab,bjd->icjd", JN, inner, JN), atol=1e-4)
    assert len(first) > 2


def test_a_path_that_nothing_is_in_is_looked_at_once(post, monkeypatch):
    """Led to where the body is free, it is there exactly."""
    calls = []

    def count(owner, name):
        known = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *arguments: calls.append(name) or known(*arguments))

    count(SelfContact, "meet")
    count(collisions.Collisions, "begin")
    states = iter(post.states(swing(10.0, frames=4), self_contact=True))
    assert next(states).contacts == 0
    calls.clear()
    list(states)
    assert calls.count("begin") > 0
    assert calls.count("meet") == calls.count("begin")


def test_a_body_with_self_contact_does_not_pass_through_itself():
    """Two lobes that their bones press into each other."""
    body, motion = clapping()
    tree = SurfaceTree(body.shape)
    free, apart = (body.simulate(motion, self_contact=given) for given in (False, True))
    assert len(tree.moved(free.points[-1]).crossings()) > 0
    assert all(not len(tree.moved(points).crossings()) for points in apart.points)
    assert apart.converged
    assert apart.measured("contacts")[-1] > 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pliant.core.errors.PliantWarning")  # what it says of flesh that is folded
def test_a_body_that_folds_onto_itself_does_not_pass_through_itself():
    """A bar of two bones folds by more than a half turn, onto itself."""
    bones = Skeleton.from_positions([[-1.8, 0, 0], [0, 0, 0], [1.8, 0, 0]], [-1, 0, 1])
    turns = np.repeat(bones.rest_rotations[None], 10, axis=0)
    turns[:, 1] = rotations.from_axis_angle([0, 0, 1], np.radians(np.linspace(0, 175, 10)))
    motion = Motion(bones, turns, np.repeat(bones.offsets[None], 10, axis=0), fps=30.0)
    shape = gallery.bar(500)[0]
    body, tree = ElasticBody(shape, bones, nodes=200), SurfaceTree(shape.welded().mesh)
    kept = shape.welded().kept
    free, apart = (body.simulate(motion, dt=1 / 30, self_contact=given) for given in (False, True))
    assert len(tree.moved(free.points[-1][kept]).crossings()) > 0
    assert all(not len(tree.moved(points[kept]).crossings()) for points in apart.points)


# Input


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dt": 0}, "dt is 0"),
        ({"dt": "fast"}, 'dt is "fast"; expected a number above 1e-7'),
        ({"fps": -1}, "fps is -1"),
        ({"hold": -1.0}, "hold is -1"),
        ({"pre_roll": -1.0}, "pre_roll is -1"),
        ({"stretch_limit": 0.0}, "stretch_limit is 0.0"),
        ({"stretch_limit": "some"}, 'stretch_limit is "some"'),
        ({"damping": -1.0}, "damping is -1"),
        ({"friction": np.nan}, "friction is nan"),
        ({"gravity": "down"}, 'gravity is "down"; expected a number, or three'),
        ({"start": "x"}, "start is 'x'; expected a BodyState"),
        ({"forces": "abc"}, "forces are 'abc'"),
        ({"forces": (0, np.nan, 0)}, "the force on the body is not finite"),
        (
            {"forces": lambda time, points: np.where(np.arange(len(points)) == 7, np.nan, points.T).T},
            "force on vertex 7",
        ),
    ],
)
def test_options_are_checked(post, options, words):
    with pytest.raises(InputError, match=words):
        post.simulate(swing(10), **options)


def test_motions_of_other_skeletons_are_refused(post):
    with pytest.raises(InputError, match="map the motion"):
        post.simulate(gallery.creature_walk(4))
    with pytest.raises(InputError, match="expected a Motion"):
        post.simulate([0, 1])


def test_forces_of_another_shape_are_refused(post):
    with pytest.raises(InputError, match="forces have shape"):
        post.simulate(swing(10), forces=np.zeros((5, 3)))


def test_states_of_another_body_are_refused(post):
    other = ElasticBody(post.shape, POST, nodes=200)
    state = next(other.states(swing(10)))
    with pytest.raises(InputError, match="state of another body"):
        post.simulate(swing(10), start=state)
    with pytest.raises(InputError, match="cannot be gone on from: flew"):
        other.simulate(swing(10), start=replace(state, problem="flew apart"))
