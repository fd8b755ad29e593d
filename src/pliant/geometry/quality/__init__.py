"""Quality of a deformation: `measure` evaluates all measures over a clip.

The measures themselves, and what each means, are in `pliant.geometry.quality.measures`; all of them are offered here.
A `Report` holds one curve a measure, one value a frame, and shows them as a table or as JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pliant.core.clips import Animation
from pliant.core.errors import InputError
from pliant.core.interop import takes_meshes
from pliant.core.scaling import scaling_of
from pliant.core.shapes import Mesh, PointCloud, TetMesh, bounding_diagonal
from pliant.core.topology import Floats, Ints
from pliant.geometry.quality.measures import (
    SMALLEST_ELEMENT,
    InteriorEdges,
    Popping,
    RestShape,
    SelfIntersections,
    Summary,
    angle_reference,
    area_distortion,
    checked_weights,
    dihedral_angles,
    dihedral_deviation,
    edge_angles,
    edge_distortion,
    edge_lengths,
    edges_of,
    interior_edges,
    inverted_tets,
    penetration,
    popping,
    ratio,
    reference,
    rest_points,
    self_intersections,
    summarize,
    tet_volume_ratio,
    triangle_areas,
    volume_ratio,
    whole_volume,
    wrapped,
)
from pliant.geometry.spatial import SurfaceTree, tree_of


@dataclass(frozen=True, eq=False)
class Report:
    """Measures of a clip, frame by frame. A curve is None where it does not apply or was not requested."""

    name: str
    fps: float
    diagonal: float
    """Of the rest shape (see `Popping.diagonal`), in the file's units; all lengths below are relative to it."""
    popping: Floats
    """(frames,) largest step over the median step of the same point; 1 is uniform motion."""
    step: Floats
    """(frames,) longest step to each frame, over the diagonal."""
    volume: Floats | None = None
    """(frames,) enclosed volume over that at rest."""
    edge_rms: Floats | None = None
    """(frames,) root mean square of l / r − 1 over the edges."""
    edge_min: Floats | None = None
    """(frames,) least l / r."""
    edge_max: Floats | None = None
    """(frames,) largest l / r."""
    area_rms: Floats | None = None
    """(frames,) root mean square of area over rest area − 1."""
    area_min: Floats | None = None
    area_max: Floats | None = None
    bend_rms: Floats | None = None
    """(frames,) root mean square deviation of the dihedral angles, in radians."""
    inverted: Ints | None = None
    """(frames,) inverted tetrahedra."""
    self_intersections: Ints | None = None
    """(frames,) pairs of triangles that cross each other."""
    penetration: Floats | None = None
    """(frames,) deepest penetration into the obstacle, over the diagonal."""

    def __len__(self) -> int:
        return len(self.popping)

    @property
    def curves(self) -> dict[str, Any]:
        """The curves that there are, by name, each (frames,)."""
        found = ((item.name, getattr(self, item.name)) for item in fields(self))
        return {name: value for name, value in found if isinstance(value, np.ndarray)}

    def worst(self) -> dict[str, tuple[float, int]]:
        """For every curve its worst value and the frame (from 0) that has it; curves without any value are left out."""
        ideals = dict.fromkeys(("volume", "edge_min", "edge_max", "area_min", "area_max", "popping"), 1.0)
        found = {}
        for name, curve in self.curves.items():
            if not np.isnan(curve).all():
                frame = int(np.nanargmax(np.abs(curve - ideals.get(name, 0.0))))
                found[name] = float(curve[frame]), frame
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and None, ready for JSON."""
        return {
            "name": self.name,
            "frames": len(self),
            "fps": self.fps,
            "diagonal": _plain(self.diagonal),
            "worst": {name: {"value": _plain(value), "frame": frame} for name, (value, frame) in self.worst().items()},
            "per_frame": {name: [_plain(value) for value in curve] for name, curve in self.curves.items()},
        }

    def table(self, *, rows: int = 12) -> str:
        """A text table of at most `rows` frames, evenly spread, and the worst of all frames."""
        if rows < 1:
            raise InputError(f"rows is {rows}; expected 1 or more")
        shown = np.unique(np.linspace(0, len(self) - 1, min(rows, len(self))).round().astype(int))
        curves, worst = self.curves, self.worst()
        lines = [["frame", *(name.replace("_", " ") for name in curves)]]
        lines += [[str(k), *(_cell(curve[k]) for curve in curves.values())] for k in shown]
        lines.append(["worst", *(_cell(worst[name][0]) if name in worst else "-" for name in curves)])
        lines.append(["at", *(str(worst[name][1]) if name in worst else "-" for name in curves)])
        widths = [max(len(line[c]) for line in lines) for c in range(len(lines[0]))]
        return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)) for line in lines)


def _plain(value: Any) -> float | int | None:
    if not np.isfinite(value):
        return None
    return int(value) if np.issubdtype(type(value), np.integer) else float(value)


def _cell(value: Any) -> str:
    number = _plain(value)
    return "-" if number is None else f"{number:.4g}"


@takes_meshes("animation", "rest", "obstacle")
def measure(
    animation: Animation,
    rest: RestShape | None = None,
    *,
    weights: ArrayLike | None = None,
    obstacle: Mesh | TetMesh | SurfaceTree | None = None,
    self_intersections: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """All measures of a clip, frame by frame.

    rest: what the shape should keep to; the animation's own shape if not given. Several shapes are blended by
        `weights` (shapes,) or (frames, shapes); without weights, whatever lies between them is perfect.
    obstacle: a closed surface that the points should stay out of; whether it faces outwards or inwards is the same.
    self_intersections: count triangles that cross each other too, which takes longer than all the rest.
    progress: called with (frames done, frames) after every frame.
    """
    if not isinstance(animation, Animation):
        raise InputError(f"got a {type(animation).__name__}; expected an Animation")
    if not animation.points.size:
        raise InputError("the animation has no points; expected something to measure")
    yardstick: _Yardstick | _NoYardstick
    if rest is None and isinstance(animation.shape, PointCloud):
        yardstick = _NoYardstick(animation.shape)
    else:
        yardstick = _Yardstick(animation.shape if rest is None else rest)  # type: ignore[arg-type]
    if animation.points.shape[1] != yardstick.count:
        raise InputError(
            f"the animation moves {animation.points.shape[1]} points; the rest shape has {yardstick.count}"
        )
    blend = checked_weights(weights, yardstick.shapes, len(animation))
    pops = popping(animation, rest=yardstick.points)
    surface, target = _trees(yardstick.shape if self_intersections else None, obstacle)
    rows = []
    for k, points in enumerate(animation.points):
        row = yardstick.measure(points, blend if blend is None or blend.ndim == 1 else blend[k])
        rows.append(row | _contact(points, surface, target, pops.diagonal))
        if progress is not None:
            progress(k + 1, len(animation))
    return Report(animation.name, animation.fps, pops.diagonal, pops.frame, pops.step, **_columns(rows))


class _NoYardstick:
    """Of a point cloud, which has nothing to measure by but its size."""

    shape = None
    shapes = 1

    def __init__(self, cloud: PointCloud) -> None:
        self.count, self.points = len(cloud.points), cloud.points

    def measure(self, points: Floats, weights: Floats | None) -> dict[str, float]:
        """One frame's values: none."""
        return {}


