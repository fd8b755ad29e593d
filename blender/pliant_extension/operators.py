"""The buttons: bake shape keys, flesh or a transferred motion, build a cage, add regions and pulls."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import bpy
import numpy as np

import pliant
from pliant.io.naming import file_stem, unique_name

from . import properties, results, scenes
from .jobs import Job

TICK = 0.1
"""Seconds between looks at a job."""


class Bake:
    """A bake: a scene is written, run beside Blender, and shown as a cache."""

    bl_options = {"REGISTER", "UNDO"}
    kind: str
    write: Any
    """Of `scenes`."""

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return scenes.is_mesh_chosen(context)

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        if not self._start(context):
            return {"CANCELLED"}
        self._timer = context.window_manager.event_timer_add(TICK, window=context.window)
        context.window_manager.modal_handler_add(self)
        context.window_manager.progress_begin(0, 100)
        return {"RUNNING_MODAL"}

    def modal(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        if event.type == "ESC":
            self._job.stop()
            self._end(context)
            self.report({"INFO"}, "cancelled: nothing has changed")
            return {"CANCELLED"}
        if event.type != "TIMER":
            return {"PASS_THROUGH"}
        if self._job.running:
            context.workspace.status_text_set(self._job.state)
            context.window_manager.progress_update(100 * self._job.done // max(self._job.total, 1))
            return {"PASS_THROUGH"}
        self._job.wait()
        self._end(context)
        return self._finish(context)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """At once, for scripts and where there is no window."""
        if not self._start(context):
            return {"CANCELLED"}
        self._job.wait()
        self._clean()
        return self._finish(context)

    def _start(self, context: bpy.types.Context) -> bool:
        self._name = context.object.name
        folder = properties.cache_folder(context)
        self._folder = Path(tempfile.mkdtemp(prefix="pliant-"))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            scene = type(self).write(context, context.object, self._folder)
        except (scenes.SceneError, pliant.PliantError, OSError) as error:
            self._clean()
            self.report({"ERROR"}, str(error))
            return False
        taken = {path.stem for path in folder.glob("*.pc2")}  # other results play those
        output = folder / f"{unique_name(f'{file_stem(self._name)}-{self.kind}', taken)}.pc2"
        self._job = Job(scene, output, properties.preference(context, "threads"))
        return True

    def _finish(self, context: bpy.types.Context) -> set[str]:
        job, thing = self._job, context.scene.objects.get(self._name)
        if not job.succeeded:
            self.report({"ERROR"}, job.problem)
            return {"CANCELLED"}
        if thing is None:
            self.report({"ERROR"}, f"{self._name} is gone; its cache is {job.output}")
            return {"CANCELLED"}
        said = self._show(context, thing)
        for note in job.notes:
            self.report({"INFO"}, note)
        if job.problem:
            self.report({"WARNING"}, job.problem)
        else:
            self.report({"INFO"}, said)
        return {"FINISHED"}

    def _show(self, context: bpy.types.Context, thing: bpy.types.Object) -> str:
        """Show what was baked, and say where it is."""
        results.show_cache(context, thing, self._job.output)
        return f"baked to {self._job.output}"

    def _end(self, context: bpy.types.Context) -> None:
        context.window_manager.event_timer_remove(self._timer)
        context.window_manager.progress_end()
        context.workspace.status_text_set(None)
        self._clean()

    def _clean(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


class PLIANT_OT_bake_keys(Bake, bpy.types.Operator):
    """Blend the shape keys as a body would, over the scene's frames"""

    bl_idname, bl_label = "pliant.bake_keys", "Bake shape keys"
    kind, write = "keys", staticmethod(scenes.write_blend)

    def _show(self, context: bpy.types.Context, thing: bpy.types.Object) -> str:
        if not thing.pliant.correctives:
            return super()._show(context, thing)
        away = results.show_correctives(context, thing, self._job.output, thing.pliant.correctives)
        self._job.output.unlink()
        return f"corrective keys added: {away:.2%} of the size from the bake on average"


