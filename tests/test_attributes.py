"""Colours, normals, UVs and weights that are no numbers: counted, repaired where they enter, and never drawn from."""

import json
import struct
import warnings

import numpy as np
import pytest
from PIL import Image

import pliant
from pliant import Appearance, InputError, Layer, Mesh, PointCloud, TetMesh, gallery
from pliant.core.errors import RepairWarning
from sweeps import every

POINTS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
FACES = [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]]
COLORS = np.array([[np.nan, 0.5, 0.5], [np.inf, 0, 0], [0.2, -np.inf, 1], [1, 1, 1]])
ODD = [np.nan, np.inf, -np.inf, 1e300, -1e300]


def ply() -> bytes:
    head = "ply\nformat ascii 1.0\nelement vertex 4\n" + "".join(f"property float {name}\n" for name in "xyz")
    head += "".join(f"property float {name}\n" for name in ("red", "green", "blue", "nx", "ny", "nz", "s", "t"))
    head += "element face 4\nproperty list uchar int vertex_indices\nend_header\n"
    rows = [
        [*point, *color, *normal, *uv]
        for point, color, normal, uv in zip(POINTS, COLORS, COLORS, COLORS[:, :2], strict=True)
    ]
    text = head + "".join(" ".join(map(str, row)) + "\n" for row in rows)
    return (text + "".join(" ".join(map(str, [3, *face])) + "\n" for face in FACES)).encode()


def obj() -> bytes:
    text = "".join(f"v {' '.join(map(str, [*p, *c]))}\n" for p, c in zip(POINTS, COLORS, strict=True))
    text += "".join(f"vt {c[0]} {c[1]}\nvn {c[0]} {c[1]} {c[2]}\n" for c in COLORS)
    return (text + "".join("f " + " ".join(f"{k + 1}/{k + 1}/{k + 1}" for k in f) + "\n" for f in FACES)).encode()


def coff() -> bytes:
    text = "COFF\n4 4 0\n" + "".join(f"{' '.join(map(str, [*p, *c]))}\n" for p, c in zip(POINTS, COLORS, strict=True))
    return (text + "".join(" ".join(map(str, [3, *face])) + "\n" for face in FACES)).encode()


def glb() -> bytes:
    arrays = [POINTS, COLORS, COLORS, np.array(FACES)]
    kinds = [np.float32, np.float32, np.float32, np.uint32]
    data = [np.ascontiguousarray(a, dtype=k).tobytes() for a, k in zip(arrays, kinds, strict=True)]
    starts = np.cumsum([0, *map(len, data)]).tolist()
    views = [{"buffer": 0, "byteOffset": s, "byteLength": len(d)} for s, d in zip(starts, data, strict=False)]
    accessors = [{"bufferView": k, "componentType": 5126, "count": 4, "type": "VEC3"} for k in range(3)]
    accessors[0] |= {"min": [0, 0, 0], "max": [1, 1, 1]}
    accessors.append({"bufferView": 3, "componentType": 5125, "count": 12, "type": "SCALAR"})
    primitive = {"attributes": {"POSITION": 0, "COLOR_0": 1, "NORMAL": 2}, "indices": 3}
    text = {"asset": {"version": "2.0"}, "scenes": [{"nodes": [0]}], "scene": 0, "nodes": [{"mesh": 0}]}
    text |= {"meshes": [{"primitives": [primitive]}], "accessors": accessors, "bufferViews": views}
    body = json.dumps(text | {"buffers": [{"byteLength": starts[-1]}]}).encode()
    body += b" " * (-len(body) % 4)
    binary = b"".join(data)
    chunks = struct.pack("<I4s", len(body), b"JSON") + body + struct.pack("<I4s", len(binary), b"BIN\0") + binary
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


def usda() -> bytes:
    pytest.importorskip("pxr")

    def rows(values):
        return "[" + ", ".join(f"({', '.join(map(str, row))})" for row in np.asarray(values).tolist()) + "]"

    return f"""#usda 1.0
( defaultPrim = "m" )
def Mesh "m" {{
    point3f[] points = {rows(POINTS)}
    int[] faceVertexCounts = [3, 3, 3, 3]
    int[] faceVertexIndices = {np.ravel(FACES).tolist()}
    normal3f[] normals = {rows(COLORS)} ( interpolation = "vertex" )
    color3f[] primvars:displayColor = {rows(COLORS)} ( interpolation = "vertex" )
    texCoord2f[] primvars:st = {rows(COLORS[:, :2])} ( interpolation = "vertex" )
}}
""".encode()


