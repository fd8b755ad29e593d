"""Writing glTF: what is written reads back the same, passes the Khronos validator, and plays from frame to frame."""

import io
import json
import struct
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from PIL import Image as Pillow

import gltf_validator
import pliant
from gltf_maker import Maker, rigged
from pliant import (
    Animation,
    Appearance,
    Image,
    InputError,
    Labels,
    Layer,
    Mesh,
    PliantWarning,
    PointCloud,
    Shapes,
    TetMesh,
)
from pliant.core.normals import vertex_normals
from pliant.core.shapes import World
from surfaces import box, sphere


@pytest.fixture(scope="session")
def khronos():
    """The Khronos validator's home; skips where it cannot be installed."""
    reason, home = gltf_validator.installed()
    if home is None:
        pytest.skip(reason)
    return home


@pytest.fixture(scope="session")
def validate():
    """A check of written files by the Khronos validator; where that is absent (see below), no check."""
    _, home = gltf_validator.installed()
    return (lambda *_, **__: None) if home is None else partial(gltf_validator.check, home)


def picture(color=(200, 40, 40)) -> bytes:
    out = io.BytesIO()
    Pillow.new("RGB", (4, 4), color).save(out, "PNG")
    return out.getvalue()


def json_of(path) -> dict:
    """A .glb's or .gltf's JSON."""
    data = path.read_bytes()
    return json.loads(data[20 : 20 + struct.unpack_from("<I", data, 12)[0]] if data[:4] == b"glTF" else data)


def studio() -> Mesh:
    """Two boxes with seams, hard edges, an n-gon, two objects, three materials, groups, colours and a loose vertex."""
    rng = np.random.default_rng(3)
    one, two = box(), box(centre=(4, 0, 0))
    points = np.concatenate([one.points, two.points, [[9.0, 9, 9], [2, 3, 0]]])
    faces = [*one.polygons, *(two.polygons.corners.reshape(-1, 4)[:5] + 8), [9, 13, 15, 11, 17], [15, 13, 12]]
    corners = sum(len(face) for face in faces)
    normals = rng.normal(size=(corners, 3)).astype(np.float32).astype(float)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    names = ("paint", "rust", "glass")
    looks = {
        "paint": Appearance((0.5, 0.25, 0.125, 1), Image("red.png", picture(), "image/png")),
        "glass": Appearance((1.0, 1.0, 1.0, 0.25)),
    }
    return Mesh(
        points,
        faces,
        uvs=Layer(rng.random((corners, 2)).astype(np.float32).astype(float), np.arange(corners)),
        normals=Layer(normals, rng.integers(0, corners, corners)),
        labels={
            "object": Labels(("left", "right"), np.array([0] * 6 + [1] * 7)),
            "material": Labels(names, rng.integers(0, 3, 13)),
            "group": Labels(("a", "b", "c", "d"), rng.integers(0, 4, 13)),
        },
        appearances=looks,
        attributes={"color": rng.random((18, 4)), "heat": rng.random(18), "number": np.arange(18) * 1000},
        vertex_groups={"arm": rng.random(18), "leg": np.eye(18)[4]},
    )


