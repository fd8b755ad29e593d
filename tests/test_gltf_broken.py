"""Broken glTF: every fault is one line that names its place, quickly; nothing else ever comes out."""

import base64
import json
import os
import time
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import pliant
from gltf_maker import FACES, TETRAHEDRON, Maker, rigged
from pliant import Animation, FileError, Labels, Layer, Mesh, Shapes
from pliant.io import gltf
from pliant.io.source import Source
from surfaces import box

READERS = [
    gltf.kinds,
    gltf.describe,
    gltf.read_mesh,
    gltf.read_points,
    gltf.read_shapes,
    gltf.read_animation,
    lambda source: gltf.read_animation(source, clip=1),
    lambda source: gltf.read_animation(source, clip=2),
    gltf.read_motion,
    gltf.read_skeleton,
]


def plain() -> Maker:
    m = Maker()
    m.add("nodes", mesh=m.mesh(TETRAHEDRON, FACES))
    m.add("scenes", nodes=[0])
    return m


def change(*keys, to):
    """A fault: the value under these keys replaced."""

    def apply(m: Maker):
        inside = m.json
        for key in keys[:-1]:
            inside = inside[key]
        inside[keys[-1]] = to

    return apply


ACCESSOR, VIEW, PRIMITIVE = ("accessors", 0), ("bufferViews", 0), ("meshes", 0, "primitives", 0)


@pytest.mark.parametrize(("fault", "message"), [
    (change("asset", "version", to="1.0"), 'asset: is glTF version "1.0"'),
    (change("asset", to=3), '"asset" is 3'),
    (change("extensionsRequired", to=["EXT_mesh_gpu_instancing"]), "EXT_mesh_gpu_instancing.*export again"),
    (change("meshes", to={}), '"meshes" is an object; expected a list'),
    (change("meshes", 0, to=[]), "mesh 0: is a list"),
    (change(*PRIMITIVE, "attributes", to={}), 'mesh 0, primitive 0: has no "POSITION"'),
    (change(*PRIMITIVE, "attributes", to={"POSITION": 7}), "primitive 0 attributes: .* is 7; expected a accessor"),
    (change(*PRIMITIVE, "attributes", to={"POSITION": "0"}), '"POSITION" is "0"; expected a whole number'),
    (change(*PRIMITIVE, "mode", to=9), '"mode" is 9'),
    (change(*PRIMITIVE, "indices", to=0), "accessor 0: holds VEC3"),
    (change(*PRIMITIVE, "material", to=0), "expected a material"),
    (change(*ACCESSOR, "count", to=5), "accessor 0: its 5 elements end at byte 60; its bufferView has 48"),
    (change(*ACCESSOR, "count", to=10**18), "accessor 0: its 1000000000000000000 elements"),
    (change(*ACCESSOR, "count", to=0), 'accessor 0: "count" is 0'),
    (change(*ACCESSOR, "count", to=2.5), 'accessor 0: "count" is 2.5'),
    (change(*ACCESSOR, "byteOffset", to=4), "accessor 0: .* end at byte 52"),
    (change(*ACCESSOR, "componentType", to=5124), 'accessor 0: "componentType" is 5124'),
    (change(*ACCESSOR, "type", to="VEC9"), 'accessor 0: "type" is "VEC9"'),
    (change(*ACCESSOR, "type", to="VEC2"), "accessor 0: is VEC2; vertex should be VEC3"),
    (change(*ACCESSOR, "bufferView", to=99), "accessor 0: .*bufferView"),
    (change(*ACCESSOR, "bufferView", to=None), ""),
    (change(*VIEW, "byteLength", to=10**12), "bufferView 0: ends at byte 1000000000000"),
    (change(*VIEW, "byteOffset", to=1000), "bufferView 0: ends at byte 1048"),
    (change(*VIEW, "byteStride", to=4), "accessor 0: its bufferView steps by 4"),
    (change(*VIEW, "buffer", to=1), "bufferView 0: .*buffer"),
    (change("nodes", 0, "children", to=[0]), "node 0: .*own child"),
    (change("nodes", 0, "children", to=[1]), 'node 0: "children" holds 1'),
    (change("nodes", to=[{"children": [1], "mesh": 0}, {"children": [0]}]), "node 0: is its own ancestor"),
    (change("nodes", to=[{"children": [2]}, {"children": [2]}, {"mesh": 0}]), "node 2: has two parents"),
    (change("nodes", 0, "translation", to=[1, 2]), 'node 0: "translation" is a list; expected 3 finite numbers'),
    (change("nodes", 0, "rotation", to=[0, 0, None, 1]), 'node 0: "rotation"'),
    (change("nodes", 0, "matrix", to=[1e999] * 16), "JSON: is not JSON"),
    (change("nodes", 0, "scale", to=[1e308, 1e308, 1e308]), ""),
    (change("nodes", 0, "name", to=5), 'node 0: "name" is 5; expected a text'),
    (change("nodes", 0, "skin", to=0), "node 0: .*skin"),
    (change("scene", to=4), "expected a scene from 0 to 0"),
    (change("scenes", 0, "nodes", to=["a"]), 'scene 0: "nodes" holds "a"'),
    (change("meshes", 0, "weights", to=[1]), "mesh 0: has 1 weights for 0"),
])  # fmt: skip
def test_each_fault_is_named_with_its_place(tmp_path, fault, message):
    m = plain()
    fault(m)
    path = m.glb(tmp_path / "bad.glb")
    if not message:
        pliant.read_mesh(path)  # allowed, if odd
        return
    with pytest.raises(FileError, match=message) as caught:
        pliant.read_mesh(path)
    assert "bad.glb" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("fault", "message"), [
    (change("animations", 0, "samplers", 0, "input", to=999), "animation 0, sampler 0: .*accessor"),
    (change("animations", 0, "samplers", 0, "interpolation", to="EASE"), "EASE"),
    (change("animations", 0, "channels", 0, "sampler", to=5), "animation 0, channel 0: .*sampler"),
    (change("animations", 0, "channels", 0, "target", "path", to="weights"), "no morph targets"),
    (change("animations", 0, "channels", 0, "target", "path", to="scale"), "is VEC4; scale key should be VEC3"),
    (change("animations", 0, "channels", to=[]), "animation 0: moves no node"),
    (change("skins", 0, "joints", to=[1]), "node 2: its mesh refers to joint 1; its skin has 1"),
    (change("skins", 0, "joints", to=[1, 3, 3]), "skin 0: has 3 joints and 2 inverse bind"),
    (change("skins", 0, "joints", to=[]), "skin 0: has no joints"),
    (change("skins", 0, "inverseBindMatrices", to=0), "is VEC3; inverse bind matrix should be MAT4"),
    (change("meshes", 0, "primitives", 0, "targets", 0, to={"POSITION": 6}), "accessor 6: is SCALAR"),
])  # fmt: skip
def test_faults_in_rigs(tmp_path, fault, message):
    m = rigged()
    fault(m)
    with pytest.raises(FileError, match=message):
        pliant.read_animation(m.glb(tmp_path / "bad.glb"))


