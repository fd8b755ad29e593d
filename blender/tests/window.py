"""The installed extension in a window: ``blender --enable-event-simulate --python blender/tests/window.py -- FOLDER``.

Presses the buttons as a hand would and prints what it finds, and how long the window stood still at most. Not run by
`make test-blender`, whose Blender has no window.
"""

import sys
import tempfile
import time
import traceback
from pathlib import Path

import bpy
import numpy as np

import pliant

FOLDER = Path(sys.argv[sys.argv.index("--") + 1])
FRAMES, VERTICES, TICK = 40, 8000, 0.02


def keyed(name="hand", count=VERTICES):
    """A hand that becomes a fist."""
    shapes = pliant.gallery.hand(count)
    thing = put(shapes.base, name)
    thing.shape_key_add(name="open")
    block = thing.shape_key_add(name="fist")
    block.data.foreach_set("co", shapes.named("fist").points.astype(np.float32).reshape(-1))
    for frame, value in ((1, 0.0), (FRAMES, 1.0)):
        block.value = value
        block.keyframe_insert("value", frame=frame)
    return thing


def put(mesh, name):
    data = bpy.data.meshes.new(name)
    data.from_pydata(mesh.points.tolist(), [], [list(map(int, face)) for face in mesh.polygons])
    thing = bpy.data.objects.new(name, data)
    bpy.context.scene.collection.objects.link(thing)
    activate(thing)
    return thing


def activate(thing):
    for other in bpy.context.scene.objects:
        other.select_set(other == thing)
    bpy.context.view_layer.objects.active = thing


def fleshed():
    """A bar on two bones."""
    bar = pliant.gallery.bar(2000).base
    thing = put(bar, "bar")
    low, high = bar.points.min(axis=0), bar.points.max(axis=0)
    axis = int(np.argmax(high - low))
    ends = np.tile((low + high) / 2, (3, 1))
    ends[:, axis] = low[axis] + (high - low)[axis] * np.array([0.05, 0.5, 0.95])
    rig = bpy.data.objects.new("rig", bpy.data.armatures.new("rig"))
    bpy.context.scene.collection.objects.link(rig)
    activate(rig)
    bpy.ops.object.mode_set(mode="EDIT")
    root, tip = (rig.data.edit_bones.new(name) for name in ("root", "tip"))
    root.head, root.tail, tip.head, tip.tail, tip.parent = *ends[:2], *ends[1:], root
    bpy.ops.object.mode_set(mode="OBJECT")
    bone = rig.pose.bones["tip"]
    bone.rotation_mode = "XYZ"
    for frame, angle in ((1, 0.0), (FRAMES, 0.8)):
        bone.rotation_euler = (angle, 0.0, 0.0)
        bone.keyframe_insert("rotation_euler", frame=frame)
    thing.modifiers.new("Armature", "ARMATURE").object = rig
    for name, chosen in (("root", bar.points[:, axis] <= ends[1, axis]), ("tip", bar.points[:, axis] > ends[1, axis])):
        thing.vertex_groups.new(name=name).add([int(k) for k in np.flatnonzero(chosen)], 1.0, "REPLACE")
    activate(thing)
    return thing


def busy():
    return any(each.bl_idname.startswith("PLIANT_OT") for each in bpy.context.window.modal_operators)


def press(operator):
    start = time.monotonic()
    operator("INVOKE_DEFAULT")
    heart.longest = max(heart.longest, time.monotonic() - start)


def pausing(seconds):
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        yield


def baking(operator):
    """Press a button and wait until it is done."""
    press(operator)
    yield
    while busy():
        yield


def folders():
    return set(Path(tempfile.gettempdir()).glob("pliant-*"))


