"""BVH, TGF, JSON and Pinocchio skeletons: joints land where the file says."""

import itertools

import numpy as np
import pytest

import pliant
from pliant import FileError, Motion, PliantWarning, Skeleton
from pliant.core import rotations

ARM = """HIERARCHY
ROOT hip
{
  OFFSET 0 0 0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT knee {
    OFFSET 0 -2 0
    CHANNELS 3 Zrotation Xrotation Yrotation
    End Site
    {
      OFFSET 0 -1 0
    }
  }
}
MOTION
Frames: 2
Frame Time: 0.04
0 5 0 0 0 0  0 0 0
1 5 0 90 0 0  0 90 0
"""


def write(tmp_path, text, name="a.bvh"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


def test_bvh_joints_land_where_the_channels_say(tmp_path):
    motion = pliant.read_motion(write(tmp_path, ARM))
    places, turns = motion.world()
    assert motion.fps == pytest.approx(25)
    assert places[0].tolist() == [[0, 5, 0], [0, 3, 0]]
    assert np.allclose(places[1], [[1, 5, 0], [3, 5, 0]])  # turned by 90° about z: down becomes +x
    end = rotations.rotate(turns[1, 1], motion.skeleton.ends[1])
    assert np.allclose(end, [0, 0, -1])  # Rz(90) Rx(90) (0, -1, 0)


def bvh_chain(count, position):
    """A root and joints 2 below each other, all of which have the same position channels, in one frame."""
    channels = "CHANNELS 3 Xposition Yposition Zposition"
    text = f"HIERARCHY\nROOT a\n{{\nOFFSET 0 0 0\n{channels}\n"
    text += "".join(f"JOINT b{k}\n{{\nOFFSET 0 -2 0\n{channels}\n" for k in range(count))
    text += "End Site\n{\nOFFSET 0 -1 0\n}\n" + "}\n" * (count + 1)
    return f"{text}MOTION\nFrames: 1\nFrame Time: 0.04\n0 5 0{f' {position}' * count}\n"


def test_bvh_positions_near_zero_are_added_to_the_offsets(tmp_path):
    """As MakeHuman writes them; else all joints would fall into one. A single joint may well be there."""
    with pytest.warns(PliantWarning, match="added to their offsets"):
        motion = pliant.read_motion(write(tmp_path, bvh_chain(4, "0 0.01 0")))
    np.testing.assert_allclose(motion.world()[0][0, :, 1], 5 - 1.99 * np.arange(5))
    pliant.write(tmp_path / "b.bvh", motion)
    assert np.allclose(pliant.read_motion(tmp_path / "b.bvh").world()[0], motion.world()[0])
    for count, position, y in ((4, "0 -1.9 0", 3.1), (1, "0 0.01 0", 5.01)):
        motion = pliant.read_motion(write(tmp_path, bvh_chain(count, position)))
        np.testing.assert_allclose(motion.world()[0][0, 1], [0, y, 0])


@pytest.mark.parametrize("order", ["".join(p) for p in itertools.permutations("XYZ")])
def test_bvh_turns_in_the_order_its_channels_are_listed(tmp_path, order):
    channels = " ".join(f"{axis}rotation" for axis in order)
    text = ARM.replace("CHANNELS 3 Zrotation Xrotation Yrotation", f"CHANNELS 3 {channels}")
    text = text.replace("1 5 0 90 0 0  0 90 0", "0 0 0 0 0 0  20 30 40")
    motion = pliant.read_motion(write(tmp_path, text))
    axes = np.eye(3)

    def turn(axis, degrees):
        return rotations.matrix(rotations.from_axis_angle(axes["XYZ".index(axis)], np.radians(degrees)))

    expected = turn(order[0], 20) @ turn(order[1], 30) @ turn(order[2], 40)
    assert np.allclose(rotations.matrix(motion.rotations[1, 1]), expected)
    pliant.write(tmp_path / "b.bvh", motion)
    back = pliant.read_motion(tmp_path / "b.bvh")
    assert back.channels == motion.channels
    assert np.allclose(back.world()[0], motion.world()[0])


def test_bvh_positions_on_any_joint_replace_its_offset(tmp_path):
    text = ARM.replace("CHANNELS 3 Z", "CHANNELS 4 Yposition Z").replace("0 5 0 0 0 0  0 0 0", "0 5 0 0 0 0  -3 0 0 0")
    text = text.replace("1 5 0 90 0 0  0 90 0", "1 5 0 0 0 0  -4 0 0 0")
    motion = pliant.read_motion(write(tmp_path, text))
    assert motion.world()[0][:, 1].tolist() == [[0, 2, 0], [1, 1, 0]]
    pliant.write(tmp_path / "b.bvh", motion)
    assert np.allclose(pliant.read_motion(tmp_path / "b.bvh").world()[0], motion.world()[0])


def test_bvh_of_a_skeleton_with_turned_frames_keeps_the_joints_places(tmp_path):
    rng = np.random.default_rng(5)
    turns = rotations.normalize(rng.normal(size=(4, 4)))
    bones = Skeleton(("a", "b", "c", "d"), np.array([-1, 0, 1, 1]), rng.normal(size=(4, 3)), turns)
    frames = rotations.normalize(rng.normal(size=(6, 4, 4)))
    motion = Motion(
        bones,
        frames,
        np.repeat(bones.offsets[None], 6, axis=0)
        + rng.normal(size=(6, 4, 3)) * [[[1]], [[0]], [[0]], [[0]], [[0]], [[0]]],
    )
    pliant.write(tmp_path / "t.bvh", motion)
    back = pliant.read_motion(tmp_path / "t.bvh")
    assert np.allclose(back.world()[0], motion.world()[0], atol=1e-6)
    rest = back.skeleton.rest_pose().world()[0]
    assert np.allclose(rest, bones.rest_pose().world()[0], atol=1e-9)


def test_repeated_joint_names_are_numbered(tmp_path):
    with pytest.warns(PliantWarning, match="numbered"):
        motion = pliant.read_motion(write(tmp_path, ARM.replace("JOINT knee", "JOINT hip")))
    assert motion.skeleton.names == ("hip", "hip.2")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("HIERARCHY", "", "starts with"),
        ("OFFSET 0 -2 0", "OFFSET 0 -2", "expected OFFSET x y z"),
        ("OFFSET 0 -2 0", "OFFSET 0 nan 0", "expected OFFSET x y z"),
        ("CHANNELS 3", "CHANNELS 4", "expected a count"),
        ("Zrotation Xrotation Yrotation\n    End", "Zrotation Zrotation Yrotation\n    End", "expected a count"),
        ("Frames: 2", "Frames: 20", "ends after 2 of 20 frames"),
        ("Frames: 2", "Frames: 9999999999999", "ends after 2 of"),
        ("Frames: 2", "Frames: 0", "0 frames"),
        ("Frame Time: 0.04", "Frame Time: 0", "positive number of seconds"),
        ("MOTION", "", "expected a joint"),
        ("1 5 0 90 0 0  0 90 0", "1 5 0", "line 19: a line of frames has 3 numbers; expected 9"),
        ("0 5 0 0 0 0  0 0 0", "0 5 0 0 0 0  0 0 x", 'line 18: found "x"'),
        ("0 5 0 0 0 0  0 0 0", "0 5 0 0 0 0  0 0 inf", "line 18: frame 0"),
    ],
)
def test_broken_bvh_is_named(tmp_path, old, new, message):
    assert old in ARM
    with pytest.raises(FileError, match=message):
        pliant.read_motion(write(tmp_path, ARM.replace(old, new, 1)))


