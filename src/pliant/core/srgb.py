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
    rgb = values[:, :3]
    values[:, :3] = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return values


def from_linear(colors: NDArray[Any]) -> Floats:
    """Linear (n, 3 or 4) to sRGB, 0 to 1."""
    values = np.clip(np.asarray(colors, dtype=np.float64), 0, 1).copy()
    rgb = values[:, :3]
    values[:, :3] = np.where(rgb <= 0.0031308, rgb * 12.92, 1.055 * rgb ** (1 / 2.4) - 0.055)
    return values


def to_bytes(colors: NDArray[Any]) -> NDArray[np.uint8]:
    """Linear (n, 3 or 4) to sRGB bytes; exactly undoes `to_linear` of bytes."""
    return np.round(from_linear(colors) * 255).astype(np.uint8)
