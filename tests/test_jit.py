"""Kernels wherever pliant runs: without a home, in forked and spawned children, in several threads."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HOMELESS = """
    import tempfile
    from numba.core.caching import FunctionCache
    kinds = FunctionCache._impl_class._locator_classes
    FunctionCache._impl_class._locator_classes = [kind for kind in kinds if "UserProvided" in kind.__name__]
    tempfile.tempdir = {folder!r}
    from pathlib import Path
    import numba, numpy as np
    from pliant import jit

    @jit.kernel
    def total(values):
        return values.sum()

    assert total(np.arange(5.0)) == 10
    assert not numba.config.CACHE_DIR
    print(len(list(Path({folder!r}).rglob("*.nbi"))))
"""


@pytest.mark.parametrize(("mode", "expected"), [(0o700, 1), (0o777, 0), (None, 1)])
def test_kernels_work_where_no_cache_folder_can_be_written(tmp_path: Path, mode: int | None, expected: int) -> None:
    """A private temporary folder takes the cache, unless others could have put code there."""
    folder = tmp_path / f"pliant-kernels-{os.getuid()}"
    if mode is not None:
        folder.mkdir()
        folder.chmod(mode)
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(HOMELESS.format(folder=str(tmp_path))))
    found = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=True,
        env={name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"},
    )  # fmt: skip
    assert found.stdout == f"{expected}\n"


CALLERS = """
    import multiprocessing, threading
    import numba, numpy as np
    from pliant_parallel import total

    VALUES = np.arange(1e5)

    def call(_):
        return total(VALUES)

    if __name__ == "__main__":
        expected = call(0)
        for start in {starts!r}:
            with multiprocessing.get_context(start).Pool(2) as pool:
                assert pool.map_async(call, range(4)).get(60) == [expected] * 4, start
        found = []
        threads = [threading.Thread(target=lambda: found.extend(map(call, range(50)))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [expected] * 200
        print(numba.threading_layer())
"""


@pytest.mark.parametrize("layer", ["default", "workqueue"])
def test_parallel_kernels_in_children_and_threads(tmp_path: Path, layer: str) -> None:
    (tmp_path / "pliant_parallel.py").write_text(
        textwrap.dedent(
            """
            from pliant import jit

            @jit.parallel_kernel
            def total(values):
                sum = 0
                for k in jit.prange(len(values)):
                    sum += int(values[k])
                return sum
            """
        )
    )
    starts = ["fork", "spawn"] if hasattr(os, "fork") else ["spawn"]
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(CALLERS.format(starts=starts)))
    found = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "NUMBA_THREADING_LAYER": layer},
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert layer in ("default", found.stdout.strip())


def test_the_serial_twin_is_another_function() -> None:
    """Numba's cache would else give the one's machine code to the other."""
    from pliant.jit import _ParallelKernel
    from pliant.spatial import winding

    kernel = winding.winding_exact
    assert isinstance(kernel, _ParallelKernel)
    assert kernel.serial.py_func.__qualname__ != kernel.parallel.py_func.__qualname__
    assert kernel.serial._cache.cache_path == kernel.parallel._cache.cache_path


@pytest.mark.parametrize("count", [0, 1, 7, 100, 1001])
def test_spans_for_threads_cover_everything_once_and_in_order(count: int) -> None:
    from pliant.jit import in_threads

    spans = in_threads(lambda first, last: list(range(first, last)), count, 10)
    assert [k for span in spans for k in span] == list(range(count))
    assert all(len(span) >= 10 for span in spans) or len(spans) == 1
