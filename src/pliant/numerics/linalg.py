"""Sparse direct solves with one interface: ``factorize(A).solve(b)``.

The quickest is used: our own Cholesky for definite matrices (cholesky.cpp), for others MKL PARDISO if it is installed,
else SciPy's SuperLU. A matrix that cannot be solved gives the same named error with each of them, and with CHOLMOD.

*Singular.* After factorising, three steps of inverse iteration ``x ← S⁻¹ x / |S⁻¹ x|`` from a random x find the
direction that S maps to almost zero. ``S = D_r A D_c`` is A scaled to unit diagonal (definite) or to rows and columns
of about unit size, so that mixed units and stiff pins do not count as singular. ``|S x| / ‖S‖_∞`` is an upper bound of
the reciprocal condition; below `LEAST_RECIPROCAL_CONDITION` a solution has no correct digits, and x is the
unconstrained motion.

*Indefinite.* Cholesky breaks down if and only if the matrix is singular or has a negative eigenvalue. Which of the two
is settled by an LDLᵀ factorisation of ``S + δ 1`` with a tiny δ: by its inertia, and by inverse iteration as above.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, Literal, cast, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from pliant.core.errors import (
    IndefiniteMatrixError,
    InputError,
    LinearSolveError,
    MissingExtraError,
    SingularMatrixError,
)
from pliant.core.topology import Floats, Ints
from pliant.numerics.direct_solvers import (
    DEFINITE_ONLY,
    SOLVERS,
    BreakdownError,
    Cholesky,
    DirectMethod,
    MatrixKind,
    Solver,
    available,
    coordinates,
)

__all__ = ["DirectMethod", "Factorization", "MatrixKind", "available", "factorize", "solve"]

LEAST_RECIPROCAL_CONDITION = 1e-14
"""Reciprocal condition (after scaling) below which a matrix counts as singular."""
ASYMMETRY = 1e-8
"""Largest ``|A - Aᵀ|`` over the largest ``|A|`` that still counts as symmetric."""
_SHIFT = 1e-13
_STEPS = 3
_UNITS = 128
"""Columns of an inverse that are solved for at once."""


def factorize(
    A: Any,
    *,
    method: Literal["auto"] | DirectMethod = "auto",
    kind: MatrixKind = "definite",
    check: bool = True,
) -> Factorization:
    """Factorise a square matrix (sparse of any format, or dense), to solve with it many times.

    kind: "definite" for symmetric positive definite, "symmetric" for symmetric indefinite, "general" for the rest.
    check: whether to test for symmetry and singularity, which costs a few solves.
    """
    if kind not in get_args(MatrixKind):
        raise InputError(f'kind is "{kind}"; expected one of {", ".join(get_args(MatrixKind))}')
    matrix = _canonical(A)
    if kind != "general":
        stored = sp.csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape)
        matrix = _on_pattern(matrix, stored + stored.T)  # what is on one side only may be zero, or rounding
    return Factorization(matrix, method, kind, check)


def solve(A: Any, b: ArrayLike, *, kind: MatrixKind = "definite") -> Floats:
    """The x with ``A x = b``; for several right-hand sides that come one after the other, keep `factorize`'s result."""
    return factorize(A, kind=kind).solve(b)


def dot(a: Floats, b: Floats) -> float:
    """a · b over all entries (n, k); not by BLAS, whose threads take longer to wake than this takes."""
    return float(np.einsum("ij,ij->", a, b))


