"""Joins many USD meshes into one `Mesh` in world space; labels keep them apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.normals import unit, vertex_normals
from pliant.core.shapes import Appearance, Labels, Layer, Mesh
from pliant.core.topology import Floats, Polygons, locked, triangulate
from pliant.io.source import Source
from pliant.io.usd.geometry import NAME, PrimGeometry, face_materials, flipped_polygons, name_of
from pliant.io.usd.material import read_appearance
from pliant.io.usd.motion import Mover, moved
from pliant.io.usd.stage import library

OURS = "pliant"
"""Custom data of a mesh prim that pliant wrote: its labels are complete as they stand."""
BASE = "pliantBase"
"""Custom data of the default prim: what the base of its blend shapes is called."""


def joined_mesh(
    source: Source, parts: list[PrimGeometry], transforms: list[Floats], skins: list[dict[str, Floats]]
) -> Mesh:
    """One mesh of all parts, each brought to the world by its transform."""
    world = [_placed(part, transform) for part, transform in zip(parts, transforms, strict=True)]
    counts = [len(part.points) for part in world]
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
    corners = np.concatenate([part.polygons.corners + start for part, start in zip(world, starts, strict=True)])
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([part.polygons.sizes for part in world]))])
    groups = [{**part.groups, **skin} for part, skin in zip(parts, skins, strict=True)]
    materials, looks = _materials(source, parts)
    return Mesh(
        np.concatenate([part.points for part in world]),
        Polygons(locked(corners), locked(offsets.astype(np.int64))),
        uvs=_joined([_uvs(part) for part in world]) if any(part.uvs for part in world) else None,
        normals=_joined([_normals(part) for part in world]) if any(part.normals for part in world) else None,
        labels={**_labels(parts), **materials},
        appearances=looks,
        attributes=_attributes(parts),
        vertex_groups=_groups(groups, counts),
    )


def _placed(part: PrimGeometry, transform: Floats) -> PrimGeometry:
    """A part in the world; a mirroring transform reverses its faces."""
    linear = transform[:3, :3]
    uvs, normals, polygons = part.uvs, part.normals, part.polygons
    if normals is not None and not np.array_equal(linear, np.eye(3)):
        normals = Layer(unit(normals.values @ np.linalg.pinv(linear).T), normals.index)
    if np.linalg.det(linear) < 0:
        polygons, slots = flipped_polygons(polygons)
        uvs, normals = (layer and Layer(layer.values, layer.index[slots]) for layer in (uvs, normals))
    return replace(part, points=moved(part.points, transform), polygons=polygons, uvs=uvs, normals=normals)


def _uvs(part: PrimGeometry) -> Layer:
    """A part's UVs, or zeros beside parts that have some."""
    return part.uvs or Layer(np.zeros((1, 2)), np.zeros(len(part.polygons.corners), np.int64))


def _normals(part: PrimGeometry) -> Layer:
    """A part's normals, or smooth ones from its geometry beside parts that have some."""
    if part.normals is not None:
        return part.normals
    slots, _ = triangulate(part.points, part.polygons)
    return Layer(vertex_normals(part.points, part.polygons.corners[slots]), part.polygons.corners)


def _joined(layers: Sequence[Layer]) -> Layer:
    starts = np.concatenate([[0], np.cumsum([len(layer.values) for layer in layers])[:-1]]).astype(np.int64)
    index = np.concatenate([layer.index + start for layer, start in zip(layers, starts, strict=True)])
    return Layer(np.concatenate([layer.values for layer in layers]), index)


def _labels(parts: list[PrimGeometry]) -> dict[str, Labels]:
    """What pliant wrote on a single mesh; else which prim each face came from."""
    if len(parts) == 1:
        labels = {name: Labels(names, locked(index)) for name, (names, index) in parts[0].labels.items()}
        if labels or parts[0].prim.GetCustomDataByKey(OURS):
            return labels
    names = [name_of(part.prim) for part in parts]
    if len(set(names)) < len(names):
        names = [str(part.prim.GetPath()) for part in parts]
    return {"object": Labels(tuple(names), np.repeat(np.arange(len(parts)), [len(part.polygons) for part in parts]))}


def _materials(source: Source, parts: list[PrimGeometry]) -> tuple[dict[str, Labels], dict[str, Appearance]]:
    """The "material" label and the looks: of bound materials, and of unused ones that pliant wrote."""
    prims: dict[str, Any] = {}
    pieces = []
    for part in parts:
        index = np.full(len(part.polygons), -1, dtype=np.int64)
        for prim, faces in face_materials(source, part):
            prims.setdefault(str(prim.GetPath()), prim)
            index[faces] = list(prims).index(str(prim.GetPath()))
        pieces.append(index)
    label = np.concatenate(pieces)
    bound = len(prims)
    for prim in parts[0].prim.GetStage().Traverse():
        if prim.IsA(library("UsdShade").Material) and prim.GetCustomDataByKey(NAME) is not None:
            prims.setdefault(str(prim.GetPath()), prim)
    names = [name_of(prim) for prim in prims.values()]
    names = names if len(set(names)) == len(names) else list(prims)
    looks = {name: read_appearance(source, prim) for name, prim in zip(names, prims.values(), strict=True)}
    if not bound:
        return {}, looks
    used, compact = np.unique(label, return_inverse=True)
    return {"material": Labels(tuple(names[k] if k >= 0 else "" for k in used), compact.reshape(-1))}, looks


def _attributes(parts: list[PrimGeometry]) -> dict[str, NDArray[Any]]:
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


def _groups(groups: list[dict[str, Floats]], counts: list[int]) -> dict[str, Floats]:
    names = dict.fromkeys(name for weights in groups for name in weights)
    sized = list(zip(groups, counts, strict=True))
    return {name: np.concatenate([weights.get(name, np.zeros(count)) for weights, count in sized]) for name in names}


def skin_groups(mover: Mover) -> dict[str, Floats]:
    """The joints' weights as vertex groups, named by the joints."""
    if not mover.is_skinned or mover.part.prim.GetCustomDataByKey(OURS):
        return {}
    count = len(mover.part.points)
    influences = mover.skin.ComputeVaryingJointInfluences(count)
    order = mover.skin.GetJointOrder() or mover.skeleton.GetJointOrder()
    joints = [str(joint) for joint in order]
    short = [joint.rsplit("/", 1)[-1] for joint in joints]
    names = short if len(set(short)) == len(short) else joints
    index, weights = (np.array(values).reshape(-1) for values in influences[-2:])
    if not len(index) or len(index) % count or (index.min() < 0 or index.max() >= len(names)):
        return {}
    table = np.zeros((count, len(names)))
    np.add.at(table, (np.repeat(np.arange(count), len(index) // count), index), weights.astype(np.float64))
    return {name: table[:, k] for k, name in enumerate(names) if table[:, k].any()}
