"""How a blended shape changes with its sliders, by implicit differentiation of its equilibrium.

At the equilibrium x(w) of the free shape the forces f(x, w) = ∂E/∂x vanish (`pliant.engines.blend.equilibrium`), so

    H dx = -∂f/∂w dw,      H = ∂f/∂x,

and H is factorised once for all sliders. A spring's force depends on the weights through its rest vector v(w)
(`pliant.engines.blend.body`), r = |v|, p = v / r:

    ∂f_q/∂v = -k [u pᵀ + μ (p dᵀ + (d · p)) (1 - p pᵀ) / r],
    ∂v/∂w_s = R (R_sᵀ d_s - d_0) + (J(ω) ω_s) × v,      R = exp(ω),  ω = Σ_s w_s ω_s,

with J the left Jacobian of the rotation vector; the base's weight is what the others leave of 1. In the paper's model
``∂r/∂w_s = r_s - r_0``. Fixed vertices move on straight lines, and the rigid motion of a free part is differentiated
with the shape. Under pulls and in contact the free shape is the rest shape of a second equilibrium (`CorotatedRest`),
in which the vertices' rotations are unknowns, too; for contacts see `pliant.engines.blend.pressed`.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from pliant.contact.solver import ContactSolver
from pliant.core import rotations
from pliant.core.clips import Pose
from pliant.core.errors import InputError, PliantWarning
from pliant.core.topology import Floats, Ints
from pliant.core.values import Displayed, as_array
from pliant.engines.blend import kernels
from pliant.engines.blend.body import SpringBody, blended
from pliant.engines.blend.equilibrium import Network, SolveOptions
from pliant.engines.blend.pressed import ContactStiffness, pressed
from pliant.engines.blend.pulls import ExternalLoad
from pliant.engines.blend.springs import CorotatedRest, Rest
from pliant.engines.blend.stiffness import factorized, spring_blocks, stiffness
from pliant.numerics.linalg import Factorization

if TYPE_CHECKING:
    from pliant.engines.blend.blendshapes import Blendshapes

SLIDER_STEP = 1e-5
"""By which sliders are moved to differentiate the weights of in-betweens and combinations: cubic polynomials."""


class Jacobian(Displayed):
    """The derivative of a shape's points by the rig's sliders, at one pose."""

    def __init__(self, rig: Blendshapes, pose: Pose, derivative: Derivative, chain: Floats) -> None:
        self.pose = pose
        """Where it is taken."""
        self.sliders: tuple[str, ...] = rig.sliders.names
        """What it is taken by; the base is what the others leave of 1."""
        self._weld, self._at, self._chain = rig._weld, derivative, chain

    def __repr__(self) -> str:
        return f"Jacobian({len(self.pose.points)} points by {len(self.sliders)} sliders)"

    @cached_property
    def matrix(self) -> Floats:
        """(n, 3, sliders) how every point moves with every slider."""
        moved: Floats = self._at.surface_columns() @ self._chain
        return moved[self._weld.index]

    def forward(self, change: ArrayLike) -> Floats:
        """(n, 3) how the points move when the sliders change by (sliders,): one linear solve."""
        given = as_array(change, "change", np.float64)
        if given.shape != (len(self.sliders),):
            raise InputError(f"change has shape {given.shape}; expected one number for each of {len(self.sliders)}")
        moved: Floats = self._at.along(self._chain @ given)
        return moved[self._weld.index]

    def backward(self, gradient: ArrayLike) -> Floats:
        """(sliders,) the derivative of a function by the sliders, from that by the points (n, 3): one linear solve."""
        given = as_array(gradient, "gradient", np.float64)
        if given.shape != self.pose.points.shape:
            raise InputError(f"gradient has shape {given.shape}; expected {self.pose.points.shape}")
        welded = np.zeros((len(self._weld.mesh.points), 3))
        np.add.at(welded, self._weld.index, given)
        found: Floats = self._at.back(welded) @ self._chain
        return found


def jacobian_at(
    rig: Blendshapes, row: Floats, load: ExternalLoad, options: SolveOptions, solver: ContactSolver | None = None
) -> Jacobian:
    """At sliders (shapes,), under a load or none, in contact or not; a shape that has not converged is warned of."""
    found = _jacobian_at(rig, row, load, options, solver)
    if not found.pose.converged:
        why = found.pose.message or "the residual is above the accuracy"
        warnings.warn(
            f"the shape has not converged ({why}), so its derivative is not that of an equilibrium",
            PliantWarning,
            stacklevel=3,
        )
    return found


def _jacobian_at(
    rig: Blendshapes, row: Floats, load: ExternalLoad, options: SolveOptions, solver: ContactSolver | None
) -> Jacobian:
    rig.need_all_vertices("derivatives")
    w, statics, chain = rig.weights(row), rig.statics, slider_chain(rig, row)
    start = statics.start(w, options.accuracy)
    free_options = options if len(rig.body.network.unknown) else SolveOptions()  # Newton's matrix would be empty
    outcome = statics.outcome(rig.body.network, w, start, rig.body.rest(w), None, free_options)
    free = FreeDerivative(rig.body, w, outcome.x)
    if not load and solver is None:
        return Jacobian(rig, statics.pose(outcome, w), free, chain)
    world, rest = statics.unloaded(w, outcome.x)
    if not isinstance(rest, CorotatedRest):
        what = "pulls" if load else "obstacles"
        raise InputError(f'{what} have no derivative with model="paper"; use model="turned"', argument=what)
    network, x = statics.loaded(load, world)
    if solver is not None:
        pose, network, x, contact = pressed(rig, solver, w, load, (network, x, rest), options)
        derivative = LoadedDerivative(rig.body, w, free, network, load.vertices, x, rest, contact)
        return Jacobian(rig, pose, derivative, chain)
    outcome = statics.outcome(network, w, x, rest, load.force, options)
    loaded = LoadedDerivative(rig.body, w, free, network, load.vertices, outcome.x, rest)
    return Jacobian(rig, statics.pose(outcome, w, world=True), loaded, chain)


def slider_chain(rig: Blendshapes, row: Floats) -> Floats:
    """(shapes - 1, sliders) the derivative of the shapes' weights by the sliders, at sliders (shapes,)."""
    numbers = rig.sliders.numbers
    steps = np.zeros((len(numbers), len(row)))
    steps[np.arange(len(numbers)), numbers] = SLIDER_STEP
    ends = rig.sliders.weights(np.concatenate([row + steps, row - steps]))
    return ((ends[: len(numbers)] - ends[len(numbers) :]) / (2 * SLIDER_STEP)).T[1:]


