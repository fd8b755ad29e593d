"""Writing glTF: meshes, point clouds, morph targets, and animations that play in any viewer.

An animation becomes one morph target for each distinct frame and one track of weights. The base is the rest shape;
at key k (time k / fps) the weight of frame k's target is 1 and all others 0, so between two keys only two targets are
at work, and the points move linearly from frame to frame:

    x(t) = base + Σ_k w_k(t) (frame_k - base)

A skinned animation becomes a skin instead: joints with their rotations and translations, weights of the vertices, and
its correctives as morph targets.

Displacements are taken in float64 from the base as it is stored. A shape far from the origin is moved near it and put
back by its node, so that float32 is enough. A shape in other axes or units stands below a node that makes up for it.
Quantised (KHR_mesh_quantization), positions are fractions of 16 bits of a box that the node gives, normals of 8 bits.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.clips import DEFAULT_FPS, Animation, Shapes, WeightClip
from pliant.core.errors import InputError
from pliant.core.normals import rotated_normals, unit, vertex_normals
from pliant.core.shapes import Appearance, Mesh, PointCloud, TetMesh, World, bounding_diagonal
from pliant.core.skinned import SkinnedAnimation
from pliant.core.topology import Floats
from pliant.io.gltf.build import ARRAY_BUFFER, INDICES, Builder, smallest_unsigned
from pliant.io.gltf.extras import write_attributes, write_extras
from pliant.io.gltf.layout import Primitive, PrimitiveLayout, compacted, lay_out
from pliant.io.gltf.material import MaterialWriter
from pliant.io.gltf.skin import add_joints, joint_channels, vertex_joints

RECENTRE_DISTANCE = 16.0
"""Diagonals from the origin beyond which a shape is stored near it."""
DENSE_WEIGHTS = 1 << 18
"""Weights in a track up to which it is stored densely; longer ones are nearly all zero."""


@dataclass(frozen=True, eq=False)
class Targets:
    """Morph targets on a base."""

    names: tuple[str, ...]
    points: Sequence[Floats]
    """(targets, n, 3)"""


NO_TARGETS = Targets((), ())


def write_mesh(path: Path, mesh: Mesh, *, quantize: bool = False) -> None:
    """Write a mesh."""
    builder = Builder()
    _MeshWriter(builder, mesh, NO_TARGETS, path.stem, quantize=quantize).write()
    builder.save(path)


def write_shapes(path: Path, shapes: Shapes, weights: WeightClip | None = None, *, quantize: bool = False) -> None:
    """Write a base and its morph targets, all at weight 0, and a clip of their weights, in the shapes' order."""
    builder = Builder()
    targets = Targets(tuple(shapes.names[1:]), list(shapes.points[1:]))
    base = shapes.base.with_points(shapes.points[0])
    nodes = _MeshWriter(builder, base, targets, path.stem, base_name=shapes.names[0], quantize=quantize).write()
    if weights is not None:
        _write_track(builder, weights.name, weights.fps or DEFAULT_FPS, nodes, weights.values[:, 1:].astype(np.float32))
    builder.save(path)


def write_points(path: Path, cloud: PointCloud, *, quantize: bool = False) -> None:
    """Write a point cloud."""
    builder = Builder()
    _write_cloud(builder, cloud, NO_TARGETS, path.stem, quantize)
    builder.save(path)


def write_animation(path: Path, animation: Animation, *, quantize: bool = False) -> None:
    """Write a moving mesh or point cloud; of tetrahedra, the surface."""
    builder = Builder()
    targets, weights = _frame_targets(animation.points, animation.shape.points)
    base = animation.shape.surface if isinstance(animation.shape, TetMesh) else animation.shape
    if isinstance(base, PointCloud):
        nodes = _write_cloud(builder, base, targets, path.stem, quantize)
    else:
        nodes = _MeshWriter(builder, base, targets, path.stem, quantize=quantize).write()
    _write_track(builder, animation.name, animation.fps, nodes, weights)
    builder.save(path)


def write_skinned(path: Path, clip: SkinnedAnimation, *, quantize: bool = False) -> None:
    """Write a skin, its correctives and how both move."""
    builder = Builder()
    assert isinstance(clip.shape, Mesh)
    names = tuple(f"corrective {k}" for k in range(len(clip.correctives)))
    targets = Targets(names, list(clip.shape.points + clip.correctives))
    writer = _MeshWriter(builder, clip.shape, targets, path.stem, quantize=quantize, skin=clip)
    _write_track(builder, clip.name, clip.fps, writer.write(), clip.curves.astype(np.float32), writer.joint_nodes, clip)
    builder.save(path)


