"""Compiled kernels: C++ functions of NumPy arrays, from the sources that stand beside the modules which use them.

    from pliant.native import kernels, in_threads

    kernels.bvh_closest(points, tree, limit2, distance2, triangle, weights, begin, end)

Each C++ function that a source makes known with ``EXPORT`` (see kernel.h) is an attribute of `kernels`. Arrays are
passed without a copy if they are contiguous; their types, dimensions and writability are checked against the C++
signature. Tuples stand for records. Calls run without Python's lock, so that threads can share the work (`in_threads`)
and a page that is open in the studio goes on meanwhile.

All kernels are in one library, built at installation (`pliant.native.build`). In a checkout it is built again when a
source is newer. ``PLIANT_CHECK_BOUNDS=1`` loads one in which every array index is checked.
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import Any, TypeVar

import numpy as np

from pliant.core.errors import PliantError
from pliant.core.terminal import complain
from pliant.native.build import CHECKED, LIBRARY, NoCompilerError, build_library, is_stale

T = TypeVar("T")


@cache
def library() -> ctypes.CDLL:
    """The library, built first where it is missing or old."""
    checked = bool(os.environ.get("PLIANT_CHECK_BOUNDS"))
    path = CHECKED if checked else LIBRARY
    with _building:
        if is_stale(path):
            complain("pliant: building its kernels, once: half a minute")
            try:
                build_library(path, checked=checked)
            except NoCompilerError as error:
                raise PliantError(str(error)) from error
    return ctypes.CDLL(str(path))


_building = threading.Lock()


class Kernel:
    """A C++ function, called with arrays, numbers, and tuples of those."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.function = getattr(library(), name)
        self.function.restype, self.function.argtypes = ctypes.c_int64, [ctypes.c_char_p]
        sign = getattr(library(), f"{name}_signature")
        sign.restype, sign.argtypes = ctypes.c_char_p, []
        takes, self.gives = sign().decode().split("-> ")
        self.parameters = [_parameter(text) for text in takes.split()]
        self.pack = struct.Struct("=" + "".join(word for word, *_ in self.parameters)).pack

    def __call__(self, *arguments: Any) -> Any:
        packed: list[Any] = []
        alive = []  # copies of arrays that were not contiguous
        values = list(_flat(arguments))
        if len(values) != len(self.parameters):
            raise TypeError(f"{self.name} got {len(values)} arguments; expected {len(self.parameters)}")
        for value, (_, dtype, dimensions, written) in zip(values, self.parameters, strict=True):
            if dtype is None:
                packed.append(value)
                continue
            if value.dtype != dtype or value.ndim != dimensions or (written and not value.flags.carray):
                raise TypeError(self._misfit(len(packed), value, dtype, dimensions, written))
            if not value.flags.c_contiguous:
                value = np.ascontiguousarray(value)
                alive.append(value)
            packed.append(value.__array_interface__["data"][0])
            packed += value.shape
        result = self.function(self.pack(*packed))
        if self.gives == "none":
            return None
        if self.gives == "real":
            return struct.unpack("=d", struct.pack("=q", result))[0]
        return bool(result) if self.gives == "bool" else result

    def _misfit(self, at: int, value: Any, dtype: Any, dimensions: int, written: bool) -> str:
        found = f"{value.dtype} with {value.ndim} dimensions, writeable {value.flags.writeable}"
        wanted = f"{dtype} with {dimensions} dimensions" + (", contiguous and writeable" if written else "")
        return f"{self.name}, argument {at}: got {found}; expected {wanted}"


def _parameter(text: str) -> tuple[str, Any, int, bool]:
    """Words that it takes, type (None: a number), dimensions, and whether it is written to."""
    if text in ("real", "whole"):
        return ("d" if text == "real" else "q"), None, 0, False
    direction, dtype, dimensions = text.split(":")
    return "Q" + "q" * int(dimensions), np.dtype(dtype), int(dimensions), direction == "out"


def _flat(arguments: tuple[Any, ...]) -> Iterator[Any]:
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from _flat(argument)
        else:
            yield argument


class _Kernels:
    """The functions of the library by name, each looked up once."""

    def __getattr__(self, name: str) -> Kernel:
        if name.startswith("_"):
            raise AttributeError(name)
        found = Kernel(name)
        setattr(self, name, found)
        return found


kernels = _Kernels()


def in_threads(work: Callable[[int, int], T], count: int, least: int) -> list[T]:
    """What `work` gives for the spans (begin, end) that cover 0 to `count`, on all cores, in order.

    least: the shortest span worth a thread.
    """
    most = 1 if _alone() else count // least
    shares = max(1, min(most, CORES if most < UNEVEN_ITEMS * CORES else SPANS * CORES))
    ends = [count * k // shares for k in range(shares + 1)]
    if shares == 1:
        return [work(0, count)]
    results: list[Any] = [None] * shares
    spans = iter(range(shares))

    def some() -> None:
        _thread.at_work = True
        try:
            for k in spans:
                results[k] = work(ends[k], ends[k + 1])
        finally:
            _thread.at_work = False
            for _ in spans:  # after an error the others stop, too
                pass

    helpers = [_pool().submit(some) for _ in range(min(CORES, shares) - 1)]
    try:
        some()
    finally:
        begun = [helper for helper in helpers if not helper.cancel()]
        wait(begun)
    for helper in begun:
        helper.result()
    return results


def in_blocks(work: Callable[[int, int], T], count: int, size: int) -> list[T]:
    """What `work` gives for the blocks (begin, end) of `size` that cover 0 to `count`, on all cores, in order."""

    def some(first: int, last: int) -> list[T]:
        return [work(block * size, min((block + 1) * size, count)) for block in range(first, last)]

    return [found for span in in_threads(some, -(-count // size), 1) for found in span]


def team(count: int, least: int) -> int:
    """How many threads a kernel that starts its own (team.h) should have for `count` items, `least` worth a thread."""
    return 1 if _alone() else max(1, min(CORES, count // least))


def _alone() -> bool:
    """A thread that is at work on a span must not wait for others, which are at work, too."""
    return CORES == 1 or getattr(_thread, "at_work", False)


_thread = threading.local()


def limit_threads(count: int) -> None:
    """From now on kernels run on at most so many cores; their results are the same."""
    global CORES
    CORES = min(CORES, count)


POOL = "pliant-kernels"
SPANS, UNEVEN_ITEMS = 4, 16
"""Spans a core of `in_threads`, in case some take longer, where there are enough items for so many threads a core."""
THREADS = "PLIANT_NUM_THREADS"
"""The environment variable that says on how many cores kernels run; all that the process may use if it is not set."""
CORES = (
    int(os.environ.get(THREADS) or 0)
    or len(getattr(os, "sched_getaffinity", lambda process: ())(0))
    or os.cpu_count()
    or 1
)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(CORES, thread_name_prefix=POOL)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not outlive a fork
