"""Strain limits: an energy that keeps flesh from being inverted, and from being stretched beyond a limit.

Hooke's law with rotations known from the skeleton is linear, and nothing in it resists inversion. So each quadrature
point q has, besides,

    E_q = w_q μ Σ_k φ(σ_k),       σ_1 >= σ_2 >= |σ_3| the stretches of F_q, σ_3 < 0 where it is inverted

φ is zero between two onsets, and grows from there towards a wall as the barrier

    b(u) = -u² log(1 - u),        u = 0 at the onset, 1 at the wall

which is C². Beyond u = 0.8 it is continued by its parabola. So walls are stiff but finite: bones may force flesh
through them, and flesh that starts beyond them, even inverted, is pushed back. The lower wall is well above 0, so that
J = det F stays positive. All onsets and walls are relative to the stretches that the bones impose around a point: those
of flesh carried by the bones alone, and where they compress it, the stretch across that would keep its volume.

The stretches of F = U diag(σ) Vᵀ are independent of each other in E, so the eigenvalues of its second derivative are
known: φ''(σ_k), and for each pair (φ'_i - φ'_j) / (σ_i - σ_j), never negative because φ is convex, and
(φ'_i + φ'_j) / (σ_i + σ_j), which is replaced by 0 where it is negative. (Smith et al. 2019; Teran et al. 2005)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.topology import Floats
from pliant.core.values import locked
from pliant.engines.simulate.options import StretchLimit
from pliant.engines.simulate.warping import CorotatedOperator
from pliant.native import kernels

ONSET = 0.5
"""Share of the limit at which it begins to act."""
COMPRESSION_RATIO = 2.0
"""Compression at which the barrier against inversion begins to act, over the limit of stretch."""
LEAST_ONSET = 0.25
"""Stretch at which that barrier begins, at least."""
LOW_WALL = 0.625
"""Stretch at which it ends, over that."""
FAR_BEYOND = 2.0
"""Stretch, over its limit, beyond which the limit is not kept; and compression, over that at the lower wall."""
LEAST_IMPOSED, MOST_IMPOSED = 0.2, 3.0
"""Stretches that bones may impose: beyond these, flesh as they carry it has no meaning."""


@dataclass(frozen=True, eq=False)
class Stressed:
    """Limits at one shape."""

    F: Floats
    """(q, 9) deformation gradients."""
    energies: Floats
    """(q,)"""
    P: Floats
    """(q, 9) ∂E/∂F."""

    @property
    def energy(self) -> float:
        """Of all points."""
        return float(self.energies.sum())


@dataclass(frozen=True, eq=False)
class StrainLimits:
    """The limits of a body's quadrature points."""

    operator: CorotatedOperator
    """The sum over these points."""
    walls: Floats
    """(4,) lower wall, lower onset, upper onset and upper wall, over the stretches that bones impose; (0,) if none."""
    bones: Floats
    """(q, 2) the smallest and the largest of those."""
    stiffness: Floats
    """(q,) what multiplies φ: w μ, or 0 where there are no limits."""

    @classmethod
    def of(
        cls, operator: CorotatedOperator, limit: StretchLimit, *, whole: NDArray[np.bool_] | bool = True
    ) -> StrainLimits:
        """Those of flesh that bones do not deform.

        limit: the share by which it may be stretched. whole: (q,) where there are limits.
        """
        inner, ones = operator.inner, locked(np.ones((len(operator.weights), 2)))
        return cls(inner, limit_walls(limit), ones, whole * inner.mu)

    def imposed(self, carried: Floats) -> StrainLimits:
        """Those of flesh whose nodes bones carry to (n, 3)."""
        least, most = imposed_ranges(self.stretches(carried)).T
        return replace(self, bones=np.stack([-self._around(-least), self._around(most)], axis=1))

    def _around(self, values: Floats) -> Floats:
        """(q,) the largest of the values (q,) at the points that share a node with each."""
        start, point = self.operator.lists
        functions = self.operator.functions
        seen = np.flatnonzero(np.diff(start))
        at_nodes = np.full(len(start) - 1, -np.inf)
        at_nodes[seen] = np.maximum.reduceat(values[point], start[seen])
        return np.maximum.reduceat(at_nodes[functions.node], functions.start[:-1])

    def exceeded(self, x: Floats, imposed: Callable[[], StrainLimits]) -> StrainLimits | None:
        """Those that nodes x (n, 3) exceed, of the limits that bones impose; None if they exceed none."""
        if not len(self.walls):
            return None
        F = self.gradients(x)
        if not self.outside(F):
            return None
        limits = imposed()
        return limits if limits.outside(F) else None

    @property
    def _ranges(self) -> tuple[Floats, Floats]:
        return self.bones, self.walls

    def gradients(self, x: Floats) -> Floats:
        """(q, 9) F of nodes (n, 3), or their change for displacements."""
        F = np.empty((len(self.bones), 9))
        kernels.limits_gradients(self.operator.doubles, x, F, self.operator.threads)
        return F

    def stretches(self, x: Floats) -> Floats:
        """(q, 3) of nodes (n, 3), descending; the last is negative where flesh is inverted."""
        return stretches_of(self.gradients(x))

    def outside(self, F: Floats) -> int:
        """How many points have left the range without energy."""
        return int(kernels.limits_outside(F, self._ranges))

    def overstrained(self, x: Floats) -> int:
        """How many points nodes (n, 3) strain far beyond their walls."""
        return int(np.count_nonzero(far_beyond(self.stretches(x), *self._ranges) & (self.stiffness > 0)))

    def at(self, x: Floats) -> Stressed:
        """Energies and stresses for nodes (n, 3)."""
        return self.stressed(self.gradients(x))

    def stressed(self, F: Floats) -> Stressed:
        """Energies and stresses for deformation gradients (q, 9)."""
        energies, P = np.empty(len(F)), np.empty_like(F)
        kernels.limits_stresses(F, self._ranges, self.stiffness, energies, P, self.operator.threads)
        return Stressed(F, energies, P)

    def forces(self, stressed: Stressed) -> Floats:
        """(free, 3) the gradient of the energy."""
        out = np.empty((self.operator.free, 3))
        kernels.limits_forces(self.operator.doubles, stressed.P, out, self.operator.threads)
        return out

    def curvature(self, stressed: Stressed) -> tuple[Any, ...]:
        """The second derivative at the points that have energy, as `conjugate_gradients.solve` takes it."""
        active = np.flatnonzero(stressed.energies > 0).astype(np.int32)
        frames = np.empty((len(active), 27), np.float32)
        kernels.limits_curvatures(stressed.F, self._ranges, self.stiffness, active, frames)
        return active, frames


