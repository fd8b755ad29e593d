"""The files that a scene names: which they are, renaming them, what is read, and that results do not replace it."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

import pliant
from pliant import gallery
from pliant.app.scene import read_scene, scene_from
from pliant.app.scene.json_schema import records
from pliant.app.scene.output import Output
from pliant.app.scene.paths import absolute, file_names, files_named, files_read, renamed_files
from pliant.app.scene.schema import FileName, ListOf, Named, Record, reference
from pliant.app.scene.writing import unwritten
from pliant.core.errors import FileError, InputError
from pliant.core.options import Either, Kind
from pliant.io import siblings_of
from pliant.io.source import Source

TUBE = gallery.tube(500)
ALL = {
    "blend": {
        "engine": "blend",
        "title": "poses",
        "shapes": {"files": ["poses/a.obj", "poses/b.obj"], "base": "poses/c.obj", "names": ["a", "b"]},
        "weights": "weights.csv",
        "pins": "pins.json",
        "obstacles": [{"what": " Sphere:0,0,0,1", "motion": "keys.csv"}, {"what": "ball.obj"}],
        "output": {"file": "poses"},
    },
    "cage": {"engine": "transfer", "target": {"file": "poses/a.obj"}, "cage": {"file": "cage.obj"}},
    "transfer": {
        "engine": "transfer",
        "controls": "auto",
        "sources": {"one": {"file": "walk.bvh", "rest": "rest.bvh"}, "two": {"file": "walk.glb", "rest": 3}},
        "target": {"gallery": "animal"},
    },
    "elastic": {
        "engine": "simulate",
        "shape": {"file": "poses/a.obj"},
        "skeleton": {"file": "bones.json"},
        "motion": {"file": "walk.bvh", "clip": "walk", "rest": "rest.bvh"},
        "obstacles": [{"what": "plane:0,0,0,0,1,0"}],
    },
}
NAMED = {
    "blend": ["poses/a.obj", "poses/b.obj", "poses/c.obj", "weights.csv", "pins.json", "keys.csv", "ball.obj"],
    "cage": ["poses/a.obj", "cage.obj"],
    "transfer": ["walk.bvh", "rest.bvh", "walk.glb"],
    "elastic": ["poses/a.obj", "bones.json", "walk.bvh", "rest.bvh"],
}

RECORDS = records()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose name looks like a pattern, with poses as files, in a folder and in an archive."""
    made = tmp_path / "my [1] files"
    for name, points in zip("abc", TUBE.points, strict=False):
        pliant.write(made / "poses" / f"{name}.obj", TUBE.base.with_points(points))
    with zipfile.ZipFile(made / "rig.zip", "w") as archive:
        for file in sorted((made / "poses").iterdir()):
            archive.write(file, f"poses/{file.name}")
    return made


def blend(**shapes: Any) -> dict[str, Any]:
    return {"engine": "blend", "frames": 2, "shapes": shapes, "springs": {"interior": "none"}}


def _kinds(kind: Kind, key: str) -> list[tuple[str, Kind]]:
    """All kinds in a kind, by the last key that leads there."""
    inner = [(key, kind)]
    if isinstance(kind, Record):
        inner += [found for name, one in kind.keys.items() for found in _kinds(one.kind, name)]
    elif isinstance(kind, (ListOf, Named)):
        inner += _kinds(kind.kind, key)
    elif isinstance(kind, Either):
        inner += [found for one in kind.kinds for found in _kinds(one, key)]
    return inner


# Which they are


@pytest.mark.parametrize("engine", ALL)
def test_names_of_files_are_told_from_other_texts(folder, engine):
    found = file_names(ALL[engine], folder)
    assert [name for _, name in found] == NAMED[engine]
    for path, name in found:
        value: Any = ALL[engine]
        for key in path:
            value = value[key]
        assert value == name


@pytest.mark.parametrize("engine", RECORDS)
def test_each_key_that_tells_of_a_file_is_one(engine):
    """By their words: a key added later is not forgotten."""
    for key, words, _ in reference(RECORDS[engine]):
        if "file" in words.replace('"file"', "") and not key.startswith("output"):
            last = key.rpartition(".")[2].removesuffix("[]")
            assert any(isinstance(kind, FileName) for name, kind in _kinds(RECORDS[engine], "") if name == last), key


def test_a_base_is_a_file_only_if_there_is_one(folder):
    assert file_names(blend(file="poses", base="a"), folder) == [(("shapes", "file"), "poses")]
    assert file_names(blend(file="poses", base="poses/a.obj"), folder)[1] == (("shapes", "base"), "poses/a.obj")


def test_what_does_not_fit_names_no_files(folder):
    assert (
        file_names({"engine": "blend", "shapes": 3, "weights": [[0, 1]], "pins": [1], "fille": "a.obj"}, folder) == []
    )
    with pytest.raises(InputError, match='there is no engine "blent"; did you mean "blend"'):
        file_names({"engine": "blent"}, folder)


