"""Moving shapes: named poses of one mesh, animations, and solved poses.

`Shapes` and `Animation` share one shape and hold only its moving points; a frame or a pose of them is that shape again,
with other points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from pliant.core.errors import InputError
from pliant.core.interop import MESH_FORMS, as_shape
from pliant.core.shapes import Mesh, PointCloud, Shape, TetMesh
from pliant.core.topology import Floats, Ints
from pliant.core.validation import expect, frame_rate, name_list
from pliant.core.values import Displayed, Value, locked, owned, owned_table

MOST_FRAMES = 100_000
"""Of a clip to make or to sample: about an hour; more is taken for a typing error."""
MOST_COORDINATES = 2**30
"""The longest clip that resampling makes: 8 GiB of coordinates."""


DEFAULT_FPS = 30.0
"""Frames a second, where nothing says how many."""


@dataclass(frozen=True, eq=False)
class Shapes(Displayed, Value, Sequence[Mesh]):
    """Named poses of one mesh, the base first: a list of `Mesh` that share everything but their points."""

    base: Mesh
    points: Floats
    """(shapes, n, 3); the first is the base."""
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        expect(self.base, Mesh, "the base of shapes")
        object.__setattr__(self, "names", name_list(self.names, "names of shapes"))
        points = owned(self.points, "shapes", np.float64)
        if points.ndim != 3 or points.shape[1:] != self.base.points.shape or not len(points):
            raise InputError(f"shapes have shape {points.shape}; expected (shapes, {len(self.base.points)}, 3)")
        if len(self.names) != len(points):
            raise InputError(f"{len(self.names)} names for {len(points)} shapes")
        if not np.isfinite(points).all():
            k = int(np.argmin(np.isfinite(points).all(axis=(1, 2))))
            raise InputError(f'shape "{self.names[k]}" has NaN or infinite coordinates')
        if not np.array_equal(points[0], self.base.points):
            k = int(np.flatnonzero((points[0] != self.base.points).any(axis=1))[0])
            raise InputError(f'the first shape, "{self.names[0]}", is not the base: point {k} differs')
        object.__setattr__(self, "points", points)

    @classmethod
    def of(cls, meshes: Sequence[Mesh], names: Sequence[str] = ()) -> Shapes:
        """From meshes of one topology; a mesh that differs is named."""
        if isinstance(meshes, Shapes):
            return meshes
        if not isinstance(meshes, (list, tuple)):
            raise InputError(f"shapes are a {type(meshes).__name__}; expected a list of meshes, or Shapes")
        if not meshes:
            raise InputError("got no shapes; expected one or more meshes")
        meshes = [as_shape(mesh) for mesh in meshes]
        for k, mesh in enumerate(meshes):
            if not isinstance(mesh, Mesh):
                raise InputError(f"shape {k} is a {type(mesh).__name__}; expected a Mesh, {MESH_FORMS}")
        names = tuple(names) or tuple(f"shape {k}" for k in range(len(meshes)))
        if len(names) != len(meshes):
            raise InputError(f"{len(names)} names for {len(meshes)} shapes")
        for name, mesh in zip(names, meshes, strict=True):
            problem = topology_mismatch(meshes[0], mesh)
            if problem:
                raise InputError(f'"{name}" does not match "{names[0]}": {problem}')
        return cls(meshes[0], locked(np.stack([mesh.points for mesh in meshes])), names)

    def __repr__(self) -> str:
        return f"Shapes({len(self)} of {self.base!r}: {', '.join(self.names[:6])}{', ...' if len(self) > 6 else ''})"

    def __len__(self) -> int:
        return len(self.points)

    @overload
    def __getitem__(self, k: int) -> Mesh: ...
    @overload
    def __getitem__(self, k: slice) -> list[Mesh]: ...
    def __getitem__(self, k: int | slice) -> Mesh | list[Mesh]:
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        return self.base.with_points(self.points[k])

    def mixed(self, weights: ArrayLike, fps: float = DEFAULT_FPS) -> Animation:
        """Linear blending: each row of weights (frames, shapes) times the shapes; the base's weight counts as given."""
        table = np.asarray(weights, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != len(self):
            raise InputError(f"weights have shape {table.shape}; expected (frames, {len(self)})")
        return Animation(self.base, locked(np.einsum("fk,kni->fni", table, self.points)), fps, "linear blend")

    def named(self, name: str) -> Mesh:
        """The shape called `name`."""
        if name not in self.names:
            raise InputError(f'no shape is called "{name}"; there are {", ".join(self.names)}')
        return self[self.names.index(name)]


def topology_mismatch(base: Mesh, other: Mesh) -> str:
    """Why two meshes do not share one topology; empty if they do."""
    if len(base.points) != len(other.points):
        return f"{len(other.points)} vertices against {len(base.points)}"
    if len(base.polygons) != len(other.polygons):
        return f"{len(other.polygons)} faces against {len(base.polygons)}"
    if base.polygons is other.polygons:
        return ""
    if not np.array_equal(base.polygons.offsets, other.polygons.offsets):
        k = int(np.flatnonzero(base.polygons.sizes != other.polygons.sizes)[0])
        return f"face {k} has {other.polygons.sizes[k]} corners against {base.polygons.sizes[k]}"
    if not np.array_equal(base.polygons.corners, other.polygons.corners):
        slot = int(np.flatnonzero(base.polygons.corners != other.polygons.corners)[0])
        k = int(base.polygons.of_corner[slot])
        return f"face {k} joins vertices {other.polygons[k].tolist()} against {base.polygons[k].tolist()}"
    return ""


@dataclass(frozen=True, eq=False)
class Animation(Displayed, Value):
    """A shape whose points move. Every engine returns one; every writer takes one."""

    shape: Mesh | TetMesh | PointCloud
    points: Floats
    """(frames, n, 3)"""
    fps: float = DEFAULT_FPS
    """Frames a second."""
    name: str = "animation"

    def __post_init__(self) -> None:
        hint = ", as in Animation(mesh, points) with points (frames, n, 3)"
        object.__setattr__(self, "shape", as_shape(self.shape))
        expect(self.shape, (Mesh, TetMesh, PointCloud), "the shape of an animation", hint)
        points = owned(self.points, "animation points", np.float64)
        count = len(self.shape.points)
        if points.ndim != 3 or points.shape[1:] != (count, 3) or not len(points):
            raise InputError(f"animation points have shape {points.shape}; expected (frames, {count}, 3)")
        for k, frame in enumerate(points):  # a clip may be larger than memory
            if not np.isfinite(frame).all():
                raise InputError(f"frame {k} has NaN or infinite coordinates")
        object.__setattr__(self, "fps", frame_rate(self.fps))
        object.__setattr__(self, "points", points)

    def __repr__(self) -> str:
        return f"Animation({len(self)} frames of {self.shape!r} at {self.fps:g} fps)"

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, frame: int) -> Shape:
        return self.shape.with_points(self.points[frame])

    def __iter__(self) -> Iterator[Shape]:
        return (self[k] for k in range(len(self)))

    @property
    def duration(self) -> float:
        """Seconds from the first frame to the last."""
        return (len(self) - 1) / self.fps

    def resampled(self, fps: float) -> Animation:
        """The same motion at another frame rate, linearly interpolated."""
        fps = frame_rate(fps)
        size = (self.duration * fps + 1) * self.points[0].size
        if size > MOST_COORDINATES:
            raise InputError(
                f"{fps:g} fps would take {size * 8 / 2**30:.3g} GiB; expected at most 8, at a lower rate",
                argument="fps",
            )
        low, high, t = between_frames(frame_count(self.duration, fps), fps, len(self), self.fps)
        t = t[:, None, None]
        return replace(self, points=locked((1 - t) * self.points[low] + t * self.points[high]), fps=fps)


