"""What a job gives: a copy of the object whose points a Mesh Cache modifier moves. The original is hidden and kept."""

from __future__ import annotations

from pathlib import Path

import bpy
import numpy as np

import pliant
from pliant.geometry.skin_decomposition import slider_shapes

from . import scenes

DEFORMING = {"ARMATURE", "MESH_CACHE", "LATTICE", "CAST", "CURVE", "DISPLACE", "HOOK", "LAPLACIANDEFORM", "MESH_DEFORM",
             "SHRINKWRAP", "SIMPLE_DEFORM", "SMOOTH", "CORRECTIVE_SMOOTH", "SURFACE_DEFORM", "WARP", "WAVE", "CLOTH",
             "SOFT_BODY", "COLLISION"}  # fmt: skip
"""Modifiers that are not copied, since the cache holds what they do."""


def still_copy(context: bpy.types.Context, thing: bpy.types.Object) -> bpy.types.Object:
    """A copy without keys, animation, parent or deformation, where the original is at rest."""
    result = thing.copy()
    result.data = thing.data.copy()
    result.name = result.data.name = f"{thing.name} (pliant)"
    result.animation_data_clear()
    if result.data.shape_keys is not None:
        rest = scenes.coordinates(thing.data.shape_keys.key_blocks[0].data)
        result.shape_key_clear()
        put_points(result.data, rest)
    for constraint in list(result.constraints):
        result.constraints.remove(constraint)
    for modifier in list(result.modifiers):
        if modifier.type in DEFORMING:
            result.modifiers.remove(modifier)
    result.parent = None
    result.matrix_world = thing.matrix_world.copy()
    for collection in thing.users_collection or [context.scene.collection]:
        collection.objects.link(result)
    return result


def put_points(mesh: bpy.types.Mesh, points: np.ndarray) -> None:
    """Give a mesh other points (n, 3)."""
    mesh.vertices.foreach_set("co", np.ascontiguousarray(points, dtype=np.float32).reshape(-1))
    mesh.update()


def place_cache(cache: Path, inverse: np.ndarray) -> None:
    """Bring a cache of points in the world to an object's own space."""
    clip = pliant.read_animation(cache)
    local = np.stack([scenes.placed(points, inverse) for points in clip.points])
    pliant.write(cache, pliant.Animation(clip.shape, local, clip.fps))


def show_cache(context: bpy.types.Context, thing: bpy.types.Object, cache: Path) -> bpy.types.Object:
    """The object that plays a cache of points in its own space."""
    result = still_copy(context, thing)
    modifier = result.modifiers.new("pliant", "MESH_CACHE")
    modifier.cache_format = "PC2"
    modifier.filepath = str(cache)
    modifier.frame_start = context.scene.frame_start
    while result.modifiers[0] != modifier:
        result.modifiers.move(len(result.modifiers) - 1, 0)
    choose(context, thing, result)
    return result


def corrective_keys(cache: Path, folder: Path, inverse: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Offsets (keys, n, 3) and curves (frames, keys) that bring shape keys, written to a folder, to a cache of points.

    And the root mean square distance to the cache that they leave, over the diagonal.
    """
    shapes = pliant.read_shapes(folder / "shapes.npz")
    weights = np.loadtxt(folder / "weights.csv", delimiter=",", skiprows=1, ndmin=2)
    mixed = shapes.points[0] + np.einsum("fk,kni->fni", weights, shapes.points[1:] - shapes.points[0])
    world = pliant.read_animation(cache).points
    local = [np.stack([scenes.placed(points, inverse) for points in clip]) for clip in (mixed, world)]
    scale = pliant.shapes.bounding_diagonal(scenes.placed(shapes.points[0], inverse)) or 1.0
    offsets, curves = slider_shapes((local[1] - local[0]) / scale, count)
    left = local[0] + scale * np.einsum("fm,mni->fni", curves, offsets) - local[1]
    return scale * offsets, curves, float(np.sqrt((left**2).sum(axis=-1).mean()) / scale)


def show_correctives(
    context: bpy.types.Context, thing: bpy.types.Object, offsets: np.ndarray, curves: np.ndarray
) -> None:
    """A copy that keeps its shape keys and their animation, with corrective keys beside them."""
    result = thing.copy()
    result.data = thing.data.copy()
    result.name = result.data.name = f"{thing.name} (pliant)"
    for collection in thing.users_collection or [context.scene.collection]:
        collection.objects.link(result)
    _own_action(result.data.shape_keys)
    first = scenes.coordinates(result.data.shape_keys.key_blocks[0].data)
    for k, offset in enumerate(offsets):
        block = result.shape_key_add(name=f"pliant {k + 1}", from_mix=False)
        block.data.foreach_set("co", (first + offset).astype(np.float32).reshape(-1))
        for frame, value in enumerate(curves[:, k]):
            block.value = float(value)
            block.keyframe_insert("value", frame=context.scene.frame_start + frame)
    choose(context, thing, result)


def _own_action(keys: bpy.types.Key) -> None:
    """Give copied keys an action of their own, so that new curves do not show in the original's."""
    data = keys.animation_data
    if data is not None and data.action is not None:
        slot = getattr(data, "action_slot", None)
        handle = None if slot is None else slot.identifier
        data.action = data.action.copy()
        if handle is not None:
            data.action_slot = data.action.slots[handle]


def choose(context: bpy.types.Context, thing: bpy.types.Object, result: bpy.types.Object) -> None:
    """Hide the original, and make the result the active object."""
    hide(thing)
    for other in context.selected_objects:
        other.select_set(False)
    result.select_set(True)
    context.view_layer.objects.active = result


def hide(thing: bpy.types.Object) -> None:
    """Hide the original in the viewport and in renderings."""
    thing.hide_set(True)
    thing.hide_render = True


def forget(thing: bpy.types.Object, result: bpy.types.Object) -> None:
    """Remove a result, and show the original again."""
    mesh = result.data
    bpy.data.objects.remove(result)
    bpy.data.meshes.remove(mesh)
    thing.hide_set(False)
    thing.hide_render = False
