"""Meshes and points of an Alembic archive, with the transforms above them, at any time.

Faces are clockwise in Alembic and are reversed here. A transform is a stack of operations, the last of which acts
first; matrices act on row vectors:

    x = v · op_n ... op_1 · (those of the parent, unless it does not inherit)

Between samples, points and the numbers of a transform are interpolated linearly.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import PliantWarning
from pliant.core.shapes import Labels, Layer, World
from pliant.core.topology import Floats, Ints, Polygons
from pliant.core.validation import not_finite
from pliant.io.alembic.archive import AbcObject, Archive, Property
from pliant.io.joining import (
    Part,
    checked_polygons,
    flipped_polygons,
    looked_up,
    moved,
    owner_of_corners,
    shared_values,
)

MESHES, POINTS_SCHEMA = ("AbcGeom_PolyMesh", "AbcGeom_SubD"), ("AbcGeom_Points",)
TRANSFORM, FACE_SET = "AbcGeom_Xform", "AbcGeom_FaceSet"
SCOPES = {"con": "constant", "uni": "uniform", "var": "varying", "vtx": "vertex", "fvr": "faceVarying"}
"""Interpolations of values on a surface."""
CHANNELS = (3, 3, 4, 16, 1, 1, 1)
"""Numbers of each operation: scale, translation, rotation about an axis, matrix, rotations about x, y and z."""
LARGEST_ENTRY = 1e100
"""Of a transform: beyond, products of a few overflow."""
UP, METRES, GROUP_METADATA = "pliantUp", "pliantMetres", "pliantGroup"
"""Metadata that pliant writes: axes and units of a shape below its transform, and what is a vertex group."""


def interpolated(value: Property, time: float) -> Floats:
    """(m, extent) at a time."""
    if value.is_constant:
        return value.sample().astype(np.float64)
    times = value.times
    at = int(np.clip(np.searchsorted(times, time) - 1, 0, len(times) - 2))
    step = times[at + 1] - times[at]
    share = float(np.clip((time - times[at]) / step, 0.0, 1.0)) if step > 0 else 0.0
    share = round(share) if min(share, 1 - share) < 1e-6 else share  # a sample's own time, but for rounding
    ends = [value.sample(at + k).astype(np.float64) if weight else None for k, weight in ((0, 1 - share), (1, share))]
    first, second = ends
    if first is None or second is None:
        found = first if second is None else second
        assert found is not None
        return found
    if first.shape != second.shape:
        return first
    return np.asarray((1 - share) * first + share * second)


@dataclass(frozen=True, eq=False)
class Transform:
    """One transform object."""

    path: str
    archive: Archive
    operations: Ints
    values: Property | None
    inherits: bool
    world: World | None
    """Axes and units of what is below, if pliant wrote it: then the points are taken as they were."""

    def matrix(self, time: float) -> Floats:
        """(4, 4) at a time, acting on row vectors."""
        result = np.eye(4)
        if self.values is None or self.world is not None:
            return result
        numbers = interpolated(self.values, time).reshape(-1)
        error = self.archive.file.source.error
        sizes = [CHANNELS[kind] if kind < len(CHANNELS) else 0 for kind in self.operations]
        if 0 in sizes or sum(sizes) != len(numbers):
            raise error(f"has {len(numbers)} numbers for its operations; expected {sum(sizes)}", location=self.path)
        if not np.isfinite(numbers).all() or (len(numbers) and np.abs(numbers).max() > LARGEST_ENTRY):
            raise error("has a transform that is not finite", location=self.path)
        for kind, some in zip(self.operations, np.split(numbers, np.cumsum(sizes)[:-1]), strict=True):
            result = _operation(int(kind), some) @ result
        return result


def _operation(kind: int, numbers: Floats) -> Floats:
    """(4, 4) of one operation."""
    result = np.eye(4)
    if kind == 0:
        result[[0, 1, 2], [0, 1, 2]] = numbers
    elif kind == 1:
        result[3, :3] = numbers
    elif kind == 3:
        result = numbers.reshape(4, 4)
    else:
        axis = numbers[:3] if kind == 2 else np.eye(3)[kind - 4]
        length = float(np.linalg.norm(axis))
        x, y, z = axis / length if length else (1.0, 0.0, 0.0)
        angle = np.radians(numbers[-1]) if length else 0.0
        K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        result[:3, :3] = (np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K).T
    return result


@dataclass(frozen=True, eq=False)
class PlacedPart:
    """A mesh or points below its transforms."""

    source: AbcObject
    part: Part
    positions: Property
    above: tuple[Transform, ...]
    """The innermost first."""

    @property
    def moving(self) -> Iterator[Property]:
        """What changes over time."""
        values = [transform.values for transform in self.above if transform.values is not None]
        yield from (value for value in (self.positions, *values) if not value.is_constant)

    def transform(self, time: float) -> Floats:
        """(4, 4) from the part's space to the world."""
        result = np.eye(4)
        for transform in self.above:
            result = result @ transform.matrix(time)
            if not transform.inherits:
                break
        return result

    def at(self, time: float) -> Floats:
        """(n, 3) points in the world."""
        points = _points(self.source, interpolated(self.positions, time), f"at {time:g} s")
        if len(points) != len(self.part.points):
            raise _error(self.source)(
                f"has {len(points)} points at {time:g} s and {len(self.part.points)} at first; expected one topology",
                location=self.source.path,
            )
        return moved(points, self.transform(time))

    @property
    def world(self) -> World | None:
        """What pliant wrote of its axes and units."""
        return next((transform.world for transform in self.above if transform.world is not None), None)


