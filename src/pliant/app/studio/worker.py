"""Work beside the page: a thread that turns to what was asked for last.

A page asks for a new shape sixty times a second while something is dragged, and a shape takes as long as it takes. So
what is asked for goes into a lane: a newer wish takes the place of the one that waits there, and the one that is being
worked on is told that it is `stale`, to stop at the next step if it is a long one. Lanes are served in the order in
which they were asked, so that building a rig is not lost behind a slider.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

log = logging.getLogger("pliant.app.studio")


class StoppedError(Exception):
    """Work that is no longer wanted."""


@dataclass(eq=False)
class Job:
    """Something that was asked for."""

    lane: str
    work: Callable[[Job], None]
    _replaced: threading.Event = field(default_factory=threading.Event)

    @property
    def stale(self) -> bool:
        """Whether something newer has been asked for, or the page is gone."""
        return self._replaced.is_set()

    def replace(self) -> None:
        """Make it stale."""
        self._replaced.set()

    def settled(self, seconds: float = 0.12) -> bool:
        """Wait whether something newer comes; whether nothing did, so that it is worth refining what was shown."""
        return not self._replaced.wait(seconds)

    def check(self, *_: object) -> None:
        """Stop here if nobody wants it any more; fits wherever progress is reported."""
        if self.stale:
            raise StoppedError


class Worker:
    """A thread of its own for what takes time.

    failed: called with what a job raised. busy: called with the lane that is worked in, and with "" when all is done.
    """

    def __init__(self, failed: Callable[[Exception], None], busy: Callable[[str], None]) -> None:
        self._failed, self._busy = failed, busy
        self._waiting: dict[str, Job] = {}
        self._running: Job | None = None
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="pliant-studio", daemon=True)
        self._thread.start()

    def ask(self, lane: str, work: Callable[[Job], None]) -> Job:
        """Have something done, instead of what waits in this lane."""
        job = Job(lane, work)
        with self._changed:
            if self._closed:
                job.replace()
                return job
            self._waiting[lane] = job
            if self._running is not None and self._running.lane == lane:
                self._running.replace()
            self._changed.notify_all()
        return job

    def drop(self, lane: str) -> None:
        """Forget what waits in a lane, and tell what is being worked on there that it is stale."""
        with self._changed:
            self._waiting.pop(lane, None)
            if self._running is not None and self._running.lane == lane:
                self._running.replace()

    def drop_others(self, *kept: str) -> None:
        """Forget what waits in all lanes but those that begin so, and tell what is worked on there that it is stale."""
        with self._changed:
            self._waiting = {lane: job for lane, job in self._waiting.items() if lane.startswith(kept)}
            if self._running is not None and not self._running.lane.startswith(kept):
                self._running.replace()

    def idle(self, timeout: float) -> bool:
        """Wait until nothing is left to do; whether that came about in time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and self._running is None, timeout)

    def close(self) -> None:
        """End the thread as soon as it can."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            if self._running is not None:
                self._running.replace()
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting) or self._closed)
                if self._closed:
                    return
                lane = next(iter(self._waiting))
                job = self._running = self._waiting.pop(lane)
            self._tell(self._busy, lane)
            try:
                job.work(job)
            except StoppedError:
                pass
            except Exception as error:
                self._tell(self._failed, error)
            finally:
                with self._changed:
                    self._running = None
                    done = not self._waiting
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
