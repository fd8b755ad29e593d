"""Where files come from and go to: sequences, archives, rigs, and writes that never leave a half file."""

import itertools
import os
import tarfile
import zipfile
from dataclasses import replace

import numpy as np
import pytest

import pliant
from pliant import Animation, FileError, InputError, Mesh, PointCloud, Shapes
from pliant.io.source import Source, natural_key

TRIANGLE = Mesh(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0.0]]), [[0, 1, 2]])
FORMS = ["folder", "glob", "everything", "list", "inside zip", "everything inside tar"]
CLIP = Animation(TRIANGLE, TRIANGLE.points + np.arange(12)[:, None, None], fps=24)


@pytest.fixture
def frames(tmp_path):
    """Twelve OBJ frames whose names need natural order."""
    folder = tmp_path / "walk"
    folder.mkdir()
    for k in range(12):
        pliant.write(folder / f"f{k}.obj", TRIANGLE.with_points(CLIP.points[k]))
    (folder / "notes.txt").write_text("not a frame")
    (folder / ".hidden.obj").write_text("not a frame")
    return folder


def archive(folder, path):
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as z:
            for file in folder.iterdir():
                z.write(file, f"inner/{file.name}")
    else:
        with tarfile.open(path, f"w:{path.suffix[1:]}" if path.suffix != ".tar" else "w") as t:
            t.add(folder, "inner")
    return path


def test_natural_order():
    assert sorted(["f10", "f9", "F1", "f1b", "a"], key=natural_key) == ["a", "F1", "f1b", "f9", "f10"]
    assert sorted(["1²2", "1²10", "1²1"], key=natural_key) == ["1²1", "1²2", "1²10"]
    assert sorted(["f" + "9" * 5000, "f2"], key=natural_key)[0] == "f2"


def test_names_that_count_alike_keep_one_order():
    alike = ["F01", "F1", "f01", "f1"]
    for names in itertools.permutations(alike):
        assert sorted(names, key=natural_key) == alike


@pytest.mark.parametrize("form", [*FORMS, "zip", "tar", "tar.gz", "tar.xz"])
def test_a_sequence_reads_in_natural_order_from_anywhere(tmp_path, frames, form):
    path = {
        "folder": lambda: frames,
        "glob": lambda: str(frames / "f*.obj"),
        "list": lambda: [frames / f"f{k}.obj" for k in range(12)],
        "everything": lambda: str(frames / "*"),
        "inside zip": lambda: archive(frames, tmp_path / "w.zip") / "inner" / "*.obj",
        "everything inside tar": lambda: archive(frames, tmp_path / "w.tar") / "inner" / "*",
    }.get(form, lambda: archive(frames, tmp_path / f"w.{form}"))()
    clip = pliant.read_animation(path, fps=24)
    assert np.array_equal(clip.points, CLIP.points)
    assert clip.fps == 24


def test_one_member_of_an_archive_with_its_material(tmp_path, decorated):
    pliant.write(tmp_path / "a" / "house.obj", replace(decorated, vertex_groups={}))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as z:
        for file in (tmp_path / "a").rglob("*"):
            z.write(file, f"models/{file.relative_to(tmp_path / 'a').as_posix()}")
    mesh = pliant.read_mesh(tmp_path / "a.zip")
    assert mesh.appearances["brick"].texture.data == decorated.appearances["brick"].texture.data


@pytest.mark.parametrize("suffix", [".obj", ".ply", ".off", ".stl"])
def test_an_animation_in_a_mesh_format_becomes_a_numbered_sequence(tmp_path, suffix):
    written = pliant.write(tmp_path / f"walk{suffix}", CLIP)
    assert [p.name for p in written][:2] == [f"walk_0001{suffix}", f"walk_0002{suffix}"]
    back = pliant.read_animation(str(tmp_path / f"walk_*{suffix}"))
    assert np.allclose(back.points, CLIP.points)


