"""What is seen of blended shapes, and what of it is saved.

The page's loop, the worker, the timeline and the frames solved ahead each have a thread of their own, and all look at
it. So a view never changes: another takes its place, whole, and whoever needs more than one thing of it reads it once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pliant.app.studio.panel import Document
from pliant.engines.blend.app.panel_keys import Keys, rows_of
from pliant.engines.blend.app.scene import BlendScene
from pliant.engines.blend.app.scene_inputs import default_frames


@dataclass(frozen=True, eq=False)
class View:
    """A clip, and where one stands in it."""

    said: Document = field(default_factory=dict)
    """The clip's keys "weights" and "frames" in the scene."""
    frames: int = 1
    """Of the clip."""
    keys: Keys | None = None
    """Of one's own; None: the clip goes through all shapes."""
    standing: int | None = 0
    """The frame of the timeline that is seen; None: the sliders were moved."""
    whole: bool = True
    """Whether the clip is saved and exported, and not the pose alone."""

    @classmethod
    def of(cls, scene: BlendScene, given: Document, *, posable: bool) -> View:
        """The view of a scene. posable: whether one frame is a pose and no clip."""
        said: Document = {key: given[key] for key in ("weights", "frames") if key in given}
        if scene.keys is None:
            return cls(said, len(scene))
        if len(scene) > 1 or not posable:
            rows = rows_of(scene.keys, scene.shapes.names)
            return cls(said, len(scene), Keys.spread(rows, len(scene)))
        return cls(frames=default_frames(len(scene.shapes)), standing=None, whole=False)

    @classmethod
    def on(cls, keys: Keys, frame: int) -> View:
        """At a frame of a clip of keys."""
        return cls(keys.said(), keys.frames, keys, frame)
