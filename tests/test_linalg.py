"""Direct solves: the same answers and the same named errors from our Cholesky, PARDISO, CHOLMOD and SuperLU."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import textwrap
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from pliant.core.errors import (
    IndefiniteMatrixError,
    InputError,
    LinearSolveError,
    MissingExtraError,
    SingularMatrixError,
)
from pliant.numerics import direct_solvers as solvers, linalg

METHODS = ("cholesky", "pardiso", "cholmod", "superlu")
DEFINITE_METHODS = ("cholesky", "cholmod")
SYMMETRIC_METHODS = ("pardiso", "superlu")
KINDS = ("definite", "symmetric", "general")
METHODS_AND_KINDS = [*((m, "definite") for m in DEFINITE_METHODS), *((m, k) for m in SYMMETRIC_METHODS for k in KINDS)]
HINT = "something is free that nothing holds: pin a point or add an anchor"


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest) -> str:
    if request.param not in linalg.available():
        pytest.skip(f"{request.param} is not installed")
    return request.param


@pytest.fixture(params=METHODS_AND_KINDS)
def method_and_kind(request: pytest.FixtureRequest) -> tuple[str, linalg.Kind]:
    if request.param[0] not in linalg.available():
        pytest.skip(f"{request.param[0]} is not installed")
    return request.param


@pytest.fixture(params=SYMMETRIC_METHODS)
def symmetric_method(request: pytest.FixtureRequest) -> str:
    if request.param not in linalg.available():
        pytest.skip(f"{request.param} is not installed")
    return request.param


def chain(n: int, *, ends_held: bool = True) -> sp.csr_array:
    """Laplacian of a chain of n points; with held ends it is regular."""
    diagonal = np.full(n, 2.0)
    if not ends_held:
        diagonal[[0, -1]] = 1
    return sp.csr_array(sp.diags([-np.ones(n - 1), diagonal, -np.ones(n - 1)], offsets=[-1, 0, 1]))


def cube(m: int, *, ends_held: bool = True) -> sp.csr_array:
    """7-point Laplacian of an m × m × m grid."""
    L, one = chain(m, ends_held=ends_held), sp.identity(m)
    terms = ((L, one, one), (one, L, one), (one, one, L))
    return sp.csr_array(sum(sp.kron(sp.kron(a, b), c) for a, b, c in terms))


def random_definite(n: int, seed: int, *, density: float = 0.05) -> sp.csr_array:
    B = sp.random(n, n, density=density, random_state=seed)
    return sp.csr_array(B @ B.T + 0.1 * sp.identity(n))


def with_spectrum(eigenvalues: np.ndarray, seed: int) -> np.ndarray:
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(eigenvalues),) * 2))
    A = Q * eigenvalues @ Q.T
    return (A + A.T) / 2


def residual(A: object, x: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(A @ x - b).max() / np.abs(b).max())


# Answers


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [1, 2, 7, 200])
def test_solves_definite_matrices(method: str, n: int, seed: int) -> None:
    A = random_definite(n, seed)
    b = np.random.default_rng(seed).normal(size=(n, 4))
    factorization = linalg.factorize(A, method=method)
    assert factorization.method == method
    assert factorization.shape == (n, n)
    assert residual(A, factorization.solve(b), b) < 1e-10


def test_solves_a_large_grid(method: str) -> None:
    A = cube(20)
    exact = np.random.default_rng(0).normal(size=8000)
    x = linalg.factorize(A, method=method).solve(A @ exact)
    np.testing.assert_allclose(x, exact, rtol=0, atol=1e-10)


def test_one_number(method: str) -> None:
    factorization = linalg.factorize([[4.0]], method=method)
    assert factorization.solve([2.0]).tolist() == [0.5]
    assert factorization.solve([[2.0, 6.0]]).tolist() == [[0.5, 1.5]]


@pytest.mark.parametrize("kind", ["symmetric", "general"])
@pytest.mark.parametrize("constraints", [0, 20, 150])
def test_solves_saddle_points(symmetric_method: str, kind: linalg.Kind, constraints: int) -> None:
    rng = np.random.default_rng(constraints)
    K = random_definite(300, constraints, density=0.01)
    B = sp.random(constraints, 300, density=0.05, random_state=1)
    A = sp.bmat([[K, B.T], [B, None]]) if constraints else K - 0.3 * sp.identity(300)
    b = rng.normal(size=(A.shape[0], 2))
    assert residual(A, linalg.factorize(A, method=symmetric_method, kind=kind).solve(b), b) < 1e-10


def test_solves_general_matrices(symmetric_method: str) -> None:
    A = sp.random(200, 200, density=0.05, random_state=2) + sp.diags(np.linspace(1, 3, 200))
    b = np.random.default_rng(0).normal(size=200)
    assert residual(A, linalg.factorize(A, method=symmetric_method, kind="general").solve(b), b) < 1e-10


def test_a_permutation_is_general_and_regular(symmetric_method: str) -> None:
    A = np.roll(np.eye(5), 1, axis=0)  # no diagonal entry at all
    b = np.arange(5.0)
    np.testing.assert_allclose(linalg.factorize(A, method=symmetric_method, kind="general").solve(b), A.T @ b)


def test_many_right_hand_sides_are_solved_one_by_one(method: str) -> None:
    factorization = linalg.factorize(cube(6), method=method)
    b = np.random.default_rng(0).normal(size=(216, 5))
    single = np.stack([factorization.solve(b[:, k]) for k in range(5)], axis=1)
    np.testing.assert_allclose(factorization.solve(b), single, rtol=1e-13, atol=1e-13)
    assert factorization.solve(b[:, :0]).shape == (216, 0)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia", "dense", "list", "csr_array", "int"])
def test_takes_every_form_of_matrix(method: str, form: str) -> None:
    A = chain(9)
    given = {
        "dense": A.toarray(), "list": A.toarray().tolist(), "csr_array": sp.csr_array(A), "int": A.astype(int)
    }.get(form)  # fmt: skip
    given = sp.csr_matrix(A).asformat(form) if given is None else given
    b = np.arange(9.0)
    np.testing.assert_allclose(linalg.factorize(given, method=method).solve(b), np.linalg.solve(A.toarray(), b))


def test_unsorted_and_duplicate_entries_are_summed(method: str) -> None:
    row, column, value = [1, 0, 0, 1, 1], [1, 1, 0, 0, 1], [1.0, -1.0, 2.0, -1.0, 1.0]
    A = sp.csr_matrix((np.array(value), (row, column)), shape=(2, 2), copy=True)
    raw = sp.csr_matrix((np.array([-1.0, 2.0, 1.0, -1.0, 1.0]), np.array([1, 0, 1, 0, 1]), np.array([0, 2, 5])))
    b = np.array([1.0, 0.0])
    for given in (A, raw, sp.coo_matrix((value, (row, column)))):
        np.testing.assert_allclose(linalg.factorize(given, method=method).solve(b), [2 / 3, 1 / 3])


@pytest.mark.parametrize("layout", ["C", "F", "strided", "reversed", "float32", "int", "bool", "list"])
def test_takes_every_layout_of_right_hand_side(method: str, layout: str) -> None:
    b = np.random.default_rng(3).integers(0, 2, size=(27, 3)).astype(float)
    given = {
        "C": np.ascontiguousarray(b),
        "F": np.asfortranarray(b),
        "strided": np.repeat(np.repeat(b, 2, axis=0), 3, axis=1)[::2, ::3],
        "reversed": b[::-1, ::-1].copy()[::-1, ::-1],
        "float32": b.astype(np.float32),
        "int": b.astype(int),
        "bool": b.astype(bool),
        "list": b.tolist(),
    }[layout]
    A = cube(3)
    x = linalg.factorize(A, method=method).solve(given)
    assert x.dtype == np.float64
    assert x.flags.c_contiguous
    np.testing.assert_allclose(A @ x, b, atol=1e-13)


def test_inputs_are_left_alone(method: str) -> None:
    A = sp.csr_matrix(cube(4))
    A.indices, A.data = A.indices.copy(), A.data.copy()
    A.indices[:2], A.data[:2] = A.indices[1::-1].copy(), A.data[1::-1].copy()  # not sorted, and must stay so
    A.has_sorted_indices = False
    before = (A.data.copy(), A.indices.copy(), A.indptr.copy())
    b = np.arange(64.0)
    factorization = linalg.factorize(A, method=method)
    x = factorization.solve(b)
    x[:] = np.nan
    assert b.tolist() == list(range(64))
    for now, then in zip((A.data, A.indices, A.indptr), before, strict=True):
        np.testing.assert_array_equal(now, then)
    A.data[:] = 0  # a change made later does not reach the factorisation
    np.testing.assert_allclose(cube(4) @ factorization.solve(b), b, atol=1e-12)


def torus(m: int) -> sp.csr_array:
    """Graph Laplacian of a triangulated torus of m × m vertices, weakly held: neither a grid nor a tree."""
    number = np.arange(m * m).reshape(m, m)
    right, up = np.roll(number, -1, axis=0), np.roll(number, -1, axis=1)
    ends = np.concatenate([right, up, np.roll(right, -1, axis=1)]).ravel()
    W = sp.coo_array((np.ones(3 * m * m), (np.tile(number.ravel(), 3), ends)), shape=(m * m, m * m))
    return sp.csr_array(sp.diags((W + W.T).sum(axis=1) + 1e-3) - W - W.T)


@pytest.mark.parametrize("entry", [0.0, 1e-17])
def test_entries_that_are_stored_on_one_side_alone_change_nothing(method: str, entry: float) -> None:
    A, rng = torus(30), np.random.default_rng(2)
    where = rng.integers(0, A.shape[0], (2, 1000))
    more = sp.csr_array(sp.coo_array((np.full(1000, entry), where), shape=A.shape))
    both = [matrix.tocoo() for matrix in (A, more)]
    values, rows, columns = (np.concatenate([getattr(one, name) for one in both]) for name in ("data", "row", "col"))
    given = sp.csr_array(sp.coo_array((values, (rows, columns)), shape=A.shape))
    assert given.nnz > A.nnz
    b = rng.normal(size=A.shape[0])
    factorization = linalg.factorize(given, method=method)
    np.testing.assert_allclose(factorization.solve(b), linalg.factorize(A, method=method).solve(b), atol=1e-9)
    before = factorization.solve(b)
    np.testing.assert_allclose(factorization.refactorize(2 * given).solve(b), before / 2, atol=1e-9)


PARTS = {
    "one part": torus(30),
    "solid": cube(11),
    "parts of their own": sp.block_diag([torus(15), cube(7), sp.identity(40), chain(200), np.eye(30) + 1]),
    "all connected": random_definite(300, 1, density=0.5),
    "a star": sp.csr_array(np.diag(np.r_[300.0, np.full(299, 2.0)]) - np.outer(np.eye(300)[0], np.arange(300) > 0)
                           - np.outer(np.arange(300) > 0, np.eye(300)[0])),
}  # fmt: skip


@pytest.mark.parametrize("columns", [1, 3, 19])
@pytest.mark.parametrize("parts", PARTS)
def test_an_inverse_is_found_at_some_rows_and_columns(method: str, parts: str, columns: int) -> None:
    rng, shuffle = np.random.default_rng(columns), np.random.default_rng(7).permutation(PARTS[parts].shape[0])
    A = sp.csr_array(PARTS[parts])[shuffle][:, shuffle]
    factorization, n = linalg.factorize(A, method=method), A.shape[0]
    rows, columns_at = rng.permutation(n)[:40], rng.permutation(n)[:columns]
    whole = np.linalg.solve(A.toarray(), np.eye(n)[:, columns_at])
    np.testing.assert_allclose(factorization.inverse(rows, columns_at), whole[rows], atol=1e-12 * np.abs(whole).max())
    assert factorization.inverse(rows[:0], columns_at).shape == (0, columns)
    assert factorization.inverse(rows, columns_at[:0]).shape == (40, 0)
    np.testing.assert_allclose(factorization.solve(A.toarray()[:, columns_at]), np.eye(n)[:, columns_at], atol=1e-11)


@pytest.mark.parametrize(("matrix", "size", "most"), [(torus, 40, 6), (cube, 8, 22)])
def test_our_factor_grows_as_nested_dissection_has_it(matrix: object, size: int, most: float) -> None:
    """On surfaces as n log n, in solids as n to the 4/3: by 4.7 and 16 here; in bands it is 8 and 32."""
    rng, entries = np.random.default_rng(0), []
    for m in (size, 2 * size):
        A = sp.csr_array(matrix(m))
        shuffle = rng.permutation(A.shape[0])
        solver = linalg.factorize(A[shuffle][:, shuffle], method="cholesky", check=False)._solver
        assert isinstance(solver, solvers.Cholesky)
        entries.append(solver.entries())
    assert entries[1] < most * entries[0]


# New values on an old pattern


@pytest.mark.parametrize("wrong", [[8], [-1], [0.5], [[0]], [10**12]])
def test_an_inverse_has_no_rows_and_columns_beyond_the_matrix(method: str, wrong: list[object]) -> None:
    factorization = linalg.factorize(chain(8), method=method)
    for asked in ((wrong, [0]), ([0], wrong)):
        with pytest.raises(InputError, match=r"rows and columns are|rows or columns reach"):
            factorization.inverse(*asked)


def test_refactorizing_equals_factorizing(method: str) -> None:
    b = np.random.default_rng(0).normal(size=125)
    factorization = linalg.factorize(cube(5), method=method)
    for shift in (0.5, 3.0):
        A = cube(5) * 0.7 + shift * sp.identity(125)
        assert factorization.refactorize(A) is factorization
        np.testing.assert_allclose(factorization.solve(b), linalg.factorize(A, method=method).solve(b), rtol=1e-12)


@pytest.mark.parametrize("kind", ["symmetric", "general"])
def test_refactorizing_takes_quite_other_values(symmetric_method: str, kind: linalg.Kind) -> None:
    rng = np.random.default_rng(5)
    pattern = (chain(60) @ chain(60)).toarray() != 0
    factorization = linalg.factorize(np.eye(60) + pattern, method=symmetric_method, kind=kind)
    for _ in range(3):
        values = rng.normal(size=(60, 60)) * 10 ** rng.uniform(-3, 3, size=(60, 1))
        A = np.where(pattern, values + values.T, 0)
        b = rng.normal(size=60)
        assert residual(A, factorization.refactorize(A).solve(b), A @ np.linalg.solve(A, b)) < 1e-9


def test_refactorizing_accepts_entries_that_became_zero(method: str) -> None:
    factorization = linalg.factorize(chain(5), method=method)
    b = np.arange(5.0)
    np.testing.assert_allclose(factorization.refactorize(sp.identity(5) * 2).solve(b), b / 2)
    np.testing.assert_allclose(factorization.refactorize(chain(5)).solve(b), np.linalg.solve(chain(5).toarray(), b))


def test_refactorizing_refuses_another_pattern(method: str) -> None:
    factorization = linalg.factorize(chain(5), method=method)
    with pytest.raises(InputError, match="entries where the first one had none"):
        factorization.refactorize(chain(5) @ chain(5))
    with pytest.raises(InputError, match=r"shape \(4, 4\); expected \(5, 5\)"):
        factorization.refactorize(chain(4))
    b = np.ones(5)  # the old factorisation is still good
    np.testing.assert_allclose(chain(5) @ factorization.solve(b), b)


def test_a_failed_refactorize_is_not_solved_with(method: str) -> None:
    factorization = linalg.factorize(chain(5), method=method)
    with pytest.raises(SingularMatrixError):
        factorization.refactorize(chain(5, ends_held=False))
    with pytest.raises(LinearSolveError, match="refactorize failed"):
        factorization.solve(np.ones(5))


# Errors

N = 40
TWO_CHAINS = sp.block_diag([chain(30), chain(10, ends_held=False)])
ONE_NEGATIVE = with_spectrum(np.concatenate([[-0.01], np.linspace(1, 5, N - 1)]), 1)
SINGULAR = {
    "unpinned chain": chain(N, ends_held=False),
    "unpinned cube": cube(6, ends_held=False),
    "second part not pinned": TWO_CHAINS,
    "rank one short": with_spectrum(np.concatenate([[0.0], np.linspace(1, 5, N - 1)]), 2),
    "rank one": np.ones((5, 5)),
    "tiny units": chain(N, ends_held=False) * 1e-30,
    "zero row": np.diag([1.0, 0.0, 2.0]),
    "zero matrix": np.zeros((4, 4)),
    "zero number": [[0.0]],
    "nothing stored": sp.csr_matrix((3, 3)),
}


@pytest.mark.parametrize("case", SINGULAR)
def test_singular_matrices_are_named(method_and_kind: tuple[str, linalg.Kind], case: str) -> None:
    method, kind = method_and_kind
    with pytest.raises(SingularMatrixError, match=HINT) as caught:
        linalg.factorize(SINGULAR[case], method=method, kind=kind)
    assert "\n" not in str(caught.value)


def test_the_free_part_is_named(method: str) -> None:
    with pytest.raises(SingularMatrixError, match=r"unknown 3\d is the freest, and 10 move together"):
        linalg.factorize(TWO_CHAINS, method=method)


INDEFINITE = {
    "one negative eigenvalue": (ONE_NEGATIVE, "1 negative eigenvalue;"),
    "four, in a grid": (cube(8) - 0.8 * sp.identity(512), "4 negative eigenvalues;"),
    "negative diagonal entry": (np.diag([1.0, -3.0, 2.0]), "diagonal entry 1 is -3"),
    "zero diagonal entry": (np.array([[0.0, 1.0], [1.0, 5.0]]), "diagonal entry 0 is 0"),
    "positive diagonal": (np.array([[1.0, 2.0], [2.0, 1.0]]), "1 negative eigenvalue;"),
    "slightly negative": (with_spectrum(np.array([-1e-9, 1, 2, 3]), 3), "1 negative eigenvalue;"),
    "wrong sign": (-chain(9), "sign reversed"),
}


@pytest.mark.parametrize("case", INDEFINITE)
def test_indefinite_matrices_are_named(method: str, case: str) -> None:
    A, words = INDEFINITE[case]
    with pytest.raises(IndefiniteMatrixError, match=words):
        linalg.factorize(A, method=method)


@pytest.mark.parametrize("seed", range(5))
def test_negative_eigenvalues_are_counted(method: str, seed: int) -> None:
    A = (random_definite(150, seed, density=0.02) - 0.2 * sp.identity(150)).toarray()
    A += np.diag(np.maximum(0.01 - A.diagonal(), 0))  # what the diagonal gives away is not counted
    count = int((np.linalg.eigvalsh(A) < 0).sum())
    assert count > 1
    with pytest.raises(IndefiniteMatrixError, match=f"it has ({count} )?negative eigenvalues"):
        linalg.factorize(A, method=method)


@pytest.mark.parametrize("check", [True, False])
def test_a_method_that_breaks_down_says_so_unchecked_too(method: str, check: bool) -> None:
    with pytest.raises(IndefiniteMatrixError):
        linalg.factorize(ONE_NEGATIVE, method=method, check=check)


@pytest.mark.parametrize("condition", [1e6, 1e10, 1e12])
def test_ill_conditioned_matrices_pass(method_and_kind: tuple[str, linalg.Kind], condition: float) -> None:
    method, kind = method_and_kind
    A = with_spectrum(np.geomspace(1 / condition, 1, N), 4)
    b = np.random.default_rng(0).normal(size=N)
    factorization = linalg.factorize(A, method=method, kind=kind)
    assert factorization.reciprocal_condition is not None
    assert 0.001 / condition < factorization.reciprocal_condition < 10 / condition
    x = factorization.solve(b)
    assert np.abs(A @ x - b).max() < 1e-10 * np.abs(x).max()


def test_mixed_units_are_not_singular(method: str) -> None:
    scale = sp.diags(10 ** np.linspace(-8, 8, N))
    A = scale @ chain(N) @ scale
    b = scale @ np.ones(N)
    expected = np.linalg.solve(chain(N).toarray(), np.ones(N))
    np.testing.assert_allclose(scale @ linalg.factorize(A, method=method).solve(b), expected)


def test_the_check_can_be_left_out(method: str) -> None:
    assert linalg.factorize(chain(9), method=method, check=False).reciprocal_condition is None


@pytest.mark.parametrize(
    ("A", "words"),
    [
        (np.ones((2, 3)), r"shape \(2, 3\); expected it to be square"),
        (np.ones(3), r"shape \(3,\)"),
        (3.0, r"shape \(\)"),
        (np.zeros((0, 0)), "not empty"),
        (sp.csr_matrix((0, 0)), "not empty"),
        (np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, np.nan]]), "row 2 of the matrix holds nan in column 2"),
        (sp.csr_matrix([[1.0, 0], [np.inf, 1]]), "row 1 of the matrix holds inf in column 0"),
        (np.eye(2) * 1j, "complex128 values; expected real numbers"),
        (np.array([[1.0, 0.5], [0.0, 1.0]]), r"not symmetric: entry \(0, 1\) is 0.5 and \(1, 0\) is 0"),
        ("matrix", "expected real numbers"),
    ],
)
def test_bad_matrices(method: str, A: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        linalg.factorize(A, method=method)


def test_rounding_is_not_asymmetry(method: str) -> None:
    A = chain(9).toarray()
    A[0, 1] *= 1 + 1e-12
    b = np.ones(9)
    np.testing.assert_allclose(A @ linalg.factorize(A, method=method).solve(b), b)


@pytest.mark.parametrize(
    ("b", "words"),
    [
        (np.ones(4), r"shape \(4,\); expected \(3,\) or \(3, k\)"),
        (np.ones((1, 3)), r"shape \(1, 3\)"),
        (np.ones((3, 1, 1)), r"shape \(3, 1, 1\)"),
        (2.0, r"shape \(\)"),
        ([1.0, np.nan, 0.0], "row 1 of the right-hand side is not finite"),
        (np.array([[0, 1], [0, 0], [np.inf, 0]]), "row 2 of the right-hand side"),
        (np.ones(3) * 1j, "complex128 values"),
        (sp.csr_matrix(np.ones((3, 1))), "object values"),
    ],
)
def test_bad_right_hand_sides(method: str, b: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        linalg.factorize(chain(3), method=method).solve(b)


def test_bad_options() -> None:
    with pytest.raises(InputError, match='method is "lu"; expected auto, cholesky, pardiso, cholmod, superlu'):
        linalg.factorize(chain(3), method="lu")
    with pytest.raises(InputError, match='kind is "spd"; expected one of definite, symmetric, general'):
        linalg.factorize(chain(3), kind="spd")
    for method in DEFINITE_METHODS:
        with pytest.raises(InputError, match=f'"{method}" factorises definite matrices only'):
            linalg.factorize(chain(3), method=method, kind="symmetric")


# What is installed


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An installation without the extras "fast" and "mkl"."""
    for loader in (solvers._load_pardiso, solvers._load_cholmod):
        loader.cache_clear()
    for name in ("pypardiso", "cholespy"):
        monkeypatch.setitem(sys.modules, name, None)
    yield monkeypatch
    for loader in (solvers._load_pardiso, solvers._load_cholmod):
        loader.cache_clear()


