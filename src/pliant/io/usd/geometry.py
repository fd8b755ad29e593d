"""USD meshes and points as arrays: what lies on one prim, in the prim's own space.

USD keeps ``faceVertexCounts`` and ``faceVertexIndices``; values on the surface ("primvars") say by their interpolation
what they belong to: constant (the prim), uniform (a face), vertex or varying (a point), faceVarying (a corner). Any may
be indexed. Faces of a left-handed mesh are reversed, so that all are right-handed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.shapes import Layer
from pliant.core.topology import Floats, Ints, Polygons
from pliant.io.joining import Part, checked_polygons, flipped_polygons, looked_up, owner_of_corners, shared_values
from pliant.io.source import Source
from pliant.io.usd.stage import library

UV_NAMES = ("st", "st0", "UVMap", "map1", "uv", "Texture_uv")

NAME_PROPERTY = "pliantName"
"""Custom data that keeps a name which USD's identifiers cannot hold."""
ORDER = "pliantOrder"
"""Custom data that keeps the order of what USD sorts by name."""
GROUPS, LABELS_PROPERTY, ATTRIBUTES_PROPERTY = "pliant:groups", "pliant:labels", "pliant:attributes"
"""Primvar namespaces for what USD cannot store itself."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PrimGeometry(Part):
    """One mesh or points prim."""

    prim: Any
    labels: dict[str, tuple[tuple[str, ...], Ints]] = field(default_factory=dict)
    """Partitions that pliant wrote: names, and (polygons,) which."""


def shown(stage: Any, kind: str) -> Iterator[Any]:
    """Prims of a schema ("Mesh", "Points") that a viewer would draw: active, visible, no guides or proxies."""
    Usd, UsdGeom = library("Usd"), library("UsdGeom")
    schema = getattr(UsdGeom, kind)
    hidden = (UsdGeom.Tokens.guide, UsdGeom.Tokens.proxy)
    walk = iter(Usd.PrimRange(stage.GetPseudoRoot(), Usd.TraverseInstanceProxies(Usd.PrimDefaultPredicate)))
    for prim in walk:
        if prim.IsA(UsdGeom.PointInstancer):
            walk.PruneChildren()
        if not prim.IsA(schema):
            continue
        look = UsdGeom.Imageable(prim)
        seen = look.ComputeVisibility(Usd.TimeCode.EarliestTime()) != UsdGeom.Tokens.invisible
        if seen and look.ComputePurpose() not in hidden:
            yield prim


def location_of(prim: Any) -> str:
    """How errors name a prim."""
    return str(prim.GetPath())


def name_of(prim: Any) -> str:
    """The name that was written with pliant, or the prim's own."""
    kept = prim.GetCustomDataByKey(NAME_PROPERTY)
    return kept if isinstance(kept, str) else str(prim.GetName())


def rest_time(attribute: Any) -> Any:
    """Where a moving attribute rests: its default if it has one, or else its first sample."""
    Usd = library("Usd")
    return Usd.TimeCode.Default() if attribute.Get() is not None else Usd.TimeCode.EarliestTime()


def table(source: Source, prim: Any, value: Any, width: int, what: str, *, finite: bool = True) -> Floats:
    """A USD array of vectors as (n, width) float64; `finite`, or as shapes repair it (see `pliant.core.validation`)."""
    if value is None:
        return np.zeros((0, width))
    try:
        array = np.array(value, dtype=np.float64)
        array = array.reshape(-1, width) if array.size else np.zeros((0, width))
    except (TypeError, ValueError) as error:
        raise source.error(f"{what} are not vectors of {width} numbers", location=location_of(prim)) from error
    good = np.isfinite(array).all(axis=1)
    if finite and not good.all():
        bad = int(np.argmin(good))
        problem = f"{what}: number {bad} is {array[bad].tolist()}; expected finite values"
        raise source.error(problem, location=location_of(prim))
    return array


def integers(source: Source, prim: Any, value: Any, what: str) -> Ints:
    """A USD array of whole numbers."""
    try:
        return np.array([] if value is None else value, dtype=np.int64).reshape(-1)
    except (TypeError, ValueError, OverflowError) as error:
        raise source.error(f"{what} are not whole numbers", location=location_of(prim)) from error


