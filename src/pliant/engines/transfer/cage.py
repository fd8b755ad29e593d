"""A checked cage: a closed triangle surface, free of crossings, that faces outwards.

Coordinates and rigs take a `Cage`, which is made from a mesh once. Polygons are triangulated, vertices that a file has
split at seams are welded, unused ones are left out, and faces are oriented outwards (those of a cavity towards the
cavity). What cannot be repaired is refused, with its position: open or non-manifold edges and vertices, triangles
without area, self-intersections.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from pliant.core.errors import InputError
from pliant.core.interop import takes_meshes
from pliant.core.normals import triangle_normals, unit
from pliant.core.shapes import Mesh, bounding_diagonal
from pliant.core.topology import Floats, Ints, Polygons, connected_parts, consistent_triangles, unique_edges
from pliant.core.validation import check_extent
from pliant.core.values import Value, locked
from pliant.geometry.spatial import SurfaceTree

DEGENERATE_HEIGHT = 1e-9
"""Height of a triangle over its longest side below which it has no area."""


class CageSurface(NamedTuple):
    """Tables of a cage for the kernels."""

    points: Floats
    """(c, 3)"""
    edges: Ints
    """(e, 2)"""
    length: Floats
    """(e,) ℓ"""
    tangent: Floats
    """(e, 3) t, from the first end to the second"""
    triangles: Ints
    """(f, 3)"""
    sides: Ints
    """(f, 3) the edge from corner l to l + 1"""
    normal: Floats
    """(f, 3) n"""
    double_area: Floats
    """(f,)"""
    outward: Floats
    """(f, 3, 3) m, in the triangle's plane, for each side"""
    height: Floats
    """(f, 3) H over each side"""
    gram: Floats
    """(f, 3, 3) m_l · m_q"""

    @property
    def size(self) -> int:
        """c + f"""
        return len(self.points) + len(self.triangles)


@dataclass(frozen=True, eq=False)
class Cage(Value):
    """A cage that coordinates can be computed in; `Cage.of(mesh)` makes one."""

    mesh: Mesh
    """As given."""
    points: Floats
    """(c, 3) the vertices that its triangles use, welded."""
    triangles: Ints
    """(f, 3) facing outwards, in the mesh's order."""
    kept: Ints
    """(c,) the mesh's vertex that each of `points` was taken from."""
    index: Ints
    """(mesh vertices,) which of `points` each vertex of the mesh is; -1 if no face uses it."""

    @classmethod
    @takes_meshes("mesh")
    def of(cls, mesh: Mesh | Cage) -> Cage:
        """Check a closed mesh; an error names what is wrong and where."""
        if isinstance(mesh, Cage):
            return mesh
        if not isinstance(mesh, Mesh):
            raise InputError(f"the cage is a {type(mesh).__name__}; expected a closed Mesh")
        weld = mesh.welded()
        if not len(weld.mesh.triangles):
            raise InputError("the cage has no faces; expected a closed mesh")
        used, corners = np.unique(weld.mesh.triangles, return_inverse=True)
        number = np.full(len(weld.mesh.points), -1)
        number[used] = np.arange(len(used))
        points = locked(weld.mesh.points[used])
        check_extent(points, "the cage")
        kept, index = locked(weld.kept[used]), locked(number[weld.index])
        triangles = _outward(points, _closed(points, corners.reshape(-1, 3), kept))
        return cls(mesh, points, locked(triangles), kept, index)

    def __repr__(self) -> str:
        return f"Cage({len(self.points)} points, {len(self.triangles)} triangles)"

    @cached_property
    def tree(self) -> SurfaceTree:
        """For closest points and inside tests."""
        return SurfaceTree(self.points, self.triangles)

    @cached_property
    def diagonal(self) -> float:
        """Length of the bounding box's diagonal."""
        return bounding_diagonal(self.points)

    @cached_property
    def edges(self) -> Ints:
        """(e, 2) vertices, the smaller first."""
        return locked(unique_edges(Polygons.of(self.triangles))[0])

    @cached_property
    def triangle_edges(self) -> Ints:
        """(f, 3) the edge from corner l to corner l + 1 of each triangle."""
        start, end = self.triangles, np.roll(self.triangles, -1, axis=1)
        count = len(self.points)
        key = np.minimum(start, end) * count + np.maximum(start, end)
        return locked(np.searchsorted(self.edges[:, 0] * count + self.edges[:, 1], key))

    @cached_property
    def surface(self) -> CageSurface:
        """Its tables for the kernels."""
        along = self.points[self.edges[:, 1]] - self.points[self.edges[:, 0]]
        length = np.linalg.norm(along, axis=1)
        area = triangle_normals(self.points, self.triangles)
        n, double = unit(area), np.linalg.norm(area, axis=1)
        corners = self.points[self.triangles]
        m = unit(np.cross(np.roll(corners, -1, axis=1) - corners, n[:, None]))
        tables = {
            "length": length,
            "tangent": along / length[:, None],
            "normal": n,
            "double_area": double,
            "outward": m,
            "height": double[:, None] / length[self.triangle_edges],
            "gram": np.einsum("tlx,tqx->tlq", m, m),
        }
        return CageSurface(
            points=self.points,
            edges=self.edges,
            triangles=self.triangles,
            sides=self.triangle_edges,
            **{name: locked(table) for name, table in tables.items()},
        )

    def taken(self, points: Floats) -> Floats:
        """(..., c, 3) out of points given for the mesh's vertices (..., mesh vertices, 3)."""
        return points[..., self.kept, :]

    def restored(self, points: Floats) -> Floats:
        """(..., mesh vertices, 3) from (..., c, 3); vertices that no face uses stay where they were."""
        spread = points[..., self.index, :]
        return np.where((self.index < 0)[:, None], self.mesh.points, spread)


