"""Static equilibrium of a rod: the minimum of its elastic energy minus the work of forces, with some nodes prescribed.

Newton's method on positions and rotations. The Hessian is exact; where it is not positive definite, its material part
is used instead, which always is. Full steps are tried first, since a path over states of higher energy is often
shorter; if they do not lead to a stable equilibrium, a line search halves steps until the energy decreases enough
(Armijo). For given rotations the energy is quadratic in the positions, so after each change of the rotations the
positions are minimised exactly: bones that hardly stretch do not slow the search.

The load is applied in steps: prescribed positions move along straight lines, prescribed rotations about fixed axes. The
first iteration of a step moves the free nodes as the linearised rod would. A load step that fails is halved; after one
that converges quickly, the next is longer. The last one is solved to `TOLERANCE`, so the result does not depend on the
steps, unless the rod has several equilibria.

Joints much softer than bones leave the search hardly any stiffness to go by. A rod that has some is solved with stiffer
ones first; from there they soften step by step, each a warm start for the next (`LARGEST_SOFTENING`).

An unstable equilibrium, such as a straight rod beyond its buckling load, is left along its softest mode.

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
from pliant.engines.simulate.rod_elements import Elements, rotated
from pliant.numerics.linalg import factorize
from pliant.numerics.line_search import SUFFICIENT_DECREASE

Mask = NDArray[np.bool_]
Matrix = Any  # a SciPy CSR array

TOLERANCE = 1e-8
"""Largest force or torque left, over the torque of the softest bone or joint per radian."""
INTERMEDIATE_TOLERANCE = 1e-3
"""The same, between steps."""
SEARCH_ITERATIONS, PLAIN_ITERATIONS = 60, 12
"""Newton iterations in each load step, with and without a line search."""
LARGEST_ROTATION = 1.5
"""Largest rotation of a node in an iteration, in radians."""
SMALLEST_LOAD_STEP = 2.0**-10
"""The smallest load step, over the whole load."""
HALVINGS = 24
"""Halvings of a Newton step, at most."""
NEUTRAL = 1e-7
"""Share of the material stiffness added to the Hessian to test stability: neutral rotations have no stiffness."""
SOFT_JOINT = 1e-2
"""Torque per radian of a joint, over a bone's, below which it is solved as if it had that first."""
LARGEST_SOFTENING, LEAST_SOFTENING = 10.0, 1.2
"""Factor by which joints soften at once, at most and at least."""
SNAP_SEARCHES = 3
"""Searches on end where joints soften: the rod may snap into another shape, at the end of a long valley."""
ESCAPES = 3
"""Times that an unstable equilibrium is left, at most."""


@dataclass(frozen=True, eq=False)
class Load:
    """Prescribed nodes and forces of a rod."""

    position_nodes: Ints
    """(a,) nodes whose positions are prescribed."""
    positions: Floats
    """(a, 3)"""
    rotation_nodes: Ints
    """(b,) nodes whose rotations are prescribed."""
    rotation_targets: Floats
    """(b, 4) from rest; a negative w means more than 180°."""
    offsets: Floats
    """(m, 4) offsets of the elements."""
    forces: Floats
    """(n, 3) on the nodes."""

    def at(self, t: float, x: Floats, base: Elements) -> tuple[Floats, Floats, Floats, Elements]:
        """Prescribed positions and rotations, forces and elements at a share t of the load."""
        start = x[self.position_nodes]
        quaternions = rotations.exp(t * rotations.log(self.rotation_targets))
        offsets = rotations.exp(t * rotations.log(self.offsets))
        return start + t * (self.positions - start), quaternions, t * self.forces, base.with_offset(offsets)


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """The state in which a solve ended."""

    x: Floats
    q: Floats
    elements: Elements
    """With the offsets of the load."""
    converged: bool
    iterations: int
    steps: int
    residual: float
    energy: float
    stable: bool
    """Whether it is a local minimum of the energy."""
    reached: float
    """Share of the load that was reached."""


