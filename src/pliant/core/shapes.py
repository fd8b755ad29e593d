"""Shapes: polygon meshes, tetrahedral meshes and point clouds, with all that their files store.

Points are ``(n, 3)`` float64 in the file's own units and axes. Values are immutable: methods such as `with_points`,
`scaled` and `welded` return new objects that share what did not change. A `Mesh` keeps all that its file has
(polygons, vertex order, UVs, normals, materials, groups), so that an artist gets the same mesh back, moved.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.core.errors import InputError, PliantWarning
from pliant.core.scaling import scaling_of
from pliant.core.topology import (
    Floats,
    Ints,
    Polygons,
    connected_parts,
    even_triangles,
    triangulate,
    weld_map,
)
from pliant.core.validation import (
    as_many_points,
    as_points as as_points,
    check_indices,
    check_partition,
    checked_attributes,
    expect,
    finite_values,
    index_table,
    name_list,
    positive_number,
    whole_numbers,
)
from pliant.core.values import Convertible, Value, locked, owned

if TYPE_CHECKING:
    from pliant.core.normals import SmoothCorners


SINGLE_PRECISION, MOST_ROUNDING = float(np.finfo(np.float32).eps), 1e-2
"""Rounding of coordinates that were in single precision, over the largest; and the most, over the diagonal, with which
points tell whether they are moved as a whole."""
RIGID_TOLERANCE = 1e-6
"""Distance, over the diagonal, from where a mesh would be that is moved as a whole; files hold few digits."""


@dataclass(frozen=True, eq=False)
class Layer(Value):
    """Values on polygon corners, stored once and referred to, as OBJ does for UVs and normals."""

    values: Floats
    """(k, d) distinct values."""
    index: Ints
    """(corners,) which value each polygon corner has."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", owned(self.values, "layer values"))
        object.__setattr__(self, "index", whole_numbers(self.index, "layer indices"))
        if self.values.ndim != 2:
            raise InputError(f"layer values have shape {self.values.shape}; expected (k, d)")

    def __repr__(self) -> str:
        return f"Layer({len(self.values)} values on {len(self.index)} corners)"

    @property
    def at_corners(self) -> Floats:
        """(corners, d)."""
        return self.values[self.index]

    def checked(self, what: str, corners: int, widths: tuple[int, ...]) -> Layer:
        """The layer itself, if it suits `corners` polygon corners and its values are finite and of one of `widths`."""
        check_partition(self.index, corners, len(self.values), what, "face corners")
        if self.values.shape[1] not in widths:
            expected = " or ".join(f"(k, {width})" for width in widths)
            raise InputError(f"{what} have shape {self.values.shape}; expected {expected}")
        values = finite_values(self.values, what)
        return self if values is self.values else Layer(values, self.index)

    def per_vertex(self, corners: Ints, count: int) -> Floats | None:
        """(count, d) if all corners of each vertex agree, else None; zero where a vertex has no corner."""
        values = np.zeros((count, self.values.shape[1]))
        values[corners] = self.at_corners
        return values if np.array_equal(values[corners], self.at_corners) else None


@dataclass(frozen=True, eq=False)
class Labels(Value):
    """A partition of the polygons by name, such as objects, groups or materials."""

    names: tuple[str, ...]
    index: Ints
    """(polygons,) position in `names`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", name_list(self.names, "names of labels"))
        object.__setattr__(self, "index", whole_numbers(self.index, "labels"))

    def __repr__(self) -> str:
        return f"Labels({', '.join(self.names[:6])}{', ...' if len(self.names) > 6 else ''})"


@dataclass(frozen=True, eq=False)
class Image:
    """A texture, as its file's bytes."""

    name: str
    data: bytes = field(repr=False)
    mime: str
    """image/png or image/jpeg (others are carried, but not every format can hold them)."""


