"""Dynamics (Eq. 15): flesh that lags, swings and settles while the skeleton moves.

    m x''  +  d m (x' - c')  +  ∂E/∂x  +  viscous forces  =  external forces

Damping never slows a rigid motion. Viscous stress is that of the strain's rate, β C:ε', each strain measured with the
rotations of its own moment. Drag d acts on the motion against the positions c to which the bones alone would carry the
flesh. Muscles (`pliant.engines.simulate.fibres`) are among the external forces. The rotations R at the end of a step
are known from the skeleton, so each step is linear, and nothing lags. Where its answer is beyond strain limits
(`pliant.engines.simulate.strain_limits`), their energy is part of E, and the stage is solved by Newton's method.

A step h is TR-BDF2 (Bank et al. 1985): a trapezoidal stage up to γ h, γ = 2 - √2, then one of BDF2 over both. In both,
a quantity y (x, its velocity, ε, c) and its rate y' at the stage's end hold ``y = ŷ + g y'``, g = h (1 - √½), with

    ŷ = y₀ + g y₀'                            trapezoidal
    ŷ = y_γ + (√2 - 1)/2 · (y_γ - y₀)         BDF2

so both solve with the same matrix, m / g² + d m / g + (1 + β/g) K', by conjugate gradients. The method is of second
order and L-stable. Of the past it needs y and y' at the step's beginning, and nothing else: steps may change their
length, the first is as good as the others, and a saved state goes on exactly. Forces of contact act within their stage
and are not part of y₀'.

Measured with the same solver, on a dinosaur that sways at 1 Hz, in per cent of the diagonal at the worst node:

    step              1/60 s   1/120 s   1/240 s
    TR-BDF2            0.21     0.05      0.012
    trapezoidal        0.58     0.11      0.026     which does not damp what it cannot follow
    BDF2               1.0      0.34      0.10      at two thirds of the time a step
    backward Euler     7.0      3.8       2.0

A stage is solved until what is left is a small share of what it changes against coasting, x₀ + s x₀'. That is about
s² x'', so the share, and not the length of the step, says how good the answer is. Where steps are short against the
time in which a wave crosses the body, what they leave adds up: there the share shrinks with the step (`SHORT`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from pliant.core.errors import InputError
from pliant.core.topology import Floats
from pliant.engines.simulate.bones import Frames
from pliant.engines.simulate.conjugate_gradients import ErrorScale, Posed, Solved, refine, strain_scale
from pliant.engines.simulate.fibres import Fibres
from pliant.engines.simulate.multigrid import Preconditioner
from pliant.engines.simulate.newton import limited
from pliant.engines.simulate.options import SimulateOptions, StaticOptions, StretchLimit
from pliant.engines.simulate.stages import Known, Rates, Stage, backward, trapezoidal
from pliant.engines.simulate.statics import balanced, failure_of, leash_energy
from pliant.engines.simulate.strain_limits import StrainLimits
from pliant.engines.simulate.warping import UNSTRAINED, Singles

if TYPE_CHECKING:
    from pliant.contact.state import ContactState
    from pliant.engines.simulate.body import ElasticBody
    from pliant.engines.simulate.contacts import Collisions, StageContact, StepContact

GAMMA = 2 - 2**0.5
"""Share of a step that its first stage takes."""
DIAGONAL = 1 - 0.5**0.5
"""g / h."""
ITERATIONS = 200
"""Of a stage, at most."""
SHORT = 0.04
"""Steps, over the time that a shear wave takes across the body, below which each is solved the better the shorter."""
STATIC_CONTACT_ROUNDS, STATIC_CONTACT_MOTION, STATIC_CONTACT_ACCURACY = 8, 1e-5, 1e-4
"""Of a static pose in contact, which rows describe to first order: how often they are renewed at most, motion over the
diagonal that ends that, and what strains may lack."""
LEAST_CHANGE = 1e-4
"""Accelerations, in diagonals over the square of that time, that are too little to be solved for."""
ROUNDING = 1e-13
"""Displacements, over the largest coordinate, that are too little to be solved for."""
FARTHEST = 3.0
"""Distance from where the bones carry it, over the diagonal, beyond which flesh has flown apart."""
SHORTER_STEPS = "use shorter steps (dt), stiffer flesh or a slower motion"
CONTACT = "contact_"
"""What the names of contact's arrays begin with in those of a state."""
Forces = Callable[[float, Floats], ArrayLike] | ArrayLike | None
"""Forces on the shape's points (vertices, 3): constant, or a function of time and points."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Measured:
    """What the solver knows of a moving body at one moment."""

    volume: float
    """Over that at rest."""
    energy: float
    """Elastic."""
    kinetic: float
    inverted: int
    """Quadrature points that are turned inside out."""
    overstrained: int = 0
    """Quadrature points far beyond their stretch limits."""
    iterations: int = 0
    converged: bool = True
    penetration: float = 0.0
    """Deepest penetration of a vertex into an obstacle, over the diagonal."""
    contacts: int = 0
    """Vertices that obstacles push."""
    problem: str = ""
    """Why it cannot go on from here."""
    message: str = ""
    """How its flesh has failed, which is then not called converged."""
    activation: Floats = field(default_factory=lambda: np.zeros(0))
    """(m,) of muscles."""
    shortening: Floats = field(default_factory=lambda: np.zeros(0))
    """(m,) share by which their fibres are shorter than at rest, in the mean."""


@dataclass(frozen=True, eq=False, kw_only=True)
class BodyState(Measured, Rates):
    """A moving body at one moment."""

    contact: ContactState | None = field(default=None, repr=False)
    """What the next step has to know of this one's contacts."""

    def to_arrays(self) -> dict[str, Any]:
        """Plain numbers, strings and arrays, for `numpy.savez`; those of contact have `CONTACT` before their names."""
        own = {name: value for name, value in vars(self).items() if name != "contact"}
        contact = {} if self.contact is None else self.contact.to_arrays()
        return own | {CONTACT + name: value for name, value in contact.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> BodyState:
        """What `to_arrays` gave, or what `numpy.load` makes of it."""
        from pliant.contact.state import ContactState

        own, contact = {}, {}
        for name, value in arrays.items():
            plain = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
            if name.startswith(CONTACT):
                contact[name.removeprefix(CONTACT)] = plain
            else:
                own[name] = plain
        return cls(**own, contact=ContactState.from_arrays(contact) if contact else None)


def checked_forces(forces: Any, vertices: int) -> Floats:
    """(vertices, 3), or (3,) for the whole body."""
    try:
        given = np.asarray(forces, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"forces are {forces!r:.40}; expected ({vertices}, 3) numbers, three, or a function of time and points"
        ) from None
    if given.shape not in ((3,), (vertices, 3)):
        raise InputError(f"forces have shape {given.shape}; expected ({vertices}, 3), or (3,) for the whole body")
    if not np.isfinite(given).all():
        where = int(np.argwhere(~np.isfinite(given))[0][0])
        what = f"the force on vertex {where}" if given.ndim == 2 else "the force on the body"
        raise InputError(f"{what} is not finite; expected finite numbers")
    return given


class Stepper:
    """Steps of one length h through the frames of a skeleton."""

    def __init__(
        self,
        body: ElasticBody,
        step: float,
        *,
        gravity: Any = None,
        damping: float = SimulateOptions.damping,
        drag: float = SimulateOptions.drag,
        forces: Forces = None,
        fibres: Fibres | None = None,
        collisions: Collisions | None = None,
        accuracy: float = SimulateOptions.accuracy,
        stretch_limit: StretchLimit = SimulateOptions.stretch_limit,
    ) -> None:
        self.body, self.forces, self.damping, self.drag, self.share = body, forces, damping, drag, accuracy
        self.collisions, self.fibres = collisions, body.fibres() if fibres is None else fibres
        self.mass = body.mass[: body.nodes.free, None]
        self.weight = self.mass * body.gravity(gravity)
        self.limits, self.leash = body.limits(stretch_limit), body.leash[:, None]
        self._cut(step)

    def _cut(self, step: float) -> None:
        """What depends on the length of steps."""
        body, self.h, self.g = self.body, step, DIAGONAL * step
        self.viscous, inertia = self.damping / self.g, 1 / self.g**2 + self.drag / self.g
        self.stiffness = 1 + self.viscous
        self.inertia = inertia * self.mass + self.stiffness * self.leash
        self.single = self.inertia[:, 0].astype(np.float32)
        self.preconditioner = body.multigrid.preconditioner(inertia, self.stiffness)
        crossing = body.diagonal * (float(self.mass.sum()) / body.operator.stiffest) ** 0.5
        self.accuracy = self.share * min(1.0, step / (SHORT * crossing))
        self.least = LEAST_CHANGE * body.diagonal * (self.g / crossing) ** 2

    def divided(self, count: int) -> Stepper:
        """The same with so many steps in the time of one."""
        other = copy(self)
        other._cut(self.h / count)
        return other

    def start(
        self,
        x: Floats,
        frames: Frames,
        *,
        following: bool = True,
        time: float = 0.0,
        path: Frames | None = None,
    ) -> BodyState:
        """Nodes (n, 3) at the first frame; following: they move as the bones do then, else they stand.

        frames: the first moment, and if there is a first step, the ends of its stages. path: frames from rest to the
        first, along which flesh comes there that must not pass through itself.
        """
        in_contact = None
        if self.collisions is not None:
            x, in_contact = self._touching_at_rest(self.collisions, frames, x, time, path)
        none = np.zeros((self.body.nodes.free, 3))
        contact = None if in_contact is None else in_contact.state
        begun = self._begun(time, x, frames, None if following else none, contact)
        return self._state(replace(begun, in_contact=in_contact))

    def begin(
        self, frames: Frames, *, time: float = 0.0, following: bool = True, path: Frames | None = None
    ) -> BodyState:
        """The static shape at the first frame; the arguments are those of `start`."""
        body, posed = self.body, self.body.posed(frames, 0)
        pull = partial(self.fibres.contraction, time, frames.joints[0], posed.R)
        static = balanced(
            posed, body.carried(frames, 0), self.weight, pull, body.leash, body.static, self.limits, StaticOptions()
        )
        state = self.start(static.x, frames, following=following, time=time, path=path)
        return replace(state, converged=state.converged and static.converged)

    def restart(self, state: BodyState, frames: Frames) -> BodyState:
        """A state of another motion or other forces, with the rates that it has under these."""
        begun = self._begun(state.time, state.nodes, frames, state.velocity, state.contact)
        state = replace(
            state, acceleration=begun.acceleration, strain_rate=begun.strain_rate, carried_rate=begun.carried_rate
        )
        return state if self.collisions is None else self.collisions.measured(state)

    def teleported(self, state: BodyState, frames: Frames, R: Floats, shift: Floats) -> BodyState:
        """The state a step later, carried along rigidly with its swing: all bones have jumped by R (3, 3) and a shift.

        frames: as those of `start`.
        """
        free, time = self.body.nodes.free, state.time + self.h
        x = self.body.carried(frames, 0)
        x[:free] = state.nodes[:free] @ R.T + shift
        bones = self._begun(time, x, frames, None).velocity
        moved = self._state(self._begun(time, x, frames, bones + (state.velocity - state.carried_rate[:free]) @ R.T))
        return moved if self.collisions is None else self.collisions.measured(moved)

    def _begun(
        self, time: float, x: Floats, frames: Frames, velocity: Floats | None, contact: ContactState | None = None
    ) -> Stage:
        """Nodes (n, 3) at the first frame with their velocity, that of the bones if None is given, and in contact."""
        body, free = self.body, self.body.nodes.free
        times = np.array([0.0, GAMMA * self.h, self.h])[: len(frames.quaternions)]
        carried = [body.carried(frames, k) for k in range(len(times))]
        rate = rate_of(carried, times)
        velocity = rate[:free] if velocity is None else velocity
        R, strains = [body.posed(frames, k).R for k in range(len(times))], []
        for moved, R_frame, after in zip(carried, R, times, strict=True):
            moving = moved.copy()
            moving[:free] = x[:free] + after * velocity
            strains.append(body.operator.strains(moving, R_frame)[0])
        strain_rate = rate_of(strains, times)
        pull = self.fibres.contraction(time, frames.joints[0], R[0], x)
        force = self._load(time, x) + pull.load - self.drag * self.mass * (velocity - rate[:free])
        force -= self.leash * ((x - carried[0])[:free] + self.damping * (velocity - rate[:free]))
        force -= body.operator.forces(x, R[0], UNSTRAINED - self.damping * strain_rate)
        if contact is not None and self.collisions is not None:
            force += self.collisions.forces(x, contact)
        strain, stretch = body.operator.strains(x, R[0])
        limits, energy, overstrained = self.limits.exceeded(x, partial(self.limits.imposed, carried[0])), 0.0, 0
        if limits is not None:
            stressed = limits.at(x)
            force, energy = force - limits.forces(stressed), stressed.energy
            overstrained = limits.overstrained(x)
        rates = strain, strain_rate, carried[0], rate
        return Stage(time, x, velocity, force / self.mass, *rates, stretch, 0, True, None, energy, pull, overstrained)

    @property
    def passes_itself(self) -> bool:
        """Whether flesh would pass through itself if nothing led it past."""
        return self.collisions is not None and self.collisions.solver.self_contact is not None

    def _touching_at_rest(
        self, collisions: Collisions, frames: Frames, x: Floats, time: float, path: Frames | None
    ) -> tuple[Floats, StepContact]:
        """The nodes of a static pose at the first frame, in contact."""
        body = self.body
        posed, carried = body.posed(frames, 0), body.carried(frames, 0)
        along = [carried] if path is None else [body.carried(path, k) for k in range(len(path.quaternions))]
        known = collisions.lead(along)

        def left(x: Floats) -> Floats:
            return load - body.operator.forces(x, posed.R) - self.leash * (x - carried)[: body.nodes.free]

        unsolved = Solved(np.zeros((body.nodes.free, 3)), 0, 0.0, 0.0, strain_scale(posed, 1.0))
        for _ in range(STATIC_CONTACT_ROUNDS):
            contact, before = collisions.begin((time, time), None, known, x), x
            load = self.weight + self.fibres.contraction(time, frames.joints[0], posed.R, x).load
            x, _, _ = self._pressed(
                posed, left, carried, body.leash.astype(np.float32), 1.0, body.static, contact, x, x, unsolved,
                **StaticOptions(accuracy=STATIC_CONTACT_ACCURACY).taken_by(refine),
            )  # fmt: skip
            touching = contact.settled(x)
            known = touching.state
            if np.abs(x - before).max() <= STATIC_CONTACT_MOTION * body.diagonal:
                break
        return x, touching

    def _pressed(
        self, posed: Posed, left: Any, carried: Floats, mass: Singles, stiffness: float, preconditioner: Preconditioner,
        contact: StageContact | None, guess: Floats, x: Floats, solved: Solved, *, accuracy: float, iterations: int,
    ) -> tuple[Floats, StrainLimits | None, Solved]:  # fmt: skip
        """Nodes (n, 3) in contact and within strain limits; the limits that act, if any, and how it was solved.

        x: the nodes of a linear solve without either, from a guess. solved: that solve, which may have iterations left.
        """

        imposed = cache(lambda: self.limits.imposed(carried))

        def exceeded(x: Floats) -> StrainLimits | None:
            return self.limits.exceeded(x, imposed)

        limits = exceeded(x)
        unsolved = solved.strain > accuracy and solved.iterations < iterations
        if unsolved or limits is not None or (contact is not None and contact.at(x).energy > 0):
            found = limited(
                posed, guess, x, left, limits, mass, stiffness, preconditioner, scale=solved.scale,
                accuracy=accuracy, iterations=iterations, contact=contact, exceeded=exceeded,
            )  # fmt: skip
            solved = replace(found.solved, iterations=solved.iterations + found.solved.iterations)
            x, limits = found.x, found.limits
        return x, limits, solved

    def step(self, before: BodyState, frames: Frames, frame: int) -> BodyState:
        """The state after one step; the bones are at `frame` at its end, and at the frame before between its stages."""
        middle = self._stage(before, trapezoidal(before, self.g), frames, frame - 1, GAMMA * self.h)
        end = self._stage(middle, backward(before, middle), frames, frame, (1 - GAMMA) * self.h)
        return self._state(middle, replace(end, time=before.time + self.h))

    def _stage(self, start: BodyState | Stage, known: Known, frames: Frames, frame: int, span: float) -> Stage:
        """The end of a stage that begins at `start` and lasts `span` seconds."""
        body, free = self.body, self.body.nodes.free
        time, carried = start.time + span, body.carried(frames, frame)
        coasting = start.nodes[:free] + span * start.velocity
        x = carried.copy()
        x[:free] = coasting + (carried - start.carried - span * start.carried_rate)[:free]
        x[:free][body.loose] = carried[:free][body.loose]
        posed = body.posed(frames, frame)
        pull = self.fibres.contraction(time, frames.joints[frame], posed.R, x)
        load = self._load(time, x) + pull.load
        shift = UNSTRAINED + self.viscous / self.stiffness * known.strain
        load = load + self.drag * self.mass * (carried - known.carried)[:free] / self.g
        load += self.leash * (self.stiffness * carried + self.viscous * (known.x - known.carried))[:free]
        unforced = known.x[:free] + self.g * known.velocity

        def left(x: Floats) -> Floats:
            inertial = self.mass * (
                (x[:free] - unforced) / self.g**2 + self.drag / self.g * (x[:free] - known.x[:free])
            )
            elastic = body.operator.forces(x, posed.R, shift) + self.leash * x[:free]
            return load - inertial - self.stiffness * elastic

        contact, before, guess = None, start.contact if self.collisions is not None else None, x.copy()
        apart = before is None or not before.in_contact
        solved = refine(  # in contact, only its scale is of use: what flesh does without contact is far from the answer
            posed, x, left, self.single, self.stiffness, self.preconditioner, relative=True,
            accuracy=self.accuracy, iterations=ITERATIONS if apart else 0, scale=self._scale(x, coasting),
        )  # fmt: skip
        solve = partial(
            self._pressed, posed, left, carried, self.single, self.stiffness, self.preconditioner,
            accuracy=self.accuracy, iterations=ITERATIONS,
        )  # fmt: skip
        if apart:
            x, limits, solved = solve(None, guess, x, solved)
            guess = x
        if self.collisions is not None:
            contact = self.collisions.begin((start.time, time), start.nodes, before, guess)
            x, limits, solved = solve(contact, guess, x, solved)
        in_contact = None if contact is None else contact.settled(x)
        reached = solved.strain <= self.accuracy
        stage = self._ended(time, x, known, posed.R, carried, solved.iterations, reached, in_contact)
        stage = replace(stage, contraction=pull)
        return (
            stage
            if limits is None
            else replace(stage, limit_energy=limits.at(x).energy, overstrained=limits.overstrained(x))
        )

    def _scale(self, x: Floats, coasting: Floats) -> ErrorScale:
        """What the guess x (n, 3) of a stage changes against coasting, or what is too little to matter."""
        change = np.where(self.body.loose[:, None], 0, x[: len(coasting)] - coasting)
        square, mass = np.einsum("ij,ij->i", change, change), self.mass[:, 0]
        least = max(self.least, ROUNDING * float(np.abs(x).max()) / self.accuracy)
        energy = max(float(mass @ square), float(mass.sum()) * least**2) ** 0.5 / self.g
        return energy, max(float(square.max(initial=0.0)) ** 0.5, least)

    def _load(self, time: float, x: Floats) -> Floats:
        """(free, 3) gravity and external forces on nodes (n, 3)."""
        if self.forces is None:
            return self.weight
        body = self.body
        acting = self.forces(time, body.embed(x)) if callable(self.forces) else self.forces
        given = checked_forces(acting, len(body.shape.points))
        if given.shape == (3,):
            return self.weight + given * self.mass / self.mass.sum()
        return self.weight + (body.surface.matrix.T @ given)[: body.nodes.free]

    def _ended(
        self, time: float, x: Floats, known: Known, R: Floats, carried: Floats, iterations: int, converged: bool,
        in_contact: StepContact | None,
    ) -> Stage:  # fmt: skip
        """The rates at the end of a stage, from what changed."""
        strain, stretch = self.body.operator.strains(x, R)
        velocity = (x - known.x)[: self.body.nodes.free] / self.g
        return Stage(
            time, x, velocity, (velocity - known.velocity) / self.g, strain, (strain - known.strain) / self.g,
            carried, (carried - known.carried) / self.g, stretch, iterations, converged, in_contact,
        )  # fmt: skip

    def _state(self, *stages: Stage) -> BodyState:
        """The state at the end of a step's stages."""
        body, end = self.body, stages[-1]
        problem = problem_of(float(np.abs(end.nodes - end.carried).max()), body.diagonal)
        volume, inverted = float(body.operator.weights @ end.stretch) / body.volume, body.inverted(end.stretch)
        overstrained = max(stage.overstrained for stage in stages)
        message = failure_of(volume, inverted, overstrained, len(end.stretch)) if np.isfinite(volume) else problem
        if not message and not all(stage.converged for stage in stages):
            message = f"a step is not solved to its accuracy; {SHORTER_STEPS}"
        leashed = leash_energy(body.leash, end.nodes, end.carried)
        pressed = 0.0 if end.in_contact is None else end.in_contact.energy
        kinetic = 0.5 * float(np.einsum("i,ij,ij->", self.mass[:, 0], end.velocity, end.velocity))
        state = BodyState(
            **{rate.name: getattr(end, rate.name) for rate in fields(Rates)},
            volume=volume,
            energy=body.operator.energy(end.strain - end.contraction.strain) + leashed + end.limit_energy + pressed,
            kinetic=kinetic,
            inverted=inverted, overstrained=overstrained,
            iterations=sum(stage.iterations for stage in stages),
            converged=not message,
            problem=problem, message=message,
            activation=end.contraction.activation, shortening=self.fibres.shortening(end.nodes),
        )  # fmt: skip
        for stage in stages:
            state = state if stage.in_contact is None else stage.in_contact.added_to(state)
        return state


def problem_of(away: float, diagonal: float) -> str:
    """Why flesh that is so far from where its bones carry it cannot go on; empty if it can."""
    if not np.isfinite(away):
        return "a position is not a finite number"
    return f"flesh is {away / diagonal:.1f} diagonals away from its bones" if away > FARTHEST * diagonal else ""


def rate_of(values: list[Floats], times: Floats) -> Floats:
    """The rate at the first of three moments, of the parabola through them; 0 if there is only one."""
    if len(values) < 3:
        return np.zeros_like(values[0])
    first, second = ((values[k] - values[0]) / times[k] for k in (1, 2))
    return np.asarray(first + (first - second) * times[1] / (times[2] - times[1]))
