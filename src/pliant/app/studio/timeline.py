"""A timeline: scrub through frames, or play them in real time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from pliant.app.studio.worker import StoppedError
from pliant.core.clips import DEFAULT_FPS


class Timeline:
    """Frames from 0 to count - 1, drawn by a callback.

    gui: viser's, in whose open folder it is put. hear: wraps callbacks (`Viewport.hear`). failed: gets what playing
        raises.
    """

    def __init__(self, gui: Any, hear: Callable[..., Any], failed: Callable[[Exception], None]) -> None:
        self._failed = failed
        self.count, self.fps = 1, DEFAULT_FPS
        self.ready = 1
        """How many frames are there to be played; the others can be scrubbed to."""
        self._draw: Callable[[int], None] = lambda frame: None
        self._playing = threading.Event()
        self._lock = threading.RLock()  # one frame is drawn at a time, and none by playing after a scrub
        self._closed = False
        self.slider = gui.add_slider("Frame", min=0, max=1, step=1, initial_value=0, disabled=True)
        self.button = gui.add_button("Play", icon=None, disabled=True)
        self._own = -1  # the frame that playing has set, whose echo is not a scrub
        self.slider.on_update(hear(lambda _: self._scrubbed()))
        self.button.on_click(hear(lambda _: self._pause() if self._playing.is_set() else self.play()))
        threading.Thread(target=self._play, name="pliant-timeline", daemon=True).start()

    def show(self, count: int, fps: float, draw: Callable[[int], None], *, frame: int = 0) -> None:
        """Have so many frames, each shown by `draw`, and go to one of them, which is not drawn.

        Nothing of the clip before is drawn once this returns.
        """
        with self._lock:
            self.stop()
            self.count, self.fps, self._draw, self.ready = count, fps, draw, count
            self._own = frame
            self.slider.disabled = self.button.disabled = count <= 1
            self.slider.max = max(count - 1, 1)
            self.slider.value = frame

    def go_to(self, frame: int) -> None:
        """Go to a frame that is drawn already."""
        with self._lock:
            self._own = frame
            self.slider.value = frame

    @property
    def frame(self) -> int:
        """The one that is shown."""
        return min(int(self.slider.value), self.count - 1)  # a page may report late, of a clip that was longer

    @property
    def playing(self) -> bool:
        """Whether it plays."""
        return self._playing.is_set()

    def play(self) -> None:
        """Play from the frame that is shown, round and round."""
        if self.count > 1:
            self.button.label = "Pause"
            self._playing.set()

    def stop(self) -> None:
        """Stop playing: nothing is drawn by it once this returns."""
        with self._lock:
            self._playing.clear()
            self.button.label = "Play"

    def close(self) -> None:
        """End it."""
        self._closed = True
        self._playing.set()  # the thread that waits for it sees that it is closed

    def _pause(self) -> None:
        """Stop at the frame that is seen, and draw it once more, as well as it can be."""
        with self._lock:
            self.stop()
            self._own = self.frame
            self._draw(self.frame)

    def _scrubbed(self) -> None:
        with self._lock:
            if self.frame != self._own:
                self.stop()
                self._own = self.frame
                self._draw(self.frame)

    def _play(self) -> None:
        while not self._closed:
            if not self._playing.wait(0.5):
                continue
            began, first = time.perf_counter(), self.frame
            while self._playing.is_set() and not self._closed:
                self._step(first + int((time.perf_counter() - began) * self.fps))
                time.sleep(max(0.3 / self.fps, 0.005))

    def _step(self, along: int) -> None:
        """Draw the frame that lies so far along, round and round."""
        with self._lock:
            frame = along % max(min(self.count, self.ready), 1)
            if frame == self._own or not self._playing.is_set():
                return
            self._own, seen = frame, self.slider.value
            try:
                self._draw(frame)
                if self.slider.value == seen:  # else it was scrubbed meanwhile
                    self.slider.value = frame
            except StoppedError:  # its scene has been closed
                self._playing.clear()
            except Exception as error:
                self.stop()
                self._failed(error)
