"""Surface nets: a mesh of where a field, sampled on a grid, changes its sign (Gibson 1998).

A grid cell whose corners lie on both sides of the surface gets one vertex (the mean of the crossings on its edges), and
each grid edge that crosses the surface gets the quad of its four cells. Seen as voxels, the quads are the faces between
inside and outside samples, so the mesh is manifold exactly if no two voxels of one kind touch in an edge or a corner
only (Latecki's well-composed sets); where they do, the sample nearest to the surface changes sides.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from pliant.core.topology import Floats, Ints
from pliant.native import kernels

_CELL_CORNERS = np.array(list(product((0, 1), repeat=3)))
_EDGES = np.array(
    [(a, b) for a in range(8) for b in range(a + 1, 8) if np.abs(_CELL_CORNERS[a] - _CELL_CORNERS[b]).sum() == 1]
)


def corner_cases(inside: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """One byte a cell: which of its eight corners lie inside."""
    nx, ny, nz = (s - 1 for s in inside.shape)
    cases = np.zeros((nx, ny, nz), dtype=np.uint8)
    for bit, (i, j, k) in enumerate(_CELL_CORNERS):
        cases |= inside[i : i + nx, j : j + ny, k : k + nz].astype(np.uint8) << np.uint8(bit)
    return cases


def mixed(cases: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which cells have corners on both sides."""
    return (cases != 0) & (cases != 255)


def _critical_table() -> NDArray[np.bool_]:
    """(256,) whether a cell's pattern lets voxels touch in an edge or a corner only."""
    bad = np.zeros(256, dtype=bool)
    faces = [np.flatnonzero(_CELL_CORNERS[:, axis] == side) for axis in range(3) for side in (0, 1)]
    for case in range(256):
        bits = (case >> np.arange(8)) & 1
        across = any(bits[a] == bits[d] != bits[b] == bits[c] for a, b, c, d in faces)
        lonely = any(bits[v] == bits[7 - v] and (np.delete(bits, [v, 7 - v]) != bits[v]).all() for v in range(4))
        bad[case] = across or lonely
    return bad


_CRITICAL = _critical_table()
SAMPLE_ROUNDS = 20
"""Rounds of single samples changing sides; after that whole cells are filled."""


def surface_nets(values: NDArray[np.float32], origin: Floats, cell: float) -> tuple[Floats, Ints]:
    """Vertices and quads, facing out, of the surface of a sampled field, negative inside; single samples may change."""
    step = np.array([values.shape[1] * values.shape[2], values.shape[2], 1])
    kernels.nets_make_well_composed(values, _CRITICAL, SAMPLE_ROUNDS, 1000)
    cells = np.flatnonzero(mixed(corner_cases(values < 0)))
    shape = tuple(s - 1 for s in values.shape)
    lattice_index = np.stack(np.unravel_index(cells, shape), axis=1)
    at = np.ravel_multi_index(tuple(lattice_index.T), values.shape)
    corner = values.reshape(-1)[at[:, None] + _CELL_CORNERS @ step].astype(np.float64)
    a, b = corner[:, _EDGES[:, 0]], corner[:, _EDGES[:, 1]]
    crossing = (a < 0) != (b < 0)
    t = np.clip(a / np.where(crossing, a - b, 1.0), 0.05, 0.95)[..., None]
    spots = (1 - t) * _CELL_CORNERS[_EDGES[:, 0]] + t * _CELL_CORNERS[_EDGES[:, 1]]
    inside = (spots * crossing[..., None]).sum(axis=1) / crossing.sum(axis=1)[:, None]
    return origin + cell * (lattice_index + inside), _quads(corner < 0, cells, shape)


def _quads(inside: NDArray[np.bool_], cells: Ints, shape: tuple[int, ...]) -> Ints:
    """(q, 4) the four cells around every crossing grid edge, outward."""
    step = np.array([shape[1] * shape[2], shape[2], 1])
    quads = []
    for axis in range(3):
        u, v = step[(axis + 1) % 3], step[(axis + 2) % 3]
        far = int(np.flatnonzero((np.eye(3, dtype=int)[axis] == _CELL_CORNERS).all(axis=1))[0])
        for leaving in (True, False):
            here = cells[(inside[:, 0] == leaving) & (inside[:, far] != leaving)]
            ring = np.stack([here, here - u, here - u - v, here - v], axis=1)
            quads.append(ring if leaving else ring[:, ::-1])
    return np.searchsorted(cells, np.concatenate(quads))
