"""Eigenmodes: the shapes in which a reduced body (`pliant.engines.simulate.reduced`) moves.

    K φ_k = ω_k² M φ_k,      bones held

*Limited shapes.* Where flesh swings so far that strain limits act, it gives way around the places where they do, which
none of the lowest modes can: they would be stopped as a whole. So a share of the shapes is what is left of how the
whole body rests, within its limits, under loads that would bend it far along each of the lowest modes (the principal
components of those snapshots, but for what may be their error). Limits are the default ones, whatever a simulation has.
With modal derivatives (Barbič and James 2005) instead, the dino's sway is 2.6 % of the diagonal away from the whole
body's; so it is 0.5 %.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.core.topology import Floats
from pliant.engines.simulate.dynamics import ITERATIONS
from pliant.engines.simulate.options import SimulateOptions, StaticOptions
from pliant.engines.simulate.statics import balanced

if TYPE_CHECKING:
    from pliant.engines.simulate.body import ElasticBody

COARSE_NODES = 700
"""Of the level that modes start from, at most."""
MODE_ITERATIONS, MODE_ACCURACY = 12, 1e-3
"""Of the eigenvalue solve."""
LIMITED_SHARE, LIMITED_MODES, LIMITED_SLOPES, LIMITED_ACCURACY = 0.4, 8, (0.7, 1.5), 1e-2
"""Share of limited shapes, along how many of the lowest modes loads are, what gradients of the motion, rotation
included, they would cause without limits in the steepest points, and what strains may lack, over those of the mode."""
STEEPEST = 0.02
"""Share of those points."""
SURE = 3.0
"""Size of what modes lack of a snapshot, over the accuracy, from which it is more than an error."""


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
    """Vibrations and limited shapes together, as `eigenmodes` gives them; frequencies are of motions in these."""
    from scipy.linalg import eigh

    further = min(int(LIMITED_SHARE * count), 2 * LIMITED_MODES * len(LIMITED_SLOPES))
    omega, shapes = eigenmodes(body, count - further)
    limited = limited_shapes(body, omega, shapes, further)
    if limited.shape[2] < further:
        shapes = eigenmodes(body, count - limited.shape[2])[1]
    found = np.concatenate([shapes, limited], axis=2)
    mass = np.repeat(body.mass[: len(found), None], 3, axis=1).ravel()
    flat = found.reshape(len(mass), -1)
    flat = flat / np.sqrt(np.einsum("ik,ik,i->k", flat, flat, mass))
    K = flat.T @ np.stack([_rest_product(body, column).ravel() for column in flat.T], axis=1)
    squares, rotated = eigh(0.5 * (K + K.T), flat.T @ (mass[:, None] * flat))
    return np.sqrt(np.maximum(squares, 0)), (flat @ rotated).reshape(len(found), 3, -1)


def limited_shapes(body: ElasticBody, omega: Floats, shapes: Floats, count: int) -> Floats:
    """(free, 3, at most count) what modes (free, 3, k) lack of the body bent along the lowest, within its limits."""
    if not count:
        return np.zeros((*shapes.shape[:2], 0))
    free, frames, fibres = len(shapes), body.frames_of(body.skeleton.rest_pose()), body.fibres(())
    start, posed = body.carried(frames, 0), body.posed(frames, 0)
    pull = partial(fibres.contraction, 0.0, frames.joints[0], posed.R)
    limits, root = body.limits(SimulateOptions.stretch_limit), np.sqrt(body.operator.stiffest)
    D = [body.operator.inner.functions.derivative(axis)[:, :free] for axis in range(3)]
    mass = np.repeat(np.sqrt(np.maximum(body.mass[:free, None], 0)), 3, axis=1)
    found = []
    for k in range(min(LIMITED_MODES, len(omega))):
        slopes = np.sqrt(sum(np.square(part @ shapes[:, :, k]).sum(axis=1) for part in D))
        most = max(float(np.quantile(slopes, 1 - STEEPEST)), STEEPEST * float(slopes.max()))
        for slope in (sign * slope for slope in LIMITED_SLOPES for sign in (1, -1)):
            load = slope / most * omega[k] ** 2 * body.mass[:free, None] * shapes[:, :, k]
            strain = abs(slope) / most * float(omega[k] / root)  # root mean square: little, of an antenna alone
            how = StaticOptions(LIMITED_ACCURACY * strain, ITERATIONS)
            bent = balanced(posed, start, load, pull, body.leash, body.static, limits, how).x
            found.append((mass * (bent - start)[:free]).ravel())
    flat = np.stack(found, axis=1)
    flat /= np.linalg.norm(flat, axis=0)
    known = (mass[:, :, None] * shapes).reshape(len(flat), -1)
    flat -= known @ (known.T @ flat)
    squares, components = np.linalg.eigh(flat.T @ flat)
    components = components[:, squares > (SURE * LIMITED_ACCURACY) ** 2][:, ::-1][:, :count]
    inverse = np.divide(1, mass, out=np.zeros_like(mass), where=mass > 0)  # a node may have no share of the volume
    return (flat @ components).reshape(free, 3, -1) * inverse[:, :, None]


def _rest_product(body: ElasticBody, d: Floats) -> Floats:
    """(free, 3) K d at rest, with leashes, for displacements (free * 3,) of the nodes."""
    operator, moved = body.operator, np.zeros((body.operator.functions.nodes, 3), np.float32)
    moved[: body.nodes.free] = d.reshape(-1, 3)
    same = np.tile(np.eye(3, dtype=np.float32).ravel(), (len(operator.mu), 1))
    return operator.product(moved, same, 1.0, body.leash.astype(np.float32)).astype(np.float64)
