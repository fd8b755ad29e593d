"""Handles that move a skeleton in scenes and on the command line: where joints are, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pliant
from pliant import FileError, PliantWarning, Rod, Skeleton, gallery
from pliant.app.scene import read_scene, scene_from
from pliant.app.scene.located_toml import tomllib
from pliant.core import rotations
from pliant.engines.simulate.app.panel_document import Draft
from pliant.engines.simulate.app.scene import metres_per_unit

BONES = Skeleton.from_positions([[-1.8, 0, 0], [-0.6, 0, 0], [0.6, 0, 0], [1.8, 0, 0]], [-1, 0, 1, 2], list("abcd"))
BAR = gallery.bar(500).base
SCENE = """engine = "simulate"
nodes = 100
[shape]
file = "bar.obj"
[skeleton]
file = "bones.json"
[motion]
fps = 10
[motion.rod]
joints = 0.1
[[motion.handles]]
joint = "d"
time = 0.6
position = [1.2, 1.0, 0.3]
[[motion.handles]]
joint = "d"
time = 0.2
position = [1.6, 0.6, 0.0]
[[motion.handles]]
joint = "b"
time = 0.4
rotation = { axis = [0, 0, 1], degrees = 30 }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("handles")
    pliant.write(made / "bar.obj", BAR)
    pliant.write(made / "bones.json", BONES)
    return made


def motion_of(folder, text):
    (folder / "scene.toml").write_text(text)
    return read_scene(folder / "scene.toml").motion


@pytest.fixture(scope="module")
def motion(folder):
    return motion_of(folder, SCENE)


def test_joints_are_where_handles_pull_them(motion):
    positions, frames = motion.world()
    assert len(motion) == 7
    keys = np.array([BONES.rest_world[0][3], [1.6, 0.6, 0], [1.2, 1.0, 0.3]])
    expected = [np.interp(np.arange(7), [0, 2, 6], column) for column in keys.T]
    assert positions[:, 3] == pytest.approx(np.stack(expected, axis=1), abs=1e-9)
    assert positions[:, 0] == pytest.approx(np.tile(BONES.rest_world[0][0], (7, 1)), abs=1e-9)
    angle = np.linalg.norm(rotations.log(rotations.shortest(frames[:, 1])), axis=1)
    assert np.degrees(angle) == pytest.approx([0, 7.5, 15, 22.5, 30, 30, 30], abs=1e-6)


def test_every_frame_is_the_equilibrium_of_the_rod(motion):
    rotation = rotations.from_axis_angle([0, 0, 1], np.radians(30))
    found = Rod(BONES, joints=0.1).solve(handles={"d": [1.2, 1.0, 0.3]}, orientations={"b": rotation})
    assert motion[-1].rotations == pytest.approx(found.pose.rotations, abs=1e-6)
    assert motion[-1].translations == pytest.approx(found.pose.translations, abs=1e-6)


def test_bones_hardly_change_their_length(motion):
    positions, _ = motion.world()
    lengths = np.linalg.norm(np.diff(positions, axis=1), axis=2)
    assert np.abs(lengths / 1.2 - 1).max() < 0.02


@pytest.mark.parametrize("scale", [0.01, 1000.0])
def test_forces_are_newtons_whatever_the_units_of_the_shape(folder, scale):
    """A model in other units, of the same size in metres, is bent alike by the same force."""
    handle = {"joint": "d", "time": 0.1, "force": [0.0, 40.0, 10.0]}
    document = {
        "engine": "simulate",
        "shape": {"file": "bar.obj"},
        "skeleton": {"file": "bones.json"},
        "motion": {"handles": [handle], "rod": {"joints": 0.1, "radius": 0.05}},
        "static": True,
    }
    before = scene_from(document, folder).motion.world()[0][-1]
    assert 0.1 < np.abs(before - BONES.rest_world[0]).max() < 3
    pliant.write(folder / "scaled.obj", BAR.with_points(BAR.points * scale))
    pliant.write(folder / "scaled.json", Skeleton(BONES.names, BONES.parents, BONES.offsets * scale))
    document |= {"shape": {"file": "scaled.obj"}, "skeleton": {"file": "scaled.json"}}
    document["motion"]["rod"]["radius"] *= scale
    after = scene_from(document, folder).motion.world()[0][-1]
    assert after / scale == pytest.approx(before, abs=1e-5)
    assert metres_per_unit(BAR, 2.0) == pytest.approx(2 / np.ptp(BAR.points, axis=0).max())


