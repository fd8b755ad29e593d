"""NPZ gives everything back to the bit, gives equal bytes for equal content, and believes no count."""

from __future__ import annotations

import io
import json
import random
import time
import tracemalloc
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import pliant
import pliant.io as pio
from pliant.core.clips import Animation, Shapes
from pliant.core.errors import FileError, InputError
from pliant.core.shapes import Appearance, Image, Labels, Layer, Mesh, PointCloud, TetMesh, World
from pliant.core.skeleton import Motion, Skeleton
from pliant.geometry.axes import with_up
from pliant.io import npz
from pliant.io.source import Source


def rich_mesh() -> Mesh:
    """Quads, a triangle and a pentagon with everything a mesh can carry."""
    rng = np.random.default_rng(5)
    faces = [[0, 1, 2, 3], [3, 2, 4], [4, 2, 5, 6, 7]]
    corners = sum(map(len, faces))
    picture = Image("skin é.png", bytes(rng.integers(0, 256, 300, dtype=np.uint8)), "image/png")
    native = {
        "obj": {"illum": 2, "Ks": [0.1, 0.2, 1 / 3], "raw": b"\x00\xff", "pair": (1, "x"), "none": None, "~odd": True},
        "gltf": {"extra": np.arange(3, dtype=np.float32), "normalTexture": picture, 7: "seven"},
    }
    return Mesh(
        rng.normal(size=(8, 3)) * 1e5,
        faces,
        uvs=Layer(rng.random((6, 2)), rng.integers(0, 6, corners)),
        normals=Layer(rng.normal(size=(4, 3)), rng.integers(0, 4, corners)),
        labels={
            "material": Labels(("skin", "häut \u0000 \ud800"), np.array([0, 1, 0])),
            "object": Labels(("a/b",), np.zeros(3, np.int64)),
        },
        appearances={"skin": Appearance((0.1, 0.2, 0.3, 1.0), picture, native), "other": Appearance()},
        attributes={
            "color": rng.random((8, 3)),
            "id": np.arange(8, dtype=np.uint16),
            "odd": np.full((8, 2, 2), np.nan),
        },
        vertex_groups={"head": rng.random(8), "": np.zeros(8)},
        world=World("z", 0.01),
    )


def skeleton() -> Skeleton:
    turns = np.random.default_rng(2).normal(size=(3, 4))
    return Skeleton(("hip", "knee", "toe"), np.array([-1, 0, 1]), np.eye(3), turns, {2: np.array([0.0, 0.1, 1 / 3])})


def contents() -> dict[str, pio.Content]:
    rng = np.random.default_rng(3)
    mesh = rich_mesh()
    tets = TetMesh(
        rng.random((5, 3)), np.array([[0, 1, 2, 3], [1, 2, 3, 4]]), np.array([[0, 1, 2]]), {"a": np.arange(5)}, World()
    )
    opacity = {"opacity": rng.random(6).astype(np.float32)}
    cloud = PointCloud(rng.random((6, 3)), rng.random((6, 3)), opacity, World("y", 1 / 3))
    turns, places = rng.normal(size=(4, 3, 4)), rng.normal(size=(4, 3, 3))
    channels = (("Xposition", "Zrotation"), (), ("Yrotation",))
    return {
        "mesh": mesh,
        "tets": tets,
        "points": cloud,
        "shapes": Shapes(mesh, np.stack([mesh.points, mesh.points * 2]), ("base", "twice/é")),
        "animation": Animation(mesh, rng.normal(size=(3, 8, 3)), 24000 / 1001, "walk"),
        "animation of tets": Animation(tets, rng.normal(size=(2, 5, 3)), 12.5),
        "animation of points": Animation(cloud, rng.normal(size=(2, 6, 3)), 60.0),
        "skeleton": skeleton(),
        "motion": Motion(skeleton(), turns, places, 120.0, channels, "jump"),
    }


def same(a: object, b: object) -> None:
    """Equal to the bit, all the way down."""
    if isinstance(a, (np.ndarray, np.generic)):
        assert isinstance(b, (np.ndarray, np.generic))
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    elif isinstance(a, Mapping):
        assert isinstance(b, Mapping)
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, (list, tuple)) and not isinstance(a, Shapes):
        assert type(a) is type(b)
        assert len(a) == len(b)  # type: ignore[arg-type]
        for x, y in zip(a, b, strict=True):  # type: ignore[call-overload]
            same(x, y)
    elif hasattr(a, "__dataclass_fields__"):
        assert type(a) is type(b)
        for field in a.__dataclass_fields__:
            if field in ("rotations", "rest_rotations"):  # made unit again on reading, which may move the last bit
                assert np.abs(getattr(a, field) - getattr(b, field)).max() < 3e-16
            else:
                same(getattr(a, field), getattr(b, field))
    else:
        assert type(a) is type(b)
        assert a == b


