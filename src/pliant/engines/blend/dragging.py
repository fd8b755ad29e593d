"""Direct manipulation: vertices are dragged, and sliders follow.

    min over Δw of  Σ_k |x_k(w + Δw) - y_k|² + λ |Δw|²,      bounds on w,

x_k being the dragged vertices and y_k where they are to be: of all sliders that lead there, those that change least. A
few Gauss–Newton steps, with the derivative (`pliant.engines.blend.jacobian`) of a shape nearby.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pliant.core.topology import Floats, Ints
from pliant.engines.blend.fit import bounded_step
from pliant.engines.blend.fitted_models import PhysicalModel

if TYPE_CHECKING:
    from pliant.engines.blend.blendshapes import Blendshapes

CHANGE_WEIGHT = 1e-3
"""λ, over the largest sum of squares by which one slider moves the vertices."""
DRAG_STEPS, DRAG_ACCURACY, DRAG_STALE = 4, 2e-3, 0.25
"""Steps at most; change of the sliders that ends them, and that from which the derivative is taken anew."""


class SliderDrag:
    """Sliders that follow dragged vertices of a rig; keeps the derivative from one drag to the next."""

    def __init__(self, rig: Blendshapes) -> None:
        self._model = PhysicalModel(rig)
        self._numbers = rig.sliders.numbers
        self._taken: Floats | None = None
        self._columns: Floats = np.zeros((0, 3, 0))

    def follow(self, row: Floats, vertices: Ints, positions: Floats, low: float, high: float) -> Floats:
        """(shapes,) the sliders for which vertices (k,) are at positions (k, 3) as nearly as they can, from `row`."""
        row = row.copy()
        change = np.zeros(len(self._numbers))
        x = self._model.points(row)
        for _ in range(DRAG_STEPS):
            if self._taken is None or np.abs(row - self._taken).max() > DRAG_STALE:
                (self._columns, _), self._taken = self._model.columns(row), row.copy()
            A = self._columns[vertices].reshape(-1, len(self._numbers))
            N = A.T @ A
            least = CHANGE_WEIGHT * max(float(np.diag(N).max(initial=0)), 1e-300)
            g = A.T @ (x[vertices] - positions).ravel() + least * change
            value = row[self._numbers]
            # A slider that is beyond the bounds already may stay there.
            limits = np.minimum(low, value) - value, np.maximum(high, value) - value
            step = bounded_step(N + least * np.eye(len(N)), g, *limits)
            row[self._numbers] += step
            change += step
            x = self._model.points(row)
            if np.abs(step).max(initial=0) <= DRAG_ACCURACY:
                break
        return row
