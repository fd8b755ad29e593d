"""Alembic: what is written comes back, transforms are those of the format, and what moves does so at its time."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest

import pliant
from pliant import Animation, FileError, Mesh, PliantWarning, PointCloud, rotations
from pliant.core.shapes import Labels, Layer, World
from pliant.io.alembic.ogawa import DATA, OgawaWriter
from pliant.io.alembic.read import _operation
from pliant.io.alembic.write import Compound, _object, _title

RNG = np.random.default_rng(3)
POINTS = RNG.normal(size=(5, 3))
FACES = [[3, 2, 1, 0], [0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]]


def rich() -> Mesh:
    """A mesh with all that Alembic holds."""
    corners = 16
    return Mesh(
        POINTS,
        FACES,
        uvs=Layer(RNG.random((7, 2)), RNG.integers(0, 7, corners)),
        normals=Layer(np.eye(3)[RNG.integers(0, 3, corners)], np.arange(corners)),
        labels={"material": Labels(("red", "blue"), np.array([0, 1, 1, 0, 1]))},
        attributes={"color": RNG.random((5, 4)), "heat": RNG.random(5)},
        vertex_groups={"tip": RNG.random(5)},
    )


def test_all_that_it_holds_comes_back(tmp_path):
    mesh = rich()
    pliant.write(tmp_path / "a.abc", mesh)
    back = pliant.read_mesh(tmp_path / "a.abc")
    assert np.abs(back.points - mesh.points).max() < 1e-6
    assert [list(p) for p in back.polygons] == FACES
    for layer in ("uvs", "normals"):
        assert np.abs(getattr(back, layer).at_corners - getattr(mesh, layer).at_corners).max() < 1e-6
    label = back.labels["material"]
    assert [label.names[k] for k in label.index] == ["red", "blue", "blue", "red", "blue"]
    for name, values in mesh.attributes.items():
        assert np.abs(back.attributes[name] - values).max() < 1e-6
    assert np.abs(back.vertex_groups["tip"] - mesh.vertex_groups["tip"]).max() < 1e-6
    pliant.write(tmp_path / "b.abc", mesh)
    pliant.write(tmp_path / "a.abc", mesh)
    assert (tmp_path / "a.abc").read_bytes() != b""
    assert pliant.read(tmp_path / "b.abc").points.tolist() == back.points.tolist()


@pytest.mark.parametrize("fps", [24.0, 25.0, 30.0, 24000 / 1001, 120.0])
def test_a_clip_keeps_its_frames_and_its_rate(tmp_path, fps):
    clip = Animation(replace(rich(), normals=None), POINTS + RNG.normal(size=(7, 5, 3)), fps)
    pliant.write(tmp_path / "a.abc", clip)
    back = pliant.read_animation(tmp_path / "a.abc")
    assert back.fps == pytest.approx(fps, rel=1e-9)
    assert np.abs(back.points - clip.points).max() < 1e-6
    halved = pliant.read_animation(tmp_path / "a.abc", fps=fps / 2)
    assert np.abs(halved.points - clip.points[::2]).max() < 1e-6
    doubled = pliant.read_animation(tmp_path / "a.abc", fps=2 * fps)
    assert np.abs(doubled.points[1::2] - (clip.points[1:] + clip.points[:-1]) / 2).max() < 1e-6


def test_clouds_and_velocities(tmp_path):
    speed = np.array([0.5, -1.0, 2.0])
    frames = POINTS + np.arange(4)[:, None, None] * speed / 30
    cloud = PointCloud(POINTS, attributes={"velocity": np.zeros((5, 3)), "color": RNG.random((5, 3))})
    pliant.write(tmp_path / "a.abc", Animation(cloud, frames, 30.0))
    back = pliant.read_animation(tmp_path / "a.abc")
    assert isinstance(back.shape, PointCloud)
    assert np.abs(back.points - frames).max() < 1e-6
    assert np.abs(back.shape.attributes["velocity"] - speed).max() < 1e-4
    with pytest.raises(FileError, match="no mesh with faces"):
        pliant.read_mesh(tmp_path / "a.abc")


@pytest.mark.parametrize("world", [World("z", 1.0), World("y", 0.01), World("z", 0.001), World("z", None)])
def test_axes_and_units_are_a_transform_for_others_and_come_back_here(tmp_path, world):
    pliant.write(tmp_path / "a.abc", replace(rich(), world=world))
    back = pliant.read_mesh(tmp_path / "a.abc")
    assert back.world == world
    assert np.abs(back.points - POINTS).max() < 1e-6
    bare = (tmp_path / "a.abc").read_bytes().replace(b"pliantUp", b"someoneU")
    (tmp_path / "b.abc").write_bytes(bare)
    up = POINTS @ np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]]) if world.up == "z" else POINTS
    assert np.abs(pliant.read_mesh(tmp_path / "b.abc").points - up * (world.metres or 1)).max() < 1e-6


def archive(path, levels, *, inherits=True, hidden=False, extra=""):
    """A pyramid below transforms, the outermost first, each a list of (operation, numbers)."""
    with path.open("wb") as stream:
        file = OgawaWriter(stream)
        geometry, properties = Compound(file), Compound(file)
        geometry.array("P", [POINTS.astype("<f4")])
        geometry.array(".faceIndices", [np.concatenate(FACES).astype("<i4")[:, None]])
        geometry.array(".faceCounts", [np.array([len(face) for face in FACES], "<i4")[:, None]])
        properties.compound(".geom", geometry)
        if hidden:
            properties.scalar("visible", [np.zeros((1, 1), np.int8)])
        child = ("pyramid", _title("AbcGeom_PolyMesh_v1", ".geom"), _object(file, properties.close(), []))
        others = [("eye", _title(extra, ".geom"), _object(file, 0, []))] if extra else []
        for operations in reversed(levels):
            table, properties = Compound(file), Compound(file)
            table.scalar(".inherits", [np.array([[inherits]])])
            table.scalar(".ops", [np.array([[kind << 4 for kind, _ in operations]], np.uint8)])
            table.scalar(".vals", [np.concatenate([numbers for _, numbers in operations])[None].astype("<f8")])
            properties.compound(".xform", table)
            group = _object(file, properties.close(), [child, *others])
            child, others = ("x", "schema=AbcGeom_Xform_v3", group), []
        top = _object(file, 0, [child])
        versions = [file.data(struct.pack("<I", number)) for number in (0, 10803)]
        samplings = file.data(struct.pack("<IdId", 1, 1.0, 1, 0.0))
        file.close(file.group([*versions, top, file.data(b"a=b"), samplings, file.data()]))


def test_the_last_operation_of_a_transform_acts_first_and_parents_act_last(tmp_path):
    """Scale, then a rotation, then a translation, as their stack is listed the other way round."""
    axis, angle = np.array([1.0, 2.0, -1.0]), 40.0
    R = rotations.matrix(rotations.from_axis_angle(axis, np.radians(angle)))
    scale, shift, parent = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]), np.array([0.0, 0.0, 7.0])
    stack = [(1, shift), (2, [*axis, angle]), (0, scale)]
    expected = (POINTS * scale) @ R.T + shift
    archive(tmp_path / "a.abc", [[(1, parent)], stack])
    assert np.abs(pliant.read_mesh(tmp_path / "a.abc").points - expected - parent).max() < 1e-5
    archive(tmp_path / "b.abc", [[(1, parent)], stack], inherits=False)
    assert np.abs(pliant.read_mesh(tmp_path / "b.abc").points - expected).max() < 1e-5


def test_rotations_about_the_axes_are_those_about_a_vector():
    for kind, axis in ((4, [1, 0, 0]), (5, [0, 1, 0]), (6, [0, 0, 1])):
        assert np.allclose(_operation(kind, np.array([33.0])), _operation(2, np.array([*axis, 33.0])), atol=1e-15)
    assert np.allclose(_operation(2, np.array([0, 0, 5.0, 90.0]))[0, :3], [0, 1, 0])


def test_a_mirroring_transform_reverses_the_faces(tmp_path):
    archive(tmp_path / "a.abc", [[(0, [1.0, 1.0, 1.0])]])
    archive(tmp_path / "b.abc", [[(0, [-1.0, 1.0, 1.0])]])
    plain, mirrored = (pliant.read_mesh(tmp_path / f"{name}.abc") for name in "ab")
    assert np.sign(plain.volume) == np.sign(mirrored.volume)
    assert [sorted(p) for p in plain.polygons] == [sorted(p) for p in mirrored.polygons]


def test_hidden_and_other_objects_are_left_out(tmp_path):
    archive(tmp_path / "a.abc", [[(0, [1.0, 1.0, 1.0])]], hidden=True)
    with pytest.raises(FileError, match="no meshes or points that a viewer would draw"):
        pliant.read(tmp_path / "a.abc")
    archive(tmp_path / "b.abc", [[(0, [1.0, 1.0, 1.0])]], extra="AbcGeom_Camera_v1")
    with pytest.warns(PliantWarning, match="objects of type Camera are left out"):
        assert len(pliant.read_mesh(tmp_path / "b.abc").points) == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: b"\x89HDF" + data[4:], "old HDF5 kind; export it as Ogawa"),
        (lambda data: data[:5] + b"\0" + data[6:], "was not written to its end"),
        (lambda data: data[:6] + b"\1\1" + data[8:], "version 257; expected version 1"),
        (lambda data: data[:8] + struct.pack("<Q", 1 << 40) + data[16:], "refers to byte"),
        (lambda data: data[:8] + struct.pack("<Q", DATA) + data[16:], "data where a group is expected"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path, change, message):
    pliant.write(tmp_path / "a.abc", rich())
    (tmp_path / "b.abc").write_bytes(change((tmp_path / "a.abc").read_bytes()))
    with pytest.raises(FileError, match=message):
        pliant.read(tmp_path / "b.abc")


def test_groups_that_refer_to_each_other_end(tmp_path):
    """A root of versions whose objects hold themselves, twice each."""
    with (tmp_path / "a.abc").open("wb") as stream:
        file = OgawaWriter(stream)
        versions = [file.data(struct.pack("<I", number)) for number in (0, 10803)]
        header = file.data(2 * (struct.pack("<I", 1) + b"x" + struct.pack("<BI", 255, 0)) + bytes(32))
        at = stream.tell()
        loop = file.group([0, at, at, header])
        assert loop == at
        samplings = file.data(struct.pack("<IdId", 1, 1.0, 1, 0.0))
        file.close(file.group([*versions, loop, file.data(b"a"), samplings, file.data()]))
    with pytest.raises(FileError, match=r"nests more than|again and again"):
        pliant.read(tmp_path / "a.abc")
