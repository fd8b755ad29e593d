"""One step of a body in contact: the motion that minimises a quadratic model of its energy together with its rows.

Few contacts without friction are solved exactly, by pivoting on dense factorisations (`bounded_forces`); many, and
those with friction, by Newton's method and conjugate gradients (`coulomb_forces`), which multiply with S alone. Where
vertices give way each by itself, S is sparse: contacts are found by projected conjugate gradients, and by Newton's
method or sweeps where these take too many; friction in sweeps alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pliant.contact.body import ContactBody
from pliant.contact.coulomb import bounded, coulomb_forces, in_cone, swept_coulomb_forces
from pliant.contact.forces import (
    Answers,
    Compliance,
    LocalCompliance,
    Rows,
    bounded_forces,
)
from pliant.contact.inverse_hessian import InverseHessian
from pliant.core.topology import Floats
from pliant.native import kernels
from pliant.numerics.linalg import dot

FIRST_CONTACT_SHARE = 0.01
"""Distance, over the deepest that a step would lead without contact, of points that are taken to touch at first."""
MAX_ACTIVE_ROWS = 1500
"""Rows that have their say in one step by pivoting, the deepest ones, or all that are guessed to push if they are more;
others do in the steps after it.
"""
NEAR_SHARE = 0.2
"""Distance, over the deepest that a step with forces as guessed would lead, of points that may touch: others are added.
"""
MAX_ADDITIONS = 4
"""Times, at most, that rows are added to a step that they were not near to."""
MAX_SWEPT_CONTACTS, MAX_SWEPT_VERTICES = 300, 500
"""Contacts that may act, up to which sweeps over dense answers are quicker than conjugate gradients; the vertices of
contacts that are redundant, where these take long.
"""
MAX_PIVOTED_ROWS = 1000
"""Rows above which pivoting takes longer than conjugate gradients."""
REDUNDANCY = 1.5
"""Rows over vertices above which forces are all but undetermined, and take many conjugate gradients."""
MAX_PRODUCTS = 5000
"""Of projected conjugate gradients, where vertices give way each by itself."""
MAX_SWEEPS = 1000
"""Over all rows, where vertices give way each by itself."""
SHARED_WEIGHT = 1e-6
"""Product of two rows' weights and directions below which they have nothing to do with each other."""
MAX_DENSE_VERTICES = 2500
"""Vertices above which sparse solves are quicker than products with the dense L⁻¹ between them."""
GAP_SHARE, GAP_RELATIVE, GAP_OF_MARCH = 0.05, 1e-3, 1e-4
"""Energy that a step may lead to above the least: over the body's tolerance, and over what the step promises; over what
the rows would have without forces, where there is no energy to be lowered.
"""


@dataclass(frozen=True, eq=False)
class Guess:
    """What is known of a step before it is found."""

    pushing: NDArray[np.bool_] | None = None
    """(m,) rows that probably push."""
    forces: Floats | None = None
    """(m,) of the rows, about."""
    answer: Floats | None = None
    """(n, 3) the motion that these bring about, about."""

    def longer(self, count: int) -> Guess:
        """The same for more rows, which come last."""
        pushing, forces = (None if known is None else padded(known, count) for known in (self.pushing, self.forces))
        return Guess(pushing, forces, self.answer)


def padded(known: NDArray[Any], count: int) -> NDArray[Any]:
    """(count,) with zeros after what is known."""
    return np.concatenate([known, np.zeros(count - len(known), known.dtype)])


def contact_step(
    body: ContactBody,
    gradient: Floats,
    z: Floats,
    model: InverseHessian,
    rows: Rows,
    guess: Guess,
) -> ContactStep:
    """The step d that minimises the model of the elastic energy together with the rows; z = L⁻¹ gradient."""
    free = -_corrected(model, z, gradient)
    if guess.answer is None and guess.forces is not None and guess.forces.any():
        push = rows.spread(guess.forces, len(free))
        guess = replace(guess, answer=_corrected(model, body.solve(push), push))
    if isinstance(body.compliance, LocalCompliance):
        return LocalContactsStep(body, body.compliance, rows, free, guess.forces)
    if _are_many(rows, free):
        return ManyContactsStep(body, model, rows, free, guess, gradient)
    few = FewContactsStep(body, model, rows, free, guess)
    return few if few.exact else ManyContactsStep(body, model, rows, free, guess, gradient)


