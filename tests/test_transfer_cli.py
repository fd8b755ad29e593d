"""``pliant transfer`` as a user meets it: what goes in, what comes out, what is told, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import pliant
from pliant import gallery
from pliant.engines.transfer import build_cage
from pliant.engines.transfer.app.report import findings, transfer_report
from pliant.engines.transfer.app.result import TransferRun
from sweeps import every

BAR = gallery.bar(500)
CLIP = pliant.Animation(
    BAR.base, np.stack([gallery.bend(BAR.base.points, degrees, length=4.0) for degrees in (0, 15, 30, 45)])
)
TIP, ROOT = int(np.argmax(BAR.base.points[:, 0])), int(np.argmin(BAR.base.points[:, 0]))
SCENE = f"""engine = "transfer"
title = "A bar bends"
lattice = 16
held = [{ROOT}]
lengths = [[{ROOT}, {ROOT + 1}]]

[sources.bend]
file = "frames"
[sources.bend.groups]
tip = {{ centre = {BAR.base.points[TIP].tolist()}, radius = 0.9 }}

[target]
file = "bar.obj"
[cage]
file = "cage.obj"

[[controls]]
at = {TIP}
track = "tip"
[[controls]]
at = {ROOT}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The files that all tests read."""
    folder = tmp_path_factory.mktemp("transfer")
    pliant.write(folder / "frames" / "f.obj", CLIP)
    pliant.write(folder / "bar.obj", BAR.base)
    pliant.write(folder / "shell.ply", gallery.cloud(500))
    pliant.write(folder / "ring.mesh", gallery.tets(500))
    pliant.write(folder / "ring.obj", pliant.build_cage(gallery.tets(500), faces=60))
    pliant.write(folder / "cage.obj", build_cage(BAR.base, faces=40))
    pliant.write(folder / "walk.bvh", gallery.creature_walk(4))
    creature = gallery.creature(900).base
    pliant.write(folder / "creature.obj", pliant.Mesh(creature.points, creature.polygons))
    pliant.write(folder / "around.obj", build_cage(creature, faces=120))
    (folder / "scene.toml").write_text(SCENE)
    (folder / "open.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    cage = pliant.read_mesh(folder / "cage.obj")
    pliant.write(folder / "inner.obj", cage.with_points(0.6 * cage.points))
    shutil.copytree(folder / "frames", folder / "broken")
    third = folder / "broken" / "f_0003.obj"
    third.write_text(re.sub(r"^v \S+", "v nan", third.read_text(), count=1, flags=re.MULTILINE))
    return folder


@pytest.fixture
def run(command_line, files):
    """Run ``pliant transfer``: its exit code, what it printed, and what it complained of."""
    return lambda *arguments: command_line("transfer", *arguments)


WALK = ("--source", "walk.bvh", "--target", "creature.obj", "--auto")
AUTO = ("--source", "frames", "--target", "bar.obj", "--auto", "--faces", "60")


def test_a_scene_becomes_a_clip(run):
    code, out, err = run("scene.toml", "-o", "out.npz")
    assert (code, err) == (0, "")
    clip = pliant.read_animation("out.npz")
    assert len(clip) == len(CLIP)
    assert np.abs(clip.points[0] - BAR.base.points).max() < 1e-3 * BAR.base.diagonal
    assert np.linalg.norm(clip.points[-1, TIP] - BAR.base.points[TIP]) > 0.1
    assert "all frames converged" in out
    assert "Lengths are kept" in out
    assert "out.npz" in out


def test_a_sequence_comes_back_on_its_own_shape(run):
    code, out, err = run(*AUTO, "-o", "out.glb")
    assert (code, err) == (0, "")
    clip = pliant.read_animation("out.glb")
    away = np.linalg.norm(clip.points - CLIP.points, axis=2).mean() / BAR.base.diagonal
    assert away < 0.02
    assert "all frames converged" in out


def test_a_cage_of_ones_own_and_a_motion_of_bones(run):
    code, out, err = run(*WALK, "--cage", "around.obj", "--lattice", "12", "-o", "out.npz", "--json")
    assert (code, err) == (0, "")
    figures = json.loads(out)
    assert figures["cage_faces"] == len(pliant.read_mesh("around.obj").triangles)
    assert len(figures["frames"]) == 4
    assert "hips" in figures["tracks"]
    found = figures["registration"]
    assert (found["target"]["up"], found["target"]["heading"]) == ("y", "z")
    assert ["left leg", "left leg"] in found["matched"]
    assert found["confidence"] > 0.5


def test_a_walk_onto_what_has_no_legs_is_refused_with_what_was_seen(run, files):
    code, out, err = run("--source", "walk.bvh", "--target", "bar.obj", "--auto", "-o", "refused.npz", "--quiet")
    assert (code, out) == (2, "")
    assert "the source stands on 2 legs, the target on no legs; give --map" in err
    assert "left leg, right leg" in err
    assert len(err.splitlines()) == 1
    assert not (files / "refused.npz").exists()


def test_a_refusal_is_one_line_whatever_there_was_to_note(run, files):
    """The folder that would be made is noted where the work goes on, and not where it is refused."""
    code, _, err = run("--source", "walk.bvh", "--target", "bar.obj", "--auto", "-o", "new/refused.npz")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "note" not in err
    code, _, err = run("scene.toml", "-o", "new/made.npz", "--quiet")
    assert (code, err) == (0, "pliant: note: new: there is no such folder; it will be made\n")


def test_a_target_that_stands_along_z_is_upright_in_gltf(run, files):
    """Its OBJ file does not say which axis is up; glTF is y up."""
    up = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    creature = pliant.read_mesh(files / "creature.obj")
    pliant.write(files / "z.obj", creature.with_points(creature.points @ up.T))
    upright, turned = (
        run("--source", "walk.bvh", "--target", name, "--auto", "--faces", "120", "--lattice", "12", "-o", out)
        for name, out in (("creature.obj", "y.glb"), ("z.obj", "z.glb"))
    )
    assert upright[0] == turned[0] == 0
    y, z = (pliant.read_animation(files / name) for name in ("y.glb", "z.glb"))
    np.testing.assert_allclose(np.ptp(z.points, axis=(0, 1)), np.ptp(y.points, axis=(0, 1)), rtol=2e-3)
    assert run("--source", "walk.bvh", "--target", "z.obj", "--auto", "--faces", "120", "--lattice", "12",
               "-o", "z.npz")[0] == 0  # fmt: skip
    kept = pliant.read_animation(files / "z.npz")
    assert kept.shape.world.up == "z"
    np.testing.assert_allclose(kept.points @ up, z.points, atol=1e-5 * creature.diagonal)


def test_a_heading_that_is_told_counts(run):
    code, out, err = run(*WALK, "--cage", "around.obj", "--heading", "-z", "--lattice", "12", "-o", "o.npz", "--json")
    assert code == 0
    assert "against what is seen: toes" in err
    assert json.loads(out)["registration"]["target"]["heading"] == "-z"


def test_a_heading_across_the_target_is_refused(run, files):
    code, out, err = run(*WALK, "--cage", "around.obj", "--heading", "x", "-o", "refused.npz")
    assert (code, out) == (2, "")
    assert "heading is x, from side to side of the shape; expected " in err
    assert "z" in err.split("expected")[1]
    assert not (files / "refused.npz").exists()


@pytest.mark.parametrize(("target", "output"), every(2, [("ring.mesh", "out.npz"), ("shell.ply", "out.pc2")]))
def test_clouds_and_tetrahedra(run, files, target, output):
    scene = SCENE.replace('"bar.obj"', f'"{target}"').replace('file = "cage.obj"', "faces = 60")
    (files / "other.toml").write_text(scene.replace("lattice = 16", "lattice = 12"))
    code, _, err = run("other.toml", "-o", output)
    assert (code, err) == (0, "")
    assert pliant.read_animation(output).points.shape[:2] == (4, len(pliant.read(target).points))


def test_normals_and_splats_turn_along_where_every_frame_is_a_file(run, files):
    points = BAR.base.points.astype(np.float32).astype(float)
    axes = {"rot_0": 1, "rot_1": 0, "rot_2": 0, "rot_3": 0, "scale_0": -1, "scale_1": -4, "scale_2": -4}
    columns = {name: np.full(len(points), value, np.float32) for name, value in axes.items()}
    up = np.tile([0.0, 1.0, 0.0], (len(points), 1))
    pliant.write("splats.ply", pliant.PointCloud(points, up, columns))
    (files / "splats.toml").write_text(SCENE.replace("bar.obj", "splats.ply"))
    assert run("splats.toml", "-o", "out.ply", "--quiet") == (0, "", "")
    code, _, err = run("splats.toml", "-o", "out.npz", "--quiet")
    assert code == 0
    assert "out.npz holds where the splats go, not how they turn and stretch; write .ply" in err
    last = pliant.read_points("out_0004.ply")
    turned = pliant.rotations.matrix(
        pliant.rotations.normalize(np.stack([last.attributes[f"rot_{k}"] for k in range(4)], 1))
    )
    assert len(sorted(files.glob("out_*.ply"))) == 4
    leaning = np.degrees(np.arccos(np.abs((turned[:, :, 0] * last.normals).sum(axis=1))))
    assert np.abs(leaning - 90).max() < 12  # long axes stay across the normals
    away = np.degrees(np.arccos(np.clip(turned[TIP, 0, 0], -1, 1)))
    assert 5 < away < 80


def test_rigid_blocks(run, files):
    pliant.write("fish.obj", gallery.soup(500))
    text = SCENE.replace('"bar.obj"', '"fish.obj"').replace('file = "cage.obj"', "faces = 60")
    (files / "fish.toml").write_text("blocks = true\n" + text)
    assert run("fish.toml", "-o", "x.npz", "--quiet") == (0, "", "")
    clip = pliant.read_animation("x.npz")
    rest = pliant.read_mesh("fish.obj")
    edges = rest.edges
    long = [np.linalg.norm(p[edges[:, 0]] - p[edges[:, 1]], axis=1) for p in (rest.points, clip.points[-1])]
    assert np.abs(long[1] / long[0] - 1).max() < 1e-5
    assert np.abs(clip.points[-1] - rest.points).max() > 0.05


def test_points_outside_the_cage_are_refused_or_allowed(run, files):
    cage = pliant.read_mesh("cage.obj")
    pliant.write("tight.obj", cage.with_points(cage.points * [0.97, 1, 1]))
    (files / "tight.toml").write_text(SCENE.replace("cage.obj", "tight.obj"))
    code, _, err = run("tight.toml", "-o", "x.npz")
    assert code == 2
    assert 'set outside to "allow"' in err
    (files / "tight.toml").write_text('outside = "allow"\n' + SCENE.replace("cage.obj", "tight.obj"))
    assert run("tight.toml", "-o", "x.npz", "--quiet") == (0, "", "")
    tight = ("--source", "frames", "--target", "bar.obj", "--cage", "tight.obj", "--auto", "-o", "y.npz", "--quiet")
    assert run(*tight)[0] == 2
    assert run(*tight, "--outside", "allow") == (0, "", "")


def test_frames_and_rate_are_those_asked_for(run):
    code, out, _ = run("scene.toml", "-o", "out.npz", "--frames", "7", "--json")
    assert code == 0
    assert len(json.loads(out)["frames"]) == 7 == len(pliant.read_animation("out.npz"))
    code, out, _ = run("scene.toml", "-o", "out.npz", "--fps", "60", "--json")
    assert code == 0
    assert (json.loads(out)["fps"], len(pliant.read_animation("out.npz"))) == (60, 7)
    assert run("scene.toml", "-o", "one.obj", "--frames", "1", "--quiet") == (0, "", "")
    assert len(pliant.read_mesh("one.obj").points) == len(BAR.base.points)


def test_json_has_it_all_and_nothing_else_is_printed(run):
    code, out, err = run("scene.toml", "-o", "x.npz", "--json")
    assert (code, err) == (0, "")
    figures = json.loads(out)
    assert figures["output"] == ["x.npz"]
    assert figures["title"] == "A bar bends"
    assert figures["tracks"] == ["bend/tip"]
    assert figures["converged"] is True
    frame = figures["frames"][-1]
    assert len(frame["energies"]) == frame["iterations"] + 1
    assert (len(frame["gradient_angles"]), len(frame["position_errors"]), len(frame["length_errors"])) == (2, 1, 1)
    assert figures["seconds_a_frame"] == pytest.approx(figures["solve_seconds"] / len(figures["frames"]))
    assert figures["solve_seconds"] > 0
    assert figures["setup_seconds"] > 0


def test_quiet_says_nothing(run):
    assert run("scene.toml", "-o", "x.npz", "--quiet") == (0, "", "")


def test_what_does_not_converge_is_written_and_said(run, monkeypatch):
    from pliant.engines.transfer import rig

    search = rig.minimise
    hasty = {"iterations": 1, "accuracy": 1e-12}
    monkeypatch.setattr(rig, "minimise", lambda *args, **rest: search(*args, **(rest | hasty)))
    code, out, err = run("scene.toml", "-o", "x.npz", "--quiet")
    assert (code, out) == (1, "")
    assert re.fullmatch(r"pliant: \d of 4 frames did not converge \(.*\); what was reached is in x.npz\n", err)
    assert len(pliant.read_animation("x.npz")) == 4


def test_a_report_on_the_way(run, files):
    code, out, _ = run("scene.toml", "-o", "x.npz", "--report", "r.html", "--view", "-30,20")
    assert code == 0
    assert "open r.html" in out
    page = (files / "r.html").read_text(encoding="utf-8")
    assert "<h1>A bar bends</h1>" in page
    assert "http" not in page.replace("http://www.w3.org", "")
    assert page.count("data:image/png") == 3  # source, target, cage
    for svg in re.findall(r"<svg.*?</svg>", page):
        ET.fromstring(svg)
    assert "iteration</text>" in page


def test_the_reports_words_and_curves_are_the_transfers():
    moved = pliant.transfer(CLIP, BAR.base, build_cage(BAR.base, faces=60), "auto", lattice=16, groups=4)
    told = TransferRun(moved, {"bend <b>": CLIP}, "A <i>bar</i>")
    assert f"{told.angles.max():.1f}°" in findings(told)[1]
    page = transfer_report(told)
    assert "A &lt;i&gt;bar" in page
    assert "bend &lt;b&gt;" in page
    energies = re.findall(r"energy, iteration (\d+):", page)
    assert str(told.solutions[told.slowest].iterations) in energies


TEXTS = {
    "cut.toml": 'engine = "transfer"\nheld = [1,\n',
    "typo.toml": SCENE.replace("held", "helt"),
    "joint.toml": re.sub(r"\[sources\.bend\.groups\]\n.*\n", "", SCENE)
    .replace('file = "frames"', 'file = "walk.bvh"')
    .replace('track = "tip"', 'track = "spin"'),
    "group.toml": SCENE.replace('track = "tip"', 'track = "top"'),
    "outside.toml": SCENE.replace(f"at = {ROOT}", "at = [0, 40, 0]"),
    "free.toml": SCENE.replace(f"held = [{ROOT}]\n", ""),
    "nan.toml": SCENE.replace('"frames"', '"broken"'),
    "inner.toml": SCENE.replace('"cage.obj"', '"inner.obj"'),
    "none.toml": SCENE.replace('"bar.obj"', '"none.obj"'),
    "uneven.toml": SCENE.replace("[target]", '[sources.walk]\nfile = "walk.bvh"\nfirst = 2\n[target]').replace(
        f"at = {ROOT}\n", f'at = {ROOT}\ntrack = "hips"\n'
    ),
}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "x.npz"], "a scene file, or --source is missing; expected SCENE, or --source IN --target MESH --auto"),
        (["scene.toml"], "required: -o/--output"),
        (["none.toml.gz", "-o", "x.npz"], "none.toml.gz: there is no such file"),
        (["bar.obj", "-o", "x.npz"], "bar.obj, line 2, column 3: is not TOML"),
        (["scene.toml", "-o", "x.zyx"], '".zyx" is no format that pliant knows'),
        (["scene.toml", "-o", "x.npz", "--report", "r.pdf"], "r.pdf: a report is a web page"),
        (["scene.toml", "-o", "x.npz", "--auto"], "--auto was given beside a scene file; write it into the file"),
        (["scene.toml", "-o", "x.npz", "--frames", "0"], '--frames: "0" is not a whole number from 1'),
        (["scene.toml", "-o", "x.npz", "--faces", "4"], '--faces: "4" is not a whole number from 12'),
        (["cut.toml", "-o", "x.npz"], "cut.toml"),
        (["typo.toml", "-o", "x.npz"], 'typo.toml, line 4, helt: there is no such key; did you mean "held"?'),
        (["joint.toml", "-o", "x.npz"], 'controls[0].track: no joint of bend is called "spin"; did you mean "spine"?'),
        (["group.toml", "-o", "x.npz"], 'controls[0].track: no group or joint of bend is called "top"'),
        (["outside.toml", "-o", "x.npz"], "controls[1].at: is [0.0, 40.0, 0.0], which is not inside the cage"),
        (["free.toml", "-o", "x.npz"], "free.toml, line 1, follow: nothing fixes the position of the target"),
        (
            ["free.toml", "-o", "x.npz"],
            "set follow for a point that goes along with a source, or held for one that stays",
        ),
        (["nan.toml", "-o", "x.npz"], "expected"),
        (["inner.toml", "-o", "x.npz"], 'make the cage wider there, or set outside to "allow"'),
        (["none.toml", "-o", "x.npz"], "none.obj: there is no such file"),
        (["uneven.toml", "-o", "x.npz"], '"walk/hips" has 2 frames'),
        (["--source", "frames", "-o", "x.npz"], "--target is missing"),
        (
            ["--source", "legs=frames", "wave=frames", "--target", "bar.obj", "--auto", "-o", "x.npz"],
            "--source names 2 files; expected each as NAME=FILE",
        ),
        (["--target", "bar.obj", "-o", "x.npz"], "--source is missing"),
        (["--source", "frames", "--target", "bar.obj", "-o", "x.npz"], "add --auto, or write a scene file"),
        (["--source", "none", "--target", "bar.obj", "--auto", "-o", "x.npz"], "none: there is no such file"),
        (["--source", "broken", "--target", "bar.obj", "--auto", "-o", "x.npz"], "0003.obj"),
        (["--source", "bar.obj", "--target", "bar.obj", "--auto", "-o", "x.npz"], "bar.obj: holds one shape"),
        ([*AUTO, "--cage", "cage.obj", "-o", "x.npz"], "--faces: has no effect: the cage is not built"),
        ([*AUTO[:-2], "--cage", "open.obj", "-o", "x.npz"], "open.obj: "),
        ([*AUTO[:-2], "--cage", "inner.obj", "-o", "x.npz"], 'make the cage wider there, or set outside to "allow"'),
        ([*AUTO, "--rest", "9", "-o", "x.npz"], "--rest: is 9; there are 4 frames, numbered from 0"),
        ([*AUTO, "--rest", "-1", "-o", "x.npz"], "--rest: is -1; expected a whole number from 0"),
        ([*AUTO, "--rest", "none.obj", "-o", "x.npz"], "none.obj: there is no such file"),
        ([*AUTO, "--rest", "cage.obj", "-o", "x.npz"], "cage.obj: has "),
        (
            ["--source", "frames", "--target", "ring.mesh", "--auto", "--cage", "ring.obj", "-o", "x.obj"],
            "cannot hold tetrahedra",
        ),
    ],
)
def test_bad_input_is_one_line_and_code_2_and_leaves_nothing(run, files, arguments, message):
    for name, text in TEXTS.items():
        (files / name).write_text(text)
    before = sorted(files.rglob("*"))
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert "internal error" not in err
    assert sorted(files.rglob("*")) == before


@pytest.mark.data
@pytest.mark.slow  # as `test_a_sequence_drives_another_shape`, but for the files
def test_a_real_gallop_on_another_horse(run, data):
    cages = data / "cages" / "horse"
    source = str(data / "poses" / "horse-gallop" / "horse-gallop.tar.xz")
    target = str(cages / "Horse_2.obj")
    code, out, _ = run("--source", source, "--target", target, "--auto", "--frames", "4", "-o", "h.glb", "--json")
    assert code == 0
    assert json.loads(out)["converged"] is True
    clip = pliant.read_animation("h.glb")
    edges = clip.shape.edges
    long = np.linalg.norm(np.diff(clip.points[:, edges], axis=2)[:, :, 0], axis=2)
    rest = np.linalg.norm(np.diff(pliant.read_mesh(cages / "Horse_2.obj").points[edges], axis=1)[:, 0], axis=1)
    assert 0.8 < np.median(long / rest) < 1.25
