"""How an elastic body gives way: its energy and that of its contacts, minimised together.

Contacts are rows (`pliant.contact.forces`). Each iteration minimises, over steps d, a quadratic model of the elastic
energy together with the rows,

    g·d + ½ dᵀ B d + Σ e(v - N d),      B⁻¹ = L⁻¹ + L-BFGS updates,

which is a problem in the rows' forces λ alone (`pliant.contact.steps`). So stiff rows cost no extra iterations,
contacts come, go and slide as they must, and the number of steps is about that of a body that touches nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from time import thread_time
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pliant.contact.body import ContactBody
from pliant.contact.coulomb import bounded
from pliant.contact.forces import LocalCompliance, Rows
from pliant.contact.inverse_hessian import InverseHessian
from pliant.contact.steps import ContactStep, Guess, LocalContactsStep, contact_step, longest, padded
from pliant.core.cancellation import check_cancelled
from pliant.core.topology import Floats, Ints
from pliant.numerics.line_search import SUFFICIENT_DECREASE

MIN_STEP_LENGTH = 1e-5
"""Share of a step below which it leads nowhere."""
CERTAIN_SHARE = 0.2
"""Share of what ends the iterations if promised twice below which once is enough."""
MODEL_ERROR_SHARE = 0.5
"""How wrong the model may have been about a step, over what ends the iterations, for no other one to be worth it."""
MAX_MEETINGS = 6
"""Times, at most, that a step is found anew because it would lead the body through itself."""
LEAST_FREE_SHARE = 1e-3
"""Of a step's path, below which the body is stuck."""
STALLED_SHARE = 30.0
"""What a step may promise, over what ends the iterations, where none helps: contacts come and go there."""
SLOW_PROGRESS = 0.3
"""By what share of its length, at least, a step should make the next one shorter."""
RELEASED = 0.1
"""Over the motion that does not matter, by how much a row must be less violated than foreseen to be gone."""
SAME_DIRECTION = 0.99
"""Cosine of the angle above which a row's direction is that of the step before."""
BALANCED = 0.1
"""Share of the force on a point that may be out of balance where its steps stay long."""
MAX_SHORT_STEPS = 20
"""Short steps one after the other, by damping alone, after which the forces will not come into balance."""


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
    blocked: bool = False
    """Whether it ended as no step is free of what the body meets, though that has rows: these are too soft."""


class Watched(Protocol):
    """What a body may touch."""

    def rows(self, x: Floats) -> Rows:
        """At a shape (n, 3)."""

    def refresh(self, x: Floats) -> bool:
        """Choose anew at a shape what rows watch; whether that is new but for rows that come last."""

    def meet(self, before: Floats, after: Floats) -> tuple[float, bool]:
        """How much of the path from one shape to another is free, and whether what the body meets of itself there is
        new, and has rows from now on, which come last."""