def deflected(rows: Rows, d: Floats, body: ContactBody) -> Floats:
    """(n, 3) what a motion d becomes by contacts, for a body that resists by L."""
    if isinstance(body.compliance, LocalCompliance):
        return LocalContactsStep(body, body.compliance, rows, d).step()
    if _are_many(rows, d):
        return ManyContactsStep(body, InverseHessian(), rows, d).step()
    few = FewContactsStep(body, InverseHessian(), rows, d)
    return few.step() if few.exact else ManyContactsStep(body, InverseHessian(), rows, d).step()


def longest(step: Floats) -> float:
    """How far the vertex goes that goes farthest."""
    return float(np.sqrt(np.max(np.einsum("ij,ij->i", step, step), initial=0.0)))


def _corrected(model: InverseHessian, solved: Floats, of: Floats) -> Floats:
    """B⁻¹ of a vector whose L⁻¹ is known."""
    V = model.V
    out = solved.copy()
    if V:
        for factor, v in zip(model.M @ np.array([dot(v, of) for v in V]), V, strict=True):
            out += factor * v
    return out


def _are_many(rows: Rows, d: Floats) -> bool:
    """Whether pivoting on what a motion d leads to would take long."""
    if not rows.is_contact.all():
        return True
    ahead = (rows.violation > 0) | (rows.violation > rows.along(d))
    count = np.count_nonzero(ahead)
    return bool(count > MAX_PIVOTED_ROWS and count < REDUNDANCY * len(rows.chosen(ahead).used))


class ContactStep:
    """A motion d (n, 3) and the forces by which rows answer it; what these add to the motion is found when asked for.

    foreseen: (m,) violations after it: at first of the rows that are near, and of all once the step is found.
    """

    forces: Floats
    """(m,)"""
    pushing: NDArray[np.bool_] | None = None
    """(m,) rows that push, and are not at another bound."""
    exact = True
    """Whether the forces are those that minimise the model."""

    def __init__(self, body: ContactBody, model: InverseHessian, rows: Rows, d: Floats) -> None:
        self.rows, self.d = rows, d
        self._body, self._model = body, model
        self._step: Floats | None = None
        self._moved = rows.along(d)
        self._ahead = rows.violation - self._moved
        self.foreseen = self._ahead.copy()
        self._near = np.zeros(len(rows), bool)

    @property
    def foreseen_forces(self) -> Floats:
        """(m,) the forces after the step."""
        return self.rows.forces_at(self.foreseen)

    @property
    def guess(self) -> Guess:
        """For the step after it."""
        return Guess(self.pushing, self.forces, self.step() - self.d)

    def _find(self) -> None:
        """Find the forces of the rows that are near, and where they are then."""
        raise NotImplementedError

    def _answer(self, forces: Floats) -> Floats:
        """(n, 3) the motion that forces (m,) bring about."""
        push = self.rows.spread(forces, len(self.d))
        return _corrected(self._model, self._body.solve(push), push)

    def step(self) -> Floats:
        """(n, 3) the motion with what the forces add to it."""
        if self._step is None:
            self._step = self._found() if self._near.any() else self.d
            self.foreseen = self.rows.violation - self.rows.along(self._step)
        return self._step

    def _found(self) -> Floats:
        for k in range(MAX_ADDITIONS):
            answered = self.d + self._answer(self.forces)
            late = ~self._near & self.rows.is_contact & (self.rows.violation - self.rows.along(answered) > 0)
            if k + 1 == MAX_ADDITIONS or not late.any():
                break
            self._add(late)
            self._find()
        self.exact = self.exact and not late.any()
        return answered

    def _add(self, late: NDArray[np.bool_]) -> None:
        """Rows (m,) that the step would lead too far have their say."""
        self._near |= late

    def _is_complete(self) -> bool:
        """Whether no row that is not near would have its say."""
        return True

    def promised(self, gradient: Floats) -> float:
        """How the energy changes along the step, with `gradient` at its start; found without the step where it can be.

        With forces λ the step is d + B⁻¹ Nᵀ λ, and g·B⁻¹ Nᵀ λ = -λ·N d, as d = -B⁻¹ g.
        """
        if self._step is None and self._is_complete():
            work = dot(gradient, self.d) - float(self.forces @ self._moved)
        else:
            work = dot(gradient, self.step())
        return work + self.rows.energy_at(self.foreseen) - self.rows.energy


