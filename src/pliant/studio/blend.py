"""Blended shapes on the page: a slider a shape, a timeline of keys, what pulls and what stands in the way.

What is shown at rest is a frame of the scene as `document` says it, point for point. On the timeline that is the clip,
at the frame where the timeline stands; in contact its frames are solved in order, so one further on takes its time.
Sliders that were moved away from the timeline make a pose: a scene of one frame or, if the shape must not pass through
itself, of the few that lead there from the base. Which of both is saved and exported can be chosen, and goes by what
was done last: a pose as long as there are no keys of one's own.
"""

from __future__ import annotations

import copy
import json
import threading
from pathlib import Path
from typing import Any

from pliant.blend import Blendshapes, LiveBlend
from pliant.blend.pulls import read_load
from pliant.clips import Pose
from pliant.errors import InputError, MissingExtraError
from pliant.scene import BlendScene
from pliant.scene.blend import reblended
from pliant.scene.blend_inputs import default_frames
from pliant.scene.elastic import up_axis
from pliant.studio.blend_ahead import Ahead
from pliant.studio.blend_files import joined_shapes, weight_rows
from pliant.studio.blend_keys import Keys, Row, rows_of
from pliant.studio.blend_looks import Looks
from pliant.studio.blend_obstacles import Obstacles
from pliant.studio.blend_pulls import Pulls
from pliant.studio.blend_sliders import Sliders
from pliant.studio.blend_timeline import KeyWidgets
from pliant.studio.panel import Desk, Document
from pliant.studio.worker import Job
from pliant.topology import Floats

OWN = ("weights", "frames", "pulls", "obstacles", "friction", "self_contact", "thickness")
"""Keys of the scene that the panel says itself."""
FROM_BASE = 9
"""Frames from the base to a pose that must not pass through itself."""
WELCOME = (
    "**Drag a slider** to blend the shapes, or press **Play**. **Click the shape** and drag the arrows to pull it, or "
    "**add a ball** and push it in."
)


