"""The forces of contacts, as a problem in these alone; few of them are found by dense factorisations.

A contact is a row: a point on the body, given by up to four vertices and weights, that must not go farther against a
direction. With v the amount by which it does, a row acts like a stiff spring that is bounded,

    e(v) = λ v - ½ λ²/ρ,    λ = clamp(ρ v, low, high):

``low = 0, high = ∞`` for a contact, which pushes and never pulls. Friction, which sticks and then slides, has two rows;
their forces together are no longer than `high`, which follows from the force λ_n of the contact's own row (Coulomb's
law, `pliant.contact.coulomb`).
For a body that answers forces by B⁻¹ and would come to v by itself, ``λ = clamp(ρ (v - S λ), low, high)`` with
``S = N B⁻¹ Nᵀ``, which is solved by pivoting (`bounded_forces`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pliant.core.topology import Floats, Ints
from pliant.native import in_threads, kernels

EAGER_SHARE = 0.25
"""Of rows that should push too, those that are so far on the wrong side, over the farthest, are the next to do so."""
MAX_PIVOTS = 60
"""Changes of what is clamped, at most, in one step."""
MAX_COMPLIANCE_VERTICES = 6000
"""Vertices whose answers to each other's forces are kept: a third of a gigabyte."""
MIN_SINGLE_VERTICES = 600
"""Vertices from which answers are multiplied with in single precision: the time is that of reading them."""
MAX_BLOCK_EXCESS = 1.3
"""Vertices of a block of answers, over those that are needed, up to which those of the block before stay."""
PRODUCTS_PER_THREAD = 100_000
"""Products of answers that a thread should have at least."""


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
    friction: Floats
    """(m,) Coulomb's coefficient, of rows of friction; they come in pairs, along two directions across the normal."""
    bounded_by: Ints
    """(m,) how many rows after it the one comes whose force bounds a row of friction; 0 for others."""

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
        return cls(np.zeros((0, 4), np.int64), np.zeros((0, 4)), np.zeros((0, 3)), m, m, m, m, m, np.zeros(0, np.int64))

    @classmethod
    def pushing(cls, vertices: Ints, weights: Floats, directions: Floats, violation: Floats, rho: Floats) -> Rows:
        """Contacts, which push and never pull."""
        none, always = np.zeros(len(rho)), np.zeros(len(rho), np.int64)
        return cls(vertices, weights, directions, violation, rho, none, np.full(len(rho), np.inf), none, always)

    @property
    def used(self) -> Ints:
        """The vertices that have a weight, sorted."""
        return np.unique(self.vertices[self.weights != 0])

    def forces_of(self, push: Floats) -> Floats:
        """(m,) the forces of rows at one vertex, where vertices are pushed (n, 3); 0 for others."""
        alone = np.count_nonzero(self.weights, axis=1) == 1
        return np.where(alone, np.einsum("mj,mj->m", push[self.vertices[:, 0]], self.directions), 0.0)

    def pushed(self, forces: Floats, count: int) -> Floats:
        """(n, 3) how rows at one vertex push it."""
        return self.spread(np.where(np.count_nonzero(self.weights, axis=1) == 1, forces, 0.0), count)

    def only(self, which: NDArray[np.bool_]) -> Rows:
        """Some of them, without what bounds them."""
        return Rows(*(getattr(self, name)[which] for name in self.__dataclass_fields__))

    def chosen(self, which: NDArray[np.bool_]) -> Rows:
        """Some of them; rows of friction with the ones that bound them."""
        some = self.only(which)
        after, own = np.cumsum(which) - 1, np.flatnonzero(which)
        return replace(some, bounded_by=after[own + some.bounded_by] - after[own])

    def bounded_as(self, other: Rows) -> Rows:
        """The same rows with the bounds of others, which may lack the last ones."""
        low, high, m = self.low.copy(), self.high.copy(), len(other)
        low[:m], high[:m] = other.low, other.high
        return replace(self, low=low, high=high)

    @property
    def is_contact(self) -> NDArray[np.bool_]:
        """(m,) whether it is no row of friction."""
        return self.bounded_by == 0

    @property
    def friction_pairs(self) -> tuple[Ints, Ints]:
        """(k, 2) the two rows of each point that friction acts on, and (k,) the one that bounds them."""
        pairs = np.flatnonzero(self.bounded_by).reshape(-1, 2)
        return pairs, pairs[:, 0] + self.bounded_by[pairs[:, 0]]

    @property
    def forces(self) -> Floats:
        """(m,) λ, the force of each row along its direction."""
        return self.forces_at(self.violation)

    def forces_at(self, violation: Floats) -> Floats:
        """(m,) λ for other violations (m,)."""
        force, (pairs, _) = self.rho * violation, self.friction_pairs
        out = np.clip(force, self.low, self.high)
        if len(pairs):
            size, most = np.linalg.norm(force[pairs], axis=1), self.high[pairs[:, 0]]
            out[pairs] = force[pairs] * np.minimum(most / np.maximum(size, 1e-300), 1.0)[:, None]
        return out

    @property
    def energy(self) -> float:
        """Σ e(v)"""
        return self.energy_at(self.violation)

    def energy_at(self, violation: Floats) -> float:
        """Σ e for other violations (m,)."""
        force = self.forces_at(violation)
        return float(np.sum(force * violation - 0.5 * force**2 / self.rho))

    def along(self, x: Floats) -> Floats:
        """(m,) N x: the motion x (n, 3) of each row's point along its direction."""
        out = np.empty(len(self))
        kernels.contact_along(self.vertices, self.weights, self.directions, x, out)
        return out

    def spread(self, forces: Floats, count: int) -> Floats:
        """(n, 3) Nᵀ λ: the rows' forces at the body's vertices."""
        out = np.zeros((count, 3))
        kernels.contact_spread(self.vertices, self.weights, self.directions, forces, out)
        return out


