"""A shape in contact, to machine precision, and how stiff it is there: what its derivative by the sliders needs.

Contacts push without friction: a point of the surface that is nearer to an obstacle than the thickness h kept, by
``v = h - d(p)``, has the energy ``½ ρ v²`` (`pliant.contact.forces`), so that

    f += -ρ v n,      H += ρ n nᵀ - ρ v ∂n/∂p,      n = ∂d/∂p.

The points that push stay the same for small changes of the sliders, and slide on the obstacle as n changes with p. The
solver of contacts ends within its tolerance; some Newton steps lead from there to the equilibrium.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from pliant.contact.body import CONTACT_STIFFNESS
from pliant.contact.constraints import RowMaker, SurfaceSamples
from pliant.contact.obstacles import Obstacle
from pliant.contact.solver import ContactSolver
from pliant.contact.watched_rows import ObstacleContacts, together
from pliant.core.clips import Pose
from pliant.core.errors import InputError
from pliant.core.topology import Floats, Ints
from pliant.engines.blend.contacts import SpringContactBody, pose_in_contact
from pliant.engines.blend.equilibrium import NO_FORCE, Network, Outcome, SolveOptions
from pliant.engines.blend.pulls import ExternalLoad
from pliant.engines.blend.springs import CorotatedRest
from pliant.engines.blend.stiffness import blocked, factorized, stiffness
from pliant.numerics.linalg import dot
from pliant.numerics.line_search import SUFFICIENT_DECREASE

if TYPE_CHECKING:
    from pliant.engines.blend.blendshapes import Blendshapes

MOST_NEWTON_STEPS = 30
SETTLED_STEP = 1e-12
"""Newton step, over the diagonal, that ends it."""
BEND_STEP = 1e-5
"""By which points are moved, over the diagonal, to differentiate an obstacle's normals."""


@dataclass(frozen=True, eq=False)
class ContactStiffness:
    """What contact adds to a network: springs to its free shape, and contacts that push."""

    ground: Floats
    """(n,) stiffness of the springs to the free shape."""
    matrix: Any
    """(3 m, 3 m) sparse: the second derivative of these springs' and the contacts' energy by the unknown vertices."""
    network: Network
    """Of the load, with the pulled vertices."""
    pulled: Ints

    def added_to(self, H: Any) -> Any:
        """H over the unknown vertices and the rotations, with both."""
        more = self.matrix.copy()
        more.resize(H.shape)
        return (H + more).tocsr()

    def attached(self, by_free: Floats) -> Floats:
        """(n, 3) how what the springs lead to moves with the free shape: it is moved along with pulled vertices."""
        if not len(self.pulled):
            return by_free
        moved = np.zeros_like(by_free)
        moved[self.pulled] = -by_free[self.pulled]
        return by_free + moved - self.network.solve(self.network.L @ moved)

    def attached_back(self, gradient: Floats) -> Floats:
        """The transpose of `attached`."""
        if not len(self.pulled):
            return gradient
        found = gradient.copy()
        found[self.pulled] -= (gradient - self.network.L @ self.network.solve(gradient))[self.pulled]
        return found


