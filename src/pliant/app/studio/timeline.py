"""A timeline: scrub and step through frames, play them in real time, and see and move keys. `Page` shows it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Protocol

from pliant.app.studio.page import Page
from pliant.app.studio.worker import StoppedError
from pliant.core.clips import DEFAULT_FPS

SLOWEST_PLAY, FASTEST_PLAY = 0.05, 8.0
"""Of the clip's own speed."""


class KeyEditor(Protocol):
    """What changes the keys of a clip, by their frames."""

    def set_key(self) -> None:
        """Have a key where the timeline stands, of what is seen."""

    def remove_key(self, frame: int) -> None:
        """Remove a key."""

    def move_key(self, frame: int, to: int, *, copy: bool = False) -> None:
        """Have a key at another frame, or a copy of it."""


class Timeline:
    """Frames from 0 to count - 1, drawn by a callback.

    page: where it is shown. hear: wraps callbacks (`Viewport.hear`). failed: gets what playing raises.
    """

    def __init__(self, page: Page, hear: Callable[..., Any], failed: Callable[[Exception], None]) -> None:
        self._page, self._failed = page, failed
        self.count, self.fps = 1, DEFAULT_FPS
        self._ready = 1
        self._frame = 0
        self._first, self._last = 0, 0
        self.speed, self.loop = 1.0, True
        self._draw: Callable[[int], None] = lambda frame: None
        self._editor: KeyEditor | None = None
        self._playing = threading.Event()
        self.lock = threading.RLock()
        """One frame is drawn at a time, and none by playing after a scrub."""
        self._closed = False
        actions = {
            "scrub": self.scrub, "play": self.toggle, "step": self.step, "end": self.go_to_end, "speed": self.set_speed,
            "loop": self.set_loop, "range": self.set_range, "set_key": self._set_key, "remove_key": self._remove_key,
            "move_key": self._move_key, "copy_key": lambda frame, to: self._move_key(frame, to, copy=True),
        }  # fmt: skip
        page.on(**{name: hear(lambda given, action=action: action(*given)) for name, action in actions.items()})
        page.show(frame=0, count=1, fps=self.fps, playing=False, speed=1.0, loop=True, range=[0, 0], ready=1)
        page.show(keys=[], editable=False)
        threading.Thread(target=self._play, name="pliant-timeline", daemon=True).start()

    def show(self, count: int, fps: float, draw: Callable[[int], None], *, frame: int = 0) -> None:
        """Have so many frames, each shown by `draw`, and go to one of them, which is not drawn.

        Nothing of the clip before is drawn once this returns.
        """
        with self.lock:
            self.stop()
            whole = (self._first, self._last) == (0, self.count - 1) or self._last >= count
            self.count, self.fps, self._draw = count, fps, draw
            self.ready = count
            if whole:
                self._first, self._last = 0, count - 1
            self._tell(count=count, fps=fps, range=[self._first, self._last])
            self.go_to(frame)

    def go_to(self, frame: int) -> None:
        """Go to a frame that is drawn already."""
        with self.lock:
            self._frame = frame
            self._tell(frame=frame)

    @property
    def ready(self) -> int:
        """How many frames are there to be played; the others can be scrubbed to."""
        return self._ready

    @ready.setter
    def ready(self, ready: int) -> None:
        self._ready = ready
        self._tell(ready=ready)

    @property
    def frame(self) -> int:
        """The one that is shown."""
        return min(self._frame, self.count - 1)

    @property
    def playing(self) -> bool:
        """Whether it plays."""
        return self._playing.is_set()

    def play(self) -> None:
        """Play from the frame that is shown, or from the first if that is the last."""
        if self.count > 1:
            with self.lock:
                if not self.loop and self.frame >= self._last:
                    self.go_to(self._first)
            self._tell(playing=True)
            self._playing.set()

    def stop(self) -> None:
        """Stop playing: nothing is drawn by it once this returns."""
        with self.lock:
            self._playing.clear()
            self._tell(playing=False)

    def close(self) -> None:
        """End it."""
        self._closed = True
        self._playing.set()  # the thread that waits for it sees that it is closed

    def _tell(self, **state: Any) -> None:
        if not self._closed:  # or the page shows another clip
            self._page.show(**state)

    # What a visitor does

    def toggle(self) -> None:
        """Play, or stop at the frame that is seen, and draw it once more, as well as it can be."""
        if not self._playing.is_set():
            self.play()
            return
        with self.lock:
            self.stop()
            self._draw(self.frame)

    def scrub(self, frame: int) -> None:
        """Go to a frame, and stop there."""
        with self.lock:
            other, plays = min(max(int(frame), 0), self.count - 1), self.playing
            self.stop()
            if other != self.frame or plays:
                self.go_to(other)
                self._draw(other)

    def step(self, by: int) -> None:
        """Go on by so many frames, round and round."""
        low, high = self._first, self._last
        self.scrub(low + (self.frame + int(by) - low) % (high - low + 1))

    def go_to_end(self, last: bool) -> None:
        """Go to the first or last frame that is played."""
        self.scrub(self._last if last else self._first)

    def set_speed(self, speed: float) -> None:
        """Play so many times as quickly as the clip says."""
        self.speed = min(max(float(speed), SLOWEST_PLAY), FASTEST_PLAY)
        self._tell(speed=self.speed)

    def set_loop(self, loop: bool) -> None:
        """Play round and round, or once."""
        self.loop = bool(loop)
        self._tell(loop=self.loop)

    def set_range(self, first: int, last: int) -> None:
        """Play from one frame to another."""
        low, high = sorted(min(max(int(end), 0), self.count - 1) for end in (first, last))
        self._first, self._last = low, high
        self._tell(range=[low, high])

    def played(self, step: int = 1) -> range:
        """Every so many of the frames that are played."""
        return range(self._first, self._last + 1, step)

    def drawn(self, frames: Iterable[int]) -> Generator[int, None, None]:
        """Draw one frame after the other; then the one that was seen before."""
        before = self.frame
        try:
            for frame in frames:
                self.scrub(frame)
                yield frame
        finally:
            self.scrub(before)

    # Keys

    def show_keys(self, frames: Iterable[float], editor: KeyEditor | None) -> None:
        """Show where keys are; without an editor they stay."""
        self._editor = editor
        keys: Sequence[int] = sorted({round(frame) for frame in frames})
        self._tell(keys=keys, editable=editor is not None)

    def _set_key(self) -> None:
        if self._editor is not None:
            self._editor.set_key()

    def _remove_key(self, frame: int) -> None:
        if self._editor is not None:
            self._editor.remove_key(int(frame))

    def _move_key(self, frame: int, to: int, *, copy: bool = False) -> None:
        to = min(max(int(to), 0), self.count - 1)
        if self._editor is not None and to != frame:
            self._editor.move_key(int(frame), to, copy=copy)

    # Playing

    def _play(self) -> None:
        while not self._closed:
            if not self._playing.wait(0.5):
                continue
            began, first, speed = time.perf_counter(), self._frame, self.speed
            while self._playing.is_set() and not self._closed and speed == self.speed:
                self._step(first + int((time.perf_counter() - began) * self.fps * speed))
                time.sleep(max(0.3 / self.fps / speed, 0.005))
        self._playing.clear()

    def _step(self, along: int) -> None:
        """Draw the frame that lies so far along, round and round or up to the last."""
        with self.lock:
            if self._closed or not self._playing.is_set():
                return
            low, high = self._first, max(min(self._last, self.count - 1, self.ready - 1), self._first)
            ends = not self.loop and along >= self._last
            frame = min(along, high) if ends or along <= high else low + (along - low) % (high - low + 1)
            if frame != self._frame:
                self.go_to(max(frame, low))
                try:
                    self._draw(self.frame)
                except StoppedError:  # its scene has been closed
                    self._playing.clear()
                except Exception as error:
                    self.stop()
                    self._failed(error)
            if ends and self.ready > self._last:
                self.stop()
