"""A meshless body in contact: the bridge from `pliant.engines.simulate` to `pliant.contact`.

The field N x of the nodes is smooth over the distance h between nodes, and parts that joints carry follow these alone.
So what touches is an outer layer of flesh, which gives way by u where something presses on it:

    Ψ(x) = E(x) + min_u ½ Σ_v k_v |u_v|²     so that N x + u penetrates nothing,      k = γ μ A / h

with E the energy of a stage or pose, A the area that a vertex stands for, at most h², and γ = `LAYER_STIFFNESS`: the
stiffness of a layer that is a share of h thick. As h decreases, it becomes rigid. Vertices of the layer give way each
by itself, which makes the inner problem a small one (`ContactSolver`). Its solution gives the second term's gradient,
-Nᵀ k u, and its second derivative Nᵀ Jᵀ (J k⁻¹ Jᵀ)⁻¹ J N, with J the rows of the contacts that act. So contact is one
more energy for Newton's method (`pliant.engines.simulate.newton`), beside strain limits, and its forces are integrated
in time as those of flesh are.

Within Newton's method the layer is pressed to first order, from a shape that penetrates nothing and is near the end of
the stage. At last it is settled: led there by a path on which nothing passes through anything, and examined.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pliant.contact.forces import LocalCompliance, Rows
from pliant.contact.obstacles import MovingObstacle, as_obstacle
from pliant.contact.solids import HalfSpace
from pliant.contact.solver import DEFAULT_THICKNESS, ContactFrame, ContactResult, ContactSolver
from pliant.contact.state import ContactState
from pliant.contact.watched_rows import MAX_PENETRATION
from pliant.core.errors import InputError
from pliant.core.normals import triangle_normals
from pliant.core.shapes import Mesh, Shape, TetMesh
from pliant.core.skeleton import Motion
from pliant.core.topology import Floats, Ints
from pliant.engines.simulate.nodes import SUPPORT_FACTOR
from pliant.native import kernels
from pliant.numerics.linalg import dot, one_blas_thread

if TYPE_CHECKING:
    from pliant.engines.simulate.body import ElasticBody
    from pliant.engines.simulate.dynamics import BodyState

CONTACT_ITERATIONS = 300
GROUND_FRAMES = 24
"""Of a motion, at most, that say where it stands."""
LAYER_STIFFNESS = 6.0
"""γ: that of a layer of half the nodes' distance, at Poisson's ratio 0.2."""
RIGID_LAYER_STIFFNESS = 30.0
"""Stiffness of the layer of parts that are rigid, over that of flesh: they give way where nothing else can."""
RESOLUTION = 1e-3
"""Motion of the layer in a sweep, over the distance kept, that ends the sweeps."""
SETTLED = 0.3
"""Motion of the layer, over the distance kept, that does not matter."""
MOST_IN_GROUP = 400
"""Contacts that share vertices, whose stiffness together is found by a full matrix."""


@dataclass(frozen=True, eq=False)
class ContactSurface:
    """The surface that touches."""

    vertices: Ints
    """(s,) vertices of the shape; of those that a file has split, one."""
    triangles: Ints
    """(t, 3) of these."""
    index: Ints
    """(n,) for each vertex of the shape, its number among these; -1 inside tetrahedra."""

    @classmethod
    def of(cls, shape: Shape) -> ContactSurface:
        """Of a shape; points alone have no triangles."""
        count = len(shape.points)
        if isinstance(shape, TetMesh):
            kept, corners = np.unique(shape.surface.triangles, return_inverse=True)
            index = np.full(count, -1)
            index[kept] = np.arange(len(kept))
            return cls(kept, corners.reshape(-1, 3), index)
        if isinstance(shape, Mesh):
            weld = shape.welded()
            return cls(weld.kept, weld.mesh.triangles, weld.index)
        return cls(np.arange(count), np.zeros((0, 3), np.int64), np.arange(count))

    def spread(self, surface: Floats, points: Floats) -> Floats:
        """(n, 3) the shape's points, of which those of the surface are at (s, 3)."""
        return np.where((self.index >= 0)[:, None], surface[self.index], points)


@dataclass(frozen=True, eq=False)
class StepContact:
    """A stage's end in contact."""

    result: ContactResult
    state: ContactState
    penetration: float
    """Over the diagonal."""
    energy: float
    """Of the layer."""

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


def ground_under(body: ElasticBody, motion: Motion, up: Floats) -> HalfSpace:
    """The floor that a motion stands on: below the lowest point of the shape in half of the frames.

    up: (3,) a unit vector. The shape is as its bones carry it, so it does not matter how soft the flesh is.
    """
    some = np.unique(np.linspace(0, len(motion) - 1, GROUND_FRAMES).round().astype(np.int64))
    frames = body.bones.posed(motion.rotations[some], motion.translations[some])
    lowest = [float((body.embed(body.carried(frames, k)) @ up).min()) for k in range(len(some))]
    return HalfSpace((np.median(lowest) - DEFAULT_THICKNESS * body.diagonal) * up, up)


