"""Dynamics in real time: every step follows the newest pose of the bones.

`ElasticBody.simulate` knows its whole motion beforehand. Here each step of the same scheme gets the pose that it ends
with, so that the body swings while a bone is dragged.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from pliant.contact.obstacles import as_obstacle
from pliant.core import rotations
from pliant.core.skeleton import SkeletonPose
from pliant.engines.simulate import BodyState, ElasticBody
from pliant.engines.simulate.app.scene import ElasticScene
from pliant.engines.simulate.bones import Frames
from pliant.engines.simulate.contacts import Collisions
from pliant.engines.simulate.dynamics import GAMMA, Stepper

STEP = 1 / 60
"""Seconds."""
MOST_STEPS = 2
"""In one go, to catch up with the clock; where steps take longer than that, the body moves in slow motion."""
CONTACT_SECONDS = 0.03
"""That contact may take of a step."""
AT_REST = 3e-3
"""Speed, in diagonals of the shape a second and root mean square, below which a body is at rest."""


class LiveBody:
    """A moving body, from rest in a pose. frame: at which obstacles that move by themselves and muscles that act at
    times stay meanwhile."""

    def __init__(self, scene: ElasticScene, body: ElasticBody, pose: SkeletonPose, frame: int = 0) -> None:
        self.body = body
        options = scene.options.taken_by(Stepper) | {"gravity": scene.pull}
        fibres = replace(body.fibres(scene.pulling, scene.motion.fps), moment=frame / scene.fps)
        self._stepper = Stepper(body, STEP, fibres=fibres, collisions=_collisions(scene, body, frame), **options)
        first = scene.posed(body, pose, frame)
        assert first.nodes is not None
        self.state: BodyState = self._stepper.start(first.nodes, body.frames_of(pose), following=False)
        self._last: SkeletonPose | None = pose
        self._pose = pose
        self._clock = time.perf_counter()

    def among(self, scene: ElasticScene, frame: int) -> None:
        """Feel the obstacles of a scene that is otherwise the same, as they are at a frame."""
        before, self._stepper.collisions = self._stepper.collisions, _collisions(scene, self.body, frame)
        if before is not None or self._stepper.collisions is not None:
            self._last = None

    def step(self, pose: SkeletonPose) -> BodyState:
        """One step on, the bones being in this pose then."""
        ahead = self._stepper.step(self.state, self._frames(pose), 1)
        if ahead.problem:  # it flew apart: it begins anew where the bones carry it
            ahead = self._stepper.start(ahead.carried, self.body.frames_of(pose), following=False)
        self.state, self._pose, self._last = ahead, pose, pose
        return ahead

    def _frames(self, pose: SkeletonPose) -> Frames:
        """The bones at the ends of a step's stages, on their way to a pose."""
        last = self._pose
        quaternions = rotations.slerp(last.rotations, pose.rotations, np.full(len(pose.rotations), GAMMA))
        translations = last.translations + GAMMA * (pose.translations - last.translations)
        return self.body.bones.posed(
            np.stack([quaternions, pose.rotations]), np.stack([translations, pose.translations])
        )

    def catch_up(self, pose: SkeletonPose) -> float:
        """Steps up to the present, at least one; the seconds until the next is due."""
        late = time.perf_counter() - self._clock
        most = MOST_STEPS if self._stepper.collisions is None else 1  # contact takes longer: rather slow than jerky
        steps = min(max(round(late / STEP), 1), most)
        for _ in range(steps):
            self.step(pose)
        self._clock = max(self._clock + steps * STEP, time.perf_counter() - STEP)
        return max(self._clock - time.perf_counter(), 0.0)

    def at_rest(self, pose: SkeletonPose) -> bool:
        """Whether it has come to rest in a pose."""
        last = self._last
        if last is None or not np.array_equal(last.rotations, pose.rotations):
            return False
        speed = (2 * self.state.kinetic / float(self.body.mass.sum())) ** 0.5
        return np.array_equal(last.translations, pose.translations) and speed < AT_REST * self.body.diagonal


def _collisions(scene: ElasticScene, body: ElasticBody, frame: int) -> Collisions | None:
    """The obstacles as they are at a frame; what may be wrong with them, the scene's run reports."""
    met = scene.surroundings(body)
    if not met["obstacles"]:
        return None
    moving = [as_obstacle(as_obstacle(one).at(frame)) for one in met["obstacles"]]
    return Collisions(body, moving, met["friction"], 1 / STEP, quick=CONTACT_SECONDS)
