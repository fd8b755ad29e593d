"""Equilibrium of a spring network: the x where all forces vanish (Ma et al. 2011, Eq. 2 to 4).

    E(x) = ½ Σ_q k_q [(l - r)² + μ |d - (d · p) p|²],    d = x_i - x_j,  l = |d|,    f = ∂E/∂x.

With μ = 0 this is the paper's energy. The second term penalises leaving the rest direction p; see `Rest`. Under a load
the rest directions rotate with the body; see `CorotatedRest`. Three solvers of an `Objective`, whose second derivative
H is in `pliant.engines.blend.stiffness`:

- ``"lbfgs"``: L-BFGS preconditioned by the spring Laplacian L, which is factorised once for all weights: E is the
  minimum over unit vectors of ``½ Σ k |d - r u|²``, whose Hessian is ``L ⊗ 1``. The fastest.
- ``"newton"``: Newton steps with H, made definite by a share of L where it is not, to machine precision.
- ``"paper"``: Newton–Raphson with H and full steps, as published. It may diverge; the outcome says so.

All are told by how far, as a length, the farthest vertex may be from where it is at equilibrium. Newton's step is that
distance, up to its square. With rest directions H is between about μ L and L, so the steps of L-BFGS are about as long.
Where the springs of a few vertices are compressed, as in a crease, H is softer: those vertices are brought to their
equilibrium among the others one by one, before and after. Without rest directions, and where many springs are
compressed, H may be far softer, and L-BFGS ends with Newton's step, found by conjugate gradients that its own history
preconditions: see `newton_step`. Where those are slow, ``"newton"`` takes over. Where the energy has several minima, it
is the distance from the one that Newton's method leads to from there.

Fixed vertices are not unknowns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pliant.core.cancellation import check_cancelled
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
NEWTON_SHARE = 0.3
"""Largest error of `newton_step`, over the step, in the norm of the energy."""
SURE_SHARE, STEP_SHARE = 0.15, 0.7
"""The length of ``L⁻¹ g``, and of a later step of L-BFGS, over the distance to equilibrium, at least, where H is not
soft: as measured.
"""
USUAL_CURVATURE = 0.6
"""Curvature along ``L⁻¹ g``, over that of L, where springs have rest directions."""
COMPRESSED, COMPRESSED_SHARE, SAMPLED_SPRINGS = 0.1, 0.05, 4000
"""Compression of springs, and the share of such springs among a sample, above which H is soft."""
SPOT_COMPRESSION = 0.1
"""Mean compression of a vertex's springs above which H is soft there, though not on the whole."""
SPOT_SWEEPS, SPOT_TOLERANCE = 1000, 1e-4
"""Sweeps over the vertices of such spots, at most, and the step that ends them, over the tolerance: so small that their
order does not matter."""
SOFT_TOLERANCE = 1e-3
"""Largest step, over the size, that is taken for the distance to equilibrium where H is soft: farther, H is another."""
LEAST_PRODUCTS = 6
"""Products with a soft H that its least eigenvalue is estimated from, at least."""
MOST_PRODUCTS = 60
"""Products with H in `newton_step`; where they do not suffice, H is so soft that it is better factorised."""
NEWTON_COST = 10
"""Iterations of L-BFGS that a step with a factorised H counts as, about its cost."""
NO_FORCE = 1e-9
"""Rounding error of a force, in the springs' scale-free unit."""
ROUNDING_DISTANCE = 1e-10
"""Distance to equilibrium, over the size of the shape, that rounding may leave."""

Steps = list[tuple[Floats, Floats, float]]
Watch = Callable[[Floats, float], None]
DIFFERENCE_MOTION = 1e-5
"""How far a vertex moves in a difference of gradients, over the length of its shortest spring."""


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
        other.__dict__.update(fans=self.fans, L=self.L, fineness=self.fineness)
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
    def fineness(self) -> Floats:
        """(n,) the inverse square of the length of each vertex's shortest spring; 0 without springs."""
        squared = np.full(self.count, np.inf)
        mean = np.maximum(self.springs.rest.mean(axis=0), 1e-150) ** 2
        np.minimum.at(squared, self.springs.edges.ravel(), np.repeat(mean, 2))
        return 1 / squared

    @cached_property
    def L(self) -> Any:
        """The spring Laplacian over all vertices."""
        return laplacian(self.springs, self.count)

    @cached_property
    def known(self) -> tuple[Ints, Any]:
        """The vertices not solved for, and their columns of the Laplacian."""
        known = np.flatnonzero(np.bincount(self.unknown, minlength=self.count) == 0)
        return known, self.L[:, known].tocsc()

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