def test_a_name_without_suffix_is_a_folder_of_frames(tmp_path):
    pliant.write(tmp_path / "walk", CLIP)
    assert np.array_equal(pliant.read_animation(tmp_path / "walk").points, CLIP.points)


def test_shapes_from_files_put_the_neutral_one_first(tmp_path):
    for k, name in enumerate(["angry", "neutral_face", "smile"]):
        pliant.write(tmp_path / f"{name}.obj", TRIANGLE.with_points(TRIANGLE.points + k))
    shapes = pliant.read_shapes(tmp_path)
    assert shapes.names == ("neutral_face", "angry", "smile")
    assert pliant.read_shapes(tmp_path, base="smile").names == ("smile", "angry", "neutral_face")
    assert pliant.read_shapes(tmp_path, base=TRIANGLE).names[0] == "base"
    assert np.array_equal(shapes.named("smile").points, TRIANGLE.points + 2)


@pytest.mark.parametrize(
    ("names", "first"),
    [
        (["arrest", "forest", "rest"], "rest"),
        (["abase", "database2", "x-base-2"], "x-base-2"),
        (["forest", "prefer"], "forest"),
        (["a", "faceNeutral"], "faceNeutral"),
        (["a_rest", "z_NEUTRAL"], "z_NEUTRAL"),
        (["a", "reference01"], "reference01"),
        (["a", "default"], "default"),
    ],
)
def test_the_base_is_found_by_whole_words(tmp_path, names, first):
    for name in names:
        pliant.write(tmp_path / f"{name}.obj", TRIANGLE)
    assert pliant.read_shapes(tmp_path).names[0] == first


def test_a_shape_of_a_rig_may_be_its_base(tmp_path):
    points = TRIANGLE.points + np.arange(3)[:, None, None]
    pliant.write(tmp_path / "face.npz", Shapes(TRIANGLE, points, ("neutral", "smile", "frown")))
    shapes = pliant.read_shapes(tmp_path / "face.npz", base="smile")
    assert shapes.names == ("smile", "neutral", "frown")
    assert np.array_equal(shapes.points, points[[1, 0, 2]])
    assert np.array_equal(shapes.base.points, points[1])
    with pytest.raises(FileError, match=r'face\.npz: has no shape "grin" .*; it has neutral, smile, frown'):
        pliant.read_shapes(tmp_path / "face.npz", base="grin")
    pliant.write(tmp_path / "other.obj", TRIANGLE)
    assert pliant.read_shapes(tmp_path / "face.npz", base=tmp_path / "other.obj").names == ("base", "face")
    pliant.write(tmp_path / "more.obj", TRIANGLE)
    with pytest.raises(FileError, match="grin: is neither a file nor one of the shapes more, other"):
        pliant.read_shapes(tmp_path / "*.obj", base="grin")


def test_shapes_of_another_topology_are_named(tmp_path):
    pliant.write(tmp_path / "a.obj", TRIANGLE)
    pliant.write(tmp_path / "b.obj", Mesh(TRIANGLE.points, [[0, 2, 1]]))
    with pytest.raises(FileError, match=r"b\.obj: does not match a\.obj: face 0 joins vertices \[0, 2, 1\]"):
        pliant.read_shapes(tmp_path)


def test_sparse_targets_move_their_base(tmp_path):
    (tmp_path / "units").mkdir()
    (tmp_path / "units" / "up.target").write_text("# offsets\n1 0 0.5 0\n")
    shapes = pliant.read_shapes(tmp_path / "units", base=TRIANGLE)
    assert shapes.names == ("base", "up")
    assert (shapes.points[1] - shapes.points[0]).tolist() == [[0, 0, 0], [0, 0.5, 0], [0, 0, 0]]
    (tmp_path / "units" / "up.target").write_text("9 0 0.5 0\n")
    with pytest.raises(FileError, match="line 1: an offset refers to vertex 9"):
        pliant.read_shapes(tmp_path / "units", base=TRIANGLE)
    (tmp_path / "units" / "up.target").write_text("# offsets\n1 0 0 0\n2 0 nan 0\n")
    with pytest.raises(FileError, match=r"up\.target, line 3: offset 1 is \[0.0, nan, 0.0\]"):
        pliant.read_shapes(tmp_path / "units", base=TRIANGLE)


