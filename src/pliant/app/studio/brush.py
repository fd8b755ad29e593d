"""A brush: dabs and strokes on a shape make balls in which it is stiffer or softer than elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pliant.app.studio.desk import Document
from pliant.app.studio.viewport import Drawn, Phase
from pliant.core.shapes import bounding_diagonal
from pliant.core.topology import Floats

if TYPE_CHECKING:
    from pliant.app.studio.panel import Panel

LARGEST_POWER = 2.0
"""Of 10: how much stiffer or softer a brush makes what it touches."""
DAB_SPACING = 0.5
"""Of the balls of a stroke, over their radius."""
UNPAINTED_COLOR, STIFF_COLOR, SOFT_COLOR = np.array([[0.55, 0.55, 0.55], [0.6, 0.04, 0.02], [0.03, 0.12, 0.6]])
"""Linear colours."""


class Brush:
    """Paints the tables [[regions]] of a panel's scene.

    regions: those that there are. put: has others. key: what they set; usual: its value elsewhere.
    """

    def __init__(
        self,
        panel: Panel,
        key: str,
        usual: Callable[[], float],
        regions: Callable[[], Sequence[Document]],
        put: Callable[[list[Document]], None],
    ) -> None:
        self._desk, self._act, self._key, self._usual = panel.desk, panel.act, key, usual
        self._regions, self._put = regions, put
        self._drawn: Drawn | None = None
        self._stroke: list[Document] = []
        gui, desk = panel.desk.gui, panel.desk
        with gui.add_folder("Paint", expand_by_default=False):
            hint = "Click the shape for a dab; hold shift and drag for a stroke"
            self._switch = gui.add_checkbox("Paint stiffness", False, hint=hint)
            self._size = gui.add_slider("Brush", 1, 30, 1, 8, hint="Its radius, in percent of the shape's diagonal")
            marks = ((-LARGEST_POWER, "soft"), (0.0, "as it was"), (LARGEST_POWER, "stiff"))
            hint = "1 is ten times as stiff as elsewhere, 2 a hundred times; less than 0 is softer"
            self._power = gui.add_slider("How stiff", -LARGEST_POWER, LARGEST_POWER, 0.25, 1.0, marks=marks, hint=hint)
            wash = gui.add_button("Wash it off", hint="Remove all that was painted")
        desk.on(self._switch, self._switched)
        desk.on(wash, lambda: self._put([table for table in self._regions() if not self._is_dab(table)]))

    @property
    def on(self) -> bool:
        """Whether clicks and strokes paint."""
        return bool(self._switch.value)

    def _is_dab(self, table: Document) -> bool:
        """Whether a region may have been painted: it is a ball, and sets nothing else."""
        return set(table) == {"centre", "radius", self._key}

    def take(self, drawn: Drawn) -> None:
        """Have a shape to paint on, which is at rest."""
        self._drawn, self._rest = drawn, drawn.points
        self._diagonal = bounding_diagonal(self._rest)
        self.show()

    def click(self, start: Floats, direction: Floats) -> None:
        """A dab where a ray meets the shape."""
        self._act(lambda: self._dab(start, direction))
        self._act(self._finish)

    def drag(self, start: Floats, end: Floats, phase: Phase) -> None:
        """A stroke, from where the shape was grabbed to where the pointer is."""
        eye = self._desk.stage.eye
        self._act(lambda: self._dab(eye, end - eye))
        if phase == "end":
            self._act(self._finish)

    def show(self) -> None:
        """Colour the shape by what is painted, while something may be."""
        if self._drawn is None:
            return
        power = np.zeros(len(self._rest))
        for table in (*self._regions(), *self._stroke):
            if self._is_dab(table):
                inside = np.linalg.norm(self._rest - table["centre"], axis=1) <= table["radius"]
                power[inside] = np.log10(table[self._key] / self._usual())
        share = np.clip(np.abs(power) / LARGEST_POWER, 0, 1)[:, None]
        colors = (1 - share) * UNPAINTED_COLOR + share * np.where(power[:, None] > 0, STIFF_COLOR, SOFT_COLOR)
        self._drawn.tint("paint", colors if self.on else None)

    def _switched(self) -> None:
        self._stroke = []
        self.show()
        if self.on:
            self._desk.hint("**Click the shape** to paint, or hold shift and drag. Red is stiffer, blue is softer.")

    def _dab(self, start: Floats, direction: Floats) -> None:
        """Paint where a ray meets the shape."""
        hit = None if self._drawn is None else self._drawn.hit(start, direction / np.linalg.norm(direction))
        if hit is None:
            return
        centre, radius = self._rest[hit.vertex], float(f"{self._size.value / 100 * self._diagonal:.6g}")
        last = self._stroke[-1]["centre"] if self._stroke else None
        if last is None or np.linalg.norm(centre - last) > DAB_SPACING * radius:
            value = float(f"{self._usual() * 10**self._power.value:.6g}")
            self._stroke.append({"centre": centre.tolist(), "radius": radius, self._key: value})
            self.show()

    def _finish(self) -> None:
        painted, self._stroke = [*self._regions(), *self._stroke], []
        if len(painted) > len(self._regions()):
            self._put(painted)
