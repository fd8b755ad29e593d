"""``pliant simulate`` and ``pliant run`` as a user meets them: what goes in, what comes out, what is refused."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

import pliant
from pliant import ElasticBody, FileError, InputError, Motion, Skeleton, gallery
from pliant.app.cli import main
from pliant.app.scene import read_scene
from pliant.core import rotations
from pliant.engines.simulate.app.report import findings, simulate_report
from pliant.engines.simulate.app.result import SimulateRun
from pliant.engines.simulate.app.scene import ElasticScene
from pliant.engines.simulate.options import SimulateOptions

BAR = gallery.bar(500).base
BONES = Skeleton.from_positions([[-1.8, 0, 0], [0, 0, 0], [1.8, 0, 0]], [-1, 0, 1], ["root", "elbow", "tip"])
FRAMES = 8
TURNS = np.tile(BONES.rest_rotations, (FRAMES, 1, 1))
TURNS[:, 1] = rotations.from_axis_angle([0, 0, 1], np.radians(np.linspace(0, 60, FRAMES)))
BEND = Motion(BONES, TURNS, np.tile(BONES.offsets, (FRAMES, 1, 1)), 30.0)
SMALL = ("--nodes", "200")
SCENE = """engine = "simulate"
title = "A bar bends"
nodes = 200
gravity = 9.81

[shape]
file = "bar.obj"
[skeleton]
file = "bones.json"
[motion]
file = "bend.bvh"
last = 4
[material]
young = 4e5
[[regions]]
name = "tip"
young = 1e5
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The files that all tests read."""
    folder = tmp_path_factory.mktemp("simulate")
    pliant.write(folder / "bar.obj", BAR)
    pliant.write(folder / "bones.json", BONES)
    pliant.write(folder / "bend.bvh", BEND)
    other = replace(BONES, names=("Root", "Ellbow", "q"))
    pliant.write(folder / "other.json", other)
    pliant.write(folder / "far.json", replace(BONES, offsets=BONES.offsets + 50 * np.eye(3)[:, :1] * [1, 0, 0]))
    pliant.write(folder / "flat.obj", BAR.with_points(BAR.points * [1, 1, 0]))
    pliant.write(folder / "holed.obj", pliant.Mesh(BAR.points, [face for k, face in enumerate(BAR.polygons) if k > 2]))
    (folder / "scene.toml").write_text(SCENE)
    (folder / "names.json").write_text(json.dumps({"Ellbow": "elbow", "q": ""}))
    (folder / "list.json").write_text("[1, 2]")
    return folder


@pytest.fixture
def run(made, tmp_path, monkeypatch, capsys):
    """Run a command in a folder with the files; its code, and what it says."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as leaving:
            main(list(words))
        said = capsys.readouterr()
        return int(leaving.value.code or 0), said.out, said.err

    return call


def simulate(run, *words: str):
    return run("simulate", "bar.obj", "-o", "out.glb", *SMALL, "--skeleton", "bones.json", *words)


def test_a_body_follows_its_bones(run, tmp_path):
    code, out, err = simulate(run, "--motion", "bend.bvh", "--report", "page.html")
    assert (code, err) == (0, "")
    assert "frames: 8; every step converged" in out
    clip = pliant.read_animation(tmp_path / "out.glb")
    assert len(clip) == FRAMES
    assert clip.fps == pytest.approx(30)
    tip = BAR.points[:, 0].argmax()
    assert clip.points[-1, tip, 1] > 0.8  # it went up with the bone
    for svg in re.findall(r"<svg.*?</svg>", (tmp_path / "page.html").read_text(), re.DOTALL):
        ET.fromstring(svg)


def test_figures_for_scripts(run):
    code, out, _ = simulate(run, "--motion", "bend.bvh", "--json", "--frames", "2:4")
    told = json.loads(out)
    assert code == 0
    assert len(told["frames"]) == 3
    assert told["converged"]
    assert told["joints"] == ["root", "elbow", "tip"]
    assert told["nodes"] == pytest.approx(200, rel=0.06)
    assert told["metres_per_unit"] == pytest.approx(0.5)
    for frame in told["frames"]:
        assert frame["volume"] == pytest.approx(1, abs=0.05)
        assert frame["inverted"] == 0
        assert set(frame) == {"volume", "energy", "inverted", "overstrained", "iterations", "kinetic", "converged"}


