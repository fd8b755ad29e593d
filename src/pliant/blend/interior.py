"""What fills a shape: vertices inside it and tetrahedra between them, whose edges become the internal springs.

Springs on the surface alone let a large shape buckle into wrinkles (Ma et al. 2011, Section 3.1). Two ways to fill it:

- ``"lattice"``, our own: vertices on body-centred lattices inside, their spacing growing with the depth (so that their
  number grows with the surface, not with the volume), joined to the surface by a Delaunay tetrahedralisation of which
  the tetrahedra outside are dropped by winding number. It takes surfaces that intersect themselves or have small holes.
- ``"tetgen"``, the paper's: constrained Delaunay with refinement, by TetGen (an extra, AGPL). It needs a closed surface
  that does not intersect itself.

An open surface, such as a face, has no inside and stays a shell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pliant.errors import MissingExtraError
from pliant.shapes import Mesh
from pliant.spatial import SurfaceTree
from pliant.topology import Floats, Ints

InteriorMethod = Literal["auto", "lattice", "tetgen", "none"]

SPACING = 1.8
"""Spacing of the finest lattice, in mean edge lengths."""
OPEN_SHARE = 0.05
"""Largest share of the whole area that the holes of a solid may have."""


@dataclass(frozen=True, eq=False)
class Interior:
    """Vertices added inside a mesh, and tetrahedra over the mesh's points followed by them."""

    points: Floats
    """(m, 3) added vertices."""
    tets: Ints
    """(t, 4), of positive volume."""
    method: str
    """How it was made, in words."""


NOTHING = Interior(np.zeros((0, 3)), np.zeros((0, 4), np.int64), "none")


def is_solid(mesh: Mesh) -> bool:
    """Whether the surface encloses something: closed, or with holes that are small against it."""
    if not len(mesh.triangles):
        return False
    rim = mesh.edges[mesh.edge_polygon_count == 1]
    if not len(rim):
        return True
    from pliant.topology import connected_parts

    used, local = np.unique(rim, return_inverse=True)
    hole = connected_parts(len(used), local.reshape(-1, 2))[local.reshape(-1, 2)[:, 0]]
    middle = mesh.points[rim].mean(axis=1)
    centres = np.stack([np.bincount(hole, middle[:, k]) for k in range(3)], axis=1) / np.bincount(hole)[:, None]
    a, b = mesh.points[rim[:, 0]] - centres[hole], mesh.points[rim[:, 1]] - centres[hole]
    return bool(np.linalg.norm(np.cross(a, b), axis=1).sum() / 2 < OPEN_SHARE * mesh.area)


def lattice_interior(mesh: Mesh, *, spacing: float = SPACING) -> Interior:
    """Fill with graded lattices and a Delaunay tetrahedralisation."""
    from scipy.spatial import Delaunay

    tree = SurfaceTree(mesh)
    sign = 1.0 if mesh.volume >= 0 else -1.0
    edge = float(np.linalg.norm(mesh.points[mesh.edges[:, 0]] - mesh.points[mesh.edges[:, 1]], axis=1).mean())
    added = _graded_lattice(tree, mesh.points, spacing * edge, sign)
    points = np.concatenate([mesh.points, added])
    tets = Delaunay(points).simplices.astype(np.int64)
    a, b, c, d = (points[tets[:, k]] for k in range(4))
    volume = np.einsum("ij,ij->i", b - a, np.cross(c - a, d - a)) / 6
    tets[volume < 0] = tets[volume < 0][:, [0, 2, 1, 3]]
    solid = np.abs(volume) > 1e-4 * edge**3
    tets = tets[solid]
    return Interior(added, tets[sign * tree.winding(points[tets].mean(axis=1)) > 0.5], "lattice")


