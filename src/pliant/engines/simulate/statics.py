"""Statics in one step (Eq. 2): the shape in which elastic forces and loads balance, for given rotations.

    K'(R) x = f(R) + load,      bones in their places

The rotations come from the skeleton alone, so the system is linear and the answer depends on the pose and on nothing
else: there are no sub-steps, and the same pose gives the same shape to the last bit. The start is the flesh carried by
the bones (their rigid motions, blended by the diffusion's weights), which a rigid motion of the skeleton leaves with
nothing to do.

Muscles (`pliant.engines.simulate.fibres`) are part of the load; a small part of theirs depends on the shape, so with
muscles it is solved again, from the shape that was found, until that part stays.

Where the answer is beyond strain limits (`pliant.engines.simulate.strain_limits`), their forces are added, and Newton's
method solves for the balance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from pliant.core.topology import Floats
from pliant.engines.simulate.conjugate_gradients import Posed, refine
from pliant.engines.simulate.fibres import Contraction
from pliant.engines.simulate.multigrid import Preconditioner
from pliant.engines.simulate.newton import limited
from pliant.engines.simulate.options import StaticOptions
from pliant.engines.simulate.strain_limits import StrainLimits

MUSCLE_ROUNDS = 20
"""With muscles, in which it is solved again, at most: each leaves about a seventh of what the last has left."""
VOLUME_LIMITS = (0.7, 1.3)
"""Of a body, over that at rest, beyond which its flesh has failed."""


def failure_of(volume: float, inverted: int, overstrained: int, points: int) -> str:
    """How flesh has failed, as text; empty if it has not."""
    remedy = "use stiffer flesh (young), more damping or a slower motion"
    if not VOLUME_LIMITS[0] <= volume <= VOLUME_LIMITS[1]:
        return f"the volume is {100 * volume:.0f} % of that at rest; {remedy}"
    if inverted:
        return f"{inverted:,} of {points:,} quadrature points are turned inside out; {remedy}"
    if overstrained:
        return f"{overstrained:,} of {points:,} quadrature points are far beyond their stretch limits; {remedy}"
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
    further_energy: float
    """Of leashes and strain limits."""
    overstrained: int
    """Quadrature points far beyond their strain limits."""
    contraction: Contraction
    """Of muscles."""


def balanced(
    posed: Posed,
    start: Floats,
    weight: Floats,
    pull: Callable[[Floats], Contraction],
    leash: Floats,
    preconditioner: Preconditioner,
    limits: StrainLimits,
    how: StaticOptions,
) -> Balance:
    """Solve for the free nodes from `start` (n, 3), the flesh as the bones carry it.

    weight: (free, 3). pull: what muscles do, for nodes (n, 3). leash: (free,) stiffness of springs to `start`.
    """
    free, single, solving = posed.operator.free, leash.astype(np.float32), how.taken_by(refine)
    x, acting, done, first = start, pull(start), 0, 0.0
    for _ in range(MUSCLE_ROUNDS):
        load = weight + acting.load

        def left(x: Floats, load: Floats = load) -> Floats:
            return load - posed.operator.forces(x, posed.R) - leash[:, None] * (x - start)[:free]

        x = x.copy()
        found = refine(posed, x, left, single, 1.0, preconditioner, **solving)
        exceeded, energy, overstrained = limits.exceeded(x, partial(limits.imposed, start)), 0.0, 0
        if exceeded is not None:
            within = limited(posed, start, x, left, exceeded, single, 1.0, preconditioner, scale=found.scale, **solving)
            x, found, energy = within.x, within.solved, within.limit_energy
            overstrained = exceeded.overstrained(x)
        before, acting = acting, pull(x)
        done, first = done + found.iterations, max(first, found.first)
        settled = acting.near(before, how.accuracy)
        if settled:
            break
    energy += leash_energy(leash, x, start)
    share = found.strain / first if first > 0 else 0.0
    converged = bool(found.strain <= how.accuracy) and settled
    return Balance(x, done, found.strain, share, converged, energy, overstrained, acting)
