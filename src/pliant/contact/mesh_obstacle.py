"""Closed triangle meshes as obstacles: checked and repaired once, then asked for signed distances, moved and deformed.

The mesh has to enclose a volume: split vertices are welded, collapsed triangles dropped, triangles that face
differently from their neighbours turned, parts that are inside out turned round, and parts within the solid of others
left out. What is still open, or has no sides to speak of, is refused. The sign of the distance comes from the normal at
the closest point (`pliant.geometry.spatial`), which is right as long as the surface does not cross itself. Parts
that cross each other are asked one by one, in as few layers as that takes; of one that crosses itself, triangles within
its own solid are not asked, which is right except next to where it crosses.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.contact.obstacles import Obstacle, rows
from pliant.core import rotations
from pliant.core.errors import InputError, PliantWarning
from pliant.core.interop import takes_meshes
from pliant.core.normals import triangle_normals, unit
from pliant.core.rotations import IDENTITY
from pliant.core.shapes import Mesh, as_points
from pliant.core.topology import Floats, Ints, connected_parts, consistent_triangles
from pliant.core.values import locked
from pliant.geometry.spatial import SurfaceTree

WELD_TOLERANCE = 1e-6
"""Distance, over the diagonal, at which open edges are joined if joining exact matches does not close the mesh."""
EMPTY_VOLUME = 1e-12
"""Volume, over the diagonal's cube, below which a mesh encloses nothing."""
CROSSED = 1e-3
"""Share of a surface that may lie inside itself without a word."""
THICKNESS_SAMPLES = 1000
"""Triangles from which a mesh's thickness is estimated."""
THIN_SHARE = 0.05
"""Share of the surface, by area, that is thinner than the estimate."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class MeshObstacle(Obstacle):
    """A closed triangle mesh."""

    surface: Mesh
    """Its triangles after the repairs, facing outwards."""
    kept: Ints
    """(vertices of `surface`,) the vertex of the given mesh that each was taken from."""
    count: int
    """Vertices of the given mesh."""
    turn: Floats = field(default_factory=lambda: IDENTITY)
    _layers: list[SurfaceTree] = field(default_factory=list)

    @takes_meshes("mesh")
    def __init__(self, mesh: Mesh) -> None:
        if not isinstance(mesh, Mesh):
            raise InputError(f"the obstacle is a {type(mesh).__name__}; expected a Mesh")
        surface, kept = solid_surface(mesh)
        vars(self).update(surface=surface, kept=locked(kept), count=len(mesh.points), turn=IDENTITY)
        vars(self).update(_layers=self._apart())

    def __repr__(self) -> str:
        return f"MeshObstacle({len(self.surface.points)} points, {len(self.surface.triangles)} triangles)"

    @cached_property
    def tree(self) -> SurfaceTree:
        """The surface, prepared for geometric queries."""
        return SurfaceTree(self.surface)

    def _apart(self) -> list[SurfaceTree]:
        """Trees of triangles that do not cross those of the same tree."""
        chosen = layers_of(self.surface.points, self.surface.triangles)
        if len(chosen) == 1 and len(chosen[0]) == len(self.surface.triangles):
            return [self.tree]
        return [SurfaceTree(self.surface.points, self.surface.triangles[rows]) for rows in chosen]

    def signed(self, points: ArrayLike) -> tuple[Floats, Floats]:
        """See `Obstacle.signed`. Of parts that stick in each other, the one counts that a point is deepest in."""
        distance, gradient = self._layers[0].signed(points)
        for tree in self._layers[1:]:
            other, towards = tree.signed(points)
            gradient = np.where((other < distance)[:, None], towards, gradient)
            distance = np.minimum(distance, other)
        return distance, gradient

    def clearance(self, points: Floats) -> Floats:
        """See `Obstacle.clearance`: the distance from the box around it."""
        low, high = self.surface.points.min(axis=0), self.surface.points.max(axis=0)
        return np.asarray(np.linalg.norm(np.maximum(np.maximum(low - points, points - high), 0), axis=1))

    def with_points(self, points: ArrayLike) -> MeshObstacle:
        """The same obstacle deformed: the given mesh's points elsewhere. Its triangles stay as they were repaired."""
        positions = as_points(points)
        if len(positions) != self.count:
            raise InputError(f"got {len(positions)} points; this obstacle's mesh has {self.count}")
        return self._with(locked(positions[self.kept]), self.turn)

    def _with(self, points: Floats, turn: Floats) -> MeshObstacle:
        other = object.__new__(MeshObstacle)
        surface, tree = self.surface.with_points(points), self.tree.moved(points)
        layers = [tree if layer is self.tree else layer.moved(points) for layer in self._layers]
        vars(other).update(surface=surface, kept=self.kept, count=self.count, turn=turn, tree=tree, _layers=layers)
        if "thickness" in vars(self):
            vars(other)["thickness"] = self.thickness
        return other

    def _moved(self, rotation: Floats, translation: Floats) -> MeshObstacle:
        points = rotations.rotate(rotation, self.surface.points) + translation
        return self._with(locked(points), rotations.multiply(rotation, self.turn))

    def _tessellated(self) -> Mesh:
        return self.surface

    def carried(self, points: ArrayLike, to: Obstacle) -> Floats:
        """(n, 3) where the motion of the closest triangle takes points: with its corners, and along its normal."""
        positions = rows(points)
        if not isinstance(to, MeshObstacle) or to.surface.triangles.shape != self.surface.triangles.shape:
            raise InputError(f"{self!r} cannot move to {to!r}; expected the same obstacle")
        if not len(positions):
            return positions.copy()
        near = self.tree.closest(positions)
        corners = self.surface.triangles[near.triangle]
        foot = np.einsum("nk,nkd->nd", near.barycentric, to.surface.points[corners])
        before, after = (_frames(o.surface.points, corners) for o in (self, to))
        return foot + np.einsum("nki,nkj,nj->ni", after, before, positions - near.points)

    @property
    def middle(self) -> Floats:
        """The middle of its bounding box."""
        points = self.surface.points
        return (points.min(axis=0) + points.max(axis=0)) / 2

    @cached_property
    def thickness(self) -> float:
        """How thick the thin parts are: along the inward normals, from a sample of the triangles."""
        return _thickness(self.tree)


