"""Conjugate gradients on the flesh: ``(mass + stiffness · K'(R)) d = r`` in single precision.

The forces r come in double precision, and so does the place that d is added to; so a solve can be repeated on what is
left (`pliant.elastic.statics`). What is left is measured as a strain, whatever the units, material and step: the larger
of two, with z = B⁻¹ r about as far as nodes still have to go,

    √(rᵀ z / (stiffness · Σ_q w μ))        what strains lack, root mean square over the body
    max |z| / (`FAR` · diagonal)           for soft tips, which hardly count in the first
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pliant.elastic.levels import Preconditioner
from pliant.elastic.warping import Flesh, Singles
from pliant.linalg import one_blas_thread
from pliant.topology import Floats

FAR = 0.2
"""Length, over the diagonal, over which a lacking strain shows as a displacement."""


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

    def added(self, d: Singles, to: Singles) -> Singles:
        """(free, 3) `to` and the springs' answer to displacements d (n, 3)."""
        moved = self.N @ d
        along = np.einsum("mi,mi->m", moved, self.normal)
        force = self.hold[:, None] * moved + ((self.rho - self.hold) * along)[:, None] * self.normal
        return (to + (self.N.T @ force)[: len(to)]).astype(np.float32)


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
    with one_blas_thread():  # its products are small, and come between parallel kernels
        return _conjugate(posed, r, mass, stiffness, preconditioner, accuracy, iterations, push)


def _conjugate(
    posed: Posed,
    r: Floats,
    mass: Singles,
    stiffness: float,
    preconditioner: Preconditioner,
    accuracy: float,
    iterations: int,
    push: Push | None,
) -> Solved:
    from pliant.elastic.conjugate_kernels import advance, dot, largest, redirect

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

    def lacking() -> float:
        return max(scale * np.sqrt(max(along, 0.0)), unit * largest(z) / (FAR * posed.diagonal))

    first = strain = lacking()
    done = 0
    while strain > accuracy and done < iterations:
        Ap = flesh.product(p, posed.R_single, P, stiffness, mass)
        if push is not None:
            Ap = push.added(p, Ap)
        bend = dot(p, Ap)
        if not bend > 0:
            break
        advance(along / bend, p, Ap, d, left)
        z = preconditioner.apply(left, posed.turns)
        before, along = along, dot(left, z)
        redirect(along / before, z, p)
        strain = lacking()
        done += 1
    return Solved(unit * d.astype(np.float64), done, float(strain), float(first))
