"""Where a deforming triangle surface comes near to itself: vertices near triangles, edges near edges, and crossings.

`SelfProximity` is prepared once for a surface and its rest shape. `find` and `find_edges` look for pairs that are near
and face each other from outside, so the other side of a thin sheet is never a pair; `gaps` and `edge_gaps` follow the
pairs to other points, where a gap is negative once the two have passed through each other:

- a vertex x straight above or below its triangle with unit normal n and closest point y: ``gap = (x - y) · n``;
- beside the triangle, on its outer side: ``gap = |x - y|``, with the normal along x - y;
- beside it on the inner side: the pair says nothing any more, ``gap = inf``.

Edges p + s u and q + t v likewise, with the normal along ±u × v, oriented as it was when the pair was found. In all
cases ``d gap = normal · (dx - Σ weights dy)``: the points' places on triangle and edges stand still to first order.

Parts of the surface that hang together closely never count (`rings`). Vertices at the same place on the borders of the
rest shape, as at the seams of a texture, count as one for this.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pliant.contact.proximity_kernels import (
    Edges,
    Limits,
    Lists,
    edge_distances,
    edge_gaps,
    edge_normals,
    gaps,
    near_edges,
    near_triangles,
    pair_distances,
)
from pliant.core.errors import InputError
from pliant.core.normals import vertex_normals
from pliant.core.shapes import bounding_diagonal
from pliant.core.topology import Floats, Ints, weld_map
from pliant.core.validation import as_points, check_indices, index_table, whole_numbers
from pliant.core.values import Value, as_array, locked, owned
from pliant.geometry.bvh import Tree, build, fit
from pliant.geometry.spatial import SurfaceTree, surface_of

CONTACT_DISTANCE = 1e-9
"""Distance, relative to the diagonal, below which things touch and the direction between them means nothing."""


@dataclass(frozen=True, eq=False)
class Pairs(Value):
    """Vertices near triangles."""

    vertex: Ints
    """(m,)"""
    triangle: Ints
    """(m,)"""

    def __post_init__(self) -> None:
        for name in ("vertex", "triangle"):
            object.__setattr__(self, name, whole_numbers(getattr(self, name), f"{name} numbers"))
        if len(self.vertex) != len(self.triangle):
            raise InputError(f"got {len(self.vertex)} vertices and {len(self.triangle)} triangles; expected as many")

    def __len__(self) -> int:
        return len(self.vertex)


@dataclass(frozen=True, eq=False)
class EdgePairs(Value):
    """Edges near edges that cross their direction."""

    first: Ints
    """(m, 2) vertices of one edge."""
    second: Ints
    """(m, 2) vertices of the other."""
    sign: Floats
    """(m,) 1 or -1: the normal, from the second edge to the first, is sign · u × v for the edges' directions u and v
    from their first vertex to their second."""

    def __post_init__(self) -> None:
        for name in ("first", "second"):
            object.__setattr__(self, name, index_table(getattr(self, name), 2, f"the {name} edges"))
        object.__setattr__(self, "sign", owned(self.sign, "signs", np.float64))
        if not self.first.shape == self.second.shape == (len(self.sign), 2) or self.sign.ndim != 1:
            shapes = self.first.shape, self.second.shape, self.sign.shape
            raise InputError(f"edge pairs have shapes {shapes}; expected (m, 2), (m, 2) and (m,)")

    def __len__(self) -> int:
        return len(self.sign)


class SelfProximity(Value):
    """A surface prepared for finding where it comes near to itself. Pickles; is never changed.

    triangles: (t, 3), facing outwards. rest: (n, 3) the base shape; vertices that no triangle uses are never found.
    rings: a vertex and a triangle are no pair if at most this many edges lead from one to a corner of the other, nor
    are two edges of whose vertices this is true.
    """

    triangles: Ints
    rest: Floats

    def __init__(self, triangles: ArrayLike, rest: ArrayLike, *, rings: int = 2) -> None:
        self.rest, self.triangles = surface_of(rest, index_table(triangles, 3, "triangles"))
        if isinstance(rings, bool) or not isinstance(rings, (int, np.integer)) or rings < 0:
            raise InputError(f"rings is {rings!r}; expected a whole number, 0 or more, such as 2")
        self.rings = int(rings)
        self.edges, self._triangle_edges, self._welded = _connections(self.rest, self.triangles)
        corners = np.ascontiguousarray(self.rest[self.triangles])
        self._order, self._right, self._start, self._stop = map(locked, build(corners))

    def __repr__(self) -> str:
        return f"SelfProximity({len(self.rest)} points, {len(self.triangles)} triangles, rings={self.rings})"

    def find(self, points: ArrayLike, *, within: float, most: int = 4, facing: float = 0.1) -> Pairs:
        """For each vertex the nearest triangles, at most `most`, that are nearer than `within` and face it.

        The time grows with how much of the surface lies `within`: that should be a few edges' length at most.
        facing: least cosine between a triangle's normal and the direction to the vertex; below it, the two lie beside
        rather than in front of each other, as in a shallow dent. The vertex's own normal has to point to the same side
        as the triangle is on.
        """
        positions, limits = self._positions(points), _limits(points, within, most, facing)
        normals = _vertex_normals(positions, self.triangles, self._welded)
        found = near_triangles(positions, normals, self._tree(positions), limits, self._skipped_triangles, int(most))
        vertex, slot = np.nonzero(found >= 0)
        return Pairs(locked(vertex), locked(self._order[found[vertex, slot]]))

    def gaps(self, points: ArrayLike, pairs: Pairs) -> tuple[Floats, Floats, Floats]:
        """The pairs at other points: gap (m,), unit normal (m, 3) and the closest point's barycentric weights (m, 3).

        The normal points from the triangle to the vertex, or did before it went through. Infinite gaps say nothing.
        """
        positions = self._positions(points)
        self._check(pairs)
        return gaps(
            positions, self.triangles, pairs.vertex, pairs.triangle, CONTACT_DISTANCE * bounding_diagonal(positions)
        )

    def find_edges(self, points: ArrayLike, *, within: float, most: int = 4, facing: float = 0.1) -> EdgePairs:
        """For each edge the nearest edges, at most `most`, that cross its direction, are near and face it.

        Only pairs whose closest points lie between the ends of both edges: for others, vertices and triangles say
        all. Each pair once. facing: least cosine between either edge's normal and the direction to the other edge.
        """
        positions, limits = self._positions(points), _limits(points, within, most, facing)
        normals, tree = self._edge_normals(positions), self._tree(positions)
        edges = Edges(positions, self.edges, normals, self._owned_edges)
        found = near_edges(edges, tree, limits, self._skipped_vertices, int(most))
        edge, slot = np.nonzero(found >= 0)
        both = np.sort(np.stack([edge, found[edge, slot]], axis=1), axis=1)
        keys = np.unique(both[:, 0] * len(self.edges) + both[:, 1])
        first, second = np.divmod(keys, max(len(self.edges), 1))
        ends = positions[self.edges]
        u, v = ends[first, 1] - ends[first, 0], ends[second, 1] - ends[second, 0]
        outward = normals[second] - normals[first]
        sign = np.where(np.einsum("ij,ij->i", np.cross(u, v), outward) < 0, -1.0, 1.0)
        return EdgePairs(locked(self.edges[first]), locked(self.edges[second]), locked(sign))

    def edge_gaps(self, points: ArrayLike, pairs: EdgePairs) -> tuple[Floats, Floats, Floats]:
        """The pairs at other points: gap (m,), unit normal (m, 3) from second to first edge, and parameters (m, 2).

        The parameters run from 0 at an edge's first vertex to 1 at its second, for the first and the second edge.
        A gap is infinite where the pair says nothing: the edges are parallel, or have passed each other's ends on the
        inner side, or have turned past each other so that the surface's normals contradict the orientation.
        """
        positions = self._positions(points)
        numbers = np.stack([self._edge_numbers(pairs.first), self._edge_numbers(pairs.second)], axis=1)
        first, second = self.edges[numbers[:, 0]], self.edges[numbers[:, 1]]
        rotated = (first[:, 0] != pairs.first[:, 0]), (second[:, 0] != pairs.second[:, 0])
        sign = np.where(rotated[0] ^ rotated[1], -pairs.sign, pairs.sign)
        contact_distance = CONTACT_DISTANCE * bounding_diagonal(positions)
        gap, normal, along = edge_gaps(
            positions, self.edges, self._edge_normals(positions), numbers, sign, contact_distance
        )
        for k in range(2):
            along[rotated[k], k] = 1 - along[rotated[k], k]
        return gap, normal, along

    def crossings(self, points: ArrayLike) -> Ints:
        """(k, 2) triangles that cross each other, each pair once, without those that share a vertex."""
        pairs = self._surface.moved(self._positions(points)).crossings()
        corners = self._welded[self.triangles]
        a, b = corners[pairs[:, 0]], corners[pairs[:, 1]]
        return np.asarray(pairs[~(a[:, :, None] == b[:, None, :]).any(axis=(1, 2))])

    def rest_gap(self, pairs: Pairs | EdgePairs) -> Floats:
        """(m,) distance of each pair in the rest shape."""
        if isinstance(pairs, EdgePairs):
            check_indices(pairs.first, len(self.rest), "edges")
            check_indices(pairs.second, len(self.rest), "edges")
            return edge_distances(self.rest, pairs.first, pairs.second)
        self._check(pairs)
        return pair_distances(self.rest, self.triangles, pairs.vertex, pairs.triangle)

    def _positions(self, points: ArrayLike) -> Floats:
        positions = as_points(points)
        if positions.shape != self.rest.shape:
            raise InputError(f"got {len(positions)} points; this surface has {len(self.rest)}")
        return positions

    def _check(self, pairs: Pairs) -> None:
        check_indices(pairs.vertex, len(self.rest), "pairs")
        if len(pairs) and not 0 <= pairs.triangle.min() <= pairs.triangle.max() < len(self.triangles):
            bad = (pairs.triangle < 0) | (pairs.triangle >= len(self.triangles))
            raise InputError(
                f"pairs refer to triangle {int(pairs.triangle[bad][0])}; this surface has {len(self.triangles)}"
            )

    def _tree(self, points: Floats) -> Tree:
        """Boxes around the present points."""
        corners = locked(np.ascontiguousarray(points[self._ordered]))
        boxes = locked(fit(corners, self._right, self._start, self._stop))
        return Tree(boxes, self._right, self._start, self._stop, corners)

    def _edge_normals(self, points: Floats) -> Floats:
        return locked(edge_normals(points, self.triangles, self._triangle_edges, len(self.edges)))

    def _edge_numbers(self, ends: Ints) -> Ints:
        """(m,) which edges these are, by their vertices (m, 2) in either order."""
        check_indices(ends, len(self.rest), "edges")
        span = len(self.rest)
        keys = self.edges[:, 0] * span + self.edges[:, 1]
        wanted = ends.min(axis=1) * span + ends.max(axis=1)
        at = np.searchsorted(keys, wanted)
        missing = np.ones(len(at), dtype=bool)
        missing[at < len(keys)] = keys[at[at < len(keys)]] != wanted[at < len(keys)]
        if missing.any():
            raise InputError(f"no triangle has the edge {ends[missing][0].tolist()}; expected edges of this surface")
        return np.asarray(at)

    @cached_property
    def _surface(self) -> SurfaceTree:
        return SurfaceTree(self.rest, self.triangles)

    @cached_property
    def _ordered(self) -> Ints:
        """(t, 3) triangles in the tree's order."""
        return locked(self.triangles[self._order])

    @cached_property
    def _owned_edges(self) -> Ints:
        """(t, 3) edges of the triangles in the tree's order, each only once; -1 elsewhere."""
        table = self._triangle_edges[self._order].ravel()
        owned = np.full(len(table), -1, dtype=np.int64)
        _, first = np.unique(table, return_index=True)
        owned[first] = table[first]
        return locked(owned.reshape(-1, 3))

    def _reach(self) -> Any:
        """(n, n) sparse: which vertices are at most `rings` edges away from each."""
        from scipy.sparse import csr_matrix, identity

        n, welded = len(self.rest), self._welded
        links = csr_matrix((np.ones(len(self.edges), bool), welded[self.edges].T), shape=(n, n))
        step = (links + links.T + identity(n, bool, format="csr")).astype(bool)
        joined = csr_matrix((np.ones(n, bool), (np.arange(n), welded)), shape=(n, n))
        reach = joined
        for _ in range(self.rings):
            reach = (reach @ step).astype(bool)
        return (reach @ joined.T).astype(bool)

    @cached_property
    def _skipped_triangles(self) -> Lists:
        """For each vertex, triangles in the tree's order."""
        return _lists(self._reach(), self._ordered, across=True)

    @cached_property
    def _skipped_vertices(self) -> Lists:
        """For each edge, vertices near its ends."""
        return _lists(self._reach(), self.edges, across=False)


