"""Pictures of shapes and clips, drawn in software: no display, driver or system library is needed.

`picture` draws one shape, `contact_sheet` the frames of a clip (or several clips, one a row), `movie` and `turntable`
write GIF or MP4. All share one look: clay in soft light from the upper left, edges sharper than 50 degrees kept
sharp, folds darkened by ambient occlusion, the insides of open or inverted surfaces tinted blue, a shadow on the ground.
Nothing is smoothed: what looks crumpled is.

Views: azimuth turns about the up axis, 0 looks from +z (y up) or from -y (z up); elevation 90 looks down. ``up="auto"``
means y, whatever the shape looks like.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image as Pillow

from pliant.errors import InputError
from pliant.io.output import staged
from pliant.render_camera import Camera, Frame, Up, View, angles_of, bounds_of, camera_axes, fit, up_vector
from pliant.render_color import (
    BACKGROUND,
    LEGEND_HEIGHT,
    Color,
    Colormap,
    Scale,
    draw_legend,
    linear_color,
    write_text,
)
from pliant.render_engine import Ground, draw
from pliant.render_parts import Drawable
from pliant.render_scene import Take, content_of, extras_of, takes_of
from pliant.shapes import Animation, Pose
from pliant.skeleton import Motion
from pliant.topology import Floats

MARGIN = 0.05
"""Share of the picture that stays free on each side of the shapes."""


@dataclass(frozen=True, eq=False)
class _Stage:
    """What all frames share: the set, not the actors."""

    camera: Camera
    ground: Ground | None
    up: Floats
    background: Floats

    def shoot(self, take: Take, frame: int) -> Pillow.Image:
        """One frame."""
        pixels = draw(take.parts(frame), self.camera, self.background, self.ground, self.up)
        return Pillow.fromarray(pixels)


def _check_size(size: tuple[int, int]) -> tuple[int, int]:
    pair = np.asarray(size)
    if pair.shape != (2,) or not np.issubdtype(pair.dtype, np.integer) or pair.min() < 16 or pair.max() > 16384:
        raise InputError(f"size is {size!r}; expected width and height in pixels, from 16 to 16384")
    return int(pair[0]), int(pair[1])


def _frame(size: tuple[int, int], *, top: int, bottom: int) -> Frame:
    """The free part of a picture with rows kept for a label above and a legend below."""
    side = round(MARGIN * min(size))
    return Frame(*size, side, min(side + top, size[1] // 4), side, min(side + bottom, size[1] // 4))


def _stage(
    shots: list[tuple[Take, int]], size: tuple[int, int], view: View, up: Up, ground: bool, background: Color, bars: Any
) -> _Stage:
    """A camera and a ground that fit all shots."""
    axes = camera_axes(*angles_of(view), up)
    clouds = [take.extent(frame) for take, frame in shots]
    centre, scale = bounds_of(clouds)
    camera = fit(((cloud, axes) for cloud in clouds), centre, scale, _frame(size, **bars))
    upward = up_vector(up)
    level = min(float((cloud @ upward).min()) for cloud in clouds)
    return _Stage(camera, Ground(upward, level) if ground else None, upward, linear_color(background, "background"))


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
        extras=[extras_of(extra)],
    )
    size = _check_size(size)
    bars = {"top": 20 if title else 0, "bottom": LEGEND_HEIGHT if scale else 0}
    stage = _stage([(takes[0], 0)], size, view, up, ground, background, bars)
    return _annotated(stage.shoot(takes[0], 0), scale, title)


def _annotated(image: Pillow.Image, scale: Scale | None, title: str) -> Pillow.Image:
    """The picture with its title and legend."""
    if title:
        write_text(image, title, (12, 9), 16)
    if scale:
        draw_legend(image, scale, (0, image.height - LEGEND_HEIGHT - 4, image.width, image.height))
    return image


def save(image: Pillow.Image, path: str | Path) -> Path:
    """Write a picture by suffix (.png .jpg .webp ...), beside its place first."""
    target = Path(path)
    if target.suffix.lower() not in Pillow.registered_extensions():
        raise InputError(f'cannot write a picture as "{target.suffix}"; expected .png, .jpg, .webp or .gif')
    with staged(target) as place:
        image.save(place)
    return target
