"""Stiffness learned from true in-between frames."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import gallery
from pliant.engines.blend.learning import Learning

AT = np.array([0.2, 0.35, 0.5, 0.65, 0.8])


@pytest.fixture(scope="module")
def shapes():
    bar = gallery.bar(500)
    return pliant.Shapes(bar.base, bar.points[[0, 2]], (bar.names[0], bar.names[2]))


@pytest.fixture(scope="module")
def rig(shapes):
    """A hollow bar: of a filled one that bends, springs at rest fit together, whatever their stiffness."""
    return pliant.Blendshapes(shapes, interior="none")


@pytest.fixture(scope="module")
def true(shapes):
    """Frames of a bar that is stiff on one half."""
    along = shapes.base.points[:, int(np.argmax(np.ptp(shapes.base.points, axis=0)))]
    factors = np.where(along > np.median(along), 8.0, 0.5)
    stiff = pliant.Blendshapes(shapes, interior="none", stiffness=factors)
    return factors, np.stack([stiff.solve([t], accuracy=1e-8).points for t in AT])


def test_the_gradient_is_what_differences_say(rig, true, monkeypatch):
    monkeypatch.setattr("pliant.engines.blend.learning.LEARNING_ACCURACY", 1e-13)
    learning = Learning(rig, rig.weight_table(AT[:2, None]), true[1][:2, rig._weld.kept], 0.05)
    rng = np.random.default_rng(0)
    theta, step = 0.3 * rng.normal(size=(2, learning.spread.shape[1]))
    ends = [learning.loss(theta + sign * 1e-3 * step)[0] for sign in (1, -1)]
    assert learning.loss(theta)[1] @ step == pytest.approx((ends[0] - ends[1]) / 2e-3, rel=1e-4)


def test_frames_that_were_not_shown_are_nearer(rig, shapes, true):
    factors, frames = true
    shown, hidden = [0, 2, 4], [1, 3]
    found = rig.learn_stiffness(frames[shown], AT[shown, None], iterations=12)
    assert (found.errors < 0.5 * found.errors_before).all()
    made = pliant.Blendshapes(shapes, interior="none", stiffness=found.factors)
    for k in hidden:
        before, after = (np.abs(each.solve([AT[k]]).points - frames[k]).max() for each in (rig, made))
        assert after < 0.6 * before
    stiff, soft = (np.median(found.factors[half]) for half in (factors > 1, factors < 1))
    assert stiff > 1.5 * soft  # in the middle: frames say little of the ends


def test_wrong_frames(rig, true):
    with pytest.raises(pliant.InputError, match="a frame for each row"):
        rig.learn_stiffness(true[1], AT[:2, None])