@dataclass(frozen=True, eq=False)
class Appearance(Value):
    """A material: colour and texture, which every format has, and the file's own description of the rest."""

    color: tuple[float, float, float, float] = (0.8, 0.8, 0.8, 1.0)
    """Linear red, green, blue and opacity."""
    texture: Image | None = None
    """Base colour texture, mapped by the UVs."""
    native: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """By format name ("obj", "gltf"), what that format's writer needs to give the material back unchanged."""

    def __post_init__(self) -> None:
        color = owned(self.color, "colours of a material", np.float64)
        if color.shape != (4,):
            raise InputError(f"the colour of a material is {self.color!r:.60}; expected red, green, blue and opacity")
        object.__setattr__(self, "color", tuple(finite_values(color, "colour of a material").tolist()))
        expect(self.texture, (Image, type(None)), "the texture of a material")
        expect(self.native, Mapping, "what a format says of a material")
        object.__setattr__(self, "native", MappingProxyType(dict(self.native)))


@dataclass(frozen=True)
class World:
    """The axes and units of a file; a label only: points are never rotated or rescaled by it."""

    up: Literal["y", "z"] = "y"
    metres: float | None = 1.0
    """Length of one unit; None where it is not known."""

    def __post_init__(self) -> None:
        if not isinstance(self.up, str) or self.up not in ("y", "z"):
            raise InputError(f'up is {self.up!r:.40}; expected "y" or "z"')
        metres: Any = self.metres
        if metres is not None and (not isinstance(metres, Real) or not 0 < float(metres) < np.inf):
            raise InputError(f"a unit is {metres!r:.40} metres long; expected a positive number")