def _frames(points: Floats, corners: Ints) -> Floats:
    """(n, 3, 3) rows: along the first edge, across it in the triangle's plane, and its normal."""
    normal = unit(triangle_normals(points, corners))
    along = unit(points[corners[:, 1]] - points[corners[:, 0]])
    return np.stack([along, np.cross(normal, along), normal], axis=1)


def _thickness(tree: SurfaceTree) -> float:
    corners = tree.points[tree.triangles]
    area = np.linalg.norm(triangle_normals(tree.points, tree.triangles), axis=1)
    order = np.argsort(-area, kind="stable")
    chosen = order[np.unique(np.linspace(0, np.count_nonzero(area) - 1, THICKNESS_SAMPLES).astype(int))]
    start = corners[chosen].mean(axis=1)
    inward = -unit(triangle_normals(tree.points, tree.triangles[chosen]))
    skin = 1e-6 * tree.diagonal
    begin = start + skin * inward
    fraction, _ = tree.first_hit(begin, begin + 2 * tree.diagonal * inward, leaving=True)
    through = skin + 2 * tree.diagonal * fraction
    ranked = np.argsort(through)
    share = np.cumsum(area[chosen][ranked]) / area[chosen].sum()
    found = through[ranked[np.searchsorted(share, THIN_SHARE)]]
    return float(found) if np.isfinite(found) else tree.diagonal


