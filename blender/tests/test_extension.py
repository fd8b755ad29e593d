"""The Blender extension, headless: each button on real objects, equal to the command line, undone, cancelled, reopened.

Run by ``make test-blender``, where `bpy` is installed.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

bpy = pytest.importorskip("bpy", reason="bpy is not installed: make test-blender")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pliant  # noqa: E402
import pliant_extension  # noqa: E402
from pliant.core import rotations  # noqa: E402
from pliant_extension import live, operators, scenes  # noqa: E402
from pliant_extension.jobs import Job  # noqa: E402

FRAMES = 4


@pytest.fixture(scope="module", autouse=True)
def extension():
    pliant_extension.register()
    yield
    pliant_extension.unregister()


@pytest.fixture(autouse=True)
def scene(tmp_path):
    """An empty file on disk, so that caches go beside it."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end, scene.render.fps = 1, FRAMES, 24
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "test.blend"))
    return bpy.context.scene


def put(mesh, name="thing"):
    """A mesh as an object, turned, moved and scaled, and active."""
    data = bpy.data.meshes.new(name)
    data.from_pydata(mesh.points.tolist(), [], [list(map(int, face)) for face in mesh.polygons])
    thing = bpy.data.objects.new(name, data)
    bpy.context.scene.collection.objects.link(thing)
    thing.location, thing.rotation_euler, thing.scale = (1.0, -2.0, 0.5), (0.3, 0.2, -0.4), (2.0, 2.0, 2.0)
    activate(thing)
    return thing


def activate(thing):
    for other in bpy.context.selected_objects:
        other.select_set(False)
    thing.select_set(True)
    bpy.context.view_layer.objects.active = thing
    bpy.context.view_layer.update()


def evaluated(thing, frame):
    bpy.context.scene.frame_set(frame)
    return scenes.evaluated_points(thing, bpy.context.evaluated_depsgraph_get())


def read(steps):
    """What a reading of the scene ends in."""
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            return ended.value


@pytest.fixture
def keyed():
    """A hand whose fist goes from 0 to 1."""
    shapes = pliant.gallery.hand(600)
    thing = put(shapes.base, "hand")
    thing.shape_key_add(name="open")
    for name in ("fist", "pointing"):
        block = thing.shape_key_add(name=name)
        block.value = 0.0
        block.data.foreach_set("co", shapes.named(name).points.astype(np.float32).reshape(-1))
    block = thing.data.shape_keys.key_blocks["fist"]
    for frame, value in ((1, 0.0), (FRAMES, 1.0)):
        block.value = value
        block.keyframe_insert("value", frame=frame)
    for curve in _curves(thing.data.shape_keys):
        for point in curve.keyframe_points:
            point.interpolation = "LINEAR"
    return thing


def _curves(keys):
    action = keys.animation_data.action
    if hasattr(action, "fcurves"):
        return action.fcurves
    return [
        curve for layer in action.layers for strip in layer.strips for bag in strip.channelbags for curve in bag.fcurves
    ]


@pytest.fixture
def fleshed():
    """A bar on two bones, the second of which turns."""
    bar = pliant.gallery.bar(500).base
    thing = put(bar, "bar")
    low, high = bar.points.min(axis=0), bar.points.max(axis=0)
    axis = int(np.argmax(high - low))
    ends = np.tile((low + high) / 2, (3, 1))
    ends[:, axis] = low[axis] + (high - low)[axis] * np.array([0.05, 0.5, 0.95])
    armature = bpy.data.objects.new("rig", bpy.data.armatures.new("rig"))
    bpy.context.scene.collection.objects.link(armature)
    armature.matrix_world = thing.matrix_world
    activate(armature)
    armature.matrix_world = thing.matrix_world
    bpy.ops.object.mode_set(mode="EDIT")
    root = armature.data.edit_bones.new("root")
    root.head, root.tail = ends[0], ends[1]
    tip = armature.data.edit_bones.new("tip")
    tip.head, tip.tail, tip.parent = ends[1], ends[2], root
    bpy.ops.object.mode_set(mode="OBJECT")
    bone = armature.pose.bones["tip"]
    bone.rotation_mode = "XYZ"
    for frame, angle in ((1, 0.0), (FRAMES, 0.4)):
        bone.rotation_euler = (angle, 0.0, 0.0)
        bone.keyframe_insert("rotation_euler", frame=frame)
    thing.modifiers.new("Armature", "ARMATURE").object = armature
    beyond = bar.points[:, axis] > ends[1][axis]
    for name, chosen in (("root", ~beyond), ("tip", beyond), ("half", beyond)):
        group = thing.vertex_groups.new(name=name)
        group.add([int(k) for k in np.flatnonzero(chosen)], 1.0, "REPLACE")
    thing.pliant.nodes = 100
    activate(thing)
    return thing


