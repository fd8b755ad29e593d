"""Lighting of rasterised samples: ambient occlusion, shadows, ground, and their sum.

All lengths are those of the normalised scene (half the diagonal is 1), in camera axes x right, y up, z away from the
viewer. Light is linear; `finish` averages each pixel's 2 x 2 samples and encodes them as sRGB.

Ambient occlusion of a point p with normal n is the mean over points q seen around it of
``max(0, cos(n, q - p) - bias) (1 - |q - p|^2 / radius^2)``; the taps crowd towards p, so that small folds count as
much as large ones. Shadows compare distances in a depth map drawn from the key light, over a disc that grows with
the distance to what casts them. On the ground the light that a patch of area dA at height h and distance d takes
away from the sky is ``h^2 dA / (pi (h^2 + d^2)^2)``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pliant.core.srgb import encoded
from pliant.core.topology import Floats, Ints
from pliant.native import in_threads, kernels
from pliant.render.raster import Array, in_bands

LensNumbers = tuple[float, float, float]
"""Focal length, centre column, centre row."""

GROUND_ROWS = 8
"""Rows of the ground's grids that are worth a thread."""


def _spirals(taps: int) -> NDArray[np.float32]:
    """(16, taps, 2) unit steps of a golden spiral, in 16 rotations: one for each sample of a 4 x 4 tile."""
    angle = np.arange(taps) * math.pi * (3 - math.sqrt(5)) + np.arange(16)[:, None] * (2 * math.pi / 16)
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1).astype(np.float32)


SPIRALS = _spirals(64)


def occlusion(depth: Array, normal: Array, lens: LensNumbers, radius: float) -> Array:
    """(h, w) how much of the sky each sample loses to what is within `radius`, from 0 to 1.

    Noisy within 4 x 4 tiles, and taken for every other sample only (as on a chessboard); the rest are 0.
    """
    result = np.zeros(depth.shape, np.float32)
    given = depth, normal, lens, radius, SPIRALS, result
    in_bands(lambda a, b: kernels.light_occlusion(given, a, b), depth.shape)
    return result


def ground_key(shadow: Array, position: Floats, size: float, bias: float) -> Array:
    """(g, g) share of the key light on a grid of the ground; position: (g, g, 3) its points in the shadow map."""
    result = np.empty(position.shape[:2], np.float32)
    given = shadow, position, size, bias, SPIRALS, result
    in_threads(lambda a, b: kernels.light_ground_key(given, a, b), len(result), GROUND_ROWS)
    return result


def ground_sky(count: int, covered: Ints, heights: Floats) -> Array:
    """(g, g) share of sky light on a grid of the ground.

    covered: (k, 2) grid points that have something above them. heights: (k,) how high, squared, in cells.
    """
    result = np.empty((count, count), np.float32)
    in_threads(lambda a, b: kernels.light_ground_sky(covered, heights, result, a, b), count, GROUND_ROWS)
    return result


def illuminate(
    layer: tuple[Array, ...],
    shadow: tuple[Array, Floats, float, float],
    lens: LensNumbers,
    lights: Floats,
    cavity_step: int,
    image: Array,
) -> None:
    """Light every sample that shows something, and write it over `image` (h, w, 3).

    layer: inverse depth, normal, colour, kind and occlusion of the samples. Kinds are 1 for back faces, 2 for measures,
    3 for both: measures are lit more evenly, so that their colours can be compared with the legend. shadow: the map's
    depth, the matrix (3, 4) from camera coordinates to it, over how many of its pixels a shadow fades for each length
    of 1 to its caster, and the length of a pixel. lights: rows key, fill, rim and up as unit vectors towards the light.
    """
    given = layer, shadow, lens, lights, cavity_step, SPIRALS, image
    in_bands(lambda a, b: kernels.light_illuminate(given, a, b), image.shape)


def ground_pixels(
    depth: Array, lens: LensNumbers, plane: Floats, axes: Floats, extent: float, key: Array, sky: Array, image: Array
) -> None:
    """Darken the background where it shows ground that lies in shadow; once for each pixel of 2 x 2 samples.

    plane: point below the shape on the ground, then the unit normal, in camera coordinates. axes: (2, 3) the grid's
    directions. key, sky: from `ground_key` and `ground_sky`, a square of half width `extent`; both fade out towards
    its border.
    """
    given = depth, lens, plane, axes, extent, key, sky, image
    in_bands(lambda a, b: kernels.light_ground_pixels(given, a, b), (len(depth) // 2, 2 * depth.shape[1]))


def _encoding() -> NDArray[np.uint8]:
    """sRGB bytes of linear light in 1/8191 steps, fine enough for the darkest."""
    linear = np.arange(8192) / 8191
    coded = encoded(linear)
    return (255 * coded + 0.5).astype(np.uint8)


ENCODED = _encoding()


def finish(image: Array) -> NDArray[np.uint8]:
    """(h/2, w/2, 3) bytes: the mean of 2 x 2 samples of linear light, encoded as sRGB."""
    result = np.empty((image.shape[0] // 2, image.shape[1] // 2, 3), np.uint8)
    in_bands(lambda a, b: kernels.light_finish(image, ENCODED, result, a, b), result.shape)
    return result