@pytest.mark.parametrize("name", contents())
def test_round_trip_is_exact(tmp_path: Path, name: str) -> None:
    content = contents()[name]
    pio.write(tmp_path / "x.npz", content)
    same(content, pio.read(tmp_path / "x.npz"))


@pytest.mark.parametrize("name", contents())
def test_equal_content_gives_equal_bytes(tmp_path: Path, name: str) -> None:
    pio.write(tmp_path / "a.npz", contents()[name])
    pio.write(tmp_path / "b.npz", contents()[name])
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_numpy_reads_it_without_pickle(tmp_path: Path) -> None:
    mesh = rich_mesh()
    pio.write(tmp_path / "x.npz", mesh)
    with np.load(tmp_path / "x.npz", allow_pickle=False) as held:
        assert held["kind"].item() == "mesh"
        assert int(held["pliant"]) == 1
        assert json.loads(held["words"].item())["groups"] == ["head", ""]
        np.testing.assert_array_equal(held["points"], mesh.points)


def test_richer_files_give_their_parts(tmp_path: Path) -> None:
    held = contents()
    for name in ("shapes", "animation", "tets", "motion"):
        pio.write(tmp_path / f"{name}.npz", held[name])
    same(rich_mesh(), pio.read_mesh(tmp_path / "shapes.npz"))
    same(rich_mesh(), pio.read_mesh(tmp_path / "animation.npz"))
    assert len(pio.read_mesh(tmp_path / "tets.npz").polygons) == 6
    assert len(pio.read_points(tmp_path / "tets.npz").points) == 5
    same(skeleton(), pio.read_skeleton(tmp_path / "motion.npz"))
    with pytest.raises(FileError, match="expected tets"):
        pio.read_tets(tmp_path / "shapes.npz")


def test_clip_and_fps(tmp_path: Path) -> None:
    ramp = np.arange(5.0)[:, None, None] * np.ones((1, 4, 3))
    pio.write(tmp_path / "x.npz", Animation(PointCloud(np.zeros((4, 3))), ramp, 10, "walk"))
    half = pio.read_animation(tmp_path / "x.npz", clip="walk", fps=20)
    assert half.fps == 20
    np.testing.assert_allclose(half.points[:, 0, 0], np.arange(9) / 2)
    with pytest.raises(FileError, match='one, "walk"'):
        pio.read_animation(tmp_path / "x.npz", clip="run")


@pytest.mark.parametrize(("points", "faces"), [("vertices", "faces"), ("V", "F"), ("points", "triangles"), ("v", "f")])
def test_plain_meshes_of_others(tmp_path: Path, points: str, faces: str) -> None:
    corners = np.random.default_rng(0).random((4, 3), dtype=np.float32)
    table = np.array([[0, 1, 2], [0, 2, 3]], dtype=np.uint32)
    np.savez_compressed(tmp_path / "x.npz", **{points: corners, faces: table, "note": np.array("hello")})
    mesh = pio.read(tmp_path / "x.npz")
    assert isinstance(mesh, Mesh)
    np.testing.assert_array_equal(mesh.points, corners)
    np.testing.assert_array_equal(mesh.triangles, table)


def test_only_what_shrinks_is_compressed(tmp_path: Path) -> None:
    points = np.stack(np.meshgrid(*[np.arange(20.0)] * 3), axis=-1).reshape(-1, 3)
    frames = points + np.random.default_rng(0).normal(size=(8, *points.shape))
    frames[0] = frames[-1] = points
    pio.write(tmp_path / "clip.npz", Animation(PointCloud(points), frames))
    with zipfile.ZipFile(tmp_path / "clip.npz") as archive:
        ways = {entry.filename: entry.compress_type for entry in archive.infolist()}
    assert ways["frames.npy"] == zipfile.ZIP_STORED
    assert ways["points.npy"] == zipfile.ZIP_DEFLATED
    assert np.array_equal(pio.read_animation(tmp_path / "clip.npz").points, frames)


def test_plain_frames_and_points_of_others(tmp_path: Path) -> None:
    frames = np.random.default_rng(0).random((3, 4, 3))
    np.savez(tmp_path / "clip.npz", frames=frames, faces=np.array([[0, 1, 2, 3]]))
    np.savez(tmp_path / "cloud.npz", positions=frames[0])
    clip, cloud = pio.read(tmp_path / "clip.npz"), pio.read(tmp_path / "cloud.npz")
    assert isinstance(clip, Animation)
    assert isinstance(clip.shape, Mesh)
    assert isinstance(cloud, PointCloud)
    np.testing.assert_array_equal(clip.points, frames)