def baked(thing):
    return bpy.data.objects[f"{thing.name} (pliant)"]


def test_shape_keys_are_baked_as_the_command_line_does(keyed, tmp_path):
    assert bpy.ops.pliant.bake_keys() == {"FINISHED"}
    result = baked(keyed)
    rig = pliant.Blendshapes(scenes.key_shapes(keyed))
    size = rig.shapes.base.diagonal
    clip = rig.animate([[1 - w, w, 0.0] for w in np.linspace(0, 1, FRAMES)])
    for k in range(FRAMES):
        assert np.abs(evaluated(result, k + 1) - clip.points[k]).max() < 1e-6 * size
    assert keyed.hide_render
    assert keyed.hide_get()
    assert not result.hide_render
    assert keyed.data.shape_keys is not None
    assert result.data.shape_keys is None
    assert result.modifiers[0].type == "MESH_CACHE"


def test_flesh_is_baked_as_the_command_line_does(fleshed, tmp_path):
    assert bpy.ops.pliant.add_region() == {"FINISHED"}
    fleshed.pliant.regions[0].young = 1e6
    folder = tmp_path / "again"
    folder.mkdir()
    path = read(scenes.write_flesh(bpy.context, fleshed, folder))
    assert "half" in path.read_text()
    expected = pliant.scene.read_scene(path).run().clip
    assert bpy.ops.pliant.bake_flesh() == {"FINISHED"}
    for k in range(FRAMES):
        assert np.abs(evaluated(baked(fleshed), k + 1) - expected.points[k]).max() < 1e-6 * expected.shape.diagonal
    assert np.abs(expected.points[-1] - expected.points[0]).max() > 0.05 * expected.shape.diagonal


def test_an_armature_is_read_with_its_poses(fleshed):
    armature = fleshed.find_armature()
    motion = read(scenes.motion_of(bpy.context, armature))
    positions, turns = motion.world()
    for frame in range(FRAMES):
        bpy.context.scene.frame_set(frame + 1)
        for k, name in enumerate(motion.skeleton.names):
            matrix = armature.matrix_world @ armature.pose.bones[name].matrix
            np.testing.assert_allclose(positions[frame, k], matrix.translation, atol=1e-5)
            np.testing.assert_allclose(
                rotations.matrix(turns[frame, k]), np.array(matrix.normalized().to_3x3()), atol=1e-5
            )


def test_a_motion_is_transferred_in_an_editable_cage(fleshed):
    source = fleshed
    target = put(pliant.gallery.bar(500).base, "target")
    target.pliant.source, target.pliant.cage_faces = source, 40
    assert bpy.ops.pliant.build_cage() == {"FINISHED"}
    cage = target.pliant.cage
    assert cage is not None
    assert len(cage.data.polygons) <= 40
    activate(target)
    assert bpy.ops.pliant.bake_transfer() == {"FINISHED"}
    last = evaluated(baked(target), FRAMES)
    moved = evaluated(source, FRAMES)
    size = np.linalg.norm(np.ptp(moved, axis=0))
    assert np.linalg.norm(last - moved, axis=1).mean() < 0.1 * size
    assert np.linalg.norm(last - evaluated(baked(target), 1), axis=1).max() > 0.05 * size


