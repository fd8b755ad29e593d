"""Tables of weights and lists of pins as people write them, and what is said of those they got wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest

import pliant
from gltf_maker import FACES, TETRAHEDRON, Maker
from pliant import FileError, InputError, PliantWarning, WeightClip, gallery
from pliant.io.gltf import write_shapes
from pliant.io.pins import read_pins
from pliant.io.shape_names import ShapeNames
from pliant.io.weights import read_weights

NAMES = ("neutral", "smile", "jawOpen", "eyeBlink_L")


@pytest.fixture
def weights(tmp_path):
    """Read a table of weights from text."""

    def read(text: str, suffix: str = ".csv"):
        path = tmp_path / f"w{suffix}"
        path.write_text(text, encoding="utf-8")
        return read_weights(path, NAMES).values

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
    assert np.array_equal(read_weights(tmp_path / "w.csv", ("0001", "0002", "0003")).values, [[0, 0.1, 0.2]])


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
    for name, message in (("none.csv", "there is no such file"), ("w.xlsx", "expected one of .csv")):
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


# Recordings of faces

LIVE_LINK = (
    "Timecode,BlendShapeCount,EyeBlinkLeft,JawOpen,MouthSmileRight,CheekPuff,TongueOut,HeadYaw,HeadPitch,LeftEyeRoll"
)
ARKIT_RIG = ("neutral", "eyeBlink_L", "eyeBlink_R", "jaw_open", "R_mouthSmile", "cheekPuff_L", "cheekPuff_R")


def live_link(path, times, rows) -> None:
    lines = [LIVE_LINK, *(f"{time},{len(row) and 61},{','.join(row or [''] * 8)}" for time, row in zip(times, rows))]  # noqa: B905
    path.write_text("\n".join(lines), encoding="utf-8")


def timecode(frame: int, rate: int = 60, start: int = 40) -> str:
    seconds, frames = divmod(start + frame, rate)
    return f"23:59:{58 + seconds:02d}:{frames:02d}.250"


def test_a_recording_of_live_link_face_as_it_comes(tmp_path):
    rows = [[f"{0.01 * k:.4f}", "0.5", f"{0.002 * k:.4f}", "0.3", "1", "12", "-3", "0.1"] for k in range(90)]
    live_link(tmp_path / "take.csv", [timecode(k) for k in range(90)], rows)
    with pytest.warns(PliantWarning) as notes:
        found = read_weights(tmp_path / "take.csv", ARKIT_RIG)
    assert [str(note.message).partition("take.csv: ")[2] for note in notes] == [
        "left out 4 that move no shape here: TongueOut, HeadYaw, HeadPitch, LeftEyeRoll"
    ]
    assert (found.fps, len(found), found.names) == (60, 90, ARKIT_RIG)
    k = np.arange(90)
    zero = 0.0 * k
    expected = [zero, 0.01 * k, zero, zero + 0.5, 0.002 * k, zero + 0.3, zero + 0.3]
    assert np.allclose(found.values, np.stack(expected, axis=1))


def test_lost_rows_are_repeated_and_gaps_filled(tmp_path):
    times = [k for k in range(120) if not 30 <= k < 50]
    rows = [[] if k == 9 else [f"{0.005 * k:.4f}", *["0"] * 7] for k in times]
    live_link(tmp_path / "take.csv", [timecode(k, 30, 0) for k in times], rows)
    with pytest.warns(PliantWarning) as notes:
        found = read_weights(tmp_path / "take.csv", ARKIT_RIG)
    told = " ".join(str(note.message) for note in notes)
    assert "1 of 100 rows have no values, the first in line 11" in told
    assert "interpolated 120 frames at 30 fps" in told
    expected = 0.005 * np.arange(120)
    expected[9] = expected[8]
    assert np.allclose(found.values[:, 1], expected, atol=1e-9)


@pytest.mark.parametrize(
    ("cells", "fps"),
    [
        ([f"{k / 24:.3f}" for k in range(30)], 24),
        ([f"{k * 1001 / 30000:.6f}" for k in range(30)], 30000 / 1001),
        ([f"0:00:{k / 25:06.3f}" for k in range(40)], 25),
        ([timecode(2 * k) for k in range(40)], 30),  # every second of 60 frames
        ([timecode(k, start=0) for k in range(20)], None),  # no second ends, so the rate is not known
        (["0", "1", "3"], None),  # frames, perhaps
        (["0", "0.1", "soon"], None),
        (["0.2", "0.1", "0"], None),
        (["nan", "0.1", "0.2"], None),
    ],
)
def test_the_frame_rate_of_a_table(tmp_path, cells, fps):
    (tmp_path / "w.csv").write_text("Time,smile\n" + "\n".join(f"{cell},{k}" for k, cell in enumerate(cells)))
    found = read_weights(tmp_path / "w.csv", NAMES)
    assert found.fps == (None if fps is None else pytest.approx(fps))
    assert np.array_equal(found.values[:, 1], np.arange(len(cells)))


def test_keys_at_times_of_their_own_are_in_time(tmp_path):
    (tmp_path / "w.csv").write_text("time,smile\n0,0\n1,1\n2.5,0.5\n")
    with pytest.warns(pliant.PliantWarning, match="interpolated 76 frames at 30 fps"):
        found = read_weights(tmp_path / "w.csv", NAMES)
    assert found.fps == 30
    assert found.values[[0, 15, 30, 75], 1] == pytest.approx([0, 0.5, 1, 0.5])


def test_a_table_is_sampled_anew_only_where_it_says_when(tmp_path):
    (tmp_path / "w.csv").write_text("seconds,smile\n" + "\n".join(f"{k / 50},{k}" for k in range(51)))
    found = read_weights(tmp_path / "w.csv", NAMES, fps=25)
    assert np.allclose(found.values[:, 1], np.arange(0, 51, 2))
    (tmp_path / "w.json").write_text('{"weights": {"smile": [0, 1, 0]}, "fps": 12}')
    assert read_weights(tmp_path / "w.json", NAMES).fps == 12
    (tmp_path / "w.json").write_text('{"smile": [0, 1, 0]}')
    same = read_weights(tmp_path / "w.json", NAMES, fps=12)
    assert (len(same), same.fps) == (3, 12)


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("mouthSmileLeft", "mouthSmile_L"),
        ("MouthSmile_L", "mouthSmile_L"),
        ("L_mouth_smile", "mouthSmile_L"),
        ("MOUTHSMILELEFT", "mouthSmile_L"),
        ("mouthSmile.R", "MouthSmileRight"),
        ("face|bs.mouthSmile_R", "MouthSmileRight"),
        ("left", "left"),
        ("jawOpen", "blendShape1.JawOpen"),
        ("mouthLeft", "mouth_left"),
    ],
)
def test_names_are_found_however_they_are_spelled(written, means):
    names = ("base", "mouthSmile_L", "MouthSmileRight", "left", "blendShape1.JawOpen", "mouth_left", "mouth_right")
    assert names[ShapeNames(names).shape(written)] == means


def test_a_name_that_several_shapes_could_have_is_refused():
    names = ShapeNames(("base", "smile_L", "smileL", "a.smile", "b.smile"))
    for name in ("SMILE_L", "smile left", "smile"):
        with pytest.raises(KeyError, match="no shape is called"):
            names.shape(name)
    with pytest.raises(KeyError, match=r"did you mean .*there are base, smile_L, smileL, a.smile, b.smile"):
        names.shape("smileR")


def test_a_slider_for_both_sides_moves_both(weights):
    names = ShapeNames(("base", "browUp_L", "browUp_R", "jawOpen"))
    assert names.column("browUp") == (1, 2)
    assert names.column("browUpLeft") == (1,)
    with pytest.raises(KeyError):
        names.column("jawClosed")


# Clips of rigs


def targets(maker: Maker, *names: str) -> int:
    """A mesh with morph targets."""
    rng = np.random.default_rng(2)
    moved = [{"POSITION": maker.accessor(rng.normal(size=(4, 3)))} for _ in names]
    mesh = maker.mesh(TETRAHEDRON, FACES, targets=moved)
    maker.json["meshes"][mesh]["extras"] = {"targetNames": list(names)}
    return mesh


def test_the_clip_of_a_rig(tmp_path):
    maker = Maker()
    maker.add("nodes", mesh=targets(maker, "smile", "jawOpen"))
    maker.add("nodes", mesh=targets(maker, "jawOpen", "brow"), weights=[0, 0.25])
    maker.json["scenes"] = [{"nodes": [0, 1]}]
    times = np.arange(5) / 24
    talk = np.linspace(0, 1, 10).reshape(5, 2)
    maker.clip("still", (0, "weights", times, np.zeros(10), "LINEAR"))
    maker.clip("walk", (0, "translation", times, np.zeros((5, 3)), "LINEAR"))
    maker.clip("talk", (0, "weights", times, talk.ravel(), "LINEAR"), (1, "scale", times, np.ones((5, 3)), "LINEAR"))
    path = maker.glb(tmp_path / "rig.glb")
    found = read_weights(path)
    assert found.names == pliant.read_shapes(path).names == ("base", "smile", "jawOpen", "brow")
    assert (found.name, found.fps) == ("talk", 24)
    assert np.allclose(found.values[:, 1:], np.hstack([talk, np.full((5, 1), 0.25)]))
    assert np.allclose(found.values.sum(axis=1), 1)
    assert np.allclose(read_weights(path, fps=48).values[::2], found.values)
    assert not read_weights(path, clip="still").values[:, 1:3].any()
    with pytest.raises(FileError, match='the clip "walk" moves no weights of morph targets; those that do are talk'):
        read_weights(path, clip="walk")
    with pytest.raises(FileError, match='has no clip "run"'):
        read_weights(path, clip="run")
    with pytest.warns(PliantWarning, match="rig.glb: left out 1 that move no shape here: brow"):
        other = read_weights(path, ("neutral", "Jaw_Open", "Smile", "frown"))
    assert np.allclose(other.values[:, 1:], np.hstack([talk[:, ::-1], np.zeros((5, 1))]))
    with pytest.raises(InputError, match="none of the shapes here; there are a, b"):
        read_weights(path, ("a", "b"))


def test_several_clips_and_targets_that_meshes_move_apart_are_noted(tmp_path):
    maker = Maker()
    for _ in range(2):
        maker.add("nodes", mesh=targets(maker, "smile"))
    times = [0.0, 0.5]
    for name in ("a", "b"):
        maker.clip(name, (0, "weights", times, [0, 1], "LINEAR"), (1, "weights", times, [0, 0.5], "LINEAR"))
    path = maker.glb(tmp_path / "rig.glb")
    with pytest.warns(PliantWarning) as notes:
        found = read_weights(path)
    assert np.allclose(found.values[[0, -1], 1], [0, 1])
    told = " ".join(str(note.message) for note in notes)
    assert '2 clips move weights: a, b; took "a"' in told
    assert 'the clip "a" moves smile of several meshes apart; took those of the first' in told


def test_a_rig_is_written_with_its_clip(tmp_path):
    shapes = gallery.bar(500)
    values = np.random.default_rng(0).random((6, len(shapes)))
    write_shapes(tmp_path / "rig.glb", shapes, WeightClip(shapes.names, values, 12.5, "talk"))
    found = read_weights(tmp_path / "rig.glb")
    assert (found.names, found.fps, found.name) == (shapes.names, 12.5, "talk")
    assert np.allclose(found.values[:, 1:], values[:, 1:], atol=1e-7)


def test_a_table_has_no_clips_and_needs_names(tmp_path):
    (tmp_path / "w.csv").write_text("smile\n1\n")
    with pytest.raises(FileError, match="is a table; clip='talk' needs a file with clips"):
        read_weights(tmp_path / "w.csv", NAMES, clip="talk")
    with pytest.raises(FileError, match="give the names of the shapes"):
        read_weights(tmp_path / "w.csv")


def test_weight_clips_are_checked():
    with pytest.raises(InputError, match=r"weights have shape \(2, 2\); expected \(frames, 1\)"):
        WeightClip(("a",), np.zeros((2, 2)))
    with pytest.raises(InputError, match='the weight of "b" in frame 1 is not a finite number'):
        WeightClip(("a", "b"), [[0, 0], [0, np.nan]])
