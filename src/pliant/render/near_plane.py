"""Near-plane clipping: what is behind the viewer is cut off, so that a floor larger than the view can be drawn.

A corner between corners i and j of a triangle carries ``(1 - t) v_i + t v_j`` of all they carry. A triangle with one
corner ahead of the near plane keeps one triangle, one with two keeps two.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pliant.core.topology import Floats, Ints
from pliant.render.parts import RenderPart

NEAR_PLANE = 0.02
"""Distance of the near plane from the viewer, in units of the normalised scene."""

Corners = tuple[Ints, Ints, Ints, Floats]
"""For corners of new triangles: old triangle, its corners i and j, and t."""


def clipped(part: RenderPart, depth: Floats) -> RenderPart:
    """The part with all that is nearer than NEAR_PLANE cut off; depth: (n,) of its points."""
    part = _clipped_lines(part, depth) if len(part.lines) else part
    if not len(part.triangles):
        return part
    ahead = depth[part.triangles] > NEAR_PLANE
    count = ahead.sum(axis=1)
    whole, ones, twos = (np.flatnonzero(count == k) for k in (3, 1, 2))
    if len(whole) == len(part.triangles):
        return part
    # Turned so that the corner that differs from the other two comes first.
    single = _around(ones, np.argmax(ahead[ones], axis=1))
    double = _around(twos, np.argmin(ahead[twos], axis=1))
    pieces = [
        _triangle(ones, single, (0, 0), (0, 1), (0, 2)),
        _triangle(twos, double, (0, 1), (1, 1), (2, 2)),
        _triangle(twos, double, (0, 1), (2, 2), (0, 2)),
    ]
    old, i, j = (np.concatenate(columns) for columns in zip(*pieces, strict=True))
    low, high = depth[part.triangles[old, i]], depth[part.triangles[old, j]]
    gap = high - low
    t = np.divide(NEAR_PLANE - low, gap, out=np.zeros(len(gap)), where=gap != 0)
    return _assembled(part, whole, (old, i, j, np.clip(t * (1 + 1e-9 * np.sign(gap)), 0, 1)))


def _around(rows: Ints, first: Ints) -> Ints:
    """(k, 3) corner numbers starting with `first`."""
    return (first[:, None] + np.arange(3)) % 3 if len(rows) else np.zeros((0, 3), np.int64)


def _triangle(rows: Ints, order: Ints, *corners: tuple[int, int]) -> tuple[Ints, Ints, Ints]:
    """Old triangle, corner i and corner j for the three corners of one new triangle for each row."""
    old = np.repeat(rows, 3)
    i = np.stack([order[:, a] for a, _ in corners], axis=1).ravel()
    j = np.stack([order[:, b] for _, b in corners], axis=1).ravel()
    return old, i, j


def _assembled(part: RenderPart, whole: Ints, corners: Corners) -> RenderPart:
    """Whole triangles, then new ones with rows of their own in every table."""
    old, i, j, t = corners

    def between(table: Floats, index: Ints) -> Floats:
        return (1 - t)[:, None] * table[index[old, i]] + t[:, None] * table[index[old, j]]

    def index(kept: Ints, table: Floats) -> Ints:
        return np.concatenate([kept[whole], len(table) + np.arange(len(old)).reshape(-1, 3)])

    normal_index = np.arange(3 * len(part.triangles)).reshape(-1, 3)
    return replace(
        part,
        points=np.concatenate([part.points, between(part.points, part.triangles)]),
        triangles=index(part.triangles, part.points),
        normals=np.concatenate([part.normals[normal_index[whole].ravel()], between(part.normals, normal_index)]),
        colors=np.concatenate([part.colors, between(part.colors, part.color_index)]),
        color_index=index(part.color_index, part.colors),
        uvs=np.concatenate([part.uvs, between(part.uvs, part.uv_index)]),
        uv_index=index(part.uv_index, part.uvs),
        image=np.concatenate([part.image[whole], part.image[old[::3]]]),
    )


def _clipped_lines(part: RenderPart, depth: Floats) -> RenderPart:
    """Lines shortened to what is ahead."""
    ends = depth[part.lines]
    ahead = ends > NEAR_PLANE
    whole = part.lines[ahead.all(axis=1)]
    across = ahead[:, 0] != ahead[:, 1]
    if not across.any():
        return replace(part, lines=whole)
    a, b = np.where(ahead[across, :1], part.lines[across], part.lines[across][:, ::-1]).T
    t = (1 - 1e-9) * (depth[a] - NEAR_PLANE) / (depth[a] - depth[b])
    cut = part.points[a] + t[:, None] * (part.points[b] - part.points[a])
    lines = np.stack([a, len(part.points) + np.arange(len(a))], axis=1)
    return replace(part, points=np.concatenate([part.points, cut]), lines=np.concatenate([whole, lines]))
