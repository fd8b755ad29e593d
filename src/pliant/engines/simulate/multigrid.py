"""Additive multigrid: one preconditioner for every pose and step, built from the body at rest.

Products with the warped stiffness K' are cheap, but each spreads a correction only to neighbouring nodes. So there are
coarser levels. Each has about a twelfth of the nodes of the finer one, whose values it interpolates by the same moving
least squares, P. The coarsest level is solved exactly.

    B⁻¹ = T (D₀⁻¹ + P₁ (D₁⁻¹ + P₂ (... A_l⁻¹ ...) P₂ᵀ) P₁ᵀ) Tᵀ       D: the 3 × 3 blocks on the diagonal

A = a M + b K is the matrix at rest on each level; K includes the springs of the attachment and the mean dilatation. T
rotates each node as the pose does: where rotations vary slowly, K' is close to T K Tᵀ. So nothing is factorised again
while the body moves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.topology import Floats, Ints
from pliant.core.values import Value, locked
from pliant.engines.simulate.mls import mls
from pliant.engines.simulate.nodes import Nodes, cluster_centres
from pliant.engines.simulate.stiffness import combined_gradients, rest_stiffness
from pliant.engines.simulate.warping import CorotatedOperator, Singles
from pliant.native import kernels, team

COARSENING = 12
"""Nodes of a level for each node of the next coarser one."""
COARSEST_NODES = 260
"""Nodes of the coarsest level, at most: its inverse is a full matrix."""
NODES_PER_THREAD = 5000
"""Nodes that are worth a thread."""


@dataclass(frozen=True, eq=False)
class Level(Value):
    """A coarse level: its interpolation to the finer level, and its matrices."""

    P: Any
    """Sparse (nodes of the finer level, m)."""
    stiffness: Any
    """Sparse (3m, 3m): Pᵀ K P."""
    mass: Any
    """Sparse (m, m): Pᵀ M P."""


@dataclass(frozen=True, eq=False)
class Hierarchy(Value):
    """The matrices of the body at rest on all levels."""

    blocks: Floats
    """(free, 3, 3) diagonal blocks of K."""
    mass: Floats
    """(free,)"""
    loose: NDArray[np.bool_]
    """(free,) nodes that are not solved for: they follow the bones."""
    levels: tuple[Level, ...]

    @cached_property
    def transfers(self) -> tuple[Any, ...]:
        """Restriction and prolongation for the kernels: the first node of each level, rows of all Pᵀ, rows of all P.

        Nodes are numbered through all levels.
        """
        sizes = [len(self.mass), *(level.P.shape[1] for level in self.levels)]
        begin = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        down = [(level.P.T.tocsr(), begin[k]) for k, level in enumerate(self.levels)]
        up = [(level.P.tocsr(), begin[k + 1]) for k, level in enumerate(self.levels)]
        return locked(begin), *_stacked(down), *_stacked(up)

    def preconditioner(self, mass: float, stiffness: float) -> Preconditioner:
        """For the matrix ``mass · M + stiffness · K``."""
        from scipy.sparse import identity, kron

        first = stiffness * self.blocks + mass * self.mass[:, None, None] * np.eye(3)
        diagonals, inverse = [_inverted(first)], np.zeros((0, 0), np.float32)
        diagonals[0][self.loose] = 0
        for k, level in enumerate(self.levels):
            A = stiffness * level.stiffness + mass * kron(level.mass, identity(3))
            if k < len(self.levels) - 1:
                diagonals.append(_inverted(_diagonal_blocks(A)))
            else:
                full = A.toarray()
                full[np.diag_indices_from(full)] *= 1 + 1e-6  # a node may have no finer node in its support
                full[np.diag_indices_from(full)] += 1e-9 * np.trace(full) / len(full)
                inverse = np.linalg.inv(full).astype(np.float32)
        return Preconditioner(self.transfers, np.concatenate(diagonals), inverse)


@dataclass(frozen=True, eq=False)
class Preconditioner(Value):
    """B⁻¹ of the body at rest; `apply` rotates it to a pose."""

    transfers: tuple[Any, ...]
    """`Hierarchy.transfers`."""
    diagonal: Singles
    """(nodes, 6) D⁻¹ of all levels but the last."""
    inverse: Singles
    """(3m, 3m) A⁻¹ of the last level."""

    def apply(self, r: Singles, rotations: Singles) -> Singles:
        """(free, 3) B⁻¹ r; rotations (free, 9) are the nodes' rotations."""
        out = np.empty_like(r)
        kernels.multigrid_apply(self.arrays, rotations, r, out, team(len(r), NODES_PER_THREAD))
        return out

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arguments of the kernels."""
        return *self.transfers, self.diagonal, self.inverse


def build_multigrid(
    operator: CorotatedOperator, nodes: Nodes, mass: Floats, leash: Floats, loose: NDArray[np.bool_]
) -> Hierarchy:
    """The levels of a body at rest. mass: (n,) of the nodes; leash: (free,) of springs to where bones carry them.
    loose: (free,) nodes that are not solved for."""
    from scipy.sparse import diags, identity, kron

    levels: list[Level] = []
    finer, M = nodes, None
    while finer.free > COARSEST_NODES:
        count = finer.free // COARSENING
        count = count if count > COARSEST_NODES else min(COARSEST_NODES, finer.free // 4)
        coarser = _thinned(finer, count)
        P = mls(finer.points[: finer.free], coarser).matrix.tocsr()
        if not levels:
            P = diags((~loose).astype(np.float64), format="csr") @ P
            K = _coarse_stiffness(operator, P) + kron(P.T.multiply(leash) @ P, identity(3))
            M = (P.T.multiply(mass[: finer.free]) @ P).tocsr()
        else:
            wide = kron(P, identity(3), format="csr")
            K, M = (wide.T @ K @ wide).tocsr(), (P.T @ M @ P).tocsr()
        levels.append(Level(P, K, M))
        finer = coarser
    blocks = _rest_blocks(operator) + leash[:, None, None] * np.eye(3)
    return Hierarchy(locked(blocks), locked(mass[: operator.free].copy()), locked(loose), tuple(levels))


def _stacked(matrices: list[tuple[Any, int]]) -> tuple[Ints, Ints, Singles]:
    """Sparse matrices stacked vertically (row starts, columns, values); each is given with its first column number."""
    counts = [np.zeros(1, np.int64), *(np.diff(P.indptr) for P, _ in matrices)]
    columns = [np.zeros(0, np.int32), *(P.indices + shift for P, shift in matrices)]
    values = [np.zeros(0, np.float32), *(P.data for P, _ in matrices)]
    start = np.cumsum(np.concatenate(counts), dtype=np.int64)
    column, value = np.concatenate(columns).astype(np.int32), np.concatenate(values).astype(np.float32)
    return locked(start), locked(column), locked(value)


def _thinned(nodes: Nodes, count: int) -> Nodes:
    """About `count` of the free nodes, at the centres of clusters of them (k-means)."""
    from scipy.spatial import cKDTree

    fine = nodes.points[: nodes.free]
    start = fine[(np.arange(count) * len(fine)) // count]  # consecutive nodes are near each other
    chosen = fine[cluster_centres(fine, start, np.ones(len(fine)))]  # existing nodes, because they are inside
    owner = cKDTree(chosen).query(fine)[1]
    share = np.cbrt(np.bincount(owner, nodes.radii[: nodes.free] ** 3, minlength=len(chosen)))  # volumes add up
    return replace(nodes, points=chosen, radii=share, free=len(chosen))


def _coarse_stiffness(operator: CorotatedOperator, P: Any) -> Any:
    """Sparse (3m, 3m) Pᵀ K P at rest, for the interpolation P (free, m)."""
    from scipy.sparse import csr_matrix, vstack

    means, total = operator.mean_functions
    columns = vstack([P, csr_matrix((operator.functions.nodes - operator.free, P.shape[1]))]).tocsr()
    K = rest_stiffness(combined_gradients(operator.functions, columns=columns), 1.0, (operator.own, operator.mu))
    return (K + rest_stiffness(combined_gradients(means, columns=columns), 1.0, (total, 0.0))).tocsr()


def _rest_blocks(operator: CorotatedOperator) -> Floats:
    """(free, 3, 3) the diagonal blocks Σ_q (λ₁ + μ) g gᵀ + μ |g|² 1 + Σ_c Λ b bᵀ of K at rest."""
    point, node, g = operator.points, operator.functions.node, operator.gradient
    square = np.einsum("ki,ki->k", g, g)[:, None, None] * np.eye(3)
    each = (operator.own + operator.mu)[point, None, None] * np.einsum("ki,kj->kij", g, g)
    blocks = _summed(node, each + operator.mu[point, None, None] * square, operator)
    means, total = operator.mean_functions
    assert means.gradient is not None
    b, cell = means.gradient, np.repeat(np.arange(len(means)), np.diff(means.start))
    return blocks + _summed(means.node, total[cell, None, None] * np.einsum("ki,kj->kij", b, b), operator)


def _summed(node: Ints, blocks: Floats, operator: CorotatedOperator) -> Floats:
    """(free, 3, 3) the sums of blocks (k, 3, 3) at the free nodes."""
    flat = blocks.reshape(-1, 9)
    sums = [np.bincount(node, column, minlength=operator.functions.nodes)[: operator.free] for column in flat.T]
    return np.asarray(np.stack(sums, axis=1).reshape(-1, 3, 3), dtype=np.float64)


def _diagonal_blocks(A: Any) -> Floats:
    """(m, 3, 3)"""
    m = A.shape[0] // 3
    index = 3 * np.arange(m)[:, None, None]
    i, j = np.broadcast_arrays(index + np.arange(3)[:, None], index + np.arange(3))
    return np.asarray(A.tocsr()[i.ravel(), j.ravel()]).reshape(m, 3, 3)


def _inverted(blocks: Floats) -> Singles:
    """(m, 6) the inverses of symmetric blocks (m, 3, 3): xx, yy, zz, yz, xz, xy."""
    size = np.trace(blocks, axis1=1, axis2=2)
    safe = blocks + (1e-6 * size + 1e-9 * size.mean())[:, None, None] * np.eye(3)
    inverse = np.linalg.inv(safe)
    rows, columns = [0, 1, 2, 1, 0, 0], [0, 1, 2, 2, 2, 1]
    return np.ascontiguousarray(inverse[:, rows, columns], dtype=np.float32)
