"""Conjugate gradients on the flesh: ``(mass + stiffness · K'(R)) d = r`` in single precision.

The forces r come in double precision, and so does the place that d is added to; so a solve can be repeated on what is
left (`statics`). What is left is measured as a strain, whatever the units, material and step: the larger
of two, with z = B⁻¹ r about as far as nodes still have to go,

    √(rᵀ z / (stiffness · Σ_q w μ))        what strains lack, root mean square over the body
    max |z| / (`FAR` · diagonal)           for soft tips, which hardly count in the first
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pliant.core.topology import Floats
from pliant.engines.simulate.multigrid import Preconditioner
from pliant.engines.simulate.warping import Flesh, Singles
from pliant.native import kernels

FAR = 0.2
"""Length, over the diagonal, over which a lacking strain shows as a displacement."""
NO_PUSH = (
    np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(0), np.zeros(0), np.zeros((0, 3))
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Posed:
    """The flesh with its rotations: what products need."""

    flesh: Flesh
    R: Floats
    """(q, 9) at quadrature points."""
    R_single: Singles
    turns: Singles
    """(free, 9) at the free nodes."""
    diagonal: float
    """Of the body."""


@dataclass(frozen=True, eq=False)
class Push:
    """Springs of m rows of contact at points N x: along their normals, and across them."""

    N: Any
    """Sparse (m, n) the nodes' functions at the points."""
    rho: Floats
    """(m,) along the normals."""
    hold: Floats
    """(m,) across them."""
    normal: Floats
    """(m, 3)"""

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What the kernel takes."""
        N = self.N.tocsr()
        rows = N.indptr.astype(np.int64), N.indices.astype(np.int32), N.data.astype(np.float32)
        return *rows, self.rho, self.hold, self.normal


@dataclass(frozen=True, eq=False)
class Solved:
    """A correction, and how good it is."""

    d: Floats
    """(free, 3)"""
    iterations: int
    strain: float
    """What is left."""
    first: float
    """The same at the beginning."""


def solve(
    posed: Posed,
    r: Floats,
    mass: Singles,
    stiffness: float,
    preconditioner: Preconditioner,
    *,
    accuracy: float,
    iterations: int,
    push: Push | None = None,
) -> Solved:
    """Solve for a correction d (free, 3) until what is left is below `accuracy`."""
    flesh, d, strain = posed.flesh, np.empty((posed.flesh.free, 3)), np.empty(2)
    rms, farthest = float(np.sqrt(stiffness * flesh.stiffest)), FAR * posed.diagonal
    iterations = kernels.conjugate_solve(
        flesh.singles, posed.R_single, posed.turns, preconditioner.arrays, NO_PUSH if push is None else push.arrays,
        r, mass, stiffness, rms, farthest, accuracy, iterations, d, strain, flesh.threads,
    )  # fmt: skip
    return Solved(d, iterations, float(strain[1]), float(strain[0]))
