"""Pictures of the demo: clips beside each other, as films that repeat and frame by frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pliant import render
from pliant.core.clips import Animation
from pliant.core.progress import Progress
from pliant.core.shapes import Mesh, bounding_diagonal
from pliant.core.skeleton import Motion
from pliant.core.topology import Floats
from pliant.render import Extra
from pliant.render.camera import camera_axes

GAP = 1.1
"""From one shape to the next, over their width."""
FILM_SIZE, CELL_SIZE = (600, 330), (230, 200)
"""In pixels, as the page shows them."""
ViewAngles = tuple[float, float]


def write_pictures(
    folder: Path,
    name: str,
    clips: Mapping[str, Animation],
    view: ViewAngles,
    show: Progress,
    *,
    extras: Sequence[Extra] = (),
    back: bool = False,
) -> None:
    """Write a film of clips of one mesh beside each other, and a sheet of their frames below each other."""
    sheet = render.contact_sheet(clips, frames=5, size=CELL_SIZE, view=view, extra=extras)
    render.save(sheet, folder / f"{name}.png")
    film, beside = side_by_side(list(clips.values()), view, extras)
    left, right = clips
    write_film(folder, name, film, view, show, title=f"left: {left}; right: {right}", extra=beside, back=back)


def write_film(folder: Path, name: str, film: Animation, view: ViewAngles, show: Progress, **options: Any) -> None:
    """Write a film as the page shows it."""
    render.movie(
        film, folder / f"{name}.gif", size=FILM_SIZE, view=view,
        progress=lambda done, total: show(done, total, "drawing"), **options,
    )  # fmt: skip


def side_by_side(
    clips: Sequence[Animation], view: ViewAngles, extras: Sequence[Extra] = ()
) -> tuple[Animation, list[Extra]]:
    """Clips of one mesh as one clip, beside each other as seen from `view` (y up), each with its own extras."""
    mesh = clips[0].shape
    assert isinstance(mesh, Mesh)
    right = camera_axes(*view, "y")[0]
    things: list[Any] = [*clips, *(extra.shape for extra in extras)]
    across = np.concatenate([(thing.points @ right).ravel() for thing in things])
    shifts = GAP * float(np.ptp(across)) * np.arange(len(clips))[:, None] * right
    points = np.concatenate([clip.points + shift for clip, shift in zip(clips, shifts, strict=True)], axis=1)
    faces = [polygon + k * len(mesh.points) for k in range(len(clips)) for polygon in mesh.polygons]
    attributes = {name: np.concatenate([values] * len(clips)) for name, values in mesh.attributes.items()}
    beside = [replace(extra, shape=_shifted(extra.shape, shift)) for shift in shifts for extra in extras]
    return Animation(Mesh(points[0], faces, attributes=attributes), points, clips[0].fps), beside


def _shifted(thing: Any, shift: Floats) -> Any:
    """A mesh or a clip of one elsewhere."""
    if isinstance(thing, Animation):
        return replace(thing, points=thing.points + shift)
    return thing.with_points(thing.points + shift)


def as_large(source: Animation | Motion, clip: Animation) -> Animation | Motion:
    """What a clip's motion came from, as large as the clip's shape and on the same ground."""
    rest = source.shape.points if isinstance(source, Animation) else source.skeleton.rest_pose().world()[0]
    grown = _scaled(source, bounding_diagonal(clip.shape.points) / bounding_diagonal(rest))
    (low, high), (start, end) = ((p.min(axis=(0, 1)), p.max(axis=(0, 1))) for p in (_positions(grown), clip.points))
    shift = (start + end - low - high) / 2
    return _moved(grown, np.array([shift[0], start[1] - low[1], shift[2]]))


def beside(source: Animation | Motion, clip: Animation, view: ViewAngles) -> Extra:
    """What a clip's motion came from, to the left of it as seen from `view` (y up)."""
    grown = as_large(source, clip)
    right = camera_axes(*view, "y")[0]
    theirs, ours = _positions(grown) @ right, clip.points @ right
    return Extra(_moved(grown, (ours.min() - theirs.max() - (GAP - 1) * np.ptp(ours)) * right))


def _positions(thing: Animation | Motion) -> Floats:
    return thing.points if isinstance(thing, Animation) else thing.world()[0]


def _scaled(thing: Animation | Motion, size: float) -> Animation | Motion:
    if isinstance(thing, Animation):
        return replace(thing, points=thing.points * size)
    skeleton = thing.skeleton
    ends = {joint: size * end for joint, end in skeleton.ends.items()}
    return replace(
        thing,
        skeleton=replace(skeleton, offsets=skeleton.offsets * size, ends=ends),
        translations=thing.translations * size,
    )


def _moved(thing: Animation | Motion, shift: Floats) -> Animation | Motion:
    if isinstance(thing, Animation):
        return replace(thing, points=thing.points + shift)
    roots = (thing.skeleton.parents < 0)[:, None]
    return replace(thing, translations=thing.translations + np.where(roots, shift, 0.0))
