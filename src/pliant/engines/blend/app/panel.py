"""Blended shapes on the page: a slider for each shape, a timeline of keys, pulls and obstacles.

What is shown at rest is a frame of the scene that `document` gives, point for point. On the timeline that is the clip,
at the timeline's frame; in contact its frames are solved in order, so a later one takes its time. Sliders that were
moved away from the timeline make a pose: a scene of one frame or, if the shape must not pass through itself, of the few
that lead there from the base. Which of both is saved and exported can be chosen, and follows what was done last: a pose
as long as no key was set.
"""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from pliant.app.studio.brush import Brush
from pliant.app.studio.desk import Document
from pliant.app.studio.history import State
from pliant.app.studio.obstacles import Obstacles
from pliant.app.studio.panel import SHOW, Panel
from pliant.app.studio.worker import Job
from pliant.core.clips import DEFAULT_FPS, Pose
from pliant.core.errors import InputError, MissingExtraError, PliantError
from pliant.core.options import OBSTACLES_FOLDER, Option
from pliant.core.topology import Floats
from pliant.engines.blend import Blendshapes, LiveBlend
from pliant.engines.blend.app.panel_files import joined_shapes, weight_rows
from pliant.engines.blend.app.panel_keys import ClipView, Keys, SliderRow, rows_of
from pliant.engines.blend.app.panel_looks import Looks
from pliant.engines.blend.app.panel_pulls import PullHandles
from pliant.engines.blend.app.panel_widgets import KeyWidgets, Sliders
from pliant.engines.blend.app.scene import BlendScene, reblended, with_effect
from pliant.engines.blend.app.scene_weights import default_frames
from pliant.engines.blend.options import NO_CLIP, BlendOptions
from pliant.engines.blend.pulls import read_load
from pliant.geometry.axes import up_axis

PANEL_KEYS = ("weights", "clip", "frames", "pulls", "obstacles")
"""Keys of the scene that the panel writes itself."""
FROM_BASE = 9
"""Frames from the base to a pose that must not pass through itself."""
DOUBLE = 256 << 20
"""Bytes of frames in double precision; longer clips are kept in single, which is what pages show."""
WELCOME = (
    "**Drag a slider** to blend the shapes, or press **Play**. **Click the shape** and drag the arrows to pull it, or "
    "**add a ball** and push it in."
)


