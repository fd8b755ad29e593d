"""Static equilibrium of a rod: the least of its elastic energy less the work of forces, with some nodes prescribed.

Newton's method on places and rotations. The Hessian is exact; where it is not positive definite its material part
takes its place, which always is. Whole steps are tried first, since the way over states of higher energy is shorter; if
they do not lead to a stable equilibrium, steps are halved until the energy falls enough (Armijo). For given rotations
the energy is quadratic in places, so after each change of rotations places are set to the best ones: bones that hardly
stretch do not slow the search. Prescribed places and
rotations go to their targets along straight lines and constant turns, in steps: the first iteration of each moves the
free nodes along, as the linearised rod would. A step that fails is halved, one that goes well is followed by a longer
one. The last step is solved to `TOLERANCE`, so the result does not depend on how the steps were cut, unless the rod has
several equilibria.

An equilibrium that is not the least nearby, such as a straight rod under too much pressure, is left along its softest
direction.

Lengths are over the rod's unit and Young's modulus is 1, so the numbers do not depend on the user's units.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pliant.core import rotations
from pliant.core.errors import LinearSolveError
from pliant.core.topology import Floats, Ints
from pliant.engines.simulate.rod_elements import Elements, turned
from pliant.numerics.linalg import factorize

Mask = NDArray[np.bool_]
Matrix = Any  # a SciPy CSR array

TOLERANCE = 1e-8
"""Largest force or torque left, over the torque of the softest bone or joint per radian."""
ROUGH = 1e-3
"""The same, between steps."""
ITERATIONS, PLAIN = 60, 12
"""Of Newton's method in each step, with and without a line search."""
WIDEST = 1.5
"""Radians that a node turns in an iteration, at most."""
FINEST = 2.0**-10
"""The shortest step, over the whole way."""
DECREASE = 1e-4
"""Share of the expected decrease that a step has to bring."""
HALVINGS = 24
"""Of a Newton step, at most."""
NEUTRAL = 1e-7
"""Share of the material's stiffness by which an equilibrium may fall short of being stable: it has neutral turns."""
ESCAPES = 3
"""Times that an unstable equilibrium is left, at most."""


@dataclass(frozen=True, eq=False)
class Load:
    """What is asked of a rod."""

    place_nodes: Ints
    """(a,) nodes whose places are prescribed."""
    places: Floats
    """(a, 3)"""
    turn_nodes: Ints
    """(b,) nodes whose rotations are prescribed."""
    turn_targets: Floats
    """(b, 4) seen from rest; a negative w is the long way round."""
    offsets: Floats
    """(m, 4) turns at the elements' starts."""
    forces: Floats
    """(n, 3) on the nodes."""

    def at(self, t: float, x: Floats, base: Elements) -> tuple[Floats, Floats, Floats, Elements]:
        """Places, rotations, forces and elements at a share t of the way from rest."""
        start = x[self.place_nodes]
        turns = rotations.exp(t * rotations.log(self.turn_targets))
        offsets = rotations.exp(t * rotations.log(self.offsets))
        return start + t * (self.places - start), turns, t * self.forces, base.with_offset(offsets)


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """What was reached."""

    x: Floats
    q: Floats
    elements: Elements
    """As they are turned at the end."""
    converged: bool
    iterations: int
    steps: int
    residual: float
    energy: float
    stable: bool
    """Whether the energy is least nearby."""
    reached: float
    """Share of the way to the targets: 1 where they are met."""


