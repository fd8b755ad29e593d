"""Reading glTF: hand-made files with known contents, in every way the format allows to say the same thing."""

import sys

import numpy as np
import pytest

import pliant
from gltf_maker import FACES, TETRAHEDRON, Maker, rigged
from pliant import FileError, PliantWarning
from pliant.io import kinds_in
from pliant.io.gltf import describe, kinds
from pliant.io.source import Source

TURN = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
"""A quarter turn about z: quaternion (0, 0, √½, √½)."""
QUARTER = [0, 0, np.sqrt(0.5), np.sqrt(0.5)]


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("form", ["glb", "data URI", "bin"])
def test_containers_hold_the_same(tmp_path, form):
    m = Maker()
    m.add("nodes", mesh=m.mesh(TETRAHEDRON, FACES))
    path = m.glb(tmp_path / "a.glb") if form == "glb" else m.gltf(tmp_path / "a.gltf", embed=form == "data URI")
    mesh = pliant.read_mesh(path)
    close(mesh.points, TETRAHEDRON)
    assert np.array_equal(mesh.triangles, FACES)
    assert mesh.volume == pytest.approx(1 / 6)


def test_nodes_place_meshes_in_the_world(tmp_path):
    m = Maker()
    mesh = m.mesh(TETRAHEDRON, FACES)
    m.add("nodes", children=[1, 2], translation=[10, 0, 0], rotation=QUARTER, scale=[2, 2, 2])
    m.add("nodes", name="near", mesh=mesh, translation=[0, 0, 1])
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = TURN, [1, 2, 3]
    m.add("nodes", name="far", mesh=mesh, matrix=matrix.T.ravel().tolist())
    m.add("scenes", nodes=[0])
    read = pliant.read_mesh(m.glb(tmp_path / "a.glb"))
    outer = lambda p: 2 * p @ TURN.T + [10, 0, 0]  # noqa: E731
    close(read.points[:4], outer(TETRAHEDRON + np.array([0, 0, 1])))
    close(read.points[4:], outer(TETRAHEDRON @ TURN.T + [1, 2, 3]))
    assert read.labels["object"].names == ("near", "far")
    assert read.labels["object"].index.tolist() == [0] * 4 + [1] * 4


def test_mirrored_nodes_keep_faces_and_normals_outwards(tmp_path):
    m = Maker()
    outward = m.accessor(np.array([[-1, -1, -1], [1, 0, 0], [0, 1, 0], [0, 0, 1]]) / np.sqrt([[3], [1], [1], [1]]))
    m.add("nodes", mesh=m.mesh(TETRAHEDRON, FACES, attributes={"NORMAL": outward}), scale=[-1, 2, 1])
    read = pliant.read_mesh(m.glb(tmp_path / "a.glb"))
    assert read.volume == pytest.approx(2 / 6)
    corners = read.normals.at_corners
    close(corners[read.polygons.corners == 1][0], [-1, 0, 0])
    close(corners[read.polygons.corners == 0][0], np.array([1, -0.5, -1]) / 1.5)


def test_only_the_shown_scene_is_read_and_nodes_come_in_its_order(tmp_path):
    m = Maker()
    mesh = m.mesh(TETRAHEDRON, FACES)
    for name in "abc":
        m.add("nodes", name=name, mesh=mesh)
    m.add("scenes", nodes=[0])
    m.add("scenes", nodes=[2, 1])
    m.json["scene"] = 1
    assert pliant.read_mesh(m.glb(tmp_path / "a.glb")).labels["object"].names == ("c", "b")


def test_a_mesh_without_nodes_is_still_read(tmp_path):
    m = Maker()
    m.mesh(TETRAHEDRON, FACES)
    assert len(pliant.read_mesh(m.glb(tmp_path / "a.glb")).points) == 4


def test_primitives_share_vertices_if_they_share_accessors(tmp_path):
    m = Maker()
    m.add("materials", name="red")
    m.add("materials", name="blue")
    mesh = m.mesh(TETRAHEDRON, FACES[:2], material=0)
    first = m.json["meshes"][mesh]["primitives"][0]
    second = {**first, "indices": m.accessor(FACES[2:].ravel(), "uint8"), "material": 1}
    apart = {**second, "attributes": {"POSITION": m.accessor(TETRAHEDRON + 9)}}
    m.json["meshes"][mesh]["primitives"] += [second, apart]
    read = pliant.read_mesh(m.glb(tmp_path / "a.glb"))
    assert len(read.points) == 8
    assert np.array_equal(read.triangles[:4], FACES)
    assert read.labels["material"].names == ("red", "blue")
    assert read.labels["material"].index.tolist() == [0, 0, 1, 1, 1, 1]


