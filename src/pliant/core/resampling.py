"""Linear interpolation between the frames of a clip, for another frame rate."""

from __future__ import annotations

import numpy as np

from pliant.core.topology import Floats, Ints


def frame_count(duration: float, fps: float) -> int:
    """Frames from 0 to `duration` seconds, one at least."""
    return max(1, round(duration * fps) + 1)


def between_frames(frames: int, fps: float, old_frames: int, old_fps: float) -> tuple[Ints, Ints, Floats]:
    """For each new frame the old ones before and after it, and the weight (frames,) of the latter."""
    at = np.minimum(np.arange(frames) * old_fps / fps, old_frames - 1)
    low = np.minimum(at.astype(int), max(old_frames - 2, 0))
    return low, np.minimum(low + 1, old_frames - 1), at - low