def placed_parts(archive: Archive) -> list[PlacedPart]:
    """The meshes that a viewer would draw, or else the points; what else there is, is said to be left out."""
    found: dict[bool, list[PlacedPart]] = {True: [], False: []}
    others: set[str] = set()

    def visit(item: AbcObject, above: tuple[Transform, ...]) -> None:
        if _hidden(item):
            return
        schema = item.schema
        if schema == TRANSFORM:
            above = (_transform(item), *above)
        elif schema in MESHES + POINTS_SCHEMA:
            is_mesh = schema in MESHES
            made = _placed_part(item, above, is_mesh=is_mesh)
            if made is not None:
                found[is_mesh].append(made)
        elif schema and schema not in (FACE_SET, "AbcGeom_GeomBase"):
            others.add(schema.removeprefix("AbcGeom_"))
        for child in item.children:
            visit(child, above)

    visit(archive.top, ())
    if others:
        label = archive.file.source.label
        text = f"{label}: objects of type {', '.join(sorted(others))} are left out; meshes and points are read"
        warnings.warn(text, PliantWarning, stacklevel=3)
    return found[True] or found[False]


def _hidden(item: AbcObject) -> bool:
    visible = item.properties.get("visible")
    return visible is not None and visible.count > 0 and bool((visible.sample() == 0).any())


def _transform(item: AbcObject) -> Transform:
    table = _table(item, ".xform")
    operations, inherits = table.get(".ops"), table.get(".inherits")
    kinds = np.zeros(0, np.int64) if operations is None else operations.sample().astype(np.int64).reshape(-1) >> 4
    follows = inherits is None or not inherits.count or bool(inherits.sample().any())
    return Transform(item.path, item.archive, kinds, table.get(".vals"), follows, _written_world(item))


def _written_world(item: AbcObject) -> World | None:
    up, metres = item.metadata.get(UP), item.metadata.get(METRES)
    if up not in ("y", "z"):
        return None
    try:
        return World("z" if up == "z" else "y", None if metres is None else float(metres))
    except ValueError:
        return None


def _table(item: AbcObject, name: str) -> dict[str, Property]:
    """The properties of an object's schema."""
    compound = item.properties.get(name)
    return {} if compound is None else compound.children


def _error(item: AbcObject) -> Callable[..., Exception]:
    return item.archive.file.source.error


def _points(item: AbcObject, values: Floats, when: str = "") -> Floats:
    if values.shape[1] != 3:
        raise _error(item)(f"has points of {values.shape[1]} coordinates; expected 3", location=item.path)
    found = not_finite(values, "point", f" {when}" if when else "")
    if found is not None:
        raise _error(item)(found[1], location=item.path)
    return values


def _placed_part(item: AbcObject, above: tuple[Transform, ...], *, is_mesh: bool) -> PlacedPart | None:
    """None if there is nothing to draw."""
    table = _table(item, ".geom")
    positions = table.get("P")
    if positions is None or positions.is_compound or not positions.count:
        return None
    points = _points(item, positions.sample().astype(np.float64))
    none = np.zeros(0, np.int64)
    part = _faces(item, table, points) if is_mesh else Part(points, Polygons(none, np.zeros(1, np.int64)), none)
    if part is None or (is_mesh and not len(part.polygons)):
        return None
    if is_mesh:
        part = replace(part, uvs=_layer(item, part, table.get("uv"), 2), normals=_layer(item, part, table.get("N"), 3))
    return PlacedPart(item, _with_values(item, part, table), positions, above) if len(points) else None


