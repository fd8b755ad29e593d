"""One picture of a shape, and how pictures are written."""

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
from pliant.render.parts import Drawable
from pliant.render.scene import content_of, takes_of
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
        [content], [values], color=color, limits=limits, colormap=colormap, label=label, edges=edges, extra=extra
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
