"""Rotations: quaternions, matrices, Euler angles, and the rotation nearest to a matrix or between point sets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from pliant.core import rotations
from pliant.core.errors import InputError

ORDERS = ["".join(order) for order in itertools.permutations("XYZ")]
AXES = np.concatenate([np.eye(3), -np.eye(3), [[1, 1, 0], [0, -1, 1], [1, 2, -3], [-0.2, 0.1, 5]]])
UNIT_AXES = AXES / np.linalg.norm(AXES, axis=1, keepdims=True)


def random_quaternions(*shape: int, seed: int = 0) -> np.ndarray:
    q = np.random.default_rng(seed).normal(size=(*shape, 4))
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def axis_matrix(name: str, angle: float) -> np.ndarray:
    """The textbook right-handed rotation about a coordinate axis."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array(
        {
            "X": [[1, 0, 0], [0, c, -s], [0, s, c]],
            "Y": [[c, 0, s], [0, 1, 0], [-s, 0, c]],
            "Z": [[c, -s, 0], [s, c, 0], [0, 0, 1]],
        }[name]
    )


def angle_between(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.linalg.norm(rotations.log(rotations.shortest(rotations.multiply(rotations.inverse(p), q))), axis=-1)


def assert_rotation(R: np.ndarray) -> None:
    np.testing.assert_allclose(R @ np.swapaxes(R, -1, -2), np.broadcast_to(np.eye(3), R.shape), atol=1e-12)
    np.testing.assert_allclose(np.linalg.det(R), 1, atol=1e-12)


# Quaternions and matrices


def test_a_quarter_turn_about_z_takes_x_to_y() -> None:
    q = rotations.from_axis_angle([0, 0, 2], np.pi / 2)
    np.testing.assert_allclose(rotations.rotate(q, [1, 0, 0]), [0, 1, 0], atol=1e-15)
    np.testing.assert_allclose(rotations.matrix(q), axis_matrix("Z", np.pi / 2), atol=1e-15)


def test_multiplying_composes_turns() -> None:
    p, q = random_quaternions(50, seed=1), random_quaternions(50, seed=2)
    v = np.random.default_rng(3).normal(size=(50, 3))
    product = rotations.multiply(p, q)
    np.testing.assert_allclose(rotations.rotate(product, v), rotations.rotate(p, rotations.rotate(q, v)), atol=1e-13)
    np.testing.assert_allclose(rotations.matrix(product), rotations.matrix(p) @ rotations.matrix(q), atol=1e-13)
    np.testing.assert_allclose(np.linalg.norm(product, axis=-1), 1, atol=1e-14)


def test_inverse_turns_back() -> None:
    q = random_quaternions(20)
    np.testing.assert_allclose(rotations.multiply(q, rotations.inverse(q)), np.tile([1, 0, 0, 0], (20, 1)), atol=1e-15)


def test_rotating_is_the_matrix_product() -> None:
    q, v = random_quaternions(30), np.random.default_rng(1).normal(size=(30, 3))
    R = rotations.matrix(q)
    assert_rotation(R)
    np.testing.assert_allclose(rotations.rotate(q, v), np.einsum("nij,nj->ni", R, v), atol=1e-14)


@pytest.mark.parametrize("angle", [0, 1e-9, 1e-4, 1, np.pi - 1e-4, np.pi - 1e-9, np.pi])
def test_matrix_and_back_at_every_pivot(angle: float) -> None:
    q = rotations.from_axis_angle(UNIT_AXES, np.full(len(AXES), angle))
    back = rotations.quaternion(rotations.matrix(q))
    np.testing.assert_allclose(rotations.align_signs(back, q), q, atol=1e-14)
    assert (back[:, 0] >= 0).all()


def test_matrix_and_back_for_any_quaternion() -> None:
    q = random_quaternions(1000)
    back = rotations.quaternion(rotations.matrix(q))
    np.testing.assert_allclose(back, rotations.shortest(q), atol=1e-14)
    np.testing.assert_allclose(rotations.matrix(-q), rotations.matrix(q), atol=0)


def test_normalizing() -> None:
    q = random_quaternions(10)
    np.testing.assert_allclose(rotations.normalize(q * 1e-200), q, atol=1e-14)
    np.testing.assert_allclose(rotations.normalize(q * 1e200), q, atol=1e-14)
    assert rotations.normalize(np.zeros((2, 4))).tolist() == [[1, 0, 0, 0]] * 2


def test_normalizing_again_changes_no_bit() -> None:
    once = rotations.normalize(np.random.default_rng(0).normal(size=(200_000, 4)))
    np.testing.assert_array_equal(rotations.normalize(once), once)
    off = once * (1 + 1e-14)  # but what is longer than rounding makes it is cut
    assert np.abs(np.square(rotations.normalize(off)).sum(axis=1) - 1).max() < 2e-15


# Exponential and logarithm


@pytest.mark.parametrize("angle", [0, 1e-300, 1e-160, 1e-12, 1e-9, 1e-3, 1, np.pi - 1e-9, np.pi, 4, 2 * np.pi - 1e-3])
@pytest.mark.parametrize("axis", UNIT_AXES.tolist())
def test_log_undoes_exp(axis: list[float], angle: float) -> None:
    v = np.array(axis) * angle
    q = rotations.exp(v)
    np.testing.assert_allclose(np.linalg.norm(q), 1, atol=1e-15)
    np.testing.assert_allclose(rotations.log(q), v, rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("gap", [1e-6, 1e-9, 1e-11, 1e-13, 1e-14])
def test_log_of_almost_a_full_turn_is_long(gap: float) -> None:
    v = rotations.log(rotations.exp([0, 2 * np.pi - gap, 0]))
    np.testing.assert_allclose(np.linalg.norm(v), 2 * np.pi, atol=2 * gap)
    np.testing.assert_allclose(rotations.exp(v), rotations.exp([0, 2 * np.pi - gap, 0]), atol=1e-14)


def test_log_of_minus_one_is_a_full_turn_about_some_axis() -> None:
    v = rotations.log([-1.0, 0, 0, 0])
    np.testing.assert_allclose(np.linalg.norm(v), 2 * np.pi)
    np.testing.assert_allclose(rotations.exp(v), [-1, 0, 0, 0], atol=1e-15)


def test_exp_undoes_log_with_its_sign() -> None:
    q = random_quaternions(500)
    np.testing.assert_allclose(rotations.exp(rotations.log(q)), q, atol=1e-13)
    np.testing.assert_allclose(rotations.exp(rotations.log(-q)), -q, atol=1e-13)


def test_log_of_the_shortest_is_at_most_half_a_turn() -> None:
    angles = np.linalg.norm(rotations.log(rotations.shortest(random_quaternions(500))), axis=-1)
    assert (angles <= np.pi).all()
    assert angles.max() > 3


def test_exp_turns_by_its_length() -> None:
    np.testing.assert_allclose(rotations.matrix(rotations.exp([0.3, 0, 0])), axis_matrix("X", 0.3), atol=1e-15)
    np.testing.assert_allclose(rotations.matrix(rotations.exp([0, 5, 0])), axis_matrix("Y", 5), atol=1e-15)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-6, 6), min_size=3, max_size=3))
