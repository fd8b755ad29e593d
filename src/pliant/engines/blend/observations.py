"""What is seen of a rig's shape, and where: the whole mesh, markers, or a scan.

`SurfaceRows` pair points of the surface with positions. Those of a mesh or of markers are known. A scan's point belongs
to the point of the surface that is closest to it now, and its distance along the normal there counts in full and that
across it by `ACROSS`, so that a surface slides along itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pliant.core import rotations
from pliant.core.clips import Animation
from pliant.core.errors import InputError
from pliant.core.shapes import Mesh, PointCloud
from pliant.core.topology import Floats, Ints
from pliant.core.values import as_array
from pliant.geometry.spatial import SurfaceTree

if TYPE_CHECKING:
    from pliant.engines.blend.blendshapes import Blendshapes

ACROSS = 0.1
"""How much distances along a scanned surface count beside those along its normal."""
OUTLYING, REACHES = 4.0, (0.2, 0.0)
"""Distance over the median from which a scan's point counts as none of this surface; but not within these shares of the
diagonal, in stages."""
MOST_SCAN_POINTS = 6000
"""Of a scan, evenly chosen, that take part."""
LEAST_SCAN_POINTS, LEAST_MARKERS = 100, 3
MOST_SCALED = 8.0
"""How much larger or smaller what is seen may be than the rig: beyond, the units are others."""
ALIGNING = ((150, 5, 6), (600, 15, 3))
"""How a scan's rigid motion is found: number of its points, rounds of closest points, and how many starts are kept."""


@dataclass(frozen=True, eq=False)
class SurfaceRows:
    """Points of the surface and where they are to be."""

    corners: Ints
    """(k, c) vertices."""
    shares: Floats
    """(k, c) their weights."""
    targets: Floats
    """(k, 3)"""
    metric: Floats | None = None
    """(k, 3, 3) S, or None for the distance itself."""

    def of(self, values: Floats) -> Floats:
        """(k, 3, ...) from values (n, 3, ...) of the vertices."""
        return np.einsum("kc,kc...->k...", self.shares, values[self.corners])

    def weighed(self, values: Floats) -> Floats:
        """(k, 3, ...) under the metric."""
        return values if self.metric is None else np.einsum("kab,kb...->ka...", self.metric, values)


@dataclass(frozen=True, eq=False)
class Marked:
    """Known points of the surface, some of them perhaps missing."""

    rows: SurfaceRows
    stalled: ClassVar[float] = 1e-5
    """Share of the objective, decreased by a step, at which a fit has come to its end."""

    @property
    def stages(self) -> tuple[Marked, ...]:
        """One."""
        return (self,)

    def at(self, points: Floats) -> SurfaceRows:
        """The same for all shapes."""
        return self.rows

    def error(self, points: Floats) -> float:
        """Root mean square distance of a shape (n, 3)."""
        gap = self.rows.of(points) - self.rows.targets
        return float(np.sqrt((gap**2).sum(axis=1).mean()))

    def motions(self, points: Floats) -> list[tuple[Floats, Floats]]:
        """The rigid motion that takes a shape (n, 3) nearest to what was seen."""
        return [rotations.match_rigid(self.rows.of(points), self.rows.targets)]


