"""Statics in one step (Eq. 2): the shape in which elastic forces and loads balance, for given rotations.

    K'(R) x = f(R) + load,      bones in their places

The rotations come from the skeleton alone, so the system is linear and the answer depends on the pose and on nothing
else: there are no sub-steps, and the same pose gives the same shape to the last bit. The start is the flesh carried by
the bones (their rigid motions, blended by the diffusion's weights), which a rigid motion of the skeleton leaves with
nothing to do.

With Müller's rotations, taken from the deformation of the step before by polar decomposition, the way matters: there
the skeleton goes from rest to the pose in sub-steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pliant.core.topology import Floats
from pliant.engines.simulate.conjugate_gradients import Posed, solve
from pliant.engines.simulate.multigrid import Preconditioner

ROUNDS = 4
"""Times that a solve in single precision may be repeated on what is left."""


@dataclass(frozen=True, eq=False)
class Balance:
    """Where a solve got to."""

    x: Floats
    """(n, 3) the nodes."""
    iterations: int
    strain: float
    """What the strains still lack, root mean square."""
    residual: float
    """The same over that of the start."""
    converged: bool


def balanced(
    posed: Posed, start: Floats, load: Floats | float, preconditioner: Preconditioner, *, accuracy: float, most: int
) -> Balance:
    """Solve for the free nodes from `start` (n, 3), in which the fixed ones are in their places; load: (free, 3)."""
    x, done, first, strain = start.copy(), 0, 0.0, np.inf
    none = np.zeros(posed.flesh.free, np.float32)
    for _ in range(ROUNDS):
        r = load - posed.flesh.forces(x, posed.R)
        left = solve(posed, r, none, 1.0, preconditioner, accuracy=accuracy, iterations=most - done)
        first, done = max(first, left.first), done + left.iterations
        x[: posed.flesh.free] += left.d
        strain = left.strain
        if strain <= accuracy or done >= most:
            break
    return Balance(x, done, strain, strain / first if first > 0 else 0.0, bool(strain <= accuracy))
