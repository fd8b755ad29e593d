"""Vertices that joints carry: those that are not flesh, and those of flesh that the file has a skin for.

A joint that moves vertices has a *frame*: four points that go along with it, the last nodes. A vertex that joints carry
with the weights w_j is an affine combination of their points,

    x = Σ_j w_j (R_j X + t_j) = Σ_j w_j (f_j0 + Σ_k (X − F_j0)_k / s (f_jk − f_j0)),

so it follows from the nodes in the same way as flesh does. Where the motion scales a joint (an eye blinks by being
squashed), its frame is scaled, too.

Where the file has a skin, flesh adds to it: a vertex with functions φ_I of the free nodes is where the skin has it, and
as far from there as flesh is from where the bones alone carry it,

    x = Σ_j w_j (R_j X + t_j) + Σ_I φ_I (x_I − c_I),      c_I = Σ_b w_Ib (R_b X_I + t_b).

The bones that carry nodes have frames of their own, which are not scaled: what a joint scales is the skin.
So what the skin does is kept to the finest detail, and no edge is stretched by more than the difference of what is
added at its ends. That is smooth: φ are averaged over neighbouring vertices as far as nodes reach, since they are steep
beside the samples of bones. Flesh that is thinner than its nodes are apart has no say in how it bends, and a vertex
that is far outside of its nodes exaggerates what they do: there it adds less, or nothing.
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
from pliant.engines.simulate.diffusion import RotationWeights
from pliant.engines.simulate.discretisation import LEAST_THICKNESS
from pliant.engines.simulate.mls import Interpolation
from pliant.engines.simulate.nodes import SUPPORT_FACTOR, Nodes, relative_thickness

FRAME_SIZE = 0.2
"""s, over the diagonal."""
TOO_THIN = (LEAST_THICKNESS, 0.65)
"""Half of the thickness over the nodes' distance: below the first flesh adds nothing, above the second all it has."""
EXTRAPOLATED = (2.5, 3.5)
"""Σ |φ| of a vertex, up to which flesh adds all it has, and from which on nothing."""
TRANSITION = 0.05
"""Distance, over the diagonal, over which what flesh adds ends, at least."""
AVERAGED, AVERAGINGS = 2.0, 4
"""Distance, over that of the nodes, over which functions are averaged; and how often."""
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
    weights: RotationWeights,
    foreign: Floats,
) -> Interpolation:
    """The functions of all vertices.

    surface: those of the vertices of flesh. carriers: (c,) bones whose frames carry vertices; those that carry nodes
    come after them. weights: of the bones at the nodes.
    foreign: (p,) the share of nodes that reach a vertex of flesh without belonging to it.
    """
    from scipy.sparse import csr_array, diags_array, hstack

    n, elastic = len(mesh.points), binding.elastic(len(mesh.points))
    spread = csr_array((np.ones(len(elastic)), (elastic, np.arange(len(elastic)))), shape=(n, len(elastic)))
    carried = csr_array((n, len(bones.skeleton))) if binding.carried is None else binding.carried
    rows = spread @ csr_array(surface.matrix)
    frames = _by_frames(carried @ _moving_alike(bones), mesh.points, bones, carriers, nodes.surface.diagonal)
    if binding.skin is not None:
        bound = np.zeros(n)
        bound[elastic] = np.diff(binding.skin.indptr)[elastic] > 0
        share, reach = np.zeros(n), np.full(n, np.inf)
        share[elastic], reach[elastic] = (
            _shares(surface, nodes) * np.clip(1 - foreign / CUT, 0, 1),
            _reach(surface, nodes),
        )
        share[elastic[bound[elastic] == 0]] = 1.0
        share = np.minimum(share, _gradual(share, mesh))
        free = diags_array((np.arange(len(nodes)) < nodes.free).astype(np.float64))
        added = diags_array(bound) @ _averaged(diags_array(bound * share) @ rows @ free, mesh, reach)
        skinned = diags_array(bound) @ binding.skin @ _moving_alike(bones)
        frames = frames + _by_frames(skinned, mesh.points, bones, carriers, nodes.surface.diagonal)
        carrying = np.unique(weights.bone)
        at_nodes = _by_frames(weights.table(len(bones)), nodes.points, bones, carrying, nodes.surface.diagonal)
        rows, frames = diags_array(1 - bound) @ rows + added, hstack([frames, -added @ at_nodes])
    table = csr_array(hstack([rows, frames]))
    table.eliminate_zeros()
    table.sort_indices()
    start, node = locked(table.indptr.astype(np.int64)), locked(table.indices.astype(np.int32))
    return replace(surface, start=start, node=node, phi=locked(table.data), nodes=table.shape[1])


def _moving_alike(bones: Bones) -> Any:
    """Sparse (joints, b): for each joint, the carrier that moves as it does."""
    from scipy.sparse import csr_array

    carriers = np.arange(len(bones) - bones.carriers, len(bones))
    return csr_array((np.ones(len(carriers)), (bones.joint[carriers], carriers)), (len(bones.skeleton), len(bones)))


def _by_frames(weights: Any, points: Floats, bones: Bones, framed: Ints, diagonal: float) -> Any:
    """Sparse (p, 4 c): points by those of the frames, for weights (p, b) of the bones."""
    from scipy.sparse import coo_array

    number = np.full(len(bones), -1)
    number[framed] = np.arange(len(framed))
    moved = weights.tocoo()
    frame = number[moved.col]
    away = (points[moved.row] - bones.heads[framed][frame]) / (FRAME_SIZE * diagonal)
    value = np.concatenate([(1 - away.sum(axis=1))[:, None], away], axis=1) * moved.data[:, None]
    where = np.repeat(moved.row, 4), (4 * frame[:, None] + np.arange(4)).ravel()
    return coo_array((value.ravel(), where), shape=(len(points), 4 * len(framed))).tocsr()


def _reach(surface: Interpolation, nodes: Nodes) -> Floats:
    """(p,) the distance over which functions are averaged around each vertex."""
    weight = _sizes(surface)
    return np.asarray(AVERAGED / SUPPORT_FACTOR * (weight @ nodes.radii) / (weight @ np.ones(len(nodes))))


def _sizes(surface: Interpolation) -> Any:
    """Sparse (p, n) |φ|."""
    sizes = surface.matrix.copy()
    sizes.data = np.abs(sizes.data)
    return sizes


def _averaged(rows: Any, mesh: Mesh, reach: Floats) -> Any:
    """Rows of vertices, averaged over neighbours that are nearer than `reach` (n,), `AVERAGINGS` times."""
    from scipy.sparse import csr_array, diags_array

    weld = mesh.welded(WELD)
    count, (a, b) = len(weld.mesh.points), weld.mesh.edges.T
    first = np.zeros(count, dtype=np.int64)
    first[weld.index] = np.arange(len(weld.index))
    near = reach[first]
    length = np.linalg.norm(weld.mesh.points[a] - weld.mesh.points[b], axis=1)
    weight = np.exp(-np.square(length / np.minimum(near[a], near[b])))
    pairs = np.concatenate([a, b, np.arange(count)]), np.concatenate([b, a, np.arange(count)])
    mean = csr_array((np.concatenate([weight, weight, np.ones(count)]), pairs), shape=(count, count))
    mean = diags_array(1 / mean.sum(axis=1)) @ mean
    found = csr_array(rows)[first]
    for _ in range(AVERAGINGS):
        found = mean @ found
    return found[weld.index]


def _shares(surface: Interpolation, nodes: Nodes) -> Floats:
    """(p,) the share of what flesh has to add that its vertices take, from 0 to 1."""
    weight = _sizes(surface)
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