class Derivative(ABC):
    """Of all vertices of a rig's network, by the weights of all shapes but the base."""

    body: SpringBody
    weights: Floats
    """(shapes,)"""

    @abstractmethod
    def columns(self, weights: Floats) -> Floats:
        """(n, 3, k) how all vertices move in the world with changes (shapes - 1, k) of the weights."""

    @abstractmethod
    def back(self, gradient: Floats) -> Floats:
        """(shapes - 1,) from a gradient by the surface's points."""

    def surface_columns(self) -> Floats:
        """(surface, 3, shapes - 1)"""
        return self.columns(np.eye(len(self.weights) - 1))[: self.body.surface]

    def along(self, change: Floats) -> Floats:
        """(surface, 3) for one change (shapes - 1,) of the weights."""
        return self.columns(change[:, None])[: self.body.surface, :, 0]


@dataclass(frozen=True, eq=False)
class FreeDerivative(Derivative):
    """Of the shape without load, by the weights of all shapes but the base."""

    body: SpringBody
    weights: Floats
    """(shapes,)"""
    x: Floats
    """(n, 3) the equilibrium, in the base's frame."""

    @cached_property
    def factor(self) -> Factorization:
        """H over the unknown vertices."""
        return factorized(stiffness(self.body.network, self.x, self.rest))

    @cached_property
    def rest(self) -> Rest:
        return self.body.rest(self.weights)

    @cached_property
    def forces(self) -> Floats:
        """(n, 3, shapes - 1) the forces that a change of the weights leaves where the unknown vertices stay."""
        body, network = self.body, self.body.network
        edges, ones = network.springs.edges, np.ones(len(network.springs.edges))
        found = np.empty((network.count, 3, len(self.weights) - 1))
        known = network.known[0]
        blocks = spring_blocks(network, self.x, self.rest) if len(known) else None
        for s in range(1, len(self.weights)):
            change = self._spring_forces(s)
            if blocks is not None:
                moved = np.zeros_like(self.x)
                moved[known] = body.points[s, known] - body.points[0, known]
                if moved.any():
                    change += np.einsum("qab,qb->qa", blocks, moved[edges[:, 0]] - moved[edges[:, 1]])
            found[:, :, s - 1] = kernels.divergence(change, ones, edges, network.fans)
        return found

    def _spring_forces(self, s: int) -> Floats:
        """(q, 3) the change of each spring's force with the weight of shape s, through its rest vector."""
        body, springs, rest = self.body, self.body.springs, self.rest
        if body.model == "paper":
            by_length = np.where(rest.lengths > 0, springs.rest[s] - springs.rest[0], 0.0)
            return -(springs.stiffness * by_length)[:, None] * self._along
        pieces, (parts, vectors) = body.pieces, body.blended_pieces(self.weights)
        moved = kernels.edge_changes(*body.local_changes(s), body.all_rotvecs[s], self._blended, pieces.frames, parts)
        changes = kernels.gathered(pieces.gather, moved)
        return kernels.rest_forces(springs.edges, self.x, vectors, changes, springs.stiffness, rest.direction_stiffness)

    @cached_property
    def _along(self) -> Floats:
        """(q, 3) unit vectors of the springs."""
        edges = self.body.springs.edges
        return kernels.lengths_and_directions(self.x[edges[:, 0]] - self.x[edges[:, 1]])[1]

    @cached_property
    def _blended(self) -> Floats:
        """(n + t, 3) the blended rotation vectors of vertices and triangles."""
        return blended(self.body.all_rotvecs, self.weights)

    # From the unknown vertices to the world

    @cached_property
    def _rotation(self) -> Floats:
        """(n, 3, 3) the rotation of each vertex's part into the world."""
        frames = self.body.frames
        rotation = rotations.matrix(rotations.exp(np.einsum("s,spk->pk", self.weights, frames.rotvecs)))
        rotation[~frames.free] = np.eye(3)
        found: Floats = rotation[frames.part]
        return found

    def carried(self, weights: Floats) -> Floats:
        """(n, 3, k) how the world moves with changes (shapes - 1, k) of the weights, the unknown vertices fixed."""
        frames, body = self.body.frames, self.body
        moved = np.zeros((len(self.x), 3, weights.shape[1]))
        free = np.flatnonzero(frames.free[frames.part])
        if len(free):
            part, rotvec = frames.part[free], np.einsum("s,spk->pk", self.weights, frames.rotvecs)
            placed = (body.centred(self.x) - frames.centres[0][frames.part])[free]
            placed = np.einsum("nab,nb->na", self._rotation[free], placed)
            rotvecs = np.einsum("sm,spk->mpk", weights, frames.rotvecs[1:])
            centres = np.einsum("sm,spk->mpk", weights, frames.centres[1:] - frames.centres[0])
            turning = np.stack([left_jacobian(rotvec, w) for w in rotvecs], axis=2)[part]
            around = np.cross(turning, placed[:, :, None], axisa=1, axisb=1, axisc=1)
            moved[free] = around + centres.transpose(1, 2, 0)[part]
        known = body.network.known[0]
        own = np.zeros_like(moved)
        own[known] = np.einsum("snk,sm->nkm", body.points[1:, known] - body.points[0, known], weights)
        return moved + self.placed(own)

    def placed(self, change: Floats) -> Floats:
        """(n, 3, k) changes in the base's frame as changes in the world."""
        return np.einsum("nab,nbk->nak", self._rotation, self._centred(change))

    def unplaced(self, gradient: Floats) -> Floats:
        """(n, 3) a gradient by the world's points as one by those in the base's frame: the transpose of `placed`."""
        z = np.einsum("nab,na->nb", self._rotation, gradient)
        for members, loose in self._loose:
            z[members] -= z[loose].sum(axis=0) / len(members)
        return z

    def _centred(self, change: Floats) -> Floats:
        found = change.copy()
        for members, loose in self._loose:
            found[loose] -= change[members].mean(axis=0)
        return found

    @cached_property
    def _loose(self) -> list[tuple[Ints, Ints]]:
        """The surface's vertices, and all, of every part that is translated to its frame's centre."""
        frames = self.body.frames
        parts = np.flatnonzero(frames.free & ~self.body.grounded)
        of = [np.flatnonzero(frames.part == part) for part in parts]
        return [(members[members < self.body.surface], members) for members in of]

    def columns(self, weights: Floats) -> Floats:
        """(n, 3, k) how all vertices move in the world with changes (shapes - 1, k) of the weights."""
        unknown = self.body.network.unknown
        found = np.zeros((self.body.network.count, 3, weights.shape[1]))
        if len(unknown):
            right = (self.forces[unknown] @ weights).reshape(3 * len(unknown), -1)
            found[unknown] = -self.factor.solve(right).reshape(len(unknown), 3, -1)
        return self.placed(found) + self.carried(weights)

    def back(self, gradient: Floats) -> Floats:
        """(shapes - 1,) from a gradient by the surface's points, or by all vertices."""
        whole = np.zeros((self.body.network.count, 3))
        whole[: len(gradient)] = gradient
        unknown = self.body.network.unknown
        found = np.einsum("nk,nks->s", whole, self.carried(np.eye(len(self.weights) - 1)))
        if len(unknown):
            adjoint = self.factor.solve(self.unplaced(whole)[unknown].ravel()).reshape(-1, 3)
            found -= np.einsum("nk,nks->s", adjoint, self.forces[unknown])
        return found


