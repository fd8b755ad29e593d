"""The inside of a surface as voxels, with the depth of each below the surface.

Inside is where the winding number exceeds one half, so the surface may have several parts, small holes, seams that are
not joined, and may cross itself. The number is looked at on a coarse grid first; only blocks that the surface passes,
or where it is neither clearly 0 nor clearly 1 or more, are looked at voxel by voxel.

The grid is chosen so that about `COUNT` voxels lie inside, whatever the shape: a slender one gets a finer grid. Pieces
that do not hang together are joined by straight lines of voxels where they are nearest; specks are left out.

All is done in a frame in which the box around the surface is centred and has a diagonal of 1.

*Neighbours.* Each voxel has up to 26; an entry of -1 stands for none. Steps across an edge or a corner need a voxel
beside them, so that no path slips through between two limbs that touch in a corner.

*Shortest paths* (Dijkstra): a step from voxel a to voxel b of length s costs ``s (c_a + c_b) / 2``.

*Peaks.* Voxels are taken in from the highest to the lowest. A voxel with no neighbour taken in yet begins a component
at a peak; one that touches several joins them. Where at least two of them rise above the meeting point by more than
`least`, the meeting ends their arcs and begins a new one; else the lower peaks are swallowed by the highest. So arcs
form a tree: leaves are limbs that stick out, inner arcs what lies between two forks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import InputError
from pliant.core.shapes import Mesh, TetMesh, bounding_diagonal
from pliant.core.topology import Floats, Ints
from pliant.core.validation import check_extent
from pliant.geometry.spatial import SurfaceTree, surface_of
from pliant.native import kernels

COUNT = 100_000
"""Voxels wanted inside."""
MOST_VOXELS = 24_000_000
"""Voxels of the box, at most."""
EXACT_DEPTH = 4.0
"""Depth in voxels up to which it is measured exactly."""
BLOCK_EDGE = 4
"""Voxels along the edge of a block."""
WINDING_MARGIN = 0.2
"""How far from one half a block's winding numbers are where they need no closer look."""
FACE_OFFSET = 1e-4
"""Height above a face, over the diagonal, at which it is tested whether that is inside."""
ENCLOSED = 0.85
"""Winding number of most of the inside, at least."""
MOST_FACES = 16
"""That a segment may pass behind which it is still inside."""
SPECK = 0.08
"""Extent of pieces that are left out, at most, over the diagonal."""
FIRST_GRID_VOXELS = 20_000
"""Voxels of the box in a first look at a shape that seems to have no volume."""
NO_VOLUME = "the mesh encloses no volume; expected a closed surface, or one with small holes"
LEAST_VOLUME = 1e-6
"""Volume over the cube of the diagonal below which a shape has no inside to speak of."""


@dataclass(frozen=True, eq=False)
class Solid:
    """A surface that faces outwards, in a frame of its own."""

    tree: SurfaceTree
    centre: Floats
    """(3,) of the frame, in the shape's units."""
    size: float
    """Length of the frame's unit, in the shape's units."""

    @classmethod
    def of(cls, shape: Mesh | TetMesh) -> Solid:
        """The surface of a shape, or an error that says why it has no inside."""
        points, triangles = surface_of(shape)
        if not len(triangles):
            raise InputError("the mesh has no faces; expected a closed surface with an inside")
        used = points[np.unique(triangles)]
        check_extent(used, "the mesh")
        size = bounding_diagonal(used)
        centre = (used.min(axis=0) + used.max(axis=0)) / 2
        tree = SurfaceTree((points - centre) / size, triangles)
        if tree.facing < 0:
            tree = SurfaceTree(tree.points, triangles[:, ::-1])
        return cls(tree, centre, size)

    def outwards(self, points: Floats) -> Floats:
        """Points of the frame, in the shape's units."""
        return points * self.size + self.centre

    @cached_property
    def skin(self) -> SurfaceTree:
        """The surface without faces that lie inside: those of parts that overlap. Depths and rays use it."""
        corners = self.tree.points[self.tree.triangles]
        normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
        buried = np.arange(len(corners))
        for weights in ((1, 1, 1), (8, 1, 1), (1, 8, 1), (1, 1, 8)):
            position = np.einsum("k,tkd->td", np.array(weights) / sum(weights), corners[buried])
            buried = buried[self.tree.winding(position + FACE_OFFSET * normal[buried]) > 0.5 + WINDING_MARGIN]
        kept = np.delete(self.tree.triangles, buried, axis=0)
        return SurfaceTree(self.tree.points, kept) if 0 < len(kept) < len(corners) else self.tree

    def contains(self, starts: Floats, ends: Floats, *, samples: int = 8) -> NDArray[np.bool_]:
        """(s,) whether segments from (s, 3) to (s, 3) stay inside: at all samples, and behind all faces in between."""
        steps = np.linspace(0, 1, samples)[:, None, None]
        samples_at = starts + steps * (ends - starts)
        inside = np.asarray(self.tree.inside(samples_at.reshape(-1, 3)).reshape(samples, -1).all(axis=0))
        left, position = np.flatnonzero(inside), starts.copy()
        for _ in range(MOST_FACES):
            met = self.skin.first_hit(position[left], ends[left], leaving=True)[0]
            left = left[np.isfinite(met)]
            if not left.size:
                break
            displacement = ends[left] - position[left]
            length = np.maximum(np.linalg.norm(displacement, axis=1, keepdims=True), 1e-300)
            position[left] += np.minimum(met[np.isfinite(met), None] + FACE_OFFSET / length, 1.0) * displacement
            behind = self.tree.inside(position[left])
            inside[left[~behind]] = False
            left = left[behind & (np.linalg.norm(ends[left] - position[left], axis=1) > FACE_OFFSET)]
        return inside