def test_poses_at_rest_do_not_depend_on_each_other(run, tmp_path):
    code, *_ = simulate(run, "--motion", "bend.bvh", "--static")
    every = pliant.read_animation(tmp_path / "out.glb")
    assert code == 0
    code, *_ = run(
        "simulate", "bar.obj", "-o", "one.ply", *SMALL, "--skeleton", "bones.json", "--motion", "bend.bvh", "--static",
        "--frames", "7:7", "--quiet",
    )  # fmt: skip
    assert code == 0
    np.testing.assert_allclose(pliant.read_mesh(tmp_path / "one.ply").points, every.points[7], atol=1e-5)


def test_a_scene_file_gives_the_same_by_either_command(run, tmp_path):
    assert run("simulate", "scene.toml", "-o", "a.npz", "--quiet") == (0, "", "")
    assert run("run", "scene.toml", "-o", "b.npz", "--quiet") == (0, "", "")
    a, b = (pliant.read_animation(tmp_path / name) for name in ("a.npz", "b.npz"))
    assert len(a) == 5
    np.testing.assert_array_equal(a.points, b.points)


def test_options_and_scenes_take_the_same_frames_of_a_motion_that_walks(run, tmp_path):
    """On a longer skeleton: where the frames before the first one led to counts in both."""
    places = BEND.translations + np.linspace(0, 3, FRAMES)[:, None, None] * [[0.2, 0.4, 0], [0, 0, 0], [0, 0, 0]]
    pliant.write(tmp_path / "walk.npz", replace(BEND, translations=places))
    pliant.write(tmp_path / "long.json", replace(BONES, offsets=BONES.offsets * [1.02, 1, 1]))
    lines = 'file = "walk.npz"\nfirst = 3\nlast = 4\n'
    bones = '[skeleton]\nfile = "long.json"\n'
    text = f'engine = "simulate"\nnodes = 200\n[shape]\nfile = "bar.obj"\n{bones}[motion]\n{lines}'
    (tmp_path / "walk.toml").write_text(text)
    words = ("--skeleton", "long.json", "--motion", "walk.npz", "--frames", "3:4", "--quiet")
    assert run("simulate", "bar.obj", "-o", "a.npz", *SMALL, *words) == (0, "", "")
    assert run("simulate", "walk.toml", "-o", "b.npz", "--quiet") == (0, "", "")
    a, b = (pliant.read_animation(tmp_path / name) for name in ("a.npz", "b.npz"))
    np.testing.assert_array_equal(a.points, b.points)
    assert a.points[0].mean(axis=0)[0] > 0.1  # it has gone a way by then


def test_bones_are_found_in_the_mesh_and_hang_by_gravity(run, tmp_path):
    code, out, err = run(
        "simulate", "bar.obj", "-o", "out.glb", *SMALL, "--joints", "3", "--hold", "0.2", "--gravity", "9.81"
    )
    assert (code, err) == (0, "")
    assert len(pliant.read_animation(tmp_path / "out.glb")) == 7
    assert "skeleton: 3 joints" in out


def test_other_names_need_a_map(run, tmp_path):
    words = ("simulate", "bar.obj", "-o", "out.glb", *SMALL, "--skeleton", "other.json", "--motion", "bend.bvh")
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert "--map: the motion has no joint for 2 of the skeleton's 3: Ellbow (close: elbow), q; it has root" in err
    assert not (tmp_path / "out.glb").exists()
    for told in ("names.json", "Ellbow=elbow,q="):
        assert run(*words, "--map", told, "--quiet") == (0, "", "")


def test_size_makes_units_irrelevant(made):
    """The same body in metres and in millimetres moves alike."""
    clips = []
    for size in (1.0, 1000.0):
        shape = BAR.with_points(BAR.points * size)
        bones = replace(BONES, offsets=BONES.offsets * size)
        motion = replace(BEND, skeleton=bones, translations=BEND.translations * size)
        moved = ElasticScene(shape, bones, motion, SimulateOptions(nodes=200, gravity=9.81)).run()
        clips.append(moved.clip.points / size)
    np.testing.assert_allclose(*clips, atol=2e-3)