def test_cut_off_bvh_is_named_at_every_length(tmp_path):
    whole = ARM.rstrip()
    for length in range(0, len(whole) - 1, 7):
        path = write(tmp_path, whole[:length])
        with pytest.raises(FileError, match=r"a\.bvh"):
            pliant.read_motion(path)


@pytest.mark.parametrize("suffix", [".tgf", ".json", ".bvh", ".npz"])
def test_skeletons_round_trip(tmp_path, suffix):
    bones = Skeleton.from_positions([[0, 1, 0], [0.1, 2, 0], [0.2, 3, 1 / 3], [1, 2, 0]], [-1, 0, 1, 1], list("abcd"))
    pliant.write(tmp_path / f"s{suffix}", bones)
    back = pliant.read_skeleton(tmp_path / f"s{suffix}")
    assert back.parents.tolist() == bones.parents.tolist()
    assert np.allclose(back.rest_pose().world()[0], bones.rest_pose().world()[0])
    if suffix != ".tgf":
        assert back.names == bones.names


def test_bvh_of_a_long_chain_round_trips(tmp_path):
    count = 1500
    bones = Skeleton.from_positions(np.linspace([0, 0, 0], [0, 15, 0], count), np.arange(count) - 1)
    pliant.write(tmp_path / "rope.bvh", bones)
    back = pliant.read_skeleton(tmp_path / "rope.bvh")
    assert back.names == bones.names
    assert np.array_equal(back.parents, bones.parents)
    assert np.array_equal(back.offsets, bones.offsets)


