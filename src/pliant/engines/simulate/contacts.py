"""A meshless body as contact moves it: the bridge from `pliant.engines.simulate` to `pliant.contact`.

The unknowns of a step are the free nodes x; contact sees the surface's vertices, N x, before them. For given rotations
the step is linear, so with d = x - x₀ from the step without contact, and the forces r(x) that it still lacks,

    E(x) = -½ d · (r(x₀) + r(x)),      ∂E/∂x = -r(x)

Contact models the body by a scalar matrix L that is the same for every pose: mass and ``Σ_q w_q (λ + 4μ)/3 g_I · g_J``,
the mean of the diagonal of the stiffness' blocks. It is factorised once for all steps of one length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from pliant.contact.forces import Compliance
from pliant.contact.obstacles import MovingObstacle, as_obstacle
from pliant.contact.solver import ContactResult, ContactSolver
from pliant.contact.state import ContactState
from pliant.contact.watched_rows import MAX_PENETRATION
from pliant.core.errors import InputError
from pliant.core.shapes import Mesh, Shape, TetMesh
from pliant.core.topology import Floats, Ints
from pliant.engines.simulate.stiffness import laplacian
from pliant.engines.simulate.strain_limits import StrainLimits
from pliant.numerics.linalg import dot, factorize

if TYPE_CHECKING:
    from pliant.engines.simulate.body import ElasticBody
    from pliant.engines.simulate.dynamics import BodyState

CONTACT_ITERATIONS = 300
CONTACT_STRAIN = 1e-3
"""What strains may lack where contact is solved, at most: contacts themselves are met at every iteration."""
MAX_KEPT_NUMBERS = 20_000_000
"""Of the answers of the surface to forces at its vertices, kept from step to step: 160 megabytes."""


@dataclass(frozen=True, eq=False)
class StepSystem:
    """The matrix of a step, or of a pose at rest."""

    inertia: Floats
    """(free,) what mass adds to the diagonal."""
    stiffness: float
    """What multiplies that of the flesh."""
    accuracy: float
    """What strains may lack."""


@dataclass(frozen=True, eq=False)
class StepContact:
    """A step's end in contact."""

    x: Floats
    """(n, 3) the nodes."""
    result: ContactResult
    state: ContactState
    penetration: float
    """Over the diagonal."""

    @property
    def contacts(self) -> int:
        """Points that are pushed."""
        return self.result.contacts

    def added_to(self, state: BodyState) -> BodyState:
        """The state with what contact adds to it."""
        return replace(
            state, penetration=max(state.penetration, self.penetration), contacts=self.contacts, contact=self.state,
            iterations=state.iterations + self.result.iterations, converged=state.converged and self.result.converged,
        )  # fmt: skip


def make_collisions(
    body: ElasticBody, obstacles: Iterable[Any], friction: float, fps: float, self_contact: bool = False
) -> Collisions | None:
    """What a body gives way to; None if that is nothing."""
    if isinstance(obstacles, (str, bytes)) or not isinstance(obstacles, Iterable):
        obstacles = [obstacles]
    moving = [as_obstacle(one) for one in obstacles]
    if not moving and not self_contact:
        return None
    return Collisions(body, moving, friction, fps, self_contact=self_contact)


