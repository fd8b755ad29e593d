"""PLY, STL, OFF and Medit: every encoding gives the same shape, and broken files are named."""

import struct
import warnings
from dataclasses import replace

import numpy as np
import pytest

import pliant
from pliant import Animation, FileError, InputError, Layer, Mesh, PliantWarning, PointCloud
from pliant.core.shapes import World

RNG = np.random.default_rng(3)
MIXED = Mesh(RNG.random((6, 3)), [[0, 1, 2], [0, 2, 3, 4], [1, 2, 3, 4, 5]])


def ply(encoding: str, mesh: Mesh, real: str = "double") -> bytes:
    order = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}[encoding]
    head = (
        f"ply\nformat {encoding} 1.0\ncomment made by hand\nelement vertex {len(mesh.points)}\n"
        f"property {real} x\nproperty {real} y\nproperty {real} z\nproperty uchar red\nproperty uchar green\n"
        f"property uchar blue\nelement face {len(mesh.polygons)}\nproperty uchar flags\n"
        "property list uchar int vertex_indices\nend_header\n"
    ).encode()
    if not order:
        rows = [" ".join([*map(repr, p), "255", "0", str(k)]) for k, p in enumerate(mesh.points.tolist())]
        rows += [" ".join(map(str, [7, len(p), *p])) for p in mesh.polygons]
        return head + "\n".join(rows).encode()
    body = b"".join(struct.pack(f"{order}3dBBB", *p, 255, 0, k) for k, p in enumerate(mesh.points.tolist()))
    return head + body + b"".join(struct.pack(f"{order}BB{len(p)}i", 7, len(p), *p) for p in mesh.polygons)


@pytest.mark.parametrize("encoding", ["ascii", "binary_little_endian", "binary_big_endian"])
@pytest.mark.parametrize("faces", [[[0, 1, 2], [3, 4, 5]], list(MIXED.polygons)], ids=["equal", "mixed"])
def test_ply_encodings_agree(tmp_path, encoding, faces):
    mesh = Mesh(MIXED.points, faces)
    (tmp_path / "a.ply").write_bytes(ply(encoding, mesh))
    back = pliant.read_mesh(tmp_path / "a.ply")
    assert np.array_equal(back.points, mesh.points)
    assert [list(p) for p in back.polygons] == [list(p) for p in mesh.polygons]
    assert np.allclose(back.attributes["color"][:, 0], 1)


def test_ply_keeps_every_property_of_a_gaussian_splat(tmp_path):
    names = ["f_dc_0", "f_rest_44", "opacity", "scale_0", "scale_1", "scale_2", "rot_0", "rot_1", "rot_2", "rot_3"]
    values = {name: RNG.normal(size=20).astype(np.float32) for name in names}
    points = RNG.random((20, 3)).astype(np.float32)
    cloud = PointCloud(points, np.zeros((20, 3)), values)
    pliant.write(tmp_path / "splat.ply", cloud)
    text = (tmp_path / "splat.ply").read_bytes()
    assert b"property float x" in text
    assert b"property float rot_3" in text
    back = pliant.read(tmp_path / "splat.ply")
    assert isinstance(back, PointCloud)
    assert list(back.attributes) == names
    for name in names:
        assert back.attributes[name].dtype == np.float32
        assert np.array_equal(back.attributes[name], values[name])


def test_ply_round_trip_of_polygons_uv_seams_and_colours(tmp_path, decorated):
    with pytest.warns(
        PliantWarning, match="PLY cannot hold normals with hard edges, materials, vertex groups, objects"
    ):
        pliant.write(tmp_path / "house.ply", decorated)
    back = pliant.read_mesh(tmp_path / "house.ply")
    assert np.array_equal(back.points, decorated.points)
    assert np.array_equal(back.polygons.corners, decorated.polygons.corners)
    assert np.array_equal(back.uvs.at_corners, decorated.uvs.at_corners)
    assert np.allclose(back.attributes["color"], decorated.attributes["color"])


