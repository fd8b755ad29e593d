"""What is seen where: a z-buffer in compiled loops, without any graphics library.

Triangles and round splats go into two images of samples: the inverse depth ``w = 1/z`` of what is nearest (0 where
there is nothing) and its number. A triangle's ``w`` is linear on the screen, so a row of samples needs one
addition each, and the nearest is the greatest. Each thread owns a band of rows and visits the triangles in order, so
the picture does not depend on the number of threads. `resolve` then gives every sample its normal and colour from
the perspective-correct weights ``b_k = l_k w_k / sum(l w)`` of the triangle's corners (l: weights on the screen).

No number becomes an index before `whole` has put it in range: NaN, infinity and 1e300 cannot reach outside an array.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.jit import inline_kernel, kernel, parallel_kernel, prange

Array = NDArray[Any]

BANDS = 32


@inline_kernel
def whole(value: float, least: int, most: int) -> int:
    """A number without its fraction, from `least` to `most`; NaN is the least."""
    return int(value) if least < value < most else (most if value >= most else least)


@parallel_kernel
def rasterize(x: Array, y: Array, w: Array, triangles: Array, depth: Array, number: Array) -> None:
    """Draw triangles, given screen positions and inverse depths of their vertices, into `depth` and `number`."""
    height, width = depth.shape
    for band in prange(BANDS):
        top, bottom = np.int64(band * height // BANDS), np.int64((band + 1) * height // BANDS)
        for t in range(len(triangles)):
            a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
            low, high = min(y[a], y[b], y[c]), max(y[a], y[b], y[c])
            if high <= top or low >= bottom or w[a] <= 0 or w[b] <= 0 or w[c] <= 0:
                continue
            area = (x[b] - x[a]) * (y[c] - y[a]) - (y[b] - y[a]) * (x[c] - x[a])
            if area == 0:
                continue
            if area < 0:
                b, c, area = c, b, -area
            w_x = ((w[b] - w[a]) * (y[c] - y[a]) - (w[c] - w[a]) * (y[b] - y[a])) / area
            w_y = ((w[c] - w[a]) * (x[b] - x[a]) - (w[b] - w[a]) * (x[c] - x[a])) / area
            nearest, farthest = max(w[a], w[b], w[c]), min(w[a], w[b], w[c])
            left, right = min(x[a], x[b], x[c]), max(x[a], x[b], x[c])
            first_row, end_row = whole(np.ceil(low - 0.5), top, bottom), whole(np.floor(high + 0.5), top, bottom)
            for row in range(first_row, end_row):
                centre = row + 0.5
                start, stop = left, right
                for side in range(3):
                    p = a if side == 0 else (b if side == 1 else c)
                    q = b if side == 0 else (c if side == 1 else a)
                    slope = y[q] - y[p]
                    # Inside where (x_q - x_p)(centre - y_p) - slope (s - x_p) >= 0, a bound on s.
                    if slope != 0:
                        crossing = x[p] + (x[q] - x[p]) * (centre - y[p]) / slope
                        if slope > 0:
                            stop = min(stop, crossing)
                        else:
                            start = max(start, crossing)
                first, end = whole(np.ceil(start - 0.5 - 1e-7), 0, width), whole(np.floor(stop + 0.5 + 1e-7), 0, width)
                for column in range(first, end):
                    here = w[a] + w_x * (column + 0.5 - x[a]) + w_y * (centre - y[a])
                    here = np.float32(min(max(here, farthest), nearest))
                    if here > depth[row, column]:
                        depth[row, column] = here
                        number[row, column] = t


@parallel_kernel
def splat(x: Array, y: Array, z: Array, radius: Array, focal: float, base: int, depth: Array, number: Array) -> None:
    """Draw balls (centre on the screen, its depth z, radius in camera units) as numbers from `base` on."""
    height, width = depth.shape
    for band in prange(BANDS):
        top, bottom = np.int64(band * height // BANDS), np.int64((band + 1) * height // BANDS)
        for k in range(len(x)):
            if z[k] <= radius[k]:
                continue
            reach = max(focal * radius[k] / z[k], 0.75)
            if y[k] + reach <= top or y[k] - reach >= bottom:
                continue
            first_row = whole(np.ceil(y[k] - reach - 0.5), top, bottom)
            for row in range(first_row, whole(np.floor(y[k] + reach + 0.5), top, bottom)):
                v = (row + 0.5 - y[k]) / reach
                half = reach * math.sqrt(max(0.0, 1 - v * v))
                first = whole(np.ceil(x[k] - half - 0.5), 0, width)
                for column in range(first, whole(np.floor(x[k] + half + 0.5), 0, width)):
                    u = (column + 0.5 - x[k]) / reach
                    here = np.float32(1 / (z[k] - radius[k] * math.sqrt(max(0.0, 1 - u * u - v * v))))
                    if here > depth[row, column]:
                        depth[row, column] = here
                        number[row, column] = base + k


@parallel_kernel
def draw_lines(
    x: Array, y: Array, w: Array, edges: Array, thickness: float, slack: float, depth: Array, seen: Array, hidden: Array
) -> None:
    """Coverage (0 to 1) of antialiased lines: where they are seen, and where something in `depth` hides them.

    slack: how far behind a surface, relative to its depth, a line still counts as lying on it.
    """
    height, width = depth.shape
    reach = 0.5 * thickness + 0.5
    for band in prange(BANDS):
        top, bottom = np.int64(band * height // BANDS), np.int64((band + 1) * height // BANDS)
        for e in range(len(edges)):
            a, b = edges[e, 0], edges[e, 1]
            if w[a] <= 0 or w[b] <= 0 or max(y[a], y[b]) + reach <= top or min(y[a], y[b]) - reach >= bottom:
                continue
            along_x, along_y = x[b] - x[a], y[b] - y[a]
            length = math.hypot(along_x, along_y)
            inverse = 1 / max(length * length, 1e-12)
            first_row = whole(np.floor(min(y[a], y[b]) - reach), top, bottom)
            for row in range(first_row, whole(np.ceil(max(y[a], y[b]) + reach) + 1, top, bottom)):
                v = row + 0.5 - y[a]
                start, stop = min(x[a], x[b]) - reach, max(x[a], x[b]) + reach
                if abs(along_y) > 1e-9:
                    middle = x[a] + along_x * v / along_y
                    spread = reach * length / abs(along_y)
                    start, stop = max(start, middle - spread), min(stop, middle + spread)
                for column in range(whole(np.floor(start), 0, width), whole(np.ceil(stop) + 1, 0, width)):
                    u = column + 0.5 - x[a]
                    t = min(max((u * along_x + v * along_y) * inverse, 0.0), 1.0)
                    cover = np.float32(min(reach - math.hypot(u - t * along_x, v - t * along_y), 1.0))
                    if cover > 0:
                        if (w[a] + t * (w[b] - w[a])) * (1 + slack) >= depth[row, column]:
                            seen[row, column] = max(seen[row, column], cover)
                        else:
                            hidden[row, column] = max(hidden[row, column], cover)


@kernel
def corner_slots(triangles: Array, triangle_polygon: Array, corners: Array, offsets: Array) -> Array:
    """(m, 3) the polygon corner that each triangle corner is."""
    slots = np.zeros(triangles.shape, np.int64)
    for t in range(len(triangles)):
        polygon = triangle_polygon[t]
        for k in range(3):
            for slot in range(offsets[polygon], offsets[polygon + 1]):
                if corners[slot] == triangles[t, k]:
                    slots[t, k] = slot
                    break
    return slots


@kernel
def incident_corners(triangles: Array, count: int) -> tuple[Array, Array]:
    """For each vertex its triangle corners 3 t + k, as start (count + 1,) and a flat list."""
    start = np.zeros(count + 1, np.int64)
    for t in range(len(triangles)):
        for k in range(3):
            start[triangles[t, k] + 1] += 1
    for v in range(count):
        start[v + 1] += start[v]
    fill = start[:-1].copy()
    flat = np.empty(3 * len(triangles), np.int64)
    for t in range(len(triangles)):
        for k in range(3):
            v = triangles[t, k]
            flat[fill[v]] = 3 * t + k
            fill[v] += 1
    return start, flat


@parallel_kernel
def creased_normals(area: Array, triangles: Array, start: Array, flat: Array, cosine: float) -> Array:
    """(m, 3, 3) unit normals at triangle corners, smooth over the edges whose sides agree better than `cosine`.

    Around each vertex, triangles that share an edge there and meet at less than the crease angle form a group; a
    corner's normal is the sum of its group's area vectors. Vertices of more than 64 triangles are one group.
    """
    normals = np.zeros((len(triangles), 3, 3), np.float32)
    for vertex in prange(len(start) - 1):
        v = np.int64(vertex)
        count = start[v + 1] - start[v]
        group = np.arange(count)
        for i in range(count if count <= 64 else 0):
            ti = flat[start[v] + i] // 3
            for j in range(i):
                tj = flat[start[v] + j] // 3
                if group[i] == group[j] or not _smooth_neighbours(triangles, area, ti, tj, v, cosine):
                    continue
                old, new = group[i], group[j]
                for k in range(count):
                    if group[k] == old:
                        group[k] = new
        if count > 64:
            group[:] = 0
        total = np.zeros((count, 3))
        for i in range(count):
            total[group[i]] += area[flat[start[v] + i] // 3]
        for i in range(count):
            nx, ny, nz = total[group[i], 0], total[group[i], 1], total[group[i], 2]
            length = math.sqrt(nx * nx + ny * ny + nz * nz)
            corner = flat[start[v] + i]
            if length > 0:
                normals[corner // 3, corner % 3, 0] = nx / length
                normals[corner // 3, corner % 3, 1] = ny / length
                normals[corner // 3, corner % 3, 2] = nz / length
    return normals


@kernel
def _smooth_neighbours(triangles: Array, area: Array, s: int, t: int, v: int, cosine: float) -> bool:
    """Whether two triangles at vertex v share an edge there and meet at less than the crease angle."""
    shared = False
    for k in range(3):
        for q in range(3):
            if triangles[s, k] == triangles[t, q] and triangles[s, k] != v:
                shared = True
    if not shared:
        return False
    dot = area[s, 0] * area[t, 0] + area[s, 1] * area[t, 1] + area[s, 2] * area[t, 2]
    size_s = area[s, 0] ** 2 + area[s, 1] ** 2 + area[s, 2] ** 2
    size_t = area[t, 0] ** 2 + area[t, 1] ** 2 + area[t, 2] ** 2
    # A triangle without area has no direction to disagree with.
    return size_s == 0 or size_t == 0 or dot >= cosine * math.sqrt(size_s * size_t)


@kernel
def _texel(texels: Array, layout: Array, image: int, u: float, v: float, channel: int) -> float:
    """Bilinear lookup in one of the images that `texels` (t, 3) holds one after another, v upwards.

    layout: (images, 4) offset, height, width, and whether lookups stop at the border (1) or repeat (0).
    """
    offset, rows, columns, stops = layout[image, 0], layout[image, 1], layout[image, 2], layout[image, 3]
    if stops == 1:
        u, v = min(max(u, 0.0), 1.0), min(max(v, 0.0), 1.0)
    else:
        u, v = u - np.floor(u), v - np.floor(v)
    column, row = u * columns - 0.5, (1 - v) * rows - 0.5
    left, top = whole(np.floor(column), -1, columns - 1), whole(np.floor(row), -1, rows - 1)
    right, bottom = left + 1, top + 1
    p, q = column - left, row - top
    if stops == 1:
        left, right = max(left, 0), min(right, columns - 1)
        top, bottom = max(top, 0), min(bottom, rows - 1)
    else:
        left, right, top, bottom = left % columns, right % columns, top % rows, bottom % rows
    upper = (1 - p) * texels[offset + top * columns + left, channel]
    upper += p * texels[offset + top * columns + right, channel]
    lower = (1 - p) * texels[offset + bottom * columns + left, channel]
    lower += p * texels[offset + bottom * columns + right, channel]
    return (1 - q) * upper + q * lower


@parallel_kernel
def resolve(
    x: Array,
    y: Array,
    w: Array,
    triangles: Array,
    normals: Array,
    normal_index: Array,
    colors: Array,
    color_index: Array,
    uvs: Array,
    uv_index: Array,
    image: Array,
    texels: Array,
    layout: Array,
    number: Array,
    normal: Array,
    albedo: Array,
    measured: Array,
    kind: Array,
) -> None:
    """Normal, colour and kind (1 back face, 2 measure, 3 both) of every sample that shows a triangle.

    The k-th corner of triangle t has normal ``normals[normal_index[t, k]]``, colour ``colors[color_index[t, k]]`` and,
    where ``image[t] >= 0``, texture coordinates ``uvs[uv_index[t, k]]``. Normals of back faces are turned over.
    """
    height, width = number.shape
    for line in prange(height):
        row = np.int64(line)
        for column in range(width):
            t = number[row, column]
            if t < 0 or t >= len(triangles):
                continue
            a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
            area = (x[b] - x[a]) * (y[c] - y[a]) - (y[b] - y[a]) * (x[c] - x[a])
            px, py = column + 0.5, row + 0.5
            wb = ((px - x[a]) * (y[c] - y[a]) - (py - y[a]) * (x[c] - x[a])) / area
            wc = ((x[b] - x[a]) * (py - y[a]) - (y[b] - y[a]) * (px - x[a])) / area
            wb, wc = min(max(wb, 0.0), 1.0), min(max(wc, 0.0), 1.0)
            wa = max(0.0, 1 - wb - wc) * w[a]
            wb, wc = wb * w[b], wc * w[c]
            total = wa + wb + wc
            wa, wb, wc = wa / total, wb / total, wc / total
            # Screen rows count downwards, so a counter-clockwise (front) face has negative area there.
            side = 1.0 if area < 0 else -1.0
            kind[row, column] = (1 if area > 0 else 0) + (2 if measured[t] else 0)
            na, nb, nc = normal_index[t, 0], normal_index[t, 1], normal_index[t, 2]
            length = 0.0
            for k in range(3):
                value = wa * normals[na, k] + wb * normals[nb, k] + wc * normals[nc, k]
                normal[row, column, k] = value
                length += value * value
            scale = side / math.sqrt(length) if length > 1e-20 else 0.0
            for k in range(3):
                normal[row, column, k] *= scale
            ca, cb, cc = color_index[t, 0], color_index[t, 1], color_index[t, 2]
            for k in range(3):
                albedo[row, column, k] = wa * colors[ca, k] + wb * colors[cb, k] + wc * colors[cc, k]
            if image[t] >= 0:
                ua, ub, uc = uv_index[t, 0], uv_index[t, 1], uv_index[t, 2]
                u = wa * uvs[ua, 0] + wb * uvs[ub, 0] + wc * uvs[uc, 0]
                v = wa * uvs[ua, 1] + wb * uvs[ub, 1] + wc * uvs[uc, 1]
                for k in range(3):
                    albedo[row, column, k] *= _texel(texels, layout, image[t], u, v, k)


@parallel_kernel
def resolve_splats(
    x: Array,
    y: Array,
    reach: Array,
    normals: Array,
    colors: Array,
    base: int,
    number: Array,
    normal: Array,
    albedo: Array,
) -> None:
    """Normal and colour of every sample that shows a splat: a ball's own normal where `normals` is zero."""
    height, width = number.shape
    for line in prange(height):
        row = np.int64(line)
        for column in range(width):
            k = number[row, column] - base
            if k < 0:
                continue
            u, v = (column + 0.5 - x[k]) / reach[k], -(row + 0.5 - y[k]) / reach[k]
            nx, ny, nz = normals[k, 0], normals[k, 1], normals[k, 2]
            if nx == 0 and ny == 0 and nz == 0:
                nx, ny, nz = u, v, -math.sqrt(max(0.0, 1 - u * u - v * v))
            elif nz > 0:
                nx, ny, nz = -nx, -ny, -nz
            normal[row, column, 0], normal[row, column, 1], normal[row, column, 2] = nx, ny, nz
            for channel in range(3):
                albedo[row, column, channel] = colors[k, channel]
