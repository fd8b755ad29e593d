"""A large shape solved on a coarse one: its body has a few thousand vertices, and the fine surface is carried by them.

The coarse vertices are some of the fine ones, about equally far apart along the surface, so that they are known in
every shape. Each fine vertex belongs to the nearest of them, and the fine triangles whose corners belong to three are
the coarse triangles (the image of the surface under a simplicial map: what is closed stays closed).

A fine vertex i is carried by its nearest coarse vertices k. In every shape s it has a position relative to each,
rotated back to the base; these are blended, and rotated forward by the solution's own rotation:

    x_i = Σ_k α_ik (R_k Σ_s w_s R_ksᵀ (p_is - c_ks) + c_k)

c_ks and R_ks are position and rotation of k in shape s, c_k its solved position, and R_k the rotation that best takes
its springs, blended in the same way, ``Σ_s w_s R_ksᵀ d_qs``, to those of the solution (polar decomposition). At a
shape's own weight R_k = R_ks, c_k = c_ks, and x_i = p_is exactly. α_ik falls to zero at the first vertex that does not
carry i, so that it is continuous over the surface.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pliant.core import rotations
from pliant.core.shapes import Mesh, Weld
from pliant.core.topology import Floats, Ints, distinct
from pliant.engines.blend.body import SpringBody
from pliant.engines.blend.options import COARSE_COUNT, LARGE_COUNT
from pliant.native import in_threads, kernels as native

CARRIERS = 8
"""Coarse vertices that carry a fine one."""
PACKING, TRIES = 0.94, 2
"""Radius of the samples' discs over the root of the area of each, and how often it is adapted to their number."""
VERTEX_AREA = 0.866
"""Of a vertex of a triangular lattice with edges of 1."""
REFINEMENTS = 6
"""How often the distance of coarse vertices is halved where they are too far apart."""
CARRIED_BLOCK = 4096
"""The smallest number of vertices for which another thread pays."""


@dataclass(frozen=True, eq=False)
class Detail:
    """A fine surface on a coarse one."""

    weld: Weld
    """From the fine vertices to those of the file."""
    points: Floats
    """(shapes, n, 3) the fine vertices in every shape."""
    vertices: Ints
    """(m,) the fine vertices that are the coarse ones."""
    carriers: NDArray[np.int32]
    """(n, CARRIERS) coarse vertices that carry each fine one."""
    shares: Floats
    """(n, CARRIERS) α; they sum up to 1."""

    def carry(self, body: SpringBody, x: Floats, w: Floats) -> Floats:
        """(n, 3) the fine surface of the body's solution x (.., 3) in the world, at the weights w (shapes,)."""
        used = np.flatnonzero(w)
        m, (coarse, rotated) = len(self.vertices), self._shapes(body)
        motion = np.empty((m, 3 * len(used) + 1, 3))
        begun = rotations.matrix(rotations.multiply(*(rotations.exp(v @ w) for v in self._rotvecs(body))))
        given = x, body.network.fans, body.springs.stiffness, coarse[used], rotated[used], w[used], begun, motion
        in_threads(lambda a, b: native.detail_motion(given, a, b), m, CARRIED_BLOCK)
        carried = np.empty(self.points.shape[1:])
        fine = self.points, used, self.carriers, self.shares, motion, carried
        in_threads(lambda a, b: native.detail_carry(fine, a, b), len(carried), CARRIED_BLOCK)
        return carried

    def _rotvecs(self, body: SpringBody) -> tuple[Floats, Floats]:
        """(m, 3, shapes) rotation vectors of the coarse vertices' parts, and their own on those."""
        m, frames = len(self.vertices), body.frames
        part = frames.part[:m]
        whole = np.where(frames.free[part][:, None], frames.rotvecs[:, part], 0)
        return whole.transpose(1, 2, 0), body.rotvecs[:, :m].transpose(1, 2, 0)

    def _shapes(self, body: SpringBody) -> tuple[Floats, Floats]:
        """(shapes, m, 3) the coarse vertices in every shape, and (shapes, m, 3, 3) their rotations from the base."""
        if "shapes" not in self.__dict__:
            whole, own = (rotations.exp(v.transpose(2, 0, 1)) for v in self._rotvecs(body))
            rotated = rotations.matrix(rotations.multiply(whole, own))
            self.__dict__["shapes"] = np.ascontiguousarray(self.points[:, self.vertices]), rotated
        found: tuple[Floats, Floats] = self.__dict__["shapes"]
        return found


