"""``pliant run`` and ``pliant scene`` as a user meets them: every engine, where results go, what is refused."""

from __future__ import annotations

import json
import os
import shlex
import zipfile

import numpy as np
import pytest

import pliant
from pliant import gallery
from pliant.app.scene import ENGINES
from pliant.app.scene.examples import example_scenes
from pliant.app.scene.json_schema import json_schema
from pliant.app.scene.located_toml import tomllib
from pliant.core.progress import progress
from pliant.engines.transfer import build_cage

BAR = gallery.bar(500)
POINTS = BAR.base.points
TIP, ROOT = int(np.argmax(POINTS[:, 0])), int(np.argmin(POINTS[:, 0]))
BLEND = """engine = "blend"
frames = 3
[shapes]
file = "data/bar.npz"
names = ["straight", "bent 90"]
[springs]
interior = "none"
"""
SCENES = {
    "blend": BLEND,
    "cage": f"""engine = "transfer"
frames = 3
target = {{ file = "data/bar.obj" }}
cage = {{ file = "data/cage.obj" }}
lattice = 20
[[gradients]]
at = {TIP}
turn = {{ axis = [0, 0, 1], degrees = 30 }}
[[positions]]
at = {ROOT}
""",
    "transfer": """engine = "transfer"
controls = "auto"
frames = 3
lattice = 20
[sources.bend]
file = "data/clip.npz"
[target]
file = "data/bar.obj"
[cage]
file = "data/cage.obj"
""",
    "elastic": """engine = "simulate"
nodes = 200
static = true
[shape]
file = "data/bar.obj"
[skeleton]
file = "data/bones.json"
[motion]
file = "data/bend.npz"
""",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Scenes of every engine, and what they name in a folder of its own."""
    folder = tmp_path_factory.mktemp("runs")
    bones = pliant.Skeleton.from_positions([[-1.8, 0, 0], [0, 0, 0], [1.8, 0, 0]], [-1, 0, 1])
    turned = np.tile(bones.rest_rotations, (3, 1, 1))
    turned[:, 1] = pliant.rotations.from_axis_angle([0, 0, 1], np.radians([0, 20, 40]))
    pliant.write(folder / "data" / "bar.npz", BAR)
    pliant.write(folder / "data" / "bar.obj", BAR.base)
    pliant.write(folder / "data" / "clip.npz", BAR.mixed(np.eye(len(BAR))[[0, 1, 2]], fps=24))
    pliant.write(folder / "data" / "cage.obj", build_cage(BAR.base, faces=40))
    pliant.write(folder / "data" / "bones.json", bones)
    pliant.write(folder / "data" / "bend.npz", pliant.Motion(bones, turned, np.tile(bones.offsets, (3, 1, 1))))
    for engine, text in SCENES.items():
        (folder / f"{engine}.toml").write_text(text)
    return folder


def test_every_engine_can_be_run():
    assert {tomllib.loads(text)["engine"] for text in SCENES.values()} == set(ENGINES)


@pytest.mark.parametrize("engine", SCENES)
def test_a_scene_is_run_and_its_clip_stands_beside_it(command_line, files, engine):
    code, out, err = command_line("run", f"{engine}.toml")
    assert (code, err) == (0, "")
    assert f"-> {engine}.glb" in out
    assert f"scene: {engine}.toml" in out
    clip = pliant.read_animation(files / f"{engine}.glb")
    assert len(clip) == 3
    assert np.abs(clip.points[-1] - clip.points[0]).max() > 0.3


@pytest.mark.parametrize("engine", SCENES)
def test_a_scene_says_where_results_go_from_its_own_folder(command_line, files, monkeypatch, tmp_path_factory, engine):
    said = '[output]\nfile = "made/clip.npz"\nreport = "page.html"\n'
    (files / f"{engine}.toml").write_text(f'title = "A bar <bends>"\n{SCENES[engine]}{said}')
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    code, out, err = command_line("run", str(files / f"{engine}.toml"))
    assert (code, err) == (0, f"pliant: note: {files / 'made'}: there is no such folder; it will be made\n")
    assert f"open {files / 'page.html'}" in out
    assert len(pliant.read_animation(files / "made" / "clip.npz")) == 3
    page = (files / "page.html").read_text(encoding="utf-8")
    assert "<h1>A bar &lt;bends&gt;</h1>" in page
    assert page.count("data:image/png") >= 2
    assert not list(elsewhere.iterdir())


def test_what_the_command_says_counts_instead(command_line, files):
    (files / "scene.toml").write_text(f'{BLEND}[output]\nfile = "no.glb"\nreport = "no.html"\n')
    code, *_ = command_line("run", "scene.toml", "-o", "yes.npz", "--report", "yes.html", "--quiet")
    assert code == 0
    assert (files / "yes.npz").is_file()
    assert (files / "yes.html").is_file()
    assert not (files / "no.glb").exists()
    assert not (files / "no.html").exists()


@pytest.mark.parametrize(
    ("scene", "said", "words", "place"),
    [
        ("data/bar.toml", "", [], "line 4, shapes.file"),
        ("scene.toml", '[output]\nfile = "./data/../data/bar.glb"\n', [], "line 4, shapes.file"),
        ("scene.toml", "", ["-o", "data/bar.glb"], "line 4, shapes.file"),
        ("data/ball.toml", '[[obstacles]]\nwhat = "ball.glb"\n', [], "line 9, obstacles[0].what"),
    ],
)
def test_a_result_is_not_written_over_what_the_scene_is_made_of(command_line, files, scene, said, words, place):
    pliant.write(files / "data" / "bar.glb", BAR)
    pliant.write(files / "data" / "ball.glb", gallery.sphere(500))
    before = {path: path.read_bytes() for path in files.rglob("*.glb")}
    text = BLEND.replace("bar.npz", "bar.glb") + said
    (files / scene).write_text(text.replace("data/", "") if scene.startswith("data/") else text)
    code, out, err = command_line("run", scene, *words)
    assert (code, out) == (2, "")
    assert place in err
    assert "which the result would be written over; give another name" in err
    assert {path: path.read_bytes() for path in files.rglob("*.glb")} == before


def test_figures_for_scripts(command_line, files):
    for engine in SCENES:
        code, out, _ = command_line("run", f"{engine}.toml", "--json")
        told = json.loads(out)
        assert code == 0
        assert told["output"] == [f"{engine}.glb"]
        assert told["report"] is None
        assert len(told["frames"]) == 3


def test_a_pose_of_a_cage_alone_is_a_mesh(command_line, files):
    text = SCENES["cage"].replace("frames = 3\n", "") + '[output]\nfile = "pose.obj"\n'
    (files / "scene.toml").write_text(text)
    assert command_line("run", "scene.toml", "--quiet", "--report", "pose.html") == (0, "", "")
    pose = pliant.read_mesh(files / "pose.obj")
    assert abs(pose.points[ROOT] - POINTS[ROOT]).max() < 0.05
    assert (files / "pose.html").is_file()


def test_what_does_not_converge_is_written_and_said(command_line, files):
    (files / "scene.toml").write_text(f"{BLEND}iterations = 1\naccuracy = 1e-12\n")
    code, _, err = command_line("run", "scene.toml", "--quiet")
    assert code == 1
    assert "did not converge" in err
    assert (files / "scene.glb").is_file()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[output]\nfile = "clip.doc"\n', 'line 9, output.file: ".doc" is no format that pliant knows'),
        ('[output]\nfile = "clip.bvh"\n', 'line 9, output.file: ".bvh" does not hold clips'),
        ('[output]\nfile = "data/bar.obj/clip.glb"\n', "line 9, output.file: "),
        ('[output]\nfile = "new"\nreport = "page.pdf"\n', "line 10, output.report: a report is a web page"),
        ("[output]\nfile = 3\n", "line 9, output.file: is 3; expected the name of a clip"),
        ('[output]\nname = "x"\n', "line 9, output.name: there is no such key of output"),
        ("accuracy = 7\n", "line 8, springs.accuracy: is 7; expected a number between 0 and 1"),
        ("[[pulls]]\nvertex = 3\n", "line 8, pulls[0]: has no to or force"),
    ],
)
def test_what_is_wrong_is_one_line_with_the_key_and_nothing_is_written(command_line, files, text, message):
    (files / "scene.toml").write_text(BLEND + text)
    before = sorted(files.rglob("*"))
    for words in (("run", "scene.toml"), ("scene", "--check", "scene.toml")):
        code, out, err = command_line(*words)
        assert (code, out) == (2, "")
        assert err.startswith("pliant: scene.toml, ")
        assert message in err
        assert err.count("\n") == 1
    assert sorted(files.rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run"], "required: SCENE"),
        (["run", "none.toml"], "none.toml: there is no such file"),
        (["run", "data/bar.obj"], "bar.obj"),
        (["run", "blend.toml", "-o", "x.doc"], 'x.doc: ".doc" is no format'),
        (["run", "blend.toml", "--report", "x.pdf"], "x.pdf: a report is a web page"),
        (["scene"], "one of the arguments --check --examples --schema is required"),
        (["scene", "--schema", "--check", "blend.toml"], "not allowed with"),
        (["scene", "--check", "none.toml"], "none.toml: there is no such file"),
        (["scene", "--examples", "blend.toml"], "blend.toml is not a folder"),
    ],
)
def test_bad_usage_is_one_line(command_line, files, words, message):
    code, out, err = command_line(*words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_scene_in_an_archive_needs_a_place_for_its_clip(command_line, files):
    with zipfile.ZipFile(files / "scenes.zip", "w") as archive:
        archive.writestr("scene.toml", 'engine = "blend"\nframes = 2\n[shapes]\ngallery = "bar"\nvertices = 500\n')
    code, _, err = command_line("run", "scenes.zip/scene.toml")
    assert code == 2
    assert "is in an archive, beside which nothing is written; give -o OUT" in err
    assert command_line("run", "scenes.zip/scene.toml", "-o", "out.npz", "--quiet") == (0, "", "")
    assert (files / "out.npz").is_file()


# pliant scene


def test_a_right_scene_is_said_to_be_right(command_line, files):
    for engine, text in SCENES.items():
        named = tomllib.loads(text)["engine"]
        code, out, err = command_line("scene", "--check", f"{engine}.toml")
        assert (code, err) == (0, "")
        assert out == f'{engine}.toml: a scene of the engine "{named}", and right; it makes {engine}.glb\n'
        assert not (files / f"{engine}.glb").exists()


def test_the_schema_is_printed(command_line):
    code, out, err = command_line("scene", "--schema")
    assert (code, err) == (0, "")
    assert json.loads(out) == json_schema()


@pytest.mark.skipif(os.name == "nt", reason="quotes for another shell")
@pytest.mark.parametrize("folder", ["my scenes", "it's $HOME", "-o"])
def test_commands_that_are_printed_name_the_examples(command_line, files, folder):
    code, out, _ = command_line("scene", f"--examples={folder}")
    assert code == 0
    for line in out.splitlines():
        *command, path = shlex.split(line)
        assert command == ["pliant", "run"]
        assert not path.startswith("-")
        assert (files / path).is_file()


def test_examples_are_written_out_and_not_over_ones_that_were_changed(command_line, files):
    code, out, _ = command_line("scene", "--examples", "new/scenes")
    assert code == 0
    assert len(out.splitlines()) == len(example_scenes())
    for name, text in example_scenes().items():
        assert (files / "new" / "scenes" / name).read_text(encoding="utf-8") == text
        assert f"pliant run new/scenes/{name}" in out
    assert command_line("scene", "--examples", "new/scenes")[0] == 0
    (files / "new" / "scenes" / "two_walks.toml").write_text("mine")
    code, out, err = command_line("scene", "--examples", "new/scenes")
    assert (code, out) == (2, "")
    assert "two_walks.toml: is there already, and differs from the example; give another folder" in err
    assert (files / "new" / "scenes" / "two_walks.toml").read_text() == "mine"


def test_progress_as_lines_for_programs(monkeypatch, capsys):
    monkeypatch.setenv("PLIANT_PROGRESS", "lines")
    with progress("solving", quiet=True) as report:
        report(0, 2)
        report(2, 2, "done")
    assert capsys.readouterr().err == "progress 0/2\nprogress 2/2\n"
