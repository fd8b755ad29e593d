"""Meshes of implicit bodies: surface nets, relaxed on the surface, with about as many vertices as asked for.

A grid cell whose corners lie on both sides of the surface gets one vertex (the mean of the crossings on its edges), and
each grid edge that crosses the surface gets the quad of its four cells (Gibson 1998). Seen as voxels, the quads are the
faces between inside and outside samples, so the mesh is manifold exactly if no two voxels of one kind touch in an edge
or a corner only (Latecki's well-composed sets); where they do, the sample nearest to the surface changes sides.

Vertices are then moved to the mean of their neighbours and projected back onto the surface, a few times.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.errors import InputError
from pliant.gallery.implicit import Body
from pliant.normals import triangle_normals, unit, vertex_normals
from pliant.shapes import Mesh
from pliant.topology import Floats, Ints, Polygons, unique_edges

FEWEST, MOST = 500, 200_000
_CORNERS = np.array(list(product((0, 1), repeat=3)))
_EDGES = np.array([(a, b) for a in range(8) for b in range(a + 1, 8) if np.abs(_CORNERS[a] - _CORNERS[b]).sum() == 1])


def check_count(n: int) -> int:
    """The number of vertices asked for, if it is one that the bodies can have."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise InputError(f"n is {n!r}; expected a whole number of vertices from {FEWEST} to {MOST}")
    if not FEWEST <= n <= MOST:
        raise InputError(f"n is {n}; expected {FEWEST} to {MOST} vertices")
    return int(n)


def body_mesh(body: Body, n: int) -> Mesh:
    """The body's closed surface with about n vertices (within 10 %): quads, or triangles below ``body.sturdy``."""
    n = check_count(n)
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
    from pliant.gallery.simplify import simplified

    return simplified(mesh, n)


def _is_sphere(mesh: Mesh) -> bool:
    """Whether a closed mesh of quads (so that there are twice as many edges) has no handles."""
    return len(mesh.points) - len(mesh.polygons) == 2


def dilated_mesh(body: Body, margin: float, cell: float) -> Mesh:
    """The surface at a distance of about `margin` outside the body, on a grid of the given cell size."""
    values, origin = _sampled(body, cell, margin)
    return _largest_part(*_nets(values, origin, cell))


def _grid_mesh(body: Body, n: int) -> Mesh:
    """Look for the cell size that gives n vertices; counts grow with the inverse square of it."""
    low, high = body.bounds
    cell = float(np.prod(high - low) ** (1 / 3)) / 24
    for _ in range(12):
        values, origin = _sampled(body, cell, 0.0)
        count = int(np.count_nonzero(_mixed(_cases(values < 0))))
        if abs(count - n) <= 0.02 * n:
            break
        # Large steps are taken through a middle size, so that the last guess is a good one.
        cell *= float(np.clip(np.sqrt(max(count, 1) / n), 1 / 5, 3))
    mesh = _largest_part(*_nets(values, origin, cell))
    return _relaxed(mesh, body, origin, cell)


def _sampled(body: Body, cell: float, dilate: float) -> tuple[NDArray[np.float32], Floats]:
    """The field on a grid around the body, and the grid's first point."""
    from pliant.gallery.implicit_kernels import sample_grid

    low, high = body.bounds
    # An odd count centred on x = 0 would put samples on the plane of symmetry; half a cell aside is kinder to creases.
    low, high = low - dilate - 2.5 * cell, high + dilate + 2.5 * cell
    shape = tuple(int(s) for s in np.ceil((high - low) / cell).astype(int) + 1)
    origin = (low + high - cell * (np.array(shape) - 1)) / 2
    values = np.empty(shape, dtype=np.float32)
    sample_grid(body.part_table, body.group_table, origin, cell, dilate, values)
    return values, origin


