"""A target's points in a deformed cage, and the Jacobians there.

Each point has rows of coordinates of its own (`Bound`). Of many points in Green coordinates, those that lie close
together for their distance from the cage share an expansion instead (`Expansion`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pliant.core.topology import Floats, Ints
from pliant.core.values import locked
from pliant.engines.transfer.bound import Bound
from pliant.engines.transfer.energies import Basis
from pliant.engines.transfer.expansion import MANY_POINTS, Expansion
from pliant.engines.transfer.green import not_inside, outside_error
from pliant.engines.transfer.options import Outside

GRADIENT_CHUNK = 1024
"""Points whose coordinates' gradients are computed at a time."""
MOST_GRADIENT_BYTES = 4 << 30
"""What of them is kept; the rest is computed for every batch of frames."""
FRAME_BATCH = 8
"""Frames for which the coordinates are read once."""
POINTS_NAME = "points of the target"


class TargetPoints:
    """Points (n, 3) bound to a cage."""

    def __init__(self, points: Floats, basis: Basis, *, outside: Outside) -> None:
        self.points, self.basis, self.allow = points, basis, outside == "allow"
        self.expansion = Expansion.of(points, basis) if basis.kind == "green" and len(points) >= MANY_POINTS else None
        self.single: Ints = np.arange(len(points)) if self.expansion is None else locked(self.expansion.without)
        if self.expansion is not None and not self.allow:
            stray = self.single[not_inside(points[self.single], basis.cage)]
            if len(stray):
                raise outside_error(points, stray, POINTS_NAME)
        own = points if self.expansion is None else points[self.single]
        self.coordinates = Bound.of(own, basis, outside=outside, what=POINTS_NAME)
        self.kept_gradients: dict[int, Bound] = {}

    def __len__(self) -> int:
        return len(self.points)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"kept_gradients": {}}

    def deform(self, cages: Floats) -> Iterator[Floats]:
        """(n, 3) in each of the deformed cages (frames, c, 3)."""
        for start in range(0, len(cages), FRAME_BATCH):
            some = cages[start : start + FRAME_BATCH]
            centres, single = some.mean(axis=1), np.empty((len(some), self.coordinates.count, 3, 1))
            states = self.coordinates.states(some - centres[:, None])
            self.coordinates.interpolate(states, centres, single)
            if self.expansion is None:
                yield from single[..., 0]
                continue
            for frame, terms in zip(single[..., 0], self.expansion.terms(states, centres), strict=True):
                out = np.empty((len(self), 3))
                out[self.single] = frame
                self.expansion.fill(terms, out)
                yield out

    def jacobians(self, cages: Floats, chosen: Ints | None = None) -> Floats:
        """(frames, n, 3, 3) ∂p'/∂p in deformed cages (frames, c, 3); of chosen points from rows of their own."""
        states = self.coordinates.states(cages - cages.mean(axis=1, keepdims=True))
        nowhere, numbers = np.zeros((len(states), 3)), self.single if chosen is None else chosen
        out = np.empty((len(states), len(self) if chosen is None else len(chosen), 3, 3))
        for start in range(0, len(numbers), GRADIENT_CHUNK):
            some = numbers[start : start + GRADIENT_CHUNK]
            gradients = self._gradients(start, some) if chosen is None else self._gradients_at(some)
            made = np.empty((len(states), gradients.count, 3, 3))
            gradients.interpolate(states, nowhere, made)
            out[:, some if chosen is None else slice(start, start + GRADIENT_CHUNK)] = made
        if chosen is None and self.expansion is not None:
            for frame, terms in zip(out, self.expansion.terms(states, nowhere), strict=True):
                self.expansion.fill_jacobians(terms, frame)
        return out

    def _gradients(self, start: int, numbers: Ints) -> Bound:
        """Of the points without an expansion from `start` on; kept for the next frame, while there is memory for it."""
        if start not in self.kept_gradients:
            found = self._gradients_at(numbers)
            if sum(kept.blocks.nbytes for kept in self.kept_gradients.values()) > MOST_GRADIENT_BYTES:
                return found
            self.kept_gradients[start] = found
        return self.kept_gradients[start]

    def _gradients_at(self, numbers: Ints) -> Bound:
        return Bound.gradients(self.points[numbers], self.basis, allow=self.allow)