@dataclass(frozen=True, eq=False)
class WeightClip(Value):
    """Weights of named shapes over time: an artist's sliders, or those of a recording."""

    names: tuple[str, ...]
    values: Floats
    """(frames, names); 1 is a shape in full."""
    fps: float | None = None
    """Frames a second; None if the file does not say."""
    name: str = "weights"

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", name_list(self.names, "names of weights"))
        values = owned(self.values, "weights", np.float64)
        if values.ndim != 2 or values.shape[1] != len(self.names) or not len(values):
            raise InputError(f"weights have shape {values.shape}; expected (frames, {len(self.names)})")
        if not np.isfinite(values).all():
            frame, column = np.argwhere(~np.isfinite(values))[0]
            raise InputError(f'the weight of "{self.names[column]}" in frame {frame} is not a finite number')
        object.__setattr__(self, "values", values)
        if self.fps is not None:
            object.__setattr__(self, "fps", frame_rate(self.fps))

    def __repr__(self) -> str:
        rate = "" if self.fps is None else f" at {self.fps:g} fps"
        return f"WeightClip({len(self)} frames of {len(self.names)} weights{rate})"

    def __len__(self) -> int:
        return len(self.values)

    def resampled(self, fps: float) -> WeightClip:
        """The same motion at another frame rate, linearly interpolated; without a rate of its own, at the same rows."""
        fps = frame_rate(fps)
        if self.fps is None or self.fps == fps:
            return replace(self, fps=fps)
        low, high, t = between_frames(frame_count((len(self) - 1) / self.fps, fps), fps, len(self), self.fps)
        values = (1 - t)[:, None] * self.values[low] + t[:, None] * self.values[high]
        return replace(self, values=locked(values), fps=fps)


