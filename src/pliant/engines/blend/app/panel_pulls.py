"""Vertices that are pulled: chosen by a click, dragged by a handle, or grabbed with the shift key pressed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.app.studio.desk import Document
from pliant.app.studio.viewport import HANDLE_COLOR, Phase
from pliant.core.topology import Floats
from pliant.engines.blend import LiveBlend, Pull
from pliant.engines.blend.app.panel_keys import SliderRow, clean

if TYPE_CHECKING:
    from pliant.engines.blend.app.panel import BlendPanel

BALL = 0.008
"""Radius of the ball that marks a pulled vertex, over the diagonal."""


class PullHandles:
    """The pulls of a panel. changed: called when they have changed. led: called when sliders are to follow them."""

    def __init__(self, panel: BlendPanel, changed: Callable[[], None], led: Callable[[], None]) -> None:
        desk, drawn = panel.desk, panel.drawn
        self.desk, self.drawn, self._changed, self._led, self._act = desk, drawn, changed, led, panel.act
        self.radius = BALL * float(np.linalg.norm(np.ptp(drawn.points, axis=0)))
        self.tables: tuple[Document, ...] = ()
        """The scene's tables [[pulls]]; the worker reads them at any time, so they are replaced and never changed."""
        self._writing = threading.Lock()  # the page's loop and the worker both replace them
        self._chosen: int | None = None  # a vertex that has a handle but is not pulled yet
        self._grabbed: int | None = None
        self._grip: Floats = np.zeros(3)  # where a ball was that is dragged
        self._buttons: dict[int, Any] = {}
        self.folder = desk.gui.add_folder("Pulls", expand_by_default=True)
        with self.folder:
            self._help = desk.gui.add_markdown("")
            hint = "What is dragged moves the sliders that lead there, with the least change, instead of being pulled"
            self._leads = desk.gui.add_checkbox("Sliders follow", False, hint=hint)
            self._all = desk.gui.add_button("Let go of everything", visible=False, hint="Remove all pulls")
        desk.on(self._all, self.clear)
        desk.on(self._leads, self.clear)
        self._show_help()

    def take(self, given: list[Document]) -> None:
        """Show what a scene has."""
        for entry in given:
            self._write(dict(entry))
            self._mark(entry["vertex"], entry.get("to", self.drawn.points[entry["vertex"]]), moves="to" in entry)
            self._list(entry["vertex"])
        self._show_help()

    def put(self, given: Sequence[Document]) -> None:
        """Have just these pulls."""
        now = {entry["vertex"]: entry for entry in self.tables}
        for vertex, entry in now.items():
            if entry not in given:
                self._forget(vertex)
        self._unmark_chosen()
        self.take([entry for entry in given if now.get(entry["vertex"]) != entry])

    @property
    def acting(self) -> tuple[Document, ...]:
        """Of these tables, those that pull the shape: none if the sliders follow."""
        return () if self._leads.value else self.tables

    def now(self) -> list[Pull]:
        """The pulls as the solver takes them."""
        return [Pull(entry["vertex"], to=entry.get("to"), force=entry.get("force")) for entry in self.acting]

    def followed(self, live: LiveBlend, row: SliderRow) -> SliderRow:
        """The sliders that lead where vertices are dragged; as they are if nothing is."""
        targets = {entry["vertex"]: entry["to"] for entry in self.tables if "to" in entry}
        return clean(live.drag(row, targets)) if targets and self._leads.value else row

    def let_sliders_be(self) -> None:
        """A visitor has moved one: they follow nothing until something is dragged again."""
        if self._leads.value:
            for entry in self.tables:
                self._forget(entry["vertex"])

    def clear(self) -> None:
        """Let go of everything."""
        for entry in self.tables:
            self._forget(entry["vertex"])
        self._unmark_chosen()
        self._changed()

    def release(self, vertex: int) -> None:
        """Let go of one."""
        if vertex == self._chosen:
            self._unmark_chosen()
        self._forget(vertex)
        self._changed()

    def refuse(self, pulls: Sequence[Pull]) -> None:
        """Let go of the last of these: it cannot be pulled."""
        if pulls:
            self._forget(int(pulls[-1].vertex))

    # What a visitor does

    def click(self, start: Floats, direction: Floats) -> None:
        """Choose the vertex that a ray meets."""
        self._act(lambda: self._pick(start, direction))

    def _pick(self, start: Floats, direction: Floats) -> None:
        vertex = self.drawn.vertex_hit(start, direction)
        if vertex is None or vertex in self._buttons:
            return
        self._unmark_chosen()
        self._chosen = vertex
        self._mark(vertex, self.drawn.points[vertex])
        self._show_help()
        self.desk.hint("**Drag the arrows** that have appeared: the shape is pulled there.")

    def drag(self, start: Floats, end: Floats, phase: Phase) -> None:
        """Pull the vertex that was grabbed."""
        if phase == "start" or self._grabbed is None:
            self._grabbed = int(np.argmin(np.linalg.norm(self.drawn.points - start, axis=1)))
        self._pull(self._grabbed, end)
        if phase == "end":
            self._grabbed = None

    def _pull(self, vertex: int, position: Floats) -> None:
        self._write({"vertex": vertex, "to": [float(number) for number in position]})
        if vertex not in self._buttons:
            self._list(vertex)
        if self._chosen == vertex:
            self._chosen = None
        self._mark(vertex, position)
        self._show_help()
        (self._led if self._leads.value else self._changed)()

    def _write(self, pull: Document) -> None:
        """Have another pull, in place of one at the same vertex."""
        vertex = pull["vertex"]
        with self._writing:
            known = any(entry["vertex"] == vertex for entry in self.tables)
            kept = tuple(pull if entry["vertex"] == vertex else entry for entry in self.tables)
            self.tables = kept if known else (*kept, pull)

    # How it is shown

    def _mark(self, vertex: int, position: Any, *, moves: bool = True) -> None:
        name = f"/blend/pull {vertex}"
        stage = self.desk.stage
        if stage.has(f"{name}/ball"):
            stage.move(f"{name}/ball", position)
            if vertex == self._grabbed:
                stage.move(f"{name}/handle", position)
            return
        ball = stage.ball(f"{name}/ball", position, self.radius, color=HANDLE_COLOR)
        if moves:
            stage.handle(
                f"{name}/handle", position, lambda at, rotation, phase: self._pull(vertex, at), scale=0.2,
                title=f"Pull at {vertex}", remove=partial(self.release, vertex),
            )  # fmt: skip
            stage.on_click(ball, lambda start, direction: stage.selection.select(f"{name}/handle"))
            stage.on_drag(ball, partial(self._ball_dragged, vertex))

    def _ball_dragged(self, vertex: int, start: Floats, end: Floats, phase: Phase) -> None:
        """A pull is dragged by its ball."""
        stage, handle = self.desk.stage, f"/blend/pull {vertex}/handle"
        if phase == "start":
            stage.selection.select(handle)
            to = {pull["vertex"]: pull["to"] for pull in self.tables if "to" in pull}
            self._grip = np.array(to.get(vertex, self.drawn.points[vertex]))
        stage.move(handle, self._grip + end - start)
        self._pull(vertex, self._grip + end - start)

    def _unmark_chosen(self) -> None:
        if self._chosen is not None:
            self.desk.stage.remove(f"/blend/pull {self._chosen}")
            self._chosen = None
            self._show_help()

    def _forget(self, vertex: int) -> None:
        with self._writing:
            self.tables = tuple(entry for entry in self.tables if entry["vertex"] != vertex)
        button = self._buttons.pop(vertex, None)
        if button is not None:
            button.remove()
        self.desk.stage.remove(f"/blend/pull {vertex}")
        self._show_help()

    def _list(self, vertex: int) -> None:
        with self.folder:
            self._buttons[vertex] = self.desk.gui.add_button(f"Let go of vertex {vertex}")
        self.desk.on(self._buttons[vertex], lambda: self.release(vertex))

    def _show_help(self) -> None:
        self._all.visible = len(self.tables) > 1 or self._chosen is not None
        hold = "**Click** the shape and drag the arrows that appear, or hold **Shift** and drag the shape itself."
        stays = "The sliders follow." if self._leads.value else "What is pulled stays where it was dragged."
        self._help.content = stays if self.tables else hold
