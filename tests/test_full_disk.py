"""A disk that fills up at any byte: every writer reports it, and the old files stay as they were."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

import pliant
from pliant import render
from pliant.app.report import page
from pliant.app.scene.writing import write_scene
from pliant.core.clips import Animation, Shapes
from pliant.core.errors import FileError
from pliant.core.shapes import Appearance, Image, Labels, Layer, Mesh, PointCloud, TetMesh
from pliant.core.skeleton import Skeleton
from pliant.io import FORMATS
from pliant.io.output import settle

resource = pytest.importorskip("resource")
pytestmark = pytest.mark.filterwarnings("ignore::pliant.core.errors.PliantWarning")


def noise(seed: float) -> Pillow.Image:
    """A picture that no format makes small."""
    return Pillow.fromarray(np.random.default_rng(int(seed)).integers(0, 255, (40, 40, 3), dtype=np.uint8))


def textured(scale: float) -> Mesh:
    """A grid with a picture."""
    n = 9
    points = np.random.default_rng(1).normal(size=(n * n, 3)) * scale
    grid = np.arange(n * n).reshape(n, n)
    faces = np.stack([grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:]], -1).reshape(-1, 4)
    stored = io.BytesIO()
    noise(scale).save(stored, "PNG")
    return Mesh(
        points,
        faces.tolist(),
        uvs=Layer(points[:, :2], faces.ravel()),
        labels={"material": Labels(("skin",), np.zeros(len(faces), np.int64))},
        appearances={"skin": Appearance((1.0, 1.0, 1.0, 1.0), Image("skin.png", stored.getvalue(), "image/png"))},
    )


def moving(scale: float) -> Animation:
    mesh = textured(scale)
    return Animation(mesh, mesh.points + np.arange(3)[:, None, None] * scale)


def skeleton(scale: float) -> Skeleton:
    offsets = np.random.default_rng(2).normal(size=(40, 3)) * scale
    return Skeleton(tuple(f"joint {k}" for k in range(40)), np.arange(40) - 1, offsets)


CONTENTS: dict[str, Callable[[float], pliant.io.Content]] = {
    "mesh": textured,
    "tets": lambda scale: TetMesh(textured(scale).points[:80], np.arange(80).reshape(-1, 4)),
    "points": lambda scale: PointCloud(textured(scale).points),
    "shapes": lambda scale: Shapes(textured(scale), moving(scale).points[:2], ("base", "up")),
    "animation": moving,
    "skeleton": skeleton,
}
WRITERS: dict[str, Callable[[Path, float], object]] = {
    f"{kind}{suffix}": lambda path, scale, kind=kind: pliant.write(path, CONTENTS[kind](scale))
    for format in FORMATS
    for suffix in format.suffixes
    for kind in format.writes
    if kind in CONTENTS
}
WRITERS |= {
    f"picture{suffix}": lambda path, scale: render.save(noise(scale), path)
    for suffix in (".png", ".jpg", ".webp", ".gif", ".bmp", ".tif")
}
WRITERS |= {
    "sequence.obj": lambda path, scale: pliant.write(path, moving(scale)),
    "film.gif": lambda path, scale: render.movie(moving(scale), path, size=(64, 64)),
    "film.mp4": lambda path, scale: render.movie(moving(scale), path, size=(64, 64)),
    "page.html": lambda path, scale: page.write(path, f"<p>{scale:.500f}</p>"),
    "scene.toml": lambda path, scale: write_scene(path, {"numbers": [scale * k for k in range(500)]}),
}


def needs(name: str) -> None:
    """Skip a format whose library is not installed."""
    if ".usd" in name:
        pytest.importorskip("pxr")
    if name.endswith(".mp4"):
        pytest.importorskip("imageio_ffmpeg")


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() if p.is_file() else b"" for p in folder.rglob("*")}


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file may grow beyond `size`: what a full disk looks like to a writer, without a disk to fill."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_is_an_error_and_the_old_files_stay(tmp_path: Path, name: str) -> None:
    needs(name)
    target = tmp_path / f"a{Path(name).suffix}"
    WRITERS[name](target, 2.0)
    size = max(map(len, files(tmp_path).values()))
    WRITERS[name](target, 1.0)
    old = files(tmp_path)
    for limit in (0, 1, size // 4, size // 2, size - 100, size - 1):
        with (
            largest_file(limit),
            pytest.raises(FileError, match=rf"^{tmp_path}/a[\w.]*: .*\(.*(?i:file too large|stop)"),
        ):
            WRITERS[name](target, 2.0)
        assert files(tmp_path) == old
    WRITERS[name](target, 2.0)
    assert files(tmp_path) != old


@pytest.mark.parametrize("name", ["mesh.npz", "mesh.glb", "mesh.usda", "mesh.usdc", "mesh.usd", "mesh.usdz"])
def test_a_file_that_was_cut_off_is_noticed(tmp_path: Path, name: str) -> None:
    """Whoever wrote it, and whether or not they noticed."""
    needs(name)
    path = tmp_path / name
    WRITERS[name](path, 1.0)
    settle(path)
    whole = path.read_bytes()
    for size in (0, 1, 30, len(whole) // 2, len(whole) - 40, len(whole) - 3):
        path.write_bytes(whole[:size])
        with pytest.raises(FileError, match="was not written to its end"):
            settle(path)
    if name in ("mesh.npz", "mesh.usdz"):
        path.write_bytes(whole[:600] + bytes(64) + whole[664:])
        with pytest.raises(FileError, match="was not written to its end"):
            settle(path)


def test_errors_of_the_disk_on_flushing_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    def without(_: int) -> None:
        raise OSError(22, "Invalid argument")

    (tmp_path / "a.off").write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match=r"a\.off: cannot be written \(no space left on device\)"):
        pliant.write(tmp_path / "a.off", textured(1))
    assert files(tmp_path) == {"a.off": b"old"}
    monkeypatch.setattr(os, "fsync", without)  # some network disks
    pliant.write(tmp_path / "a.off", textured(1))
    assert len(pliant.read_mesh(tmp_path / "a.off").points) == 81


WRITE_ALL = """
import sys, warnings
sys.path.insert(0, sys.argv[1])
from pathlib import Path
warnings.simplefilter("ignore")
from test_full_disk import WRITERS, needs
import pytest
for name, write in WRITERS.items():
    try:
        needs(name)
    except pytest.skip.Exception:
        continue
    write(Path(sys.argv[2], name), 1.0)
"""


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    """In another process, with other hashes, at another time, in another folder."""
    for seed in "1", "2":
        (tmp_path / seed).mkdir()
        command = [sys.executable, "-c", WRITE_ALL, str(Path(__file__).parent), str(tmp_path / seed)]
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, check=True)
    first, second = files(tmp_path / "1"), files(tmp_path / "2")
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []
    for name in ("mesh.npz", "mesh.usdz"):
        if name in first:
            times = {entry.date_time for entry in zipfile.ZipFile(io.BytesIO(first[name])).infolist()}
            assert times == {(1980, 1, 1, 0, 0, 0)}
