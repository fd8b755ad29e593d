"""Keys of sliders on a timeline, how a scene writes them, and the view of them that is seen and saved.

A scene's rows of weights are spread evenly over its frames. Keys are set at any frame, so rows are taken at the widest
even steps that meet all of them; between keys sliders move straight, so the frames are the same.

The page's loop, the worker and the timeline run in threads of their own, and all read the view. So a view never
changes: another replaces it, and whoever needs more than one field of it reads it once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import Any

import numpy as np

from pliant.app.studio.desk import Document
from pliant.core.topology import Floats
from pliant.engines.blend.app.scene import BlendScene
from pliant.engines.blend.app.scene_weights import default_frames

SliderRow = dict[str, float]
"""Sliders by the shapes' names; those that are not there are 0."""


@dataclass(frozen=True)
class Keys:
    """What the sliders are at some frames of a clip; before the first and after the last they stay."""

    frames: int
    at: tuple[float, ...]
    """In order, from 0 to frames - 1; whole numbers unless they were spread over a length that they do not fit."""
    rows: tuple[SliderRow, ...]

    @classmethod
    def spread(cls, rows: Sequence[SliderRow], frames: int) -> Keys:
        """Keys at even steps."""
        return cls(frames, tuple(float(at) for at in np.linspace(0, frames - 1, len(rows))), tuple(rows))

    def with_key(self, frame: int, row: Mapping[str, float]) -> Keys:
        """With another key, in place of one at the same frame."""
        kept = self._others(frame)
        joined = sorted([*kept, (float(frame), clean(row))], key=lambda key: key[0])
        return Keys(self.frames, tuple(at for at, _ in joined), tuple(row for _, row in joined))

    def without(self, frame: int) -> Keys | None:
        """Without the key at a frame; None if none is left."""
        kept = self._others(frame)
        return Keys(self.frames, tuple(at for at, _ in kept), tuple(row for _, row in kept)) if kept else None

    def with_constant(self, row: Mapping[str, float]) -> Keys:
        """With the sliders of a row that no key has, the same at all of them."""
        free = {name: value for name, value in row.items() if not any(name in known for known in self.rows)}
        return Keys(self.frames, self.at, tuple({**known, **free} for known in self.rows))

    def has(self, frame: int) -> bool:
        """Whether there is a key at a frame."""
        return len(self._others(frame)) < len(self.at)

    def lasting(self, frames: int) -> Keys:
        """The same keys over another number of frames, at the whole ones that are nearest to their share of it."""
        share = (frames - 1) / max(self.frames - 1, 1)
        keys = {float(round(at * share)): row for at, row in zip(self.at, self.rows, strict=True)}
        return Keys(frames, tuple(keys), tuple(keys.values()))

    def tables(self) -> dict[str, Any]:
        """The keys "weights" and "frames" of a scene."""
        if self.frames == 1 or len(self.at) == 1:
            rows = [self.rows[0]] if self.frames == 1 else [self.rows[0]] * 2
        elif np.array_equal(self.at, np.linspace(0, self.frames - 1, len(self.at))):
            rows = list(self.rows)
        else:
            rows = self._sampled()
        weights = [dict(row) for row in rows]
        return {"weights": weights} if len(rows) == self.frames else {"weights": weights, "frames": self.frames}

    def _sampled(self) -> list[SliderRow]:
        """Rows at the widest even steps that meet all keys."""
        whole = [round(at) for at in self.at]
        fits = np.allclose(self.at, whole, atol=1e-9)
        step = gcd(self.frames - 1, *whole) if fits else 1
        steps = np.arange(0, self.frames, step)
        names = sorted({name for row in self.rows for name in row})
        columns = {name: np.interp(steps, self.at, [row.get(name, 0.0) for row in self.rows]) for name in names}
        return [clean({name: column[k] for name, column in columns.items()}) for k in range(len(steps))]

    def _others(self, frame: int) -> list[tuple[float, SliderRow]]:
        keys = zip(self.at, self.rows, strict=True)
        return [(at, row) for at, row in keys if abs(at - frame) >= 0.5]


def clean(row: Mapping[str, float]) -> SliderRow:
    """Without the sliders that are 0."""
    return {name: float(value) for name, value in row.items() if value != 0}


def rows_of(table: Floats, names: Sequence[str]) -> list[SliderRow]:
    """Rows of weights (k, shapes) by name, without the base, which takes up what the others leave."""
    return [clean(dict(zip(names[1:], row[1:].tolist(), strict=True))) for row in table]


@dataclass(frozen=True, eq=False)
class ClipView:
    """A clip, and the frame of it that is seen."""

    tables: Document = field(default_factory=dict)
    """The clip's keys "weights", "clip" and "frames" in the scene."""
    frames: int = 1
    """Of the clip."""
    keys: Keys | None = None
    """Those that were set; None: the clip goes through all shapes."""
    frame: int | None = 0
    """The frame of the timeline that is seen; None: the sliders were moved."""
    whole: bool = True
    """Whether the clip is saved and exported, and not the pose alone."""

    @classmethod
    def of(cls, scene: BlendScene, given: Document, *, posable: bool) -> ClipView:
        """The view of a scene. posable: whether one frame is a pose and no clip."""
        tables: Document = {key: given[key] for key in ("weights", "clip", "frames") if key in given}
        if scene.keys is None:
            return cls(tables, len(scene))
        if len(scene) > 1 or not posable:
            rows = rows_of(scene.keys, scene.shapes.names)
            return cls(tables, len(scene), Keys.spread(rows, len(scene)))
        return cls(frames=default_frames(len(scene.shapes)), frame=None, whole=False)

    @classmethod
    def on(cls, keys: Keys, frame: int) -> ClipView:
        """At a frame of a clip of keys."""
        return cls(keys.tables(), keys.frames, keys, frame)
