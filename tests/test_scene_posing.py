"""Bones and poses written into scenes: where joints and their children go, and what is said of wrong ones."""

from __future__ import annotations

import numpy as np
import pytest

import pliant
from pliant import FileError, InputError, gallery
from pliant.app.scene import read_scene, scene_from, write_scene
from pliant.app.scene.posing import motion_through, rotated_pose
from pliant.core import rotations
from pliant.core.skeleton import Skeleton, forward_kinematics

RNG = np.random.default_rng(7)
ARM = {
    "bones": [
        {"name": "hand", "parent": "elbow", "at": [2.0, 0.1, 0.0], "end": [2.4, 0.1, 0.1]},
        {"name": "shoulder", "at": [0.0, 0.0, 0.0]},
        {"name": "elbow", "parent": "shoulder", "at": [1.0, 0.0, 0.2]},
    ]
}
PLACES = {"shoulder": [0, 0, 0], "elbow": [1, 0, 0.2], "hand": [2, 0.1, 0]}
BAR = {"engine": "simulate", "shape": {"gallery": "bar"}, "nodes": 200, "skeleton": ARM}


def random_turns(count: int) -> np.ndarray:
    return rotations.normalize(RNG.normal(size=(count, 4)))


def crooked(count: int = 6) -> Skeleton:
    """A tree of joints whose frames are turned every which way at rest."""
    parents = [-1, 0, 1, 1, 3, 2][:count]
    return Skeleton(tuple("abcdef"[:count]), parents, RNG.normal(size=(count, 3)), random_turns(count))


def same_turns(one, other) -> bool:
    return bool(np.allclose(np.abs(np.sum(one * other, axis=-1)), 1, atol=1e-12))


# Poses


def test_a_turn_of_one_joint_turns_all_below_it_about_it_in_world_axes():
    skeleton, (q,) = crooked(), random_turns(1)
    places, turns = skeleton.rest_pose().world()
    moved, turned = rotated_pose(skeleton, {"b": q}).world()
    below = [1, 2, 3, 4, 5]
    assert np.allclose(moved[below], places[1] + rotations.rotate(q, places[below] - places[1]))
    assert same_turns(turned[below], rotations.multiply(q, turns[below]))
    assert np.allclose(moved[0], places[0])
    assert same_turns(turned[0], turns[0])


def test_turns_of_parents_carry_on_to_their_children():
    """W W0⁻¹ of a joint is that of its parent times what is said of it, down every branch."""
    skeleton, asked = crooked(), random_turns(6)
    pose = rotated_pose(skeleton, dict(zip(skeleton.names, asked, strict=True)))
    _, rest = skeleton.rest_pose().world()
    _, turned = pose.world()
    against_rest = rotations.multiply(turned, rotations.inverse(rest))
    for j, parent in enumerate(skeleton.parents):
        above = against_rest[parent] if parent >= 0 else rotations.IDENTITY
        assert same_turns(against_rest[j], rotations.multiply(above, asked[j]))


def test_where_frames_are_not_turned_at_rest_it_is_the_pose_of_skeletons():
    skeleton = Skeleton.from_positions(RNG.normal(size=(6, 3)), [-1, 0, 1, 1, 3, 2], "abcdef")
    turns = dict(zip("bde", random_turns(3), strict=True))
    ours, theirs = rotated_pose(skeleton, turns).world(), skeleton.pose(turns).world()
    assert np.allclose(ours[0], theirs[0])
    assert same_turns(ours[1], theirs[1])


def test_the_same_pose_whatever_frames_the_joints_have_at_rest():
    """A skeleton read from a file, and the same bones written into a scene, move alike."""
    skeleton = crooked()
    places, _ = skeleton.rest_pose().world()
    plain = Skeleton.from_positions(places, skeleton.parents, skeleton.names)
    turns, move = dict(zip("abce", random_turns(4), strict=True)), RNG.normal(size=3)
    assert np.allclose(
        rotated_pose(skeleton, turns, move=move).world()[0], rotated_pose(plain, turns, move=move).world()[0]
    )


def test_every_root_goes_where_it_is_moved():
    skeleton = Skeleton.from_positions(RNG.normal(size=(4, 3)), [-1, 0, -1, 2])
    moved, _ = rotated_pose(skeleton, {}, move=[1, 2, 3]).world()
    assert np.allclose(moved, skeleton.rest_pose().world()[0] + [1, 2, 3])


