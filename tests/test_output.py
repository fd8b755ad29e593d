"""Writes that change everything or nothing, whatever fails, and sequences that stay what was written."""

import errno
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest

import pliant
from conftest import hear_signals
from pliant import Animation, Appearance, FileError, Labels, Mesh, Shapes
from pliant.core.values import stack_frames
from pliant.io.output import staged
from sweeps import every

TRIANGLE = Mesh(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0.0]]), [[0, 1, 2]])
RED = Mesh(
    TRIANGLE.points,
    [[0, 1, 2]],
    labels={"material": Labels(("red",), np.zeros(1, int))},
    appearances={"red": Appearance((1.0, 0.0, 0.0, 1.0))},
)


def clip(frames, shape=TRIANGLE):
    return Animation(shape, shape.points + np.arange(frames)[:, None, None], fps=24)


def contents(folder):
    """Every file and folder below, with what is in it."""
    return {p.relative_to(folder).as_posix(): p.is_file() and p.read_bytes() for p in folder.rglob("*")}


@pytest.mark.parametrize("suffix", [".obj", ".ply", ".stl", ".off", ".mesh", ".npz", ".glb", ".gltf"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, suffix):
    target = tmp_path / f"a{suffix}"
    pliant.write(target, TRIANGLE)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(FileError, match="no space left on device"):
        pliant.write(target, TRIANGLE.scaled(2))
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_an_interrupted_sequence_leaves_no_frame(tmp_path, monkeypatch):
    from pliant.io import obj

    written = []

    def interrupted(path, mesh, write=obj.write_mesh):
        if len(written) == 5:
            raise KeyboardInterrupt
        written.append(path)
        write(path, mesh)

    monkeypatch.setattr(obj, "write_mesh", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pliant.write(tmp_path / "walk.obj", clip(12))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, *(pytest.param(n, marks=pytest.mark.slow) for n in (signal.SIGINT, signal.SIGHUP))],
    ids=lambda number: number.name,
)
def test_a_signal_leaves_the_old_files_and_nothing_else(tmp_path, number):
    target = tmp_path / "out" / "walk.obj"
    pliant.write(tmp_path / "clip.npz", clip(20_000))
    pliant.write(target, clip(2))
    before = contents(tmp_path)
    command = [sys.executable, "-m", "pliant", "convert", str(tmp_path / "clip.npz"), str(target), "--as", "animation"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hear_signals
    )
    while not list(target.parent.glob(".*/*/walk_00100.obj")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert said == "pliant: interrupted; nothing was left half-written\n"
    assert contents(tmp_path) == before


def failing(monkeypatch, module, name, at):
    """Let call number `at` of a function fail, once; returns the list of its calls."""
    calls = []
    real = getattr(module, name)

    def maybe(*arguments, **options):
        calls.append(arguments)
        if len(calls) == at:
            raise OSError(5, "Input/output error")
        return real(*arguments, **options)

    monkeypatch.setattr(module, name, maybe)
    return calls


@pytest.mark.parametrize("links", [True, False], ids=["links", "copies"])
@pytest.mark.parametrize(("module", "name", "steps"), [(os, "replace", 6), (pathlib.Path, "unlink", 4)])
def test_a_sequence_changes_whole_or_not_at_all(tmp_path, monkeypatch, module, name, steps, links):
    """Three new frames with materials over five old ones: six renames, four removals."""
    pliant.write(tmp_path / "walk.obj", clip(5, RED.scaled(2)))
    before = contents(tmp_path)
    if not links:
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(95, "Operation not supported")))
    for at in range(1, steps + 1):
        with monkeypatch.context() as patch:
            failing(patch, module, name, at)
            with pytest.raises(FileError, match=r"walk_000\d\.(obj|mtl): cannot be written \(input/output error\)"):
                pliant.write(tmp_path / "walk.obj", clip(3, RED))
        assert contents(tmp_path) == before
    with monkeypatch.context() as patch:
        calls = failing(patch, module, name, 0)
        pliant.write(tmp_path / "walk.obj", clip(3, RED))
    assert len(calls) == steps
    assert sorted(contents(tmp_path)) == [f"walk_000{k}.{end}" for k in (1, 2, 3) for end in ("mtl", "obj")]


def test_old_content_that_cannot_be_put_back_is_kept_and_named(tmp_path, monkeypatch):
    pliant.write(tmp_path / "walk.off", clip(3))
    old = (tmp_path / "walk_0002.off").read_bytes()
    calls = []

    def broken(source, target, real=os.replace):
        calls.append(target)
        if len(calls) > 1:
            raise OSError(5, "Input/output error")
        real(source, target)

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(FileError, match=r"walk_0002\.off: could not be put back .*; its old content is in ") as caught:
        pliant.write(tmp_path / "walk.off", clip(3, TRIANGLE.scaled(2)))
    assert pathlib.Path(str(caught.value).rsplit(" is in ", 1)[1]).read_bytes() == old