class BlendPanel(Panel):
    """See `pliant.app.studio.panel.Panel`."""

    key_names = MappingProxyType(
        {
            "keys": "Key", "sliders": "Slider", "obstacles": "Obstacle", "pulls": "Pull", "frames": "Frames",
            "clip": "Clip", "whole": "What is saved", "weights": "Weights", "regions": "Paint",
        }
    )  # fmt: skip

    guide = (
        ("Shapes", "**Drag a slider**: the shape blends, and rotates instead of shrinking."),
        ("timeline", "**Space** plays the clip; drag here to scrub, **K** sets a key with the sliders as they are."),
        ("Add a ball", "**Add a ball** and drag it into the shape: it gives way. Or click the shape and pull it."),
    )

    # Setting up

    def build(self) -> None:
        """Nothing is known before the shapes are read."""
        self._viewing = threading.Lock()  # of two threads that change the view, neither undoes what the other did
        self.view = ClipView()
        self.rig: Blendshapes | None = None
        self._live: tuple[Any, LiveBlend] | None = None
        self._tabled: tuple[Document, Floats] | None = None  # the sliders of the clip's frames, and what they are of
        self._load = object()  # another one whenever what acts on the shape has changed
        self._painted: Any = None  # the regions of the rig
        self._outdated = False  # whether options were set since the scene was read
        self._read = self._begun = False
        self._aside: SliderRow | None = None  # sliders that were moved before what is not keyed was played
        self.desk.hint("One moment: the shapes are being read.")

    def _read_scene(self) -> None:
        if self._begun:
            return
        self._begun = True
        self.scene: BlendScene = self.desk.scene(self._document)
        shapes = self.scene.shapes
        self.desk.stage.look_at(shapes.base.points, up_axis(shapes.base))
        self.drawn = self.desk.stage.shape("/blend/shape", shapes.base)
        self._make_widgets()
        self._read = True
        self._show_keys()
        self.desk.hint("One moment: springs are being put into the shapes.")

    def _make_widgets(self) -> None:
        scene, shapes = self.scene, self.scene.shapes
        self._posable = scene.pins is None or scene.pins.path is None
        self.view = ClipView.of(scene, self._document, posable=self._posable)
        self._rig_sliders = scene.sliders()
        self.sliders = Sliders(self.desk, self._rig_sliders.names, shapes.names[0], self._slid)
        if scene.keys is not None:
            self.sliders.put(rows_of(scene.keys[:1], shapes.names)[0])
        self.key_widgets = KeyWidgets(self)
        self.obstacles = Obstacles(self.desk, "/blend/obstacle", self._loaded)
        self.obstacles.around(shapes.base.points)
        with self.obstacles.folder:
            self.contact = self.add_options(OBSTACLES_FOLDER, BlendOptions)
        self.pulls = PullHandles(self, self._loaded, self._led)
        self.brush = Brush(self, "stiffness", lambda: 1.0, lambda: self._document.get("regions", []), self._paint)
        self.brush.take(self.drawn)
        self.drawn.on_click(lambda *ray: (self.brush if self.brush.on else self.pulls).click(*ray))
        self.drawn.on_drag(lambda *drag: (self.brush if self.brush.on else self.pulls).drag(*drag))
        self.looks = Looks(self.desk, self.drawn, shapes, partial(self.request, clip=False))
        self.add_further_options(BlendOptions)
        self.obstacles.take(self._document.get("obstacles", []), scene.obstacles)
        self.pulls.take(self._document.get("pulls", []))

    def _make_rig(self, job: Job) -> Blendshapes:
        painted, rig = self._document.get("regions"), self.scene.rig()
        if job.dropped:
            job.check()
        self.rig, self._painted = rig, painted
        self.desk.hint(WELCOME)
        self._show_timeline(self.view.frame or 0)
        return rig

    # The scene

    def document(self) -> Document:
        """See `pliant.app.studio.panel.Panel`."""
        if not self._read:
            return super().document()
        view, aside = self.view, self._aside
        return self._clip_document(view) if view.whole else self._pose_document(aside or self._row(view))

    def state(self) -> State:
        """See `pliant.app.studio.panel.Panel`."""
        if not self._read:
            return super().state()
        view = self.view
        return super().state() | {
            "given": self._document,
            "clip": view.tables,
            "frames": view.frames,
            "keys": None if view.keys is None else list(zip(view.keys.at, view.keys.rows, strict=True)),
            "sliders": self._aside or (self.sliders.values if view.frame is None else None),
            "whole": view.whole,
            "pulls": self.pulls.acting,
        }

    def restore(self, state: State) -> bool:
        """See `pliant.app.studio.panel.Panel`."""
        fits = self._read and "sliders" in state and self.shows(state["scene"])
        if not fits or not self.obstacles.put(state["scene"].get("obstacles", [])):
            return False
        self.desk.timeline.stop()
        frames, row, pairs = state["frames"], state["sliders"], state["keys"]
        keys = None if pairs is None else Keys(frames, *(tuple(part) for part in zip(*pairs, strict=True)))
        frame = min(self.desk.timeline.frame, frames - 1)
        self._aside = None
        if self._document != state["given"]:
            self._document, self._outdated = state["given"], True
            self.show_options()
            self.brush.show()
        self._look_at(ClipView(state["clip"], frames, keys, frame if row is None else None, state["whole"]))
        self.pulls.put(state["pulls"])
        if row is not None:
            self.sliders.put(row)
        self._load = object()
        self._show_timeline(frame)
        self.request()
        return True

    def _clip_document(self, view: ClipView) -> Document:
        return {**self._common(), **view.tables}

    def _pose_document(self, row: SliderRow) -> Document:
        """The pose that is seen; with self-contact on its way from the base."""
        common = self._common()
        if self.options.self_contact:
            return {**common, "weights": [{}, row], "frames": FROM_BASE}
        return {**common, "weights": [row]}

    def _common(self) -> Document:
        """The scene but for its weights and frames."""
        document = {key: value for key, value in super().document().items() if key not in PANEL_KEYS}
        if self.scene.fps != DEFAULT_FPS:
            document.setdefault("fps", self.scene.fps)  # as the clip has them, whose keys may be changed
        obstacles, pulls = self.obstacles.tables(), copy.deepcopy(list(self.pulls.acting))
        document |= ({"obstacles": obstacles} if obstacles else {}) | ({"pulls": pulls} if pulls else {})
        return with_effect(document)

    @property
    def options(self) -> BlendOptions:
        """As they are set, but for those that have no effect."""
        return BlendOptions.read(with_effect({**self._document, "obstacles": self.obstacles.tables()}))

    @property
    def _in_contact(self) -> bool:
        return bool(self.obstacles.shown) or self.options.self_contact

    def _row(self, view: ClipView) -> SliderRow:
        """The sliders as they are seen."""
        rig = self.rig
        if view.frame is None or rig is None:
            return self.sliders.values
        return rows_of(self._table(rig, view)[view.frame][None], self.scene.shapes.names)[0]

    def _table(self, rig: Blendshapes, view: ClipView) -> Floats:
        """(frames, shapes) the sliders of the clip."""
        tabled = self._tabled
        if tabled is None or tabled[0] is not view.tables:
            tabled = self._tabled = view.tables, self._scene_of(self._clip_document(view)).table(rig)
        return tabled[1]

    def _scene_of(self, document: Document) -> BlendScene:
        folder = self.desk.folders.given[0]
        scene: BlendScene = self.desk.read(lambda: reblended(self.scene, document, folder))
        return scene

    # What a visitor does

    def _slid(self) -> None:
        """A slider was moved."""
        if self._read:  # else the pulls are still to come
            self.pulls.let_sliders_be()
        self._led()

    def _led(self) -> None:
        """Sliders were moved, or are to be."""
        self.desk.timeline.stop()
        self._look(frame=None)
        self._posed()
        self.request(clip=False)
        if self.view.keys is not None:
            self.desk.hint("**Set a key here** to put these sliders on the timeline.")

    def _loaded(self) -> None:
        """What acts on the shape was changed."""
        self._load = object()
        self._posed()
        self.request()

    def set_option(self, about: Option, value: Any) -> None:
        """See `pliant.app.studio.panel.Panel`."""
        self._document = about.put(self._document, value)
        self._outdated = True
        if about.folder == OBSTACLES_FOLDER:
            self._loaded()
        else:
            self._load = object()
            self.request()

    def _paint(self, regions: list[Document]) -> None:
        """Have other parts stiffer or softer."""
        self._document = {key: value for key, value in self._document.items() if key != "regions"}
        self._document |= {"regions": regions} if regions else {}
        self._outdated, self._load = True, object()
        self.brush.show()
        self.request()

    def _read_options(self) -> None:
        """Have the options that were set; springs are put in again if they depend on them."""
        self._outdated = False
        before, self.scene = self.scene, self._scene_of(self._clip_document(self.view))
        self._live = None
        springs = [scene.options.taken_by(Blendshapes) for scene in (before, self.scene)]
        if springs[0] != springs[1] or self._painted != self._document.get("regions"):
            self.rig = None
        if len(self.scene) != self.view.frames:  # the rig's own clip, sampled anew
            self._look_at(ClipView.of(self.scene, self.view.tables, posable=self._posable))
        if self.scene.fps != before.fps:
            self._show_timeline(self.view.frame or 0)

    def _posed(self) -> None:
        """The pose was changed, so it is what is saved, unless there are keys."""
        view = self.view
        if view.keys is None and self._posable and view.whole:
            self._look(whole=False)
            self._show_keys()

    def _look(self, **changes: Any) -> None:
        """Change the view."""
        with self._viewing:
            self.view = replace(self.view, **changes)

    def _look_at(self, view: ClipView) -> None:
        """Have another view."""
        with self._viewing:
            self.view = view

    def set_key(self) -> None:
        """Put the sliders as a key at the timeline's frame."""
        frame, view, names = self.desk.timeline.frame, self.view, self.scene.shapes.names
        keys = view.keys or Keys.spread(rows_of(self._rig_sliders.defining(), names), view.frames)
        self._put(ClipView.on(keys.with_key(frame, self._row(view)), frame))
        self.desk.hint("The key is set. **Move the timeline**, move the sliders, and set another one.")

    def remove_key(self, frame: int) -> None:
        """See `pliant.app.studio.timeline.KeyEditor`."""
        keys = self.view.keys
        left = None if keys is None else keys.without(frame)
        if left is not None:
            self._put(ClipView.on(left, self.desk.timeline.frame))

    def move_key(self, frame: int, to: int, *, copy: bool = False) -> None:
        """See `pliant.app.studio.timeline.KeyEditor`."""
        keys = self.view.keys
        if keys is not None and keys.has(frame):
            row = next(row for at, row in zip(keys.at, keys.rows, strict=True) if abs(at - frame) < 0.5)
            kept = keys if copy else keys.without(frame) or Keys(keys.frames, (), ())
            self._put(ClipView.on(kept.with_key(to, row), to))

    def forget_keys(self) -> None:
        """Go through all shapes again."""
        self._put(ClipView(self._through, default_frames(len(self.scene.shapes))))

    def set_frames(self, frames: int) -> None:
        """Have so many frames."""
        keys = self.view.keys
        through = ClipView({**self._through, "frames": frames}, frames)
        self._put(through if keys is None else ClipView.on(keys.lasting(frames), 0))

    @property
    def _through(self) -> Document:
        """What a scene that goes through all shapes says: a clip in the rig's own file does not count."""
        return {"clip": NO_CLIP} if "file" in self._document["shapes"] else {}

    def save_what(self, whole: bool) -> None:
        """Save and export the whole timeline, or the pose alone."""
        self._look(whole=whole)
        self.request(clip=False)

    def _put(self, view: ClipView) -> None:
        """Have another clip."""
        self._look_at(view)
        self._show_timeline(view.frame or 0)
        self.request()

    # Shapes

    def update(self, job: Job) -> None:
        """See `pliant.app.studio.panel.Panel`."""
        self._read_scene()
        if not self._read:
            return
        if self._outdated or self.options.taken_by(Blendshapes) != self.scene.options.taken_by(Blendshapes):
            self._read_options()  # obstacles may leave options without effect
        rig = self.rig or self._make_rig(job)
        view = self.view
        try:
            given = self._row(view)
            row = given if view.frame is not None else self.pulls.followed(self._live_blend(rig), given)
            if view.frame is not None or row is not given:
                self.sliders.put(row, lambda: view is self.view)
            self._show(self._quickly(rig, row, view.frame or 0), row, job)
            if job.settled():
                self._settle(job, rig, view, row)
        except MissingExtraError:
            contact = self.contact["self_contact"]
            self._document = contact.about.put(self._document, None)
            contact.show(False)
            self._load = object()
            raise

    def _live_blend(self, rig: Blendshapes) -> LiveBlend:
        contact = self.options.taken_by(LiveBlend)
        if self._live is None or self._live[0] != contact:
            self._live = contact, LiveBlend(rig, **contact)
        return self._live[1]

    def _quickly(self, rig: Blendshapes, row: SliderRow, frame: int) -> Floats:
        pulls = self.pulls.now()
        try:
            read_load(rig, pulls, None)
        except InputError:  # a part that nothing holds, or a vertex that two pulls share
            self.pulls.refuse(pulls)
            self._load = object()
            raise
        pinned = self._pinned(frame)
        return self._live_blend(rig).shape(row, pulls=pulls, pinned=pinned, obstacles=self.obstacles.at(frame))

    def _pinned(self, frame: int) -> Floats | None:
        pins = self.scene.pins
        return None if pins is None or pins.path is None else pins.path[min(frame, len(pins.path) - 1)]

    def _settle(self, job: Job, rig: Blendshapes, view: ClipView, row: SliderRow) -> None:
        """Show the frame of the scene."""
        frame = view.frame
        if frame is None or not view.whole:
            pose = self._solved_pose(job, rig, view, row)
            if not self._solved(view):
                self.key_widgets.outdated()
        else:
            self._solve_ahead(view)
            if frame in self.frames.solved:
                self._show(self.frames.solved[frame], row, job)
            if self._in_contact or frame in self.frames.solved:
                return  # or `came` shows it, when those before it are solved
            weights = self._table(rig, view)[frame]
            pose = self._solve(job, rig, weights, frame)
        self._show(pose.points, row, job)
        if not pose.converged:
            self.desk.say(f"This shape: {pose.message}.")

    def _solved_pose(self, job: Job, rig: Blendshapes, view: ClipView, row: SliderRow) -> Pose:
        """The last frame of the scene of the pose."""
        if not self._posable:  # pins move through a clip, so a pose is no scene
            return self._solve(job, rig, row, 0)
        *_, pose = self._scene_of(self._pose_document(row)).poses(rig, watch=job.check)
        return pose

    def _solve(self, job: Job, rig: Blendshapes, weights: SliderRow | Floats, frame: int) -> Pose:
        """The shape at some weights, with what acts on it at a frame."""
        return rig.solve(
            weights,
            pulls=self.pulls.now(),
            pinned=self._pinned(frame),
            obstacles=self.obstacles.at(frame),
            watch=job.check,
            **self.options.taken_by(Blendshapes.solve),
        )

    def _show(self, points: Floats, row: SliderRow, job: Job | None = None) -> None:
        assert self.rig is not None
        with self.drawing(job):
            self.drawn.move(points)
            self.looks.show(points, self.rig.weights(row))

    # The clip

    def _clip(self, view: ClipView) -> object:
        """What the frames that are solved are of."""
        return self._load, view.tables

    def _solve_ahead(self, view: ClipView) -> None:
        """Have the clip's frames solved, if they are not already."""
        rig = self.rig
        if rig is None or self.frames.has(self._clip(view)):
            return
        scene = self._scene_of(self._clip_document(view))

        def solve(job: Job) -> Iterator[tuple[int, Floats]]:
            own: Blendshapes = pickle.loads(pickle.dumps(rig))  # requests are served in between, with the other
            precision = np.float64 if len(scene) * scene.shapes.base.points.nbytes <= DOUBLE else np.float32
            for number, pose in enumerate(scene.poses(own, watch=job.check)):
                yield number, pose.points.astype(precision, copy=False)

        self.frames.solve(self._clip(view), solve)

    def _solved(self, view: ClipView) -> dict[int, Floats]:
        """The clip's frames that are solved."""
        return self.frames.solved if self.frames.has(self._clip(view)) else {}

    def came(self, number: int | None) -> None:
        """See `pliant.app.studio.panel.Panel`."""
        view, timeline, done = self.view, self.desk.timeline, len(self.frames.solved)
        timeline.ready = done
        self.key_widgets.solved(done, view.frames)
        if done < view.frames:
            self.desk.say(f"{done} of {view.frames} frames are solved ...")
        if number is not None and number == view.frame and view.whole and not timeline.playing:
            self._show(self.frames.solved[number], self._row(view))

    def _show_timeline(self, frame: int) -> None:
        self.frames.resize(self.view.frames, self.scene.fps, frame=frame)
        self._show_keys()

    def draw(self, frame: int) -> None:
        """See `pliant.app.studio.panel.Panel`."""
        view, timeline = self.view, self.desk.timeline
        if frame >= view.frames:
            return
        solved = self._solved(view)
        if timeline.playing and frame not in solved:
            if not solved:
                self._look(whole=self._aside is None)
                self.desk.ask("clip", lambda job: self._solve_ahead(self.view))
            return
        if self._came_back(frame, view):
            return
        with self._viewing:
            if self.view.tables is not view.tables:
                return  # another clip has replaced it
            view = self.view = replace(self.view, frame=frame, whole=self._aside is None)
        row = self._row(view)
        if not self.sliders.put(row, lambda: view is self.view):
            return  # a visitor has moved one, which counts
        self.obstacles.draw(frame)
        self._show_keys()
        if frame not in solved:
            self.request(clip=False)
            return
        with self._drawing:
            self.desk.drop(SHOW)
            self._show(solved[frame], row)

    def _came_back(self, frame: int, view: ClipView) -> bool:
        """Keep sliders that no key has from being overwritten by a frame; whether they are shown instead of it.

        With keys, they stay as they are throughout the clip. Without any, they are back when playing is paused.
        """
        moved = self.sliders.values if view.frame is None else None
        playing, aside = self.desk.timeline.playing, self._aside
        if moved is not None:
            self.desk.changed()
        if not playing:
            self._aside = None
            if aside is not None and frame == view.frame:
                self.sliders.put(aside)
                self._led()
                return True
        elif moved and view.keys is None:
            self._aside = moved
        if moved and view.keys is not None:
            kept = view.keys.with_constant(moved)
            if kept != view.keys:
                self._put(ClipView.on(kept, frame))
                if playing:
                    self.desk.timeline.play()
                return True
        return False

    def _show_keys(self) -> None:
        view = self.view
        self.desk.timeline.show_keys(() if view.keys is None else view.keys.at, self)
        if self._read:
            self.key_widgets.show(view, self.desk.timeline.frame)

    # Further files

    def take(self, file: Path) -> bool:
        """See `pliant.app.studio.panel.Panel`: a further shape, or weights."""
        try:
            self._read_scene()  # two files in a row: the second comes before the scene with the first is there
        except PliantError as error:
            self.desk.fail(error)
        if not self._read:
            return False
        names = self.scene.shapes.names
        rows = weight_rows(file, names)
        if rows is not None:
            self._put(ClipView.on(Keys.spread(rows, len(rows)), 0))
            return True
        shapes = joined_shapes(file, self.scene.shapes, self._document["shapes"], self.desk.uploads)
        if shapes is None:
            return False
        self.desk.show({**self.document(), "shapes": shapes})
        return True