def test_exp_and_log_for_any_vector(v: list[float]) -> None:
    if np.linalg.norm(v) < 2 * np.pi - 1e-3:
        np.testing.assert_allclose(rotations.log(rotations.exp(v)), v, atol=1e-12)


# Interpolation


def test_slerp_runs_at_constant_speed_the_short_way() -> None:
    p, q = random_quaternions(40, seed=1), random_quaternions(40, seed=2)
    total = angle_between(p, q)
    assert (total <= np.pi).all()
    t = np.linspace(0, 1, 11)
    path = rotations.slerp(p[:, None], q[:, None], t)
    np.testing.assert_allclose(angle_between(p[:, None], path), total[:, None] * t, atol=1e-12)
    np.testing.assert_allclose(angle_between(path[:, :-1], path[:, 1:]), np.tile(total[:, None] / 10, 10), atol=1e-12)
    np.testing.assert_allclose(path[:, 0], p, atol=1e-15)
    np.testing.assert_allclose(path[:, -1], rotations.align_signs(q, path[:, -1]), atol=1e-13)


def test_slerp_does_not_care_for_signs() -> None:
    p, q = random_quaternions(10, seed=1), random_quaternions(10, seed=2)
    middle = rotations.matrix(rotations.slerp(p, q, 0.3))
    np.testing.assert_allclose(rotations.matrix(rotations.slerp(-p, q, 0.3)), middle, atol=1e-13)
    np.testing.assert_allclose(rotations.matrix(rotations.slerp(p, -q, 0.3)), middle, atol=1e-13)


