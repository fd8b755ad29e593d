"""Tables of weights and lists of pins as people write them, and what is said of those they got wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pliant import FileError
from pliant.io.pins import read_pins
from pliant.io.weights import read_weights

NAMES = ("neutral", "smile", "jawOpen", "eyeBlink_L")


@pytest.fixture
def weights(tmp_path):
    """Read a table of weights from text."""

    def read(text: str, suffix: str = ".csv"):
        path = tmp_path / f"w{suffix}"
        path.write_text(text, encoding="utf-8")
        return read_weights(path, NAMES)

    return read


@pytest.fixture
def pins(tmp_path):
    """Read pins of a mesh with 100 vertices from text."""

    def read(text: str, suffix: str = ".txt"):
        path = tmp_path / f"p{suffix}"
        path.write_text(text, encoding="utf-8")
        return read_pins(path, 100)

    return read


FRAMES = np.array([[0, 0.25, 0, -1], [0, 0.5, 0, 1.5]])


@pytest.mark.parametrize(
    "text",
    [
        "smile,eyeBlink_L\n0.25,-1\n0.5,1.5\n",
        "eyeBlink_L,smile\n-1,0.25\n1.5,0.5\n",
        "\ufeffsmile,eyeBlink_L\r\n0.25,-1\r\n\r\n0.5,1.5\r\n",
        '# by hand\nframe,time,"smile",Eye Blink L\n1,0:00:01,0.25,-1\n2,0:00:02,0.5,1.5',
        ",smile,eyeblinkl\n0,0.25,-1\n1,0.5,1.5\n",
        "smile;eyeBlink_L\n0,25;-1\n0,5;1,5\n",
        "smile\teyeBlink_L\n0.25\t-1\n0.5\t1.5\n",
        "smile   eyeBlink_L\n0.25  -1\n0.5  1.5\n",
        "0,0.25,0,-1\n0,.5,0,1.5\n",
        "0.25,0,-1\n5e-1,0,1.5\n",
        "0.25 0 -1\n0.5 0 1.5",
    ],
)
def test_tables_in_csv(weights, text):
    assert np.array_equal(weights(text), FRAMES)


@pytest.mark.parametrize(
    "content",
    [
        [[0, 0.25, 0, -1], [0, 0.5, 0, 1.5]],
        [[0.25, 0, -1], [0.5, 0, 1.5]],
        [{"smile": 0.25, "eyeBlink_L": -1, "frame": 1}, {"eyeBlink_L": 1.5, "smile": 0.5}],
        {"smile": [0.25, 0.5], "eyeBlink_L": [-1, 1.5], "jawOpen": 0},
        {"weights": {"smile": [0.25, 0.5], "eyeBlink_L": [-1, 1.5]}, "fps": 24},
        {"weights": [[0.25, 0, -1], {"smile": 0.5, "eyeBlink_L": 1.5}]},
    ],
)
def test_tables_in_json(weights, content):
    assert np.array_equal(weights(json.dumps(content), ".json"), FRAMES)


@pytest.mark.parametrize(
    ("text", "suffix"),
    [("smile\n0.5", ".csv"), ("[0.5, 0, 0]", ".json"), ('{"smile": 0.5}', ".json"), ("0.5 0 0", ".txt")],
)
def test_a_single_row_is_a_single_frame(weights, text, suffix):
    assert np.array_equal(weights(text, suffix), [[0, 0.5, 0, 0]])


def test_names_that_are_numbers_make_a_header(tmp_path):
    (tmp_path / "w.csv").write_text("0002,0003\n0.1,0.2\n")
    assert np.array_equal(read_weights(tmp_path / "w.csv", ("0001", "0002", "0003")), [[0, 0.1, 0.2]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "w.csv: is empty"),
        ("# nothing\n\n", "w.csv: is empty"),
        ("smile,jawOpen\n", "has a header but no rows"),
        ("smile,jawOpne\n0,1\n", 'w.csv, line 1, column 2: no shape is called "jawOpne"; did you mean "jawOpen"?'),
        ("smile,xyzzy\n0,1\n", 'no shape is called "xyzzy"; there are neutral, smile, jawOpen, eyeBlink_L'),
        ("smile,smile\n0,1\n", 'line 1, column 2: the shape "smile" has two columns'),
        ("frame,time\n0,1\n", "line 1: names no shape"),
        ("smile,jawOpen\n0,1\n0.5\n", "line 3: has 1 columns; line 1 has 2"),
        ("smile,jawOpen\n0,1\n0.5,\n", "line 3, column 2: the cell is empty"),
        ("smile,jawOpen\n0,1\n0.5,wide\n", 'line 3, column 2: "wide" is not a finite number'),
        ("smile,jawOpen\n0,1\n\n0.5,nan\n", 'line 4, column 2: "nan" is not a finite number'),
        ("0,1,inf\n", 'line 1, column 3: "inf" is not a finite number'),
        ("0,1\n", "line 1: has 2 columns; expected 4, one for each shape, or 3, without the base"),
        ("0,1,0\n0,1\n", "line 2: has 2 columns; line 1 has 3"),
        ("\0\1\2", "binary"),
    ],
)
def test_what_is_wrong_with_csv(weights, text, message):
    with pytest.raises(FileError) as error:
        weights(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "w.json, line 1, column 1: is empty"),
        ("[[0.1,\n 0.2", "w.json, line 2, column 5: is not JSON"),
        ("[" * 100_000, "w.json: is nested too deeply"),
        ("[]", "holds no weights"),
        ("3", "holds no weights"),
        ('{"weights": {}}', "line 1, column 13: holds no weights"),
        ('[[0, 0, 0],\n [0, "a", 0]]', 'line 2, column 6: "a" is not a finite number'),
        ("[[0, 0, 0],\n [0, true, 0]]", "line 2, column 6: true is not a finite number"),
        ("[[0, 0, NaN]]", "line 1, column 9: NaN is not a finite number"),
        ("[[0, 0, 1" + "0" * 400 + "]]", "line 1, column 9"),
        ("[[0, 0, 0], [0]]", "line 1, column 13: row has 1 numbers; expected 4"),
        ("[[0, 0, 0], 5]", "line 1, column 13: row is 5"),
        ('[{"smile": 0},\n {"smil": 1}]', 'line 2, column 11: no shape is called "smil"; did you mean "smile"?'),
        ('{"smile": [0, 1],\n "jawOpen": [0]}', 'line 2, column 13: "jawOpen" has 1 values; expected 2'),
        ('{"smile": []}', '"smile" has 0 values; expected 1 or more'),
        ('{"weights": {"smile": [0,\n null]}}', "line 2, column 2: null is not a finite number"),
    ],
)
def test_what_is_wrong_with_json(weights, text, message):
    with pytest.raises(FileError) as error:
        weights(text, ".json")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_or_of_another_kind(tmp_path):
    for name, message in (("none.csv", "there is no such file"), ("w.xlsx", "expected .csv or .json")):
        with pytest.raises(FileError, match=message):
            read_weights(tmp_path / name, NAMES)


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        ("3 7\n99", ".txt"),
        ("3,7,3\n  # ends\n99 # last", ".txt"),
        ("[3, 7, 99]", ".json"),
        ('{"vertices": [3, 7, 99]}', ".json"),
    ],
)
def test_pins(pins, text, suffix):
    found = pins(text, suffix)
    assert found.vertices.tolist() == [3, 7, 99]
    assert found.path is None


def test_pins_on_a_path(pins):
    path = np.arange(12.0).reshape(2, 2, 3)
    found = pins(json.dumps({"vertices": [7, 3], "path": path.tolist()}), ".json")
    assert found.vertices.tolist() == [7, 3]
    assert np.array_equal(found.path, path)


@pytest.mark.parametrize(
    ("text", "suffix", "message"),
    [
        ("", ".txt", "is empty"),
        ("3 4\n 5 x7", ".txt", 'line 2, column 4: "x7" is not a vertex number'),
        ("3\n100", ".txt", "line 2, column 1: there is no vertex 100; the mesh has 100, numbered from 0 to 99"),
        ("-1", ".txt", "line 1, column 1: there is no vertex -1"),
        ("1.5", ".txt", '"1.5" is not a vertex number'),
        ("[]", ".json", "is an empty list"),
        ("[3,\n 3]", ".json", "line 2, column 2: vertex 3 is there twice"),
        ("[3, 1.5]", ".json", "line 1, column 5: 1.5 is not a whole number"),
        ("[3, 100]", ".json", "line 1, column 5: there is no vertex 100"),
        ('"3"', ".json", "expected a list of vertex numbers"),
        ('{"vertices": [3], "paht": []}', ".json", 'line 1, column 27: "paht" is not known here'),
        ('{"vertices": [3], "path": []}', ".json", "column 27: expected a list with the pins' positions"),
        ('{"vertices": [3], "path": [[]]}', ".json", "frame 0 has 0 positions; expected one for each of 1 pins"),
        ('{"vertices": [3], "path": [[[0, 1]]]}', ".json", "line 1, column 29: a position is three numbers"),
        ('{"vertices": [3], "path": [[[0, 1, NaN]]]}', ".json", "line 1, column 36: NaN is not a finite number"),
    ],
)
def test_what_is_wrong_with_pins(pins, text, suffix, message):
    with pytest.raises(FileError) as error:
        pins(text, suffix)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
