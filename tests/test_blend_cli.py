"""``pliant blend`` as a user meets it: what goes in, what comes out, what is told, and what is refused."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import pliant
from pliant import Mesh, Shapes, WeightClip, gallery
from pliant.engines.blend.options import InteriorMethod, Method, Model
from pliant.io import BY_SUFFIX
from pliant.io.gltf import write_shapes

BAR = gallery.bar(500)
NAMES = ("straight", "bent 90", "bent 180")
SHAPES = Shapes.of([BAR.named(name) for name in NAMES], NAMES)
TALK = WeightClip(NAMES, np.array([[0, 0, 0], [0, 0.3, 0.1], [0, 0.6, 0], [0, 0.2, 0.4]]), 12.0, "talk")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The files that all tests read."""
    folder = tmp_path_factory.mktemp("shapes")
    for name, mesh in zip("abc", SHAPES, strict=True):
        pliant.write(folder / f"{name}.obj", mesh)
    pliant.write(folder / "rig.glb", SHAPES)
    pliant.write(folder / "rig.npz", SHAPES)
    pliant.write(folder / "ball.obj", gallery.sphere(500))
    pliant.write(folder / "again" / "a.obj", SHAPES[2])
    pliant.write(folder / "poses", SHAPES)
    write_shapes(folder / "talking.glb", SHAPES, TALK)
    return folder


@pytest.fixture
def run(command_line, files):
    """Run ``pliant blend``: its exit code, what it printed, and what it complained of."""
    return lambda *arguments: command_line("blend", *arguments)


QUICK = ("--interior", "none", "--frames", "3")


def test_from_the_first_shape_to_the_last(run):
    code, out, err = run("a.obj", "c.obj", "-o", "out.npz", *QUICK)
    assert (code, err) == (0, "")
    clip = pliant.read_animation("out.npz")
    assert len(clip) == 3
    for frame, shape in ((0, 0), (2, 2)):
        assert np.abs(clip.points[frame] - SHAPES.points[shape]).max() < 1e-6 * SHAPES.base.diagonal
    assert abs(clip[1].volume / SHAPES.base.volume - 1) < 0.1
    assert "all frames converged" in out
    assert "out.npz" in out


def test_shapes_that_stand_along_z_are_upright_in_gltf(run):
    """OBJ files do not say so; `--up z` does."""
    plain, upright = (
        run("a.obj", "c.obj", "-o", name, *QUICK, *up) for name, up in (("y.glb", ()), ("z.glb", ("--up", "z")))
    )
    assert plain[0] == upright[0] == 0
    y, z = (pliant.read_animation(name).points for name in ("y.glb", "z.glb"))
    np.testing.assert_allclose(z, np.stack([y[..., 0], y[..., 2], -y[..., 1]], axis=-1), atol=1e-5)


def test_the_first_file_is_the_base_whatever_it_is_called(run):
    os.rename("a.obj", "base.obj")
    assert run("c.obj", "base.obj", "-o", "out.npz", *QUICK)[0] == 0
    assert np.allclose(pliant.read_animation("out.npz").points[0], SHAPES.points[2])
    assert run("./c.obj", "base.obj", "-o", "out.npz", "--base", "base", *QUICK)[0] == 0
    assert np.allclose(pliant.read_animation("out.npz").points[0], SHAPES.points[0])


@pytest.mark.parametrize("rig", ["rig.glb", "rig.npz", "poses", "poses/*.obj"])
def test_a_rig_or_a_folder_of_shapes_with_weights(run, rig):
    weights = {"bent 90": [0, 0.4], "bent 180": [0, 0.3]}
    with open("w.json", "w") as file:
        json.dump(weights, file)
    code, _, err = run(rig, "-o", "out.npz", "--weights", "w.json", "--interior", "none", "--base", "straight")
    assert (code, err) == (0, "")
    clip = pliant.read_animation("out.npz")
    assert len(clip) == 2
    expected = pliant.Blendshapes(SHAPES, interior="none").solve({"bent 90": 0.4, "bent 180": 0.3}).points
    assert np.abs(clip.points[1] - expected).max() < 1e-3 * SHAPES.base.diagonal  # glTF holds single precision


