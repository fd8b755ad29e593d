"""Vertices that joints carry: those that are not flesh, and those of flesh that the file has a skin for.

A joint that moves vertices has a *frame*: four points that go along with it, the last nodes. A vertex that joints carry
with the weights w_j is an affine combination of their points,

    x = Σ_j w_j (R_j X + t_j) = Σ_j w_j (f_j0 + Σ_k (X − F_j0)_k / s (f_jk − f_j0)),

so it follows from the nodes in the same way as flesh does. Where the motion scales a joint (an eye blinks by being
squashed), its frame is scaled, too. Where the file's rest pose is not the one that the mesh was bound in, each joint
has the vertex elsewhere at rest: X is then X_j, Σ_j w_j X_j = X (`Mesh.bind_offsets`).

Where the file has a skin, flesh adds to it: a vertex with functions φ_I of the free nodes is where the skin has it, and
as far from there as flesh is from where the bones alone carry it,

    x = Σ_j w_j (R_j X + t_j) + Σ_I φ_I (x_I − c_I),      c_I = Σ_b w_Ib (R_b X_I + t_b).

The bones that carry nodes have frames of their own, which are not scaled: what a joint scales is the skin.
So what the skin does is kept to the finest detail, and no edge is stretched by more than the difference of what is
added at its ends. φ are steep beside the samples of bones, and may end within an edge: what is added instead is

    the minimum φ̄ of Σ_v |φ̄_v − φ_v|² + Σ_edges (r / ℓ)² |φ̄_a − φ̄_b|²

with the edges' lengths ℓ at rest, and one distance r (`SMOOTHING`): the nearest to it whose stretches are small,
however fine the mesh is. Flesh that is thinner than its nodes are apart has no say in how it bends, and a vertex
that is far outside of its nodes exaggerates what they do: there it adds less, or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from pliant.engines.simulate.nodes import Nodes, relative_thickness
from pliant.numerics.linalg import factorize

FRAME_SIZE = 0.2
"""s, over the diagonal."""
TOO_THIN = (LEAST_THICKNESS, 0.65)
"""Half of the thickness over the nodes' distance: below the first flesh adds nothing, above the second all it has."""
EXTRAPOLATED = (2.5, 3.5)
"""Σ |φ| of a vertex, up to which flesh adds all it has, and from which on nothing."""
TRANSITION = 0.05
"""Distance, over the diagonal, over which what flesh adds ends, at least."""
SMOOTHING = 0.05
"""r, over the diagonal."""
SMOOTHED_AT_ONCE, LEAST_ADDED, LEAST_OF_LARGEST = 128, 1e-5, 0.02
"""Nodes whose functions are smoothed in one solve; values that are left out after it; and those, over a vertex's
largest, whose sum the others take over."""
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
    diagonal = nodes.surface.diagonal
    frames = _by_frames(carried @ _moving_alike(bones), mesh.points, bones, carriers, diagonal, mesh.bind_offsets)
    if binding.skin is not None:
        bound = np.zeros(n)
        bound[elastic] = np.diff(binding.skin.indptr)[elastic] > 0
        share = np.zeros(n)
        share[elastic] = _shares(surface, nodes) * np.clip(1 - foreign / CUT, 0, 1)
        share[elastic[bound[elastic] == 0]] = 1.0
        share = np.minimum(share, _gradual(share, mesh))
        free = diags_array((np.arange(len(nodes)) < nodes.free).astype(np.float64))
        added = diags_array(bound) @ _smoothed(diags_array(bound * share) @ rows @ free, mesh)
        skinned = diags_array(bound) @ binding.skin @ _moving_alike(bones)
        frames = frames + _by_frames(skinned, mesh.points, bones, carriers, diagonal, mesh.bind_offsets)
        carrying = np.unique(weights.bone)
        at_nodes = _by_frames(weights.table(len(bones)), nodes.points, bones, carrying, diagonal)
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


def _by_frames(
    weights: Any, points: Floats, bones: Bones, framed: Ints, diagonal: float,
    offsets: Mapping[str, Floats] | None = None,
) -> Any:  # fmt: skip
    """Sparse (p, 4 c): points by those of the frames, for weights (p, b) of the bones.

    offsets: by joint, (p, 3) from the points to where it has them.
    """
    from scipy.sparse import coo_array

    number = np.full(len(bones), -1)
    number[framed] = np.arange(len(framed))
    moved = weights.tocoo()
    frame = number[moved.col]
    offset = np.zeros((moved.nnz, 3))
    for joint, of_joint in (offsets or {}).items():
        mine = np.array(bones.skeleton.names)[bones.joint[moved.col]] == joint
        offset[mine] = of_joint[moved.row[mine]]
    at = points.copy()  # less what offsets add up to, so that all weights give the points at rest
    np.add.at(at, moved.row, -moved.data[:, None] * offset)
    away = (at[moved.row] + offset - bones.heads[framed][frame]) / (FRAME_SIZE * diagonal)
    value = np.concatenate([(1 - away.sum(axis=1))[:, None], away], axis=1) * moved.data[:, None]
    where = np.repeat(moved.row, 4), (4 * frame[:, None] + np.arange(4)).ravel()
    return coo_array((value.ravel(), where), shape=(len(points), 4 * len(framed))).tocsr()


def _sizes(surface: Interpolation) -> Any:
    """Sparse (p, n) |φ|."""
    sizes = surface.matrix.copy()
    sizes.data = np.abs(sizes.data)
    return sizes


def _smoothed(rows: Any, mesh: Mesh) -> Any:
    """Rows φ (n, nodes) of vertices as φ̄, across seams."""
    from scipy.sparse import csr_array, diags_array, hstack

    weld = mesh.welded(WELD)
    count, edges = len(weld.mesh.points), weld.mesh.edges
    length = np.linalg.norm(weld.mesh.points[edges[:, 0]] - weld.mesh.points[edges[:, 1]], axis=1) / mesh.diagonal
    stiffness = np.square(SMOOTHING / np.maximum(length, WELD))
    springs = csr_array((stiffness, edges.T), shape=(count, count))
    springs = springs + springs.T
    factor = factorize(diags_array(1 + springs.sum(axis=1)) - springs)
    first = np.zeros(count, dtype=np.int64)
    first[weld.index] = np.arange(len(weld.index))
    given = csr_array(rows)[first].tocsc()
    parts = []
    for begin in range(0, given.shape[1], SMOOTHED_AT_ONCE):
        some = factor.solve(given[:, begin : begin + SMOOTHED_AT_ONCE].toarray())
        parts.append(csr_array(np.where(np.abs(some) < LEAST_ADDED, 0, some)))
    return _largest(hstack(parts, format="csr"), factor.solve(np.asarray(given.sum(axis=1)).ravel()))[weld.index]


def _largest(rows: Any, sums: Floats) -> Any:
    """Sparse rows without what is below `LEAST_OF_LARGEST`, which the others make up for: each has its sum."""
    sizes = abs(rows)
    of = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    largest = np.asarray(sizes.max(axis=1).todense()).ravel()
    rows.data[sizes.data < LEAST_OF_LARGEST * largest[of]] = 0
    lost, kept = sums - np.asarray(rows.sum(axis=1)).ravel(), np.asarray(abs(rows).sum(axis=1)).ravel()
    rows.data += np.abs(rows.data) * np.divide(lost, kept, out=np.zeros(len(kept)), where=kept > 0)[of]
    rows.eliminate_zeros()
    return rows


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
