"""Blended shapes on the page: a slider a shape, a timeline of keys, what pulls and what stands in the way.

What is shown at rest is a frame of the scene as `document` says it, point for point. On the timeline that is the clip,
at the frame where the timeline stands; in contact its frames are solved in order, so one further on takes its time.
Sliders that were moved away from the timeline make a pose: a scene of one frame or, if the shape must not pass through
itself, of the few that lead there from the base. Which of both is saved and exported can be chosen, and goes by what
was done last: a pose as long as there are no keys of one's own.
"""

from __future__ import annotations

import copy
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from pliant.app.scene.media import up_axis
from pliant.app.studio.option_widgets import hint_of, option_slider
from pliant.app.studio.panel import Desk, Document
from pliant.app.studio.worker import Job
from pliant.core.clips import Pose
from pliant.core.errors import InputError, MissingExtraError, PliantError
from pliant.core.topology import Floats
from pliant.engines.blend import Blendshapes, LiveBlend
from pliant.engines.blend.app.panel_ahead import Ahead
from pliant.engines.blend.app.panel_files import joined_shapes, weight_rows
from pliant.engines.blend.app.panel_keys import Keys, Row, rows_of
from pliant.engines.blend.app.panel_looks import Looks
from pliant.engines.blend.app.panel_obstacles import Obstacles
from pliant.engines.blend.app.panel_pulls import Pulls
from pliant.engines.blend.app.panel_sliders import Sliders
from pliant.engines.blend.app.panel_timeline import KeyWidgets
from pliant.engines.blend.app.panel_view import View
from pliant.engines.blend.app.scene import BlendScene, reblended
from pliant.engines.blend.app.scene_inputs import default_frames
from pliant.engines.blend.options import BlendOptions
from pliant.engines.blend.pulls import read_load

OWN = ("weights", "frames", "pulls", "obstacles", "friction", "self_contact", "thickness")
"""Keys of the scene that the panel says itself."""
FROM_BASE = 9
"""Frames from the base to a pose that must not pass through itself."""
WELCOME = (
    "**Drag a slider** to blend the shapes, or press **Play**. **Click the shape** and drag the arrows to pull it, or "
    "**add a ball** and push it in."
)


