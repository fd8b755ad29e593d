"""Steps of dynamics: their order, frequencies, damping and momentum, and that they can be stopped and gone on from."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from pliant import ElasticBody, Material, Mesh, Motion, Skeleton, gallery
from pliant.contact import HalfSpace
from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.topology import Floats
from pliant.engines.simulate import BodyState, anchors
from pliant.engines.simulate.bone_samples import BoneSamples
from pliant.engines.simulate.bones import Bones
from pliant.engines.simulate.dynamics import Stepper
from pliant.engines.simulate.multigrid import build_multigrid
from self_contact_shapes import clapping

FACES = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
LENGTH = 6.0
STUFF = Material(young=1e5, poisson=0.3, density=1000.0)
SOFT = Material(young=2e4)
BONE = Skeleton.from_positions([[0.1, 0.5, 0.5], [1.9, 0.5, 0.5]], [-1, 0])


def box(start: float, end: float) -> tuple[Floats, list[list[int]]]:
    return np.array([[x, y, z] for x in (start, end) for y in (0, 1) for z in (0, 1)], dtype=float), FACES


def wall(bones: Bones, tree: object, spacing: float) -> BoneSamples:
    """Samples of a single bone all over the face x = 0: a clamp."""
    side = (np.arange(10) + 0.5) / 10
    points = np.array([[0, y, z] for y in side for z in side])
    none = np.zeros(len(points))
    bone, joint, plane = none.astype(np.int64), np.full(len(points), -1), none + 1e6
    areas = none + 0.1  # ten times its own: there is no flesh behind a wall that the functions would stiffen
    return BoneSamples(bones, points, bone, none, points - bones.heads[0], joint, areas, plane)


@pytest.fixture(scope="module")
def clamped() -> ElasticBody:
    """A bar along x, of which one end is held all over."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anchors, "sample_bones", wall)
        return ElasticBody(Mesh(*box(0, LENGTH)), BONE, material=STUFF, nodes=600)


@pytest.fixture(scope="module")
def mode(clamped: ElasticBody) -> tuple[float, Floats]:
    """Angular frequency, and (free, 3) the shape, of the clamped bar's first vibration in y; its mass is 1."""
    from scipy.sparse import diags
    from scipy.sparse.linalg import eigsh

    free, operator = clamped.nodes.free, clamped.operator
    K, M = operator.rest_stiffness()[: 3 * free, : 3 * free], np.repeat(clamped.mass[:free], 3)
    values, shapes = eigsh(K.tocsc(), 2, diags(M).tocsc(), sigma=0)
    shapes = shapes.T.reshape(2, free, 3)
    upright = int(np.argmax(np.abs(shapes[:, :, 1]).sum(axis=1)))
    return float(np.sqrt(values[upright])), shapes[upright]


def still(body: ElasticBody, seconds: float, fps: float) -> Motion:
    frames = round(seconds * fps) + 1
    rest = body.skeleton
    turns, places = (np.repeat(values[None], frames, axis=0) for values in (rest.rest_rotations, rest.offsets))
    return Motion(rest, turns, places, fps=fps)


def at_rest(body: ElasticBody, dt: float, moved: Floats | float = 0.0) -> BodyState:
    """The body standing still, its free nodes away from rest by `moved`."""
    x = body.nodes.points.copy()
    x[: body.nodes.free] += moved
    return Stepper(body, dt).start(x, body.frames_of(body.skeleton.rest_pose()), following=False)


def timoshenko(E: float, nu: float, density: float) -> float:
    """Angular frequency of the first mode of a clamped beam with a section of 1 x 1, by 400 elements along it."""
    from scipy.sparse import coo_array
    from scipy.sparse.linalg import eigsh

    n, G, kappa = 400, E / (2 * (1 + nu)), 10 * (1 + nu) / (12 + 11 * nu)
    h = LENGTH / n
    bend = E / 12 / h * np.array([[0, 0, 0, 0], [0, 1, 0, -1], [0, 0, 0, 0], [0, -1, 0, 1]])
    slide = np.array([-1 / h, -0.5, 1 / h, -0.5])
    K_e = bend + kappa * G * h * np.outer(slide, slide)
    M_e = density * h / 6 * np.kron([[2, 1], [1, 2]], np.diag([1, 1 / 12]))
    dofs = 2 * np.arange(n)[:, None] + np.arange(4)
    i, j = np.repeat(dofs, 4, axis=1).ravel(), np.tile(dofs, (1, 4)).ravel()
    K, M = (coo_array((np.tile(m.ravel(), n), (i, j))).tocsc()[2:, 2:] for m in (K_e, M_e))
    return float(np.sqrt(eigsh(K, 1, M, sigma=0)[0][0]))