def coarse_count(coarse: int | str, count: int) -> int | None:
    """About how many of `count` vertices to solve for, by the option `coarse`; None for all."""
    if coarse == "none" or (coarse == "auto" and count <= LARGE_COUNT):
        return None
    most = COARSE_COUNT if coarse == "auto" else int(coarse)
    return most if most < count else None


def coarsened(weld: Weld, points: Floats, count: int, kept: Ints) -> tuple[Weld, Detail]:
    """A mesh of about `count` vertices, `kept` among them, as a weld of the file's vertices; and the fine one on it.

    points: (shapes, n, 3) of the fine mesh, `weld.mesh`. Where the coarse triangles do not cover it, as on a thin limb,
    the vertices are taken more densely.
    """
    from scipy.sparse.csgraph import dijkstra

    mesh = weld.mesh
    graph = _edge_graph(mesh, points)
    radius = np.full(points.shape[1], PACKING * np.sqrt(VERTEX_AREA * points.shape[1] / count))
    for _ in range(TRIES):
        radius *= np.sqrt(len(_samples(graph, radius, kept)) / count)
    for _ in range(REFINEMENTS):
        vertices = _samples(graph, radius, kept)
        _, _, source = dijkstra(graph, indices=vertices, min_only=True, return_predecessors=True)
        owner = np.searchsorted(vertices, source)
        triangles = _image(owner[mesh.triangles], len(vertices))
        sparse = _uncovered(owner, mesh, triangles, len(vertices))[owner]
        if not sparse.any():
            break
        radius[sparse] /= 2
    coarse = Mesh(mesh.points[vertices], triangles)
    carriers, shares = _carriers(points[0], owner, vertices, coarse)
    return Weld(coarse, owner[weld.index], weld.kept[vertices]), Detail(weld, points, vertices, carriers, shares)


def _samples(graph: sp.csr_matrix, radius: Floats, kept: Ints) -> Ints:
    """Vertices of a graph that are at least their radius apart, `kept` and others in a random order."""
    taken = np.zeros(len(radius), dtype=bool)
    taken[kept] = True
    order = np.random.default_rng(0).permutation(len(radius))
    native.detail_sample(graph.indptr, graph.indices, graph.data, order, radius, taken)
    return np.flatnonzero(taken)


def _edge_graph(mesh: Mesh, points: Floats) -> sp.csr_matrix:
    """The edges of a mesh with their mean length in all shapes (shapes, n, 3), over that of the edges around.

    So a coarse vertex stands for as many fine ones everywhere, and what is detailed and stiff stays so.
    """
    i, j = mesh.edges.T
    length = np.maximum(np.mean([np.linalg.norm(p[i] - p[j], axis=1) for p in points], axis=0), 1e-300)
    degree = np.maximum(np.bincount(mesh.edges.ravel(), minlength=points.shape[1]), 1)
    mean = (np.bincount(i, length, len(degree)) + np.bincount(j, length, len(degree))) / degree
    length /= np.sqrt(mean[i] * mean[j])
    both = np.concatenate([length, length]), (np.concatenate([i, j]), np.concatenate([j, i]))
    graph = sp.coo_matrix(both, shape=(points.shape[1],) * 2).tocsr()
    graph.indptr, graph.indices = graph.indptr.astype(np.int64), graph.indices.astype(np.int64)
    return graph


