"""USD: files of others are read as a viewer shows them; what is written passes USD's validators and comes back."""

from __future__ import annotations

import contextlib
import io
import random
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Picture

import pliant.io as pio
from pliant.core.clips import Animation, Shapes
from pliant.core.errors import FileError, InputError, MissingExtraError, PliantWarning
from pliant.core.shapes import Appearance, Image, Labels, Layer, Mesh, PointCloud, TetMesh, World
from pliant.engines.blend.derived_names import find_inbetweens
from pliant.io import usd
from pliant.io.source import Source
from pliant.io.usd import stage as usd_stage

pytest.importorskip("pxr")
pytestmark = pytest.mark.usefixtures("usd_trials")

HEAD = "#usda 1.0\n"
SUFFIXES = ("usda", "usdc", "usd", "usdz")
SINGLE = np.finfo(np.float32).eps


def png() -> bytes:
    stream = io.BytesIO()
    Picture.new("RGB", (4, 4), (200, 10, 10)).save(stream, "PNG")
    return stream.getvalue()


def rich_mesh() -> Mesh:
    """A quad, a triangle and a pentagon with all that USD keeps."""
    rng = np.random.default_rng(5)
    faces = [[0, 1, 2, 3], [3, 2, 4], [4, 2, 5, 6, 7]]
    picture = Image("skin é.png", png(), "image/png")
    return Mesh(
        rng.normal(size=(8, 3)),
        faces,
        uvs=Layer(rng.random((6, 2)), rng.integers(0, 6, 12)),
        normals=Layer(np.eye(3), np.arange(12) % 3),
        labels={
            "object": Labels(("body/left", "head"), np.array([0, 0, 1])),
            "group": Labels(("g 1",), np.zeros(3, np.int64)),
            "material": Labels(("skin", "a cloth"), np.array([0, 1, 0])),
        },
        appearances={
            "skin": Appearance((0.1, 0.2, 0.3, 0.5), picture, {"usd": {"inputs": {"roughness": 0.25}}}),
            "a cloth": Appearance((1.0, 0.0, 0.5, 1.0)),
            "unused": Appearance(),
        },
        attributes={
            "color": rng.random((8, 4)),
            "id": np.arange(8),
            "velocity": rng.normal(size=(8, 3)),
            "frame": rng.normal(size=(8, 2, 2)),
        },
        vertex_groups={"head": rng.random(8), "arm é": np.linspace(0, 1, 8), "": np.zeros(8)},
    )


def shapes() -> Shapes:
    mesh = rich_mesh()
    corner = mesh.points.copy()
    corner[2] += (0.0, 1.0, 0.0)
    poses = [mesh.points, mesh.points * 2, corner, mesh.points]
    return Shapes(mesh, np.stack(poses), ("rest", "twice!", "mouth/é", "zero"))


def animation() -> Animation:
    mesh = rich_mesh()
    return Animation(mesh, mesh.points + np.random.default_rng(0).normal(size=(5, 8, 3)), 24000 / 1001, "walk")


def cloud() -> PointCloud:
    rng = np.random.default_rng(3)
    attributes = {"color": rng.random((9, 3)), "opacity": rng.random(9)}
    return PointCloud(rng.normal(size=(9, 3)), rng.normal(size=(9, 3)), attributes)


CONTENT: dict[str, pio.Content] = {
    "mesh": rich_mesh(),
    "shapes": shapes(),
    "animation": animation(),
    "points": cloud(),
    "moving points": Animation(cloud(), np.random.default_rng(1).normal(size=(3, 9, 3)), 60.0),
}


def validation_errors(path: Path) -> list[str]:
    """What USD's own validators (or its compliance checker, in older versions) object to."""
    from pxr import Sdr, Tf, Usd, UsdUtils

    if hasattr(UsdUtils, "ComplianceChecker"):
        with contextlib.suppress(Tf.ErrorException):  # wheels of those versions lack the definitions of the shaders
            Sdr.Registry().GetShaderNodeByIdentifier("UsdPreviewSurface")
        checker = UsdUtils.ComplianceChecker(arkit=False, skipARKitRootLayerCheck=True)
        checker.CheckCompliance(str(path))
        said = [*checker.GetErrors(), *checker.GetFailedChecks(), *checker.GetWarnings()]
        return [line for line in said if "invalid shader node" not in line]
    from pxr import UsdValidation

    validators = UsdValidation.ValidationRegistry().GetOrLoadAllValidators()
    assert len(validators) > 10
    stage = Usd.Stage.Open(str(path))
    return [f"{e.GetName()}: {e.GetMessage()}" for e in UsdValidation.ValidationContext(validators).Validate(stage)]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", CONTENT)
def test_what_is_written_passes_usd_validation(tmp_path: Path, name: str, suffix: str) -> None:
    path = tmp_path / f"my {name}.{suffix}"
    pio.write(path, CONTENT[name])
    assert validation_errors(path) == []


def test_the_validators_do_object(tmp_path: Path) -> None:
    """A stage without default prim, units or applied binding must not pass, or the test above says nothing."""
    path = tmp_path / "x.usda"
    path.write_text(HEAD + lines('def Mesh "a" { rel material:binding = </b> } def Material "b" {}'))
    assert validation_errors(path)