@dataclass(frozen=True, eq=False)
class System:
    """A rod's degrees of freedom: three of each place, then three of each rotation."""

    elements: Elements
    x: Floats
    """(n, 3) at rest."""
    turns: int
    """Number of rotations."""
    torque: float
    """The torque per radian of a bone, or ten times that of the softest joint: residuals are measured by it."""

    @property
    def rounding(self) -> float:
        """Forces that rounding leaves, over the torque."""
        stiff = float(self.elements.stiffness[:, :3, :3].max())
        span = float(np.abs(self.x).max()) / float(self.elements.length.min())
        return 4e-15 * stiff * max(span, 1.0) / self.torque

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return 3 * (len(self.x) + self.turns)

    def dofs(self, elements: Elements) -> Ints:
        """(m, 12) the unknowns of each element."""
        nodes = np.concatenate([elements.places, len(self.x) + elements.turns], axis=1)
        return (3 * nodes[:, :, None] + np.arange(3)).reshape(len(elements), 12)

    def assembled(self, elements: Elements, x: Floats, q: Floats, forces: Floats) -> tuple[Floats, Matrix, Matrix]:
        """Gradient, material part of the Hessian, and the whole."""
        gradient, material, geometric = elements.derivatives(x, q)
        dofs = self.dofs(elements)
        total: Floats = np.bincount(dofs.ravel(), gradient.ravel(), minlength=self.size).astype(np.float64)
        total[: forces.size] -= forces.ravel()
        row, column = np.repeat(dofs, 12, axis=1).ravel(), np.tile(dofs, (1, 12)).ravel()
        shape = (self.size, self.size)
        one = sp.csr_array(sp.coo_array((material.ravel(), (row, column)), shape=shape))
        return total, one, one + sp.csr_array(sp.coo_array((geometric.ravel(), (row, column)), shape=shape))

    def energy(self, elements: Elements, x: Floats, q: Floats, forces: Floats) -> float:
        """Elastic energy less the work of the forces."""
        return float(elements.energies(x, q).sum() - np.einsum("ij,ij->", forces, x - self.x))

    def moved(
        self, elements: Elements, x: Floats, q: Floats, forces: Floats, free: Mask, step: Floats
    ) -> tuple[Floats, Floats]:
        """Places and rotations after a step: rotations as it says, and the places that are best with them."""
        turns = turned(q, step[x.size :].reshape(-1, 3))
        return self.settled(elements, x, turns, forces, free), turns

    def settled(self, elements: Elements, x: Floats, q: Floats, forces: Floats, free: Mask) -> Floats:
        """(n, 3) the places of least energy for given rotations."""
        held, pull = elements.pulls(q)
        ends = (3 * elements.places[:, :, None] + np.arange(3)).reshape(-1, 6)
        block = np.concatenate([np.concatenate([held, -held], axis=2), np.concatenate([-held, held], axis=2)], axis=1)
        row, column = np.repeat(ends, 6, axis=1).ravel(), np.tile(ends, (1, 6)).ravel()
        K = sp.csr_array(sp.coo_array((block.ravel(), (row, column)), shape=(x.size, x.size)))
        right = np.bincount(ends.ravel(), np.concatenate([-pull, pull], axis=1).ravel(), minlength=x.size)
        index = np.flatnonzero(free[: x.size])
        if not index.size:
            return x
        places = np.where(free[: x.size], 0.0, x.ravel())
        right = (right + forces.ravel() - K @ places)[index]
        places[index] = factorize(K[index][:, index], check=False).solve(right)
        return places.reshape(-1, 3)


def equilibrium(
    system: System, load: Load, first_step: float, start: tuple[Floats, Floats] | None = None
) -> Equilibrium:
    """The equilibrium under a load, reached from rest in steps of which the first has the given share.

    start: positions and rotations under a similar load. If one step from there does not reach the equilibrium, it is
    reached from rest.
    """
    x, q = system.x.copy(), np.tile(rotations.IDENTITY, (system.turns, 1))
    free = np.ones(system.size, dtype=bool)
    held = np.concatenate([load.place_nodes, len(x) + load.turn_nodes])
    free[(3 * held[:, None] + np.arange(3)).ravel()] = False
    used = np.zeros(system.size, dtype=bool)
    used[system.dofs(system.elements)] = True
    free &= used
    if start is not None:
        tried = _solved(system, load, free, *start, 1.0, TOLERANCE)
        if tried.converged:
            return _stable(system, load, free, tried, tried.iterations, 1)
    done, step, iterations, steps = 0.0, first_step, 0, 0
    while True:
        t = min(done + step, 1.0)
        tried = _solved(system, load, free, x, q, t, TOLERANCE if t == 1 else ROUGH)
        iterations, steps = iterations + tried.iterations, steps + 1
        if tried.converged:
            x, q, done = tried.x, tried.q, t
            if t == 1:
                return _stable(system, load, free, tried, iterations, steps)
            step *= 1.5 if tried.iterations <= 12 else 1.0
        else:
            step /= 2
            if step < FINEST:
                return replace(tried, converged=False, iterations=iterations, steps=steps, reached=done)


def _solved(system: System, load: Load, free: Mask, x: Floats, q: Floats, t: float, tolerance: float) -> Equilibrium:
    """Newton's method at a share t of the way, from where the rod is: plainly first, else with a line search."""
    plain = _newton(system, load, free, x, q, t, tolerance, searching=False)
    if plain.converged and plain.stable:
        return plain
    searched = _newton(system, load, free, x, q, t, tolerance, searching=True)
    return replace(searched, iterations=searched.iterations + plain.iterations)


def _newton(
    system: System, load: Load, free: Mask, x: Floats, q: Floats, t: float, tolerance: float, *, searching: bool
) -> Equilibrium:
    places, turns, forces, elements = load.at(t, system.x, system.elements)
    jump, x = _jump(system, load, x, q, places, turns), x.copy()
    tolerance = max(tolerance, system.rounding)
    residual, iteration, limit = np.inf, 0, ITERATIONS if searching else PLAIN
    while True:
        gradient, material, hessian = system.assembled(elements, x, q, forces)
        residual = float(np.abs(gradient[free]).max(initial=0.0)) / system.torque
        if (iteration and residual <= tolerance) or iteration == limit or not np.isfinite(residual):
            break
        step = _direction(gradient, material, hessian, free, jump)
        energy = system.energy(elements, x, q, forces)
        iteration += 1
        if iteration == 1:
            q = turned(q, step[x.size :].reshape(-1, 3))
            x[load.place_nodes], q[load.turn_nodes] = places, turns
            x, jump = system.settled(elements, x, q, forces, free), np.zeros(system.size)
        elif searching:
            found = _line_search(system, elements, x, q, forces, free, step, float(gradient @ step), energy)
            if found is None:
                break
            x, q = found
        else:
            x, q = system.moved(elements, x, q, forces, free, _bounded(step, x.size))
    converged = residual <= tolerance
    stable = converged and _is_definite(hessian, material, free)
    energy = system.energy(elements, x, q, forces)
    return Equilibrium(x, q, elements, converged, iteration, 1, residual, energy, stable, t)


