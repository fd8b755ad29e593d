"""Keys on the timeline: set where the sliders are good, removed again, and how many frames there are."""

from __future__ import annotations

import threading
from typing import Any, Protocol

from pliant.app.studio.panel import Desk
from pliant.core.clips import MOST_FRAMES
from pliant.engines.blend.app.panel_keys import Keys

WHOLE, POSE = "The whole timeline", "The pose that is seen"
MOST_TOLD = 12
"""Keys that are listed."""


class Wishes(Protocol):
    """What the widgets ask for; the panel does it."""

    def set_key(self) -> None:
        """Put the sliders as a key where the timeline stands."""

    def remove_key(self) -> None:
        """Take away the key where the timeline stands."""

    def forget_keys(self) -> None:
        """Go through all shapes again."""

    def last(self, frames: int) -> None:
        """Have so many frames."""

    def save_what(self, whole: bool) -> None:
        """Save and export the whole timeline, or the pose alone."""


class KeyWidgets:
    """Made in the folder that is open."""

    def __init__(self, desk: Desk, wishes: Wishes, frames: int, *, posable: bool) -> None:
        self.desk = desk
        gui = desk.gui
        with gui.add_folder("Keys on the timeline", expand_by_default=True):
            self._keys = gui.add_markdown("")
            self._set = gui.add_button("Set a key here", hint="Puts the sliders on the timeline, where it stands.")
            self._remove = gui.add_button("Remove the key here", visible=False)
            self._forget = gui.add_button("Forget all keys", visible=False)
            self._frames = gui.add_number("Frames in all", frames, min=1, max=MOST_FRAMES, step=1)
            self._what = gui.add_dropdown("What is saved", (WHOLE, POSE), initial_value=WHOLE, visible=posable)
            self._solved = gui.add_markdown("")
        self._known: tuple[int, str] = frames, WHOLE  # an update to the same is an echo of our own
        self._setting = threading.RLock()  # an echo must not see one of them changed without the other
        desk.on(self._set, wishes.set_key)
        desk.on(self._remove, wishes.remove_key)
        desk.on(self._forget, wishes.forget_keys)
        desk.on(self._frames, lambda: self._lasting(wishes))
        desk.on(self._what, lambda: self._saving(wishes))

    def tell(self, keys: Keys | None, frame: int, frames: int, *, whole: bool) -> None:
        """Bring them up to date."""
        with self._setting:
            self._known = frames, WHOLE if whole else POSE
            _put(self._frames, frames)
            _put(self._what, self._known[1])
        self._remove.visible = keys is not None and len(keys.at) > 1 and keys.has(frame)
        self._forget.visible = keys is not None
        self._keys.content = _listed(keys)

    def solved(self, done: int, count: int) -> None:
        """Tell how many frames are solved."""
        every = f"All {count} frames are solved: press **Play**."
        self._solved.content = every if done >= count else f"{done} of {count} frames are solved ..."

    def outdated(self) -> None:
        """Tell that frames have to be solved anew."""
        self._solved.content = "The clip has changed: press **Play** to solve it anew."

    def _lasting(self, wishes: Wishes) -> None:
        with self._setting:
            frames, echo = int(self._frames.value), int(self._frames.value) == self._known[0]
        if not echo:
            wishes.last(frames)

    def _saving(self, wishes: Wishes) -> None:
        with self._setting:
            whole, echo = self._what.value == WHOLE, self._what.value == self._known[1]
            self._known = self._known[0], self._what.value
        if not echo:
            wishes.save_what(whole)


def _put(widget: Any, value: Any) -> None:
    if widget.value != value:
        widget.value = value


def _listed(keys: Keys | None) -> str:
    if keys is None:
        return "The timeline goes from the first shape through all to the last."
    told = ", ".join(f"{at:g}" for at in keys.at[:MOST_TOLD])
    return f"Keys at {'frame' if len(keys.at) == 1 else 'frames'} {told}{' ...' if len(keys.at) > MOST_TOLD else ''}."
