"""Rigidity: a caged shape bends by rotating its pieces, without shrinking them.

The smoothness of Eq. 8 alone takes the straight path between two gradients, on which a bend by θ shrinks the middle to
``cos² θ/2`` of its volume. So at some points of the cage's inside the gradient F is to be a rotation (as rigid as
possible; Sorkine and Alexa 2007) of the stretch S that the gradient controls around it ask for, and regions around
several of them are to keep their volume in the mean:

    E_r = Σ w min_R |F − R S|² + β Σ W (J − 1)²
        = Σ w (|F|² − 2 |F S|_* + |S|²) + β Σ W (J − 1)²,      R = polar(F S),   W = Σ w,   J = Σ w det F / det S / W

with the nuclear norm of ``F S = U diag(σ) Vᵀ`` (the least σ negative where F inverts). A bent limb is longer outside
and shorter inside; if each point had to keep its volume, its cross-section would change shape.

Newton. |F|² is one more square that is linear in the cage's state X, so it is part of the matrix A. The norm curves
along the rotations ``T_ij = U (e_i e_jᵀ − e_j e_iᵀ) Vᵀ / √2``, by ``2 / (σ_i + σ_j)``: H loses
``w min(2 / (σ_i + σ_j), 1 / |S|²)`` along each, which is what the square counts though it is only a rotation. The
volume adds one row a region (Gauss–Newton).

Points. The nodes of the smoothness' lattice are divided into cubes, and what is not connected in a cube into cells; the
centre of a cell's nodes stands for it. Regions are made alike, of larger cubes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pliant.core.rotations import polar
from pliant.core.topology import Floats, Ints
from pliant.core.values import Value, locked
from pliant.engines.transfer.energies import Basis
from pliant.engines.transfer.solver_kernels import add_squares

MOST_RIGID_POINTS = 100
"""Points, at most: each adds three rows to a step."""
REGION_SIDE = 3
"""Side of a region's cubes over that of a cell's."""
BULK = 4.0
"""β"""
NOT_CURVED = 1e-12
"""Sum of two stretches below which the norm counts as not curved along their rotation; least share of a control."""


def cells_and_regions(numbers: Ints, count: int = MOST_RIGID_POINTS) -> tuple[Ints, Ints]:
    """The cell (n,) of each node of a lattice with numbers (n, 3), and the region (k,) of each cell.

    There are at most `count` cells, unless more are not connected.
    """
    size = max(1, int(np.cbrt(len(numbers) / count)))
    cells = _connected_cells(numbers, size)
    while cells.max() >= count and size < np.ptp(numbers, axis=0).max() + 1:
        size += 1
        cells = _connected_cells(numbers, size)
    first = np.unique(cells, return_index=True)[1]
    return cells, np.unique(_connected_cells(numbers, REGION_SIDE * size)[first], return_inverse=True)[1]


def _connected_cells(numbers: Ints, size: int) -> Ints:
    """(n,) the cell of each node: what is connected in cubes of so many nodes a side, which are centred."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    extent = np.ptp(numbers, axis=0) + 1
    cubes = (numbers - numbers.min(axis=0) + (-extent % size) // 2) // size
    strides = np.cumprod([1, extent[0] + 1, extent[1] + 1])
    keys = (numbers - numbers.min(axis=0)) @ strides
    order = np.argsort(keys)
    pairs = []
    for step in strides:
        at = np.searchsorted(keys[order], keys + step).clip(max=len(keys) - 1)
        other = order[at]
        joined = (keys[other] == keys + step) & (cubes[other] == cubes).all(axis=1)
        pairs.append(np.stack([np.flatnonzero(joined), other[joined]], axis=1))
    i, j = np.concatenate(pairs).T
    graph = coo_array((np.ones(len(i)), (i, j)), (len(keys), len(keys)))
    return np.asarray(connected_components(graph, directed=False)[1])


@dataclass(frozen=True, eq=False)
class RigidPoints(Value):
    """Points of a cage's inside that each stand for a cell."""

    coordinates: Floats
    """(m, c) φ"""
    gradients: Floats
    """(m, 3, c + f): rows of ∂/∂x, ∂/∂y and ∂/∂z"""
    weights: Floats
    """(m,) shares of the whole"""
    regions: Ints
    """(m,) that they are in"""

    @classmethod
    def of(cls, basis: Basis, points: Floats, weights: Floats, numbers: Ints) -> RigidPoints:
        """Of nodes (n, 3) inside the cage, with weights (n,) and numbers (n, 3) along their lattice."""
        cells, regions = cells_and_regions(numbers)
        total = np.bincount(cells, weights)
        centres = np.stack([np.bincount(cells, weights * x) for x in points.T], axis=1) / total[:, None]
        inside = np.argsort(-total, kind="stable")[:MOST_RIGID_POINTS]
        inside = np.sort(inside[basis.cage.tree.inside(centres[inside])])
        phi, gradients = basis.rows(centres[inside], 1, allow=True)
        return cls(
            locked(phi[:, : len(basis.cage.points)]),
            locked(gradients),
            locked(total[inside] / total[inside].sum()),
            locked(np.unique(regions[inside], return_inverse=True)[1]),
        )

    @property
    def squares(self) -> Floats:
        """(c + f, c + f) of Σ w |F|²."""
        rows = (np.sqrt(self.weights)[:, None, None] * self.gradients).reshape(-1, self.gradients.shape[2])
        return np.asarray(rows.T @ rows)

    def shares(self, spread: Floats) -> Floats:
        """(m, k) weights of the controls at the points, adding up to one, from those at the cage's vertices (c, k)."""
        mixed = np.maximum(self.coordinates @ spread, NOT_CURVED)
        return np.asarray(mixed / mixed.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Rigidity(Value):
    """E_r without Σ w |F|², which is part of the matrix A."""

    rows: Floats
    """(m, 3, c + f): of ∂/∂x, ∂/∂y and ∂/∂z"""
    weights: Floats
    """(m,) w"""
    regions: Ints
    """(m,) of the points"""
    stretches: Floats = field(default_factory=lambda: np.eye(3)[None])
    """(m, 3, 3) S, symmetric; or (1, 3, 3)"""

    def energy(self, X: Floats) -> float:
        """Of a state (c + f, 3)."""
        F = self._gradients(X)
        P, J = F @ self.stretches, self._means(_cofactors(F)[1] / self._rest_volume)
        shape = (self.stretches**2).sum(axis=(1, 2)) - 2 * _nuclear_norm(P)
        return float(self.weights @ (shape + BULK * (J - 1)[self.regions] ** 2))

    def half_derivative(self, X: Floats) -> Floats:
        """(c + f, 3) by the state."""
        F = self._gradients(X)
        cofactors, size = _cofactors(F)
        off = (self._means(size / self._rest_volume) - 1)[self.regions] / self._rest_volume
        by_F = BULK * off[:, None, None] * cofactors - polar(F @ self.stretches) @ self.stretches
        pull = np.swapaxes(self.weights[:, None, None] * by_F, 1, 2).reshape(-1, 3)
        out: Floats = self.rows.reshape(-1, len(X)).T @ pull
        return out

    def add_curvature(self, H: Floats, basis: Basis, X: Floats, J: Floats) -> None:
        """Add to H (3 c, 3 c), of which the lower part is read; J (f, 3, 3, 3) of the normals."""
        F, S = self._gradients(X), self.stretches
        U, size, Vt = np.linalg.svd(F @ S)
        sign = np.linalg.det(U @ Vt)
        U[..., 2] *= sign[:, None]
        size[:, 2] *= sign
        for i, j in ((0, 1), (1, 2), (2, 0)):
            T = (U[:, :, i, None] * Vt[:, None, j] - U[:, :, j, None] * Vt[:, None, i]) / np.sqrt(2)
            both = size[:, i] + size[:, j]
            curved = np.where(both > NOT_CURVED, np.minimum(2 / np.maximum(both, NOT_CURVED), self._most_curved), 0)
            scaled = np.sqrt(self.weights * curved)[:, None, None] * np.swapaxes(T @ S, 1, 2)
            add_squares(H, basis.chained(self.rows, scaled, J), -1.0)
        slopes = basis.chained(self.rows, np.swapaxes(_cofactors(F)[0] / self._rest_volume[:, None, None], 1, 2), J)
        add_squares(H, self._means(slopes) * np.sqrt(self._total)[:, None], BULK)

    @cached_property
    def _total(self) -> Floats:
        """(regions,) W."""
        return np.bincount(self.regions, self.weights).astype(np.float64)

    @cached_property
    def _rest_volume(self) -> Floats:
        """(m,) or (1,) det S."""
        return np.asarray(np.linalg.det(self.stretches))

    @cached_property
    def _most_curved(self) -> Floats:
        """(m,) or (1,) 1 / |S|²."""
        return np.asarray(1 / np.linalg.norm(self.stretches, 2, axis=(1, 2)) ** 2)

    @cached_property
    def _shares(self) -> Floats:
        """(regions, m) of the points in the means of regions."""
        shares = np.zeros((len(self._total), len(self.regions)))
        shares[self.regions, np.arange(len(self.regions))] = self.weights
        return shares / self._total[:, None]

    def _means(self, values: Floats) -> Floats:
        """(regions, ...) weighted means of values (m, ...) of the points."""
        return np.asarray(self._shares @ values)

    def _gradients(self, X: Floats) -> Floats:
        """(m, 3, 3) F."""
        return np.swapaxes((self.rows.reshape(-1, len(X)) @ X).reshape(-1, 3, 3), 1, 2)


def _cofactors(F: Floats) -> tuple[Floats, Floats]:
    """The derivative of det F by F (m, 3, 3), and det F (m,)."""
    after, before = F[:, [1, 2, 0]], F[:, [2, 0, 1]]
    found = after[:, :, [1, 2, 0]] * before[:, :, [2, 0, 1]] - after[:, :, [2, 0, 1]] * before[:, :, [1, 2, 0]]
    return found, np.einsum("mi,mi->m", found[:, 0], F[:, 0])


def _nuclear_norm(P: Floats) -> Floats:
    """(m,) the sum of the singular values of P (m, 3, 3), the least one negative where P inverts."""
    sizes = np.linalg.svd(P, compute_uv=False)
    return np.asarray(sizes[:, 0] + sizes[:, 1] + np.copysign(sizes[:, 2], np.linalg.det(P)))