def test_strips_fans_and_plain_lists(tmp_path):
    square = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]
    expected = {4: [[0, 1, 2]], 5: [[0, 1, 2], [1, 3, 2]], 6: [[0, 1, 2], [0, 2, 3]]}
    for mode, triangles in expected.items():
        m = Maker()
        m.mesh(square[: 3 if mode == 4 else 4], mode=mode)
        assert pliant.read_mesh(m.glb(tmp_path / "a.glb")).triangles.tolist() == triangles


def test_strips_leave_out_their_stitches(tmp_path):
    m = Maker()
    m.mesh(TETRAHEDRON, [0, 1, 2, 2, 3, 3, 1, 0], mode=5)
    triangles = pliant.read_mesh(m.glb(tmp_path / "a.glb")).triangles
    assert triangles.tolist() == [[0, 1, 2], [3, 0, 1]]  # the sixth is an odd one, turned round


def test_lines_are_ignored_with_a_word(tmp_path):
    m = Maker()
    m.mesh(TETRAHEDRON, FACES)
    m.mesh(TETRAHEDRON, [0, 1], mode=1)
    path = m.glb(tmp_path / "a.glb")
    with pytest.warns(PliantWarning, match="mesh 1, primitive 0: ignored its lines"):
        assert len(pliant.read_mesh(path).points) == 4


def test_points_are_a_cloud_only_without_triangles(tmp_path):
    m = Maker()
    color = m.accessor([[255, 0, 51]] * 4, "uint8", normalized=True)
    m.mesh(TETRAHEDRON, mode=0, attributes={"COLOR_0": color})
    path = m.glb(tmp_path / "a.glb")
    cloud = pliant.read_points(path)
    close(cloud.points, TETRAHEDRON)
    close(cloud.attributes["color"][2], [1, 0, 0.2])
    assert kinds(Source(path)) == ("points",)
    with pytest.raises(FileError, match="points without faces"):
        pliant.read_mesh(path)


@pytest.mark.parametrize(("dtype", "normalized", "scale"), [
    ("int8", True, 127), ("uint8", True, 255), ("int16", True, 32767), ("uint16", True, 65535), ("int16", False, 1),
])  # fmt: skip
def test_quantised_positions(tmp_path, dtype, normalized, scale):
    m = Maker()
    stored = np.array([[0, 0, 0], [100, 0, 0], [0, 50, 0], [0, 0, 127]])
    primitive = {"attributes": {"POSITION": m.accessor(stored, dtype, normalized=normalized)},
                 "indices": m.accessor(FACES.ravel(), "uint32")}  # fmt: skip
    m.add("nodes", mesh=m.add("meshes", primitives=[primitive]), scale=[scale] * 3)
    m.json["extensionsRequired"] = ["KHR_mesh_quantization"]
    close(pliant.read_mesh(m.glb(tmp_path / "a.glb")).points, stored)


def test_interleaved_attributes_and_uvs_turn_up(tmp_path):
    m = Maker()
    uvs = np.random.default_rng(1).random((4, 2))
    position, uv = m.interleaved(TETRAHEDRON, uvs)
    more = m.accessor(uvs / 2)
    primitive = {"attributes": {"POSITION": position, "TEXCOORD_0": uv, "TEXCOORD_1": more},
                 "indices": m.accessor(FACES.ravel(), "uint8")}  # fmt: skip
    m.add("meshes", primitives=[primitive])
    read = pliant.read_mesh(m.glb(tmp_path / "a.glb"))
    close(read.points, TETRAHEDRON)
    close(read.uvs.at_corners, (uvs * [1, -1] + [0, 1])[read.polygons.corners])
    close(read.attributes["TEXCOORD_1"], uvs / 2)


@pytest.mark.parametrize("based", [False, True])
def test_sparse_accessors(tmp_path, based):
    m = Maker()
    position = m.accessor(TETRAHEDRON if based else np.zeros((4, 3)))
    if not based:
        del m.json["accessors"][position]["bufferView"]
    m.json["accessors"][position]["sparse"] = {
        "count": 2,
        "indices": {"bufferView": m.view(np.array([1, 3], "uint8").tobytes()), "componentType": 5121},
        "values": {"bufferView": m.view(np.array([[7, 8, 9], [4, 5, 6]], "float32").tobytes())},
    }
    m.add("meshes", primitives=[{"attributes": {"POSITION": position}, "indices": m.accessor(FACES.ravel(), "uint8")}])
    expected = TETRAHEDRON * based
    expected[[1, 3]] = [[7, 8, 9], [4, 5, 6]]
    close(pliant.read_mesh(m.glb(tmp_path / "a.glb")).points, expected)


