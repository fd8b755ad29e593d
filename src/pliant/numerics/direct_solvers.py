"""The direct solvers behind `pliant.numerics.linalg`: our own Cholesky, MKL PARDISO, CHOLMOD and SuperLU.

All have one interface: each takes a CSR matrix with every diagonal entry stored, factorises it, and solves. PARDISO and
CHOLMOD are optional and are loaded on first use. A pivot that a solver cannot use raises `BreakdownError`;
`pliant.numerics.linalg` finds the cause in the matrix, for all solvers alike.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any, Literal, Protocol, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pliant.core.errors import LinearSolveError
from pliant.core.topology import Floats, Ints
from pliant.native import kernels

DirectMethod = Literal["cholesky", "pardiso", "cholmod", "superlu"]
MatrixKind = Literal["definite", "symmetric", "general"]
DEFINITE_ONLY: tuple[DirectMethod, ...] = ("cholesky", "cholmod")
"""Methods for definite matrices alone."""


def available() -> tuple[DirectMethod, ...]:
    """The methods that are installed, the quickest first."""
    loaders: dict[DirectMethod, Any] = {"pardiso": _load_pardiso, "cholmod": _load_cholmod}
    return tuple(name for name in get_args(DirectMethod) if name not in loaders or loaders[name]() is not None)


class BreakdownError(Exception):
    """A method met a pivot that it cannot use."""


def coordinates(A: Any) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(nnz,) and (nnz,) row and column of every stored entry of a CSR matrix."""
    return np.repeat(np.arange(A.shape[0], dtype=np.int32), np.diff(A.indptr)), A.indices


class Solver(Protocol):
    """What a method has to offer."""

    def __init__(self, A: Any, kind: MatrixKind) -> None: ...

    def update(self, A: Any) -> None:
        """Factorise new values on the same pattern; BreakdownError if a pivot fails."""

    def solve(self, b: Floats) -> Floats:
        """For contiguous b of shape (n,) or (n, k)."""

    def negative_eigenvalues(self) -> int | None:
        """Their number, where the factorisation of a symmetric matrix gives it."""


class Cholesky:
    """Our own, in cholesky.cpp; its analysis is kept between factorisations."""

    def __init__(self, A: Any, kind: MatrixKind) -> None:
        self._count = A.shape[0]
        self.handle = self._enough(kernels.cholesky_analyse(A.indptr.astype(np.int32), A.indices.astype(np.int32)))
        weakref.finalize(self, kernels.cholesky_release, self.handle).atexit = False
        self.update(A)

    def update(self, A: Any) -> None:
        if self._enough(kernels.cholesky_factorise(self.handle, A.data)) == 2:
            raise BreakdownError

    def solve(self, b: Floats) -> Floats:
        x = np.empty_like(b)
        self._enough(kernels.cholesky_solve(self.handle, b.reshape(len(b), -1), x.reshape(len(b), -1)))
        return x

    def _enough(self, outcome: int) -> int:
        """What a kernel returned, which is 0 where there was not enough memory."""
        if not outcome:
            raise LinearSolveError(f"there is not enough memory to factorise {self._count} unknowns")
        return outcome

    def entries(self) -> int:
        """How many numbers of L are kept, zeros that make blocks of it among them."""
        return int(kernels.cholesky_entries(self.handle))

    def inverse(self, rows: Ints, columns: Ints) -> Floats:
        """A⁻¹ at some rows and columns."""
        out = np.empty((len(rows), len(columns)))
        self._enough(kernels.cholesky_inverse(self.handle, rows, columns, out))
        return out

    def negative_eigenvalues(self) -> int | None:
        return 0


@cache
def _load_pardiso() -> Any:
    """MKL's ``pardiso`` function as pypardiso finds and declares it, or None."""
    try:
        from pypardiso import ps
    except (ImportError, OSError):
        return None
    return ps.libmkl.pardiso


@cache
def _thread_switch() -> Any:
    """MKL's function that sets the calling thread's number of threads and returns the one before, or None."""
    from pypardiso import ps

    return getattr(ps.libmkl, "MKL_Set_Num_Threads_Local", None)


