"""A glTF scene as one shape: every mesh at every node, in world space, at rest or in any pose.

    v  =  position + Σ w_t target_t                                   morphed, in the mesh's frame
    plain node    x = W v                        W the node's world transform
    skinned node  x = Σ_j  w_j (W_j B_j) v       W_j the joint's world transform, B_j its inverse bind matrix

A skinned mesh ignores its own node's transform. Vertices are concatenated: nodes in scene order, then primitives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.normals import cofactors, unit, vertex_normals
from pliant.core.shapes import Labels, Layer, Mesh, PointCloud, World, bounding_diagonal
from pliant.core.topology import Floats, Ints
from pliant.io.gltf.data import GltfDocument
from pliant.io.gltf.geometry import Block, Geometry, modes, read_geometry
from pliant.io.gltf.material import read_appearance
from pliant.io.gltf.tree import ChannelPath, NodeTree, Placed, placed_meshes, read_tree
from pliant.io.naming import unique_names
from pliant.io.posing import blended, morphed, skinned

AS_BOUND = 1e-6
"""Distance, over the diagonal, up to which a mesh at rest stands as it was bound."""


@dataclass(frozen=True, eq=False)
class GltfSkin:
    """Joints that move a mesh."""

    joints: Ints
    """(j,) nodes."""
    inverse_bind: Floats
    """(j, 4, 4)"""
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class NodeMesh:
    """A block of vertices at one node."""

    placed: Placed
    block: Block
    geometry: Geometry
    weights: Floats
    """(targets,) shown by default."""
    skin: GltfSkin | None
    influence: Any = None
    """(n, j) sparse skin weights, rows summing to 1."""

    def points(self, world: Floats, weights: Floats | None = None) -> Floats:
        """(frames, n, 3) for world transforms (frames, nodes, 4, 4) and morph weights (frames, targets)."""
        frames = len(world)
        weights = np.broadcast_to(self.weights, (frames, len(self.weights))) if weights is None else weights
        shape = morphed(self.block.positions, self.block.targets, weights)
        if self.skin is None:
            if self.placed.node < 0:
                return np.array(np.broadcast_to(shape, (frames, *shape.shape[1:])))
            frame = world[:, self.placed.node]
            return shape @ np.swapaxes(frame[:, :3, :3], 1, 2) + frame[:, None, :3, 3]
        return skinned(shape, self.influence, self.bound(world))

    def bound(self, world: Floats) -> Floats:
        """(..., j, 4, 4) what the joints do to the mesh, W_j B_j, in poses of `world` (..., nodes, 4, 4)."""
        assert self.skin is not None
        return np.asarray(world[..., self.skin.joints, :, :] @ self.skin.inverse_bind)

    def blended(self, world: Floats) -> Floats:
        """(n, 3, 4) each vertex's blend of its joints' transforms."""
        return blended(self.influence, self.bound(world))

    def normals(self, world: Floats) -> Floats:
        """(n, 3) unit normals in the pose of `world` (nodes, 4, 4), transformed by the cofactor matrices."""
        assert self.block.normals is not None
        if self.skin is not None:
            frames = self.blended(world)[:, :, :3]
        elif self.placed.node >= 0:
            frames = world[None, self.placed.node, :3, :3]
        else:
            return unit(self.block.normals)
        cofactor = cofactors(frames)
        side = np.where(np.einsum("ni,ni->n", frames[..., 0], cofactor[..., 0]) < 0, -1.0, 1.0)
        return unit(np.einsum("nij,nj->ni", np.broadcast_to(cofactor, (len(self.block.normals), 3, 3)),
                              self.block.normals) * side[:, None])  # fmt: skip

    def mirrored(self, world: Floats) -> bool:
        """Whether the pose mirrors the faces (as a negative scale does), so that they must be reversed."""
        if self.skin is not None:
            return bool(np.median(np.linalg.det(self.blended(world)[:, :, :3])) < 0)
        return self.placed.node >= 0 and bool(np.linalg.det(world[self.placed.node, :3, :3]) < 0)


@dataclass(frozen=True, eq=False)
class GltfScene:
    """All that a file shows."""

    doc: GltfDocument
    tree: NodeTree
    parts: tuple[NodeMesh, ...]
    is_points: bool
    """Whether it shows points, not faces."""

    @property
    def count(self) -> int:
        """Number of vertices."""
        return sum(len(part.block.positions) for part in self.parts)

    def points(self, world: Floats, weights: Mapping[int, Floats] | None = None) -> Floats:
        """(frames, n, 3) for world transforms (frames, nodes, 4, 4) and morph weights {node: (frames, targets)}."""
        self.doc.check_size(len(world) * self.count * 3, "frames")
        weights = weights or {}
        return np.concatenate([part.points(world, weights.get(part.placed.node)) for part in self.parts], axis=1)

    def posed(self, frames: int, moved: Mapping[tuple[int, ChannelPath], Floats]) -> Iterator[Floats]:
        """(n, 3) of each frame, for values that replace the nodes' own, some frames at a time to spare memory."""
        self.doc.check_size(frames * self.count * 3, "frames")
        step = max(1, (1 << 14) // max(1, len(self.tree), self.count))
        for start in range(0, frames, step):
            some = {key: values[start : start + step] for key, values in moved.items()}
            weights = {node: values for (node, path), values in some.items() if path == "weights"}
            yield from self.points(self.tree.world(min(step, frames - start), some), weights)


def read_scene(doc: GltfDocument) -> GltfScene:
    """The meshes of a file's scene: its faces, or its points if it has no faces."""
    tree = read_tree(doc)
    placed = placed_meshes(doc, tree)
    if not placed:
        raise doc.source.error("holds no mesh")
    all_modes = set().union(*(modes(doc.table("meshes")[mesh]) for mesh in {one.mesh for one in placed}))
    is_points = 0 in all_modes and max(all_modes) < 4
    geometries: dict[int, Geometry] = {}
    skins: dict[int, GltfSkin] = {}
    parts = []
    total = 0
    for one in placed:
        if one.mesh not in geometries:
            geometries[one.mesh] = read_geometry(doc, one.mesh, points=is_points)
        if one.skin is not None and one.skin not in skins:
            skins[one.skin] = read_skin(doc, tree, one.skin)
        total += sum(len(block.positions) for block in geometries[one.mesh].blocks)
        doc.check_size(total * 3, "instances")
        parts.extend(_parts(doc, one, geometries[one.mesh], None if one.skin is None else skins[one.skin]))
    if not is_points and not any(len(faces.triangles) for part in parts for faces in part.block.faces):
        raise doc.source.error("holds no triangles; expected a mesh with faces")
    return GltfScene(doc, tree, tuple(parts), is_points)


def read_skin(doc: GltfDocument, tree: NodeTree, k: int) -> GltfSkin:
    """Skin number k."""
    entry = doc.table("skins")[k]
    joints = np.array(entry.indices("joints", len(tree), "node"), dtype=np.int64)
    if not len(joints):
        raise entry.error("has no joints; expected one or more nodes")
    accessor = doc.index_of(entry, "inverseBindMatrices", "accessors")
    matrices = np.tile(np.eye(4), (len(joints), 1, 1))
    if accessor is not None:
        stored = doc.floats(accessor, (16,), "inverse bind matrix")
        if len(stored) < len(joints):
            raise entry.error(f"has {len(joints)} joints and {len(stored)} inverse bind matrices")
        matrices = np.swapaxes(stored[: len(joints)].reshape(-1, 4, 4), 1, 2)
    names = unique_names([tree.names[joint] for joint in joints])
    return GltfSkin(joints, matrices, tuple(names))


def _parts(doc: GltfDocument, placed: Placed, geometry: Geometry, skin: GltfSkin | None) -> list[NodeMesh]:
    weights = geometry.weights
    if placed.node >= 0:
        entry = doc.table("nodes")[placed.node]
        given = entry.numbers("weights", len(geometry.target_names))
        weights = weights if given is None else given
    parts = []
    for block in geometry.blocks:
        part = NodeMesh(placed, block, geometry, weights, None)
        if skin is not None and block.joints is not None:
            part = replace(part, skin=skin, influence=_influence(doc, placed, block, skin))
        parts.append(part)
    return parts


def _influence(doc: GltfDocument, placed: Placed, block: Block, skin: GltfSkin) -> Any:
    """(n, j) sparse weights with rows summing to 1; a vertex without weights follows the first joint."""
    from scipy.sparse import csr_matrix

    assert block.joints is not None
    assert block.weights is not None
    weights = np.where(block.weights > 0, block.weights, 0)
    joints = np.where(weights > 0, block.joints, 0)
    if joints.max() >= len(skin.joints) or joints.min() < 0:
        location = f"node {placed.node}"
        raise doc.source.error(
            f"its mesh refers to joint {joints.max()}; its skin has {len(skin.joints)}", location=location
        )
    total = weights.sum(axis=1, keepdims=True)
    weights = np.where(total > 0, weights / np.where(total > 0, total, 1), np.eye(1, weights.shape[1]))
    rows = np.repeat(np.arange(len(joints)), joints.shape[1])
    influence = csr_matrix((weights.ravel(), (rows, joints.ravel())), shape=(len(joints), len(skin.joints)))
    influence.eliminate_zeros()
    return influence


def rest_mesh(scene: GltfScene, points: Floats | None = None) -> Mesh:
    """The scene's faces as one mesh, as the file shows it before anything moves, or at the given points."""
    world = scene.tree.world()
    points = scene.points(world)[0] if points is None else points
    starts = np.concatenate([[0], np.cumsum([len(part.block.positions) for part in scene.parts])])
    faces, objects, materials = [], [], []
    names = {name: k for k, name in enumerate(dict.fromkeys(part.placed.name for part in scene.parts))}
    for part, start in zip(scene.parts, starts, strict=False):
        mirrored = part.mirrored(world[0])
        for piece in part.block.faces:
            faces.append(start + (piece.triangles[:, ::-1] if mirrored else piece.triangles))
            objects.append(np.full(len(piece.triangles), names[part.placed.name]))
            materials.append(np.full(len(piece.triangles), -1 if piece.material is None else piece.material))
    triangles = np.concatenate(faces)
    labels = {"object": Labels(tuple(names), np.concatenate(objects))}
    material, appearances = _material_labels(scene.doc, np.concatenate(materials))
    if material is not None:
        labels["material"] = material
    return Mesh(
        points,
        triangles,
        uvs=_layer(_spread(scene, [part.block.uvs for part in scene.parts], 0.0), triangles),
        normals=_layer(_normals(scene, world[0], points, triangles), triangles),
        labels=labels,
        appearances=appearances,
        attributes=_attributes(scene),
        vertex_groups=_vertex_groups(scene),
        world=World(),
        bind_offsets=_bind_offsets(scene, world, points),
    )


def rest_points(scene: GltfScene) -> PointCloud:
    """The scene's points, as the file shows them before anything moves; of a mesh, its vertices."""
    world = scene.tree.world()
    normals = None
    if scene.is_points and all(part.block.normals is not None for part in scene.parts):
        normals = np.concatenate([part.normals(world[0]) for part in scene.parts])
    return PointCloud(scene.points(world)[0], normals, _attributes(scene), World())


def _material_labels(doc: GltfDocument, index: Ints) -> tuple[Labels | None, dict[str, Any]]:
    """The polygons' materials by name, and what they look like; None if no polygon has one."""
    used = np.unique(index)
    if not (used >= 0).any():
        return None, {}
    given = [doc.table("materials")[k].text("name") or f"material {k}" if k >= 0 else "default" for k in used]
    names = unique_names(given)
    appearances = {name: read_appearance(doc, int(k)) for name, k in zip(names, used, strict=True) if k >= 0}
    return Labels(tuple(names), np.searchsorted(used, index)), appearances


def _spread(scene: GltfScene, arrays: list[Floats | None], fill: float) -> Floats | None:
    """Per-vertex values of all parts, where some may have none (filled) or fewer columns (filled too)."""
    width = max((array.shape[1] for array in arrays if array is not None), default=0)
    if not width:
        return None
    result = np.full((scene.count, width), fill)
    start = 0
    for part, array in zip(scene.parts, arrays, strict=True):
        end = start + len(part.block.positions)
        if array is not None:
            result[start:end, : array.shape[1]] = array
        start = end
    return result


def _layer(values: Floats | None, triangles: Ints) -> Layer | None:
    return None if values is None else Layer(values, triangles.reshape(-1))


def _normals(scene: GltfScene, world: Floats, points: Floats, triangles: Ints) -> Floats | None:
    """(n, 3) the file's normals; computed for the parts that have none, and None if no part has any."""
    if all(part.block.normals is None for part in scene.parts):
        return None
    given = [None if part.block.normals is None else part.normals(world) for part in scene.parts]
    result = _spread(scene, given, 0.0)
    assert result is not None
    missing = ~result.any(axis=1)
    if missing.any():
        result[missing] = vertex_normals(points, triangles)[missing]
    return result


def _attributes(scene: GltfScene) -> dict[str, NDArray[Any]]:
    names = dict.fromkeys(name for part in scene.parts for name in part.block.attributes)
    result = {}
    for name in names:
        values = _spread(scene, [part.block.attributes.get(name) for part in scene.parts], float(name == "color"))
        assert values is not None
        result[name] = values[:, 0] if values.shape[1] == 1 else values
    return result


def _vertex_groups(scene: GltfScene) -> dict[str, Floats]:
    """(n,) weight of every joint that moves something, by the joint's name."""
    groups: dict[str, Floats] = {}

    def put(name: str, rows: Ints, weights: Floats | float) -> None:
        if len(rows):
            scene.doc.check_size((len(groups) + 1) * scene.count, "vertex groups")
            groups.setdefault(name, np.zeros(scene.count))[rows] = weights

    start, above = 0, _joints_above(scene)
    for part in scene.parts:
        end = start + len(part.block.positions)
        if part.skin is not None:
            columns = part.influence.tocsc()
            for j, name in enumerate(part.skin.names):
                mine = slice(columns.indptr[j], columns.indptr[j + 1])
                put(name, start + columns.indices[mine], columns.data[mine])
        elif part.placed.node in above:
            put(above[part.placed.node], np.arange(start, end), 1.0)
        start = end
    return groups


def _bind_offsets(scene: GltfScene, world: Floats, points: Floats) -> dict[str, Floats]:
    """By joint, (n, 3) from the points of the rest pose `world` to where the joint alone has them, W_j B_j v."""
    offsets: dict[str, Floats] = {}
    start = 0
    for part in scene.parts:
        end = start + len(part.block.positions)
        if part.skin is not None:
            (shape,) = morphed(part.block.positions, part.block.targets, part.weights[None])
            columns = part.influence.tocsc()
            for j, (name, frame) in enumerate(zip(part.skin.names, part.bound(world[0]), strict=True)):
                rows = columns.indices[columns.indptr[j] : columns.indptr[j + 1]]
                offset = shape[rows] @ frame[:3, :3].T + frame[:3, 3] - points[start + rows]
                if len(rows):
                    offsets.setdefault(name, np.zeros_like(points))[start + rows] = offset
        start = end
    least = AS_BOUND * bounding_diagonal(points)
    return offsets if any(np.abs(offset).max() > least for offset in offsets.values()) else {}


def _joints_above(scene: GltfScene) -> dict[int, str]:
    """For nodes that hang on a joint of a skin, the name of the nearest one: what stands there moves with it."""
    names: dict[int, str] = {}
    for part in scene.parts:
        if part.skin is not None:
            names = dict(zip(part.skin.joints.tolist(), part.skin.names, strict=True)) | names
    for node in scene.tree.order.tolist() if names else ():
        parent = int(scene.tree.parents[node])
        if node not in names and parent in names:
            names[node] = names[parent]
    return names
