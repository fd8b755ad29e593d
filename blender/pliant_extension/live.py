"""A result that follows the shape keys while they are dragged: the newest sliders win, solved by one thread."""

from __future__ import annotations

import threading
from typing import Any

import bpy
import numpy as np

import pliant
from pliant.engines.blend import LiveBlend

from . import results, scenes

TICK = 1 / 60
"""Seconds between looks at what has been solved."""


class Follower:
    """Solves in a thread of its own whatever the sliders say last."""

    def __init__(self, context: bpy.types.Context, thing: bpy.types.Object) -> None:
        self._shapes = scenes.key_shapes(thing)
        self._inverse = np.array(thing.matrix_world.inverted())
        self.source, self.result = thing.name, results.still_copy(context, thing).name
        self._asked: tuple[float, ...] | None = None
        self._solved: np.ndarray | None = None
        self.problem, self.failed = "", False
        self.count = 0
        self._wake, self._closed = threading.Event(), False
        self._thread = threading.Thread(target=self._work, name="pliant-live", daemon=True)
        self._thread.start()
        results.hide(thing)

    def _work(self) -> None:
        try:
            live = LiveBlend(pliant.Blendshapes(self._shapes))  # seconds, on large meshes
        except pliant.PliantError as error:
            self.problem, self.failed = str(error), True
            return
        done: tuple[float, ...] | None = None
        while not self._closed:
            self._wake.wait()
            self._wake.clear()
            while self._asked != done and not self._closed:
                done = self._asked
                try:
                    points = live.shape(self._row(done))
                except pliant.PliantError as error:
                    self.problem = str(error)
                    continue
                self._solved = points @ self._inverse[:3, :3].T + self._inverse[:3, 3]
                self.count += 1

    def _row(self, values: tuple[float, ...]) -> dict[str, float]:
        return dict(zip(self._shapes.names[1:], values, strict=True))

    def tick(self) -> bool:
        """Ask for what the sliders say, and show what has been solved; whether to go on."""
        source, result = bpy.data.objects.get(self.source), bpy.data.objects.get(self.result)
        if source is None or result is None or source.data.shape_keys is None:
            self.close()
            return False
        if self.failed:
            self.close()
            results.forget(source, result)
            _tell(self.problem)
            return False
        blocks = list(source.data.shape_keys.key_blocks)[1:]
        asked = tuple(0.0 if block.mute else block.value for block in blocks)
        if asked != self._asked and len(asked) == len(self._shapes) - 1:
            self._asked = asked
            self._wake.set()
        solved, self._solved = self._solved, None
        if solved is not None:
            results.put_points(result.data, solved)
        return True

    def close(self) -> None:
        """End the thread."""
        self._closed = True
        self._wake.set()
        self._thread.join()


def _tell(problem: str) -> None:
    """Show a sentence at the mouse, where there is a window."""
    print(f"pliant: {problem}")
    if not bpy.app.background:
        bpy.context.window_manager.popup_menu(lambda menu, _: menu.layout.label(text=problem), title="pliant")


followers: dict[str, Follower] = {}
"""By the name of the object whose keys they follow."""


def tick() -> float | None:
    """Of Blender's timer."""
    for name, follower in list(followers.items()):
        if not follower.tick():
            del followers[name]
    return TICK if followers else None


class PLIANT_OT_live_keys(bpy.types.Operator):
    """Let a copy follow the shape keys as a body would, while they are dragged; press again to end it"""

    bl_idname, bl_label = "pliant.live_keys", "Follow shape keys"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return scenes.is_mesh_chosen(context)

    def execute(self, context: bpy.types.Context) -> set[str]:
        thing = context.object
        if thing.name in followers:
            followers.pop(thing.name).close()
            return {"FINISHED"}
        try:
            followers[thing.name] = Follower(context, thing)
        except (scenes.SceneError, pliant.PliantError) as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        if not bpy.app.timers.is_registered(tick):
            bpy.app.timers.register(tick, first_interval=TICK)
        return {"FINISHED"}


@bpy.app.handlers.persistent
def close_all(*_: Any) -> None:
    """Nothing is followed in another file."""
    while followers:
        followers.popitem()[1].close()


def register() -> None:
    bpy.utils.register_class(PLIANT_OT_live_keys)
    bpy.app.handlers.load_pre.append(close_all)


def unregister() -> None:
    close_all()
    if bpy.app.timers.is_registered(tick):
        bpy.app.timers.unregister(tick)
    bpy.app.handlers.load_pre.remove(close_all)
    bpy.utils.unregister_class(PLIANT_OT_live_keys)
