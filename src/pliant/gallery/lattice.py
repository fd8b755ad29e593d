"""Lattices that built-in shapes are cut from: the surface of a box in quads, and solid blocks in tetrahedra.

A box of a × b × c cells has ``2 (ab + bc + ca) + 2`` vertices on its surface. The three counts are chosen so that this
is near the requested number and the cells are near square. A cell of a solid block is cut into six tetrahedra along
one diagonal (Kuhn's), a prism into three with the diagonals from its lowest-numbered vertices; both cuts agree between
neighbours, so the tetrahedra meet face to face.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np

from pliant.core.shapes import Layer
from pliant.core.topology import Floats, Ints

Cells = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class BoxSurface:
    """The surface of the box [-1, 1]³, in quads facing outwards."""

    points: Floats
    """(n, 3)"""
    quads: Ints
    """(q, 4)"""
    uvs: Layer
    """Each of the six sides fills the unit square."""


def surface_count(cells: Cells) -> int:
    """Vertices on the surface of a box of cells."""
    a, b, c = cells
    return 2 * (a * b + b * c + c * a) + 2


def surface_cells(n: int, size: Sequence[float]) -> Cells:
    """Cells along the three edges of a box of this size, for about n vertices on its surface, cells near square."""
    x, y, z = size
    edge = np.sqrt(2 * (x * y + y * z + z * x) / max(n - 2, 6))

    def near(length: float) -> range:
        return range(max(1, int(length / edge) - 1), int(length / edge) + 3)

    def badness(cells: Cells) -> float:
        shape = np.log([x / cells[0] / edge, y / cells[1] / edge, z / cells[2] / edge])
        return float(10 * abs(surface_count(cells) - n) / n + np.abs(shape).sum())

    choices = [(max(1, round((n - 2 - 2 * b * c) / (2 * (b + c)))), b, c) for b, c in product(near(y), near(z))]
    return min(choices, key=badness)


def box_surface(cells: Cells) -> BoxSurface:
    """Vertices and quads of the six sides, joined along the edges."""
    shape = tuple(k + 1 for k in cells)
    quads, positions = [], []
    for axis, end in product(range(3), (0, 1)):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        i, j = np.meshgrid(np.arange(shape[u]), np.arange(shape[v]), indexing="ij")
        index = np.empty((3, *i.shape), dtype=np.int64)
        index[axis], index[u], index[v] = end * cells[axis], i, j
        ids = np.asarray(np.ravel_multi_index(tuple(index), shape))
        around = [ids[:-1, :-1], ids[1:, :-1], ids[1:, 1:], ids[:-1, 1:]]
        at = [np.stack([i, j], axis=-1)[s] / [cells[u], cells[v]] for s in _QUAD_CORNERS]
        winding = slice(None) if end else slice(None, None, -1)
        quads.append(np.stack(around[winding], axis=-1).reshape(-1, 4))
        positions.append(np.stack(at[winding], axis=-2).reshape(-1, 2))
    used, renumbered = np.unique(np.concatenate(quads), return_inverse=True)
    lattice = np.stack(np.unravel_index(used, shape), axis=1)
    values, index = np.unique(np.concatenate(positions), axis=0, return_inverse=True)
    points = 2 * lattice / np.array(cells) - 1
    return BoxSurface(points, renumbered.reshape(-1, 4), Layer(values, index.ravel()))


_QUAD_CORNERS = tuple((slice(a, a - 1 or None), slice(b, b - 1 or None)) for a, b in ((0, 0), (1, 0), (1, 1), (0, 1)))


def block_cells(n: int, size: Sequence[float]) -> Cells:
    """Cells along the three edges of a solid block of this size, for about n vertices, cells near cubes."""
    x, y, z = size
    edge = float(np.cbrt(x * y * z / n))
    for _ in range(20):  # n counts vertices, one more than cells in each direction
        edge *= float(np.cbrt((x / edge + 1) * (y / edge + 1) * (z / edge + 1) / n))

    def badness(cells: Cells) -> float:
        count = (cells[0] + 1) * (cells[1] + 1) * (cells[2] + 1)
        shape = np.log([x / cells[0] / edge, y / cells[1] / edge, z / cells[2] / edge])
        return float(10 * abs(count - n) / n + np.abs(shape).sum())

    near = [range(max(1, int(length / edge) - 1), int(length / edge) + 3) for length in (y, z)]
    choices = [(max(1, round(n / ((b + 1) * (c + 1))) - 1), b, c) for b, c in product(*near)]
    return min(choices, key=badness)


def block_tets(cells: Cells) -> tuple[Floats, Ints]:
    """Points (n, 3) in [-1, 1]³ and tetrahedra (6 a b c, 4) of positive volume."""
    shape = tuple(k + 1 for k in cells)
    lattice = np.stack(np.meshgrid(*(np.arange(k) for k in shape), indexing="ij"), axis=-1)
    corner = lattice[:-1, :-1, :-1].reshape(-1, 3)
    tets = []
    for order in permutations(range(3)):
        steps = np.vstack([np.zeros(3, dtype=int), np.cumsum(np.eye(3, dtype=int)[list(order)], axis=0)])
        ids = [np.ravel_multi_index(tuple((corner + step).T), shape) for step in steps]
        odd = np.linalg.det(np.eye(3)[list(order)]) < 0
        tets.append(np.stack([ids[0], ids[2], ids[1], ids[3]] if odd else ids, axis=1))
    return 2 * lattice.reshape(-1, 3) / np.array(cells) - 1, np.concatenate(tets)


def prism_tets(triangles: Ints, layer: int, layers: int) -> Ints:
    """Tetrahedra of the prisms over `triangles` (facing up), stacked `layers` times, `layer` vertices apart."""
    rolled = np.argmin(triangles, axis=1)[:, None] + np.arange(3)
    a, b, c = np.take_along_axis(triangles, rolled % 3, axis=1).T  # a is lowest, the orientation is kept
    A, B, C = a + layer, b + layer, c + layer
    straight = np.stack([np.stack(t, 1) for t in ((a, b, c, C), (a, b, C, B), (a, B, C, A))], axis=1)
    swapped = np.stack([np.stack(t, 1) for t in ((a, b, c, B), (a, B, c, C), (a, B, C, A))], axis=1)
    one = np.where((b < c)[:, None, None], straight, swapped).reshape(-1, 4)
    return (one + layer * np.arange(layers)[:, None, None]).reshape(-1, 4)


def square_to_disc(u: Floats, v: Floats) -> tuple[Floats, Floats]:
    """The square [-1, 1]² onto the unit disc, squares to circles, evenly around (Shirley and Chiu's map)."""
    wide = np.abs(u) > np.abs(v)
    radius = np.where(wide, u, v)
    ratio = np.divide(np.where(wide, v, u), radius, out=np.zeros_like(u), where=radius != 0)
    angle = np.where(wide, np.pi / 4 * ratio, np.pi / 2 - np.pi / 4 * ratio)
    return radius * np.cos(angle), radius * np.sin(angle)