def test_slerp_of_equal_ends_stays() -> None:
    q = random_quaternions(5)
    np.testing.assert_allclose(rotations.slerp(q, q, 0.5), q, atol=1e-15)
    np.testing.assert_allclose(rotations.matrix(rotations.slerp(q, -q, 0.5)), rotations.matrix(q), atol=1e-14)


def test_align_signs_picks_the_nearer() -> None:
    q, reference = random_quaternions(50, seed=1), random_quaternions(50, seed=2)
    aligned = rotations.align_signs(q, reference)
    assert (np.sum(aligned * reference, axis=-1) >= 0).all()
    np.testing.assert_allclose(rotations.matrix(aligned), rotations.matrix(q), atol=0)


def test_blending() -> None:
    q = rotations.shortest(random_quaternions(6, 3))
    np.testing.assert_allclose(rotations.blend(q, [0, 1, 0]), q[:, 1], atol=1e-14)
    np.testing.assert_allclose(rotations.blend(q, [0, 0, 0]), np.tile([1, 0, 0, 0], (6, 1)), atol=0)
    about_z = rotations.from_axis_angle([0, 0, 1], np.array([0.4, 1.0]))
    expected = rotations.from_axis_angle([0, 0, 1], 0.25 * 0.4 + 0.75 * 1.0)
    np.testing.assert_allclose(rotations.blend(about_z, [0.25, 0.75]), expected, atol=1e-15)


def test_blending_counts_turns_beyond_half() -> None:
    long_way = rotations.exp([[0, 0, 1.5 * np.pi]])
    np.testing.assert_allclose(rotations.log(rotations.blend(long_way, [0.5])), [0, 0, 0.75 * np.pi], atol=1e-14)


# Euler angles


@pytest.mark.parametrize("order", [*ORDERS, "X", "YZ", "XYX", "ZXYZ"])
def test_euler_angles_multiply_in_the_order_named(order: str) -> None:
    angles = np.random.default_rng(1).uniform(-3, 3, size=(10, len(order)))
    expected = np.tile(np.eye(3), (10, 1, 1))
    for k, name in enumerate(order):
        expected = expected @ np.stack([axis_matrix(name, a) for a in angles[:, k]])
    np.testing.assert_allclose(rotations.matrix(rotations.from_euler(angles, order)), expected, atol=1e-14)


@pytest.mark.parametrize("order", ORDERS)
def test_euler_angles_come_back(order: str) -> None:
    rng = np.random.default_rng(2)
    angles = rng.uniform([-np.pi, -np.pi / 2, -np.pi], [np.pi, np.pi / 2, np.pi], size=(200, 3))
    np.testing.assert_allclose(rotations.to_euler(rotations.from_euler(angles, order), order), angles, atol=1e-9)