@dataclass(frozen=True, eq=False)
class System:
    """A rod's degrees of freedom: three of each position node, then three of each rotation node."""

    elements: Elements
    x: Floats
    """(n, 3) at rest."""
    rotation_count: int
    """Number of rotation nodes."""
    bending: float
    """Torque per radian of a bone."""
    torque: float
    """The scale of residuals: the same, or ten times that of the softest joint if less."""

    @property
    def softest_joint(self) -> float:
        """Torque per radian of the softest joint with a stiffness of its own, over a bone's; infinite without one."""
        return float(self.elements.stiffness[self._is_joint, 3, 3].min(initial=np.inf)) / self.bending

    @property
    def _is_joint(self) -> Mask:
        return np.asarray(self.elements.position_nodes[:, 0] == self.elements.position_nodes[:, 1])

    def stiffened(self, least: float) -> System:
        """The same with joints that have at least so much torque per radian, over a bone's."""
        stiffness, soft = self.elements.stiffness.copy(), self._is_joint
        soft &= stiffness[:, 3, 3] < least * self.bending
        stiffness[soft, 3:, 3:] = least * self.bending * np.eye(3)
        torque = max(self.torque, min(self.bending, 10 * least * self.bending))
        return replace(self, elements=replace(self.elements, stiffness=stiffness), torque=torque)

    @property
    def rounding(self) -> float:
        """Residual due to rounding, over the torque."""
        stiff = float(self.elements.stiffness[:, :3, :3].max())
        span = float(np.abs(self.x).max()) / float(self.elements.length.min())
        return 4e-15 * stiff * max(span, 1.0) / self.torque

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return 3 * (len(self.x) + self.rotation_count)

    def dofs(self, elements: Elements) -> Ints:
        """(m, 12) the unknowns of each element."""
        nodes = np.concatenate([elements.position_nodes, len(self.x) + elements.rotation_nodes], axis=1)
        return (3 * nodes[:, :, None] + np.arange(3)).reshape(len(elements), 12)

    def assembled(self, elements: Elements, x: Floats, q: Floats, forces: Floats) -> tuple[Floats, Matrix, Matrix]:
        """Gradient, material part of the Hessian, and Hessian."""
        gradient, material, geometric = elements.derivatives(x, q)
        dofs = self.dofs(elements)
        total: Floats = np.bincount(dofs.ravel(), gradient.ravel(), minlength=self.size).astype(np.float64)
        total[: forces.size] -= forces.ravel()
        row, column = np.repeat(dofs, 12, axis=1).ravel(), np.tile(dofs, (1, 12)).ravel()
        shape = (self.size, self.size)
        one = sp.csr_array(sp.coo_array((material.ravel(), (row, column)), shape=shape))
        return total, one, one + sp.csr_array(sp.coo_array((geometric.ravel(), (row, column)), shape=shape))

    def energy(self, elements: Elements, x: Floats, q: Floats, forces: Floats) -> float:
        """Elastic energy minus the work of the forces."""
        return float(elements.energies(x, q).sum() - np.einsum("ij,ij->", forces, x - self.x))

    def moved(
        self, elements: Elements, x: Floats, q: Floats, forces: Floats, free: Mask, step: Floats
    ) -> tuple[Floats, Floats]:
        """Positions and rotations after a step: its rotations, and the positions of least energy for them."""
        quaternions = rotated(q, step[x.size :].reshape(-1, 3))
        return self.settled(elements, x, quaternions, forces, free), quaternions

    def settled(self, elements: Elements, x: Floats, q: Floats, forces: Floats, free: Mask) -> Floats:
        """(n, 3) the positions of least energy for given rotations."""
        stiffness, pull = elements.pulls(q)
        ends = (3 * elements.position_nodes[:, :, None] + np.arange(3)).reshape(-1, 6)
        block = np.concatenate(
            [np.concatenate([stiffness, -stiffness], axis=2), np.concatenate([-stiffness, stiffness], axis=2)], axis=1
        )
        row, column = np.repeat(ends, 6, axis=1).ravel(), np.tile(ends, (1, 6)).ravel()
        K = sp.csr_array(sp.coo_array((block.ravel(), (row, column)), shape=(x.size, x.size)))
        right = np.bincount(ends.ravel(), np.concatenate([-pull, pull], axis=1).ravel(), minlength=x.size)
        index = np.flatnonzero(free[: x.size])
        if not index.size:
            return x
        positions = np.where(free[: x.size], 0.0, x.ravel())
        right = (right + forces.ravel() - K @ positions)[index]
        positions[index] = factorize(K[index][:, index], check=False).solve(right)
        return positions.reshape(-1, 3)


def equilibrium(
    system: System, load: Load, first_step: float, start: tuple[Floats, Floats] | None = None
) -> Equilibrium:
    """The equilibrium under a load, from rest in load steps; `first_step` is the share of the first.

    start: a warm start: positions and rotations under a similar load. If Newton's method does not converge from there,
    the solve starts from rest.
    """
    x, q = system.x.copy(), np.tile(rotations.IDENTITY, (system.rotation_count, 1))
    free = np.ones(system.size, dtype=bool)
    fixed = np.concatenate([load.position_nodes, len(x) + load.rotation_nodes])
    free[(3 * fixed[:, None] + np.arange(3)).ravel()] = False
    used = np.zeros(system.size, dtype=bool)
    used[system.dofs(system.elements)] = True
    free &= used
    iterations = steps = 0
    if start is not None:
        tried = _solved(system, load, free, *start, 1.0, TOLERANCE)
        if tried.converged:
            return _stable(system, load, free, tried, tried.iterations, 1)
    elif system.softest_joint < SOFT_JOINT:
        tried = _softened(system, load, free, first_step)
        if tried.converged:
            return _stable(system, load, free, tried, tried.iterations, tried.steps)
        iterations, steps = tried.iterations, tried.steps
    done, step = 0.0, first_step
    while True:
        t = min(done + step, 1.0)
        tried = _solved(system, load, free, x, q, t, TOLERANCE if t == 1 else INTERMEDIATE_TOLERANCE)
        iterations, steps = iterations + tried.iterations, steps + 1
        if tried.converged:
            x, q, done = tried.x, tried.q, t
            if t == 1:
                return _stable(system, load, free, tried, iterations, steps)
            step *= 1.5 if tried.iterations <= 12 else 1.0
        else:
            step /= 2
            if step < SMALLEST_LOAD_STEP:
                return replace(tried, converged=False, iterations=iterations, steps=steps, reached=done)


