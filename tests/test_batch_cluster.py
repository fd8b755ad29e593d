"""Batches on a real Dask cluster on this machine, which loses workers and its scheduler, fills its disk, and lags."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import hear_signals
from pliant.app.batch import tasks
from test_batch import BAR, FLESH, jobs_file, solved_frames, written

distributed = pytest.importorskip("distributed")
cloudpickle = pytest.importorskip("cloudpickle")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")
cloudpickle.register_pickle_by_value(sys.modules[__name__])
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as made:
        yield made


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    with distributed.Client(cluster, set_as_default=False) as made:
        made.wait_for_workers(2, timeout=60)
        yield made
        made.run(importlib.reload, tasks)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What one process writes."""
    folder = tmp_path_factory.mktemp("alone")
    file = jobs_file(folder, {"scene": BAR, "name": "bar"}, {"scene": FLESH, "name": "flesh"})
    subprocess.run([sys.executable, "-m", "pliant", "batch", file, "--workers", "0", "--quiet"], check=True)
    return written(folder)


def started(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pliant", "batch", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_signals,
        start_new_session=True,
    )


def until(condition: Callable[[], Any], process: subprocess.Popen[str]) -> None:
    while not condition():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def slowed(seconds: float) -> None:
    """In a worker: chunks take longer."""
    real = tasks._solve_chunk

    def slow(task: Any, frames: range) -> Any:
        time.sleep(seconds)
        return real(task, frames)

    tasks._solve_chunk = slow


def test_a_cluster_of_its_own_gives_the_same_bytes(tmp_path: Path, command_line: Command) -> None:
    made = []
    for workers in ("0", "1"):
        file = jobs_file(tmp_path, {"scene": BAR, "name": "bar"}, chunk=3)
        code, out, err = command_line("batch", file, "--workers", workers)
        assert code == 0, err
        assert "1 job, 7 frames" in out
        made.append(written(tmp_path))
    assert made[0] == made[1]


@pytest.mark.slow
def test_workers_that_are_killed_lose_what_they_were_at(
    tmp_path: Path, client: Any, cluster: Any, alone: dict[str, bytes]
) -> None:
    client.run(slowed, 0.25)
    file = jobs_file(tmp_path, {"scene": BAR, "name": "bar"}, {"scene": FLESH, "name": "flesh"}, chunk=1)
    process = started(file, "--scheduler", cluster.scheduler_address)
    store = tmp_path / "jobs.batch" / "frames"
    until(lambda: len([p for p in store.rglob("*") if p.is_file()]) >= 2, process)
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert written(tmp_path) == alone
    assert len(solved_frames(tmp_path)) <= 13 + 2


@pytest.mark.slow
def test_a_disk_that_is_full_fails_the_job_and_frees_the_next(
    tmp_path: Path, client: Any, cluster: Any, alone: dict[str, bytes]
) -> None:
    def largest_file(size: int) -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    file = jobs_file(tmp_path, {"scene": BAR, "name": "bar"}, retries=1)
    client.run(largest_file, 5_000)
    process = started(file, "--scheduler", cluster.scheduler_address)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "cannot be written (file too large)" in err
    assert not list(tmp_path.rglob("*.part"))
    assert not (tmp_path / "out").exists()
    client.run(largest_file, -1)
    process = started(file, "--scheduler", cluster.scheduler_address, "--resume")
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert written(tmp_path)["bar.npz"] == alone["bar.npz"]


@pytest.mark.slow
def test_workers_with_other_versions_are_refused(tmp_path: Path, client: Any, cluster: Any) -> None:
    def older() -> None:
        mine = tasks.versions()
        tasks.versions = lambda: mine | {"pliant": "0.0.1"}

    client.run(older)
    process = started(jobs_file(tmp_path, {"scene": BAR, "name": "bar"}), "--scheduler", cluster.scheduler_address)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "has pliant 0.0.1, not" in err
    assert "install the same there" in err


@pytest.mark.slow
@pytest.mark.parametrize("group", [False, True], ids=["client", "terminal"])
def test_an_interrupt_keeps_what_was_solved(tmp_path: Path, alone: dict[str, bytes], group: bool) -> None:
    """Sent to the client alone, or, as Ctrl+C does, to its workers too."""
    scene = FLESH | {"nodes": 900, "dt": 0.004, "hold": 2.0}
    file = jobs_file(tmp_path, {"scene": scene, "name": "long"}, {"scene": BAR, "name": "bar"}, chunk=1)
    process = started(file, "--workers", "2")
    until(lambda: (tmp_path / "jobs.batch" / "log.jsonl").exists() and len(solved_frames(tmp_path)) >= 9, process)
    (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "what was solved is kept; go on with --resume" in err
    assert "Traceback" not in err
    assert not list(tmp_path.rglob("*.part"))
    before = len(solved_frames(tmp_path))
    process = started(file, "--workers", "0", "--resume", "--job", "bar")
    process.communicate(timeout=60)
    assert written(tmp_path)["bar.npz"] == alone["bar.npz"]
    assert len(solved_frames(tmp_path)) <= before + 7


@pytest.mark.slow
def test_a_scheduler_that_is_restarted_goes_on(tmp_path: Path, alone: dict[str, bytes]) -> None:
    def dask(*arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:]]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    port = distributed.utils.open_port()
    address = f"tcp://127.0.0.1:{port}"
    begin = ("scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
    scheduler = dask(*begin)
    worker = dask("worker", address, "--nthreads", "1", "--no-dashboard", "--death-timeout", "60")
    try:
        with distributed.Client(address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)
            client.run(slowed, 0.2)
        file = jobs_file(tmp_path, {"scene": BAR, "name": "bar"}, {"scene": FLESH, "name": "flesh"}, chunk=1)
        process = started(file, "--scheduler", address)
        until(lambda: (tmp_path / "jobs.batch" / "log.jsonl").exists() and len(solved_frames(tmp_path)) >= 3, process)
        scheduler.kill()
        scheduler.wait()
        worker.kill()
        worker.wait()
        scheduler, worker = dask(*begin), dask("worker", address, "--nthreads", "1", "--no-dashboard")
        _, err = process.communicate(timeout=180)
        assert process.returncode == 0, err
        assert written(tmp_path) == alone
        assert len(solved_frames(tmp_path)) <= 13 + 2
        assert "scheduler lost" in (tmp_path / "jobs.batch" / "log.jsonl").read_text()
    finally:
        for each in (scheduler, worker):
            each.kill()
            each.wait()


@pytest.mark.slow
def test_ten_thousand_tiny_tasks(tmp_path: Path, client: Any, cluster: Any) -> None:
    file = jobs_file(tmp_path, {"scene": BAR | {"frames": 10_000}, "name": "bar"}, chunk=1)
    process = started(file, "--scheduler", cluster.scheduler_address, "--json")
    out, err = process.communicate(timeout=1800)
    assert process.returncode == 0, err
    assert json.loads(out)["jobs"][0]["chunks"] == 10_000
    assert len(set(solved_frames(tmp_path))) == 10_000