@dataclass(frozen=True, eq=False, init=False)
class Mesh(Convertible, Value):
    """A polygon mesh. ``Mesh(V, F)`` takes faces as an index array or as lists of mixed length."""

    points: Floats
    """(n, 3) vertices in the file's order."""
    polygons: Polygons
    """The file's own faces."""
    triangles: Ints
    """(m, 3) vertices of the triangles that the polygons are cut into; kept when the points move."""
    triangle_polygon: Ints
    """(m,) the polygon each triangle was cut from."""
    uvs: Layer | None
    """Texture coordinates, v upwards (OBJ and USD convention; glTF files are flipped when read and written)."""
    normals: Layer | None
    labels: Mapping[str, Labels]
    """Partitions of the polygons: "object", "group", "material", "smoothing", where the file had them."""
    appearances: Mapping[str, Appearance]
    """By material name."""
    attributes: Mapping[str, NDArray[Any]]
    """Per-vertex values (n, ...), by name; "color" holds (n, 3) or (n, 4) linear colours from 0 to 1."""
    vertex_groups: Mapping[str, Floats]
    """(n,) weights by name; a skin's joints are such groups."""
    world: World | None
    """The file's axes and units; None if it says nothing."""
    bind_offsets: Mapping[str, Floats]
    """(n, 3) by joint: from each vertex to where that joint alone has it. Empty if the mesh stands as it was bound."""

    def __init__(
        self,
        points: ArrayLike,
        polygons: Polygons | ArrayLike | Sequence[Sequence[int]],
        *,
        triangles: Ints | None = None,
        triangle_polygon: Ints | None = None,
        uvs: Layer | None = None,
        normals: Layer | None = None,
        labels: Mapping[str, Labels] | None = None,
        appearances: Mapping[str, Appearance] | None = None,
        attributes: Mapping[str, NDArray[Any]] | None = None,
        vertex_groups: Mapping[str, Floats] | None = None,
        world: World | None = None,
        bind_offsets: Mapping[str, Floats] | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "points", as_points(points))
        put(self, "polygons", Polygons.of(polygons))
        check_indices(self.polygons.corners, len(self.points), "faces")
        if (triangles is None) != (triangle_polygon is None):
            raise InputError("got only one of triangles and triangle_polygon; expected both or neither")
        if triangles is None or triangle_polygon is None:
            slots, triangle_polygon = triangulate(self.points, self.polygons)
            triangles, triangle_polygon = locked(self.polygons.corners[slots]), locked(triangle_polygon)
        put(self, "triangles", index_table(triangles, 3, "triangles"))
        put(self, "triangle_polygon", whole_numbers(triangle_polygon, "triangle_polygon"))
        check_indices(self.triangles, len(self.points), "triangles")
        check_partition(self.triangle_polygon, len(self.triangles), len(self.polygons), "triangle_polygon", "triangles")
        for name, layer, widths in (("uvs", uvs, (2, 3)), ("normals", normals, (3,))):
            expect(layer, (Layer, type(None)), name)
            put(self, name, None if layer is None else layer.checked(name, len(self.polygons.corners), widths))
        put(self, "labels", MappingProxyType(dict(labels or {})))
        for name, label in self.labels.items():
            check_partition(label.index, len(self.polygons), len(label.names), f'labels "{name}"', "faces")
        put(self, "appearances", MappingProxyType(dict(appearances or {})))
        put(self, "attributes", checked_attributes(attributes, len(self.points)))
        put(self, "vertex_groups", checked_attributes(vertex_groups, len(self.points), "vertex group", finite=True))
        put(self, "world", world)
        put(self, "bind_offsets", checked_attributes(bind_offsets, len(self.points), "bind offset", finite=True))

    def __repr__(self) -> str:
        return f"Mesh({len(self.points)} points, {len(self.polygons)} faces)"

    def with_points(self, points: ArrayLike) -> Mesh:
        """The mesh with other points: same faces and triangles, normals rotated with the surface."""
        moved = as_many_points(points, len(self.points), "this mesh")
        offsets = self._moved_offsets(moved) if self.bind_offsets else {}
        if self.normals is None:
            return replace(self, points=moved, bind_offsets=offsets)
        from pliant.core.normals import rotated_normals

        return replace(self, points=moved, normals=rotated_normals(self, moved), bind_offsets=offsets)

    def _moved_offsets(self, moved: Floats) -> dict[str, Floats]:
        """`bind_offsets` of a mesh that is moved as a whole; none of one that deforms, which is no rest shape."""
        from pliant.core.rotations import match_rigid

        before, after = (np.linalg.norm(points - points.mean(axis=0)) for points in (self.points, moved))
        factor = after / before if before > 0 else 1.0
        R, t = match_rigid(factor * self.points, moved)
        misfit, diagonal = float(np.abs(factor * self.points @ R.T + t - moved).max()), bounding_diagonal(moved)
        rounding = SINGLE_PRECISION * float(max(factor * np.abs(self.points).max(), np.abs(moved).max()))
        if misfit > RIGID_TOLERANCE * diagonal + rounding:
            return {}
        if rounding > MOST_ROUNDING * diagonal and misfit > RIGID_TOLERANCE * diagonal:
            far = f"points are {rounding / (SINGLE_PRECISION * diagonal):.1g} diagonals from the origin"
            lost = "where the file's skin was bound is not kept"
            warnings.warn(
                f"{far}, too far to tell how they move: {lost}; move them nearer", PliantWarning, stacklevel=3
            )
            return {}
        return {name: factor * offset @ R.T for name, offset in self.bind_offsets.items()}

    def scaled(self, factor: float) -> Mesh:
        """All coordinates times `factor`, which is positive."""
        factor = positive_number(factor, "the factor")
        offsets = {name: factor * offset for name, offset in self.bind_offsets.items()}
        return replace(self, points=locked(self.points * factor), bind_offsets=offsets)

    @cached_property
    def triangle_corners(self) -> Ints:
        """(m, 3) the polygon corner that each corner of the triangles is."""
        count = len(self.points)
        keys = self.polygons.of_corner * count + self.polygons.corners
        order = np.argsort(keys, kind="stable")
        wanted = self.triangle_polygon[:, None] * count + self.triangles
        return locked(order[np.searchsorted(keys[order], wanted)])

    @cached_property
    def even_triangles(self) -> Ints:
        """(m, 3) of the polygons, mirrored where the mesh is; `triangles` follow the file's order of corners."""
        return locked(even_triangles(self.points, self.polygons))

    @cached_property
    def smooth_corners(self) -> SmoothCorners:
        """The face corners grouped by position and normal, which shade alike; only with `normals`."""
        from pliant.core.normals import smooth_corners

        return smooth_corners(self)

    @cached_property
    def diagonal(self) -> float:
        """Length of the bounding box's diagonal: the unit of every tolerance."""
        return bounding_diagonal(self.points)

    @cached_property
    def edges(self) -> Ints:
        """(e, 2) edges of the polygons, smaller vertex first, sorted."""
        return self.polygons.edges[0]

    @cached_property
    def edge_polygon_count(self) -> Ints:
        """(e,) how many polygons meet in each of `edges`: 1 at a boundary, 2 inside, more where non-manifold."""
        return self.polygons.edges[1]

    @cached_property
    def boundary_vertices(self) -> NDArray[np.bool_]:
        """(n,) whether a vertex lies on an edge that belongs to one polygon only."""
        mask = np.zeros(len(self.points), dtype=bool)
        mask[self.edges[self.edge_polygon_count == 1]] = True
        return locked(mask)

    @cached_property
    def parts(self) -> Ints:
        """(n,) number of the connected part of each vertex."""
        return locked(connected_parts(len(self.points), self.edges))

    @property
    def is_watertight(self) -> bool:
        """Whether every edge joins exactly two polygons."""
        return len(self.polygons) > 0 and bool((self.edge_polygon_count == 2).all())

    @cached_property
    def volume(self) -> float:
        """Signed enclosed volume (positive if the normals point outwards); of an open mesh, relative to its centre."""
        if not len(self.triangles):
            return 0.0
        scaling = scaling_of(self.points)
        points = scaling(self.points)
        a, b, c = (points[self.triangles[:, k]] - points.mean(axis=0) for k in range(3))
        return float(scaling.undone(np.einsum("ij,ij->", a, np.cross(b, c)) / 6, 3))

    @cached_property
    def area(self) -> float:
        """Total area of the triangles."""
        scaling = scaling_of(self.points)
        a, b, c = (scaling(self.points)[self.triangles[:, k]] for k in range(3))
        return float(scaling.undone(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2, 2))

    def welded(self, tolerance: float = 0.0, *, poses: Sequence[ArrayLike] = ()) -> Weld:
        """Join vertices that a file has split (at UV seams, hard edges, materials): the physical mesh.

        Only vertices on open edges are joined, so that closed lips or eyelids that merely touch stay apart, and only
        if they coincide in every one of `poses` too. `tolerance` is relative to the diagonal; 0 joins exact matches,
        which is what exporters write.
        """
        if not np.isfinite(tolerance) or tolerance < 0:
            raise InputError(f"tolerance is {tolerance}; expected 0 or a small positive number")
        positions = [self.points, *(as_points(pose, "pose") for pose in poses)]
        if any(len(position) != len(self.points) for position in positions):
            raise InputError(f"every pose needs {len(self.points)} points, as the mesh has")
        target = weld_map(np.hstack(positions), self.boundary_vertices, tolerance * self.diagonal)
        kept, index = np.unique(target, return_inverse=True)
        corners = index[self.polygons.corners]
        polygons = Polygons(locked(corners), self.polygons.offsets)
        triangles = index[self.triangles]
        solid = (triangles != np.roll(triangles, 1, axis=1)).all(axis=1)
        mesh = replace(
            self,
            points=locked(self.points[kept]),
            polygons=polygons,
            triangles=locked(triangles[solid]),
            triangle_polygon=locked(self.triangle_polygon[solid]),
            attributes={name: values[kept] for name, values in self.attributes.items()},
            vertex_groups={name: values[kept] for name, values in self.vertex_groups.items()},
            bind_offsets={name: values[kept] for name, values in self.bind_offsets.items()},
        )
        return Weld(mesh, locked(index), locked(kept))