def test_colliders_and_pulls_count(keyed):
    ball = pliant.gallery.box(500)
    base = scenes.mesh_of(keyed)
    obstacle = put(ball.with_points(0.02 * ball.points), "ball")
    collection = bpy.data.collections.new("colliders")
    bpy.context.scene.collection.children.link(collection)
    collection.objects.link(obstacle)
    obstacle.location = base.points[np.argmax(base.points[:, 0])]
    activate(keyed)
    keyed.pliant.colliders = collection
    for vertex in keyed.data.vertices:
        vertex.select = vertex.index == 5
    assert bpy.ops.pliant.add_pull() == {"FINISHED"}
    pull = keyed.pliant.pulls.objects[0]
    pull.location.x += 0.05
    bpy.context.view_layer.update()
    assert bpy.ops.pliant.bake_keys() == {"FINISHED"}
    held = evaluated(baked(keyed), 1)[5]
    assert np.linalg.norm(held - np.array(pull.location)) < 0.01 * base.diagonal


def test_a_bake_is_undone(keyed):
    bpy.ops.ed.undo_push(message="before")
    bpy.ops.pliant.bake_keys()
    bpy.ops.ed.undo_push(message="after")
    name = keyed.name
    bpy.ops.ed.undo()
    assert f"{name} (pliant)" not in bpy.data.objects
    assert not bpy.data.objects[name].hide_render


def test_a_bake_is_cancelled(keyed, tmp_path):
    folder = tmp_path / "job"
    folder.mkdir()
    bpy.context.scene.frame_end = 4000
    job = Job(["run", str(read(scenes.write_blend(bpy.context, keyed, folder)))], tmp_path / "out.pc2")
    while job.running and job.done < 2:
        time.sleep(0.02)
    assert job.running
    ended = threading.Event()
    job.stop(ended.set)
    assert ended.wait(30)
    assert not job.running
    assert not job.succeeded
    assert not (tmp_path / "out.pc2").exists()


class Window:
    """The context of a window, which a process without one does not have."""

    def __init__(self):
        self.window, self.texts, self.timers = None, [], 0
        self.window_manager = SimpleNamespace(
            event_timer_add=self._timer, event_timer_remove=self._timer, modal_handler_add=lambda operator: None,
            progress_begin=lambda *ends: None, progress_update=lambda value: None, progress_end=lambda: None,
        )  # fmt: skip
        self.workspace = SimpleNamespace(status_text_set=self.texts.append)

    def _timer(self, *arguments, **options):
        self.timers += 1

    def __getattr__(self, name):
        return getattr(bpy.context, name)


class KeysInWindow(operators.Bake):
    kind, write = "keys", staticmethod(scenes.write_blend)

    def report(self, kinds, text):
        self.reported = kinds, text


def event(kind):
    return SimpleNamespace(type=kind, value="PRESS")


def test_a_window_is_drawn_between_the_frames_that_are_read(keyed, monkeypatch):
    monkeypatch.setattr(operators, "READING", 0.0)  # a frame a tick
    bpy.context.scene.frame_set(2)
    window, bake = Window(), KeysInWindow()
    assert bake.invoke(window, event("NONE")) == {"RUNNING_MODAL"}
    for k in range(FRAMES):
        assert bake._job is None
        assert bake.modal(window, event("Z")) == {"RUNNING_MODAL"}  # nothing that is read can be changed
        assert bake.modal(window, event("MIDDLEMOUSE")) == {"PASS_THROUGH"}
        assert bake.modal(window, event("TIMER")) == {"RUNNING_MODAL"}
        assert window.texts[-1] == f"pliant: reading frame {k + 1} of {FRAMES} (Esc cancels)"
        assert bpy.context.scene.frame_current == 1 + k  # in order: cloth and other simulations go on from there
    ended, deadline = {"PASS_THROUGH"}, time.monotonic() + 120
    while ended <= {"PASS_THROUGH", "RUNNING_MODAL"} and time.monotonic() < deadline:
        ended = bake.modal(window, event("TIMER"))
        time.sleep(0.02)
    assert ended == {"FINISHED"}, bake.reported
    assert bpy.context.scene.frame_current == 2
    assert np.abs(evaluated(baked(keyed), FRAMES) - evaluated(baked(keyed), 1)).max() > 0.1


def started(window, bake):
    bake.invoke(window, event("NONE"))
    while bake._job is None:
        bake.modal(window, event("TIMER"))
    return bake._job