class Factorization:
    """A factorised matrix. It may be shared by threads.

    Pickling it factorises again on the other side: by the method that was named, or the quickest one there.
    """

    method: DirectMethod
    """Which method made it."""
    kind: MatrixKind
    reciprocal_condition: float | None
    """An upper bound of 1 / (‖S‖ ‖S⁻¹‖) that is usually close, S being the scaled matrix; None if not checked."""

    def __init__(self, A: Any, method: Literal["auto"] | DirectMethod, kind: MatrixKind, check: bool) -> None:
        self.method, self.kind = _choose(method, kind), kind
        self._asked = method
        self._lock = threading.Lock()
        self._solver: Solver | None = None
        self._build(A, check)

    def __repr__(self) -> str:
        return f"Factorization({self.shape[0]} × {self.shape[1]}, {self.kind}, {self.method})"

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)"""
        return cast("tuple[int, int]", self._matrix.shape)

    def solve(self, b: ArrayLike) -> Floats:
        """The x with ``A x = b``, for b of shape (n,) or (n, k); a new array of b's shape."""
        right = _right_hand_side(b, self.shape[0])
        if self._solver is None:
            raise LinearSolveError("the last refactorize failed, so there is nothing to solve with; factorise again")
        if right.size == 0:
            return right
        with self._lock:
            return np.ascontiguousarray(self._solver.solve(right))

    def inverse(self, rows: ArrayLike, columns: ArrayLike) -> Floats:
        """(r, c) A⁻¹ at some rows and columns; methods other than "cholesky" solve for whole columns."""
        at, of = (_numbers(some, self.shape[0]) for some in (rows, columns))
        with self._lock:
            if isinstance(self._solver, Cholesky):
                return self._solver.inverse(at, of)
        out = np.empty((len(at), len(of)))
        for first in range(0, len(of), _UNITS):
            some = of[first : first + _UNITS]
            unit = np.zeros((self.shape[0], len(some)))
            unit[some, np.arange(len(some))] = 1
            out[:, first : first + _UNITS] = self.solve(unit)[at]
        return out

    def refactorize(self, A: Any, *, check: bool = True) -> Factorization:
        """Take new values for the same sparsity pattern (or a part of it), in place; returns itself.

        Of a definite matrix, Cholesky and PARDISO keep their symbolic analysis; the others start over.
        """
        fresh = _on_pattern(_canonical(A), self._matrix)
        self._build(fresh, check)
        return self

    def _build(self, A: Any, check: bool) -> None:
        solver, self._solver, self._matrix = self._solver, None, A
        self.reciprocal_condition = None
        _check_rows(A, self.kind)
        if check and self.kind != "general":
            _check_symmetric(A)
        try:
            with self._lock:
                if solver is None:
                    solver = SOLVERS[self.method](A, self.kind)
                else:
                    solver.update(A)
            if check:
                self.reciprocal_condition, free = _weakest_direction(A, self.kind, solver)
                if self.reciprocal_condition < LEAST_RECIPROCAL_CONDITION:
                    raise _singular(A, self.reciprocal_condition, free)
        except BreakdownError:
            raise _diagnosis(A, self.kind) from None
        self._solver = solver

    def __reduce__(self) -> tuple[Any, ...]:
        return Factorization, (self._matrix, self._asked, self.kind, False)


# Validation of a matrix and a right-hand side


def _choose(method: str, kind: MatrixKind) -> DirectMethod:
    if method == "auto":
        return next(name for name in available() if kind == "definite" or name not in DEFINITE_ONLY)
    if method not in get_args(DirectMethod):
        raise InputError(f'method is "{method}"; expected auto, {", ".join(get_args(DirectMethod))}')
    if method in DEFINITE_ONLY and kind != "definite":
        raise InputError(f'method "{method}" factorises definite matrices only; kind is "{kind}"')
    if method not in available():
        raise MissingExtraError(f'method "{method}"', "mkl" if method == "pardiso" else "fast")
    return method