@dataclass(frozen=True, eq=False)
class Weld(Value):
    """A mesh with its split vertices joined, and the map back to the file's vertices."""

    mesh: Mesh
    """The physical mesh: same polygons, fewer vertices. Its triangles leave out those that welding collapsed."""
    index: Ints
    """(n,) for each vertex of the file, its vertex in `mesh`."""
    kept: Ints
    """(physical vertices,) the file's vertex that each vertex of `mesh` was taken from."""

    def restore(self, values: NDArray[Any]) -> NDArray[Any]:
        """Per-vertex values (..., physical vertices, d) spread to the file's vertices (..., n, d)."""
        return values[..., self.index, :]


@dataclass(frozen=True, eq=False)
class TetMesh(Convertible, Value):
    """Tetrahedra, and the triangles a file lists beside them (usually the surface)."""

    points: Floats
    """(n, 3)"""
    tets: Ints
    """(t, 4) vertices; positive volume is ``det(b - a, c - a, d - a) > 0``."""
    triangles: Ints = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))
    """(m, 3)"""
    attributes: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    world: World | None = None
    """The file's axes and units; None if it says nothing."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "points", as_points(self.points))
        for name, width in (("tets", 4), ("triangles", 3)):
            table = index_table(getattr(self, name), width, name)
            check_indices(table, len(self.points), name)
            put(self, name, table)
        put(self, "attributes", checked_attributes(self.attributes, len(self.points)))

    def __repr__(self) -> str:
        return f"TetMesh({len(self.points)} points, {len(self.tets)} tetrahedra)"

    def with_points(self, points: ArrayLike) -> TetMesh:
        """The same tetrahedra with other points."""
        return replace(self, points=as_many_points(points, len(self.points), "this tetrahedral mesh"))

    @cached_property
    def diagonal(self) -> float:
        """Length of the bounding box's diagonal."""
        return bounding_diagonal(self.points)

    @cached_property
    def volumes(self) -> Floats:
        """(t,) signed volumes."""
        scaling = scaling_of(self.points)
        a, b, c, d = (scaling(self.points)[self.tets[:, k]] for k in range(4))
        return locked(scaling.undone(np.einsum("ij,ij->i", b - a, np.cross(c - a, d - a)) / 6, 3))

    @cached_property
    def surface(self) -> Mesh:
        """The boundary of the tetrahedra, facing outwards, over the same points."""
        a, b, c, d = self.tets.T
        # Each row is the face opposite one vertex, outward for a positive tetrahedron.
        faces = np.concatenate([np.stack(f, 1) for f in ((b, c, d), (a, d, c), (a, b, d), (a, c, b))])
        faces = np.where((np.tile(self.volumes, 4) < 0)[:, None], faces[:, ::-1], faces)
        sorted_corners = np.sort(faces, axis=1)
        order = np.lexsort(sorted_corners.T)
        same = (sorted_corners[order[1:]] == sorted_corners[order[:-1]]).all(axis=1)
        lonely = np.ones(len(order), dtype=bool)
        lonely[1:] &= ~same
        lonely[:-1] &= ~same
        return Mesh(self.points, faces[np.sort(order[lonely])], attributes=self.attributes, world=self.world)


