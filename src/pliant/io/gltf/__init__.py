"""glTF 2.0 (.glb and .gltf): reading gives shapes in world space, writing gives files that any viewer plays.

What a file holds becomes one `Mesh` (or `PointCloud`), with morph targets as `Shapes` and clips as an `Animation`;
a skin's joints are a `Skeleton`. See data (containers), tree (nodes), geometry (meshes), scene
(putting them together and posing them), clip (animation), weights (of morph targets), material, extras (what pliant
adds to its own files so that polygons and vertex order come back), layout and write.

glTF is y up and in metres. A shape whose `world` says otherwise is written below a node that rotates and scales it, so
that viewers show it upright and at its size; read back, it is y up and in metres.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from pliant.core.clips import Animation, Shapes, WeightClip
from pliant.core.errors import FileError, InputError
from pliant.core.shapes import Mesh, PointCloud
from pliant.core.skeleton import Motion, Skeleton
from pliant.core.topology import Floats
from pliant.core.values import stack_frames
from pliant.io.gltf.clip import clip_names, find_clip, motion_of, read_clip, skeleton_of
from pliant.io.gltf.data import GltfDocument
from pliant.io.gltf.extras import Restored, read_extras
from pliant.io.gltf.geometry import modes, target_names
from pliant.io.gltf.scene import GltfScene, read_scene, rest_mesh, rest_points
from pliant.io.gltf.tree import placed_meshes, read_tree
from pliant.io.gltf.weights import shape_names, weights_of
from pliant.io.gltf.write import (
    write_animation as write_animation,
    write_mesh as write_mesh,
    write_points as write_points,
    write_shapes as write_shapes,
    write_skinned as write_skinned,
)
from pliant.io.naming import unique_names
from pliant.io.source import Source


@contextmanager
def _reading(source: Source) -> Iterator[GltfDocument]:
    """An open file; whatever is wrong with its contents comes out as a `FileError` about it."""
    try:
        with np.errstate(all="ignore"):
            yield GltfDocument(source)
    except FileError:
        raise
    except InputError as error:
        raise source.error(str(error)) from error
    except RecursionError as error:
        raise source.error("is nested too deeply", location="JSON") from error


def siblings(source: Source) -> list[Source]:
    """The buffers and pictures that the file has beside it."""
    found: list[Source] = []
    with _reading(source) as doc:
        for entry in (*doc.table("buffers"), *doc.table("images")):
            with suppress(FileError):  # it leads elsewhere, so that it is not read
                found += filter(None, [doc.file(entry)])
    return found


def _check_fps(source: Source, fps: float | None) -> None:
    if fps is not None and not (np.isfinite(fps) and 0 < fps <= 100_000):
        raise source.error(f"fps is {fps}; expected a positive number of frames a second")


def _faces(scene: GltfScene) -> GltfScene:
    if scene.is_points:
        raise scene.doc.source.error("holds points without faces; expected a mesh")
    return scene


def _restored(doc: GltfDocument, scene: GltfScene, points: Floats | None = None) -> tuple[Mesh, Restored]:
    """The mesh as its author had it, and how vertices of the file map to its own."""
    mesh = rest_mesh(scene, points)
    own = read_extras(doc, scene)
    return own.mesh(mesh), own


def read_mesh(source: Source) -> Mesh:
    """All faces of the scene as one mesh, as the file shows them before anything moves."""
    with _reading(source) as doc:
        return _restored(doc, _faces(read_scene(doc)))[0]


def read_points(source: Source) -> PointCloud:
    """The points of the scene; of a mesh, its vertices."""
    with _reading(source) as doc:
        scene = read_scene(doc)
        if not scene.is_points:
            mesh = _restored(doc, scene)[0]
            return PointCloud(mesh.points, None, mesh.attributes, mesh.world)
        return read_extras(doc, scene).cloud(rest_points(scene))


def read_shapes(source: Source) -> Shapes:
    """The base and its morph targets; without any, a skinned file's rest pose and the last pose of each clip."""
    with _reading(source) as doc:
        scene = _faces(read_scene(doc))
        names = list(dict.fromkeys(name for part in scene.parts for name in part.geometry.target_names))
        if names:
            return _target_shapes(doc, scene, names)
        if any(part.skin is not None for part in scene.parts) and clip_names(doc):
            return _clip_shapes(doc, scene)
        raise source.error("holds no morph targets; expected them, or a skin with clips")


def _target_shapes(doc: GltfDocument, scene: GltfScene, names: list[str]) -> Shapes:
    """One shape a name, on every mesh that has it; the others stay at the base."""
    doc.check_size((len(names) + 1) * scene.count * 3, "morph targets")
    world = np.broadcast_to(scene.tree.world(), (len(names) + 1, len(scene.tree), 4, 4))
    pieces = []
    number = {name: k for k, name in enumerate(names)}
    for part in scene.parts:
        weights = np.zeros((len(names) + 1, len(part.geometry.target_names)))
        for column, name in enumerate(part.geometry.target_names):
            weights[1 + number[name], column] = 1
        pieces.append(part.points(world, weights))
    points = np.concatenate(pieces, axis=1)
    mesh, own = _restored(doc, scene, points[0])
    return Shapes(mesh, own.points(points), shape_names(doc, names))