def _canonical(A: Any) -> Any:
    """A as a new CSR array of float64: sorted, duplicates summed, every diagonal entry stored, even if zero."""
    entries: Any = A if sp.issparse(A) else np.asarray(A)
    if entries.dtype.kind not in "fiub":
        raise InputError(f"the matrix holds {entries.dtype} values; expected real numbers")
    if entries.ndim != 2 or entries.shape[0] != entries.shape[1] or not entries.shape[0]:
        raise InputError(f"the matrix has shape {entries.shape}; expected it to be square and not empty")
    n = entries.shape[0]
    if sp.issparse(entries) and entries.nnz + n >= 2**31:
        raise InputError(f"the matrix has {entries.nnz} entries; expected fewer than 2³¹")
    entries = sp.coo_array(entries)
    diagonal = np.arange(n)
    values = np.concatenate([entries.data.astype(np.float64), np.zeros(n)])
    row, column = (np.concatenate([index, diagonal]).astype(np.int32) for index in (entries.row, entries.col))
    matrix = sp.csr_array(sp.coo_array((values, (row, column)), shape=(n, n)))
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if bad.size:
        k = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        raise InputError(f"row {k} of the matrix holds {matrix.data[bad[0]]} in column {matrix.indices[bad[0]]}")
    return matrix


def _numbers(given: ArrayLike, count: int) -> Ints:
    """(k,) rows or columns of a matrix with so many."""
    found = np.asarray(given)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise InputError(f"rows and columns are {found.dtype} of shape {found.shape}; expected a list of numbers")
    if found.size and (found.min() < 0 or found.max() >= count):
        raise InputError(f"rows or columns reach from {found.min()} to {found.max()}; expected 0 to {count - 1}")
    return np.ascontiguousarray(found, np.int64)


def _on_pattern(A: Any, known: Any) -> Any:
    """A stored on the sparsity pattern of `known`; entries that A lacks become explicit zeros."""
    if A.shape != known.shape:
        raise InputError(f"the matrix has shape {A.shape}; expected {known.shape}, as first factorised")
    if np.array_equal(A.indices, known.indices) and np.array_equal(A.indptr, known.indptr):
        return A
    values = np.concatenate([A.data, np.zeros(known.nnz)])
    row, column = (np.concatenate(pair) for pair in zip(coordinates(A), coordinates(known), strict=True))
    union = sp.csr_array(sp.coo_array((values, (row, column)), shape=A.shape))
    if union.nnz != known.nnz:
        raise InputError("the matrix has entries where the first one had none; call factorize for a new pattern")
    return union


def _check_rows(A: Any, kind: MatrixKind) -> None:
    """Refuse what rows, columns and the diagonal already give away."""
    rows, columns = _largest(A)
    for name, largest in (("row", rows), ("column", columns)):
        if not largest.all():
            k = int(np.argmin(largest))
            raise SingularMatrixError(f"{_named(A)} is singular: {name} {k} is all zeros; {_HINT}")
    diagonal = A.diagonal()
    if kind != "definite" or (diagonal > 0).all():
        return
    if (diagonal < 0).all():
        raise IndefiniteMatrixError(
            f"{_named(A)} is not positive definite: its whole diagonal is negative; is its sign reversed?"
        )
    k = int(np.argmin(diagonal))
    raise IndefiniteMatrixError(
        f"{_named(A)} is indefinite, not positive definite: diagonal entry {k} is {diagonal[k]:.3g}"
    )


def _check_symmetric(A: Any) -> None:
    apart = abs(A - A.T)
    if apart.nnz == 0 or apart.max() <= ASYMMETRY * abs(A.data).max():
        return
    worst = apart.tocoo()
    k = int(np.argmax(worst.data))
    i, j = int(worst.row[k]), int(worst.col[k])
    raise InputError(
        f"{_named(A)} is not symmetric: entry ({i}, {j}) is {A[i, j]:.6g} and ({j}, {i}) is {A[j, i]:.6g}; "
        'expected a symmetric one, or kind="general"'
    )


def _right_hand_side(b: ArrayLike, n: int) -> Floats:
    array = np.asarray(b)
    if array.dtype.kind not in "fiub":
        raise InputError(f"the right-hand side holds {array.dtype} values; expected an array of real numbers")
    if array.ndim not in (1, 2) or array.shape[0] != n:
        raise InputError(f"the right-hand side has shape {array.shape}; expected ({n},) or ({n}, k)")
    array = np.ascontiguousarray(array, dtype=np.float64)
    finite = np.isfinite(array)
    if not finite.all():
        bad = int(np.flatnonzero(~finite.reshape(n, -1).all(axis=1))[0])
        raise InputError(f"row {bad} of the right-hand side is not finite")
    return array


