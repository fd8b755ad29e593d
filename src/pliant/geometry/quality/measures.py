"""Measures of deformation: one small function each, one value an element.

Each takes what the shape was (`rest`: a `Mesh`, a `TetMesh`, or several `Shapes`) and where its points are now
(`moved`: points (n, 3), frames (f, n, 3), a shape, a `Pose` or an `Animation`), and gives one value an element, with a
leading axis for frames. 1 is perfect for ratios, 0 for deviations.

With several rest shapes, `weights` (shapes,) or (frames, shapes) blend their lengths, areas, volumes or angles into
the reference, ``r = Σ w_k r_k``. Without weights anything between the least and the largest rest value is perfect.

An element that has no size at rest (relative to the bounding-box diagonal) has no ratio: it is NaN, and summaries
leave it out. No measure depends on the units of the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.core.clips import Animation, Pose, Shapes
from pliant.core.errors import InputError
from pliant.core.interop import takes_meshes
from pliant.core.normals import triangle_normals, unit
from pliant.core.scaling import scaling_of
from pliant.core.shapes import Mesh, PointCloud, TetMesh, bounding_diagonal
from pliant.core.topology import Floats, Ints, unique_pairs
from pliant.core.validation import as_points, expect
from pliant.core.values import as_array
from pliant.geometry.spatial import SurfaceTree, tree_of

RestShape = Mesh | TetMesh | Shapes
Deformed = ArrayLike | Mesh | TetMesh | PointCloud | Pose | Animation

SMALLEST_ELEMENT = 1e-12
"""Size, relative to the diagonal (squared for areas, cubed for volumes), below which an element has no size."""


def moved_points(moved: Deformed, count: int) -> Floats:
    """(n, 3) or (frames, n, 3) finite positions of `count` points."""
    points = moved.points if isinstance(moved, (Mesh, TetMesh, PointCloud, Pose, Animation)) else moved
    array = as_array(points, "the moved points", np.float64)
    if array.ndim not in (2, 3) or array.shape[-2:] != (count, 3):
        raise InputError(f"the moved points have shape {array.shape}; expected ({count}, 3) or (frames, {count}, 3)")
    if not np.isfinite(array).all():
        raise InputError("the moved points have NaN or infinite coordinates; expected finite ones")
    return array


@takes_meshes("rest")
def rest_points(rest: RestShape) -> tuple[Mesh | TetMesh, Floats]:
    """The shape that connects the points, and the rest positions (shapes, n, 3)."""
    if isinstance(rest, Shapes):
        return rest.base, rest.points
    if isinstance(rest, (Mesh, TetMesh)):
        return rest, rest.points[None]
    raise InputError(f"rest is a {type(rest).__name__}; expected a Mesh, a TetMesh or Shapes")


def checked_weights(weights: ArrayLike | None, shapes: int, frames: int | None) -> Floats | None:
    """Blending weights (shapes,) or (frames, shapes) that sum to 1."""
    if weights is None:
        return None
    array = as_array(weights, "weights", np.float64)
    expected = [(shapes,)] if frames is None else [(shapes,), (frames, shapes)]
    if array.shape not in expected:
        raise InputError(f"weights have shape {array.shape}; expected {' or '.join(map(str, expected))}")
    if not np.isfinite(array).all() or np.abs(array.sum(axis=-1) - 1).max() > 1e-6:
        raise InputError("weights do not sum to 1; expected one weight for each rest shape, 1 together")
    return array


def reference(at_rest: Floats, now: Floats, weights: Floats | None) -> Floats:
    """What `now` (..., k) should be, by the values `at_rest` (shapes, k): blended, or the nearest between them."""
    if weights is not None:
        return weights @ at_rest
    return np.clip(now, at_rest.min(axis=0), at_rest.max(axis=0))


def _compare(
    rest: RestShape,
    moved: Deformed,
    weights: ArrayLike | None,
    value: Callable[[Mesh | TetMesh], Callable[[Floats], Floats]],
) -> tuple[Floats, Floats, float]:
    """The values now, their reference, and the diagonal of the rest shape, all of them scaled by `scaling_of`."""
    shape, at_rest = rest_points(rest)
    points = moved_points(moved, len(shape.points))
    blend = checked_weights(weights, len(at_rest), len(points) if points.ndim == 3 else None)
    scaling, of = scaling_of(at_rest[0]), value(shape)
    at_rest = scaling(at_rest)
    with np.errstate(over="ignore", invalid="ignore"):
        now = of(scaling(points))
    return now, reference(of(at_rest), now, blend), bounding_diagonal(at_rest[0])


def ratio(now: Floats, expected: Floats, smallest: float) -> Floats:
    """now / expected; NaN where |expected| is not above `smallest`."""
    solid = np.abs(expected) > smallest
    return np.divide(now, expected, out=np.full(now.shape, np.nan), where=np.broadcast_to(solid, now.shape))


# Lengths, areas and volumes: each takes a shape and gives a function of points (..., n, 3).


@takes_meshes("shape")
def edges_of(shape: Mesh | TetMesh) -> Ints:
    """(e, 2) edges of the polygons, or of the tetrahedra."""
    if isinstance(shape, Mesh):
        return shape.edges
    expect(shape, (Mesh, TetMesh), "the shape")
    ends = np.concatenate([shape.tets[:, [i, j]] for i in range(4) for j in range(i + 1, 4)])
    return unique_pairs(ends, len(shape.points))


@takes_meshes("shape")
def edge_lengths(shape: Mesh | TetMesh) -> Callable[[Floats], Floats]:
    """Edge lengths (..., e) as a function of points."""
    edges = edges_of(shape)
    return lambda p: np.linalg.norm(p[..., edges[:, 1], :] - p[..., edges[:, 0], :], axis=-1)


def _surface_triangles(shape: Mesh | TetMesh) -> Ints:
    return shape.triangles if isinstance(shape, Mesh) else shape.surface.triangles


@takes_meshes("shape")
def triangle_areas(shape: Mesh | TetMesh) -> Callable[[Floats], Floats]:
    """Triangle areas (..., m) as a function of points."""
    t = _surface_triangles(shape)

    def areas(p: Floats) -> Floats:
        a, b, c = (p[..., t[:, k], :] for k in range(3))
        return np.asarray(np.linalg.norm(np.cross(b - a, c - a), axis=-1) / 2)

    return areas


def tet_volumes(shape: TetMesh) -> Callable[[Floats], Floats]:
    """Signed volumes (..., t) of the tetrahedra as a function of points."""

    def volumes(p: Floats) -> Floats:
        a, b, c, d = (p[..., shape.tets[:, k], :] for k in range(4))
        return np.asarray(np.einsum("...i,...i->...", b - a, np.cross(c - a, d - a)) / 6)

    return volumes


@takes_meshes("shape")
def whole_volume(shape: Mesh | TetMesh) -> Callable[[Floats], Floats]:
    """Enclosed volume (..., 1) as a function of points; of an open mesh, seen from the mean of its points."""
    if isinstance(shape, TetMesh):
        volumes = tet_volumes(shape)
        return lambda p: volumes(p).sum(axis=-1, keepdims=True)
    t = shape.triangles

    def volume(p: Floats) -> Floats:
        if not len(t):
            return np.zeros((*p.shape[:-2], 1))
        a, b, c = (p[..., t[:, k], :] - p.mean(axis=-2, keepdims=True) for k in range(3))
        return np.asarray(np.einsum("...ij,...ij->...", a, np.cross(b, c)) / 6)[..., None]

    return volume


@takes_meshes("rest")
def edge_distortion(rest: RestShape, moved: Deformed, *, weights: ArrayLike | None = None) -> Floats:
    """Length over rest length of every edge (..., e), in the order of `edges_of`."""
    now, expected, diagonal = _compare(rest, moved, weights, edge_lengths)
    return ratio(now, expected, SMALLEST_ELEMENT * diagonal)


@takes_meshes("rest")
def area_distortion(rest: RestShape, moved: Deformed, *, weights: ArrayLike | None = None) -> Floats:
    """Area over rest area of every triangle (..., m); of tetrahedra, the triangles of their surface."""
    now, expected, diagonal = _compare(rest, moved, weights, triangle_areas)
    return ratio(now, expected, SMALLEST_ELEMENT * diagonal**2)


@takes_meshes("rest")
def volume_ratio(rest: RestShape, moved: Deformed, *, weights: ArrayLike | None = None) -> Floats:
    """Enclosed volume over that at rest, of the whole shape: a number, or (frames,)."""
    now, expected, diagonal = _compare(rest, moved, weights, whole_volume)
    return ratio(now, expected, SMALLEST_ELEMENT * diagonal**3)[..., 0]


@takes_meshes("rest")
def tet_volume_ratio(rest: TetMesh, moved: Deformed) -> Floats:
    """Volume over rest volume of every tetrahedron (..., t): negative where it is inverted."""
    if not isinstance(rest, TetMesh):
        raise InputError(f"rest is a {type(rest).__name__}; expected a TetMesh")
    now, expected, diagonal = _compare(rest, moved, None, lambda _: tet_volumes(rest))
    return ratio(now, expected, SMALLEST_ELEMENT * diagonal**3)


@takes_meshes("rest")
def inverted_tets(rest: TetMesh, moved: Deformed) -> NDArray[np.bool_]:
    """Which tetrahedra (..., t) are flat or inside out, against their rest orientation; `.sum(axis=-1)` counts them."""
    return tet_volume_ratio(rest, moved) <= 0


# Bending


@dataclass(frozen=True, eq=False)
class InteriorEdges:
    """Edges at which exactly two triangles meet."""

    ends: Ints
    """(e, 2) vertices, in the direction in which the first triangle runs along the edge."""
    triangles: Ints
    """(e, 2) the two triangles."""
    sign: Floats
    """(e,) -1 where the two triangles disagree about which side is out, else 1."""


def interior_edges(triangles: Ints) -> InteriorEdges:
    """The edges of a triangle mesh that join two triangles, sorted by their vertices."""
    start, end = triangles.ravel(), np.roll(triangles, -1, axis=1).ravel()
    span = int(triangles.max()) + 1 if triangles.size else 1
    key = np.minimum(start, end) * span + np.maximum(start, end)
    order = np.argsort(key, kind="stable")
    _, first, count = np.unique(key[order], return_index=True, return_counts=True)
    first = first[count == 2]
    a, b = order[first], order[first + 1]
    sign = np.where(start[a] == start[b], -1.0, 1.0)
    return InteriorEdges(np.stack([start[a], end[a]], axis=1), np.stack([a // 3, b // 3], axis=1), sign)


def _angles_at(triangles: Ints, edges: InteriorEdges, p: Floats) -> Floats:
    """(e,) for one set of points (n, 3)."""
    p = scaling_of(p)(p)
    normal = triangle_normals(p, triangles)
    n1, n2 = normal[edges.triangles[:, 0]], normal[edges.triangles[:, 1]] * edges.sign[:, None]
    along = unit(p[edges.ends[:, 1]] - p[edges.ends[:, 0]])
    return np.arctan2(np.einsum("ei,ei->e", np.cross(n1, n2), along), np.einsum("ei,ei->e", n1, n2))


@takes_meshes("shape")
def edge_angles(shape: Mesh | TetMesh) -> Callable[[Floats], Floats]:
    """Dihedral angles (..., e) at the interior edges as a function of points."""
    triangles = _surface_triangles(shape)
    edges = interior_edges(triangles)

    def angles(p: Floats) -> Floats:
        rows = [_angles_at(triangles, edges, frame) for frame in p.reshape(math.prod(p.shape[:-2]), *p.shape[-2:])]
        return np.stack(rows).reshape(*p.shape[:-2], len(edges.ends))

    return angles


def wrapped(angle: Floats) -> Floats:
    """The same angles between -π and π."""
    return np.asarray((angle + np.pi) % (2 * np.pi) - np.pi)


@takes_meshes("mesh")
def dihedral_angles(mesh: Mesh | TetMesh, moved: Deformed | None = None) -> Floats:
    """Angles (..., e) between the triangles at each interior edge (see `interior_edges`), in radians.

    0 is flat, positive convex (seen from outside), ±π folded shut. Edges inside a polygon that was cut into triangles
    count too.
    """
    shape, _ = rest_points(mesh)
    return edge_angles(shape)(moved_points(shape if moved is None else moved, len(shape.points)))


def angle_reference(at_rest: Floats, now: Floats, weights: Floats | None) -> Floats:
    """Like `reference`, for angles: rest angles are unwrapped from the first shape's."""
    near = at_rest[0] + wrapped(at_rest - at_rest[0])
    return reference(near, at_rest[0] + wrapped(now - at_rest[0]), weights)