@pytest.mark.parametrize("order", ORDERS)
def test_any_rotation_has_euler_angles(order: str) -> None:
    q = random_quaternions(300)
    back = rotations.from_euler(rotations.to_euler(q, order), order)
    np.testing.assert_allclose(rotations.align_signs(back, q), q, atol=1e-12)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("away", [0, 1e-12, 1e-9, 1e-8, 1e-7, 1e-6, 1e-4])
@pytest.mark.parametrize("side", [-1, 1])
def test_gimbal_lock_keeps_the_rotation(order: str, away: float, side: int) -> None:
    angles = np.random.default_rng(3).uniform(-3, 3, size=(50, 3))
    angles[:, 1] = side * (np.pi / 2 - away)
    q = rotations.from_euler(angles, order)
    back = rotations.from_euler(rotations.to_euler(q, order), order)
    assert angle_between(q, back).max() < 1e-7


# The nearest rotation


def test_polar_of_a_rotation_is_itself() -> None:
    R = rotations.matrix(random_quaternions(50))
    np.testing.assert_allclose(rotations.polar(R), R, atol=1e-14)


def test_polar_takes_the_rotation_out_of_a_stretch() -> None:
    R = rotations.matrix(random_quaternions(50))
    B = np.random.default_rng(1).normal(size=(50, 3, 3))
    stretch = B @ np.swapaxes(B, -1, -2) + 0.1 * np.eye(3)
    np.testing.assert_allclose(rotations.polar(R @ stretch), R, atol=1e-11)


@pytest.mark.parametrize("kind", ["random", "reflected", "flat", "line", "mirror", "negative"])
def test_polar_is_the_nearest_of_all_rotations(kind: str) -> None:
    rng = np.random.default_rng(4)
    F = rng.normal(size=(20, 3, 3))
    if kind == "reflected":
        F[np.linalg.det(F) > 0] *= -1
    if kind == "flat":
        F = F[..., :2] @ rng.normal(size=(20, 2, 3))
    if kind == "line":
        F = F[..., :1] @ rng.normal(size=(20, 1, 3))
    if kind == "mirror":
        F = np.tile(np.diag([1.0, 1.0, -1.0]), (20, 1, 1))
    if kind == "negative":
        F = np.tile(-np.eye(3), (20, 1, 1))
    best = rotations.polar(F)
    assert_rotation(best)
    distance = np.linalg.norm(F - best, axis=(-2, -1))
    near = rotations.multiply(rotations.exp(rng.normal(size=(1000, 3)) * 0.05)[:, None], rotations.quaternion(best))
    for others in (random_quaternions(1000, 1), near):
        others_distance = np.linalg.norm(F - rotations.matrix(others), axis=(-2, -1))
        assert (others_distance >= distance - 1e-12).all()


def test_polar_of_nothing_is_some_rotation() -> None:
    assert_rotation(rotations.polar(np.zeros((3, 3))))


# Matching point sets


def test_match_rigid_recovers_a_motion() -> None:
    rng = np.random.default_rng(5)
    points, shift = rng.normal(size=(30, 3)), np.array([100.0, -20, 3])
    R = rotations.matrix(random_quaternions(1))[0]
    found, t = rotations.match_rigid(points, points @ R.T + shift)
    np.testing.assert_allclose(found, R, atol=1e-13)
    np.testing.assert_allclose(t, shift, atol=1e-12)


def test_match_rigid_ignores_points_without_weight() -> None:
    rng = np.random.default_rng(6)
    points = rng.normal(size=(10, 3))
    R = rotations.matrix(random_quaternions(1))[0]
    targets = points @ R.T
    targets[7:] = rng.normal(size=(3, 3)) * 50
    weights = np.array([1.0, 2, 3, 4, 5, 6, 7, 0, 0, 0])
    found, t = rotations.match_rigid(points, targets, weights)
    np.testing.assert_allclose(found, R, atol=1e-13)
    np.testing.assert_allclose(t, 0, atol=1e-12)


