"""Clips of a moving body: the skeleton's motion cut into steps, the steps' states, and the frames that are kept.

The motion is sampled at the steps and their stages, smoothly between its frames, so its frame rate and the step do not
depend on each other. Where it jumps (`pliant.engines.simulate.jumps`), the flesh starts anew. Before the clip there may
be a pre-roll (`pliant.engines.simulate.pre_roll`). What the solver knows of every frame comes with the clip.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.core import rotations
from pliant.core.clips import MOST_FRAMES, Animation
from pliant.core.errors import InputError, PliantWarning
from pliant.core.progress import ReportFrames
from pliant.core.skeleton import MOST_MOTION_FRAMES as MOST_STEPS, Motion
from pliant.core.topology import Floats, Ints
from pliant.core.values import stack_frames
from pliant.engines.simulate.bones import Frames
from pliant.engines.simulate.dynamics import GAMMA, SHORTER_STEPS, BodyState, Forces, checked_forces
from pliant.engines.simulate.jumps import (
    MOST_SUBSTEPS,
    Jump,
    bridged,
    find_jumps,
    glitch_notes,
    jump_notes,
    rigid_step,
    substeps,
    unevenness,
)
from pliant.engines.simulate.options import SimulateOptions
from pliant.engines.simulate.pre_roll import pre_roll_poses, scaled_from_rest

if TYPE_CHECKING:
    from pliant.engines.simulate.body import ElasticBody
    from pliant.engines.simulate.reduced import ReducedBody

EARLY = 1e-6
"""Of a step or frame, that a moment may be early."""
DEGREES_A_STEP = 3.0
"""By which joints turn, at most, on the path from rest to a pose along which flesh must not pass through itself."""
Poses = tuple[Floats, Floats, Floats | None]
"""Local rotations (f, j, 4) and translations (f, j, 3) of joints, and their scales (f, j, 3, 3) if they have any."""


class StoppedWarning(PliantWarning):
    """A simulation ended before its motion did."""


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Animation):
    """The clip of a moving body, and what the solver knows of each frame."""

    states: tuple[BodyState, ...] = field(default=(), repr=False)
    """One a frame; what went wrong, iterations and penetration are the worst of its steps."""
    stopped: str = ""
    """Where and why it stopped before the motion's end, as text; empty if it did not."""
    notes: tuple[str, ...] = ()
    """What is wrong with the motion: its glitches, jumps and scales."""

    def measured(self, name: str) -> Floats:
        """(frames,) of a number of the states: volume, energy, kinetic, inverted, overstrained, contacts or others."""
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

    def step_at(self, frame: int, motion: Motion) -> int:
        """The first step that ends at a frame of the motion, or after it."""
        return int(np.ceil(frame / (motion.fps * self.step) - EARLY))


def _moments(steps: int) -> Floats:
    """(2 steps + 1,) the beginning, and the ends of both stages of every step, in steps."""
    ends = np.arange(1, steps + 1)
    return np.concatenate([[0.0], np.stack([ends - 1 + GAMMA, ends], axis=1).ravel()])


def _sampled(motion: Motion, at: Floats, cuts: Sequence[int] = ()) -> Poses:
    """The joints at frames `at` (f,), with fractions, smoothly in between.

    Before a frame of `cuts`, the pose of the frame before is held. `at` ascends.
    """
    edges = [0, *cuts, len(motion)]
    bounds = np.searchsorted(at, [-np.inf, *(cut - EARLY for cut in cuts), np.inf])
    parts = [
        _smooth(motion.chosen(slice(a, b)), at[i:j] - a)
        for (a, b), (i, j) in zip(pairwise(edges), pairwise(bounds), strict=True)
    ]
    quaternions, translations, scales = zip(*parts, strict=True)
    joined = None if motion.scales is None else np.concatenate(scales)
    return np.concatenate(quaternions), np.concatenate(translations), joined


