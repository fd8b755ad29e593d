"""Every reader against broken files: cut off anywhere, bytes changed, garbage. Only a result or one line comes out."""

import os
import warnings

import numpy as np
import pytest

import pliant
from fuzz.corpus import CONTENT, PYRAMID
from pliant import FileError, PliantWarning
from pliant.io import BY_SUFFIX, read, read_shapes

STARTS_A_PROCESS = (".usdc", ".usdz")


def read_alone(path):
    """What a file holds; offsets need the mesh that they move."""
    return read_shapes(path, base=PYRAMID) if path.suffix == ".target" else read(path)


def work_done():
    """Seconds of work, in processes started too; not the clock: the machine may be busy with other tests."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def outcome(path):
    """What reading gives: a content or a FileError, soon and in one line; anything else fails the test."""
    begun = work_done()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PliantWarning)
        try:
            result = read_alone(path)
        except FileError as error:
            result = error
    assert work_done() - begun < (4 if path.suffix in STARTS_A_PROCESS else 1)
    if isinstance(result, FileError):
        assert path.name in str(result)
        assert "\n" not in str(result)
    return result


@pytest.fixture
def written(tmp_path, request):
    suffix = request.param
    if suffix.startswith(".usd"):
        pytest.importorskip("pxr", reason="USD is an extra")
    path = tmp_path / f"whole{suffix}"
    if isinstance(CONTENT[suffix], str):
        path.write_text(CONTENT[suffix])
    else:
        pliant.write(path, CONTENT[suffix])
    return path


every_format = pytest.mark.parametrize("written", sorted(CONTENT), indirect=True)


def test_every_format_is_here():
    # The same modules under another suffix, and what is not written: tests/test_fbx.py.
    assert set(BY_SUFFIX) - set(CONTENT) <= {".usd", ".coff", ".fbx"}


@every_format
def test_whole_files_are_read(written):
    assert not isinstance(outcome(written), FileError)


@every_format
def test_cut_off_anywhere(written):
    data = written.read_bytes()
    broken = written.with_name(f"broken{written.suffix}")
    refused = 0
    for length in np.linspace(0, len(data) - 1, 25).astype(int):
        broken.write_bytes(data[:length])
        refused += isinstance(outcome(broken), FileError)
    assert refused >= 12  # a text format's tail may be dispensable, its first half never is


@every_format
def test_changed_bytes(written):
    data = np.frombuffer(written.read_bytes(), np.uint8)
    rng = np.random.default_rng(11)
    for _ in range(3 if written.suffix in STARTS_A_PROCESS else 60):
        changed = data.copy()
        where = rng.integers(0, len(data), rng.integers(1, 6))
        changed[where] = rng.integers(0, 256, len(where))
        broken = written.with_name(f"broken{written.suffix}")
        broken.write_bytes(changed.tobytes())
        outcome(broken)


@every_format
@pytest.mark.parametrize(
    "garbage", [b"", b"\0", b"\xff" * 300, b"\n\n\n", b"{}", b"[" * 5000, b"nonsense and more\n" * 20]
)
def test_garbage(written, garbage):
    broken = written.with_name(f"broken{written.suffix}")
    broken.write_bytes(garbage)
    assert isinstance(outcome(broken), FileError)


@every_format
def test_a_folder_with_its_name(written):
    folder = written.with_name(f"folder{written.suffix}")
    folder.mkdir()
    assert isinstance(outcome(folder), FileError)
