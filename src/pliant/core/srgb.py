"""Conversion between sRGB colours of files (often 0 to 255) and linear colours from 0 to 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.topology import Floats


def to_linear(colors: NDArray[Any]) -> Floats:
    """sRGB (n, 3 or 4) to linear; whole numbers are taken as 0 to 255, fractions as 0 to 1. Alpha is only scaled.

    What is not finite becomes NaN, for shapes to count and repair.
    """
    values = colors.astype(np.float64)
    if np.issubdtype(colors.dtype, np.integer):
        values = values / np.iinfo(colors.dtype).max
    values = np.where(np.isfinite(values), np.clip(values, 0, 1), np.nan)
    values[:, :3] = decoded(values[:, :3])
    return values


def decoded(srgb: Floats) -> Floats:
    """sRGB from 0 to 1, of any shape, to linear light."""
    return np.where(srgb <= 0.04045, srgb / 12.92, ((np.maximum(srgb, 0) + 0.055) / 1.055) ** 2.4)


def from_linear(colors: NDArray[Any]) -> Floats:
    """Linear (n, 3 or 4) to sRGB, 0 to 1."""
    values = np.clip(np.asarray(colors, dtype=np.float64), 0, 1).copy()
    values[:, :3] = encoded(values[:, :3])
    return values


def encoded(linear: Floats) -> Floats:
    """Linear light from 0 to 1, of any shape, to sRGB."""
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def to_bytes(colors: NDArray[Any]) -> NDArray[np.uint8]:
    """Linear (n, 3 or 4) to sRGB bytes; exactly undoes `to_linear` of bytes."""
    return np.round(from_linear(colors) * 255).astype(np.uint8)
