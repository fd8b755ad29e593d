"""Shapes and their derivatives by the sliders, as fitting sees them: linear blends, and equilibria.

Of the vertices that take part in a fit alone: those of 60 markers are few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pliant.core.topology import Floats, Ints
from pliant.engines.blend.equilibrium import SolveOptions
from pliant.engines.blend.jacobian import FreeDerivative, slider_chain

if TYPE_CHECKING:
    from pliant.engines.blend.blendshapes import Blendshapes

SHAPE_ACCURACY = 1e-5
"""Of the blended shapes."""
SLIGHT_MOTION = 1e-2
"""Motion by a slider, over its largest anywhere, up to which a vertex does not feel it."""

Columns = tuple[Floats, NDArray[np.bool_]]
"""(k, 3, sliders) the derivative of the vertices that take part, and (k, sliders) whether they feel a slider."""


class LinearModel:
    """Linear blending. vertices: (k,) that take part; all if not given."""

    constant = True
    """Its derivative."""

    def __init__(self, rig: Blendshapes, vertices: Ints | None = None) -> None:
        self.rig, points = rig, rig.shapes.points if vertices is None else rig.shapes.points[:, vertices]
        self._base, self._deltas = points[0], points[1:] - points[0]

    def points(self, row: Floats) -> Floats:
        """(k, 3) at sliders (shapes,)."""
        return self._base + np.einsum("s,snk->nk", self.rig.weights(row)[1:], self._deltas)

    def columns(self, row: Floats) -> Columns:
        """At sliders (shapes,)."""
        columns = np.einsum("snk,sm->nkm", self._deltas, slider_chain(self.rig, row), optimize=True)
        return columns, np.ones(columns[:, 0].shape, bool)


class PhysicalModel:
    """The rig's equilibria. vertices: (k,) that take part; all if not given."""

    constant = False

    def __init__(self, rig: Blendshapes, vertices: Ints | None = None) -> None:
        self.rig = rig
        self._vertices = np.arange(len(rig.shapes.base.points)) if vertices is None else vertices
        self._last: tuple[Floats, Floats] | None = None

    def points(self, row: Floats) -> Floats:
        """(k, 3) at sliders (shapes,)."""
        return self.shape(row)[self._vertices]

    def shape(self, row: Floats) -> Floats:
        """(n, 3) all vertices at sliders (shapes,)."""
        return self.rig.statics.surface(*reversed(self._solved(row)))

    def columns(self, row: Floats) -> Columns:
        """At sliders (shapes,)."""
        rig = self.rig
        moved = FreeDerivative(rig.body, *self._solved(row)).surface_columns() @ slider_chain(rig, row)
        size, chosen = np.abs(moved).max(axis=1), rig._weld.index[self._vertices]
        return moved[chosen], size[chosen] > SLIGHT_MOTION * size.max(axis=0)

    def _solved(self, row: Floats) -> tuple[Floats, Floats]:
        """Weights of the shapes, and the network's equilibrium (n, 3); the last is kept."""
        rig, w = self.rig, self.rig.weights(row)
        if self._last is None or not np.array_equal(self._last[0], w):
            start, options = rig.statics.start(w, SHAPE_ACCURACY), SolveOptions(accuracy=SHAPE_ACCURACY)
            self._last = w, rig.statics.outcome(rig.body.network, w, start, rig.body.rest(w), None, options).x
        return self._last


FittedModel = LinearModel | PhysicalModel
