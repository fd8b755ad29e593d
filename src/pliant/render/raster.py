"""Rasterisation: a z-buffer in compiled loops, without any graphics library.

Triangles and round splats go into two images of samples: the inverse depth ``w = 1/z`` of what is nearest (0 where
there is nothing) and its number. A triangle's ``w`` is linear on the screen, so a row of samples needs one
addition each, and the nearest is the greatest. Each thread owns a band of rows and visits the triangles in order, so
the picture does not depend on the number of threads. `resolve` then gives every sample its normal and colour from
the perspective-correct weights ``b_k = l_k w_k / sum(l w)`` of the triangle's corners (l: weights on the screen).

No number becomes an index before it has been put in range (``whole`` in raster.h): NaN, infinity and 1e300 cannot reach
outside an array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.core.topology import Floats, Ints
from pliant.native import in_threads, kernels

Array = NDArray[Any]

BAND = 1 << 16
"""Samples that are worth a thread."""
VERTICES_PER_THREAD = 4096
"""Vertices that are worth a thread."""


class Screen(NamedTuple):
    """Where points are seen."""

    x: Floats
    """(n,) columns, in samples."""
    y: Floats
    """(n,) rows."""
    w: Floats
    """(n,) inverse depths; 0 behind the viewer."""


class SurfaceAttributes(NamedTuple):
    """What triangles look like."""

    triangles: Ints
    """(m, 3)"""
    normals: Array
    """(3 m, 3) of the triangles' corners, one after another."""
    colors: Array
    color_index: Ints
    """(m, 3) row in `colors` of each corner."""
    uvs: Floats
    uv_index: Ints
    """(m, 3) row in `uvs` of each corner."""
    image: Ints
    """(m,) the image that a triangle's colour is multiplied by, -1 for none."""
    measured: NDArray[np.bool_]
    """(m,)"""
    texels: Array
    """(t, 3) the pixels of all images, one after another."""
    layout: Ints
    """(images, 4) offset in `texels`, height, width, and whether lookups stop at the border (1) or repeat (0)."""


class SampleBuffers(NamedTuple):
    """What samples show."""

    number: NDArray[np.int32]
    """(h, w) triangle, then splat; -1 for nothing."""
    normal: Array
    """(h, w, 3)"""
    albedo: Array
    """(h, w, 3)"""


def in_bands(work: Callable[[int, int], None], shape: tuple[int, ...]) -> None:
    """Do the rows of an image, by threads where it is large."""
    rows, columns = shape[:2]
    in_threads(work, rows, max(1, BAND // max(columns, 1)))


def rasterize(screen: Screen, triangles: Ints, depth: Array, number: Array) -> None:
    """Draw triangles, given where their vertices are seen, into `depth` and `number`."""
    in_bands(lambda a, b: kernels.raster_rasterize(screen, triangles, depth, number, a, b), depth.shape)


def splat(
    x: Floats, y: Floats, z: Floats, radius: Floats, focal: float, base: int, depth: Array, number: Array
) -> None:
    """Draw balls (centre on the screen, its depth z, radius in camera units) as numbers from `base` on."""
    balls = x, y, z, radius
    in_bands(lambda a, b: kernels.raster_splat(balls, focal, base, depth, number, a, b), depth.shape)


def draw_lines(
    screen: Screen, edges: Ints, thickness: float, slack: float, depth: Array, seen: Array, hidden: Array
) -> None:
    """Coverage (0 to 1) of antialiased lines: where they are seen, and where something in `depth` hides them.

    slack: how far behind a surface, relative to its depth, a line still counts as lying on it.
    """
    given = screen, edges, thickness, slack, depth, seen, hidden
    in_bands(lambda a, b: kernels.raster_draw_lines(given, a, b), depth.shape)


def corner_slots(triangles: Ints, triangle_polygon: Ints, corners: Ints, offsets: Ints) -> Ints:
    """(m, 3) the polygon corner that each triangle corner is."""
    slots = np.empty(triangles.shape, np.int64)
    kernels.raster_corner_slots(triangles, triangle_polygon, corners, offsets, slots)
    return slots


def creased_normals(area: Floats, triangles: Ints, count: int, cosine: float) -> Array:
    """(m, 3, 3) unit normals at triangle corners, smooth over the edges whose sides agree better than `cosine`.

    Around each of `count` vertices, triangles that share an edge there and meet at less than the crease angle form a
    group; a corner's normal is the sum of its group's area vectors. Vertices of more than 64 triangles are one group.
    """
    start, flat = np.empty(count + 1, np.int64), np.empty(3 * len(triangles), np.int64)
    kernels.raster_incident_corners(triangles, start, flat)
    normals = np.zeros((len(triangles), 3, 3), np.float32)
    given = area, triangles, start, flat, cosine, normals
    in_threads(lambda a, b: kernels.raster_creased_normals(given, a, b), count, VERTICES_PER_THREAD)
    return normals


def resolve(screen: Screen, surface: SurfaceAttributes, samples: SampleBuffers, kind: Array) -> None:
    """Normal, colour and kind (1 back face, 2 measure, 3 both) of every sample that shows a triangle.

    Normals of back faces are reversed. Images are looked up bilinearly, v upwards.
    """
    in_bands(lambda a, b: kernels.raster_resolve(screen, surface, samples, kind, a, b), kind.shape)


def resolve_splats(
    x: Floats, y: Floats, reach: Floats, normals: Array, colors: Array, base: int, samples: SampleBuffers
) -> None:
    """Normal and colour of every sample that shows a splat: a ball's own normal where `normals` is zero."""
    given = x, y, reach, normals, colors, base, samples
    in_bands(lambda a, b: kernels.raster_resolve_splats(given, a, b), samples.number.shape)