def read_part(source: Source, prim: Any) -> PrimGeometry:
    """A mesh prim's points, faces and what lies on them."""
    mesh = library("UsdGeom").Mesh(prim)
    at = rest_time(mesh.GetPointsAttr())
    points = table(source, prim, mesh.GetPointsAttr().Get(at), 3, "points")
    polygons = _polygons(source, mesh, len(points))
    corner_order = np.arange(len(polygons.corners))
    if mesh.GetOrientationAttr().Get() == "leftHanded":
        polygons, corner_order = flipped_polygons(polygons)
    part = PrimGeometry(points, polygons, corner_order, prim=prim)
    return replace(
        part,
        uvs=_uvs(source, part),
        normals=_normals(source, part, mesh, at),
        color=_color(source, part),
        attributes=_attributes(source, part),
        groups=_groups(source, part),
        labels=_labels(source, part),
    )


def read_cloud(source: Source, prim: Any) -> PrimGeometry:
    """A points prim."""
    points = library("UsdGeom").Points(prim)
    at = rest_time(points.GetPointsAttr())
    positions = table(source, prim, points.GetPointsAttr().Get(at), 3, "points")
    none = Polygons(np.zeros(0, np.int64), np.zeros(1, np.int64))
    part = PrimGeometry(positions, none, none.corners, prim=prim)
    normals = table(source, prim, points.GetNormalsAttr().Get(at), 3, "normals")
    layer = Layer(normals, np.arange(len(normals))) if len(normals) == len(positions) and len(positions) else None
    color, attributes = _color(source, part), _attributes(source, part)
    return replace(part, normals=layer, color=color, attributes=attributes)


def _polygons(source: Source, mesh: Any, count: int) -> Polygons:
    prim = mesh.GetPrim()
    counts_attribute, corners_attribute = mesh.GetFaceVertexCountsAttr(), mesh.GetFaceVertexIndicesAttr()
    sizes = integers(source, prim, counts_attribute.Get(rest_time(counts_attribute)), "faceVertexCounts")
    corners = integers(source, prim, corners_attribute.Get(rest_time(corners_attribute)), "faceVertexIndices")
    return checked_polygons(source, sizes, corners, count, location_of(prim))


def _index(source: Source, part: PrimGeometry, interpolation: str, indices: Ints, count: int, what: str) -> Ints:
    """(corners,) which of `count` values each corner has."""
    owner = owner_of_corners(part, interpolation)
    if owner is None:
        raise source.error(f'{what} have interpolation "{interpolation}"', location=location_of(part.prim))
    return looked_up(source, location_of(part.prim), owner, indices, count, what)


def _primvar(prim: Any, name: str) -> Any:
    """A primvar with a value on the prim or inherited, or None."""
    found = library("UsdGeom").PrimvarsAPI(prim).FindPrimvarWithInheritance(name)
    return found if found and found.HasAuthoredValue() else None


def _values(source: Source, part: PrimGeometry, primvar: Any, width: int, what: str) -> tuple[Floats, Ints]:
    at = rest_time(primvar.GetAttr())
    values = table(source, part.prim, primvar.Get(at), width, what, finite=False)
    indices = primvar.GetIndices(at) if primvar.IsIndexed() else None
    return values, integers(source, part.prim, indices, f"indices of {what}")


def _uvs(source: Source, part: PrimGeometry) -> Layer | None:
    primvars = library("UsdGeom").PrimvarsAPI(part.prim).GetPrimvarsWithAuthoredValues()
    textured = [p.GetPrimvarName() for p in primvars if "texCoord2" in str(p.GetTypeName())]
    for name in (*UV_NAMES, *textured):
        primvar = _primvar(part.prim, name)
        if primvar is not None and str(primvar.GetTypeName()) in (
            "texCoord2f[]",
            "texCoord2d[]",
            "float2[]",
            "double2[]",
        ):
            values, indices = _values(source, part, primvar, 2, "UVs")
            return Layer(values, _index(source, part, str(primvar.GetInterpolation()), indices, len(values), "UVs"))
    return None


def _normals(source: Source, part: PrimGeometry, mesh: Any, at: Any) -> Layer | None:
    primvar = _primvar(part.prim, "normals")
    if primvar is not None:
        values, indices = _values(source, part, primvar, 3, "normals")
        interpolation = str(primvar.GetInterpolation())
    else:
        given = mesh.GetNormalsAttr().Get(at)
        values, indices = table(source, part.prim, given, 3, "normals", finite=False), np.zeros(0, np.int64)
        interpolation = str(mesh.GetNormalsInterpolation())
    if not len(values):
        return None
    index = _index(source, part, interpolation, indices, len(values), "normals")
    if interpolation == "faceVarying" and not len(indices):
        return shared_values(values, index)
    return Layer(values, index)