def test_static_handles_of_one_time_are_one_frame(folder):
    one = SCENE.replace("nodes = 100", "nodes = 100\nstatic = true").replace("time = 0.2", "time = 0.6")
    one = one.replace('joint = "d"\ntime = 0.6\nposition = [1.6, 0.6, 0.0]', 'joint = "c"\ntime = 0.6')
    one = one.replace("time = 0.4", "time = 0.6")
    moved = motion_of(folder, one)
    assert len(moved) == 1
    positions, _ = moved.world()
    assert positions[0, 3] == pytest.approx([1.2, 1.0, 0.3], abs=1e-9)
    assert positions[0, 2] == pytest.approx([0.6, 0, 0], abs=1e-9)  # nothing is given: it stays where it is at rest


def test_bones_that_are_stretched_are_noted(folder):
    with pytest.warns(PliantWarning, match='length of the bone from ".*" by .* %; pull it less far'):
        motion_of(folder, SCENE.replace("[1.2, 1.0, 0.3]", "[4.0, 1.0, 0.3]"))


def test_handles_that_have_no_equilibrium_are_refused(folder, monkeypatch):
    solve = Rod.solve
    monkeypatch.setattr(Rod, "solve", lambda *a, **k: replace(solve(*a, **k), converged=False, reached=0.4))
    with pytest.raises(FileError, match=r"line 11, motion.handles: the bones find no equilibrium at 0 s, after 40 %"):
        motion_of(folder, SCENE)


REFUSED = {
    "no joint": ('joint = "b"', 'joint = "bb"', 'line 20, motion.handles[2].joint: no joint is called "bb"; did you'),
    "a time twice": (
        "time = 0.2",
        "time = 0.6",
        "line 17, motion.handles[1].time: is 0.6, as that of another position",
    ),
    "no position": ("[1.6, 0.6, 0.0]", "[1.6]", "line 18, motion.handles[1].position: is [1.6]; expected three"),
    "an axis of no length": ("[0, 0, 1]", "[0, 0, 0]", "line 22, motion.handles[2].rotation.axis: is [0, 0, 0]"),
    "no such stiffness": (
        "joints = 0.1",
        "joints = -1",
        "line 10, motion.rod.joints: is -1; expected a positive number",
    ),
    "stiffness of no joint": (
        "joints = 0.1",
        "joints = { q = 1 }",
        'line 10, motion.rod.joints.q: no joint is called "q"',
    ),
    "keys too": ("fps = 10", "fps = 10\nkeys = [{ time = 1 }]", "motion: has both keys and handles"),
    "a map": (
        "fps = 10",
        'fps = 10\nmap = { a = "b" }',
        "line 9, motion.map: has no effect: it is for motions of files",
    ),
    "many frames": ("fps = 10", "fps = 1e9", "line 11, motion.handles: 0.6 seconds at 1e+09 fps are"),
}


@pytest.mark.parametrize(("old", "new", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_is_said_with_key_and_line(folder, old, new, message):
    assert SCENE.count(old) == 1
    with pytest.raises(FileError) as refused:
        motion_of(folder, SCENE.replace(old, new))
    assert message in str(refused.value)


def test_a_skeleton_that_handles_do_not_hold_is_refused(folder):
    free = SCENE.replace("joints = 0.1", 'root = "free"').replace("rotation = { axis = [0, 0, 1], degrees = 30 }", "")
    with pytest.raises(FileError, match=r"line 11, motion.handles: the skeleton can spin about the line"):
        motion_of(folder, free)


def test_the_command_line_says_the_same(command_line, folder, monkeypatch, motion):
    monkeypatch.chdir(folder)
    arguments = ["bar.obj", "--skeleton", "bones.json", "--nodes", "100", "--joint-stiffness", "0.1", "--json"]
    arguments += ["--handle", "d@0.6=1.2,1,0.3", "--handle", "d@0.2=1.6,0.6,0", "--handle-rotation", "b@0.4=0,0,1,30"]
    code, _, err = command_line("simulate", *arguments, "-o", "typed.npz")
    assert (code, err) == (0, "")
    (folder / "scene.toml").write_text(SCENE.replace("fps = 10", "fps = 30"))
    assert command_line("run", "scene.toml", "-o", "scene.npz")[0] == 0
    typed, scene = (pliant.read_animation(folder / name) for name in ("typed.npz", "scene.npz"))
    assert typed.points == pytest.approx(scene.points, abs=1e-9)
    assert np.abs(typed.points[-1] - BAR.points).max() > 0.5


def test_the_studio_keeps_handles():
    document = tomllib.loads(SCENE)
    assert Draft(document).document() == document
    assert Draft(document, follows=True).document() == document
