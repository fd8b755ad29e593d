"""The frames of an elastic scene as the studio has them: the scene and body that are up to date, and a reel of frames.

A document changes with every drag, its shape, bones and flesh seldom: what has not changed is kept. Frames are held as
the body's nodes, whatever the shape's size; drawn, they are the very points that the scene's run gives.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal

from pliant.app.scene.writing import unwritten
from pliant.app.studio.panel import Desk, Document
from pliant.app.studio.worker import Job
from pliant.core.errors import InputError
from pliant.core.skeleton import SkeletonPose
from pliant.core.topology import Floats
from pliant.engines.simulate import ElasticBody
from pliant.engines.simulate.app.scene import ElasticScene, read_elastic

BUILT = ("shape", "skeleton", "nodes", "warping", "rotations")
"""Keys of a scene that make another body."""
MADE = ("material", "regions", "size")
"""Keys that only make it of something else."""
ROUGH = 1e-2
"""What strains may lack while a bone is dragged; a finished frame has a tenth of it."""


class Making:
    """The scene of a document and its body."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._scene: ElasticScene | None = None
        self._body: ElasticBody | None = None
        self._named: Document = {}
        self._built: Document = {}
        self._made: Document = {}

    def scene(self, document: Document) -> ElasticScene:
        """Read as `pliant run` would; a shape and bones that are known are not read again."""
        known, named = self._scene, _part(document, ("shape", "skeleton"))
        same = known is not None and named["shape"] == self._named["shape"]
        shape = known.shape if known is not None and same else None
        bones = known.skeleton if known is not None and named == self._named else None
        text = unwritten(document, self._desk.folders.given[0])
        found: ElasticScene = self._desk.read(lambda: read_elastic(text, shape=shape, skeleton=bones))
        self._scene, self._named = found, named
        return found

    def lacks(self, document: Document) -> Literal["body", "material", ""]:
        """What has to be made for a document before it can be shown."""
        if self._body is None or _part(document, BUILT) != self._built:
            return "body"
        return "material" if _part(document, MADE) != self._made else ""

    def body(self, document: Document, scene: ElasticScene) -> ElasticBody:
        """The body of a scene."""
        lacking = self.lacks(document)
        if lacking == "body" or self._body is None:
            self._body = None
            self._body = scene.body()
        elif lacking == "material":
            self._body = scene.body(like=self._body)
        self._built, self._made = _part(document, BUILT), _part(document, MADE)
        return self._body


def _part(document: Document, keys: tuple[str, ...]) -> Document:
    return {key: document.get(key) for key in keys}


class Reel:
    """Frames of one scene, made in the background.

    draw: shows points and the bones' pose of a frame, by its number; points are None if the frame is not made yet.
    """

    def __init__(self, desk: Desk, draw: Callable[[Floats | None, SkeletonPose, int], None]) -> None:
        self._desk, self._draw = desk, draw
        self.scene: ElasticScene | None = None
        self._body: ElasticBody | None = None
        self._poses: Any = ()
        self._count = 0
        self._goal: float | None = None
        self.fps = 30.0
        self.made: dict[int, Floats] = {}
        """Nodes by frame."""
        self.watched = False
        """Whether the frames are played when they are made, and those of dynamics also shown meanwhile."""

    @property
    def frame(self) -> int:
        """Where the timeline stands."""
        return min(self._desk.timeline.frame, max(self._count - 1, 0))

    @property
    def time(self) -> float:
        """Seconds there."""
        return self.frame / self.fps

    def pose(self, frame: int | None = None) -> SkeletonPose:
        """The bones at a frame."""
        at: SkeletonPose = self._poses[min(self.frame if frame is None else frame, len(self._poses) - 1)]
        return at

    def go_to(self, time: float) -> None:
        """Stand at a time, once there are frames up to it."""
        self._goal = time

    def load(self, scene: ElasticScene, body: ElasticBody | None) -> None:
        """Have the frames of another scene, none of them made."""
        poses, count = scene.frame_poses, len(scene)
        wanted = self._desk.timeline.frame if self._goal is None else round(self._goal * poses.fps)
        stand = min(wanted, count - 1)
        moved = (count, poses.fps) != (self._count, self.fps) or self._goal is not None
        self._goal = None
        self.made = {}  # before the body that they are of, for who draws meanwhile
        self.scene, self._body, self._poses = scene, body, poses
        self._count, self.fps = count, poses.fps
        if moved:
            self._desk.timeline.show(count, poses.fps, self.show, frame=stand)

    def show(self, frame: int) -> None:
        """Draw a frame, as far as it is made."""
        body = self._body
        nodes = self.made.get(frame)
        self._draw(None if nodes is None or body is None else body.embed(nodes), self.pose(frame), frame)

    def sketch(self) -> None:
        """Draw the frame at the timeline's place, at rest and roughly."""
        scene, body = self.scene, self._body
        if scene is None or body is None or (body.warping, body.rotations) != ("corotated", "diffused"):
            return
        rough = body.pose(self.pose(), gravity=scene.pull, accuracy=ROUGH)
        self._draw(rough.points, self.pose(), self.frame)

    def make(self, job: Job) -> None:
        """Make all frames, the one that is looked at first, in a lane that is dropped when anything changes."""
        scene, body, made = self.scene, self._body, self.made
        if scene is None or body is None:
            return
        if scene.static:
            self._pose_all(job, scene, body, made)
        else:
            self._simulate(job, scene, body, made)

    def _pose_all(self, job: Job, scene: ElasticScene, body: ElasticBody, made: dict[int, Floats]) -> None:
        """From where the timeline stands on, round to there; a frame that is looked at comes first."""
        while len(made) < self._count:
            at = self.frame
            k = next(k % self._count for k in range(at, at + self._count) if k % self._count not in made)
            nodes = body.pose(self._poses[k], gravity=scene.pull).nodes
            assert nodes is not None
            made[k] = nodes
            if self.frame == k and not self._desk.timeline.playing:
                self.show(k)
            job.check()
        self._play_if_watched()

    def _simulate(self, job: Job, scene: ElasticScene, body: ElasticBody, made: dict[int, Floats]) -> None:
        began = time.perf_counter()
        for k, state in enumerate(scene.states(body)):
            job.check()
            if state.problem:
                self._stopped(k, state.problem)
                return
            made[k] = state.nodes
            if self.watched and self._count > 1:
                if not job.settled(max(began + k / self.fps - time.perf_counter(), 0.0)):
                    return
                self._desk.timeline.stand(k)
            if self.frame == k:
                self.show(k)
        self._play_if_watched()

    def _play_if_watched(self) -> None:
        if self.watched and self._count > 1:
            self._desk.timeline.play()
        self.watched = False

    def _stopped(self, frame: int, problem: str) -> None:
        """A body that flies apart has the frames before."""
        self._count = max(frame, 1)
        self._desk.timeline.show(self._count, self.fps, self.show, frame=self._count - 1)
        raise InputError(f"the flesh flew apart in frame {frame}: {problem}; make it firmer, or move it more gently")
