"""The command line as a user meets it: exit codes, one-line errors, files that appear whole."""

import json
import re
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest
from PIL import Image

import pliant
from gltf_maker import rigged
from pliant import Animation, Mesh, gallery

POINTS = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0.5, 0.5, 1]])
PYRAMID = Mesh(POINTS, [[3, 2, 1, 0], [0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]])
CLIP = Animation(PYRAMID, np.stack([POINTS * (1 + k / 10) for k in range(6)]), fps=24)


@pytest.fixture
def run(command_line, monkeypatch, tmp_path):
    """Run one command in a folder of its own: its exit code, what it printed, and what it complained of."""
    monkeypatch.chdir(tmp_path)

    return command_line


@pytest.fixture
def files(tmp_path):
    pliant.write(tmp_path / "pyramid.obj", PYRAMID)
    pliant.write(tmp_path / "clip.glb", CLIP)
    (tmp_path / "cut.obj").write_text("v 0 0 0\nv 1 0 0\nf 1 2 3\n")
    return tmp_path


@pytest.mark.parametrize("suffix", ["ply", "stl", "off", "mesh", "npz", "glb", "gltf"])
def test_convert_a_mesh(run, files, suffix):
    code, out, err = run("convert", "pyramid.obj", f"out.{suffix}")
    assert (code, err) == (0, "")
    assert f"out.{suffix}" in out
    assert pliant.read_mesh(files / f"out.{suffix}").volume == pytest.approx(PYRAMID.volume, rel=1e-5)


def test_convert_takes_the_richest_that_the_output_holds(run, files):
    assert run("convert", "clip.glb", "clip.npz")[0] == 0
    assert isinstance(pliant.read(files / "clip.npz"), Animation)
    assert run("convert", "clip.glb", "first.obj")[0] == 0
    assert np.allclose(pliant.read_mesh(files / "first.obj").points, POINTS)
    assert run("convert", "clip.glb", "frames")[0] == 0
    assert len(pliant.read_animation(files / "frames")) == 6
    assert run("convert", "clip.glb", "seq.obj", "--as", "animation")[0] == 0
    assert len(pliant.read_animation(str(files / "seq_*.obj"))) == 6


def test_info_in_words_and_as_json(run, files):
    code, out, _ = run("info", "pyramid.obj")
    assert code == 0
    assert "5" in out
    code, out, _ = run("info", "pyramid.obj", "--json")
    assert code == 0
    assert json.loads(out)
    assert "NaN" not in out


@pytest.mark.parametrize(
    ("arguments", "size"),
    [
        (["pyramid.obj", "-o", "a.png", "--size", "200x150", "--up", "-x"], (200, 150)),
        (["clip.glb", "-o", "a.png", "--frame", "3", "--size", "200x150", "--view", "30,20"], (200, 150)),
        (["clip.glb", "-o", "a.png", "--frames", "3", "--size", "100x80", "--measure", "edge"], None),
        (["clip.glb", "-o", "a.gif", "--size", "100x80"], (100, 80)),
    ],
)
def test_render(run, files, arguments, size):
    code, _, err = run("render", *arguments)
    assert (code, err) == (0, "")
    image = Image.open(files / arguments[2])
    assert size in (None, image.size)
    assert len(np.unique(np.asarray(image.convert("L")))) > 20  # something is drawn


def test_report_as_table_and_json(run, files):
    code, out, _ = run("report", "clip.glb", "--json")
    assert code == 0
    assert json.loads(out)
    code, out, _ = run("report", "clip.glb")
    assert code == 0
    table, legend = out.split("\n\n")
    explained = {line.split(":")[0].strip() for line in legend.strip().splitlines()}
    columns = re.split(r"\s{2,}", table.splitlines()[0].strip())
    assert explained == set(columns) - {"frame"}


def test_every_measure_is_explained():
    from pliant.app.cli.inspect import MEANINGS
    from pliant.geometry.quality import Report

    assert set(MEANINGS) == {item.name for item in fields(Report)} - {"name", "fps", "diagonal"}