def test_renaming_changes_the_names_alone(folder):
    document = ALL["blend"]
    renamed = renamed_files(document, str.upper, folder)
    assert [name for _, name in file_names(renamed)] == [n.upper() for n in NAMED["blend"] if n != "poses/c.obj"]
    assert renamed["shapes"]["base"] == "POSES/C.OBJ"
    assert renamed["title"] == "poses"
    assert renamed["output"] == {"file": "poses"}
    assert renamed["shapes"]["names"] == ["a", "b"]
    assert document["weights"] == "weights.csv"


# Names that mean the same from anywhere


@pytest.mark.parametrize(
    "shapes",
    [
        {"file": "poses"},
        {"file": "poses/*.obj"},
        {"file": "poses/[a-b].obj", "base": "a"},
        {"file": "rig.zip"},
        {"file": "rig.zip/poses/*.obj"},
        {"files": ["rig.zip/poses/a.obj", "poses/b.obj"]},
        {"files": ["poses/a.obj", "poses/b.obj"], "base": "poses/c.obj"},
    ],
)
def test_whole_names_give_the_same_scene(folder, tmp_path, shapes):
    document = blend(**shapes)
    whole = absolute(document, folder)
    assert all(Path(name).is_absolute() for _, name in file_names(whole, tmp_path))
    here, there = scene_from(document, folder).shapes, scene_from(whole, tmp_path).shapes
    assert here.names == there.names
    assert (here.points == there.points).all()
    assert files_read(whole, tmp_path) == files_read(document, folder) != []


def test_a_file_whose_name_looks_like_a_pattern_is_found(folder, tmp_path):
    shutil.move(folder / "poses" / "a.obj", folder / "a[2].obj")
    document = blend(files=["a[2].obj", "poses/b.obj"])
    assert len(scene_from(absolute(document, folder), tmp_path).shapes) == len(scene_from(document, folder).shapes) == 2


# What is read


def test_files_behind_folders_globs_and_archives(folder):
    poses = [folder / "poses" / f"{name}.obj" for name in "abc"]
    (folder / "poses" / "notes.txt").write_text("none of it")
    assert files_named("poses", folder) == poses
    assert files_named("poses/[bc].obj", folder) == poses[1:]
    assert files_named("rig.zip/poses/a.obj", folder) == [folder / "rig.zip"]
    assert files_named("missing.obj", folder) == []
    document = blend(files=["poses/b.obj", "poses/a.obj"], base="poses/a.obj") | {"weights": "missing.csv"}
    assert files_read(document, folder) == [poses[1], poses[0]]


@pytest.mark.filterwarnings("ignore::pliant.PliantWarning")
@pytest.mark.parametrize("suffix", [".obj", ".gltf", ".glb", ".usda", ".usdc", ".usdz", ".ply"])
def test_what_a_model_needs_beside_it_is_read_too(folder, decorated, suffix):
    if suffix.startswith(".usd"):
        pytest.importorskip("pxr", reason="the extra usd is not installed")
    written = pliant.write(folder / f"house{suffix}", decorated)
    assert set(files_named(f"house{suffix}", folder)) == set(written)


def test_pictures_beside_a_gltf_are_read_too(folder, decorated):
    pliant.write(folder / "house.gltf", decorated)
    text = (folder / "house.gltf").read_text()
    picture, secret = '{"uri": "my%20skin.png"}', '{"uri": "../secret.png"}'
    start = text.index("[", text.index('"images"'))
    (folder / "house.gltf").write_text(f"{text[: start + 1]}{picture}, {secret}, {text[start + 1 :]}")
    (folder / "my skin.png").write_bytes(b"")
    (folder.parent / "secret.png").write_bytes(b"")
    assert files_named("house.gltf", folder) == [folder / name for name in ("house.gltf", "house.bin", "my skin.png")]


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.obj", b"mtllib ../x.mtl\nmtllib a.mtl\n"), ("a.gltf", b"{"), ("a.usda", b"#usda 1.0\n(\n defaultPrim =\n")],
)
def test_a_damaged_file_is_still_one_that_is_read(folder, name, content):
    if name.endswith(".usda"):
        pytest.importorskip("pxr", reason="the extra usd is not installed")
    (folder / name).write_bytes(content)
    assert files_named(name, folder) == [folder / name]


def test_layers_below_a_stage_are_read_and_others_refused(folder):
    pytest.importorskip("pxr", reason="the extra usd is not installed")
    pliant.write(folder / "parts" / "tube.usdc", TUBE.base)
    pliant.write(folder.parent / "other.usdc", TUBE.base)
    (folder / "top.usda").write_text("#usda 1.0\n(\n subLayers = [@./parts/tube.usdc@]\n)\n")
    assert [source.path for source in siblings_of(Source(folder / "top.usda"))] == [folder / "parts" / "tube.usdc"]
    (folder / "out.usda").write_text("#usda 1.0\n(\n subLayers = [@./parts/tube.usdc@, @../other.usdc@]\n)\n")
    with pytest.raises(pliant.FileError, match=r"refers to .*other\.usdc.*expected files in its own folder"):
        siblings_of(Source(folder / "out.usda"))


