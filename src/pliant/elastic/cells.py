"""Quadrature: places and weights with which integrals over the body are sums.

Background cells are cubes, cut by the surface. Each cut cell has one Gauss point: the centre of what is inside, with
its volume as weight, which integrates linear functions exactly. The part of a cell that is inside is known in chunks
(`pliant.elastic.interior`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pliant.elastic.interior import Body, Chunks, fill
from pliant.elastic.nodes import REACH, Nodes
from pliant.topology import Floats
from pliant.values import Value, locked

DENSITY = 2.0
"""Cells a node."""
FINE = 4
"""Chunks along each side of a cell."""


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
    spacing = float(np.median(nodes.radii)) / REACH
    size = spacing / DENSITY ** (1 / 3)
    return _cut_cells(fill(nodes.surface, size / FINE), FINE)


def _cut_cells(chunks: Chunks, per_side: int) -> Quadrature:
    """One point a cell: the centre of its chunks."""
    cells = chunks.cells // per_side
    cells -= cells.min(axis=0)
    _, owner = np.unique(np.ravel_multi_index(tuple(cells.T), tuple(cells.max(axis=0) + 1)), return_inverse=True)
    weights = np.bincount(owner, chunks.volumes)
    moment = np.stack([np.bincount(owner, chunks.volumes * x) for x in chunks.points.T], axis=1)
    return Quadrature(locked(moment / weights[:, None]), locked(weights))
