"""PC2 and MDD caches: laid out as other programs expect, single precision, and no header believed."""

from __future__ import annotations

import random
import struct
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import pliant.io as pio
from pliant.core.clips import Animation
from pliant.core.errors import FileError, InputError, PliantWarning
from pliant.core.shapes import Mesh, PointCloud

SUFFIXES = ("pc2", "mdd")


def clip(frames: int = 5, fps: float = 24.0) -> Animation:
    mesh = Mesh(np.random.default_rng(1).normal(size=(4, 3)), [[0, 1, 2, 3]])
    return Animation(mesh, np.random.default_rng(2).normal(size=(frames, 4, 3)), fps, "walk")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_round_trip_in_single_precision(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"walk.{suffix}"
    pio.write(path, clip())
    back = pio.read_animation(path)
    assert isinstance(back.shape, PointCloud)
    assert back.name == "walk"
    np.testing.assert_array_equal(back.points, clip().points.astype(np.float32))
    pio.write(tmp_path / f"again.{suffix}", back)
    assert (tmp_path / f"again.{suffix}").read_bytes()[32:] == path.read_bytes()[32:]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_mesh_can_be_put_in(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"walk.{suffix}"
    pio.write(path, clip())
    mesh = clip().shape
    assert isinstance(mesh, Mesh)
    assert pio.read_animation(path, mesh=mesh).shape is mesh
    with pytest.raises(FileError, match="moves 4 points; the mesh has 3"):
        pio.read_animation(path, mesh=Mesh(np.eye(3), [[0, 1, 2]]))


def test_pc2_is_laid_out_as_others_write_it(tmp_path: Path) -> None:
    pio.write(tmp_path / "x.pc2", clip(2))
    data = (tmp_path / "x.pc2").read_bytes()
    assert struct.unpack_from("<12siiffi", data) == (b"POINTCACHE2\0", 1, 4, 0.0, 1.0, 2)
    assert struct.unpack_from("<3f", data, 32) == tuple(clip(2).points[0, 0].astype(np.float32))
    assert len(data) == 32 + 2 * 4 * 12


def test_mdd_is_laid_out_as_others_write_it(tmp_path: Path) -> None:
    pio.write(tmp_path / "x.mdd", clip(2, fps=25.0))
    data = (tmp_path / "x.mdd").read_bytes()
    assert struct.unpack_from(">iiff", data) == (2, 4, 0.0, np.float32(0.04))
    assert struct.unpack_from(">3f", data, 16) == tuple(clip(2).points[0, 0].astype(np.float32))
    assert len(data) == 8 + 2 * 4 + 2 * 4 * 12


@pytest.mark.parametrize(("rate", "fps", "expected"), [(1.0, None, 30.0), (0.5, None, 60.0), (2.0, 24.0, 12.0)])
def test_pc2_sample_rate_is_in_frames(tmp_path: Path, rate: float, fps: float | None, expected: float) -> None:
    points = np.zeros((3, 2, 3), "<f4")
    header = struct.pack("<12siiffi", b"POINTCACHE2\0", 1, 2, 10.0, rate, 3)
    (tmp_path / "x.pc2").write_bytes(header + points.tobytes())
    assert pio.read_animation(tmp_path / "x.pc2", fps=fps).fps == expected


@pytest.mark.parametrize("fps", [24.0, 25.0, 12.5, 30000 / 1001, 120.0, 1.0])
def test_mdd_keeps_the_frame_rate(tmp_path: Path, fps: float) -> None:
    pio.write(tmp_path / "x.mdd", clip(200, fps))
    assert pio.read_animation(tmp_path / "x.mdd").fps == fps


def mdd(times: list[float], points: np.ndarray) -> bytes:
    frames, count, _ = points.shape
    return struct.pack(f">ii{frames}f", frames, count, *times) + points.astype(">f4").tobytes()


def ramp(values: list[float]) -> np.ndarray:
    return np.array(values)[:, None, None] * np.ones((1, 2, 3))


def test_mdd_at_another_rate(tmp_path: Path) -> None:
    (tmp_path / "x.mdd").write_bytes(mdd([0, 0.1, 0.2], ramp([0, 1, 2])))
    moving = pio.read_animation(tmp_path / "x.mdd", fps=20)
    np.testing.assert_allclose(moving.points[:, 0, 0], [0, 0.5, 1, 1.5, 2], atol=1e-6)


def test_mdd_with_uneven_times_moves_at_the_same_speed(tmp_path: Path) -> None:
    """Points that go as fast as time does, whenever the frames were taken."""
    times = [0.0, 0.25, 0.5, 1.0]
    (tmp_path / "x.mdd").write_bytes(mdd(times, ramp(times)))
    with pytest.warns(PliantWarning, match="uneven"):
        moving = pio.read_animation(tmp_path / "x.mdd")
    assert moving.fps == 4
    np.testing.assert_allclose(moving.points[:, 0, 0], np.arange(5) / 4, atol=1e-6)


def test_mdd_without_times(tmp_path: Path) -> None:
    (tmp_path / "x.mdd").write_bytes(mdd([0, 0, 0], ramp([0, 1, 2])))
    assert pio.read_animation(tmp_path / "x.mdd").fps == 30
    assert pio.read_animation(tmp_path / "x.mdd", fps=12).fps == 12
    (tmp_path / "x.mdd").write_bytes(mdd([2, 1, 0], ramp([0, 1, 2])))
    with pytest.warns(PliantWarning, match="do not rise"):
        assert len(pio.read_animation(tmp_path / "x.mdd")) == 3


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_bytes_after_the_end_are_said_to_be_ignored(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"walk.{suffix}"
    pio.write(path, clip())
    path.write_bytes(path.read_bytes() + b"tail")
    with pytest.warns(PliantWarning, match="4 bytes after"):
        assert len(pio.read_animation(path)) == 5


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_cannot_be_written_or_asked(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"walk.{suffix}"
    huge = Animation(PointCloud(np.zeros((1, 3))), np.full((1, 1, 3), 1e300))
    with pytest.raises(InputError, match="single precision"):
        pio.write(path, huge)
    assert not path.exists()
    pio.write(path, clip())
    assert len(pio.read_animation(path, clip=0)) == len(pio.read_animation(path, clip="walk"))
    with pytest.raises(FileError, match='one, "walk"'):
        pio.read_animation(path, clip="run")
    with pytest.raises(InputError, match="fps is -1"):
        pio.read_animation(path, fps=-1)


def pc2(points: int, samples: int, *, version: int = 1, rate: float = 1.0, magic: bytes = b"POINTCACHE2\0") -> bytes:
    return struct.pack("<12siiffi", magic, version, points, 0.0, rate, samples)


NOT_A_NUMBER = np.full((1, 1, 3), np.nan).astype("<f4").tobytes()

BROKEN = {
    "empty.pc2": b"",
    "short.pc2": pc2(1, 1)[:20],
    "magic.pc2": pc2(1, 1, magic=b"POINTCACHE9\0") + bytes(12),
    "version.pc2": pc2(1, 1, version=7) + bytes(12),
    "rate.pc2": pc2(1, 1, rate=0.0) + bytes(12),
    "rate nan.pc2": pc2(1, 1, rate=float("nan")) + bytes(12),
    "huge.pc2": pc2(2**31 - 1, 2**31 - 1) + bytes(12),
    "negative.pc2": pc2(-1, -1) + bytes(12),
    "no points.pc2": pc2(0, 5),
    "no frames.pc2": pc2(5, 0),
    "nan.pc2": pc2(1, 1) + NOT_A_NUMBER,
    "empty.mdd": b"",
    "short.mdd": b"\0\0\0",
    "huge.mdd": struct.pack(">ii", 2**31 - 1, 2**31 - 1),
    "negative.mdd": struct.pack(">ii", -5, -5) + bytes(300),
    "no points.mdd": mdd([0.0], np.zeros((1, 0, 3))),
    "nan.mdd": mdd([0.0], np.full((1, 1, 3), np.inf)),
    "time nan.mdd": mdd([float("nan")], np.zeros((1, 1, 3))),
    "wild times.mdd": mdd([0.0, 1e-30, 1e30], np.zeros((3, 1, 3))),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_caches_give_one_line_at_once(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(BROKEN[name])
    tracemalloc.start()
    start = time.process_time()
    with pytest.raises(FileError) as caught:
        pio.read_animation(path)
    assert time.process_time() - start < 1
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore::pliant.core.errors.PliantWarning")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_truncated_and_flipped_caches(tmp_path: Path, suffix: str) -> None:
    """A cut is always noticed; a flipped byte gives a result or a `FileError`, never anything else."""
    path = tmp_path / f"walk.{suffix}"
    pio.write(path, clip())
    data = path.read_bytes()
    for k in range(16):
        path.write_bytes(data[: len(data) * k // 16])
        with pytest.raises(FileError):
            pio.read_animation(path)
    rng = random.Random(7)
    read = 0
    for _ in range(400):
        flipped = bytearray(data)
        for _ in range(rng.choice([1, 1, 4])):
            flipped[rng.randrange(len(data) if rng.random() < 0.5 else 32)] = rng.randrange(256)
        path.write_bytes(flipped)
        try:
            read += len(pio.read_animation(path).points) > 0
        except FileError:
            continue
    assert read > 0
