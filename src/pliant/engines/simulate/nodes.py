"""Nodes: the points inside a body whose displacements are the unknowns, and the supports of their functions.

They are a centroidal Voronoi tessellation (Lloyd 1982) of the chunks that fill the body (`interior`): each free node is
the centroid of the chunks nearest to it. The bones do not affect them. Their samples stand behind the free nodes as
fixed ones, whose positions the skeleton gives and which have no functions.

*Thin parts.* Functions that reproduce linear fields need nodes that do not lie in one plane. The target spacing is
uniform, except where the body is less than `NODES_ACROSS` spacings thick: there it is the thickness over
`NODES_ACROSS`, but at least the uniform spacing over `SPACING_RATIO`. The thickness at a point is the length of the
line from the nearest point of the surface through it to the opposite side. Parts that are thinner still have one layer
of nodes, moved alternately to either side of its plane.

*Supports.* h_I is "adaptive to the local density": `SUPPORT_FACTOR` times the cube root of the mean Voronoi volume of
the nodes near I.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.core.errors import InputError
from pliant.core.topology import Floats, Ints, connected_parts
from pliant.core.validation import as_points
from pliant.core.values import Value, locked, owned
from pliant.engines.simulate.interior import Chunks, Fillable, body_surface, enclosed_volume, fill, touching_chunks
from pliant.geometry.spatial import SurfaceTree

SUPPORT_FACTOR = 1.7
"""Support over the cube root of a node's volume: a point deep inside is in about 20 supports."""
CHUNKS_PER_SPACING = 3
"""Chunks along each side of a node's volume."""
LLOYD_ITERATIONS = 6
"""Iterations of Lloyd's method."""
CLUSTER_ITERATIONS = 4
"""The same of `cluster_centres`."""
FEWEST_NODES = 8
"""Nodes that a body needs at least."""
NODES_ACROSS = 2.0
"""Nodes wanted across a thin part."""
SPACING_RATIO = 2.5
"""Largest spacing of the nodes over the smallest."""
SURFACE_WEIGHT = 1.0
"""Weight of the surface, in spacings: with it the outer nodes lie about a quarter of the spacing below the surface."""
LOW_DISCREPANCY = np.array([0.7548776662466927, 0.5698402909980532])
"""Multiples of these, modulo 1, fill the square evenly (Roberts' sequence)."""
NODES_PER_PART = 8
"""Least number of nodes in a connected part of a body, approximately."""
DIGITS = 9
"""Decimal digits of coordinates over the diagonal: further ones depend on the units and must not affect the nodes."""
COINCIDENT = 1e-6
"""Distance over the smallest spacing below which two nodes coincide."""
LEAST_DISTANCE = 0.3
"""Distance between two nodes, at least, over the spacing."""


