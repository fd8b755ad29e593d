"""What `pliant info` says: counts and faults of constructed meshes, of files, and of the real ones."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest

import pliant
from pliant.app.inspection import animation_facts, inspect, motion_facts, shapes_facts, skeleton_facts, tet_facts
from pliant.app.inspection.mesh import inspect_mesh
from pliant.core.clips import Animation, Shapes
from pliant.core.errors import FileError
from pliant.core.shapes import Appearance, Image, Labels, Layer, Mesh, PointCloud, TetMesh, World
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Polygons
from surfaces import box, sphere, torus

FAULTS = (
    "seam_vertices",
    "unused_vertices",
    "boundary_edges",
    "holes",
    "nonmanifold_edges",
    "nonmanifold_vertices",
    "misoriented_edges",
    "degenerate_faces",
    "duplicate_faces",
)


def faults(mesh: Mesh) -> dict[str, int]:
    """Only those that are there."""
    facts = inspect_mesh(mesh)
    return {name: getattr(facts, name) for name in FAULTS if getattr(facts, name)}


def unwelded(mesh: Mesh) -> Mesh:
    """Every face with vertices of its own, as non-indexed exports have them."""
    own = np.arange(len(mesh.polygons.corners))
    return Mesh(mesh.points[mesh.polygons.corners], Polygons(own, mesh.polygons.offsets))


@pytest.mark.parametrize(("size", "hint"), [(1000.0, "millimetres"), (1.0, ""), (0.001, "mm")])
def test_units_are_guessed_where_the_file_does_not_state_them(size, hint):
    notes = inspect_mesh(box().scaled(size)).notes
    assert hint in "".join(notes)
    assert len(notes) == bool(hint)
    assert not inspect_mesh(replace(box().scaled(size), world=World("y", 0.01))).notes


@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e2])
@pytest.mark.parametrize("mesh", [sphere(), box(), torus()], ids=["sphere", "box", "torus"])
def test_a_sound_mesh_has_nothing_wrong(mesh, scale):
    facts = inspect_mesh(mesh.scaled(scale), deep=True)
    assert facts.problems == ()
    assert facts.watertight
    assert facts.closed
    assert facts.inside_out is False
    assert facts.parts == 1
    assert facts.self_intersections == 0
    assert facts.volume == pytest.approx(mesh.volume * scale**3)
    assert faults(mesh) == {}


def test_faces_by_size_and_bounds():
    mesh = Mesh(
        [[0, 0, 0], [1, 0, 0], [1, 2, 0], [0, 2, 0], [2, 1, 0], [-1, 1, 3]],
        [[0, 1, 2, 3], [1, 4, 2], [0, 1, 4, 2, 3]],
    )
    facts = inspect_mesh(mesh)
    assert (facts.triangles, facts.quads, facts.polygons, facts.largest_face) == (1, 1, 1, 5)
    assert facts.lower == (-1, 0, 0)
    assert facts.upper == (2, 2, 3)
    assert facts.diagonal == pytest.approx(np.sqrt(9 + 4 + 9))
    assert facts.unused_vertices == 1


def test_a_hole_and_its_rim():
    mesh = sphere(12, 8)
    torn = Mesh(mesh.points, mesh.triangles[12:])
    facts = inspect_mesh(torn)
    assert (facts.boundary_edges, facts.holes, facts.closed) == (12, 1, False)
    assert facts.inside_out is None
    assert facts.volume is None
    assert faults(Mesh(mesh.points, mesh.triangles[12:-12])) == {"boundary_edges": 24, "holes": 2, "unused_vertices": 2}
    assert any("12 open edges in 1 boundary" in problem for problem in facts.problems)


def test_an_inside_out_mesh():
    facts = inspect_mesh(Mesh(box().points, box().triangles[:, ::-1]))
    assert facts.inside_out
    assert "inside out" in facts.problems[0]


def test_one_face_the_wrong_way_round():
    triangles = sphere(12, 8).triangles.copy()
    triangles[30] = triangles[30][::-1]
    mesh = Mesh(sphere(12, 8).points, triangles)
    assert faults(mesh) == {"misoriented_edges": 3}
    assert inspect_mesh(mesh).inside_out is None


def test_a_fin_makes_an_edge_non_manifold():
    mesh = box()
    points = np.concatenate([mesh.points, [[0, 0, 5]]])
    fin = Mesh(points, [*mesh.polygons, np.array([0, 1, 8])])
    assert faults(fin) == {"nonmanifold_edges": 1, "boundary_edges": 2, "holes": 1}
    assert "vertices 0 and 1" in inspect_mesh(fin).problems[0]


def test_two_quads_that_share_a_diagonal_are_non_manifold_as_triangles():
    points = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1]]
    assert faults(Mesh(points, [[0, 1, 2, 3], [0, 4, 2, 5]]))["nonmanifold_edges"] == 1


def test_two_boxes_that_share_one_corner():
    low, high = box(), box(centre=(2, 2, 2))
    points = np.concatenate([low.points, np.delete(high.points, 0, axis=0)])
    renumber = np.concatenate([[7], np.arange(8, 15)])
    mesh = Mesh(points, [*low.polygons, *(renumber[face] for face in high.polygons)])
    assert faults(mesh) == {"nonmanifold_vertices": 1}
    assert inspect_mesh(mesh).parts == 1
    assert "vertex 7" in inspect_mesh(mesh).problems[0]


def test_split_vertices_are_seams_and_no_problem():
    mesh = unwelded(box())
    facts = inspect_mesh(mesh)
    assert faults(mesh) == {"seam_vertices": 16}
    assert not facts.watertight
    assert facts.closed
    assert facts.inside_out is False
    assert facts.parts == 1
    assert facts.problems == ()
    assert "it is closed then" in facts.notes[0]


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(
    "extra",
    [[0, 1, 1], [0, 1, 8], [9, 10, 11]],
    ids=["a corner twice", "on one line", "in one place"],
)
def test_degenerate_faces(extra, scale):
    mesh = box()
    more = [(mesh.points[0] + mesh.points[1]) / 2, [5, 5, 5], [5, 5, 5], [5, 5, 5]]
    bad = Mesh(scale * np.concatenate([mesh.points, more]), [*mesh.polygons, np.array(extra)])
    facts = inspect_mesh(bad)
    assert facts.degenerate_faces == 1
    assert any("face 6" in problem for problem in facts.problems)


def test_small_but_sound_faces_are_not_degenerate():
    speck = sphere(8, 6, radius=1e-7, centre=(3, 0, 0))
    both = Mesh(
        np.concatenate([sphere().points, speck.points]),
        np.concatenate([sphere().triangles, speck.triangles + len(sphere().points)]),
    )
    assert faults(both) == {}
    assert inspect_mesh(both).parts == 2


def test_duplicate_faces_in_any_rotation():
    mesh = box()
    faces = [*mesh.polygons, np.roll(mesh.polygons[2], 1), mesh.polygons[4][::-1], mesh.polygons[4]]
    assert inspect_mesh(Mesh(mesh.points, faces)).duplicate_faces == 3
    assert inspect_mesh(mesh).duplicate_faces == 0


def test_what_a_mesh_carries_is_named():
    mesh = box()
    corners = np.zeros(24, dtype=np.int64)
    faces = np.array([0, 0, 0, 1, 1, 1])
    look = Appearance(texture=Image("wood.png", b"", "image/png"))
    full = Mesh(
        mesh.points,
        mesh.polygons,
        uvs=Layer(np.zeros((1, 2)), corners),
        normals=Layer(np.array([[0.0, 0, 1]]), corners),
        labels={"material": Labels(("wood", "iron", "spare"), faces), "object": Labels(("crate",), 0 * faces)},
        appearances={"wood": look},
        attributes={"color": np.ones((8, 3)), "heat": np.zeros(8)},
        vertex_groups={"lid": np.ones(8)},
    )
    facts = inspect_mesh(full)
    assert facts.materials == ("wood", "iron")
    assert facts.objects == ("crate",)
    assert facts.textures == ("wood.png",)
    assert facts.attributes == ("heat",)
    assert facts.vertex_groups == ("lid",)
    assert (facts.uvs, facts.normals, facts.colors) == (True, True, True)


def test_self_intersections_only_on_request():
    low, high = box(), box(centre=(0.7, 0.6, 0.5))
    mesh = Mesh(np.concatenate([low.points, high.points]), np.concatenate([low.triangles, high.triangles + 8]))
    assert inspect_mesh(mesh).self_intersections is None
    deep = inspect_mesh(mesh, deep=True)
    assert deep.self_intersections
    assert "cross each other" in deep.problems[0]


def test_no_faces_and_no_extent():
    assert "no faces" in inspect_mesh(Mesh([[0, 0, 0], [1, 1, 1]], [])).problems[0]
    assert inspect_mesh(Mesh(np.zeros((0, 3)), [])).vertices == 0
    assert any("coincide" in text for text in inspect_mesh(Mesh(np.ones((3, 3)), [[0, 1, 2]])).problems)


@pytest.mark.parametrize(("scale", "words"), [(1000.0, "millimetres"), (1e-3, "mm"), (1.0, None)])
def test_unusual_sizes_are_noted_gently(scale, words):
    facts = inspect_mesh(box().scaled(scale))
    assert facts.problems == ()
    assert [words in note for note in facts.notes] == ([True] if words else [])


def test_tetrahedra_inside_out_and_flat():
    points = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]]
    facts = tet_facts(TetMesh(points, [[0, 1, 2, 3], [1, 0, 2, 3], [0, 1, 2, 4]]))
    assert (facts["inside out"], facts["flat"]) == (1, 1)
    assert len(facts["problems"]) == 2
    assert facts["volume"] == pytest.approx(1 / 3)


def test_shapes_by_how_far_they_move():
    mesh = box()
    moved = mesh.points.copy()
    moved[3] += [0, 0, 0.5]
    facts = shapes_facts(Shapes(mesh, np.stack([mesh.points, moved, mesh.points]), ("rest", "dent", "spare")))
    assert facts["largest displacement"] == {"rest": 0, "dent": pytest.approx(0.5 / np.sqrt(12)), "spare": 0}
    assert "spare" in facts["notes"][0]


def test_animations_by_their_largest_step():
    mesh = box()
    frames = mesh.points + np.array([0, 0.1, 0.2, 2.2, 2.3, 2.4])[:, None, None] * [1, 0, 0]
    facts = animation_facts(Animation(mesh, frames, fps=10.0))
    assert (facts["frames"], facts["seconds"], facts["at frame"]) == (6, 0.5, 3)
    assert facts["largest step"] == pytest.approx(2 / np.sqrt(12))
    assert "From frame 2 to 3" in facts["notes"][0]
    assert "Nothing moves" in animation_facts(Animation(mesh, [mesh.points] * 3))["notes"][0]


def test_skeletons_and_motions():
    bones = Skeleton(("hip", "knee", "cap"), [-1, 0, 1], [[0, 1, 0], [0, -0.5, 0], [0, 0, 0]])
    facts = skeleton_facts(bones)
    assert facts["roots"] == ["hip"]
    assert facts["longest bone"] == 0.5
    assert facts["bones without length"] == ["cap"]
    walk = np.zeros((5, 3, 3)) + bones.offsets
    walk[:, 0, 0] = 0.25 * np.arange(5)
    moved = motion_facts(Motion(bones, np.tile([1.0, 0, 0, 0], (5, 3, 1)), walk, fps=4.0))
    assert (moved["frames"], moved["seconds"], moved["root travels"]) == (5, 1.0, 1.0)


# Files


def check_plain(inspection) -> dict:
    """Whatever is inspected is valid JSON and short text."""
    told = json.loads(json.dumps(inspection.to_dict(), allow_nan=False))
    assert all("\n" not in line for line in inspection.lines())
    return told


@pytest.mark.parametrize("suffix", [".obj", ".ply", ".stl", ".off", ".glb", ".npz"])
def test_a_mesh_file_of_every_format(tmp_path, suffix):
    path = tmp_path / f"ball{suffix}"
    pliant.write(path, sphere())
    inspection = inspect(path, deep=True)
    told = check_plain(inspection)
    assert told["bytes"] == path.stat().st_size
    assert told["mesh"]["faces"] == len(sphere().polygons)
    assert told["mesh"]["closed"] is True
    assert told["problems"] == []
    assert "mesh" in told["kinds"]
    assert inspection.lines()[0].startswith(str(path))
    assert inspection.lines()[-1] == "No problems found."


def test_problems_are_listed_in_the_text(tmp_path):
    path = tmp_path / "torn.obj"
    pliant.write(path, Mesh(sphere().points, sphere().triangles[5:]))
    inspection = inspect(path)
    lines = inspection.lines()
    assert inspection.problems
    assert lines[lines.index("problems") + 1] == f"  - {inspection.problems[0]}"


def test_points_without_faces(tmp_path):
    obj = tmp_path / "dots.obj"
    obj.write_text("v 0 0 0\nv 1 2 3\nv 1 2 3\n")
    ply = tmp_path / "dots.ply"
    pliant.write(ply, PointCloud([[0, 0, 0], [1, 2, 3], [1, 2, 3]]))
    for path in (obj, ply):
        told = check_plain(inspect(path))
        assert told["kinds"] == ["points"]
        assert told["points"]["points"] == 3
        assert told["points"]["distinct points"] == 2


def test_a_folder_of_frames_and_the_same_in_an_archive(tmp_path):
    mesh = box()
    clip = Animation(mesh, [mesh.points + 0.1 * k for k in range(4)])
    files = pliant.write(tmp_path / "clip" / "walk.obj", clip)
    with zipfile.ZipFile(tmp_path / "clip.zip", "w") as archive:
        for file in files:
            archive.write(file, file.name)
    for path in (tmp_path / "clip", tmp_path / "clip.zip"):
        told = check_plain(inspect(path))
        assert told["animation"]["frames"] == 4
        assert told["mesh"]["vertices"] == 8
        assert len(told["files"]) == 4


def test_a_folder_of_different_meshes(tmp_path):
    pliant.write(tmp_path / "a.obj", sphere())
    pliant.write(tmp_path / "b.ply", Mesh(box().points, box().triangles[:, ::-1]))
    (tmp_path / "c.obj").write_text("v 0 0 0\nf 1 2 3\n")
    told = check_plain(inspect(tmp_path))
    assert told["each"]["a.obj"] == "Wavefront OBJ, holds mesh"
    assert told["each"]["c.obj"] == "cannot be read"
    assert len(told["files"]) == 3
    assert any(text.startswith("b.ply: It is inside out") for text in told["problems"])
    assert any("c.obj" in text and "line 2" in text for text in told["problems"])


def test_clips_shapes_and_tetrahedra_in_one_file_each(tmp_path):
    mesh = box()
    pliant.write(tmp_path / "clip.npz", Animation(mesh, [mesh.points, 1.1 * mesh.points], fps=25.0))
    pliant.write(tmp_path / "rig.glb", Shapes(mesh, np.stack([mesh.points, 2 * mesh.points]), ("rest", "big")))
    tets = TetMesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0.1, 0.1, 0.1]], [[4, 1, 2, 3], [0, 1, 2, 4]])
    pliant.write(tmp_path / "solid.mesh", tets)
    names = tuple(f"pose {k}" for k in range(12))
    pliant.write(tmp_path / "many.glb", Shapes(mesh, np.stack([(1 + k / 10) * mesh.points for k in range(12)]), names))
    assert names[-1] in " ".join(inspect(tmp_path / "many.glb").lines()), "all that --shapes takes is listed"
    assert check_plain(inspect(tmp_path / "clip.npz"))["animation"]["fps"] == 25
    assert check_plain(inspect(tmp_path / "rig.glb"))["shapes"]["shapes"] == 2
    assert check_plain(inspect(tmp_path / "solid.mesh"))["tets"]["tetrahedra"] == 2


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("nan.obj", "v 0 0 nan\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "line 1"),
        ("short.obj", "v 0 0 0\nf 1 2 3\n", "line 2"),
        ("empty.obj", "", "empty.obj"),
        ("what.zyx", "1 2 3", "unknown format"),
    ],
)
def test_a_broken_file_is_refused_in_one_line(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(FileError, match=message) as refused:
        inspect(tmp_path / name)
    assert "\n" not in str(refused.value)


def test_an_empty_folder_and_a_missing_file(tmp_path):
    with pytest.raises(FileError, match="nothing readable"):
        inspect(tmp_path)
    with pytest.raises(FileError, match="no such file"):
        inspect(tmp_path / "gone.obj")


@pytest.mark.data
@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("cages/clothing/clothing.obj", {"nonmanifold_edges": 1, "parts": 12, "closed": False, "vertices": 5021}),
        ("poses/horse/horse-ref.obj", {"boundary_edges": 19, "closed": False, "parts": 1}),
        ("models/fox/Fox.glb", {"seam_vertices": 1728 - 290, "closed": True, "watertight": False}),
        ("faces/makehuman/base.obj", {"parts": 154, "quads": 18486}),
        ("poses/cat/cat-ref.obj", {"watertight": True, "nonmanifold_vertices": 0, "inside_out": False}),
        ("models/hand/hand.mesh", {"watertight": True, "unused_vertices": 0, "faces": 9556}),
        ("cages/ogre/Ogre_Cage.obj", {"vertices": 118, "faces": 129, "closed": True}),
        ("faces/spacetime/neutral.ply", {"boundary_edges": 199, "closed": False}),
    ],
)
def test_real_meshes(data, file, expected):
    told = check_plain(inspect(data / file))["mesh"]
    assert {name: told[name] for name in expected} == expected


@pytest.mark.data
def test_real_motion_and_targets(data):
    told = check_plain(inspect(data / "mocap/cmu/09_01.bvh"))
    assert (told["motion"]["joints"], told["motion"]["frames"]) == (31, 149)
    target = next((data / "faces/makehuman/units-caucasian").glob("*.target"))
    assert check_plain(inspect(target))["shapes"]["moved vertices"] > 0