def test_an_open_surface_has_no_volume_to_report(run, files):
    face = gallery.face(500)
    pliant.write(files / "face.npz", pliant.Animation(face.base, face.points[:2]))
    code, out, _ = run("report", "face.npz")
    assert code == 0
    assert "volume" not in out.splitlines()[0]
    assert "it has no inside" in out
    assert "volume" not in json.loads(run("report", "face.npz", "--json")[1])["per_frame"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["frobnicate"], "invalid choice"),
        (["convert", "pyramid.obj"], "required: OUT"),
        (["convert", "none.obj", "a.ply"], "none.obj: there is no such file"),
        (["convert", "cut.obj", "a.ply"], "cut.obj, line 3"),
        (["convert", "pyramid.obj", "a.zyx"], 'unknown format ".zyx"'),
        (["convert", "pyramid.obj", "a.bvh"], "cannot hold a mesh"),
        (["convert", "clip.glb", "a.usda", "--clip", "dance"], "dance"),
        (["convert", "pyramid.obj", "a.ply", "--fps", "-3"], "--fps"),
        (["info", "cut.obj"], "cut.obj, line 3"),
        (["render", "pyramid.obj", "-o", "a.txt"], ".txt"),
        (["render", "pyramid.obj", "-o", "a.png", "--view", "sideways"], "--view"),
        (["render", "pyramid.obj", "-o", "a.png", "--up", "-w"], "--up"),
        (["render", "pyramid.obj", "-o", "a.png", "--size", "big"], "--size"),
        (["render", "pyramid.obj", "-o", "a.png", "--measure", "love"], "love"),
        (["render", "clip.glb", "-o", "a.png", "--frame", "99"], "--frame is 99"),
        (["report", "pyramid.obj", "--rest", "cut.obj"], "cut.obj, line 3"),
    ],
)
def test_bad_input_is_one_line_and_code_2(run, files, arguments, message):
    before = sorted(p.name for p in files.iterdir())
    code, out, err = run(*arguments)
    assert code == 2
    assert message in err
    assert err.startswith("pliant: ")
    assert err.count("\n") == 1
    assert out == ""
    assert sorted(p.name for p in files.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["convert", "pyramid.obj", "a.ply", "--basee=x"],
            'no option --basee; did you mean "--base"? (see: pliant convert',
        ),
        (
            ["render", "clip.glb", "--frmes", "2"],
            'no option --frmes; did you mean "--frames"? (see: pliant render --help)',
        ),
        (["simulate", "--qqqq"], "there is no option --qqqq (see: pliant simulate --help)"),
        (["--verson"], 'did you mean "--version"?'),
    ],
)
def test_an_unknown_option_names_the_closest_and_where_to_look(run, files, arguments, message):
    code, _, err = run(*arguments)
    assert code == 2
    assert message in err


@pytest.mark.parametrize(
    ("name", "output", "more"),
    [
        ("pyramid.obj", "./pyramid.obj", ()),
        ("clip.glb", "clip.glb", ("--as", "mesh")),
        ("frames/frame_*.obj", "frames", ()),
        ("clip.npz", "pyramid.npz", ("--mesh", "pyramid.npz")),
    ],
)
def test_convert_does_not_write_over_what_it_reads(run, files, name, output, more):
    pliant.write(files / "frames", CLIP)
    pliant.write(files / "clip.npz", CLIP)
    pliant.write(files / "pyramid.npz", PYRAMID)
    before = {path: path.read_bytes() for path in files.rglob("*") if path.is_file()}
    code, _, err = run("convert", name, output, *more)
    assert code == 2
    assert "which is read" in err
    assert {path: path.read_bytes() for path in files.rglob("*") if path.is_file()} == before


def test_convert_may_write_beside_a_file_of_a_like_name(run, files):
    pliant.write(files / "pyramid_0001.obj", PYRAMID)
    assert run("convert", "pyramid_0001.obj", "pyramid.obj")[0] == 0
    pliant.write(files / "clip.npz", CLIP)
    pliant.write(files / "walk.ply", PYRAMID)
    assert run("convert", "clip.npz", "walk.ply", "--mesh", "walk.ply")[0] == 0
    assert (files / "walk_0006.ply").exists()


@pytest.mark.parametrize("more", [(), ("--as", "tets")])
def test_convert_notes_that_tetrahedra_are_not_written(run, files, more):
    pliant.write(files / "tet.mesh", pliant.TetMesh(np.eye(4, 3, k=-1), [[0, 1, 2, 3]]))
    code, _, err = run("convert", "tet.mesh", "tet.glb", *more)
    assert code == 0
    assert "note: tet.mesh: only the surface of the tetrahedra is written" in err
    assert run("convert", "tet.mesh", "tet.npz", *more) == (
        0,
        "TetMesh(4 points, 1 tetrahedra) -> tet.npz (1.1 kB)\n",
        "",
    )


def test_an_unknown_output_format_lists_those_that_are_written(run, files):
    _, _, err = run("convert", "pyramid.obj", "a.zyx")
    known = err.rpartition("expected one of ")[2].split()
    assert {".obj", ".glb", ".bvh"} < set(known)
    assert not {".out", ".target"} & set(known)


