"""The sources of a transfer, whatever they are, as named tracks that keep time with each other.

A source is an `Animation` (its groups are tracks), a `Motion` (its joints are), tracks, or several of these by name. A
track is called by its name, or as "source/track" where two sources have one of that name.
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
from pliant.engines.transfer.groups import Group, rigid_groups
from pliant.engines.transfer.options import TransferOptions
from pliant.engines.transfer.sources import Track, group_tracks, joint_tracks, rest_points

TrackTable = Mapping[str, Track] | Sequence[Track] | Track
Source = Animation | Motion | TrackTable
Sources = Source | Mapping[str, Source]
Groups = int | Mapping[str, Group] | Sequence[Group]


@dataclass(frozen=True, eq=False)
class Feed:
    """One source: what it is, and its tracks."""

    name: str
    source: Animation | Motion | None
    """None if tracks were given."""
    rest: Floats
    """(n, 3) its points at rest: vertices, joints and bone ends, or the tracks' places."""
    make: Callable[[], dict[str, Track]]
    pose: Any = None
    """The rest that was asked for."""

    @property
    def size(self) -> float:
        """Diagonal of its box at rest."""
        return bounding_diagonal(self.rest)

    @cached_property
    def tracks(self) -> dict[str, Track]:
        """By name."""
        return self.make()


def read_sources(sources: Any, groups: Groups = TransferOptions.groups, rest: Any = None) -> tuple[Feed, ...]:
    """Check the sources.

    groups: of a mesh sequence: how many near-rigid ones, or those given.
    rest: the shape or pose that an animation or motion is measured against, as in `group_tracks` and `joint_tracks`.
    """
    if isinstance(sources, (Animation, Motion, Track)) or not isinstance(sources, Mapping):
        return (_feed("source", sources, groups, rest),)
    if not sources:
        raise InputError("there is no source; expected an Animation, a Motion, tracks, or several of these by name")
    if all(isinstance(value, Track) for value in sources.values()):
        return (_feed("source", sources, groups, rest),)
    return tuple(_feed(str(name), source, groups, rest) for name, source in sources.items())


def _feed(name: str, source: Any, groups: Groups, rest: Any) -> Feed:
    if isinstance(source, Animation):
        shape = rest_points(source, rest)
        return Feed(name, source, shape, lambda: sequence_tracks(source, groups, rest), rest)
    if isinstance(source, Motion):
        return Feed(name, source, skeleton_points(source, rest), lambda: joint_tracks(source, rest=rest), rest)
    tracks = _given_tracks(name, source)
    return Feed(name, None, np.array([track.rest for track in tracks.values()]), lambda: tracks)


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
    """Of a mesh sequence's groups: so many, found automatically, or those given."""
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
class Cast:
    """A track that a control follows, and the size of the source that it is from."""

    name: str
    track: Track
    size: float
    """0 where it is not known."""


def cast(feeds: tuple[Feed, ...], wanted: Any, what: str) -> Cast:
    """The track that a control names."""
    if isinstance(wanted, Track):
        homes = [feed for feed in feeds if any(track is wanted for track in feed.tracks.values())]
        homes = homes or [feed for feed in feeds if wanted.name in feed.tracks]  # one that was made anew, by its name
        return Cast(wanted.name, wanted, homes[0].size if len(homes) == 1 else 0.0)
    if not isinstance(wanted, str):
        raise InputError(f"{what} follows {wanted!r:.40}; expected a track, or the name of one")
    found = [feed for feed in feeds if wanted in feed.tracks]
    found = found or [feed for feed in feeds if wanted.removeprefix(f"{feed.name}/") in feed.tracks]
    if len(found) > 1:
        words = " or ".join(f'"{feed.name}/{wanted}"' for feed in found)
        raise InputError(f'{what} follows "{wanted}", which {len(found)} sources have; say {words}')
    if not found:
        names = [name for feed in feeds for name in feed.tracks]
        raise InputError(f'{what} follows "{wanted}", which no source has; {closest_names(wanted, names)}')
    key = wanted if wanted in found[0].tracks else wanted.removeprefix(f"{found[0].name}/")
    return Cast(wanted, found[0].tracks[key], found[0].size)


def in_time(casts: Iterable[Cast], frames: int | ArrayLike | None, fps: float | None) -> list[Cast]:
    """The same tracks, at one rate and with as many frames.

    fps: each is resampled at its own pace, and the clip ends with the first that does.
    frames: so many over the whole of each track, in the time that the first one takes, unless `fps` says otherwise; or
        times in frames, such as ``range(0, 48, 4)``, at the rate there is.
    """
    every = list(casts)
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