class BlendPanel:
    """See `pliant.studio.panel.Panel`."""

    def __init__(self, desk: Desk, document: Document) -> None:
        self.desk = desk
        self._parts: list[Any] = []
        self._begin(document)

    def _begin(self, document: Document) -> None:
        """Show a scene from the start on."""
        self._given = copy.deepcopy(document)
        self.rig: Blendshapes | None = None
        self.ahead: Ahead | None = None
        self.keys: Keys | None = None
        self._said_keys: Document = {key: self._given[key] for key in ("weights", "frames") if key in self._given}
        self.standing: int | None = 0
        """The frame of the timeline that is seen; None: the sliders were moved."""
        self.whole = True
        """Whether the clip is saved and exported, and not the pose alone."""
        self._live: tuple[Any, LiveBlend] | None = None
        self._tabled: tuple[Document, Floats] | None = None  # the sliders of the clip's frames, and what they are of
        self._ahead_of = ""  # the clip that is solved ahead
        self._turn = 0
        self._read = False
        self._ended = threading.Event()
        self.desk.hint("One moment: the shapes are being read.")
        self.desk.ask("open", self._set_up)

    # Setting up

    def _set_up(self, job: Job) -> None:
        if self._ended.is_set():
            return
        self.scene: BlendScene = self.desk.scene(self._given)
        job.check()
        shapes = self.scene.shapes
        self.desk.stage.look_at(shapes.base.points, up_axis(shapes.base))
        self.drawn = self.desk.stage.shape("/blend/shape", shapes.base)
        self._make_widgets()
        self._read = True
        self.desk.hint("One moment: springs are being put into the shapes.")
        self.desk.ask("rig", self._make_rig)

    def _make_widgets(self) -> None:
        gui, scene = self.desk.gui, self.scene
        shapes = scene.shapes
        box = shapes.base.points.min(axis=0), shapes.base.points.max(axis=0)
        self.sliders = Sliders(self.desk, shapes.names[1:], shapes.names[0], self._slid)
        self._posable = scene.pins is None or scene.pins.path is None
        self.key_widgets = KeyWidgets(self.desk, self, self.length, posable=self._posable)
        self.obstacles = Obstacles(self.desk, box, self._loaded)
        with self.obstacles.folder:
            self.friction = gui.add_slider("Friction", min=0.0, max=1.0, step=0.05, initial_value=scene.friction)
            self.itself = gui.add_checkbox("Not through itself", scene.self_contact)
        for widget in (self.friction, self.itself):
            self.desk.on(widget, self._loaded)
        self.pulls = Pulls(self.desk, self.drawn, self._loaded)
        self.looks = Looks(self.desk, self.drawn, shapes, self._wanted)
        parts = (self.sliders, self.key_widgets, self.obstacles, self.pulls, self.looks)
        self._parts = [part.folder for part in parts]
        self.obstacles.take(self._given.get("obstacles", []), scene.obstacles)
        self.pulls.take(self._given.get("pulls", []))
        self._take_keys()

    def _take_keys(self) -> None:
        """The sliders and keys that the scene has."""
        keys = self.scene.keys
        if keys is None:
            return
        rows = rows_of(keys, self.scene.shapes.names)
        self.sliders.put(rows[0])
        if len(self.scene) > 1 or not self._posable:
            self.keys = Keys.spread(rows, len(self.scene))
        else:  # a pose, which is no clip
            self.standing, self.whole, self._said_keys = None, False, {}

    def _make_rig(self, job: Job) -> None:
        if self._ended.is_set():
            return
        rig = self.scene.rig()
        job.check()
        self.rig, self.ahead = rig, Ahead(rig, self._came, self.desk.fail)
        if self._ended.is_set():
            self.ahead.close()
        self.desk.hint(WELCOME)
        self._show_timeline(0)
        self._wanted()

    # The scene

    @property
    def length(self) -> int:
        """Frames of the clip."""
        if self.keys is not None:
            return self.keys.frames
        frames = self._said_keys.get("frames")
        return int(frames) if frames is not None else default_frames(len(self.scene.shapes))

    def document(self) -> Document:
        """See `pliant.studio.panel.Panel`."""
        if not self._read:
            return copy.deepcopy(self._given)
        return self._clip_document() if self.whole else self._pose_document()

    def _clip_document(self) -> Document:
        return {**self._common(), **self._said_keys}

    def _pose_document(self) -> Document:
        """The pose that is seen; with self-contact on its way from the base."""
        row = self._row()
        if self.itself.value:
            return {**self._common(), "weights": [{}, row], "frames": FROM_BASE}
        return {**self._common(), "weights": [row]}

    def _common(self) -> Document:
        """The scene but for its weights and frames."""
        document = {key: value for key, value in copy.deepcopy(self._given).items() if key not in OWN}
        obstacles, pulls = self.obstacles.said(), copy.deepcopy(self.pulls.said)
        if obstacles:
            document["obstacles"] = obstacles
            if self.friction.value > 0:
                document["friction"] = float(self.friction.value)
        if self.itself.value:
            document["self_contact"] = True
        if pulls:
            document["pulls"] = pulls
        if self._touches and "thickness" in self._given:
            document["thickness"] = self._given["thickness"]
        return document

    @property
    def _touches(self) -> bool:
        return bool(self.obstacles.things) or bool(self.itself.value)

    def _row(self) -> Row:
        """The sliders as they are seen."""
        if self.standing is None or self.rig is None:
            return self.sliders.values
        return rows_of(self._table(self.rig)[self.standing][None], self.scene.shapes.names)[0]

    def _table(self, rig: Blendshapes) -> Floats:
        """(frames, shapes) the sliders of the clip."""
        if self._tabled is None or self._tabled[0] is not self._said_keys:
            self._tabled = self._said_keys, self._scene_of(self._clip_document()).table(rig)
        return self._tabled[1]

    def _scene_of(self, document: Document) -> BlendScene:
        folder = self.desk.folders.given[0]
        scene: BlendScene = self.desk.read(lambda: reblended(self.scene, document, folder))
        return scene

    # What a visitor does

    def _slid(self) -> None:
        """A slider was moved."""
        self.desk.timeline.stop()
        self.standing = None
        self._loaded()
        if self.keys is not None:
            self.desk.hint("**Set a key here** to put these sliders on the timeline.")

    def _loaded(self) -> None:
        """What the shape is like was changed."""
        if self.keys is None and self._posable and self.whole:
            self.whole = False
            self._tell()
        self._wanted()

    def _wanted(self) -> None:
        """Another shape is to be seen."""
        self.desk.ask("pose", self._pose)

    def set_key(self) -> None:
        """See `pliant.studio.blend_timeline.Wishes`."""
        frame = self.desk.timeline.frame
        names = self.scene.shapes.names
        keys = self.keys or Keys.spread([{}, *({name: 1.0} for name in names[1:])], self.length)
        self._put_keys(keys.with_key(frame, self._row()), frame)
        self.desk.hint("The key is set. **Move the timeline**, move the sliders, and set another one.")

    def remove_key(self) -> None:
        """See `pliant.studio.blend_timeline.Wishes`."""
        frame = self.desk.timeline.frame
        if self.keys is not None:
            self._put_keys(self.keys.without(frame), frame)

    def forget_keys(self) -> None:
        """See `pliant.studio.blend_timeline.Wishes`."""
        self._put_keys(None, 0)

    def last(self, frames: int) -> None:
        """See `pliant.studio.blend_timeline.Wishes`."""
        if self.keys is not None:
            self._put_keys(self.keys.lasting(frames), 0)
        else:
            self._said_keys = {"frames": frames}
            self._put_keys(None, 0, keep=True)

    def save_what(self, whole: bool) -> None:
        """See `pliant.studio.blend_timeline.Wishes`."""
        self.whole = whole
        self._wanted()

    def _put_keys(self, keys: Keys | None, frame: int, *, keep: bool = False) -> None:
        self.keys = keys
        if not keep:
            self._said_keys = {} if keys is None else keys.said()
        self.standing, self.whole = frame, True
        self._show_timeline(frame)
        self._wanted()

    # Shapes

    def _pose(self, job: Job) -> None:
        """Show about what is wanted at once and, when nothing more comes, just that."""
        if self.rig is None or self.ahead is None:
            return
        turn = self._turn
        self.ahead.wait(True)
        try:
            row = self._row()
            if self.standing is not None:
                self.sliders.put(row)
            points = self._quickly(self.rig, row)
            self._show(points, row, turn, resting=False)
            if job.settled():
                self._settle(job, row, turn)
        except MissingExtraError:
            self.itself.value = False
            raise
        finally:
            self.ahead.wait(False)

    def _quickly(self, rig: Blendshapes, row: Row) -> Floats:
        options = float(self.friction.value), bool(self.itself.value), self._given.get("thickness")
        if self._live is None or self._live[0] != options:
            friction, itself, thickness = options
            self._live = options, LiveBlend(rig, friction=friction, self_contact=itself, thickness=thickness)
        frame, pulls = self.standing or 0, self.pulls.now()
        try:
            read_load(rig, pulls, None)
        except InputError:  # a part that nothing holds, or a vertex that two pulls share
            self.pulls.refuse()
            raise
        pinned = self._pinned(frame)
        return self._live[1].shape(row, pulls=pulls, pinned=pinned, obstacles=self.obstacles.now(frame))

    def _pinned(self, frame: int) -> Floats | None:
        pins = self.scene.pins
        return None if pins is None or pins.path is None else pins.path[min(frame, len(pins.path) - 1)]

    def _settle(self, job: Job, row: Row, turn: int) -> None:
        """Show the frame of the scene."""
        assert self.rig is not None
        frame = self.standing
        if frame is None or not self.whole:
            pose = self._solved_pose(job, self.rig, row)
            if not self._solved():
                self.key_widgets.outdated()
        else:
            solved = self._solve_ahead()
            if frame < len(solved):
                self._show(solved[frame], row, turn, resting=True)
            if self._touches or frame < len(solved):
                return  # or when it is solved, after those before it
            pose = self.rig.solve(
                self._table(self.rig)[frame],
                pulls=self.pulls.now(),
                pinned=self._pinned(frame),
                watch=job.check,
                **self.scene.options,
            )
        self._show(pose.points, row, turn, resting=True)
        if not pose.converged:
            self.desk.say(f"This shape: {pose.message}.")

    def _solved_pose(self, job: Job, rig: Blendshapes, row: Row) -> Pose:
        """What the scene of the pose ends with."""
        if not self._posable:  # pins are led through a clip, so a pose is no scene
            scene, touching = self._scene_of(self._clip_document()), {}
            if self._touches:
                names = ("friction", "self_contact", "thickness")
                touching = {"obstacles": self.obstacles.now(0)} | {name: getattr(scene, name) for name in names}
            return rig.solve(row, pulls=self.pulls.now(), pinned=self._pinned(0), watch=job.check, **touching)
        *_, pose = self._scene_of(self._pose_document()).poses(rig, watch=job.check)
        return pose

    def _show(self, points: Floats, row: Row, turn: int, *, resting: bool) -> None:
        if turn != self._turn or self._ended.is_set():
            return
        self.drawn.move(points)
        assert self.rig is not None
        self.looks.show(points, self.rig.weights(row), resting=resting)

    # The clip

    def _solve_ahead(self) -> list[Floats]:
        """Have the clip's frames solved, if they are not already; those that are."""
        assert self.ahead is not None
        document = self._clip_document()
        said = json.dumps(document, sort_keys=True)
        if said != self._ahead_of:
            scene = self._scene_of(document)
            self._ahead_of = said
            self.desk.timeline.ready = 0
            self.ahead.start(scene)
            self.key_widgets.solved(0, len(scene))
        return self.ahead.frames

    def _solved(self) -> list[Floats]:
        """The clip's frames that are solved."""
        current = json.dumps(self._clip_document(), sort_keys=True) == self._ahead_of
        return self.ahead.frames if current and self.ahead is not None else []

    def _begin_ahead(self) -> None:
        self._solve_ahead()

    def _came(self, frame: int) -> None:
        """A frame of the clip is solved."""
        assert self.ahead is not None
        self.desk.timeline.ready = frame + 1
        self.key_widgets.solved(frame + 1, self.ahead.count)
        if frame == self.standing and self.whole and not self.desk.timeline.playing:
            self._show(self.ahead.frames[frame], self._row(), self._turn, resting=True)

    def _show_timeline(self, frame: int) -> None:
        self.desk.timeline.show(self.length, self.scene.fps, self._draw, frame=frame)
        self._tell()

    def _draw(self, frame: int) -> None:
        """The timeline has come to a frame."""
        if self.rig is None or self.ahead is None:
            return
        solved = self._solved()
        if self.desk.timeline.playing and frame >= len(solved):
            if not solved:
                self.whole = True
                self.desk.ask("clip", lambda job: self._begin_ahead())
            return
        self.standing, self.whole = frame, True
        row = self._row()
        self.sliders.put(row)
        self.obstacles.show(frame)
        self._tell()
        if frame < len(solved):
            self.desk.live.drop("pose")
            self._turn += 1
            self._show(solved[frame], row, self._turn, resting=not self.desk.timeline.playing)
        else:
            self._wanted()

    def _tell(self) -> None:
        self.key_widgets.tell(self.keys, self.desk.timeline.frame, self.length, whole=self.whole)

    # Further files

    def take(self, file: Path) -> bool:
        """See `pliant.studio.panel.Panel`: a further shape, or weights."""
        if not self._read:
            return False
        rows = weight_rows(file, self.scene.shapes.names)
        if rows is not None:
            self._put_keys(Keys.spread(rows, len(rows)), 0)
            return True
        shapes = joined_shapes(file, self.scene.shapes, self._given["shapes"], self.desk.folders.uploads)
        if shapes is None:
            return False
        document = {**self.document(), "shapes": shapes}
        self.close()
        self._begin(document)
        return True

    def close(self) -> None:
        """See `pliant.studio.panel.Panel`."""
        self._ended.set()
        if self.ahead is not None:
            self.ahead.close()
        for part in self._parts:
            part.remove()
        self.desk.stage.remove("/blend")
