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
from numpy.typing import NDArray

from pliant.linalg import dot
from pliant.topology import Floats, Ints

ARMIJO = 1e-4
MEMORY = 8
"""Pairs of steps that the model of the elastic energy remembers."""
FLAT = 1e-2
"""Curvature along a step, over L's, below which it is not remembered: it says little, and spoils the model."""
SHORTEST = 1e-5
"""Share of a step below which it leads nowhere."""
STALLED = 30.0
"""What a step may promise, over what ends the iterations, where none helps: contacts come and go there."""
PIVOTS = 60
"""Changes of what is clamped, at most, in one step."""
COLUMNS = 1 << 29
"""Bytes of the body's answers to single forces that are kept."""


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
        return np.einsum("mk,mkj,mj->m", self.weights, x[self.vertices], self.directions)

    def spread(self, forces: Floats, count: int) -> Floats:
        """(n, 3) Nᵀ λ: the rows' forces at the body's vertices."""
        at = (self.weights * forces[:, None])[:, :, None] * self.directions[:, None, :]
        flat = self.vertices.ravel()
        return np.stack([np.bincount(flat, at[..., k].ravel(), minlength=count) for k in range(3)], axis=1)


class Compliance:
    """Columns of L⁻¹: how the surface gives way to a force at one vertex. Found when they are needed, and kept."""

    def __init__(self, columns: Callable[[Ints], Floats], count: int) -> None:
        self._find = columns
        self._count = count
        self._slot: dict[int, int] = {}
        self._store = np.zeros((0, count))

    def between(self, rows: Ints, columns: Ints) -> Floats:
        """(rows, columns) entries of L⁻¹."""
        missing = [int(v) for v in np.unique(columns) if int(v) not in self._slot]
        if missing:
            self._add(missing)
        slots = np.array([self._slot[int(v)] for v in columns], dtype=np.int64)
        return self._store[np.ix_(slots, rows)].T

    def _add(self, missing: list[int]) -> None:
        used = len(self._slot)
        if (used + len(missing)) * self._count * 8 > COLUMNS:
            self._slot, used = {}, 0
        if used + len(missing) > len(self._store):
            grown = np.empty((max(2 * len(self._store), used + len(missing), 64), self._count))
            grown[:used] = self._store[:used]
            self._store = grown
        for first in range(0, len(missing), 128):
            some = missing[first : first + 128]
            self._store[used + first : used + first + len(some)] = self._find(np.array(some)).T
        self._slot.update({v: used + k for k, v in enumerate(missing)})


@dataclass
class _Model:
    """B⁻¹ = L⁻¹ + V M Vᵀ, the compact form of L-BFGS (Byrd, Nocedal and Schnabel 1994), from pairs of steps."""

    steps: list[Floats] = field(default_factory=list)
    """s, (n, 3) each."""
    changes: list[Floats] = field(default_factory=list)
    """y, the change of the gradient."""
    solved: list[Floats] = field(default_factory=list)
    """L⁻¹ y"""

    def add(self, step: Floats, change: Floats, solved: Floats) -> None:
        """Remember a pair, unless the energy bends the wrong way along it."""
        curvature = dot(step, change)
        if curvature > FLAT * dot(change, solved):
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
        SY = np.array([[dot(s, y) for y in self.changes] for s in self.steps]).reshape(k, k)
        YHY = np.array([[dot(y, z) for z in self.solved] for y in self.changes]).reshape(k, k)
        R = np.linalg.inv(np.triu(SY))
        return np.block([[R.T @ (np.diag(np.diag(SY)) + YHY) @ R, -R.T], [-R, np.zeros((k, k))]])


@dataclass
class Relaxed:
    """Where the minimisation got to."""

    x: Floats
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
    watch: Callable[[Floats, float], None] | None = None,
) -> Relaxed:
    """Minimise an elastic energy together with the rows of contact.

    elastic: from x and an array for the gradient to the energy. solve: L⁻¹ of vectors (n, 3). rows_at: the rows at a
    shape. farthest: how far a step may move a vertex, so that rows still tell what it will meet. share: how much of the
    way from one shape to another is free. refresh: called with every shape that is reached, to choose anew what rows
    watch; says whether it did. deadline: of time.monotonic, after which no step is begun. Stops when a step promises
    less than ``tolerance · scale()`` twice in a row.
    """
    gradient, model = np.empty_like(x), _Model()
    if refresh is not None:
        refresh(x)
    energy, rows = elastic(x, gradient), rows_at(x)
    z = solve(gradient)
    quiet, first = 0, max(float(np.abs(gradient - rows.spread(rows.forces, len(x))).max(initial=0)), 1e-300)
    for iteration in range(iterations):
        if time.monotonic() > deadline:
            return _relaxed(x, rows, iteration, gradient, first, False)
        step = _step(gradient, z, model, rows, compliance, solve, farthest)
        promised = dot(gradient, step) + rows.energy_at(rows.violation - rows.along(step)) - rows.energy
        if not promised <= 0 and model.steps:  # what is remembered does not fit here
            model = _Model()
            continue
        quiet = quiet + 1 if -promised < tolerance * scale() else 0
        if quiet >= 2:
            return _relaxed(x, rows, iteration, gradient, first, True)
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
                return _relaxed(x, rows, iteration, gradient, first, stalled)
            model, z = _Model(), solve(gradient)
            continue
        solved = solve(gradient)
        model.add(place - x, gradient - before, solved - z)
        x, energy, rows, z = place, reached, there, solved
        if refresh is not None and refresh(x):
            rows = rows_at(x)
        if watch is not None:
            watch(x, energy)
    return _relaxed(x, rows, iterations, gradient, first, False)