def test_gravity_pulls_down_the_axis_that_is_up():
    scene = ElasticScene(BAR, BONES, BEND, SimulateOptions(nodes=200, gravity=9.81, static=True))
    body = scene.body()
    others = {up: replace(scene, options=replace(scene.options, up=up)) for up in ("y", "z", "-y")}
    fallen = {up: other.run(body=body).clip.points[0] - BAR.points for up, other in others.items()}
    assert fallen["y"].mean(axis=0)[1] < 0
    assert fallen["-y"].mean(axis=0)[1] > 0
    assert fallen["z"].mean(axis=0)[2] < 0
    assert abs(fallen["z"].mean(axis=0)[1]) < 0.05 * abs(fallen["z"].mean(axis=0)[2])


def test_the_axis_that_is_up_is_that_of_gravity_by_options_and_scenes(run, scene, tmp_path):
    words = ("--motion", "bend.bvh", "--static", "--frames", "0:1", "--gravity", "9.81", "--up=-z", "--quiet")
    assert simulate(run, *words) == (0, "", "")
    rises = pliant.read_animation(tmp_path / "out.glb").points[0] - BAR.points
    assert rises.mean(axis=0)[2] > 10 * abs(rises.mean(axis=0)[1])
    assert scene(f'up = "-z"\n{SCENE}').up == "-z"


@pytest.mark.parametrize("static", ["", "static = true\n"])
def test_an_axis_that_is_up_is_known_to_the_clip_and_forgotten_by_the_shape(scene, static):
    """Whichever door writes the clip; the studio reads a scene again and again with the shape that it has."""
    text = static + SCENE.replace("last = 4", "last = 1")
    known, told = scene(text).shape, scene(f'up = "z"\n{text}')
    assert told.shape.world is known.world is None
    assert told.run().clip.shape.world.up == "z"
    assert scene(text).run().clip.shape.world is None


def test_a_simulation_that_flies_apart_is_written_and_told(run, tmp_path):
    code, _, err = simulate(run, "--motion", "bend.bvh", "--gravity", "1e7", "--stretch-limit", "none")
    assert code == 1
    assert "stopped at step 0" in err
    assert "away from its bones; what was reached is in out.glb" in err
    assert (tmp_path / "out.glb").exists()


def test_obstacles_are_kept_out(run, tmp_path):
    code, out, _ = simulate(run, "--motion", "bend.bvh", "--obstacle", "sphere:1.6,1.7,0,0.5", "--json")
    told = json.loads(out)
    assert code == 0
    assert max(frame["contacts"] for frame in told["frames"]) > 0
    clip = pliant.read_animation(tmp_path / "out.glb")
    assert np.linalg.norm(clip.points - [1.6, 1.7, 0], axis=2).min() > 0.499


