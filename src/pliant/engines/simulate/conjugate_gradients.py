"""Conjugate gradients on the flesh: ``(mass + stiffness · K'(R) + H) d = r`` in single precision.

H is the second derivative of the strain limits that act, if there are any (`pliant.engines.simulate.strain_limits`),
and of contact (`pliant.engines.simulate.contacts`).

The forces r come in double precision, and so does the position that d is added to; so a solve is repeated on its
residual (`refine`). That is the larger of two, with z = B⁻¹ r about as far as nodes still have to go,

    √(rᵀ z) / scale₀        over the body
    max |z| / scale₁        for soft tips, which hardly count in the first

A pose measures strains, whatever the units and material: scale = √(stiffness · Σ_q w μ), `FAR` · diagonal. A step
measures against what it changes (`pliant.engines.simulate.dynamics`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pliant.core.cancellation import check_cancelled
from pliant.core.topology import Floats
from pliant.engines.simulate.multigrid import Preconditioner
from pliant.engines.simulate.warping import CorotatedOperator, Singles
from pliant.native import kernels

FAR = 0.2
"""Length, over the diagonal, over which a lacking strain shows as a displacement."""
NO_LIMITS = np.zeros(0, np.int32), np.zeros((0, 27), np.float32)
"""As arguments of the kernel."""
NO_CONTACTS = (
    np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros((0, 3), np.float32),
    np.zeros(1, np.int64), np.zeros(0, np.float32),
)  # fmt: skip
"""The same for contact."""
ROUNDS = 4
"""Times that a solve in single precision may be repeated on what is left."""
ErrorScale = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Posed:
    """The flesh with its rotations: what products need."""

    operator: CorotatedOperator
    R: Floats
    """(q, 9) at quadrature points."""
    R_single: Singles
    R_nodes: Singles
    """(free, 9) at the free nodes."""
    diagonal: float
    """Of the body."""


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
    scale: ErrorScale
    """What both are measured by."""


def strain_scale(posed: Posed, stiffness: float) -> ErrorScale:
    """Of strains: what is left is then what they lack, root mean square."""
    return float(np.sqrt(stiffness * posed.operator.stiffest)), FAR * posed.diagonal


def solve(
    posed: Posed,
    r: Floats,
    mass: Singles,
    stiffness: float,
    preconditioner: Preconditioner,
    *,
    accuracy: float,
    iterations: int,
    scale: ErrorScale | None = None,
    relative: bool = False,
    reduction: float = 0.0,
    limits: tuple[Any, ...] = NO_LIMITS,
    contacts: tuple[Any, ...] = NO_CONTACTS,
) -> Solved:
    """Solve for a correction d (free, 3) until what is left is below `accuracy`, as far as single precision goes.

    scale: what it is measured by, that of strains if not given; relative: or by what there is at the beginning.
    reduction: share of what there is at the beginning that is enough. limits: `StrainLimits.curvature`; contacts:
    `StageContact.curvature`.
    """
    check_cancelled()
    operator, d, left = posed.operator, np.empty((posed.operator.free, 3)), np.empty(2)
    by = np.array(strain_scale(posed, stiffness) if scale is None else scale)
    iterations = kernels.conjugate_solve(
        operator.singles, posed.R_single, posed.R_nodes, preconditioner.arrays, limits, contacts,
        r, mass, stiffness, by, int(relative), accuracy, reduction, iterations, d, left, operator.threads,
    )  # fmt: skip
    return Solved(d, iterations, float(left[1]), float(left[0]), (float(by[0]), float(by[1])))


def refine(
    posed: Posed,
    x: Floats,
    left: Callable[[Floats], Floats],
    mass: Singles,
    stiffness: float,
    preconditioner: Preconditioner,
    *,
    accuracy: float,
    iterations: int,
    scale: ErrorScale | None = None,
    relative: bool = False,
) -> Solved:
    """Add corrections to the free ones of the nodes x (n, 3), in place, until what `left` gives for them is small."""
    start, done, first = x[: posed.operator.free].copy(), 0, 0.0
    for _ in range(ROUNDS):
        found = solve(
            posed, left(x), mass, stiffness, preconditioner,
            accuracy=accuracy, iterations=iterations - done, scale=scale, relative=relative,
        )  # fmt: skip
        x[: posed.operator.free] += found.d
        first, done, scale, relative = max(first, found.first), done + found.iterations, found.scale, False
        if found.strain <= accuracy or done >= iterations:
            break
    return Solved(x[: posed.operator.free] - start, done, found.strain, first, found.scale)
