"""How a file binds the vertices of a mesh to the joints of a skeleton."""

from __future__ import annotations

from typing import Any

import numpy as np

from pliant.core.shapes import Mesh
from pliant.core.skeleton import Skeleton
from pliant.core.topology import Floats, Ints


def skin_of(mesh: Mesh, skeleton: Skeleton) -> Any:
    """Sparse (n, joints): the vertex groups that are called as joints, rows that sum to 1 or are 0; None without."""
    from scipy.sparse import csr_array

    table = csr_array((len(mesh.points), len(skeleton)))
    for name, weights in mesh.vertex_groups.items():
        if name in skeleton.names:
            rows = np.flatnonzero(weights > 0)
            column = np.full(len(rows), skeleton.index(name))
            table = table + csr_array((weights[rows], (rows, column)), shape=table.shape)
    if not table.nnz:
        return None
    total = np.asarray(table.sum(axis=1)).ravel()
    return table.multiply(1 / np.where(total > 0, total, 1)[:, None]).tocsr()


def overlap(mesh: Mesh, skin: Any) -> Floats:
    """(joints, joints) how much the flesh of two joints meets: their weights' product at vertices and across edges.

    As a cosine: 1 on the diagonal, 0 for joints that carry nothing.
    """
    from scipy.sparse import coo_array, eye_array

    n, (a, b) = len(mesh.points), mesh.edges.T
    across = coo_array((np.ones(len(a)), (a, b)), shape=(n, n)).tocsr()
    meeting = (skin.T @ ((across + across.T + eye_array(n)) @ skin)).toarray()
    size = np.sqrt(np.maximum(np.diag(meeting), 1e-300))
    found: Floats = meeting / np.outer(size, size)
    return found


def neighbouring_joints(mesh: Mesh, skin: Any, skeleton: Skeleton) -> Ints:
    """(joints,) for each joint, the one that its flesh goes on into, on the way to the first joint; -1 at the first.

    The tree of most overlap; parents decide where no flesh does.
    """
    from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

    near = overlap(mesh, skin)
    child = np.flatnonzero(skeleton.parents >= 0)
    for i, j in ((child, skeleton.parents[child]), (skeleton.parents[child], child)):
        near[i, j] = np.maximum(near[i, j], 1e-9)
    np.fill_diagonal(near, 0)
    tree = minimum_spanning_tree(np.where(near > 0, 2 - near, 0))
    result = np.full(len(skeleton), -1)
    for root in np.flatnonzero(skeleton.parents < 0):
        order, before = breadth_first_order(tree, int(root), directed=False)
        fresh = [joint for joint in order[1:] if result[joint] < 0 and joint != 0]
        result[fresh] = before[fresh]
    return result
