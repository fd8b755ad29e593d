"""The library of kernels: what calls check, that it is built when its sources change, threads and processes."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from pliant import native
from pliant.geometry.bvh import triangle_boxes
from pliant.geometry.spatial import SurfaceTree
from pliant.native import build, in_threads, kernels

CORNERS = np.array([[[0.0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 0, 1], [0, 2, 1], [3, 0, -1]]])
BOXES = np.array([[0.0, 0, 0, 1, 1, 0], [0, 0, -1, 3, 2, 1]])


def test_arrays_go_in_and_out() -> None:
    np.testing.assert_array_equal(triangle_boxes(CORNERS), BOXES)


def test_arrays_that_are_not_contiguous_are_copied_for_reading() -> None:
    every_other = np.repeat(CORNERS, 2, axis=0)[::2]
    assert not every_other.flags.c_contiguous
    np.testing.assert_array_equal(triangle_boxes(every_other), BOXES)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((CORNERS,), "got 1 arguments; expected 2"),
        ((CORNERS, np.zeros((2, 6)), 3), "got 3 arguments"),
        ((CORNERS.astype(np.float32), np.zeros((2, 6))), "got float32 .* expected float64 with 3 dimensions"),
        ((CORNERS[0], np.zeros((2, 6))), "with 2 dimensions"),
        ((CORNERS, np.zeros((2, 12))[:, ::2]), "contiguous and writeable"),
        ((CORNERS, np.broadcast_to(0.0, (2, 6))), "contiguous and writeable"),
    ],
)
def test_what_does_not_fit_the_signature_is_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        kernels.bvh_triangle_boxes(*arguments)


def test_an_unknown_kernel_is_refused() -> None:
    with pytest.raises(AttributeError, match="no_such_kernel"):
        _ = kernels.no_such_kernel


@pytest.mark.parametrize("count", [0, 1, 7, 100, 1001])
def test_spans_for_threads_cover_everything_once_and_in_order(count: int) -> None:
    spans = in_threads(lambda first, last: list(range(first, last)), count, 10)
    assert [k for span in spans for k in span] == list(range(count))
    assert all(len(span) >= 10 for span in spans) or len(spans) == 1


def test_threads_that_share_their_work_do_not_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "CORES", 4)

    def outer(first: int, last: int) -> int:
        return sum(in_threads(lambda a, b: b - a, 100, 1)) * (last - first)

    done: list[int] = []
    thread = threading.Thread(target=lambda: done.append(sum(in_threads(outer, 50, 1))), daemon=True)
    thread.start()
    thread.join(20)
    assert done == [5000]


def _winding(_: int) -> bytes:
    rng = np.random.default_rng(3)
    return SurfaceTree(rng.random((40, 3)), rng.integers(0, 40, (60, 3))).winding(rng.random((2000, 3))).tobytes()


def test_kernels_give_the_same_in_children_and_threads() -> None:
    expected = _winding(0)
    for start in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context(start).Pool(2) as pool:
            assert pool.map_async(_winding, range(4)).get(60) == [expected] * 4, start
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.extend(map(_winding, range(5)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 20


def test_a_wrong_index_ends_the_checked_library(tmp_path: Path) -> None:
    code = f"""
        import ctypes
        from pathlib import Path
        import numpy as np
        from pliant import native
        from pliant.native import build
        build.sources = lambda: [build.PACKAGE / "geometry" / "bvh.cpp"]
        library = Path({str(tmp_path / "checked.so")!r})
        build.build_library(library, checked=True)
        native.library = lambda: ctypes.CDLL(str(library))
        native.kernels.bvh_triangle_boxes(np.zeros((2, 3, 3)), np.zeros((2, 6)))
        print("right indices are fine", flush=True)
        native.kernels.bvh_triangle_boxes(np.zeros((3, 3, 3)), np.zeros((2, 6)))
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "right indices are fine\n"
    assert done.returncode not in (0, 1, 2)
    assert "index 2 is out of range; axis 0 has 2 entries" in done.stderr


def test_a_missing_compiler_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(build, "compiler", lambda: None)
    with pytest.raises(build.NoCompilerError, match=r"install one .* or run `pip install ziglang`"):
        build.build_library(tmp_path / "kernels.so")
    assert list(tmp_path.iterdir()) == []


def test_a_source_that_does_not_compile_leaves_the_library_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.cpp"
    broken.write_text("this is not C++")
    old = tmp_path / "kernels.so"
    old.write_bytes(b"old")
    monkeypatch.setattr(build, "PACKAGE", tmp_path)
    monkeypatch.setattr(build, "sources", lambda: [broken])
    with pytest.raises(RuntimeError, match=r"broken\.cpp"):
        build.build_library(old)
    assert old.read_bytes() == b"old"


def test_the_library_is_stale_when_a_source_is_newer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source, library = tmp_path / "a.cpp", tmp_path / "kernels.so"
    monkeypatch.setattr(build, "PACKAGE", tmp_path)
    assert not build.is_stale(library)  # an installed package has no sources
    source.write_text("")
    assert build.is_stale(library)
    library.write_bytes(b"")
    os.utime(source, (1, 1))
    assert not build.is_stale(library)
    (tmp_path / "a.h").write_text("")
    os.utime(library, (2, 2))
    assert build.is_stale(library)


def test_an_error_in_one_span_ends_the_others_and_nothing_goes_on_behind(monkeypatch):
    monkeypatch.setattr(native, "CORES", 3)
    native._pool.cache_clear()
    begun, ended = [], []

    def work(first, last):
        begun.append(first)
        if len(begun) == 1:
            raise ValueError("of the first")
        time.sleep(0.05)
        ended.append(first)

    with pytest.raises(ValueError, match="of the first"):
        native.in_threads(work, 1200, 1)
    seen = len(ended)
    assert seen <= 2  # of 12
    time.sleep(0.1)
    assert len(ended) == seen
    native._pool.cache_clear()


def test_threads_at_work_start_no_others(monkeypatch):
    monkeypatch.setattr(native, "CORES", 3)
    native._pool.cache_clear()
    inner = native.in_threads(lambda a, b: (native.team(1000, 1), b - a), 1200, 1)
    assert {threads for threads, _ in inner} == {1}
    assert sum(length for _, length in inner) == 1200
    assert native.team(1000, 1) == 3
    native._pool.cache_clear()


def test_blocks_cover_all_in_order() -> None:
    for count in (0, 1, 10, 95, 1000):
        found = native.in_blocks(lambda a, b: (a, b), count, 10)
        assert found == [(a, min(a + 10, count)) for a in range(0, count, 10)]
