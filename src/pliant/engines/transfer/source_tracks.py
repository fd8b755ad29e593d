"""The sources of a transfer as named tracks, resampled to one frame rate and count.

A source is an `Animation` (its groups are tracks), a `Motion` (its joints are), tracks, or several of these by name. A
track is referred to by its name, or as "source/track" where two sources have one of that name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pliant.core.clips import Animation
from pliant.core.errors import InputError
from pliant.core.shapes import bounding_diagonal
from pliant.core.skeleton import Motion, bone_vector
from pliant.core.topology import Floats
from pliant.core.validation import closest_names, frame_rate
from pliant.core.values import locked
from pliant.engines.transfer.groups import VertexGroup, rigid_groups
from pliant.engines.transfer.options import TransferOptions
from pliant.engines.transfer.sources import Track, group_tracks, joint_tracks, reference_pose, rest_points

TrackTable = Mapping[str, Track] | Sequence[Track] | Track
MotionSource = Animation | Motion | TrackTable
Sources = MotionSource | Mapping[str, MotionSource]
Groups = int | Mapping[str, VertexGroup] | Sequence[VertexGroup]


@dataclass(frozen=True, eq=False)
class SourceTracks:
    """One source with its tracks, which are computed when they are needed."""

    name: str
    source: Animation | Motion | None
    """None if tracks were given."""
    rest: Floats
    """(n, 3) its points at rest: vertices, joints and bone ends, or the tracks' points."""
    make: Callable[[], dict[str, Track]]
    pose: Any = None
    """The rest shape or pose that was given."""

    @property
    def size(self) -> float:
        """Diagonal of its box at rest."""
        return bounding_diagonal(self.rest)

    @property
    def measured(self) -> Animation | Motion | None:
        """The source; a motion with the given pose for its skeleton's rest."""
        if not isinstance(self.source, Motion) or self.pose is None:
            return self.source
        pose = reference_pose(self.source, self.pose)
        bones = replace(self.source.skeleton, rest_rotations=pose.rotations, offsets=pose.translations)
        return replace(self.source, skeleton=bones)

    @cached_property
    def tracks(self) -> dict[str, Track]:
        """By name."""
        return self.make()


def read_sources(sources: Any, groups: Groups = TransferOptions.groups, rest: Any = None) -> tuple[SourceTracks, ...]:
    """Check the sources.

    groups: of a mesh sequence: the number of near-rigid groups to find, or the groups.
    rest: the shape or pose that an animation or motion is measured against, as in `group_tracks` and `joint_tracks`.
    """
    if isinstance(sources, (Animation, Motion, Track)) or not isinstance(sources, Mapping):
        return (_source_tracks("source", sources, groups, rest),)
    if not sources:
        raise InputError("there is no source; expected an Animation, a Motion, tracks, or several of these by name")
    if all(isinstance(value, Track) for value in sources.values()):
        return (_source_tracks("source", sources, groups, rest),)
    return tuple(_source_tracks(str(name), source, groups, rest) for name, source in sources.items())


def _source_tracks(name: str, source: Any, groups: Groups, rest: Any) -> SourceTracks:
    if isinstance(source, Animation):
        shape = rest_points(source, rest)
        return SourceTracks(name, source, shape, lambda: sequence_tracks(source, groups, rest), rest)
    if isinstance(source, Motion):
        return SourceTracks(name, source, skeleton_points(source, rest), lambda: joint_tracks(source, rest=rest), rest)
    tracks = _given_tracks(name, source)
    return SourceTracks(name, None, np.array([track.rest for track in tracks.values()]), lambda: tracks)


def _given_tracks(name: str, source: Any) -> dict[str, Track]:
    every = [source] if isinstance(source, Track) else source
    every = list(every.values()) if isinstance(every, Mapping) else every
    if not isinstance(every, (list, tuple)) or not every or not all(isinstance(track, Track) for track in every):
        raise InputError(f'source "{name}" is a {type(source).__name__}; expected an Animation, a Motion or tracks')
    if isinstance(source, Mapping):
        return dict(source)
    names = [track.name for track in every]
    if len(set(names)) < len(names):
        again = next(word for word in names if names.count(word) > 1)
        raise InputError(f'source "{name}" has two tracks called "{again}"; give them as a mapping from other names')
    return dict(zip(names, every, strict=True))