@pytest.mark.parametrize("suffix", [".stl", ".off", ".mesh"])
def test_what_a_format_cannot_hold_is_said(tmp_path, decorated, suffix):
    with pytest.warns(PliantWarning, match="cannot hold UVs, normals, materials, vertex groups, objects") as said:
        pliant.write(tmp_path / f"house{suffix}", decorated)
    assert len(said) == 1
    assert ('attribute "color"' in str(said[0].message)) == (suffix != ".off")


def test_axes_and_units_that_are_not_the_usual_ones_are_said(tmp_path):
    pliant.write(tmp_path / "a.off", replace(MIXED, world=World()))
    with pytest.warns(PliantWarning, match="OFF cannot hold axes and units"):
        pliant.write(tmp_path / "a.off", replace(MIXED, world=World(up="z")))


def test_a_sequence_says_once_what_it_cannot_hold(tmp_path, decorated):
    clip = Animation(decorated, np.stack([decorated.points + k for k in range(4)]))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default", PliantWarning)
        pliant.write(tmp_path / "house.off", clip)
    assert len(said) == 1


@pytest.mark.parametrize(
    ("values", "stored"),
    [
        (np.arange(6, dtype=np.float16), np.float32),
        (np.arange(6, dtype=np.longdouble), np.float64),
        (np.arange(6) % 2 == 0, np.uint8),
        (np.arange(6) - 3, np.int32),
        (np.arange(6, dtype=np.uint64) + (1 << 31), np.uint32),
        (np.arange(6) + (1 << 40), np.float64),
        (np.arange(6, dtype=">i2"), np.int16),
    ],
)
def test_ply_keeps_attributes_of_any_number(tmp_path, values, stored):
    pliant.write(tmp_path / "a.ply", Mesh(MIXED.points, MIXED.polygons, attributes={"heat": values}))
    back = pliant.read_mesh(tmp_path / "a.ply").attributes["heat"]
    assert back.dtype == stored
    assert np.array_equal(back, values)


def test_ply_spreads_tables_and_numbers_names_that_are_taken(tmp_path):
    flat = {name: RNG.random(6) for name in ("x", "nx", "s", "red", "two\nlines", "two lines", "Å", "end_header")}
    tables = {"uv2": RNG.random((6, 2)), "frame": RNG.random((6, 2, 2))}
    corners = MIXED.polygons.corners
    mesh = Mesh(
        MIXED.points,
        MIXED.polygons,
        uvs=Layer(RNG.random((6, 2)), corners),
        normals=Layer(RNG.random((6, 3)), corners),
        attributes={"color": np.eye(6, 3), **flat, **tables},
    )
    pliant.write(tmp_path / "a.ply", mesh)
    back = pliant.read_mesh(tmp_path / "a.ply")
    assert np.array_equal(back.points, mesh.points)
    assert np.array_equal(back.uvs.at_corners, mesh.uvs.at_corners)
    assert np.array_equal(back.normals.at_corners, mesh.normals.at_corners)
    names = ["x_1", "nx_1", "s_1", "red_1", "two_lines", "two_lines_1", "Å", "end_header"]
    for written, values in zip(names, flat.values(), strict=True):
        assert np.array_equal(back.attributes[written], values)
    assert np.array_equal(back.attributes["uv2_1"], tables["uv2"][:, 1])
    assert np.array_equal(back.attributes["frame_2"], tables["frame"][:, 1, 0])


def test_ply_keeps_an_attribute_named_as_part_of_a_normal(tmp_path):
    pliant.write(tmp_path / "a.ply", PointCloud(MIXED.points, None, {"nx": np.arange(6.0)}))
    assert pliant.read_points(tmp_path / "a.ply").attributes["nx"].tolist() == list(range(6))


def test_ply_says_which_attribute_it_cannot_hold(tmp_path):
    cloud = PointCloud(MIXED.points, None, {"names": np.array(list("abcdef")), "wave": np.zeros(6, complex)})
    with pytest.warns(PliantWarning, match='PLY cannot hold attribute "names" of <U1, attribute "wave" of complex128'):
        pliant.write(tmp_path / "a.ply", cloud)


def header(text: str) -> bytes:
    return f"ply\nformat binary_little_endian 1.0\n{text}end_header\n".encode()


