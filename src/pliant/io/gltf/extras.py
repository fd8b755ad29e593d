"""What pliant adds to its own glTF files, so that reading gives back the very mesh that was written.

glTF splits vertices and cuts polygons into triangles. The root's ``extras.pliant`` says how to undo that. Numbers refer
to accessors; "glTF vertex" counts through all primitives in scene order:

    vertices            number of the mesh's own vertices
    vertex              one accessor a primitive: own vertex of each glTF vertex             (absent: they are the same)
    polygons            sizes (a number if all are equal, else an accessor), corners (glTF vertices),
                        order (own number of each polygon, if they were reordered)           (absent: the triangles)
    labels              {name: {names, index}}
    groups, attributes  {name: accessor over the own vertices}
    computedNormals     true if the mesh had no normals
    base                name of the base shape

Other programs drop or garble it, so it counts only while the file names pliant as its generator.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import PliantWarning
from pliant.core.shapes import Labels, Layer, Mesh, PointCloud
from pliant.core.topology import Floats, Ints, Polygons
from pliant.io.gltf.build import Builder, smallest_unsigned
from pliant.io.gltf.checked_json import Entry
from pliant.io.gltf.data import GltfDocument
from pliant.io.gltf.layout import PrimitiveLayout
from pliant.io.gltf.scene import GltfScene


@dataclass(frozen=True, eq=False)
class Restored:
    """How to restore the mesh that was written from what the glTF file shows; by default, unchanged."""

    vertex: Ints | None = None
    """(glTF vertices,) own vertex of each."""
    first: Ints | None = None
    """(own vertices,) a glTF vertex of each."""
    corners: Ints | None = None
    """(c,) glTF vertex of every polygon corner, in the primitives' order."""
    sizes: Ints | None = None
    """(p,) corners of every polygon, in the primitives' order."""
    order: Ints | None = None
    """(p,) own number of every polygon."""
    labels: Mapping[str, Labels] | None = None
    groups: Mapping[str, Floats] = field(default_factory=dict)
    attributes: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    has_normals: bool = True

    def points(self, frames: Floats) -> Floats:
        """(..., own vertices, 3) of (..., glTF vertices, 3)."""
        return frames if self.first is None else frames[..., self.first, :]

    def cloud(self, cloud: PointCloud) -> PointCloud:
        """The author's cloud."""
        return replace(cloud, attributes={**cloud.attributes, **self.attributes})

    def mesh(self, mesh: Mesh) -> Mesh:
        """The author's mesh."""
        if self.labels is None:
            return mesh
        vertex = np.arange(len(mesh.points)) if self.vertex is None else self.vertex
        first = np.arange(len(mesh.points)) if self.first is None else self.first
        corners = mesh.polygons.corners if self.corners is None else self.corners
        sizes = mesh.polygons.sizes if self.sizes is None else self.sizes
        shown = Polygons(corners, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))
        order = np.arange(len(sizes)) if self.order is None else self.order
        slots = shown.corner_slots(np.argsort(order))
        polygons = replace(shown.take(np.argsort(order)), corners=vertex[corners[slots]])
        triangles, owner = _triangles(mesh, vertex, shown, order)
        names = self.labels["material"].names if "material" in self.labels else ()
        return Mesh(
            mesh.points[first],
            polygons,
            triangles=triangles,
            triangle_polygon=owner,
            uvs=None if mesh.uvs is None else Layer(mesh.uvs.values, corners[slots]),
            normals=None
            if mesh.normals is None or not self.has_normals
            else Layer(mesh.normals.values, corners[slots]),
            labels=self.labels,
            appearances={name: look for name, look in mesh.appearances.items() if name in names},
            attributes={**{name: values[first] for name, values in mesh.attributes.items()}, **self.attributes},
            vertex_groups={**{name: w[first] for name, w in mesh.vertex_groups.items()}, **self.groups},
            bind_offsets={name: offset[first] for name, offset in mesh.bind_offsets.items()},
            world=mesh.world,
        )