class LocalContactsStep(ContactStep):
    """The forces on a body whose vertices give way each by itself. guess: (m,) at the forces."""

    def __init__(
        self,
        body: ContactBody,
        compliance: LocalCompliance,
        rows: Rows,
        d: Floats,
        guess: Floats | None = None,
    ) -> None:
        super().__init__(body, InverseHessian(), rows, d)
        self.forces, moved = np.zeros(len(rows)) if guess is None else in_cone(rows, guess), np.zeros_like(d)
        pairs, bounding = rows.friction_pairs
        given = (rows.vertices, rows.weights, rows.directions), rows.rho, self._ahead
        soft, enough = compliance.softness, compliance.resolution
        self.exact = not len(pairs) and (
            kernels.contact_projected_gradients(given, soft, enough, MAX_PRODUCTS, self.forces, moved)
            or kernels.contact_newton(given, soft, enough, self.forces, moved)
        )
        if not self.exact:
            moved[:] = 0.0
            sweeps = kernels.contact_sweeps(
                given, pairs, bounding, rows.friction[pairs[:, 0]], soft, enough, MAX_SWEEPS, self.forces, moved
            )
            self.exact = sweeps <= MAX_SWEEPS
        self.rows = bounded(rows, self.forces)
        self.pushing, self._step = self.forces > 0, d + moved
        self.foreseen = rows.violation - rows.along(self._step)

    @property
    def foreseen_forces(self) -> Floats:
        """(m,) the forces after the step, as they were found."""
        return self.forces

    @property
    def acting(self) -> NDArray[np.bool_]:
        """(m,) contacts that push, and friction that sticks: rows whose points do not move."""
        acting, (pairs, _) = (self.forces > 0) & self.rows.is_contact, self.rows.friction_pairs
        size, limit = np.linalg.norm(self.forces[pairs], axis=1), self.rows.high[pairs[:, 0]]
        acting[pairs] = ((size < limit) & (limit > 0))[:, None]
        return acting


def _compliance(body: ContactBody) -> Compliance:
    """Of a body whose vertices give way together."""
    assert isinstance(body.compliance, Compliance)
    return body.compliance


class FewContactsStep(ContactStep):
    """The forces by pivoting."""

    def __init__(
        self,
        body: ContactBody,
        model: InverseHessian,
        rows: Rows,
        d: Floats,
        guess: Guess | None = None,
    ) -> None:
        super().__init__(body, model, rows, d)
        guess, ahead, deepest = guess or Guess(), self._ahead, float(self._ahead.max(initial=0.0))
        # The body is pushed back about as far as it would go too far; what else that leads too far has its say after.
        near = (ahead > -deepest) | (rows.violation > 0)
        if near.sum() > MAX_ACTIVE_ROWS:  # with those that push by the guess, the ones that it would lead the farthest
            rank = ahead if guess.answer is None else ahead - rows.along(guess.answer)
            if guess.forces is not None:
                rank = np.where(guess.forces > 0, np.inf, rank)
            near &= rank >= np.partition(rank[near], -MAX_ACTIVE_ROWS)[-MAX_ACTIVE_ROWS]
        self._near = near
        self._guess = rows.violation > -FIRST_CONTACT_SHARE * deepest if guess.pushing is None else guess.pushing
        self._find()

    def _find(self) -> None:
        near, self.forces, self.foreseen = self._near, np.zeros(len(self.rows)), self._ahead.copy()
        if near.any():
            answers = Answers(self.rows.chosen(near), _compliance(self._body), self._model.V, self._model.M)
            self.forces[near], self.exact = bounded_forces(answers, self._ahead[near], self._guess[near])
            self.foreseen[near] -= answers.to(self.forces[near])
        self.pushing = self.forces > 0

    def _add(self, late: NDArray[np.bool_]) -> None:
        """For rows that are far from pushing, if there are too many."""
        self._near |= late
        if self._near.sum() > MAX_ACTIVE_ROWS:
            rank = np.where(self._near, np.where((self.forces > 0) | late, np.inf, self.foreseen), -np.inf)
            self._near &= rank >= np.partition(rank, -MAX_ACTIVE_ROWS)[-MAX_ACTIVE_ROWS]

    def _is_complete(self) -> bool:
        return not (~self._near & (self._ahead > 0)).any()