def sequence_tracks(clip: Animation, groups: Any, rest: Any) -> dict[str, Track]:
    """Tracks of a mesh sequence's groups: a number of them, found automatically, or those given."""
    start = rest_points(clip, rest)
    if isinstance(groups, (int, np.integer)) and not isinstance(groups, bool):
        groups = rigid_groups(clip, int(groups), rest=start)
    return group_tracks(clip, groups, rest=start)


def skeleton_points(motion: Motion, rest: Any) -> Floats:
    """(n, 3) joints and bone ends of a motion's rest."""
    joints = joint_tracks(motion, rest=rest)
    leaves = [name for j, name in enumerate(motion.skeleton.names) if np.any(bone_vector(motion.skeleton, j))]
    along = [joint_tracks(motion, leaves, rest=rest, along=t) for t in (0.5, 1.0) if leaves]
    return np.array([track.rest for tracks in (joints, *along) for track in tracks.values()])


@dataclass(frozen=True, eq=False)
class FollowedTrack:
    """A track that a control follows, and the size of its source."""

    name: str
    track: Track
    size: float
    """0 where it is not known."""


def followed_track(named_sources: tuple[SourceTracks, ...], wanted: Any, what: str) -> FollowedTrack:
    """The track that a control names."""
    if isinstance(wanted, Track):
        homes = [entry for entry in named_sources if any(track is wanted for track in entry.tracks.values())]
        homes = homes or [entry for entry in named_sources if wanted.name in entry.tracks]
        return FollowedTrack(wanted.name, wanted, homes[0].size if len(homes) == 1 else 0.0)
    if not isinstance(wanted, str):
        raise InputError(f"{what} follows {wanted!r:.40}; expected a track, or the name of one")
    found = [entry for entry in named_sources if wanted in entry.tracks]
    found = found or [entry for entry in named_sources if wanted.removeprefix(f"{entry.name}/") in entry.tracks]
    if len(found) > 1:
        choices = " or ".join(f'"{entry.name}/{wanted}"' for entry in found)
        raise InputError(f'{what} follows "{wanted}", which {len(found)} sources have; write {choices}')
    if not found:
        names = [name for entry in named_sources for name in entry.tracks]
        raise InputError(f'{what} follows "{wanted}", which no source has; {closest_names(wanted, names)}')
    key = wanted if wanted in found[0].tracks else wanted.removeprefix(f"{found[0].name}/")
    return FollowedTrack(wanted, found[0].tracks[key], found[0].size)


def synchronised(
    followed: Iterable[FollowedTrack], frames: int | ArrayLike | None, fps: float | None
) -> list[FollowedTrack]:
    """The same tracks at one frame rate, with the same number of frames.

    fps: each track is resampled to this rate, and cut to the shortest.
    frames: a number of frames over the whole of each track, which then takes as long as the first one, unless `fps` is
        given; or times in frames, such as ``range(0, 48, 4)``, at the present rate.
    """
    every = list(followed)
    if fps is not None:
        every = [replace(c, track=c.track.resampled(frame_rate(fps))) for c in every]
        if frames is None:
            shortest = min(len(c.track) for c in every)
            every = [replace(c, track=c.track.retimed(np.arange(shortest))) for c in every]
    if frames is not None:
        rate = every[0].track.fps
        if isinstance(frames, (int, np.integer)) and fps is None and frames > 1 and len(every[0].track) > 1:
            rate *= (int(frames) - 1) / (len(every[0].track) - 1)
        every = [replace(c, track=replace(c.track.retimed(frames), fps=rate)) for c in every]
    first = every[0]
    for other in every[1:]:
        if len(other.track) != len(first.track) or not np.isclose(other.track.fps, first.track.fps, rtol=1e-3):
            raise InputError(
                f'"{other.name}" has {len(other.track)} frames at {other.track.fps:g} fps, "{first.name}" '
                f"{len(first.track)} at {first.track.fps:g}; set fps to resample them, or frames to retime "
                "them, to one count",
                argument="frames",
            )
    return every


def shown_times(
    source: Animation | Motion | Track, frames: int | ArrayLike | None, fps: float | None
) -> tuple[Floats, float]:
    """(frames,) the times at which a source is shown, in its own frames, as `synchronised` has them; and the rate."""
    clock = np.arange(len(source), dtype=np.float64)[:, None] * [1.0, 0.0, 0.0]
    unturned = np.broadcast_to(np.eye(3), (len(source), 3, 3))
    ticking = Track("time", locked(np.zeros(3)), locked(clock), locked(unturned.copy()), source.fps)
    shown = synchronised([FollowedTrack("time", ticking, 0.0)], frames, fps)[0].track
    return shown.points[:, 0], shown.fps
