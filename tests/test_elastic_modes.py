"""Bodies in a few eigenmodes: what is exact, how near they are to the whole body, and what is refused."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

import pliant
from pliant import ElasticBody, Material, Mesh, Motion, Skeleton, gallery
from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.engines.simulate import ReducedBody, modes
from pliant.engines.simulate.modes import eigenmodes, limited_shapes
from test_elastic_integration import LENGTH, box, still, swaying


@pytest.fixture(scope="module")
def bar() -> ElasticBody:
    """A bar of which a third has a bone."""
    bone = Skeleton.from_positions([[0.1, 0.5, 0.5], [1.9, 0.5, 0.5]], [-1, 0])
    return ElasticBody(Mesh(*box(0, LENGTH)), bone, material=Material(young=2e6, poisson=0.3), nodes=500)


@pytest.fixture(scope="module")
def few(bar: ElasticBody) -> ReducedBody:
    return bar.reduced(24)


def nodding(body: ElasticBody, fps: int, seconds: float, degrees: float) -> Motion:
    """The bone about its head, from a stand."""
    motion = still(body, seconds, fps)
    t = np.arange(len(motion)) / fps
    turn = rotations.from_axis_angle([0.0, 0.0, 1.0], np.radians(degrees) * np.sin(2 * np.pi * t) ** 2)
    turns = motion.rotations.copy()
    turns[:, 0] = rotations.multiply(turns[:, 0], turn)
    return replace(motion, rotations=turns)


def far(one, other) -> float:
    return float(np.linalg.norm(one.points - other.points, axis=2).max()) / one.shape.diagonal


def test_modes_are_those_of_the_assembled_matrices(bar):
    from scipy.sparse import diags
    from scipy.sparse.linalg import eigsh

    omega, shapes = eigenmodes(bar, 8)
    free = bar.nodes.free
    K, mass = bar.operator.rest_stiffness()[: 3 * free, : 3 * free], np.repeat(bar.mass[:free], 3)
    squares = eigsh(K.tocsc(), 8, diags(mass).tocsc(), sigma=0, return_eigenvectors=False)
    np.testing.assert_allclose(omega, np.sqrt(np.sort(squares)), rtol=2e-3)
    flat = shapes.reshape(3 * free, -1)
    np.testing.assert_allclose(flat.T @ (mass[:, None] * flat), np.eye(8), atol=1e-5)


def test_a_rigid_motion_is_exact(few):
    motion = still(few.body, 0.3, 30)
    places = motion.translations.copy()
    places[:, 0] += np.arange(len(motion))[:, None] / 30 * np.array([3.0, -2.0, 1.0])
    clip = few.simulate(replace(motion, translations=places), damping=0.05, drag=2.0)
    np.testing.assert_allclose(clip.points[-1], few.shape.points + 0.3 * np.array([3.0, -2.0, 1.0]), atol=1e-4)
    turn = rotations.from_axis_angle([0.0, 0.0, 1.0], 2.0)
    turned = few.skeleton.pose({few.skeleton.names[0]: turn})
    exact = few.body.pose(turned).points
    np.testing.assert_allclose(few.pose(turned).points, exact, atol=1e-3 * few.diagonal)


@pytest.mark.parametrize("limit", ["none", 0.5])
def test_a_bar_that_nods_moves_as_the_whole_body_does(few, limit):
    """Limits act in it: they change where the tip is by 0.7 % of the diagonal."""
    motion = nodding(few.body, 60, 0.5, 6.0)
    whole, clip = (body.simulate(motion, gravity=0.5, stretch_limit=limit) for body in (few.body, few))
    swing = max(float(np.abs(state.nodes - state.carried).max()) for state in whole.states) / few.diagonal
    assert swing > 0.1
    assert far(clip, whole) < (0.001 if limit == "none" else 0.006)
    assert clip.converged
    np.testing.assert_allclose(clip.measured("volume"), whole.measured("volume"), atol=0.02)


def test_limited_shapes_follow_a_bar_that_limits_stop(bar, monkeypatch):
    """Without them, in as many vibrations, it is nearly twice as far from the whole body."""
    soft = bar.with_material(Material(young=1e6, poisson=0.3))
    motion = nodding(soft, 60, 0.4, 10.0)
    whole, unlimited = (soft.simulate(motion, gravity=0.5, **more) for more in ({}, {"stretch_limit": "none"}))
    assert far(whole, unlimited) > 0.01
    near = far(soft.reduced(24).simulate(motion, gravity=0.5), whole)
    monkeypatch.setattr(modes, "LIMITED_SHARE", 0.0)
    vibrating = far(ReducedBody(soft, 24).simulate(motion, gravity=0.5), whole)
    assert near < 0.7 * vibrating


@pytest.mark.parametrize("softness", [1.0, 50.0])
def test_what_bends_a_small_part_alone_has_a_limited_shape_too(bar, softness):
    """As an antenna does: loads that hardly strain the whole are solved for, too."""
    soft = bar.with_material(Material(young=1e6, poisson=0.3))
    omega, shapes = eigenmodes(soft, 4)
    x = soft.nodes.points[: len(shapes)]
    tip = x[np.argmax(np.linalg.norm(shapes[:, :, 0], axis=1))]
    local = shapes * np.exp(-np.square((x - tip) / (0.1 * LENGTH)).sum(axis=1))[:, None, None]
    limited = limited_shapes(soft, omega / softness, local, 6)
    assert limited.shape[2]
    assert np.isfinite(limited).all()


def test_steps_are_of_second_order(few):
    motion = nodding(few.body, 960, 0.25, 6.0)
    clips = [few.simulate(motion, dt=1 / rate, fps=20, stretch_limit="none") for rate in (60, 120, 240, 480)]
    exact = clips[-1].points + (clips[-1].points - clips[-2].points) / 3
    errors = [float(np.abs(clip.points - exact).max()) for clip in clips[:-1]]
    assert (np.log2(np.array(errors[:-1]) / errors[1:]) > 1.7).all()


@pytest.mark.slow
def test_a_creature_moves_as_the_whole_body_does():
    body = ElasticBody(gallery.dinosaur(1000).base, gallery.dinosaur_skeleton(), nodes=400)
    motion: Motion = swaying(body.skeleton, 30, 0.5)
    assert far(body.reduced(40).simulate(motion), body.simulate(motion)) < 0.01


@pytest.mark.slow
@pytest.mark.data
def test_limited_shapes_follow_flesh_that_limits_stop(data, monkeypatch):
    mesh = pliant.read_mesh(data / "models" / "dino" / "dino.off")
    soft = Material(young=1e5, poisson=0.4)
    body = ElasticBody(mesh, pliant.extract_skeleton(mesh), material=soft, nodes=1500)
    motion: Motion = swaying(body.skeleton, 30, 0.5)
    whole = body.simulate(motion)
    assert far(whole, body.simulate(motion, stretch_limit="none")) > 0.02
    near = far(body.reduced(60).simulate(motion), whole)
    monkeypatch.setattr(modes, "LIMITED_SHARE", 0.0)
    assert near < 0.03
    assert near < 0.6 * far(ReducedBody(body, 60).simulate(motion), whole)


def test_points_that_stand_for_others_have_positive_weights(few):
    for weights, whole in ((few.mass.weights, few.body.mass.sum()), (few.strains.weights, few.body.volume)):
        assert (weights >= 0).all()
        assert weights.sum() == pytest.approx(whole, rel=0.1)


def test_modes_are_built_once_for_a_body(few, monkeypatch):
    def built(*arguments):
        raise AssertionError

    monkeypatch.setattr(ReducedBody, "__init__", built)
    for body in (few.body, pickle.loads(pickle.dumps(few.body))):
        np.testing.assert_array_equal(body.reduced(24).frequencies, few.frequencies)
    with pytest.raises(AssertionError):
        few.body.with_material(Material(young=4e6, poisson=0.3)).reduced(24)


def test_there_are_as_many_modes_as_asked_for(few):
    assert len(few.body.reduced(30).frequencies) == 30


@pytest.mark.slow
@pytest.mark.data
def test_nodes_without_mass_are_taken(data):
    """Of 800 nodes of this animal one has no share of the volume."""
    path = data / "models" / "dino" / "Trex.glb"
    body = ElasticBody(pliant.read_mesh(path), pliant.read_skeleton(path), nodes=800)
    assert np.isfinite(body.reduced(60).frequencies).all()


def test_what_is_wrong_is_refused(few):
    with pytest.raises(InputError, match="modes is 2; expected a whole number"):
        few.body.reduced(2)
    with pytest.raises(InputError, match="modes is 400, of a body of 500 nodes; expected at most 300"):
        few.body.reduced(400)
    with pytest.raises(InputError, match="expected a Motion"):
        few.simulate(3)


@pytest.mark.parametrize("options", [{"pre_roll": -1}, {"pre_roll": np.nan}, {"pre_roll": "abc"}, {"pre_roll": None}])
def test_options_of_reduced_bodies_are_checked(bar, few, options):
    with pytest.raises(InputError, match="pre_roll"):
        few.simulate(still(bar, 0.1, 30), **options)


@pytest.mark.parametrize("modes", [-3, 0, 2.5, "a"])
def test_numbers_of_modes_are_checked(bar, modes):
    for make in (bar.reduced, lambda modes: ReducedBody(bar, modes)):
        with pytest.raises(InputError, match="modes"):
            make(modes)
