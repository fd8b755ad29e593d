"""The face's quads: one grid of rows and columns, slit at the mouth and the eyes.

Rows run from under the chin (0) to the hairline, columns from the right ear to the left ear. The row at the mouth and
the row at the eyes are slit between two columns: each vertex inside a slit exists twice, on the upper and on the lower
lip or lid. The loop around a slit (corner, upper side, corner, lower side) is continued by rings of the same number of
vertices that lead into the head: inside the lips they line the mouth and close it like a bag, inside the lids they
line the lids, fold back and make the eyeball. So the surface is one piece and its only boundary is the outer one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pliant.core.topology import Ints

EYE_RINGS_LID = 3
"""Rings that line a lid, from its margin to the fold behind it."""


@dataclass(frozen=True)
class Resolution:
    """How many columns and rows each stretch of the grid has."""

    nose: int
    """Columns from the middle to the inner corner of an eye."""
    eye: int
    """Columns across an eye."""
    side: int
    """Columns from the outer corner of an eye to the ear."""
    chin: int
    """Rows from the neck to the mouth."""
    middle: int
    """Rows from the mouth to the eyes."""
    brow: int
    """Rows from the eyes to the hairline."""
    eyeball: int
    """Rings of an eyeball, from the fold behind the lids to the pupil."""
    bag: int
    """Rings of the mouth's lining."""

    @classmethod
    def of_scale(cls, scale: float) -> Resolution:
        """The resolution whose edges are `scale` times as many as those of the plain one."""

        def about(count: float, least: int) -> int:
            return max(least, round(count * scale))

        return cls(
            about(8, 2), about(15, 4), about(13, 3), about(23, 4), about(27, 5), about(22, 3), about(9, 5), about(8, 4)
        )

    @property
    def half(self) -> int:
        """Columns from the middle to the ear."""
        return self.nose + self.eye + self.side

    @property
    def mouth(self) -> int:
        """Columns from the middle to a corner of the mouth."""
        return self.nose + max(1, round(0.42 * self.eye))

    @property
    def rows(self) -> int:
        """Rows of quads."""
        return self.chin + self.middle + self.brow

    @property
    def vertices(self) -> int:
        """Vertices of the whole face."""
        grid = (self.rows + 1) * (2 * self.half + 1)
        mouth = (2 * self.mouth - 1) + 4 * self.mouth * self.bag
        eye = (self.eye - 1) + 2 * self.eye * (EYE_RINGS_LID + self.eyeball) + 1
        return grid + mouth + 2 * eye


@dataclass(frozen=True, eq=False)
class Slit:
    """The loop around a slit and the rings that continue it inwards."""

    loop: Ints
    """(l,) vertices: right corner, upper side, left corner, lower side."""
    rings: Ints
    """(rings, l) vertices, from the loop inwards."""
    tip: int
    """The vertex that closes the innermost ring (an eye's pupil); -1 where a strip of quads closes it."""


@dataclass(frozen=True, eq=False)
class FaceGrid:
    """Connectivity, and where each vertex of the grid sits in rows and columns."""

    resolution: Resolution
    row: Ints
    """(g,) row of each skin vertex; the first `g` vertices are the skin."""
    column: Ints
    """(g,) column of each skin vertex, 0 in the middle, positive to the left."""
    side: Ints
    """(g,) 1 on the upper side of a slit, -1 on the lower, 0 elsewhere."""
    mouth: Slit
    eyes: tuple[Slit, Slit]
    """Right (-x), left (+x)."""
    faces: list[Ints]
    """Tables of quads and triangles, facing outwards."""
    count: int


def face_grid(resolution: Resolution) -> FaceGrid:
    """Lay the grid, slit it, and line the slits."""
    r = resolution
    wide = 2 * r.half + 1
    row, column = (a.ravel() for a in np.divmod(np.arange((r.rows + 1) * wide), wide))
    column = column - r.half
    side = np.zeros(len(row), dtype=np.int64)
    ids = np.arange(len(row)).reshape(r.rows + 1, wide)
    below = ids.copy()  # what the quads beneath a row refer to
    count = len(row)
    spans = [(r.chin, -r.mouth, r.mouth)]
    spans += [(r.chin + r.middle, a, a + r.eye) for a in (-r.nose - r.eye, r.nose)]
    loops, extra = [], []
    for level, start, stop in spans:
        inner = np.arange(start + 1, stop) + r.half
        copies = count + np.arange(len(inner))
        count += len(inner)
        below[level, inner] = copies
        side[ids[level, inner]] = 1
        extra.append(ids[level, inner])
        upper = ids[level, start + r.half : stop + r.half + 1]
        loops.append(np.concatenate([upper, copies[::-1]]))
    copied = np.concatenate(extra)
    row, column = np.concatenate([row, row[copied]]), np.concatenate([column, column[copied]])
    side = np.concatenate([side, np.full(len(copied), -1)])
    faces = [np.stack([ids[:-1, :-1], ids[:-1, 1:], below[1:, 1:], below[1:, :-1]], axis=-1).reshape(-1, 4)]
    slits = []
    for loop, depth, closed_by_tip in zip(
        loops, (r.bag, *[EYE_RINGS_LID + r.eyeball] * 2), (False, True, True), strict=True
    ):
        slit, count = _lined(loop, depth, closed_by_tip, count)
        faces += _lining_faces(slit)
        slits.append(slit)
    return FaceGrid(r, row, column, side, slits[0], (slits[1], slits[2]), faces, count)


def _lined(loop: Ints, depth: int, closed_by_tip: bool, count: int) -> tuple[Slit, int]:
    rings = count + np.arange(depth * len(loop)).reshape(depth, len(loop))
    count += rings.size
    return Slit(loop, rings, count if closed_by_tip else -1), count + closed_by_tip


def _lining_faces(slit: Slit) -> list[Ints]:
    """Quads between the rings, and what closes the innermost."""
    outer = np.vstack([slit.loop[None], slit.rings[:-1]])
    following = np.roll(np.arange(len(slit.loop)), -1)
    bands = np.stack([outer[:, following], outer, slit.rings, slit.rings[:, following]], axis=-1).reshape(-1, 4)
    last = slit.rings[-1]
    if slit.tip >= 0:
        return [bands, np.stack([last[following], last, np.full(len(last), slit.tip)], axis=-1)]
    half = len(last) // 2
    upper, lower = last[1:half], last[:half:-1]
    strip = np.stack([upper[1:], upper[:-1], lower[:-1], lower[1:]], axis=-1)
    ends = np.array([[upper[0], last[0], lower[0]], [last[half], upper[-1], lower[-1]]])
    return [bands, strip, ends]
