"""What results of every engine say in the same words: times, differences, and which frames failed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol


def times_summary(setup: float, solving: float, a_frame: float) -> dict[str, str]:
    """What took how many seconds, in words, as far as it is known."""
    times = {"set-up": (setup, f"{setup:.2f} s"), "solving": (solving, f"{solving:.2f} s, {a_frame:.3f} s a frame")}
    return {what: text for what, (seconds, text) in times.items() if not math.isnan(seconds)}


def known(value: float) -> float | None:
    """None for NaN and infinity, which JSON does not have."""
    return float(value) if math.isfinite(value) else None


class SolvedFrame(Protocol):
    """What a solver says of a frame."""

    @property
    def converged(self) -> bool:
        """Whether it got there."""
        ...

    @property
    def message(self) -> str:
        """Why not."""
        ...


def failure_of(frames: Sequence[SolvedFrame]) -> str:
    """Which frames did not converge, and why, in one line; empty if all did."""
    failed = [k for k, frame in enumerate(frames) if not frame.converged]
    if not failed:
        return ""
    shown = ", ".join(map(str, failed[:8])) + (", ..." if len(failed) > 8 else "")
    why = frames[failed[0]].message or "no reason given"
    which = "frame" if len(failed) == 1 else "frames"
    return f"{len(failed)} of {len(frames)} frames did not converge ({which} {shown}: {why})"


def percent(value: float) -> str:
    """A difference; what is below a thousandth of a percent counts as none."""
    return f"{100 * value:.3g} %" if value >= 1e-5 else "0 %"