def limit_walls(limit: StretchLimit) -> Floats:
    """(4,) the `walls` of a limit of stretch; (0,) if there is none."""
    return locked(np.array([] if limit == "none" else [*_lower(limit), 1 + ONSET * limit, 1 + limit]))


def stretches_of(F: Floats) -> Floats:
    """(q, 3) of deformation gradients (q, 9), descending; the last is negative where flesh is inverted."""
    sigma = np.empty((len(F), 3))
    kernels.limits_stretches(F, sigma)
    return sigma


def far_beyond(sigma: Floats, bones: Floats, walls: Floats) -> NDArray[np.bool_]:
    """(q,) which points, with stretches (q, 3), do not keep limits; the others are as in `StrainLimits`."""
    if not len(walls):
        return np.zeros(len(sigma), dtype=bool)
    low, _, _, high = walls
    least, most = bones.T
    stretched = sigma[:, 0] > (1 + FAR_BEYOND * (high - 1)) * most
    return np.asarray(stretched | (sigma[:, 2] < low / FAR_BEYOND * least))


def imposed_ranges(sigma: Floats) -> Floats:
    """(q, 2) the smallest and the largest stretch that bones impose, of flesh with stretches (q, 3) that they carry."""
    least = np.clip(sigma[:, 2], LEAST_IMPOSED, 1.0)
    return np.stack([least, np.clip(np.maximum(sigma[:, 0], 1 / least), 1.0, MOST_IMPOSED)], axis=1)


def _lower(limit: float) -> tuple[float, float]:
    """Lower wall and onset."""
    onset = max(1 - COMPRESSION_RATIO * limit, LEAST_ONSET)
    return LOW_WALL * onset, onset