class _Yardstick:
    """What the rest shapes measure, taken once for all frames."""

    def __init__(self, rest: RestShape) -> None:
        self.shape, at_rest = rest_points(rest)
        self.shapes, self.count = at_rest.shape[:2]
        self.points, self.scaling = at_rest[0], scaling_of(at_rest[0])
        at_rest = self.scaling(at_rest)
        self.diagonal = bounding_diagonal(at_rest[0])
        self.lengths, self.areas = edge_lengths(self.shape), triangle_areas(self.shape)
        self.volume = whole_volume(self.shape)
        self.kept, skin = np.arange(self.count), self.shape
        if isinstance(self.shape, Mesh):  # across a seam of split vertices the surface bends like anywhere else
            weld = self.shape.welded(poses=list(at_rest))
            self.kept, skin = weld.kept, weld.mesh
        self.angles = edge_angles(skin)
        self.rest_lengths, self.rest_areas = self.lengths(at_rest), self.areas(at_rest)
        self.rest_volume, self.rest_angles = self.volume(at_rest), self.angles(at_rest[:, self.kept])

    @np.errstate(over="ignore", invalid="ignore")
    def measure(self, points: Floats, weights: Floats | None) -> dict[str, float]:
        """One frame's values by the names of the report's curves."""
        frame, points = points, self.scaling(points)
        now = self.lengths(points)
        edge = summarize(ratio(now, reference(self.rest_lengths, now, weights), SMALLEST_ELEMENT * self.diagonal))
        now = self.areas(points)
        area = summarize(ratio(now, reference(self.rest_areas, now, weights), SMALLEST_ELEMENT * self.diagonal**2))
        now = self.volume(points)
        volume = ratio(now, reference(self.rest_volume, now, weights), SMALLEST_ELEMENT * self.diagonal**3)
        now = self.angles(points[self.kept])
        bend = summarize(wrapped(now - angle_reference(self.rest_angles, now, weights)), ideal=0.0)
        row = {"volume": float(volume[0]), "edge_rms": edge.rms, "edge_min": edge.least, "edge_max": edge.largest}
        row |= {"area_rms": area.rms, "area_min": area.least, "area_max": area.largest, "bend_rms": bend.rms}
        if isinstance(self.shape, TetMesh):
            row["inverted"] = int(inverted_tets(self.shape, frame).sum())
        return row


def _trees(
    shape: Mesh | TetMesh | None, obstacle: Mesh | TetMesh | SurfaceTree | None
) -> tuple[SurfaceTree | None, SurfaceTree | None]:
    """Trees of the moving surface and of the obstacle, where they are needed."""
    return None if shape is None else SurfaceTree(shape), None if obstacle is None else tree_of(obstacle)


def _contact(
    points: Floats,
    surface: SurfaceTree | None,
    obstacle: SurfaceTree | None,
    diagonal: float,
) -> dict[str, float]:
    """One frame's self-intersections and penetration, as far as requested."""
    row: dict[str, float] = {}
    if surface is not None:
        row["self_intersections"] = self_intersections(surface.moved(points)).count
    if obstacle is not None:
        deepest = float(penetration(points, obstacle).max(initial=0.0))
        row["penetration"] = deepest / diagonal if diagonal > 0 else float("nan")
    return row


def _columns(rows: list[dict[str, float]]) -> dict[str, Any]:
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


__all__ = [
    "InteriorEdges",
    "Popping",
    "Report",
    "SelfIntersections",
    "Summary",
    "area_distortion",
    "dihedral_angles",
    "dihedral_deviation",
    "edge_distortion",
    "edges_of",
    "interior_edges",
    "inverted_tets",
    "measure",
    "penetration",
    "popping",
    "self_intersections",
    "summarize",
    "tet_volume_ratio",
    "volume_ratio",
]
