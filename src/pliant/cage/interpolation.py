"""The target in a deformed cage: ``p' = Σ φ v' + Σ ψ N``, one product for each frame.

Coordinates are kept in single precision, in blocks of a few points: a block holds the coordinates of its points for the
cage's first vertex, then for its second, and so on. Read in this order, a frame costs what reading them from memory
costs. As φ adds up to one, the cage's vertices are taken about their centre, wherever that is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pliant.cage.energies import Basis
from pliant.cage.green import Outside, green_blocks
from pliant.topology import Floats
from pliant.values import Value, locked

FEW = 4_000_000
"""Coordinates that are multiplied within a millisecond."""
BATCH = 8
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
        return cls(basis, len(points), locked(np.ascontiguousarray(rows[:, :, None])))

    def deform(self, cages: Floats) -> Floats:
        """(frames, n, 3) in deformed cages (frames, c, 3)."""
        from pliant.cage.interpolation_kernels import interpolate, interpolate_few

        kernel = interpolate if self.blocks.size > FEW else interpolate_few
        out = np.empty((len(cages), self.count, 3))
        for start in range(0, len(cages), BATCH):
            some = cages[start : start + BATCH]
            centres = some.mean(axis=1)
            states = np.stack([self.basis.state(cage) for cage in some - centres[:, None]])
            kernel(self.blocks, states.astype(np.float32), centres, out[start : start + BATCH])
        return out
