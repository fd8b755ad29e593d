"""What a mesh is made of and what is wrong with it, in numbers and as text.

Topology is judged on the physical mesh, that is after welding the vertices that exporters split at seams: an edge is
open if one face has it, non-manifold if three or more triangles have it, and wrongly oriented if its two faces run
along it in the same direction. A vertex is non-manifold if its faces form more than one fan. Geometry is judged
relative to the size of each face, so units do not matter.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.interop import takes_meshes
from pliant.core.scaling import scaling_of
from pliant.core.shapes import Mesh
from pliant.core.topology import Floats, Ints, Polygons, connected_parts, unique_edges
from pliant.geometry.quality import self_intersections

Corner = tuple[float, float, float]

FLAT_AREA = 1e-12
"""Area of a face over its squared perimeter below which it counts as having none."""


@dataclass(frozen=True)
class MeshFacts:
    """A mesh in numbers. Topology (from `parts` to `duplicate_faces`) is that of the welded mesh."""

    vertices: int
    faces: int
    triangles: int
    quads: int
    polygons: int
    """Faces with five corners or more."""
    largest_face: int
    """Most corners of any face."""
    lower: Corner
    upper: Corner
    diagonal: float
    area: float
    volume: float | None
    """Enclosed volume, if closed."""
    objects: tuple[str, ...]
    groups: tuple[str, ...]
    materials: tuple[str, ...]
    textures: tuple[str, ...]
    uvs: bool
    normals: bool
    colors: bool
    attributes: tuple[str, ...]
    """Other per-vertex values."""
    vertex_groups: tuple[str, ...]
    parts: int
    watertight: bool
    """As the file has it, without welding."""
    closed: bool
    """Once welded."""
    seam_vertices: int
    """Vertices that welding takes away."""
    unused_vertices: int
    boundary_edges: int
    holes: int
    """Connected boundaries; the rim of an open surface is one."""
    nonmanifold_edges: int
    nonmanifold_vertices: int
    misoriented_edges: int
    inside_out: bool | None
    """Whether a closed mesh faces inwards; None if it is open or inconsistent."""
    degenerate_faces: int
    """Without area, or with a corner twice."""
    duplicate_faces: int
    """Faces over the same vertices as an earlier one."""
    self_intersections: int | None
    """Pairs of triangles that cross; None if not looked for."""
    problems: tuple[str, ...] = ()
    """What is wrong and what to do about it, the most important first."""
    notes: tuple[str, ...] = ()
    """What is worth knowing but not wrong."""


@dataclass(frozen=True, eq=False)
class _Edges:
    """Undirected edges of polygons and the half-edges (numbered by their corner) that run along them."""

    ends: Ints
    """(e, 2)"""
    count: Ints
    """(e,) half-edges on each edge."""
    halves: Ints
    """Half-edges sorted by edge; those of edge k start at `first[k]`."""
    first: Ints


def _edges(polygons: Polygons) -> _Edges:
    start, end = polygons.corners, polygons.corners[polygons.next_corner]
    halves = np.flatnonzero(start != end)
    low, high = np.minimum(start, end)[halves], np.maximum(start, end)[halves]
    span = int(high.max()) + 1 if len(high) else 1
    key = low * span + high
    order = np.argsort(key, kind="stable")
    keys, first, count = np.unique(key[order], return_index=True, return_counts=True)
    return _Edges(np.stack([keys // span, keys % span], axis=1), count, halves[order], first)


def _misoriented(polygons: Polygons, edges: _Edges) -> Ints:
    """Edges whose two faces run along them in the same direction."""
    paired = np.flatnonzero(edges.count == 2)
    a, b = edges.halves[edges.first[paired]], edges.halves[edges.first[paired] + 1]
    return paired[polygons.corners[a] == polygons.corners[b]]


def _crowded(mesh: Mesh) -> Ints:
    """(k, 2) edges of three or more triangles: the maths uses triangles, so the diagonals of polygons count too."""
    ends, count = unique_edges(Polygons.of(mesh.triangles))
    return ends[count > 2]


def _boundary_count(edges: _Edges) -> int:
    """Number of connected boundaries."""
    rim = edges.ends[edges.count == 1]
    if not len(rim):
        return 0
    vertices, index = np.unique(rim, return_inverse=True)
    return int(connected_parts(len(vertices), index.reshape(-1, 2)).max()) + 1


def _nonmanifold_vertices(polygons: Polygons, edges: _Edges) -> Ints:
    """Vertices whose faces form more than one fan."""
    corners, following = polygons.corners, polygons.next_corner
    inner = np.flatnonzero(np.arange(len(edges.halves)) - np.repeat(edges.first, edges.count))
    a, b = edges.halves[inner - 1], edges.halves[inner]  # neighbours along one edge
    along = corners[a] == corners[b]
    links = np.concatenate(
        [
            np.stack([a, np.where(along, b, following[b])], axis=1),
            np.stack([following[a], np.where(along, following[b], b)], axis=1),
        ]
    )
    fan = connected_parts(len(corners), links) if len(corners) else np.zeros(0, dtype=np.int64)
    _, corner = np.unique(fan, return_index=True)
    return np.flatnonzero(np.bincount(corners[corner], minlength=1) > 1)


def _degenerate(mesh: Mesh, polygons: Polygons) -> NDArray[np.bool_]:
    """(f,) faces without area or with a corner twice; `polygons` are the mesh's, welded."""
    span = int(polygons.corners.max()) + 1 if len(polygons.corners) else 1
    sorted_corners = np.sort(polygons.of_corner * span + polygons.corners)
    repeated = np.zeros(len(polygons), dtype=bool)
    repeated[sorted_corners[1:][np.diff(sorted_corners) == 0] // span] = True
    points = scaling_of(mesh.points)(mesh.points)
    a, b, c = (points[mesh.triangles[:, k]] for k in range(3))
    doubled = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    area = np.bincount(mesh.triangle_polygon, doubled / 2, minlength=len(polygons))
    corners = mesh.polygons.corners
    length = np.linalg.norm(points[corners[mesh.polygons.next_corner]] - points[corners], axis=1)
    around = np.bincount(mesh.polygons.of_corner, length, minlength=len(polygons))
    return repeated | (area <= FLAT_AREA * around**2)


def _duplicates(polygons: Polygons) -> list[int]:
    """Faces that join the same vertices as an earlier face."""
    with np.errstate(over="ignore"):  # sums of scattered 64-bit numbers: equal for equal faces, rarely for others
        scattered = (polygons.corners.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        scattered = (scattered ^ (scattered >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        total = np.add.reduceat(scattered, polygons.offsets[:-1]) if len(polygons) else scattered
    _, index, count = np.unique(total, return_inverse=True, return_counts=True)
    seen: dict[tuple[int, ...], int] = defaultdict(int)
    repeated = []
    for face in np.flatnonzero(count[index] > 1).tolist():
        key = tuple(sorted(polygons[face].tolist()))
        seen[key] += 1
        if seen[key] > 1:
            repeated.append(face)
    return repeated


def _used_parts(count: int, edges: _Edges, polygons: Polygons) -> int:
    """Connected parts among the vertices that faces use."""
    used = np.bincount(polygons.corners, minlength=count) > 0
    return int(np.count_nonzero(np.bincount(connected_parts(count, edges.ends)[used]))) if count else 0


def _names(mesh: Mesh, label: str) -> tuple[str, ...]:
    """The names in use, in order of first use."""
    if label not in mesh.labels:
        return ()
    index, first = np.unique(mesh.labels[label].index, return_index=True)
    return tuple(mesh.labels[label].names[k] for k in index[np.argsort(first)])


@takes_meshes("mesh")
def inspect_mesh(mesh: Mesh, *, deep: bool = False) -> MeshFacts:
    """Count what a mesh has and what is wrong with it; `deep` looks for self-intersections too."""
    weld = mesh.welded()
    polygons, edges = weld.mesh.polygons, _edges(weld.mesh.polygons)
    torn, crowded = np.flatnonzero(edges.count == 1), _crowded(weld.mesh)
    wrong, pinched = _misoriented(polygons, edges), _nonmanifold_vertices(polygons, edges)
    degenerate, duplicates = np.flatnonzero(_degenerate(mesh, polygons)), _duplicates(polygons)
    crossing = _crossings(weld.mesh) if deep else None
    closed = len(edges.count) > 0 and bool((edges.count == 2).all())
    sizes = mesh.polygons.sizes
    lower, upper = bounds(mesh.points)
    textures = [look.texture.name for look in mesh.appearances.values() if look.texture is not None]
    facts = MeshFacts(
        vertices=len(mesh.points),
        faces=len(mesh.polygons),
        triangles=int((sizes == 3).sum()),
        quads=int((sizes == 4).sum()),
        polygons=int((sizes > 4).sum()),
        largest_face=int(sizes.max(initial=0)),
        lower=lower,
        upper=upper,
        diagonal=mesh.diagonal,
        area=mesh.area,
        volume=mesh.volume if closed else None,
        objects=_names(mesh, "object"),
        groups=_names(mesh, "group"),
        materials=_names(mesh, "material"),
        textures=tuple(dict.fromkeys(textures)),
        uvs=mesh.uvs is not None,
        normals=mesh.normals is not None,
        colors="color" in mesh.attributes,
        attributes=tuple(name for name in mesh.attributes if name != "color"),
        vertex_groups=tuple(mesh.vertex_groups),
        parts=_used_parts(len(weld.kept), edges, polygons),
        watertight=mesh.is_watertight,
        closed=closed,
        seam_vertices=len(mesh.points) - len(weld.kept),
        unused_vertices=int((np.bincount(mesh.polygons.corners, minlength=len(mesh.points)) == 0).sum()),
        boundary_edges=len(torn),
        holes=_boundary_count(edges),
        nonmanifold_edges=len(crowded),
        nonmanifold_vertices=len(pinched),
        misoriented_edges=len(wrong),
        inside_out=mesh.volume < 0 if closed and not len(wrong) else None,
        degenerate_faces=len(degenerate),
        duplicate_faces=len(duplicates),
        self_intersections=None if crossing is None else len(crossing),
    )
    locations = {
        "crowded": _at("vertices", weld.kept[crowded[:1]]),
        "wrong": _at("vertices", weld.kept[edges.ends[wrong[:1]]]),
        "pinched": _at("vertex", weld.kept[pinched[:1]]),
        "crossing": _at("faces", np.zeros(0) if crossing is None else crossing[:1]),
        "degenerate": _at("face", degenerate[:1]),
        "duplicates": _at("face", np.array(duplicates[:1])),
    }
    return replace(facts, problems=_problems(facts, locations), notes=_notes(facts, mesh.world is not None))


def _crossings(mesh: Mesh) -> Ints:
    """(k, 2) faces of the file that cross each other."""
    return mesh.triangle_polygon[self_intersections(mesh).pairs]


def bounds(points: Floats) -> tuple[Corner, Corner]:
    """The lower and upper corner of the bounding box, as plain numbers."""
    if not len(points):
        return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    (a, b, c), (d, e, f) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    return (a, b, c), (d, e, f)


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun: "1 face", "12 faces"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _at(what: str, first: NDArray[Any]) -> str:
    """Where the first of several is, as text for brackets; empty if there is none."""
    return f" (the first: {what} {' and '.join(map(str, first.ravel().tolist()))})" if first.size else ""


def _problems(facts: MeshFacts, locations: dict[str, str]) -> tuple[str, ...]:
    """What is wrong and what to do about it, the most important first; vertices and faces are numbered from 0."""
    rim = counted(facts.boundary_edges, "open edge")
    loops = counted(facts.holes, "boundary", "boundaries")
    crowded = counted(facts.nonmanifold_edges, "edge with", "edges with")
    wrong = counted(facts.misoriented_edges, "edge between", "edges between")
    pinched = counted(facts.nonmanifold_vertices, "vertex where", "vertices where")
    crossing = counted(facts.self_intersections or 0, "pair of triangles crosses", "pairs of triangles cross")
    degenerate = counted(facts.degenerate_faces, "face has", "faces have")
    repeated = counted(facts.duplicate_faces, "face repeats", "faces repeat")
    unused = counted(facts.unused_vertices, "vertex belongs", "vertices belong")
    problems = (
        (not facts.faces, "It has no faces; it can only be used as a point cloud."),
        (facts.vertices and not facts.diagonal, "All its points coincide; check the scale of the export."),
        (facts.inside_out, "It is inside out (its volume is negative); flip its faces."),
        (
            facts.nonmanifold_edges,
            f"{crowded} three or more triangles{locations['crowded']}; delete or split the extra faces.",
        ),
        (
            facts.misoriented_edges,
            f"{wrong} faces that look opposite ways{locations['wrong']}; recalculate the normals to the outside.",
        ),
        (
            facts.nonmanifold_vertices,
            f"{pinched} separate fans of faces meet{locations['pinched']}; give each fan a vertex of its own.",
        ),
        (
            facts.boundary_edges,
            f"It is not closed: {rim} in {loops}; fill the holes if it is meant to be solid.",
        ),
        (
            facts.self_intersections,
            f"{crossing} each other{locations['crossing']}; push the surface apart if it must be free of overlaps.",
        ),
        (
            facts.degenerate_faces,
            f"{degenerate} no area or a corner twice{locations['degenerate']}; dissolve or remove.",
        ),
        (facts.duplicate_faces, f"{repeated} an earlier one{locations['duplicates']}; remove the doubles."),
        (facts.unused_vertices, f"{unused} to no face; remove what is not needed."),
    )
    return tuple(sentence for applies, sentence in problems if applies)


def _notes(facts: MeshFacts, stated: bool) -> tuple[str, ...]:
    """What is worth knowing but not wrong. stated: whether the file says how long a unit is."""
    found = []
    if facts.seam_vertices:
        closed = ", and it is closed then" if facts.closed and not facts.watertight else ""
        number = counted(facts.seam_vertices, "vertex repeats", "vertices repeat")
        found.append(f"{number} another at a seam; engines weld them{closed}, and files get them back.")
    if stated:
        return tuple(found)
    if 500 <= facts.diagonal < np.inf:
        found.append(f"It is {facts.diagonal:.4g} units across; that looks like millimetres rather than metres.")
    elif 0 < facts.diagonal <= 0.02:
        found.append(
            f"It is {facts.diagonal:.3g} units across; in metres that would be {1000 * facts.diagonal:.2g} mm."
        )
    return tuple(found)
