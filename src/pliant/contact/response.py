"""How an elastic body gives way: its energy and that of its contacts, minimised together.

Contacts are rows (`pliant.contact.forces`). Each iteration minimises, over steps d, a quadratic model of the elastic
energy together with the rows,

    g·d + ½ dᵀ B d + Σ e(v - N d),      B⁻¹ = L⁻¹ + L-BFGS updates,

which in the rows' forces λ is a small dense problem. So stiff rows cost no extra iterations, contacts come, go and
slide as they must, and the number of steps is about that of a body that touches nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import thread_time

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pliant.contact.body import ContactBody
from pliant.contact.forces import Answers, Compliance, Rows, coulomb_forces
from pliant.core.topology import Floats
from pliant.numerics.linalg import dot
from pliant.numerics.line_search import SUFFICIENT_DECREASE

LBFGS_PAIRS = 8
"""Pairs of steps that the model of the elastic energy remembers."""
MAX_CURVATURE_RATIO = 3.0
"""Curvature along a step, over L's, above which it is rounding or a kink: springs are not stiffer than L."""
MIN_STEP_LENGTH = 1e-5
"""Share of a step below which it leads nowhere."""
CERTAIN_SHARE = 0.2
"""Share of what ends the iterations if promised twice below which once is enough."""
MODEL_ERROR_SHARE = 0.5
"""How wrong the model may have been about a step, over what ends the iterations, for no other one to be worth it."""
STALLED_SHARE = 30.0
"""What a step may promise, over what ends the iterations, where none helps: contacts come and go there."""
FIRST_CONTACT_SHARE = 0.01
"""Distance, over the deepest that a step would lead without contact, of points that are taken to touch at first."""
MAX_ACTIVE_ROWS = 1500
"""Rows that have their say in one step, the deepest ones: the others do in the steps after it."""
MAX_ADDITIONS = 4
"""Times, at most, that rows are added to a step that they were not near to."""


@dataclass
class InverseHessian:
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

    def copy(self) -> InverseHessian:
        """The same, to which pairs can be added."""
        return replace(self, steps=[*self.steps], changes=[*self.changes], solved=[*self.solved])

    def add(self, step: Floats, change: Floats, solved: Floats) -> None:
        """Remember a pair, unless the energy bends the wrong way along it."""
        curvature, softness = dot(step, change), dot(change, solved)
        if not MAX_CURVATURE_RATIO * curvature > softness:
            return
        cross = np.array([dot(change, z) for z in self.solved])
        self.SY = _bordered(
            self.SY, np.array([dot(s, change) for s in self.steps]), [dot(step, y) for y in self.changes], curvature
        )
        self.YZ = _bordered(self.YZ, cross, cross, softness)
        for kept, new in ((self.steps, step), (self.changes, change), (self.solved, solved)):
            kept.append(new)
            del kept[:-LBFGS_PAIRS]

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
    return out[-LBFGS_PAIRS:, -LBFGS_PAIRS:]


@dataclass
class ContactMinimum:
    """Where the minimisation got to."""

    x: Floats
    model: InverseHessian
    rows: Rows
    forces: Floats
    """(m,) of the rows at x, as the last step foresaw them: stiff rows tell them only roughly by their violation."""
    iterations: int
    residual: float
    converged: bool


