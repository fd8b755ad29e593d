"""Flesh with inertia in real time: poses come as they come, and every step follows the newest one.

`ElasticBody.simulate` knows its whole motion beforehand. Here each step of the same scheme is told the pose that it is
to end with, so that flesh swings while a bone is dragged.
"""

from __future__ import annotations

import time

import numpy as np

from pliant.contact.obstacles import as_obstacle
from pliant.core.skeleton import SkeletonPose
from pliant.engines.simulate import BodyState, ElasticBody
from pliant.engines.simulate.app.scene import ElasticScene
from pliant.engines.simulate.contacts import Collisions
from pliant.engines.simulate.dynamics import Stepper

STEP = 1 / 60
"""Seconds."""
MOST_STEPS = 2
"""In one go, to catch up with the clock; where steps take longer than that, flesh moves more slowly than it would."""
CONTACT_SECONDS = 0.03
"""That contact may take of a step."""
CALM = 3e-3
"""Speed, in diagonals of the shape a second and root mean square, below which flesh has come to rest."""


class LiveFlesh:
    """A body on its way, from rest in a pose. frame: where obstacles that move by themselves stand meanwhile."""

    def __init__(self, scene: ElasticScene, body: ElasticBody, pose: SkeletonPose, frame: int = 0) -> None:
        self.body = body
        options = {key: value for key, value in scene.options.items() if key in ("damping", "drag")}
        self._stepper = Stepper(body, STEP, gravity=scene.pull, collisions=_collisions(scene, body, frame), **options)
        still = body.pose(pose, gravity=scene.pull)
        assert still.nodes is not None
        self.state: BodyState = self._stepper.start(still.nodes, body.frames_of(pose), following=False)
        self._among = scene.obstacles
        self._last: SkeletonPose | None = pose
        self._before = self.state.carried
        self._clock = time.perf_counter()

    def among(self, scene: ElasticScene, frame: int) -> None:
        """Feel the obstacles of a scene that is otherwise the same, as they are at a frame."""
        if len(scene.obstacles) + len(self._among):
            self._stepper.collisions = _collisions(scene, self.body, frame)
            self._among, self._last = scene.obstacles, None

    def step(self, pose: SkeletonPose) -> BodyState:
        """One step on, the bones being in this pose then."""
        ahead = self._stepper.step(self.state, self.body.frames_of(pose), 0, self._before)
        if ahead.problem:  # it flew apart: it begins anew where the bones carry it
            ahead = self._stepper.start(ahead.carried, self.body.frames_of(pose), following=False)
        self._before, self.state, self._last = self.state.carried, ahead, pose
        return ahead

    def catch_up(self, pose: SkeletonPose) -> float:
        """Steps up to the present, at least one; the seconds until the next is due."""
        late = time.perf_counter() - self._clock
        most = MOST_STEPS if self._stepper.collisions is None else 1  # contact takes longer: rather slow than jerky
        steps = min(max(round(late / STEP), 1), most)
        for _ in range(steps):
            self.step(pose)
        self._clock = max(self._clock + steps * STEP, time.perf_counter() - STEP)
        return max(self._clock - time.perf_counter(), 0.0)

    def calm_in(self, pose: SkeletonPose) -> bool:
        """Whether it has come to rest in a pose."""
        last = self._last
        if last is None or not np.array_equal(last.rotations, pose.rotations):
            return False
        speed = (2 * self.state.kinetic / float(self.body.mass.sum())) ** 0.5
        return np.array_equal(last.translations, pose.translations) and speed < CALM * self.body.diagonal


def _collisions(scene: ElasticScene, body: ElasticBody, frame: int) -> Collisions | None:
    """What flesh gives way to, standing still; whatever may be wrong with it, the scene's run says."""
    if not scene.obstacles or body.warping != "corotated":
        return None
    moving = [as_obstacle(as_obstacle(one).at(frame)) for one in scene.obstacles]
    friction = scene.options.get("friction", 0.0)
    return Collisions(body, moving, friction, 1 / STEP, quick=CONTACT_SECONDS)
