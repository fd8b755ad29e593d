"""The start of every solve: blended rotations turn blended edges, and one Poisson solve puts them together.

Per vertex, the rotation from the base to shape s is the polar factor of the spring covariance ``Σ_q k_q d_qs d_q0ᵀ``.
Its rotation vectors are made consistent over the surface (along the spanning tree on which neighbours differ least), so
that a tail may turn by more than 180° against the torso. With weights w a vertex turns by ``exp(Σ_s w_s ω_s)``; the
springs' vectors, turned back into the base's frame in every shape, are blended there and turned by it, and

    L x = div(k d(w))

is the shape whose springs come nearest to them. At a shape's own weight that is the shape itself. Frames do not depend
on each other.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree

from pliant import rotations
from pliant.blend import kernels
from pliant.topology import Floats, Ints


def vertex_rotations(base: Floats, target: Floats, edges: Ints, k: Floats) -> Floats:
    """(n, 4) quaternions of the rotations that take the springs at each vertex nearest from base to target."""
    i, j = edges.T
    covariance = k[:, None, None] * (target[i] - target[j])[:, :, None] * (base[i] - base[j])[:, None, :]
    rows = np.concatenate([i, j])
    columns = np.concatenate([np.arange(len(edges))] * 2)
    gather = sp.coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(base), len(edges))).tocsr()
    total = (gather @ covariance.reshape(-1, 9)).reshape(-1, 3, 3)
    return rotations.quaternion(rotations.polar(total))


def rotation_vectors(q: Floats, edges: Ints, held: NDArray[np.bool_]) -> Floats:
    """(n, 3) rotation vectors of unit quaternions, consistent across the edges of each connected part.

    In each part one vertex keeps the short way round: the held one that turns least or, in a part that nothing holds,
    the one whose rotation is nearest to the part's mean.
    """
    count = len(q)
    between = 2 * np.arccos(np.clip(np.abs(np.sum(q[edges[:, 0]] * q[edges[:, 1]], axis=1)), 0, 1))
    graph = sp.coo_matrix((between + 1e-6, (edges[:, 0], edges[:, 1])), shape=(count, count)).tocsr()
    tree = minimum_spanning_tree(graph)
    parts, label = connected_components(graph, directed=False)
    turns = rotations.log(rotations.shortest(q))
    order, parent = [], np.full(count, -9999, np.int64)
    for part in range(parts):
        members = np.flatnonzero(label == part)
        fixed = members[held[members]]
        if len(fixed):
            seed = fixed[np.argmax(np.abs(q[fixed, 0]))]
        else:
            mean = np.linalg.eigh(q[members].T @ q[members])[1][:, -1]
            seed = members[np.argmax(np.abs(q[members] @ mean))]
        visited, before = breadth_first_order(tree, seed, directed=False)
        order.append(visited)
        parent[visited] = before[visited]
    return kernels.unwrap(np.concatenate(order).astype(np.int64), parent, turns)


def nearest_branch(turns: Floats, near: Floats) -> Floats:
    """Of the rotation vectors ``axis (angle + 2π m)`` that turn alike, those nearest to given ones."""
    angle = np.linalg.norm(turns, axis=-1, keepdims=True)
    axis = np.divide(turns, angle, out=np.zeros_like(turns), where=angle > 1e-9)
    along = np.sum(axis * near, axis=-1, keepdims=True)
    return turns + axis * (2 * np.pi * np.round((along - angle) / (2 * np.pi)))
