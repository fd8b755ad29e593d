"""Clips of a moving body: the skeleton's motion cut into steps, the steps' states, and the frames that are kept.

The motion is sampled at the steps (rotations turn at constant speed between its frames), so its frame rate and the step
do not depend on each other. What the solver knows of every frame comes with the clip.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.core.clips import MOST_FRAMES, Animation
from pliant.core.errors import InputError, PliantWarning
from pliant.core.progress import Report
from pliant.core.skeleton import Motion
from pliant.core.topology import Floats
from pliant.core.values import locked
from pliant.engines.simulate.bones import Frames
from pliant.engines.simulate.dynamics import BodyState, Forces, Stepper, checked_forces

if TYPE_CHECKING:
    from pliant.engines.simulate.body import ElasticBody


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Animation):
    """The clip of a moving body, and what the solver knows of each frame."""

    states: tuple[BodyState, ...] = field(default=(), repr=False)
    """One a frame; inverted, iterations, converged and penetration are the worst of the steps since the last."""
    stopped: str = ""
    """Where and why it stopped before the motion's end, in words; empty if it did not."""

    def measured(self, name: str) -> Floats:
        """(frames,) of volume, energy, kinetic, inverted, iterations, converged, penetration or contacts."""
        return np.array([getattr(state, name) for state in self.states], dtype=np.float64)

    @property
    def converged(self) -> bool:
        """Whether it reached the end and every frame its accuracy."""
        return not self.stopped and all(state.converged for state in self.states)

    def resampled(self, fps: float) -> Animation:
        """The same motion at another frame rate, linearly interpolated."""
        return Animation(self.shape, self.points, self.fps, self.name).resampled(fps)


@dataclass(frozen=True)
class Pace:
    """How time is cut: `every` steps of `step` seconds a frame."""

    fps: float
    every: int
    hold: float

    @property
    def step(self) -> float:
        """Seconds."""
        return 1 / (self.fps * self.every)

    @classmethod
    def of(cls, motion: Motion, dt: float, fps: float | None, hold: float) -> Pace:
        """Frames as often as the motion has them, but no oftener than steps; steps at most `dt` long."""
        given: tuple[tuple[str, Any, float], ...] = (
            ("dt", dt, 1e-6), ("fps", 1.0 if fps is None else fps, 1e-3), ("hold", hold, 0.0)
        )  # fmt: skip
        for name, value, least in given:
            if isinstance(value, bool) or not isinstance(value, Real) or not least <= float(value) < np.inf:
                raise InputError(
                    f"{name} is {value!r:.40}; expected a positive number of seconds, such as 1/60", argument=name
                )
        rate = min(motion.fps, 1 / dt) if fps is None else float(fps)
        every = max(1, int(np.ceil(1 / (rate * dt) - 1e-6)))
        if (motion.duration + hold) * rate > MOST_FRAMES:
            raise InputError(
                f"the motion would make {(motion.duration + hold) * rate:,.0f} frames; expected fewer",
                argument="fps" if hold == 0 else "hold",
            )
        return cls(float(rate), every, float(hold))

    def count(self, motion: Motion) -> int:
        """Frames of the clip, those of `hold` among them."""
        return 1 + (len(motion.resampled(1 / self.step)) - 1 + round(self.hold / self.step)) // self.every

    def frames(self, body: ElasticBody, motion: Motion) -> Frames:
        """The bones at every step, and while the last pose is held."""
        turns = motion.resampled(1 / self.step)
        more = round(self.hold / self.step)
        rotations, places = (
            np.concatenate([values, np.repeat(values[-1:], more, axis=0)])
            for values in (turns.rotations, turns.translations)
        )
        return body.bones.posed(rotations, places)


def states(
    body: ElasticBody,
    motion: Motion,
    pace: Pace,
    start: BodyState | None,
    following: bool,
    obstacles: Iterable[Any],
    friction: float,
    self_contact: bool,
    **options: Any,
) -> Iterator[BodyState]:
    """The state at every frame of a clip; the last one has a `problem` if it cannot go on."""
    from pliant.engines.simulate.contacts import make_collisions

    frames = pace.frames(body, motion)
    collisions = make_collisions(body, obstacles, friction, pace.fps, self_contact)
    stepper = Stepper(body, pace.step, collisions=collisions, **options)

    def first() -> BodyState:
        if start is not None:
            return start if collisions is None else collisions.measured(start)
        still = body.pose(motion[0], gravity=options.get("gravity"))
        assert still.nodes is not None
        return stepper.start(still.nodes, frames, following=following)

    return _stepped(body, stepper, frames, pace, first)


