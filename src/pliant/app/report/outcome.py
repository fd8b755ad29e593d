"""What results of every engine have in common: times, differences, and which frames failed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any


def known(value: float) -> float | None:
    """None for NaN and infinity, which JSON does not have."""
    return float(value) if math.isfinite(value) else None


class EngineRun:
    """The base of what an engine gives: solved frames, and how long they took."""

    setup_seconds: float
    """Time of the set-up; NaN if unknown."""
    solve_seconds: float
    """Time of all frames; NaN if unknown."""
    settings: Mapping[str, str]
    """The scene's settings as text."""

    @property
    def solved(self) -> Sequence[Any]:
        """(frames,) what the solver says of each, with `converged`, and `message` if it did not."""
        raise NotImplementedError

    @cached_property
    def failed(self) -> list[int]:
        """The frames that did not converge, numbered from 0."""
        return [k for k, frame in enumerate(self.solved) if not frame.converged]

    @property
    def failure(self) -> str:
        """Why the result cannot be vouched for, in one line; empty if it can."""
        return self.unconverged

    @property
    def unconverged(self) -> str:
        """Which frames did not converge, and why, in one line; empty if all did."""
        if not self.failed:
            return ""
        shown = ", ".join(map(str, self.failed[:8])) + (", ..." if len(self.failed) > 8 else "")
        why = self.solved[self.failed[0]].message or "no reason given"
        which = "frame" if len(self.failed) == 1 else "frames"
        return f"{len(self.failed)} of {len(self.solved)} frames did not converge ({which} {shown}: {why})"

    @property
    def seconds_a_frame(self) -> float:
        """NaN where times are not known."""
        return self.solve_seconds / len(self.solved)

    def with_times(self, facts: Mapping[str, str]) -> dict[str, str]:
        """Facts of the set-up, the settings, and what took how many seconds, as far as each is known."""
        setup, solving = self.setup_seconds, self.solve_seconds
        rows = {**facts, **self.settings}
        rows |= {} if math.isnan(setup) else {"set-up": f"{setup:.2f} s"}
        rows |= {} if math.isnan(solving) else {"solving": f"{solving:.2f} s, {self.seconds_a_frame:.3f} s a frame"}
        return {name: value for name, value in rows.items() if value}

    def figures(self, fps: float) -> dict[str, Any]:
        """The part of ``to_dict`` that all have: settings, times, and which frames failed."""
        return {
            "settings": dict(self.settings),
            "fps": fps,
            "setup_seconds": known(self.setup_seconds),
            "solve_seconds": known(self.solve_seconds),
            "seconds_a_frame": known(self.seconds_a_frame),
            "converged": not self.failure,
            "not_converged": self.failed,
            "failure": self.failure or None,
        }


def percent(value: float) -> str:
    """A difference; what is below a thousandth of a percent counts as none."""
    return f"{100 * value:.3g} %" if value >= 1e-5 else "0 %"