class Objective:
    """What a solver minimises: the energy of a network at a rest state, less the work of an external force (n, 3)."""

    def __init__(self, network: Network, rest: Rest | CorotatedRest, force: Floats | None = None) -> None:
        self.network, self.rest = network, rest
        self.force = None if force is None else np.where(network.fixed[:, None], 0, force)
        self.directed = isinstance(rest, Rest) and rest.direction_stiffness > 0
        """Whether springs resist leaving their rest directions: unless many are compressed, H is about L."""
        self.softness = 1 / USUAL_CURVATURE if self.directed else 1.0
        """About L over H."""

    def precondition(self, force: Floats) -> Floats:
        """(n, 3) about the step that balances a force (n, 3): symmetric and positive definite."""
        return self.softness * self.network.solve(force)

    def evaluate(self, x: Floats, gradient: Floats) -> float:
        """The value at x (n, 3); its gradient is written to `gradient`."""
        energy = self.network.energy(x, self.rest, gradient)
        if self.force is None:
            return energy
        gradient -= self.force
        return energy - dot(self.force, x)

    def is_soft(self, x: Floats) -> bool:
        """Whether H may be far softer than L at x: without rest directions, and where many springs are compressed."""
        if not self.directed:
            return True
        every = max(1, len(self.network.springs) // SAMPLED_SPRINGS)
        i, j = self.network.springs.edges[::every].T
        d = x.take(i, axis=0) - x.take(j, axis=0)
        r = self.rest.lengths[::every]
        compressed = np.count_nonzero(r * r > (1 + COMPRESSED) ** 2 * np.einsum("ij,ij->i", d, d))
        return bool(compressed > COMPRESSED_SHARE * len(d))

    def soft_spots(self, x: Floats) -> Ints:
        """The vertices at and next to which springs are much compressed, so that H may be soft there."""
        network = self.network
        if not self.directed or self.force is not None:
            return np.zeros(0, np.int64)
        start, other, _ = network.fans
        pressed = kernels.compression(x, network.fans, network.springs.stiffness, self.rest.lengths) > SPOT_COMPRESSION
        around = [other[start[i] : start[i + 1]] for i in np.flatnonzero(pressed)]
        spots = np.unique(np.concatenate([np.flatnonzero(pressed), *around]))
        return spots[~network.fixed[spots]]

    def relaxed(self, x: Floats, tolerance: float) -> Floats:
        """(n, 3) x with the vertices of its soft spots at equilibrium among the others, by nonlinear Gauss–Seidel."""
        network, rest, spots = self.network, self.rest, self.soft_spots(x)
        if not len(spots) or not isinstance(rest, Rest):
            return x
        moved = x.copy()
        arrays = network.fans, network.springs.stiffness, rest.lengths, rest.directions, rest.direction_stiffness
        least = max(SPOT_TOLERANCE * tolerance, ROUNDING_DISTANCE * _size(x))
        kernels.relax(moved, *arrays, spots, SPOT_SWEEPS, least)
        return moved

    def product(self, x: Floats, gradient: Floats, p: Floats) -> Floats:
        """(n, 3) H p at x, where the gradient is `gradient`: by a difference (`DIFFERENCE_MOTION`)."""
        most = float(np.max(np.einsum("ij,ij->i", p, p) * self.network.fineness, initial=0))
        h = DIFFERENCE_MOTION / max(most, 1e-300) ** 0.5
        ahead = np.empty_like(x)
        self.evaluate(x + h * p, ahead)
        return (ahead - gradient) / h


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


def farthest(step: Floats) -> float:
    """The length of the longest of vectors (n, 3)."""
    return float(np.sqrt(np.einsum("ij,ij->i", step, step).max(initial=0)))


def _size(x: Floats) -> float:
    return farthest(x - x.mean(axis=0))


class _Iterate:
    """Where a solver is, and what it has done."""

    def __init__(self, objective: Objective, x: Floats, reference: float, watch: Watch | None) -> None:
        self.objective, self.x, self.watch, self.count = objective, x, watch, 0
        self.gradient = np.empty(x.shape)
        self.energy = objective.evaluate(x, self.gradient)
        self.first = max(self.largest_force, reference, NO_FORCE)
        self.rounding = ROUNDING_DISTANCE * _size(x)

    @property
    def largest_force(self) -> float:
        return float(np.abs(self.gradient).max(initial=0))

    def move(self, x: Floats) -> None:
        """Go on from another shape."""
        self.x, self.energy = x, self.objective.evaluate(x, self.gradient)
        if self.watch is not None:
            self.watch(x, self.energy)

    def search(self, direction: Floats, slope: float, shortest: float = 1e-10) -> float:
        """Move along a direction until the energy falls; the step's length, 0 if it never does."""
        before, step = self.gradient.copy(), 1.0
        rounding = 1e-14 * abs(self.energy)
        unseen = rounding if -slope < rounding else 0.0  # a decrease that rounding hides is taken on trust
        while True:
            trial = self.x + step * direction
            reached = self.objective.evaluate(trial, self.gradient)
            if reached <= self.energy + SUFFICIENT_DECREASE * step * slope + unseen or step < shortest:
                break
            step *= max(0.1, min(0.5, -0.5 * step * slope / max(reached - self.energy - step * slope, 1e-300)))
        if not reached <= self.energy + unseen:
            self.gradient[:] = before
            return 0.0
        self.x, self.energy = trial, reached
        if self.watch is not None:
            self.watch(trial, reached)
        return step

    def outcome(self, converged: bool, message: str = "") -> Outcome:
        left = self.largest_force / self.first
        text = f"{message}, at {left:.1e} of the first force" if message else ""
        return Outcome(self.x, self.energy, self.count, left, converged, text)


def lbfgs(
    objective: Objective,
    x: Floats,
    *,
    tolerance: float,
    iterations: int = MOST_ITERATIONS["lbfgs"],
    reference: float = 0.0,
    watch: Watch | None = None,
) -> Outcome:
    """Minimise by preconditioned L-BFGS.

    tolerance: distance from equilibrium, a length. reference: a force that the residual is relative to. watch: called
    with x and E.
    """
    soft = objective.is_soft(x)
    at = _Iterate(objective, objective.relaxed(x, tolerance), reference, watch)
    steps: Steps = []
    if soft:
        tolerance = min(tolerance, SOFT_TOLERANCE * _size(x))
    while at.count < iterations:
        check_cancelled()
        direction = -_inverse(at.gradient, steps, objective)
        slope = dot(at.gradient, direction)
        if slope >= 0 or not np.isfinite(slope):
            if not steps:
                return at.outcome(slope == 0, "" if slope == 0 else "stopped where the forces are not finite")
            steps = []  # rounding has spoilt the history
            continue
        reach = farthest(direction)
        share = 0.0 if soft else STEP_SHARE if steps else SURE_SHARE * objective.softness
        if reach <= max(share * tolerance, at.rounding):
            y = objective.relaxed(at.x, tolerance)
            if farthest(y - at.x) <= max(STEP_SHARE * tolerance, at.rounding):
                return at.outcome(True)
            at.move(y)
            at.count += 1
            continue
        if soft and reach <= tolerance:
            found = newton_step(objective, at.x, at.gradient, steps, min(MOST_PRODUCTS, iterations - at.count))
            at.count += found.iterations
            near = found.solved and farthest(found.step) <= tolerance
            moved = _advance(at, found.step, dot(at.gradient, found.step), steps)
            if near:
                return at.outcome(True)
            if found.iterations == MOST_PRODUCTS and at.count + NEWTON_COST <= iterations:
                return _ended_by_newton(at, tolerance, (iterations - at.count) // NEWTON_COST)
            if moved:
                continue
        at.count += 1
        if not _advance(at, direction, slope, steps):
            if steps:
                steps.clear()
                continue
            return at.outcome(False, "stopped where no step lowers the energy")
    return at.outcome(False, f"stopped after {at.count} iterations")


def _ended_by_newton(at: _Iterate, tolerance: float, most: int) -> Outcome:
    """What at most so many steps of Newton's method lead to from there."""
    found = newton(at.objective, at.x, tolerance=tolerance, iterations=most, reference=at.first, watch=at.watch)
    found.iterations += at.count
    return found


def _advance(at: _Iterate, direction: Floats, slope: float, steps: Steps) -> bool:
    """Search along a direction, and note the step and the change of the gradient; whether the energy fell."""
    if slope >= 0:
        return False
    x, before = at.x, at.gradient.copy()
    if at.search(direction, slope) == 0:
        return False
    moved, change = at.x - x, at.gradient - before
    curvature = dot(moved, change)
    if curvature > 1e-12 * (dot(moved, moved) * dot(change, change)) ** 0.5:
        steps.append((moved, change, 1 / curvature))
        del steps[:-LBFGS_HISTORY]
    return True


def _inverse(gradient: Floats, steps: Steps, objective: Objective) -> Floats:
    """About H⁻¹ g: the L-BFGS two-loop recursion, with the preconditioner for the inverse of the initial Hessian."""
    q = gradient.copy()
    factors = []
    for moved, change, inverse in reversed(steps):
        a = inverse * dot(moved, q)
        factors.append(a)
        q -= a * change
    z: Floats = objective.precondition(q)
    for (moved, change, inverse), a in zip(steps, reversed(factors), strict=True):
        z += (a - inverse * dot(change, z)) * moved
    return z


class NewtonStep(NamedTuple):
    """A step, and what is known of it."""

    step: Floats
    """(n, 3) -H⁻¹ g, or a direction in which H is not positive."""
    solved: bool
    """Whether it is the first, to `NEWTON_SHARE`."""
    iterations: int


def newton_step(objective: Objective, x: Floats, gradient: Floats, steps: Steps, most: int) -> NewtonStep:
    """-H⁻¹ g by conjugate gradients, preconditioned by the L-BFGS approximation M of H⁻¹.

    The error in the norm of H is at most ``(rᵀ M r / λ)^½``, r being the
    residual and λ the least eigenvalue of M H, which the coefficients of the iteration tell (Lanczos): as long as soft
    modes turn up, λ falls, and the iteration goes on.
    """
    from scipy.linalg import eigh_tridiagonal

    step, r = np.zeros_like(x), -gradient
    z = _inverse(r, steps, objective)
    p, rz, decrease = z.copy(), dot(r, z), 0.0
    diagonal: list[float] = []
    across: list[float] = []
    alpha, beta = 1.0, 0.0
    for iteration in range(1, most + 1):
        check_cancelled()
        Hp = objective.product(x, gradient, p)
        curvature = dot(p, Hp)
        if curvature <= 1e-10 * dot(p, p) ** 0.5 * dot(Hp, Hp) ** 0.5:
            down = p if dot(gradient, p) < 0 else -p
            return NewtonStep(step if decrease > 0 else down, False, iteration)
        diagonal.append(beta / alpha)
        alpha = rz / curvature
        diagonal[-1] += 1 / alpha
        step += alpha * p
        decrease += alpha * rz
        r -= alpha * Hp
        z = _inverse(r, steps, objective)
        rz, before = dot(r, z), rz
        least = eigh_tridiagonal(diagonal, across, select="i", select_range=(0, 0), eigvals_only=True)[0]
        enough = iteration >= LEAST_PRODUCTS
        if enough and rz <= NEWTON_SHARE**2 * least * decrease:
            return NewtonStep(step, True, iteration)
        beta = rz / before
        across.append(beta**0.5 / alpha)
        p = z + beta * p
    return NewtonStep(step, False, most)


LEAST_SHIFT, LARGEST_SHIFT_AT_REST = 1e-6, 1e-3
"""Smallest share of L that makes an indefinite H definite, and the largest with which a step tells forces from none."""


def newton(
    objective: Objective,
    x: Floats,
    *,
    tolerance: float,
    iterations: int = MOST_ITERATIONS["newton"],
    reference: float = 0.0,
    watch: Watch | None = None,
) -> Outcome:
    """Minimise by Newton's method with a line search. The options are those of `lbfgs`."""
    at = _Iterate(objective, x, reference, watch)
    factor: Factorization | None = None
    shift = 0.0
    while at.count < iterations:
        check_cancelled()
        at.count += 1
        try:
            direction, factor = _newton_direction(objective, at.x, at.gradient, factor, shift)
        except LinearSolveError:
            shift, factor = max(10 * shift, LEAST_SHIFT), None
            if shift > 1e3:
                return at.outcome(False, "stopped where the stiffness matrix cannot be factorised")
            continue
        reach = farthest(direction)
        near = (shift == 0 and reach <= tolerance) or (shift < LARGEST_SHIFT_AT_REST and reach <= at.rounding)
        slope = dot(at.gradient, direction)
        step = at.search(direction, slope, shortest=1e-8) if slope < 0 else 0.0
        if near:
            return at.outcome(True)
        if step == 0:
            if shift > 1e3:
                return at.outcome(False, "stopped where no step lowers the energy")
            shift = max(10 * shift, LEAST_SHIFT)
        elif step == 1:
            shift = shift / 10 if shift > LEAST_SHIFT else 0.0
    return at.outcome(False, f"stopped after {at.count} Newton steps")


def _newton_direction(
    objective: Objective, x: Floats, gradient: Floats, factor: Factorization | None, shift: float
) -> tuple[Floats, Factorization]:
    """-(H + shift L)⁻¹ g over the unknown vertices; raises if that is not definite."""
    network = objective.network
    H = stiffness(network, x, objective.rest, shift=shift)
    diagonal = H.diagonal()
    # In place: a sum of sparse matrices drops the entries that are zero, as in a flat shape, and with them the pattern.
    # A little makes free rotations regular.
    H.setdiag(diagonal + 1e-9 * (diagonal.clip(min=0) + 1e-9 * float(np.abs(diagonal).max(initial=0))))
    factor = factorize(H, check=False) if factor is None else factor.refactorize(H, check=False)
    return _step(network, factor, gradient), factor


def _step(network: Network, factor: Factorization, gradient: Floats) -> Floats:
    """(n, 3) the Newton step; unknowns beyond the vertices' coordinates (rotations) have no residual."""
    right = np.zeros(factor.shape[0])
    right[: 3 * len(network.unknown)] = gradient[network.unknown].ravel()
    step = np.zeros_like(gradient)
    step[network.unknown] = -factor.solve(right)[: 3 * len(network.unknown)].reshape(-1, 3)
    return step


def paper_newton(
    objective: Objective,
    x: Floats,
    *,
    tolerance: float,
    iterations: int = MOST_ITERATIONS["paper"],
    reference: float = 0.0,
    watch: Watch | None = None,
) -> Outcome:
    """Newton–Raphson as published (Eq. 4): full stiffness, full steps, until |Δx| is below `tolerance`, a length."""
    at = _Iterate(objective, x, reference, watch)
    factor: Factorization | None = None
    while at.count < iterations:
        check_cancelled()
        H = stiffness(objective.network, at.x, objective.rest)
        H.setdiag(H.diagonal() + 1e-9 * np.abs(H.diagonal()))
        try:
            factor = _paper_factor(H, factor)
        except LinearSolveError as error:
            return at.outcome(False, f"the stiffness matrix cannot be factorised ({error})")
        step = _step(objective.network, factor, at.gradient)
        at.count += 1
        at.x = at.x + step
        at.energy = objective.evaluate(at.x, at.gradient)
        if watch is not None:
            watch(at.x, at.energy)
        if not np.isfinite(at.energy):
            return at.outcome(False, "diverged")
        if farthest(step) <= max(tolerance, at.rounding):
            return at.outcome(True)
    return at.outcome(False, f"stopped after {iterations} Newton steps")


def _paper_factor(H: Any, before: Factorization | None) -> Factorization:
    """The full, possibly indefinite stiffness factorised, reusing the symbolic analysis of the one before."""
    if before is None or before.kind == "definite":
        try:
            return factorize(H, check=False) if before is None else before.refactorize(H, check=False)
        except LinearSolveError:
            pass
    return factorize(H, kind="symmetric", check=False)