def test_objects_are_refused_both_ways(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", points=np.array([[{}]], dtype=object))
    with pytest.raises(FileError, match="Python objects"):
        pio.read_mesh(tmp_path / "x.npz")
    objects = PointCloud(np.zeros((1, 3)), attributes={"bad": np.array([object()])})
    with pytest.raises(InputError, match="Python objects"):
        pio.write(tmp_path / "y.npz", objects)
    strange = Mesh(np.eye(3), [[0, 1, 2]], appearances={"m": Appearance(native={"obj": {1, 2}})})
    with pytest.raises(InputError, match="cannot keep a set"):
        pio.write(tmp_path / "y.npz", strange)
    assert not (tmp_path / "y.npz").exists()


def packed(arrays: dict[str, object], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip of .npy members from arrays, or from raw bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for key, value in arrays.items():
            member = io.BytesIO()
            if isinstance(value, bytes):
                member.write(value)
            else:
                np.save(member, value)
            archive.writestr(f"{key}.npy", member.getvalue())
    return stream.getvalue()


def header(shape: str, descr: str = "<f8") -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}}}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def mesh_arrays(**changed: object) -> dict[str, object]:
    corners = np.array([0, 1, 2, 0, 2, 3])
    arrays: dict[str, object] = {
        "pliant": np.array(1),
        "kind": np.array("mesh"),
        "words": np.array("{}"),
        "points": np.random.default_rng(0).random((4, 3)),
        "face_corners": corners,
        "face_offsets": np.array([0, 3, 6]),
        "triangles": corners.reshape(2, 3),
        "triangle_polygon": np.array([0, 1]),
    }
    return {key: value for key, value in {**arrays, **changed}.items() if value is not None}


def words(**entries: object) -> dict[str, object]:
    return mesh_arrays(words=np.array(json.dumps(entries)))


ABSURD = {
    "huge claim": packed({"points": header("(1000000000000, 3)")}),
    "overflowing claim": packed({"points": header("(9223372036854775807, 9223372036854775807)")}),
    "negative claim": packed({"points": header("(-5, 3)")}),
    "items without size": packed({"points": header("(1000000000000, 3)", "<U0")}),
    "object header": packed({"points": header("(1,)", "|O")}),
    "no header": packed({"points": b""}),
    "bad magic": packed({"points": b"hello world"}),
    "code in header": packed({"points": b"\x93NUMPY\x01\x00\x10\x00__import__('os')"}),
    "deep header": packed({"points": b"\x93NUMPY\x02\x00\x00\x80\x00\x00" + b"[" * 32768}),
    "empty archive": packed({}),
    "nothing known": packed({"weights": np.zeros(3)}),
    "text": b"not a zip at all",
    "empty": b"",
    "newer layout": packed(mesh_arrays(pliant=np.array(99))),
    "unknown kind": packed(mesh_arrays(kind=np.array("car"))),
    "kind is a number": packed(mesh_arrays(kind=np.array(3))),
    "words are not JSON": packed(mesh_arrays(words=np.array("{"))),
    "words are a list": packed(mesh_arrays(words=np.array("[]"))),
    "deep words": packed(mesh_arrays(words=np.array("[" * 100000))),
    "NaN": packed(mesh_arrays(points=np.full((4, 3), np.nan))),
    "text as points": packed(mesh_arrays(points=np.full((4, 3), "a"))),
    "complex points": packed(mesh_arrays(points=np.zeros((4, 3), complex))),
    "flat points": packed(mesh_arrays(points=np.zeros(4))),
    "corner out of range": packed(mesh_arrays(face_corners=np.array([0, 1, 2, 0, 2, 4]))),
    "negative corner": packed(mesh_arrays(face_corners=np.array([0, 1, 2, 0, 2, -1]))),
    "offsets run back": packed(mesh_arrays(face_offsets=np.array([0, 5, 3, 6]))),
    "offsets fall short": packed(mesh_arrays(face_offsets=np.array([0, 3]))),
    "no offsets": packed(mesh_arrays(face_offsets=None)),
    "empty offsets": packed(mesh_arrays(face_offsets=np.zeros(0, int))),
    "no points": packed(mesh_arrays(points=None)),
    "triangle of no polygon": packed(mesh_arrays(triangle_polygon=np.array([0, 7]))),
    "uv out of range": packed(mesh_arrays(uv_values=np.zeros((2, 2)), uv_index=np.full(6, 2))),
    "uv NaN": packed(mesh_arrays(uv_values=np.full((2, 2), np.inf), uv_index=np.zeros(6, int))),
    "label without array": packed(words(labels=[{"name": "material", "names": ["a"]}])),
    "label of a number": packed(words(labels=[3])),
    "attribute without array": packed(words(attributes=["color"])),
    "up is sideways": packed(words(up="x")),
    "a unit of no length": packed(words(up="z", metres=0.0)),
    "attributes are numbers": packed(words(attributes=[1])),
    "appearance is text": packed(words(appearances={"a": "red"})),
    "appearance without colour": packed(words(appearances={"a": {"~appearance": {}}})),
    "axes upside down": packed(words(up="-y")),
    "axes of a number": packed(words(up=3)),
    "units without end": packed(words(up="y", metres=10**400)),
    "units of nothing": packed(words(up="y", metres=0)),
    "unknown tag": packed(words(appearances={"~code": 1})),
    "bytes that are missing": packed(words(appearances={"a": {"~bytes": "blob_9"}})),
    "pairs that are none": packed(words(appearances={"~dict": [[[], 1]]})),
}