@dataclass(frozen=True, eq=False)
class Pose(Displayed):
    """One solved shape, and what the solver knows of it."""

    shape: Mesh | TetMesh | PointCloud
    residual: float
    """Largest remaining force over that of the plain start, such as linear blending."""
    iterations: int
    converged: bool
    penetration: float = 0.0
    """Deepest penetration into an obstacle, over the diagonal."""
    inverted: int = 0
    """Number of inverted elements."""
    message: str = ""
    """Why it did not converge."""
    contacts: int = 0
    """Points that an obstacle, or the shape itself, pushes."""
    reactions: Floats | None = None
    """(obstacles, 3) the force on each obstacle."""
    crossings: int = 0
    """With self-contact: pairs of its own faces that cross where none did in the first frame, or all had come free."""
    crushed: int = 0
    """How many more elements are inverted than without contact."""

    @property
    def points(self) -> Floats:
        """(n, 3)"""
        return self.shape.points


@dataclass(frozen=True, eq=False, repr=False)
class SolvedAnimation(Animation):
    """A clip of solved poses, and what the solver knows of each frame."""

    measures: Mapping[str, Floats] = field(default_factory=dict, repr=False)
    """{a number of `Pose`: (frames,)}"""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "measures", owned_table(self.measures, "measures"))
        for name, values in self.measures.items():
            if values.shape != (len(self),):
                raise InputError(f"measures[{name!r}] has shape {values.shape}; expected {(len(self),)}, one a frame")

    def measured(self, name: str) -> Floats:
        """(frames,) of a number of `Pose`: residual, iterations, converged, penetration, inverted or others."""
        if name not in self.measures:
            raise InputError(f"the clip has no measure {name!r:.60}; expected one of {', '.join(self.measures)}")
        return self.measures[name]

    def resampled(self, fps: float) -> Animation:
        """The same motion at another frame rate, linearly interpolated."""
        return Animation(self.shape, self.points, self.fps, self.name).resampled(fps)


POSE_MEASURES = ("residual", "iterations", "converged", "penetration", "inverted", "contacts", "crossings", "crushed")
"""Numbers of a `Pose`."""


def frame_count(duration: float, fps: float) -> int:
    """Frames from 0 to `duration` seconds, one at least."""
    return max(1, round(duration * fps) + 1)


def between_frames(frames: int, fps: float, old_frames: int, old_fps: float) -> tuple[Ints, Ints, Floats]:
    """For each new frame the old ones before and after it, and the weight (frames,) of the latter."""
    at = np.minimum(np.arange(frames) * old_fps / fps, old_frames - 1)
    low = np.minimum(at.astype(int), max(old_frames - 2, 0))
    return low, np.minimum(low + 1, old_frames - 1), at - low