def trial():
    before = folders()
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, FRAMES
    for old in list(bpy.data.objects):
        bpy.data.objects.remove(old)
    bpy.ops.wm.save_as_mainfile(filepath=str(FOLDER / "window.blend"))
    area = next(area for area in bpy.context.screen.areas if area.type == "VIEW_3D")
    area.spaces.active.show_region_ui = True
    keyed()
    yield
    regions = {region.type: region for region in area.regions}
    regions["UI"].active_panel_category = "pliant"
    with bpy.context.temp_override(area=area, region=regions["WINDOW"]):
        bpy.ops.view3d.view_selected()
    bpy.ops.ed.undo_push(message="hand")
    yield "a hand stands"
    for frame in range(1, FRAMES + 1):
        bpy.context.scene.frame_set(frame)
        yield
    yield "frames are drawn, without pliant"
    yield from baking(bpy.ops.pliant.bake_keys)
    made = bpy.data.objects["hand (pliant)"]
    assert made.modifiers[0].type == "MESH_CACHE"
    assert bpy.data.objects["hand"].hide_get()
    yield "shape keys are baked"
    bpy.ops.ed.undo()
    assert "hand (pliant)" not in bpy.data.objects
    assert not bpy.data.objects["hand"].hide_get()
    yield "and undone"
    caches = set(FOLDER.rglob("*.pc2"))
    press(bpy.ops.pliant.bake_keys)
    yield from pausing(3)
    assert busy()
    window = bpy.context.window
    window.event_simulate(type="ESC", value="PRESS")
    window.event_simulate(type="ESC", value="RELEASE")
    while busy():
        yield
    assert "hand (pliant)" not in bpy.data.objects
    yield from pausing(6)
    assert set(FOLDER.rglob("*.pc2")) == caches
    yield "Esc cancels"
    activate(bpy.data.objects["hand"])
    press(bpy.ops.pliant.live_keys)
    follower = next(
        module for name, module in sys.modules.items() if name.startswith("bl_ext.") and name.endswith("pliant.live")
    ).followers["hand"]
    block = bpy.data.objects["hand"].data.shape_keys.key_blocks["fist"]
    while not follower.count:
        block.value = 0.1
        yield
    start, count = time.monotonic(), follower.count
    while (passed := time.monotonic() - start) < 4:
        block.value = 0.5 - 0.4 * np.cos(passed)
        yield
    yield f"keys are followed, {(follower.count - count) / passed:.0f} updates a second at {VERTICES} vertices"
    activate(bpy.data.objects["hand"])
    press(bpy.ops.pliant.live_keys)
    fleshed()
    bpy.ops.ed.undo_push(message="bar")
    yield from baking(bpy.ops.pliant.bake_flesh)
    assert "bar (pliant)" in bpy.data.objects
    yield "flesh is baked"
    moving = bpy.data.objects["bar (pliant)"]
    other = put(pliant.gallery.bar(2000).base, "other")
    other.pliant.source = moving
    yield from baking(bpy.ops.pliant.build_cage)
    assert other.pliant.cage is not None
    yield from baking(bpy.ops.pliant.bake_transfer)
    assert "other (pliant)" in bpy.data.objects
    yield "a motion is transferred in a cage"
    hand = bpy.data.objects["hand"]
    hand.hide_set(False)
    activate(hand)
    press(bpy.ops.pliant.bake_keys)
    yield from pausing(3)
    bpy.ops.wm.read_homefile(use_empty=True)
    yield from pausing(6)
    assert not busy()
    assert folders() <= before
    yield "another file cancels"


class Heart:
    """Runs the trial a step a tick, and keeps the longest time between two ticks."""

    def __init__(self):
        self.steps, self.last, self.longest = trial(), time.monotonic(), 0.0

    def beat(self):
        self.longest = max(self.longest, time.monotonic() - self.last)
        try:
            with bpy.context.temp_override(window=bpy.context.window_manager.windows[0]):
                said = next(self.steps)
        except StopIteration:
            print("WINDOW all passed", bpy.app.version_string, flush=True)
            bpy.ops.wm.quit_blender()
            return None
        except Exception:
            traceback.print_exc()
            print("WINDOW failed", flush=True)
            bpy.ops.wm.quit_blender()
            return None
        if said:
            print(f"WINDOW {said} (stood still {self.longest:.2f} s at most)", flush=True)
            self.longest = 0.0
        self.last = time.monotonic()
        return TICK


FOLDER.mkdir(parents=True, exist_ok=True)
heart = Heart()
bpy.app.timers.register(heart.beat, first_interval=2.0, persistent=True)
