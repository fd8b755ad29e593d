"""What of surfaces comes near on straight paths, and when: continuous collision detection.

Two triangles cross only after a vertex has gone through a triangle, or an edge through an edge. What
`CollisionSurface.sweep` finds are all such pairs that are near each other before a motion, or come all but into touch
on it: by a tree of boxes, each with the range of its motions, so that neighbours that move alike are not taken for what
meets. The time of impact of a pair is found by additive steps, each so short that the two cannot meet in it (Li,
Kaufman and Jiang 2021): it is never too late, and leaves a tenth of the distance. Triangles around a vertex that all
face the same side, before and after, do not cross each other and are left out.

*What crosses at rest.* Shapes often cross themselves at rest: a leg stuck into a trunk, an eye in a head. There the two
may go on crossing, stay or part; elsewhere they must not. Two triangles are allowed to cross if a crossing of the rest
shape is within `ALLOWED_RINGS` edges of both. A vertex may go through a triangle if all triangles around the vertex are
allowed to cross it, and an edge through an edge if all triangles at the one are allowed to cross all at the other. So
no two triangles come to cross that are not allowed to. What touches at rest may pass, too: it has no side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import PliantError
from pliant.core.normals import triangle_normals, unit
from pliant.core.topology import Floats, Ints
from pliant.core.values import locked
from pliant.geometry.bvh import build
from pliant.native import kernels

ALLOWED_RINGS = 2
"""Edges from a crossing of the rest shape within which triangles may cross."""
TOUCHING = 1e-7
"""Distance at rest, over the diagonal, of what may pass."""
CREASE_ANGLE = np.radians(10)
"""Between the normals of two triangles, from which their edge is a crease."""
SLACK, MANY_SLACK, MOST_SLACK, SPARE_SLACK, LESS_SLACK = 0.1, 0.4, 3.0, 1.5, 0.8
"""Distance between paths, over what is near, on which the same pairs are looked at: at first, at most if many vertices
are farther away, and at most. Vertices that are farther away have this many times as much from then on; every time that
all begins anew, it is less.
"""
MOST_AHEAD, FARTHEST_AHEAD = 4.0, 20.0
"""Times its length, at most, and distance, over what is near, to which a path goes on when pairs are looked for: the
paths after it are likely to be beside it, so that nothing has to be looked for then.
"""
MOST_CANDIDATES = 2.5
"""Pairs that may come near, a triangle, from which a wider look costs more than it saves."""
MOST_WIDENED = 0.2
"""Share of the vertices that are looked at anew; for more, all are."""
FIRST_SPACE = 4096
"""Pairs that are expected at first."""
Lists = tuple[Ints, Ints]
"""Sorted lists of numbers, one after the other: where each begins, and all."""
NO_LISTS: Lists = (np.zeros(1, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True, eq=False)
class NearPairs:
    """Vertices and triangles, and pairs of edges, that are near or come near."""

    pairs: Ints
    """(m, 5) four vertices, and 1 if they are a vertex and a triangle, 0 if two edges."""
    distance: Floats
    """(m,) before the motion."""
    impact: Floats
    """(m,) the share of the path after which they all but touch; infinite if they do not."""
    numbers: Ints
    """(m, 2) vertex and triangle, in the tree's order, or both edges; both are below 2³¹."""

    def __len__(self) -> int:
        return len(self.distance)

    @property
    def keys(self) -> Ints:
        """(m,) what tells pairs of one surface apart."""
        return np.asarray((self.numbers[:, 0] << 32) + (self.numbers[:, 1] << 1) + self.pairs[:, 4])

    @property
    def first(self) -> float:
        """The share of the path after which the first of them all but touch; 1 if none do."""
        return float(self.impact.min(initial=1.0))