def same_mesh(mesh: Mesh, back: Mesh) -> None:
    np.testing.assert_allclose(back.points, mesh.points, rtol=SINGLE, atol=0)
    np.testing.assert_array_equal(back.polygons.corners, mesh.polygons.corners)
    np.testing.assert_array_equal(back.polygons.offsets, mesh.polygons.offsets)
    assert mesh.uvs is not None
    assert back.uvs is not None
    np.testing.assert_array_equal(back.uvs.index, mesh.uvs.index)
    np.testing.assert_allclose(back.uvs.values, mesh.uvs.values, rtol=SINGLE)
    assert mesh.normals is not None
    assert back.normals is not None
    np.testing.assert_allclose(back.normals.at_corners, mesh.normals.at_corners, atol=SINGLE)
    assert len(back.normals.values) == len(mesh.normals.values)
    assert list(back.labels) == list(mesh.labels)
    for name, label in mesh.labels.items():
        assert back.labels[name].names == label.names
        np.testing.assert_array_equal(back.labels[name].index, label.index)
    assert {name: look.color for name, look in back.appearances.items()} == {
        name: look.color for name, look in mesh.appearances.items()
    }
    texture = back.appearances["skin"].texture
    assert texture is not None
    assert (texture.data, texture.mime) == (png(), "image/png")
    assert back.appearances["skin"].native == mesh.appearances["skin"].native
    assert set(back.attributes) == set(mesh.attributes)
    for name, values in mesh.attributes.items():
        assert back.attributes[name].dtype == values.dtype
        np.testing.assert_allclose(back.attributes[name], values, rtol=SINGLE)
    assert list(back.vertex_groups) == list(mesh.vertex_groups)
    for name, values in mesh.vertex_groups.items():
        np.testing.assert_allclose(back.vertex_groups[name], values, rtol=SINGLE)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_mesh_round_trip(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x.{suffix}"
    written = pio.write(path, rich_mesh())
    assert len(written) == (1 if suffix == "usdz" else 2)
    back = pio.read(path)
    assert isinstance(back, Mesh)
    same_mesh(rich_mesh(), back)
    pio.write(tmp_path / f"y.{suffix}", back)
    again = pio.read_mesh(tmp_path / f"y.{suffix}")
    np.testing.assert_array_equal(again.points, back.points)


def test_suffix_in_capitals(tmp_path: Path) -> None:
    assert [p.name for p in pio.write(tmp_path / "X.USDC", cloud())] == ["X.USDC"]
    np.testing.assert_allclose(pio.read_points(tmp_path / "X.USDC").points, cloud().points, rtol=SINGLE)


@pytest.mark.parametrize("suffix", ["usda", "usdz"])
def test_shapes_round_trip(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x.{suffix}"
    pio.write(path, shapes())
    back = pio.read(path)
    assert isinstance(back, Shapes)
    same_mesh(rich_mesh(), back.base)
    assert back.names == ("rest", "twice!", "mouth/é", "zero")
    np.testing.assert_allclose(back.points, shapes().points, atol=4 * SINGLE * np.abs(shapes().points).max())
    np.testing.assert_array_equal(back.points[3], back.points[0])


@pytest.mark.parametrize("suffix", ["usda", "usdc"])
def test_animation_round_trip(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"walk.{suffix}"
    pio.write(path, animation())
    back = pio.read(path)
    assert isinstance(back, Animation)
    assert isinstance(back.shape, Mesh)
    assert (back.fps, back.name) == (24000 / 1001, "walk")
    same_mesh(rich_mesh(), back.shape)
    np.testing.assert_allclose(back.points, animation().points, rtol=SINGLE)


def test_written_normals_and_extent_follow_the_motion(tmp_path: Path) -> None:
    from pxr import Usd, UsdGeom

    clip = animation()
    pio.write(tmp_path / "x.usda", clip)
    stage = Usd.Stage.Open(str(tmp_path / "x.usda"))
    mesh = next(UsdGeom.Mesh(prim) for prim in stage.Traverse() if prim.IsA(UsdGeom.Mesh))
    for frame in range(len(clip)):
        shape = clip[frame]
        assert isinstance(shape, Mesh)
        assert shape.normals is not None
        normals = np.array(mesh.GetNormalsAttr().Get(frame + 1))
        np.testing.assert_allclose(normals, shape.normals.at_corners, atol=1e-6)
        low, high = np.array(mesh.GetExtentAttr().Get(frame + 1))
        points = np.array(mesh.GetPointsAttr().Get(frame + 1))
        np.testing.assert_array_equal(low, points.min(axis=0))
        np.testing.assert_array_equal(high, points.max(axis=0))


def test_point_clouds_and_tetrahedra(tmp_path: Path) -> None:
    pio.write(tmp_path / "x.usda", cloud())
    back = pio.read(tmp_path / "x.usda")
    assert isinstance(back, PointCloud)
    assert back.normals is not None
    np.testing.assert_allclose(back.points, cloud().points, rtol=SINGLE)
    np.testing.assert_allclose(back.normals, cloud().normals, rtol=SINGLE)
    np.testing.assert_allclose(back.attributes["color"], cloud().attributes["color"], rtol=SINGLE)
    np.testing.assert_array_equal(back.attributes["opacity"], cloud().attributes["opacity"])
    tets = TetMesh(np.vstack([np.zeros(3), np.eye(3)]), np.array([[0, 1, 2, 3]]))
    pio.write(tmp_path / "t.usda", Animation(tets, np.stack([tets.points, tets.points + 1])))
    surface = pio.read_animation(tmp_path / "t.usda").shape
    assert isinstance(surface, Mesh)
    assert surface.is_watertight


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no faces"):
        pio.write(tmp_path / "x.usda", Mesh(np.zeros((3, 3)), np.zeros((0, 3), int)))
    with pytest.raises(InputError, match="single precision"):
        pio.write(tmp_path / "x.usda", PointCloud(np.full((1, 3), 1e200)))
    assert list(tmp_path.iterdir()) == []


QUAD = """int[] faceVertexCounts = [4]
    int[] faceVertexIndices = [0, 1, 2, 3]
    point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]"""
SQUARE = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.0]])


def stage(tmp_path: Path, body: str, *, metadata: str = "", name: str = "x.usda") -> Path:
    path = tmp_path / name
    path.write_text(f"#usda 1.0\n({metadata}\n)\n{lines(body)}\n")
    return path


def lines(text: str) -> str:
    """USD wants a statement a line; the tests write them after semicolons and braces."""
    return text.replace("; ", "\n").replace("{ ", "{\n").replace(" }", "\n}").replace("}", "}\n")


def quad(name: str = "quad", extra: str = "") -> str:
    return f'def Mesh "{name}" {{\n    {QUAD}\n    {extra}\n}}'


