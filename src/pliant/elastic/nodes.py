"""Nodes: the points inside a body whose displacements are the unknowns, and the supports of their functions.

A centroidal Voronoi tessellation (Lloyd 1982) of the chunks that fill the body (`pliant.elastic.interior`): each free
node is the centre of the chunks that are nearest to it. The bones' samples take part, but stay where they are, so that
no free node comes too near to one. The support h_I is "adaptive to the local density": `REACH` times the cube root of
the volume that a node near I has to itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from pliant.checks import as_points
from pliant.elastic.interior import Body, Chunks, body_surface, enclosed_volume, fill
from pliant.errors import InputError
from pliant.spatial import SurfaceTree
from pliant.topology import Floats
from pliant.values import Value, locked, owned

REACH = 1.75
"""Support over the cube root of a node's volume: about 22 nodes reach a place deep inside."""
FINE = 4
"""Chunks along each side of a node's volume."""
ROUNDS = 8
"""Of moving nodes to the centres of their chunks."""
FEWEST = 8
"""Nodes that a body needs at least."""


@dataclass(frozen=True, eq=False)
class Nodes(Value):
    """Nodes in a body: the free ones first, then the fixed samples of the bones."""

    points: Floats
    """(n, 3)"""
    radii: Floats
    """(n,) supports h_I."""
    free: int
    """How many are free; the rest is fixed."""
    surface: SurfaceTree = field(repr=False)
    """The body's surface, facing outwards: what nodes do not see through."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", as_points(self.points, "nodes"))
        object.__setattr__(self, "radii", owned(self.radii, "radii", np.float64))
        if self.radii.shape != (len(self.points),) or not (self.radii > 0).all():
            raise InputError(f"radii have shape {self.radii.shape}; expected {len(self.points)} positive numbers")
        if not 0 <= self.free <= len(self.points):
            raise InputError(f"free is {self.free}; expected 0 to {len(self.points)}, the number of nodes")

    def __len__(self) -> int:
        return len(self.points)


def sample_nodes(mesh: Body, count: int, *, fixed: ArrayLike = ()) -> Nodes:
    """Place nodes in a body: `count` of them together with the `fixed` ones (s, 3), the samples of its bones.

    mesh: any shape that encloses something: a surface, also of several parts or with small holes; tetrahedra; or a
    point cloud with normals.
    """
    held = as_points(np.reshape(fixed, (-1, 3)) if np.size(fixed) == 0 else fixed, "fixed")
    if not isinstance(count, (int, np.integer)) or count < len(held) + FEWEST:
        raise InputError(
            f"count is {count!r:.40}; expected a whole number, {FEWEST} more than {len(held)} bone samples"
        )
    tree = body_surface(mesh)
    free = int(count) - len(held)
    spacing = (enclosed_volume(tree) / count) ** (1 / 3)
    chunks = fill(tree, spacing / FINE)
    points = _relaxed(_spread(chunks, free), held, chunks)
    return Nodes(locked(np.concatenate([points, held])), locked(_radii(points, held, chunks)), free, tree)


def _spread(chunks: Chunks, count: int) -> Floats:
    """(count, 3) chunks at equal steps of volume along a curve that visits neighbours one after the other."""
    order = np.argsort(_along_curve(chunks), kind="stable")
    filled = np.cumsum(chunks.volumes[order])
    chosen = np.searchsorted(filled, (np.arange(count) + 0.5) / count * filled[-1])
    return chunks.points[order[np.minimum(chosen, len(order) - 1)]]


def _along_curve(chunks: Chunks) -> Floats:
    """(k,) number of each chunk's cell along Morton's curve: its coordinates' bits, interleaved."""
    cells = (chunks.cells - chunks.cells.min(axis=0)).astype(np.uint64)
    number = np.zeros(len(cells), dtype=np.uint64)
    for bit in range(20):
        for axis in range(3):
            number |= ((cells[:, axis] >> np.uint64(bit)) & np.uint64(1)) << np.uint64(3 * bit + axis)
    return number


def _relaxed(points: Floats, held: Floats, chunks: Chunks) -> Floats:
    """Free nodes moved to the centres of the chunks nearest to them, again and again; the held ones stay."""
    from scipy.spatial import cKDTree

    for _ in range(ROUNDS):
        owner = cKDTree(np.concatenate([points, held])).query(chunks.points)[1]
        mass = np.bincount(owner, chunks.volumes, minlength=len(points) + len(held))[: len(points)]
        moment = [np.bincount(owner, chunks.volumes * x, minlength=len(points) + len(held)) for x in chunks.points.T]
        centre = np.stack(moment, axis=1)[: len(points)] / np.maximum(mass, 1e-300)[:, None]
        points = np.where(mass[:, None] > 0, centre, points)
    return chunks.points[cKDTree(chunks.points).query(points)[1]]


def _radii(points: Floats, held: Floats, chunks: Chunks) -> Floats:
    """(n,) supports, from the mean volume of the free nodes around each node."""
    from scipy.spatial import cKDTree

    tree = cKDTree(points)
    volume = np.bincount(tree.query(chunks.points)[1], chunks.volumes, minlength=len(points))
    near = tree.query(np.concatenate([points, held]), k=min(8, len(points)))[1]
    return REACH * np.cbrt(volume[near].mean(axis=1))