def test_a_point_cache_moves_the_mesh_it_is_given(tmp_path):
    pliant.write(tmp_path / "c.pc2", CLIP)
    assert isinstance(pliant.read_animation(tmp_path / "c.pc2").shape, PointCloud)
    moved = pliant.read_animation(tmp_path / "c.pc2", mesh=TRIANGLE)
    assert moved.shape is TRIANGLE
    with pytest.raises(FileError, match="moves 3 points; the mesh has 4"):
        pliant.read_animation(tmp_path / "c.pc2", mesh=Mesh(np.zeros((4, 3)), [[0, 1, 2]]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: p / "none.obj", "there is no such file"),
        (lambda p: p, "holds no file with a mesh"),
        (lambda p: p / "*.obj", "no file matches"),
        (lambda p: (p / "a.zyx").touch() or p / "a.zyx", 'unknown format ".zyx"; expected one of'),
        (lambda p: (p / "a.bvh").touch() or p / "a.bvh", "a BVH file cannot hold a mesh"),
        (lambda p: (p / "a.zip").touch() or p / "a.zip", "is not a whole archive"),
        (lambda p: (p / "a.tar").touch() or p / "a.tar", "is not a whole archive|is empty"),
        (lambda p: (p / "a.tar.xz").write_bytes(b"\xfd7zXZ\0") and p / "a.tar.xz", "is not a whole archive"),
    ],
)
def test_what_cannot_be_found_is_said(tmp_path, make, message):
    with pytest.raises(FileError, match=message):
        pliant.read_mesh(make(tmp_path))


def test_a_file_that_may_not_be_read_is_said(tmp_path):
    path = tmp_path / "a.obj"
    path.write_text("v 0 0 0\n")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(FileError, match="permission denied"):
        pliant.read_mesh(path)


def test_a_cut_off_archive_is_said(tmp_path, frames):
    whole = archive(frames, tmp_path / "w.tar.gz").read_bytes()
    (tmp_path / "cut.tar.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError, match=r"cut\.tar\.gz"):
        pliant.read_animation(tmp_path / "cut.tar.gz")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: pliant.read_mesh(None), "path is None; expected the name of a file"),
        (lambda p: pliant.read_mesh(3), "path is 3"),
        (lambda p: pliant.read_mesh(b"a.obj"), "path is b'a.obj'"),
        (lambda p: pliant.read_animation([p / "a.obj", None]), "path is None"),
        (lambda p: pliant.write(None, TRIANGLE), "path is None; expected the name of a file to write"),
        (lambda p: pliant.read(p / "a.obj", "car"), "kind is 'car'; expected one of mesh, tets"),
        (lambda p: pliant.read_shapes(p / "a.obj", base=3), "base is 3; expected a Mesh"),
        (lambda p: pliant.read_animation(p / "a.obj", mesh=3), "mesh is 3; expected a Mesh"),
        (lambda p: pliant.read_animation(p / "a.obj", fps=0), "fps is 0; expected a positive number"),
        (lambda p: pliant.read_animation(p / "a.obj", fps="24"), "fps is '24'; expected a positive number"),
        (lambda p: pliant.read_animation(p / "a.obj", fps=float("nan")), "fps is nan"),
        (lambda p: pliant.read_animation(p / "a.obj", clip="walk"), "clip='walk' needs a file with clips"),
        (lambda p: pliant.read_animation([p / "a.obj"] * 2, clip=0), "holds 2 files, a frame each; clip=0 needs"),
    ],
)
def test_what_cannot_be_meant_is_said(tmp_path, call, message):
    pliant.write(tmp_path / "a.obj", TRIANGLE)
    with pytest.raises(InputError, match=message) as caught:
        call(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("name", ["f.obj", "f.zip", "f.glb"])
def test_a_pipe_is_refused_instead_of_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(FileError, match="is a pipe or a device; expected a file"):
        pliant.read(tmp_path / name)
    with pytest.raises(FileError, match="is a pipe or a device"):
        Source(tmp_path / name).read()
    with pytest.raises(FileError, match=r"is a pipe or a device|archives are read"):
        pliant.write(tmp_path / name, TRIANGLE)


def test_an_unwritable_content_or_place_is_said(tmp_path):
    with pytest.raises(InputError, match="cannot write a dict"):
        pliant.write(tmp_path / "a.obj", {})
    (tmp_path / "b.obj").mkdir()
    with pytest.raises(FileError, match="is a folder"):
        pliant.write(tmp_path / "b.obj", TRIANGLE)
    with pytest.raises(FileError, match="a PC2 point cache file cannot hold a mesh"):
        pliant.write(tmp_path / "a.pc2", TRIANGLE)
    with pytest.raises(FileError, match="archives are read, not written"):
        pliant.write(tmp_path / "a.zip", TRIANGLE)
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="cannot be written"):
        pliant.write(tmp_path / "file" / "a.obj", TRIANGLE)


