"""What is wrong with a target, as files come from exporters: mirrored, torn, or with its vertices in another order.

Such a target can be blended, but what comes of it is shrunken or in shards, so it is named, with the remedy. Compared
with the base, and to its size,

- *mirrored*: the best orthogonal map of the vertices is a reflection, and the enclosed volume has changed its sign or,
  of an open surface, the reflection brings the vertices far nearer than any rotation;
- *in another order*: vertices most of whose edges are `LONG` times as long as those at their ends in the base;
- *torn*: single edges that are stretched `LONG` times as much as the others at one of their ends, or vertices that are
  at one position in the base and not in the target.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pliant.core.clips import Shapes
from pliant.core.shapes import Mesh
from pliant.core.topology import Floats, Ints, distinct, weld_map

LONG, VISIBLE, FEWEST_TORN = 5.0, 0.2, 3
"""Stretch of an edge, its length over the size, and the number of such edges, from which on a target is torn."""
SCATTERED_SHARE = 0.02
"""Share of the vertices most of whose edges are long, from which on it is their order that is wrong."""
LEAST_INVERTED_VOLUME = 0.3
"""Volume of an inside-out target over the base's, in proportion to their sizes, at least."""
MIRROR_GAIN, LEAST_RELIEF = 0.5, 0.05
"""Distance from a mirror image over that from a rotated one, at most; the latter over the size, at least."""
MIRRORS = {
    "mirrored along x": ((0, 1, 2), (-1, 1, 1), "negate its x coordinates"),
    "mirrored along y": ((0, 1, 2), (1, -1, 1), "negate its y coordinates"),
    "mirrored along z": ((0, 1, 2), (1, 1, -1), "negate its z coordinates"),
    "point-reflected": ((0, 1, 2), (-1, -1, -1), "negate all its coordinates"),
    "mirrored, x and y exchanged": ((1, 0, 2), (1, 1, 1), "exchange them"),
    "mirrored, y and z exchanged": ((0, 2, 1), (1, 1, 1), "exchange them"),
    "mirrored, x and z exchanged": ((2, 1, 0), (1, 1, 1), "exchange them"),
}
"""Reflections as exporters make them, as a permutation of the axes and their signs; and what undoes them."""
LIKE = 0.6
"""Mean cosine between the axes of a reflection and those of one of `MIRRORS`, the first, that it is called by."""


def target_problems(shapes: Shapes) -> Iterator[str]:
    """What is wrong with each of the shapes compared with the base, if anything."""
    base = shapes.base
    used, edges = distinct(base.triangles), base.edges
    if len(used) < 4:
        return
    length = _lengths(base.points, edges)
    valence = np.bincount(edges.ravel(), minlength=len(base.points))
    usual = np.bincount(edges.ravel(), np.repeat(length, 2), minlength=len(base.points)) / np.maximum(valence, 1)
    around = np.maximum(length, usual[edges].mean(axis=1))  # an edge that has collapsed is as long as its neighbours
    size, seams = _size(base.points[used]), weld_map(base.points, base.boundary_vertices, 0.0)
    for name, points in zip(shapes.names[1:], shapes.points[1:], strict=True):
        own = _size(points[used])
        if size <= 0 or own <= 0:
            continue
        reach = _lengths(points, edges) / own
        stretch = reach * size / around
        median = _lower_medians(stretch, edges, valence)
        long = (stretch > LONG) & (reach > VISIBLE)
        problem = (
            _order(np.bincount(edges[long].ravel(), minlength=len(valence)), median, len(used))
            or _mirror(base, points, used, size, own)
            or _tear(np.where(long & (stretch > LONG * median[edges].min(axis=1)), stretch, 0), edges)
            or _open_seams(points, seams)
        )
        if problem:
            yield f'"{name}" {problem}'


def _lengths(points: Floats, edges: Ints) -> Floats:
    return np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1)


def _lower_medians(values: Floats, edges: Ints, valence: Ints) -> Floats:
    """(n,) the lower median of the edges' values at every vertex; 0 without edges."""
    vertex, twice = edges.ravel(), np.repeat(values, 2)
    order = np.lexsort((twice, vertex))
    first = np.cumsum(valence) - valence
    found = np.zeros(len(valence))
    some = valence > 0
    found[some] = twice[order][(first + (valence - 1) // 2)[some]]
    return found


def _size(points: Floats) -> float:
    """Median distance from the middle, which a few vertices far away do not change; 0 if it is lost in rounding."""
    size = 2 * float(np.median(np.linalg.norm(points - np.median(points, axis=0), axis=1)))
    return size if size > 1e-9 * float(np.abs(points).max()) else 0.0


def _order(long: Ints, median: Floats, count: int) -> str:
    scattered = int(((long > 0) & (median > LONG)).sum())
    if scattered < max(SCATTERED_SHARE * count, 4):
        return ""
    return (
        f"has its vertices in another order than the base: {scattered} of {count} are far from their neighbours; "
        "export both from the same mesh, with the order of vertices kept"
    )


def _mirror(base: Mesh, points: Floats, used: Ints, size: float, own: float) -> str:
    before, after = (p[used] - p[used].mean(axis=0) for p in (base.points / size, points / own))
    U, _, Vt = np.linalg.svd(after.T @ before)
    if np.linalg.det(U @ Vt) > 0:
        return ""
    improper, proper = U @ Vt, U @ np.diag([1, 1, -1]) @ Vt
    from_mirror, from_rotated = (np.linalg.norm(after - before @ Q.T) / len(used) ** 0.5 for Q in (improper, proper))
    congruent = from_rotated > LEAST_RELIEF and from_mirror < MIRROR_GAIN * from_rotated
    if base.welded().mesh.is_watertight:
        volume, other = base.volume / size**3, base.with_points(points).volume / own**3
        congruent = other * volume < 0 and abs(other) > LEAST_INVERTED_VOLUME * abs(volume)
    if not congruent:
        return ""
    for name, (order, signs, remedy) in MIRRORS.items():
        if np.mean(improper[np.arange(3), order] * signs) > LIKE:
            return f"is {name}: {remedy}, or export it again without a negative scale"
    return "is mirrored or point-reflected: negate one or all of its axes, or export it again without a negative scale"


def _tear(stretch: Floats, edges: Ints) -> str:
    count = int((stretch > 0).sum())
    if count < FEWEST_TORN:
        return ""
    worst = int(np.argmax(stretch))
    i, j = edges[worst]
    return (
        f"is torn: {count} of its edges stretch more than {LONG:g} times as much as others there, that of vertices {i} "
        f"and {j} {stretch[worst]:.0f} times; move them to their neighbours, or export both from the same mesh"
    )


def _open_seams(points: Floats, seams: Ints) -> str:
    gap = np.linalg.norm(points - points[seams], axis=1)
    apart = int((gap > 0).sum())
    if not apart:
        return ""
    return (
        f"is torn: {apart} vertices that coincide with others in the base are up to {gap.max():.3g} away from them; "
        "merge vertices by distance before exporting, unless the shape is to open there"
    )
