"""The forces of many contacts, and of contacts with friction, by Newton's method.

With S the body's answer to forces, and v where its points would come without them, forces λ lead to ``u = v - S λ``.
Contacts and Coulomb's law ask for

    λ = P(ρ u):    λ_n = max(ρ u_n, 0),    λ_t = ρ u_t, cut down to the length μ λ_n,

which is the same as ``λ = P(λ + c g)`` with ``g = u - λ/ρ`` for any c > 0. Each Newton step (Alart and Curnier 1991)
takes from this which contacts push, which points stick and which slide, and in which direction. Then g = 0 where forces
are free to change is a linear problem: friction of what slides follows the normal forces, which makes it unsymmetric,
and across the direction of sliding it acts like a spring (the derivative of the projection). S is only multiplied with.

What c is decides how many steps there are. By forces that all points lack at once, each moves much farther than by its
own: with c the inverse of the sum of a row of S, ``λ + c g`` leads no farther than to balance, and few points change
sides in vain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pliant.contact.forces import EAGER_SHARE, Rows
from pliant.core.topology import Floats, Ints
from pliant.native import kernels
from pliant.numerics.gmres import gmres

MAX_NEWTON_STEPS = 60
MAX_KRYLOV_PRODUCTS, LINEAR_REDUCTION = 40, 0.1
"""With S, in one Newton step; of the residual there: what pushes is not known well enough for more."""
LEAST_STEP = 0.2
"""Of a Newton step that leads to more energy, for half of it to be tried."""
MAX_SWEEP_ROUNDS, SWEEPS_A_ROUND = 40, 25
"""Of Gauss-Seidel, each followed by a look at whether forces are exact enough."""
BISECTIONS, MINIMISED_SHARE = 30, 1e-9
"""Of a step, for the least along it; change of forces, over the largest, that ends Newton's method for given bounds."""
MAX_SETTLING_STEPS, SETTLING_REDUCTION = 8, 0.5
"""Newton steps after some of them, and of the energy that is too much, for another one."""


class Response(Protocol):
    """How a body answers the forces of rows."""

    rows: Rows
    stiffness: Floats
    """(m,) about how much force moves a row's point alone by 1."""
    softness: Floats
    """(m,) about how far it moves by a force 1 at every contact."""

    def to(self, force: Floats) -> Floats:
        """(m,) S λ: how far the rows' points move along their directions."""

    def resisting(self, acting: NDArray[np.bool_]) -> Callable[[Floats], Floats]:
        """About S⁻¹ between some rows (m,), of a motion (m,) that the others do not have; symmetric."""


class DenseResponse(Protocol):
    """The same, of which S is known."""

    rows: Rows

    def to(self, force: Floats) -> Floats:
        """(m,) S λ"""

    def between(self, chosen: Ints) -> Floats:
        """(c, c) S between some rows."""


class Enough(Protocol):
    """Whether forces are exact enough."""

    def __call__(self, rows: Rows, forces: Floats, violation: Floats, gap: float) -> bool:
        """Asked with rows, forces that act on them, what these lead to, and how much energy that may be too much."""


@dataclass(frozen=True, eq=False)
class _Free:
    """Where forces are free to change, at some forces."""

    rows: NDArray[np.bool_]
    """(m,) contacts that push, and friction that sticks."""
    sliding: Ints
    """(s, 2) pairs of rows where points slide."""
    across: Floats
    """(s, 2) unit vectors across the directions of sliding."""
    compliance: Floats
    """(m,) of the rows themselves."""

    def of(self, vector: Floats) -> Floats:
        """(m,) a vector without what is not free."""
        out = np.where(self.rows, vector, 0.0)
        if len(self.sliding):
            out[self.sliding] = np.einsum("kj,kj->k", vector[self.sliding], self.across)[:, None] * self.across
        return out