def test_sparse_targets_with_their_base(run):
    for name, points in (("left", SHAPES.points[1]), ("right", SHAPES.points[2])):
        rows = [f"{k} {x} {y} {z}" for k, (x, y, z) in enumerate(points - SHAPES.base.points)]
        with open(f"{name}.target", "w") as file:
            file.write("\n".join(rows))
    code, _, err = run("left.target", "right.target", "--base", "a.obj", "-o", "out.npz", *QUICK)
    assert (code, err) == (0, "")
    assert np.abs(pliant.read_animation("out.npz").points[2] - SHAPES.points[2]).max() < 1e-6


@pytest.mark.parametrize("output", ["out.glb", "out.usda", "out.pc2", "out.npz", "out.obj", "out"])
def test_the_suffix_decides_what_is_written(run, output):
    if output.endswith(".usda"):
        pytest.importorskip("pxr", reason="USD is an extra")
    code, out, err = run("a.obj", "c.obj", "-o", output, *QUICK)
    assert (code, err) == (0, "")
    clip = pliant.read_animation("out_*.obj" if output == "out.obj" else output)
    assert len(clip) == 3
    assert np.abs(clip.points[0] - SHAPES.points[0]).max() < 1e-5
    assert "out" in out.splitlines()[-1]


def test_one_row_gives_one_frame_and_a_plain_mesh(run, files):
    (files / "w.csv").write_text("c\n0.5\n")
    assert run("a.obj", "c.obj", "-o", "half.obj", "--weights", "w.csv", "--interior", "none")[0] == 0
    assert pliant.read_mesh("half.obj").volume == pytest.approx(SHAPES.base.volume, rel=0.1)
    assert run("a.obj", "c.obj", "-o", "half.pc2", "--weights", "w.csv", "--interior", "none")[0] == 0
    assert len(pliant.read_animation("half.pc2")) == 1


def test_rows_are_keys_where_frames_are_asked_for(run, files):
    (files / "w.csv").write_text("c\n0\n1\n")
    code, out, _ = run(
        "a.obj", "c.obj", "-o", "x.npz", "--weights", "w.csv", "--interior", "none", "--frames", "5", "--json"
    )
    assert code == 0
    assert [frame["weights"][1] for frame in json.loads(out)["frames"]] == [0, 0.25, 0.5, 0.75, 1]


RAW = ("--interior", "none", "--accuracy", "1e-2")


def test_the_rigs_own_clip_is_solved_at_its_own_rate(run):
    code, out, err = run("talking.glb", "-o", "out.npz", *RAW)
    assert (code, err) == (0, "")
    assert 'weights: clip "talk" of talking.glb, 4 frames at 12 fps' in out
    clip = pliant.read_animation("out.npz")
    assert clip.fps == 12
    expected = pliant.Blendshapes(pliant.read_shapes("talking.glb"), interior="none").animate(TALK, accuracy=1e-2)
    assert expected.fps == 12
    assert np.abs(clip.points - expected.points).max() < 1e-6 * SHAPES.base.diagonal
    assert np.abs(clip.points - SHAPES.mixed(TALK.values + [[1, 0, 0]] * (1 - TALK.values.sum(axis=1))[:, None])
                  .points).max() > 0.01 * SHAPES.base.diagonal  # fmt: skip


@pytest.mark.parametrize(
    ("words", "rows", "fps"),
    [
        ((), TALK.values, 12),
        (("--clip", "alk"), TALK.values, 12),
        (("--clip", "0", "--fps", "24"), TALK.resampled(24).values, 24),
        (("--frames", "2"), TALK.values[[0, -1]], 12),
        (("--clip", "none", "--frames", "3"), np.eye(3), 30),
        (("--weights", "talking.glb", "--clip", "talk"), TALK.values, 12),
        (("--shapes", "straight,bent 90"), TALK.values[:, :2], 12),
        (("--base", "bent 90"), TALK.values[:, [1, 0, 2]], 12),
    ],
)
def test_which_weights_count(run, words, rows, fps):
    code, out, _ = run("talking.glb", "-o", "x.npz", *words, *RAW, "--json")
    assert code == 0
    figures = json.loads(out)
    base = figures["shapes"].index("straight")
    found = np.array([frame["weights"] for frame in figures["frames"]])
    others = np.delete(np.arange(found.shape[1]), base)
    assert np.allclose(found[:, others], np.asarray(rows)[:, others], atol=1e-6)
    assert np.allclose(found.sum(axis=1), 1)
    assert figures["fps"] == fps


