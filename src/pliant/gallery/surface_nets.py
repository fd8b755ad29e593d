"""Meshes of implicit bodies: surface nets, relaxed on the surface, with about the requested number of vertices.

The vertices of the nets are moved to the mean of their neighbours and projected back onto the surface, a few times.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.normals import triangle_normals, unit, vertex_normals
from pliant.core.shapes import Mesh
from pliant.core.topology import Floats, Ints, Polygons, unique_edges
from pliant.gallery.implicit import ImplicitBody, project, sample_grid
from pliant.gallery.sizes import check_count
from pliant.geometry.simplify import simplified
from pliant.geometry.surface_nets import corner_cases, mixed, surface_nets


def body_mesh(body: ImplicitBody, n: int) -> Mesh:
    """The body's closed surface with about n vertices (within 10 %): quads, or triangles below ``body.sturdy``."""
    check_count(n, "body")
    n = int(n)
    if n >= body.sturdy:
        for share in (1.0, 1.03, 0.97, 1.06, 0.94):
            mesh = _grid_mesh(body, round(share * n))
            if _is_sphere(mesh):
                return mesh
    fine = max(body.sturdy, 1.5 * n)
    for share in (1.0, 1.1, 1.2, 1.4, 1.7, 2.0):
        mesh = _grid_mesh(body, round(share * fine))
        if _is_sphere(mesh):
            break
    return simplified(mesh, n)


def _is_sphere(mesh: Mesh) -> bool:
    """Whether a closed mesh of quads (so that there are twice as many edges) has no handles."""
    return len(mesh.points) - len(mesh.polygons) == 2


def _grid_mesh(body: ImplicitBody, n: int) -> Mesh:
    """Look for the cell size that gives n vertices; counts grow with the inverse square of it."""
    low, high = body.bounds
    cell = float(np.prod(high - low) ** (1 / 3)) / 24
    for _ in range(12):
        values, origin = _sampled(body, cell)
        count = int(np.count_nonzero(mixed(corner_cases(values < 0))))
        if abs(count - n) <= 0.02 * n:
            break
        # Large steps are taken through a middle size, so that the last guess is a good one.
        cell *= float(np.clip(np.sqrt(max(count, 1) / n), 1 / 5, 3))
    mesh = _largest_part(*surface_nets(values, origin, cell))
    return _relaxed(mesh, body, origin, cell)


def _sampled(body: ImplicitBody, cell: float) -> tuple[NDArray[np.float32], Floats]:
    """The field on a grid around the body, and the grid's first point."""
    low, high = body.bounds
    # An odd count centred on x = 0 would put samples on the plane of symmetry; half a cell aside is kinder to creases.
    low, high = low - 2.5 * cell, high + 2.5 * cell
    shape = tuple(int(s) for s in np.ceil((high - low) / cell).astype(int) + 1)
    origin = (low + high - cell * (np.array(shape) - 1)) / 2
    values = np.empty(shape, dtype=np.float32)
    sample_grid(body.part_table, body.group_table, origin, cell, values)
    return values, origin


def _largest_part(points: Floats, quads: Ints) -> Mesh:
    """The connected part with the most vertices (specks of a carved detail may float free)."""
    mesh = Mesh(points, quads)
    counts = np.bincount(mesh.parts)
    if len(counts) == 1:
        return mesh
    keep = mesh.parts == np.argmax(counts)
    renumber = np.cumsum(keep) - 1
    return Mesh(points[keep], renumber[quads[keep[quads[:, 0]]]])


def _relaxed(mesh: Mesh, body: ImplicitBody, origin: Floats, cell: float, rounds: int = 4) -> Mesh:
    """Spread the vertices evenly over the surface; each stays near its cell, so that thin parts do not tangle."""
    points = mesh.points.copy()
    corner = origin + cell * np.floor((points - origin) / cell)
    low, high = corner - 0.2 * cell, corner + 1.2 * cell
    targets, active = np.zeros(len(points)), np.arange(len(body.parts), dtype=np.int64)[None]
    offsets = np.zeros(active.shape)
    average = neighbour_mean(mesh.polygons, len(points))
    for relax in (0.0, *(0.5 for _ in range(rounds))):
        points += relax * (average @ points - points)
        project(points, targets, body.part_table, body.group_table, active, offsets, 2, 0.4 * cell)
        np.clip(points, low, high, out=points)
    return Mesh(_unfolded(points, mesh.triangles, average), mesh.polygons)


def _unfolded(points: Floats, triangles: Ints, average: Any) -> Floats:
    """Smooth where triangles face against their neighbours: at details finer than the grid."""
    for _ in range(20):
        facing = unit(triangle_normals(points, triangles))
        around = vertex_normals(points, triangles)
        folded = np.einsum("ij,ikj->ik", facing, around[triangles]).min(axis=1) < 0.1
        if not folded.any():
            break
        bad = np.unique(triangles[folded])
        points[bad] += 0.7 * (average[bad] @ points - points[bad])
    return points


def neighbour_mean(polygons: Polygons, count: int) -> Any:
    """Sparse (n, n) matrix that replaces each vertex by the mean of its neighbours along edges."""
    from scipy.sparse import csr_matrix

    edges = unique_edges(polygons)[0]
    rows, columns = np.concatenate([edges, edges[:, ::-1]]).T
    degree = np.bincount(rows, minlength=count)
    return csr_matrix((1.0 / degree[rows], (rows, columns)), shape=(count, count))