def _at_points(source: Source, part: PrimGeometry, primvar: Any, width: int, what: str) -> Floats | None:
    """(n, width) values of a vertex or constant primvar; None if it lies on faces or corners."""
    interpolation = str(primvar.GetInterpolation())
    if interpolation not in ("vertex", "varying", "constant"):
        return None
    values, indices = _values(source, part, primvar, width, what)
    count = len(part.points)
    owner = np.zeros(count, np.int64) if interpolation == "constant" else np.arange(count)
    return values[looked_up(source, location_of(part.prim), owner, indices, len(values), what)]


def _color(source: Source, part: PrimGeometry) -> Floats | None:
    color, opacity = (_primvar(part.prim, name) for name in ("displayColor", "displayOpacity"))
    if color is None or str(color.GetInterpolation()) == "constant":
        return None
    rgb = _at_points(source, part, color, 3, "displayColor")
    if rgb is None or opacity is None or str(opacity.GetInterpolation()) == "constant":
        return rgb
    alpha = _at_points(source, part, opacity, 1, "displayOpacity")
    return rgb if alpha is None else np.hstack([rgb, alpha])


def _ours(part: PrimGeometry, namespace: str) -> Iterator[tuple[str, Any]]:
    """Primvars that pliant wrote, with the names they stand for, in the order they were written."""
    found = []
    for attribute in part.prim.GetAuthoredPropertiesInNamespace(f"primvars:{namespace}"):
        name, order = (attribute.GetCustomDataByKey(key) for key in (NAME_PROPERTY, ORDER))
        if isinstance(name, str) and isinstance(order, int):
            found.append((order, name, library("UsdGeom").Primvar(attribute)))
    yield from ((name, primvar) for _, name, primvar in sorted(found, key=lambda one: one[0]))


def _groups(source: Source, part: PrimGeometry) -> dict[str, Floats]:
    groups = {}
    for name, primvar in _ours(part, GROUPS):
        weights = _at_points(source, part, primvar, 1, f'weights of "{name}"')
        if weights is not None:
            groups[name] = weights[:, 0]
    return groups


def _attributes(source: Source, part: PrimGeometry) -> dict[str, NDArray[Any]]:
    attributes = {}
    for name, primvar in _ours(part, ATTRIBUTES_PROPERTY):
        value = np.array(primvar.Get())
        shape = [int(k) for k in primvar.GetAttr().GetCustomDataByKey("shape") or ()]
        if value.dtype.kind not in "fi" or value.size != len(part.points) * int(np.prod(shape, dtype=np.int64)):
            problem = f'attribute "{name}" has {value.size} values for {len(part.points)} points of {shape}'
            raise source.error(problem, location=location_of(part.prim))
        attributes[name] = value.reshape(len(part.points), *shape)
    return attributes


def _labels(source: Source, part: PrimGeometry) -> dict[str, tuple[tuple[str, ...], Ints]]:
    labels = {}
    for name, primvar in _ours(part, LABELS_PROPERTY):
        index = integers(source, part.prim, primvar.Get(), f'label "{name}"')
        names = tuple(str(word) for word in primvar.GetAttr().GetCustomDataByKey("names") or ())
        if len(index) != len(part.polygons) or (index.size and (index.min() < 0 or index.max() >= len(names))):
            raise source.error(f'label "{name}" does not fit the faces and its names', location=location_of(part.prim))
        labels[name] = (names, index)
    return labels


def face_materials(source: Source, part: PrimGeometry) -> list[tuple[Any, Ints]]:
    """Material prims with the polygons each is bound to, later ones over earlier ones."""
    UsdShade = library("UsdShade")
    binding = UsdShade.MaterialBindingAPI(part.prim)
    bound = []
    whole = binding.ComputeBoundMaterial()[0]
    if whole:
        bound.append((whole.GetPrim(), np.arange(len(part.polygons))))
    for subset in binding.GetMaterialBindSubsets():
        material = UsdShade.MaterialBindingAPI(subset.GetPrim()).ComputeBoundMaterial()[0]
        faces = integers(source, part.prim, subset.GetIndicesAttr().Get(), "subset")
        if len(faces) and (faces.min() < 0 or faces.max() >= len(part.polygons)):
            problem = f"faces up to {faces.max()} are listed; there are {len(part.polygons)}"
            raise source.error(problem, location=location_of(subset.GetPrim()))
        if material:
            bound.append((material.GetPrim(), faces))
    return bound


def check_same_count(source: Source, part: PrimGeometry, count: int, frame: str) -> None:
    """Refuse frames whose points are not those of the mesh."""
    if count != len(part.points):
        raise source.error(
            f"has {count} points at {frame} and {len(part.points)} at rest; expected one topology",
            location=location_of(part.prim),
        )
