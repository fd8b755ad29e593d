"""Equilibrium of a spring network: the x where all forces vanish (Ma et al. 2011, Eq. 2 to 4).

    E(x) = ½ Σ_q k_q [(l - r)² + μ |d - (d · p) p|²],    d = x_i - x_j,  l = |d|,    f = ∂E/∂x,
    H(x) = Σ_q k_q [u uᵀ + (1 - r/l)(1 - u uᵀ) + μ (1 - p pᵀ)] ⊗ (e_i - e_j)(e_i - e_j)ᵀ,    u = d/l.

With μ = 0 this is the paper's energy. The second term penalises leaving the rest direction p; see `Rest`. Under a load
the rest directions rotate with the body; see `CorotatedRest`. Three solvers:

- ``"lbfgs"``: L-BFGS preconditioned by the spring Laplacian L, which is factorised once for all weights: E is the
  minimum over unit vectors of ``½ Σ k |d - r u|²``, whose Hessian is ``L ⊗ 1``. The fastest.
- ``"newton"``: Newton steps with H projected to be positive definite (``max(1 - r/l, 0)``), then with the full H, to
  machine precision.
- ``"paper"``: Newton–Raphson with the full H and full steps, as published. It may diverge; the outcome says so.

Fixed vertices are not unknowns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import LinearSolveError
from pliant.core.topology import Floats, Ints, connected_parts
from pliant.engines.blend import kernels
from pliant.engines.blend.options import MOST_ITERATIONS, BlendOptions, Method
from pliant.engines.blend.springs import CorotatedRest, Rest, Springs, laplacian
from pliant.engines.blend.stiffness import stiffness
from pliant.numerics.linalg import Factorization, dot, factorize
from pliant.numerics.line_search import SUFFICIENT_DECREASE

LBFGS_HISTORY = 8
"""Pairs of steps and gradient changes in the L-BFGS approximation."""
LOAD_ENERGY_SHARE = 0.003
"""Under load, accuracy is relative to this share of the elastic energy; relative to all of it, a tenth of the
displacement would be missing.
"""
NO_FORCE = 1e-9
"""Rounding error of a force, in the springs' scale-free unit."""


@dataclass(frozen=True, eq=False)
class Network:
    """Springs over n vertices, some of them fixed, with the factorised Laplacian of the others."""

    springs: Springs
    count: int
    """n"""
    fixed: NDArray[np.bool_]
    """(n,) vertices whose positions are given."""

    def __getstate__(self) -> dict[str, Any]:
        """Without what contact caches here (`contacts`)."""
        return {name: value for name, value in self.__dict__.items() if name != "attached"}

    def with_fixed(self, vertices: Ints) -> Network:
        """The same network with more fixed vertices."""
        fixed = self.fixed.copy()
        fixed[vertices] = True
        if (fixed == self.fixed).all():
            return self
        other = Network(self.springs, self.count, fixed)
        other.__dict__.update(fans=self.fans, L=self.L)
        return other

    @cached_property
    def fans(self) -> tuple[Ints, Ints, Ints]:
        """Springs by vertex; see `kernels.fans`."""
        return kernels.fans(self.springs.edges, self.count)

    @cached_property
    def unknown(self) -> Ints:
        """The vertices solved for: those not fixed, without one in each part that is free to translate."""
        part = connected_parts(self.count, self.springs.edges)
        grounded = np.zeros(part.max(initial=-1) + 1, dtype=bool)
        grounded[part[self.fixed]] = True
        _, first = np.unique(part, return_index=True)
        solved = ~self.fixed
        solved[first[~grounded]] = False
        return np.flatnonzero(solved)

    @cached_property
    def L(self) -> Any:
        """The spring Laplacian over all vertices."""
        return laplacian(self.springs, self.count)

    @cached_property
    def known(self) -> tuple[Ints, Any]:
        """The vertices not solved for, and their columns of the Laplacian."""
        known = np.setdiff1d(np.arange(self.count), self.unknown)
        return known, self.L[:, known]

    @cached_property
    def factor(self) -> Factorization | None:
        """The Laplacian over the unknown vertices, factorised."""
        if not len(self.unknown):
            return None
        return factorize(self.L[self.unknown][:, self.unknown])

    def solve(self, b: Floats) -> Floats:
        """(n, 3) x with ``L x = b`` at the unknown vertices and 0 elsewhere."""
        x = np.zeros_like(b)
        if self.factor is not None:
            x[self.unknown] = self.factor.solve(b[self.unknown])
        return x

    def energy(self, x: Floats, rest: Rest | CorotatedRest, gradient: Floats) -> float:
        """E(x); its gradient, zero at fixed vertices, is written to `gradient`."""
        k, r, mu = self.springs.stiffness, rest.lengths, rest.direction_stiffness
        if isinstance(rest, CorotatedRest):
            edges, v, rotations = self.springs.edges, rest.vectors, rest.rotations
            kernels.fit_rotations(x, self.fans, edges, k, v, rotations)
            energy = kernels.corotated_energy_and_gradient(x, self.fans, edges, k, r, v, mu, rotations, gradient)
        else:
            energy = kernels.energy_and_gradient(x, self.fans, k, r, rest.directions, mu, gradient)
        gradient[self.fixed] = 0
        return energy