def coulomb_forces(response: Response, ahead: Floats, guess: Floats, enough: Enough) -> tuple[Floats, Rows, bool]:
    """(m,) the forces of rows, the rows with the bounds of friction that follow, and whether these are exact enough.

    ahead: (m,) violations without forces. guess: (m,) at the forces.
    """
    rows = response.rows
    force = in_cone(rows, guess)
    u, bounds = ahead - response.to(force), bounded(rows, force)
    for _ in range(MAX_NEWTON_STEPS):
        gap = _gap(bounds, force, u)
        if enough(bounds, force, u, gap):
            return force, bounds, True
        wished, moved = _newton_step(response, force, u)
        share = 1.0
        while True:
            found = in_cone(rows, force + share * (wished - force))
            answer = moved if np.array_equal(found, wished) else response.to(found - force)
            bounds = bounded(rows, found)
            if share <= LEAST_STEP or _gap(bounds, found, u - answer) < gap:
                break
            share *= 0.5
        force, u = found, u - answer
    return force, bounds, enough(bounds, force, u, _gap(bounds, force, u))


def swept_coulomb_forces(
    response: DenseResponse, ahead: Floats, guess: Floats, enough: Enough
) -> tuple[Floats, Rows, bool]:
    """The same on the dense S between the rows that act, or would: the working set, which grows as forces change.

    Sweeps of Gauss-Seidel bring friction and normal forces together, but are slow where many rows share few vertices:
    after ever more of them, forces are minimised for the bounds of friction that they lead to, and swept again.
    Newton's method, which converges only from near, ends each round.
    """
    rows, (pairs, normal) = response.rows, response.rows.friction_pairs
    force = in_cone(rows, guess)
    inside = rows.is_contact & (force > 0)
    inside[pairs] = inside[normal][:, None]
    u, some = ahead - response.to(force), _WorkingSet.of(response, inside)
    for k in range(MAX_SWEEP_ROUNDS):
        wanted = rows.is_contact & (u > 0) & ~inside
        if wanted.any():  # those that most want to push first: their neighbours often need not, then
            wanted &= u >= EAGER_SHARE * u[wanted].max()
            inside |= wanted
            inside[pairs] = inside[normal][:, None]
            some = _WorkingSet.of(response, inside)
        found = some.swept(ahead[inside], force[inside])
        if k and k & (k - 1) == 0:
            tried = some.swept(ahead[inside], some.minimised(ahead[inside], found))
            found = min(found, tried, key=partial(some.gap, ahead[inside]))
        force[inside] = some.settled(ahead[inside], found)
        u, bounds = ahead - response.to(force), bounded(rows, force)
        if enough(bounds, force, u, _gap(bounds, force, u)):
            return force, bounds, True
    return force, bounds, False


