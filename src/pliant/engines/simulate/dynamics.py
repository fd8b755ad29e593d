"""Dynamics (Eq. 15): flesh that lags, swings and settles while the skeleton moves.

Each step h is implicit (Baraff and Witkin 1998), with the rotations R of the skeleton at the end of the step, which are
known: nothing lags behind, and for a skeleton that stands still every step takes energy out, whatever its length.

    m (x₁ - x₀ - h v₀) / h²  +  d m ((x₁ - x₀) - (c₁ - c₀)) / h  +  ∂E/∂x (x₁)  +  viscous forces  =  external forces

Damping never slows a rigid motion. Viscous stress is that of the strain's rate, β C:(ε₁ - ε₀)/h, each strain measured
with its own rotations. Drag d acts on the motion against the places c to which the bones alone would carry the flesh.
With γ = β/h the stress of both is (1 + γ) C:(sym(Rᵀ F) - shift), shift = 1 + γ/(1 + γ) ε₀.

A step starts from where the flesh would go by its own velocity and the skeleton's acceleration, and is solved like a
static pose (`pliant.engines.simulate.conjugate_gradients`), with the mass in the matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from pliant.core.errors import InputError
from pliant.core.topology import Floats
from pliant.engines.simulate.assembled import solve_assembled
from pliant.engines.simulate.bones import Frames
from pliant.engines.simulate.conjugate_gradients import Posed, solve
from pliant.engines.simulate.options import SimulateOptions
from pliant.engines.simulate.warping import UNSTRAINED

if TYPE_CHECKING:
    from pliant.contact.solver import ContactState
    from pliant.engines.simulate.body import ElasticBody
    from pliant.engines.simulate.contacts import Collisions, StepContact

ACCURACY = 3e-3
"""What strains may lack at the end of a step, root mean square; the next step sees what is left."""
ITERATIONS = 60
FARTHEST = 3.0
"""Distance from where the bones carry it, over the diagonal, beyond which flesh has flown apart."""
Forces = Callable[[float, Floats], ArrayLike] | ArrayLike | None
"""Forces on the shape's points (vertices, 3): constant, or a function of time and points."""