REFUSED = {
    "no motion": ((), "--motion: nothing moves the bones; expected a motion, or --hold to"),
    "no such motion": (("--motion", "nope.bvh"), "nope.bvh: there is no such file"),
    "incompressible": (("--motion", "bend.bvh", "--poisson", "0.5"), '"0.5" is not a number above -1 and below 0.5'),
    "no stiffness": (("--motion", "bend.bvh", "--young", "0"), '"0" is not a positive number'),
    "too many frames": (
        ("--motion", "bend.bvh", "--frames", "3:9"),
        "--frames: is 9; there are 8 frames",
    ),
    "no frames": (("--motion", "bend.bvh", "--frames", "5:3"), '"5:3" is not A:B'),
    "static obstacles": (("--motion", "bend.bvh", "--static", "--obstacle", "plane:0,0,0,0,1,0"), "need inertia"),
    **{
        f"static {name}": (
            ("--motion", "bend.bvh", "--static", f"--{name}", "1"),
            f"--{name}: has no effect: static leaves out inertia",
        )
        for name in ("hold", "damping", "drag", "dt", "friction")
    },
    "friction on nothing": (
        ("--motion", "bend.bvh", "--friction", "1"),
        "--friction: has no effect",
    ),
    "no map": (("--motion", "bend.bvh", "--map", "elbow"), '--map is "elbow"; expected JOINT=JOINT'),
    "map of nothing": (("--motion", "bend.bvh", "--map", "elbow=knee"), 'the motion has no joint "knee"'),
    "map of a list": (("--motion", "bend.bvh", "--map", "list.json"), "list.json: expected {"),
    "map in no file": (("--motion", "bend.bvh", "--map", "nope.json"), "nope.json: there is no such file"),
    "few nodes": (("--motion", "bend.bvh", "--nodes", "3"), '"3" is not a whole number from 50'),
    "no page": (("--motion", "bend.bvh", "--report", "page.txt"), "page.txt: a report is a web page"),
    "joints of a file": (("--motion", "bend.bvh", "--joints", "4"), "--joints: has no effect"),
    "a handle without numbers": (("--handle", "tip=1,2"), '--handle: "tip=1,2" is not JOINT=X,Y,Z, such as'),
    "a handle's rotation": (("--handle-rotation", "tip"), '"tip" is not JOINT=X,Y,Z,DEGREES, such as'),
    "a handle at no time": (("--handle", "tip@-1=1,2,3"), "--handle: is -1.0; expected a number, 0 or more"),
    "a handle on nothing": (("--handle", "tipp=1,2,3"), '--handle: no joint is called "tipp"; did you mean "tip"?'),
    "a handle and a motion": (("--motion", "bend.bvh", "--handle", "tip"), "--motion and --handle are both given"),
    "frames of handles": (
        ("--handle", "tip", "--frames", "0:1"),
        "--frames: has no effect: it is for motions of files",
    ),
    "stiffness without handles": (
        ("--motion", "bend.bvh", "--joint-stiffness", "0.1"),
        "--joint-stiffness has no effect without --handle",
    ),
    "gravity in two": (("--motion", "bend.bvh", "--gravity", "1,2"), '"1,2" is not a number or X,Y,Z'),
}


@pytest.mark.parametrize(("words", "said"), REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_is_said_in_one_line_and_nothing_is_written(run, tmp_path, words, said):
    code, out, err = simulate(run, *words)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "out.glb").exists()


BODIES = {
    "bones elsewhere": ("bar.obj", "far.json", "bones start outside the mesh"),
    "no volume": ("flat.obj", "bones.json", "encloses no volume"),
}


@pytest.mark.parametrize(("mesh", "bones", "said"), BODIES.values(), ids=BODIES)
def test_bodies_that_cannot_be_are_refused(run, mesh, bones, said):
    code, out, err = run("simulate", mesh, "-o", "out.glb", "--skeleton", bones, "--motion", "bend.bvh", *SMALL)
    assert (code, out) == (2, "")
    assert said in err


def test_a_mesh_with_a_small_hole_works(run, tmp_path):
    words = ("simulate", "holed.obj", "-o", "out.glb", *SMALL, "--skeleton", "bones.json", "--motion", "bend.bvh")
    assert run(*words, "--quiet") == (0, "", "")


def test_a_scene_of_another_engine_is_sent_to_its_command(run):
    code, _, err = run("transfer", "scene.toml", "-o", "out.glb")
    assert code == 2
    assert 'is a scene of the engine "simulate"; use: pliant run' in err


@pytest.mark.parametrize(
    "words",
    ["--young 3", "--gravity 0", "--up z", "--hold 0", "--friction 0", "--static", "--obstacle sphere:0,0,0,1"],
)
def test_what_a_scene_file_says_is_not_said_beside_it(run, words):
    code, _, err = run("simulate", "scene.toml", "-o", "out.glb", *words.split())
    assert code == 2
    assert f"{words.split()[0]} was given beside a scene file; write it into the file" in err


@pytest.fixture
def scene(made):
    def read(text: str, **changes):
        (made / "read.toml").write_text(text)
        return read_scene(made / "read.toml", **changes)

    return read


