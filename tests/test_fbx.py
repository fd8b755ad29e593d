"""FBX files, read by ufbx: what is written by hand comes back as it was meant, and damaged files are only refused.

Blender's own import of the files it writes is compared with in blender/tests.
"""

from __future__ import annotations

import sys
import warnings
import zipfile

import numpy as np
import pytest

import pliant
from fbx_maker import strip_fbx
from pliant.core.errors import MissingExtraError
from pliant.core.shapes import World
from pliant.io.fbx import scene as fbx_scene

pytest.importorskip("ufbx")


@pytest.fixture(scope="module")
def strip(tmp_path_factory):
    path = tmp_path_factory.mktemp("fbx") / "strip.fbx"
    path.write_text(strip_fbx())
    return path


def bent(angle, tall):
    """The strip by hand: its second half turned about (2, 0)."""
    x = np.repeat(np.arange(5.0), 2)
    points = np.column_stack([x, np.tile([0.0, 1.0], 5), np.zeros(10)])
    points[[1, 3], 1] += 0.5 * tall
    c, s = np.cos(angle), np.sin(angle)
    turned = (points - [2, 0, 0]) @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]) + [2, 0, 0]
    return np.where(x[:, None] < 2, points, turned)


def test_a_mesh_at_rest(strip):
    mesh = pliant.read_mesh(strip)
    np.testing.assert_allclose(mesh.points, bent(0, 0), atol=1e-12)
    assert mesh.polygons.sizes.tolist() == [4, 4, 4, 4]
    np.testing.assert_allclose(mesh.uvs.at_corners[:4], [[0, 0], [1, 0], [1, 1], [0, 1]])
    assert mesh.world == World("y", 0.01)
    assert mesh.labels["object"].names == ("Strip",)
    assert mesh.labels["material"].names == ("Skin",)
    np.testing.assert_allclose(mesh.appearances["Skin"].color, (0.5, 0.25, 0.125, 1))
    np.testing.assert_allclose(mesh.vertex_groups["Knee"], np.repeat([0.0, 0, 1, 1, 1], 2))


def test_bones_of_one_name_keep_their_own_weights(strip, tmp_path):
    path = tmp_path / "twice.fbx"
    path.write_text(strip_fbx().replace("Model::Knee", "Model::Hip"))
    groups, skeleton = pliant.read_mesh(path).vertex_groups, pliant.read_skeleton(path)
    assert len(set(skeleton.names)) == 2
    assert set(groups) == set(skeleton.names)
    for name, own in zip(skeleton.names, ("Hip", "Knee"), strict=True):
        np.testing.assert_array_equal(groups[name], pliant.read_mesh(strip).vertex_groups[own])


def test_a_clip_moves_bones_and_blend_shapes(strip):
    clip = pliant.read_animation(strip, clip="bend")
    assert (clip.name, clip.fps, len(clip)) == ("Rig|Bend", 30, 11)
    for k, points in enumerate(clip.points):
        np.testing.assert_allclose(points, bent(np.radians(9 * k), k / 10), atol=1e-6)
    assert len(pliant.read_animation(strip, fps=60)) == 21


def test_shapes_and_their_weights(strip):
    shapes = pliant.read_shapes(strip)
    assert shapes.names == ("base", "tall")
    np.testing.assert_allclose(shapes.points[1], bent(0, 1), atol=1e-12)
    weights = pliant.io.weights.own_weights(strip)[0]
    np.testing.assert_allclose(weights.values[:, 1], np.linspace(0, 1, 11), atol=1e-6)


def test_bones_and_their_motion(strip):
    skeleton = pliant.read_skeleton(strip)
    assert skeleton.names == ("Hip", "Knee")
    assert skeleton.parents.tolist() == [-1, 0]
    np.testing.assert_allclose(skeleton.rest_world[0], [[0, 0, 0], [2, 0, 0]], atol=1e-12)
    motion = pliant.read_motion(strip)
    angles = 2 * np.arctan2(motion.rotations[:, 1, 3], motion.rotations[:, 1, 0])
    np.testing.assert_allclose(np.degrees(angles), np.linspace(0, 90, 11), atol=1e-5)


