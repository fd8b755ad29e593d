"""Steps of a body in eigenmodes: those of `pliant.engines.simulate.dynamics`, over the modes' coordinates z."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.core.topology import Floats
from pliant.engines.simulate.bones import Frames
from pliant.engines.simulate.cubature import SYMMETRIC
from pliant.engines.simulate.dynamics import DIAGONAL, GAMMA, Measured, problem_of, rate_of
from pliant.engines.simulate.newton import NEWTON_STEPS, TRIALS
from pliant.engines.simulate.options import SimulateOptions, StretchLimit
from pliant.engines.simulate.stages import Known, Rates, backward, trapezoidal
from pliant.engines.simulate.statics import failure_of
from pliant.engines.simulate.strain_limits import far_beyond, limit_walls, stretches_of
from pliant.engines.simulate.warping import Singles
from pliant.native import kernels
from pliant.numerics.linalg import one_blas_thread

if TYPE_CHECKING:
    from pliant.engines.simulate.reduced import ReducedBody, ReducedSystem

SMALL_STEP = 3e-5
"""Where strain limits act: a motion over the diagonal, root mean square, that ends Newton's method."""


@dataclass(frozen=True, eq=False)
class ReducedStage(Rates):
    """Nodes are (3 m,) mass points times the roots of their masses; strains (r,) those of quadrature points, springs
    and leashes times the roots of their stiffness."""

    z: Floats
    """(k,) the modes' coordinates."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ReducedState(Measured, ReducedStage):
    """A reduced body at one moment; iterations are those of Newton's method."""

    transforms: Floats
    """(4 b, 3) of the bones."""
    ends: Floats
    """(s, 3) of parts that bones carry rigidly."""


