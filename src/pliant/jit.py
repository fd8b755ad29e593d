"""Compiled kernels: Numba with an on-disk cache, and a word to the user while the first call compiles.

Modules that hold kernels import this one, and are themselves imported only where they are used, so that
``import pliant`` loads no compiler. Numba stores machine code beside the package (or in ``NUMBA_CACHE_DIR``), so each
kernel is compiled once per machine and pliant version.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import event

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a function of arrays and scalars to machine code, single-threaded."""
    return cast(F, numba.njit(cache=True, error_model="numpy")(function))


def parallel_kernel(function: F) -> F:
    """Compile a function whose ``prange`` loops run on all cores."""
    return cast(F, numba.njit(cache=True, error_model="numpy", parallel=True)(function))


def inline_kernel(function: F) -> F:
    """Compile a small function that is pasted into the kernels calling it."""
    return cast(F, numba.njit(cache=True, error_model="numpy", inline="always")(function))


prange = numba.prange


class _CompileNotice(event.Listener):  # type: ignore[misc, unused-ignore]
    """Says so, once per process, when compiling pliant's kernels takes longer than a second altogether."""

    def __init__(self, patience: float = 1.0) -> None:
        self.patience = patience
        self.depth = 0
        self.started = 0.0
        self.timer: threading.Timer | None = None
        self.said = False

    def on_start(self, event: Any) -> None:
        self.depth += 1
        name = getattr(getattr(event.data.get("dispatcher"), "py_func", None), "__module__", "")
        if self.timer is None and not self.said and str(name).startswith("pliant"):
            self.started = time.monotonic()
            self.timer = threading.Timer(max(self.patience, 0.0), self.say)
            self.timer.daemon = True
            self.timer.start()

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0 and self.timer is not None:
            self.timer.cancel()
            self.timer = None
            self.patience -= time.monotonic() - self.started

    def say(self) -> None:
        self.said = True
        print("pliant: compiling for this machine (only the first time; kept on disk) ...", file=sys.stderr)


notice = _CompileNotice()
event.register("numba:compile", notice)  # type: ignore[no-untyped-call, unused-ignore]