@cache
def _load_cholmod() -> Any:
    try:
        import cholespy
        from cholespy import _cholespy_core
    except (ImportError, OSError):
        return None
    _hush(_cholespy_core.__file__)
    return cholespy


def _hush(library: str) -> None:
    """Keep CHOLMOD from writing its warnings to standard output: take ``printf`` out of SuiteSparse's configuration.

    That is a table of seven functions; where a build does not show it, or holds another ``printf``, nothing is done.
    """
    try:
        table = (ctypes.c_void_p * 7).in_dll(ctypes.CDLL(library), "SuiteSparse_config")
        printf = ctypes.cast(ctypes.CDLL(None).printf, ctypes.c_void_p).value
    except (OSError, ValueError, AttributeError, TypeError):
        return
    for k, function in enumerate(table):
        if function == printf:
            table[k] = None


ONE_THREAD = 1_000_000
"""Entries up to which a matrix is left to one thread.

With so few, more threads save nothing, and MKL's spin for a fifth of a second after each call, in everyone's way. All
calls for one matrix need the same number: PARDISO lays out its factors by it.
"""


class Pardiso:
    """MKL PARDISO on 0-based CSR: the upper triangle of a symmetric matrix, all of a general one."""

    _TYPES = {"definite": 2, "symmetric": -2, "general": 11}  # noqa: RUF012

    def __init__(self, A: Any, kind: MatrixKind) -> None:
        self.kind, self.n = kind, A.shape[0]
        row, column = coordinates(A)
        self.slots = np.flatnonzero(column >= row) if kind != "general" else np.arange(A.nnz)
        self.columns = np.ascontiguousarray(A.indices[self.slots], dtype=np.int32)
        starts = np.concatenate([[0], np.cumsum(np.bincount(row[self.slots], minlength=self.n))])
        self.starts = starts.astype(np.int32)
        self.handle = np.zeros(64, dtype=np.int64)
        self.options = _pardiso_options(kind)
        self.values = np.ascontiguousarray(A.data[self.slots])
        weakref.finalize(self, _pardiso_release, self.handle, self.options, self._TYPES[kind], self.n).atexit = False
        self._call(12)

    def update(self, A: Any) -> None:
        self.values = np.ascontiguousarray(A.data[self.slots])
        self._call(22 if self.kind == "definite" else 12)  # the analysis of the others depends on the values

    def solve(self, b: Floats) -> Floats:
        right = np.asfortranarray(b)
        x = np.zeros_like(right)
        self._call(33, right, x)
        return x

    def negative_eigenvalues(self) -> int | None:
        return int(self.options[22])

    def _call(self, phase: int, b: Floats | None = None, x: Floats | None = None) -> None:
        columns = 1 if b is None or b.ndim == 1 else b.shape[1]
        shape = (self._TYPES[self.kind], phase, self.n, columns)
        with _one_thread() if len(self.values) < ONE_THREAD else nullcontext():
            error = _pardiso(self.handle, self.options, shape, (self.values, self.starts, self.columns, b, x))
        if error == -4:
            raise BreakdownError
        if error == -2:
            raise LinearSolveError(f"PARDISO ran out of memory for {self.n} unknowns")
        if error:
            raise LinearSolveError(f"PARDISO failed with its error {error} in phase {phase}")


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let MKL use one thread in calls from this one."""
    switch = _thread_switch()
    if switch is None:
        yield
        return
    before = switch(1)
    try:
        yield
    finally:
        switch(before)


def _pardiso_options(kind: MatrixKind) -> NDArray[np.int32]:
    """PARDISO's iparm: all that is not set here is off."""
    options = np.zeros(64, dtype=np.int32)
    options[0] = 1  # take these, not the defaults
    options[1] = 2  # nested dissection, the same at every run
    options[9] = 13  # a pivot below 1e-13 ‖A‖ is lifted to that
    if kind == "definite":
        options[23] = 1  # two-level factorisation: several right-hand sides in half the time
    else:
        options[7] = 2  # up to two steps of iterative refinement
        options[10] = options[12] = 1  # scale, and match rows to columns, by the values at hand
    options[20] = 1  # 1×1 and 2×2 pivots for symmetric matrices
    options[34] = 1  # indices from 0
    return options