class CollisionSurface:
    """A surface prepared for finding what of it comes near to itself, or to another one.

    triangles: (t, 3). rest: (n, 3). near: the distance that is near; where edges are shorter at rest, they are.
    creases: whether only edges that stand out, and their ends, meet edges and triangles of others.
    """

    def __init__(self, triangles: Ints, rest: Floats, near: float, *, creases: bool = False) -> None:
        count = len(rest)
        order, right, start, stop = build(np.ascontiguousarray(rest[triangles]))
        self.triangles: Ints = np.ascontiguousarray(triangles[order], np.int64)
        """(t, 3) in the tree's order."""
        self.edges, self._sides = _edges(self.triangles, count)
        owned = np.concatenate([_first_uses(self.triangles), _first_uses(self._sides) & (self._sides >= 0)], axis=1)
        if creases:
            standing = _creases(self.triangles, self._sides, rest)
            ends = np.isin(self.triangles, self.edges[standing])
            owned &= np.concatenate([ends, (self._sides >= 0) & standing[self._sides]], axis=1)
        self.near: Floats = np.minimum(_shortest_edges(rest, self.edges), near)
        """(n,) the distance from each vertex that is near."""
        tree, fan = (right, start, stop), _fans(self.triangles, count)
        self._sheet = tuple(map(locked, (self.triangles, self._sides, owned, self.edges, *tree, self.near / 2, fan)))
        self.patches: Ints = np.full(count, -1)
        """(n,) the same number for vertices that may pass through each other; -1 for others."""
        self._passing: tuple[Lists, Lists] = NO_LISTS, NO_LISTS
        self._candidates: Any = None
        self._near, self._slack, self._space = near, np.full(count, SLACK * near), FIRST_SPACE
        self._rest, self._away = np.zeros((0, 3)), np.zeros(count)
        self._allowed: Any = None

    def sweep(
        self,
        before: Floats,
        after: Floats | None = None,
        *,
        other: tuple[CollisionSurface, Floats, Floats] | None = None,
    ) -> NearPairs:
        """What is near at points (n, 3), or comes all but into touch on the path to others.

        other: another surface and its path, whose vertices are numbered after this one's; else what comes near itself.
        """
        after = before if after is None else after
        path = (*self._sheet, self.patches, before, after)
        found: NearPairs | None = None
        if other is not None:
            another = (*other[0]._sheet, other[0].patches, *other[1:])
            found = _noted(lambda *out: int(kernels.collision_pairs(path, another, len(self.near), *out)))
        elif self._candidates is not None:
            found = self._among(path)
            if found is None and self._widen(path):
                found = self._among(path)
        for end in (self._ahead(before, after), after):  # triangles may be folded between the ends of a longer path
            if found is None:
                self._candidates = self._near_path((*path[:-1], end))
                found = self._among(path)
        if found is None:
            raise PliantError(
                "points of the surface are no finite numbers, so what it meets cannot be found; expected loads, "
                "weights and steps that its material can follow"
            )
        return found

    def _among(self, path: Any) -> NearPairs | None:
        """What is found among the candidates; None if they are not for this path, from which `_away` they are then."""
        chosen = (*self._candidates, self._away)
        return _noted(lambda *out: int(kernels.collision_pairs_among(path, self._rest, *chosen, *out)))

    def _widen(self, path: Any) -> bool:
        """Let candidates be for paths as far away as this one; whether that was worth it: few vertices are."""
        slack = self._candidates[-1]
        over = self._away > slack
        many = over.mean() > MOST_WIDENED
        most = np.maximum(self._slack, (MANY_SLACK * self._spare if many else MOST_SLACK) * self._near)
        self._slack = np.where(over, np.minimum(SPARE_SLACK * self._away, most), self._slack)
        if not over.any() or many or (self._away > self._slack).any():
            self._slack = np.maximum(LESS_SLACK * self._slack, SLACK * self._near)
            return False
        self._candidates = self._near_path((*path[:-2], *self._candidates[3:5]), over)
        return True

    @property
    def _spare(self) -> float:
        """How much wider a look is worth while, from 0 to 1, by how many pairs the last one found."""
        found = 0 if self._candidates is None else len(self._candidates[0])
        return max(1.0 - found / (MOST_CANDIDATES * max(len(self.triangles), 1)), 0.0)

    def _ahead(self, before: Floats, after: Floats) -> Floats:
        """(n, 3) where a path leads to that goes on beyond its end, as those after it are likely to."""
        motion = after - before
        far = float(np.sqrt(np.einsum("ij,ij->i", motion, motion).max(initial=0.0)))
        longer = min(max(FARTHEST_AHEAD * self._spare * self._near / max(far, 1e-300), 1.0), MOST_AHEAD)
        return before + longer * motion if np.isfinite(far) else after

    def _near_path(self, path: Any, renewed: NDArray[np.bool_] | None = None) -> tuple[Any, ...]:
        """What may come near on any path within the slack of this one, as `collision_pairs_among` takes it.

        renewed: (n,) vertices that have got another slack since the candidates that there are were found.
        """
        flat, known = np.empty(len(self.near), bool), 0 if renewed is None else len(self._candidates[0])
        which = np.ones(len(self.near), bool) if renewed is None else renewed
        while True:
            found, spare = np.empty((self._space, 5), np.int64), np.empty(self._space)
            if known:
                found[:known], spare[:known] = self._candidates[:2]
            count = kernels.collision_candidates(
                path, *self._passing, self._rest, self._slack, which, known, flat, found, spare
            )
            if count <= self._space:
                return found[:count], spare[:count], flat, path[-2].copy(), path[-1].copy(), self._slack
            self._space = 2 * count

    def crossings(self, points: Floats) -> Ints:
        """(k, 2) triangles that cross each other, in the tree's order, each pair once, without neighbours."""
        space = FIRST_SPACE
        while True:
            found = np.empty((space, 2), np.int64)
            count = kernels.collision_crossings((*self._sheet, self.patches, points, points), found)
            if count <= space:
                return found[:count]
            space = count

    def is_allowed(self, crossing: Ints) -> NDArray[np.bool_]:
        """(k,) whether pairs of triangles (k, 2) may cross because the rest shape does there."""
        if self._allowed is None or not len(crossing):
            return np.zeros(len(crossing), dtype=bool)
        return np.asarray(self._allowed[crossing[:, 0], crossing[:, 1]]).ravel() > 0

    def let_pass(self, rest: Floats) -> None:
        """Let pass what crosses itself or touches at rest (n, 3); what is near there is near when it comes nearer."""
        from scipy.sparse import csr_matrix

        t, count = len(self.triangles), len(rest)
        crossing = self.crossings(rest)
        corners = _incidence(self.triangles, np.arange(t), (count, t))
        proper = np.flatnonzero(self._sides.ravel() >= 0)
        sides = _incidence(self._sides.ravel()[proper, None], proper // 3, (len(self.edges), t))
        allowed = csr_matrix((np.ones(len(crossing)), crossing.T), shape=(t, t))
        allowed = allowed + allowed.T
        for _ in range(ALLOWED_RINGS if len(crossing) else 0):
            allowed = corners.T @ (corners @ allowed @ corners.T) @ corners
            allowed.data[:] = 1.0
        faces = _all_of(corners @ allowed, corners.sum(axis=1), np.ones(t))
        edges = _all_of(sides @ allowed @ sides.T, sides.sum(axis=1), sides.sum(axis=1))
        near, touching = self.sweep(rest), TOUCHING * float(np.linalg.norm(np.ptp(rest, axis=0)))
        close = near.distance < touching
        faces += _marked(near.numbers[close & (near.pairs[:, 4] == 1)], faces.shape)
        both = near.numbers[close & (near.pairs[:, 4] == 0)]
        edges += _marked(np.concatenate([both, both[:, ::-1]]), edges.shape)
        self._candidates = None
        self._rest = np.ascontiguousarray(rest)
        self._allowed, self._passing = allowed if len(crossing) else None, (_lists(faces), _lists(edges))


def _noted(find: Callable[..., int]) -> NearPairs | None:
    """What a kernel finds, which says how many there are, with space for all; None if it says less than none."""
    space = FIRST_SPACE
    while True:
        table, distance, impact = np.empty((space, 7), np.int64), np.empty(space), np.empty(space)
        count = find(table, distance, impact)
        if count < 0:
            return None
        if count <= space:
            return NearPairs(
                np.ascontiguousarray(table[:count, :5]), distance[:count], impact[:count], table[:count, 5:]
            )
        space = count


def clearances(points: Floats, pairs: Ints) -> tuple[Floats, Floats, Floats]:
    """Distances (m,), unit directions (m, 3) and weights (m, 4) of pairs (m, 5) of `NearPairs`; no side is inner."""
    found = np.empty(len(pairs)), np.empty((len(pairs), 3)), np.empty((len(pairs), 4))
    kernels.collision_clearances(points, pairs, *found)
    return found


def _edges(triangles: Ints, count: int) -> tuple[Ints, Ints]:
    """Edges (e, 2), and the edge from each corner of a triangle to the next (t, 3); -1 where that has no length."""
    ends = np.stack([triangles, np.roll(triangles, -1, axis=1)], axis=2).reshape(-1, 2)
    low, high = ends.min(axis=1), ends.max(axis=1)
    keys, number = np.unique((low * max(count, 1) + high)[low != high], return_inverse=True)
    sides = np.full(len(ends), -1, dtype=np.int64)
    sides[low != high] = number.reshape(-1)
    return np.stack(np.divmod(keys, max(count, 1)), axis=1), sides.reshape(-1, 3)


def _shortest_edges(rest: Floats, edges: Ints) -> Floats:
    """(n,) the shortest edge at each vertex; infinite where there is none."""
    length, shortest = np.linalg.norm(rest[edges[:, 1]] - rest[edges[:, 0]], axis=1), np.full(len(rest), np.inf)
    for ends in edges.T:
        np.minimum.at(shortest, ends, length)
    return shortest


def _fans(triangles: Ints, count: int) -> NDArray[np.bool_]:
    """(n,) vertices whose triangles hang together, each pair of neighbours by an edge of these two alone."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    corner = np.arange(triangles.size).reshape(-1, 3)
    # Each corner of a triangle has two of its edges: keys of (vertex, other end).
    keys, owner = [], []
    for step in (1, 2):
        keys.append((triangles * max(count, 1) + np.roll(triangles, -step, axis=1)).ravel())
        owner.append(corner.ravel())
    key, corners = np.concatenate(keys), np.concatenate(owner)
    order = np.argsort(key, kind="stable")
    key, corners = key[order], corners[order]
    same = key[1:] == key[:-1]
    links = csr_matrix((np.ones(same.sum()), (corners[:-1][same], corners[1:][same])), shape=(triangles.size,) * 2)
    part = connected_components(links, directed=False)[1]
    groups = np.unique(np.stack([triangles.ravel(), part], axis=1), axis=0)[:, 0]
    crowded = key[2:][(key[2:] == key[:-2])] // max(count, 1)  # three triangles at one edge
    fan = np.bincount(groups, minlength=count) == 1
    fan[crowded] = False
    return fan


def _creases(triangles: Ints, sides: Ints, rest: Floats) -> NDArray[np.bool_]:
    """(e,) whether an edge stands out: it is not the flat or hollow one of two triangles. sides: (t, 3) the edges."""
    proper = np.flatnonzero(sides.ravel() >= 0)
    order = proper[np.argsort(sides.ravel()[proper], kind="stable")]
    edge, triangle = sides.ravel()[order], order // 3
    out, uses = np.ones(edge.max(initial=-1) + 1, bool), np.bincount(edge)
    first = (np.cumsum(uses) - uses)[uses == 2]
    a, b = triangle[first], triangle[first + 1]
    normals = unit(triangle_normals(rest, triangles))
    middles = rest[triangles].mean(axis=1)
    hollow = np.einsum("kj,kj->k", middles[b] - middles[a], normals[a]) >= 0
    out[uses == 2] = ~hollow & (np.einsum("kj,kj->k", normals[a], normals[b]) < np.cos(CREASE_ANGLE))
    return out


def _first_uses(table: Ints) -> NDArray[np.bool_]:
    """Where numbers stand in a table for the first time."""
    first = np.zeros(table.size, dtype=bool)
    first[np.unique(table, return_index=True)[1]] = True
    return first.reshape(table.shape)


def _incidence(table: Ints, owner: Ints, shape: tuple[int, int]) -> Any:
    """Sparse: 1 for the numbers (k, columns) of each owner (k,)."""
    return _marked(np.stack([table.ravel(), np.repeat(owner, table.shape[1])], axis=1), shape)


def _marked(entries: Ints, shape: tuple[int, int]) -> Any:
    """Sparse: 1 at entries (k, 2)."""
    from scipy.sparse import csr_matrix

    return csr_matrix((np.ones(len(entries)), (entries[:, 0], entries[:, 1])), shape=shape)


def _all_of(counted: Any, rows: Any, columns: Any) -> Any:
    """Sparse: 1 where a count reaches the product of what there is of both."""
    entries = counted.tocoo()
    every = np.asarray(rows).ravel()[entries.row] * np.asarray(columns).ravel()[entries.col]
    full = (entries.data > every - 0.5) & (every > 0)
    return _marked(np.stack([entries.row[full], entries.col[full]], axis=1), entries.shape)


def _lists(table: Any) -> Lists:
    """The columns of each row that are not 0."""
    if not table.nnz:
        return NO_LISTS
    table.sum_duplicates()
    table.sort_indices()
    return locked(table.indptr.astype(np.int64)), locked(table.indices.astype(np.int64))
