"""What is known of an elastic energy's curvature, from the steps that were made: L-BFGS in its compact form."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from pliant.core.topology import Floats
from pliant.numerics.linalg import dot

LBFGS_PAIRS = 8
"""Pairs of steps that the model of the elastic energy remembers."""
MAX_CURVATURE_RATIO = 3.0
"""Curvature along a step, over L's, above which it is rounding or a kink: springs are not stiffer than L."""


@dataclass
class InverseHessian:
    """B⁻¹ = L⁻¹ + V M Vᵀ, the compact form of L-BFGS (Byrd, Nocedal and Schnabel 1994), from pairs of steps."""

    steps: list[Floats] = field(default_factory=list)
    """s, (n, 3) each."""
    changes: list[Floats] = field(default_factory=list)
    """y, the change of the gradient."""
    solved: list[Floats] = field(default_factory=list)
    """L⁻¹ y"""

    SY: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(k, k) s_i · y_j"""
    YZ: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(k, k) y_i · L⁻¹ y_j"""

    def copy(self) -> InverseHessian:
        """The same, to which pairs can be added."""
        return replace(self, steps=[*self.steps], changes=[*self.changes], solved=[*self.solved])

    def add(self, step: Floats, change: Floats, solved: Floats) -> None:
        """Remember a pair, unless the energy bends the wrong way along it."""
        curvature, softness = dot(step, change), dot(change, solved)
        if not MAX_CURVATURE_RATIO * curvature > softness:
            return
        cross = np.array([dot(change, z) for z in self.solved])
        self.SY = _bordered(
            self.SY, np.array([dot(s, change) for s in self.steps]), [dot(step, y) for y in self.changes], curvature
        )
        self.YZ = _bordered(self.YZ, cross, cross, softness)
        for kept, new in ((self.steps, step), (self.changes, change), (self.solved, solved)):
            kept.append(new)
            del kept[:-LBFGS_PAIRS]

    @property
    def V(self) -> list[Floats]:
        """Its columns, each (n, 3)."""
        return [*self.steps, *self.solved]

    @property
    def M(self) -> Floats:
        """(2 k, 2 k)"""
        k = len(self.steps)
        if not k:
            return np.zeros((0, 0))
        R = np.linalg.inv(np.triu(self.SY))
        return np.block([[R.T @ (np.diag(np.diag(self.SY)) + self.YZ) @ R, -R.T], [-R, np.zeros((k, k))]])


def _bordered(A: Floats, column: ArrayLike, row: ArrayLike, corner: float) -> Floats:
    """A with one more column and row, and without its first ones where it remembers too much."""
    k = len(A)
    out = np.empty((k + 1, k + 1))
    out[:k, :k], out[:k, k], out[k, :k], out[k, k] = A, column, row, corner
    return out[-LBFGS_PAIRS:, -LBFGS_PAIRS:]