def test_axes_units_and_rates(tmp_path):
    path = tmp_path / "z.fbx"
    path.write_text(strip_fbx(up=2, unit=100.0, fps_mode=11))
    clip = pliant.read_animation(path)
    assert clip.shape.world == World("z", 1.0)
    assert clip.fps == 24
    assert len(clip) == 9


def test_a_skinned_export_keeps_its_bones(strip, tmp_path, command_line):
    code, _, err = command_line("convert", str(strip), str(tmp_path / "game.glb"), "--skin", "--correctives", "2")
    assert (code, err) == (0, "")
    assert pliant.read_skeleton(tmp_path / "game.glb").names == ("Hip", "Knee")
    code, _, err = command_line("convert", str(strip), str(tmp_path / "bad.glb"), "--skin", "--bones", "3")
    assert code == 2
    assert "has a skeleton" in err


def test_info_and_archives(strip, tmp_path, command_line):
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(strip, "rig/strip.fbx")
    assert len(pliant.read_mesh(tmp_path / "all.zip").points) == 10
    code, out, _ = command_line("info", str(strip))
    assert code == 0
    assert "Rig|Bend" in out


def test_nothing_is_written(strip, tmp_path, command_line):
    code, _, err = command_line("convert", str(strip), str(tmp_path / "out.fbx"))
    assert code == 2
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "", "is empty"),
        (lambda text: "no scene at all", "expected an FBX scene"),
        (lambda text: text.replace('"Mesh"', '"Null"'), "no mesh"),
        (lambda text: text.replace("0,2,3,-2", "0,2,3000,-2"), "expected an FBX scene"),
    ],
    ids=["empty", "other", "no mesh", "index"],
)
def test_what_cannot_be_read_is_one_line(tmp_path, change, message):
    path = tmp_path / "bad.fbx"
    path.write_text(change(strip_fbx()))
    with pytest.raises(pliant.FileError, match=message) as caught:
        pliant.read_mesh(path)
    assert "\n" not in str(caught.value)
    assert "bad.fbx" in str(caught.value)


@pytest.mark.slow
def test_cut_off_or_changed_anywhere(tmp_path):
    whole = strip_fbx().encode()
    path = tmp_path / "bad.fbx"
    random = np.random.default_rng(3)
    refused = 0
    for k in range(60):
        data = bytearray(whole[: random.integers(len(whole))] if k % 2 else whole)
        for _ in range(k % 5 * 4):
            data[random.integers(len(data))] = random.integers(256)
        path.write_bytes(data)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", pliant.PliantWarning)
                pliant.read(path)
        except pliant.FileError as error:
            refused += "\n" not in str(error)
    assert refused > 10


def test_no_such_clip(strip, tmp_path):
    with pytest.raises(pliant.FileError, match='no clip "walk"'):
        pliant.read_animation(strip, clip="walk")
    still = tmp_path / "still.fbx"
    still.write_text(strip_fbx().replace("AnimationCurveNode: 7", "Other: 7"))
    with pytest.raises(pliant.FileError, match="holds no animation"):
        pliant.read_animation(still)


def test_a_library_that_crashes_is_one_line(strip, tmp_path, monkeypatch):
    monkeypatch.setattr(fbx_scene, "__file__", str(tmp_path / "scene.py"))
    (tmp_path / "parse.py").write_text("import os\nos.abort()\n")
    with pytest.raises(pliant.FileError, match="cut off or damaged"):
        pliant.read_mesh(strip)


def test_without_the_extra(strip, monkeypatch):
    monkeypatch.setitem(sys.modules, "ufbx", None)
    with pytest.raises(MissingExtraError, match=r"pliant\[fbx\]"):
        pliant.read_mesh(strip)


def test_sliders_go_through_their_shapes_on_both_sides_of_zero():
    from pliant.io.fbx.scene import _shares

    weight = np.array([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5])
    np.testing.assert_allclose(
        _shares(np.array([-1.0, 1.0]), weight),
        [[2, 0], [1, 0], [0.5, 0], [0, 0], [0, 0.5], [0, 1], [0, 1.5]],
    )
    np.testing.assert_allclose(
        _shares(np.array([1.0, 0.5]), np.array([-0.5, 0.25, 0.75])), [[0, -1], [0, 0.5], [0.5, 0.5]]
    )
    assert _shares(np.zeros(0), weight).shape == (7, 0)
