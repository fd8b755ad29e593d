"""Filling a shape with graded lattices and a Delaunay tetrahedralisation.

1. Every vertex of the surface has a size, from the mean area of its triangles. The target spacing at a point inside is
   `SURFACE_SPACING` times the size at the closest point of the surface, or `SPACING_GROWTH` times the depth, whichever
   is larger. So the number of nodes grows with the surface, not with the volume.
2. Level l is a body-centred lattice of cubes with edge 2^l. Of its nodes those are kept that lie inside, not too near
   the surface, and where the target spacing is that of the level. They are jittered, since the points of a perfect
   lattice are cospherical, which makes flat tetrahedra.
3. The Delaunay tetrahedralisation of surface vertices and nodes. It is not constrained to the surface, so tetrahedra
   whose centroid lies outside are dropped, and so are those that bridge a gap: with an edge that leaves the surface
   outwards, or a node outside of three vertices, as between limbs that touch.

Inside is where the winding number rounds to 1: not near a small hole, and not where two limbs overlap (there it is 2),
since nodes there would connect the limbs.

The computation is normalised to the shape's size, so that units do not matter; that position and orientation do not is
up to the caller (`pliant.engines.blend.reference`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pliant.core.normals import triangle_normals, vertex_normals
from pliant.core.shapes import Mesh
from pliant.core.topology import Floats, Ints, distinct
from pliant.engines.blend.interior import tet_quality
from pliant.geometry.delaunay import delaunay
from pliant.geometry.spatial import SurfaceTree

SURFACE_SPACING = 2.2
"""Target spacing at the surface, in sizes."""
SPACING_GROWTH = 0.7
"""Target spacing inside, over the depth."""
SHALLOWEST_NODE = 0.5
"""Depth of the first nodes, in spacings."""
SMALLEST_SIZE = 0.25
"""Lower bound of the sizes, over their median."""
JITTER = 0.05
"""Largest random displacement of a node along each axis, over the spacing."""
JOGGLE, JOGGLE_WAVES = 1e-7, 1e5
"""Displacement of a surface vertex for the tetrahedralisation, over its size, and how fast it varies, over the shape's:
so fast that vertices differ, and not so fast that rounding matters.
"""
BRIDGE = 0.5
"""Cosine between an edge and the outward normal above which the edge leaves the shape; also of a face and normals."""
FLATTEST_QUALITY = 1e-4
"""Quality (1 for a regular tetrahedron) below which a tetrahedron counts as flat."""
WINDING_BETA = 1.3
"""Accuracy of the winding numbers (see `SurfaceTree.winding`): errors of a few hundredths, in half the time."""
SLIVER = 0.1
"""Quality below which a tetrahedron is dropped if its edges are in others too."""


def lattice_filling(mesh: Mesh) -> tuple[Floats, Ints]:
    """(m, 3) nodes inside a consistently oriented surface, and (t, 4) tetrahedra over its points and them."""
    centre, unit = (mesh.points.min(axis=0) + mesh.points.max(axis=0)) / 2, mesh.diagonal
    surface = (mesh.points - centre) / unit
    triangles = mesh.triangles if mesh.volume >= 0 else mesh.triangles[:, ::-1]
    tree = SurfaceTree(surface, triangles)
    normals = vertex_normals(surface, triangles)
    size = vertex_sizes(surface, triangles)
    nodes, depth = graded_nodes(tree, size)
    tets = _delaunay(np.concatenate([_apart(surface, normals, size), nodes]))
    tets = _positive(np.concatenate([surface, nodes]), tets)
    tets = tets[_inside(tree, nodes, depth, tets)]
    tets = tets[~_bridging(surface, nodes, normals, mesh.edges, tets)]
    tets = tets[~_beyond(surface, nodes, normals, tets)]
    tets = tets[~_slivers(surface, nodes, normals, tets)]
    return nodes * unit + centre, tets


def vertex_sizes(points: Floats, triangles: Ints) -> Floats:
    """(n,) edge of the equilateral triangle whose area is the mean of those at each vertex."""
    area = np.linalg.norm(triangle_normals(points, triangles), axis=1) / 2
    total = np.bincount(triangles.ravel(), np.repeat(area, 3), minlength=len(points))
    mean = total / np.maximum(np.bincount(triangles.ravel(), minlength=len(points)), 1)
    size = np.sqrt(4 / 3**0.5 * mean)
    return np.maximum(size, SMALLEST_SIZE * np.median(size[size > 0]))


def graded_nodes(tree: SurfaceTree, size: Floats) -> tuple[Floats, Floats]:
    """(m, 3) nodes inside with the target spacing, and (m,) their depths."""
    unit = SURFACE_SPACING * float(np.median(size))
    level_of = np.round(np.log2(SURFACE_SPACING * size / unit)).astype(int)
    kept = [(np.zeros((0, 3)), np.zeros(0))]
    for level in range(level_of.min(), 60):
        step = unit * 2.0**level
        deepest = 2**0.5 * step / SPACING_GROWTH
        cells = _cells_near(tree.points[level_of <= level], step, reach=int(np.ceil(deepest / step + 0.5)))
        nodes = cells * (step / 2)
        foot = tree.closest(nodes, within=deepest)
        near = np.flatnonzero(foot.distance >= SHALLOWEST_NODE * step)
        near = near[foot.triangle[near] >= 0]
        depth = foot.distance[near]
        there = np.einsum("qk,qk->q", foot.barycentric[near], size[tree.triangles[foot.triangle[near]]])
        wanted = np.maximum(SURFACE_SPACING * there, SPACING_GROWTH * depth)
        fits = np.round(np.log2(wanted / unit)) == level
        nodes, cells, depth = nodes[near[fits]], cells[near[fits]], depth[fits]
        inside = np.round(tree.winding(nodes, beta=WINDING_BETA)) == 1
        if level >= level_of.max() and not inside.any():
            break
        kept.append((nodes[inside] + JITTER * step * _scattered(cells[inside]), depth[inside]))
    return np.concatenate([nodes for nodes, _ in kept]), np.concatenate([depth for _, depth in kept])


def _cells_near(points: Floats, step: float, reach: int) -> Ints:
    """(m, 3) nodes of a body-centred lattice of cube edge `step`, in half steps, in all cubes within `reach` cubes."""
    cubes = np.floor(points / step).astype(np.int64)
    low = cubes.min(axis=0) - reach
    span = cubes.max(axis=0) - low + 2 * reach + 1
    keys = distinct(np.ravel_multi_index(tuple((cubes - low).T), tuple(span)))
    for stride in (1, span[2], span[2] * span[1]):
        keys = distinct((keys[:, None] + stride * np.arange(-reach, reach + 1)).ravel())
    corner = np.stack(np.unravel_index(keys, tuple(span)), axis=1) + low
    return np.concatenate([2 * corner, 2 * corner + 1])


def _scattered(cells: Ints) -> Floats:
    """(m, 3) numbers from -1 to 1 that depend on each node's position in its lattice alone (SplitMix64)."""
    with np.errstate(over="ignore"):
        seed = cells.astype(np.uint64) @ np.array(
            [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64
        )
        mixed = seed[:, None] + np.arange(1, 4, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed / 2.0**63 - 1


def _apart(surface: Floats, normals: Floats, size: Floats) -> Floats:
    """The surface's points for the tetrahedralisation; coincident ones, as of closed lips, are moved inwards.

    All are joggled: many may be cospherical, as those of a tube are. By how much depends on
    where a vertex is, so that the order of vertices does not matter.
    """
    from scipy.spatial import cKDTree

    waves = np.random.default_rng(1).normal(0, JOGGLE_WAVES, (3, 3))
    points = surface + JOGGLE * size[:, None] * np.sin(surface @ waves)
    touching = np.unique(cKDTree(surface).query_pairs(1e-9, output_type="ndarray"))
    points[touching] -= 1e-3 * size[touching, None] * normals[touching]
    return points


def _delaunay(points: Floats) -> Ints:
    """(t, 4) tetrahedra over the convex hull; none if the points are flat. Qhull is for those that coincide."""
    from scipy.spatial import Delaunay, QhullError

    tets = delaunay(points)
    if tets is not None or len(points) < 4:
        return np.zeros((0, 4), np.int64) if tets is None else tets
    for options in ("Qbb Qc Qz Q12", "QJ Pp"):
        try:
            return Delaunay(points, qhull_options=options).simplices.astype(np.int64)
        except QhullError:
            continue
    return np.zeros((0, 4), np.int64)


def _positive(points: Floats, tets: Ints) -> Ints:
    """The tetrahedra that are not flat, oriented to have a positive volume."""
    quality = tet_quality(points, tets)
    tets = np.where((quality < 0)[:, None], tets[:, [0, 2, 1, 3]], tets)
    return tets[np.abs(quality) > FLATTEST_QUALITY]


def _inside(tree: SurfaceTree, nodes: Floats, depth: Floats, tets: Ints) -> NDArray[np.bool_]:
    """(t,) tetrahedra whose centroid lies inside: closer to a node than its depth, or by winding number."""
    count = len(tree.points)
    points = np.concatenate([tree.points, nodes])
    middle = points[tets].mean(axis=1)
    deepest = tets.max(axis=1)
    inside = deepest >= count
    away = np.linalg.norm(points[deepest[inside]] - middle[inside], axis=1)
    inside[inside] = away < 0.9 * depth[deepest[inside] - count]
    unsure = ~inside
    inside[unsure] = np.round(tree.winding(middle[unsure], beta=WINDING_BETA)) == 1
    return inside


def _bridging(surface: Floats, nodes: Floats, normals: Floats, edges: Ints, tets: Ints) -> NDArray[np.bool_]:
    """(t,) tetrahedra with an edge that leaves the surface outwards, other than over a dent between neighbours."""
    points = np.concatenate([surface, nodes])
    found = []
    for a, b in ((a, b) for a in range(4) for b in range(4) if a != b):
        at = np.flatnonzero(tets[:, a] < len(surface))
        start, end = tets[at, a], tets[at, b]
        along = points[end] - points[start]
        leaves = np.einsum("ij,ij->i", along, normals[start]) > BRIDGE * np.linalg.norm(along, axis=1)
        found.append(np.stack([at, start, end], axis=1)[leaves])
    tet, start, end = np.concatenate(found).T
    bridging = np.zeros(len(tets), dtype=bool)
    bridging[tet[~_neighbours(start, end, edges, len(surface))]] = True
    return bridging


def _beyond(surface: Floats, nodes: Floats, normals: Floats, tets: Ints) -> NDArray[np.bool_]:
    """(t,) tetrahedra of three vertices, all facing one way, and a node on their outer side: that of another limb."""
    count = len(surface)
    ordered = np.sort(tets, axis=1)
    found = np.flatnonzero((ordered[:, 2] < count) & (ordered[:, 3] >= count))
    a, b, c = (surface[ordered[found, k]] for k in range(3))
    across = np.cross(b - a, c - a)
    across /= np.linalg.norm(across, axis=1, keepdims=True).clip(1e-300)
    facing = np.einsum("tkj,tj->tk", normals[ordered[found, :3]], across)
    side = np.einsum("tj,tj->t", nodes[ordered[found, 3] - count] - a, across)
    beyond = np.zeros(len(tets), dtype=bool)
    beyond[found] = (facing * np.sign(side)[:, None] > BRIDGE).all(axis=1)
    return beyond


def _neighbours(one: Ints, two: Ints, edges: Ints, count: int) -> NDArray[np.bool_]:
    """(k,) whether two vertices share an edge of the surface, or a neighbour on it."""
    from scipy.sparse import coo_matrix, identity

    ones = np.ones(len(edges), dtype=np.int8)
    near = coo_matrix((ones, edges.T), shape=(count, count))
    near = (near + near.T + identity(count, dtype=np.int8)).tocsr()
    found = two < count
    found[found] = np.asarray(near[one[found]].multiply(near[two[found]]).sum(axis=1)).ravel() > 0
    return found


def _slivers(surface: Floats, nodes: Floats, normals: Floats, tets: Ints) -> NDArray[np.bool_]:
    """(t,) slivers that can be dropped, as they are the first to invert and their edges are in other tetrahedra too.

    Slivers between the two sides of a thin shape are kept.
    """
    flat = np.flatnonzero(tet_quality(np.concatenate([surface, nodes]), tets) < SLIVER)
    along = tets[flat].max(axis=1) < len(surface)
    n = normals[tets[flat[along]]]
    spared = np.ones(len(flat), dtype=bool)
    spared[along] = np.einsum("tik,tjk->tij", n, n).min(axis=(1, 2), initial=1) > 0.5
    found = np.zeros(len(tets), dtype=bool)
    found[flat[spared]] = True
    bare = np.ones(tets.max(initial=0) + 1, dtype=bool)  # vertices that would be left without a tetrahedron
    bare[tets[~found]] = False
    return found & ~bare[tets].any(axis=1)