def npz(path) -> None:
    pliant.write(path, Mesh(POINTS, FACES, attributes={"color": np.full((4, 3), 0.5)}))
    with np.load(path) as stored:
        tables = {name: stored[name] for name in stored.files}
    (name,) = [name for name, table in tables.items() if table.shape == (4, 3) and np.all(table == 0.5)]
    np.savez(path, **(tables | {name: COLORS}))


MAKERS = {"ply": ply, "obj": obj, "off": coff, "glb": glb, "usda": usda, "npz": npz}


@pytest.mark.parametrize("suffix", every(3, MAKERS))
def test_colours_of_files_that_are_not_finite_are_named_and_drawn(command_line, tmp_path, monkeypatch, suffix):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"odd.{suffix}"
    npz(path) if suffix == "npz" else path.write_bytes(MAKERS[suffix]())
    code, out, _ = command_line("info", path.name)
    assert code == 0
    assert "not finite" in out[out.index("problems") :]
    code, out, _ = command_line("info", path.name, "--json")
    assert any("not finite" in problem for problem in json.loads(out)["problems"])
    code, _, err = command_line("render", path.name, "-o", "odd.png", "--size", "64x48")
    assert code == 0
    assert "not finite" in err
    assert len(np.unique(np.asarray(Image.open("odd.png").convert("L")))) > 5
    for other in MAKERS:
        assert command_line("convert", path.name, f"out.{other}")[0] == 0
        with warnings.catch_warnings():
            warnings.simplefilter("error", RepairWarning)
            assert np.isfinite(pliant.read_mesh(f"out.{other}").attributes["color"]).all()
    code, _, err = command_line("report", path.name)
    assert "internal error" not in err


@pytest.mark.parametrize("value", ODD)
def test_what_decorates_a_mesh_is_repaired_with_a_warning(value):
    colors, groups, uvs, normals = np.full((4, 3), 0.5), np.ones(4), np.zeros((4, 2)), np.tile([0.0, 0, 1], (4, 1))
    colors[1, 2] = groups[2] = uvs[0, 1] = normals[3, 0] = value
    layers = {"uvs": Layer(uvs, np.ravel(FACES)), "normals": Layer(normals, np.ravel(FACES))}
    with pytest.warns(RepairWarning) as caught:
        mesh = Mesh(POINTS, FACES, attributes={"color": colors}, vertex_groups={"arm": groups}, **layers)
    told = sorted(str(warning.message) for warning in caught)
    assert [text.split(";")[0] for text in told] == [
        'attribute "color": 1 of 12 values are not finite',
        "normals: 1 of 12 values are not finite",
        "uvs: 1 of 8 values are not finite",
        'vertex group "arm": 1 of 4 values are not finite',
    ]
    assert mesh.attributes["color"][1].tolist() == [0.5, 0.5, 0]
    assert mesh.vertex_groups["arm"].tolist() == [1, 1, 0, 1]
    assert mesh.uvs.values[0, 1] == mesh.normals.values[3, 0] == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mesh.with_points(2 * POINTS)  # said once
    with pytest.warns(RepairWarning, match="normals: 1 of 12"):
        assert np.isfinite(PointCloud(POINTS, normals).normals).all()
    with pytest.warns(RepairWarning, match="material: 1 of 4"):
        assert Appearance((0.5, value, 0.5, 1.0)).color == (0.5, 0.0, 0.5, 1.0)


