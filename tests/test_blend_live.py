"""Shapes while somebody drags: near those that are solved for, in contact, and never inside what pushes them."""

import numpy as np
import pytest

from pliant import InputError, gallery
from pliant.contact import Box, Sphere
from pliant.engines.blend import Blendshapes, LiveBlend, Pull

LONG = 60.0
"""Seconds that no shape here takes, so that time does not decide what comes out."""


@pytest.fixture(scope="module")
def rig():
    return Blendshapes(gallery.hand(1000))


@pytest.fixture(scope="module")
def tip(rig):
    return int(np.argmax(rig.shapes.base.points[:, 1]))


def off(rig, points, pose):
    return np.abs(points - pose.points).max() / rig.body.diagonal


def test_sliders_give_what_is_solved_for(rig):
    live = LiveBlend(rig, seconds=LONG)
    for weights in ({"fist": 0.3}, {"fist": 0.6}, {"fist": 0.6, "spread": 0.4}):
        assert off(rig, live.shape(weights), rig.solve(weights)) < 2e-3


def test_what_is_found_in_a_hurry_is_a_shape_too(rig):
    live = LiveBlend(rig, seconds=1e-9)
    weights = {"fist": 0.5, "spread": 0.3}
    linear = rig.shapes.mixed(rig.weights(weights)[None]).points[0]
    solved = rig.solve(weights)
    assert off(rig, live.shape(weights), solved) < 0.2 * off(rig, linear, solved)


def test_a_pulled_vertex_is_where_it_is_dragged_and_the_rest_comes_to_rest(rig, tip):
    live = LiveBlend(rig, seconds=LONG)
    start = rig.shapes.base.points[tip]
    for share in np.linspace(0, 1, 12):
        to = start + share * np.array([0.0, 0.02, 0.05])
        points = live.shape({}, pulls=[Pull(tip, to=to)])
        np.testing.assert_allclose(points[tip], to, atol=1e-12)
    solved = rig.solve({}, pulls=[Pull(tip, to=to)])
    for _ in range(6):
        points = live.shape({}, pulls=[Pull(tip, to=to)])
    assert off(rig, points, solved) < 1e-2
    assert off(rig, live.shape({}), rig.solve({})) < 1e-6  # let go


def test_a_ball_that_is_dragged_pushes_the_shape_before_it(rig, tip):
    size, at = rig.body.diagonal, rig.shapes.base.points[tip] - [0.0, 0.06 * rig.body.diagonal, 0.0]
    live = LiveBlend(rig, seconds=LONG)
    for away in np.linspace(0.2, -0.08, 24):
        ball = Sphere(at + np.array([0.0, 0.0, away * size]), 0.08 * size)
        points = live.shape({}, obstacles=[ball])
        assert ball.signed(points)[0].min() > -1e-3 * size
    assert points[tip, 2] < ball.centre[2]  # pushed along
    assert rig.solve({}, obstacles=[ball]).points[tip, 2] > ball.centre[2]  # where by itself it would be behind it
    far = Sphere(at + np.array([0.0, size, 0.0]), 0.08 * size)
    for _ in range(3):
        points = live.shape({}, obstacles=[far])
    assert off(rig, points, rig.solve({})) < 1e-3


def test_obstacles_may_come_go_and_grow(rig, tip):
    size, at = rig.body.diagonal, rig.shapes.base.points[tip]
    live = LiveBlend(rig, friction=0.3, seconds=LONG)
    ball = Sphere(at + np.array([0.0, 0.0, 0.1 * size]), 0.05 * size)
    box = Box(at - np.array([0.1 * size, 0.0, 0.0]), np.full(3, 0.1 * size))
    for obstacles in ([ball], [Sphere(ball.centre, 0.09 * size)], [Sphere(ball.centre, 0.09 * size), box], [box], []):
        for _ in range(3):
            points = live.shape({"spread": 0.5}, obstacles=obstacles)
        for obstacle in obstacles:
            assert obstacle.signed(points)[0].min() > -2e-3 * size
    assert off(rig, points, rig.solve({"spread": 0.5})) < 2e-3


def test_what_is_wrong_is_said(rig):
    with pytest.raises(InputError, match="expected Blendshapes"):
        LiveBlend(gallery.hand(1000))
    with pytest.raises(InputError, match="friction is -1"):
        LiveBlend(rig, friction=-1)
    with pytest.raises(InputError, match="seconds is 0"):
        LiveBlend(rig, seconds=0)
    with pytest.raises(InputError, match="an obstacle is a str"):
        LiveBlend(rig).shape({}, obstacles=["sphere:0,0,0,1"])
    with pytest.raises(InputError, match='no shape is called "fists"'):
        LiveBlend(rig).shape({"fists": 1.0})


def test_whoever_watches_frames_can_stop_them(rig):
    class EnoughError(Exception):
        pass

    def watch(x, energy):
        raise EnoughError

    size, middle = rig.body.diagonal, rig.shapes.base.points.mean(axis=0)
    ball = Sphere(middle + np.array([0.0, 0.0, 0.1 * size]), 0.1 * size)
    for options in ({}, {"obstacles": [ball]}):
        with pytest.raises(EnoughError):
            next(rig.poses([rig.weights({"fist": 0.31, "spread": 0.2})], watch=watch, **options))
