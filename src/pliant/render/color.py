"""Colours: names and numbers to linear light, measures to colours, and the legend that explains them.

Measures of one sign use viridis (a polynomial of degree 6 per channel) without its darkest eighth, in which shading
would be lost; measures of both signs use a blue-white-red map centred on zero. NaN is grey.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PIL import Image as Pillow, ImageColor, ImageDraw, ImageFont

from pliant.core.errors import InputError
from pliant.core.srgb import decoded
from pliant.core.terminal import visible
from pliant.core.topology import Floats

Color = str | tuple[float, float, float]
Colormap = Literal["auto", "sequential", "diverging"]

CLAY_COLOR = "#d6b196"
PROPS = ("#8fa9c4", "#a8b78f", "#c9a3b8", "#d8c384")
BONE_COLOR = "#e8e4d6"
WIRE = "#3d5a80"
UNKNOWN = "#9a9a9a"
BACKGROUND = "#f4f3f1"
INK = (58, 58, 62)

SMALLEST, LARGEST = 1e-300, 1e300
"""Differences between measures, and measures, beyond which a scale's round numbers would not be numbers."""

_VIRIDIS = np.array(
    [
        [0.2777273272234177, 0.005407344544966578, 0.3340998053353061],
        [0.1050930431085774, 1.404613529898575, 1.384590162594685],
        [-0.3308618287255563, 0.214847559468213, 0.09509516302823659],
        [-4.634230498983486, -5.799100973351585, -19.33244095627987],
        [6.228269936347081, 14.17993336680509, 56.69055260068105],
        [4.776384997670288, -13.74514537774601, -65.35303263337234],
        [-5.435455855934631, 4.645852612178535, 26.3124352495832],
    ]
)
_BLUE_RED = np.array(
    [
        [59, 76, 192], [98, 130, 234], [141, 176, 254], [184, 208, 249], [221, 221, 221],
        [245, 196, 173], [244, 154, 123], [222, 96, 77], [180, 4, 38],
    ]
) / 255  # fmt: skip


def parse_color(color: Color, what: str = "color") -> Floats:
    """(3,) sRGB from 0 to 1 of a name, "#rrggbb" or three numbers from 0 to 1."""
    if isinstance(color, str):
        try:
            return np.array(ImageColor.getrgb(color)[:3]) / 255
        except ValueError as error:
            raise InputError(f'{what} is "{color}"; expected a colour name, "#rrggbb" or three numbers') from error
    values = np.asarray(color, dtype=np.float64)
    if values.shape != (3,) or not np.isfinite(values).all() or values.min() < 0 or values.max() > 1:
        raise InputError(f"{what} is {color!r}; expected red, green and blue from 0 to 1")
    return values


def linear_color(color: Color, what: str = "color") -> Floats:
    """(3,) linear light of a colour."""
    return decoded(parse_color(color, what))


@dataclass(frozen=True, eq=False)
class Scale:
    """How a measure becomes colour."""

    low: float
    high: float
    colormap: Literal["sequential", "diverging"]
    label: str = ""

    def srgb(self, share: Floats) -> Floats:
        """(..., 3) colours of positions from 0 (low) to 1 (high)."""
        t = np.clip(share, 0, 1)
        if self.colormap == "sequential":
            powers = (0.125 + 0.875 * t[..., None]) ** np.arange(len(_VIRIDIS))
            return np.clip(powers @ _VIRIDIS, 0, 1)
        knots = np.linspace(0, 1, len(_BLUE_RED))
        return np.stack([np.interp(t, knots, _BLUE_RED[:, k]) for k in range(3)], axis=-1)

    def share(self, values: Floats) -> Floats:
        """Positions of values between low (0) and high (1); NaN stays NaN."""
        return (values - self.low) / (self.high - self.low)


def scale_for(
    values: Floats, limits: tuple[float, float] | None = None, colormap: Colormap = "auto", label: str = ""
) -> Scale:
    """The scale of a measure: the given limits, or round numbers that hold all its finite values."""
    if colormap not in ("auto", "sequential", "diverging"):
        raise InputError(f'colormap is "{colormap}"; expected "auto", "sequential" or "diverging"')
    if limits is not None:
        low, high = check_limits(limits)
    else:
        finite = np.clip(values[np.isfinite(values)], -LARGEST, LARGEST)
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        if colormap == "diverging" or (colormap == "auto" and low < 0 < high):
            low, high = -max(abs(low), abs(high)), max(abs(low), abs(high))
        low, high = round_limits(low, high)
    kind: Literal["sequential", "diverging"] = "diverging" if low < 0 < high else "sequential"
    return Scale(low, high, kind if colormap == "auto" else colormap, label)


def check_limits(limits: tuple[float, float]) -> tuple[float, float]:
    """Two finite numbers, the smaller first."""
    try:
        low, high = (float(limit) for limit in limits)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not 0 < high - low < math.inf:
        raise InputError(f"limits are {limits!r}; expected two finite numbers, the smaller first")
    return low, high


def round_limits(low: float, high: float) -> tuple[float, float]:
    """The nearest limits outside low and high that are multiples of 1, 2 or 5 times a power of ten."""
    if high - low < SMALLEST:
        reach = abs(low) * 1e-3 if abs(low) > SMALLEST else 1.0
        low, high = (0.0, high) if low > SMALLEST else (low - reach, high + reach)
    span = high - low
    step = 10.0 ** math.floor(math.log10(span / 2))
    for factor in (1.0, 2.0, 5.0, 10.0):
        if span / (factor * step) <= 10:
            step *= factor
            break
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Pillow's own font, so that pictures look the same on every machine."""
    return ImageFont.load_default(size=size)


def write_text(image: Pillow.Image, text: str, position: tuple[float, float], size: int, anchor: str = "la") -> None:
    """Dark text; `position` and `anchor` as Pillow has them."""
    ImageDraw.Draw(image).text(position, visible(text), fill=INK, font=font(size), anchor=anchor)


def number_text(value: float, span: float) -> str:
    """A limit or tick, without the noise of binary fractions."""
    value = 0.0 if abs(value) < 1e-9 * span else value
    return f"{value:.6g}"


LEGEND_HEIGHT = 46


def draw_legend(image: Pillow.Image, scale: Scale, box: tuple[int, int, int, int]) -> None:
    """A colour bar with its label and five numbers, in the (left, top, right, bottom) box at LEGEND_HEIGHT."""
    left, top, right, _ = box
    width = min(360, max(40, right - left - 40))
    start = (left + right - width) // 2
    bar = (255 * scale.srgb((np.arange(width) + 0.5) / width) + 0.5).astype(np.uint8)
    title = 14 if scale.label else 0
    image.paste(Pillow.fromarray(np.repeat(bar[None], 10, axis=0)), (start, top + title + 4))
    if scale.label:
        write_text(image, scale.label, (start + width / 2, top), 13, "ma")
    ticks = 5 if width >= 240 else 3
    for k in range(ticks):
        value = scale.low + (scale.high - scale.low) * k / (ticks - 1)
        at = start + width * k / (ticks - 1)
        write_text(image, number_text(value, scale.high - scale.low), (at, top + title + 17), 12, "ma")
