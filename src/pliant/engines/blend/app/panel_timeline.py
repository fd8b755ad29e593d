"""Widgets for keys on the timeline: set at the timeline's frame, removed again, and how many frames there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pliant.core.clips import MOST_FRAMES
from pliant.engines.blend.app.panel_keys import Keys, View

if TYPE_CHECKING:
    from pliant.engines.blend.app.panel import BlendPanel

WHOLE, POSE = "The whole timeline", "The pose that is seen"
MOST_KEYS_LISTED = 12
"""Keys that are listed."""


class KeyWidgets:
    """Those of a panel."""

    def __init__(self, panel: BlendPanel) -> None:
        self._widgets, gui, view = panel.widgets, panel.desk.gui, panel.view
        button = panel.widgets.button
        with gui.add_folder("Keys on the timeline"):
            self._keys = gui.add_markdown("")
            button("Set a key here", panel.set_key, hint="Puts the sliders on the timeline, at its frame.")
            self._remove = button("Remove the key here", panel.remove_key, visible=False)
            self._forget = button("Forget all keys", panel.forget_keys, visible=False)
            self._frames = gui.add_number("Frames in all", view.frames, min=1, max=MOST_FRAMES, step=1)
            self._what = gui.add_dropdown("What is saved", (WHOLE, POSE), initial_value=WHOLE, visible=panel._posable)
            self._solved = gui.add_markdown("")
        self._widgets.on(self._frames, lambda frames: panel.set_frames(int(frames)))
        self._widgets.on(self._what, lambda what: panel.save_what(what == WHOLE))

    def show(self, view: View, frame: int) -> None:
        """Bring them up to date."""
        keys = view.keys
        self._widgets.show(self._frames, view.frames)
        self._widgets.show(self._what, WHOLE if view.whole else POSE)
        self._remove.visible = keys is not None and len(keys.at) > 1 and keys.has(frame)
        self._forget.visible = keys is not None
        self._keys.content = _listed(keys)

    def solved(self, done: int, count: int) -> None:
        """Say how many frames are solved."""
        every = f"All {count} frames are solved: press **Play**."
        self._solved.content = every if done >= count else f"{done} of {count} frames are solved ..."

    def outdated(self) -> None:
        """Say that frames have to be solved anew."""
        self._solved.content = "The clip has changed: press **Play** to solve it anew."


def _listed(keys: Keys | None) -> str:
    if keys is None:
        return "The timeline goes from the first shape through all to the last."
    frames = ", ".join(f"{at:g}" for at in keys.at[:MOST_KEYS_LISTED])
    more = " ..." if len(keys.at) > MOST_KEYS_LISTED else ""
    return f"Keys at {'frame' if len(keys.at) == 1 else 'frames'} {frames}{more}."