@dataclass(frozen=True, eq=False)
class Voxels:
    """The voxels inside a solid."""

    solid: Solid
    cells: Ints
    """(n, 3) where each is in the grid."""
    number: Ints
    """(nx, ny, nz) each voxel's number, -1 for those outside; the border holds none inside."""
    origin: Floats
    """(3,) the middle of the first voxel of the grid."""
    cell: float
    """Edge of a voxel, over the diagonal."""

    @cached_property
    def centres(self) -> Floats:
        """(n, 3) their middles."""
        return self.origin + self.cell * self.cells

    @cached_property
    def depth(self) -> Floats:
        """(n,) distance of their middles to the surface; far from it to half a voxel."""
        from scipy.ndimage import distance_transform_edt

        rough = distance_transform_edt(self.number >= 0)[tuple(self.cells.T)] - 0.5
        depth = rough * self.cell
        near = rough < EXACT_DEPTH
        depth[near] = self.solid.skin.closest(self.centres[near]).distance
        return depth

    @cached_property
    def graph(self) -> tuple[Ints, Floats]:
        """(n, 26) neighbours, -1 for none, and (26,) how far they are."""
        table, length = neighbours(self.cells, self.number)
        return table, length * self.cell


def voxelised(solid: Solid, *, count: int = COUNT) -> Voxels:
    """About `count` voxels inside, in a finer grid if a first guess gives too few; all hang together."""
    volume = abs(_volume(solid.tree))
    low, high = _bounds(solid.tree)
    box = float(np.prod(np.maximum(high - low, 0.01)))
    if volume < LEAST_VOLUME and not len(_at(solid, (box / FIRST_GRID_VOXELS) ** (1 / 3), low, high).cells):
        raise InputError(NO_VOLUME)
    for _ in range(3):
        cell = max((max(volume, LEAST_VOLUME) / count) ** (1 / 3), (box / MOST_VOXELS) ** (1 / 3))
        voxels = _at(solid, cell, low, high)
        found = len(voxels.cells)
        if found * cell**3 < LEAST_VOLUME:
            raise InputError(NO_VOLUME)
        _check_closed(voxels)
        if found > 0.5 * count or cell <= 1.01 * (box / MOST_VOXELS) ** (1 / 3):
            break
        volume = found * cell**3
    return _joined(voxels)


