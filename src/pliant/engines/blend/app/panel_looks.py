"""What is shown beside the shape and on it: linear blending as a ghost, and a map of how far edges are distorted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pliant.app.studio.desk import Desk
from pliant.app.studio.viewport import GHOST_COLOR, Drawn, heat
from pliant.core.clips import Shapes
from pliant.core.topology import Floats
from pliant.geometry.quality.measures import SMALLEST_ELEMENT, edge_lengths, edges_of, ratio

DARKEST = 0.3
"""Distortion from which on the map is darkest."""
GHOST_OFFSET = 1.15
"""How far the ghost is from the shape, in widths of its box."""
GHOST_OPACITY = 0.55


class Distortion:
    """How far edges are from the lengths that sliders ask for: the blend of their lengths in the shapes."""

    def __init__(self, shapes: Shapes) -> None:
        self.edges = edges_of(shapes.base)
        self._lengths = edge_lengths(shapes.base)
        self._rest = self._lengths(shapes.points)
        self._smallest = SMALLEST_ELEMENT * shapes.base.diagonal
        count = len(shapes.base.points)
        self._around = np.maximum(np.bincount(self.edges.ravel(), minlength=count), 1)

    def of_edges(self, points: Floats, weights: Floats) -> Floats:
        """(e,) length over what it should be, less 1; 0 where it should have none."""
        off: Floats = ratio(self._lengths(points), weights @ self._rest, self._smallest) - 1
        return np.nan_to_num(off)

    def at_vertices(self, off: Floats) -> Floats:
        """(n,) the root-mean-square of what the edges at each vertex have."""
        squares = np.repeat(off**2, 2)
        return np.sqrt(np.bincount(self.edges.ravel(), squares, minlength=len(self._around)) / self._around)


class Looks:
    """The ghost and the map. changed: called when one is switched on or off."""

    def __init__(self, desk: Desk, drawn: Drawn, shapes: Shapes, changed: Callable[[], None]) -> None:
        self.desk, self.drawn, self.shapes = desk, drawn, shapes
        self._distortion: Distortion | None = None
        self._ghost: Drawn | None = None
        stage = desk.stage
        across = stage.world((1.0, 0.0, 0.0)) - stage.world((0.0, 0.0, 0.0))
        across /= -np.linalg.norm(across)  # away from the camera, which looks from the right
        widest = np.ptp(shapes.points @ across, axis=1).max()
        self._aside: Floats = GHOST_OFFSET * float(widest) * across
        with desk.gui.add_folder("What is shown", expand_by_default=True):
            self.ghost = desk.gui.add_checkbox("Linear blending beside it", False, hint="What other tools would give")
            self.map = desk.gui.add_checkbox("Where it is distorted", False, hint="In colours, by edges")
            self._legend = desk.gui.add_markdown("", visible=False)
        for box in (self.ghost, self.map):
            desk.on(box, changed)

    def show(self, points: Floats, weights: Floats) -> None:
        """Bring it up to date with a shape and its full weights."""
        linear = np.einsum("s,snk->nk", weights, self.shapes.points) + self._aside if self.ghost.value else None
        self._show_ghost(linear)
        if self.map.value:
            self._show_map(points, weights)
        else:
            self._without_map()

    def _show_ghost(self, linear: Floats | None) -> None:
        if linear is None:
            self.desk.stage.show("/blend/linear", False)
        elif self._ghost is None:
            base = self.shapes.base.with_points(linear)
            self._ghost = self.desk.stage.shape("/blend/linear", base, color=GHOST_COLOR, opacity=GHOST_OPACITY)
        else:
            self._ghost.move(linear)
            self.desk.stage.show("/blend/linear", True)

    def _show_map(self, points: Floats, weights: Floats) -> None:
        if self._distortion is None:
            self._distortion = Distortion(self.shapes)
        measure = self._distortion
        ours = measure.of_edges(points, weights)
        self.drawn.tint("map", heat(measure.at_vertices(ours) / DARKEST))
        theirs = measure.of_edges(np.einsum("s,snk->nk", weights, self.shapes.points), weights)
        if self._ghost is not None:
            self._ghost.tint("map", heat(measure.at_vertices(theirs) / DARKEST))
            self._ghost.fade(None)
        self._legend.content = legend(ours, theirs)
        self._legend.visible = True

    def _without_map(self) -> None:
        if self._legend.visible:
            self._legend.visible = False
            self.drawn.tint("map", None)
            if self._ghost is not None:
                self._ghost.tint("map", None)
                self._ghost.fade(GHOST_OPACITY)


def legend(ours: Floats, theirs: Floats) -> str:
    """What the colours mean, and how far edges are distorted."""

    def summary(off: Floats) -> str:
        return f"{_percent(np.sqrt(np.mean(off**2)))} on average, {_percent(np.abs(off).max(initial=0.0))} at worst"

    yellow, orange, red = (_percent(DARKEST * share) for share in (0.25, 0.5, 1.0))
    scale = f"pale 0 %, yellow {yellow}, orange {orange}, dark red {red} and more"
    return (
        f"Colours: how far edges are from the lengths that the sliders ask for ({scale}).\n\n"
        f"This shape: {summary(ours)}.\n\nLinear blending: {summary(theirs)}."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"