def _pardiso(
    handle: NDArray[np.int64],
    options: NDArray[np.int32],
    shape: tuple[int, int, int, int],
    arrays: tuple[NDArray[Any] | None, ...],
) -> int:
    """One call, in PARDISO's own order of arguments; returns its error code."""
    matrix_type, phase, n, columns = (ctypes.byref(ctypes.c_int32(number)) for number in shape)
    values, starts, indices, b, x = arrays
    one, quiet, error = ctypes.c_int32(1), ctypes.c_int32(0), ctypes.c_int32(0)

    def pointer(array: NDArray[Any] | None, kind: Any) -> Any:
        return None if array is None else array.ctypes.data_as(ctypes.POINTER(kind))

    _load_pardiso()(
        pointer(handle, ctypes.c_int64), ctypes.byref(one), ctypes.byref(one), matrix_type, phase, n,
        pointer(values, ctypes.c_double), pointer(starts, ctypes.c_int32), pointer(indices, ctypes.c_int32),
        None, columns, pointer(options, ctypes.c_int32), ctypes.byref(quiet),
        pointer(b, ctypes.c_double), pointer(x, ctypes.c_double), ctypes.byref(error),
    )  # fmt: skip
    return error.value


def _pardiso_release(handle: NDArray[np.int64], options: NDArray[np.int32], matrix_type: int, n: int) -> None:
    _pardiso(handle, options, (matrix_type, -1, n, 1), (None,) * 5)


class Cholmod:
    """CHOLMOD through cholespy, which keeps no analysis between factorisations."""

    def __init__(self, A: Any, kind: MatrixKind) -> None:
        self.update(A)

    def update(self, A: Any) -> None:
        cholespy = _load_cholmod()
        row, column = coordinates(A)
        lower = np.flatnonzero(row >= column)
        entries = (row[lower], column[lower], A.data[lower])
        try:  # as coordinates: cholespy 2.2 sorts and reallocates the caller's own arrays if they are CSC or CSR
            self.factor = cholespy.CholeskySolverD(A.shape[0], *entries, cholespy.MatrixType.COO)
        except ValueError:
            raise BreakdownError from None

    def solve(self, b: Floats) -> Floats:
        x = np.empty_like(b)
        self.factor.solve(b, x)
        return x

    def negative_eigenvalues(self) -> int | None:
        return 0


class SuperLU:
    """SciPy's SuperLU: ``P A Pᵀ = L D Lᵀ`` for a definite matrix, threshold pivoting for the others."""

    def __init__(self, A: Any, kind: MatrixKind) -> None:
        self.kind = kind
        self.update(A)

    def update(self, A: Any) -> None:
        from scipy.sparse.linalg import splu

        order = "COLAMD" if self.kind == "general" else "MMD_AT_PLUS_A"
        threshold = {"definite": 0.0, "symmetric": 0.01, "general": 1.0}[self.kind]
        options = {"SymmetricMode": self.kind != "general"}
        try:
            self.factor = splu(sp.csc_matrix(A), permc_spec=order, diag_pivot_thresh=threshold, options=options)
        except RuntimeError:  # exactly singular
            raise BreakdownError from None
        if self.kind == "definite" and self.negative_eigenvalues() != 0:
            raise BreakdownError

    def solve(self, b: Floats) -> Floats:
        return self.factor.solve(b)

    def negative_eigenvalues(self) -> int | None:
        if not np.array_equal(self.factor.perm_r, self.factor.perm_c):
            return None
        return int((self.factor.U.diagonal() < 0).sum())


SOLVERS: dict[DirectMethod, type[Solver]] = {
    "cholesky": Cholesky,
    "pardiso": Pardiso,
    "cholmod": Cholmod,
    "superlu": SuperLU,
}