def test_a_scene_says_what_the_body_is(scene):
    found = scene(SCENE, nodes=150)
    assert isinstance(found, ElasticScene)
    assert found.material.young == 4e5
    assert [(region, made.young) for region, made in found.regions] == [("tip", 1e5)]
    assert len(found.motion) == 5
    assert found.options.nodes == 150
    assert found.unit == pytest.approx(0.5)
    assert replace(found, options=replace(found.options, size="file")).unit == 1.0
    body = found.body()
    assert isinstance(body, ElasticBody)
    assert body.operator.mu.min() < 0.5 * body.operator.mu.max()


def test_a_region_is_made_as_the_body_in_all_that_it_does_not_say(scene):
    found = scene(SCENE.replace("young = 4e5", "young = 4e5\npoisson = 0.3\ndensity = 800"))
    assert found.regions[0][1] == pliant.Material(1e5, 0.3, 800)
    found = scene(SCENE.replace("young = 1e5", "density = 500"))
    assert found.regions[0][1] == pliant.Material(4e5, 0.4, 500)


SCENES = {
    "key": (SCENE.replace("gravity = 9.81", "gravty = 9.81"), "line 4, gravty", 'did you mean "gravity"?'),
    "poisson": (SCENE.replace("young = 4e5", "poisson = 0.5"), "line 14, material.poisson", "below 0.5"),
    "region": (SCENE.replace('name = "tip"', "radius = 2"), "line 15, regions[0]", "has no name or map or centre"),
    "motion": (SCENE.replace('file = "bend.bvh"', ""), "motion", "nothing moves the bones"),
    "frames": (SCENE.replace("last = 4", "last = 8"), "motion.last", "there are 8 frames"),
    "map": (SCENE.replace("last = 4", 'map = { elbow = "knee" }'), "motion.map", 'no joint "knee"'),
    "names": (SCENE.replace("bones.json", "other.json"), "line 10, motion.map", "no joint for 2 of the skeleton's 3"),
    "static": (f'static = true\n{SCENE}[[obstacles]]\nwhat = "sphere:0,0,0,1"', "read.toml", "need inertia"),
    "static drag": (f"static = true\ndrag = 0\n{SCENE}", "line 2, drag", "has no effect: static leaves out"),
    "solid": (
        SCENE.replace("gravity = 9.81", '[[obstacles]]\nwhat = "sphere:0,0,0"'),
        "obstacles[0]",
        "sphere:X,Y,Z,R",
    ),
    "both": (SCENE.replace("last = 4", 'gallery = "creature_walk"'), "motion", "both file and gallery"),
}


@pytest.mark.parametrize(("text", "place", "said"), SCENES.values(), ids=SCENES)
def test_what_is_wrong_in_a_scene_is_said_with_its_line(scene, text, place, said):
    with pytest.raises(FileError) as error:
        scene(text)
    assert place in str(error.value)
    assert said in str(error.value)


def test_regions_are_looked_up_when_the_body_is_made(scene):
    with pytest.raises(
        InputError,
        match=r'read\.toml, line 16, regions\[0\]\.name: no vertex group, face label, colour or joint is called "tipp"',
    ):
        scene(SCENE.replace('name = "tip"', 'name = "tipp"')).body()


def test_scenes_of_the_gallery_and_of_meshes_that_stand_still(scene):
    text = 'engine = "simulate"\nnodes = 400\n[shape]\ngallery = "dinosaur"\nvertices = 800\n'
    found = scene(f'{text}[skeleton]\ngallery = "dinosaur"\n[motion]\ngallery = "dinosaur_walk"\nlast = 2\n')
    assert len(found.motion) == 3
    still = scene(text.replace("nodes", "hold = 0.1\nnodes") + '[skeleton]\ngallery = "dinosaur"\n')
    assert len(still.run().clip) == 4


def test_reports_tell_of_swing_and_contact():
    found = ElasticScene(BAR, BONES, BEND, SimulateOptions(nodes=200)).run()
    run = SimulateRun(found.body, found.clip, found.frames, BEND, settings={"material": "soft"})
    page = simulate_report(run, title="Bend")
    assert page.count("<svg") == 5
    assert 'src="http' not in page
    assert run.lag[-1] > 0
    assert run.failure == ""
    assert any("Nothing is turned inside out" in sentence for sentence in findings(run))
    stopped = SimulateRun(found.body, found.clip, found.frames, stopped="stopped at step 3, after 0.1 s: why")
    assert stopped.failure == "stopped at step 3, after 0.1 s: why"
    assert not stopped.to_dict()["converged"]