def _uncovered(owner: Ints, mesh: Mesh, triangles: Ints, count: int) -> NDArray[np.bool_]:
    """(count,) coarse vertices with an edge to another that is in no coarse triangle or in more than two, or with none.

    owner: (n,) the coarse vertex of each fine one.
    """
    between = np.sort(owner[mesh.edges], axis=1)
    between = distinct(between[between[:, 0] != between[:, 1]] @ np.array([count, 1]))
    sides = np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1) @ np.array([count, 1])
    found, times = np.unique(sides, return_counts=True)
    wrong = np.concatenate([np.setdiff1d(between, found), found[times > 2]])
    sparse = np.zeros(count, dtype=bool)
    sparse[owner[mesh.triangles]] = True
    sparse[triangles] = False
    sparse[wrong // count] = sparse[wrong % count] = True
    return sparse


def _image(corners: Ints, count: int) -> Ints:
    """(t, 3) what triangles (.., 3) of labels cover: those of three labels, less those that are covered both ways."""
    distinct = (corners != np.roll(corners, 1, axis=1)).all(axis=1)
    corners = corners[distinct]
    first = np.argmin(corners, axis=1)
    cycled = np.take_along_axis(corners, (first[:, None] + np.arange(3)) % 3, axis=1)
    flipped = cycled[:, 1] > cycled[:, 2]
    ordered = np.sort(cycled, axis=1)
    key = (ordered[:, 0] * count + ordered[:, 1]) * count + ordered[:, 2]
    _, where, which = np.unique(key, return_index=True, return_inverse=True)
    net = np.bincount(which.ravel(), np.where(flipped, -1, 1), minlength=len(where))
    found = ordered[where][net != 0]
    back = net[net != 0] < 0
    found[back] = found[back][:, [0, 2, 1]]
    return found


def _carriers(base: Floats, owner: Ints, vertices: Ints, coarse: Mesh) -> tuple[NDArray[np.int32], Floats]:
    """(n, CARRIERS) the coarse vertices nearest to each fine one, among those two edges around its own; and shares."""
    m = len(vertices)
    a, b = np.concatenate([coarse.edges, coarse.edges[:, ::-1], np.repeat(np.arange(m)[:, None], 2, axis=1)]).T
    once = sp.coo_matrix((np.ones(len(a)), (a, b)), shape=(m, m)).tocsr()
    twice = (once @ once).tocsr()
    sizes = np.diff(twice.indptr)
    around = np.full((m, max(int(sizes.max(initial=0)), CARRIERS + 1)), -1)
    around[np.arange(around.shape[1]) < sizes[:, None]] = twice.indices
    carriers = np.zeros((len(base), CARRIERS), np.int32)
    shares = np.zeros((len(base), CARRIERS))
    at = base[vertices]
    for part in np.array_split(np.arange(len(base)), max(1, len(base) // 20000)):
        candidates = around[owner[part]]
        away = np.linalg.norm(base[part][:, None] - at[candidates], axis=2)
        away[candidates < 0] = np.inf
        nearest = np.argpartition(away, CARRIERS, axis=1)[:, : CARRIERS + 1]
        found = np.take_along_axis(away, nearest, axis=1)
        rank = np.argsort(found, axis=1, kind="stable")
        nearest, found = np.take_along_axis(nearest, rank, axis=1), np.take_along_axis(found, rank, axis=1)
        known = np.isfinite(found)
        farthest = np.where(known, found, 0).max(axis=1, keepdims=True)
        reach = np.maximum(np.where(known[:, -1:], farthest, 2 * farthest), 1e-300)  # a small part has fewer
        weight = np.where(known, np.maximum(1 - (found / reach) ** 2, 0) ** 2, 0)[:, :-1]
        weight[:, 0] += 1e-300  # all are equally far, or it is one of them and no other is near
        carriers[part] = np.maximum(np.take_along_axis(candidates, nearest[:, :-1], axis=1), 0)
        shares[part] = weight / weight.sum(axis=1, keepdims=True)
    return carriers, shares
