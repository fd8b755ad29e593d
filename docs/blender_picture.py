"""The picture of docs/blender.md, drawn by Blender: ``python docs/blender_picture.py`` where `bpy` is installed."""

import sys
from math import radians
from pathlib import Path

import bpy
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "blender"))

import pliant  # noqa: E402
import pliant_extension  # noqa: E402


def keyed_hand() -> bpy.types.Object:
    """A hand that closes by a shape key, from frame 1 to 3."""
    shapes = pliant.gallery.hand(8000)
    data = bpy.data.meshes.new("hand")
    data.from_pydata(shapes.base.points.tolist(), [], [list(map(int, face)) for face in shapes.base.polygons])
    data.shade_smooth()
    hand = bpy.data.objects.new("hand", data)
    bpy.context.scene.collection.objects.link(hand)
    hand.shape_key_add(name="open")
    fist = hand.shape_key_add(name="fist")
    fist.data.foreach_set("co", shapes.named("fist").points.astype(np.float32).reshape(-1))
    for frame, value in ((1, 0.0), (3, 1.0)):
        fist.value = value
        fist.keyframe_insert("value", frame=frame)
    return hand


def material(name: str, color: tuple[float, float, float]) -> bpy.types.Material:
    """A plain one."""
    made = bpy.data.materials.new(name)
    made.use_nodes = True
    made.node_tree.nodes["Principled BSDF"].inputs["Base Color"].default_value = (*color, 1.0)
    made.node_tree.nodes["Principled BSDF"].inputs["Roughness"].default_value = 0.5
    return made


def main() -> None:
    """Draw it."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    pliant_extension.register()
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, 3
    hand = keyed_hand()
    bpy.context.view_layer.objects.active = hand
    bpy.ops.pliant.bake_keys()
    result = bpy.data.objects["hand (pliant)"]
    hand.hide_set(False)
    hand.hide_render = False
    size = float(np.ptp(np.array([vertex.co for vertex in hand.data.vertices]), axis=0).max())
    hand.location.x -= 0.4 * size
    result.location.x += 0.4 * size
    hand.data.materials.append(material("linear", (0.8, 0.25, 0.2)))
    result.data.materials.append(material("pliant", (0.85, 0.6, 0.45)))
    scene.frame_set(2)
    camera = bpy.data.objects.new("camera", bpy.data.cameras.new("camera"))
    camera.data.type, camera.data.ortho_scale = "ORTHO", 1.75 * size
    camera.location, camera.rotation_euler = (0.0, 0.33 * size, 4 * size), (radians(0), 0.0, 0.0)
    light = bpy.data.objects.new("sun", bpy.data.lights.new("sun", "SUN"))
    light.data.energy, light.data.angle = 2.0, 0.3
    light.rotation_euler = (radians(35), radians(30), 0.0)
    for thing in (camera, light):
        scene.collection.objects.link(thing)
    scene.camera = camera
    scene.world = bpy.data.worlds.new("world")
    scene.world.use_nodes = True
    scene.world.node_tree.nodes["Background"].inputs["Color"].default_value = (0.9, 0.93, 1.0, 1.0)
    scene.world.node_tree.nodes["Background"].inputs["Strength"].default_value = 0.45
    scene.render.engine, scene.cycles.samples, scene.cycles.use_denoising = "CYCLES", 64, False
    scene.view_settings.view_transform = "Standard"
    scene.render.resolution_x, scene.render.resolution_y = 900, 460
    scene.render.image_settings.file_format, scene.render.image_settings.quality = "JPEG", 88
    scene.render.filepath = str(ROOT / "docs" / "images" / "blender_hand.jpg")
    bpy.ops.render.render(write_still=True)


if __name__ == "__main__":
    main()