@takes_meshes("rest")
def dihedral_deviation(rest: RestShape, moved: Deformed, *, weights: ArrayLike | None = None) -> Floats:
    """Dihedral angle less rest angle (..., e), in radians from -π to π: wrinkles show as large values of both signs."""
    shape, at_rest = rest_points(rest)
    points = moved_points(moved, len(shape.points))
    blend = checked_weights(weights, len(at_rest), len(points) if points.ndim == 3 else None)
    angles = edge_angles(shape)
    now = angles(points)
    return wrapped(now - angle_reference(angles(at_rest), now, blend))


# Intersection and contact


@dataclass(frozen=True, eq=False)
class SelfIntersections:
    """Triangles of one surface that pass through each other."""

    pairs: Ints
    """(k, 2) triangles, the smaller number first."""
    sharing: NDArray[np.bool_]
    """(k,) whether the two share a vertex (and cross away from it)."""

    @property
    def count(self) -> int:
        """Number of pairs."""
        return len(self.pairs)


@takes_meshes("surface")
def self_intersections(
    surface: Mesh | TetMesh | SurfaceTree | ArrayLike,
    triangles: ArrayLike | None = None,
    *,
    tolerance: float = 1e-9,
    coplanar: bool = False,
) -> SelfIntersections:
    """The pairs of triangles that cross: each has corners on both sides of the other, and they share a line segment.

    Triangles that merely touch (a corner or an edge on the other) do not count, nor do neighbours, unless two that
    share one vertex cross away from it. A fold that lies exactly along edges of both sheets only touches.

    tolerance: how deep, relative to the diagonal, a crossing has to be.
    coplanar: count triangles that overlap within one plane as well (doubled faces, closed folds).
    """
    tree = surface if isinstance(surface, SurfaceTree) else SurfaceTree(surface, triangles)
    pairs = tree.crossings(tolerance=tolerance, coplanar=coplanar)
    a, b = tree.triangles[pairs[:, 0]], tree.triangles[pairs[:, 1]]
    return SelfIntersections(pairs, (a[:, :, None] == b[:, None, :]).any(axis=(1, 2)))