def _cases(inside: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """One byte a cell: which of its eight corners lie inside."""
    nx, ny, nz = (s - 1 for s in inside.shape)
    cases = np.zeros((nx, ny, nz), dtype=np.uint8)
    for bit, (i, j, k) in enumerate(_CORNERS):
        cases |= inside[i : i + nx, j : j + ny, k : k + nz].astype(np.uint8) << np.uint8(bit)
    return cases


def _mixed(cases: NDArray[np.uint8]) -> NDArray[np.bool_]:
    return (cases != 0) & (cases != 255)


def _critical_table() -> NDArray[np.bool_]:
    """(256,) whether a cell's pattern lets voxels touch in an edge or a corner only."""
    bad = np.zeros(256, dtype=bool)
    faces = [np.flatnonzero(_CORNERS[:, axis] == side) for axis in range(3) for side in (0, 1)]
    for case in range(256):
        bits = (case >> np.arange(8)) & 1
        across = any(bits[a] == bits[d] != bits[b] == bits[c] for a, b, c, d in faces)
        lonely = any(bits[v] == bits[7 - v] and (np.delete(bits, [v, 7 - v]) != bits[v]).all() for v in range(4))
        bad[case] = across or lonely
    return bad


_CRITICAL = _critical_table()


def _well_composed(values: NDArray[np.float32]) -> None:
    """Move samples across the surface, the nearest first and none twice, until the mesh will be manifold.

    Where that does not settle, whole cells are filled, which always does.
    """
    done: set[int] = set()
    corner_step = _CORNERS @ np.array([values.shape[1] * values.shape[2], values.shape[2], 1])
    flat = values.reshape(-1)
    for attempt in range(1000):
        cells = np.argwhere(_CRITICAL[_cases(values < 0)])
        if not len(cells):
            return
        base = np.ravel_multi_index(tuple(cells.T), values.shape)
        for corners in base[:, None] + corner_step:
            signs = (flat[corners] < 0) @ (1 << np.arange(8))
            free = [c for c in corners if int(c) not in done]
            if attempt >= 20 and _CRITICAL[signs]:
                flat[corners] = np.minimum(flat[corners], np.float32(-1e-7))
            elif _CRITICAL[signs] and free:
                chosen = min(free, key=lambda c: (abs(float(flat[c])), int(c)))
                done.add(int(chosen))
                flat[chosen] = 1e-7 if flat[chosen] < 0 else -1e-7


def _nets(values: NDArray[np.float32], origin: Floats, cell: float) -> tuple[Floats, Ints]:
    """Vertices and quads of the surface nets of a sampled field."""
    _well_composed(values)
    cells = np.flatnonzero(_mixed(_cases(values < 0)))
    shape = tuple(s - 1 for s in values.shape)
    place = np.stack(np.unravel_index(cells, shape), axis=1)
    at = np.ravel_multi_index(tuple(place.T), values.shape)
    step = np.array([values.shape[1] * values.shape[2], values.shape[2], 1])
    corner = values.reshape(-1)[at[:, None] + _CORNERS @ step].astype(np.float64)
    a, b = corner[:, _EDGES[:, 0]], corner[:, _EDGES[:, 1]]
    crossing = (a < 0) != (b < 0)
    t = np.clip(a / np.where(crossing, a - b, 1.0), 0.05, 0.95)[..., None]
    spots = (1 - t) * _CORNERS[_EDGES[:, 0]] + t * _CORNERS[_EDGES[:, 1]]
    inside = (spots * crossing[..., None]).sum(axis=1) / crossing.sum(axis=1)[:, None]
    return origin + cell * (place + inside), _quads(corner < 0, cells, shape)


def _quads(inside: NDArray[np.bool_], cells: Ints, shape: tuple[int, ...]) -> Ints:
    """(q, 4) the four cells around every crossing grid edge, outward."""
    step = np.array([shape[1] * shape[2], shape[2], 1])
    quads = []
    for axis in range(3):
        u, v = step[(axis + 1) % 3], step[(axis + 2) % 3]
        far = int(np.flatnonzero((np.eye(3, dtype=int)[axis] == _CORNERS).all(axis=1))[0])
        for leaving in (True, False):
            here = cells[(inside[:, 0] == leaving) & (inside[:, far] != leaving)]
            ring = np.stack([here, here - u, here - u - v, here - v], axis=1)
            quads.append(ring if leaving else ring[:, ::-1])
    return np.searchsorted(cells, np.concatenate(quads))


def _largest_part(points: Floats, quads: Ints) -> Mesh:
    """The connected part with the most vertices (specks of a carved detail may float free)."""
    mesh = Mesh(points, quads)
    counts = np.bincount(mesh.parts)
    if len(counts) == 1:
        return mesh
    keep = mesh.parts == np.argmax(counts)
    renumber = np.cumsum(keep) - 1
    return Mesh(points[keep], renumber[quads[keep[quads[:, 0]]]])


def _relaxed(mesh: Mesh, body: Body, origin: Floats, cell: float, rounds: int = 4) -> Mesh:
    """Spread the vertices evenly over the surface; each stays near its cell, so that thin parts do not tangle."""
    from pliant.gallery.implicit_kernels import project

    points = mesh.points.copy()
    corner = origin + cell * np.floor((points - origin) / cell)
    low, high = corner - 0.2 * cell, corner + 1.2 * cell
    targets, active = np.zeros(len(points)), np.arange(len(body.parts))[None]
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