def vibration(body: ElasticBody, mode: tuple[float, Floats], periods: float, steps: int, **options: float) -> Floats:
    """(2, n) the first mode's coordinate and velocity at every step, from a swing that is let go of."""
    omega, shape = mode
    dt = 2 * np.pi / omega / steps
    size = 0.02 * body.diagonal / np.abs(shape).max()
    start = at_rest(body, dt, size * shape)
    mass, free, rest = body.mass[: body.nodes.free, None], body.nodes.free, body.nodes.points[: body.nodes.free]
    states = body.states(still(body, periods * steps * dt, 1 / dt), dt=dt, start=start, **options)
    moved = [(state.nodes[:free] - rest, state.velocity) for state in states]
    return np.array([[np.sum(mass * shape * part) for part in pair] for pair in moved]).T / size


def test_a_clamped_bar_vibrates_as_timoshenkos_beam(clamped, mode):
    omega = timoshenko(STUFF.young, STUFF.poisson, STUFF.density)
    assert mode[0] == pytest.approx(omega, rel=0.02)
    q, v = vibration(clamped, mode, 3, 40, damping=0.0)
    phase = np.unwrap(np.arctan2(-v / mode[0], q))
    measured = phase[-1] / (3 * 40) * (40 * mode[0] / (2 * np.pi))
    assert measured == pytest.approx(omega, rel=0.02)
    assert measured == pytest.approx(mode[0], rel=0.005)


def test_without_damping_the_first_mode_keeps_its_energy(clamped, mode):
    """Less than 2 % a period are lost at 40 steps a period, and at 80 steps an eighth of that."""
    lost = []
    for steps in (40, 80):
        q, v = vibration(clamped, mode, 1, steps, damping=0.0, accuracy=1e-5)
        energy = (mode[0] * q) ** 2 + v**2
        lost.append(1 - energy[-1] / energy[0])
    assert 0 <= lost[0] < 0.02
    assert lost[1] < lost[0] / 6


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_damping_is_that_of_the_strains_rate(clamped, mode, share):
    """The damping ratio of a mode is β ω / 2."""
    q, v = vibration(clamped, mode, 1, 40, damping=2 * share / mode[0])
    damped = mode[0] * np.sqrt(1 - share**2)
    size = np.sqrt(q**2 + ((v + share * mode[0] * q) / damped) ** 2)
    ratio = np.log(size[0] / size[-1]) / (2 * np.pi)
    assert ratio == pytest.approx(share, rel=0.05)


@pytest.mark.parametrize("rate", [60, 240, 960])
def test_a_bar_that_is_let_go_of_falls(clamped, mode, rate):
    """Its tip falls freely at first, whatever the step."""
    clip = clamped.simulate(still(clamped, 0.1, 60), dt=1 / rate, gravity=9.81, start=at_rest(clamped, 1 / rate))
    tip = np.argmax(clamped.shape.points[:, 0])
    fallen = clamped.shape.points[tip, 1] - clip.points[:, tip, 1]
    free = 0.5 * 9.81 * (np.arange(len(clip)) / 60) ** 2
    np.testing.assert_allclose(fallen[1:], free[1:], rtol=0.02)
    assert clip.converged
    assert clip.measured("iterations")[1:].min() >= 1


def shaken(body: ElasticBody, fps: int, seconds: float = 0.5) -> Motion:
    """The whole skeleton to and fro and about, from a stand."""
    motion = still(body, seconds, fps)
    t = np.arange(len(motion)) / fps
    turns, places = motion.rotations.copy(), motion.translations.copy()
    places[:, 0, 1] += 0.3 * np.sin(4 * np.pi * t) ** 2
    turn = rotations.from_axis_angle([0.0, 0.0, 1.0], 0.4 * np.sin(2 * np.pi * t) ** 2)
    turns[:, 0] = rotations.multiply(turns[:, 0], turn)
    return replace(motion, rotations=turns, translations=places)


