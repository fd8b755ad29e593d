"""PC2 point caches (3ds Max, Maya, Blender): the points of every sample, without the faces.

Little-endian, a header of 32 bytes and then ``samples × points × 3`` float32 coordinates:

    char[12]  "POINTCACHE2" and a zero
    int32     version, 1
    int32     number of points
    float32   start frame
    float32   sample rate: frames from one sample to the next (0.5 is two samples a frame)
    int32     number of samples

The file has no frame rate: a frame lasts 1/30 s unless the reader is given a rate. Coordinates have single precision.
"""

from __future__ import annotations

import struct
import warnings
from pathlib import Path

import numpy as np

from pliant.core.clips import DEFAULT_FPS, Animation
from pliant.core.errors import InputError, PliantWarning
from pliant.core.shapes import PointCloud
from pliant.core.topology import Floats
from pliant.core.validation import frame_rate, not_finite
from pliant.core.values import stack_frames
from pliant.io.source import Source

PC2_MAGIC = b"POINTCACHE2\0"
PC2_HEADER = struct.Struct("<12siiffi")


def read_animation(source: Source, *, clip: str | int | None = None, fps: float | None = None) -> Animation:
    """The samples as a moving point cloud. `fps` is what the cache's frames were made at."""
    only_clip(source, clip)
    data = source.view()
    if len(data) < PC2_HEADER.size:
        raise source.error(f"holds {len(data)} bytes; expected a PC2 header of {PC2_HEADER.size}")
    magic, version, points, _, rate, samples = PC2_HEADER.unpack_from(data)
    if magic.rstrip(b"\0") != PC2_MAGIC.rstrip(b"\0"):
        raise source.error('does not start with "POINTCACHE2"; expected a PC2 point cache', location="byte 0")
    if version != 1:
        raise source.error(f"is PC2 version {version}; expected version 1", location="byte 12")
    if not (np.isfinite(rate) and rate > 0):
        raise source.error(f"has sample rate {rate}; expected a positive number of frames", location="byte 24")
    frames = cached_frames(source, data, PC2_HEADER.size, frames=samples, points=points, kind="<f4")
    return Animation(PointCloud(frames[0]), frames, cache_rate(fps) / rate, source.stem)


def write_animation(path: Path, content: Animation) -> None:
    """Every frame as one sample, from frame 0. The frame rate is not stored: PC2 has no field for it."""
    with path.open("wb") as stream:
        stream.write(PC2_HEADER.pack(PC2_MAGIC, 1, len(content.shape.points), 0.0, 1.0, len(content)))
        stream.writelines(single_precision(points).astype("<f4").tobytes() for points in content.points)


def only_clip(source: Source, clip: str | int | None) -> None:
    """Refuse a clip other than the one a point cache holds."""
    if clip is not None and clip not in (0, source.stem):
        raise source.error(f'has no clip {clip!r}; a point cache holds one, "{source.stem}"', argument="clip")


def cache_rate(fps: float | None) -> float:
    """The given frame rate, checked, or the usual one."""
    return DEFAULT_FPS if fps is None else frame_rate(fps)


def cached_frames(source: Source, data: memoryview, start: int, *, frames: int, points: int, kind: str) -> Floats:
    """(frames, points, 3) coordinates that begin at byte `start`; what the header claims is checked first."""
    if frames < 1 or points < 1:
        raise source.error(
            f"claims {frames} frames of {points} points; expected one or more of each", location="header"
        )
    needed = frames * points * 12
    there = len(data) - start
    if there < needed:
        raise source.error(
            f"claims {frames} frames of {points} points, {needed:,} bytes; {max(there, 0):,} are there",
            location="header",
        )
    if there > needed:
        warnings.warn(
            f"{source.label}: {there - needed:,} bytes after the last frame are ignored", PliantWarning, stacklevel=2
        )
    stored = np.frombuffer(data, dtype=kind, count=frames * points * 3, offset=start).reshape(frames, points, 3)

    def checked(frame: int) -> Floats:
        table = stored[frame].astype(np.float64)
        found = not_finite(table, "point")
        if found is not None:
            raise source.error(found[1], location=f"frame {frame}")
        return table

    return stack_frames(checked(frame) for frame in range(frames))


def single_precision(points: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Coordinates as float32, refused where they do not fit."""
    with np.errstate(over="ignore"):
        single = points.astype(np.float32)
    if not np.isfinite(single).all():
        raise InputError(f"coordinates reach {np.abs(points).max():g}; the format holds single precision, up to 3.4e38")
    return single