def check_same(actual: Mesh, expected: Mesh) -> None:
    size = 1e-6 * max(expected.diagonal, 1)
    np.testing.assert_allclose(actual.points, expected.points, rtol=0, atol=size)
    assert np.array_equal(actual.polygons.corners, expected.polygons.corners)
    assert np.array_equal(actual.polygons.offsets, expected.polygons.offsets)
    assert np.array_equal(actual.triangles, expected.triangles)
    assert np.array_equal(actual.triangle_polygon, expected.triangle_polygon)
    for name in ("uvs", "normals"):
        ours, theirs = getattr(actual, name), getattr(expected, name)
        assert (ours is None) == (theirs is None)
        if theirs is not None:
            np.testing.assert_allclose(ours.at_corners, theirs.at_corners, rtol=0, atol=2e-7)
    assert set(actual.labels) == set(expected.labels)
    for name, label in expected.labels.items():
        assert actual.labels[name].names == label.names
        assert np.array_equal(actual.labels[name].index, label.index)
    assert list(actual.vertex_groups) == list(expected.vertex_groups)
    for name, weights in expected.vertex_groups.items():
        np.testing.assert_allclose(actual.vertex_groups[name], weights, atol=1e-7)
    assert set(actual.attributes) == set(expected.attributes)
    for name, values in expected.attributes.items():
        np.testing.assert_allclose(actual.attributes[name], values, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("suffix", [".glb", ".gltf"])
@pytest.mark.parametrize("make", [studio, box, sphere], ids=lambda make: make.__name__)
def test_a_mesh_comes_back_whole(tmp_path, validate, make, suffix):
    mesh = make()
    files = pliant.write(tmp_path / f"my mesh{suffix}", mesh)
    assert len(files) == (1 if suffix == ".glb" else 2)
    path = tmp_path / f"my mesh{suffix}"
    check_same(pliant.read_mesh(path), mesh)
    validate(path)


def test_materials_come_back(tmp_path):
    mesh = studio()
    pliant.write(tmp_path / "a.glb", mesh)
    looks = pliant.read_mesh(tmp_path / "a.glb").appearances
    assert looks["paint"].color == (0.5, 0.25, 0.125, 1)
    assert looks["paint"].texture.data == mesh.appearances["paint"].texture.data
    assert looks["paint"].texture.name == "red.png"
    assert looks["glass"].color[3] == 0.25
    written = json_of(tmp_path / "a.glb")
    assert {m["name"]: m.get("alphaMode") for m in written["materials"]}["glass"] == "BLEND"
    assert all(m["doubleSided"] for m in written["materials"])
    assert written["asset"]["generator"] == f"pliant {pliant.__version__}"
    pliant.write(tmp_path / "closed.glb", sphere())
    assert "doubleSided" not in json_of(tmp_path / "closed.glb")["materials"][0]


def test_one_primitive_for_each_object_and_material(tmp_path):
    mesh = studio()
    pliant.write(tmp_path / "a.glb", mesh)
    written = json_of(tmp_path / "a.glb")
    assert [node["name"] for node in written["nodes"]] == ["left", "right"]
    pairs = set(zip(mesh.labels["object"].index.tolist(), mesh.labels["material"].index.tolist(), strict=True))
    assert sum(len(m["primitives"]) for m in written["meshes"]) == len(pairs)


def test_vertices_without_seams_are_not_split(tmp_path):
    mesh = sphere()
    smooth = replace(mesh, normals=Layer(vertex_normals(mesh.points, mesh.triangles), mesh.polygons.corners))
    pliant.write(tmp_path / "a.glb", smooth)
    written = json_of(tmp_path / "a.glb")
    position = written["meshes"][0]["primitives"][0]["attributes"]["POSITION"]
    assert written["accessors"][position]["count"] == len(mesh.points)
    assert "vertex" not in written["extras"]["pliant"]


@pytest.mark.parametrize("native", ["given", "recoloured"])
def test_a_gltf_material_passes_through_unchanged(tmp_path, validate, native):
    m = rigged()
    m.json["images"][0]["bufferView"] = m.view(picture())
    m.json["extensionsUsed"] = ["KHR_materials_clearcoat", "KHR_texture_transform"]
    clearcoat = {"clearcoatFactor": 0.5, "clearcoatTexture": {"index": 0}}
    transform = {"KHR_texture_transform": {"scale": [2, 2]}}
    m.json["materials"][0].update(
        extensions={"KHR_materials_clearcoat": clearcoat},
        pbrMetallicRoughness={
            "baseColorTexture": {"index": 0, "extensions": transform},
            "metallicRoughnessTexture": {"index": 0},
            "roughnessFactor": 0.25,
        },
        emissiveFactor=[0.5, 0, 0],
        extras={"note": "mine"},
    )
    mesh = pliant.read_mesh(m.glb(tmp_path / "in.glb"))
    expected = json.loads(json.dumps(m.json["materials"][0]))
    if native == "recoloured":
        look = mesh.appearances["skin"]
        mesh = replace(mesh, appearances={**mesh.appearances, "skin": replace(look, color=(0.5, 0, 0, 1.0))})
        expected["pbrMetallicRoughness"]["baseColorFactor"] = [0.5, 0, 0, 1.0]
    pliant.write(tmp_path / "out.glb", mesh)
    written = json_of(tmp_path / "out.glb")
    assert written["materials"][0] == expected
    assert written["textures"] == [{"sampler": 0, "source": 0}]
    assert written["samplers"] == [{"magFilter": 9729}]
    assert len(written["images"]) == 1
    assert written["extensionsUsed"] == ["KHR_materials_clearcoat", "KHR_texture_transform"]
    again = pliant.read_mesh(tmp_path / "out.glb").appearances["skin"]
    assert again.native["gltf"]["material"] == expected
    assert again.texture.data == picture()
    # Tangents are left to the viewer: written ones would be wrong as soon as the points move.
    validate(tmp_path / "out.glb", allow=("MESH_PRIMITIVE_GENERATED_TANGENT_SPACE",))


def test_textures_without_uvs_are_left_out(tmp_path, validate):
    mesh = replace(studio(), uvs=None)
    pliant.write(tmp_path / "a.glb", mesh)
    assert "textures" not in json_of(tmp_path / "a.glb")
    validate(tmp_path / "a.glb")


def test_pictures_that_gltf_cannot_hold_become_png(tmp_path, validate):
    out = io.BytesIO()
    Pillow.new("RGB", (4, 4), (9, 8, 7)).save(out, "BMP")
    mesh = studio()
    looks = {"paint": Appearance(texture=Image("a.bmp", out.getvalue(), "image/bmp"))}
    pliant.write(tmp_path / "a.glb", replace(mesh, appearances=looks))
    texture = pliant.read_mesh(tmp_path / "a.glb").appearances["paint"].texture
    assert texture.mime == "image/png"
    assert Pillow.open(io.BytesIO(texture.data)).convert("RGB").getpixel((0, 0)) == (9, 8, 7)
    validate(tmp_path / "a.glb")
    broken = {"paint": Appearance(texture=Image("a.bmp", b"no picture", "image/bmp"))}
    with pytest.warns(PliantWarning, match="a.bmp"):
        pliant.write(tmp_path / "a.glb", replace(mesh, appearances=broken))


def waving(shape, frames=7):
    """Frames of a shape that bends sideways; the last is the first again."""
    phase = np.sin(np.linspace(0, np.pi, frames))
    phase[-1] = 0
    return np.stack([shape.points + p * np.sin(shape.points[:, [1, 2, 0]]) for p in phase])


@pytest.mark.parametrize("fps", [24.0, 23.976, 5.0])
@pytest.mark.parametrize("suffix", [".glb", ".gltf"])
def test_an_animation_comes_back(tmp_path, validate, suffix, fps):
    mesh = studio()
    clip = Animation(mesh, waving(mesh), fps, "wave")
    path = tmp_path / f"a{suffix}"
    pliant.write(path, clip)
    read = pliant.read_animation(path)
    assert (len(read), read.fps, read.name) == (7, fps, "wave")
    assert np.abs(read.points - clip.points).max() < 1e-7 * mesh.diagonal
    check_same(read.shape, mesh.with_points(clip.points[0]))
    validate(path)


def test_at_most_two_targets_are_at_work_and_repeated_frames_are_shared(tmp_path):
    mesh = box()
    frames = waving(mesh)[[0, 1, 2, 1, 0, 6, 3]]
    pliant.write(tmp_path / "a.glb", Animation(mesh, frames, 10))
    written = json_of(tmp_path / "a.glb")
    assert written["meshes"][0]["extras"]["targetNames"] == ["frame 1", "frame 2", "frame 6"]
    assert written["meshes"][0]["weights"] == [0, 0, 0]
    data = (tmp_path / "a.glb").read_bytes()
    output = written["accessors"][written["animations"][0]["samplers"][0]["output"]]
    view = written["bufferViews"][output["bufferView"]]
    start = 28 + struct.unpack_from("<I", data, 12)[0] + view["byteOffset"]
    weights = np.frombuffer(data, "<f4", output["count"], start).reshape(7, 3)
    assert np.array_equal(weights, [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1]])