class Collisions:
    """Contact through a clip; obstacles' keyframes count the clip's frames.

    quick: seconds that a stage may take, for what is dragged by hand.
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
        surface = self.surface = body.contact_surface
        if self_contact and not len(surface.triangles):
            raise InputError("self_contact is given, but the shape has no faces; expected a mesh or tetrahedra")
        self._rest = body.shape.points[surface.vertices]
        self.solver = ContactSolver(
            surface.triangles, body.diagonal, obstacles=obstacles, friction=friction, count=len(surface.vertices),
            rest=self._rest if self_contact else None, as_at_rest=True,
        )  # fmt: skip

    @cached_property
    def N(self) -> Any:
        """Sparse (s, nodes): the surface's vertices by nodes."""
        return self.body.surface.matrix.tocsr()[self.surface.vertices]

    @cached_property
    def N_free(self) -> Any:
        """Sparse (s, free): N of the free nodes."""
        return self.N[:, : self.body.nodes.free].tocsr()

    @cached_property
    def from_surface(self) -> Any:
        """Sparse (free, s): N of the free nodes, transposed."""
        return self.N_free.T.tocsr()

    @cached_property
    def layer(self) -> Floats:
        """(s,) k, the stiffness of the layer."""
        from scipy.spatial import cKDTree

        body, points, rows = self.body, self._rest, self.body.discretisation
        at = cKDTree(rows.points).query(points)[1]
        nodes = body.nodes.points[: body.nodes.free]
        spacing = (body.nodes.radii / SUPPORT_FACTOR)[cKDTree(nodes).query(points)[1]]
        area = np.bincount(
            self.surface.triangles.ravel(),
            np.repeat(np.linalg.norm(triangle_normals(points, self.surface.triangles), axis=1) / 6, 3),
            minlength=len(points),
        )
        area = np.maximum(area, 0.05 * area.mean()) if area.any() else np.full(len(points), spacing.mean() ** 2)
        stiff = np.where(self._rigid, RIGID_LAYER_STIFFNESS, 1.0)
        shear = (body.operator.mu / (body.cut * rows.weights))[at]
        return np.asarray(LAYER_STIFFNESS * stiff * shear * np.minimum(area, spacing**2) / spacing)

    @property
    def _rigid(self) -> NDArray[np.bool_]:
        """(s,) vertices that one joint carries."""
        carried = self.body.binding.carried
        if carried is None:
            return np.zeros(len(self.surface.vertices), dtype=bool)
        return np.asarray(np.diff(carried.indptr)[self.surface.vertices] == 1)

    def begin(
        self, times: tuple[float, float], started: Floats | None, known: ContactState | None, x: Floats
    ) -> StageContact:
        """A stage's contact, led to about its end, where nodes x (n, 3) are without contact.

        times: of the stage's beginning and end. started: (n, 3) the nodes at its beginning; none: nothing leads to x.
        known: what contact left there.
        """
        if started is None:
            self.solver.state = known
        else:
            count = len(self.surface.vertices)
            fits = known is not None and len(known.x) == count
            fits = fits and known is not None and len(known.anchors) in (0, len(self.solver.obstacles))
            self.solver.state = known if fits else ContactState(self.points(started), times[0] * self.fps)
        return StageContact(self, self.solver.begin(self.layer_on(x), times[1] * self.fps, quick=self._quick))

    def lead(self, path: Iterable[Floats]) -> ContactState | None:
        """The state after the body was led past itself, through nodes (n, 3) that begin as at rest; None without."""
        if self.solver.self_contact is None:
            return None
        bodies = [self.layer_on(nodes) for nodes in path]
        untangled = np.zeros(len(self._rest), dtype=bool)
        start = ContactState(bodies[0].free, 0.0, tangled=untangled)
        return self.solver.lead(start, bodies[1:])

    def layer_on(self, x: Floats) -> HeldLayer:
        """The layer on nodes (n, 3)."""
        return HeldLayer(self.points(x), self.layer, self.body.diagonal)

    def points(self, x: Floats) -> Floats:
        """(s, 3) the surface of nodes (n, 3)."""
        return np.asarray(self.N @ x[: self.N.shape[1]])

    def forces(self, x: Floats, state: ContactState) -> Floats:
        """(free, 3) on nodes (n, 3) by the layer, as contact has moved it."""
        return np.asarray(self.from_surface @ (self.layer[:, None] * (state.x - self.points(x))))

    def measured(self, state: BodyState) -> BodyState:
        """A state to go on from, with its depth in the obstacles as they are at first."""
        deepest = self.solver.penetration(self.points(state.nodes), state.time * self.fps) / self.body.diagonal
        return replace(state, penetration=deepest, converged=state.converged and deepest <= MAX_PENETRATION)


