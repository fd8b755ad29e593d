"""The target in a deformed cage: ``p' = Σ φ v' + Σ ψ N``, one product for each frame.

Coordinates are kept in single precision, in blocks of a few points: a block holds the coordinates of its points for the
cage's first vertex, then for its second, and so on. Read in this order, a frame costs what reading them from memory
costs. As φ adds up to one, the cage's vertices are taken about their centre, wherever that is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pliant.core.topology import Floats
from pliant.core.values import Value, locked
from pliant.engines.transfer.energies import Basis
from pliant.engines.transfer.green import green_blocks
from pliant.engines.transfer.green_kernels import LANES
from pliant.engines.transfer.options import Outside
from pliant.native import in_threads, kernels

COORDINATES_PER_THREAD = 2_000_000
"""Least number of coordinates for another thread: they take half a millisecond."""
FRAME_BATCH = 8
"""Frames for which the coordinates are read once."""


@dataclass(frozen=True, eq=False)
class Bound(Value):
    """A target's points bound to a cage."""

    basis: Basis
    count: int
    """Points n."""
    blocks: NDArray[np.float32]
    """(n / lanes, c + f, lanes)"""

    @classmethod
    def of(cls, points: Floats, basis: Basis, *, outside: Outside) -> Bound:
        """Bind points (n, 3)."""
        what = "points of the target"
        if basis.kind == "green":
            return cls(basis, len(points), locked(green_blocks(points, basis.cage, outside=outside, what=what)))
        rows = basis.rows(points, 0, allow=outside == "allow", what=what)[0].astype(np.float32)
        filled = np.pad(rows, [(0, -len(rows) % LANES), (0, 0)])
        blocks = np.swapaxes(filled.reshape(-1, LANES, basis.size), 1, 2)
        return cls(basis, len(points), locked(np.ascontiguousarray(blocks)))

    def deform(self, cages: Floats) -> Floats:
        """(frames, n, 3) in deformed cages (frames, c, 3)."""
        out = np.empty((len(cages), self.count, 3))
        for start in range(0, len(cages), FRAME_BATCH):
            some = cages[start : start + FRAME_BATCH]
            centres = some.mean(axis=1)
            states = np.stack([self.basis.state(cage) for cage in some - centres[:, None]])
            self._interpolate(states.astype(np.float32), centres, out[start : start + FRAME_BATCH])
        return out

    def _interpolate(self, states: NDArray[np.float32], centres: Floats, out: Floats) -> None:
        """Blocks times states (frames, c + f, 3), plus centres (frames, 3), into (frames, n, 3)."""
        least = max(1, COORDINATES_PER_THREAD * len(self.blocks) // max(self.blocks.size, 1))
        work = lambda a, b: kernels.cage_interpolate(self.blocks, states, centres, out, a, b)  # noqa: E731
        in_threads(work, len(self.blocks), least)