class PLIANT_OT_bake_flesh(Bake, bpy.types.Operator):
    """Let the mesh move on its armature as flesh does, over the scene's frames"""

    bl_idname, bl_label = "pliant.bake_flesh", "Bake flesh"
    kind, write = "flesh", staticmethod(scenes.write_flesh)


class PLIANT_OT_bake_transfer(Bake, bpy.types.Operator):
    """Move the mesh as the object moves that it follows, over the scene's frames"""

    bl_idname, bl_label = "pliant.bake_transfer", "Bake motion"
    kind, write = "transfer", staticmethod(scenes.write_transfer)


class PLIANT_OT_build_cage(bpy.types.Operator):
    """Build a closed coarse mesh around the object, to be edited by hand"""

    bl_idname, bl_label = "pliant.build_cage", "Build cage"
    bl_options = {"REGISTER", "UNDO"}
    poll = Bake.poll

    def execute(self, context: bpy.types.Context) -> set[str]:
        thing = context.object
        try:
            cage = pliant.build_cage(scenes.mesh_of(thing), faces=thing.pliant.cage_faces)
        except (scenes.SceneError, pliant.PliantError) as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        data = bpy.data.meshes.new(f"{thing.name} cage")
        data.from_pydata(cage.points.tolist(), [], [list(map(int, face)) for face in cage.polygons])
        made = bpy.data.objects.new(data.name, data)
        made.display_type = "WIRE"
        made.hide_render = True
        (thing.users_collection or [context.scene.collection])[0].objects.link(made)
        thing.pliant.cage = made
        return {"FINISHED"}


class PLIANT_OT_add_region(bpy.types.Operator):
    """Give the active vertex group a firmness of its own"""

    bl_idname, bl_label = "pliant.add_region", "Add region"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return scenes.is_mesh_chosen(context) and context.object.vertex_groups.active is not None

    def execute(self, context: bpy.types.Context) -> set[str]:
        regions, name = context.object.pliant.regions, context.object.vertex_groups.active.name
        if name not in regions:
            regions.add().name = name
        return {"FINISHED"}


class PLIANT_OT_remove_region(bpy.types.Operator):
    """Let a vertex group be as firm as the rest"""

    bl_idname, bl_label = "pliant.remove_region", "Remove region"
    bl_options = {"REGISTER", "UNDO"}
    index: bpy.props.IntProperty()

    def execute(self, context: bpy.types.Context) -> set[str]:
        context.object.pliant.regions.remove(self.index)
        return {"FINISHED"}


class PLIANT_OT_add_pull(bpy.types.Operator):
    """Put an empty at the selected vertex, which it drags along when it is moved"""

    bl_idname, bl_label = "pliant.add_pull", "Add pull"
    bl_options = {"REGISTER", "UNDO"}
    poll = Bake.poll

    def execute(self, context: bpy.types.Context) -> set[str]:
        thing = context.object
        chosen = [vertex.index for vertex in thing.data.vertices if vertex.select]
        if not chosen:
            self.report({"ERROR"}, "no vertex is selected; select one in edit mode")
            return {"CANCELLED"}
        if thing.pliant.pulls is None:
            thing.pliant.pulls = bpy.data.collections.new(f"{thing.name} pulls")
            context.scene.collection.children.link(thing.pliant.pulls)
        at = scenes.placed(scenes.coordinates(thing.data.vertices)[chosen[:1]], thing.matrix_world)[0]
        empty = bpy.data.objects.new(f"{thing.name} pull", None)
        empty.location = at
        empty.empty_display_size = 0.05 * float(np.linalg.norm(thing.dimensions))
        empty["pliant_from"] = at.tolist()
        thing.pliant.pulls.objects.link(empty)
        return {"FINISHED"}


CLASSES = (
    PLIANT_OT_bake_keys, PLIANT_OT_bake_flesh, PLIANT_OT_bake_transfer, PLIANT_OT_build_cage, PLIANT_OT_add_region,
    PLIANT_OT_remove_region, PLIANT_OT_add_pull,
)  # fmt: skip


def register() -> None:
    for each in CLASSES:
        bpy.utils.register_class(each)


def unregister() -> None:
    for each in reversed(CLASSES):
        bpy.utils.unregister_class(each)