def errors(body: ElasticBody, motion: Motion, rates: list[int], fps: float, **options: float) -> list[float]:
    """Largest distances at frames from the answer with steps half of the shortest, by Richardson's extrapolation.

    Of flesh without limits: walls that are as stiff as those are met within a few steps, whatever their length.
    """
    options |= {"stretch_limit": "none"}
    clips = [body.simulate(motion, dt=1 / rate, fps=fps, **options).points for rate in [*rates, 2 * rates[-1]]]
    exact = clips[-1] + (clips[-1] - clips[-2]) / 3
    return [float(np.linalg.norm(clip - exact, axis=2).max()) / body.diagonal for clip in clips[:-1]]


def orders(found: list[float]) -> Floats:
    return np.log2(np.array(found[:-1]) / found[1:])


def test_steps_on_a_shaken_bar_are_of_second_order(clamped):
    found = errors(clamped, shaken(clamped, 960, 0.25), [60, 120, 240], 20, accuracy=1e-4)
    assert found[0] < 0.02
    assert orders(found).min() > 1.8


@pytest.mark.slow
def test_steps_of_flesh_on_leashes_are_of_second_order():
    """Stiff springs to where the bones carry flesh cost no order."""
    bone = Skeleton.from_positions([[0.1, 0.5, 0.5], [1.9, 0.5, 0.5]], [-1, 0])
    body = ElasticBody(Mesh(*box(0, LENGTH)), bone, material=SOFT, nodes=300, withstand=100.0)
    found = errors(body, shaken(body, 960), [60, 120, 240], 30, accuracy=1e-4)
    assert orders(found).min() > 1.8
    with_limits = body.simulate(shaken(body, 60), dt=1 / 60)
    rest = np.linalg.norm(np.diff(body.shape.points[[0, 4]], axis=0))
    along = np.linalg.norm(with_limits.points[:, 0] - with_limits.points[:, 4], axis=1) / rest
    assert np.abs(along - 1).max() < 0.1
    assert with_limits.converged


@pytest.mark.slow
def test_steps_on_a_creature_are_of_second_order():
    body = ElasticBody(gallery.dinosaur(1000).base, gallery.dinosaur_skeleton(), material=SOFT, nodes=700)
    found = errors(body, swaying(body.skeleton, 960), [60, 120, 240], 30, accuracy=1e-4)
    assert found[0] < 0.01
    assert orders(found).min() > 1.8


def swaying(skeleton: Skeleton, fps: int, seconds: float = 0.4) -> Motion:
    """All joints about y, the farther from the root the later, from a stand."""
    t = np.arange(round(seconds * fps) + 1) / fps
    depth = np.zeros(len(skeleton))
    for j, parent in enumerate(skeleton.parents):
        depth[j] = 0 if parent < 0 else depth[parent] + 1
    angles = np.radians(12) * np.sin(2 * np.pi * t[:, None] - 0.3 * depth) * (t[:, None] / seconds) ** 2
    turns = rotations.from_axis_angle(np.broadcast_to([0.0, 1.0, 0.0], (*angles.shape, 3)), angles)
    places = np.repeat(skeleton.offsets[None], len(t), axis=0)
    return Motion(skeleton, rotations.multiply(skeleton.rest_rotations, turns), places, fps)


def test_steps_that_change_keep_the_order(clamped):
    """Each step is half as long, or twice as long, as the one before it."""
    motion, seconds = shaken(clamped, 960), 0.4

    def end(parts: int) -> Floats:
        short = seconds / (3 * parts)
        steppers = [Stepper(clamped, length, accuracy=1e-4, stretch_limit="none") for length in (short, 2 * short)]
        frames = stage_frames(clamped, motion, np.cumsum([0, *[short, 2 * short] * parts]))
        still = clamped.pose(motion[0], accuracy=1e-6)
        state = steppers[0].start(still.nodes, frames)
        for k in range(2 * parts):
            state = steppers[k % 2].step(state, frames, 2 * k + 2)
        return state.nodes

    nodes = [end(parts) for parts in (10, 20, 40)]
    change = [float(np.abs(a - b).max()) for a, b in pairwise(nodes)]
    assert orders(change).min() > 1.8


