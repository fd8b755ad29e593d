"""Compiled kernels: Numba with an on-disk cache, and a word to the user while the first call compiles.

Modules that hold kernels import this one, and are themselves imported only where they are used, so that
``import pliant`` loads no compiler. Numba stores machine code beside the package, in the user's cache folder or in
``NUMBA_CACHE_DIR``, so each kernel is compiled once per machine and pliant version. Where it can write to none of
these, a private folder among the temporary files takes their place.

Threads and processes: calls of parallel kernels wait for each other, since Numba's simplest threading layer aborts the
process if two threads launch at once (and each call uses all cores anyway). A process forked from one that has
launched Numba's threads does not have them, and OpenMP would end it; there each parallel kernel runs as its serial
twin, the same function compiled without threads when it is first called. So it does on little data.
"""

from __future__ import annotations

import functools
import os
import stat
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import parent_process
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

import numba
from numba.core import event
from numba.np.ufunc.parallel import threading_layer

from pliant.terminal import complain

# Threads that wait for each other give way soon: beside a busy neighbour they would spin for a hundred times the work.
# GNU OpenMP reads this when the first parallel kernel loads it.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "5000")

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def kernel(function: F) -> F:
    """Compile a function of arrays and scalars to machine code, single-threaded.

    It runs without Python's lock: other threads go on meanwhile (a page that is open in the studio), and threads can
    share the work (`in_threads`).
    """
    return cast(F, _compiled(function))


def parallel_kernel(function: F) -> F:
    """Compile a function whose ``prange`` loops run on all cores; for calls from Python, not from other kernels."""
    return cast(F, _ParallelKernel(function))


def in_threads(work: Callable[[int, int], T], count: int, least: int) -> list[T]:
    """What `work` gives for the spans (from, to) that cover 0 to `count`, on all cores, in order.

    least: the shortest span worth a thread. `work` calls a `kernel`. Large functions compile much faster so than
    with a ``prange`` in them, and once for one core and for many.
    """
    cores: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined, unused-ignore]
    shares = max(1, min(4 * cores, count // least)) if cores > 1 else 1
    ends = [count * k // shares for k in range(shares + 1)]
    if shares == 1:
        return [work(0, count)]
    with ThreadPoolExecutor(cores) as pool:
        return list(pool.map(work, ends[:-1], ends[1:]))


def inline_kernel(function: F) -> F:
    """Compile a small function that is pasted into the kernels calling it."""
    return cast(F, _compiled(function, inline="always"))


prange = numba.prange


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    """Numba's dispatcher of a function, with a cache wherever one can be written."""
    settings: Any = numba.config
    chosen = settings.CACHE_DIR
    for folder in (lambda: chosen, _private_folder):
        try:
            settings.CACHE_DIR = folder()
            return numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function)
        except (RuntimeError, OSError):  # there is no folder that Numba could write to
            continue
        finally:
            settings.CACHE_DIR = chosen
    notice.kept = False
    return numba.njit(nogil=True, error_model="numpy", **options)(function)


@functools.cache
def _private_folder() -> str:
    """A folder among the temporary files that only this user can write to: what is in it will be executed."""
    user = getattr(os, "getuid", lambda: 0)()
    folder = Path(tempfile.gettempdir()) / f"pliant-kernels-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != user or found.st_mode & 0o077:
        raise PermissionError(f"{folder} is not private")
    return str(folder)


LITTLE = 10_000
"""Numbers in an array below which threads take longer to wake, the more so beside a busy neighbour, than to work."""


def _little(arguments: Any) -> bool:
    """Whether all arrays among the arguments, or in tuples among them, are small."""
    for value in arguments:
        if isinstance(value, tuple):
            if not _little(value):
                return False
        elif getattr(value, "size", 0) > LITTLE:
            return False
    return True


class _ParallelKernel:
    """A function on all cores, one call at a time; on one thread for little data, or where forking lost the others."""

    turn = threading.Lock()
    forked = False

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.parallel = _compiled(function, parallel=True)

    def __call__(self, *arguments: Any) -> Any:
        if self.forked or _little(arguments):
            return self.serial(*arguments)
        with self.turn:
            return self.parallel(*arguments)

    @functools.cached_property
    def serial(self) -> Any:
        """The same function without threads, under another name, by which Numba's cache tells the two apart."""
        source = cast(FunctionType, self.function)
        twin = FunctionType(source.__code__, source.__globals__, source.__name__, source.__defaults__)
        functools.update_wrapper(twin, source)
        twin.__qualname__ += "_serial"
        return _compiled(twin)

    @classmethod
    def after_fork(cls) -> None:
        """In the child: were there threads, or was one just about to launch them?"""
        try:
            threading_layer()  # type: ignore[no-untyped-call, unused-ignore]
            cls.forked = True
        except ValueError:  # never launched
            cls.forked = cls.turn.locked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ParallelKernel.after_fork)


class _CompileNotice(event.Listener):  # type: ignore[misc, unused-ignore]
    """Says so, once, when compiling pliant's kernels takes longer than a second altogether; helper processes do not."""

    def __init__(self, patience: float = 1.0) -> None:
        self.patience = patience
        self.depth = 0
        self.began = 0.0
        self.own = threading.local()  # seconds that each thread has compiled
        self.started = 0.0
        self.timer: threading.Timer | None = None
        self.said = False
        self.kept = True
        self.tell: Callable[[str], None] = lambda words: complain(f"pliant: {words}")

    @property
    def spent(self) -> float:
        """Seconds that this thread has compiled."""
        return float(getattr(self.own, "spent", 0.0))

    def on_start(self, event: Any) -> None:
        if self.depth == 0:
            self.began = time.thread_time()
        self.depth += 1
        name = getattr(getattr(event.data.get("dispatcher"), "py_func", None), "__module__", "")
        if self.timer is None and not self.said and str(name).startswith("pliant"):
            self.started = time.monotonic()
            self.timer = threading.Timer(max(self.patience, 0.0), self.say)
            self.timer.daemon = True
            self.timer.start()

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.own.spent = self.spent + time.thread_time() - self.began
        if self.depth == 0 and self.timer is not None:
            self.timer.cancel()
            self.timer = None
            self.patience -= time.monotonic() - self.started

    def say(self) -> None:
        if self.said or parent_process() is not None:
            return
        self.said = True
        again = "later runs skip this" if self.kept else "to skip this in later runs, set NUMBA_CACHE_DIR to a folder"
        self.tell(f"compiling for this machine, up to a minute; {again}")


notice = _CompileNotice()
event.register("numba:compile", notice)  # type: ignore[no-untyped-call, unused-ignore]


def working_time() -> float:
    """Seconds that this thread has worked, without compiling: for budgets of time, the same on a busy machine."""
    return time.thread_time() - notice.spent
