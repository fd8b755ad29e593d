"""Strain limits: flesh that is shaken violently is neither inverted nor stretched far, and calm flesh is left alone."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest

from pliant import ElasticBody, Material, Motion, Skeleton, gallery
from pliant.contact import Sphere
from pliant.core import rotations
from pliant.core.errors import PliantWarning
from pliant.core.topology import Floats
from pliant.engines.simulate import dynamics, newton
from pliant.engines.simulate.simulation import Simulation
from pliant.engines.simulate.strain_limits import StrainLimits

BONE = Skeleton.from_positions([[-0.45, 0, 0], [0.0, 0, 0]], [-1, 0])


def bar(young: float, nodes: int = 300) -> ElasticBody:
    """A metre of flesh, half of it on a bone."""
    return ElasticBody(gallery.box(500, (1, 0.25, 0.25)), BONE, material=Material(young=young), nodes=nodes)


def shaken(skeleton: Skeleton, size: float, seconds: float, share: float = 0.5, fps: int = 60) -> Motion:
    """The root up and down by a share of a length at 3 Hz: half a metre of a metre is violent."""
    count = round(seconds * fps) + 1
    turns, places = (np.repeat(values[None], count, axis=0) for values in (skeleton.rest_rotations, skeleton.offsets))
    places[:, 0, 1] += share * size * np.sin(6 * np.pi * np.arange(count) / fps)
    return Motion(skeleton, turns, places, fps)


def determinants(body: ElasticBody, clip: Simulation) -> Floats:
    """(frames, q) J."""
    return np.linalg.det(np.stack([body.operator.gradients(state.nodes) for state in clip.states]))


def stretches(body: ElasticBody, clip: Simulation) -> Floats:
    """(frames, q) the largest stretch of each point."""
    F = np.stack([body.operator.gradients(state.nodes) for state in clip.states])
    return np.linalg.svd(F, compute_uv=False)[..., 0]


@pytest.mark.parametrize(
    ("young", "limit"),
    [(1e5, 0.5), *(pytest.param(young, 0.1, marks=pytest.mark.slow) for young in (1e4, 1e5, 1e6))],
)
def test_a_violent_shake_inverts_nothing(young, limit):
    """Half a metre at 3 Hz, on a metre of flesh."""
    body = bar(young)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PliantWarning)
        clip = body.simulate(shaken(BONE, 1.0, 0.7), stretch_limit=limit)
    assert clip.converged
    assert determinants(body, clip).min() > 0.1
    assert np.abs(clip.measured("volume") - 1).max() < 0.3
    assert stretches(body, clip).max() < 1 + 2 * limit


def test_without_limits_a_violent_shake_is_said():
    body = bar(2e3)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", PliantWarning)
        clip = body.simulate(shaken(BONE, 1.0, 0.7), stretch_limit="none")
    assert not clip.converged
    assert any(re.search(r"% of that at rest|turned inside out|stopped at step", str(w.message)) for w in said)
    assert any("use stiffer flesh" in state.message for state in clip.states)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["creature", "dinosaur"])
def test_creatures_that_are_shaken_violently_keep_their_shape(name):
    mesh, skeleton = getattr(gallery, name)(1000).base, getattr(gallery, f"{name}_skeleton")()
    size = float(np.ptp(mesh.points, axis=0).max())  # is a metre long
    body = ElasticBody(mesh, skeleton, material=Material(young=3e4 / size, density=1000 / size**3), nodes=300)
    clip = body.simulate(shaken(skeleton, size, 0.5), stretch_limit=0.1)
    assert clip.converged
    assert determinants(body, clip).min() > 0.3
    assert np.abs(clip.measured("volume") - 1).max() < 0.1
    assert stretches(body, clip).max() < 1.15
    free = body.simulate(shaken(skeleton, size, 0.5), stretch_limit="none")
    assert stretches(body, free).max() > 1.5


def test_the_limit_is_an_option():
    body = bar(1e5, 200)
    found = [
        stretches(body, body.simulate(shaken(BONE, 1.0, 0.4), stretch_limit=limit)).max() for limit in (0.05, 0.1, 0.3)
    ]
    assert found[0] < 1.07 < 1.1 > found[1] > found[0]
    assert found[1] < found[2] < 1.3


def test_calm_flesh_is_left_alone():
    """The term is zero there: the same points bit for bit, and Newton's method is not entered."""
    body = bar(1e5)
    motion = shaken(BONE, 1.0, 0.4, share=0.005)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dynamics, "limited", None)
        limited = body.simulate(motion)
    np.testing.assert_array_equal(limited.points, body.simulate(motion, stretch_limit="none").points)


