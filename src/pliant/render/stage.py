"""The stage that all frames of a picture, sheet or film share: camera, ground, background."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image as Pillow

from pliant.core.errors import InputError
from pliant.core.topology import Floats
from pliant.render.camera import Camera, Frame, Up, View, angles_of, bounds_of, camera_axes, fit, up_vector
from pliant.render.color import LEGEND_HEIGHT, Color, Scale, draw_legend, linear_color, write_text
from pliant.render.engine import Ground, draw
from pliant.render.scene import Take

MARGIN = 0.05
"""Share of the picture that stays free on each side of the shapes."""


@dataclass(frozen=True, eq=False)
class RenderStage:
    """Camera, ground and background."""

    camera: Camera
    ground: Ground | None
    up: Floats
    background: Floats
    """(3,) linear light."""

    def shoot(self, take: Take, frame: int, title: str = "", scale: Scale | None = None) -> Pillow.Image:
        """One frame, with a title above and the legend of a scale below."""
        image = Pillow.fromarray(draw(take.parts(frame), self.camera, self.background, self.ground, self.up))
        if title:
            write_text(image, title, (12, 9), 16)
        if scale:
            draw_legend(image, scale, (0, image.height - LEGEND_HEIGHT - 4, image.width, image.height))
        return image

    def rotated(self, axes: Floats) -> RenderStage:
        """The same stage seen along other axes at the same distance."""
        return replace(self, camera=replace(self.camera, axes=axes))


def check_size(size: tuple[int, int]) -> tuple[int, int]:
    """Width and height in pixels."""
    pair = np.asarray(size)
    if pair.shape != (2,) or not np.issubdtype(pair.dtype, np.integer) or pair.min() < 16 or pair.max() > 16384:
        raise InputError(f"size is {size!r}; expected width and height in pixels, from 16 to 16384")
    return int(pair[0]), int(pair[1])


def stage_for(
    shots: Sequence[tuple[Take, int]],
    *,
    size: tuple[int, int],
    view: View,
    up: Up,
    ground: bool,
    background: Color,
    above: int = 0,
    below: int = 0,
    azimuths: Sequence[float] = (0.0,),
) -> RenderStage:
    """A stage that fits all shots (take and frame).

    above, below: rows of pixels kept free for text. azimuths: degrees added to the view's, either one for each shot, or
    several that all shots have to fit.
    """
    azimuth, elevation = angles_of(view)
    axes = [camera_axes(azimuth + offset, elevation, up) for offset in azimuths]
    centre, scale = bounds_of(take.extent(frame) for take, frame in shots)
    side = round(MARGIN * min(size))
    free = Frame(*size, side, min(side + above, size[1] // 3), side, min(side + below, size[1] // 3))
    if len(axes) == len(shots):
        pairs = ((take.extent(frame), axis) for (take, frame), axis in zip(shots, axes, strict=True))
    else:
        pairs = ((take.extent(frame), axis) for take, frame in shots for axis in axes)
    reach = max(take.reach for take, _ in shots)
    upward = up_vector(up)
    level = min(float((take.extent(frame) @ upward).min()) - take.reach for take, frame in shots)
    return RenderStage(
        fit(pairs, centre, scale, free, pad=max(0.02, reach / scale)),
        Ground(upward, level) if ground else None,
        upward,
        linear_color(background, "background"),
    )