def solid_surface(mesh: Mesh) -> tuple[Mesh, Ints]:
    """The closed surface of a mesh, facing outwards, and the mesh's vertex that each of its vertices is."""
    if not len(mesh.triangles):
        raise InputError("the obstacle has no faces; expected a closed triangle mesh")
    for tolerance in (0.0, WELD_TOLERANCE):
        points, triangles, kept = _welded(mesh, tolerance)
        if not len(triangles):
            raise InputError("all of the obstacle's triangles are collapsed; expected a closed triangle mesh")
        rotated = _facing_alike(triangles, len(points))
        uses, balance = _edge_uses(rotated, len(points))
        if not (uses % 2).any():
            break
    if (uses == 1).any():
        raise InputError(
            f"the obstacle is open: {int((uses == 1).sum())} boundary edges; "
            "expected a closed mesh: fill its holes, or give it a thickness"
        )
    odd = int(((uses % 2) | balance).astype(bool).sum())
    if odd:
        raise InputError(
            f"the obstacle has no inside: faces that meet in {odd} of its edges cannot all face outwards; "
            "expected a closed mesh in which every edge joins two faces"
        )
    used, index = np.unique(_outward(points, rotated), return_inverse=True)
    return Mesh(points[used], index.reshape(-1, 3).astype(np.int64)), kept[used]


def _welded(mesh: Mesh, tolerance: float) -> tuple[Floats, Ints, Ints]:
    """Points and triangles with split vertices joined, without collapsed triangles and vertices they leave unused."""
    weld = mesh.welded(tolerance)
    table = weld.mesh.triangles
    table = table[(table != np.roll(table, 1, axis=1)).all(axis=1)]
    used, index = np.unique(table, return_inverse=True)
    return weld.mesh.points[used], index.reshape(-1, 3).astype(np.int64), weld.kept[used]


def _edge_uses(triangles: Ints, count: int) -> tuple[Ints, Ints]:
    """For each edge, how many triangles have it, and how many more run along it one way than the other."""
    start, end = triangles.ravel(), np.roll(triangles, -1, axis=1).ravel()
    key, number = np.unique(np.minimum(start, end) * count + np.maximum(start, end), return_inverse=True)
    forward = np.bincount(number, np.where(start < end, 1, -1), minlength=len(key))
    return np.bincount(number, minlength=len(key)), np.abs(forward).astype(np.int64)


def _facing_alike(triangles: Ints, count: int) -> Ints:
    """The triangles, if need be turned so that neighbours face the same side."""
    uses, balance = _edge_uses(triangles, count)
    if not (uses % 2).any() and not balance.any():
        return triangles
    return consistent_triangles(triangles, count)


def _outward(points: Floats, triangles: Ints) -> Ints:
    """The triangles with parts turned round that are inside out, without parts that lie within the solid of others.

    A part that faces inwards and lies within another is a cavity of it, and stays.
    """
    part = _parts(triangles, len(points))
    volume = _volumes(points, triangles, part)
    if not np.abs(volume).sum() > EMPTY_VOLUME * float(np.linalg.norm(np.ptp(points, axis=0))) ** 3:
        raise InputError("the obstacle encloses no volume; expected a closed mesh that is not flat")
    inverted = np.full(len(volume), bool(volume.sum() < -1e-9 * np.abs(volume).sum()))
    if len(volume) > 1:
        triangles = np.where(inverted[part][:, None], triangles[:, ::-1], triangles)
        faces_in = (volume < 0) ^ inverted
        around = _solid_around(points, triangles, part, faces_in)
        alone = faces_in & (around < 0.5)
        triangles = np.where(alone[part][:, None], triangles[:, ::-1], triangles)
        inverted ^= alone
        crossed = _crossing_parts(points, triangles, part)
        covered = np.where(faces_in, around > 1.5, around > 0.5) & ~np.isin(np.arange(len(volume)), crossed)
        triangles = triangles[~covered[part]]
    elif inverted.any():
        triangles = triangles[:, ::-1]
    if inverted.any():
        count = int(inverted.sum())
        some = "1 part that is" if count == 1 else f"{count} parts that are"
        what = "is inside out" if inverted.all() else f"has {some} inside out"
        warnings.warn(f"the obstacle {what}; turned round to face outwards", PliantWarning, stacklevel=5)
    return triangles


