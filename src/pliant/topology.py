"""How a surface hangs together: polygons, triangulation, edges, parts, welding.

Everything here is a function of index arrays (and of positions where geometry decides, as in triangulation).
`Mesh` offers most of it as properties.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def locked(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view, so that value types cannot be changed behind their owner's back."""
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, eq=False)
class Polygons:
    """Polygons of any size over numbered vertices, as two flat arrays.

    Polygon ``k`` is ``corners[offsets[k]:offsets[k + 1]]``.
    """

    corners: Ints
    """(c,) vertex of every polygon corner, polygon after polygon."""
    offsets: Ints
    """(f + 1,) where each polygon starts in `corners`; the last entry is c."""

    @classmethod
    def of(cls, faces: Polygons | ArrayLike | Sequence[Sequence[int]]) -> Polygons:
        """From an (f, k) index array, or a list of index lists of mixed length."""
        if isinstance(faces, Polygons):
            return faces
        if isinstance(faces, np.ndarray) and faces.ndim == 2:
            table = faces
        else:
            rows = [np.asarray(row) for row in faces]  # type: ignore[union-attr]
            sizes = np.array([row.size for row in rows], dtype=np.int64)
            flat = np.concatenate(rows) if rows else np.zeros(0, np.int64)
            return cls._checked(flat, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))
        offsets = np.arange(table.shape[0] + 1, dtype=np.int64) * table.shape[1]
        return cls._checked(table.reshape(-1), offsets)

    @classmethod
    def _checked(cls, corners: NDArray[Any], offsets: Ints) -> Polygons:
        if corners.size and not np.issubdtype(corners.dtype, np.integer):
            raise InputError(f"faces hold {corners.dtype} values; expected whole vertex numbers")
        if len(offsets) > 1 and np.diff(offsets).min() < 3:
            k = int(np.argmin(np.diff(offsets)))
            raise InputError(f"face {k} has {int(np.diff(offsets)[k])} corners; expected three or more")
        return cls(locked(corners.astype(np.int64, copy=False)), locked(offsets))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Ints]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, k: int) -> Ints:
        return self.corners[self.offsets[k] : self.offsets[k + 1]]

    @cached_property
    def sizes(self) -> Ints:
        """(f,) number of corners of each polygon."""
        return np.diff(self.offsets)

    @cached_property
    def of_corner(self) -> Ints:
        """(c,) polygon of each corner."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @cached_property
    def next_corner(self) -> Ints:
        """(c,) index of the corner that follows each corner around its polygon."""
        following = np.arange(1, len(self.corners) + 1)
        following[self.offsets[1:] - 1] = self.offsets[:-1]
        return following

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


def triangulate(points: Floats, polygons: Polygons) -> tuple[Ints, Ints]:
    """Cut every polygon into triangles: (m, 3) positions in ``polygons.corners``, and (m,) the polygon of each.

    Convex polygons become fans. A concave quad is cut at its reflex corner, a larger concave polygon by clipping ears.
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
    for polygon in np.unique(owner[folded]):
        here = np.flatnonzero(owner == polygon)
        start = polygons.offsets[polygon]
        slots[here] = start + _clip_ears(corner_points[start : polygons.offsets[polygon + 1]], total[polygon])
    return slots, owner


def _clip_ears(loop: Floats, normal: Floats) -> Ints:
    """Triangles (k - 2, 3) of one planar-ish loop of k points, by ear clipping in the plane of its normal."""
    axis = int(np.argmax(np.abs(normal)))
    plane = np.delete(loop, axis, axis=1)
    if (normal[axis] < 0) != (axis == 1):
        plane = plane[:, ::-1]
    ring = list(range(len(loop)))
    triangles = []

    def turn(a: int, b: int, c: int) -> float:
        (ax, ay), (bx, by), (cx, cy) = plane[a], plane[b], plane[c]
        return float((bx - ax) * (cy - ay) - (by - ay) * (cx - ax))

    while len(ring) > 3:
        best, best_turn = 0, -np.inf
        for k in range(len(ring)):
            a, b, c = ring[k - 1], ring[k], ring[(k + 1) % len(ring)]
            area = turn(a, b, c)
            inside = (min(turn(a, b, p), turn(b, c, p), turn(c, a, p)) >= 0 for p in ring if p not in (a, b, c))
            if area > best_turn and not any(inside):
                best, best_turn = k, area
                if area > 0:
                    break
        triangles.append((ring[best - 1], ring[best], ring[(best + 1) % len(ring)]))
        del ring[best]
    triangles.append((ring[0], ring[1], ring[2]))
    return np.array(triangles, dtype=np.int64)


def unique_edges(polygons: Polygons) -> tuple[Ints, Ints]:
    """(e, 2) undirected edges with the smaller vertex first, sorted; and (e,) how many polygons meet in each."""
    start = polygons.corners
    end = polygons.corners[polygons.next_corner]
    low, high = np.minimum(start, end), np.maximum(start, end)
    span = int(high.max()) + 1 if len(high) else 1
    keys, counts = np.unique(low * span + high, return_counts=True)
    return np.stack([keys // span, keys % span], axis=1), counts


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


def weld_map(positions: Floats, candidates: NDArray[np.bool_], tolerance: float) -> Ints:
    """(n,) for each vertex the first vertex at the same place; only candidates are joined.

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
        rows = np.ascontiguousarray(positions[chosen] + 0.0)  # -0.0 and 0.0 are one place
        _, part = np.unique(rows.view([("", rows.dtype)] * rows.shape[1]).ravel(), return_inverse=True)
    first = np.full(int(part.max()) + 1, len(positions), dtype=np.int64)
    np.minimum.at(first, part, chosen)
    target[chosen] = first[part]
    return target
