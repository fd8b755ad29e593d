"""Quadrature points and weights for integrals over the body.

Background cells are cubes, clipped by the surface. Each has one Gauss point: the centroid of its part inside the body,
with the volume of that part as weight. This integrates linear functions exactly. The part inside is represented by
chunks (`pliant.engines.simulate.interior`).

- In thin parts, where nodes are denser, cells are halved up to twice, so that the number of cells per node is even.
- A cell that contains two parts of the body, such as two fingers, is split: its chunks are grouped by contact.
- A cell that is mostly outside (`SMALLEST_CELL`) is merged with the neighbour that shares most of its faces.

The dilatation is averaged over larger cells, one for each node (`dilatation_cells`): the quadrature points at which the
node's function is the largest. Functions do not reach across gaps, so such a cell does not either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pliant.core.topology import Floats, Ints, connected_parts
from pliant.core.values import Value, locked
from pliant.engines.simulate.interior import Chunks, Fillable, fill, touching_chunks
from pliant.engines.simulate.mls import Interpolation
from pliant.engines.simulate.nodes import SUPPORT_FACTOR, Nodes

CELLS_PER_NODE = 2.6
"""Cells in the volume of a node where nodes are farthest apart; with the cells that are clipped, two per node."""
CHUNKS_PER_CELL = 4
"""Chunks along each side of a cell."""
SMALLEST_CELL = 0.3
"""Share of a full cell below which a clipped one is merged with a neighbour."""


@dataclass(frozen=True, eq=False)
class Quadrature(Value):
    """Points and weights for integrals over a body."""

    points: Floats
    """(q, 3)"""
    weights: Floats
    """(q,) volumes; their sum is the body's."""

    def __len__(self) -> int:
        return len(self.points)

    def chosen(self, which: Ints) -> Quadrature:
        """Some of the points, in that order."""
        return Quadrature(locked(self.points[which]), locked(self.weights[which]))


def dilatation_cells(functions: Interpolation) -> tuple[Ints, Ints]:
    """An order (q,) of the quadrature points in which those of a cell follow each other, and (cells + 1,) where each
    cell starts then."""
    owner = np.repeat(np.arange(len(functions)), np.diff(functions.start))
    largest = np.lexsort((functions.phi, owner))[functions.start[1:] - 1]
    node = functions.node[largest]
    order = np.argsort(node, kind="stable")
    starts = np.flatnonzero(np.diff(node[order], prepend=-1))
    return order, np.append(starts, len(order))


def quadrature(mesh: Fillable, nodes: Nodes) -> Quadrature:
    """Gauss points in background cells, clipped by the surface, about two per node."""
    spacing = nodes.radii[: nodes.free].max() / SUPPORT_FACTOR
    size = float(spacing) / CELLS_PER_NODE ** (1 / 3)
    chunks = fill(nodes.surface, size / CHUNKS_PER_CELL)
    level = _levels(chunks, nodes)
    cell = _numbered(chunks.cells // (CHUNKS_PER_CELL >> level)[:, None], level)
    touching = touching_chunks(chunks)
    inner = cell[touching[:, 0]] == cell[touching[:, 1]]
    part = connected_parts(len(cell), touching[inner])
    whole = (size / 2.0**level) ** 3
    part = _joined(part, touching[~inner], chunks.volumes, whole)
    weights = np.bincount(part, chunks.volumes)
    moment = np.stack([np.bincount(part, chunks.volumes * x) for x in chunks.points.T], axis=1)
    return Quadrature(locked(moment / weights[:, None]), locked(weights))


def _numbered(cells: Ints, level: Ints) -> Ints:
    """(k,) a unique number for each cell (k, 3) of each level."""
    local = np.concatenate([cells - cells.min(axis=0), level[:, None]], axis=1)
    return np.unique(np.ravel_multi_index(tuple(local.T), tuple(local.max(axis=0) + 1)), return_inverse=True)[1]


def _levels(chunks: Chunks, nodes: Nodes) -> Ints:
    """(k,) how often the cell of each chunk is halved, by the spacing of the node nearest to its middle."""
    from scipy.spatial import cKDTree

    cell = _numbered(chunks.cells // CHUNKS_PER_CELL, np.zeros(len(chunks.cells), dtype=np.int64))
    count = np.bincount(cell)
    middle = np.stack([np.bincount(cell, x) for x in chunks.points.T], axis=1) / count[:, None]
    radii = nodes.radii[: nodes.free]
    near = radii[cKDTree(nodes.points[: nodes.free]).query(middle)[1]]
    return np.clip(np.round(np.log2(radii.max() / near)), 0, 2).astype(np.int64)[cell]


def _joined(part: Ints, contacts: Ints, volumes: Floats, whole: Floats) -> Ints:
    """(k,) new part numbers: small parts merged with the larger neighbour that shares most of their faces."""
    volume = np.bincount(part, volumes)
    full = np.zeros(len(volume))
    full[part] = whole
    pairs = part[contacts]
    pairs = np.concatenate([pairs, pairs[:, ::-1]])
    pairs = pairs[(volume < SMALLEST_CELL * full)[pairs[:, 0]] & (volume[pairs[:, 1]] > volume[pairs[:, 0]])]
    keys, shared = np.unique(pairs[:, 0] * len(volume) + pairs[:, 1], return_counts=True)
    pairs = np.stack(np.divmod(keys, len(volume)), axis=1)
    pairs = pairs[np.lexsort((shared, pairs[:, 0]))]
    target = np.arange(len(volume))
    target[pairs[:, 0]] = pairs[:, 1]  # the last of several, which shares most
    while (target[target] != target).any():
        target = target[target]
    return np.unique(target[part], return_inverse=True)[1]
