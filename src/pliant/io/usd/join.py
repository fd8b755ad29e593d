"""Joins many USD meshes into one `Mesh` in world space; labels keep them apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pliant.core.shapes import Appearance, Labels, Mesh
from pliant.core.topology import Floats, locked
from pliant.io.joining import joined_mesh, object_labels
from pliant.io.source import Source
from pliant.io.usd.geometry import NAME_PROPERTY, PrimGeometry, face_materials, location_of, name_of
from pliant.io.usd.joints import PLIANT, joint_names
from pliant.io.usd.material import read_appearance
from pliant.io.usd.motion import Mover
from pliant.io.usd.stage import library

BASE = "pliantBase"
"""Custom data of the default prim: what the base of its blend shapes is called."""


def stage_mesh(
    source: Source, parts: list[PrimGeometry], transforms: list[Floats], skins: list[dict[str, Floats]]
) -> Mesh:
    """One mesh of all parts, each brought to the world by its transform."""
    bound = [replace(part, groups={**part.groups, **skin}) for part, skin in zip(parts, skins, strict=True)]
    materials, looks = _materials(source, parts)
    return joined_mesh(bound, transforms, {**_labels(parts), **materials}, looks)


def _labels(parts: list[PrimGeometry]) -> dict[str, Labels]:
    """What pliant wrote on a single mesh; else which prim each face came from."""
    if len(parts) == 1:
        labels = {name: Labels(names, locked(index)) for name, (names, index) in parts[0].labels.items()}
        if labels or parts[0].prim.GetCustomDataByKey(PLIANT):
            return labels
    names, paths = [name_of(part.prim) for part in parts], [location_of(part.prim) for part in parts]
    return {"object": object_labels(parts, names, paths)}


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
        if prim.IsA(library("UsdShade").Material) and prim.GetCustomDataByKey(NAME_PROPERTY) is not None:
            prims.setdefault(str(prim.GetPath()), prim)
    names = [name_of(prim) for prim in prims.values()]
    names = names if len(set(names)) == len(names) else list(prims)
    looks = {name: read_appearance(source, prim) for name, prim in zip(names, prims.values(), strict=True)}
    if not bound:
        return {}, looks
    used, compact = np.unique(label, return_inverse=True)
    return {"material": Labels(tuple(names[k] if k >= 0 else "" for k in used), compact.reshape(-1))}, looks


def skin_groups(mover: Mover) -> dict[str, Floats]:
    """The joints' weights as vertex groups, named by the joints."""
    if not mover.is_skinned:
        return {}
    count = len(mover.part.points)
    influences = mover.skin.ComputeVaryingJointInfluences(count)
    order = mover.skin.GetJointOrder() or mover.skeleton.GetJointOrder()
    joints = [str(joint) for joint in order]
    if len(joints) == 1 and mover.part.prim.GetCustomDataByKey(PLIANT):  # which UsdSkel requires of blend shapes
        return {}
    names = joint_names(mover.skeleton, joints)
    index, weights = (np.array(values).reshape(-1) for values in influences[-2:])
    if not len(index) or len(index) % count or (index.min() < 0 or index.max() >= len(names)):
        return {}
    table = np.zeros((count, len(names)))
    np.add.at(table, (np.repeat(np.arange(count), len(index) // count), index), weights.astype(np.float64))
    return {name: table[:, k] for k, name in enumerate(names) if table[:, k].any()}
