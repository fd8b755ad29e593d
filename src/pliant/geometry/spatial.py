"""Where points are against a surface: closest point, inside or outside, signed distance, and which triangles meet.

`SurfaceTree` prepares a triangle surface once (a tree of boxes and its moments) and answers many questions; the
functions `closest_points`, `winding_numbers` and `signed_distances` are the one-shot forms. The surface may be a
triangle soup: open, non-manifold, intersecting itself, with degenerate triangles. Inside is where its winding number
exceeds one half, which for a closed surface that faces outwards is the inside, and for one with small holes is what
one would expect.

The tree is in `pliant.geometry.bvh`, the winding number in `pliant.geometry.winding_number`.

*Sign by normals.* The closest point lies on a face, an edge or a vertex. A point is outside if it lies on the side to
which the normal there points: the face's own; for an edge the sum over its faces; for a vertex the sum over its faces
weighted by their angle there (Baerentzen, Aanaes 2005). That is right for every surface that encloses a volume without
crossing itself, and takes no more time than finding the closest point.

The gradient is unit and points outwards. Near a face it is the face's normal; near edges and vertices it is the
direction from the closest point, or the normal there where the two coincide.

*Crossings.* Two triangles cross if each has corners on both sides of the other's plane and they share a piece of the
line in which the planes meet (Möller 1997). Distances to a plane and lengths along the line below `eps` count as zero,
so triangles that touch, in a corner, along an edge or with an edge on a face, do not cross. Corners at exactly the same
position lie on each other's plane by definition: neighbours that share one corner can still cross away from it, and
neighbours that share two cannot. Triangles lower than `eps` have no inside and cross nothing.

Coplanar triangles cross nothing; on request those that overlap in an area are found too (separating lines in the
plane).

*Segments.* A segment enters a triangle where it comes from the side to which the triangle faces. With h the heights of
its ends above the triangle's plane, it meets the plane at the fraction ``h0 / (h0 - h1)``. A start on the surface
counts as outside, within rounding, and so do the triangles' edges as part of them, so that nothing slips through
between two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.core.errors import InputError
from pliant.core.interop import takes_meshes
from pliant.core.shapes import Mesh, TetMesh, bounding_diagonal
from pliant.core.topology import Floats, Ints
from pliant.core.validation import as_many_points, as_points
from pliant.core.values import Value, as_array, locked, owned
from pliant.geometry import bvh, winding_number
from pliant.geometry.bvh import POINTS_PER_THREAD, Tree, triangle_boxes
from pliant.native import in_threads, kernels

FEW = 8
"""Points for which summing over all triangles is quicker than to prepare groups of them."""
CLOSED = 1e-6
"""Sum of a closed surface's area vectors, at most, over its area."""
ON_SURFACE = 1e-8
"""Distance, over the diagonal, below which a point lies on the surface and has the surface's normal there."""
HEIGHT_ROUNDING = 1e-12
"""What a height above a triangle may be wrong by, over the diagonal."""
OF_POINTS = ("_moments", "_normals", "facing", "diagonal")
"""What a surface keeps that its points decide."""


@dataclass(frozen=True, eq=False)
class Closest:
    """The closest points of a surface to q query points."""

    distance: Floats
    """(q,) infinite where there is none."""
    triangle: Ints
    """(q,) the triangle it lies on, -1 where there is none."""
    barycentric: Floats
    """(q, 3) its weights on the triangle's corners; zero where there is none."""
    points: Floats
    """(q, 3) the closest points; NaN where there is none."""


@takes_meshes("surface")
def surface_of(surface: Mesh | TetMesh | ArrayLike, triangles: ArrayLike | None = None) -> tuple[Floats, Ints]:
    """Points (n, 3) and triangles (m, 3) of a mesh, of a tetrahedral mesh's boundary, or as given; checked."""
    if isinstance(surface, (Mesh, TetMesh)):
        if triangles is not None:
            raise InputError("got a mesh and triangles; give a mesh alone, or points and triangles")
        mesh = surface.surface if isinstance(surface, TetMesh) else surface
        return mesh.points, mesh.triangles
    if triangles is None:
        raise InputError("got points without triangles; expected a mesh, or points and triangles")
    points, table = as_points(surface), as_array(triangles, "triangles")
    if table.ndim != 2 or table.shape[1] != 3 or not (table.size == 0 or np.issubdtype(table.dtype, np.integer)):
        raise InputError(f"triangles have shape {table.shape} and type {table.dtype}; expected whole numbers (m, 3)")
    if table.size and (table.min() < 0 or table.max() >= len(points)):
        raise InputError(f"triangles refer to points {table.min()} to {table.max()}; there are {len(points)}, from 0")
    return points, owned(table, "triangles", np.int64)