@dataclass(frozen=True, eq=False)
class BodyState:
    """A moving body at one moment."""

    time: float
    """Seconds since the beginning."""
    nodes: Floats
    """(n, 3)"""
    velocity: Floats
    """(free, 3) of the free nodes."""
    strain: Floats
    """(q, 6) at the quadrature points: xx, yy, zz, yz, xz, xy."""
    carried: Floats
    """(n, 3) where the bones alone would carry the nodes."""
    volume: float
    """Over that at rest."""
    energy: float
    """Elastic."""
    kinetic: float
    inverted: int
    """Quadrature points that are turned inside out."""
    iterations: int = 0
    converged: bool = True
    penetration: float = 0.0
    """Deepest penetration of a vertex into an obstacle, over the diagonal."""
    contacts: int = 0
    """Vertices that obstacles push."""
    problem: str = ""
    """Why it cannot go on from here."""
    contact: ContactState | None = field(default=None, repr=False)
    """What the next step has to know of this one's contacts."""


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
        collisions: Collisions | None = None,
        accuracy: float = ACCURACY,
    ) -> None:
        self.body, self.h, self.drag, self.forces = body, step, drag, forces
        self.viscous = damping / step
        self.accuracy, self.collisions = accuracy, collisions
        self.mass = body.mass[: body.nodes.free, None]
        self.weight = self.mass * body.gravity(gravity)
        inertia = 1 / step**2 + drag / step
        self.inertia = inertia * self.mass
        self.single = self.inertia[:, 0].astype(np.float32)
        self.stiffness = 1 + self.viscous
        self.preconditioner = body.levels.preconditioner(inertia, self.stiffness)
        self.plain = body.warping == "corotated" and body.rotations == "diffused"

    def start(self, x: Floats, frames: Frames, *, following: bool = True) -> BodyState:
        """Nodes (n, 3) at the first frame; following: they move as the bones do to the second, else they stand."""
        body, free = self.body, self.body.nodes.free
        here = body.carried(frames, 0)
        ahead = body.carried(frames, 1) if following and len(frames.turns) > 1 else here
        posed = body.posed(frames, 0)
        touched = self._touched_at_rest(posed, x) if self.collisions is not None else None
        x = x if touched is None else touched.x
        state = self._state(0.0, x, (ahead - here)[:free] / self.h, posed.R, here, 0, True)
        return state if touched is None else touched.added_to(state)

    def _touched_at_rest(self, posed: Posed, x: Floats) -> StepContact:
        """The nodes of a static pose, in contact with the obstacles where they are at first."""
        from pliant.engines.simulate.contacts import StepSystem

        body = self.body
        assert self.collisions is not None

        def left(x: Floats) -> Floats:
            return self.weight - body.flesh.forces(x, posed.R)

        system = StepSystem(np.zeros(body.nodes.free), 1.0, self.accuracy)
        return self.collisions.resolve(system, (0.0, 0.0), None, None, x, left)

    def step(self, before: BodyState, frames: Frames, frame: int, previous: Floats) -> BodyState:
        """The state after one step, the bones being at `frame` then; previous: `carried` one step before the last."""
        body, h, free = self.body, self.h, self.body.nodes.free
        carried = body.carried(frames, frame)
        coasting = before.nodes[:free] + h * before.velocity
        load = self._load(before)
        drawn = self.drag / h * self.mass * (carried - before.carried)[:free]
        x = carried.copy()
        if not self.plain and body.warping != "corotated":
            load = load + self.mass * (coasting / h**2) + self.drag / h * self.mass * before.nodes[:free] + drawn
            return self._by_nodes(
                before, x, load, Frames(frames.heads[[frame]], frames.tails[[frame]], frames.turns[[frame]])
            )
        posed = body.posed(frames, frame) if self.plain else self._polar(before)
        x[:free] = coasting + (carried - 2 * before.carried + previous)[:free]
        x[:free][body.loose] = carried[:free][body.loose]
        shift = UNSTRAINED + self.viscous / self.stiffness * before.strain

        def left(x: Floats) -> Floats:
            inertial = self.mass * (x[:free] - coasting) / h**2
            slowed = self.drag / h * self.mass * (x[:free] - before.nodes[:free]) - drawn
            return load - inertial - slowed - self.stiffness * body.flesh.forces(x, posed.R, shift)

        solved = solve(
            posed,
            left(x),
            self.single,
            self.stiffness,
            self.preconditioner,
            accuracy=self.accuracy,
            iterations=ITERATIONS,
        )
        x[:free] += solved.d
        touched = None
        if self.collisions is not None:
            from pliant.engines.simulate.contacts import StepSystem

            system = StepSystem(self.inertia[:, 0], self.stiffness, self.accuracy)
            times = (before.time, before.time + h)
            touched = self.collisions.resolve(system, times, before.nodes, before.contact, x, left)
            x = touched.x
        velocity = (x[:free] - before.nodes[:free]) / h
        reached = solved.strain <= self.accuracy
        state = self._state(before.time + h, x, velocity, posed.R, carried, solved.iterations, reached)
        return state if touched is None else touched.added_to(state)

    def _load(self, before: BodyState) -> Floats:
        """(free, 3) gravity and external forces."""
        if self.forces is None:
            return self.weight
        body = self.body
        acting = self.forces(before.time, body.embed(before.nodes)) if callable(self.forces) else self.forces
        given = checked_forces(acting, len(body.shape.points))
        if given.shape == (3,):
            return self.weight + given * self.mass / self.mass.sum()
        return self.weight + (body.surface.matrix.T @ given)[: body.nodes.free]

    def _polar(self, before: BodyState) -> Posed:
        """The flesh with Müller's rotations, of the step before."""
        from pliant.engines.simulate.comparison import node_rotations, point_rotations

        none = Frames(np.zeros((1, 0, 3)), np.zeros((1, 0, 3)), np.zeros((1, 0, 4)))
        R = point_rotations(self.body, none, before.nodes)
        turns = node_rotations(self.body, none, before.nodes)[: self.body.nodes.free].reshape(-1, 9)
        return Posed(self.body.flesh, R, R.astype(np.float32), turns.astype(np.float32), self.body.diagonal)

    def _by_nodes(self, before: BodyState, x: Floats, load: Floats, frames: Frames) -> BodyState:
        """A step with one of the warpings by nodes, whose matrix is factorised anew."""
        from pliant.engines.simulate.comparison import node_rotations, point_rotations

        body, free = self.body, self.body.nodes.free
        turns = node_rotations(body, frames, before.nodes)
        x = solve_assembled(
            body.rest_stiffness, body.nodes.points, turns, body.warping, x, load, self.inertia[:, 0], self.stiffness,
            before=(before.nodes, self.viscous),
        )  # fmt: skip
        R = point_rotations(body, frames, before.nodes)
        velocity = (x[:free] - before.nodes[:free]) / self.h
        return self._state(before.time + self.h, x, velocity, R, body.carried(frames, 0), 1, True)

    def _state(
        self, time: float, x: Floats, velocity: Floats, R: Floats, carried: Floats, iterations: int, converged: bool
    ) -> BodyState:
        flesh, body = self.body.flesh, self.body
        if not np.isfinite(x).all():
            problem = "a position is not a finite number"
            return BodyState(
                time, x, velocity, np.zeros((0, 6)), carried, 0, 0, 0, 0, iterations, False, problem=problem
            )
        strain, stretch = flesh.strains(x, R)
        away = float(np.abs(x - carried).max())
        problem = ""
        if away > FARTHEST * body.diagonal:
            problem = f"flesh is {away / body.diagonal:.1f} diagonals away from its bones"
        return BodyState(
            time, x, velocity, strain, carried,
            volume=float(flesh.weights @ stretch) / body.volume,
            energy=flesh.energy(strain),
            kinetic=0.5 * float(np.einsum("i,ij,ij->", self.mass[:, 0], velocity, velocity)),
            inverted=int((stretch <= 0).sum()),
            iterations=iterations,
            converged=converged,
            problem=problem,
        )  # fmt: skip
