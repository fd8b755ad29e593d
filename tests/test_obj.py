"""OBJ as artists' tools write it: everything that a file says comes back."""

import os
from dataclasses import replace

import numpy as np
import pytest

import pliant
from conftest import PNG
from pliant import Animation, Appearance, FileError, Image, Labels, Mesh, PliantWarning

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


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("tail", "message"),
    [
        ("f 1 2 \\\n 9\n", "line 8: a face refers"),
        ("v 0 0 \\\n zero\n", 'line 8: found "zero"'),
        ("v 0 0 nan\nf 1 2 3\n", "line 7: vertex 4"),
        ("Hello\n", 'line 7: "Hello"'),
    ],
)
def test_continued_lines_count_as_lines(tmp_path, ending, tail, message):
    with pytest.raises(FileError, match=message):
        read(tmp_path, (QUAD + "f 1 \\\n2 3\n" + tail).replace("\n", ending))


def test_a_tab_may_follow_any_keyword(tmp_path):
    (tmp_path / "m.mtl").write_text("newmtl\tred\nKd\t1 0 0\nmap_Kd\tt.png\n")
    (tmp_path / "t.png").write_bytes(PNG)
    mesh = read(tmp_path, "mtllib\tm.mtl\n" + QUAD + "o\tname\t# a comment\nusemtl\tred\nf 1 2 3\n")
    assert mesh.labels["object"].names == ("name",)
    assert mesh.appearances["red"].color == (1, 0, 0, 1)
    assert mesh.appearances["red"].texture.data == PNG


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
    with pytest.warns(PliantWarning, match="OBJ cannot hold vertex groups: left out"):
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


def test_a_material_changed_since_is_written_as_it_is_now(tmp_path):
    (tmp_path / "m.mtl").write_text("newmtl skin\nNs 96\nKd 0.1 0.2 0.3\nTr 0.25\nillum 2\n")
    mesh = read(tmp_path, "mtllib m.mtl\n" + QUAD + "usemtl skin\nf 1 2 3\n")
    for color, words in [
        ((0.1, 0.2, 0.3, 0.75), "Ns 96\nKd 0.1 0.2 0.3\nTr 0.25\nillum 2\n"),
        ((1.0, 0.5, 0.0, 0.75), "Ns 96\nKd 1 0.5 0\nTr 0.25\nillum 2\n"),
        ((0.1, 0.2, 0.3, 0.5), "Ns 96\nKd 0.1 0.2 0.3\nd 0.5\nillum 2\n"),
    ]:
        look = replace(mesh.appearances["skin"], color=color)
        pliant.write(tmp_path / "out" / "b.obj", replace(mesh, appearances={"skin": look}))
        assert words in (tmp_path / "out" / "b.mtl").read_text()
        assert pliant.read_mesh(tmp_path / "out" / "b.obj").appearances["skin"].color == color


def test_a_texture_keeps_its_options_can_be_exchanged_and_taken_away(tmp_path):
    (tmp_path / "m.mtl").write_text("newmtl skin\nmap_Kd -s 2 2 1 -clamp on my skin.png\nNs 9\n")
    (tmp_path / "my skin.png").write_bytes(PNG)
    mesh = read(tmp_path, "mtllib m.mtl\n" + QUAD + "usemtl skin\nf 1 2 3\n")
    skin = mesh.appearances["skin"]
    assert skin.texture.data == PNG
    for texture, words in [
        (skin.texture, "map_Kd -s 2 2 1 -clamp on b_textures/my_skin.png\nNs 9\n"),
        (Image("other.jpg", PNG + b"!", "image/jpeg"), "map_Kd -s 2 2 1 -clamp on b_textures/other.png\nNs 9\n"),
        (None, "newmtl skin\nNs 9\n"),
    ]:
        look = replace(skin, texture=texture)
        pliant.write(tmp_path / "out" / "b.obj", replace(mesh, appearances={"skin": look}))
        assert words in (tmp_path / "out" / "b.mtl").read_text()
        back = pliant.read_mesh(tmp_path / "out" / "b.obj").appearances["skin"].texture
        assert (back and back.data) == (texture and texture.data)


def test_a_texture_that_is_missing_keeps_its_name(tmp_path):
    (tmp_path / "m.mtl").write_text("newmtl skin\nmap_Kd -s 2 2 1 lost.png\n")
    mesh = read(tmp_path, "mtllib m.mtl\n" + QUAD + "usemtl skin\nf 1 2 3\n")
    pliant.write(tmp_path / "out" / "b.obj", mesh)
    assert "map_Kd -s 2 2 1 lost.png\n" in (tmp_path / "out" / "b.mtl").read_text()


def painted(*images):
    """A triangle fan with one textured material a triangle."""
    names = tuple(f"m{k}" for k in range(len(images)))
    return Mesh(
        np.random.default_rng(1).random((len(images) + 2, 3)),
        [[0, k + 1, k + 2] for k in range(len(images))],
        labels={"material": Labels(names, np.arange(len(images)))},
        appearances={name: Appearance(texture=image) for name, image in zip(names, images, strict=True)},
    )


