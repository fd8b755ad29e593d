"""A target's points in a deformed cage, and the Jacobians there.

Each point has rows of coordinates of its own (`Bound`). Of many points in Green coordinates, those that lie close
together for their distance from the cage share an expansion instead (`Expansion`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import InputError
from pliant.core.topology import Floats, Ints
from pliant.core.values import Buffers, locked
from pliant.engines.transfer.bound import Bound
from pliant.engines.transfer.energies import Basis
from pliant.engines.transfer.expansion import MANY_POINTS, Expansion
from pliant.engines.transfer.green import not_inside, outside_error
from pliant.engines.transfer.options import Outside
from pliant.geometry.splats import JACOBIAN_BLOCK, FillJacobians, all_jacobians
from pliant.native import in_blocks

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
        self._buffers = Buffers()

    def __len__(self) -> int:
        return len(self.points)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"kept_gradients": {}}

    def deform(self, cages: Floats) -> Iterator[Floats]:
        """(n, 3) in each of the deformed cages (frames, c, 3)."""
        for start in range(0, len(cages), FRAME_BATCH):
            some = cages[start : start + FRAME_BATCH]
            centres, states = self._states(some)
            single, all_terms = self._single(states, centres), self._terms(states)
            for frame, centre, terms in zip(single, centres, all_terms, strict=True):
                yield self._placed(frame, centre, terms, np.empty)

    def jacobians(self, cages: Floats, chosen: Ints | None = None) -> Floats:
        """(frames, n, 3, 3) ∂p'/∂p in deformed cages (frames, c, 3); of chosen points from rows of their own."""
        if chosen is not None:
            return self._own_jacobians(self._states(cages)[1], chosen, self._gradients_at)
        out = np.empty((len(cages), len(self), 3, 3))
        for frame, fill in zip(out, self.jacobian_blocks(cages), strict=True):
            all_jacobians(fill, frame)
        return out

    def jacobian_blocks(self, cages: Floats) -> Iterator[FillJacobians]:
        """The Jacobians in each of the deformed cages (frames, c, 3), a block of points at a time."""
        _, states = self._states(cages)
        return self._jacobian_blocks(states, self._terms(states))

    def frame(self, cage: Floats) -> tuple[Floats, FillJacobians]:
        """(n, 3) in a deformed cage (c, 3), and the Jacobians: what they share is computed once."""
        centres, states = self._states(cage[None])
        (terms,) = self._terms(states)
        (fill,) = self._jacobian_blocks(states, [terms])
        return locked(self._placed(self._single(states, centres)[0], centres[0], terms, self._buffers.empty)), fill

    def _states(self, cages: Floats) -> tuple[Floats, NDArray[np.float32]]:
        """(frames, 3) centres of cages (frames, c, 3), and (frames, c + f, 3) their states about these."""
        centres = cages.mean(axis=1)
        return centres, self.coordinates.states(cages - centres[:, None])

    def _single(self, states: NDArray[np.float32], centres: Floats) -> Floats:
        """(frames, k, 3) the points without an expansion."""
        out = np.empty((len(states), self.coordinates.count, 3, 1))
        self.coordinates.interpolate(states, centres, out)
        return out[..., 0]

    def _terms(self, states: NDArray[np.float32]) -> Iterable[Floats | None]:
        """Of the expansions, for each state, if there are any."""
        return [None] * len(states) if self.expansion is None else self.expansion.terms(states)

    def _placed(
        self, single: Floats, centre: Floats, terms: Floats | None, empty: Callable[[tuple[int, int]], Floats]
    ) -> Floats:
        """(n, 3) all points, from those without an expansion (k, 3) and the terms of the others; empty: new memory."""
        if self.expansion is None or terms is None:
            return single
        out = empty((len(self), 3))
        out[self.single] = single
        self.expansion.fill(terms, centre, out)
        return out

    def _jacobian_blocks(
        self, states: NDArray[np.float32], all_terms: Iterable[Floats | None]
    ) -> Iterator[FillJacobians]:
        single = self._own_jacobians(states, self.single, self._gradients)
        for own, terms in zip(single, all_terms, strict=True):
            yield self._fill_jacobians(own, terms)

    def _fill_jacobians(self, own: Floats, terms: Floats | None) -> FillJacobians:
        """From Jacobians (k, 3, 3) of the points without an expansion, and the terms of the others."""
        slopes = None if self.expansion is None or terms is None else self.expansion.slopes(terms)

        def fill(out: Floats, begin: int) -> None:
            end = begin + len(out)
            cut = begin % JACOBIAN_BLOCK or (end % JACOBIAN_BLOCK and end != len(self))
            if cut or not 0 <= begin <= end <= len(self):
                whole = f"whole blocks of {JACOBIAN_BLOCK}, the last one up to {len(self)}"
                raise InputError(f"got room for the Jacobians of points {begin} to {end}; expected {whole}")
            first, last = np.searchsorted(self.single, (begin, end))
            out[self.single[first:last] - begin] = own[first:last]
            if self.expansion is not None and slopes is not None:
                self.expansion.fill_jacobians(slopes, out, begin)

        return fill

    def _own_jacobians(self, states: NDArray[np.float32], numbers: Ints, gradients: Callable[[Ints], Bound]) -> Floats:
        """(frames, k, 3, 3) of numbered points, from the gradients of their own rows."""
        out = np.empty((len(states), len(numbers), 3, 3))

        def work(begin: int, end: int) -> None:
            made = np.empty((len(states), end - begin, 3, 3))
            gradients(numbers[begin:end]).interpolate(states, np.zeros((len(states), 3)), made)
            out[:, begin:end] = made

        in_blocks(work, len(numbers), GRADIENT_CHUNK)
        return out

    def _gradients(self, numbers: Ints) -> Bound:
        """Of a chunk of the points without an expansion; kept for the next frame, while there is memory for it."""
        start = int(numbers[0])
        if start not in self.kept_gradients:
            found = self._gradients_at(numbers)
            if sum(kept.blocks.nbytes for kept in list(self.kept_gradients.values())) > MOST_GRADIENT_BYTES:
                return found
            self.kept_gradients[start] = found
        return self.kept_gradients[start]

    def _gradients_at(self, numbers: Ints) -> Bound:
        return Bound.gradients(self.points[numbers], self.basis, allow=self.allow)