def _softened(system: System, load: Load, free: Mask, first_step: float) -> Equilibrium:
    """The equilibrium, from one with stiffer joints that soften."""
    least, ratio = SOFT_JOINT, LARGEST_SOFTENING
    last = equilibrium(system.stiffened(least), load, first_step)
    iterations, steps = last.iterations, last.steps
    while last.converged and least > system.softest_joint and ratio > LEAST_SOFTENING:
        softer = max(least / ratio, system.softest_joint)
        softened, tried = system.stiffened(softer), last
        for _ in range(SNAP_SEARCHES):
            tried = _solved(softened, load, free, tried.x, tried.q, 1.0, TOLERANCE)
            iterations, steps = iterations + tried.iterations, steps + 1
            if tried.converged:
                break
        if tried.converged:
            last, least = tried, softer
        else:
            ratio **= 0.5
    return replace(last, converged=last.converged and least <= system.softest_joint, iterations=iterations, steps=steps)


def _solved(system: System, load: Load, free: Mask, x: Floats, q: Floats, t: float, tolerance: float) -> Equilibrium:
    """Newton's method at a share t of the load, from x and q: with full steps first, else with a line search."""
    plain = _newton(system, load, free, x, q, t, tolerance, searching=False)
    if plain.converged and plain.stable:
        return plain
    searched = _newton(system, load, free, x, q, t, tolerance, searching=True)
    return replace(searched, iterations=searched.iterations + plain.iterations)


def _newton(
    system: System, load: Load, free: Mask, x: Floats, q: Floats, t: float, tolerance: float, *, searching: bool
) -> Equilibrium:
    positions, quaternions, forces, elements = load.at(t, system.x, system.elements)
    jump, x = _jump(system, load, x, q, positions, quaternions), x.copy()
    tolerance = max(tolerance, system.rounding)
    residual, iteration, limit = np.inf, 0, SEARCH_ITERATIONS if searching else PLAIN_ITERATIONS
    while True:
        gradient, material, hessian = system.assembled(elements, x, q, forces)
        residual = float(np.abs(gradient[free]).max(initial=0.0)) / system.torque
        if (iteration and residual <= tolerance) or iteration == limit or not np.isfinite(residual):
            break
        step = _direction(gradient, material, hessian, free, jump)
        energy = system.energy(elements, x, q, forces)
        iteration += 1
        if iteration == 1:
            q = rotated(q, step[x.size :].reshape(-1, 3))
            x[load.position_nodes], q[load.rotation_nodes] = positions, quaternions
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


def _bounded(step: Floats, positions: int) -> Floats:
    """A step scaled so that no node rotates by more than `LARGEST_ROTATION`."""
    widest = float(np.abs(step[positions:]).max(initial=0.0))
    return step * min(1.0, LARGEST_ROTATION / widest) if widest > 0 else step


def _jump(system: System, load: Load, x: Floats, q: Floats, positions: Floats, quaternions: Floats) -> Floats:
    """(size,) the step that takes prescribed nodes to their targets."""
    jump = np.zeros((system.size // 3, 3))
    jump[load.position_nodes] = positions - x[load.position_nodes]
    change = rotations.multiply(rotations.inverse(q[load.rotation_nodes]), quaternions)
    jump[len(x) + load.rotation_nodes] = rotations.log(rotations.shortest(change))
    return jump.ravel()


def _direction(gradient: Floats, material: Matrix, hessian: Matrix, free: Mask, jump: Floats) -> Floats:
    """The Newton step, `jump` at prescribed nodes; with the material part where the Hessian is indefinite."""
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
    """Positions and rotations after a step with sufficient decrease of the energy; None if there is none."""
    rounding = 1e-13 * (abs(energy) + float(elements.energies(x, q).sum()))
    step = _bounded(step, x.size)
    share = 1.0
    for _ in range(HALVINGS):
        there = system.moved(elements, x, q, forces, free, share * step)
        if system.energy(elements, *there, forces) <= energy + SUFFICIENT_DECREASE * share * slope + rounding:
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
    """(size,) the mode of least curvature relative to the material stiffness; a rotation of 0.1 radian."""
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