def _frame_targets(points: Floats, rest: Floats) -> tuple[Targets, NDArray[np.float32]]:
    """One target for each distinct frame that differs from the rest shape, and (frames, targets) weights."""
    seen = {_digest(rest): -1}
    kept: list[int] = []
    column = np.empty(len(points), dtype=np.int64)
    for k, frame in enumerate(points):
        number = seen.setdefault(_digest(frame), len(kept))
        if number == len(kept):
            kept.append(k)
        column[k] = number
    weights = np.zeros((len(points), len(kept)), dtype=np.float32)
    moved = np.flatnonzero(column >= 0)
    weights[moved, column[moved]] = 1
    return Targets(tuple(f"frame {k}" for k in kept), [points[k] for k in kept]), weights


def _digest(points: Floats) -> bytes:
    """What tells a frame from others, in few bytes."""
    return hashlib.sha256(np.ascontiguousarray(points).data).digest()


def _write_track(
    builder: Builder,
    name: str,
    fps: float,
    nodes: dict[int, bool],
    weights: NDArray[np.float32],
    joints: list[int] | None = None,
    skin: SkinnedAnimation | None = None,
) -> None:
    """The clip: weights (frames, targets) of nodes that have targets, and joints; if all stays, a node that stays."""
    times = builder.accessor((np.arange(len(weights)) / fps).astype(np.float32), bounds=True)
    morphing = [node for node, has_targets in nodes.items() if has_targets]
    channels: list[tuple[int, str, int]] = []
    if morphing:
        flat = weights.reshape(-1)
        output = builder.accessor(flat) if flat.size <= DENSE_WEIGHTS else builder.sparse(flat)
        channels += [(node, "weights", output) for node in morphing]
    if joints and skin is not None:
        channels += joint_channels(builder, skin.motion, joints)
    if not channels:
        node = joints[0] if joints else next(iter(nodes))
        translation = builder.json["nodes"][node].get("translation", [0.0, 0.0, 0.0])
        channels = [(node, "translation", builder.accessor(np.tile(np.float32(translation), (len(weights), 1))))]
    outputs = list(dict.fromkeys(output for *_, output in channels))
    builder.add(
        "animations",
        {
            "name": name,
            "samplers": [{"input": times, "output": output, "interpolation": "LINEAR"} for output in outputs],
            "channels": [
                {"sampler": outputs.index(output), "target": {"node": node, "path": path}}
                for node, path, output in channels
            ],
            "extras": {"pliant_fps": fps},
        },
    )


@dataclass(frozen=True, eq=False)
class Storage:
    """How coordinates are stored: ``(x - offset) / scale``, as float32 or as fractions of 16 bits."""

    offset: Floats
    scale: float = 1.0
    quantized: bool = False

    @classmethod
    def of(cls, points: Floats, targets: Targets, quantize: bool) -> Storage:
        """What holds the points and all displacements of the targets."""
        if not quantize:
            return cls(_origin(points))
        offset = ((points.min(axis=0) + points.max(axis=0)) / 2).astype(np.float32).astype(np.float64)
        moves = (float(np.abs(target - points).max()) for target in targets.points)
        largest = max(float(np.abs(points - offset).max()), *moves, 1e-30)
        _single(np.array(largest))
        return cls(offset, float(np.float32(largest * 1.0001)), True)

    def base(self, points: Floats) -> Any:
        """Points as they are stored."""
        return self._fractions((points - self.offset) / self.scale) if self.quantized else _single(points - self.offset)

    def displacements(self, points: Floats, base: Any) -> Any:
        """From the stored base; exactly zero where the base, as stored, is already as near as it can be."""
        if self.quantized:
            return self._fractions((points - self.offset) / self.scale - base / LARGEST_SHORT)
        return _displacements(points - self.offset, base)

    @staticmethod
    def _fractions(values: Floats) -> Any:
        return np.round(values * LARGEST_SHORT).astype(np.int16)

    def normals(self, normals: Any) -> Any:
        """Unit normals as they are stored."""
        return np.round(np.clip(normals, -1, 1) * LARGEST_BYTE).astype(np.int8) if self.quantized else normals

    def normal_changes(self, normals: Any, base: Any) -> Any:
        """From base normals. Fractions end at 1, so new ones are shortened where that is needed: directions count."""
        if not self.quantized:
            return normals - base
        opposed = np.where(normals * base < 0, np.abs(normals), 0)
        length = np.min((1 - np.abs(base)) / np.maximum(opposed, 1e-9), axis=1, keepdims=True)
        return self.normals(np.clip(length, 0.05, 1) * normals - base)

    def placed(self, node: dict[str, Any]) -> dict[str, Any]:
        """A node that undoes it."""
        if self.offset.any():
            node["translation"] = self.offset.tolist()
        if self.scale != 1:
            node["scale"] = [self.scale] * 3
        return node


