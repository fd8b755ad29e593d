"""The initial guess of every solve: blended edge vectors, rotated by blended rotations, and one Poisson solve.

Per vertex, the rotation from the base to shape s is the polar factor of the spring covariance ``Σ_q k_q d_qs d_q0ᵀ``.
The rotation vectors ω are unwrapped over the surface (along the shortest paths from a seed, with the angle between
neighbours as edge length), so that a tail may rotate by more than 180° against the torso. With weights w a vertex
rotates by ``exp(Σ_s w_s ω_s)``. The springs' vectors are rotated back to the base in every shape, blended there and
rotated forward by the blended rotation to give d(w), and

    L x = div(k d(w))

is the least-squares shape with these vectors. At a shape's own weight it is the shape itself. Frames do not depend on
each other.
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


def common_rotation(q: Floats) -> Floats:
    """(..., 4) the geometric median of quaternions (..., n, 4), which is robust to outliers."""
    sample, columns = q[..., :: max(1, q.shape[-2] // 400), :], np.swapaxes(q, -1, -2)
    apart = np.arccos(np.clip(np.abs(sample @ columns), 0, 1)).sum(axis=-1)
    median = np.take_along_axis(sample, np.argmin(apart, axis=-1)[..., None, None], axis=-2)[..., 0, :]
    for _ in range(50):  # Weiszfeld iterations: means weighted by the inverse distance
        angle = np.arccos(np.clip(np.abs(q @ median[..., None])[..., 0], 0, 1))
        weighted = q / np.sqrt(angle**2 + 0.05**2)[..., None]
        median = np.linalg.eigh(columns @ weighted)[1][..., -1]
    return median


def rotation_vectors(q: Floats, edges: Ints, fixed: NDArray[np.bool_]) -> Floats:
    """(n, 3) rotation vectors of unit quaternions, consistent across the edges of each connected part.

    The seed of each part keeps its rotation vector of at most 180°: the fixed vertex that rotates least or, without
    fixed vertices, one in the largest patch of vertices that hardly rotate. (The largest, since the tip of a tail that
    has come full circle hardly rotates either.)
    """
    count = len(q)
    between = 2 * np.arccos(np.clip(np.abs(np.sum(q[edges[:, 0]] * q[edges[:, 1]], axis=1)), 0, 1))
    graph = sp.coo_matrix((between + 1e-6, (edges[:, 0], edges[:, 1])), shape=(count, count)).tocsr()
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