def _triangles(mesh: Mesh, vertex: Ints, shown: Polygons, order: Ints) -> tuple[Ints | None, Ints | None]:
    """The file's triangles and their polygons, if they fit the polygons; otherwise these are cut anew."""
    if len(mesh.triangles) != int((shown.sizes - 2).sum()):
        return None, None
    owner = np.repeat(np.arange(len(shown)), shown.sizes - 2)
    span = len(mesh.points)
    known = np.sort(shown.of_corner * span + shown.corners)
    wanted = owner[:, None] * span + mesh.triangles
    if not np.array_equal(known[np.minimum(np.searchsorted(known, wanted), len(known) - 1)], wanted):
        return None, None
    sort = np.argsort(order[owner], kind="stable")
    return vertex[mesh.triangles][sort], order[owner][sort]


def own_extras(doc: GltfDocument) -> Entry | None:
    """What pliant adds to its own files; None in other files."""
    extras = doc.root.value.get("extras")
    if not doc.generator.startswith("pliant ") or not isinstance(extras, dict) or "pliant" not in extras:
        return None
    return doc.root.entry("extras").entry("pliant")


def read_extras(doc: GltfDocument, scene: GltfScene) -> Restored:
    """What a file written by pliant says about its author's mesh; nothing for other files."""
    own = own_extras(doc)
    if own is None:
        return Restored()
    vertices = own.whole("vertices", least=1)
    vertex, first = _read_vertex_map(doc, own, scene, vertices)
    attributes = {
        name: _per_vertex(doc, own.entry("attributes"), name, vertices) for name in own.entry("attributes").value
    }
    if scene.is_points:
        return Restored(attributes=attributes)
    corners, sizes, order, polygons = _read_polygons(doc, own, scene)
    return Restored(
        vertex,
        first,
        corners,
        sizes,
        order,
        labels={
            name: _read_labels(doc, own.entry("labels").entry(name), polygons) for name in own.entry("labels").value
        },
        groups={name: _per_vertex(doc, own.entry("groups"), name, vertices) for name in own.entry("groups").value},
        attributes=attributes,
        has_normals=not own.flag("computedNormals"),
    )


def _wholes(doc: GltfDocument, entry: Entry, key: str, below: int) -> Ints:
    """Numbers under `below` in an accessor."""
    accessor = entry.needed_index(key, len(doc.table("accessors")), "accessor")
    numbers = doc.wholes(accessor, (1,), key)[:, 0]
    if numbers.min() < 0 or numbers.max() >= below:
        raise entry.error(f'"{key}" refers to {int(numbers.max())}; expected less than {below}')
    return numbers


def _read_vertex_map(doc: GltfDocument, own: Entry, scene: GltfScene, vertices: int) -> tuple[Ints | None, Ints | None]:
    counts = [len(part.block.positions) for part in scene.parts]
    if "vertex" not in own:
        if sum(counts) != vertices:
            raise own.error(f"speaks of {vertices} vertices; the file has {sum(counts)}")
        return None, None
    accessors = own.indices("vertex", len(doc.table("accessors")), "accessor")
    parts = [doc.wholes(accessor, (1,), "vertex")[:, 0] for accessor in accessors]
    if [len(part) for part in parts] != counts:
        raise own.error('"vertex" does not match the vertices of the primitives')
    vertex = np.concatenate(parts)
    found, first = np.unique(vertex, return_index=True)
    if len(found) != vertices or found[0] != 0 or found[-1] != vertices - 1:
        raise own.error(f'"vertex" does not cover the {vertices} vertices')
    return vertex, first


