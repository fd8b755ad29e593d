"""The interior of a shape: vertices inside it and tetrahedra between them, whose edges become the internal springs.

With springs on the surface only, a large shape buckles into wrinkles (Ma et al. 2011, Section 3.1). Two methods:

- ``"lattice"`` (`lattice`). It accepts any surface that encloses a volume: also one that intersects or touches itself,
  has small holes, or inconsistently oriented triangles.
- ``"tetgen"`` (`tetgen_filling`), the paper's: constrained Delaunay with refinement, by TetGen (an extra, AGPL). It
  accepts closed surfaces that neither intersect nor touch themselves.

``"auto"`` is the lattice. The two give equilibria of the same quality (root mean square deviation of the dihedral
angles over three frames, lattice and TetGen: the gallery's animal 0.115 and 0.114, its hand 0.165 and 0.164, its
gingerbread man 0.090 and 0.090), the same volumes, and about as many springs; the lattice has fewer inverted tetrahedra
and is faster to build (8,000 vertices: 0.4 to 0.6 s against 0.7 to 1.7 s, 200,000: 24 s against 40 s). Nor does the
result depend on what is installed.

Every connected part is filled separately: a tooth inside a head or the inner wall of a hollow shape is a body of its
own. An open surface, such as a face, has no interior and stays a shell; so does one whose two sides coincide.

The kernels index without a check: a `Mesh` has checked its vertex numbers, and those of tetrahedra are made here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from pliant.core.shapes import Mesh
from pliant.core.topology import Floats, Ints, consistent_triangles
from pliant.engines.blend.options import BlendOptions, InteriorMethod
from pliant.engines.blend.reference import own_frame
from pliant.geometry.solidity import FEWEST_FACES, is_solid
from pliant.native import in_threads, kernels

TEARING_STRETCH = 3.0
"""Stretch between two vertices, relative to that of the surface there, above which they are on different limbs."""
NEEDLES = 100.0
"""Sum of the triangles' longest edges squared, over the squared diagonal, above which there are many needles."""
LARGEST_EFFORT = 1e7
"""Triangles times that sum above which a part is not filled: 10 s for a double cone of 3,600 sides."""
TETS_PER_THREAD = 50_000


@dataclass(frozen=True, eq=False)
class Interior:
    """Vertices added inside a mesh, and tetrahedra over the mesh's points followed by them."""

    points: Floats
    """(m, 3) added vertices; each is a corner of some tetrahedron."""
    tets: Ints
    """(t, 4), of positive volume."""
    method: str
    """The method, for reports."""


NO_INTERIOR = Interior(np.zeros((0, 3)), np.zeros((0, 4), np.int64), "none")


def tet_quality(points: Floats, tets: Ints) -> Floats:
    """(t,) volume over that of a regular tetrahedron with the same mean square edge; negative if inverted."""
    quality = np.empty(len(tets))
    in_threads(lambda a, b: kernels.interior_tet_quality(points, tets, quality, a, b), len(tets), TETS_PER_THREAD)
    return quality


def is_fillable(mesh: Mesh) -> bool:
    """Whether filling takes a bounded time; many long needles make trees and Delaunay tetrahedralisation slow."""
    a, b, c = (mesh.points[mesh.triangles[:, k]] / mesh.diagonal for k in range(3))
    longest = np.max([np.sum(edge**2, axis=1) for edge in (b - a, c - b, a - c)], axis=0).sum()
    return bool(longest < NEEDLES or len(mesh.triangles) * longest < LARGEST_EFFORT)


def lattice_interior(mesh: Mesh) -> Interior:
    """Fill one solid part by lattices."""
    from pliant.engines.blend.lattice import lattice_filling

    return _used_part(mesh.points, *lattice_filling(mesh), "lattice")


def tetgen_interior(mesh: Mesh) -> Interior:
    """Fill one solid part by TetGen; an `InputError` says why it cannot."""
    from pliant.engines.blend.tetgen_filling import tetgen_filling

    return _used_part(mesh.points, *tetgen_filling(mesh), "tetgen")


def _used_part(surface: Floats, added: Floats, tets: Ints, method: str) -> Interior:
    """The tetrahedra of positive volume, and those added vertices that they use."""
    tets = tets[tet_quality(np.concatenate([surface, added]), tets) > 0]
    used = np.zeros(len(surface) + len(added), dtype=bool)
    used[: len(surface)] = True
    used[tets] = True
    return Interior(added[used[len(surface) :]], (np.cumsum(used) - 1)[tets], method)


