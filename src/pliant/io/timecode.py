"""When the rows of a table were recorded: from seconds, or from timecodes such as 14:02:59:07.5.

A timecode counts hours, minutes, seconds and frames, so its seconds depend on the number F of frames a second that it
counts in. F is the smallest usual rate above the largest count of frames; where a second ends, that is nearly reached.

    t = 3600 h + 60 m + s + f / F

The rate of the rows is that of their mean spacing without gaps; rows that are not evenly spaced are interpolated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from pliant.core.topology import Floats

RECORDING_RATES = (24.0, 25.0, 30.0, 48.0, 50.0, 60.0, 90.0, 100.0, 120.0, 240.0)
BROADCAST_RATES = (24000 / 1001, 30000 / 1001, 60000 / 1001)
SLOWEST, FASTEST = 5.0, 1000.0
"""Rows a second of what was recorded; others are keys at times of their own."""
LARGEST_OFFSET = 0.75
"""Frames that a row may be off its even place."""
DAY = 24 * 3600.0
TIMECODE = re.compile(r"(\d+):(\d+):(\d+(?:\.\d+)?)(?:[:;](\d+(?:\.\d*)?))?")


def seconds_of(cells: Sequence[str]) -> Floats | None:
    """(rows,) from timecodes or numbers, never decreasing; None if some are neither, or run backwards."""
    found = [TIMECODE.fullmatch(cell) for cell in cells]
    try:
        if all(found):
            times = _of_timecodes(np.array([[float(n or 0) for n in match.groups()] for match in found if match]))
        else:
            times = np.array([float(cell) for cell in cells])
    except ValueError:
        return None
    if times is None or not np.isfinite(times).all():
        return None
    times = times + DAY * np.concatenate([[0], np.cumsum(np.diff(times) < -DAY / 2)])  # past midnight
    return times if (np.diff(times) >= 0).all() else None


def _of_timecodes(parts: Floats) -> Floats | None:
    """(rows,) seconds of hours, minutes, seconds and frames (rows, 4); None if the rate of frames does not show."""
    whole, frames = parts[:, :3] @ [3600.0, 60.0, 1.0], parts[:, 3]
    if not frames.any():
        return np.asarray(whole)
    counted = next((rate for rate in RECORDING_RATES if rate > np.floor(frames.max())), None)
    return None if counted is None or not np.ptp(whole) else whole + frames / counted


def frame_rate_of(times: Floats) -> float | None:
    """Rows a second; None if the times are not those of a recording."""
    steps = np.diff(times)
    steps = steps[(steps > 0) & (steps < 1.5 * np.median(steps))] if len(steps) else steps
    if not len(steps) or not SLOWEST <= 1 / steps.mean() <= FASTEST:
        return None
    rate = float(1 / steps.mean())
    for known, tolerance in ((BROADCAST_RATES, 2e-4), (RECORDING_RATES, 0.01)):
        nearest = min(known, key=lambda one: abs(one / rate - 1))
        if abs(nearest / rate - 1) < tolerance:
            return nearest
    return round(rate, 3)


def evenly(times: Floats, values: Floats, fps: float) -> tuple[Floats, bool]:
    """(frames, columns) values of rows at even steps, and whether rows had to be interpolated for that."""
    at = (times - times[0]) * fps
    if np.abs(at - np.arange(len(at))).max() <= LARGEST_OFFSET:
        return values, False
    frames = np.arange(round(float(at[-1])) + 1)
    return np.stack([np.interp(frames, at, column) for column in values.T], axis=1), True
