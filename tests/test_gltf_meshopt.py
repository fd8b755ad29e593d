"""EXT_meshopt_compression: what an encoder packs is unpacked to the byte; what is broken is refused."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import meshopt_encoder as encoder
import pliant
from gltf_maker import Maker
from pliant import FileError
from pliant.native import kernels
from sweeps import every

RNG = np.random.default_rng(8)


def smooth(count: int, stride: int) -> np.ndarray:
    """Bytes with differences of all sizes: constant, slow, noisy."""
    i, k = np.arange(count)[:, None], np.arange(stride)
    slow, noisy = (40 * np.sin(i / 9 + k) + i / 3).astype(np.int64), RNG.integers(0, 256, (count, stride))
    return np.select([k % 4 == 0, k % 4 == 1, k % 4 == 2], [slow, noisy, 7 + 0 * slow], slow * (k > 4)).astype(np.uint8)


@pytest.mark.parametrize("stride", every(2, [4, 12, 36, 256]))
@pytest.mark.parametrize(("version", "channels"), [(0, [0]), (1, [0]), (1, [1]), (1, [2 | 5 << 4, 0, 2])])
@pytest.mark.parametrize("count", [1, 16, 300])
def test_vertices_come_back(stride, version, channels, count):
    vertices, result = smooth(count, stride), np.empty((count, stride), np.uint8)
    packed = encoder.attributes(vertices, version, [channels[k % len(channels)] for k in range(stride // 4)])
    data = np.frombuffer(packed, np.uint8)
    assert kernels.meshopt_attributes(data, result)
    assert np.array_equal(result, vertices)
    assert not kernels.meshopt_attributes(data[:-1], result)  # it ends where it should


def grid(side: int) -> list[tuple[int, int, int]]:
    cells = [(y * side + x) for y in range(side - 1) for x in range(side - 1)]
    return [face for a in cells for face in ((a, a + 1, a + side), (a + 1, a + side + 1, a + side))]


@pytest.mark.parametrize("faces", [grid(9), [tuple(row) for row in RNG.integers(0, 500, (60, 3)).tolist()]])
def test_triangles_and_indices_come_back(faces):
    packed, rotated = encoder.triangles(faces)
    result = np.empty((len(faces), 3), np.uint32)
    assert kernels.meshopt_triangles(np.frombuffer(packed, np.uint8), result)
    assert np.array_equal(result, rotated)
    sequence = np.empty(3 * len(faces), np.uint32)
    flat = [int(k) for face in faces for k in face]
    assert kernels.meshopt_indices(np.frombuffer(encoder.indices(flat), np.uint8), sequence)
    assert sequence.tolist() == flat


POINTS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)
FACES = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
PACKED = {
    "ATTRIBUTES": (4, 12, encoder.attributes(POINTS.view(np.uint8), 0, [0, 0, 0])),
    "TRIANGLES": (12, 2, encoder.triangles(FACES)[0]),
    "INDICES": (12, 2, encoder.indices([k for face in FACES for k in face])),
}


def packed_file(path, mode, change=()):
    """A tetrahedron whose points or indices are packed, and lie in the file as zeros besides."""
    maker = Maker()
    mesh = maker.mesh(POINTS, FACES)
    primitive = maker.json["meshes"][mesh]["primitives"][0]
    accessor = primitive["attributes"]["POSITION"] if mode == "ATTRIBUTES" else primitive["indices"]
    count, stride, packed = PACKED[mode]
    view = maker.json["bufferViews"][maker.json["accessors"][accessor]["bufferView"]]
    maker.data[view["byteOffset"] : view["byteOffset"] + view["byteLength"]] = bytes(view["byteLength"])
    about = {"byteLength": len(packed), "count": count, "byteStride": stride, "mode": mode}
    about |= {"buffer": 0, "byteOffset": len(maker.data), **dict(change)}
    maker.data += packed
    view["extensions"] = {"EXT_meshopt_compression": about}
    maker.json["extensionsRequired"] = ["EXT_meshopt_compression"]
    return maker.glb(path)


@pytest.mark.parametrize("mode", PACKED)
def test_a_packed_file_is_the_file(tmp_path, mode):
    mesh = pliant.read_mesh(packed_file(tmp_path / "a.glb", mode))
    assert np.array_equal(mesh.points, POINTS)
    assert sorted(tuple(np.roll(t, -int(np.argmin(t)))) for t in mesh.triangles.tolist()) == sorted(FACES)


@pytest.mark.parametrize(
    ("mode", "change", "message"),
    [
        ("TRIANGLES", {"mode": "POINTS"}, 'has mode "POINTS"'),
        ("ATTRIBUTES", {"filter": "SHARPEN"}, 'has filter "SHARPEN"'),
        ("ATTRIBUTES", {"filter": "QUATERNION"}, 'has filter "QUATERNION" with a stride of 12'),
        ("ATTRIBUTES", {"count": 10**9}, "claims 12,000,000,000 bytes"),
        ("ATTRIBUTES", {"count": 17}, "unpacks to 204 bytes; its bufferView says 48"),
        ("ATTRIBUTES", {"byteLength": 10**6}, "ends at byte"),
        ("TRIANGLES", {"count": 10}, 'has mode "TRIANGLES"'),
        ("TRIANGLES", {"byteOffset": 3}, "packed bytes are broken"),
        ("INDICES", {"count": 11}, "packed bytes are broken"),
    ],
)
def test_what_is_wrong_with_a_packed_view_is_said(tmp_path, mode, change, message):
    with pytest.raises(FileError, match=message):
        pliant.read_mesh(packed_file(tmp_path / "a.glb", mode, change))


@pytest.mark.parametrize("mode", PACKED)
def test_changed_bytes_are_read_or_refused(tmp_path, mode):
    data = bytearray(packed_file(tmp_path / "a.glb", mode).read_bytes())
    at = bytes(data).find(PACKED[mode][2])
    for _ in range(60):
        changed = bytearray(data)
        for where in RNG.integers(at, at + len(PACKED[mode][2]), 3):
            changed[where] = RNG.integers(0, 256)
        (tmp_path / "b.glb").write_bytes(changed)
        with contextlib.suppress(FileError):
            assert len(pliant.read_mesh(tmp_path / "b.glb").points) == 4


def test_unit_vectors_quaternions_and_floats_are_unfolded():
    """The filters against what they stand for; the fourth of the octahedron's numbers is left alone."""
    from pliant.io.gltf.meshopt import _filtered

    x, y = RNG.integers(-127, 128, (2, 50))
    rows = np.stack([x, y, np.full(50, 127), x], axis=1).astype(np.int8)
    found = _filtered(None, "OCTAHEDRAL", rows.view(np.uint8)).view(np.int8).astype(float)
    assert np.abs(np.linalg.norm(found[:, :3], axis=1) / 127 - 1).max() < 0.02
    inside = np.abs(x) + np.abs(y) < 127
    flat = found[inside, :2] / np.abs(found[inside, :3]).sum(axis=1, keepdims=True)
    assert np.abs(flat - np.stack([x, y], axis=1)[inside] / 127).max() < 0.02
    assert np.array_equal(found[:, 3], x)

    q = RNG.normal(size=(50, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    largest = np.abs(q).argmax(axis=1)
    each = np.arange(50)
    q *= np.sign(q[each, largest])[:, None]
    three = np.stack([q[each, (largest + 1 + k) % 4] for k in range(3)], axis=1)
    stored = np.concatenate([np.round(three * 2**0.5 * 32767), (32764 | largest)[:, None]], axis=1).astype("<i2")
    found = _filtered(None, "QUATERNION", stored.view(np.uint8)).view("<i2") / 32767
    assert np.abs(found - q).max() < 1e-3

    mantissa, exponent = RNG.integers(-(2**23), 2**23, 50), RNG.integers(-100, 100, 50)
    words = ((exponent << 24) | (mantissa & 0xFFFFFF)).astype(np.int64).astype("<i4")
    found = _filtered(None, "EXPONENTIAL", words[:, None].view(np.uint8)).view("<f4")[:, 0]
    assert np.array_equal(found, (mantissa * 2.0**exponent).astype(np.float32))


@pytest.mark.data
def test_a_face_with_packed_morph_targets(data):
    shapes = pliant.read_shapes(data / "faces/facecap/facecap.glb")
    assert len(shapes) == 53
    moved = np.linalg.norm(shapes.points[1:] - shapes.points[0], axis=2).max(axis=1) / shapes.base.diagonal
    assert 0.005 < np.median(moved) < 0.05
    by_name = dict(zip(shapes.names[1:], moved, strict=True))
    for name in shapes.names:
        if name.endswith("_L"):
            assert by_name[name] == pytest.approx(by_name[f"{name[:-1]}R"], rel=0.05)