LARGEST_SHORT, LARGEST_BYTE = 32767, 127
"""The largest fractions of 16 and 8 bits."""
STORED_VERTEX: dict[str, Any] = {"target": ARRAY_BUFFER, "normalized": True}
"""How `Builder` is told of what a `Storage` gives."""
QUANTIZATION = "KHR_mesh_quantization"


def _origin(points: Floats) -> Floats:
    """Where to put a node so that float32 holds the points well: zero, unless they are far away."""
    diagonal = bounding_diagonal(points)
    centre = (points.min(axis=0) + points.max(axis=0)) / 2
    if not diagonal or np.abs(points).max() <= RECENTRE_DISTANCE * diagonal:
        return np.zeros(3)
    return centre.astype(np.float32).astype(np.float64)


def _add_scene(
    builder: Builder, objects: list[tuple[str, dict[str, Any]]], storage: Storage, world: World | None
) -> dict[int, bool]:
    """Nodes, one a mesh, and the scene; {node: whether it has morph targets}."""
    nodes = {}
    for name, mesh in objects:
        node = storage.placed({"name": name, "mesh": builder.add("meshes", mesh)})
        nodes[builder.add("nodes", node)] = "weights" in mesh
    node = _to_gltf(world or World())
    roots = [builder.add("nodes", {**node, "children": list(nodes)})] if node else list(nodes)
    builder.json["scenes"] = [{"nodes": roots}]
    builder.json["scene"] = 0
    return nodes


def _add_skinned_scene(
    builder: Builder, objects: list[tuple[str, dict[str, Any]]], storage: Storage, clip: SkinnedAnimation
) -> tuple[dict[int, bool], list[int]]:
    """As `_add_scene`, and the nodes of the joints. Meshes stand where their joints do, not where their nodes are."""
    roots, joints, skin = add_joints(builder, clip.motion.skeleton, storage.offset, storage.scale)
    nodes = {}
    for name, mesh in objects:
        entry = {"name": name, "mesh": builder.add("meshes", mesh), "skin": skin}
        nodes[builder.add("nodes", entry)] = "weights" in mesh
    above: dict[str, Any] = {
        "name": "skeleton",
        **({"translation": storage.offset.tolist()} if storage.offset.any() else {}),
    }
    top = builder.add("nodes", {**above, "children": roots})
    upright = _to_gltf(clip.shape.world or World())
    top = builder.add("nodes", {**upright, "children": [top]}) if upright else top
    builder.json["scenes"] = [{"nodes": [top, *nodes]}]
    builder.json["scene"] = 0
    return nodes, joints


def _to_gltf(world: World) -> dict[str, Any]:
    """The transform, as a node has it, to glTF's axes and units; empty if they are its own."""
    node: dict[str, Any] = {"name": "axes and units"}
    if world.up == "z":
        node["rotation"] = [-math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)]
    if world.metres not in (None, 1):
        node["scale"] = [world.metres] * 3
    return node if len(node) > 1 else {}


def _named_targets(mesh: dict[str, Any], targets: Targets) -> dict[str, Any]:
    return {**mesh, "weights": [0.0] * len(targets.names), "extras": {"targetNames": list(targets.names)}}


def _single(points: Floats) -> Any:
    """Points as float32, which ends at 3.4e38."""
    largest = float(np.abs(points).max())
    if largest > float(np.finfo(np.float32).max) / 4:
        raise InputError(f"coordinates reach {largest:.3g}, too large for glTF's float32; scale the shape down")
    return points.astype(np.float32)


def _displacements(points: Floats, base: Any) -> Any:
    """float32 ``points - base``; exactly zero where the base, as stored, is already as near as float32 can be."""
    return np.where(_single(points) == base, 0, points - base).astype(np.float32)


def _unit32(normals: Floats) -> Floats:
    """Unit normals as float32; where there is no direction, up."""
    lengths = np.linalg.norm(normals, axis=-1)
    return np.where((lengths > 0)[..., None], unit(normals), [0.0, 1.0, 0.0]).astype(np.float32)


