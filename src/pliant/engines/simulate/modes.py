"""Eigenmodes: the shapes in which a reduced body (`pliant.engines.simulate.reduced`) moves.

    K φ_k = ω_k² M φ_k,      bones held

*Modal derivatives.* A part that swings far rotates, and its tip comes back: of second order, and stiff against what the
lowest modes do. A share of the shapes are such motions (Barbič and James 2005), so that strain limits find them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.core.topology import Floats
from pliant.engines.simulate.conjugate_gradients import Posed, solve
from pliant.engines.simulate.dynamics import ITERATIONS
from pliant.engines.simulate.warping import UNSTRAINED

if TYPE_CHECKING:
    from pliant.engines.simulate.body import ElasticBody

COARSE_NODES = 700
"""Of the level that modes start from, at most."""
MODE_ITERATIONS, MODE_ACCURACY = 12, 1e-3
"""Of the eigenvalue solve."""
DERIVATIVES, PAIRED, DERIVATIVE_ACCURACY = 0.4, 8, 1e-2
"""Share of modes that are modal derivatives, how many of the lowest modes these are of, and what they may lack."""
SYMMETRIC = ((1, 2), (0, 2), (0, 1))


def eigenmodes(body: ElasticBody, count: int) -> tuple[Floats, Floats]:
    """(k,) angular frequencies, ascending, and (free, 3, k) shapes of the lowest vibrations of a body at rest.

    Shapes have a mass of 1. They are found by LOBPCG (Knyazev 2001) with the body's preconditioner, from the modes of a
    coarse level.
    """
    import warnings

    from scipy.linalg import eigh
    from scipy.sparse import identity, kron
    from scipy.sparse.linalg import LinearOperator, lobpcg

    free, operator, root = body.nodes.free, body.operator, np.sqrt(body.mass[: body.nodes.free, None])
    moving, same = ~body.loose[:, None], np.tile(np.eye(3, dtype=np.float32).ravel(), (free, 1))
    inverse_root = np.divide(moving, root, out=np.zeros_like(root), where=root > 0)

    def columns(function: Any) -> Any:
        def product(v: Floats) -> Floats:
            parts = [function(column.reshape(free, 3)).ravel() for column in v.reshape(3 * free, -1).T]
            return np.stack(parts, axis=1)

        return LinearOperator((3 * free, 3 * free), product, matmat=product, dtype=np.float64)

    def stiffness(v: Floats) -> Floats:
        return inverse_root * _rest_product(body, inverse_root * v)

    def precondition(v: Floats) -> Floats:
        return root * body.static.apply((moving * root * v).astype(np.float32), same)

    P, level = identity(free, format="csr"), None
    for level in body.multigrid.levels:
        P = P @ level.P
        if P.shape[1] <= COARSE_NODES:
            break
    if level is None:
        start = np.random.default_rng(0).standard_normal((3 * free, count))
    else:
        mass = kron(level.mass, identity(3)).toarray()
        mass[np.diag_indices_from(mass)] += 1e-9 * np.trace(mass) / len(mass)
        coarse = eigh(level.stiffness.toarray(), mass, subset_by_index=[0, count - 1])[1]
        start = (root[:, :, None] * (P @ coarse.reshape(P.shape[1], -1)).reshape(free, 3, -1)).reshape(3 * free, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says so where the last modes are not as exact as the first
        squares, shapes = lobpcg(
            columns(stiffness), start, M=columns(precondition), largest=False, maxiter=MODE_ITERATIONS,
            tol=MODE_ACCURACY * np.sqrt(operator.stiffest),
        )  # fmt: skip
    order = np.argsort(squares)
    shapes = inverse_root[:, :, None] * shapes[:, order].reshape(free, 3, -1)
    return np.sqrt(np.maximum(squares[order], 0)), shapes


def bending_modes(body: ElasticBody, count: int) -> tuple[Floats, Floats]:
    """Vibrations and modal derivatives together, as `eigenmodes` gives them; frequencies are of motions in these."""
    from scipy.linalg import eigh

    second = min(int(DERIVATIVES * count), PAIRED * (PAIRED + 1) // 2)
    omega, shapes = eigenmodes(body, count - second)
    found = np.concatenate([shapes, modal_derivatives(body, omega, shapes, second)], axis=2)
    mass = np.repeat(body.mass[: len(found), None], 3, axis=1).ravel()
    flat = found.reshape(len(mass), -1)
    flat = flat / np.sqrt(np.einsum("ik,ik,i->k", flat, flat, mass))
    K = flat.T @ np.stack([_rest_product(body, column).ravel() for column in flat.T], axis=1)
    squares, rotated = eigh(0.5 * (K + K.T), flat.T @ (mass[:, None] * flat))
    return np.sqrt(np.maximum(squares, 0)), (flat @ rotated).reshape(len(found), 3, -1)


def modal_derivatives(body: ElasticBody, omega: Floats, shapes: Floats, count: int) -> Floats:
    """(free, 3, count) the motions of second order that go with pairs of the lowest modes (free, 3, k).

    Each makes up for the strain ½ sym(∇φ_iᵀ ∇φ_j) that a rotation in modes i and j would have.
    """
    operator, free, q = body.operator, len(shapes), len(body.operator.weights)
    D = [operator.inner.functions.derivative(axis)[:, :free] for axis in range(3)]
    slopes = [np.stack([part @ shapes[:, :, k] for part in D], axis=2) for k in range(min(PAIRED, shapes.shape[2]))]
    same = np.tile(np.eye(3).ravel(), (max(len(operator.mu), free), 1))
    at_rest = Posed(
        operator, same[: len(operator.mu)], same[: len(operator.mu)].astype(np.float32),
        same[:free].astype(np.float32), body.diagonal,
    )  # fmt: skip
    nothing, found = np.zeros((operator.functions.nodes, 3)), []
    for i, one in enumerate(slopes):
        for j, other in enumerate(slopes[: i + 1]):
            strain = 0.5 * np.einsum("qli,qlj->qij", one, other)
            strain = 0.5 * (strain + np.swapaxes(strain, 1, 2))
            shift = np.tile(UNSTRAINED, (len(operator.mu), 1))  # springs have none
            shift[:q] = -np.stack(
                [*(strain[:, k, k] for k in range(3)), *(strain[:, a, b] for a, b in SYMMETRIC)], axis=1
            )
            load = -operator.forces(nothing, at_rest.R, shift)
            load[body.loose] = 0
            solved = solve(
                at_rest, load, body.leash.astype(np.float32), 1.0, body.static,
                accuracy=0.0, reduction=DERIVATIVE_ACCURACY, iterations=ITERATIONS,
            )  # fmt: skip
            found.append(solved.d / (omega[i] * omega[j]) ** 2)
    mass = np.repeat(np.sqrt(np.maximum(body.mass[:free, None], 0)), 3, axis=1)
    flat = np.stack([(mass * one).ravel() for one in found], axis=1)
    known = (mass[:, :, None] * shapes).reshape(len(flat), -1)
    flat -= known @ (known.T @ flat)
    rotated = np.linalg.eigh(flat.T @ flat)[1][:, ::-1][:, :count]
    inverse = np.divide(1, mass, out=np.zeros_like(mass), where=mass > 0)  # a node may have no share of the volume
    return (flat @ rotated).reshape(free, 3, -1) * inverse[:, :, None]


def _rest_product(body: ElasticBody, d: Floats) -> Floats:
    """(free, 3) K d at rest, with leashes, for displacements (free * 3,) of the nodes."""
    operator, moved = body.operator, np.zeros((body.operator.functions.nodes, 3), np.float32)
    moved[: body.nodes.free] = d.reshape(-1, 3)
    same = np.tile(np.eye(3, dtype=np.float32).ravel(), (len(operator.mu), 1))
    return operator.product(moved, same, 1.0, body.leash.astype(np.float32)).astype(np.float64)