def _clip_shapes(doc: GltfDocument, scene: GltfScene) -> Shapes:
    names = clip_names(doc)
    mesh, own = _restored(doc, scene)
    points = [mesh.points]
    for k in range(len(names)):
        clip = read_clip(doc, k)
        points.append(own.points(next(scene.posed(1, clip.at(np.array([clip.end]))))))
    return Shapes(mesh, np.stack(points), tuple(unique_names(["rest", *names])))


def read_animation(source: Source, clip: str | int | None = None, fps: float | None = None) -> Animation:
    """A clip's points in world space: nodes, morph weights and skins all evaluated.

    clip: its name or number; the first if not given. fps: that of the keys if they are near uniform, else 30.
    """
    _check_fps(source, fps)
    with _reading(source) as doc:
        chosen = find_clip(doc, clip)
        scene = read_scene(doc)
        rate = fps or chosen.fps
        times = chosen.frame_times(rate)
        doc.check_size(len(times) * scene.count * 3, "frames")
        points = scene.posed(len(times), chosen.at(times))
        if scene.is_points:
            own = read_extras(doc, scene)
            shape: Mesh | PointCloud = own.cloud(rest_points(scene))
        else:
            shape, own = _restored(doc, scene)
        return Animation(shape, stack_frames(map(own.points, points)), rate, chosen.name)


def read_weights(source: Source, clip: str | int | None = None, fps: float | None = None) -> WeightClip | None:
    """How a clip moves the morph targets; without a name or number the first that does, None if none does."""
    _check_fps(source, fps)
    with _reading(source) as doc:
        return weights_of(doc, clip, fps)


def read_skeleton(source: Source) -> Skeleton:
    """The joints of the first skin, at rest."""
    with _reading(source) as doc:
        return skeleton_of(doc)


def read_motion(source: Source, clip: str | int | None = None, fps: float | None = None) -> Motion:
    """How a clip moves the joints of the first skin; clip and fps as in `read_animation`."""
    _check_fps(source, fps)
    with _reading(source) as doc:
        if not doc.table("skins"):
            raise source.error("holds no skin; expected a skeleton that moves")
        chosen = find_clip(doc, clip)
        return motion_of(doc, chosen, fps or chosen.fps)


def kinds(source: Source) -> tuple[str, ...]:
    """What a file holds, the richest first."""
    with _reading(source) as doc:
        shown = {one.mesh for one in placed_meshes(doc, read_tree(doc))}
        meshes = [doc.table("meshes")[k] for k in sorted(shown)]
        drawn = set().union(*(modes(mesh) for mesh in meshes))
        has_faces, has_points = any(4 <= mode <= 6 for mode in drawn), 0 in drawn
        clips, skins = bool(doc.table("animations")), bool(doc.table("skins"))
        targets = any(target_names(mesh) for mesh in meshes)
        found = {
            "animation": clips and (has_faces or has_points),
            "shapes": has_faces and (targets or (skins and clips)),
            "mesh": has_faces,
            "points": has_points and not has_faces,
            "motion": skins and clips,
            "skeleton": skins,
        }
        if not any(found.values()):
            raise source.error("holds no mesh, points or skeleton")
        return tuple(kind for kind, here in found.items() if here)


def describe(source: Source) -> dict[str, object]:
    """What is in a file, for people: generator, meshes, targets, clips, skins, extensions, images."""
    with _reading(source) as doc:
        meshes = doc.table("meshes")
        clips = []
        for k, name in enumerate(clip_names(doc)):
            clip = read_clip(doc, k)
            keys = max((len(track.times) for track in clip.tracks), default=0)
            clips.append({"name": name, "seconds": clip.end - clip.start, "keyframes": keys, "fps": clip.fps})
        return {
            "generator": doc.generator,
            "nodes": len(doc.table("nodes")),
            "meshes": [mesh.text("name") or f"mesh {k}" for k, mesh in enumerate(meshes)],
            "primitives": sum(len(mesh.items("primitives")) for mesh in meshes),
            "morph targets": list(dict.fromkeys(name for mesh in meshes for name in target_names(mesh))),
            "clips": clips,
            "skins": [_describe_skin(doc, k) for k in range(len(doc.table("skins")))],
            "materials": [m.text("name") or f"material {k}" for k, m in enumerate(doc.table("materials"))],
            "images": [_describe_image(doc, k) for k in range(len(doc.table("images")))],
            "extensions": doc.root.texts("extensionsUsed"),
        }


def _describe_skin(doc: GltfDocument, k: int) -> dict[str, Any]:
    entry = doc.table("skins")[k]
    return {"name": entry.text("name") or f"skin {k}", "joints": len(entry.items("joints"))}


def _describe_image(doc: GltfDocument, k: int) -> str:
    entry = doc.table("images")[k]
    uri = entry.text("uri")
    return entry.text("name") or ("" if uri.startswith("data:") else uri) or f"image {k}"
