"""Rows over a cage's state for many points, `Bound`: coordinates or their derivatives, and products with them.

They are stored in single precision: coordinates sum to one, so a point has an error of less than 1e-6 of
the cage's size, and half the memory is read for each frame. The solver works in double precision.

They are kept in blocks of a few points: a block holds the rows of its points for the cage's first vertex, then
for its second, and so on. Read in this order, a frame costs what reading them from memory
costs. As φ adds up to one, the cage's vertices are taken about their centre, wherever that is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pliant.core.topology import Floats
from pliant.core.values import Value, locked
from pliant.engines.transfer.energies import Basis
from pliant.engines.transfer.green import LANES, green_blocks
from pliant.engines.transfer.options import Outside
from pliant.native import in_threads, kernels

COORDINATES_PER_THREAD = 2_000_000
"""Least number of coordinates for another thread: they take half a millisecond."""


@dataclass(frozen=True, eq=False)
class Bound(Value):
    """Rows of n points."""

    basis: Basis
    count: int
    """Points n."""
    blocks: NDArray[np.float32]
    """(n / lanes, d, c + f, lanes): d is 1 for coordinates, 3 for gradients and 9 for expansions"""

    @classmethod
    def of(cls, points: Floats, basis: Basis, *, outside: Outside, what: str) -> Bound:
        """The coordinates of points (n, 3); what: their name in errors."""
        if basis.kind == "green":
            blocks = green_blocks(points, basis.cage, outside=outside, what=what)
            return cls(basis, len(points), locked(blocks[:, None]))
        return cls.rows(basis, basis.rows(points, 0, allow=outside == "allow", what=what)[0][:, None])

    @classmethod
    def gradients(cls, points: Floats, basis: Basis, *, allow: bool) -> Bound:
        """The coordinates' gradients at points (n, 3)."""
        return cls.rows(basis, basis.rows(points, 1, allow=allow)[1])

    @classmethod
    def rows(cls, basis: Basis, rows: Floats) -> Bound:
        """Rows (n, d, c + f), in blocks."""
        count, numbers, size = rows.shape
        blocks = np.zeros((-(-count // LANES), numbers, size, LANES), dtype=np.float32)
        full = count // LANES
        blocks[:full] = np.moveaxis(rows[: full * LANES].reshape(full, LANES, numbers, size), 1, -1)
        if full < len(blocks):
            blocks[full, ..., : count - full * LANES] = np.moveaxis(rows[full * LANES :], 0, -1)
        return cls(basis, count, locked(blocks))

    def states(self, cages: Floats) -> NDArray[np.float32]:
        """(frames, c + f, 3) of cages (frames, c, 3)."""
        return np.stack([self.basis.state(cage) for cage in cages]).astype(np.float32)

    def interpolate(self, states: NDArray[np.float32], centres: Floats, out: Floats) -> None:
        """Blocks times states (frames, c + f, 3), plus centres (frames, 3), into (frames, n, 3, d)."""
        least = max(1, COORDINATES_PER_THREAD * len(self.blocks) // max(self.blocks.size, 1))
        work = lambda a, b: kernels.cage_interpolate(self.blocks, states, centres, out, a, b)  # noqa: E731
        in_threads(work, len(self.blocks), least)
