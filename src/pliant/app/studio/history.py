"""What was done in a window: states of its panel, each with a name, to go back and forth between.

A state is a table of plain values (`Panel.state`). One that is noted replaces those that were undone before it. States
that differ from the one before them in the same way are one drag, if they come while the pointer is pressed or follow
each other within `DRAG` seconds.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

State = dict[str, Any]
"""`scene`: the document. Others: what the panel keeps beside it."""
MOST_UNDOS = 200
"""That can be undone."""
DRAG = 0.8
"""Seconds between two changes of one drag."""


COUNTED = (" added", " removed")
"""Ends of labels of what is no drag."""


@dataclass(frozen=True)
class Edit:
    """A state, and what led to it."""

    label: str
    state: State
    noted: float
    """Seconds on a clock."""


class History:
    """The steps of one window, and the one that is shown."""

    def __init__(self) -> None:
        self.steps: list[Edit] = []
        self.at = -1
        self._saved: State | None = None
        self._sealed = self._pressed = False
        self._called = ""  # what comes next
        self._released = 0.0  # on the clock

    @property
    def labels(self) -> list[str]:
        """Of all steps, the oldest first."""
        return [step.label for step in self.steps]

    @property
    def unsaved(self) -> bool:
        """Whether the scene is another than the one that was opened or saved last."""
        return self.at >= 0 and self.steps[self.at].state["scene"] != self._saved

    def note(self, label: str, state: State) -> None:
        """Have another state; if it is the one that is shown, nothing came of what was called so."""
        label, now = self._called or label, time.monotonic()
        if self.at >= 0:
            last = self.steps[self.at]
            if last.state == state:
                self._called = ""
                return
            late = not self._pressed and now - max(last.noted, self._released) > DRAG
            single = self._sealed or label.endswith(COUNTED) or late
            if not single and last.label == label and self.at == len(self.steps) - 1 > 0:
                self.at -= 1
        self.steps = [*self.steps[: self.at + 1], Edit(label, state, now)][-MOST_UNDOS:]
        self.at, self._sealed, self._called = len(self.steps) - 1, False, ""

    def seal(self, called: str = "") -> None:
        """What comes next is no part of a drag: a button was pressed, which is called so."""
        self._sealed, self._called = True, called

    def press(self, pressed: bool) -> None:
        """The pointer is pressed, which begins another drag, or let go."""
        if pressed:
            self.seal()
        elif self._pressed:
            self._released = time.monotonic()
        self._pressed = pressed

    def amend(self, state: State) -> None:
        """Have the state that is shown, completed by its panel, in place of the one that was noted."""
        last = self.steps[self.at]
        if self._saved == last.state["scene"]:
            self._saved = state["scene"]
        self.steps[self.at] = Edit(last.label, state, last.noted)

    def saved(self, scene: Any = None) -> None:
        """The scene that is shown, or another, is written somewhere."""
        self._saved = scene or self.steps[self.at].state["scene"]

    def go(self, to: int) -> State | None:
        """The state of a step, which is shown from now on; None if there is no such step."""
        if not 0 <= to < len(self.steps):
            return None
        self.at = to
        return self.steps[to].state


def difference(before: State, after: State, names: Mapping[str, str]) -> str:
    """What distinguishes two states, in a word or two. names: of keys, of which the first tell most."""
    old, new = ({**state["scene"], **{key: state[key] for key in names if key in state}} for state in (before, after))
    for key in {**names, **old, **new}:
        if old.get(key) != new.get(key):
            label = _written(key, names)
            return _named(label[:1].upper() + label[1:], old.get(key), new.get(key), names)
    return "Change"


def _written(key: str, names: Mapping[str, str]) -> str:
    return names.get(key, key.replace("_", " "))


def _named(label: str, old: Any, new: Any, names: Mapping[str, str]) -> str:
    if isinstance(old or {}, dict) and isinstance(new or {}, dict):
        before, after = old or {}, new or {}
        inner = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        if len(inner) == 1:
            within = _named("", before.get(inner[0]), after.get(inner[0]), names)
            which = _written(inner[0], names)
            return label + (within if within in COUNTED else "" if which == label.lower() else f": {which}")
    counts = [len(value) for value in (old or [], new or []) if isinstance(value, (list, tuple))]
    return label + (COUNTED[counts[1] < counts[0]] if len(counts) == 2 and counts[0] != counts[1] else "")
