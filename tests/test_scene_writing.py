"""Scenes written out: they read back equal, look as a person would write them, and run as their document does."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import pliant
from pliant import FileError, InputError, gallery
from pliant.app.scene import read_scene, scene_from, scene_text, write_scene
from pliant.app.scene.located_toml import lines_of_keys, tomllib

LETTERS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.text(
    "\"\\'\n\r\t\0\x1b\x7f é#=.[]{}", max_size=6
)
KEYS = st.sampled_from(["engine", "at", "turn", "a.b", "two words", ""]) | LETTERS
PLAIN = LETTERS | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.booleans()
VALUES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.lists(st.dictionaries(KEYS, inner, max_size=3), min_size=1, max_size=3)
    ),
    max_leaves=25,
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=5)


def same(one, other) -> bool:
    """Equal, of the same types, to the last bit (0.0 and -0.0, 1 and 1.0 and true differ)."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return set(one) == set(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return repr(one) == repr(other)


@settings(max_examples=50, deadline=None)
@given(DOCUMENTS)
def test_what_is_written_reads_back_equal(document):
    assert same(tomllib.loads(scene_text(document)), document)


@settings(max_examples=60, deadline=None)
@given(DOCUMENTS)
def test_every_value_has_a_line_in_what_is_written(document):
    lines = lines_of_keys(scene_text(document))

    def walk(value, path):
        assert not path or path in lines
        entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, entry in entries:
            walk(entry, (*path, key))

    walk(document, ())


def test_a_file_holds_the_same_document(tmp_path):
    path = tmp_path / "new folder" / "scene.toml"
    document = {"engine": "transfer", "title": 'Größe "7"\\\r\n\x00', "x": [1e-7, 0.1 + 0.2, -0.0, 3]}
    write_scene(path, document)
    assert same(tomllib.loads(path.read_bytes().decode()), document)
    assert [entry.name for entry in path.parent.iterdir()] == ["scene.toml"]


def test_a_scene_looks_as_a_person_would_write_it():
    document = {
        "skeleton": {"bones": [{"name": "root", "at": [0.0, 0.0, 0.0]}, {"name": "tip", "parent": "root"}]},
        "engine": "transfer",
        "gradients": [{"turn": {"axis": [0, 1, 0], "degrees": 40}, "at": 7}],
        "target": {"gallery": "animal"},
        "numbers": list(range(60)),
        "rows": [[k / 8, 1e-9] for k in range(12)],
        "lengths": [],
    }
    assert (
        scene_text(document)
        == """engine = "transfer"
numbers = [
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
  27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50,
  51, 52, 53, 54, 55, 56, 57, 58, 59,
]
rows = [
  [0.0, 1e-09],
  [0.125, 1e-09],
  [0.25, 1e-09],
  [0.375, 1e-09],
  [0.5, 1e-09],
  [0.625, 1e-09],
  [0.75, 1e-09],
  [0.875, 1e-09],
  [1.0, 1e-09],
  [1.125, 1e-09],
  [1.25, 1e-09],
  [1.375, 1e-09],
]
lengths = []

[[skeleton.bones]]
name = "root"
at = [0.0, 0.0, 0.0]

[[skeleton.bones]]
name = "tip"
parent = "root"

[[gradients]]
turn = { axis = [0, 1, 0], degrees = 40 }
at = 7

[target]
gallery = "animal"
"""
    )


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (float("nan"), "turns[1].degrees is nan; expected a finite number"),
        (float("-inf"), "turns[1].degrees is -inf; expected a finite number"),
        (None, "turns[1].degrees is None, a NoneType; expected a text, number, true or false, list or table"),
        ((1, 2), "turns[1].degrees is (1, 2), a tuple; expected"),
        (np.arange(3), "turns[1].degrees is [0 1 2], a ndarray; expected"),
        (np.int64(3), "turns[1].degrees is 3, a int64; expected"),
        (datetime.date(2020, 1, 2), "turns[1].degrees is 2020-01-02, a date; expected"),
        (2**63, "turns[1].degrees is a whole number of more than 64 bits; expected a smaller one"),
        ("\ud800", "turns[1].degrees holds half of a surrogate pair"),
        ({3: 1}, "turns[1].degrees has the key 3; expected a text"),
        ({"a b": {"\udfff": 1}}, r'turns[1].degrees."a b"."\udfff" holds half of a surrogate pair'),
    ],
)
def test_what_toml_cannot_hold_is_refused_with_its_key(value, said):
    with pytest.raises(InputError) as error:
        scene_text({"turns": [{}, {"degrees": value}]})
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


def test_documents_that_hold_themselves_are_refused():
    document: dict = {}
    document["again"] = document
    with pytest.raises(InputError, match=r"^again.again.again\.\.\. is nested more than 40 deep"):
        scene_text(document)


def test_a_scene_that_cannot_be_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "scene.toml"
    write_scene(path, {"engine": "simulate"})
    with pytest.raises(InputError, match="nodes is nan"):
        write_scene(path, {"engine": "simulate", "nodes": float("nan")})
    assert path.read_text() == 'engine = "simulate"\n'
    with pytest.raises(FileError, match=r"scene.txt: is no name of a scene file; expected one that ends in .toml"):
        write_scene(tmp_path / "scene.txt", {})
    with pytest.raises(InputError, match=r"^the scene is \[\]; expected a dictionary"):
        write_scene(path, [])
    with pytest.raises(InputError, match=r"^path is 3; expected the name of a file"):
        write_scene(3, {})


BAR = gallery.bar(500)
BEND = {
    "engine": "transfer",
    "controls": "auto",
    "lattice": 16,
    "sources": {"bend": {"file": "data/bend.npz"}},
    "target": {"file": "data/bar.obj"},
    "cage": {"faces": 40},
}


@pytest.fixture
def folder(tmp_path) -> Path:
    pliant.write(tmp_path / "data" / "bend.npz", BAR.mixed(np.eye(len(BAR))[[0, 1, 2]], fps=24))
    pliant.write(tmp_path / "data" / "bar.obj", BAR.base)
    return tmp_path


def test_a_document_and_its_file_are_one_scene(folder, monkeypatch):
    made = scene_from(BEND, folder)
    write_scene(folder / "scene.toml", BEND)
    read = read_scene(folder / "scene.toml")
    assert np.array_equal(made.run().clip.points, read.run().clip.points)
    assert len(scene_from(BEND, folder, frames=2).run().clip) == 2
    monkeypatch.chdir(folder)
    assert np.array_equal(scene_from(BEND, ".").target.points, made.target.points)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lattice": 1}, "the scene, lattice: is 1; expected a whole number from 4 to 400"),
        ({"engine": "caged"}, 'the scene, engine: there is no engine "caged"'),
        ({"cage": {"face": 40}}, 'the scene, cage.face: there is no such key of cage; did you mean "faces"?'),
        ({"held": [10**6]}, "the scene, held[0]: is vertex 1000000; the target has"),
        ({"held": (1, 2)}, "held is (1, 2), a tuple; expected"),
    ],
)
def test_errors_of_a_document_name_the_key(folder, change, said):
    with pytest.raises(InputError) as error:
        scene_from(BEND | change, folder)
    assert str(error.value).startswith(said)
    assert "line" not in str(error.value)


def test_a_folder_is_needed():
    with pytest.raises(InputError, match=r"^folder is None; expected the folder that the scene's paths start from"):
        scene_from(BEND, None)
