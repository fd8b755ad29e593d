"""Gradients for which sums over the quadrature points obey Gauss's theorem, so that constant stress is in equilibrium.

A body under constant stress σ is in equilibrium with the traction σ n on its surface. For the functions that says

    Σ_q w_q ∇φ_I(q) = ∮ φ_I n dA    for every node I,

which two points a node cannot meet: inner nodes of a stretched block would wander by a tenth of its displacement. So
the gradients at the quadrature points are changed as little as possible, in the norm ``Σ_q w_q Σ_I |δ_I(q)|² /
|φ_I(q)|``, such that it holds, and linear fields keep their gradients (Chen, Hillman, Rüter 2013, made symmetric):

    δ_I(q) = |φ_I| (λ_I − a_q − B_q x_I),    Σ_I δ_I(q) = 0,    Σ_I δ_I(q) x_Iᵀ = 0.

Per point a_q and B_q are a weighted linear fit of λ, so λ solves one sparse symmetric system of the size of the nodes,
for three right-hand sides. Where that would change the gradients at a point by more than half, as at the tips of thin
parts with few nodes, they change by half.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pliant.core.errors import InputError
from pliant.core.topology import Floats
from pliant.core.values import locked
from pliant.engines.simulate.mls import Interpolation, mls
from pliant.engines.simulate.nodes import SUPPORT_FACTOR, Nodes, surface_samples
from pliant.engines.simulate.quadrature import Quadrature
from pliant.engines.simulate.stiffness import incidence, pattern
from pliant.native import in_threads, kernels
from pliant.numerics.linalg import factorize

SAMPLES = 3
"""Samples of the surface along each spacing."""
DIAGONAL_SHIFT = 0.01
"""Added to the diagonal of the matrix for λ, over it: single gradients change less, and little of the error is left."""


def consistent(interpolation: Interpolation, points: Quadrature, nodes: Nodes) -> Interpolation:
    """The functions at the quadrature points with gradients that obey Gauss's theorem."""
    from scipy.sparse import csr_matrix, diags

    if interpolation.gradient is None:
        raise InputError("the interpolation has no gradients; make it with mls(..., gradients=True)")
    free = nodes.free
    centre, unit = nodes.points[:free].mean(axis=0), float(np.median(nodes.radii[:free]))
    local = (nodes.points[:free] - centre) / unit
    bare = np.stack([interpolation.derivative(axis).T @ points.weights for axis in range(3)], axis=1)[:free]
    missing = _without_linear(_boundary(nodes) - bare, local)
    volume = points.weights / points.weights.mean()
    begin, column = pattern(incidence(interpolation)[0])
    rows, values = (interpolation.start, interpolation.node), np.zeros(len(column))
    kernels.consistency_fit_matrix(rows, begin, column, interpolation.phi, volume, local, values)
    matrix = csr_matrix((values, column, begin[: free + 1]), shape=(free, free))
    matrix += DIAGONAL_SHIFT * diags(np.maximum(matrix.diagonal(), 1e-6 * matrix.diagonal().max()))
    lam = factorize(matrix, check=False).solve(missing / points.weights.mean())
    gradient = interpolation.gradient.copy()
    found = interpolation.phi, local, lam, gradient
    in_threads(lambda a, b: kernels.consistency_correct(rows, *found, a, b), len(interpolation), 1024)
    return replace(interpolation, gradient=locked(gradient))


def _boundary(nodes: Nodes) -> Floats:
    """(free, 3) ∮ φ_I n dA, from points spread evenly over the surface."""
    spacing = float(np.median(nodes.radii[: nodes.free])) / SUPPORT_FACTOR
    tree = nodes.surface
    samples, area = surface_samples(tree, spacing / SAMPLES)
    a, b, c = (tree.points[tree.triangles[tree.closest(samples).triangle, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    return np.asarray(mls(samples, nodes).matrix.T @ (area * normals))[: nodes.free]


def _without_linear(values: Floats, local: Floats) -> Floats:
    """(n, 3) values less what is linear in the nodes' positions: the functions' linear consistency has settled that."""
    basis, _ = np.linalg.qr(np.column_stack([np.ones(len(local)), local]))
    return values - basis @ (basis.T @ values)