def read_all(path: Path) -> None:
    """Whatever the file turns out to hold."""
    for kind in npz.kinds(Source(path)):
        getattr(pio, f"read_{kind}")(path)


@pytest.mark.parametrize("name", ABSURD)
def test_broken_files_give_one_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(ABSURD[name])
    start = time.process_time()
    with pytest.raises(FileError) as caught:
        pio.read(path)
    assert time.process_time() - start < 1
    tracemalloc.start()
    with pytest.raises(FileError):
        pio.read(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert peak < 64 << 20


def test_a_directory_that_claims_gigabytes_allocates_nothing(tmp_path: Path) -> None:
    """The zip directory and the .npy header agree on 3 GB, but the 200 bytes packed cannot hold them."""
    data = bytearray(packed({"points": header("(134217728, 3)")}))
    claimed = (len(header("(134217728, 3)")) + (3 << 30)).to_bytes(4, "little")
    local, central = data.index(b"PK\x03\x04"), data.index(b"PK\x01\x02")
    data[local + 22 : local + 26] = claimed
    data[central + 24 : central + 28] = claimed
    (tmp_path / "x.npz").write_bytes(data)
    tracemalloc.start()
    with pytest.raises(FileError, match="unpacks to 3,221,225,600 bytes"):
        pio.read_mesh(tmp_path / "x.npz")
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()


def test_bombs_are_refused_before_they_unpack(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(packed({"points": np.zeros((1 << 22, 3))}))  # 100 MB from 98 KB
    tracemalloc.start()
    with pytest.raises(FileError, match=r"unpacks to 100,663,424 bytes from .* packed ones; the limit is 67,108,864"):
        pio.read_points(tmp_path / "x.npz")
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("name", contents())
def test_truncated_and_flipped_files(tmp_path: Path, name: str) -> None:
    """Only a result or a `FileError`, whatever byte is wrong."""
    path = tmp_path / "x.npz"
    pio.write(path, contents()[name])
    data = path.read_bytes()
    broken = [data[: len(data) * k // 16] for k in range(16)]
    rng = random.Random(zlib.crc32(name.encode()))
    for _ in range(60):
        flipped = bytearray(data)
        for _ in range(rng.choice([1, 2, 8])):
            flipped[rng.randrange(len(flipped))] = rng.randrange(256)
        broken.append(bytes(flipped))
    refusals = []
    for bad in broken:
        path.write_bytes(bad)
        try:
            read_all(path)
        except FileError as error:
            refusals.append(str(error))
    assert len(refusals) >= 16
    assert not any("\n" in line for line in refusals)


@pytest.mark.data
@pytest.mark.parametrize("name", ["models/fox/Fox.glb", "faces/makehuman/base.obj", "models/dino/dino.off"])
def test_real_meshes_come_back_to_the_bit(tmp_path: Path, data: Path, name: str) -> None:
    mesh = pio.read_mesh(data / name)
    pio.write(tmp_path / "x.npz", mesh)
    same(mesh, pio.read_mesh(tmp_path / "x.npz"))


@pytest.mark.parametrize("order", "<>")
def test_text_of_code_points_that_do_not_exist_is_refused(tmp_path, order):
    """NumPy would make strings of them that Python cannot handle."""
    path = tmp_path / "a.npz"
    letters = np.array([0x6D, 0x10FFFF, 0x110000, 0xFFFFFFFF], dtype=f"{order}u4")
    np.savez(path, kind=letters[:2].view(f"{order}U2")[0], points=np.zeros((1, 3)))
    assert len(pliant.read(path).points) == 1
    np.savez(path, kind=letters.view(f"{order}U4"), points=np.zeros((1, 3)))
    with pytest.raises(pliant.FileError, match=r"kind\.npy: holds letters that are none"):
        pliant.read(path)


@pytest.mark.parametrize("world", [None, World("z", None), World("z", 0.01)])
def test_units_that_are_not_known_are_not_made_up(tmp_path, world):
    """Told which axis is up, nobody has said how long a unit is."""
    shape = with_up(PointCloud(np.eye(3), world=world), "z")
    assert shape.world == (world or World("z", None))
    pio.write(tmp_path / "a.npz", shape)
    assert pio.read(tmp_path / "a.npz").world == shape.world