def test_halfway_between_frames_points_are_halfway(tmp_path):
    mesh = box()
    frames = waving(mesh)
    pliant.write(tmp_path / "a.glb", Animation(mesh, frames, 10))
    twice = pliant.read_animation(tmp_path / "a.glb", fps=20)
    np.testing.assert_allclose(twice.points[1::2], (frames[1:] + frames[:-1]) / 2, atol=1e-6)


def test_normals_turn_with_the_frames(tmp_path):
    """The base's normals plus a target's are the normals of that frame's surface."""
    mesh = sphere()
    frames = np.stack([mesh.points, mesh.points * [1, 1, 3]])
    pliant.write(tmp_path / "a.gltf", Animation(mesh, frames, 10))
    written = json_of(tmp_path / "a.gltf")
    data = (tmp_path / "a.bin").read_bytes()
    primitive = written["meshes"][0]["primitives"][0]

    def rows(number):
        view = written["bufferViews"][written["accessors"][number]["bufferView"]]
        return np.frombuffer(data, "<f4", view["byteLength"] // 4, view["byteOffset"]).reshape(-1, 3)

    normals = rows(primitive["attributes"]["NORMAL"])
    np.testing.assert_allclose(normals, vertex_normals(frames[0], mesh.triangles), atol=1e-6)
    turned = normals + rows(primitive["targets"][0]["NORMAL"])
    np.testing.assert_allclose(turned, vertex_normals(frames[1], mesh.triangles), atol=1e-6)


def test_a_shape_far_away_keeps_its_detail(tmp_path, validate):
    mesh = sphere(radius=0.5, centre=(4e5, -3e6, 7))
    clip = Animation(mesh, mesh.points + np.linspace(0, 0.01, 5)[:, None, None], 30)
    pliant.write(tmp_path / "a.glb", clip)
    assert np.abs(pliant.read_animation(tmp_path / "a.glb").points - clip.points).max() < 1e-7
    validate(tmp_path / "a.glb")


def test_one_moving_part_costs_little(tmp_path, validate):
    """Sparse targets: a clip in which a tenth of the points move is a fraction of the dense size."""
    mesh = sphere(60, 60)
    frames = np.repeat(mesh.points[None], 20, axis=0)
    frames[:, :350] += np.linspace(0, 0.5, 20)[:, None, None]
    pliant.write(tmp_path / "a.glb", Animation(mesh, frames, 30))
    assert (tmp_path / "a.glb").stat().st_size < 0.3 * 20 * len(mesh.points) * 24
    assert np.abs(pliant.read_animation(tmp_path / "a.glb").points - frames).max() < 1e-6
    validate(tmp_path / "a.glb")


def test_objects_that_stand_still_have_no_targets(tmp_path, validate):
    mesh = studio()
    frames = np.repeat(mesh.points[None], 4, axis=0)
    frames[:, 8:16, 1] += np.arange(4)[:, None]
    pliant.write(tmp_path / "a.glb", Animation(mesh, frames, 30))
    assert ["weights" in m for m in json_of(tmp_path / "a.glb")["meshes"]] == [False, True]
    assert np.abs(pliant.read_animation(tmp_path / "a.glb").points - frames).max() < 1e-5
    validate(tmp_path / "a.glb")


@pytest.mark.parametrize("frames", [1, 4])
def test_a_still_clip_is_a_clip(tmp_path, validate, frames):
    mesh = box(centre=(100, 100, 100))
    pliant.write(tmp_path / "a.glb", Animation(mesh, np.repeat(mesh.points[None], frames, axis=0), 12))
    read = pliant.read_animation(tmp_path / "a.glb")
    assert (len(read), read.fps) == (frames, 12)
    np.testing.assert_allclose(read.points[-1], mesh.points, rtol=1e-7)
    validate(tmp_path / "a.glb")


def test_long_clips_stay_small(tmp_path, validate):
    mesh = box()
    frames = mesh.points + np.linspace(0, 1, 600)[:, None, None]
    pliant.write(tmp_path / "a.glb", Animation(mesh, frames, 60))
    assert (tmp_path / "a.glb").stat().st_size < 1_000_000
    assert np.abs(pliant.read_animation(tmp_path / "a.glb").points - frames).max() < 1e-6
    validate(tmp_path / "a.glb")


@pytest.mark.parametrize("suffix", [".glb", ".gltf"])
def test_shapes_come_back_with_their_names(tmp_path, validate, suffix):
    mesh = studio()
    points = np.stack([mesh.points, mesh.points * 1.5, mesh.points, mesh.points[:, [1, 2, 0]]])
    shapes = Shapes(mesh, points, ("neutral", "big", "same", "lächeln"))
    path = tmp_path / f"a{suffix}"
    pliant.write(path, shapes)
    read = pliant.read_shapes(path)
    assert read.names == shapes.names
    np.testing.assert_allclose(read.points, points, atol=1e-5)
    check_same(read.base, mesh)
    validate(path)


def test_shapes_that_do_not_move_keep_their_names(tmp_path, validate):
    mesh = box()
    pliant.write(tmp_path / "a.glb", Shapes(mesh, np.stack([mesh.points] * 2), ("rest", "idle")))
    assert pliant.read_shapes(tmp_path / "a.glb").names == ("rest", "idle")
    validate(tmp_path / "a.glb")


def test_point_clouds_come_back(tmp_path, validate):
    rng = np.random.default_rng(2)
    points = rng.normal(size=(50, 3))
    normals = points / np.linalg.norm(points, axis=1, keepdims=True)
    cloud = PointCloud(points, normals, {"color": rng.random((50, 3)), "id": np.arange(50), "size": rng.random(50)})
    pliant.write(tmp_path / "a.glb", cloud)
    read = pliant.read_points(tmp_path / "a.glb")
    np.testing.assert_allclose(read.points, points, atol=1e-6)
    np.testing.assert_allclose(read.normals, normals, atol=1e-6)
    assert np.array_equal(read.attributes["id"], np.arange(50))
    np.testing.assert_allclose(read.attributes["color"], cloud.attributes["color"], atol=1e-7)
    frames = points + np.arange(3)[:, None, None]
    pliant.write(tmp_path / "b.gltf", Animation(cloud, frames, 24))
    moved = pliant.read_animation(tmp_path / "b.gltf")
    assert isinstance(moved.shape, PointCloud)
    np.testing.assert_allclose(moved.points, frames, atol=1e-6)
    validate(tmp_path / "a.glb", tmp_path / "b.gltf")


def test_moving_tetrahedra_show_their_surface(tmp_path, validate):
    tets = TetMesh(
        np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]]), np.array([[0, 1, 2, 3], [1, 2, 3, 4]])
    )
    frames = tets.points + np.arange(3)[:, None, None]
    pliant.write(tmp_path / "a.glb", Animation(tets, frames, 24))
    read = pliant.read_animation(tmp_path / "a.glb")
    assert len(read.shape.polygons) == len(tets.surface.polygons)
    np.testing.assert_allclose(read.points, frames, atol=1e-6)
    validate(tmp_path / "a.glb")