@pytest.mark.usefixtures("bare")
def test_our_own_and_scipys_are_always_there() -> None:
    assert linalg.available() == ("cholesky", "superlu")
    assert linalg.factorize(chain(3)).method == "cholesky"
    assert linalg.factorize(chain(3), kind="symmetric").method == "superlu"
    with pytest.raises(IndefiniteMatrixError, match="1 negative eigenvalue;"):
        linalg.factorize(ONE_NEGATIVE)
    with pytest.raises(SingularMatrixError, match=HINT):
        linalg.factorize(cube(6, ends_held=False))


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(("name", "extra"), [("pardiso", "mkl"), ("cholmod", "fast")])
def test_a_missing_method_names_its_extra(name: str, extra: str) -> None:
    with pytest.raises(
        MissingExtraError, match=rf'method "{name}" needs the extra "{extra}": pip install "pliant\[{extra}\]"'
    ):
        linalg.factorize(chain(3), method=name)


def test_auto_takes_the_quickest_that_fits() -> None:
    installed = linalg.available()
    assert linalg.factorize(chain(3)).method == installed[0]
    others = [m for m in installed if m not in DEFINITE_METHODS]
    assert linalg.factorize(chain(3), kind="symmetric").method == others[0]
    assert installed[-1] == "superlu"


