"""Contact of a moving body with obstacles: after a step without contact, what went in is pushed out, by forces.

Surface vertices v that are nearer than `thickness` to an obstacle become rows: along the obstacle's normal n there, the
vertex must not be deeper. With N the rows' functions φ_I(v), the step's system is solved again with

    A d + Nᵀ (ρ n nᵀ + τ (1 - n nᵀ)) N d = r + Nᵀ λ n        ρ: stiff, about that of the flesh around the vertex

for a correction d, and the forces λ >= 0 are raised by what is still violated (augmented Lagrangian), so contact is met
without ρ being extreme; rows push and never pull. Friction is Coulomb's law, with the slip's direction and the pressure
of the round before: τ = min(μ λ / |slip|, ρ) holds against the obstacle's own motion.

A vertex that has gone through an obstacle within the step is kept on the side where it entered, by a plane there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pliant.contact.constraints import passed_through
from pliant.contact.obstacles import MovingObstacle, Obstacle, as_obstacle
from pliant.core.errors import InputError, PliantWarning
from pliant.core.topology import Floats, Ints
from pliant.engines.simulate.conjugate_gradients import Posed, Push, solve

if TYPE_CHECKING:
    from pliant.engines.simulate.body import ElasticBody
    from pliant.engines.simulate.dynamics import BodyState
    from pliant.engines.simulate.multigrid import Preconditioner

THICKNESS = 1e-3
"""Distance kept, over the diagonal."""
DEEPEST = 1e-4
"""Penetration, over the diagonal, that a step may end with."""
STIFF = 20.0
"""ρ over the stiffness of the node that counts most at the vertex."""
BOOST, STIFFEST = 4.0, 256.0
"""What ρ is multiplied by after a round that has not halved what is violated, and at most in all."""
ROUNDS = 16
ITERATIONS = 150
"""Of each round."""
FINE = 2e-4
"""What strains may lack where contact is solved: finer than the depth that a step may end with."""


@dataclass(frozen=True, eq=False)
class System:
    """The matrix of a step, or of a pose at rest."""

    inertia: Floats
    """(free,) what mass adds to the diagonal."""
    stiffness: float
    """What multiplies that of the flesh."""
    preconditioner: Preconditioner
    accuracy: float
    """What strains may lack."""


@dataclass(frozen=True, eq=False)
class Touched:
    """A step's end in contact."""

    x: Floats
    penetration: float
    contacts: int
    iterations: int
    solved: bool
    """Whether forces balance as well as they have to, and none pulls."""

    def told(self, state: BodyState) -> BodyState:
        """The state with what contact adds to it."""
        clear = self.solved and self.penetration <= DEEPEST
        return replace(
            state, penetration=self.penetration, contacts=self.contacts,
            iterations=state.iterations + self.iterations, converged=state.converged and clear,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Placed:
    """An obstacle at a step's end, and the vertices that have gone through it since the step's beginning."""

    obstacle: Obstacle
    through: Ints
    """(e,) ascending."""
    entries: Floats
    """(e, 3) where they entered."""
    normals: Floats
    """(e, 3)"""

    @classmethod
    def of(cls, before: Obstacle, now: Obstacle, started: Floats, y: Floats) -> _Placed:
        """started, y: (vertices, 3) at the step's beginning and end."""
        start = before.carried(started, now)
        if (np.linalg.norm(y - start, axis=1) <= now.clearance(start)).all():
            return cls(now, np.zeros(0, np.int64), np.zeros((0, 3)), np.zeros((0, 3)))
        return cls(now, *passed_through(now, start, y))

    def near(self, y: Floats, reach: float) -> NDArray[np.bool_]:
        """(vertices,) which may be nearer than `reach`, or have gone through."""
        near = self.obstacle.clearance(y) <= reach
        near[self.through] = True
        return near

    def signed(self, y: Floats, vertices: Ints) -> tuple[Floats, Floats]:
        """(m,) signed distance of some vertices, and (m, 3) its gradient."""
        distance, normal = (np.array(values) for values in self.obstacle.signed(y[vertices]))
        gone = np.isin(vertices, self.through)
        k = np.searchsorted(self.through, vertices[gone])
        normal[gone] = self.normals[k]
        distance[gone] = np.einsum("mi,mi->m", y[vertices[gone]] - self.entries[k], self.normals[k])
        return distance, normal


def make_collisions(body: ElasticBody, obstacles: Iterable[Any], friction: float, fps: float) -> Collisions | None:
    """What a body gives way to; None if that is nothing."""
    if isinstance(obstacles, (str, bytes)) or not isinstance(obstacles, Iterable):
        obstacles = [obstacles]
    moving = [as_obstacle(one) for one in obstacles]
    if not moving:
        return None
    if body.warping != "corotated":
        raise InputError(f'obstacles need the warping "corotated"; this body has "{body.warping}"', argument="warping")
    _warn_of_thin(body, moving)
    return Collisions(body, moving, friction, fps)


def _warn_of_thin(body: ElasticBody, obstacles: list[MovingObstacle]) -> None:
    """Obstacles that can slip between vertices."""
    edges = getattr(body.shape, "edges", None)
    if edges is None or not len(edges):
        return
    points = body.shape.points
    mean = float(np.linalg.norm(points[edges[:, 1]] - points[edges[:, 0]], axis=1).mean())
    thinnest = min(moving.at(0).thickness for moving in obstacles)
    if thinnest < mean:
        warnings.warn(
            f"an obstacle is {thinnest:.3g} thick, the shape's edges are {mean:.3g} long: contact is felt at vertices, "
            "so it may poke through faces unseen; use a finer shape or a thicker obstacle",
            PliantWarning,
            stacklevel=2,
        )


class Collisions:
    """Obstacles through a clip; their keyframes count the clip's frames.

    rounds, iterations, fine: how often, how long and how well contact is solved; fewer for what is dragged by hand.
    """

    def __init__(
        self,
        body: ElasticBody,
        obstacles: list[MovingObstacle],
        friction: float,
        fps: float,
        *,
        rounds: int | None = None,
        iterations: int | None = None,
        fine: float | None = None,
    ) -> None:
        self.body, self.obstacles, self.friction, self.fps = body, obstacles, friction, fps
        self._rounds, self._iterations, self._fine = rounds or ROUNDS, iterations or ITERATIONS, fine or FINE
        self.thickness = THICKNESS * body.diagonal
        size = np.trace(body.levels.blocks, axis1=1, axis2=2) / 3
        self._size = np.concatenate([size, np.full(len(body.nodes) - len(size), size.mean())])

    def resolve(
        self,
        system: System,
        posed: Posed,
        times: tuple[float, float],
        started: Floats,
        x: Floats,
        left: Callable[[Floats], Floats],
    ) -> Touched:
        """Nodes (n, 3) with contact, from those without.

        times: of the step's beginning and end. started: (vertices, 3) the surface at its beginning. left: the forces on
        the free nodes for others.
        """
        body, free, small = self.body, self.body.nodes.free, 0.3 * DEEPEST * self.body.diagonal
        earlier, now = ([moving.at(time * self.fps) for moving in self.obstacles] for time in times)
        entered = body.embed(x)
        placed = [_Placed.of(old, new, started, entered) for old, new in zip(earlier, now, strict=True)]
        x, iterations, strain, pulled, boost, short = x.copy(), 0, 0.0, 0.0, 1.0, np.inf
        pressed = np.zeros((len(started), len(placed)))
        for _ in range(self._rounds):
            y = body.embed(x)
            vertex, which, depth, normal = self._near(placed, y, pressed)
            if not len(vertex) and pulled <= small:  # else solved once more: springs held back what left the obstacles
                break
            slip = y[vertex] - _carried(earlier, now, started[vertex], which)
            N, rho = body.surface.matrix[vertex], boost * self._rho(vertex, system)
            force = pressed[vertex, which]
            push = self._push(N, rho, normal, slip, force)
            # Forces of contact so far, and what the springs ρ and τ add for the depth and the slip that are left.
            acting = (force + rho * depth)[:, None] * normal - push.hold[:, None] * _across(slip, normal)
            r = left(x) + (N.T @ acting)[:free]
            solved = solve(
                posed, r, system.inertia.astype(np.float32), system.stiffness, system.preconditioner,
                accuracy=min(system.accuracy, self._fine), iterations=self._iterations,
                push=push if len(vertex) else None,
            )  # fmt: skip
            x[:free] += solved.d
            iterations, strain = iterations + solved.iterations, solved.strain
            moved = np.einsum("mi,mi->m", N[:, :free] @ solved.d, normal)
            pressed = np.zeros_like(pressed)
            pressed[vertex, which] = np.maximum(force + rho * (depth - moved), 0)
            pulled = float((moved - depth - force / rho).max(initial=0.0))
            before, short = short, float((depth - moved).max(initial=0.0))
            boost = min(BOOST * boost, STIFFEST) if short > 0.5 * before else boost
            done = pulled <= small and short <= small
            if done and self._deepest(placed, body.embed(x)) <= DEEPEST * body.diagonal:
                break
        deepest = self._deepest(placed, body.embed(x)) / body.diagonal
        contacts = int((pressed > 0).any(axis=1).sum())
        return Touched(x, deepest, contacts, iterations, strain <= system.accuracy and pulled <= small)

    def measured(self, state: BodyState) -> BodyState:
        """A state to go on from, with its depth in the obstacles as they are at first."""
        y = self.body.embed(state.nodes)
        now = [moving.at(state.time * self.fps) for moving in self.obstacles]
        deepest = self._deepest([_Placed.of(one, one, y, y) for one in now], y) / self.body.diagonal
        return replace(state, penetration=deepest, converged=state.converged and deepest <= DEEPEST)

    def _rho(self, vertex: Ints, system: System) -> Floats:
        """(m,) stiffness of rows, from the flesh and the mass around their vertices."""
        surface = self.body.surface
        inertia = np.concatenate([system.inertia, np.zeros(len(self._size) - len(system.inertia))])
        size = system.stiffness * self._size + inertia
        return STIFF * np.array([size[surface.node[surface.start[v] : surface.start[v + 1]]].mean() for v in vertex])

    def _push(self, N: Any, rho: Floats, normal: Floats, slip: Floats, pressed: Floats) -> Push:
        """The rows' springs; those that would pull have none."""
        across = np.linalg.norm(_across(slip, normal), axis=1)
        hold = np.minimum(self.friction * pressed / np.maximum(across, 1e-12 * self.body.diagonal), rho)
        return Push(N.astype(np.float32), rho, hold, normal)

    def _near(self, placed: list[_Placed], y: Floats, pressed: Floats) -> tuple[Ints, Ints, Floats, Floats]:
        """Vertices within the thickness of an obstacle or still pressed, its number, their depth, and its normals."""
        rows = []
        for k, one in enumerate(placed):
            near = np.flatnonzero(one.near(y, self.thickness) | (pressed[:, k] > 0))
            distance, normal = one.signed(y, near)
            inner = (distance < self.thickness) | (pressed[near, k] > 0)
            rows.append((near[inner], np.full(inner.sum(), k), self.thickness - distance[inner], normal[inner]))
        vertex, which, depth, normal = (np.concatenate(parts) for parts in zip(*rows, strict=True))
        return vertex, which, depth, normal

    def _deepest(self, placed: list[_Placed], y: Floats) -> float:
        """How deep a vertex is inside an obstacle, or behind it."""
        depths = [-float(one.signed(y, np.flatnonzero(one.near(y, 0)))[0].min(initial=0.0)) for one in placed]
        return max(depths, default=0.0)


def _carried(earlier: list[Obstacle], placed: list[Obstacle], points: Floats, which: Ints) -> Floats:
    """(m, 3) where points of the step before would be if they moved along with their obstacles."""
    out = points.copy()
    for k, (old, new) in enumerate(zip(earlier, placed, strict=True)):
        mine = which == k
        if mine.any():
            out[mine] = old.carried(points[mine], new)
    return out


def _across(vectors: Floats, normals: Floats) -> Floats:
    """The parts of vectors (m, 3) across unit normals."""
    return vectors - np.einsum("mi,mi->m", vectors, normals)[:, None] * normals
