"""Rotations of a surface from one shape to another, and the rotation vectors that they are blended by.

Per vertex, the rotation from the base to shape s is the polar factor of the spring covariance ``Σ_q k_q d_qs d_q0ᵀ``. A
rotation vector ω stands for a rotation only up to whole turns about its axis. They are chosen so that neighbours agree
(`rotation_vectors`), so that a tail may rotate by more than 180° against the torso: along the shortest paths from a
seed, with the angle between neighbours as edge length.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, dijkstra

from pliant.core import rotations
from pliant.core.topology import Floats, Ints, connected_parts
from pliant.engines.blend import kernels

NEARLY_STATIC_ANGLE = 0.5
"""Angle in radians below which a vertex is a candidate for the seed of the unwrapping."""
UNROTATED = 1e-4
"""Relative change of a spring's vector that counts as no rotation: rounding in files, and invisible motion."""


def vertex_rotations(base: Floats, target: Floats, edges: Ints, k: Floats) -> Floats:
    """(n, 4) quaternions: the rotation at each vertex that best maps its springs from base to target."""
    before, after = base[edges[:, 0]] - base[edges[:, 1]], target[edges[:, 0]] - target[edges[:, 1]]
    changed = np.sum((after - before) ** 2, axis=1) > UNROTATED**2 * np.sum(before**2, axis=1)
    moved = np.zeros(len(base), dtype=bool)
    moved[edges[changed]] = True
    around = np.flatnonzero(moved[edges].any(axis=1))  # the shapes of a sculpted rig move few vertices each
    covariance = k[around, None, None] * after[around, :, None] * before[around, None, :]
    rows, columns = edges[around].T.ravel(), np.tile(np.arange(len(around)), 2)
    gather = sp.coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(base), len(around))).tocsr()
    total = (gather[moved] @ covariance.reshape(-1, 9)).reshape(-1, 3, 3)
    q = np.tile([1.0, 0.0, 0.0, 0.0], (len(base), 1))
    q[moved] = rotations.quaternion(rotations.polar(total))
    return q


def log_growth(before: Floats, after: Floats, edges: Ints) -> Floats:
    """(n,) the logarithm of how much the connected part of each vertex has grown, at most thousandfold."""
    part = connected_parts(len(before), edges)
    squares = [np.sum((p[edges[:, 0]] - p[edges[:, 1]]) ** 2, axis=1) for p in (before, after)]
    totals = [np.bincount(part[edges[:, 0]], square, minlength=part.max(initial=-1) + 1) for square in squares]
    least = 1e-6 * np.maximum(*totals) + 1e-300
    first, last = (np.maximum(total, least) for total in totals)
    return (0.5 * np.log(last / first))[part]


def unwrapped_near(rotvecs: Floats, near: Floats) -> Floats:
    """(n, 3) rotation vectors of the same rotations, chosen near to others as those of neighbours are (`unwrap`)."""
    count = len(rotvecs)
    parent = np.concatenate([np.full(count, -1), np.arange(count)])
    return kernels.unwrap(np.arange(2 * count), parent, np.concatenate([near, rotvecs]))[count:]


def lifted(q: Floats, edges: Ints) -> Floats:
    """Unit quaternions (n, 4) with their signs chosen so that neighbours agree in each connected part.

    So they distinguish a rotation from the same one after a whole turn: the two are farthest apart.
    """
    graph = _graph(q, edges)
    _, label = connected_components(graph, directed=False)
    _, seeds = np.unique(label, return_index=True)
    total, parent, _ = dijkstra(graph, directed=False, indices=seeds, min_only=True, return_predecessors=True)
    return kernels.aligned_signs(np.argsort(total, kind="stable"), parent.astype(np.int64), q)


def common_rotation(q: Floats) -> Floats:
    """(..., 4) the geometric median of `lifted` quaternions (..., n, 4), which is robust to outliers."""
    sample, columns = q[..., :: max(1, q.shape[-2] // 400), :], np.swapaxes(q, -1, -2)
    apart = np.arccos(np.clip(sample @ columns, -1, 1)).sum(axis=-1)
    median = np.take_along_axis(sample, np.argmin(apart, axis=-1)[..., None, None], axis=-2)[..., 0, :]
    for _ in range(50):  # Weiszfeld iterations: means weighted by the inverse distance
        angle = np.arccos(np.clip((q @ median[..., None])[..., 0], -1, 1))
        mean = np.sum(q / np.sqrt(angle**2 + 0.05**2)[..., None], axis=-2)
        size = np.linalg.norm(mean, axis=-1, keepdims=True)
        median = np.where(size > 1e-12, mean / np.maximum(size, 1e-12), median)
    return median


def rotation_vectors(q: Floats, edges: Ints, fixed: NDArray[np.bool_]) -> Floats:
    """(n, 3) rotation vectors of unit quaternions, consistent across the edges of each connected part.

    The seed of each part keeps its rotation vector of at most 180°: the fixed vertex that rotates least or, without
    fixed vertices, one in the largest patch of vertices that hardly rotate. (The largest, since the tip of a tail that
    has come full circle hardly rotates either.)
    """
    graph = _graph(q, edges)
    parts, label = connected_components(graph, directed=False)
    patch = _patches(graph, np.abs(q[:, 0]) > np.cos(NEARLY_STATIC_ANGLE / 2))
    seeds = []
    order = np.argsort(label, kind="stable")
    for members in np.split(order, np.searchsorted(label[order], np.arange(1, parts))):
        candidates = members[fixed[members]]
        if not len(candidates):
            candidates = members[patch[members] == patch[members].max()]
        seeds.append(candidates[np.argmax(np.abs(q[candidates, 0]))])
    total, parent, _ = dijkstra(graph, directed=False, indices=seeds, min_only=True, return_predecessors=True)
    rotvecs = rotations.log(rotations.shortest(q))
    return kernels.unwrap(np.argsort(total, kind="stable"), parent.astype(np.int64), rotvecs)


def _graph(q: Floats, edges: Ints) -> Any:
    """(n, n) the edges, each as long as the angle between the rotations at its ends."""
    between = 2 * np.arccos(np.clip(np.abs(np.sum(q[edges[:, 0]] * q[edges[:, 1]], axis=1)), 0, 1))
    return sp.coo_matrix((between + 1e-6, (edges[:, 0], edges[:, 1])), shape=(len(q), len(q))).tocsr()


def _patches(graph: Any, chosen: NDArray[np.bool_]) -> Ints:
    """(n,) size of the connected component, among the chosen vertices of a graph, of each of them; 0 for the others."""
    size = np.zeros(len(chosen), np.int64)
    where = np.flatnonzero(chosen)
    _, label = connected_components(graph[where][:, where], directed=False)
    size[where] = np.bincount(label)[label] if len(where) else 0
    return size


def nearest_branch(rotvecs: Floats, near: Floats) -> Floats:
    """Of the rotation vectors ``axis (angle + 2π m)`` of the same rotations, those nearest to `near`.

    The identity has no axis of its own and takes that of `near`.
    """
    angle = np.linalg.norm(rotvecs, axis=-1, keepdims=True)
    size = np.linalg.norm(near, axis=-1, keepdims=True)
    given = np.divide(near, size, out=np.zeros_like(rotvecs), where=size > 1e-9)
    axis = np.divide(rotvecs, angle, out=given, where=angle > 1e-9)
    along = np.sum(axis * near, axis=-1, keepdims=True)
    return rotvecs + axis * (2 * np.pi * np.round((along - angle) / (2 * np.pi)))