@pytest.mark.data
@pytest.mark.slow
def test_a_rigged_model_walks_by_its_own_clip(data, tmp_path, capsys):
    model = data / "models/dino/Velociraptor.glb"
    with pytest.raises(SystemExit) as leaving:
        main(["simulate", str(model), "--clip", "walk", "-o", str(tmp_path / "walk.glb"), "--nodes", "800", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert leaving.value.code == 0
    assert len(told["frames"]) > 10
    assert all(abs(frame["volume"] - 1) < 0.1 for frame in told["frames"])
    assert max(frame["inverted"] for frame in told["frames"]) < 0.01 * told["quadrature_points"]
    clip = pliant.read_animation(tmp_path / "walk.glb")
    rigged = pliant.read_animation(model, clip="Walk", fps=clip.fps)
    away = np.linalg.norm(clip.points - rigged.points[: len(clip)], axis=2)
    assert np.median(away) < 0.02 * clip.shape.diagonal  # where its own weights would carry it


def test_flesh_that_fails_is_said_and_not_called_converged(run):
    soft = ("--motion", "bend.bvh", "--json", "--young", "3e3", "--gravity", "9.81", "--brace", "0")
    code, out, _ = simulate(run, *soft)
    assert code == 0
    assert not json.loads(out)["warnings"]
    code, out, err = simulate(run, *soft, "--stretch-limit", "none")
    told = json.loads(out)
    assert code == 1
    assert not told["converged"]
    assert "the volume is" in err
    assert "use stiffer flesh" in err
    assert any(re.match(r"volume: .* of that at rest", sentence) for sentence in told["warnings"])


def test_a_jump_is_said(run, tmp_path):
    """In the text, in the JSON and in the report."""
    turns = np.concatenate([TURNS[-1:], np.repeat(TURNS[:1], FRAMES - 1, axis=0)])
    pliant.write(tmp_path / "jump.bvh", replace(BEND, rotations=turns))
    report = tmp_path / "report.html"
    code, out, err = simulate(run, "--motion", "jump.bvh", "--json", "--pre-roll", "0.1", "--report", str(report))
    assert code == 0
    assert "jump: at frame 1 the bone" in err
    assert json.loads(out)["warnings"][0].startswith("jump: at frame 1 the bone")
    assert "jump: at frame 1 the bone" in report.read_text()


def test_a_finer_accuracy_takes_more_iterations(run):
    rough, fine = (
        json.loads(simulate(run, "--motion", "bend.bvh", "--json", "--accuracy", accuracy)[1])["frames"]
        for accuracy in ("0.3", "1e-5")
    )
    assert sum(frame["iterations"] for frame in fine) > 1.5 * sum(frame["iterations"] for frame in rough)
    code, _, err = simulate(run, "--motion", "bend.bvh", "--accuracy", "0")
    assert code == 2
    assert "--accuracy" in err


def test_a_motion_is_mapped_onto_bones_that_are_found(command_line, tmp_path):
    """Without a skeleton: limbs follow limbs; the map is shown, and --map changes it."""
    body, walk = gallery.creature(900).base, gallery.creature_walk(2)
    pliant.write(tmp_path / "body.obj", pliant.Mesh(body.points, body.polygons))
    mocap = {name: name.title() for name in walk.skeleton.names}
    pliant.write(tmp_path / "walk.bvh", replace(walk, skeleton=replace(walk.skeleton, names=tuple(mocap.values()))))
    arguments = ("simulate", str(tmp_path / "body.obj"), "--motion", str(tmp_path / "walk.bvh"), "--static", *SMALL)
    code, out, _ = command_line(*arguments, "-o", str(tmp_path / "out.npz"), "--map", "arm.left.elbow=Hand.L", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["map"]["leg.left.knee"] == "Shin.L"
    assert found["map"]["arm.left.elbow"] == "Hand.L"
    assert len(found["joints"]) <= 60