@dataclass(frozen=True, eq=False)
class _WorkingSet:
    """Some rows, contacts with all of their friction."""

    rows: Rows
    S: Floats
    """(w, w) between them."""
    local: Floats
    """(w,) about how much force moves a row's point alone by 1, with the row's own compliance."""
    order: Ints
    """(w,) contacts, each followed by its two rows of friction."""
    limit: Floats
    """(w,) the coefficient for the first of these, -1 for the second, -2 for contacts."""

    @classmethod
    def of(cls, response: DenseResponse, inside: NDArray[np.bool_]) -> _WorkingSet:
        """inside: (m,) which of all rows."""
        rows, S = response.rows.chosen(inside), response.between(np.flatnonzero(inside))
        pairs, normal = rows.friction_pairs
        limit, of = np.full(len(rows), -2.0), np.arange(len(rows), dtype=np.float64)
        limit[pairs] = np.stack([rows.friction[pairs[:, 0]], np.full(len(pairs), -1.0)], axis=1)
        of[pairs] = normal[:, None] + np.array([0.25, 0.5])
        local = 1 / (S.diagonal() + 1 / rows.rho)
        local[pairs] = local[pairs].min(axis=1)[:, None]
        return cls(rows, S, local, np.argsort(of, kind="stable"), limit)

    def swept(self, ahead: Floats, force: Floats) -> Floats:
        """(w,) forces after some sweeps."""
        force, u = force.copy(), ahead - self.S @ force
        kernels.contact_coulomb_sweeps(self.S, self.rows.rho, self.order, self.limit, 0.0, SWEEPS_A_ROUND, force, u)
        return force

    def settled(self, ahead: Floats, force: Floats) -> Floats:
        """(w,) forces after Newton steps with bounds that follow (Alart and Curnier 1991), as long as these lead on."""
        gap = self.gap(ahead, force)
        for _ in range(MAX_SETTLING_STEPS):
            rows, u = bounded(self.rows, force), ahead - self.S @ force
            trial = force + self.local * (u - force / rows.rho)
            found = in_cone(rows, self._newton(rows, ahead, trial, self.local, following=True))
            before, gap = gap, self.gap(ahead, found)
            if not gap < SETTLING_REDUCTION * before:
                break
            force = found
        return force

    def minimised(self, ahead: Floats, force: Floats) -> Floats:
        """(w,) forces for the bounds of friction that forces (w,) set, by Newton's method on

            E(f) = ½ f·S f + Σ e(ahead - S f),

        which is convex, and quadratic in pieces: with the least of E along each step it always ends. There f = λ.
        """
        rows, u = bounded(self.rows, force), ahead - self.S @ force
        for _ in range(MAX_NEWTON_STEPS):
            change = self._newton(rows, ahead, rows.rho * u, rows.rho) - force
            answer = self.S @ change
            share = _share_to_the_least(rows, u, answer, float(force @ answer), float(change @ answer))
            force, u = force + share * change, u - share * answer
            if share == 1 and np.abs(rows.forces_at(u) - force).max() <= MINIMISED_SHARE * np.abs(force).max():
                break
        return in_cone(rows, force)

    def gap(self, ahead: Floats, force: Floats) -> float:
        """How much more energy forces (w,) lead to than the least, at most."""
        return _gap(bounded(self.rows, force), force, ahead - self.S @ force)

    def _newton(self, rows: Rows, ahead: Floats, trial: Floats, gain: Floats, *, following: bool = False) -> Floats:
        """(w,) the forces that are right if what pushes, sticks and slides at forces `trial` = λ + gain g goes on to.

        following: whether the bounds of what slides follow the normal forces.
        """
        free, force = _free(rows, np.zeros(len(rows)), trial, gain)
        single, pairs, k = np.flatnonzero(free.rows), free.sliding, np.count_nonzero(free.rows)
        chosen, count = np.concatenate([single, pairs.ravel()]), k + len(pairs)
        if not count:
            return force
        # Points that slide are free across their direction alone.
        at, across = k + np.arange(2 * len(pairs)), np.repeat(np.arange(k, count), 2)
        values = np.concatenate([np.ones(k), free.across.ravel()])
        V = W = sp.csr_matrix(
            (values, (np.arange(len(chosen)), np.concatenate([np.arange(k), across]))), (len(chosen), count)
        )
        if following and len(pairs):
            pressing = free.rows[pairs[:, 0] + rows.bounded_by[pairs[:, 0]]]
            along = np.where(pressing[:, None], rows.friction[pairs] * force[pairs] / rows.high[pairs], 0.0)
            column = np.searchsorted(single, pairs[:, 0] + rows.bounded_by[pairs[:, 0]])
            W = V + sp.csr_matrix((along.ravel(), (at, np.repeat(np.where(pressing, column, 0), 2))), V.shape)
            force[pairs] = 0
        A = np.asarray(V.T @ (W.T @ self.S[np.ix_(chosen, chosen)]).T)
        A[np.diag_indices_from(A)] += free.compliance[np.concatenate([single, pairs[:, 0]])]
        right = V.T @ (ahead - self.S @ force)[chosen]
        force[chosen] += W @ np.linalg.solve(A, right)
        return force


def _share_to_the_least(rows: Rows, u: Floats, answer: Floats, slope: float, curvature: float) -> float:
    """The share t of a step, at most 1, to where E' = slope + t curvature - λ(u - t answer)·answer is 0."""

    def derivative(t: float) -> float:
        return slope + t * curvature - float(rows.forces_at(u - t * answer) @ answer)

    low, high = 0.0, 1.0
    if derivative(1.0) <= 1e-9 * abs(derivative(0.0)):
        return 1.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if derivative(middle) > 0 else (middle, high)
    return high