def minimise(
    body: ContactBody,
    rows_at: Callable[[Floats], Rows],
    x: Floats,
    model: InverseHessian,
    *,
    pressed: NDArray[np.bool_] | None = None,
    push: Floats | None = None,
    farthest: float = np.inf,
    meet: Callable[[Floats, Floats], tuple[float, bool]] | None = None,
    refresh: Callable[[Floats], bool] | None = None,
    deadline: float = np.inf,
    iterations: int = 200,
    watch: Callable[[Floats, float], None] | None = None,
) -> ContactMinimum:
    """Minimise a body's energy together with that of the rows of contact, from the points x.

    rows_at: the rows at a shape. model: what is known of the energy's curvature. pressed: (n,) the vertices that
    probably are pressed. push: (n, 3) with which forces. farthest: how far a step may move a vertex, so that rows
    still tell what it will meet. meet: how much of the path from one shape to another is free, and whether what the
    body meets of itself there is new, and has rows from now on, which come last. refresh: called with every shape that
    is reached, to choose anew what rows watch; says whether it did. deadline: of `thread_time`, after which no step is
    begun. Stops when a step promises less than the body's tolerance twice in a row, or a fifth of that once.
    """
    gradient = np.empty_like(x)
    if refresh is not None:
        refresh(x)
    energy, rows = body.energy(x, gradient), rows_at(x)
    z = body.solve(gradient)
    quiet, first = 0, max(body.largest_force(gradient - rows.spread(rows.forces, len(x))), 1e-300)
    pushing, forces = None if pressed is None else pressed[rows.vertices[:, 0]], rows.forces
    guess = Guess(pushing, None if push is None else rows.forces_of(push))

    def outcome(iteration: int, converged: bool) -> ContactMinimum:
        residual = body.largest_force(gradient - rows.spread(forces, len(x))) / first
        return ContactMinimum(x, model, rows, forces, iteration, residual, converged)

    for iteration in range(iterations):
        check_cancelled()
        if thread_time() > deadline:
            return outcome(iteration, False)
        move = contact_step(body, gradient, z, model, rows, guess)
        promised = move.promised(gradient)
        rows, forces = move.rows, move.foreseen_forces
        if not promised <= 0 and model.steps:  # what is remembered does not fit here
            model = InverseHessian()
            continue
        enough = body.tolerance()
        quiet = (
            quiet + (2 if 0 <= -promised < CERTAIN_SHARE * enough else 1) if move.exact and -promised < enough else 0
        )
        if quiet >= 2:
            return outcome(iteration, True)
        anew = partial(contact_step, body, gradient, z, model)
        move, guess, length = _unobstructed(anew, rows_at, x, move, guess, farthest, meet)
        step, promised, before = move.step(), move.promised(gradient), gradient.copy()
        rows = move.rows if meet is None else rows_at(x).bounded_as(move.rows)
        forces = padded(move.foreseen_forces, len(rows))
        total = energy + rows.energy
        reached = _line_search(body, rows_at, x, step, length, gradient, rows, total, promised)
        # No step helps: rounding, or a kink that the rows did not foresee.
        if reached.energy + reached.rows.energy > total or reached.length < MIN_STEP_LENGTH:
            energy = body.energy(x, gradient)
            if not model.steps:
                stalled = move.exact and abs(promised) < STALLED_SHARE * body.tolerance()
                return replace(outcome(iteration, stalled), blocked=length < MIN_STEP_LENGTH)
            model, z = InverseHessian(), body.solve(gradient)
            continue
        start, x, energy, rows = x, reached.x, reached.energy, reached.rows
        # What the model of the energy got wrong bounds what another step could still gain.
        wrong = abs(total - energy - rows.energy + promised)
        if move.exact and reached.length == 1 and wrong < MODEL_ERROR_SHARE * enough:
            return outcome(iteration + 1, True)
        solved = body.solve(gradient)
        model.add(x - start, gradient - before, solved - z)
        z, guess = solved, move.guess
        if refresh is not None and refresh(x):
            push, rows = rows.pushed(move.forces, len(x)), rows_at(x)
            guess = Guess(None, rows.forces_of(push))
        elif meet is not None:
            rows = rows_at(x)
            guess = guess.longer(len(rows))
        forces = rows.forces
        if watch is not None:
            watch(x, energy)
    return outcome(iterations, False)