def test_transforms_instances_and_order(tmp_path: Path) -> None:
    """Two instances of one prototype and a mesh, each where the viewer shows it."""
    body = f"""
over "proto" {{ {quad("leaf")} }}
def Xform "b" (instanceable = true; references = </proto>) {{
    double3 xformOp:translate = (10, 0, 0)
    uniform token[] xformOpOrder = ["xformOp:translate"]
}}
def Xform "a" (instanceable = true; references = </proto>) {{
    double xformOp:rotateZ = 90
    float3 xformOp:scale = (2, 2, 2)
    uniform token[] xformOpOrder = ["xformOp:rotateZ", "xformOp:scale"]
}}
{quad("last")}"""
    mesh = pio.read_mesh(stage(tmp_path, body))
    turned = SQUARE[:, [1, 0, 2]] * (-2, 2, 2)
    np.testing.assert_allclose(mesh.points, np.vstack([SQUARE + np.array([10, 0, 0]), turned, SQUARE]), atol=1e-12)
    assert mesh.labels["object"].names == ("/b/leaf", "/a/leaf", "/last")
    np.testing.assert_array_equal(mesh.labels["object"].index, [0, 1, 2])


@pytest.mark.parametrize(
    "extra",
    ['token visibility = "invisible"', 'uniform token purpose = "guide"', 'uniform token purpose = "proxy"'],
)
def test_what_a_viewer_hides_is_left_out(tmp_path: Path, extra: str) -> None:
    hidden = f'def Xform "hidden" {{ {extra}; {quad("inside")} }}'
    body = f'{hidden} {quad("shown")} def Scope "off" (active = false) {{ {quad()} }}'
    assert pio.read_mesh(stage(tmp_path, body)).labels["object"].names == ("shown",)


FACE_UP = np.array([0.0, 0.0, 1.0])


def facing(mesh: Mesh) -> np.ndarray:
    a, b, c = (mesh.points[mesh.triangles[:, k]] for k in range(3))
    return np.cross(b - a, c - a).sum(axis=0)


def test_left_handed_and_mirrored_faces_are_turned(tmp_path: Path) -> None:
    """The corner values turn along: each corner keeps the UV of its vertex."""
    uvs = 'texCoord2f[] primvars:st = [(0, 0), (1, 0), (1, 1), (0, 1)] (interpolation = "faceVarying")'
    mirror = 'float3 xformOp:scale = (-1, 1, 1)\nuniform token[] xformOpOrder = ["xformOp:scale"]'
    left = 'uniform token orientation = "leftHanded"'
    for extra, sign, mirrored in ((left, -1, 1), (mirror, 1, -1), (f"{left}\n{mirror}", -1, -1)):
        mesh = pio.read_mesh(stage(tmp_path, quad(extra=f"{extra}\n{uvs}")))
        assert facing(mesh)[2] * sign > 0
        assert mesh.uvs is not None
        x_and_u = mesh.points[mesh.polygons.corners][:, 0] * mirrored, mesh.uvs.at_corners[:, 0]
        np.testing.assert_array_equal(*x_and_u)


@pytest.mark.parametrize("name", ["st", "st0", "UVMap", "map1", "myOwnUV"])
@pytest.mark.parametrize(
    ("interpolation", "values", "indices", "expected"),
    [
        ("constant", "[(0.5, 0.25)]", "", [0.5] * 4),
        ("vertex", "[(0, 0), (1, 0), (2, 0), (3, 0)]", "", [0, 1, 2, 3]),
        ("varying", "[(0, 0), (1, 0), (2, 0), (3, 0)]", "", [0, 1, 2, 3]),
        ("faceVarying", "[(3, 0), (2, 0), (1, 0), (0, 0)]", "", [3, 2, 1, 0]),
        ("faceVarying", "[(7, 0), (9, 0)]", "[1, 0, 1, 1]", [9, 7, 9, 9]),
        ("vertex", "[(7, 0), (9, 0)]", "[0, 0, 1, 1]", [7, 7, 9, 9]),
    ],
)
def test_uvs(tmp_path: Path, name: str, interpolation: str, values: str, indices: str, expected: list[float]) -> None:
    extra = f'texCoord2f[] primvars:{name} = {values} (interpolation = "{interpolation}")'
    extra += f"\nint[] primvars:{name}:indices = {indices}" if indices else ""
    mesh = pio.read_mesh(stage(tmp_path, quad(extra=extra)))
    assert mesh.uvs is not None
    np.testing.assert_array_equal(mesh.uvs.at_corners[:, 0], expected)


@pytest.mark.parametrize("attribute", ["normals", "primvars:normals"])
@pytest.mark.parametrize("interpolation", ["vertex", "faceVarying"])
def test_normals_stay_upright_under_uneven_scale(tmp_path: Path, attribute: str, interpolation: str) -> None:
    """A slope of 45° stretched twice along x: its normal leans less, as the inverse transpose has it."""
    slope = "[(0.70710678, 0, 0.70710678), (0.70710678, 0, 0.70710678), (0.70710678, 0, 0.70710678), (0, 0, 1)]"
    extra = f"""normal3f[] {attribute} = {slope} (interpolation = "{interpolation}")
    float3 xformOp:scale = (2, 1, 1)
    uniform token[] xformOpOrder = ["xformOp:scale"]"""
    mesh = pio.read_mesh(stage(tmp_path, quad(extra=extra)))
    assert mesh.normals is not None
    expected = np.array([0.5, 0, 1]) / np.hypot(0.5, 1)
    np.testing.assert_allclose(mesh.normals.at_corners[:3], np.tile(expected, (3, 1)), atol=1e-6)
    np.testing.assert_allclose(mesh.normals.at_corners[3], FACE_UP, atol=1e-6)
    assert len(mesh.normals.values) in (2, 4)


def test_colours_per_vertex(tmp_path: Path) -> None:
    color = 'color3f[] primvars:displayColor = [(1, 0, 0), (0, 1, 0)] (interpolation = "vertex")'
    color += "\nint[] primvars:displayColor:indices = [0, 1, 1, 0]"
    body = quad("a", color) + quad("b", "color3f[] primvars:displayColor = [(0, 0, 1)]")
    mesh = pio.read_mesh(stage(tmp_path, body))
    np.testing.assert_array_equal(mesh.attributes["color"][:4, 0], [1, 0, 0, 1])
    np.testing.assert_array_equal(mesh.attributes["color"][4:], np.ones((4, 3)))


