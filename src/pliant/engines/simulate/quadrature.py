"""Quadrature: places and weights with which integrals over the body are sums.

Background cells are cubes, cut by the surface. Each cut cell has one Gauss point: the centre of what is inside, with
its volume as weight, which integrates linear functions exactly. The part of a cell that is inside is known in chunks
(`pliant.engines.simulate.interior`).

- Where nodes are denser, in thin parts, cells are halved, and once more, so that there are about as many a node.
- A cell that holds two parts of the body, such as two fingers, is two cells: chunks belong together if they touch.
- A cell of which the surface leaves little (`SMALL`) joins the neighbour with which it shares most of its faces.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pliant.core.topology import Floats, Ints, connected_parts
from pliant.core.values import Value, locked
from pliant.engines.simulate.interior import Body, Chunks, fill, touching_chunks
from pliant.engines.simulate.nodes import REACH, Nodes

DENSITY = 2.6
"""Whole cells in the volume of a node where nodes are farthest apart; with what the surface cuts, two a node."""
FINE = 4
"""Chunks along each side of a cell."""
SMALL = 0.3
"""Share of a whole cell below which a cut one joins a neighbour."""


@dataclass(frozen=True, eq=False)
class Quadrature(Value):
    """Points and weights for integrals over a body."""

    points: Floats
    """(q, 3)"""
    weights: Floats
    """(q,) volumes; their sum is the body's."""

    def __len__(self) -> int:
        return len(self.points)


def quadrature(mesh: Body, nodes: Nodes) -> Quadrature:
    """Gauss points in background cells, cut by the surface, about two a node."""
    spacing = nodes.radii[: nodes.free].max() / REACH
    size = float(spacing) / DENSITY ** (1 / 3)
    chunks = fill(nodes.surface, size / FINE)
    level = _levels(chunks, nodes)
    cell = _numbered(chunks.cells // (FINE >> level)[:, None], level)
    touching = touching_chunks(chunks)
    inner = cell[touching[:, 0]] == cell[touching[:, 1]]
    part = connected_parts(len(cell), touching[inner])
    whole = (size / 2.0**level) ** 3
    part = _joined(part, touching[~inner], chunks.volumes, whole)
    weights = np.bincount(part, chunks.volumes)
    moment = np.stack([np.bincount(part, chunks.volumes * x) for x in chunks.points.T], axis=1)
    return Quadrature(locked(moment / weights[:, None]), locked(weights))


def _numbered(cells: Ints, level: Ints) -> Ints:
    """(k,) one number for each cell (k, 3) of a level."""
    local = np.concatenate([cells - cells.min(axis=0), level[:, None]], axis=1)
    return np.unique(np.ravel_multi_index(tuple(local.T), tuple(local.max(axis=0) + 1)), return_inverse=True)[1]


def _levels(chunks: Chunks, nodes: Nodes) -> Ints:
    """(k,) how often the cell of each chunk is halved, by the spacing of the node nearest to its middle."""
    from scipy.spatial import cKDTree

    cell = _numbered(chunks.cells // FINE, np.zeros(len(chunks.cells), dtype=np.int64))
    count = np.bincount(cell)
    middle = np.stack([np.bincount(cell, x) for x in chunks.points.T], axis=1) / count[:, None]
    radii = nodes.radii[: nodes.free]
    near = radii[cKDTree(nodes.points[: nodes.free]).query(middle)[1]]
    return np.clip(np.round(np.log2(radii.max() / near)), 0, 2).astype(np.int64)[cell]


def _joined(part: Ints, contacts: Ints, volumes: Floats, whole: Floats) -> Ints:
    """(k,) the parts numbered anew, small ones as part of the larger neighbour that they share most faces with."""
    volume = np.bincount(part, volumes)
    full = np.zeros(len(volume))
    full[part] = whole
    pairs = part[contacts]
    pairs = np.concatenate([pairs, pairs[:, ::-1]])
    pairs = pairs[(volume < SMALL * full)[pairs[:, 0]] & (volume[pairs[:, 1]] > volume[pairs[:, 0]])]
    keys, shared = np.unique(pairs[:, 0] * len(volume) + pairs[:, 1], return_counts=True)
    pairs = np.stack(np.divmod(keys, len(volume)), axis=1)
    pairs = pairs[np.lexsort((shared, pairs[:, 0]))]
    target = np.arange(len(volume))
    target[pairs[:, 0]] = pairs[:, 1]  # the last of several, which shares most
    while (target[target] != target).any():
        target = target[target]
    return np.unique(target[part], return_inverse=True)[1]