@pytest.mark.parametrize(
    ("turns", "move", "said"),
    [
        ({"z": [1, 0, 0, 0]}, (0, 0, 0), 'no joint is called "z"'),
        ({"a": [1, 0, 0]}, (0, 0, 0), r'the turn of "a" has shape \(3,\); expected \(4,\) as w, x, y, z'),
        ({"a": [np.nan, 0, 0, 0]}, (0, 0, 0), "quaternions hold NaN"),
        ({}, (0, 0), "move have shape"),
        ({}, (0, np.inf, 0), "expected finite coordinates"),
    ],
)
def test_wrong_poses_are_refused(turns, move, said):
    with pytest.raises(InputError, match=said):
        rotated_pose(crooked(), turns, move=move)


# Motions


def test_between_poses_joints_turn_the_short_way_at_one_speed():
    skeleton = crooked()
    asked = [dict(zip(skeleton.names, random_turns(6), strict=True)) for _ in range(3)]
    poses = [rotated_pose(skeleton, turns, move=[k, 0, 0]) for k, turns in enumerate(asked)]
    motion = motion_through(poses, [0.0, 0.5, 1.5], fps=8)
    assert (len(motion), motion.fps, motion.duration) == (13, 8, 1.5)
    for frame, key in ((0, 0), (4, 1), (12, 2)):
        assert same_turns(motion.rotations[frame], poses[key].rotations)
        assert np.allclose(motion.translations[frame], poses[key].translations)
    between = {
        name: rotations.slerp(asked[1][name], asked[2][name], 3 / 8) for name in skeleton.names
    }  # frame 7 is at 0.875 seconds
    pose = rotated_pose(skeleton, between, move=[1 + 3 / 8, 0, 0])
    assert same_turns(motion.rotations[7], pose.rotations)
    assert np.allclose(motion[7].world()[0], pose.world()[0])


def test_the_last_frame_is_the_last_pose_and_before_the_first_it_stands_still():
    skeleton = crooked()
    poses = [rotated_pose(skeleton, {"b": q}) for q in random_turns(2)]
    motion = motion_through(poses, [0.25, 0.66], fps=10)
    assert len(motion) == 8
    assert same_turns(motion.rotations[[0, 1, 2]], poses[0].rotations[None])
    assert same_turns(motion.rotations[-1], poses[1].rotations)
    assert len(motion_through(poses[:1], [0.0])) == 1


@pytest.mark.parametrize(
    ("times", "fps", "said"),
    [
        ([0.0], 30, "got 2 poses and times of shape"),
        ([0.5, 0.5], 30, "times do not grow from 0 on"),
        ([-1.0, 0.5], 30, "times do not grow from 0 on"),
        ([0.0, np.nan], 30, "times do not grow from 0 on"),
        ([0.0, 1e9], 30, "1e\\+09 seconds at 30 fps are 30,000,000,001 frames; expected at most"),
        ([0.0, 1.0], -1, "fps"),
    ],
)
def test_wrong_times_are_refused(times, fps, said):
    with pytest.raises(InputError, match=said):
        motion_through([crooked().rest_pose()] * 2, times, fps=fps)


# Scenes


def test_bones_stand_where_the_scene_says_in_any_order(tmp_path):
    skeleton = scene_from(BAR | {"hold": 0.1}, tmp_path).skeleton
    assert set(skeleton.names) == set(PLACES)
    places, turns = skeleton.rest_pose().world()
    assert np.allclose(places, [PLACES[name] for name in skeleton.names])
    assert same_turns(turns, rotations.IDENTITY)
    assert [skeleton.names[p] if p >= 0 else "" for p in skeleton.parents] == ["", "shoulder", "elbow"]
    (joint, end), *more = skeleton.ends.items()
    assert (skeleton.names[joint], more) == ("hand", [])
    assert np.allclose(places[joint] + end, [2.4, 0.1, 0.1])