class HeldLayer:
    """The layer, as contact moves it (`pliant.contact.body.ContactBody`): each vertex is held by a spring."""

    has_inertia = True

    def __init__(self, points: Floats, stiffness: Floats, diagonal: float) -> None:
        self.free, self.stiffness = points, stiffness
        kept = DEFAULT_THICKNESS * diagonal
        self.compliance = LocalCompliance(1 / stiffness, RESOLUTION * kept, SETTLED * kept)

    def energy(self, x: Floats, gradient: Floats) -> float:
        """Of the springs."""
        gradient[:] = self.stiffness[:, None] * (x - self.free)
        return 0.5 * dot(gradient, x - self.free)

    def solve(self, forces: Floats) -> Floats:
        """The motion by forces."""
        return forces / self.stiffness[:, None]

    def resist(self, motion: Floats) -> Floats:
        """The forces that a motion takes."""
        return self.stiffness[:, None] * motion

    def tolerance(self) -> float:
        """All energy matters."""
        return 0.0

    def constrained(self, x: Floats) -> Floats:
        """All vertices may go anywhere."""
        return x

    def largest_force(self, forces: Floats) -> float:
        """On a vertex."""
        return float(np.abs(forces).max(initial=0))


@dataclass(frozen=True, eq=False)
class Pressed:
    """The layer pressed, at some nodes."""

    energy: float
    """½ Σ k |u|², and that of the rows themselves."""
    force: Floats
    """(s, 3) k u: what holds it there, and acts on the flesh."""
    rows: Rows
    """Those that act."""


class StageContact:
    """The energy ½ Σ k |u|² of a stage, as a function of the nodes."""

    def __init__(self, collisions: Collisions, frame: ContactFrame) -> None:
        self._collisions, self._frame, self._layer = collisions, frame, collisions.layer

    def at(self, x: Floats) -> Pressed:
        """The layer pressed at nodes (n, 3)."""
        layer = self._collisions.layer_on(x)
        move = self._frame.pressed(layer)
        force = move.rows.spread(move.forces, len(layer.free))
        energy = 0.5 * float(np.sum(force**2 / self._layer[:, None]) + np.sum(move.forces**2 / move.rows.rho))
        return Pressed(energy, force, move.rows.only(move.acting))

    def forces(self, pressed: Pressed) -> Floats:
        """(free, 3) the gradient of the energy."""
        return np.asarray(-(self._collisions.from_surface @ pressed.force))

    def curvature(self, pressed: Pressed) -> tuple[Any, ...]:
        """The second derivative: nodes and direction of each contact, and the stiffness of those that share vertices.

        Larger groups than `MOST_IN_GROUP` are taken apart: then it is about that.
        """
        from scipy.sparse import csr_array

        rows, count, points = pressed.rows, len(pressed.rows), len(self._layer)
        order, first = np.empty(count, np.int64), np.empty(count + 1, np.int64)
        number = kernels.contact_groups(rows.vertices, rows.weights, points, MOST_IN_GROUP, order, first)
        first = first[: number + 1]
        size = np.diff(first)
        begin = np.concatenate([[0], np.cumsum(size**2)])
        stiffness = np.zeros(begin[-1])
        kernels.contact_softness(
            rows.vertices, rows.weights, rows.directions, rows.rho, 1 / self._layer, order, first, begin, stiffness
        )
        with one_blas_thread():  # more of them are slower for blocks as small as these
            for k in np.unique(size).tolist():
                at = (begin[:-1][size == k, None] + np.arange(k * k)).ravel()
                stiffness[at] = np.linalg.inv(stiffness[at].reshape(-1, k, k)).ravel()
        each = rows.weights[order].ravel(), rows.vertices[order].ravel(), np.arange(0, 4 * count + 1, 4)
        nodes = csr_array(each, shape=(count, points)) @ self._collisions.N_free
        return (
            nodes.indptr.astype(np.int64), nodes.indices.astype(np.int32), nodes.data.astype(np.float32),
            rows.directions[order].astype(np.float32), first, stiffness.astype(np.float32),
        )  # fmt: skip

    def settled(self, x: Floats) -> StepContact:
        """The end of the stage, with nodes (n, 3)."""
        collisions = self._collisions
        with one_blas_thread():
            result = self._frame.settled(collisions.layer_on(x), iterations=CONTACT_ITERATIONS)
        state = collisions.solver.state
        assert state is not None
        energy = 0.5 * float(self._layer @ np.square(state.x - collisions.points(x)).sum(axis=1))
        return StepContact(result, state, result.penetration / collisions.body.diagonal, energy)
