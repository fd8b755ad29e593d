"""What a job gives: a copy of the object whose points a Mesh Cache modifier moves. The original is hidden and kept."""

from __future__ import annotations

from pathlib import Path

import bpy
import numpy as np

import pliant

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


def show_cache(context: bpy.types.Context, thing: bpy.types.Object, cache: Path) -> bpy.types.Object:
    """The object that plays a cache of points in the world."""
    clip = pliant.read_animation(cache)
    inverse = thing.matrix_world.inverted()
    local = np.stack([scenes.placed(points, inverse) for points in clip.points])
    pliant.write(cache, pliant.Animation(clip.shape, local, clip.fps))
    result = still_copy(context, thing)
    modifier = result.modifiers.new("pliant", "MESH_CACHE")
    modifier.cache_format = "PC2"
    modifier.filepath = str(cache)
    modifier.frame_start = context.scene.frame_start
    while result.modifiers[0] != modifier:
        result.modifiers.move(len(result.modifiers) - 1, 0)
    hide(thing)
    for other in context.selected_objects:
        other.select_set(False)
    result.select_set(True)
    context.view_layer.objects.active = result
    return result


def hide(thing: bpy.types.Object) -> None:
    """Hide the original in the viewport and in renderings."""
    thing.hide_set(True)
    thing.hide_render = True