@dataclass
class Outcome:
    """The result of a solver."""

    x: Floats
    energy: float
    iterations: int
    residual: float
    """Largest remaining force, relative to that of linear blending or of the start, whichever is larger."""
    converged: bool
    message: str = ""


Watch = Callable[[Floats, float], None]


@dataclass(frozen=True)
class SolveOptions:
    """Solver options of a single shape, checked."""

    method: Method = BlendOptions.method
    accuracy: float = BlendOptions.accuracy
    iterations: int | None = BlendOptions.iterations
    watch: Watch | None = None

    @classmethod
    def of(cls, method: Method, accuracy: float, iterations: int | None, watch: Watch | None = None) -> SolveOptions:
        """Check and collect them."""
        return cls(**BlendOptions.check(method=method, accuracy=accuracy, iterations=iterations), watch=watch)


def lbfgs(
    network: Network,
    x: Floats,
    rest: Rest | CorotatedRest,
    *,
    tolerance: float,
    scale: float,
    iterations: int = MOST_ITERATIONS["lbfgs"],
    force: Floats | None = None,
    reference: float = 0.0,
    watch: Watch | None = None,
) -> Outcome:
    """Minimise E by L-BFGS preconditioned with the Laplacian.

    Converged when the predicted decrease of the energy has stayed below ``tolerance · scale`` for two steps. For
    `CorotatedRest`, `scale` is a lower bound of the elastic energy, of which a share (`LOAD_ENERGY_SHARE`) is used.
    reference: a force that the residual is relative to. force: (n, 3) external force. watch: called with x and E.
    """
    gradient = np.empty(x.shape)
    external = None if force is None else np.where(network.fixed[:, None], 0, force)
    stored = 0.0

    def evaluate(trial: Floats) -> float:
        nonlocal stored
        stored = network.energy(trial, rest, gradient)
        if external is None:
            return stored
        gradient[:] -= external
        return stored - dot(external, trial)

    def outcome(iteration: int, converged: bool, message: str = "") -> Outcome:
        left = float(np.abs(gradient).max(initial=0)) / first
        text = f"{message}, at {left:.1e} of the first force" if message else ""
        return Outcome(x, energy, iteration, left, converged, text)

    energy = evaluate(x)
    first = max(float(np.abs(gradient).max(initial=0)), reference, NO_FORCE)
    steps: list[tuple[Floats, Floats, float]] = []
    quiet = 0
    for iteration in range(iterations):
        direction = _two_loops(gradient, steps, network.solve)
        slope = dot(gradient, direction)
        if slope >= 0 and steps:  # rounding has spoilt the history
            steps = []
            continue
        small = tolerance * (LOAD_ENERGY_SHARE * max(stored, scale) if isinstance(rest, CorotatedRest) else scale)
        quiet = quiet + 1 if -slope < small else 0
        if quiet >= 2 or slope >= 0:
            return outcome(iteration, True)
        before = gradient.copy()
        step = 1.0
        while True:
            trial = x + step * direction
            reached = evaluate(trial)
            if reached <= energy + SUFFICIENT_DECREASE * step * slope or step < 1e-10:
                break
            step *= max(0.1, min(0.5, -0.5 * step * slope / max(reached - energy - step * slope, 1e-300)))
        if reached > energy:
            energy = evaluate(x)
            if steps:
                steps = []
                continue
            rounding = -slope < 1e-13 * max(abs(energy), scale)
            return outcome(iteration, rounding, "" if rounding else "stopped where no step lowers the energy")
        moved, change = trial - x, gradient - before
        curvature = dot(moved, change)
        if curvature > 1e-12 * (dot(moved, moved) * dot(change, change)) ** 0.5:
            steps = [*steps[-LBFGS_HISTORY + 1 :], (moved, change, 1 / curvature)]
        x, energy = trial, reached
        if watch is not None:
            watch(x, energy)
    return outcome(iterations, False, f"stopped after {iterations} iterations")


