"""How an elastic body gives way: its energy and that of its contacts, minimised together.

A contact is a row: a point on the body, given by up to four vertices and weights, that must not go farther against a
direction. With v the amount by which it does, a row acts like a stiff spring that is bounded,

    e(v) = λ v - ½ λ²/ρ,    λ = clamp(ρ v, low, high):

``low = 0, high = ∞`` for a contact, which pushes and never pulls; ``±μ λ_n`` for friction, which sticks, then slides.

Each iteration minimises, over steps d, a quadratic model of the elastic energy together with the rows,

    g·d + ½ dᵀ B d + Σ e(v - N d),      B⁻¹ = L⁻¹ + L-BFGS updates,

which in the rows' forces λ is a small dense problem, ``λ = clamp(ρ (v - N d₀ - S λ), low, high)`` with
``S = N B⁻¹ Nᵀ``, solved by pivoting. So stiff rows cost no extra iterations, contacts come, go and
slide as they must, and the number of steps is about that of a body that touches nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.contact import response_kernels
from pliant.linalg import dot
from pliant.topology import Floats, Ints

ARMIJO = 1e-4
MEMORY = 8
"""Pairs of steps that the model of the elastic energy remembers."""
FLAT = 1e-2
"""Curvature along a step, over L's, below which it is not remembered: it says little, and spoils the model."""
SHORTEST = 1e-5
"""Share of a step below which it leads nowhere."""
CERTAIN = 0.2
"""Share of what ends the iterations if promised twice below which once is enough."""
STALLED = 30.0
"""What a step may promise, over what ends the iterations, where none helps: contacts come and go there."""
TOUCHING = 0.01
"""Distance, over the deepest that a step would lead without contact, of points that are taken to touch at first."""
EAGER = 0.25
"""Of rows that should push too, those that are so far on the wrong side, over the farthest, are the next to do so."""
LATE = 4
"""Times, at most, that rows are added to a step that they were not near to."""
PIVOTS = 60
"""Changes of what is clamped, at most, in one step."""
MOST_TOUCHED = 8000
"""Vertices whose answers to each other's forces are kept: half a gigabyte."""


@dataclass(frozen=True, eq=False)
class Rows:
    """m contacts at some shape."""

    vertices: Ints
    """(m, 4) body vertices; those of weight 0 may be any."""
    weights: Floats
    """(m, 4)"""
    directions: Floats
    """(m, 3) unit vectors along which a row pushes the point."""
    violation: Floats
    """(m,) how far the point is on the wrong side: v."""
    rho: Floats
    """(m,) stiffness."""
    low: Floats
    """(m,)"""
    high: Floats
    """(m,)"""

    def __len__(self) -> int:
        return len(self.violation)

    @classmethod
    def joined(cls, rows: Sequence[Rows]) -> Rows:
        """Several sets as one."""
        return cls(*(np.concatenate([getattr(r, name) for r in rows]) for name in cls.__dataclass_fields__))

    @classmethod
    def none(cls) -> Rows:
        """No contact."""
        m = np.zeros(0)
        return cls(np.zeros((0, 4), np.int64), np.zeros((0, 4)), np.zeros((0, 3)), m, m, m, m)

    def chosen(self, which: NDArray[np.bool_] | Ints) -> Rows:
        """Some of them."""
        return Rows(*(getattr(self, name)[which] for name in self.__dataclass_fields__))

    @property
    def forces(self) -> Floats:
        """(m,) λ, the force of each row along its direction."""
        return np.clip(self.rho * self.violation, self.low, self.high)

    @property
    def energy(self) -> float:
        """Σ e(v)"""
        return self.energy_at(self.violation)

    def energy_at(self, violation: Floats) -> float:
        """Σ e for other violations (m,)."""
        force = np.clip(self.rho * violation, self.low, self.high)
        return float(np.sum(force * violation - 0.5 * force**2 / self.rho))

    def along(self, x: Floats) -> Floats:
        """(m,) N x: the motion x (n, 3) of each row's point along its direction."""
        return response_kernels.moved_along(self.vertices, self.weights, self.directions, x)

    def spread(self, forces: Floats, count: int) -> Floats:
        """(n, 3) Nᵀ λ: the rows' forces at the body's vertices."""
        return response_kernels.spread_forces(self.vertices, self.weights, self.directions, forces, count)