def settle(
    body: ContactBody,
    compliance: LocalCompliance,
    watched: Watched,
    x: Floats,
    *,
    forces: Floats | None = None,
    farthest: float = np.inf,
    deadline: float = np.inf,
    iterations: int = 200,
) -> ContactMinimum:
    """The same for a body whose points give way each by itself, exactly by L: only the rows change from step to step.

    watched: what rows there are. forces: about those of the first rows. It ends when a damped step is shorter than
    `compliance.settled`, and the whole step is, too, or forces are in balance.
    """
    watched.refresh(x)
    rows, gradient, last, damping = watched.rows(x), np.empty_like(x), np.inf, 1.0
    forces = padded(forces, len(rows)) if forces is not None and len(forces) <= len(rows) else None
    alternating = none = _AlternatingRows.none()
    short = 0
    for iteration in range(iterations):
        check_cancelled()
        for k in range(MAX_MEETINGS + 1):
            guess = None if forces is None else np.concatenate([padded(forces, len(rows)), alternating.forces])
            move = LocalContactsStep(
                body, compliance, Rows.joined([rows, alternating.rows]), body.free - x, guess=guess
            )
            step = move.step()
            far = longest(step)
            # Rows that take turns come to rest; what is met beyond where the step ends does not matter yet.
            slow = iteration > 0 and far > (1 - SLOW_PROGRESS * damping) * last
            slower = 0.5 * damping if slow else min(1.5 * damping, 1.0)
            length = min(slower, farthest / max(far, 1e-300))
            share, new = watched.meet(x, x + length * step)
            if not new or k == MAX_MEETINGS:
                break
            forces, rows = move.forces[: len(rows)], watched.rows(x)
        last, damping, x, before = far, slower, x + share * length * step, rows
        short = short + 1 if share == 1 and length * far < compliance.settled else 0
        # Of each point: what is quiet elsewhere does not make up for one that is not.
        moved, away = (np.linalg.norm(of, axis=1) for of in (step, x - body.free))
        balanced = (moved < compliance.settled) | ((1 - share * length) * moved <= BALANCED * away)
        ends = bool(short and balanced.all())
        if (
            ends
            or short == MAX_SHORT_STEPS
            or share < LEAST_FREE_SHARE
            or thread_time() > deadline
            or iteration + 1 == iterations
        ):
            break
        if watched.refresh(x):
            push, rows = move.rows.pushed(move.forces, len(x)), watched.rows(x)
            forces, alternating = rows.forces_of(push), none
        else:
            forces, rows = move.forces[: len(rows)], watched.rows(x)
            foreseen = replace(move.rows, violation=move.rows.violation - share * length * move.rows.along(step))
            if damping < 1 or len(alternating.rows):
                alternating = alternating.after(foreseen, move.forces, rows, RELEASED * compliance.settled)
    body.energy(x, gradient)
    residual = body.largest_force(gradient - move.rows.spread(move.forces, len(x)))
    residual /= max(body.largest_force(gradient), 1e-300)
    forces = alternating.joined(move.forces, len(before))
    exact = ends and move.exact
    return ContactMinimum(x, InverseHessian(), bounded(before, forces), forces, iteration + 1, residual, exact)


@dataclass(frozen=True, eq=False)
class _AlternatingRows:
    """Rows that pushed a step ago and would be gone, as was foreseen then.

    Where a body is pressed into a corner of what it meets, each step would see one of its sides only, in turn.
    """

    rows: Rows
    forces: Floats
    origin: Ints
    """Of which of the present rows each is an earlier state."""

    @classmethod
    def none(cls) -> _AlternatingRows:
        return cls(Rows.none(), np.zeros(0), np.zeros(0, np.int64))

    def after(self, foreseen: Rows, forces: Floats, rows: Rows, least: float) -> _AlternatingRows:
        """After a step.

        foreseen: the rows of the step and these, as it foresaw them. forces: that it found. rows: what there is now.
        least: violation by which a row must be less than foreseen to be gone.
        """
        count = len(foreseen) - len(self.rows)
        which = (forces > 0) & foreseen.is_contact
        rotated = np.einsum("mj,mj->m", foreseen.directions[:count], rows.directions[:count]) < SAME_DIRECTION
        which[:count] &= rotated | (foreseen.violation[:count] > rows.violation[:count] + least)
        origin = np.concatenate([np.arange(count), self.origin])
        return _AlternatingRows(foreseen.only(which), forces[which], origin[which])

    def joined(self, forces: Floats, count: int) -> Floats:
        """(count,) the forces of the present rows, with those of their earlier states, which come last."""
        out = forces[:count].copy()
        np.add.at(out, self.origin, forces[count:])
        return out


def _unobstructed(
    found: Callable[[Rows, Guess], ContactStep],
    rows_at: Callable[[Floats], Rows],
    x: Floats,
    move: ContactStep,
    guess: Guess,
    farthest: float,
    meet: Callable[[Floats, Floats], tuple[float, bool]] | None,
) -> tuple[ContactStep, Guess, float]:
    """A step, found anew with what it would meet, its guess, and the share of it that is free and not too far."""
    for k in range(MAX_MEETINGS + 1):
        length = min(1.0, farthest / max(longest(move.step()), 1e-300))
        share, new = (1.0, False) if meet is None else meet(x, x + length * move.step())
        if not new or k == MAX_MEETINGS:
            break
        rows = rows_at(x)
        guess = guess.longer(len(rows))
        move = found(rows, guess)
    return move, guess, share * length


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