def _write_cloud(builder: Builder, cloud: PointCloud, targets: Targets, name: str, quantize: bool) -> dict[int, bool]:
    if not len(cloud.points):
        raise InputError("the point cloud has no points; glTF needs one or more")
    storage = Storage.of(cloud.points, targets, quantize)
    base, vertex = storage.base(cloud.points), STORED_VERTEX
    attributes = {"POSITION": builder.accessor(base, bounds=True, **vertex)}
    if cloud.normals is not None:
        attributes["NORMAL"] = builder.accessor(storage.normals(_unit32(cloud.normals)), **vertex)
    color = _color(cloud)
    if color is not None:
        attributes["COLOR_0"] = builder.accessor(color, target=ARRAY_BUFFER)
    primitive: dict[str, Any] = {"attributes": attributes, "mode": 0}
    mesh: dict[str, Any] = {"name": name, "primitives": [primitive]}
    if targets.names:
        deltas = (storage.displacements(points, base) for points in targets.points)
        primitive["targets"] = [{"POSITION": builder.sparse(d, bounds=True, **vertex)} for d in deltas]
        mesh = _named_targets(mesh, targets)
    own = {"vertices": len(cloud.points), "attributes": write_attributes(builder, cloud.attributes)}
    builder.json["extras"] = {"pliant": own}
    _note_extensions(builder, {QUANTIZATION} if quantize else set(), {QUANTIZATION} if quantize else set())
    return _add_scene(builder, [(name, mesh)], storage, cloud.world)


def _note_extensions(builder: Builder, used: set[str], required: set[str]) -> None:
    for key, names in (("extensionsUsed", used), ("extensionsRequired", required)):
        if names:
            builder.json[key] = sorted(names)


def _color(shape: Mesh | PointCloud) -> Any:
    """(n, 3) or (n, 4) float32 colours from 0 to 1, if the shape has any."""
    color = shape.attributes.get("color")
    if color is None or color.ndim != 2 or color.shape[1] not in (3, 4):
        return None
    return np.clip(color.astype(np.float64), 0, 1).astype(np.float32)


