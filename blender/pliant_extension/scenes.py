"""Objects of Blender as a scene of pliant's: files in a folder, and ``scene.toml``.

Everything is written in world coordinates, z up, in metres as Blender has them. Frames are those of the scene's range.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, TypeVar

import bpy
import numpy as np
from mathutils import Matrix

import pliant
from pliant.core import rotations

WORLD = pliant.World(up="z")
Sampled = TypeVar("Sampled")
Reading = Generator[tuple[int, int], None, Sampled]
"""Reads the scene; after each frame, the number of those done and of all, so that a window may be drawn meanwhile."""


class SceneError(Exception):
    """What is wrong with the objects, in one sentence."""


def is_mesh_chosen(context: bpy.types.Context) -> bool:
    """Whether there is something to work on."""
    return context.object is not None and context.object.type == "MESH" and context.mode == "OBJECT"


# Geometry


def placed(points: np.ndarray, matrix: Matrix) -> np.ndarray:
    """(n, 3) points under a matrix of Blender's."""
    m = np.array(matrix)
    return points @ m[:3, :3].T + m[:3, 3]


def coordinates(vertices: Any) -> np.ndarray:
    """(n, 3) of a collection whose items have ``co``."""
    flat = np.empty(3 * len(vertices), dtype=np.float32)
    vertices.foreach_get("co", flat)
    return flat.reshape(-1, 3).astype(np.float64)


def polygons(mesh: bpy.types.Mesh) -> list[list[int]]:
    return [list(polygon.vertices) for polygon in mesh.polygons]


def mesh_of(thing: bpy.types.Object) -> pliant.Mesh:
    """A mesh object at rest, with its vertex groups."""
    if thing is None or thing.type != "MESH":
        raise SceneError(f"{thing.name if thing else 'nothing'} is no mesh object; select one")
    if not len(thing.data.polygons):
        raise SceneError(f"{thing.name} has no faces; pliant needs a surface")
    return pliant.Mesh(
        placed(coordinates(thing.data.vertices), thing.matrix_world),
        polygons(thing.data),
        vertex_groups=vertex_groups(thing),
        world=WORLD,
    )


def vertex_groups(thing: bpy.types.Object) -> dict[str, np.ndarray]:
    """(n,) weights by name."""
    tables = np.zeros((len(thing.vertex_groups), len(thing.data.vertices)))
    for vertex in thing.data.vertices:
        for entry in vertex.groups:
            tables[entry.group, vertex.index] = entry.weight
    return {group.name: tables[group.index] for group in thing.vertex_groups if tables[group.index].any()}


def sampled(context: bpy.types.Context, sample: Callable[[bpy.types.Depsgraph], Sampled]) -> Reading[list[Sampled]]:
    """What is found in the evaluated scene at every frame of its range, a frame a step."""
    scene = context.scene
    frames = range(scene.frame_start, scene.frame_end + 1)
    found = []
    for k, frame in enumerate(frames):
        scene.frame_set(frame)
        found.append(sample(context.evaluated_depsgraph_get()))
        yield k + 1, len(frames)
    return found