XYZ = "property float x\nproperty float y\nproperty float z\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "starts with b''"),
        (b"plx\n", "a PLY file starts with"),
        (b"ply\nformat ascii 1.0\n", "no end_header"),
        (b"ply\nformat utf8 1.0\nend_header\n", 'format is "utf8"'),
        (header("element vertex many\n"), 'line 3: cannot make sense of "element vertex many"'),
        (header("element vertex -4\n" + XYZ), "line 3"),
        (header("property float x\n"), "line 3"),
        (header("element vertex 3\nproperty quad x\n"), "line 4"),
        (header(f"element vertex 99999999999999\n{XYZ}") + bytes(64), "ends inside its 99999999999999 vertex rows"),
        (
            header(f"element vertex 1\n{XYZ}element face 4000000000\nproperty list uchar int vertex_indices\n")
            + bytes(64),
            "ends inside its 4000000000 face rows",
        ),
        (header("element vertex 1\nproperty float x\n") + bytes(4), "x, y and z"),
        (header(f"element vertex 1\n{XYZ}") + bytes(12), "1 points and no faces"),
        (
            header(f"element vertex 1\n{XYZ}element face 1\nproperty list uchar int vertex_indices\n")
            + bytes(12) + struct.pack("<B3i", 3, 0, 0, 7),
            "face 0: refers to vertex 7",
        ),
        (
            header(f"element vertex 1\n{XYZ}element face 1\nproperty list uint int vertex_indices\n")
            + bytes(12) + struct.pack("<I", 4_000_000_000),
            "cut off",
        ),
        (
            header(f"element vertex 1\n{XYZ}element face 1\nproperty list uchar int vertex_indices\n")
            + struct.pack("<3f", 0, float("nan"), 0) + struct.pack("<B3i", 3, 0, 0, 0),
            "vertex 0 is",
        ),
    ],
)  # fmt: skip
def test_broken_ply_is_named(tmp_path, content, message):
    (tmp_path / "bad.ply").write_bytes(content)
    with pytest.raises(FileError, match=message):
        pliant.read_mesh(tmp_path / "bad.ply")


TETRAHEDRON = Mesh(
    np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]]), [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]]
)


def test_stl_joins_equal_corners_and_keeps_the_triangles(tmp_path):
    pliant.write(tmp_path / "t.stl", TETRAHEDRON)
    back = pliant.read_mesh(tmp_path / "t.stl")
    assert len(back.points) == 4
    assert back.is_watertight
    assert np.array_equal(back.points[back.triangles], TETRAHEDRON.points[TETRAHEDRON.triangles])


def test_stl_refuses_coordinates_beyond_single_precision(tmp_path):
    with pytest.raises(InputError, match=r"coordinates reach 1e\+300; the format holds single precision"):
        pliant.write(tmp_path / "t.stl", TETRAHEDRON.scaled(1e300))
    assert not list(tmp_path.iterdir())


def test_text_stl_equals_binary(tmp_path):
    lines = ["solid a name with vertex in it"]
    for a, b, c in TETRAHEDRON.points[TETRAHEDRON.triangles]:
        lines += ["  facet normal 0 0 0", "    outer loop"]
        lines += [f"      vertex {x} {y} {z}" for x, y, z in (a, b, c)]
        lines += ["    endloop", "  endfacet"]
    (tmp_path / "t.stl").write_text("\r\n".join([*lines, "endsolid"]))
    back = pliant.read_mesh(tmp_path / "t.stl")
    assert back.volume == pytest.approx(1 / 6)
    assert len(back.points) == 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "neither a binary STL"),
        (bytes(80) + struct.pack("<I", 4_000_000_000), "promises 4,000,000,000 triangles"),
        (bytes(80) + struct.pack("<I", 0), "no triangles"),
        (bytes(80) + struct.pack("<I", 1) + b"\xff" * 50, "triangle 0: a corner is"),
        (b"solid x\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\n", "ends inside a triangle"),
        (b"solid x\nvertex 0 0\nvertex 1 1 1\nvertex 2 2 2\n", "line 2"),
        (b"solid x\nvertex 0 0 a\n", 'line 2: found "a"'),
    ],
)
def test_broken_stl_is_named(tmp_path, content, message):
    (tmp_path / "bad.stl").write_bytes(content)
    with pytest.raises(FileError, match=message):
        pliant.read_mesh(tmp_path / "bad.stl")


