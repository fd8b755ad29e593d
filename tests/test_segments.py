"""Which of a skeleton's bones is nearest."""

from __future__ import annotations

import numpy as np
import pytest

from pliant.core import rotations
from pliant.geometry.segments import nearest_segment

RNG = np.random.default_rng(5)


@pytest.fixture
def star():
    """Bones from one joint, as at the hips, and points around it: many are nearest to the joint itself."""
    ends = RNG.normal([2, 0, 0], 1, size=(5, 3))
    return np.zeros((5, 3)), ends / np.linalg.norm(ends, axis=1)[:, None], 0.5 * RNG.normal(size=(400, 3))


def test_it_is_the_nearest(star):
    a, b, points = star
    label, away = nearest_segment(points, a, b)
    along = np.linspace(0, 1, 2001)[:, None, None]
    sampled = np.linalg.norm(points[:, None] - (a + along * (b - a))[:, None], axis=3).min(axis=0)
    np.testing.assert_allclose(away, sampled.min(axis=1), atol=3e-4)
    np.testing.assert_allclose(sampled[np.arange(len(points)), label], away, atol=3e-4)


def test_what_is_nearest_to_a_joint_belongs_to_the_same_bone_turned_mirrored_or_reordered(star):
    a, b, points = star
    label, away = nearest_segment(points, a, b)
    tied = np.isclose(away, np.linalg.norm(points, axis=1), rtol=1e-12)
    assert 20 < tied.sum() < len(points)
    for turn in range(8):
        R = rotations.matrix(rotations.normalize(RNG.normal(size=4))) * (-1 if turn % 2 else 1)
        order = RNG.permutation(len(a))
        found, _ = nearest_segment(points @ R.T, (a @ R.T)[order], (b @ R.T)[order])
        np.testing.assert_array_equal(order[found], label)


def test_the_joint_at_a_tip_has_what_is_beyond_it():
    a, b = np.array([[0.0, 0, 0], [1, 0, 0]]), np.array([[1.0, 0, 0], [1, 0, 0]])
    points = np.array([[-0.5, 0.1, 0], [1.3, 0.1, 0], [0.5, 0, 0]])
    for order in ([0, 1], [1, 0]):
        label, away = nearest_segment(points, a[order], b[order])
        assert np.array(order)[label].tolist() == [0, 1, 0]
        np.testing.assert_allclose(away, [np.hypot(0.5, 0.1), np.hypot(0.3, 0.1), 0], atol=1e-15)


def test_without_bones_it_is_infinitely_far():
    assert np.isinf(nearest_segment(np.zeros((2, 3)), np.zeros((0, 3)), np.zeros((0, 3)))[1]).all()


def test_so_does_what_is_at_and_near_the_joints_of_a_chain():
    joints = 2 + np.cumsum(RNG.normal(size=(6, 3)), axis=0)
    at = joints[RNG.integers(1, 5, 300)]
    points = at + RNG.normal(size=(300, 3)) * 10.0 ** RNG.uniform(-12, -2, (300, 1))
    label, _ = nearest_segment(points, joints[:-1], joints[1:])
    near = np.linalg.norm(points - at, axis=1) < 1e-9
    for _ in range(8):
        R = rotations.matrix(rotations.normalize(RNG.normal(size=4)))
        found, _ = nearest_segment(points @ R.T, joints[:-1] @ R.T, joints[1:] @ R.T)
        assert (found != label)[near].mean() == 0
        assert (found != label).mean() < 0.02  # few are as near to both as rounding
