"""FBX files that Blender writes, read by pliant and by Blender: the same points in every frame."""

from __future__ import annotations

import numpy as np
import pytest

bpy = pytest.importorskip("bpy", reason="bpy is not installed: make test-blender")
pytest.importorskip("ufbx", reason="FBX is an extra")

import pliant  # noqa: E402

FRAMES = 12


def rigged_scene():
    """A monkey on two bones with animated shape keys, below a scaled and turned armature, and a cube on a bone."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end, scene.render.fps = 1, FRAMES, 30
    bpy.ops.object.armature_add(enter_editmode=True, location=(1, 2, 3), rotation=(0.2, -0.3, 0.4))
    arm = bpy.context.object
    arm.scale = (1.5, 1.5, 1.5)
    first = arm.data.edit_bones[0]
    first.head, first.tail = (0, 0, -1), (0, 0, 0)
    second = arm.data.edit_bones.new("upper")
    second.head, second.tail, second.parent = (0, 0, 0), (0, 0.2, 1), first
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.ops.mesh.primitive_monkey_add()
    head = bpy.context.object
    head.name, head.parent = "Head", arm
    z = np.array([vertex.co.z for vertex in head.data.vertices])
    for name, weights in (("Bone", np.clip(0.5 - z, 0, 1)), ("upper", np.clip(0.5 + z, 0, 1))):
        group = head.vertex_groups.new(name=name)
        for k, weight in enumerate(weights):
            group.add([k], float(weight), "REPLACE")
    head.modifiers.new("Armature", "ARMATURE").object = arm
    head.shape_key_add(name="Basis")
    wide = head.shape_key_add(name="wide")
    for point in wide.data:
        point.co.x *= 1.5
    bone = arm.pose.bones["upper"]
    bone.rotation_mode = "XYZ"
    for frame, value in ((1, 0.0), (FRAMES, 1.0)):
        bone.rotation_euler = (value, 0.3 * value, -0.5 * value)
        bone.keyframe_insert("rotation_euler", frame=frame)
        arm.location.x = 1 + value
        arm.keyframe_insert("location", frame=frame)
        wide.value = value
        wide.keyframe_insert("value", frame=frame)
    bpy.ops.mesh.primitive_cube_add(size=0.3)
    cube = bpy.context.object
    cube.name, cube.parent, cube.parent_type, cube.parent_bone = "Hat", arm, "BONE", "upper"


def moved():
    """(frames, n, 3) of every mesh in the world, y up as glTF and most FBX files have it."""
    found = {}
    for frame in range(1, FRAMES + 1):
        bpy.context.scene.frame_set(frame)
        graph = bpy.context.evaluated_depsgraph_get()
        for thing in bpy.data.objects:
            if thing.type == "MESH":
                shown = thing.evaluated_get(graph)
                points = np.array([shown.matrix_world @ vertex.co for vertex in shown.to_mesh().vertices])
                found.setdefault(thing.name, []).append(points @ np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]]))
    return {name: np.stack(frames) for name, frames in found.items()}


@pytest.mark.parametrize("options", [{}, {"axis_up": "Z", "axis_forward": "Y"}], ids=["y up", "z up"])
def test_what_blender_writes(tmp_path, options):
    rigged_scene()
    meant = moved()
    path = tmp_path / "rig.fbx"
    bpy.ops.export_scene.fbx(filepath=str(path), use_mesh_modifiers=False, **options)
    clip = pliant.read_animation(path)
    assert (clip.fps, len(clip)) == (30, FRAMES)
    labels, world = clip.shape.labels["object"], clip.shape.world
    points = clip.points * world.metres
    if world.up == "z":
        points = points @ np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]])
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.context.scene.render.fps = 30
    bpy.ops.import_scene.fbx(filepath=str(path), anim_offset=1.0)
    imported = moved()
    of_corner = np.repeat(labels.index, clip.shape.polygons.sizes)
    for k, name in enumerate(labels.names):
        mine = np.unique(clip.shape.polygons.corners[of_corner == k])
        size = np.ptp(meant[name][0], axis=0).max()
        np.testing.assert_allclose(points[:, mine], meant[name], atol=1e-5 * size)
        np.testing.assert_allclose(points[:, mine], imported[name], atol=1e-5 * size)
    assert "upper" in pliant.read_motion(path).skeleton.names


def test_changed_anywhere(tmp_path):
    """Every damaged file is read, or refused in one line."""
    rigged_scene()
    path = tmp_path / "rig.fbx"
    bpy.ops.export_scene.fbx(filepath=str(path), use_mesh_modifiers=False)
    whole = path.read_bytes()
    random = np.random.default_rng(5)
    for k in range(12):
        data = bytearray(whole if k % 3 else whole[: random.integers(len(whole))])
        for _ in range(20):
            data[random.integers(len(data))] = random.integers(256)
        path.write_bytes(data)
        try:
            pliant.read(path)
        except pliant.FileError as error:
            assert "\n" not in str(error)  # noqa: PT017