def _newton_step(response: Response, force: Floats, u: Floats) -> tuple[Floats, Floats]:
    """(m,) forces that are right, about, if what pushes, sticks and slides goes on to, and S of how these change."""
    rows = response.rows
    gain, (both, _) = 1 / (response.softness + 1 / rows.rho), rows.friction_pairs
    gain[both] = gain[both].min(axis=1)[:, None]  # a cone has no other directions than friction
    trial = force + gain * (u - force / rows.rho)
    free, _ = _free(bounded(rows, np.maximum(trial, 0.0)), np.zeros(len(rows)), trial, gain)
    pairs, start = free.sliding, np.where(free.rows, force, 0.0)
    pressing = pairs[:, 0] + rows.bounded_by[pairs[:, 0]]
    along = rows.friction[pairs] * np.stack([free.across[:, 1], -free.across[:, 0]], axis=1)
    start[pairs] = start[pressing][:, None] * along
    moved, answers = response.to(start - force), []
    weight = 1 / np.sqrt(1 + response.stiffness * (free.compliance - 1 / rows.rho))
    acting = free.rows.copy()
    acting[pairs] = True
    resisting = response.resisting(acting)

    def following(change: Floats) -> Floats:
        """(m,) a change of free forces, with the friction that follows it."""
        change = change.copy()
        change[pairs] += change[pressing][:, None] * along
        return change

    def product(change: Floats) -> Floats:
        answers.append(response.to(following(change)))
        return free.of(answers[-1] + free.compliance * change)

    shares, changes = gmres(
        product,
        free.of(u - moved - free.compliance * start),
        lambda residual: free.of(weight * resisting(weight * residual)),
        LINEAR_REDUCTION,
        MAX_KRYLOV_PRODUCTS,
    )
    for share, change, answer in zip(shares, changes, answers, strict=True):
        start, moved = start + share * following(change), moved + share * answer
    return start, moved


def in_cone(rows: Rows, force: Floats) -> Floats:
    """(m,) forces without those that pull, and friction cut down to what the normal forces bear."""
    pairs, normal = rows.friction_pairs
    out = np.where(rows.is_contact, np.maximum(force, 0.0), force)
    if len(pairs):
        limit, size = rows.friction[pairs[:, 0]] * out[normal], np.linalg.norm(out[pairs], axis=1)
        out[pairs] *= np.minimum(limit / np.maximum(size, 1e-300), 1.0)[:, None]
    return out


def bounded(rows: Rows, force: Floats) -> Rows:
    """Rows whose friction is bounded by forces (m,)."""
    pairs, normal = rows.friction_pairs
    if not len(pairs):
        return rows
    low, high = rows.low.copy(), rows.high.copy()
    high[pairs] = (rows.friction[pairs[:, 0]] * force[normal])[:, None]
    low[pairs] = -high[pairs]
    return replace(rows, low=low, high=high)


def _gap(rows: Rows, force: Floats, u: Floats) -> float:
    """How much more energy forces within their bounds lead to than the least, at most (Fenchel)."""
    wished = rows.forces_at(u)
    energy = np.where(wished == force, 0.0, (wished - force) * u) - 0.5 * (wished**2 - force**2) / rows.rho
    return float(energy.sum())


def _free(rows: Rows, force: Floats, trial: Floats, local: Floats) -> tuple[_Free, Floats]:
    """Where forces are free to change, and (m,) forces with the friction of what slides along its direction.

    trial: (m,) λ + c g, with c = `local`.
    """
    free, compliance = rows.is_contact & ((force > 0) | (trial > 0)), 1 / rows.rho
    pairs, _ = rows.friction_pairs
    if not len(pairs):
        return _Free(free, pairs, np.zeros((0, 2)), compliance), force
    limit, size = rows.high[pairs[:, 0]], np.linalg.norm(trial[pairs], axis=1)
    sliding, start = (size > limit) & (limit > 0), force.copy()
    free[pairs] = ((size <= limit) & (limit > 0))[:, None]
    slide, excess = pairs[sliding], size[sliding] / limit[sliding] - 1
    along = trial[slide] / size[sliding, None]
    start[slide] = limit[sliding, None] * along
    compliance[slide] += excess[:, None] / local[slide]
    return _Free(free, slide, np.stack([-along[:, 1], along[:, 0]], axis=1), compliance), start
