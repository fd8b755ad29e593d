"""Matrices of the body at rest: stiffness, diffusion and mass, as sums over the quadrature points q.

With ``g_I = ∇φ_I(q)`` and the weight ``w_q``, the 3 × 3 blocks of the stiffness of Hooke's law (Eq. 9) are

    K_IJ = Σ_q w_q [ λ g_I g_Jᵀ + μ g_J g_Iᵀ + μ (g_I · g_J) 1 ].

`CorotatedOperator.rest_stiffness` takes a part of λ at the mean gradients of cells instead. The matrix of the diffusion
equation (Eq. 14) is ``L_IJ = Σ_q w_q g_I · g_J``, and the mass is ``M_IJ = Σ_q w_q ρ φ_I φ_J``. The lumped mass is
``m_I = Σ_q w_q ρ φ_I``: since the functions reproduce linear fields, the total mass and the centre of mass are those of
the body.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.core.errors import InputError
from pliant.core.topology import Floats, Ints
from pliant.core.values import as_array
from pliant.engines.simulate.mls import Interpolation
from pliant.native import in_threads, kernels

LEAST_MASS = 0.05
"""Least mass of a node over the mean: functions of nodes at the surface may be negative over half of their support."""


def rest_stiffness(interpolation: Interpolation, weights: ArrayLike, lame: tuple[ArrayLike, ArrayLike]) -> Any:
    """(3n, 3n) sparse stiffness at rest; coordinates of a node follow each other.

    interpolation: the functions with their gradients at the quadrature points. lame: λ and μ, for all points together
    or (q,) each.
    """
    from scipy.sparse import bsr_matrix

    w = _per_point(interpolation, weights, "weights")
    lam, mu = (w * _per_point(interpolation, value, name) for value, name in zip(lame, ("λ", "μ"), strict=True))
    gradient, (at, entry) = _gradient(interpolation), incidence(interpolation)
    start, column = pattern(at)
    blocks = np.zeros((len(column), 3, 3))
    values = gradient, lam, mu, blocks
    in_threads(lambda a, b: kernels.stiffness_blocks(at, entry, start, column, *values, a, b), len(start) - 1, 256)
    size = 3 * interpolation.nodes
    return bsr_matrix((blocks, column, start), shape=(size, size)).tocsr()


def combined_gradients(interpolation: Interpolation, *, rows: Any = None, columns: Any = None) -> Interpolation:
    """Linear combinations of the gradients: ``rows`` (m, p) of those at the points, ``columns`` (n, k) of the nodes'.

    The result has no values φ.
    """
    parts = [interpolation.derivative(axis) for axis in range(3)]
    parts = parts if rows is None else [rows @ part for part in parts]
    parts = [(part if columns is None else part @ columns).tocoo() for part in parts]
    shape = parts[0].shape
    keys = [part.row.astype(np.int64) * shape[1] + part.col for part in parts]
    pattern = np.unique(np.concatenate(keys))
    gradient = np.zeros((len(pattern), 3))
    for axis, (key, part) in enumerate(zip(keys, parts, strict=True)):
        gradient[np.searchsorted(pattern, key), axis] = part.data
    row, node = np.divmod(pattern, shape[1])
    start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=shape[0]))])
    return Interpolation(start, node.astype(np.int32), np.zeros(len(node)), gradient, shape[1])


def laplacian(interpolation: Interpolation, weights: ArrayLike) -> Any:
    """(n, n) sparse matrix of the diffusion equation."""
    from scipy.sparse import diags

    w = diags(_per_point(interpolation, weights, "weights"))
    _gradient(interpolation)
    return sum(G.T @ w @ G for G in (interpolation.derivative(axis) for axis in range(3))).tocsr()


def mass(interpolation: Interpolation, weights: ArrayLike, density: ArrayLike = 1.0) -> Any:
    """(n, n) sparse consistent mass, the same for each coordinate."""
    from scipy.sparse import diags

    w = _per_point(interpolation, weights, "weights") * _per_point(interpolation, density, "density")
    N = interpolation.matrix
    return (N.T @ diags(w) @ N).tocsr()


def lumped_mass(interpolation: Interpolation, weights: ArrayLike, density: ArrayLike = 1.0) -> Floats:
    """(n,) masses of the nodes, which sum to the body's; positive, but 0 for nodes without a function."""
    w = _per_point(interpolation, weights, "weights") * _per_point(interpolation, density, "density")
    masses = np.asarray(interpolation.matrix.T @ w)
    reached = np.bincount(interpolation.node, minlength=interpolation.nodes) > 0
    raised = np.where(reached, np.maximum(masses, LEAST_MASS * w.sum() / reached.sum()), 0)
    return raised * (w.sum() / raised.sum())


def _gradient(interpolation: Interpolation) -> Floats:
    if interpolation.gradient is None:
        raise InputError("the interpolation has no gradients; make it with mls(..., gradients=True)")
    return interpolation.gradient


Incidence = tuple[Ints, Ints, Ints, Ints]
"""Start and nodes of the points' rows, start and points of the nodes' lists."""


def incidence(interpolation: Interpolation) -> tuple[Incidence, Ints]:
    """Which nodes reach which points; and for each node its entries in the rows of the interpolation."""
    entry = np.argsort(interpolation.node, kind="stable")
    count = np.bincount(interpolation.node, minlength=interpolation.nodes)
    first = np.concatenate([[0], np.cumsum(count)])
    owner = np.repeat(np.arange(len(interpolation)), np.diff(interpolation.start))
    return (interpolation.start, interpolation.node, first, owner[entry]), entry


def pattern(at: Incidence) -> tuple[Ints, NDArray[np.int32]]:
    """Row starts and columns, in order, of the pairs of nodes that share a point."""
    begin = np.empty(len(at[2]), dtype=np.int64)
    column = np.empty(kernels.stiffness_pattern_rows(at, begin), dtype=np.int32)
    kernels.stiffness_pattern_columns(at, begin, column)
    return begin, column


def _per_point(interpolation: Interpolation, values: ArrayLike, what: str) -> Floats:
    """(q,) one number for each quadrature point."""
    array = as_array(values, what, np.float64)
    if array.ndim > 1 or (array.ndim == 1 and len(array) != len(interpolation)):
        raise InputError(f"{what} have shape {array.shape}; expected one for each of {len(interpolation)} points")
    return np.broadcast_to(array, (len(interpolation),)).astype(np.float64)