def fill_parts(mesh: Mesh, points: Floats, method: InteriorMethod, reference: int = 0) -> tuple[Interior, Ints]:
    """The interior of every solid part that moves between the shapes (s, n, 3), and the part of every vertex.

    reference: number of the shape that vertices are added to. Its `method` also gives the number of parts that were
    filled, and why others were not.
    """
    BlendOptions.check(interior=method)
    part = mesh.parts
    if method == "none":
        return NO_INTERIOR, part
    moves = np.zeros(part.max() + 1, dtype=bool)
    moves[part[(points != points[0]).any(axis=(0, 2))]] = True
    faces = np.bincount(part[mesh.triangles[:, 0]], minlength=len(moves))
    faced = faces > 0  # not an isolated vertex
    added, tets, parts, filled = [np.zeros((0, 3))], [np.zeros((0, 4), np.int64)], [part], ""
    large = moves & (faces >= FEWEST_FACES)
    tally = {"filled": 0, "open or flat": int((faced & moves & ~large).sum())}
    tally |= {"of too many needles": 0, "static": int((faced & ~moves).sum())}
    first = len(mesh.points)
    for p, members, piece in pieces(mesh, np.flatnonzero(large)):
        centre, axes = own_frame(points[:, members], reference)
        inside = piece.with_points((points[reference, members] - centre) @ axes)
        solid = is_solid(inside)
        if solid and not is_fillable(inside):
            tally["of too many needles"] += 1
            continue
        filling = _filled(inside, points[:, members], method) if solid else NO_INTERIOR
        if not len(filling.tets):
            tally["open or flat"] += 1
            continue
        tally["filled"] += 1
        filled = filling.method
        lookup = np.concatenate([members, first + np.arange(len(filling.points))])
        corners = filling.tets if np.linalg.det(axes) > 0 else filling.tets[:, [0, 2, 1, 3]]
        tets.append(lookup[corners])
        added.append(filling.points @ axes.T + centre)
        parts.append(np.full(len(filling.points), p))
        first += len(filling.points)
    interior = Interior(np.concatenate(added), np.concatenate(tets), _summary(filled, tally))
    return interior, np.concatenate(parts)


def _filled(mesh: Mesh, shapes: Floats, method: InteriorMethod) -> Interior:
    """The interior of one solid part, given by itself and in all shapes (s, n, 3)."""
    make = tetgen_interior if method == "tetgen" else lattice_interior
    return _without_torn(make(mesh), mesh, shapes)


def _without_torn(filling: Interior, mesh: Mesh, shapes: Floats) -> Interior:
    """Without tetrahedra between limbs that touch or overlap in the mesh and separate in one of the shapes.

    An edge between two vertices of the surface is torn if it stretches `TEARING_STRETCH` times as much as the surface.
    """
    torn, shortest = np.zeros(len(filling.tets), dtype=bool), 1e-6 * mesh.diagonal
    for shape in shapes:
        pair, usual = (mesh.points, np.ascontiguousarray(shape)), np.ones(len(mesh.points))
        kernels.interior_usual_stretch(*pair, mesh.edges, shortest, usual)
        given = *pair, filling.tets, TEARING_STRETCH * usual, shortest, torn
        in_threads(partial(kernels.interior_torn, *given), len(torn), TETS_PER_THREAD)
    return _used_part(mesh.points, filling.points, filling.tets[~torn], filling.method)


def pieces(mesh: Mesh, chosen: Ints) -> list[tuple[int, Ints, Mesh]]:
    """Connected parts by number, each with its vertices and as a consistently oriented mesh."""
    order = np.argsort(mesh.parts, kind="stable")
    bounds = np.searchsorted(mesh.parts[order], np.arange(mesh.parts.max() + 2))
    owner = mesh.parts[mesh.triangles[:, 0]]
    triangle_order = np.argsort(owner, kind="stable")
    triangle_bounds = np.searchsorted(owner[triangle_order], np.arange(mesh.parts.max() + 2))
    number = np.empty(len(mesh.points), dtype=np.int64)
    found = []
    for p in chosen:
        members = order[bounds[p] : bounds[p + 1]]
        number[members] = np.arange(len(members))
        own = number[mesh.triangles[triangle_order[triangle_bounds[p] : triangle_bounds[p + 1]]]]
        found.append((int(p), members, Mesh(mesh.points[members], consistent_triangles(own, len(members)))))
    return found


def _summary(method: str, tally: dict[str, int]) -> str:
    """What was filled and what was not, such as "lattice (1 of 3 parts; 2 open or flat)"."""
    others = "; ".join(f"{count} {why}" for why, count in tally.items() if count and why != "filled")
    parts = sum(tally.values())
    if not tally["filled"]:
        return f"none ({others if parts > 1 else others.removeprefix('1 ')})" if parts else "none"
    return method if parts == 1 else f"{method} ({tally['filled']} of {parts} parts{'; ' if others else ''}{others})"