class Compliance:
    """L⁻¹ between vertices that were touched: how each gives way to a force at another. Found when needed, and kept."""

    def __init__(self, columns: Callable[[Ints], Floats], count: int) -> None:
        self._find = columns
        self._slot = np.full(count, -1)
        self._vertices: Ints = np.zeros(0, np.int64)
        self._table = np.zeros((0, 0))

    def between(self, vertices: Ints) -> tuple[Ints, Floats]:
        """Slots for vertices of any shape, and the table of L⁻¹ by slots."""
        missing = np.unique(vertices[self._slot[vertices] < 0])
        if len(missing):
            if len(self._vertices) + len(missing) > MOST_TOUCHED:
                self._slot[self._vertices], self._vertices, missing = -1, self._vertices[:0], np.unique(vertices)
            for first in range(0, len(missing), 128):
                self._add(missing[first : first + 128])
        used = len(self._vertices)
        return self._slot[vertices], self._table[:used, :used]

    def _add(self, missing: Ints) -> None:
        columns, used = self._find(missing), len(self._vertices)
        every = np.concatenate([self._vertices, missing])
        if len(every) > len(self._table):
            grown = np.empty((max(2 * len(self._table), len(every), 256),) * 2)
            grown[:used, :used] = self._table[:used, :used]
            self._table = grown
        self._table[: len(every), used : len(every)] = columns[every]
        self._table[used : len(every), :used] = columns[every[:used]].T
        self._slot[missing] = np.arange(used, len(every))
        self._vertices = every


@dataclass
class Model:
    """B⁻¹ = L⁻¹ + V M Vᵀ, the compact form of L-BFGS (Byrd, Nocedal and Schnabel 1994), from pairs of steps."""

    steps: list[Floats] = field(default_factory=list)
    """s, (n, 3) each."""
    changes: list[Floats] = field(default_factory=list)
    """y, the change of the gradient."""
    solved: list[Floats] = field(default_factory=list)
    """L⁻¹ y"""

    SY: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(k, k) s_i · y_j"""
    YZ: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(k, k) y_i · L⁻¹ y_j"""

    def add(self, step: Floats, change: Floats, solved: Floats) -> None:
        """Remember a pair, unless the energy bends the wrong way along it."""
        curvature, softness = dot(step, change), dot(change, solved)
        if curvature <= FLAT * softness:
            return
        cross = np.array([dot(change, z) for z in self.solved])
        self.SY = _bordered(
            self.SY, np.array([dot(s, change) for s in self.steps]), [dot(step, y) for y in self.changes], curvature
        )
        self.YZ = _bordered(self.YZ, cross, cross, softness)
        for kept, new in ((self.steps, step), (self.changes, change), (self.solved, solved)):
            kept.append(new)
            del kept[:-MEMORY]

    @property
    def V(self) -> list[Floats]:
        """Its columns, each (n, 3)."""
        return [*self.steps, *self.solved]

    @property
    def M(self) -> Floats:
        """(2 k, 2 k)"""
        k = len(self.steps)
        R = np.linalg.inv(np.triu(self.SY))
        return np.block([[R.T @ (np.diag(np.diag(self.SY)) + self.YZ) @ R, -R.T], [-R, np.zeros((k, k))]])


def _bordered(A: Floats, column: ArrayLike, row: ArrayLike, corner: float) -> Floats:
    """A with one more column and row, and without its first ones where it remembers too much."""
    k = len(A)
    out = np.empty((k + 1, k + 1))
    out[:k, :k], out[:k, k], out[k, :k], out[k, k] = A, column, row, corner
    return out[-MEMORY:, -MEMORY:]


@dataclass
class Relaxed:
    """Where the minimisation got to."""

    x: Floats
    model: Model
    iterations: int
    residual: float
    converged: bool


