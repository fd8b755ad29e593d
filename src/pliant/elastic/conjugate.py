"""Conjugate gradients on the flesh: ``(mass + stiffness · K'(R)) d = r`` in single precision.

The forces r come in double precision, and so does the place that d is added to; so a solve can be repeated on what is
left (`refined` in `pliant.elastic.statics`). What is left is measured as a strain,

    e = √(rᵀ B⁻¹ r / (stiffness · Σ_q w μ)),

about the root mean square over the body of what the strains still lack, whatever the units, material and step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pliant.elastic.levels import Preconditioner
from pliant.elastic.warping import Flesh, Singles
from pliant.topology import Floats


@dataclass(frozen=True, eq=False)
class Posed:
    """The flesh with its rotations: what products need."""

    flesh: Flesh
    R: Floats
    """(q, 9) at quadrature points."""
    R_single: Singles
    turns: Singles
    """(free, 9) at the free nodes."""


@dataclass(frozen=True, eq=False)
class Solved:
    """A correction, and how good it is."""

    d: Floats
    """(free, 3)"""
    iterations: int
    strain: float
    """e, what is left."""
    first: float
    """e at the beginning."""


def solve(
    posed: Posed,
    r: Floats,
    mass: Singles,
    stiffness: float,
    preconditioner: Preconditioner,
    *,
    accuracy: float,
    iterations: int,
) -> Solved:
    """Solve for a correction d (free, 3) until e is below `accuracy`."""
    from pliant.elastic.conjugate_kernels import advance, dot, redirect

    flesh = posed.flesh
    # Scaled so that single precision holds forces of any unit.
    unit = float(np.abs(r).max(initial=0.0))
    d = np.zeros((flesh.free, 3), np.float32)
    if not unit > 0 or not np.isfinite(unit):
        return Solved(d.astype(np.float64), 0, 0.0 if unit == 0 else np.inf, 0.0)
    left = (r / unit).astype(np.float32)
    P, p = np.empty((len(flesh.weights), 9), np.float32), np.zeros((flesh.functions.nodes, 3), np.float32)
    z = preconditioner.apply(left, posed.turns)
    p[: flesh.free] = z
    along = dot(left, z)
    scale = unit / np.sqrt(stiffness * flesh.stiffest)
    first = strain = scale * np.sqrt(max(along, 0.0))
    done = 0
    while strain > accuracy and done < iterations:
        Ap = flesh.product(p, posed.R_single, P, stiffness, mass)
        bend = dot(p, Ap)
        if not bend > 0:
            break
        advance(along / bend, p, Ap, d, left)
        z = preconditioner.apply(left, posed.turns)
        before, along = along, dot(left, z)
        redirect(along / before, z, p)
        strain = scale * np.sqrt(max(along, 0.0))
        done += 1
    return Solved(unit * d.astype(np.float64), done, float(strain), float(first))
