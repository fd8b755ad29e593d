"""``pliant skeleton`` as a user meets it."""

import json

import numpy as np
import pytest

import pliant
from pliant import gallery


@pytest.fixture
def run(command_line, monkeypatch, tmp_path):
    """Run one command in a folder of its own: its exit code, what it printed, and what it complained of."""
    monkeypatch.chdir(tmp_path)
    man = gallery.gingerbread(900)[0]
    pliant.write("man.obj", pliant.Mesh(man.points, man.polygons))
    pliant.write("cloud.ply", gallery.cloud(500))
    pliant.write("flat.obj", pliant.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]))
    (tmp_path / "empty.obj").write_text("")

    return lambda *arguments: command_line(*arguments, "--voxels", "10000")


def test_formats_hold_the_same_skeleton(run):
    found = {}
    for suffix in ("json", "tgf", "bvh"):
        code, out, err = run("skeleton", "man.obj", "-o", f"bones.{suffix}")
        assert (code, err) == (0, "")
        assert f"bones.{suffix}" in out
        found[suffix] = pliant.read_skeleton(f"bones.{suffix}")
    places = found["json"].rest_pose().world()[0]
    np.testing.assert_allclose(found["tgf"].rest_pose().world()[0], places, atol=1e-9)
    assert found["json"].names[0] == "root"
    assert set(found["json"].names) >= {"root", "limb1.1", "limb2.1", "limb3.1", "limb4.1"}
    spots = np.concatenate([found["bvh"].rest_pose().world()[0]])
    assert all(np.linalg.norm(places - spot, axis=1).min() < 1e-4 for spot in spots)


def test_facts_for_scripts_and_a_picture(run):
    code, out, err = run(
        "skeleton", "man.obj", "-o", "bones.json", "--joints", "12", "--picture", "bones.png", "--json"
    )
    assert (code, err) == (0, "")
    facts = json.loads(out)
    skeleton = pliant.read_skeleton("bones.json")
    assert facts["joints"] == len(skeleton) == 12
    assert sorted(facts["names"]) == sorted(skeleton.names)
    assert facts["ends"] == 5
    from PIL import Image

    with Image.open("bones.png") as picture:
        assert len(picture.convert("RGB").getcolors(1 << 20)) > 100
    assert run("skeleton", "man.obj", "-o", "again.json", "--quiet") == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["man.obj", "-o", "bones.obj"], '".obj" does not hold skeletons; expected one of'),
        (["man.obj", "-o", "bones.zyx"], "is no format that pliant knows"),
        (["man.obj", "-o", "bones.json", "--picture", "bones.txt"], "a picture is an image file"),
        (["man.obj", "-o", "bones.json", "--joints", "1"], "expected a whole number from 2"),
        (["man.obj", "-o", "bones.json", "--joints", "few"], "not a whole number"),
        (["man.obj", "-o", "bones.json", "--shortest-limb", "0"], "not a positive number"),
        (["cloud.ply", "-o", "bones.json"], "holds points without faces"),
        (["flat.obj", "-o", "bones.json"], "encloses no volume"),
        (["missing.obj", "-o", "bones.json"], "there is no such file"),
        (["man.obj"], "required"),
    ],
)
def test_bad_input_is_named_in_one_line(run, tmp_path, arguments, words):
    code, out, err = run("skeleton", *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1
    assert not (tmp_path / "bones.json").exists()
