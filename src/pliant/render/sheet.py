"""Contact sheets: frames side by side, seen by one camera that fits them all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image as Pillow

from pliant.core.clips import Animation, Shapes
from pliant.core.errors import InputError
from pliant.core.signatures import takes_keywords_of
from pliant.core.skeleton import Motion
from pliant.render.color import LEGEND_HEIGHT, Color, draw_legend, parse_color, write_text
from pliant.render.pictures import picture
from pliant.render.scene import Renderable, Take, content_of, takes_of
from pliant.render.stage import RenderStage, check_size, stage_for

TITLE_HEIGHT = 26
CELL_TEXT = 13


@dataclass(frozen=True, eq=False)
class SheetRow:
    """One clip, shape or set of shapes of a sheet."""

    title: str
    content: Renderable
    names: tuple[str, ...] = ()
    """Names of the frames, where they have any; else they are numbered."""

    def chosen(self, frames: int) -> list[int]:
        """The frames to show: all that are named, or that many evenly from first to last."""
        count = len(self.content) if isinstance(self.content, (Animation, Motion)) else 1
        if self.names:
            return list(range(count))
        return [int(k) for k in np.unique(np.linspace(0, count - 1, min(frames, count)).round())]

    def name(self, frame: int) -> str:
        """What is written into a cell."""
        if self.names:
            return self.names[frame]
        return self.title if self.is_static else f"frame {frame}"

    @property
    def is_static(self) -> bool:
        """Whether there is one cell only, which carries the title."""
        return not isinstance(self.content, (Animation, Motion))


def row_of(thing: Any, title: str = "") -> SheetRow:
    """A row of a clip, of named shapes or of one shape."""
    if isinstance(thing, Shapes):
        if not len(thing):
            raise InputError("cannot draw an empty set of shapes")
        return SheetRow(title, Animation(thing.base, thing.points), thing.names)
    return SheetRow(title, content_of(thing))


def rows_of(things: Any) -> list[SheetRow]:
    """Rows of a mapping from titles, of (title, clip) pairs, of several things, or of one."""
    if isinstance(things, Mapping):
        rows = [row_of(thing, str(title)) for title, thing in things.items()]
    elif isinstance(things, Sequence) and not isinstance(things, Shapes):
        titled = all(isinstance(t, tuple) and len(t) == 2 and isinstance(t[0], str) for t in things)
        rows = [row_of(thing[1], thing[0]) if titled else row_of(thing) for thing in things]
    else:
        rows = [row_of(things)]
    if not rows:
        raise InputError("there is nothing to draw: got no clips or shapes")
    return rows


@takes_keywords_of(picture, filled=True)
def contact_sheet(
    clip_or_rows: Any,
    *,
    frames: int = 8,
    columns: int | None = None,
    size: tuple[int, int] = (360, 300),
    values: ArrayLike | Mapping[str, ArrayLike] | None = None,
    follow: bool = False,
    **look: Any,
) -> Pillow.Image:
    """A grid of frames, each labelled, seen by one camera that fits the whole of every clip.

    clip_or_rows: an `Animation` or `Motion` (`frames` of it, evenly from first to last), `Shapes` (all, by name), a
    shape, or several of these: a list, or a mapping from titles such as ``{"linear": clip, "pliant": clip}``. Clips
    start a new row each, shapes stand side by side. size: of one cell. values: (n,) or (frames, n), the same for every
    row, or a mapping from the rows' titles. follow: fit the camera to each cell alone. Further arguments are those of
    `picture`.
    """
    if frames < 1 or (columns is not None and columns < 1):
        raise InputError(f"got {frames} frames in {columns} columns; expected 1 or more")
    rows = rows_of(clip_or_rows)
    if isinstance(values, Mapping):
        unknown = sorted(set(values) - {row.title for row in rows})
        if unknown:
            known = ", ".join(row.title for row in rows)
            raise InputError(f'values name the row "{unknown[0]}"; there are {known}')
        measures: list[Any] = [values.get(row.title) for row in rows]
    else:
        measures = [values] * len(rows)
    title, view, up, ground, background = (look.pop(name) for name in ("title", "view", "up", "ground", "background"))
    takes, scale = takes_of([row.content for row in rows], measures, **look)
    camera: dict[str, Any] = {"size": check_size(size), "up": takes[0].upright(up), "ground": ground}
    camera |= {"view": takes[0].view(view, up), "background": background, "above": CELL_TEXT}
    shared = None if follow else stage_for([(take, k) for take in takes for k in range(len(take))], **camera)
    bands = [
        [_cell(take, k, row.name(k), shared or stage_for([(take, k)], **camera)) for k in row.chosen(frames)]
        for row, take in zip(rows, takes, strict=True)
    ]
    titles = [row.title for row in rows]
    if all(row.is_static for row in rows):
        bands, titles = [[cell for band in bands for cell in band]], [""]
    sheet = _paste(bands, titles, columns, title, background, LEGEND_HEIGHT if scale else 0)
    if scale:
        draw_legend(sheet, scale, (0, sheet.height - LEGEND_HEIGHT - 4, sheet.width, sheet.height))
    return sheet


def _cell(take: Take, frame: int, name: str, stage: RenderStage) -> Pillow.Image:
    image = stage.shoot(take, frame)
    write_text(image, name, (10, 7), CELL_TEXT)
    return image


def _paste(
    bands: list[list[Pillow.Image]], titles: list[str], columns: int | None, title: str, background: Color, below: int
) -> Pillow.Image:
    """All cells on one sheet; each band starts a new line, under its title."""
    width, height = bands[0][0].size
    widest = max(len(band) for band in bands)
    # A single clip makes a block about as wide as a screen; several make one line each, to be compared.
    across = columns or (widest if len(bands) > 1 else math.ceil(widest / math.ceil(widest / 4)))
    lines = sum(math.ceil(len(band) / across) for band in bands)
    top = TITLE_HEIGHT if title else 0
    total = top + lines * height + TITLE_HEIGHT * sum(bool(name) for name in titles) + below
    red, green, blue = (round(255 * float(c)) for c in parse_color(background))
    sheet = Pillow.new("RGB", (min(across, widest) * width, total), (red, green, blue))
    write_text(sheet, title, (10, 6), 17)
    for band, name in zip(bands, titles, strict=True):
        if name:
            write_text(sheet, name, (10, top + 6), 15)
            top += TITLE_HEIGHT
        for k, cell in enumerate(band):
            sheet.paste(cell, (k % across * width, top + k // across * height))
        top += math.ceil(len(band) / across) * height
    return sheet
