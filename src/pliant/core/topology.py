"""Connectivity of surfaces: polygons, triangulation, edges, connected parts, welding.

Everything here is a function of index arrays (and of positions where geometry decides, as in triangulation).
`Mesh` offers most of it as properties.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.core.errors import InputError
from pliant.core.values import Value, as_array, locked as locked, owned
from pliant.native import kernels

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Polygons(Value):
    """Polygons of any size over numbered vertices, as two flat arrays.

    Polygon ``k`` is ``corners[offsets[k]:offsets[k + 1]]``.
    """

    corners: Ints
    """(c,) vertex of every polygon corner, polygon after polygon."""
    offsets: Ints
    """(f + 1,) where each polygon starts in `corners`; the last entry is c."""

    def __post_init__(self) -> None:
        for name in ("corners", "offsets"):
            values = as_array(getattr(self, name), "faces")
            if values.size and (values.ndim != 1 or not np.issubdtype(values.dtype, np.integer)):
                raise InputError(
                    f"faces of shape {values.shape} hold {values.dtype} values; expected whole vertex numbers"
                )
            object.__setattr__(self, name, owned(values, "faces", np.int64))
        ends = self.offsets[[0, -1]].tolist() if len(self.offsets) else []
        if ends != [0, len(self.corners)]:
            raise InputError(f"face offsets run over {ends}; expected 0 to {len(self.corners)}")
        if len(self) and self.sizes.min() < 3:
            k = int(np.argmin(self.sizes))
            raise InputError(f"face {k} has {int(self.sizes[k])} corners; expected three or more")

    @classmethod
    def of(cls, faces: Polygons | ArrayLike | Sequence[Sequence[int]]) -> Polygons:
        """From an (f, k) index array, or a list of index lists of mixed length."""
        if isinstance(faces, Polygons):
            return faces
        if isinstance(faces, np.ndarray) and faces.ndim == 2:
            offsets = np.arange(faces.shape[0] + 1, dtype=np.int64) * faces.shape[1]
            return cls(faces.reshape(-1), locked(offsets))
        if not isinstance(faces, Iterable):
            raise InputError(f"faces are {faces!r}; expected an (f, k) array or a list of lists of vertex numbers")
        rows = [as_array(row, f"corners of face {k}") for k, row in enumerate(faces)]
        for k, row in enumerate(rows):
            if row.ndim != 1:
                raise InputError(f"face {k} is {row.tolist()!r:.60}; expected a list of vertex numbers")
        sizes = np.array([row.size for row in rows], dtype=np.int64)
        flat = np.concatenate([row for row in rows if row.size] or [np.zeros(0, np.int64)])
        return cls(locked(flat), locked(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Ints]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, k: int) -> Ints:
        return self.corners[self.offsets[k] : self.offsets[k + 1]]

    @cached_property
    def sizes(self) -> Ints:
        """(f,) number of corners of each polygon."""
        return locked(np.diff(self.offsets))

    @cached_property
    def of_corner(self) -> Ints:
        """(c,) polygon of each corner."""
        return locked(np.repeat(np.arange(len(self)), self.sizes))

    @cached_property
    def next_corner(self) -> Ints:
        """(c,) index of the corner that follows each corner around its polygon."""
        following = np.arange(1, len(self.corners) + 1)
        following[self.offsets[1:] - 1] = self.offsets[:-1]
        return locked(following)

    @cached_property
    def edges(self) -> tuple[Ints, Ints]:
        """What `unique_edges` gives, found once for all poses of a mesh."""
        edges, counts = unique_edges(self)
        return locked(edges), locked(counts)

    def take(self, keep: NDArray[Any]) -> Polygons:
        """The polygons selected by a boolean mask or by numbers, in that order."""
        chosen = np.flatnonzero(keep) if keep.dtype == bool else keep
        offsets = np.concatenate([[0], np.cumsum(self.sizes[chosen])]).astype(np.int64)
        return Polygons(locked(self.corners[self.corner_slots(chosen)]), locked(offsets))

    def corner_slots(self, chosen: Ints) -> Ints:
        """Positions in `corners` of the corners of the chosen polygons, polygon after polygon."""
        sizes = self.sizes[chosen]
        starts = np.repeat(self.offsets[chosen] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
        return starts + np.arange(sizes.sum())


def distinct(keys: Ints) -> Ints:
    """(k,) sorted, each once: as `np.unique`, which hashes them first, and takes twenty times as long for millions."""
    ordered = np.sort(keys, axis=None)
    return ordered[np.diff(ordered, prepend=ordered[:1] - 1) > 0]


def triangulate(points: Floats, polygons: Polygons) -> tuple[Ints, Ints]:
    """Cut every polygon into triangles: (m, 3) positions in ``polygons.corners``, and (m,) the polygon of each.

    Convex polygons become fans. A concave quad is cut at its reflex corner, a larger concave polygon by clipping ears,
    in little more than n log n time for n corners (see `pliant.core.topology`).
    """
    sizes, first = polygons.sizes, polygons.offsets[:-1]
    fans = np.repeat(first, sizes - 2)
    step = np.arange(len(fans)) - np.repeat(np.cumsum(sizes - 2) - (sizes - 2), sizes - 2)
    slots = np.stack([fans, fans + step + 1, fans + step + 2], axis=1)
    owner = np.repeat(np.arange(len(polygons)), sizes - 2)
    large = sizes[owner] > 3
    if not large.any():
        return slots, owner
    corner_points = points[polygons.corners]
    with np.errstate(over="ignore", invalid="ignore"):
        edge1 = corner_points[slots[:, 1]] - corner_points[slots[:, 0]]
        edge2 = corner_points[slots[:, 2]] - corner_points[slots[:, 0]]
        normal = np.cross(edge1, edge2)
        total = np.zeros((len(polygons), 3))
        np.add.at(total, owner, normal)
        folded = large & (np.einsum("ij,ij->i", normal, total[owner]) < 0)
    concave = np.unique(owner[folded])
    quads = concave[sizes[concave] == 4]
    rows = first[quads] - 2 * quads  # each polygon has two triangles fewer than corners
    slots[rows], slots[rows + 1] = (first[quads][:, None] + cut for cut in ([3, 0, 1], [1, 2, 3]))
    concave = concave[sizes[concave] > 4]
    if len(concave):
        clip_polygons(corner_points, polygons.offsets, concave, total, slots)
    return slots, owner


def even_triangles(points: Floats, polygons: Polygons) -> Ints:
    """(m, 3) vertices of triangles whose cuts depend neither on where a polygon starts nor on which way round it goes.

    So those of a mirrored mesh, whose faces are reversed, are mirrored: a polygon is cut from its vertex of the lowest
    number towards the lower of its neighbours.
    """
    corners, sizes, first = polygons.corners, polygons.sizes, polygons.offsets[:-1]
    if not len(sizes) or sizes.max() == 3:
        return corners.reshape(-1, 3)
    owner, corner = polygons.of_corner, np.arange(len(corners))
    lowest = np.where(corners == np.minimum.reduceat(corners, first)[owner], corner, len(corners))
    start = np.minimum.reduceat(lowest, first)  # a polygon may have a vertex twice
    after, before = (corners[first + (start - first + k) % sizes] for k in (1, -1))
    backward = before < after
    order = np.where(backward[owner], (start + first)[owner] - corner, (start - first)[owner] + corner)
    order += np.where(order < first[owner], sizes[owner], 0)
    order -= np.where(order >= (first + sizes)[owner], sizes[owner], 0)
    slots, polygon = triangulate(points, Polygons(locked(corners[order]), polygons.offsets))
    triangles = corners[order[slots]]
    triangles[backward[polygon]] = triangles[backward[polygon]][:, ::-1]
    return triangles


def unique_edges(polygons: Polygons) -> tuple[Ints, Ints]:
    """(e, 2) undirected edges with the smaller vertex first, sorted; and (e,) how many polygons meet in each."""
    start = polygons.corners
    end = polygons.corners[polygons.next_corner]
    different = start != end  # a corner that a polygon repeats is no edge
    low, high = np.minimum(start, end)[different], np.maximum(start, end)[different]
    span = int(high.max()) + 1 if len(high) else 1
    keys, counts = np.unique(low * span + high, return_counts=True)
    return np.stack([keys // span, keys % span], axis=1), counts


def unique_pairs(pairs: Ints, count: int) -> Ints:
    """Each pair once, the smaller vertex first, sorted."""
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    keys = np.sort(low[low != high] * count + high[low != high])
    keys = keys[np.insert(keys[1:] != keys[:-1], 0, True)] if len(keys) else keys
    return np.stack([keys // count, keys % count], axis=1)


def connected_parts(count: int, edges: Ints) -> Ints:
    """(count,) number of the connected part of each vertex; parts are numbered by their first vertex."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(edges), dtype=np.int8)
    graph = coo_matrix((ones, (edges[:, 0], edges[:, 1])), shape=(count, count))
    _, labels = connected_components(graph, directed=False)
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def consistent_triangles(triangles: Ints, count: int) -> Ints:
    """The triangles without repeats, oriented so that neighbours agree, as far as the surface is orientable.

    Neighbours agree if they run along their common edge in opposite directions. Each triangle and its reverse are two
    nodes of a graph, joined to those of the neighbours that agree with them: a side of the surface is a component.
    """
    _, first = np.unique(np.sort(triangles, axis=1), axis=0, return_index=True)
    triangles = triangles[np.sort(first)]
    start, end = triangles.ravel(), np.roll(triangles, -1, axis=1).ravel()
    key = np.minimum(start, end) * count + np.maximum(start, end)
    order = np.argsort(key, kind="stable")
    _, at, uses = np.unique(key[order], return_index=True, return_counts=True)
    one, two = order[at[uses == 2]], order[at[uses == 2] + 1]
    agree = start[one] != start[two]
    if agree.all():
        return triangles
    m = len(triangles)
    a, b = one // 3, two // 3
    other = np.where(agree, b, b + m)
    pairs = np.concatenate([np.stack([a, other], axis=1), np.stack([a + m, (other + m) % (2 * m)], axis=1)])
    side, part = connected_parts(2 * m, pairs), connected_parts(m, np.stack([a, b], axis=1))
    _, representative = np.unique(part, return_index=True)
    flipped = side[:m] != side[representative[part]]
    flipped &= side[:m] != side[m:]  # a Moebius strip has but one side
    minority = np.bincount(part, flipped) > 0.5 * np.bincount(part)
    return np.where((flipped ^ minority[part])[:, None], triangles[:, ::-1], triangles)


