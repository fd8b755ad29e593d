"""Alembic, .abc in Ogawa containers: meshes and points over time, as films and games exchange them.

All meshes that a viewer would draw become one `Mesh`, in world space: transforms applied, hidden objects left out, a
subdivision surface as its control mesh. What moves (points, transforms) becomes an `Animation`, at the rate of the
file's samples. Face sets become the labels "material". Alembic says nothing of axes and units: by custom, files are y
up. Coordinates have single precision.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from pliant.core.clips import MOST_FRAMES, Animation
from pliant.core.errors import PliantWarning
from pliant.core.shapes import Mesh, PointCloud
from pliant.core.topology import Floats
from pliant.core.validation import frame_rate
from pliant.core.values import stack_frames
from pliant.io.alembic.archive import AbcObject, Archive, Property
from pliant.io.alembic.read import PlacedPart, material_labels, placed_parts
from pliant.io.alembic.write import (
    write_animation as write_animation,
    write_mesh as write_mesh,
    write_points as write_points,
)
from pliant.io.joining import joined_mesh, object_labels
from pliant.io.mdd import simplest_rate
from pliant.io.pc2 import only_clip
from pliant.io.source import LARGEST_UNPACKED, Source


def read_mesh(source: Source) -> Mesh:
    """All meshes as one, at the first sample."""
    parts = _drawn(source)
    if not len(parts[0].part.polygons):
        raise source.error("holds points and no mesh with faces")
    return _mesh(parts)


def read_points(source: Source) -> PointCloud:
    """All points as one cloud; the meshes' vertices if there are none."""
    return _cloud(_drawn(source))


def read_animation(source: Source, *, clip: str | int | None = None, fps: float | None = None) -> Animation:
    """What moves, at the file's own rate or sampled at `fps`."""
    only_clip(source, clip)
    if fps is not None:
        frame_rate(fps)
    parts = _drawn(source)
    moving = [value for one in parts for value in one.moving]
    if not moving:
        raise source.error("holds nothing that moves; expected samples of points or transforms")
    times, rate = _frame_times(source, moving, fps)
    count = sum(len(one.part.points) for one in parts)
    if len(times) * count * 24 > LARGEST_UNPACKED:
        raise source.error(f"has {len(times)} frames of {count} points; that is more than {LARGEST_UNPACKED:,} bytes")
    shape = _mesh(parts) if len(parts[0].part.polygons) else _cloud(parts)
    points = stack_frames(np.concatenate([one.at(time) for one in parts]) for time in times.tolist())
    return Animation(shape, points, rate, source.stem)


def kinds(source: Source) -> tuple[str, ...]:
    """What the archive holds, the richest first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PliantWarning)
        parts = _drawn(source)
    moving = ("animation",) if any(True for one in parts for _ in one.moving) else ()
    return (*moving, "mesh", "points") if len(parts[0].part.polygons) else (*moving, "points")


def describe(source: Source) -> dict[str, Any]:
    """What the archive says of itself, and how many objects of each type it has."""
    archive = Archive(source)
    found: Counter[str] = Counter()

    def count(item: AbcObject) -> None:
        found[item.schema.removeprefix("AbcGeom_") or "other"] += 1
        for child in item.children:
            count(child)

    for child in archive.top.children:
        count(child)
    written = {name: archive.metadata[f"_ai_{name}"] for name in ("Application",) if f"_ai_{name}" in archive.metadata}
    return {**written, "objects": dict(sorted(found.items()))}


def _drawn(source: Source) -> list[PlacedPart]:
    parts = placed_parts(Archive(source))
    if not parts:
        raise source.error("holds no meshes or points that a viewer would draw")
    return parts


def _start(parts: list[PlacedPart]) -> float:
    """The time of the first sample of what moves."""
    return min((float(value.times[0]) for one in parts for value in one.moving), default=0.0)


def _mesh(parts: list[PlacedPart]) -> Mesh:
    start = _start(parts)
    pieces = [one.part for one in parts]
    labels = {**material_labels(parts)}
    if len(parts) > 1:
        names, paths = [one.source.name for one in parts], [one.source.path for one in parts]
        labels["object"] = object_labels(pieces, names, paths)
    mesh = joined_mesh(pieces, [one.transform(start) for one in parts], labels)
    return replace(mesh, world=parts[0].world)


def _cloud(parts: list[PlacedPart]) -> PointCloud:
    start = _start(parts)
    attributes: dict[str, Any] = dict(parts[0].part.attributes) if len(parts) == 1 else {}
    if len(parts) == 1 and parts[0].part.color is not None:
        attributes["color"] = parts[0].part.color
    return PointCloud(np.concatenate([one.at(start) for one in parts]), None, attributes, parts[0].world)


def _frame_times(source: Source, moving: list[Property], fps: float | None) -> tuple[Floats, float]:
    """The times of the frames in seconds, and how many are a second: as asked, or as most samples have it."""
    first, last = (float(pick(pick(value.times) for value in moving)) for pick in (min, max))
    finest = max(moving, key=lambda value: value.count)
    steps = np.diff(finest.times)
    if not len(steps) or not (steps > 0).all():
        raise source.error("has sample times that do not rise", location=finest.path)
    rate = fps or simplest_rate(1 / float(np.median(steps)))
    count = np.floor((last - first) * rate + 1e-3) + 1
    if not count <= MOST_FRAMES:
        raise source.error(f"runs from {first:g} to {last:g} s; that is more than {MOST_FRAMES:,} frames")
    return np.asarray(first + np.arange(int(count)) / rate), rate