def test_one_call_solve() -> None:
    b = np.arange(5.0)
    np.testing.assert_allclose(chain(5) @ linalg.solve(chain(5), b), b, atol=1e-14)


# Life of a factorisation


@pytest.mark.parametrize("duplicate", [lambda f: pickle.loads(pickle.dumps(f)), copy.copy, copy.deepcopy])
def test_copies_solve_too(method: str, duplicate: object) -> None:
    factorization = linalg.factorize(cube(4), method=method)
    twin = duplicate(factorization)
    b = np.arange(64.0)
    expected = factorization.solve(b)
    del factorization
    gc.collect()
    np.testing.assert_allclose(twin.solve(b), expected, rtol=1e-13)
    assert (twin.method, twin.kind, twin.shape) == (method, "definite", (64, 64))


def test_a_pickle_goes_where_a_method_is_missing(method: str, request: pytest.FixtureRequest) -> None:
    chosen, named = (pickle.dumps(linalg.factorize(chain(3), method=m)) for m in ("auto", method))
    request.getfixturevalue("bare")
    assert pickle.loads(chosen).method == "cholesky"
    if method in ("cholesky", "superlu"):
        assert pickle.loads(named).method == method
    else:
        with pytest.raises(MissingExtraError, match=f'method "{method}" needs the extra "') as caught:
            pickle.loads(named)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # so it gets out of a worker