def test_measures_may_be_unknown():
    measure = np.array([1.0, np.nan, np.inf, 1e300])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mesh = Mesh(POINTS, FACES, attributes={"heat": measure})
    assert np.array_equal(mesh.attributes["heat"], measure, equal_nan=True)
    for shape in (mesh, PointCloud(POINTS)):
        for value in (1e300, 1.7e308, np.inf, np.nan, 5e-324):
            image = pliant.render.picture(shape, values=[0, value, 0, -value], size=(64, 48))
            assert image.size == (64, 48)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"color": np.zeros(4)}, r"shape \(4,\); expected \(4, 3\)"),
        ({"color": np.zeros((4, 2))}, r"shape \(4, 2\)"),
        ({"color": np.zeros((4, 3, 1))}, r"shape \(4, 3, 1\)"),
        ({"color": np.zeros((3, 3))}, "3 rows; expected one for each of 4"),
        ({"color": np.zeros((0, 3))}, "0 rows; expected one for each of 4"),
        ({"color": np.full((4, 3), "red")}, "expected numbers"),
        ({"color": np.zeros((4, 3), complex)}, "complex128; expected numbers"),
        ({"color": np.full((4, 3), None)}, "object; expected numbers"),
        ([1, 2], "expected a dictionary"),
    ],
)
def test_attributes_of_the_wrong_kind_are_refused(attributes, message):
    for make in (
        lambda: Mesh(POINTS, FACES, attributes=attributes),
        lambda: PointCloud(POINTS, attributes=attributes),
        lambda: TetMesh(POINTS, [[0, 1, 2, 3]], attributes=attributes),
    ):
        with pytest.raises(InputError, match=message):
            make()


@pytest.mark.parametrize(("name", "width"), [("uvs", 1), ("uvs", 4), ("normals", 2), ("normals", 4)])
def test_layers_of_the_wrong_width_are_refused(name, width):
    with pytest.raises(InputError, match=f"{name} have shape"):
        Mesh(POINTS, FACES, **{name: Layer(np.zeros((4, width)), np.ravel(FACES))})


@pytest.mark.parametrize("value", [*ODD, 1e30])
def test_the_rasteriser_needs_no_finite_numbers(value):
    """Its kernels are given what shapes never let in."""
    from pliant.render import raster
    from pliant.render.light import finish

    image = np.full((4, 4, 3), value, np.float32) if abs(value) < 1e38 or not np.isfinite(value) else np.ones((4, 4, 3))
    assert finish(image.astype(np.float32)).shape == (2, 2, 3)
    depth, number = np.zeros((8, 8), np.float32), np.full((8, 8), -1, np.int32)
    corners = np.array([[0, 1, 2]])
    for place in range(3):
        x, y, w = screen = raster.Screen(np.array([1.0, 6, 1]), np.array([1.0, 1, 6]), np.ones(3))
        for table in screen:
            table[place], kept = value, table[place]
            raster.rasterize(screen, corners, depth, number)
            raster.splat(x, y, w, np.full(3, 0.5), 10.0, 1, depth, number)
            raster.draw_lines(screen, corners[:, :2], 1.0, 0.0, depth, depth.copy(), depth.copy())
            table[place] = kept
    assert number.min() >= -1
    assert number.max() <= 3


@pytest.mark.parametrize("value", [*ODD, 1e30])
@pytest.mark.parametrize("image", [0, 1])
def test_textures_need_no_finite_coordinates(value, image):
    from pliant.render import raster

    screen = raster.Screen(np.array([1.0, 6, 1]), np.array([1.0, 1, 6]), np.ones(3))
    texels, layout = np.ones((6, 3), np.float32), np.array([[0, 2, 3, 0], [0, 2, 3, 1]])
    depth, kind = np.zeros((8, 8), np.float32), np.zeros((8, 8), np.uint8)
    corners, none = np.array([[0, 1, 2]]), np.zeros((1, 3), np.int64)
    for u, v in ((value, 0.5), (0.5, value), (value, value)):
        shown = np.full((8, 8, 3), 7, np.float32)
        samples = raster.SampleBuffers(np.full((8, 8), -1, np.int32), shown.copy(), shown)
        uvs, ones = np.array([[u, v]]), np.ones((3, 3), np.float32)
        surface = raster.SurfaceAttributes(
            corners, ones, ones, corners, uvs, none, np.array([image]), np.array([False]), texels, layout
        )
        raster.rasterize(screen, corners, depth * 0, samples.number)
        raster.resolve(screen, surface, samples, kind)
        found = shown[samples.number == 0]
        assert len(found) > 8
        assert (np.isnan(found) | (np.abs(found - 1) < 1e-6)).all()


@pytest.mark.parametrize("scale", [1e300, 1e150, 1e-150, 1e-300, 1e-320])
def test_any_size_is_drawn(scale):
    ball = gallery.sphere(500)
    for shape in (ball, PointCloud(ball.points), TetMesh(POINTS, [[0, 1, 2, 3]])):
        image = pliant.render.picture(shape.with_points(shape.points * scale), size=(64, 48))
        assert len(np.unique(np.asarray(image))) > 20