def _smooth(motion: Motion, at: Floats) -> Poses:
    """A motion without cuts at frames `at` (f,).

    Cubics through the frames, with the slopes there of parabolas through three (Catmull and Rom 1974): velocities do
    not jump at every frame of the motion, as they would with joints that turn evenly from frame to frame.
    """
    quaternions, at = motion.rotations, np.clip(at, 0, len(motion) - 1)
    flips = np.where(np.einsum("fji,fji->fj", quaternions[1:], quaternions[:-1]) < 0, -1.0, 1.0)
    quaternions = np.concatenate([quaternions[:1], np.cumprod(flips, axis=0)[..., None] * quaternions[1:]])
    scales = None if motion.scales is None else _cubic(motion.scales, at)
    return rotations.normalize(_cubic(quaternions, at)), _cubic(motion.translations, at), scales


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


def play(
    stepper: Any,
    motion: Motion,
    pace: Pace,
    *,
    start: BodyState | None = None,
    resume: BodyState | int | None = None,
    following: bool,
    pre_roll: float,
    report: ReportFrames | None,
) -> States:
    """The state at every frame of a clip; the last one has a `problem` if it cannot go on.

    stepper: a `Stepper`, or a `ReducedStepper`, which takes no `start` and no `resume`.
    """
    SimulateOptions.check(pre_roll=pre_roll)
    motion, notes = mended(stepper.body, motion)
    player = player_of(stepper, motion, pace, 0.0 if start is None else start.time)
    done = _steps_until(resume, pace, motion, player)

    def first() -> Any:
        if isinstance(resume, int) and done:
            return player.cut(done)
        if isinstance(resume, BodyState):
            return resume
        if start is not None:
            return stepper.restart(start, player.frames)
        if pre_roll > 0:
            before_cut = min((jump.frame for jump in jumps_of(stepper.body, motion)), default=len(motion))
            shown = motion.chosen(slice(before_cut))
            return _rolled(shown, pace, max(round(pre_roll / pace.step), 2), player)
        return player.begun(0, following=following)

    steps = stepped(player, pace, first, done)
    return States(stepper.body, motion, pace, steps, report, -(-done // pace.every), notes)


def mended(body: ElasticBody | ReducedBody, motion: Motion) -> tuple[Motion, tuple[str, ...]]:
    """The motion of the body's joints without its glitches, and what to know of those."""
    found, glitches = bridged(body.bones, motion, body.diagonal)
    return found, glitch_notes(glitches)


def jumps_of(body: ElasticBody | ReducedBody, motion: Motion) -> list[Jump]:
    """The jumps of a motion of the body's joints."""
    frames = body.bones.posed(motion.rotations, motion.translations)
    return find_jumps(body.bones, frames, motion.fps, body.diagonal)


def shots_of(body: ElasticBody, motion: Motion, pace: Pace) -> list[int]:
    """The frames of a clip that do not depend on the ones before: the first, and those behind a cut."""
    motion, _ = mended(body, motion)
    cuts = [pace.step_at(jump.frame, motion) for jump in jumps_of(body, motion) if not jump.teleport]
    return sorted({0, *(-(-cut // pace.every) for cut in cuts)})


def player_of(stepper: Any, motion: Motion, pace: Pace, begun: float = 0.0) -> Player:
    """A motion, with its jumps, for a stepper. begun: the time before its first step."""
    jumps = jumps_of(stepper.body, motion)
    cuts = [jump.frame for jump in jumps]

    def sample(at: Floats) -> Poses:
        return _sampled(motion, at * (motion.fps * pace.step), cuts)

    found = {pace.step_at(jump.frame, motion): jump for jump in jumps}
    return Player(stepper, sample, pace.steps(motion), found, begun)


@dataclass(frozen=True, eq=False)
class Player:
    """Steps through the frames of a skeleton, of which some are jumps."""

    stepper: Any
    """A `Stepper` or a `ReducedStepper`."""
    sample: Callable[[Floats], Poses]
    """The joints at ascending moments (f,), in steps; after the last step, the last pose is held."""
    steps: int
    """How many there are."""
    jumps: Mapping[int, Jump]
    """By the step at whose end the bones have jumped."""
    first_time: float = 0.0
    """Before the first step."""
    _shorter: dict[int, Any] = field(default_factory=dict)
    """The stepper, divided by numbers of steps."""

    @cached_property
    def poses(self) -> Poses:
        """The beginning, and the ends of both stages of every step."""
        return self.sample(_moments(self.steps))

    @cached_property
    def frames(self) -> Frames:
        """The bones in these poses."""
        return self.stepper.body.bones.posed(*self.poses)

    @cached_property
    def unevenness(self) -> Floats:
        """(steps,) of the bones, over what flesh can follow in one step."""
        return unevenness(self.frames, self.stepper.body.diagonal)

    @cached_property
    def substeps(self) -> Ints:
        """(steps,) into how many steps each is divided."""
        return substeps(self.unevenness, self.stepper.h)

    def step(self, state: BodyState, k: int) -> BodyState:
        """The state after step k, from that before it."""
        jump = self.jumps.get(k)
        if jump is None:
            return self._divided(state, k, int(self.substeps[k - 1]))
        if not jump.teleport:
            return self.cut(k)
        R, shift, _ = rigid_step(self.frames, 2 * k - 2, 2 * k)
        return self.stepper.teleported(state, self._ahead(k), R, shift)

    def is_cut(self, k: int) -> bool:
        """Whether flesh starts anew after step k."""
        return k in self.jumps and not self.jumps[k].teleport

    def cut(self, k: int) -> BodyState:
        """The state after a step from which flesh starts anew: it depends on nothing before."""
        return self.begun(k, time=self.first_time + k * self.stepper.h)

    def _divided(self, state: BodyState, k: int, count: int) -> BodyState:
        """The state after step k, which is divided into so many."""
        if count == 1:
            return self.stepper.step(state, self.frames, 2 * k)
        if count not in self._shorter:
            self._shorter[count] = self.stepper.divided(count)
        shorter, done = self._shorter[count], [state]
        frames = self.stepper.body.bones.posed(*self.sample(k - 1 + _moments(count) / count))
        while len(done) <= count and not done[-1].problem:
            done.append(shorter.step(done[-1], frames, 2 * len(done)))
        found = replace(_worst(done[1:]), time=state.time + self.stepper.h)
        if self.unevenness[k - 1] > MOST_SUBSTEPS**2 and not found.message:
            message = f"bones move farther in a step than flesh can follow; {SHORTER_STEPS}"
            found = replace(found, converged=False, message=message)
        return found

    def begun(self, k: int, *, following: bool = True, time: float = 0.0) -> BodyState:
        """The static shape after step k, moving with the bones or at rest."""
        path = self.stepper.body.bones.posed(*self._path(k)) if self.stepper.passes_itself else None
        return self.stepper.begin(self._ahead(k), following=following, time=time, path=path)

    def _path(self, k: int) -> Poses:
        """From rest to the pose after step k. A single root is there from the beginning: the shape is moved rigidly."""
        skeleton = self.stepper.body.skeleton
        q, x = (part[2 * k] for part in self.poses[:2])
        scales = self.poses[2]
        roots = (skeleton.parents < 0)[:, None]
        moved = roots & (roots.sum() == 1)
        first = np.where(moved, q, skeleton.rest_rotations), np.where(moved, x, skeleton.offsets)
        angle = 2 * np.arccos(np.clip(np.abs(np.einsum("ji,ji->j", first[0], q)), 0, 1))
        share = np.linspace(0, 1, 2 + int(np.degrees(angle.max()) / DEGREES_A_STEP))[:, None]
        rotated = rotations.slerp(np.broadcast_to(first[0], (len(share), *q.shape)), q, share)
        grown = None if scales is None else scaled_from_rest(scales[2 * k], share[..., None, None])
        return rotated, first[1] + share[..., None] * (x - first[1]), grown

    def _ahead(self, k: int) -> Frames:
        """The moment after step k, and the ends of the next one's stages if there is one."""
        return self.frames.chosen(slice(2 * k, 2 * k + 3))


def _rolled(motion: Motion, pace: Pace, steps: int, player: Player) -> BodyState:
    """The state at the motion's beginning, after a pre-roll."""
    seconds = steps * pace.step

    def sample(at: Floats) -> Poses:
        return pre_roll_poses(motion, at * pace.step - seconds, seconds)

    before = replace(player, sample=sample, steps=steps, jumps={})
    state = before.begun(0, time=-seconds)
    since = [state]
    for k in range(1, steps + 1):
        since.append(before.step(since[-1], k))
        if since[-1].problem:
            break
    return replace(_worst(since), time=0.0)


def _steps_until(resume: BodyState | int | None, pace: Pace, motion: Motion, player: Player) -> int:
    """Steps before the state of a frame of the same simulation, or before the cut that makes a frame the first."""
    if resume is None or resume == 0:
        return 0
    if isinstance(resume, int):
        cuts = [k for k in player.jumps if player.is_cut(k) and -(-k // pace.every) == resume]
        if not cuts:
            raise InputError(f"resume is {resume}; expected a frame behind a jump, or a BodyState", argument="resume")
        return max(cuts)
    done = round(resume.time / pace.step)
    if abs(resume.time - done * pace.step) > 1e-6 * pace.step or done % pace.every or done > pace.steps(motion):
        raise InputError(
            f"resume is a state after {resume.time:.6g} s; expected one of a frame of this simulation: every "
            f"{pace.every * pace.step:.6g} s up to {pace.steps(motion) * pace.step:.6g} s",
            argument="resume",
        )
    return done


def stepped(player: Player, pace: Pace, first: Callable[[], BodyState], done: int = 0) -> Iterator[BodyState]:
    """The states of frames, from that after `done` steps."""
    state = first()
    since = [state]
    if done % pace.every == 0 or state.problem:
        yield state
        since = []
    if state.problem:
        return
    for k in range(done + 1, player.steps + 1):
        state = player.step(state, k)
        since = [*([] if player.is_cut(k) else since), state]
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
        overstrained=max(state.overstrained for state in steps),
        iterations=max(state.iterations for state in steps),
        converged=all(state.converged for state in steps),
        penetration=max(state.penetration for state in steps),
        message=next((state.message for state in steps if state.message), ""),
    )


@dataclass
class States(Iterator[BodyState]):
    """The states at the frames of a clip, each as soon as it is known."""

    body: Any
    """An `ElasticBody` or a `ReducedBody`, whose states these are."""
    motion: Motion
    pace: Pace
    steps: Iterator[BodyState]
    report: ReportFrames | None = None
    """Called with the number of frames done, and of all."""
    before: int = 0
    """Frames of the clip that come before the first."""
    notes: tuple[str, ...] = ()
    """What was wrong with the motion before it was mended."""
    done: int = 0

    def __next__(self) -> BodyState:
        state = next(self.steps)
        self.done += 1
        if self.report is not None and not state.problem:
            self.report(self.done, self.pace.count(self.motion) - self.before)
        return state

    def clip(self) -> Simulation:
        """All frames; it ends before a state that has a problem."""
        body, pace = self.body, self.pace
        kept: list[BodyState] = []
        scaled = body.binding.scale_notes(self.motion)
        stopped, notes = "", (*self.notes, *jump_notes(jumps_of(body, self.motion)), *scaled)
        for note in notes:
            warnings.warn(note, PliantWarning, stacklevel=4)

        def frames() -> Iterator[Floats]:
            nonlocal stopped
            for state in self:
                if state.problem:
                    step = round(state.time / pace.step)
                    stopped = f"stopped at step {step}, after {state.time:.3g} s: {state.problem}"
                    if not kept:  # not even at rest: as the bones alone carry it
                        kept.append(state)
                        yield body.carried_points(state)
                    return
                kept.append(state)
                yield body.points_of(state)

        points = stack_frames(frames())
        if stopped:
            warnings.warn(f"{stopped}; the frames before are kept", StoppedWarning, stacklevel=4)
        failed = next((f"in frame {k}, {state.message}" for k, state in enumerate(kept) if state.message), "")
        if failed:
            warnings.warn(failed, PliantWarning, stacklevel=4)
        return Simulation(body.shape, points, pace.fps, self.motion.name, tuple(kept), stopped, notes)


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
    mine = (len(body.nodes), body.nodes.free, len(body.point_weights))
    theirs = (len(start.nodes), len(start.velocity), len(start.strain))
    if mine != theirs:
        raise InputError(
            f"{name} is the state of another body, with {theirs[0]} nodes; expected one of this body, with {mine[0]}"
            + (" placed as its own" if mine[0] == theirs[0] else "")
        )


__all__ = [
    "BodyState", "Forces", "Pace", "Simulation", "States", "check_forces", "check_motion", "check_start", "mended",
    "play",
]  # fmt: skip