def weld_map(positions: Floats, candidates: NDArray[np.bool_], tolerance: float) -> Ints:
    """(n,) for each vertex the first vertex at the same position; only candidates are joined.

    positions: (n, d), where d may span several poses: vertices are joined only if they coincide in all of them.
    """
    chosen = np.flatnonzero(candidates)
    target = np.arange(len(positions))
    if not len(chosen):
        return target
    if tolerance > 0:
        from scipy.spatial import cKDTree

        pairs = cKDTree(positions[chosen]).query_pairs(tolerance, output_type="ndarray")
        part = connected_parts(len(chosen), pairs.reshape(-1, 2).astype(np.int64))
    else:
        rows = np.ascontiguousarray(positions[chosen] + 0.0)  # -0.0 and 0.0 are equal
        _, part = np.unique(rows.view([("", rows.dtype)] * rows.shape[1]).ravel(), return_inverse=True)
    first = np.full(int(part.max()) + 1, len(positions), dtype=np.int64)
    np.minimum.at(first, part, chosen)
    target[chosen] = first[part]
    return target


def clip_polygons(points: Floats, offsets: Ints, chosen: Ints, normals: Floats, slots: Ints) -> None:
    """For each chosen polygon its triangles, as positions in `points`, into its rows of `slots`, by clipping ears.

    An ear is a convex corner whose triangle holds no reflex corner. Corners wait in a queue; clipping one puts its two
    neighbours back in, as only their triangles have changed. A k-d tree finds the reflex corners inside a triangle. A
    polygon of n corners takes O(n log n) time for the tree and n queries, each of O(log n) where triangles are small,
    as the queue makes them (it goes round the polygon), and O(√n) where they are long. A polygon that crosses itself
    runs out of ears: then the flattest corner goes, by a heap.

    points: (c, 3) corners of all polygons, which begin at `offsets`; normals: (f, 3) of the polygons. As a polygon
    has two triangles fewer than corners, polygon k has the rows of `slots` from offsets[k] - 2 k.
    """
    if not kernels.ear_clip_polygons(points, offsets, chosen, normals, slots):
        raise MemoryError