def _read_polygons(
    doc: GltfDocument, own: Entry, scene: GltfScene
) -> tuple[Ints | None, Ints | None, Ints | None, int]:
    """Corners, sizes, order and number of the polygons."""
    triangles = sum(len(faces.triangles) for part in scene.parts for faces in part.block.faces)
    if "polygons" not in own:
        return None, None, None, triangles
    entry = own.entry("polygons")
    corners = _wholes(doc, entry, "corners", scene.count)
    if "size" in entry:
        size = entry.whole("size", least=3)
        sizes = np.full(len(corners) // size, size)
    else:
        sizes = _wholes(doc, entry, "sizes", len(corners) + 1)
    if sizes.size == 0 or sizes.min() < 3 or sizes.sum() != len(corners):
        raise entry.error(f"its sizes do not add up to its {len(corners)} corners")
    order = _wholes(doc, entry, "order", len(sizes)) if "order" in entry else None
    if order is not None and not np.array_equal(np.sort(order), np.arange(len(sizes))):
        raise entry.error('"order" does not number every polygon once')
    return corners, sizes, order, len(sizes)


def _read_labels(doc: GltfDocument, entry: Entry, polygons: int) -> Labels:
    names = entry.texts("names")
    index = _wholes(doc, entry, "index", len(names))
    if len(index) != polygons:
        raise entry.error(f"has {len(index)} entries for {polygons} polygons")
    return Labels(tuple(names), index)


def _per_vertex(doc: GltfDocument, entry: Entry, name: str, vertices: int) -> NDArray[Any]:
    accessor = entry.needed_index(name, len(doc.table("accessors")), "accessor")
    stored = doc.array(accessor)
    if len(stored) != vertices:
        raise entry.error(f'"{name}" has {len(stored)} rows for {vertices} vertices')
    values = doc.floats(accessor, (1, 2, 3, 4), name) if stored.dtype.kind == "f" else stored.astype(np.int64)
    return values[:, 0] if values.shape[1] == 1 else values


def write_extras(
    builder: Builder, mesh: Mesh, layout: PrimitiveLayout, *, has_normals: bool, base: str = ""
) -> dict[str, Any]:
    """The ``extras.pliant`` of a file with this mesh."""
    own: dict[str, Any] = {"vertices": len(mesh.points)}
    primitives = layout.primitives
    vertices = np.concatenate([primitive.vertices for primitive in primitives])
    if not np.array_equal(vertices, np.arange(len(mesh.points))):
        own["vertex"] = [_indices(builder, primitive.vertices) for primitive in primitives]
    order = np.concatenate([primitive.polygons for primitive in primitives])
    ordered = np.array_equal(order, np.arange(len(order)))
    if not (ordered and len(mesh.triangles) == len(mesh.polygons) and (mesh.polygons.sizes == 3).all()):
        starts = np.cumsum([0, *(len(primitive.vertices) for primitive in primitives)])
        corners = [start + primitive.corners for start, primitive in zip(starts, primitives, strict=False)]
        sizes = mesh.polygons.sizes[order]
        own["polygons"] = {"corners": _indices(builder, np.concatenate(corners))}
        if (sizes == sizes[0]).all():
            own["polygons"]["size"] = int(sizes[0])
        else:
            own["polygons"]["sizes"] = _indices(builder, sizes)
        if not ordered:
            own["polygons"]["order"] = _indices(builder, order)
    own["labels"] = {
        name: {"names": list(label.names), "index": _indices(builder, label.index)}
        for name, label in mesh.labels.items()
    }
    own["groups"] = {
        name: builder.sparse(np.asarray(weights, dtype=np.float32)) for name, weights in mesh.vertex_groups.items()
    }
    own["attributes"] = write_attributes(builder, mesh.attributes)
    if not has_normals:
        own["computedNormals"] = True
    if base:
        own["base"] = base
    return own


def write_attributes(builder: Builder, attributes: Mapping[str, NDArray[Any]]) -> dict[str, int]:
    """Accessors of per-vertex values that glTF itself cannot store."""
    written = {}
    for name, values in attributes.items():
        if name == "color" or name.startswith("TEXCOORD_"):
            continue
        array = np.asarray(values)
        width = array[0].size if array.ndim > 1 and len(array) else 1
        if array.dtype.kind not in "biuf" or array.ndim > 2 or width > 4 or not _fits_single(array):
            warnings.warn(f'attribute "{name}" does not fit into glTF; left out', PliantWarning, stacklevel=2)
            continue
        whole = array.dtype.kind in "biu" and width == 1 and array.min() >= 0 and array.max() < 1 << 32
        written[name] = _indices(builder, array.reshape(-1)) if whole else builder.accessor(array.astype(np.float32))
    return written


def _fits_single(array: NDArray[Any]) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.isfinite(array.astype(np.float32)).all())


def _indices(builder: Builder, numbers: NDArray[Any]) -> int:
    return builder.accessor(numbers.astype(smallest_unsigned(int(numbers.max(initial=0)))))