def _limits(points: ArrayLike, within: float, most: int, facing: float) -> Limits:
    if not within > 0:
        raise InputError(f"within is {within}; expected a positive distance")
    if isinstance(most, bool) or not isinstance(most, (int, np.integer)) or most < 1:
        raise InputError(f"most is {most!r}; expected a whole number, 1 or more")
    if not 0 <= facing < 1:
        raise InputError(f"facing is {facing}; expected a cosine from 0 to below 1, such as 0.1")
    return Limits(float(within), float(facing), float(CONTACT_DISTANCE * bounding_diagonal(as_array(points, "points"))))


def _connections(rest: Floats, triangles: Ints) -> tuple[Ints, Ints, Ints]:
    """Edges (e, 2), the edge from each corner of a triangle to the next (t, 3), and each vertex's weld partner (n,)."""
    ends = np.stack([triangles, np.roll(triangles, -1, axis=1)], axis=2).reshape(-1, 2)
    low, high = ends.min(axis=1), ends.max(axis=1)
    span = max(len(rest), 1)
    proper = low != high
    keys, number, count = np.unique((low * span + high)[proper], return_inverse=True, return_counts=True)
    edges = np.stack(np.divmod(keys, span), axis=1)
    triangle_edges = np.full(len(ends), -1, dtype=np.int64)
    triangle_edges[proper] = number.reshape(-1)
    border = np.zeros(len(rest), dtype=bool)
    border[edges[count == 1]] = True
    return locked(edges), locked(triangle_edges.reshape(-1, 3)), locked(weld_map(rest, border, 0.0))


def _vertex_normals(points: Floats, triangles: Ints, welded: Ints) -> Floats:
    """(n, 3) unit normals, area-weighted over the triangles at each vertex and those welded to it; or zero."""
    return locked(vertex_normals(points, welded[triangles])[welded])


def _lists(reach: Any, cells: Ints, *, across: bool) -> Lists:
    """The sparse table of which vertices reach which cells (across), or which cells reach which vertices."""
    from scipy.sparse import csr_matrix

    rows = np.repeat(np.arange(len(cells)), cells.shape[1])
    corners = csr_matrix((np.ones(cells.size, bool), (rows, cells.ravel())), shape=(len(cells), reach.shape[0]))
    table = (reach @ corners.T if across else corners @ reach).tocsr()
    table.sort_indices()
    return Lists(locked(table.indptr.astype(np.int64)), locked(table.indices.astype(np.int64)))