def broken_numbers(values, which):
    m = plain()
    position = m.accessor(values)
    m.json["meshes"][0]["primitives"][0][which] = {"POSITION": position} if which == "attributes" else position
    return m


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_points_that_are_no_numbers(tmp_path, bad):
    points = TETRAHEDRON.copy()
    points[2, 1] = bad
    with pytest.raises(FileError, match="accessor 2: vertex 2 is not finite"):
        pliant.read_mesh(broken_numbers(points, "attributes").glb(tmp_path / "bad.glb"))


def test_indices_out_of_range(tmp_path):
    m = plain()
    m.json["meshes"][0]["primitives"][0]["indices"] = m.accessor([0, 1, 4], "uint16")
    with pytest.raises(FileError, match="accessor 2: refers to vertex 4; the primitive has 4"):
        pliant.read_mesh(m.glb(tmp_path / "bad.glb"))


def test_times_out_of_order(tmp_path):
    m = plain()
    m.clip("back", (0, "translation", [0, 2, 1], np.zeros((3, 3)), "LINEAR"))
    with pytest.raises(FileError, match="accessor 2: time 2 does not come after"):
        pliant.read_animation(m.glb(tmp_path / "bad.glb"))


@pytest.mark.parametrize(("cut", "message"), [
    (lambda d: d[:3], "expected"),
    (lambda d: d[:11], "header: has 11 bytes"),
    (lambda d: d[:-4], "header: .*cut off"),
    (lambda d: b"gltf" + d[4:], "byte 0: begins with b'gltf'"),
    (lambda d: d[:4] + b"\1" + d[5:], "header: is GLB version 1"),
    (lambda d: d[:12] + b"\xff\xff\xff\x7f" + d[16:], "chunk at byte 12: says 2147483647 bytes"),
    (lambda d: d[:16] + b"BIN\0" + d[20:], "chunk at byte 12: .*expected JSON first"),
    (lambda d: d[:20] + b"]" + d[21:], "JSON line 1 column 1"),
    (lambda d: d[:30] + b"\xff\xfe" + d[32:], "JSON byte 10"),
    (lambda d: b"", "expected"),
])  # fmt: skip
def test_broken_containers(tmp_path, cut, message):
    path = plain().glb(tmp_path / "bad.glb")
    path.write_bytes(cut(path.read_bytes()))
    with pytest.raises(FileError, match=message):
        pliant.read_mesh(path)