@pytest.mark.parametrize("frame", [1, 2, 3])
def test_a_folder_in_the_way_is_named_before_anything_changes(tmp_path, frame):
    pliant.write(tmp_path / "walk.obj", clip(3))
    (tmp_path / f"walk_000{frame}.obj").unlink()
    (tmp_path / f"walk_000{frame}.obj").mkdir()
    before = contents(tmp_path)
    with pytest.raises(FileError, match=rf"walk_000{frame}\.obj: is a folder"):
        pliant.write(tmp_path / "walk.obj", clip(3, TRIANGLE.scaled(2)))
    assert contents(tmp_path) == before


def test_a_failed_write_leaves_no_new_folder(tmp_path):
    def fail():
        with staged(tmp_path / "a" / "b" / "c.obj") as place:
            place.write_text("x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert contents(tmp_path) == {}
    with staged(tmp_path / "a" / "b" / "c.obj") as place:
        (place.parent / "textures").mkdir()
        (place.parent / "textures" / "t.png").write_text("t")
        place.write_text("x")
    assert sorted(contents(tmp_path)) == ["a", "a/b", "a/b/c.obj", "a/b/textures", "a/b/textures/t.png"]


def test_a_link_is_written_through(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "links").mkdir()
    for name in ("real.obj", "new.obj"):  # the second leads nowhere yet
        (tmp_path / "links" / name).symlink_to(tmp_path / "real" / name)
    (tmp_path / "real" / "real.obj").write_text("old")
    for name in ("real.obj", "new.obj"):
        pliant.write(tmp_path / "links" / name, TRIANGLE)
        assert (tmp_path / "links" / name).is_symlink()
        assert (tmp_path / "real" / name).is_file()
        assert np.array_equal(pliant.read_mesh(tmp_path / "real" / name).points, TRIANGLE.points)


def test_a_link_to_another_disk_is_written_through(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "a.off").symlink_to(tmp_path / "real" / "a.off")

    def across(source, target, real=os.replace):
        if "real" in str(target) and str(tmp_path / "real") not in str(source):
            raise OSError(18, "Invalid cross-device link")
        real(source, target)

    monkeypatch.setattr(os, "replace", across)
    pliant.write(tmp_path / "a.off", TRIANGLE)
    assert list(contents(tmp_path / "real")) == ["a.off"]
    assert np.array_equal(pliant.read_mesh(tmp_path / "a.off").points, TRIANGLE.points)


@pytest.mark.parametrize("suffix", [".obj", ".ply", ".stl"])
def test_a_shorter_sequence_leaves_no_old_frame(tmp_path, suffix):
    pliant.write(tmp_path / f"walk{suffix}", clip(10))
    pliant.write(tmp_path / f"walk_on{suffix}", clip(1))
    (tmp_path / f"walk_12{suffix}").write_text("another naming")
    pliant.write(tmp_path / f"walk{suffix}", clip(3))
    assert len(pliant.read_animation(tmp_path / f"walk_00*{suffix}")) == 3
    assert sorted(contents(tmp_path)) == sorted(
        [f"walk_000{k}{suffix}" for k in (1, 2, 3)] + [f"walk_12{suffix}", f"walk_on_0001{suffix}"]
    )


def test_a_shorter_folder_of_frames_reads_back_alone(tmp_path):
    pliant.write(tmp_path / "walk", clip(10, RED))
    pliant.write(tmp_path / "walk", clip(3, RED))
    assert len(pliant.read_animation(tmp_path / "walk")) == 3
    assert len(pliant.read_animation(tmp_path / "walk" / "*")) == 3


def test_the_frames_of_others_are_never_removed(tmp_path):
    pliant.write(tmp_path / "walk.obj", clip(5))
    (tmp_path / "walk_0007.obj").write_text("v 0 0 0\n")
    before = contents(tmp_path)
    with pytest.raises(FileError, match=r"walk_0007\.obj: would be read as part of the 3 frames .* move it away"):
        pliant.write(tmp_path / "walk.obj", clip(3))
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("names", "files"),
    [
        (("rest", "up/left"), ["rest", "up_left"]),
        (("a/b", "a_b", "b", "b", "B"), ["a_b", "a_b_1", "b", "b_1", "B_2"]),
        (("", "", "."), ["shape", "shape_1", "shape_2"]),
        (("b", "b", "b_1"), ["b", "b_1", "b_1_1"]),
        (("..", "../../x", "c:\\d\n", "\ud800"), ["shape", "_.._x", "c__d_", "_"]),
        (("é" * 300, "a.b"), ["é" * 100, "a.b"]),
    ],
)
def test_shapes_write_one_file_each(tmp_path, names, files):
    points = TRIANGLE.points + np.arange(len(names))[:, None, None]
    for path, prefix in ((tmp_path / "x.obj", "x_"), (tmp_path / "x", "")):
        written = pliant.write(path, Shapes(TRIANGLE, points, names))
        assert sorted(p.name for p in written) == sorted(f"{prefix}{name}.obj" for name in files)
        for name, place in zip(files, points, strict=True):
            file = (path if path.suffix == "" else tmp_path) / f"{prefix}{name}.obj"
            assert np.array_equal(pliant.read_mesh(file).points, place)