def stage_frames(body: ElasticBody, motion: Motion, times: Floats):  # type: ignore[no-untyped-def]
    """The bones at the ends of all stages of steps between moments."""
    from pliant.engines.simulate.dynamics import GAMMA
    from pliant.engines.simulate.simulation import _sampled

    middle = times[:-1] + GAMMA * np.diff(times)
    every = np.concatenate([[0.0], np.stack([middle, times[1:]], axis=1).ravel()])
    return body.bones.posed(*_sampled(motion, every * motion.fps))


def test_shorter_steps_are_never_worse(clamped):
    motion = shaken(clamped, 480, 0.25)
    options = {"fps": 20, "stretch_limit": "none"}
    exact = clamped.simulate(motion, dt=1 / 480, accuracy=1e-5, **options).points
    for accuracy in (1e-1, 1e-2):
        found = [
            float(np.abs(clamped.simulate(motion, dt=1 / rate, accuracy=accuracy, **options).points - exact).max())
            for rate in (60, 120, 240)
        ]
        assert (np.diff(found) < 0).all()


def test_a_free_body_keeps_its_momentum():
    """A bar beside a small held one, under a force that pushes and turns it; no bone reaches it."""
    held, free = box(-4.0, -2.0), box(0, LENGTH)
    faces = [*FACES, *(np.array(FACES) + 8).tolist()]
    bone = Skeleton.from_positions([[-3.9, 0.5, 0.5], [-2.1, 0.5, 0.5]], [-1, 0])
    body = ElasticBody(Mesh(np.concatenate([held[0], free[0]]), faces), bone, material=STUFF, nodes=600)
    flying = body.nodes.points[: body.nodes.free, 0] > -1
    assert body.loose[flying].all()
    body.loose = body.loose & ~flying
    body.multigrid = build_multigrid(body.operator, body.nodes, body.mass, body.leash, body.loose)
    push = np.zeros((16, 3))
    push[8 + 7] = 900.0, 0.0, 0.0
    push[8 + 0] = 0.0, 400.0, 0.0
    accuracy = 1e-4
    states = list(body.states(still(body, 0.5, 30), dt=1 / 30, forces=push, accuracy=accuracy, damping=0.0))
    mass = body.mass[: body.nodes.free, None]
    for state in states[1:]:
        momentum = np.sum((mass * state.velocity)[flying], axis=0)
        np.testing.assert_allclose(momentum, state.time * push.sum(axis=0), atol=3 * accuracy * 1300 * state.time)
    assert np.abs(states[-1].strain).max() > 1e-4


# Going on


@pytest.mark.parametrize("contact", [False, True])
def test_going_on_from_a_saved_state_is_the_same_bit_for_bit(clamped, tmp_path: Path, contact: bool):
    motion = shaken(clamped, 50, 0.1)
    options = {"dt": 1 / 100, "gravity": 0.02, "hold": 0.02}
    obstacles = [HalfSpace((0, -0.02, 0), (0, 1, 0))] if contact else []
    whole = clamped.simulate(motion, obstacles=obstacles, friction=0.3 * contact, **options)
    assert (whole.measured("contacts").max() > 0) == contact
    np.savez(tmp_path / "state.npz", **whole.states[3].to_arrays())
    with np.load(tmp_path / "state.npz") as saved:
        loaded = BodyState.from_arrays(saved)
    for frame, state in ((1, pickle.loads(pickle.dumps(whole.states[1]))), (3, loaded)):
        rest = clamped.simulate(motion, obstacles=obstacles, friction=0.3 * contact, resume=state, **options)
        np.testing.assert_array_equal(rest.points, whole.points[frame:])


def test_going_on_with_self_contact_is_the_same_bit_for_bit():
    body, motion = clapping()
    whole = body.simulate(motion, self_contact=True)
    assert whole.states[-2].contacts > 0
    state = BodyState.from_arrays(whole.states[-2].to_arrays())
    rest = body.simulate(motion, self_contact=True, resume=state)
    np.testing.assert_array_equal(rest.points, whole.points[-2:])