def test_bvh_of_branches_and_several_roots_round_trips(tmp_path):
    rng = np.random.default_rng(2)
    parents = np.array([-1, 0, 0, 1, 1, -1, 2, 5, 0])
    motion = Motion(
        Skeleton(tuple("abcdefghi"), parents, rng.normal(size=(9, 3)), ends={3: rng.normal(size=3), 0: np.ones(3)}),
        rotations.normalize(rng.normal(size=(4, 9, 4))),
        rng.normal(size=(4, 9, 3)),
    )
    pliant.write(tmp_path / "t.bvh", motion)
    back = pliant.read_motion(tmp_path / "t.bvh")
    own = [back.skeleton.index(name) for name in motion.skeleton.names]
    assert np.allclose(back.world()[0][:, own], motion.world()[0], atol=1e-6)
    assert np.array_equal(back.skeleton.ends[own[3]], motion.skeleton.ends[3])
    assert np.array_equal(back.skeleton.ends[own[0]], np.ones(3))


def test_bvh_joint_names_that_a_line_cannot_hold_are_changed_and_stay_apart(tmp_path):
    names = ("hip", "two\nlines", "two lines", "a  b", "{brace}", "")
    bones = Skeleton.from_positions(np.eye(6, 3), np.arange(6) - 1, names)
    pliant.write(tmp_path / "n.bvh", bones)
    back = pliant.read_skeleton(tmp_path / "n.bvh")
    assert back.names == ("hip", "two lines_1", "two lines", "a b", "(brace)", "joint5")
    assert np.array_equal(back.offsets, bones.offsets)


def test_json_takes_world_positions_in_any_order(tmp_path):
    path = write(
        tmp_path,
        '{"joints": [{"name": "b", "parent": "a", "position": [1, 1, 0]}, {"name": "a", "position": [1, 0, 0]}]}',
        "s.json",
    )
    bones = pliant.read_skeleton(path)
    assert bones.names == ("a", "b")
    assert bones.offsets.tolist() == [[1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "is JSON but no skeleton"),
        ("{", "is not JSON"),
        ('{"joints": [{"name": "a"}]}', 'joint "a": has no "offset"'),
        ('{"joints": [{"name": "a", "offset": [0, 0]}]}', "expected 3 finite numbers"),
        ('{"joints": [{"name": "a", "parent": "b", "offset": [0, 0, 0]}]}', 'parent "b", which is not there'),
        ('{"joints": [{"name": "a", "parent": "a", "offset": [0, 0, 0]}]}', "circle"),
        ('{"joints": [{"name": "a", "offset": [0, 0, true]}]}', "expected 3 finite numbers"),
        (f'{{"joints": [{{"name": "a", "offset": [0, 0, 1{"0" * 400}]}}]}}', "expected 3 finite numbers"),
        (f'{{"joints": [{{"name": "a", "offset": [0, 0, 1{"0" * 9000}]}}]}}', "is not JSON|expected 3 finite numbers"),
        ('{"joints": [{"name": "a", "offset": [0, 0, NaN]}]}', "expected 3 finite numbers"),
    ],
)
def test_broken_json_skeleton_is_named(tmp_path, text, message):
    with pytest.raises(FileError, match=message):
        pliant.read_skeleton(write(tmp_path, text, "s.json"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 0 0 0\n2 0 0 1\n", 'no line "#"'),
        ("#\n", "no joints"),
        ("1 0 0 0\n2 0 0 1\n#\n1 3\n", "line 4: a bone does not join"),
        ("1 0 0 0\n2 0 0 1\n#\n1 2\n2 1\n", "circle"),
        ("1 0 0 0\n2 0 0 1\n3 0 0 2\n#\n1 3\n2 3\n", "two parents"),
    ],
)
def test_broken_tgf_is_named(tmp_path, text, message):
    with pytest.raises(FileError, match=message):
        pliant.read_skeleton(write(tmp_path, text, "s.tgf"))