class Collisions:
    """Contact through a clip; obstacles' keyframes count the clip's frames.

    quick: seconds that a step may take, for what is dragged by hand.
    """

    def __init__(
        self,
        body: ElasticBody,
        obstacles: list[MovingObstacle],
        friction: float,
        fps: float,
        *,
        self_contact: bool = False,
        quick: float | None = None,
    ) -> None:
        self.body, self.fps, self._quick = body, fps, quick
        self._vertices, triangles = _surface_of(body.shape)
        if self_contact and not len(triangles):
            raise InputError("self_contact is given, but the shape has no faces; expected a mesh or tetrahedra")
        self.solver = ContactSolver(
            triangles, body.diagonal, obstacles=obstacles, friction=friction, count=len(self._vertices),
            rest=body.shape.points[self._vertices] if self_contact else None,
        )  # fmt: skip
        self._responses: dict[tuple[float, float], _ScalarResponse] = {}

    def resolve(
        self,
        system: StepSystem,
        times: tuple[float, float],
        started: Floats | None,
        state: ContactState | None,
        x: Floats,
        left: Callable[[Floats], Floats],
        limits: StrainLimits | None = None,
    ) -> StepContact:
        """Nodes (n, 3) with contact, from those x without, at a step's end.

        times: of the step's beginning and end. started: (n, 3) the nodes at its beginning, none for a pose at rest.
        state: what contact left there. left: the forces that the free nodes lack, linear in the nodes.
        limits: strain limits that act too.
        """
        key = system.stiffness, float(system.inertia.sum())
        if key not in self._responses:
            self._responses[key] = _ScalarResponse(self.body, self._vertices, system)
        response, solver = self._responses[key], self.solver
        solver.state = None if started is None else self._state_at(times[0], started, state)
        result = solver.frame(
            _StepBody(self.body, response, system, x, left, limits), times[1] * self.fps, iterations=CONTACT_ITERATIONS,
            quick=self._quick,
        )  # fmt: skip
        assert solver.state is not None
        nodes = response.nodes(result.x, x)
        return StepContact(nodes, result, solver.state, result.penetration / self.body.diagonal)

    def measured(self, state: BodyState) -> BodyState:
        """A state to go on from, with its depth in the obstacles as they are at first."""
        points = self.body.embed(state.nodes)[self._vertices]
        deepest = self.solver.penetration(points, state.time * self.fps) / self.body.diagonal
        return replace(state, penetration=deepest, converged=state.converged and deepest <= MAX_PENETRATION)

    def _state_at(self, time: float, nodes: Floats, known: ContactState | None) -> ContactState:
        """What a step has to know of its beginning: what contact left there, or where the points are."""
        points = np.concatenate([self.body.embed(nodes)[self._vertices], nodes[: self.body.nodes.free]])
        if known is None or known.x.shape != points.shape or len(known.anchors) not in (0, len(self.solver.obstacles)):
            return ContactState(points, time * self.fps)
        return known


class _ScalarResponse:
    """L⁻¹: how surface and nodes give way to forces, for one share of mass and stiffness."""

    def __init__(self, body: ElasticBody, vertices: Ints, system: StepSystem) -> None:
        operator, free = body.operator, body.nodes.free
        self.free, self.surface = free, len(vertices)
        self._unknown = np.flatnonzero(~body.loose)
        matrix = body.surface.matrix.tocsr()[vertices]
        self._fixed, self.N = matrix[:, free:], matrix[:, :free] @ sp.diags((~body.loose).astype(np.float64))
        self._loose = matrix[:, :free] - self.N
        L = system.stiffness * laplacian(operator.functions, (operator.lam + 4 * operator.mu) / 3)[:free][:, :free]
        L = (L + sp.diags(system.inertia)).tocsr()[self._unknown][:, self._unknown]
        self._factor = factorize((L + 1e-9 * sp.diags(L.diagonal())).tocsc())
        diagonal = np.full(free, float(L.diagonal().mean()))
        diagonal[self._unknown] = L.diagonal()
        weight = abs(self.N)
        total = np.asarray(weight.sum(axis=1)).ravel()
        around = np.where(total > 0, weight @ diagonal / np.maximum(total, 1e-300), diagonal.mean())
        self.stiffness = np.concatenate([around, diagonal])
        self._kept: dict[int, Floats] = {}

    def compliance(self) -> Compliance:
        """L⁻¹ between the surface's vertices. A step's own: its rounding depends on the order of what is touched."""
        return Compliance(self._columns, self.surface)

    def solve(self, forces: Floats) -> Floats:
        """(surface + free, 3) the motion by forces on both."""
        return self._moved(self.gathered(forces))

    def gathered(self, forces: Floats) -> Floats:
        """(free, 3) forces on surface and nodes, at the nodes that can move; 0 at others."""
        at_nodes = forces[self.surface :] + self.N.T @ forces[: self.surface]
        out = np.zeros_like(at_nodes)
        out[self._unknown] = at_nodes[self._unknown]
        return out

    def _moved(self, at_nodes: Floats) -> Floats:
        d = np.zeros_like(at_nodes)
        d[self._unknown] = self._factor.solve(at_nodes[self._unknown])
        return np.concatenate([self.N @ d, d])

    def _columns(self, vertices: Ints) -> Floats:
        """(surface, m); each is found alone, so that it is the same to the last bit whatever else is asked for."""
        if (len(self._kept) + len(vertices)) * self.surface > MAX_KEPT_NUMBERS:
            self._kept.clear()
        for vertex in vertices.tolist():
            if vertex not in self._kept:
                self._kept[vertex] = self._moved(self.N[[vertex]].toarray().T)[: self.surface, 0].copy()
        return np.stack([self._kept[vertex] for vertex in vertices.tolist()], axis=1)

    def nodes(self, points: Floats, x: Floats) -> Floats:
        """(n, 3) the nodes of points (surface + free, 3), with those that cannot move as in x."""
        out = x.copy()
        out[self._unknown] = points[self.surface :][self._unknown]
        return out

    def points(self, x: Floats) -> Floats:
        """(surface + free, 3) the points of nodes x."""
        nodes = x[: self.free]
        surface = self.N @ nodes + self._loose @ nodes + self._fixed @ x[self.free :]
        return np.concatenate([surface, nodes])