@dataclass(frozen=True, eq=False)
class Scanned:
    """Points somewhere on the surface."""

    targets: Floats
    base: Mesh
    within: float = np.inf
    """Distance up to which a point counts, however near most are."""
    stalled: ClassVar[float] = 1e-3

    @property
    def stages(self) -> tuple[Scanned, ...]:
        """First whatever is within reach, since limbs are far from where they will be; then what is near."""
        return tuple(self._with(within=reach * self.base.diagonal) for reach in REACHES)

    def _with(self, **changes: Any) -> Scanned:
        other = replace(self, **changes)
        other.__dict__["tree"] = self.tree
        return other

    @cached_property
    def tree(self) -> SurfaceTree:
        """Of the base's triangles."""
        return SurfaceTree(self.base)

    def at(self, points: Floats) -> SurfaceRows:
        """The closest points of a shape (n, 3), without those that are none of it."""
        triangles = self.base.triangles
        found = self.tree.moved(points).closest(self.targets)
        near = found.distance <= max(OUTLYING * float(np.median(found.distance)), self.within)
        corners = triangles[found.triangle[near]]
        a, b, c = (points[corners[:, k]] for k in range(3))
        normal = np.cross(b - a, c - a)
        normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
        along = normal[:, :, None] * normal[:, None, :]
        metric = ACROSS * np.eye(3) + (1 - ACROSS) * along
        return SurfaceRows(corners, found.barycentric[near], self.targets[near], metric)

    def error(self, points: Floats) -> float:
        """Root mean square distance of what belongs to the surface, from a shape (n, 3)."""
        distance = self.tree.moved(points).closest(self.targets).distance
        near = distance <= OUTLYING * float(np.median(distance))
        return float(np.sqrt((distance[near] ** 2).mean()))

    def motions(self, points: Floats) -> list[tuple[Floats, Floats]]:
        """Rigid motions that take a shape (n, 3) near, the best first: none, and along principal axes, any way."""
        axes = [np.linalg.svd(p - p.mean(axis=0), full_matrices=False)[2] for p in (points, self.targets)]
        axes = [a * np.sign(np.linalg.det(a)) for a in axes]
        starts = [np.eye(3), *(axes[1].T @ rotation @ axes[0] for rotation in rotations.axis_rotations())]
        centre = points.mean(axis=0)
        found = [(np.eye(3), np.zeros(3)), *((R, self.targets.mean(axis=0) - R @ centre) for R in starts)]
        for count, rounds, kept in ALIGNING:
            some = self._with(targets=self.targets[:: max(1, len(self.targets) // count)])
            found = [some._aligned(points, R, t, rounds) for R, t in found]
            found.sort(key=lambda motion: some._misfit(points @ motion[0].T + motion[1]))
            found = found[:kept]
        return found

    def _aligned(self, points: Floats, R: Floats, t: Floats, rounds: int) -> tuple[Floats, Floats]:
        """Iterated closest points."""
        for _ in range(rounds):
            rows = self.at(points @ R.T + t)
            R, t = rotations.match_rigid(rows.of(points), rows.targets)
        return R, t

    def _misfit(self, points: Floats) -> float:
        distances = self.tree.moved(points).closest(self.targets).distance
        return float(np.sort(distances)[: max(1, 4 * len(distances) // 5)].mean())


Seen = Marked | Scanned


def observed(rig: Blendshapes, target: Any, markers: Any) -> tuple[list[Seen | None], float | None]:
    """What is seen in each frame, checked, None where that is too little; and the frame rate if there is one."""
    base = rig.shapes.base
    fps = None
    if isinstance(target, Animation):
        fps, frames = target.fps, target.points
        shape: Any = target.shape
    elif isinstance(target, (Mesh, PointCloud)):
        frames, shape = target.points[None], target
    else:
        frames, shape = as_array(target, "target", np.float64), None
        frames = frames[None] if frames.ndim == 2 else frames
        if frames.ndim != 3 or frames.shape[2] != 3 or not frames.size:
            raise InputError(
                f"target has shape {frames.shape}; expected points (k, 3), or (frames, k, 3)", argument="target"
            )
    if markers is not None:
        corners, shares = _marker_rows(base, markers)
    elif frames.shape[1] == len(base.points):
        corners, shares = np.arange(len(base.points))[:, None], np.ones((len(base.points), 1))
    elif shape is None:
        raise InputError(
            f"target has {frames.shape[1]} points, the rig {len(base.points)}; "
            "say which vertices they are (markers), or that they are a scan (PointCloud)",
            argument="target",
        )
    else:
        return [_scan(base, points) for points in frames], fps
    if frames.shape[1] != len(corners):
        raise InputError(
            f"target has {frames.shape[1]} points for {len(corners)} markers; expected one for each", argument="target"
        )
    seen = [_marked(corners, shares, points, k) for k, points in enumerate(frames)]
    first = seen[0]
    assert first is not None
    _check_size(first.rows.targets, first.rows.of(base.points))
    return list(seen), fps


def taking_part(seen: Sequence[Seen | None], count: int) -> tuple[list[Seen | None], Ints]:
    """What is seen, with corners numbered among the vertices (k,) of a surface of `count` that it is about, and these.

    A scan's closest points may be anywhere.
    """
    marked = [each for each in seen if isinstance(each, Marked)]
    if len(marked) < sum(each is not None for each in seen):
        return list(seen), np.arange(count)
    vertices = np.unique(np.concatenate([each.rows.corners.ravel() for each in marked]))
    slots = np.zeros(count, np.int64)
    slots[vertices] = np.arange(len(vertices))
    numbered = [
        replace(each, rows=replace(each.rows, corners=slots[each.rows.corners])) if isinstance(each, Marked) else None
        for each in seen
    ]
    return list(numbered), vertices


def _marked(corners: Ints, shares: Floats, points: Floats, frame: int) -> Marked | None:
    there = np.isfinite(points).all(axis=1)
    if there.sum() < LEAST_MARKERS:
        if not frame:
            raise InputError(
                f"frame 0 has {there.sum()} points that are not missing; expected at least {LEAST_MARKERS}",
                argument="target",
            )
        return None
    return Marked(SurfaceRows(corners[there], shares[there], points[there]))


def _scan(base: Mesh, points: Floats) -> Scanned:
    points = points[np.isfinite(points).all(axis=1)]
    if len(points) < LEAST_SCAN_POINTS:
        raise InputError(
            f"target has {len(points)} points, the rig {len(base.points)}; expected as many, or a scan of at least "
            f"{LEAST_SCAN_POINTS}, or markers",
            argument="target",
        )
    _check_size(points, base.points)
    chosen = np.linspace(0, len(points) - 1, min(len(points), MOST_SCAN_POINTS)).astype(np.int64)
    return Scanned(points[chosen], base)


def _marker_rows(base: Mesh, markers: Any) -> tuple[Ints, Floats]:
    """Vertices and their shares, of vertex numbers (k,) or of points (triangles (k,), barycentric (k, 3))."""
    if isinstance(markers, tuple) and len(markers) == 2:
        triangle, shares = as_array(markers[0], "markers", np.int64), as_array(markers[1], "markers", np.float64)
        if triangle.ndim != 1 or shares.shape != (len(triangle), 3) or not np.isfinite(shares).all():
            raise InputError("markers on faces need triangles (k,) and barycentric weights (k, 3)", argument="markers")
        _check_numbers(triangle, len(base.triangles), "triangle")
        return base.triangles[triangle], shares
    vertices = np.asarray(markers)
    if vertices.dtype == bool and vertices.shape == (len(base.points),):
        vertices = np.flatnonzero(vertices)
    if vertices.size and not np.issubdtype(vertices.dtype, np.integer):
        raise InputError(f"markers are of type {vertices.dtype}; expected vertex numbers", argument="markers")
    if vertices.ndim != 1 or not len(vertices):
        raise InputError(f"markers have shape {vertices.shape}; expected vertex numbers (k,)", argument="markers")
    _check_numbers(vertices, len(base.points), "vertex")
    return vertices[:, None], np.ones((len(vertices), 1))


def _check_size(points: Floats, rest: Floats) -> None:
    """Whether what is seen may be as large as the rig: rigid motions do not scale."""
    size, own = (float(np.linalg.norm(np.ptp(each, axis=0))) for each in (points, rest))
    if not own / MOST_SCALED <= size <= own * MOST_SCALED:
        raise InputError(
            f"target is {size:.3g} large where the rig is {own:.3g}; expected the same units: scale one of them",
            argument="target",
        )


def _check_numbers(numbers: Ints, count: int, what: str) -> None:
    wrong = numbers[(numbers < 0) | (numbers >= count)]
    if len(wrong):
        raise InputError(f"markers name {what} {wrong[0]}; the rig has {count}, numbered from 0", argument="markers")
