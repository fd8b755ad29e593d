"""Frames of a clip that are solved ahead, beside the page, so that they can be played.

They are solved by a rig of their own in a thread of their own, and wait while somebody drags. Frames in contact depend
on the ones before; so all are solved in order.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from pliant.app.studio.worker import Job, Worker
from pliant.engines.blend import Blendshapes
from pliant.engines.blend.app.scene import BlendScene

MEMORY = 256 << 20
"""Bytes of frames in double precision; longer clips are kept in single, which is what pages show."""


class Ahead:
    """The frames of a scene's clip, as far as they are solved.

    rig: is copied. came: called with those that are and how many there will be, before the first and after each; never
    with those of a clip that another has taken the place of. failed: called with what went wrong.
    """

    def __init__(
        self, rig: Blendshapes, came: Callable[[list[Any], int], None], failed: Callable[[Exception], None]
    ) -> None:
        self._came = came
        self._telling = threading.RLock()  # while it is told what came, no other clip is begun
        self._rig: Blendshapes = pickle.loads(pickle.dumps(rig))
        self._quiet = threading.Event()
        self._quiet.set()
        self._worker = Worker(failed, lambda lane: None)
        self.frames: list[Any] = []

    def start(self, scene: BlendScene) -> None:
        """Solve the frames of a scene, instead of those of the one before."""
        frames: list[Any] = []
        with self._telling:
            self.frames = frames
            self._came(frames, len(scene))
        self._worker.ask("frames", lambda job: self._solve(job, scene, frames))

    def wait(self, waiting: bool) -> None:
        """Have it wait for something more urgent, or go on."""
        (self._quiet.clear if waiting else self._quiet.set)()

    def idle(self, timeout: float) -> bool:
        """Wait until all frames are solved; whether that came about in time."""
        return self._worker.idle(timeout)

    def close(self) -> None:
        """End it; nothing comes any more."""
        with self._telling:
            self.frames = []
        self._quiet.set()
        self._worker.close()

    def _solve(self, job: Job, scene: BlendScene, frames: list[Any]) -> None:
        def watch(*_: Any) -> None:
            self._quiet.wait()
            job.check()

        watch()
        kind = np.float64 if len(scene) * scene.shapes.base.points.nbytes <= MEMORY else np.float32
        for pose in scene.poses(self._rig, watch=watch):
            points = pose.points.astype(kind, copy=False)
            with self._telling:
                if frames is not self.frames:
                    return
                frames.append(points)
                self._came(frames, len(scene))
            watch()