def penetration(moved: Deformed, obstacle: Mesh | TetMesh | SurfaceTree) -> Floats:
    """How deep each point is inside a closed obstacle (..., n), in its units: 0 outside, `.max()` the deepest.

    A closed obstacle that faces inwards, its volume being negative, is taken as if it faced outwards.
    """
    points = (
        moved.points if isinstance(moved, (Mesh, TetMesh, PointCloud, Pose, Animation)) else as_array(moved, "points")
    )
    positions = moved_points(points, points.shape[-2] if points.ndim > 1 else 0)
    tree = tree_of(obstacle)
    flat = positions.reshape(-1, 3)
    depth = np.zeros(len(flat))
    inside = np.flatnonzero(tree.facing * tree.winding(flat) > 0.5)
    depth[inside] = tree.closest(flat[inside]).distance
    return depth.reshape(positions.shape[:-1])


# Motion


@dataclass(frozen=True, eq=False)
class Popping:
    """How suddenly points move: a step from one frame to the next, over the median of that point's steps."""

    vertex: Floats
    """(n,) the largest of each point; 1 for points that hardly move."""
    frame: Floats
    """(frames,) the largest over all points of the step that leads to each frame; the first frame has 1."""
    step: Floats
    """(frames,) the longest step to each frame, over the diagonal; the first frame has 0."""
    diagonal: float
    """What steps are relative to: of the rest shape, or of the whole motion if all its points coincide."""

    @property
    def worst(self) -> float:
        """The largest of all: 1 for uniform motion, above 10 something has jumped."""
        return float(self.frame.max())