@dataclass(eq=False)
class ComplianceBlock:
    """L⁻¹ between k vertices."""

    vertices: Ints
    index: Ints
    """(n,) where each vertex is among them; -1 for others."""
    table: Floats
    """(k, k)"""
    _stiffness: Any
    _factor: Any = None

    @property
    def count(self) -> int:
        """k"""
        return len(self.vertices)

    def solve(self, forces: Floats) -> Floats:
        """(k, 3) the motion by forces; of many, to seven digits."""
        from scipy.linalg.blas import ssymv

        if self.table.dtype == np.float64:
            return np.asarray(self.table @ forces)
        # The time is that of reading the table: half of it, in LAPACK's order, and not for what is 0 on a plane.
        moved = np.zeros(forces.shape)
        for axis in np.flatnonzero(forces.any(axis=0)):
            moved[:, axis] = ssymv(1.0, self.table.T, forces[:, axis].astype(np.float32))
        return moved

    def resist(self, motion: Floats) -> Floats:
        """(k, 3) about the forces that a motion takes."""
        from scipy.linalg import cho_factor, cho_solve

        if self._stiffness is not None:
            return np.asarray(self._stiffness @ motion)
        if self._factor is None:
            table = self.table.astype(np.float64)
            table[np.diag_indices_from(table)] *= 1 + 1e-3
            self._factor = cho_factor(table, lower=True, overwrite_a=True, check_finite=False)
        return np.asarray(cho_solve(self._factor, motion, check_finite=False))


@dataclass(frozen=True, eq=False)
class LocalCompliance:
    """L⁻¹ of a body whose vertices give way each by itself."""

    softness: Floats
    """(n,) how far, for a force 1."""
    resolution: float
    """A motion that ends the sweeps over contacts."""
    settled: float
    """A step that does not matter."""