class ManyContactsStep(ContactStep):
    """The forces by conjugate gradients. gradient: (n, 3) of the energy, if d lowers one."""

    def __init__(
        self,
        body: ContactBody,
        model: InverseHessian,
        rows: Rows,
        d: Floats,
        guess: Guess | None = None,
        gradient: Floats | None = None,
    ) -> None:
        super().__init__(body, model, rows, d)
        guess = guess or Guess()
        self.forces = np.zeros(len(rows)) if guess.forces is None else guess.forces.copy()
        self._work = None if gradient is None else dot(gradient, d)
        ahead = self._ahead if guess.answer is None else self._ahead - rows.along(guess.answer)
        near = (ahead > -NEAR_SHARE * ahead.max(initial=0.0)) | (self.forces > 0)
        self._near = rows.is_contact & near
        self._find()

    @property
    def foreseen_forces(self) -> Floats:
        """(m,) the forces after the step: within Coulomb's cone, as they were found."""
        return self.forces

    def _find(self) -> None:
        near, self.foreseen = self._near, np.minimum(self._ahead, 0.0)  # what is not near has no say yet
        pairs, bounding = self.rows.friction_pairs
        near[pairs] = near[bounding][:, None]
        self.forces[~near] = 0
        if not near.any():
            return
        rows = self.rows.chosen(near)
        ahead, forces = self._ahead[near], self.forces[near]
        acting = rows.only(rows.is_contact & ((ahead > 0) | (forces > 0)))
        few = len(acting) <= MAX_SWEPT_CONTACTS
        redundant = len(acting) > REDUNDANCY * len(acting.used) and len(acting.used) <= MAX_SWEPT_VERTICES
        answers: Answers | SpreadAnswers
        if few or redundant:
            answers = Answers(rows, _compliance(self._body), self._model.V, self._model.M)
            found, bounds, self.exact = swept_coulomb_forces(answers, ahead, forces, self._is_enough)
        else:
            answers = SpreadAnswers(rows, self._body, self._model)
            found, bounds, self.exact = coulomb_forces(answers, ahead, forces, self._is_enough)
        low, high = self.rows.low.copy(), self.rows.high.copy()
        low[near], high[near] = bounds.low, bounds.high
        self.rows, self.forces[near] = replace(self.rows, low=low, high=high), found
        self.foreseen[near] = ahead - answers.to(found)

    def _is_enough(self, rows: Rows, forces: Floats, violation: Floats, gap: float) -> bool:
        """Whether forces of the rows that are near are exact enough, which may lead to too much energy by `gap`."""
        if self._work is None:
            return gap <= GAP_OF_MARCH * rows.energy_at(self._ahead[self._near])
        work = self._work - float(forces @ self._moved[self._near])
        promised = work + rows.energy_at(violation) - rows.energy
        return gap <= max(GAP_SHARE * self._body.tolerance(), GAP_RELATIVE * abs(promised))


