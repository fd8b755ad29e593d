"""Vertices that joints carry: those that are not flesh, and those where flesh is too thin for its nodes.

A joint that moves vertices has a *frame*: four points that go along with it, the last nodes. A vertex that joints carry
with the weights w_j is an affine combination of their points,

    x = Σ_j w_j (R_j X + t_j) = Σ_j w_j (f_j0 + Σ_k (X − F_j0)_k / s (f_jk − f_j0)),

so it follows from the nodes in the same way as flesh does.

Flesh that is thinner than its nodes are apart has no say in how it bends, and a vertex that is far outside of its nodes
exaggerates what they do. There the file's skin takes over. Flesh may be far from where the skin has it, so it does so
over a distance: what edges are stretched by between the two is that over the distance.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pliant.core.shapes import Mesh
from pliant.core.topology import Floats, Ints
from pliant.core.values import locked
from pliant.engines.simulate.binding import WELD, Binding
from pliant.engines.simulate.bones import Bones
from pliant.engines.simulate.cuts import CUT
from pliant.engines.simulate.discretisation import LEAST_THICKNESS
from pliant.engines.simulate.mls import Interpolation
from pliant.engines.simulate.nodes import Nodes, relative_thickness

FRAME_SIZE = 0.2
"""s, over the diagonal."""
TOO_THIN = (LEAST_THICKNESS, 0.65)
"""Half of the thickness over the nodes' distance: below the first the skin moves a vertex, above the second flesh."""
EXTRAPOLATED = (2.5, 3.5)
"""Σ |φ| of a vertex, up to which flesh moves it, and from which on the skin does."""
TRANSITION = 0.05
"""Distance, over the diagonal, over which the skin takes over from flesh, at least."""
NEAREST_VERTICES = 6
"""Of a vertex, which may be of other parts."""


def frame_points(bones: Bones, carriers: Ints, diagonal: float) -> Floats:
    """(c, 4, 3) the frames of bones (c,) at rest: each bone's head, and points along the axes."""
    return bones.heads[carriers][:, None] + np.concatenate([np.zeros((1, 3)), FRAME_SIZE * diagonal * np.eye(3)])


def carried_surface(
    surface: Interpolation,
    mesh: Mesh,
    binding: Binding,
    bones: Bones,
    carriers: Ints,
    nodes: Nodes,
    foreign: Floats,
) -> Interpolation:
    """The functions of all vertices.

    surface: those of the vertices of flesh. carriers: (c,) the bones with frames. foreign: (p,) the share of nodes that
    reach a vertex of flesh without belonging to it.
    """
    from scipy.sparse import csr_array, diags_array, hstack

    n, elastic = len(mesh.points), binding.elastic(len(mesh.points))
    share = np.zeros(n)
    share[elastic] = 1.0
    carried = csr_array((n, len(bones.skeleton))) if binding.carried is None else binding.carried
    if binding.skin is not None:
        share[elastic] = _shares(surface, nodes) * np.clip(1 - foreign / CUT, 0, 1)
        share[elastic[np.diff(binding.skin.indptr)[elastic] == 0]] = 1.0
        share = np.minimum(share, _gradual(share, mesh))
        mixed = np.zeros(n)
        mixed[elastic] = 1 - share[elastic]
        carried = carried + diags_array(mixed) @ binding.skin
    spread = csr_array((np.ones(len(elastic)), (elastic, np.arange(len(elastic)))), shape=(n, len(elastic)))
    rows = diags_array(share) @ spread @ surface.matrix
    table = csr_array(hstack([rows, _by_frames(carried, mesh.points, bones, carriers, nodes.surface.diagonal)]))
    table.eliminate_zeros()
    table.sort_indices()
    start, node = locked(table.indptr.astype(np.int64)), locked(table.indices.astype(np.int32))
    return replace(surface, start=start, node=node, phi=locked(table.data), nodes=table.shape[1])


def _by_frames(carried: Any, points: Floats, bones: Bones, carriers: Ints, diagonal: float) -> Any:
    """Sparse (n, 4 c): vertices by the points of the frames, for weights (n, joints)."""
    from scipy.sparse import coo_array

    number = np.full(len(bones.skeleton), -1)
    number[bones.joint[carriers]] = np.arange(len(carriers))
    moved = carried.tocoo()
    frame = number[moved.col]
    away = (points[moved.row] - bones.heads[carriers][frame]) / (FRAME_SIZE * diagonal)
    value = np.concatenate([(1 - away.sum(axis=1))[:, None], away], axis=1) * moved.data[:, None]
    where = np.repeat(moved.row, 4), (4 * frame[:, None] + np.arange(4)).ravel()
    return coo_array((value.ravel(), where), shape=(len(points), 4 * len(carriers)))


def _shares(surface: Interpolation, nodes: Nodes) -> Floats:
    """(p,) by how much flesh moves its vertices, from 0 to 1."""
    weight = surface.matrix.copy()
    weight.data = np.abs(weight.data)
    total = np.asarray(weight.sum(axis=1)).ravel()
    thick = np.clip(((weight @ relative_thickness(nodes)) / total - TOO_THIN[0]) / (TOO_THIN[1] - TOO_THIN[0]), 0, 1)
    return np.asarray(thick * np.clip((EXTRAPOLATED[1] - total) / (EXTRAPOLATED[1] - EXTRAPOLATED[0]), 0, 1))


def _gradual(share: Floats, mesh: Mesh) -> Floats:
    """(n,) the largest shares up to those given that change by at most 1 over `TRANSITION` diagonals.

    Distances are along edges, across seams, and to the nearest vertices of other parts.
    """
    from scipy.sparse import coo_matrix  # whose numbers are 32 bit, as older versions of dijkstra need them
    from scipy.sparse.csgraph import dijkstra
    from scipy.spatial import cKDTree

    weld = mesh.welded(WELD)
    points, count = weld.mesh.points, len(weld.mesh.points)
    value = np.ones(count)
    np.minimum.at(value, weld.index, share)
    near = cKDTree(points).query(points, k=min(1 + NEAREST_VERTICES, count))[1].reshape(count, -1)
    pairs = np.concatenate([weld.mesh.edges, np.stack([np.repeat(near[:, 0], near.shape[1]), near.ravel()], axis=1)])
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    away = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1) / (TRANSITION * mesh.diagonal)
    a, b = np.concatenate([pairs, np.stack([np.full(count, count), np.arange(count)], axis=1)]).T
    length = np.maximum(np.concatenate([away, value]), 1e-12)
    graph = coo_matrix((length, (a, b)), shape=(count + 1, count + 1)).tocsr()
    return np.asarray(dijkstra(graph, directed=False, indices=count)[weld.index])