def test_the_clip_of_another_rig(run, files):
    code, _, err = run("rig.npz", "-o", "x.npz", "--weights", "talking.glb", *RAW)
    assert (code, err) == (0, "")
    assert pliant.read_animation("x.npz").fps == 12
    (files / "take.csv").write_text("Timecode,BlendshapeCount,Bent90,HeadYaw\n" + "0:0:0:1,1,0.5,3\n" * 2)
    code, _, err = run("rig.npz", "-o", "x.npz", "--weights", "take.csv", *RAW)
    assert code == 0
    assert err == "pliant: note: take.csv: left out 1 that move no shape here: HeadYaw\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("talking.glb", "--clip", "walk"), 'talking.glb: has no clip "walk"; did you mean "talk"'),
        (("a.obj", "c.obj", "--clip", "walk"), "--clip: has no effect: the shapes are in no file with clips"),
        (("rig.glb", "--clip", "walk"), "rig.glb: holds no animation"),
        (("talking.glb", "--clip", "talk", "--weights", "w.csv"), "--clip: has no effect: w.csv is a table"),
        (("a.obj", "c.obj", "--weights", "rig.glb"), "rig.glb: holds no clip that moves morph targets"),
        (("a.obj", "c.obj", "--weights", "talking.glb"), "moves bent 90, bent 180, none of the shapes here"),
        (("rig.glb", "--shapes", "straight,crooked"), "there are straight, bent 90, bent 180"),
    ],
)
def test_clips_that_are_not_there(run, files, words, message):
    (files / "w.csv").write_text("bent 90\n1\n")
    code, _, err = run(*words, "-o", "x.npz")
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_a_clip_in_which_nothing_is_blended_is_noted(run):
    write_shapes(Path("poses.glb"), SHAPES, WeightClip(NAMES, np.eye(3), 10.0))
    code, _, err = run("poses.glb", "-o", "x.npz", *RAW)
    assert code == 0
    assert "every frame of its clip at 10 fps is one of the shapes as it is; a higher --fps has frames between" in err
    write_shapes(Path("poses.glb"), SHAPES, WeightClip(NAMES, np.zeros((3, 3)), 10.0))
    assert 'the clip "weights" does not move the weights' in run("poses.glb", "-o", "x.npz", "--clip", "0", *RAW)[2]


def test_in_betweens_and_combinations_by_name(run, files):
    """The same words in a scene, on the command line and in Python."""
    moved = SHAPES.points - SHAPES.base.points
    fix = 0.1 * moved[2][:, ::-1]
    points = SHAPES.base.points + np.stack([0 * fix, moved[1], moved[2], 0.2 * moved[1], fix])
    named = Shapes(SHAPES.base, points, ("rest", "bend40", "bend", "lift", "bend_lift"))
    pliant.write("derived.npz", named)
    (files / "w.csv").write_text("bend,lift\n0.4,0\n1,1\n0.7,0.5\n")
    code, out, err = run("derived.npz", "-o", "x.npz", "--weights", "w.csv", "--interior", "none")
    assert (code, err) == (0, "")
    assert "between: bend40 (bend at 0.4)" in out
    assert "combined: bend_lift (bend + lift, corrective)" in out
    clip = pliant.read_animation("x.npz")
    assert np.abs(clip.points[0] - points[1]).max() < 1e-5
    assert np.abs(clip.points[1] - (points[2] + points[3] + points[4] - 2 * points[0])).max() < 1e-5
    expected = pliant.Blendshapes(named, interior="none").solve({"bend": 0.7, "lift": 0.5}).points
    assert np.array_equal(clip.points[2], expected)
    raw = ("--weights", "w.csv", "--interior", "none", "--inbetweens", "none", "--combinations", "none")
    code, out, _ = run("derived.npz", "-o", "y.npz", *raw)
    assert code == 0
    assert "between:" not in out
    assert np.abs(pliant.read_animation("y.npz").points[0] - points[1]).max() > 1e-2
    scene = 'engine = "blend"\nweights = "w.csv"\n[shapes]\nfile = "derived.npz"\ncombinations = "none"\n'
    (files / "s.toml").write_text(scene + '[springs]\ninterior = "none"\n')
    assert run("s.toml", "-o", "z.npz")[0] == 0
    assert np.abs(pliant.read_animation("z.npz").points[0] - points[1]).max() < 1e-5
    assert np.abs(pliant.read_animation("z.npz").points[1] - clip.points[1]).max() > 1e-2