class SpreadAnswers:
    """S = N B⁻¹ Nᵀ as a product (`pliant.contact.coulomb.Response`): forces are spread to vertices, which L⁻¹ moves.

    L⁻¹ is dense between the rows' vertices, if these are not too many. About S⁻¹ are the forces by which these vertices
    resist a motion if no other vertex moves (the lumped preconditioner of FETI; Farhat and Roux 1991),

        A (N L Nᵀ + k δ) A,    A = (N Nᵀ + δ)⁻¹,    δ = k / ρ,

    with k the stiffness of rows' points. Rows that share vertices with others are all but dependent; then A is no
    diagonal, and rows' own compliance decides.
    """

    def __init__(self, rows: Rows, body: ContactBody, model: InverseHessian) -> None:
        used = rows.used
        NV = np.array([rows.along(v) for v in model.V]).reshape(len(model.V), len(rows))
        self._NV, self._MNV = NV, model.M @ NV if len(NV) else NV
        scale = np.maximum(np.einsum("mk,mk->m", rows.weights, rows.weights), 1e-300)
        self.rows, self.stiffness = rows, body.stiffness[rows.vertices[:, 0]] / scale
        self._delta = body.stiffness[rows.vertices[:, 0]] / rows.rho
        self._diagonal = scale + self._delta
        self._resist: Callable[[Floats], Floats] = body.resist
        self._local, self._solve, self._count = rows, body.solve, len(body.free)
        if len(used) <= MAX_DENSE_VERTICES:
            block = _compliance(body).block(used)
            self._local = replace(rows, vertices=np.where(rows.weights != 0, block.index[rows.vertices], 0))
            self._solve, self._resist, self._count = block.solve, block.resist, block.count
        self.softness, self._gram = self._summed(), self._overlap()

    def _summed(self) -> Floats:
        """(m,) how far each row's point moves by a force 1 at every contact, about: L⁻¹ is positive."""
        rows, every = self._local, np.zeros((self._count, 3))
        np.add.at(every, rows.vertices[rows.is_contact], np.abs(rows.weights[rows.is_contact])[..., None])
        answer = self._solve(every)[:, 0]
        return np.maximum(np.einsum("mk,mk->m", np.abs(rows.weights), answer[rows.vertices]), 1 / self.stiffness)

    def _overlap(self) -> Any:
        """(m, m) sparse: N Nᵀ + δ, if rows share vertices along directions that are not orthogonal; else None."""
        rows, contacts = self._local, self._local.is_contact
        if np.bincount(rows.vertices[contacts][rows.weights[contacts] != 0]).max(initial=0) < 2:
            return None
        columns = (3 * rows.vertices[:, :, None] + np.arange(3)).reshape(len(rows), 12)
        values = (rows.weights[:, :, None] * rows.directions[:, None]).reshape(len(rows), 12)
        N = sp.csr_matrix(
            (values.ravel(), columns.ravel(), 12 * np.arange(len(rows) + 1)), (len(rows), 3 * self._count)
        )
        N.eliminate_zeros()
        return (N @ N.T + sp.diags(self._delta)).tocsr()

    def to(self, force: Floats) -> Floats:
        """(m,) S λ"""
        moved = self._local.along(self._solve(self._local.spread(force, self._count)))
        return np.asarray(moved + self._MNV.T @ (self._NV @ force))

    def resisting(self, acting: NDArray[np.bool_]) -> Callable[[Floats], Floats]:
        """About S⁻¹ between some rows (m,), as a product."""
        from scipy.sparse.linalg import splu

        share, own, which = 1 / self._diagonal, self.stiffness * self._delta, np.zeros(0, np.int64)
        if self._gram is not None:
            which = np.flatnonzero(acting)
            gram = self._gram[which][:, which]
            gram.data[np.abs(gram.data) < SHARED_WEIGHT] = 0
            gram.eliminate_zeros()
            coupled = np.diff(gram.indptr) > 1
            which, gram = which[coupled], gram[coupled][:, coupled]
        factor = splu(gram.tocsc()) if len(which) else None

        def overlapping(motion: Floats) -> Floats:
            out = share * motion
            if factor is not None:
                out[which] = factor.solve(motion[which])
            return out

        def product(motion: Floats) -> Floats:
            force = overlapping(motion)
            push = self._local.along(self._resist(self._local.spread(force, self._count)))
            return overlapping(push + own * force)

        return product