@pytest.mark.parametrize("suffix", [".obj", ".npz", ".glb", ".usda", ".usdc"])
def test_an_artist_gets_the_mesh_back_moved(tmp_path, decorated, suffix):
    if suffix.startswith(".usd"):
        pytest.importorskip("pxr", reason="USD is an extra")
    moved = decorated.with_points(decorated.points * [1, 2, 1] + [0, 0, 1])
    if suffix == ".obj":  # OBJ has no vertex groups
        moved = replace(moved, vertex_groups={})
    pliant.write(tmp_path / f"house{suffix}", moved)
    back = pliant.read_mesh(tmp_path / f"house{suffix}")
    assert np.allclose(back.points, moved.points, atol=1e-6)
    assert [list(p) for p in back.polygons] == [list(p) for p in decorated.polygons]
    assert np.allclose(back.uvs.at_corners, decorated.uvs.at_corners, atol=1e-6)
    assert np.allclose(back.normals.at_corners, moved.normals.at_corners, atol=1e-6)
    for key in ("object", "material"):
        label, own = back.labels[key], decorated.labels[key]
        assert [label.names[k] for k in label.index] == [own.names[k] for k in own.index]
    assert back.appearances["brick"].texture.data == decorated.appearances["brick"].texture.data
    for name, weights in moved.vertex_groups.items():
        assert np.allclose(back.vertex_groups[name], weights, atol=1e-6)


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["f1", "f2", "f10"], Animation),
        (["0001", "0002"], Animation),
        (["12_walk", "13_walk"], Animation),
        (["smile", "frown"], Shapes),
        (["cat-01", "cat-ref"], Shapes),
        (["walk", "walk2"], Shapes),
    ],
)
def test_numbered_files_are_frames_and_named_ones_shapes(tmp_path, names, kind):
    for name in names:
        pliant.write(tmp_path / f"{name}.obj", TRIANGLE)
    assert isinstance(pliant.read(tmp_path), kind)


def test_an_obj_without_faces_is_read_as_points(tmp_path):
    (tmp_path / "dots.obj").write_text("v 0 0 0\nv 1 0 0\n")
    assert isinstance(pliant.read(tmp_path / "dots.obj"), PointCloud)


def test_an_error_has_its_location_under_the_former_name_too() -> None:
    error = FileError("a.obj", "is cut off", place="line 3")
    assert (error.location, error.place, str(error)) == ("line 3", "line 3", "a.obj, line 3: is cut off")