def test_an_elbow_turns_the_forearm_about_itself(tmp_path):
    """By hand: a quarter turn about the world's z axis, then the same with the shoulder a quarter turn about x."""
    elbow, raised = {"axis": [0, 0, 1], "degrees": 90}, {"axis": [1, 0, 0], "degrees": 90}
    keys = [{"turns": {"elbow": elbow}}, {"time": 1.0, "turns": {"elbow": elbow, "shoulder": raised}}]
    scene = scene_from(BAR | {"motion": {"keys": keys, "fps": 4.0}}, tmp_path)
    first, last = (dict(zip(scene.skeleton.names, scene.motion[k].world()[0], strict=True)) for k in (0, -1))
    assert np.allclose(first["elbow"], [1, 0, 0.2])
    assert np.allclose(first["hand"], [1 - 0.1, 1, 0])  # the forearm (1, 0.1, -0.2) has become (-0.1, 1, -0.2)
    assert np.allclose(last["elbow"], [1, -0.2, 0])
    assert np.allclose(last["hand"], [0.9, 0, 1])  # all of it a quarter about x: (x, y, z) becomes (x, -z, y)
    assert len(scene.motion) == 5


def test_the_rest_pose_is_at_time_0_unless_a_key_says_otherwise(tmp_path):
    key = {"time": 0.5, "turns": {"hand": [0.6, 0, 0.8, 0]}, "move": [0.0, 0.3, 0.0]}
    late = scene_from(BAR | {"motion": {"keys": [key]}}, tmp_path).motion
    assert (len(late), late.fps) == (16, 30)
    assert np.allclose(late[0].world()[0], late.skeleton.rest_pose().world()[0])
    assert np.allclose(late[-1].translations[0], [0, 0.3, 0])
    assert same_turns(late.rotations[-1][late.skeleton.index("hand")], np.array([0.6, 0, 0.8, 0]))
    half = rotations.from_axis_angle([0, 1, 0], np.arccos(0.6))
    assert np.allclose(late.translations[5, 0], [0, 0.1, 0])
    assert same_turns(late.rotations[-1][2], rotations.multiply(half, half))
    early = scene_from(BAR | {"motion": {"keys": [key | {"time": 0.0}]}}, tmp_path).motion
    assert len(early) == 1
    assert np.allclose(early.rotations[0], late.rotations[-1])


