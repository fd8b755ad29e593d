"""glTF's meshes: vertices, faces and morph targets of each primitive, as stored (in the mesh's own frame).

Primitives that refer to the same attributes share one block of vertices, as exporters write meshes of several
materials. Strips and fans become triangles:

    strip  (i, i+1, i+2), every second one reversed            fan  (0, i+1, i+2)
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from pliant.core.errors import PliantWarning
from pliant.core.topology import Floats, Ints
from pliant.core.values import stack_frames
from pliant.io.gltf.checked_json import Entry
from pliant.io.gltf.data import GltfDocument
from pliant.io.gltf.draco import unpack
from pliant.io.naming import unique_names

POINTS, TRIANGLES, STRIP, FAN = 0, 4, 5, 6


@dataclass(frozen=True, eq=False)
class Faces:
    """The triangles of one primitive, over its block's vertices."""

    triangles: Ints
    """(m, 3)"""
    material: int | None


@dataclass(frozen=True, eq=False)
class Block:
    """Vertices that one or more primitives share."""

    positions: Floats
    """(n, 3)"""
    normals: Floats | None
    uvs: Floats | None
    """(n, 2), v upwards."""
    attributes: dict[str, Floats]
    """"color", "TEXCOORD_1" and so on: (n, d)."""
    joints: Ints | None
    """(n, k) which of the skin's joints."""
    weights: Floats | None
    """(n, k) how much of each."""
    targets: tuple[Floats | None, ...]
    """Displacements (n, 3) of each morph target; None where it does not move these vertices."""
    faces: tuple[Faces, ...]


@dataclass(frozen=True, eq=False)
class Geometry:
    """One mesh of the file."""

    blocks: tuple[Block, ...]
    target_names: tuple[str, ...]
    weights: Floats
    """(targets,) how much of each is shown by default."""


def target_names(mesh: Entry) -> tuple[str, ...]:
    """The names of a mesh's morph targets: its ``extras.targetNames``, else "target 0", "target 1", ..."""
    count = max((len(p.items("targets")) for p in mesh.entries("primitives", "primitive")), default=0)
    extras = mesh.value.get("extras")
    given = extras.get("targetNames") if isinstance(extras, dict) else None
    names = [f"target {k}" for k in range(count)]
    if isinstance(given, list):
        texts = [name if isinstance(name, str) else "" for name in given[:count]]
        names = [*(text or name for text, name in zip(texts, names, strict=False)), *names[len(texts) :]]
    return tuple(unique_names([name.encode("utf-8", "replace").decode("utf-8") for name in names]))


def modes(mesh: Entry) -> set[int]:
    """How the mesh's primitives are drawn: 0 points, 1 to 3 lines, 4 to 6 triangles."""
    return {primitive.whole("mode", TRIANGLES) for primitive in mesh.entries("primitives", "primitive")}


def read_geometry(doc: GltfDocument, k: int, *, points: bool = False) -> Geometry:
    """Mesh number k. `points` reads its point primitives, otherwise its triangles; other kinds are ignored."""
    mesh = doc.table("meshes")[k]
    groups: dict[str, list[Entry]] = {}
    for primitive in mesh.entries("primitives", "primitive"):
        mode = primitive.whole("mode", TRIANGLES)
        if mode > FAN:
            raise primitive.error(f'"mode" is {mode}; expected 0 to 6')
        if (mode == POINTS) if points else (mode >= TRIANGLES):
            targets = [target.value for target in primitive.entries("targets", "target")]
            groups.setdefault(repr((sorted(primitive.entry("attributes").value.items()), targets)), []).append(
                primitive
            )
        else:
            warnings.warn(
                f"{doc.source.label}, {primitive.location}: ignored its {'points' if mode == POINTS else 'lines'}",
                PliantWarning,
                stacklevel=2,
            )
    names = target_names(mesh)
    blocks = tuple(_read_block(doc, group, len(names), points) for group in groups.values())
    weights = mesh.numbers("weights")
    if weights is None:
        weights = np.zeros(len(names))
    if len(weights) != len(names):
        raise mesh.error(f"has {len(weights)} weights for {len(names)} morph targets")
    return Geometry(blocks, names, weights)


