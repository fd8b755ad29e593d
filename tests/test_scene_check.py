"""``pliant scene --check`` says of a scene what ``pliant run`` would say: the same error, with its key and its line."""

from __future__ import annotations

import random
import re
import shutil

import pytest

from scene_mutations import SCENES, changed, is_declared, mutations, toml, write_files

FEW = 2
"""Changes of each scene that are tried by default; as many more are of kinds and ranges that its keys do not have."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scenes")
    write_files(folder)
    return folder


@pytest.fixture
def outcomes(files, command_line):
    """What --check and run make of a document: exit codes, and what they complain of besides notes."""

    def complaint(*arguments: str) -> tuple[int, str]:
        code, _, told = command_line(*arguments)
        return code, "".join(line for line in told.splitlines(True) if "note: " not in line)

    def both(document: dict) -> tuple[tuple[int, str], tuple[int, str]]:
        (files / "scene.toml").write_text(toml(document))
        return complaint("scene", "--check", "scene.toml"), complaint("run", "scene.toml", "--quiet")

    return both


def agree(check: tuple[int, str], run: tuple[int, str]) -> None:
    """They refuse the same, in the same words; what is refused has a key and a line."""
    assert run[0] in (0, 1, 2)
    assert "internal error" not in run[1]
    assert (check[0] == 2) == (run[0] == 2), (check, run)
    if run[0] == 2:
        assert check == run
        assert re.match(r"pliant: scene\.toml, line \d+, [\w.\[\]\"-]+: ", run[1]), run[1]


@pytest.mark.parametrize("name", SCENES)
def test_scenes_of_every_engine_are_right_and_run(outcomes, name):
    check, run = outcomes(SCENES[name])
    assert check == (0, "")
    assert run[0] in (0, 1)


@pytest.mark.parametrize("name", SCENES)
def test_a_sample_of_changes_is_refused_alike(outcomes, name):
    document = SCENES[name]
    every = [changed(document, path, value) for path, value in mutations(document)]
    random.Random(17).shuffle(every)  # of which none takes long
    declared = (other for other in every if is_declared(other, document["engine"]))
    undeclared = (other for other in every if not is_declared(other, document["engine"]))
    for _ in range(FEW):
        agree(*outcomes(next(declared)))
        agree(*outcomes(next(undeclared)))


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_every_change_is_refused_alike(files, outcomes, name):
    for path, value in mutations(SCENES[name]):
        agree(*outcomes(changed(SCENES[name], path, value)))
        shutil.rmtree(files / "out", ignore_errors=True)


@pytest.mark.parametrize(
    ("name", "path", "value", "said"),
    [
        ("elastic", ("regions", 0, "name"), "hed", r"regions\[0\]\.name: no vertex group, face label, colour or joint"),
        ("static", ("skeleton", "file"), "large.json", "skeleton: the skeleton is 800 across and the mesh"),
        ("elastic", ("skeleton", "bones", 1, "end", 1), 1e6, "skeleton: the skeleton is 1e.06 across and the mesh"),
        ("static", ("skeleton", "file"), "none.json", "skeleton.file: .*none.json.*no such file"),
        ("static", ("motion", "clip"), "run", "motion.clip: .*has no clip 'run'"),
        ("static", ("motion", "map", "tip"), "tp", r"motion.map.tip: the motion has no joint \"tp\""),
        ("elastic", ("dt",), 1e-9, "dt: is 1e-09; expected a number above 1e-7"),
        ("elastic", ("static",), True, "hold: has no effect"),
        ("gallery", ("anchor",), [9.0, 0.0, 0.0], "anchor: the (part of the mesh at the )?anchor"),
        ("blend", ("anchor",), [9.0, 0.0, 0.0], r"anchor: the anchor \(9.0, 0.0, 0.0\) is outside the base shape"),
        ("blend", ("shapes", "base"), "crooked", "shapes.base: .*is neither a file nor one of the shapes"),
        ("blend", ("shapes", "files", 1), "sphere.obj", "shapes.files: .*sphere.obj: does not match straight.obj"),
        ("blend", ("shapes", "files", 1), "none.obj", r"shapes.files\[1\]: .*none.obj.*no such file"),
        ("blend", ("obstacles", 0, "what"), "sphere:0,0.5,0,9", r"obstacles\[0\]: obstacle 1 encloses the whole shape"),
        ("blend", ("obstacles", 0, "motion"), "none.csv", r"obstacles\[0\]\.motion: .*none.csv.*no such file"),
        (
            "blend",
            ("pulls",),
            [{"vertex": 3, "to": [0.0, 0.0, 0.0]}, {"vertex": 3, "to": [1.0, 0.0, 0.0]}],
            "pulls: one vertex is given two positions",
        ),
        ("cage", ("target", "file"), "far.obj", "cage: .* on the cage or outside of it"),
        ("automatic", ("target", "file"), "far.obj", "cage: .*points of the target lie on the cage or outside"),
        ("automatic", ("blocks",), True, ""),
        ("cage", ("cage", "gallery"), "hand", "cage: has both file and gallery"),
        ("cage", ("lengths",), [[0, 0]], r"lengths\[0\]: length control 0 has both ends at one point"),
        ("cage", ("positions",), [], "positions: nothing fixes the position of the target"),
        ("transfer", ("sources", "walk", "rest"), "none.npz", "sources.walk.rest: .*none.npz.*no such file"),
        ("transfer", ("sources", "walk", "fps"), 1e9, "sources.walk.fps: .*fps would make"),
        ("transfer", ("output",), {"file": "out.zyx"}, 'output.file: ".zyx" is no format'),
    ],
)
def test_what_is_wrong_is_found_before_it_is_run(outcomes, name, path, value, said):
    check, run = outcomes(changed(SCENES[name], path, value))
    agree(check, run)
    if said:
        assert check[0] == 2
        assert re.search(rf"line \d+, {said}", check[1]), check[1]
    else:
        assert check == (0, "")


def test_a_clip_that_cannot_hold_the_shape_is_told_at_its_key(outcomes):
    clouds = changed(SCENES["automatic"], ("target", "file"), "points.ply")
    check, run = outcomes(clouds | {"output": {"file": "out.stl"}})
    agree(check, run)
    assert "line 9, output.file: " in check[1]