def test_a_walk_is_left_alone_but_where_it_folds():
    """Joints deform flesh by what bones impose, which limits do not count."""
    mesh, skeleton, walk = gallery.creature(900).base, gallery.creature_skeleton(), gallery.creature_walk(6)
    body = ElasticBody(mesh, skeleton, nodes=400)
    free, within = (body.simulate(walk, stretch_limit=limit) for limit in ("none", 0.1))
    assert stretches(body, free).max() > 1.3
    assert np.abs(free.points - within.points).max() < 0.01 * body.diagonal


@pytest.mark.parametrize("degrees", [120, 150])
def test_an_elbow_that_is_bent_far_inverts_nothing(degrees):
    places = [[-1.9, 0, 0], [0, 0, 0], [1.9, 0, 0]]
    skeleton = Skeleton.from_positions(places, [-1, 0, 1], ["shoulder", "elbow", "wrist"])
    body = ElasticBody(gallery.bar(600)[0], skeleton, nodes=400)
    pose = skeleton.pose({"elbow": rotations.from_axis_angle([0, 0, 1], np.radians(degrees))})
    linear, found = (body.pose(pose, stretch_limit=limit) for limit in ("none", 0.1))
    assert found.converged
    assert found.inverted == 0
    assert np.linalg.det(body.operator.gradients(found.nodes)).min() > 0
    assert found.inverted < linear.inverted or degrees < 150


def test_soft_flesh_that_hangs_is_not_stretched_far():
    bone = Skeleton.from_positions([[-0.45, 0, 0], [-0.1, 0, 0]], [-1, 0])
    body = ElasticBody(gallery.box(500, (1, 0.25, 0.25)), bone, material=Material(young=300.0), nodes=300)
    failed, found = (body.pose(bone.rest_pose(), gravity=9.81, stretch_limit=limit) for limit in ("none", 0.1))
    assert failed.volume > 1.3
    assert not failed.converged
    assert "the volume is" in failed.message
    assert found.converged
    assert found.inverted == 0
    assert 0.7 < found.volume < 1.3


def test_newtons_method_that_stops_short_is_not_called_converged(monkeypatch):
    monkeypatch.setattr(newton, "NEWTON_STEPS", 1)
    with pytest.warns(PliantWarning, match="not solved to its accuracy"):
        assert not bar(1e5).simulate(shaken(BONE, 1.0, 0.2)).converged


def test_flesh_that_is_pressed_against_its_bone_is_not_inverted():
    bones = Skeleton.from_positions([[-1.8, 0, 0], [0, 0, 0], [1.8, 0, 0]], [-1, 0, 1])
    turns = np.repeat(bones.rest_rotations[None], 8, axis=0)
    turns[:, 1] = rotations.from_axis_angle([0, 0, 1], np.radians(np.linspace(0, 60, 8)))
    motion = Motion(bones, turns, np.repeat(bones.offsets[None], 8, axis=0), fps=30.0)
    body = ElasticBody(gallery.bar(500)[0], bones, material=Material(5e4, 0.4, 125.0), nodes=200)
    ball = Sphere((1.6, 1.7, 0), 0.5)
    clip = body.simulate(motion, obstacles=[ball])
    assert clip.measured("inverted").max() == 0
    assert clip.measured("penetration").max() <= 1e-4
    assert clip.converged


# The energy