MATERIAL = """
def Scope "looks" {
    def Material "paint" {
        color3f inputs:shade = (0.25, 0.5, 0.75)
        token outputs:surface.connect = </looks/paint/s.outputs:surface>
        def Shader "s" {
            uniform token info:id = "UsdPreviewSurface"
            color3f inputs:diffuseColor.connect = </looks/paint.inputs:shade>
            float inputs:opacity = 0.5
            float inputs:metallic = 1
            token outputs:surface
        }
    }
    def Material "wood" {
        token outputs:surface.connect = </looks/wood/s.outputs:surface>
        def Shader "s" {
            uniform token info:id = "UsdPreviewSurface"
            color3f inputs:diffuseColor.connect = </looks/wood/t.outputs:rgb>
            token outputs:surface
        }
        def Shader "t" {
            uniform token info:id = "UsdUVTexture"
            asset inputs:file = @textures/wood.png@
            float3 outputs:rgb
        }
    }
}"""
BOUND = f"""
def Xform "model" (prepend apiSchemas = ["MaterialBindingAPI"]) {{
    rel material:binding = </looks/paint>
    def Mesh "pair" {{
        int[] faceVertexCounts = [3, 3]
        int[] faceVertexIndices = [0, 1, 2, 0, 2, 3]
        point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]
        uniform token subsetFamily:materialBind:familyType = "nonOverlapping"
        def GeomSubset "half" (prepend apiSchemas = ["MaterialBindingAPI"]) {{
            uniform token elementType = "face"
            uniform token familyName = "materialBind"
            int[] indices = [1]
            rel material:binding = </looks/wood>
        }}
    }}
}}
{MATERIAL}"""


def test_materials_by_inheritance_and_subset(tmp_path: Path) -> None:
    path = stage(tmp_path, BOUND)
    (tmp_path / "textures").mkdir()
    (tmp_path / "textures" / "wood.png").write_bytes(png())
    mesh = pio.read_mesh(path)
    assert mesh.labels["material"].names == ("paint", "wood")
    np.testing.assert_array_equal(mesh.labels["material"].index, [0, 1])
    assert mesh.appearances["paint"].color == (0.25, 0.5, 0.75, 0.5)
    assert mesh.appearances["paint"].native == {"usd": {"inputs": {"metallic": 1.0}}}
    assert mesh.appearances["wood"].texture is not None
    assert mesh.appearances["wood"].texture.data == png()


@pytest.mark.parametrize(("data", "problem"), [(None, "is missing"), (b"user:x:1:1", "is not a picture")])
def test_textures_that_are_none_are_said(tmp_path: Path, data: bytes | None, problem: str) -> None:
    path = stage(tmp_path, BOUND)
    if data:
        (tmp_path / "textures").mkdir()
        (tmp_path / "textures" / "wood.png").write_bytes(data)
    with pytest.warns(PliantWarning, match=problem):
        assert pio.read_mesh(path).appearances["wood"].texture is None


def test_other_prims_are_said_to_be_left_out(tmp_path: Path) -> None:
    with pytest.warns(PliantWarning, match="PointInstancer, Sphere are left out"):
        mesh = pio.read_mesh(stage(tmp_path, quad() + f'def Sphere "s" {{}}\ndef PointInstancer "p" {{ {quad("m")} }}'))
    assert len(mesh.polygons) == 1


def test_missing_references_are_said(tmp_path: Path) -> None:
    body = quad() + 'def "gone" (references = @nowhere.usda@) {}'
    with pytest.warns(PliantWarning, match="nowhere"):
        assert len(pio.read_mesh(stage(tmp_path, body)).polygons) == 1


RANGE = "startTimeCode = 1\nendTimeCode = 5\ntimeCodesPerSecond = 10"
MOVING = """double3 xformOp:translate.timeSamples = { 1: (0, 0, 0), 5: (4, 0, 0) }
uniform token[] xformOpOrder = ["xformOp:translate"]"""


def test_moving_transforms(tmp_path: Path) -> None:
    path = stage(tmp_path, f'def Xform "cart" {{ {MOVING}\n{quad()} }}', metadata=RANGE)
    clip = pio.read_animation(path)
    assert clip.fps == 10
    np.testing.assert_allclose(clip.points[:, 0, 0], [0, 1, 2, 3, 4], atol=1e-12)
    finer = pio.read_animation(path, fps=20)
    np.testing.assert_allclose(finer.points[:, 0, 0], np.arange(9) / 2, atol=1e-12)
    with pytest.raises(FileError, match="no clip"):
        pio.read_animation(path, clip="other")
    with pytest.raises(InputError, match="fps"):
        pio.read_animation(path, fps=0)


def test_moving_points_without_a_range_and_a_still_mesh(tmp_path: Path) -> None:
    """No default value and no range in the stage: the samples say both."""
    moving = (
        quad("m")
        .replace("point3f[] points =", "point3f[] points.timeSamples = { 3:")
        .replace("(0, 1, 0)]", "(0, 1, 0)], 5: [(2, 0, 0), (3, 0, 0), (3, 1, 0), (2, 1, 0)] }")
    )
    clip = pio.read_animation(stage(tmp_path, moving + quad("still")))
    np.testing.assert_allclose(clip.points[:, 0, 0], [0, 1, 2])
    np.testing.assert_array_equal(clip.points[:, 4:], np.tile(SQUARE, (3, 1, 1)))
    with pytest.raises(FileError, match="nothing that moves"):
        pio.read_animation(stage(tmp_path, quad()))


FRAMES = "[((1,0,0,0),(0,1,0,0),(0,0,1,0),(0,0,0,1)), ((1,0,0,0),(0,1,0,0),(0,0,1,0),(1,0,0,1))]"
"""The hip at the origin, the knee at x = 1, in the world as in the parent."""