class SurfaceTree(Value):
    """A triangle surface prepared for geometric queries. Pickles; is never changed.

    surface: a `Mesh`, a `TetMesh` (its boundary), or points (n, 3) with `triangles` (m, 3).
    """

    points: Floats
    triangles: Ints

    def __init__(self, surface: Mesh | TetMesh | ArrayLike, triangles: ArrayLike | None = None) -> None:
        self.points, self.triangles = surface_of(surface, triangles)
        self._order, self._right, self._start, self._stop = map(locked, bvh.build(self._corners(slice(None))))
        self._fit()

    def _corners(self, order: Ints | slice) -> Floats:
        return locked(np.ascontiguousarray(self.points[self.triangles[order]]))

    def _fit(self) -> None:
        """Boxes around the present points."""
        corners = self._corners(self._order)
        boxes = locked(bvh.fit(corners, self._right, self._start, self._stop))
        self._tree = bvh.Tree(boxes, self._right, self._start, self._stop, corners)

    @cached_property
    def _moments(self) -> Floats:
        return locked(winding_number.moments(self._tree))

    @cached_property
    def facing(self) -> Literal[-1, 1]:
        """-1 for a closed surface that faces inwards (its volume is negative), 1 for all others.

        Closed is where the area vectors cancel, whether or not the triangles share their vertices.
        """
        if not len(self.triangles):
            return 1
        corners = self._tree.corners - self.points.mean(axis=0)
        area = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        closed = np.linalg.norm(area.sum(axis=0)) <= CLOSED * np.linalg.norm(area, axis=1).sum()
        return -1 if closed and np.einsum("ij,ij->", corners[:, 0], area) < 0 else 1

    def __repr__(self) -> str:
        return f"SurfaceTree({len(self.points)} points, {len(self.triangles)} triangles)"

    def moved(self, points: ArrayLike) -> SurfaceTree:
        """The same surface with its points elsewhere: boxes are refitted, which is much quicker than a new tree.

        Answers are just as exact, but slower to find the more the shape has changed.
        """
        moved = as_many_points(points, len(self.points), "this surface")
        other = object.__new__(SurfaceTree)
        other.__dict__.update({name: value for name, value in self.__dict__.items() if name not in OF_POINTS})
        other.points = moved
        other._fit()
        return other

    @cached_property
    def diagonal(self) -> float:
        """Length of the bounding box's diagonal."""
        return bounding_diagonal(self.points)

    def closest(self, points: ArrayLike, *, within: float = np.inf) -> Closest:
        """The closest point of the surface to each of `points` (q, 3), if it is not farther than `within`."""
        queries = _queries(points)
        if not within >= 0:
            raise InputError(f"within is {within}; expected a distance, 0 or more")
        if not len(self.triangles):
            nothing = np.full(len(queries), -1)
            return Closest(
                np.full(len(queries), np.inf), nothing, np.zeros(queries.shape), np.full(queries.shape, np.nan)
            )
        distance2, found, weights = bvh.closest(queries, self._tree, float(within) ** 2)
        hit = found >= 0
        triangle = np.where(hit, self._order[found], -1)
        foot = np.einsum("qk,qkd->qd", weights, self.points[self.triangles[triangle]])
        foot[~hit] = np.nan
        return Closest(np.where(hit, np.sqrt(distance2), np.inf), triangle, weights, foot)

    def winding(self, points: ArrayLike, *, exact: bool = False, beta: float = 2.0) -> Floats:
        """(q,) winding number about each of `points`.

        exact: sum the solid angle of every triangle, which takes time in proportion to their number.
        beta: from how many radii away a group of triangles is summarised; larger is more exact and slower.
        """
        if not (np.isfinite(beta) and beta >= 1):
            raise InputError(f"beta is {beta}; expected 1 or more, such as 2")
        queries = _queries(points)
        if not len(self.triangles):
            return np.zeros(len(queries))
        if exact or (len(queries) <= FEW and "_moments" not in self.__dict__):
            return winding_number.winding_exact(queries, self._tree.corners)
        return winding_number.winding_fast(queries, self._tree, self._moments, float(beta))

    def inside(self, points: ArrayLike, *, exact: bool = False) -> NDArray[np.bool_]:
        """(q,) whether each of `points` is inside: winding number above one half."""
        return self.winding(points, exact=exact) > 0.5

    def signed_distance(self, points: ArrayLike, *, exact: bool = False) -> Floats:
        """(q,) distance to the surface, negative inside; `exact` refers to the sign's winding number."""
        distance = self.closest(points).distance
        return np.where(self.inside(points, exact=exact), -distance, distance)

    @cached_property
    def _edge_of(self) -> Ints:
        return locked(_edge_numbers(self.triangles, len(self.points)))

    @cached_property
    def _normals(self) -> tuple[Floats, Floats, Floats]:
        """Of faces, edges and vertices."""
        faces, edges, vertices = _pseudonormals(self.points, self.triangles, self._edge_of)
        return locked(faces), locked(edges), locked(vertices)

    def signed(self, points: ArrayLike) -> tuple[Floats, Floats]:
        """(q,) signed distance, negative inside, and (q, 3) its unit gradient, from the normals at the closest points.

        For closed surfaces whose triangles share their vertices, face outwards and do not cross; `signed_distance`
        takes all others, in more time.
        """
        queries = _queries(points)
        if not len(self.triangles):
            raise InputError("the surface has no triangles; expected a closed surface to be inside or outside of")
        surface = self._tree, self._order, self.triangles, self._edge_of, self._normals
        return _signed(queries, surface, ON_SURFACE * self.diagonal)

    def first_hit(self, starts: ArrayLike, ends: ArrayLike, *, leaving: bool = False) -> tuple[Floats, Ints]:
        """Where segments (q, 3) to (q, 3) first enter the surface: fraction (q,) from 0 to 1, and triangle (q,).

        Only crossings from the front of a triangle count, or with `leaving` only those from the back. Without one the
        fraction is infinite and the triangle -1.
        """
        first, last = _queries(starts), _queries(ends)
        if first.shape != last.shape:
            raise InputError(f"got {len(first)} starts and {len(last)} ends; expected as many of each")
        if not len(self.triangles):
            return np.full(len(first), np.inf), np.full(len(first), -1)
        fractions, found = _first_hits(
            first, last, self._tree, -1.0 if leaving else 1.0, HEIGHT_ROUNDING * self.diagonal
        )
        return fractions, np.where(found >= 0, self._order[found], -1)

    def overlaps(self, other: SurfaceTree | None = None, *, margin: float = 0.0) -> Ints:
        """(k, 2) triangles whose boxes come within `margin`: of this and `other`, or of this alone (each pair once)."""
        if not (np.isfinite(margin) and margin >= 0):
            raise InputError(f"margin is {margin}; expected a distance, 0 or more")
        return self._pairs(other, _BOXES, margin)

    def crossings(self, other: SurfaceTree | None = None, *, tolerance: float = 1e-9, coplanar: bool = False) -> Ints:
        """(k, 2) triangles that cross each other: of this surface and `other`, or of itself (each pair once).

        tolerance: relative to the diagonal; triangles that cross less deeply than that merely touch.
        coplanar: count triangles that overlap within one plane as well.
        """
        if not (np.isfinite(tolerance) and tolerance >= 0):
            raise InputError(f"tolerance is {tolerance}; expected 0 or a small positive number")
        diagonal = max(self.diagonal, other.diagonal if other is not None else 0.0)
        rule = _CROSSING_OR_COPLANAR if coplanar else _CROSSING
        return self._pairs(other, rule, tolerance * diagonal)

    def _pairs(self, other: SurfaceTree | None, rule: int, eps: float) -> Ints:
        target = self if other is None else other
        if not len(self.triangles) or not len(target.triangles):
            return np.zeros((0, 2), dtype=np.int64)
        found = _find_partners(self._tree.corners, target._tree, other is None, rule, float(eps))
        pairs = np.stack([self._order[found[:, 0]], target._order[found[:, 1]]], axis=1)
        if other is None:
            pairs.sort(axis=1)
        return pairs[np.lexsort(pairs.T[::-1])]