class _StepBody:
    """A step, as contact moves it (`pliant.contact.body.ContactBody`): the surface's vertices, then the free nodes."""

    has_inertia = True

    def __init__(
        self,
        body: ElasticBody,
        response: _ScalarResponse,
        system: StepSystem,
        x: Floats,
        left: Callable[[Floats], Floats],
        limits: StrainLimits | None,
    ) -> None:
        self._response, self._x, self._left, self._limits = response, x, left, limits
        self.solve, self.compliance, self.stiffness = response.solve, response.compliance(), response.stiffness
        self.free = response.points(x)
        self._first = self._lacking(self.free)
        strain = min(system.accuracy, CONTACT_STRAIN)
        self._tolerance = 0.5 * strain**2 * system.stiffness * body.operator.stiffest

    def _lacking(self, points: Floats) -> Floats:
        """(surface + free, 3) the forces that are lacking, which act on nodes alone."""
        forces = np.zeros_like(points)
        forces[self._response.surface :] = self._left(self._response.nodes(points, self._x))
        forces[self._response.surface :] = self._response.gathered(forces)
        return forces

    def energy(self, x: Floats, gradient: Floats) -> float:
        """Of the step, above that of the one without contact."""
        lacking = self._lacking(x)
        gradient[:] = -lacking
        quadratic = -0.5 * dot(x - self.free, self._first + lacking)
        if self._limits is None:
            return quadratic
        stressed, forces = self._limits.at(self._response.nodes(x, self._x)), np.zeros_like(x)
        forces[self._response.surface :] = self._limits.forces(stressed)
        gradient[self._response.surface :] += self._response.gathered(forces)
        return quadratic + stressed.energy

    def resist(self, motion: Floats) -> Floats:
        """Each point by itself."""
        return self.stiffness[:, None] * motion

    def tolerance(self) -> float:
        """The energy of strains that may be lacking, root mean square over the body."""
        return self._tolerance

    def constrained(self, x: Floats) -> Floats:
        """The surface where the nodes carry it, and the nodes that cannot move in their positions."""
        return self._response.points(self._response.nodes(x, self._x))

    def largest_force(self, forces: Floats) -> float:
        """At the nodes."""
        return float(np.abs(self._response.gathered(forces)).max(initial=0))


def _surface_of(shape: Shape) -> tuple[Ints, Ints]:
    """Vertices of a shape, and triangles that count them; vertices that a file has split are one."""
    if isinstance(shape, TetMesh):
        kept, corners = np.unique(shape.surface.triangles, return_inverse=True)
        return kept, corners.reshape(-1, 3)
    if isinstance(shape, Mesh):
        weld = shape.welded()
        return weld.kept, weld.mesh.triangles
    return np.arange(len(shape.points)), np.zeros((0, 3), np.int64)