def rig(weights: str = "", turn: str = "") -> str:
    """A bar of two joints, the outer one turning, with a dense and a sparse blend shape."""
    return f"""
def SkelRoot "scene" (prepend apiSchemas = ["SkelBindingAPI"]) {{
    rel skel:animationSource = </scene/clip>
    def Skeleton "bones" {{
        uniform token[] joints = ["hip", "hip/knee"]
        uniform matrix4d[] bindTransforms = {FRAMES}
        uniform matrix4d[] restTransforms = {FRAMES}
    }}
    def SkelAnimation "clip" {{
        uniform token[] joints = ["hip", "hip/knee"]
        float3[] translations = [(0, 0, 0), (1, 0, 0)]
        half3[] scales = [(1, 1, 1), (1, 1, 1)]
        quatf[] rotations{turn or " = [(1, 0, 0, 0), (1, 0, 0, 0)]"}
        uniform token[] blendShapes = ["up", "side"]
        float[] blendShapeWeights{weights or " = [0, 0]"}
    }}
    def Mesh "bar" (prepend apiSchemas = ["SkelBindingAPI"]) {{
        int[] faceVertexCounts = [4]
        int[] faceVertexIndices = [0, 1, 2, 3]
        point3f[] points = [(0, 0, 0), (2, 0, 0), (2, 1, 0), (0, 1, 0)]
        rel skel:skeleton = </scene/bones>
        int[] primvars:skel:jointIndices = [0, 1, 1, 0] (interpolation = "vertex"; elementSize = 1)
        float[] primvars:skel:jointWeights = [1, 1, 1, 1] (interpolation = "vertex"; elementSize = 1)
        uniform token[] skel:blendShapes = ["side", "up"]
        rel skel:blendShapeTargets = [</scene/bar/s>, </scene/bar/u>]
        def BlendShape "u" {{ uniform vector3f[] offsets = [(0, 0, 3), (0, 0, 3), (0, 0, 3), (0, 0, 3)] }}
        def BlendShape "s" {{
            uniform vector3f[] offsets = [(0, 5, 0)]
            uniform int[] pointIndices = [3]
            EXTRA
        }}
    }}
}}"""


def test_blend_shapes_dense_and_sparse(tmp_path: Path) -> None:
    held = pio.read_shapes(stage(tmp_path, rig().replace("EXTRA", "")))
    assert held.names == ("base", "side", "up")
    bar = np.array([[0, 0, 0], [2, 0, 0], [2, 1, 0], [0, 1, 0.0]])
    np.testing.assert_array_equal(held.points[0], bar)
    np.testing.assert_array_equal(held.points[1] - bar, [[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 5, 0]])
    np.testing.assert_array_equal(held.points[2] - bar, np.tile([0, 0, 3], (4, 1)))
    assert list(held.base.vertex_groups) == ["hip", "knee"]
    np.testing.assert_array_equal(held.base.vertex_groups["knee"], [0, 1, 1, 0])


def test_in_betweens_are_shapes_by_their_weight(tmp_path: Path) -> None:
    between = "uniform vector3f[] inbetweens:half = [(0, 9, 0)] (weight = 0.25)"
    text = rig(".timeSamples = { 1: [0, 0], 2: [0, 0.25], 3: [0, 0.5], 4: [0, 2] }").replace("EXTRA", between)
    path = stage(tmp_path, text, metadata="startTimeCode = 1\nendTimeCode = 4")
    held = pio.read_shapes(path)
    assert held.names == ("base", "side_0.25", "side", "up")
    np.testing.assert_array_equal(held.points[1] - held.points[0], [[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 9, 0]])
    assert find_inbetweens(held.names) == {"side_0.25": ("side", 0.25)}
    np.testing.assert_allclose(pio.read_weights(path).values[:, 1:], [[0, 0, 0], [0, 0.25, 0], [0, 0.5, 0], [0, 2, 0]])
    moved = pio.read_animation(path).points[:, 3, 1] - 1
    np.testing.assert_allclose(moved, [0, 9, 9 + (5 - 9) / 3, 5 + (5 - 9) / 0.75], rtol=1e-6)


def test_in_betweens_out_of_range_are_said_to_be_left_out(tmp_path: Path) -> None:
    between = "uniform vector3f[] inbetweens:half = [(0, 9, 0)] (weight = 1.5)"
    with pytest.warns(PliantWarning, match="left out 1 in-between"):
        assert len(pio.read_shapes(stage(tmp_path, rig().replace("EXTRA", between)))) == 3
    assert usd.kinds(Source(tmp_path / "x.usda"))[0] == "shapes"  # without a word


def test_weights_of_blend_shapes_over_time(tmp_path: Path) -> None:
    weights = ".timeSamples = { 1: [0, 0], 3: [1, 0.5] }"
    text = rig(weights).replace("EXTRA", "")
    path = stage(tmp_path, text, metadata="startTimeCode = 1\nendTimeCode = 3\ntimeCodesPerSecond = 24")
    found = pio.read_weights(path)
    assert (found.names, found.fps) == (("base", "side", "up"), 24)
    np.testing.assert_allclose(found.values, [[1, 0, 0], [0.25, 0.25, 0.5], [-0.5, 0.5, 1]])
    with pytest.raises(FileError, match="holds no clip that moves"):
        pio.read_weights(stage(tmp_path, rig().replace("EXTRA", "")))


def test_skin_and_weights_are_evaluated(tmp_path: Path) -> None:
    """The knee at x = 1 turns by 90° about z, while "up" comes in by its own order of names."""
    half = np.sqrt(0.5)
    turn = f".timeSamples = {{ 1: [(1,0,0,0), (1,0,0,0)], 3: [(1,0,0,0), ({half},0,0,{half})] }}"
    weights = ".timeSamples = { 1: [0, 0], 3: [1, 0.5] }"
    path = stage(tmp_path, rig(weights, turn).replace("EXTRA", ""), metadata="startTimeCode = 1\nendTimeCode = 3")
    assert usd.kinds(Source(path)) == ("animation", "shapes", "mesh", "points", "motion", "skeleton")
    motion = pio.read_motion(path)
    np.testing.assert_allclose(motion.rotations[:, 1, 3], np.sin(np.radians([0, 22.5, 45])), atol=1e-6)
    np.testing.assert_allclose(motion.world()[0][2], [[0, 0, 0], [1, 0, 0]], atol=1e-6)
    np.testing.assert_allclose(motion.skeleton.rest_world[0], [[0, 0, 0], [1, 0, 0]], atol=1e-6)
    with pytest.raises(FileError, match="does not move"):
        pio.read_motion(stage(tmp_path, rig(weights).replace("EXTRA", ""), name="still.usda"))
    clip = pio.read_animation(path)
    assert len(clip) == 3
    np.testing.assert_allclose(clip.points[0], [[0, 0, 0], [2, 0, 0], [2, 1, 0], [0, 1, 0]], atol=1e-6)
    np.testing.assert_allclose(clip.points[2], [[0, 0, 3], [1, 1, 3], [0, 1, 3], [0, 3.5, 3]], atol=1e-6)
    middle = np.array([[1 + half, half, 1.5], [1, 2 * half, 1.5]])  # half way the joint has turned by 45°
    np.testing.assert_allclose(clip.points[1, 1:3], middle, atol=1e-3)