class BlendPanel:
    """See `pliant.app.studio.panel.Panel`."""

    def __init__(self, desk: Desk, document: Document) -> None:
        self.desk = desk
        self._looking = threading.Lock()  # of two who change the view, neither undoes what the other did
        self._given = copy.deepcopy(document)
        self.rig: Blendshapes | None = None
        self.ahead: Ahead | None = None
        self.view = View()
        self._live: tuple[Any, LiveBlend] | None = None
        self._tabled: tuple[Document, Floats] | None = None  # the sliders of the clip's frames, and what they are of
        self._load = object()  # another one whenever what acts on the shape has changed
        self._ahead_of: tuple[object, Document] | None = None  # the load and the keys whose frames are solved ahead
        self._turn = object()  # another one when what is being solved is not to be shown any more
        self._read = self._began = False
        self.desk.hint("One moment: the shapes are being read.")
        self.desk.ask("set up", self._set_up)

    # Setting up

    def _set_up(self, job: Job | None = None) -> None:
        if self._began:
            return
        self._began = True
        self.scene: BlendScene = self.desk.scene(self._given)
        shapes = self.scene.shapes
        self.desk.stage.look_at(shapes.base.points, up_axis(shapes.base))
        self.drawn = self.desk.stage.shape("/blend/shape", shapes.base)
        self._make_widgets()
        self._read = True
        self._tell()
        self.desk.hint("One moment: springs are being put into the shapes.")
        self.desk.ask("rig", self._make_rig)

    def _make_widgets(self) -> None:
        gui, scene = self.desk.gui, self.scene
        shapes = scene.shapes
        box = shapes.base.points.min(axis=0), shapes.base.points.max(axis=0)
        self._posable = scene.pins is None or scene.pins.path is None
        self.view = View.of(scene, self._given, posable=self._posable)
        self.sliders = Sliders(self.desk, shapes.names[1:], shapes.names[0], self._slid)
        if scene.keys is not None:
            self.sliders.put(rows_of(scene.keys[:1], shapes.names)[0])
        self.key_widgets = KeyWidgets(self.desk, self, self.view.frames, posable=self._posable)
        self.obstacles = Obstacles(self.desk, box, self._loaded)
        with self.obstacles.folder:
            most = max(1.0, scene.friction)
            about = BlendOptions.about("friction")
            self.friction = option_slider(gui, about, "Friction", 0.0, most, 0.05, value=scene.friction)
            hint = hint_of(BlendOptions.about("self_contact"))
            self.itself = gui.add_checkbox("Not through itself", scene.self_contact, hint=hint)
        for widget in (self.friction, self.itself):
            self.desk.on(widget, self._loaded)
        self.pulls = Pulls(self.desk, self.drawn, self._loaded)
        self.looks = Looks(self.desk, self.drawn, shapes, self._wanted)
        self.obstacles.take(self._given.get("obstacles", []), scene.obstacles)
        self.pulls.take(self._given.get("pulls", []))

    def _make_rig(self, job: Job) -> None:
        rig = self.scene.rig()
        job.check()
        self.rig, self.ahead = rig, self.desk.scope.own(Ahead(rig, self._came, self.desk.fail))
        self.desk.hint(WELCOME)
        self._show_timeline(self.view.standing or 0)
        self._wanted()

    # The scene

    def document(self) -> Document:
        """See `pliant.app.studio.panel.Panel`."""
        if not self._read:
            return copy.deepcopy(self._given)
        view = self.view
        return self._clip_document(view) if view.whole else self._pose_document(self._row(view))

    def _clip_document(self, view: View) -> Document:
        return {**self._common(), **view.said}

    def _pose_document(self, row: Row) -> Document:
        """The pose that is seen; with self-contact on its way from the base."""
        common = self._common()
        if "self_contact" in common:
            return {**common, "weights": [{}, row], "frames": FROM_BASE}
        return {**common, "weights": [row]}

    def _common(self) -> Document:
        """The scene but for its weights and frames."""
        document = {key: value for key, value in copy.deepcopy(self._given).items() if key not in OWN}
        obstacles, pulls = self.obstacles.said(), copy.deepcopy(list(self.pulls.said))
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

    def _row(self, view: View) -> Row:
        """The sliders as they are seen."""
        rig = self.rig
        if view.standing is None or rig is None:
            return self.sliders.values
        return rows_of(self._table(rig, view)[view.standing][None], self.scene.shapes.names)[0]

    def _table(self, rig: Blendshapes, view: View) -> Floats:
        """(frames, shapes) the sliders of the clip."""
        tabled = self._tabled
        if tabled is None or tabled[0] is not view.said:
            tabled = self._tabled = view.said, self._scene_of(self._clip_document(view)).table(rig)
        return tabled[1]

    def _scene_of(self, document: Document) -> BlendScene:
        folder = self.desk.folders.given[0]
        scene: BlendScene = self.desk.read(lambda: reblended(self.scene, document, folder))
        return scene

    # What a visitor does

    def _slid(self) -> None:
        """A slider was moved."""
        self.desk.timeline.stop()
        self._look(standing=None)
        self._posed()
        if self.view.keys is not None:
            self.desk.hint("**Set a key here** to put these sliders on the timeline.")

    def _loaded(self) -> None:
        """What acts on the shape was changed."""
        self._load = object()
        self._posed()

    def _posed(self) -> None:
        """What the shape is like was changed."""
        view = self.view
        if view.keys is None and self._posable and view.whole:
            self._look(whole=False)
            self._tell()
        self._wanted()

    def _look(self, **changes: Any) -> None:
        """Have another view."""
        with self._looking:
            self.view = replace(self.view, **changes)

    def _wanted(self) -> None:
        """Another shape is to be seen."""
        self.desk.ask("pose", self._pose)

    def set_key(self) -> None:
        """See `pliant.engines.blend.app.panel_timeline.Wishes`."""
        frame, view, names = self.desk.timeline.frame, self.view, self.scene.shapes.names
        keys = view.keys or Keys.spread([{}, *({name: 1.0} for name in names[1:])], view.frames)
        self._put(View.on(keys.with_key(frame, self._row(view)), frame))
        self.desk.hint("The key is set. **Move the timeline**, move the sliders, and set another one.")

    def remove_key(self) -> None:
        """See `pliant.engines.blend.app.panel_timeline.Wishes`."""
        frame, keys = self.desk.timeline.frame, self.view.keys
        left = None if keys is None else keys.without(frame)
        if left is not None:
            self._put(View.on(left, frame))

    def forget_keys(self) -> None:
        """See `pliant.engines.blend.app.panel_timeline.Wishes`."""
        self._put(View(frames=default_frames(len(self.scene.shapes))))

    def last(self, frames: int) -> None:
        """See `pliant.engines.blend.app.panel_timeline.Wishes`."""
        keys = self.view.keys
        self._put(View({"frames": frames}, frames) if keys is None else View.on(keys.lasting(frames), 0))

    def save_what(self, whole: bool) -> None:
        """See `pliant.engines.blend.app.panel_timeline.Wishes`."""
        self._look(whole=whole)
        self._wanted()

    def _put(self, view: View) -> None:
        """Have another clip."""
        with self._looking:
            self.view = view
        self._show_timeline(view.standing or 0)
        self._wanted()

    # Shapes

    def _pose(self, job: Job) -> None:
        """Show about what is wanted at once and, when nothing more comes, just that."""
        rig, ahead = self.rig, self.ahead
        if rig is None or ahead is None:
            return
        turn, view = self._turn, self.view
        ahead.wait(True)
        try:
            row = self._row(view)
            if view.standing is not None:
                self.sliders.put(row, lambda: view is self.view)
            points = self._quickly(rig, row, view.standing or 0)
            self._show(points, row, turn, resting=False)
            if job.settled():
                self._settle(job, rig, view, row, turn)
        except MissingExtraError:
            self.itself.value = False
            self._load = object()
            raise
        finally:
            ahead.wait(False)

    def _quickly(self, rig: Blendshapes, row: Row, frame: int) -> Floats:
        options = float(self.friction.value), bool(self.itself.value), self._given.get("thickness")
        if self._live is None or self._live[0] != options:
            friction, itself, thickness = options
            self._live = options, LiveBlend(rig, friction=friction, self_contact=itself, thickness=thickness)
        pulls = self.pulls.now()
        try:
            read_load(rig, pulls, None)
        except InputError:  # a part that nothing holds, or a vertex that two pulls share
            self.pulls.refuse(pulls)
            self._load = object()
            raise
        pinned = self._pinned(frame)
        return self._live[1].shape(row, pulls=pulls, pinned=pinned, obstacles=self.obstacles.now(frame))

    def _pinned(self, frame: int) -> Floats | None:
        pins = self.scene.pins
        return None if pins is None or pins.path is None else pins.path[min(frame, len(pins.path) - 1)]

    def _settle(self, job: Job, rig: Blendshapes, view: View, row: Row, turn: object) -> None:
        """Show the frame of the scene."""
        frame = view.standing
        if frame is None or not view.whole:
            pose = self._solved_pose(job, rig, view, row)
            if not self._solved(view):
                self.key_widgets.outdated()
        else:
            solved = self._solve_ahead(view)
            if frame < len(solved):
                self._show(solved[frame], row, turn, resting=True)
            if self._touches or frame < len(solved):
                return  # or when it is solved, after those before it
            pose = rig.solve(
                self._table(rig, view)[frame],
                pulls=self.pulls.now(),
                pinned=self._pinned(frame),
                watch=job.check,
                **self.scene.options,
            )
        self._show(pose.points, row, turn, resting=True)
        if not pose.converged:
            self.desk.say(f"This shape: {pose.message}.")

    def _solved_pose(self, job: Job, rig: Blendshapes, view: View, row: Row) -> Pose:
        """What the scene of the pose ends with."""
        if not self._posable:  # pins are led through a clip, so a pose is no scene
            scene, touching = self._scene_of(self._clip_document(view)), {}
            if self._touches:
                names = ("friction", "self_contact", "thickness")
                touching = {"obstacles": self.obstacles.now(0)} | {name: getattr(scene, name) for name in names}
            return rig.solve(row, pulls=self.pulls.now(), pinned=self._pinned(0), watch=job.check, **touching)
        *_, pose = self._scene_of(self._pose_document(row)).poses(rig, watch=job.check)
        return pose

    def _show(self, points: Floats, row: Row, turn: object, *, resting: bool) -> None:
        rig = self.rig
        if rig is not None and turn is self._turn:
            self.drawn.move(points)
            self.looks.show(points, rig.weights(row), resting=resting)

    # The clip

    def _solve_ahead(self, view: View) -> list[Floats]:
        """Have the clip's frames solved, if they are not already; those that are."""
        ahead, wanted = self.ahead, (self._load, view.said)
        if ahead is None:
            return []
        if not self._is_ahead(wanted):
            scene = self._scene_of(self._clip_document(view))
            self._ahead_of = wanted
            ahead.start(scene)
        return ahead.frames

    def _solved(self, view: View) -> list[Floats]:
        """The clip's frames that are solved."""
        ahead = self.ahead
        return ahead.frames if ahead is not None and self._is_ahead((self._load, view.said)) else []

    def _is_ahead(self, wanted: tuple[object, Document]) -> bool:
        made = self._ahead_of
        return made is not None and made[0] is wanted[0] and made[1] is wanted[1]

    def _came(self, frames: list[Floats], count: int) -> None:
        """Another frame of the clip is solved, or the first of them has been begun."""
        view, timeline = self.view, self.desk.timeline
        timeline.ready = len(frames)
        self.key_widgets.solved(len(frames), count)
        self.desk.say("Ready." if len(frames) == count else f"{len(frames)} of {count} frames are solved ...")
        if frames and len(frames) - 1 == view.standing and view.whole and not timeline.playing:
            row = self._row(view)
            if view is self.view:
                self._show(frames[-1], row, self._turn, resting=True)

    def _show_timeline(self, frame: int) -> None:
        self.desk.timeline.show(self.view.frames, self.scene.fps, self._draw, frame=frame)
        self._tell()

    def _draw(self, frame: int) -> None:
        """The timeline has come to a frame."""
        view, timeline = self.view, self.desk.timeline
        if frame >= view.frames:
            return
        solved = self._solved(view)
        if timeline.playing and frame >= len(solved):
            if not solved:
                self._look(whole=True)
                self.desk.ask("clip", lambda job: self._begin_ahead())
            return
        with self._looking:
            if self.view.said is not view.said:
                return  # another clip has taken its place
            view = self.view = replace(self.view, standing=frame, whole=True)
        row = self._row(view)
        if not self.sliders.put(row, lambda: view is self.view):
            return  # a visitor has moved one, which counts
        self.obstacles.show(frame)
        self._tell()
        if frame < len(solved):
            self.desk.drop("pose")
            self._turn = turn = object()
            self._show(solved[frame], row, turn, resting=not timeline.playing)
        else:
            self._wanted()

    def _begin_ahead(self) -> None:
        self._solve_ahead(self.view)

    def _tell(self) -> None:
        view = self.view
        if self._read:
            self.key_widgets.tell(view.keys, self.desk.timeline.frame, view.frames, whole=view.whole)

    # Further files

    def take(self, file: Path) -> bool:
        """See `pliant.app.studio.panel.Panel`: a further shape, or weights."""
        try:
            self._set_up()  # two files in a row: the second comes before the scene with the first is there
        except PliantError as error:
            self.desk.fail(error)
        if not self._read:
            return False
        names = self.scene.shapes.names
        rows = weight_rows(file, names)
        if rows is not None:
            self._put(View.on(Keys.spread(rows, len(rows)), 0))
            return True
        shapes = joined_shapes(file, self.scene.shapes, self._given["shapes"], self.desk.uploads)
        if shapes is None:
            return False
        self.desk.show({**self.document(), "shapes": shapes})
        return True