def relax(
    elastic: Callable[[Floats, Floats], float],
    solve: Callable[[Floats], Floats],
    compliance: Compliance,
    rows_at: Callable[[Floats], Rows],
    x: Floats,
    *,
    tolerance: float,
    scale: Callable[[], float],
    farthest: float = np.inf,
    share: Callable[[Floats, Floats], float] | None = None,
    refresh: Callable[[Floats], bool] | None = None,
    deadline: float = np.inf,
    iterations: int = 200,
    model: Model | None = None,
    watch: Callable[[Floats, float], None] | None = None,
) -> Relaxed:
    """Minimise an elastic energy together with the rows of contact.

    elastic: from x and an array for the gradient to the energy. solve: L⁻¹ of vectors (n, 3). rows_at: the rows at a
    shape. farthest: how far a step may move a vertex, so that rows still tell what it will meet. share: how much of the
    way from one shape to another is free. refresh: called with every shape that is reached, to choose anew what rows
    watch; says whether it did. deadline: of time.monotonic, after which no step is begun. Stops when a step promises
    less than ``tolerance · scale()`` twice in a row, or a fifth of that once.
    """
    gradient, model = np.empty_like(x), Model() if model is None else model
    if refresh is not None:
        refresh(x)
    energy, rows = elastic(x, gradient), rows_at(x)
    z = solve(gradient)
    quiet, first = 0, max(float(np.abs(gradient - rows.spread(rows.forces, len(x))).max(initial=0)), 1e-300)
    pushing = None
    for iteration in range(iterations):
        if time.monotonic() > deadline:
            return _relaxed(x, model, rows, iteration, gradient, first, False)
        step = _step(gradient, z, model, rows, pushing, compliance, solve, farthest)
        foreseen = rows.violation - rows.along(step)
        promised = dot(gradient, step) + rows.energy_at(foreseen) - rows.energy
        if not promised <= 0 and model.steps:  # what is remembered does not fit here
            model = Model()
            continue
        enough = tolerance * scale()
        quiet = quiet + (2 if 0 <= -promised < CERTAIN * enough else 1) if -promised < enough else 0
        if quiet >= 2:
            return _relaxed(x, model, rows, iteration, gradient, first, True)
        before, length = gradient.copy(), min(1.0, 2 * farthest / max(_longest(step), 1e-300))
        if share is not None:
            length *= share(x, x + length * step)
        total = energy + rows.energy
        while True:
            place = x + length * step
            reached, there = elastic(place, gradient), rows_at(place)
            if reached + there.energy <= total + ARMIJO * length * promised or length < SHORTEST:
                break
            length *= 0.5
        # No step helps: rounding, or a kink that the rows did not foresee.
        if reached + there.energy > total or length < SHORTEST:
            energy = elastic(x, gradient)
            if not model.steps:
                stalled = -promised < STALLED * tolerance * scale()
                return _relaxed(x, model, rows, iteration, gradient, first, stalled)
            model, z = Model(), solve(gradient)
            continue
        solved = solve(gradient)
        model.add(place - x, gradient - before, solved - z)
        x, energy, rows, z, pushing = place, reached, there, solved, foreseen > 0
        if refresh is not None and refresh(x):
            rows, pushing = rows_at(x), None
        if watch is not None:
            watch(x, energy)
    return _relaxed(x, model, rows, iterations, gradient, first, False)


def _longest(step: Floats) -> float:
    """How far the vertex goes that goes farthest."""
    return float(np.sqrt(np.max(np.einsum("ij,ij->i", step, step), initial=0.0)))


def _relaxed(
    x: Floats, model: Model, rows: Rows, iteration: int, gradient: Floats, first: float, converged: bool
) -> Relaxed:
    left = float(np.abs(gradient - rows.spread(rows.forces, len(x))).max(initial=0)) / first
    return Relaxed(x, model, iteration, left, converged)


def _step(
    gradient: Floats,
    z: Floats,
    model: Model,
    rows: Rows,
    pushing: NDArray[np.bool_] | None,
    compliance: Compliance,
    solve: Callable[[Floats], Floats],
    farthest: float,
) -> Floats:
    """The step d that minimises the model of the elastic energy together with the rows; z = L⁻¹ gradient.

    A step that would go farther than `farthest` is shortened before the rows have their say. pushing: rows that
    probably push.
    """
    V, M = model.V, model.M if model.steps else np.zeros((0, 0))

    def corrected(solved: Floats, of: Floats) -> Floats:
        """B⁻¹ of a vector whose L⁻¹ is known."""
        factors = M @ np.array([dot(v, of) for v in V])
        out = solved.copy()
        for factor, v in zip(factors, V, strict=True):
            out += factor * v
        return out

    free = -corrected(z, gradient)
    free *= min(1.0, farthest / max(_longest(free), 1e-300))
    return _answered(
        rows, free, pushing, lambda near: Answers(near, compliance, V, M), lambda push: corrected(solve(push), push)
    )


def pushed(rows: Rows, d: Floats, compliance: Compliance, solve: Callable[[Floats], Floats]) -> Floats:
    """(n, 3) what a motion d becomes by contacts, for a body that resists by L."""
    return _answered(rows, d, None, lambda near: Answers(near, compliance), solve)