# Singular or indefinite, whichever the method

_HINT = "something is free that nothing holds: pin a point or add an anchor"


def _named(A: Any) -> str:
    return f"the {A.shape[0]} × {A.shape[1]} matrix"


def _largest(A: Any) -> tuple[Floats, Floats]:
    """(n,) and (n,) the largest absolute entry of each row and column."""
    size = abs(A)
    return size.max(axis=1).toarray().ravel(), size.max(axis=0).toarray().ravel()


def _scaled(A: Any, kind: MatrixKind) -> tuple[Any, Floats, Floats]:
    """``S = D_r A D_c`` and the diagonals of D_r and D_c."""
    if kind == "definite":
        left = right = 1 / np.sqrt(A.diagonal())
    else:
        left, right = (1 / np.sqrt(largest) for largest in _largest(A))
    row, column = coordinates(A)
    return sp.csr_array((A.data * left[row] * right[column], A.indices, A.indptr), shape=A.shape), left, right


def _weakest_direction(A: Any, kind: MatrixKind, solver: Solver) -> tuple[float, Floats]:
    """Reciprocal condition of the scaled matrix (an upper bound), and the x (n,) that A hardly moves."""
    S, left, right = _scaled(A, kind)
    return _inverse_iteration(S, right, lambda x: solver.solve(x / left) / right)


def _inverse_iteration(S: Any, right: Floats, inverse: Any) -> tuple[float, Floats]:
    x = np.random.default_rng(0).standard_normal(S.shape[0])
    norm = float(abs(S).sum(axis=1).max())
    best, found = np.inf, x
    for _ in range(_STEPS):
        with np.errstate(over="ignore", invalid="ignore"):
            x = inverse(x / np.linalg.norm(x))
            x = x / np.abs(x).max()
        if not np.isfinite(x).all():
            raise BreakdownError
        stretch = float(np.linalg.norm(S @ x) / np.linalg.norm(x)) / norm
        if stretch < best:
            best, found = stretch, x
    return best, right * found


def _singular(A: Any, condition: float, free: Floats) -> SingularMatrixError:
    moving = np.abs(free) > 0.01 * np.abs(free).max()
    return SingularMatrixError(
        f"{_named(A)} is singular to working precision (reciprocal condition about {condition:.0e}); {_HINT} "
        f"(unknown {int(np.argmax(np.abs(free)))} is the freest, and {int(moving.sum())} move together)"
    )


def _diagnosis(A: Any, kind: MatrixKind) -> LinearSolveError:
    """Why a factorisation broke down: a null vector or negative eigenvalues."""
    S, _, right = _scaled(A, kind)
    shifted = _canonical(S + _SHIFT * sp.identity(A.shape[0]))
    ldl: MatrixKind = "general" if kind == "general" else "symmetric"
    try:
        solver = SOLVERS[_choose("auto", ldl)](shifted, ldl)
        condition, free = _inverse_iteration(S, right, solver.solve)
    except BreakdownError:
        return SingularMatrixError(f"{_named(A)} is singular to working precision; {_HINT}")
    if condition < LEAST_RECIPROCAL_CONDITION or kind != "definite":
        return _singular(A, condition, free)
    count = solver.negative_eigenvalues() or None
    many = {None: "negative eigenvalues", 1: "1 negative eigenvalue"}.get(count, f"{count} negative eigenvalues")
    return IndefiniteMatrixError(f"{_named(A)} is indefinite: it has {many}; expected a positive definite one")


def one_blas_thread() -> AbstractContextManager[Any]:
    """For many small dense products: OpenBLAS's threads wait for each other for longer than they work there."""
    return cast("AbstractContextManager[Any]", _openblas().limit(limits=1))


@cache
def _openblas() -> Any:
    import scipy.linalg  # noqa: F401  # has a library of its own, which must be loaded to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(internal_api="openblas")