@dataclass(frozen=True, eq=False)
class Nodes(Value):
    """Nodes in a body: the free ones first, then the fixed samples of the bones."""

    points: Floats
    """(n, 3)"""
    radii: Floats
    """(n,) supports h_I; of a fixed node, that of the nearest free one."""
    free: int
    """How many are free; the rest is fixed."""
    surface: SurfaceTree = field(repr=False)
    """The body's surface, facing outwards; it limits visibility."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", as_points(self.points, "nodes"))
        object.__setattr__(self, "radii", owned(self.radii, "radii", np.float64))
        if self.radii.shape != (len(self.points),) or not (self.radii > 0).all():
            raise InputError(f"radii have shape {self.radii.shape}; expected {len(self.points)} positive numbers")
        if not 0 <= self.free <= len(self.points):
            raise InputError(f"free is {self.free}; expected 0 to {len(self.points)}, the number of nodes")

    def __len__(self) -> int:
        return len(self.points)

    def with_fixed(self, samples: Floats) -> Nodes:
        """These nodes, and samples of the bones (s, 3) behind them."""
        from scipy.spatial import cKDTree

        near = cKDTree(self.points[: self.free]).query(samples)[1] if len(samples) else np.zeros(0, dtype=np.int64)
        points = np.concatenate([self.points[: self.free], samples])
        radii = np.concatenate([self.radii[: self.free], self.radii[near]])
        return Nodes(locked(points), locked(radii), self.free, self.surface)

    @cached_property
    def around(self) -> Ints:
        """(n,) parts of the surface around each node; 0 outside."""
        return locked(np.maximum(np.round(self.surface.winding(self.points)), 0).astype(np.int64))

    @cached_property
    def depth(self) -> Floats:
        """(n,) distance of each node from the surface."""
        return locked(self.surface.closest(self.points).distance)


def sample_nodes(mesh: Fillable, count: int, *, fixed: ArrayLike = ()) -> Nodes:
    """Place `count` nodes in a body; the `fixed` ones (s, 3), the samples of its bones, follow them.

    mesh: any shape that encloses something: a surface, also of several parts or with small holes; tetrahedra; or a
    point cloud with normals.
    """
    samples = as_points(np.reshape(fixed, (-1, 3)) if np.size(fixed) == 0 else fixed, "fixed")
    if not isinstance(count, (int, np.integer)) or count < FEWEST_NODES:
        raise InputError(
            f"{count!r:.40} nodes are too few; expected a whole number, {FEWEST_NODES} or more", argument="nodes"
        )
    tree = body_surface(mesh)
    centre, unit = (tree.points.min(axis=0) + tree.points.max(axis=0)) / 2, tree.diagonal
    frame = SurfaceTree(np.round((tree.points - centre) / unit, DIGITS), tree.triangles)
    points, radii = _sampled(frame, int(count))
    if not (np.isfinite(points).all() and np.isfinite(radii).all() and (radii > 0).all()):
        raise InputError(
            "nodes cannot be spread inside the surface: it is too open to tell inside from outside; expected a closed "
            "surface, or one with small holes only"
        )
    return Nodes(locked(points * unit + centre), locked(radii * unit), len(points), tree).with_fixed(samples)


def _sampled(tree: SurfaceTree, count: int) -> tuple[Floats, Floats]:
    """Free nodes and their supports, in units of the body's diagonal."""
    spacing = (enclosed_volume(tree) / count) ** (1 / 3)
    chunks = fill(tree, spacing / CHUNKS_PER_SPACING)
    thickness = _thickness(tree, chunks, 2 * NODES_ACROSS * spacing)
    size = _in_every_part(chunks, _sizes(chunks.volumes, thickness, count))
    points = _relaxed(_spread(chunks, size, count), chunks, size, tree)
    points = _out_of_plane(_apart(points, chunks, size), tree, chunks, size)
    points = _brought_inside(points, chunks, tree)
    return points, _radii(points, chunks)


def _in_every_part(chunks: Chunks, size: Floats) -> Floats:
    """(k,) spacings, smaller in parts of the body that would have fewer than `NODES_PER_PART` nodes."""
    part = connected_parts(len(size), touching_chunks(chunks))
    nodes = np.bincount(part, chunks.volumes / size**3)
    return size * np.cbrt(np.minimum(nodes / NODES_PER_PART, 1))[part]


def _thickness(tree: SurfaceTree, chunks: Chunks, most: float) -> Floats:
    """(k,) thickness of the body at each chunk, infinite above `most`; one value for 2 × 2 × 2 chunks."""
    cells = chunks.cells // 2
    cells -= cells.min(axis=0)
    number = np.ravel_multi_index(tuple(cells.T), tuple(cells.max(axis=0) + 1))
    _, chosen, group = np.unique(number, return_index=True, return_inverse=True)
    return chord(tree, chunks.points[chosen], most)[0][group]


def chord(tree: SurfaceTree, points: Floats, most: float) -> tuple[Floats, Floats]:
    """(k,) length of the line from the nearest surface point through each point to the other side, and (k, 3)
    its direction; infinite where it is longer than `most`."""
    foot = tree.closest(points)
    inward = points - foot.points
    inward /= np.maximum(foot.distance, 1e-12 * tree.diagonal)[:, None]
    rest = np.maximum(most - foot.distance, 0)
    fraction, _ = tree.first_hit(points, points + rest[:, None] * inward, leaving=True)
    found = np.isfinite(fraction)
    return np.where(found, foot.distance + np.where(found, fraction, 0) * rest, np.inf), inward


