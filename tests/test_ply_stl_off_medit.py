"""PLY, STL, OFF and Medit: every encoding gives the same shape, and broken files are named."""

import struct

import numpy as np
import pytest

import pliant
from pliant import FileError, Mesh, PointCloud

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
    pliant.write(tmp_path / "house.ply", decorated)
    back = pliant.read_mesh(tmp_path / "house.ply")
    assert np.array_equal(back.points, decorated.points)
    assert np.array_equal(back.polygons.corners, decorated.polygons.corners)
    assert np.array_equal(back.uvs.at_corners, decorated.uvs.at_corners)
    assert np.allclose(back.attributes["color"], decorated.attributes["color"])


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
        ("MeshVersionFormatted 1\nDimension 3\nVertices\n1\n0 0 0 0\nTetrahedra\n1\n1 2 3 4 0\n", "refers to vertex 1"),
        ("MeshVersionFormatted 1\nDimension 3\n", "no vertices"),
    ],
)
def test_broken_medit_is_named(tmp_path, text, message):
    (tmp_path / "bad.mesh").write_text(text)
    with pytest.raises(FileError, match=message):
        pliant.read_tets(tmp_path / "bad.mesh")