def _bounded(step: Floats, places: int) -> Floats:
    """A step in which no node turns by more than `WIDEST`."""
    widest = float(np.abs(step[places:]).max(initial=0.0))
    return step * min(1.0, WIDEST / widest) if widest > 0 else step


def _jump(system: System, load: Load, x: Floats, q: Floats, places: Floats, turns: Floats) -> Floats:
    """(size,) the step that takes prescribed nodes to where they are to be."""
    jump = np.zeros((system.size // 3, 3))
    jump[load.place_nodes] = places - x[load.place_nodes]
    way = rotations.multiply(rotations.inverse(q[load.turn_nodes]), turns)
    jump[len(x) + load.turn_nodes] = rotations.log(rotations.shortest(way))
    return jump.ravel()


def _direction(gradient: Floats, material: Matrix, hessian: Matrix, free: Mask, jump: Floats) -> Floats:
    """The Newton step, `jump` being the part that is prescribed; by the material part where the whole is indefinite."""
    step = jump.copy()
    index = np.flatnonzero(free)
    if not index.size:
        return step
    for matrix in (hessian, material):
        right = -(gradient + matrix @ jump)[index]
        try:
            step[index] = factorize(matrix[index][:, index], check=False).solve(right)
        except LinearSolveError:
            continue
        if np.isfinite(step).all():
            return step
    diagonal = np.maximum(material.diagonal(), 1e-12 * material.diagonal().max())
    step[index] = -(gradient / diagonal)[index]
    return step


def _line_search(
    system: System,
    elements: Elements,
    x: Floats,
    q: Floats,
    forces: Floats,
    free: Mask,
    step: Floats,
    slope: float,
    energy: float,
) -> tuple[Floats, Floats] | None:
    """Places and rotations after a step that lowers the energy; None if there is none."""
    rounding = 1e-13 * (abs(energy) + float(elements.energies(x, q).sum()))
    step = _bounded(step, x.size)
    share = 1.0
    for _ in range(HALVINGS):
        there = system.moved(elements, x, q, forces, free, share * step)
        if system.energy(elements, *there, forces) <= energy + DECREASE * share * slope + rounding:
            return there
        share /= 2
    return None


def _is_definite(hessian: Matrix, material: Matrix, free: Mask) -> bool:
    index = np.flatnonzero(free)
    if not index.size:
        return True
    try:
        factorize((hessian + NEUTRAL * material)[index][:, index], check=False)
    except LinearSolveError:
        return False
    return True


def _stable(system: System, load: Load, free: Mask, last: Equilibrium, iterations: int, steps: int) -> Equilibrium:
    """The equilibrium, or a lower one nearby if it is not stable."""
    for _ in range(ESCAPES):
        if last.stable:
            break
        _, _, forces, elements = load.at(1.0, system.x, system.elements)
        soft = _softest(system, elements, last, forces, free)
        pushed = [system.moved(elements, last.x, last.q, forces, free, sign * soft) for sign in (1, -1)]
        lower = [system.energy(elements, there[0], there[1], forces) for there in pushed]
        x, q = pushed[int(np.argmin(lower))]
        tried = _newton(system, load, free, x, q, 1.0, TOLERANCE, searching=True)
        iterations += tried.iterations
        if not tried.converged or tried.energy > last.energy:
            break
        last = tried
    return replace(last, iterations=iterations, steps=steps)


def _softest(system: System, elements: Elements, last: Equilibrium, forces: Floats, free: Mask) -> Floats:
    """(size,) the direction in which the energy falls most against the material's stiffness; a tenth of a radian."""
    from scipy.sparse.linalg import LinearOperator, lobpcg

    _, material, hessian = system.assembled(elements, last.x, last.q, forces)
    index = np.flatnonzero(free)
    inner, whole = material[index][:, index], hessian[index][:, index]
    solver = factorize(inner, check=False)
    guess = np.random.default_rng(0).standard_normal((len(index), min(4, len(index))))
    inverse = LinearOperator(inner.shape, matvec=solver.solve, matmat=solver.solve, dtype=np.float64)
    _, modes = lobpcg(whole, guess, B=inner, M=inverse, largest=False, maxiter=60, tol=1e-3)
    step = np.zeros(system.size)
    step[index] = modes[:, 0]
    widest = float(np.abs(step[last.x.size :]).max(initial=0.0)) or float(np.abs(step).max())
    return 0.1 / widest * step