def test_only_states_of_frames_are_resumed(clamped):
    motion = shaken(clamped, 50, 0.1)
    state = list(clamped.states(motion, dt=1 / 50))[2]
    with pytest.raises(InputError, match=r"resume is a state after 0\.04 s; expected one of a frame"):
        clamped.simulate(shaken(clamped, 30, 0.1), dt=1 / 30, resume=state)
    with pytest.raises(InputError, match="start and resume are given"):
        clamped.simulate(motion, dt=1 / 50, start=state, resume=state)
    with pytest.raises(InputError, match="resume is 3; expected a frame behind a jump, or a BodyState"):
        clamped.simulate(motion, resume=3)


# Long and large


@pytest.mark.slow
def test_ten_thousand_steps_are_stable(clamped):
    """A bar that is let go of without damping swings on and on, and never higher than it began."""
    start = at_rest(clamped, 1 / 60)
    mass = clamped.mass[: clamped.nodes.free]
    highest = 0.0
    for state in clamped.states(still(clamped, 10_000 / 60, 60), dt=1 / 60, gravity=0.05, damping=0.0, start=start):
        assert state.converged
        height = float(mass @ (state.nodes - clamped.nodes.points)[: clamped.nodes.free, 1])
        total = state.energy + state.kinetic + 0.05 * height
        highest = max(highest, total)
        scale = state.energy
    assert highest < 1e-3 * scale


def test_flesh_that_nothing_is_said_of_moves_alike_in_every_unit():
    """From two units of length on: below, they are taken for metres."""
    mesh, skeleton, walk = gallery.creature(500).base, gallery.creature_skeleton(), gallery.creature_walk(4)
    found = []
    for scale in (40.0, 1000.0):
        bones = Skeleton(skeleton.names, skeleton.parents, scale * skeleton.offsets, skeleton.rest_rotations)
        motion = Motion(bones, walk.rotations, scale * walk.translations, walk.fps)
        clip = ElasticBody(mesh.scaled(scale), bones, nodes=150).simulate(motion)
        assert clip.converged
        found.append(clip.points / (scale * mesh.diagonal))
    assert np.abs(found[0] - found[1]).max() < 1e-6
    assert np.abs(np.diff(found[0], axis=0)).max() > 1e-3


def test_flesh_far_beyond_its_limits_is_said():
    """So soft that it is left behind: what it does depends on the steps, however short they are."""
    mesh, skeleton, walk = gallery.creature(500).base, gallery.creature_skeleton(), gallery.creature_walk(12)
    body = ElasticBody(mesh, skeleton, material=Material(young=1.0), nodes=150)
    with pytest.warns(UserWarning, match="use stiffer flesh"):
        clip = body.simulate(walk)
    assert not clip.converged
    assert any("stretch limits" in state.message for state in clip.states)
    worst = max(clip.states, key=lambda state: state.overstrained)
    sigma = np.linalg.svd(body.operator.gradients(worst.nodes))[1]
    assert sigma[:, 0].max() > 2 or sigma[:, 2].min() < 0.1
    assert worst.overstrained > 0


@pytest.mark.slow
@pytest.mark.parametrize("clip", ["Walk", "Run"])
def test_a_bare_fox_converges_in_its_steps(data: Path, clip: str):
    """155 units long, without its skin, and moving from the first frame on."""
    import pliant

    path = data / "models" / "fox" / "Fox.glb"
    fox, motion = pliant.read_mesh(path), pliant.read_motion(path, clip=clip)
    body = ElasticBody(Mesh(fox.points, fox.triangles), motion.skeleton, nodes=1000)
    clips = [body.simulate(motion, dt=1 / rate, fps=motion.fps) for rate in (60, 120, 240)]
    assert all(found.converged for found in clips)
    off = [np.linalg.norm(one.points - clips[2].points, axis=2).max() / body.diagonal for one in clips[:2]]
    assert off[0] < 5e-3
    assert off[1] < off[0] / 2


@pytest.mark.slow
def test_steps_on_a_real_creature_are_of_second_order(data: Path):
    import pliant
    from pliant.geometry.skeletons.curve_skeleton import extract_skeleton

    mesh = pliant.read_mesh(data / "models" / "dino" / "dino.off")
    body = ElasticBody(mesh, extract_skeleton(mesh), nodes=2000)
    found = errors(body, swaying(body.skeleton, 960), [60, 120, 240], 30, accuracy=1e-4)
    assert found[0] < 0.01
    assert orders(found).min() > 1.8