def test_two_bakes_at_once_write_two_caches(keyed):
    bpy.context.scene.frame_end = 4000
    window, bakes = Window(), (KeysInWindow(), KeysInWindow())
    jobs = [started(window, bake) for bake in bakes]
    assert jobs[0].output != jobs[1].output
    for bake in bakes:
        bake.modal(window, event("ESC"))
    deadline = time.monotonic() + 30
    while any(bake._folder.exists() for bake in bakes) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(bake._folder.exists() or bake._job.output.exists() for bake in bakes)


def test_esc_does_not_wait_for_what_runs(keyed, monkeypatch):
    bpy.context.scene.frame_end = 4000
    window, bake = Window(), KeysInWindow()
    job = started(window, bake)
    free = threading.Event()
    monkeypatch.setattr(job._process, "terminate", lambda: None)  # as a kernel that runs on
    wait = job._process.wait
    monkeypatch.setattr(job._process, "wait", lambda *seconds: (free.wait(30), job._process.kill(), wait()))
    assert bake.modal(window, event("ESC")) == {"CANCELLED"}
    assert job.running
    free.set()
    job.wait()


def test_what_a_scene_lacks_is_told_without_its_place(tmp_path):
    (tmp_path / "scene.toml").write_text('engine = "blend"\nnonsense = 1\n')
    job = Job(["run", str(tmp_path / "scene.toml")], tmp_path / "out.pc2")
    job.wait()
    assert "nonsense" in job.problem
    assert "scene.toml" not in job.problem


def test_reading_frames_is_cancelled(keyed, monkeypatch):
    monkeypatch.setattr(operators, "READING", 0.0)
    bpy.context.scene.frame_set(2)
    window, bake = Window(), KeysInWindow()
    bake.invoke(window, event("NONE"))
    bake.modal(window, event("TIMER"))
    assert bake.modal(window, event("ESC")) == {"CANCELLED"}
    assert window.timers == 2  # added and removed
    assert window.texts[-1] is None
    assert bpy.context.scene.frame_current == 2
    assert not bake._folder.exists()
    assert f"{keyed.name} (pliant)" not in bpy.data.objects


def test_a_scene_that_cannot_be_read_ends_the_bake_in_a_window():
    put(pliant.gallery.box(500))
    window, bake = Window(), KeysInWindow()
    bake.invoke(window, event("NONE"))
    assert bake.modal(window, event("TIMER")) == {"CANCELLED"}
    assert "has no shape keys" in bake.reported[1]
    assert window.timers == 2


def test_operators_are_undone_one_by_one(keyed, fleshed):
    """Regions, pulls, cages and live results go as they came."""
    for vertex in keyed.data.vertices:
        vertex.select = vertex.index == 5
    names = {"keyed": keyed.name, "fleshed": fleshed.name}
    for name, operator, made in (
        ("fleshed", "add_region", lambda thing: len(thing.pliant.regions)),
        ("fleshed", "build_cage", lambda thing: thing.pliant.cage is not None),
        ("keyed", "add_pull", lambda thing: thing.pliant.pulls is not None),
        ("keyed", "live_keys", lambda thing: thing.hide_render),
    ):
        activate(bpy.data.objects[names[name]])
        bpy.ops.ed.undo_push(message="before")
        assert getattr(bpy.ops.pliant, operator)() == {"FINISHED"}
        assert made(bpy.data.objects[names[name]]), operator
        bpy.ops.ed.undo_push(message="after")
        bpy.ops.ed.undo()
        assert not made(bpy.data.objects[names[name]]), operator
        live.tick()  # finds that what followed is gone
    assert not live.followers


def test_a_cage_that_cannot_be_built_is_told():
    thing = put(pliant.gallery.box(500))
    thing.pliant.cage_faces = 40
    thing.data.vertices[3].co = (float("nan"), 0.0, 0.0)
    with pytest.raises(RuntimeError, match="expected finite coordinates"):
        bpy.ops.pliant.build_cage()
    assert thing.pliant.cage is None


def test_a_file_is_saved_and_opened_again(keyed, tmp_path):
    bpy.ops.pliant.bake_keys()
    name, before = baked(keyed).name, evaluated(baked(keyed), 3)
    bpy.ops.wm.save_mainfile()
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "test.blend"))
    np.testing.assert_array_equal(evaluated(bpy.data.objects[name], 3), before)


