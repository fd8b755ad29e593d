"""Cutting a mesh into glTF primitives: one for each object and material, vertices split where their corners differ.

glTF knows triangles, and one UV and one normal a vertex. A vertex is split only where its corners have different
values, so a mesh without seams keeps its vertices and their order. Vertices that no face uses go to the first
primitive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pliant.core.shapes import Labels, Layer, Mesh
from pliant.core.topology import Ints


@dataclass(frozen=True, eq=False)
class Primitive:
    """The polygons of one object and material."""

    material: int
    """Position in `Layout.materials`; -1 for none."""
    vertices: Ints
    """(v,) the mesh's vertex of each vertex here."""
    slots: Ints
    """(v,) one polygon corner that shows it, for its UV and normal; -1 if there is none."""
    triangles: Ints
    """(m, 3) vertices here."""
    polygons: Ints
    """(p,) numbers of the mesh's polygons."""
    corners: Ints
    """(c,) vertices here, of all corners of those polygons."""


@dataclass(frozen=True, eq=False)
class PrimitiveLayout:
    """Primitives by object."""

    objects: tuple[tuple[str, tuple[Primitive, ...]], ...]
    materials: tuple[str, ...]

    @property
    def primitives(self) -> list[Primitive]:
        """All of them, in the file's order."""
        return [primitive for _, primitives in self.objects for primitive in primitives]


def compacted(layer: Layer) -> Layer:
    """The layer with each value stored once, in the file's precision."""
    rows = np.ascontiguousarray(layer.values.astype(np.float32) + np.float32(0))  # -0.0 and 0.0 are one value
    if not len(rows):
        return layer
    _, first, index = np.unique(rows.view([("", rows.dtype)] * rows.shape[1]).ravel(), return_index=True,
                                return_inverse=True)  # fmt: skip
    return Layer(layer.values[first], index.reshape(-1)[layer.index])


def lay_out(mesh: Mesh, name: str) -> PrimitiveLayout:
    """The primitives of a mesh whose layers are compacted. `name` is the object's, if the mesh has no objects."""
    whole = Labels((name,), np.zeros(len(mesh.polygons), dtype=np.int64))
    objects = mesh.labels.get("object", whole)
    materials = mesh.labels.get("material", Labels((), np.full(len(mesh.polygons), -1)))
    span = len(materials.names) + 1
    keys = objects.index * span + materials.index + 1
    split = _split_numbers(mesh)
    loose = np.setdiff1d(np.arange(len(mesh.points)), mesh.polygons.corners)
    by_object: dict[str, list[Primitive]] = {}
    for key in np.unique(keys):
        chosen = np.flatnonzero(keys == key)
        corner_slots = mesh.polygons.corner_slots(chosen)
        in_here = mesh.triangle_corners[keys[mesh.triangle_polygon] == key]
        primitive = _primitive(mesh, int(key % span) - 1, chosen, corner_slots, in_here, split, loose)
        loose = loose[:0]
        by_object.setdefault(objects.names[key // span], []).append(primitive)
    return PrimitiveLayout(tuple((name, tuple(primitives)) for name, primitives in by_object.items()), materials.names)


def _primitive(
    mesh: Mesh, material: int, polygons: Ints, slots: Ints, triangle_slots: Ints, split: Ints, loose: Ints
) -> Primitive:
    keys = mesh.polygons.corners[slots] * (int(split.max(initial=0)) + 1) + split[slots]
    _, first, corners = np.unique(keys, return_index=True, return_inverse=True)
    corners = corners.reshape(-1)
    local = np.zeros(len(mesh.polygons.corners), dtype=np.int64)
    local[slots] = corners
    vertices, shown = mesh.polygons.corners[slots[first]], slots[first]
    if len(loose):
        # Kept in the mesh's order, so that a mesh without seams keeps its numbering.
        vertices = np.concatenate([vertices, loose])
        shown = np.concatenate([shown, np.full(len(loose), -1)])
        order = np.argsort(vertices, kind="stable")
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        vertices, shown, corners, local = vertices[order], shown[order], rank[corners], rank[local]
    return Primitive(material, vertices, shown, local[triangle_slots], polygons, corners)


def _split_numbers(mesh: Mesh) -> Ints:
    """(corners,) equal for corners of one vertex that can share a glTF vertex."""
    layers = [layer for layer in (mesh.uvs, mesh.normals) if layer is not None]
    if not layers:
        return np.zeros(len(mesh.polygons.corners), dtype=np.int64)
    numbers = layers[0].index
    for layer in layers[1:]:
        _, numbers = np.unique(numbers * len(layer.values) + layer.index, return_inverse=True)
    return numbers.reshape(-1)