def test_nothing_is_printed_about_an_indefinite_matrix(method: str) -> None:
    code = f"""
        import scipy.sparse as sp
        from pliant.numerics import linalg
        try:
            linalg.factorize(sp.csr_array([[1.0, 2], [2, 1]]), method={method!r})
        except ArithmeticError:
            print("refused")
    """
    found = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert (found.stdout, found.stderr) == ("refused\n", "")


def test_memory_is_given_back(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[int] = []
    inner = solvers._pardiso_release
    monkeypatch.setattr(solvers, "_pardiso_release", lambda *given: (inner(*given), released.append(given[3])))
    factorization = linalg.factorize(cube(5), method=method)
    gone = weakref.ref(factorization._solver)
    del factorization
    gc.collect()
    assert gone() is None
    assert released == ([125] if method == "pardiso" else [])


def test_threads_share_a_factorisation(method: str) -> None:
    A = cube(8)
    factorization = linalg.factorize(A, method=method)
    sides = np.random.default_rng(0).normal(size=(16, 512))
    with ThreadPoolExecutor(4) as pool:
        for x, b in zip(pool.map(factorization.solve, sides), sides, strict=True):
            assert residual(A, x, b) < 1e-10


def test_the_name_says_what_it_is() -> None:
    assert repr(linalg.factorize(chain(3), method="superlu")) == "Factorization(3 × 3, definite, superlu)"
