"""Leashes: springs that keep flesh from lagging far behind its bones, however soft it is and however fast they move.

Rotations come from the bones. What hangs far out (an ear, a jaw, a belly) may lag a little, but it is stretched where
it should swing far, and the same soft flesh that wobbles on a thigh lets a long ear whip about. So each node I has a
spring to the place c_I to which the bones alone would carry it,

    ½ k_I |x_I - c_I|²,      k_I = m_I a_I / (s L_I)

with the length L of the path from the node through the flesh to the nearest bone, and the acceleration a that it has to
withstand: under a, flesh would lag by the share s = `LAG` of that length if it had no stiffness of its own. So near the
bones, and in calm motions, flesh is hardly held at all. Springs are damped as flesh is, and linear: steps keep their
order.

    a_I = Σ_b w_Ib (a_b + α_b |X_I - A_b|)

with the weights w of the bones at the node (`pliant.engines.simulate.diffusion`), the accelerations a of their heads A,
and the accelerations α by which a unit of length rotates about these.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.skeleton import Motion
from pliant.core.topology import Floats
from pliant.engines.simulate.bones import Bones
from pliant.engines.simulate.jumps import jump_steps
from pliant.engines.simulate.mls import Interpolation
from pliant.engines.simulate.nodes import SUPPORT_FACTOR, Nodes
from pliant.engines.simulate.stiffness import incidence, pattern

SMOOTH = 1 / 30
"""Seconds between the positions that accelerations are taken from: captured motions are noisy."""
LAG = 0.1
"""s: how far flesh may lag behind its bones, over its distance from them."""


def motion_accelerations(motion: Motion, diagonal: float) -> Floats:
    """(joints, 2) the largest accelerations of a motion's joints, and of a unit of length that rotates with them.

    diagonal: of the body. Jumps do not count: flesh does not follow them.
    """
    stride, count = max(1, round(motion.fps * SMOOTH)), len(motion)
    if count <= 2 * stride:
        return np.zeros((len(motion.skeleton), 2))
    positions, quaternions = motion.world()
    axes = rotations.matrix(quaternions).transpose(0, 1, 3, 2)
    moving = np.concatenate([positions[:, :, None], axes], axis=2)
    bends = moving[2 * stride :] - 2 * moving[stride:-stride] + moving[: -2 * stride]
    rates = np.linalg.norm(bends, axis=3) * (motion.fps / stride) ** 2
    for step in jump_steps(positions / diagonal, quaternions, motion.fps):
        rates[max(step + 1 - 2 * stride, 0) : step + 1] = 0
    most = rates.max(axis=0)
    return np.stack([most[:, 0], most[:, 1:].max(axis=1)], axis=1)


def checked_accelerations(withstand: ArrayLike, joints: int) -> Floats:
    """(joints, 2) accelerations, linear and angular, from one for all, one for each, or two for each."""
    try:
        given = np.asarray(withstand, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.full(1, np.nan)
    if given.shape not in ((), (joints,), (joints, 2)) or not (np.isfinite(given).all() and (given >= 0).all()):
        raise InputError(
            f"withstand is {withstand!r:.40}; expected a number, 0 or more, {joints} of them, or ({joints}, 2)",
            argument="withstand",
        )
    linear = given[:, 0] if given.ndim == 2 else given
    angular = given[:, 1] if given.ndim == 2 else 0.0
    return np.stack([np.broadcast_to(linear, (joints,)), np.broadcast_to(angular, (joints,))], axis=1)


def leash_rates(functions: Interpolation, nodes: Nodes, weights: Floats, bones: Bones, accelerations: Floats) -> Floats:
    """(free,) k / m of the nodes, per second squared.

    weights: (n, b) of the bones. accelerations: (joints, 2) in the body's own lengths.
    """
    free = nodes.free
    linear, angular = accelerations[bones.joint].T
    away = np.linalg.norm(nodes.points[:free, None] - bones.heads, axis=2)
    acceleration = (weights[:free] * (linear + angular * away)).sum(axis=1)
    return acceleration / (LAG * np.maximum(_paths(functions, nodes)[:free], nodes.radii[:free] / SUPPORT_FACTOR))


def _paths(functions: Interpolation, nodes: Nodes) -> Floats:
    """(n,) length of the shortest path from each node to a fixed one, over nodes that share a quadrature point; 0 where
    there is none."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    begin, column = pattern(incidence(functions)[0])
    row = np.repeat(np.arange(len(nodes)), np.diff(begin))
    away = np.linalg.norm(nodes.points[row] - nodes.points[column], axis=1)
    graph = csr_matrix((np.maximum(away, 1e-12), column, begin), shape=(len(nodes), len(nodes)))
    found = dijkstra(graph, indices=np.arange(nodes.free, len(nodes)), min_only=True)
    return np.where(np.isfinite(found), found, 0.0)
