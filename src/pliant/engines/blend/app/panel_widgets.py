"""Widgets of blending: a slider for each shape, a page of them at a time if they are many, and keys on the timeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pliant.app.studio.desk import Desk
from pliant.core.clips import MOST_FRAMES
from pliant.engines.blend.app.panel_keys import ClipView, Keys, SliderRow, clean

if TYPE_CHECKING:
    from pliant.engines.blend.app.panel import BlendPanel

PAGE = 14
"""Sliders that are shown at a time."""
BEYOND = 0.5
"""How far sliders go below 0 and above 1, if they may."""


class Sliders:
    """The sliders of shapes. moved: called when a visitor has moved one."""

    def __init__(self, desk: Desk, names: Sequence[str], base: str, moved: Callable[[], None]) -> None:
        self.desk, self._moved = desk, moved
        self._known: SliderRow = dict.fromkeys(names, 0.0)  # what they are; an update to the same is an echo of our own
        # They are not put elsewhere while it is told that a visitor has moved one. That stops the timeline, and its
        # frames put them: with a lock of their own, both would wait for each other.
        self._setting = desk.timeline.lock
        self._sliders: dict[str, Any] = {}
        with desk.gui.add_folder("Shapes", expand_by_default=True):
            desk.gui.add_markdown(f"All at 0: **{base}**.")
            if len(names) > PAGE:
                self._pages(names)
            for name in names:
                slider = desk.gui.add_slider(
                    name, min=0.0, max=1.0, step=0.01, initial_value=0.0, hint="How much of this shape there is"
                )
                self._sliders[name] = slider
                desk.on(slider, partial(self._changed, name))
            self._beyond = desk.gui.add_checkbox("Beyond the shapes", False, hint="Sliders from -0.5 to 1.5")
            desk.on(self._beyond, self._widen)
            desk.on(desk.gui.add_button("All sliders to 0", hint="The first shape, as it is in its file"), self._reset)
        self._show_page()

    @property
    def values(self) -> SliderRow:
        """Those that are not 0."""
        return clean(self._known)

    def put(self, row: Mapping[str, float], wanted: Callable[[], bool] = lambda: True) -> bool:
        """Move them, as if of themselves, unless that is not wanted any more; whether it was.

        Those that are there already are not touched: a visitor may just be about to move one.
        """
        with self._setting:
            if not wanted():
                return False
            for name, slider in self._sliders.items():
                value = float(row.get(name, 0.0))
                if value != self._known[name]:
                    self._known[name] = value
                    self._show(slider, value)
            return True

    def _show(self, slider: Any, value: float) -> None:
        if not slider.min <= value <= slider.max:
            slider.min, slider.max = min(slider.min, value), max(slider.max, value)
        slider.value = value

    def _changed(self, name: str) -> None:
        with self._setting:
            value = float(self._sliders[name].value)
            echo = value == self._known[name]
            self._known[name] = value
            if not echo:
                self._moved()

    def _reset(self) -> None:
        with self._setting:
            self.put({})
            self._moved()

    def _widen(self) -> None:
        more = BEYOND if self._beyond.value else 0.0
        for slider in self._sliders.values():
            slider.min, slider.max = min(-more, slider.value), max(1 + more, slider.value)

    # Many

    def _pages(self, names: Sequence[str]) -> None:
        gui = self.desk.gui
        starts = range(0, len(names), PAGE)
        self._find = gui.add_text("Find a shape", "")
        self._page = gui.add_dropdown("Sliders", tuple(f"{k + 1} to {min(k + PAGE, len(names))}" for k in starts))
        for widget in (self._find, self._page):
            self.desk.on(widget, self._show_page)

    def _show_page(self) -> None:
        """Show those that are looked for, or those of the page."""
        names = list(self._sliders)
        if len(names) <= PAGE:
            return
        wanted = self._find.value.strip().lower()
        first = int(self._page.value.partition(" ")[0]) - 1
        page = [name for name in names if wanted in name.lower()] if wanted else names[first : first + PAGE]
        for name, slider in self._sliders.items():
            slider.visible = name in page[: 3 * PAGE]


WHOLE_TIMELINE, SEEN_POSE = "The whole timeline", "The pose that is seen"
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
            here = panel.desk.timeline
            remove, forget = lambda: panel.remove_key(here.frame), panel.forget_keys
            self._remove = button("Remove the key here", remove, visible=False, hint="The one at the timeline's frame.")
            self._forget = button(
                "Forget all keys", forget, visible=False, hint="The clip goes through all shapes again."
            )
            hint = "How long the clip is; keys stay at their share of it."
            self._frames = gui.add_number("Frames in all", view.frames, min=1, max=MOST_FRAMES, step=1, hint=hint)
            self._what = gui.add_dropdown(
                "What is saved",
                (WHOLE_TIMELINE, SEEN_POSE),
                initial_value=WHOLE_TIMELINE,
                visible=panel._posable,
                hint="Also what is exported.",
            )
            self._solved = gui.add_markdown("")
        self._widgets.on(self._frames, lambda frames: panel.set_frames(int(frames)))
        self._widgets.on(self._what, lambda what: panel.save_what(what == WHOLE_TIMELINE))

    def show(self, view: ClipView, frame: int) -> None:
        """Bring them up to date."""
        keys = view.keys
        self._widgets.show(self._frames, view.frames)
        self._widgets.show(self._what, WHOLE_TIMELINE if view.whole else SEEN_POSE)
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