def _read_block(doc: GltfDocument, primitives: list[Entry], targets: int, points: bool) -> Block:
    primitive = primitives[0]
    attributes = primitive.entry("attributes")
    accessors = len(doc.table("accessors"))
    where = {name: attributes.needed_index(name, accessors, "accessor") for name in attributes.value}
    if "POSITION" not in where:
        raise primitive.error('has no "POSITION"; expected the vertices')
    for packed in primitives:
        unpack(doc, packed)
    positions = doc.floats(where["POSITION"], (3,), "vertex")

    def values(name: str, *widths: int) -> Floats | None:
        if name not in where:
            return None
        array = doc.floats(where[name], widths, name, repair=True)
        _check_count(doc, where[name], len(array), len(positions))
        return array

    uvs = values("TEXCOORD_0", 2)
    extra = {name: values(name, 1, 2, 3, 4) for name in where if name.startswith(("TEXCOORD_", "_"))}
    extra.pop("TEXCOORD_0", None)
    extra["color"] = values("COLOR_0", 3, 4)
    joints, weights = _read_skinning(doc, where, len(positions))
    return Block(
        positions=positions,
        normals=values("NORMAL", 3),
        uvs=None if uvs is None else np.stack([uvs[:, 0], 1 - uvs[:, 1]], axis=1),
        attributes={name: array for name, array in extra.items() if array is not None},
        joints=joints,
        weights=weights,
        targets=_read_targets(doc, primitive, targets, len(positions)),
        faces=() if points else tuple(_read_faces(doc, p, len(positions)) for p in primitives),
    )


def _check_count(doc: GltfDocument, accessor: int, found: int, expected: int) -> None:
    if found != expected:
        raise doc.table("accessors")[accessor].error(f"has {found} elements for {expected} vertices")


def _read_skinning(doc: GltfDocument, where: dict[str, int], count: int) -> tuple[Ints | None, Floats | None]:
    """(n, 4 sets) joints and weights, over JOINTS_0, JOINTS_1, ..."""
    joints, weights = [], []
    for k in range(len(where)):
        if f"JOINTS_{k}" not in where or f"WEIGHTS_{k}" not in where:
            break
        joints.append(doc.wholes(where[f"JOINTS_{k}"], (4,), "joint"))
        weights.append(doc.floats(where[f"WEIGHTS_{k}"], (4,), "weight"))
        _check_count(doc, where[f"JOINTS_{k}"], len(joints[-1]), count)
        _check_count(doc, where[f"WEIGHTS_{k}"], len(weights[-1]), count)
    return (np.hstack(joints), np.hstack(weights)) if joints else (None, None)


def _read_targets(doc: GltfDocument, primitive: Entry, count: int, vertices: int) -> tuple[Floats | None, ...]:
    accessors = [doc.index_of(target, "POSITION", "accessors") for target in primitive.entries("targets", "target")]
    moving: list[int] = []

    def deltas() -> Iterator[Floats]:
        for k, accessor in enumerate(accessors):
            if accessor is None:
                continue
            delta = doc.floats(accessor, (3,), "displacement")
            _check_count(doc, accessor, len(delta), vertices)
            if delta.any():
                moving.append(k)
                yield delta

    found = deltas()
    first = next(found, None)
    table = () if first is None else stack_frames(chain([first], found))  # a clip of pliant's has a target a frame
    rows = dict(zip(moving, table, strict=True))
    return tuple(rows.get(k) for k in range(count))


def _read_faces(doc: GltfDocument, primitive: Entry, vertices: int) -> Faces:
    material = doc.index_of(primitive, "material", "materials")
    accessor = doc.index_of(primitive, "indices", "accessors")
    if accessor is None:
        index = np.arange(vertices)
    else:
        index = doc.wholes(accessor, (1,), "index")[:, 0]
        if index.size and (index.max() >= vertices or index.min() < 0):
            worst = int(index.max() if index.max() >= vertices else index.min())
            entry = doc.table("accessors")[accessor]
            raise entry.error(f"refers to vertex {worst}; the primitive has {vertices}")
    return Faces(_as_triangles(doc, primitive, index), material)


def _as_triangles(doc: GltfDocument, primitive: Entry, index: Ints) -> Ints:
    mode = primitive.whole("mode", TRIANGLES)
    if mode == TRIANGLES:
        if len(index) % 3:
            warnings.warn(
                f"{doc.source.label}, {primitive.location}: {len(index)} indices, not a multiple of 3; last ignored",
                PliantWarning,
                stacklevel=2,
            )
        return index[: len(index) // 3 * 3].reshape(-1, 3)
    k = np.arange(max(len(index) - 2, 0))
    if mode == FAN:
        return np.stack([index[k * 0], index[k + 1], index[k + 2]], axis=1)
    odd = k % 2
    strip = np.stack([index[k], index[k + 1 + odd], index[k + 2 - odd]], axis=1)
    # Strips are stitched together by triangles without area.
    return strip[(strip != np.roll(strip, 1, axis=1)).all(axis=1)]
