"""Text made to break readers: control characters, impossible counts, deep nesting, and sizes that ask for patience."""

import json
import random

import numpy as np
import pytest

from pliant import FileError, read_mesh, read_skeleton, write
from pliant.app.inspection import inspect
from pliant.app.scene.located_toml import read_toml
from pliant.core.skeleton import Skeleton
from pliant.io import obj
from pliant.io.pins import read_pins
from pliant.io.source import Source
from pliant.io.weights import read_weights
from test_broken_files import outcome, read_alone, work_done

CONTROLS = [b"\f", b"\v", b"\0", b"\x1c", b"\x1d", b"\x1e", b"\x1f", b"\x85", b"\xa0", b"\xc2\x85", b"\r", b"\x7f"]
TOKENS = [
    *CONTROLS,
    b"\n",
    b" ",
    b"\t",
    b"#",
    b"\\\n",
    b"/",
    b"//",
    b"-",
    b"nan",
    b"1e400",
    b"0",
    b"-1",
    b"f ",
    b"\nv\n",
]
TOKENS += [b"99999999999999999999999999", "٣".encode(), b"vt ", b"\nf", b"\ng"]
OBJ = (
    b"o a\nv 0 0 0 1 0 0\nv 1 0 0\nv 0 1 1e-320\nvt 0 0\nvt 1 0\nvn 0 0 1\ng x y\nusemtl m\n"
    b"f 1/1/1 2/2/1 3/1/1 # c\nf -3//1 -2//1 -1//1\nf 1 2 3\ns 1\n"
)
GUARD = 64


def guarded(shape, kind):
    """An array, and the array of which it is the front; behind it lie numbers that must stay."""
    whole = np.full((shape[0] + GUARD, *shape[1:]), -77, kind)
    return whole[: shape[0]], whole


def fill_guarded(data, short=None):
    """What `fill_lines` says of a text whose arrays `count_lines` sized (`short`: one row too few in that one)."""
    text = np.frombuffer(data, np.uint8)
    counts = obj.count_lines(text)
    vertex, texture, normal, face, corner, words = (int(n) for n in counts)
    shapes = [(vertex, 6), (vertex,), (texture, 3), (normal, 3), (corner, 3), (face + 1,), (words, 2)]
    if short is not None:
        shapes[short] = (shapes[short][0] - 1, *shapes[short][1:])
    kinds = [np.float64, np.int64, np.float64, np.float64, np.int64, np.int64, np.int64]
    pairs = [guarded(shape, kind) for shape, kind in zip(shapes, kinds, strict=True)]
    ties = [guarded((2, 3), np.int64) for _ in range(3)]
    problem, _, _ = obj.fill_lines(text, counts, *(a for a, _ in pairs), tuple(a for a, _ in ties))
    for part, whole in [*pairs, *ties]:
        assert (whole[len(part) :] == -77).all()
    return problem


def mutated(rng, data):
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(data) + 1)
        lines = data.split(b"\n")
        change = rng.randrange(5)
        if change <= 1:
            data = data[:at] + rng.choice(TOKENS) + data[at:]
        elif change == 2:
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        elif change == 3:
            data = data[:at] if rng.random() < 0.3 else data[:at] + rng.choice((b" 1", b"\f", b"9")) * 500 + data[at:]
        else:
            lines.insert(rng.randrange(len(lines)), lines.pop(rng.randrange(len(lines))))
            data = b"\n".join(lines)
    return data


@pytest.mark.parametrize("control", CONTROLS)
def test_counting_and_filling_agree_on_every_control_character(control):
    corners = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3"
    for text in (corners + control, corners + b" " + control + b"\n", corners.replace(b" ", control)):
        fill_guarded(text)


def test_filling_stays_in_its_arrays_whatever_the_text():
    rng = random.Random(15)
    problems = [fill_guarded(mutated(rng, OBJ)) for _ in range(1500)]
    assert obj.OVERFULL not in problems
    assert len(set(problems)) > 4  # it got to many of the errors, not only to the first


@pytest.mark.parametrize("short", range(7))
def test_filling_refuses_arrays_that_are_too_small(short):
    assert fill_guarded(OBJ) == obj.FINE
    assert fill_guarded(OBJ, short) == obj.OVERFULL


@pytest.mark.parametrize("blank", ["\f", "\v", "\r", "\t", " "])
def test_all_blanks_part_tokens(tmp_path, blank):
    path = tmp_path / "a.obj"
    path.write_bytes("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3 \n".replace(" ", blank).encode())
    mesh = read_mesh(path)
    assert mesh.polygons.corners.tolist() == [0, 1, 2]
    assert inspect(path).kinds == ("mesh",)


@pytest.mark.parametrize("line", ["f 1 2 3\x1c", "v\x1f0 0 0", "\x1cv 0 0 0", "v", "f", "v 1 2 nan\n"])
def test_a_statement_that_cannot_be_read_is_not_passed_over(tmp_path, line):
    path = tmp_path / "a.obj"
    path.write_text(f"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n{line}\n")
    with pytest.raises(FileError, match="line 5"):
        read_mesh(path)


