"""Jumps of motions, and what comes before their first frames."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pliant import ElasticBody, Material, Motion, Skeleton, gallery
from pliant.core import rotations
from pliant.core.errors import InputError, PliantWarning
from pliant.engines.simulate import BodyState, jumps, simulation
from pliant.engines.simulate.dynamics import Stepper
from pliant.engines.simulate.simulation import Pace, jumps_of, mended, player_of, shots_of

POST = Skeleton.from_positions([[0, -2.3, 0], [0, 0, 0], [0, 2.3, 0]], [-1, 0, 1])


@pytest.fixture(scope="module")
def post() -> ElasticBody:
    shape = gallery.cylinder(800, radius=0.5, height=5, rounding=0.3)
    return ElasticBody(shape, POST, material=Material(young=2e5), nodes=500)


def swing(degrees: float, frames: int = 12, fps: float = 30.0) -> Motion:
    """The upper half bends by an angle, evenly."""
    turns = np.repeat(POST.rest_rotations[None], frames, axis=0)
    turns[:, 1] = rotations.from_axis_angle([1, 0, 0], np.radians(np.linspace(0, degrees, frames)))
    return Motion(POST, turns, np.repeat(POST.offsets[None], frames, axis=0), fps=fps)


def jumping(frame: int, shift: float = 0.0, degrees: float = 0.0, frames: int = 24) -> Motion:
    """A gentle swing, before whose `frame` the skeleton moves by a shift or bends by an angle, all at once."""
    motion = swing(10, frames=frames)
    after, places = np.arange(frames) >= frame, motion.translations.copy()
    places[:, 0, 0] += shift * after
    turn = rotations.from_axis_angle([1, 0, 0], np.radians(degrees) * after)
    turns = motion.rotations.copy()
    turns[:, 1] = rotations.multiply(turns[:, 1], turn)
    return replace(motion, rotations=turns, translations=places)


def test_flesh_goes_along_with_a_teleport_and_keeps_its_swing(post):
    there = post.simulate(jumping(12))
    with pytest.warns(PliantWarning, match="jump: at frame 12 the whole skeleton moves by 5.8 diagonals at once"):
        clip = post.simulate(jumping(12, shift=30.0))
    assert clip.converged
    assert np.abs(clip.points[:12] - there.points[:12]).max() < 1e-4 * post.diagonal
    away = clip.points[12:] - there.points[12:] - [30.0, 0, 0]  # a step later in its swing
    assert np.abs(away).max() < 5e-3 * post.diagonal
    assert np.abs(clip.measured("volume") - 1).max() < 0.02


@pytest.mark.parametrize("frame", [1, 12])
def test_flesh_starts_anew_in_a_pose_that_bones_jump_to(post, frame):
    """Such as from the T-pose that motion capture begins with."""
    motion = jumping(frame, degrees=80.0)
    with pytest.warns(PliantWarning, match=f"jump: at frame {frame} the bone joint2 to its end moves"):
        clip = post.simulate(motion)
    assert clip.notes[0].startswith("jump: ")
    assert clip.converged
    assert clip.measured("inverted").max() == 0
    for k in (frame - 1, frame):
        assert np.abs(clip.points[k] - post.pose(motion[k]).points).max() < 2e-2 * post.diagonal
    edges = post.shape.triangles[:, :2]
    length = [np.linalg.norm(np.diff(points[edges], axis=1), axis=2) for points in clip.points]
    assert np.abs(np.array(length) / length[0] - 1).max() < 1.0


@pytest.mark.parametrize("fps", [None, 20.0])
def test_what_is_behind_a_cut_needs_nothing_before_it(post, fps):
    """Bit for bit, also where the cut is between two frames of the clip."""
    motion, pace = jumping(12, degrees=80.0), Pace.of(swing(10), 1 / 60, fps, 0.0)
    shots = shots_of(post, motion, pace)
    assert shots == [0, 12 if fps is None else 8]
    with pytest.warns(PliantWarning, match="jump"):
        whole = post.simulate(motion, dt=1 / 60, fps=fps)
    behind = list(post.states(motion, dt=1 / 60, fps=fps, resume=shots[1]))
    assert len(behind) == len(whole) - shots[1]
    for one, other in zip(behind, whole.states[shots[1] :], strict=True):
        np.testing.assert_array_equal(one.nodes, other.nodes)
        assert (one.time, one.iterations, one.volume) == (other.time, other.iterations, other.volume)
    assert shots_of(post, jumping(12, shift=30.0), pace) == [0]  # it keeps its swing
    with pytest.raises(InputError, match="resume is 5; expected a frame behind a jump"):
        post.states(motion, resume=5)


@pytest.mark.parametrize(("shift", "degrees"), [(4.0, 0.0), (0.0, 80.0)])
@pytest.mark.parametrize("count", [1, 3])
def test_joints_are_eased_over_frames_that_are_errors(post, shift, degrees, count):
    """They jump there and back; what comes of it is as good as without."""
    calm, there = jumping(12), jumping(12, shift=shift, degrees=degrees)
    turns, places = calm.rotations.copy(), calm.translations.copy()
    turns[12 : 12 + count], places[12 : 12 + count] = (
        values[12 : 12 + count] for values in (there.rotations, there.translations)
    )
    with pytest.warns(PliantWarning, match=r"glitch: at frame 12 the bone .* diagonals and back; joints are eased"):
        clip = post.simulate(replace(calm, rotations=turns, translations=places))
    assert clip.converged
    assert clip.notes[0].startswith("glitch: ")
    assert np.abs(clip.points - post.simulate(calm).points).max() < 1e-3 * post.diagonal


def test_what_swings_back_is_no_error(post):
    """Punches and shakes are quick, too, but not from one frame to the next only."""
    turns = np.repeat(POST.rest_rotations[None], 24, axis=0)
    turns[:, 1] = rotations.from_axis_angle([1, 0, 0], np.radians(60 * np.exp(-(((np.arange(24) - 12) / 2.0) ** 2))))
    motion = Motion(POST, turns, np.repeat(POST.offsets[None], 24, axis=0), fps=30)
    assert mended(post, motion) == (motion, ())


def test_what_moves_quickly_does_not_jump(post):
    slid = swing(0)
    places = slid.translations.copy()
    places[:, 0, 0] += 0.3 * np.arange(len(slid))
    slid = replace(slid, translations=places)
    motions = [swing(60, frames=7, fps=15), swing(90, frames=4, fps=30), slid]
    assert not any(post.simulate(motion, dt=1 / 30).notes for motion in motions)
    creature = ElasticBody(gallery.creature(500).base, gallery.creature_skeleton(), nodes=300)
    assert not jumps_of(creature, gallery.creature_walk(8))


def shaken(cycles: float, fps: float = 30.0, frames: int = 11) -> Motion:
    """The lower end goes to and fro by a fifth of the diagonal, so many times a second, and begins smoothly."""
    motion = swing(0, frames, fps)
    t = np.arange(frames) / fps
    places = motion.translations.copy()
    places[:, 0, 0] += 1.0 * np.sin(2 * np.pi * cycles * t) * np.minimum(1, t / 0.3) ** 2
    return replace(motion, translations=places)


@pytest.fixture(scope="module")
def small() -> ElasticBody:
    shape = gallery.cylinder(800, radius=0.5, height=5, rounding=0.3)
    return ElasticBody(shape, POST, material=Material(young=2e5), nodes=200)


def test_steps_are_divided_where_flesh_cannot_follow_the_bones(small, monkeypatch):
    gentle, violent = (
        player_of(Stepper(small, 1 / 30), motion, Pace.of(motion, 1 / 30, None, 0.0)).substeps
        for motion in (swing(10), shaken(4))
    )
    assert gentle.max() == 1
    assert violent.max() >= 4
    divided = small.simulate(shaken(4), dt=1 / 30)
    assert divided.converged
    monkeypatch.setattr(jumps, "LARGEST_UNEVENNESS", np.inf)
    exact, whole = (small.simulate(shaken(4), dt=dt) for dt in (1 / 240, 1 / 30))
    errors = [np.abs(clip.points - exact.points).max() for clip in (divided, whole)]
    assert errors[0] < 0.6 * errors[1]


def test_divided_steps_are_of_second_order(small):
    """Halving dt halves what steps are divided into, too; of flesh without limits, as other orders are measured."""
    motion, rates = shaken(4, fps=960, frames=321), [60, 120, 240, 480]
    stiff = small.with_material(Material(young=3e6))
    options = {"fps": 15, "stretch_limit": "none", "accuracy": 1e-3}
    for rate in rates:
        assert player_of(Stepper(stiff, 1 / rate), motion, Pace.of(motion, 1 / rate, 15, 0.0)).substeps.max() > 1
    clips = [stiff.simulate(motion, dt=1 / rate, **options).points for rate in rates]
    exact = clips[-1] + (clips[-1] - clips[-2]) / 3
    errors = np.array([np.linalg.norm(clip - exact, axis=2).max() for clip in clips[:-1]])
    assert np.log2(errors[:-1] / errors[1:]).min() > 1.8


def test_divided_steps_resume_exactly(small):
    states = list(small.states(shaken(4), dt=1 / 30))
    again = list(small.states(shaken(4), dt=1 / 30, resume=states[7]))
    np.testing.assert_array_equal(again[-1].nodes, states[-1].nodes)
    assert again[-1].time == states[-1].time


def test_bones_that_flesh_cannot_follow_are_said(small, monkeypatch):
    monkeypatch.setattr(simulation, "MOST_SUBSTEPS", 2)
    with pytest.warns(PliantWarning, match="bones move farther in a step than flesh can follow; use shorter steps"):
        clip = small.simulate(shaken(4), dt=1 / 30)
    assert not clip.converged


def test_bones_roll_in_from_rest(post):
    """The clip is as long as without; where bones stand still, flesh comes to rest in their first pose."""
    motion = swing(60)
    bent = Motion(POST, np.repeat(motion.rotations[-1:], 5, axis=0), motion.translations[:5], fps=30.0)
    clip = post.simulate(bent, pre_roll=2.0, damping=0.02, gravity=1.0)
    assert len(clip) == 5
    assert clip.states[0].time == 0
    still = post.pose(bent[0], gravity=1.0).points
    assert np.abs(clip.points - still).max() < 5e-3 * post.diagonal
    moving = post.simulate(motion, pre_roll=0.5, damping=0.02)
    assert moving.converged
    assert np.abs(moving.states[0].velocity).max() > 0.5
    assert np.abs(moving.points[-1] - post.simulate(motion, damping=0.02).points[-1]).max() < 0.02 * post.diagonal


@pytest.mark.filterwarnings("ignore::pliant.core.errors.PliantWarning")  # the jump
def test_going_on_after_a_pre_roll_and_jumps_is_the_same_bit_for_bit(post):
    motion = jumping(6, degrees=80.0, frames=12)
    whole = post.simulate(motion, pre_roll=0.2)
    for frame in (0, 5, 6):
        state = BodyState.from_arrays(whole.states[frame].to_arrays())
        rest = post.simulate(motion, pre_roll=0.2, resume=state)
        np.testing.assert_array_equal(rest.points, whole.points[frame:])