class Compliance:
    """L⁻¹ between vertices that were touched: how each gives way to a force at another. Found when needed, and kept.

    inverse: L⁻¹ at some vertices, and at others. stiffness: L, sparse, if it is one between vertices.
    """

    def __init__(self, inverse: Callable[[Ints, Ints], Floats], count: int, stiffness: Any = None) -> None:
        self._inverse, self._stiffness = inverse, stiffness
        self._block: ComplianceBlock | None = None
        self._slot = np.full(count, -1, dtype=np.int64)
        self._vertices: Ints = np.zeros(0, np.int64)
        self._table = np.zeros((0, 0))

    def between(self, vertices: Ints) -> tuple[Ints, Floats, int]:
        """Slots for vertices of any shape, and a table whose first so many rows and columns are L⁻¹ by slots."""
        missing = np.unique(vertices[self._slot[vertices] < 0])
        if len(missing):
            if len(self._vertices) + len(missing) > MAX_COMPLIANCE_VERTICES:
                self._slot[self._vertices], self._vertices, missing = -1, self._vertices[:0], np.unique(vertices)
            self._add(missing)
        return self._slot[vertices], self._table, len(self._vertices)

    def block(self, vertices: Ints) -> ComplianceBlock:
        """L⁻¹ between vertices, and maybe others; kept until there are new ones, which come last."""
        if self._block is None or not (self._block.index[vertices] >= 0).all():
            known = 0
            if self._block is not None:
                new = vertices[self._block.index[vertices] < 0]
                if self._block.count + len(new) < MAX_BLOCK_EXCESS * len(vertices):
                    vertices, known = np.concatenate([self._block.vertices, new]), self._block.count
            slots, table, _ = self.between(vertices)
            index = np.full(len(self._slot), -1, np.int64)
            index[vertices] = np.arange(len(vertices))
            L = None if self._stiffness is None else self._stiffness[vertices][:, vertices]
            between = np.empty((len(vertices),) * 2, np.float64 if len(vertices) < MIN_SINGLE_VERTICES else np.float32)
            if known and self._block is not None:
                between[:known, :known] = self._block.table
            between[:, known:] = table[np.ix_(slots, slots[known:])]
            between[known:, :known] = between[:known, known:].T
            self._block = ComplianceBlock(vertices, index, between, L)
        return self._block

    def _add(self, missing: Ints) -> None:
        used, every = len(self._vertices), np.concatenate([self._vertices, missing])
        if len(every) > len(self._table):
            grown = np.empty((max(2 * len(self._table), len(every), 256),) * 2)
            grown[:used, :used] = self._table[:used, :used]
            self._table = grown
        new = self._inverse(every, missing)
        self._table[: len(every), used : len(every)] = new
        self._table[used : len(every), :used] = new[:used].T
        self._slot[missing] = np.arange(used, len(every))
        self._vertices = every


class Answers:
    """S = N B⁻¹ Nᵀ (m, m): how far rows' points move along their directions for a force 1 at one; found row by row."""

    def __init__(self, rows: Rows, compliance: Compliance, V: Sequence[Floats] = (), M: Floats | None = None) -> None:
        self.rows = rows
        """Their bounds may be changed."""
        vertices, weights, self._counts = _used_first(rows.vertices, rows.weights)
        slots, self._table, self._used = compliance.between(vertices)
        self._points = slots, weights, rows.directions
        self._NV = np.array([rows.along(v) for v in V]).reshape(len(V), len(rows))
        self._MNV = self._NV if M is None else M @ self._NV
        self._slots = np.full(len(rows), -1, dtype=np.int64)
        self._found, self._count = np.zeros((0, len(rows))), 0
        self._factor: tuple[Ints, Any] | None = None  # of the last block, and of which rows

    def _find(self, chosen: Ints) -> None:
        missing = chosen[self._slots[chosen] < 0]
        if len(missing):
            new = np.empty((len(missing), len(self.rows)))
            given = missing, self._points, self._counts, self._table, self._used, new
            span = 1 + PRODUCTS_PER_THREAD // (self._used + len(self.rows))
            in_threads(lambda a, b: kernels.contact_answers(given, a, b), len(missing), span)
            new += self._NV[:, missing].T @ self._MNV
            end = self._count + len(missing)
            if end > len(self._found):
                grown = np.zeros((max(2 * len(self._found), end), len(self.rows)))
                grown[: self._count] = self._found[: self._count]
                self._found = grown
            self._found[self._count : end] = new
            self._slots[missing], self._count = np.arange(self._count, end), end

    def between(self, chosen: Ints) -> Floats:
        """(c, c) S between some rows."""
        self._find(chosen)
        block = np.empty((len(chosen), len(chosen)))
        kernels.contact_block(self._found, self._slots, chosen, np.zeros(len(chosen)), block)
        return block

    def block(self, chosen: Ints) -> Floats:
        """(c, c) S + 1/ρ between some rows."""
        block = self.between(chosen)
        block[np.diag_indices_from(block)] += 1 / self.rows.rho[chosen]
        block[np.diag_indices_from(block)] *= 1 + 1e-12
        return block

    def solve(self, chosen: Ints, right: Floats) -> Floats:
        """(c,) the forces of some rows that lead to ``S λ + λ/ρ = right`` there."""
        from scipy.linalg import cho_factor, cho_solve

        if self._factor is None or not np.array_equal(self._factor[0], chosen):
            # The block is symmetric: transposed it is in LAPACK's order, and nothing is copied.
            block = self.block(chosen).T
            self._factor = chosen, cho_factor(block, lower=True, overwrite_a=True, check_finite=False)
        return np.asarray(cho_solve(self._factor[1], right, check_finite=False))

    def to(self, force: Floats) -> Floats:
        """(m,) S λ"""
        acting = np.flatnonzero(force)
        self._find(acting)
        together = np.zeros(self._count)
        together[self._slots[acting]] = force[acting]
        return together @ self._found[: self._count]


