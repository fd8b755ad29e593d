"""MDD point caches (LightWave Motion Designer): the points of every frame and when each frame is shown.

Big-endian throughout:

    int32                      number of frames
    int32                      number of points
    frames × float32           time of each frame in seconds
    frames × points × 3 × float32   coordinates

Frames at uneven times are interpolated to even ones. Times that do not rise (some writers leave them at zero) say
nothing: such frames are taken as 1/30 s apart, or as `fps` says.
"""

from __future__ import annotations

import struct
import warnings
from pathlib import Path

import numpy as np

from pliant.core.clips import Animation
from pliant.core.errors import PliantWarning
from pliant.core.shapes import PointCloud
from pliant.core.topology import Floats
from pliant.io.pc2 import cache_rate, cached_frames, only_clip, single_precision
from pliant.io.source import Source

MDD_HEADER = struct.Struct(">ii")
MOST_FRAMES_INSERTED = 16
"""Uneven times may multiply the frames by this much; more means that the times are not to be trusted."""


def read_animation(source: Source, *, clip: str | int | None = None, fps: float | None = None) -> Animation:
    """The frames as a moving point cloud, at the file's own rate or sampled at `fps`."""
    only_clip(source, clip)
    data = source.view()
    if len(data) < MDD_HEADER.size:
        raise source.error(f"holds {len(data)} bytes; expected an MDD header of {MDD_HEADER.size}")
    count, points = MDD_HEADER.unpack_from(data)
    start = MDD_HEADER.size + 4 * max(count, 0)
    frames = cached_frames(source, data, start, frames=count, points=points, kind=">f4")
    times = np.frombuffer(data, dtype=">f4", count=count, offset=MDD_HEADER.size).astype(np.float64)
    if not np.isfinite(times).all():
        frame = int(np.argmin(np.isfinite(times)))
        raise source.error(f"has time {times[frame]}; expected seconds", location=f"frame {frame}")
    frames, rate = _evenly(source, frames, times, fps)
    moving = Animation(PointCloud(frames[0]), frames, rate, source.stem)
    return moving if fps is None or rate == fps else moving.resampled(cache_rate(fps))


def _evenly(source: Source, frames: Floats, times: Floats, fps: float | None) -> tuple[Floats, float]:
    """Frames at even times, and their rate."""
    steps = np.diff(times)
    if not len(steps) or not (steps > 0).all():
        if len(steps) and np.any(times):
            warnings.warn(f"{source.label}: its times do not rise and are ignored", PliantWarning, stacklevel=3)
        return frames, cache_rate(fps)
    span = times[-1] - times[0]
    rate = simplest_rate(len(steps) / span)
    precision = 4 * np.finfo(np.float32).eps * np.abs(times).max()
    if np.ptp(steps) <= max(precision, 1e-3 * steps.min()):
        return frames, rate
    rate = simplest_rate(1 / steps.min())
    count = round(span * rate) + 1
    if count > MOST_FRAMES_INSERTED * len(frames):
        raise source.error(f"has frames from {steps.min():g} to {steps.max():g} s apart; expected even times")
    warnings.warn(f"{source.label}: uneven times, interpolated to {rate:g} fps", PliantWarning, stacklevel=3)
    at = np.interp(np.linspace(times[0], times[-1], count), times, np.arange(len(times)))
    low = np.minimum(at.astype(np.int64), len(frames) - 2)
    t = (at - low)[:, None, None]
    return (1 - t) * frames[low] + t * frames[low + 1], rate


def simplest_rate(rate: float) -> float:
    """The rate behind one that single-precision times have blurred: 24, 12.5 or 24000/1001 rather than 23.99999."""
    if not 1e-3 < rate < 1e6:
        return rate
    likely = (round(rate * d) / d for d in (1, 2, 1001))
    return next((exact for exact in likely if abs(exact - rate) <= np.finfo(np.float32).eps * rate), rate)


def write_animation(path: Path, content: Animation) -> None:
    """Every frame with its time, from 0 s."""
    times = (np.arange(len(content)) / content.fps).astype(">f4")
    with path.open("wb") as stream:
        stream.write(MDD_HEADER.pack(len(content), len(content.shape.points)) + times.tobytes())
        stream.writelines(single_precision(points).astype(">f4").tobytes() for points in content.points)
