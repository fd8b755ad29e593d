"""What is seen of blended shapes, and what of it is saved.

The page's loop, the worker and the timeline run in threads of their own, and all read it. So a view never changes:
another replaces it, and whoever needs more than one field of it reads it once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pliant.app.studio.desk import Document
from pliant.engines.blend.app.panel_keys import Keys, rows_of
from pliant.engines.blend.app.scene import BlendScene
from pliant.engines.blend.app.scene_inputs import default_frames


@dataclass(frozen=True, eq=False)
class View:
    """A clip, and the frame of it that is seen."""

    tables: Document = field(default_factory=dict)
    """The clip's keys "weights" and "frames" in the scene."""
    frames: int = 1
    """Of the clip."""
    keys: Keys | None = None
    """Those that were set; None: the clip goes through all shapes."""
    frame: int | None = 0
    """The frame of the timeline that is seen; None: the sliders were moved."""
    whole: bool = True
    """Whether the clip is saved and exported, and not the pose alone."""

    @classmethod
    def of(cls, scene: BlendScene, given: Document, *, posable: bool) -> View:
        """The view of a scene. posable: whether one frame is a pose and no clip."""
        tables: Document = {key: given[key] for key in ("weights", "frames") if key in given}
        if scene.keys is None:
            return cls(tables, len(scene))
        if len(scene) > 1 or not posable:
            rows = rows_of(scene.keys, scene.shapes.names)
            return cls(tables, len(scene), Keys.spread(rows, len(scene)))
        return cls(frames=default_frames(len(scene.shapes)), frame=None, whole=False)

    @classmethod
    def on(cls, keys: Keys, frame: int) -> View:
        """At a frame of a clip of keys."""
        return cls(keys.tables(), keys.frames, keys, frame)