def test_a_clip_that_does_not_exist_names_the_closest(run, files):
    pliant.write(files / "run.glb", Animation(PYRAMID, CLIP.points, 24.0, "Armature|Gallop"))
    code, _, err = run("convert", "run.glb", "a.npz", "--clip", "Galopp")
    assert code == 2
    assert 'has no clip "Galopp"; did you mean "Gallop"?' in err
    assert run("convert", "run.glb", "a.npz", "--clip", "Gallop")[0] == 0


def test_alone_it_shows_its_help(run):
    code, out, _ = run()
    assert code == 0
    assert "convert" in out


def test_a_fault_of_ours_is_one_line_too(run, files, monkeypatch):
    def fault(*_):
        raise KeyError("oops\nover two lines")

    monkeypatch.setattr(pliant.io.reading, "read_mesh", fault)
    code, _, err = run("convert", "pyramid.obj", "a.ply")
    assert code == 2
    assert "internal error" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "made"),
    [
        (("convert", "pyramid.obj", "a/b/new.ply"), "a/b"),
        (("convert", "pyramid.obj", "new.ply"), ""),
        (("render", "pyramid.obj", "-o", "a/new.png", "--size", "64x64"), "a"),
        (("cage", "pyramid.obj", "-o", "a/new.obj"), "a"),
        (("scene", "--examples", "a/b"), "a"),
        (("scene", "--examples", "a"), ""),
    ],
)
def test_a_folder_that_is_made_is_said(run, files, arguments, made):
    code, _, err = run(*arguments)
    assert code == 0
    said = f"pliant: note: {made}: there is no such folder; it will be made\n"
    assert err.count("no such folder") == bool(made)
    assert not made or said in err
    assert not made or (files / made).is_dir()


def test_an_interrupt_says_so(run, files, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(pliant.io.reading, "read_mesh", interrupt)
    code, _, err = run("convert", "pyramid.obj", "a.ply")
    assert code == 130
    assert err == "pliant: interrupted; nothing was left half-written\n"


def test_the_installed_command_and_the_module_run():
    for command in ([sys.executable, "-m", "pliant", "--version"],):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == f"pliant {pliant.__version__}"


def test_a_closed_pipe_is_no_error(files):
    command = f"{sys.executable} -m pliant info {files / 'pyramid.obj'} | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_a_clip_written_as_one_shape_is_noted(command_line, tmp_path):
    mesh = pliant.gallery.sphere(500)
    clip, one = tmp_path / "clip.npz", tmp_path / "one.obj"
    pliant.write(clip, pliant.Animation(mesh, np.stack([mesh.points] * 3)))
    code, _, err = command_line("convert", str(clip), str(one))
    assert code == 0
    assert "of an animation one shape is written; --as animation writes a file for each" in err
    code, _, err = command_line("convert", str(clip), str(tmp_path / "all.obj"), "--as", "animation")
    assert (code, err) == (0, "")
    assert len(list(tmp_path.glob("all_*.obj"))) == 3


@pytest.mark.parametrize("name", ["box.vtk", "box.xyz"])
def test_uvs_that_a_format_cannot_hold_are_noted_once(command_line, tmp_path, name):
    if name.endswith(".vtk"):
        pytest.importorskip("meshio")
    pliant.write(tmp_path / "box.obj", pliant.gallery.box(500))
    code, _, err = command_line("convert", str(tmp_path / "box.obj"), str(tmp_path / name))
    assert code == 0
    assert err.count("note: ") == err.count("UVs") == 1


def test_the_clip_that_is_taken_of_several_is_noted(command_line, tmp_path):
    rigged().glb(tmp_path / "rig.glb")
    code, _, err = command_line("convert", str(tmp_path / "rig.glb"), str(tmp_path / "clip.npz"))
    assert (code, err.count("of 3 clips; --clip chooses another")) == (0, 1)
    code, _, err = command_line("convert", str(tmp_path / "rig.glb"), str(tmp_path / "clip.npz"), "--clip", "1")
    assert (code, err) == (0, "")
    for clip, left in (("turn", "2 morph targets that the clip does not move are left out"), ("grow", "")):
        _, _, err = command_line(
            "convert", str(tmp_path / "rig.glb"), str(tmp_path / "a.glb"), "--skin", "--clip", clip
        )
        assert left in err
        assert ("morph" in err) == bool(left)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_shell_completes_every_command(command_line, shell):
    pytest.importorskip("shtab")
    code, told, _ = command_line("completion", shell)
    assert code == 0
    assert all(command in told for command in ("blend", "simulate", "transfer", "--self-contact"))