@pytest.mark.parametrize("suffix", [".off", ".mesh"])
def test_off_and_medit_round_trip(tmp_path, suffix):
    mesh = MIXED if suffix == ".off" else Mesh(MIXED.points, [[0, 1, 2], [0, 2, 3, 4]])
    pliant.write(tmp_path / f"m{suffix}", mesh)
    back = pliant.read_mesh(tmp_path / f"m{suffix}")
    assert np.array_equal(back.points, mesh.points)
    assert [list(p) for p in back.polygons] == [list(p) for p in mesh.polygons]


@pytest.mark.parametrize("colors", ["255 0 0 255", "1.0 0 0 1", "255 0 0"])
def test_coff_colours_in_bytes_and_fractions(tmp_path, colors):
    (tmp_path / "c.off").write_text(
        f"COFF # colours\n3 1 0\n0 0 0 {colors}\n1 0 0 {colors}\n0 1 0 {colors}\n3 0 1 2 9 9 9\n"
    )
    mesh = pliant.read_mesh(tmp_path / "c.off")
    assert np.allclose(mesh.attributes["color"][:, :3], [1, 0, 0])
    pliant.write(tmp_path / "d.off", mesh)
    assert np.allclose(pliant.read_mesh(tmp_path / "d.off").attributes["color"][:, :3], [1, 0, 0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "starts with"),
        ("OFF", "numbers of vertices and faces"),
        ("OFF BINARY\n", "of the kind OFF BINARY"),
        ("OFF\n3 1 0\n0 0 0\n1 0 0\n", "ends after 3 of 3|a line of vertices|ends after 2 of 3"),
        ("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n", "ends after 0 of 1 faces"),
        ("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 5\n", "line 6: a face refers to vertex 5"),
        ("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 1.5\n", "line 6"),
        ("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n2 0 1\n", "line 6: a face promises 2 corners"),
        ("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 inf\n3 0 1 2\n", "line 5: vertex 2 is"),
        ("OFF\n999999999999 1 0\n0 0 0\n", "ends after"),
    ],
)
def test_broken_off_is_named(tmp_path, text, message):
    (tmp_path / "bad.off").write_text(text)
    with pytest.raises(FileError, match=message):
        pliant.read_mesh(tmp_path / "bad.off")


def test_medit_tetrahedra_round_trip(tmp_path):
    tets = pliant.TetMesh(RNG.random((5, 3)), np.array([[0, 1, 2, 3], [1, 2, 3, 4]]))
    pliant.write(tmp_path / "t.mesh", tets)
    back = pliant.read(tmp_path / "t.mesh")
    assert np.array_equal(back.points, tets.points)
    assert np.array_equal(back.tets, tets.tets)
    assert len(back.triangles) == 6
    assert len(pliant.read_mesh(tmp_path / "t.mesh").polygons) == 6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Vertices\n1\n0 0 0 0\n", "starts with"),
        ("MeshVersionFormatted 1\nDimension 2\n", "expected Dimension 3"),
        ("MeshVersionFormatted 1\nDimension 3\nVertices\n4\n0 0 0 0\n", "ends after 1 of 4 vertices"),
        ("MeshVersionFormatted 1\nDimension 3\nTetrahedra\n1\n1 2 3 4 0\n", "come before the vertices"),
        (
            "MeshVersionFormatted 1\nDimension 3\nVertices\n1\n0 0 0 0\nTetrahedra\n1\n1 2 3 4 0\n",
            "refers to vertex 2; the file has 1, numbered from 1",
        ),
        ("MeshVersionFormatted 1\nDimension 3\nVertices\n1\n0 0 0 0\nTetrahedra\n1\n1 0 1 1 0\n", "refers to vertex 0"),
        ("MeshVersionFormatted 1\nDimension 3\n", "no vertices"),
    ],
)
def test_broken_medit_is_named(tmp_path, text, message):
    (tmp_path / "bad.mesh").write_text(text)
    with pytest.raises(FileError, match=message):
        pliant.read_tets(tmp_path / "bad.mesh")