def _two_loops(
    gradient: Floats, steps: list[tuple[Floats, Floats, float]], solve: Callable[[Floats], Floats]
) -> Floats:
    """-H⁻¹ g by the L-BFGS two-loop recursion, with `solve` for the inverse of the initial Hessian."""
    q = gradient.copy()
    factors = []
    for moved, change, inverse in reversed(steps):
        a = inverse * dot(moved, q)
        factors.append(a)
        q -= a * change
    z = solve(q)
    for (moved, change, inverse), a in zip(steps, reversed(factors), strict=True):
        z += (a - inverse * dot(change, z)) * moved
    return -z


def newton(
    network: Network,
    x: Floats,
    rest: Rest | CorotatedRest,
    *,
    tolerance: float,
    scale: float,
    iterations: int = MOST_ITERATIONS["newton"],
    force: Floats | None = None,
    reference: float = 0.0,
    watch: Watch | None = None,
) -> Outcome:
    """Minimise E by Newton's method with a line search; the stiffness is projected and, near the end, full.

    The options are those of `lbfgs`. Converged when the predicted decrease is below ``tolerance · scale``, and the
    energy no longer falls.
    """
    gradient = np.empty(x.shape)
    external = np.zeros_like(x) if force is None else np.where(network.fixed[:, None], 0, force)

    def evaluate(trial: Floats) -> float:
        nonlocal scale
        stored = network.energy(trial, rest, gradient)
        if isinstance(rest, CorotatedRest):
            scale = max(least, stored)
        gradient[:] -= external
        return stored - dot(external, trial)

    least = scale
    energy = evaluate(x)
    first = max(float(np.abs(gradient).max(initial=0)), reference, NO_FORCE)
    factor: Factorization | None = None
    full = False
    for iteration in range(iterations):
        direction, factor = _newton_direction(network, x, rest, gradient, factor, full)
        if direction is None:  # the full stiffness is not definite here
            full = False
            continue
        slope = dot(gradient, direction)
        if -slope < tolerance * scale and (full or -slope < 1e-14 * scale):
            residual = float(np.abs(gradient).max(initial=0)) / first
            return Outcome(x, energy, iteration, residual, True)
        step, trial, reached = 1.0, x + direction, 0.0
        while True:
            trial = x + step * direction
            reached = evaluate(trial)
            if reached <= energy + SUFFICIENT_DECREASE * step * slope or step < 1e-8:
                break
            step *= 0.5
        stalled = reached >= energy - 1e-15 * abs(energy)
        x, energy = (x, evaluate(x)) if reached > energy else (trial, reached)
        full = step == 1.0 and -slope < 1e-4 * scale
        if watch is not None:
            watch(x, energy)
        if stalled and full:
            residual = float(np.abs(gradient).max(initial=0)) / first
            return Outcome(x, energy, iteration + 1, residual, True)
    residual = float(np.abs(gradient).max(initial=0)) / first
    message = f"stopped after {iterations} Newton steps, at {residual:.1e} of the first force"
    return Outcome(x, energy, iterations, residual, False, message)


