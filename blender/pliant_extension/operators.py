"""The buttons: bake shape keys, flesh or a transferred motion, build a cage, add regions and pulls."""

import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
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
READING = 0.05
"""Seconds of a tick in which frames are read: a few, or one that takes longer."""
NAVIGATION = {"MOUSEMOVE", "MIDDLEMOUSE", "WHEELUPMOUSE", "WHEELDOWNMOUSE", "TRACKPADPAN", "TRACKPADZOOM"}
"""Events that go on to the window while frames are read; others could change what is read."""

Prepared = tuple[list[str], Path, Callable[[Path], Any] | None]
"""A command, what it writes, and what is made of that in a thread."""


class Beside:
    """An operator whose work is done by a process beside Blender."""

    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return scenes.is_mesh_chosen(context)

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        self._begin(context)
        self._timer = context.window_manager.event_timer_add(TICK, window=context.window)
        context.window_manager.modal_handler_add(self)
        context.window_manager.progress_begin(0, 100)
        return {"RUNNING_MODAL"}

    def modal(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        if event.type == "ESC" and event.value == "PRESS":
            self.cancel(context)
            self.report({"INFO"}, "cancelled: nothing has changed")
            return {"CANCELLED"}
        if event.type != "TIMER":
            return {"PASS_THROUGH" if self._job is not None or event.type in NAVIGATION else "RUNNING_MODAL"}
        if self._job is None:
            if self._read(context, READING):
                return {"RUNNING_MODAL"}
            self._close(context)
            return {"CANCELLED"}
        if self._job.running:
            context.workspace.status_text_set(self._job.state)
            context.window_manager.progress_update(100 * self._job.done // max(self._job.total, 1))
            return {"PASS_THROUGH"}
        self._close(context)
        return self._ended(context)

    def cancel(self, context: bpy.types.Context) -> None:
        """By Esc, and by Blender itself when the window is closed or another file opened."""
        if self._job is not None:
            self._job.stop(partial(shutil.rmtree, self._folder, ignore_errors=True))
        else:
            self._restore(context)
            self._clean()
        self._close(context)

    def execute(self, context: bpy.types.Context) -> set[str]:
        """At once, for scripts and where there is no window."""
        self._begin(context)
        return self._ended(context) if self._read(context, float("inf")) else {"CANCELLED"}

    def _begin(self, context: bpy.types.Context) -> None:
        self._name = context.object.name
        self._now = context.scene.frame_current, context.scene.frame_subframe
        self._folder = Path(tempfile.mkdtemp(prefix="pliant-"))
        self._job: Job | None = None
        self._steps = self._prepare(context, context.object)

    def _read(self, context: bpy.types.Context, seconds: float) -> bool:
        """Read frames for some time, and start the job after the last; False if something is wrong with the scene.

        Frames follow each other, as simulations of Blender need them to; the current one is restored after the last.
        """
        until = time.monotonic() + seconds
        try:
            while True:
                done, total = next(self._steps)
                if time.monotonic() > until:
                    break
        except StopIteration as ended:
            words, output, finish = ended.value
            self._restore(context)
            self._job = Job(words, output, properties.preference(context, "threads"), finish)
            return True
        except (scenes.SceneError, pliant.PliantError, OSError) as error:
            self._restore(context)
            self._clean()
            self.report({"ERROR"}, str(error))
            return False
        context.workspace.status_text_set(f"pliant: reading frame {done} of {total} (Esc cancels)")
        return True

    def _restore(self, context: bpy.types.Context) -> None:
        """Go back to the frame at which it began."""
        if (context.scene.frame_current, context.scene.frame_subframe) != self._now:
            context.scene.frame_set(self._now[0], subframe=self._now[1])

    def _prepare(self, context: bpy.types.Context, thing: bpy.types.Object) -> scenes.Reading[Prepared]:
        """Write what the process reads, frame by frame: its command, what it writes, and what is made of that."""
        raise NotImplementedError

    def _ended(self, context: bpy.types.Context) -> set[str]:
        self._job.wait()
        try:
            return self._finish(context)
        finally:
            self._clean()

    def _finish(self, context: bpy.types.Context) -> set[str]:
        job, thing = self._job, context.scene.objects.get(self._name)
        if not job.succeeded:
            job.output.unlink(missing_ok=True)
            self.report({"ERROR"}, job.problem)
            return {"CANCELLED"}
        if thing is None:
            self.report({"ERROR"}, f"{self._name} is gone; what was made of it is {job.output}")
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
        """Show what was made, and say what it is."""
        raise NotImplementedError

    def _close(self, context: bpy.types.Context) -> None:
        """Free the window."""
        context.window_manager.event_timer_remove(self._timer)
        context.window_manager.progress_end()
        if context.workspace is not None:
            context.workspace.status_text_set(None)

    def _clean(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


class Bake(Beside):
    """A bake: a scene is written, run, and shown as a cache."""

    kind: str
    write: Any
    """Of `scenes`."""

    def _prepare(self, context: bpy.types.Context, thing: bpy.types.Object) -> scenes.Reading[Prepared]:
        folder = properties.cache_folder(context)
        folder.mkdir(parents=True, exist_ok=True)
        inverse = np.array(thing.matrix_world.inverted())
        scene = yield from type(self).write(context, thing, self._folder)
        taken = {path.stem for path in folder.glob("*.pc2")}  # other results play those
        output = folder / f"{unique_name(f'{file_stem(self._name)}-{self.kind}', taken)}.pc2"
        output.touch()  # so that another bake, begun meanwhile, takes another name
        return ["run", str(scene)], output, self._made_of(thing, inverse)

    def _made_of(self, thing: bpy.types.Object, inverse: np.ndarray) -> Callable[[Path], Any]:
        """Makes a cache of points in the world into what is shown. inverse: (4, 4) from the world to the object."""
        return partial(results.place_cache, inverse=inverse)

    def _show(self, context: bpy.types.Context, thing: bpy.types.Object) -> str:
        results.show_cache(context, thing, self._job.output)
        return f"baked to {self._job.output}"


class PLIANT_OT_bake_keys(Bake, bpy.types.Operator):
    """Blend the shape keys as a body would, over the scene's frames"""

    bl_idname, bl_label = "pliant.bake_keys", "Bake shape keys"
    kind, write = "keys", staticmethod(scenes.write_blend)

    def _made_of(self, thing: bpy.types.Object, inverse: np.ndarray) -> Callable[[Path], Any]:
        if not thing.pliant.correctives:
            return super()._made_of(thing, inverse)
        return partial(results.corrective_keys, folder=self._folder, inverse=inverse, count=thing.pliant.correctives)

    def _show(self, context: bpy.types.Context, thing: bpy.types.Object) -> str:
        if self._job.made is None:
            return super()._show(context, thing)
        offsets, curves, away = self._job.made
        results.show_correctives(context, thing, offsets, curves)
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


class PLIANT_OT_build_cage(Beside, bpy.types.Operator):
    """Build a closed coarse mesh around the object, to be edited by hand"""

    bl_idname, bl_label = "pliant.build_cage", "Build cage"

    def _prepare(self, context: bpy.types.Context, thing: bpy.types.Object) -> scenes.Reading[Prepared]:
        mesh = self._folder / "mesh.npz"
        pliant.write(mesh, scenes.mesh_of(thing))
        return ["cage", str(mesh), "--faces", str(thing.pliant.cage_faces)], self._folder / "cage.npz", None
        yield  # there are no frames to read

    def _show(self, context: bpy.types.Context, thing: bpy.types.Object) -> str:
        cage = pliant.read_mesh(self._job.output)
        data = bpy.data.meshes.new(f"{thing.name} cage")
        data.from_pydata(cage.points.tolist(), [], [list(map(int, face)) for face in cage.polygons])
        made = bpy.data.objects.new(data.name, data)
        made.display_type = "WIRE"
        made.hide_render = True
        (thing.users_collection or [context.scene.collection])[0].objects.link(made)
        thing.pliant.cage = made
        return f"a cage of {len(data.polygons)} faces"


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
    poll = Beside.poll

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