def _queries(points: ArrayLike) -> Floats:
    array = as_array(points, "points", np.float64)
    return locked(np.ascontiguousarray(as_points(array.reshape(-1, 3) if array.size == 0 else array)))


def tree_of(surface: Mesh | TetMesh | SurfaceTree) -> SurfaceTree:
    """The surface's tree, made if it is not one already."""
    return surface if isinstance(surface, SurfaceTree) else SurfaceTree(surface)


def closest_points(points: ArrayLike, surface: Mesh | TetMesh | SurfaceTree) -> Closest:
    """The closest point of a surface to each of `points` (q, 3)."""
    return tree_of(surface).closest(points)


def winding_numbers(points: ArrayLike, surface: Mesh | TetMesh | SurfaceTree, *, exact: bool = False) -> Floats:
    """(q,) winding number of a surface about each of `points` (q, 3)."""
    return tree_of(surface).winding(points, exact=exact)


def signed_distances(points: ArrayLike, surface: Mesh | TetMesh | SurfaceTree, *, exact: bool = False) -> Floats:
    """(q,) distance of each of `points` (q, 3) to a surface, negative inside."""
    return tree_of(surface).signed_distance(points, exact=exact)


def _edge_numbers(triangles: Ints, count: int) -> Ints:
    """(m, 3) number of the edge from each corner to the next, the same for all triangles that share it."""
    following = np.roll(triangles, -1, axis=1)
    key = np.minimum(triangles, following) * count + np.maximum(triangles, following)
    return np.unique(key, return_inverse=True)[1].reshape(triangles.shape).astype(np.int64)