# What results do not replace


def refused(document: dict[str, Any], folder: Path, name: str) -> str:
    """What is said against a name for the result; nothing if it may be."""
    try:
        Output(unwritten(document, folder)).check_not_read(str(folder / name))
    except pliant.FileError as error:
        return str(error)
    return ""


@pytest.mark.filterwarnings("ignore::pliant.PliantWarning")
@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("poses/*.obj", "poses/a.obj"),
        ("frame_*.obj", ""),
        ("poses/a.obj", "poses/a.obj"),
        ("walk_*.obj", "walk.obj"),
        ("walk_0001.obj", "walk.obj"),
        ("house.obj", "house.obj"),
        ("house.gltf", "house.gltf"),
        ("tube.gltf", "house.gltf"),
        ("cl*.npz", "clip.npz"),
        ("link.npz", "clip.npz"),
        ("clip.npz", "link.npz"),
    ],
)
def test_what_is_read_is_not_replaced(folder, decorated, source, output):
    for stem in ("walk", "frame"):
        pliant.write(folder / f"{stem}.obj", pliant.Animation(TUBE.base, TUBE.points))
    pliant.write(folder / "clip.npz", TUBE)
    for suffix in (".obj", ".gltf"):
        pliant.write(folder / f"house{suffix}", decorated)
    (folder / "tube.gltf").write_text((folder / "house.gltf").read_text())  # whose data is house.bin
    (folder / "link.npz").symlink_to(folder / "clip.npz")
    said = refused(blend(file=source), folder, output)
    assert "shapes.file: is " in said
    assert "which the result would be written over; give another name" in said


@pytest.mark.parametrize(
    ("source", "output"), [("poses/*.obj", "poses"), ("poses", "poses"), ("poses/a.obj", "poses/../poses")]
)
def test_frames_do_not_go_among_files_that_are_read(folder, source, output):
    assert f"which is in {folder / output}, where the frames would go" in refused(blend(file=source), folder, output)


@pytest.mark.parametrize(
    ("source", "output"),
    [("poses", "poses/walk.glb"), ("poses/*.obj", "poses/d.obj"), ("**/*.obj", "new"), ("poses/../*.npz", "new.npz")],
)
def test_a_result_does_not_join_what_is_read(folder, source, output):
    assert "would take in the result" in refused(blend(file=source), folder, output)


@pytest.mark.filterwarnings("ignore::pliant.PliantWarning")
@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("poses/*.obj", "new"),
        ("poses/*.obj", "poses/new"),
        ("poses/*.obj", "poses/a.glb"),
        ("poses", "poses.glb"),
        ("poses", "poses/walk"),
        ("poses", "poses/notes.html"),
        ("house.obj", "house.glb"),
        ("house.obj", "house.gltf"),
        ("house.gltf", "house.obj"),
        ("rig.zip/poses/*.obj", "rig"),
        ("rig.zip", "poses"),
    ],
)
def test_other_names_are_free(folder, decorated, source, output):
    """The same name with another suffix, a folder below, files that no one reads."""
    for suffix in (".obj", ".gltf"):
        pliant.write(folder / f"house{suffix}", decorated)
    assert refused(blend(file=source), folder, output) == ""


def test_a_title_is_no_file(folder):
    document = blend(gallery="tube") | {"title": "poses", "output": {"file": "poses"}}
    assert refused(document, folder, "poses") == ""


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('engine = "simulate"\nhold = 1.0\n[shape]\nfile = "none.obj"\n', "line 4, shape.file: "),
        ('engine = "transfer"\n[target]\ngallery = "bar"\n[cage]\nfile = "none.obj"\n', "line 5, cage.file: "),
        ('engine = "blend"\n[shapes]\nfile = "none.glb"\n', "line 3, shapes.file: "),
        (
            'engine = "blend"\n[shapes]\nfiles = [\n  "s.toml",\n  "none.obj",\n]\n',
            "line 5, shapes.files[1]: ",
        ),
        ('engine = "blend"\npins = "none.json"\nshapes.gallery = "tube"\n', "line 2, pins: "),
        (
            'engine = "blend"\nshapes.gallery = "tube"\n[[obstacles]]\nwhat = "none.obj"\n',
            "line 4, obstacles[0].what: ",
        ),
    ],
)
def test_files_that_are_not_there_are_told_with_key_and_line(tmp_path, text, place):
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(FileError, match="no such file") as told:
        read_scene(tmp_path / "s.toml")
    assert place in str(told.value)