@pytest.mark.parametrize("world", [World("z"), World("z", None), World("y", 0.01), World("z", 0.0254)])
def test_other_axes_and_units_are_shown_right(tmp_path, validate, world):
    """What is up there is up here, and a unit has its length in metres; None and glTF's own need no node."""
    mesh, metres = replace(studio(), world=world), world.metres or 1.0
    upright = mesh.points @ np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]]) if world.up == "z" else mesh.points
    expected = upright * metres
    near = 1e-6 * np.abs(expected).max()
    shapes = Shapes(mesh, np.stack([mesh.points, mesh.points * 2]), ("rest", "twice"))
    clip = Animation(mesh, np.stack([mesh.points, mesh.points + 1]), 24)
    cloud = PointCloud(mesh.points, world=world)
    for name, content in (("mesh", mesh), ("shapes", shapes), ("clip", clip), ("cloud", cloud)):
        pliant.write(tmp_path / f"{name}.glb", content)
    read = pliant.read_mesh(tmp_path / "mesh.glb")
    assert read.world == World("y", 1.0)
    np.testing.assert_allclose(read.points, expected, atol=near)
    assert np.array_equal(read.polygons.corners, mesh.polygons.corners)
    assert read.volume == pytest.approx(mesh.volume * metres**3, rel=1e-4)
    twice = pliant.read_shapes(tmp_path / "shapes.glb").points
    np.testing.assert_allclose(twice, [expected, 2 * expected], atol=2 * near)
    moved = pliant.read_animation(tmp_path / "clip.glb")
    aside = (1, 1, -1) if world.up == "z" else (1, 1, 1)
    np.testing.assert_allclose(moved.points[1], expected + metres * np.array(aside), atol=4 * near)
    points = pliant.read_points(tmp_path / "cloud.glb")
    assert (points.world, moved.shape.world) == (World(), World())
    np.testing.assert_allclose(points.points, expected, atol=near)
    pliant.write(tmp_path / "again.glb", read)
    assert len(json_of(tmp_path / "again.glb")["nodes"]) == len(json_of(tmp_path / "mesh.glb")["nodes"]) - 1
    validate(*(tmp_path / f"{name}.glb" for name in ("mesh", "shapes", "clip", "cloud")))


