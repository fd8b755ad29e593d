"""Frames solved in several processes.

Every process receives the rig once, with the knots of the warm starts already solved, and uses its share of the cores.
Frames are returned in order. Processes are spawned, so a script needs the usual ``if __name__ == "__main__":``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from pliant.core.clips import Pose
from pliant.native import THREADS

if TYPE_CHECKING:
    from pliant.engines.blend.blendshapes import Blendshapes

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", THREADS)
_rig: Blendshapes | None = None


def solve_in_processes(
    rig: Blendshapes, frames: Sequence[Mapping[str, Any]], options: Mapping[str, Any], jobs: int
) -> Iterator[Pose]:
    """Poses of the frames (keyword arguments of `solve`) in order, by `jobs` processes."""
    rig.prepare([frame["weights"] for frame in frames], accuracy=options["accuracy"])
    with few_threads(jobs):
        pool = ProcessPoolExecutor(min(jobs, len(frames)), get_context("spawn"), _receive_rig, (rig,))
        waiting = [pool.submit(_solve, {**frame, **options}) for frame in frames]
    try:
        for future in waiting:
            yield future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def few_threads(jobs: int) -> Iterator[None]:
    """Limit the threads of processes started inside to their share of the cores."""
    before = {name: os.environ.get(name) for name in _THREADS}
    share = str(max(1, (os.cpu_count() or 1) // jobs))
    os.environ.update(dict.fromkeys(_THREADS, share))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _receive_rig(rig: Blendshapes) -> None:
    global _rig
    _rig = rig


def _solve(arguments: dict[str, Any]) -> Pose:
    assert _rig is not None
    return _rig.solve(**arguments)
