"""Morph weights over time, from the clips of a file."""

from __future__ import annotations

import warnings

import numpy as np

from pliant.core.clips import WeightClip
from pliant.core.errors import PliantWarning
from pliant.core.topology import Floats
from pliant.io.gltf.clip import Clip, clip_names, find_clip, read_clip
from pliant.io.gltf.data import GltfDocument
from pliant.io.gltf.extras import own_extras
from pliant.io.gltf.geometry import target_names
from pliant.io.gltf.tree import placed_meshes, read_tree


def shape_names(doc: GltfDocument, targets: list[str]) -> tuple[str, ...]:
    """The names of a base, which glTF does not name, and of its morph targets, which differ from each other."""
    own = own_extras(doc)
    base = (own.text("base") if own is not None else "") or "base"
    while base in targets:
        base += " (0)"
    return (base, *targets)


def weights_of(doc: GltfDocument, clip: str | int | None, fps: float | None) -> WeightClip | None:
    """The weights that a clip gives the shapes of `read_shapes`: that of a name or number, or the first that moves any.

    None if no clip was asked for, and none moves weights.
    """
    nodes = {one.node: target_names(doc.table("meshes")[one.mesh]) for one in placed_meshes(doc, read_tree(doc))}
    nodes = {node: names for node, names in nodes.items() if names and node >= 0}
    chosen = _first(doc, nodes) if clip is None else find_clip(doc, clip)
    if chosen is None:
        return None
    if not any(track.path == "weights" and track.node in nodes for track in chosen.tracks):
        moving = [name for k, name in enumerate(clip_names(doc)) if _moves(read_clip(doc, k), nodes)]
        advice = f"those that do are {', '.join(moving)}" if moving else "nor does any other"
        raise doc.source.error(f'the clip "{chosen.name}" moves no weights of morph targets; {advice}', argument="clip")
    rate = fps or chosen.fps
    times = chosen.frame_times(rate)
    doc.check_size(len(times) * sum(map(len, nodes.values())), "weights")
    columns = _columns(doc, nodes, chosen, times)
    values = np.stack(list(columns.values()), axis=1)
    names = shape_names(doc, list(columns))
    return WeightClip(names, np.hstack([1 - values.sum(axis=1, keepdims=True), values]), rate, chosen.name)


def _first(doc: GltfDocument, nodes: dict[int, tuple[str, ...]]) -> Clip | None:
    """The first clip that moves weights; a note names the others."""
    found = [clip for k in range(len(clip_names(doc))) if _moves(clip := read_clip(doc, k), nodes)]
    if len(found) > 1:
        names = ", ".join(clip.name for clip in found[:12]) + (", ..." if len(found) > 12 else "")
        took = f'{len(found)} clips move weights: {names}; took "{found[0].name}"'
        warnings.warn(f"{doc.source.label}: {took}", PliantWarning, stacklevel=2)
    return found[0] if found else None


def _moves(clip: Clip, nodes: dict[int, tuple[str, ...]]) -> bool:
    tracks = [track for track in clip.tracks if track.path == "weights" and track.node in nodes]
    return any(bool(np.ptp(track.values, axis=0).any()) for track in tracks)


def _columns(doc: GltfDocument, nodes: dict[int, tuple[str, ...]], clip: Clip, times: Floats) -> dict[str, Floats]:
    """(frames,) by target; a target of several meshes has one weight, that of the first of them that the clip moves."""
    moved = {node: values for (node, path), values in clip.at(times).items() if path == "weights" and node in nodes}
    resting = {node: np.tile(_resting(doc, node, len(names)), (len(times), 1)) for node, names in nodes.items()}
    columns: dict[str, Floats] = {}
    apart: list[str] = []
    for node in sorted(nodes, key=lambda node: node not in moved):
        for name, column in zip(nodes[node], (moved.get(node, resting[node])).T, strict=True):
            known = columns.setdefault(name, column)
            if node in moved and not np.array_equal(known, column) and name not in apart:
                apart.append(name)
    if apart:
        what = f'the clip "{clip.name}" moves {", ".join(apart[:6])} of several meshes apart; took those of the first'
        warnings.warn(f"{doc.source.label}: {what}", PliantWarning, stacklevel=2)
    order = dict.fromkeys(name for names in nodes.values() for name in names)
    return {name: columns[name] for name in order}


def _resting(doc: GltfDocument, node: int, count: int) -> Floats:
    """(targets,) the weights of a node that no clip moves."""
    entry = doc.table("nodes")[node]
    for owner in (entry, doc.table("meshes")[entry.needed_index("mesh", len(doc.table("meshes")), "mesh")]):
        given = owner.numbers("weights", count)
        if given is not None:
            return given
    return np.zeros(count)
