"""An elastic body on the page: bones drawn by clicks and turned by a handle, a body that follows them.

Whatever is done goes into the `Draft` at once. `update` reads the scene, makes the body if shape, bones or detail have
changed, and has the frames solved, the one at the timeline first. While a bone is turned with inertia, the body moves
in real time instead, and the scene's own frame is shown when it has come to rest.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from pliant.app.scene.posing import rotated_pose
from pliant.app.studio.brush import Brush
from pliant.app.studio.desk import Desk, Document
from pliant.app.studio.history import State
from pliant.app.studio.obstacles import Obstacles
from pliant.app.studio.opening import SHAPE_KINDS, kinds_of
from pliant.app.studio.pairing import Pairing
from pliant.app.studio.panel import Panel
from pliant.app.studio.viewport import Phase
from pliant.app.studio.worker import Job
from pliant.core import rotations
from pliant.core.errors import InputError
from pliant.core.options import OBSTACLES_FOLDER, Option
from pliant.core.skeleton import Skeleton, SkeletonPose
from pliant.core.topology import Floats
from pliant.engines.simulate import ElasticBody
from pliant.engines.simulate.app.panel_bones import (
    CLICK_REACH,
    BonesView,
    clicked_point,
    first_to_rotate,
    joint_near,
    joint_of_bone_near,
)
from pliant.engines.simulate.app.panel_controls import MaterialControls, PoseControls
from pliant.engines.simulate.app.panel_document import Draft, rotated, significant, world_rotations
from pliant.engines.simulate.app.panel_drawing import DrawingMode
from pliant.engines.simulate.app.panel_live import LiveBody
from pliant.engines.simulate.app.panel_making import Making
from pliant.engines.simulate.app.scene import ElasticScene, own_kinds
from pliant.engines.simulate.options import SimulateOptions
from pliant.geometry.axes import up_axis, up_vector
from pliant.geometry.retargeting import MissingJointsError, closest_joints
from pliant.io import BY_SUFFIX, read_motion

JOINTS_FOLDER = "Which joint follows which"
BODY, GIZMO = "/elastic/body", "/elastic/turn"
GIZMO_SCALE = 0.4
"""Size of the handle, of half the box."""
LATER = 0.5
"""Seconds from one pose to the next that is added."""
SWAY = 0.12
"""How far a shake goes, over half the box."""
LONGEST = 5.0
"""Seconds that a body may swing in real time after the last change."""
ROUGH_ACCURACY = 1e-2
"""Residual of strains while a bone is dragged; a finished frame has a tenth of it."""
SAME_ROTATION = 1e-6
"""Difference of quaternions below which nothing has been rotated."""


class ElasticPanel(Panel):
    """See `pliant.app.studio.panel.Panel`."""

    key_names = MappingProxyType(
        {
            "skeleton": "Bones", "drawn": "Bones", "keys": "Pose", "obstacles": "Obstacle", "material": "Material",
            "regions": "Material of a part", "static": "Inertia", "motion": "Motion",
        }
    )  # fmt: skip

    guide = (
        ("Turn bones", "**Turn a ring** of the handle: the flesh bends with the bone. Click the body to turn another."),
        ("Shake", "**Shake** it, and the flesh swings. *With inertia* it does so while you turn a bone."),
        (
            "timeline",
            "**Space** plays; **K** keeps the pose as a key. Turn bones at another frame for the next.",
        ),
    )

    def build(self) -> None:
        """All widgets, before the shape is read."""
        desk, document = self.desk, self._document
        file = document["shape"].get("file")
        follows = bool(file) and desk.read(lambda: "motion" in own_kinds(_whole(file, desk)))
        self.draft = Draft(document, follows=follows)
        self.making = Making(desk)
        self.bones = BonesView(desk.stage)
        self.pose: SkeletonPose | None = None
        self.joint = 0
        self._poses: Any = ()  # the bones at the clip's frames
        self._dragging = self._swings = False
        self._grip: tuple[Floats, ...] = np.zeros(3), rotations.IDENTITY  # the joint of a bone that is dragged
        self._live: tuple[Document, LiveBody] | None = None
        self._goal: float | None = None  # the time to go to, once there are frames up to it
        self.poses = PoseControls(self)
        self.pairing = Pairing(self.widgets, JOINTS_FOLDER, self._pair)
        self.material = MaterialControls(self)
        self.brush = Brush(self, "young", self._young, lambda: self.draft.get("regions", []), self._paint)
        self.obstacles = Obstacles(desk, "/elastic/obstacle", self._pushed)
        self._pending: list[Document] = list(document.get("obstacles", []))  # what only the scene can read
        with self.obstacles.folder:
            self._options = self.poses.options | self.add_options(OBSTACLES_FOLDER, SimulateOptions)
        self.sketching = DrawingMode(self)
        self._options |= self.add_further_options(SimulateOptions)
        desk.hint("One moment: the shape is being read.")
        self.frames.watched = not self.draft.static

    # What the window asks for

    def document(self) -> Document:
        """The scene as it is."""
        return self.draft.document()

    def state(self) -> State:
        """See `pliant.app.studio.panel.Panel`."""
        draft = self.draft.state
        return super().state() | {"draft": draft, "keys": draft["keys"], "drawn": self.sketching.unwritten}

    def restore(self, state: State) -> bool:
        """See `pliant.app.studio.panel.Panel`."""
        draft, pending = state.get("draft"), self._pending
        if draft is None or not self.shows(state["scene"]):
            return False
        obstacles = draft["given"].get("obstacles", [])
        if obstacles[: len(pending)] != pending or not self.obstacles.put(obstacles[len(pending) :]):
            return False
        self.desk.timeline.stop()
        self.draft.state = draft
        self.sketching.reload(state["drawn"])
        self.show_options()
        self.material.show()
        self.brush.show()
        self.changed()
        return True

    @property
    def metres(self) -> float | None:
        """See `pliant.app.studio.panel.Panel`: the scene says how long the body is."""
        size, length = self.draft.get("size", None), self._longest
        return size / length if isinstance(size, (int, float)) and length else None

    def measure(self, metres: float | None) -> None:
        """See `pliant.app.studio.panel.Panel`."""
        if self._longest:
            self.desk.seal("Units")
            self.draft.put("size", None if metres is None else significant(metres * self._longest)[0])
            self.show_options()
            self.changed()

    @property
    def _longest(self) -> float:
        """Side of the shape's box; 0: it is not read yet."""
        return float(np.ptp(self.drawn.shape.points, axis=0).max()) if self.desk.stage.has(BODY) else 0.0

    def take(self, file: Path) -> bool:
        """Bones or a motion from a file."""
        if not file.is_file() or file.suffix.lower() not in BY_SUFFIX:
            return False
        kinds = set(kinds_of(file))
        if kinds & SHAPE_KINDS:
            return False
        trial = Draft(self.document(), follows=self.draft.followed is not None)
        if "motion" in kinds:
            trial.by_hand, trial.followed = False, {"file": str(file)}
        elif "skeleton" in kinds:
            trial.put("skeleton", {"file": str(file)})
            trial.keep_joints((), before=self.pose.skeleton.names if self.pose is not None else ())
        else:
            return False
        try:
            Making(self.desk).scene(trial.document())
        except InputError as error:
            if not isinstance(error.__cause__, MissingJointsError) or self.pose is None:
                raise
            self._suggest(trial, file, self.pose.skeleton)
        self.draft.by_hand, self.draft.followed, self.draft.keys = trial.by_hand, trial.followed, trial.keys
        for key in ("skeleton", "regions", "muscles"):
            self.draft.put(key, trial.get(key, None))
        self.changed(watch=True)
        return True

    def _suggest(self, trial: Draft, file: Path, skeleton: Skeleton) -> None:
        """Have bones follow the joints of a motion that are called most like them, for a visitor to correct."""
        source = read_motion(file).skeleton
        names = closest_joints(skeleton.names, source)
        if not any(names.values()):
            names[skeleton.names[0]] = source.names[0]
        trial.followed = {"file": str(file), "map": names}
        Making(self.desk).scene(trial.document())
        self.desk.say(f"The joints of {file.name} have other names: see {JOINTS_FOLDER}.")

    def _pair(self, names: dict[str, str]) -> None:
        """Have bones follow other joints of the motion."""
        if self.draft.followed is not None and any(names.values()):
            self.draft.followed = {**self.draft.followed, "map": names}
            self.changed(watch=True)
        else:
            self.request(clip=False)

    def _show_pairs(self, scene: ElasticScene) -> None:
        mapped = None if self.draft.by_hand else scene.mapped
        if mapped is None or not mapped.joints:
            self.pairing.show({}, ())
            return
        facts = mapped.limbs.facts() if mapped.limbs is not None else {}
        pairs = {name: mapped.names.get(name, "") for name in scene.skeleton.names}
        self.pairing.show(pairs, mapped.joints, "\n".join(f"- **{about}**: {fact}" for about, fact in facts.items()))

    # What is shown

    def value_of(self, about: Option) -> Any:
        """See `pliant.app.studio.panel.Panel`."""
        return about.value_in(self.draft.given)

    def set_option(self, about: Option, value: Any) -> None:
        """See `pliant.app.studio.panel.Panel`."""
        written = significant(value)[0] if isinstance(value, float) else value
        self.draft.given = about.put(self.draft.given, written)
        self.changed()

    def show_options(self) -> None:
        """The options as the draft has them; those that need inertia, only where there is any."""
        for option in self._options.values():
            option.widget.visible = not (self.draft.static and "inertia" in option.about.needs)
            option.show(self.value_of(option.about))

    def changed(self, *, watch: bool = False) -> None:
        """The draft has changed; watch: show frames as they are solved."""
        if watch:
            self.frames.watched = True
        self.obstacles.see(not self.draft.static)
        self.request()

    @property
    def _paints(self) -> bool:
        return self.brush.on and not self.sketching.on

    def _young(self) -> float:
        """Of the body."""
        return float(self.value_of(next(about for about in SimulateOptions.all() if about.name == "young")))

    def _paint(self, regions: list[Document]) -> None:
        """Have regions of other materials."""
        self.draft.put("regions", regions or None)
        self.brush.show()
        self.changed()

    def _pushed(self) -> None:
        """An obstacle has been changed, which needs inertia: a body that moves in real time feels it at once."""
        self.draft.put("obstacles", [*self._pending, *self.obstacles.tables()] or None)
        if self.obstacles.shown:
            self.draft.put("static", None)
        self._swings = True
        self.desk.timeline.stop()
        self.changed()

    def update(self, job: Job) -> None:
        """See `pliant.app.studio.panel.Panel`."""
        if self.sketching.on:
            return
        document = self.draft.document()
        scene = self.making.scene(document)
        self._set_out(scene)
        self._show_pairs(scene)
        lacking = self.making.lacks(document)
        if lacking == "material" and not job.settled():
            return
        if lacking == "body":
            self.desk.hint("One moment: **the body is being made**, which takes some seconds.")
        body = self.making.body(document, scene)
        if lacking == "body":
            job.check()  # else it is shown, though something newer may wait: or a quick hand would see nothing move
        if self._swings and not scene.static and not self._swing(job, document, scene, body):
            return
        self._swings = False
        self._load(scene)
        if self._dragging and scene.static:
            self._show_roughly(job, scene, body)
            if not job.settled():
                return
        self.poses.show()
        self._tell(scene)
        solver = partial(self._solve_poses if scene.static else self._solve_motion, scene, body)
        self.frames.solve(object(), solver, stream=not scene.static)

    def _set_out(self, scene: ElasticScene) -> None:
        """The shape, its bones and obstacles on the stage, before there is a body."""
        stage = self.desk.stage
        if not stage.has(BODY):
            stage.look_at(scene.shape.points, up_axis(scene.shape, scene.up))
            self.drawn = stage.shape(BODY, scene.shape)
            self.drawn.on_click(self._clicked)
            self.drawn.on_drag(lambda *drag: (self.brush.drag if self._paints else self._pulled)(*drag))
            self.brush.take(self.drawn)
            self.obstacles.around(scene.shape.points)
        if self._pending and not scene.static:
            self.obstacles.take(self._pending, scene.obstacles[: len(self._pending)])
            self._pending = []
        known = self.pose
        if known is None or known.skeleton is not scene.skeleton:
            self.joint = first_to_rotate(scene.skeleton, up_vector(up_axis(scene.shape, scene.up)))
            self._load(scene)
            self.pose = self._pose_at(self.frames.frame)
            self.material.name_parts(scene.skeleton.names)
            self.poses.show()
            self.choose(scene.skeleton.names[self.joint], anew=True)
        self._show_gizmo()

    def _load(self, scene: ElasticScene) -> None:
        """Have the frames of a scene on the timeline, none of them solved."""
        poses = self._poses = scene.frame_poses
        goal = None if self._goal is None else round(self._goal * poses.fps)
        self._goal = None
        self.frames.drop()
        self.frames.resize(len(scene), poses.fps, frame=goal)
        keys = [key.get("time", 0.0) * poses.fps for key in self.draft.keys] if self.draft.by_hand else []
        self.desk.timeline.show_keys(keys, self if self.draft.by_hand else None)

    def _tell(self, scene: ElasticScene) -> None:
        if not self.draft.by_hand:
            self.desk.hint("The body follows a motion: **play or scrub the timeline**. To pose, choose *my poses*.")
        elif scene.static:
            self.desk.hint("**Turn a ring of the handle** to bend the body. Click another part to turn that one.")
        else:
            self.desk.hint("**Turn a ring of the handle**: the body swings along, live. **Shake** shows it at once.")

    def _pose_at(self, frame: int) -> SkeletonPose:
        """The bones at a frame."""
        pose: SkeletonPose = self._poses[min(frame, len(self._poses) - 1)]
        return pose

    # Solving

    def _swing(self, job: Job, document: Document, scene: ElasticScene, body: ElasticBody) -> bool:
        """Move the body in real time until it is at rest; False if something newer was requested before."""
        poses, began, frame = scene.frame_poses, time.perf_counter(), self.frames.frame
        pose = poses[min(frame, len(poses) - 1)]
        kept = {key: value for key, value in document.items() if key not in ("motion", "obstacles", "hold")}
        if self._live is None or self._live[0] != kept or self._live[1].body is not body:
            start = self._pose_at(frame) if len(self._poses) else pose
            self._live = kept, LiveBody(scene, body, start, frame)
        live = self._live[1]
        live.among(scene, frame)
        while not live.at_rest(pose) and time.perf_counter() - began < LONGEST:
            wait = live.catch_up(pose)
            self._move(body.points_of(live.state), job)
            if not job.settled(wait):
                return False
        return True

    def _show_roughly(self, job: Job, scene: ElasticScene, body: ElasticBody) -> None:
        """The frame at the timeline, at rest."""
        frame = self.frames.frame
        self._move(scene.posed(body, self._pose_at(frame), frame, accuracy=ROUGH_ACCURACY).points, job)

    def _solve_poses(self, scene: ElasticScene, body: ElasticBody, job: Job) -> Iterator[tuple[int, Any]]:
        """Frames at rest from the timeline's on, round to there; one that is looked at comes first."""
        solved, count = set[int](), self.frames.count
        while len(solved) < count:
            at = self.frames.frame
            k = next(k % count for k in range(at, at + count) if k % count not in solved)
            solved.add(k)
            yield k, scene.posed(body, self._pose_at(k), k).points

    def _solve_motion(self, scene: ElasticScene, body: ElasticBody, job: Job) -> Iterator[tuple[int, Any]]:
        """Frames of the dynamics in order."""
        for k, state in enumerate(scene.states(body)):
            if state.problem:
                self.frames.resize(max(k, 1), self.frames.fps, frame=max(k, 1) - 1)
                advice = "make it firmer, or move it more gently"
                raise InputError(f"the body flew apart in frame {k}: {state.problem}; {advice}")
            yield k, body.points_of(state)

    # What is drawn

    def draw(self, frame: int) -> None:
        """See `pliant.app.studio.panel.Panel`: the body, as far as it is solved, and its bones."""
        if self.sketching.on:
            return
        solved, pose = self.frames.solved.get(frame), self._pose_at(frame)
        if solved is not None:
            self._move(solved)
        self.obstacles.draw(frame)
        if not self._dragging:
            self.pose = pose
            self.show_bones()

    def _move(self, points: Floats, job: Job | None = None) -> None:
        with self.drawing(job):
            if not self.sketching.on:
                self.drawn.move(points)

    def show_bones(self) -> None:
        """Bones and handle in the pose that is shown."""
        assert self.pose is not None
        with self.drawing():
            self.bones.show(self.pose, self.joint if self.draft.by_hand else None)
            if self.desk.stage.has(GIZMO) and not self._dragging:
                positions, orientations = world_rotations(self.pose)
                self.desk.stage.move(GIZMO, positions[self.joint], orientations[self.joint])

    def _show_gizmo(self) -> None:
        """The handle at the chosen joint, if bones can be turned now."""
        if self.desk.stage.has(GIZMO):
            self.desk.stage.show(GIZMO, self.draft.by_hand and not self.sketching.on)

    # Turning bones

    def choose(self, name: str, *, anew: bool = False) -> None:
        """Have the handle at a joint."""
        if self.pose is None or name not in self.pose.skeleton.names:
            return
        with self.drawing():
            joint = self.pose.skeleton.index(name)
            if joint == self.joint and not anew:
                self.desk.stage.selection.select(GIZMO)
                return
            self.joint = joint
            self.poses.name_joints(self.pose.skeleton.names, name)
            positions, orientations = world_rotations(self.pose)
            root = bool(self.pose.skeleton.parents[joint] < 0)
            self.desk.stage.remove(GIZMO)
            self._dragging = False  # the end of a drag of it is not heard any more
            at, shown = positions[joint], {"rotation": orientations[joint], "moves": root, "rotates": True}
            self.desk.stage.handle(GIZMO, at, partial(self._rotated, name), title=name, scale=GIZMO_SCALE, **shown)
            self._show_gizmo()
            self.show_bones()

    def _rotated(self, name: str, position: Floats, rotation: Floats, phase: Phase) -> None:
        """The handle at a joint is dragged, unless the bones are others by now."""
        self._dragging = phase != "end" and not self.sketching.on
        pose = self.pose
        if self.sketching.on or pose is None or name not in pose.skeleton.names:
            return
        if phase == "start":
            self.desk.timeline.stop()
            self.frames.watched = False
            return
        skeleton, j = pose.skeleton, pose.skeleton.index(name)
        positions, orientations = world_rotations(pose)
        above = orientations[skeleton.parents[j]] if skeleton.parents[j] >= 0 else rotations.IDENTITY
        step = position - positions[j] if skeleton.parents[j] < 0 else np.zeros(3)
        if (
            abs(rotation @ orientations[j]) < 1 - SAME_ROTATION**2
            or np.abs(step).max() > SAME_ROTATION * self.desk.stage.half
        ):
            own = rotations.multiply(rotations.inverse(above), rotation)
            key = rotated(self.draft.set_key(self.frames.frame, self.frames.fps, pose), skeleton.names[j], own)
            self._pose_by(key, np.array(key.get("move", [0.0, 0.0, 0.0])) + step)
        elif phase == "end":
            self.changed()

    def _pulled(self, start: Floats, end: Floats, phase: Phase) -> None:
        """The body is dragged itself: the bone that is nearest to where it was grabbed turns about its joint."""
        if self.pose is None or self.sketching.on or not self.draft.by_hand:
            return
        if phase == "start":
            joint = joint_of_bone_near(self.pose, start)
            self.choose(self.pose.skeleton.names[joint])
            self._grip = tuple(values[joint] for values in world_rotations(self.pose))
        at, rotation = self._grip
        orientation = rotations.multiply(rotations.between(start - at, end - at), rotation)
        self.desk.stage.move(GIZMO, at, orientation)
        self._rotated(self.pose.skeleton.names[self.joint], at, orientation, phase)

    def _pose_by(self, key: dict[str, Any], move: Floats) -> None:
        """Keep a key at the timeline's time, and show its bones at once."""
        assert self.pose is not None
        kept = {name: value for name, value in key.items() if name != "move"}
        if np.abs(move).max() > 0:
            kept["move"] = significant(*move)
        self.draft.keep(kept)
        self.pose = rotated_pose(self.pose.skeleton, kept.get("turns", {}), move=move)
        self.show_bones()
        self._swings = True
        self.changed()

    @property
    def _posed(self) -> SkeletonPose:
        """The pose, of bones that have flesh."""
        if self.pose is None or self.sketching.on:
            raise InputError("the bones have no flesh yet; put flesh on them, then pose them")
        return self.pose

    def straighten(self) -> None:
        """The chosen joint as at rest against its parent."""
        pose = self._posed
        key = self.draft.set_key(self.frames.frame, self.frames.fps, pose)
        name = pose.skeleton.names[self.joint]
        self._pose_by(rotated(key, name, rotations.IDENTITY), np.array(key.get("move", [0.0, 0.0, 0.0])))

    def to_rest(self) -> None:
        """All joints as at rest."""
        key = self.draft.set_key(self.frames.frame, self.frames.fps, self._posed)
        self._pose_by({"time": key["time"]}, np.zeros(3))

    def see_bones(self, seen: bool) -> None:
        """Show the bones over the body, or the body alone."""
        self.bones.visible = seen
        if self.desk.stage.has(BODY) and not self.sketching.on:
            self.show_bones()

    def refresh(self) -> None:
        """Bring handle and body up to date, after bones have been drawn or before."""
        self._show_gizmo()
        self.changed()

    def _clicked(self, origin: Floats, direction: Floats) -> None:
        if self._paints:
            self.brush.click(origin, direction)
            return
        self.act(lambda: self._click(origin, direction))

    def _click(self, origin: Floats, direction: Floats) -> None:
        """A click on the body chooses a bone, or draws one."""
        if self.sketching.on:
            self.sketching.click(origin, direction)
            return
        if self.pose is None or not self.draft.by_hand:
            return
        near = None
        if self.bones.visible:
            near = joint_near(self.pose.world()[0], origin, direction, CLICK_REACH * self.bones.radius)
        if near is None:
            point = clicked_point(self.drawn.shape, self.drawn.points, origin, direction)
            near = None if point is None else joint_of_bone_near(self.pose, point)
        if near is not None:
            self.choose(self.pose.skeleton.names[near])

    # Poses over time

    def set_key(self) -> None:
        """Keep the pose at the timeline's time."""
        self.draft.set_key(self.frames.frame, self.frames.fps, self._posed)
        self.changed()

    def add_pose(self) -> None:
        """A further pose after the last, as it is now, and go there."""
        if self.pose is None:
            return
        last = self.draft.keys[-1]
        at = round(last.get("time", 0.0) + LATER, 6)
        self.draft.keep({**last, "time": at})
        self._goal = at
        self.changed()

    def remove_key(self, frame: int) -> None:
        """See `pliant.app.studio.timeline.KeyEditor`."""
        if not self.draft.remove_key(frame, self.frames.fps):
            raise InputError(f"no key is at frame {frame}; go to one of those that the timeline shows")
        self.changed()

    def move_key(self, frame: int, to: int, *, copy: bool = False) -> None:
        """See `pliant.app.studio.timeline.KeyEditor`."""
        if self.draft.move_key(frame, to, self.frames.fps, copy=copy):
            self._goal = to / self.frames.fps
            self.changed()

    def shake(self) -> None:
        """Have the roots go there and back after the last pose, with inertia."""
        side = self.desk.stage.world(np.array([1.0, 0.0, 0.0])) - self.desk.stage.world(np.zeros(3))
        self.draft.shake(SWAY * side)
        self.changed(watch=True)


def _whole(file: str, desk: Desk) -> str:
    return str(desk.folders.given[0] / file)