def _used_first(vertices: Ints, weights: Floats) -> tuple[Ints, Floats, Ints]:
    """Rows with the vertices that have a weight first, and how many those are."""
    ordered = np.empty(vertices.shape, dtype=np.int64), np.empty(weights.shape), np.empty(len(vertices), dtype=np.int64)
    kernels.contact_used_first(vertices, weights, ordered)
    return ordered


def bounded_forces(
    answers: Answers, ahead: Floats, pushing: NDArray[np.bool_], guess: Floats | None = None
) -> tuple[Floats, bool]:
    """(m,) the λ with ``λ = clamp(ρ (ahead - S λ), low, high)``, by pivoting on which are clamped; whether it is.

    pushing: (m,) a guess at those that are not, and at friction that holds if there is a guess (m,) at the forces too.
    All that are on the wrong side change it at once; if that leads nowhere three times, one at a time, which always
    ends (Júdice and Pires 1994), but maybe not within `MAX_PIVOTS`.
    """
    rows = answers.rows
    force = np.zeros(len(rows))
    if guess is not None:  # at the bounds where they are now
        force = np.where((guess > 0) & np.isfinite(rows.high), rows.high, rows.low)
    free = (pushing | (rows.low < 0) if guess is None else pushing) & (rows.low < rows.high)
    if not free.any():
        free = (ahead > 0) & (rows.low < rows.high)
    fewest, patience = len(rows) + 1, 3
    for _ in range(MAX_PIVOTS):
        chosen = np.flatnonzero(free)
        if len(chosen):
            clamped = np.where(free, 0, force)
            right = (ahead - answers.to(clamped) if clamped.any() else ahead)[chosen]
            force[chosen] = answers.solve(chosen, right)
        unclamped = (ahead - answers.to(force)) * rows.rho
        unclamped[free] = force[free]
        clamped = np.clip(unclamped, rows.low, rows.high)
        inner = (unclamped > rows.low) & (unclamped < rows.high)
        wrong = np.flatnonzero((inner != free) | (~free & (clamped != force)))
        if not len(wrong):
            return np.clip(force, rows.low, rows.high), True
        patience = 3 if len(wrong) < fewest else patience - 1
        fewest = min(fewest, len(wrong))
        if patience > 0:
            # Those that most want to push first: their neighbours often need not, then.
            eager = ~free[wrong] & (rows.low[wrong] == 0)
            most = (unclamped / rows.rho)[wrong][eager].max(initial=0.0)
            change = wrong[~eager | ((unclamped / rows.rho)[wrong] >= EAGER_SHARE * most)]
        else:
            change = wrong[-1:]
        free, force = free.copy(), force.copy()
        free[change], force[change] = ~free[change], clamped[change]
    return np.clip(force, rows.low, rows.high), False
