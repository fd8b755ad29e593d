"""The content of pictures over time: a shape or clip with its colours, and extra objects.

A `Take` gives the parts of any of its frames, and the points a camera has to show in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pliant.core import rotations
from pliant.core.clips import Animation, Pose
from pliant.core.errors import InputError
from pliant.core.interop import takes_meshes
from pliant.core.shapes import Mesh, PointCloud, TetMesh
from pliant.core.skeleton import Motion, Skeleton, SkeletonPose
from pliant.core.topology import Floats
from pliant.geometry.body_plan.moving import upright_axis
from pliant.render.camera import Up, View, front_of, view_of
from pliant.render.color import PROPS, Color, Colormap, Scale, parse_color, scale_for
from pliant.render.parts import Drawable, Paint, RenderPart, Style, part_of

STATIC_TYPES = (Mesh, TetMesh, PointCloud, Skeleton, SkeletonPose)
Renderable = Drawable | Animation | Motion


@dataclass(frozen=True, eq=False)
class Extra:
    """Something beside the main shape: an obstacle, a cage, a skeleton."""

    shape: Renderable | Pose
    """A clip plays along frame by frame; its last frame stays."""
    color: Color | None = None
    style: Style | None = None
    """One of "solid", "wire" (edges only) or "xray" (shines through); skeletons shine through by default."""
    edges: bool = False
    fit: bool = True
    """Whether the camera has to show it; turn off for floors and walls."""


@dataclass(frozen=True, eq=False)
class Take:
    """Content with its paint and measure, and what is beside it."""

    content: Renderable
    paint: Paint
    values: Floats | None = None
    """(n,) or (frames, n) the measure to colour by."""
    beside: tuple[Take, ...] = ()
    fit: bool = True
    """Whether the camera has to show it."""

    def __len__(self) -> int:
        return len(self.content) if isinstance(self.content, (Animation, Motion)) else 1

    def upright(self, up: Up) -> Up:
        """The axis that points up: "auto" as the content's file has it, if it says, or as legs stand of a skeleton."""
        shape = self.content.shape if isinstance(self.content, Animation) else self.content
        if up != "auto":
            return up
        if isinstance(shape, (Skeleton, SkeletonPose, Motion)):
            return upright_axis(Motion.of(shape))
        return shape.world.up if shape.world is not None else up

    def view(self, view: View, up: Up) -> View:
        """ "auto" as the default view of the content, which shows the front of an open surface at rest."""
        if view != "auto":
            return view
        shape = self.content.shape if isinstance(self.content, Animation) else self.content
        return view_of(front_of(shape.points, shape.triangles) if isinstance(shape, Mesh) else None, self.upright(up))

    def shape_at(self, frame: int) -> Drawable:
        """What one frame shows; the last frame stays."""
        if isinstance(self.content, (Animation, Motion)):
            return self.content[min(frame, len(self) - 1)]
        return self.content

    def parts(self, frame: int) -> list[RenderPart]:
        """All parts of one frame, the content's own first."""
        values = self.values if self.values is None or self.values.ndim == 1 else self.values[frame]
        own = part_of(self.shape_at(frame), replace(self.paint, values=values))
        return [own, *(part for take in self.beside for part in take.parts(frame))]

    def extent(self, frame: int) -> Floats:
        """(k, 3) the points that a camera has to show in one frame."""
        if isinstance(self.content, Animation):
            own = self.content.points[min(frame, len(self) - 1)][self._used]
        elif isinstance(self.content, Motion):
            own = self._joints[min(frame, len(self) - 1)]
        elif isinstance(self.content, (Mesh, TetMesh, PointCloud)):
            own = self.content.points[self._used]
        else:
            own = part_of(self.shape_at(frame), self.paint).extent
        return np.concatenate([own, *(take.extent(frame) for take in self.beside if take.fit)])

    @cached_property
    def reach(self) -> float:
        """How far balls reach beyond the points of `extent`: the largest radius in the first frame."""
        shape = self.content.shape if isinstance(self.content, Animation) else self.content
        balls = not isinstance(shape, Mesh) or not len(shape.triangles)
        radii = part_of(self.shape_at(0), self.paint).radii if balls else np.zeros(0)
        return max([float(radii.max(initial=0.0)), *(take.reach for take in self.beside if take.fit)])

    @cached_property
    def _joints(self) -> Floats:
        """(frames, k, 3) joints and bone ends of a motion: quicker than building the bones of every frame."""
        assert isinstance(self.content, Motion)
        positions, quaternions = self.content.world()
        ends = [
            positions[:, j] + rotations.rotate(quaternions[:, j], end) for j, end in self.content.skeleton.ends.items()
        ]
        return np.concatenate([positions, *(end[:, None] for end in ends)], axis=1)

    @cached_property
    def _used(self) -> Any:
        """Which points are drawn: those of faces, or all where there are none."""
        shape = self.content.shape if isinstance(self.content, Animation) else self.content
        if isinstance(shape, (Mesh, TetMesh)):
            corners = shape.triangles if isinstance(shape, Mesh) else shape.tets
            if len(corners):
                used = np.zeros(len(shape.points), dtype=bool)
                used[corners] = True
                return used
        return slice(None)