def _faces(item: AbcObject, table: Mapping[str, Property], points: Floats) -> Part | None:
    counts, indices = table.get(".faceCounts"), table.get(".faceIndices")
    if counts is None or indices is None or not counts.count:
        return None
    if not (counts.is_constant and indices.is_constant):
        raise _error(item)("has faces that change over time; expected one topology", location=item.path)
    sizes, corners = (value.sample().astype(np.int64).reshape(-1) for value in (counts, indices))
    given = checked_polygons(item.archive.file.source, sizes, corners, len(points), item.path)
    return Part(points, *flipped_polygons(given))


def _values(value: Property) -> tuple[Property, Ints]:
    """The values of a parameter of the surface, and the indices into them, if there are any."""
    if not value.is_compound:
        return value, np.zeros(0, np.int64)
    values, indices = value.children.get(".vals"), value.children.get(".indices")
    if values is None:
        return value, np.zeros(0, np.int64)
    listed = np.zeros(0, np.int64) if indices is None or not indices.count else indices.sample().astype(np.int64)
    return values, listed.reshape(-1)


def _layer(item: AbcObject, part: Part, value: Property | None, width: int) -> Layer | None:
    """UVs or normals; None if there are none."""
    if value is None:
        return None
    numbers, indices = _values(value)
    if numbers.is_compound or not numbers.count:
        return None
    values = numbers.sample().astype(np.float64)
    if not len(values):
        return None
    if values.shape[1] != width:
        raise _error(item)(f"{value.name} has {values.shape[1]} numbers each; expected {width}", location=item.path)
    scope = SCOPES.get(value.metadata.get("geoScope", numbers.metadata.get("geoScope", "fvr")), "")
    owner = owner_of_corners(part, scope)
    if owner is None:
        raise _error(item)(f"{value.name} belongs to nothing known", location=item.path)
    index = looked_up(item.archive.file.source, item.path, owner, indices, len(values), value.name)
    return shared_values(values, index) if scope == "faceVarying" and not len(indices) else Layer(values, index)


def _with_values(item: AbcObject, part: Part, table: Mapping[str, Property]) -> Part:
    """A part with its colours, vertex groups and other values on points."""
    color, groups, attributes = None, dict(part.groups), dict(part.attributes)
    further = table.get(".arbGeomParams")
    given = dict(further.children) if further is not None else {}
    velocity = table.get(".velocities")
    if velocity is not None:
        given["velocity"] = velocity
    for name, value in given.items():
        values = _at_points(item, part, value)
        if values is None:
            continue
        if color is None and value.metadata.get("interpretation") in ("rgb", "rgba"):
            color = values.astype(np.float64)
        elif GROUP_METADATA in value.metadata:
            groups[name] = values[:, 0].astype(np.float64)
        else:
            attributes[name] = values[:, 0] if values.shape[1] == 1 else values
    return replace(part, color=color, groups=groups, attributes=attributes)


def _at_points(item: AbcObject, part: Part, value: Property) -> NDArray[Any] | None:
    """(n, d) values on points; None if they are elsewhere, or differ between the corners of a point."""
    numbers, indices = _values(value)
    if numbers.is_compound or not numbers.count or not 0 <= numbers.pod < 12:
        return None
    values = numbers.sample()
    scope = SCOPES.get(value.metadata.get("geoScope", numbers.metadata.get("geoScope", "vtx")))
    if scope == "faceVarying" and len(part.polygons):
        layer = _layer(item, part, value, values.shape[1])
        return None if layer is None else layer.per_vertex(part.polygons.corners, len(part.points))
    count = len(indices) or len(values)
    if scope not in ("vertex", "varying") or count != len(part.points):
        return None
    return values[looked_up(item.archive.file.source, item.path, np.arange(count), indices, len(values), value.name)]


def material_labels(parts: list[PlacedPart]) -> dict[str, Labels]:
    """The face sets as materials; a later one counts where they overlap."""
    names: dict[str, int] = {"": 0}
    pieces = []
    for one in parts:
        index = np.zeros(len(one.part.polygons), np.int64)
        for child in one.source.children if len(index) else ():
            faces = _table(child, ".faceset").get(".faces") if child.schema == FACE_SET else None
            if faces is None or not faces.count:
                continue
            chosen = faces.sample().astype(np.int64).reshape(-1)
            if len(chosen) and (chosen.min() < 0 or chosen.max() >= len(index)):
                problem = f"faces up to {chosen.max()} are listed; there are {len(index)}"
                raise _error(child)(problem, location=child.path)
            index[chosen] = names.setdefault(child.name, len(names))
        pieces.append(index)
    label = np.concatenate(pieces) if pieces else np.zeros(0, np.int64)
    if not label.any():
        return {}
    used, compact = np.unique(label, return_inverse=True)
    return {"material": Labels(tuple(list(names)[k] for k in used), compact.reshape(-1))}