def test_keys_are_followed_while_they_are_dragged(keyed):
    assert bpy.ops.pliant.live_keys() == {"FINISHED"}
    follower = live.followers[keyed.name]
    rig = pliant.Blendshapes(scenes.key_shapes(keyed))
    keyed.data.shape_keys.animation_data_clear()
    for value in (0.2, 0.6):
        keyed.data.shape_keys.key_blocks["fist"].value = value
        count, deadline = follower.count, time.monotonic() + 60
        while time.monotonic() < deadline and follower.count == count:
            live.tick()
            time.sleep(0.01)
        live.tick()
    bpy.context.view_layer.update()
    shown = scenes.placed(scenes.coordinates(bpy.data.objects[follower.result].data.vertices), keyed.matrix_world)
    expected = rig.solve([0.4, 0.6, 0.0]).points
    assert np.abs(shown - expected).max() < 2e-2 * rig.shapes.base.diagonal
    activate(keyed)
    assert bpy.ops.pliant.live_keys() == {"FINISHED"}
    assert not live.followers


def test_keys_that_cannot_be_followed_are_left_as_they_were(keyed, monkeypatch, capsys):
    def refuse(shapes):
        raise pliant.InputError("no body; expected one")

    monkeypatch.setattr(live.pliant, "Blendshapes", refuse)
    before = len(bpy.data.objects), len(bpy.data.meshes)
    assert bpy.ops.pliant.live_keys() == {"FINISHED"}
    deadline = time.monotonic() + 60
    while live.followers and time.monotonic() < deadline:
        live.tick()
        time.sleep(0.01)
    assert not live.followers
    assert "no body" in capsys.readouterr().out
    assert (len(bpy.data.objects), len(bpy.data.meshes)) == before
    assert not keyed.hide_render
    assert not keyed.hide_get()


@pytest.mark.parametrize(
    ("operator", "said"),
    [
        ("bake_keys", "has no shape keys beside the basis"),
        ("bake_flesh", "has no armature"),
        ("bake_transfer", "choose what"),
        ("live_keys", "has no shape keys beside the basis"),
        ("add_pull", "no vertex is selected"),
    ],
)
def test_what_is_missing_is_said_in_a_sentence(operator, said):
    thing = put(pliant.gallery.box(500))
    for vertex in thing.data.vertices:
        vertex.select = False
    with pytest.raises(RuntimeError, match=said):
        getattr(bpy.ops.pliant, operator)()
    assert len(bpy.data.objects) == 1


def test_a_broken_mesh_is_told(keyed):
    keyed.data.shape_keys.key_blocks["fist"].data[3].co = (float("nan"), 0.0, 0.0)
    with pytest.raises(RuntimeError, match="NaN"):
        bpy.ops.pliant.bake_keys()


def test_corrective_keys_bring_the_keys_to_the_bake(keyed):
    bpy.ops.pliant.bake_keys()
    baked = [evaluated(bpy.context.object, frame) for frame in range(1, FRAMES + 1)]
    activate_hidden(keyed)
    before = {curve.data_path for curve in _curves(keyed.data.shape_keys)}
    keyed.pliant.correctives = FRAMES
    assert bpy.ops.pliant.bake_keys() == {"FINISHED"}
    result = bpy.context.object
    names = [block.name for block in result.data.shape_keys.key_blocks]
    assert names[:3] == ["open", "fist", "pointing"]
    assert 1 <= len([name for name in names if name.startswith("pliant ")]) <= FRAMES
    assert not [modifier for modifier in result.modifiers if modifier.type == "MESH_CACHE"]
    size = np.linalg.norm(np.ptp(baked[0], axis=0))
    for frame, points in enumerate(baked, 1):
        assert np.abs(evaluated(result, frame) - points).max() < 2e-3 * size
    plain = np.abs(evaluated(keyed, 2) - baked[1]).max()
    assert plain > 2e-2 * size  # what the keys alone leave
    assert {curve.data_path for curve in _curves(keyed.data.shape_keys)} == before


def activate_hidden(thing):
    thing.hide_set(False)
    activate(thing)