@takes_meshes("thing")
def content_of(thing: Any) -> Renderable:
    """What to draw for a shape, a pose or a clip; anything else is refused by name."""
    thing = thing.shape if isinstance(thing, Pose) else thing
    if isinstance(thing, (*STATIC_TYPES, Animation, Motion)):
        if isinstance(thing, (Mesh, TetMesh, PointCloud)) and not len(thing.points):
            raise InputError(f"cannot draw a {type(thing).__name__} without points")
        if isinstance(thing, Motion) and not len(thing):
            raise InputError("cannot draw a motion without frames")
        if isinstance(thing, Animation) and not len(thing.shape.points):
            raise InputError("cannot draw an animation without points")
        return thing
    expected = ", ".join(kind.__name__ for kind in (*STATIC_TYPES, Animation, Motion))
    raise InputError(f"cannot draw a {type(thing).__name__}; expected one of {expected}")


def extras_of(things: Iterable[Any]) -> tuple[Extra, ...]:
    """Extras as they are, and other shapes as extras with default looks."""
    if isinstance(things, (*STATIC_TYPES, Animation, Motion, Pose, Extra)):
        things = [things]
    extras = tuple(thing if isinstance(thing, Extra) else Extra(thing) for thing in things)
    for extra in extras:
        content_of(extra.shape)
        if extra.style not in (None, "solid", "wire", "xray"):
            raise InputError(f'style of an extra is "{extra.style}"; expected "solid", "wire" or "xray"')
        if extra.color is not None:
            parse_color(extra.color)
    return extras


def take_beside(extra: Extra, position: int) -> Take:
    """The take that draws an extra; without a colour of its own it gets one by position."""
    content = content_of(extra.shape)
    default: Style = "xray" if isinstance(content, (Skeleton, SkeletonPose, Motion)) else "solid"
    fallback = PROPS[position % len(PROPS)]
    paint = Paint(color=extra.color, edges=extra.edges, style=extra.style or default, fallback=fallback)
    return Take(content, paint, fit=extra.fit)


def check_values(content: Renderable, values: ArrayLike | None) -> Floats | None:
    """Values (n,) or (frames, n) as floats, or an error that says what was expected."""
    if values is None:
        return None
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"values are not numbers ({error}); expected one for each vertex") from error
    shape = content.shape if isinstance(content, Animation) else content
    if not isinstance(shape, (Mesh, TetMesh, PointCloud)):
        raise InputError(f"values colour meshes and clouds; a {type(content).__name__} has no vertices for them")
    count = len(shape.points)
    frames = len(content) if isinstance(content, Animation) else 1
    if array.shape not in ((count,), (frames, count)):
        raise InputError(f"values have shape {array.shape}; expected ({count},) or ({frames}, {count})")
    return array


def takes_of(
    contents: Sequence[Renderable],
    values: Sequence[ArrayLike | None],
    *,
    color: Color | None,
    limits: tuple[float, float] | None,
    colormap: Colormap,
    label: str,
    edges: bool,
    extra: Iterable[Any],
) -> tuple[list[Take], Scale | None]:
    """One take for each content, all on one colour scale."""
    if color is not None:
        parse_color(color)
    beside = tuple(take_beside(thing, k) for k, thing in enumerate(extras_of(extra)))
    measures = [check_values(content, array) for content, array in zip(contents, values, strict=True)]
    known = [array.ravel() for array in measures if array is not None]
    scale = scale_for(np.concatenate(known), limits, colormap, label) if known else None
    paint = Paint(color=color, scale=scale, edges=edges)
    takes = [Take(content, paint, array, beside) for content, array in zip(contents, measures, strict=True)]
    return takes, scale
