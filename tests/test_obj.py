"""OBJ as artists' tools write it: everything that a file says comes back."""

import numpy as np
import pytest

import pliant
from pliant import FileError, PliantWarning

QUAD = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\n"


def read(tmp_path, text, name="shape.obj"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return pliant.read_mesh(path)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("faces", ["f 1 2 3 4", "f -4 -3 -2 -1", "f 1/ 2/ 3/ 4/", "f\t1   2 3 4  # a quad"])
def test_a_quad_in_every_spelling(tmp_path, faces, ending):
    mesh = read(tmp_path, (QUAD + faces).replace("\n", ending))  # no newline at the end
    assert [list(p) for p in mesh.polygons] == [[0, 1, 2, 3]]
    assert mesh.points.tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]
    assert mesh.uvs is None
    assert mesh.normals is None


def test_negative_indices_count_from_the_statement(tmp_path):
    mesh = read(tmp_path, QUAD + "f -4 -3 -2\nv 5 5 5\nf -1 -2 -3\n")
    assert [list(p) for p in mesh.polygons] == [[0, 1, 2], [4, 3, 2]]


def test_faces_may_come_before_their_vertices(tmp_path):
    assert len(read(tmp_path, "f 1 2 3\n" + QUAD).polygons) == 1


def test_continued_lines(tmp_path):
    assert len(read(tmp_path, QUAD + "f 1 2 \\\n 3 4\n").polygons[0]) == 4


def test_mixed_polygons_objects_groups_and_materials(tmp_path):
    text = QUAD + "o one\ng a b\nusemtl red\nf 1 2 3\ng c\nf 1 2 3 4\no two\nusemtl blue\nf 2 3 4\n"
    mesh = read(tmp_path, text)
    assert mesh.polygons.sizes.tolist() == [3, 4, 3]
    named = {key: [label.names[k] for k in label.index] for key, label in mesh.labels.items()}
    assert named == {
        "object": ["one", "one", "two"],
        "group": ["a b", "c", "c"],
        "material": ["red", "red", "blue"],
    }


def test_faces_before_the_first_statement_have_no_name(tmp_path):
    mesh = read(tmp_path, QUAD + "f 1 2 3\ng late\nf 1 3 4\n")
    assert [mesh.labels["group"].names[k] for k in mesh.labels["group"].index] == ["", "late"]


def test_partly_missing_texture_coordinates_and_normals_are_filled(tmp_path):
    mesh = read(tmp_path, QUAD + "vt .5 .25\nvn 0 0 1\nf 1/1/1 2/1/1 3/1/1\nf 1 3 4\n")
    assert mesh.uvs.at_corners.tolist() == [[0.5, 0.25]] * 3 + [[0, 0]] * 3
    assert np.allclose(mesh.normals.at_corners, [0, 0, 1])


def test_lines_are_left_out_with_a_word(tmp_path):
    with pytest.warns(PliantWarning, match="left out lines"):
        mesh = read(tmp_path, QUAD + "f 1 2 3\nl 1 2 3\n")
    assert len(mesh.polygons) == 1


def test_everything_survives_a_round_trip(tmp_path, decorated):
    pliant.write(tmp_path / "house.obj", decorated)
    back = pliant.read_mesh(tmp_path / "house.obj")
    assert np.array_equal(back.points, decorated.points)
    assert np.array_equal(back.polygons.corners, decorated.polygons.corners)
    assert np.array_equal(back.polygons.offsets, decorated.polygons.offsets)
    assert np.array_equal(back.uvs.at_corners, decorated.uvs.at_corners)
    assert np.array_equal(back.normals.at_corners, decorated.normals.at_corners)
    for key, label in decorated.labels.items():
        assert [back.labels[key].names[k] for k in back.labels[key].index] == [label.names[k] for k in label.index]
    assert back.appearances["brick"].texture.data == decorated.appearances["brick"].texture.data
    assert back.appearances["tiles"].color == pytest.approx(decorated.appearances["tiles"].color)
    assert np.allclose(back.attributes["color"], decorated.attributes["color"])


def test_a_material_keeps_its_own_words(tmp_path):
    (tmp_path / "m.mtl").write_text("newmtl skin\nKd 0.1 0.2 0.3\nNs 96\nmap_Bump -bm 1 bump.png\n")
    mesh = read(tmp_path, "mtllib m.mtl\n" + QUAD + "usemtl skin\nf 1 2 3\n")
    assert mesh.appearances["skin"].color == (0.1, 0.2, 0.3, 1.0)
    pliant.write(tmp_path / "out" / "again.obj", mesh)
    assert "Ns 96\nmap_Bump -bm 1 bump.png" in (tmp_path / "out" / "again.mtl").read_text()


def test_a_material_library_elsewhere_on_the_machine_is_not_read(tmp_path):
    secret = tmp_path / "secret.mtl"
    secret.write_text("newmtl skin\nKd 1 0 0\n")
    (tmp_path / "inner").mkdir()
    text = f"mtllib {secret}\nmtllib ../secret.mtl\n" + QUAD + "usemtl skin\nf 1 2 3\n"
    mesh = read(tmp_path / "inner", text)
    assert mesh.appearances["skin"].color == (0.8, 0.8, 0.8, 1.0)


def test_vertex_colours(tmp_path):
    mesh = read(tmp_path, "v 0 0 0 1 0 0\nv 1 0 0 0 1 0\nv 0 1 0 0 0 1\nf 1 2 3\n")
    assert np.allclose(mesh.attributes["color"], np.eye(3))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (QUAD + "f 1 2 9\n", "line 5: a face refers to what the file does not have .4 vertices"),
        (QUAD + "f 1 2 0\n", "line 5"),
        (QUAD + "f 1 2 -5\n", "line 5"),
        (QUAD + "f 1 2\n", "line 5: a face has fewer than three"),
        (QUAD + "f 1/1 2/1 3/1\n", "line 5: a face refers to what the file does not have"),
        (QUAD + "vt 0 0\nf 1/1 2 3\n", "line 6: some corners"),
        (QUAD + "f a b c\n", "line 5: a face corner"),
        ("v 0 0\n", "line 1: too few numbers"),
        ("v 0 0 zero\n", 'line 1: found "zero"'),
        ("v 0 0 0\nv 0 nan 0\nv 1 1 1\nf 1 2 3\n", r"line 2: vertex 1 is \[0.0, nan, 0.0\]"),
        ("v 0 0 1e999\nv 0 0 0\nv 1 1 1\nf 1 2 3\n", "line 1: vertex 0 is"),
        ("", "0 vertices and no faces"),
        (QUAD, "4 vertices and no faces"),
        ("Hello there\n", '"Hello" is not a statement of an OBJ file'),
        (b"\x00\x01binary", "binary data"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, text, message):
    with pytest.raises(FileError, match=message) as caught:
        read(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_a_file_without_faces_reads_as_points(tmp_path):
    (tmp_path / "dots.obj").write_text(QUAD)
    assert len(pliant.read_points(tmp_path / "dots.obj").points) == 4
