"""Clips of a moving body: the skeleton's motion cut into steps, the steps' states, and the frames that are kept.

The motion is sampled at the steps and their stages, smoothly between its frames, so its frame rate and the step do not
depend on each other. What the solver knows of every frame comes with the clip.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.core import rotations
from pliant.core.clips import MOST_FRAMES, Animation
from pliant.core.errors import InputError, PliantWarning
from pliant.core.progress import Report
from pliant.core.skeleton import MOST_MOTION_FRAMES as MOST_STEPS
from pliant.core.skeleton import Motion
from pliant.core.topology import Floats
from pliant.core.values import locked
from pliant.engines.simulate.bones import Frames
from pliant.engines.simulate.dynamics import GAMMA, BodyState, Forces, Stepper, checked_forces
from pliant.engines.simulate.options import SimulateOptions

if TYPE_CHECKING:
    from pliant.engines.simulate.body import ElasticBody


class StoppedWarning(PliantWarning):
    """A simulation ended before its motion did."""


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Animation):
    """The clip of a moving body, and what the solver knows of each frame."""

    states: tuple[BodyState, ...] = field(default=(), repr=False)
    """One a frame; inverted, iterations, converged, message and penetration are the worst of its steps."""
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
        SimulateOptions.check(dt=dt, fps=fps, hold=hold)
        rate = min(motion.fps, 1 / dt) if fps is None else float(fps)
        every = max(1, int(np.ceil(1 / (rate * dt) - 1e-6)))
        if (motion.duration + hold) * rate > MOST_FRAMES:
            raise InputError(
                f"the motion would make {(motion.duration + hold) * rate:,.0f} frames; expected fewer",
                argument="fps" if hold == 0 else "hold",
            )
        made = cls(float(rate), every, float(hold))
        if made.steps(motion) > MOST_STEPS:
            raise InputError(
                f"the motion would take {made.steps(motion):,} steps; expected at most {MOST_STEPS:,}", argument="dt"
            )
        return made

    def count(self, motion: Motion) -> int:
        """Frames of the clip, those of `hold` among them."""
        return 1 + self.steps(motion) // self.every

    def steps(self, motion: Motion) -> int:
        """How many there are, those of `hold` among them."""
        return round(motion.duration / self.step) + round(self.hold / self.step)

    def frames(self, body: ElasticBody, motion: Motion) -> Frames:
        """The bones at the beginning and at the end of both stages of every step; at last, the last pose is held."""
        ends = np.arange(1, self.steps(motion) + 1)
        times = np.concatenate([[0.0], np.stack([ends - 1 + GAMMA, ends], axis=1).ravel()])
        return body.bones.posed(*_sampled(motion, times * (motion.fps * self.step)))


def _sampled(motion: Motion, at: Floats) -> tuple[Floats, Floats]:
    """Rotations (f, j, 4) and translations (f, j, 3) at frames `at` (f,), with fractions, smoothly in between.

    Cubics through the frames, with the slopes there of parabolas through three (Catmull and Rom 1974): velocities do
    not jump at every frame of the motion, as they would with joints that turn evenly from frame to frame.
    """
    quaternions, at = motion.rotations, np.minimum(at, len(motion) - 1)
    flips = np.where(np.einsum("fji,fji->fj", quaternions[1:], quaternions[:-1]) < 0, -1.0, 1.0)
    quaternions = np.concatenate([quaternions[:1], np.cumprod(flips, axis=0)[..., None] * quaternions[1:]])
    return rotations.normalize(_cubic(quaternions, at)), _cubic(motion.translations, at)


def _cubic(values: Floats, at: Floats) -> Floats:
    """Values (frames, ...) at frames `at` (f,)."""
    last = len(values) - 1
    if last == 0:
        return np.repeat(values, len(at), axis=0)
    slopes = np.gradient(values, axis=0, edge_order=2 if last > 1 else 1)
    k = np.minimum(at.astype(int), last - 1)
    t = (at - k).reshape(-1, *[1] * (values.ndim - 1))
    ahead = values[k + 1] - values[k]
    bend = (1 - t) * (slopes[k] - ahead) - t * (slopes[k + 1] - ahead)
    return np.asarray(values[k] + t * (ahead + (1 - t) * bend))


def states(
    body: ElasticBody,
    motion: Motion,
    pace: Pace,
    start: BodyState | None,
    resume: BodyState | None,
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
        if resume is not None:
            return resume
        if start is not None:
            begun = stepper.restart(start, frames)
            return begun if collisions is None else collisions.measured(begun)
        static = body.pose(motion[0], gravity=options.get("gravity"), stretch_limit=options["stretch_limit"])
        assert static.nodes is not None
        return stepper.start(static.nodes, frames, following=following)

    return _stepped(stepper, frames, pace, first, _steps_until(resume, pace, motion))


def _steps_until(resume: BodyState | None, pace: Pace, motion: Motion) -> int:
    """Steps before the state of a frame of the same simulation."""
    if resume is None:
        return 0
    done = round(resume.time / pace.step)
    if abs(resume.time - done * pace.step) > 1e-6 * pace.step or done % pace.every or done > pace.steps(motion):
        raise InputError(
            f"resume is a state after {resume.time:.6g} s; expected one of a frame of this simulation: every "
            f"{pace.every * pace.step:.6g} s up to {pace.steps(motion) * pace.step:.6g} s",
            argument="resume",
        )
    return done


def _stepped(
    stepper: Stepper, frames: Frames, pace: Pace, first: Callable[[], BodyState], done: int
) -> Iterator[BodyState]:
    """The states of frames, from that after `done` steps."""
    state = first()
    since: list[BodyState] = []
    yield state
    for k in range(done + 1, (len(frames.quaternions) + 1) // 2):
        state = stepper.step(state, frames, 2 * k)
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
        message=next((state.message for state in steps if state.message), ""),
    )


def simulated(
    body: ElasticBody, motion: Motion, pace: Pace, steps: Iterator[BodyState], report: Report | None, before: int = 0
) -> Simulation:
    """The clip of states; it ends before one that has a problem. before: frames that are not in it."""
    count = pace.count(motion) - before
    kept: list[BodyState] = []
    points: list[Floats] = []
    stopped = ""
    for state in steps:
        if state.problem:
            stopped = f"stopped at step {round(state.time / pace.step)}, after {state.time:.3g} s: {state.problem}"
            warnings.warn(f"{stopped}; the frames before are kept", StoppedWarning, stacklevel=3)
            if not kept:  # not even at rest: as the bones alone carry it
                kept.append(state)
                points.append(body.embed(state.carried))
            break
        kept.append(state)
        points.append(body.embed(state.nodes))
        if report is not None:
            report(len(kept), count)
    failed = next((f"in frame {k}, {state.message}" for k, state in enumerate(kept) if state.message), "")
    if failed:
        warnings.warn(failed, PliantWarning, stacklevel=3)
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


def check_start(body: ElasticBody, start: Any, name: str = "start") -> None:
    """A state of this body that can be gone on from."""
    if start is None:
        return
    if not isinstance(start, BodyState):
        raise InputError(f"{name} is {start!r:.40}; expected a BodyState, as body.states and clip.states give")
    if start.problem:
        raise InputError(f"{name} cannot be gone on from: {start.problem}; expected a state without a problem")
    mine = (len(body.nodes), body.nodes.free, len(body.quadrature.points))
    theirs = (len(start.nodes), len(start.velocity), len(start.strain))
    if mine != theirs:
        raise InputError(
            f"{name} is the state of another body, with {theirs[0]} nodes; expected one of this body, with {mine[0]}"
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