def test_axes_and_units_stay_and_are_told(tmp_path: Path) -> None:
    path = stage(tmp_path, quad(), metadata=f'upAxis = "Z"\nmetersPerUnit = 0.01\ndefaultPrim = "quad"\n{RANGE}')
    np.testing.assert_array_equal(pio.read_mesh(path).points, SQUARE)
    told = usd.describe(Source(path))
    assert (told["upAxis"], told["metersPerUnit"], told["defaultPrim"]) == ("Z", 0.01, "quad")
    assert (told["startTimeCode"], told["endTimeCode"], told["timeCodesPerSecond"]) == (1, 5, 10)
    assert told["prims"] == {"Mesh": 1}


@pytest.mark.parametrize(
    "world",
    [
        None,
        World("z", 0.01),
        World("z", None),
        *(pytest.param(w, marks=pytest.mark.slow) for w in (World(), World("y", 0.0254))),
    ],
)
@pytest.mark.parametrize("name", CONTENT)
def test_axes_and_units_are_written_back(tmp_path: Path, name: str, world: World | None) -> None:
    content = CONTENT[name]
    holder = {Shapes: "base", Animation: "shape"}.get(type(content))
    labelled = replace(getattr(content, holder) if holder else content, world=world)
    pio.write(tmp_path / "x.usda", replace(content, **{holder: labelled}) if holder else labelled)
    told = usd.describe(Source(tmp_path / "x.usda"))
    meant = World() if world is None else World(world.up, world.metres or 1.0)
    assert (told["upAxis"], told["metersPerUnit"]) == (meant.up.upper(), meant.metres)
    back = pio.read(tmp_path / "x.usda")
    held = getattr(back, holder) if holder else back
    assert held.world == meant
    np.testing.assert_allclose(held.points, labelled.points, rtol=SINGLE)


def test_axes_and_units_where_a_stage_says_nothing_or_nonsense(tmp_path: Path) -> None:
    """USD means y and centimetres."""
    assert pio.read_mesh(stage(tmp_path, quad())).world == World("y", 0.01)
    assert pio.read_points(stage(tmp_path, quad(), metadata='upAxis = "Z"')).world == World("z", 0.01)
    with pytest.raises(FileError, match="metres long"):
        pio.read_mesh(stage(tmp_path, quad(), metadata="metersPerUnit = 0"))


def beside(tmp_path: Path) -> tuple[Path, Path]:
    """A model's folder with a sub-folder, and a place outside with a stage and a picture."""
    own, outside = tmp_path / "own", tmp_path / "outside"
    for folder in (own / "textures", own / "parts", outside):
        folder.mkdir(parents=True)
    for folder in (own / "parts", outside):
        stage(folder, quad("leaf"), metadata='defaultPrim = "leaf"', name="leaf.usda")
        (folder / "wood.png").write_bytes(png())
    (own / "linked").symlink_to(outside, target_is_directory=True)
    (own / "linked.usda").symlink_to(outside / "leaf.usda")
    return own, outside


REFERRING = {
    "sublayer": ("", "subLayers = [@{}@]"),
    "reference": ('def "a" (references = @{}@) {{}}', ""),
    "payload": ('def "a" (payload = @{}@) {{}}', ""),
    "through a part": ('def "a" (references = @parts/more.usda@) {{}}', ""),
}


@pytest.mark.parametrize("way", REFERRING)
@pytest.mark.parametrize("target", ["{outside}/leaf.usda", "../outside/leaf.usda", "linked.usda", "linked/leaf.usda"])
def test_layers_outside_the_folder_are_refused(tmp_path: Path, way: str, target: str) -> None:
    own, outside = beside(tmp_path)
    target = target.format(outside=outside)
    body, metadata = (text.format(target) for text in REFERRING[way])
    further = target if target.startswith("/") else f"../{target}"
    stage(own / "parts", f'def "b" (references = @{further}@) {{}}', metadata='defaultPrim = "b"', name="more.usda")
    path = stage(own, body + quad(), metadata=metadata)
    readers: list[Any] = [pio.read_mesh, pio.read] if way == "reference" else [pio.read]
    for reader in readers:
        with pytest.raises(FileError, match="own folder") as caught:
            reader(path)
        assert "leaf.usda" in str(caught.value) or "linked" in str(caught.value)


def test_value_clips_outside_the_folder_are_refused(tmp_path: Path) -> None:
    """USD opens them only when a value is asked for, after the stage."""
    own, outside = beside(tmp_path)
    samples = "point3f[] points.timeSamples = { 0: [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)] }"
    for folder in (own, outside):
        stage(folder, f'def "leaf" {{ {samples} }}', name="clip.usda")
    stage(own, 'def "leaf" { point3f[] points }', name="names.usda")
    clips = """def Mesh "a" (clips = {{ dictionary default = {{ asset[] assetPaths = [@{}@]; string primPath = "/leaf"
        double2[] active = [(0, 0)]; double2[] times = [(0, 0)]; asset manifestAssetPath = @names.usda@ }} }}) {{
            int[] faceVertexCounts = [4]; int[] faceVertexIndices = [0, 1, 2, 3] }}"""
    np.testing.assert_array_equal(pio.read_mesh(stage(own, clips.format("clip.usda"))).points, SQUARE)
    with pytest.raises(FileError, match=r'outside/clip.usda"; expected files in its own folder'):
        pio.read_mesh(stage(own, clips.format("../outside/clip.usda")))


@pytest.mark.parametrize("way", ["sublayer", "reference", "payload"])
def test_layers_below_the_folder_are_read(tmp_path: Path, way: str) -> None:
    own, _ = beside(tmp_path)
    body, metadata = (text.format("parts/leaf.usda") for text in REFERRING[way])
    assert len(pio.read_mesh(stage(own, body + quad(), metadata=metadata)).polygons) == 2
    link = tmp_path / "link"
    link.symlink_to(own, target_is_directory=True)  # the way to the folder does not matter
    assert len(pio.read_mesh(link / "x.usda").polygons) == 2