def _check_closed(voxels: Voxels) -> None:
    """Refuse what is more hole than surface: there the winding number is between one half and one."""
    some = voxels.centres[:: max(1, len(voxels.cells) // 1000)]
    number = float(np.median(voxels.solid.tree.winding(some)))
    if number < ENCLOSED:
        raise InputError(
            f"the mesh is open: its surface is seen in {100 * number:.0f} % of all directions from its inside; "
            "expected a closed surface, or one with small holes"
        )


def _volume(tree: SurfaceTree) -> float:
    a, b, c = np.moveaxis(tree.points[tree.triangles], 1, 0)
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6)


def _bounds(tree: SurfaceTree) -> tuple[Floats, Floats]:
    used = tree.points[np.unique(tree.triangles)]
    return used.min(axis=0), used.max(axis=0)


def _at(solid: Solid, cell: float, low: Floats, high: Floats) -> Voxels:
    """The voxels of a given edge."""
    blocks = np.ceil((high - low) / (BLOCK_EDGE * cell)).astype(int) + 2
    shape = blocks * BLOCK_EDGE
    origin = (low + high - cell * (shape - 1)) / 2
    inside = _inside(solid.tree, blocks, origin, cell)
    inside[[0, -1]], inside[:, [0, -1]], inside[:, :, [0, -1]] = False, False, False
    return _numbered(solid, inside, origin, cell)


def _numbered(solid: Solid, inside: NDArray[np.bool_], origin: Floats, cell: float) -> Voxels:
    cells = np.argwhere(inside)
    number = np.full(inside.shape, -1)
    number[tuple(cells.T)] = np.arange(len(cells))
    return Voxels(solid, cells, number, origin, cell)


def _joined(voxels: Voxels) -> Voxels:
    """Pieces joined to the largest one, nearest first, by lines of voxels; specks left out."""
    from scipy.ndimage import label
    from scipy.spatial import cKDTree

    inside = voxels.number >= 0
    piece, count = label(inside)
    if count == 1:
        return voxels
    of = piece[tuple(voxels.cells.T)]
    sizes = np.bincount(of)
    joined = of == np.argmax(sizes)
    rest = [p for p in range(1, count + 1) if p != np.argmax(sizes) and _is_large(voxels.cells[of == p], voxels)]
    inside = np.zeros_like(inside)
    while rest:
        tree = cKDTree(voxels.cells[joined])
        links = {p: tree.query(voxels.cells[of == p]) for p in rest}
        nearest = min(rest, key=lambda p: links[p][0].min())
        far = int(np.argmin(links[nearest][0]))
        ends = voxels.cells[of == nearest][far], voxels.cells[joined][links[nearest][1][far]]
        inside[tuple(_staircase(ends[0], ends[1]).T)] = True
        joined |= of == nearest
        rest.remove(nearest)
    inside[tuple(voxels.cells[joined].T)] = True
    return _numbered(voxels.solid, inside, voxels.origin, voxels.cell)


def _staircase(start: Ints, end: Ints) -> Ints:
    """(k, 3) voxels between two, each beside the next."""
    steps = np.linspace(0, 1, 2 * int(np.abs(end - start).max()) + 1)[:, None]
    line = np.round(start + steps * (end - start)).astype(np.int64)
    first, second = line.copy(), line.copy()
    first[1:, 0], second[1:, :2] = line[:-1, 0], line[:-1, :2]
    return np.concatenate([line, first, second])


def _is_large(cells: Ints, voxels: Voxels) -> bool:
    """Whether a piece is more than a speck."""
    return float(np.linalg.norm(np.ptp(cells, axis=0))) * voxels.cell > SPECK


def _inside(tree: SurfaceTree, blocks: Ints, origin: Floats, cell: float) -> NDArray[np.bool_]:
    """(nx, ny, nz) which voxels of a grid of blocks lie inside."""
    nodes = origin + BLOCK_EDGE * cell * (np.indices(tuple(blocks)).reshape(3, -1).T + 0.5) - cell / 2
    coarse = tree.winding(nodes)
    reach = BLOCK_EDGE * cell * np.sqrt(3) / 2
    near = np.isfinite(tree.closest(nodes, within=1.01 * reach).distance) | (np.abs(coarse - 0.5) < WINDING_MARGIN)
    values = np.repeat((coarse > 0.5)[:, None], BLOCK_EDGE**3, axis=1)
    corner = nodes[near] - (BLOCK_EDGE - 1) / 2 * cell
    steps = cell * np.indices((BLOCK_EDGE,) * 3).reshape(3, -1).T
    values[near] = tree.inside((corner[:, None] + steps).reshape(-1, 3)).reshape(-1, BLOCK_EDGE**3)
    grid = values.reshape(*blocks, BLOCK_EDGE, BLOCK_EDGE, BLOCK_EDGE).transpose(0, 3, 1, 4, 2, 5)
    return np.ascontiguousarray(grid.reshape(blocks * BLOCK_EDGE))


def neighbours(cells: Ints, number: Ints) -> tuple[Ints, Floats]:
    """(n, 26) neighbours of the voxels `cells` (n, 3), and (26,) how far they are, in cells.

    number: (nx, ny, nz) each voxel's number, -1 for those that do not count; its border holds none that do.
    """
    table, length = np.empty((len(cells), 26), np.int64), np.empty(26)
    kernels.curve_skeleton_neighbours(cells, number, table, length)
    return table, length


def shortest_paths(table: Ints, length: Floats, cost: Floats, sources: Ints) -> tuple[Floats, Ints]:
    """(n,) cost of the cheapest path from the sources (infinite: none), and (n,) the voxel before (-1: a source)."""
    reached, before = np.empty(len(table)), np.empty(len(table), np.int64)
    kernels.curve_skeleton_shortest_paths(table, length, cost, sources, reached, before)
    return reached, before


def peak_tree(table: Ints, height: Floats, order: Ints, least: float) -> tuple[Ints, Ints, Ints, Ints]:
    """The tree of a field's peaks, arcs from peaks downwards.

    order: (n,) all voxels from the highest to the lowest.
    Returns: (n,) the arc of each voxel; (a,) the arc in which each one ends, itself if in none; (a,) the peak of each
    arc with all above it; (a,) the voxel where each arc ends, -1 if it does not.
    """
    arc_of, into, peak, end = (np.empty(len(table), np.int64) for _ in range(4))
    arcs = kernels.curve_skeleton_peak_tree(table, height, order, least, arc_of, into, peak, end)
    return arc_of, into[:arcs].copy(), peak[:arcs].copy(), end[:arcs].copy()
