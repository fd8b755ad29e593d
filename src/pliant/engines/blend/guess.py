"""The start of every solve: blended rotations turn blended edges, and one Poisson solve puts them together.

Per vertex, the rotation from the base to shape s is the polar factor of the spring covariance ``Σ_q k_q d_qs d_q0ᵀ``.
Its rotation vectors are made consistent over the surface (along the paths from the middle on which the turns between
neighbours add up to least), so that a tail may turn by more than 180° against the torso. With weights w a vertex turns
by ``exp(Σ_s w_s ω_s)``; the springs' vectors, turned back into the base's frame in every shape, are blended there and
turned by it, and

    L x = div(k d(w))

is the shape whose springs come nearest to them. At a shape's own weight that is the shape itself. Frames do not depend
on each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, dijkstra

from pliant.core import rotations
from pliant.core.topology import Floats, Ints
from pliant.engines.blend import kernels

STILL_PATCH = 0.5
"""Angle below which a vertex hardly turns, when a place to start unwrapping is sought."""
UNTURNED = 1e-4
"""Change of a spring's vector, over its length, that turns nothing: the rounding of files, and what no one sees."""


def vertex_rotations(base: Floats, target: Floats, edges: Ints, k: Floats) -> Floats:
    """(n, 4) quaternions of the rotations that take the springs at each vertex nearest from base to target."""
    before, after = base[edges[:, 0]] - base[edges[:, 1]], target[edges[:, 0]] - target[edges[:, 1]]
    changed = np.sum((after - before) ** 2, axis=1) > UNTURNED**2 * np.sum(before**2, axis=1)
    turned = np.zeros(len(base), dtype=bool)
    turned[edges[changed]] = True
    around = np.flatnonzero(turned[edges].any(axis=1))  # a sculpted rig's shapes leave most of the mesh alone
    covariance = k[around, None, None] * after[around, :, None] * before[around, None, :]
    rows, columns = edges[around].T.ravel(), np.tile(np.arange(len(around)), 2)
    gather = sp.coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(base), len(around))).tocsr()
    total = (gather[turned] @ covariance.reshape(-1, 9)).reshape(-1, 3, 3)
    q = np.tile([1.0, 0.0, 0.0, 0.0], (len(base), 1))
    q[turned] = rotations.quaternion(rotations.polar(total))
    return q


def common_rotation(q: Floats) -> Floats:
    """(..., 4) the rotation that most quaternions (..., n, 4) are near to: their median, which outliers do not move."""
    sample, turned = q[..., :: max(1, q.shape[-2] // 400), :], np.swapaxes(q, -1, -2)
    apart = np.arccos(np.clip(np.abs(sample @ turned), 0, 1)).sum(axis=-1)
    median = np.take_along_axis(sample, np.argmin(apart, axis=-1)[..., None, None], axis=-2)[..., 0, :]
    for _ in range(50):  # means weighted by one over the distance
        angle = np.arccos(np.clip(np.abs(q @ median[..., None])[..., 0], 0, 1))
        weighted = q / np.sqrt(angle**2 + 0.05**2)[..., None]
        median = np.linalg.eigh(turned @ weighted)[1][..., -1]
    return median


def rotation_vectors(q: Floats, edges: Ints, held: NDArray[np.bool_]) -> Floats:
    """(n, 3) rotation vectors of unit quaternions, consistent across the edges of each connected part.

    In each part one vertex keeps the short way round: of the held ones if there are any, the one that turns least; else
    one in the largest patch of vertices that hardly turn (a tail's tip may have come full circle, and hardly turn too).
    """
    count = len(q)
    between = 2 * np.arccos(np.clip(np.abs(np.sum(q[edges[:, 0]] * q[edges[:, 1]], axis=1)), 0, 1))
    graph = sp.coo_matrix((between + 1e-6, (edges[:, 0], edges[:, 1])), shape=(count, count)).tocsr()
    parts, label = connected_components(graph, directed=False)
    patch = _patches(graph, np.abs(q[:, 0]) > np.cos(STILL_PATCH / 2))
    seeds = []
    order = np.argsort(label, kind="stable")
    for members in np.split(order, np.searchsorted(label[order], np.arange(1, parts))):
        candidates = members[held[members]]
        if not len(candidates):
            candidates = members[patch[members] == patch[members].max()]
        seeds.append(candidates[np.argmax(np.abs(q[candidates, 0]))])
    total, parent, _ = dijkstra(graph, directed=False, indices=seeds, min_only=True, return_predecessors=True)
    turns = rotations.log(rotations.shortest(q))
    return kernels.unwrap(np.argsort(total, kind="stable"), parent.astype(np.int64), turns)


def _patches(graph: Any, chosen: NDArray[np.bool_]) -> Ints:
    """(n,) how many of the chosen vertices of a graph hang together with each of them; 0 for the others."""
    size = np.zeros(len(chosen), np.int64)
    where = np.flatnonzero(chosen)
    _, label = connected_components(graph[where][:, where], directed=False)
    size[where] = np.bincount(label)[label] if len(where) else 0
    return size


def nearest_branch(turns: Floats, near: Floats) -> Floats:
    """Of the rotation vectors ``axis (angle + 2π m)`` that turn alike, those nearest to given ones.

    What does not turn at all has no axis of its own, and takes that of what it should be near to.
    """
    angle = np.linalg.norm(turns, axis=-1, keepdims=True)
    size = np.linalg.norm(near, axis=-1, keepdims=True)
    given = np.divide(near, size, out=np.zeros_like(turns), where=size > 1e-9)
    axis = np.divide(turns, angle, out=given, where=angle > 1e-9)
    along = np.sum(axis * near, axis=-1, keepdims=True)
    return turns + axis * (2 * np.pi * np.round((along - angle) / (2 * np.pi)))