@pytest.mark.parametrize("target", ["{outside}/wood.png", "../outside/wood.png", "linked/wood.png"])
def test_textures_outside_the_folder_are_left_out(tmp_path: Path, target: str) -> None:
    own, outside = beside(tmp_path)
    path = stage(own, BOUND.replace("textures/wood.png", target.format(outside=outside)))
    with pytest.warns(PliantWarning, match="outside the file's own folder"):
        assert pio.read_mesh(path).appearances["wood"].texture is None


def test_a_package_holds_its_own(tmp_path: Path) -> None:
    """Its stage refers to a layer, and to a picture, inside it; the folder may be anything."""
    from pxr import UsdUtils

    own, _ = beside(tmp_path)
    body = BOUND.replace("textures/wood.png", "parts/wood.png") + 'def "a" (references = @parts/leaf.usda@) {}'
    assert UsdUtils.CreateNewUsdzPackage(str(stage(own, body)), str(tmp_path / "x.usdz"))
    mesh = pio.read_mesh(tmp_path / "x.usdz")
    assert mesh.appearances["wood"].texture is not None
    assert mesh.labels["object"].names == ("pair", "a")


RATES: dict[str, tuple[str, list[float], float]] = {
    "seconds": ("timeCodesPerSecond = 1", [k / 25 for k in range(5)], 25.0),
    "seconds, frames said": ("timeCodesPerSecond = 1\nframesPerSecond = 24", [0, 1 / 6], 24.0),
    "film": ("timeCodesPerSecond = 24\nframesPerSecond = 24", [0, 4], 24.0),
    "film, on twos": ("timeCodesPerSecond = 24", [0, 2, 4, 6, 8], 12.0),
    "ticks": ("timeCodesPerSecond = 1000\nframesPerSecond = 25", [0, 160], 25.0),
    "ticks, nothing said": ("timeCodesPerSecond = 1000", [0, 40, 80, 120, 160], 25.0),
    "ticks, three keys": ("timeCodesPerSecond = 3000", [0, 100, 400], 30.0),
    "rounded": ("timeCodesPerSecond = 1", [0, 0.0416667, 0.0833333, 0.125, 0.1666667], 24.0),
    "frames only": ("framesPerSecond = 50", [0, 4], 50.0),
    "nothing": ("", [1, 5], 24.0),
}


@pytest.mark.parametrize("name", RATES)
def test_frames_are_those_the_stage_was_made_at(tmp_path: Path, name: str) -> None:
    """Every clip here has five frames, and moves one unit a frame."""
    metadata, times, rate = RATES[name]
    keys = {time: (time - times[0]) / (times[-1] - times[0]) * 4 for time in times}
    samples = ", ".join(f"{time!r}: ({place!r}, 0, 0)" for time, place in keys.items())
    cart = MOVING.replace("1: (0, 0, 0), 5: (4, 0, 0)", samples)
    clip = pio.read_animation(stage(tmp_path, f'def Xform "cart" {{ {cart}\n{quad()} }}', metadata=metadata))
    assert clip.fps == rate
    np.testing.assert_allclose(clip.points[:, 0, 0], np.arange(5), atol=2e-3)


