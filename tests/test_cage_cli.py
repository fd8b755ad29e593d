"""``pliant cage`` as a user meets it."""

import json

import numpy as np
import pytest

import pliant
from pliant import gallery
from pliant.geometry.spatial import SurfaceTree


@pytest.fixture
def run(command_line, monkeypatch, tmp_path):
    """Run one command in a folder of its own: its exit code, what it printed, and what it complained of."""
    monkeypatch.chdir(tmp_path)
    pliant.write("fish.obj", gallery.soup(500))
    pliant.write("shell.ply", gallery.cloud(500))
    pliant.write("ring.mesh", gallery.tets(500))
    tube = gallery.tube(500)
    pliant.write("clip.glb", pliant.Animation(tube.base, tube.points))
    (tmp_path / "empty.obj").write_text("")
    (tmp_path / "dot.obj").write_text("v 1 2 3\n")

    return command_line


@pytest.mark.parametrize("name", ["fish.obj", "shell.ply", "ring.mesh", "clip.glb"])
def test_a_cage_around_anything(run, name):
    code, out, err = run("cage", name, "-o", "cage.obj", "--faces", "120", "--margin", "0.03")
    assert (code, err) == (0, "")
    cage = pliant.read_mesh("cage.obj")
    assert len(cage.triangles) <= 120
    assert f"{len(cage.triangles)} faces" in out
    content = pliant.read(name)
    target = content.shape if isinstance(content, pliant.Animation) else content
    assert SurfaceTree(cage).inside(target.points).all()


def test_facts_for_scripts(run):
    code, out, err = run("cage", "shell.ply", "-o", "cage.ply", "--faces", "80", "--json")
    assert (code, err) == (0, "")
    facts = json.loads(out)
    cage = pliant.read_mesh("cage.ply")
    assert facts["output"] == "cage.ply"
    assert (facts["vertices"], facts["faces"]) == (len(cage.points), len(cage.triangles))
    cloud = pliant.read_points("shell.ply")
    nearest = -SurfaceTree(cage).signed_distance(cloud.points).max() / np.linalg.norm(np.ptp(cloud.points, axis=0))
    assert facts["nearest"] == pytest.approx(nearest, rel=1e-4)
    assert run("cage", "shell.ply", "-o", "again.ply", "--faces", "80", "--quiet") == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.obj", "-o", "a.obj"], "none.obj: there is no such file"),
        (["fish.obj"], "required: -o/--output"),
        (["fish.obj", "-o", "a.zyx"], '".zyx" is no format that pliant knows'),
        (["fish.obj", "-o", "a.bvh"], '".bvh" does not hold meshes'),
        (["fish.obj", "-o", "a.obj", "--faces", "4"], '--faces: "4" is not a whole number from 12'),
        (["fish.obj", "-o", "a.obj", "--faces", "many"], "--faces"),
        (["fish.obj", "-o", "a.obj", "--margin", "2"], "is not a number from 0.004 to 0.5"),
        (["fish.obj", "-o", "a.obj", "--margin", "-1"], "--margin"),
        (["dot.obj", "-o", "a.obj"], "points at one position"),
    ],
)
def test_bad_input_is_one_line_and_code_2(run, tmp_path, arguments, message):
    before = sorted(p.name for p in tmp_path.iterdir())
    code, out, err = run("cage", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_a_cage_does_not_replace_its_mesh(command_line, tmp_path):
    file = tmp_path / "ball.obj"
    pliant.write(file, pliant.gallery.sphere(500))
    before = file.read_bytes()
    code, _, err = command_line("cage", str(file), "-o", str(file))
    assert code == 2
    assert "which its cage would be written over" in err
    assert file.read_bytes() == before
