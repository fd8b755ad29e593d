"""Frames solved in several processes.

Every process receives the rig once, with the knots of the warm starts already solved, and uses its share of the cores.
Frames go to them in chunks, as those of batches do, and are returned in order. Processes are spawned, so a script needs
the usual ``if __name__ == "__main__":``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from pliant.core.clips import Pose
from pliant.core.frame_ranges import progressions
from pliant.core.topology import Floats
from pliant.engines.blend.equilibrium import SolveOptions
from pliant.engines.blend.pulls import Pull, read_load
from pliant.native import THREADS

if TYPE_CHECKING:
    from pliant.engines.blend.blendshapes import Blendshapes

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", THREADS)
LARGEST_CHUNK, CHUNKS_A_PROCESS = 10, 4
"""Frames that a process gets in one go, and how often, at least, it gets some: the last ones end together."""
_rig: Blendshapes | None = None


def solve_in_processes(
    rig: Blendshapes, weights: Floats, loads: Sequence[tuple[Any, Any]], options: SolveOptions, jobs: int
) -> Iterator[Pose]:
    """Poses at weights (frames, shapes) of all shapes, each with its pulls and pins, by `jobs` processes."""
    rig.statics.prepare(weights, options.accuracy)
    with few_threads(jobs):
        pool = ProcessPoolExecutor(min(jobs, len(weights)), get_context("spawn"), _receive_rig, (rig,))
        size = max(1, min(LARGEST_CHUNK, len(weights) // (jobs * CHUNKS_A_PROCESS)))
        chunks = progressions(range(len(weights)), size)
        waiting = [
            pool.submit(_solve, weights[chunk.start : chunk.stop], [loads[k] for k in chunk], options)
            for chunk in chunks
        ]
    try:
        for future in waiting:
            yield from future.result()
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


def _solve(weights: Floats, loads: Sequence[tuple[Sequence[Pull], Any]], options: SolveOptions) -> list[Pose]:
    assert _rig is not None
    rows = zip(weights, loads, strict=True)
    return [_rig.solve_frame(row, read_load(_rig, pulls, pinned), options) for row, (pulls, pinned) in rows]
