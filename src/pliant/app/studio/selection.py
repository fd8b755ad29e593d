"""What is selected of all that can be moved: it alone has a handle on the stage, and numbers on the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pliant.core import rotations
from pliant.core.topology import Floats

Phase = Literal["start", "update", "end"]
WhenMoved = Callable[[Floats, Floats, Phase], None]
"""Gets position and rotation (w, x, y, z) in the world, and the phase of the drag."""
EULER_ORDER = "XYZ"
SHOWN_DIGITS = 7
"""Of the numbers that the page shows."""


@dataclass(eq=False)
class Movable:
    """Something that a handle moves."""

    title: str
    gizmo: Any
    moved: WhenMoved
    at: Floats
    rotation: Floats
    moves: bool
    rotates: bool
    chosen: Callable[[], None] | None
    """Called when a visitor selects it."""
    remove: Callable[[], None] | None
    """Called when it is to be deleted; None: it cannot be."""
    allowed: bool = True
    """Whether it can be moved now."""


class Selection:
    """Of one stage. tell: shows what is selected on the page. put: moves a handle, by its name."""

    def __init__(self, tell: Callable[..., None], put: Callable[[str, Floats, Floats], None]) -> None:
        self._tell, self._put = tell, put
        self.movables: dict[str, Movable] = {}
        """By the names of their handles."""
        self.name = ""
        """Of the one that is selected; "": none."""
        self._show()

    def add(self, name: str, movable: Movable, *, select: bool) -> None:
        """Have something further that can be selected."""
        self.movables[name] = movable
        if select or self.name == name or not self.name:
            self.select(name)
        else:
            self._show()

    def drop(self, name: str) -> None:
        """Something has been taken away: what cannot be deleted is selected instead."""
        if self.movables.pop(name, None) is not None:
            if self.name == name:
                self.name = next((key for key, one in reversed(self.movables.items()) if one.remove is None), "")
            self._show()

    def select(self, name: str, *, by_hand: bool = False) -> None:
        """Have something selected; nothing, if there is no such name."""
        found = self.movables.get(name)
        self.name = name if found is not None else ""
        self._show()
        if by_hand and found is not None and found.chosen is not None:
            found.chosen()

    def allow(self, name: str, allowed: bool) -> None:
        """Whether something can be moved now."""
        if (one := self.movables.get(name)) is not None:  # or it has gone just now
            one.allowed = allowed
            self._show()

    def follow(self, name: str, at: Floats, rotation: Floats | None) -> bool:
        """Something was moved; whether it is still there."""
        one = self.movables.get(name)
        if one is None:
            return False
        one.at, one.rotation = at, one.rotation if rotation is None else rotation
        if name == self.name:
            self._show_numbers()
        return True

    def put_at(self, at: Sequence[float], angles: Sequence[float]) -> None:
        """Have the selection at a position, rotated by angles in degrees: what a drag would do, by numbers."""
        one = self.movables.get(self.name)
        if one is None or not one.allowed or not np.isfinite([*at, *angles]).all():
            return
        position = np.array(at, dtype=np.float64) if one.moves else one.at
        rotation = rotations.from_euler(np.radians(angles), EULER_ORDER) if one.rotates else one.rotation
        self._put(self.name, position, rotation)
        phases: tuple[Phase, ...] = ("start", "update", "end")
        for phase in phases:
            one.moved(position, rotation, phase)

    def delete(self) -> None:
        """Delete the selection, if it can be."""
        one = self.movables.get(self.name)
        if one is not None and one.allowed and one.remove is not None:
            one.remove()

    def _show(self) -> None:
        for name, one in list(self.movables.items()):
            visible = one.allowed and name == self.name
            if one.gizmo.visible != visible:
                one.gizmo.visible = visible
        self._tell(objects=[[name, one.title] for name, one in list(self.movables.items()) if one.allowed])
        self._show_numbers()

    def _show_numbers(self) -> None:
        one = self.movables.get(self.name)
        if one is None or not one.allowed:
            self._tell(selection=None)
            return
        angles = np.degrees(rotations.to_euler(one.rotation, EULER_ORDER))
        self._tell(
            selection={
                "name": self.name, "at": _rounded(one.at) if one.moves else None,
                "angles": _rounded(angles) if one.rotates else None,
            }
        )  # fmt: skip


def _rounded(numbers: Any) -> list[float]:
    return [float(f"{number:.{SHOWN_DIGITS}g}") + 0.0 for number in numbers]