@pytest.fixture(scope="module")
def limits() -> StrainLimits:
    return StrainLimits.of(bar(1e5, 100).operator, 0.1)


def gradients(limits: StrainLimits, spread: float) -> Floats:
    """(q, 9) all kinds of deformation gradients, inverted ones among them."""
    random = np.random.default_rng(0)
    F = np.eye(3) + spread * random.standard_normal((len(limits.bones), 3, 3))
    turned = rotations.matrix(rotations.normalize(random.standard_normal((len(F), 4)))) @ F
    return turned.reshape(-1, 9)


@pytest.mark.parametrize("spread", [0.02, 0.1, 0.6])
def test_stresses_are_the_energys_slope(limits, spread):
    F = gradients(limits, spread)
    d = np.random.default_rng(1).standard_normal(F.shape)
    h = 1e-6
    ahead, behind = (limits.stressed(F + sign * h * d).energies for sign in (1, -1))
    slope = np.einsum("qi,qi->q", limits.stressed(F).P, d)
    np.testing.assert_allclose((ahead - behind) / (2 * h), slope, rtol=2e-4, atol=1e-5 * np.abs(slope).max())


@pytest.mark.parametrize("spread", [0.1, 0.6])
def test_the_curvature_is_the_stress_slope_without_what_is_negative(limits, spread):
    F = gradients(limits, spread)
    active, frames = limits.curvature(limits.stressed(F))
    U, V, values = frames[:, :9].reshape(-1, 3, 3), frames[:, 9:18].reshape(-1, 3, 3), frames[:, 18:].astype(float)
    h, made, exact = 1e-6, np.zeros((len(active), 9, 9)), np.zeros((len(active), 9, 9))
    pairs = [(1, 2), (0, 2), (0, 1)]
    for k, (i, j) in enumerate(pairs):
        for value, sign in ((values[:, 6 + k], 1), (values[:, 3 + k], -1)):
            mode = np.einsum("ai,aj->aij", U[:, :, i], V[:, :, j]) + sign * np.einsum(
                "ai,aj->aij", U[:, :, j], V[:, :, i]
            )
            flat = mode.reshape(-1, 9) / np.sqrt(2)
            made += value[:, None, None] * np.einsum("ai,aj->aij", flat, flat)
        flat = np.einsum("ai,aj->aij", U[:, :, k], V[:, :, k]).reshape(-1, 9)
        made += values[:, k, None, None] * np.einsum("ai,aj->aij", flat, flat)
    for k in range(9):
        step = h * np.eye(9)[k]
        exact[:, :, k] = (limits.stressed(F + step).P - limits.stressed(F - step).P)[active] / (2 * h)
    w, vectors = np.linalg.eigh(0.5 * (exact + exact.transpose(0, 2, 1)))
    projected = np.einsum("aik,ak,ajk->aij", vectors, np.maximum(w, 0), vectors)
    error = np.abs(projected - made).max(axis=(1, 2)) / np.abs(made).max(axis=(1, 2))
    assert np.median(error) < 1e-3
    assert np.mean(error < 0.02) > 0.95  # not at the ends of the ranges, where it has a kink


def test_the_energy_is_zero_within_its_range_and_does_not_see_rotations(limits):
    turned = gradients(limits, 0.0)
    assert limits.stressed(turned).energy == 0
    assert limits.outside(turned) == 0
    stretched = (turned.reshape(-1, 3, 3) * [1.2, 1.0, 0.5]).reshape(-1, 9)
    each = limits.stressed(stretched).energies / limits.operator.mu
    np.testing.assert_allclose(each, each[0], rtol=1e-9)
    assert each[0] > 0
    assert limits.outside(stretched) == len(stretched)


def test_going_on_from_a_saved_state_within_a_violent_shake_is_the_same_bit_for_bit():
    body = bar(1e5)
    motion = shaken(BONE, 1.0, 0.25)
    whole = body.simulate(motion)
    rest = body.simulate(motion, resume=replace(whole.states[7]))
    np.testing.assert_array_equal(rest.points, whole.points[7:])