def test_some_of_a_rigs_shapes(run):
    code, out, _ = run("rig.npz", "-o", "x.npz", "--shapes", "Bent 180, straight", "--json", *QUICK)
    assert code == 0
    assert json.loads(out)["shapes"] == ["bent 180", "straight"]
    assert np.allclose(pliant.read_animation("x.npz").points[0], SHAPES.points[2])


def test_the_model_is_passed_on(run):
    clips = []
    for model in get_args(Model):
        assert run("a.obj", "c.obj", "-o", "x.npz", "--model", model, *QUICK)[0] == 0
        clips.append(pliant.read_animation("x.npz").points)
    assert np.abs(clips[0][1] - clips[1][1]).max() > 1e-4
    assert np.abs(clips[0][2] - clips[1][2]).max() < 1e-6


def test_without_frames_each_shape_is_met(run):
    code, out, _ = run("a.obj", "b.obj", "c.obj", "-o", "x.npz", "--interior", "none", "--json", "--accuracy", "1e-2")
    assert code == 0
    weights = np.array([frame["weights"] for frame in json.loads(out)["frames"]])
    assert len(weights) == 35
    assert np.abs(weights - np.eye(3)[[1]]).sum(axis=1).min() < 1e-12


def test_json_has_it_all_and_nothing_else_is_printed(run):
    code, out, err = run("a.obj", "c.obj", "-o", "x.npz", "--json", *QUICK)
    assert (code, err) == (0, "")
    figures = json.loads(out)
    assert figures["output"] == ["x.npz"]
    assert figures["shapes"] == ["a", "c"]
    assert figures["vertices"] == len(SHAPES.base.points)
    assert figures["interior"] == "none"
    assert figures["converged"] is True
    assert len(figures["frames"]) == 3
    assert {"iterations", "residual", "converged", "inverted", "weights", "message"} <= set(figures["frames"][1])
    assert figures["seconds_a_frame"] > 0


def test_quiet_says_nothing(run):
    assert run("a.obj", "c.obj", "-o", "x.npz", "--quiet", *QUICK) == (0, "", "")


def test_what_does_not_converge_is_written_and_said(run):
    code, out, err = run("a.obj", "c.obj", "-o", "x.npz", "--iterations", "1", "--accuracy", "1e-9", "--quiet", *QUICK)
    assert code == 1
    assert out == ""
    assert re.fullmatch(r"pliant: [123] of 3 frames did not converge \(.*1.*\); what was reached is in x.npz\n", err)
    assert len(pliant.read_animation("x.npz")) == 3


def test_a_report_on_the_way(run, files):
    code, out, _ = run("a.obj", "c.obj", "-o", "x.npz", "--report", "r.html", "--view", "-30,20", *QUICK)
    assert code == 0
    assert "open r.html" in out
    assert "<h1>a to c</h1>" in (files / "r.html").read_text(encoding="utf-8")


def test_pulled_and_dragged_vertices(run):
    tip = int(np.argmax(SHAPES.base.points[:, 0]))
    place = SHAPES.base.points[tip] + [0, 0.05, 0]
    at = f"{tip}:{','.join(map(repr, place.tolist()))}"
    assert run("a.obj", "c.obj", "-o", "x.npz", "--pull", at, "--accuracy", "1e-2", *QUICK)[0] == 0
    pulled = pliant.read_animation("x.npz").points[0]
    assert np.abs(pulled[tip] - place).max() < 1e-9
    assert run("a.obj", "c.obj", "-o", "y.npz", "--force", f"{tip}:0,0.5,0", "--accuracy", "1e-2", *QUICK)[0] == 0
    assert np.abs(pliant.read_animation("y.npz").points[0] - SHAPES.points[0]).max() > 1e-3


def test_pins_on_straight_lines_and_on_paths(run, files):
    tip = int(np.argmax(SHAPES.base.points[:, 0]))
    (files / "pins.txt").write_text(f"{tip}\n")
    assert run("a.obj", "c.obj", "-o", "x.npz", "--pin", "pins.txt", *QUICK)[0] == 0
    middle = (SHAPES.points[0] + SHAPES.points[2])[tip] / 2
    assert np.abs(pliant.read_animation("x.npz").points[1, tip] - middle).max() < 1e-9
    path = SHAPES.points[:, tip] + np.array([[0, 0.02, 0], [0, 0.1, 0], [0, 0, 0.05]])
    (files / "pins.json").write_text(json.dumps({"vertices": [tip], "path": path[:, None].tolist()}))
    assert run("a.obj", "c.obj", "-o", "x.npz", "--pin", "pins.json", "--accuracy", "1e-2", *QUICK)[0] == 0
    assert np.abs(pliant.read_animation("x.npz").points[:, tip] - path).max() < 1e-9