class PressedBody:
    """A body and the points of it that an obstacle may push, near a shape x (n, 3)."""

    def __init__(self, body: SpringContactBody, solver: ContactSolver, x: Floats) -> None:
        own, self.body, self.ground = body._attached.network, body, body._attached.ground
        self.network = Network(own.springs, own.count, own.fixed)
        unknown = np.flatnonzero(~own.fixed)  # the ground fixes every part
        self.network.__dict__.update(fans=own.fans, L=own.L, unknown=unknown)
        self.bend_step, self.settled_step = BEND_STEP * solver.diagonal, SETTLED_STEP * solver.diagonal
        rho, state = CONTACT_STIFFNESS * body.stiffness, solver.state
        self.contacts: list[tuple[Obstacle, RowMaker]] = []
        for k, moving in enumerate(solver.obstacles):
            inside = [] if state is None or not state.faces else [state.faces[k]]
            near = ObstacleContacts(moving.at(0), None, inside)
            self.contacts.append((near.obstacle, together([solver.watch.makers(near, x, rho)])))

    def energy(self, x: Floats, gradient: Floats) -> tuple[float, float]:
        """Of springs and contacts, and the largest force of these; gradient: (n, 3), zero at fixed vertices."""
        largest, energy = 0.0, self.body.energy(x, gradient)
        for _, make in self.contacts:
            rows = make(x)
            energy += rows.energy
            gradient -= rows.spread(rows.forces, len(x))
            largest = max(largest, float(rows.forces.max(initial=0)))
        gradient[self.network.fixed] = 0
        return energy, largest

    def stiffness(self, x: Floats) -> Any:
        """(3 m, 3 m) sparse, of the springs to the free shape and of the contacts, by the unknown vertices."""
        unknown = self.network.unknown
        number = np.full(self.network.count, -1)
        number[unknown] = np.arange(len(unknown))
        total = sp.diags(np.repeat(self.ground[unknown], 3)).tocsr()
        for obstacle, make in self.contacts:
            rows = make(x)
            rows = rows.only(rows.forces > 0)
            force, n, at = rows.forces, rows.directions, SurfaceSamples(rows.vertices, rows.weights)
            bent = self._bent(obstacle, at.positions(x))
            K = rows.rho[:, None, None] * n[:, :, None] * n[:, None, :] - force[:, None, None] * bent
            for a, b in product(range(4), repeat=2):
                share = (at.weights[:, a] * at.weights[:, b])[:, None, None] * K
                total += blocked(number[at.vertices[:, a]], number[at.vertices[:, b]], share, len(unknown))
        return total

    def _bent(self, obstacle: Obstacle, points: Floats) -> Floats:
        """(k, 3, 3) the derivative of an obstacle's normals at points (k, 3), symmetric."""
        if not len(points):
            return np.zeros((0, 3, 3))
        moved = [obstacle.signed(points + sign * self.bend_step * e)[1] for e in np.eye(3) for sign in (1, -1)]
        bent = np.stack([(moved[2 * k] - moved[2 * k + 1]) / (2 * self.bend_step) for k in range(3)], axis=2)
        symmetric: Floats = (bent + bent.transpose(0, 2, 1)) / 2
        return symmetric

    def settled(self, x: Floats, rest: CorotatedRest) -> Outcome:
        """The equilibrium, from a start near it."""
        gradient = np.empty_like(x)
        energy, largest = self.energy(x, gradient)
        for k in range(MOST_NEWTON_STEPS):
            step = self._step(x, rest, gradient)
            left = float(np.abs(gradient).max(initial=0)) / max(largest, NO_FORCE)
            if np.abs(step).max(initial=0) <= self.settled_step:
                return Outcome(x, energy, k, left, True)
            slope, length, before = dot(gradient, step), 1.0, gradient.copy()
            while True:
                trial = x + length * step
                reached, largest = self.energy(trial, gradient)
                nearer = np.abs(gradient).max() < np.abs(before).max()  # where rounding hides what the energy does
                if reached <= energy + SUFFICIENT_DECREASE * length * slope or nearer or length < 1e-6:
                    break
                length /= 2
            x, energy = trial, reached
        return Outcome(x, energy, k, left, False, f"contacts have not settled in {k + 1} Newton steps")

    def _step(self, x: Floats, rest: CorotatedRest, gradient: Floats) -> Floats:
        """(n, 3) Newton's, downhill."""
        unknown, step = self.network.unknown, np.zeros_like(x)
        more = ContactStiffness(self.ground, self.stiffness(x), self.network, np.zeros(0, np.int64))
        for floor, rotating in ((-np.inf, True), (0.0, True), (0.0, False)):
            H = more.added_to(stiffness(self.network, x, rest, floor, rotating=rotating))
            right = np.zeros(H.shape[0])
            right[: 3 * len(unknown)] = gradient[unknown].ravel()
            step[unknown] = -factorized(H).solve(right)[: 3 * len(unknown)].reshape(-1, 3)
            if dot(gradient, step) < 0:
                break
        return step


def pressed(
    rig: Blendshapes,
    solver: ContactSolver,
    w: Floats,
    load: ExternalLoad,
    loaded: tuple[Network, Floats, CorotatedRest],
    options: SolveOptions,
) -> tuple[Pose, Network, Floats, ContactStiffness]:
    """The shape at weights (shapes,) in contact: its pose, network and points, and what contact adds to its stiffness.

    loaded: the network under the load, the free shape (n, 3) that the load has moved, and its rest state.
    """
    network, free, rest = loaded
    if any(solver.march.is_sharp(moving.at(0)) for moving in solver.obstacles):
        raise InputError(
            "there is no derivative against boxes, meshes and what is thinner than the faces of the shape, "
            "whose edges it touches; expected thick balls, cylinders, capsules or half-spaces",
            argument="obstacles",
        )
    pose = pose_in_contact(rig, solver, w, load, SolveOptions())
    assert solver.state is not None
    x = solver.state.x
    made = PressedBody(
        SpringContactBody(rig, network, load.vertices, rest, free, load.force, options.accuracy), solver, x
    )
    outcome = made.settled(x, rest)
    found = rig.statics.pose(outcome, w, world=True)
    found = replace(
        found,
        converged=found.converged and pose.converged,
        message=found.message or pose.message,
        penetration=pose.penetration,
        contacts=pose.contacts,
        reactions=pose.reactions,
    )
    return (
        found,
        made.network,
        outcome.x,
        ContactStiffness(made.ground, made.stiffness(outcome.x), network, load.vertices),
    )