# Long clips


@pytest.mark.parametrize("suffix", every(3, [".pc2", ".mdd", ".npz", ".glb", ".gltf", ".abc", ".stl"]))
def test_memory_does_not_grow_with_the_frames(tmp_path, monkeypatch, suffix):
    """What a writer needs beside the points; JSON and names take some kilobytes a frame, however large it is."""
    monkeypatch.setattr("pliant.io.gltf.build.LARGEST_IN_MEMORY", 1 << 16)
    shape = Mesh(pliant.gallery.sphere(4000).points, pliant.gallery.sphere(4000).polygons)
    extra, size = [], []
    pliant.write(tmp_path / f"a{suffix}", moving(shape, 2))  # imports
    for frames in (40, 90):
        made = moving(shape, frames)
        tracemalloc.start()
        pliant.write(tmp_path / f"a{suffix}", made)
        extra.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        size.append(made.points.nbytes)
    assert extra[1] - extra[0] < 0.1 * (size[1] - size[0]) + 10_000 * (90 - 40)


@pytest.mark.parametrize("suffix", every(3, [".pc2", ".mdd", ".npz", ".glb", ".gltf", ".abc", ".obj", ".ply"]))
def test_memory_of_readers_does_not_grow_with_the_frames(tmp_path, monkeypatch, suffix):
    """Beyond what is to be in memory, a clip is in a file without a name; it is the same clip."""
    shape = Mesh(pliant.gallery.sphere(2000).points, pliant.gallery.sphere(2000).polygons)
    paths = [tmp_path / str(frames) / f"a{suffix}" for frames in (18, 38)]
    for path, frames in zip(paths, (18, 38), strict=True):
        path.parent.mkdir()
        pliant.write(path, moving(shape, frames))
    paths = [path if path.exists() else path.parent for path in paths]
    whole = pliant.read_animation(paths[1])
    monkeypatch.setattr("pliant.core.values.CLIP_BYTES_IN_MEMORY", 1 << 16)
    peak = []
    for path in paths:
        tracemalloc.start()
        clip = pliant.read_animation(path)
        peak.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert np.array_equal(clip.points, whole.points)
    assert np.array_equal(pickle.loads(pickle.dumps(clip)).points, whole.points)
    assert peak[1] - peak[0] < 0.1 * 20 * shape.points.nbytes + 10_000 * 20


def test_a_clip_that_no_disk_holds_is_refused(monkeypatch):
    def full(**_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pliant.core.values.CLIP_BYTES_IN_MEMORY", 100)
    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(pliant.FileError, match=r"cannot hold a clip of .* bytes .no space left"):
        stack_frames(np.zeros((10, 3)) for _ in range(3))


def moving(shape, frames):
    return pliant.Animation(shape, shape.points * np.linspace(1, 2, frames)[:, None, None] ** 2, 24)


@pytest.mark.parametrize("suffix", [".pc2", ".npz", ".glb", ".obj"])
def test_frames_that_come_one_by_one_make_the_same_files(tmp_path, suffix):
    clip = moving(pliant.gallery.sphere(500), 5)
    for folder in ("whole", "stream"):
        (tmp_path / folder).mkdir()
    pliant.write(tmp_path / "whole" / f"a{suffix}", clip)
    written = pliant.write_stream(tmp_path / "stream" / f"a{suffix}", clip.shape, iter(clip.points), fps=24)
    assert contents(tmp_path / "whole") == contents(tmp_path / "stream")
    assert all(path.is_file() for path in written)


def test_a_stream_is_checked_and_leaves_nothing_when_it_fails(tmp_path):
    shape = pliant.gallery.sphere(500)
    for frames, problem in (
        ([], "got no frames"),
        ([shape.points, shape.points[1:]], r"frame 1 has shape \(.*; expected"),
        ([shape.points, shape.points * np.nan], "frame 1 has NaN"),
        ([["a"]], "frame 0 are"),
    ):
        with pytest.raises(pliant.InputError, match=problem):
            pliant.write_stream(tmp_path / "a.pc2", shape, frames)
        assert list(tmp_path.iterdir()) == []


def test_memory_of_a_stream_does_not_grow_with_the_frames(tmp_path, monkeypatch):
    monkeypatch.setattr("pliant.core.values.CLIP_BYTES_IN_MEMORY", 1 << 16)
    shape = pliant.gallery.sphere(1500)
    tracemalloc.start()
    pliant.write_stream(tmp_path / "a.pc2", shape, (shape.points * (1 + k) for k in range(200)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * shape.points.nbytes