@pytest.mark.parametrize("anchor", ["auto", "none", "0,0,0", "-0.1,0,0"])
def test_anchors(run, anchor):
    lifted = SHAPES[2].with_points(SHAPES.points[2] + [0, 3, 0])  # nothing is static
    pliant.write("lifted.obj", lifted)
    code, out, err = run("a.obj", "lifted.obj", "-o", "x.npz", "--anchor", anchor, "--frames", "3", "--json")
    assert (code, err) == (0, "")
    clip = pliant.read_animation("x.npz")
    assert np.abs(clip.points[2] - lifted.points).max() < 1e-6 * SHAPES.base.diagonal
    anchors = json.loads(out)["anchors"]
    assert len(anchors) == (anchor != "none")
    if "," in anchor:
        assert np.allclose(anchors[0], [float(x) for x in anchor.split(",")])


def test_shapes_that_are_the_base_work_with_a_note(run):
    code, _, err = run("a.obj", "a.obj", "-o", "x.npz", *QUICK)
    assert code == 0
    assert err == "pliant: note: the same as the base, so its weight changes nothing: a\n"
    assert np.abs(pliant.read_animation("x.npz").points - SHAPES.base.points).max() < 1e-9


def test_files_of_one_name_are_told_apart(run, files):
    (files / "w.csv").write_text("a_1\n1\n")
    code, out, _ = run("a.obj", "again/a.obj", "-o", "x.npz", "--weights", "w.csv", "--interior", "none", "--json")
    assert code == 0
    assert json.loads(out)["shapes"] == ["a", "a_1"]


def test_percentages_are_noticed(run, files):
    (files / "w.csv").write_text("c\n0\n50\n")
    _, _, err = run("a.obj", "c.obj", "-o", "x.npz", "--weights", "w.csv", "--interior", "none", "--iterations", "1")
    assert "weights go up to 50; 1, not 100, is a shape in full" in err


def test_several_processes_give_the_same(run):
    assert run("a.obj", "c.obj", "-o", "one.npz", *QUICK)[0] == 0
    assert run("a.obj", "c.obj", "-o", "two.npz", "--jobs", "2", *QUICK)[0] == 0
    one, two = (pliant.read_animation(f"{name}.npz").points for name in ("one", "two"))
    assert np.abs(one - two).max() < 1e-9


def test_an_anchor_where_static_vertices_hold_is_refused(run):
    code, _, err = run("a.obj", "c.obj", "-o", "x.npz", "--anchor", "0,0,0", *QUICK)
    assert code == 2
    assert "has fixed vertices (pins or static ones)" in err


