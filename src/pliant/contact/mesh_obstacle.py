"""Closed triangle meshes as obstacles: checked and repaired once, then asked for signed distances, moved and deformed.

The mesh has to enclose a volume: split vertices are welded, collapsed triangles dropped, triangles that face
differently from their neighbours turned, and parts that are inside out turned round. What is still open, or has no
sides to speak of, is refused. The sign of the distance comes from the normal at the closest point
(`pliant.spatial.pseudonormals`).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from pliant import rotations
from pliant.contact.obstacles import Obstacle, rows
from pliant.errors import InputError, PliantWarning
from pliant.normals import triangle_normals, unit
from pliant.rotations import IDENTITY
from pliant.shapes import Mesh, as_points
from pliant.spatial import SurfaceTree
from pliant.topology import Floats, Ints, connected_parts
from pliant.values import locked

NEARLY = 1e-6
"""Distance, over the diagonal, at which open edges are joined if joining exact matches does not close the mesh."""
SAMPLES = 1000
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

    def __init__(self, mesh: Mesh) -> None:
        if not isinstance(mesh, Mesh):
            raise InputError(f"the obstacle is a {type(mesh).__name__}; expected a Mesh")
        surface, kept = solid_surface(mesh)
        vars(self).update(surface=surface, kept=locked(kept), count=len(mesh.points), turn=IDENTITY)

    def __repr__(self) -> str:
        return f"MeshObstacle({len(self.surface.points)} points, {len(self.surface.triangles)} triangles)"

    @cached_property
    def tree(self) -> SurfaceTree:
        """The surface, prepared for geometric queries."""
        return SurfaceTree(self.surface)

    def signed(self, points: ArrayLike) -> tuple[Floats, Floats]:
        """See `Obstacle.signed`."""
        return self.tree.signed(points)

    def with_points(self, points: ArrayLike) -> MeshObstacle:
        """The same obstacle deformed: the given mesh's points elsewhere. Its triangles stay as they were repaired."""
        places = as_points(points)
        if len(places) != self.count:
            raise InputError(f"got {len(places)} points; this obstacle's mesh has {self.count}")
        return self._with(locked(places[self.kept]), self.turn)

    def _with(self, points: Floats, turn: Floats) -> MeshObstacle:
        other = object.__new__(MeshObstacle)
        surface = self.surface.with_points(points)
        vars(other).update(surface=surface, kept=self.kept, count=self.count, turn=turn, tree=self.tree.moved(points))
        if "thickness" in vars(self):
            vars(other)["thickness"] = self.thickness
        return other

    def _moved(self, rotation: Floats, translation: Floats) -> MeshObstacle:
        points = rotations.rotate(rotation, self.surface.points) + translation
        return self._with(locked(points), rotations.multiply(rotation, self.turn))

    def _tessellated(self) -> Mesh:
        return self.surface

    def carried(self, points: ArrayLike, to: Obstacle) -> Floats:
        """(n, 3) where the motion of the closest triangle takes places: with its corners, and along its normal."""
        places = rows(points)
        if not isinstance(to, MeshObstacle) or to.surface.triangles.shape != self.surface.triangles.shape:
            raise InputError(f"{self!r} cannot move to {to!r}; expected the same obstacle")
        if not len(places):
            return places.copy()
        near = self.tree.closest(places)
        corners = self.surface.triangles[near.triangle]
        foot = np.einsum("nk,nkd->nd", near.barycentric, to.surface.points[corners])
        before, after = (_frames(o.surface.points, corners) for o in (self, to))
        return foot + np.einsum("nki,nkj,nj->ni", after, before, places - near.points)

    @property
    def middle(self) -> Floats:
        """The middle of its bounding box."""
        points = self.surface.points
        return (points.min(axis=0) + points.max(axis=0)) / 2

    @cached_property
    def thickness(self) -> float:
        """How thick the thin places are: along the inward normals, from a sample of the triangles."""
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
    chosen = order[np.unique(np.linspace(0, np.count_nonzero(area) - 1, SAMPLES).astype(int))]
    start = corners[chosen].mean(axis=1)
    inward = -unit(triangle_normals(tree.points, tree.triangles[chosen]))
    begin = start + 1e-6 * tree.diagonal * inward
    fraction, _ = tree.first_hit(begin, begin + 2 * tree.diagonal * inward, leaving=True)
    through = 2 * tree.diagonal * fraction
    ranked = np.argsort(through)
    share = np.cumsum(area[chosen][ranked]) / area[chosen].sum()
    found = through[ranked[np.searchsorted(share, THIN_SHARE)]]
    return float(found) if np.isfinite(found) else tree.diagonal


def solid_surface(mesh: Mesh) -> tuple[Mesh, Ints]:
    """The closed surface of a mesh, facing outwards, and the mesh's vertex that each of its vertices is."""
    if not len(mesh.triangles):
        raise InputError("the obstacle has no faces; expected a closed triangle mesh")
    for tolerance in (0.0, NEARLY):
        points, triangles, kept = _welded(mesh, tolerance)
        if not len(triangles):
            raise InputError("all of the obstacle's triangles are collapsed; expected a closed triangle mesh")
        turned = _facing_alike(triangles, len(points))
        uses, balance = _edge_uses(turned, len(points))
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
    return Mesh(points, _outward(points, turned)), kept


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
    from pliant.blend.interior import consistent_triangles

    return consistent_triangles(triangles, count)


def _outward(points: Floats, triangles: Ints) -> Ints:
    """The triangles with parts turned round that are inside out and are no cavity of another part."""
    part = connected_parts(len(points), np.concatenate([triangles[:, :2], triangles[:, 1:]]))[triangles[:, 0]]
    centred = points - points.mean(axis=0)
    a, b, c = (centred[triangles[:, k]] for k in range(3))
    volume = np.bincount(part, np.einsum("ij,ij->i", a, np.cross(b, c)) / 6)
    if not np.abs(volume).sum() > 1e-12 * float(np.linalg.norm(np.ptp(points, axis=0))) ** 3:
        raise InputError("the obstacle encloses no volume; expected a closed mesh that is not flat")
    inverted = volume < 0
    if inverted.any() and not inverted.all():
        for p in np.flatnonzero(inverted):
            others = SurfaceTree(points, triangles[part != p])
            sample = points[triangles[part == p][:1, 0]]
            inverted[p] = abs(others.winding(sample, exact=True)[0]) < 0.5
    if inverted.any():
        what = "is inside out" if inverted.all() else f"has {int(inverted.sum())} parts that are inside out"
        warnings.warn(f"the obstacle {what}; turned round to face outwards", PliantWarning, stacklevel=4)
    return np.where(inverted[part][:, None], triangles[:, ::-1], triangles)