class _MeshWriter:
    """Writes one mesh and its targets into a builder."""

    def __init__(
        self,
        builder: Builder,
        mesh: Mesh,
        targets: Targets,
        name: str,
        *,
        base_name: str = "",
        quantize: bool = False,
        skin: SkinnedAnimation | None = None,
    ) -> None:
        if not len(mesh.polygons):
            raise InputError("the mesh has no faces; write it as a PointCloud")
        self.builder, self.targets, self.base_name, self.skin = builder, targets, base_name, skin
        self.joint_nodes: list[int] = []
        self.has_normals = mesh.normals is not None
        self.mesh = replace(
            mesh,
            uvs=None if mesh.uvs is None else compacted(mesh.uvs),
            normals=None if mesh.normals is None else compacted(mesh.normals),
        )
        self.weld = self.mesh.welded()
        self.layout: PrimitiveLayout = lay_out(self.mesh, name)
        self.storage = Storage.of(mesh.points, targets, quantize)
        self.base = self.storage.base(mesh.points)
        self.color = _color(mesh)
        self.uv_sets = self._uv_sets()
        self.materials = MaterialWriter(texture_sets=len(self.uv_sets), double_sided=not self.weld.mesh.is_watertight)
        self.material_numbers: dict[int, int] = {}

    def write(self) -> dict[int, bool]:
        """Write everything; {node: whether it has morph targets}."""
        base_normals = self._normals(self.mesh.points)
        entries = [(name, [self._primitive(p, base_normals) for p in primitives], primitives)
                   for name, primitives in self.layout.objects]  # fmt: skip
        moving = self._moving()
        for points in self.targets.points:
            deltas = self.storage.displacements(points, self.base)
            normals = None if self.skin else self._normals(points)
            for (_, written, primitives), moves in zip(entries, moving, strict=True):
                for entry, primitive in zip(written, primitives, strict=True):
                    if moves:
                        entry.setdefault("targets", []).append(self._target(primitive, deltas, normals, base_normals))
        objects = []
        for (name, written, _), moves in zip(entries, moving, strict=True):
            mesh: dict[str, Any] = {"name": name, "primitives": written}
            objects.append((name, _named_targets(mesh, self.targets) if moves else mesh))
        if self.skin is None:
            nodes = _add_scene(self.builder, objects, self.storage, self.mesh.world)
        else:
            nodes, self.joint_nodes = _add_skinned_scene(self.builder, objects, self.storage, self.skin)
        self._finish()
        return nodes

    def _moving(self) -> list[bool]:
        """Which objects have targets: those that any target moves; the first, if none does."""
        if not self.targets.names:
            return [False] * len(self.layout.objects)
        moved = np.zeros(len(self.mesh.points), dtype=bool)
        for points in self.targets.points:
            moved |= (points != self.mesh.points).any(axis=1)
        result = [any(moved[p.vertices].any() for p in primitives) for _, primitives in self.layout.objects]
        return result if any(result) else [True, *result[1:]]

    def _primitive(self, primitive: Primitive, normals: Any) -> dict[str, Any]:
        add = self.builder.accessor
        at = primitive.vertices
        attributes = {"POSITION": add(self.base[at], target=ARRAY_BUFFER, bounds=True, normalized=True)}
        shown = self.storage.normals(self._at(normals, primitive))
        attributes["NORMAL"] = add(shown, target=ARRAY_BUFFER, normalized=True)
        if self.skin is not None:
            attributes |= vertex_joints(self.builder, self.skin.joints[at], self.skin.weights[at])
        for k, values in enumerate(self.uv_sets):
            chosen = values[np.maximum(primitive.slots, 0)] if k == 0 else values[at]
            attributes[f"TEXCOORD_{k}"] = add(chosen, target=ARRAY_BUFFER)
        if self.color is not None:
            attributes["COLOR_0"] = add(self.color[at], target=ARRAY_BUFFER)
        indices = primitive.triangles.reshape(-1).astype(smallest_unsigned(len(at), least=2))
        return {
            "attributes": attributes,
            "indices": add(indices, target=INDICES),
            "material": self._material(primitive.material),
            "mode": 4,
        }

    def _target(self, primitive: Primitive, deltas: Any, normals: Any, base_normals: Any) -> dict[str, int]:
        vertex = STORED_VERTEX
        written = {"POSITION": self.builder.sparse(deltas[primitive.vertices], bounds=True, **vertex)}
        if normals is not None:
            change = self.storage.normal_changes(self._at(normals, primitive), self._at(base_normals, primitive))
            written["NORMAL"] = self.builder.sparse(change, **vertex)
        return written

    def _normals(self, points: Floats) -> Any:
        """float32 unit normals: of each polygon corner if the mesh has its own, else of each vertex, smooth."""
        if self.mesh.normals is not None:
            return _unit32(rotated_normals(self.mesh, points).at_corners)
        smooth = vertex_normals(points[self.weld.kept], self.weld.mesh.triangles)
        return _unit32(smooth[self.weld.index])

    def _at(self, normals: Any, primitive: Primitive) -> Any:
        """The primitive's part of what `_normals` gave."""
        if self.mesh.normals is None:
            return normals[primitive.vertices]
        chosen = normals[np.maximum(primitive.slots, 0)]
        chosen[primitive.slots < 0] = (0.0, 1.0, 0.0)
        return chosen

    def _uv_sets(self) -> list[Any]:
        """UVs with v downwards, of each corner; then further sets, of each vertex."""
        if self.mesh.uvs is None:
            return []
        uvs = self.mesh.uvs.at_corners
        sets: list[Any] = [np.stack([uvs[:, 0], 1 - uvs[:, 1]], axis=1).astype(np.float32)]
        while True:
            more = self.mesh.attributes.get(f"TEXCOORD_{len(sets)}")
            if more is None or more.shape[1:] != (2,):
                return sets
            sets.append(np.asarray(more, dtype=np.float32))

    def _material(self, label: int) -> int:
        if label not in self.material_numbers:
            name = self.layout.materials[label] if label >= 0 else "surface"
            look = self.mesh.appearances.get(name)
            if look is None:
                look = Appearance() if self.color is None else Appearance((1.0, 1.0, 1.0, 1.0))
            self.material_numbers[label] = self.materials.add(name, look)
        return self.material_numbers[label]

    def _finish(self) -> None:
        """Tables of materials, and what pliant needs to read the mesh back."""
        written, json = self.materials, self.builder.json
        for table in ("materials", "textures", "samplers"):
            if getattr(written, table):
                json[table] = getattr(written, table)
        self.builder.images(written.images)
        quantized = {QUANTIZATION} if self.storage.quantized else set()
        _note_extensions(self.builder, quantized | set(written.extensions), quantized | set(written.required))
        own = write_extras(self.builder, self.mesh, self.layout, has_normals=self.has_normals, base=self.base_name)
        json["extras"] = {"pliant": own}
