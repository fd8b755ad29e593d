"""Statics in one step (Eq. 2): the shape in which elastic forces and loads balance, for given rotations.

    K'(R) x = f(R) + load,      bones in their places

The rotations come from the skeleton alone, so the system is linear and the answer depends on the pose and on nothing
else: there are no sub-steps, and the same pose gives the same shape to the last bit. The start is the flesh carried by
the bones (their rigid motions, blended by the diffusion's weights), which a rigid motion of the skeleton leaves with
nothing to do.

Where the answer is beyond strain limits (`pliant.engines.simulate.strain_limits`), their forces are added, and Newton's
method solves for the balance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pliant.core.topology import Floats
from pliant.engines.simulate.conjugate_gradients import Posed, refine
from pliant.engines.simulate.multigrid import Preconditioner
from pliant.engines.simulate.newton import limited
from pliant.engines.simulate.options import StaticOptions
from pliant.engines.simulate.strain_limits import StrainLimits

VOLUME_LIMITS = (0.7, 1.3)
"""Of a body, over that at rest, beyond which its flesh has failed."""
LARGEST_INVERTED = 0.05
"""Share of quadrature points, turned inside out, beyond which it has."""


def failure_of(volume: float, inverted: int, points: int) -> str:
    """How flesh has failed, as text; empty if it has not."""
    remedy = "use stiffer flesh (young), more damping or a slower motion"
    if not VOLUME_LIMITS[0] <= volume <= VOLUME_LIMITS[1]:
        return f"the volume is {100 * volume:.0f} % of that at rest; {remedy}"
    if inverted > LARGEST_INVERTED * points:
        return f"{inverted:,} of {points:,} quadrature points are turned inside out; {remedy}"
    return ""


def leash_energy(leash: Floats, x: Floats, carried: Floats) -> float:
    """Of leashes (free,) from nodes x (n, 3) to where bones carry them."""
    return 0.5 * float(leash @ np.square((x - carried)[: len(leash)]).sum(axis=1))


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
    further_energy: float = 0.0
    """Of leashes and strain limits."""


def balanced(
    posed: Posed,
    start: Floats,
    load: Floats | float,
    leash: Floats,
    preconditioner: Preconditioner,
    limits: StrainLimits,
    how: StaticOptions,
) -> Balance:
    """Solve for the free nodes from `start` (n, 3), the flesh as the bones carry it.

    load: (free, 3). leash: (free,) stiffness of springs to `start`.
    """
    x, free, single = start.copy(), posed.operator.free, leash.astype(np.float32)

    def left(x: Floats) -> Floats:
        return load - posed.operator.forces(x, posed.R) - leash[:, None] * (x - start)[:free]

    solving = how.taken_by(refine)
    found = refine(posed, x, left, single, 1.0, preconditioner, **solving)
    exceeded, energy = limits.exceeded(x, start), 0.0
    if exceeded is not None:
        within = limited(posed, start, x, left, exceeded, single, 1.0, preconditioner, scale=found.scale, **solving)
        x, found, energy = within.x, within.solved, within.limit_energy
    energy += leash_energy(leash, x, start)
    share = found.strain / found.first if found.first > 0 else 0.0
    return Balance(x, found.iterations, found.strain, share, bool(found.strain <= how.accuracy), energy)
