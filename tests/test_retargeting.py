"""Motions on other skeletons: bones point where the motion's bones point."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pliant import InputError, Motion, PliantWarning, Skeleton, gallery
from pliant.core import rotations
from pliant.geometry.retargeting import matched_joints, retarget

TURN = rotations.from_axis_angle([0.3, 1.0, -0.2], 0.7)


@pytest.fixture(scope="module")
def walk() -> Motion:
    return gallery.creature_walk()


def bones(motion: Motion) -> np.ndarray:
    """(frames, bones, 3) unit vectors along the bones."""
    places = motion.world()[0]
    pairs = motion.skeleton.bones
    ways = places[:, pairs[:, 1]] - places[:, pairs[:, 0]]
    return ways / np.linalg.norm(ways, axis=-1, keepdims=True)


def renamed(skeleton: Skeleton, prefix: str = "x_") -> Skeleton:
    return replace(skeleton, names=tuple(f"{prefix}{name}" for name in skeleton.names))


def names(skeleton: Skeleton) -> dict[str, str]:
    return {f"x_{name}": name for name in skeleton.names}


def test_the_same_skeleton_keeps_the_motion_as_it_is(walk):
    found = retarget(walk, walk.skeleton)
    np.testing.assert_array_equal(found.rotations, walk.rotations)
    np.testing.assert_array_equal(found.translations, walk.translations)


def test_a_larger_skeleton_of_other_names_and_frames_moves_alike(walk):
    """Frames at rest may be turned in any way, and bones twice as long: directions and the way come out the same."""
    skeleton = walk.skeleton
    turns = rotations.normalize(np.random.default_rng(3).normal(size=(len(skeleton), 4)))
    places = 2.0 * skeleton.rest_pose().world()[0]
    above = np.where(skeleton.parents >= 0, skeleton.parents, 0)
    frame = np.where((skeleton.parents >= 0)[:, None], turns[above], rotations.IDENTITY)
    shifts = places - np.where((skeleton.parents >= 0)[:, None], places[above], 0)
    other = renamed(
        replace(
            skeleton,
            offsets=rotations.rotate(rotations.inverse(frame), shifts),
            rest_rotations=rotations.multiply(rotations.inverse(frame), turns),
            ends={},
        )
    )
    found = retarget(walk, other, names(skeleton))
    np.testing.assert_allclose(bones(found), bones(walk), atol=1e-9)
    way, ours = (np.diff(motion.world()[0][:, 0], axis=0) for motion in (walk, found))
    np.testing.assert_allclose(ours, 2 * way, atol=1e-9)


def test_a_skeleton_that_rests_in_another_pose_points_where_the_motion_points():
    """A T-pose and arms that hang: both forearms point the same way."""
    parents = [-1, 0, 1, 2, 0, 4]
    spread = [[0, 1, 0], [0.2, 1, 0], [0.6, 1, 0], [1.0, 1, 0], [0, 0.5, 0.02], [0.01, 0, 0]]
    hanging = [[0, 1, 0], [0.2, 1, 0], [0.2, 0.6, 0], [0.2, 0.2, 0.1], [0, 0.5, 0.02], [0.01, 0, 0]]
    a = Skeleton.from_positions(spread, parents, ["hip", "shoulder", "elbow", "hand", "knee", "foot"])
    b = Skeleton.from_positions(hanging, parents, ["hip", "shoulder", "elbow", "hand", "knee", "foot"])
    turns = np.tile(a.rest_rotations, (5, 1, 1))
    turns[:, 2] = rotations.from_axis_angle([0, 0, 1], np.linspace(0, 1.2, 5))
    motion = Motion(a, turns, np.tile(a.offsets, (5, 1, 1)))
    found = retarget(motion, b)
    np.testing.assert_allclose(bones(found)[:, 1:3], bones(motion)[:, 1:3], atol=1e-9)


def test_a_body_that_stands_along_another_axis_keeps_standing(walk):
    """Z up: the way goes along the ground there, and the lowest joint stays as low."""
    quarter = rotations.from_axis_angle([1, 0, 0], np.pi / 2)
    skeleton = walk.skeleton
    standing = renamed(Skeleton.from_positions(
        rotations.rotate(quarter, skeleton.rest_pose().world()[0]), skeleton.parents, skeleton.names
    ))  # fmt: skip
    found = retarget(walk, standing, names(skeleton), up="z")
    np.testing.assert_allclose(bones(found), rotations.rotate(quarter, bones(walk)), atol=1e-6)
    assert found.world()[0][..., 2].min() == pytest.approx(standing.rest_pose().world()[0][:, 2].min())


def test_joints_without_a_motion_go_along_with_their_parents(walk):
    skeleton = walk.skeleton
    leaf = next(j for j in range(len(skeleton)) if j not in skeleton.parents)
    told = names(skeleton) | {f"x_{skeleton.names[leaf]}": ""}
    found = retarget(walk, renamed(skeleton), told)
    np.testing.assert_allclose(found.rotations[:, leaf], np.tile(skeleton.rest_rotations[leaf], (len(walk), 1)))
    del told[f"x_{skeleton.names[leaf]}"]
    with pytest.warns(PliantWarning, match=f"go along with their parents: x_{skeleton.names[leaf]}"):
        retarget(walk, renamed(skeleton), told)


def test_names_that_differ_in_writing_only_are_found():
    a = Skeleton.from_positions(np.eye(3), [-1, 0, 1], ["mixamorig:LeftArm", "left_fore.arm", "Hand"])
    b = Skeleton.from_positions(np.eye(3), [-1, 0, 1], ["left arm", "LeftForeArm", "hand"])
    assert matched_joints(b, a) == {0: 0, 1: 1, 2: 2}


def test_what_is_missing_is_listed_with_the_close_names():
    a = Skeleton.from_positions(np.eye(3), [-1, 0, 1], ["hips", "LeftElbow", "LeftHand"])
    b = Skeleton.from_positions(np.eye(3), [-1, 0, 1], ["hips", "Elbow_L", "q"])
    motion = Motion(a, a.rest_rotations[None], a.offsets[None])
    words = r"no joint for 2 of the skeleton's 3: Elbow_L \(close: LeftElbow\), q; it has"
    with pytest.raises(InputError, match=words):
        retarget(motion, b)
    with pytest.raises(InputError, match='the motion has no joint "LeftElbw"; the closest are LeftElbow'):
        retarget(motion, b, {"Elbow_L": "LeftElbw"})
    with pytest.raises(InputError, match='the skeleton has no joint "elbow"; the closest are Elbow_L'):
        retarget(motion, b, {"elbow": "LeftElbow"})


@pytest.mark.data
def test_a_knight_walks_by_a_captured_motion(data):
    """Other names, other rest pose, other order of the joints: legs point where those of the motion do."""
    import pliant

    walk = pliant.read_motion(data / "mocap/cmu/02_01.bvh")
    knight = pliant.read_skeleton(data / "models/knight/knight.tgf")
    told = dict(zip(
        [f"joint{k}" for k in (1, 11, 12, 13, 14, 16, 17, 18)],
        ["Spine1", "Hips", "RightUpLeg", "RightLeg", "RightFoot", "LeftUpLeg", "LeftLeg", "LeftFoot"], strict=True,
    ))  # fmt: skip
    told |= {name: "" for name in knight.names if name not in told}
    found = retarget(walk, knight, told)
    for a, b in (("joint12", "joint13"), ("joint13", "joint14"), ("joint16", "joint17"), ("joint17", "joint18")):
        ways = []
        for motion, first, last in ((found, a, b), (walk, told[a], told[b])):
            places = motion.world()[0]
            way = places[:, motion.skeleton.index(last)] - places[:, motion.skeleton.index(first)]
            ways.append(way / np.linalg.norm(way, axis=1, keepdims=True))
        apart = np.unwrap(np.subtract(*(np.arctan2(way[:, 0], way[:, 2]) for way in ways)))
        assert np.abs(np.degrees(apart)).max() < 0.5  # between the headings that are found in both
        assert np.ptp(apart) < 1e-9
        np.testing.assert_allclose(ways[0][:, 1], ways[1][:, 1], atol=1e-9)


@pytest.mark.parametrize("branches", ["one", "several"])
def test_bones_keep_their_lengths_where_the_root_follows_nothing(walk, branches):
    """What stands above the first joints that follow one goes along with them, turned as a whole."""
    skeleton = walk.skeleton
    parents = np.concatenate([[-1, 0], skeleton.parents + 2])
    parents[2] = 1
    places = np.concatenate([[[0.0, 0.0, 0.1], [0.3, 0.1, 0.0]], skeleton.rest_pose().world()[0]])
    other = Skeleton.from_positions(places, parents, ["base", "stem", *skeleton.names])
    spin = rotations.from_axis_angle([0, 1, 0], np.linspace(0, 2, len(walk)))
    turned = rotations.multiply(spin, walk.rotations[:, 0])
    motion = replace(walk, rotations=np.concatenate([turned[:, None], walk.rotations[:, 1:]], axis=1))
    unmapped = {"base": "", "stem": ""} | ({skeleton.names[0]: ""} if branches == "several" else {})
    found = retarget(motion, other, unmapped)
    spots = found.world()[0]
    lengths = np.linalg.norm(spots[:, 1:] - spots[:, parents[1:]], axis=-1)
    at_rest = np.linalg.norm(places[1:] - places[parents[1:]], axis=-1)
    np.testing.assert_allclose(lengths, np.broadcast_to(at_rest, lengths.shape), atol=1e-9)
    np.testing.assert_allclose(spots[:, 2:] - spots[:1, 2:3], motion.world()[0] - motion.world()[0][:1, :1], atol=1e-9)


def test_the_ground_is_where_up_points_away_from(walk):
    skeleton = renamed(walk.skeleton)
    for up, axis, extreme in (("y", 1, np.min), ("-y", 1, np.max), ("x", 0, np.min)):
        found = retarget(walk, skeleton, names(walk.skeleton), up=up)
        assert extreme(found.world()[0][..., axis]) == pytest.approx(extreme(skeleton.rest_pose().world()[0][:, axis]))
    with pytest.raises(InputError, match="up is 'w'; expected one of x, y, z"):
        retarget(walk, skeleton, names(walk.skeleton), up="w")