def _pseudonormals(points: Floats, triangles: Ints, edge_of: Ints) -> tuple[Floats, Floats, Floats]:
    """Unit normals of the faces (m, 3), edges (e, 3) and vertices (n, 3); zero where they are not defined."""
    edges = int(edge_of.max()) + 1 if len(triangles) else 0
    found = np.zeros((len(triangles), 3)), np.zeros((edges, 3)), np.zeros((len(points), 3))
    kernels.pseudonormals_of(points, triangles, edge_of, *found)
    return found


_Surface = tuple[Tree, Ints, Ints, Ints, tuple[Floats, Floats, Floats]]
"""A tree and its order, the triangles, their edges' numbers and the pseudonormals."""


def _signed(points: Floats, surface: _Surface, touching: float) -> tuple[Floats, Floats]:
    """For each point the signed distance and its gradient (q, 3): the normal, if closer than `touching`."""
    found = np.empty(len(points)), np.empty((len(points), 3))
    in_threads(
        lambda a, b: kernels.pseudonormals_signed(points, surface, touching, *found, a, b),
        len(points),
        POINTS_PER_THREAD,
    )
    return found


_BOXES, _CROSSING, _CROSSING_OR_COPLANAR = 0, 1, 2


def _find_partners(query: Floats, tree: Tree, own: bool, rule: int, eps: float) -> Ints:
    """(k, 2) pairs: triangle of the query, triangle of the tree (both in the order given), found by `rule`.

    eps: with the rule _BOXES, how far apart boxes may be; otherwise the length that counts as zero.
    """
    m = len(query)
    given = query, triangle_boxes(query), tree, triangle_boxes(tree.corners), own, rule, eps
    counts, none = np.zeros(m, dtype=np.int64), np.empty(0, dtype=np.int64)

    def look(at: Ints, pairs: Ints) -> None:
        in_threads(lambda a, b: kernels.crossing_partners(given, at, counts, pairs, a, b), m, POINTS_PER_THREAD)

    look(none, np.empty((0, 2), dtype=np.int64))
    ends = np.cumsum(counts)
    pairs = np.empty((int(ends[-1]) if m else 0, 2), dtype=np.int64)
    look(ends - counts, pairs)
    return pairs


def _first_hits(starts: Floats, ends: Floats, tree: Tree, side: float, eps: float) -> tuple[Floats, Ints]:
    """For each segment the fraction of its first crossing (infinite: none), and the triangle in the tree's order.

    side: 1 for crossings from the front, -1 for those from the back. eps: the length that counts as zero.
    """
    found = np.empty(len(starts)), np.empty(len(starts), dtype=np.int64)
    in_threads(
        lambda a, b: kernels.sweep_first_hits(starts, ends, tree, side, eps, *found, a, b),
        len(starts),
        POINTS_PER_THREAD,
    )
    return found