TEXTS = {
    "empty.csv": "",
    "ragged.csv": "b,c\n0,1\n0\n",
    "typo.csv": "straigth,c\n0,1\n",
    "nan.csv": "c\nnan\n",
    "cut.json": '{"c": [0, 1',
    "pins.txt": "3 x",
    "far.txt": "99999",
    "path.json": '{"vertices": [0], "path": [[[0, 0, 0]]]}',
    "cut.obj": "v 0 0 0\nv 1 0 0\nf 1 2 3\n",
    "wide.csv": "1,2,3,4\n",
}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.obj", "-o", "x.glb"], "a.obj: holds one shape"),
        (["a.obj", "ball.obj", "-o", "x.glb"], "ball.obj: does not match a.obj"),
        (["a.obj", "cut.obj", "-o", "x.glb"], "cut.obj, line 3"),
        (["a.obj", "none.obj", "-o", "x.glb"], "none.obj: there is no such file"),
        (["a.obj", "c.obj"], "required: -o/--output"),
        (["a.obj", "c.obj", "-o", "x.zyx"], 'x.zyx: ".zyx" is no format that pliant knows; expected one of .glb'),
        (["a.obj", "c.obj", "-o", "x.bvh"], 'x.bvh: ".bvh" does not hold clips; expected one of .glb'),
        (["a.obj", "c.obj", "-o", "x.zip"], "x.zip: archives are read, not written"),
        (["a.obj", "c.obj", "-o", "a.obj/x.glb"], "a.obj is not a folder"),
        (["a.obj", "c.obj", "-o", "x.glb", "--report", "r.pdf"], "r.pdf: a report is a web page"),
        (["a.obj", "c.obj", "-o", "x.glb", "--report", "a.obj/r.html"], "a.obj is not a folder"),
        (["a.obj", "c.obj", "-o", "x.glb", "--frames", "0"], '--frames: "0" is not a whole number from 1'),
        (["a.obj", "c.obj", "-o", "x.glb", "--frames", "1000000000"], "is not a whole number from 1 to 100000"),
        (["a.obj", "c.obj", "-o", "x.glb", "--fps", "0"], "--fps"),
        (["a.obj", "c.obj", "-o", "x.glb", "--accuracy", "2"], '--accuracy: "2" is not a number between 0 and 1'),
        (["a.obj", "c.obj", "-o", "x.glb", "--jobs", "-1"], '--jobs: "-1" is not a whole number from 1'),
        (["a.obj", "c.obj", "-o", "x.glb", "--method", "magic"], '--method: "magic" is not lbfgs or newton or paper'),
        (["a.obj", "c.obj", "-o", "x.glb", "--interior", "straw"], '--interior: "straw" is not auto or lattice'),
        (["a.obj", "c.obj", "-o", "x.glb", "--anchor", "1,2"], '--anchor: "1,2" is not auto or none or X,Y,Z'),
        (
            ["a.obj", "c.obj", "-o", "x.glb", "--anchor", "-1,2,nan"],
            '"-1,2,nan" is not auto or none or X,Y,Z',
        ),
        (["a.obj", "c.obj", "-o", "x.glb", "--pull", "5"], '--pull: "5" is not VERTEX:X,Y,Z'),
        (["a.obj", "c.obj", "-o", "x.glb", "--pull", "-5:0,0,0"], "is not VERTEX:X,Y,Z"),
        (["a.obj", "c.obj", "-o", "x.glb", "--pull", "5:0,0"], '--pull: "0,0" is not X,Y,Z'),
        (["a.obj", "c.obj", "-o", "x.glb", "--pull", "99999:0,0,0"], "--pull: is vertex 99999; the mesh has"),
        (["a.obj", "c.obj", "-o", "x.glb", "--force", "99999:0,0,0"], "--force: is vertex 99999"),
        (["a.obj", "c.obj", "-o", "x.glb", "--pin", "pins.txt"], 'pins.txt, line 1, column 3: "x" is not a vertex'),
        (["a.obj", "c.obj", "-o", "x.glb", "--pin", "far.txt"], "far.txt, line 1, column 1: there is no vertex 99999"),
        (["a.obj", "c.obj", "-o", "x.glb", "--pin", "path.json"], '--pin: "path" has 1 frames; the clip has 36'),
        (["a.obj", "c.obj", "-o", "x.glb", "--weights", "none.csv"], "none.csv: there is no such file"),
        (["a.obj", "c.obj", "-o", "x.glb", "--weights", "empty.csv"], "empty.csv: is empty"),
        (["a.obj", "b.obj", "c.obj", "-o", "x.glb", "--weights", "ragged.csv"], "ragged.csv, line 3: has 1 columns"),
        (["poses", "--base", "straight", "-o", "x.glb", "--weights", "typo.csv"], 'did you mean "straight"?'),
        (["a.obj", "c.obj", "-o", "x.glb", "--weights", "nan.csv"], 'nan.csv, line 2, column 1: "nan" is not a finite'),
        (["a.obj", "c.obj", "-o", "x.glb", "--weights", "cut.json"], "cut.json, line 1, column 12: is not JSON"),
        (["a.obj", "c.obj", "-o", "x.glb", "--weights", "wide.csv"], "wide.csv, line 1: has 4 columns; expected 2"),
        (
            ["rig.glb", "--shapes", "straight,bend 180", "-o", "x.glb"],
            '--shapes: no shape is called "bend 180"; did you',
        ),
        (["rig.glb", "--shapes", "straight", "-o", "x.glb"], "--shapes: has 1 entries; expected two or more names"),
        (["rig.glb", "--base", "crooked", "-o", "x.glb"], 'rig.glb: has no shape "crooked"'),
    ],
)
def test_bad_input_is_one_line_and_code_2(run, files, arguments, message):
    for name, text in TEXTS.items():
        (files / name).write_text(text)
    before = sorted(p.name for p in files.iterdir())
    code, out, err = run(*arguments)
    assert code == 2
    assert message in err
    assert err.startswith("pliant: ")
    assert err.count("\n") == 1
    assert out == ""
    assert sorted(p.name for p in files.iterdir()) == before