def test_no_texture_is_written_outside_its_folder_or_over_another_file(tmp_path):
    names = [".config/autostart/evil.desktop", "x.obj", "x.mtl", "skin.png", "skin.png", "a/Skin.PNG", "../../up", ""]
    images = [Image(name, PNG + bytes([k]), "image/png") for k, name in enumerate(names)]
    script = Image("run.sh", b"#!/bin/sh\n", "image/png")
    mesh = painted(*images, script, images[3])
    written = pliant.write(tmp_path / "x.obj", mesh)
    beside = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    assert beside == {p.relative_to(tmp_path).as_posix() for p in written}
    pictures = beside - {"x.obj", "x.mtl"}
    assert len({p.lower() for p in pictures}) == len(names) + 1  # one that two materials share is written once
    assert all(p.startswith("x_textures/") and p.endswith((".png", ".image")) for p in pictures)
    back = pliant.read_mesh(tmp_path / "x.obj")
    assert np.array_equal(back.points, mesh.points)
    for name, look in mesh.appearances.items():
        assert back.appearances[name].texture.data == look.texture.data


def test_the_frames_of_a_sequence_share_their_textures(tmp_path):
    mesh = painted(Image("skin.png", PNG, "image/png"))
    pliant.write(tmp_path / "walk.obj", Animation(mesh, np.stack([mesh.points, mesh.points + 1, mesh.points + 2])))
    assert len(list(tmp_path.rglob("*.png"))) == 1
    assert pliant.read_mesh(tmp_path / "walk_0003.obj").appearances["m0"].texture.data == PNG


def test_names_that_a_line_cannot_hold_are_changed_and_stay_apart(tmp_path):
    names = ("plain name", "two\nlines", "two lines", "f 1 1 1\r\nf 1 2 3", "arm #2", "tail\\", "half \ud800", "\x85")
    mesh = Mesh(
        np.random.default_rng(1).random((len(names) + 2, 3)),
        [[0, k + 1, k + 2] for k in range(len(names))],
        labels={key: Labels(names, np.arange(len(names))) for key in ("object", "group", "material")},
        appearances={name: Appearance((k / 10, 0, 0, 1)) for k, name in enumerate(names)},
    )
    pliant.write(tmp_path / "n.obj", mesh)
    back = pliant.read_mesh(tmp_path / "n.obj")
    assert len(back.polygons) == len(names)
    for key in ("object", "group", "material"):
        written = [back.labels[key].names[k] for k in back.labels[key].index]
        assert len(set(written)) == len(names)
        assert (written[0], written[2]) == ("plain name", "two lines")
    colors = [back.appearances[name].color[0] for name in written]
    assert colors == pytest.approx([k / 10 for k in range(len(names))])


@pytest.mark.parametrize("content", [b"newmtl red\0\1\2", b"newmtl red\nKd a b c\n", b"newmtl red\nKd nan 0 0\n"])
def test_a_material_library_that_cannot_be_read_leaves_the_names(tmp_path, content):
    (tmp_path / "m.mtl").write_bytes(content)
    with pytest.warns(PliantWarning, match=r"m\.mtl.*its materials are left out"):
        mesh = read(tmp_path, "mtllib m.mtl\n" + QUAD + "usemtl red\nf 1 2 3\n")
    assert mesh.appearances["red"].color == (0.8, 0.8, 0.8, 1.0)


def test_a_material_library_whose_name_no_file_can_have_is_missing(tmp_path):
    assert len(read(tmp_path, f"mtllib {'m' * 300}.mtl\n" + QUAD + "f 1 2 3\n").polygons) == 1


def test_a_material_library_elsewhere_on_the_machine_is_not_read(tmp_path):
    secret = tmp_path / "secret.mtl"
    secret.write_text("newmtl skin\nKd 1 0 0\n")
    (tmp_path / "inner").mkdir()
    text = f"mtllib {secret}\nmtllib ../secret.mtl\n" + QUAD + "usemtl skin\nf 1 2 3\n"
    mesh = read(tmp_path / "inner", text)
    assert mesh.appearances["skin"].color == (0.8, 0.8, 0.8, 1.0)


@pytest.mark.parametrize("name", ["linked.mtl", "folder/secret.mtl", "pipe.mtl"])
def test_a_material_library_behind_a_link_or_a_pipe_is_not_read(tmp_path, name):
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret.mtl").write_text("newmtl skin\nKd 1 0 0\n")
    (tmp_path / "in" / "linked.mtl").symlink_to(tmp_path / "out" / "secret.mtl")
    (tmp_path / "in" / "folder").symlink_to(tmp_path / "out")
    os.mkfifo(tmp_path / "in" / "pipe.mtl")
    mesh = read(tmp_path / "in", f"mtllib {name}\n" + QUAD + "usemtl skin\nf 1 2 3\n")
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
