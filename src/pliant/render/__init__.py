"""Pictures of shapes and clips, drawn in software: no display, driver or system library is needed.

`picture` draws one shape, `contact_sheet` the frames of a clip (or several clips, one a row), `movie` and `turntable`
write GIF or MP4. All share one look: clay in soft light from the upper left, edges sharper than 50 degrees kept
sharp, folds darkened by ambient occlusion, the insides of open or inverted surfaces tinted blue, a shadow on the
ground. Nothing is smoothed: what looks crumpled is.

Views: azimuth rotates about the up axis, 0 looks from +z, or from -y where z is up; elevation 90 looks down.
``view="auto"`` is from the right and a little above; an open surface, such as a face, is shown from the side that it
faces at rest, the same in every frame and row. ``up`` is one of x, y, z, -x, -y, -z; ``"auto"`` is what the shape's
file says (its `world`), or else y, whatever the shape looks like. Units and position do not matter: the camera fits
what it is shown.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike
from PIL import Image as Pillow

from pliant.core.clips import Animation, Pose
from pliant.core.errors import InputError
from pliant.core.skeleton import Motion
from pliant.core.validation import expect, target_path
from pliant.io.output import staged
from pliant.io.source import PathLike
from pliant.render.camera import Up, View
from pliant.render.color import BACKGROUND, LEGEND_HEIGHT, Color, Colormap
from pliant.render.movie import movie, turntable
from pliant.render.parts import Drawable, Style
from pliant.render.scene import Extra, content_of, takes_of
from pliant.render.sheet import contact_sheet
from pliant.render.stage import check_size, stage_for


def picture(
    shape: Drawable | Pose,
    *,
    size: tuple[int, int] = (960, 720),
    view: View = "auto",
    up: Up = "auto",
    color: Color | None = None,
    values: ArrayLike | None = None,
    limits: tuple[float, float] | None = None,
    colormap: Colormap = "auto",
    label: str = "",
    title: str = "",
    edges: bool = False,
    ground: bool = True,
    background: Color = BACKGROUND,
    extra: Iterable[Any] = (),
) -> Pillow.Image:
    """One shape.

    values: (n,) a measure to colour by, with `limits` (else round numbers), `colormap` and `label` for its legend.
    edges: draw the polygons' edges. extra: other shapes, or `Extra` to choose how they look.
    """
    content = content_of(shape)
    if isinstance(content, (Animation, Motion)):
        raise InputError(f"picture draws one frame; give clip[k], or use contact_sheet for a {type(content).__name__}")
    takes, scale = takes_of(
        [content],
        color=color,
        values=[values],
        limits=limits,
        colormap=colormap,
        label=label,
        edges=edges,
        extra=extra,
    )
    stage = stage_for(
        [(takes[0], 0)],
        size=check_size(size),
        view=takes[0].view(view, up),
        up=takes[0].upright(up),
        ground=ground,
        background=background,
        above=20 if title else 0,
        below=LEGEND_HEIGHT if scale else 0,
    )
    return stage.shoot(takes[0], 0, title, scale)


def save(image: Pillow.Image, path: PathLike) -> Path:
    """Write a picture by suffix (.png .jpg .webp ...), staged and renamed."""
    target = target_path(path)
    expect(image, Pillow.Image, "the picture")
    if target.suffix.lower() not in (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff"):
        raise InputError(f'{target}: cannot write a picture as "{target.suffix}"; expected .png, .jpg, .webp or .gif')
    stored = io.BytesIO()  # Pillow does not notice a full disk, Python does
    image.save(stored, format=Pillow.registered_extensions()[target.suffix.lower()])
    with staged(target) as staging:
        staging.write_bytes(stored.getvalue())
    return target


__all__ = [
    "Color",
    "Colormap",
    "Drawable",
    "Extra",
    "Style",
    "Up",
    "View",
    "contact_sheet",
    "movie",
    "picture",
    "save",
    "turntable",
]