def popping(animation: Animation, *, floor: float = 1e-4, rest: ArrayLike | None = None) -> Popping:
    """Sudden jumps in an animation.

    floor: steps relative to the diagonal below which a point counts as static; no median is taken to be less.
    rest: (n, 3) the points whose diagonal that is; those of the widest frame if not given.
    """
    if not isinstance(animation, Animation):
        raise InputError(f"got a {type(animation).__name__}; expected an Animation")
    if not (np.isfinite(floor) and floor > 0):
        raise InputError(f"floor is {floor}; expected a small positive number")
    scaling = scaling_of(animation.points)
    points = scaling(animation.points)
    frames, count = points.shape[:2]
    widest = max(map(bounding_diagonal, points if rest is None else [scaling(as_points(rest, "rest points"))]))
    diagonal = widest or bounding_diagonal(points.reshape(-1, 3))
    vertex, frame, step = np.ones(count), np.ones(frames), np.zeros(frames)
    if frames < 2 or diagonal == 0:
        return Popping(vertex, frame, step, float(scaling.undone(diagonal, 1)))
    for start in range(0, count, 20_000):  # bounds the memory that long clips of large meshes take
        block = slice(start, start + 20_000)
        steps = np.linalg.norm(np.diff(points[:, block], axis=0), axis=2) / diagonal
        typical = np.maximum(np.median(steps, axis=0), floor)
        relative = np.where(steps.max(axis=0) > floor, steps / typical, 1.0)
        vertex[block] = relative.max(axis=0)
        frame[1:] = relative.max(axis=1) if start == 0 else np.maximum(frame[1:], relative.max(axis=1))
        step[1:] = np.maximum(step[1:], steps.max(axis=1))
    return Popping(vertex, frame, step, float(scaling.undone(diagonal, 1)))


@dataclass(frozen=True)
class Summary:
    """What an array of a measure comes to."""

    count: int
    """Elements that have a value."""
    undefined: int
    """Elements that have none (no size at rest)."""
    least: float
    mean: float
    largest: float
    rms: float
    """Root of the mean squared difference from the ideal."""


def summarize(values: ArrayLike, *, ideal: float = 1.0) -> Summary:
    """Least, mean, largest and root mean square deviation from `ideal` (1 for ratios, 0 for deviations)."""
    array = as_array(values, "values", np.float64).ravel()
    known = array[~np.isnan(array)]
    if not len(known):
        return Summary(0, len(array), *[float("nan")] * 4)
    largest = float(np.abs(known - ideal).max()) or 1.0  # scaled by it, squares do not overflow
    rms = largest * float(np.sqrt(np.mean(((known - ideal) / largest) ** 2))) if np.isfinite(largest) else largest
    least, mean, largest = float(known.min()), float(known.mean()), float(known.max())
    return Summary(len(known), len(array) - len(known), least, mean, largest, rms)
