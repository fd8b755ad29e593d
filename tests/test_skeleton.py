"""Skeletons, their poses and motions."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from pliant import Motion, Skeleton, SkeletonPose
from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.skeleton import by_depth

NAMES = ("hips", "spine", "head", "left leg", "right leg", "left foot")
PARENTS = np.array([-1, 0, 1, 0, 0, 3])


def body(seed: int = 0, *, turned: bool = True) -> Skeleton:
    rng = np.random.default_rng(seed)
    turns = rotations.normalize(rng.normal(size=(6, 4))) if turned else np.zeros((0, 4))
    return Skeleton(NAMES, PARENTS, rng.normal(size=(6, 3)), turns)


def frames(skeleton: Skeleton, count: int = 4) -> Motion:
    rng = np.random.default_rng(1)
    joints = len(skeleton)
    return Motion(skeleton, rng.normal(size=(count, joints, 4)), rng.normal(size=(count, joints, 3)), fps=24)


def world_matrices(parents: np.ndarray, turns: np.ndarray, places: np.ndarray) -> np.ndarray:
    """(j, 4, 4) by multiplying the local matrices down the tree."""
    local = np.tile(np.eye(4), (len(parents), 1, 1))
    local[:, :3, :3], local[:, :3, 3] = rotations.matrix(turns), places
    world: list[np.ndarray] = []
    for j, parent in enumerate(parents):
        world.append(world[parent] @ local[j] if parent >= 0 else local[j])
    return np.array(world)


def test_kinematics_multiply_matrices_down_the_tree() -> None:
    motion = frames(body())
    places, turns = motion.world()
    for k in range(len(motion)):
        expected = world_matrices(PARENTS, motion.rotations[k], motion.translations[k])
        np.testing.assert_allclose(places[k], expected[:, :3, 3], atol=1e-13)
        np.testing.assert_allclose(rotations.matrix(turns[k]), expected[:, :3, :3], atol=1e-13)
        one_place, one_turn = motion[k].world()
        np.testing.assert_allclose(one_place, places[k], atol=1e-15)
        np.testing.assert_allclose(one_turn, turns[k], atol=1e-15)


def test_the_rest_pose_stands_where_the_offsets_say() -> None:
    skeleton = body(turned=False)
    places, turns = skeleton.rest_pose().world()
    for j, parent in enumerate(PARENTS):
        above = places[parent] if parent >= 0 else 0
        np.testing.assert_allclose(places[j], above + skeleton.offsets[j], atol=1e-14)
    np.testing.assert_allclose(turns, np.tile([1, 0, 0, 0], (6, 1)))


def test_from_positions_stands_there() -> None:
    places = np.random.default_rng(2).normal(size=(6, 3))
    skeleton = Skeleton.from_positions(places, PARENTS, NAMES)
    np.testing.assert_allclose(skeleton.rest_pose().world()[0], places, atol=1e-14)
    assert Skeleton.from_positions(places, PARENTS).names == tuple(f"joint{k}" for k in range(6))


def test_several_roots() -> None:
    places = np.arange(12.0).reshape(4, 3)
    skeleton = Skeleton.from_positions(places, [-1, 0, -1, 2])
    np.testing.assert_allclose(skeleton.rest_pose().world()[0], places)
    assert skeleton.bones.tolist() == [[0, 1], [2, 3]]


def test_turning_a_joint_turns_what_hangs_on_it() -> None:
    places = np.array([[0.0, 0, 0], [0, 1, 0], [0, 2, 0]])
    skeleton = Skeleton.from_positions(places, [-1, 0, 1], ["a", "b", "c"])
    quarter = rotations.from_axis_angle([0, 0, 1], np.pi / 2)
    moved, _ = skeleton.pose({"b": quarter}).world()
    np.testing.assert_allclose(moved, [[0, 0, 0], [0, 1, 0], [-1, 1, 0]], atol=1e-15)
    moved, _ = skeleton.pose({"a": quarter, "b": quarter * 7}, root=[5, 5, 5]).world()  # any length will do
    np.testing.assert_allclose(moved, [[5, 5, 5], [4, 5, 5], [4, 4, 5]], atol=1e-15)


def test_a_joint_turns_in_its_own_frame() -> None:
    skeleton = body()
    turn = rotations.exp([0.3, -1, 0.2])
    _, before = skeleton.rest_pose().world()
    places, after = skeleton.pose({"spine": turn}).world()
    expected = rotations.multiply(before[1], turn)
    np.testing.assert_allclose(rotations.align_signs(after[1], expected), expected, atol=1e-14)
    np.testing.assert_allclose(places[[0, 1, 3, 4, 5]], skeleton.rest_pose().world()[0][[0, 1, 3, 4, 5]], atol=1e-14)


def test_bones_keep_their_length_under_any_turn() -> None:
    skeleton = body()
    rng = np.random.default_rng(3)
    pose = skeleton.pose({name: rng.normal(size=4) for name in NAMES}, root=[1, 2, 3])
    places, _ = pose.world()
    lengths = np.linalg.norm(places[skeleton.bones[:, 1]] - places[skeleton.bones[:, 0]], axis=1)
    np.testing.assert_allclose(lengths, np.linalg.norm(skeleton.offsets[skeleton.bones[:, 1]], axis=1), atol=1e-13)
    np.testing.assert_allclose(places[0], [1, 2, 3])


def test_posing_leaves_the_skeleton_alone() -> None:
    skeleton = body()
    before = skeleton.rest_rotations.copy(), skeleton.offsets.copy()
    skeleton.pose({"head": [0, 1, 0, 0]}, root=[9, 9, 9])
    np.testing.assert_array_equal(skeleton.rest_rotations, before[0])
    np.testing.assert_array_equal(skeleton.offsets, before[1])
    with pytest.raises(ValueError, match="read-only"):
        skeleton.offsets[0] = 1


def test_a_motion_is_a_sequence_of_poses() -> None:
    motion = frames(body(), 7)
    assert len(motion) == 7
    assert motion.duration == pytest.approx(6 / 24)
    assert [pose.rotations.shape for pose in motion] == [(6, 4)] * 7
    np.testing.assert_allclose(np.linalg.norm(motion.rotations, axis=-1), 1, atol=1e-14)
    assert repr(motion) == "Motion(7 frames of Skeleton(6 joints) at 24 fps)"


def test_skeletons_and_motions_pickle() -> None:
    motion = frames(body())
    twin = pickle.loads(pickle.dumps(motion))
    np.testing.assert_array_equal(twin.world()[0], motion.world()[0])
    assert twin.skeleton.names == NAMES


def test_index() -> None:
    assert body().index("left leg") == 3


ONE = np.zeros((1, 3))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Skeleton((), [], np.zeros((0, 3))), "at least one joint"),
        (lambda: Skeleton(("a", "a"), [-1, 0], np.zeros((2, 3))), 'joint name "a" is used twice'),
        (lambda: Skeleton(("a", "b"), [-1], np.zeros((2, 3))), r"parents have shape \(1,\); expected \(2,\)"),
        (lambda: Skeleton(("a", "b"), [1, -1], np.zeros((2, 3))), 'joint "a" does not come after its parent'),
        (lambda: Skeleton(("a",), [0], ONE), 'joint "a" does not come after its parent'),
        (lambda: Skeleton(("a",), [-2], ONE), 'joint "a"'),
        (lambda: Skeleton(("a",), [-1], np.zeros((2, 3))), "2 offsets and 1 rest rotations for 1 joints"),
        (lambda: Skeleton(("a",), [-1], [[0, np.nan, 0]]), "offsets: point 0 is"),
        (lambda: Skeleton(("a",), [-1], ONE, np.ones((2, 4))), "1 offsets and 2 rest rotations"),
        (lambda: Skeleton(("a",), [-1], ONE, np.ones((1, 3))), r"quaternions have shape \(1, 3\)"),
        (lambda: Skeleton(("a",), [-1.0], ONE), "parents hold float64 values; expected whole joint numbers"),
        (lambda: Skeleton(("a",), [-1], ONE, ends={5: [1, 2, 3]}), "ends name joint 5; expected a number from 0 to 0"),
        (lambda: Skeleton(("a",), [-1], ONE, ends={"a": [1, 2, 3]}), "ends name joint 'a'"),
        (lambda: Skeleton(("a",), [-1], ONE, ends={0: [1, 2]}), r'end of joint "a" have shape \(1, 2\)'),
        (lambda: Skeleton(("a",), [-1], ONE, ends={0: [1, 2, np.nan]}), 'end of joint "a": point 0 is'),
        (lambda: Skeleton.from_positions(np.zeros((2, 3)), [-1]), r"parents have shape \(1,\)"),
        (lambda: Skeleton.from_positions(np.zeros((2, 3)), [-1, 7]), "parents name joint 7; expected 0 to 1"),
        (lambda: Skeleton.from_positions(np.zeros((2, 3)), [-1, -5]), "parents name joint -5"),
        (lambda: Skeleton.from_positions(np.zeros((2, 3)), [-1, 0], ["a"]), "parents have shape"),
        (lambda: body().index("tail"), 'no joint is called "tail"; there are hips, spine, head'),
        (lambda: body().pose({"tail": [1, 0, 0, 0]}), 'no joint is called "tail"'),
        (lambda: body().pose({"head": [1, 0, 0]}), r'turn of "head" has shape \(3,\); expected \(4,\)'),
        (lambda: body().pose({"head": np.ones((2, 4))}), r'turn of "head" has shape \(2, 4\)'),
        (lambda: body().pose({}, root=[0, np.inf, 0]), "root: point 0 is"),
        (lambda: SkeletonPose(body(), np.zeros((5, 4)), np.zeros((6, 3))), r"rotations have shape \(5, 4\)"),
        (lambda: SkeletonPose(body(), np.full((6, 4), np.nan), np.zeros((6, 3))), "rotations have NaN"),
        (lambda: Motion(body(), np.ones((2, 6, 4)), np.zeros((2, 6, 3)), fps="24"), "fps is '24'"),
        (lambda: Motion(body(), np.zeros((2, 5, 4)), np.zeros((2, 5, 3))), r"expected \(frames, 6, 4\)"),
        (lambda: Motion(body(), np.zeros((2, 6, 4)), np.zeros((3, 6, 3))), r"translations \(3, 6, 3\)"),
        (lambda: Motion(body(), np.full((2, 6, 4), np.nan), np.zeros((2, 6, 3))), "frame 0 of the motion has NaN"),
        (lambda: Motion(body(), np.ones((2, 6, 4)), np.zeros((2, 6, 3)), fps=0), "fps is 0"),
    ],
)
def test_bad_input(call: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()


def test_a_resampled_motion_passes_through_its_own_frames():
    rng = np.random.default_rng(8)
    bones = Skeleton.from_positions(rng.normal(size=(3, 3)), [-1, 0, 1])
    turns = rotations.normalize(rng.normal(size=(5, 3, 4)))
    motion = Motion(bones, turns, rng.normal(size=(5, 3, 3)), fps=24)
    double = motion.resampled(48)
    assert len(double) == 9
    assert double.duration == pytest.approx(motion.duration)
    assert np.allclose(double.world()[0][::2], motion.world()[0])
    middle = rotations.slerp(turns[0], turns[1], np.full(3, 0.5))
    assert np.allclose(np.abs(np.sum(double.rotations[1] * middle, axis=1)), 1)
    assert len(motion.resampled(12)) == 3
    with pytest.raises(InputError, match="frames"):
        motion.resampled(1e12)


def test_joints_by_depth_are_all_there_with_those_above_them_before():
    parents = np.array([-1, 0, 1, 0, -1, 4, 2])
    found = by_depth(parents)
    assert [at.tolist() for at in found] == [[0, 4], [1, 3, 5], [2], [6]]


def test_the_order_of_ends_does_not_matter() -> None:
    ends = {2: [0.0, 0, 1], 1: [0.0, 1, 0]}
    bones = Skeleton(("a", "b", "c"), [-1, 0, 0], np.zeros((3, 3)), ends=ends)
    assert list(bones.ends) == [1, 2]