def test_degenerate_faces_and_odd_values_are_still_valid(tmp_path, validate):
    points = [[0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 0, 0]]
    with pytest.warns(PliantWarning, match="4 of 12 values are not finite"):
        mesh = Mesh(points, [[0, 1, 2], [0, 3, 1]], attributes={"color": np.array([[2.0, -1, np.nan]] * 4)})
    pliant.write(tmp_path / "a.glb", mesh)
    assert np.array_equal(pliant.read_mesh(tmp_path / "a.glb").polygons.corners, mesh.polygons.corners)
    flat = Layer(np.zeros((1, 3)), np.zeros(6, dtype=int))
    pliant.write(tmp_path / "b.glb", replace(mesh, normals=flat, attributes={}))
    validate(tmp_path / "a.glb", tmp_path / "b.glb")


def test_what_cannot_be_written_is_said(tmp_path):
    with pytest.raises(InputError, match="no faces"):
        pliant.write(tmp_path / "a.glb", Mesh(np.eye(3), np.zeros((0, 3), dtype=int)))
    with pytest.raises(InputError, match="no points"):
        pliant.write(tmp_path / "a.glb", PointCloud(np.zeros((0, 3))))
    with pytest.raises(InputError, match="too large"):
        pliant.write(tmp_path / "a.glb", box().scaled(1e39))
    assert not list(tmp_path.iterdir())
    odd = replace(box(), attributes={"words": np.array(["a"] * 8)})
    with pytest.warns(PliantWarning, match="words"):
        pliant.write(tmp_path / "a.glb", odd)


