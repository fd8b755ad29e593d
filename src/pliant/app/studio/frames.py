"""The frames of a scene's clip: solved ahead in the background, and shown by the timeline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from pliant.app.studio.desk import Desk
from pliant.app.studio.worker import Job, StoppedError

AHEAD = "frames"
"""Lane of the worker."""
Solver = Callable[[Job], Iterable[tuple[int, Any]]]
"""Solves frames: their numbers and what is to be drawn, in any order."""


class ClipFrames:
    """Those of one clip that are solved.

    draw: shows a frame, solved or not. came: called with None when a clip is begun, then with each frame's number when
    it is solved; never for a clip that another has replaced.
    """

    def __init__(self, desk: Desk, draw: Callable[[int], None], came: Callable[[int | None], None]) -> None:
        self._desk, self._draw, self._came = desk, draw, came
        self._coming = threading.RLock()  # no other clip is begun while `came` runs
        self._clip: object = None
        self._job: Job | None = None
        self.solved: dict[int, Any] = {}
        """By number."""
        self.count, self.fps = 1, 30.0
        self.watched = False
        """Whether the clip plays as soon as it is solved."""

    @property
    def frame(self) -> int:
        """The timeline's."""
        return min(self._desk.timeline.frame, self.count - 1)

    def resize(self, count: int, fps: float, *, frame: int | None = None) -> None:
        """Have so many frames on the timeline; frame: where to go, if not to stay."""
        if frame is not None or (count, fps) != (self.count, self.fps):
            self.count, self.fps = count, fps
            stays = self._desk.timeline.frame if frame is None else frame
            self._desk.timeline.show(count, fps, self._draw, frame=min(stays, count - 1))

    def drop(self) -> None:
        """Forget the frames that are solved, and solve no more of them."""
        with self._coming:
            self.solved, self._clip = {}, None
        self._desk.drop(AHEAD)

    def has(self, clip: object) -> bool:
        """Whether the frames are those of a clip, and being solved or done."""
        known = self._clip is not None and self._job is not None and not self._job.dropped
        return known and self._clip == clip

    def solve(self, clip: object, solver: Solver, *, stream: bool = False) -> None:
        """Solve a clip in the background, if it is not the one that there is.

        stream: while it is watched, show each frame when its time has come.
        """
        if self.has(clip):
            return
        solved: dict[int, Any] = {}
        with self._coming:
            self.solved, self._clip = solved, clip
            self._came(None)
        self._job = self._desk.ask(AHEAD, lambda job: self._solve(job, solver, solved, stream), background=True)

    def _solve(self, job: Job, solver: Solver, solved: dict[int, Any], stream: bool) -> None:
        began, timeline = time.perf_counter(), self._desk.timeline
        for number, content in solver(job):
            with self._coming:
                if solved is not self.solved:
                    raise StoppedError
                solved[number] = content
                self._came(number)
            if stream and self.watched and self.count > 1:
                if not job.settled(max(began + number / self.fps - time.perf_counter(), 0.0)):
                    return
                timeline.go_to(number)
                self._draw(number)
            job.check()
        if self.watched and self.count > 1:
            timeline.play()
        self.watched = False
