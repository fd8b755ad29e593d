"""What every test shares: the real data's folder, and a mesh that has everything a file can say."""

from __future__ import annotations

import gc
import os
import pickle
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Hashable
from hashlib import sha256
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

from pliant import Appearance, Image, Labels, Layer, Mesh
from pliant.app.cli import main
from pliant.core.caching import ResultCache

hypothesis.settings.register_profile("pliant", deadline=None)  # the machine may be busy
hypothesis.settings.load_profile("pliant")

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003010100"
    "c9fe92ef0000000049454e44ae426082"
)
"""One red pixel."""


RESULTS = "PLIANT_TEST_RESULTS"
"""The folder, in the environment of every test process, with results that one of them has found for all."""
SHARED = pytest.StashKey[str]()
GET = ResultCache.get


def pytest_configure(config: pytest.Config) -> None:
    """Files of tests are in memory where there is much of it."""
    memory = Path("/dev/shm")
    if memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 4e9:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))
    if not hasattr(config, "workerinput"):  # it starts the others, and no test of theirs starts it
        where = os.environ.get("PYTEST_DEBUG_TEMPROOT")
        config.stash[SHARED] = os.environ[RESULTS] = tempfile.mkdtemp(prefix="pliant-results-", dir=where)
    _share_results(Path(os.environ[RESULTS]))


def pytest_unconfigure(config: pytest.Config) -> None:
    """What this process has made goes."""
    if SHARED in config.stash:
        shutil.rmtree(config.stash[SHARED], ignore_errors=True)


@pytest.fixture
def results_of_its_own(monkeypatch):
    """Nothing is known from other processes: for tests of how a result is found."""
    monkeypatch.setattr(ResultCache, "get", GET)


def _share_results(folder: Path) -> None:
    """Have test processes keep what costs most (gallery shapes, body plans, cages) for each other, by its content."""

    def found(cache: ResultCache, key: Hashable, make: Callable[[], Any]) -> Any:
        if not make.__module__.startswith(("pliant.gallery.", "pliant.geometry.", "pliant.engines.transfer.build")):
            return GET(cache, key, make)
        file = folder / sha256(f"{make.__module__} {make.__qualname__} {key!r}".encode()).hexdigest()

        def read_or_made() -> Any:
            if file.exists():
                return pickle.loads(file.read_bytes())
            result = make()
            part = file.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
            part.write_bytes(pickle.dumps(result))
            part.replace(file)
            return result

        return GET(cache, key, read_or_made)

    ResultCache.get = found  # for as long as the process


def pytest_collection_finish() -> None:
    """The thousands of tests stay to the end: no search for garbage goes through them."""
    gc.freeze()


def hear_signals() -> None:
    """In a child: signals act, also where those who started the tests, as in the background, ignore them."""
    for name in ("SIGINT", "SIGHUP", "SIGTERM"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)


@pytest.fixture(autouse=True, scope="session")
def files_in_memory():
    """No test outlives a power cut: what is written need not be on the disk before it goes on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda file: None)
        yield


@pytest.fixture(autouse=True)
def same_random_numbers(request):
    """Those that a test draws from its module's RNG do not depend on which tests its process ran before."""
    if hasattr(request.module, "RNG"):
        request.module.RNG.bit_generator.state = np.random.default_rng(5).bit_generator.state


@pytest.fixture(autouse=True)
def hasty_visitors(request):
    """Without a browser, nobody pauses between what is done in the studio."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.name.startswith("test_studio") and request.path.name != "test_studio_browser.py":
            patch.setattr("pliant.app.studio.worker.QUIET_TIME", 0.01)
            patch.setattr("pliant.app.studio.session.PAUSE", 0.03)
        yield


@pytest.fixture(scope="session")
def data() -> Path:
    """The real meshes, rigs and motions; tests that need them skip where they are absent."""
    if not DATA.is_dir():
        pytest.skip("the real data (../shared/data) is not here")
    return DATA


@pytest.fixture
def command_line(capsys, monkeypatch):
    """Run ``pliant`` with arguments: its exit code, what it printed, and what it complained of."""
    monkeypatch.delenv("PLIANT_DEBUG", raising=False)
    monkeypatch.setattr("pliant.core.terminal._notes", {})

    def command(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main(list(arguments))
        printed = capsys.readouterr()
        return int(stop.value.code or 0), printed.out, printed.err

    return command


@pytest.fixture(scope="module")
def usd_trials():
    """Files of USD are tried by a process that forks, which takes a tenth of the time of one that starts."""
    from usd_trials import forked

    with pytest.MonkeyPatch.context() as patch:
        trials = forked(patch)
        yield
        if trials:
            trials.close()


@pytest.fixture
def files(made, tmp_path, monkeypatch):
    """A fresh copy of the files that a module's tests read, its fixture `made`, as the current folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def decorated() -> Mesh:
    """A house: quads, triangles and a pentagon, with UV seams, hard normals, two objects, three materials."""
    points = np.array(
        [[0, 0, 0], [2, 0, 0], [2, 0, 1.5], [0, 0, 1.5], [0, 1, 0], [2, 1, 0], [2, 1, 1.5], [0, 1, 1.5],
         [0, 1.7, 0.75], [2, 1.7, 0.75]], dtype=float,
    )  # fmt: skip
    faces = [
        [0, 1, 2, 3],
        [0, 4, 5, 1],
        [3, 2, 6, 7],
        [1, 5, 9, 6, 2],
        [0, 3, 7, 8, 4],
        [4, 8, 9, 5],
        [7, 6, 9],
        [7, 9, 8],
    ]
    corners = np.concatenate(faces)
    sizes = np.array([len(face) for face in faces])
    owner = np.repeat(np.arange(len(faces)), sizes)
    normals = np.array([np.cross(points[f[1]] - points[f[0]], points[f[2]] - points[f[1]]) for f in faces])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    rng = np.random.default_rng(7)
    uvs, uv_index = np.unique(np.round(rng.random((len(corners), 2)), 1), axis=0, return_inverse=True)
    return Mesh(
        points,
        faces,
        uvs=Layer(uvs, uv_index.ravel()),
        normals=Layer(normals, owner),
        labels={
            "object": Labels(("walls", "roof"), np.array([0, 0, 0, 0, 0, 1, 1, 1])),
            "material": Labels(("brick", "plaster", "tiles"), np.array([0, 0, 0, 1, 1, 2, 2, 2])),
        },
        appearances={
            "brick": Appearance((0.5, 0.1, 0.1, 1.0), Image("brick.png", PNG, "image/png")),
            "plaster": Appearance((0.9, 0.9, 0.8, 1.0)),
            "tiles": Appearance((0.6, 0.2, 0.1, 0.5)),
        },
        attributes={"color": rng.integers(0, 2, (10, 3)).astype(float)},
        vertex_groups={"ridge": (points[:, 1] > 1.5).astype(float), "left": 1 - points[:, 0] / 2},
    )