def minimise(
    body: ContactBody,
    rows_at: Callable[[Floats], Rows],
    x: Floats,
    model: InverseHessian,
    *,
    pressed: NDArray[np.bool_] | None = None,
    farthest: float = np.inf,
    free_share: Callable[[Floats, Floats], float] | None = None,
    refresh: Callable[[Floats], bool] | None = None,
    deadline: float = np.inf,
    iterations: int = 200,
    watch: Callable[[Floats, float], None] | None = None,
) -> ContactMinimum:
    """Minimise a body's energy together with that of the rows of contact, from the points x.

    rows_at: the rows at a shape. model: what is known of the energy's curvature. pressed: (n,) the vertices that
    probably are pressed. farthest: how far a step may move a vertex, so that rows still tell what it will meet.
    free_share: how much of the path from one shape to another is free. refresh: called with every shape that is
    reached, to choose anew what rows watch; says whether it did. deadline: of `thread_time`, after which no step is
    begun. Stops when a step promises less than the body's tolerance twice in a row, or a fifth of that once.
    """
    gradient = np.empty_like(x)
    if refresh is not None:
        refresh(x)
    energy, rows = body.energy(x, gradient), rows_at(x)
    z = body.solve(gradient)
    quiet, first = 0, max(body.largest_force(gradient - rows.spread(rows.forces, len(x))), 1e-300)
    pushing, forces = None if pressed is None else pressed[rows.vertices[:, 0]], rows.forces

    def outcome(iteration: int, converged: bool) -> ContactMinimum:
        residual = body.largest_force(gradient - rows.spread(forces, len(x))) / first
        return ContactMinimum(x, model, rows, forces, iteration, residual, converged)

    for iteration in range(iterations):
        if thread_time() > deadline:
            return outcome(iteration, False)
        move = _contact_step(gradient, z, model, rows, pushing, body.compliance, farthest)
        promised = move.promised(gradient, body.solve)
        rows, forces = move.rows, move.rows.forces_at(move.foreseen)
        if not promised <= 0 and model.steps:  # what is remembered does not fit here
            model = InverseHessian()
            continue
        enough = body.tolerance()
        quiet = quiet + (2 if 0 <= -promised < CERTAIN_SHARE * enough else 1) if -promised < enough else 0
        if quiet >= 2:
            return outcome(iteration, True)
        step = move.step(body.solve)
        promised = move.promised(gradient, body.solve)
        rows, forces = move.rows, move.rows.forces_at(move.foreseen)
        before, length = gradient.copy(), min(1.0, 2 * farthest / max(_longest(step), 1e-300))
        if free_share is not None:
            length *= free_share(x, x + length * step)
        total = energy + rows.energy
        reached = _line_search(body, rows_at, x, step, length, gradient, rows, total, promised)
        # No step helps: rounding, or a kink that the rows did not foresee.
        if reached.energy + reached.rows.energy > total or reached.length < MIN_STEP_LENGTH:
            energy = body.energy(x, gradient)
            if not model.steps:
                return outcome(iteration, -promised < STALLED_SHARE * body.tolerance())
            model, z = InverseHessian(), body.solve(gradient)
            continue
        start, x, energy, rows = x, reached.x, reached.energy, reached.rows
        # What the model of the energy got wrong bounds what another step could still gain.
        wrong = abs(total - energy - rows.energy + promised)
        if reached.length == move.share == 1 and wrong < MODEL_ERROR_SHARE * enough:
            return outcome(iteration + 1, True)
        solved = body.solve(gradient)
        model.add(x - start, gradient - before, solved - z)
        z, pushing = solved, move.pushing
        if refresh is not None and refresh(x):
            rows, pushing = rows_at(x), None
        forces = rows.forces
        if watch is not None:
            watch(x, energy)
    return outcome(iterations, False)


@dataclass(frozen=True, eq=False)
class _Reached:
    """Where a line search got to."""

    x: Floats
    energy: float
    rows: Rows
    length: float
    """Share of the step."""


def _line_search(
    body: ContactBody,
    rows_at: Callable[[Floats], Rows],
    x: Floats,
    step: Floats,
    length: float,
    gradient: Floats,
    rows: Rows,
    total: float,
    promised: float,
) -> _Reached:
    """A share of a step, at most `length`, that brings enough of what was promised.

    rows: at x, whose bounds stay. total: energy at x, with the rows'. gradient: takes the one where it leads.
    """
    while True:
        there = x + length * step
        reached = _Reached(there, body.energy(there, gradient), rows_at(there).bounded_as(rows), length)
        enough = total + SUFFICIENT_DECREASE * length * promised
        if reached.energy + reached.rows.energy <= enough or length < MIN_STEP_LENGTH:
            return reached
        length *= 0.5


def _longest(step: Floats) -> float:
    """How far the vertex goes that goes farthest."""
    return float(np.sqrt(np.max(np.einsum("ij,ij->i", step, step), initial=0.0)))


def _contact_step(
    gradient: Floats,
    z: Floats,
    model: InverseHessian,
    rows: Rows,
    pushing: NDArray[np.bool_] | None,
    compliance: Compliance,
    farthest: float,
) -> ContactStep:
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
    share = min(1.0, farthest / max(_longest(free), 1e-300))
    free *= share
    return ContactStep(rows, free, pushing, lambda near: Answers(near, compliance, V, M), corrected, share)


