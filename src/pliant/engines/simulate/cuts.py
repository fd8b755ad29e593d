"""Flesh that overlaps without belonging together, told apart by the file's skin.

Teeth of the upper jaw are often sunk into the lower one, a thigh into the belly: where a surface crosses itself there
is one inside, and nodes of one limb would move the other. The skin knows better. A node is *foreign* to a point if

- the skin moves the two differently (their weights, at the nearest places of the surface, differ), and
- from one to the other the way over the surface is more than `DETOUR` times as long as that through the flesh.

Flesh around a joint that bends passes: there the way over the surface is short. So do parts that are stuck into each
other, as a leg into a trunk: they are meant to be one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.core.shapes import Mesh
from pliant.core.topology import Floats, Ints
from pliant.engines.simulate.binding import WELD, Binding
from pliant.engines.simulate.mls import Interpolation

LARGEST_OVERLAP = 0.7
"""Σ_j min(w_j, w'_j) from which on two points move alike."""
DETOUR = 3.0
CUT = 0.1
"""Share of foreign nodes from which on flesh is as good as cut."""
REMAINS = 1e-3
"""Of its stiffness."""
SOURCES = 256
"""Vertices whose distances over the surface are found in one go."""


class Foreign:
    """Which nodes are foreign to which points."""

    def __init__(self, mesh: Mesh, binding: Binding, nodes: Floats) -> None:
        from scipy.sparse import coo_matrix  # whose numbers are 32 bit, as older versions of dijkstra need them

        weld = mesh.welded(WELD)
        self._binding, self._index, self._nodes = binding, weld.index, nodes
        a, b = weld.mesh.edges.T
        length = np.linalg.norm(weld.mesh.points[a] - weld.mesh.points[b], axis=1)
        count = len(weld.mesh.points)
        self._edges = coo_matrix((np.maximum(length, 1e-12), (a, b)), shape=(count, count)).tocsr()
        self._part = weld.mesh.parts
        self._at_nodes = self._feet(nodes)

    def _feet(self, points: Floats) -> tuple[Ints, Floats, Floats]:
        """Of points (p, 3): the vertex of the welded mesh at the nearest point of the surface, the depth below it, and
        the skin's weights (p, joints) there."""
        tree = self._binding.surface
        foot = tree.closest(points)
        corner = tree.triangles[foot.triangle, np.argmax(foot.barycentric, axis=1)]
        return self._index[corner], foot.distance, self._binding.at(points)

    def shares(self, functions: Interpolation, points: Floats) -> Floats:
        """(p,) the share of foreign nodes among those that reach each of some points, by their functions."""
        row = np.repeat(np.arange(len(functions)), np.diff(functions.start))
        node, size = functions.node, np.abs(functions.phi)
        foot, depth, weights = self._feet(points)
        their_foot, their_depth, their_weights = self._at_nodes
        foreign = np.zeros(len(row), dtype=bool)
        overlap = np.minimum(weights[row], their_weights[node]).sum(axis=1)
        differ = np.flatnonzero(overlap < LARGEST_OVERLAP)
        i, k = row[differ], node[differ]
        through = np.linalg.norm(points[i] - self._nodes[k], axis=1) + depth[i] + their_depth[k]
        foreign[differ] = self._farther(foot[i], their_foot[k], DETOUR * through)
        total = np.bincount(row, size, minlength=len(points))
        return np.bincount(row, size * foreign, minlength=len(points)) / np.maximum(total, 1e-300)

    def _farther(self, start: Ints, stop: Ints, most: Floats) -> NDArray[np.bool_]:
        """(k,) whether the way over the surface from one vertex to another is longer than `most`."""
        from scipy.sparse.csgraph import dijkstra

        far = np.zeros(len(start), dtype=bool)
        order = np.argsort(start, kind="stable")
        sources, first = np.unique(start[order], return_index=True)
        for begin in range(0, len(sources), SOURCES):
            some = sources[begin : begin + SOURCES]
            last = first[begin + SOURCES] if begin + SOURCES < len(first) else len(order)
            pairs = order[first[begin] : last]
            limit = float(most[pairs].max(initial=0.0))
            geodesics = dijkstra(self._edges, directed=False, indices=some, limit=limit)
            far[pairs] = geodesics[np.searchsorted(some, start[pairs]), stop[pairs]] > most[pairs]
        return far & (self._part[start] == self._part[stop])

    def stiffness(self, functions: Interpolation, points: Floats) -> Floats:
        """(p,) what is left of the flesh's stiffness at some points, from `REMAINS` to 1."""
        return np.asarray(REMAINS ** np.clip(self.shares(functions, points) / CUT, 0, 1))
