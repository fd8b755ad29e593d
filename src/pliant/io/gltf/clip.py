"""glTF's animations: clips of tracks, each moving one value of one node, sampled at any times; and motions of skins.

With keys t_k, values v_k, and u = (t - t_k) / d, d = t_{k+1} - t_k:

    STEP         v_k
    LINEAR       (1 - u) v_k + u v_{k+1};   rotations: slerp along the shorter arc
    CUBICSPLINE  (2u³-3u²+1) v_k + d (u³-2u²+u) b_k + (3u²-2u³) v_{k+1} + d (u³-u²) a_{k+1}      a in-, b out-tangents

Before the first key and after the last, the value stays.

Skins are skeletons. A joint's parent is the nearest joint above it; nodes between them, and those above the first
joint, are folded in. From the joints' world transforms ``W_j = [s_j R_j | p_j]``:

    rotation_j = R_parentᵀ R_j          translation_j = R_parentᵀ (p_j - p_parent)

so that uniform scales end up in the lengths of the bones, and every joint stands where the file puts it. A mirrored
frame (one of a negative scale) has its x axis reversed. Scales that a clip changes are kept beside (`Motion.scales`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from pliant.core import rotations
from pliant.core.clips import DEFAULT_FPS, MOST_FRAMES
from pliant.core.errors import InputError
from pliant.core.shapes import World
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Floats, Ints
from pliant.io.gltf.checked_json import Entry
from pliant.io.gltf.data import GltfDocument
from pliant.io.gltf.geometry import target_names
from pliant.io.gltf.scene import read_skin
from pliant.io.gltf.tree import ChannelPath, NodeTree, read_tree
from pliant.io.naming import chosen_clip, unique_names
from pliant.io.posing import joint_motion, parent_joints, rest_skeleton

SamplerMode = Literal["STEP", "LINEAR", "CUBICSPLINE"]
PATH_WIDTHS = {"translation": 3, "rotation": 4, "scale": 3}


@dataclass(frozen=True, eq=False)
class AnimationChannel:
    """One value of one node over time."""

    node: int
    path: ChannelPath
    times: Floats
    """(k,) seconds, increasing."""
    values: Floats
    """(k, d); for cubic splines (k, 3, d): in-tangent, value, out-tangent. Rotations are (w, x, y, z)."""
    interpolation: SamplerMode

    def at(self, times: Floats) -> Floats:
        """(frames, d) the values at the given times."""
        keys = self.values[:, 1] if self.interpolation == "CUBICSPLINE" else self.values
        is_rotation = self.path == "rotation"
        if len(self.times) == 1:
            flat = np.repeat(keys, len(times), axis=0)
            return rotations.normalize(flat) if is_rotation else flat
        t = np.clip(times, self.times[0], self.times[-1])
        low = np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, len(self.times) - 2)
        span = self.times[low + 1] - self.times[low]
        u = ((t - self.times[low]) / span)[:, None]
        start, end = keys[low], keys[low + 1]
        if self.interpolation == "STEP":
            result = np.where(u >= 1, end, start)
        elif self.interpolation == "LINEAR" and is_rotation:
            result = rotations.slerp(rotations.normalize(start), rotations.normalize(end), u[:, 0])
        elif self.interpolation == "LINEAR":
            result = (1 - u) * start + u * end
        else:
            leaving, arriving = self.values[low, 2] * span[:, None], self.values[low + 1, 0] * span[:, None]
            result = (
                (2 * u**3 - 3 * u**2 + 1) * start
                + (u**3 - 2 * u**2 + u) * leaving
                + (3 * u**2 - 2 * u**3) * end
                + (u**3 - u**2) * arriving
            )
        return rotations.normalize(result) if is_rotation else result


@dataclass(frozen=True, eq=False)
class Clip:
    """A named animation."""

    name: str
    tracks: tuple[AnimationChannel, ...]
    fps: float
    """Frames a second that the file seems to be made at."""

    @property
    def start(self) -> float:
        """Time of the first key in seconds."""
        return min((float(track.times[0]) for track in self.tracks), default=0.0)

    @property
    def end(self) -> float:
        """Time of the last key in seconds."""
        return max((float(track.times[-1]) for track in self.tracks), default=0.0)

    def frame_times(self, fps: float) -> Floats:
        """(frames,) every 1/fps until the end is reached, moved onto keys nearer than a thousandth of a frame."""
        length = (self.end - self.start) * fps
        if length > MOST_FRAMES:
            raise InputError(
                f'clip "{self.name}" has {length:.3g} frames; expected up to {MOST_FRAMES}: give a lower fps'
            )
        frames = math.ceil(length - 1e-3) + 1
        times = self.start + np.arange(frames) / fps
        keys = np.unique(np.concatenate([track.times for track in self.tracks]))
        after = np.clip(np.searchsorted(keys, times), 1, max(len(keys) - 1, 1))
        nearest = np.stack([keys[after - 1], keys[np.minimum(after, len(keys) - 1)]])
        best = np.take_along_axis(nearest, np.abs(nearest - times).argmin(axis=0)[None], axis=0)[0]
        return np.where(np.abs(best - times) * fps < 1e-3, best, times)

    def at(self, times: Floats) -> dict[tuple[int, ChannelPath], Floats]:
        """What moves, {(node, path): (frames, d)}."""
        return {(track.node, track.path): track.at(times) for track in self.tracks}


def clip_names(doc: GltfDocument) -> tuple[str, ...]:
    """The clips of a file, "clip 0" and so on where they have no name."""
    entries = doc.table("animations")
    return tuple(unique_names([entry.text("name") or f"clip {k}" for k, entry in enumerate(entries)]))


def find_clip(doc: GltfDocument, clip: str | int | None) -> Clip:
    """The clip of that name or number; the first if None."""
    names = clip_names(doc)
    if not names:
        raise doc.source.error("holds no animation; expected one or more clips")
    number = chosen_clip(doc.source, names, clip)
    found = read_clip(doc, number)
    if not found.tracks:
        location = f"animation {number}"
        raise doc.source.error(
            "moves no node; expected channels of translation, rotation, scale, weights", location=location
        )
    return found


def read_clip(doc: GltfDocument, k: int) -> Clip:
    """Clip number k; channels that move anything but nodes are left out."""
    entry = doc.table("animations")[k]
    samplers = entry.entries("samplers", "sampler")
    tracks = {}
    for channel in entry.entries("channels", "channel"):
        target = channel.entry("target")
        node = doc.index_of(target, "node", "nodes")
        path = target.text("path")
        if node is None or path not in ("translation", "rotation", "scale", "weights"):
            continue
        sampler = samplers[channel.needed_index("sampler", len(samplers), "sampler")]
        track = _read_track(doc, sampler, node, cast(ChannelPath, path))
        tracks[node, path] = track
    chosen = tuple(tracks.values())
    return Clip(clip_names(doc)[k], chosen, _own_fps(doc, entry) or _guess_fps(chosen))


def _read_track(doc: GltfDocument, sampler: Entry, node: int, path: ChannelPath) -> AnimationChannel:
    accessors = len(doc.table("accessors"))
    input_, output = (sampler.needed_index(key, accessors, "accessor") for key in ("input", "output"))
    times = doc.floats(input_, (1,), "time")[:, 0]
    if not (np.diff(times) > 0).all():
        late = int(np.argmin(np.diff(times))) + 1
        raise doc.table("accessors")[input_].error(f"time {late} does not come after the one before; expected order")
    mode = sampler.text("interpolation", "LINEAR")
    if mode not in ("STEP", "LINEAR", "CUBICSPLINE"):
        raise sampler.error(f'"interpolation" is "{mode}"; expected LINEAR, STEP or CUBICSPLINE')
    width = PATH_WIDTHS[path] if path in PATH_WIDTHS else _target_count(doc, node)
    values = doc.floats(output, (1,) if path == "weights" else (width,), f"{path} key")
    rows = len(times) * (3 if mode == "CUBICSPLINE" else 1)
    if values.size != rows * width:
        entry = doc.table("accessors")[output]
        raise entry.error(f"has {values.size} numbers; {len(times)} {mode} keys of {path} need {rows * width}")
    values = values.reshape(rows, width)
    if path == "rotation":
        values = np.roll(values, 1, axis=1)
    if mode == "CUBICSPLINE":
        values = values.reshape(len(times), 3, width)
    return AnimationChannel(node, path, times, values, cast(SamplerMode, mode))


def _target_count(doc: GltfDocument, node: int) -> int:
    entry = doc.table("nodes")[node]
    mesh = doc.index_of(entry, "mesh", "meshes")
    count = 0 if mesh is None else len(target_names(doc.table("meshes")[mesh]))
    if not count:
        raise entry.error("has animated weights but no morph targets")
    return count


def _own_fps(doc: GltfDocument, entry: Entry) -> float | None:
    """The frame rate that pliant's own files state."""
    if not doc.generator.startswith("pliant ") or not isinstance(entry.value.get("extras"), dict):
        return None
    value = entry.entry("extras").value.get("pliant_fps")
    return float(value) if isinstance(value, (int, float)) and 0 < value < 1e9 else None


