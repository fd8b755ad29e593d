"""The spring network as an energy of its vertices' positions (Ma et al. 2011, Eq. 2 to 4).

    E(x) = ½ Σ_q [k (l - r)² + m |d - (d · p) p|²] + ½ Σ_h κ_h (θ_h - θ_h(w))²,  d = x_i - x_j,  l = |d|,  f = ∂E/∂x.

The first term alone is the paper's energy. The second penalises leaving the rest direction p, the third bending
(`pliant.engines.blend.hinges`). Under a load the rest directions rotate with the body; see `CorotatedRest`. Fixed
vertices are not unknowns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.topology import Floats, Ints, connected_parts
from pliant.engines.blend import kernels
from pliant.engines.blend.springs import CorotatedRest, Rest, Springs, laplacian
from pliant.numerics.linalg import Factorization, dot, factorize

DIFFERENCE_MOTION = 1e-5
"""How far a vertex moves in a difference of gradients, over the length of its shortest spring."""


@dataclass(frozen=True, eq=False)
class Network:
    """Springs over n vertices, some of them fixed, with the factorised Laplacian of the others."""

    springs: Springs
    count: int
    """n"""
    fixed: NDArray[np.bool_]
    """(n,) vertices whose positions are given."""

    def __getstate__(self) -> dict[str, Any]:
        """Without what contact caches here (`contacts`)."""
        return {name: value for name, value in self.__dict__.items() if name != "attached"}

    def with_fixed(self, vertices: Ints) -> Network:
        """The same network with more fixed vertices."""
        fixed = self.fixed.copy()
        fixed[vertices] = True
        if (fixed == self.fixed).all():
            return self
        other = Network(self.springs, self.count, fixed)
        other.__dict__.update(fans=self.fans, L=self.L, fineness=self.fineness)
        return other

    @cached_property
    def fans(self) -> tuple[Ints, Ints, Ints]:
        """Springs by vertex; see `kernels.fans`."""
        return kernels.fans(self.springs.edges, self.count)

    @cached_property
    def unknown(self) -> Ints:
        """The vertices solved for: those not fixed, without one in each part that is free to translate."""
        part = connected_parts(self.count, self.springs.edges)
        grounded = np.zeros(part.max(initial=-1) + 1, dtype=bool)
        grounded[part[self.fixed]] = True
        _, first = np.unique(part, return_index=True)
        solved = ~self.fixed
        solved[first[~grounded]] = False
        return np.flatnonzero(solved)

    @cached_property
    def fineness(self) -> Floats:
        """(n,) the inverse square of the length of each vertex's shortest spring; 0 without springs."""
        squared = np.full(self.count, np.inf)
        mean = np.maximum(self.springs.rest.mean(axis=0), 1e-150) ** 2
        np.minimum.at(squared, self.springs.edges.ravel(), np.repeat(mean, 2))
        return 1 / squared

    @cached_property
    def L(self) -> Any:
        """The spring Laplacian over all vertices."""
        return laplacian(self.springs, self.count)

    @cached_property
    def known(self) -> tuple[Ints, Any]:
        """The vertices not solved for, and their columns of the Laplacian."""
        known = np.setdiff1d(np.arange(self.count), self.unknown)
        return known, self.L[:, known]

    @cached_property
    def factor(self) -> Factorization | None:
        """The Laplacian over the unknown vertices, factorised."""
        if not len(self.unknown):
            return None
        return factorize(self.L[self.unknown][:, self.unknown])

    def solve(self, b: Floats) -> Floats:
        """(n, 3) x with ``L x = b`` at the unknown vertices and 0 elsewhere."""
        x = np.zeros_like(b)
        if self.factor is not None:
            x[self.unknown] = self.factor.solve(b[self.unknown])
        return x

    def energy(self, x: Floats, rest: Rest | CorotatedRest, gradient: Floats) -> float:
        """E(x); its gradient, zero at fixed vertices, is written to `gradient`."""
        if isinstance(rest, CorotatedRest):
            k, r, mu = self.springs.stiffness, rest.lengths, rest.direction_stiffness
            edges, v, rotations = self.springs.edges, rest.vectors, rest.rotations
            kernels.fit_rotations(x, self.fans, edges, k, v, rotations)
            energy = kernels.corotated_energy_and_gradient(x, self.fans, edges, k, r, v, mu, rotations, gradient)
        else:
            k = self.springs.stiffness if rest.stiffness is None else rest.stiffness
            p, m = rest.directions, rest.direction_stiffness
            energy = kernels.energy_and_gradient(x, self.fans, k, rest.lengths, p, m, gradient)
            h = rest.hinges
            if h is not None:
                energy += kernels.add_hinges(x, h.corners, h.lists, h.gradients, h.offsets, h.stiffness, gradient)
        gradient[self.fixed] = 0
        return energy


class Objective:
    """What a solver minimises: the energy of a network at a rest state, less the work of an external force (n, 3)."""

    def __init__(self, network: Network, rest: Rest | CorotatedRest, force: Floats | None = None) -> None:
        self.network, self.rest = network, rest
        self.force = None if force is None else np.where(network.fixed[:, None], 0, force)
        self.directed = isinstance(rest, Rest) and len(rest.directions) > 0
        """Whether springs resist leaving their rest directions: H is then not much softer than L."""
        self.precondition: Any = network.solve
        """From a force (n, 3) to about the step (n, 3) that balances it: symmetric and positive definite."""

    def evaluate(self, x: Floats, gradient: Floats) -> float:
        """The value at x (n, 3); its gradient is written to `gradient`."""
        energy = self.network.energy(x, self.rest, gradient)
        if self.force is None:
            return energy
        gradient -= self.force
        return energy - dot(self.force, x)

    def product(self, x: Floats, gradient: Floats, p: Floats) -> Floats:
        """(n, 3) H p at x, where the gradient is `gradient`: by a difference (`DIFFERENCE_MOTION`)."""
        most = float(np.max(np.einsum("ij,ij->i", p, p) * self.network.fineness, initial=0))
        h = DIFFERENCE_MOTION / max(most, 1e-300) ** 0.5
        ahead = np.empty_like(x)
        self.evaluate(x + h * p, ahead)
        return (ahead - gradient) / h