def _newton_direction(
    network: Network, x: Floats, rest: Rest | CorotatedRest, gradient: Floats, factor: Factorization | None, full: bool
) -> tuple[Floats | None, Factorization | None]:
    """-H⁻¹ g over the unknown vertices; None if H is not definite. A small shift makes free rotations regular."""
    H = stiffness(network, x, rest, -np.inf if full else 0.0)
    diagonal = H.diagonal()
    # In place: a sum of sparse matrices drops the entries that are zero, as in a flat shape, and with them the pattern.
    H.setdiag(diagonal + 1e-9 * (diagonal.clip(min=0) + 1e-9 * float(np.abs(diagonal).max(initial=0))))
    try:
        factor = factorize(H, check=False) if factor is None else factor.refactorize(H, check=False)
        return _step(network, factor, gradient), factor
    except LinearSolveError:
        if full or not isinstance(rest, CorotatedRest):
            return None, None
    return _step(network, factorize(stiffness(network, x, rest, 0.0, rotating=False), check=False), gradient), None


def _step(network: Network, factor: Factorization, gradient: Floats) -> Floats:
    """(n, 3) the Newton step; unknowns beyond the vertices' coordinates (rotations) have no residual."""
    right = np.zeros(factor.shape[0])
    right[: 3 * len(network.unknown)] = gradient[network.unknown].ravel()
    step = np.zeros_like(gradient)
    step[network.unknown] = -factor.solve(right)[: 3 * len(network.unknown)].reshape(-1, 3)
    return step


def paper_newton(
    network: Network,
    x: Floats,
    rest: Rest | CorotatedRest,
    *,
    tolerance: float,
    iterations: int = MOST_ITERATIONS["paper"],
    force: Floats | None = None,
    reference: float = 0.0,
    watch: Watch | None = None,
) -> Outcome:
    """Newton–Raphson as published (Eq. 4): full stiffness, full steps, until |Δx| is below `tolerance`, a length."""
    gradient = np.empty(x.shape)
    external = np.zeros_like(x) if force is None else np.where(network.fixed[:, None], 0, force)
    energy = network.energy(x, rest, gradient) - dot(external, x)
    first = max(float(np.abs(gradient - external).max(initial=0)), reference, NO_FORCE)
    residual = 1.0
    factor: Factorization | None = None
    for iteration in range(iterations):
        H = stiffness(network, x, rest)
        H.setdiag(H.diagonal() + 1e-9 * np.abs(H.diagonal()))
        try:
            factor = _paper_factor(H, factor)
        except LinearSolveError as error:
            return Outcome(x, energy, iteration, 1.0, False, f"the stiffness matrix cannot be factorised ({error})")
        step = _step(network, factor, gradient - external)
        x = x + step
        energy = network.energy(x, rest, gradient) - dot(external, x)
        if watch is not None:
            watch(x, energy)
        residual = float(np.abs(gradient - external).max(initial=0)) / first
        if not np.isfinite(energy):
            return Outcome(x, energy, iteration + 1, np.inf, False, "diverged")
        if float(np.abs(step).max(initial=0)) < tolerance:
            return Outcome(x, energy, iteration + 1, residual, True)
    return Outcome(x, energy, iterations, residual, False, f"stopped after {iterations} Newton steps")


def _paper_factor(H: Any, before: Factorization | None) -> Factorization:
    """The full, possibly indefinite stiffness factorised, reusing the symbolic analysis of the one before."""
    if before is None or before.kind == "definite":
        try:
            return factorize(H, check=False) if before is None else before.refactorize(H, check=False)
        except LinearSolveError:
            pass
    return factorize(H, kind="symmetric", check=False)