@pytest.mark.parametrize(("uri", "message"), [
    ("gone.bin", r'buffer 0: its file "gone.bin" is missing'),
    ("../secret.bin", "own folder"),
    ("file:///etc/passwd", "own folder"),
    ("data:application/octet-stream;base64,@@@", "buffer 0: its data URI is not base64"),
    ("data:application/octet-stream;base64", "buffer 0: its data URI has no data"),
    ("data:application/octet-stream;base64,AAAA", "buffer 0: has 3 bytes; .*cut off"),
    ("a\0b", "buffer 0: .*not a file name"),
    (5, 'buffer 0: "uri" is 5'),
    (None, "buffer 0: has no data"),
])  # fmt: skip
def test_broken_buffers(tmp_path, uri, message):
    path = plain().gltf(tmp_path / "bad.gltf")
    content = json.loads(path.read_text())
    content["buffers"][0]["uri"] = uri
    path.write_text(json.dumps(content))
    with pytest.raises(FileError, match=message):
        pliant.read_mesh(path)


def test_links_are_followed_only_within_the_folder(tmp_path):
    """Of the folder, of the file, and of a folder that holds the file; a pipe is no file."""
    (tmp_path / "in" / "below").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    path = plain().gltf(tmp_path / "in" / "a.gltf")
    content = json.loads(path.read_text())
    data = base64.b64decode(content["buffers"][0]["uri"].partition(",")[2])
    for folder in ("out", "in/below"):
        (tmp_path / folder / "a.bin").write_bytes(data)
    (tmp_path / "in" / "folder").symlink_to(tmp_path / "out")
    (tmp_path / "in" / "out.bin").symlink_to(tmp_path / "out" / "a.bin")
    (tmp_path / "in" / "near").symlink_to(tmp_path / "in" / "below")
    (tmp_path / "in" / "near.bin").symlink_to("below/a.bin")
    os.mkfifo(tmp_path / "in" / "pipe.bin")

    def read(uri, path=path):
        content["buffers"][0]["uri"] = uri
        path.write_text(json.dumps(content))
        return pliant.read_mesh(path)

    for uri in ("folder/a.bin", "out.bin"):
        with pytest.raises(FileError, match=f'refers to "{uri}"; expected a file in its own folder or below'):
            read(uri)
    with pytest.raises(FileError, match=r'its file "pipe\.bin" is missing'):
        read("pipe.bin")
    for uri in ("near/a.bin", "near.bin", "below/a.bin"):
        assert len(read(uri).polygons)
    (tmp_path / "link").symlink_to(tmp_path / "in")
    assert len(read("near.bin", tmp_path / "link" / "a.gltf").polygons)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, '{"asset": NaN}', "null", '{"a": ' * 50_000])
def test_texts_that_are_no_gltf(tmp_path, text):
    path = tmp_path / "bad.gltf"
    path.write_text(text)
    with pytest.raises(FileError, match="JSON"):
        pliant.read_mesh(path)


def claims() -> dict[str, Maker]:
    """Small files that claim to be large."""
    files = {"empty accessor": plain(), "instances": plain(), "targets": plain(), "hours": plain(), "frames": plain()}
    entry = files["empty accessor"].json["accessors"][0]
    del entry["bufferView"]
    entry["count"] = 10**10
    m = files["instances"]
    big = m.mesh(np.zeros((60_000, 3)), [0, 1, 2])
    m.json["nodes"] = [{"mesh": big}] * 6_500
    m.json["scenes"][0]["nodes"] = list(range(6_500))
    m = files["targets"]
    m.json["meshes"] = []
    m.json["nodes"][0]["mesh"] = m.mesh(np.zeros((60_000, 3)), [0, 1, 2], targets=[{}] * 20_000)
    files["hours"].clip("long", (0, "translation", [0, 1e9], np.zeros((2, 3)), "LINEAR"))
    m = files["frames"]
    m.json["meshes"] = []
    m.json["nodes"][0]["mesh"] = m.mesh(np.zeros((60_000, 3)), [0, 1, 2])
    m.clip("long", (0, "translation", [0, 3000], np.zeros((2, 3)), "LINEAR"))
    return files


