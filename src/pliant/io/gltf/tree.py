"""glTF's nodes: the tree, local and world transforms, and which meshes stand where.

    local = T R S  (or the node's own 4×4 matrix, stored column by column),   world = parent's world · local

Quaternions are (x, y, z, w) in the file and (w, x, y, z) here.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pliant.core import rotations
from pliant.core.errors import PliantWarning
from pliant.core.topology import Floats, Ints
from pliant.io.gltf.checked_json import Entry
from pliant.io.gltf.data import GltfDocument
from pliant.io.naming import unique_names

ChannelPath = Literal["translation", "rotation", "scale", "weights"]


@dataclass(frozen=True, eq=False)
class NodeTree:
    """All nodes of a file at rest."""

    names: tuple[str, ...]
    parents: Ints
    """(k,) -1 for a root."""
    order: Ints
    """(k,) nodes, parents before children, depth first."""
    translations: Floats
    """(k, 3)"""
    rotations: Floats
    """(k, 4) as (w, x, y, z)."""
    scales: Floats
    """(k, 3)"""
    locals: Floats
    """(k, 4, 4)"""

    def __len__(self) -> int:
        return len(self.names)

    def world(self, frames: int = 1, moved: Mapping[tuple[int, ChannelPath], Floats] | None = None) -> Floats:
        """(frames, k, 4, 4) world transforms; `moved` gives (frames, d) values that replace the rest's."""
        moved = moved or {}
        animated = {node for node, path in moved if path != "weights"}
        world = np.empty((frames, len(self), 4, 4))
        for node in self.order:
            local = self._local(int(node), frames, moved) if node in animated else self.locals[node]
            parent = self.parents[node]
            world[:, node] = local if parent < 0 else world[:, parent] @ local
        return world

    def _local(self, node: int, frames: int, moved: Mapping[tuple[int, ChannelPath], Floats]) -> Floats:
        rest = {"translation": self.translations, "rotation": self.rotations, "scale": self.scales}
        parts = [
            moved.get((node, path), np.broadcast_to(rest[path][node], (frames, rest[path].shape[1])))
            for path in ("translation", "rotation", "scale")
        ]
        return compose(*parts)


def compose(translation: Floats, rotation: Floats, scale: Floats) -> Floats:
    """(..., 4, 4) transforms T R S."""
    local = np.zeros((*translation.shape[:-1], 4, 4))
    local[..., :3, :3] = rotations.matrix(rotations.normalize(rotation)) * scale[..., None, :]
    local[..., :3, 3] = translation
    local[..., 3, 3] = 1
    return local


def read_tree(doc: GltfDocument) -> NodeTree:
    """The nodes of a file; a graph that is not a forest is refused."""
    entries = doc.table("nodes")
    count = len(entries)
    parents = np.full(count, -1, dtype=np.int64)
    children = [entry.indices("children", count, "node") for entry in entries]
    for node, below in enumerate(children):
        for child in below:
            if parents[child] >= 0 or child == node:
                raise entries[child].error("has two parents or is its own child; expected a tree of nodes")
            parents[child] = node
    order = _depth_first([k for k in range(count) if parents[k] < 0], children)
    if len(order) < count:
        lost = sorted(set(range(count)) - set(order))[0]
        raise entries[lost].error("is its own ancestor; expected a tree of nodes")
    names = tuple(entry.text("name") or f"node {k}" for k, entry in enumerate(entries))
    t, r, s, matrices = _read_transforms(entries)
    locals_ = compose(t, r, s)
    for node, matrix in matrices.items():
        locals_[node] = matrix
    return NodeTree(names, parents, np.array(order, dtype=np.int64), t, r, s, locals_)


def _depth_first(roots: list[int], children: list[list[int]]) -> list[int]:
    order: dict[int, None] = {}
    stack = roots[::-1]
    while stack:
        node = stack.pop()
        if node not in order:
            order[node] = None
            stack.extend(children[node][::-1])
    return list(order)


def _read_transforms(entries: list[Entry]) -> tuple[Floats, Floats, Floats, dict[int, Floats]]:
    """(k, 3) translations, (k, 4) rotations, (k, 3) scales, and the matrices of the nodes that have one."""
    translations, scales = np.zeros((len(entries), 3)), np.ones((len(entries), 3))
    quaternions = np.tile(rotations.IDENTITY, (len(entries), 1))
    matrices: dict[int, Floats] = {}
    for node, entry in enumerate(entries):
        stored = entry.numbers("matrix", 16)
        if stored is not None:
            matrix = matrices[node] = stored.reshape(4, 4).T
            scales[node] = np.linalg.norm(matrix[:3, :3], axis=0)
            even = matrix[:3, :3] / np.where(scales[node] > 0, scales[node], 1)
            translations[node], quaternions[node] = matrix[:3, 3], rotations.quaternion(rotations.polar(even))
            continue
        for key, table, count in (("translation", translations, 3), ("rotation", quaternions, 4), ("scale", scales, 3)):
            given = entry.numbers(key, count)
            if given is not None:
                table[node] = np.roll(given, 1) if key == "rotation" else given
    return translations, rotations.normalize(quaternions), scales, matrices


@dataclass(frozen=True)
class Placed:
    """A mesh where a node puts it."""

    name: str
    mesh: int
    node: int
    """-1 for a mesh that no node refers to."""
    skin: int | None


def placed_meshes(doc: GltfDocument, tree: NodeTree) -> list[Placed]:
    """Every mesh of the scene, in the order of its nodes; without a scene, all nodes'; without nodes, all meshes."""
    nodes = doc.table("nodes")
    holding = [int(k) for k in _scene_nodes(doc, tree) if "mesh" in nodes[k]]
    if not holding:
        holding = [int(k) for k in tree.order if "mesh" in nodes[k]]
    meshes = doc.table("meshes")
    found = []
    for node in holding:
        mesh = nodes[node].needed_index("mesh", len(meshes), "mesh")
        name = nodes[node].text("name") or meshes[mesh].text("name") or f"mesh {mesh}"
        found.append(Placed(name, mesh, node, doc.index_of(nodes[node], "skin", "skins")))
        if "EXT_mesh_gpu_instancing" in nodes[node].entry("extensions"):
            location = f"{doc.source.label}, {nodes[node].location}"
            warnings.warn(f"{location}: ignored its EXT_mesh_gpu_instancing", PliantWarning, stacklevel=2)
    if not found:
        found = [Placed(mesh.text("name") or f"mesh {k}", k, -1, None) for k, mesh in enumerate(meshes)]
    names = unique_names([one.name for one in found])
    return [Placed(name, one.mesh, one.node, one.skin) for name, one in zip(names, found, strict=True)]


def _scene_nodes(doc: GltfDocument, tree: NodeTree) -> list[int]:
    """The nodes of the file's scene, depth first."""
    scenes = doc.table("scenes")
    if not scenes:
        return [int(k) for k in tree.order]
    shown = scenes[doc.index_of(doc.root, "scene", "scenes") or 0]
    children: list[list[int]] = [[] for _ in tree.names]
    for child in tree.order:
        if tree.parents[child] >= 0:
            children[tree.parents[child]].append(int(child))
    return _depth_first(shown.indices("nodes", len(tree), "node"), children)