def test_materials_bring_colour_texture_and_their_own_words(tmp_path):
    path = rigged().glb(tmp_path / "a.glb")
    mesh = pliant.read_mesh(path)
    assert mesh.labels["material"].names == ("skin", "material 1")
    skin, other = mesh.appearances["skin"], mesh.appearances["material 1"]
    assert skin.color == (1, 1, 1, 1)
    assert skin.texture.data.startswith(b"\x89PNG")
    assert skin.texture.mime == "image/png"
    assert skin.native["gltf"]["samplers"] == [{"magFilter": 9729}]
    assert other.texture is None
    assert other.native["gltf"]["material"]["normalTexture"] == {"index": 0, "scale": 0.5}


def test_a_missing_picture_is_left_out_with_a_word(tmp_path):
    m = rigged()
    m.json["images"] = [{"uri": "gone.png"}]
    path = m.glb(tmp_path / "a.glb")
    with pytest.warns(PliantWarning, match=r'image 0: its file "gone.png" is missing'):
        mesh = pliant.read_mesh(path)
    assert mesh.appearances["skin"].texture is None
    assert "baseColorTexture" not in mesh.appearances["skin"].native["gltf"]["material"]["pbrMetallicRoughness"]


def test_nan_normals_are_computed_anew(tmp_path):
    m = Maker()
    normals = np.tile([0.0, 0, 1], (4, 1))
    normals[2] = np.nan
    m.mesh(TETRAHEDRON, FACES, attributes={"NORMAL": m.accessor(normals)})
    path = m.glb(tmp_path / "a.glb")
    with pytest.warns(PliantWarning, match="NORMAL 2 is not finite"):
        mesh = pliant.read_mesh(path)
    assert np.linalg.norm(mesh.normals.at_corners, axis=1) == pytest.approx(1)


def test_joints_are_vertex_groups(tmp_path):
    groups = pliant.read_mesh(rigged().glb(tmp_path / "a.glb")).vertex_groups
    assert list(groups) == ["hip", "knee"]
    close(groups["hip"][:4], np.array([255, 128, 0, 55]) / 255)
    assert not groups["hip"][4:].any()
    close((groups["hip"] + groups["knee"])[:4], 1)


def test_second_set_of_joints_counts(tmp_path):
    m = rigged()
    weights = np.zeros((4, 4))
    attributes = m.json["meshes"][0]["primitives"][0]["attributes"]
    attributes["JOINTS_1"] = m.accessor([[1, 0, 0, 0]] * 4, "uint16")
    weights[0, 0] = 1
    attributes["WEIGHTS_1"] = m.accessor(weights)
    close(pliant.read_mesh(m.glb(tmp_path / "a.glb")).vertex_groups["knee"][0], 0.5)


def test_shapes_are_morph_targets_by_name_across_meshes(tmp_path):
    m = Maker()
    smile, open_ = np.eye(4, 3), -np.eye(4, 3)
    for k, (names, deltas) in enumerate([(["smile", "open"], [smile, open_]), (["open"], [2 * open_]), ([], [])]):
        mesh = m.mesh(TETRAHEDRON + 10 * k, FACES, **({"targets": [{"POSITION": m.accessor(d)} for d in deltas]}
                                                     if deltas else {}))  # fmt: skip
        if names:
            m.json["meshes"][mesh]["extras"] = {"targetNames": names}
        m.add("nodes", mesh=mesh, scale=[2, 2, 2])
    m.json["meshes"][0]["weights"] = [1, 0]
    path = m.glb(tmp_path / "a.glb")
    shapes = pliant.read_shapes(path)
    assert shapes.names == ("base", "smile", "open")
    still = 2 * np.concatenate([TETRAHEDRON, TETRAHEDRON + 10, TETRAHEDRON + 20])
    close(shapes.points[0], still)
    close(shapes.points[1] - still, np.concatenate([2 * smile, 0 * smile, 0 * smile]))
    close(shapes.points[2] - still, np.concatenate([2 * open_, 4 * open_, 0 * smile]))
    close(pliant.read_mesh(path).points[:4], 2 * (TETRAHEDRON + smile))  # shown with its default weights