def _parts(triangles: Ints, count: int) -> Ints:
    """(m,) the connected part of each triangle, numbered from 0."""
    part = connected_parts(count, np.concatenate([triangles[:, :2], triangles[:, 1:]]))[triangles[:, 0]]
    return np.unique(part, return_inverse=True)[1].astype(np.int64)


def _volumes(points: Floats, triangles: Ints, part: Ints) -> Floats:
    """(parts,) signed volumes."""
    centred = points - points.mean(axis=0)
    a, b, c = (centred[triangles[:, k]] for k in range(3))
    return np.bincount(part, np.einsum("ij,ij->i", a, np.cross(b, c)) / 6).astype(np.float64)


def _solid_around(points: Floats, triangles: Ints, part: Ints, faces_in: NDArray[np.bool_]) -> Floats:
    """(parts,) how many solids of other parts there are around each part, seen from its largest triangle."""
    area = np.linalg.norm(triangle_normals(points, triangles), axis=1)
    order = np.lexsort((-area, part))
    largest = order[np.searchsorted(part[order], np.arange(len(faces_in)))]
    return _in_front(points, triangles, largest) + faces_in


def _in_front(points: Floats, triangles: Ints, chosen: Ints) -> Floats:
    """(k,) the surface's winding number just before the middle of the chosen triangles, on the side they face."""
    normal = triangle_normals(points, triangles[chosen])
    size = np.sqrt(np.linalg.norm(normal, axis=1))
    positions = points[triangles[chosen]].mean(axis=1) + 1e-5 * size[:, None] * unit(normal)
    return SurfaceTree(points, triangles).winding(positions)


def _crossing_parts(points: Floats, triangles: Ints, part: Ints) -> Ints:
    """(k, 2) parts that cross each other, or themselves."""
    return np.unique(np.sort(part[SurfaceTree(points, triangles).crossings()], axis=1), axis=0)


def layers_of(points: Floats, triangles: Ints) -> list[Ints]:
    """The triangles of each layer: parts that cross are in different ones, a cavity is in that of its solid.

    Where a part crosses itself, triangles that face its own inside are in none.
    """
    part = _parts(triangles, len(points))
    crossed = _crossing_parts(points, triangles, part)
    if not len(crossed):
        return [np.arange(len(triangles))]
    own = crossed[:, 0] == crossed[:, 1]
    hidden = np.zeros(len(triangles), dtype=bool)
    if own.any():
        hidden = _in_front(points, triangles, np.arange(len(triangles))) > 0.5
        area = np.linalg.norm(triangle_normals(points, triangles), axis=1)
        share = area[hidden].sum() / area.sum()
        if share > CROSSED:
            problem = f"the obstacle crosses itself: {100 * share:.1f} % of its surface lie inside it"
            warnings.warn(f"{problem}; next to the crossings, depths are approximate", PliantWarning, stacklevel=5)
    layer = _layer_of_parts(points, triangles, part, crossed[~own])
    return [np.flatnonzero((layer[part] == k) & ~hidden) for k in range(layer.max() + 1)]


def _layer_of_parts(points: Floats, triangles: Ints, part: Ints, crossed: Ints) -> Ints:
    """(parts,) numbers such that parts that cross have different ones."""
    volume = _volumes(points, triangles, part)
    layer = np.full(len(volume), -1)
    for p in np.argsort(-volume, kind="stable"):  # solids first, then cavities
        if volume[p] > 0:
            taken = layer[crossed[(crossed == p).any(axis=1)]]
            layer[p] = next(k for k in range(len(volume)) if k not in taken)
        else:
            layer[p] = layer[_solid_of(p, points, triangles, part, volume)] if len(crossed) else 0
    return layer


def _solid_of(cavity: int, points: Floats, triangles: Ints, part: Ints, volume: Floats) -> int:
    """The smallest solid around a cavity."""
    position = points[triangles[part == cavity][:1, 0]]
    for p in np.argsort(volume):
        if volume[p] > 0 and SurfaceTree(points, triangles[part == p]).inside(position, exact=True)[0]:
            return int(p)
    return int(np.argmax(volume))
