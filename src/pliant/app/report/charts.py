"""Curves over frames as inline SVG: no script, readable in light and dark (colours come from the page's style).

A value shows when the pointer rests on its point. Values that are not finite leave a gap.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from pliant.core.topology import Floats

WIDTH, HEIGHT = 400, 236
LEFT, RIGHT, TOP, BOTTOM = 54, 12, 26, 36


@dataclass(frozen=True, eq=False)
class Curve:
    """One value a frame."""

    name: str
    values: Floats
    """(frames,)"""
    role: Literal["ours", "theirs", "third", "fourth"] = "ours"
    """Which of the page's colours it has."""


@dataclass(frozen=True)
class _Axis:
    """From values to pixels."""

    low: float
    high: float
    begin: float
    """Pixel of `low`."""
    end: float
    """Pixel of `high`."""
    logarithmic: bool = False
    whole: bool = False
    """Whether it counts something, so that only whole numbers make sense."""

    def __call__(self, value: float) -> float:
        low, high = (math.log10(self.low), math.log10(self.high)) if self.logarithmic else (self.low, self.high)
        at = math.log10(max(value, self.low)) if self.logarithmic else value
        return self.begin + (self.end - self.begin) * (at - low) / (high - low)

    @property
    def ticks(self) -> list[float]:
        """Round values along it."""
        if not self.logarithmic:
            return [v for v in round_values(self.low, self.high) if not self.whole or abs(v - round(v)) < 1e-9]
        first, last = round(math.log10(self.low)), round(math.log10(self.high))
        return [10.0**e for e in range(first, last + 1, max(1, (last - first) // 5))]


def round_values(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` multiples of 1, 2 or 5 times a power of ten between two values."""
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def line_chart(
    curves: Sequence[Curve],
    *,
    format_value: Callable[[float], str] = lambda value: f"{value:.3g}",
    ideal: float | None = None,
    logarithmic: bool = False,
    whole: bool = False,
    flagged: Sequence[int] = (),
    axis: str = "",
    over: str = "frame",
) -> str:
    """An SVG of curves over frames.

    format_value: how a value is written. ideal: a line to compare with. whole: the values are counts. flagged: frames
    to mark, such as those that did not converge. axis: what the values are, written above their axis. over: what is
    counted along the other, where it is not frames.
    """
    frames = len(curves[0].values)
    x = _Axis(0, max(frames - 1, 1), LEFT, WIDTH - RIGHT)
    y = replace(_vertical(curves, 0.0 if whole else ideal, logarithmic), whole=whole)
    parts = [_grid(x, y, format_value, axis, over)]
    if ideal is not None:
        parts.append(f'<line class="ideal" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(ideal):.1f}" y2="{y(ideal):.1f}"/>')
    parts += [_flag(x(frame)) for frame in flagged]
    parts += [_line(curve, x, y) for curve in curves]
    parts += [_points(curve, x, y, format_value, over) for curve in curves]
    spoken = f'role="img" aria-label="{html.escape(axis)} over {over}s"'
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" {spoken}>{"".join(parts)}</svg>{_legend(curves)}'


def _vertical(curves: Sequence[Curve], ideal: float | None, logarithmic: bool) -> _Axis:
    """An axis that holds all values and the ideal, with some air."""
    values = np.concatenate([curve.values for curve in curves])
    values = values[np.isfinite(values) & ((values > 0) | (not logarithmic))]
    if logarithmic:
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.1, 1.0)
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        return _Axis(10.0**first, 10.0 ** max(last, first + 1), HEIGHT - BOTTOM, TOP, logarithmic=True)
    values = np.append(values, [] if ideal is None else [ideal])
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    air = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return _Axis(low - air if low != 0 else 0.0, high + air, HEIGHT - BOTTOM, TOP)


def _grid(x: _Axis, y: _Axis, format_value: Callable[[float], str], axis: str, over: str) -> str:
    parts = [f'<text x="0" y="12">{html.escape(axis)}</text>']
    for value in y.ticks:
        at = y(value)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(
            f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{html.escape(format_value(value))}</text>'
        )
    for value in round_values(x.low, x.high, 5):
        if value == round(value):
            parts.append(f'<text x="{x(value):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{value:.0f}</text>')
    parts.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 3}" text-anchor="end">{over}</text>')
    return "".join(parts)


def _flag(at: float) -> str:
    return f'<line class="flag" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'


def _line(curve: Curve, x: _Axis, y: _Axis) -> str:
    """The curve, broken where a value is missing."""
    path, drawing = [], False
    for frame, value in enumerate(curve.values):
        if math.isfinite(value):
            path.append(f"{'L' if drawing else 'M'}{x(frame):.1f} {y(float(value)):.1f}")
        drawing = math.isfinite(value)
    return f'<path class="{curve.role}" d="{"".join(path)}"/>'


def _points(curve: Curve, x: _Axis, y: _Axis, format_value: Callable[[float], str], over: str) -> str:
    seen = "dot" if len(curve.values) <= 60 else "hidden"
    return "".join(
        f'<circle class="{curve.role} {seen}" cx="{x(frame):.1f}" cy="{y(float(value)):.1f}" r="2.5">'
        f"<title>{html.escape(curve.name)}, {over} {frame}: {html.escape(format_value(float(value)))}</title></circle>"
        for frame, value in enumerate(curve.values)
        if math.isfinite(value)
    )


def _legend(curves: Sequence[Curve]) -> str:
    if len(curves) < 2:
        return ""
    keys = (f'<span class="key {curve.role}">{html.escape(curve.name)}</span>' for curve in curves)
    return f'<p class="legend">{"".join(keys)}</p>'
