"""Parts of a scene, each in its own space, joined to one mesh in the world; labels keep them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.normals import unit, vertex_normals
from pliant.core.shapes import Appearance, Labels, Layer, Mesh
from pliant.core.topology import Floats, Ints, Polygons, locked, triangulate
from pliant.io.source import Source


@dataclass(frozen=True, eq=False)
class Part:
    """One mesh or cloud of a scene, in its own space."""

    points: Floats
    polygons: Polygons
    corner_order: Ints
    """(corners,) where each corner was in the file; the identity unless the faces were reversed."""
    uvs: Layer | None = None
    normals: Layer | None = None
    color: Floats | None = None
    """(n, 3) or (n, 4) per point."""
    attributes: dict[str, NDArray[Any]] = field(default_factory=dict)
    groups: dict[str, Floats] = field(default_factory=dict)
    """(n,) weights of vertex groups."""


def joined_mesh(
    parts: Sequence[Part],
    transforms: Sequence[Floats],
    labels: Mapping[str, Labels],
    appearances: Mapping[str, Appearance] | None = None,
) -> Mesh:
    """One mesh of all parts, each brought to the world by its transform (4, 4), which acts on row vectors."""
    world = [_placed(part, transform) for part, transform in zip(parts, transforms, strict=True)]
    counts = [len(part.points) for part in world]
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
    corners = np.concatenate([part.polygons.corners + start for part, start in zip(world, starts, strict=True)])
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([part.polygons.sizes for part in world]))])
    return Mesh(
        np.concatenate([part.points for part in world]),
        Polygons(locked(corners), locked(offsets.astype(np.int64))),
        uvs=_joined([_uvs(part) for part in world]) if any(part.uvs for part in world) else None,
        normals=_joined([_normals(part) for part in world]) if any(part.normals for part in world) else None,
        labels=labels,
        appearances=appearances,
        attributes=_attributes(parts),
        vertex_groups=_groups([part.groups for part in parts], counts),
    )


def moved(points: Floats, transform: Floats) -> Floats:
    """Points times a (4, 4) matrix that acts on row vectors; exact where it is the identity."""
    if np.array_equal(transform, np.eye(4)):
        return points
    return points @ transform[:3, :3] + transform[3, :3]


def flipped_polygons(polygons: Polygons) -> tuple[Polygons, Ints]:
    """Every polygon reversed, starting at its first corner, and where each corner was."""
    first = np.repeat(polygons.offsets[:-1], polygons.sizes)
    step = np.arange(len(polygons.corners)) - first
    slots = first + np.where(step > 0, np.repeat(polygons.sizes, polygons.sizes) - step, 0)
    return Polygons(locked(polygons.corners[slots]), polygons.offsets), slots


def shared_values(values: Floats, index: Ints) -> Layer:
    """Equal values stored once, so that corners which share one are smooth with each other."""
    rows = np.ascontiguousarray(values + 0.0).view([("", np.float64)] * values.shape[1]).ravel()
    _, first, same = np.unique(rows, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return Layer(values[first[order]], rank[same][index])


def checked_polygons(source: Source, sizes: Ints, corners: Ints, count: int, location: str) -> Polygons:
    """Polygons of so many corners each, all of them among `count` points."""
    if len(sizes) and sizes.min() < 3:
        k = int(np.argmax(sizes < 3))
        raise source.error(f"face {k} has {sizes[k]} corners; expected three or more", location=location)
    if sizes.sum() != len(corners):
        problem = f"its faces have {sizes.sum()} corners in all; {len(corners)} are listed"
        raise source.error(problem, location=location)
    outside = (corners < 0) | (corners >= count)
    if outside.any():
        raise source.error(f"faces refer to point {corners[np.argmax(outside)]}; there are {count}", location=location)
    return Polygons(locked(corners), locked(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)))


def owner_of_corners(part: Part, interpolation: str) -> Ints | None:
    """(corners,) which of the values of an interpolation each corner has; None if there is no such interpolation."""
    corners = part.polygons.corners
    return {
        "constant": np.zeros(len(corners), np.int64),
        "uniform": part.polygons.of_corner,
        "vertex": corners,
        "varying": corners,
        "faceVarying": part.corner_order,
    }.get(interpolation)


def looked_up(source: Source, location: str, owner: Ints, indices: Ints, count: int, what: str) -> Ints:
    """`owner` through `indices` (if there are any), every step checked against the `count` values that are there."""
    if len(indices):
        _check_below(source, location, owner, len(indices), f"indices of {what}")
        owner = indices[owner]
    _check_below(source, location, owner, count, what)
    return owner


def _check_below(source: Source, location: str, numbers: Ints, count: int, what: str) -> None:
    outside = (numbers < 0) | (numbers >= count)
    if outside.any():
        problem = f"number {numbers[np.argmax(outside)]} of the {what} is referred to; there are {count}"
        raise source.error(problem, location=location)


def object_labels(parts: Sequence[Part], names: Sequence[str], paths: Sequence[str]) -> Labels:
    """Which part each polygon came from: by name, or by path where names repeat."""
    chosen = names if len(set(names)) == len(names) else paths
    return Labels(tuple(chosen), np.repeat(np.arange(len(parts)), [len(part.polygons) for part in parts]))


def _placed(part: Part, transform: Floats) -> Part:
    """A part in the world; a mirroring transform reverses its faces."""
    linear = transform[:3, :3]
    uvs, normals, polygons = part.uvs, part.normals, part.polygons
    if normals is not None and not np.array_equal(linear, np.eye(3)):
        normals = Layer(unit(normals.values @ np.linalg.pinv(linear).T), normals.index)
    if np.linalg.det(linear) < 0:
        polygons, slots = flipped_polygons(polygons)
        uvs, normals = (layer and Layer(layer.values, layer.index[slots]) for layer in (uvs, normals))
    return replace(part, points=moved(part.points, transform), polygons=polygons, uvs=uvs, normals=normals)


def _uvs(part: Part) -> Layer:
    """A part's UVs, or zeros beside parts that have some."""
    return part.uvs or Layer(np.zeros((1, 2)), np.zeros(len(part.polygons.corners), np.int64))


