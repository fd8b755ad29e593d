"""From whatever a file holds to a picture file: what ``pliant render`` does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pliant import render
from pliant.core.clips import Animation, Shapes
from pliant.core.errors import InputError
from pliant.core.progress import ReportFrames
from pliant.core.shapes import Mesh
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Floats, Ints
from pliant.geometry import quality

_MOVING = (".gif", ".mp4")
MEASURES = {
    "edge": "edge length over rest length",
    "area": "triangle area over rest area",
    "displacement": "distance from the first frame over the diagonal",
}


def draw_to_file(
    content: Any,
    path: Path,
    *,
    frames: int | None = None,
    frame: int | None = None,
    turntable: bool = False,
    view: render.View = "auto",
    up: render.Up = "auto",
    size: tuple[int, int] | None = None,
    edges: bool = False,
    measure: str | None = None,
    progress: ReportFrames | None = None,
) -> Path:
    """Draw a shape, shapes, clip, skeleton or motion; the suffix decides between a picture and a movie.

    measure: one of `MEASURES`, or the name of a vertex attribute or vertex group, to colour by.
    """
    options: dict[str, Any] = {"view": view, "up": up} | ({} if size is None else {"size": size})
    clip = isinstance(content, (Animation, Motion))
    if frame is not None:
        if not clip and not isinstance(content, Shapes):
            raise InputError(f"--frame goes with a clip; this is a {type(content).__name__}")
        if not 0 <= frame < len(content):
            raise InputError(f"--frame is {frame}; the clip has {len(content)} frames, numbered from 0")
    if turntable and path.suffix.lower() not in _MOVING:
        raise InputError(f"--turntable makes a movie; {path.name} is not one: expected .gif or .mp4")
    if measure is not None:
        options |= _coloured(content, measure, frame)
    if not isinstance(content, (Motion, Skeleton)):
        options["edges"] = edges
    if frame is not None:
        content, clip = content[frame], False
    if path.suffix.lower() in _MOVING:
        film = render.turntable if turntable or not clip else render.movie
        return film(content, path, progress=progress, **options)
    if clip or isinstance(content, Shapes):
        if isinstance(content, Shapes) and frames is not None and frames < len(content):
            if np.ndim(options.get("values", 0)) == 2:
                options["values"] = options["values"][:frames]
            content = Shapes(content.base, content.points[:frames], content.names[:frames])
        return render.save(render.contact_sheet(content, frames=frames or 8, **options), path)
    return render.save(render.picture(content, **options), path)


def _coloured(content: Any, measure: str, frame: int | None) -> dict[str, Any]:
    """The values, (n,) or (frames, n), and the legend's label."""
    if isinstance(content, Animation):
        shape, points = content.shape, content.points
    elif isinstance(content, Shapes):
        shape, points = content.base, content.points
    elif isinstance(content, Mesh):
        shape, points = content, content.points[None]
    else:
        raise InputError(f"--measure colours a mesh; this is a {type(content).__name__}")
    if measure in MEASURES and isinstance(shape, Mesh):
        values = _measured(shape, points, measure)
        values = values if frame is None else values[frame]
        limits, label = color_limits(values, measure)
        shown = values[0] if isinstance(content, Mesh) else values
        return {"values": shown, "limits": limits, "label": label}
    named = {**shape.attributes, **getattr(shape, "vertex_groups", {})}
    scalar = {name: values for name, values in named.items() if values.ndim == 1}
    if measure not in scalar:
        known = ", ".join([*MEASURES, *sorted(scalar)])
        raise InputError(f'there is nothing called "{measure}" to colour by; there are {known}')
    return {"values": scalar[measure], "label": measure}


def color_limits(values: Floats, measure: str) -> tuple[tuple[float, float] | None, str]:
    """Limits that show what most of the surface does, even if a few triangles stretch tenfold; said on the label."""
    if measure == "displacement":
        return None, MEASURES[measure]
    away = np.abs(values[np.isfinite(values)] - 1)
    most = float(np.quantile(away, 0.98)) if away.size else 0.0
    spread = min(max(0.05, float(np.ceil(20 * most) / 20)), 1.0)
    cut = ", cut at the ends" if away.size and away.max() > spread else ""
    return (1 - spread, 1 + spread), MEASURES[measure] + cut


def _measured(mesh: Mesh, points: Floats, measure: str) -> Floats:
    """(frames, n) of a measure against the mesh's own points; elements are averaged at their vertices."""
    if measure == "displacement":
        return np.linalg.norm(points - points[0], axis=2) / mesh.diagonal
    if measure == "edge":
        return at_vertices(quality.edge_distortion(mesh, points), mesh.edges, len(mesh.points))
    return at_vertices(quality.area_distortion(mesh, points), mesh.triangles, len(mesh.points))


def at_vertices(values: Floats, elements: Ints, count: int) -> Floats:
    """Element values (frames, m) averaged over the elements (m, k) at each vertex: (frames, count), 1 where none."""
    width = elements.shape[1]
    weight = np.bincount(elements.ravel(), minlength=count)
    total = [np.bincount(elements.ravel(), np.repeat(row, width), minlength=count) for row in values]
    return np.where(weight > 0, np.stack(total) / np.maximum(weight, 1), 1.0)
