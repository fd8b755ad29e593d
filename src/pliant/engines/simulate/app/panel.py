"""Flesh on bones on the page: bones drawn by clicks and turned by a handle, flesh that follows at rest or with inertia.

Whatever is done goes into the `Draft` at once, and a worker brings the page up to date with it (`_update`): it reads
the scene, makes the body if shape, bones or detail have changed, and shows the frame at the timeline's place. Further
frames are made in the background. While a bone is turned with inertia, the flesh swings in real time instead, and what
the scene says is shown when it has come to rest.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from pliant.app.scene.media import up_axis
from pliant.app.scene.posing import turned_pose
from pliant.app.studio.panel import Desk, Document
from pliant.app.studio.stage import Phase
from pliant.app.studio.worker import Job
from pliant.core import rotations
from pliant.core.errors import FileError, InputError
from pliant.core.skeleton import SkeletonPose
from pliant.core.topology import Floats
from pliant.engines.simulate import ElasticBody
from pliant.engines.simulate.app.panel_bones import NEAR as PASSES
from pliant.engines.simulate.app.panel_bones import (
    BonesView,
    clicked_place,
    first_to_turn,
    joint_near,
    joint_of_bone_near,
)
from pliant.engines.simulate.app.panel_controls import FleshControls, PoseActions, PoseControls
from pliant.engines.simulate.app.panel_document import Draft, significant, turned, world_turns
from pliant.engines.simulate.app.panel_drawing import DrawingMode
from pliant.engines.simulate.app.panel_frames import Making, Reel
from pliant.engines.simulate.app.panel_live import LiveFlesh
from pliant.engines.simulate.app.panel_obstacles import InTheWay
from pliant.engines.simulate.app.scene import ElasticScene, own_kinds
from pliant.geometry.retargeting import up_vector
from pliant.io import BY_SUFFIX, kinds_in
from pliant.io.source import find

BODY, GIZMO = "/elastic/body", "/elastic/turn"
SEEN_THROUGH = 0.55
"""Opacity of the body while its bones are seen."""
RINGS = 0.4
"""Size of the handle, of half the box."""
LATER = 0.5
"""Seconds from one pose to the next that is added."""
SWAY = 0.12
"""How far a shake goes, over half the box."""
LONGEST = 5.0
"""Seconds that live flesh may swing after the last touch."""
SAME = 1e-6
"""Difference of quaternions below which nothing has been turned."""


class ElasticPanel:
    """See `pliant.app.studio.panel.Panel`."""

    def __init__(self, desk: Desk, document: Document) -> None:
        self.desk = desk
        file = document["shape"].get("file")
        follows = bool(file) and desk.read(lambda: "motion" in own_kinds(_whole(file, desk)))
        self.draft = Draft(document, follows=follows)
        self.making, self.reel = Making(desk), Reel(desk, self._draw)
        self.bones = BonesView(desk.stage)
        self.drawn: Any = None
        self.pose: SkeletonPose | None = None
        self.joint = 0
        self._held = self._swings = False
        self._live: tuple[Document, LiveFlesh] | None = None
        self._clicks = 0
        self._drawing_bones = threading.RLock()  # the page's loop, the worker and the timeline all do
        actions = PoseActions(
            self.choose, self.straighten, self.to_rest, self.set_key, self.add_pose, self.remove_key,
            self.shake, self.see_bones, self._retimed,
        )  # fmt: skip
        self.poses = PoseControls(desk, self.draft, actions)
        self.flesh = FleshControls(desk, self.draft, self._changed)
        self.way = InTheWay(desk, self.draft, self._pushed)
        self.drawing = DrawingMode(self)
        desk.hint("One moment: the shape is being read.")
        self.reel.watched = not self.draft.static
        self._changed(self.reel.watched)

    # What the window asks for

    def document(self) -> Document:
        """The scene as it stands."""
        return self.draft.document()

    def take(self, file: Path) -> bool:
        """Bones or a motion from a file."""
        if not file.is_file() or file.suffix.lower() not in BY_SUFFIX:
            return False
        kinds = set(kinds_in(find(file, lambda name: True)[0]))
        if kinds & {"mesh", "tets", "points", "animation", "shapes"}:
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
            if "no joint for" not in str(error):
                raise
            words = "its joints are called otherwise than these bones; name them alike (Draw bones, Rename it), or work"
            raise FileError(file.name, f"{words} with Cage, where a shape follows any motion") from None
        self.draft.by_hand, self.draft.followed, self.draft.keys = trial.by_hand, trial.followed, trial.keys
        for key in ("skeleton", "regions"):
            self.draft.put(key, trial.get(key, None))
        self._changed(True)
        return True

    # What is shown

    def _changed(self, watch: bool = False) -> None:
        """The draft says something else; watch: show frames as they are made."""
        self.reel.watched = self.reel.watched or watch
        self.desk.drop("run")
        self.desk.ask("pose", self._update)

    def _retimed(self, watch: bool) -> None:
        """Inertia is switched, or the bones follow something else."""
        self.way.show()
        self._changed(watch)

    def _pushed(self) -> None:
        """An obstacle has been moved: live flesh feels it at once."""
        self._swings = True
        self.desk.timeline.stop()
        self._changed()

    def _update(self, job: Job) -> None:
        """Bring the page up to date with the draft."""
        if self.drawing.on:
            return
        document = self.draft.document()
        scene = self.making.scene(document)
        self._set_out(scene)
        self.way.know(document, scene)
        lacking = self.making.lacks(document)
        if lacking == "material" and not job.settled():
            return
        if lacking == "body":
            self.desk.hint("One moment: **flesh is being put on the bones**, which takes some seconds.")
        body = self.making.body(document, scene)
        if lacking == "body":
            job.check()  # else it is shown, though something newer may wait: or a quick hand would see nothing move
        if self._swings and not scene.static and not self._swing(job, document, scene, body):
            return
        self._swings = False
        self.reel.load(scene, body)
        if self._held and scene.static:
            self.reel.sketch()
            if not job.settled():
                return
        self.poses.show()
        self._tell(scene)
        self.desk.ask("run", self.reel.make)

    def _set_out(self, scene: ElasticScene) -> None:
        """The shape and its bones on the stage, before there is flesh."""
        stage = self.desk.stage
        if self.drawn is None:
            stage.look_at(scene.shape.points, up_axis(scene.shape, scene.up).removeprefix("-"))
            self.drawn = stage.shape(BODY, scene.shape, opacity=SEEN_THROUGH)
            self.drawn.on_click(self._clicked)
        known = self.pose
        if known is None or known.skeleton is not scene.skeleton:
            self.joint = first_to_turn(scene.skeleton, up_vector(up_axis(scene.shape, scene.up)))
            self.reel.load(scene, None)
            self.pose = self.reel.pose()
            self.flesh.name_parts(scene.skeleton.names)
            self.poses.show()
            self.choose(scene.skeleton.names[self.joint], anew=True)
        self._show_gizmo()

    def _tell(self, scene: ElasticScene) -> None:
        if not self.draft.by_hand:
            self.desk.hint("The flesh follows a motion: **play or scrub the timeline**. To pose, choose *my poses*.")
        elif scene.static:
            self.desk.hint("**Turn a ring of the handle** to bend the body. Click another part to turn that one.")
        else:
            self.desk.hint("**Turn a ring of the handle**: the flesh swings along, live. **Shake** shows it at once.")

    def _swing(self, job: Job, document: Document, scene: ElasticScene, body: ElasticBody) -> bool:
        """Live flesh, until it is calm; False if something newer is wanted before."""
        poses, began = scene.frame_poses, time.perf_counter()
        frame = self.reel.frame
        pose = poses[min(frame, len(poses) - 1)]
        for_this = {key: value for key, value in document.items() if key not in ("motion", "obstacles", "hold")}
        if self._live is None or self._live[0] != for_this or self._live[1].body is not body:
            self._live = (for_this, LiveFlesh(scene, body, self.reel.pose() if self.reel.made else pose, frame))
        live = self._live[1]
        live.among(scene, frame)
        while not live.calm_in(pose) and time.perf_counter() - began < LONGEST:
            wait = live.catch_up(pose)
            self._move(body.embed(live.state.nodes))
            if not job.settled(wait):
                return False
        return True

    def _draw(self, points: Floats | None, pose: SkeletonPose, frame: int) -> None:
        """A frame of the reel; without points, where its bones are."""
        if self.drawing.on:
            return
        if points is not None:
            self._move(points)
        self.way.frame(frame)
        if not self._held:
            self.pose = pose
            self._show_bones()

    def _move(self, points: Floats) -> None:
        if not self.drawing.on:
            self.drawn.move(points)

    def _show_bones(self) -> None:
        """Bones and handle in the pose that is shown."""
        assert self.pose is not None
        with self._drawing_bones:
            self.bones.show(self.pose, self.joint if self.draft.by_hand else None)
            if self.desk.stage.has(GIZMO) and not self._held:
                places, turns = world_turns(self.pose)
                self.desk.stage.place(GIZMO, places[self.joint], turns[self.joint])

    def _show_gizmo(self) -> None:
        """The handle at the chosen joint, if bones can be turned now."""
        stage, wanted = self.desk.stage, self.draft.by_hand and not self.drawing.on
        if stage.has(GIZMO):
            stage.show(GIZMO, wanted)

    # Turning bones

    def choose(self, name: str, *, anew: bool = False) -> None:
        """Have the handle at a joint."""
        if self.pose is None or name not in self.pose.skeleton.names:
            return
        with self._drawing_bones:
            joint = self.pose.skeleton.index(name)
            if joint == self.joint and not anew:
                return
            self.joint = joint
            self.poses.name_joints(self.pose.skeleton.names, name)
            places, turns = world_turns(self.pose)
            root = bool(self.pose.skeleton.parents[joint] < 0)
            self.desk.stage.remove(GIZMO)
            self.desk.stage.handle(
                GIZMO, places[joint], self._turned, turn=turns[joint], moves=root, turns=True, scale=RINGS
            )
            self._show_gizmo()
            self._show_bones()

    def _turned(self, place: Floats, turn: Floats, phase: Phase) -> None:
        """The handle is dragged."""
        assert self.pose is not None
        self._held = phase != "end"
        if phase == "start":
            self.desk.timeline.stop()
            self.reel.watched = False
            return
        skeleton, j = self.pose.skeleton, self.joint
        places, turns = world_turns(self.pose)
        above = turns[skeleton.parents[j]] if skeleton.parents[j] >= 0 else rotations.IDENTITY
        went = place - places[j] if skeleton.parents[j] < 0 else np.zeros(3)
        if abs(turn @ turns[j]) < 1 - SAME**2 or np.abs(went).max() > SAME * self.desk.stage.half:
            key = turned(self.draft.set_key(self.reel.time, self.pose), skeleton.names[j], _own(above, turn))
            self._pose_by(key, np.array(key.get("move", [0.0, 0.0, 0.0])) + went)
        elif phase == "end":
            self._changed()

    def _pose_by(self, key: dict[str, Any], move: Floats) -> None:
        """Keep a key at the timeline's place, and show its bones at once."""
        assert self.pose is not None
        kept = {name: value for name, value in key.items() if name != "move"}
        if np.abs(move).max() > 0:
            kept["move"] = significant(*move)
        self.draft.keep(kept)
        self.pose = turned_pose(self.pose.skeleton, kept.get("turns", {}), move=move)
        self._show_bones()
        self._swings = True
        self._changed()

    def straighten(self) -> None:
        """The chosen joint as at rest against its parent."""
        assert self.pose is not None
        key = self.draft.set_key(self.reel.time, self.pose)
        name = self.pose.skeleton.names[self.joint]
        self._pose_by(turned(key, name, rotations.IDENTITY), np.array(key.get("move", [0.0, 0.0, 0.0])))

    def to_rest(self) -> None:
        """All joints as at rest."""
        assert self.pose is not None
        key = self.draft.set_key(self.reel.time, self.pose)
        self._pose_by({"time": key["time"]}, np.zeros(3))

    @property
    def opacity(self) -> float | None:
        """Of the body: its bones are seen through it, or it is solid."""
        return SEEN_THROUGH if self.bones.visible else None

    def see_bones(self, seen: bool) -> None:
        """Show the bones through the flesh, or the flesh alone."""
        self.bones.visible = seen
        if self.drawn is not None and not self.drawing.on:
            self.drawn.fade(self.opacity)
            self._show_bones()

    def refresh(self) -> None:
        """Bring handle and flesh up to date, after bones have been drawn or before."""
        self._show_gizmo()
        self._changed()

    def _clicked(self, origin: Floats, direction: Floats) -> None:
        """A click on the body: each counts, in its own lane."""
        self._clicks += 1
        self.desk.ask(f"click {self._clicks}", lambda job: self._click(origin, direction))

    def _click(self, origin: Floats, direction: Floats) -> None:
        if self.drawing.on:
            self.drawing.click(origin, direction)
            return
        if self.pose is None or not self.draft.by_hand:
            return
        near = None
        if self.bones.visible:
            near = joint_near(self.pose.world()[0], origin, direction, PASSES * self.bones.radius)
        if near is None:
            place = clicked_place(self.drawn.shape, self.drawn.points, origin, direction)
            near = None if place is None else joint_of_bone_near(self.pose, place)
        if near is not None:
            self.choose(self.pose.skeleton.names[near])

    # Poses over time

    def set_key(self) -> None:
        """Keep the pose at the timeline's place."""
        if self.pose is not None:
            self.draft.set_key(self.reel.time, self.pose)
            self._changed()

    def add_pose(self) -> None:
        """A further pose after the last, as it is now, and go there."""
        if self.pose is None:
            return
        last = self.draft.keys[-1]
        at = round(last.get("time", 0.0) + LATER, 6)
        self.draft.keep({**last, "time": at})
        self.reel.go_to(at)
        self._changed()

    def remove_key(self) -> None:
        """Take the key at the timeline's place away."""
        if not self.draft.remove_key(self.reel.time):
            raise InputError("no key is at the timeline's place; go to one of those listed")
        self._changed()

    def shake(self) -> None:
        """Have the roots go there and back after the last pose, with inertia."""
        side = self.desk.stage.world(np.array([1.0, 0.0, 0.0])) - self.desk.stage.world(np.zeros(3))
        self.draft.shake(SWAY * side)
        self.way.show()
        self._changed(True)


def _own(above: Floats, turn: Floats) -> Floats:
    """How a joint turns against its rest, from how it and its parent are turned in the world."""
    return rotations.multiply(rotations.inverse(above), turn)


def _whole(file: str, desk: Desk) -> str:
    return str(desk.folders.given[0] / file)