def _graded_lattice(tree: SurfaceTree, surface: Floats, finest: float, sign: float) -> Floats:
    """Points inside: level l has spacing ``finest · 2^l`` and takes the depths from one to three times that."""
    rng = np.random.default_rng(0)
    kept = []
    step, shallow = finest, 0.5 * finest
    while True:
        deep = 3 * step
        nodes = _nodes_near(surface, step, reach=4)
        depth = tree.closest(nodes, within=deep).distance
        nodes = nodes[(depth >= shallow) & (depth < deep)]
        nodes = nodes[sign * tree.winding(nodes) > 0.5]
        if not len(nodes):
            break
        # A nudge: points of a perfect lattice lie on common spheres, which makes flat tetrahedra.
        kept.append(nodes + rng.uniform(-0.05, 0.05, nodes.shape) * step)
        step, shallow = 2 * step, deep
    return np.concatenate(kept) if kept else np.zeros((0, 3))


def _nodes_near(surface: Floats, step: float, reach: int) -> Floats:
    """Nodes of a body-centred lattice of cube edge `step` in all cubes within `reach` cubes of the surface's points."""
    cubes = np.floor(surface / step).astype(np.int64)
    low = cubes.min(axis=0) - reach
    span = cubes.max(axis=0) - low + 2 * reach + 1
    keys = np.unique(np.ravel_multi_index(tuple((cubes - low).T), tuple(span)))
    for stride in (1, span[2], span[2] * span[1]):
        keys = np.unique((keys[:, None] + stride * np.arange(-reach, reach + 1)).ravel())
    corner = (np.stack(np.unravel_index(keys, tuple(span)), axis=1) + low) * step
    return np.concatenate([corner, corner + step / 2])


def tetgen_interior(mesh: Mesh) -> Interior:
    """Fill by TetGen's constrained Delaunay refinement; raises RuntimeError where TetGen gives up."""
    try:
        import tetgen
    except ImportError as error:
        raise MissingExtraError('interior="tetgen"', "tetgen") from error
    maker = tetgen.TetGen(np.ascontiguousarray(mesh.points), np.ascontiguousarray(mesh.triangles, dtype=np.int32))
    points, tets, *_ = maker.tetrahedralize(order=1, quality=True, minratio=2.0, nobisect=True, verbose=0)
    points, tets = np.asarray(points), np.asarray(tets, dtype=np.int64)
    if not np.array_equal(points[: len(mesh.points)], mesh.points):
        raise RuntimeError("TetGen moved the surface's vertices")
    return Interior(points[len(mesh.points) :], tets, "tetgen")


def fill(mesh: Mesh, method: InteriorMethod) -> Interior:
    """Fill one solid part; "auto" takes TetGen where it is installed and the surface is sound, else the lattice."""
    if method == "tetgen":
        return tetgen_interior(mesh)
    if method == "auto" and mesh.is_watertight:
        try:
            if not len(SurfaceTree(mesh).crossings()):
                return tetgen_interior(mesh)
        except (MissingExtraError, RuntimeError):
            pass
    return lattice_interior(mesh)


def fill_parts(mesh: Mesh, points: Floats, method: InteriorMethod) -> tuple[Interior, Ints]:
    """The interior of every solid part that moves, and the part of every vertex."""
    part = mesh.parts
    if method == "none":
        return NOTHING, part
    moving = np.zeros(part.max() + 1, dtype=bool)
    moving[part[np.abs(points - points[0]).max(axis=(0, 2)) > 0]] = True
    added, tets, parts, methods = [np.zeros((0, 3))], [np.zeros((0, 4), np.int64)], [part], set()
    count = len(mesh.points)
    triangle_part = part[mesh.triangles[:, 0]]
    for p in np.flatnonzero(moving):
        members = np.flatnonzero(part == p)
        number = np.full(count, -1)
        number[members] = np.arange(len(members))
        piece = Mesh(mesh.points[members], number[mesh.triangles[triangle_part == p]])
        filling = fill(piece, method) if is_solid(piece) else NOTHING
        methods.add(filling.method)
        if len(filling.tets):
            first = count + sum(map(len, added))
            lookup = np.concatenate([members, first + np.arange(len(filling.points))])
            tets.append(lookup[filling.tets])
            added.append(filling.points)
            parts.append(np.full(len(filling.points), p))
    words = ", ".join(sorted(methods)) or "none"
    return Interior(np.concatenate(added), np.concatenate(tets), words), np.concatenate(parts)