@pytest.fixture
def solving_fails(monkeypatch):
    def fail(*_, **__):
        raise AssertionError("it was solved")

    monkeypatch.setattr("pliant.engines.blend.blendshapes.Blendshapes.__init__", fail)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("sealed/out.glb", "sealed/out.glb: cannot be written"),
        ("sealed/new/out.glb", "sealed/new/out.glb: cannot be written"),
        ("sealed", "cannot be written"),
        ("sealed/new", "cannot be written"),
        ("taken", "taken is not a folder"),
        ("poses.glb", "poses.glb: is a folder"),
        ("frames", "frame_0009.obj: would be read as part of the 3 frames"),
        ("frames/frame.obj", "frame_0009.obj: would be read as part of the 3 frames"),
        ("out.doc", '".doc" is no format'),
        ("out", None),
        ("new/out.glb", None),
    ],
)
def test_what_cannot_be_written_is_known_before_solving(run, files, monkeypatch, solving_fails, output, message):
    (files / "taken").touch()
    (files / "poses.glb").mkdir()
    (files / "frames").mkdir()
    (files / "frames" / "frame_0009.obj").write_text("v 0 0 0\n")
    (files / "sealed").mkdir()
    make = tempfile.mkdtemp

    def sealed(suffix=None, prefix=None, dir=None):  # not even for a user who may write everywhere
        if dir is not None and os.path.basename(dir) == "sealed":
            raise PermissionError(13, "Permission denied")
        return make(suffix, prefix, dir)

    monkeypatch.setattr("tempfile.mkdtemp", sealed)
    code, _, err = run("a.obj", "c.obj", "-o", output, *QUICK)
    assert code == 2
    assert (message or "it was solved") in err


def test_suffixes_that_hold_clips_are_listed(run):
    listed = run("a.obj", "c.obj", "-o", "x.doc")[2].split("expected one of ")[1].split(", one file a frame")[0]
    assert set(listed.split()) == {s for s, format in BY_SUFFIX.items() if "animation" in format.writes}


@pytest.mark.parametrize("choices", [InteriorMethod, Model, Method])
def test_choices_are_the_engines(run, choices):
    listed = ", ".join(get_args(choices))
    assert listed in " ".join(run("--help")[1].split())


def test_polygons_names_and_uvs_come_through(run, decorated):
    pliant.write("house.npz", decorated)
    pliant.write("tall.npz", decorated.with_points(decorated.points * [1, 2, 1]))
    assert run("house.npz", "tall.npz", "-o", "out.glb", *QUICK)[0] == 0
    shape = pliant.read_animation("out.glb").shape
    assert isinstance(shape, Mesh)
    assert [polygon.tolist() for polygon in shape.polygons] == [polygon.tolist() for polygon in decorated.polygons]
    assert shape.uvs is not None
    assert set(shape.labels["material"].names) == {"brick", "plaster", "tiles"}


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("poses/hand/leftHandHigh.glb", ["--shapes", "Open,Fist"]),
        ("poses/morph-glb/Horse.glb", ["--shapes", "horse_A_002,horse_A_008"]),
        ("poses/plate/plate121*.ply", []),
    ],
)
def test_real_rigs(run, data, name, options):
    code, out, _ = run(str(data / name), "-o", "out.glb", "--frames", "5", "--json", *options)
    assert code == 0
    assert json.loads(out)["converged"] is True
    assert len(pliant.read_animation("out.glb")) == 5


@pytest.mark.parametrize("output", ["rig.glb", "./rig.glb"])
def test_a_result_does_not_replace_what_it_is_made_of(command_line, tmp_path, monkeypatch, output):
    monkeypatch.chdir(tmp_path)
    pliant.write("rig.glb", pliant.gallery.bar(500))
    before = (tmp_path / "rig.glb").read_bytes()
    code, _, err = command_line("blend", "rig.glb", "-o", output, "--frames", "2")
    assert code == 2
    assert "which the result would be written over; give another name" in err
    assert (tmp_path / "rig.glb").read_bytes() == before
