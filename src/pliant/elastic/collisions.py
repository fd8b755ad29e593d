"""Contact of a moving body with obstacles: after a step without contact, what went in is pushed out, by forces.

Surface vertices v that are nearer than `thickness` to an obstacle become rows: along the obstacle's normal n there, the
vertex must not be deeper. With N the rows' functions φ_I(v), the step's system is solved again with

    A d + Nᵀ (ρ n nᵀ + τ (1 - n nᵀ)) N d = r + Nᵀ λ n        ρ: stiff, about that of the flesh around the vertex

for a correction d, and the forces λ >= 0 are raised by what is still violated (augmented Lagrangian), so contact is met
without ρ being extreme; rows push and never pull. Friction is Coulomb's law, with the slip's direction and the pressure
of the round before: τ = min(μ λ / |slip|, ρ) holds against the obstacle's own motion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pliant.contact.obstacles import MovingObstacle, Obstacle, as_obstacle
from pliant.elastic.conjugate import Posed, Push, solve
from pliant.errors import InputError
from pliant.topology import Floats, Ints

if TYPE_CHECKING:
    from pliant.elastic.body import ElasticBody
    from pliant.elastic.dynamics import BodyState
    from pliant.elastic.levels import Preconditioner

THICKNESS = 1e-3
"""Distance kept, over the diagonal."""
DEEPEST = 1e-4
"""Penetration, over the diagonal, that a step may end with."""
STIFF = 20.0
"""ρ over the stiffness of the node that counts most at the vertex."""
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


def make_collisions(body: ElasticBody, obstacles: Iterable[Any], friction: float, fps: float) -> Collisions | None:
    """What a body gives way to; None if that is nothing."""
    if isinstance(obstacles, (str, bytes)) or not isinstance(obstacles, Iterable):
        obstacles = [obstacles]
    moving = [as_obstacle(one) for one in obstacles]
    if not moving:
        return None
    if body.warping != "corotated":
        raise InputError(f'obstacles need the warping "corotated"; this body has "{body.warping}"')
    return Collisions(body, moving, friction, fps)


class Collisions:
    """Obstacles through a clip; their keyframes count the clip's frames."""

    def __init__(self, body: ElasticBody, obstacles: list[MovingObstacle], friction: float, fps: float) -> None:
        self.body, self.obstacles, self.friction, self.fps = body, obstacles, friction, fps
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
        earlier, placed = ([moving.at(time * self.fps) for moving in self.obstacles] for time in times)
        x, iterations, strain, pulled = x.copy(), 0, 0.0, 0.0
        pressed = np.zeros((len(started), len(placed)))
        for _ in range(ROUNDS):
            y = body.embed(x)
            vertex, which, depth, normal = self._near(placed, y, pressed)
            if not len(vertex) and pulled <= small:  # else solved once more: springs held back what left the obstacles
                break
            slip = y[vertex] - _carried(earlier, placed, started[vertex], which)
            N, rho = body.surface.matrix[vertex], self._rho(vertex, system)
            force = pressed[vertex, which]
            push = self._push(N, rho, normal, slip, force)
            # Forces of contact so far, and what the springs ρ and τ add for the depth and the slip that are left.
            acting = (force + rho * depth)[:, None] * normal - push.hold[:, None] * _across(slip, normal)
            r = left(x) + (N.T @ acting)[:free]
            solved = solve(
                posed, r, system.inertia.astype(np.float32), system.stiffness, system.preconditioner,
                accuracy=min(system.accuracy, FINE), iterations=ITERATIONS, push=push if len(vertex) else None,
            )  # fmt: skip
            x[:free] += solved.d
            iterations, strain = iterations + solved.iterations, solved.strain
            moved = np.einsum("mi,mi->m", N[:, :free] @ solved.d, normal)
            pressed = np.zeros_like(pressed)
            pressed[vertex, which] = np.maximum(force + rho * (depth - moved), 0)
            pulled = float((moved - depth - force / rho).max(initial=0.0))
            done = pulled <= small and float((depth - moved).max(initial=0.0)) <= small
            if done and self._deepest(placed, body.embed(x)) <= DEEPEST * body.diagonal:
                break
        deepest = self._deepest(placed, body.embed(x)) / body.diagonal
        contacts = int((pressed > 0).any(axis=1).sum())
        return Touched(x, deepest, contacts, iterations, strain <= system.accuracy and pulled <= small)

    def measured(self, state: BodyState) -> BodyState:
        """A state to go on from, with its depth in the obstacles as they are at first."""
        placed = [moving.at(state.time * self.fps) for moving in self.obstacles]
        deepest = self._deepest(placed, self.body.embed(state.nodes)) / self.body.diagonal
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

    def _near(self, placed: list[Obstacle], y: Floats, pressed: Floats) -> tuple[Ints, Ints, Floats, Floats]:
        """Vertices within the thickness of an obstacle or still pressed, its number, their depth, and its normals."""
        rows = []
        for k, obstacle in enumerate(placed):
            near = np.flatnonzero((obstacle.clearance(y) <= self.thickness) | (pressed[:, k] > 0))
            distance, normal = obstacle.signed(y[near])
            inner = (distance < self.thickness) | (pressed[near, k] > 0)
            rows.append((near[inner], np.full(inner.sum(), k), self.thickness - distance[inner], normal[inner]))
        vertex, which, depth, normal = (np.concatenate(parts) for parts in zip(*rows, strict=True))
        return vertex, which, depth, normal

    def _deepest(self, placed: list[Obstacle], y: Floats) -> float:
        """How deep a vertex is inside an obstacle."""
        deepest = 0.0
        for obstacle in placed:
            near = np.flatnonzero(obstacle.clearance(y) <= 0)
            deepest = max(deepest, -float(obstacle.signed(y[near])[0].min(initial=0.0)))
        return deepest


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
