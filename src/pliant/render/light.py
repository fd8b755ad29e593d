"""Light on what the rasteriser sees: ambient occlusion, shadows, ground, and the sum of it all.

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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.jit import inline_kernel, kernel, parallel_kernel, prange
from pliant.render.raster import whole

Array = NDArray[Any]

TAPS = 12


def _spirals(taps: int) -> NDArray[np.float32]:
    """(16, taps, 2) unit steps of a golden spiral, turned 16 ways: one for each sample of a 4 x 4 tile."""
    angle = np.arange(taps) * math.pi * (3 - math.sqrt(5)) + np.arange(16)[:, None] * (2 * math.pi / 16)
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1).astype(np.float32)


SPIRALS = _spirals(64)


@inline_kernel
def _turn(row: int, column: int) -> int:
    """Which of the 16 turns a sample uses; neighbours differ much."""
    return ((row & 3) * 4 + (column & 3) * 7) & 15


@parallel_kernel
def occlusion(depth: Array, normal: Array, focal: float, centre_x: float, centre_y: float, radius: float) -> Array:
    """(h, w) how much of the sky each sample loses to what is within `radius`, from 0 to 1.

    Noisy within 4 x 4 tiles, and taken for every other sample only (as on a chessboard); the rest are 0.
    """
    height, width = depth.shape
    result = np.zeros((height, width), np.float32)
    for line in prange(height):
        row = np.int64(line)
        for column in range(row & 1, width, 2):
            if depth[row, column] <= 0:
                continue
            z = 1 / depth[row, column]
            px, py = (column + 0.5 - centre_x) * z / focal, (centre_y - row - 0.5) * z / focal
            nx, ny, nz = normal[row, column, 0], normal[row, column, 1], normal[row, column, 2]
            reach = min(focal * radius / z, 0.25 * width)
            turn = _turn(row, column)
            total = 0.0
            for k in range(TAPS):
                share = (k + 0.5) / TAPS
                step = max(reach * share * share, 1.5 + share)
                i = whole(row + step * SPIRALS[turn, k, 1] + 0.5, -1, height)
                j = whole(column + step * SPIRALS[turn, k, 0] + 0.5, -1, width)
                if i < 0 or j < 0 or i >= height or j >= width or depth[i, j] <= 0:
                    continue
                far = 1 / depth[i, j]
                dx = (j + 0.5 - centre_x) * far / focal - px
                dy = (centre_y - i - 0.5) * far / focal - py
                dz = far - z
                square = dx * dx + dy * dy + dz * dz
                if square < radius * radius and square > 0:
                    cosine = (dx * nx + dy * ny + dz * nz) / math.sqrt(square)
                    total += max(0.0, cosine - 0.12) * (1 - square / (radius * radius))
            result[row, column] = min(1.0, 1.9 * total / TAPS)
    return result


@kernel
def _smoothed(noisy: Array, depth: Array, row: int, column: int, tolerance: float) -> float:
    """Mean over the 4 x 4 tile around a sample, of those at the same depth on the chessboard of `occlusion`."""
    height, width = depth.shape
    here, total, count = depth[row, column], 0.0, 0
    for i in range(max(0, row - 2), min(height, row + 2)):
        first = max(0, column - 2)
        for j in range(first + ((first + i) & 1), min(width, column + 2), 2):
            if abs(depth[i, j] - here) < tolerance * here:
                total += noisy[i, j]
                count += 1
    return total / max(count, 1)


@kernel
def _cavity(depth: Array, normal: Array, row: int, column: int, step: int) -> float:
    """Turning of the normals across a sample: positive on ridges, negative in valleys, 0 beside a silhouette."""
    height, width = depth.shape
    if row < step or column < step or row >= height - step or column >= width - step:
        return 0.0
    here = depth[row, column]
    gap = max(abs(depth[row - step, column] - here), abs(depth[row + step, column] - here))
    gap = max(gap, abs(depth[row, column - step] - here), abs(depth[row, column + step] - here))
    if gap > 0.02 * here:
        return 0.0
    across = normal[row, column + step, 0] - normal[row, column - step, 0]
    return across + normal[row - step, column, 1] - normal[row + step, column, 1]


@kernel
def _lit_share(
    shadow: Array, u: float, v: float, w: float, turn: int, taps: int, wide: float, size: float, bias: float
) -> float:
    """Share of the key light that reaches a point at (u, v) of the shadow map, w towards the light.

    A first round of taps, over a disc of radius `wide` (of the map), finds how far away the casters are; the second
    averages over a disc of that distance times `size`.
    """
    rows, columns = shadow.shape
    search, blockers, gap = wide * rows, 0, 0.0
    for round_ in range(2):
        if round_ == 1:
            if blockers == 0:
                return 1.0
            search = min(max(size * gap / blockers, 1.2), wide * rows)
            blockers = 0
        for k in range(taps):
            step = search * math.sqrt((k + 0.5) / taps)
            i, j = whole(v + step * SPIRALS[turn, k, 1], -1, rows), whole(u + step * SPIRALS[turn, k, 0], -1, columns)
            if i < 0 or j < 0 or i >= rows or j >= columns:
                continue
            if shadow[i, j] > max(w + bias * (1 + step), 0.0):
                blockers += 1
                gap += shadow[i, j] - w
    return 1 - blockers / taps


@parallel_kernel
def ground_key(shadow: Array, place: Array, size: float, bias: float) -> Array:
    """(g, g) share of the key light on a grid of the ground; place: (g, g, 3) its points in the shadow map."""
    count = len(place)
    result = np.ones((count, count), np.float32)
    for line in prange(count):
        i = np.int64(line)
        for j in range(count):
            u, v, w = place[i, j, 0], place[i, j, 1], place[i, j, 2]
            result[i, j] = _lit_share(shadow, u, v, w, 0, 64, 0.07, size, bias)
    return result


@parallel_kernel
def ground_sky(count: int, covered: Array, heights: Array) -> Array:
    """(g, g) share of sky light on a grid of the ground.

    covered: (k, 2) grid points that have something above them. heights: (k,) how high, squared, in cells.
    """
    result = np.ones((count, count), np.float32)
    for line in prange(count):
        i = np.int64(line)
        for j in range(count):
            lost = 0.0
            for k in range(len(covered)):
                square = heights[k] + (covered[k, 0] - i) ** 2 + (covered[k, 1] - j) ** 2
                lost += heights[k] / (square * square)
            result[i, j] = max(0.0, 1 - lost / math.pi)
    return result


@inline_kernel
def _bilinear(grid: Array, u: float, v: float) -> float:
    """Value of a square grid over [-1, 1]^2."""
    count = len(grid)
    p, q = (0.5 + 0.5 * u) * count - 0.5, (0.5 + 0.5 * v) * count - 0.5
    i, j = whole(p, 0, count - 2), whole(q, 0, count - 2)
    p, q = min(max(p - i, 0.0), 1.0), min(max(q - j, 0.0), 1.0)
    first = (1 - q) * grid[i, j] + q * grid[i, j + 1]
    return (1 - p) * first + p * ((1 - q) * grid[i + 1, j] + q * grid[i + 1, j + 1])


@inline_kernel
def _shoulder(light: float) -> float:
    """Light above 0.6 bent towards 1, so that white keeps its shading."""
    return light if light < 0.6 else 0.6 + 0.4 * (1 - math.exp((0.6 - light) / 0.4))


@parallel_kernel
def illuminate(
    depth: Array,
    normal: Array,
    albedo: Array,
    kind: Array,
    occluded: Array,
    shadow: Array,
    to_shadow: Array,
    lens: Array,
    lights: Array,
    softness: float,
    bias: float,
    cavity_step: int,
    image: Array,
) -> None:
    """Light every sample that shows something, and write it over `image` (h, w, 3).

    lens: focal length, centre column, centre row. to_shadow: (3, 4) from camera coordinates to the shadow map.
    lights: rows key, fill, rim and up as unit vectors towards the light. kind: 1 for back faces, 2 for measures, 3 for
    both: measures are lit more evenly, so that their colours can be compared with the legend.
    """
    height, width = depth.shape
    focal, centre_x, centre_y = lens
    for line in prange(height):
        row = np.int64(line)
        for column in range(width):
            if depth[row, column] <= 0:
                continue
            z = 1 / depth[row, column]
            x, y = (column + 0.5 - centre_x) * z / focal, (centre_y - row - 0.5) * z / focal
            nx, ny, nz = normal[row, column, 0], normal[row, column, 1], normal[row, column, 2]
            size = math.sqrt(x * x + y * y + z * z)
            vx, vy, vz = -x / size, -y / size, -z / size
            facing = max(0.0, nx * vx + ny * vy + nz * vz)
            sky = 1 - _smoothed(occluded, depth, row, column, 0.02)
            valley = _cavity(depth, normal, row, column, cavity_step)
            relief = 1 + (0.2 if valley > 0 else 0.65) * valley / (0.8 + abs(valley))
            key = nx * lights[0, 0] + ny * lights[0, 1] + nz * lights[0, 2]
            if key > 0:
                # The point is lifted off its surface, so that it does not shade itself.
                lift = 6 * bias
                sx, sy, sz = x + lift * nx, y + lift * ny, z + lift * nz
                u = to_shadow[0, 0] * sx + to_shadow[0, 1] * sy + to_shadow[0, 2] * sz + to_shadow[0, 3]
                v = to_shadow[1, 0] * sx + to_shadow[1, 1] * sy + to_shadow[1, 2] * sz + to_shadow[1, 3]
                w = to_shadow[2, 0] * sx + to_shadow[2, 1] * sy + to_shadow[2, 2] * sz + to_shadow[2, 3]
                key *= 0.25 + 0.75 * _lit_share(shadow, u, v, w, _turn(row, column), 10, 0.03, softness, bias)
            fill = max(0.0, nx * lights[1, 0] + ny * lights[1, 1] + nz * lights[1, 2])
            rim = max(0.0, nx * lights[2, 0] + ny * lights[2, 1] + nz * lights[2, 2]) * (1 - facing) * (1 - facing)
            up = 0.5 + 0.5 * (nx * lights[3, 0] + ny * lights[3, 1] + nz * lights[3, 2])
            hx, hy, hz = lights[0, 0] + vx, lights[0, 1] + vy, lights[0, 2] + vz
            half = (nx * hx + ny * hy + nz * hz) / math.sqrt(hx * hx + hy * hy + hz * hz)
            half = max(0.0, half) ** 8
            gloss = 0.07 * half * half * half * max(0.0, key)
            ambient = (0.18 + 0.31 * up) * sky
            glow = 0.25 * rim * sky
            for k in range(3):
                warm = 1.0 + 0.05 * (1 - k)
                light = ambient * (2 - warm) + 0.78 * max(0.0, key) * warm + 0.24 * fill * (0.4 + 0.6 * sky)
                light *= relief * (0.5 + 0.5 * sky)
                color = albedo[row, column, k]
                if kind[row, column] & 1:
                    color = 0.25 * color + 0.75 * (0.10 + 0.09 * k)
                if kind[row, column] & 2:
                    image[row, column, k] = color * (0.3 + 0.75 * light) + 0.03 * light + 0.5 * gloss
                else:
                    image[row, column, k] = _shoulder(color * light + gloss * sky + glow)


@parallel_kernel
def ground_pixels(
    depth: Array, lens: Array, plane: Array, axes: Array, key: Array, sky: Array, extent: float, image: Array
) -> None:
    """Darken the background where it shows ground that lies in shadow; once for each pixel of 2 x 2 samples.

    plane: point below the shape on the ground, then the unit normal, in camera coordinates. axes: (2, 3) the grid's
    directions. key, sky: from `ground_key` and `ground_sky`, a square of half width `extent`; both fade out towards
    its border.
    """
    focal, centre_x, centre_y = lens
    lift = plane[0, 0] * plane[1, 0] + plane[0, 1] * plane[1, 1] + plane[0, 2] * plane[1, 2]
    for line in prange(depth.shape[0] // 2):
        row = 2 * np.int64(line)
        for column in range(0, depth.shape[1], 2):
            x, y = (column + 1 - centre_x) / focal, (centre_y - row - 1) / focal
            slope = x * plane[1, 0] + y * plane[1, 1] + plane[1, 2]
            if slope * lift <= 0:
                continue
            z = lift / slope
            dx, dy, dz = x * z - plane[0, 0], y * z - plane[0, 1], z - plane[0, 2]
            u = (dx * axes[0, 0] + dy * axes[0, 1] + dz * axes[0, 2]) / extent
            v = (dx * axes[1, 0] + dy * axes[1, 1] + dz * axes[1, 2]) / extent
            fade = min(1.0, 3 * (1 - math.sqrt(u * u + v * v)))
            if fade <= 0:
                continue
            dark = 0.34 * (1 - _bilinear(key, u, v)) + 0.5 * (1 - _bilinear(sky, u, v))
            dark = min(max(dark - 0.012, 0.0), 0.7) * fade * fade * (3 - 2 * fade)
            for k in range(4):
                sample_row, sample_column = row + (k >> 1), column + (k & 1)
                if depth[sample_row, sample_column] <= 0:
                    for channel in range(3):
                        image[sample_row, sample_column, channel] *= 1 - dark


def _encoding() -> NDArray[np.uint8]:
    """sRGB bytes of linear light in 1/8191 steps, fine enough for the darkest."""
    linear = np.arange(8192) / 8191
    coded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return (255 * coded + 0.5).astype(np.uint8)


ENCODED = _encoding()


@parallel_kernel
def finish(image: Array) -> Array:
    """(h/2, w/2, 3) bytes: the mean of 2 x 2 samples of linear light, encoded as sRGB."""
    height, width = image.shape[0] // 2, image.shape[1] // 2
    result = np.empty((height, width, 3), np.uint8)
    for line in prange(height):
        row = 2 * np.int64(line)
        for column in range(width):
            for k in range(3):
                total = np.float32(0)
                for i in range(2):
                    for j in range(2):
                        total += min(max(image[row + i, 2 * column + j, k], np.float32(0)), np.float32(1))
                result[line, column, k] = ENCODED[whole(total * np.float32(8191 / 4) + np.float32(0.5), 0, 8191)]
    return result