def test_a_single_key_of_a_static_scene_is_one_frame(tmp_path):
    tentacle = {"engine": "simulate", "shape": {"gallery": "tentacle", "vertices": 1000}, "nodes": 300, "static": True}
    bones = gallery.tentacle_skeleton()
    middle = bones.names[len(bones) // 2]
    q = rotations.from_axis_angle([1, 0, 1], 0.6)
    keys = [{"time": 2.0, "turns": {middle: q.tolist()}}]
    scene = scene_from(tentacle | {"skeleton": {"gallery": "tentacle"}, "motion": {"keys": keys}}, tmp_path)
    found = scene.run()
    assert len(found.clip) == 1
    expected = found.body.pose(rotated_pose(bones, {middle: q}))
    assert np.abs(found.clip.points[0] - expected.points).max() < 1e-9 * scene.shape.diagonal
    assert np.abs(found.clip.points[0] - scene.shape.points).max() > 0.1 * scene.shape.diagonal  # it did bend
    written = scene_from(tentacle | {"skeleton": {"bones": document_of(bones)}, "motion": {"keys": keys}}, tmp_path)
    again = written.run().clip.points[0]
    assert np.abs(again - found.clip.points[0]).max() < 1e-6 * scene.shape.diagonal


def document_of(skeleton: Skeleton) -> list[dict]:
    """A skeleton as a scene has it."""
    places, turns = skeleton.rest_pose().world()
    bones = []
    for j, name in enumerate(skeleton.names):
        bone = {"name": name, "at": places[j].tolist()}
        if skeleton.parents[j] >= 0:
            bone["parent"] = skeleton.names[skeleton.parents[j]]
        if j in skeleton.ends:
            bone["end"] = (places[j] + rotations.rotate(turns[j], skeleton.ends[j])).tolist()
        bones.append(bone)
    return bones


def test_a_saved_scene_moves_as_its_document_does(tmp_path):
    keys = [{"time": k / 5, "turns": {"elbow": q.tolist()}} for k, q in enumerate(random_turns(3), 1)]
    document = BAR | {"motion": {"keys": keys, "fps": 24.0}}
    write_scene(tmp_path / "arm.toml", document)
    read, made = read_scene(tmp_path / "arm.toml"), scene_from(document, tmp_path)
    assert np.array_equal(read.motion.rotations, made.motion.rotations)
    assert np.array_equal(read.skeleton.offsets, made.skeleton.offsets)


def test_a_motion_from_a_file_moves_bones_of_the_scene(tmp_path):
    walk = gallery.creature_walk(5)
    pliant.write(tmp_path / "walk.bvh", walk)
    document = {
        "engine": "simulate",
        "shape": {"gallery": "creature", "vertices": 2000},
        "skeleton": {"bones": document_of(gallery.creature_skeleton())},
        "motion": {"file": "walk.bvh"},
    }
    motion = scene_from(document, tmp_path).motion
    expected = forward_kinematics(walk.skeleton.parents, walk.rotations, walk.translations)[0]
    order = [motion.skeleton.index(name) for name in walk.skeleton.names]
    apart = motion.world()[0][:, order] - expected
    assert np.abs(apart - apart[0, 0]).max() < 1e-6  # the same motion
    assert np.abs(apart[0, 0]).max() < 5e-3  # lifted or lowered so that the feet are as high as at rest


ELBOW = {"time": 0.5, "turns": {"elbow": [1, 0, 0, 0]}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"motion": {"keys": [{"turns": {"elbw": [1, 0, 0, 0]}}]}},
            'motion.keys[0].turns.elbw: no joint is called so; did you mean "elbow"?',
        ),
        (
            {"motion": {"keys": [ELBOW, ELBOW]}},
            "motion.keys[1].time: is 0.5; expected more than 0.5, the time of the key before",
        ),
        ({"motion": {"keys": [{"time": -1}]}}, "motion.keys[0].time: is -1; expected a number, 0 or more"),
        ({"motion": {"keys": [{"time": 1e9}]}}, "motion.keys: 1e+09 seconds at 30 fps are"),
        ({"motion": {"keys": []}}, "motion.keys: has 0 entries; expected one or more tables [[motion.keys]]"),
        (
            {"motion": {"keys": [{"turns": {"elbow": {"axis": [0, 0, 0], "degrees": 9}}}]}},
            "motion.keys[0].turns.elbow.axis: is [0, 0, 0]; expected three",
        ),
        ({"motion": {"keys": [{"turns": {"elbow": 4}}]}}, "motion.keys[0].turns.elbow: is 4; expected a quaternion"),
        ({"motion": {"keys": [ELBOW], "gallery": "creature_walk"}}, "motion: has both gallery and keys"),
        ({"motion": {"keys": [ELBOW], "last": 3}}, "motion.last: has no effect: it is for motions of files"),
        ({"skeleton": ARM | {"joints": 4}}, 'skeleton.joints: has no effect: "bones" says which bones there are'),
        ({"skeleton": ARM | {"gallery": "hand"}}, "skeleton: has both gallery and bones; expected one of them"),
        ({"skeleton": {"bones": []}}, "skeleton.bones: has 0 entries; expected one or more"),
        ({"skeleton": {"bones": [{"name": "a"}]}}, "skeleton.bones[0].at: is missing"),
        (
            {"skeleton": {"bones": [{"name": "a", "at": [0, 0, 0]}, {"name": "a", "at": [1, 0, 0]}]}},
            'skeleton.bones[1].name: is "a", as of another bone; expected a name of its own',
        ),
        (
            {"skeleton": {"bones": [{"name": "arm", "at": [0, 0, 0]}, {"name": "b", "at": [1, 0, 0], "parent": "am"}]}},
            'skeleton.bones[1].parent: no bone is called "am"; did you mean "arm"?',
        ),
        (
            {"skeleton": {"bones": [{"name": "a", "at": [0, 0, 0], "parent": "a"}]}},
            "skeleton.bones: go round in a circle; expected one or more bones that have no parent",
        ),
        (
            {"skeleton": {"bones": [{"name": "a", "at": [1, 0, 0], "end": [1, 0, 0]}]}},
            "skeleton.bones[0].end: is where the bone begins; expected another point",
        ),
    ],
)
def test_what_is_wrong_is_said_with_the_key(tmp_path, change, said):
    with pytest.raises(FileError) as error:
        scene_from(BAR | {"motion": {"keys": [ELBOW]}} | change, tmp_path)
    assert str(error.value).startswith(f"the scene, {said}")
    assert "\n" not in str(error.value)