def _closed(points: Floats, triangles: Ints, kept: Ints) -> Ints:
    """The triangles consistently oriented, or an error where they do not bound a solid."""
    _refuse_flat(points, triangles, kept)
    edges, uses = unique_edges(Polygons.of(triangles))
    if (uses > 2).any():
        raise _refusal("is not manifold", edges[uses > 2], "edges that more than two faces share", points, kept)
    if (uses < 2).any():
        raise _refusal("is open", edges[uses < 2], "edges of one face only; expected a closed mesh", points, kept)
    pinched = _pinched(triangles, len(points))
    if len(pinched):
        raise _refusal("is not manifold", pinched[:, None], "vertices that join separate fans of faces", points, kept)
    triangles = consistent_triangles(triangles, len(points))
    crossing = SurfaceTree(points, triangles).crossings(coplanar=True)
    if len(crossing):
        first, second = (kept[triangles[t]].tolist() for t in crossing[0])
        raise InputError(
            f"the cage crosses itself: {_counted(len(crossing), 'pair')} of triangles, the first {first} and {second} "
            f"(vertices) near {_coordinates(points[triangles[crossing[0]]].mean(axis=(0, 1)))}; move them apart"
        )
    return triangles


def _refuse_flat(points: Floats, triangles: Ints, kept: Ints) -> None:
    corners = points[triangles]
    longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)
    area = np.linalg.norm(triangle_normals(points, triangles), axis=1)
    flat = triangles[area <= DEGENERATE_HEIGHT * longest**2]
    if len(flat):
        raise _refusal("is degenerate", flat, "triangles without area", points, kept)


def _pinched(triangles: Ints, count: int) -> Ints:
    """Vertices of a closed surface whose triangles form more than one fan."""
    start, end = triangles.ravel(), np.roll(triangles, -1, axis=1).ravel()
    corner = np.arange(3 * len(triangles)).reshape(-1, 3)
    following = np.roll(corner, -1, axis=1).ravel()
    order = np.argsort(np.minimum(start, end) * count + np.maximum(start, end), kind="stable").reshape(-1, 2)
    one, two = order.T
    same = start[one] == start[two]
    low, high = np.where(same, two, following[two]), np.where(same, following[two], two)
    pairs = np.concatenate([np.stack([one, low], axis=1), np.stack([following[one], high], axis=1)])
    fan = connected_parts(3 * len(triangles), pairs)
    _, first = np.unique(fan, return_index=True)
    return np.flatnonzero(np.bincount(start[first], minlength=count) > 1)


def _outward(points: Floats, triangles: Ints) -> Ints:
    """Each part oriented outwards, or inwards if it lies within an odd number of others."""
    edges = unique_edges(Polygons.of(triangles))[0]
    part = connected_parts(len(points), edges)[triangles[:, 0]]
    facing = np.ones(part.max() + 1)
    depth = np.zeros(part.max() + 1, dtype=np.int64)
    first = points[triangles[np.unique(part, return_index=True)[1], 0]]
    for k in range(len(facing)):
        tree = SurfaceTree(points, triangles[part == k])
        facing[k] = tree.facing
        if len(facing) > 1:
            inside = facing[k] * tree.winding(first, exact=True) > 0.5
            inside[k] = False
            depth += inside
    inward = facing * (-1.0) ** depth < 0
    return np.where(inward[part][:, None], triangles[:, ::-1], triangles)


def _refusal(state: str, simplices: Ints, what: str, points: Floats, kept: Ints) -> InputError:
    named = "-".join(str(int(kept[v])) for v in simplices[0])
    many = f"it has {len(simplices)} {what}, the first" if len(simplices) > 1 else f"it has {what}:"
    return InputError(f"the cage {state}: {many} {named} near {_coordinates(points[simplices[0]].mean(axis=0))}")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"


def _coordinates(point: Any) -> str:
    return "(" + ", ".join(f"{x:.4g}" for x in point) + ")"