def _normals(part: Part) -> Layer:
    """A part's normals, or smooth ones from its geometry beside parts that have some."""
    if part.normals is not None:
        return part.normals
    slots, _ = triangulate(part.points, part.polygons)
    return Layer(vertex_normals(part.points, part.polygons.corners[slots]), part.polygons.corners)


def _joined(layers: Sequence[Layer]) -> Layer:
    starts = np.concatenate([[0], np.cumsum([len(layer.values) for layer in layers])[:-1]]).astype(np.int64)
    index = np.concatenate([layer.index + start for layer, start in zip(layers, starts, strict=True)])
    return Layer(np.concatenate([layer.values for layer in layers]), index)


def _attributes(parts: Sequence[Part]) -> dict[str, NDArray[Any]]:
    """Colours, with white for a part without; other values where every part has them."""
    shared = [name for name in parts[0].attributes if all(name in part.attributes for part in parts)]
    attributes = {}
    for name in shared:
        tables = [part.attributes[name] for part in parts]
        if len({values.shape[1:] for values in tables}) == 1:
            attributes[name] = np.concatenate(tables)
    colors = [part.color for part in parts]
    if any(color is not None for color in colors):
        width = max(color.shape[1] for color in colors if color is not None)
        full = [np.ones((len(part.points), width)) for part in parts]
        for color, target in zip(colors, full, strict=True):
            if color is not None:
                target[:, : color.shape[1]] = color
        attributes["color"] = np.concatenate(full)
    return attributes


def _groups(groups: Sequence[dict[str, Floats]], counts: Sequence[int]) -> dict[str, Floats]:
    names = dict.fromkeys(name for weights in groups for name in weights)
    sized = list(zip(groups, counts, strict=True))
    return {name: np.concatenate([weights.get(name, np.zeros(count)) for weights, count in sized]) for name in names}