def _guess_fps(tracks: tuple[AnimationChannel, ...]) -> float:
    """A whole number from 10 to 120 if the keys are near uniform, else 30."""
    times = max((track.times for track in tracks), key=len, default=np.zeros(0))
    steps = np.diff(times)
    if len(steps) < 2:
        return DEFAULT_FPS
    step = float(np.median(steps))
    rate = round(min(1 / step, 1e6))
    uniform = np.abs(steps / step - np.round(steps / step)).max() < 0.1
    return float(rate) if uniform and 10 <= rate <= 120 else DEFAULT_FPS


def skeleton_of(doc: GltfDocument) -> Skeleton:
    """The joints of the file's first skin, as its nodes stand at rest."""
    joints = _read_joints(doc)
    world = joints.tree.world()[:, joints.nodes]
    return rest_skeleton(joints.names, joints.parents, world[0], World())


def motion_of(doc: GltfDocument, clip: Clip, fps: float) -> Motion:
    """The first skin's joints in a clip."""
    joints = _read_joints(doc)
    times = clip.frame_times(fps)
    doc.check_size(len(times) * len(joints.tree) * 16, "frames")
    rest = joints.tree.world()[0, joints.nodes]
    world = joints.tree.world(len(times), clip.at(times))[:, joints.nodes]
    return joint_motion(rest_skeleton(joints.names, joints.parents, rest, World()), rest, world, fps, clip.name)


@dataclass(frozen=True, eq=False)
class _Joints:
    """The joints of a skin, parents first."""

    tree: NodeTree
    names: tuple[str, ...]
    nodes: Ints
    """(j,)"""
    parents: Ints
    """(j,) -1 for a root."""


def _read_joints(doc: GltfDocument) -> _Joints:
    """The joints of the first skin."""
    if not doc.table("skins"):
        raise doc.source.error("holds no skin; expected a skeleton")
    tree = read_tree(doc)
    skin = read_skin(doc, tree, 0)
    if len(set(skin.joints.tolist())) < len(skin.joints):
        raise doc.source.error("lists a joint twice; expected each node once", location="skin 0")
    rank = np.empty(len(tree), dtype=np.int64)
    rank[tree.order] = np.arange(len(tree))
    order = np.argsort(rank[skin.joints])
    nodes = skin.joints[order]
    parents = parent_joints(nodes.tolist(), tree.parents, tree.order)
    return _Joints(tree, tuple(skin.names[j] for j in order), nodes, parents)