@pytest.mark.parametrize("name", list(claims()))
def test_nothing_is_allocated_on_a_files_word(tmp_path, name):
    path = claims()[name].glb(tmp_path / "bad.glb")
    read = {"targets": pliant.read_shapes, "hours": pliant.read_animation, "frames": pliant.read_animation}
    tracemalloc.start()
    begun = time.perf_counter()
    with pytest.raises(FileError, match=r"claims|limit|frames"):
        read.get(name, pliant.read_mesh)(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6
    assert time.perf_counter() - begun < 5


def own() -> Mesh:
    rng = np.random.default_rng(4)
    mesh = box()
    return Mesh(
        mesh.points,
        mesh.polygons,
        uvs=Layer(rng.random((24, 2)), np.arange(24)),
        labels={"object": Labels(("a", "b"), np.array([0, 1, 0, 1, 0, 1]))},
        vertex_groups={"g": rng.random(8)},
        attributes={"n": np.arange(8)},
    )


@pytest.mark.parametrize(("keys", "value", "message"), [
    (["vertices"], 7, "does not cover the 7 vertices"),
    (["vertices"], "8", '"vertices" is "8"'),
    (["vertex"], [0], "vertex should be whole numbers"),
    (["vertex"], [], '"vertex" does not match'),
    (["polygons", "size"], 5, "sizes do not add up"),
    (["polygons", "corners"], 0, "whole numbers"),
    (["labels", "object", "names"], ["a"], '"index" refers to 1'),
    (["groups", "g"], 0, '"g" has '),
    (["attributes"], [], '"attributes" is a list'),
])  # fmt: skip
def test_faults_in_our_own_notes(tmp_path, keys, value, message):
    pliant.write(tmp_path / "a.gltf", own())
    content = json.loads((tmp_path / "a.gltf").read_text())
    inside = content["extras"]["pliant"]
    for key in keys[:-1]:
        inside = inside[key]
    inside[keys[-1]] = value
    (tmp_path / "a.gltf").write_text(json.dumps(content))
    with pytest.raises(FileError, match=message):
        pliant.read_mesh(tmp_path / "a.gltf")


def outcomes(path) -> int:
    """How many readers give a result; whatever else they give must be a FileError in one line, soon."""
    results = 0
    for reader in READERS:
        begun = time.perf_counter()
        said = ""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pliant.PliantWarning)
            try:
                reader(Source(path))
                results += 1
            except FileError as error:
                said = str(error)
        assert "\n" not in said
        assert time.perf_counter() - begun < 5
    return results


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Valid files to break: a foreign rig and pliant's own, as .glb and .gltf."""
    folder = tmp_path_factory.mktemp("whole")
    rng = np.random.default_rng(6)
    mesh = own()
    rigged().glb(folder / "rig.glb")
    rigged().gltf(folder / "rig.gltf")
    pliant.write(folder / "own.glb", Animation(mesh, rng.normal(size=(4, 8, 3)), 24))
    pliant.write(
        folder / "own.gltf", Shapes(mesh, np.stack([mesh.points, *rng.normal(size=(2, 8, 3))]), ("a", "b", "c"))
    )
    assert outcomes(folder / "rig.glb") == outcomes(folder / "rig.gltf") == len(READERS)
    assert outcomes(folder / "own.glb") == 6
    return folder


@pytest.mark.parametrize("name", ["rig.glb", "own.glb"])
def test_changed_bytes_give_a_result_or_an_error(whole, name):
    data = np.frombuffer((whole / name).read_bytes(), np.uint8)
    rng = np.random.default_rng(7)
    results = 0
    for _ in range(120):
        changed = data.copy()
        where = rng.integers(0, len(data), rng.integers(1, 6))
        changed[where] = rng.integers(0, 256, len(where))
        (whole / "changed.glb").write_bytes(changed[: rng.integers(0, len(data)) if rng.random() < 0.2 else None])
        results += outcomes(whole / "changed.glb")
    assert 0 < results < 120 * len(READERS)


def spots(value, path=()):
    """The place of every value inside a JSON value."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield (*path, key)
        yield from spots(value[key], (*path, key))


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 9),
    st.sampled_from([10**9, 2**31, 2**32, 2**64, 10**30, 1e308, -1e308, 0.5, 5121, 5123, 5125, 5126, 65535]),
    st.sampled_from(["", "x", "VEC3", "SCALAR", "MAT4", "weights", "rotation", "data:,", "data:;base64,@"]),
    st.sampled_from([[], {}, [0], [[]], [1, 2, 3], [None], {"a": 1}, [0.0] * 4, [0.0] * 16, [1e300] * 3]),
)


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(["rig.gltf", "own.gltf"]), st.lists(st.tuples(st.integers(0, 10**6), ODD), min_size=1, max_size=3)
)
def test_changed_json_gives_a_result_or_an_error(whole, name, changes):
    content = json.loads((whole / name).read_text())
    for number, value in changes:
        places = list(spots(content))
        *keys, last = places[number % len(places)]
        inside = content
        for key in keys:
            inside = inside[key]
        inside[last] = value
    (whole / "changed.gltf").write_text(json.dumps(content))
    outcomes(whole / "changed.gltf")