def _stepped(
    body: ElasticBody, stepper: Stepper, frames: Frames, pace: Pace, first: Callable[[], BodyState]
) -> Iterator[BodyState]:
    state = first()
    previous = state.carried
    since: list[BodyState] = []
    yield state
    for k in range(1, len(frames.turns)):
        ahead = stepper.step(state, frames, k, previous if k > 1 else _backwards(state, body, stepper.h))
        previous, state = state.carried, ahead
        since.append(state)
        if k % pace.every == 0 or state.problem:
            yield _worst(since)
            since = []
        if state.problem:
            return


def _worst(steps: list[BodyState]) -> BodyState:
    """The last of a frame's steps, with the worst that was measured in any of them."""
    return replace(
        steps[-1],
        inverted=max(state.inverted for state in steps),
        iterations=max(state.iterations for state in steps),
        converged=all(state.converged for state in steps),
        penetration=max(state.penetration for state in steps),
    )


def _backwards(state: BodyState, body: ElasticBody, h: float) -> Floats:
    """(n, 3) where the bones carried the flesh one step before the first, if it moved as it does now."""
    before = state.carried.copy()
    before[: body.nodes.free] -= h * state.velocity
    return before


def simulated(
    body: ElasticBody, motion: Motion, pace: Pace, steps: Iterator[BodyState], report: Report | None
) -> Simulation:
    """The clip of states; it ends before one that has a problem."""
    count = pace.count(motion)
    kept: list[BodyState] = []
    points: list[Floats] = []
    stopped = ""
    for state in steps:
        if state.problem:
            stopped = f"stopped at step {round(state.time / pace.step)}, after {state.time:.3g} s: {state.problem}"
            warnings.warn(f"{stopped}; the frames before are kept", PliantWarning, stacklevel=3)
            if not kept:  # not even at rest: as the bones alone carry it
                kept.append(state)
                points.append(body.embed(state.carried))
            break
        kept.append(state)
        points.append(body.embed(state.nodes))
        if report is not None:
            report(len(kept), count)
    return Simulation(body.shape, locked(np.stack(points)), pace.fps, motion.name, tuple(kept), stopped)


def check_motion(body: ElasticBody, motion: Any) -> None:
    """A motion of the body's own joints."""
    if not isinstance(motion, Motion):
        raise InputError(f"the motion is a {type(motion).__name__}; expected a Motion of the body's skeleton")
    if not len(motion):
        raise InputError("the motion has no frames; expected one or more", argument="motion")
    body.check_skeleton(motion.skeleton)


def check_forces(body: ElasticBody, forces: Any) -> None:
    """Constant forces; those of a function are checked as they come."""
    if forces is not None and not callable(forces):
        checked_forces(forces, len(body.shape.points))


def check_start(body: ElasticBody, start: Any) -> None:
    """A state of this body that can be gone on from."""
    if start is None:
        return
    if not isinstance(start, BodyState):
        raise InputError(f"start is {start!r:.40}; expected a BodyState, as body.states and clip.states give")
    if start.problem:
        raise InputError(f"start cannot be gone on from: {start.problem}; expected a state without a problem")
    mine = (len(body.nodes), body.nodes.free, len(body.quadrature.points))
    theirs = (len(start.nodes), len(start.velocity), len(start.strain))
    if mine != theirs:
        raise InputError(
            f"start is the state of another body, with {theirs[0]} nodes; expected one of this body, with {mine[0]}"
            + (" placed as its own" if mine[0] == theirs[0] else "")
        )


def check_numbers(**values: Any) -> None:
    """Options that are 0 or more."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < np.inf:
            raise InputError(f"{name} is {value!r:.40}; expected a number, 0 or more", argument=name)


__all__ = [
    "BodyState", "Forces", "Pace", "Simulation", "check_forces", "check_motion", "check_numbers", "check_start",
    "simulated", "states",
]  # fmt: skip
