"""Who computes: this process, or the workers of a Dask cluster, behind one interface.

    with connected(options) as workers:
        workers.submit(function, argument)
        for done in workers.completed():     # goes on while more is submitted
            done.record, done.error

Tasks are never retried here; Dask itself gives a task to another worker when the one that had it dies.
"""

from __future__ import annotations

import heapq
import importlib
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from pliant.app.batch.options import BatchOptions
from pliant.core.errors import InputError, MissingExtraError, PliantError
from pliant.core.terminal import complain

CONNECT_SECONDS = 30
"""For which a scheduler is waited for."""
TaskHandle = Any
"""What stands for a task that was submitted."""


class SchedulerLostError(PliantError):
    """The scheduler ended, or cannot be reached any more."""


@dataclass(frozen=True)
class Done:
    """A task that has ended."""

    handle: TaskHandle
    record: Any = None
    error: BaseException | None = None


class Workers(Protocol):
    """Those who compute."""

    threads: int | None
    """Of kernels in a worker; None: as many as the process has."""

    def submit(self, function: Callable[..., Any], *arguments: Any, priority: int = 0) -> TaskHandle:
        """Give out a task; those of higher priority are begun first."""
        ...

    def completed(self) -> Iterator[Done]:
        """Tasks as they end, until none is left."""
        ...

    def drop(self, handle: TaskHandle) -> None:
        """Forget a task that need not be done any more."""
        ...


@dataclass
class ThisProcess:
    """One worker: whoever asks."""

    threads: int | None = None
    _waiting: list[tuple[int, int, Callable[..., Any], tuple[Any, ...]]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)
    _dropped: set[int] = field(default_factory=set)

    def submit(self, function: Callable[..., Any], *arguments: Any, priority: int = 0) -> TaskHandle:
        """See `Workers`."""
        number = next(self._numbers)
        heapq.heappush(self._waiting, (-priority, number, function, arguments))
        return number

    def completed(self) -> Iterator[Done]:
        """See `Workers`."""
        while self._waiting:
            _, number, function, arguments = heapq.heappop(self._waiting)
            if number in self._dropped:
                continue
            try:
                yield Done(number, function(*arguments))
            except Exception as error:
                yield Done(number, error=error)

    def drop(self, handle: TaskHandle) -> None:
        """See `Workers`."""
        self._dropped.add(handle)


class DaskWorkers:
    """The workers of a Dask client."""

    threads: int | None = 1

    def __init__(self, client: Any) -> None:
        from distributed import as_completed

        self._client, self._numbers = client, count()
        self._run = os.urandom(4).hex()
        self._done = as_completed(loop=client.loop)
        self._dropped: set[str] = set()

    def submit(self, function: Callable[..., Any], *arguments: Any, priority: int = 0) -> TaskHandle:
        """See `Workers`."""
        key = f"{function.__name__}-{self._run}-{next(self._numbers)}"
        future = self._client.submit(function, *arguments, key=key, pure=False, priority=priority)
        self._done.add(future)
        return future

    def completed(self) -> Iterator[Done]:
        """See `Workers`."""
        while not self._done.is_empty():
            future = next(self._done)
            if future.key in self._dropped:  # it was done before it was dropped
                continue
            if future.status == "finished":
                yield Done(future, future.result())
            elif future.status == "error":
                yield Done(future, error=future.exception())
            else:  # cancelled, or lost: the scheduler knows nothing of it any more
                raise SchedulerLostError("the Dask scheduler ended, or cannot be reached any more")

    def drop(self, handle: TaskHandle) -> None:
        """See `Workers`."""
        self._dropped.add(handle.key)
        self._done.futures.pop(handle, None)
        handle.release()


@contextmanager
def connected(options: BatchOptions) -> Iterator[Workers]:
    """Workers as the options say."""
    if options.workers == 0:
        yield ThisProcess()
        return
    try:
        import dask
        import distributed
    except ImportError as error:
        raise MissingExtraError("a batch in several processes (without: --workers 0)", "batch") from error
    address = options.scheduler or (None if options.cluster else dask.config.get("scheduler-address", None))
    if address is not None:
        with _client(address) as client:
            yield DaskWorkers(client)
        return
    size = os.cpu_count() if options.workers is None else options.workers
    with _cluster(options, size or 1) as cluster, distributed.Client(cluster) as client:
        yield DaskWorkers(client)


@contextmanager
def _client(address: str) -> Iterator[Any]:
    """A client of a scheduler that is there already."""
    import distributed

    named = {"scheduler_file": address} if os.path.isfile(address) else {"address": address}
    try:
        client = distributed.Client(**named, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, RuntimeError) as error:
        problem = " ".join(str(error).split())[:120]
        raise InputError(
            f"{address}: no Dask scheduler answers there ({problem}); expected tcp://host:port of one that runs, "
            "as dask scheduler prints it",
            argument="scheduler",
        ) from error
    try:
        if not client.scheduler_info()["workers"]:
            complain("pliant: note: the scheduler has no workers yet; waiting for them")
        yield client
    finally:
        client.close(timeout=2)


@contextmanager
def _cluster(options: BatchOptions, size: int) -> Iterator[Any]:
    """A cluster for this batch alone."""
    import dask
    import distributed

    if options.cluster is None:
        with dask.config.set({"distributed.scheduler.allowed-failures": options.retries}), _deaf_children():
            cluster = distributed.LocalCluster(
                n_workers=size, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL
            )
        with cluster:
            yield cluster
        return
    module, _, name = options.cluster.partition(":")
    try:
        made = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f'cluster is "{options.cluster}" ({error}); expected module:Class, such as dask_jobqueue:SLURMCluster',
            argument="cluster",
        ) from error
    with made() as cluster:
        if options.workers is not None:
            cluster.scale(options.workers)
        yield cluster


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes that are started meanwhile do not hear Ctrl+C: it is for whoever started them to end them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
