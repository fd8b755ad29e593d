"""Work beside the page: one thread for each window, in which the latest request wins.

A page asks for a new shape sixty times a second while something is dragged, and a shape takes as long as it takes. So a
request goes into a lane: it replaces the one that waits there, and makes the one that runs there `stale`, which then
stops at its next step. Lanes are served in the order of their requests, so that opening a file is not lost behind a
slider.

Long work, such as solving the frames of a clip ahead, runs in the background: it starts when nothing else waits, and
whenever it calls `Job.check` or `Job.settled`, what has been requested meanwhile is done first, in the same thread.
A frame in contact may take minutes; solvers are stopped in the middle of one that nobody waits for (`Job.give_up`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pliant.core.cancellation import cancelled_by

log = logging.getLogger("pliant.app.studio")

GLANCE = 0.01
"""Seconds after which waiting background work looks for requests."""
QUIET_TIME = 0.12
"""Seconds without a newer request after which what is shown is worth refining."""


LONGEST_UNSEEN = 2.0
"""Seconds after which a shape that is out of date is not finished, though a hand that drags sees nothing then."""


class StoppedError(Exception):
    """Work that is no longer needed."""


@dataclass(eq=False)
class Job:
    """A request. serve: does what else was requested, for a job in the background."""

    lane: str
    work: Callable[[Job], None]
    serve: Callable[[Job], None] | None = None
    dropped: bool = False
    """Whether its result is not to be shown any more."""
    began: float = field(default_factory=time.monotonic)
    """When it was requested, then when it was begun."""
    _replaced: threading.Event = field(default_factory=threading.Event)

    @property
    def stale(self) -> bool:
        """Whether there is a newer request in its lane, or it was dropped."""
        return self._replaced.is_set()

    def replace(self, *, drop: bool = False) -> None:
        """Make it stale."""
        self.dropped = self.dropped or drop
        self._replaced.set()

    def settled(self, seconds: float | None = None) -> bool:
        """Wait for a newer request, by default `QUIET_TIME`; whether there was none."""
        seconds = QUIET_TIME if seconds is None else seconds
        if self.serve is None:
            return not self._replaced.wait(seconds)
        end = time.monotonic() + seconds
        while not self.stale and (left := end - time.monotonic()) > 0:
            self.serve(self)
            self._replaced.wait(min(GLANCE, left))
        return not self.stale

    def check(self, *_: object) -> None:
        """Raise StoppedError if it is stale; can be passed wherever progress is reported."""
        if self.serve is not None and not self.stale:
            self.serve(self)
        if self.stale:
            raise StoppedError

    def give_up(self) -> None:
        """In the middle of a solve: raise StoppedError if nobody waits for it."""
        finishes = self.serve is None and time.monotonic() - self.began < LONGEST_UNSEEN
        if self.dropped or (self.stale and not finishes):
            raise StoppedError


class Worker:
    """A thread for what takes time.

    failed: called with what a job raised. busy: called with the lane that is served, and with "" when all is done.
    """

    def __init__(self, failed: Callable[[Exception], None], busy: Callable[[str], None]) -> None:
        self._failed, self._busy = failed, busy
        self._waiting: dict[str, Job] = {}
        self._running: list[Job] = []  # the last one runs; one before it is in the background, and waits for it
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="pliant-studio", daemon=True)
        self._thread.start()

    def ask(self, lane: str, work: Callable[[Job], None], *, background: bool = False) -> Job:
        """Request something, in place of what waits or runs in this lane."""
        job = Job(lane, work, self._serve if background else None)
        with self._changed:
            if self._closed:
                job.replace(drop=True)
                return job
            self._replace(lambda other: other == lane)
            self._waiting[lane] = job
            self._changed.notify_all()
        return job

    def drop(self, lane: str) -> None:
        """Forget what waits in a lane, and what runs there."""
        self.drop_others(lambda other: other != lane)

    def drop_others(self, kept: Callable[[str], bool]) -> None:
        """Forget what waits and runs in all lanes but those that are kept."""
        with self._changed:
            self._replace(lambda lane: not kept(lane), drop=True)
            self._waiting = {lane: job for lane, job in self._waiting.items() if kept(lane)}
            self._changed.notify_all()

    def idle(self, timeout: float) -> bool:
        """Wait until nothing is left to do; whether that came about in time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._running, timeout)

    def close(self) -> None:
        """End the thread as soon as it can."""
        with self._changed:
            self._closed = True
            self._replace(lambda lane: True, drop=True)
            self._waiting.clear()
            self._changed.notify_all()

    def _replace(self, which: Callable[[str], bool], *, drop: bool = False) -> None:
        for job in (*self._running, *self._waiting.values()):
            if which(job.lane):
                job.replace(drop=drop)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting) or self._closed)
                if self._closed:
                    return
                job = self._next() or self._next(background=True)
            if job is not None:
                self._do(job)

    def _next(self, *, background: bool = False) -> Job | None:
        """Take the request that waits longest."""
        for lane, job in self._waiting.items():
            if (job.serve is not None) == background:
                self._running.append(job)
                return self._waiting.pop(lane)
        return None

    def _serve(self, waits: Job) -> None:
        """Do what was requested while a job in the background waits, unless that becomes stale."""
        while not waits.stale:
            with self._changed:
                job = self._next()
            if job is None:
                return
            self._do(job)

    def _do(self, job: Job) -> None:
        self._tell(self._busy, job.lane)
        job.began = time.monotonic()
        try:
            with cancelled_by(job.give_up):
                job.work(job)
        except StoppedError:
            pass
        except Exception as error:
            self._tell(self._failed, error)
        finally:
            with self._changed:
                self._running.remove(job)
                done = not self._waiting and not self._running
                self._changed.notify_all()
        if done:
            self._tell(self._busy, "")

    def _tell(self, tell: Callable[[Any], None], what: Any) -> None:
        """Tell the page, if it is still there; the thread goes on in any case."""
        if self._closed:
            return
        try:
            tell(what)
        except Exception:
            log.exception("the page could not be told")