def deflected(rows: Rows, d: Floats, body: ContactBody) -> Floats:
    """(n, 3) what a motion d becomes by contacts, for a body that resists by L."""
    answers_of = lambda near: Answers(near, body.compliance)  # noqa: E731
    return ContactStep(rows, d, None, answers_of, lambda solved, of: solved).step(body.solve)


class ContactStep:
    """A motion d (n, 3) and the forces by which rows answer it; what these add to the motion is found when asked for.

    corrected: from L⁻¹ of forces, and the forces, to the motion they bring about. share: of the free motion, which d
    is. foreseen: (m,) violations after it: at first of the rows that are near, and of all once the step is found.
    """

    def __init__(
        self,
        rows: Rows,
        d: Floats,
        pushing: NDArray[np.bool_] | None,
        answers_of: Callable[[Rows], Answers],
        corrected: Callable[[Floats, Floats], Floats],
        share: float = 1.0,
    ) -> None:
        self.rows, self.d, self.share = rows, d, share
        self._answers_of, self._corrected = answers_of, corrected
        self._step: Floats | None = None
        self._ahead = ahead = rows.violation - rows.along(d)
        deepest = float(ahead.max(initial=0.0))
        # The body is pushed back about as far as it would go too far; what else that leads too far has its say after.
        contact, (pairs, bounding) = rows.is_contact, rows.friction_pairs
        near = contact & ((ahead > -deepest) | (rows.violation > 0))
        near[bounding] = True
        if near.sum() > MAX_ACTIVE_ROWS:
            near &= ahead >= np.partition(ahead[near], -MAX_ACTIVE_ROWS)[-MAX_ACTIVE_ROWS]
        near[pairs] = near[bounding][:, None]
        self.pushing = np.zeros(len(rows), dtype=bool)
        self._near, self._complete = near, not (contact & ~near & (ahead > 0)).any()  # too many rows are not all asked
        self._guess = rows.violation > -FIRST_CONTACT_SHARE * deepest if pushing is None else pushing
        self._answer()

    def _answer(self) -> None:
        """Find the forces of the rows that are near, and where they are then."""
        near, self.forces, self.foreseen = self._near, np.zeros(len(self.rows)), self._ahead.copy()
        if near.any():
            answers = self._answers_of(self.rows.chosen(near))
            self.forces[near], some = coulomb_forces(answers, self._ahead[near], self._guess[near])
            self.foreseen[near] -= answers.to(self.forces[near])
            low, high = self.rows.low.copy(), self.rows.high.copy()
            low[near], high[near] = some.low, some.high
            self.rows = replace(self.rows, low=low, high=high)
            self.pushing = (self.forces > low) & (self.forces < high)

    def step(self, solve: Callable[[Floats], Floats]) -> Floats:
        """(n, 3) the motion with what the forces add to it; solve: L⁻¹ of vectors (n, 3)."""
        if self._step is None:
            self._step = self._found(solve) if self._near.any() else self.d
            self.foreseen = self.rows.violation - self.rows.along(self._step)
        return self._step

    def promised(self, gradient: Floats, solve: Callable[[Floats], Floats]) -> float:
        """How the energy changes along the step, with `gradient` at its start; found without the step where it can be.

        With forces λ the step is d + B⁻¹ Nᵀ λ, and g·B⁻¹ Nᵀ λ = -λ·N d / share, as d = -share B⁻¹ g.
        """
        if self._step is None and self._complete:
            work = dot(gradient, self.d) - float(self.forces @ self.rows.along(self.d)) / self.share
        else:
            work = dot(gradient, self.step(solve))
        return work + self.rows.energy_at(self.foreseen) - self.rows.energy

    def _found(self, solve: Callable[[Floats], Floats]) -> Floats:
        for k in range(MAX_ADDITIONS):
            push = self.rows.spread(self.forces, len(self.d))
            answered = self.d + self._corrected(solve(push), push)
            late = ~self._near & self.rows.is_contact & (self.rows.violation - self.rows.along(answered) > 0)
            if k + 1 == MAX_ADDITIONS or not late.any() or self._near.sum() + late.sum() > MAX_ACTIVE_ROWS:
                break
            self._near |= late
            self._answer()
        return answered