@dataclass(frozen=True, eq=False)
class PointCloud(Convertible, Value):
    """Points without connections, with whatever a file says about each (normals, colours, Gaussian splats)."""

    points: Floats
    """(n, 3)"""
    normals: Floats | None = None
    """(n, 3)"""
    attributes: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Per-point values (n, ...), by name, in the file's order."""
    world: World | None = None
    """The file's axes and units; None if it says nothing."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "points", as_points(self.points))
        if self.normals is not None:
            normals = finite_values(owned(self.normals, "normals", np.float64), "normals")
            put(self, "normals", as_points(normals, "normals"))
            checked_attributes({"normals": normals}, len(self.points))
        put(self, "attributes", checked_attributes(self.attributes, len(self.points)))

    def __repr__(self) -> str:
        return f"PointCloud({len(self.points)} points)"

    def with_points(self, points: ArrayLike) -> PointCloud:
        """The cloud with other points; normals are dropped, since points alone do not determine them."""
        return replace(self, points=as_many_points(points, len(self.points), "this cloud"), normals=None)

    @cached_property
    def diagonal(self) -> float:
        """Length of the bounding box's diagonal."""
        return bounding_diagonal(self.points)


Shape = Mesh | TetMesh | PointCloud


def bounding_diagonal(points: Floats) -> float:
    """Length of the bounding box's diagonal; 0 for no points."""
    with np.errstate(over="ignore"):  # infinite only where no number could hold it; squares would be so much sooner
        return math.hypot(*np.ptp(points, axis=0).tolist()) if len(points) else 0.0