def test_members_of_archives(tmp_path: Path) -> None:
    """A text stage with its texture, and a package, both inside a zip."""
    stage(tmp_path, BOUND)
    pio.write(tmp_path / "packed.usdz", rich_mesh())
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(tmp_path / "x.usda", "set/x.usda")
        archive.write(tmp_path / "packed.usdz", "packed.usdz")
        archive.writestr("set/textures/wood.png", png())
    mesh = pio.read_mesh(tmp_path / "all.zip" / "set" / "x.usda")
    assert mesh.appearances["wood"].texture is not None
    same_mesh(rich_mesh(), pio.read_mesh(tmp_path / "all.zip" / "packed.usdz"))


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pxr", None)
    for name in [name for name in sys.modules if name.startswith("pxr.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingExtraError, match=r"pliant\[usd\]"):
        pio.read_mesh(stage(tmp_path, quad()))
    with pytest.raises(MissingExtraError, match=r"pliant\[usd\]"):
        pio.write(tmp_path / "y.usdz", rich_mesh())


BROKEN: dict[str, str | bytes] = {
    "empty.usda": "",
    "garbage.usda": "hello",
    "half.usda": HEAD + 'def Mesh "a" {',
    "deep.usda": HEAD + "( customLayerData = {" + "dictionary a = {" * 100000 + "}" * 100000 + "})",
    "deep after a comment.usda": HEAD + "# " + ")" * 200000 + '\ndef "a" {' * 100000,
    "no prims.usda": HEAD,
    "no faces.usda": HEAD + 'def Mesh "a" { point3f[] points = [(0, 0, 0)] }',
    "out of range.usda": HEAD + quad().replace("[0, 1, 2, 3]", "[0, 1, 2, 4]"),
    "negative.usda": HEAD + quad().replace("[0, 1, 2, 3]", "[0, 1, 2, -1]"),
    "counts.usda": HEAD + quad().replace("[4]", "[5]"),
    "negative count.usda": HEAD + quad().replace("[4]", "[-4]"),
    "two corners.usda": HEAD + quad().replace("[4]", "[2, 2]"),
    "nan.usda": HEAD + quad().replace("(1, 0, 0)", "(nan, 0, 0)"),
    "uvs short.usda": HEAD + quad(extra='texCoord2f[] primvars:st = [(0, 0)] (interpolation = "vertex")'),
    "uvs indices.usda": HEAD
    + quad(
        extra='texCoord2f[] primvars:st = [(0, 0)] (interpolation = "vertex")\nint[] primvars:st:indices = [0, 0, 0, 9]'
    ),
    "normals short.usda": HEAD + quad(extra='normal3f[] normals = [(0, 0, 1)] (interpolation = "faceVarying")'),
    "transform.usda": HEAD
    + quad(extra='double3 xformOp:scale = (inf, 1, 1); uniform token[] xformOpOrder = ["xformOp:scale"]'),
    "hidden.usda": HEAD + quad(extra='token visibility = "invisible"'),
    "text.usdc": "#usda 1.0\n",
    "garbage.usdc": b"PXR-USDC" + bytes(200),
    "short.usdc": b"PXR-USDC",
    "garbage.usdz": b"PK\x03\x04" + bytes(200),
    "garbage.usd": bytes(300),
    "empty.usd": b"",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_give_one_line_and_a_clean_terminal(
    tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    data = BROKEN[name]
    path.write_bytes(data if isinstance(data, bytes) else lines(data).encode())
    usd_stage.library("UsdSkel")  # loading the library is not the file's fault
    start = time.process_time()
    with pytest.raises(FileError) as caught:
        pio.read_mesh(path)
    assert time.process_time() - start < 1
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_broken_motion_and_rigs(tmp_path: Path) -> None:
    """Frames of another topology, absurd ranges, blend shapes that do not fit."""
    whole = rig().replace("EXTRA", "")
    moving = f'def Xform "cart" {{ {MOVING}\n{quad()} }}'
    changing = (
        quad("m")
        .replace("point3f[] points =", "point3f[] points.timeSamples = { 3:")
        .replace("(0, 1, 0)]", "(0, 1, 0)], 5: [(2, 0, 0)] }")
    )
    cases: list[tuple[str, str, Any, str]] = [
        (changing, "", pio.read_animation, "1 points at"),
        (moving, "startTimeCode = 0\nendTimeCode = 1e15", pio.read_animation, "million frames"),
        (moving, "framesPerSecond = 1e12\ntimeCodesPerSecond = 1", pio.read_animation, "million frames"),
        (moving, "framesPerSecond = -1\ntimeCodesPerSecond = 1", pio.read_animation, "framesPerSecond"),
        (moving, "startTimeCode = 5\nendTimeCode = 1", pio.read_animation, "rising range"),
        (moving, "startTimeCode = 0\nendTimeCode = 1\ntimeCodesPerSecond = 0", pio.read_animation, "rising range"),
        (whole.replace("pointIndices = [3]", "pointIndices = [9]"), "", pio.read_shapes, "reach 9"),
        (whole.replace("pointIndices = [3]", "pointIndices = [1, 2]"), "", pio.read_shapes, "2 pointIndices"),
        (whole.replace("[(0, 0, 3), ", "["), "", pio.read_shapes, "3 offsets for 4"),
        (whole.replace("</scene/bar/u>]", "</scene/bar/v>]"), "", pio.read_shapes, "is missing"),
        (whole.replace(", </scene/bar/u>]", "]"), "", pio.read_shapes, "names 2 blend shapes and has 1"),
        (quad(), "", pio.read_shapes, "no blend shapes"),
    ]
    for body, metadata, reader, problem in cases:
        with pytest.raises(FileError, match=problem):
            reader(stage(tmp_path, body, metadata=metadata))


def test_truncated_files(tmp_path: Path) -> None:
    for suffix in ("usdc", "usdz", "usda"):
        path = tmp_path / f"x.{suffix}"
        pio.write(path, shapes())
        data = path.read_bytes()
        for k in range(16):
            path.write_bytes(data[: len(data) * k // 16])
            with pytest.raises(FileError):
                pio.read_shapes(path)


@pytest.mark.filterwarnings("ignore::pliant.core.errors.PliantWarning")
@pytest.mark.slow  # every try starts a process; `test_fuzz` makes a few of them
@pytest.mark.parametrize(("suffix", "tries"), [("usda", 20), ("usdc", 14), ("usdz", 6)])
def test_flipped_bytes(tmp_path: Path, suffix: str, tries: int, capfd: pytest.CaptureFixture[str]) -> None:
    """A result or a `FileError`, and nothing on the terminal."""
    path = tmp_path / f"x.{suffix}"
    pio.write(path, CONTENT["animation"])
    data = path.read_bytes()
    rng = random.Random(11)
    outcomes = []
    for _ in range(tries):
        flipped = bytearray(data)
        for _ in range(rng.choice([1, 4, 16])):
            flipped[rng.randrange(len(flipped))] = rng.randrange(256)
        path.write_bytes(flipped)
        try:
            outcomes.append(len(pio.read_animation(path)))
        except FileError as error:
            outcomes.append(-str(error).count("\n"))
    assert min(outcomes) >= 0
    assert capfd.readouterr() == ("", "")


def test_a_file_that_stops_the_library_is_only_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever becomes of the process that tries a file, this one goes on."""
    path = tmp_path / "x.usdc"
    pio.write(path, rich_mesh())
    script = tmp_path / "trial_read.py"
    monkeypatch.setattr(usd_stage, "__file__", str(tmp_path / "stage.py"))
    script.write_text("import os\nos.abort()\n")
    with pytest.raises(FileError, match="cut off or damaged"):
        pio.read_mesh(path)
    script.write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr(usd_stage.USD_ALLOWANCE.__class__, "seconds", lambda self, size: 0.1)
    with pytest.raises(FileError, match="did not read it within"):
        pio.read_mesh(path)
    script.write_text("")
    assert len(pio.read_mesh(path).polygons) == 3


def test_importing_pliant_does_not_import_usd() -> None:
    code = "import sys, pliant.io, pliant.io.usd; sys.exit(any(name.startswith('pxr') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.data
@pytest.mark.parametrize("name", ["models/fox/Fox.glb", "faces/makehuman/base.obj", "cages/clothing/clothing.obj"])
def test_real_meshes_survive(tmp_path: Path, data: Path, name: str) -> None:
    """An artist's polygons, UVs, labels and weights, through a package and back."""
    mesh = pio.read_mesh(data / name)
    pio.write(tmp_path / "x.usdz", mesh)
    assert validation_errors(tmp_path / "x.usdz") == []
    back = pio.read_mesh(tmp_path / "x.usdz")
    np.testing.assert_allclose(back.points, mesh.points, atol=SINGLE * np.abs(mesh.points).max())
    np.testing.assert_array_equal(back.polygons.corners, mesh.polygons.corners)
    np.testing.assert_array_equal(back.polygons.offsets, mesh.polygons.offsets)
    assert mesh.uvs is not None
    assert back.uvs is not None
    np.testing.assert_allclose(back.uvs.at_corners, mesh.uvs.at_corners, atol=1e-6)
    assert set(back.labels) == set(mesh.labels)
    assert list(back.vertex_groups) == list(mesh.vertex_groups)
    textures = [look.texture.data for look in mesh.appearances.values() if look.texture]
    assert [look.texture.data for look in back.appearances.values() if look.texture] == textures