def relative_thickness(nodes: Nodes) -> Floats:
    """(n,) half of the body's thickness at each node, over the distance of the nodes there; at most the median of a few
    nodes around it: one in a corner may look along an edge."""
    from scipy.spatial import cKDTree

    thickness, _ = chord(nodes.surface, nodes.points, nodes.surface.diagonal)
    thickness = np.where(np.isfinite(thickness), thickness, nodes.surface.diagonal)
    near = cKDTree(nodes.points).query(nodes.points, k=min(9, len(nodes)))[1].reshape(len(nodes), -1)
    half = np.minimum(thickness, np.median(thickness[near], axis=1)) / 2
    return SUPPORT_FACTOR * np.maximum(half / nodes.radii, 0.1)


def _sizes(volumes: Floats, thickness: Floats, count: int) -> Floats:
    """(k,) target spacing at each chunk, such that `count` nodes fill the body: Σ volume / spacing³ = count."""
    low = (volumes.sum() / count) ** (1 / 3)
    high = SPACING_RATIO * low
    for _ in range(40):
        middle = (low + high) / 2
        size = np.clip(thickness / NODES_ACROSS, middle / SPACING_RATIO, middle)
        low, high = (middle, high) if (volumes / size**3).sum() > count else (low, middle)
    return size


def _spread(chunks: Chunks, size: Floats, count: int) -> Floats:
    """(count, 3) chunks at equal steps along a space-filling curve."""
    order = np.argsort(_along_curve(chunks), kind="stable")
    filled = np.cumsum((chunks.volumes / size**3)[order])
    chosen = np.searchsorted(filled, (np.arange(count) + 0.5) / count * filled[-1])
    return chunks.points[order[np.minimum(chosen, len(order) - 1)]]


def _along_curve(chunks: Chunks) -> NDArray[np.uint64]:
    """(k,) Morton code of each chunk's cell: the interleaved bits of its coordinates."""
    cells = (chunks.cells - chunks.cells.min(axis=0)).astype(np.uint64)
    number = np.zeros(len(cells), dtype=np.uint64)
    for bit in range(20):
        for axis in range(3):
            number |= ((cells[:, axis] >> np.uint64(bit)) & np.uint64(1)) << np.uint64(3 * bit + axis)
    return number


def _relaxed(points: Floats, chunks: Chunks, size: Floats, tree: SurfaceTree) -> Floats:
    """Free nodes after Lloyd's method: each is moved repeatedly to the centroid of the chunks nearest to it.

    The density size⁻⁵ gives the tessellation's cells the target sizes (Du, Faber, Gunzburger 1999). The surface has a
    weight of its own, as if it were `SURFACE_WEIGHT` spacings thick.
    """
    from scipy.spatial import cKDTree

    inner = cKDTree(chunks.points)
    skin, area = surface_samples(tree, float(chunks.step.max()))
    near = size[inner.query(skin)[1]]
    positions = np.concatenate([chunks.points, skin])
    weight = np.concatenate([chunks.volumes / size**5, SURFACE_WEIGHT * area / near**4]) * size.min() ** 5
    count = len(points)
    for _ in range(LLOYD_ITERATIONS):
        owner = cKDTree(points).query(positions)[1]
        total = np.bincount(owner, weight, minlength=count)
        moment = np.stack([np.bincount(owner, weight * x, minlength=count) for x in positions.T], axis=1)
        points = np.where(total[:, None] > 0, moment / np.maximum(total, 1e-300)[:, None], points)
    return _brought_inside(points, chunks, tree)


def _brought_inside(points: Floats, chunks: Chunks, tree: SurfaceTree) -> Floats:
    """Nodes, with those outside the body (centroids across a gap) moved to the nearest chunk."""
    from scipy.spatial import cKDTree

    outside = np.flatnonzero(~tree.inside(points))
    positions = np.array(points)
    positions[outside] = chunks.points[cKDTree(chunks.points).query(points[outside])[1]]
    return positions