class ReducedStepper:
    """Steps of one length h of a reduced body, as those of `dynamics.Stepper`."""

    passes_itself = False

    def __init__(
        self,
        body: ReducedBody,
        step: float,
        *,
        gravity: Any = None,
        damping: float = SimulateOptions.damping,
        drag: float = SimulateOptions.drag,
        stretch_limit: StretchLimit = SimulateOptions.stretch_limit,
    ) -> None:
        SimulateOptions.check(damping=damping, drag=drag, stretch_limit=stretch_limit)
        self.body, self.h, self.g, self.damping, self.drag = body, step, DIAGONAL * step, damping, drag
        self.walls = limit_walls(stretch_limit)
        self.weight = np.outer(np.sqrt(body.mass.weights), body.body.gravity(gravity)).ravel()
        self.small = SMALL_STEP * body.diagonal * float(body.mass.weights.sum()) ** 0.5

    def divided(self, count: int) -> ReducedStepper:
        """The same with so many steps in the time of one."""
        other = copy(self)
        other.h, other.g = self.h / count, self.g / count
        return other

    def begin(self, frames: Frames, *, time: float = 0.0, following: bool = True, path: Any = None) -> ReducedState:
        """At rest in the first of the frames, moving with the bones or not; the next are the ends of stages."""
        systems = [self.body.system(frames, k) for k in range(len(frames.quaternions))]
        here = systems[0]
        z, iterations, reached = self._minimised(
            here, here.strained.T @ here.strained, here.moved.T @ self.weight - here.strained.T @ _single(here.strain),
            np.zeros(here.moved.shape[1]),
        )  # fmt: skip
        begun = self._rated(systems, z, time, None if following else 0.0)
        return self._state(begun, here, iterations, reached)

    def _rated(
        self, systems: list[ReducedSystem], z: Floats, time: float, swing: Floats | float | None
    ) -> ReducedStage:
        """The rates at the first of some moments. swing: (3 m,) velocity, if not that of the bones."""
        here, times = systems[0], np.array([0.0, GAMMA * self.h, self.h])[: len(systems)]
        velocity = rate_of([one.position + one.moved @ z for one in systems], times)
        strain_rate = rate_of([one.strain + one.strained @ _single(z) for one in systems], times)
        carried_rate = rate_of([one.position for one in systems], times)
        if swing is not None:
            velocity = np.broadcast_to(swing, velocity.shape).copy()
        strain = here.strain + here.strained @ _single(z)
        force = here.moved.T @ (self.weight - self.drag * (velocity - carried_rate))
        force = force - here.strained.T @ _single(strain + self.damping * strain_rate)
        mass = here.moved.T @ here.moved
        acceleration = here.moved @ np.linalg.solve(mass, force)
        position = here.position + here.moved @ z
        return ReducedStage(
            time, position, velocity, acceleration, strain, strain_rate, here.position, carried_rate, z
        )  # fmt: skip

    def step(self, before: ReducedState, frames: Frames, frame: int) -> ReducedState:
        """The state after one step; the bones are at `frame` at its end, and at the frame before between its stages."""
        with one_blas_thread():
            return self._stepped(before, frames, frame)

    def _stepped(self, before: ReducedState, frames: Frames, frame: int) -> ReducedState:
        known = trapezoidal(before, self.g)
        middle, _, first, well = self._stage(before.time + GAMMA * self.h, before.z, known, frames, frame - 1)
        known = backward(before, middle)
        end, system, second, converged = self._stage(before.time + self.h, middle.z, known, frames, frame)
        return self._state(end, system, first + second, well and converged)

    def _stage(
        self, time: float, z: Floats, known: Known, frames: Frames, frame: int
    ) -> tuple[ReducedStage, ReducedSystem, int, bool]:
        """The end of a stage, from what `dynamics` calls ŷ and from z before it."""
        g, system = self.g, self.body.system(frames, frame)
        x, v, e, c = known.x, known.velocity, known.strain, known.carried
        stiff, viscous, inertia = 1 + self.damping / g, self.damping / g, 1 / g**2 + self.drag / g
        A = inertia * (system.moved.T @ system.moved) + stiff * (system.strained.T @ system.strained)
        force = self.weight + (x + g * v - system.position) / g**2
        force = force + self.drag / g * (x - c)
        b = system.moved.T @ force - system.strained.T @ _single(stiff * system.strain - viscous * e)
        z, iterations, reached = self._minimised(system, A, b, z)
        position = system.position + system.moved @ z
        strain = system.strain + system.strained @ _single(z)
        velocity = (position - x) / g
        ended = ReducedStage(
            time, position, velocity, (velocity - v) / g, strain, (strain - e) / g, system.position,
            (system.position - c) / g, z,
        )  # fmt: skip
        return ended, system, iterations, reached

    def _minimised(self, system: ReducedSystem, A: Any, b: Any, start: Floats) -> tuple[Floats, int, bool]:
        """z where ½ zᵀ A z - bᵀ z and the energy of strain limits are least."""
        from scipy.linalg import cho_factor, cho_solve

        A, b = A.astype(np.float64), b.astype(np.float64)
        A[np.diag_indices_from(A)] *= 1 + 1e-9
        z = cho_solve(cho_factor(A), b)
        points = self.body.strains
        if not len(self.walls):
            return z, 1, True
        ranges = system.imposed, self.walls
        stiffness = points.limited * points.mu * points.weights
        if not kernels.limits_outside(system.gradients(z), ranges):
            return z, 1, True
        derivative = system.S_moved.reshape(-1, len(b))

        def at(z: Floats) -> tuple[float, Floats, Floats, Floats]:
            F = system.gradients(z)
            energies, P = np.empty(len(F)), np.empty_like(F)
            kernels.limits_stresses(F, ranges, stiffness, energies, P, 1)
            return float(0.5 * z @ A @ z - b @ z + energies.sum()), F, energies, P

        z = start
        value, F, energies, P = at(z)
        for done in range(NEWTON_STEPS):
            left = b - A @ z - derivative.T @ _single(P.ravel())
            active = np.flatnonzero(energies > 0).astype(np.int32)
            frame = np.empty((len(active), 27), np.float32)
            kernels.limits_curvatures(F, ranges, stiffness, active, frame)
            rows = _curvature_rows(frame, system.S_moved[active])
            d = cho_solve(cho_factor(A + rows.T @ rows), left)
            if np.linalg.norm(d) <= self.small:
                return z + d, done + 1, True
            share, slope = 1.0, float(left @ d)
            for _ in range(TRIALS):
                trial = at(z + share * d)
                if trial[0] <= value - 1e-4 * share * slope + 1e-9 * abs(value):
                    break
                share *= 0.5
            else:
                return z, done + 1, False
            z, (value, F, energies, P) = z + share * d, trial
        return z, NEWTON_STEPS, False

    def teleported(self, state: ReducedState, frames: Frames, R: Floats, shift: Floats) -> ReducedState:
        """As `dynamics.Stepper.teleported`."""
        systems = [self.body.system(frames, k) for k in range(len(frames.quaternions))]
        bones = self._rated(systems, state.z, 0.0, None).velocity
        swing = (state.velocity - state.carried_rate).reshape(-1, 3) @ R.T
        begun = self._rated(systems, state.z, state.time + self.h, bones + swing.ravel())
        return self._state(begun, systems[0], 1, True)

    def _state(self, rates: ReducedStage, system: ReducedSystem, iterations: int, converged: bool) -> ReducedState:
        points, body = self.body.strains, self.body
        F = system.gradients(rates.z)
        J = np.linalg.det(F.reshape(-1, 3, 3))
        beyond = far_beyond(stretches_of(F), system.imposed, self.walls)
        volume, inverted = (
            float(points.volumes @ J / points.volumes.sum()),
            int(((J <= 0) & (points.limited > 0)).sum()),
        )
        overstrained = int((beyond & (points.limited > 0)).sum())
        heavy = body.mass.weights > 0
        away = np.abs((rates.nodes - rates.carried).reshape(-1, 3)[heavy]).max(axis=1)
        problem = problem_of(float((away / np.sqrt(body.mass.weights[heavy])).max()), body.diagonal)
        message = failure_of(volume, inverted, overstrained, len(J)) if np.isfinite(volume) else problem
        return ReducedState(
            **vars(rates), transforms=system.posed.transforms, ends=body.rigid_ends.posed(system.posed.frames)[0],
            volume=volume, inverted=inverted, overstrained=overstrained,
            energy=0.5 * float(rates.strain @ rates.strain), kinetic=0.5 * float(rates.velocity @ rates.velocity),
            iterations=iterations, converged=converged and not message, problem=problem, message=message,
        )  # fmt: skip


def _curvature_rows(frames: Singles, moved: Singles) -> Singles:
    """(9 a, k) whose square is the second derivative of limits at points, for `StrainLimits.curvature`'s frames."""
    U, V = frames[:, :9].reshape(-1, 3, 3), frames[:, 9:18].reshape(-1, 3, 3)
    M = np.einsum("aji,ajlk->ailk", U, moved, optimize=True)
    M = np.einsum("ailk,alm->aimk", M, V, optimize=True)
    roots = np.sqrt(frames[:, 18:, None])
    rows = [roots[:, k] * M[:, k, k] for k in range(3)]
    for k, (i, j) in enumerate(SYMMETRIC):
        even, odd = (0.5**0.5 * (M[:, i, j] + sign * M[:, j, i]) for sign in (1, -1))
        rows += [roots[:, 6 + k] * even, roots[:, 3 + k] * odd]
    return np.concatenate(rows)


def _single(values: Floats) -> Singles:
    return values.astype(np.float32)