def _answered(
    rows: Rows,
    d: Floats,
    pushing: NDArray[np.bool_] | None,
    answers_of: Callable[[Rows], Answers],
    respond: Callable[[Floats], Floats],
) -> Floats:
    """A motion d together with what the rows' forces add to it; respond: from forces (n, 3) to a motion."""
    ahead = rows.violation - rows.along(d)
    deepest = float(ahead.max(initial=0.0))
    # The body is pushed back about as far as it would go too far; what else that leads too far has its say after it.
    near = (ahead > -deepest) | (rows.violation > 0) | (rows.low < 0)
    answered = d
    if pushing is None:
        pushing = rows.violation > -TOUCHING * deepest
    for _ in range(LATE):
        if not near.any():
            break
        answers = answers_of(rows.chosen(near))
        push = answers.rows.spread(bounded_forces(answers, ahead[near], pushing[near]), len(d))
        answered = d + respond(push)
        late = ~near & (rows.violation - rows.along(answered) > 0)
        if not late.any():
            break
        near |= late
    return answered


class Answers:
    """S = N B⁻¹ Nᵀ (m, m): how far rows' points move along their directions for a force 1 at one; found row by row."""

    def __init__(self, rows: Rows, compliance: Compliance, V: Sequence[Floats] = (), M: Floats | None = None) -> None:
        self.rows = rows
        vertices, self._weights, self._counts = response_kernels.used_first(rows.vertices, rows.weights)
        self._slots, self._table = compliance.between(vertices)
        self._NV = np.array([rows.along(v) for v in V]).reshape(len(V), len(rows))
        self._MNV = self._NV if M is None else M @ self._NV
        self._place = np.full(len(rows), -1)
        self._found, self._count = np.zeros((0, len(rows))), 0

    def _find(self, chosen: Ints) -> None:
        missing = chosen[self._place[chosen] < 0]
        if len(missing):
            new = response_kernels.answers(
                missing, self._slots, self._weights, self._counts, self.rows.directions, self._table
            )
            new += self._NV[:, missing].T @ self._MNV
            end = self._count + len(missing)
            if end > len(self._found):
                grown = np.zeros((max(2 * len(self._found), end), len(self.rows)))
                grown[: self._count] = self._found[: self._count]
                self._found = grown
            self._found[self._count : end] = new
            self._place[missing], self._count = np.arange(self._count, end), end

    def block(self, chosen: Ints) -> Floats:
        """(c, c) S + 1/ρ between some rows."""
        self._find(chosen)
        block = response_kernels.block(self._found, self._place, chosen, 1 / self.rows.rho[chosen])
        block[np.diag_indices_from(block)] *= 1 + 1e-12
        return block

    def to(self, force: Floats) -> Floats:
        """(m,) S λ"""
        acting = np.flatnonzero(force)
        self._find(acting)
        together = np.zeros(self._count)
        together[self._place[acting]] = force[acting]
        return together @ self._found[: self._count]


def bounded_forces(answers: Answers, ahead: Floats, pushing: NDArray[np.bool_]) -> Floats:
    """(m,) the λ with ``λ = clamp(ρ (ahead - S λ), low, high)``, by pivoting on which of them are clamped.

    pushing: (m,) a guess at those that are not.
    All that are on the wrong side change it at once; if that leads nowhere three times, one at a time, which always
    ends (Júdice and Pires 1994).
    """
    from scipy.linalg import cho_factor, cho_solve

    rows = answers.rows
    force = np.zeros(len(rows))
    free = pushing | (rows.low < 0)
    if not free.any():
        free = ahead > 0
    fewest, patience = len(rows) + 1, 3
    for _ in range(PIVOTS):
        chosen = np.flatnonzero(free)
        if len(chosen):
            clamped = np.where(free, 0, force)
            right = (ahead - answers.to(clamped) if clamped.any() else ahead)[chosen]
            # The block is symmetric: transposed it is in LAPACK's order, and nothing is copied.
            factor = cho_factor(answers.block(chosen).T, lower=True, overwrite_a=True, check_finite=False)
            force[chosen] = cho_solve(factor, right, check_finite=False)
        wish = (ahead - answers.to(force)) * rows.rho
        wish[free] = force[free]
        clamped = np.clip(wish, rows.low, rows.high)
        inner = (wish > rows.low) & (wish < rows.high)
        wrong = np.flatnonzero((inner != free) | (~free & (clamped != force)))
        if not len(wrong):
            break
        patience = 3 if len(wrong) < fewest else patience - 1
        fewest = min(fewest, len(wrong))
        if patience > 0:
            # Those that most want to push first: their neighbours often need not, then.
            eager = ~free[wrong] & (rows.low[wrong] == 0)
            most = (wish / rows.rho)[wrong][eager].max(initial=0.0)
            change = wrong[~eager | ((wish / rows.rho)[wrong] >= EAGER * most)]
        else:
            change = wrong[-1:]
        free, force = free.copy(), force.copy()
        free[change], force[change] = ~free[change], clamped[change]
    return np.clip(force, rows.low, rows.high)