def test_match_rigid_is_the_weighted_optimum() -> None:
    rng = np.random.default_rng(7)
    points, targets = rng.normal(size=(2, 12, 3))
    weights = rng.uniform(0.1, 3, size=12)

    def energy(R: np.ndarray, t: np.ndarray) -> float:
        return float((weights * ((points @ R.T + t - targets) ** 2).sum(axis=1)).sum())

    R, t = rotations.match_rigid(points, targets, weights)
    best = energy(R, t)
    for k in range(200):
        turn = rotations.matrix(rotations.exp(rng.normal(size=3) * 10.0 ** -(k % 4)))
        assert energy(turn @ R, t + rng.normal(size=3) * 10.0 ** -(k % 4)) > best


@pytest.mark.parametrize("shape", ["line", "plane", "point", "single"])
def test_match_rigid_of_flat_sets_is_still_a_rotation(shape: str) -> None:
    rng = np.random.default_rng(8)
    points = rng.normal(size=(1 if shape == "single" else 9, 3))
    points[:, {"line": 1, "plane": 2, "point": 0, "single": 3}[shape] :] = 0
    R = rotations.matrix(random_quaternions(1))[0]
    targets = points @ R.T + [1, 2, 3]
    found, t = rotations.match_rigid(points, targets)
    assert_rotation(found)
    np.testing.assert_allclose(points @ found.T + t, targets, atol=1e-13)


def test_match_rigid_never_reflects() -> None:
    points = np.random.default_rng(9).normal(size=(20, 3))
    assert_rotation(rotations.match_rigid(points, points * [1, 1, -1])[0])


def test_match_rigid_in_batches() -> None:
    rng = np.random.default_rng(10)
    points, targets = rng.normal(size=(6, 3)), rng.normal(size=(4, 5, 6, 3))
    weights = rng.uniform(0.5, 1, size=(4, 5, 6))
    R, t = rotations.match_rigid(points, targets, weights)
    assert R.shape == (4, 5, 3, 3)
    assert t.shape == (4, 5, 3)
    one = rotations.match_rigid(points, targets[2, 3], weights[2, 3])
    np.testing.assert_allclose(R[2, 3], one[0], atol=1e-14)
    np.testing.assert_allclose(t[2, 3], one[1], atol=1e-14)


# Batches, bad input


def test_batch_axes_broadcast() -> None:
    q, v = random_quaternions(7, 1), np.random.default_rng(0).normal(size=(5, 3))
    assert rotations.rotate(q, v).shape == (7, 5, 3)
    assert rotations.multiply(q, random_quaternions(3)).shape == (7, 3, 4)
    assert rotations.matrix(q).shape == (7, 1, 3, 3)
    assert rotations.quaternion(rotations.matrix(q)).shape == (7, 1, 4)
    assert rotations.slerp(q[0, 0], q[1, 0], np.linspace(0, 1, 9)).shape == (9, 4)
    assert rotations.to_euler(q, "XYZ").shape == (7, 1, 3)
    assert rotations.exp(np.zeros((0, 3))).shape == (0, 4)
    assert rotations.log(np.zeros((0, 4))).shape == (0, 3)
    assert rotations.polar(np.zeros((0, 3, 3))).shape == (0, 3, 3)
    assert rotations.from_axis_angle([0, 0, 1], np.zeros((2, 3))).shape == (2, 3, 4)