def test_another_programs_version_of_our_file_is_read_as_it_is(tmp_path):
    """A program that changes the numbering leaves our notes behind, but signs with its own name."""
    pliant.write(tmp_path / "a.gltf", box())
    text = (tmp_path / "a.gltf").read_text()
    (tmp_path / "a.gltf").write_text(text.replace(f"pliant {pliant.__version__}", "another 1.0"))
    assert (pliant.read_mesh(tmp_path / "a.gltf").polygons.sizes == 3).all()


@pytest.mark.data
@pytest.mark.parametrize(
    "name", ["poses/hand/leftHandHigh", "poses/morph-glb/Horse", "models/fox/Fox", "models/dino/Trex"]
)
def test_real_rigs_through_and_back(data, tmp_path, validate, name):
    path = data / f"{name}.glb"
    clip, shapes = pliant.read_animation(path, clip=0), pliant.read_shapes(path)
    pliant.write(tmp_path / "clip.glb", clip)
    pliant.write(tmp_path / "shapes.gltf", shapes)
    again = pliant.read_animation(tmp_path / "clip.glb")
    assert np.abs(again.points - clip.points).max() < 1e-7 * clip.shape.diagonal
    check_same(again.shape, clip.shape)  # the rest shape, not the first frame
    assert pliant.read_shapes(tmp_path / "shapes.gltf").names == shapes.names
    validate(tmp_path / "clip.glb", tmp_path / "shapes.gltf")


def test_the_validator_is_here_and_finds_mistakes(tmp_path, khronos):
    m = Maker()
    m.mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]])
    with pytest.raises(AssertionError, match="ACCESSOR"):
        gltf_validator.check(khronos, m.glb(tmp_path / "no bounds.glb"))


def test_an_attribute_that_single_precision_cannot_hold_is_left_out(tmp_path):
    mesh = box()
    path = tmp_path / "a.glb"
    with pytest.warns(PliantWarning, match='attribute "quality" does not fit into glTF; left out'):
        pliant.write(path, replace(mesh, attributes={"quality": np.full(len(mesh.points), 1e300)}))
    assert "quality" not in pliant.read_mesh(path).attributes