@dataclass(frozen=True, eq=False)
class LoadedDerivative(Derivative):
    """Of a shape under pulls or in contact, whose rest shape is the free one."""

    body: SpringBody
    weights: Floats
    free: FreeDerivative
    network: Network
    """With the pulled vertices fixed."""
    pulled: Ints
    x: Floats
    """(n, 3) the equilibrium, in the world."""
    rest: CorotatedRest
    contact: ContactStiffness | None = None

    @cached_property
    def factor(self) -> Factorization:
        """H over the unknown vertices and the rotations of all."""
        H = stiffness(self.network, self.x, self.rest)
        return factorized(H if self.contact is None else self.contact.added_to(H))

    @cached_property
    def _fixed(self) -> Ints:
        """Pins and static vertices: they go where they go without a load."""
        return np.setdiff1d(self.network.known[0], self.pulled)

    @cached_property
    def _springs(self) -> tuple[Floats, ...]:
        """Of each spring: ∂f/∂d, k u pᵀ, d, and with each end's rotation R: ½ μ k R, and ½ μ k R v."""
        network, rest = self.network, self.rest
        i, j = network.springs.edges.T
        k = network.springs.stiffness[:, None, None]
        d = self.x[i] - self.x[j]
        u, p = (kernels.lengths_and_directions(vectors)[1] for vectors in (d, rest.vectors))
        scaled = [0.5 * rest.direction_stiffness * k * rest.rotations[end] for end in (i, j)]
        rotated_vector = [np.einsum("qab,qb->qa", R, rest.vectors) for R in scaled]
        return spring_blocks(network, self.x, rest), k * u[:, :, None] * p[:, None, :], d, *scaled, *rotated_vector

    def columns(self, weights: Floats) -> Floats:
        """(n, 3, k) how all vertices move in the world with changes (shapes - 1, k) of the weights."""
        unknown = self.network.unknown
        by_free = self.free.columns(weights)
        found = np.zeros_like(by_free)
        found[self._fixed] = by_free[self._fixed]
        right = np.stack([self._forces(by_free[:, :, m], found[:, :, m]) for m in range(weights.shape[1])], axis=1)
        found[unknown] = -self.factor.solve(right)[: 3 * len(unknown)].reshape(len(unknown), 3, -1)
        return found

    def _forces(self, by_free: Floats, ends: Floats) -> Floats:
        """(3 m + 3 n,) the forces on unknown vertices, and torques, that a motion (n, 3) of the rest shape leaves.

        ends: (n, 3) the motion of fixed vertices.
        """
        network = self.network
        i, j = network.springs.edges.T
        blocks, along, d, *rotated = self._springs
        v, e = by_free[i] - by_free[j], ends[i] - ends[j]
        change = _times(blocks, e) - _times(along, v)
        spin = np.zeros((network.count, 3))
        for end, R, rotated_vector in zip((i, j), rotated[:2], rotated[2:], strict=True):
            by_rest = _times(R, v)
            change -= by_rest
            np.add.at(spin, end, -np.cross(by_rest, d) - np.cross(rotated_vector, e))
        forces = kernels.divergence(change, np.ones(len(i)), network.springs.edges, network.fans)
        if self.contact is not None:
            forces -= self.contact.ground[:, None] * self.contact.attached(by_free)
        return np.concatenate([forces[network.unknown].ravel(), spin.ravel()])

    def back(self, gradient: Floats) -> Floats:
        """(shapes - 1,) from a gradient by the surface's points: the transpose of `columns`."""
        network, unknown = self.network, self.network.unknown
        whole = np.zeros((network.count, 3))
        whole[: len(gradient)] = gradient
        right = np.zeros(self.factor.shape[0])
        right[: 3 * len(unknown)] = whole[unknown].ravel()
        adjoint = self.factor.solve(right)
        force, spin = np.zeros((network.count, 3)), adjoint[3 * len(unknown) :].reshape(-1, 3)
        force[unknown] = adjoint[: 3 * len(unknown)].reshape(-1, 3)
        i, j = network.springs.edges.T
        blocks, along, d, *rotated = self._springs
        change = force[i] - force[j]
        by_ends, by_rest = _times(blocks, change), -np.einsum("qab,qa->qb", along, change)
        for end, R, rotated_vector in zip((i, j), rotated[:2], rotated[2:], strict=True):
            by_rest -= np.einsum("qab,qa->qb", R, change + np.cross(d, spin[end]))
            by_ends -= np.cross(spin[end], rotated_vector)
        ones = np.ones(len(i))
        by_free = -kernels.divergence(by_rest, ones, network.springs.edges, network.fans)
        by_fixed = -kernels.divergence(by_ends, ones, network.springs.edges, network.fans)
        by_free[self._fixed] += whole[self._fixed] + by_fixed[self._fixed]
        if self.contact is not None:
            by_free += self.contact.attached_back(self.contact.ground[:, None] * force)
        return self.free.back(by_free)


def _times(matrices: Floats, vectors: Floats) -> Floats:
    """(q, 3) of matrices (q, 3, 3) and vectors (q, 3)."""
    return np.einsum("qab,qb->qa", matrices, vectors)


def left_jacobian(rotvecs: Floats, changes: Floats) -> Floats:
    """(n, 3) ``J(ω) δ``: the rotation, in the world, by which exp(ω) turns on when ω changes by δ."""
    angle = np.linalg.norm(rotvecs, axis=1)[:, None]
    small = angle < 1e-4
    safe = np.where(small, 1.0, angle)
    first = np.where(small, 0.5 - angle**2 / 24, (1 - np.cos(safe)) / safe**2)
    second = np.where(small, 1 / 6 - angle**2 / 120, (safe - np.sin(safe)) / safe**3)
    once = np.cross(rotvecs, changes)
    found: Floats = changes + first * once + second * np.cross(rotvecs, once)
    return found