def test_inputs_are_left_alone() -> None:
    q, F = random_quaternions(5), np.random.default_rng(0).normal(size=(5, 3, 3))
    before = q.copy(), F.copy()
    rotations.polar(F), rotations.log(q), rotations.shortest(-q), rotations.normalize(q), rotations.quaternion(F)
    np.testing.assert_array_equal(q, before[0])
    np.testing.assert_array_equal(F, before[1])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rotations.matrix([1, 0, 0]), r"quaternions have shape \(3,\); expected \(..., 4\)"),
        (lambda: rotations.matrix(1.0), r"shape \(\)"),
        (lambda: rotations.normalize([np.nan] * 4), "quaternions hold NaN or infinite values"),
        (lambda: rotations.normalize([[1, 0, 0, 0], [0, np.inf, 0, 0]]), "quaternions hold NaN or infinite values"),
        (lambda: rotations.normalize("turn"), "quaternions are 'turn'; expected numbers"),
        (lambda: rotations.exp(np.zeros((3, 2))), r"vectors have shape \(3, 2\); expected \(..., 3\)"),
        (lambda: rotations.polar(np.eye(4)), r"matrices have shape \(4, 4\); expected \(..., 3, 3\)"),
        (lambda: rotations.polar(np.zeros(3)), r"matrices have shape \(3,\)"),
        (lambda: rotations.polar(np.full((2, 3, 3), np.nan)), "matrix 0 .* not finite"),
        (lambda: rotations.from_axis_angle([0, 0, 0], 1.0), "axis is zero"),
        (lambda: rotations.from_axis_angle([0, np.nan, 0], 1.0), "axis is zero or not finite"),
        (lambda: rotations.from_euler([1, 2], "XYZ"), r"angles have shape \(2,\) for order \"XYZ\""),
        (lambda: rotations.from_euler([1, 2, 3], "xyz"), "expected one for each"),
        (lambda: rotations.to_euler([1, 0, 0, 0], "XYX"), "permutation of XYZ"),
        (lambda: rotations.match_rigid(np.zeros((4, 3)), np.zeros((5, 3))), r"\(4, 3\) and targets \(5, 3\)"),
        (lambda: rotations.match_rigid(np.zeros(3), np.zeros(3)), "expected the same"),
        (lambda: rotations.match_rigid(np.zeros((0, 3)), np.zeros((0, 3))), "got 0 points"),
        (lambda: rotations.match_rigid(np.zeros((2, 3)), np.zeros((2, 3)), [1.0]), r"weights have shape \(1,\)"),
        (lambda: rotations.match_rigid(np.zeros((2, 3)), np.zeros((2, 3)), [1.0, -1]), ">= 0"),
        (lambda: rotations.match_rigid(np.zeros((2, 3)), np.zeros((2, 3)), [0.0, 0]), "not all 0"),
        (lambda: rotations.match_rigid(np.zeros((2, 3)), np.zeros((2, 3)), [np.nan, 1]), "weights"),
        (lambda: rotations.match_rigid(np.full((2, 3), np.inf), np.zeros((2, 3))), "not finite"),
        (lambda: rotations.match_rigid(np.zeros((2, 3)), np.full((2, 3), np.nan)), "not finite"),
        (lambda: rotations.blend(np.zeros((2, 4)), [1.0]), r"weights have shape \(1,\)"),
    ],
)
def test_bad_input(call: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()


def test_shortest_turns_carry_directions_over() -> None:
    rng = np.random.default_rng(4)
    start, end = rng.normal(size=(2, 50, 3))
    turn = rotations.between(start, end)
    carried = np.einsum("kij,kj->ki", rotations.matrix(turn), start)
    np.testing.assert_allclose(
        carried / np.linalg.norm(start, axis=1)[:, None], end / np.linalg.norm(end, axis=1)[:, None], atol=1e-12
    )


def test_turns_to_the_opposite_direction_are_half_a_turn() -> None:
    axes = np.concatenate([np.eye(3), np.random.default_rng(5).normal(size=(20, 3))])
    turn = rotations.between(axes, -2.0 * axes)
    np.testing.assert_allclose(np.abs(turn[:, 0]), 0.0, atol=1e-7)
    np.testing.assert_allclose(np.einsum("kij,kj->ki", rotations.matrix(turn), axes), -axes, atol=1e-7)


def test_no_direction_is_not_turned() -> None:
    np.testing.assert_array_equal(rotations.between(np.zeros(3), np.array([0.0, 1.0, 0.0])), [1.0, 0.0, 0.0, 0.0])
