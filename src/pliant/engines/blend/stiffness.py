"""The second derivative of a spring network's energy (Ma et al. 2011, Eq. 4), as a sparse matrix.

    H(x) = Σ_q k_q [u uᵀ + (1 - r/l)(1 - u uᵀ) + μ (1 - p pᵀ)] ⊗ (e_i - e_j)(e_i - e_j)ᵀ,    u = d/l.

Under a load (`CorotatedRest`) the rotations R_i are unknowns too, three more for each vertex. The Newton step solves

    [ H  B ] [ Δx ]     [ f ]
    [ Bᵀ C ] [ θ  ] = - [ 0 ],     C_i = ½ μ (tr S_i - S_i),  S_i = sym Σ_q k d (R_i v)ᵀ,

with no residual in the second row, as the R_i minimise E. B couples the two by ``½ μ k [R_i v]×`` for each end of each
spring.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from pliant.core.errors import LinearSolveError
from pliant.core.topology import Floats, Ints
from pliant.engines.blend.springs import CorotatedRest, Rest
from pliant.numerics.linalg import Factorization, factorize

if TYPE_CHECKING:
    from pliant.engines.blend.equilibrium import Network

SHIFT = 1e-9
"""Added to the diagonal, over it, where H is singular: a body that may rotate freely."""


def stiffness(
    network: Network,
    x: Floats,
    rest: Rest | CorotatedRest,
    floor: float = -np.inf,
    *,
    shift: float = 0.0,
    rotating: bool = True,
) -> Any:
    """H + shift L over the unknown vertices' 3 m coordinates; for `CorotatedRest` followed by the 3 n rotations.

    floor: lower bound of the springs' transverse stiffness 1 - r/l; with 0, H is positive semidefinite. rotating:
    whether rotations are unknowns, too.
    """
    i, j = network.springs.edges.T
    blocks = spring_blocks(network, x, rest, floor) + shift * network.springs.stiffness[:, None, None] * np.eye(3)
    number = np.full(network.count, -1)
    number[network.unknown] = np.arange(len(network.unknown))
    rows, columns = np.concatenate([i, j, i, j]), np.concatenate([i, j, j, i])
    H = blocked(number[rows], number[columns], np.concatenate([blocks, blocks, -blocks, -blocks]), len(network.unknown))
    if not (isinstance(rest, CorotatedRest) and rotating):
        return H
    return _with_rotations(H, network, x[i] - x[j], rest, number)


def spring_blocks(network: Network, x: Floats, rest: Rest | CorotatedRest, floor: float = -np.inf) -> Floats:
    """(q, 3, 3) the derivative of each spring's force by its vector; floor: as in `stiffness`."""
    i, j = network.springs.edges.T
    d = x[i] - x[j]
    length = np.maximum(np.linalg.norm(d, axis=1), 1e-300)
    u = d / length[:, None]
    across = np.maximum(1 - rest.lengths / length, floor)
    k = network.springs.stiffness[:, None, None]
    blocks: Floats = k * (
        (1 - across)[:, None, None] * u[:, :, None] * u[:, None, :] + across[:, None, None] * np.eye(3)
    )
    if isinstance(rest, CorotatedRest):
        blocks += rest.direction_stiffness * k * np.eye(3)
    elif rest.direction_stiffness:
        p = rest.directions
        blocks += rest.direction_stiffness * k * (np.eye(3) - p[:, :, None] * p[:, None, :])
    return blocks


def _with_rotations(H: Any, network: Network, d: Floats, rest: CorotatedRest, number: Ints) -> Any:
    """H bordered by the rotations of all n vertices."""
    count, unknown = network.count, len(network.unknown)
    i, j = network.springs.edges.T
    weight = 0.5 * rest.direction_stiffness * network.springs.stiffness[:, None, None]
    eye = np.eye(3)
    values, rows, columns = [], [], []
    own = np.zeros((count, 3, 3))
    for end in (i, j):
        rotated = np.einsum("qab,qb->qa", rest.rotations[end], rest.vectors)
        outer = d[:, :, None] * rotated[:, None, :]
        S = weight * (outer + outer.transpose(0, 2, 1)) / 2
        np.add.at(own, end, np.trace(S, axis1=1, axis2=2)[:, None, None] * eye - S)
        couple = weight * np.cross(rotated[:, None, :], eye).transpose(0, 2, 1)  # [R v]×
        values += [couple, -couple]
        rows += [number[i], number[j]]
        columns += [end, end]
    B = blocked(np.concatenate(rows), np.concatenate(columns), np.concatenate(values), unknown, count)
    own += 1e-9 * np.maximum(np.trace(own, axis1=1, axis2=2), 1e-300)[:, None, None] * eye  # springs in one line
    C = blocked(np.arange(count), np.arange(count), own, count)
    return sp.bmat([[H, B], [B.T, C]], format="csr")


def blocked(rows: Ints, columns: Ints, values: Floats, height: int, width: int | None = None) -> Any:
    """A sparse matrix of 3 × 3 blocks; negative rows and columns are left out, blocks at the same indices summed."""
    keep = (rows >= 0) & (columns >= 0)
    rows, columns, values = rows[keep], columns[keep], values[keep]
    axis = np.arange(3)
    at = (
        np.broadcast_to(3 * rows[:, None, None] + axis[None, :, None], values.shape).ravel(),
        np.broadcast_to(3 * columns[:, None, None] + axis[None, None, :], values.shape).ravel(),
    )
    shape = 3 * height, 3 * (height if width is None else width)
    return sp.coo_matrix((values.ravel(), at), shape=shape).tocsr()


def factorized(H: Any) -> Factorization:
    """H factorised; a singular one a little shifted."""
    try:
        return factorize(H, check=False)
    except LinearSolveError:
        diagonal = np.abs(H.diagonal())
        H.setdiag(H.diagonal() + SHIFT * np.maximum(diagonal, 1e-300))
        return factorize(H, kind="symmetric", check=False)