def test_unnamed_targets_are_numbered(tmp_path):
    m = Maker()
    m.mesh(TETRAHEDRON, FACES, targets=[{"POSITION": m.accessor(np.eye(4, 3))}, {}])
    assert pliant.read_shapes(m.glb(tmp_path / "a.glb")).names == ("base", "target 0", "target 1")


def test_without_targets_it_says_so(tmp_path):
    m = Maker()
    m.mesh(TETRAHEDRON, FACES)
    path = m.glb(tmp_path / "a.glb")
    with pytest.raises(FileError, match="no morph targets"):
        pliant.read_shapes(path)
    with pytest.raises(FileError, match="no animation"):
        pliant.read_animation(path)
    with pytest.raises(FileError, match="no skin"):
        pliant.read_skeleton(path)
    assert kinds_in(Source(path)) == ("mesh",)


def test_kinds_and_description(tmp_path):
    source = Source(rigged().gltf(tmp_path / "a.gltf"))
    assert kinds(source) == ("animation", "shapes", "mesh", "motion", "skeleton")
    about = describe(source)
    assert about["morph targets"] == ["wide", "tall"]
    assert [clip["name"] for clip in about["clips"]] == ["turn", "grow", "spline"]
    assert about["clips"][0]["seconds"] == 1
    assert about["clips"][0]["keyframes"] == 3
    assert about["skins"] == [{"name": "skin 0", "joints": 2}]
    assert about["primitives"] == 2
    assert about["images"] == ["image 0"]


def test_an_extension_that_is_not_read_is_named(tmp_path):
    m = Maker()
    m.mesh(TETRAHEDRON, FACES)
    m.json["extensionsRequired"] = ["EXT_unheard_of"]
    with pytest.raises(FileError, match=r"needs EXT_unheard_of, which pliant does not read; export again without it"):
        pliant.read_mesh(m.glb(tmp_path / "a.glb"))


def draco_file(path, *, attributes=None, change=lambda packed: packed):
    """A tetrahedron with a value on its vertices, all of it packed by Draco."""
    DracoPy = pytest.importorskip("DracoPy", reason="Draco is an extra")
    m, points = Maker(), np.asarray(TETRAHEDRON, np.float32)
    heat = np.arange(4, dtype=np.float32)[:, None]
    packed = DracoPy.encode(points, np.asarray(FACES, np.uint32), generic_attributes={"h": heat}, preserve_order=True)
    known = {one["name"]: one["unique_id"] for one in DracoPy.decode(packed).attributes}
    extension = {"bufferView": m.view(change(packed)), "attributes": {"POSITION": known[None], "_HEAT": known["h"]}}
    extension["attributes"] |= attributes or {}
    heats = m.accessor(heat[:, 0])
    mesh = m.mesh(points, FACES, attributes={"_HEAT": heats}, extensions={"KHR_draco_mesh_compression": extension})
    primitive = m.json["meshes"][mesh]["primitives"][0]
    for accessor in (*primitive["attributes"].values(), primitive["indices"]):
        del m.json["accessors"][accessor]["bufferView"]
    m.json["extensionsRequired"] = ["KHR_draco_mesh_compression"]
    return m.glb(path)


def test_primitives_packed_by_draco_are_read(tmp_path):
    mesh = pliant.read_mesh(draco_file(tmp_path / "a.glb"))
    assert np.abs(mesh.points - TETRAHEDRON).max() < 1e-4 * mesh.diagonal
    assert np.array_equal(mesh.triangles, FACES)
    assert np.allclose(mesh.attributes["_HEAT"], np.arange(4))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"attributes": {"POSITION": 99}}, "has no attribute 99, which is its POSITION"),
        ({"change": lambda packed: packed[:20]}, "its Draco data cannot be read"),
        ({"change": lambda packed: b"x" * 40}, "its Draco data cannot be read"),
    ],
)
def test_what_is_wrong_with_draco_data_is_said(tmp_path, more, message):
    with pytest.raises(FileError, match=message):
        pliant.read_mesh(draco_file(tmp_path / "a.glb", **more))


def test_without_draco_the_remedy_is_said(tmp_path, monkeypatch):
    path = draco_file(tmp_path / "a.glb")
    monkeypatch.setitem(sys.modules, "DracoPy", None)
    with pytest.raises(FileError, match=r"compressed with Draco; pip install .pliant\[draco\]"):
        pliant.read_mesh(path)