def _longest(step: Floats) -> float:
    """How far the vertex goes that goes farthest."""
    return float(np.sqrt(np.max(np.einsum("ij,ij->i", step, step), initial=0.0)))


def _relaxed(x: Floats, rows: Rows, iteration: int, gradient: Floats, first: float, converged: bool) -> Relaxed:
    left = float(np.abs(gradient - rows.spread(rows.forces, len(x))).max(initial=0)) / first
    return Relaxed(x, iteration, left, converged)


def _step(
    gradient: Floats,
    z: Floats,
    model: _Model,
    rows: Rows,
    compliance: Compliance,
    solve: Callable[[Floats], Floats],
    farthest: float,
) -> Floats:
    """The step d that minimises the model of the elastic energy together with the rows; z = L⁻¹ gradient.

    A step that would go farther than `farthest` is shortened before the rows have their say.
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
    if not len(rows):
        return free
    ahead = rows.violation - rows.along(free)
    near = np.flatnonzero((ahead > 0) | (rows.violation > 0) | (rows.low < 0))
    if not len(near):
        return free
    near_rows = rows.chosen(near)
    NV = np.stack([near_rows.along(v) for v in V], axis=1) if V else np.zeros((len(near), 0))
    S = delassus(near_rows, compliance) + NV @ M @ NV.T
    push = near_rows.spread(bounded_forces(S, ahead[near], near_rows), len(gradient))
    return free + corrected(solve(push), push)


def pushed(rows: Rows, d: Floats, compliance: Compliance, solve: Callable[[Floats], Floats]) -> Floats:
    """(n, 3) what contacts add to a motion d, for a body that resists it by L."""
    ahead = rows.violation - rows.along(d)
    near = np.flatnonzero(ahead > 0)
    if not len(near):
        return np.zeros_like(d)
    some = rows.chosen(near)
    return solve(some.spread(bounded_forces(delassus(some, compliance), ahead[near], some), len(d)))


def delassus(rows: Rows, compliance: Compliance) -> Floats:
    """(m, m) N L⁻¹ Nᵀ: how far each row's point moves along its direction for a force 1 at each other's."""
    import scipy.sparse as sp

    row, slot = np.nonzero(rows.weights)
    used, local = np.unique(rows.vertices[row, slot], return_inverse=True)
    weights = sp.csr_matrix((rows.weights[row, slot], (row, local)), shape=(len(rows), len(used)))
    G = compliance.between(used, used)
    S = (weights @ (weights @ G).T) * (rows.directions @ rows.directions.T)
    return np.asarray(S + S.T) / 2


def bounded_forces(S: Floats, ahead: Floats, rows: Rows) -> Floats:
    """(m,) the λ with ``λ = clamp(ρ (ahead - S λ), low, high)``, by pivoting on which of them are clamped.

    All that are on the wrong side change it at once; if that leads nowhere three times, one at a time, which always
    ends (Júdice and Pires 1994).
    """
    from scipy.linalg import cho_factor, cho_solve

    force = np.zeros(len(rows))
    free = (rows.violation > 0) | (rows.low < 0)
    if not free.any():
        free = ahead > 0
    fewest, patience = len(rows) + 1, 3
    for _ in range(PIVOTS):
        if free.any():
            block = S[np.ix_(free, free)]
            block[np.diag_indices_from(block)] += 1 / rows.rho[free] + 1e-12 * np.trace(block) / len(block)
            right = ahead[free] - S[np.ix_(free, ~free)] @ force[~free]
            force[free] = cho_solve(cho_factor(block, lower=True, check_finite=False), right, check_finite=False)
        wish = (ahead - S @ force) * rows.rho
        wish[free] = force[free]
        clamped = np.clip(wish, rows.low, rows.high)
        inner = (wish > rows.low) & (wish < rows.high)
        wrong = np.flatnonzero((inner != free) | (~free & (clamped != force)))
        if not len(wrong):
            break
        patience = 3 if len(wrong) < fewest else patience - 1
        fewest = min(fewest, len(wrong))
        change = wrong if patience > 0 else wrong[-1:]
        free, force = free.copy(), force.copy()
        free[change], force[change] = ~free[change], clamped[change]
    return np.clip(force, rows.low, rows.high)