WHOLE = {
    ".obj": OBJ.decode(),
    ".off": "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n",
    ".ply": "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
    "element face 2\nproperty list uchar int vertex_indices\nproperty int texcoord\nend_header\n"
    "0 0 0\n1 0 0\n0 1 0\n3 0 1 2 5\n4 0 1 2 0 6\n",
    ".stl": "solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\n",
    ".mesh": "MeshVersionFormatted 2\nDimension 3\nVertices\n3\n0 0 0 0\n1 0 0 0\n0 1 0 0\n"
    "Triangles\n1\n1 2 3 0\nEnd\n",
    ".bvh": "HIERARCHY\nROOT r\n{\nOFFSET 0 0 0\nCHANNELS 3 Zrotation Xrotation Yrotation\n}\nMOTION\nFrames: 1\n"
    "Frame Time: 0.1\n0 0 0\n",
    ".tgf": "1 0 0 0\n2 1 0 0\n#\n1 2\n",
    ".out": "0 0 0 0 -1\n1 1 0 0 0\n",
    ".json": '{"joints": [{"name": "a", "position": [0, 0, 0]}, {"name": "b", "parent": "a", "position": [1, 0, 0]}]}',
    ".target": "0 0.25 0 -0.125\n3 0.0625 1.5e-3 0\n",
}