def evaluated_points(thing: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> np.ndarray:
    """(n, 3) of an object with its modifiers, in the world."""
    final = thing.evaluated_get(depsgraph)
    mesh = final.to_mesh()
    try:
        return placed(coordinates(mesh.vertices), final.matrix_world)
    finally:
        final.to_mesh_clear()


def clips_of(context: bpy.types.Context, things: list[bpy.types.Object]) -> Reading[list[pliant.Animation]]:
    """Objects as their modifiers, keys and transforms move them."""
    depsgraph, faces = context.evaluated_depsgraph_get(), []
    for thing in things:
        final = thing.evaluated_get(depsgraph)
        faces.append(polygons(final.to_mesh()))
        final.to_mesh_clear()
    rows = yield from sampled(context, lambda depsgraph: [evaluated_points(thing, depsgraph) for thing in things])
    clips = []
    for thing, own, points in zip(things, faces, zip(*rows, strict=True), strict=True):
        if len({len(each) for each in points}) > 1:
            raise SceneError(
                f"the number of vertices of {thing.name} changes over time; expected the same in every frame"
            )
        clips.append(pliant.Animation(pliant.Mesh(points[0], own, world=WORLD), points, frame_rate(context)))
    return clips


def frame_rate(context: bpy.types.Context) -> float:
    return context.scene.render.fps / context.scene.render.fps_base


# Armatures


def motion_of(context: bpy.types.Context, armature: bpy.types.Object) -> Reading[pliant.Motion]:
    """An armature's skeleton at rest, and its poses at every frame."""
    bones = ordered(armature.data.bones)
    if not bones:
        raise SceneError(f"the armature {armature.name} has no bones")
    names = [bone.name for bone in bones]
    number = {name: k for k, name in enumerate(names)}
    parents = [number[bone.parent.name] if bone.parent else -1 for bone in bones]
    rest = local([armature.matrix_world @ bone.matrix_local for bone in bones], parents)
    scale = float(np.mean(armature.matrix_world.to_scale()))
    ends = {k: np.array([0.0, scale * bone.length, 0.0]) for k, bone in enumerate(bones) if not bone.children}
    skeleton = pliant.Skeleton(tuple(names), np.array(parents), rest[1], rest[0], ends, world=WORLD)
    poses = yield from sampled(context, lambda depsgraph: posed(armature.evaluated_get(depsgraph), names, parents))
    turns, ways = (np.array(each) for each in zip(*poses, strict=True))
    return pliant.Motion(skeleton, turns, ways, frame_rate(context))


def ordered(bones: Any) -> list[Any]:
    """Parents before their children."""
    found = [bone for bone in bones if bone.parent is None]
    for bone in found:
        found.extend(bone.children)
    return found


def posed(armature: bpy.types.Object, names: list[str], parents: list[int]) -> tuple[np.ndarray, np.ndarray]:
    matrices = [armature.matrix_world @ armature.pose.bones[name].matrix for name in names]
    return local(matrices, parents)


def local(matrices: list[Matrix], parents: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Local rotations (j, 4) and translations (j, 3) of joints whose frames in the world are given; without scale."""
    world = [matrix.normalized() for matrix in matrices]
    own = [world[p].inverted() @ m if p >= 0 else m for m, p in zip(world, parents, strict=True)]
    turns = np.array([np.array(m.to_3x3()) for m in own])
    return rotations.quaternion(turns), np.array([np.array(m.translation) for m in own])


# Scenes


def write_blend(context: bpy.types.Context, thing: bpy.types.Object, folder: Path) -> Reading[Path]:
    """An object's shape keys, as they are animated."""
    shapes = key_shapes(thing)
    pliant.write(folder / "shapes.npz", shapes)
    keys = list(thing.data.shape_keys.key_blocks)[1:]
    rows = yield from sampled(context, lambda _: [0.0 if block.mute else block.value for block in keys])
    pliant.write_weights(folder / "weights.csv", pliant.WeightClip(shapes.names[1:], rows))
    options = thing.pliant
    document: dict[str, Any] = {
        "engine": "blend",
        "shapes": {"file": "shapes.npz", "inbetweens": "none", "combinations": "none"},
        "weights": "weights.csv",
        "fps": frame_rate(context),
        **(yield from contact(context, thing, folder)),
    }
    pulls = pulls_of(options.pulls, shapes.base)
    document |= ({"pulls": pulls} if pulls else {}) | ({"self_contact": True} if options.self_contact else {})
    return written(document, folder)


def key_shapes(thing: bpy.types.Object) -> pliant.Shapes:
    """The shape keys of an object; relative keys count from the key they are relative to."""
    base = mesh_of(thing)
    keys = thing.data.shape_keys
    if keys is None or len(keys.key_blocks) < 2:
        raise SceneError(f"{thing.name} has no shape keys beside the basis; add one")
    if not keys.use_relative:
        raise SceneError(f"the shape keys of {thing.name} are absolute; switch on Relative")
    first = coordinates(keys.key_blocks[0].data)
    points = [first] + [
        first + coordinates(block.data) - coordinates(block.relative_key.data) for block in list(keys.key_blocks)[1:]
    ]
    world = [placed(each, thing.matrix_world) for each in points]
    names = tuple(block.name for block in keys.key_blocks)
    return pliant.Shapes(base.with_points(world[0]), np.array(world), names)


def write_flesh(context: bpy.types.Context, thing: bpy.types.Object, folder: Path) -> Reading[Path]:
    """A mesh on its armature."""
    armature = thing.find_armature()
    if armature is None:
        raise SceneError(f"{thing.name} has no armature; parent it to one, or add an Armature modifier")
    options = thing.pliant
    pliant.write(folder / "shape.npz", mesh_of(thing))
    pliant.write(folder / "motion.npz", (yield from motion_of(context, armature)))
    gravity = context.scene.gravity if context.scene.use_gravity else (0.0, 0.0, 0.0)
    document: dict[str, Any] = {
        "engine": "simulate",
        "shape": {"file": "shape.npz"},
        "skeleton": {"file": "motion.npz"},
        "motion": {"file": "motion.npz"},
        "gravity": [float(value) for value in gravity],
        "nodes": options.nodes,
        "damping": options.damping,
        "material": {"young": options.young, "poisson": options.poisson, "density": options.density},
        **(yield from contact(context, thing, folder)),
    }
    regions = [{"name": region.name, "young": region.young} for region in options.regions]
    document |= ({"regions": regions} if regions else {}) | ({"self_contact": True} if options.self_contact else {})
    return written(document, folder)


def write_transfer(context: bpy.types.Context, thing: bpy.types.Object, folder: Path) -> Reading[Path]:
    """A motion of another object on this one."""
    options = thing.pliant
    source = options.source
    if source is None or source == thing or source.type not in ("MESH", "ARMATURE"):
        raise SceneError(f"choose what {thing.name} is to follow: an animated mesh or an armature")
    if source.type == "ARMATURE":
        moving = yield from motion_of(context, source)
    else:
        moving = (yield from clips_of(context, [source]))[0]
    pliant.write(folder / "target.npz", mesh_of(thing))
    pliant.write(folder / "source.npz", moving)
    cage: dict[str, Any] = {"faces": options.cage_faces}
    if options.cage is not None:
        pliant.write(folder / "cage.npz", mesh_of(options.cage))
        cage = {"file": "cage.npz"}
    document = {
        "engine": "transfer",
        "target": {"file": "target.npz"},
        "sources": {"source": {"file": "source.npz"}},
        "cage": cage,
        "controls": "auto",
    }
    return written(document, folder)


def contact(context: bpy.types.Context, thing: bpy.types.Object, folder: Path) -> Reading[dict[str, Any]]:
    """The obstacles of a collection, each as a clip of its mesh."""
    options = thing.pliant
    if options.colliders is None:
        return {}
    others, tables = [each for each in options.colliders.all_objects if each.type == "MESH" and each != thing], []
    for k, clip in enumerate((yield from clips_of(context, others)) if others else ()):
        still = np.array_equal(clip.points, np.broadcast_to(clip.points[0], clip.points.shape))
        pliant.write(folder / f"obstacle{k}.npz", clip[0] if still else clip)
        tables.append({"what": f"obstacle{k}.npz"})
    return {"obstacles": tables, "friction": options.friction} if tables else {}


def pulls_of(collection: bpy.types.Collection | None, base: pliant.Mesh) -> list[dict[str, Any]]:
    """Each object of a collection drags the vertex it was put at, or else the nearest one, to where it is."""
    tables = []
    for thing in collection.all_objects if collection else ():
        goal = np.array(thing.matrix_world.translation)
        start = np.array(thing.get("pliant_from", goal))
        vertex = int(np.argmin(np.linalg.norm(base.points - start, axis=1)))
        tables.append({"vertex": vertex, "to": [float(value) for value in goal]})
    return tables


def written(document: dict[str, Any], folder: Path) -> Path:
    path = folder / "scene.toml"
    pliant.scene.write_scene(path, document)
    return path