def surface_samples(tree: SurfaceTree, step: float) -> tuple[Floats, float]:
    """(k, 3) points spread evenly over a surface, one for each square of edge `step`, and the area of each."""
    a, b, c = (tree.points[tree.triangles[:, k]] for k in range(3))
    filled = np.cumsum(np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2)
    count = int(np.ceil(filled[-1] / step**2))
    triangle = np.searchsorted(filled, (np.arange(count) + 0.5) / count * filled[-1])
    u, v = np.modf(np.arange(count)[:, None] * LOW_DISCREPANCY + 0.5)[0].T
    u, v = np.where(u + v > 1, [1 - u, 1 - v], [u, v])
    along = u[:, None] * (b - a)[triangle] + v[:, None] * (c - a)[triangle]
    return a[triangle] + along, float(filled[-1] / count)


def _apart(points: Floats, chunks: Chunks, size: Floats) -> Floats:
    """Nodes, with those too near to another one moved to the chunks farthest from all nodes."""
    from scipy.spatial import cKDTree

    tree = cKDTree(points)
    distance, other = tree.query(points, k=2)
    near = LEAST_DISTANCE * size[cKDTree(chunks.points).query(points)[1]]
    too_near = (distance[:, 1] < near) & (other[:, 0] > other[:, 1])
    pairs = cKDTree(points).query_pairs(COINCIDENT * float(size.min()), output_type="ndarray")
    too_near[pairs.max(axis=1)] = True  # of several coincident nodes the query above may return any two
    crowded = np.flatnonzero(too_near)
    points = np.array(points)
    gap = tree.query(chunks.points)[0] / size
    for node in crowded:
        far = int(np.argmax(gap))
        points[node] = chunks.points[far]
        gap = np.minimum(gap, np.linalg.norm(chunks.points - points[node], axis=1) / size)
    return points


def _out_of_plane(points: Floats, tree: SurfaceTree, chunks: Chunks, size: Floats) -> Floats:
    """Nodes, with those in parts too thin for two layers moved alternately to 1/4 and 3/4 of the thickness."""
    from scipy.spatial import cKDTree

    spacing = size[cKDTree(chunks.points).query(points)[1]]
    thickness, inward = chord(tree, points, NODES_ACROSS * float(spacing.max()))
    thin = np.flatnonzero(thickness < 0.75 * NODES_ACROSS * spacing)
    if not len(thin):
        return points
    foot = points[thin] - tree.closest(points[thin]).distance[:, None] * inward[thin]
    near = cKDTree(points[thin]).query(points[thin], k=min(7, len(thin)))[1].reshape(len(thin), -1)
    side = np.zeros((len(thin), 3))
    moved = np.array(points)
    for k, node in enumerate(thin):
        there = 0.25 if side[near[k]].sum(axis=0) @ inward[node] > 0 else 0.75
        side[k] = (2 * there - 1) * inward[node]
        moved[node] = foot[k] + there * thickness[node] * inward[node]
    return moved


def _radii(points: Floats, chunks: Chunks) -> Floats:
    """(n,) supports, from the mean Voronoi volume of the nodes around each node."""
    from scipy.spatial import cKDTree

    tree = cKDTree(points)
    volume = np.bincount(tree.query(chunks.points)[1], chunks.volumes, minlength=len(points))
    near = tree.query(points, k=min(8, len(points)))[1]
    return SUPPORT_FACTOR * np.cbrt(volume[near].mean(axis=1))


def cluster_centres(points: Floats, centres: Floats, sizes: Floats) -> Ints:
    """Indices of points (p, 3) of given sizes (p,) in the middle of clusters, from first centres (Lloyd 1982)."""
    from scipy.spatial import cKDTree

    for _ in range(CLUSTER_ITERATIONS):
        owner = cKDTree(centres).query(points)[1]
        size = np.bincount(owner, sizes, minlength=len(centres))
        middle = np.stack([np.bincount(owner, sizes * x, minlength=len(centres)) for x in points.T], axis=1)
        centres = middle[size > 0] / size[size > 0, None]
    return np.unique(cKDTree(points).query(centres)[1])