@pytest.mark.parametrize("suffix", WHOLE)
def test_mutated_text_is_read_or_refused(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    rng = random.Random(7)
    path.write_text(WHOLE[suffix])
    read_alone(path)
    for _ in range(120):
        path.write_bytes(mutated(rng, WHOLE[suffix].encode()))
        outcome(path)


COUNTS = ["nan", "inf", "-inf", "1e400", "-1", "1e18", "1e300", "٣", "2.5", "9" * 5000]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(
    ("suffix", "old"),
    [
        (".off", "3 1 0"), (".ply", "vertex 3"), (".ply", "face 2"), (".mesh", "Vertices\n3"),
        (".mesh", "Triangles\n1"), (".bvh", "Frames: 1"), (".bvh", "CHANNELS 3"), (".out", "0 0 0 0 -1\n1 1 0 0 0"),
    ],
)  # fmt: skip
def test_impossible_counts_are_refused(tmp_path, suffix, old, count):
    path = tmp_path / f"a{suffix}"
    path.write_text(WHOLE[suffix].replace(old, old[:-1] + count, 1), encoding="utf-8")
    if suffix == ".off":
        path.write_text(WHOLE[suffix].replace(old, f"{count} 1 0"), encoding="utf-8")
    if suffix == ".out" and count == "-1":
        return  # two roots
    with pytest.raises(FileError) as caught:
        read_alone(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("row", ["1e400 0 0 0", "nan 0 0 0", "3 0 inf 0"])
def test_a_target_with_an_offset_beyond_numbers_is_refused(tmp_path, row):
    path = tmp_path / "a.target"
    path.write_text(f"# smile\n0 1 0 0\n{row}\n")
    with pytest.raises(FileError, match="line 3: offset 1"):
        inspect(path)


@pytest.mark.parametrize("depth", [150, 900, 100_000])
def test_deep_nesting_is_refused_in_one_line(tmp_path, depth):
    deep = "[" * depth + "]" * depth
    texts = {
        "bones.json": f'{{"joints": [{{"name": "a", "position": [0, 0, 0], "extra": {deep}}}]}}',
        "a.gltf": f'{{"asset": {{"version": "2.0"}}, "extras": {deep}}}',
        "weights.json": deep,
        "pins.json": deep,
        "lists.toml": f"a = {deep}",
        "dotted.toml": ".".join("a" * depth) + " = 1",
        "table.toml": "[" + ".".join("a" * depth) + "]",
    }
    readers = {
        "weights.json": lambda path: read_weights(path, ["a"]),
        "pins.json": lambda path: read_pins(path, 3),
        **{name: lambda path: read_toml(Source(path)) for name in texts if name.endswith(".toml")},
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.write_text(text)
        with pytest.raises(FileError, match="nested too deeply") as caught:
            readers.get(name, read_alone)(path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("depth", [400, 900, 50_000])
@pytest.mark.parametrize("brackets", [("[", "]"), ('{"~tuple":[', "]}"), ('{"a":', "}")])
def test_deeply_nested_words_of_an_npz_are_refused(tmp_path, depth, brackets):
    path = tmp_path / "a.npz"
    write(path, Skeleton.from_positions(np.eye(3), [-1, 0, 1]))
    with np.load(path) as held:
        arrays = dict(held)
    arrays["words"] = np.array(f'{{"names": {brackets[0] * depth}1{brackets[1] * depth}}}')
    np.savez(path, **arrays)
    with pytest.raises(FileError, match="nested too deeply"):
        read_alone(path)


def in_time(path, seconds=4.0):
    """Inspect a file, in so many seconds of work."""
    begun = work_done()
    found = inspect(path)
    assert work_done() - begun < seconds
    return found


def test_a_polygon_of_many_corners_takes_no_patience(tmp_path):
    count = 20_000
    angle = np.linspace(0, 2 * np.pi, count, endpoint=False)
    radius = np.random.default_rng(3).uniform(0.5, 1.0, count)
    rows = [f"v {x!r} {y!r} 0" for x, y in zip(*(radius * [np.cos(angle), np.sin(angle)]).tolist(), strict=True)]
    path = tmp_path / "a.obj"
    path.write_text("v 0 0 0\nv 3 0 0\nv 3 3 0\nv 1 0.5 0\nv 0 3 0\nf 1 2 3 4 5\n")
    inspect(path)  # compiles
    path.write_text("\n".join([*rows, "f " + " ".join(map(str, range(1, count + 1)))]))
    facts = in_time(path).contents["mesh"]
    exact = 0.5 * np.sum(radius * np.roll(radius, -1)) * np.sin(2 * np.pi / count)
    assert facts["area"] == pytest.approx(exact, rel=1e-9)


def chain(suffix, count):
    parents = range(-1, count - 1)
    if suffix == ".json":
        joints = [{"name": f"j{k}", "offset": [0, 1, 0]} | ({"parent": f"j{k - 1}"} if k else {}) for k in range(count)]
        return json.dumps({"joints": joints[::-1]})
    if suffix == ".tgf":
        bones = [f"{k} {k + 1}" for k in range(1, count)]
        return "\n".join([*(f"{k} 0 {k} 0" for k in range(1, count + 1)), "#", *bones])
    if suffix == ".out":
        return "\n".join(f"{k} 0 {k} 0 {parent}" for k, parent in enumerate(parents))
    if suffix == ".gltf":
        nodes = [{"name": "j", "translation": [0, 1, 0], "children": [k + 1]} for k in range(count - 1)]
        skin = {"joints": list(range(count))}
        return json.dumps({"asset": {"version": "2.0"}, "nodes": [*nodes, {"name": "tip"}], "skins": [skin]})
    bones = [f"{'JOINT' if k else 'ROOT'} j{k} {{ \nOFFSET 0 1 0\n" for k in range(count)]
    return "HIERARCHY\n" + "".join(bones) + "}\n" * count


@pytest.mark.parametrize("suffix", [".json", ".tgf", ".out", ".gltf", ".bvh"])
def test_a_chain_of_many_joints_takes_no_patience(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_text(chain(suffix, 5000))
    begun = work_done()
    bones = read_skeleton(path)
    tip, _ = bones.rest_pose().world()
    assert work_done() - begun < 1.5
    assert len(bones) == 5000
    assert np.isfinite(tip).all()


def test_repeated_material_libraries_are_read_once(tmp_path):
    (tmp_path / "a.png").write_bytes(b"\x89PNG" + bytes(1 << 20))
    (tmp_path / "a.mtl").write_text("".join(f"newmtl m{k}\nKd 1 0 {k % 2}\nmap_Kd a.png\n" for k in range(2000)))
    (tmp_path / "b.mtl").write_text("newmtl m7\nKd 0 1 0\n")
    path = tmp_path / "a.obj"
    faces = "".join(f"usemtl m{k}\ng g{k}\nf 1 2 3\n" for k in range(5_000))
    triangle = "v 0 0 0\nv 1 0 0\nv 0 1 0\n"
    path.write_text("mtllib a.mtl\nmtllib ./a.mtl\n" * 1500 + "mtllib b.mtl\n" + triangle + faces)
    in_time(path)
    looks = read_mesh(path).appearances
    assert looks["m7"].color[:3] == (0, 1, 0)  # the library that was named last
    assert looks["m8"].texture.data is looks["m9"].texture.data
    path.write_text("mtllib b.mtl\nmtllib a.mtl\n" + triangle + "f 1 2 3\n")
    assert read_mesh(path).appearances["m7"].color[:3] == (1, 0, 1)


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".mesh", WHOLE[".mesh"].replace("Dimension", "\n" * 200_000 + "Dimension")),
        (".mesh", WHOLE[".mesh"].replace("Vertices", "Edges\n0\n" * 30_000 + "Vertices")),
        (".bvh", WHOLE[".bvh"].replace("ROOT", "\n" * 200_000 + "ROOT")),
        (".ply", WHOLE[".ply"].replace("element face", "property float q\n" * 30_000 + "element face", 1)
         .replace("0 0 0\n1 0 0\n0 1 0\n", ("0 1 2" + " 0" * 30_000 + "\n") * 3)),
        (".obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\ng" + " x" * 2_000_000 + "\nf 1 2 3\n"),
    ],
    ids=["blank lines", "keywords", "blank lines in BVH", "properties", "one long line"],
)  # fmt: skip
def test_long_text_takes_no_patience(tmp_path, suffix, text):
    path = tmp_path / f"a{suffix}"
    path.write_text(text)
    in_time(path)
