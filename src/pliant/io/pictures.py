"""Images that are read for their values: maps painted on a surface."""

from __future__ import annotations

import io

import numpy as np

from pliant.core.errors import InputError
from pliant.core.topology import Floats
from pliant.core.values import locked
from pliant.geometry.grey_map import GreyMap
from pliant.io.source import PathLike, Source, find

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")
"""Of files that are read as maps."""
LARGEST_IMAGE = 1 << 28
"""Pixels."""


def read_grey_map(path: PathLike) -> GreyMap:
    """Weights painted into an image file; colours count by their brightness."""
    sources = find(path, lambda name: name.lower().endswith(IMAGE_SUFFIXES))
    if len(sources) != 1:
        raise InputError(f"{path} stands for {len(sources)} files; expected one image")
    return GreyMap(_brightness(sources[0]))


def _brightness(source: Source) -> Floats:
    """(height, width) from 0 to 1."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(source.read())) as picture:
            if picture.width * picture.height > LARGEST_IMAGE:
                raise source.error(f"has {picture.width} x {picture.height} pixels; expected a smaller image")
            deep = picture.mode.startswith("I")
            grey = np.asarray(picture if deep else picture.convert("L"), dtype=np.float64)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        if isinstance(error, InputError):
            raise
        raise source.error("is not an image that can be read; expected .png, .jpg or the like") from None
    return locked(grey / (65535.0 if deep else 255.0))
